"""Rounding of rows to the resolution of their columns."""

import numpy as np
import pytest
from _sets import linear, set_of
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl.columns.rounding import round_to_steps
from sklearn_pnl.control.projection import project_rows


@pytest.mark.parametrize("seed", range(5))
def test_largest_remainders_are_the_nearest_integers(seed):
    """Compare one sum with a search over all integers nearby."""
    rng = np.random.default_rng(seed)
    x = rng.dirichlet(np.ones(4), size=6) * 10
    total = linear([1, 1, 1, 1], 10, 10)
    ends = np.zeros(x.shape), np.full(x.shape, 10.0)
    rounded = round_to_steps(x, np.ones(4), total, *ends)
    assert_array_equal(rounded.sum(axis=1), np.full(6, 10.0))
    for row, found in zip(x, rounded, strict=True):
        around = np.stack(np.meshgrid(*[[np.floor(v), np.ceil(v)] for v in row]), -1)
        around = around.reshape(-1, 4)
        around = around[around.sum(axis=1) == 10]
        best = np.abs(around - row).sum(axis=1).min()
        assert np.abs(found - row).sum() <= best + 1e-12


def test_rounding_respects_signs_units_and_bounds():
    # income - tax = net, in cents; income is requested.
    rows = np.array([[100.01, 33.333, 66.677], [10.0, 3.336, 6.664]])
    system = linear([1, -1, -1], 0, 0)
    low = np.column_stack([rows[:, 0], np.zeros((2, 2))])
    high = np.column_stack([rows[:, 0], np.full((2, 2), 100.0)])
    rounded = round_to_steps(rows, np.full(3, 0.01), system, low, high)
    assert_array_equal(rounded[:, 0], rows[:, 0])
    assert_allclose(rounded @ [1, -1, -1], 0, atol=1e-12)
    assert_allclose(100 * rounded, np.rint(100 * rounded), atol=1e-9)
    # Single pieces compensate for the rounding of dozens.
    mixed = linear([12, 1], 30, 30)
    ends = np.zeros((1, 2)), np.full((1, 2), 99.0)
    rounded = round_to_steps(np.array([[1.4, 13.2]]), np.ones(2), mixed, *ends)
    assert_array_equal(rounded, [[1, 18]])
    # No integer sum is 9.6, so that the nearest one is returned.
    half = linear([1, 1], 9.6, 9.6)
    rounded = round_to_steps(np.array([[4.8, 4.8]]), np.ones(2), half, *ends)
    assert rounded.sum() == 10


def test_floats_compensate_for_rounded_integers():
    X = np.array([[1.0, 4.0, 5.0], [3.0, 2.5, 5.5], [2.0, 8.25, 10.25]])
    data = linear([1, 1, -1], 0, 0)
    requested = linear([0, 0, 1], 7.7, 7.7)
    whole = set_of(X, steps=[1, 0, 0], precision=[0, 1e-16, 1e-16],
                         equalities=data, constraints=requested)  # fmt: skip
    rows, unmet = project_rows(X, whole)
    assert not unmet.any()
    assert_array_equal(rows[:, 0], np.rint(rows[:, 0]))
    assert_array_equal(rows[:, 2], np.full(3, 7.7))
    assert_allclose(rows[:, 0] + rows[:, 1], 7.7)
    off_steps = linear([[0, 0, 1]], 7.123, 7.123)
    cents = set_of(X, steps=0.01, equalities=data, constraints=off_steps)
    rows, unmet = project_rows(X, cents)
    assert_array_equal(rows[:, 2], np.full(3, 7.123))
    assert_allclose(rows[:, 0] + rows[:, 1], 7.123)
