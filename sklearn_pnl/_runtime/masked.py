"""Masked cells, which lose their mask where arrays are read, and missing values."""

from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from typing import TypeVar, cast

import numpy as np

_Called = TypeVar("_Called", bound=Callable)


def check_unmasked(arrays, name="X"):
    """Refuse masked cells, also of arrays in a list, tuple or dict."""
    parts = arrays.values() if isinstance(arrays, dict) else arrays
    if not isinstance(arrays, dict | list | tuple):
        parts = (arrays,)
    if any(isinstance(part, np.ma.MaskedArray) and part.mask.any() for part in parts):
        raise ValueError(
            f"{name} is a masked array. Fill it first, with NaN where cells may be "
            "missing, or drop such rows."
        )


def unmasked(function: _Called) -> _Called:
    """The same function, which refuses masked arrays as arguments."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @wraps(function)
    def checked(*args, **named):
        for name, argument in (*zip(names, args, strict=False), *named.items()):
            check_unmasked(argument, name)
        return function(*args, **named)

    return cast("_Called", checked)


def is_missing(value):
    """Whether a value is None, NA, NaT or NaN."""
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | Decimal) and value != value


# The same of each value in an array of objects.
are_missing = np.vectorize(is_missing, otypes=[bool])
