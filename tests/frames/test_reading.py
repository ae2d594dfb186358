"""Invalid rows are rejected with row and column, and attributes are set."""

from decimal import Decimal
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from _containers import Reader, common, in_container, read

from sklearn_pnl import ManyBodyImputer, compare_samples
from sklearn_pnl.frames import read_table

pd = pytest.importorskip("pandas")

CONTAINERS = ["pandas", "polars", "pyarrow"]


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
