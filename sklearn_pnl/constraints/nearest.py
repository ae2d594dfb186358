"""The nearest rows, in weighted squares, on linear constraints with limits of cells."""

import numpy as np

from ..geometry import linear_projection
from .equalities import TOL


def nearest_rows(start, weights, system, low, high):
    r"""Minimise ``sum (x - start)**2 / weights`` on constraints and limits.

    Parameters
    ----------
    start, weights : ndarray of shape (n, D)
        Cells of weight 0 stay as they are, or go to the nearest limit.
    system : LinearConstraints
        Of k constraints of D columns, for all rows or n of them.
    low, high : ndarray of shape (n, D)
        Limits of cells; may be infinite.

    Returns
    -------
    rows : ndarray of shape (n, D)
    satisfied : ndarray of bool of shape (n, k)
        Equalities to 1e-9 of their scale, inequalities exactly where there is room.
    """
    rows = np.clip(start, low, high)
    low, high = (np.where(weights == 0, rows, end) for end in (low, high))
    columns = np.flatnonzero(system.coefficients.any(axis=0))
    # In these units weights are about 1.
    units = np.sqrt(weights[:, columns].max(axis=0, initial=0.0))
    units[units == 0] = 1.0
    # Inequalities are aimed at from inside, so that rounding does not cross them; where
    # there is no room inside, the ends themselves are good enough.
    for inside in (True, False):
        off = np.flatnonzero(~is_satisfied(system, rows, exact=inside).all(axis=1))
        if len(off) and len(columns):
            cells, part = np.ix_(off, columns), system.take_rows(off)
            arrays = start[cells], low[cells], high[cells], weights[cells] / units
            scaled = (x / units for x in arrays)
            asked = part.coefficients[:, columns] * units, part.lower, part.upper
            moved = _solve(*scaled, *asked, inside)
            # Of cells that did not move no digit is lost.
            moved = np.where(moved == arrays[0] / units, arrays[0], moved * units)
            rows[cells] = np.clip(moved, *arrays[1:3])
    return rows, is_satisfied(system, rows, exact=False)


def is_satisfied(system, rows, exact=True):
    """Tell which constraints (n, k) rows meet; inequalities exactly, or nearly.

    A missing cell meets an inequality and not an equality.
    """
    size = np.nan_to_num(np.abs(rows)) @ np.abs(system.coefficients).T
    room = TOL * system.scale + 16 * np.finfo(float).eps * size
    equal = np.broadcast_to(system.lower == system.upper, room.shape)
    missed = np.abs(system.residual(rows))
    room = np.where(equal | (not exact), room, 0.0)
    return (missed <= room) | (np.isnan(missed) & ~equal)


def _solve(start, low, high, weights, a, lower, upper, inside):
    """Rows nearest to ``start`` as measures ``m = r**2 w + r (x - start)``.

    With a number r of each row their chi-square divergence from ``r**2 w`` is the
    distance of the rows.
    """
    sizes = np.abs(a).max(axis=1, initial=0.0)
    sizes[sizes == 0] = 1.0
    a, lower, upper = a / sizes[:, None], lower / sizes, upper / sizes
    largest = weights.max(axis=1, keepdims=True)
    w = np.where(weights == 0, np.where(largest > 0, largest, 1.0), weights)
    values = start @ a.T
    missing = np.maximum(lower - values, 0) - np.maximum(values - upper, 0)
    # The multiplier that each constraint would need alone: measures of about the size
    # of the moves, whatever the units are, round least.
    gain = weights @ (a * a).T
    alone = np.abs(missing) / np.where(gain > 0, gain, np.inf)
    outside = np.maximum(low - start, start - high) / w
    ratio = 4 * np.maximum(alone @ np.abs(a), np.maximum(outside, 0)).max(axis=1)
    r = np.maximum(ratio, 1e-3 / np.sqrt(w.max(axis=1)))[:, None]
    s, tol = w * r**2, 1e-12
    room = 64 * tol * (s @ np.abs(a).T)
    ends = [s @ a.T + r * (end - values) for end in (lower, upper)]
    room = np.where(inside & (ends[1] - ends[0] > 2 * room), room, 0.0)
    floor, ceiling = (s + r * (end - start) for end in (low, high))
    solution = linear_projection(
        s, a, ends[0] + room, ends[1] - room, floor=floor, ceiling=ceiling,
        divergence="chi2", tol=tol, max_iter=300,
    )  # fmt: skip
    moved = np.where(solution.measure == s, start, start + (solution.measure - s) / r)
    return np.clip(moved, low, high)
