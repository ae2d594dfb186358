"""The componentwise order of the cells of a tensor, with transforms in O(D d)."""

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

    ``x <= y`` if ``x_k <= y_k`` in every mode. The bottom is ``(0, .., 0)``. The order
    of an element is the number of its non-zero indices. The zeta transform is a
    cumulative sum along every mode, which costs O(D d) and needs no matrix.

    Parameters
    ----------
    shape : tuple of int
        Lengths ``(I_1, .., I_d)`` of the modes.

    Attributes
    ----------
    n_modes : int
        The number ``d`` of modes.
    order : ndarray of int of shape ``shape``
        Number of non-zero indices of each cell ("ell-body" order).
    shape, n_elements, bottom, max_order
        See :class:`PosetProtocol`; ``n_elements`` is ``D``, the number of cells.

    See Also
    --------
    Poset : Any partial order with a bottom.
    chain_poset : Build the poset of ordered features.
    order_mask : Compute the mask of all elements up to an order.

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
                "shape must contain at least one integer, and each must be at least 1; "
                f"got {shape}."
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
    # The protocol declares an attribute; here it is computed at the first access.
    def order(self) -> NDArray:  # type: ignore[override]
        """Number of non-zero indices of each cell."""
        return cell_orders(self.shape)

    def zeta(self, theta: ArrayLike) -> NDArray:
        """Compute ``f(x) = sum_{y <= x} theta(y)`` by cumulative sums along modes."""
        return self._along_modes(theta, _cumulate)

    def moebius(self, f: ArrayLike) -> NDArray:
        """Compute the inverse of :meth:`zeta` by first differences along the modes."""
        return self._along_modes(f, _difference)

    def eta(self, p: ArrayLike) -> NDArray:
        """Compute the adjoint of :meth:`zeta`, ``eta(x) = sum_{y >= x} p(y)``."""
        return self._along_modes(p, _cumulate, reverse=True)

    def eta_inverse(self, eta: ArrayLike) -> NDArray:
        """Compute the inverse of :meth:`eta`: expectation coordinates to cells."""
        return self._along_modes(eta, _difference, reverse=True)

    def is_down_set(self, mask: ArrayLike) -> bool:
        """Check whether ``mask`` contains all elements below each of its elements."""
        mask = np.asarray(mask, bool)
        modes = (np.moveaxis(mask, k, 0) for k in range(self.n_modes))
        return not any(np.any(mode[1:] & ~mode[:-1]) for mode in modes)

    def order_mask(self, order: ArrayLike) -> NDArray:
        """Return the mask of the cells of an order, or of a list of sets of modes."""
        return interaction_mask(self.shape, order)

    def level_mask(self, level: ArrayLike) -> NDArray:
        """Return the mask of the free cells for an order, a mask, or sets of modes."""
        if isinstance(level, np.ndarray | Integral):
            return super().level_mask(level)
        return self.order_mask(level)

    def greatest_below(self, elements: NDArray) -> NDArray | None:
        """Return, for a tensor of one mode, the last of ``elements`` up to each cell.

        For other tensors the result is None; see :class:`PosetProtocol`.
        """
        if max(self.shape) < self.n_elements:
            return None
        return np.searchsorted(elements, np.arange(self.n_elements), side="right") - 1

    def family(self, mask: ArrayLike) -> int | list[tuple[int, ...]] | None:
        """Return the order, or the maximal sets of modes, with the cells of ``mask``.

        The result is None if the cells form no family. The bottom is ignored.
        """
        kept, bottom = np.array(mask, bool), (0,) * self.n_modes
        kept[bottom] = True
        if not self.is_down_set(kept):
            return None
        kept[bottom] = False
        # Each distinct set of modes in which a cell has a non-zero index.
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
        """Compute ``sum_{z >= x, z >= y} p(z)`` for all pairs of flat ``elements``.

        The least cell above two cells of a tensor is their elementwise maximum, so the
        sum is ``eta`` at the maximum.
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
        # A contiguous copy, because the operations change it in place.
        flat = 1 * reshaped(values, (outer * inner,))
        for length in self.shape:
            inner //= length
            if length > 1:
                operation(reshaped(flat, (outer, length, inner)), reverse)
            outer *= length
        return reshaped(flat, shape)


def _cumulate(mode, reverse):
    """Accumulate along the middle axis in place, from the last entry if ``reverse``."""
    n = mode.shape[1]
    if n > 16:
        xp, step = namespace(mode), -1 if reverse else 1
        if xp is np:
            np.cumsum(mode[:, ::step], axis=1, out=mode[:, ::step])
        else:
            sums = xp.cumulative_sum(xp.flip(mode, axis=1) if reverse else mode, axis=1)
            mode[...] = xp.flip(sums, axis=1) if reverse else sums
        return
    # For a short mode, a loop of contiguous additions is faster than cumsum.
    levels = range(n - 2, -1, -1) if reverse else range(1, n)
    for level in levels:
        mode[:, level, :] += mode[:, level + 1 if reverse else level - 1, :]


def _difference(mode, reverse):
    """Subtract neighbours along the middle axis in place; invert ``_cumulate``."""
    if reverse:
        mode[:, :-1, :] -= 1 * mode[:, 1:, :]
    else:
        mode[:, 1:, :] -= 1 * mode[:, :-1, :]
