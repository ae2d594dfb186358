"""Keys of columns are names or indices in X, and ambiguous keys are rejected."""

import numpy as np
import pytest
from _containers import common, in_container, read

pd = pytest.importorskip("pandas")

CONTAINERS = ["pandas", "polars", "pyarrow"]


def refusal(table, key):
    with pytest.raises(ValueError, match="Constraint 0") as error:
        table.column_of(key, "Constraint 0")
    return str(error.value)


@pytest.mark.parametrize("container", CONTAINERS)
def test_keys_are_names_or_indices(container):
    table = read(in_container(common(), container), "auto")
    for j, name in enumerate(common().columns):
        for key in (name, j, j - 12, np.int8(j), np.str_(name)):
            assert table.column_of(key, "") == j
    assert "'real '" in refusal(table, "real ")
    for key in (12, -13, 0.0, True, None, {}, [1], np.array([1]), ("real",), (0, 1)):
        assert "(0 to 11)" in refusal(table, key)


def test_indices_of_columns_include_categorical_columns():
    X = np.ones((9, 4))
    X[:, 0] = [0, 1, 2] * 3
    for rows in (X, pd.DataFrame(X, columns=list("abcd")), X.astype(object)):
        table = read(rows, [0, 2])
        assert table.columns.tolist() == [1, 3]
        assert table.categorical == [0, 2]
        assert [table.column_of(j, "") for j in range(4)] == [0, 1, 2, 3]
    assert "(0 to 3)" in refusal(read(X), "a")


def test_cells_of_tensors_are_tuples_or_flat_indices():
    table = read(np.ones((9, 3, 4)))
    for cell in np.ndindex(3, 4):
        flat = int(np.ravel_multi_index(cell, (3, 4)))
        from_the_end = tuple(i - n for i, n in zip(cell, (3, 4), strict=True))
        for key in (cell, from_the_end, flat, flat - 12):
            assert table.column_of(key, "") == flat
    for key in ((3, 0), (0,), (0, 0, 0), (0, 1.0), (True, 0), 12):
        assert "(3, 4)" in refusal(table, key)


@pytest.mark.parametrize(
    "names, valid, invalid",
    [
        ([0, 1, 2], [0, 1, 2], [3]),
        ([1, 2, 3], [0], [1, 2]),
        (["a", 1, 0], [1], [0]),
    ],
    ids=str,
)
def test_integer_names_can_be_ambiguous(names, valid, invalid):
    table = read(pd.DataFrame(np.ones((5, 3)), columns=names))
    for key in valid:
        assert table.column_of(key, "") == key
    for key in invalid:
        assert f" {key}," in refusal(table, key)


def test_a_name_of_two_columns_is_rejected():
    table = read(pd.DataFrame(np.ones((5, 3)), columns=["a", "b", "a"]))
    assert "[0, 2]" in refusal(table, "a")
    assert table.column_of("b", "") == 1
    table = read(pd.DataFrame(np.ones((5, 3)), columns=[0, 1, 1]))
    assert "[1, 2]" in refusal(table, 1)
    assert table.column_of(0, "") == 0


def test_names_can_have_any_type():
    X = pd.DataFrame(np.ones((5, 3)), columns=[0.5, True, pd.Timestamp("2020-01-01")])
    table = read(X)
    assert [table.column_of(name, "") for name in X.columns] == [0, 1, 2]
    assert table.column_of(1, "") == 1


@pytest.mark.parametrize(
    "given",
    [["b", "c"], np.array(["c", "b"]), [1, 2], [-2, "c"], [False, True, True]],
    ids=str,
)
def test_categorical_features_can_be_names_indices_or_a_mask(given):
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4], "c": [5, 6]})
    assert read(X, given).categorical == [1, 2]


@pytest.mark.parametrize("given", [[True, False, True], ["z"], [5]])
def test_invalid_categorical_features_are_rejected(given):
    with pytest.raises(ValueError, match="categorical_features"):
        read(pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}), given)
