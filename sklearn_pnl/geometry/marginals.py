"""Marginals of the rows of a tensor, and what they give at once.

Rows are flat, of shape (n, D), or tensors of shape (n, *shape).
"""

import numpy as np

_RAKING_SWEEPS = 2


def mode_views(x, shape):
    """Views (outer, length, inner) of rows ``x``, one a mode."""
    outer, inner = len(x), x.shape[1]
    for length in shape:
        inner //= length
        yield x.reshape(outer, length, inner)
        outer *= length


def marginal_of(tensor, modes):
    """Sum over all modes but ``modes``, axes kept; rows come first."""
    d = tensor.ndim - 1
    others = tuple(k + 1 for k in range(d) if k not in modes)
    return tensor.sum(axis=others, keepdims=True)


def product_of_marginals(target, shape, modes):
    """The one-body approximation; uniform in modes that are not in ``modes``."""
    tensor = target.reshape(-1, *shape)
    product = np.ones((len(tensor), *(1,) * len(shape)))
    for k, length in enumerate(shape):
        if k in modes:
            product = product * marginal_of(tensor, (k,))
        else:
            product = product * np.full(_along(k, length, len(shape)), 1 / length)
    return product.reshape(len(tensor), -1)


def rake(start, target, shape, mode_sets):
    """A few sweeps of iterative proportional fitting: rescale marginal by marginal."""
    tensor = target.reshape(-1, *shape)
    wanted = [marginal_of(tensor, modes) for modes in mode_sets]
    q = np.array(np.broadcast_to(start, target.shape)).reshape(tensor.shape)
    for _ in range(_RAKING_SWEEPS):
        for modes, marginal in zip(mode_sets, wanted, strict=True):
            # A marginal that is empty in both stays so.
            now = marginal_of(q, modes)
            q *= np.divide(marginal, now, out=np.ones_like(now), where=now > 0)
    return q.reshape(target.shape)


def levels_by_mass(target, shape):
    """Flat cell order in which each mode's most probable level comes first."""
    n, d = len(target), len(shape)
    tensor = target.reshape(n, *shape)
    flat = np.zeros((n, *(1,) * d), np.intp)
    for k, length in enumerate(shape):
        marginal = marginal_of(tensor, (k,)).reshape(n, length)
        ranked = np.argsort(-marginal, axis=1, kind="stable")
        flat = flat * length + ranked.reshape(n, *_along(k, length, d)[1:])
    return flat.reshape(n, -1)


def _along(mode, length, n_modes):
    """Shape with ``length`` in one mode and 1 elsewhere, rows first."""
    return (1, *(length if k == mode else 1 for k in range(n_modes)))
