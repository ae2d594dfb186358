"""Protocol of posets, and columns of their zeta matrices applied to rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from ..._utils.arrays import kept, reshaped, spread, take
from .elements import flat_elements
from .interactions import Interactions


class PosetProtocol(ABC):
    """Protocol of posets; a new class of posets needs nothing else.

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
        """Elements of order 1 to ``order``: where theta is free in M_ell."""
        if not (isinstance(order, Integral) and 1 <= order <= max(1, self.max_order)):
            raise ValueError(
                f"order={order!r} is outside 1 to {self.max_order}, the largest order "
                f"in {self!r}; interactions between modes are those of a tensor."
            )
        return (self.order >= 1) & (self.order <= order)

    def level_mask(self, level: ArrayLike) -> NDArray:
        """Free elements of a level: an order, a mask, or a list of them.

        An order of 0 frees none; a mask may free none.
        """
        if isinstance(level, np.ndarray) and level.dtype == bool and not level.any():
            level = 0
        if not isinstance(level, Integral):
            return element_mask(self, level)
        return self.order_mask(level) if level else np.zeros(self.shape, bool)

    def family(self, mask: ArrayLike) -> int | list[tuple[int, ...]] | None:
        """Interactions of a tensor that ``mask`` keeps, or None: it is no such set.

        An order or the maximal sets of modes. Only for elements that are the cells of
        a tensor of shape ``shape`` in the componentwise order.
        """
        return None

    def greatest_below(self, elements: NDArray) -> NDArray | None:
        """Number among ``elements`` of the greatest of them below each element, flat.

        -1 where none is below. None if somewhere there is no greatest one, or if to
        find out would cost too much.
        """
        return None

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
    """Columns of a zeta matrix by its transforms; rows are flat."""

    def __init__(self, poset, elements):
        self._poset, self._elements = poset, elements

    def synthesis(self, v):
        """Zeta of theta on the elements alone: rows (n, D)."""
        theta = spread(v, self._elements, self._poset.n_elements)
        values = self._poset.zeta(reshaped(theta, (-1, *self._poset.shape)))
        return reshaped(values, theta.shape)

    def analysis(self, x):
        """Transpose of :meth:`synthesis`: eta on the elements, rows (n, m)."""
        eta = self._poset.eta(reshaped(x, (-1, *self._poset.shape)))
        return take(reshaped(eta, x.shape), self._elements, axis=1)


class MatrixColumns:
    """Columns of a zeta matrix as one (D, m), dense or sparse; as ``ZetaColumns``."""

    def __init__(self, matrix):
        self._matrix = matrix

    def synthesis(self, v):
        """As of ``ZetaColumns``."""
        if isinstance(v, np.ndarray):
            return np.ascontiguousarray(v @ self._matrix.T)
        return v @ kept(v, self, "_matrix").T

    def analysis(self, x):
        """As of ``ZetaColumns``."""
        return x @ kept(x, self, "_matrix")


def zeta_columns(poset, elements):
    """Columns of the zeta matrix, dense if few: faster then than cumulative sums."""
    m, columns = len(elements), poset.columns(elements)
    if m > 64 or m * poset.n_elements > 2**20:
        return columns
    return MatrixColumns(np.ascontiguousarray(columns.synthesis(np.eye(m)).T))


def order_mask(poset: PosetProtocol, order: Interactions) -> NDArray:
    """Elements of order 1 to ``order``: where theta is free in M_ell of equation 1.

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
