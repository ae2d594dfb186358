r"""Finite posets with a bottom element: the zeta transform, its inverse and adjoint.

The module implements section 3.2 of the paper (Hu and Sugiyama, ICLR 2026), which uses
the log-linear model on a poset of Sugiyama, Nakahara and Tsuda (ICML 2017). For a
finite partially ordered set with a least element, called the bottom,

.. math:: \log p(x) = \sum_{y \le x} \theta(y), \qquad
          \eta(x) = \sum_{y \ge x} p(y) .

The first sum is the *zeta transform*, and its inverse is the *Moebius transform*. The
second sum is the adjoint of the zeta transform (Rota 1964). The rest of the package
uses a poset only through the methods of :class:`PosetProtocol`. Arrays have shape
``(..., *poset.shape)``.

:class:`TensorPoset` is the index set of a tensor with the componentwise order (Example
4.1 of the paper). Its zeta transform is a cumulative sum along every mode, and its
Moebius transform is a first difference along every mode. Both cost ``O(D d)`` and need
no matrix. :class:`Poset` represents any other order by a sparse zeta matrix.
:func:`chain_poset`, :func:`tree_poset`, :func:`boolean_lattice` and
:func:`product_poset` build posets from simpler descriptions.

The *order of an element* is the number of atoms (covers of the bottom) below it. For a
tensor it is the number of indices that are not the first, which the paper calls
"ell-body". :func:`order_mask` returns the elements of order 1 to ell, the base
``M_ell`` of equation 1. :func:`interaction_mask` returns the elements of given sets of
modes, and :func:`element_mask` returns any given elements.

A partial order on indices is not invariant under permutations of the indices (Remark
4.2 of the paper). This is appropriate for images, in which neighbouring indices are
neighbours, but the levels of a category have no natural order. Users remove the bias by
choosing another poset, for example a tree for a hierarchy, or a product of posets.
"""

from .constructions import boolean_lattice, chain_poset, product_poset, tree_poset
from .general import Poset
from .interactions import interaction_mask
from .protocol import PosetProtocol, element_mask, order_mask
from .tensor import TensorPoset

__all__ = [
    "Poset",
    "PosetProtocol",
    "TensorPoset",
    "boolean_lattice",
    "chain_poset",
    "element_mask",
    "interaction_mask",
    "order_mask",
    "product_poset",
    "tree_poset",
]
