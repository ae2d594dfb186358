"""What was asked of new rows, what was achieved, and how far rows moved for it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._runtime.reports import TableReport


@dataclass(frozen=True, eq=False, repr=False)
class SampleReport(TableReport):
    """What was asked of new rows, what was achieved, and how far they moved for it.

    :meth:`PNLAugmenter.sample` returns it with ``return_report=True``.

    Parameters
    ----------
    n_rows, n_train : int
        Numbers of new rows, and of training rows.
    names : tuple of str
        What was asked, in words.
    lower, upper : ndarray of shape (k,)
        What was asked for; of constraints with a value a row, the ends of all.
    achieved : ndarray of shape (k,)
        What they have. Of what is about each row, the value of the row farthest from
        it.
    residual : ndarray of shape (k,)
        What is missed: of all rows as a share of the sum of absolute terms, of each row
        as a share of the range of the largest term.
    features : tuple of str
        Names of the columns of numbers.
    rms_displacement : ndarray of shape (D,)
        How far totals moved the rows, by column: root mean square, as a share of the
        range of the column.
    effective_parents : float
        ``(sum w)^2 / sum w^2`` of the weights by which rows were drawn from the
        training rows; ``n_train`` where all are alike.

    See Also
    --------
    PNLAugmenter : Its ``sample`` returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.constraints.report import SampleReport
    >>> asked = ("the sum of a",), np.array([3.0]), np.array([3.0])
    >>> reached = np.array([3.0]), np.zeros(1)
    >>> print(SampleReport(20, 30, *asked, *reached, ("a", "b"), np.zeros(2), 30.0))
    20 new rows, 1 thing asked
    what          lower  upper  achieved  residual
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
        return f"{self.n_rows} new rows, {n} thing{'s' * (n != 1)} asked"

    def _columns(self):
        heads = "lower", "upper", "achieved", "residual"
        return {"what": self.names} | {head: getattr(self, head) for head in heads}

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


def report_of_rows(equalities, constraints, rows):
    """Names, ends, achieved values and residuals of what is about each row."""
    system = equalities.stack(constraints)
    missed = np.abs(np.nan_to_num(system.residual(rows)))
    worst, each = missed.argmax(axis=0), np.arange(len(system))
    values = (np.nan_to_num(rows) @ system.coefficients.T)[worst, each]
    lower, upper = np.atleast_2d(system.lower), np.atleast_2d(system.upper)
    ends = lower.min(axis=0), upper.max(axis=0)
    names = (*equalities.descriptions, *constraints.names)
    residual = missed[worst, each] / system.scale
    return names, *ends, values, residual
