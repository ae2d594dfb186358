"""Reject masked and complex cells, and detect missing values."""

from decimal import Decimal

import numpy as np


def check_plain(arrays, name="X"):
    """Reject masked and complex cells, also in a list or tuple of arrays.

    A conversion would lose the masks and the imaginary parts.
    """
    for array in arrays if isinstance(arrays, list | tuple) else [arrays]:
        if isinstance(array, np.ma.MaskedArray) and array.mask.any():
            raise ValueError(
                f"{name} is a masked array. Fill it first, with NaN where cells may be "
                "missing, or drop such rows."
            )
        dtype = getattr(array, "dtype", None)
        if str(dtype).removeprefix("torch.").startswith("complex"):
            raise ValueError(
                f"Complex data not supported: {name} is an array of {dtype}. Pass "
                f"{name}.real and {name}.imag as numbers of their own."
            )


def is_missing(value):
    """Return whether a value is None, NA, NaT or NaN."""
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | Decimal) and value != value


def are_missing(values):
    """Return a mask of the missing values in an array of objects."""
    return np.array([*map(is_missing, values.flat)], bool).reshape(values.shape)
