"""Totals of a set of rows as users give them: sums of numbers and counts by level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real

import narwhals as nw
import numpy as np
from scipy.sparse import csr_array

from ._runtime.masked import check_unmasked, is_missing, unmasked
from .frames.columns import column_of, columns_of


@dataclass(frozen=True)
class ColumnTotal:
    """A total of a set of rows, as :func:`column_total` returns it.

    Attributes
    ----------
    of : column, tuple of columns, or dict of column to float
        What is counted, or the coefficients of what is summed.
    lower, upper : float, or dict of level to float
        Equal where a total is asked for exactly.
    mean : bool
        Whether the ends are of the weighted mean, or of shares.

    See Also
    --------
    column_total : Make one.

    Examples
    --------
    >>> from sklearn_pnl import column_total
    >>> column_total("income", lower=2.8e6)
    ColumnTotal(of='income', lower=2800000.0, upper=inf, mean=False)
    """

    of: object
    lower: object
    upper: object
    mean: bool = False

    @property
    def by_level(self) -> bool:
        """Whether it counts rows by level."""
        return isinstance(self.lower, dict) or isinstance(self.upper, dict)

    @property
    def coefficients(self) -> dict:
        """Coefficients of the columns of a sum."""
        return self.of if isinstance(self.of, dict) else {self.of: 1.0}

    def intervals(self):
        """Each level (None, of a sum) with the ends of its interval."""
        ends = self.lower, self.upper
        levels = [level for end in ends if isinstance(end, dict) for level in end]
        for level in dict.fromkeys(levels or [None]):
            low, high = (
                end.get(level, default) if isinstance(end, dict) else end
                for end, default in zip(ends, (-np.inf, np.inf), strict=True)
            )
            yield level, low, high

    @property
    def name(self) -> str:
        """What a sum or mean is called in messages and reports."""
        return f"the {'mean' if self.mean else 'sum'} of {self.of!r}"


@unmasked
def column_total(
    of: object,
    equal: object = None,
    *,
    lower: object = -np.inf,
    upper: object = np.inf,
    rtol: float = 0.0,
    mean: bool | float = False,
) -> ColumnTotal:
    """Describe a total of a set of rows: a sum, a mean, or counts by category.

    Parameters
    ----------
    of : column, tuple of columns, or dict of column to float
        A column by name or number, for its sum or the counts of its levels; several,
        for the counts of their combinations; or coefficients, for the sum of
        ``coefficient * column``.
    equal : float, or dict or Series of level to float, default=None
        What is asked for. With levels (tuples of them for several columns) they are
        counts.
    lower, upper : float, or dict or Series of level to float
        Ends of an interval, in place of ``equal``.
    rtol : float, default=0
        Relative tolerance: how far from ``equal`` a total may be, as a share of it.
    mean : bool or float, default=False
        Whether it is the mean of the column that is asked for, or shares of levels:
        of all rows, so that those of other levels, and those whose cell is missing,
        have together what is left of 1. A number, without ``equal``, is the mean.

    Returns
    -------
    ColumnTotal

    See Also
    --------
    calibrate : Weights of rows that meet totals.
    ColumnConstraint : The same about each row.

    Examples
    --------
    >>> from sklearn_pnl import column_total
    >>> column_total("region", {"north": 400, "south": 600}, rtol=0.01).upper
    {'north': 404.0, 'south': 606.0}
    >>> column_total({"income": 1, "tax": -3}, lower=0).lower
    0.0
    """
    if not (isinstance(rtol, Real) and 0 <= rtol < 1):
        raise ValueError(
            "rtol must be 0 or more and below 1, a share of the total (.05 for 5%); "
            f"got {rtol!r}. For a wider interval give lower= and upper=."
        )
    if not isinstance(mean, bool | np.bool_) and mean != (equal is not None):
        # `mean=45` says what `45, mean=True` does.
        if equal is not None or np.any([lower != -np.inf, upper != np.inf]):
            raise ValueError(
                f"mean={mean!r} beside what is asked for: mean=True says that this is "
                "a mean."
            )
        equal, mean = mean, True
    if equal is None:
        rtol = 0.0
    elif np.any(np.asarray(lower) != -np.inf) or np.any(np.asarray(upper) != np.inf):
        raise ValueError("Give equal, or lower and upper; not both.")
    else:
        lower = upper = equal
    lower, upper = _read_ends(of, lower, -rtol), _read_ends(of, upper, rtol)
    of = dict(of) if isinstance(of, Mapping) else of
    total = ColumnTotal(of, lower, upper, bool(mean))
    if isinstance(of, dict) and not (
        of and all(isinstance(w, Real) and isfinite(w) for w in of.values())
    ):
        raise ValueError(f"Coefficients are finite numbers by column; got {of!r}.")
    if total.by_level and (isinstance(of, dict) or {} in (lower, upper)):
        raise ValueError(
            "Counts by level need a column, or a tuple of columns, and at least one "
            f"level; got {of!r} with {lower!r} to {upper!r}."
        )
    for level, low, high in total.intervals():
        is_open = (low, high) == (-np.inf, np.inf) and not total.by_level
        if is_open or not low <= high or np.inf in (low, -high):
            label = f"{of!r}" + f" of level {level!r}" * total.by_level
            raise ValueError(
                f"A total of {label} must lie in an interval: give equal, or lower <= "
                f"upper; got {low:g} to {high:g}."
            )
    return total


def _read_ends(of, ends, rtol):
    """A number, or a dict of level to number, widened by a share of itself."""
    if isinstance(of, tuple) and hasattr(ends, "reorder_levels"):
        # A contingency table, as pandas.crosstab makes it.
        ends = ends.T.unstack() if ends.ndim == 2 else ends
        if ends.index.nlevels > 1 and set(ends.index.names) == set(of):
            ends = ends.reorder_levels(of)

    def widened(end):
        # Without a tolerance infinity stays what it is.
        return float(end) + (rtol * abs(float(end)) if rtol else 0.0)

    ends = _as_dict(ends) if hasattr(ends, "items") else ends
    try:
        if isinstance(ends, dict):
            return {level: widened(end) for level, end in ends.items()}
        return widened(ends)
    except (TypeError, ValueError):
        raise ValueError(
            "A total must be a number, or a dict or Series of level to number; got "
            f"{ends!r}. It comes after its column: column_total('income', 3000)."
        ) from None


def _as_dict(totals):
    """A Series or mapping as a dict; no label of an index may come twice."""
    result = {}
    for label, total in totals.items():
        if label in result:
            raise ValueError(f"Totals name {label!r} more than once: sum them first.")
        result[label] = total
    return result


def as_totals(totals, names, row_shape):
    """Everything asked for, one :class:`ColumnTotal` each.

    Parameters
    ----------
    totals : mapping, ColumnTotal, sequence of them, or array-like of ``row_shape``
        As in :func:`~sklearn_pnl.calibrate`; an array asks for the sums of all columns.
    names : list or None
        Names of the columns.
    row_shape : tuple of int

    Returns
    -------
    list of ColumnTotal
    """
    check_unmasked(totals, "totals")
    if isinstance(totals, ColumnTotal):
        return [totals]
    if hasattr(totals, "items") and np.ndim(totals) < 2:
        if not len(totals):
            raise ValueError("totals is empty; ask for at least one.")
        return [
            value if isinstance(value, ColumnTotal) else column_total(of, value)
            for of, value in _as_dict(totals).items()
        ]
    if isinstance(totals, Sequence) and any(
        isinstance(total, ColumnTotal | Mapping) for total in totals
    ):
        return [one for total in totals for one in as_totals(total, names, row_shape)]
    try:
        sums = np.asarray(totals, dtype=np.float64)
    except (TypeError, ValueError):
        sums = np.empty(0)
    if sums.shape != row_shape or not np.isfinite(sums).all():
        raise ValueError(
            "totals must be a dict by column, made by column_total, or finite sums of "
            f"all columns, of shape {row_shape}; got {totals!r}."
        )
    return list(map(column_total, names or range(sums.size), sums.ravel()))


class ColumnReader:
    """Columns of a frame, array or sparse matrix by key: numbers, or levels.

    Attributes
    ----------
    names : list or None
        Of the columns.
    n_columns : int
    """

    def __init__(self, X):
        self._columns = columns_of(X)
        self.names, self.n_columns = self._columns.names, self._columns.n_columns

    def __len__(self):
        return len(self._columns)

    def terms(self, total):
        """Coefficients (1, n) of the weights of rows in a sum of columns.

        Sparse for a sparse matrix.
        """
        columns = ((self.numbers(key), w) for key, w in total.coefficients.items())
        row = sum(weight * numbers for numbers, weight in columns)[None]
        return csr_array(row) if self._columns.is_sparse else row

    def levels(self, key):
        """Values of a column as its users write them, a list."""
        column = self._columns.reader(self._place(key)).take(np.arange(len(self)))
        if not isinstance(column, np.ndarray):
            return nw.from_native(column, series_only=True).to_list()
        if column.dtype.kind in "mM":
            # Nanoseconds would be whole numbers.
            column = column.astype(f"{column.dtype.kind}8[us]")
        return column.tolist()

    def codes(self, keys, levels):
        """Which of some tuples of levels each row has (n,); -1 for none of them."""
        place = {
            level: k
            for k, level in enumerate(levels)
            if not any(map(is_missing, level))
        }
        rows = zip(*map(self.levels, keys), strict=True)
        return np.fromiter((place.get(row, -1) for row in rows), np.intp, len(self))

    def _place(self, key):
        return column_of(key, "totals", self.names, (self.n_columns,))

    def numbers(self, key):
        """A column of finite numbers (n,)."""
        values = self._columns.reader(self._place(key)).values
        if values is None or values.dtype.kind not in "biuf":
            raise ValueError(
                f"Totals are about numbers, but {key!r} holds no numbers; ask for "
                "counts by level."
            )
        numbers = values.astype(np.float64)
        for row in np.flatnonzero(~np.isfinite(numbers)):
            raise ValueError(
                f"Column {key!r} must hold numbers to be summed; row {row} is "
                f"{numbers[row]}. Impute it, or leave it out."
            )
        return numbers


@dataclass(frozen=True)
class Margin:
    """Counts by tuple of levels of one or more columns.

    Attributes
    ----------
    key : tuple
        The columns.
    name : str
        The same as its user wrote them.
    levels : tuple of tuple
    codes : ndarray of int of shape (n,)
        Which level each row has; -1 where it has none that is asked for.
    lower, upper : ndarray of shape (n_levels,)
    names : tuple of str
        What the count of each level is called.
    """

    key: tuple
    name: str
    levels: tuple
    codes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    names: tuple

    def indicators(self, codes):
        """Which rows have which level, a sparse array of shape (n_levels, n)."""
        rows = np.flatnonzero(codes >= 0)
        shape = len(self.levels), len(codes)
        return csr_array((np.ones(len(rows)), (codes[rows], rows)), shape=shape)


def name_level(key, level):
    """A level in words."""
    return ", ".join(f"{k}={v!r}" for k, v in zip(key, level, strict=True))


def read_margin(reader, total, n=None):
    """Counts by level that a total asks for.

    Parameters
    ----------
    reader : ColumnReader
    total : ColumnTotal
    n : int, default=None
        Number of rows that shares are of; None leaves them shares.

    Returns
    -------
    Margin
    """
    # A tuple is several columns, unless it is the name of one.
    is_several = isinstance(total.of, tuple) and total.of not in (reader.names or ())
    key = total.of if is_several else (total.of,)
    levels, *ends = zip(*total.intervals(), strict=True)
    lower, upper = map(np.array, ends)
    levels = levels if is_several else tuple((level,) for level in levels)
    for level in levels:
        if not isinstance(level, tuple) or len(level) != len(key):
            raise ValueError(
                f"Totals of {key} need tuples of {len(key)} levels; got {level!r}."
            )
    codes = reader.codes(key, levels)
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    for k in np.flatnonzero((counts == 0) & ((lower > 0) | (upper < 0))):
        known = [list(dict.fromkeys(reader.levels(name)))[:10] for name in key]
        raise ValueError(
            f"No row has {name_level(key, levels[k])}, for which "
            f"{max(lower[k], upper[k]):.10g} is asked; levels are compared as they "
            f"are, the first ones are {known}, and missing cells have none."
        )
    is_share = total.mean and n is None
    if total.mean and not is_share:
        lower, upper = n * lower, n * upper
    what = "the share of" if is_share else "the count of"
    names = tuple(f"{what} {name_level(key, level)}" for level in levels)
    return Margin(key, repr(total.of), levels, codes, lower, upper, names)
