"""Reading of rows as tables: invalid rows, extreme values, and restored containers."""

import pickle
import tracemalloc
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from _containers import (
    FAR,
    FRAMES,
    N,
    Reader,
    common,
    equal,
    exotic,
    in_container,
    read,
    there_and_back,
)
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import ManyBodyImputer, PNLAugmenter, PNLSampler, compare_samples
from sklearn_pnl.frames import TableReader, read_table, warn_extreme_values

pd = pytest.importorskip("pandas")
CONTAINERS = ["pandas", "polars", "pyarrow"]


# --- arrays -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i1", "u1", "u2", "bool"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, pd.DataFrame])
def test_rows_are_stored_in_the_size_of_their_dtype(dtype, container):
    X = (99 * np.random.default_rng(0).uniform(size=(N, 3)) - 9).clip(0).astype(dtype)
    X[0] = [0, 0, 1]
    table = read_table(TableReader(None), container(X), keeps_sparse=True)
    stored = table.compressed(table.numbers().astype(float))
    assert stored.dtype.itemsize == np.dtype(dtype).itemsize
    values = stored.toarray() if sp.issparse(stored) else stored
    assert_array_equal(values.astype(float), X.astype(float))
    assert equal(table.like(stored), table.like(table.numbers()))


def test_rows_of_several_types_are_stored_in_the_smallest_common_type():
    columns = {
        "u": np.array([0, 255, 7], "u1"),
        "i": np.array([-128, 127, 0], "i1"),
        "b": np.array([True, False, True]),
    }
    for more, expected in (
        ({}, "i2"),
        ({"f": np.array([0.1, 1e30, 3], "f4")}, "f4"),
        ({"i4": np.array([2**31 - 1, 5, -(2**31)], "i4")}, "i4"),
        ({"f": np.array([0.1, 1, 3], "f4"), "i4": np.array([2**31 - 1, 5, 0])}, "f8"),
        ({"i8": np.array([2**53 + 1, 2**53 + 3, 2**53 + 6])}, "f8"),
        ({"day": pd.to_datetime(["2020-01-01", "2021-01-01", "2020-02-03"])}, "f8"),
        ({"i": pd.array([1, None, 3], dtype="Int8")}, "f8"),
    ):
        frame = pd.DataFrame(columns | more)
        table = read_table(TableReader(), frame, missing=True)
        stored = table.compressed(table.numbers().copy())
        assert stored.dtype == expected
        pd.testing.assert_frame_equal(table.like(stored), frame)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 1)], ids=str)
@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "f2", "i8", "i4", "i1", "u1", "u4", "u8", "bool"]
)
def test_arrays_are_restored(dtype, shape):
    X = (9 * np.random.default_rng(0).uniform(size=(N, *shape))).astype(dtype)
    table = read(X)
    assert equal(there_and_back(table), X)
    assert table.shape == table.row_shape == shape
    n = int(np.prod(shape))
    kind = X.dtype.kind
    assert_array_equal(table.columns, np.arange(n))
    assert_array_equal(table.steps, np.full(n, float(kind in "iub")))
    unit = {"f8": 2.0**-53, "f4": 2.0**-24, "f2": 2.0**-11}.get(dtype, 0)
    assert_array_equal(table.precision, np.full(n, unit))
    numbers = table.numbers()
    assert numbers.shape == (N, n)
    assert numbers.dtype == (np.float32 if dtype in ("f4", "f2") else np.float64)
    assert table.owned == (dtype not in ("f8", "f4"))
    ends = {"f": (-np.inf, np.inf), "b": (0, 1)}.get(kind)
    ends = (np.iinfo(dtype).min, np.iinfo(dtype).max) if ends is None else ends
    assert table.type_bounds[0][0] == ends[0]
    assert table.type_bounds[1][0] <= ends[1]


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "bool"])
def test_sparse_rows_are_restored(make, dtype):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((N, 6)) < 0.6, 0, rng.integers(1, 9, (N, 6)))
    X = make(dense.astype(dtype))
    table = read(X)
    back = there_and_back(table)
    assert sp.issparse(back)
    assert back.dtype == dtype
    assert make is sp.coo_array or equal(back, X)
    assert_array_equal(table.numbers(), dense.astype(dtype))
    whole = table.stack([back])
    assert_array_equal(whole.toarray(), np.vstack([dense, dense]).astype(dtype))
    part = table.take([3, 5], "part")
    assert_array_equal(part.numbers(), dense[[3, 5]].astype(dtype))
    assert table.owned and part.owned


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_large_integers_are_exact_relative_to_their_minimum(dtype):
    ids = FAR + np.arange(N)
    X = np.column_stack([ids, np.full(N, FAR), np.arange(N)]).astype(dtype)
    for rows in (X, pd.DataFrame(X)):
        table = read(rows)
        assert equal(there_and_back(table), rows)
        assert_array_equal(table.read(rows), table.numbers())
        assert_array_equal(table.starts, [FAR, FAR, 0])
        assert_array_equal(table.numbers()[:, 1], np.zeros(N))
        lower = np.asarray(table.like(np.full((1, 3), -7.0)))
        least = [FAR - 7, FAR - 7, -7 if dtype == "i8" else 0]
        assert_array_equal(lower.ravel(), np.array(least, dtype=dtype))
    for rows in (X[:, :2], X[:, :2].reshape(N, 2, 1)):
        assert equal(there_and_back(read(rows)), rows)
    # Arrays with more axes and sparse matrices have one origin for all columns.
    for rows in (sp.csr_array(X), X.reshape(N, 3, 1)):
        with pytest.warns(UserWarning, match=r"2\*\*53"):
            table = read(rows)
        new = there_and_back(table)
        new = (new.toarray() if sp.issparse(new) else new).reshape(N, 3)
        assert_array_equal(new.astype(float), X.astype(float))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.uint8, bool])
def test_new_numbers_are_rounded_and_clipped_to_the_type(dtype):
    X = np.array([[0], [1]], dtype=dtype)
    ends = (0, 1) if dtype is bool else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    new = read(X).like(np.array([[-1e30], [1e30], [0.6]])).ravel().tolist()
    assert new[0] == ends[0]
    assert ends[1] * (1 - 2.0**-52) <= new[1] <= ends[1]
    assert new[2] == 1
    far = np.full((3, 1), ends[1], dtype=dtype)
    new = read(far).like(np.array([[1.0], [1e30], [0.0]])).ravel()
    # Integers of 64 bits are stored as differences from their minimum.
    assert ends[1] <= 2**53 or (new == far.ravel()).all()


@pytest.mark.parametrize("make", [list, lambda X: np.array(X, dtype=object)])
def test_numbers_of_any_type_in_lists_and_objects_are_floats(make):
    X = make([[Decimal("0.5"), Fraction(1, 4)], [2**70, True]])
    table = read(X)
    assert table.numbers().tolist() == [[0.5, 0.25], [2.0**70, 1.0]]
    assert table.like(table.numbers()).dtype == np.float64


# --- frames -----------------------------------------------------------------------


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_frames_are_restored(make):
    X = make()
    table = read(X, "auto")
    assert equal(there_and_back(table), X)
    again = pickle.loads(pickle.dumps(table))
    assert equal(there_and_back(again), X)
    whole = table.stack([there_and_back(table)])
    first = whole.iloc[:N] if hasattr(whole, "iloc") else whole[:N]
    assert equal(first, X)
    assert len(whole) == 2 * N
    assert_array_equal(table.read(X), table.numbers())
    # A part of the rows has its own rows, of the same types.
    members = np.arange(3, N, 4)
    part = table.take(members, "class 'a'")
    rows = X.iloc[members].reset_index(drop=True) if hasattr(X, "iloc") else None
    rows = X[members] if rows is None and hasattr(X, "height") else rows
    rows = X.take(members) if rows is None else rows
    assert equal(there_and_back(part), rows)
    assert_array_equal(part.row_numbers, members)
    assert (part.data_name, table.data_name) == ("class 'a'", "the training data")
    assert part.owned


@pytest.mark.parametrize("container", ["objects", *CONTAINERS])
def test_decimals_and_large_objects_are_read_as_float64(container):
    X = exotic()[container]
    table = read(X)
    assert (table.steps == 0).all()
    new = table.like(table.numbers() + 0.004)
    whole = table.stack([new])
    first = whole.iloc[:N] if hasattr(whole, "iloc") else whole[:N]
    assert equal(first, X)
    # Values are as near as the type of the column permits; mixed objects become floats.
    if container == "objects":
        assert {*map(type, new["price"])} == {Decimal}
        assert {*map(type, new["mixed"])} == {float}
    else:
        assert equal(new, X)


@pytest.mark.parametrize("container", CONTAINERS)
def test_narwhals_frames_return_the_native_frame(container):
    nw = pytest.importorskip("narwhals")
    X = in_container(common(), container)
    table = read(nw.from_native(X, eager_only=True), "auto")
    assert equal(there_and_back(table), X)


@pytest.mark.parametrize(
    "names",
    [["a", "a", "b"], [2, 1, 0], [None, 1.5, ("a", 1)], [("a", 1), ("a", 2), ("b", 1)]],
    ids=str,
)
def test_column_names_can_have_any_type(names):
    columns = [1.0, 2.0], [1, 2], ["u", "v"]
    X = pd.concat([pd.Series(column) for column in columns], axis=1)
    X.columns = pd.Index(names, tupleize_cols=isinstance(names[0], tuple))
    table = read(X, "auto")
    back = there_and_back(table)
    assert back.columns.equals(X.columns)
    assert equal(back.set_axis([0, 1, 2], axis=1), X.set_axis([0, 1, 2], axis=1))
    assert table.stack([back]).shape == (4, 3)
    assert table.names == list(X.columns)
    assert table.feature_names == tuple(map(str, names[:2]))
    assert len(table.take([1], "part").like(table.numbers()[1:], [0])) == 1


# --- memory -----------------------------------------------------------------------


class Shared:
    """Rows that return their own memory."""

    ndim = 2

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype in (None, self.dtype) else self.array.astype(dtype)

    def __len__(self):
        return len(self.array)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8"])
def test_shared_memory_is_not_owned_by_the_table(dtype):
    array = np.arange(20).reshape(5, 4).astype(dtype)
    for X in (array, Shared(array), array[::-1], memoryview(array), tuple(array)):
        table = read(X)
        shares = np.may_share_memory(table.numbers(), array)
        assert not (table.owned and shares)
    for X in (array, Shared(array), pd.DataFrame(array), pd.DataFrame(array[:, :1])):
        before = array.copy()
        parts = [
            read(X),
            read(X).take(np.arange(5), "part"),
            read(X, [1][: X.shape[1] - 1]),
        ]
        for part in parts:
            if part.owned:
                part.numbers()[...] = -1
        assert_array_equal(array, before)
    assert read(array).owned == (dtype in ("f2", "i8"))
    # Lists are stored as one array, from which the original rows are returned.
    listed = read(array.tolist())
    listed.take(np.arange(5), "part").numbers()[...] = -1
    assert listed.stack([listed.like(np.zeros((0, 4)))])[:5] == array.tolist()


def test_stacked_lists_are_lists_and_new_rows_are_arrays():
    X = np.random.default_rng(0).normal(size=(9, 3))
    table = read(X.tolist())
    new = table.like(table.numbers())
    assert equal(new, X)
    assert table.stack([new[:2]]) == [*X.tolist(), *X[:2].tolist()]
    objects = [[1.5, "a"], [2.5, "b"]]
    table = read(objects, [1])
    assert table.stack([there_and_back(table)]) == objects * 2


def test_a_table_without_rows_is_small():
    X = common(4000).assign(objects=pd.Series([True, False] * 2000, dtype=object))
    table = read(X, "auto")
    bare = table.without_rows()
    assert len(pickle.dumps(bare)) < 50_000
    assert_array_equal(bare.read(X), table.numbers())
    again = pickle.loads(pickle.dumps(bare))
    assert equal(again.like(table.numbers(), np.arange(4000)), X)


def test_integers_are_converted_to_float64_in_parts():
    X = np.zeros((1000, 5000), np.uint8)
    tracemalloc.start()
    table = read(X)
    part = table.take(np.arange(10), "part")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # As float64, the rows need eight times as many bytes.
    assert peak < 2 * X.nbytes
    assert part.owned
    assert_allclose(part.numbers(), 0)
    assert table.numbers().dtype == np.float64


def test_a_large_sparse_matrix_is_not_converted_to_dense():
    rng = np.random.default_rng(0)
    places = rng.integers(0, 20_000, 10**5), rng.integers(0, 5000, 10**5)
    X = sp.csr_array((rng.random(10**5), places), shape=(20_000, 5000))
    tracemalloc.start()
    try:
        read(X).take(np.arange(100), "part")
        X.data[5] = np.nan
        with pytest.raises(ValueError):
            read(X)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("container", ["array", "sparse", "images", *FRAMES])
def test_empty_tables_are_restored(container):
    if container in FRAMES:
        X = FRAMES[container]()
    else:
        X = np.arange(24.0).reshape(4, 6)
        X = {"sparse": sp.csr_array, "images": lambda X: X.reshape(4, 2, 3)}.get(
            container, np.asarray
        )(X)
    table = read(X, "auto" if container in FRAMES else None, missing=True)
    none = table.take(np.arange(0), "no class")
    assert len(none) == 0
    for rows in none.numbers(), table.numbers()[:0]:
        new = table.like(rows.copy(), np.arange(0))
        assert type(new) is type(X)
        assert new.shape == (0, *X.shape[1:])
        assert table.read(new).shape == (0, len(table.columns))
        assert equal(table.stack([new]), table.stack([]))


NO_DATA = float(np.finfo(np.float32).min)


def read_gaps(X):
    return read_table(TableReader(None), X, missing=True)


def warn(table, of=None):
    """Warn about a table, within the bounds of another table."""
    numbers = (table if of is None else of).numbers().astype(float)
    warn_extreme_values(table, np.nanmin(numbers, axis=0), np.nanmax(numbers, axis=0))


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.lognormal(3, 1, (3000, 4))
    X[::7] = np.nan
    X[:, 2] = 1.0
    X[rng.uniform(size=3000) < 0.6, 3] = 0.0
    return X


@pytest.mark.parametrize("column", [0, 3])
@pytest.mark.parametrize("value", [NO_DATA, -9.96921e36, 1e20, -1e13])
@pytest.mark.parametrize("rows", [[5], [0, 1, 2999], np.s_[:300], np.s_[::9]])
@pytest.mark.parametrize("scale", [1e-300, 1.0])
def test_extreme_values_raise_a_warning_with_the_column(X, column, value, rows, scale):
    warn(read_gaps(X * scale))
    X[rows, column] = value
    end = "smallest" if value < 0 else "largest"
    with pytest.warns(UserWarning, match=f"{end} value in column {column} "):
        warn(read_gaps(X * scale))


def test_extreme_values_of_nearly_constant_columns_raise_no_warning(X):
    X[5, 2] = 1e300
    warn(read_gaps(X))
    X[1:, 0] = 0
    warn(read_gaps(X))


@pytest.mark.filterwarnings("ignore:Integers beyond")
def test_extreme_integers_and_times_raise_a_warning():
    rng = np.random.default_rng(0)
    whole = rng.integers(1, 400, 300)
    whole[10:15] = np.iinfo(np.int64).min
    with pytest.warns(UserWarning, match="column 1 "):
        warn(read(np.column_stack([np.arange(300), whole])))
    seconds = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(600, size=300))
    frame = pd.DataFrame({"at": seconds.to_series(index=range(300))})
    warn(read(frame))
    frame.loc[7, "at"] = pd.Timestamp("1970-01-01")
    with pytest.warns(UserWarning, match="column 'at'"):
        warn(read(frame))


def test_rows_of_a_class_are_compared_with_the_range_of_all_rows():
    X = np.random.default_rng(0).normal(size=(100, 2))
    X[:40, 1] = 1e30
    whole = read_gaps(X)
    with pytest.warns(UserWarning, match="column 1"):
        warn(whole.take(np.arange(60, 100), "class 1"), of=whole)
    warn(whole.take(np.arange(60, 100), "class 1"))
    warn(whole.take(np.arange(0), "no class"), of=whole)
    warn(read(sp.csr_array(X)))


@pytest.mark.parametrize("seed", range(3))
def test_augmenter_and_sampler_warn_once(seed):
    X = np.random.default_rng(seed).normal(size=(90, 3))
    X[4:9, 1] = NO_DATA
    y = np.repeat([0, 1, 2], [60, 15, 15])
    for fit in (PNLAugmenter().fit, PNLSampler(random_state=0).fit_resample):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(X) if fit.__name__ == "fit" else fit(X, y)
        assert ["column 1" in str(w.message) for w in caught] == [True]


def test_an_extreme_value_among_many_zeros_raises_a_warning():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((20_000, 1)) < 0.99, 0, rng.exponential(size=(20_000, 1)))
    X = np.hstack([X, rng.normal(size=X.shape)])
    X[5, 0] = 1e12
    with pytest.warns(UserWarning, match="column 0"):
        PNLAugmenter().fit(X)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", ["real", "count", "flag", "day", "zoned", "took"])
def test_missing_values_are_named(name, container):
    X = common().astype({"count": "Int64", "flag": "boolean"})
    X.loc[[7, 20], name] = None
    X = in_container(X, container)
    with pytest.raises(ValueError, match=f"row 7, column '{name}'"):
        read(X, "auto")


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize(
    "make, place",
    [
        (np.asarray, "row 3, column 2."),
        (list, "row 3, column 2."),
        (sp.csr_array, "row 3, column 2."),
        (sp.csc_array, "row 3, column 2."),
        (lambda X: X.reshape(12, 3, 2), r"row 3, cell \(1, 0\)."),
        (pd.DataFrame, "row 3, column 2."),
    ],
)
def test_the_first_value_that_is_not_finite_is_named(make, place, value):
    X = np.ones((12, 6))
    X[3, 2], X[3, 4], X[5, 0] = value, np.nan, np.nan
    with pytest.raises(ValueError, match=place):
        read(make(X))


def test_infinity_among_decimals_is_named():
    prices = [Decimal("0.25"), Decimal("-Infinity")]
    with pytest.raises(ValueError, match="row 1, column 'p'"):
        read(pd.DataFrame({"p": prices, "x": 1.0}))


def test_columns_in_errors_include_categorical_columns():
    X = np.ones((12, 4))
    X[3, 2] = np.nan
    for rows in (X, sp.csr_array(X), pd.DataFrame(X), X.astype(object)):
        with pytest.raises(ValueError, match="row 3, column 2"):
            read(rows, [0])


def objects(rows):
    """Make an array (n,) of rows."""
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


NUMBERS = np.ones((5, 3))
WORDS = np.column_stack([NUMBERS.astype(str), list("abcde")])
RAGGED = [np.ones((2, n)) for n in (4, 4, 5)]


@pytest.mark.parametrize(
    "X, place",
    [
        (WORDS, "Column 3 .*row 0"),
        (WORDS[:, :, None], r"Cell \(3, 0\) .*row 0"),
        ([[1, "a"], [2, "b"]], "Column 1 .*row 0"),
        (objects(RAGGED)[:, None], "Column 0"),
        (RAGGED, r"row 0 .*\(2, 4\) and row 2 .*\(2, 5\)"),
        ([[1.0, 2], [3.0]], r"row 0 .*\(2,\) and row 1 .*\(1,\)"),
        ([[[1], [2, 3]]] * 2, "Row 0"),
        ([[1.0, 2.0], [3.0, None]], "row 1, column 1"),
        (np.array([[10**400, 1]], dtype=object), "Column 0"),
        (pd.DataFrame({"a": ["x", "y"]}), "Column 'a'"),
        (pd.DataFrame({"s": [[1], [2]]}), "Column 's'"),
    ],
    ids=str,
)
def test_columns_that_are_not_numeric_are_named(X, place):
    with pytest.raises(ValueError, match=place):
        read(X)


@pytest.mark.parametrize(
    "X",
    [
        sp.csr_array(NUMBERS * 1j),
        pd.DataFrame({"z": [1j, 2]}),
        WORDS[:, :3],
        np.zeros((5, 2), "datetime64[s]"),
    ],
    ids=str,
)
def test_non_numeric_types_are_rejected(X):
    with pytest.raises((TypeError, ValueError)):
        read(X)


@pytest.mark.parametrize(
    "X",
    [
        np.ones((5, 3, 2)),
        WORDS,
        RAGGED,
        [[1, 2], [3]],
        NUMBERS * 1j,
        np.zeros((5, 2), "datetime64[s]"),
    ],
    ids=str,
)
def test_categories_require_a_table(X):
    with pytest.raises(ValueError):
        read(X, [0])


def test_arrays_have_no_automatic_categories():
    assert read(np.ones((5, 3)), "auto").labels is None
    with pytest.raises(TypeError, match="Column 'tags': Row 0"):
        read(pd.DataFrame({"tags": [["a"], ["b"]] * 3}), "auto")


def test_lazy_frames_are_rejected():
    pl = pytest.importorskip("polars")
    X = pl.LazyFrame({"a": [1.0, 2.0]})
    for call in (read, ManyBodyImputer().fit, partial(compare_samples, X_new=X)):
        with pytest.raises(TypeError, match="LazyFrame"):
            call(X)
    with pytest.raises(ValueError):
        read(pl.Series([1.0, 2.0]))


def test_attributes_of_estimators_are_set():
    estimator = Reader("auto")
    read_table(estimator, common())
    assert estimator.input_shape_ == (12,)
    assert estimator.n_features_in_ == 12
    assert estimator.feature_names_in_.tolist() == common().columns.tolist()
    estimator = Reader("auto")
    table = read_table(estimator, pd.DataFrame(np.ones((5, 2))))
    assert not hasattr(estimator, "feature_names_in_")
    read_table(Reader(), np.ones((5, 2, 3))).describe(estimator)
    assert (estimator.input_shape_, estimator.n_features_in_) == ((2, 3), 2)
    assert table.feature_names == ("0", "1")
    assert read(np.ones((5, 2))).feature_names == ("x0", "x1")


def test_record_batches_are_rejected_with_a_remedy():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    batch = pa.RecordBatch.from_pydict({"x": np.arange(8.0)})
    with pytest.raises(TypeError, match=r"pyarrow.Table.from_batches\(\[X\]\)"):
        read(batch)
    assert len(read(pa.Table.from_batches([batch]))) == 8
