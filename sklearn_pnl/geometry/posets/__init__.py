r"""Finite posets with a bottom: the zeta transform, its inverse and adjoint.

This is section 3.2 of the paper (Hu and Sugiyama, ICLR 2026), whose source is the
log-linear model on a poset of Sugiyama, Nakahara and Tsuda (ICML 2017): for a finite
set with a partial order and an element below all,

.. math:: \log p(x) = \sum_{y \le x} \theta(y), \qquad
          \eta(x) = \sum_{y \ge x} p(y) .

The first sum is the *zeta transform*, its inverse the *Moebius transform*, the second
sum the adjoint of the first (Rota 1964). These four maps are all that the rest of
`geometry` asks of a poset; :class:`PosetProtocol` lists them, and nothing else in the
library asks which class a poset has. Arrays have shape ``(..., *poset.shape)``.

Two classes offer them. :class:`TensorPoset` is the index set of a tensor in the
componentwise order (Example 4.1 of the paper): zeta is a cumulative sum along every
mode, Moebius a first difference, ``O(D d)`` without a matrix. :class:`Poset` is any
other order, by its sparse zeta matrix; :func:`chain_poset`, :func:`tree_poset`,
:func:`boolean_lattice` and :func:`product_poset` make posets of simpler descriptions.

The *order of an element* is the number of atoms (covers of the bottom) below it. For a
tensor that is the number of indices that are not the first, the paper's "ell-body".
:func:`order_mask` gives the elements of order 1 to ell, the base ``M_ell`` of equation
1; :func:`interaction_mask` those of sets of modes and of all subsets of these;
:func:`element_mask` any others.

A partial order on indices knows no invariance under permuting them (Remark 4.2 of the
paper): neighbours in an image are neighbours in the order, and levels of a category
should not be. The bias is explicit, so that the choice of the poset can mend it: modes
of one length for every symmetry wanted, a tree for a hierarchy, a product of both.
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
