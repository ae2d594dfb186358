r"""Projections in mixed coordinates: the one theorem that the method rests on.

Let M be a set of elements of the poset without the bottom, t a distribution, the
*target*, and r a positive one, the *reference*. There is exactly one distribution q
with the eta of t on M and the theta of r off M (Amari 2016, section 2.8: mixed
coordinates of a dually flat space). It is

.. math:: q = \arg\min_q KL(q, r) \;\text{ subject to }\; \eta_q = \eta_t
          \text{ on } M,

an e-projection on an m-flat set, and at the same time the minimum over theta on M of
the smooth convex function ``psi(theta) - <theta, eta_t>``, an m-projection of t on an
e-flat set (section 3.1 and equation 3 of the paper). :func:`mixed_projection` finds it.
Each projection of the method is a case of it:

- forward, on ``M_ell`` (equation 1 of the paper; many-body approximation of
  Ghalamkari, Sugiyama and Kawahara 2023, Example A.1 of the paper): M is all elements
  of order 1 to ell, the reference uniform. :func:`many_body_projection`.
- backward, on ``M*_ell(N)`` (equation 2, Algorithm 1): M is all elements of order above
  ell, the target is the code's distribution, the reference the geometric mean of the
  neighbours N, whose theta is the mean of theirs.
- the fibre over a code, which the paper does not have: M as forward, the target is the
  code's distribution, the reference the mean of the neighbours. Encoding what it gives
  gives the code back.

The shape of M decides how it is solved. If M is an up-set, eta on it fixes the cells of
it (Moebius inversion within M), and the rest is the reference, rescaled: closed form.
If each cell has a greatest element of M below it (chains, trees) cells fall into
classes, and the reference is rescaled class by class: closed form. If M is a family of
interactions of a tensor, q is the reference tilted by functions of few modes, found by
Newton's method in an orthonormal basis of them (Kronecker products of Helmert
matrices), after a few sweeps of iterative proportional fitting.
For any other M the zeta columns of M, made orthonormal, take the place of that basis.
Few free coordinates make dense Newton worth while; else conjugate gradients, with no
matrix of the size of M for any row.

With cells missing, the same problem with a reference that is zero there fits the
observed ones, and the model has the others: :func:`complete`, which says which of them
are determined (Bishop, Fienberg and Holland 1975, chapter 5).
"""

from .completion import Completion, complete
from .projections import many_body_projection, mixed_projection
from .solvers import Projection

__all__ = [
    "Completion",
    "Projection",
    "complete",
    "many_body_projection",
    "mixed_projection",
]
