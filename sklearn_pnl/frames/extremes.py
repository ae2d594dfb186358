"""Warn of values so far from all others that these are equal beside them."""

import numpy as np

from .._runtime.validation import warn_user

# Range in spreads of most values: float64 has 16 digits, of which rows keep 9.
_FAR = 1e9
# Parts of the rows at which some are looked at, in no period that rows may have.
_PLACES = np.arange(1, 65) * 0.6180339887 % 1


def warn_extreme_values(table, least, most):
    """Warn of the column whose range is a billion times the spread of most rows.

    That is the spread of the middle half of some rows; where these are equal, of the
    middle half of the others. Sparse rows are not looked at.
    Rows of the classes of one table are warned of once.

    Parameters
    ----------
    table : Table
        Rows of a class.
    least, most : ndarray of shape (D,)
        Ends of the columns in the rows of all classes.
    """
    n = len(table)
    if table.sparse_rows is not None or not n or table.warned:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        width = most - least
        some = table.take((n * _PLACES).astype(int), "some rows").numbers()
        first, third = _middle_half(some)
        # Values that differ at all differ by a step.
        near = np.fmax(third - first, table.steps)
        columns = np.flatnonzero(width > _FAR * near)
        if not len(columns):
            return
        some = table.take(np.arange(0, n, n // 2**12 + 1), "some rows").numbers()
        some = some[:, columns]
        first, third = _middle_half(some)
        others = np.where(some == first, np.nan, some.astype(np.float64))
        spread = np.subtract(*_middle_half(others)[::-1])
        spread = np.where(third > first, third - first, spread)
        far = (width[columns] > _FAR * spread) & (spread > 0)
    for i in np.flatnonzero(far)[:1]:
        j = columns[i]
        table.warned.append(table.column_names[j])
        end = "largest" if most[j] - third[i] > first[i] - least[j] else "smallest"
        warn_user(
            f"The {end} value in column {table.column_names[j]!r} is more than a "
            "billion interquartile ranges away from the others, which are equal beside "
            "it up to rounding. Set what stands for missing values to NaN, or drop "
            "such rows."
        )


def _middle_half(sample):
    """The first and the third quartile of each column, without NaN."""
    ordered = np.sort(sample, axis=0)
    count = np.count_nonzero(ordered == ordered, axis=0)
    places = np.array([count // 4, np.maximum(3 * count // 4, 1) - 1])
    return np.take_along_axis(ordered, np.maximum(places, 0), axis=0)
