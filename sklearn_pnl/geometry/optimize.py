"""Many small convex problems at once: batched damped Newton methods.

Minimises ``f_i(x_i)`` for rows ``i = 1, .., n`` that share one structure. Rows
that have converged leave the batch. What a problem is made of is not known here. It
is n convex functions of m variables each, and offers, with ``rows`` some r of the n,

``value(x, rows)``
    values (r,), and as ``point`` whatever it wants to keep about ``x``: an array with
    one leading entry a row;
``gradient(point, rows)``
    gradients (r, m) and residuals (r,);
``longest(step, point)``
    the largest multiple (r,) of each step from there that is sensible;
``hessian(point, rows)``
    Hessians (r, m, m), for the dense method;
``hessian_product(point, v)``
    the Hessians times ``v`` (r, m), in the type of ``v``, for conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .._runtime.workspace import empty_like, slices, some_rows, take

_ARMIJO = 1e-4
_EPS, _TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
# A descent of so many rounding errors is none.
_NO_DESCENT = 1000
_MAX_HALVINGS = 40
# A row leaves as it is once for this many iterations neither its residual has halved
# nor its value fallen: it has met the limits of the arithmetic or of its Hessian. With
# inexact directions that is soon clear, and a dense method may still do better.
_PATIENCE_DENSE, _PATIENCE_CG = 25, 8
_FALLING = 1e-6
# Newton squares its error: after a step this small the variables are settled to
# about the square of it.
_SETTLED = 1e-8
# Steps shorter than this that do not shrink are rounding.
_NEAR = 1e-3
# A row that moves by less has nowhere to go: the next step would be the same.
_STILL = 1e-12
# Up to this many variables one call of NumPy for a batch beats SciPy row by row.
_BATCHED_UP_TO = 128
_RIDGES = 1e-14, 1e-11, 1e-8
# Hessians made at once by the dense method, in bytes: they stay in cache. With more,
# the cache that cores share is not enough for two workers: each takes twice as long.
_HESSIAN_BYTES = 2**21
# Conjugate gradients reduce the residual of Newton's equation to this share. Smaller
# ones save Newton steps, which are cheap beside the products that they cost.
_FORCING = 0.3
# Steps for an equation, and equations that take more before a row is left as it is.
_MOST_CG_STEPS, _MOST_STRAINS = 200, 4
# Rows that have reached it are dropped once they are more than a tenth: to copy the
# rest at every step would cost more than to go on with them.
_CROWDED = 0.9


@dataclass(frozen=True, kw_only=True)
class Report:
    """How near to its solution each row of a batch came.

    Attributes
    ----------
    residual : ndarray of shape (n,)
        What was compared with ``tol``.
    n_iter : ndarray of int of shape (n,)
        Newton steps taken; 0 for a closed form.
    tol : float
    """

    residual: np.ndarray
    n_iter: np.ndarray
    tol: float

    @property
    def converged(self) -> NDArray:
        """Whether ``residual <= tol``: not where it is NaN."""
        return self.residual <= self.tol

    def or_error(self, whom: str, advice: str = "") -> Self:
        """The same; a RuntimeError if not all converged."""
        if not np.all(self.converged):
            raise RuntimeError(
                f"{whom} did not converge: the worst residual is "
                f"{np.max(self.residual):.1e} > tol={self.tol:g} after "
                f"{np.max(self.n_iter)} Newton steps. Increase tol or max_iter{advice}."
            )
        return self


@dataclass(frozen=True, kw_only=True)
class Solution(Report):
    """What a batched minimisation ended with.

    Attributes
    ----------
    x : ndarray of shape (n, m)
    point : ndarray of shape (n, ...)
        The problem's own record of ``x``.
    residual, n_iter, tol
        See :class:`Report`.
    """

    x: np.ndarray
    point: np.ndarray


def newton_dense(
    problem: Any, x: NDArray, *, tol: float, max_iter: int, enough: float = 0.0
) -> Solution:
    """Damped Newton with dense Hessians, until the variables themselves are settled.

    A small residual can leave variables of little influence far off. A row that has
    reached ``tol`` goes on, within ``tol``, until its steps are small too; that costs
    a step or two, since the error is squared each time. A residual that is ``enough``
    ends it at once.
    """
    stop = _Stop(tol, _PATIENCE_DENSE, enough=enough, settled=_SETTLED)
    return _newton(problem, x, _dense_direction, stop, max_iter)


def newton_cg(problem: Any, x: NDArray, *, tol: float, max_iter: int) -> Solution:
    """Damped Newton with directions from conjugate gradients: no Hessian is formed.

    The variables should be scaled so that the Hessian is near the identity. Newton's
    equation is solved to a few digits only, in single precision; values, gradients
    and the test for convergence keep the precision of ``x``. A row leaves unconverged
    after some equations that took too many steps: its Hessian is nearly singular in
    these variables.
    """
    stop = _Stop(tol, _PATIENCE_CG, max_strains=_MOST_STRAINS)
    return _newton(problem, x, _cg_direction, stop, max_iter)


@dataclass(frozen=True)
class _Stop:
    """When a row is done, or has met the limits of what can be done for it."""

    tol: float
    patience: int
    enough: float = 0.0
    settled: float = np.inf
    max_strains: int = 1

    def leaving(self, here, past):
        """Rows that go no farther."""
        still = (past.moved <= self.settled) | past.stalled
        done = (here.residual <= self.tol) & still | (here.residual <= self.enough)
        tired = (past.waited >= self.patience) | (past.strains >= self.max_strains)
        return done | tired | (past.moved <= _STILL)


class _Place(NamedTuple):
    """Where rows stand."""

    x: np.ndarray
    value: np.ndarray
    point: np.ndarray
    gradient: np.ndarray
    residual: np.ndarray


class _Past(NamedTuple):
    """What rows have been through."""

    best: np.ndarray
    waited: np.ndarray
    strains: np.ndarray
    moved: np.ndarray
    stalled: np.ndarray


def _newton(problem, x, direction, stop, max_iter):
    n, rows = len(x), np.arange(len(x))
    n_iter, none = np.zeros(n, int), np.zeros(n, int)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        here = _place(problem, rows, x, *problem.value(x, rows))
        past = _Past(here.residual, none, none, np.full(n, np.inf), none > 0)
        out = Solution(
            x=empty_like(x),
            point=empty_like(here.point),
            residual=np.empty(n),
            n_iter=n_iter,
            tol=stop.tol,
        )
        for _ in range(max_iter):
            leaving = stop.leaving(here, past)
            if leaving.all():
                break
            if leaving.any():
                gone, left = np.flatnonzero(leaving), np.flatnonzero(~leaving)
                _store(out, rows[gone], _some(here, gone))
                rows, here, past = rows[left], _some(here, left), _some(past, left)
            step, strained = direction(problem, here.point, here.gradient, rows)
            there = _line_search(problem, here, step, rows)
            here, past = _arrived(here, there, past, strained, stop.tol)
            n_iter[rows] += 1
        _store(out, rows, here)
    return out


def _place(problem, rows, x, value, point):
    return _Place(x, value, point, *problem.gradient(point, rows))


def _some(arrays, rows):
    return type(arrays)(*(take(array, rows, axis=0) for array in arrays))


def _store(out, rows, here):
    out.x[rows], out.point[rows], out.residual[rows] = here.x, here.point, here.residual


def _arrived(here, there, past, strained, tol):
    """Where rows stand after a step, and what it brought."""
    fallen = here.value - there.value
    falling = fallen > _FALLING * np.maximum(1.0, np.abs(here.value))
    moved = np.subtract(there.x, here.x, out=empty_like(there.x))
    moved = np.abs(moved, out=moved).max(axis=1, initial=0.0)
    stalled = (moved < _NEAR) & (moved > 0.25 * past.moved)
    # What was reached must not be lost again.
    lost = (here.residual <= tol) & ~(there.residual <= tol)
    if lost.any():
        for new, old in zip(there, here, strict=True):
            new[lost] = old[lost]
    improved = there.residual < 0.5 * past.best
    waited = np.where(improved | falling, 0, past.waited + 1)
    best = np.where(improved, there.residual, past.best)
    return there, _Past(best, waited, past.strains + strained, moved, stalled)


def _line_search(problem, here, step, rows):
    """Halve each row's step until Armijo's condition holds; else stay put.

    Where all that can be gained is rounding, values cannot judge a step: it is taken.
    A step that does not descend gives way to the steepest one that does.
    """
    slope = np.einsum("ij,ij->i", here.gradient, step)
    bad = ~(slope < 0)
    if bad.any():
        step[bad] = -here.gradient[bad]
        slope[bad] = np.einsum("ij,ij->i", here.gradient[bad], step[bad])
    rounding = _EPS * np.maximum(1.0, np.abs(here.value))
    slack = np.where(-slope <= _NO_DESCENT * rounding, np.inf, 8 * rounding)
    length, found = problem.longest(step, here.point), None
    trying = np.arange(len(rows))
    for _ in range(_MAX_HALVINGS + 1):
        x = some_rows(step, trying)
        x = np.multiply(x, length[trying, None], out=empty_like(x))
        x += some_rows(here.x, trying)
        value, point = problem.value(x, rows[trying])
        bound = here.value + _ARMIJO * length * slope + slack
        fine = (value <= bound[trying]) & np.isfinite(value)
        trial = x, value, point
        if found is None:
            if fine.all():
                found = trial
                break
            found = [array.copy() for array in here[:3]]
        for whole, part in zip(found, trial, strict=True):
            whole[trying[fine]] = part[fine]
        trying = trying[~fine]
        if not len(trying):
            break
        length[trying] *= 0.5
    return _place(problem, rows, *found)


def _batches(n, m):
    """Slices of n rows with Hessians of m variables that are held at once."""
    return slices(n, max(1, _HESSIAN_BYTES // (8 * m * m)))


def _dense_direction(problem, point, gradient, rows):
    n, m = gradient.shape
    step = np.empty_like(gradient)
    for part in _batches(n, m):
        step[part] = _solve_scaled(
            problem.hessian(point[part], rows[part]), -gradient[part]
        )
    return step, np.zeros(n, bool)


def rounding_error(problem: Any, solution: Solution, rows: NDArray) -> NDArray:
    """What rounding of the gradient may amount to in the variables of some rows.

    A gradient that is right to the last digit of each diagonal entry of the Hessian
    leaves errors of at most ``eps |H^-1| diag(H)``; the largest, of shape (r,).
    """
    error = np.empty(len(rows))
    for part in _batches(len(rows), solution.x.shape[1]):
        hessian = problem.hessian(solution.point[rows[part]], rows[part])
        scale, diagonal = _to_unit_diagonal(hessian)
        diagonal += _RIDGES[0]
        inverse = np.abs(np.linalg.inv(hessian))
        error[part] = (scale * np.einsum("nij,nj->ni", inverse, 1 / scale)).max(axis=1)
    return _EPS * error


def _to_unit_diagonal(hessian):
    """Scale Hessians in place; the factors of their rows, and the new diagonals."""
    diagonal = np.einsum("nii->ni", hessian)
    # What is constant where there is mass moves nothing.
    scale = 1 / np.sqrt(np.where(diagonal > _TINY, diagonal, 1.0))
    hessian *= scale[:, :, None]
    hessian *= scale[:, None, :]
    return scale, diagonal


def _solve_scaled(hessian, right):
    """Solve with the Hessian scaled to unit diagonal and a ridge at rounding level."""
    scale, diagonal = _to_unit_diagonal(hessian)
    right = right * scale
    solve = _solve_batch if len(hessian[0]) <= _BATCHED_UP_TO else _solve_each
    for ridge in _RIDGES:
        diagonal += ridge
        try:
            return solve(hessian, right) * scale
        except np.linalg.LinAlgError:
            continue
    return right * scale


def _solve_batch(matrices, right):
    return np.linalg.solve(matrices, right[..., None])[..., 0]


def _solve_each(matrices, right):
    """By Cholesky: half the work, which large matrices notice."""
    return np.array(
        [
            cho_solve(cho_factor(a, lower=True, check_finite=False), b)
            for a, b in zip(matrices, right, strict=True)
        ]
    )


def _cg_direction(problem, point, gradient, rows):
    """Newton's equation by conjugate gradients, to a share of its residual."""
    # Scaled to length 1: small gradients would underflow when squared.
    length = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
    live = np.flatnonzero(length > 0)
    here = take(point, live, axis=0).astype(np.float32)
    residual = (take(gradient, live, axis=0) / -length[live, None]).astype(np.float32)
    remaining = np.ones(len(live), np.float32)
    step = np.zeros(gradient.shape, np.float32)
    search, taken = residual.copy(), np.zeros_like(residual)
    for _ in range(_MOST_CG_STEPS):
        if not len(live):
            break
        product = problem.hessian_product(here, search)
        curvature = np.einsum("ij,ij->i", search, product)
        along = np.where(curvature > 0, remaining / curvature, np.float32(0))[:, None]
        product *= along
        residual -= product
        taken += np.multiply(along, search, out=product)
        before, remaining = remaining, np.einsum("ij,ij->i", residual, residual)
        search *= np.where(before > 0, remaining / before, np.float32(0))[:, None]
        search += residual
        go = (remaining > _FORCING**2) & (curvature > 0)
        if np.count_nonzero(go) <= _CROWDED * len(go):
            step[live[~go]] = taken[~go]
            kept = (live, remaining, here, taken, residual, search)
            live, remaining, here, taken, residual, search = (
                take(array, np.flatnonzero(go), axis=0) for array in kept
            )
    step[live] = taken
    strained = np.zeros(len(gradient), bool)
    strained[live[remaining > _FORCING**2]] = True
    return np.multiply(step, length[:, None], out=empty_like(gradient)), strained
