"""Random orders of rows do not depend on the sorting of a table."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklearn_pnl._utils.blocks import observed_bounds, random_order, sample_with_bounds

SEEDS = [0, 1, 2]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_rows_depends_on_their_values_only(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (2000, 3)) * 1.0
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    expected = X[random_order(X)]
    for _ in range(3):
        rows = X[rng.permutation(2000)]
        order = random_order(rows)
        assert_array_equal(np.sort(order), np.arange(2000))
        assert_array_equal(rows[order], expected)


@pytest.mark.parametrize("missing", [0, 1])
def test_ranges_of_single_precision_do_not_overflow(missing):
    X = np.array([[3e38, 1.0], [-3e38, 2.0], [0.0, 3.0]], np.float32)
    X[2, :missing] = np.nan
    least, most = observed_bounds(X)
    assert_array_equal(most - least, [2 * np.float64(X[0, 0]), 2])


def test_the_first_rows_are_a_random_sample():
    # Years in turn, where systematic rows have only one year, and many copies of one
    # row.
    year = np.tile(np.arange(4.0), 5000)
    unit = np.repeat(np.arange(5000.0), 4)
    for X in (np.column_stack([unit, year]), np.minimum(unit, 500)[:, None]):
        first = random_order(X)[:1000]
        for column in X.T:
            error = (column[first].mean() - column.mean()) / column.std()
            assert abs(error) < 4 / np.sqrt(1000)
    assert len(random_order(X[:0])) == 0


def test_a_sample_contains_the_minimum_and_maximum_of_each_column():
    X = np.random.default_rng(0).normal(size=(5000, 40))
    order = random_order(X)
    sample = sample_with_bounds(X, np.arange(1, 40), order, 300)
    assert len(np.unique(sample)) == len(sample) <= 300 + 2 * 39
    assert np.isin(order[:300], sample).all()
    for end in (np.min, np.max):
        assert_array_equal(end(X[sample, 1:], axis=0), end(X[:, 1:], axis=0))
