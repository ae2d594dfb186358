"""Why a row cannot meet its constraints: which one, and what it can reach."""

import numpy as np

from ..geometry.convex.reach import box_reach, span


class Infeasibility(ValueError):
    """Constraints that a row, or a set of rows, cannot meet.

    Parameters
    ----------
    message : str
    row : int, default=None
        Number of the first row that cannot; None of totals of all rows.

    See Also
    --------
    ColumnConstraint : What is asked of rows.
    adjust : Move rows to constraints.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


def explain_infeasible(row, feasible_set, number):
    """Find the constraint that is out of reach alone, with the range it can reach.

    Parameters
    ----------
    row : ndarray of shape (D,)
        The best try.
    feasible_set : Structure
        Of this row.
    number : int
        Of the row.

    Returns
    -------
    error : Infeasibility
        To be raised.
    """
    low, high = feasible_set.low, feasible_set.high
    equalities, constraints = feasible_set.equalities, feasible_set.constraints
    reached = box_reach(constraints.coefficients, low[None], high[None])
    for k, (least, most) in enumerate(np.vstack(reached).T):
        lower, upper = constraints.lower[..., k].min(), constraints.upper[..., k].max()
        if lower > most or upper < least:
            return Infeasibility(
                f"Row {number} cannot have what is asked: {constraints.names[k]} "
                f"asks for {span(lower, upper)}; within the limits of its columns it "
                f"reaches {span(least, most, 7)}.",
                number,
            )
    asked = equalities.stack(constraints)
    # A missing cell has no value that an equality could hold for.
    missed = np.nan_to_num(np.abs(asked.residual(row[None]))[0], nan=np.inf)
    k = int(np.argmax(missed / asked.scale))
    return Infeasibility(
        f"Row {number} cannot have all that is asked together: the best try misses "
        f"{asked.names[k]} by {missed[k]:.3g}. Leave out a constraint, or widen it.",
        number,
    )
