"""Linear equations and intervals about the columns of rows: one type for all of them.

What is found in the training rows, what is given and what is asked of new rows differ
in nothing but who said so: an equation is an interval of length 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import LinearConstraint
from scipy.sparse import issparse
from sklearn.utils._optional_dependencies import check_pandas_support

from .._runtime.validation import tells_where
from ..geometry.masks import check_unmasked
from .readable import between, linear_form, scales, values_of

# Rounding of double precision that a sum of terms may show, as a share of these.
_ROUNDING = 16 * np.finfo(float).eps


@tells_where()
class ColumnConstraint:
    """``lower <= sum of coefficient * column <= upper``, about columns by name.

    Parameters
    ----------
    coefficients : dict of str, int or tuple to float, or str, int or tuple
        By column: its name; its number among the columns of ``X``; for rows of more
        axes the indices of a cell. A single column stands for itself.
    lower, upper : float or array-like of shape (n,), default=-inf, inf
        For all new rows, or arrays that ask each row for its own.
    equal : float or array-like of shape (n,), default=None
        Both of them: an equation.

    See Also
    --------
    find_invariants : The search for equations.
    PNLAugmenter : One set of rows, without classes.
    sklearn_pnl.geometry.linear_projection : Rows to linear equations and ranges.

    Examples
    --------
    >>> from sklearn_pnl import ColumnConstraint
    >>> ColumnConstraint({"total": 1, "tax": -5}, lower=0)
    ColumnConstraint({'total': 1.0, 'tax': -5.0}, lower=0.0)
    >>> ColumnConstraint("income", equal=3000)
    ColumnConstraint({'income': 1.0}, equal=3000.0)
    """

    def __init__(
        self,
        coefficients: dict[Any, float] | str | int | tuple,
        *,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        equal: ArrayLike | None = None,
    ) -> None:
        try:
            several = isinstance(coefficients, dict)
            given = coefficients if several else {coefficients: 1}
            self.coefficients = {key: float(a) for key, a in given.items()}
        except (TypeError, ValueError):
            self.coefficients = {}
        if not self.coefficients:
            raise ValueError(
                "A ColumnConstraint needs at least one column: its name or number, or "
                f"a dict of coefficients by column; got {coefficients!r}."
            )
        ends = {"lower": lower, "upper": upper, "equal": equal}
        # A Series is read by place: whoever has the rows can tell if that is meant.
        self.labelled = {
            name: end for name, end in ends.items() if hasattr(end, "reindex")
        }
        if equal is not None:
            has_lower = np.any(np.asarray(lower) != -np.inf)
            if has_lower or np.any(np.asarray(upper) != np.inf):
                raise ValueError("Give equal, or lower and upper; not both.")
            lower = upper = equal
        self.lower = _ends(lower, "lower" if equal is None else "equal")
        self.upper = _ends(upper, "upper")
        if np.all(self.lower == -np.inf) and np.all(self.upper == np.inf):
            raise ValueError(
                f"A ColumnConstraint about {self.coefficients} asks for nothing: give "
                "equal, lower or upper."
            )

    def __repr__(self):
        ends = {"lower": self.lower, "upper": self.upper}
        if np.array_equal(self.lower, self.upper):
            ends = {"equal": self.lower}
        told = [
            f"{name}={value.item() if value.size == 1 else value}"
            for name, value in ends.items()
            if np.any(np.isfinite(value))
        ]
        return f"ColumnConstraint({', '.join([repr(self.coefficients), *told])})"


def _ends(values, name):
    check_unmasked(values, name)
    advice = ""
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
        advice = (
            " Ask for levels of a category by their counts, totals={column: {level: "
            "count}}, and for times as numbers, such as days since a date."
        )
    if values.ndim > 1 or np.isnan(values).any():
        raise ValueError(
            f"{name}= of a ColumnConstraint must be a number, or an array with one for "
            f"each row, without NaN.{advice}"
        )
    return values


@dataclass(frozen=True, repr=False)
class LinearSystem:
    """Equations and intervals ``lower <= coefficients @ x <= upper`` about rows ``x``.

    Attributes
    ----------
    coefficients : ndarray of shape (c, n_columns)
        Columns are those of ``X``, as its user counts them.
    lower, upper : ndarray of shape (1, c) or (n, c)
        For all rows, or a row each. Equal for an equation.
    feature_names : tuple of str
        Of the columns.
    ranges : ndarray of shape (n_columns,)
        Largest less least value of each column in the rows that the system was found
        in, or is to be judged by.
    note : str
        What was not looked for, and why; empty if everything was.
    rounding : ndarray of shape (c,), default=None
        What each may be missed by, as the values of its columns are rounded; None is
        nothing.

    See Also
    --------
    find_invariants : The search for equations.
    ColumnConstraint : What is asked of new rows.
    PNLAugmenter : One set of rows, without classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import find_invariants
    >>> parts = np.random.default_rng(0).gamma(1.0, size=(50, 2))
    >>> system = find_invariants(np.column_stack([parts, parts.sum(axis=1)]))
    >>> system.descriptions
    ('x2 = x0 + x1',)
    >>> system.violation(np.array([[1.0, 2.0, 3.0]])).round(9)
    array([0.])
    """

    coefficients: NDArray
    lower: NDArray
    upper: NDArray
    feature_names: tuple
    ranges: NDArray
    note: str = ""
    rounding: NDArray | None = None

    def __post_init__(self):
        if self.rounding is None:
            object.__setattr__(self, "rounding", np.zeros(len(self.coefficients)))

    @classmethod
    def equations(
        cls,
        coefficients: NDArray,
        values: ArrayLike,
        feature_names: Sequence[str],
        ranges: NDArray,
        note: str = "",
    ) -> LinearSystem:
        """Equations ``coefficients @ x = values``, the same for all rows."""
        values = np.asarray(values, dtype=np.float64)[None]
        return cls(coefficients, values, values, tuple(feature_names), ranges, note)

    @classmethod
    def none(cls, feature_names: Sequence[str], note: str = "") -> LinearSystem:
        """A system that asks for nothing."""
        d = len(feature_names)
        empty = np.empty((0, d)), np.empty(0)
        return cls.equations(*empty, feature_names, np.zeros(d), note)

    def __len__(self):
        return len(self.coefficients)

    def __repr__(self):
        kind = "constraint" if self.has_intervals else "invariant"
        lines = [f"{len(self)} {kind}{'s' * (len(self) != 1)} of "
                 f"{len(self.feature_names)} features"]  # fmt: skip
        lines += [f"  {told}" for told in self.descriptions]
        return "\n".join(lines + [self.note] * bool(self.note))

    @cached_property
    def has_intervals(self) -> bool:
        """Whether some are no equations."""
        return not np.array_equal(self.lower, self.upper)

    @property
    def values(self) -> NDArray:
        """Right-hand sides (c,) of equations that are the same for all rows."""
        return self.lower[0]

    @property
    def descriptions(self) -> tuple[str, ...]:
        """Each in words, such as ``"total = a + b"``."""
        if len(self.lower) > 1:
            return tuple(self.names)
        arrays = self.coefficients, self.lower[0], self.upper[0], self.rounding
        each = zip(*arrays, strict=True)
        return tuple(between(*own, self.feature_names) for own in each)

    @property
    def names(self) -> list[str]:
        """What each is called in messages: the sum without its interval."""
        return [linear_form(a, self.feature_names) for a in self.coefficients]

    @cached_property
    def scale(self) -> NDArray:
        """Range (c,) of the largest term of each; the size asked for if none varies."""
        ends = np.abs([self.lower, self.upper])
        asked = np.where(np.isinf(ends), 0.0, ends).max(axis=(0, 1), initial=0.0)
        return scales(self.coefficients, self.ranges, asked)

    def to_frame(self) -> Any:
        """An equation or interval a row, in words, as a data frame of pandas.

        Of those with a value a row, the ends of all.
        """
        pandas = check_pandas_support("LinearSystem.to_frame")
        ends = {"lower": self.lower.min(axis=0), "upper": self.upper.max(axis=0)}
        index = pandas.Index(self.names, name="sum")
        return pandas.DataFrame({"in words": self.descriptions, **ends}, index=index)

    def _repr_html_(self):
        """For notebooks."""
        title, *told = repr(self).split("\n")
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in told)
        return f"<div><p>{escape(title)}</p><ul>{items}</ul></div>"

    def missing(self, rows: NDArray) -> NDArray:
        """What rows (n, n_columns) lack of each interval (n, c), with its sign."""
        values = values_of(self.coefficients, rows).T
        if not self.has_intervals:
            return self.lower - values
        return np.maximum(self.lower - values, 0) - np.maximum(values - self.upper, 0)

    def violation(self, X: ArrayLike) -> NDArray:
        """Largest violation of each over some rows.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)

        Returns
        -------
        ndarray of shape (c,)
            Beyond ``rounding``, as a share of the range of the largest term.
        """
        rows = np.asarray(X, dtype=np.float64)
        # Whatever is in columns that none is about.
        rows = np.where(self.coefficients.any(axis=0), rows.reshape(len(rows), -1), 0.0)
        missing = np.abs(self.missing(rows)) - self.rounding
        return missing.max(axis=0, initial=0.0) / self.scale

    def noted(self, note: str) -> LinearSystem:
        """The same with one more note, which is not said twice."""
        if note in self.note:
            return self
        return replace(self, note=f"{self.note} {note}".strip())

    def part(self, some: slice | NDArray) -> LinearSystem:
        """Some of them."""
        return replace(
            self,
            coefficients=self.coefficients[some],
            lower=self.lower[:, some],
            upper=self.upper[:, some],
            rounding=self.rounding[some],
        )

    def wider(self, room: NDArray) -> LinearSystem:
        """The same, with intervals longer by ``room`` (c,) at both ends."""
        return replace(self, lower=self.lower - room, upper=self.upper + room)

    @property
    def loosened(self) -> LinearSystem:
        """The same, with equations that hold up to some rounding as intervals."""
        return replace(self.wider(self.rounding), rounding=None)

    def shifted(self, starts: NDArray) -> LinearSystem:
        """The same about values that are larger by ``starts`` (n_columns,)."""
        shift = self.coefficients @ starts
        return replace(self, lower=self.lower + shift, upper=self.upper + shift)

    def of_rows(self, rows: slice | NDArray) -> LinearSystem:
        """The same for some rows alone, where rows have their own."""
        if len(self.lower) == 1:
            return self
        return replace(self, lower=self.lower[rows], upper=self.upper[rows])

    def about(self, columns: NDArray) -> LinearSystem:
        """The same, with some columns alone."""
        return replace(
            self,
            coefficients=self.coefficients[:, columns],
            feature_names=tuple(self.feature_names[j] for j in columns),
            ranges=self.ranges[columns],
        )

    def and_also(self, other: LinearSystem) -> LinearSystem:
        """These, then others about the same columns."""
        if not len(other):
            return self
        return replace(
            self,
            coefficients=np.vstack([self.coefficients, other.coefficients]),
            lower=_side_by_side(self.lower, other.lower),
            upper=_side_by_side(self.upper, other.upper),
            rounding=np.concatenate([self.rounding, other.rounding]),
        )


def _side_by_side(*ends):
    n = max(map(len, ends))
    return np.hstack([np.broadcast_to(end, (n, end.shape[1])) for end in ends])


Constraint: TypeAlias = LinearConstraint | ColumnConstraint | LinearSystem
# What a parameter may be that holds some.
CONSTRAINTS = [LinearConstraint, ColumnConstraint, LinearSystem, list, tuple]


def collect_constraints(given, feature_names, ranges, column_of, n_rows=None):
    """One system from constraints of several kinds.

    Parameters
    ----------
    given : constraint or sequence of them, or None
    feature_names : sequence of str of length n_columns
    ranges : ndarray of shape (n_columns,)
    column_of : callable
        ``column_of(key, whom)``: the number of the column that a key means.
    n_rows : int, default=None
        Rows that constraints with a row each must have.

    Returns
    -------
    LinearSystem

    Raises
    ------
    ValueError
        If a constraint does not fit the columns or rows, or an interval is empty.
    """
    several = [] if given is None else [given]
    system = LinearSystem.none(tuple(feature_names))
    system = replace(system, ranges=np.asarray(ranges, dtype=np.float64))
    for k, one in enumerate(given if isinstance(given, list | tuple) else several):
        whom = f"Constraint {k}"
        a, lower, upper = _read(whom, one, len(feature_names), column_of)
        _check(whom, a, lower, upper, n_rows)
        # One end may be for all rows, the other a row each.
        lower, upper = np.broadcast_arrays(lower, upper)
        more = LinearSystem(a, lower, upper, system.feature_names, system.ranges)
        if isinstance(one, LinearSystem):
            more = replace(more, rounding=one.rounding)
        system = system.and_also(more)
    return system


def _read(whom, one, n_columns, column_of):
    """Coefficients (c, n_columns) and ends (1, c) or (n, c) of one constraint."""
    if isinstance(one, ColumnConstraint):
        a = np.zeros((1, n_columns))
        for key, weight in one.coefficients.items():
            a[0, column_of(key, whom)] += weight
        return a, np.atleast_1d(one.lower)[:, None], np.atleast_1d(one.upper)[:, None]
    if isinstance(one, LinearSystem):
        a, ends = one.coefficients, (one.lower, one.upper)
    elif isinstance(one, LinearConstraint):
        a = one.A.toarray() if issparse(one.A) else np.atleast_2d(one.A)
        a = np.asarray(a, dtype=np.float64)
        ends = (np.broadcast_to(e, len(a))[None] for e in (one.lb, one.ub))
    else:
        raise ValueError(
            f"{whom} must be a scipy.optimize.LinearConstraint or a ColumnConstraint, "
            f"such as ColumnConstraint({{'a': 1, 'b': -2}}, lower=0); got "
            f"{type(one).__name__}."
        )
    if a.shape[1] != n_columns:
        raise ValueError(
            f"{whom} has coefficients for {a.shape[1]} columns; rows have {n_columns}: "
            "0 is for others. A ColumnConstraint is about columns by name."
        )
    return a, *ends


def _check(whom, a, lower, upper, n_rows):
    low = "equal" if np.array_equal(lower, upper) else "lower"
    for name, n in ((low, len(lower)), ("upper", len(upper))):
        if n > 1 and n_rows is not None and n != n_rows:
            raise ValueError(
                f"{whom} has {n} values ({name}=), one for each row, but there are "
                f"{n_rows} rows: give {n_rows} values, or one for all."
            )
    if not np.isfinite(a).all():
        raise ValueError(f"{whom} must have finite coefficients.")
    if np.any(lower == np.inf) or np.any(upper == -np.inf) or np.any(lower > upper):
        raise ValueError(
            f"{whom} must have lower <= upper, and no infinite value to be reached; "
            f"got lower={lower.reshape(-1)[:3]}, upper={upper.reshape(-1)[:3]}."
        )


def can_move(system, floor, ceiling):
    """Which of a system have a column that is not fixed, in some row."""
    free = (ceiling > floor).any(axis=0)
    return system.coefficients[:, free].any(axis=1)


def tied(equations, columns):
    """Which columns (D,) some of them are, or equations (c, D) lead to from these."""
    while True:
        more = (equations[equations[:, columns].any(axis=1)] != 0).any(axis=0)
        if not np.any(more & ~columns):
            return columns
        columns = columns | more


def rounding_of(system, rows):
    """What double precision may leave of each (n, c) at these rows."""
    size = np.abs(rows) @ np.abs(system.coefficients).T
    return _ROUNDING * size
