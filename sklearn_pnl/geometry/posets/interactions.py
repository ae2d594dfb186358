"""Interactions between the modes of a tensor, as sets of its cells.

A *family* of mode sets defines which interactions a model contains. It is an integer
``ell`` (all sets of at most ``ell`` modes) or a list of tuples of modes; all subsets of
a listed set belong to the family, too. A cell belongs to the family if all its non-zero
indices are in modes of one set. The natural coordinates of the cells are free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from numbers import Integral
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# An order, or the sets of modes of a family.
Interactions: TypeAlias = int | Iterable[Sequence[int]]


def _check_interactions(interactions, n_modes):
    """Validate interactions; return an order, or a list of ascending sets of modes."""
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
            "Interactions must be an order or a list of tuples of distinct modes from "
            f"0 to {n_modes - 1}, for example [(0,), (1, 2)]; got {interactions!r}."
        )
    return sets


def interaction_mask(shape: Sequence[int], interactions: Interactions) -> NDArray:
    """Compute the mask of the cells whose theta is free for some interactions.

    For an order ell the mask marks M_ell (equation 1 of the paper); theta is 0 at all
    other cells. A cell belongs to the set of modes in which its index is
    not zero. The bottom belongs to the empty set, and its entry of the mask is False.

    Parameters
    ----------
    shape : tuple of int
        Shape of the tensor.
    interactions : int or iterable of tuple of int
        An order, which frees all sets of at most that many modes, or a list of sets of
        modes. A listed set includes all its subsets.

    Returns
    -------
    mask : ndarray of bool of shape ``shape``
        True where theta is free.

    Raises
    ------
    ValueError
        If the order or a mode is out of range, or if a set names a mode twice.

    See Also
    --------
    order_mask : Compute the mask of all elements up to an order, for any poset.

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
    """Return the number of non-zero indices of each cell of a tensor."""
    modes = (np.minimum(np.arange(length), 1) for length in shape)
    return reduce(np.add.outer, modes)
