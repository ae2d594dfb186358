"""Interaction energies: the divergence that is due to interactions above an order.

By the Pythagorean theorem, the divergence of ``p`` from the uniform distribution is the
sum of the divergences between its successive many-body approximations. It is therefore
a sum of one part per order, or one part per level of any nested sets of coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils.arrays import namespace, to_host
from .divergences import e_geodesic, kl_divergence, m_geodesic
from .many_body.projections import mixed_projection
from .posets.protocol import PosetProtocol

__all__ = ["energy_decomposition", "geodesic_energy", "interaction_energy"]


def interaction_energy(
    p: ArrayLike,
    poset: PosetProtocol,
    order: ArrayLike = 1,
    *,
    upper: ArrayLike | None = None,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> float | NDArray:
    """Compute the energy of ``p`` above ``order``, ``KL(q_upper, q_order)``.

    ``q_order`` is the m-projection of ``p`` onto the distributions whose theta is 0
    above ``order``. With ``upper=None`` the energy is 0 if and only if ``p`` has no
    interactions above ``order``.

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Positive distributions.
    poset : Poset or TensorPoset
        Poset of the cells.
    order : int, list of tuple of int, or ndarray of bool, default=1
        Level whose elements are free: an order, a mask of elements, or a list. For a
        tensor the list contains sets of modes, otherwise elements. Order 0 is the
        uniform distribution.
    upper : like ``order``, default=None
        Level up to which energy is counted. None counts the energy up to ``p``.
    tol, max_iter
        See :func:`mixed_projection`.

    Returns
    -------
    energy : ndarray of shape (...,) or float
        Energy in nats.

    Raises
    ------
    RuntimeError
        If a projection does not converge.

    See Also
    --------
    energy_decomposition : Compute the energy of each level.
    geodesic_energy : Compute the energy along both geodesics.
    kl_divergence : Compute the divergence of two distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, interaction_energy
    >>> independent = np.outer([0.3, 0.7], [0.2, 0.8])
    >>> abs(interaction_energy(independent, TensorPoset((2, 2)))) < 1e-15
    True
    >>> dependent = [[0.4, 0.1], [0.1, 0.4]]
    >>> round(interaction_energy(dependent, TensorPoset((2, 2))), 4)
    0.1927
    """
    levels = [order] if upper is None else [order, upper]
    masks = [poset.level_mask(level) for level in levels]
    low, *high = (_project(p, poset, mask, tol, max_iter) for mask in masks)
    return kl_divergence(high[0] if high else p, low, axis=_cells(poset))


def energy_decomposition(
    p: ArrayLike,
    poset: PosetProtocol,
    levels: Sequence | None = None,
    *,
    reference: ArrayLike | None = None,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> NDArray:
    """Compute the part of ``KL(p, reference)`` that belongs to each nested level.

    Let ``q_0`` be the reference and ``q_m = p``. In between, ``q_k`` has eta of ``p``
    on level k and theta of the reference at all other elements. The parts are
    ``KL(q_k, q_{k-1})``, and their sum is ``KL(p, reference)`` (the Pythagorean
    theorem, Amari 2016, section 1.6).

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Positive distributions.
    poset : Poset or TensorPoset
        Poset of the cells.
    levels : list, default=None
        Levels as in :func:`interaction_energy`; each must be a subset of the next. None
        means all orders from 1 to ``poset.max_order - 1``.
    reference : array-like of shape ``poset.shape``, default=None
        A distribution. None means the uniform distribution.
    tol, max_iter
        See :func:`mixed_projection`.

    Returns
    -------
    parts : ndarray of shape (..., len(levels) + 1)
        Energies in nats. The last part is the energy above the last level.

    Raises
    ------
    ValueError
        If the levels are not nested.
    RuntimeError
        If a projection does not converge.

    See Also
    --------
    interaction_energy : Compute the energy above one level.
    geodesic_energy : Compute the energy along both geodesics.

    Examples
    --------
    >>> from sklearn_pnl.geometry import TensorPoset, energy_decomposition
    >>> p = [[0.4, 0.1], [0.2, 0.3]]
    >>> energy_decomposition(p, TensorPoset((2, 2))).round(4)
    array([0.0201, 0.0863])
    """
    levels = range(1, poset.max_order) if levels is None else levels
    masks = [poset.level_mask(level) for level in levels]
    for k, (inner, outer) in enumerate(pairwise(masks)):
        if np.any(inner & ~outer):
            raise ValueError(
                f"levels must be nested; level {k} has elements that level {k + 1} "
                "lacks. Add them to the later levels, or sort the levels by size."
            )
    first = 1 / poset.n_elements if reference is None else reference
    middle = [_project(p, poset, mask, tol, max_iter, reference) for mask in masks]
    pairs, cells = pairwise([first, *middle, p]), _cells(poset)
    parts = [kl_divergence(upper, lower, axis=cells) for lower, upper in pairs]
    xp = np if isinstance(parts[0], float) else namespace(parts[0])
    return xp.stack(parts, axis=-1)


def geodesic_energy(
    p: ArrayLike,
    q: ArrayLike,
    t: ArrayLike,
    poset: PosetProtocol,
    order: ArrayLike = 1,
    *,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> tuple[float | NDArray, ...]:
    """Compute the interaction energy along the two geodesics from ``p`` to ``q``.

    The e-geodesic between two points of an e-flat base stays in the base, so its energy
    is 0. The m-geodesic between the points, a straight line, leaves the base.

    Parameters
    ----------
    p, q : array-like of shape (..., *poset.shape)
        Positive distributions, broadcast against each other.
    t : array-like of shape (n_points,)
        Positions on the geodesics: 0 is ``p``, and 1 is ``q``.
    poset : Poset or TensorPoset
        Poset of the cells.
    order : int, list of tuple of int, or ndarray of bool, default=1
        Level above which the energy is computed; see :func:`interaction_energy`.
    tol, max_iter
        See :func:`mixed_projection`.

    Returns
    -------
    e_energy, m_energy : ndarray of shape (n_points, ...)
        Energies in nats along the e-geodesic and along the m-geodesic.

    Raises
    ------
    RuntimeError
        If a projection does not converge.

    See Also
    --------
    energy_decomposition : Compute the energy of each level.
    e_geodesic : Compute points of the geodesic that is straight in theta.
    m_geodesic : Compute points of the geodesic that is straight in eta.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, geodesic_energy
    >>> p = np.outer([0.1, 0.9], [0.1, 0.9])
    >>> q = np.outer([0.8, 0.2], [0.8, 0.2])
    >>> e, m = geodesic_energy(p, q, [0.0, 0.5, 1.0], TensorPoset((2, 2)))
    >>> bool(np.allclose(e, 0)), m.round(3) + 0.0
    (True, array([0.   , 0.127, 0.   ]))
    """
    paths = e_geodesic(p, q, t, axis=_cells(poset)), m_geodesic(p, q, t)
    return tuple(
        interaction_energy(path, poset, order, tol=tol, max_iter=max_iter)
        for path in paths
    )


def _project(p, poset, mask, tol, max_iter, reference=None):
    """Project onto a level; raise a RuntimeError if the iteration does not converge."""
    projection = mixed_projection(p, reference, mask, poset, tol=tol, max_iter=max_iter)
    residual = to_host(projection.residual)
    if not np.all(residual <= projection.tol):
        raise RuntimeError(
            f"A projection did not converge: the largest residual after "
            f"{np.max(projection.n_iter)} Newton steps is {np.max(residual):.1e} > "
            f"tol={tol:g}. Increase tol or max_iter={max_iter}, or add a larger offset "
            "before normalising."
        )
    return projection.prob


def _cells(poset):
    return tuple(range(-len(poset.shape), 0))
