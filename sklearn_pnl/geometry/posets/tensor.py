"""The componentwise order of the cells of a tensor: transforms without a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._utils.arrays import namespace, reshaped, take
from .elements import as_floats, leading_shape
from .interactions import cell_orders, interaction_mask
from .protocol import PosetProtocol


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
        shape = tuple(np.atleast_1d(shape).tolist())
        if not (shape and all(isinstance(n, int) and n >= 1 for n in shape)):
            raise ValueError(
                "A tensor needs at least one mode, each of length 1 or more; got "
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
    # An attribute of the protocol, computed on demand.
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
        mask = np.asarray(mask, bool)
        modes = (np.moveaxis(mask, k, 0) for k in range(self.n_modes))
        return not any(np.any(mode[1:] & ~mode[:-1]) for mode in modes)

    def order_mask(self, order: ArrayLike) -> NDArray:
        """Cells of the interactions of at most ``order`` modes, or of those listed."""
        return interaction_mask(self.shape, order)

    def level_mask(self, level: ArrayLike) -> NDArray:
        """As for any poset, but lists are of sets of modes."""
        if isinstance(level, np.ndarray | Integral):
            return super().level_mask(level)
        return self.order_mask(level)

    def greatest_below(self, elements: NDArray) -> NDArray | None:
        """In a tensor of one mode the last one before each; else None."""
        if max(self.shape) < self.n_elements:
            return None
        return np.searchsorted(elements, np.arange(self.n_elements), side="right") - 1

    def family(self, mask: ArrayLike) -> int | list[tuple[int, ...]] | None:
        """The order, or the maximal sets of modes, with these cells; or None.

        The bottom, which belongs to no set, does not matter.
        """
        kept, bottom = np.array(mask, bool), (0,) * self.n_modes
        kept[bottom] = True
        if not self.is_down_set(kept):
            return None
        kept[bottom] = False
        # In which modes cells are not the first, each set of them once.
        used = np.unique(np.argwhere(kept) > 0, axis=0)
        largest = int(used.sum(axis=1).max(initial=0))
        if largest and np.array_equal(kept, interaction_mask(self.shape, largest)):
            return largest
        n_above = [(used >= modes).all(axis=1).sum() for modes in used]
        sets = used[np.array(n_above, int) == 1]
        sets = sorted(tuple(np.flatnonzero(modes).tolist()) for modes in sets)
        if not sets or not np.array_equal(kept, interaction_mask(self.shape, sets)):
            return None
        return sets

    def fisher_gram(self, p: NDArray, elements: NDArray) -> NDArray:
        """``sum_{z >= x, z >= y} p(z)`` for all pairs of ``elements`` (flat).

        Two cells of a tensor have a least cell above both, the elementwise
        maximum, so this is ``eta`` read there.
        """
        cells = np.unravel_index(elements, self.shape)
        above = tuple(np.maximum(c[:, None], c) for c in cells)
        joins = np.asarray(np.ravel_multi_index(above, self.shape))
        lead = leading_shape(p, self)
        eta = reshaped(self.eta(p), (prod(lead), self.n_elements))
        return reshaped(take(eta, joins.reshape(-1), axis=1), lead + joins.shape)

    def _along_modes(self, values, operation, reverse=False):
        values = as_floats(values)
        shape = tuple(values.shape)
        outer, inner = prod(leading_shape(values, self)), self.n_elements
        # A copy in the order of C, in which all modes are changed in place.
        flat = 1 * reshaped(values, (outer * inner,))
        for length in self.shape:
            inner //= length
            if length > 1:
                operation(reshaped(flat, (outer, length, inner)), reverse)
            outer *= length
        return reshaped(flat, shape)


def _cumulate(mode, reverse):
    """Cumulative sum along the middle axis, or against it, in place."""
    n = mode.shape[1]
    if n > 16:
        xp, step = namespace(mode), -1 if reverse else 1
        if xp is np:
            np.cumsum(mode[:, ::step], axis=1, out=mode[:, ::step])
        else:
            sums = xp.cumulative_sum(xp.flip(mode, axis=1) if reverse else mode, axis=1)
            mode[...] = xp.flip(sums, axis=1) if reverse else sums
        return
    # Few contiguous additions are faster.
    levels = range(n - 2, -1, -1) if reverse else range(1, n)
    for level in levels:
        mode[:, level, :] += mode[:, level + 1 if reverse else level - 1, :]


def _difference(mode, reverse):
    """First difference along the middle axis, or against it, in place."""
    if reverse:
        mode[:, :-1, :] -= 1 * mode[:, 1:, :]
    else:
        mode[:, 1:, :] -= 1 * mode[:, :-1, :]
