"""Quasi-Newton directions: the equations of BFGS updates, the number of Hessians."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_pnl.geometry.convex.newton import newton_dense
from sklearn_pnl.geometry.convex.quasi_newton import _Approximation


def _positive_definite(rng, m):
    mixed = rng.normal(size=(m, 2 * m))
    return mixed @ mixed.T / m


class Quadratic:
    """``x A x / 2 + sum(x^4) / 4 - <b, x>``; counts the Hessians."""

    def __init__(self, rng, m):
        self.a, self.b = _positive_definite(rng, m), rng.normal(size=m)
        self.n_hessians = 0

    def value(self, x, rows):
        linear = 0.5 * np.einsum("ij,jk,ik->i", x, self.a, x) - x @ self.b
        return linear + (x**4).sum(axis=1) / 4, x

    def gradient(self, x, point, rows):
        gradient = x @ self.a + x**3 - self.b
        return gradient, np.abs(gradient).max(axis=1)

    def longest(self, step, point):
        return np.ones(len(step))

    def hessian(self, point, rows):
        self.n_hessians += len(point)
        return (self.a + 3 * np.eye(len(self.b)) * point[:, :, None] ** 2).astype(
            point.dtype
        )


# Nocedal and Wright, Numerical Optimization, 2006, equation 6.17 with H_0 = (L L')^-1.
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dtype, tol", [(np.float64, 1e-10), (np.float32, 1e-4)])
def test_updates_are_those_of_the_dense_formula(seed, dtype, tol):
    rng, m = np.random.default_rng(seed), 6
    initial, hessian = _positive_definite(rng, m), _positive_definite(rng, m)
    factor = np.asfortranarray(np.linalg.cholesky(initial), dtype)
    inverse, x = np.linalg.inv(initial), rng.normal(size=m)
    approximation = _Approximation(factor, x, hessian @ x, 1.0)
    for residual in (0.5, 0.2, 0.1):
        moved = rng.normal(size=m)
        x, change = x + moved, hessian @ moved
        assert approximation.update(x, hessian @ x, residual)
        left = np.eye(m) - np.outer(moved, change) / (moved @ change)
        inverse = left @ inverse @ left.T + np.outer(moved, moved) / (moved @ change)
        # The secant equation, 6.6.
        assert_allclose(approximation.solve(change), moved, rtol=tol, atol=tol)
    right = rng.normal(size=m)
    assert_allclose(approximation.solve(right), inverse @ right, rtol=tol, atol=tol)


@pytest.mark.parametrize("residual", [0.8, np.nan])
def test_a_step_that_does_not_reduce_the_residual_requires_a_factor(residual):
    approximation = _Approximation(np.eye(2), np.zeros(2), np.ones(2), 1.0)
    assert not approximation.update(np.ones(2), np.zeros(2), residual)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_few_steps_compute_a_hessian(seed):
    problem = Quadratic(np.random.default_rng(seed), m=150)
    start = np.random.default_rng(seed).normal(size=(3, 150))
    solution = newton_dense(problem, start, tol=1e-10, max_iter=100)
    assert solution.converged.all()
    assert problem.n_hessians <= 0.5 * solution.n_iter.sum()


def test_directions_do_not_depend_on_the_other_rows_of_a_batch():
    problem = Quadratic(np.random.default_rng(0), m=150)
    start = np.random.default_rng(1).normal(size=(3, 150))
    settings = {"tol": 1e-10, "max_iter": 100}
    together = newton_dense(problem, start, **settings)
    alone = [newton_dense(problem, start[i : i + 1], **settings) for i in range(3)]
    assert_allclose(together.x, np.concatenate([s.x for s in alone]), atol=1e-12)


@pytest.mark.parametrize("most_factors", [1, 3])
def test_rows_stop_after_the_last_factor(most_factors):
    problem = Quadratic(np.random.default_rng(0), m=150)
    start = 1e3 * np.random.default_rng(1).normal(size=(3, 150))
    settings = {"tol": 1e-10, "max_iter": 100}
    free = newton_dense(problem, start, **settings)
    n_free, problem.n_hessians = problem.n_hessians, 0
    assert free.converged.all() and not free.spent.any()
    bounded = newton_dense(problem, start, most_factors=most_factors, **settings)
    # A failed factor in single precision is computed again in double precision.
    assert problem.n_hessians <= 2 * 3 * most_factors < n_free
    assert bounded.spent.all() and not bounded.converged.any()
