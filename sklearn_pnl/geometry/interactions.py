r"""Interactions between the modes of a tensor.

A *family* of mode sets says which interactions a model keeps: an integer ``ell``
(all sets of at most ``ell`` modes) or a list of tuples of modes, closed downward.
The functions of at most those modes form a linear space ``V``; this module gives
the cells that parametrise it and an orthonormal basis of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from itertools import chain, combinations, starmap
from math import prod
from numbers import Integral
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert

from .._runtime.workspace import empty_like

# An order, or the sets of modes kept.
Interactions: TypeAlias = int | Iterable[Sequence[int]]
# What a pass over the cells takes for each, to start a product, and to call for all
# of them, in multiplications.
_PASS, _PRODUCT, _CALL = 30, 100, 2**10


def close_downward(
    interactions: Interactions, n_modes: int
) -> int | frozenset[tuple[int, ...]]:
    """Family of mode sets, checked: an order, or all subsets of the sets listed.

    Parameters
    ----------
    interactions : int or iterable of tuple of int
        ``ell``, or the mode sets to keep.
    n_modes : int
        ``d``, the number of modes of the tensor.

    Returns
    -------
    family : int or frozenset of tuple of int
        ``ell`` itself, or every non-empty subset of every set listed.

    Raises
    ------
    ValueError
        If the order is below 1 or above ``d``, if a mode does not exist or
        occurs twice in a set, or if no set is given.

    See Also
    --------
    interaction_mask : Elements of some interactions.
    order_mask : Elements up to an order.

    Examples
    --------
    >>> from sklearn_pnl.geometry import close_downward
    >>> sorted(close_downward([(0, 2), (1,)], n_modes=3))
    [(0,), (0, 2), (1,), (2,)]
    """
    kept = _check_interactions(interactions, n_modes)
    if isinstance(kept, int):
        return kept
    sizes = ((modes, size) for modes in kept for size in range(1, len(modes) + 1))
    return frozenset(chain.from_iterable(starmap(combinations, sizes)))


def _check_interactions(interactions, n_modes):
    """An order, or a list of sets of modes in ascending order."""
    if isinstance(interactions, Integral):
        if not 1 <= interactions <= n_modes:
            raise ValueError(
                f"order={interactions} is outside 1 to {n_modes}: a tensor of "
                f"{n_modes} modes has interactions of 1 to {n_modes} modes."
            )
        return int(interactions)
    if not np.iterable(interactions):
        raise ValueError(
            f"Interactions are an integer order or a list of tuples of modes; got "
            f"{interactions!r}."
        )
    sets = [check_mode_set(modes, n_modes) for modes in interactions]
    if not sets:
        raise ValueError(
            "No interaction was given. List at least one tuple of modes, for instance "
            "[(0,), (1, 2)], or pass an order."
        )
    return sets


def interaction_mask(shape: Sequence[int], interactions: Interactions) -> NDArray:
    """Cells whose natural coordinates parametrise the interactions kept.

    A cell belongs to the mode set in which its index is not zero. The bottom,
    which belongs to the empty set, is left out.

    Parameters
    ----------
    shape : tuple of int
        Shape of the tensor.
    interactions : int or iterable of tuple of int

    Returns
    -------
    mask : ndarray of bool of shape ``shape``

    See Also
    --------
    order_mask : Elements up to an order.
    close_downward : All subsets of interactions.
    InteractionBasis : An orthonormal basis of interactions.

    Examples
    --------
    >>> from sklearn_pnl.geometry import interaction_mask
    >>> interaction_mask((2, 3), 1).astype(int)
    array([[0, 1, 1],
           [1, 0, 0]])
    """
    kept = _check_interactions(interactions, len(shape))
    if isinstance(kept, int):
        mask = cell_orders(shape) <= kept
    else:
        mask = np.zeros(shape, bool)
        for modes in kept:
            mask[tuple(slice(None) if k in modes else 0 for k in range(len(shape)))] = 1
    mask[(0,) * len(shape)] = False
    return mask


def cell_orders(shape):
    """Number of non-zero indices of each cell of a tensor."""
    modes = (np.minimum(np.arange(length), 1) for length in shape)
    return reduce(np.add.outer, modes)


def is_down_set(mask):
    """Whether a mask of cells of a tensor contains all cells below each of its own."""
    mask = np.asarray(mask, bool)
    modes = (np.moveaxis(mask, k, 0) for k in range(mask.ndim))
    return not any(np.any(mode[1:] & ~mode[:-1]) for mode in modes)


def family_from_mask(mask):
    """The order, or the list of maximal sets of modes, with these cells; or None.

    The bottom, which belongs to no set, does not matter.
    """
    some = np.array(mask, bool)
    some[(0,) * some.ndim] = True
    every, used = some, [k for k, length in enumerate(some.shape) if length > 1]
    # One cell for all cells that are non-zero in the same modes.
    for k in used:
        some, every = merged(some, k, np.any), merged(every, k, np.all)
    orders = cell_orders(some.shape)
    largest = int(orders[some].max())
    if largest == 0 or not (np.array_equal(some, every) and is_down_set(some)):
        return None
    if np.array_equal(some, orders <= largest):
        return largest
    maximal = some.copy()
    for k in used:
        np.moveaxis(maximal, k, 0)[0] &= ~np.moveaxis(some, k, 0)[1]
    return sorted(tuple(map(int, np.flatnonzero(x))) for x in np.argwhere(maximal))


def merged(cells, mode, how):
    """The levels of a mode but the first merged to one."""
    first, rest = np.split(cells, [1], axis=mode)
    return np.concatenate([first, how(rest, axis=mode, keepdims=True)], axis=mode)


def maximal_mode_sets(family, modes):
    """The largest sets of some modes of a family."""
    if not isinstance(family, int):
        return family
    return list(combinations(modes, family))


class InteractionBasis:
    """Orthonormal basis of the functions of at most the kept sets of modes.

    The Kronecker product of one Helmert matrix a mode, rows masked to the mode
    sets kept; the constant function is left out. ``analysis(synthesis(v)) = v``.
    Scaled by ``sqrt(D)``, the Fisher information in this basis is the identity at
    the uniform distribution.

    Parameters
    ----------
    shape : tuple of int
        Shape of the tensor.
    interactions : int or iterable of tuple of int

    Attributes
    ----------
    n_functions : int
        Dimension ``m`` of the space.
    cells : ndarray of int of shape (m,)
        Where the coefficients are in the transform of all modes, flat.

    See Also
    --------
    interaction_mask : Elements of some interactions.
    mixed_projection : Its route "tilt" is Newton's method on interactions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import InteractionBasis
    >>> basis = InteractionBasis((2, 2), 1)
    >>> basis.analysis(np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([0.5, 0.5])
    >>> basis.synthesis(np.array([0.5, 0.5]))
    array([[ 0.5,  0. ],
           [ 0. , -0.5]])
    """

    def __init__(self, shape: Sequence[int], interactions: Interactions) -> None:
        self.shape = tuple(shape)
        self.cells = np.flatnonzero(interaction_mask(self.shape, interactions))
        self.n_functions = len(self.cells)

    def analysis(self, x: ArrayLike) -> NDArray:
        """Coefficients ``mask * (H_1 x .. x H_d) x`` of shape (..., m)."""
        x = np.asarray(x, dtype=np.float64)
        lead = x.shape[: max(0, x.ndim - len(self.shape))]
        if x.shape[len(lead) :] != self.shape:
            raise ValueError(f"x must have shape (..., *{self.shape}); got {x.shape}.")
        flat = kronecker_product(self._blocks, x.reshape(-1, prod(self.shape)))
        return flat[:, self.cells].reshape(*lead, self.n_functions)

    def synthesis(self, v: ArrayLike) -> NDArray:
        """Transpose of :meth:`analysis`: the function with coefficients ``v``."""
        v = np.asarray(v, dtype=np.float64)
        coefficients = np.zeros((*v.shape[:-1], prod(self.shape)))
        coefficients[..., self.cells] = v.reshape(*v.shape[:-1], self.n_functions)
        blocks = [block.T for block in self._blocks]
        flat = kronecker_product(blocks, coefficients.reshape(-1, prod(self.shape)))
        return flat.reshape(*v.shape[:-1], *self.shape)

    @property
    def matrices(self) -> list:
        """An orthogonal matrix a mode, the first row of each a constant."""
        return [helmert(n, full=True) if n > 1 else np.ones((1, 1)) for n in self.shape]

    @cached_property
    def _blocks(self):
        return kronecker_blocks(self.matrices)


def kronecker_blocks(matrices):
    """Neighbouring matrices joined as is fastest for Kronecker products.

    A block takes the time of as many multiplications a cell as it has rows, of some
    more for the pass, and of some for each of its products, which are as many cells.
    """
    lengths = list(map(len, matrices))
    # Where blocks end, for the matrices from each on: the last ones first. Only what
    # is chosen is joined, for a block may be as long as a row.
    best = {len(lengths): (0.0, [])}
    for first in range(len(lengths) - 1, -1, -1):
        overhead = _PASS + _PRODUCT / prod(lengths[first:]) + _CALL / prod(lengths)
        best[first] = min(
            (best[end][0] + prod(lengths[first:end]) + overhead, [end, *best[end][1]])
            for end in range(first + 1, len(lengths) + 1)
        )
    ends = best[0][1]
    return [
        reduce(np.kron, matrices[start:end])
        for start, end in zip([0, *ends], ends, strict=False)
    ]


def kronecker_product(blocks, x):
    """Rows ``x`` of shape (n, D) times the Kronecker product of square matrices.

    In the precision of ``x``, as few matrix products over all rows at once.
    """
    (outer, inner), shape = x.shape, x.shape
    for block in blocks:
        inner //= len(block)
        block = block.astype(x.dtype, copy=False)
        if inner == 1:
            x = x.reshape(outer, len(block))
            x = np.matmul(x, block.T, out=empty_like(x))
        else:
            x = x.reshape(outer, len(block), inner)
            x = np.matmul(block, x, out=empty_like(x))
        outer *= len(block)
    return x.reshape(shape)


def check_mode_set(modes, n_modes):
    """A set of modes in ascending order; a ValueError if it is none."""
    try:
        modes = tuple(map(index, modes))
    except TypeError as error:
        raise ValueError(
            f"An interaction is a tuple of modes, such as (0, 2); got {modes!r}."
        ) from error
    if not modes:
        raise ValueError("An interaction needs at least one mode; got an empty tuple.")
    for k in modes:
        if not 0 <= k < n_modes:
            raise ValueError(
                f"Interaction {modes} names mode {k}, but the tensor has modes 0 to "
                f"{n_modes - 1}."
            )
    if len(set(modes)) < len(modes):
        raise ValueError(f"Interaction {modes} names a mode twice.")
    return tuple(sorted(modes))
