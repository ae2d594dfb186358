"""Containers, types, names and times: new rows come as the rows did.

What is read of each container is tested in ``tests/frames``.
"""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from imblearn.pipeline import make_pipeline
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV

from sklearn_pnl import Codes, ColumnConstraint, Lines, PNLAugmenter, PNLSampler
from sklearn_pnl.draws import KernelDraws

pd = pytest.importorskip("pandas")


SEEDS = [0, 1, 2]


N = 60


LABELS = np.repeat([0, 1], [45, 15])


START = pd.Timestamp("2020-02-27")


CONTAINERS = ["pandas", "polars", "pyarrow"]


# What is read into values of a column is for another test.
PLAIN = {"value_support": None}


def table(seed=0):
    """60 rows of four features, negatives among them."""
    return np.random.default_rng(seed).normal(size=(N, 4)) * [1, 10, 100, 5]


def numbers(seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "real": rng.normal(size=N),
            "single": rng.normal(size=N).astype(np.float32),
            "count": rng.integers(-3, 12, N),
            "byte": rng.integers(0, 255, N).astype(np.uint8),
            "flag": rng.random(N) < 0.4,
        }
    )


def times(seed=0):
    """Days, seconds with a time zone, and durations."""
    rng = np.random.default_rng(seed)
    seconds = pd.to_timedelta(rng.integers(0, 10**7, N), unit="s")
    return pd.DataFrame(
        {
            "day": START + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
            "zoned": START.tz_localize("UTC") + seconds,
            "took": pd.to_timedelta(rng.integers(-9000, 9000, N), unit="ms"),
        }
    )


def everything(seed=0):
    words = np.random.default_rng(seed).choice(["a", "b", "c"], N)
    return pd.concat([numbers(seed), times(seed)], axis=1).assign(word=words)


def in_container(frame, container):
    if container == "pandas":
        return frame
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    converted = pl.from_pandas(frame)
    return converted if container == "polars" else converted.to_arrow()


def schema(frame):
    return frame.dtypes.tolist() if hasattr(frame, "iloc") else frame.schema


@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 3, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i1", "u1", "u4", "bool"])
def test_arrays_keep_type_shape_and_range(dtype, shape):
    X = 20 * np.random.default_rng(0).uniform(size=(40, *shape))
    X = (X > 8 if dtype == "bool" else X).astype(dtype)
    augmenter = PNLAugmenter(**PLAIN).fit(X)
    rows = augmenter.sample(30, random_state=0)
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == dtype
    assert rows.shape == (30, *shape)
    assert ((rows >= X.min(axis=0)) & (rows <= X.max(axis=0))).all()
    whole = np.arange(6) if X.dtype.kind in "iub" else []
    assert_array_equal(augmenter.integer_features_, whole)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_rows_come_back_sparse(make):
    X = np.where(np.random.default_rng(1).random((N, 4)) < 0.6, 0, table())
    rows = PNLAugmenter(**PLAIN).fit(make(X)).sample(30, 0)
    assert sp.issparse(rows)
    assert make is sp.coo_array or type(rows) is make
    assert_array_equal(rows.toarray(), PNLAugmenter(**PLAIN).fit(X).sample(30, 0))


def test_lists_come_back_as_arrays():
    rows = PNLAugmenter(**PLAIN).fit(table().tolist()).sample(30, 0)
    assert_array_equal(rows, PNLAugmenter(**PLAIN).fit(table()).sample(30, 0))


@pytest.mark.parametrize("container", CONTAINERS)
def test_new_rows_come_in_the_same_container(container):
    X = in_container(everything(), container)
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(30, random_state=0)
    assert type(rows) is type(X)
    assert rows.shape == (30, 9)
    assert schema(rows) == schema(X)
    assert list(augmenter.feature_names_in_) == everything().columns.tolist()
    assert augmenter.integer_features_.tolist() == [2, 3, 4]
    again = pickle.loads(pickle.dumps(augmenter)).sample(30, random_state=0)
    assert again.equals(rows)


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_sampler_keeps_container_types_and_originals(container):
    X = in_container(everything(), container)
    sampler = PNLSampler(random_state=0)
    X_new, y_new = sampler.fit_resample(X, LABELS)
    assert type(X_new) is type(X)
    assert X_new.shape == (90, 9)
    assert schema(X_new) == schema(X)
    first = X_new.iloc[:N] if container == "pandas" else X_new[:N]
    assert first.equals(X)
    assert_array_equal(np.bincount(y_new), [45, 45])
    rows = sampler.augmenters_[1].sample(10, random_state=0)
    assert type(rows) is type(X) and schema(rows) == schema(X)


@pytest.mark.parametrize("container", ["polars", "pyarrow"])
def test_all_containers_hold_the_same_rows(container):
    ours = PNLAugmenter().fit(everything()).sample(40, 0)
    theirs = PNLAugmenter().fit(in_container(everything(), container)).sample(40, 0)
    theirs = theirs.to_pandas()
    for name in ours:
        assert theirs[name].astype(ours[name].dtype).equals(ours[name]), name


def test_batches_of_frames_are_frames_of_their_class():
    class Named(pd.DataFrame):
        @property
        def _constructor(self):
            return Named

    augmenter = PNLAugmenter().fit(Named(numbers()).set_index(np.arange(N) * 7))
    batches = list(augmenter.iter_samples(50, 20, random_state=0))
    assert [len(batch) for batch in batches] == [20, 20, 10]
    rows = augmenter.sample(50, random_state=0)
    assert type(rows) is type(batches[0]) is Named
    assert rows.index.tolist() == list(range(50))
    assert pd.concat(batches, ignore_index=True).equals(rows)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, bool, np.float32])
def test_sparse_frames_stay_sparse(dtype):
    rng = np.random.default_rng(0)
    counts = np.where(rng.random((N, 4)) < 0.7, 0, rng.integers(1, 9, (N, 4)))
    X = pd.DataFrame(counts.astype(dtype), columns=list("abcd"))
    X = X.astype(pd.SparseDtype(dtype, dtype(0)))
    X_new, _ = PNLSampler(random_state=0).fit_resample(X, LABELS)
    assert X_new.dtypes.tolist() == X.dtypes.tolist()
    dense, _ = PNLSampler(random_state=0).fit_resample(counts.astype(dtype), LABELS)
    assert_array_equal(X_new.to_numpy(), dense)


@pytest.mark.parametrize("container", CONTAINERS)
def test_frames_go_through_a_pipeline_and_a_search(container):
    from sklearn.utils import _safe_indexing

    X = in_container(numbers(), container)
    try:
        _safe_indexing(X, [0, 1])
    except TypeError:
        pytest.skip(f"this scikit-learn takes no rows from tables of {container}")
    y = LABELS[np.random.default_rng(0).permutation(N)]
    model = HistGradientBoostingClassifier(max_iter=3, early_stopping=False)
    pipeline = make_pipeline(PNLSampler(random_state=0), model)
    grid = {"pnlsampler__k_neighbors": [3, 5]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert search.predict(X).shape == (N,)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", [Lines(2.0), Codes(draws=KernelDraws(1.0))], ids=str)
def test_times_are_new_and_none_is_beyond_those_seen(method, seed):
    X = times(seed)
    rows = PNLAugmenter(method, **PLAIN).fit(X).sample(200, seed)
    for name in X:
        assert rows[name].between(X[name].min(), X[name].max()).all()
    assert not rows["zoned"].isin(X["zoned"]).all()
    assert (rows["day"] == rows["day"].dt.normalize()).all()
    assert (rows["zoned"] == rows["zoned"].dt.floor("s")).all()
    assert (rows["zoned"].dt.second != 0).any()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_keep_their_unit_over_centuries(unit):
    # Nanoseconds of 400 years are no doubles.
    days = np.random.default_rng(0).integers(-70_000, 70_000, N)
    when = (np.datetime64("1970-01-01") + days).astype(f"datetime64[{unit}]")
    X = pd.DataFrame({"when": when})
    rows = PNLAugmenter().fit(X).sample(100, random_state=0)
    assert rows["when"].dtype == X["when"].dtype
    assert (rows["when"] == rows["when"].dt.normalize()).all()
    assert rows["when"].between(X["when"].min(), X["when"].max()).all()


@pytest.mark.parametrize("container", CONTAINERS)
def test_an_end_is_a_start_and_a_length(container):
    rng = np.random.default_rng(0)
    took = pd.to_timedelta(rng.integers(1, 30, N), unit="D")
    X = pd.DataFrame({"start": START + pd.to_timedelta(rng.integers(0, 99, N), "D")})
    X = X.assign(end=X["start"] + took, took=took, real=rng.normal(size=N))
    augmenter = PNLAugmenter().fit(in_container(X, container))
    rows = augmenter.sample(50, random_state=0)
    rows = rows if container == "pandas" else rows.to_pandas()
    assert (rows["start"] + rows["took"] == rows["end"]).all()


def test_constraints_are_about_the_columns_of_a_frame():
    X = everything()
    asked = ColumnConstraint("real", lower=0, upper=0.5)
    rows = PNLAugmenter(**PLAIN).fit(X).sample(50, 0, constraints=asked)
    assert rows["real"].between(-1e-9, 0.5 + 1e-9).all()
    assert rows.dtypes.tolist() == X.dtypes.tolist()


# --- large integers -------------------------------------------------------------

ID = 2**53 + 1


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64"])
def test_integers_beyond_doubles_are_unchanged_in_the_originals(dtype, mixed):
    # 2 ** 53 + 1 is no double; ids and nanoseconds lie there.
    rng = np.random.default_rng(0)
    ids = ID + 2 * np.arange(N)
    nanoseconds = 1_700_000_000_000_000_000 + rng.integers(0, 10**15, N)
    X = pd.DataFrame({"id": ids, "time": nanoseconds}).astype(dtype)
    if mixed:
        X["real"] = rng.normal(size=N)
    before = X.copy()
    X_new, _ = PNLSampler(random_state=0).fit_resample(X, LABELS)
    assert X_new.dtypes.tolist() == before.dtypes.tolist()
    assert X_new.iloc[:N].equals(before)
    assert [int(i) for i in X_new["id"][:N]] == ids.tolist()
    # New ones are as near as doubles get.
    assert X_new["id"][N:].between(ID - 1, ID + 121).all()
    assert X.equals(before)


@pytest.mark.filterwarnings("ignore:Whole numbers")
@pytest.mark.parametrize("end", ["min", "max"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.uint8])
def test_integers_at_the_ends_of_their_type_do_not_wrap(dtype, end):
    limits = np.iinfo(dtype)
    X = np.full((40, 4), getattr(limits, end), dtype=dtype)
    X[::2, 1], X[::3, 2] = 0, limits.max // 2
    augmenter = PNLAugmenter(method=Lines(1.0), extrapolation=None).fit(X)
    rows = augmenter.sample(30, random_state=0)
    middle = float(limits.max) / 2
    assert (abs(rows[:, 0].astype(float) - float(X[0, 0])) < middle / 2 + 1).all()
    assert_array_equal(np.unique(rows[:, 3]), np.unique(rows[:, 0]))


def test_negative_values_and_lost_features_are_named():
    X = numbers()
    with pytest.raises(ValueError, match="row 0, column 'count'|column 'real'"):
        PNLAugmenter(Codes(1, embedding=None)).fit(X[["real", "count"]])
    X["tiny"] = 1e-20 * np.arange(N)
    with pytest.raises(ValueError, match="Column 'tiny' spans"):
        PNLAugmenter(Codes(1, embedding=None)).fit(X[["byte", "tiny"]])
