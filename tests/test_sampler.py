"""PNLSampler: the interface of imbalanced-learn, containers and parameters."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from _methods import in_method
from imblearn.ensemble import BalancedBaggingClassifier
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from sklearn_pnl import (
    Codes,
    Lines,
    ManyBodyProjector,
    PNLAugmenter,
    PNLSampler,
    PrimeFactorReshaper,
)
from sklearn_pnl.control import ColumnConstraint, Infeasibility
from sklearn_pnl.encoding.manifolds import MixtureManifold, ThetaManifold
from sklearn_pnl.geometry import TensorPoset
from sklearn_pnl.methods.draws import KernelDraws, MixupDraws

SEEDS = [0, 1, 2]
COUNTS = {0: 40, 1: 12, 2: 20}
FEW_ROWS = pytest.mark.filterwarnings("ignore:.* has only ")
ABOVE = pytest.mark.filterwarnings("ignore:After over-sampling:UserWarning")


def table(seed=0, n_columns=6, counts=COUNTS):
    """Make a shuffled table with negative values, and its classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(list(counts), list(counts.values())))
    units = [10.0 ** (c % 3) for c in range(n_columns)]
    return rng.normal(size=(len(y), n_columns)) * units + y[:, None], y


def resample(X, y, **params):
    sampler = PNLSampler(**{"random_state": 0, **in_method(params)})
    return (*sampler.fit_resample(X, y), sampler)


def counts(y):
    return pd.Series(y).value_counts().to_dict()


# --- how many rows ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("auto", {0: 40, 1: 40, 2: 40}),
        ("not minority", {0: 40, 1: 12, 2: 40}),
        ("minority", {0: 40, 1: 40, 2: 20}),
        ("all", {0: 40, 1: 40, 2: 40}),
        ({1: 30}, {0: 40, 1: 30, 2: 20}),
        ({1: 1.5 * 20, 2: 21}, {0: 40, 1: 30, 2: 21}),
        (lambda y: {1: 13}, {0: 40, 1: 13, 2: 20}),
        ({0: 40, 1: 12}, {0: 40, 1: 12, 2: 20}),
        pytest.param({0: 48, 1: 55}, {0: 48, 1: 55, 2: 20}, marks=ABOVE),
    ],
)
def test_every_strategy_gives_the_expected_counts(strategy, expected):
    X, y = table()
    X_new, y_new, sampler = resample(X, y, sampling_strategy=strategy)
    assert counts(y_new) == expected
    assert len(X_new) == len(y_new)
    grown = {c: expected[c] - n for c, n in COUNTS.items() if expected[c] > n}
    assert set(sampler.augmenters_) == set(grown)
    added = {c: n for c, n in sampler.sampling_strategy_.items() if n > 0}
    assert added == grown


@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.0])
def test_a_float_is_the_ratio_of_two_classes(ratio):
    X, y = table(counts={0: 40, 1: 12})
    assert counts(resample(X, y, sampling_strategy=ratio)[1])[1] == int(40 * ratio)


@pytest.mark.parametrize("strategy", ["auto", "all"])
def test_balanced_classes_are_unchanged(strategy):
    X, y = table(counts={0: 20, 1: 20})
    X_new, y_new, sampler = resample(X, y, sampling_strategy=strategy)
    assert_array_equal(X_new, X)
    assert_array_equal(y_new, y)
    assert sampler.parent_indices_.shape == (0, 2)


@pytest.mark.parametrize(
    ("params", "error", "remedy"),
    [
        ({"sampling_strategy": {7: 50}}, ValueError, r"sampling_strategy.*\{7\}"),
        ({"sampling_strategy": {1: 5}}, ValueError, "sampling_strategy.* 5 samples"),
        ({"sampling_strategy": 0.01}, ValueError, "sampling_strategy.*ratio"),
        ({"constraints": {5: None}}, ValueError, "constraints .*class 5"),
        ({"totals": {0: {0: 1.0}}}, ValueError, "totals .*class 0"),
        ({"draws": "smote"}, ValueError, "'draws' parameter"),
        ({"k_neighbors": 0}, ValueError, "'k_neighbors' parameter"),
        ({"extrapolation": -0.1}, ValueError, "'extrapolation' parameter"),
        ({"order": 9}, ValueError, "order=9 .* 1 to 2"),
    ],
    ids=str,
)
def test_invalid_parameters_are_rejected(params, error, remedy):
    X, y = table(counts={0: 40, 1: 12})
    with pytest.raises(error, match=remedy):
        resample(X, y, **params)


# --- originals, parents -----------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_originals_come_first_and_unchanged(seed):
    X, y = table(seed)
    before = X.copy()
    X_new, y_new, _ = resample(X, y)
    assert_array_equal(X_new[: len(X)], before)
    assert_array_equal(y_new[: len(y)], y)
    assert_array_equal(X, before)
    assert len(np.unique(X_new.round(9), axis=0)) == len(X_new)


@pytest.mark.parametrize(
    ("draws", "n_parents"), [("mixup", 2), ("kde", 3), (GaussianMixture(2), 3)]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_parents_are_distinct_rows_of_the_class(seed, draws, n_parents):
    X, y = table(seed)
    _, y_new, sampler = resample(X, y, k_neighbors=3, draws=draws)
    parents, new = sampler.parent_indices_, y_new[len(y) :]
    assert parents.shape == (len(new), n_parents)
    assert parents.dtype.kind == "i"
    assert (y[parents] == new[:, None]).all()
    assert all(len(set(row)) == n_parents for row in parents.tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_new_rows_lie_between_the_reported_parents(seed):
    X, y = table(seed)
    X_new, _, sampler = resample(X, y, method=Lines(noise=0))
    start, end = X[sampler.parent_indices_].transpose(1, 0, 2)
    t = ((X_new[len(X) :] - start) / (end - start)).mean(axis=1, keepdims=True)
    assert_allclose(X_new[len(X) :], start + t * (end - start), atol=1e-9)
    assert t.min() >= 0
    assert t.max() <= 1
    assert np.ptp(t) > 0.8


@FEW_ROWS
def test_parent_indices_are_padded_for_small_classes():
    X, y = table(counts={0: 30, 1: 3, 2: 12})
    for draws, missing in (("mixup", 0), ("kde", 2)):
        _, y_new, sampler = resample(X, y, draws=draws)
        n_padded = (sampler.parent_indices_ == -1).sum(axis=1)
        assert_array_equal(n_padded, np.where(y_new[len(y) :] == 1, missing, 0))


def test_sampler_has_no_transform_and_no_sample_indices():
    sampler = resample(*table())[2]
    assert not hasattr(sampler, "transform")
    # imbalanced-learn uses this name for samplers that select rows.
    assert not hasattr(sampler, "sample_indices_")


# --- small classes ----------------------------------------------------------------


@pytest.mark.parametrize("label", [1, "a rare one"])
@pytest.mark.parametrize("n_rows", [1, 3])
def test_k_is_clipped_with_one_warning_that_names_the_class(n_rows, label):
    X, y = table(counts={0: 30, 1: n_rows})
    names = np.where(y == 1, label, "often" if isinstance(label, str) else 0)
    with pytest.warns(
        UserWarning, match=f"class {label!r} has only {n_rows}"
    ) as caught:
        _, y_new, sampler = resample(X, names, k_neighbors=5)
    assert len(caught) == 1
    assert counts(y_new)[label] == 30
    assert_array_equal(np.unique(sampler.parent_indices_), np.flatnonzero(y == 1))


@pytest.mark.parametrize("params", [{}, {"order": 1}], ids=str)
def test_a_class_of_one_row_gives_copies_with_a_warning(params):
    X, y = table(counts={0: 30, 1: 1})
    with pytest.warns(UserWarning, match="class 1 .* 1 row,"):
        X_new, _, sampler = resample(X, y, **params)
    assert X_new.shape == (60, 6)
    assert_allclose(X_new[31:], np.repeat(X[y == 1], 29, axis=0), rtol=1e-9)
    assert (sampler.parent_indices_ == np.flatnonzero(y == 1)).all()


def test_auto_k_neighbors_is_limited_without_a_warning():
    X, y = table(counts={0: 30, 1: 4})
    assert resample(X, y)[2].augmenters_[1].n_neighbors_ == 3
    assert resample(X, y, draws="kde")[2].augmenters_[1].n_neighbors_ == 4
    X, y = table(counts={0: 40, 1: 20})
    assert resample(X, y)[2].augmenters_[1].n_neighbors_ == 7
    X, y = table(counts={0: 40, 1: 33})
    assert resample(X, y)[2].augmenters_[1].n_neighbors_ == 10


@pytest.mark.parametrize("sizes", [(10, 10), (8, 12)])
def test_new_rows_of_a_small_class_do_not_connect_its_clusters(sizes):
    away = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        centers = np.repeat([[0.0, 0.0], [24.0, 0.0]], sizes, axis=0)
        rare = centers + rng.normal(size=(20, 2))
        X = np.vstack([rare, 5 * rng.normal(size=(500, 2))])
        y = np.repeat([1, 0], [20, 500])
        new = resample(X, y, random_state=seed)[0][len(X) :, None]
        away.append(np.linalg.norm(new - centers[[0, -1]], axis=2).min(axis=1) > 5)
    assert np.mean(away) <= 0.01


# --- limits, constants, units -----------------------------------------------------


def test_bounds_and_equalities_are_computed_over_all_classes():
    X, y = table()
    total = np.column_stack([X, X.sum(axis=1)])
    sampler = resample(total, y)[2]
    assert len(sampler.equalities_) == 1
    assert "x6 = " in str(sampler.equalities_)
    for augmenter in sampler.augmenters_.values():
        assert str(augmenter.equalities_) == str(sampler.equalities_)
        new = augmenter.sample(300, random_state=0)
        assert (new >= total.min(axis=0)).all()
        assert (new <= total.max(axis=0)).all()
    assert sampler.value_support_.atoms == {}
    assert sampler.inequalities_ == []


@pytest.mark.parametrize("params", [{}, {"order": 1}, {"draws": "kde"}], ids=str)
def test_constant_features_stay_constant(params):
    X, y = table()
    X[:, 2], X[:, 4] = 7.0, y
    new, labels, _ = resample(X, y, **params)
    assert_allclose(new[:, 2], 7.0, rtol=1e-12)
    if not params:
        assert_array_equal(new[:, 4], labels)


@pytest.mark.parametrize("seed", SEEDS)
def test_results_do_not_depend_on_units(seed):
    X, y = table(seed)
    units, shift = 10.0 ** np.arange(-6, 6, 2), np.arange(6) * 3.0
    rows = resample(X, y)[0]
    other = resample(X * units + shift * units, y)[0]
    assert_allclose(other / units - shift, rows, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_single_precision_is_close_to_double(seed):
    X, y = table(seed)
    single = resample(X.astype(np.float32), y)[0]
    assert single.dtype == np.float32
    gap = np.abs(single - resample(X, y)[0]) / np.ptp(X, axis=0)
    assert gap.max() < 1e-5


# --- seeds ------------------------------------------------------------------------


@pytest.mark.parametrize("draws", ["mixup", "kde"])
def test_the_same_seed_gives_the_same_bytes_for_all_jobs_and_memory(draws):
    X, y = table()
    params = {"draws": draws, "sampling_strategy": {1: 4000, 2: 40}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = resample(X, y, **params)[0]
        assert resample(X, y, **params, n_jobs=2)[0].tobytes() == first.tobytes()
        with config_context(working_memory=1):
            assert resample(X, y, **params)[0].tobytes() == first.tobytes()
        assert resample(X, y, **params, random_state=1)[0].tobytes() != first.tobytes()


def test_random_states_do_not_change_the_global_state():
    X, y = table()
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    for seed in (np.random.RandomState, np.random.default_rng):
        one, other = (resample(X, y, random_state=seed(3))[0] for _ in range(2))
        assert one.tobytes() == other.tobytes()
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert after["pos"] == state["pos"]
    assert_array_equal(after["key"], state["key"])


def test_repeated_calls_are_equal_and_classes_have_different_rows():
    X, y = table(counts={0: 40, 1: 20, 2: 20})
    X[y == 2] = X[y == 1]
    sampler = PNLSampler(random_state=0)
    rows, labels = sampler.fit_resample(X, y)
    assert sampler.fit_resample(X, y)[0].tobytes() == rows.tobytes()
    one, other = (rows[80:][labels[80:] == c] for c in (1, 2))
    assert not np.isin(one, other).any()


def test_new_rows_agree_with_an_augmenter_of_the_class():
    X, y = table(counts={0: 40, 1: 20})
    X[y == 0] = X[y == 0] * 0.5 + X[y == 1].mean(axis=0)
    names = set(PNLAugmenter().get_params())
    params = {"k_neighbors": 4, "method": Lines(0.2), "extrapolation": None}
    X_new, _, sampler = resample(X, y, **params)
    augmenter = PNLAugmenter(value_support=None, **params).fit(X[y == 1])
    assert_array_equal(augmenter.sample(20, random_state=0), X_new[60:])
    assert names <= set(sampler.get_params())
    more = sampler.augmenters_[1].sample(10, random_state=5)
    assert more.shape == (10, 6)
    assert_array_equal(augmenter.sample(10, random_state=5), more)


# --- arrays, frames, sparse rows --------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 2)], ids=str)
@pytest.mark.parametrize("params", [{}, {"order": 1, "embedding": None}], ids=str)
def test_arrays_of_any_dimension_keep_their_shape(params, shape):
    X = np.random.default_rng(0).uniform(size=(40, *shape))
    X_new, _, sampler = resample(X, np.repeat([0, 1], [30, 10]), **params)
    assert X_new.shape == (60, *shape)
    assert_array_equal(X_new[:40], X)
    assert X_new.min() >= 0
    assert sampler.input_shape_ == shape


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i2", "u1", "u4", "bool"])
@pytest.mark.parametrize("params", [{}, {"order": 1}], ids=str)
def test_dtypes_are_preserved_and_integers_rounded(params, dtype):
    X, y = table()
    X = (X > 0 if dtype == "bool" else np.clip(X, 0, 100)).astype(dtype)
    X_new, _, _ = resample(X, y, **params)
    assert X_new.dtype == dtype
    assert_array_equal(X_new[: len(X)], X)
    assert X_new.min() >= X.min()
    assert X_new.max() <= X.max()


@pytest.mark.parametrize(
    "container",
    [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_matrix, sp.lil_array],
)
def test_sparse_rows_stay_sparse(container):
    X = np.random.default_rng(0).poisson(0.4, (60, 12)).astype(float)
    y = np.repeat([0, 1], [40, 20])
    X_new, _, _ = resample(container(X), y)
    assert sp.issparse(X_new)
    assert isinstance(X_new, sp.sparray) == issubclass(container, sp.sparray)
    assert_array_equal(X_new.toarray(), resample(X, y)[0])


def test_frames_preserve_columns_dtypes_index_and_original_rows():
    X, y = table()
    frame = pd.DataFrame(X, columns=[*"abcdef"]).assign(
        count=np.arange(len(X)), flag=X[:, 0] > 0
    )
    target = pd.Series(y, name="kind")
    with config_context(transform_output="pandas"):
        X_new, y_new, sampler = resample(frame, target)
    assert X_new.dtypes.equals(frame.dtypes)
    assert X_new.iloc[: len(X)].equals(frame)
    assert y_new.name == "kind"
    assert sampler.feature_names_in_.tolist() == list(frame.columns)
    assert sampler.augmenters_[1].integer_features_.tolist() == [6, 7]


# --- labels -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "perhaps", "certainly"],
        [0.0, 1.0, 2.0],
        [False, True, True],
        pd.array([2**60, 2**60 + 1, 2**60 + 2], dtype="Int64"),
        pd.Categorical(["x", "y", "z"]),
    ],
    ids=repr,
)
def test_labels_of_any_type_are_preserved(labels):
    X, y = table()
    given = pd.Series(labels)[y].reset_index(drop=True)
    X_new, y_new, _ = resample(X, given)
    assert y_new.dtype == given.dtype
    assert y_new.iloc[: len(y)].equals(given)
    assert set(y_new.value_counts()) <= {40, 20}
    plain = resample(X, given.to_numpy())
    assert_array_equal(plain[0], X_new)


@pytest.mark.parametrize("dtype", [int, float, bool])
def test_one_hot_targets_stay_one_hot(dtype):
    X, y = table()
    indicators = np.eye(3, dtype=dtype)[y]
    X_new, y_new, _ = resample(X, indicators)
    assert y_new.dtype == dtype
    assert_array_equal(y_new[: len(y)], indicators)
    assert_array_equal(y_new.sum(axis=0), [40, 40, 40])
    assert_array_equal(X_new, resample(X, y)[0])


@pytest.mark.parametrize(
    ("y", "remedy"),
    [
        (np.zeros(60), "'y' .* 1 class"),
        (np.repeat([0.0, np.nan], [50, 10]), "y .* row 50"),
        ([None] * 3 + ["a"] * 57, "y .* row 0"),
        (np.linspace(0, 1, 60), "PNLRegressionSampler"),
        (np.random.default_rng(0).random((60, 2)), "PNLRegressionSampler"),
        (np.array([0, "a"] * 30, dtype=object), "y.astype"),
        (
            np.eye(2, dtype=int)[[0] * 58 + [1]].tolist() + [[0, 0]],
            r"y .*\(60, 2\)",
        ),
        (np.zeros(59, int), "60 .* y .*59"),
    ],
)
def test_targets_that_are_not_classes_are_rejected(y, remedy):
    y = np.array(y, dtype=object) if isinstance(y, list) and y[0] is None else y
    with pytest.raises(ValueError, match=remedy):
        PNLSampler().fit_resample(np.ones((60, 2)), y)


# --- groups, weights, routing -----------------------------------------------------


def test_rows_are_mixed_only_within_groups():
    X, y = table(counts={0: 60, 1: 30})
    groups = np.random.default_rng(0).choice(["a", "b", "c"], 90)
    sampler = PNLSampler(random_state=0)
    X_new, _ = sampler.fit_resample(X, y, groups=groups)
    parents = sampler.parent_indices_
    assert (groups[parents[:, 0]] == groups[parents[:, 1]]).all()
    assert_array_equal(sampler.groups_[:90], groups)
    assert_array_equal(sampler.groups_[90:], groups[parents[:, 0]])
    assert len(sampler.groups_) == len(X_new)


@pytest.mark.parametrize("method", ["paper", Codes(draws="kde")], ids=str)
def test_densities_reject_groups(method):
    X, y = table(counts={0: 60, 1: 30})
    with pytest.raises(ValueError, match="class 1: groups .*density.*mixup"):
        PNLSampler(method=method).fit_resample(X, y, groups=np.arange(90) % 2)


def test_base_rows_are_chosen_in_proportion_to_sample_weight():
    X, y = table(counts={0: 40, 1: 10})
    weights = np.where(np.arange(50) % 3 == 0, 0.0, np.arange(50) + 1.0)
    sampler = PNLSampler(sampling_strategy={1: 20_010}, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler.fit_resample(X, y, sample_weight=weights)
    seeds = np.bincount(sampler.parent_indices_[:, 0], minlength=50)
    expected = 20_000 * np.where(y == 1, weights, 0) / weights[y == 1].sum()
    assert (np.abs(seeds - expected) <= 6 * np.sqrt(expected)).all()
    assert_array_equal(sampler.sample_weight_[:50], weights)
    assert_array_equal(
        sampler.sample_weight_[50:], weights[sampler.parent_indices_[:, 0]]
    )


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"groups": [1, 2]}, "groups"),
        ({"sample_weight": -np.ones(52)}, "sample_weight"),
        ({"sample_weight": np.zeros(52)}, "sample_weight"),
        ({"sample_weight": np.ones(3)}, "sample_weight"),
    ],
)
def test_invalid_groups_and_sample_weight_are_rejected(given, remedy):
    X, y = table(counts={0: 40, 1: 12})
    with pytest.raises(ValueError, match=remedy):
        PNLSampler().fit_resample(X, y, **given)


def test_metadata_reach_the_sampler_in_a_pipeline():
    X, y = table(counts={0: 40, 1: 20})
    groups, weights = np.arange(60) % 3, np.arange(60) % 2 + 1.0
    with config_context(enable_metadata_routing=True):
        sampler = PNLSampler(random_state=0).set_fit_resample_request(
            groups=True, sample_weight=True
        )
        learner = KNeighborsClassifier().set_score_request(sample_weight=False)
        pipeline = make_pipeline(sampler, learner)
        pipeline.fit(X, y, groups=groups, sample_weight=weights)
        fitted = pipeline.steps[0][1]
        assert_array_equal(fitted.groups_[:60], groups)
        assert_array_equal(fitted.sample_weight_[:60], weights)


# --- parameters -------------------------------------------------------------------


def test_parameters_extend_those_of_the_augmenter():
    ours, theirs = PNLSampler().get_params(), PNLAugmenter().get_params()
    more = {"sampling_strategy", "constraints", "totals", "random_state"}
    assert set(ours) == set(theirs) | more
    assert all(ours[name] == theirs[name] for name in theirs)
    sampler = PNLSampler(k_neighbors=3, method=Codes(ManyBodyProjector(2)))
    again = clone(sampler)
    assert again.get_params(deep=False).keys() == sampler.get_params(deep=False).keys()
    assert again.method is not sampler.method
    with pytest.raises(TypeError):
        PNLSampler(0.5)


@pytest.mark.parametrize(
    ("params", "name", "value"),
    [
        ({"method": Lines()}, "noise", 0.0),
        ({"draws": MixupDraws()}, "draws__noise", 0.0),
        ({"draws": KernelDraws()}, "draws__bandwidth", 1.0),
        ({"order": ManyBodyProjector(1, offset=1.0)}, "order__order", 2),
        (
            {"order": 1, "local_manifold": MixtureManifold()},
            "local_manifold__step",
            0.5,
        ),
        (
            {"order": 1, "reshaper": PrimeFactorReshaper()},
            "reshaper__factor_order",
            "ascending",
        ),
    ],
    ids=str,
)
def test_nested_parameters_have_an_effect(params, name, value):
    X, y = table(n_columns=12)
    sampler = PNLSampler(**in_method(params), random_state=0)
    before = sampler.fit_resample(X, y)[0]
    after = sampler.set_params(**{f"method__{name}": value}).fit_resample(X, y)[0]
    assert np.abs(before - after).max() > 1e-6


@pytest.mark.parametrize(
    ("sampler", "grid"),
    [
        (
            PNLSampler(method=Codes(1)),
            {"method__order": [None, 1, 2], "k_neighbors": [2, 5]},
        ),
        (PNLSampler(method=Codes.paper()), {"method__order": [1, 2]}),
        (PNLSampler(method=Lines()), {"method__noise": [0.0, 0.6]}),
        (
            PNLSampler(),
            {"extrapolation": [0.0, None], "method": ["lines", Codes(1), Codes(2)]},
        ),
    ],
    ids=["order", "paper", "noise", "methods"],
)
def test_parameters_can_be_searched_in_a_pipeline(sampler, grid):
    X, y = make_classification(
        120, 12, n_informative=6, weights=[0.8], class_sep=2, random_state=0
    )
    pipeline = make_pipeline(
        StandardScaler(), clone(sampler).set_params(random_state=0),
        KNeighborsClassifier(),
    )  # fmt: skip
    grid = {f"pnlsampler__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.8
    assert len(search.cv_results_["params"]) == np.prod([len(v) for v in grid.values()])


def test_method_attribute_is_the_fitted_method():
    X, y = table(n_columns=12)
    sampler = resample(np.abs(X), y, method="paper")[2]
    assert repr(sampler.method_) == repr(Codes.paper())
    assert sampler.augmenters_[1].method_.order_ == 1
    assert type(resample(X, y)[2].method_) is Lines


def test_sample_weight_is_rejected_with_density_draws():
    X, y = table()
    sampler = PNLSampler(method=Codes(draws=GaussianMixture(2)), random_state=0)
    with pytest.raises(ValueError, match="class 1: .*draws='mixup'"):
        sampler.fit_resample(X, y, sample_weight=np.ones(len(y)))


def test_positive_only_tag_depends_on_the_embedding():
    for method, positive_only in (("auto", False), (Codes(embedding=None), True)):
        tags = PNLSampler(method=method).__sklearn_tags__()
        assert tags.input_tags.positive_only is positive_only
        assert tags.input_tags.allow_nan is not positive_only


class Refusing(TransformerMixin, BaseEstimator):
    """An embedding that fails for rows that begin with 13."""

    def __init__(self, error=ValueError):
        self.error = error

    def fit(self, X, y=None):
        if (np.asarray(X)[:, 0] == 13).any():
            raise self.error("no embedding")
        return self

    def transform(self, X):
        return np.asarray(X) + 2.0**12

    def inverse_transform(self, X):
        return np.asarray(X) - 2.0**12


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_in_the_second_class_preserves_the_previous_fit(error):
    X, y = table()
    sampler = PNLSampler(method=Codes(embedding=Refusing(error)), random_state=0)
    broken = X.copy()
    broken[np.flatnonzero(y == 2)[0], 0] = 13
    with pytest.raises(error):
        sampler.fit_resample(broken, y)
    assert not [name for name in vars(sampler) if name.endswith("_")]
    sampler.fit_resample(X, y)
    rows = sampler.augmenters_[2].sample(5, random_state=0)
    with pytest.raises(error):
        sampler.fit_resample(broken, y)
    assert_array_equal(sampler.augmenters_[2].sample(5, random_state=0), rows)
    # `fit` only checks the input, and removes the augmenters of earlier calls.
    sampler.fit(X, y)
    assert not hasattr(sampler, "augmenters_")


def test_samplers_can_be_pickled():
    X, y = table()
    sampler = resample(X, y)[2]
    again = pickle.loads(pickle.dumps(sampler))
    rows = sampler.augmenters_[1].sample(5, random_state=0)
    assert_array_equal(again.augmenters_[1].sample(5, random_state=0), rows)
    assert str(again.equalities_) == str(sampler.equalities_)


# --- constraints and totals -------------------------------------------------------


def test_constraints_as_strings_are_rejected_with_a_remedy():
    X, y = table()
    for requested in ("age > 30", ["x0 > 1"], {1: "x0 > 1"}):
        with pytest.raises(ValueError, match="ColumnConstraint.*got '"):
            resample(X, y, constraints=requested)


def test_constraints_apply_to_all_classes_or_by_class():
    X, y = table()
    requested = ColumnConstraint({0: 1, 3: 1}, upper=1.0)
    X_new, y_new, _ = resample(X, y, constraints=requested)
    new, labels = X_new[len(X) :], y_new[len(y) :]
    assert (new[:, 0] + new[:, 3] <= 1 + 1e-9).all()
    X_new, _, sampler = resample(X, y, constraints={2: requested})
    new = X_new[len(X) :]
    assert (new[labels == 2][:, [0, 3]].sum(axis=1) <= 1 + 1e-9).all()
    assert (new[labels == 1][:, [0, 3]].sum(axis=1) > 1).any()
    assert sampler.reports_ == {}


def test_totals_apply_to_the_new_rows_of_a_class():
    X, y = table()
    frame = pd.DataFrame(X, columns=[*"abcdef"])
    total = frame["a"][y == 1].mean() * 28 + 1
    X_new, y_new, sampler = resample(frame, y, totals={1: {"a": total}})
    new = X_new[len(X) :][y_new[len(y) :] == 1]
    assert_allclose(new["a"].sum(), total, rtol=1e-9)
    assert set(sampler.reports_) == {1}
    assert_allclose(sampler.reports_[1].achieved[0], total, rtol=1e-9)


def test_infeasible_constraints_are_rejected():
    X, y = table(counts={0: 30, 1: 10})
    for requested in (
        ColumnConstraint(0, equal=1e6),
        ColumnConstraint({0: 1, 1: 1}, lower=1e6),
    ):
        with pytest.raises(Infeasibility, match="x0.* 1000000"):
            resample(X, y, constraints=requested)


# --- categories -------------------------------------------------------------------

CATEGORIES = ["city", "country", "grade"]


def mixed(seed=0, n=60):
    """Make numbers, two dependent categories, and a category with many levels."""
    rng = np.random.default_rng(seed)
    country = rng.integers(3, size=n)
    cities = np.array(["Oslo", "Bergen", "Lima", "Cusco", "Pune", "Agra"])
    return pd.DataFrame(
        {
            "income": rng.normal(size=n) + 3 * country,
            "city": cities[2 * country + rng.integers(2, size=n)],
            "children": rng.integers(5, size=n),
            "country": pd.Categorical(
                np.array(["Norway", "Peru", "India"])[country],
                categories=["Peru", "India", "Norway", "Chile"],
                ordered=True,
            ),
            "grade": pd.Categorical(rng.choice([7, 5, 9], n), categories=[9, 7, 5]),
        }
    )


def combinations(frame):
    frame = frame[CATEGORIES].astype({"grade": float})
    return set(frame.astype(str).itertuples(index=False))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("draws", ["mixup", "kde", GaussianMixture(2)])
def test_combinations_of_categories_occur_in_the_same_class(draws, seed):
    X, y = mixed(seed), np.repeat([0, 1], [45, 15])
    X.loc[::7, "city"] = None
    X.loc[1::9, "grade"] = np.nan
    X_new, _, sampler = resample(X, y, draws=draws)
    assert X_new.dtypes.equals(X.dtypes)
    assert combinations(X_new[60:]) <= combinations(X[45:])
    assert sampler.augmenters_[1].integer_features_.tolist() == [2]


@pytest.mark.parametrize(
    "given",
    [CATEGORIES, [1, 3, 4], [4, 1, -2], [False, True, False, True, True]],
    ids=str,
)
def test_categorical_features_by_name_index_and_mask_agree(given):
    X, y = mixed(), np.repeat([0, 1], [45, 15])
    auto = resample(X, y)[0]
    assert resample(X, y, categorical_features=given)[0].equals(auto)
    assert resample(X, y, categorical_features=np.array(given))[0].equals(auto)


def test_numeric_columns_can_be_categorical_features():
    X = np.column_stack([np.random.default_rng(0).normal(size=60), [1, 5, 9] * 20])
    y = np.repeat([0, 1], [45, 15])
    new = resample(X, y, categorical_features=[1])[0]
    assert set(new[60:, 1]) == {1, 5, 9}
    sparse = resample(sp.csr_array(X), y, categorical_features=[1])[0]
    assert_array_equal(sparse.toarray(), new)
    objects = X.astype(object)
    objects[:, 1] = np.where(X[:, 1] == 1, "one", "more")
    new = resample(objects, y, categorical_features=[1])[0]
    assert new.dtype == object
    assert set(new[:, 1]) == {"one", "more"}


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (["town"], "'town'"),
        ([5], "categorical_features .* 5"),
        ([True, False], "categorical_features .* 2 .* 5"),
        (["city", "country"], "'grade'"),
        (None, "'city'"),
    ],
    ids=str,
)
def test_invalid_categorical_features_are_named(given, remedy):
    with pytest.raises(ValueError, match=remedy):
        resample(mixed(), np.repeat([0, 1], [45, 15]), categorical_features=given)


def test_a_table_of_only_categories_is_rejected():
    X = np.random.default_rng(0).choice(["a", "b", "c"], (40, 3)).astype(object)
    y = np.repeat([0, 1], [30, 10])
    with pytest.raises(ValueError, match="All columns"):
        resample(X, y, categorical_features=[0, 1, 2])


def test_bagging_of_a_frame_accepts_categorical_indices():
    X, y = table(n_columns=2)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(word=np.where(y, "u", "v"))
    encode = make_column_transformer((OneHotEncoder(), [2]))
    model = BalancedBaggingClassifier(
        make_pipeline(encode, KNeighborsClassifier()),
        sampler=PNLSampler(categorical_features=[2]),
        n_estimators=2,
        random_state=0,
    )
    found = model.fit(frame, y == 0).predict(frame)
    assert_array_equal(found, y == 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_parents_mostly_share_categories(seed):
    X, y = mixed(seed, 200), np.repeat([0, 1], [120, 80])
    parents = resample(X, y)[2].parent_indices_
    kind = X["country"].to_numpy()
    assert (kind[parents[:, 0]] == kind[parents[:, 1]]).mean() > 0.8


@pytest.mark.parametrize("seed", SEEDS)
def test_one_hot_columns_of_a_column_transformer_stay_one_hot(seed):
    # This includes a group that determines another group, as cities determine
    # countries.
    X, y = mixed(seed, n=200), np.repeat([0, 1], [150, 50])
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), CATEGORIES),
        (StandardScaler(), ["income", "children"]),
    )
    encoded = encoder.fit_transform(X)

    def valid(sampler):
        new = sampler.fit_resample(encoded, y)[0][200:]
        runs = np.split(new[:, :12], [6, 9], axis=1)
        one = [np.isin(run, [0, 1]).all(1) & (run.sum(1) == 1) for run in runs]
        return np.mean(np.all(one, axis=0))

    assert valid(PNLSampler(random_state=seed)) == 1
    assert valid(SMOTE(random_state=seed)) < 1


# --- foreign parts, and whether it is any good ------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"embedding": MinMaxScaler((1, 2))},
        {"embedding": MinMaxScaler().set_output(transform="pandas"), "order": 1},
        {"reshaper": PrimeFactorReshaper(factor_order="ascending"), "order": 1},
        {"local_manifold": ThetaManifold(order=1), "order": 2},
        {"order": [(0,)]},
        {"order": ManyBodyProjector([(0,), (1, 2)], poset=TensorPoset((3, 2, 2)))},
    ],
    ids=str,
)
def test_custom_embeddings_reshapers_and_orders_give_valid_rows(params):
    X, y = table(n_columns=12)
    new, _, _ = resample(X, y, **params)
    assert np.isfinite(new).all()
    assert (new >= X.min(axis=0)).all()
    assert (new <= X.max(axis=0)).all()
    again = resample(X, y, **params)[0]
    assert again.tobytes() == new.tobytes()


def test_negative_values_without_an_embedding_are_rejected():
    X, y = table()
    with pytest.raises(ValueError, match="embedding='minmax'"):
        resample(X, y, embedding=None, order=1)


@pytest.mark.parametrize("params", [{}, {"order": 2}], ids=str)
def test_new_digits_are_recognised_as_their_class(params):
    X, y = load_digits(return_X_y=True)
    learner = KNeighborsClassifier(3).fit(X[600:], y[600:])
    X, y = X[:600].reshape(-1, 8, 8), y[:600]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "After over-sampling")
        strategy = dict.fromkeys(range(10), 100)
        new, labels, _ = resample(X, y, sampling_strategy=strategy, **params)
    assert learner.score(new[600:].reshape(-1, 64), labels[600:]) > 0.95


def test_new_rows_improve_balanced_accuracy():
    X, y = make_classification(
        3000, 10, n_informative=5, weights=[0.97], flip_y=0, random_state=0
    )
    learner = LogisticRegression(max_iter=500)
    scores = [
        cross_validate(model, X, y, scoring="balanced_accuracy", cv=3)["test_score"]
        for model in (learner, make_pipeline(PNLSampler(random_state=0), learner))
    ]
    assert scores[1].mean() > scores[0].mean() + 0.05


def test_a_class_without_sample_weight_is_rejected():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.repeat([0, 1], [45, 15])
    with np.errstate(invalid="ignore"), pytest.raises(ValueError):
        PNLSampler().fit_resample(X, y, sample_weight=1.0 - y)


@pytest.mark.parametrize("method", ["lines", "codes"])
def test_groups_with_one_row_raise_a_warning(method):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.repeat([0, 1], [45, 15])
    sampler = PNLSampler(method=method, random_state=0)
    with pytest.warns(UserWarning, match="class 1"):
        rows, _ = sampler.fit_resample(X, y, groups=np.arange(60))
    nearest = np.abs(rows[60:, None] - X[45:]).max(axis=2).min(axis=1)
    assert nearest.max() < 1e-9


@pytest.mark.parametrize("totals", [None, {1: {0: 3.0}}])
def test_a_class_without_sample_weight_is_named(totals):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.repeat([0, 1], [30, 10])
    sampler = PNLSampler(random_state=0, totals=totals)
    with pytest.raises(ValueError, match="sample_weight .*class 1"):
        sampler.fit_resample(X, y, sample_weight=1.0 - y)
