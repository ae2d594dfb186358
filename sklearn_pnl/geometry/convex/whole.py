"""Whole numbers next to cells that keep their sums."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

# Cells of the largest linear programme that is tried.
_LARGEST_PROGRAMME = 2**18
# Distance to a whole number that counts as rounding.
_WHOLE = 1e-6
# Status of SciPy's solvers for an infeasible programme.
_INFEASIBLE = 2
_NONE = (
    "no table of whole numbers next to its cells has the margins. Rake it first; "
    "three margins and more may have none."
)


def nearest_whole(cells, rows, wanted, time_limit, floor=-np.inf, ceiling=np.inf):
    """Whole numbers (D,) next to given ones, with whole sums; nearest of all.

    Least sum of squares among the cells rounded up or down, within ``floor`` and
    ``ceiling``, for which ``rows @ cells = wanted``. The cells that go up solve a
    linear programme in whole numbers. Two margins of a table are a transport problem:
    it always has a solution, and no branching is needed (Bacharach 1966; Cox 1987).
    Three margins and more may have none; optimality may take long to prove, and the
    nearest solution within ``time_limit`` is returned.

    Raises
    ------
    ValueError
        If there are none, none were found, or there are too many cells.
    """
    low = np.clip(np.floor(cells + _WHOLE), floor, ceiling)
    part = cells - low
    free = np.flatnonzero((part > _WHOLE) & (low + 1 <= ceiling))
    if len(free) > _LARGEST_PROGRAMME:
        raise ValueError(
            f"A table with {len(free)} cells that are no whole numbers is too large to "
            f"be rounded; the limit is {_LARGEST_PROGRAMME}."
        )
    missing = np.round(wanted - rows @ low)
    if len(free):
        low[free] += _cells_up(1 - 2 * part[free], rows[:, free], missing, time_limit)
    elif missing.any():
        raise ValueError(_NONE)
    return low


def _cells_up(cost, matrix, missing, time_limit):
    """Which cells go up: the cheapest found in time, else any that will do."""
    # SciPy before 1.15 requires 32-bit indices here.
    matrix.indices, matrix.indptr = (
        index.astype(np.intc) for index in (matrix.indices, matrix.indptr)
    )
    for objective in (cost, np.zeros_like(cost)):
        solution = milp(
            objective,
            constraints=LinearConstraint(matrix, missing, missing),
            bounds=Bounds(0, 1),
            integrality=np.ones(len(cost)),
            options={"time_limit": time_limit},
        )
        if solution.x is not None:
            return np.round(solution.x)
        if solution.status == _INFEASIBLE:
            raise ValueError(_NONE)
    raise ValueError(
        "no table of whole numbers next to its cells was found within the "
        f"time limit of {time_limit:g} seconds; there may be none."
    )
