"""Any finite poset with a bottom, by its sparse zeta matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import splu

from .elements import as_floats, leading_shape, refuse_foreign
from .protocol import MatrixColumns, PosetProtocol


class Poset(PosetProtocol):
    """Any finite poset with a bottom, stored as a sparse zeta matrix.

    Build it with :meth:`from_relations`. The zeta matrix ``Z[x, y] = 1 if
    y <= x`` is stored sparse; the Moebius transform is a triangular solve with
    it, never an inverse.

    Parameters
    ----------
    below : sparse array of shape (n_elements, n_elements)
        The zeta matrix: reflexive, antisymmetric, transitive. It is checked by
        :meth:`from_relations`, not here.
    added_bottom : bool, default=False
        Whether the bottom, element 0, stands for no feature.

    Attributes
    ----------
    zeta_matrix : csr_array of shape (n_elements, n_elements)
    shape, n_elements, bottom, added_bottom, order, max_order
        See :class:`PosetProtocol`.

    See Also
    --------
    TensorPoset : The componentwise order of a tensor.
    PosetProtocol : What a class of posets has to offer.
    tree_poset : A hierarchy of features.
    product_poset : Pairs of elements of several posets.

    Examples
    --------
    A diamond: 0 below 1 and 2, both below 3.

    >>> from sklearn_pnl.geometry import Poset
    >>> diamond = Poset.from_relations(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> diamond.order
    array([0, 1, 1, 2])
    >>> diamond.zeta([1.0, 1.0, 1.0, 1.0])
    array([1., 2., 2., 4.])
    """

    # Transforms read the zeta matrix once for all rows of a block.
    rows_at_once = 64
    zeta_matrix = None

    def __init__(self, below: Any, *, added_bottom: bool = False) -> None:
        self.added_bottom = added_bottom
        self.zeta_matrix = csr_array(below, dtype=np.float64, copy=True)
        self.zeta_matrix.eliminate_zeros()
        self.n_elements = self.zeta_matrix.shape[0]
        self.shape = (self.n_elements,)
        # A linear extension: an element has more elements below it than any
        # element below it has.
        n_below = np.diff(self.zeta_matrix.indptr)
        self._linear_extension = np.argsort(n_below, kind="stable")
        self.bottom = int(self._linear_extension[0])

    @classmethod
    def from_relations(
        cls, n_elements: int, pairs: ArrayLike, *, add_bottom: bool = False
    ) -> Self:
        """Poset from pairs ``(a, b)`` that say ``a <= b``; closed transitively.

        Parameters
        ----------
        n_elements : int
            Elements are ``0, .., n_elements - 1``.
        pairs : array-like of shape (n_pairs, 2)
            Relations; neither covers only nor closed is required.
        add_bottom : bool, default=False
            Put a new element below all others. It becomes element 0, and the element
            called ``a`` here becomes ``a + 1``.

        Returns
        -------
        Poset

        Raises
        ------
        ValueError
            If an element is out of range, if the relations contain a cycle
            (whose elements are named), or if there is no bottom, an element below all.
        """
        if n_elements < 1:
            raise ValueError(f"A poset needs an element; got n_elements={n_elements}.")
        lower, upper = _checked_pairs(pairs, n_elements).T
        if add_bottom:
            every = np.arange(n_elements)
            lower, upper = np.r_[0 * every, lower + 1], np.r_[every + 1, upper + 1]
            n_elements += 1
        covers = csr_array(
            (np.ones(len(upper), bool), (upper, lower)), shape=(n_elements, n_elements)
        )
        _check_acyclic(covers)
        minimal = np.flatnonzero(np.diff(covers.indptr) == 0)
        if len(minimal) > 1:
            raise ValueError(
                f"The poset has no bottom: {len(minimal)} elements, first "
                f"{minimal[:5].tolist()}, have nothing below them. Pass "
                "add_bottom=True, or relate one element to each of these."
            )
        return cls(_transitive_closure(covers), added_bottom=add_bottom)

    def __repr__(self):
        n, n_relations = self.n_elements, self.zeta_matrix.nnz
        return f"Poset(n_elements={n}, n_relations={n_relations})"

    @cached_property
    # An attribute of the protocol, computed on demand.
    def order(self) -> NDArray:  # type: ignore[override]
        """Number of atoms below each element."""
        is_atom = np.diff(self.zeta_matrix.indptr) == 2
        return (self.zeta_matrix @ is_atom.astype(float)).astype(int)

    def zeta(self, theta: ArrayLike) -> NDArray:
        """Sum of ``theta`` over all elements below each: ``f(x) = sum_{y<=x}``."""
        return self._along_rows(theta, lambda columns: self.zeta_matrix @ columns)

    def moebius(self, f: ArrayLike) -> NDArray:
        """Inverse of :meth:`zeta`, by a sparse triangular solve."""
        return self._along_rows(f, lambda columns: self._solve(columns, "N"))

    def eta(self, p: ArrayLike) -> NDArray:
        """Adjoint of :meth:`zeta`: the sum of ``p`` over all elements above each."""
        return self._along_rows(p, lambda columns: self.zeta_matrix.T @ columns)

    def eta_inverse(self, eta: ArrayLike) -> NDArray:
        """Inverse of :meth:`eta`: from expectation coordinates to cells."""
        return self._along_rows(eta, lambda columns: self._solve(columns, "T"))

    def is_down_set(self, mask: ArrayLike) -> bool:
        """Whether ``mask`` contains all elements below each of its elements."""
        mask = np.asarray(mask, bool)
        return not np.any((self.zeta_matrix @ (~mask).astype(float))[mask])

    def greatest_below(self, elements: NDArray) -> NDArray | None:
        """See :class:`PosetProtocol`: the element with the most elements below it."""
        columns = self.zeta_matrix[:, elements]
        n_below = np.diff(columns.indptr)
        rows = np.repeat(np.arange(self.n_elements), n_below)
        greatest = n_below[elements][columns.indices] == n_below[rows]
        classes = np.full(self.n_elements, -1)
        classes[rows[greatest]] = columns.indices[greatest]
        return classes if np.array_equal(classes >= 0, n_below > 0) else None

    def columns(self, elements: NDArray) -> Any:
        """Columns of the zeta matrix."""
        return MatrixColumns(self.zeta_matrix[:, elements])

    def __getstate__(self):
        # The factor can be neither copied nor pickled; it is computed again on demand.
        return {k: v for k, v in self.__dict__.items() if k != "_triangular"}

    @cached_property
    def _triangular(self):
        """The factor of the zeta matrix, unit lower triangular in the extension."""
        rank = self._linear_extension
        matrix = self.zeta_matrix[rank][:, rank].tocsc()
        return splu(matrix, permc_spec="NATURAL", diag_pivot_thresh=0.0)

    def _solve(self, columns, trans):
        solution = np.empty_like(columns)
        ranked = np.ascontiguousarray(columns[self._linear_extension])
        solution[self._linear_extension] = self._triangular.solve(ranked, trans)
        return solution

    def _along_rows(self, values, operation):
        refuse_foreign(values, "A poset given by its relations")
        values = as_floats(values)
        leading_shape(values, self)
        columns = values.reshape(-1, self.n_elements).T.astype(np.float64)
        rows = np.ascontiguousarray(operation(columns).T, dtype=values.dtype)
        return rows.reshape(values.shape)


def _checked_pairs(pairs, n_elements):
    """Pairs as integers (n_pairs, 2) without reflexive ones; a ValueError if bad."""
    pairs = np.asarray(pairs)
    if pairs.size == 0:
        return np.empty((0, 2), int)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            "Relations must be pairs (a, b) of integers, meaning a <= b; got an array "
            f"of shape {pairs.shape} and type {pairs.dtype}."
        )
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n_elements)).any(axis=1))
    if len(outside):
        raise ValueError(
            f"Relation {outside[0]}, {tuple(pairs[outside[0]].tolist())}, names an "
            f"element out of range: the poset has elements 0 to {n_elements - 1}."
        )
    return pairs[pairs[:, 0] != pairs[:, 1]].astype(int)


def _check_acyclic(covers):
    """A ValueError that names a cycle, if there is one."""
    n_components, component = connected_components(covers, connection="strong")
    if n_components == covers.shape[0]:
        return
    shared = np.bincount(component)[component] > 1
    cycle = np.flatnonzero(component == component[np.argmax(shared)])
    raise ValueError(
        f"The relations contain a cycle through the elements {cycle.tolist()}: remove "
        "one of these relations; in a partial order distinct elements cannot be below "
        "each other."
    )


def _transitive_closure(covers):
    """Zeta matrix from relations, by a graph search from each element."""
    n = covers.shape[0]
    # Converted once to the type that each search needs.
    covers = covers.astype(np.float64)
    below = [
        breadth_first_order(covers, x, return_predecessors=False) for x in range(n)
    ]
    indices, indptr = np.concatenate(below), np.cumsum([0, *map(len, below)])
    closure = csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n))
    closure.sort_indices()
    return closure
