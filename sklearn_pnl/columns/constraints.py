"""Represent linear equalities and intervals of the columns of a row.

``ColumnConstraint`` describes one constraint by the names of columns.
``LinearConstraints`` holds several constraints as one matrix. ``read_constraints``
checks all kinds of constraints, and converts them to the numeric values of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, TypeAlias
from warnings import catch_warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array, issparse, vstack

from .._utils.masked import check_plain
from .._utils.validation import errors_naming
from ..frames import TableReader, read_table
from ..geometry.convex.reach import span

# Tolerances of a constraint: a share of the range of its largest term (for sums over
# all rows, of the absolute terms), and a number of roundings of the largest values.
TOL, ROUNDINGS = 1e-9, 16
# Share of a step, or of a value that other columns give, that counts as rounding.
ALMOST = 1e-6
EPS = float(np.finfo(float).eps)


class Infeasibility(ValueError):
    """Error for constraints that a row, or a set of rows, cannot satisfy.

    Parameters
    ----------
    message : str
    row : int, default=None
        Index of the first infeasible row; None for totals of all rows.

    See Also
    --------
    ColumnConstraint : A constraint on each row.
    adjust : Move rows to constraints.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class ColumnConstraint:
    """A linear constraint on each row, with columns by name.

    Each row must satisfy ``lower <= sum of coefficient * column <= upper``.

    Parameters
    ----------
    coefficients : dict of column to float, or column
        Coefficient of each column. A column is a name, a position among the columns of
        ``X``, or, if rows have several axes, the tuple of indices of a cell. A single
        column has the coefficient 1.
    lower, upper : float, date, duration or array-like of shape (n,), default=-inf, inf
        Bounds of the sum: one value for all rows, or one value per row. A column of
        dates is compared with dates (``pd.Timestamp``, ``np.datetime64``,
        ``datetime``), which have a time zone if the column has a time zone. A
        difference of two dates is compared with durations, or with 0.
    equal : float, date, duration or array-like of shape (n,), default=None
        Value of both bounds, for an equality. None uses ``lower`` and ``upper``.

    See Also
    --------
    LinearConstraints : Several constraints as one matrix.
    adjust : Move rows so that they satisfy constraints.
    PNLAugmenter : Generate new rows that satisfy constraints.

    Examples
    --------
    >>> from sklearn_pnl.control import ColumnConstraint
    >>> ColumnConstraint({"total": 1, "tax": -5}, lower=0)
    ColumnConstraint({'total': 1.0, 'tax': -5.0}, lower=0.0, upper=inf)
    >>> ColumnConstraint("income", equal=3000)
    ColumnConstraint({'income': 1.0}, lower=3000.0, upper=3000.0)
    """

    def __init__(
        self,
        coefficients: dict[Any, float] | str | int | tuple,
        *,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        equal: ArrayLike | None = None,
    ) -> None:
        is_dict = isinstance(coefficients, dict)
        self.coefficients: dict[Any, float] = {}
        with suppress(TypeError, ValueError):
            by_column = coefficients if is_dict else {coefficients: 1}
            self.coefficients = {key: float(a) for key, a in by_column.items()}
        if not self.coefficients:
            raise ValueError(
                "coefficients of a ColumnConstraint must be a column (its name or "
                f"position) or a dict of column to number; got {coefficients!r}."
            )
        bounds = {"lower": lower, "upper": upper, "equal": equal}
        # Series are read by position; `adjust`, which has X, compares their index.
        self.labelled = {
            k: bound for k, bound in bounds.items() if hasattr(bound, "reindex")
        }
        self.lower, self.upper = _read_end(lower, "lower"), _read_end(upper, "upper")
        is_open = np.isinf(self.lower).all() and np.isinf(self.upper).all()
        if is_open == (equal is None):
            raise ValueError(
                f"The ColumnConstraint on {self.coefficients} needs either equal=, or "
                f"lower= or upper=; got {'none' if equal is None else 'both'}."
            )
        if equal is not None:
            self.lower = self.upper = _read_end(equal, "equal")
        self.has_zone = "M" in (self.lower.dtype.kind, self.upper.dtype.kind) and any(
            getattr(date, "tzinfo", None) is not None
            for bound in bounds.values()
            for date in np.ravel(np.asarray(bound, dtype=object))
        )

    def __repr__(self):
        bounds = f"lower={self.lower}, upper={self.upper}"
        return f"ColumnConstraint({self.coefficients}, {bounds})"


def _read_end(values, name):
    """Convert a bound to an array of floats, dates or durations."""
    check_plain(values, name)
    with errors_naming(f"{name}= of a ColumnConstraint"):
        array = np.asarray(values)
    if array.dtype == object:
        # asm8 preserves the nanoseconds of pandas times.
        as_numpy = np.vectorize(lambda value: getattr(value, "asm8", value), "O")
        array = np.asarray(as_numpy(array).tolist())
    for dtype in () if array.dtype.kind in "mMU" else ("f8", "M8[us]", "m8[us]"):
        # NumPy warns that times with a zone become UTC.
        with suppress(TypeError, ValueError), catch_warnings(action="ignore"):
            array = array.astype(dtype)
            break
    if array.dtype.kind not in "fmM" or array.ndim > 1 or np.isnan(array).any():
        raise ValueError(
            f"{name}= of a ColumnConstraint must be a number, a date, a duration, or a "
            f"1D array without missing values; got {np.ravel(array)[:3]}. Write "
            "dates as pandas.Timestamp('2024-01-31'), and request categories by "
            "totals={column: {level: count}}."
        )
    return array


@dataclass(frozen=True, repr=False)
class LinearConstraints:
    """Equalities and intervals ``lower <= coefficients @ x <= upper`` of rows ``x``.

    Parameters
    ----------
    coefficients : array-like of shape (k, D)
        One constraint per row, one column of the table per column.
    lower, upper : float or array-like of shape (k,) or (n, k)
        Bounds of the sums, for all rows or separately for each row. A scalar applies to
        all constraints. An equality has two equal bounds.
    feature_names : tuple of str of length D
        Names of the columns.
    ranges : ndarray of shape (D,), default=None
        Range of each column in the rows that the constraints were found in. Violations
        are shares of the ranges. None uses 1.
    labels : tuple of str of length k, default=None
        Names of the sums in messages and reports. None writes each sum as a formula.

    See Also
    --------
    ColumnConstraint : One constraint, with columns by name.
    find_equalities : Find equalities that all rows satisfy.
    scipy.optimize.LinearConstraint : Linear constraints without names of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.control import LinearConstraints
    >>> total = LinearConstraints(
    ...     np.array([[1.0, 1, -1]]), np.zeros(1), np.zeros(1), ("a", "b", "total")
    ... )
    >>> total
    1 equality of 3 features
      total = a + b
    >>> total.violation(np.array([[1.0, 2, 3], [1, 2, 4]]))
    array([1.])
    """

    coefficients: NDArray
    lower: NDArray
    upper: NDArray
    feature_names: tuple
    ranges: NDArray | None = None
    labels: tuple | None = None

    def __post_init__(self):
        a, lower, upper = self.coefficients, self.lower, self.upper
        a = a if issparse(a) else np.asarray(a, dtype=np.float64)
        lower = np.asarray(lower, dtype=np.float64)
        upper = np.asarray(upper, dtype=np.float64)
        # As in scipy.optimize.LinearConstraint, a scalar applies to all constraints.
        lower = np.full(a.shape[:1], lower) if lower.ndim == 0 else lower
        upper = np.full(a.shape[:1], upper) if upper.ndim == 0 else upper
        object.__setattr__(self, "coefficients", a)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        k, d = a.shape if a.ndim == 2 else (-1, 0)
        named = self.labels is not None or len(self.feature_names) == d
        if lower.shape[-1:] != (k,) or upper.shape[-1:] != (k,) or not named:
            raise ValueError(
                "LinearConstraints needs coefficients of shape (k, D), lower and upper "
                "of shape (k,) or (n, k), and D feature_names; got "
                f"{a.shape}, {lower.shape}, {upper.shape} and "
                f"{len(self.feature_names)} names."
            )

    @classmethod
    def empty(cls, feature_names: Sequence[str]) -> LinearConstraints:
        """Return a system without constraints on columns with the given names."""
        bounds = np.empty(0), np.empty(0)
        return cls(np.empty((0, len(feature_names))), *bounds, tuple(feature_names))

    def __len__(self):
        return self.coefficients.shape[0]

    def __repr__(self):
        one, several = "constraint", "constraints"
        if self.is_equality.all():
            one, several = "equality", "equalities"
        noun = one if len(self) == 1 else several
        head = f"{len(self)} {noun} of {len(self.feature_names)} features"
        return "\n".join([head, *(f"  {line}" for line in self.descriptions)])

    @property
    def is_equality(self) -> NDArray:
        """A mask (k,) of the constraints that are equalities in all rows."""
        return np.logical_and.reduce(np.atleast_2d(self.lower == self.upper), axis=0)

    @property
    def names(self) -> list[str]:
        """The formulas or labels of the sums, as shown in messages."""
        if self.labels is not None:
            return [*self.labels]
        return [linear_form(a, self.feature_names) for a in self.coefficients]

    def requirement(self, k: int) -> str:
        """Describe the interval of constraint ``k``, which is the same for all rows."""
        return f"{self.names[k]} must be {span(self.lower[k], self.upper[k])}"

    @property
    def descriptions(self) -> tuple[str, ...]:
        """The constraints as formulas, such as ``"total = a + b"``."""
        if np.ndim(self.lower) > 1 or np.ndim(self.upper) > 1:
            return tuple(self.names)
        bounds = self.lower, self.upper
        each = zip(self.names, self.coefficients, *bounds, strict=True)
        names = self.feature_names if self.labels is None else ()
        return tuple(_in_words(*one, names) for one in each)

    @cached_property
    def scale(self) -> NDArray:
        """The range (k,) of the largest term of each sum; 1 if no column varies."""
        ranges = 1.0 if self.ranges is None else self.ranges
        scale = (np.abs(self.coefficients) * ranges).max(axis=1, initial=0.0)
        return np.where(scale > 0, scale, 1.0)

    def residual(self, rows: NDArray) -> NDArray:
        """Compute the signed distances (n, k) of rows (n, D) to the intervals.

        A distance is positive below an interval, negative above it, and NaN if a cell
        is missing.
        """
        return self.missing(self.values_of(rows))

    def values_of(self, rows: NDArray) -> NDArray:
        """Compute the sums (n, k) of rows (n, D), which are NaN if a cell is NaN."""
        gaps = np.isnan(rows)
        has_gaps = gaps.any()
        # A copy would take longer than the product.
        cells = np.where(gaps, 0.0, rows) if has_gaps else rows
        values = cells @ self.coefficients.T
        if has_gaps:
            values[gaps @ (self.coefficients != 0).T] = np.nan
        return values

    def missing(self, values: NDArray) -> NDArray:
        """Compute the signed distances of values of the sums to the intervals."""
        return np.maximum(self.lower - values, 0) - np.maximum(values - self.upper, 0)

    def violations(self, rows: NDArray, room: Any = None, inside: bool = True) -> Any:
        """Return the mask (n, k) of constraints missed by more than ``room``.

        If ``room`` is None, rounding is tolerated in equalities, and in inequalities
        unless ``inside``. A missing cell violates equalities, but no inequality.
        """
        missed = np.abs(self.residual(rows))
        equal = np.broadcast_to(self.lower == self.upper, missed.shape)
        if room is None:
            room = np.where(equal | (not inside), self.rounding(rows), 0.0)
        return (missed > room) | (np.isnan(missed) & equal)

    def rounding(self, rows: NDArray, precision: float | NDArray = EPS) -> NDArray:
        """Return the tolerances (n, k): rounding of cells plus 1e-9 of the scale."""
        terms = np.abs(self.coefficients) * precision
        size = np.fmax(np.abs(rows), 0) @ terms.T
        return TOL * self.scale + ROUNDINGS * size

    def violation(self, X: ArrayLike) -> NDArray:
        """Compute the largest violation of each constraint, as a share of its scale.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, D)
            Rows with the columns of the constraints.

        Returns
        -------
        violation : ndarray of shape (k,)
            The largest violation; rows with missing cells are ignored.
        """
        table = read_table(TableReader(), X, missing=True)
        missed = np.abs(read_constraints(self, table).residual(table.numbers()))
        return np.fmax.reduce(missed, axis=0, initial=0.0) / self.scale

    def select(self, which: slice | NDArray) -> LinearConstraints:
        """Return some of the constraints."""
        bounds = self.lower[..., which], self.upper[..., which]
        labels = self.labels and tuple(np.array(self.labels, object)[which])
        own = self.coefficients[which], *bounds, self.feature_names, self.ranges
        return LinearConstraints(*own, labels)

    def take_rows(self, rows: slice | NDArray) -> LinearConstraints:
        """Return the constraints of some rows, where each row has its own bounds."""
        bounds = (self.lower, self.upper)
        lower, upper = (bound[rows] if bound.ndim > 1 else bound for bound in bounds)
        return replace(self, lower=lower, upper=upper)

    def stack(self, *others: LinearConstraints) -> LinearConstraints:
        """Append other constraints on the same columns."""
        systems, labels = (self, *others), None
        if any(system.labels is not None for system in systems):
            labels = tuple(name for system in systems for name in system.names)
        bounds = []
        for each in ([s.lower for s in systems], [s.upper for s in systems]):
            # Some systems have one bound per row.
            n = np.broadcast_shapes(*(bound.shape[:-1] for bound in each))
            each = [np.broadcast_to(bound, (*n, bound.shape[-1])) for bound in each]
            bounds.append(np.concatenate(each, axis=-1))
        a = stack_terms([system.coefficients for system in systems])
        return LinearConstraints(a, *bounds, self.feature_names, self.ranges, labels)


def stack_terms(parts):
    """Stack coefficients; the result is sparse if a part is, with many zeros."""
    n_filled = sum(p.nnz if issparse(p) else np.count_nonzero(p) for p in parts)
    n_entries = sum(p.shape[0] * p.shape[1] for p in parts)
    # With more filled cells, dense products are faster.
    if 5 * n_filled > n_entries or not any(map(issparse, parts)):
        return np.vstack([p.toarray() if issparse(p) else p for p in parts])
    return vstack([csr_array(p) for p in parts], format="csr")


# --- formulas ---------------------------------------------------------------------


def linear_form(a, names):
    """Format a sum as ``2 a - b``; sums of more than 12 terms are shortened."""
    columns, text = np.flatnonzero(a), ""
    n_shown = len(columns) if len(columns) <= 12 else 10
    for j in columns[:n_shown]:
        sign = (" - " if a[j] < 0 else " + ") if text else "-" * int(a[j] < 0)
        size = "" if abs(a[j]) == 1 else f"{abs(a[j]):.12g} "
        text += f"{sign}{size}{names[j]}"
    if n_shown < len(columns):
        text += f" + ... + {names[columns[-1]]} ({len(columns)} features)"
    return text or "a sum of no features"


def _in_digits(number):
    """Format a number with 12 digits, or an integer with all digits of float64."""
    return f"{number:.{16 if number % 1 == 0 else 12}g}"


def _in_words(form, a, lower, upper, names):
    """Format a constraint as an interval, or as an equality solved for one column."""
    if lower != upper:
        left = "" if np.isinf(lower) else f"{_in_digits(lower)} <= "
        right = "" if np.isinf(upper) else f" <= {_in_digits(upper)}"
        return f"{left}{form}{right}"
    # If only one column has its sign, the equality is solved for this column.
    for sign in (-1, 1) if names else ():
        same_sign = np.flatnonzero(a * sign > 0)
        if len(same_sign) == 1 < np.count_nonzero(a):
            k = same_sign[0]
            others = np.where(np.arange(len(a)) == k, 0.0, -a / a[k])
            b = lower / a[k]
            constant = f" {'+' if b > 0 else '-'} {_in_digits(abs(b))}" if b else ""
            return f"{names[k]} = {linear_form(others, names)}{constant}"
    return f"{form} = {_in_digits(lower)}"


# --- reading ----------------------------------------------------------------------

Constraint: TypeAlias = LinearConstraint | ColumnConstraint | LinearConstraints
# Types of a parameter that takes constraints.
CONSTRAINTS = [LinearConstraint, ColumnConstraint, LinearConstraints, list, tuple]


def read_constraints(constraints, table, n_rows=None):
    """Convert constraints to one system on the numeric values of a table.

    Parameters
    ----------
    constraints : constraint, sequence of them, or None
    table : Table
    n_rows : int, default=None
        Number of rows that constraints with one value per row must have.

    Returns
    -------
    constraints : LinearConstraints

    Raises
    ------
    ValueError
        If a constraint does not fit the columns or rows, is about categories, or has an
        empty interval.
    """
    names, parts = table.feature_names, []
    if not isinstance(constraints, list | tuple):
        constraints = [] if constraints is None else [constraints]
    for k, one in enumerate(constraints):
        label = f"Constraint {k}"
        a, lower, upper = _as_arrays(one, label, table)
        for j in np.intersect1d(np.flatnonzero(a.any(axis=0)), table.categorical):
            column = f"x{j}" if table.names is None else table.names[j]
            raise ValueError(
                f"Column {column!r} contains categories, which cannot be constrained "
                "or summed. Request counts: totals={column: {level: count}}."
            )
        a = a[:, table.columns]
        used = np.flatnonzero(a.any(axis=0))
        for j in used[table.starts[used] != 0]:
            raise ValueError(
                f"Column {names[j]!r} holds integers beyond 2 ** 53, which float64 "
                "rounds; constraints and totals need smaller integers. Subtract a "
                "constant first, or leave out the column."
            )
        if lower.dtype.kind + upper.dtype.kind != "ff" or table.times[used].any():
            a, lower, upper = _in_time_units(one, label, a, lower, upper, table)
        n = max(len(np.atleast_2d(bound)) for bound in (lower, upper))
        if n_rows is not None and n not in (1, n_rows):
            raise ValueError(
                f"{label} has {n} values in lower=, upper= or equal=, but there are "
                f"{n_rows} rows. Give one value, or {n_rows} values, one per row."
            )
        if np.any((lower == np.inf) | (upper == -np.inf) | (lower > upper)):
            raise ValueError(
                f"{label} must have lower <= upper, not both infinite; got "
                f"lower={np.ravel(lower)[:3]}, upper={np.ravel(upper)[:3]}."
            )
        labels = getattr(one, "labels", None)
        bounds = np.broadcast_arrays(lower, upper)
        parts.append(LinearConstraints(a, *bounds, names, labels=labels))
    return LinearConstraints.empty(names).stack(*parts)


def _as_arrays(constraint, label, table):
    """Return the coefficients (k, n_columns) on all columns of X, and both bounds."""
    n_columns = prod(table.row_shape)
    if isinstance(constraint, ColumnConstraint):
        a = np.zeros((1, n_columns))
        for key, coefficient in constraint.coefficients.items():
            a[0, table.column_of(key, label)] += coefficient
        # One bound per row is a column of bounds.
        bounds = [e[..., None] for e in (constraint.lower, constraint.upper)]
    elif isinstance(constraint, LinearConstraints):
        a, bounds = constraint.coefficients, [constraint.lower, constraint.upper]
    elif isinstance(constraint, LinearConstraint):
        a = constraint.A.toarray() if issparse(constraint.A) else constraint.A
        a, bounds = np.atleast_2d(a).astype(float), (constraint.lb, constraint.ub)
        bounds = [np.broadcast_to(bound, len(a)).astype(float) for bound in bounds]
    else:
        raise ValueError(
            f"{label} must be a scipy.optimize.LinearConstraint or a ColumnConstraint, "
            f"for example ColumnConstraint('age', lower=30); got {constraint!r}."
        )
    if a.shape[1] != n_columns or not np.isfinite(a).all():
        raise ValueError(
            f"{label} must have {n_columns} finite coefficients, one per column; got "
            f"coefficients for {a.shape[1]} columns. Use 0 for columns that are not in "
            "the sum."
        )
    return a, *bounds


def _in_time_units(constraint, label, a, lower, upper, table):
    """Convert coefficients and bounds of times to the units of the table."""
    used = np.flatnonzero(a.any(axis=0))
    is_of_dates = "M" in (lower.dtype.kind, upper.dtype.kind)
    for j in used[table.times[used]] if is_of_dates else ():
        zone, given = table.zone(j), constraint.has_zone
        if given != (zone is not None):
            has = "no time zone" if zone is None else f"the time zone {zone}"
            raise ValueError(
                f"{label}: column {table.feature_names[j]!r} has {has}, but the dates "
                f"have {'a time zone' if given else 'none'}. Write the dates as "
                f"pandas.Timestamp(..., tz={zone!r})."
            )
    names = [table.feature_names[j] for j in used[~table.times[used]]]
    if names:
        raise ValueError(
            f"{label} combines times with the numeric column {names[0]!r}. Convert "
            "the times to numbers, for example days."
        )
    origins, lengths = zip(*map(table.time_scale, used), strict=True)
    is_date = np.array([origin.dtype.kind == "M" for origin in origins])
    n_dates = a[:, used[is_date]].sum(axis=1)
    first = origins[np.argmax(is_date)]
    # Differences of dates are exact, but dates as floats are rounded.
    shift = a[:, used] @ [
        (origin - first if counts else origin) / lengths[0]
        for origin, counts in zip(origins, is_date, strict=True)
    ]
    a[:, used] *= [length / lengths[0] for length in lengths]
    # The date or duration that bounds are counted from.
    zero = {1: first, 0: 0 * lengths[0]}.get(n_dates[0])
    bounds = []
    for bound in (lower, upper):
        is_number = bound.dtype.kind == "f" and np.all(
            np.isinf(bound) | ((bound == 0) & (n_dates == 0))
        )
        try:
            bounds.append((bound if is_number else (bound - zero) / lengths[0]) - shift)
        except TypeError:
            raise ValueError(
                f"{label} compares times with {np.ravel(bound)[0]!r}. Compare a column "
                "of dates with dates, and a difference of two dates with durations or "
                "0."
            ) from None
    return a, *bounds
