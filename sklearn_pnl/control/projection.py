"""Project rows onto a feasible set, and round them to the resolution of their columns.

``project_rows`` solves one problem for each row. ``nearest_rows`` is the projection
onto linear constraints and bounds, and ``round_rows`` rounds the projected rows so that
they remain feasible.
"""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ..columns.constraints import EPS, TOL
from ..columns.rounding import (
    multiples,
    on_steps,
    round_in_order,
    round_to_steps,
    steps_between,
)
from ..geometry import linear_projection
from ..geometry.convex.integers import nearest_in_steps
from .quadratic import least_violations, project_jointly

# Maximal number of projections that add the violated inequalities as constraints.
ROUNDS_OF_INEQUALITIES = 5


def project_rows(rows, feasible, fixed=False, *, offset=1.0):
    """Project rows onto equalities, constraints, bounds and inequalities.

    Each row minimises the chi-square distance ``sum (m - m_0)**2 / m_0`` to its start,
    with ``m = (x - origin) / ranges + offset``. Feasible rows are returned unchanged.
    Moved cells are rounded to their resolution if the row remains feasible.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Missing cells are NaN and remain NaN, except in columns of an equality
        constraint, which determines their value.
    feasible : FeasibleSet
    fixed : ndarray of bool of shape (n, D), default=False
        Cells that move only if no other cells can satisfy the constraints. Columns that
        are constant in the data are fixed too.
    offset : float, default=1.0
        With a larger offset, large values are moved less before small values.

    Returns
    -------
    rows : ndarray of shape (n, D)
    unmet : ndarray of bool of shape (n,)
        Mask of the infeasible rows, which hold the best approximation.
    """
    low, high, part = feasible.split_bounds(len(rows))
    # Crossed bounds, and bounds without an integer between them, cannot be satisfied.
    # Constraints, or the lower bound, then give way.
    unmet = (low > high).any(axis=1)
    columns = part.columns
    j = np.flatnonzero(columns.is_integer)
    least, most = steps_between(low[:, j], high[:, j], columns.steps[j])
    unmet |= (least > most).any(axis=1)
    low = np.minimum(low, high)
    start, requested, wanted = np.asarray(rows, float), part.constraints, low == high
    # A missing cell gets a value if an equality constraint contains its column.
    wanted |= (requested.coefficients[requested.is_equality] != 0).any(axis=0)
    centre = np.clip(columns.least + columns.ranges / 2, low, high)
    start = np.where(np.isnan(start) & wanted, centre, start)
    gaps = np.isnan(start)
    start = np.where(gaps, columns.least, start)
    low, high = (np.where(gaps, start, bound) for bound in (low, high))
    avoid = (columns.ranges == 0) | fixed
    moved, system = start.copy(), part.system(gaps=gaps)
    # Feasible rows do not move, even if they violate an order.
    satisfied = ((start >= low) & (start <= high)).all(axis=1)
    satisfied &= ~system.violations(start).any(axis=1)
    # Fixed cells move only if no other cells can satisfy the constraints.
    for still in (gaps | avoid, gaps):
        left = np.flatnonzero(~satisfied)
        if not len(left):
            break
        weights = part.weights(start, still, offset)
        of_rows = (x[left] for x in (start, weights, low, high, gaps))
        moved[left], satisfied[left] = nearest_in_order(*of_rows, part.take_rows(left))
    rounded = round_each(moved, part, low, high, gaps, gaps | avoid)
    # A step may be another float next to a cell that did not move.
    near = np.abs(rounded - moved) <= 8 * EPS * np.abs(moved)
    is_same = moved == start
    stays = near & is_same | (is_same.all(axis=1) | ~satisfied)[:, None]
    rounded = np.where(stays, moved, rounded)
    # Rounding to integers may violate a constraint.
    unmet |= system.violations(rounded, inside=False).any(axis=1)
    return np.where(gaps, np.nan, rounded), unmet | ~satisfied


def nearest_in_order(start, weights, low, high, gaps, feasible):
    """Return the nearest rows, in order if possible, and a mask of feasible rows."""
    rows, satisfied = start.copy(), np.zeros(len(start), bool)
    inequalities, todo = (
        np.zeros(len(feasible.relations.inequalities), bool),
        np.arange(len(start)),
    )
    for _ in range(ROUNDS_OF_INEQUALITIES):
        system = feasible.system(inequalities, gaps).take_rows(todo)
        of_rows = (x[todo] for x in (start, weights))
        moved, ok = nearest_rows(*of_rows, system, low[todo], high[todo])
        ok = ok.all(axis=1)
        # Constraints precede inequalities. If both conflict, the last rows stay.
        new = ok | ~inequalities.any()
        rows[todo[new]], satisfied[todo[new]] = moved[new], ok[new]
        todo = todo[ok]
        broken = feasible.relations.disorders(rows[todo], gaps[todo])
        todo, inequalities = todo[broken.any(axis=1)], inequalities | broken.any(axis=0)
        if not len(todo):
            break
    return rows, satisfied


def round_each(moved, feasible, low, high, gaps, held):
    """Round each moved row to its resolution if it remains feasible.

    Rows with integer dtypes are always rounded. If rounding makes a row infeasible, the
    nearest feasible row of integers is used, if there is one. Cells that are ``held``
    do not change.
    """
    rounded, broken = round_rows(moved, feasible, low, high, gaps, held)
    is_integer = feasible.columns.is_integer
    for i in np.flatnonzero(broken & is_integer.any()):
        inequalities = feasible.relations.disorders(moved[[i]], gaps[[i]])[0]
        kept = feasible.take_rows(i).system(~inequalities, gaps[i])
        limits = (np.where(held[i], moved[i], bound[i]) for bound in (low, high))
        near = nearest_integer_row(moved[i], kept, *limits, feasible)
        if near is not None:
            rounded[i], broken[i] = near, False
    return np.where(broken[:, None] & ~is_integer, moved, rounded)


def round_rows(moved, feasible, low, high, gaps, held):
    """Round moved rows to their resolution.

    Returns
    -------
    rounded : ndarray of shape (n, D)
    broken : ndarray of bool of shape (n,)
        The rows that rounding makes infeasible.
    """
    rounded, broken = moved.copy(), np.ones(len(moved), bool)
    if not (feasible.columns.steps > 0).any():
        return rounded, ~broken
    system, relations = feasible.system(gaps=gaps), feasible.relations
    inequalities = relations.disorders(moved, gaps)
    # A request that the resolution cannot meet is met by multiples of the steps.
    for part in feasible.resolutions():
        i = np.flatnonzero(broken)
        of_rows = (x[i] for x in (moved, low, high, gaps, held))
        rounded[i] = _on_one_resolution(part.take_rows(i), *of_rows)
        broken[i] = system.take_rows(i).violations(rounded[i]).any(axis=1)
        disorders = relations.disorders(rounded[i], gaps[i])
        broken[i] |= (disorders & ~inequalities[i]).any(axis=1)
    return rounded, broken


def _on_one_resolution(feasible, moved, low, high, gaps, held):
    """Round moved rows to the resolution of a feasible set, or to its steps."""
    stepped, system = feasible.columns.steps > 0, feasible.system(gaps=gaps)
    bounds, grid = (low, high), ()
    if feasible.columns.has_resolution:
        support = feasible.columns.support
        grid = support.widths, support.origins
        # Cells that do not move, and atoms, may be on no multiple.
        stays = held | support.are_atoms(moved)
        bounds = tuple(np.where(stays, moved, bound) for bound in bounds)
    rounded = round_to_steps(moved, feasible.columns.steps, system, *bounds, *grid)
    if feasible.columns.has_resolution and support.calendars:
        rounded = _on_calendars(rounded, feasible.columns, *bounds)
    # Missing cells belong to no order.
    turned = np.where(gaps, np.nan, rounded)
    round_in_order(turned, feasible.relations)
    rounded = np.where((turned >= low) & (turned <= high), turned, rounded)
    off = np.flatnonzero(system.violations(rounded).any(axis=1))
    if len(off) and not stepped.all():
        # Columns without resolution compensate the rounding of the other columns.
        before = rounded[off]
        weights = feasible.weights(before, gaps[off] | stepped)
        kept = system.take_rows(off), low[off], high[off]
        again, ok = nearest_rows(before, weights, *kept)
        rounded[off] = np.where(ok.all(axis=1, keepdims=True), again, before)
    return rounded


def _on_calendars(rows, columns, low, high):
    """Round dates to the nearest date of their calendar within bounds (n, D)."""
    c = list(columns.support.calendars)
    rows, low, high = rows.copy(), low[:, c], high[:, c]
    dates = np.maximum(columns.rounded(rows[:, c], c), columns.rounded(low, c, np.ceil))
    dates = np.minimum(dates, columns.rounded(high, c, np.floor))
    rows[:, c] = np.where((low <= dates) & (dates <= high), dates, rows[:, c])
    return rows


def nearest_integer_row(row, system, low, high, feasible):
    """Return the nearest feasible row of integers, or None if none is found.

    Other columns are rounded to their resolution too, if possible.
    """
    unit = np.where(feasible.columns.ranges > 0, feasible.columns.ranges, 1.0)
    requested = system.coefficients, (system.lower, system.upper), (low, high)

    def violated(cells):
        return system.violations(cells[None]).any()

    def in_steps(target, steps, reach):
        grid = np.maximum(steps, EPS)
        near = np.where(steps > 0, on_steps(target, grid), target)
        if ((low <= near) & (near <= high)).all() and not violated(near):
            return near
        near = nearest_in_steps(target, unit, *requested, steps, reach)
        if near is None:
            return None
        near = np.where(steps > 0, multiples(near, grid), near)
        if violated(near):
            # The linear programme is exact to 1e-6; other columns compensate the rest.
            weights = np.where(steps > 0, 0.0, unit**2)[None]
            near = nearest_rows(near[None], weights, system, low[None], high[None])[0][
                0
            ]
        return None if violated(near) else near

    # A search over few steps is fast and usually succeeds.
    near = in_steps(row, feasible.columns.steps, 4)
    if near is not None:
        return near
    of_integers = np.where(feasible.columns.is_integer, feasible.columns.steps, 0.0)
    for reach in (100, 1e6):
        near = in_steps(row, of_integers, reach)
        if near is not None:
            # Round the other columns too if a solution exists.
            cents = in_steps(near, feasible.columns.steps, 4)
            return near if cents is None else cents
    return None


# --- one system -------------------------------------------------------------------


def nearest_rows(start, weights, system, low, high):
    """Minimise ``sum (x - start)**2 / weights`` subject to constraints and bounds.

    Parameters
    ----------
    start, weights : ndarray of shape (n, D)
        Cells of weight 0 do not move, except to the nearest bound.
    system : LinearConstraints
        k constraints on D columns, common to all rows or separate for n rows.
    low, high : ndarray of shape (n, D)
        Bounds of cells; may be infinite.

    Returns
    -------
    rows : ndarray of shape (n, D)
    satisfied : ndarray of bool of shape (n, k)
        Equalities are satisfied to 1e-9 of their scale, inequalities exactly if
        possible.
    """
    rows = np.clip(start, low, high)
    low, high = (np.where(weights == 0, rows, bound) for bound in (low, high))
    parts = unrelated_parts(system.coefficients)
    # The target lies inside each interval, so that rounding does not cross its
    # bounds. If the interval is too narrow, the bounds are used.
    for inside in (True, False):
        missed = system.violations(rows, inside=inside)
        # Each part has its own scale, because a common scale loses precision.
        for columns, which in parts:
            off = np.flatnonzero(missed[:, which].any(axis=1))
            if not len(off):
                continue
            # The units make weights about 1; fixed columns use the largest unit.
            units = np.sqrt(weights[:, columns].max(axis=0))
            units[units == 0] = units.max() or 1.0
            cells, part = np.ix_(off, columns), system.take_rows(off).select(which)
            arrays = start[cells], low[cells], high[cells], weights[cells] / units
            scaled = (x / units for x in arrays)
            requested = part.coefficients[:, columns] * units, part.lower, part.upper
            moved = _solve(*scaled, *requested, inside)
            # Cells that did not move keep all their digits.
            moved = np.where(moved == arrays[0] / units, arrays[0], moved * units)
            rows[cells] = np.clip(moved, *arrays[1:3])
    missed = system.violations(rows, inside=False)
    off = np.flatnonzero(missed.any(axis=1))
    if len(off):
        of_rows = start[off], weights[off], system.take_rows(off), low[off], high[off]
        rows[off] = _by_programme(*of_rows)
        missed = system.violations(rows, inside=False)
    return rows, ~missed


def _by_programme(start, weights, system, low, high):
    """Project rows by a quadratic programme, if Newton's method did not converge.

    Infeasible rows have the smallest violations.
    """
    found = project_jointly(start, weights, system, low, high)
    rows, missed = found.value, system.violations(found.value, inside=False)
    if found.is_solved and not missed.any():
        return rows
    rows = least_violations(start, weights, system, low, high)
    feasible = ~system.violations(rows, inside=False).any(axis=1)
    i = np.flatnonzero(feasible)
    if not len(i):
        return rows
    part, room = system.take_rows(i), 0.5 * TOL * system.scale
    # Rounding can make a row at the edge of the feasible set infeasible.
    wide = replace(part, lower=part.lower - room, upper=part.upper + room)
    found = project_jointly(start[i], weights[i], wide, low[i], high[i])
    missed = part.violations(found.value, inside=False)
    if missed.any():
        raise RuntimeError(
            f"The quadratic solver failed on {len(i)} rows that are feasible "
            f"({found.message}). Scale columns of very different sizes, or widen the "
            "constraints."
        )
    rows[i] = found.value
    return rows


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
    """Project rows as measures ``m = r**2 w + r (x - start)``.

    With a number r for each row, the chi-square divergence of the measures from ``r**2
    w`` equals the distance of the rows.
    """
    sizes = np.abs(a).max(axis=1, initial=0.0)
    sizes[sizes == 0] = 1.0
    a, lower, upper = a / sizes[:, None], lower / sizes, upper / sizes
    largest = weights.max(axis=1, keepdims=True)
    w = np.where(weights == 0, np.where(largest > 0, largest, 1.0), weights)
    values = start @ a.T
    missing = np.maximum(lower - values, 0) - np.maximum(values - upper, 0)
    # The multiplier that a single constraint would need. Rounding is smallest if the
    # measures have about the size of the moves.
    gain = weights @ (a * a).T
    alone = np.abs(missing) / np.where(gain > 0, gain, np.inf)
    outside = np.maximum(low - start, start - high) / w
    ratio = 4 * np.maximum(alone @ np.abs(a), np.maximum(outside, 0)).max(axis=1)
    r = np.maximum(ratio, 1e-3 / np.sqrt(w.max(axis=1)))[:, None]
    s, tol = w * r**2, 1e-12
    room = 64 * tol * (s @ np.abs(a).T)
    bounds = [s @ a.T + r * (bound - values) for bound in (lower, upper)]
    room = np.where(inside & (bounds[1] - bounds[0] > 2 * room), room, 0.0)
    floor, ceiling = (s + r * (bound - start) for bound in (low, high))
    solution = linear_projection(
        s,
        a,
        bounds[0] + room,
        bounds[1] - room,
        floor=floor,
        ceiling=ceiling,
        divergence="chi2",
        tol=tol,
        max_iter=300,
    )
    moved = np.where(solution.measure == s, start, start + (solution.measure - s) / r)
    return np.clip(moved, low, high)
