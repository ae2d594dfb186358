"""Audit of rows with requests: the last check, and the report."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._utils.reports import TableReport
from ..columns.audit import audit_relations
from ..columns.constraints import EPS, Infeasibility

# --- the last check ---------------------------------------------------------------


def audit_rows(rows, feasible, caller, totals=False):
    """Check the numbers of returned rows against the feasible set.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Numbers as read back from the user's container, rounded to its dtypes.
    feasible : FeasibleSet
    caller : str
        The estimator that messages name.
    totals : bool, default=False
        Whether the rows were projected onto totals, which have priority over the
        resolution of columns.

    Raises
    ------
    Infeasibility
        If an equality or a constraint is violated.
    """
    requested, ranges = feasible.constraints, feasible.columns.ranges
    has_constraints = bool(len(requested))
    audit_relations(
        rows,
        feasible.relations,
        caller,
        has_resolution=not (has_constraints or totals),
        has_steps=not has_constraints,
    )
    if not len(requested):
        return
    system = replace(requested, ranges=ranges)
    eps = 2 * np.maximum(feasible.columns.table.precision, EPS)
    missed = np.abs(system.residual(rows))
    is_missed = missed > system.rounding(rows, eps)
    if is_missed.any():
        row, k = np.argwhere(is_missed)[0]
        by = f"{missed[row, k]:.3g}"
        message = f"{caller}: row {row} violates {system.names[k]} by {by}."
        raise Infeasibility(message, int(row))


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
    >>> requested = ("the sum of a",), np.array([3.0]), np.array([3.0])
    >>> reached = np.array([3.0]), np.zeros(1)
    >>> print(SampleReport(20, 30, *requested, *reached, ("a", "b"), np.zeros(2), 30.0))
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
        return f"{self.n_rows} new rows, {n} constraint{'' if n == 1 else 's'}"

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
        Names, bounds, values and residuals, as returned by :meth:`.Totals.achieved`.
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
