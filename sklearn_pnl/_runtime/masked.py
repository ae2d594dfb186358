"""Masked cells, which lose their mask where arrays are read, and missing values."""

import warnings
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import wraps
from types import MappingProxyType
from typing import TypeVar, cast

import numpy as np

_Called = TypeVar("_Called", bound=Callable)
_NONE: Mapping[str, Callable] = MappingProxyType({})


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


def unmasked(function: _Called, checks: Mapping[str, Callable] = _NONE) -> _Called:
    """The same function, which refuses masked arrays as arguments.

    It names the argument that NumPy cannot make numbers of. ``checks`` are of arguments
    by name.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @wraps(function)
    def checked(*args, **named):
        arguments = (*zip(names, args, strict=False), *named.items())
        for name, argument in arguments:
            check_unmasked(argument, name)
            if name in checks:
                checks[name](argument)
        try:
            return function(*args, **named)
        except (TypeError, ValueError) as error:
            for name, argument in arguments:
                if _why_no_numbers(argument) == str(error):
                    kind = type(error)
                    raise kind(f"{name} must be numbers: {error}") from error
            raise

    return cast("_Called", checked)


def _why_no_numbers(argument):
    """What NumPy says where it makes no floats of an argument; None if it does."""
    try:
        with warnings.catch_warnings(action="ignore"):
            np.asarray(argument, dtype=np.float64)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def is_missing(value):
    """Whether a value is None, NA, NaT or NaN."""
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | Decimal) and value != value


# The same of each value in an array of objects.
are_missing = np.vectorize(is_missing, otypes=[bool])
