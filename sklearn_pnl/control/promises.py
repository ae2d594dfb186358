"""What the rows of a table promise for new ones: equations, limits, lattices."""

from dataclasses import replace
from math import prod

import numpy as np

from .decimals import halves
from .keeping import Keeper
from .lattice import lattice_of
from .meeting import TOL, clipped
from .search import found_in, groups_in, independent, names_of, spread
from .steps import Steps
from .system import LinearSystem, collect_constraints

# Rows with more features than this are not searched for equations unless asked to.
SEARCHED_UP_TO = 200
# What rows may miss of equations that are given, as a share of the range.
GIVEN_TOL = 1e-6
# Sizes of features whose products do not overflow.
_LARGEST = 1e100


def resolve_invariants(given, table, steps=None):
    """The equations about the columns of a table that ``invariants`` stands for.

    ``steps`` are those of its values, if they are known.
    """
    steps = steps or Steps(table)
    if isinstance(given, str):
        return _found(table, steps)
    names = names_of(table)
    if given is None:
        return LinearSystem.none(names)
    ranges = np.zeros(len(names))
    ranges[table.columns] = spread(_known_ends(table), table.precision)[1]
    if isinstance(given, LinearSystem):
        _check_names(given, names)
    system = collect_constraints(given, names, ranges, table.column_of)
    if system.has_intervals or len(system.lower) > 1:
        raise ValueError(
            "invariants are equations, the same for all rows; give intervals as "
            "constraints of sample."
        )
    inside = for_numbers(system, table)
    unseen = _lacking(inside, table).all(axis=0)
    if unseen.any():
        raise ValueError(
            "Equations are checked on rows that have all of their cells, and X has no "
            f"such row for {system.descriptions[unseen.argmax()]!r}. Leave it out of "
            "invariants."
        )
    violation = _violation(inside, table)
    if violation.max(initial=0) > GIVEN_TOL:
        rounding = np.where(violation > GIVEN_TOL, halves(inside, steps.lattice), 0)
        system = replace(system, rounding=rounding)
        violation = _violation(replace(inside, rounding=rounding), table)
    if violation.max(initial=0) > GIVEN_TOL:
        k = int(np.argmax(violation))
        raise ValueError(
            f"The training rows do not keep {system.descriptions[k]!r}: they miss it "
            f"by up to {violation[k]:.1e} of the range. Give equations that all rows "
            "satisfy."
        )
    note = given.note if isinstance(given, LinearSystem) else ""
    return replace(system, note=note)


def _known_ends(table):
    """Smallest and largest value (2, D) of the numbers that are not missing."""
    numbers = table.numbers()
    return np.nan_to_num([np.fmin.reduce(numbers), np.fmax.reduce(numbers)])


def _lacking(system, table):
    """Which rows lack cells of which equations (n, c)."""
    if not table.has_missing:
        return np.zeros((len(table), len(system)), bool)
    return np.isnan(table.numbers()) @ (system.coefficients != 0).T


def _violation(system, table):
    """What rows that have all cells of an equation miss at most, as a share (c,).

    Beyond what types round.
    """
    numbers = np.nan_to_num(table.numbers())
    missing = np.abs(system.missing(numbers)) - system.rounding
    missing[_lacking(system, table)] = 0
    types = 2 * np.abs(system.coefficients) @ spread(numbers, table.precision)[3]
    return (missing.max(axis=0, initial=0) - types) / system.scale


def _found(table, steps):
    """Equations that all rows of a table satisfy, where they are looked for.

    Those of the rows that have all cells, which no other row breaks; then, if these are
    few or tell of others, of columns that more rows have.
    """
    if table.has_missing:
        found = LinearSystem.none(names_of(table))
        for part, left_out in _parts(table):
            own = _found(part, steps)
            own = own.part(~own.coefficients[:, table.columns[left_out]].any(axis=1))
            holds = _violation(for_numbers(own, table), table) <= GIVEN_TOL
            own, first = own.part(holds), not left_out.any()
            # Of few rows equations have forms that these do not tell from others.
            both = (own, found) if first or found.note else (found, own)
            found = replace(_joined(*both), note=own.note if first else found.note)
            if holds.all() and not own.note:
                break
        return found
    if not len(table):
        why = "No row has all of its cells: equations were not looked for"
        return LinearSystem.none(names_of(table), f"{why} in all columns at once.")
    if len(table.columns) > SEARCHED_UP_TO:
        why = (
            f"More than {SEARCHED_UP_TO} features: of equations only one-hot groups "
            "were looked for. Pass invariants=find_invariants(X) to keep others."
        )
        return groups_in(table, why)
    return found_in(table, steps, most=_LARGEST)


def _parts(table):
    """Tables of the rows that have all cells but of some columns, and which these are.

    Of no columns first; then of ever more of those that most rows lack, where that
    leaves twice as many rows or no gaps.
    """
    gaps = np.isnan(table.numbers())
    order = np.argsort(gaps.sum(axis=0), kind="stable")
    known = ~np.logical_or.accumulate(gaps[:, order], axis=1)
    counts = known.sum(axis=0)
    k = len(counts) - 1
    while k >= 0:
        left_out = np.isin(np.arange(len(counts)), order[k + 1 :])
        part = table.take(np.flatnonzero(known[:, k])).without(left_out)
        part.has_missing = False
        yield part, left_out
        if counts[k] == len(table):
            return
        wanted = min(max(1, 2 * counts[k]), len(table))
        k = min(k, np.count_nonzero(counts >= wanted)) - 1


def _joined(found, more):
    """Equations, and those of more that do not follow from them."""
    ranges = np.maximum(found.ranges, more.ranges)
    both = np.vstack([found.coefficients, more.coefficients])
    new = independent(both * np.where(ranges > 0, ranges, 1))[len(found) :]
    return replace(found, ranges=ranges).and_also(more.part(new))


def _check_names(given, names):
    known = [f"x{j}" for j in range(len(given.feature_names))]
    if list(given.feature_names) not in (known, list(names)):
        raise ValueError(
            f"invariants are about the columns {list(given.feature_names)[:12]}, but X "
            f"has {list(names)[:12]}. Look for them in these rows, or pass X with the "
            "columns that they were found in."
        )


def for_numbers(system, table):
    """A system about the columns of ``X`` as one about the numbers of a table."""
    outside = system.coefficients.any(axis=0)
    outside[table.columns] = False
    if outside.any():
        j = int(np.argmax(outside))
        raise ValueError(
            "Constraints and sums are about numbers, but column "
            f"{system.feature_names[j]!r} holds categories. Ask for counts by level, "
            "totals={column: {level: count}}, or encode it first."
        )
    return system.about(table.columns).shifted(-table.starts)


def asked_for(constraints, table, ranges, n_rows):
    """What is asked of ``n_rows`` new rows, about the numbers of a table."""
    wide = np.zeros(prod(table.row_shape))
    wide[table.columns] = ranges
    given = names_of(table), wide, table.column_of, n_rows
    inside = for_numbers(collect_constraints(constraints, *given), table)
    about_times = inside.coefficients.any(axis=0) & table.times
    if about_times.any():
        name = inside.feature_names[about_times.argmax()]
        raise ValueError(
            f"Constraints are about numbers, but column {name!r} holds times. Pass it "
            "as a number, such as days since a date, to ask for values of it."
        )
    return inside


def keeper_of(system, table, ends, limits, scaled, offset, marks):
    """What new rows like the rows (n, D) of a table keep.

    ``system`` is about the columns of ``X``, ``ends`` are those of cells that are
    mixed, ``limits`` are what `range_slack` allows, and what it could.
    """
    rows = table.numbers()
    least = ends[0].astype(np.float64)
    with np.errstate(over="ignore"):
        ranges = ends[1] - least
    # Measures as they are have no negative values.
    lowest, highest = table.type_ends
    lowest = np.maximum(lowest, -np.inf if scaled else 0.0)
    lattice, plain, pairs = marks.lattice, marks.plain, marks.pairs
    if lattice is None:
        lattice = lattice_of(table, rows)
        plain, pairs = lattice.steps, lattice.steps < 0
        if marks.two is not None:
            pairs = marks.two.on_it
            lattice = marks.two.with_steps(~pairs, plain)
    # Whole numbers from 0 to 1 are indicators, of which there are no others.
    flags = (lattice.steps == 1) & (least == 0) & (ranges == 1)
    flags |= pairs & lattice.on_it

    def within(below, above):
        low, high = np.maximum(below, lowest), np.minimum(above, highest)
        # Times beyond those known may lie in the future: only without limits.
        inside = flags | (table.times & np.isfinite(below))
        return np.where(inside, least, low), np.where(inside, ends[1], high)

    (low, high), widest = (within(*ends) for ends in limits)
    # Large whole numbers are not all values of a type; up to here they are.
    with np.errstate(divide="ignore"):
        most = 1 / table.precision
    exact = (plain > 0) & (np.abs(ends).max(axis=0) <= most)
    low, high = (np.where(exact, clipped(e, -most, most), e) for e in (low, high))
    inside = replace(for_numbers(system, table), ranges=ranges)
    # Equations of one column are left to its range, which they make empty.
    several = np.count_nonzero(inside.coefficients, axis=1) > 1
    # Those of fixed columns alone hold as far as they do in the rows.
    several &= inside.coefficients[:, low < high].any(axis=1)
    kept = inside.part(several)
    # Values are on their steps as far as these are known, which no constant is to miss.
    still = (low == high) & ~kept.coefficients.any(axis=0)
    lattice = lattice.with_steps(still, plain)
    inside = {j: v[(v >= low[j]) & (v <= high[j])] for j, v in marks.grids.items()}
    grids = {j: v for j, v in inside.items() if len(v)}
    columns = low, high, least, ranges, lattice, _precision(table, rows, kept, exact)
    beside = {"grids": grids, "widest": np.array(widest), "flags": marks.flags}
    plain = np.where(table.least_steps < table.steps, table.least_steps, plain)
    keeper = Keeper(kept, *columns, plain, len(kept), scaled, offset, **beside)
    return _as_far(keeper, table, rows)


def _as_far(keeper, table, rows):
    """A keeper of equations (c,) as far as rows have them, beyond what types round.

    Of those of columns with steps alone: no other makes up for it. Coefficients that
    were fitted to rounded values, or typed, are known as far as these are.
    """
    system = keeper.system
    stuck = ~system.coefficients[:, ~keeper.lattice.on_it].any(axis=1)
    if not stuck.any():
        return keeper
    rows = np.nan_to_num(rows)
    over = np.abs(system.missing(rows)) - TOL * system.scale
    over[_lacking(system, table)] = 0
    if np.any(over[:, stuck] > 0):
        over -= keeper.slack(rows)
    over = np.where(stuck, over.max(axis=0, initial=0), 0)
    if not over.any():
        return keeper
    # Of which a programme is given half.
    return replace(keeper, system=replace(system, rounding=system.rounding + 2 * over))


def _precision(table, rows, kept, exact):
    """What types round (D,): nothing where columns are ``exact``, whole numbers.

    But for those that are what a type leaves of others, in all rows of a class: these
    have equations of decimals as far as it rounds.
    """
    precision = np.where(exact, 0.0, table.precision)
    loose = exact & (table.precision > np.finfo(float).eps)
    if (loose & kept.coefficients.any(axis=0)).any():
        room = np.abs(rows) @ (2 * precision * np.abs(kept.coefficients)).T
        off = (np.abs(kept.missing(rows)) > TOL * kept.scale + room).any(axis=0)
        loose &= kept.coefficients[off].any(axis=0)
        precision[loose] = np.broadcast_to(table.precision, loose.shape)[loose]
    return precision
