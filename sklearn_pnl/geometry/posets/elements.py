"""Validation of elements of a poset and of arrays over its elements."""

from __future__ import annotations

from math import prod

import numpy as np

from ..._utils.arrays import cast, floats_like, is_foreign, namespace, to_host, widest
from ..._utils.masked import check_plain


def flat_elements(poset, elements):
    """Return flat indices of elements given as a mask, or as a list in its order."""
    array = np.asarray(elements)
    if array.dtype == bool and array.shape in (poset.shape, (poset.n_elements,)):
        return np.flatnonzero(array)
    lengths = np.array([poset.n_elements] if array.ndim == 1 else poset.shape)
    is_listed = array.ndim == 1 or array.shape[1:] == lengths.shape
    if array.size and not (array.dtype.kind in "iu" and is_listed):
        raise ValueError(
            f"Elements of {poset!r} must be a boolean mask of shape {poset.shape}, a "
            f"list of flat indices, or for a tensor a list of tuples of "
            f"{len(poset.shape)} indices; got an array of shape {array.shape} and type "
            f"{array.dtype}."
        )
    cells = array.astype(int).reshape(-1, len(lengths))
    outside = np.flatnonzero(((cells < 0) | (cells >= lengths)).any(axis=1))
    if len(outside):
        raise ValueError(
            f"Element {array[outside[0]].tolist()} is out of range: indices of "
            f"{poset!r} run from 0 to {(lengths - 1).tolist()}. Remove the element, or "
            "use a larger poset."
        )
    return np.ravel_multi_index(tuple(cells.T), tuple(lengths))


def as_flags(values, name):
    """Convert to an array of bool; raise a ValueError for values besides 0 and 1."""
    flags = to_host(values)
    if flags.dtype != bool and not ((flags == 0) | (flags == 1)).all():
        raise ValueError(
            f"{name} must be a boolean mask, or contain only 0 and 1; got "
            f"{flags[(flags != 0) & (flags != 1)][0]!r}. For a table with NaN at the "
            "missing cells, pass ~np.isnan(table)."
        )
    return flags.astype(bool)


def non_negative(values, name, advice=" Correct or remove the entry."):
    """Convert to floats; raise a ValueError for negative values or an infinite sum."""
    values = numbers(values, name)
    if not (values.min(initial=0) >= 0 and values.max(initial=0) < np.inf):
        where = tuple(np.argwhere(~(np.isfinite(values) & (values >= 0)))[0].tolist())
        advice = advice if values[where] < 0 else " Remove or impute the entry."
        raise ValueError(
            f"{name} must be finite and non-negative; entry {where} is "
            f"{values[where]}.{advice}"
        )
    if values.max(initial=0) > np.finfo(float).max / max(1, values.size):
        raise ValueError(
            f"The sum of {name} may exceed the largest float; the largest entry is "
            f"{values.max():g}. Divide {name} by a constant."
        )
    return values


def numbers(values, name="An array"):
    """Convert to a NumPy array of double precision.

    Masked and complex arrays raise a ValueError, because the conversion would drop
    masks and imaginary parts.
    """
    check_plain(values, name)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{name} must be a rectangular array of numbers; got {values!r:.60} "
            f"({str(error).split('. ')[0]})."
        ) from None


def as_floats(values):
    """Convert to an array of floats; single and double precision are kept."""
    if type(values) is not np.ndarray and not is_foreign(values):
        check_plain(values, "An array")
        values = np.asarray(values)
    xp = namespace(values)
    is_float = values.dtype in (xp.float32, xp.float64)
    return values if is_float else as_doubles(values)


def as_doubles(values):
    """Convert to double precision, or to the highest precision of the device."""
    if not is_foreign(values):
        return numbers(values)
    check_plain(values, "An array")
    return cast(values, widest(values))


def together(kind, *arrays):
    """Convert arrays by ``kind`` to one namespace: the first that is not NumPy's."""
    foreign = next(filter(is_foreign, arrays), None)
    if foreign is None:
        return tuple(map(kind, arrays))
    foreign = kind(foreign)
    return tuple(kind(x) if is_foreign(x) else floats_like(x, foreign) for x in arrays)


def refuse_foreign(values, what):
    """Raise a TypeError for an array of another namespace than NumPy's."""
    if is_foreign(values):
        raise TypeError(
            f"{what} takes arrays of NumPy only; got {type(values).__module__}."
            f"{type(values).__name__}. Convert the array to NumPy. A TensorPoset with "
            "the elements of order_mask accepts arrays of other namespaces."
        )


def leading_shape(values, poset, name="An array"):
    """Return the shape before the axes of the poset, and check the latter."""
    shape = tuple(values.shape)
    lead = max(0, len(shape) - len(poset.shape))
    if shape[lead:] != poset.shape:
        raise ValueError(
            f"{name} must have shape (..., {', '.join(map(str, poset.shape))}) for "
            f"{poset!r}; got {shape}."
        )
    return shape[:lead]


def flat_rows(poset, **arrays):
    """Broadcast named arrays to rows (n, D); return the rows and the leading shape."""
    shapes = (leading_shape(array, poset, name) for name, array in arrays.items())
    lead = np.broadcast_shapes(*shapes)
    shape, flat = lead + poset.shape, (prod(lead), poset.n_elements)
    pairs = [(namespace(array), array) for array in arrays.values()]
    return [xp.reshape(xp.broadcast_to(x, shape), flat) for xp, x in pairs], lead


def matched_mask(poset, matched):
    """Check a mask of elements, and clear the bottom, which normalisation fixes."""
    matched = np.array(as_flags(matched, "matched"), order="C")
    if matched.shape != poset.shape:
        raise ValueError(
            f"matched must be a mask of shape {poset.shape}; got shape {matched.shape}."
        )
    matched.reshape(-1)[poset.bottom] = False
    return matched
