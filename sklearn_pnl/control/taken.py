"""Cells that new rows take from a parent as they are: shared values, and missing ones.

A value that many rows share, and none at all, are no numbers to mix with: a new row
takes them from its parents, and its other numbers are those of parents that have some.
Columns whose cells go together in the rows have them from one parent, others each from
one of their own: all of them from one would repeat the pattern of a training row in
every new row of it, which learners then take for a mark of the class.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from .promises import SEARCHED_UP_TO

# Deviations from chance beyond which cells go together, and rows that tell.
_DEVIATIONS, _DECIDING = 3, 2**12
# Standard errors within which cells of a class are missing as often as those of all.
_ALIKE = 2


@dataclass(frozen=True)
class Taken:
    """Kinds of cells: 0 is a number, -1 is none, others are a shared value.

    Attributes
    ----------
    d : int
        How many columns (D) there are.
    columns : ndarray of int of shape (s,)
        Those with any such cell.
    values : ndarray of shape (s, most + 2)
        Of each kind, NaN for the first and the last.
    by_all : bool
        Whether a new row has what all its parents share; else what one of them has.
    kinds : ndarray of int8 of shape (n, s)
    groups : ndarray of int of shape (s,)
        Columns of one number have their cells from one parent; 0 is that which
        categories are from.
    rates : ndarray of shape (s,)
        How often cells are missing by chance alone: in a class as in all rows, whatever
        others are; NaN where a parent says whether they are.
    ends, middle : ndarray of shape (2, s) and (s,)
        Of the numbers in each column.
    """

    d: int
    columns: np.ndarray
    values: np.ndarray
    by_all: bool
    kinds: np.ndarray
    groups: np.ndarray
    rates: np.ndarray
    ends: np.ndarray
    middle: np.ndarray

    @classmethod
    def of(cls, marks, rows, labels=None):
        """Those of the rows (n, D) of a class, with categories (n, c) or without."""
        d = rows.shape[1]
        zeros = dict.fromkeys(range(d), [0.0]) if marks.zeros else {}
        shared = marks.spikes | zeros | {j: marks.grids[j] for j in marks.tied}
        columns = np.array(sorted(shared.keys() | marks.missing.keys()), np.intp)
        most = max(map(len, shared.values()), default=0)
        values = np.full((len(columns), most + 2), np.nan)
        for i, j in enumerate(columns.tolist()):
            own = shared.get(j, ())
            values[i, 1 : 1 + len(own)] = own
        kinds, groups = _kinds_of(rows[:, columns], values), np.zeros_like(columns)
        rates = np.full(len(columns), np.nan)
        if not marks.zeros and 0 < len(columns) <= SEARCHED_UP_TO:
            places = {j: i for i, j in enumerate(columns.tolist())}
            ties = [(places[j], places[k]) for j in marks.tied for k in marks.tied[j]]
            groups = _going_together(kinds, labels, ties)
            shares = np.array([marks.missing.get(j, 0.0) for j in columns.tolist()])
            rates = np.where(_by_chance(kinds, groups, shares), shares, np.nan)
        numbers = rows[:, columns].astype(np.float64)
        numbers[kinds != 0] = np.nan
        # Where there are none, shared values are all that is known.
        alone = np.isnan(numbers).all(axis=0)
        if alone.any():
            numbers[:, alone] = np.nan_to_num(rows[:, columns[alone]])
        ends = np.array([np.fmin.reduce(numbers), np.fmax.reduce(numbers)])
        # The lower median: what is no number is sorted to the end.
        last = len(numbers) - 1 - np.isnan(numbers).sum(axis=0)
        middle = np.sort(numbers, axis=0)[last // 2, np.arange(len(columns))]
        return cls(d, columns, values, marks.zeros, kinds, groups, rates, ends, middle)

    @property
    def has_donors(self):
        """Whether one parent gives new rows some of their cells."""
        return bool(len(self.columns) and (not self.by_all or (self.kinds < 0).any()))

    def hidden(self, rows):
        """Rows with a number in each cell: the nearest to what it holds, of the others.

        The middle one where it holds none.
        """
        part = rows[:, self.columns]
        kinds = _kinds_of(part, self.values)
        if not (kinds < 0).any() and (self.by_all or not kinds.any()):
            return rows
        rows = rows.copy()
        near = np.clip(part, *self.ends)
        part = np.where((kinds > 0) & (not self.by_all), near, part)
        rows[:, self.columns] = np.where(kinds < 0, self.middle, part)
        return rows

    def shown(self, rows, missing=None):
        """Training rows, hidden, with their shared values again, and ``missing``."""
        own = self._values(self.kinds)
        part = np.where(np.isnan(own), rows[:, self.columns], own)
        if missing is not None:
            part[self.kinds < 0] = missing
        rows[:, self.columns] = part
        return rows

    @property
    def is_any(self):
        """Columns (D,) of which some cells are taken."""
        return np.isin(np.arange(self.d), self.columns[(self.kinds != 0).any(axis=0)])

    @property
    def lacking(self):
        """Cells (n, D) of training rows that hold no number to mix; None if all do."""
        return self._cells(self.kinds < 0 if self.by_all else self.kinds != 0)

    def missing(self, kinds=None):
        """Cells (n, D) of rows of some kinds that are missing; None if none is.

        Of the training rows by default.
        """
        return self._cells((self.kinds if kinds is None else kinds) < 0)

    def _cells(self, some):
        if not some.any():
            return None
        cells = np.zeros((len(some), self.d), bool)
        cells[:, self.columns] = some
        return cells

    @property
    def shared_ends(self):
        """Ends (2, D) of the shared values that new rows may have."""
        own, ends = self._values(self.kinds), np.tile([[np.inf], [-np.inf]], self.d)
        ends[0, self.columns] = np.fmin.reduce(own, initial=np.inf)
        ends[1, self.columns] = np.fmax.reduce(own, initial=-np.inf)
        return ends

    @property
    def is_split(self):
        """Whether some cells have a parent of their own."""
        return bool(self.groups.any())

    def drawn(self, parents, givers, donors, rng=None):
        """Kinds (m, s) of the cells of new rows, whose categories donors give.

        Of any of the givers, group by group, where there is a generator.
        """
        kinds = self.kinds[donors]
        if rng is not None:
            c, n_groups = np.flatnonzero(~np.isnan(self.rates)), self.groups.max()
            # All coins of a row at once, so that batches of any size draw the same.
            coins = rng.uniform(size=(len(donors), n_groups + len(c)))
            chosen = givers.shape[1] * coins[:, :n_groups]
            others = np.take_along_axis(givers, chosen.astype(np.intp), axis=1)
            own = np.column_stack([donors, others])
            kinds = self.kinds[own[:, self.groups], np.arange(len(self.columns))]
            # Where all parents lack it, it is missing anyway.
            none = self.rates[c] ** parents.shape[1]
            lost = coins[:, n_groups:] * (1 - none) < self.rates[c] - none
            # Of the parents one that has a value.
            there = self.kinds[parents[:, :, None], c].max(axis=1)
            there = np.where(kinds[:, c] < 0, there, kinds[:, c])
            kinds[:, c] = np.where(lost, -1, there)
        if self.by_all:
            alike = (self.kinds[parents] == kinds[:, None]).all(axis=1)
            kinds = np.where(alike | (kinds < 0), kinds, 0)
        return kinds

    def held(self, kinds):
        """Shared values (m, D) of new rows, NaN where there are none; or None."""
        if not len(self.columns):
            return None
        held = np.full((len(kinds), self.d), np.nan)
        held[:, self.columns] = self._values(kinds)
        return held

    def _values(self, kinds):
        """Shared values (m, s) of kinds, NaN where there are none."""
        return self.values[np.arange(len(self.columns)), kinds]


def _kinds_of(cells, values):
    """Kinds (n, s) of cells that some share values (s, most + 2) of."""
    kinds = np.zeros(cells.shape, np.int8)
    for k in range(1, values.shape[1] - 1):
        kinds[cells == values[:, k]] = k
    kinds[np.isnan(cells)] = -1
    return kinds


def _by_chance(kinds, groups, shares):
    """Columns (s,) that are missing as in all rows (s,), and go with no other one."""
    n, alone = len(kinds), (groups > 0) & (np.bincount(groups)[groups] == 1)
    off = np.abs((kinds < 0).mean(axis=0) - shares)
    return alone & (shares > 0) & (off <= _ALIKE * np.sqrt(shares * (1 - shares) / n))


def _going_together(kinds, labels=None, ties=()):
    """Groups (s,) of columns whose kinds depend on each other; 0: on categories.

    Where the correlation of two indicators is beyond that of chance, or where columns
    are known to be tied.
    """
    s, some = kinds.shape[1], slice(None, None, 1 + len(kinds) // _DECIDING)
    cells = (kinds if labels is None else np.hstack([kinds, labels]))[some] + np.intp(1)
    (n, c), sizes = cells.shape, cells.max(axis=0) + 1
    places = (cells + np.cumsum(sizes) - sizes).ravel()
    starts = np.arange(0, n * c + 1, c)
    ones = csr_array((np.ones(n * c), places, starts), (n, sizes.sum()))
    # Categories are as one column more.
    column = np.minimum(np.repeat(np.arange(c), sizes), s)
    share, own = ones.sum(axis=0) / n, column < s
    spread = np.sqrt(share * (1 - share))
    common = (ones[:, own].T @ ones).toarray() / n - np.outer(share[own], share)
    least = min(_DEVIATIONS / np.sqrt(n), 1 - 1e-9)
    i, j = np.nonzero(np.abs(common) > least * np.outer(spread[own], spread))
    first, second = np.reshape(ties, (-1, 2)).astype(np.intp).T
    i, j = np.append(column[own][i], first), np.append(column[j], second)
    pairs = coo_array((np.ones(len(i)), (i, j)), (s + 1, s + 1))
    n_groups, groups = connected_components(pairs, directed=False)
    return (groups[:s] - groups[s]) % n_groups
