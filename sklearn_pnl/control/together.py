"""Sums over all rows, met together with what each row keeps.

All rows are moved at once, as little as possible in the distance in which single rows
are moved. Columns of types (whole numbers, decimals, single precision) are settled row
by row next. What each of those with steps is to sum to is the answer of one small
programme; what they lack of it is made up for by a few rows, in a programme of theirs,
and what sums then lack by the other columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack, identity, kron, vstack

from ..geometry.joint import joint_projection
from ..geometry.reach import box_reach, span, unmet
from .lattice import programme
from .meeting import MAX_STEPS, NO_STEPS, TOL, UnmetTotals, as_types, projected
from .system import LinearSystem, tied

# Distance from a sum that counts as met, as a share of the sum of its absolute terms;
# what the projection is asked for.
SUM_TOL, _WANTED = 1e-9, 1e-13
# Distance from an equation of a row that counts as met on the way.
_ROW_TOL = 1e-10
# Rows of a programme: at least, for each step that is lacking, and at most.
_FEW, _FOR_EACH, _MOST_ROWS = 16, 4, 128
# Steps of a value in a first programme, its least cost, in steps, and its branches.
_FAR, _LEAST_COST, _MOST_NODES = 2, 0.01, 1000
# What is left of a whole number by rounding.
_ALMOST = 1e-6
# Programmes after which a sum that is lacking is told.
_MOST_PROGRAMMES = 200
# Distance from an end that is rounding, as a share of a range.
_AT_END = 1e-12
# Projections, each from where the last one ended: moves leave rounding of their size.
_PASSES = 3
# Values that sums in less than double precision are mended by.
_MOST_MENDED = 300


@dataclass(frozen=True)
class Sums:
    """``least <= shift + sum over rows of coefficients @ row <= most``.

    Attributes
    ----------
    coefficients : ndarray of shape (k, D)
        About the numbers of a row.
    least, most, shift : ndarray of shape (k,)
    names : ndarray of str of shape (k,)
    """

    coefficients: np.ndarray
    least: np.ndarray
    most: np.ndarray
    shift: np.ndarray
    names: np.ndarray

    def __len__(self):
        return len(self.coefficients)

    @property
    def ends(self):
        """What sums over rows, without the shift, are to lie between."""
        return self.least - self.shift, self.most - self.shift

    def part(self, some):
        """Some of them."""
        return Sums(*(array[some] for array in vars(self).values()))

    def values(self, rows):
        """What rows (n, D) sum to (k,)."""
        return self.coefficients @ rows.sum(axis=0) + self.shift

    def size(self, rows):
        """Sums (k,) of absolute terms."""
        return np.abs(self.coefficients) @ np.abs(rows).sum(axis=0) + abs(self.shift)

    def lacking(self, rows, tol=0.1 * SUM_TOL):
        """What is to be added to each (k,); 0 where rounding hides it."""
        values, size = self.values(rows), self.size(rows)
        lacking = np.maximum(self.least - values, 0) - np.maximum(values - self.most, 0)
        return np.where(np.abs(lacking) > tol * size, lacking, 0.0)


def together(keeper, rows, sums, shared, rng):
    """Rows (n, D) on sums, in place, and which of them are copied from an example.

    Each keeps what it promises, as it does already. Values of the mask ``shared``,
    which are those of all parents, stay where they can. Raises if there are none.
    """
    used, part, own = _concerned(keeper, sums)
    start, copied = rows[:, used], np.zeros(len(rows), bool)
    moved = _moved(part, start, own, *_attempts(part, start, shared[:, used]))
    if moved is None:
        raise UnmetTotals(_reason(part, start, own))
    if (part.lattice.on_it | part.coarse).any():
        moved, copied = _settled(part, moved, own, rng)
    rows[:, used] = moved
    return rows, copied


def steps_give(keeper, n, sums, near):
    """Whether n rows may have sums on their lattice, as far as one programme tells."""
    used, part, own = _concerned(keeper, sums)
    return sums_of_columns(part, n, own, near[used]) is not None


def _concerned(keeper, sums):
    """Columns that sums lead to, and a keeper and the sums about these."""
    used = tied(keeper.system.coefficients, sums.coefficients.any(axis=0))
    used = np.flatnonzero(used)
    part = keeper.about(used)
    # Intervals that ask for nothing say whose marks give way.
    some = np.isfinite([part.system.lower, part.system.upper]).any(axis=(0, 1))
    n_kept = int(some[: part.n_kept].sum())
    part = replace(part, system=part.system.part(some), n_kept=n_kept)
    return used, part, replace(sums, coefficients=sums.coefficients[:, used])


def _attempts(part, rows, shared):
    """Masks of the values that stay: shared ones, ends of ranges, none.

    Values that many rows have, which parents share, are marks of real rows.
    """
    still, free = part.at_ends(rows), ~part.lattice.on_it
    most = still | shared
    return most, most & free, still, still & free, np.zeros_like(still)


def _moved(part, rows, sums, *masks):
    """Rows on equations and sums, with the values of the first mask that can stay.

    On equations as far as types round if that cannot be; None if neither can.
    """
    for rounded in (False, True)[: 1 + part.coarse.any()]:
        for kept in masks:
            found = _projected(part, rows, sums, kept, rounded)
            if found is not None:
                return found
    return None


def _projected(part, rows, sums, kept, rounded):
    """Rows on equations and sums, some values of which stay; None if that cannot be.

    On equations as far as types round, if ``rounded``.
    """
    floor, ceiling, several = part.narrowed
    floor, ceiling = np.where(kept, rows, floor), np.where(kept, rows, ceiling)
    system = part.system.wider(part.room_of(rows)) if rounded else part.system
    system = system.part(several)
    weights = part.measures(rows) / part.scale**2
    of_rows = system.coefficients, system.lower, system.upper
    known = of_rows, (sums.coefficients, *sums.ends), (floor, ceiling), part.units
    start = np.clip(rows, floor, ceiling)
    for _ in range(_PASSES):
        found, missed, of_rows = joint_projection(start, weights, *known, _WANTED)
        if of_rows > _ROW_TOL:
            return None
        if not sums.lacking(found).any():
            return found
        if missed.max() > _ROW_TOL:
            return None
        start = found
        for end in (floor, ceiling):
            start = np.where(np.abs(start - end) <= _AT_END * part.ranges, end, start)
    return None


# --- types ------------------------------------------------------------------------


def _settled(part, wanted, sums, rng):
    """Rows near to those wanted, in the types of their columns; which are copied."""
    rows, copied = part.meet(_dithered(part, wanted))
    held = wanted.sum(axis=0)
    if part.lattice.on_it.any():
        held = sums_of_columns(part, len(rows), sums, held)
    for columns in _making_up(part, sums) if held is not None else ():
        own = held[columns]
        each = np.eye(len(held))[columns], own, own, 0 * own, columns
        found = _by_steps(part, rows, wanted, Sums(*each), rng)
        found = _taken_over(part, found, sums)
        room = rounding_of_one(sums, found, part.precision)
        if np.all(np.abs(sums.lacking(found, SUM_TOL)) <= room):
            return found, copied
    raise _off_steps(sums, rows)


def _by_steps(part, rows, wanted, sums, rng):
    """Rows with sums of columns with steps, as far as programmes find some."""
    rows, on_it, movable = rows.copy(), part.lattice.on_it, np.arange(len(rows))
    for _ in range(_MOST_PROGRAMMES):
        lacking = sums.lacking(rows)
        if not lacking.any() or not len(movable):
            break
        some, aim = _few(part, rows, wanted, sums, lacking, movable, rng)
        moves = _programmed(part, rows, wanted, sums, some, aim)
        if moves is None:
            some = rng.permutation(movable)[: 4 * _MOST_ROWS]
            moves = _programmed(part, rows, wanted, sums, some, lacking, np.inf)
        if moves is None:
            break
        is_moved = moves.any(axis=1)
        changed = some[is_moved]
        moved = part.lattice.nearest(rows[changed] + moves[is_moved])
        if not on_it.all():
            own = part.of_rows(changed)
            kept = np.broadcast_to(on_it, moved.shape)
            moved = as_types(projected(own, moved, kept), part.precision)
            # Columns that several equations tie may not be able to follow.
            off = own.is_off(moved)
            movable = np.setdiff1d(movable, changed[off])
            changed, moved = changed[~off], moved[~off]
        rows[changed] = moved
    return rows


def _taken_over(part, rows, sums):
    """Rows whose other columns take over what sums lack.

    All of them, then those that hold any value.
    """
    on_it = part.lattice.on_it
    for stay in (on_it, on_it | part.coarse):
        is_free = sums.coefficients[:, ~stay].any(axis=1)
        rows = _mended(part, rows, sums.part(~is_free))
        some = sums.part(is_free)
        if some.lacking(rows).any():
            found = _moved(part, rows, some, np.broadcast_to(stay, rows.shape))
            rows = rows if found is None else as_types(found, part.precision)
    return rows


def rounding_of_one(sums, rows, precision):
    """What sums (k,) may miss: rounding of one value, of those that make them up."""
    size = np.abs(rows, dtype=np.float64)
    most = np.maximum(size.max(axis=0), np.finfo(float).tiny)
    size /= most
    # Shares of the largest, whose squares do not overflow.
    typical = most * (size**2).sum(axis=0) / np.maximum(size.sum(axis=0), 1)
    return np.abs(sums.coefficients) @ (typical * precision)


def _making_up(part, sums):
    """Columns with steps that are set sums of their own; where that fails, more.

    Those of the sums, then also those that make up for others in equations.
    """
    on_it, a = part.lattice.on_it, part.system.coefficients
    summed = on_it & sums.coefficients.any(axis=0)
    more = summed | (on_it & a[a[:, ~on_it].any(axis=1)].any(axis=0))
    yield np.flatnonzero(summed)
    if np.any(more != summed):
        yield np.flatnonzero(more)


def sums_of_columns(keeper, n, sums, near):
    """What each column (D,) of n rows may sum to, with all sums; None if nothing.

    Nearest to the sums ``near``, in the equations and ranges that rows keep.
    """
    floor, ceiling, _ = keeper.narrowed
    # Equations of types hold to rounding, whose sum is at most that of the largest.
    most = np.maximum(np.abs(floor), np.abs(ceiling)).max(axis=0)
    system = keeper.system.wider(keeper.room_of(most))
    asked = _of_all(system, (floor, ceiling), n, sums)
    lattice = replace(keeper.lattice, origins=n * keeper.lattice.origins, known={})
    return programme(near, *asked, lattice, keeper.units)


def _of_all(system, limits, n, sums):
    """A system of what each column of n rows sums to, and the limits of these.

    They keep the equations and limits that rows keep, and all sums: if these are the
    same for all rows, that is all there is to know.
    """
    ends = (
        np.concatenate([np.broadcast_to(e, (n, len(system))).sum(axis=0), own])[None]
        for e, own in zip((system.lower, system.upper), sums.ends, strict=True)
    )
    both = np.vstack([system.coefficients, sums.coefficients])
    whole = LinearSystem(both, *ends, system.feature_names, system.ranges)
    shape = n, both.shape[1]
    return whole, *(np.broadcast_to(end, shape).sum(axis=0) for end in limits)


def _dithered(part, rows):
    """Columns with steps, rounded up and down so that their sums stay.

    Only those in no equation: others must go together.
    """
    alone = np.flatnonzero(part.lattice.on_it & part.others)
    rows, lattice = rows.copy(), part.lattice.about(alone)
    counts = (rows[:, alone] - lattice.origins) / lattice.steps
    low = np.floor(counts + _AT_END)
    up = np.diff(np.rint(np.cumsum(counts - low, axis=0)), axis=0, prepend=0.0)
    rows[:, alone] = lattice.origins + lattice.steps * (low + up)
    return np.clip(rows, part.low, part.high)


def _mended(part, rows, sums):
    """Sums of columns in less than double precision, by small values in some rows.

    Those whose own rounding is least, and where all that the row keeps allows it.
    """
    coarse = part.coarse & ~part.lattice.on_it
    for k in np.flatnonzero(sums.lacking(rows)):
        a = sums.coefficients[k]
        columns = np.flatnonzero((a != 0) & coarse)
        steps = np.abs(rows[:, columns] * a[columns]) * part.precision[columns]
        order = np.argsort(steps, axis=None)[:: max(1, steps.size // _MOST_MENDED)]
        for place in order if len(columns) else ():
            lacking = sums.lacking(rows)[k]
            if lacking == 0:
                break
            i, j = divmod(int(place), len(columns))
            j, before = columns[j], rows[i].copy()
            # A value that keeps its size keeps its rounding.
            if np.abs(before[j]) < 4 * np.abs(lacking / a[j]):
                continue
            rows[i, j] += lacking / a[j]
            rows[[i]] = as_types(rows[[i]], part.precision)
            own = part.of_rows(slice(i, i + 1))
            worse = np.abs(sums.lacking(rows)[k]) >= np.abs(lacking)
            if worse or own.is_off(rows[[i]])[0]:
                rows[i] = before
    return rows


def _few(part, rows, wanted, sums, lacking, movable, rng):
    """Rows that rounding moved farthest, and what these are to add to each sum."""
    unit = (np.abs(sums.coefficients) * part.lattice.steps).max(axis=1, initial=0)
    unit = np.where(unit > 0, unit, 1.0)
    needed = _FEW + _FOR_EACH * int((np.abs(lacking) / unit).max())
    n = min(len(movable), _MOST_ROWS, needed)
    away = (np.abs(rows - wanted) / part.units).sum(axis=1)[movable]
    some = movable[np.lexsort((rng.uniform(size=len(movable)), -away))[:n]]
    if needed <= n or n == len(movable):
        return some, lacking
    return some, np.trunc(n / needed * lacking / unit) * unit


def _programmed(part, rows, wanted, sums, some, aim, far=_FAR):
    """Moves (r, D) of columns with steps that add what is lacking; None if none do.

    A programme in whole numbers of all these rows: steps up and steps down, the fewest
    away from the rows wanted, ``far`` of each at most.
    """
    on_it, steps = np.flatnonzero(part.lattice.on_it), part.lattice.steps
    steps, r = steps[on_it], len(some)
    near, system = rows[some][:, on_it], part.system
    system = system.part(system.coefficients[:, on_it].any(axis=1))
    floor, ceiling = (np.broadcast_to(e, rows.shape)[some] for e in part.narrowed[:2])
    ends = _room_of_rows(part, system, rows, some, floor, ceiling)
    values, lacking = sums.values(rows), sums.lacking(rows)
    # At least what is aimed at, at most what there is room for.
    least = np.where(lacking > 0, aim, sums.least - values)
    most = np.where(lacking < 0, aim, sums.most - values)
    a, unit_a = _in_steps(system.coefficients[:, on_it] * steps)
    t, unit_t = _in_steps(sums.coefficients[:, on_it] * steps)
    matrix = vstack([kron(identity(r), csr_array(a)), csr_array(np.tile(t, r))])
    low, high = (
        np.concatenate([(e / unit_a).ravel(), sum_ / unit_t])
        for e, sum_ in zip(ends, (least, most), strict=True)
    )
    down, up = (
        np.floor(np.clip(gap / steps + _ALMOST, 0, far))
        for gap in (near - floor[:, on_it], ceiling[:, on_it] - near)
    )
    towards = 2 * (wanted[some][:, on_it] - near) / steps
    cost = np.stack([1 - towards, 1 + towards]).clip(_LEAST_COST)
    cost *= steps / part.units[on_it]
    matrix = hstack([matrix, -matrix], format="csc")
    found = milp(
        cost.ravel(),
        integrality=np.ones(cost.size),
        bounds=Bounds(0, np.stack([up, down]).ravel()),
        constraints=LinearConstraint(matrix, low, high),
        # No limit of time: rows must not depend on how fast a machine is.
        options={"node_limit": _MOST_NODES},
    )
    if found.x is None:
        return None
    steps_up, steps_down = np.rint(found.x).reshape(2, r, -1)
    moves = np.zeros((r, rows.shape[1]))
    moves[:, on_it] = (steps_up - steps_down) * steps
    return moves


def _room_of_rows(part, system, rows, some, floor, ceiling):
    """What the equations and intervals of some rows leave (r, c) columns with steps.

    Other columns make up for what they can within their ranges.
    """
    a, near = system.coefficients, rows[some]
    shape = len(rows), len(system)
    ends = (np.broadcast_to(e, shape)[some] for e in (system.lower, system.upper))
    least, most = (end - near @ a.T for end in ends)
    # Equations hold already, to rounding.
    exact = least == most
    least = np.where(exact, 0.0, np.minimum(least, 0))
    most = np.where(exact, 0.0, np.maximum(most, 0))
    others = np.where(part.lattice.on_it, 0.0, a)
    gaps = np.minimum(floor - near, 0), np.maximum(ceiling - near, 0)
    low, high = box_reach(others, *gaps)
    return least - high, most - low


def _in_steps(a):
    """Coefficients whose least is 1, and the unit of each."""
    size = np.where(a != 0, np.abs(a), np.inf).min(axis=1, initial=np.inf)
    size = np.where(np.isfinite(size), size, 1.0)
    return a / size[:, None], size


# --- why not ----------------------------------------------------------------------


def _off_steps(sums, rows):
    """What is to be raised of sums that values with steps do not give."""
    lacking = sums.lacking(rows)
    k = int(np.argmax(np.abs(lacking)))
    return UnmetTotals(
        f"{sums.names[k]} asks for {span(sums.least[k], sums.most[k])}; whole numbers "
        "(or multiples of their steps, or values of a type), as its columns hold, gave "
        f"{sums.values(rows)[k]:.10g}. Ask for an interval that contains some; "
        f"{NO_STEPS}"
    )


def _unmet(part, rows, sums, lacking):
    """Which sums contradict each other, or the rows; equations of several columns."""
    *limits, several = part.narrowed
    system = part.system.part(several)
    whole, *limits = _of_all(system, limits, len(rows), sums)
    ends = whole.lower[0], whole.upper[0], *limits
    return unmet(whole.coefficients, *ends, TOL, MAX_STEPS, lacking), system


def _reason(part, rows, sums):
    """Why sums are not met, what can be reached, and what to do."""
    lacking = np.abs(sums.lacking(rows)) / np.maximum(sums.size(rows), 1e-300)
    given = rows, sums, lacking.max(initial=0)
    why, system = _unmet(part, *given)
    c = len(system)
    if why.equation is None:
        k = int(np.argmax(lacking))
        return (
            f"{sums.names[k]} asks for {span(sums.least[k], sums.most[k])}, which is "
            "not reached together with what each row keeps."
        )

    def name(i):
        if i >= c:
            return sums.names[i - c]
        if len(system.lower) == 1 and system.lower[0, i] == system.upper[0, i]:
            return f"{system.descriptions[i]} in every row"
        return f"{system.names[i]} of every row"

    if why.equation >= c:
        shift, ends = sums.shift[why.equation - c], ("lower", "upper", "least", "most")
        why = replace(why, **{name: getattr(why, name) + shift for name in ends})
    ranges = "the ranges of the columns"
    if (np.count_nonzero(part.asked.coefficients, axis=1) == 1).any():
        # They are ranges of rows from there on.
        ranges += " and what is asked of each row"
    told = why.described(name, ranges=ranges)
    advice = part.advice(lambda keeper: _unmet(keeper, *given)[0])
    if not advice and told.startswith("the sum"):
        advice = f" That is of {len(rows)} rows; or ask for its mean."
    return told + (advice or " Ask for what can be reached.")
