"""Search for near rows of tables, and restrict which rows may be mixed.

``RowSearch`` measures distances in columns divided by their local spread, with
categories. ``strata_of`` and ``separate_levels`` restrict the neighbours to rows with
the same missing cells, groups and deciding categories. ``default_k_neighbors`` is the
default of ``k_neighbors``.
"""

from functools import cached_property

import numpy as np
from scipy.special import gammaln

from .._utils.arrays import dense
from .._utils.blocks import observed_bounds
from ..frames.categories import typical_deviation
from .k_neighbors import default_k_neighbors
from .neighbors import PointSearch

# Largest probability of separate ranges by chance.
CHANCE = 1e-3
# Columns up to which their local spread is computed, and levels are kept apart. Both
# need dense rows, and were measured on tables with fewer columns.
MOST_COLUMNS = 500


class RowSearch:
    """Search for near rows, Euclidean in columns divided by their local spread.

    The local spread of a numeric column is its mean absolute difference between rows
    that are near in columns divided by their ranges, of at most 2,048 random rows. With
    more than 500 columns, all of them are divided by their ranges instead. A cluster
    that is narrow in a column is therefore far from the other clusters.

    Parameters
    ----------
    rows : ndarray of shape (m, D)
        A number in every cell.
    labels : ndarray of int of shape (m, c) or None
        Category codes. A category that differs counts as much as the typical deviation
        of a numeric column.
    binary : ndarray of bool of shape (D,) or None
        Binary columns, which count as much as categories.
    """

    def __init__(self, rows, labels=None, binary=None):
        self.rows, self.labels, self._cells = rows, labels, rows
        self._binary = np.zeros(rows.shape[1], bool) if binary is None else binary

    @cached_property
    def _points(self):
        return self.rows * self._factors

    @cached_property
    def _search(self):
        return PointSearch(self._points, self.labels, self._deviation)

    @cached_property
    def _scales(self):
        """Factors (D,) of the columns, and the distance of a differing category."""
        cells = self._cells
        least, most = observed_bounds(cells)
        with np.errstate(over="ignore", divide="ignore"):
            factors = 1 / (most - least)
        varies = np.isfinite(factors) & (factors > 0)
        factors = np.where(varies, factors, 0.0)
        if cells.shape[1] > MOST_COLUMNS:
            return factors, None
        some = np.random.RandomState(0).permutation(cells.shape[0])[:2048]
        points = dense(cells[some]) * factors
        numeric = np.flatnonzero(varies & ~self._binary)
        if len(numeric) > 1:
            spread = _local_spread(points[:, numeric])
            points[:, numeric] /= spread
            factors[numeric] /= spread
        deviation = typical_deviation(points[:, numeric])
        factors[self._binary] *= deviation
        return factors, deviation

    @property
    def _factors(self):
        return self._scales[0]

    @property
    def _deviation(self):
        return self._scales[1]

    def nearest(self, rows, k, among=None, n_jobs=None):
        """Return the indices of the k training rows nearest to each given row."""
        return self._search.nearest(self._points[rows], k, among, rows, n_jobs)


class SparseRowSearch(RowSearch):
    """Variant of :class:`RowSearch` for sparse rows (m, D)."""

    def __init__(self, cells, binary):
        # One number for each row, the same only in copies.
        random = np.random.RandomState(0).standard_normal(cells.shape[1])
        super().__init__((cells @ random)[:, None], None, binary)
        self._cells = cells

    @cached_property
    def _points(self):
        points = self._cells.copy()
        points.data = points.data * self._factors[points.indices]
        return points


def _local_spread(points):
    """Compute the mean absolute difference (D,) of near points, the least being 1.

    The mean is over the first 256 points and their neighbours.
    """
    first = points[:256]
    k = min(default_k_neighbors(len(points)), len(points) - 1)
    near = PointSearch(points).nearest(first, k + 1)[:, 1:]
    spread = sum(np.abs(first - points[column]).mean(axis=0) for column in near.T) / k
    # All near rows may have the same value in a column.
    spread = np.maximum(spread, 1e-3)
    return spread / spread.min()


def strata_of(cells, tied, k, groups=None, levels=None):
    """Group rows by missing cells: ``strata`` of a :class:`Request`.

    Each pair contains rows and their possible neighbours. Rows with the same missing
    cells form a stratum if there are more than ``k`` of them within ``groups`` (m,) and
    ``levels`` (m,). Other rows are mixed with rows of their group and level that have
    all of their tied columns. Rows of level -1 are mixed with all levels of their
    group.
    """
    missing = np.isnan(cells)
    if groups is None and levels is None and not missing.any():
        return None
    group = np.zeros(len(cells), int) if groups is None else groups
    level = np.zeros(len(cells), int) if levels is None else levels
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
