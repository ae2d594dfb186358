"""Error messages for rows that are not numeric."""

import numpy as np
from scipy.sparse import issparse


def unequal_rows(rows, name):
    """Error message for rows of unequal shape."""
    shapes = [_shape_of(row) for row in rows]
    row = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if row is None and shapes[0] != _UNEVEN:
        return f"{name} is an array of {len(shapes)} objects: pass np.stack({name})."
    return (
        f"{name} must have rows of one shape: row 0 has {shapes[0]}, row {row or 0} "
        f"{shapes[row or 0]}. Cut them to one length, or pad the short ones with NaN, "
        "and join them with np.stack."
    )


_UNEVEN = "parts of unequal length"


def _shape_of(row):
    """Shape of a row, also of an array of objects."""
    try:
        return f"the shape {np.shape(row)}"
    except ValueError:
        return _UNEVEN


def strings_message(X, no_numbers):
    """Error message for an array (n, D) of strings."""
    where = first_without_number(X)
    if where is None:
        return f"X is an array of strings ({X.dtype}) that are numbers: make it floats."
    row, *places = where
    name = f"Column {places[0]}" if len(places) == 1 else f"Cell {tuple(places)}"
    return (
        f"{name} has words, such as {str(X[where])!r} in row {row}, which makes all of "
        "an array strings: pass a data frame, or dtype=object with numbers as numbers. "
        f"{no_numbers(name)}"
    )


def first_without_number(X):
    """Index of the first cell that is no float, column by column; None without one."""
    if issparse(X) or getattr(X, "dtype", np.dtype(object)).kind not in "OUS":
        return None
    cells = np.array(X, dtype=object)
    for where in np.ndindex(cells.T.shape):
        value = cells[where[::-1]]
        try:
            float(value)
        except (OverflowError, TypeError, ValueError):
            if type(value).__name__ not in ("NoneType", "NAType"):
                return where[::-1]
    return None
