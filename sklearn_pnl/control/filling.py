"""Missing values of rows brought to a system, with what was observed left as it is."""

from dataclasses import replace

import numpy as np

from .keeping import Keeper
from .lattice import Lattice
from .meeting import TOL, projected
from .system import rounding_of

# Units of the measure, in ranges, for rows that need to leave what was observed; the
# second for those that need to go far.
_FAR = 1e3, 1e6


def fill_to(system, rows, missing, ends, room):
    """Rows (n, D) with missing values moved least to a system; which of it is missed.

    Within what was observed of each column, if some such values meet the system: least
    in chi-square of the measures ``(value - least) / range + offset``. Else beyond, in
    squares of ranges, but columns without negative values get none. What has no missing
    value in a row is left out.

    Parameters
    ----------
    system : LinearSystem
    rows : ndarray of shape (n, D)
        Missing values are guesses.
    missing : ndarray of bool of shape (n, D)
    ends : pair of ndarray of shape (D,)
        Of the values that were observed.
    room : ndarray of shape (c,)
        What their types round.

    Returns
    -------
    rows : ndarray of shape (n, D)
    missed : ndarray of bool of shape (n, c)
    """
    rows, d = rows.copy(), rows.shape[1]
    least, ranges = ends[0], ends[1] - ends[0]
    about = missing @ (system.coefficients != 0).T
    # What has no missing value in a row asks for what is there.
    there = rows @ system.coefficients.T
    lower, upper = (np.where(about, e, there) for e in (system.lower, system.upper))
    asked = replace(system, ranges=ranges, lower=lower, upper=upper)
    none, limits = np.zeros(d), (np.where(least >= 0, 0.0, -np.inf), np.full(d, np.inf))
    keeper = Keeper(asked, *limits, least, ranges, Lattice(none, none), none, none, 0)
    # A column of one value has the range that its equations leave it.
    sizes = np.abs(np.where(system.coefficients == 0, np.inf, system.coefficients))
    wide = (asked.scale[:, None] / sizes).max(axis=0, initial=0.0)
    wide = np.where(ranges > 0, ranges, wide)
    left, start = np.flatnonzero(about.any(axis=1)), rows.copy()
    within = replace(keeper, low=ends[0], high=ends[1])
    ways = within, *(replace(keeper, ranges=far * wide) for far in _FAR)
    for way in ways if len(left) else ():
        own = way.of_rows(left)
        rows[left] = projected(own, start[left], ~missing[left])
        left = left[_missed(own.system, rows[left], room).any(axis=1)]
        if not len(left):
            break
    return rows, _missed(asked, rows, room)


def _missed(system, rows, room):
    room = room + TOL * system.scale + rounding_of(system, rows)
    return np.abs(system.missing(rows)) > room
