"""Choose the training rows of new rows: seeds, partners near them, positions.

Where totals are asked, training rows get weights that have them, and new rows start
from them as often as these say, with their categories, so that counts are met.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from .._utils.arrays import (
    dense,
    floats_like,
    is_foreign,
    reshaped,
    slices,
    take,
    to_host,
)
from .._utils.blocks import ends_seen
from ..control.calibration import effective_size, nearest_weights
from ..control.constraints import ALMOST, TOL
from ..encoding.neighbors import PointSearch
from ..frames.categories import typical_deviation
from ..geometry.convex.whole import least_missed, whole_near

# Columns up to which their local spread is computed, and levels are kept apart. Both
# need dense rows, and were measured on tables with fewer columns.
MOST_COLUMNS = 500


@dataclass(frozen=True)
class Request:
    """How many new rows are wanted, and the training rows that they start from.

    Attributes
    ----------
    n_samples : int
    n_neighbors : int
        Of each training row; partners, or rows to decode from.
    shares : ndarray of shape (m,) or None
        Relative frequency of each training row as a seed; None for equal ones.
    seeds : ndarray of int of shape (n_samples,) or None
        The seeds, where they are chosen already; then new rows are nearer to them than
        to their partners.
    strata : list of (ndarray of int, ndarray of int) or None
        Pairs of rows and the rows that may be their partners; None for all rows.
    mutual : bool
        Whether to compute which partners may be donors of cells that are not mixed.
    n_jobs : int or None
    """

    n_samples: int
    n_neighbors: int
    shares: NDArray | None = None
    seeds: NDArray | None = None
    strata: list | None = None
    mutual: bool = False
    n_jobs: int | None = None


class Batch(NamedTuple):
    """New rows as numbers (b, D), and where they come from.

    Parents (b, k) and their weights (b, k) are training rows; donors (b,) are those
    that give the categories.
    """

    numbers: Any
    parents: Any
    weights: Any
    donors: Any

    def take_rows(self, rows):
        """Some of the rows."""
        return Batch(*(part[rows, ...] for part in self))


def n_partners(m):
    """Default number of partners of each of m rows: a third of them, at most 10.

    With ten partners a row of a small class of two clusters would have some in the
    other one. Of fewer than 18 rows they are 7: with 4 or 6 of 8 to 12 rows learners
    ranked worse.
    """
    return min(10, m // 3) if m >= 18 else min(7, m)


@dataclass(frozen=True)
class Parents:
    """Training rows that new rows (n,) are made from.

    Attributes
    ----------
    seeds, partners : ndarray of int of shape (n,)
        The rows i and j.
    position : ndarray of shape (n,)
        t, from 0 at the seed to 1 at the partner.
    neighbors : ndarray of int of shape (n_sources, 1 + k)
        Rows that are seeds, and their neighbours, which shape the noise.
    source : ndarray of int of shape (n,)
        The row of ``neighbors`` of each new row.
    mutual : ndarray of bool of shape (n,) or None
        Whether the seed is among the partner's own neighbours. Only then the partner
        may be the donor of cells that are not mixed, which keeps frequencies of rare
        values.
    """

    seeds: np.ndarray
    partners: np.ndarray
    position: np.ndarray
    neighbors: np.ndarray
    source: np.ndarray
    mutual: np.ndarray | None = None

    def __getitem__(self, rows):
        mutual = None if self.mutual is None else self.mutual[rows]
        drawn = self.seeds[rows], self.partners[rows], self.position[rows]
        return Parents(*drawn, self.neighbors, self.source[rows], mutual)


def zero_sum_weights(parents, noise, m, rng):
    """Weights (n, m) that sum to 0 in each row: noise of the shape of a neighbourhood.

    Normal numbers times the deviations of a row and its k neighbours from their mean
    have as covariance their sum of squares: k / 2 times the mean, over all pairs of
    them, of the outer product of their difference.
    """
    n, k = len(parents.seeds), parents.neighbors.shape[1] - 1
    z = rng.standard_normal((n, k + 1))
    z -= z.mean(axis=1, keepdims=True)
    z *= noise * np.sqrt(2 / k)
    near = parents.neighbors[parents.source]
    ends = np.arange(0, n * (k + 1) + 1, k + 1)
    return csr_array((z.ravel(), near.ravel(), ends), (n, m))


def combined(weights, rows):
    """Weighted sums of rows; weights (n, m) are sparse, with as many in each row."""
    if not is_foreign(rows):
        return weights @ rows
    n, k = weights.shape[0], int(weights.indptr[1])
    near = reshaped(take(rows, weights.indices), (n, k, rows.shape[1]))
    return (floats_like(weights.data.reshape(n, 1, k), rows) @ near)[:, 0, :]


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
        least, most = ends_seen(cells)
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
        """Numbers (len(rows), k) of the training rows nearest to some of them."""
        return self._search.nearest(self._points[rows], k, among, rows, n_jobs)


class SparseRowSearch(RowSearch):
    """:class:`RowSearch` of sparse rows (m, D)."""

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
    """Mean absolute difference (D,) between near points (m, D), the least being 1.

    The mean is over the first 256 points and their neighbours.
    """
    first = points[:256]
    k = min(n_partners(len(points)), len(points) - 1)
    near = PointSearch(points).nearest(first, k + 1)[:, 1:]
    spread = sum(np.abs(first - points[column]).mean(axis=0) for column in near.T) / k
    # Near rows may agree in a column in which others differ.
    spread = np.maximum(spread, 1e-3)
    return spread / spread.min()


def choose_parents(search, request, rng, n_candidates=None):
    """:class:`Parents` of the rows of a :class:`Request`.

    Parameters
    ----------
    search : object
        With ``nearest(rows, k, among, n_jobs)``, and the training ``rows`` and
        ``labels`` in which copies are alike.
    request : Request
    rng : RandomState
    n_candidates : int or None
        Partners are searched among this many random rows.
    """
    n, m = request.n_samples, search.rows.shape[0]
    seeds, shares = request.seeds, request.shares
    if seeds is None:
        p = None if shares is None else shares / shares.sum()
        seeds = rng.choice(m, size=n, p=p)
    among = None
    if n_candidates is not None and n_candidates < m:
        among = rng.choice(m, n_candidates, replace=False)
    k = max(1, min(request.n_neighbors, m - 1))
    near = _Neighbors(search, k, among, request, rng)
    neighbors, source = near.of(seeds)
    partners = neighbors[source, 1 + rng.randint(k, size=n)]
    position = rng.uniform(size=n)
    if request.seeds is not None:
        position /= 2
    is_mutual = near.are_mutual(seeds, partners) if request.mutual else None
    return Parents(seeds, partners, position, neighbors, source, is_mutual)


class _Neighbors:
    """Neighbours of rows, searched on demand, with ``mutual`` of partners as well."""

    def __init__(self, search, k, among, request, rng):
        self.search, self.k, self.among, self.rng = search, k, among, rng
        self.m = m = search.rows.shape[0]
        self.strata = request.strata or [(np.arange(m), None)]
        self.mutual, self.n_jobs = request.mutual, request.n_jobs
        self._near = np.empty((m, k), np.intp)
        self._is_known = np.zeros(m, bool)

    def of(self, rows):
        """Distinct rows with their neighbours (s, 1 + k), and the place of each row."""
        is_wanted = np.bincount(rows, minlength=self.m) > 0
        unknown = is_wanted & ~self._is_known
        for members, others in self.strata:
            new = members[unknown[members]]
            if self.mutual and 4 * len(new) > len(members):
                # The others will be partners: one search is cheaper than two.
                new = members[~self._is_known[members]]
            if len(new):
                among = self.among if others is None else others
                if others is not None and self.among is not None:
                    candidates = others[np.isin(others, self.among)]
                    among = candidates if len(candidates) > self.k else others
                self._near[new] = self._partners(new, among)
                self._is_known[new] = True
        sources, place = np.flatnonzero(is_wanted), np.cumsum(is_wanted) - 1
        return np.column_stack([sources, self._near[sources]]), place[rows]

    def _partners(self, rows, among):
        """The nearest other rows (len(rows), k) of training rows; fewer are repeated.

        Where there is none, the only candidate, or the row itself.
        """
        k, n = self.k, self.m if among is None else len(among)
        n_partners = max(0, min(k, n - 1))
        if n_partners == 0:
            only = rows if among is None or not len(among) else among
            return np.full((len(rows), k), only[:, None])
        near = self.search.nearest(rows, n_partners + 1, among, self.n_jobs)
        # Drop the row itself; or the farthest, where copies of the row rank before it,
        # or it is no candidate.
        itself = near == rows[:, None]
        itself[~itself.any(axis=1), -1] = True
        near = near[~itself].reshape(len(rows), n_partners)
        if among is None and n_partners == k:
            near = self._shuffle_ties(rows, near)
        return near if n_partners == k else near[:, np.arange(k) % n_partners]

    def _shuffle_ties(self, rows, near):
        """Choose partners at random among the copies of a row if these exceed k.

        A search would give the same few to all.
        """
        if self.k >= self.m - 1:
            return near
        keys, labels = self.search.rows, self.search.labels
        alike = take(keys, rows) == take(keys, near[:, -1])
        crowded = to_host(alike).all(axis=1)
        if not crowded.any():
            return near
        keys = to_host(keys)
        group = _numbered(keys if labels is None else np.hstack([keys, labels]))
        order, size = np.argsort(group, kind="stable"), np.bincount(group)
        start = np.cumsum(size) - size
        for i in np.flatnonzero(crowded):
            copies = group[rows[i]]
            if size[copies] <= self.k + 1:
                continue
            members = order[start[copies] : start[copies] + size[copies]]
            ahead = 1 + self.rng.choice(len(members) - 1, self.k, replace=False)
            near[i] = members[(members.searchsorted(rows[i]) + ahead) % len(members)]
        return near

    def are_mutual(self, seeds, partners):
        """Whether (n,) seeds are among their partners' own neighbours.

        With a sample of candidates, rows outside of it count as near.
        """
        neighbors, source = self.of(partners)
        near = (neighbors[source, 1:] == seeds[:, None]).any(axis=1)
        near |= seeds == partners
        if self.among is not None:
            near |= ~np.isin(seeds, self.among)
        return near


def strata_of(cells, tied, k, groups=None, levels=None):
    """Group rows by missing cells: ``strata`` of a :class:`Request`.

    Pairs of rows and their partners, the same array twice where rows are mixed among
    themselves.

    Rows with the same cells missing, where there are more than ``k`` of them, and
    within ``groups`` (m,) and ``levels`` (m,); other rows are mixed with those of their
    group and level that have all of their tied columns. Rows of level -1 are mixed with
    all levels of their group.
    """
    missing = np.isnan(cells)
    if groups is None and levels is None and not missing.any():
        return None
    group = np.zeros(len(cells), int) if groups is None else groups
    level = np.zeros(len(cells), int) if levels is None else levels
    parts = np.column_stack([group, level])
    pattern = _numbered(np.column_stack([parts, missing[:, missing.any(axis=0)]]))
    size = np.bincount(pattern)
    is_small = (size[pattern] <= k) | (level < 0)
    members = (np.flatnonzero(pattern == p) for p in np.unique(pattern[~is_small]))
    strata = [(rows, rows) for rows in members]
    small, lacks = np.flatnonzero(is_small), missing[:, tied]
    if len(small):
        pattern = _numbered(np.column_stack([parts, lacks])[small])
        for p in np.unique(pattern):
            rows = small[pattern == p]
            may_be = ~(lacks & ~lacks[rows[0]]).any(axis=1)
            may_be &= group == group[rows[0]]
            if level[rows[0]] >= 0:
                may_be &= level == level[rows[0]]
            strata.append((rows, np.flatnonzero(may_be)))
    return strata


def separate_levels(rows, labels, structure, k):
    """Return the level (m,) of each row in the columns that decide a numeric column.

    Rows of different levels are not mixed: the petals of two species, with the species
    of one of them, are those of no flower. A category, or a block of binary columns,
    decides a numeric column if at most a tenth of its variance is within the levels.
    Only levels with more than ``k / 2`` rows count, so that this is not by chance. The
    level of other rows is -1. The result is None if no column decides another one, or
    with more than 500 columns.
    """
    if rows.shape[1] > MOST_COLUMNS:
        return None
    some = np.random.RandomState(0).permutation(rows.shape[0])[:1024]
    numeric = dense(rows[some])[:, ~structure.binary]
    # Half of each value, since a range may overflow.
    extent = np.ptp(numeric / 2, axis=0)
    numeric = numeric[:, extent > 0] / extent[extent > 0]
    binary, blocks = np.flatnonzero(structure.binary), structure.blocks
    keys = [] if labels is None else [*labels.T]
    keys += [_numbered(dense(rows[:, binary[blocks == b]])) for b in np.unique(blocks)]
    levels = [_frequent(key, k / 2) for key in keys]
    apart = [level for level in levels if _share_within(level[some], numeric) <= 0.1]
    if not apart:
        return None
    level = _numbered(np.column_stack(apart))
    level[(np.column_stack(apart) < 0).any(axis=1)] = -1
    return _frequent(level, k / 2)


def _frequent(level, least):
    """Levels (m,) that more than ``least`` rows have; -1 for other levels."""
    size = np.bincount(level[level >= 0], minlength=1)
    return np.where((level >= 0) & (size[level] > least), level, -1)


def _share_within(level, numeric):
    """Least share of the variance of numeric columns (m, D) that is within levels."""
    numeric, level = numeric[level >= 0], level[level >= 0]
    if not level.size or not numeric.shape[1] or level.min() == level.max():
        return 1.0
    level = _numbered(level[:, None])
    size, m = np.bincount(level), len(level)
    if m == len(size):
        return 1.0
    total = numeric - numeric.mean(axis=0)
    columns = csr_array((np.ones(m), (level, np.arange(m))), (len(size), m))
    within = total - (columns @ total / size[:, None])[level]
    within, total = (np.square(each).sum(axis=0) for each in (within, total))
    shares = within[total > 0] / total[total > 0]
    return shares.min(initial=1.0) * (m - 1) / (m - len(size))


def _numbered(keys):
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)


# --- base rows near the constraints ----------------------------------------------


# Distinct values among which the base row of a new row is drawn: several times the
# twenty rows that the kernel needs.
N_NEAR = 128
# New rows whose base rows are drawn at once.
_AT_ONCE = 2**12


def condition_weights(values, lower, upper):
    """Compute weights of training rows by their nearness to intervals.

    Parameters
    ----------
    values : ndarray of shape (n_train, k)
        Values of the constrained sums in the training rows. NaN, of a missing cell,
        counts as the median of the other values.
    lower, upper : ndarray of shape (k,)
        The intervals, for all new rows.

    Returns
    -------
    weights : ndarray of shape (n_train,)
        A Gaussian kernel of the distances, whose sum is 1. Rows inside all intervals
        have the greatest weight.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.methods.parents import condition_weights
    >>> values = np.arange(200.0)[:, None]
    >>> weights = condition_weights(values, np.array([150.0]), np.array([np.inf]))
    >>> float(weights[:150].sum().round(3)), float(weights[150:].sum().round(3))
    (0.119, 0.881)
    """
    weights = _kernel(*in_spreads(values, lower, upper), 1.0, len(values))
    return weights / weights.sum()


def in_spreads(values, *ends):
    """Divide values (m, k), and the ends of intervals, by standard deviations.

    NaN becomes the median of the other values.
    """
    # A sum that is missing in all rows tells no rows apart.
    values = np.where(np.isnan(values).all(axis=0), 0.0, values)
    values = np.where(np.isnan(values), np.nanmedian(values, axis=0), values)
    spread = values.std(axis=0)
    spread[spread == 0] = 1.0
    return tuple(x / spread for x in (values, *ends))


def gaps_of(values, lower, upper):
    """Compute squared distances (..., m) of values (..., m, k) to intervals."""
    low, high = (np.expand_dims(end, -2) for end in (lower, upper))
    gaps = np.maximum(np.maximum(low - values, values - high), 0)
    return np.square(gaps).sum(axis=-1)


def _kernel(values, lower, upper, counts, n_train):
    """Weigh values (..., m, k), each of ``counts`` rows, by a Gaussian kernel.

    The kernel is as narrow as leaves an effective number of 20 rows, or a quarter of
    all rows.
    """
    sq_distances = gaps_of(values, lower, upper)
    sq_distances -= sq_distances.min(axis=-1, keepdims=True)
    # A tenth of a standard deviation keeps new rows close; twenty rows are as many as
    # have partners to mix with.
    width = np.full((*sq_distances.shape[:-1], 1), 0.1)
    while True:
        weights = np.exp(-sq_distances / (2 * width**2))
        sums = (
            (counts * weights**power).sum(axis=-1, keepdims=True) for power in (1, 2)
        )
        few = next(sums) ** 2 < min(20, max(1.0, n_train / 4)) * next(sums)
        if not few.any():
            return weights
        width = np.where(few, 1.2 * width, width)


def near_rows(values, lower, upper, rng, shares=None, n_jobs=None):
    """Draw a training row for each new row, near the intervals of that row.

    The kernel of :func:`condition_weights` is computed over the nearest distinct values
    only, so that time and memory grow with the number of new rows and not with its
    product with the number of training rows.

    Parameters
    ----------
    values : ndarray of shape (n_train, k)
        Values of the constrained sums in the training rows, as :func:`in_spreads`
        returns them.
    lower, upper : ndarray of shape (n, k)
        The intervals of each new row, in the same units.
    rng : RandomState
    shares : ndarray of shape (n_train,), default=None
        Relative frequencies of the training rows.
    n_jobs : int or None

    Returns
    -------
    rows : ndarray of int of shape (n,)
    """
    shares = np.ones(len(values)) if shares is None else shares
    used = np.flatnonzero(shares > 0)
    points, group, counts = np.unique(
        values[used], axis=0, return_inverse=True, return_counts=True
    )
    used = used[np.argsort(group.ravel(), kind="stable")]
    below, last = np.cumsum(shares[used]), np.cumsum(counts) - 1
    sizes = np.diff(below[last], prepend=0.0)

    def drawn(near, low, high):
        among = points[near], low, high, counts[near], len(values)
        chance = np.cumsum(_kernel(*among) * sizes[near], axis=-1)
        place = rng.uniform(size=(len(low), 1)) * chance[:, -1:]
        place = (place >= chance[:, :-1]).sum(axis=1)
        return near[place] if near.ndim == 1 else near[np.arange(len(near)), place]

    near, search = np.arange(len(points)), None
    if len(points) > N_NEAR:
        # Other algorithms may depend on which rows are searched together.
        search = NearestNeighbors(algorithm="kd_tree", n_jobs=n_jobs).fit(points)
    rows = np.empty(len(lower), np.intp)
    for part in slices(len(lower), _AT_ONCE):
        low = at = lower[part]
        high = upper[part]
        if search is not None:
            if (low < high).any():
                # A random point of each interval, as the training rows are spread.
                some = rng.choice(len(points), N_NEAR, replace=False)
                at = np.clip(points[drawn(some, low, high)], low, high)
            near = search.kneighbors(at, N_NEAR, return_distance=False)
        chosen = drawn(near, low, high)
        # One of the rows with the chosen value.
        place = below[last[chosen]] - rng.uniform(size=len(chosen)) * sizes[chosen]
        first = last[chosen] + 1 - counts[chosen]
        rows[part] = used[np.clip(below.searchsorted(place), first, last[chosen])]
    return rows


def matched(values, lower, upper, points):
    """Pair values (n, k) with intervals (n, k) so that the distances are small.

    The pairs of up to 512 rows are optimal. More rows are halved along the widest
    column of ``points`` (n, k), which lie in the intervals.

    Returns
    -------
    order : ndarray of int of shape (n,)
        The number of the value of each interval.
    """
    if len(values) <= 512:
        costs = gaps_of(values[None], lower, upper)
        return linear_sum_assignment(costs)[1]
    column, half = np.argmax(np.ptp(points, axis=0)), len(values) // 2
    of_rows, of_values = (
        np.argsort(x[:, column], kind="stable") for x in (points, values)
    )
    order = np.empty(len(values), np.intp)
    for part in (slice(None, half), slice(half, None)):
        r, v = of_rows[part], of_values[part]
        order[r] = v[matched(values[v], lower[r], upper[r], points[r])]
    return order


def parent_weights(totals, numbers, shares=None):
    """Compute weights of training rows, with which new rows start from them.

    The weights are the nearest ones to ``shares`` in the sense of KL. They have all
    counts, if any weights have them, and approach the sums as far as leaves enough
    parents.

    Parameters
    ----------
    totals : Totals
    numbers : ndarray of shape (n_train, D)
    shares : ndarray of shape (n_train,), default=None
        Relative frequencies of the training rows. None stands for equal ones.

    Returns
    -------
    ndarray of shape (n_train,)
        They sum to ``totals.n``.
    """
    sums, counts = totals.sums_of(numbers), totals.counts
    shares = np.ones(len(numbers)) if shares is None else shares
    start = shares * (totals.n / shares.sum())
    weights = _nearest(counts, start)
    if not len(sums):
        return weights
    a = sums.coefficients @ np.nan_to_num(numbers).T
    values = a @ weights
    missing = np.clip(values, sums.lower, sums.upper) - values
    used = np.where(weights > 0, start, 0.0)
    # New rows of few parents are copies: where less than an eighth of them would be
    # left, weights go a part of the way, and the projection of the rows the rest.
    for way in (1.0, 0.75, 0.5, 0.25, 0.1):
        aim = values + way * missing
        both = counts.stack(replace(sums, coefficients=a, lower=aim, upper=aim))
        near = _nearest(both, used)
        reached, size = both.coefficients @ near, abs(both.coefficients) @ near
        gap = np.abs(both.missing(reached)) / (size + 1e-300)
        if gap.max() <= ALMOST and 8 * effective_size(near) >= effective_size(weights):
            return near
    return weights


def _nearest(system, near):
    """Positive weights nearest to others with sums between ends."""
    limits = np.zeros_like(near), np.full_like(near, np.inf)
    ends = system.lower, system.upper
    return nearest_weights(system.coefficients, *ends, near, *limits, TOL, 60)[0]


def choose_seeds(totals, weights, rng):
    """Choose training rows (n,) that new ones start from, and take their categories of.

    Rows that are alike in all that is counted share a cell, of which as many are chosen
    as is asked for: systematic samples, in the order of the weights, so that chance
    adds little to what is asked.
    """
    first, cell = totals.cells
    asked, near, chosen = totals.counts, np.bincount(cell, weights), []
    rows, ends = asked.coefficients[:, first], (asked.lower, asked.upper)
    limits = np.zeros(len(near)), np.where(near > 0, totals.n, 0.0)
    try:
        counts = whole_near(near, rows, *ends, limits).astype(int)
    except ValueError:
        raise ValueError(_contradiction(totals, near, rows, ends, limits)) from None
    for k in np.flatnonzero(counts):
        members = np.flatnonzero(cell == k)
        members = members[np.argsort(weights[members], kind="stable")]
        share = weights[members]
        below = np.cumsum(share if share.any() else np.ones(len(members)))
        places = (rng.uniform() + np.arange(counts[k])) * (below[-1] / counts[k])
        places = np.searchsorted(below, places, side="right")
        chosen.append(members[np.minimum(places, len(members) - 1)])
    return rng.permutation(np.concatenate(chosen))


def _contradiction(totals, near, rows, ends, limits):
    """Write the message of counts that no rows have, with the nearest ones."""
    asked, rows = totals.counts, csr_array(rows).toarray()
    start = (
        f"No {totals.n} rows with the counts of {' and '.join(totals.counted)} were "
        "found"
    )
    # The number of rows is given.
    prices = np.r_[np.inf, 1 / np.maximum(np.abs(rows[1:]).max(axis=1), 1e-300)]
    found = least_missed(near, rows, ends, limits, prices)
    if found is None:
        return f"{start}. Leave out one of the totals, or a constraint."
    reached = rows @ found
    k = int(np.argmax(np.abs(asked.missing(reached)) * np.r_[0, prices[1:]]))
    return (
        f"{start}: {asked.asks(k)}, and with the other totals and the constraints the "
        f"nearest that rows can have is {reached[k]:.10g}. Request this value, or "
        "leave out one of the totals or constraints."
    )
