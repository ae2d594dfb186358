"""Calibration: weights of rows that meet totals, and tables that meet margins."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils._param_validation import validate_params
from sklearn.utils.validation import _check_sample_weight

from .._utils.masked import check_plain
from .._utils.reports import TableReport
from .._utils.threads import one_blas_thread
from .._utils.validation import COUNT, NOT_NEGATIVE, errors_naming, warn_user
from ..frames.containers import columns_of, is_frame
from ..geometry import Raking, RakingError, rake_array
from ..geometry.convex.reach import box_reach, span
from ..geometry.convex.whole import whole_near
from .constraints import LinearConstraints, stack_terms
from .totals import as_totals, check_level_sum, read_counts, read_sum
from .weights import _TINY, effective_size, nearest_weights

# Share of a total that rounding in double precision may hide.
_ROUNDING = 1e-12
# Integer terms up to this size are numbers of persons or things, not amounts.
_LARGEST_COUNT = 32
# Pairs of rows whose rounding is exchanged; some dozens are enough.
_MOST_EXCHANGES = 500
_GOLDEN_RATIO = (5**0.5 - 1) / 2
_SOLVER_CONSTRAINTS = {
    "tol": [NOT_NEGATIVE],
    "max_iter": [COUNT],
    "strict": ["boolean"],
}


class CalibrationError(ValueError):
    """Totals that weights do not meet; ``report`` is the :class:`CalibrationReport`.

    See Also
    --------
    calibrate : Weights of rows that meet totals.

    Examples
    --------
    >>> from sklearn_pnl.control import calibrate
    >>> try:
    ...     calibrate([[1.0], [2.0]], [7.0], bounds=(0.5, 2.0))
    ... except ValueError as error:
    ...     print(error)
    the sum of 0 asks for 7; within the bounds of the weights it reaches 1.5 to 6.
    """

    def __init__(self, message: str, report: CalibrationReport) -> None:
        super().__init__(message)
        self.report = report


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationReport(TableReport):
    """Totals before and after calibration, and the spread of the weights.

    Attributes
    ----------
    weights : ndarray of shape (n,)
    design_weights : ndarray of shape (n,)
    names : tuple of str
        The totals, in words.
    lower, upper : ndarray of shape (c,)
        What was asked for.
    before, after : ndarray of shape (c,)
        The totals (means, shares) with the design weights, and with these.
    residual : ndarray of shape (c,)
        What is missed of each, as a share of the sum of its absolute terms.
    n_iter : int
        Newton steps.
    reasons : tuple of str
        Why a total is not met; none if all are.

    See Also
    --------
    calibrate : Weights of rows that meet totals.

    Examples
    --------
    >>> from sklearn_pnl.control import calibrate
    >>> weights, report = calibrate([[1.0], [2.0]], [7.0], return_report=True)
    >>> round(report.design_effect, 4)
    1.0584
    """

    weights: np.ndarray
    design_weights: np.ndarray
    names: tuple
    lower: np.ndarray
    upper: np.ndarray
    before: np.ndarray
    after: np.ndarray
    residual: np.ndarray
    n_iter: int
    reasons: tuple = ()

    @property
    def converged(self) -> bool:
        """Whether all totals are met (by whole weights: by those they round)."""
        return not self.reasons

    @property
    def missed(self) -> NDArray:
        """Distance of each total from what was asked, in its units."""
        return np.abs(self.after - np.clip(self.after, self.lower, self.upper))

    @property
    def ratios(self) -> NDArray:
        """Weights over design weights; 1 where both are 0."""
        ratios, design = np.ones_like(self.weights), self.design_weights
        return np.divide(self.weights, design, out=ratios, where=design > 0)

    @property
    def effective_sample_size(self) -> float:
        """``(sum w)^2 / sum w^2``: equal weights of so many rows vary as little."""
        return effective_size(self.weights)

    @property
    def design_effect(self) -> float:
        """Kish's ``1 + cv^2`` of the weights that are not 0.

        L. Kish, "Survey Sampling", 1965, section 11.7.
        """
        n_used = np.count_nonzero(self.weights)
        return float(n_used / self.effective_sample_size) if n_used else np.nan

    def _columns(self):
        names = ["lower", "upper", "before", "after", "residual"]
        return {"total": self.names} | {name: getattr(self, name) for name in names}

    def _title(self):
        met = "all met" if self.converged else "NOT all met"
        return (
            f"Weights of {len(self.weights)} rows, {len(self.names)} totals, {met}: "
            f"worst residual {self.residual.max(initial=0.0):.1e}, {self.n_iter} steps"
        )

    def _notes(self):
        ratios = self.ratios[self.design_weights > 0]
        spread = (
            f"Sum {self.weights.sum():.10g}; ratio to the design weights "
            f"{ratios.min(initial=np.inf):.4g} to {ratios.max(initial=0):.4g}; design "
            f"effect {self.design_effect:.4g}; effective sample size "
            f"{self.effective_sample_size:.1f}."
        )
        return [spread, *self.reasons]


@validate_params(
    _SOLVER_CONSTRAINTS
    | {
        "bounds": ["array-like"],
        "integer": ["boolean"],
        "return_report": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
@one_blas_thread()
def calibrate(
    X: ArrayLike,
    totals: object,
    *,
    design_weights: ArrayLike | None = None,
    bounds: tuple[float, float] = (0.0, np.inf),
    integer: bool = False,
    tol: float = 1e-9,
    max_iter: int = 200,
    strict: bool = True,
    return_report: bool = False,
) -> NDArray | tuple[NDArray, CalibrationReport]:
    r"""Compute weights of rows that meet totals, nearest to given weights.

    Solves ``min KL(w, design_weights)`` over the weights ``w`` with

    .. math:: l \le \sum_i w_i x_i \le u, \qquad
              low \cdot d_i \le w_i \le high \cdot d_i ,

    which survey statistics calls calibration (raking, where the totals are counts):
    ``w_i = d_i exp(x_i y)``, cut to its bounds, by Newton's method in as many
    variables as there are totals. To calibrate parts of the rows apart, call it for
    each group of ``X.groupby(...)``.

    Parameters
    ----------
    X : data frame, array-like or sparse matrix of shape (n, n_columns)
        Rows of a sample. Sparse matrices are not made dense.
    totals : dict, ColumnTotal, list of them, or array-like of shape (n_columns,)
        What is asked of the weighted rows, by column (a name, or its number). A number
        is the sum of the column; a dict or Series holds counts by level; with a tuple
        of columns, counts by tuple of levels, of two also a :func:`pandas.crosstab`.
        Levels that are not named are free. A Series by column is read as a dict.
        :func:`~sklearn_pnl.control.column_total` has means, intervals, tolerances and
        sums of several columns. An array asks for the sums of all columns.
    design_weights : array-like of shape (n,), default=None
        Not negative; rows without weight stay so. None weighs all rows 1.
    bounds : tuple of float, default=(0, inf)
        Least and largest ratio of a weight to its design weight.
    integer : bool, default=False
        Whether to round weights to integers that meet the totals, each weight up or
        down. Counts, and sums of small integers such as persons, are exact if such
        integers exist next to the weights. Means and other sums are brought near by
        exchanges between rows that are alike in these totals, usually to less than the
        mean size of their terms. If no integers are found, weights are truncated, and
        the fractions replicate a systematic sample of rows (truncate, replicate,
        sample). ``report.missed`` has what is missed; without a report, a warning
        states it.
    tol : float, default=1e-9
        Wanted residual of each total, as a share of the sum of its absolute terms.
    max_iter : int, default=200
        Most Newton steps.
    strict : bool, default=True
        Whether a total that is not met raises. Otherwise the report says it, or a
        warning if none is asked for.
    return_report : bool, default=False
        Whether to return a :class:`CalibrationReport` too.

    Returns
    -------
    weights : ndarray of shape (n,)
        In the order of the rows, as for ``sample_weight``.
    report : CalibrationReport
        Only if ``return_report``.

    Raises
    ------
    ValueError
        If a column or level is unknown or a number is missing; if shares of levels sum
        to 1 and leave nothing for rows without such a level. If totals are not met, the
        error carries the report: it names a total that is out of reach by itself with
        what it can reach, else the one that the best weights miss most. Margins that
        disagree are such totals: which two they are is not said.

    See Also
    --------
    column_total : A mean, an interval, a sum of several columns.
    rake : Tables with given margins.
    sklearn_pnl.geometry.linear_projection : Rows to linear equations and ranges.

    References
    ----------
    Deville and Sarndal, "Calibration estimators in survey sampling", Journal of the
    American Statistical Association, 1992.

    Lovelace and Ballas, "Truncate, replicate, sample: a method for creating integer
    weights for spatial microsimulation", Computers, Environment and Urban Systems,
    2013.

    Examples
    --------
    >>> from sklearn_pnl.control import calibrate
    >>> X = [[0, 20.0], [0, 40.0], [1, 30.0], [1, 70.0]]
    >>> weights = calibrate(X, {0: {0: 60, 1: 40}, 1: 4000})
    >>> weights.round(3)
    array([27.256, 32.744, 16.372, 23.628])
    """
    columns = columns_of(X)
    if not len(columns):
        raise ValueError("X has 0 rows: give at least one row to weigh.")
    check_order(design_weights, X, "design_weights")
    check_plain(design_weights, "design_weights")
    with errors_naming("design_weights"):
        empty = np.empty((len(columns), 0))
        design = _check_sample_weight(
            design_weights, empty, dtype=np.float64, ensure_non_negative=True
        )
    floor, ceiling = _limits_of_weights(bounds, design)
    asked = _RowTotals.read(totals, columns, design)
    weights, n_iter, reasons = asked.solve(
        design, floor, ceiling, tol, max_iter, "the bounds of the weights"
    )
    if integer and not reasons:
        weights = _round_weights(asked, weights, floor, ceiling)
    report = CalibrationReport(
        weights,
        design,
        asked.labels,
        asked.lower,
        asked.upper,
        asked.values(design),
        asked.values(weights),
        asked.residual(weights),
        n_iter,
        reasons,
    )
    if strict and reasons:
        raise CalibrationError(" ".join(reasons), report)
    if return_report:
        return weights, report
    k = int(report.residual.argmax())
    if report.residual[k] > max(tol, _ROUNDING):
        warn_user(
            f"The weights miss totals, most {report.names[k]}, by "
            f"{report.missed[k]:.6g}; return_report=True has all."
        )
    return weights


def _limits_of_weights(bounds, design):
    """Least and largest weights (n,), of ratios to design weights."""
    low, high = bounds
    if not (0 <= low <= high and low < np.inf):
        raise ValueError(
            "bounds must be ratios of a weight to its design weight, 0 <= least <= "
            f"largest, which may be infinite; got {bounds!r}."
        )
    return low * design, np.where(design > 0, high, 0.0) * np.maximum(design, _TINY)


def check_order(given, X, name):
    """Refuse a Series with the index of X in another order: it is read by place."""
    index, labels = (getattr(x, "index", None) for x in (given, X))
    has_both = hasattr(index, "equals") and hasattr(labels, "equals")
    if has_both and not index.equals(labels) and Counter(index) == Counter(labels):
        raise ValueError(
            f"{name} has the index of X in another order, but is read by place: give "
            f"{name}.reindex(X.index)."
        )


# --- totals as a linear system of the weights ---------------------------------------


@dataclass(frozen=True, repr=False)
class _RowTotals(LinearConstraints):
    """Sums over weighted rows, some of them (k,) divided by the sum of the weights."""

    is_mean: np.ndarray | None = None

    @classmethod
    def read(cls, totals, columns, design):
        """Read what is asked of the rows: sums first, then counts."""
        asked = as_totals(totals, columns.names, (columns.n_columns,))
        asked.sort(key=lambda total: total.by_level)
        parts = [_read_total(columns, total, design) for total in asked]
        is_mean = np.repeat([total.mean for total in asked], [*map(len, parts)])
        return cls(**vars(parts[0].stack(*parts[1:])), is_mean=is_mean)

    def values(self, weights):
        """The totals (k,) of weights."""
        sums = self.coefficients @ weights
        return np.where(self.is_mean, sums / max(np.sum(weights), _TINY), sums)

    def residual(self, weights):
        """What is missed of each, as a share of the sum of its absolute terms."""
        missed = np.abs(self.missing(self.values(weights)))
        # Weights of 0 have no mean.
        missed[self.is_mean & (np.sum(weights) <= 0)] = np.inf
        size = replace(self, coefficients=abs(self.coefficients)).values(weights)
        # Where all terms are 0, what is missed stays far above any tolerance.
        return missed / np.maximum(size, 1e-100)

    def linear(self):
        """Coefficients of the weights in sums alone, and their ends.

        A mean between two ends is two sums of differences from these, one on either
        side of 0.
        """
        sums = ~self.is_mean
        parts, ends = [self.coefficients[sums]], [[self.lower[sums], self.upper[sums]]]
        for k in np.flatnonzero(self.is_mean):
            row, low, high = self._row(k), self.lower[k], self.upper[k]
            for end in filter(np.isfinite, dict.fromkeys((low, high))):
                # Differences that the rounding of a mean makes are none.
                is_end = np.abs(row - end) <= _ROUNDING * abs(end)
                parts.append(np.where(is_end, 0.0, row - end)[None])
                least = 0.0 if end == low else -np.inf
                most = 0.0 if end == high else np.inf
                ends.append([[least], [most]])
        return stack_terms(parts), *np.hstack(ends)

    def _row(self, k):
        row = self.coefficients[[k]]
        return (row.toarray() if issparse(row) else row)[0]

    def solve(self, design, floor, ceiling, tol, max_iter, ranges):
        """Weights nearest to given ones, Newton steps, and why totals are not met."""
        reach = np.concatenate(box_reach(self.coefficients, floor[None], ceiling[None]))
        for k in np.flatnonzero(self.is_mean):
            # Of any weights; bounds may narrow it.
            row = self._row(k)[ceiling > 0]
            reach[:, k] = row.min(), row.max()
        least, most = reach
        beyond = self.lower > most + _ROUNDING * np.abs(most)
        beyond |= self.upper < least - _ROUNDING * np.abs(least)
        if beyond.any():
            reasons = (
                f"{self.asks(k)}; within {ranges} it reaches "
                f"{span(least[k], most[k], 7)}."
                for k in np.flatnonzero(beyond)
            )
            return np.clip(design, floor, ceiling), 0, tuple(reasons)
        weights, n_iter = nearest_weights(
            *self.linear(), design, floor, ceiling, tol, max_iter
        )
        residual = self.residual(weights)
        k = int(residual.argmax())
        if residual[k] <= max(tol, 1e-14):
            return weights, n_iter, ()
        reason = (
            f"{self.asks(k)}; with the other totals, the weights after {n_iter} "
            f"steps give {self.values(weights)[k]:.10g}, missed by {residual[k]:.1e} > "
            f"tol={tol:g} of its terms. Leave one out, give tolerances "
            "(column_total(..., rtol=)), or increase max_iter or tol."
        )
        return weights, n_iter, (reason,)


def _read_total(columns, total, design):
    """A total as constraints on the weights of rows."""
    if not total.by_level:
        return read_sum(columns, total)
    counts, codes = read_counts(columns, total)
    rest = np.flatnonzero((codes < 0) & (design > 0))
    # Shares that sum to 1 leave no weight for rows that have none of their levels.
    check_level_sum(total, counts, len(rest), 1.0 if total.mean else None)
    least = counts.lower.sum()
    if total.mean and least >= 1 - _ROUNDING and len(rest):
        raise ValueError(
            f"The shares of the levels of {total.of!r} sum to {least:.6g}, which "
            f"leaves nothing for {len(rest)} rows that have none of these levels, the "
            f"first of which is row {rest[0]}. Leave these rows out, or let the shares "
            "sum to less."
        )
    return counts


def _round_weights(asked, weights, floor, ceiling):
    """Round weights to integers that meet totals, if such integers are found.

    Otherwise truncate, replicate, sample: fractions are summed over the rows, with
    rows of the same terms next to each other, and a row is replicated where the sum
    passes a half.
    """
    # No weight is -0.
    floor = np.ceil(floor - _ROUNDING) + 0.0
    ceiling = np.floor(ceiling + _ROUNDING)
    for row in np.flatnonzero(floor > ceiling):
        raise ValueError(f"bounds leave no whole weight for row {row}.")
    terms, lower, upper = asked.linear()
    # Rows that nothing is asked of keep the sum of their weights.
    terms = csr_array(stack_terms([terms, np.ones((1, len(weights)))]))
    lower, upper = (np.r_[e, weights.sum() + k] for e, k in ((lower, -1), (upper, 1)))
    is_whole = abs(terms - terms.rint()).sum(axis=1) == 0
    is_whole &= np.ceil(lower) <= np.floor(upper)
    largest = abs(terms).max(axis=1).toarray().ravel()
    # Counts of rows and of persons in them are met; a search for exact sums of larger
    # terms, such as prices, takes minutes.
    weights = np.clip(weights, floor, ceiling)
    order = np.argsort(_fingerprints(terms), kind="stable")
    for most in (_LARGEST_COUNT, 1):
        exact = is_whole & (largest <= most)
        with suppress(ValueError):
            ends = lower[exact], upper[exact]
            group, whole = _rounded_in_groups(weights, order, terms[exact], *ends)
            loose = terms[~exact].toarray(), lower[~exact], upper[~exact]
            return _exchanged(whole, weights, group, *loose)
    whole = np.floor(weights + _ROUNDING)
    fractions = np.cumsum((weights - whole)[order])
    whole[order] += np.diff(np.rint(fractions), prepend=0.0)
    return np.clip(whole, floor, ceiling)


def _fingerprints(terms):
    """Return a number (n,) of each row that tells rows with other terms (c, n) apart.

    Sums with irrational coefficients are equal for equal terms only.
    """
    return terms.T @ np.sin(1.0 + np.arange(terms.shape[0]))


def _rounded_in_groups(weights, order, terms, lower, upper):
    """Round weights so that the sums of terms (c, n) lie in intervals.

    Rows with the same terms form a group. The integer sum of the weights of each group
    is found first, then the rows of the group that go up. Rows that follow each other
    in ``order`` (n,) are alike in other terms.

    Returns
    -------
    group : ndarray of int of shape (n,)
    whole : ndarray of shape (n,)
    """
    _, first, group = np.unique(
        _fingerprints(terms), return_index=True, return_inverse=True
    )
    low = np.floor(weights + _ROUNDING)
    part = np.maximum(weights - low, 0.0)
    least = np.bincount(group, low)
    limits = least, least + np.bincount(group, part > 0)
    sums = np.bincount(group, weights)
    sums = whole_near(sums, terms[:, first], lower, upper, limits, seconds=2)
    # Not the largest fractions, which terms may depend on: rows go up by chance, with
    # evenly spread numbers in place of random ones.
    spread = np.empty(len(weights))
    spread[order] = np.arange(len(weights)) * _GOLDEN_RATIO % 1
    order = np.lexsort((np.where(part > 0, spread - part, 2.0), group))
    size = np.bincount(group)
    rank = np.empty(len(weights))
    rank[order] = np.arange(len(weights)) - np.repeat(np.cumsum(size) - size, size)
    return group, low + (rank < (sums - least)[group])


def _exchanged(whole, weights, group, terms, lower, upper):
    """Bring sums of ``terms`` (m, n) near their intervals by exchanges of pairs.

    One of two rows of a group is rounded up in place of the other, so that the sums of
    the groups stay. Each exchange is the one that leaves the least of the sum that is
    missed most; the exchanges end where none helps.
    """
    if not len(terms):
        return whole
    sizes = np.abs(terms).mean(axis=1) + _TINY
    terms, lower, upper = terms / sizes[:, None], lower / sizes, upper / sizes
    values = terms @ whole
    for _ in range(_MOST_EXCHANGES):
        missing = np.clip(values, lower, upper) - values
        k, missed = np.argmax(np.abs(missing)), np.square(missing).sum()
        ups = np.flatnonzero(whole < weights - _ROUNDING)
        downs = np.flatnonzero(whole > weights + _ROUNDING)
        if missed <= _ROUNDING or not len(ups) or not len(downs):
            break
        # Of each row that may go up: the rows of its group with the nearest terms.
        least, width = terms[k].min(), 2 * np.ptp(terms[k]) + _TINY
        keys = group[downs] + (terms[k, downs] - least) / width
        downs = downs[np.argsort(keys, kind="stable")]
        aim = np.clip((terms[k, ups] - missing[k] - least) / width, 0, 0.75)
        place = np.searchsorted(np.sort(keys), group[ups] + aim)
        near = downs[np.clip([place - 1, place], 0, len(downs) - 1)].ravel()
        ups = np.tile(ups, 2)
        left = missing[:, None] - terms[:, ups] + terms[:, near]
        left = np.where(group[ups] == group[near], np.square(left).sum(axis=0), np.inf)
        best = np.argmin(left)
        if not left[best] < missed * (1 - _ROUNDING):
            break
        i, j = ups[best], near[best]
        whole[i], whole[j] = whole[i] + 1, whole[j] - 1
        values = terms @ whole
    return whole


# --- tables with labels -------------------------------------------------------------


@validate_params(_SOLVER_CONSTRAINTS, prefer_skip_nested_validation=True)
@one_blas_thread()
def rake(
    table: Any,
    margins: object,
    *,
    tol: float = 1e-9,
    max_iter: int = 1000,
    strict: bool = True,
) -> Raking:
    r"""Compute the table with given margins that is nearest to a given one.

    Solves ``min KL(|q|, |table|)`` over the ``q`` with the margins wanted and the signs
    of the table: raking, or iterative proportional fitting; with negative cells it is
    GRAS. Cells that are 0, or are not there, stay so.

    Parameters
    ----------
    table : pandas Series, or array-like
        A Series with a level of its index for each mode, by name. A frame with a cell a
        row is one by ``frame.set_index(modes)[column]``, or has weights by
        :func:`calibrate`. Arrays are handed to :func:`sklearn_pnl.geometry.rake_array`:
        many tables at once, no negative cells.
    margins : dict of name, or tuple of names, to dict or Series
        The sums over all other modes, by level or tuple of levels, or other totals in
        the forms of :func:`calibrate`. Levels that are not named are free. Of an array:
        dict of tuple of modes to array.
    tol : float, default=1e-9
        Wanted ``|margin - wanted|``, as a share of the sizes of the cells summed.
    max_iter : int, default=1000
        Most Newton steps.
    strict : bool, default=True
        Whether a table that does not have the margins raises. Otherwise ``reasons``
        says it.

    Returns
    -------
    Raking
        ``tables`` is a Series or array as given.

    Raises
    ------
    ValueError
        If a name or level is unknown, or a cell is missing.
    RakingError
        A ``ValueError`` that carries the result: a margin that no such table has, and
        what can be reached, else what the best table misses, also where margins
        disagree.

    See Also
    --------
    calibrate : Weights of rows that meet totals.
    sklearn_pnl.geometry.rake_array : Many tables as one array, faster.

    References
    ----------
    Deming and Stephan, "On a least squares adjustment of a sampled frequency table
    when the expected marginal totals are known", Annals of Mathematical Statistics,
    1940.

    Junius and Oosterhaven, "The solution of updating or regionalizing a matrix with
    both positive and negative entries", Economic Systems Research, 2003 (GRAS).

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_pnl.control import rake
    >>> cells = {("f", "north"): 1.0, ("f", "south"): 2.0, ("m", "south"): 3.0}
    >>> table = pd.Series(cells).rename_axis(["sex", "region"])
    >>> margins = {"sex": {"f": 40, "m": 60}, "region": {"north": 30, "south": 70}}
    >>> rake(table, margins).tables.round(6).tolist()
    [30.0, 10.0, 60.0]
    """
    if is_frame(table):
        raise ValueError(
            "table is a data frame: pass a Series with a level of its index for each "
            "mode, frame.set_index(modes)[column], or of a crosstab frame.stack()."
        )
    if not hasattr(type(table), "iloc"):
        return rake_array(table, margins, tol=tol, max_iter=max_iter, strict=strict)
    check_plain(table, "table")
    cells = table.to_numpy(dtype=float)
    if not np.isfinite(cells).all():
        raise ValueError("Cells must be finite; fill or drop those that are missing.")
    columns = columns_of(table.index.to_frame(index=False))
    signs, sizes = np.sign(cells), np.abs(cells)
    asked = _RowTotals.read(margins, columns, sizes)
    asked = replace(asked, coefficients=stack_terms([asked.coefficients * signs]))
    ceiling = np.where(sizes > 0, np.inf, 0.0)
    sizes, n_iter, reasons = asked.solve(
        sizes, np.zeros(len(cells)), ceiling, tol, max_iter, "the signs of cells"
    )
    raked = type(table)(signs * sizes, index=table.index, name=table.name)
    result = Raking(
        raked,
        asked.residual(sizes).max(),
        np.array(n_iter),
        np.array(not reasons),
        dict(enumerate(reasons[:1])),
    )
    if strict and reasons:
        raise RakingError(reasons[0], result)
    return result
