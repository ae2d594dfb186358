"""One-hot groups: columns of two values, in each row the upper one in just one.

They are looked for by counts, among any number of columns, in any units.
"""

from math import lgamma, log

import numpy as np

from .._runtime.workspace import slices
from ..tables.forms import as_dense

# Rows that are looked at before all of them are; cells that are counted at once.
_FIRST, _CELLS = (64, 512, 2048), 2**20
# Chance makes a group of such counts less often than 2 ** -_BITS; of fewer rows than
# this it makes many.
_BITS, _LEAST = 2, 8


def one_hot_groups(X, share_distinct=1.0, precision=0.0):
    """Sums of neighbouring columns, each as a share of its range, that are 1.

    Their coefficients (k, D) and values; a ``share_distinct`` of the rows (n, D),
    which may be sparse, differ. Columns that are constant do not part a group; those of
    other types, by their ``precision`` (D,), are of none.
    """
    (n, d), found = X.shape, []
    columns, low, high = _of_two_values(X)
    on = as_dense(X[:, columns]) == high
    firsts, ends = _runs(on) if n >= _LEAST and len(columns) > 1 else ([], [])
    wanted, counts = _BITS + log(1 + len(firsts), 2), on.sum(axis=0)
    for first, end in zip(firsts, ends, strict=True):
        some = slice(first, end)
        types = np.broadcast_to(precision, d)[columns[some]]
        allowed = np.ptp(types) == 0 and (not found or found[-1].stop <= first)
        if allowed and share_distinct * _bits(counts[some], n) > wanted:
            found.append(some)
    equations, values = np.zeros((len(found), d)), np.zeros(len(found))
    for k, some in enumerate(found):
        ranges = high[some] - low[some]
        weights = ranges.max() / ranges
        equations[k, columns[some]] = weights
        values[k] = weights @ low[some] + ranges.max()
    return equations, values


def _of_two_values(X):
    """Columns of two values, and these; none where some of the rows show no group."""
    columns = np.arange(X.shape[1])
    for size in (*_FIRST, X.shape[0]):
        part = as_dense(X[:: max(1, X.shape[0] // size)][:, columns])
        low, high = part.min(axis=0), part.max(axis=0)
        some = ((part == low) | (part == high)).all(axis=0)
        columns, low, high = columns[some], low[some], high[some]
        if not len(columns):
            break
        on = (part[:, some] == high) & (low < high)
        if size == max(_FIRST) and not _runs(on)[0]:
            return columns[:0], low[:0], high[:0]
    varying = low < high
    low, high = (end[varying].astype(np.float64) for end in (low, high))
    return columns[varying], low, high


def _runs(on):
    """Where runs of columns begin and end of which each row (n, D) has just one on."""
    until = np.concatenate([[0], np.cumsum(on.sum(axis=0))])
    # Each row is counted once, so that the counts of a run sum to n.
    ends = np.searchsorted(until, until[:-1] + len(on))
    fits = np.append(until, -1)[ends] == until[:-1] + len(on)
    firsts = np.flatnonzero(fits & (ends - np.arange(len(ends)) > 1))
    ends = ends[firsts]
    for rows in (slice(64), *slices(len(on), 1 + _CELLS // (1 + on.shape[1]))):
        if len(firsts):
            until = np.cumsum(on[rows], axis=1, dtype=np.int32)
            until = np.concatenate([np.zeros((len(until), 1), np.int32), until], axis=1)
            whole = (until[:, ends] - until[:, firsts] == 1).all(axis=0)
            firsts, ends = firsts[whole], ends[whole]
    return firsts.tolist(), ends.tolist()


def _bits(counts, n):
    """How surprising it is that columns with so many ones each share out n rows."""

    def choices(*sizes):
        return (lgamma(sum(sizes) + 1) - sum(lgamma(k + 1) for k in sizes)) / log(2)

    counts = counts.tolist()
    return sum(choices(k, n - k) for k in counts) - choices(*counts)
