"""Linear equalities and intervals of the columns of a row, and how they are read."""

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

# What rows may miss of what they keep: a share of the range of the largest term (sums
# over all rows: of their absolute terms), and roundings of the largest values.
TOL, ROUNDINGS = 1e-9, 16
# What counts as rounding of whole steps, and of what others give: a share of these.
ALMOST = 1e-6
EPS = float(np.finfo(float).eps)


class ColumnConstraint:
    """``lower <= sum of coefficient * column <= upper``, with columns by name.

    Parameters
    ----------
    coefficients : dict of str, int or tuple to float, or str, int or tuple
        By column: its name; its number among the columns of ``X``; for rows of more
        axes the indices of a cell. A single column has the coefficient 1.
    lower, upper : float, date, duration or array-like of shape (n,), default=-inf, inf
        For all rows, or one value for each row. A column of dates is compared with
        dates (``pd.Timestamp``, ``np.datetime64``, ``datetime``), of a zone if the
        column has one; a difference of two of them with durations, or with 0.
    equal : float, date, duration or array-like of shape (n,), default=None
        Sets both ends: an equality.

    See Also
    --------
    LinearConstraints : Several constraints as one matrix.
    adjust : Move rows to constraints.
    PNLAugmenter : New rows that meet constraints.

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
                "A ColumnConstraint needs a column, its name or number, or a dict of "
                f"coefficients; got {coefficients!r}."
            )
        ends = {"lower": lower, "upper": upper, "equal": equal}
        # Series are read by position; `adjust`, which has X, compares their index.
        self.labelled = {k: end for k, end in ends.items() if hasattr(end, "reindex")}
        self.lower, self.upper = _read_end(lower, "lower"), _read_end(upper, "upper")
        is_open = np.isinf(self.lower).all() and np.isinf(self.upper).all()
        if is_open == (equal is None):
            raise ValueError(
                f"A ColumnConstraint about {self.coefficients} asks for nothing, or "
                "twice: give equal, or lower and upper; not both."
            )
        if equal is not None:
            self.lower = self.upper = _read_end(equal, "equal")
        self.has_zone = "M" in (self.lower.dtype.kind, self.upper.dtype.kind) and any(
            getattr(date, "tzinfo", None) is not None
            for end in ends.values()
            for date in np.ravel(np.asarray(end, dtype=object))
        )

    def __repr__(self):
        ends = f"lower={self.lower}, upper={self.upper}"
        return f"ColumnConstraint({self.coefficients}, {ends})"


def _read_end(values, name):
    """An end of an interval as an array of floats, dates or durations."""
    check_plain(values, name)
    with errors_naming(f"{name}= of a ColumnConstraint"):
        array = np.asarray(values)
    if array.dtype == object:
        # Times of pandas have nanoseconds.
        as_numpy = np.vectorize(lambda value: getattr(value, "asm8", value), "O")
        array = np.asarray(as_numpy(array).tolist())
    for dtype in () if array.dtype.kind in "mMU" else ("f8", "M8[us]", "m8[us]"):
        # Times of a zone become UTC, of which NumPy warns.
        with suppress(TypeError, ValueError), catch_warnings(action="ignore"):
            array = array.astype(dtype)
            break
    if array.dtype.kind not in "fmM" or array.ndim > 1 or np.isnan(array).any():
        raise ValueError(
            f"{name}= of a ColumnConstraint must be a number, a date or a duration, or "
            "an array with one for each row, none of them missing. Write a date as "
            "pandas.Timestamp('2024-01-31'), and ask for a category by "
            "totals={column: {level: count}}."
        )
    return array


@dataclass(frozen=True, repr=False)
class LinearConstraints:
    """Equalities and intervals ``lower <= coefficients @ x <= upper`` of rows ``x``.

    Parameters
    ----------
    coefficients : array-like of shape (k, D)
    lower, upper : float or array-like of shape (k,) or (n, k)
        For all rows, or one value for each row. A scalar applies to all constraints. An
        equality has two equal ends.
    feature_names : tuple of str of length D
    ranges : ndarray of shape (D,), default=None
        Range of each column in the rows that the constraints were found in; violations
        are shares of it. None is 1.
    labels : tuple of str of length k, default=None
        Names of the sums in messages and reports; None writes the sums out.

    See Also
    --------
    ColumnConstraint : One constraint, with columns by name.
    find_equalities : Equalities that all rows satisfy.
    scipy.optimize.LinearConstraint : The same without names.

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
        for name in ("coefficients", "lower", "upper"):
            if not issparse(values := getattr(self, name)):
                values = np.asarray(values, dtype=np.float64)
            object.__setattr__(self, name, values)
        # As in scipy.optimize.LinearConstraint, a scalar applies to all constraints.
        n_constraints = self.coefficients.shape[:1]
        for name in ("lower", "upper"):
            if np.ndim(end := getattr(self, name)) == 0:
                object.__setattr__(self, name, np.full(n_constraints, end))
        shapes = [x.shape for x in (self.coefficients, self.lower, self.upper)]
        k, d = shapes[0] if len(shapes[0]) == 2 else (-1, 0)
        named = self.labels is not None or len(self.feature_names) == d
        if any(shape[-1:] != (k,) for shape in shapes[1:]) or not named:
            raise ValueError(
                "LinearConstraints are coefficients (k, D), ends (k,) or (n, k) and D "
                f"feature_names; got {', '.join(map(str, shapes))} and "
                f"{len(self.feature_names)} names."
            )

    @classmethod
    def empty(cls, feature_names: Sequence[str]) -> LinearConstraints:
        """No constraints on columns of these names."""
        ends = np.empty(0), np.empty(0)
        return cls(np.empty((0, len(feature_names))), *ends, tuple(feature_names))

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
        """Which constraints (k,) are equalities in all rows."""
        return np.logical_and.reduce(np.atleast_2d(self.lower == self.upper), axis=0)

    @property
    def names(self) -> list[str]:
        """The sums without their ends, as messages name them."""
        if self.labels is not None:
            return [*self.labels]
        return [linear_form(a, self.feature_names) for a in self.coefficients]

    def asks(self, k: int) -> str:
        """What constraint k of all rows asks for, in words."""
        return f"{self.names[k]} asks for {span(self.lower[k], self.upper[k])}"

    @property
    def descriptions(self) -> tuple[str, ...]:
        """Each in words, such as ``"total = a + b"``."""
        if np.ndim(self.lower) > 1 or np.ndim(self.upper) > 1:
            return tuple(self.names)
        ends = self.lower, self.upper
        each = zip(self.names, self.coefficients, *ends, strict=True)
        names = self.feature_names if self.labels is None else ()
        return tuple(_in_words(*one, names) for one in each)

    @cached_property
    def scale(self) -> NDArray:
        """Range (k,) of the largest term of each; 1 where no column varies."""
        ranges = 1.0 if self.ranges is None else self.ranges
        scale = (np.abs(self.coefficients) * ranges).max(axis=1, initial=0.0)
        return np.where(scale > 0, scale, 1.0)

    def residual(self, rows: NDArray) -> NDArray:
        """What rows (n, D) lack of each interval (n, k), with its sign.

        Positive below an interval, negative above, NaN where a cell is missing.
        """
        return self.missing(self.values_of(rows))

    def values_of(self, rows: NDArray) -> NDArray:
        """Compute the sums (n, k) of rows (n, D), NaN if one of their cells is."""
        gaps = np.isnan(rows)
        has_gaps = gaps.any()
        # Copies take longer than the product.
        cells = np.where(gaps, 0.0, rows) if has_gaps else rows
        values = cells @ self.coefficients.T
        if has_gaps:
            values[gaps @ (self.coefficients != 0).T] = np.nan
        return values

    def missing(self, values: NDArray) -> NDArray:
        """What values of the sums lack of each interval, with its sign."""
        return np.maximum(self.lower - values, 0) - np.maximum(values - self.upper, 0)

    def violations(self, rows: NDArray, room: Any = None, inside: bool = True) -> Any:
        """Which constraints (n, k) rows (n, D) miss by more than ``room``.

        None is rounding, of equalities alone if inequalities are to hold exactly
        (``inside``). A missing cell misses equalities, and no inequality.
        """
        missed = np.abs(self.residual(rows))
        equal = np.broadcast_to(self.lower == self.upper, missed.shape)
        if room is None:
            room = np.where(equal | (not inside), self.rounding(rows), 0.0)
        return (missed > room) | (np.isnan(missed) & equal)

    def rounding(self, rows: NDArray, precision: float | NDArray = EPS) -> NDArray:
        """What rounding of cells (n, D) and 1e-9 of the scale leave of each (n, k)."""
        terms = np.abs(self.coefficients) * precision
        size = np.fmax(np.abs(rows), 0) @ terms.T
        return TOL * self.scale + ROUNDINGS * size

    def violation(self, X: ArrayLike) -> NDArray:
        """Largest violation of each constraint, as a share of its scale.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, D)

        Returns
        -------
        violation : ndarray of shape (k,)
        """
        table = read_table(TableReader(), X, missing=True)
        missed = np.abs(read_constraints(self, table).residual(table.numbers()))
        return np.fmax.reduce(missed, axis=0, initial=0.0) / self.scale

    def select(self, which: slice | NDArray) -> LinearConstraints:
        """Some of the constraints."""
        ends = self.lower[..., which], self.upper[..., which]
        labels = self.labels and tuple(np.array(self.labels, object)[which])
        own = self.coefficients[which], *ends, self.feature_names, self.ranges
        return LinearConstraints(*own, labels)

    def take_rows(self, rows: slice | NDArray) -> LinearConstraints:
        """The constraints of some rows, where ends are given row by row."""
        ends = (self.lower, self.upper)
        lower, upper = (end[rows] if end.ndim > 1 else end for end in ends)
        return replace(self, lower=lower, upper=upper)

    def stack(self, *others: LinearConstraints) -> LinearConstraints:
        """These constraints, then others of the same columns."""
        systems, labels = (self, *others), None
        if any(system.labels is not None for system in systems):
            labels = tuple(name for system in systems for name in system.names)
        ends = []
        for each in ([s.lower for s in systems], [s.upper for s in systems]):
            # Some may have a value a row.
            n = np.broadcast_shapes(*(end.shape[:-1] for end in each))
            each = [np.broadcast_to(end, (*n, end.shape[-1])) for end in each]
            ends.append(np.concatenate(each, axis=-1))
        a = stack_terms([system.coefficients for system in systems])
        return LinearConstraints(a, *ends, self.feature_names, self.ranges, labels)


def stack_terms(parts):
    """Coefficients on one another: sparse where some are, and few are not 0."""
    n_filled = sum(p.nnz if issparse(p) else np.count_nonzero(p) for p in parts)
    n_entries = sum(p.shape[0] * p.shape[1] for p in parts)
    # Products of fuller matrices are faster as dense ones.
    if 5 * n_filled > n_entries or not any(map(issparse, parts)):
        return np.vstack([p.toarray() if issparse(p) else p for p in parts])
    return vstack([csr_array(p) for p in parts], format="csr")


# --- in words ---------------------------------------------------------------------


def linear_form(a, names):
    """``2 a - b`` in words; sums of more than 12 terms are shortened."""
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
    """A number with 12 digits; whole ones with all that float64 has."""
    return f"{number:.{16 if number % 1 == 0 else 12}g}"


def _in_words(form, a, lower, upper, names):
    if lower != upper:
        left = "" if np.isinf(lower) else f"{_in_digits(lower)} <= "
        right = "" if np.isinf(upper) else f" <= {_in_digits(upper)}"
        return f"{left}{form}{right}"
    # A column that alone has its sign is the sum of the others; of two, the last one.
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
    """Constraints of several kinds as one system about the numbers of a table.

    Parameters
    ----------
    constraints : constraint, sequence of them, or None
    table : Table
    n_rows : int, default=None
        Number of rows that constraints with a value a row must have.

    Returns
    -------
    constraints : LinearConstraints

    Raises
    ------
    ValueError
        If a constraint does not fit the columns or rows, is about categories, or an
        interval is empty.
    """
    names, parts = table.feature_names, []
    if not isinstance(constraints, list | tuple):
        constraints = [] if constraints is None else [constraints]
    for k, one in enumerate(constraints):
        label = f"Constraint {k}"
        a, lower, upper = _as_arrays(one, label, table)
        for j in np.intersect1d(np.flatnonzero(a.any(axis=0)), table.categorical):
            raise ValueError(
                f"{j if table.names is None else table.names[j]!r} holds categories "
                "and no numbers to constrain or sum: ask for counts by level, "
                "totals={column: {level: count}}."
            )
        a = a[:, table.columns]
        used = np.flatnonzero(a.any(axis=0))
        for j in used[table.starts[used] != 0]:
            raise ValueError(
                f"{names[j]!r} holds whole numbers beyond 2 ** 53, which doubles "
                "round: constraints and totals are about smaller ones. Leave it out, "
                "or subtract a constant first."
            )
        if lower.dtype.kind + upper.dtype.kind != "ff" or table.times[used].any():
            a, lower, upper = _in_time_units(one, label, a, lower, upper, table)
        n = max(len(np.atleast_2d(end)) for end in (lower, upper))
        if n_rows is not None and n not in (1, n_rows):
            raise ValueError(
                f"{label} has {n} values (lower=, upper= or equal=), one for each row, "
                f"but there are {n_rows} rows: give {n_rows} values, or one for all."
            )
        if np.any((lower == np.inf) | (upper == -np.inf) | (lower > upper)):
            raise ValueError(
                f"{label} must have lower <= upper, not both infinite; got "
                f"lower={np.ravel(lower)[:3]}, upper={np.ravel(upper)[:3]}."
            )
        labels = getattr(one, "labels", None)
        ends = np.broadcast_arrays(lower, upper)
        parts.append(LinearConstraints(a, *ends, names, labels=labels))
    return LinearConstraints.empty(names).stack(*parts)


def _as_arrays(constraint, label, table):
    """Coefficients (k, n_columns) of all columns of X, and ends."""
    n_columns = prod(table.row_shape)
    if isinstance(constraint, ColumnConstraint):
        a = np.zeros((1, n_columns))
        for key, coefficient in constraint.coefficients.items():
            a[0, table.column_of(key, label)] += coefficient
        # Values a row are a column of ends.
        ends = [e[..., None] for e in (constraint.lower, constraint.upper)]
    elif isinstance(constraint, LinearConstraints):
        a, ends = constraint.coefficients, [constraint.lower, constraint.upper]
    elif isinstance(constraint, LinearConstraint):
        a = constraint.A.toarray() if issparse(constraint.A) else constraint.A
        a, ends = np.atleast_2d(a).astype(float), (constraint.lb, constraint.ub)
        ends = [np.broadcast_to(end, len(a)).astype(float) for end in ends]
    else:
        raise ValueError(
            f"{label} must be a scipy.optimize.LinearConstraint or a ColumnConstraint, "
            f"such as ColumnConstraint('age', lower=30); got {constraint!r}."
        )
    if a.shape[1] != n_columns or not np.isfinite(a).all():
        raise ValueError(
            f"{label} has coefficients for {a.shape[1]} columns; rows have "
            f"{n_columns}. They must be finite, and 0 is for other columns."
        )
    return a, *ends


def _in_time_units(constraint, label, a, lower, upper, table):
    """Coefficients and ends, of dates or durations, for numbers that count times."""
    used = np.flatnonzero(a.any(axis=0))
    is_of_dates = "M" in (lower.dtype.kind, upper.dtype.kind)
    for j in used[table.times[used]] if is_of_dates else ():
        zone, given = table.zone(j), constraint.has_zone
        if given != (zone is not None):
            has = "without a zone" if zone is None else f"of the zone {zone}"
            raise ValueError(
                f"{label}: {table.feature_names[j]!r} has times {has}, and the dates "
                f"asked for have {'a zone' if given else 'none'}: give "
                f"pandas.Timestamp(..., tz={zone})."
            )
    if not table.times[used].all():
        raise ValueError(
            f"{label} mixes times with columns that hold numbers: give dates as "
            "numbers, such as days."
        )
    origins, lengths = zip(*map(table.time_scale, used), strict=True)
    is_date = np.array([origin.dtype.kind == "M" for origin in origins])
    n_dates = a[:, used[is_date]].sum(axis=1)
    first = origins[np.argmax(is_date)]
    # Differences of dates are exact where dates as floats are not.
    shift = a[:, used] @ [
        (origin - first if counts else origin) / lengths[0]
        for origin, counts in zip(origins, is_date, strict=True)
    ]
    a[:, used] *= [length / lengths[0] for length in lengths]
    # What dates and durations are counted from.
    zero = {1: first, 0: 0 * lengths[0]}.get(n_dates[0])
    ends = []
    for end in (lower, upper):
        is_number = end.dtype.kind == "f" and np.all(
            np.isinf(end) | ((end == 0) & (n_dates == 0))
        )
        try:
            ends.append((end if is_number else (end - zero) / lengths[0]) - shift)
        except TypeError:
            raise ValueError(
                f"{label} is about times: a column of dates is compared with dates, a "
                f"difference of two with durations or 0; got {np.ravel(end)[0]!r}."
            ) from None
    return a, *ends
