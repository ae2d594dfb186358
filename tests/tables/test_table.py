"""Tables: every container and type there and back, parts, labels, what is refused."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from _containers import FAR, FRAMES, N, equal, read, there_and_back
from numpy.testing import assert_array_equal

pd = pytest.importorskip("pandas")

# --- arrays -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 1)], ids=str)
@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "f2", "i8", "i4", "i1", "u1", "u4", "u8", "bool"]
)
def test_arrays_come_back(dtype, shape):
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
    if kind == "f":
        assert_array_equal(table.type_ends[1], np.full(n, np.inf))
    elif kind == "b":
        assert (table.type_ends[0][0], table.type_ends[1][0]) == (0, 1)
    else:
        assert table.type_ends[0][0] == np.iinfo(dtype).min
        assert table.type_ends[1][0] <= np.iinfo(dtype).max


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "bool"])
def test_sparse_rows_come_back(make, dtype):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((N, 6)) < 0.6, 0, rng.integers(1, 9, (N, 6)))
    X = make(dense.astype(dtype))
    table = read(X)
    back = there_and_back(table)
    assert sp.issparse(back)
    assert back.dtype == dtype
    if make is not sp.coo_array:
        assert equal(back, X)
    assert_array_equal(table.numbers(), dense.astype(dtype))
    whole = table.stack([back])
    assert_array_equal(whole.toarray(), np.vstack([dense, dense]).astype(dtype))
    part = table.take([3, 5])
    assert_array_equal(part.numbers(), dense[[3, 5]].astype(dtype))
    assert table.owned and part.owned


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_integers_that_are_no_doubles_are_exact_near_their_least(dtype):
    ids = FAR + np.arange(N)
    X = np.column_stack([ids, np.full(N, FAR), np.arange(N)]).astype(dtype)
    for rows in (X, sp.csr_array(X), pd.DataFrame(X), X.reshape(N, 3, 1)):
        table = read(rows)
        assert equal(there_and_back(table), rows)
        assert_array_equal(table.read(rows), table.numbers())
        assert_array_equal(table.starts, [FAR, FAR, 0])
        assert_array_equal(table.numbers()[:, 1], np.zeros(N))
        lower = table.like(np.full((1, 3), -7.0))
        lower = lower.toarray() if sp.issparse(lower) else np.asarray(lower)
        least = [FAR - 7, FAR - 7, -7 if dtype == "i8" else 0]
        assert_array_equal(lower.ravel(), np.array(least, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.uint8, bool])
def test_new_numbers_are_clipped_to_the_type(dtype):
    X = np.array([[0], [1]], dtype=dtype)
    ends = (0, 1) if dtype is bool else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    new = read(X).like(np.array([[-1e30], [1e30], [0.6]])).ravel().tolist()
    assert new[0] == ends[0]
    assert ends[1] * (1 - 2.0**-52) <= new[1] <= ends[1]
    assert new[2] == 1
    far = np.full((3, 1), ends[1], dtype=dtype)
    new = read(far).like(np.array([[1.0], [1e30], [0.0]])).ravel()
    # Those of 64 bits count from their least.
    if ends[1] > 2**53:
        assert_array_equal(new, far.ravel())


def test_numbers_are_rounded_and_not_cut():
    X = np.arange(12).reshape(4, 3)
    assert_array_equal(read(X).like(np.full((2, 3), 2.7)), np.full((2, 3), 3))


# --- frames -----------------------------------------------------------------------


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_frames_come_back(make):
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
    # A part of the rows has rows of its own, of the same types.
    members = np.arange(3, N, 4)
    part = table.take(members, "class 'a'")
    rows = X.iloc[members].reset_index(drop=True) if hasattr(X, "iloc") else None
    rows = X[members] if rows is None and hasattr(X, "height") else rows
    rows = X.take(members) if rows is None else rows
    assert equal(there_and_back(part), rows)
    assert_array_equal(part.row_numbers, members)
    assert_array_equal(part.take([1]).row_numbers, members[[1]])
    assert (part.whose, table.whose) == ("class 'a'", "the training data")
    assert part.owned


def test_rows_of_other_types_are_read_as_numbers():
    table = read(np.array([[2**63 + 5], [2**63 + 9]], dtype=np.uint64))
    for other in ([[-3]], [[-3.0]], np.array([[-3]], dtype=np.int8)):
        assert table.read(other)[0, 0] == -3.0 - 2.0**63
    assert read(np.array([[1], [2]], np.uint8)).read([[-3.5]])[0, 0] == -3.5
    assert np.isnan(read(np.ones((2, 1))).read([[None]])).all()
