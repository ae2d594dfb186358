"""What is refused, with row, column and remedy; whose memory numbers are."""

import pickle
import re
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from _containers import Reader, common, equal, in_container, read, there_and_back
from numpy.testing import assert_array_equal

from sklearn_pnl.tables import columns_of, is_frame, read_table

pd = pytest.importorskip("pandas")

CONTAINERS = ["pandas", "polars", "pyarrow"]


# --- what is refused --------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", ["real", "count", "flag", "day", "zoned", "took"])
def test_missing_values_are_named(name, container):
    X = common().astype({"count": "Int64", "flag": "boolean"})
    X.loc[[7, 20], name] = None
    X = in_container(X, container)
    with pytest.raises(ValueError, match=f"NaN; .* row 7, column '{name}'.*Imputer"):
        read(X, "auto")


@pytest.mark.parametrize("value, word", [(np.nan, "NaN"), (-np.inf, "infinity")])
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
def test_the_first_value_that_is_none_is_named(make, place, value, word):
    X = np.ones((12, 6))
    X[3, 2], X[3, 4], X[5, 0] = value, np.nan, np.nan
    with pytest.raises(ValueError, match=f"{word}; the first is at {place}"):
        read(make(X))


def test_places_are_counted_in_X_beside_categories():
    X = np.ones((12, 4))
    X[3, 2] = np.nan
    for rows in (X, sp.csr_array(X), pd.DataFrame(X), X.astype(object)):
        with pytest.raises(ValueError, match="row 3, column 2"):
            read(rows, [0])


def test_a_large_sparse_matrix_is_never_dense_as_a_whole():
    rng = np.random.default_rng(0)
    places = rng.integers(0, 20_000, 10**5), rng.integers(0, 5000, 10**5)
    X = sp.csr_array((rng.random(10**5), places), shape=(20_000, 5000))
    tracemalloc.start()
    try:
        read(X).take(np.arange(100))
        X.data[5] = np.nan
        with pytest.raises(ValueError, match="NaN; the first is at row"):
            read(X)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "X, message",
    [
        (np.ones(9), "Expected 2D array, got 1D array"),
        (np.empty((0, 5)), r"0 sample\(s\)"),
        (np.ones((5, 3)) * 1j, "Complex data not supported"),
        (np.full((5, 3), "word"), "'numeric'.*Column 0 holds no numbers.*categorical"),
        ([[1, "a"], [2, "b"]], "Column 1 holds no numbers"),
        ([[1.0, 2.0], [3.0, None]], "NaN; the first is at row 1, column 1"),
        (np.zeros((5, 2), "datetime64[s]"), "times are columns of data frames"),
        (pd.DataFrame(index=range(9)), "9 rows and 0 columns"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\).*0 rows and 1 columns"),
        (pd.DataFrame({"z": [1j, 2]}), "Complex data not supported: Column 'z'"),
        (pd.DataFrame({"a": ["x", "y"]}), "Column 'a' .*holds no numbers.*='auto'"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        read(X)


def test_arrays_have_no_automatic_categories():
    assert read(np.ones((5, 3)), "auto").labels is None
    with pytest.raises(ValueError, match="rows of one axis"):
        read(np.ones((5, 3, 2)), [0])
    with pytest.raises(TypeError, match="Column 'tags'.*no categories: unhashable"):
        read(pd.DataFrame({"tags": [["a"], ["b"]] * 3}), "auto")


@pytest.mark.parametrize("make", [list, lambda X: np.array(X, dtype=object)])
def test_numbers_of_any_type_in_lists_and_objects_are_floats(make):
    X = make([[Decimal("0.5"), Fraction(1, 4)], [2**70, True]])
    table = read(X)
    assert table.numbers().tolist() == [[0.5, 0.25], [2.0**70, 1.0]]
    assert table.like(table.numbers()).dtype == np.float64


def test_lazy_frames_are_refused_with_what_to_do():
    pl = pytest.importorskip("polars")
    X = pl.LazyFrame({"a": [1.0, 2.0]})
    assert is_frame(X)
    with pytest.raises(TypeError, match="LazyFrame of polars.*collect it"):
        read(X)


def test_rows_of_another_shape_are_refused():
    table = read(common(), "auto")
    with pytest.raises(ValueError, match="X has 11 columns, but .* had 12"):
        table.read(common().drop(columns="word"))
    with pytest.raises(ValueError, match=r"rows of shape \(2,\), but .* \(3,\)"):
        read(np.ones((5, 3))).read(np.ones((5, 2)))


# --- estimators -------------------------------------------------------------------


def test_estimators_are_told_of_rows():
    estimator = Reader("auto")
    read_table(estimator, common())
    assert estimator.input_shape_ == (12,)
    assert estimator.n_features_in_ == 12
    assert estimator.feature_names_in_.tolist() == common().columns.tolist()
    table = read_table(estimator, pd.DataFrame(np.ones((5, 2))))
    assert not hasattr(estimator, "feature_names_in_")
    read_table(Reader(), np.ones((5, 2, 3))).describe(estimator)
    assert (estimator.input_shape_, estimator.n_features_in_) == ((2, 3), 2)
    assert table.feature_names == ("0", "1")
    assert read(np.ones((5, 2))).feature_names == ("x0", "x1")


# --- memory -----------------------------------------------------------------------


class Shared:
    """Rows that hand out their own memory."""

    ndim = 2

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype in (None, self.dtype) else self.array.astype(dtype)

    def __len__(self):
        return len(self.array)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8"])
def test_memory_of_others_is_not_owned(dtype):
    array = np.arange(20).reshape(5, 4).astype(dtype)
    for X in (array, Shared(array), array[::-1], memoryview(array), tuple(array)):
        table = read(X)
        shares = np.may_share_memory(table.numbers(), array)
        assert not (table.owned and shares)
    for X in (array, Shared(array), pd.DataFrame(array), pd.DataFrame(array[:, :1])):
        before = array.copy()
        parts = [read(X), read(X).take(np.arange(5)), read(X, [1][: X.shape[1] - 1])]
        for part in parts:
            if part.owned:
                part.numbers()[...] = -1
        assert_array_equal(array, before)
    assert read(array).owned == (dtype in ("f2", "i8"))
    # Lists are kept as one array, which the originals are returned from.
    listed = read(array.tolist())
    listed.take(np.arange(5)).numbers()[...] = -1
    assert listed.stack([listed.like(np.zeros((0, 4)))])[:5] == array.tolist()
    assert read(pd.DataFrame(array)).owned


def test_numbers_of_doubles_are_no_copy():
    X = np.ones((9, 4))
    assert np.shares_memory(read(X).numbers(), X)
    assert np.shares_memory(read(X).read(X), X)


def test_lists_come_back_as_lists_and_new_rows_as_arrays():
    X = np.random.default_rng(0).normal(size=(9, 3))
    table = read(X.tolist())
    new = table.like(table.numbers())
    assert equal(new, X)
    assert table.stack([new[:2]]) == [*X.tolist(), *X[:2].tolist()]
    objects = [[1.5, "a"], [2.5, "b"]]
    table = read(objects, [1])
    assert table.stack([there_and_back(table)]) == objects * 2


def test_without_rows_little_is_left():
    X = common(4000)
    table = read(X, "auto")
    bare = table.without_rows()
    assert len(pickle.dumps(bare)) < 40_000
    assert_array_equal(bare.read(X), table.numbers())
    again = pickle.loads(pickle.dumps(bare))
    assert equal(again.like(table.numbers(), np.arange(4000)), X)


def test_later_changes_of_rows_change_nothing():
    X = common()
    before, table = X.copy(), read(X, "auto").take(np.arange(40))
    X["word"], X["real"] = "nowhere", 0.0
    assert equal(there_and_back(table), before)


# --- objects and decimals ---------------------------------------------------------


def test_objects_are_restored_with_the_types_they_have():
    X = np.empty((8, 4), dtype=object)
    X[:, 0], X[:, 1] = [True, False] * 4, ["a", "b"] * 4
    X[:, 2], X[:, 3] = np.arange(8).tolist(), (np.arange(8) / 4).tolist()
    table = read(X, [1])
    assert equal(there_and_back(table), X)
    new = table.like(np.full((1, 3), 0.7), np.array([2]))
    assert new.tolist() == [[True, "a", 1, 0.7]]
    assert_array_equal(table.integer_features, [0, 2])
    assert_array_equal(table.columns, [0, 2, 3])


@pytest.mark.parametrize("gap", [None, np.nan])
@pytest.mark.parametrize(
    "values", [[True, False, False], [4, 2, 7], [10**30, 10**30 + 3, 10**30 + 9]]
)
def test_objects_with_gaps_are_restored_with_the_types_they_have(values, gap):
    X = pd.DataFrame({"some": [*values, gap], "x": np.arange(4.0)}, dtype=object)
    table = read_table(Reader(), X, missing=True)
    back = there_and_back(table)["some"].tolist()
    assert back == [*values, None]
    assert [*map(type, back[:3])] == [*map(type, values)]
    assert_array_equal(table.integer_features, [0])


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", ["Int64", "UInt64"])
def test_integers_that_doubles_do_not_hold_keep_their_digits_beside_gaps(
    dtype, container
):
    most = int(np.iinfo(dtype.lower()).max)
    column = pd.array([most - 9, None, most - 5], dtype=dtype)
    X = in_container(pd.DataFrame({"n": column, "x": [0.5, 1, 2]}), container)
    table = read_table(Reader(), X, missing=True)
    assert_array_equal(table.numbers()[:, 0], [0, np.nan, 4])
    assert equal(there_and_back(table), X)
    (beyond,) = columns_of(table.like(np.array([[50.0, 1]]))).objects(0)
    assert int(beyond) == most


def test_the_widest_integers_may_have_gaps():
    pl = pytest.importorskip("polars")
    for values in ([2**100, None, 2**100 + 3], [None] * 3):
        X = pl.DataFrame({"n": pl.Series(values, dtype=pl.Int128), "x": [0.5, 1, 2]})
        assert equal(there_and_back(read_table(Reader(), X, missing=True)), X)


@pytest.mark.parametrize("container", ["polars", "pyarrow"])
@pytest.mark.parametrize("dtype", ["Float64", "Float32"])
def test_nan_and_null_come_back_as_what_a_column_has(dtype, container):
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    columns = {
        "nan": [1.5, float("nan"), 2],
        "null": [1.5, None, 2],
        "whole": [1, 2, 3],
    }
    X = pl.DataFrame(columns).with_columns(pl.all().cast(getattr(pl, dtype)))
    rows = X if container == "polars" else X.to_arrow()
    back = there_and_back(read_table(Reader(), rows, missing=True))
    assert X.equals(pl.DataFrame(back))


@pytest.mark.parametrize("far", [0, 10**20])
def test_decimals_are_multiples_of_a_step(far):
    prices = [far + Decimal(k).scaleb(-2) for k in range(50)]
    table = read(pd.DataFrame({"price": prices, "x": np.arange(50.0)}))
    assert_array_equal(table.steps, [0.01, 0])
    assert_array_equal(table.precision, [0, 2.0**-53])
    assert table.starts[0] == far
    new = table.like(np.array([[0.13, 1.0]]))
    assert new["price"].tolist() == [far + Decimal("0.13")]
    # A type of objects holds what is asked for, as far as doubles know it.
    new = table.like(np.array([[0.128, 1.0]]))
    assert new["price"].tolist() == [far + Decimal("0.13" if far else "0.128")]


def test_decimals_are_read_from_floats_too():
    pandas = pytest.importorskip("pandas")
    prices = [Decimal(k) / 4 for k in range(9)]
    X = pandas.DataFrame({"price": prices, "n": range(9)})
    table = read(X)
    assert_array_equal(table.read(X.astype({"price": float})), table.numbers())


def test_decimals_that_are_missing_are_refused():
    prices = [Decimal(1), Decimal("NaN"), None]
    with pytest.raises(ValueError, match="NaN; .* row 1, column 'price'"):
        read(pd.DataFrame({"price": prices}))


def test_frames_of_a_subclass_stay_such():
    class Named(pd.DataFrame):
        @property
        def _constructor(self):
            return Named

    X = Named(common())
    assert type(there_and_back(read(X, "auto"))) is Named


@pytest.mark.parametrize(
    "names",
    [["a", "a", "b"], [2, 1, 0], [None, 1.5, ("a", 1)], [("a", 1), ("a", 2), ("b", 1)]],
    ids=str,
)
def test_names_may_be_anything(names):
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
    assert len(table.take([1]).like(table.numbers()[1:], [0])) == 1


@pytest.mark.parametrize("container", CONTAINERS)
def test_frames_of_narwhals_are_those_under_them(container):
    nw = pytest.importorskip("narwhals")
    X = in_container(common(), container)
    table = read(nw.from_native(X, eager_only=True), "auto")
    assert equal(there_and_back(table), X)


def test_messages_name_columns_that_cannot_be_read():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"i": pl.Series([1, 2] * 30, dtype=pl.Int128), "s": [[1]] * 60})
    with pytest.raises(ValueError) as error:
        read(X)
    assert re.search(r"Column 's' \(List\(Int64\)\) holds no numbers", str(error.value))
    assert equal(there_and_back(read(X.select("i"))), X.select("i"))


def test_integers_become_doubles_a_part_at_a_time():
    X = np.zeros((1000, 5000), np.uint8)
    tracemalloc.start()
    table = read(X)
    part = table.take(np.arange(10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # As doubles they are eight times as many bytes.
    assert peak < 2 * X.nbytes
    assert part.numbers().dtype == np.float64
    assert part.owned
    assert table.numbers().dtype == np.float64
