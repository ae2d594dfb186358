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
    given = interactions if np.iterable(interactions) else []
    sets = [_check_mode_set(modes, n_modes) for modes in given]
    if not sets:
        raise ValueError(
            "No interaction was given. Pass an order, or list at least one tuple of "
            f"modes, for instance [(0,), (1, 2)]; got {interactions!r}."
        )
    return sets


def _check_mode_set(modes, n_modes):
    """A set of modes in ascending order; a ValueError if it is none."""
    try:
        checked = sorted(map(index, modes))
    except TypeError:
        checked = []
    if not checked or sorted(set(checked) & set(range(n_modes))) != checked:
        raise ValueError(
            f"Interaction {modes!r} must be a tuple of modes from 0 to {n_modes - 1}, "
            "at least one and none twice, such as (0,) or (0, 2)."
        )
    return tuple(checked)


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
