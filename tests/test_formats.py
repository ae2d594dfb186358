"""Units, types, containers and names: new rows come as the rows did."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from sklearn_pnl import MixupDraws, PNLAugmenter, PNLSampler

SEEDS = [0, 1, 2]
LABELS = np.repeat([0, 1], [45, 15])


def table(seed=0):
    """60 rows of four features, negatives among them."""
    return np.random.default_rng(seed).normal(size=(60, 4)) * [1, 10, 100, 5]


def restored(X, n=30, **params):
    return PNLAugmenter(**params).fit(X).sample(n, random_state=0)


@pytest.fixture
def frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    columns = {
        "real": rng.normal(size=60),
        "single": rng.normal(size=60).astype(np.float32),
        "count": rng.integers(-3, 12, 60),
        "byte": rng.integers(0, 255, 60).astype(np.uint8),
        "flag": rng.random(60) < 0.4,
        "nullable": pd.array(rng.integers(0, 99, 60), dtype="Int64"),
    }
    return pd.DataFrame(columns, index=np.arange(60) * 7)


# --- arrays ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 3, 1)], ids=str)
@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "f2", "i8", "i4", "i1", "u1", "u4", "bool"]
)
def test_arrays_keep_type_and_shape(dtype, shape):
    X = 20 * np.random.default_rng(0).uniform(size=(40, *shape))
    X = (X > 8 if dtype == "bool" else X).astype(dtype)
    augmenter = PNLAugmenter(range_slack=0, marks=None).fit(X)
    rows = augmenter.sample(30, random_state=0)
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == dtype
    assert rows.shape == (30, *shape)
    assert ((rows >= X.min(axis=0)) & (rows <= X.max(axis=0))).all()
    whole = np.arange(6) if X.dtype.kind in "iub" else []
    assert_array_equal(augmenter.integer_features_, whole)
    if dtype != "bool":
        # Rounded, not cut.
        exact = restored(X.astype(float), range_slack=0, marks=None)
        close = np.rint(exact) if X.dtype.kind in "iu" else exact.astype(dtype)
        assert_array_equal(rows, close)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_rows_come_back_sparse(make):
    X = np.where(np.random.default_rng(1).random((60, 4)) < 0.6, 0, table())
    rows = restored(make(X))
    assert sp.issparse(rows)
    if make is not sp.coo_array:
        assert type(rows) is make
    assert_array_equal(rows.toarray(), restored(X))


def test_of_sparse_rows_a_class_alone_is_made_dense():
    rng = np.random.default_rng(0)
    X = sp.random(8000, 1500, 0.002, format="csr", random_state=rng)
    y = np.arange(8000) < 60
    sampler = PNLSampler(sampling_strategy={True: 120}, random_state=0)
    tracemalloc.start()
    rows, _ = sampler.fit_resample(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sp.issparse(rows)
    assert peak < 8 * 8000 * 1500 / 2


def test_few_new_sparse_rows_are_dense_at_a_time():
    X = sp.random(60, 3_000, 0.02, format="csr", random_state=0)
    augmenter, n = PNLAugmenter().fit(X), 4_000
    expected = sp.vstack(list(augmenter.iter_samples(n, 700, random_state=0)))
    tracemalloc.start()
    try:
        rows = augmenter.sample(n, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert type(rows) is type(X) and rows.shape == (n, 3_000)
    assert_array_equal(rows.toarray(), expected.toarray())
    assert peak < 8 * n * 3_000


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_rows_of_any_layout_have_the_same_near_ties(seed):
    # Dummies, of which many rows are equally near.
    rng = np.random.default_rng(seed)
    levels = [np.eye(k)[rng.integers(0, k, 400)][:, 1:] for k in (3, 4, 5, 6)]
    X, y = np.hstack(levels), np.repeat([0, 1], [360, 40])
    dense = PNLSampler(random_state=0).fit_resample(X, y)[0]
    for make in (sp.csr_array, sp.csc_array):
        rows = PNLSampler(random_state=0).fit_resample(make(X), y)[0]
        assert_array_equal(rows.toarray(), dense)


def test_lists_come_back_as_arrays():
    assert_array_equal(restored(table().tolist()), restored(table()))


# --- frames ---------------------------------------------------------------------


def test_frames_come_back_as_frames(frame):
    augmenter = PNLAugmenter(range_slack=0).fit(frame)
    rows = augmenter.sample(30, random_state=0)
    assert type(rows) is type(frame)
    assert rows.columns.tolist() == frame.columns.tolist()
    assert rows.dtypes.tolist() == frame.dtypes.tolist()
    assert rows.index.tolist() == list(range(30))
    assert augmenter.feature_names_in_.tolist() == frame.columns.tolist()
    assert augmenter.integer_features_.tolist() == [2, 3, 4, 5]
    # The units are those of the columns, and integers are rounded.
    exact = restored(frame.astype(float), range_slack=0)
    for name in ("count", "byte", "flag", "nullable"):
        assert_array_equal(rows[name].astype(float), np.rint(exact[name]))
    assert_array_equal(rows["real"], exact["real"])
    assert_array_equal(rows["single"], exact["single"].astype(np.float32))
    low, high = frame.astype(float).min(), frame.astype(float).max()
    assert ((rows.astype(float) >= low) & (rows.astype(float) <= high)).all().all()


def test_batches_of_frames_are_frames(frame):
    pd = pytest.importorskip("pandas")
    augmenter = PNLAugmenter().fit(frame)
    batches = list(augmenter.iter_samples(50, 20, random_state=0))
    assert [len(batch) for batch in batches] == [20, 20, 10]
    joined = pd.concat(batches, ignore_index=True)
    assert joined.equals(augmenter.sample(50, random_state=0))


def test_the_frame_of_a_subclass_stays_one(frame):
    class Named(type(frame)):
        @property
        def _constructor(self):
            return Named

    assert type(restored(Named(frame))) is Named


# --- one class of a sampler -----------------------------------------------------


@pytest.mark.parametrize("container", ["frame", "array", "sparse", "images"])
def test_an_augmenter_of_the_sampler_gives_rows_as_they_came(container, frame):
    X = {
        "frame": frame,
        "array": table().astype(np.float32),
        "sparse": sp.csr_array(table()),
        "images": np.random.default_rng(0).integers(0, 255, (60, 4, 4), np.uint8),
    }[container]
    # Marks are those of all classes.
    sampler = PNLSampler(marks=None, random_state=0)
    X_new, _ = sampler.fit_resample(X, LABELS)
    rows = sampler.augmenters_[1].sample(10, random_state=0)
    assert type(rows) is type(X_new) is type(X)
    assert rows.shape == (10, *X.shape[1:])
    members = X.iloc[45:] if container == "frame" else X[45:]
    own = restored(members, 10, marks=None)
    if container == "frame":
        assert rows.dtypes.tolist() == X.dtypes.tolist()
        assert rows.equals(own)
    else:
        assert rows.dtype == X.dtype
        assert abs(rows - own).max() == 0


# --- originals ------------------------------------------------------------------

ID = 2**53 + 1


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64"])
def test_integers_beyond_doubles_are_unchanged_in_the_originals(dtype, mixed):
    # 2 ** 53 + 1 is no double; ids and nanoseconds lie there.
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    ids = ID + 2 * np.arange(60)
    nanoseconds = 1_700_000_000_000_000_000 + rng.integers(0, 10**15, 60)
    X = pd.DataFrame({"id": ids, "time": nanoseconds}).astype(dtype)
    if mixed:
        X["real"] = rng.normal(size=60)
    before = X.copy()
    X_new, _ = PNLSampler(random_state=0).fit_resample(X, LABELS)
    assert X_new.dtypes.tolist() == before.dtypes.tolist()
    assert X_new.iloc[:60].equals(before)
    assert [int(i) for i in X_new["id"][:60]] == ids.tolist()
    # New ones are as near as doubles get.
    assert X_new["id"][60:].between(ID - 1, ID + 121).all()
    assert X.equals(before)


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_originals_of_an_array_of_large_integers_are_unchanged(dtype):
    X = (ID + 2 * np.random.default_rng(0).integers(0, 99, (60, 3))).astype(dtype)
    X_new, _ = PNLSampler(random_state=0).fit_resample(X, LABELS)
    assert X_new.dtype == dtype
    assert_array_equal(X_new[:60], X)


@pytest.mark.parametrize("end", ["min", "max"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.uint8])
def test_integers_at_the_ends_of_their_type_do_not_wrap(dtype, end):
    limits = np.iinfo(dtype)
    X = np.full((40, 4), getattr(limits, end), dtype=dtype)
    X[::2, 1], X[::3, 2] = 0, limits.max // 2
    draws = MixupDraws(noise=1.0)
    rows = restored(X, draws=draws, range_slack=None)
    middle = float(limits.max) / 2
    assert (abs(rows[:, 0].astype(float) - float(X[0, 0])) < middle / 2 + 1).all()
    assert_array_equal(np.unique(rows[:, 3]), np.unique(rows[:, 0]))
