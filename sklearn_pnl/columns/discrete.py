"""Find relations of discrete columns: categories, binary columns and atoms.

All relations are found once, in the rows of all classes:

- ``find_blocks`` finds which binary columns are copied together from one row.
- ``find_implied_values`` finds values of numeric columns that a category or a binary
  column implies, so that they are copied together from one parent.
- ``find_levels`` finds which categories and binary columns decide a numeric column, so
  that rows of different levels are not mixed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from .._utils.arrays import BLOCK_CELLS, dense, nonzero_cells, slices, some_columns

# Largest number of binary columns that are divided into blocks.
MOST_LINKED = 2048
# A combination of values that is in no row is excluded by more than chance if this
# number of rows is expected. Chance alone excludes one in exp(5) = 148 combinations.
LEAST_EXPECTED = 5.0
# Largest number of columns for which levels are kept apart, which needs dense rows.
MOST_COLUMNS = 500
# Largest probability of separate ranges by chance.
CHANCE = 1e-3
# Largest share of the variance of a column within levels that decide the column.
LARGEST_SHARE = 0.1
# Levels with fewer rows do not show whether they decide a column.
LEAST_ROWS = 4
# Number of rows that rule out most relations before all rows are used.
FEW_ROWS = 1024


# --- blocks of binary columns ---------------------------------------------------------


def masks_of(rows, columns, least, most, has_missing=True):
    """Return which cells (n, b) of binary columns have the larger value, and are known.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Rows; missing cells are NaN.
    columns : ndarray of int of shape (b,)
        Binary columns.
    least, most : ndarray of shape (b,)
        The two values of each column.
    has_missing : bool, default=True
        Whether cells can be missing.

    Returns
    -------
    high : ndarray of bool of shape (n, b)
    known : ndarray of bool of shape (n, b), or (n, 1) if no cell can be missing
    """
    high = np.empty((len(rows), len(columns)), bool)
    known = np.ones(high.shape if has_missing else (len(rows), 1), bool)
    for part in slices(len(rows), 1 + BLOCK_CELLS // max(1, rows.shape[1])):
        cells = some_columns(rows[part], columns)
        high[part] = cells == most
        if has_missing:
            known[part] = high[part] | (cells == least)
    return high, known


def find_blocks(high, known, equations, order):
    """Return the block (b,), from 1, of each binary column.

    Two binary columns share a block if an equality contains both, or if some
    combination of their values is in no row and chance is excluded. With more than
    ``MOST_LINKED`` columns, all columns share block 0.

    Parameters
    ----------
    high, known : ndarray of bool of shape (n, b)
        Cells that have the larger value, and that are not missing; ``known`` can have
        one column if no cell is missing.
    equations : ndarray of shape (k, b)
        Coefficients of equalities.
    order : ndarray of int of shape (n,)
        A random order of the rows.
    """
    b = high.shape[1]
    if not 0 < b <= MOST_LINKED:
        return np.zeros(b, int)
    linked = _linked_pairs(high, known[:, :1] if known.all() else known, order)
    return _components(linked, equations)


def find_sparse_blocks(flags, least, most, equations):
    """Return the block (b,), from 1, of each column of a sparse matrix (n, b)."""
    b = flags.shape[1]
    if not 0 < b <= MOST_LINKED:
        return np.zeros(b, int)
    return _components(_linked_sparse_pairs(flags, least, most), equations)


def _components(linked, equations):
    """Return the block (b,), from 1, of columns with links (b, b) and equalities."""
    if len(equations):
        members = (equations != 0).astype(float)
        linked = linked | (members.T @ members > 0)
    # A dense matrix would be converted by masked arrays.
    links = nonzero_cells(linked)
    linked = csr_array((np.ones(len(links[0])), links), linked.shape)
    return 1 + connected_components(linked, directed=False)[1]


def move_to_donor(blocks, high, known, keys, order):
    """Return blocks (b,) with block 0 for columns that follow a key.

    The donor gives block 0, together with the categories and the atoms.

    Parameters
    ----------
    blocks : ndarray of int of shape (b,)
    high, known, order
        As for :func:`find_blocks`.
    keys : list of ndarray of int of shape (n,)
        Codes of categories, and of copied values of numeric columns.
    """
    blocks = blocks.copy()
    if blocks.any() and keys:
        # Each part of the rows is then a sample.
        values = high[order], (known & ~high)[order]
        shares = [value.mean(axis=0) for value in values]
        for key in keys:
            columns = np.flatnonzero(blocks)
            follows = _following_flags(key[order], values, shares, columns)
            blocks[np.isin(blocks, blocks[follows])] = 0
    return blocks


def _least_expected(n_columns):
    """Return the number of expected rows that excludes chance.

    Among all pairs of columns, about one is linked by chance.
    """
    return max(LEAST_EXPECTED, 2 * np.log(n_columns))


def _linked_pairs(high, known, order):
    """Return the mask (b, b) of pairs with a combination of values in no row.

    Chance is excluded by the number of rows that are expected if the columns are
    independent.

    Parameters
    ----------
    high : ndarray of bool of shape (n, b)
        Whether a column has the larger of its two values.
    known : ndarray of bool of shape (n, b) or (n, 1)
        Whether a cell is not missing; one column if no cell is missing.
    order : ndarray of int of shape (n,)
        A random order of the rows.
    """
    n, b = high.shape
    n_high, expected = _column_sums(high), _least_expected(b)
    sizes = n_high, _column_sums(known) - n_high
    columns = np.arange(b)
    if known.shape[1] == 1:
        # Without missing cells, a column with a rarer value is in no such pair.
        columns = np.flatnonzero(np.minimum(*sizes) >= expected)
        sizes = [size[columns] for size in sizes]
        known_columns = np.zeros(1, int)
    else:
        known_columns = columns
    few = order[:FEW_ROWS]
    h, p = (
        some_columns(mask[few], of_mask).astype(np.float32)
        for mask, of_mask in ((high, columns), (known, known_columns))
    )
    both, one, every = h.T @ h, h.T @ p, p.T @ p
    # Pairs for which none of the few rows has both larger values, the first, or none.
    rare = {(0, 0): both == 0, (0, 1): both == one, (1, 1): both == one + one.T - every}
    bits = [_bits_of_columns(high), _bits_of_columns(known)]
    bits[1] = bits[1] & ~bits[0]
    linked = np.zeros((b, b), bool)
    for (i, j), is_rare in rare.items():
        with np.errstate(divide="ignore"):
            is_likely = sizes[j] >= (expected * n / sizes[i])[:, None]
        first, second = (columns[k] for k in nonzero_cells(is_rare & is_likely))
        # The bits of all rows check the pairs that a few rows do not rule out.
        for part in slices(len(first), 1 + 2**22 // n):
            rows = bits[i][first[part]] & bits[j][second[part]]
            absent = ~rows.any(axis=1)
            linked[first[part][absent], second[part][absent]] = True
    return linked


def _column_sums(mask):
    """Return the number (b,) of true cells in each column of a mask (n, b)."""
    # Sums of 255 rows fit into the cells of a mask.
    return sum(
        np.add.reduce(mask[part].view(np.uint8), axis=0, dtype=np.uint8).astype(int)
        for part in slices(len(mask), 255)
    )


def _bits_of_columns(mask):
    """Return the cells of each column of a mask (n, b) as bits (b, n / 8)."""
    n, b = mask.shape
    bits = np.zeros((-(-n // 8), b), np.uint8)
    # np.packbits is ten times slower along the first axis.
    for part in slices(n, 512):
        cells, packed = mask[part].view(np.uint8), bits[part.start // 8 :]
        for bit in range(8):
            shifted = cells[bit::8] << np.uint8(bit)
            packed[: len(shifted)] |= shifted
    return np.ascontiguousarray(bits.T)


def _linked_sparse_pairs(flags, least, most):
    """Return :func:`_linked_pairs` of a sparse matrix (n, b)."""
    expected = _least_expected(flags.shape[1])
    # A sparse column stores one of its two values; the other value is 0.
    n, stored = flags.shape[0], np.where(most != 0, most, least)[flags.indices]
    is_stored = (flags.data == stored).astype(float), flags.indices, flags.indptr
    has = csr_array(is_stored, flags.shape)
    both, one = (has.T @ has).toarray(), has.sum(axis=0)
    linked = (both == 0) & (np.outer(one, one) >= expected * n)
    linked |= (both == one[:, None]) & (np.outer(one, n - one) >= expected * n)
    is_covered = both == one + one[:, None] - n
    return linked | (is_covered & (np.outer(n - one, n - one) >= expected * n))


def _following_flags(key, values, shares, columns):
    """Return the columns, of some binary columns, that follow a key (n,).

    A key determines a column that is constant in each level. It restricts a column if
    a value is in no row of a level, and chance is excluded. ``values`` are the masks
    (n, b) of the two values, and ``shares`` (b,) their frequencies.
    """
    expected, size = _least_expected(len(shares[0])), np.bincount(key)
    for few in (slice(FEW_ROWS), slice(None)):
        levels = key[few]
        places = np.ones(len(levels), np.float32), levels, np.arange(len(levels) + 1)
        is_level = csr_array(places, (len(levels), len(size))).T
        is_constant, is_restricted = False, False
        for value, share in zip(values, shares, strict=True):
            cells = value[few][:, columns].astype(np.float32)
            is_absent = is_level @ cells == 0
            is_likely = np.outer(size, share[columns]) >= expected
            is_restricted |= (is_absent & is_likely).any(axis=0)
            is_constant |= is_absent
        columns = columns[is_constant.all(axis=0) | is_restricted]
        if not len(columns) or len(levels) == len(key):
            return columns
    return columns


# --- values that categories and binary columns imply ----------------------------------


class Key(NamedTuple):
    """A category or a binary column, whose values are the levels of the rows."""

    is_category: bool
    column: int

    def levels(self, rows, labels):
        """Return the level (n,) of each row; NaN if the cell is missing."""
        if self.is_category:
            return labels[:, self.column].astype(np.float64)
        return dense(rows[:, [self.column]])[:, 0]


def find_implied_values(rows, labels, columns, order):
    """Find the values of numeric columns that categories and binary columns imply.

    A level of a category or a binary column implies a value if all rows of the level
    have the value, and chance is excluded. Examples are a wage of 0 for people without
    work, and the imputed value of cells with an indicator.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Rows of all classes; missing cells are NaN.
    labels : ndarray of int of shape (n, c) or None
        Category codes.
    columns : ColumnValues
    order : ndarray of int of shape (n,)
        A random order of the rows.

    Returns
    -------
    implied : dict of int to list
        The implied values of each column in ascending order.
    """
    numeric = np.flatnonzero(~columns.binary & (columns.least < columns.most))
    if len(columns.binary) > MOST_COLUMNS or not len(numeric):
        return {}
    keys = [] if labels is None else list(labels.T)
    for j in np.flatnonzero(columns.binary):
        keys += [np.where(np.isnan(rows[:, j]), 2, rows[:, j] == columns.most[j])]
    expected = _least_expected(len(columns.binary))
    implied, others = {}, {}
    for key in keys:
        for column, value, members in _constants(rows, key, numeric, order, expected):
            known = implied.setdefault(column, [])
            if value in known:
                continue
            if (column, value) not in others:
                x = rows[:, column]
                others[column, value] = 1 - np.mean(x[~np.isnan(x)] == value)
            is_likely = len(members) * others[column, value] >= expected
            if is_likely and _are_equal(rows, members, column, value):
                known.append(value)
    return {column: sorted(values) for column, values in implied.items() if values}


def _are_equal(rows, members, column, value):
    """Return whether all known cells of a column have a value in some rows."""
    for part in (members[:256], members):
        x = rows[part, column]
        if not (np.isnan(x) | (x == value)).all():
            return False
    return True


def _constants(rows, key, columns, order, size):
    """Yield columns that are constant in a few rows of a level of a key (n,).

    Levels with fewer rows than ``size`` are left out. The rows (m,) of the level follow
    the column and the value.
    """
    # Small integers are sorted in linear time.
    key = key.astype(np.min_scalar_type(key.max()))[order]
    members = np.argsort(key, kind="stable")
    n_rows = np.bincount(key)
    starts = np.cumsum(n_rows) - n_rows
    starts, n_rows = starts[n_rows >= size], n_rows[n_rows >= size]
    few = order[members[starts[:, None] + np.arange(int(size))]]
    cells = rows[few[:, :, None], columns]
    least, most = np.fmin.reduce(cells, axis=1), np.fmax.reduce(cells, axis=1)
    for level, c in zip(*np.nonzero(least == most), strict=True):
        here = slice(starts[level], starts[level] + n_rows[level])
        yield int(columns[c]), float(least[level, c]), order[members[here]]


# --- levels that are kept apart -------------------------------------------------------


class SeparateRanges(NamedTuple):
    """Ranges of numeric columns that do not overlap for different levels of a key.

    Attributes
    ----------
    key : Key
    levels : ndarray of shape (n_levels,)
        The levels in ascending order.
    columns : ndarray of int of shape (c,)
        Numeric columns.
    bounds : ndarray of shape (2, n_levels, c)
        Bounds of each level. The bounds of the outer ranges are infinite.
    """

    key: Key
    levels: NDArray
    columns: NDArray
    bounds: NDArray


class SeparateLevels(NamedTuple):
    """Levels of rows that are not mixed.

    Attributes
    ----------
    keys : list of Key
        Categories and binary columns that decide a numeric column.
    ranges : list of SeparateRanges
        Ranges of numeric columns for the levels of some of the keys.
    """

    keys: list
    ranges: list


def find_levels(rows, labels, columns, absent, blocks, order):
    """Find the categories and binary columns that decide a numeric column.

    Rows of different levels are not mixed. For example, a mixture of the petals of two
    species, with the species of one parent, would fit no flower. A category, or a block
    of binary columns, decides a numeric column if at most a tenth of its variance is
    within the levels. With a value support, a category or a binary column also decides
    a numeric column if the levels have separate ranges, as "adult" starts at an age of
    18, and if chance is excluded.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Rows of all classes; missing cells are NaN.
    labels : ndarray of int of shape (n, c) or None
        Category codes.
    columns : ColumnValues
    absent : ndarray of bool of shape (n, D) or None
        Cells that are not mixed.
    blocks : ndarray of int of shape (b,)
        Block of each binary column.
    order : ndarray of int of shape (n,)
        A random order of the rows.

    Returns
    -------
    levels : SeparateLevels
    """
    binary, numeric = np.flatnonzero(columns.binary), np.flatnonzero(~columns.binary)
    groups = [] if labels is None else [[Key(True, c)] for c in range(labels.shape[1])]
    groups += [
        [Key(False, c) for c in binary[blocks == block]] for block in np.unique(blocks)
    ]
    if len(columns.binary) > MOST_COLUMNS or not groups or not len(numeric):
        return SeparateLevels([], [])
    few = order[:FEW_ROWS]
    cells = filled(rows[few], None if absent is None else absent[few])[:, numeric]
    some = rows[few], None if labels is None else labels[few]
    apart = []
    for group in groups:
        levels = group_numbers(np.column_stack([key.levels(*some) for key in group]))
        if _share_within(levels, cells) <= LARGEST_SHARE:
            apart += group
    ranges = []
    if columns.support is not None:
        keys = [key for group in groups for key in group]
        found = (
            _separate_ranges(key, key.levels(rows, labels), rows, numeric, order)
            for key in keys
        )
        ranges = [each for each in found if each is not None]
        apart += [each.key for each in ranges if each.key not in apart]
    return SeparateLevels(apart, ranges)


def _separate_ranges(key, levels, rows, columns, order):
    """Return the columns that separate the levels (n,) of a key, or None.

    A column separates levels if their ranges do not overlap, and if chance is excluded.
    """
    for few in (order[:256], order):
        few = few[~np.isnan(levels[few])]
        values, size = np.unique(levels[few], return_counts=True)
        if len(values) < 2:
            return None
        few = few[np.argsort(levels[few], kind="stable")]
        starts, x = np.cumsum(size) - size, rows[few][:, columns]
        extremes = np.fmin.reduceat(x, starts), np.fmax.reduceat(x, starts)
        place = np.argsort(extremes[0], axis=0)
        least, most = (np.take_along_axis(x, place, axis=0) for x in extremes)
        apart = (most[:-1] < least[1:]).all(axis=0)
        columns = columns[apart]
        if not len(columns):
            return None
    # Of all orders of the rows, these keep the rows of each level together.
    chance = gammaln(len(values) + 1) + gammaln(size + 1).sum() - gammaln(len(few) + 1)
    if chance > np.log(CHANCE / rows.shape[1]):
        return None
    place, least, most = place[:, apart], least[:, apart], most[:, apart]
    least[0], most[-1] = -np.inf, np.inf
    bounds = np.empty((2, *place.shape))
    for ordered, bound in zip((least, most), bounds, strict=True):
        np.put_along_axis(bound, place, ordered, axis=0)
    return SeparateRanges(key, values, columns, bounds)


def _share_within(level, numeric):
    """Compute the least share of a column's variance that is within frequent levels."""
    is_frequent = np.bincount(level)[level] >= LEAST_ROWS
    numeric, level = numeric[is_frequent], level[is_frequent]
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=-1))
    size, m = np.diff(starts, append=len(level)), len(level)
    if len(size) < 2:
        return 1.0
    # Half of each value, since a range may overflow.
    numeric = numeric / 2
    extent = np.ptp(numeric, axis=0)
    numeric = numeric[:, extent > 0] / extent[extent > 0]
    total = numeric - numeric.mean(axis=0)
    sums = np.add.reduceat(total[order], starts, axis=0)
    between = np.einsum("lc,lc,l->c", sums, sums, 1 / size)
    total = np.einsum("nc,nc->c", total, total)
    shares = 1 - between[total > 0] / total[total > 0]
    return shares.min(initial=1.0) * (m - 1) / (m - len(size))


def filled(rows, absent):
    """Return rows (m, D) with a middle value of the column in absent cells.

    With a middle value, the other cells decide which rows are near.
    """
    if absent is None:
        return rows
    rows = np.where(absent, np.nan, rows)
    lost = np.isnan(rows).all(axis=0)
    rows[:, lost] = 0
    middle = np.nanpercentile(rows, 50, axis=0, method="lower")
    return np.where(np.isnan(rows), middle, rows)


def group_numbers(keys):
    """Number the distinct rows of keys (m, c) in ascending order."""
    numbers, most = np.zeros(len(keys), np.intp), 1
    for column in keys.T:
        values, each = np.unique(column, return_inverse=True)
        if most * len(values) > 2**62:
            # Numbers of the distinct rows stay small.
            distinct, numbers = np.unique(numbers, return_inverse=True)
            most = len(distinct)
        numbers = numbers * len(values) + each
        most *= len(values)
    return np.unique(numbers, return_inverse=True)[1]
