"""Read totals of a set of rows: sums of numeric columns, and counts by level.

``column_total`` describes one total. ``calibrate`` reads totals as constraints on
weights of rows, and ``Totals`` reads totals of new rows. This module rejects totals
that no table can have, such as counts of unknown levels; ``sum_projection`` rejects
sums that the new rows cannot reach.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from math import isfinite
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from scipy.sparse import csr_array

from .._utils.blocks import observed_bounds
from .._utils.masked import check_plain, is_missing
from ..columns.constraints import (
    ALMOST,
    TOL,
    ColumnConstraint,
    LinearConstraints,
    read_constraints,
)
from ..frames.containers import column_of, columns_of
from ..geometry.convex.reach import nearest_values, span
from .sum_projection import Sums

# Sums up to this size can be squared by a solver.
_LARGEST_SUM = 1e150


@dataclass(frozen=True)
class ColumnTotal:
    """A total of a set of rows, as :func:`column_total` returns it.

    Attributes
    ----------
    of : column, tuple of columns, or dict of column to float
        The columns that are counted, or the coefficients of the columns that are
        summed.
    lower, upper : float, or both a dict of level to float
        Bounds of the total; they are equal for an exact total.
    mean : bool
        Whether the bounds apply to the weighted mean, or to shares of levels.

    See Also
    --------
    column_total : Describe a total.

    Examples
    --------
    >>> from sklearn_pnl.control import column_total
    >>> column_total("income", lower=2.8e6)
    ColumnTotal(of='income', lower=2800000.0, upper=inf, mean=False)
    """

    of: object
    lower: object
    upper: object
    mean: bool = False

    @property
    def by_level(self) -> bool:
        """Whether the total counts rows by level."""
        return isinstance(self.lower, dict)

    @property
    def coefficients(self) -> dict:
        """The coefficients of the columns of a sum."""
        return self.of if isinstance(self.of, dict) else {self.of: 1.0}

    def columns(self, names: Any) -> Any:
        """Return the summed or counted columns of a table with the given names."""
        if not self.by_level:
            return tuple(self.coefficients)
        # A tuple names several columns, unless one column has this name.
        is_several = isinstance(self.of, tuple) and self.of not in (names or ())
        return self.of if is_several else (self.of,)


def columns_shown(total, names):
    """Format the columns of a total for messages and reports.

    Positions in an array, which has no ``names``, are written as in constraints: x0.
    """
    if names is not None:
        return repr(total.of)
    if total.by_level and isinstance(total.of, tuple):
        return f"({', '.join(f'x{key}' for key in total.of)})"
    if isinstance(total.of, dict):
        return f"{{{', '.join(f'x{key}: {a!r}' for key, a in total.of.items())}}}"
    return f"x{total.of}"


def sum_name(total, names):
    """Return the name of a sum or mean in messages and reports."""
    return f"the {'mean' if total.mean else 'sum'} of {columns_shown(total, names)}"


def column_total(
    of: object,
    equal: object = None,
    *,
    lower: object = -np.inf,
    upper: object = np.inf,
    rtol: float = 0.0,
    mean: bool = False,
) -> ColumnTotal:
    """Describe a total of a set of rows: a sum, a mean, or counts by category.

    Parameters
    ----------
    of : column, tuple of columns, or dict of column to float
        A column, by name or position. Numbers as ``equal``, ``lower`` or ``upper``
        request the sum of the column; a dict or a Series requests counts of its levels.
        A tuple of columns requests counts of combinations of levels. A dict requests
        the sum of ``coefficient * column``.
    equal : float, or dict or Series of level to float, default=None
        The requested total. With levels (tuples of levels for several columns), the
        values are counts. None uses ``lower`` and ``upper``.
    lower, upper : float, or dict or Series of level to float, default=-inf, inf
        Bounds of an interval, instead of ``equal``.
    rtol : float, default=0
        Relative tolerance: the total may differ from ``equal`` by this share of
        ``equal``.
    mean : bool, default=False
        If True, the values are means of numeric columns, or shares of levels. Means are
        over the cells that are not missing. Shares are of all rows, including rows with
        a missing cell. If :func:`~sklearn_pnl.control.calibrate` gets only means and
        shares, its weights keep the sum of the design weights.

    Returns
    -------
    total : ColumnTotal
        The total, for :func:`~sklearn_pnl.control.calibrate` and for the ``totals`` of
        samplers.

    See Also
    --------
    calibrate : Compute weights of rows that satisfy totals.
    ColumnConstraint : A linear constraint on each row.

    Examples
    --------
    >>> from sklearn_pnl.control import column_total
    >>> column_total("region", {"north": 400, "south": 600}, rtol=0.01).upper
    {'north': 404.0, 'south': 606.0}
    >>> column_total({"income": 1, "tax": -3}, lower=0).lower
    0.0
    """
    if not (isinstance(rtol, Real) and 0 <= rtol < 1):
        raise ValueError(
            f"rtol must be a share of the total, at least 0 and below 1; got {rtol!r}."
        )
    if equal is None:
        rtol = 0.0
    elif np.any(np.asarray(lower) != -np.inf) or np.any(np.asarray(upper) != np.inf):
        raise ValueError(
            f"column_total({of!r}, ...) got both equal= and lower= or upper=. Pass "
            "either equal, or lower and upper."
        )
    else:
        lower = upper = equal
    bounds = [_read_bounds(of, lower, -rtol), _read_bounds(of, upper, rtol)]
    by_level = any(isinstance(bound, dict) for bound in bounds)
    if isinstance(of, Mapping):
        of = dict(of)
        is_finite = all(isinstance(w, Real) and isfinite(w) for w in of.values())
        if by_level or not of or not is_finite:
            raise ValueError(
                f"Coefficients of a sum must be finite, one per column; got {of!r}. "
                "Request counts by level for a column, or for a tuple of columns."
            )
    if by_level:
        levels = dict.fromkeys(
            x for bound in bounds if isinstance(bound, dict) for x in bound
        )
        # A number is a bound for all levels.
        bounds = [
            {
                x: bound.get(x, free) if isinstance(bound, dict) else bound
                for x in levels
            }
            for bound, free in zip(bounds, (-np.inf, np.inf), strict=True)
        ]
    pairs = [
        *zip(
            *(bound.values() if by_level else [bound] for bound in bounds), strict=True
        )
    ]
    is_open = not pairs or (pairs == [(-np.inf, np.inf)] and not by_level)
    if is_open or any(not low <= high or np.inf in (low, -high) for low, high in pairs):
        raise ValueError(
            f"The total for {of!r} must be a nonempty interval; got {bounds[0]} to "
            f"{bounds[1]}. Pass equal, or lower <= upper."
        )
    return ColumnTotal(of, *bounds, bool(mean))


def _read_bounds(of, bounds, rtol):
    """Return a number, or a dict of level to number, widened by a share of itself."""
    if isinstance(of, tuple) and hasattr(bounds, "reorder_levels"):
        # A contingency table, as pandas.crosstab makes it.
        bounds = bounds.T.unstack() if bounds.ndim == 2 else bounds
        if bounds.index.nlevels > 1 and set(bounds.index.names) == set(of):
            bounds = bounds.reorder_levels(of)

    def widened(bound):
        # Zero times infinity would be NaN.
        return float(bound) + (rtol * abs(float(bound)) if rtol else 0.0)

    bounds = _as_dict(bounds) if hasattr(bounds, "items") else bounds
    try:
        if isinstance(bounds, dict):
            return {level: widened(bound) for level, bound in bounds.items()}
        return widened(bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"The total for {of!r} must be a number, or a dict or Series of level to "
            f"number; got {bounds!r}. Convert times to numbers, for example days."
        ) from None


def _as_dict(totals):
    """Convert a Series or mapping to a dict; refuse labels that occur twice."""
    result = {}
    for label, total in totals.items():
        if label in result:
            raise ValueError(
                f"totals contains {label!r} more than once. Sum its totals first."
            )
        result[label] = total
    return result


def as_totals(totals, names, row_shape):
    """Return one :class:`ColumnTotal` for each requested total.

    Parameters
    ----------
    totals : mapping, ColumnTotal, sequence of them, or array-like of ``row_shape``
        As in :func:`~sklearn_pnl.control.calibrate`. An array contains the sums of all
        columns.
    names : list or None
        Names of the columns.
    row_shape : tuple of int

    Returns
    -------
    list of ColumnTotal
    """
    check_plain(totals, "totals")
    if isinstance(totals, ColumnTotal):
        return [totals]
    if hasattr(totals, "items") and np.ndim(totals) < 2:
        if not len(totals):
            raise ValueError("totals is empty. Request at least one total.")
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
            "totals must be a dict of column to total, results of column_total, or "
            f"finite sums of all columns, of shape {row_shape}; got {totals!r}."
        )
    return list(map(column_total, names or range(sums.size), sums.ravel()))


def _reader(columns, key):
    """Return the reader of a column that a total names."""
    return columns.reader(column_of(key, "totals", columns.names, (columns.n_columns,)))


def read_sum(columns, total):
    """Convert a sum of columns to a constraint on weights of rows.

    The coefficients are sparse for a sparse matrix.

    Parameters
    ----------
    columns : object
        The result of :func:`~sklearn_pnl.frames.containers.columns_of`.
    total : ColumnTotal
    """
    terms = np.zeros((1, len(columns)))
    for key, weight in total.coefficients.items():
        values = _reader(columns, key).values
        if values is None or values.dtype.kind not in "biuf":
            raise ValueError(
                f"Column {key!r} is not numeric and has no sum. Request counts by "
                "level, or convert times to numbers, for example days."
            )
        is_finite = np.isfinite(values)
        if not is_finite.all():
            row = int(np.argmin(is_finite))
            raise ValueError(
                f"Column {key!r} contains {values[row]} in row {row}, so that its sum "
                "is undefined. Impute this value, or drop the row."
            )
        if np.abs(values.astype(np.float64)).max() > _LARGEST_SUM / len(values):
            raise ValueError(
                f"The sum of column {key!r} may overflow float64. Divide the column "
                "by a constant."
            )
        terms += weight * values.astype(np.float64)
    terms = csr_array(terms) if columns.is_sparse else terms
    bounds = [total.lower], [total.upper]
    labels = (sum_name(total, columns.names),)
    return LinearConstraints(terms, *bounds, (), labels=labels)


def levels_of(columns, key):
    """Return the values of a column as a list, times as ``datetime``."""
    values = _reader(columns, key).take(np.arange(len(columns)))
    if not isinstance(values, np.ndarray):
        return nw.from_native(values, series_only=True).to_list()
    if values.dtype.kind in "mM":
        # tolist would convert nanoseconds to integers, which no level equals.
        times = values.astype(f"{values.dtype.kind}8[us]")
        values = times if np.all((values == times) | np.isnat(values)) else values
    return values.tolist()


def _is_time(value):
    kinds = date, timedelta, np.datetime64, np.timedelta64
    return isinstance(value, kinds) and not is_missing(value)


def read_counts(columns, total, n=None):
    """Convert requested counts by level to constraints on weights of rows.

    Parameters
    ----------
    columns : object
        The result of :func:`~sklearn_pnl.frames.containers.columns_of`.
    total : ColumnTotal
    n : int, default=None
        Number of rows, which converts shares to counts. None keeps shares.

    Returns
    -------
    counts : LinearConstraints
        The sparse coefficients are 1 in the rows of each level.
    codes : ndarray of int of shape (n_rows,)
        Position of the level of each row; -1 if its level is not in the total.
    """
    key, levels = total.columns(columns.names), [*total.lower]
    lower, upper = (np.array([*end.values()]) for end in (total.lower, total.upper))
    if key is not total.of:
        levels = [(level,) for level in levels]
    for level in levels:
        if not isinstance(level, tuple) or len(level) != len(key):
            raise ValueError(
                f"Each level in the totals of {key} must be a tuple of {len(key)} "
                f"levels; got {level!r}."
            )
        if any(map(is_missing, level)):
            raise ValueError(
                f"The totals of {columns_shown(total, columns.names)} contain the "
                f"level {level!r}, but a missing cell has no level. Leave out this "
                "level, so that the number of rows without a value is free, or fill "
                "the cells with another level."
            )
    pairs = [zip(key, level, strict=True) for level in levels]
    sign = "x" if columns.names is None else ""
    names = [", ".join(f"{sign}{k}={v!r}" for k, v in pair) for pair in pairs]
    values = [levels_of(columns, name) for name in key]
    place = {x: k for k, x in enumerate(levels)}
    codes = np.array([place.get(row, -1) for row in zip(*values, strict=True)], np.intp)
    indices = np.flatnonzero(codes >= 0)
    counts = np.bincount(codes[indices], minlength=len(levels))
    # A time that no row has may have another type than the times of the column.
    is_time = np.array([any(map(_is_time, level)) for level in levels], bool)
    unknown = (counts == 0) & ((lower > 0) | (upper < 0) | is_time)
    if unknown.any():
        k = int(np.argmax(unknown))
        known = " and ".join(str([*dict.fromkeys(column)][:10]) for column in values)
        raise ValueError(
            f"No row has {names[k]}, but totals request "
            f"{span(lower[k], upper[k])}. Use levels that occur, with their type; the "
            f"first levels are {known}."
        )
    what = "the share of" if total.mean and n is None else "the count of"
    if total.mean and n is not None:
        lower, upper = n * lower, n * upper
    shape = len(levels), len(codes)
    has = csr_array((np.ones(len(indices)), (codes[indices], indices)), shape=shape)
    labels = tuple(f"{what} {name}" for name in names)
    return LinearConstraints(has, lower, upper, (), labels=labels), codes


def check_level_sum(total, counts, n_others, full, names):
    """Check that counts can sum to the number of rows, or shares to 1.

    Parameters
    ----------
    total : ColumnTotal
    counts : LinearConstraints
        The counts or shares of the levels.
    n_others : int
        Number of training rows with another level or without a value.
    full : float or None
        Number of rows, or 1 for shares; None if the sum is free.
    names : list or None
        Names of the columns.
    """
    if full is None:
        return
    least, most = counts.lower.sum(), counts.upper.sum()
    room, unit = 1e-9 * full, 1.0
    what, rows = "counts", f"there are {full:.10g} new rows"
    if total.mean:
        what, rows, unit = "shares", "all shares together are 1", full
    sums = f"The {what} of the levels of {columns_shown(total, names)} sum to"
    if least > full + room:
        raise ValueError(
            f"{sums} {least / unit:.10g}, but {rows}: they must sum to "
            f"{full / unit:.10g} or less. Reduce some of the {what}."
        )
    if not n_others and most < full - room:
        raise ValueError(
            f"{sums} {most / unit:.10g}, but {rows} and no row has another level: they "
            f"must sum to {full / unit:.10g}. Increase some of the {what}, or leave "
            "out a level, which is then free."
        )


# --- new rows ---------------------------------------------------------------------


@dataclass(frozen=True)
class Totals:
    """The requested totals of ``n`` new rows.

    Attributes
    ----------
    n : int
    sums : Sums
        Requested sums and means of numeric columns.
    is_mean : ndarray of bool of shape (k, 1)
        Which of the sums are means.
    counts : LinearConstraints
        The number of rows and the counts by category, on weights of the training rows.
    codes : ndarray of int of shape (n_train, 1 + n_counted)
        A column of zeros, and the levels of the training rows for each counted column.
    counted : list of str
        Names of the counted columns.
    """

    n: int
    sums: Sums
    is_mean: np.ndarray
    counts: LinearConstraints
    codes: np.ndarray
    counted: list

    @classmethod
    def read(cls, totals, n, table, numbers, discrete=False):
        """Read totals of ``n`` new rows.

        Parameters
        ----------
        totals : object
            As in :func:`~sklearn_pnl.control.calibrate`.
        n : int
        table : Table
        numbers : ndarray of shape (n_train, D)
            Numeric values of the rows of the table.
        discrete : bool or ndarray of bool of shape (D,), default=False
            Columns whose values in new rows are always values of training rows, so that
            rows can be counted by value.
        """
        m, columns, discrete = len(numbers), None, discrete & (table.starts == 0)
        rows, codes = np.ones((1, m)), [np.zeros(m, int)]
        counts = [LinearConstraints(rows, [n], [n], (), labels=("the number of rows",))]
        sums, counted = [], []
        for total in as_totals(totals, table.names, table.row_shape):
            keys = total.columns(table.names)
            given = [table.column_of(key, "totals") for key in keys]
            places = np.flatnonzero(np.isin(table.columns, given))
            if not total.by_level and table.times[places].any():
                raise ValueError(
                    f"totals cannot contain {sum_name(total, table.names)}, because "
                    "times have no unit. Convert times to numbers, for example days."
                )
            if not total.by_level:
                counted_sum = None
                if discrete[places].all():
                    a = _coefficients([total], table)[0, places]
                    values = numbers[:, places] @ a
                    counted_sum = _as_count(values, total, n, table.names)
                if counted_sum is None:
                    sums.append(total)
                    continue
                part, code = counted_sum
                counts.append(part)
                codes.append(code)
                counted.append(columns_shown(total, table.names))
                continue
            if columns is None:
                columns = columns_of(table.like(numbers.copy(), np.arange(m)))
            part, code = _integer_counts(columns, total, n)
            n_others = np.count_nonzero(code < 0)
            check_level_sum(total, part, n_others, n, table.names)
            counts.append(part)
            codes.append(code)
            counted.append(columns_shown(total, table.names))
            if not discrete[places].all():
                raise ValueError(
                    f"totals cannot count the values of {counted[-1]}, because new "
                    "rows can have new values. Add the column to categorical_features."
                )
        a = _coefficients(sums, table)
        _check_exact(sums, a, table)
        is_mean = np.array([total.mean for total in sums], bool)[:, None]
        bounds = (
            np.array([(total.lower, total.upper) for total in sums]).reshape(-1, 2).T
        )
        names = tuple(sum_name(total, table.names) for total in sums)
        ranges = np.subtract(*observed_bounds(numbers)[::-1])
        of_all = Sums(a, *bounds, table.feature_names, ranges, names)
        counts = counts[0].stack(*counts[1:])
        return cls(n, of_all, is_mean, counts, np.column_stack(codes), counted)

    @cached_property
    def cells(self):
        """The first training row of each cell, and the cell of each training row.

        Rows of a cell have equal levels in all counted columns.
        """
        _, first, cell = np.unique(
            self.codes, axis=0, return_index=True, return_inverse=True
        )
        return first, cell.reshape(-1)

    def with_row_values(self, values, requested, label):
        """Return totals that count the rows with the values requested of each row.

        Parameters
        ----------
        values : ndarray of shape (n_train, k)
            Values of discrete sums in the training rows.
        requested : ndarray of shape (n, k)
            The values that each new row must have.
        label : str

        Returns
        -------
        totals : Totals
            Unchanged if no training row has some of the values.
        codes : tuple of ndarray of int of shape (n_train,) and (n,)
            Equal codes stand for equal values.
        """
        both = np.vstack([values, requested])
        codes = np.unique(both, axis=0, return_inverse=True)[1].ravel()
        codes = np.split(codes, [len(values)])
        if not np.isin(codes[1], codes[0]).all():
            return self, (np.zeros_like(codes[0]), np.zeros_like(codes[1]))
        levels, place = np.unique(codes[0], return_inverse=True)
        entries = np.ones(len(place)), (place, np.arange(len(place)))
        wanted = (codes[1] == levels[:, None]).sum(axis=1)
        labels = (f"the count of rows with some {label}",) * len(levels)
        part = LinearConstraints(csr_array(entries), wanted, wanted, (), labels=labels)
        totals = replace(
            self,
            counts=self.counts.stack(part),
            codes=np.column_stack([self.codes, codes[0]]),
            counted=[*self.counted, label],
        )
        return totals, codes

    def sums_of(self, rows):
        """Return the sums; means allow for the missing cells of rows (m, D)."""
        present = self.n * np.maximum(np.mean(~np.isnan(rows), axis=0), 1e-9)
        a = self.sums.coefficients / np.where(self.is_mean, present, 1.0)
        return replace(self.sums, coefficients=a)

    def achieved(self, rows, base_rows):
        """Return the achieved values and the residuals of all requested totals.

        Parameters
        ----------
        rows : ndarray of shape (n, D)
            Numeric values; NaN adds nothing.
        base_rows : ndarray of int of shape (n,)
            Base row of each new row, from which the new row takes its categories.

        Returns
        -------
        names : tuple of str of length k
        lower, upper, values, residual : ndarray of shape (k,)
            The residual of a sum is a share of its absolute terms.
        """
        sums, counts = self.sums_of(rows), self.counts.select(slice(1, None))
        of_sums = sums.lower, sums.upper, sums.of(rows), sums.share_missed(rows)
        terms = counts.coefficients[:, base_rows]
        n_rows, size = terms.sum(axis=1), abs(terms).sum(axis=1)
        missed = np.abs(counts.missing(n_rows))
        # Sums of decimals have rounding errors.
        missed[missed <= TOL * size] = 0.0
        of_counts = counts.lower, counts.upper, n_rows, missed
        both = zip(of_sums, of_counts, strict=True)
        return (*sums.names, *counts.names), *map(np.concatenate, both)


def _coefficients(totals, table):
    """Return the coefficients (k, D) of sums."""
    requested = [ColumnConstraint(total.coefficients, lower=0) for total in totals]
    return read_constraints(requested, table).coefficients


def _check_exact(sums, a, table):
    """Reject sums of integers that float64 rounds."""
    for total, terms in zip(sums, a, strict=True):
        bounds = np.array([total.lower, total.upper])
        largest = np.abs(bounds[np.isfinite(bounds)]).max()
        if largest > 2**53 and not table.precision[terms != 0].any():
            raise ValueError(
                f"{sum_name(total, table.names)} is {largest:.16g}, but float64 rounds "
                "integers beyond 2 ** 53. Divide the columns by a constant, or "
                "subtract a constant from each row."
            )


def _integer_counts(columns, total, n):
    """Return counts by level with integer bounds of at least 0, and the codes."""
    counts, codes = read_counts(columns, total, n)
    lower = np.ceil(np.maximum(counts.lower, 0) - ALMOST) + 0.0
    upper = np.floor(np.minimum(counts.upper, n) + ALMOST)
    if (lower > upper).any():
        k = int(np.argmax(lower > upper))
        request = "one of these counts, a share (column_total(..., mean=True))"
        if total.mean:
            request = "the share of one of these counts"
        raise ValueError(
            f"{counts.requirement(k)}, but counts of {n} new rows are integers from 0 "
            f"to {n}. Request {request}, or an interval (column_total(..., rtol=))."
        )
    return replace(counts, lower=lower, upper=upper), codes


def _as_count(values, total, n, names):
    """Return the sum of discrete values (m,) as a sum over the base rows, and codes.

    Return None if missing values make the mean depend on the rows, or if all values are
    equal.
    """
    is_missing, levels = np.isnan(values), np.unique(values[~np.isnan(values)])
    if len(levels) < 2 or (total.mean and is_missing.any()):
        return None
    name = sum_name(total, names)
    bounds = np.array([total.lower, total.upper]) * (n if total.mean else 1)
    # Sums of integers, or of two different values, are on a grid.
    start, step = 0.0, float(not (levels % 1).any())
    if len(levels) == 2 and not is_missing.any():
        start, step = n * levels[0], levels[1] - levels[0]
    if step:
        least, most = (bounds - start) / step
        least, most = np.ceil(least - ALMOST), np.floor(most + ALMOST)
        if least > most:
            near = start + step * np.array([most, least])
            # Cells that are missing add 0 to a sum.
            low, high = (n * bound for bound in (np.nanmin(values), np.nanmax(values)))
            low, high = (min(low, 0), max(high, 0)) if is_missing.any() else (low, high)
            near = np.unique(np.clip(near, low, high) / (n if total.mean else 1))
            advice = "one of these values" if len(near) > 1 else "this value"
            raise ValueError(
                f"{name} must be {span(total.lower, total.upper)}, but the "
                f"{nearest_values(f'{n} new rows', near)}. Request {advice}, or an "
                "interval that contains it: column_total(..., lower=, upper=)."
            )
        bounds = start + step * np.array([least, most])
    values = np.where(is_missing, 0.0, values)
    row = LinearConstraints(values[None], *bounds[:, None], (), labels=(name,))
    return row, np.unique(values, return_inverse=True)[1].reshape(-1)
