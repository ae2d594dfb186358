"""Any finite poset with a bottom, represented by its sparse zeta matrix."""

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

    Use :meth:`from_relations` to build a poset. The zeta matrix has ``Z[x, y] = 1`` if
    ``y <= x`` and is stored as a sparse array. The Moebius transform is a triangular
    solve with this matrix; the inverse is never formed.

    Parameters
    ----------
    below : sparse array of shape (n_elements, n_elements)
        The zeta matrix, which must be reflexive, antisymmetric and transitive, with an
        element below all elements. For the Hasse diagram or a strict order, use
        :meth:`from_relations`.
    added_bottom : bool, default=False
        Whether the bottom, element 0, represents no feature.
    check : bool, default=True
        Whether to check ``below``. The check multiplies the matrix by itself; use False
        only for a matrix that is known to be a zeta matrix.

    Attributes
    ----------
    zeta_matrix : csr_array of shape (n_elements, n_elements)
        The sparse zeta matrix.
    shape, n_elements, bottom, added_bottom, order, max_order
        See :class:`PosetProtocol`.

    Raises
    ------
    ValueError
        If ``below`` is not the zeta matrix of a partial order with a bottom. The
        message names elements.

    See Also
    --------
    TensorPoset : Index set of a tensor with the componentwise order.
    PosetProtocol : Interface of all posets.
    tree_poset : Build the poset of a hierarchy of features.
    product_poset : Build the product of several posets.

    Examples
    --------
    In a diamond, element 0 is below 1 and 2, and both are below 3:

    >>> from sklearn_pnl.geometry import Poset
    >>> diamond = Poset.from_relations(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> diamond.order
    array([0, 1, 1, 2])
    >>> diamond.zeta([1.0, 1.0, 1.0, 1.0])
    array([1., 2., 2., 4.])
    """

    # Transforms read the zeta matrix once per block, so blocks have at least 64 rows.
    rows_at_once = 64
    zeta_matrix = None

    def __init__(
        self, below: Any, *, added_bottom: bool = False, check: bool = True
    ) -> None:
        self.added_bottom = added_bottom
        self.zeta_matrix = csr_array(below, dtype=np.float64, copy=True)
        self.zeta_matrix.eliminate_zeros()
        if check:
            _check_order(self.zeta_matrix)
        self.n_elements = self.zeta_matrix.shape[0]
        self.shape = (self.n_elements,)
        # Sorting by the number of elements below gives a linear extension, because an
        # element has more elements below it than any of its predecessors has.
        n_below = np.diff(self.zeta_matrix.indptr)
        self._linear_extension = np.argsort(n_below, kind="stable")
        self.bottom = int(self._linear_extension[0])

    @classmethod
    def from_relations(
        cls, n_elements: int, pairs: ArrayLike, *, add_bottom: bool = False
    ) -> Self:
        """Build a poset from pairs ``(a, b)`` that mean ``a <= b``.

        The relations are completed to their transitive closure.

        Parameters
        ----------
        n_elements : int
            Number of elements. The elements are ``0, .., n_elements - 1``.
        pairs : array-like of shape (n_pairs, 2)
            Pairs of elements. Covering relations suffice; more relations are accepted.
        add_bottom : bool, default=False
            Whether to add an element below all elements. The new element becomes
            element 0, and element ``a`` of ``pairs`` becomes ``a + 1``.

        Returns
        -------
        Poset
            The poset of the relations.

        Raises
        ------
        ValueError
            If an element is out of range, if the relations contain a cycle, or if no
            element is below all elements. The message names the elements.
        """
        if n_elements < 1:
            raise ValueError(f"n_elements must be at least 1; got {n_elements}.")
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
                f"{minimal[:5].tolist()}, have no element below them. Pass "
                "add_bottom=True, or add relations that put one element below all "
                "elements."
            )
        closure = _transitive_closure(covers)
        return cls(closure, added_bottom=add_bottom, check=False)

    def __repr__(self):
        n, n_relations = self.n_elements, self.zeta_matrix.nnz
        return f"Poset(n_elements={n}, n_relations={n_relations})"

    @cached_property
    # The protocol declares an attribute; here it is computed at the first access.
    def order(self) -> NDArray:  # type: ignore[override]
        """Number of atoms below each element."""
        is_atom = np.diff(self.zeta_matrix.indptr) == 2
        return (self.zeta_matrix @ is_atom.astype(float)).astype(int)

    def zeta(self, theta: ArrayLike) -> NDArray:
        """Compute ``f(x) = sum_{y <= x} theta(y)`` by the sparse zeta matrix."""
        return self._along_rows(theta, lambda columns: self.zeta_matrix @ columns)

    def moebius(self, f: ArrayLike) -> NDArray:
        """Compute the inverse of :meth:`zeta` by a sparse triangular solve."""
        return self._along_rows(f, lambda columns: self._solve(columns, "N"))

    def eta(self, p: ArrayLike) -> NDArray:
        """Compute the adjoint of :meth:`zeta`, ``eta(x) = sum_{y >= x} p(y)``."""
        return self._along_rows(p, lambda columns: self.zeta_matrix.T @ columns)

    def eta_inverse(self, eta: ArrayLike) -> NDArray:
        """Compute the inverse of :meth:`eta`: expectation coordinates to cells."""
        return self._along_rows(eta, lambda columns: self._solve(columns, "T"))

    def is_down_set(self, mask: ArrayLike) -> bool:
        """Check whether ``mask`` contains all elements below each of its elements."""
        mask = np.asarray(mask, bool)
        return not np.any((self.zeta_matrix @ (~mask).astype(float))[mask])

    def greatest_below(self, elements: NDArray) -> NDArray | None:
        """Return, for each element, the index of the greatest of ``elements`` below it.

        See :class:`PosetProtocol`. An element of ``elements`` is the greatest below
        ``x`` if all of ``elements`` below ``x`` are below it, too.
        """
        columns = self.zeta_matrix[:, elements]
        n_below = np.diff(columns.indptr)
        indices = np.repeat(np.arange(self.n_elements), n_below)
        greatest = n_below[elements][columns.indices] == n_below[indices]
        classes = np.full(self.n_elements, -1)
        classes[indices[greatest]] = columns.indices[greatest]
        return classes if np.array_equal(classes >= 0, n_below > 0) else None

    def columns(self, elements: NDArray) -> Any:
        """Return columns of the zeta matrix as a ``MatrixColumns``."""
        return MatrixColumns(self.zeta_matrix[:, elements])

    def __getstate__(self):
        # The factor cannot be copied or pickled, so it is computed again when needed.
        return {k: v for k, v in self.__dict__.items() if k != "_triangular"}

    @cached_property
    def _triangular(self):
        """LU factor of the zeta matrix, triangular in the linear extension."""
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
    """Validate pairs; return integers (n_pairs, 2) without reflexive pairs."""
    pairs = np.asarray(pairs)
    if pairs.size == 0:
        return np.empty((0, 2), int)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            "pairs must be an array of integers of shape (n_pairs, 2), in which (a, b) "
            f"means a <= b; got an array of shape {pairs.shape} and type {pairs.dtype}."
        )
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n_elements)).any(axis=1))
    if len(outside):
        raise ValueError(
            f"Pair {outside[0]}, {tuple(pairs[outside[0]].tolist())}, has an element "
            f"out of range: the poset has elements 0 to {n_elements - 1}. Remove the "
            "pair, or increase n_elements."
        )
    return pairs[pairs[:, 0] != pairs[:, 1]].astype(int)


def _check_acyclic(covers):
    """Raise a ValueError that names the elements of a cycle, if there is a cycle."""
    n_components, component = connected_components(covers, connection="strong")
    if n_components == covers.shape[0]:
        return
    shared = np.bincount(component)[component] > 1
    cycle = np.flatnonzero(component == component[np.argmax(shared)])
    raise ValueError(
        f"The relations contain a cycle of the elements {cycle.tolist()}. In a partial "
        "order, two distinct elements cannot be below each other. Remove a relation "
        "between two of the elements."
    )


def _check_order(below):
    """Raise a ValueError if a matrix is not the zeta matrix of an order with a bottom.

    The matrix must be square, reflexive, antisymmetric and transitive, and contain only
    0 and 1.
    """
    n = below.shape[0]
    if below.shape != (n, n) or n < 1 or not (below.data == 1).all():
        raise ValueError(
            "below must be a square matrix with entries 0 and 1; got shape "
            f"{below.shape} and the entries {np.unique(below.data)[:5].tolist()}."
        )
    advice = "Pass pairs of elements to Poset.from_relations, which completes them."
    missing = np.flatnonzero(below.diagonal() == 0)
    if len(missing):
        raise ValueError(
            "below must be reflexive, because each element is below itself; entry "
            f"({missing[0]}, {missing[0]}) is 0. {advice}"
        )
    _check_acyclic(below)
    # A relation between two elements that follows from a third element.
    implied = below @ below
    upper, lower = (implied - implied.multiply(below)).nonzero()
    if len(upper):
        raise ValueError(
            f"below must be transitive; element {lower[0]} is below an element that is "
            f"below element {upper[0]}, but entry ({upper[0]}, {lower[0]}) is 0. "
            f"{advice}"
        )
    n_minimal = np.count_nonzero(np.diff(below.indptr) == 1)
    if n_minimal > 1:
        raise ValueError(
            f"below must have a bottom; {n_minimal} elements have no element below "
            f"them. {advice}"
        )


def _transitive_closure(covers):
    """Compute the zeta matrix from relations, by a graph search from each element."""
    n = covers.shape[0]
    # Each search needs float64; one conversion saves a conversion per search.
    covers = covers.astype(np.float64)
    # A search returns a view of an array with one entry for every element of the poset.
    below = [
        breadth_first_order(covers, x, return_predecessors=False).copy()
        for x in range(n)
    ]
    indices, indptr = np.concatenate(below), np.cumsum([0, *map(len, below)])
    closure = csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n))
    closure.sort_indices()
    return closure
