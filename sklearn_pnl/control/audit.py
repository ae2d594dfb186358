"""Audit of new rows: final check, report, and explanations of infeasibility."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._utils.reports import TableReport
from .._utils.validation import warn_missed
from ..geometry.convex.reach import Program, span
from .constraints import ALMOST, EPS, ROUNDINGS, TOL
from .rounding import off_steps


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


def within(others):
    """Name the constraints that limit what can be reached, or else the bounds."""
    if not others:
        return "within the bounds of the columns"
    shown = others if len(others) <= 4 else [*others[:3], f"{len(others) - 3} more"]
    *most, last = shown
    return f"that satisfy {', '.join(most)}{' and ' * bool(most)}{last}"


def explain_infeasible(rows, infeasible, feasible, numbers=None, advice=""):
    """Find a constraint that the first infeasible row cannot satisfy, and its range.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        The best approximations.
    infeasible : ndarray of bool of shape (n,)
    feasible : FeasibleSet
        The feasible set of the rows.
    numbers : ndarray of int of shape (n,), default=None
        Row numbers in messages; None for positions.
    advice : str
        Further advice at the end of the message.

    Returns
    -------
    error : Infeasibility
        The error to raise.
    """
    i, advice = int(np.argmax(infeasible)), f" {advice}" if advice else ""
    number = i if numbers is None else int(numbers[i])
    feasible, row = feasible.take_rows(i), rows[i]
    system = feasible.system(gaps=np.isnan(rows[[i]]))
    system = replace(system, lower=system.lower.ravel(), upper=system.upper.ravel())
    problem = f"Row {number} cannot satisfy all constraints: "
    for whole in (False, True):
        conflict = _program(row, system, feasible, whole).conflict()
        if conflict and conflict.nearest:
            break
    else:
        missed = np.nan_to_num(np.abs(system.residual(row[None]))[0], nan=np.inf)
        k = int(np.argmax(missed / system.scale))
        return Infeasibility(
            f"{problem}the best row that was found misses {system.descriptions[k]} by "
            f"{missed[k]:.3g}. Leave this constraint out, or widen it.{advice}",
            number,
        )
    k, others, n_data = conflict.k, conflict.others, len(feasible.relations.equalities)
    is_above = conflict.nearest == [conflict.above]
    end = (system.upper if is_above else system.lower)[k]
    # The bounds of a single column have no room.
    is_sum = np.count_nonzero(system.coefficients[k]) > 1
    found, text = conflict.request(end, 0.1 * TOL * system.scale[k] * is_sum)
    limits = within([system.descriptions[j] for j in others])
    remedy = f"Request {text}" if k >= n_data else "Widen the bounds"
    if any(j >= n_data for j in others):
        remedy += ", or leave out one of the constraints"
    return Infeasibility(
        f"{problem}{system.names[k]} must be {span(system.lower[k], system.upper[k])}, "
        f"but {'integers' if whole else 'rows'} {limits} can only have {conflict}: "
        f"a miss of at least {np.abs(system.missing(found)[k]):.6g}. {remedy}."
        f"{advice}",
        number,
    )


def _program(row, system, feasible, whole):
    """Build the linear programme of one row; some columns are integers or binary."""
    columns, gaps = feasible.columns, np.isnan(row)
    steps = columns.steps
    low, high = (np.where(gaps, 0.0, end) for end in (columns.low, columns.high))
    unit = np.where(
        columns.ranges > 0,
        columns.ranges,
        np.abs(columns.least),
    )
    unit = np.where(unit > 0, unit, 1.0)
    base = np.clip(np.where(gaps, 0.0, row), low, high)
    is_whole = np.zeros(len(row), bool)
    if whole:
        binary = columns.binary & (low < high)
        unit = np.where(binary, high - low, np.where(columns.is_whole, steps, unit))
        base = np.where(columns.is_whole, np.rint(base / unit) * unit, base)
        base, is_whole = np.where(binary, low, base), columns.is_whole | binary
    sizes = np.abs(system.coefficients) @ np.where(np.isfinite(base), np.abs(base), 0.0)
    return Program(
        system.coefficients,
        system.lower,
        system.upper,
        low,
        high,
        base,
        unit,
        is_whole,
        room=TOL * system.scale + ROUNDINGS * EPS * sizes,
    )


# --- the last check ---------------------------------------------------------------


def audit_rows(rows, feasible, caller):
    """Check the numbers of returned rows against the feasible set.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Numbers as read back from the user's container, rounded to its dtypes.
    feasible : FeasibleSet
    caller : str
        The estimator that messages name.

    Raises
    ------
    Infeasibility
        If an equality or a constraint is violated.

    Warns
    -----
    ConvergenceWarning
        If a bound, a resolution or an order is violated. The warning states the column,
        the first row and the number of rows.
    """
    # Dtypes round cells: float64 cannot represent all 64-bit integers.
    columns, equalities = feasible.columns, feasible.relations.equalities
    precision, n_equal = columns.table.precision, len(equalities)
    eps = 2 * np.maximum(precision, EPS)
    largest = eps * np.maximum(np.abs(columns.least), np.abs(columns.most))
    if n_equal + len(feasible.constraints):
        system = feasible.system()
        missed, room = np.abs(system.residual(rows)), system.rounding(rows, eps)
        # New rows may violate equalities by as much as mixed training rows.
        of_columns = 2 * TOL * columns.ranges + ROUNDINGS * largest
        of_rows = np.abs(equalities.coefficients) @ of_columns
        room[:, :n_equal] = np.maximum(room[:, :n_equal], of_rows)
        if (missed > room).any():
            row, k = np.argwhere(missed > room)[0]
            is_of_data = k < n_equal
            name = (equalities.descriptions if is_of_data else system.names)[k]
            by = f"{missed[row, k]:.3g}"
            message = f"{caller}: row {row} violates {name} by {by}."
            raise Infeasibility(message, int(row))
    names = equalities.feature_names
    # Constraints may require values that are no multiples of the resolution.
    is_checked = (precision == 0) | (len(feasible.constraints) == 0)
    c = np.flatnonzero(is_checked & (columns.steps > 0))
    missed = columns.steps[c] * off_steps(rows[:, c], columns.steps[c])
    room = columns.steps[c] * ALMOST + 2 * largest[c]
    _warn(lambda k: f"the resolution of {names[c[k]]}", missed, room, caller)
    if feasible.breaks(rows).any():
        rounding = eps * np.abs(rows)
        missed = np.maximum(columns.low - rows, rows - columns.high)
        _warn(lambda k: f"the bounds of {names[k]}", missed, rounding, caller)
        p, q = feasible.relations.orders.T
        # Dependent columns are rounded like the larger columns in their equality.
        room = rounding + EPS * columns.ranges
        missed, room = rows[:, p] - rows[:, q], room[:, p] + room[:, q]
        _warn(lambda k: f"{names[p[k]]} <= {names[q[k]]}", missed, room, caller)


def _warn(name_of, missed, room, caller):
    """Warn of violations (n, k) that exceed a tolerance."""
    off = missed > room
    if not off.any():
        return
    failing = np.flatnonzero(off.any(axis=0))
    k, others = failing[0], len(failing) - 1
    bad = np.flatnonzero(off[:, k])
    more = f" (and {others} more conditions)" if others else ""
    warn_missed(
        f"{caller}: {len(bad)} row{'s violate' if len(bad) > 1 else ' violates'} "
        f"{name_of(k)}{more} by up to {missed[bad, k].max():.3g}; the first is row "
        f"{bad[0]}."
    )


# --- report ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SampleReport(TableReport):
    """Report on new rows: constraints, achieved values and displacement.

    :meth:`PNLAugmenter.sample` returns it with ``return_report=True``.

    Parameters
    ----------
    n_rows, n_train : int
        Numbers of new rows and of training rows.
    names : tuple of str
        Names of the constraints and totals.
    lower, upper : ndarray of shape (k,)
        Requested intervals. For constraints with one value per row, the interval that
        contains all requests.
    achieved : ndarray of shape (k,)
        Achieved values. For a constraint on each row, the value of the row with the
        largest residual.
    residual : ndarray of shape (k,)
        Residual of a total as a share of the sum of absolute terms; residual of a row
        as a share of the range of the largest term.
    features : tuple of str
        Names of the numeric columns.
    rms_displacement : ndarray of shape (D,)
        Root mean square displacement of each column by the totals, as a share of the
        range of the column.
    effective_parents : float
        ``(sum w)^2 / sum w^2`` of the weights with which base rows are drawn. Without
        totals, w counts the new rows of each base row.

    See Also
    --------
    PNLAugmenter : Its ``sample`` returns the report.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.control import SampleReport
    >>> asked = ("the sum of a",), np.array([3.0]), np.array([3.0])
    >>> reached = np.array([3.0]), np.zeros(1)
    >>> print(SampleReport(20, 30, *asked, *reached, ("a", "b"), np.zeros(2), 30.0))
    20 new rows, 1 constraint
    constraint    lower  upper  achieved  residual
    the sum of a      3      3         3         0
    Effective number of parents: 30.0 of 30 training rows.
    """

    n_rows: int
    n_train: int
    names: tuple
    lower: NDArray
    upper: NDArray
    achieved: NDArray
    residual: NDArray
    features: tuple
    rms_displacement: NDArray
    effective_parents: float

    def _title(self):
        n = len(self.names)
        return f"{self.n_rows} new rows, {n} constraint{'s' * (n != 1)}"

    def _columns(self):
        heads = "lower", "upper", "achieved", "residual"
        return {"constraint": self.names} | {
            head: getattr(self, head) for head in heads
        }

    def _notes(self):
        notes = [
            f"Effective number of parents: {self.effective_parents:.1f} of "
            f"{self.n_train} training rows."
        ]
        k = int(np.argmax(self.rms_displacement))
        if self.rms_displacement[k] > 0:
            notes.append(
                f"Totals moved rows by up to {self.rms_displacement[k]:.2g} of a "
                f"column's range (root mean square): {self.features[k]}."
            )
        return notes


def report_of(feasible, rows, n_train, n_parents, of_totals=None, moved=None):
    """Build the report on the constraints of each row, and on totals if there are any.

    Parameters
    ----------
    feasible : FeasibleSet
    rows : ndarray of shape (n, D)
    n_train : int
    n_parents : float
        Effective number of parents.
    of_totals : tuple, default=None
        Names, ends, values and residuals, as returned by :meth:`.Totals.achieved`.
    moved : ndarray of shape (D,), default=None
        Root mean square displacement of each column by the totals.
    """
    system = feasible.system()
    missed = np.abs(np.nan_to_num(system.residual(rows)))
    worst, each = missed.argmax(axis=0), np.arange(len(system))
    values = (np.nan_to_num(rows) @ system.coefficients.T)[worst, each]
    lower, upper = np.atleast_2d(system.lower), np.atleast_2d(system.upper)
    names = (*feasible.relations.equalities.descriptions, *feasible.constraints.names)
    residual = missed[worst, each] / system.scale
    of_rows = names, lower.min(axis=0), upper.max(axis=0), values, residual
    parts = [of_rows] if of_totals is None else [of_totals, of_rows]
    names, *arrays = zip(*parts, strict=True)
    if moved is None:
        moved = np.zeros(len(feasible.columns.steps))
    return SampleReport(
        len(rows),
        n_train,
        sum(names, ()),
        *map(np.concatenate, arrays),
        feasible.relations.equalities.feature_names,
        moved,
        n_parents,
    )
