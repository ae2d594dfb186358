"""Calibration of weights: rows weighted so that their totals are those asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, validate_params

from .._runtime.validation import COUNT, NOT_NEGATIVE, tells_where
from ..geometry import linear_projection
from ..geometry.masks import unmasked
from ..geometry.reach import box_reach, span
from .columns import Columns, check_order, numbers_of
from .sweeps import sweep
from .totals import TIMES_SUM, read_totals
from .whole import whole_weights

# The projection judges a total by the design weights too, which may be far from it.
_LEAST_TOL = 1e-14
# What ends of ranges reach is known to this share of its terms.
_ROUNDING = 1e-14
# Sweeps before Newton's method, and more where its steps are long; it is used for at
# most so many totals.
_SWEEPS, _NEWTON_COST, _NEWTON_UP_TO = 30, 100, 5000
# Totals in a report in words.
_SHOWN = 30
# What a search for weights may be told, here and in raking.
SEARCH = {
    "integer": ["boolean"],
    "time_limit": [Interval(Real, 0, None, closed="right")],
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
    >>> from sklearn_pnl import CalibrationError, calibrate
    >>> try:
    ...     calibrate([[1.0], [2.0]], [7.0], bounds=(0.5, 2.0))
    ... except CalibrationError as error:
    ...     print(error)
    the sum of 0 asks for 7; within the bounds of the weights it reaches 1.5 to 6.
    """

    def __init__(self, message: str, report: CalibrationReport) -> None:
        super().__init__(message)
        self.report = report


@dataclass(frozen=True)
class CalibrationReport:
    """What was asked of weights, what was met, and what it cost.

    Attributes
    ----------
    weights : ndarray of shape (n,)
    design_weights : ndarray of shape (n,)
    names : tuple of str
        The totals, in words.
    lower, upper : ndarray of shape (c,)
        What was asked for.
    before, after : ndarray of shape (c,)
        The totals with the design weights, and with these.
    residual : ndarray of shape (c,)
        What is missed of each, as a share of the sum of its absolute terms.
    n_iter : int
        Sweeps or Newton steps.
    reasons : tuple of str
        Why a total is not met; none if all are.

    See Also
    --------
    calibrate : Weights of rows that meet totals.

    Examples
    --------
    >>> from sklearn_pnl import calibrate
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
        """Whether all totals are met."""
        return not self.reasons

    @property
    def missed(self) -> NDArray:
        """Distance of each total from what was asked, in its units."""
        return np.abs(self.after - np.clip(self.after, self.lower, self.upper))

    @property
    def ratios(self) -> NDArray:
        """Weights over design weights; 1 where both are 0."""
        ratios = np.ones_like(self.weights)
        design = self.design_weights
        return np.divide(self.weights, design, out=ratios, where=design > 0)

    @property
    def effective_sample_size(self) -> float:
        """``(sum w)^2 / sum w^2``: equal weights of so many rows vary as little."""
        return effective(self.weights)

    @property
    def design_effect(self) -> float:
        """Kish's ``1 + cv^2`` of the weights that are not 0.

        L. Kish, "Survey Sampling", 1965, section 11.7.
        """
        used = np.count_nonzero(self.weights)
        return float(used / self.effective_sample_size) if used else np.nan

    def to_frame(self) -> object:
        """A row for each total; needs pandas."""
        import pandas as pd

        columns = ["lower", "upper", "before", "after", "residual"]
        held = {name: getattr(self, name) for name in columns}
        return pd.DataFrame(held, index=pd.Index(self.names, name="total"))

    def __str__(self):
        ratios = self.ratios[self.design_weights > 0]
        lines = [
            f"Weights of {len(self.weights)} rows, {len(self.names)} totals, "
            f"{'all met' if self.converged else 'NOT all met'}: worst residual "
            f"{self.residual.max(initial=0.0):.1e}, {self.n_iter} steps.",
            f"Sum {self.weights.sum():.10g}; ratio to the design weights "
            f"{ratios.min(initial=np.inf):.4g} to {ratios.max(initial=0):.4g}; design "
            f"effect {self.design_effect:.4g}; effective sample size "
            f"{self.effective_sample_size:.1f}.",
        ]
        totals = self.lower, self.upper, self.before, self.after
        lines += [
            f"  {name}: {span(low, high)} asked, {before:.10g} before, {after:.10g} now"
            for name, low, high, before, after in zip(self.names, *totals, strict=True)
        ][:_SHOWN]
        if len(self.names) > _SHOWN:
            lines.append(f"  and {len(self.names) - _SHOWN} more")
        return "\n".join([*lines, *self.reasons])

    def _repr_html_(self):
        return self.to_frame()._repr_html_()


def effective(weights):
    """Effective number of rows with some weights."""
    squares = float(np.sum(weights**2))
    return float(weights.sum()) ** 2 / squares if squares else 0.0


@tells_where()
@validate_params(
    SEARCH | {"return_report": ["boolean"]}, prefer_skip_nested_validation=True
)
@unmasked
def calibrate(
    X: ArrayLike,
    totals: object,
    *,
    design_weights: ArrayLike | None = None,
    bounds: tuple[float, float] = (0.0, np.inf),
    domains: object = None,
    integer: bool = False,
    time_limit: float = 60.0,
    tol: float = 1e-9,
    max_iter: int = 200,
    strict: bool = True,
    return_report: bool = False,
) -> NDArray | tuple[NDArray, CalibrationReport]:
    r"""Weights of rows that meet totals, nearest to given weights.

    Solves ``min KL(w, design_weights)`` over the weights ``w`` with

    .. math:: l \le \sum_i w_i x_i \le u, \qquad
              low \cdot d_i \le w_i \le high \cdot d_i ,

    which survey statistics calls calibration (raking, where the totals are counts):
    ``w_i = d_i exp(x_i y)``, cut to its bounds, by Newton's method in as many
    variables as there are totals.

    Parameters
    ----------
    X : data frame, array-like or sparse matrix of shape (n, n_columns)
        Rows of a sample. Sparse matrices are not made dense.
    totals : dict, ColumnTotal, list of them, or array-like of shape (n_columns,)
        What is asked of the weighted rows, by column (a name, or its number). A number
        is the sum of the column; a dict or Series holds counts by level; with a tuple
        of columns, counts by tuple of levels, of two also a :func:`pandas.crosstab`.
        Levels that are not named are free. A Series by column is read as a dict.
        :func:`~sklearn_pnl.column_total` has means, intervals, tolerances and sums of
        several columns. An array asks for the sums of all columns.
    design_weights : array-like of shape (n,), default=None
        Not negative; rows without weight stay so. None weighs all rows 1.
    bounds : tuple of float, default=(0, inf)
        Least and largest ratio of a weight to its design weight.
    domains : column, tuple of columns, or array-like of shape (n,), default=None
        Labels of parts of X, each of which is calibrated for itself. ``totals`` is then
        a dict by label.
    integer : bool, default=False
        Whether weights are whole numbers: those found nearest to the totals, which are
        met exactly or, after ``time_limit``, missed as ``report.missed`` tells. Few
        units from the weights that need not be whole, where that will do.
    time_limit : float, default=60
        Seconds that whole numbers are searched for.
    tol : float, default=1e-9
        Wanted residual of each total, as a share of the sum of its absolute terms.
    max_iter : int, default=200
        Most Newton steps; or sweeps, where there are more than 5,000 totals.
    strict : bool, default=True
        Whether a total that is not met raises. Otherwise the report says it.
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
        If a column or level is unknown, a number is missing, or margins disagree.
    CalibrationError
        A ``ValueError`` that carries the report: the totals that contradict each other
        and what can be reached, or by how much whole numbers miss.

    See Also
    --------
    column_total : A mean, an interval, a sum of several columns.
    rake : Tables with given margins.
    sklearn_pnl.geometry.linear_projection : Rows to linear equations and ranges.

    References
    ----------
    Deville and Sarndal, "Calibration estimators in survey sampling", Journal of the
    American Statistical Association, 1992.

    Examples
    --------
    >>> from sklearn_pnl import calibrate
    >>> X = [[0, 20.0], [0, 40.0], [1, 30.0], [1, 70.0]]
    >>> weights = calibrate(X, {0: {0: 60, 1: 40}, 1: 4000})
    >>> weights.round(3)
    array([27.256, 32.744, 16.372, 23.628])
    >>> from sklearn_pnl import CalibrationError
    >>> try:
    ...     calibrate(X, {0: {0: 60, 1: 40}, 1: 9000})
    ... except CalibrationError as error:
    ...     print(str(error)[-64:])
    with the count of 0=0, the count of 0=1 it reaches 2400 to 5200.
    """
    columns = Columns(X)
    check_order(domains, X, "domains")
    design = _checked_design(design_weights, len(columns), X)
    low, high = _checked(bounds)
    ceiling = np.where(design > 0, high, 0.0) * np.maximum(design, 1e-300)
    ends = design, low * design, ceiling
    search = WeightSearch(tol, max_iter, integer=integer, time_limit=time_limit)
    parts = [("", slice(None), columns, totals)]
    if domains is not None:
        parts = _by_domain(columns, totals, domains)
    weights, found = np.empty(len(columns)), []
    for label, members, some, asked in parts:
        domain, own = label and f"Domain {label}", [end[members] for end in ends]
        try:
            system = read_totals(some, asked)
            near, n_iter, reasons = search.weights(system, *own)
        except ValueError as error:
            if not domain:
                raise
            raise ValueError(f"{domain}{error}") from None
        weights[members] = near
        sums = (system.coefficients @ each for each in (own[0], near))
        part = system.lower, system.upper, *sums, system.residual(near), n_iter
        called = [label + name for name in system.names]
        found.append((called, *part, [domain + why for why in reasons]))
    names, *held, n_iter, reasons = zip(*found, strict=True)
    report = CalibrationReport(
        weights, design, tuple(chain(*names)), *map(np.concatenate, held),
        n_iter=max(n_iter), reasons=tuple(chain(*reasons)),
    )  # fmt: skip
    if strict and report.reasons:
        raise CalibrationError(" ".join(report.reasons), report)
    return (report.weights, report) if return_report else report.weights


def _checked_design(given, n, X):
    given = 1.0 if given is None else given
    design = numbers_of(given, "design_weights", n, "row", X)
    for row in np.flatnonzero(~(design >= 0) | np.isinf(design)):
        raise ValueError(
            f"design_weights holds {design[row]:g} in row {row}: give finite numbers, "
            "0 or more."
        )
    if n and not design.any():
        raise ValueError(
            "design_weights are all 0, and rows without weight stay so: no row is left "
            "to be weighted. Give positive ones, or None for 1 each."
        )
    return design


def _checked(bounds):
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 <= low <= high or np.isinf(low):
        raise ValueError(
            "bounds must be the least and the largest ratio of a weight to its design "
            f"weight, 0 <= least <= largest, which may be infinite; got {bounds!r}."
        )
    return low, high


@dataclass(frozen=True)
class WeightSearch:
    """How weights on a system are looked for.

    Attributes
    ----------
    tol : float
    max_iter : int
    ranges : str
        What least and largest weights are called in reasons.
    integer : bool
    time_limit : float
    """

    tol: float
    max_iter: int
    ranges: str = "the bounds of the weights"
    integer: bool = False
    time_limit: float = 60.0

    def weights(self, system, design, floor, ceiling):
        """Weights on a system, nearest to given ones in the sense of KL.

        Parameters
        ----------
        system : TotalsSystem
        design, floor, ceiling : ndarray of shape (n,)

        Returns
        -------
        weights : ndarray of shape (n,)
        n_iter : int
        reasons : tuple of str
            Why there are no such weights.
        """
        found = self._by_sweeps(system, design, floor, ceiling)
        if found is None:
            # Rows without weight stay so.
            used, weights = design > 0, np.zeros(len(design))
            own = design[used], (floor[used], ceiling[used])
            weights[used], *told = self._by_newton(system.of(used), *own)
            found = weights, *told
        weights, n_iter, reasons = found
        if not self.integer or reasons:
            return found
        ends = np.ceil(floor), np.floor(ceiling)
        if any(name.endswith(TIMES_SUM) for name in system.names):
            # Weights of 0 have all means.
            mass = weights.sum()
            system = system.with_sum(mass / 2, 2 * mass, "the sum of weights")
        weights, reasons = whole_weights(system, weights, *ends, self.time_limit)
        return weights, n_iter, reasons

    def _by_sweeps(self, system, design, floor, ceiling):
        """The same by sweeps; None where others are to find it."""
        free = not floor.any() and np.isinf(ceiling[design > 0]).all()
        n_sweeps, large = self.max_iter, len(system.names) > _NEWTON_UP_TO
        if not (system.is_raking and free):
            if large:
                raise ValueError(
                    f"More than {_NEWTON_UP_TO} totals at once must be counts that are "
                    f"asked for exactly, without bounds; there are {len(system.names)}."
                )
            return None
        if not large:
            worth = len(system.names) ** 3 // (_NEWTON_COST * max(1, len(design)))
            n_sweeps = min(n_sweeps, _SWEEPS + worth)
        groups, signs = system.groups, system.signs
        weights, n_iter, met = sweep(groups, design, signs, self.tol, n_sweeps)
        if met:
            return weights, n_iter, ()
        if not large:
            return None
        worst = system.residual(weights)
        why = (
            f"{n_iter} sweeps ended at a residual of {worst.max():.1e} > "
            f"tol={self.tol:g}, for {system.names[int(worst.argmax())]}. Increase "
            "max_iter or tol; cells that are 0 may allow no solution."
        )
        return weights, n_iter, (why,)

    def _by_newton(self, system, design, given):
        """The same of positive design weights, within ends that are given."""
        ends = _forced(system, given)
        weights, found = self._project(system, design, *ends)
        if found.reasons and ends is not given:
            # Told of what was given.
            weights, found = self._project(system, design, *given)
        missed = system.residual(weights).max(initial=0.0) > self.tol
        if missed and not found.reasons:
            # The same exponential goes on from there, judged by its own size.
            some = weights > 0
            own = weights[some], *(end[some] for end in ends)
            near, better = self._project(system.of(some), *own)
            if not better.reasons:
                weights[some] = near
            worst = system.residual(weights).max(initial=0.0)
            missed = worst > max(self.tol, _LEAST_TOL)
        unproven = not found.reasons or found.reasons[0].equation is None
        # Weights of 0 meet means.
        may_vanish = np.all((system.lower <= 0) & (system.upper >= 0))
        may_vanish &= unproven and not system.is_raking
        if may_vanish and (missed or not weights.any()):
            of_one = _of_sum_one(system)
            _, other = self._project(of_one, design, 0.0, np.inf)
            if other.reasons and other.reasons[0].equation is not None:
                system, found, missed = of_one, other, True
        why, n_iter = found.reasons.get(0), int(found.n_iter[0])
        if not missed:
            return weights, n_iter, ()
        if why is None:
            # Sums may lie so far below the terms that they start from.
            told = _told_missed(system, weights, self.tol)
        elif why.equation is None:
            told = str(why)
        else:
            told = why.described(system.names.__getitem__, ranges=self.ranges)
        return weights, n_iter, (told,)

    def _project(self, system, design, floor, ceiling):
        a, ends = system.coefficients, np.array([system.lower, system.upper])
        asked = np.abs(np.where(np.isfinite(ends), ends, 0)).max(axis=0)
        usual = np.maximum(asked, abs(a) @ design)
        smaller = np.min(asked[asked > 0] / usual[asked > 0], initial=1.0)
        found = linear_projection(
            design[None], a, *ends, floor=floor, ceiling=ceiling,
            tol=max(_LEAST_TOL, self.tol * smaller), max_iter=self.max_iter,
        )  # fmt: skip
        return found.measure[0], found


def _told_missed(system, weights, tol):
    worst = system.residual(weights)
    k = int(worst.argmax())
    return (
        f"{system.names[k]} is {(system.coefficients @ weights)[k]:.10g}, missed by "
        f"{worst[k]:.1e} > tol={tol:g} of its terms: what is asked is too small beside "
        "what there was. Start from weights that come nearer, or choose a larger tol."
    )


def _forced(system, ends):
    """Ends of weights, without what totals at the end of what they reach rule out.

    Their multipliers would be infinite (E. D. Andersen and K. D. Andersen, "Presolving
    in linear programming", Mathematical Programming 71, 1995, forcing constraints).
    """
    a = system.coefficients
    while True:
        floor, ceiling = ends
        least, most = (end[0] for end in box_reach(a, floor[None], ceiling[None]))
        room = _ROUNDING * (abs(a) @ np.where(np.isinf(ceiling), floor, ceiling))
        up, down = system.lower >= most - room, system.upper <= least + room
        plus, minus = a > 0, a < 0
        high = up @ plus + down @ minus > 0
        low = up @ minus + down @ plus > 0
        free = floor < ceiling
        if np.any(high & low & free) or not np.any((high | low) & free):
            return ends
        ends = np.where(high, ceiling, floor), np.where(low, floor, ceiling)


def _of_sum_one(system):
    """The same about weights that sum to 1, so that means are what they are called."""
    names = [name.removesuffix(TIMES_SUM) for name in system.names]
    return replace(system, names=names).with_sum(1, 1, "weights that are not all 0")


def _by_domain(columns, totals, domains):
    """Label in words, rows, columns and totals of each domain."""
    if isinstance(domains, str | Integral | tuple):
        labels = columns.levels(columns.keys(domains))
    else:
        labels = domains.tolist() if hasattr(domains, "tolist") else list(domains)
    if len(labels) != len(columns):
        raise ValueError(f"domains has {len(labels)} labels for {len(columns)} rows.")
    if not isinstance(totals, Mapping):
        raise ValueError("With domains, totals must be a dict by label of a domain.")
    if labels and set(labels).isdisjoint(totals):
        raise ValueError(
            f"totals has {[*totals]}, of which none is a domain: with domains= it is a "
            f"dict by label, {{{labels[0]!r}: ...}}."
        )
    members = members_of(labels)
    for label, rows in members.items():
        if label not in totals:
            raise ValueError(
                f"Row {rows[0]} is in the domain {label!r}, which totals has nothing "
                "for."
            )
    for label in totals:
        if label not in members:
            raise ValueError(f"No row is in the domain {label!r}.")
    return (
        (f"{label!r}: ", members[label], columns.rows(members[label]), asked)
        for label, asked in totals.items()
    )


def members_of(labels):
    """Rows of each label, in the order in which labels come."""
    members = {}
    for row, label in enumerate(labels):
        members.setdefault(label, []).append(row)
    return {label: np.array(rows) for label, rows in members.items()}
