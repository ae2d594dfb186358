"""The ways of rows to what they must meet: one step, in ranges, by a programme.

Rows are moved least in the chi-square distance of their measures, the embedding plus
the offset: the first step of the KL projection, and exact where no range is met. What
is fixed by the type of a column (whole numbers, single precision) is settled next, and
the other columns take over what that leaves.
"""

from dataclasses import replace

import numpy as np

from ..geometry import linear_projection
from .lattice import programme
from .system import can_move

# Distance from a constraint that counts as met, as a share of a range.
TOL = 1e-9
# The projection is asked for more than the rows: the way back to their units rounds.
_MARGIN, MAX_STEPS = 1e-2, 200
# Distance from the ends of intervals at which a programme looks, as a share of a range.
_INSIDE = 1e-5
# Up to so many equations are solved for at once, without a look at which share columns.
_FEW_EQUATIONS = 12
# Steps of theirs, and what keeps one solvable whose values are all at ends, as a share.
_STEPS, _RIDGE = 6, 1e-10
# Corrections of what rounding leaves, in units of the tolerance from which they work.
_CORRECTIONS, _FAR = 2, 1e3
# What to do about steps, for messages.
NO_STEPS = "PNLAugmenter(marks=None) gives columns of float64 any value."


class UnmetError(ValueError):
    """A row that cannot have what is asked of it; ``row`` is its number."""

    whose = "New row"

    def __init__(self, reason, row):
        super().__init__(reason, row)
        self.reason, self.row = reason, row

    def __str__(self):
        return f"{self.whose} {self.row} cannot meet the constraints: {self.reason}"


class UnmetTotals(ValueError):
    """Totals that contradict each other or the rows, whatever their weights."""


def met(keeper, start, held):
    """Rows (n, d) of the columns that a system is about, on it where that can be.

    And which of them are those of an example. Cells of the mask ``held`` stay where
    they can.
    """
    x, todo, copied = start, np.arange(len(start)), np.zeros(len(start), bool)
    for kept, rounded in _attempts(keeper, start, held):
        kept = None if kept is None else kept[todo]
        own = keeper.of_rows(todo)
        way = _up_to_rounding if rounded else projected
        # As they came a column is in one piece, and passes over them are short.
        found = way(own, start if len(todo) == len(x) else start[todo], kept)
        if len(todo) == len(x):
            x = found
        else:
            x[todo] = found
        todo = todo[own.missed(found).any(axis=1)]
        if not len(todo):
            break
    settled = keeper.lattice.on_it | keeper.coarse
    still = np.zeros_like(x, bool)
    if settled.any():
        if held is not None:
            still = held & (x == start)
        x = keeper.settled(x)

        def left(rows):
            # Also those that meet all at the cost of a value that is held.
            off = keeper.of_rows(rows).is_off(x[rows])
            return rows[off | (still & (x != start))[rows].any(axis=1)]

        todo = left(np.arange(len(x)))
        # The others take over what that leaves, but for cells that are held: those in
        # double precision, or else all but whole numbers.
        for fixed in (settled, keeper.lattice.on_it):
            if len(todo) and not fixed.all():
                stay = fixed | (still[todo] & (x[todo] == start[todo]))
                found = projected(keeper.of_rows(todo), x[todo], stay)
                x[todo] = as_types(found, keeper.precision)
                todo = left(todo)
    if keeper.drops and len(todo):
        # No programme finds what single values are beyond: these rows are left out.
        beyond = keeper.of_rows(todo).is_beyond
        todo = todo[~np.broadcast_to(beyond, len(todo))]
    for row in map(int, todo):
        own = keeper.of_rows(slice(row, row + 1))
        for part, columns in own.apart:
            at = row, columns
            if part.is_off(x[at][None])[0] or np.any(still[at] & (x[at] != start[at])):
                some = None if held is None else held[at]
                x[at], is_copy = _by_programme(part, start[at], some, row)
                copied[row] |= is_copy
    return x, copied


def _attempts(keeper, rows, held):
    """Masks of the values that stay, from most of them to none.

    And whether the system gives way as far as types round. Cells that are held, and
    zeros and indicators that both parents share: no more than any mixture of the two do
    the equations need to move them.
    """
    still = keeper.at_ends(rows)
    if held is not None:
        still |= held
    if still.any():
        yield still, False
    if held is not None:
        yield held, False
        # What is asked for goes first, and the equations do not need them.
        yield held & ~keeper.asked.coefficients.any(axis=0), False
        if keeper.keeps_zeros and keeper.coarse.any():
            yield held, True
    yield None, False


def projected(keeper, rows, kept):
    """Rows on a system, in their ranges, with some values as they are."""
    system = keeper.system
    floor, ceiling, several = keeper.narrowed
    if kept is not None:
        floor, ceiling = np.where(kept, rows, floor), np.where(kept, rows, ceiling)
        several = several & can_move(system, floor, ceiling)
    rows = clipped(rows, floor, ceiling)
    if several.any():
        part = system.part(several) if not several.all() else system
        rows, left = _few_steps(keeper, part, rows, floor, ceiling)
        if len(left):
            ranges = (_of_rows(e, left) for e in (floor, ceiling))
            rows[left] = _in_ranges(keeper, part.of_rows(left), rows[left], *ranges)
    return _corrected(keeper, rows, floor, ceiling)


def _up_to_rounding(keeper, rows, kept):
    """Rows on a system that gives way as far as the types of its columns round."""
    found = rows
    # What values round that are left is not what those that are reached do.
    for _ in range(2):
        room = keeper.room_of(np.clip(found, *keeper.box))
        wider = replace(keeper, system=keeper.system.wider(room))
        found = projected(wider, rows, kept)
    return found


def _in_ranges(keeper, system, rows, floor, ceiling):
    """Rows on a system, where some meet the ends of their ranges."""
    a = system.coefficients / keeper.scale
    shift = system.coefficients @ keeper.begin - a.sum(axis=1) * keeper.offset
    asked = a, system.lower - shift, system.upper - shift
    limits = {"floor": keeper.measures(floor), "ceiling": keeper.measures(ceiling)}
    steps = {"tol": _MARGIN * TOL, "max_iter": MAX_STEPS, "n_reasons": 0}
    found = linear_projection(
        keeper.measures(rows), *asked, **limits, **steps, divergence="chi2"
    )
    rows = (found.measure - keeper.offset) / keeper.scale + keeper.begin
    return np.clip(rows, floor, ceiling, out=rows)


def _few_steps(keeper, equations, rows, floor, ceiling):
    """Rows on equations, and the numbers of those that need more than a few steps.

    Newton's first step is the answer where no value meets an end of its range: one
    small equation a row. A few more, in the values that are free, do for most others.
    """
    a, left = equations.coefficients, np.arange(len(rows))
    if equations.has_intervals or len(a) > _FEW_EQUATIONS:
        return rows, left
    products, tol = (a[:, None, :] * a).reshape(-1, a.shape[1]), _MARGIN * TOL
    tol = tol * equations.scale
    weights, fixed = keeper.measures(rows), ceiling <= floor
    weights /= keeper.scale**2
    free = weights * ~fixed if fixed.any() else weights
    x = near = start = rows
    multipliers, missing = np.zeros((len(a), len(rows))), equations.missing(rows)
    ends, ridge = (floor, ceiling), 0.0
    for _ in range(_STEPS):
        grams = (products @ free.T).reshape(len(a), len(a), -1)
        diagonal = np.einsum("iin->in", grams)
        # Of which all columns are fixed, an equation moves none.
        diagonal += diagonal == 0
        diagonal *= 1 + ridge
        multipliers += _solved(grams, missing.T)
        if not np.isfinite(multipliers).all():
            break
        moved = (a.T @ multipliers).T
        moved *= weights
        moved += start
        near = clipped(moved, *ends)
        missing = equations.of_rows(left).missing(near)
        off = (np.abs(missing) > tol).any(axis=1)
        # Where no end was met this is the answer, to rounding.
        off[off] = (moved[off] != near[off]).any(axis=1)
        if x is rows:
            x = near
        else:
            x[left] = near
        if not off.any():
            return x, left[off]
        multipliers, missing = multipliers[:, off], missing[off]
        left, start, near, weights = (e[off] for e in (left, start, near, weights))
        ends, ridge = tuple(_of_rows(e, off) for e in ends), _RIDGE
        free = weights * ((near > ends[0]) & (near < ends[1]))
    x[left] = rows[left]
    return x, left


def _solved(grams, values):
    """What small positive definite matrices (c, c, n) make ``values`` (c, n) of."""
    both = np.concatenate([grams, values[:, None]], axis=1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for k, own in enumerate(both):
            own /= own[k].copy()
            others = both[:, k].copy()
            others[k] = 0
            both -= others[:, None] * own
    return both[:, -1]


def _corrected(keeper, rows, floor, ceiling):
    """Make up for what rounding left, in proportion to the room that each has."""
    system, tol = keeper.system, TOL * keeper.system.scale
    for _ in range(_CORRECTIONS):
        missing = system.missing(rows)
        worst = np.abs(missing / tol).max(axis=1, initial=0)
        some = np.flatnonzero((worst > 0.5) & (worst < _FAR))
        if not len(some):
            return rows
        low, high = _of_rows(floor, some), _of_rows(ceiling, some)
        near = rows[some]
        room = np.maximum(np.minimum(near - low, high - near), 0)
        a = system.coefficients
        grams = np.einsum("ij,nj,kj->nik", a, room, a)
        inverse = np.linalg.pinv(grams, rcond=1e-12, hermitian=True)
        steps = (inverse @ missing[some, :, None])[:, :, 0]
        rows[some] = np.clip(near + room * (steps @ a), low, high)
    return rows


def _of_rows(ends, rows):
    """Ends of ranges for some rows, where there is one for all or one a row."""
    return ends[rows] if len(ends) > 1 else ends


def _by_programme(keeper, row, held, number):
    """One row by a mixed-integer linear programme, and whether it is an example's.

    Raises if it cannot be had.

    Only what is asked for is worth an error: the audit tells the rest.
    """
    start, found = np.clip(row, *keeper.box), None
    floor, ceiling = (end[0] for end in keeper.narrowed[:2])
    masks = (False,) if held is None else (held, False)
    ways = [(kept, inside, keeper) for kept in masks for inside in (0, _INSIDE)]
    if held is not None and keeper.keeps_zeros:
        # Before zeros go, equations hold as far as they do in the training rows.
        ways.insert(2, (held, 0, replace(keeper, as_found=True)))
    for kept, inside, own in ways:
        stay = kept & (floor <= row) & (ceiling >= row)
        ends = (np.where(stay, row, end) for end in (floor, ceiling))
        found = _programmed(own, start, *ends, inside)
        if found is not None and not own.missed(found[None]).any():
            return found, False
    if len(keeper.asked) and not np.array_equal(keeper.plain, keeper.lattice.steps):
        # What is asked goes before the steps that values show.
        lattice = keeper.lattice.with_steps(True, keeper.plain)
        return _by_programme(replace(keeper, lattice=lattice), row, held, number)
    example = keeper.example(start)
    if example is not None:
        return example, True
    settled = keeper.settled(start[None])[0] if found is None else found
    asked = keeper.asked
    if len(asked) and not keeper.drops:
        missed = keeper.missed(settled[None])[0]
        k = keeper.n_kept + int(np.argmax(missed[keeper.n_kept :]))
        raise UnmetError(keeper.reason(settled, 0, k), number)
    return settled, False


def _programmed(keeper, row, floor, ceiling, inside):
    """A row (D,) of the types of its columns that is near; None if none is found.

    Types come one after the other, the coarsest first: values of a type are on a
    lattice too, if only nearby.
    """
    lattice, precision = keeper.lattice, np.where(keeper.coarse, keeper.precision, 0)
    system, units = keeper.system, keeper.units
    # Inside of intervals and ranges by more than the programme may miss, or not.
    half = (system.upper[0] - system.lower[0]) / 2
    system = system.wider(-np.minimum(inside * system.scale, half))
    inside = np.minimum(inside * units, (ceiling - floor) / 2)
    inside[lattice.on_it] = 0
    floor, ceiling = floor + inside, ceiling - inside

    def nearest(start, moved):
        # Exactly, or to the rounding of the types if that cannot be.
        most = np.maximum(np.abs(floor), np.abs(ceiling))
        sizes = (0 * start, start, most) if keeper.coarse.any() else (0 * start,)
        for size in sizes:
            wider = system.wider(keeper.room_of(size))
            found = programme(start, wider, floor, ceiling, lattice, units, moved)
            if found is not None:
                return found

    found = nearest(row, units)
    for eps in np.unique(precision[(precision > 0) & ~lattice.on_it])[::-1]:
        if found is None:
            return None
        some = (precision == eps) & ~lattice.on_it
        # Those of a programme are whole to 1e-6, which finer ones would make up for.
        floor = np.where(lattice.on_it, found, floor)
        ceiling = np.where(lattice.on_it, found, ceiling)
        lattice, room = lattice.also_near(found, some, eps, units)
        floor = np.maximum(floor, found - room)
        ceiling = np.minimum(ceiling, found + room)
        # Others make up for its steps alone, which are small beside their ranges.
        found = nearest(found, units * (lattice.steps / units)[some].max())
    if found is None:
        return None
    found = as_types(lattice.nearest(found[None]), keeper.precision)
    kept = np.broadcast_to(lattice.on_it | (floor >= ceiling), found.shape)
    if not kept.all() and keeper.missed(found).any():
        # What is free makes up for the programme, not for what types round.
        room = keeper.room_of(found)
        wider = replace(keeper, system=keeper.system.wider(room))
        found = projected(wider, found, kept)
    return found[0]


def clipped(rows, low, high, out=None):
    """``np.clip``, which takes up to twice as long where ends are arrays."""
    out = np.maximum(rows, low, out=out)
    return np.minimum(out, high, out=out)


def as_types(rows, precision):
    """Rows rounded to the precision of each column, in double precision."""
    for dtype in (np.float32, np.float16):
        some = np.flatnonzero(precision == np.finfo(dtype).eps / 2)
        if len(some) == rows.shape[1]:
            return rows.astype(dtype).astype(np.float64)
        if len(some):
            rows[:, some] = rows[:, some].astype(dtype)
    return rows
