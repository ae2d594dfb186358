"""Finite posets with a bottom: the zeta transform, its inverse and adjoint.

What a poset offers is listed by :class:`PosetProtocol`; nothing else in the library
asks which class it has. Arrays have shape ``(..., *poset.shape)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, reduce
from math import prod
from numbers import Integral
from operator import index
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, kron, vstack
from scipy.sparse.linalg import splu

from .._runtime.workspace import empty, take, zeros
from .interactions import (
    Interactions,
    cell_orders,
    family_from_mask,
    interaction_mask,
    is_down_set,
)
from .relations import check_acyclic, check_pairs, transitive_closure

# Up to this length a mode is summed slice by slice (one contiguous addition a
# level, over all rows); beyond it `cumsum` wins.
_SLICEWISE = 16
# Zeta columns of up to so many elements are applied as one dense matrix, of at most
# this size.
_FEW_ELEMENTS, _LARGEST_COLUMNS = 64, 2**20
# Most additions by which the inverse of a zeta matrix is found.
_MOST_TERMS = 2**31


class PosetProtocol(ABC):
    """What a poset offers; the one thing that a new class of posets touches.

    A class of your own that inherits from this one supplies the attributes, the four
    transforms and :meth:`is_down_set`. The other methods have defaults, made of these;
    they may be replaced by faster ones.

    Attributes
    ----------
    shape : tuple of int
        Of an array with one entry an element.
    n_elements : int
    bottom : int
        Flat index of the element below all.
    order : ndarray of int of shape ``shape``
        Number of atoms (covers of the bottom) below each element.
    added_bottom : bool, default=False
        Whether the bottom, then element 0, stands for no feature. Estimators then take
        rows with one cell fewer: element ``x`` is feature ``x - 1``, and the bottom
        holds the mean of the row.
    max_order : int
        Largest order that occurs.
    rows_at_once : int, default=1
        Rows that a block should have at least: many, where the transforms read large
        matrices that the rows share.

    See Also
    --------
    Poset : Any partial order with a bottom.
    TensorPoset : The componentwise order of a tensor.
    """

    shape: tuple
    n_elements: int
    bottom: int
    order: np.ndarray
    added_bottom: bool = False
    rows_at_once: int = 1

    @abstractmethod
    def zeta(self, theta: ArrayLike) -> NDArray:
        """Sum of ``theta`` over all elements below each: ``f(x) = sum_{y<=x}``."""

    @abstractmethod
    def moebius(self, f: ArrayLike) -> NDArray:
        """Inverse of :meth:`zeta`."""

    @abstractmethod
    def eta(self, p: ArrayLike) -> NDArray:
        """Adjoint of :meth:`zeta`: the sum of ``p`` over all elements above each."""

    @abstractmethod
    def eta_inverse(self, eta: ArrayLike) -> NDArray:
        """Inverse of :meth:`eta`: from expectation coordinates to cells."""

    @abstractmethod
    def is_down_set(self, mask: ArrayLike) -> bool:
        """Whether ``mask`` contains all elements below each of its elements."""

    def is_up_set(self, mask: ArrayLike) -> bool:
        """Whether ``mask`` contains all elements above each of its elements."""
        return self.is_down_set(~np.asarray(mask, bool))

    @property
    def max_order(self) -> int:
        """Largest order that occurs."""
        return int(self.order.max())

    def order_mask(self, order: ArrayLike) -> NDArray:
        """Elements of order 1 to ``order``."""
        if not isinstance(order, Integral):
            raise ValueError(
                "Interactions between modes are defined for a tensor; give an integer "
                f"order for {self!r}."
            )
        if not 1 <= order <= max(1, self.max_order):
            raise ValueError(
                f"order={order} is outside 1 to {self.max_order}, the largest order in "
                f"{self!r}."
            )
        return (self.order >= 1) & (self.order <= order)

    def level_mask(self, level: ArrayLike) -> NDArray:
        """Free elements of a level: an order, 0 for none, a mask, or a list of them."""
        if not isinstance(level, Integral):
            return element_mask(self, level)
        return self.order_mask(level) if level else np.zeros(self.shape, bool)

    def family(self, mask: ArrayLike) -> int | list[tuple[int, ...]] | None:
        """Interactions of a tensor that ``mask`` keeps, or None: it is no such set.

        An order or the maximal sets of modes. Only for elements that are the cells of
        a tensor of shape ``shape`` in the componentwise order.
        """
        return None

    def down_closure(self, elements: NDArray) -> tuple[PosetProtocol, Any]:
        """Poset of elements that contains all below those given, and their indices.

        theta of these depends on probabilities of these alone. The whole will do.
        """
        return self, slice(None)

    def greatest_below(self, elements: NDArray) -> NDArray | None:
        """Number among ``elements`` of the greatest of them below each element, flat.

        -1 where none is below. None if somewhere there is no greatest one, or if to
        find out would cost too much.
        """
        return None

    def moebius_rows(self, elements: NDArray) -> Any:
        """Rows of the inverse zeta matrix, sparse; None if that would cost too much."""
        n_terms = max(self.columns(elements).n_terms, 8 * self.n_elements)
        if len(elements) * n_terms > _MOST_TERMS:
            return None
        blocks = []
        for block in np.array_split(elements, len(elements) // 256 + 1):
            units = np.zeros((len(block), self.n_elements))
            units[np.arange(len(block)), block] = 1
            rows = self.eta_inverse(units.reshape(-1, *self.shape))
            # Integers; rounding would be as many entries again.
            blocks.append(csr_array(np.rint(rows.reshape(len(block), -1))))
        return vstack(blocks)

    def columns(self, elements: NDArray) -> Any:
        """Columns of the zeta matrix, to be applied to rows: a ``ZetaColumns``."""
        return ZetaColumns(self, elements)

    def fisher_gram(self, p: NDArray, elements: NDArray) -> NDArray:
        """``sum_{z >= x, z >= y} p(z)`` for all pairs of ``elements`` (flat)."""
        p = np.asarray(p)
        rows = p.reshape(-1, self.n_elements)
        above = self.columns(elements).synthesis(np.eye(len(elements)))
        grams = [(above * q) @ above.T for q in rows]
        lead = p.shape[: p.ndim - len(self.shape)]
        return np.reshape(grams, (*lead, len(elements), len(elements)))

    @property
    def zeta_matrix(self) -> Any:
        """The sparse matrix of :meth:`zeta` on flat arrays."""
        every = np.arange(self.n_elements)
        return csr_array(self.columns(every).synthesis(np.eye(self.n_elements)).T)


class ZetaColumns:
    """Columns of a zeta matrix by its transforms.

    Rows are flat. ``n_terms`` is the number of terms summed for a row.
    """

    def __init__(self, poset, elements):
        self._poset, self._elements = poset, elements
        self.n_terms = poset.n_elements * len(poset.shape)

    def synthesis(self, v):
        """Zeta of theta on the elements alone: rows (n, D)."""
        theta = zeros((len(v), self._poset.n_elements), np.float64)
        theta[:, self._elements] = v
        values = self._poset.zeta(theta.reshape(-1, *self._poset.shape))
        return values.reshape(theta.shape)

    def analysis(self, x):
        """Transpose of :meth:`synthesis`: eta on the elements, rows (n, m)."""
        eta = self._poset.eta(x.reshape(-1, *self._poset.shape))
        return take(eta.reshape(len(x), -1), self._elements, axis=1)


class MatrixColumns:
    """Columns of a zeta matrix as one (D, m), dense or sparse; as ``ZetaColumns``."""

    def __init__(self, matrix):
        self._matrix = matrix
        self.n_terms = matrix.nnz if issparse(matrix) else matrix.size

    def synthesis(self, v):
        """As of ``ZetaColumns``."""
        return np.ascontiguousarray(v @ self._matrix.T)

    def analysis(self, x):
        """As of ``ZetaColumns``."""
        return x @ self._matrix


class TensorPoset(PosetProtocol):
    """Index set of a tensor with the componentwise order.

    ``x <= y`` if ``x_k <= y_k`` in every mode. The bottom is ``(0, .., 0)``, the
    order of an element is the number of its non-zero indices, and the zeta
    transform is a cumulative sum along every mode: O(D d), no matrix.

    Parameters
    ----------
    shape : tuple of int
        Lengths ``(I_1, .., I_d)`` of the modes.

    Attributes
    ----------
    n_modes : int
        ``d``.
    order : ndarray of int of shape ``shape``
        Number of non-zero indices of each cell ("ell-body" order).
    shape, n_elements, bottom, max_order
        See :class:`PosetProtocol`; ``n_elements`` is ``D``, the number of cells.

    See Also
    --------
    Poset : Any partial order with a bottom.
    chain_poset : Ordered features.
    order_mask : Elements up to an order.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset
    >>> poset = TensorPoset((2, 3))
    >>> poset.order
    array([[0, 1, 1],
           [1, 2, 2]])
    >>> poset.zeta(np.ones((2, 3)))
    array([[1., 2., 3.],
           [2., 4., 6.]])
    """

    def __init__(self, shape: Sequence[int]) -> None:
        try:
            shape = tuple(index(length) for length in np.atleast_1d(shape))
        except TypeError as error:
            raise ValueError(
                f"A tensor's shape must be integers; got {shape!r}."
            ) from error
        if not shape or min(shape) < 1:
            raise ValueError(
                f"A tensor needs at least one mode, each of length 1 or more; got "
                f"shape {shape}."
            )
        self.shape = shape
        self.n_elements = prod(shape)
        self.n_modes = len(shape)
        self.bottom = 0

    def __repr__(self):
        return f"TensorPoset({self.shape})"

    def __eq__(self, other):
        return isinstance(other, TensorPoset) and self.shape == other.shape

    def __hash__(self):
        return hash(self.shape)

    @cached_property
    # An attribute of the protocol, worked out when asked for.
    def order(self) -> NDArray:  # type: ignore[override]
        """Number of non-zero indices of each cell."""
        return cell_orders(self.shape)

    def zeta(self, theta: ArrayLike) -> NDArray:
        """Sum of ``theta`` over all elements below each: ``f(x) = sum_{y<=x}``."""
        return self._along_modes(theta, _cumulate)

    def moebius(self, f: ArrayLike) -> NDArray:
        """Inverse of :meth:`zeta`: the first difference along every mode."""
        return self._along_modes(f, _difference)

    def eta(self, p: ArrayLike) -> NDArray:
        """Adjoint of :meth:`zeta`: the sum of ``p`` over all elements above each."""
        return self._along_modes(p, _cumulate, reverse=True)

    def eta_inverse(self, eta: ArrayLike) -> NDArray:
        """Inverse of :meth:`eta`: from expectation coordinates to cells."""
        return self._along_modes(eta, _difference, reverse=True)

    def is_down_set(self, mask: ArrayLike) -> bool:
        """Whether ``mask`` contains all elements below each of its elements."""
        return is_down_set(mask)

    def order_mask(self, order: ArrayLike) -> NDArray:
        """Cells of the interactions of at most ``order`` modes, or of those listed."""
        return interaction_mask(self.shape, order)

    def level_mask(self, level: ArrayLike) -> NDArray:
        """As for any poset, but what is listed are the sets of modes kept."""
        if isinstance(level, np.ndarray | Integral):
            return super().level_mask(level)
        return self.order_mask(level)

    def greatest_below(self, elements: NDArray) -> NDArray | None:
        """In a tensor of one mode the last one before each; else None."""
        if max(self.shape) < self.n_elements:
            return None
        return np.searchsorted(elements, np.arange(self.n_elements), side="right") - 1

    def moebius_rows(self, elements: NDArray) -> Any:
        """Rows of a product of first differences, ``2^d`` entries each at most."""
        if 2**self.max_order * self.n_elements > _MOST_TERMS // 256:
            return None
        differences = (
            csr_array(np.eye(length) - np.eye(length, k=-1)) for length in self.shape
        )
        return reduce(kron, differences).tocsr()[elements]

    def family(self, mask: ArrayLike) -> int | list[tuple[int, ...]] | None:
        """Interactions whose cells are those of ``mask``, or None."""
        return family_from_mask(mask)

    @property
    def zeta_matrix(self) -> Any:
        """The sparse matrix of :meth:`zeta` on flat arrays."""
        return reduce(kron, (csr_array(np.tri(length)) for length in self.shape))

    def fisher_gram(self, p: NDArray, elements: NDArray) -> NDArray:
        """``sum_{z >= x, z >= y} p(z)`` for all pairs of ``elements`` (flat).

        Two cells of a tensor have a least cell above both, the elementwise
        maximum, so this is ``eta`` read there.
        """
        cells = np.unravel_index(elements, self.shape)
        joins = tuple(np.maximum(c[:, None], c) for c in cells)
        eta = self.eta(p).reshape(*p.shape[: p.ndim - self.n_modes], -1)
        return eta[..., np.ravel_multi_index(joins, self.shape)]

    def _along_modes(self, values, operation, reverse=False):
        given = np.asarray(values)
        values = empty(given.shape, float_type(given))
        values[...] = given
        outer, inner = prod(leading_shape(values, self)), self.n_elements
        flat = values.reshape(-1)
        for length in self.shape:
            inner //= length
            mode = flat.reshape(outer, length, inner)
            if length > 1:
                operation(mode[:, ::-1] if reverse else mode)
            outer *= length
        return values


def zeta_columns(poset, elements):
    """Columns of the zeta matrix, dense if few: faster then than cumulative sums."""
    m, columns = len(elements), poset.columns(elements)
    if m > _FEW_ELEMENTS or m * poset.n_elements > _LARGEST_COLUMNS:
        return columns
    return MatrixColumns(np.ascontiguousarray(columns.synthesis(np.eye(m)).T))


class Poset(PosetProtocol):
    """Any finite poset with a bottom, held as a sparse zeta matrix.

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

    # The rows of a block share the zeta matrix, which is read once for all of them.
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
            (which is named), or if there is no bottom, an element below all.
        """
        n_elements = index(n_elements)
        if n_elements < 1:
            raise ValueError(f"A poset needs an element; got n_elements={n_elements}.")
        pairs = check_pairs(pairs, n_elements)
        if add_bottom:
            every = np.arange(1, n_elements + 1)
            pairs = np.vstack([pairs + 1, np.column_stack([0 * every, every])])
            n_elements += 1
        upper, lower = pairs[:, 1], pairs[:, 0]
        covers = csr_array(
            (np.ones(len(pairs), bool), (upper, lower)), shape=(n_elements, n_elements)
        )
        covers.sum_duplicates()
        check_acyclic(covers)
        minimal = np.flatnonzero(np.diff(covers.indptr) == 0)
        if len(minimal) > 1:
            more = ", .." if len(minimal) > 5 else ""
            shown = ", ".join(map(str, minimal[:5])) + more
            raise ValueError(
                f"The poset has no bottom: {len(minimal)} elements ({shown}) have "
                "nothing below them. Pass add_bottom=True, or relate one element to "
                "each of these."
            )
        return cls(transitive_closure(covers), added_bottom=add_bottom)

    def __repr__(self):
        return (
            f"Poset(n_elements={self.n_elements}, n_relations={self.zeta_matrix.nnz})"
        )

    @cached_property
    def atoms(self) -> NDArray:
        """Indices of the atoms: elements with only the bottom below them."""
        return np.flatnonzero(np.diff(self.zeta_matrix.indptr) == 2)

    @cached_property
    # An attribute of the protocol, worked out when asked for.
    def order(self) -> NDArray:  # type: ignore[override]
        """Number of atoms below each element."""
        indicator = np.zeros(self.n_elements)
        indicator[self.atoms] = 1
        return (self.zeta_matrix @ indicator).astype(int)

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

    def down_closure(self, elements: NDArray) -> tuple[PosetProtocol, Any]:
        """Sub-poset of all elements below those given, and their indices here.

        theta of these depends on probabilities of these alone.
        """
        touched = np.zeros(self.n_elements)
        touched[elements] = 1
        closure = np.flatnonzero(self.zeta_matrix.T @ touched)
        return Poset(self.zeta_matrix[closure][:, closure]), closure

    def fisher_gram(self, p: NDArray, elements: NDArray) -> NDArray:
        """``sum_{z >= x, z >= y} p(z)`` for all pairs of ``elements``."""
        columns = self.zeta_matrix[:, elements].tocsc()
        rows = np.reshape(p, (-1, self.n_elements))
        grams = [(columns.T @ (columns * q[:, None])).toarray() for q in rows]
        return np.reshape(grams, (*p.shape[:-1], len(elements), len(elements)))

    def greatest_below(self, elements: NDArray) -> NDArray | None:
        """The one with the most of them below it, if these are all there are."""
        columns = self.zeta_matrix[:, elements]
        n_below = np.diff(columns.indptr)
        rows = np.repeat(np.arange(self.n_elements), n_below)
        greatest = n_below[elements][columns.indices] == n_below[rows]
        found = np.full(self.n_elements, -1)
        found[rows[greatest]] = columns.indices[greatest]
        return found if np.array_equal(found >= 0, n_below > 0) else None

    def columns(self, elements: NDArray) -> Any:
        """Columns of the zeta matrix."""
        return MatrixColumns(self.zeta_matrix[:, elements])

    def __getstate__(self):
        # The factor can be neither copied nor pickled; it is found again when needed.
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
        values = np.asarray(values)
        leading_shape(values, self)
        dtype = float_type(values)
        columns = values.reshape(-1, self.n_elements).T.astype(np.float64)
        return np.ascontiguousarray(operation(columns).T, dtype=dtype).reshape(
            values.shape
        )


def order_mask(poset: PosetProtocol, order: Interactions) -> NDArray:
    """Elements of order 1 to ``order``: the base of the ell-body approximation.

    Parameters
    ----------
    poset : Poset or TensorPoset
    order : int or iterable of tuple of int
        ``ell``, or for a tensor the mode sets kept.

    Returns
    -------
    mask : ndarray of bool of shape ``poset.shape``

    See Also
    --------
    interaction_mask : Elements of some interactions.
    element_mask : Elements given one by one.
    many_body_projection : On distributions of low order.

    Examples
    --------
    >>> from sklearn_pnl.geometry import Poset, order_mask
    >>> diamond = Poset.from_relations(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> order_mask(diamond, 1)
    array([False,  True,  True, False])
    """
    return poset.order_mask(order)


def element_mask(poset: PosetProtocol, elements: ArrayLike) -> NDArray:
    """Elements given as a mask or listed, as a mask without the bottom.

    Parameters
    ----------
    poset : Poset or TensorPoset
    elements : array-like
        A boolean mask of shape ``poset.shape``, or flat; a list of flat indices; or
        for a tensor a list of tuples of indices, one a mode.

    Returns
    -------
    mask : ndarray of bool of shape ``poset.shape``

    Raises
    ------
    ValueError
        If the shape does not fit, if an element is out of range or named twice, or if
        nothing is left without the bottom: such a base pins everything.

    See Also
    --------
    order_mask : Elements up to an order.
    interaction_mask : Elements of some interactions.

    Examples
    --------
    >>> from sklearn_pnl.geometry import TensorPoset, element_mask
    >>> element_mask(TensorPoset((2, 3)), [(0, 1), (1, 2)]).astype(int)
    array([[0, 1, 0],
           [0, 0, 1]])
    """
    mask, flat = np.zeros(poset.n_elements, bool), flat_elements(poset, elements)
    mask[flat] = True
    if mask.sum() < len(flat):
        raise ValueError(
            f"Some of the {len(flat)} elements are named twice. A mask is of Booleans, "
            "np.asarray(mask, bool): integers are places."
        )
    mask[poset.bottom] = False
    if not mask.any():
        raise ValueError(
            "The base has no element besides the bottom: it pins everything, and every "
            "row would get the same code. Free at least one element."
        )
    return mask.reshape(poset.shape)


def flat_elements(poset, elements):
    """Flat indices of elements given as a mask or listed, as they are ordered."""
    given = np.asarray(elements)
    if given.dtype == bool:
        if given.shape not in (poset.shape, (poset.n_elements,)):
            raise ValueError(
                f"A mask of elements must have shape {poset.shape} for {poset!r}; got "
                f"{given.shape}."
            )
        return np.flatnonzero(given)
    listed = given.ndim == 1 or (given.ndim == 2 and given.shape[1] == len(poset.shape))
    if given.size and (given.dtype.kind not in "iu" or not listed):
        raise ValueError(
            "Elements are given as a boolean mask, as flat indices, or for a tensor as "
            f"tuples of {len(poset.shape)} indices; got an array of shape "
            f"{given.shape} and type {given.dtype}."
        )
    limits = np.array([poset.n_elements] if given.ndim == 1 else poset.shape)
    cells = given.astype(int).reshape(-1, len(limits))
    outside = np.flatnonzero(((cells < 0) | (cells >= limits)).any(axis=1))
    if len(outside):
        raise ValueError(
            f"Element {given[outside[0]].tolist()} is out of range: {poset!r} has "
            f"indices up to {(limits - 1).tolist()}."
        )
    return np.ravel_multi_index(tuple(cells.T), tuple(limits))


def as_flags(values, name):
    """An array of bool; a ValueError if it holds more than 0 and 1."""
    flags = np.asarray(values)
    if flags.dtype != bool and not ((flags == 0) | (flags == 1)).all():
        raise ValueError(
            f"{name} must be a mask, of True and False or 1 and 0; it holds other "
            "values. Observed are, in a table with NaN, ~np.isnan(table)."
        )
    return flags.astype(bool)


def non_negative(values, name):
    """An array of floats; a ValueError if one is negative, or their sum not finite."""
    values = np.asarray(values, dtype=np.float64)
    if not (values.min(initial=0) >= 0 and values.max(initial=0) < np.inf):
        where = tuple(np.argwhere(~(np.isfinite(values) & (values >= 0)))[0].tolist())
        raise ValueError(
            f"{name} must be finite and not negative; entry {where} is {values[where]}."
        )
    if values.max(initial=0) > np.finfo(float).max / max(1, values.size):
        raise ValueError(f"{name} must have a finite sum; choose a larger unit.")
    return values


def float_type(values):
    """Single or double precision: that of the values, if they have one."""
    dtype = np.asarray(values).dtype
    return dtype if dtype in (np.float32, np.float64) else np.float64


def _cumulate(mode):
    """Cumulative sum along the middle axis, in place."""
    if mode.shape[1] > _SLICEWISE:
        np.cumsum(mode, axis=1, out=mode)
        return
    for level in range(1, mode.shape[1]):
        mode[:, level] += mode[:, level - 1]


def _difference(mode):
    """First difference along the middle axis, in place."""
    if mode.shape[1] > _SLICEWISE:
        mode[:, 1:] = np.diff(mode, axis=1)
        return
    for level in range(mode.shape[1] - 1, 0, -1):
        mode[:, level] -= mode[:, level - 1]


def leading_shape(values, poset, name="An array"):
    """Shape of an array before the axes of the poset; a ValueError if it lacks them."""
    lead = max(0, values.ndim - len(poset.shape))
    if values.shape[lead:] != poset.shape:
        raise ValueError(
            f"{name} must have shape (..., {', '.join(map(str, poset.shape))}) for "
            f"{poset!r}; got {values.shape}."
        )
    return values.shape[:lead]


def flat_rows(poset, **arrays):
    """Arrays by name as rows (n, D), broadcast, and their leading shape."""
    shapes = (leading_shape(array, poset, name) for name, array in arrays.items())
    lead = np.broadcast_shapes(*shapes)
    whole = (np.broadcast_to(array, lead + poset.shape) for array in arrays.values())
    return [array.reshape(-1, poset.n_elements) for array in whole], lead


def matched_mask(poset, matched):
    """A mask of elements, checked, without the bottom, which is always free."""
    matched = np.array(as_flags(matched, "matched"), order="C")
    if matched.shape != poset.shape:
        raise ValueError(
            f"matched must be a mask of shape {poset.shape}; got shape {matched.shape}."
        )
    matched.reshape(-1)[poset.bottom] = False
    return matched
