"""Whole numbers next to cells that keep their sums."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array

# A limit in seconds would have results depend on the machine.
NODES = {"node_limit": 2000}


def nearest_whole(
    cells, rows, lower, upper, floor=-np.inf, ceiling=np.inf, seconds=np.inf
):
    """Whole numbers (D,) next to given ones, with sums in intervals; nearest of all.

    Least sum of squares among the cells rounded up or down, within ``floor`` and
    ``ceiling``, for which ``lower <= rows @ cells <= upper`` to a millionth, with whole
    coefficients. The cells that go up solve a linear programme in whole numbers. Two
    margins of a table are a transport problem: it always has a solution, and no
    branching is needed (Bacharach 1966; Cox 1987). Three margins and more may have
    none; optimality may take long to prove, and the nearest solution of 2000 nodes, or
    of some ``seconds``, is returned.

    Raises
    ------
    ValueError
        If there are none, none were found, or there are too many cells.
    """
    # A millionth is rounding.
    low = np.clip(np.floor(cells + 1e-6), floor, ceiling)
    part = cells - low
    free = np.flatnonzero((part > 1e-6) & (low + 1 <= ceiling))
    matrix, sums = csc_array(rows[:, free]), rows @ low
    # SciPy before 1.15 requires 32-bit indices here.
    matrix.indices, matrix.indptr = (
        index.astype(np.intc) for index in (matrix.indices, matrix.indptr)
    )
    least, most = np.ceil(lower - sums - 1e-6), np.floor(upper - sums + 1e-6)
    if not len(free) and np.all(least <= 0) and np.all(most >= 0):
        return low
    # The cheapest cells that go up, else any that will do. More than a quarter of a
    # million are too many for any time.
    costs = (1 - 2 * part[free], np.zeros(len(free)))
    is_possible = np.all(least <= most) and 0 < len(free) <= 2**18
    for cost in costs if is_possible else ():
        found = milp(
            cost,
            constraints=LinearConstraint(matrix, least, most),
            bounds=Bounds(0, 1),
            integrality=np.ones(len(free)),
            options=NODES | {"time_limit": seconds},
        )
        if found.x is not None:
            low[free] += np.round(found.x)
            return low
        if found.status == 2:
            # Infeasible, whatever the cost.
            break
    raise ValueError("No whole numbers next to the cells with these sums were found.")


def nearest_in_steps(target, sizes, rows, ends, limits, steps, reach=1e6):
    """Cells (D,) with sums in intervals, some as numbers of steps; None if not found.

    Minimises ``sum |x - target| / sizes`` with ``lower <= rows @ x <= upper`` and
    ``low <= x <= high``: a linear programme, some variables of which are whole.

    Parameters
    ----------
    target, sizes : ndarray of shape (D,)
    rows : ndarray of shape (k, D)
    ends, limits : tuple of ndarray of shape (k,) and (D,)
    steps : ndarray of shape (D,)
        0 where any value will do.
    reach : float, default=1e6
        How many steps, or sizes, a cell may move: the fewer, the faster.
    """
    whole = steps > 0
    unit = np.where(whole, steps, sizes)
    least, most = (end / unit for end in limits)
    least = np.where(whole, np.ceil(least - 1e-6), least)
    most = np.where(whole, np.floor(most + 1e-6), most)
    if (least > most).any():
        return None
    # Moves from the nearest numbers, which are small: up and down, the first step of
    # each, which costs less, apart. Without such pairs of whole numbers distances were
    # real numbers, of which the solver prints that it rounds them.
    aim = target / unit
    base = np.clip(np.where(whole, np.rint(aim), aim), least, most)
    off = aim - base
    up, down = np.minimum(most - base, reach), np.minimum(base - least, reach)
    first = [whole * np.minimum(room, 1.0) for room in (up, down)]
    costs = [np.maximum(1 - sign * off - np.abs(off), 0) for sign in (1, -1)]
    # Sums are met to a share of a step, whatever the units are.
    matrix = rows * unit
    scale = np.abs(matrix).max(axis=1, initial=0.0) + 1e-300
    matrix, ends = matrix / scale[:, None], [end / scale for end in ends]
    found = milp(
        np.concatenate([*costs, np.ones(2 * len(unit))]) * np.tile(unit / sizes, 4),
        constraints=LinearConstraint(
            np.hstack([matrix, -matrix, matrix, -matrix]),
            *(end - matrix @ base for end in ends),
        ),
        bounds=Bounds(0, np.concatenate([*first, up - first[0], down - first[1]])),
        integrality=np.tile(whole, 4),
        options=NODES,
    )
    if found.x is None:
        return None
    moves = np.where(np.tile(whole, 4), np.round(found.x), found.x).reshape(4, -1)
    numbers = base + moves[0] - moves[1] + moves[2] - moves[3]
    return np.where(whole, numbers, numbers * unit)
