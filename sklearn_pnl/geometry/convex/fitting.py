r"""Iterative proportional fitting: rescale a table margin by margin until all fit.

Each step is the I-projection on the tables with one of the margins, so that the sweeps
go to the I-projection on those with all of them, where there is one (Csiszar 1975);
for a start of full support that is the table with these margins and the interactions
of the start beyond them.
"""

from math import prod

import numpy as np

from ..._utils.arrays import at_most, constant, filled, largest, namespace, reshaped
from .marginals import flat_margin, indicators_of, is_small


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def fit_margins(rows, shape, goals, max_iter, tol=None):
    """Tables, flat (n, D), after some sweeps, and how many each took.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        What to begin from; it is written over.
    shape : tuple of int
        Of a table.
    goals : dict of tuple of int to ndarray of shape (n, n_cells)
        Margins wanted, flat, by ascending modes.
    max_iter : int
        Sweeps over all margins.
    tol : float, default=None
        Tables are done where no margin was off by more; None makes all sweeps.
    """
    if tol is not None:
        return _until(rows, shape, goals, max_iter, tol)
    for _ in range(max_iter):
        for modes, goal in goals.items():
            now = flat_margin(rows, shape, modes)
            rows = _scaled(rows, shape, modes, goal, now)
    return rows, np.full(rows.shape[0], max_iter)


def _until(rows, shape, goals, max_iter, tol):
    """:func:`fit_margins` until each table has its margins."""
    out, n_iter, live = rows, np.zeros(len(rows), int), np.arange(len(rows))
    for _ in range(max_iter if len(rows) else 0):
        done = np.ones(len(live), bool)
        for modes, goal in goals.items():
            now = flat_margin(rows, shape, modes)
            done &= largest(now - goal) <= tol
            _scaled(rows, shape, modes, goal, now)
        n_iter[live] += 1
        # Dropping tables copies the others: it waits until more than a tenth are done.
        if np.count_nonzero(done) > 0.1 * len(done):
            out[live[done]] = rows[done]
            rows, live = rows[~done], live[~done]
            goals = {modes: goal[~done] for modes, goal in goals.items()}
            if not len(live):
                break
    out[live] = rows
    return out, n_iter


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def fit_levels(rows, shape, goals, n_sweeps):
    """:func:`fit_margins` for margins of single modes, without rescaling the tables.

    A table is a matrix of the leading modes and the others, with a factor for each row
    and column of it, so that a sweep over many modes passes twice over the table.
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
    """Tables times goals over sums, in place."""
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
    """Factors from sums to goals; 1 where a sum is 0."""
    factor = namespace(now).where(now > 0, goal / now, 1.0)
    # A larger one could overflow; the next sweep goes on.
    return at_most(factor, 1e300)
