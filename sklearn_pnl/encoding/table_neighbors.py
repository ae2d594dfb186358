"""Search for near rows of tables, and restrict which rows may be mixed.

``RowSearch`` measures distances in columns divided by their local spread, with
categories. ``columns/mixing`` restricts the neighbours to rows with the same missing
cells, groups and deciding categories. ``default_k_neighbors`` is the
default of ``k_neighbors``.
"""

from functools import cached_property

import numpy as np
from scipy.sparse import issparse

from .._utils.arrays import dense
from .._utils.blocks import observed_bounds
from ..frames.categories import typical_deviation
from .k_neighbors import default_k_neighbors
from .neighbors import EuclideanSearch

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
    rows : ndarray or sparse array of shape (m, D)
        A number in every cell.
    labels : ndarray of int of shape (m, c) or None
        Category codes. A category that differs counts as much as the typical deviation
        of a numeric column.
    binary : ndarray of bool of shape (D,) or None
        Binary columns, which count as much as categories.
    """

    def __init__(self, rows, labels=None, binary=None):
        self.rows, self.labels, self._cells = rows, labels, rows
        if issparse(rows):
            # One number for each row, the same only in copies.
            random = np.random.RandomState(0).standard_normal(rows.shape[1])
            self.rows = (rows @ random)[:, None]
        self._binary = np.zeros(rows.shape[1], bool) if binary is None else binary

    @cached_property
    def _points(self):
        if not issparse(self._cells):
            return self._cells * self._factors
        points = self._cells.copy()
        points.data = points.data * self._factors[points.indices]
        return points

    @cached_property
    def _search(self):
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
