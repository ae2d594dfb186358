"""Choose the base rows of new rows that must satisfy constraints or totals.

For constraints, base rows are drawn near the requested values (``condition_weights``,
``near_rows``). For totals, training rows receive calibrated weights
(``parent_weights``), and base rows are drawn with these weights so that requested
counts are exact (``choose_base_rows``).
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from .._utils.arrays import slices
from ..columns.constraints import ALMOST, TOL
from ..geometry.convex.integers import integers_near, least_missed
from ..geometry.convex.weights import effective_size, nearest_weights

# Distinct values among which the base row of a new row is drawn: several times the
# twenty rows that the kernel needs.
N_NEAR = 128
# Largest distance of a value, in standard deviations.
_FARTHEST = 1e100

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
    >>> from sklearn_pnl.control.base_rows import condition_weights
    >>> values = np.arange(200.0)[:, None]
    >>> weights = condition_weights(values, np.array([150.0]), np.array([np.inf]))
    >>> float(weights[:150].sum().round(3)), float(weights[150:].sum().round(3))
    (0.119, 0.881)
    """
    weights = _kernel(*in_spreads(values, lower, upper), 1.0, len(values))
    return weights / weights.sum()


def in_spreads(values, *bounds):
    """Divide values (m, k), and the bounds of intervals, by standard deviations.

    NaN becomes the median of the other values.
    """
    # A sum that is missing in all rows does not distinguish rows.
    values = np.where(np.isnan(values).all(axis=0), 0.0, values)
    values = np.where(np.isnan(values), np.nanmedian(values, axis=0), values)
    spread = values.std(axis=0)
    spread[spread == 0] = 1.0
    # Squares of larger distances would overflow.
    return tuple(np.clip(x / spread, -_FARTHEST, _FARTHEST) for x in (values, *bounds))


def gaps_of(values, lower, upper):
    """Compute squared distances (..., m) of values (..., m, k) to intervals."""
    low, high = (np.expand_dims(bound, -2) for bound in (lower, upper))
    gaps = np.maximum(np.maximum(low - values, values - high), 0)
    return np.square(gaps).sum(axis=-1)


def _kernel(values, lower, upper, counts, n_train):
    """Weigh values (..., m, k), each of ``counts`` rows, by a Gaussian kernel.

    The kernel is as narrow as leaves an effective number of 20 rows, or a quarter of
    all rows.
    """
    sq_distances = gaps_of(values, lower, upper)
    sq_distances -= sq_distances.min(axis=-1, keepdims=True)
    # A width of a tenth of a standard deviation keeps new rows close. Twenty rows leave
    # enough neighbours to mix with.
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
    # New rows of few parents are near-copies. If less than an eighth of the effective
    # parents remained, the weights approach the sums only partly.
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
    """Compute the positive weights nearest to given weights with sums in intervals."""
    limits = np.zeros_like(near), np.full_like(near, np.inf)
    bounds = system.lower, system.upper
    return nearest_weights(system.coefficients, *bounds, near, *limits, TOL, 60)[0]


def choose_base_rows(totals, weights, rng):
    """Choose the base row (n,) of each new row, which also gives the categories.

    Training rows with equal counted values share a cell. Each cell yields exactly the
    requested number of base rows, by systematic sampling in the order of the weights,
    which adds little variance.
    """
    first, cell = totals.cells
    requested, near, chosen = totals.counts, np.bincount(cell, weights), []
    rows, bounds = requested.coefficients[:, first], (requested.lower, requested.upper)
    limits = np.zeros(len(near)), np.where(near > 0, totals.n, 0.0)
    try:
        counts = integers_near(near, rows, *bounds, limits).astype(int)
    except ValueError:
        raise ValueError(_contradiction(totals, near, rows, bounds, limits)) from None
    for k in np.flatnonzero(counts):
        members = np.flatnonzero(cell == k)
        members = members[np.argsort(weights[members], kind="stable")]
        share = weights[members]
        below = np.cumsum(share if share.any() else np.ones(len(members)))
        places = (rng.uniform() + np.arange(counts[k])) * (below[-1] / counts[k])
        places = np.searchsorted(below, places, side="right")
        chosen.append(members[np.minimum(places, len(members) - 1)])
    return rng.permutation(np.concatenate(chosen))


def _contradiction(totals, near, rows, bounds, limits):
    """Return the message for infeasible counts, with the nearest feasible counts."""
    requested, rows = totals.counts, csr_array(rows).toarray()
    start = (
        f"No {totals.n} rows with the counts of {' and '.join(totals.counted)} were "
        "found"
    )
    # The number of rows is given.
    prices = np.r_[np.inf, 1 / np.maximum(np.abs(rows[1:]).max(axis=1), 1e-300)]
    found = least_missed(near, rows, bounds, limits, prices)
    if found is None:
        return f"{start}. Leave out one of the totals, or a constraint."
    reached = rows @ found
    k = int(np.argmax(np.abs(requested.missing(reached)) * np.r_[0, prices[1:]]))
    return (
        f"{start}: {requested.requirement(k)}, but the nearest value that satisfies "
        f"the other totals and constraints is {reached[k]:.10g}. Request this value, "
        "or leave out a total or a constraint."
    )
