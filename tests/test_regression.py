"""PNLRegressionSampler: new rows with numeric targets."""

import numpy as np
import pytest
import scipy.sparse as sp
from imblearn.pipeline import make_pipeline
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from sklearn_pnl import Codes, Lines, PNLAugmenter, PNLRegressionSampler
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.methods.draws import KernelDraws
from sklearn_pnl.regression import density

SEEDS = [0, 1, 2]


def problem(seed=0, n=60):
    """Make rows, and targets with a long tail."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.exp(X[:, 0] + 0.1 * rng.normal(size=n))


# --- targets --------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "augment",
    ["auto", "lines", Codes(draws="kde"), Codes(draws=GaussianMixture(2))],
    ids=str,
)
@pytest.mark.parametrize("n_targets", [None, 1, 2])
def test_targets_are_means_of_the_parents(n_targets, augment, seed):
    X, y = problem(seed)
    if n_targets:
        y = np.column_stack([y, X[:, 1]])[:, :n_targets]
    sampler = PNLRegressionSampler(method=augment, random_state=seed)
    X_new, y_new = sampler.fit_resample(X, y)
    assert X_new.shape == (120, 3)
    assert y_new.shape == (120, *y.shape[1:])
    assert_array_equal(X_new[:60], X)
    assert_array_equal(y_new[:60], y)
    parents, weights = sampler.parent_indices_, sampler.parent_weights_
    assert_allclose(weights.sum(axis=1), 1)
    expected = [w @ y[p] for p, w in zip(parents, weights, strict=True)]
    assert_allclose(y_new[60:], expected, rtol=1e-12)
    # The parents have different targets, because targets are not shuffled.
    assert np.ptp(y[parents], axis=1).max() > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_linear_targets_stay_linear(seed):
    # On straight lines without noise both are the same convex combination.
    X, _ = problem(seed)
    y = X @ [1.0, -2.0, 0.5] + 3
    X_new, y_new = PNLRegressionSampler(random_state=seed).fit_resample(X, y)
    assert_allclose(X_new @ [1.0, -2.0, 0.5] + 3, y_new, atol=1e-12)


def test_rows_agree_with_the_augmenter():
    X, y = problem()
    X_new, _ = PNLRegressionSampler(n_samples=40, random_state=3).fit_resample(X, y)
    augmenter = PNLAugmenter(Lines(noise=0), value_support=None).fit(X)
    assert_array_equal(X_new[60:], augmenter.sample(40, random_state=3))


@pytest.mark.parametrize(
    "n_samples, n_new", [(1, 1), (75, 75), (0.5, 30), (2.0, 120), (1e-6, 1)]
)
def test_n_samples_is_a_number_or_a_ratio(n_samples, n_new):
    X, y = problem()
    X_new, y_new = PNLRegressionSampler(n_samples=n_samples).fit_resample(X, y)
    assert len(X_new) == len(y_new) == 60 + n_new


@pytest.mark.parametrize("n_samples", [0, -1, 0.0, 200.0, "many", None])
def test_invalid_n_samples_is_rejected(n_samples):
    with pytest.raises(ValueError, match="'n_samples' parameter"):
        PNLRegressionSampler(n_samples=n_samples).fit_resample(*problem())


# --- where ----------------------------------------------------------------------


def test_density_agrees_with_the_kernel_sum():
    values = np.random.default_rng(0).normal(size=(80, 2)) * [1, 100]
    scaled = values / values.std(axis=0)
    bandwidth = 80 ** (-1 / 6)
    squares = ((scaled[:, None] - scaled) ** 2).sum(axis=2)
    expected = np.exp(-squares / 2 / bandwidth**2).sum(axis=1)
    assert_allclose(density(values), expected / expected.max(), rtol=5e-3)
    assert_array_equal(density(np.ones((5, 1))), 1)


TARGETS = {
    "normal": lambda rng: rng.normal(size=900),
    "far": lambda rng: np.append(rng.normal(size=900), 1e9),
    "heavy": lambda rng: rng.standard_cauchy(900),
    "ties": lambda rng: rng.poisson(2.0, size=900) * 1.0,
    "two": lambda rng: np.array([3.0, 8.0]),
}


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("seed", SEEDS)
def test_density_of_one_target_agrees_with_the_kernel_sum(seed, name, unit):
    y = TARGETS[name](np.random.default_rng(seed))
    scaled = y / y.std() * len(y) ** 0.2
    expected = np.exp(-((scaled[:, None] - scaled) ** 2) / 2).sum(axis=1)
    found = density(y[:, None] * unit)
    assert_allclose(found, expected / expected.max(), rtol=1e-3)
    # A second target that never varies changes nothing.
    again = density(np.column_stack([y * unit, np.full(len(y), 0.1)]))
    assert_allclose(again, found, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("augment", ["lines", Codes(draws=KernelDraws())], ids=str)
def test_rarity_prefers_rare_targets(augment, seed):
    X, y = problem(seed, n=200)
    new = {}
    for where in ("uniform", "rarity"):
        sampler = PNLRegressionSampler(
            n_samples=2000, row_weights=where, method=augment, random_state=seed
        )
        new[where] = sampler.fit_resample(X, y)[1][200:]
    tail = np.quantile(y, 0.9)
    assert (new["rarity"] > tail).mean() > 2 * (new["uniform"] > tail).mean()
    assert abs((new["uniform"] > tail).mean() - 0.1) < 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_base_rows_are_chosen_by_inverse_density(seed):
    X, y = problem(seed)
    sampler = PNLRegressionSampler(
        n_samples=30_000, row_weights="rarity", random_state=seed
    )
    sampler.fit_resample(X, y)
    counts = np.bincount(sampler.parent_indices_[:, 0], minlength=60)
    shares = 1 / density(y[:, None])
    expected = 30_000 * shares / shares.sum()
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_rarity_is_rejected_with_densities_and_constraints():
    X, y = problem()
    method = Codes(draws=GaussianMixture(2))
    of_all = PNLRegressionSampler(row_weights="rarity", method=method)
    with pytest.raises(ValueError, match="draws='mixup'"):
        of_all.fit_resample(X, y)
    requested = ColumnConstraint(0, lower=0, upper=1)
    with pytest.raises(ValueError, match="row_weights"):
        PNLRegressionSampler(row_weights="rarity", constraints=requested).fit_resample(
            X, y
        )


def test_constraints_are_satisfied():
    X, y = problem()
    sampler = PNLRegressionSampler(
        constraints=ColumnConstraint(0, lower=0.5, upper=1.0)
    )
    X_new, y_new = sampler.fit_resample(X, y)
    assert (X_new[60:, 0] >= 0.5 - 1e-8).all()
    assert (X_new[60:, 0] <= 1 + 1e-8).all()
    # The target depends on that feature.
    assert y_new[60:].mean() > y.mean()


# --- containers -----------------------------------------------------------------


def test_lists_and_integers_are_preserved():
    X, y = problem()
    sampler = PNLRegressionSampler(random_state=0)
    X_new, y_new = sampler.fit_resample(X.tolist(), y.tolist())
    assert type(X_new) is type(y_new) is list
    arrays = sampler.fit_resample(X, y)
    assert_array_equal(X_new, arrays[0])
    assert_array_equal(y_new, arrays[1])
    _, counts = sampler.fit_resample(X, np.rint(10 * y).astype(np.int32))
    assert counts.dtype == np.int32
    _, single = sampler.fit_resample(X, y.astype(np.float32))
    assert single.dtype == np.float32


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
def test_sparse_rows_stay_sparse(make):
    X, y = problem()
    X_new, y_new = PNLRegressionSampler(random_state=0).fit_resample(make(X), y)
    assert type(X_new) is make
    assert X_new.shape[0] == len(y_new) == 120


def test_tensors_are_supported():
    X = np.random.default_rng(0).uniform(size=(30, 4, 5))
    X_new, y_new = PNLRegressionSampler().fit_resample(X, X.sum(axis=(1, 2)))
    assert X_new.shape == (60, 4, 5)
    # Sums of mixed images are near the mixed sums.
    assert np.corrcoef(X_new[30:].sum(axis=(1, 2)), y_new[30:])[0, 1] > 0.7


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_frames_and_series_preserve_names_and_dtypes(container, two):
    library = pytest.importorskip(container)
    X, y = problem()
    frame = library.DataFrame(
        {"a": X[:, 0], "word": np.array(["u", "v"] * 30), "n": np.arange(60)}
    )
    if two:
        target = library.DataFrame({"price": y, "rooms": np.arange(60)})
    else:
        target = (
            library.Series(name="price", data=y)
            if container == "pandas"
            else (library.Series("price", y))
        )
    sampler = PNLRegressionSampler(random_state=0)
    X_new, y_new = sampler.fit_resample(frame, target)
    assert type(X_new) is type(frame)
    assert type(y_new) is type(target)
    first = (lambda f: f.iloc[:60]) if container == "pandas" else (lambda f: f[:60])
    assert first(X_new).equals(frame)
    assert first(y_new).equals(target)
    if two:
        assert list(y_new.columns) == ["price", "rooms"]
        types = [list(f.dtypes) for f in (y_new, target)]
        assert types[0] == types[1]
    else:
        assert y_new.name == "price"
    assert sampler.feature_names_in_.tolist() == ["a", "word", "n"]


# --- errors ---------------------------------------------------------------------


def test_invalid_targets_are_rejected():
    X, y = problem()
    sampler = PNLRegressionSampler()
    with pytest.raises(ValueError, match="60 .* y .*59"):
        sampler.fit_resample(X, y[:-1])
    y[4] = np.nan
    with pytest.raises(ValueError, match="y .* row 4"):
        sampler.fit_resample(X, y)
    with pytest.raises(ValueError, match="y is None"):
        sampler.fit_resample(X, None)
    with pytest.raises(ValueError, match=r"y .*\(60, 1, 1\)"):
        sampler.fit_resample(X, np.ones((60, 1, 1)))
    with pytest.raises(ValueError, match="Column 0 of y"):
        sampler.fit_resample(X, np.array(["a", "b"] * 30))


def test_a_failed_fit_preserves_the_previous_fit():
    X, y = problem()
    sampler = PNLRegressionSampler(random_state=0)
    sampler.fit_resample(X, y)
    parents = sampler.parent_indices_
    with pytest.raises(ValueError, match="infinity"):
        sampler.fit_resample(np.full((9, 3), np.inf), np.ones(9))
    assert sampler.parent_indices_ is parents


# --- pipelines ------------------------------------------------------------------


def test_grid_search_works_in_a_pipeline():
    X, y = load_diabetes(return_X_y=True)
    pipeline = make_pipeline(PNLRegressionSampler(random_state=0), Ridge(0.01))
    grid = {
        "pnlregressionsampler__n_samples": [0.5, 100],
        "pnlregressionsampler__row_weights": ["uniform", "rarity"],
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(
        X[:150], y[:150]
    )
    assert 0.2 < search.best_score_ < 0.7
    assert search.predict(X).shape == (442,)


def test_random_state_determines_every_byte_for_all_n_jobs():
    X, y = problem()
    first = PNLRegressionSampler(random_state=1, row_weights="rarity").fit_resample(
        X, y
    )
    again = PNLRegressionSampler(random_state=1, row_weights="rarity", n_jobs=2)
    for one, other in zip(first, again.fit_resample(X, y), strict=True):
        assert_array_equal(one, other)
    other = PNLRegressionSampler(random_state=2, row_weights="rarity").fit_resample(
        X, y
    )
    assert not np.array_equal(first[1], other[1])


def test_parameters_are_those_of_the_augmenter():
    ours, theirs = PNLRegressionSampler().get_params(), PNLAugmenter().get_params()
    more = {"n_samples", "row_weights", "constraints", "totals", "random_state"}
    assert set(ours) == set(theirs) | more
    assert all(ours[name] == theirs[name] for name in theirs)
    X, y = problem()
    sampler = PNLRegressionSampler(k_neighbors=2, method=Lines())
    sampler.set_params(method__noise=0.1).fit_resample(X, y)
    assert sampler.augmenter_.k_neighbors == 2
    assert sampler.method_.noise == 0.1
    assert clone(sampler).get_params(deep=False).keys() == ours.keys()


@pytest.mark.parametrize("method", ["auto", "codes"])
def test_rows_are_mixed_within_groups(method):
    X, y = problem()
    groups = np.random.default_rng(0).choice(["a", "b", "c"], 60)
    sampler = PNLRegressionSampler(method=method, random_state=0)
    X_more, _ = sampler.fit_resample(X, y, groups=groups)
    parents = sampler.parent_indices_
    assert (groups[parents[:, 0]] == groups[parents[:, 1]]).all()
    assert_array_equal(sampler.groups_[:60], groups)
    assert_array_equal(sampler.groups_[60:], groups[parents[:, 0]])
    assert len(sampler.groups_) == len(X_more)
    sampler.fit_resample(X, y)
    assert not hasattr(sampler, "groups_")
    with pytest.raises(ValueError, match=r"groups .*\(2,\)"):
        sampler.fit_resample(X, y, groups=[1, 2])


def test_groups_reach_the_sampler_in_a_pipeline():
    X, y = problem()
    groups = np.arange(60) % 3
    with config_context(enable_metadata_routing=True):
        sampler = PNLRegressionSampler(random_state=0)
        sampler.set_fit_resample_request(groups=True)
        pipeline = make_pipeline(sampler, Ridge()).fit(X, y, groups=groups)
    assert_array_equal(pipeline[0].groups_[:60], groups)


def test_totals_are_satisfied_and_reported():
    X, y = problem()
    sampler = PNLRegressionSampler(totals={0: 12.0}, random_state=0)
    new = sampler.fit_resample(X, y)[0][60:]
    assert_allclose(new[:, 0].sum(), 12, rtol=1e-9)
    assert_allclose(sampler.report_.achieved, [12], rtol=1e-9)


def test_equalities_and_orders_of_the_rows_hold():
    parts = np.random.default_rng(0).gamma(1.0, size=(80, 4))
    X = np.column_stack([parts, parts.sum(axis=1), parts.cumsum(axis=1)[:, 1]])
    sampler = PNLRegressionSampler(random_state=0, method="lines")
    new = sampler.fit_resample(X, parts[:, 0])[0][80:]
    assert_allclose(new[:, 4], new[:, :4].sum(axis=1), atol=1e-11)
    assert (new[:, 5] <= new[:, 4]).all()
    assert len(sampler.equalities_) == 2
    assert (5, 4) in sampler.inequalities_
