r"""Projections in mixed coordinates: the one problem that the library solves.

Given a set M of elements, a *target* t and a *reference* r, find the distribution

.. math:: q = \arg\min_q KL(q, r) \quad\text{subject to}\quad
          \eta_q(x) = \eta_t(x) \text{ for } x \in M .

Then theta of ``q`` equals that of ``r`` off M, and ``q`` exists and is unique for
positive ``t`` and ``r`` (Amari 2016, section 2.8: mixed coordinates). It is also the
minimum over ``theta`` on M of the smooth convex ``psi(theta) - <theta, eta_t>_M``.

Four routes, by the shape of M:

splice
    M is an up-set. eta on an up-set fixes the cells of it, so ``q = t`` on M and
    ``q = c r`` off M: closed form.
tilt
    M is a family of interactions of a tensor. ``q = r exp(v)`` with ``v`` a sum of
    functions of the kept sets of modes, matched to their marginals of ``t``.
classes
    Below each cell one element of M is the greatest, as for any M in a chain or a tree.
    The cells with the same one form a class, and ``q = r`` times the ratio of the
    masses of its class in ``t`` and ``r``: closed form.
general
    Any other M: ``q = r exp(zeta v)`` with ``v`` supported on M.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..posets.interactions import Interactions
from ..posets.protocol import PosetProtocol, order_mask
from .solvers import Projection, mixed_solver


def mixed_projection(
    target: ArrayLike,
    reference: ArrayLike | None,
    matched: ArrayLike,
    poset: PosetProtocol,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Projection:
    """Distribution with eta of a target on a set and theta of a reference off it.

    Solves ``min KL(q, reference)`` over the ``q`` with ``eta_q = eta_target`` on
    ``matched``.

    Parameters
    ----------
    target : array-like of shape (..., *poset.shape)
        Distributions; only their eta on ``matched`` is used.
    reference : array-like of shape (..., *poset.shape) or None
        Distributions; only their theta off ``matched`` is used. None is the uniform
        distribution: theta 0. Broadcast against ``target``. Cells where it is 0 stay 0
        (structural zeros); where no such distribution has the eta asked for, the
        residual stays above ``tol``.
    matched : array-like of bool of shape ``poset.shape``
        The set M. The bottom, fixed by normalisation, is ignored.
    poset : Poset or TensorPoset
    tol : float, default=1e-6
        Wanted ``max |eta_q - eta_target|`` over ``matched``.
    max_iter : int, default=100
        Most Newton steps.

    Returns
    -------
    Projection

    Raises
    ------
    ValueError
        If shapes do not fit, if an input is not a positive distribution where it
        must be.

    See Also
    --------
    many_body_projection : On distributions of low order.
    complete : Missing cells by a log-linear model of the observed ones.

    Notes
    -----
    ``tol`` bounds eta. theta is right to about 1e-8 in cells of ordinary mass where
    the form is closed or at most 128 coordinates are free. It is as sensitive to the
    lightest cells as to the heaviest: where masses differ by more than about 1e6, theta
    of the light ones is as far off as ``tol`` and rounding in eta allow. A general set
    of more than 2,048 elements has no basis in which its problem is well conditioned,
    and may not converge, which the residual says.

    References
    ----------
    Amari, "Information Geometry and Its Applications", 2016, section 2.8.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, mixed_projection
    >>> target = np.array([[0.4, 0.1], [0.2, 0.3]])
    >>> poset = TensorPoset((2, 2))
    >>> projection = mixed_projection(target, None, poset.order == 1, poset)
    >>> projection.prob                        # the product of the marginals
    array([[0.3, 0.2],
           [0.3, 0.2]])
    >>> projection.route
    'tilt'
    """
    solver = mixed_solver(poset, matched)
    return solver.project(target, reference, tol=tol, max_iter=max_iter)


def many_body_projection(
    p: ArrayLike,
    poset: PosetProtocol,
    order: Interactions = 1,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Projection:
    """Project on the distributions without interactions beyond ``order``.

    Solves ``min KL(p, q)`` over the ``q`` with ``theta_q = 0`` on all elements of
    order above ``order``; ``q`` has the eta of ``p`` on the others.

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Positive distributions.
    poset : Poset or TensorPoset
    order : int or iterable of tuple of int, default=1
        ``ell``, or for a tensor the mode sets kept.
    tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    Projection

    See Also
    --------
    mixed_projection : The problem that all projections are.
    order_mask : Elements up to an order.

    References
    ----------
    Ghalamkari, Sugiyama and Kawahara, "Many-body approximation for non-negative
    tensors", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, many_body_projection
    >>> p = np.array([[0.4, 0.1], [0.2, 0.3]])
    >>> many_body_projection(p, TensorPoset((2, 2)), order=1).prob
    array([[0.3, 0.2],
           [0.3, 0.2]])
    """
    matched = order_mask(poset, order)
    return mixed_projection(p, None, matched, poset, tol=tol, max_iter=max_iter)
