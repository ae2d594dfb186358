"""The nearest rows, in weighted squares, on linear constraints with limits of cells."""

import numpy as np

from ..geometry import linear_projection

# Residual of the solver, as a share of the terms of an equality.
_SOLVER_TOLERANCE = 1e-12
# Longer units of the solver's measures are tried so often, each time by a factor of 8.
_MAX_TRIES = 8
# Share of the scale of an equality that counts as met.
EQUALITY_TOLERANCE = 1e-9


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
    met : ndarray of bool of shape (n, k)
        Equalities to 1e-9 of their scale, inequalities exactly where there is room.
    """
    held = weights == 0
    rows = np.clip(start, low, high)
    low, high = (np.where(held, rows, end) for end in (low, high))
    columns = np.flatnonzero(system.coefficients.any(axis=0))
    if not (len(columns) and len(rows)):
        return rows, is_met(system, rows, exact=False)
    a = system.coefficients[:, columns]
    # In these units weights are about 1.
    units = np.sqrt(weights[:, columns].max(axis=0, initial=0.0))
    units[units == 0] = 1.0
    # Inequalities are aimed at from inside, so that rounding does not cross them; where
    # there is no room inside, the ends themselves are good enough.
    for inside in (True, False):
        off = np.flatnonzero(~is_met(system, rows, exact=inside).all(axis=1))
        cells, part = np.ix_(off, columns), system.take_rows(off)
        arrays = start[cells], low[cells], high[cells]
        scaled = (x / units for x in (*arrays, weights[cells] / units))
        shape = len(off), len(system)
        asked = (np.broadcast_to(end, shape) for end in (part.lower, part.upper))
        moved = _solve(*scaled, a * units, *asked, inside)
        # Of cells that did not move no digit is lost.
        moved = np.where(moved == arrays[0] / units, arrays[0], moved * units)
        rows[cells] = np.clip(moved, *arrays[1:])
    _nudge(rows, weights, system, low, high)
    return rows, is_met(system, rows, exact=False)


def _nudge(rows, weights, system, low, high):
    """Rows, in place, across the ends of inequalities that rounding alone misses."""
    off = ~is_met(system, rows) & is_met(system, rows, exact=False)
    for k in np.flatnonzero(off.any(axis=0)):
        i, a = np.flatnonzero(off[:, k]), system.coefficients[k]
        x, few = rows[i], system.take_rows(i).select([k])
        w = weights[i] * ((x > low[i]) & (x < high[i]))
        size = 4 * np.finfo(float).eps * (np.abs(x) @ np.abs(a))
        missing = few.residual(x)[:, 0]
        missing += np.sign(missing) * size
        gain = w @ (a * a)
        length = np.divide(missing, gain, out=np.zeros(len(i)), where=gain > 0)
        rows[i] = np.clip(x + length[:, None] * w * a, low[i], high[i])


def is_met(system, rows, exact=True):
    """Tell which constraints (n, k) rows meet; inequalities exactly, or nearly.

    A missing cell meets an inequality and not an equality.
    """
    size = np.nan_to_num(np.abs(rows)) @ np.abs(system.coefficients).T
    room = EQUALITY_TOLERANCE * system.scale + 16 * np.finfo(float).eps * size
    equal = np.broadcast_to(system.lower == system.upper, room.shape)
    missed = np.abs(system.residual(rows))
    room = np.where(equal | (not exact), room, 0.0)
    return (missed <= room) | (np.isnan(missed) & ~equal)


def _solve(start, low, high, weights, a, lower, upper, inside):
    """Rows nearest to ``start`` by the dual Newton method for measures.

    That method wants positive measures: ``m = r**2 w + r (x - start)`` with a number r
    of each row has the same distance, and its floor 0 is out of the way if r is large.
    So r grows until no cell is at a floor that nobody asked for.
    """
    unit = np.abs(a).max(axis=1, initial=0.0)
    unit[unit == 0] = 1.0
    a, lower, upper = a / unit[:, None], lower / unit, upper / unit
    held = weights == 0
    largest = weights.max(axis=1, keepdims=True)
    w = np.where(held, np.where(largest > 0, largest, 1.0), weights)
    values = start @ a.T
    missing = np.maximum(lower - values, 0) - np.maximum(values - upper, 0)
    # The multiplier each constraint would need alone.
    gain = weights @ (a * a).T
    alone = np.abs(missing) / np.where(gain > 0, gain, np.inf)
    outside = np.maximum(low - start, start - high) / w
    ratio = 4 * np.maximum(alone @ np.abs(a), np.maximum(outside, 0)).max(axis=1)
    # Measures of about 1, whatever the units are.
    r = np.maximum(ratio, 1e-3 / np.sqrt(w.max(axis=1)))
    rows, todo = np.clip(start, low, high), np.arange(len(start))
    for _ in range(_MAX_TRIES):
        s, q = w[todo] * r[todo, None] ** 2, r[todo, None]
        room = 64 * _SOLVER_TOLERANCE * (s @ np.abs(a).T) if inside else 0.0
        base, shift = s @ a.T, values[todo]
        ends = [base + q * (end[todo] - shift) for end in (lower, upper)]
        wide = ends[1] - ends[0] > 2 * room
        ends = [
            np.where(wide, e + d, e) for e, d in zip(ends, (room, -room), strict=True)
        ]
        limits = [s + q * (end[todo] - start[todo]) for end in (low, high)]
        found = linear_projection(
            s, a, *ends, floor=limits[0], ceiling=limits[1], divergence="chi2",
            tol=_SOLVER_TOLERANCE, max_iter=300,
        )  # fmt: skip
        moved = start[todo] + (found.measure - s) / q
        moved = np.where(found.measure == s, start[todo], moved)
        rows[todo] = np.clip(moved, low[todo], high[todo])
        # Where the floor of measures is in the way of the limits.
        cut = (limits[0] < 0) & (
            (found.measure <= 1e-6 * s) | ~found.converged[:, None]
        )
        todo = todo[cut.any(axis=1)]
        if not len(todo):
            break
        r[todo] *= 8
    return rows
