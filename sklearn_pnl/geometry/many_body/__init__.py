r"""Projections in mixed coordinates, the problem that all projections share.

Let M be a set of elements of the poset without the bottom, let the *target* t be a
distribution, and let the *reference* r be a positive distribution. There is exactly one
distribution q with the eta of t on M and the theta of r off M. The pair of eta on M and
theta off M are mixed coordinates of q (Amari 2016, section 2.8). q is

.. math:: q = \arg\min_q KL(q, r) \;\text{ subject to }\; \eta_q = \eta_t
          \text{ on } M,

which is an e-projection onto an m-flat set. At the same time, q minimises the smooth
convex function ``psi(theta) - <theta, eta_t>`` over theta on M. This is an m-projection
of t on an e-flat set (section 3.1 and equation 3 of the paper).
:func:`mixed_projection` computes q. All projections of the method are special cases:

- The forward projection onto ``M_ell`` (equation 1 of the paper) is the many-body
  approximation of Ghalamkari, Sugiyama and Kawahara 2023 (Example A.1 of the paper). M
  contains all elements of order 1 to ell, and the reference is uniform. See
  :func:`many_body_projection`.
- For the backward projection onto ``M*_ell(N)`` (equation 2, Algorithm 1), M contains
  all elements of order above ell. The target is the distribution of the code, and the
  reference is the geometric mean of the neighbours N, so its theta is the mean of their
  theta.
- For the fibre over a code, which is not part of the paper, M is that of the forward
  projection. The target is the distribution of the code, and the reference is the mean
  of the neighbours. The forward projection of the result gives the same code.

The shape of M determines the solver; see ``projections`` for the four routes. Two of
them have a closed form. The other two use Newton's method, with dense Hessians for few
free coordinates, and with conjugate gradients otherwise.

:func:`complete` fits a model to the observed cells of incomplete tensors, and reports
which missing cells are determined (Bishop, Fienberg and Holland 1975, chapter 5). It
solves the same problem with a reference that is zero at the missing cells.
"""

from .closed_forms import Projection
from .completion import Completion, complete
from .projections import many_body_projection, mixed_projection

__all__ = [
    "Completion",
    "Projection",
    "complete",
    "many_body_projection",
    "mixed_projection",
]
