"""Decide which training rows may be mixed, and which cells are copied from a parent.

``find_mixable`` is called once per fit. Rows are mixed with rows of the same group,
with the same missing cells, and on the same side of all thresholds. Missing cells and
atoms are not mixed: new rows copy them from a parent, the donor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from .._utils.arrays import dense

# Largest probability of separate ranges by chance.
CHANCE = 1e-3
# Number of columns up to which levels are kept apart, which needs dense rows.
MOST_COLUMNS = 500


@dataclass(frozen=True)
class MixableRows:
    """Training rows as arrays, and how they may be mixed: the input of a method.

    Attributes
    ----------
    rows : ndarray or sparse matrix of shape (m, D)
        Training rows with a number in every cell.
    shape : tuple of int
        Shape of a row.
    labels : ndarray of int of shape (m, c) or None
        Category codes.
    strata : list of (ndarray of int, ndarray of int) or None
        Pairs of rows and their possible neighbours; None for all rows.
    absent : ndarray of bool of shape (m, D) or None
        Cells that are not mixed: missing cells, and atoms of the value support.
    alike : ndarray of int of shape (m,) or None
        Only a parent with the number of the base row may be a donor.
    single : ndarray of bool of shape (D,) or None
        Columns that are not binary and in no equality, whose cells may change one by
        one; None for all columns.
    binary : ndarray of bool of shape (D,) or None
        Binary columns, which are copied from a parent.
    blocks : ndarray of int of shape (n_binary,)
        Block of each binary column. A block is copied from one parent; block 0 is
        copied from the donor, together with the categories.
    names, numbers : sequence or None
        Names of the columns and numbers of the rows, for messages.
    data_name : str
        Name of the rows, for messages.
    is_large : bool
        Whether the rows are sparse and too large for a dense array.
    owned : bool
        Whether a method may overwrite the rows.
    """

    rows: Any
    shape: tuple
    labels: NDArray | None = None
    strata: list | None = None
    absent: NDArray | None = None
    alike: NDArray | None = None
    single: NDArray | None = None
    binary: NDArray | None = None
    blocks: Any = ()
    names: Any = None
    numbers: Any = None
    data_name: str = "the training data"
    is_large: bool = False
    owned: bool = False

    def __len__(self):
        return self.rows.shape[0]

    @property
    def has_donors(self):
        """Whether new rows copy some cells, as categories, from a parent."""
        return bool(
            self.labels is not None or self.absent is not None or len(self.blocks)
        )


def find_mixable(rows, table, relations, k, groups=None, copies_atoms=True):
    """Find how the rows of a class may be mixed.

    Parameters
    ----------
    rows : ndarray or sparse matrix of shape (m, D)
        Training rows of the class; missing cells are NaN.
    table : Table
        Category codes and names of the rows.
    relations : ColumnRelations
    k : int
        Number of neighbours.
    groups : ndarray of int of shape (m,), default=None
        Groups of rows that are not mixed with each other.
    copies_atoms : bool, default=True
        Whether atoms are copied from a parent.

    Returns
    -------
    mixable : MixableRows
    side : ndarray of int of shape (m,) or None
        The number of the bounds of each training row.
    bounds : ndarray of shape (2, n_sides, D) or None
        Bounds of the new rows that start from the rows of a side. None stands for the
        bounds of the columns.
    """
    missing = np.isnan(rows) if table.has_missing else None
    absent = _absent_cells(rows, missing, relations, copies_atoms)
    filled = rows if absent is None else _filled(rows, absent)
    level, sides = separate_levels(filled, rows, table.labels, relations, k)
    lacks = np.zeros((len(table), 0), bool) if missing is None else missing
    tied = slice(0) if missing is None else relations.tied
    strata = strata_of(lacks, tied, k, groups, level)
    side, bounds = _bounds_of_sides(rows, missing, strata, sides, relations)
    alike = side
    if missing is not None:
        # A donor gives its missing cells, so both parents must lack the same cells.
        keys = missing[:, missing.any(axis=0)]
        alike = group_numbers(keys if side is None else np.column_stack([keys, side]))
    mixable = MixableRows(
        filled,
        table.shape,
        table.labels,
        strata,
        absent,
        alike,
        single=~(relations.in_equality | relations.columns.binary),
        binary=relations.columns.binary,
        blocks=_blocks_with_categories(rows, table.labels, relations),
        names=table.column_names,
        numbers=table.row_numbers,
        data_name=table.data_name,
        is_large=table.is_large,
    )
    return mixable, side, bounds


def _absent_cells(rows, missing, relations, copies_atoms):
    """Return the mask (m, D) of missing cells and of atoms, or None.

    Columns in equalities have no atoms.
    """
    absent = None if missing is None else missing.copy()
    atoms = relations.columns.atoms if copies_atoms else {}
    for column, values in atoms.items():
        if relations.copies_atoms[column]:
            absent = np.zeros(rows.shape, bool) if absent is None else absent
            absent[:, column] |= np.isin(rows[:, column], values)
    return absent if absent is not None and absent.any() else None


def _filled(rows, absent):
    """Return rows (m, D) with a middle value of the column in absent cells.

    With a middle value, the other cells decide which rows are near.
    """
    rows = np.where(absent, np.nan, rows)
    lost = np.isnan(rows).all(axis=0)
    rows[:, lost] = 0
    middle = np.nanpercentile(rows, 50, axis=0, method="lower")
    return np.where(np.isnan(rows), middle, rows)


def _blocks_with_categories(rows, labels, relations):
    """Return the block of each binary column; 0 if a category determines the block."""
    blocks = 1 + relations.blocks
    if labels is None or not len(blocks):
        return blocks
    flags = np.nan_to_num(rows[:, relations.columns.binary], nan=-np.inf)
    for levels in labels.T:
        _, first, level = np.unique(levels, return_index=True, return_inverse=True)
        alike = (flags == flags[first][level.reshape(-1)]).all(axis=0)
        blocks[~np.isin(blocks, blocks[~alike])] = 0
    return blocks


def _bounds_of_sides(rows, missing, strata, sides, relations):
    """Return the side (m,) of each row, and bounds (2, n_sides, D); None if equal.

    Integer columns of rows that are only mixed with rows with the same missing cells
    stay within the range of these rows: the age of a child is present only if there are
    more than 0 children. Columns with separate ranges stay on the side of the row.
    """
    if missing is None and sides is None:
        return None, None
    columns = relations.columns
    side = np.zeros(rows.shape[0], int)
    bounds = np.stack(
        [np.tile(bound, (len(strata), 1)) for bound in (columns.low, columns.high)]
    )
    for s, (indices, partners) in enumerate(() if missing is None else strata):
        side[indices] = s
        # Only rows that are mixed with each other have a range of their own.
        if indices is partners:
            own = np.fmin.reduce(rows[indices]), np.fmax.reduce(rows[indices])
            c = np.flatnonzero((columns.steps > 0) & ~np.isnan(own[0]))
            bounds[:, s, c] = np.stack(own)[:, c]
    if sides is not None:
        stratum, (of_threshold, limits) = side, sides
        side = group_numbers(np.column_stack([stratum, of_threshold]))
        first = np.unique(side, return_index=True)[1]
        bounds, limits = bounds[:, stratum[first]], limits[:, of_threshold[first]]
        np.maximum(bounds[0], limits[0], out=bounds[0])
        np.minimum(bounds[1], limits[1], out=bounds[1])
    return side, bounds


def strata_of(missing, tied, k, groups=None, levels=None):
    """Group rows by missing cells, groups and levels.

    Each pair contains rows and their possible neighbours. Rows with the same
    ``missing`` (m, D) cells form a stratum if there are more than ``k`` of them within
    ``groups`` (m,) and ``levels`` (m,). Other rows are mixed with rows of their group
    and level that have all of their ``tied`` columns. Rows of level -1 are mixed with
    all levels of their group.
    """
    if groups is None and levels is None and not missing.any():
        return None
    m = len(missing)
    group = np.zeros(m, int) if groups is None else groups
    level = np.zeros(m, int) if levels is None else levels
    parts = np.column_stack([group, level])
    pattern = group_numbers(np.column_stack([parts, missing[:, missing.any(axis=0)]]))
    size = np.bincount(pattern)
    is_small = (size[pattern] <= k) | (level < 0)
    members = np.split(np.argsort(pattern, kind="stable"), np.cumsum(size)[:-1])
    strata = [(rows, rows) for rows in members if not is_small[rows[0]]]
    small, lacks = np.flatnonzero(is_small), missing[:, tied]
    if len(small):
        pattern = group_numbers(np.column_stack([parts, lacks])[small])
        for p in np.unique(pattern):
            rows = small[pattern == p]
            may_be = ~(lacks & ~lacks[rows[0]]).any(axis=1)
            may_be &= group == group[rows[0]]
            if level[rows[0]] >= 0:
                may_be &= level == level[rows[0]]
            strata.append((rows, np.flatnonzero(may_be)))
    return strata


def separate_levels(rows, cells, labels, relations, k):
    """Find the level of each row in the columns that decide a numeric column.

    Rows of different levels are not mixed. For example, a mixture of the petals of two
    species, with the species of one parent, would fit no flower. A category, or a block
    of binary columns, decides a numeric column if at most a tenth of its variance is
    within the levels. With a value support, a category or a binary column also decides
    a numeric column if the levels have separate ranges, as "adult" starts at an age of
    18. Only levels with more than ``k / 2`` rows count, which excludes coincidences.

    Parameters
    ----------
    rows, cells : array of shape (m, D)
        Training rows, without and with their missing cells and atoms.
    labels : ndarray of int of shape (m, c) or None
    relations : ColumnRelations
    k : int
        Number of neighbours.

    Returns
    -------
    level : ndarray of int of shape (m,) or None
        -1 for rare levels. None if no column decides another column, or with more than
        500 columns.
    sides : tuple or None
        The side (m,) of all thresholds on which each row is, and the bounds
        (2, n_sides, D) of each side, which are infinite in other columns. None if no
        column has separate ranges.
    """
    has_keys = labels is not None or relations.columns.binary.any()
    if rows.shape[1] > MOST_COLUMNS or not has_keys:
        return None, None
    some = np.random.RandomState(0).permutation(rows.shape[0])[:1024]
    numeric = dense(rows[some])[:, ~relations.columns.binary]
    # Half of each value, since a range may overflow.
    extent = np.ptp(numeric / 2, axis=0)
    numeric = numeric[:, extent > 0] / extent[extent > 0]
    binary, blocks = np.flatnonzero(relations.columns.binary), relations.blocks
    flags = dense(rows[:, binary]) != relations.columns.least[binary]
    packed = [np.packbits(flags[:, blocks == b], axis=1) for b in np.unique(blocks)]
    keys = [] if labels is None else [_frequent(key, k / 2) for key in labels.T]
    levels = [*keys, *(_frequent(group_numbers(part), k / 2) for part in packed)]
    apart = [level for level in levels if _share_within(level[some], numeric) <= 0.1]
    sides = None
    if relations.columns.support is not None:
        known = np.where(np.isnan(dense(cells[:, binary])), -1, flags)
        keys += [_frequent(flag, k / 2) for flag in known.T]
        separate, sides = _sides_of(keys, cells, binary, some)
        apart += separate
    if not apart:
        return None, None
    level = group_numbers(np.column_stack(apart))
    level[(np.column_stack(apart) < 0).any(axis=1)] = -1
    return _frequent(level, k / 2), sides


def _sides_of(keys, cells, binary, some):
    """Return the keys with separate ranges, and their ``sides``."""
    ranges = [(key, _separate_ranges(key, cells, binary, some)) for key in keys]
    ranges = [(key, found) for key, found in ranges if found is not None]
    if not ranges:
        return [], None
    keys = [key for key, _ in ranges]
    side = group_numbers(np.column_stack(keys))
    first = np.unique(side, return_index=True)[1]
    low, high = zip(*(found[:, key[first]] for key, found in ranges), strict=True)
    return keys, (side, np.stack([np.maximum.reduce(low), np.minimum.reduce(high)]))


def _separate_ranges(level, cells, binary, some):
    """Return bounds (2, n_levels + 1, D) if a column separates the levels, or None.

    A column separates levels if their ranges do not overlap, and if chance is excluded.
    The last bounds, of rare levels, are infinite.
    """
    columns = np.setdiff1d(np.arange(cells.shape[1]), binary)
    for rows in (some[:256], np.arange(len(level))):
        rows = rows[level[rows] >= 0]
        values, size = np.unique(level[rows], return_counts=True)
        if len(values) < 2:
            return None
        order = rows[np.argsort(level[rows], kind="stable")]
        starts, x = np.cumsum(size) - size, dense(cells[order][:, columns])
        extremes = np.fmin.reduceat(x, starts), np.fmax.reduceat(x, starts)
        place = np.argsort(extremes[0], axis=0)
        least, most = (np.take_along_axis(x, place, axis=0) for x in extremes)
        apart = (most[:-1] < least[1:]).all(axis=0)
        columns = columns[apart]
        if not len(columns):
            return None
    # Of all orders of the rows, these keep the rows of each level together.
    chance = gammaln(len(values) + 1) + gammaln(size + 1).sum() - gammaln(len(rows) + 1)
    if chance > np.log(CHANCE / cells.shape[1]):
        return None
    place, least, most = place[:, apart], least[:, apart], most[:, apart]
    least[0], most[-1] = -np.inf, np.inf
    bounds = np.empty((2, values[-1] + 2, cells.shape[1]))
    bounds[0], bounds[1] = -np.inf, np.inf
    bounds[0, values[place], columns] = least
    bounds[1, values[place], columns] = most
    return bounds


def _frequent(level, least):
    """Return the levels (m,) that more than ``least`` rows have, and -1 elsewhere."""
    size = np.bincount(level[level >= 0], minlength=1)
    return np.where((level >= 0) & (size[level] > least), level, -1)


def _share_within(level, numeric):
    """Compute the least share of a column's variance that is within levels."""
    numeric, level = numeric[level >= 0], level[level >= 0]
    if not level.size or not numeric.shape[1] or level.min() == level.max():
        return 1.0
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=-1))
    size, m = np.diff(starts, append=len(level)), len(level)
    if m == len(size):
        return 1.0
    total = numeric - numeric.mean(axis=0)
    sums = np.add.reduceat(total[order], starts, axis=0)
    between = np.einsum("lc,lc,l->c", sums, sums, 1 / size)
    total = np.einsum("nc,nc->c", total, total)
    shares = 1 - between[total > 0] / total[total > 0]
    return shares.min(initial=1.0) * (m - 1) / (m - len(size))


def group_numbers(keys):
    """Number the distinct rows of keys (m, c) in ascending order."""
    numbers = np.zeros(len(keys), np.intp)
    for column in keys.T:
        values, each = np.unique(column, return_inverse=True)
        if len(values) == 1:
            continue
        # Each step numbers the distinct rows, so that the numbers stay small.
        pairs = numbers * len(values) + each
        distinct, numbers = np.unique(pairs, return_inverse=True)
        if len(distinct) == len(keys):
            break
    return numbers
