"""Rows moved least into a feasible set, then rounded to the steps of its columns."""

from dataclasses import replace

import numpy as np

from .nearest import is_met, nearest_rows
from .rounding import round_to_steps

# Rounds in which orders that moved rows break join the constraints.
_MAX_ROUNDS = 5
# Least weight of a cell, in units of ranges: no drawn value is stuck by its place.
_LEAST_WEIGHT = 1e-6


def project_rows(rows, feasible_set, fixed=None, *, offset=1.0):
    r"""Move rows least so that they meet equalities, constraints, limits and orders.

    Each row minimises the chi-square distance ``sum (m - m_0)**2 / m_0`` to where it
    was, with ``m = (x - origin) / ranges + offset``. Rows that satisfy everything stay
    as they are to the last bit. Cells of the others are rounded to their steps again
    wherever the row then still has what is asked.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        A missing cell, NaN, stays so; but for those in an equality that is asked for,
        which has no other value.
    feasible_set : FeasibleSet
    fixed : ndarray of bool of shape (n, D), default=None
        Cells that are held, and freed only where nothing else meets what is asked;
        so are columns that are constant in the data.
    offset : float, default=1.0
        The larger, the less large values are moved before small ones.

    Returns
    -------
    rows : ndarray of shape (n, D)
    unmet : ndarray of bool of shape (n,)
        Rows that do not have what is asked; they hold the best try.
    """
    rows = np.array(rows, dtype=np.float64)
    low, high, several = split_limits(feasible_set, len(rows))
    # Limits that cross cannot be met: the lower one, or what is asked, gives way.
    crossed = np.logical_or.reduce(low > high, axis=1)
    low = np.minimum(low, high)
    todo = np.flatnonzero(~_is_feasible(rows, several, low, high))
    if not len(todo):
        return rows, crossed
    start = _with_asked_cells(rows[todo], several, low[todo], high[todo])
    held = np.broadcast_to(feasible_set.ranges == 0, start.shape)
    held = held if fixed is None else held | fixed[todo]
    part = several.take_rows(todo)
    limits = low[todo], high[todo]
    moved, met = _project(start, part, limits, held, offset)
    # What is held gives way where nothing else meets what is asked.
    again = np.flatnonzero(~met & held.any(axis=1))
    if len(again):
        some = part.take_rows(again), [end[again] for end in limits]
        free = np.zeros_like(held[again])
        moved[again], met[again] = _project(start[again], *some, free, offset)
    rounded = np.where(met[:, None], round_rows(moved, part, *limits), moved)
    # A step may be another float next to a cell that did not move.
    near = np.abs(rounded - moved) <= 8 * np.finfo(float).eps * np.abs(moved)
    trial = np.where(near & (moved == rows[todo]), moved, rounded)
    is_kept = _is_feasible(trial, part, *limits)
    rows[todo] = np.where(is_kept[:, None], trial, rounded)
    unmet = crossed
    unmet[todo] |= ~met
    return rows, unmet


def split_limits(feasible_set, n):
    """Limits (n, D) of cells with constraints of one column; the set without these.

    Where a constraint contradicts the limits of its column, they cross.
    """
    shape = n, len(feasible_set.names)
    low, high = (
        np.array(np.broadcast_to(end, shape))
        for end in (feasible_set.low, feasible_set.high)
    )
    asked = feasible_set.constraints
    is_single = np.count_nonzero(asked.coefficients, axis=1) == 1
    for k in np.flatnonzero(is_single):
        j = int(np.flatnonzero(asked.coefficients[k])[0])
        ends = asked.lower[..., k], asked.upper[..., k]
        a = asked.coefficients[k, j]
        below, above = (e / a for e in (ends if a > 0 else ends[::-1]))
        low[:, j] = np.maximum(low[:, j], below)
        high[:, j] = np.minimum(high[:, j], above)
    return low, high, replace(feasible_set, constraints=asked.select(~is_single))


def weights_of(rows, feasible_set, held, offset):
    """Weights (n, D) of the squares of moves; 0 for cells that are held.

    A column without a range has the size of its values instead.
    """
    size = np.abs(rows)
    unit = np.where(feasible_set.ranges > 0, feasible_set.ranges, size)
    unit = np.where(unit > 0, unit, 1.0)
    measure = np.maximum((rows - feasible_set.origin) / unit + offset, _LEAST_WEIGHT)
    return np.where(held, 0.0, measure * unit**2)


def _is_feasible(rows, feasible_set, low, high):
    """Which rows (n,) meet everything but the orders, which they have by themselves."""
    gaps = np.isnan(rows)
    inside = ((rows >= low) & (rows <= high)) | (gaps & (low < high))
    own = is_met(open_at_gaps(feasible_set.equalities, gaps), rows)
    met = inside, own, is_met(feasible_set.constraints, rows)
    return np.hstack(met).all(axis=1)


def open_at_gaps(system, gaps):
    """The same constraints, with no ends for rows that lack a cell of them."""
    if not gaps.any():
        return system
    lacks = gaps @ (system.coefficients != 0).T
    lower = np.where(lacks, -np.inf, system.lower)
    return replace(system, lower=lower, upper=np.where(lacks, np.inf, system.upper))


def _with_asked_cells(rows, feasible_set, low, high):
    """Rows whose missing cells have a value where an equality is asked for it."""
    asked, wanted = feasible_set.constraints, low == high
    wanted |= (asked.coefficients[asked.is_equality] != 0).any(axis=0)
    centre = feasible_set.origin + feasible_set.ranges / 2
    return np.where(np.isnan(rows) & wanted, np.clip(centre, low, high), rows)


def _project(start, feasible_set, limits, held, offset):
    """Nearest rows that keep the orders too where they can, and which of them met."""
    gaps = np.isnan(start)
    filled = np.where(gaps, feasible_set.origin, start)
    weights = weights_of(filled, feasible_set, held | gaps, offset)
    low, high = (np.where(gaps, filled, end) for end in limits)
    orders = broken = feasible_set.orders[:0]
    rows, met, todo = filled.copy(), np.zeros(len(start), bool), np.arange(len(start))
    for _ in range(_MAX_ROUNDS):
        system = open_at_gaps(feasible_set.system(orders), gaps).take_rows(todo)
        moved, ok = nearest_rows(
            filled[todo], weights[todo], system, low[todo], high[todo]
        )
        ok = ok.all(axis=1)
        # Where orders leave no room what is asked goes first: such rows stay.
        new = ok | (len(orders) == 0)
        rows[todo[new]], met[todo[new]] = moved[new], ok[new]
        todo = todo[ok]
        is_broken = broken_orders(np.where(gaps, np.nan, rows)[todo], feasible_set)
        todo, broken = todo[is_broken.any(axis=1)], is_broken.any(axis=0)
        if not len(todo):
            break
        orders = np.unique(np.vstack([orders, feasible_set.orders[broken]]), axis=0)
    return np.where(gaps, np.nan, rows), met


def broken_orders(rows, feasible_set):
    """Which orders (n, m) rows break."""
    return rows[:, feasible_set.orders[:, 0]] > rows[:, feasible_set.orders[:, 1]]


def round_rows(moved, feasible_set, low, high):
    """Round moved rows to their steps, where they then still have what is asked."""
    steps = feasible_set.steps
    if not steps.any() or not len(moved):
        return moved
    gaps = np.isnan(moved)
    system = open_at_gaps(feasible_set.system(), gaps)
    rounded = round_to_steps(moved, steps, system, low, high)
    off = np.flatnonzero(~is_met(system, rounded).all(axis=1))
    if len(off) and (steps == 0).any():
        # Columns without steps make up for what rounding the others left.
        some = np.where(gaps, feasible_set.origin, rounded)[off]
        weights = weights_of(some, feasible_set, gaps[off] | (steps > 0), 1.0)
        boxes = (np.where(gaps, feasible_set.origin, end)[off] for end in (low, high))
        again, ok = nearest_rows(some, weights, system.take_rows(off), *boxes)
        use = ok.all(axis=1, keepdims=True) & ~gaps[off]
        rounded[off] = np.where(use, again, rounded[off])
    kept = ~broken_orders(moved, feasible_set)
    broken = (broken_orders(rounded, feasible_set) & kept).any(axis=0)
    system = feasible_set.system(feasible_set.orders[broken])
    system = open_at_gaps(system, gaps)
    return _unrounded_where_unmet(rounded, moved, system, feasible_set)


def _unrounded_where_unmet(rounded, moved, system, feasible_set):
    """Rounded rows; as they were in the columns of constraints that rounding broke.

    Whole-number types stay rounded: they have no other values.
    """
    is_float = feasible_set.precision > 0
    used = system.coefficients != 0
    for _ in range(len(system) + 1):
        broken = ~is_met(system, rounded, exact=True)
        back = (broken.astype(np.intp) @ used > 0) & is_float & (rounded != moved)
        if not back.any():
            break
        rounded = np.where(back, moved, rounded)
    return rounded
