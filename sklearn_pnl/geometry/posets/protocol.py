"""Interface of posets, and products of columns of a zeta matrix with rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from ..._utils.arrays import MovableArray, reshaped, spread, take
from .elements import flat_elements
from .interactions import Interactions


class PosetProtocol(ABC):
    """Base class of posets, which defines the interface that the package uses.

    A subclass must define the attributes ``shape``, ``n_elements``, ``bottom`` and
    ``order``, the four transforms and :meth:`is_down_set`. All other methods have
    defaults, which a subclass may override with faster methods.

    Attributes
    ----------
    shape : tuple of int
        Shape of an array with one entry per element.
    n_elements : int
        Number of elements.
    bottom : int
        Flat index of the element below all elements.
    order : ndarray of int of shape ``shape``
        Number of atoms (covers of the bottom) below each element.
    added_bottom : bool, default=False
        Whether the bottom is element 0 and represents no feature. Estimators then take
        rows with one cell fewer: element ``x`` is feature ``x - 1``, and the bottom
        gets the mean of the row.
    max_order : int
        Largest order of an element.
    rows_at_once : int, default=1
        Smallest number of rows to transform at once. A larger number saves time if the
        transforms read large matrices that all rows share.

    See Also
    --------
    Poset : Any partial order with a bottom.
    TensorPoset : Index set of a tensor with the componentwise order.
    """

    shape: tuple
    n_elements: int
    bottom: int
    order: np.ndarray
    added_bottom: bool = False
    rows_at_once: int = 1

    @abstractmethod
    def zeta(self, theta: ArrayLike) -> NDArray:
        """Compute ``f(x) = sum_{y <= x} theta(y)``, the zeta transform."""

    @abstractmethod
    def moebius(self, f: ArrayLike) -> NDArray:
        """Compute the inverse of :meth:`zeta`."""

    @abstractmethod
    def eta(self, p: ArrayLike) -> NDArray:
        """Compute the adjoint of :meth:`zeta`, ``eta(x) = sum_{y >= x} p(y)``."""

    @abstractmethod
    def eta_inverse(self, eta: ArrayLike) -> NDArray:
        """Compute the inverse of :meth:`eta`: expectation coordinates to cells."""

    @abstractmethod
    def is_down_set(self, mask: ArrayLike) -> bool:
        """Check whether ``mask`` contains all elements below each of its elements."""

    def is_up_set(self, mask: ArrayLike) -> bool:
        """Check whether ``mask`` contains all elements above each of its elements."""
        return self.is_down_set(~np.asarray(mask, bool))

    @property
    def max_order(self) -> int:
        """Largest order of an element."""
        return int(self.order.max())

    def order_mask(self, order: ArrayLike) -> NDArray:
        """Return the mask of the elements of order 1 to ``order``.

        The mask marks the elements whose theta is free in M_ell.
        """
        if not (isinstance(order, Integral) and 1 <= order <= max(1, self.max_order)):
            raise ValueError(
                f"order={order!r} is outside 1 to {self.max_order}, the largest order "
                f"of an element of {self!r}. Choose a smaller order. Lists of sets of "
                "modes require a TensorPoset."
            )
        return (self.order >= 1) & (self.order <= order)

    def level_mask(self, level: ArrayLike) -> NDArray:
        """Return the mask of the free elements for an order, a mask, or a list.

        Order 0 and an empty mask free no element.
        """
        if isinstance(level, np.ndarray) and level.dtype == bool and not level.any():
            level = 0
        if not isinstance(level, Integral):
            return element_mask(self, level)
        return self.order_mask(level) if level else np.zeros(self.shape, bool)

    def family(self, mask: ArrayLike) -> int | list[tuple[int, ...]] | None:
        """Return the interactions that consist of the cells of ``mask``, or None.

        The interactions are an order or the maximal sets of modes. A result other than
        None is only possible for the componentwise order of a tensor.
        """
        return None

    def greatest_below(self, elements: NDArray) -> NDArray | None:
        """Return, for each element, the index of the greatest of ``elements`` below it.

        The index is -1 if none of ``elements`` is below the element. The result is None
        if the greatest does not exist for some element, or is expensive to find.
        """
        return None

    def columns(self, elements: NDArray) -> Any:
        """Return columns of the zeta matrix as an object like ``ZetaColumns``."""
        return ZetaColumns(self, elements)

    def fisher_gram(self, p: NDArray, elements: NDArray) -> NDArray:
        """Compute ``sum_{z >= x, z >= y} p(z)`` for all pairs of flat ``elements``."""
        p = np.asarray(p)
        rows = p.reshape(-1, self.n_elements)
        above = self.columns(elements).synthesis(np.eye(len(elements)))
        grams = [(above * q) @ above.T for q in rows]
        lead = p.shape[: p.ndim - len(self.shape)]
        return np.reshape(grams, (*lead, len(elements), len(elements)))

    @property
    def zeta_matrix(self) -> Any:
        """Sparse matrix of :meth:`zeta` for flat arrays."""
        every = np.arange(self.n_elements)
        return csr_array(self.columns(every).synthesis(np.eye(self.n_elements)).T)


class ZetaColumns:
    """Products of columns of a zeta matrix with flat rows, by transforms."""

    def __init__(self, poset, elements):
        self._poset, self._elements = poset, elements

    def synthesis(self, v):
        """Compute rows (n, D): the zeta transform of theta ``v`` on the elements."""
        theta = spread(v, self._elements, self._poset.n_elements)
        values = self._poset.zeta(reshaped(theta, (-1, *self._poset.shape)))
        return reshaped(values, theta.shape)

    def analysis(self, x):
        """Compute eta on the elements (n, m), the transpose of :meth:`synthesis`."""
        eta = self._poset.eta(reshaped(x, (-1, *self._poset.shape)))
        return take(reshaped(eta, x.shape), self._elements, axis=1)


class MatrixColumns:
    """Products of columns of a zeta matrix with flat rows, by a matrix (D, m)."""

    def __init__(self, matrix):
        self._matrix = MovableArray(matrix)

    def synthesis(self, v):
        """Compute the same as :meth:`ZetaColumns.synthesis`."""
        product = v @ self._matrix.on_device_of(v).T
        return np.ascontiguousarray(product) if isinstance(v, np.ndarray) else product

    def analysis(self, x):
        """Compute the same as :meth:`ZetaColumns.analysis`."""
        return x @ self._matrix.on_device_of(x)


def zeta_columns(poset, elements):
    """Return columns of the zeta matrix, dense if this is faster than transforms."""
    m, columns = len(elements), poset.columns(elements)
    if m > 64 or m * poset.n_elements > 2**20:
        return columns
    return MatrixColumns(np.ascontiguousarray(columns.synthesis(np.eye(m)).T))


def order_mask(poset: PosetProtocol, order: Interactions) -> NDArray:
    """Compute the mask of the elements of order 1 to ``order``.

    These elements are the free coordinates of the base M_ell of equation 1 of the
    paper.

    Parameters
    ----------
    poset : Poset or TensorPoset
        The poset of the elements.
    order : int or iterable of tuple of int
        The order ``ell``, from 1 to ``poset.max_order``. A larger order preserves more
        interactions. For a tensor it may be a list of sets of modes instead.

    Returns
    -------
    mask : ndarray of bool of shape ``poset.shape``
        True where theta is free.

    Raises
    ------
    ValueError
        If ``order`` is out of range, or a set of modes is not valid.

    See Also
    --------
    interaction_mask : Compute the mask for given interactions of a tensor.
    element_mask : Compute the mask of a list of elements.
    many_body_projection : Project onto the distributions of low order.

    Examples
    --------
    >>> from sklearn_pnl.geometry import Poset, order_mask
    >>> diamond = Poset.from_relations(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> order_mask(diamond, 1)
    array([False,  True,  True, False])
    """
    return poset.order_mask(order)


def element_mask(poset: PosetProtocol, elements: ArrayLike) -> NDArray:
    """Convert a mask or a list of elements to a mask without the bottom.

    Parameters
    ----------
    poset : Poset or TensorPoset
        The poset of the elements.
    elements : array-like
        A boolean mask of shape ``poset.shape`` or ``(n_elements,)``, a list of flat
        indices, or, for a tensor, a list of tuples with one index per mode.

    Returns
    -------
    mask : ndarray of bool of shape ``poset.shape``
        True for each given element except the bottom.

    Raises
    ------
    ValueError
        If the shape does not fit, if an element is out of range or listed twice, or if
        there is no element besides the bottom.

    See Also
    --------
    order_mask : Compute the mask of all elements up to an order.
    interaction_mask : Compute the mask for given interactions of a tensor.

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
            f"Some of the {len(flat)} elements are listed twice. Integers are read as "
            "indices; convert a mask of integers with np.asarray(mask, bool)."
        )
    mask[poset.bottom] = False
    if not mask.any():
        raise ValueError(
            "The base has no element besides the bottom, so every row would get the "
            "same code. Add at least one element."
        )
    return mask.reshape(poset.shape)
