"""Category codes of tables, and their conversion to values."""

import numpy as np
import pytest
import scipy.sparse as sp
from _containers import equal, in_container, read, there_and_back
from numpy.testing import assert_array_equal

from sklearn_pnl.frames.categories import Indicators, level_codes

pd = pytest.importorskip("pandas")

CONTAINERS = ["pandas", "polars", "pyarrow"]
NAN = float("nan")


@pytest.mark.parametrize(
    "values, codes",
    [
        (["b", "a", "b"], [0, 1, 0]),
        ([None, NAN, "a", pd.NA, pd.NaT], [0, 0, 1, 0, 0]),
        ([1, 1.0, 2, "1"], [0, 0, 1, 2]),
        ([NAN, 1.0, None, 1.0, np.float32("nan")], [0, 1, 0, 1, 0]),
        ([("a", 1), ("a", 2), ("a", 1)], [0, 1, 0]),
        ([], []),
    ],
    ids=str,
)
def test_different_values_have_different_codes(values, codes):
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


def test_category_codes_of_a_subset_match_its_rows():
    X = pd.DataFrame({"a": ["x", "y", "x", "z"], "b": [1.0, 2.0, 3.0, 4.0]})
    table = read(X, "auto")
    assert table.labels.tolist() == [[0], [1], [0], [2]]
    part = table.take([3, 0], "part")
    assert part.labels.tolist() == [[2], [0]]
    assert part.like(np.ones((1, 1)), [0])["a"].tolist() == ["z"]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
@pytest.mark.parametrize("make", [np.array, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_arrays_may_have_categories(make, dtype):
    dense = np.array([[1, 2, 0], [0, 3, 1], [0, 2, 4]], dtype=dtype)
    table = read(make(dense), [1])
    assert table.labels.tolist() == [[0], [1], [0]]
    assert_array_equal(table.numbers(), dense[:, [0, 2]])
    whole = table.stack([there_and_back(table)])
    assert whole.dtype == dtype
    assert sp.issparse(whole) == (make is not np.array)
    whole = whole.toarray() if sp.issparse(whole) else whole
    assert_array_equal(whole, np.vstack([dense, dense]))
    assert_array_equal(table.take([2], "part").numbers(), [[0, 4]])


@pytest.mark.parametrize("container", CONTAINERS)
def test_times_as_categories_have_nanosecond_resolution(container):
    pl = pytest.importorskip("polars")
    ticks = pl.Series([1, 2, 1001, 1])
    X = pl.DataFrame(
        {
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
    table = read(X, ["when", "zoned", "took"])
    assert table.labels.T.tolist() == [[0, 1, 2, 0]] * 3
    assert equal(there_and_back(table), X)


def test_rare_levels_share_coordinates_if_memory_is_limited():
    n = 2**17
    labels = np.arange(n)[:, None] // 2
    points = Indicators(labels, 1.0).points
    assert points.nbytes <= 1.01 * 2**28
    # Each of the most frequent levels has its own coordinate.
    few = np.minimum(labels, 3)
    assert Indicators(few, 1.0).points[:, :4].any(axis=0).all()
