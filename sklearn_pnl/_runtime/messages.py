"""What is wrong with rows that are not numeric."""

import numpy as np
from scipy.sparse import issparse

from .masked import is_missing


def unequal_rows(rows, name):
    """Error message for rows of unequal shape."""
    shapes = [np.shape(row) for row in rows]
    row = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0)
    return (
        f"{name} must have rows of one shape: row 0 has the shape {shapes[0]}, row "
        f"{row} {shapes[row]}. Cut them to one length, or pad the short ones with NaN, "
        "and join them with np.stack."
    )


def first_without_number(X):
    """Index of the first cell that is no float, column by column; None without one."""
    if issparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") not in "OUS":
        return None
    cells = np.array(X, dtype=object).T
    for where in np.ndindex(cells.shape):
        try:
            is_missing(cells[where]) or float(cells[where])
        except (OverflowError, TypeError, ValueError):
            return where[::-1]
    return None
