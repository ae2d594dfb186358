"""What is asked of a set of rows: sums, means and counts, as one linear system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from math import isfinite
from numbers import Real

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from .._runtime.validation import tells_where
from ..control.meeting import UnmetTotals
from ..geometry.masks import check_unmasked, unmasked
from ..tables.categories import is_missing
from .columns import Columns

# Fuller systems than this are solved as dense ones.
_DENSE = 0.2
# What the name of a mean ends with, as a sum.
TIMES_SUM = ", times the sum of weights"
# Margins of one table whose sums differ by a smaller share agree.
_AGREE = 1e-9
# Shares by which a mean of equal numbers differs from them.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class ColumnTotal:
    """A total of a set of rows; :func:`column_total` makes it.

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
    calibrate : Weights of rows that meet totals.

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
        """Whether it counts."""
        return isinstance(self.lower, dict) or isinstance(self.upper, dict)

    @property
    def coefficients(self) -> dict:
        """Of the columns of a sum."""
        return self.of if isinstance(self.of, dict) else {self.of: 1.0}

    @property
    def name(self) -> str:
        """What a sum or mean is called."""
        return f"the {'mean' if self.mean else 'sum'} of {called(self.of)}"


@tells_where()
@unmasked
def column_total(
    of: object,
    equal: object = None,
    *,
    lower: object = -np.inf,
    upper: object = np.inf,
    within: float = 0.0,
    mean: bool = False,
) -> ColumnTotal:
    """A total of a set of rows: a sum, a mean, or counts by category.

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
    within : float, default=0
        How far from ``equal`` a total may be, as a share of it: .01 for 1%.
    mean : bool, default=False
        Whether it is the mean of the column that is asked for, or shares of levels:
        of all rows, so that those of other levels, and those whose cell is missing,
        have together what is left of 1.

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
    >>> column_total("region", {"north": 400, "south": 600}, within=0.01).upper
    {'north': 404.0, 'south': 606.0}
    >>> column_total({"income": 1, "tax": -3}, lower=0).lower
    0.0
    """
    if not (isinstance(within, Real) and 0 <= within < 1):
        raise ValueError(
            "within must be 0 or more and below 1, a share of the total (.05 for 5%); "
            f"got {within!r}. For more room give lower= and upper=."
        )
    if equal is None:
        within = 0.0
    elif np.any(np.asarray(lower) != -np.inf) or np.any(np.asarray(upper) != np.inf):
        raise ValueError("Give equal, or lower and upper; not both.")
    else:
        lower = upper = equal
    lower, upper = _each(of, lower, -within), _each(of, upper, within)
    levels = [end for end in (lower, upper) if isinstance(end, dict)]
    if {} in levels:
        raise ValueError(f"A total of {called(of)} names no level; leave it out.")
    if isinstance(of, Mapping):
        if levels or not of:
            raise ValueError(
                "Coefficients need a number to be summed to, and at least one column; "
                "give counts by level with a column or a tuple of columns."
            )
        of = dict(of)
        for column, weight in of.items():
            if not (isinstance(weight, Real) and isfinite(weight)):
                raise ValueError(
                    f"Coefficients of a total are finite numbers; that of {column!r} "
                    f"is {weight!r}."
                )
    for level in {level for end in levels for level in end} or [None]:
        ends = _end(lower, level, -np.inf), _end(upper, level, np.inf)
        what = called(of) if level is None else f"{called(of)} of level {level!r}"
        # NaN is below nothing.
        nothing = levels == [] and ends == (-np.inf, np.inf)
        if np.isnan(ends).any():
            raise ValueError(
                f"A total of {what} is NaN; give a number, or leave out what is not "
                "known."
            )
        if nothing or not ends[0] <= ends[1] or np.inf in (ends[0], -ends[1]):
            raise ValueError(
                f"A total of {what} must lie in an interval: give equal, or lower <= "
                f"upper; got {ends[0]:g} to {ends[1]:g}."
            )
    return ColumnTotal(of, lower, upper, mean)


def _each(of, ends, room):
    """A number and a share of it as room, or the numbers of all levels with theirs."""

    def moved(end):
        # Without room infinity stays what it is.
        return float(end + room * abs(end) if room else end)

    is_table = hasattr(ends, "reorder_levels") and ends.ndim == 2
    if is_table and isinstance(of, tuple) and len(of) == 2:
        # Of two columns, as pandas.crosstab makes it.
        ends = ends.T.unstack()
    names = getattr(getattr(ends, "index", None), "names", ())
    if len(names) > 1 and isinstance(of, tuple) and set(names) == set(of):
        # Levels of an index are named.
        ends = ends.reorder_levels(of)
    ends = _by_label(ends) if hasattr(ends, "items") else ends
    try:
        if isinstance(ends, dict):
            return {
                level: np.nan if is_missing(end) else moved(end)
                for level, end in ends.items()
            }
        return moved(ends)
    except (TypeError, ValueError):
        raise ValueError(
            "A total must be a number, or a dict or Series of level to number; got "
            f"{ends!r}. It comes after its column: column_total('income', 3000)."
        ) from None


def _by_label(totals):
    """A dict of what a Series or mapping holds; no label of an index may come twice."""
    found = {}
    for label, total in totals.items():
        if label in found:
            raise ValueError(
                f"Totals name {label!r} more than once in their index: sum them first, "
                "totals.groupby(totals.index).sum(), or drop what is out of date."
            )
        found[label] = total
    return found


def _end(ends, level, otherwise):
    return ends.get(level, otherwise) if isinstance(ends, dict) else ends


@dataclass(frozen=True)
class TotalsSystem:
    """``lower <= coefficients @ weights <= upper``, with a name for each.

    Attributes
    ----------
    coefficients : ndarray or csr_array of shape (c, n)
    lower, upper : ndarray of shape (c,)
    names : tuple of str
    groups : tuple of Margin
        Counts by category, as codes of rows.
    signs : ndarray of shape (n,) or 1
        With which weights are summed. ``coefficients`` have them.
    """

    coefficients: object
    lower: np.ndarray
    upper: np.ndarray
    names: tuple
    groups: tuple
    signs: np.ndarray | int = 1

    @classmethod
    def stacked(cls, parts, groups=()):
        """One system of several: coefficients, lower and upper ends, and names."""
        matrices, lower, upper, names = zip(*parts, strict=True)
        ends = np.concatenate(lower), np.concatenate(upper)
        return cls(stacked(matrices), *ends, tuple(chain(*names)), tuple(groups))

    def with_sum(self, lower, upper, name):
        """The same, and first what all weights sum to."""
        ones = np.ones((1, self.coefficients.shape[1]))
        held = self.coefficients, self.lower, self.upper, self.names
        return self.stacked([(ones, [lower], [upper], [name]), held])

    def of(self, some):
        """The same about some of the weights (n,), the others being 0."""
        a = self.coefficients
        return self if some.all() else replace(self, coefficients=a[:, some])

    def missed(self, weights):
        """Distance of each total from what is asked, and the size of its terms."""
        values = self.coefficients @ weights
        size = abs(self.coefficients) @ np.abs(weights)
        return np.abs(values - np.clip(values, self.lower, self.upper)), size

    def residual(self, weights):
        """What is missed of each total, as a share of the sum of its absolute terms."""
        missed, size = self.missed(weights)
        return np.where(missed > 0, missed / np.maximum(size, 1e-300), 0.0)

    @property
    def is_raking(self):
        """Whether all that is asked for are exact margins."""
        n = sum(len(group.levels) for group in self.groups)
        return n == len(self.names) and bool(np.all(self.lower == self.upper))


@dataclass(frozen=True)
class Margin:
    """Counts by tuple of levels of some columns; -1 is no level asked for."""

    key: tuple
    levels: tuple
    codes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    what: str = "the count of"

    @property
    def name(self):
        """The columns as the user wrote them."""
        return repr(self.key[0] if len(self.key) == 1 else self.key)

    @property
    def names(self):
        """What the count of each level is called."""
        named = (_level_named(self.key, level) for level in self.levels)
        return tuple(f"{self.what} {name}" for name in named)

    def indicators(self, codes):
        """Which of some rows (n,) have which level, of shape (n_levels, n)."""
        rows = np.flatnonzero(codes >= 0)
        shape = len(self.levels), len(codes)
        return csr_array((np.ones(len(rows)), (codes[rows], rows)), shape=shape)

    @property
    def part(self):
        """Coefficients, lower and upper ends, and names."""
        return self.indicators(self.codes), self.lower, self.upper, self.names

    def sums(self, shared):
        """What is asked for by level of some of its columns; None if not exactly."""
        if np.any(self.lower < self.upper) or np.any(self.codes < 0):
            return None
        places = [self.key.index(column) for column in shared]
        sums = {}
        for level, value in zip(self.levels, self.lower, strict=True):
            held = tuple(level[k] for k in places)
            sums[held] = sums.get(held, 0.0) + value
        return sums


def read_totals(columns: Columns, totals: object) -> TotalsSystem:
    """One system of all that is asked for.

    Parameters
    ----------
    columns : Columns
    totals : mapping, ColumnTotal, sequence of them, or array-like of shape (n_columns,)
        As in :func:`~sklearn_pnl.calibrate`.

    Returns
    -------
    TotalsSystem

    Raises
    ------
    ValueError
        If a column or level is unknown, an interval is empty, or two margins disagree
        on what they share.
    """
    parts, groups = [], []
    for total in as_list(totals, columns.names, (columns.n_columns,)):
        if total.by_level:
            group = counts(columns, total)
            part = group.part
            groups += [] if total.mean else [group]
        else:
            row = columns.sums(total.coefficients)
            part = row, [total.lower], [total.upper], [total.name]
        parts.append(_as_means(*part) if total.mean else part)
    check_agreement(groups)
    return TotalsSystem.stacked(parts, groups)


def as_list(totals, names, shape):
    """All that is asked for, a ColumnTotal each; an array asks for all of a row."""
    check_unmasked(totals, "totals")
    if isinstance(totals, ColumnTotal):
        return [totals]
    if hasattr(totals, "items") and np.ndim(totals) == 1:
        # A Series of sums by column.
        totals = _by_label(totals)
    if isinstance(totals, Mapping):
        if not totals:
            raise ValueError("totals is empty; ask for at least one.")
        return [
            value if isinstance(value, ColumnTotal) else column_total(of, value)
            for of, value in totals.items()
        ]
    if isinstance(totals, Sequence) and any(
        isinstance(total, ColumnTotal | Mapping) for total in totals
    ):
        return [one for total in totals for one in as_list(total, names, shape)]
    try:
        sums = np.asarray(totals, dtype=np.float64)
    except (TypeError, ValueError):
        sums = np.empty(0)
    if sums.shape != shape or not np.isfinite(sums).all():
        raise ValueError(
            "totals must be a dict by column, such as {'income': 2.9e6}, made by "
            f"column_total, or finite sums of all columns, of shape {shape}; got "
            f"{totals!r}."
        )
    return list(map(column_total, names or range(sums.size), sums.ravel()))


def counts(columns, total, n=None):
    """Counts by level; or shares, which are counts of ``n`` rows, if given."""
    key = columns.keys(total.of)
    given = [end for end in (total.lower, total.upper) if isinstance(end, dict)]
    levels = list(dict.fromkeys(level for end in given for level in end))
    lower = np.array([_end(total.lower, level, -np.inf) for level in levels])
    upper = np.array([_end(total.upper, level, np.inf) for level in levels])
    levels = [level if len(key) > 1 else (level,) for level in levels]
    for level in levels:
        if not isinstance(level, tuple) or len(level) != len(key):
            raise ValueError(
                f"Totals of {key} need tuples of {len(key)} levels as keys; got "
                f"{level!r}."
            )
    codes = codes_of(columns, key, levels)
    seen = np.bincount(codes[codes >= 0], minlength=len(levels))
    for k in np.flatnonzero((seen == 0) & ((lower > 0) | (upper < 0))):
        raise UnmetTotals(
            f"No {columns.row} has {_level_named(key, levels[k])}, for which "
            f"{max(lower[k], upper[k]):.10g} is asked; "
            f"{_about_levels(columns, total.of, key, levels[k])}."
        )
    what = "the count of" if columns.row == "row" else "the margin at"
    if total.mean:
        if columns.row == "row":
            _check_shares(total, lower, upper, np.all(codes >= 0))
        if n is None:
            what = "the share of"
        else:
            lower, upper = n * lower, n * upper
    return Margin(key, tuple(levels), codes, lower, upper, what)


def _about_levels(columns, of, key, lacking):
    """Why no row may have a level, in words."""
    known = [*dict.fromkeys(columns.levels(key))]
    broken = (isinstance(level, float) and level % 1 > 0 for level in known)
    if 2 * len(known) > len(columns) and any(broken):
        return (
            f"{of!r} has {len(known)} values, and is a number rather than a category: "
            f"a number asks for its sum, {{{of!r}: 1000}}"
        )
    if any(part is None or str(part) == "nan" for part in lacking):
        return "missing cells have no level: give them one first"
    zeros = "" if columns.row == "row" else " beside cells that are 0"
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""
    there = ", ".join(map(repr, known[:10])) or "none"
    return f"levels are compared as they are, and there are {there}{more}{zeros}"


def _check_shares(total, lower, upper, whole):
    """Shares lie in 0 to 1; of all levels (``whole``) they can sum to 1, else to less.

    Those of cells with signs may be others.
    """
    least, most = np.maximum(lower, 0), np.minimum(upper, 1)
    if np.any(least > most):
        beyond = np.where(least > lower, upper, lower)[least > most][0]
        wrong = f"lie in 0 to 1; got {beyond:.10g}"
    elif least.sum() > 1 + _AGREE:
        wrong = f"sum to 1{' at most' * (not whole)}; got {least.sum():.10g}"
    elif whole and most.sum() < 1 - _AGREE:
        wrong = f"sum to 1, as no row has another one; got {most.sum():.10g}"
    else:
        return
    raise UnmetTotals(
        f"Shares of the levels of {called(total.of)} must {wrong}. Percent are divided "
        "by 100, and counts are asked for without mean=True."
    )


def codes_of(columns, key, levels):
    """Which of some levels of one column or more each row has; -1 for none."""
    if len(key) == 1:
        return columns.codes(key[0], {level[0]: k for k, level in enumerate(levels)})
    rows, asked = np.zeros(len(columns), np.int64), np.zeros(len(levels), np.int64)
    known = np.ones(len(columns), bool)
    for k, column in enumerate(key):
        own = {}
        numbers = [own.setdefault(level[k], len(own)) for level in levels]
        codes = columns.codes(column, own)
        known &= codes >= 0
        rows, asked = rows * len(own) + codes, asked * len(own) + numbers
    order = np.argsort(asked)
    found = np.searchsorted(asked[order], rows).clip(max=len(levels) - 1)
    found = order[found]
    return np.where(known & (asked[found] == rows), found, -1)


def _as_means(rows, lower, upper, names):
    """Means, as sums of weighted differences that are 0, or on one side of it."""
    parts = []
    rows = rows.toarray() if issparse(rows) else rows
    for row, low, high, name in zip(rows, lower, upper, names, strict=True):
        sides = {low: (0.0, np.inf), high: (-np.inf, 0.0)}
        for end, side in sides.items() if low < high else [(low, (0.0, 0.0))]:
            if np.isfinite(end):
                named = f"{name} less {end:g}{TIMES_SUM}"
                # Differences that its rounding alone makes are none.
                rounds = np.abs(row - end) <= _ROUNDING * abs(end)
                parts.append((np.where(rounds, 0.0, row - end), *side, named))
    rows, lower, upper, names = zip(*parts, strict=True)
    return np.array(rows), lower, upper, names


def stacked(matrices):
    """Dense if they are full enough, which is faster, else sparse."""
    filled = sum(m.nnz if issparse(m) else np.count_nonzero(m) for m in matrices)
    entries = sum(m.shape[0] * m.shape[1] for m in matrices)
    if filled > _DENSE * entries:
        return np.vstack([m.toarray() if issparse(m) else m for m in matrices])
    return vstack([csr_array(m) for m in matrices], format="csr")


def check_agreement(groups):
    """Margins that count all rows must have the same sums of what they share."""
    for first, second in combinations(groups, 2):
        shared = tuple(column for column in first.key if column in second.key)
        one, other = first.sums(shared), second.sums(shared)
        if one is None or other is None:
            continue
        mass = sum(map(abs, one.values()))
        for level in one.keys() | other.keys():
            sums = one.get(level, 0.0), other.get(level, 0.0)
            if abs(sums[0] - sums[1]) > _AGREE * mass:
                at = f" at {_level_named(shared, level)}" if shared else ""
                shares = " Shares have mean=True there." if min(sums) <= 1 else ""
                raise UnmetTotals(
                    f"The totals of {first.name} and {second.name} disagree{at}: they "
                    f"sum to {sums[0]:.10g} and {sums[1]:.10g}. Mend them, or give one "
                    f"room: column_total(..., within=).{shares}"
                )


def _level_named(key, level):
    return ", ".join(f"{k}={v!r}" for k, v in zip(key, level, strict=True))


def called(of):
    """A column, or a sum of several, in words."""
    if not isinstance(of, dict):
        return repr(of)
    terms = (f"{weight:+g} {column}" for column, weight in of.items())
    return " ".join(terms).removeprefix("+")
