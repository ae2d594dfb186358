"""Round weights to integers that satisfy counts, and come near other totals."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from ..columns.constraints import ALMOST
from ..geometry.convex.integers import integers_near
from ..geometry.convex.weights import TINY
from .row_totals import ROUNDING

# Larger integer terms are amounts. An exact integer solution for amounts takes too
# long.
_LARGEST_COUNT = 32
# Maximum number of nodes of the search for a rounding. More nodes take minutes.
_NODES = 20
# Maximum number of exchanges of rounding; a few dozen are usually enough.
_MOST_EXCHANGES = 500
_GOLDEN_RATIO = (5**0.5 - 1) / 2


def integer_weights(system, weights, floor, ceiling):
    """Round weights (n,) to integers that satisfy the totals, if a rounding is found.

    Otherwise truncate, replicate, sample: sum the fractions over the rows, with rows of
    equal terms next to each other, and replicate a row when the sum passes a half.

    Parameters
    ----------
    system : RowTotals
        Totals that the weights have. A count that is not an integer is rounded up or
        down. Counts of overlapping margins stay consistent, because all of them are
        counts of the same integer weights.
    weights, floor, ceiling : ndarray of shape (n,)
        Weights, and their bounds.
    """
    # Adding 0.0 turns -0 into 0.
    floor = np.ceil(floor - ROUNDING) + 0.0
    ceiling = np.floor(ceiling + ROUNDING)
    for row in np.flatnonzero(floor > ceiling):
        raise ValueError(
            f"bounds allow no integer weight for row {row}. Widen bounds, or set "
            "integer=False."
        )
    # Shares are counts, and the sum of all weights is rounded as a count.
    terms, lower, upper = replace(system, weight_sum=weights.sum()).linear()
    terms = csr_array(terms)
    is_integer = abs(terms - terms.rint()).sum(axis=1) == 0
    largest = abs(terms).max(axis=1).toarray().ravel()
    lower, upper = np.where(is_integer, _integer_bounds(lower, upper), (lower, upper))
    # Counts of rows and persons become exact. An exact search with larger terms, such
    # as prices, would take minutes.
    weights = np.clip(weights, floor, ceiling)
    order = np.argsort(_fingerprints(terms), kind="stable")
    for most in (_LARGEST_COUNT, 1):
        exact = is_integer & (largest <= most)
        with suppress(ValueError):
            bounds = lower[exact], upper[exact]
            group, integers = _rounded_in_groups(weights, order, terms[exact], *bounds)
            loose = terms[~exact].toarray(), lower[~exact], upper[~exact]
            return _exchanged(integers, weights, group, *loose)
    integers = np.floor(weights + ROUNDING)
    fractions = np.cumsum((weights - integers)[order])
    integers[order] += np.diff(np.rint(fractions), prepend=0.0)
    return np.clip(integers, floor, ceiling)


def _integer_bounds(lower, upper):
    """Round intervals to their integers, or outwards if they contain no integer."""
    room = np.maximum(ALMOST, 1e-9 * np.fmin(np.abs(lower), np.abs(upper)))
    least, most = np.ceil(lower - room), np.floor(upper + room)
    is_empty = least > most
    return np.where(is_empty, (most, least), (least, most))


def _fingerprints(terms):
    """Return a number (n,) for each row that identifies the terms (c, n) of the row.

    Rows with different terms have different sums, because coefficients are irrational.
    """
    return terms.T @ np.sin(1.0 + np.arange(terms.shape[0]))


def _rounded_in_groups(weights, order, terms, lower, upper):
    """Round weights so that the sums of terms (c, n) lie in intervals.

    Rows with the same terms form a group. The integer sum of the weights of each group
    is found first, then the rows of the group that are rounded up. Neighbouring rows
    in ``order`` (n,) have similar values in the remaining terms.

    Returns
    -------
    group : ndarray of int of shape (n,)
    integers : ndarray of shape (n,)
    """
    _, first, group = np.unique(
        _fingerprints(terms), return_index=True, return_inverse=True
    )
    low = np.floor(weights + ROUNDING)
    part = np.maximum(weights - low, 0.0)
    least = np.bincount(group, low)
    limits = least, least + np.bincount(group, part > 0)
    sums = np.bincount(group, weights)
    sums = integers_near(sums, terms[:, first], lower, upper, limits, nodes=_NODES)
    # Rounding up the largest fractions would bias terms that depend on the fractions.
    # Evenly spread numbers replace random numbers.
    spread = np.empty(len(weights))
    spread[order] = np.arange(len(weights)) * _GOLDEN_RATIO % 1
    order = np.lexsort((np.where(part > 0, spread - part, 2.0), group))
    size = np.bincount(group)
    rank = np.empty(len(weights))
    rank[order] = np.arange(len(weights)) - np.repeat(np.cumsum(size) - size, size)
    return group, low + (rank < (sums - least)[group])


def _exchanged(integers, weights, group, terms, lower, upper):
    """Bring sums of ``terms`` (m, n) near their intervals by exchanges of pairs.

    An exchange rounds one row of a group up and another row down, so that the sums of
    the groups do not change. Each exchange reduces the largest residual as much as
    possible. The loop stops when no exchange reduces the residuals.
    """
    if not len(terms):
        return integers
    sizes = np.abs(terms).mean(axis=1) + TINY
    terms, lower, upper = terms / sizes[:, None], lower / sizes, upper / sizes
    values = terms @ integers
    for _ in range(_MOST_EXCHANGES):
        missing = np.clip(values, lower, upper) - values
        k, missed = np.argmax(np.abs(missing)), np.square(missing).sum()
        ups = np.flatnonzero(integers < weights - ROUNDING)
        downs = np.flatnonzero(integers > weights + ROUNDING)
        if missed <= ROUNDING or not len(ups) or not len(downs):
            break
        # For each row that can be rounded up, find rows of the group with near terms.
        least, width = terms[k].min(), 2 * np.ptp(terms[k]) + TINY
        keys = group[downs] + (terms[k, downs] - least) / width
        downs = downs[np.argsort(keys, kind="stable")]
        aim = np.clip((terms[k, ups] - missing[k] - least) / width, 0, 0.75)
        place = np.searchsorted(np.sort(keys), group[ups] + aim)
        near = downs[np.clip([place - 1, place], 0, len(downs) - 1)].ravel()
        ups = np.tile(ups, 2)
        left = missing[:, None] - terms[:, ups] + terms[:, near]
        left = np.where(group[ups] == group[near], np.square(left).sum(axis=0), np.inf)
        best = np.argmin(left)
        if not left[best] < missed * (1 - ROUNDING):
            break
        i, j = ups[best], near[best]
        integers[i], integers[j] = integers[i] + 1, integers[j] - 1
        values = terms @ integers
    return integers
