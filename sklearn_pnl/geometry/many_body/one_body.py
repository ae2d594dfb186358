"""The one-body approximation: a product of marginals, in closed form."""

from functools import lru_cache
from math import prod

import numpy as np

from ..._utils.arrays import cast, concat, constant, filled, namespace, take, widest
from ..convex.marginals import indicators_of, mode_marginals
from ..posets.interactions import cell_orders


def one_body_theta(x, offset, shape):
    """Compute theta of the one-body approximation from the marginals.

    The approximation is the product of the marginals ``m_k`` of ``x + offset``. So
    theta at cell ``i`` of mode k is ``log m_k(i) - log m_k(i - 1)``. One matrix product
    with the indicators of the marginal cells gives all marginals.

    Parameters
    ----------
    x : ndarray of shape (n, D)
        Rows, not normalised. The marginals are summed in the precision of ``x``.
    offset : float
        Constant that is added to all cells.
    shape : tuple of int
        Shape of the tensor.

    Returns
    -------
    theta : ndarray of shape (n, 1 + sum(I_k - 1))
        theta of the normalised product at the bottom, then at the cells of order 1 in
        flat order. It is not finite if a marginal is empty or the sum overflows.
    marginals : ndarray of shape (n, sum(I_k))
        Normalised marginals, mode by mode.
    mass : ndarray of shape (n,)
        The sum of ``x + offset``.
    """
    first_levels, columns = _columns(shape)
    modes, xp = ((k,) for k in range(len(shape))), namespace(x)
    with np.errstate(all="ignore"):
        marginals = x @ constant(x, indicators_of, shape, *modes)
        marginals = cast(marginals, widest(x))
        marginals += offset * constant(marginals, _n_summed, shape)
        mass = xp.sum(marginals[:, : shape[0]], axis=1)
        marginals /= mass[:, None]
        logs = xp.log(marginals)
        bottom = xp.sum(take(logs, first_levels, axis=1), axis=1)
        first = take(logs, columns, axis=1) - take(logs, columns - 1, axis=1)
    return concat([bottom[:, None], first], axis=1), marginals, mass


def _n_summed(shape):
    """Return the number of cells whose sum is each marginal cell."""
    return prod(shape) / np.repeat(shape, shape)


@lru_cache(maxsize=16)
def _columns(shape):
    """Return the columns of the first level of each mode, and of cells of order 1.

    The latter are in the flat order of the cells.
    """
    first_levels = np.cumsum([0, *shape[:-1]])
    cells = np.array(np.nonzero(cell_orders(shape) == 1))
    return first_levels, first_levels @ (cells > 0) + cells.sum(axis=0)


def product_of_marginals(target, shape, modes):
    """Compute the product of the marginals of ``modes``, uniform in other modes."""
    uniform = {k: filled(1 / n, (1, n), target) for k, n in enumerate(shape)}
    factors = uniform | mode_marginals(target, shape, modes)
    product = filled(1.0, (target.shape[0], 1), target)
    # Starting with the last mode makes contiguous runs of memory as long as possible.
    for k in reversed(range(len(shape))):
        product = factors[k][:, :, None] * product[:, None, :]
        product = namespace(target).reshape(product, (product.shape[0], -1))
    return product
