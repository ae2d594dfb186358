"""Categories of tables: whole numbers that tell values apart, and the values again."""

import numpy as np
import pytest
import scipy.sparse as sp
from _containers import equal, in_container, read, there_and_back
from numpy.testing import assert_array_equal

from sklearn_pnl.tables.categories import level_codes

pd = pytest.importorskip("pandas")

CONTAINERS = ["pandas", "polars", "pyarrow"]
NAN = float("nan")


@pytest.mark.parametrize(
    "values, codes",
    [
        (["b", "a", "b"], [0, 1, 0]),
        ([None, NAN, "a", pd.NA, pd.NaT], [0, 0, 1, 0, 0]),
        ([True, 1, 1.0, True, 1], [0, 1, 2, 0, 1]),
        ([NAN, 1.0, None, 1.0], [0, 1, 0, 1]),
        ([("a", 1), ("a", 2), ("a", 1)], [0, 1, 0]),
        ([], []),
    ],
    ids=str,
)
def test_codes_tell_values_apart(values, codes):
    found, first = level_codes(values)
    assert found.tolist() == codes
    assert first.tolist() == [codes.index(k) for k in range(len(set(codes)))]


@pytest.mark.parametrize("container", CONTAINERS)
def test_missing_values_are_a_category(container):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "word": rng.choice(["a", "b", None], 40),
            "level": pd.Categorical(rng.choice(["u", "v", None], 40), ["w", "v", "u"]),
            "x": rng.normal(size=40),
            "flag": pd.array(rng.choice([True, False, None], 40), dtype="boolean"),
            "day": pd.Series(rng.choice([0, 1, None], 40)).astype("datetime64[us]"),
        }
    )
    X = in_container(X, container)
    table = read(X, ["word", "level", "flag", "day"])
    assert table.labels.shape == (40, 4)
    assert equal(there_and_back(table), X)
    donors = np.array([5, 5, 3])
    new = table.like(table.numbers()[donors], donors)
    rows = X.iloc[donors].reset_index(drop=True) if container == "pandas" else None
    rows = X[donors] if container == "polars" else rows
    assert equal(new, X.take(donors) if rows is None else rows)


@pytest.mark.parametrize("container", [*CONTAINERS, "objects"])
def test_tables_of_categories_alone_are_refused(container):
    X = pd.DataFrame({"a": ["x", "y", "x"], "b": ["u", "u", "v"]})
    objects = container == "objects"
    X = X.to_numpy(dtype=object) if objects else in_container(X, container)
    with pytest.raises(ValueError, match="All columns are categories"):
        read(X, [0, 1] if objects else "auto")


def test_labels_of_a_part_are_those_of_its_rows():
    X = pd.DataFrame({"a": ["x", "y", "x", "z"], "b": [1.0, 2.0, 3.0, 4.0]})
    table = read(X, "auto")
    assert table.labels.tolist() == [[0], [1], [0], [2]]
    part = table.take([3, 0])
    assert part.labels.tolist() == [[2], [0]]
    assert part.like(np.ones((1, 1)), [0])["a"].tolist() == ["z"]


def test_numbers_of_arrays_are_categories_where_they_are_named():
    X = np.column_stack([[1.5, 2.5, 3.5], [7, 5, 7]])
    table = read(X, [1])
    assert_array_equal(table.numbers(), X[:, :1])
    assert equal(table.like(np.array([[9.0]]), [1]), np.array([[9.0, 5.0]]))


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_times_that_are_categories_differ_by_nanoseconds(container):
    pl = pytest.importorskip("polars")
    ticks = pl.Series([1, 2, 1001, 1])
    X = pl.DataFrame(
        {
            "time": ticks.cast(pl.Time),
            "when": ticks.cast(pl.Datetime("ns")),
            "zoned": ticks.cast(pl.Datetime("ns", "Europe/Paris")),
            "took": ticks.cast(pl.Duration("ns")),
            "x": [1.0, 2.0, 3.0, 4.0],
        }
    )
    if container == "pyarrow":
        X = X.to_arrow()
    elif container == "pandas":
        X = X.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)
    table = read(X, ["time", "when", "zoned", "took"])
    assert table.labels.T.tolist() == [[0, 1, 2, 0]] * 4
    assert equal(there_and_back(table), X)


@pytest.mark.parametrize("type_of_time", ["time32[s]", "time32[ms]", "time64[us]"])
def test_times_of_day_of_any_unit_may_be_categories(type_of_time):
    pa = pytest.importorskip("pyarrow")
    ticks = pa.array([5, 7, None, 5], pa.type_for_alias(type_of_time))
    X = pa.table({"time": ticks, "x": [1.0] * 4})
    table = read(X, ["time"])
    assert table.labels.ravel().tolist() == [0, 1, 2, 0]
    assert equal(there_and_back(table), X)


def test_objects_of_polars_may_be_categories_alone():
    pl = pytest.importorskip("polars")
    values = pl.Series("o", [1, "a", (1,)], dtype=pl.Object)
    X = pl.DataFrame({"o": values, "x": [1.0, 2.0, 3.0]})
    back = there_and_back(read(X, "auto"))
    assert back["o"].to_list() == X["o"].to_list()
    assert back.schema == X.schema
    with pytest.raises(ValueError, match="Column 'o'.*Object.* holds no numbers"):
        read(X)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
def test_sparse_rows_may_have_categories(make):
    X = make(np.array([[1.5, 2, 0], [0, 3, 1.0], [0, 2, 4]]))
    table = read(X, [1])
    assert table.labels.tolist() == [[0], [1], [0]]
    assert equal(there_and_back(table), X)
    assert_array_equal(table.take([2]).numbers(), [[0, 4]])
