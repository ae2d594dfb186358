"""Kullback-Leibler divergence and the two families of geodesics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils.arrays import at_least, namespace, reshaped
from .posets.elements import as_doubles, as_floats, together

__all__ = ["e_geodesic", "kl_divergence", "m_geodesic"]


def kl_divergence(
    p: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None
) -> float | NDArray:
    """Compute ``KL(p, q) = sum p log(p / q) - sum p + sum q``.

    For distributions the result is the Kullback-Leibler divergence. For measures of
    different mass, the last two terms make it non-negative. The result is ``inf`` if
    ``q`` is 0 in a cell in which ``p`` is positive; no epsilon is added.

    Parameters
    ----------
    p, q : array-like
        Distributions or measures, broadcast against each other. If a cell is negative,
        the result is ``inf``.
    axis : int, tuple of int or None, default=None
        Axes of the cells, over which the terms are summed. None sums over all axes.

    Returns
    -------
    divergence : ndarray or float
        Divergence in nats; a float if all axes are summed.

    See Also
    --------
    mixed_projection : Minimise the divergence with given coordinates.
    interaction_energy : Compute the divergence due to interactions above an order.
    e_geodesic : Compute points of the geodesic that is straight in theta.

    Examples
    --------
    >>> from sklearn_pnl.geometry import kl_divergence
    >>> round(kl_divergence([0.5, 0.5], [0.25, 0.75]), 6)
    0.143841
    >>> kl_divergence([0.5, 0.5], [0.0, 1.0])
    inf
    """
    p, q = together(as_floats, p, q)
    xp = namespace(p)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = xp.log(p / q)
        # A ratio may overflow although its logarithm is finite.
        far = xp.isinf(logs) & (p > 0) & (q > 0) & (p < np.inf) & (q < np.inf)
        if xp.any(far):
            logs = xp.where(far, xp.log(p) - xp.log(q), logs)
        terms = xp.where(p == 0, 0.0, p * logs) - p + q
    terms = xp.where((p < 0) | (q < 0), np.inf, terms)
    # The sum is only negative due to rounding.
    divergence = at_least(xp.sum(terms, axis=axis), 0.0)
    return float(divergence) if divergence.ndim == 0 else divergence


def m_geodesic(p: ArrayLike, q: ArrayLike, t: ArrayLike) -> NDArray:
    """Compute the point ``(1 - t) p + t q`` of the m-geodesic, straight in eta.

    Parameters
    ----------
    p, q : array-like
        Distributions or measures, broadcast against each other.
    t : float or array-like of shape (n_points,)
        Positions on the geodesic: 0 gives ``p``, and 1 gives ``q``.

    Returns
    -------
    points : ndarray
        Points; the shape is the shape of ``t`` followed by the shape of ``p``.

    See Also
    --------
    e_geodesic : Compute points of the geodesic that is straight in theta.
    geodesic_energy : Compute the energy along both geodesics.

    Examples
    --------
    >>> from sklearn_pnl.geometry import m_geodesic
    >>> m_geodesic([0.5, 0.5], [0.1, 0.9], 0.5)
    array([0.3, 0.7])
    """
    first, last, at = _broadcast_path(p, q, t)
    return (1 - at) * first + at * last


def e_geodesic(
    p: ArrayLike, q: ArrayLike, t: ArrayLike, axis: int | tuple[int, ...] | None = None
) -> NDArray:
    """Compute the point ``p^(1-t) q^t / c`` of the e-geodesic, straight in theta.

    Parameters
    ----------
    p, q : array-like
        Positive distributions, broadcast against each other.
    t : float or array-like of shape (n_points,)
        Positions on the geodesic: 0 gives ``p``, and 1 gives ``q``. Values outside
        [0, 1] extrapolate.
    axis : int, tuple of int or None, default=None
        Axes of the cells, over which each point sums to 1. None means all axes of
        ``p``.

    Returns
    -------
    points : ndarray
        Points; the shape is the shape of ``t`` followed by the shape of ``p``.

    Raises
    ------
    ValueError
        If a cell is not positive.

    See Also
    --------
    m_geodesic : Compute points of the geodesic that is straight in eta.
    geodesic_energy : Compute the energy along both geodesics.

    Examples
    --------
    >>> from sklearn_pnl.geometry import e_geodesic
    >>> e_geodesic([0.5, 0.5], [0.2, 0.8], 0.5).round(4)
    array([0.3333, 0.6667])
    """
    p, q, t = _broadcast_path(p, q, t)
    if not (namespace(p).all(p > 0) and namespace(q).all(q > 0)):
        raise ValueError(
            "e_geodesic requires positive distributions p and q; a cell is zero or "
            "negative. Add a positive offset before normalising."
        )
    xp, d = namespace(p), p.ndim
    energy = (1 - t) * xp.log(p) + t * xp.log(q)
    axes = range(d) if axis is None else np.atleast_1d(axis)
    # Axes are counted from the end, because the axes of ``t`` come first.
    cells = tuple(int(a) % d - d for a in axes)
    points = xp.exp(energy - xp.max(energy, axis=cells, keepdims=True))
    return points / xp.sum(points, axis=cells, keepdims=True)


def _broadcast_path(p, q, t):
    p, q, t = together(as_doubles, p, q, t)
    xp = namespace(p)
    shape = np.broadcast_shapes(tuple(p.shape), tuple(q.shape))
    p, q = xp.broadcast_to(p, shape), xp.broadcast_to(q, shape)
    return p, q, reshaped(t, tuple(t.shape) + (1,) * len(shape))
