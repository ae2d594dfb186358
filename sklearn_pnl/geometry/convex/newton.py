"""Batched damped Newton methods for many small convex problems at once.

The methods minimise ``f_i(x_i)`` for rows ``i = 1, .., n``. Rows that have converged
leave the batch. A problem is an object that represents n convex functions of m
variables. For the indices ``rows`` of r rows it defines the methods

``value(x, rows)``
    values (r,) and points, an array with one entry per row that stores what the other
    methods need about ``x``;
``gradient(x, point, rows)``
    gradients (r, m) and residuals (r,);
``longest(step, point)``
    the largest permitted multiple (r,) of each step from ``point``;
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

from ..._utils.arrays import (
    DEVICE_BLOCKS,
    at_least,
    cast,
    concat,
    filled,
    joined,
    largest,
    like,
    namespace,
    rounding_of,
    row_dots,
    slices,
    some_rows,
    take,
    times_over,
    to_host,
)
from .quasi_newton import FactoredDirection

_EPS = float(np.finfo(np.float64).eps)
# A Newton step squares the error, so after a step of this size it is about 1e-8.
_SETTLED = 1e-4
# A row leaves the batch after this number of steps with a residual below ``tol``. If it
# is not settled by then, rounding errors or diverging variables prevent it.
_LONGEST_SETTLING = 25
# Bytes of Hessians that the dense method computes at once. With more bytes, two workers
# exceed the shared cache, and each takes twice as long.
_HESSIAN_BYTES = 2**21
# From this number of variables on, Cholesky factors of single matrices take half of the
# time of LU factors of a batch, and a quasi-Newton method saves most factors.
_FACTORED_FROM = 129
# Bytes of Cholesky factors that are kept at once.
_FACTOR_BYTES = 2**24
# Conjugate gradients reduce the residual of Newton's equation to this share. A smaller
# share costs more products than the Newton steps that it saves.
_FORCING = 0.3


@dataclass(frozen=True, kw_only=True)
class Report:
    """Convergence of each row of a batch.

    Attributes
    ----------
    residual : ndarray of shape (n,)
        Residuals, which were compared with ``tol``.
    n_iter : ndarray of int of shape (n,)
        Number of Newton steps, 0 for a closed form.
    tol : float
        The tolerance of the residual.
    """

    residual: np.ndarray
    n_iter: np.ndarray
    tol: float

    @property
    def converged(self) -> NDArray:
        """Mask of the rows with ``residual <= tol``; False for NaN."""
        return self.residual <= self.tol


@dataclass(frozen=True, kw_only=True)
class Solution(Report):
    """Result of a batched minimisation.

    Attributes
    ----------
    x : ndarray of shape (n, m)
        Minima.
    point : ndarray of shape (n, ...)
        Points of ``x``, as defined by the problem.
    moved : ndarray of shape (n,)
        Largest change of a variable in the last step, which estimates the error of the
        variables. It is infinite if no step was taken.
    spent : ndarray of bool of shape (n,)
        Rows that stopped because their directions became too expensive.
    residual, n_iter, tol
        See :class:`Report`.
    """

    x: np.ndarray
    point: np.ndarray
    moved: np.ndarray
    spent: np.ndarray


def newton_dense(
    problem: Any,
    x: NDArray,
    *,
    tol: float,
    max_iter: int,
    settled: float = _SETTLED,
    reuse: bool = True,
    most_factors: float = np.inf,
) -> Solution:
    """Minimise by Newton's method with dense Hessians, until the variables are settled.

    Despite a small residual, variables of little influence may have a large error. A
    row with a residual below ``tol`` therefore continues until its last step is at most
    ``settled``. This costs about one step, because a step squares the error. Use an
    infinite ``settled`` if variables diverge, like the variables of empty cells.

    From 129 variables on, the steps are those of :class:`FactoredDirection`, unless
    ``reuse`` is false, and a row stops after ``most_factors`` factors.
    """
    # The patience is larger than for inexact directions, because dense Hessians allow
    # progress for longer.
    (n, m), given = x.shape, {"patience": 25, "settled": settled}
    reuse = reuse and m >= _FACTORED_FROM and isinstance(x, np.ndarray)
    if not n or not reuse:
        steps = _dense_direction, _line_search
        return newton(problem, x, *steps, tol, max_iter, **given)
    solutions = []
    for part in slices(n, 1 + _FACTOR_BYTES // (8 * m * m)):
        steps, rows = (
            (FactoredDirection(most_factors), _line_search),
            np.arange(n)[part],
        )
        solutions.append(newton(problem, x[part], *steps, tol, max_iter, rows, **given))
    names = "x", "point", "moved", "residual", "n_iter", "spent"
    parts = {k: np.concatenate([getattr(s, k) for s in solutions]) for k in names}
    return Solution(**parts, tol=tol)


def newton_cg(problem: Any, x: NDArray, *, tol: float, max_iter: int) -> Solution:
    """Minimise by Newton's method with directions from conjugate gradients.

    No Hessian is formed. The variables should be scaled so that the Hessian is near the
    identity. Newton's equation is solved to a few digits in single precision. Values,
    gradients and the test of convergence have the precision of ``x``. If the conjugate
    gradients of a row repeatedly take too many steps, its Hessian is nearly singular,
    and the row leaves the batch without convergence.
    """
    return newton(problem, x, _cg_direction, _line_search, tol, max_iter)


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
    since: np.ndarray


def newton(
    problem,
    x,
    direction,
    search,
    tol,
    max_iter,
    rows=None,
    *,
    patience=8,
    settled=np.inf,
):
    """Run Newton's method with given functions for directions and line searches.

    ``rows`` are the indices of the rows of ``x`` in the problem.

    ``direction(problem, here, rows)`` returns steps and their costs: the number of
    iterations for which each step counts in addition, or infinity for the last step
    that the row can afford. ``search(problem, here, step, rows)`` returns variables,
    values and points after the steps. ``here`` has the attributes ``x``, ``value``,
    ``point`` and ``gradient`` of the current iterate.

    A row stops if it has converged or makes no further progress. ``patience`` is the
    number of iterations in which neither its residual halves nor its value decreases,
    or the step has a cost. A row that has converged, but is not settled, stops 25 steps
    later.
    """
    rows, pieces = np.arange(x.shape[0]) if rows is None else rows, []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        here = _place(problem, rows, x, *problem.value(x, rows))
        none = filled(0.0, len(rows), here.residual)
        past = _Past(here.residual, none, none + np.inf, none > 0, none)
        for k in range(max_iter + 1):
            done = (here.residual <= tol) & ((past.moved <= settled) | past.stalled)
            leaving = done | (past.waited >= patience) | (past.moved == 0)
            leaving = leaving | (past.since >= _LONGEST_SETTLING)
            leaves = to_host(leaving) | (k == max_iter)
            if leaves.any() or not len(rows):
                gone, left = np.flatnonzero(leaves), np.flatnonzero(~leaves)
                left_with = here.x, here.point, here.residual, past.moved, past.waited
                found = _some(left_with, gone)
                pieces.append((rows[gone], (*found, np.full(len(gone), k))))
                rows = rows[left]
                here, past = _Place(*_some(here, left)), _Past(*_some(past, left))
                if not len(rows):
                    break
            step, cost = direction(problem, here, rows)
            after = _place(problem, rows, *search(problem, here, step, rows))
            here, past = _arrived(here, after, past, cost, tol)
    x, point, residual, moved, waited, n_iter = joined(pieces)
    found = {"x": x, "point": point, "moved": moved, "residual": residual}
    return Solution(**found, spent=np.isinf(to_host(waited)), n_iter=n_iter, tol=tol)


def _place(problem, rows, x, value, point):
    return _Place(x, value, point, *problem.gradient(x, point, rows))


def _some(arrays, rows):
    return tuple(some_rows(array, rows) for array in arrays)


def _arrived(here, after, past, cost, tol):
    """Return the iterate and the history after a step."""
    xp = namespace(here.x)
    fallen = here.value - after.value
    falling = fallen > 1e-6 * at_least(xp.abs(here.value), 1.0)
    moved = largest(after.x - here.x)
    # Short steps of constant size are rounding errors.
    stalled = (moved < 1e-3) & (moved > 0.25 * past.moved)
    # A row that has converged leaves the tolerance only for a lower value.
    lost = (here.residual <= tol) & ~(after.residual <= tol)
    lost &= fallen <= 1e-10 * at_least(xp.abs(here.value), 1.0)
    if xp.any(lost):
        pairs = zip(here, after, strict=True)
        after = _Place(
            *(xp.where(lost if x.ndim == 1 else lost[:, None], x, y) for x, y in pairs)
        )
    improved = after.residual < 0.5 * past.best
    progress = (improved | falling) & (cost == 0)
    waited = xp.where(progress, 0.0, past.waited + 1.0 + cost)
    best = xp.where(improved, after.residual, past.best)
    since = xp.where(after.residual <= tol, past.since + 1.0, 0.0)
    return after, _Past(best, waited, moved, stalled, since)


def _line_search(problem, here, step, rows):
    """Take the step of each row, halved until Armijo's condition is satisfied.

    If the expected descent is below rounding, the full step is accepted. A step that is
    not a descent direction is replaced by the negative gradient. If 41 trials fail, the
    row does not move.
    """
    xp, slope = namespace(step), row_dots(here.gradient, step)
    bad = ~(slope < 0)
    if xp.any(bad):
        step = xp.where(bad[:, None], -here.gradient, step)
        slope = row_dots(here.gradient, step)
    rounding = rounding_of(step) * at_least(xp.abs(here.value), 1.0)
    slack = xp.where(-slope <= 1000 * rounding, np.inf, 8 * rounding)
    length, trying, pieces = problem.longest(step, here.point), np.arange(len(rows)), []
    for _ in range(41):
        at, where_from = some_rows(length, trying), some_rows(here.x, trying)
        x = some_rows(step, trying) * at[:, None]
        x += where_from
        value, point = problem.value(x, rows[trying])
        bound = here.value + 1e-4 * length * slope + slack
        fine = to_host((value <= some_rows(bound, trying)) & xp.isfinite(value))
        if fine.any():
            accepted = np.flatnonzero(fine)
            pieces.append((trying[accepted], _some((x, value, point), accepted)))
        trying = trying[~fine]
        if not len(trying):
            break
        length = length * 0.5
    else:
        pieces.append((trying, _some((here.x, here.value, here.point), trying)))
    return joined(pieces)


def _dense_direction(problem, here, rows):
    n, m = here.x.shape
    at_once = _HESSIAN_BYTES * (1 if isinstance(here.x, np.ndarray) else DEVICE_BLOCKS)
    steps = []
    for part in slices(n, max(1, at_once // max(8 * m * m, 1))):
        hessian = problem.hessian(here.point[part, ...], rows[part])
        steps.append(_solve_scaled(hessian, -here.gradient[part, ...]))
    step = steps[0] if len(steps) == 1 else concat(steps)
    return step, filled(0.0, n, step)


def _solve_scaled(hessian, right):
    """Solve Newton's equation, scaled to unit diagonal, with a ridge near rounding."""
    xp, (n, m) = namespace(hessian), right.shape
    diagonal = xp.reshape(hessian, (n, m * m))[:, :: m + 1]
    # A function that is constant on the support has variance 0 and keeps scale 1.
    tiny = float(xp.finfo(hessian.dtype).smallest_normal)
    scale = 1 / xp.sqrt(xp.where(diagonal > tiny, diagonal, 1.0))
    hessian *= scale[:, :, None]
    hessian *= scale[:, None, :]
    right = right * scale
    for ridge in (1e-14, 1e-11, 1e-8):
        diagonal += ridge * (rounding_of(hessian) / _EPS)
        try:
            return xp.linalg.solve(hessian, right[..., None])[..., 0] * scale
        # PyTorch raises a RuntimeError for a singular matrix.
        except (np.linalg.LinAlgError, RuntimeError):
            continue
    return right * scale


def _cg_direction(problem, here, rows):
    """Solve Newton's equation by conjugate gradients, to a share of its residual.

    A step that takes too many products counts as two iterations.
    """
    gradient, xp = here.gradient, namespace(here.gradient)
    # Gradients are scaled to length 1, because squares of small gradients underflow.
    length = xp.sqrt(row_dots(gradient, gradient))
    residual = gradient / -xp.where(length > 0, length, 1.0)[:, None]
    residual = cast(residual, xp.float32)
    point = cast(here.point, xp.float32)
    search, remaining = 1 * residual, cast(length > 0, xp.float32)
    solution = filled(0.0, residual.shape, residual)
    # Each piece has rows, their steps and costs.
    live, pieces = np.arange(len(rows)), []
    for _ in range(200):
        if not len(live):
            break
        product = problem.hessian_product(point, search)
        curvature = row_dots(search, product)
        along = xp.where(curvature > 0, remaining / curvature, 0.0)[:, None]
        product *= along
        residual -= product
        solution += times_over(along, search, product)
        before, remaining = remaining, row_dots(residual, residual)
        search *= xp.where(before > 0, remaining / before, 0.0)[:, None]
        search += residual
        go = to_host((remaining > _FORCING**2) & (curvature > 0))
        # Removing rows copies the arrays, so it waits until a tenth of rows are solved.
        if np.count_nonzero(go) <= 0.9 * len(go):
            solved, left = np.flatnonzero(~go), np.flatnonzero(go)
            steps = take(solution, solved), np.zeros(len(solved))
            pieces.append((live[solved], steps))
            kept = (remaining, point, solution, residual, search)
            remaining, point, solution, residual, search = _some(kept, left)
            live = live[left]
    costs = to_host(remaining > _FORCING**2).astype(np.float64)
    pieces.append((live, (solution, costs)))
    step, cost = joined(pieces)
    return step * length[:, None], cast(like(cost, length), length.dtype)
