"""Posets from simpler descriptions: chains, trees, Boolean lattices and products."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import kron

from .general import Poset
from .protocol import PosetProtocol
from .tensor import TensorPoset


def chain_poset(n_elements: int) -> TensorPoset:
    """Chain of ordered features, such as time or frequency.

    Element ``x`` lies above the elements ``0`` to ``x - 1``.

    Parameters
    ----------
    n_elements : int

    Returns
    -------
    TensorPoset
        Of one mode, whose transforms are sums and differences: no matrix.

    See Also
    --------
    TensorPoset : The componentwise order of a tensor.
    product_poset : Pairs of elements of several posets.
    tree_poset : A hierarchy of features.

    Examples
    --------
    >>> from sklearn_pnl.geometry import chain_poset
    >>> chain_poset(3).zeta([1.0, 1.0, 1.0])
    array([1., 2., 3.])
    """
    return TensorPoset((n_elements,))


def tree_poset(parents: ArrayLike, *, add_bottom: bool = False) -> Poset:
    """Hierarchy of features: each is above its parent and all ancestors.

    Parameters
    ----------
    parents : array-like of int of shape (n_elements,)
        ``parents[x]`` is the element directly below ``x``; -1 for a root.
    add_bottom : bool, default=False
        Put a new element below all roots; needed if there are several. It becomes
        element 0, and element ``x`` becomes ``x + 1``.

    Returns
    -------
    Poset

    See Also
    --------
    Poset : Any partial order with a bottom.
    chain_poset : Ordered features.

    Examples
    --------
    A total, two parts of it, and two parts of the first part.

    >>> from sklearn_pnl.geometry import tree_poset
    >>> tree_poset([-1, 0, 0, 1, 1]).order
    array([0, 1, 1, 1, 1])
    """
    parents = np.asarray(parents)
    fits = parents.ndim == 1 and parents.size and parents.dtype.kind in "iu"
    if not fits or parents.min() < -1 or (parents == np.arange(len(parents))).any():
        raise ValueError(
            "parents must list one other element for each element, or -1 for a root; "
            f"got {parents!r}."
        )
    children = np.flatnonzero(parents >= 0)
    pairs = np.column_stack([parents[children], children])
    return Poset.from_relations(len(parents), pairs, add_bottom=add_bottom)


def boolean_lattice(n_atoms: int) -> Poset:
    """Subsets of ``n_atoms`` items by inclusion; element ``x`` has the bits of ``x``.

    Parameters
    ----------
    n_atoms : int

    Returns
    -------
    Poset
        With ``2 ** n_atoms`` elements; ``order`` is the size of the subset. Of more
        than 14 atoms ``TensorPoset((2,) * n_atoms)`` is the same order, without its
        ``3 ** n_atoms`` relations.

    See Also
    --------
    product_poset : Pairs of elements of several posets.
    TensorPoset : The componentwise order of a tensor.

    Examples
    --------
    >>> from sklearn_pnl.geometry import boolean_lattice
    >>> boolean_lattice(2).order
    array([0, 1, 1, 2])
    """
    return product_poset(*[chain_poset(2)] * n_atoms)


def product_poset(*posets: PosetProtocol) -> Poset:
    """Pairs (or tuples) of elements with the componentwise order.

    Parameters
    ----------
    *posets : PosetProtocol
        The factors. The last index runs fastest, as in ``numpy.ravel``.

    Returns
    -------
    Poset

    See Also
    --------
    chain_poset : Ordered features.
    boolean_lattice : Subsets by inclusion.
    TensorPoset : The componentwise order of a tensor.

    Examples
    --------
    A tensor is a product of chains.

    >>> from sklearn_pnl.geometry import chain_poset, product_poset
    >>> product_poset(chain_poset(2), chain_poset(3)).order
    array([0, 1, 1, 1, 2, 2])
    """
    if not posets or any(poset.added_bottom for poset in posets):
        raise ValueError(
            "A product needs at least one poset, and none with an added bottom, which "
            "stands for no feature: build the product first and the bottom last."
        )
    return Poset(reduce(kron, (poset.zeta_matrix for poset in posets)))
