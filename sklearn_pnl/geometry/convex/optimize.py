"""Many small convex problems at once: batched damped Newton methods.

Minimises ``f_i(x_i)`` for rows ``i = 1, .., n`` that share one structure. Rows
that have converged leave the batch. What a problem is made of is not known here. It
is n convex functions of m variables each, and offers, with ``rows`` some r of the n,

``value(x, rows)``
    values (r,), and as ``point`` whatever it wants to keep about ``x``: an array with
    one leading entry a row;
``gradient(x, point, rows)``
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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import slices, some_rows

_EPS, _TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
# Newton's method squares its error: after a step this small it is about 1e-8.
SETTLED = 1e-4
# Bytes of Hessians that the dense method computes at once. With more, two workers
# exceed the shared cache, and each takes twice as long.
_HESSIAN_BYTES = 2**21
# Conjugate gradients reduce the residual of Newton's equation to this share. Smaller
# shares cost more products than the Newton steps that they save.
_FORCING = 0.3


@dataclass(frozen=True, kw_only=True)
class Report:
    """Convergence of each row of a batch.

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


@dataclass(frozen=True, kw_only=True)
class Solution(Report):
    """Result of a batched minimisation.

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
    problem: Any, x: NDArray, *, tol: float, max_iter: int, settled: float = SETTLED
) -> Solution:
    """Damped Newton with dense Hessians, until the variables themselves are settled.

    A small residual can leave variables of little influence far off. A row that has
    reached ``tol`` goes on, within ``tol``, until its steps are small too; that costs
    a step at most, since the error is squared each time. Where variables have no end,
    as those of empty cells, an infinite ``settled`` asks for no such thing.
    """
    # More patience than with inexact directions: a dense method may still improve.
    steps = _dense_direction, _line_search
    return _newton(problem, x, *steps, tol, max_iter, patience=25, settled=settled)


def newton_cg(problem: Any, x: NDArray, *, tol: float, max_iter: int) -> Solution:
    """Damped Newton with directions from conjugate gradients: no Hessian is formed.

    The variables should be scaled so that the Hessian is near the identity. Newton's
    equation is solved to a few digits only, in single precision; values, gradients
    and the test for convergence keep the precision of ``x``. A row leaves unconverged
    after some equations that took too many steps: its Hessian is nearly singular in
    these variables.
    """
    return _newton(problem, x, _cg_direction, _line_search, tol, max_iter)


def newton_projected(
    problem: Any, x: NDArray, *, tol: float, max_iter: int
) -> Solution:
    """Newton's method for variables with signs, whose problem projects its steps.

    Beside values and gradients the problem has ``direction(here, rows)``, and
    ``search(here, step, rows)``: variables, values and points after a step. ``here``
    has what the rows are at: ``x``, ``point`` and ``gradient``.
    """
    steps = type(problem).direction, type(problem).search
    return _newton(problem, x, *steps, tol, max_iter)


class _Place(NamedTuple):
    """Current iterate of the rows."""

    x: np.ndarray
    value: np.ndarray
    point: np.ndarray
    gradient: np.ndarray
    residual: np.ndarray


class _Past(NamedTuple):
    """History of the rows that the stopping criteria need."""

    best: np.ndarray
    waited: np.ndarray
    moved: np.ndarray
    stalled: np.ndarray


def _newton(problem, x, direction, search, tol, max_iter, patience=8, settled=np.inf):
    """Newton's method by directions, and searches along them.

    A row stops where it has converged, or makes no further progress: ``patience`` is
    for iterations in which neither its residual halves nor its value falls, as its
    precision is exhausted. A direction that took too long counts as two of them.
    """
    n, rows = len(x), np.arange(len(x))
    n_iter, none = np.zeros(n, int), np.zeros(n, int)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        here = _place(problem, rows, x, *problem.value(x, rows))
        past = _Past(here.residual, none, np.full(n, np.inf), none > 0)
        found = _some(here, rows)
        for _ in range(max_iter):
            done = (here.residual <= tol) & ((past.moved <= settled) | past.stalled)
            leaving = done | (past.waited >= patience) | (past.moved == 0)
            if leaving.all():
                break
            if leaving.any():
                left = np.flatnonzero(~leaving)
                rows, here, past = rows[left], _some(here, left), _some(past, left)
            step, strained = direction(problem, here, rows)
            after = _place(problem, rows, *search(problem, here, step, rows))
            here, past = _arrived(here, after, past, strained, tol)
            n_iter[rows] += 1
            for whole, part in zip(found, here, strict=True):
                whole[rows] = part
    x, _, point, _, residual = found
    return Solution(x=x, point=point, residual=residual, n_iter=n_iter, tol=tol)


def _place(problem, rows, x, value, point):
    return _Place(x, value, point, *problem.gradient(x, point, rows))


def _some(arrays, rows):
    return type(arrays)(*(array.take(rows, axis=0) for array in arrays))


def _arrived(here, after, past, strained, tol):
    """Iterate and history after a step."""
    fallen = here.value - after.value
    falling = fallen > 1e-6 * np.maximum(1.0, np.abs(here.value))
    moved = np.abs(after.x - here.x).max(axis=1, initial=0.0)
    # Short steps that do not shrink are rounding.
    stalled = (moved < 1e-3) & (moved > 0.25 * past.moved)
    # A row that has converged does not leave the tolerance again.
    lost = (here.residual <= tol) & ~(after.residual <= tol)
    if lost.any():
        for new, old in zip(after, here, strict=True):
            new[lost] = old[lost]
    improved = after.residual < 0.5 * past.best
    progress = (improved | falling) & np.logical_not(strained)
    waited = np.where(progress, 0, past.waited + 1 + strained)
    best = np.where(improved, after.residual, past.best)
    return after, _Past(best, waited, moved, stalled)


def _line_search(problem, here, step, rows):
    """Halve each row's step until Armijo's condition holds; else stay put.

    If the expected descent is below rounding, the full step is accepted.
    A step that does not descend gives way to the steepest one that does.
    """
    slope = np.einsum("ij,ij->i", here.gradient, step)
    bad = ~(slope < 0)
    if bad.any():
        step[bad] = -here.gradient[bad]
        slope[bad] = np.einsum("ij,ij->i", here.gradient[bad], step[bad])
    rounding = _EPS * np.maximum(1.0, np.abs(here.value))
    slack = np.where(-slope <= 1000 * rounding, np.inf, 8 * rounding)
    length, trying = problem.longest(step, here.point), np.arange(len(rows))
    accepted = [array.copy() for array in here[:3]]
    for _ in range(41):
        x = some_rows(step, trying) * length[trying, None]
        x += some_rows(here.x, trying)
        value, point = problem.value(x, rows[trying])
        bound = here.value + 1e-4 * length * slope + slack
        fine = (value <= bound[trying]) & np.isfinite(value)
        for whole, part in zip(accepted, (x, value, point), strict=True):
            whole[trying[fine]] = part[fine]
        trying = trying[~fine]
        if not len(trying):
            break
        length[trying] *= 0.5
    return accepted


def _dense_direction(problem, here, rows):
    n, m = here.x.shape
    step = np.empty((n, m))
    for part in slices(n, max(1, _HESSIAN_BYTES // max(8 * m * m, 1))):
        hessian = problem.hessian(here.point[part], rows[part])
        step[part] = _solve_scaled(hessian, -here.gradient[part])
    return step, False


def _solve_scaled(hessian, right):
    """Solve with the Hessian scaled to unit diagonal and a ridge at rounding level."""
    diagonal = np.einsum("nii->ni", hessian)
    # Functions that are constant on the support do not change the distribution.
    scale = 1 / np.sqrt(np.where(diagonal > _TINY, diagonal, 1.0))
    hessian *= scale[:, :, None]
    hessian *= scale[:, None, :]
    right = right * scale
    for ridge in (1e-14, 1e-11, 1e-8):
        diagonal += ridge
        try:
            return np.linalg.solve(hessian, right[..., None])[..., 0] * scale
        except np.linalg.LinAlgError:
            continue
    return right * scale


def _cg_direction(problem, here, rows):
    """Newton's equation by conjugate gradients, to a share of its residual."""
    gradient = here.gradient
    # Scaled to length 1: small gradients would underflow when squared.
    length = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
    live = np.flatnonzero(length > 0)
    point = here.point[live].astype(np.float32)
    residual = (gradient[live] / -length[live, None]).astype(np.float32)
    remaining = np.ones(len(live), np.float32)
    step = np.zeros(gradient.shape, np.float32)
    search, solution = residual.copy(), np.zeros_like(residual)
    for _ in range(200):
        if not len(live):
            break
        product = problem.hessian_product(point, search)
        curvature = np.einsum("ij,ij->i", search, product)
        along = np.where(curvature > 0, remaining / curvature, np.float32(0))[:, None]
        product *= along
        residual -= product
        solution += np.multiply(along, search, out=product)
        before, remaining = remaining, np.einsum("ij,ij->i", residual, residual)
        search *= np.where(before > 0, remaining / before, np.float32(0))[:, None]
        search += residual
        go = (remaining > _FORCING**2) & (curvature > 0)
        # Dropping copies the others: it waits until more than a tenth are solved.
        if np.count_nonzero(go) <= 0.9 * len(go):
            step[live[~go]] = solution[~go]
            kept = (live, remaining, point, solution, residual, search)
            live, remaining, point, solution, residual, search = (
                array.take(np.flatnonzero(go), axis=0) for array in kept
            )
    step[live] = solution
    strained = np.zeros(len(gradient), bool)
    strained[live[remaining > _FORCING**2]] = True
    return step * length[:, None], strained
