"""The nearest rows, in weighted squares, on linear constraints with limits of cells."""

import numpy as np

from ..geometry import linear_projection

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
    rows = np.clip(start, low, high)
    low, high = (np.where(weights == 0, rows, end) for end in (low, high))
    # Inequalities are aimed at from inside, so that rounding does not cross them; where
    # there is no room inside, the ends themselves are good enough.
    for inside in (True, False):
        off = np.flatnonzero(~is_met(system, rows, exact=inside).all(axis=1))
        if len(off):
            arrays = (x[off] for x in (start, weights, low, high))
            rows[off] = _solve(*arrays, system.take_rows(off), inside)
    return rows, is_met(system, rows, exact=False)


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


def _solve(start, weights, low, high, system, inside):
    """Rows nearest to ``start``, as measures ``m = r**2 w + r (x - start) / unit``.

    Their chi-square divergence from ``r**2 w`` is the distance of the rows.
    """
    # In these units weights are about 1, and so are coefficients.
    units = np.sqrt(weights.max(axis=0, initial=0.0))
    units[units == 0] = 1.0
    a = system.coefficients * units
    sizes = np.abs(a).max(axis=1, initial=0.0)
    sizes[sizes == 0] = 1.0
    a /= sizes[:, None]
    w = weights / units**2
    w[w == 0] = 1.0
    # With a small r residuals are shares of what is missing, and hardly of the weights.
    missing = np.abs(system.residual(start)) / sizes
    r = 1e-3 * np.maximum(missing.max(axis=1, keepdims=True), 1.0)
    base, tol = r**2 * w, 1e-12
    values = start @ system.coefficients.T
    lower, upper = (
        base @ a.T + r * (end - values) / sizes for end in (system.lower, system.upper)
    )
    ends = [np.where(np.isfinite(end), np.abs(end), 0) for end in (lower, upper)]
    room = 64 * tol * np.maximum.reduce([base @ np.abs(a).T, *ends])
    room = np.where(inside & (upper - lower > 2 * room), room, 0.0)
    floor, ceiling = (base + r * (end - start) / units for end in (low, high))
    found = linear_projection(
        base, a, lower + room, upper - room, floor=floor,
        ceiling=ceiling, divergence="chi2", tol=tol, max_iter=300,
    )  # fmt: skip
    # Of cells that did not move no digit is lost.
    moved = start + (found.measure - base) * units / r
    return np.clip(np.where(found.measure == base, start, moved), low, high)
