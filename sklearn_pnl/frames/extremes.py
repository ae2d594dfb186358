"""Warn of values so far from all others that these are equal beside them."""

import numpy as np

from .._runtime.validation import warn_user

# Range in spreads of most values: float64 has 16 digits, of which rows keep 9.
_FAR = 1e9
# Whole numbers up to which float64 holds all.
_EXACT = 2.0**53
# Parts of the rows at which a few are looked at first, in no period that rows may have.
_PLACES = np.arange(1, 16) * 0.6180339887 % 1
# Rows of which the middle half of a column is found.
_MOST_ROWS = 2**12


def warn_extreme_values(table, least, most):
    """Warn of the column whose range is a billion times the spread of most rows.

    That is the spread of the middle half of some of the rows; where these are equal,
    of the middle half of the others. Sparse rows are not looked at.
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
        first, third = _middle_half(table.some((n * _PLACES).astype(int)))
        # Ten times less: what a few rows say is not exact.
        columns = np.flatnonzero(width > _FAR / 10 * np.fmax(third - first, 0))
        # Values that differ at all differ by a step.
        columns = columns[width[columns] > _FAR * table.steps[columns]]
        if not len(columns):
            return
        sample = table.some(np.s_[:: n // _MOST_ROWS + 1])[:, columns]
        first, third = _middle_half(sample)
        spread = third - first
        others = np.where(sample == first, np.nan, sample)
        spread = np.where(spread == 0, np.subtract(*_middle_half(others)[::-1]), spread)
        # Beside values beyond these whole numbers seem equal that are not.
        rounded = (table.steps[columns] > 0) & (width[columns] > _EXACT)
        far = (width[columns] > _FAR * spread) & ((spread > 0) | rounded)
    for i in np.flatnonzero(far)[:1]:
        j = columns[i]
        value = most[j] if most[j] - third[i] > first[i] - least[j] else least[j]
        table.warned.append(table.column_names[j])
        warn_user(
            f"{table.value_text(j, value)} in column {table.column_names[j]!r} is more "
            "than a billion times as far out as half of the values there are apart: "
            "beside it, they are equal up to rounding. Set what stands for missing "
            "values to NaN first; else drop such rows."
        )


def _middle_half(sample):
    """The first and the third quartile of each column, without NaN."""
    ordered = np.sort(sample, axis=0)
    count = np.count_nonzero(ordered == ordered, axis=0)
    places = np.array([count // 4, np.maximum(3 * count // 4, 1) - 1])
    return np.take_along_axis(ordered, np.maximum(places, 0), axis=0)
