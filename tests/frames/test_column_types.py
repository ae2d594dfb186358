"""Missing cells are restored with the marker of the container, dtype and column."""

import numpy as np
import pytest
import scipy.sparse as sp
from _containers import equal, in_container, read, there_and_back
from numpy.testing import assert_array_equal

from sklearn_pnl.control import calibrate

pd = pytest.importorskip("pandas")

CONTAINERS = ["pandas", "polars", "pyarrow"]
N = 8
DAYS = pd.Series(pd.date_range("2020-01-01", periods=N, freq="3D"))


def with_gaps(values, dtype):
    """Make a column of a type in which the third and sixth value are missing."""
    column = pd.Series(values).astype(dtype)
    column.iloc[[2, 5]] = None
    return column


def typed():
    """Make columns of all types, each with missing cells."""
    numbers, flags = np.arange(N), np.arange(N) % 3 == 0
    floats = ["f8", "f4", "Float64", "Float32", "double[pyarrow]"]
    whole = ["Int64", "Int8", "UInt64", "int32[pyarrow]"]
    columns = {t: with_gaps(numbers / 4, t) for t in floats}
    columns |= {t: with_gaps(numbers, t) for t in whole}
    columns |= {t: with_gaps(flags, t) for t in ["boolean", "bool[pyarrow]"]}
    columns |= {
        "half": with_gaps(numbers / 4, "f2"),
        "day": with_gaps(DAYS, "datetime64[ms]"),
        "zoned": with_gaps(DAYS, "datetime64[us]").dt.tz_localize("Asia/Tokyo"),
        "took": with_gaps(DAYS - DAYS[0], "timedelta64[ns]"),
        "arrow time": with_gaps(DAYS, "timestamp[us][pyarrow]"),
        "word": with_gaps(list("abcabcab"), "str"),
        "text": with_gaps(list("abcabcab"), "string[pyarrow]"),
        "level": with_gaps(list("abcabcab"), "category"),
        "whole": pd.Series(np.full(N, np.nan)),
        "no time": pd.Series(np.full(N, None), dtype="datetime64[ns]"),
    }
    return columns


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", typed())
def test_types_preserve_their_missing_value_marker(name, container):
    if name == "half" and container != "pandas":
        pytest.skip("no such type")
    X = in_container(
        pd.DataFrame({name: typed()[name], "x": np.arange(N) / 3}), container
    )
    table = read(X, "auto", missing=True)
    assert table.has_missing == (name not in ("word", "text", "level"))
    assert equal(there_and_back(table), X)
    assert np.isnan(table.read(X)).tolist() == np.isnan(table.numbers()).tolist()
    assert equal(there_and_back(table.take(np.arange(N), "part")), X)


OBJECTS = {
    "flags": [True, False, True, True],
    "integers": [4, 2, 7, 2**40],
    "floats": [0.5, 2.0, 7.25, 1.0],
    "strings": ["a", "b", "a", "c"],
}


@pytest.mark.parametrize("marker", [None, np.nan, pd.NA, pd.NaT], ids=str)
@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("in_array", [True, False])
def test_objects_preserve_their_types_and_missing_value_marker(in_array, kind, marker):
    values = [*OBJECTS[kind], marker, marker]
    rows = pd.DataFrame({"some": values, "x": np.arange(6.0)}, dtype=object)
    strings = ["some"] if kind == "strings" else []
    if in_array:
        rows, strings = rows.to_numpy(), [0] if strings else []
    table = read(rows, strings, missing=True)
    back = there_and_back(table)
    column = back[:, 0].tolist() if in_array else back["some"].tolist()
    assert [*map(type, column)] == [*map(type, values)]
    assert column[:4] == values[:4]
    assert all(value is marker or value != value for value in column[4:])
    whole = kind in ("flags", "integers")
    assert table.integer_features.tolist() == [0] * whole


@pytest.mark.parametrize("container", ["polars", "pyarrow"])
@pytest.mark.parametrize("dtype", ["Float64", "Float32"])
def test_nan_and_null_are_restored_by_column(dtype, container):
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    columns = {
        "nan": [1.5, float("nan"), 2],
        "null": [1.5, None, 2],
        "whole": [1, 2, 3],
        "nothing": [None] * 3,
    }
    X = pl.DataFrame(columns).with_columns(pl.all().cast(getattr(pl, dtype)))
    rows = X if container == "polars" else X.to_arrow()
    back = there_and_back(read(rows, missing=True))
    assert X.equals(pl.DataFrame(back))


@pytest.mark.parametrize("container", [*CONTAINERS, "objects"])
@pytest.mark.parametrize("dtype", ["Int64", "UInt64"])
def test_integers_beyond_2_53_with_missing_cells_become_float64_with_a_warning(
    dtype, container
):
    values = pd.Series([2**62 + 1, None, 2**62 + 5], dtype=dtype)
    values = values.astype("object" if container == "objects" else dtype)
    X = pd.DataFrame({"n": values, "x": 1.0})
    X = X if container == "objects" else in_container(X, container)
    with pytest.warns(UserWarning, match="'n'"):
        table = read(X, missing=True)
    assert_array_equal(table.numbers()[:, 0], [2.0**62, np.nan, 2.0**62])
    whole = table.stack([there_and_back(table)])
    assert equal(whole.iloc[:3] if hasattr(whole, "iloc") else whole[:3], X)
    new = whole["n"][3], whole["n"][5]
    assert {int(n.as_py() if hasattr(n, "as_py") else n) for n in new} == {2**62}


def test_integers_beyond_2_53_with_missing_cells_are_read_as_floats():
    floats = read(pd.DataFrame({"n": [0.5, 1.5]}))
    later = pd.DataFrame({"n": pd.array([2**60, None], dtype="Int64")})
    assert_array_equal(floats.read(later)[:, 0], [2.0**60, np.nan])
    with pytest.raises(ValueError, match="'n'.* row 1"):
        calibrate(later, {"n": 2**61})


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
def test_infinity_next_to_nan_is_named(make):
    X = np.ones((9, 4))
    X[3, 1], X[3, 2], X[5, 0] = np.nan, np.inf, np.inf
    with pytest.raises(ValueError, match="row 3, column 2"):
        read(make(X), missing=True)


@pytest.mark.parametrize("shape", [(3,), (3, 1), (2, 3, 1)], ids=str)
def test_rows_of_any_shape_may_have_missing_cells(shape):
    X = np.random.default_rng(0).normal(size=(9, *shape))
    X[3].flat[-1] = np.nan
    table = read(X, missing=True)
    assert table.has_missing
    assert equal(np.nan_to_num(there_and_back(table)), np.nan_to_num(X))
    with pytest.raises(ValueError, match="row 3.*Fill it[.]$"):
        read(X, missing="Fill it.")
