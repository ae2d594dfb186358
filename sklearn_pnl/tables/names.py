"""Which column of X a key means: columns are counted and named as in X."""

from collections.abc import Hashable
from numbers import Integral

import numpy as np


def column_of(key, whom, names, row_shape):
    """The flat column that a key means.

    Parameters
    ----------
    key : object
        A name; a place, negative ones from the end; a tuple of places of a cell.
    whom : str
        What the key was given in, for messages.
    names : list or None
        Of the columns, any objects.
    row_shape : tuple of int
        Of a row of X.

    Returns
    -------
    column : int
    """
    names, n = names or [], int(np.prod(row_shape))
    named = [j for j, name in enumerate(names) if _is_same(name, key)]
    if _is_whole(key):
        place = int(key) % n if -n <= key < n else None
        if any(map(_is_whole, names)) and named != [place]:
            raise ValueError(_ambiguous(key, whom, names, named, place))
        if place is not None:
            return place
    elif len(named) == 1:
        return named[0]
    elif not named and _is_cell(key, row_shape):
        return int(np.ravel_multi_index(np.mod(key, row_shape), row_shape))
    raise ValueError(_unknown(key, whom, names, named, row_shape))


def _is_whole(key):
    return isinstance(key, Integral) and not isinstance(key, bool | np.bool_)


def _is_cell(key, shape):
    if not isinstance(key, tuple) or len(key) != len(shape):
        return False
    places = zip(key, shape, strict=True)
    return all(_is_whole(i) and -n <= i < n for i, n in places)


def _is_same(name, key):
    """Whether a key is a name; True and 1 are not the same, and arrays are none."""
    bools = [isinstance(one, bool | np.bool_) for one in (name, key)]
    return bools[0] == bools[1] and isinstance(key, Hashable) and name == key


def _ambiguous(key, whom, names, named, place):
    as_name = " and ".join(f"column {j}" for j in named) or "no column"
    as_place = "no column" if place is None else f"column {place} ({names[place]!r})"
    return (
        f"{whom} names {key!r}, which may be a name or a number: the columns of X have "
        f"whole numbers as names; {as_name} of 0 to {len(names) - 1} has the name "
        f"{key!r}, and as a number it is {as_place}. Make the names strings first, "
        "for instance with X.rename(columns=str)."
    )


def _unknown(key, whom, names, named, row_shape):
    n = int(np.prod(row_shape))
    if len(named) > 1:
        return (
            f"{whom} names {key!r}, but {len(named)} columns of X have that name: "
            f"{named}. Give the number of one."
        )
    if isinstance(key, str):
        held = f"has the columns {names}"
        if not names:
            held = f"has no names: give one of the numbers 0 to {n - 1}"
        return f"{whom} names {key!r}, but X {held}."
    if len(row_shape) > 1:
        kinds = f"tuples of {len(row_shape)} places of a cell in rows of {row_shape}"
        kinds += f", or numbers from 0 to {n - 1}"
    else:
        kinds = f"names or numbers (0 to {n - 1}) of the {n} columns"
    return f"{whom} holds {key!r}; it must hold {kinds} of X."
