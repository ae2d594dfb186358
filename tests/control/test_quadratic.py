"""The quadratic solver against optimality conditions and an independent solver."""

import numpy as np
import pytest
from _sets import linear
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from scipy.sparse import csr_array

from benchmarks.promises.requests import least_square
from sklearn_pnl.control.projection import nearest_rows
from sklearn_pnl.control.quadratic import (
    least_violations,
    nearest_point,
    project_jointly,
)

pytest.importorskip("clarabel", reason="the oracle is missing")


def random_problem(seed):
    """Constraints that a point on some of the bounds satisfies, some redundant."""
    rng = np.random.default_rng(seed)
    v, c = int(rng.integers(3, 30)), int(rng.integers(1, 12))
    a = rng.integers(-2, 3, (c, v)) * (rng.random((c, v)) < 0.5) * 1.0
    a = np.vstack([a, a[0] + a[-1]])
    low = np.where(rng.random(v) < 0.7, -rng.gamma(1, size=v), -np.inf)
    high = np.where(rng.random(v) < 0.5, rng.gamma(1, size=v), np.inf)
    there = np.clip(3 * rng.normal(size=v), low, high)
    values = a @ there
    lower = np.where(rng.random(c + 1) < 0.7, values, -np.inf)
    upper = np.where(rng.random(c + 1) < 0.7, values, values + rng.gamma(1, size=c + 1))
    return rng.normal(size=v), csr_array(a), lower, upper, low, high


@pytest.mark.parametrize("seed", range(30))
def test_nearest_points_agree_with_an_independent_solver(seed):
    target, a, lower, upper, low, high = random_problem(seed)
    found = nearest_point(target, a, lower, upper, low, high)
    assert found.is_solved and found.message == ""
    least, status = least_square(target, a, lower, upper, low, high)
    assert status == "Solved"
    assert_allclose(np.square(found.value - target).sum(), least, rtol=1e-6, atol=1e-9)
    values = a @ found.value
    assert np.maximum(lower - values, values - upper).max() < 1e-12
    assert ((low <= found.value) & (found.value <= high)).all()


def test_infeasible_problems_have_a_status_and_a_message():
    a, one = csr_array(np.ones((1, 3))), np.ones(1)
    found = nearest_point(np.zeros(3), a, 4 * one, 4 * one, np.zeros(3), np.ones(3))
    assert found.status == "infeasible" and found.message


@pytest.mark.parametrize("seed", range(10))
def test_least_violations_agree_with_a_linear_programme_of_each_row(seed):
    rng = np.random.default_rng(seed)
    a, start = rng.integers(-1, 2, (3, 4)).astype(float), rng.uniform(size=(6, 4))
    a[:, 0] = 1
    values = start[::-1] @ a.T + rng.choice([0, 0, 1.5], (6, 3))
    system = linear(a, values, values)
    box = np.zeros_like(start), np.ones_like(start)
    rows = least_violations(start, np.ones_like(start), system, *box)
    _, satisfied = nearest_rows(start, np.ones_like(start), system, *box)
    for row, value, met in zip(rows, values, satisfied, strict=True):
        # Coefficients are at most 1, so that violations are not scaled.
        slack = np.hstack([a, np.eye(3), -np.eye(3)])
        least = linprog(
            np.repeat([0, 1], [4, 6]), A_eq=slack, b_eq=value,
            bounds=[(0, 1)] * 4 + [(0, None)] * 6,
        ).fun  # fmt: skip
        assert_allclose(np.abs(a @ row - value).sum(), least, atol=1e-8)
        assert met.all() == (least < 1e-8)


def test_cells_without_weight_and_rows_within_constraints_do_not_move():
    rng = np.random.default_rng(0)
    start, weights = rng.uniform(size=(20, 3)), np.ones((20, 3))
    weights[:, 1] = 0
    system = linear([1, 1, 1], 1, 2)
    found = project_jointly(
        start, weights, system, -np.ones((20, 3)), np.full((20, 3), 9.0)
    )
    assert found.is_solved
    assert_array_equal(found.value[:, 1], start[:, 1])
    inside = (start.sum(axis=1) >= 1) & (start.sum(axis=1) <= 2)
    assert 0 < inside.sum() < 20
    assert_array_equal(found.value[inside], start[inside])
    sums = found.value.sum(axis=1)
    assert (sums >= 1 - 1e-12).all() and (sums <= 2 + 1e-12).all()
