"""Columns of two values of which no training row has two upper ones: dummies.

Of categories whose first level is dropped, for one: no equation says that a row has at
most one of them.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Flags:
    """Columns of two values, and which of them are never on together.

    Attributes
    ----------
    columns : ndarray of int of shape (m,)
    off, on : ndarray of shape (m,)
        Their lower and upper values.
    apart : ndarray of bool of shape (m, m)
        Which no training row has on together.
    """

    columns: np.ndarray
    off: np.ndarray
    on: np.ndarray
    apart: np.ndarray

    @classmethod
    def of(cls, rows, columns, bound):
        """Those among some columns of rows (n, D), where NaN is missing; or None.

        Of each two one at least is not ``bound`` (D,) by equations.
        """
        part = np.asarray(rows[:, columns], np.float64)
        off, on = np.fmin.reduce(part), np.fmax.reduce(part)
        is_on = part == on
        two = (is_on | (part == off) | np.isnan(part)).all(axis=0) & (off < on)
        columns, off, on = columns[two], off[two], on[two]
        ones, held = is_on[:, two].astype(np.float32), bound[columns]
        apart = (ones.T @ ones == 0) & ~(held[:, None] & held)
        some = apart.any(axis=0)
        if not some.any():
            return None
        return cls(columns[some], off[some], on[some], apart[some][:, some])

    def parted(self, rows, free, others):
        """Rows (n, D), in place, with no two on that are apart: the larger ones stay.

        Of flags that are not ``free`` (D,) all do; of two, one is of the ``others``.
        """
        free, todo = free[self.columns], np.arange(len(rows))
        middle = (self.off + self.on) / 2
        apart = (self.apart & others[self.columns, None]).astype(np.float32)
        values = rows[:, self.columns]
        while len(todo):
            is_on = values > middle
            clash = is_on & free & (is_on.astype(np.float32) @ apart > 0)
            some = clash.any(axis=1)
            todo, values = todo[some], values[some]
            shares = (values - self.off) / (self.on - self.off)
            least = np.where(clash[some], shares, np.inf).argmin(axis=1)
            values[np.arange(len(todo)), least] = self.off[least]
            rows[todo, self.columns[least]] = self.off[least]
        return rows

    def never_with(self, names):
        """Of each column in words, those that it is never on with."""
        names = [names[j] for j in self.columns]
        told = {}
        for j, apart in zip(self.columns.tolist(), self.apart, strict=True):
            others = [names[k] for k in np.flatnonzero(apart)]
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            told[j] = f"not on with {', '.join(others[:3])}{more}"
        return told
