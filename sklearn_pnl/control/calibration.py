"""Compute weights of rows that satisfy totals, and tables that satisfy margins.

:func:`calibrate` reads the totals as a linear system in the weights, minimises the
Kullback-Leibler divergence from the design weights, and can round the weights to
integers. :func:`rake` solves the same system for the cells of a labelled table.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import validate_params
from sklearn.utils.validation import _check_sample_weight

from .._utils.masked import check_plain
from .._utils.reports import TableReport
from .._utils.threads import one_blas_thread
from .._utils.validation import COUNT, NOT_NEGATIVE, errors_naming
from .._utils.warnings import warn_user
from ..columns.constraints import ALMOST, stack_terms
from ..frames.containers import columns_of, is_frame
from ..geometry import Raking, RakingError, rake_array
from ..geometry.convex.weights import TINY, effective_size
from .integer_weights import integer_weights
from .row_totals import ROUNDING, RowTotals

_SOLVER_CONSTRAINTS = {
    "tol": [NOT_NEGATIVE],
    "max_iter": [COUNT],
    "strict": ["boolean"],
}


class CalibrationError(ValueError):
    """Error raised if weights miss a total, with the :class:`CalibrationReport`.

    See Also
    --------
    calibrate : Compute weights of rows that satisfy totals.

    Examples
    --------
    >>> from sklearn_pnl.control import calibrate
    >>> try:
    ...     calibrate([[1.0], [2.0]], [7.0], bounds=(0.5, 2.0))
    ... except ValueError as error:
    ...     print(str(error).split(". ")[0])
    the sum of x0 must be 7, but weights within bounds can only give 1.5 to 6
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
        The calibrated weights.
    design_weights : ndarray of shape (n,)
        The weights before calibration.
    names : tuple of str
        Names of the totals.
    lower, upper : ndarray of shape (c,)
        Bounds of the requested totals.
    before, after : ndarray of shape (c,)
        The totals (means, shares) with the design weights and the calibrated weights.
    residual : ndarray of shape (c,)
        Distance of each total from the request, as a share of the sum of the absolute
        terms of the total.
    n_iter : int
        Number of sweeps and Newton steps.
    reasons : tuple of str
        Explanations of the totals that are not satisfied. Empty if all are satisfied.

    See Also
    --------
    calibrate : Compute weights of rows that satisfy totals.

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
        """Whether the weights, before rounding to integers, satisfy all totals."""
        return not self.reasons

    @property
    def missed(self) -> NDArray:
        """Distances of the totals from their intervals, in the units of the totals."""
        return np.abs(self.after - np.clip(self.after, self.lower, self.upper))

    @property
    def ratios(self) -> NDArray:
        """Weights divided by design weights; 1 if both are 0."""
        ratios, design = np.ones_like(self.weights), self.design_weights
        return np.divide(self.weights, design, out=ratios, where=design > 0)

    @property
    def effective_sample_size(self) -> float:
        """Kish's effective number of rows, ``(sum w)^2 / sum w^2``."""
        return effective_size(self.weights)

    @property
    def design_effect(self) -> float:
        """Kish's design effect, ``1 + cv^2`` of the non-zero weights.

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
    r"""Compute weights of rows that satisfy totals, nearest to given weights.

    The weights ``w`` minimise ``KL(w, design_weights)`` subject to

    .. math:: l \le \sum_i w_i x_i \le u, \qquad
              low \cdot d_i \le w_i \le high \cdot d_i .

    In survey statistics, this problem is called calibration, or raking if the totals
    are counts. The solution is ``w_i = d_i exp(x_i y)``, clipped to the bounds.
    For counts, proportional fitting finds ``y``, which has one element per total.
    Newton's method finds it for other totals, and if bounds are active. To calibrate
    groups of rows separately, call the function for each group of ``X.groupby(...)``.

    Means and shares do not determine the sum of the weights. If nothing else is
    requested, the weights keep the sum of the design weights.

    Parameters
    ----------
    X : data frame, array-like or sparse matrix of shape (n, n_columns)
        Rows of a sample. Sparse matrices stay sparse.
    totals : dict, ColumnTotal, list of them, or array-like of shape (n_columns,)
        Requested totals of the weighted rows. A dict or Series maps columns (names or
        indices) to totals. A number is the sum of the column, and a dict or Series
        maps levels to counts. A tuple of columns maps to counts by tuples of levels,
        or, for two columns, to a :func:`pandas.crosstab`. The counts of omitted levels
        are free. Use :func:`~sklearn_pnl.control.column_total` for means, intervals,
        tolerances and sums over several columns. An array contains the sums of all
        columns.
    design_weights : array-like of shape (n,), default=None
        Non-negative weights before calibration. Rows with weight 0 keep weight 0. None
        uses weight 1 for all rows.
    bounds : tuple of float, default=(0, inf)
        Lower and upper bound of the ratio of a weight to its design weight. Narrower
        bounds prevent extreme weights, but some totals can become infeasible.
    integer : bool, default=False
        Whether to round each weight up or down to an integer. Counts, and sums of small
        integers such as numbers of persons, are exact if a feasible rounding is found.
        A requested count that is not an integer is rounded up or down, such that
        margins with common columns stay consistent. Shares are rounded as counts.
        Means and other sums come close to the request, usually within the mean absolute
        value of the column. If no feasible rounding is found, the weights are
        truncated. Then a systematic sample of rows, drawn in proportion to the
        truncated fractions, receives one more unit (truncate, replicate, sample).
        ``report.missed`` contains the remaining distances; without a report, a warning
        states the largest, except for roundings of counts.
    tol : float, default=1e-9
        Tolerance of the residual of each total, as a share of the sum of the absolute
        terms.
    max_iter : int, default=200
        Maximum number of sweeps of proportional fitting and Newton steps. At least 20
        Newton steps follow if the sweeps do not converge.
    strict : bool, default=True
        Whether to raise an error if a total is not satisfied. If False, the report
        contains the reasons; without a report, a warning is issued.
    return_report : bool, default=False
        Whether to return a :class:`CalibrationReport`.

    Returns
    -------
    weights : ndarray of shape (n,)
        Weights in the order of the rows, for example for ``sample_weight``.
    report : CalibrationReport
        The report. Returned if ``return_report`` is True.

    Raises
    ------
    ValueError
        If a column or level is unknown, if a number is missing, or if shares that sum
        to 1 leave no weight for rows with other levels.
    CalibrationError
        A ``ValueError`` with the attribute ``report``, if a total is not satisfied and
        ``strict`` is True. The message names each total that is infeasible by itself,
        with its feasible range, or two margins with different sums over the same rows.
        Otherwise, the message names the total with the largest residual.

    See Also
    --------
    column_total : Request a mean, an interval or a sum over several columns.
    rake : Compute a table with given margins.
    sklearn_pnl.geometry.linear_projection : Project rows onto linear equations.

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
        raise ValueError("X has 0 rows. Pass at least one row.")
    check_order(design_weights, X, "design_weights")
    check_plain(design_weights, "design_weights")
    with errors_naming("design_weights"):
        empty = np.empty((len(columns), 0))
        design = _check_sample_weight(
            design_weights, empty, dtype=np.float64, ensure_non_negative=True
        )
    floor, ceiling = _limits_of_weights(bounds, design)
    system = RowTotals.read(totals, columns, design)
    weights, n_iter, reasons = system.solve(
        design, floor, ceiling, tol, max_iter, "weights"
    )
    if integer and not reasons:
        weights = integer_weights(system, weights, floor, ceiling)
    report = CalibrationReport(
        weights,
        design,
        system.labels,
        system.lower,
        system.upper,
        system.values(design),
        system.values(weights),
        system.residual(weights),
        n_iter,
        reasons,
    )
    if strict and reasons:
        raise CalibrationError(" ".join(reasons), report)
    if return_report:
        return weights, report
    _warn_of_missed_totals(report, system.is_count & integer, system.is_mean, tol)
    return weights


def _warn_of_missed_totals(report, is_rounded, is_mean, tol):
    """Warn of totals that the weights miss, except by the rounding of a count."""
    missed = np.where(is_mean, report.weights.sum(), 1.0) * report.missed
    is_missed = report.residual > max(tol, ROUNDING)
    is_missed &= ~is_rounded | (missed > 1 - ALMOST)
    if not is_missed.any():
        return
    k = int(np.argmax(np.where(is_missed, report.residual, 0.0)))
    how = "The weights do not satisfy all totals"
    advice = "Set return_report=True to see all totals."
    if is_rounded[k]:
        how = "No integer weights with all counts were found"
        advice = f"Leave out a margin, or allow an interval (rtol=). {advice}"
    warn_user(
        f"{how}; the largest residual is that of {report.names[k]}, by "
        f"{report.missed[k]:.6g}. The weights miss {np.count_nonzero(is_missed)} of "
        f"{len(missed)} totals. {advice}"
    )


def _limits_of_weights(bounds, design):
    """Return lower and upper bounds (n,) of the weights."""
    low, high = bounds
    if not (0 <= low <= high and low < np.inf):
        raise ValueError(
            "bounds must be ratios of a weight to its design weight, (lower, upper) "
            f"with 0 <= lower <= upper, and lower finite; got {bounds!r}."
        )
    return low * design, np.where(design > 0, high, 0.0) * np.maximum(design, TINY)


def check_order(given, X, name):
    """Reject a Series with the index of X in another order.

    Values are read by position, so that the Series would be assigned to wrong rows.
    """
    index, labels = (getattr(x, "index", None) for x in (given, X))
    has_both = hasattr(index, "equals") and hasattr(labels, "equals")
    if has_both and not index.equals(labels) and Counter(index) == Counter(labels):
        raise ValueError(
            f"{name} has the index of X in another order, but is read by position. "
            f"Pass {name}.reindex(X.index)."
        )


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
    r"""Compute the table with given margins that is nearest to a given table.

    The result ``q`` minimises ``KL(|q|, |table|)`` over all tables with the requested
    margins and the signs of ``table``. The method is called raking or iterative
    proportional fitting, and GRAS for tables with negative cells. Cells with value 0
    and cells that are not in the table stay 0.

    Parameters
    ----------
    table : pandas Series, or array-like
        A Series with one named index level for each mode. For a data frame with one
        cell per row, use ``frame.set_index(modes)[column]``, or
        :func:`~sklearn_pnl.control.calibrate`. Arrays are passed to
        :func:`sklearn_pnl.geometry.rake_array`, which accepts many tables at once, but
        no negative cells.
    margins : dict of name, or tuple of names, to dict or Series
        Requested sums over all other modes, by level or tuple of levels. Other totals
        have the forms of :func:`~sklearn_pnl.control.calibrate`. The sums of omitted
        levels are free. For an array, pass a dict from tuples of modes to arrays.
    tol : float, default=1e-9
        Tolerance of the residual of each margin, as a share of the sum of the absolute
        cells.
    max_iter : int, default=1000
        Maximum number of sweeps of proportional fitting and Newton steps.
    strict : bool, default=True
        Whether to raise an error if a margin is not satisfied. If False, ``reasons`` of
        the result explains the failure.

    Returns
    -------
    Raking
        The result. ``tables`` is a Series or array, as ``table`` is.

    Raises
    ------
    ValueError
        If a name or level is unknown, or a cell is missing.
    RakingError
        A ``ValueError`` with the attribute ``result``, if a margin is not satisfied and
        ``strict`` is True. The message names an infeasible margin with its feasible
        range, two margins with different sums, or the margin with the largest residual.

    See Also
    --------
    calibrate : Compute weights of rows that satisfy totals.
    sklearn_pnl.geometry.rake_array : Rake many tables in one array.

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
            "table must be a Series with one index level for each mode; got a data "
            "frame. Pass frame.set_index(modes)[column], or for a crosstab "
            "frame.stack()."
        )
    if not hasattr(type(table), "iloc"):
        return rake_array(table, margins, tol=tol, max_iter=max_iter, strict=strict)
    check_plain(table, "table")
    cells = table.to_numpy(dtype=float)
    if not np.isfinite(cells).all():
        raise ValueError(
            "table contains NaN or infinity. Impute or drop missing cells."
        )
    columns = columns_of(table.index.to_frame(index=False))
    signs, sizes = np.sign(cells), np.abs(cells)
    system = RowTotals.read(margins, columns, sizes)
    system = replace(system, coefficients=stack_terms([system.coefficients * signs]))
    ceiling = np.where(sizes > 0, np.inf, 0.0)
    sizes, n_iter, reasons = system.solve(
        sizes, np.zeros(len(cells)), ceiling, tol, max_iter, "cells"
    )
    raked = type(table)(signs * sizes, index=table.index, name=table.name)
    result = Raking(
        raked,
        system.residual(sizes).max(),
        np.array(n_iter),
        np.array(not reasons),
        dict(enumerate(reasons[:1])),
    )
    if strict and reasons:
        raise RakingError(reasons[0], result)
    return result
