r"""Information geometry of log-linear models on a finite poset.

The package contains functions of arrays only: no estimators, no warnings, no random
numbers and no output. Arrays are NumPy arrays. The functions of tensors and their
interactions also accept other namespaces of the array API standard, like PyTorch, and
compute on the device of the array. Each part names the statement of the paper or the
literature that it implements:

``posets``
    The order between cells, and the zeta transform.
``coordinates``, ``divergences``, ``energies``
    Coordinates theta and eta, Kullback-Leibler divergence, geodesics, and the part of
    a divergence that is due to interactions above an order.
``many_body``
    Projections in mixed coordinates on tensors and any poset, and missing cells.
``convex``
    Projections onto linear constraints and onto margins, and Newton's method.
``contingency``
    Goodness of fit of log-linear models of counts.

Conventions
-----------
Symbols:

``p, q``
    Probabilities (positive arrays); ``p`` comes before ``q`` in a divergence.
``theta``
    Natural coordinates, ``log p(x) = sum_{y <= x} theta(y)`` (zeta transform). At the
    bottom theta is minus the log-partition, ``theta(bottom) = -psi``.
``eta``
    Expectation coordinates, ``eta(x) = sum_{y >= x} p(y)`` (adjoint of zeta);
    ``eta(bottom) = 1``, or the mass of an unnormalised measure.
``psi``
    Log-partition function, with ``grad psi = eta`` and ``Hess psi = G``, the
    Fisher information.
``n, D, d, ell``
    Numbers of rows, of cells (elements of the poset), and of modes of a tensor; order.

Coordinates
    The name of a function contains its coordinate system: ``theta_from_prob``,
    ``prob_from_eta``.
Arrays
    An array has shape ``(..., *poset.shape)``: any number of leading axes, then the
    axes of the poset. ``poset.shape`` is ``(D,)`` for a general poset and
    ``(I_1, .., I_d)`` for a tensor.
Divergence
    ``kl_divergence(p, q) = sum p log(p / q) - sum p + sum q``.
m-projection of p onto an e-flat set
    Minimises ``KL(p, q)`` over ``q``; it preserves eta of ``p`` where theta is free.
e-projection of r onto an m-flat set
    Minimises ``KL(q, r)`` over ``q``; it preserves theta of ``r`` where eta is free.
Mixed coordinates
    Let M be a set of elements other than the bottom. There is exactly one ``q`` with
    the eta of a *target* on M and the theta of a *reference* off M. It is both an
    m-projection and an e-projection; :func:`mixed_projection` computes it.

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
