r"""Projections in mixed coordinates.

Given a set M of elements, a *target* t and a *reference* r, the projection is

.. math:: q = \arg\min_q KL(q, r) \quad\text{subject to}\quad
          \eta_q(x) = \eta_t(x) \text{ for } x \in M .

Then ``q`` and ``r`` have the same theta off M. For positive ``t`` and ``r`` there is
exactly one ``q`` (Amari 2016, section 2.8: mixed coordinates). It is also the minimum
over ``theta`` on M of the smooth convex function ``psi(theta) - <theta, eta_t>_M``.

The shape of M selects one of four routes:

splice
    M is an up-set. On an up-set, eta determines the cells (Moebius inversion within M).
    The closed form is ``q = t`` on M and ``q = c r`` off M.
tilt
    M is a family of interactions of a tensor. ``q = r exp(v)``, where ``v`` is a sum of
    functions of the sets of modes in the family, and ``q`` has the marginals of ``t``.
    Newton's method starts after a few sweeps of iterative proportional fitting.
classes
    Each cell has a greatest element of M below it, as for any M in a chain or a tree.
    Cells with the same greatest element form a class. The closed form is ``q = r``
    times the ratio of the masses of the class in ``t`` and ``r``.
general
    For any other M, ``q = r exp(zeta v)`` with ``v`` supported on M. Newton's method
    uses the columns of the zeta matrix, made orthonormal.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..posets.interactions import Interactions
from ..posets.protocol import PosetProtocol, order_mask
from .closed_forms import Projection
from .solvers import mixed_solver


def mixed_projection(
    target: ArrayLike,
    reference: ArrayLike | None,
    matched: ArrayLike,
    poset: PosetProtocol,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Projection:
    """Compute distributions with eta of a target and theta of a reference.

    Solves ``min KL(q, reference)`` over the ``q`` with ``eta_q = eta_target`` on
    ``matched``. The solution has theta of the reference at all other elements. All
    projections of the package are special cases.

    Parameters
    ----------
    target : array-like of shape (..., *poset.shape)
        Distributions. Only their eta on ``matched`` is used.
    reference : array-like of shape (..., *poset.shape) or None
        Distributions, broadcast against ``target``. Only their theta off ``matched`` is
        used. None means the uniform distribution, with theta 0. Cells with
        reference 0 stay 0 (structural zeros).
    matched : array-like of bool of shape ``poset.shape``
        The set M. The bottom is ignored, because normalisation fixes it.
    poset : Poset or TensorPoset
        Poset of the cells.
    tol : float, default=1e-6
        Tolerance of ``max |eta_q - eta_target|`` over ``matched``.
    max_iter : int, default=100
        Maximum number of Newton steps.

    Returns
    -------
    Projection
        Distributions, residuals, and the route that was used. If no distribution with
        the structural zeros has the required eta, ``residual`` stays above ``tol``.

    Raises
    ------
    ValueError
        If shapes do not fit, or if ``target`` or ``reference`` are not distributions.

    See Also
    --------
    many_body_projection : Project onto the distributions of low order.
    complete : Fill missing cells by a log-linear model of the observed cells.

    Notes
    -----
    ``tol`` bounds the error of eta. The error of theta is about 1e-8 in cells of
    ordinary mass for closed forms and for at most 128 free coordinates. If the masses
    of cells differ by a factor of more than about 1e6, the error of theta in the
    lightest cells grows with ``tol`` and rounding. A general set of more than 2,048
    elements has no well-conditioned basis, and the iteration may not converge; check
    ``converged``.

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
    """Project onto the distributions without interactions above ``order``.

    Solves ``min KL(p, q)`` over the ``q`` with ``theta_q = 0`` on all elements of
    order above ``order``. On the elements of order 1 to ``order``, ``q`` has the eta of
    ``p``.

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Positive distributions.
    poset : Poset or TensorPoset
        Poset of the cells.
    order : int or iterable of tuple of int, default=1
        Largest order ``ell`` of the interactions of the model. For a tensor, a list of
        sets of modes is also accepted.
    tol, max_iter
        See :func:`mixed_projection`.

    Returns
    -------
    Projection
        Distributions and residuals.

    See Also
    --------
    mixed_projection : Compute a distribution with given mixed coordinates.
    order_mask : Compute the mask of all elements up to an order.

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
