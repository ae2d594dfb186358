r"""Information geometry of log-linear models on a finite poset.

No estimators, no warnings, no random numbers, no printing. Everything here is a
function of arrays: NumPy's, or on tensors and their interactions those of any namespace
of the array API standard, such as PyTorch's, which stay on their device. The five parts
say at their top which statement of the paper or the literature each is:

``posets``
    The order between cells, and the zeta transform.
``coordinates``, ``divergences``, ``energies``
    theta and eta, Kullback-Leibler divergence, geodesics, what lies beyond an order.
``many_body``
    Projections in mixed coordinates, on tensors and any poset; missing cells.
``convex``
    Linear constraints, margins, and Newton's method for all of these.
``contingency``
    How well a model fits counts.

Conventions
-----------
Symbols, in the order in which they are used everywhere:

``p, q``
    probabilities (positive arrays); ``p`` comes before ``q`` in a divergence.
``theta``
    natural coordinates, ``log p(x) = sum_{y <= x} theta(y)`` (zeta transform);
    the bottom carries the log-partition, ``theta(bottom) = -psi``.
``eta``
    expectation coordinates, ``eta(x) = sum_{y >= x} p(y)`` (adjoint of zeta);
    ``eta(bottom) = 1``, or the mass of an unnormalised measure.
``psi``
    log-partition function, with ``grad psi = eta`` and ``Hess psi = G``, the
    Fisher information.
``n, D, d, ell``
    rows, cells (elements of the poset), modes of a tensor, order.

Coordinates
    The coordinate system is in a function's name, never in a flag:
    ``theta_from_prob``, ``prob_from_eta``.
Arrays
    have shape ``(..., *poset.shape)``: any number of rows first, then the
    poset. ``poset.shape`` is ``(D,)`` for a general poset and ``(I_1, .., I_d)``
    for a tensor.
Divergence
    ``kl_divergence(p, q) = sum p log(p / q) - sum p + sum q``.
m-projection of p on an e-flat set
    minimises ``KL(p, q)`` over ``q``; it keeps eta of ``p`` where theta is free.
e-projection of r on an m-flat set
    minimises ``KL(q, r)`` over ``q``; it keeps theta of ``r`` where eta is free.
Mixed coordinates
    For a set M of elements other than the bottom there is exactly one ``q``
    with the eta of a *target* on M and the theta of a *reference* off M. It is
    both of the projections above, and the only problem solved here:
    :func:`mixed_projection`.

References
----------
M. Sugiyama, H. Nakahara, K. Tsuda, "Tensor balancing on statistical manifold",
ICML 2017 (log-linear model on a poset, theta, eta, Fisher information).

S. Amari, "Information Geometry and Its Applications", Springer 2016, chapter 2
(dual flatness, mixed coordinates, the Pythagorean theorem).

P. Hu, M. Sugiyama, "Pseudo-nonlinear data augmentation: a constrained energy
minimization viewpoint", ICLR 2026, arXiv:2410.00718 (the method).
"""

from . import contingency, convex, coordinates, divergences, energies, many_body, posets
from .contingency import *
from .convex import *
from .coordinates import *
from .divergences import *
from .energies import *
from .many_body import *
from .posets import *

_PARTS = posets, coordinates, divergences, energies, many_body, convex, contingency

__all__ = sorted(name for part in _PARTS for name in part.__all__)
