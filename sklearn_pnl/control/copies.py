"""New rows of steps and few values that would copy a training row, led away from it.

Rows that the data themselves repeat may be drawn again; another one, met by rounding
alone, gets the next value of a column, of those that were rounded the most.
"""

import numpy as np

# Columns that are tried, those that were rounded the most first.
_TRIED = 4


class Originals:
    """Training rows that no other repeats.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        As the types, lattices and grids of new rows hold them, NaN where missing.
    labels : ndarray of int of shape (n, n_categorical) or None
    """

    def __init__(self, rows, labels=None):
        self._labels = labels
        self._keys, counts = np.unique(_keys(rows, labels), return_counts=True)
        self._alone = self._keys[counts == 1]

    def among(self, rows, donors):
        """Which new rows (m,) are one of these."""
        labels = None if self._labels is None else self._labels[donors]
        return np.isin(_keys(rows, labels), self._alone)

    def apart(self, keeper, rows, raw, free, donors):
        """New rows (m, D), in place, that are none of these where that can be.

        Parameters
        ----------
        keeper : Keeper
        rows, raw : ndarray of shape (m, D)
            As they are, and before they were rounded.
        free : ndarray of bool of shape (m, D)
            Cells that may have another value.
        donors : ndarray of int of shape (m,)
            Training rows that categories come from.
        """
        some = np.flatnonzero(self.among(rows, donors))
        if not len(some):
            return rows
        labels = None if self._labels is None else self._labels[donors[some]]
        now, wanted = rows[some], raw[some]
        side = np.where(wanted >= now, 1.0, -1.0)
        near, other = keeper.beside(now, side), keeper.beside(now, -side)
        near = np.where(np.isnan(near), other, near)
        with np.errstate(invalid="ignore"):
            rounded = np.abs(wanted - now) / np.abs(near - now)
        rounded[np.isnan(rounded) | ~free[some]] = -1
        # The other of two values is far: nothing speaks for it where parents agree.
        two = [j for j, grid in keeper.grids.items() if len(grid) == 2]
        rounded[:, two] = np.where(rounded[:, two] > 0, rounded[:, two], -1)
        every, todo = np.arange(len(now)), np.ones(len(now), bool)
        # Flags that a parent gives stay as they are.
        loose = keeper.others & free[some].any(axis=0)
        for column in np.argsort(-rounded, axis=1, kind="stable").T[:_TRIED]:
            tried = now.copy()
            tried[every, column] = near[every, column]
            tried = keeper.parted(tried, loose)
            fine = todo & (rounded[every, column] >= 0)
            fine &= ~np.isin(_keys(tried, labels), self._keys)
            rows[some[fine]] = tried[fine]
            todo &= ~fine
        return rows


def _keys(rows, labels):
    """A number for each row that others share only if they are the same."""
    cells = rows if labels is None else np.hstack([rows, labels])
    bits = (np.asarray(cells, np.float64) + 0.0).view(np.uint64)
    # Small whole numbers differ in their first bits alone.
    bits = bits ^ (bits >> np.uint64(32))
    factors = np.random.default_rng(0).integers(2**62, size=cells.shape[1]) * 2 + 1
    return bits @ factors.astype(np.uint64)
