"""New rows agree with the golden rows of the last version."""

import json

import numpy as np
import pytest
from golden.remake import FILE, RECIPES, SEEDS
from numpy.testing import assert_allclose, assert_array_equal

GOLDEN = json.loads(FILE.read_text())
# Rows of NumPy 1.26 and 2.4 with matching SciPy, and of five kernels of OpenBLAS,
# differ by at most 1e-14 of a range; nine digits are stored. A change of the random
# numbers moves rows by percents.
SHARE = 1e-7


def numbers(rows):
    """Return the numeric columns as a flat array."""
    flat = np.asarray(rows, dtype=object).reshape(len(rows), -1)
    kept = [not isinstance(value, str) for value in flat[0]]
    return flat[:, kept].astype(float)


def strings(rows):
    flat = np.asarray(rows, dtype=object).reshape(len(rows), -1)
    return [[value for value in row if isinstance(value, str)] for row in flat]


def differ(found, golden):
    """Return the largest difference as a share of the range."""
    found, golden = numbers(found), numbers(golden)
    unit = np.nanmax(golden, axis=0) - np.nanmin(golden, axis=0)
    unit = np.where(unit > 0, unit, np.maximum(np.abs(golden[0]), 1))
    return np.nanmax(np.abs(found - golden) / unit)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_rows_agree_with_golden_rows(recipe, seed):
    golden = GOLDEN[recipe.__name__][seed]
    found = recipe(seed)
    assert_array_equal(found.pop("parents"), golden["parents"])
    assert differ(found["rows"], golden["rows"]) < SHARE
    missing = (np.isnan(numbers(rows["rows"])) for rows in (found, golden))
    assert_array_equal(*missing)
    assert strings(found.pop("rows")) == strings(golden["rows"])
    for name, values in found.items():
        assert_allclose(values, golden[name], rtol=SHARE)


def test_all_golden_rows_are_compared():
    assert set(GOLDEN) == {recipe.__name__ for recipe in RECIPES}
