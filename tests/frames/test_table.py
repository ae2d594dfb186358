"""Tables restore every container and dtype; subsets and ownership of memory."""

import pickle
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from _containers import (
    FAR,
    FRAMES,
    N,
    common,
    equal,
    exotic,
    in_container,
    read,
    there_and_back,
)
from numpy.testing import assert_allclose, assert_array_equal

pd = pytest.importorskip("pandas")

CONTAINERS = ["pandas", "polars", "pyarrow"]


# --- arrays -----------------------------------------------------------------------


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
