"""One recipe: what structure is taken, who has which parameter, fits that fail."""

from concurrent.futures import ThreadPoolExecutor
from inspect import signature

import numpy as np
import pytest
from imblearn.pipeline import make_pipeline
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer

from sklearn_pnl import (
    BackwardProjector,
    EtaManifold,
    KernelDraws,
    ManyBodyProjector,
    MixtureManifold,
    MixupDraws,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    PrimeFactorReshaper,
)
from sklearn_pnl.geometry import Poset, TensorPoset

SEEDS = [0, 1, 2]
LABELS = np.repeat([0, 1], [40, 20])


def table(seed=0, n_columns=12):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(60, n_columns)) * 10.0 ** (np.arange(n_columns) % 5 - 2)


def resample(X, y=LABELS, **params):
    return PNLSampler(**{"random_state": 0, **params}).fit_resample(X, y)[0]


# --- structure ------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"metric": "euclidean"}, {"with_mass": False}])
@pytest.mark.parametrize("augment", ["mixup", "kde"])
@pytest.mark.parametrize("seed", SEEDS)
def test_columns_of_a_table_have_no_order(seed, augment, params):
    X = table(seed)
    order = np.random.default_rng(seed).permutation(12)
    if augment == "kde":
        # Its noise is drawn in the order of the columns: here next to none.
        augment = KernelDraws(bandwidth=1e-12)
    params = {"draws": augment, **params}
    spread = np.ptp(X, axis=0)
    rows, parents = PNLAugmenter(**params).fit(X).sample(200, seed, return_parents=True)
    permuted = PNLAugmenter(**params).fit(X[:, order])
    other, other_parents = permuted.sample(200, seed, return_parents=True)
    assert_array_equal(other_parents, parents)
    assert_allclose(other / spread[order], (rows / spread)[:, order], atol=1e-9)
    X_new = resample(X, random_state=seed, **params) / spread
    X_other = resample(X[:, order], random_state=seed, **params) / spread[order]
    assert_allclose(X_other, X_new[:, order], atol=1e-9)


def test_columns_have_an_order_where_one_is_asked_for():
    # Else the test above could not fail.
    X, order = table(), np.random.default_rng(0).permutation(12)
    rows = PNLAugmenter(1).fit(X).sample(50, 0) / np.ptp(X, axis=0)
    other = PNLAugmenter(1).fit(X[:, order]).sample(50, 0) / np.ptp(X, axis=0)[order]
    assert np.abs(other - rows[:, order]).max() > 1e-2


CHAIN = Poset.from_relations(12, [(k, k + 1) for k in range(11)])
PRIMES = PrimeFactorReshaper().fit(table()).tensor_shape_


@pytest.mark.parametrize(
    ("params", "shape", "order", "laid_out"),
    [
        ({}, (12,), None, (12,)),
        ({"reshaper": None}, (12,), None, (12,)),
        ({"order": None, "reshaper": "prime"}, (12,), None, PRIMES),
        ({"order": 1}, (12,), 1, PRIMES),
        ({"order": 2}, (12,), 2, PRIMES),
        ({"order": [(0, 1)]}, (12,), [(0, 1)], PRIMES),
        ({"order": 1, "reshaper": None}, (12,), 1, (12,)),
        ({"local_manifold": EtaManifold(order=1)}, (12,), None, PRIMES),
        ({"reshaper": "prime"}, (12,), None, PRIMES),
        ({"reshaper": PrimeFactorReshaper((4, 3))}, (12,), None, (2, 2, 3)),
        ({"poset": TensorPoset((4, 3))}, (12,), 1, (4, 3)),
        ({"poset": CHAIN}, (12,), 1, (12,)),
        ({"base": [1, 5]}, (12,), 1, PRIMES),
        ({}, (4, 3), None, (4, 3)),
        ({"reshaper": None}, (4, 3), None, (4, 3)),
        ({"order": None}, (4, 3), None, (4, 3)),
        ({"order": 2}, (4, 3), 2, (2, 2, 3)),
    ],
    ids=str,
)
def test_structure_that_is_stated_is_taken_and_none_invented(
    params, shape, order, laid_out
):
    X = table().reshape(60, *shape)
    augmenter = PNLAugmenter(**params).fit(X)
    assert augmenter.order_ == order
    assert augmenter.poset_.shape == laid_out
    assert augmenter.sample(3, random_state=0).shape == (3, *shape)
    sampler = PNLSampler(**params, random_state=0)
    sampler.fit_resample(X, LABELS)
    assert sampler.order_ == order
    assert sampler.augmenters_[1].poset_.shape == laid_out


def test_a_whole_row_is_its_code_and_takes_no_steps():
    augmenter = PNLAugmenter().fit(table())
    assert augmenter.n_params_ == 12
    assert augmenter.n_iter_ == 1
    rows = augmenter.embedding_.transform(table()) + augmenter.offset
    assert_allclose(augmenter.codes_, np.log(rows), rtol=1e-9)


# --- parameters -----------------------------------------------------------------


def defaults(estimator):
    parameters = signature(type(estimator)).parameters.values()
    return {p.name: p.default for p in parameters}


def test_the_sampler_has_the_parameters_of_the_augmenter_and_its_defaults():
    sampler = defaults(PNLSampler())
    own = {"sampling_strategy": "auto", "random_state": None}
    own |= {"constraints": None, "totals": None}
    assert sampler == defaults(PNLAugmenter()) | own
    assert list(defaults(PNLAugmenter())) == [n for n in sampler if n not in own]


@pytest.mark.parametrize("params", [{}, {"order": 1, "draws": "kde"}], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_sampler_is_one_augmenter_a_class(seed, params):
    X = table(seed)
    alone = PNLAugmenter(**params).fit(X[40:])
    rows, parents = alone.sample(20, random_state=seed, return_parents=True)
    sampler = PNLSampler(**params, random_state=seed)
    X_new, _ = sampler.fit_resample(X, LABELS)
    assert X_new[60:].tobytes() == rows.tobytes()
    assert_array_equal(sampler.parent_indices_, parents + 40)


def flat(X):
    return np.reshape(X, (len(X), -1))


@pytest.mark.parametrize("shape", [(64,), (8, 8)], ids=["table", "images"])
def test_orders_neighbours_and_nested_parameters_can_be_searched(shape):
    images, y = load_digits(return_X_y=True)
    chosen = np.r_[np.flatnonzero(y == 0)[:40], np.flatnonzero(y == 1)[:14]]
    X, y = images[chosen].reshape(-1, *shape), y[chosen]
    sampler = PNLSampler(
        draws=MixupDraws(), local_manifold=MixtureManifold(), random_state=0
    )
    pipeline = make_pipeline(
        sampler, FunctionTransformer(flat), KNeighborsClassifier(3)
    )
    for grid in (
        {"order": [None, 1, 2], "k_neighbors": [1, 3]},
        {"draws__noise": [0, 1.5], "local_manifold__step": [0.1, 0.9]},
    ):
        names = {f"pnlsampler__{name}": values for name, values in grid.items()}
        search = GridSearchCV(pipeline, names, cv=2, error_score="raise")
        search.fit(X, y)
        assert search.best_score_ > 0.9
        fitted = search.best_estimator_[0]
        best = {k.split("__", 1)[1]: v for k, v in search.best_params_.items()}
        assert best.items() <= fitted.augmenters_[1].get_params().items()


@pytest.mark.parametrize("name", ["draws__noise", "local_manifold__step"])
def test_nested_parameters_reach_the_rows(name):
    params = {"draws": MixupDraws(), "local_manifold": MixtureManifold()}
    sampler = PNLSampler(**params, random_state=0)
    rows = [
        sampler.set_params(**{name: value}).fit_resample(table(), LABELS)[0]
        for value in (0.0, 0.5)
    ]
    assert np.abs(rows[0] - rows[1]).max() > 1e-3


# --- fits that fail -------------------------------------------------------------


class Refusing(TransformerMixin, BaseEstimator):
    """An embedding whose fit fails on rows that begin with a 13."""

    def __init__(self, error=ValueError):
        self.error = error

    def fit(self, X, y=None):
        if X[0, 0] == 13:
            raise self.error("no embedding")
        return self

    def transform(self, X):
        return X + 2.0**12

    def inverse_transform(self, X):
        return X - 2.0**12


def unlucky(X):
    """The same rows, which begin with a 13."""
    X = X.copy()
    X.reshape(len(X), -1)[0, 0] = 13
    return X


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_augmenter_whose_fit_fails_keeps_the_old_one(error):
    augmenter = PNLAugmenter(embedding=Refusing(error))
    with pytest.raises(error):
        augmenter.fit(unlucky(table()))
    with pytest.raises(NotFittedError):
        augmenter.sample(3)
    assert not [name for name in vars(augmenter) if name.endswith("_")]
    augmenter.fit(table())
    before, rows = set(vars(augmenter)), augmenter.sample(9, random_state=0)
    with pytest.raises(error):
        augmenter.fit(unlucky(table(n_columns=7)))
    assert set(vars(augmenter)) == before
    assert augmenter.n_features_in_ == 12
    assert_array_equal(augmenter.sample(9, random_state=0), rows)
    assert_array_equal(clone(augmenter).fit(table()).sample(9, random_state=0), rows)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_sampler_whose_second_class_fails_keeps_the_old_one(error):
    # The first class got its augmenter before the second failed.
    X, y = table(), np.repeat([0, 1, 2], [30, 15, 15])
    sampler = PNLSampler(embedding=Refusing(error), random_state=0)
    broken = X.copy()
    broken[45, 0] = 13
    with pytest.raises(error):
        sampler.fit_resample(broken, y)
    assert not [name for name in vars(sampler) if name.endswith("_")]
    sampler.fit_resample(X, y)
    rows = sampler.augmenters_[2].sample(5, random_state=0)
    with pytest.raises(error):
        sampler.fit_resample(broken, y)
    assert set(sampler.augmenters_) == {1, 2}
    assert sampler.parent_indices_.shape == (30, 2)
    assert_array_equal(sampler.augmenters_[2].sample(5, random_state=0), rows)


@pytest.mark.parametrize("make", [ManyBodyProjector, BackwardProjector])
def test_a_projector_whose_fit_fails_keeps_the_old_one(make):
    X = np.abs(table()).reshape(60, 4, 3)
    projector = make()
    huge = X[:, :, :2].copy()
    huge[5] = 1e308
    for bad in (huge, -X, X[0, 0]):
        with pytest.raises(ValueError, match="overflows|Negative|2D"):
            projector.fit(bad)
        with pytest.raises(NotFittedError):
            projector.transform(X)
    codes = projector.fit(X).transform(X)
    before = set(vars(projector))
    for bad in (huge, -X, X[0, 0]):
        with pytest.raises(ValueError, match="overflows|Negative|2D"):
            projector.fit(bad)
        assert set(vars(projector)) == before
        assert projector.input_shape_ == (4, 3)
        assert_array_equal(projector.transform(X), codes)


def test_a_reshaper_whose_fit_fails_keeps_the_old_one():
    reshaper = PrimeFactorReshaper((4, 3)).fit(table())
    with pytest.raises(ValueError, match="12 cells"):
        reshaper.fit(table(n_columns=7))
    assert reshaper.transform(table()).shape == (60, 2, 2, 3)


@pytest.mark.parametrize(
    "estimator",
    [PNLAugmenter(), PNLAugmenter(1), ManyBodyProjector(), BackwardProjector()],
    ids=str,
)
def test_a_fit_on_an_array_forgets_the_names_of_a_frame(estimator):
    pd = pytest.importorskip("pandas")
    X = np.abs(table(n_columns=4))
    estimator = clone(estimator).fit(pd.DataFrame(X, columns=list("abcd")))
    assert estimator.feature_names_in_.tolist() == list("abcd")
    estimator.fit(X)
    assert not hasattr(estimator, "feature_names_in_")
    if isinstance(estimator, PNLAugmenter):
        assert isinstance(estimator.sample(3), np.ndarray)


def test_a_sampler_on_an_array_forgets_the_names_of_a_frame():
    pd = pytest.importorskip("pandas")
    sampler = PNLSampler()
    sampler.fit_resample(pd.DataFrame(table(n_columns=3), columns=list("abc")), LABELS)
    assert sampler.feature_names_in_.tolist() == list("abc")
    sampler.fit_resample(table(n_columns=3), LABELS)
    assert not hasattr(sampler, "feature_names_in_")


def test_a_new_fit_leaves_nothing_of_the_old_one():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": np.arange(60), "b": np.arange(60) / 7})
    augmenter = PNLAugmenter().fit(frame).fit(table())
    fresh = PNLAugmenter().fit(table())
    assert set(vars(augmenter)) == set(vars(fresh))
    assert_array_equal(augmenter.sample(5, 0), fresh.sample(5, 0))


@pytest.mark.parametrize("sampler", [PNLSampler(), PNLRegressionSampler()], ids=repr)
def test_a_check_alone_leaves_nothing_of_older_draws(sampler):
    sampler = clone(sampler)
    sampler.fit_resample(table(n_columns=3), LABELS)
    sampler.fit(table(), LABELS)
    assert set(vars(sampler)) == set(vars(clone(sampler).fit(table(), LABELS)))


@pytest.mark.parametrize("name", ["draws", "local_manifold", "metric", "embedding"])
def test_a_parameter_set_to_nonsense_is_refused_by_the_next_fit_alone(name):
    augmenter = PNLAugmenter().fit(table())
    rows = augmenter.sample(9, random_state=0)
    augmenter.set_params(**{name: "bogus"})
    assert_array_equal(augmenter.sample(9, random_state=0), rows)
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        augmenter.fit(table())
    assert_array_equal(augmenter.sample(9, random_state=0), rows)


# --- warnings -------------------------------------------------------------------


class Lost(MixtureManifold):
    """Rows whose residual is no number."""

    def decode(self, w, r, project):
        q, residual = super().decode(w, r, project)
        return q, np.where(np.arange(len(q)) == 2, np.nan, residual)


@pytest.mark.parametrize("order", [None, 1])
def test_a_residual_that_is_no_number_is_reported(order):
    augmenter = PNLAugmenter(order, local_manifold=Lost()).fit(table())
    with pytest.warns(ConvergenceWarning, match=r"1 of 30 projections .* nan > tol"):
        augmenter.sample(30)


@pytest.mark.parametrize("label", [1, "rare"])
def test_warnings_of_the_sampler_name_it_and_the_class(label):
    X = np.random.default_rng(0).gamma(0.3, size=(60, 4, 3, 2))
    y = np.where(LABELS == 1, label, "often" if label == "rare" else 0)
    sampler = PNLSampler(order=2, max_iter=1, offset=1e-4, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        sampler.fit_resample(X, y)
    assert {"PNLSampler, class " + repr(label)} == {
        str(warning.message).split(":")[0] for warning in caught
    }
    augmenter = PNLAugmenter(order=2, max_iter=1, offset=1e-4)
    with pytest.warns(ConvergenceWarning, match="^PNLAugmenter: "):
        augmenter.fit(X)


# --- side by side ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "shape"),
    [({}, (12,)), ({"draws": "kde"}, (12,)), ({"order": 2}, (4, 3))],
    ids=str,
)
def test_threads_that_sample_from_one_augmenter_get_the_serial_bytes(params, shape):
    X = np.random.default_rng(0).normal(size=(300, *shape))
    serial = PNLAugmenter(**params).fit(X)
    expected = [serial.sample(200, seed).tobytes() for seed in range(24)]
    # One that has not sampled before: what it keeps for later is made by many at once.
    shared = PNLAugmenter(**params).fit(X)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda s: shared.sample(200, s).tobytes(), range(24)))
    assert found == expected


@pytest.mark.parametrize(
    ("params", "shape", "noise"),
    [
        ({}, (12,), True),
        ({"order": 1}, (12,), True),
        ({"reshaper": "prime"}, (12,), True),
        ({"poset": CHAIN}, (12,), True),
        ({"base": [1, 5]}, (12,), True),
        ({}, (4, 3), True),
        ({"draws": "interpolation"}, (12,), False),
        ({"draws": "interpolation"}, (4, 3), False),
    ],
    ids=str,
)
def test_noise_is_for_rows_with_and_without_a_structure(params, shape, noise):
    X = table().reshape(60, *shape)
    assert (PNLAugmenter(**params).fit(X).draws_.noise > 0) == noise
    sampler = PNLSampler(**params, random_state=0)
    sampler.fit_resample(X, LABELS)
    assert (sampler.augmenters_[1].draws_.noise > 0) == noise
