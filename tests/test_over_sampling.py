"""The over-sampler in imbalanced-learn's terms: what goes in, what comes out."""

import warnings
from types import MappingProxyType

import numpy as np
import pytest
import scipy.sparse as sp
from imblearn.pipeline import make_pipeline
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

from sklearn_pnl import (
    DensityDraws,
    FiberManifold,
    KernelDraws,
    MixtureManifold,
    MixupDraws,
    PNLAugmenter,
    PNLSampler,
    PrimeFactorReshaper,
)
from sklearn_pnl.geometry import Poset, TensorPoset

SEEDS = [0, 1, 2]
MANIFOLDS = ["fiber", "theta", "eta", "mixture"]
COUNTS = {0: 40, 1: 12, 2: 20}


def table(seed=0, n_columns=6, counts=COUNTS):
    """A shuffled table with negatives, and its classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(list(counts), list(counts.values())))
    X = rng.normal(size=(len(y), n_columns)) * [
        10.0 ** (c % 3) for c in range(n_columns)
    ]
    return X + y[:, None], y


def resample(X, y, **params):
    sampler = PNLSampler(**{"random_state": 0, **params})
    return (*sampler.fit_resample(X, y), sampler)


def counts(y):
    return dict(
        zip(*(a.tolist() for a in np.unique(y, return_counts=True)), strict=True)
    )


def global_state():
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    return state["key"].tobytes(), state["pos"]


# --- how many rows --------------------------------------------------------------

ABOVE_THE_MAJORITY = pytest.mark.filterwarnings(
    "ignore:After over-sampling, the number of samples:UserWarning"
)


def twenty_percent_more(y):
    return {label: round(1.2 * n) for label, n in counts(y).items()}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("auto", {0: 40, 1: 40, 2: 40}),
        ("not majority", {0: 40, 1: 40, 2: 40}),
        ("not minority", {0: 40, 1: 12, 2: 40}),
        ("minority", {0: 40, 1: 40, 2: 20}),
        ("all", {0: 40, 1: 40, 2: 40}),
        ({1: 30}, {0: 40, 1: 30, 2: 20}),
        ({1: 30, 2: 21}, {0: 40, 1: 30, 2: 21}),
        (lambda y: {1: 13}, {0: 40, 1: 13, 2: 20}),
        ({1: 1.5 * 20}, {0: 40, 1: 30, 2: 20}),
        ({0: 40, 1: 12}, {0: 40, 1: 12, 2: 20}),
        pytest.param({1: 55}, {0: 40, 1: 55, 2: 20}, marks=ABOVE_THE_MAJORITY),
        pytest.param(
            twenty_percent_more, {0: 48, 1: 14, 2: 24}, marks=ABOVE_THE_MAJORITY
        ),
        pytest.param(
            {0: 48, 1: 14, 2: 24}, {0: 48, 1: 14, 2: 24}, marks=ABOVE_THE_MAJORITY
        ),
    ],
)
def test_every_strategy_gives_its_numbers_of_rows(strategy, expected):
    X, y = table()
    X_new, y_new, sampler = resample(X, y, sampling_strategy=strategy)
    assert counts(y_new) == expected
    assert len(X_new) == len(y_new) == sum(expected.values())
    grown = {c for c in expected if expected[c] > COUNTS[c]}
    assert set(sampler.augmenters_) == grown


@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.0])
def test_a_float_is_the_ratio_of_two_classes(ratio):
    X, y = table(counts={0: 40, 1: 12})
    _, y_new, _ = resample(X, y, sampling_strategy=ratio)
    assert counts(y_new) == {0: 40, 1: int(40 * ratio)}


@pytest.mark.parametrize("seed", SEEDS)
def test_originals_come_first_and_unchanged(seed):
    X, y = table(seed)
    before = X.copy()
    X_new, y_new, _ = resample(X, y)
    assert_array_equal(X_new[: len(X)], before)
    assert_array_equal(y_new[: len(y)], y)
    assert_array_equal(X, before)


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("augment", [MixupDraws(1.0), KernelDraws(1.0)], ids=str)
def test_new_rows_stay_in_the_range_of_their_class(augment, manifold):
    # To the last bit, as a validator of ranges or a logarithm after it asks.
    X, y = table()
    params = {"draws": augment, "local_manifold": manifold, "range_slack": 0}
    X_new, y_new, _ = resample(X, y, **params)
    for label in (1, 2):
        old, new = X[y == label], X_new[len(X) :][y_new[len(y) :] == label]
        assert (new >= old.min(axis=0)).all()
        assert (new <= old.max(axis=0)).all()


def test_new_rows_are_new():
    X, y = table()
    X_new, _, _ = resample(X, y)
    assert len(np.unique(X_new.round(9), axis=0)) == len(X_new)


# --- parents --------------------------------------------------------------------


@pytest.mark.parametrize("augment", ["mixup", "kde", KernelDensity(bandwidth=0.1)])
@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_parents_are_distinct_rows_of_the_class(seed, k, augment):
    X, y = table(seed)
    _, y_new, sampler = resample(X, y, k_neighbors=k, draws=augment, random_state=seed)
    parents = sampler.parent_indices_
    new = y_new[len(y) :]
    n_parents = 2 if augment == "mixup" else k
    assert parents.shape == (len(new), n_parents)
    assert parents.dtype.kind == "i"
    assert parents.min() >= 0
    assert parents.max() < len(y)
    assert_array_equal(y[parents], np.repeat(new[:, None], n_parents, axis=1))
    assert all(len(set(row)) == n_parents for row in parents.tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_of_one_parent_with_a_full_step_is_that_parent(seed):
    # So the indices point to the rows that were used, not just to the class.
    X, y = table(seed)
    X_new, _, sampler = resample(
        X, y, k_neighbors=1, local_manifold=MixtureManifold(step=1), with_mass=False,
        draws="kde",
    )  # fmt: skip
    parents = X[sampler.parent_indices_[:, 0]]
    assert_allclose(X_new[len(X) :], parents, rtol=1e-9, atol=1e-9)
    assert len(np.unique(sampler.parent_indices_)) > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_mixed_rows_are_between_their_parents(seed):
    # A full step without noise, and an offset so large that masses hardly differ:
    # the straight line between the two rows that the indices point to.
    X, y = table(seed)
    X_new, _, sampler = resample(
        X, y, draws=MixupDraws(noise=0), local_manifold=MixtureManifold(step=1),
        with_mass=False, offset=1e7,
    )  # fmt: skip
    parents = X[sampler.parent_indices_]
    start, way = parents[:, 0], parents[:, 1] - parents[:, 0]
    # In units of the columns.
    scale = X.std(axis=0)
    new, way = (X_new[len(X) :] - start) / scale, way / scale
    t = np.einsum("ij,ij->i", new, way) / np.einsum("ij,ij->i", way, way)
    assert_allclose(new, t[:, None] * way, atol=1e-5)
    assert t.min() > -1e-5
    assert t.max() < 1 + 1e-5
    assert np.ptp(t) > 0.8


def test_the_larger_the_noise_the_farther_the_rows_move():
    # The same seed: rows, partners and positions are those without noise. One class,
    # since noise takes from the numbers that those after it are drawn with.
    X, y = table()
    params = {"range_slack": None, "sampling_strategy": {1: 40}}
    still, _, sampler = resample(X, y, draws=MixupDraws(noise=0), **params)
    way = []
    for noise in (1e-3, 1e-2, 1e-1):
        moved, _, other = resample(X, y, draws=MixupDraws(noise), **params)
        assert_array_equal(sampler.parent_indices_, other.parent_indices_)
        way.append(np.abs(moved - still)[len(X) :].mean(axis=0))
    assert (way[0] > 0).all()
    assert_allclose(way[1], 10 * way[0], rtol=0.1)
    assert_allclose(way[2], 100 * way[0], rtol=0.5)


@pytest.mark.parametrize("augment", ["mixup", "kde", KernelDensity(bandwidth=0.1)])
def test_nothing_to_add_leaves_no_parents(augment):
    X, y = table()
    X_new, y_new, sampler = resample(
        X, y, sampling_strategy=dict(COUNTS), draws=augment
    )
    assert_array_equal(X_new, X)
    assert_array_equal(y_new, y)
    assert len(sampler.parent_indices_) == 0
    assert sampler.parent_indices_.dtype.kind == "i"


@pytest.mark.parametrize("strategy", ["auto", "all"])
def test_classes_of_one_size_get_no_rows_and_are_told(strategy):
    X, y = table(counts={0: 20, 1: 20})
    with pytest.warns(UserWarning, match="no new row .*{0: 20, 1: 20}"):
        X_new, y_new = PNLSampler(sampling_strategy=strategy).fit_resample(X, y)
    assert_array_equal(X_new, X)
    assert_array_equal(y_new, y)


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (np.zeros(60), "PNLAugmenter draws rows without classes"),
        (np.repeat([0.0, np.nan], [50, 10]), "10 in all, the first in row 50"),
        ([None] * 3 + ["a"] * 57, "3 in all, the first in row 0"),
    ],
)
def test_classes_that_cannot_be_are_told(y, told):
    with pytest.raises(ValueError, match=told):
        PNLSampler().fit_resample(np.ones((60, 2)), y)


@pytest.mark.parametrize("strategy", [{7: 50}, {1: 5}, 0.01])
def test_strategies_that_cannot_be_tell_the_rows_of_classes(strategy):
    X, y = table(counts={0: 40, 1: 12})
    with pytest.raises(ValueError, match="{0: 40, 1: 12}.*in all"):
        PNLSampler(sampling_strategy=strategy).fit_resample(X, y)


@pytest.mark.parametrize("given", [[1, 2], "auto", None])
def test_a_strategy_of_the_user_gives_a_dict(given):
    X, y = np.random.default_rng(0).random((40, 4)), np.repeat([0, 1], [30, 10])
    told = f"gave {type(given).__name__}: a function of y gives a dict"
    with pytest.raises(TypeError, match=told):
        PNLSampler(sampling_strategy=lambda y: given).fit_resample(X, y)
    for asked in ({1: 15}, MappingProxyType({1: 15})):
        sampler = PNLSampler(sampling_strategy=lambda y, asked=asked: asked)
        assert np.bincount(sampler.fit_resample(X, y)[1]).tolist() == [30, 15]


@pytest.mark.parametrize("strategy", [{1: 13.5}, lambda y: {1: np.inf}])
def test_parts_of_rows_are_refused_by_class(strategy):
    X, y = table(counts={0: 40, 1: 12})
    sampler = PNLSampler(sampling_strategy=strategy)
    message = "rows of class 1: give whole numbers of rows"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "After over-sampling")
        with pytest.raises(ValueError, match=message):
            sampler.fit_resample(X, y)


def test_only_fit_resample_leaves_no_sample_indices():
    # imbalanced-learn gives that name to samplers that select rows.
    sampler = resample(*table())[2]
    assert not hasattr(sampler, "sample_indices_")


@pytest.mark.parametrize("label", [1, "a rare one"])
@pytest.mark.parametrize("n_rows", [1, 3])
def test_small_class_warns_by_name(n_rows, label):
    X, y = table(counts={0: 30, 1: n_rows})
    names = np.where(y == 1, label, "often" if isinstance(label, str) else 0)
    with pytest.warns(UserWarning, match="eighbours were asked") as caught:
        _, y_new, _ = resample(X, names, k_neighbors=5)
    assert len(caught) == 1
    assert f"class {label!r} has {n_rows} row" in str(caught[0].message)
    assert counts(y_new)[label] == 30


@pytest.mark.filterwarnings("ignore:.*neighbours were asked for")
@pytest.mark.parametrize("augment", ["kde", KernelDensity(bandwidth=0.1)])
@pytest.mark.parametrize("n_rows", [1, 3])
def test_a_small_class_has_all_its_rows_as_parents(n_rows, augment):
    X, y = table(counts={0: 30, 1: n_rows})
    parents = resample(X, y, draws=augment)[2].parent_indices_
    assert parents.shape == (30 - n_rows, n_rows)
    assert_array_equal(np.unique(parents), np.flatnonzero(y == 1))


@pytest.mark.filterwarnings("ignore:.*neighbours were asked for")
@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_mixup_has_two_parents_in_a_class_of_any_size(n_rows):
    X, y = table(counts={0: 30, 1: n_rows})
    parents = resample(X, y)[2].parent_indices_
    assert parents.shape == (30 - n_rows, 2)
    assert_array_equal(np.unique(parents), np.flatnonzero(y == 1))
    # A row that is alone is mixed with itself.
    assert ((parents[:, 0] == parents[:, 1]) == (n_rows == 1)).all()


@pytest.mark.filterwarnings("ignore:.*neighbours were asked for")
def test_parents_of_small_and_large_classes_stand_side_by_side():
    X, y = table(counts={0: 30, 1: 3, 2: 12})
    for augment, missing in (("mixup", 0), ("kde", 2)):
        _, y_new, sampler = resample(X, y, draws=augment)
        small = (y_new[len(y) :] == 1)[:, None]
        parents = sampler.parent_indices_
        n_padded = (parents == -1).sum(axis=1, keepdims=True)
        assert_array_equal(n_padded, np.where(small, missing, 0))


@pytest.mark.filterwarnings("ignore:.*neighbours were asked for")
@pytest.mark.parametrize("embedding", ["minmax", None])
@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_class_of_one_row_is_repeated(manifold, embedding):
    X, y = table(counts={0: 30, 1: 1})
    X = np.abs(X)
    X_new, _, _ = resample(X, y, local_manifold=manifold, embedding=embedding, order=2)
    expected = np.repeat(X[y == 1], 29, axis=0)
    if manifold in ("fiber", "mixture") or embedding == "minmax":
        assert_allclose(X_new[31:], expected, rtol=1e-6)
    assert np.isfinite(X_new).all()


def test_each_class_of_too_few_rows_warns_once():
    X, y = table(counts={0: 20, 1: 2, 2: 3})
    with pytest.warns(UserWarning, match="neighbours") as caught:
        resample(X, y, k_neighbors=5)
    assert len(caught) == 2


# --- arrays ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 2), (2, 3, 2, 2)], ids=str)
@pytest.mark.parametrize("reshaper", ["prime", None])
@pytest.mark.parametrize("embedding", ["minmax", None])
def test_arrays_of_any_dimension_keep_their_shape(embedding, reshaper, shape):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(40, *shape)), np.repeat([0, 1], [30, 10])
    X_new, y_new, sampler = resample(X, y, embedding=embedding, reshaper=reshaper)
    assert X_new.shape == (60, *shape)
    assert_array_equal(X_new[:40], X)
    assert X_new[40:].min() >= 0
    assert sampler.input_shape_ == shape


def test_images_can_be_given_flat_or_not():
    images, y = load_digits(return_X_y=True)
    images, y = images[y < 2][:100], y[y < 2][:100]
    strategy = {0: 60, 1: 60}
    flat, _, _ = resample(
        images, y, sampling_strategy=strategy, embedding=None,
        reshaper=PrimeFactorReshaper((8, 8)),
    )  # fmt: skip
    stacked, _, _ = resample(
        images.reshape(-1, 8, 8), y, sampling_strategy=strategy, embedding=None
    )
    assert_array_equal(stacked.reshape(len(flat), -1), flat)


@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "bool"]
)
def test_dtype_is_kept(dtype):
    X, y = table()
    X = (X > 0 if dtype == "bool" else np.clip(X, 0, 100)).astype(dtype)
    X_new, _, _ = resample(X, y)
    assert X_new.dtype == dtype
    assert_array_equal(X_new[: len(X)], X)


@pytest.mark.parametrize("embedding", ["minmax", None, MinMaxScaler((1, 2))], ids=str)
@pytest.mark.parametrize("dtype", ["u1", "i8", "i2"])
def test_integers_are_rounded_not_cut(dtype, embedding):
    X, y = table()
    X = np.clip(50 * np.abs(X), 0, 255).astype(dtype)
    X_new, _, _ = resample(X, y, embedding=embedding)
    exact, _, _ = resample(X.astype(np.float64), y, embedding=embedding)
    limits = np.iinfo(dtype)
    assert_array_equal(X_new, np.clip(np.rint(exact), limits.min, limits.max))


@pytest.mark.parametrize("embedding", ["minmax", None])
@pytest.mark.parametrize("augment", [MixupDraws(1.0), KernelDraws(2.0)], ids=str)
@pytest.mark.parametrize("margin", [0, 0.1, None])
def test_integers_stay_in_the_range_of_their_type(margin, augment, embedding):
    # Noise at both ends of the range, and wide kernels.
    X = np.random.default_rng(0).choice([0, 255], size=(40, 6, 6)).astype(np.uint8)
    y = np.repeat([0, 1], [30, 10])
    params = {"embedding": embedding, "draws": augment, "range_slack": margin}
    params["invariants"] = None
    X_new, _, _ = resample(X, y, **params)
    exact, _, _ = resample(X.astype(float), y, marks=None, **params)
    # No value wrapped around; what is beyond the type is reflected at its ends, which
    # floats pass by a tenth of their range.
    apart = np.abs(X_new - np.clip(np.rint(exact), 0, 255))
    assert apart.max() <= 2 * 0.1 * 255


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32])
def test_integers_at_the_ends_of_their_type_do_not_wrap(dtype):
    limits = np.iinfo(dtype)
    X = np.full((40, 4), limits.max, dtype=dtype)
    X[::2, 1], X[::3, 2] = 0, limits.max // 2
    X_new, _, _ = resample(X, np.repeat([0, 1], [30, 10]))
    assert (X_new[40:, 0] > limits.max // 2).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_float32_is_close_to_float64(seed):
    X, y = table(seed)
    X_new, _, _ = resample(X.astype(np.float32), y)
    exact, _, _ = resample(X.astype(np.float32).astype(np.float64), y)
    assert X_new.dtype == np.float32
    scale = np.ptp(exact, axis=0)
    assert (np.abs(X_new - exact) <= 1e-3 * scale).all()


@pytest.mark.parametrize("labels", [["a", "b", "c"], ["no", "perhaps", "certainly"]])
def test_string_labels_are_kept_whole(labels):
    X, y = table()
    named = np.array(labels)[y]
    X_new, y_new, sampler = resample(X, named)
    assert counts(y_new) == dict.fromkeys(labels, 40)
    assert y_new.dtype == named.dtype
    assert set(sampler.augmenters_) == {labels[1], labels[2]}


@pytest.mark.parametrize("dtype", [int, float, bool])
@pytest.mark.parametrize(("n_classes", "n_columns"), [(2, 2), (3, 3), (3, 4)])
@pytest.mark.parametrize("frame", [False, True])
def test_one_hot_targets_come_back_one_hot(n_classes, n_columns, dtype, frame):
    X, y = table(counts={label: COUNTS[label] for label in range(n_classes)})
    given = one_hot = np.eye(n_columns, dtype=dtype)[y]
    if frame:
        pd = pytest.importorskip("pandas")
        given = pd.DataFrame(one_hot, columns=list("abcd")[:n_columns])
    X_new, y_new, _ = resample(X, given)
    assert_array_equal(X_new, resample(X, y)[0])
    if frame:
        assert list(y_new.columns) == list(given.columns)
        y_new = y_new.to_numpy()
    assert y_new.dtype == dtype
    assert_array_equal(y_new[: len(y)], one_hot)
    assert_array_equal(y_new.sum(axis=1), 1)
    n_of_each = [40] * n_classes + [0] * (n_columns - n_classes)
    assert_array_equal(y_new.sum(axis=0), n_of_each)


def test_rows_in_none_of_one_hot_classes_are_refused():
    X, y = table()
    with pytest.raises(ValueError, match="Row .* of y is 0 in all 2 columns"):
        PNLSampler().fit_resample(X, np.eye(3, dtype=int)[y][:, 1:])


def test_lists_stay_lists():
    X, y = table()
    X_new, y_new, _ = resample(X.tolist(), y.tolist())
    assert isinstance(X_new, list)
    assert isinstance(y_new, list)
    assert_array_equal(X_new, resample(X, y)[0])


# --- data frames ----------------------------------------------------------------


@pytest.fixture
def frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [45, 15])
    columns = {
        "real": rng.normal(size=60),
        "single": rng.normal(size=60).astype(np.float32),
        "count": rng.integers(-3, 12, 60),
        "byte": rng.integers(0, 255, 60).astype(np.uint8),
        "flag": rng.random(60) < 0.4,
        "other flag": rng.random(60) < 0.9,
    }
    return pd.DataFrame(columns, index=np.arange(60) * 7), pd.Series(y, name="label")


def test_frames_keep_columns_types_and_originals(frame):
    X, y = frame
    X_new, y_new, sampler = resample(X, y)
    assert type(X_new) is type(X)
    assert X_new.columns.tolist() == X.columns.tolist()
    assert X_new.dtypes.tolist() == X.dtypes.tolist()
    assert X_new.iloc[:60].reset_index(drop=True).equals(X.reset_index(drop=True))
    assert type(y_new) is type(y)
    assert y_new.name == "label"
    assert sampler.feature_names_in_.tolist() == X.columns.tolist()


def test_columns_of_integers_and_flags_are_rounded(frame):
    X, y = frame
    X_new, _, _ = resample(X, y, range_slack=0)
    exact, _, _ = resample(X.astype(np.float64), y, range_slack=0)
    whole = ["count", "byte", "flag", "other flag"]
    assert_array_equal(X_new[whole].astype(float), np.rint(exact[whole]))
    # The others are not.
    assert (X_new["real"].iloc[60:] % 1 != 0).all()


def test_a_frame_of_integers_alone_is_rounded(frame):
    X, y = frame
    X = X[["count", "byte"]]
    X_new, _, _ = resample(X, y, range_slack=0)
    exact, _, _ = resample(X.astype(np.float64), y, range_slack=0)
    assert_array_equal(X_new, np.rint(exact))


def test_bytes_beside_reals_do_not_wrap():
    # The table as an array holds reals; the column of bytes must still end at 255.
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    noise = rng.choice([0, 255], 40)
    X = pd.DataFrame({"byte": noise.astype(np.uint8), "real": rng.uniform(size=40)})
    y = np.repeat([0, 1], [30, 10])
    params = {"embedding": None, "draws": KernelDraws(2.0), "range_slack": None}
    params["marks"] = None
    X_new, _, _ = resample(X, y, **params)
    exact, _, _ = resample(X.astype(float), y, **params)
    assert exact["byte"].max() > 255.5
    assert_array_equal(X_new["byte"], np.clip(np.rint(exact["byte"]), 0, 255))


def test_nullable_integers_are_rounded(frame):
    X, y = frame
    X = X[["real", "count"]].astype({"count": "Int64"})
    X_new, _, _ = resample(X, y)
    exact, _, _ = resample(X.astype(np.float64), y)
    assert X_new.dtypes.tolist() == X.dtypes.tolist()
    assert_array_equal(X_new["count"].astype(float), np.rint(exact["count"]))


def test_frames_as_global_output_change_nothing(frame):
    X, y = frame
    X = np.abs(X.to_numpy(float))
    for params in ({}, {"embedding": None}, {"order": 1}):
        usual = resample(X, y, **params)[0]
        with config_context(transform_output="pandas"):
            assert_array_equal(resample(X, y, **params)[0], usual)


# --- sparse matrices ------------------------------------------------------------


@pytest.fixture
def sparse_table():
    X, y = table()
    return np.where(np.random.default_rng(0).random(X.shape) < 0.6, 0.0, X), y


@pytest.mark.parametrize(
    "container", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array]
)
def test_sparse_comes_back_as_it_was_given(sparse_table, container):
    X, y = sparse_table
    X_new, y_new, _ = resample(container(X), y)
    assert type(X_new) is container
    dense, y_dense, _ = resample(X, y)
    assert_array_equal(X_new.toarray(), dense)
    assert_array_equal(y_new, y_dense)


@pytest.mark.parametrize("container", [sp.coo_matrix, sp.lil_array])
def test_other_sparse_formats_are_taken(sparse_table, container):
    X, y = sparse_table
    X_new, _, _ = resample(container(X), y)
    assert sp.issparse(X_new)
    assert_array_equal(X_new.toarray(), resample(X, y)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_sparse_keeps_its_dtype(sparse_table, dtype):
    X, y = sparse_table
    X_new, _, _ = resample(sp.csr_array(X.astype(dtype)), y)
    assert X_new.dtype == dtype


# --- embedding and reshaper -----------------------------------------------------


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("params", [{}, {"reshaper": None}, {"draws": "kde"}], ids=str)
def test_constant_features_stay_constant(params, manifold):
    X, y = table()
    X[:, 1], X[:, 4] = -7.5, 0.0
    X_new, _, _ = resample(X, y, local_manifold=manifold, **params)
    assert_allclose(X_new[:, [1, 4]], [[-7.5, 0.0]] * len(X_new), atol=1e-12)


def test_features_constant_in_a_class_stay_so_in_it():
    X, y = table(counts={0: 30, 1: 12})
    X[y == 1, 3] = 5.0
    X_new, _, _ = resample(X, y)
    assert_allclose(X_new[42:, 3], 5.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_units_do_not_matter(seed):
    # The embedding is per feature: an affine change of units passes through.
    X, y = table(seed)
    scale, shift = 2.0 ** np.arange(-2, 4), np.arange(6) - 3.0
    X_new, _, _ = resample(X, y)
    in_units, _, _ = resample(X * scale + shift, y)
    assert_allclose(in_units, X_new * scale + shift, rtol=1e-6, atol=1e-6)


class Halves(TransformerMixin, BaseEstimator):
    """Rows as two rows of half the length."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X.reshape(len(X), 2, -1)

    def inverse_transform(self, X):
        return X.reshape(len(X), -1)


def test_foreign_reshaper_shapes_the_tensors():
    X, y = table()
    reshaper = Halves()
    X_new, _, sampler = resample(X, y, reshaper=reshaper, order=2)
    assert X_new.shape == (120, 6)
    assert sampler.augmenters_[1].poset_.shape == (2, 3)
    # A full order on two modes does not depend on the shape (3, 2) or (2, 3).
    assert_allclose(X_new, resample(X, y, order=2)[0], rtol=1e-6, atol=1e-6)
    assert vars(reshaper) == {}


def test_reshaper_with_parameters():
    X, y = table()
    reshaper = PrimeFactorReshaper((2, 3), pad_value="mean")
    sampler = resample(X, y, reshaper=reshaper)[2]
    assert sampler.augmenters_[1].poset_.shape == (2, 3)
    assert not hasattr(reshaper, "tensor_shape_")


@pytest.mark.parametrize(
    "embedding",
    [MinMaxScaler((1, 2)), QuantileTransformer(n_quantiles=10)],
    ids=["minmax", "quantile"],
)
def test_foreign_embedding_is_fitted_on_each_class_and_undone(embedding):
    X, y = table()
    X_new, y_new, _ = resample(X, y, embedding=embedding)
    for label in (1, 2):
        old, new = X[y == label], X_new[len(X) :][y_new[len(y) :] == label]
        # Within the class's range and about its middle, per feature.
        middle = np.abs(np.median(new, axis=0) - np.median(old, axis=0))
        assert (middle < 0.5 * np.ptp(old, axis=0)).all()
        assert (np.ptp(new, axis=0) < 1.5 * np.ptp(old, axis=0)).all()
    assert not [name for name in vars(embedding) if name.endswith("_")]


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_embeddings_may_give_frames(container):
    pytest.importorskip(container)
    X, y = make_classification(weights=[0.8], random_state=0)
    arrays = PNLSampler(embedding=MinMaxScaler(), random_state=0)
    frames = clone(arrays)
    frames.embedding.set_output(transform=container)
    rows = [sampler.fit_resample(X, y)[0] for sampler in (arrays, frames)]
    assert_array_equal(*rows)


def test_embedding_of_negatives_is_refused_with_a_way_out():
    X, y = table()
    with pytest.raises(ValueError, match=r"Negative values .*MinMaxScaler"):
        resample(X, y, embedding=StandardScaler())


@pytest.mark.parametrize("order", [1, 2])
def test_a_tensor_poset_is_the_reshaping_to_its_shape(order):
    X, y = table()
    on_poset, _, _ = resample(X, y, order=order, poset=TensorPoset((3, 2)))
    assert_array_equal(on_poset, resample(X, y, order=order)[0])


def test_features_can_be_ordered_by_a_poset():
    X, y = table()
    poset = Poset.from_relations(6, [(0, 1), (1, 2), (3, 4), (4, 5)], add_bottom=True)
    X_new, y_new, sampler = resample(X, y, poset=poset)
    assert X_new.shape == (120, 6)
    assert counts(y_new) == {0: 40, 1: 40, 2: 40}
    assert sampler.augmenters_[1].poset_ is poset


def test_elements_of_the_base_are_the_code():
    X, y = table()
    sampler = resample(X, y, base=[(0, 1), (1, 1)], with_mass=False)[2]
    assert sampler.augmenters_[1].n_params_ == 2


class FirstTwo(TransformerMixin, BaseEstimator):
    """An embedding that loses columns, as a factorisation does."""

    def fit(self, X, y=None):
        self.rest_ = X[:, 2:].mean(axis=0)
        return self

    def transform(self, X):
        return np.abs(X[:, :2])

    def inverse_transform(self, X):
        return np.column_stack([X, np.tile(self.rest_, (len(X), 1))])


def test_embedding_with_other_columns_works_on_its_columns():
    X, y = table()
    X_new, _, sampler = resample(X, y, embedding=FirstTwo(), reshaper=None)
    assert X_new.shape == (120, 6)
    assert sampler.augmenters_[1].poset_.shape == (2,)
    assert sampler.augmenters_[1].input_shape_ == (6,)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_embedding_keeps_images_in_their_units(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 17, size=(40, 8, 8)).astype(float)
    X[:, :, 0] = 0
    y = np.repeat([0, 1], [30, 10])
    X_new, _, _ = resample(X, y, embedding=None, offset=1e-5, order=2, with_mass=False)
    new = X_new[40:]
    assert new.min() >= 0
    assert_allclose(new[:, :, 0], 0, atol=1e-4)
    mass = X[30:].sum(axis=(1, 2))
    assert (new.sum(axis=(1, 2)) > 0.99 * mass.min()).all()
    assert (new.sum(axis=(1, 2)) < 1.01 * mass.max()).all()


@pytest.mark.parametrize(
    "augment", [KernelDensity(bandwidth=0.1), GaussianMixture(2, reg_covar=1e-2)]
)
def test_any_density_can_draw(augment):
    X, y = table()
    X_new, y_new, sampler = resample(X, y, draws=augment)
    assert counts(y_new) == {0: 40, 1: 40, 2: 40}
    assert np.isfinite(X_new).all()
    draws = sampler.augmenters_[1].draws_
    assert isinstance(draws, DensityDraws)
    assert type(draws.estimator_) is type(augment)
    assert not [name for name in vars(augment) if name.endswith("_")]


# --- seeds ----------------------------------------------------------------------


def test_a_density_that_reads_rows_itself_reads_codes():
    X, y = make_classification(80, 4, weights=[0.75], random_state=0)
    X = np.rint(10 * X).astype(int)
    sampler = PNLSampler(draws=PNLAugmenter(), random_state=0)
    assert sampler.fit_resample(X, y)[0].dtype == X.dtype
    codes = sampler.augmenters_[1].draws_.estimator_.sample(20, random_state=0)
    # Not whole numbers, as the rows of the table are.
    assert codes.dtype == np.float64
    assert np.any(codes != np.rint(codes))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_augmenter_of_a_class_is_one_fitted_on_it(seed):
    X, y = make_classification(
        120, 6, n_informative=6, n_redundant=0, weights=[0.75], random_state=seed
    )
    before = X.copy()
    sampler = PNLSampler(random_state=0)
    sampler.fit_resample(X, y)
    alone = PNLAugmenter().fit(X[y == 1])
    both = [a.sample(30, random_state=1) for a in (sampler.augmenters_[1], alone)]
    assert np.array_equal(*both)
    assert np.array_equal(X, before)


@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_same_seed_same_bytes_and_other_seeds_others(augment):
    X, y = table()
    results = [
        [resample(X, y, draws=augment, random_state=s)[0].tobytes() for s in SEEDS]
        for _ in range(2)
    ]
    assert results[0] == results[1]
    assert len(set(results[0])) == len(SEEDS)


def test_a_sampler_gives_the_same_rows_twice():
    X, y = table()
    sampler = PNLSampler(random_state=0)
    assert_array_equal(sampler.fit_resample(X, y)[0], sampler.fit_resample(X, y)[0])


def test_jobs_and_working_memory_change_no_byte():
    # More rows of a class than one block holds: 600 of 512 cells.
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(900, 512)), np.repeat([0, 1], [600, 300])
    strategy = {1: 900}

    def result(**params):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "After over-sampling")
            X_new, _, sampler = resample(X, y, sampling_strategy=strategy, **params)
        return X_new.tobytes(), sampler.parent_indices_.tobytes()

    usual = result()
    assert result(n_jobs=2) == usual
    with config_context(working_memory=1):
        assert result() == usual


@pytest.mark.parametrize("random_state", [0, np.random.RandomState(0)], ids=str)
def test_a_seed_leaves_the_global_state_alone(random_state):
    before = global_state()
    for augment in ("mixup", "kde", KernelDensity(bandwidth=0.1)):
        resample(*table(), draws=augment, random_state=random_state)
    assert global_state() == before


def test_classes_do_not_share_their_draws():
    # One rng for a call: the same rows under two labels get different new rows.
    rows = table(counts={0: 15})[0]
    X = np.concatenate([table(counts={0: 40})[0], rows, rows])
    X_new, y_new, _ = resample(X, np.repeat([0, 1, 2], [40, 15, 15]))
    assert (
        (X_new[70:][y_new[70:] == 1] != X_new[70:][y_new[70:] == 2]).any(axis=1).all()
    )


def test_order_of_the_labels_does_not_depend_on_their_names():
    # One rng for all classes, in the order of sampling_strategy_.
    X, y = table()
    named = np.array(["x", "y", "z"])[y]
    assert_array_equal(resample(X, named)[0], resample(X, y)[0])


# --- the estimator in its surroundings ------------------------------------------


def test_there_is_no_transform():
    # imbalanced-learn's Pipeline refuses a step that resamples and transforms.
    assert not hasattr(PNLSampler(), "transform")
    assert not hasattr(PNLSampler(), "fit_transform")


def test_clone_keeps_every_parameter():
    params = {
        "sampling_strategy": {1: 30}, "order": 2, "k_neighbors": 3, "metric": "kl",
        "local_manifold": MixtureManifold(step=0.5), "draws": KernelDraws(0.2),
        "reshaper": None, "embedding": None, "offset": 0.2, "with_mass": False,
        "range_slack": None, "tol": 1e-7, "max_iter": 77, "random_state": 5,
        "n_jobs": 2,
    }  # fmt: skip
    cloned = clone(PNLSampler(**params)).get_params()
    assert cloned["draws__bandwidth"] == 0.2
    assert cloned["local_manifold__step"] == 0.5
    assert cloned["draws"] is not params["draws"]
    del params["draws"], params["local_manifold"]
    assert params.items() <= cloned.items()


def test_parameters_reach_the_augmenters():
    params = {
        "order": 2, "base": [1, 3], "local_manifold": FiberManifold(order=1),
        "k_neighbors": 3, "draws": KernelDraws(0.2), "metric": "euclidean",
        "poset": TensorPoset((3, 2)), "reshaper": None, "embedding": MinMaxScaler(),
        "offset": 0.2, "with_mass": False, "range_slack": None, "tol": 1e-7,
        "max_iter": 77, "n_jobs": 2, "invariants": None,
        "categorical_features": None,
        "marks": "zeros",
    }  # fmt: skip
    assert set(params) == set(PNLAugmenter().get_params(deep=False))
    augmenter = resample(*table(), **params)[2].augmenters_[1]
    # Equations are looked for in all classes together.
    del params["invariants"]
    assert {name: getattr(augmenter, name) for name in params} == params


def test_parameters_are_keywords():
    with pytest.raises(TypeError, match="positional"):
        PNLSampler("auto")


def test_grid_search_in_a_pipeline():
    X, y = load_iris(return_X_y=True)
    X, y = np.hstack([X, X**2, np.sqrt(X)])[30:], y[30:]
    pipeline = make_pipeline(
        StandardScaler(), PNLSampler(random_state=0), KNeighborsClassifier(3)
    )
    grid = {"pnlsampler__order": [None, 1, 2], "pnlsampler__k_neighbors": [1, 3]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring="balanced_accuracy")
    search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 6
    assert scores.min() > 0.8
    fitted = search.best_estimator_.named_steps["pnlsampler"]
    assert set(fitted.augmenters_) == {0}
    assert fitted.order_ == search.best_params_["pnlsampler__order"]


def test_images_go_through_a_pipeline():
    images, y = load_digits(return_X_y=True)
    images, y = images[y < 2].reshape(-1, 8, 8)[:120], y[y < 2][:120]
    keep = np.flatnonzero((y == 0) | (np.arange(120) % 4 == 0))

    class Flatten(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return np.reshape(X, (len(X), -1))

    pipeline = make_pipeline(
        PNLSampler(embedding=None, random_state=0), Flatten(), KNeighborsClassifier()
    )
    assert pipeline.fit(images[keep], y[keep]).score(images, y) > 0.95


def test_new_digits_are_recognised_as_their_class():
    # The one test of quality: 20% more rows for each class, as in the paper.
    images, y = load_digits(return_X_y=True)
    train, test = np.arange(0, 1797, 2), np.arange(1, 1797, 2)
    judge = KNeighborsClassifier(3).fit(images[test], y[test])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "After over-sampling")
        X_new, y_new, _ = resample(
            images[train].reshape(-1, 8, 8), y[train], embedding=None,
            offset=1.0, sampling_strategy=twenty_percent_more,
        )  # fmt: skip
    new = slice(len(train), None)
    assert judge.score(X_new[new].reshape(-1, 64), y_new[new]) > 0.9


@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "int64[pyarrow]"])
def test_far_classes_in_types_with_nulls_stay_apart(dtype):
    # As floats the last two are the same.
    pd = pytest.importorskip("pandas")
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    y = pd.Series(np.repeat([5, 2**60, 2**60 + 1], [30, 8, 6])).astype(dtype)
    X = np.random.default_rng(0).normal(size=(44, 3))
    sampler = PNLSampler(random_state=0)
    labels = sampler.fit_resample(X, y)[1]
    assert labels.dtype == y.dtype
    assert labels.value_counts().to_dict() == {5: 30, 2**60: 30, 2**60 + 1: 30}
    with pytest.raises(ValueError, match=r"the classes \[5, 11529215046"):
        PNLSampler(constraints={2: None}).fit_resample(X, y)


@pytest.mark.parametrize("y", [[0, 1], [False, True], [0, "a"], ["a", 0]])
def test_objects_that_are_no_classes_are_told(y):
    y = np.repeat(np.array(y, dtype=object), [20, 10])
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match=r"type: objects \(.* Give classes a type"):
        PNLSampler().fit_resample(X, y)
