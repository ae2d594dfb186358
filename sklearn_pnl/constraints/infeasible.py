"""Why a row cannot meet its constraints: which one, and what it can reach."""

import numpy as np
from scipy.optimize import linprog

from ..geometry.convex.reach import span


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
    feasible_set : FeasibleSet
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
    for k, a in enumerate(constraints.coefficients):
        lower, upper = constraints.lower[..., k].min(), constraints.upper[..., k].max()
        least, most = reachable_range(a, low, high, equalities)
        # What linear programmes may miss by; infinite where there is no end.
        slack = 1e-7 * max(1.0, abs(least), abs(most)) if most >= least else 0
        if np.isfinite(slack) and (lower > most + slack or upper < least - slack):
            limits = "the limits of its columns"
            if len(equalities):
                limits += " and the equalities of the data"
            return Infeasibility(
                f"Row {number} cannot have what is asked: {constraints.names[k]} "
                f"asks for {span(lower, upper)}; within {limits} it reaches "
                f"{span(least, most, 7)}.",
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


def reachable_range(a, low, high, equalities):
    """Least and greatest ``a @ x`` within limits (D,) and equalities."""
    ends = []
    for sign in (1, -1):
        solution = linprog(
            sign * a, A_eq=equalities.coefficients,
            b_eq=np.atleast_2d(equalities.lower)[0],
            bounds=np.column_stack([low, high]),
        )  # fmt: skip
        # 3: unbounded; 4 is what it may be called with equalities.
        values = {0: solution.fun, 3: -np.inf, 4: -np.inf}
        ends.append(sign * values.get(solution.status, np.inf) + 0.0)
    return ends
