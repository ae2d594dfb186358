"""Masked arrays, which lose their mask where arrays are read."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

import numpy as np

_Called = TypeVar("_Called", bound=Callable)


def check_unmasked(given, name="X"):
    """Refuse masked cells, also of arrays in a list, tuple or dict."""
    parts = given.values() if isinstance(given, dict) else given
    if not isinstance(given, dict | list | tuple):
        parts = (given,)
    if any(isinstance(part, np.ma.MaskedArray) and part.mask.any() for part in parts):
        raise ValueError(
            f"{name} is a masked array: what is below its mask would be taken for "
            "data. Fill it first; where cells may be missing, they are NaN: "
            f"{name}.astype(float).filled(np.nan)."
        )


def unmasked(function: _Called) -> _Called:
    """The same function, which refuses masked arrays as arguments."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @wraps(function)
    def checked(*args, **named):
        for name, given in (*zip(names, args, strict=False), *named.items()):
            check_unmasked(given, name)
        return function(*args, **named)

    return cast("_Called", checked)
