"""Integers near given cells, subject to intervals of sums of cells."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array, csr_array, diags_array, hstack, issparse

from .highs import solved

# A limit in seconds would make results depend on the machine.
NODES = 2000


def nearest_integers(cells, rows, lower, upper, nodes=NODES):
    """Round cells (D,) to integers with sums in intervals.

    Each cell is rounded up or down, such that ``lower <= rows @ cells <= upper`` up to
    1e-6. The result has the smallest sum of squared changes. The choice of the cells to
    round up is an integer linear programme. For two margins of a table, it is a
    transport problem, which always has a solution and needs no branching (Bacharach
    1966; Cox 1987). For three or more margins there may be no solution. The search
    stops after ``nodes`` nodes, and returns the best solution found.

    Raises
    ------
    ValueError
        If no solution exists or was found, or if there are too many cells.
    """
    # Differences below 1e-6 are rounding errors.
    low = np.floor(cells + 1e-6)
    part = cells - low
    free = np.flatnonzero(part > 1e-6)
    matrix, sums = csc_array(rows[:, free]), rows @ low
    least, most = lower - sums - 1e-6, upper - sums + 1e-6
    # Sums with integer coefficients are integers, so their bounds can be rounded.
    is_integer = abs(matrix - matrix.rint()).sum(axis=1) == 0
    least = np.where(is_integer, np.ceil(least), least)
    most = np.where(is_integer, np.floor(most), most)
    if not len(free) and np.all(least <= 0) and np.all(most >= 0):
        return low
    # If the search for the nearest solution fails, any solution is accepted. More than
    # 2**18 cells would take too long.
    costs = (1 - 2 * part[free], np.zeros(len(free)))
    is_possible = np.all(least <= most) and 0 < len(free) <= 2**18
    for cost in costs if is_possible else ():
        found, is_infeasible = _solution(
            cost, matrix, (least, most), 1.0, np.ones(len(free)), nodes
        )
        if found is not None:
            low[free] += np.round(found)
            return low
        if is_infeasible:
            # Infeasibility does not depend on the cost.
            break
    raise ValueError(
        "No integers next to the cells were found whose sums are between lower and "
        "upper. Widen the intervals, or use fewer sums."
    )


def integers_near(cells, rows, lower, upper, limits, nodes=NODES):
    """Find integers (D,) near cells with sums in intervals.

    First try :func:`nearest_integers`, and then, for up to 4096 cells, all integers
    within the bounds ``limits``, a tuple of two ndarrays of shape (D,).

    Raises
    ------
    ValueError
        If no solution was found.
    """
    try:
        return nearest_integers(cells, rows, lower, upper, nodes)
    except ValueError:
        if len(cells) > 2**12:
            raise
        rows, one = csc_array(rows).toarray(), np.ones(len(cells))
        found = nearest_in_steps(cells, one, rows, (lower, upper), limits, one)
        if found is None:
            raise
        return found


def _solution(cost, matrix, bounds, most, is_integer, nodes=NODES):
    """Solve a mixed-integer linear programme in variables from 0 to ``most``.

    Returns
    -------
    solution : ndarray or None
        None if no solution was found or the solver failed.
    is_infeasible : bool
        Whether the solver proved that no solution exists.
    """
    if issparse(matrix):
        # SciPy before 1.15 requires 32-bit indices here.
        matrix.indices, matrix.indptr = (
            index.astype(np.intc) for index in (matrix.indices, matrix.indptr)
        )
    found = solved(
        milp,
        cost,
        constraints=LinearConstraint(matrix, *bounds),
        bounds=Bounds(0, most),
        integrality=is_integer,
        options={"node_limit": nodes},
    )
    return found.x, found.status == 2


def least_missed(target, rows, bounds, limits, prices):
    """Find integers (D,) whose sums (k,) have the least violations; None on failure.

    Minimises ``sum prices * violations``, and among the minima the distance to
    ``target``. Sums with an infinite price must be in their intervals.

    Parameters
    ----------
    target : ndarray of shape (D,)
        Cells to which the integers should be near.
    rows : ndarray of shape (k, D)
        Coefficients of the sums.
    bounds, limits : tuple of ndarray of shape (k,) and (D,)
        Bounds of the sums, and bounds of the cells.
    prices : ndarray of shape (k,)
        Costs of a violation of 1.
    """
    k, d = rows.shape
    low, base = limits[0], np.clip(np.rint(target), *limits)
    slack = np.where(np.isinf(prices), 0.0, np.inf)
    prices = np.where(np.isinf(prices), 0.0, prices)
    # All changes together cost about 1e-3, so violations are minimised first.
    away = np.full(2 * d, 1e-3 / max(1.0, np.abs(target).sum()))
    found, _ = _solution(
        np.concatenate([away, prices, prices]),
        np.hstack([rows, -rows, np.eye(k), -np.eye(k)]),
        [bound - rows @ base for bound in bounds],
        np.concatenate([limits[1] - base, base - low, slack, slack]),
        np.repeat([1, 0], [2 * d, 2 * k]),
    )
    return None if found is None else base + np.round(found[:d] - found[d : 2 * d])


def nearest_in_steps(
    target, sizes, rows, bounds, limits, steps, reach=1e6, nodes=NODES
):
    """Find cells (D,) with sums in intervals, some in integer steps; None on failure.

    Minimises ``sum |x - target| / sizes`` subject to ``lower <= rows @ x <= upper`` and
    ``low <= x <= high``, by a mixed-integer linear programme.

    Parameters
    ----------
    target, sizes : ndarray of shape (D,)
        Cells to which the solution should be near, and scales of the changes.
    rows : ndarray or sparse array of shape (k, D)
        Coefficients of the sums.
    bounds, limits : tuple of ndarray of shape (k,) and (D,)
        Bounds of the sums, and bounds of the cells.
    steps : ndarray of shape (D,)
        Resolution of each cell, or 0 if the cell may have any value. A cell with a
        resolution is returned as its integer multiple of the resolution.
    reach : float, default=1e6
        Largest change of a cell in steps or sizes. A smaller reach is faster.
    nodes : int, default=2000
        Largest number of nodes of the search.
    """
    is_integer = steps > 0
    unit = np.where(is_integer, steps, sizes)
    least, most = (limit / unit for limit in limits)
    least = np.where(is_integer, np.ceil(least - 1e-6), least)
    most = np.where(is_integer, np.floor(most + 1e-6), most)
    if (least > most).any():
        return None
    # The variables are changes from the nearest multiples, up and down. The first step
    # has its own variable, because it costs less. Pairs of integers avoid real-valued
    # distances, for which the solver prints a message about rounding.
    aim = target / unit
    base = np.clip(np.where(is_integer, np.rint(aim), aim), least, most)
    off = aim - base
    up, down = np.minimum(most - base, reach), np.minimum(base - least, reach)
    first = [is_integer * np.minimum(room, 1.0) for room in (up, down)]
    costs = [np.maximum(1 - sign * off - np.abs(off), 0) for sign in (1, -1)]
    # Scaling makes the tolerance a share of a step in any units. It also keeps the
    # rounding of integers below the tolerance of the solver, which would otherwise
    # solve again and print a message. A step remains a hundred times the tolerance.
    rows = csr_array(rows)
    matrix, reached = rows @ diags_array(unit), rows @ (base * unit)
    largest = abs(matrix)
    scale = largest.max(axis=1).toarray().ravel() + 1e-300
    scale = np.maximum(scale, np.minimum(1000 * (largest @ is_integer), 1e4 * scale))
    matrix = diags_array(1 / scale) @ matrix
    found, _ = _solution(
        np.concatenate([*costs, np.ones(2 * len(unit))]) * np.tile(unit / sizes, 4),
        hstack([matrix, -matrix, matrix, -matrix], "csc"),
        [(bound - reached) / scale for bound in bounds],
        np.concatenate([*first, up - first[0], down - first[1]]),
        np.tile(is_integer, 4),
        nodes,
    )
    if found is None:
        return None
    moves = np.where(np.tile(is_integer, 4), np.round(found), found).reshape(4, -1)
    numbers = base + moves[0] - moves[1] + moves[2] - moves[3]
    return np.where(is_integer, numbers, numbers * unit)
