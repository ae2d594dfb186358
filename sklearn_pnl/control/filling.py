"""Missing values of rows brought to a system, with what was observed left as it is."""

from dataclasses import replace

import numpy as np

from .keeping import Keeper
from .lattice import Lattice
from .meeting import projected
from .system import LinearSystem

# Units of the measure, in ranges; the second for rows that need to go far beyond these.
_FAR = 1.0, 1e6


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
    rows, d = rows.copy(), rows.shape[1]
    least, ranges = ends[0], ends[1] - ends[0]
    about = missing @ (system.coefficients != 0).T
    told = about | ~missing.any(axis=1)[:, None]
    asked = replace(
        system,
        ranges=ranges,
        lower=np.where(told, system.lower, -np.inf),
        upper=np.where(told, system.upper, np.inf),
    )
    none, limits = np.zeros(d), (np.where(least >= 0, 0.0, -np.inf), np.full(d, np.inf))
    keeper = Keeper(
        asked,
        *limits,
        least=least,
        ranges=ranges,
        scaled=True,
        offset=1.0,
        lattice=Lattice(none, none),
        precision=none,
        by_values=none > 0,
        widest=limits,
        grids={},
    )
    left = np.flatnonzero(about.any(axis=1))
    for far in _FAR if len(left) else ():
        own = replace(keeper, ranges=far * ranges).of_rows(left)
        rows[left] = projected(own, rows[left], ~missing[left])
        left = left[own.missed(rows[left]).any(axis=1)]
        if not len(left):
            break
    return rows, keeper.missed(rows)
