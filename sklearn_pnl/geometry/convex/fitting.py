r"""Iterative proportional fitting: rescale a table margin by margin until all fit.

Each step is the I-projection onto the tables with one of the margins. The sweeps
converge to the I-projection onto the tables with all margins, if a table has them
(Csiszar 1975). For a positive start, the limit has the given margins, and the
interactions of the start that the margins do not determine.
"""

from math import prod

import numpy as np

from ..._utils.arrays import (
    at_most,
    constant,
    filled,
    largest,
    namespace,
    reshaped,
    with_errstate,
)
from .marginals import flat_margin, indicators_of, is_small


@with_errstate(over="ignore", divide="ignore", invalid="ignore")
def fit_margins(rows, shape, goals, max_iter, tol=None):
    """Fit flat tables (n, D) by sweeps, and return also the number of sweeps of each.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Start; the array is overwritten.
    shape : tuple of int
        Shape of a table.
    goals : dict of tuple of int to ndarray of shape (n, n_cells)
        Flat margins to fit, by ascending modes.
    max_iter : int
        Maximum number of sweeps over all margins.
    tol : float, default=None
        A table is finished if no margin had a larger error in a sweep. None makes all
        sweeps.
    """
    if tol is not None:
        return _until(rows, shape, goals, max_iter, tol)
    for _ in range(max_iter):
        for modes, goal in goals.items():
            now = flat_margin(rows, shape, modes)
            rows = _scaled(rows, shape, modes, goal, now)
    return rows, np.full(rows.shape[0], max_iter)


def _until(rows, shape, goals, max_iter, tol):
    """Run :func:`fit_margins` until each table has its margins to ``tol``."""
    out, n_iter, live = rows, np.zeros(len(rows), int), np.arange(len(rows))
    for _ in range(max_iter if len(rows) else 0):
        done = np.ones(len(live), bool)
        for modes, goal in goals.items():
            now = flat_margin(rows, shape, modes)
            done &= largest(now - goal) <= tol
            _scaled(rows, shape, modes, goal, now)
        n_iter[live] += 1
        # Removing tables copies the arrays, so it waits until a tenth of them are done.
        if np.count_nonzero(done) > 0.1 * len(done):
            out[live[done]] = rows[done]
            rows, live = rows[~done], live[~done]
            goals = {modes: goal[~done] for modes, goal in goals.items()}
            if not len(live):
                break
    out[live] = rows
    return out, n_iter


@with_errstate(over="ignore", divide="ignore", invalid="ignore")
def fit_counts(cells, margins, tol, max_iter):
    """Fit cells (D,) to intervals of counts by sweeps over the margins.

    The factor of a level is the multiplier of its interval: 1 if the count lies inside
    without it, and otherwise the factor that moves the count to a bound (Bregman 1967).

    Parameters
    ----------
    cells : ndarray of shape (D,)
        Positive start.
    margins : list of (ndarray of int of shape (D,), ndarray, ndarray)
        For each margin, the level of each cell, or -1 for cells that are not counted,
        and the lower and upper bounds of the counts of the levels.
    tol : float
        The sweeps stop when all factors change by less than this share.
    max_iter : int

    Returns
    -------
    cells : ndarray of shape (D,)
    n_iter : int
        Number of sweeps.
    converged : bool

    References
    ----------
    Bregman, "The relaxation method of finding the common point of convex sets and its
    application to the solution of problems in convex programming", USSR Computational
    Mathematics and Mathematical Physics, 1967.
    """
    # The last level contains the cells that are not counted.
    levels = [np.where(level < 0, len(lower), level) for level, lower, _ in margins]
    factors = [np.ones(len(lower)) for _, lower, _ in margins]
    for n_iter in range(1, max_iter + 1):
        change = 0.0
        for k, (_, lower, upper) in enumerate(margins):
            now = np.bincount(levels[k], cells, len(lower) + 1)[:-1]
            without = now / factors[k]
            factor = _ratio(np.clip(without, lower, upper), without)
            step = factor / factors[k]
            cells, factors[k] = cells * np.append(step, 1.0)[levels[k]], factor
            change = np.max(np.abs(step - 1), initial=change)
        if not change > tol:
            return cells, n_iter, bool(np.isfinite(cells).all())
    return cells, max_iter, False


@with_errstate(over="ignore", divide="ignore", invalid="ignore")
def fit_levels(rows, shape, goals, n_sweeps):
    """Fit margins of single modes without rescaling the tables in each step.

    A table is reshaped to a matrix, with the leading modes as rows. Factors of the rows
    and columns of the matrix represent the fit, so a sweep over all modes reads the
    table only twice.
    """
    halves = range(len(shape) + 1)
    cut = min(halves, key=lambda k: max(prod(shape[:k]), prod(shape[k:])))
    sides = shape[:cut], shape[cut:]
    sizes = tuple(map(prod, sides))
    matrices = reshaped(rows, (rows.shape[0], *sizes))
    factors = [filled(1.0, (rows.shape[0], size), rows) for size in sizes]
    for side in [0, 1] * n_sweeps:
        other = factors[1 - side]
        if side == 0:
            now = (matrices @ other[:, :, None])[..., 0]
        else:
            now = (other[:, None, :] @ matrices)[:, 0, :]
        now *= factors[side]
        for (k,), goal in goals.items():
            if (k >= cut) == side:
                levels = constant(now, indicators_of, sides[side], (k - side * cut,))
                factor = _ratio(goal, now @ levels) @ levels.T
                now *= factor
                factors[side] = at_most(factors[side] * factor, 1e300)
    fitted = matrices * factors[0][:, :, None]
    fitted *= factors[1][:, None, :]
    return reshaped(fitted, rows.shape)


def _scaled(rows, shape, modes, goal, now):
    """Multiply tables by the ratios of goals to sums, in place."""
    factor = _ratio(goal, now)
    if is_small(rows):
        rows *= factor @ constant(rows, indicators_of, shape, modes).T
        return rows
    n = rows.shape[0]
    axes = (length if k in modes else 1 for k, length in enumerate(shape))
    tables = reshaped(rows, (n, *shape))
    tables *= reshaped(factor, (n, *axes))
    return reshaped(tables, rows.shape)


def _ratio(goal, now):
    """Compute the factors from sums to goals; 1 if a sum is 0."""
    factor = namespace(now).where(now > 0, goal / now, 1.0)
    # A larger factor could overflow; the next sweep continues.
    return at_most(factor, 1e300)
