"""Marginals of many tensors, given as rows of shape (n, D) or (n, *shape)."""

from functools import lru_cache
from itertools import accumulate
from math import prod

import numpy as np
from scipy.sparse import csr_array, vstack

from ..._utils.arrays import constant, namespace, reshaped, row_sums

# Largest number of entries of a cached matrix of indicators of single modes.
_LARGEST_INDICATORS = 2**22


def is_small(rows):
    """Check whether products with indicators are faster than sums over axes."""
    return rows.shape[1] <= 256


def flat_margin(rows, shape, modes):
    """Compute a margin (n, n_cells) of tables (n, D), flat by ascending modes.

    Larger tables are summed mode by mode, starting with the first mode, because NumPy
    takes eight times as long for several axes at once. The last mode is summed by a
    matrix product, because sums over a short last axis are slow.
    """
    if is_small(rows):
        return rows @ constant(rows, indicators_of, tuple(shape), tuple(modes))
    sums = reshaped(rows, (rows.shape[0], *shape))
    for k, length in enumerate(shape):
        if k in modes or length == 1:
            continue
        if k < len(shape) - 1:
            sums = namespace(sums).sum(sums, axis=k + 1, keepdims=True)
        else:
            sums = row_sums(reshaped(sums, (-1, length)))
    return reshaped(sums, (rows.shape[0], prod(shape[k] for k in modes)))


def margin_rows(shape, mode_sets):
    """Return sparse indicators (m, D) of the cells whose sum is each marginal cell."""
    cells = np.indices(shape).reshape(len(shape), -1)
    n_cells, parts = prod(shape), []
    for modes in mode_sets:
        lengths = tuple(shape[k] for k in modes)
        margin = np.zeros(n_cells, np.intp)
        for k in modes:
            margin = margin * shape[k] + cells[k]
        entries = (np.ones(n_cells), (margin, np.arange(n_cells)))
        parts.append(csr_array(entries, shape=(prod(lengths), n_cells)))
    return vstack(parts, format="csr")


@lru_cache(maxsize=512)
def indicators_of(shape, *mode_sets):
    """Return dense indicators (D, m) of the cells of marginals, margin by margin."""
    return margin_rows(shape, mode_sets).T.toarray(order="C")


def mode_marginals(x, shape, modes):
    """Compute marginals (n, I_k) of single modes, by mode, with one matrix product."""
    lengths = [shape[k] for k in modes]
    if x.shape[1] * sum(lengths) > _LARGEST_INDICATORS:
        return {k: flat_margin(x, shape, (k,)) for k in modes}
    products = x @ constant(x, indicators_of, shape, *((k,) for k in modes))
    stops = zip(modes, lengths, accumulate(lengths), strict=True)
    return {k: products[:, stop - length : stop] for k, length, stop in stops}
