"""Rows moved least into a feasible set, then rounded to the steps of its columns."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ..geometry import linear_projection
from ..geometry.convex.whole import nearest_in_steps
from .constraints import EPS
from .rounding import (
    multiples,
    on_steps,
    round_in_order,
    round_to_steps,
    steps_between,
)

# Rounds in which orders that moved rows break join what is asked of them.
ROUNDS_OF_ORDERS = 5


def project_rows(rows, feasible, fixed=False, *, offset=1.0):
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
    feasible : FeasibleSet
    fixed : ndarray of bool of shape (n, D), default=False
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
    low, high, part = feasible.split_bounds(len(rows))
    # Limits that cross cannot be met: the lower one, or what is asked, gives way. Nor
    # can those that no whole number is between.
    unmet = (low > high).any(axis=1)
    columns = part.columns
    whole = np.flatnonzero(columns.is_whole)
    least, most = steps_between(low[:, whole], high[:, whole], columns.steps[whole])
    unmet |= (least > most).any(axis=1)
    low = np.minimum(low, high)
    start, asked, wanted = np.asarray(rows, float), part.constraints, low == high
    # A missing cell has a value where an equality is asked for it.
    wanted |= (asked.coefficients[asked.is_equality] != 0).any(axis=0)
    centre = np.clip(columns.least + columns.ranges / 2, low, high)
    start = np.where(np.isnan(start) & wanted, centre, start)
    gaps = np.isnan(start)
    start = np.where(gaps, columns.least, start)
    low, high = (np.where(gaps, start, end) for end in (low, high))
    avoid = (columns.ranges == 0) | fixed
    moved, system = start.copy(), part.system(gaps=gaps)
    # Rows that have what is asked stay, in order or not.
    satisfied = ((start >= low) & (start <= high)).all(axis=1)
    satisfied &= ~system.violations(start).any(axis=1)
    # Cells to be avoided move where nothing else meets what is asked.
    for still in (gaps | avoid, gaps):
        left = np.flatnonzero(~satisfied)
        if not len(left):
            break
        weights = part.weights(start, still, offset)
        of_rows = (x[left] for x in (start, weights, low, high, gaps))
        moved[left], satisfied[left] = nearest_in_order(*of_rows, part.take_rows(left))
    rounded = round_rows(moved, part, low, high, gaps, gaps | avoid)
    # A step may be another float next to a cell that did not move.
    near = np.abs(rounded - moved) <= 8 * EPS * np.abs(moved)
    is_same = moved == start
    stays = near & is_same | (is_same.all(axis=1) | ~satisfied)[:, None]
    rounded = np.where(stays, moved, rounded)
    # Integers may not satisfy what other values do.
    unmet |= system.violations(rounded, inside=False).any(axis=1)
    return np.where(gaps, np.nan, rounded), unmet | ~satisfied


def nearest_in_order(start, weights, low, high, gaps, feasible):
    """Nearest rows (n, D) that keep the orders too where they can.

    And which of them (n,) have what is asked.
    """
    rows, satisfied = start.copy(), np.zeros(len(start), bool)
    orders, todo = np.zeros(len(feasible.relations.orders), bool), np.arange(len(start))
    for _ in range(ROUNDS_OF_ORDERS):
        system = feasible.system(orders, gaps).take_rows(todo)
        of_rows = (x[todo] for x in (start, weights))
        moved, ok = nearest_rows(*of_rows, system, low[todo], high[todo])
        ok = ok.all(axis=1)
        # Where orders leave no room what is asked goes first: such rows stay.
        new = ok | ~orders.any()
        rows[todo[new]], satisfied[todo[new]] = moved[new], ok[new]
        todo = todo[ok]
        broken = feasible.relations.disorders(rows[todo], gaps[todo])
        todo, orders = todo[broken.any(axis=1)], orders | broken.any(axis=0)
        if not len(todo):
            break
    return rows, satisfied


def round_rows(moved, feasible, low, high, gaps, held):
    """Round moved rows to their steps, where they then still have what is asked.

    Rows of whole-number types, which have no other values, are rounded in any case:
    where that loses what is asked, to the nearest whole numbers that have it, if there
    are any. Cells that are ``held`` stay.
    """
    stepped = feasible.columns.steps > 0
    if not stepped.any():
        return moved
    system, relations = feasible.system(gaps=gaps), feasible.relations
    orders = relations.disorders(moved, gaps)
    rounded, broken = moved.copy(), np.ones(len(moved), bool)
    # A request that the resolution cannot meet is met by multiples of the steps.
    for part in feasible.resolutions():
        i = np.flatnonzero(broken)
        of_rows = (x[i] for x in (moved, low, high, gaps, held))
        rounded[i] = _on_one_resolution(part.take_rows(i), *of_rows)
        broken[i] = system.take_rows(i).violations(rounded[i]).any(axis=1)
        disorders = relations.disorders(rounded[i], gaps[i])
        broken[i] |= (disorders & ~orders[i]).any(axis=1)
    is_whole = feasible.columns.is_whole
    for i in np.flatnonzero(broken & is_whole.any()):
        kept = feasible.take_rows(i).system(~orders[i], gaps[i])
        limits = (np.where(held[i], moved[i], end[i]) for end in (low, high))
        near = nearest_whole_row(moved[i], kept, *limits, feasible)
        if near is not None:
            rounded[i], broken[i] = near, False
    return np.where(broken[:, None] & ~is_whole, moved, rounded)


def _on_one_resolution(feasible, moved, low, high, gaps, held):
    """Round moved rows to the resolution of a feasible, or to steps without one."""
    stepped, system = feasible.columns.steps > 0, feasible.system(gaps=gaps)
    ends, grid = (low, high), ()
    if feasible.columns.has_resolution:
        support = feasible.columns.support
        grid = support.widths, support.origins
        # Cells that do not move, and atoms, may be on no multiple.
        stays = held | support.are_atoms(moved)
        ends = (np.where(stays, moved, end) for end in ends)
    rounded = round_to_steps(moved, feasible.columns.steps, system, *ends, *grid)
    # To the other side where rounding breaks an order; missing cells are in none.
    turned = np.where(gaps, np.nan, rounded)
    round_in_order(turned, feasible.relations)
    rounded = np.where((turned >= low) & (turned <= high), turned, rounded)
    off = np.flatnonzero(system.violations(rounded).any(axis=1))
    if len(off) and not stepped.all():
        # Columns without steps make up for what rounding the others left.
        before = rounded[off]
        weights = feasible.weights(before, gaps[off] | stepped)
        kept = system.take_rows(off), low[off], high[off]
        again, ok = nearest_rows(before, weights, *kept)
        rounded[off] = np.where(ok.all(axis=1, keepdims=True), again, before)
    return rounded


def nearest_whole_row(row, system, low, high, feasible):
    """The nearest row of whole numbers that has what is asked; None if none is found.

    Other columns are on their steps too, if they can be.
    """
    unit = np.where(feasible.columns.ranges > 0, feasible.columns.ranges, 1.0)
    asked = system.coefficients, (system.lower, system.upper), (low, high)

    def violated(cells):
        return system.violations(cells[None]).any()

    def in_steps(target, steps, reach):
        grid = np.maximum(steps, EPS)
        near = np.where(steps > 0, on_steps(target, grid), target)
        if ((low <= near) & (near <= high)).all() and not violated(near):
            return near
        near = nearest_in_steps(target, unit, *asked, steps, reach)
        if near is None:
            return None
        near = np.where(steps > 0, multiples(near, grid), near)
        if violated(near):
            # The linear programme leaves a millionth, which other columns take up.
            weights = np.where(steps > 0, 0.0, unit**2)[None]
            near = nearest_rows(near[None], weights, system, low[None], high[None])[0][
                0
            ]
        return None if violated(near) else near

    # Few steps are rounding, and soon found; most whole numbers are near too.
    near = in_steps(row, feasible.columns.steps, 4)
    if near is not None:
        return near
    whole = np.where(feasible.columns.is_whole, feasible.columns.steps, 0.0)
    for reach in (100, 1e6):
        near = in_steps(row, whole, reach)
        if near is not None:
            # Cents beside them, where these leave room for any.
            cents = in_steps(near, feasible.columns.steps, 4)
            return near if cents is None else cents
    return None


# --- one system -------------------------------------------------------------------


def nearest_rows(start, weights, system, low, high):
    r"""Minimise ``sum (x - start)**2 / weights`` on constraints and limits.

    Parameters
    ----------
    start, weights : ndarray of shape (n, D)
        Cells of weight 0 stay as they are, or go to the nearest limit.
    system : LinearConstraints
        Of k constraints of D columns, for all rows or n of them.
    low, high : ndarray of shape (n, D)
        Limits of cells; may be infinite.

    Returns
    -------
    rows : ndarray of shape (n, D)
    satisfied : ndarray of bool of shape (n, k)
        Equalities to 1e-9 of their scale, inequalities exactly where there is room.
    """
    rows = np.clip(start, low, high)
    low, high = (np.where(weights == 0, rows, end) for end in (low, high))
    parts = unrelated_parts(system.coefficients)
    # Inequalities are aimed at from inside, so that rounding does not cross them; where
    # there is no room inside, the ends themselves are good enough.
    for inside in (True, False):
        missed = system.violations(rows, inside=inside)
        # One scale per row and part: sums of other units would be met less exactly.
        for columns, which in parts:
            off = np.flatnonzero(missed[:, which].any(axis=1))
            if not len(off):
                continue
            # In these units weights are about 1; columns that stay have those of the
            # others.
            units = np.sqrt(weights[:, columns].max(axis=0))
            units[units == 0] = units.max() or 1.0
            cells, part = np.ix_(off, columns), system.take_rows(off).select(which)
            arrays = start[cells], low[cells], high[cells], weights[cells] / units
            scaled = (x / units for x in arrays)
            asked = part.coefficients[:, columns] * units, part.lower, part.upper
            moved = _solve(*scaled, *asked, inside)
            # Of cells that did not move no digit is lost.
            moved = np.where(moved == arrays[0] / units, arrays[0], moved * units)
            rows[cells] = np.clip(moved, *arrays[1:3])
    return rows, ~system.violations(rows, inside=False)


def unrelated_parts(a):
    """Return the columns and the constraints of each part of a system (k, D).

    Constraints of different parts have no column in common.
    """
    if not a.shape[0]:
        return []
    links = csr_array(a != 0)
    n_parts, part = connected_components(links @ links.T, directed=False)
    each = [np.flatnonzero(part == i) for i in range(n_parts)]
    found = [(np.unique(links[which].indices), which) for which in each]
    return [(columns, which) for columns, which in found if len(columns)]


def _solve(start, low, high, weights, a, lower, upper, inside):
    """Rows nearest to ``start`` as measures ``m = r**2 w + r (x - start)``.

    With a number r of each row their chi-square divergence from ``r**2 w`` is the
    distance of the rows.
    """
    sizes = np.abs(a).max(axis=1, initial=0.0)
    sizes[sizes == 0] = 1.0
    a, lower, upper = a / sizes[:, None], lower / sizes, upper / sizes
    largest = weights.max(axis=1, keepdims=True)
    w = np.where(weights == 0, np.where(largest > 0, largest, 1.0), weights)
    values = start @ a.T
    missing = np.maximum(lower - values, 0) - np.maximum(values - upper, 0)
    # The multiplier that each constraint would need alone: measures of about the size
    # of the moves, whatever the units are, round least.
    gain = weights @ (a * a).T
    alone = np.abs(missing) / np.where(gain > 0, gain, np.inf)
    outside = np.maximum(low - start, start - high) / w
    ratio = 4 * np.maximum(alone @ np.abs(a), np.maximum(outside, 0)).max(axis=1)
    r = np.maximum(ratio, 1e-3 / np.sqrt(w.max(axis=1)))[:, None]
    s, tol = w * r**2, 1e-12
    room = 64 * tol * (s @ np.abs(a).T)
    ends = [s @ a.T + r * (end - values) for end in (lower, upper)]
    room = np.where(inside & (ends[1] - ends[0] > 2 * room), room, 0.0)
    floor, ceiling = (s + r * (end - start) for end in (low, high))
    solution = linear_projection(
        s,
        a,
        ends[0] + room,
        ends[1] - room,
        floor=floor,
        ceiling=ceiling,
        divergence="chi2",
        tol=tol,
        max_iter=300,
    )
    moved = np.where(solution.measure == s, start, start + (solution.measure - s) / r)
    return np.clip(moved, low, high)
