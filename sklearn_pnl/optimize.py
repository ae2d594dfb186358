"""Many small convex problems at once: batched damped Newton methods.

Minimises ``f_i(x_i)`` for rows ``i = 1, .., n`` that share one structure. Rows
that have converged leave the batch. What a problem is made of is not known here:
it offers the methods of :class:`Problem`.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

_ARMIJO = 1e-4
_MAX_HALVINGS = 40
_MAX_CG_STEPS = 200
# A row leaves as it is once for this many iterations neither its residual has halved
# nor its value fallen: it has met the limits of the arithmetic or of its Hessian. With
# inexact directions that is soon clear, and a dense method may still do better.
_PATIENCE_DENSE, _PATIENCE_CG = 25, 8
_FALLING = 1e-6
# Newton squares its error: after a step this small the variables are settled to
# about the square of it.
_SETTLED = 1e-8
# Hessians held at once by the dense method, in bytes.
_HESSIAN_BYTES = 2**25


class Problem(Protocol):
    """n convex functions of m variables each.

    ``rows`` selects some of the n; ``point`` is whatever the problem wants to
    keep about ``x``, an array with one leading entry a row.
    """

    def value(self, x, rows):
        """Return ``(f, point)``: values of shape (r,) and an array of r entries."""

    def gradient(self, point, rows):
        """Return ``(gradient, residual)`` of shapes (r, m) and (r,)."""

    def longest(self, step):
        """Return the largest multiple of each step, at most 1, that is sensible."""

    def hessian(self, point, rows):
        """Return the Hessians, of shape (r, m, m)."""

    def hessian_product(self, point, v):
        """Return the Hessians times ``v`` of shape (r, m)."""


@dataclass(frozen=True)
class Solution:
    """What a batched minimisation ended with.

    Attributes
    ----------
    x : ndarray of shape (n, m)
    point : ndarray of shape (n, ...)
        The problem's own record of ``x``.
    residual : ndarray of shape (n,)
        The residual that was compared with ``tol``.
    n_iter : ndarray of int of shape (n,)
        Newton steps taken.
    converged : ndarray of bool of shape (n,)
        ``residual <= tol``.
    """

    x: np.ndarray
    point: np.ndarray
    residual: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray


def newton_dense(problem, x, *, tol, max_iter):
    """Damped Newton with dense Hessians, until the variables themselves are settled.

    A small residual can leave variables of little influence far off. A row that has
    reached ``tol`` goes on, within ``tol``, until its steps are small too; that costs
    a step or two, since the error is squared each time.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _newton(
            problem, x, _dense_direction, tol, max_iter, _SETTLED, _PATIENCE_DENSE
        )


def newton_cg(problem, x, *, tol, max_iter):
    """Damped Newton with directions from conjugate gradients: no Hessian is formed.

    The variables should be scaled so that the Hessian is near the identity.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _newton(problem, x, _cg_direction, tol, max_iter, np.inf, _PATIENCE_CG)


def _newton(problem, x, direction, tol, max_iter, settled, patience):
    n = len(x)
    rows = np.arange(n)
    value, point = problem.value(x, rows)
    gradient, residual = problem.gradient(point, rows)
    out = Solution(
        x.copy(), point.copy(), residual.copy(), np.zeros(n, int), np.zeros(n, bool)
    )
    best, waited = residual.copy(), np.zeros(n, int)
    moved = np.full(n, np.inf)
    for _ in range(max_iter):
        leaving = (residual <= tol) & (moved <= settled)
        leaving |= (waited >= patience) | (residual == 0)
        if leaving.any():
            stay = ~leaving
            _store(out, rows[leaving], x[leaving], point[leaving], residual[leaving])
            state = rows, x, value, point, gradient, residual, best, waited
            rows, x, value, point, gradient, residual, best, waited = (
                array[stay] for array in state
            )
        if not len(rows):
            break
        step = _descent(direction(problem, point, gradient, rows), gradient)
        trial = _line_search(problem, x, value, point, gradient, step, rows)
        new_gradient, new_residual = problem.gradient(trial[2], rows)
        scale = np.maximum(1.0, np.abs(value))
        falling = value - trial[1] > _FALLING * scale
        moved = np.abs(trial[0] - x).max(axis=1, initial=0.0)
        # What was reached must not be lost again.
        keep = (residual <= tol) & ~(new_residual <= tol)
        x, value, point, gradient, residual = (
            np.where(keep.reshape(-1, *[1] * (new.ndim - 1)), old, new)
            if keep.any()
            else new
            for old, new in zip(
                (x, value, point, gradient, residual),
                (*trial, new_gradient, new_residual),
                strict=True,
            )
        )
        out.n_iter[rows] += 1
        improved = residual < 0.5 * best
        waited = np.where(improved | falling, 0, waited + 1)
        best = np.where(improved, residual, best)
    _store(out, rows, x, point, residual)
    out.converged[:] = out.residual <= tol
    return out


def _store(out, rows, x, point, residual):
    out.x[rows], out.point[rows], out.residual[rows] = x, point, residual


def _descent(step, gradient):
    """The step where it descends, else the steepest descent direction."""
    slope = np.einsum("ij,ij->i", gradient, step)
    bad = ~(slope < 0)
    if bad.any():
        step[bad] = -gradient[bad]
    return step


def _line_search(problem, x, value, point, gradient, step, rows):
    """Halve each row's step until Armijo's condition holds; else stay put."""
    slope = np.einsum("ij,ij->i", gradient, step)
    slack = 8 * np.finfo(np.float64).eps * np.maximum(1.0, np.abs(value))
    length = problem.longest(step)
    new_x, new_value, new_point = x.copy(), value.copy(), point.copy()
    trying = np.arange(len(x))
    for _ in range(_MAX_HALVINGS):
        trial = x[trying] + length[trying, None] * step[trying]
        f, q = problem.value(trial, rows[trying])
        bound = value + _ARMIJO * length * slope + slack
        ok = f <= bound[trying]
        done = trying[ok]
        new_x[done], new_value[done], new_point[done] = trial[ok], f[ok], q[ok]
        trying = trying[~ok]
        if not len(trying):
            break
        length[trying] *= 0.5
    return new_x, new_value, new_point


def _dense_direction(problem, point, gradient, rows):
    n, m = gradient.shape
    batch = max(1, _HESSIAN_BYTES // (8 * m * m))
    step = np.empty_like(gradient)
    for start in range(0, n, batch):
        part = slice(start, start + batch)
        step[part] = _solve_scaled(
            problem.hessian(point[part], rows[part]), -gradient[part]
        )
    return step


def _solve_scaled(hessian, right):
    """Solve with the Hessian scaled to unit diagonal and a ridge at rounding level."""
    diagonal = np.einsum("nii->ni", hessian)
    scale = 1 / np.sqrt(np.maximum(diagonal, np.finfo(np.float64).tiny))
    hessian = hessian * scale[:, :, None] * scale[:, None, :]
    m = hessian.shape[1]
    for ridge in (1e-14, 1e-11, 1e-8):
        hessian[:, np.arange(m), np.arange(m)] += ridge
        try:
            return np.linalg.solve(hessian, (right * scale)[..., None])[..., 0] * scale
        except np.linalg.LinAlgError:
            continue
    return right


def _cg_direction(problem, point, gradient, rows):
    """Newton's equation by conjugate gradients, more exactly near the solution."""
    size = np.einsum("ij,ij->i", gradient, gradient)
    forcing = np.minimum(0.1, size**0.25) ** 2
    step = np.zeros_like(gradient)
    live = np.flatnonzero(size > 0)
    residual, remaining = -gradient[live], size[live]
    search, here = residual.copy(), point[live]
    for _ in range(_MAX_CG_STEPS):
        if not len(live):
            break
        product = problem.hessian_product(here, search)
        curvature = np.einsum("ij,ij->i", search, product)
        length = np.where(curvature > 0, remaining / curvature, 0.0)
        step[live] += length[:, None] * search
        residual = residual - length[:, None] * product
        before, remaining = remaining, np.einsum("ij,ij->i", residual, residual)
        go = (remaining > forcing[live] * size[live]) & (curvature > 0)
        search = residual + (remaining / before)[:, None] * search
        if not go.all():
            live, here = live[go], here[go]
            residual, search, remaining = residual[go], search[go], remaining[go]
    return step
