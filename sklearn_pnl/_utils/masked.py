"""Raise errors for masked and complex cells, and detect missing values."""

from decimal import Decimal

import numpy as np


def check_plain(arrays, name="X"):
    """Raise a ValueError for masked or complex cells in an array or several arrays.

    A conversion to floats would drop the masks and the imaginary parts.
    """
    for array in arrays if isinstance(arrays, list | tuple) else [arrays]:
        if isinstance(array, np.ma.MaskedArray) and array.mask.any():
            raise ValueError(
                f"{name} is a masked array. Fill the masked cells first, with NaN if "
                "missing values are allowed, or drop the rows."
            )
        dtype = getattr(array, "dtype", None)
        if str(dtype).removeprefix("torch.").startswith("complex"):
            raise complex_error(f"{name} has the dtype {dtype}")


def complex_error(what):
    """Return the error for complex values; scikit-learn expects the first words."""
    return ValueError(
        f"Complex data not supported: {what}. Pass the real and the imaginary parts "
        "separately."
    )


def is_missing(value):
    """Return whether a value is None, NA, NaT or NaN."""
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | Decimal) and value != value


def are_missing(values):
    """Return a mask of the missing values in an array of objects."""
    return np.array([*map(is_missing, values.flat)], bool).reshape(values.shape)
