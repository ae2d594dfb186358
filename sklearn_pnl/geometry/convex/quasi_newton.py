"""Directions of a quasi-Newton method that computes few Hessians.

A Cholesky factor of the Hessian costs many times as much as the other parts of a step.
One factor therefore serves several steps, and BFGS updates correct the factor by the
changes of the gradient since then (Nocedal and Wright 2006, algorithm 7.4).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsv, strsv
from scipy.linalg.lapack import dpotrf, spotrf

# A factor is computed again after this number of steps, or if a step leaves more than
# this share of the residual.
_MOST_STEPS, _MOST_LEFT = 8, 0.7
# If a factor in single precision serves fewer steps, the next factors of the row have
# double precision.
_FEWEST_STEPS = 4


class FactoredDirection:
    """Directions of a batch of rows, each from an approximation of its Hessian.

    Factors have single precision, until steps with a new factor fail to reduce the
    residual of a row. The step with factor ``most_factors`` is the last of a row.
    """

    def __init__(self, most_factors=np.inf):
        self._kept, self._most_factors = {}, most_factors

    def __call__(self, problem, here, rows):
        """Return steps, and costs that are infinite after the last factor of a row."""
        step, residuals = np.empty_like(here.x), here.residual.tolist()
        cost = np.zeros(len(rows))
        for i, (row, residual) in enumerate(zip(rows.tolist(), residuals, strict=True)):
            kept, x, gradient = self._kept.get(row), here.x[i], here.gradient[i]
            if kept is None or not kept.update(x, gradient, residual):
                single = (
                    kept is None or kept.is_single and kept.n_steps >= _FEWEST_STEPS
                )
                factor = _factor(
                    problem, here.point[i : i + 1], rows[i : i + 1], single
                )
                number = 1 if kept is None else kept.number + 1
                kept = _Approximation(factor, x, gradient, residual, number)
                self._kept[row] = kept
                cost[i] = np.inf if number >= self._most_factors else 0.0
            step[i] = kept.solve(-gradient)
        return step, cost


class _Approximation:
    """Approximation of a Hessian: a Cholesky factor with BFGS updates.

    ``number`` counts the factors of the row.
    """

    def __init__(self, factor, x, gradient, residual, number=1):
        self._factor, self._here = factor, (x, gradient, residual)
        self.number = number
        # Changes of the variables and of the gradient, and their product, by step.
        self._changes = []
        self.is_single, self.n_steps = factor.dtype == np.float32, 0

    def update(self, x, gradient, residual):
        """Add the last step; False if a new factor is necessary."""
        before_x, before_gradient, before = self._here
        moved, change = x - before_x, gradient - before_gradient
        # The comparison is also false for NaN.
        if (curvature := moved @ change) > 0:
            self._changes.append((moved, change, curvature))
        self._here, self.n_steps = (x, gradient, residual), self.n_steps + 1
        return self.n_steps < _MOST_STEPS and residual <= _MOST_LEFT * before

    def solve(self, right):
        """Solve the equation of the approximation."""
        weights = []
        for moved, change, curvature in reversed(self._changes):
            weights.append(moved @ right / curvature)
            right = right - weights[-1] * change
        # For one right-hand side, two calls of BLAS take half of the time of ``potrs``.
        solve = strsv if self.is_single else dtrsv
        step = solve(self._factor, right, lower=1)
        step = solve(self._factor, step, lower=1, trans=1).astype(np.float64)
        for moved, change, curvature in self._changes:
            step += (weights.pop() - change @ step / curvature) * moved
        return step


def _factor(problem, point, row, single):
    """Return the lower Cholesky factor of a Hessian, preferably in single precision."""
    if single:
        hessian = problem.hessian(point.astype(np.float32), row)[0]
        hessian = _ridged(hessian, 2e-7).T
        factor, failed = spotrf(hessian, lower=1, clean=0, overwrite_a=1)
        if not failed and np.isfinite(factor[-1, -1]):
            return factor
    hessian = problem.hessian(point.astype(np.float64), row)[0]
    for ridge in (1e-14, 1e-11, 1e-8):
        factor, failed = dpotrf(_ridged(hessian, ridge).T, lower=1, clean=0)
        if not failed:
            return factor
    return np.diag(np.sqrt(np.diag(hessian)))


def _ridged(hessian, ridge):
    """Add a share of the diagonal to a Hessian, in place, and return the Hessian."""
    diagonal = np.diag(hessian).copy()
    # A function that is constant on the support has variance 0.
    tiny = np.finfo(hessian.dtype).smallest_normal
    diagonal += ridge * np.where(diagonal > tiny, diagonal, 1.0)
    np.fill_diagonal(hessian, diagonal)
    return hessian
