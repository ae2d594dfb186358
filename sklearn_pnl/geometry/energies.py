"""How much of a distribution lies beyond an order: interaction energies.

By the Pythagorean theorem the divergence of ``p`` from the uniform distribution is
the sum of those between its successive many-body approximations, so it divides
among the orders, and among any nested families of coordinates.
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
    """Compute the energy of ``p`` beyond ``order``: ``KL(q_upper, q_order)``.

    ``q_order`` is the m-projection of ``p`` on the distributions without theta beyond
    ``order``. The energy is 0 if and only if ``p`` has no such interactions.

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Positive distributions.
    poset : Poset or TensorPoset
    order : int, list of tuple of int, or ndarray of bool, default=1
        Level: an order (0 is the uniform distribution), a mask of free elements, or
        a list: of the mode sets kept for a tensor, of free elements otherwise.
    upper : like ``order``, default=None
        Level up to which energy is counted; None is ``p`` itself.
    tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    energy : ndarray of shape (...,) or float, in nats

    Raises
    ------
    RuntimeError
        If a projection does not converge.

    See Also
    --------
    energy_decomposition : What lies in each level.
    geodesic_energy : The energy along a geodesic.
    kl_divergence : Divergence of distributions.

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
    """Compute the part of ``KL(p, reference)`` in each of the nested levels.

    With ``q_0`` the reference, ``q_k`` with eta of ``p`` on level k and theta of the
    reference beyond it, and ``q_m = p``, the parts are ``KL(q_k, q_{k-1})``; they sum
    to ``KL(p, reference)`` (the Pythagorean theorem, Amari 2016, section 1.6).

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Positive distributions.
    poset : Poset or TensorPoset
    levels : list, default=None
        Levels as in :func:`interaction_energy`, each inside the next. None is the
        orders 1, 2, .., up to the largest but one.
    reference : array-like of shape ``poset.shape``, default=None
        A distribution; None is the uniform one.
    tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    parts : ndarray of shape (..., len(levels) + 1), in nats
        The last part is what lies beyond the last level.

    Raises
    ------
    ValueError
        If the levels are not nested: their energies would not add up.
    RuntimeError
        If a projection does not converge.

    See Also
    --------
    interaction_energy : What lies beyond a level.
    geodesic_energy : The energy along a geodesic.

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
                f"Level {k} is not inside level {k + 1}: energies add up for nested "
                "levels only."
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

    The e-geodesic between two points of an e-flat base stays in it, at energy 0; the
    m-geodesic, the straight line, leaves it.

    Parameters
    ----------
    p, q : array-like of shape ``poset.shape``
        Positive distributions.
    t : array-like of shape (n_points,)
        0 is ``p``, 1 is ``q``.
    poset : Poset or TensorPoset
    order : int, list of tuple of int, or ndarray of bool, default=1
        Level, as in :func:`interaction_energy`.
    tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    e_energy, m_energy : ndarray of shape (n_points,), in nats

    See Also
    --------
    energy_decomposition : What lies in each level.
    e_geodesic : Straight in theta.
    m_geodesic : Straight in eta.

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
    return tuple(
        interaction_energy(geodesic(p, q, t), poset, order, tol=tol, max_iter=max_iter)
        for geodesic in (e_geodesic, m_geodesic)
    )


def _project(p, poset, mask, tol, max_iter, reference=None):
    """The projection on a level; a RuntimeError if it does not converge."""
    projection = mixed_projection(p, reference, mask, poset, tol=tol, max_iter=max_iter)
    residual = to_host(projection.residual)
    if not np.all(residual <= projection.tol):
        raise RuntimeError(
            f"A projection did not converge: the worst residual is "
            f"{np.max(residual):.1e} > tol={tol:g} after "
            f"{np.max(projection.n_iter)} Newton steps. Increase tol or "
            "max_iter, or add a larger offset before normalising."
        )
    return projection.prob


def _cells(poset):
    return tuple(range(-len(poset.shape), 0))
