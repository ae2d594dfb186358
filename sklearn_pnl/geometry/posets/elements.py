"""Elements of a poset, given as a mask or a list, and arrays over them."""

from __future__ import annotations

from math import prod

import numpy as np

from ..._utils.arrays import cast, floats_like, is_foreign, namespace, to_host, widest
from ..._utils.masked import check_plain


def flat_elements(poset, elements):
    """Flat indices of elements, from a mask or from a list in its order."""
    array = np.asarray(elements)
    if array.dtype == bool and array.shape in (poset.shape, (poset.n_elements,)):
        return np.flatnonzero(array)
    limits = np.array([poset.n_elements] if array.ndim == 1 else poset.shape)
    is_listed = array.ndim == 1 or array.shape[1:] == limits.shape
    if array.size and not (array.dtype.kind in "iu" and is_listed):
        raise ValueError(
            f"Elements of {poset!r} are given as a boolean mask of shape {poset.shape},"
            f" as flat indices, or for a tensor as tuples of {len(poset.shape)} "
            f"indices; got {array.shape} of type {array.dtype}."
        )
    cells = array.astype(int).reshape(-1, len(limits))
    outside = np.flatnonzero(((cells < 0) | (cells >= limits)).any(axis=1))
    if len(outside):
        raise ValueError(
            f"Element {array[outside[0]].tolist()} is out of range: {poset!r} has "
            f"indices up to {(limits - 1).tolist()}."
        )
    return np.ravel_multi_index(tuple(cells.T), tuple(limits))


def as_flags(values, name):
    """An array of bool; a ValueError if it holds more than 0 and 1."""
    flags = to_host(values)
    if flags.dtype != bool and not ((flags == 0) | (flags == 1)).all():
        raise ValueError(
            f"{name} must be a mask, of True and False or 1 and 0; it holds other "
            "values. Observed are, in a table with NaN, ~np.isnan(table)."
        )
    return flags.astype(bool)


def non_negative(values, name, advice=""):
    """An array of floats; a ValueError if one is negative, or their sum not finite."""
    values = numbers(values, name)
    if not (values.min(initial=0) >= 0 and values.max(initial=0) < np.inf):
        where = tuple(np.argwhere(~(np.isfinite(values) & (values >= 0)))[0].tolist())
        raise ValueError(
            f"{name} must be finite and not negative; entry {where} is {values[where]}."
            f"{advice}"
        )
    if values.max(initial=0) > np.finfo(float).max / max(1, values.size):
        raise ValueError(f"{name} must have a finite sum; choose a larger unit.")
    return values


def numbers(values, name="An array"):
    """An array of NumPy of double precision; a ValueError for masked or complex ones.

    Their masks and imaginary parts would be lost.
    """
    check_plain(values, name)
    return np.asarray(values, dtype=np.float64)


def as_floats(values):
    """An array of single or double precision: that of the values, if they have one."""
    if type(values) is not np.ndarray and not is_foreign(values):
        check_plain(values, "An array")
        values = np.asarray(values)
    xp = namespace(values)
    is_float = values.dtype in (xp.float32, xp.float64)
    return values if is_float else as_doubles(values)


def as_doubles(values):
    """An array of double precision, or of the most that its device has."""
    if not is_foreign(values):
        return numbers(values)
    check_plain(values, "An array")
    return cast(values, widest(values))


def together(kind, *arrays):
    """Arrays of floats of one namespace: that of the first that is not NumPy's."""
    foreign = next(filter(is_foreign, arrays), None)
    if foreign is None:
        return tuple(map(kind, arrays))
    foreign = kind(foreign)
    return tuple(kind(x) if is_foreign(x) else floats_like(x, foreign) for x in arrays)


def refuse_foreign(values, what):
    """A TypeError for arrays of another namespace, where NumPy alone computes."""
    if is_foreign(values):
        raise TypeError(
            f"{what} takes arrays of NumPy; got {type(values).__module__}."
            f"{type(values).__name__}. Tensors and their interactions take any: see "
            "TensorPoset and order_mask."
        )


def leading_shape(values, poset, name="An array"):
    """Shape of an array before the axes of the poset; a ValueError if it lacks them."""
    shape = tuple(values.shape)
    lead = max(0, len(shape) - len(poset.shape))
    if shape[lead:] != poset.shape:
        raise ValueError(
            f"{name} must have shape (..., {', '.join(map(str, poset.shape))}) for "
            f"{poset!r}; got {shape}."
        )
    return shape[:lead]


def flat_rows(poset, **arrays):
    """Arrays by name as rows (n, D), broadcast, and their leading shape."""
    shapes = (leading_shape(array, poset, name) for name, array in arrays.items())
    lead = np.broadcast_shapes(*shapes)
    shape, flat = lead + poset.shape, (prod(lead), poset.n_elements)
    pairs = [(namespace(array), array) for array in arrays.values()]
    return [xp.reshape(xp.broadcast_to(x, shape), flat) for xp, x in pairs], lead


def matched_mask(poset, matched):
    """A mask of elements, checked, without the bottom, which is always free."""
    matched = np.array(as_flags(matched, "matched"), order="C")
    if matched.shape != poset.shape:
        raise ValueError(
            f"matched must be a mask of shape {poset.shape}; got shape {matched.shape}."
        )
    matched.reshape(-1)[poset.bottom] = False
    return matched
