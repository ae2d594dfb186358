"""Functions that build posets: chains, trees, Boolean lattices and products."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, kron

from .general import Poset
from .protocol import PosetProtocol
from .tensor import TensorPoset


def chain_poset(n_elements: int) -> TensorPoset:
    """Build a chain, the poset of ordered features like time or frequency.

    Element ``x`` lies above the elements ``0`` to ``x - 1``.

    Parameters
    ----------
    n_elements : int
        Number of elements.

    Returns
    -------
    TensorPoset
        Poset with one mode. Its transforms are cumulative sums and differences.

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
    """Build a tree, in which each feature is above its parent and all its ancestors.

    Parameters
    ----------
    parents : array-like of int of shape (n_elements,)
        ``parents[x]`` is the element directly below ``x``, or -1 if ``x`` is a root.
    add_bottom : bool, default=False
        Whether to add an element below all roots. It is required if there are several
        roots. The new element becomes element 0, and element ``x`` becomes ``x + 1``.

    Returns
    -------
    Poset
        The order of the tree.

    Raises
    ------
    ValueError
        If ``parents`` contains a cycle, an index out of range, or several roots without
        ``add_bottom=True``.

    See Also
    --------
    Poset : Any partial order with a bottom.
    chain_poset : Ordered features.

    Examples
    --------
    A total (0), its two parts (1 and 2), and two parts of part 1 (3 and 4):

    >>> from sklearn_pnl.geometry import tree_poset
    >>> tree_poset([-1, 0, 0, 1, 1]).order
    array([0, 1, 1, 1, 1])
    """
    parents = np.asarray(parents)
    fits = parents.ndim == 1 and parents.size and parents.dtype.kind in "iu"
    if not fits or parents.min() < -1 or (parents == np.arange(len(parents))).any():
        raise ValueError(
            "parents must be one-dimensional and give, for each element, the index of "
            f"another element, or -1 for a root; got {parents!r}."
        )
    children = np.flatnonzero(parents >= 0)
    pairs = np.column_stack([parents[children], children])
    return Poset.from_relations(len(parents), pairs, add_bottom=add_bottom)


def boolean_lattice(n_atoms: int) -> Poset:
    """Build the poset of all subsets of ``n_atoms`` items, ordered by inclusion.

    Element ``x`` is the subset of the items whose bits are set in the integer ``x``.

    Parameters
    ----------
    n_atoms : int
        Number of items. For more than about 14 items use
        ``TensorPoset((2,) * n_atoms)``, which is the same order and does not store its
        ``3 ** n_atoms`` relations.

    Returns
    -------
    Poset
        Poset of ``2 ** n_atoms`` elements. The order of an element is the size of its
        subset.

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
    """Build the product of posets: tuples of elements with the componentwise order.

    Parameters
    ----------
    *posets : PosetProtocol
        The factors. The last index runs fastest, as in ``numpy.ravel``.

    Returns
    -------
    Poset
        Poset whose number of elements is the product of the numbers of the factors.

    Raises
    ------
    ValueError
        If there is no factor, or if a factor has an added bottom.

    See Also
    --------
    chain_poset : Ordered features.
    boolean_lattice : Subsets by inclusion.
    TensorPoset : The componentwise order of a tensor.

    Examples
    --------
    The index set of a tensor is a product of chains:

    >>> from sklearn_pnl.geometry import chain_poset, product_poset
    >>> product_poset(chain_poset(2), chain_poset(3)).order
    array([0, 1, 1, 1, 2, 2])
    """
    if not posets or any(poset.added_bottom for poset in posets):
        raise ValueError(
            "product_poset requires at least one poset, and no poset with an added "
            f"bottom; got {posets!r}. For a product with an added bottom, pass the "
            "relations of the product to Poset.from_relations with add_bottom=True."
        )
    # The default format of `kron` stores the zeros of dense factors.
    product = partial(kron, format="csr")
    below = reduce(product, (csr_array(poset.zeta_matrix) for poset in posets))
    return Poset(below, check=False)
