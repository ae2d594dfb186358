"""Rows that keep linear equations and take those asked for, in the user's own units."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import LinearConstraint
from scipy.sparse import issparse

from .geometry import linear_projection
from .geometry.reach import span, unmet
from .invariants import in_words, linear_form

# The projection is asked for more than the rows: the way back to their units rounds.
_MARGIN = 1e-2
_CLOSE, _MAX_CORRECTIONS = 0.5, 3
# Rows that it is found out for why they cannot meet their constraints.
_EXPLAINED = 10


@dataclass(frozen=True)
class ColumnConstraint:
    """``lower <= sum of coefficient * column <= upper``; columns by name or number.

    Attributes
    ----------
    coefficients : dict of str or int to float
    lower, upper : float or array-like of shape (n,)
        For all rows, or a row each.
    """

    coefficients: dict
    lower: object
    upper: object


Constraint: TypeAlias = LinearConstraint | ColumnConstraint


def column_constraint(
    coefficients: dict[str | int, float] | str | int,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
) -> ColumnConstraint:
    """Constraint on columns of a frame, by name.

    Parameters
    ----------
    coefficients : dict of str or int to float, or str or int
        By column name or number. A single column stands for itself.
    lower, upper : float or array-like of shape (n,), default=-inf, inf
        Equal for an equation; arrays ask each row for its own.

    Returns
    -------
    ColumnConstraint

    See Also
    --------
    find_invariants : The search for equations.
    PNLAugmenter : One set of rows, without classes.
    sklearn_pnl.geometry.linear_projection : Rows to linear equations and ranges.

    Examples
    --------
    >>> from sklearn_pnl.constraints import column_constraint
    >>> column_constraint({"total": 1, "tax": -5}, lower=0).upper
    inf
    """
    if not isinstance(coefficients, dict):
        coefficients = {coefficients: 1.0}
    return ColumnConstraint(dict(coefficients), lower, upper)


@dataclass(frozen=True)
class Constraints:
    """Linear constraints on rows: ``lower <= coefficients @ x <= upper``.

    Attributes
    ----------
    coefficients : ndarray of shape (c, D)
    lower, upper : ndarray of shape (n, c), or (1, c) if they are the same for all rows
    feature_names : tuple of str
    """

    coefficients: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    feature_names: tuple

    def __len__(self):
        return len(self.coefficients)

    @property
    def names(self):
        """What each is called in messages: the sum without its interval."""
        return [linear_form(a, self.feature_names) for a in self.coefficients]

    def about(self, features):
        """The same constraints with the columns of some features alone."""
        names = tuple(self.feature_names[j] for j in features)
        return replace(
            self, coefficients=self.coefficients[:, features], feature_names=names
        )

    def violation(self, rows, ranges):
        """Distance (n, c) from each interval, as a share of its largest term's range.

        A term whose range is 0 counts with the size of what is asked for.
        """
        values = rows @ self.coefficients.T
        distance = np.maximum(self.lower - values, values - self.upper)
        return np.maximum(distance, 0.0) / self.scale(ranges)

    def scale(self, ranges):
        """Range of the largest term of each constraint (c,)."""
        scale = (np.abs(self.coefficients) * ranges).max(axis=1, initial=0.0)
        ends = [
            np.where(np.isfinite(e), np.abs(e), 0) for e in (self.lower, self.upper)
        ]
        asked = np.maximum(*ends).max(axis=0)
        return np.where(scale > 0, scale, np.where(asked > 0, asked, 1.0))


def collect_constraints(given, n_features, *, feature_names=None, n_rows=None):
    """One system from constraints of several kinds.

    Parameters
    ----------
    given : constraint or sequence of them, or None
        :class:`scipy.optimize.LinearConstraint`,
        :func:`~sklearn_pnl.column_constraint`, or :class:`~sklearn_pnl.Invariants`.
    n_features : int
    feature_names : sequence of str, default=None
    n_rows : int, default=None
        Rows that constraints with a row each must have.

    Returns
    -------
    Constraints

    Raises
    ------
    ValueError
        If a constraint does not fit the features or rows, or an interval is empty.
    """
    if given is None:
        given = []
    if not isinstance(given, list | tuple):
        given = [given]
    names = tuple(feature_names) if feature_names is not None else None
    parts = [
        _as_system(k, one, n_features, names, n_rows) for k, one in enumerate(given)
    ]
    shown = names or tuple(f"x{j}" for j in range(n_features))
    coefficients = np.vstack([np.empty((0, n_features)), *(part[0] for part in parts)])
    n = max((len(part[1]) for part in parts), default=1)
    ends = [
        np.hstack([np.empty((n, 0)), *(_as_rows(part[e], n) for part in parts)])
        for e in (1, 2)
    ]
    return Constraints(coefficients, *ends, shown)


@dataclass(frozen=True)
class MetRows:
    """Rows brought to constraints, and what could not be met.

    Attributes
    ----------
    rows : ndarray of shape (n, D)
    violation : ndarray of shape (n,)
        Worst distance from a constraint, as a share of the range of its largest term.
    converged : ndarray of bool of shape (n,)
    reasons : dict of int to str
        By row that did not: which constraint, and what it can reach.
    """

    rows: np.ndarray
    violation: np.ndarray
    converged: np.ndarray
    reasons: dict = field(default_factory=dict)

    def check(self):
        """The rows, or a ValueError with the first reason."""
        if self.reasons:
            row, reason = next(iter(self.reasons.items()))
            count = len(self.reasons)
            raise ValueError(
                f"{count} of {len(self.rows)} rows cannot meet the constraints; the "
                f"first is row {row}: {reason}"
            )
        return self.rows


def meet_constraints(
    rows, constraints, low, high, *, scale=1.0, shift=0.0, offset=0.0, still=None,
    tol=1e-9, max_iter=1000,
):  # fmt: skip
    """Rows on linear constraints, in range, and near to given ones.

    Rows ``x`` become measures ``x * scale + shift + offset``, these go to the nearest
    in the sense of KL that meet the constraints within the range of every feature
    (:func:`~sklearn_pnl.geometry.linear_projection`), and come back. What the way back
    rounds is made up for by the features with room to move.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        In the user's units; beyond ``low`` and ``high`` they are clipped.
    constraints : Constraints
    low, high : ndarray of shape (D,)
        Range of each feature. Equal for one that stays as it is.
    scale, shift : float or ndarray of shape (D,), default=1, 0
        The embedding of each feature; ``scale`` is positive.
    offset : float, default=0
    still : ndarray of bool of shape (n, D), default=None
        Values that do not move in rows that can meet the constraints without it.
    tol : float, default=1e-9
        Wanted distance from each constraint, as a share of the range of its largest
        term.
    max_iter : int, default=1000

    Returns
    -------
    MetRows
        ``check()`` gives its rows, or raises if there are reasons against some.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.constraints import (
    ...     collect_constraints, column_constraint, meet_constraints)
    >>> names = ["total", "a", "b"]
    >>> keep = column_constraint({"total": 1, "a": -1, "b": -1}, 0, 0)
    >>> asked = collect_constraints(
    ...     [keep, column_constraint("total", 9, 9)], 3, feature_names=names)
    >>> low, high = np.zeros(3), np.array([10.0, 6.0, 6.0])
    >>> rows = np.array([[6.0, 2.0, 4.0]])
    >>> met = meet_constraints(rows, asked, low, high, offset=0.1)
    >>> met.check().round(3)
    array([[9.   , 3.016, 5.984]])
    """
    rows = np.clip(np.asarray(rows, dtype=np.float64), low, high)
    n, d = rows.shape
    if not len(constraints) or not n:
        return MetRows(rows, np.zeros(n), np.ones(n, bool))
    if len(constraints.lower) not in (1, n):
        raise ValueError(
            f"Constraints are given for {len(constraints.lower)} rows; there are {n}."
        )
    # Features that no constraint is about stay as they are.
    used = np.flatnonzero(constraints.coefficients.any(axis=0))
    part = _Part(
        constraints.about(used),
        *(np.broadcast_to(end, d)[used] for end in (low, high, scale)),
        np.broadcast_to(np.add(shift, offset), d)[used],
        tol,
    )
    still = None if still is None else still[:, used]
    rows[:, used], violation, reasons = part.meet(rows[:, used], still, max_iter)
    return MetRows(rows, violation, violation <= tol, reasons)


@dataclass(frozen=True)
class _Part:
    """Constraints on features that all of them are about; ``x * scale + zero``."""

    constraints: Constraints
    low: np.ndarray
    high: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    tol: float

    def meet(self, rows, still, max_iter):
        """Rows, their violation, and reasons against some."""
        c, shape = self.constraints, (len(rows), len(self.constraints))
        lower, upper = (np.broadcast_to(end, shape) for end in (c.lower, c.upper))
        found, violation = self._nearest(rows, lower, upper, still, max_iter)
        if still is not None and violation.max() > self.tol:
            again = violation > self.tol
            found[again], violation[again] = self._nearest(
                rows[again], lower[again], upper[again], None, max_iter
            )
        reasons = {}
        for row in map(int, np.flatnonzero(violation > self.tol)):
            reasons[row] = f"missed by {violation[row]:.1e} of the range."
            if len(reasons) <= _EXPLAINED:
                ends = lower[row], upper[row]
                reasons[row] = self._why(*ends, violation[row], max_iter)
        return found, violation, reasons

    def _nearest(self, rows, lower, upper, still, max_iter):
        """Rows and their violation, with some values as they are."""
        c, ranges = self.constraints, self.high - self.low
        floor, ceiling, several = _narrowed(
            c, lower, upper, self.low, self.high, self.tol * c.scale(ranges)
        )
        rows = np.clip(rows, floor, ceiling)
        if still is not None:
            np.copyto(floor, rows, where=still)
            np.copyto(ceiling, rows, where=still)
        coefficients = c.coefficients[several] / self.scale
        zero = coefficients @ self.zero
        met = linear_projection(
            self._measures(rows),
            coefficients,
            lower[:, several] + zero,
            upper[:, several] + zero,
            floor=self._measures(floor),
            ceiling=self._measures(ceiling),
            tol=_MARGIN * self.tol,
            max_iter=max_iter,
            n_reasons=0,
        )
        found = np.clip((met.measure - self.zero) / self.scale, floor, ceiling)
        bounds = lower, upper, floor, ceiling, ranges
        return found, _corrected(found, c, *bounds, self.tol)

    def _why(self, lower, upper, violation, max_iter):
        """What a row cannot meet within the ranges, in the units of the rows."""
        c = self.constraints
        box = self.low, self.high
        why = unmet(c.coefficients, lower, upper, *box, self.tol, max_iter, violation)
        if why.equation is None:
            return str(why)

        def given(i):
            if lower[i] == upper[i]:
                return in_words(c.coefficients[i], lower[i], c.feature_names)
            return f"{c.names[i]} at {span(lower[i], upper[i])}"

        return why.described(c.names.__getitem__, given)

    def _measures(self, rows):
        return rows * self.scale + self.zero


def snap_one_hot(rows, groups):
    """Columns of each one-hot group as 0 and 1 again: 1 where the largest was.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
    groups : sequence of tuple of int
        As ``Invariants.one_hot_groups``.

    Returns
    -------
    ndarray of shape (n, D)
    """
    rows = rows.copy()
    for group in map(list, groups):
        rows[:, group] = np.eye(len(group))[rows[:, group].argmax(axis=1)]
    return rows


def round_integers(rows, invariants, integer_columns):
    """Whole numbers in some columns that keep the totals of whole columns.

    A total is rounded, and its parts up or down so that they sum to it: those with the
    largest fractions go up. Totals of totals go from the top down, so a whole number is
    never more than 1 away from what it was, and stays in a range between whole numbers.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        On the equations.
    invariants : Invariants
    integer_columns : sequence of int or mask of shape (D,)

    Returns
    -------
    rows : ndarray of shape (n, D)
    broken : tuple of int
        The equations with such columns that rounding does not keep: those that are no
        totals (coefficients other than 1 and -1, several features on both sides, or
        features that are no whole numbers), or share a part with another total.
    """
    rows = np.array(rows, dtype=np.float64)
    whole = _as_mask(integer_columns, rows.shape[1])
    totals, broken = _totals(invariants, whole)
    done = np.zeros_like(whole)
    rounded = np.where(whole, np.round(rows), rows)
    for _, total, parts, constant in totals:
        low = np.floor(rows[:, parts] + 1e-9)
        fractions = rows[:, parts] - low
        wanted = constant if total is None else rounded[:, total] + constant
        up = np.clip(np.round(wanted - low.sum(axis=1)), 0, len(parts))
        rank = np.argsort(np.argsort(-fractions, axis=1, kind="stable"), axis=1)
        rounded[:, parts] = low + (rank < up[:, None])
        done[parts] = True
    return rounded, broken


def unrounded(invariants, integer_columns):
    """The equations that :func:`round_integers` does not keep."""
    whole = _as_mask(integer_columns, invariants.coefficients.shape[1])
    return _totals(invariants, whole)[1]


def _as_mask(columns, n_features):
    mask = np.zeros(n_features, bool)
    mask[np.asarray(columns, dtype=None if len(columns) else int)] = True
    return mask


def _totals(invariants, whole):
    """Totals of whole columns from the top down, and the equations that are none."""
    totals, broken, owner = [], [], {}
    # Copies come last: either of the two can be the part.
    lengths = np.count_nonzero(invariants.coefficients, axis=1)
    for k in map(int, np.argsort(lengths == 2, kind="stable")):
        a, b = invariants.coefficients[k], invariants.values[k]
        features = np.flatnonzero(a)
        if not whole[features].any() or len(features) < 2:
            continue
        parts = [features[a[features] == sign] for sign in (1, -1)]
        single, most = sorted(parts, key=len)
        if len(single) == len(most) == 1 and int(most[0]) in owner:
            single, most = most, single
        is_total = whole[features].all() and np.all(np.abs(a[features]) == 1)
        rest = most.tolist()
        if not is_total or len(single) > 1 or b != round(b) or owner.keys() & set(rest):
            broken.append(k)
            continue
        total = int(single[0]) if len(single) else None
        sign = a[rest[0]]
        owner |= dict.fromkeys(rest, k)
        totals.append((k, total, rest, sign * b))
    ordered, placed = [], set()
    while totals:
        ready = [t for t in totals if t[1] not in owner or owner[t[1]] in placed]
        if not ready:  # each waits for another
            broken += [t[0] for t in totals]
            break
        ordered += ready
        placed |= {t[0] for t in ready}
        totals = [t for t in totals if t[0] not in placed]
    return ordered, tuple(sorted(broken))


def _narrowed(constraints, lower, upper, low, high, slack):
    """Ranges (n, D) of cells with constraints on one feature in them, and the others.

    A constraint that leaves nothing of a range stays one of the others, to be told.
    """
    shape = len(lower), len(low)
    floor, ceiling = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    floor, ceiling = floor.astype(float), ceiling.astype(float)
    several = []
    for i, a in enumerate(constraints.coefficients):
        features = np.flatnonzero(a)
        if len(features) != 1:
            several.append(i)
            continue
        j = features[0]
        ends = np.sort([lower[:, i] / a[j], upper[:, i] / a[j]], axis=0)
        room = slack[i] / abs(a[j])
        if np.any(ends[0] > ceiling[:, j] + room) or np.any(
            ends[1] < floor[:, j] - room
        ):
            several.append(i)
            continue
        floor[:, j] = np.clip(ends[0], floor[:, j], ceiling[:, j])
        ceiling[:, j] = np.clip(ends[1], floor[:, j], ceiling[:, j])
    return floor, ceiling, several


def _corrected(rows, constraints, lower, upper, floor, ceiling, ranges, tol):
    """Make up for rounding, in proportion to the room that each feature has.

    In place; returns the violation that is left.
    """
    a, scale = constraints.coefficients, constraints.scale(ranges)
    for attempt in range(_MAX_CORRECTIONS + 1):
        values = rows @ a.T
        missing = np.maximum(lower - values, 0) - np.maximum(values - upper, 0)
        violation = np.abs(missing / scale).T.max(axis=0)
        if attempt == _MAX_CORRECTIONS:
            break
        off = np.flatnonzero((violation > _CLOSE * tol) & (violation < 1e3 * tol))
        for row in off:
            room = np.minimum(rows[row] - floor[row], ceiling[row] - rows[row])
            gram = (a * room) @ a.T
            step = room * (np.linalg.lstsq(gram, missing[row], rcond=1e-12)[0] @ a)
            rows[row] = np.clip(rows[row] + step, floor[row], ceiling[row])
        if not len(off):
            break
    return violation


def _as_system(k, one, n_features, names, n_rows):
    """Coefficients (c, D) and ends (1, c) or (n, c) of one constraint."""
    if isinstance(one, LinearConstraint):
        a = one.A.toarray() if issparse(one.A) else np.asarray(one.A, float)
        lower, upper = (np.broadcast_to(e, len(a))[None] for e in (one.lb, one.ub))
        if a.shape[1] != n_features:
            raise ValueError(
                f"Constraint {k} has {a.shape[1]} columns; rows have {n_features} "
                "features."
            )
    elif isinstance(one, ColumnConstraint):
        a = np.zeros((1, n_features))
        for column, weight in one.coefficients.items():
            a[0, _column(k, column, n_features, names)] += weight
        lower, upper = (
            np.atleast_1d(np.asarray(e, float))[:, None] for e in (one.lower, one.upper)
        )
    elif hasattr(one, "values") and hasattr(one, "coefficients"):
        a, lower = one.coefficients, one.values[None]
        upper = lower
    else:
        raise ValueError(
            f"Constraint {k} must be a scipy.optimize.LinearConstraint or come from "
            f"column_constraint; got {type(one).__name__}."
        )
    n = max(len(lower), len(upper))
    if n > 1 and n_rows is not None and n != n_rows:
        raise ValueError(f"Constraint {k} is given for {n} rows; there are {n_rows}.")
    lower, upper = _as_rows(lower, n), _as_rows(upper, n)
    if not (np.isfinite(a).all() and np.all(lower <= upper)):
        raise ValueError(
            f"Constraint {k} must have finite coefficients and lower <= upper; got "
            f"lower={lower.reshape(-1)[:3]}, upper={upper.reshape(-1)[:3]}."
        )
    return a, lower, upper


def _column(k, column, n_features, names):
    if isinstance(column, str):
        if names is None or column not in names:
            known = "rows have no column names" if names is None else f"not in {names}"
            raise ValueError(f"Constraint {k} names the column {column!r}: {known}.")
        return names.index(column)
    if not -n_features <= column < n_features:
        raise ValueError(
            f"Constraint {k} names column {column}; rows have {n_features} features."
        )
    return column


def _as_rows(ends, n):
    return np.broadcast_to(ends, (n, ends.shape[1]))
