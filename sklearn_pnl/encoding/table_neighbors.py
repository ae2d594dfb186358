"""Search for near rows of tables, and restrict which rows may be mixed.

``RowSearch`` measures distances in columns divided by their local spread, with
categories. ``HammingSearch`` counts the different cells of binary columns.
``columns/mixing`` restricts the neighbours to rows with the same missing cells, groups
and deciding categories. ``default_k_neighbors`` is the default of ``k_neighbors``.
"""

from functools import cached_property, partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.sparse import issparse

from .._utils.arrays import dense, slices
from .._utils.blocks import map_blocks, observed_bounds, shares_memory
from .._utils.threads import one_blas_thread
from ..frames.categories import typical_deviation
from .k_neighbors import default_k_neighbors
from .neighbors import MOST_IN_TREES, EuclideanSearch

# Columns up to which their local spread is computed, and levels are kept apart. Both
# need dense rows, and were measured on tables with fewer columns.
MOST_COLUMNS = 500
# Distances of a block of rows in :class:`HammingSearch`.
_DISTANCES = 2**20


class RowSearch:
    """Search for near rows, Euclidean in columns divided by their local spread.

    The local spread of a numeric column is its mean absolute difference between rows
    that are near in columns divided by their ranges, of at most 2,048 random rows. With
    more than 500 columns, all of them are divided by their ranges instead. A cluster
    that is narrow in a column is therefore far from the other clusters.

    Parameters
    ----------
    rows : ndarray or sparse array of shape (m, D)
        A number in every cell.
    labels : ndarray of int of shape (m, c) or None
        Category codes. A category that differs counts as much as the typical deviation
        of a numeric column.
    binary : ndarray of bool of shape (D,) or None
        Binary columns, which count as much as categories. If all columns that vary are
        binary, the distance is the number of different cells.
    """

    def __init__(self, rows, labels=None, binary=None):
        self.rows, self.labels, self._cells = rows, labels, rows
        if issparse(rows):
            # One number for each row, the same only in copies.
            random = np.random.RandomState(0).standard_normal(rows.shape[1])
            self.rows = (rows @ random)[:, None]
        self._binary = np.zeros(rows.shape[1], bool) if binary is None else binary

    @cached_property
    def _is_binary(self):
        """Whether all columns that vary are binary, and too many for a tree."""
        cells = self._cells
        if issparse(cells) or self.labels is not None or not self._binary.any():
            return False
        others = cells[:, ~self._binary]
        return cells.shape[1] > MOST_IN_TREES and not (others != others[0]).any()

    @cached_property
    def _points(self):
        if self._is_binary:
            return (self._cells > self._cells.min(axis=0)).astype(np.float32)
        if not issparse(self._cells):
            return self._cells * self._factors
        points = self._cells.copy()
        points.data = points.data * self._factors[points.indices]
        return points

    @cached_property
    def _search(self):
        if self._is_binary:
            return HammingSearch(self._points)
        return EuclideanSearch(self._points, self.labels, self._deviation)

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


class HammingSearch:
    """Search for the rows of zeros and ones with the fewest different cells.

    Sums of zeros and ones are exact in single precision, in any order. Products of
    matrices are therefore the same for every number of threads.

    Many rows can be equally far. Each query then prefers other points, because the
    neighbours of all queries would otherwise be the same few points.

    Parameters
    ----------
    points : ndarray of float32 of shape (m, D)
    """

    def __init__(self, points):
        d, rng = points.shape[1], np.random.RandomState(0)
        # A random number of each query is a sum of small integers, which is exact.
        factors = rng.randint(max(2, min(2**8, 2**24 // d)), size=d)
        self._points, self._factors = points, factors.astype(np.float32)

    @one_blas_thread()
    def nearest(self, queries, k, among=None, like=None, n_jobs=None):
        """Find the indices (n, k) of the nearest points; see :class:`EuclideanSearch`.

        There are no categories, so ``like`` has no effect.
        """
        points = self._points if among is None else self._points[among]
        find = partial(
            _nearest_bits,
            points=points,
            sizes=points.sum(axis=1),
            factors=self._factors,
            k=k,
        )
        step = 1 + _DISTANCES // len(points)
        if shares_memory():
            task = "search for neighbours"
            near = map_blocks(find, queries, step=step, task=task, n_jobs=n_jobs)[0]
        else:
            parts = [find(queries[part])[0] for part in slices(len(queries), step)]
            near = np.concatenate(parts)
        return near if among is None else among[near]


def _nearest_bits(queries, points, sizes, factors, k):
    """Return the indices (n, k) of the nearest points, in ascending order."""
    m = len(points)
    # The number of ones of a query does not change the order of its distances.
    away = sizes - 2 * (queries @ points.T)
    # Distances are integers, so that parts of 1 only decide between equal distances.
    parts = np.random.RandomState(0).permutation(m).astype(np.float32) / (2 * m)
    rotated = sliding_window_view(np.concatenate([parts, parts]), m)
    away += rotated[(queries @ factors).astype(np.intp) % m]
    near = np.sort(np.argpartition(away, k - 1, axis=1)[:, :k], axis=1)
    away = np.floor(np.take_along_axis(away, near, axis=1))
    order = np.argsort(away, axis=1, kind="stable")
    return (np.take_along_axis(near, order, axis=1),)


def _local_spread(points):
    """Compute the mean absolute difference (D,) of near points, the least being 1.

    The mean is over the first 256 points and their neighbours.
    """
    first = points[:256]
    k = min(default_k_neighbors(len(points)), len(points) - 1)
    near = EuclideanSearch(points).nearest(first, k + 1)[:, 1:]
    spread = np.zeros(points.shape[1])
    for column in near.T:
        spread += np.abs(first - points[column]).mean(axis=0) / k
    # All near rows may have the same value in a column.
    spread = np.maximum(spread, 1e-3)
    return spread / spread.min()
