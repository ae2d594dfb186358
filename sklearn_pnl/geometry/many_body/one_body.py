"""The one-body approximation: a product of marginals, in closed form."""

from functools import lru_cache
from math import prod

import numpy as np

from ..._utils.arrays import cast, concat, constant, filled, namespace, take, widest
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
    first_levels, columns = _columns(shape)
    modes, xp = ((k,) for k in range(len(shape))), namespace(x)
    with np.errstate(all="ignore"):
        marginals = x @ constant(x, indicators_of, shape, *modes)
        marginals = cast(marginals, widest(x))
        marginals += offset * constant(marginals, _n_behind, shape)
        mass = xp.sum(marginals[:, : shape[0]], axis=1)
        marginals /= mass[:, None]
        logs = xp.log(marginals)
        bottom = xp.sum(take(logs, first_levels, axis=1), axis=1)
        others = take(logs, columns, axis=1) - take(logs, columns - 1, axis=1)
    return concat([bottom[:, None], others], axis=1), marginals, mass


def _n_behind(shape):
    """Number of cells behind each marginal cell."""
    return prod(shape) / np.repeat(shape, shape)


@lru_cache(maxsize=16)
def _columns(shape):
    """Numbers of marginal cells: the first of each mode, and those of cells of order 1.

    The latter are in the flat order of the cells.
    """
    first_levels = np.cumsum([0, *shape[:-1]])
    cells = np.array(np.nonzero(cell_orders(shape) == 1))
    return first_levels, first_levels @ (cells > 0) + cells.sum(axis=0)


def product_of_marginals(target, shape, modes):
    """The one-body approximation; uniform in modes that are not in ``modes``."""
    uniform = {k: filled(1 / n, (1, n), target) for k, n in enumerate(shape)}
    factors = uniform | mode_marginals(target, shape, modes)
    product = filled(1.0, (target.shape[0], 1), target)
    # From the last mode on, so that contiguous runs of memory are as long as possible.
    for k in reversed(range(len(shape))):
        product = factors[k][:, :, None] * product[:, None, :]
        product = namespace(target).reshape(product, (product.shape[0], -1))
    return product
