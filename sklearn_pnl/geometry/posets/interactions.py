"""Interactions between the modes of a tensor, as sets of its cells.

A *family* of mode sets says which interactions a model keeps: an integer ``ell``
(all sets of at most ``ell`` modes) or a list of tuples of modes, closed downward. The
cells whose natural coordinates parametrise it are those whose non-zero indices are in
modes of one of its sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from numbers import Integral
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# An order, or the sets of modes kept.
Interactions: TypeAlias = int | Iterable[Sequence[int]]


def _check_interactions(interactions, n_modes):
    """An order, or a list of sets of modes in ascending order."""
    if isinstance(interactions, Integral):
        if not 1 <= interactions <= n_modes:
            raise ValueError(
                f"order={interactions} is outside 1 to {n_modes}: a tensor of "
                f"{n_modes} modes has interactions of 1 to {n_modes} modes."
            )
        return int(interactions)
    try:
        sets = [tuple(sorted(map(index, modes))) for modes in interactions]
    except TypeError:
        sets = []
    every = set(range(n_modes))
    if not sets or any(not m or sorted(every & set(m)) != list(m) for m in sets):
        raise ValueError(
            "Interactions must be an order or a list of tuples of modes from 0 to "
            f"{n_modes - 1}, none twice in one, such as [(0,), (1, 2)]; got "
            f"{interactions!r}."
        )
    return sets


def interaction_mask(shape: Sequence[int], interactions: Interactions) -> NDArray:
    """Cells where theta is free in M_ell (equation 1), for some interactions.

    theta is 0 at all others. A cell belongs to the mode set in which its index is not
    zero. The bottom, which belongs to the empty set, is left out.

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
