"""Nearest integers, compared with a brute-force search."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_pnl.geometry.convex.highs import solved
from sklearn_pnl.geometry.convex.integers import nearest_in_steps


def least_distance(target, sizes, rows, ends, limits):
    """Return the smallest distance of any integers within the bounds, or infinity."""
    ranges = (range(int(a), int(b) + 1) for a, b in zip(*limits, strict=True))
    x = np.array(list(product(*ranges)))
    fits = ((x @ rows.T >= ends[0]) & (x @ rows.T <= ends[1])).all(axis=1)
    return (np.abs(x - target) / sizes).sum(axis=1)[fits].min(initial=np.inf)


@pytest.mark.parametrize("seed", range(12))
def test_nearest_integers_agree_with_a_brute_force_search(seed):
    rng = np.random.default_rng(seed)
    target, sizes = rng.uniform(0, 6, 4), rng.uniform(0.5, 2, 4)
    rows = rng.integers(-3, 4, (2, 4)).astype(float)
    middle = np.round(rows @ target + rng.normal(size=2))
    ends, limits = (middle, middle + [0, 2]), (np.zeros(4), np.full(4, 6.0))
    best = least_distance(target, sizes, rows, ends, limits)
    found = nearest_in_steps(target, sizes, rows, ends, limits, np.ones(4))
    if found is None:
        assert best == np.inf
    else:
        assert_allclose((np.abs(found - target) / sizes).sum(), best)
        assert_allclose(found, np.round(found), atol=0)


def test_cells_without_resolution_can_have_any_value():
    rows, ends = np.array([[1.0, 1, 1]]), (np.array([4.3]), np.array([4.3]))
    limits = np.zeros(3), np.full(3, 9.0)
    steps = np.array([1.0, 0.5, 0])
    found = nearest_in_steps(
        np.array([1.2, 1.3, 1.4]), np.ones(3), rows, ends, limits, steps
    )
    # The second cell is returned in units of 0.5.
    assert_allclose(found * [1, 0.5, 1] @ rows[0], 4.3)
    assert_allclose(found[:2], np.round(found[:2]), atol=0)


def test_errors_of_the_solver_are_a_status():
    def solver(**options):
        raise RuntimeError("vector::reserve")

    found = solved(solver, integrality=[0, 1])
    assert (found.x, found.status, found.message) == (None, 4, "vector::reserve")
