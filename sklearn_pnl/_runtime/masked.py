"""Masked cells, which lose their mask where arrays are read, and missing values."""

import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from typing import TypeVar, cast

import numpy as np

_Called = TypeVar("_Called", bound=Callable)


def _parts(arrays):
    """Arrays in a list, tuple or dict, or one array alone."""
    if isinstance(arrays, dict):
        return arrays.values()
    return arrays if isinstance(arrays, list | tuple) else (arrays,)


def check_unmasked(arrays, name="X"):
    """Refuse masked cells, also of arrays in a list, tuple or dict."""
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


def unmasked(function: _Called) -> _Called:
    """The same function, which refuses masked and complex arrays as arguments.

    It names the argument that NumPy cannot make numbers of.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @wraps(function)
    def checked(*args, **named):
        arguments = (*zip(names, args, strict=False), *named.items())
        for name, argument in arguments:
            check_unmasked(argument, name)
            check_real(argument, name)
        try:
            return function(*args, **named)
        except (RuntimeError, TypeError, ValueError) as error:
            for name, argument in arguments:
                parts = (argument, *_parts(argument))
                if str(error) in map(_why_no_numbers, parts):
                    kind = ValueError if isinstance(error, ValueError) else TypeError
                    raise kind(f"{name} must be numbers: {error}") from error
            raise

    return cast("_Called", checked)


def _why_no_numbers(argument):
    """What NumPy says where it makes no floats of an argument; None if it does."""
    try:
        with warnings.catch_warnings(action="ignore"):
            np.asarray(argument, dtype=np.float64)
    # PyTorch gives no numbers of what it differentiates by.
    except (RuntimeError, TypeError, ValueError) as error:
        return str(error)
    return None


def is_missing(value):
    """Whether a value is None, NA, NaT or NaN."""
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | Decimal) and value != value


# The same of each value in an array of objects.
are_missing = np.vectorize(is_missing, otypes=[bool])
