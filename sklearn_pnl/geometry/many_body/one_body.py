"""The one-body approximation: a product of marginals, in closed form."""

from functools import lru_cache

import numpy as np

from ..convex.marginals import indicators_of, mode_marginals
from ..posets.interactions import cell_orders


def one_body_theta(x, offset, shape):
    """theta of the one-body approximation from the marginals.

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
    indicators, cells, columns, first_levels = _marginal_cells(shape)
    theta = np.empty((len(x), 1 + len(columns)))
    with np.errstate(all="ignore"):
        marginals = (x @ indicators.astype(x.dtype, copy=False)).astype(np.float64)
        marginals += offset * cells
        mass = marginals[:, : shape[0]].sum(axis=1)
        marginals /= mass[:, None]
        logs = np.log(marginals)
        theta[:, 0] = logs[:, first_levels].sum(axis=1)
        theta[:, 1:] = logs[:, columns] - logs[:, columns - 1]
    return theta, marginals, mass


@lru_cache(maxsize=16)
def _marginal_cells(shape):
    """Indicators of the cells of each marginal cell, and how cells of order 1 map.

    Returns the indicator matrix (D, sum(I_k)), the number of cells behind each
    marginal cell, the columns of the cells of order 1 in flat order, and the column
    of the first level of each mode.
    """
    indicators = indicators_of(shape, *((k,) for k in range(len(shape))))
    first_levels = np.cumsum([0, *shape[:-1]])
    cells = np.array(np.nonzero(cell_orders(shape) == 1))
    columns = first_levels @ (cells > 0) + cells.sum(axis=0)
    return indicators, indicators.sum(axis=0), columns, first_levels


def product_of_marginals(target, shape, modes):
    """The one-body approximation; uniform in modes that are not in ``modes``."""
    masses = mode_marginals(target, shape, modes)
    product = np.ones((len(target), 1))
    # From the last mode on, so that contiguous runs of memory are as long as possible.
    for k in reversed(range(len(shape))):
        factor = masses.get(k, np.full((1, shape[k]), 1 / shape[k]))
        product = factor[:, :, None] * product[:, None]
        product = product.reshape(len(product), -1)
    return product
