"""Kullback-Leibler divergence and the two families of geodesics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import kl_div, logsumexp, xlogy

from .posets.elements import float_type

__all__ = ["e_geodesic", "kl_divergence", "m_geodesic"]


def kl_divergence(
    p: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None
) -> float | NDArray:
    """``KL(p, q) = sum p log(p / q) - sum p + sum q``.

    For distributions this is the usual divergence; for measures of different
    mass the last two terms keep it non-negative. It is ``inf`` where ``q`` is 0
    and ``p`` is not: no epsilon is added.

    Parameters
    ----------
    p, q : array-like, broadcast against each other
        Non-negative.
    axis : int, tuple of int or None, default=None
        Axes of the cells, summed over; None sums over all.

    Returns
    -------
    divergence : ndarray or float, in nats

    See Also
    --------
    mixed_projection : The problem that all projections are.
    interaction_energy : What lies beyond a level.
    e_geodesic : Straight in theta.

    Examples
    --------
    >>> from sklearn_pnl.geometry import kl_divergence
    >>> round(kl_divergence([0.5, 0.5], [0.25, 0.75]), 6)
    0.143841
    >>> kl_divergence([0.5, 0.5], [0.0, 1.0])
    inf
    """
    p, q = (np.asarray(x, dtype=float_type(x)) for x in (p, q))
    terms = kl_div(p, q)
    # A ratio may be beyond floating point where its logarithm is not.
    far = np.isinf(terms) & (p > 0) & (q > 0) & (p < np.inf) & (q < np.inf)
    if far.any():
        terms = np.where(far, xlogy(p, p) - xlogy(p, q) - p + q, terms)
    # Rounding alone can make the sum negative.
    divergence = np.maximum(terms.sum(axis=axis), 0)
    return float(divergence) if np.ndim(divergence) == 0 else divergence


def m_geodesic(p: ArrayLike, q: ArrayLike, t: ArrayLike) -> NDArray:
    """Point ``(1 - t) p + t q`` of the m-geodesic: straight in eta.

    Parameters
    ----------
    p, q : array-like of one shape
        Distributions (or measures), broadcast against each other.
    t : float or array-like of shape (n_points,)
        0 is ``p``, 1 is ``q``.

    Returns
    -------
    points : ndarray of the shape of ``p``, preceded by that of ``t``

    See Also
    --------
    e_geodesic : Straight in theta.
    geodesic_energy : The energy along a geodesic.

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
    """Point ``p^(1-t) q^t / c`` of the e-geodesic: straight in theta.

    Parameters
    ----------
    p, q : array-like of one shape
        Positive distributions, broadcast against each other.
    t : float or array-like of shape (n_points,)
        0 is ``p``, 1 is ``q``; values outside [0, 1] extrapolate.
    axis : int, tuple of int or None, default=None
        Axes of the cells, over which each point sums to 1; None means all axes
        of ``p``.

    Returns
    -------
    points : ndarray of the shape of ``p``, preceded by that of ``t``

    See Also
    --------
    m_geodesic : Straight in eta.
    geodesic_energy : The energy along a geodesic.

    Examples
    --------
    >>> from sklearn_pnl.geometry import e_geodesic
    >>> e_geodesic([0.5, 0.5], [0.2, 0.8], 0.5).round(4)
    array([0.3333, 0.6667])
    """
    p, q, t = _broadcast_path(p, q, t)
    if not (np.all(p > 0) and np.all(q > 0)):
        raise ValueError(
            "An e-geodesic runs between positive distributions; a cell is zero or "
            "negative. Add a positive offset before normalising."
        )
    energy = (1 - t) * np.log(p) + t * np.log(q)
    axes = range(p.ndim) if axis is None else np.atleast_1d(axis)
    # Counted from the end, since ``t`` puts axes in front.
    cells = tuple(int(a) % p.ndim - p.ndim for a in axes)
    return np.exp(energy - logsumexp(energy, axis=cells, keepdims=True))


def _broadcast_path(p, q, t):
    p, q = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float))
    t = np.asarray(t, float)
    return p, q, t.reshape(t.shape + (1,) * p.ndim)
