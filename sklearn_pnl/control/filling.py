"""Missing values of rows brought to a system, with what was observed left as it is."""

import numpy as np

from ..geometry import linear_projection
from .system import LinearSystem, rounding_of

# The measure that values are moved in: their place in the range of the column, plus
# this; the second for rows that need to go far beyond a range.
_OFFSETS = 1.0, 1e3
# Distance from the system that counts as met, as a share of a range, and the least of
# what the projection is asked for.
TOL, _ASKED = 1e-9, 1e-13


def fill_to(
    system: LinearSystem, rows: np.ndarray, missing: np.ndarray, ends: tuple
) -> tuple:
    """Rows (n, D) with missing values moved least to a system; which of it is missed.

    Least in chi-square of the measures ``(value - least) / range + offset``. Columns
    without negative values get none. What has no missing value in a row is left out.

    Parameters
    ----------
    system : LinearSystem
    rows : ndarray of shape (n, D)
        Missing values are guesses.
    missing : ndarray of bool of shape (n, D)
    ends : pair of ndarray of shape (D,)
        Of the values that were observed.

    Returns
    -------
    rows : ndarray of shape (n, D)
    missed : ndarray of bool of shape (n, c)
    """
    rows, used = rows.copy(), system.coefficients.any(axis=0)
    about = missing @ (system.coefficients != 0).T
    left = np.flatnonzero((missing & used).any(axis=1))
    for offset in _OFFSETS:
        if len(left):
            some = _moved(system, rows[left], missing[left], about[left], ends, offset)
            rows[left] = some
            left = left[_missed(system, some).any(axis=1)]
    return rows, _missed(system, rows) & (about | ~missing.any(axis=1)[:, None])


def _moved(system, rows, missing, about, ends, offset):
    """Rows with their missing values at the projection."""
    least, ranges = ends[0], ends[1] - ends[0]
    unit = np.where(ranges > 0, ranges, 1.0)
    # What is observed stays at 1 in the measure, and moves the ends of the system.
    measure = np.where(missing, (rows - least) / unit + offset, 1.0)
    measure = np.maximum(measure, 1e-3 * offset)
    shift = np.where(missing, least - offset * unit, rows - unit)
    shift = shift @ system.coefficients.T
    lower, upper = (
        np.where(about, end - shift, sign * np.inf)
        for end, sign in ((system.lower, -1), (system.upper, 1))
    )
    floor = np.where(least >= 0, np.maximum(offset - least / unit, 0), 0.0)
    found = linear_projection(
        measure,
        system.coefficients * unit,
        lower,
        upper,
        floor=np.where(missing, floor, 1.0),
        ceiling=np.where(missing, np.inf, 1.0),
        divergence="chi2",
        tol=_ASKED,
        max_iter=100,
        n_reasons=0,
    )
    values = (found.measure - offset) * unit + least
    values[(found.measure == floor) & (least >= 0)] = 0.0
    return np.where(missing, values, rows)


def _missed(system, rows):
    room = TOL * system.scale + rounding_of(system, rows)
    return np.abs(system.missing(rows)) > room
