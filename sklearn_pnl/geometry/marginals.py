"""Marginals of the rows of a tensor, and what they give at once.

Rows are flat, of shape (n, D), or tensors of shape (n, *shape).
"""

from functools import lru_cache
from itertools import accumulate
from math import prod

import numpy as np
from scipy.sparse import csr_array, vstack

from .._runtime.workspace import empty, empty_like
from .coordinates import row_sums
from .interactions import cell_orders

# Largest matrix of indicators of the levels of single modes that is kept.
_LARGEST_INDICATORS = 2**22
# Up to so many cells a product with indicators of marginals is faster than sums.
_SUMMED_BY_PRODUCTS = 2**8
# Sums are divided by so much at least: those that are empty stay so.
_LEAST = 1e-300


def marginal_of(tensor, modes):
    """Sum over all modes but ``modes``, axes kept; rows come first.

    Mode by mode, the leading ones first: several axes at once take NumPy eight times
    as long. The last one by a matrix product, for sums over short trailing axes are far
    slower.
    """
    d = tensor.ndim - 1
    for k in range(d):
        shape, length = [*tensor.shape], tensor.shape[k + 1]
        shape[k + 1] = 1
        if k in modes or length == 1:
            continue
        if k < d - 1:
            out = empty(shape, tensor.dtype)
            tensor = tensor.sum(axis=k + 1, keepdims=True, out=out)
        else:
            tensor = row_sums(tensor.reshape(-1, length)).reshape(shape)
    return tensor


def one_body_theta(x, offset, shape):
    """theta of the one-body approximation straight from the marginals.

    The approximation is the product of the marginals of ``x + offset``, so theta of a
    cell ``i`` of mode k is ``log m_k(i) - log m_k(i - 1)``: one matrix product with
    the indicators of the marginal cells.

    Parameters
    ----------
    x : ndarray of shape (n, D)
        Rows, not normalised; their marginals are summed in their own precision.
    offset : float
    shape : tuple of int

    Returns
    -------
    theta : ndarray of shape (n, 1 + sum(I_k - 1))
        Of the normalised product at the bottom, then at the cells of order 1 in flat
        order. Not finite where a marginal is empty or the sum overflows.
    marginals : ndarray of shape (n, sum(I_k))
        Normalised, one mode after the other.
    mass : ndarray of shape (n,)
        The sum of ``x + offset``.
    """
    indicators, cells, columns, firsts = _marginal_cells(shape)
    theta = np.empty((len(x), 1 + len(columns)))
    with np.errstate(all="ignore"):
        marginals = (x @ indicators.astype(x.dtype, copy=False)).astype(np.float64)
        marginals += offset * cells
        mass = marginals[:, : shape[0]].sum(axis=1)
        marginals /= mass[:, None]
        logs = np.log(marginals)
        theta[:, 0] = logs[:, firsts].sum(axis=1)
        theta[:, 1:] = logs[:, columns] - logs[:, columns - 1]
    return theta, marginals, mass


@lru_cache(maxsize=16)
def _marginal_cells(shape):
    """Indicators of the cells of each marginal cell, and how cells of order 1 map.

    Returns the indicator matrix (D, sum(I_k)), the number of cells behind each
    marginal cell, the columns of the cells of order 1 in flat order, and the column
    of the first level of each mode.
    """
    indicators = levels_of_modes(shape, tuple(range(len(shape))))
    firsts = np.cumsum([0, *shape[:-1]])
    cells = np.array(np.nonzero(cell_orders(shape) == 1))
    columns = firsts @ (cells > 0) + cells.sum(axis=0)
    return indicators, indicators.sum(axis=0), columns, firsts


def product_of_marginals(target, shape, modes):
    """The one-body approximation; uniform in modes that are not in ``modes``."""
    masses = mode_marginals(target, shape, modes)
    product = np.ones((len(target), 1))
    # The last mode first: the longest runs of memory are those of what is there.
    for k in reversed(range(len(shape))):
        factor = masses.get(k, np.full((1, shape[k]), 1 / shape[k]))
        whole = empty((len(target), shape[k], product.shape[1]), np.float64)
        product = np.multiply(factor[:, :, None], product[:, None], out=whole)
        product = product.reshape(len(target), -1)
    return product


def rake(start, target, shape, mode_sets, n_sweeps):
    """Sweeps of iterative proportional fitting: rescale marginal by marginal."""
    q = empty(target.shape, np.float64)
    q[...] = start
    # Of a small tensor sums are products with indicators, and rows stay flat.
    if target.shape[1] <= _SUMMED_BY_PRODUCTS:
        cells = [_cells_of_marginal(shape, tuple(modes)) for modes in mode_sets]
        fits = [(indicators, target @ indicators) for indicators in cells]
        spread = empty_like(q)
        for indicators, wanted in fits * n_sweeps:
            q *= np.matmul(
                wanted / np.maximum(q @ indicators, _LEAST), indicators.T, out=spread
            )
        return q
    tensor, wanted = q.reshape(-1, *shape), target.reshape(-1, *shape)
    fits = [(modes, marginal_of(wanted, modes)) for modes in mode_sets]
    for modes, there in fits * n_sweeps:
        tensor *= there / np.maximum(marginal_of(tensor, modes), _LEAST)
    return q


def margin_rows(shape, mode_sets):
    """Indicators (m, D), sparse, of the cells behind each cell of the margins."""
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


def _indicators(shape, modes):
    """Indicators (D, cells) of the cells of the marginal of some modes."""
    return margin_rows(shape, [modes]).T.toarray(order="C")


# Of small tensors alone, so that little is kept.
_cells_of_marginal = lru_cache(maxsize=256)(_indicators)


@lru_cache(maxsize=256)
def levels_of_modes(shape, modes):
    """Indicators (D, sum(I_k)) of the levels of some modes, one after the other."""
    return np.hstack([_indicators(shape, (k,)) for k in modes])


def mode_marginals(x, shape, modes):
    """Marginals (n, I_k) of single modes, by mode, from one small matrix product."""
    lengths = [shape[k] for k in modes]
    if x.shape[1] * sum(lengths) > _LARGEST_INDICATORS:
        tensor = x.reshape(-1, *shape)
        return {k: marginal_of(tensor, (k,)).reshape(len(x), -1) for k in modes}
    products = x @ levels_of_modes(shape, tuple(modes))
    ends = zip(modes, lengths, accumulate(lengths), strict=True)
    return {k: products[:, end - length : end] for k, length, end in ends}


def kept_axes(modes, shape):
    """Shape with the lengths of some modes, and 1 for all others."""
    return tuple(length if k in modes else 1 for k, length in enumerate(shape))
