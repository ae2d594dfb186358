r"""Iterative proportional fitting: rescale a table margin by margin until all fit.

Each step is the I-projection on the tables with one of the margins, so that the sweeps
go to the I-projection on those with all of them, where there is one (Csiszar 1975);
for a start of full support that is the table with these margins and the interactions
of the start beyond them.
"""

from math import prod

import numpy as np

from .marginals import indicators_of, marginal_of


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
    out, n_iter, live = rows, np.zeros(len(rows), int), np.arange(len(rows))
    for _ in range(max_iter if len(rows) else 0):
        done = np.full(len(live), tol is not None)
        for modes, goal in goals.items():
            now = flat_margin(rows, shape, modes)
            if tol is not None:
                done &= np.abs(now - goal).max(axis=1, initial=0.0) <= tol
            _scale(rows, shape, modes, goal, now)
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


def fit_levels(rows, shape, goals, n_sweeps):
    """:func:`fit_margins` for margins of single modes, without rescaling the tables.

    A table is a matrix of the leading modes and the others, with a factor for each row
    and column of it, so that a sweep over many modes passes twice over the table.
    """
    halves = range(len(shape) + 1)
    cut = min(halves, key=lambda k: max(prod(shape[:k]), prod(shape[k:])))
    sides = shape[:cut], shape[cut:]
    matrices = rows.reshape(len(rows), prod(sides[0]), prod(sides[1]))
    factors = [np.ones((len(rows), size)) for size in matrices.shape[1:]]
    for side in [0, 1] * n_sweeps:
        other = factors[1 - side]
        if side == 0:
            now = (matrices @ other[:, :, None])[..., 0]
        else:
            now = (other[:, None, :] @ matrices)[:, 0]
        now *= factors[side]
        for (k,), goal in goals.items():
            if (k >= cut) == side:
                levels = indicators_of(sides[side], (k - side * cut,))
                factor = _ratio(goal, now @ levels) @ levels.T
                now *= factor
                factors[side] = np.minimum(factors[side] * factor, 1e300)
    fitted = matrices * factors[0][:, :, None]
    fitted *= factors[1][:, None, :]
    return fitted.reshape(rows.shape)


def flat_margin(rows, shape, modes):
    """Margin (n, n_cells) of tables (n, D), flat by ascending modes."""
    if _is_small(rows):
        return rows @ indicators_of(tuple(shape), tuple(modes))
    sums = marginal_of(rows.reshape(-1, *shape), modes)
    return sums.reshape(len(rows), prod(sums.shape[1:]))


def _scale(rows, shape, modes, goal, now):
    """Multiply tables in place by goals over sums."""
    factor = _ratio(goal, now)
    if _is_small(rows):
        rows *= factor @ indicators_of(shape, modes).T
        return
    axes = (length if k in modes else 1 for k, length in enumerate(shape))
    tables = rows.reshape(-1, *shape)
    tables *= factor.reshape(-1, *axes)


def _ratio(goal, now):
    """Factors from sums to goals; 1 where a sum is 0."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        factor = goal / now
    factor[~(now > 0)] = 1.0
    # A larger one could overflow; the next sweep goes on.
    return np.minimum(factor, 1e300, out=factor)


def _is_small(rows):
    """Whether products with indicators of margins are faster than sums over axes."""
    return rows.shape[1] <= 256
