"""Decide which training rows may be mixed, and which cells are copied from a parent.

``find_mixable`` is called once per fit. Rows are mixed with rows of the same group,
with the same missing cells, and on the same side of all thresholds. Missing cells,
atoms and values that a category implies are not mixed: new rows copy them from a
parent, the donor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .discrete import filled, group_numbers


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
        Cells that are not mixed: missing cells, atoms and implied values.
    alike : ndarray of int of shape (m,) or None
        Only a parent with the number of the base row may be a donor.
    single : ndarray of bool of shape (D,) or None
        Columns that are not binary and in no equality, whose cells may change one by
        one; None for all columns.
    binary : ndarray of bool of shape (D,) or None
        Binary columns, which are copied from a training row.
    blocks : ndarray of int of shape (n_binary,)
        Block of each binary column. A block is copied from one row; block 0 is
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
        Whether atoms and implied values are copied from a parent.

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
    absent = missing
    if copies_atoms:
        absent = relations.absent_cells(rows, missing)
    level, sides = _levels_of(rows, table.labels, relations.levels, k)
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
        filled(rows, absent),
        table.shape,
        table.labels,
        strata,
        absent,
        alike,
        single=~(relations.in_equality | relations.columns.binary),
        binary=relations.columns.binary,
        blocks=relations.blocks,
        names=table.column_names,
        numbers=table.row_numbers,
        data_name=table.data_name,
        is_large=table.is_large,
    )
    return mixable, side, bounds


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


def _levels_of(rows, labels, levels, k):
    """Return the level (m,) of each row, and the bounds of its ranges.

    Rows of levels that are not mixed have different numbers. Levels with at most
    ``k / 2`` rows have -1, because a level with one row would give copies only.

    Returns
    -------
    level : ndarray of int of shape (m,) or None
    sides : tuple or None
        The number (m,) of the ranges of each row, and the bounds (2, n_sides, D), which
        are infinite in other columns. None without separate ranges.
    """
    if not levels.keys:
        return None, None
    keys = np.column_stack([key.levels(rows, labels) for key in levels.keys])
    level = group_numbers(keys)
    is_frequent = np.bincount(level)[level] > k / 2
    level[~is_frequent | np.isnan(keys).any(axis=1)] = -1
    if not levels.ranges:
        return level, None
    keys = np.column_stack([each.key.levels(rows, labels) for each in levels.ranges])
    side = group_numbers(keys)
    bounds = np.empty((2, side.max() + 1, rows.shape[1]))
    bounds[0], bounds[1] = -np.inf, np.inf
    first = keys[np.unique(side, return_index=True)[1]]
    for key, (_, values, columns, ranges) in zip(first.T, levels.ranges, strict=True):
        known = np.flatnonzero(~np.isnan(key))
        ranges, cells = (
            ranges[:, np.searchsorted(values, key[known])],
            (known[:, None], columns),
        )
        bounds[0][cells] = np.maximum(bounds[0][cells], ranges[0])
        bounds[1][cells] = np.minimum(bounds[1][cells], ranges[1])
    return level, (side, bounds)
