"""Masked cells, which lose their mask where arrays are read, and missing values."""

from decimal import Decimal

import numpy as np


def _parts(arrays):
    """Arrays in a list or tuple, or one array alone."""
    return arrays if isinstance(arrays, list | tuple) else (arrays,)


def check_unmasked(arrays, name="X"):
    """Refuse masked cells, also of arrays in a list or tuple."""
    masked = (x for x in _parts(arrays) if isinstance(x, np.ma.MaskedArray))
    if any(array.mask.any() for array in masked):
        raise ValueError(
            f"{name} is a masked array. Fill it first, with NaN where cells may be "
            "missing, or drop such rows."
        )


def check_real(arrays, name="X"):
    """Refuse complex cells, whose imaginary part would be lost; as for masked ones."""
    for dtype in (getattr(part, "dtype", None) for part in _parts(arrays)):
        if str(dtype).removeprefix("torch.").startswith("complex"):
            raise ValueError(
                f"Complex data not supported: {name} is an array of {dtype}. Pass "
                f"{name}.real and {name}.imag as numbers of their own."
            )


def is_missing(value):
    """Whether a value is None, NA, NaT or NaN."""
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | Decimal) and value != value


def are_missing(values):
    """The same of each value in an array of objects."""
    return np.array([*map(is_missing, values.flat)], bool).reshape(values.shape)
