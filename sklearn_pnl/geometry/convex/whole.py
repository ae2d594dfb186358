"""Integers next to cells that keep their sums."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array, issparse

# A limit in seconds would have results depend on the machine.
NODES = {"node_limit": 2000}


def nearest_whole(cells, rows, lower, upper, seconds=np.inf):
    """Round cells (D,) to integers with sums in intervals, nearest to the cells.

    Least sum of squares among the cells rounded up or down for which
    ``lower <= rows @ cells <= upper`` to a millionth. The cells that go up solve an
    integer linear programme. Two margins of a table are a transport
    problem, which always has a solution and needs no branching (Bacharach 1966; Cox
    1987). Three margins and more may have none; optimality may take long to prove, and
    the nearest solution of 2000 nodes, or of some ``seconds``, is returned.

    Raises
    ------
    ValueError
        If there are none, none were found, or there are too many cells.
    """
    # A millionth is rounding.
    low = np.floor(cells + 1e-6)
    part = cells - low
    free = np.flatnonzero(part > 1e-6)
    matrix, sums = csc_array(rows[:, free]), rows @ low
    least, most = lower - sums - 1e-6, upper - sums + 1e-6
    # Sums of integers are integers.
    is_whole = abs(matrix - matrix.rint()).sum(axis=1) == 0
    least = np.where(is_whole, np.ceil(least), least)
    most = np.where(is_whole, np.floor(most), most)
    if not len(free) and np.all(least <= 0) and np.all(most >= 0):
        return low
    # The cheapest cells that go up, else any that will do. More than a quarter of a
    # million are too many for any time.
    costs = (1 - 2 * part[free], np.zeros(len(free)))
    is_possible = np.all(least <= most) and 0 < len(free) <= 2**18
    for cost in costs if is_possible else ():
        found, is_infeasible = _solution(
            cost, matrix, (least, most), 1.0, np.ones(len(free)), time_limit=seconds
        )
        if found is not None:
            low[free] += np.round(found)
            return low
        if is_infeasible:
            # Whatever the cost.
            break
    raise ValueError("No integers next to the cells with these sums were found.")


def whole_near(cells, rows, lower, upper, limits, seconds=np.inf):
    """Find integers (D,) with sums in intervals near cells, next to them if possible.

    Tries :func:`nearest_whole` and then, for up to 4096 cells, all integers within
    ``limits``, a tuple of two ndarrays of shape (D,).

    Raises
    ------
    ValueError
        If none were found.
    """
    try:
        return nearest_whole(cells, rows, lower, upper, seconds=seconds)
    except ValueError:
        if len(cells) > 2**12:
            raise
        rows, one = csc_array(rows).toarray(), np.ones(len(cells))
        found = nearest_in_steps(cells, one, rows, (lower, upper), limits, one)
        if found is None:
            raise
        return found


def _solution(cost, matrix, ends, most, is_whole, **options):
    """Solve a mixed-integer linear programme in variables from 0 to ``most``.

    Returns
    -------
    solution : ndarray or None
        None if none was found, also if the solver fails.
    is_infeasible : bool
    """
    if issparse(matrix):
        # SciPy before 1.15 requires 32-bit indices here.
        matrix.indices, matrix.indptr = (
            index.astype(np.intc) for index in (matrix.indices, matrix.indptr)
        )
    try:
        found = milp(
            cost,
            constraints=LinearConstraint(matrix, *ends),
            bounds=Bounds(0, most),
            integrality=is_whole,
            options=NODES | options,
        )
    except (ValueError, RuntimeError, MemoryError):
        # Errors of HiGHS in C++ name what failed there ("vector::reserve"), and
        # nothing of the problem.
        return None, False
    return found.x, found.status == 2


def least_missed(target, rows, ends, limits, prices):
    """Find integers (D,) whose sums (k,) miss intervals least; None if not found.

    Minimises ``sum prices * missed``, and among such integers the distance to
    ``target``. Sums with an infinite price are satisfied.

    Parameters
    ----------
    target : ndarray of shape (D,)
    rows : ndarray of shape (k, D)
    ends, limits : tuple of ndarray of shape (k,) and (D,)
    prices : ndarray of shape (k,)
    """
    k, d = rows.shape
    low, base = limits[0], np.clip(np.rint(target), *limits)
    slack = np.where(np.isinf(prices), 0.0, np.inf)
    prices = np.where(np.isinf(prices), 0.0, prices)
    # A thousandth of the price of a sum for all moves together.
    away = np.full(2 * d, 1e-3 / max(1.0, np.abs(target).sum()))
    found, _ = _solution(
        np.concatenate([away, prices, prices]),
        np.hstack([rows, -rows, np.eye(k), -np.eye(k)]),
        [end - rows @ base for end in ends],
        np.concatenate([limits[1] - base, base - low, slack, slack]),
        np.repeat([1, 0], [2 * d, 2 * k]),
    )
    return None if found is None else base + np.round(found[:d] - found[d : 2 * d])


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
    # Sums are met to a share of a step, whatever the units are. In these units the
    # rounding of integers is far below the tolerance of the solver, which otherwise
    # solves again and prints so.
    matrix = rows * unit
    scale = np.abs(matrix).max(axis=1, initial=0.0) + 1e-300
    scale = np.maximum(scale, 1000 * np.abs(matrix[:, whole]).sum(axis=1))
    matrix, ends = matrix / scale[:, None], [end / scale for end in ends]
    found, _ = _solution(
        np.concatenate([*costs, np.ones(2 * len(unit))]) * np.tile(unit / sizes, 4),
        np.hstack([matrix, -matrix, matrix, -matrix]),
        [end - matrix @ base for end in ends],
        np.concatenate([*first, up - first[0], down - first[1]]),
        np.tile(whole, 4),
    )
    if found is None:
        return None
    moves = np.where(np.tile(whole, 4), np.round(found), found).reshape(4, -1)
    numbers = base + moves[0] - moves[1] + moves[2] - moves[3]
    return np.where(whole, numbers, numbers * unit)
