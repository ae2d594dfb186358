"""What new rows keep and what is asked of them: met after decoding, checked at the end.

Rows are moved least in the chi-square distance of their measures, the embedding plus
the offset: the first step of the KL projection, and exact where no range is met. What
is fixed by the type of a column (whole numbers, single precision) is settled next, and
the other columns take over what that leaves.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from .._runtime.validation import warn_missed
from ..geometry import linear_projection
from ..geometry.reach import span, unmet
from .conditioning import Condition
from .lattice import Lattice, programme
from .system import LinearSystem, rounding_of
from .words import in_words

# Distance from a constraint that counts as met, as a share of a range.
TOL = 1e-9
# The projection is asked for more than the rows: the way back to their units rounds.
_MARGIN, _MAX_STEPS = 1e-2, 200
# Room that rows brought to constraints have where they are free otherwise, in ranges.
_FREE_MARGIN = 10.0
# Least share of the offset that a cell of a measure keeps.
_LEAST_SHARE = 1e-3
# Distance from the end of a range, as a share of it, that is rounding.
_AT_END = 1e-12
# Distance from the ends of intervals at which a programme looks, as a share of a range.
_INSIDE = 1e-5
# Freedom that is too little to make up for rounding, as a share of a largest term.
_LITTLE = 1e-3
# Up to so many equations are solved for at once, without a look at which share columns.
_FEW_EQUATIONS = 12
# Steps of theirs, and what keeps an equation solvable whose values are all at ends.
_STEPS, _RIDGE = 6, 1e-10
# Corrections of what rounding leaves, in units of the tolerance from which they work.
_CORRECTIONS, _FAR = 2, 1e3


class UnmetError(ValueError):
    """A new row that cannot have what is asked of it; ``row`` is its number."""

    def __init__(self, reason, row):
        super().__init__(reason)
        self.reason, self.row = reason, row

    def __str__(self):
        return f"New row {self.row} cannot meet the constraints: {self.reason}"

    def __reduce__(self):
        return type(self), (self.reason, self.row)


@dataclass(frozen=True)
class Keeper:
    """What all new rows like some training rows keep, about their numbers.

    Attributes
    ----------
    system : LinearSystem
        Equations of the training rows; what is asked of rows comes behind them.
    low, high : ndarray of shape (D,)
        Limits of each number; values of the lattice where it has one.
    least, ranges : ndarray of shape (D,)
        Smallest values of the training rows, and the ranges of these.
    scaled : bool
        Whether ranges are the units of the measure in which rows are moved least.
    offset : float
        Added in that measure.
    lattice : Lattice
    precision : ndarray of shape (D,)
        Rounding of the type of each column; 0 on the lattice.
    n_kept : int, default=None
        How many equations are of the training rows; None is all.
    drops : bool, default=False
        Whether rows that cannot have what is asked for are left out, not an error.
    examples : ndarray of shape (m, D), default=None
        Training rows: where all ways end, the columns that a system is about are those
        of one that meets it.
    """

    system: LinearSystem
    low: np.ndarray
    high: np.ndarray
    least: np.ndarray
    ranges: np.ndarray
    scaled: bool
    offset: float
    lattice: Lattice
    precision: np.ndarray
    n_kept: int | None = None
    drops: bool = False
    examples: np.ndarray | None = None

    def __post_init__(self):
        low, high = self.lattice.inside(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.n_kept is None:
            object.__setattr__(self, "n_kept", len(self.system))

    @cached_property
    def _rounded(self):
        """What each (c, D) misses by rounding, as a share of a value of each column.

        0 where a column in double precision makes up for it, which equations before
        leave some freedom.
        """
        units = np.where(self.ranges > 0, self.ranges, 1.0)
        free = ~(self.coarse | self.lattice.on_it)
        shares = np.zeros_like(self.system.coefficients)
        before = np.empty((0, len(free)))
        equations = (self.system.lower == self.system.upper).all(axis=0)
        for k, a in enumerate(self.system.coefficients * units):
            found = np.linalg.lstsq(before[:, free].T, a[free], rcond=_LITTLE)[0]
            rest = a - found @ before
            if np.abs(rest[free]).max(initial=0) <= _LITTLE * np.abs(a).max(initial=0):
                worst = np.maximum(np.abs(a), np.abs(rest)) / units
                shares[k] = 2 * self.precision * worst
            elif equations[k]:
                before = np.vstack([before, a])
        return shares

    @property
    def up_to_rounding(self):
        """The equations in words that hold up to the rounding of their columns."""
        if not (self.coarse.any() and len(self.system)):
            return ()
        told = self.system.descriptions
        return tuple(told[k] for k in np.flatnonzero(self._rounded.any(axis=1)))

    def slack(self, rows):
        """What rounding to the types of the columns leaves of each (n, c)."""
        if not (self.coarse.any() and len(self.system)):
            return 0.0
        return np.abs(rows) @ self._rounded.T

    # --- what is to be met --------------------------------------------------------

    def asking(self, asked):
        """The same, with a system that is asked of new rows."""
        return replace(self, system=self.system.and_also(asked))

    def of_rows(self, rows):
        """The same for a slice of the new rows, which may have values of their own."""
        if len(self.system.lower) == 1:
            return self
        return replace(self, system=self.system.of_rows(rows))

    @property
    def asked(self):
        """What was asked for, without what the training rows keep."""
        return self.system.part(slice(self.n_kept, None))

    def condition(self, rows):
        """What drawing should heed; ``rows`` are those to train. None if nothing."""
        asked = self.asked
        if not len(asked):
            return None
        return Condition(rows @ asked.coefficients.T, asked.lower, asked.upper)

    @cached_property
    def coarse(self):
        """Columns (D,) in less than double precision."""
        return self.precision > np.finfo(float).eps

    @property
    def is_free(self):
        """Whether rows stay as they are, but for their limits."""
        return not (len(self.system) or self.lattice.on_it.any() or self.coarse.any())

    # --- to meet it ---------------------------------------------------------------

    def meet(self, rows, zeros=None):
        """Rows (n, D) with all that is promised, and which (n,) are from an example.

        In place where they can be. Cells of the mask ``zeros`` stay zero, unless what
        is asked for needs them.
        """
        rows = np.clip(rows, self.low, self.high, out=rows)
        zeros = zeros if zeros is not None and zeros.size else None
        if zeros is not None:
            rows[zeros] = 0
        used = np.flatnonzero(self.system.coefficients.any(axis=0))
        copied = np.zeros(len(rows), bool)
        if len(used):
            zeros = None if zeros is None else zeros[:, used]
            part, copied = _met(self._about(used), rows[:, used], zeros)
            rows[:, used] = part
        others = np.setdiff1d(np.arange(rows.shape[1]), used)
        return self.cast(rows, others), copied

    def cast(self, rows, columns=slice(None)):
        """Rows as the types of some columns hold them."""
        lattice, coarse = self.lattice.about(columns), self.coarse[columns]
        if not (lattice.on_it.any() or coarse.any()):
            return rows
        if isinstance(columns, slice):
            return _as_types(lattice.nearest(rows), self.precision)
        part = lattice.nearest(rows[:, columns])
        rows[:, columns] = _as_types(part, self.precision[columns])
        return rows

    def settled(self, rows):
        """Rows as the types of all columns hold them, with sums that can be kept."""
        rows = self.lattice.rounded(rows, self._totals)
        for k, j in self._computed:
            a = self.system.coefficients[k]
            rest = rows @ a - rows[:, j] * a[j]
            rows[:, j] = (self.system.lower[:, k] - rest) / a[j]
        return _as_types(self.lattice.nearest(rows), self.precision)

    @cached_property
    def _totals(self):
        return self.lattice.totals(self.system) if self.lattice.on_it.any() else []

    @cached_property
    def _computed(self):
        return self.lattice.computed(self.system, self._totals)

    def measures(self, rows):
        """Rows in the measure in which they are moved least."""
        measures = (rows - self.begin) * self.scale
        measures += self.offset
        least = max(_LEAST_SHARE * self.offset, np.finfo(float).tiny)
        return np.maximum(measures, least, out=measures)

    def _about(self, used):
        return replace(
            self,
            system=self.system.about(used),
            lattice=self.lattice.about(used),
            **{
                name: getattr(self, name)[used]
                for name in ("low", "high", "least", "ranges", "precision")
            },
            examples=None if self.examples is None else self.examples[:, used],
        )

    def example(self, row):
        """The nearest of the examples that meets the system of one row, or None."""
        if self.examples is None:
            return None
        some = self.examples[~self.is_off(self.examples)]
        if not len(some):
            return None
        units = np.where(self.ranges > 0, self.ranges, 1.0)
        return some[np.argmin(np.abs((some - row) / units).sum(axis=1))]

    @cached_property
    def box(self):
        """Limits that rows are moved in, also where there are none."""
        free = _FREE_MARGIN * self.ranges
        # Measures stay positive, if only just.
        empty = self.begin + (_LEAST_SHARE - 1) * self.offset / self.scale
        low = np.maximum.reduce([self.low, self.least - free, empty])
        return low, np.minimum(self.high, self.least + self.ranges + free)

    @cached_property
    def scale(self):
        """Units of the measure per unit of each column."""
        if not self.scaled:
            return np.ones_like(self.ranges)
        return 1 / np.where(self.ranges > 0, self.ranges, 1)

    @cached_property
    def begin(self):
        """Where the measure of each column is the offset alone."""
        return self.least if self.scaled else np.zeros_like(self.least)

    def allowed(self, rows):
        """What may be missing of each (n, c): the tolerance, rounding, types."""
        system = self.system
        return TOL * system.scale + self.slack(rows) + rounding_of(system, rows)

    def missed(self, rows):
        """Which of the system (n, c) rows miss."""
        return np.abs(self.system.missing(rows)) > self.allowed(rows)

    def is_off(self, rows):
        """Which rows (n,) miss something, or leave their limits."""
        outside = (rows < self.low - self.room) | (rows > self.high + self.room)
        return self.missed(rows).any(axis=1) | outside.any(axis=1)

    @cached_property
    def room(self):
        """What rounding may add to the limits."""
        ends = (np.where(np.isfinite(e), np.abs(e), 0.0) for e in (self.low, self.high))
        return TOL * self.ranges + 4 * self.precision * np.maximum(*ends)

    # --- to check it --------------------------------------------------------------

    def audit(self, rows, whom, zeros=None):
        """Check rows (n, D) as their user gets them; None, or which of them are left.

        Raises for what was asked for, warns by name for what was found.
        """
        left = None
        if len(self.system):
            missed = self.missed(rows)
            if self.drops:
                # What is left out is nothing to warn about.
                left = ~missed[:, self.n_kept :].any(axis=1)
                missed[~left] = False
            if missed.any():
                self._tell(rows, missed, whom)
            if self.drops and left.any():
                rows, zeros = rows[left], zeros if zeros is None else zeros[left]
        outside = (rows.min(axis=0) < self.low - self.room) | (
            rows.max(axis=0) > self.high + self.room
        )
        if outside.any():
            names = [self.system.feature_names[j] for j in np.flatnonzero(outside)]
            warn_missed(f"{whom}: new rows leave the limits of {', '.join(names[:5])}.")
        if zeros is not None and zeros.size and np.any(rows[zeros]):
            n = np.count_nonzero((rows != 0) & zeros)
            warn_missed(
                f"{whom}: {n} cells that are zero in all parents of a new row are not "
                "zero in it, as constraints or equations ask for other values."
            )
        return left

    def _tell(self, rows, missed, whom):
        system = self.system
        asked = missed[:, self.n_kept :]
        if asked.any():
            row, k = np.unravel_index(np.argmax(asked), asked.shape)
            k += self.n_kept
            raise UnmetError(self.reason(rows[row], int(row), int(k)), int(row))
        some = np.flatnonzero(missed.any(axis=0))
        worst = np.abs(system.missing(rows)).max(axis=0) / system.scale
        told = ", ".join(system.descriptions[k] for k in some[:5])
        n = np.count_nonzero(missed.any(axis=1))
        warn_missed(
            f"{whom}: {n} of {len(rows)} new rows miss what all training rows keep, by "
            f"up to {worst[some].max():.1e} of its range: {told}. Pass invariants=None "
            "to do without."
        )

    def reason(self, row, number, k):
        """Why a row misses constraint ``k``, in the units of the rows."""
        system = self.system.of_rows(slice(number, number + 1))
        lower, upper = system.lower[0], system.upper[0]
        worst = np.abs(system.missing(row[None]))[0, k] / system.scale[k]
        ends = lower, upper, *self.box
        why = unmet(system.coefficients, *ends, TOL, _MAX_STEPS, worst)
        if why.equation is None:
            asks = f"{system.names[k]} asks for {span(lower[k], upper[k])}"
            if self.lattice.on_it[system.coefficients[k] != 0].any():
                return (
                    f"{asks}, which whole numbers (or multiples of their steps), as "
                    "its columns hold, cannot give. Ask for an interval that contains "
                    "some, or pass the columns as floats."
                )
            return f"{asks}; it is missed by {worst:.1e} of the range."

        def given(i):
            if lower[i] == upper[i]:
                return in_words(system.coefficients[i], lower[i], system.feature_names)
            return f"{system.names[i]} at {span(lower[i], upper[i])}"

        return why.described(system.names.__getitem__, given)


def _met(keeper, start, zeros):
    """Rows (n, d) of the columns that a system is about, on it where that can be.

    And which of them are those of an example.
    """
    x, todo, copied = start, np.arange(len(start)), np.zeros(len(start), bool)
    for kept in _attempts(keeper, start, zeros):
        kept = None if kept is None else kept[todo]
        found = _projected(keeper.of_rows(todo), start[todo], kept)
        if len(todo) == len(x):
            x = found
        else:
            x[todo] = found
        todo = todo[keeper.of_rows(todo).missed(found).any(axis=1)]
        if not len(todo):
            break
    settled = keeper.lattice.on_it | keeper.coarse
    if settled.any():
        empty = np.zeros_like(x, bool) if zeros is None else zeros & (x == 0)
        x = keeper.settled(x)
        todo = np.flatnonzero(keeper.is_off(x) | (empty & (x != 0)).any(axis=1))
        if len(todo) and not settled.all():
            # The others take over what that leaves, but for zeros.
            stay = settled | (empty[todo] & (x[todo] == 0))
            x[todo] = _projected(keeper.of_rows(todo), x[todo], stay)
            todo = todo[keeper.of_rows(todo).is_off(x[todo])]
    for row in map(int, todo):
        zero = None if zeros is None else zeros[row]
        own = keeper.of_rows(slice(row, row + 1))
        x[row], copied[row] = _by_programme(own, start[row], zero, row)
    return x, copied


def _attempts(keeper, rows, zeros):
    """Masks of the values that stay, from most of them to none.

    Zeros and indicators that both parents share: no more than any mixture of the two do
    the equations need to move them.
    """
    room = _AT_END * keeper.ranges
    still = np.abs(rows - keeper.least) <= room
    still |= np.abs(rows - (keeper.least + keeper.ranges)) <= room
    if zeros is not None:
        still |= zeros
    if still.any():
        yield still
    if zeros is not None:
        yield zeros
        # What is asked for goes before zeros, and the equations do not need them.
        yield zeros & ~keeper.asked.coefficients.any(axis=0)
    yield None


def _projected(keeper, rows, kept):
    """Rows on a system, in their ranges, with some values as they are."""
    system = keeper.system
    floor, ceiling, several = _narrowed(keeper)
    if kept is not None:
        floor, ceiling = np.where(kept, rows, floor), np.where(kept, rows, ceiling)
    rows = np.clip(rows, floor, ceiling)
    if several.any():
        part = system.part(several) if not several.all() else system
        rows, left = _few_steps(keeper, part, rows, floor, ceiling)
        if len(left):
            part, ranges = (
                part.of_rows(left),
                (_of_rows(e, left) for e in (floor, ceiling)),
            )
            rows[left] = _in_ranges(keeper, part, rows[left], *ranges)
    return _corrected(keeper, rows, floor, ceiling)


def _in_ranges(keeper, system, rows, floor, ceiling):
    """Rows on a system, where some meet the ends of their ranges."""
    a = system.coefficients / keeper.scale
    shift = system.coefficients @ keeper.begin - a.sum(axis=1) * keeper.offset
    found = linear_projection(
        keeper.measures(rows),
        a,
        system.lower - shift,
        system.upper - shift,
        floor=keeper.measures(floor),
        ceiling=keeper.measures(ceiling),
        divergence="chi2",
        tol=_MARGIN * TOL,
        max_iter=_MAX_STEPS,
        n_reasons=0,
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
    x, multipliers = rows.copy(), np.zeros((len(rows), len(a)))
    products, tol = (a[:, None, :] * a).reshape(-1, a.shape[1]), _MARGIN * TOL
    weights = keeper.measures(rows) / keeper.scale**2
    free = weights * (ceiling > floor)
    ends, ridge = (floor, ceiling), 0.0
    for _ in range(_STEPS):
        grams = (free @ products.T).reshape(-1, len(a), len(a))
        grams += (
            ridge * np.trace(grams, axis1=1, axis2=2)[:, None, None] * np.eye(len(a))
        )
        missing = equations.of_rows(left).missing(x[left])
        try:
            multipliers[left] += np.linalg.solve(grams, missing[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            break
        moved = rows[left] + weights * (multipliers[left] @ a)
        x[left] = near = np.clip(moved, *ends)
        missing = equations.of_rows(left).missing(near) / equations.scale
        off = (moved != near).any(axis=1) & (np.abs(missing).max(axis=1) > tol)
        if not off.any():
            return x, left[off]
        left, ridge = left[off], _RIDGE
        ends = tuple(_of_rows(e, off) for e in ends)
        weights = weights[off]
        free = weights * ((near[off] > ends[0]) & (near[off] < ends[1]))
    x[left] = rows[left]
    return x, left


def _narrowed(keeper):
    """Ranges (D,) or (n, D) with constraints on one column in them; which are others.

    A constraint that leaves nothing of a range stays one of the others, to be told.
    """
    system, (floor, ceiling) = keeper.system, keeper.box
    several = np.count_nonzero(system.coefficients, axis=1) != 1
    room = TOL * system.scale
    for i in np.flatnonzero(~several):
        j = int(np.argmax(system.coefficients[i] != 0))
        a = system.coefficients[i, j]
        ends = np.sort([system.lower[:, i] / a, system.upper[:, i] / a], axis=0)
        slack = room[i] / abs(a)
        if np.any(ends[0] > ceiling[..., j] + slack) or np.any(
            ends[1] < floor[..., j] - slack
        ):
            several[i] = True
            continue
        if floor.ndim == 1:
            shape = len(system.lower), len(floor)
            floor, ceiling = (
                np.broadcast_to(e, shape).copy() for e in (floor, ceiling)
            )
        low, high = floor[:, j].copy(), ceiling[:, j].copy()
        floor[:, j] = np.clip(ends[0], low, high)
        ceiling[:, j] = np.clip(ends[1], low, high)
    return floor, ceiling, several


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
        steps = (
            np.linalg.pinv(grams, rcond=1e-12, hermitian=True) @ missing[some, :, None]
        )
        rows[some] = np.clip(near + room * (steps[:, :, 0] @ a), low, high)
    return rows


def _of_rows(ends, rows):
    """Ends of ranges for some rows, where there is one for all or one a row."""
    return ends[rows] if ends.ndim == 2 and len(ends) > 1 else ends


def _by_programme(keeper, row, zeros, number):
    """One row by a mixed-integer linear programme, and whether it is an example's.

    Raises if it cannot be had.

    Only what is asked for is worth an error: the audit tells the rest.
    """
    start, found = np.clip(row, *keeper.box), None
    floor, ceiling, _ = _narrowed(keeper)
    floor, ceiling = floor.reshape(-1), ceiling.reshape(-1)
    masks = (None,) if zeros is None else (zeros, None)
    for kept, inside in product(masks, (0, _INSIDE)):
        ends = floor, ceiling
        if kept is not None:
            ends = (np.where(kept & (floor <= 0) & (ceiling >= 0), 0, e) for e in ends)
        found = _programmed(keeper, start, *ends, inside)
        if found is not None and not keeper.missed(found[None]).any():
            return found, False
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
    units = np.where(keeper.ranges > 0, keeper.ranges, 1.0)
    system = keeper.system
    # Inside of intervals and ranges by more than the programme may miss, or not.
    half = (system.upper[0] - system.lower[0]) / 2
    system = system.wider(-np.minimum(inside * system.scale, half))
    inside = np.minimum(inside * units, (ceiling - floor) / 2)
    inside[lattice.on_it] = 0
    floor, ceiling = floor + inside, ceiling - inside

    def nearest(start):
        # Exactly, or to the rounding of the types if that cannot be.
        most = np.maximum(np.abs(floor), np.abs(ceiling))
        sizes = (0 * start, start, most) if keeper.coarse.any() else (0 * start,)
        for size in sizes:
            wider = system.wider(keeper.slack(size) / 2)
            found = programme(start, wider, floor, ceiling, lattice, units)
            if found is not None:
                return found

    found = nearest(row)
    for eps in np.unique(precision[precision > 0])[::-1]:
        if found is None:
            return None
        some = (precision == eps) & ~lattice.on_it
        lattice, room = lattice.also_near(found, some, eps, units)
        floor = np.maximum(floor, found - room)
        ceiling = np.minimum(ceiling, found + room)
        found = nearest(found)
    if found is None:
        return None
    found = _as_types(found[None], keeper.precision)
    kept = np.broadcast_to(lattice.on_it, found.shape)
    if not kept.all() and keeper.missed(found).any():
        found = _projected(keeper, found, kept)
    return found[0]


def _as_types(rows, precision):
    """Rows rounded to the precision of each column, in double precision."""
    for dtype in (np.float32, np.float16):
        some = np.flatnonzero(precision == np.finfo(dtype).eps / 2)
        if len(some) == rows.shape[1]:
            return rows.astype(dtype).astype(np.float64)
        if len(some):
            rows[:, some] = rows[:, some].astype(dtype)
    return rows
