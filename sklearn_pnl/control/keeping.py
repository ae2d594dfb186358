"""What new rows keep and what is asked of them: promised here, checked at the end."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import connected_components

from .._runtime.blocks import ends_of
from .._runtime.validation import warn_missed
from ..geometry.reach import box_reach, span, unmet
from .flags import Flags
from .lattice import Lattice, nearest_of
from .meeting import MAX_STEPS, NO_STEPS, TOL, UnmetError, as_types, clipped, met
from .system import LinearSystem, can_move, rounding_of, tied

# Room that rows brought to constraints have where they are free otherwise, in ranges.
_FREE_MARGIN = 10.0
# Least share of the offset that a cell of a measure keeps.
_LEAST_SHARE = 1e-3
# Distance from the end of a range, as a share of it, that is rounding.
_AT_END = 1e-12
# Share of the rounding of values that a programme is given, which is not exact.
_GIVEN = 0.999
# Roundings of all columns of an equation, each half a step, to its steps.
_HALVES = 2 + 1e-9
# Freedom that is too little to make up for rounding, as a share of a largest term.
_LITTLE = 1e-3
# What is asked for beyond limits by this share of a range is out of reach for certain.
_CERTAIN = 1e-6


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
    lattice : Lattice
    precision : ndarray of shape (D,)
        Rounding of the type of each column; 0 on the lattice.
    plain : ndarray of shape (D,)
        Steps that types and whole numbers have, which nothing goes before; those of the
        lattice that values show give way to what is asked.
    n_kept : int
        How many equations are of the training rows.
    scaled : bool, default=True
        Whether ranges are the units of the measure in which rows are moved least.
    offset : float, default=1.0
        Added in that measure.
    grids : dict of int to ndarray
        Values of columns that have few, where nothing is asked of them.
    widest : ndarray of shape (2, D), default=None
        Limits with the most room that a user may give.
    shared : ndarray of shape (2, D), default=None
        Ends of the values that cells may be given, beside the limits.
    flags : Flags, default=None
        Columns of which no two are on in a row that are never on together.
    keeps_zeros : bool, default=False
        Whether zeros stay where equations hold as far as in the training rows.
    as_found : bool, default=False
        Whether equations of the training rows hold as far as these have them.
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
    lattice: Lattice
    precision: np.ndarray
    plain: np.ndarray
    n_kept: int
    scaled: bool = True
    offset: float = 1.0
    grids: dict = field(default_factory=dict)
    widest: np.ndarray | None = None
    shared: np.ndarray | None = None
    flags: Flags | None = None
    keeps_zeros: bool = False
    as_found: bool = False
    drops: bool = False
    examples: np.ndarray | None = None

    def __post_init__(self):
        low, high = self.lattice.inside(self.low, self.high, self._rounding_at_ends)
        if self.shared is not None:
            low = np.minimum(low, self.shared[0])
            high = np.maximum(high, self.shared[1])
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @cached_property
    def _rounded(self):
        """What each (c, D) misses by rounding, as a share of a value of each column.

        0 where a column in double precision makes up for it, which equations before
        leave some freedom; but of what holds ``as_found`` all that types round.
        """
        free = ~(self.coarse | self.lattice.on_it) & (self.low < self.high)
        shares = np.zeros_like(self.system.coefficients)
        if not self.coarse.any():
            return shares
        before = np.empty((0, len(free)))
        equations = (self.system.lower == self.system.upper).all(axis=0)
        for k, a in enumerate(self.system.coefficients * self.units):
            found = np.linalg.lstsq(before[:, free].T, a[free], rcond=_LITTLE)[0]
            rest = a - found @ before
            if np.abs(rest[free]).max(initial=0) <= _LITTLE * np.abs(a).max(initial=0):
                worst = np.maximum(np.abs(a), np.abs(rest)) / self.units
                shares[k] = 2 * self.precision * worst
            elif equations[k]:
                before = np.vstack([before, a])
        if self.as_found:
            found = self.system.coefficients[: self.n_kept]
            shares[: self.n_kept] = 2 * self.precision * np.abs(found)
        return shares

    @property
    def up_to_rounding(self):
        """The equations in words that hold up to the rounding of their columns."""
        off = self._rounded.any(axis=1) | (self.system.rounding > 0)
        return self.system.part(off).descriptions

    def slack(self, rows):
        """What rounding of the values of the columns may leave of each (n, c)."""
        return np.abs(rows) @ self._rounded.T + self.system.rounding

    def room_of(self, rows):
        """What of that a programme or a projection is given."""
        return np.abs(rows) @ self._rounded.T / 2 + _GIVEN * self.system.rounding

    # --- what is to be met --------------------------------------------------------

    def asking(self, asked):
        """The same, with a system that is asked of new rows."""
        system, used = self.system.and_also(asked), asked.coefficients != 0
        # Where columns are weighed against others all are free, else those off steps.
        freed = used.any(axis=0) & (used.sum(axis=1) > 1).any()
        off, on_it = self._on_steps(asked)
        if off.any():
            # What equations tie to such a value has no steps that it could keep.
            freed |= tied(system.coefficients, off)
        lattice = self.lattice.also(on_it).with_steps(freed, self.plain)
        return replace(self, system=system, lattice=lattice)

    def _on_steps(self, asked):
        """Columns (D,) of which values are asked for that their steps do not have.

        And, by column, single values that these have but for their last digit.
        """
        off, on_it = np.zeros(len(self.low), bool), {}
        for k in np.flatnonzero(np.count_nonzero(asked.coefficients, axis=1) == 1):
            j = int(np.argmax(asked.coefficients[k] != 0))
            if self.plain[j] < self.lattice.steps[j]:
                ends = np.stack([asked.lower[:, k], asked.upper[:, k]])
                low, high = np.sort(ends / asked.coefficients[k, j], axis=0)
                own, room = self.lattice.about([j]), TOL * self.ranges[j]
                one = low[low == high]
                if np.any(own.nearest(one[:, None].copy())[:, 0] != one):
                    on_it[j] = np.unique(one)
                low, high = own.inside(low[:, None], high[:, None], room)
                off[j] |= np.any(low > high)
        return off, on_it

    def of_rows(self, rows):
        """The same for a slice of the new rows, which may have values of their own."""
        if len(self.system.lower) == 1:
            return self
        return replace(self, system=self.system.of_rows(rows))

    @property
    def asked(self):
        """What was asked for, without what the training rows keep."""
        return self.system.part(slice(self.n_kept, None))

    @cached_property
    def coarse(self):
        """Columns (D,) in less than double precision."""
        return self.precision > np.finfo(float).eps

    @property
    def is_free(self):
        """Whether rows stay as they are, but for their limits."""
        moved = self.lattice.on_it.any() or self.coarse.any() or self.grids
        return not (len(self.system) or moved or self.shared is not None)

    @cached_property
    def others(self):
        """Which columns (D,) the system says nothing of."""
        return ~self.system.coefficients.any(axis=0)

    @cached_property
    def inner(self):
        """Columns that the system is about, and the same about these."""
        used = np.flatnonzero(~self.others)
        return used, self.about(used)

    @cached_property
    def apart(self):
        """The same about each set of columns that no equation leads out of."""
        used = self.system.coefficients != 0
        n_sets, labels = connected_components(used.T.astype(int) @ used)
        if n_sets == 1:
            return [(self, np.arange(len(labels)))]
        sets = (np.flatnonzero(labels == k) for k in range(n_sets))
        return [(self.about(columns), columns) for columns in sets]

    @cached_property
    def narrowed(self):
        """Ranges (1, D) or (n, D) with all constraints on one column; which are others.

        A constraint that leaves nothing of a range stays one of the others, to be told.
        """
        system, (floor, ceiling) = self.system, (end[None] for end in self.box)
        several = np.count_nonzero(system.coefficients, axis=1) != 1
        room = TOL * system.scale
        for i in np.flatnonzero(~several):
            own = system.coefficients[i] != 0
            j = int(own.argmax())
            a = system.coefficients[i, j]
            ends = np.sort([system.lower[:, i] / a, system.upper[:, i] / a], axis=0)
            slack = room[i] / abs(a)
            low, high = floor[:, j], ceiling[:, j]
            several[i] = np.any((ends[0] > high + slack) | (ends[1] < low - slack))
            if not several[i]:
                first, last = (np.clip(end, low, high)[:, None] for end in ends + 0.0)
                floor = np.where(own, first, floor)
                ceiling = np.where(own, last, ceiling)
        # Rows moved to an end are not to be rounded beyond it.
        first, last = self.lattice.inside(floor, ceiling)
        floor, ceiling = (
            np.where(first <= last, *ends) for ends in ((first, floor), (last, ceiling))
        )
        return floor, ceiling, several & can_move(system, floor, ceiling)

    def at_ends(self, rows):
        """Which values are at an end of the range of the training rows."""
        room = _AT_END * self.ranges
        low, high = self.least, self.least + self.ranges
        return np.minimum(np.abs(rows - low), np.abs(rows - high)) <= room

    # --- to meet it ---------------------------------------------------------------

    def meet(self, rows, held=None):
        """Rows (n, D) with all that is promised, and which (n,) are from an example.

        In place where they can be. Cells that are ``held``, not NaN, have these values,
        unless what is asked for needs others.
        """
        rows = clipped(rows, self.low, self.high, out=rows)
        fixed = None if held is None else ~np.isnan(held)
        if fixed is not None:
            np.copyto(rows, held, where=fixed)
        copied = np.zeros(len(rows), bool)
        if not self.others.all():
            used, inner = self.inner
            some = None if fixed is None else fixed[:, used]
            rows[:, used], copied = met(inner, rows[:, used], some)
        rows = self.cast(rows, self.others)
        if fixed is not None:
            np.copyto(rows, held, where=fixed & self.others)
            # What is asked for stays, then what is held: flags apart from it are off.
            rows = self.parted(rows, self.others & ~fixed.any(axis=0))
            if len(self.asked):
                about = self.asked.coefficients.any(axis=0)
                rows = self.parted(rows, self.others, about)
        return rows, copied

    def cast(self, rows, columns=True):
        """Rows as the types, lattices and grids of some columns (D,) hold them."""
        rows = self.parted(rows, columns)
        # Values of a grid are those of its type and lattice.
        some = columns & (self.lattice.on_it | self.coarse) & ~self.on_grid
        if some.any():
            some = slice(None) if some.all() else np.flatnonzero(some)
            part = self.lattice.about(some).nearest(rows[:, some])
            rows[:, some] = as_types(part, self.precision[some])
        for j in np.flatnonzero(columns & self.on_grid).tolist():
            rows[:, j] = nearest_of(self.grids[j], rows[:, j])
        return rows

    def parted(self, rows, columns, others=True):
        """Rows, in place, with no flag on in some columns that is apart from others."""
        if self.flags is None:
            return rows
        free = columns & self.discrete & (self.low < self.high)
        return self.flags.parted(rows, free, np.broadcast_to(others, free.shape))

    @property
    def is_flag(self):
        """Columns (D,) outside the system that flags are kept apart in."""
        flags = [] if self.flags is None else self.flags.columns
        return self.others & np.isin(np.arange(len(self.low)), flags)

    @cached_property
    def on_grid(self):
        """Columns (D,) that have few values."""
        on_grid = np.zeros(len(self.low), bool)
        on_grid[list(self.grids)] = True
        return on_grid

    @property
    def discrete(self):
        """Columns (D,) of the lattice or of grids."""
        return self.lattice.on_it | self.on_grid

    def of_two(self, ends):
        """Numbers of the columns that have no value between two ends (2, D)."""
        two, (low, high) = np.zeros(len(self.low), bool), ends
        two[[j for j, own in self.grids.items() if len(own) == 2]] = True
        steps = self.lattice.steps
        two |= (steps > 0) & (high <= low + 1.5 * steps)
        return np.flatnonzero(two & (high > low))

    def beside(self, rows, side):
        """The next values (n, D) on lattices and grids, NaN where there is none.

        Above where ``side`` is 1, below where it is -1; of columns outside the system.
        """
        near, steps = np.full(rows.shape, np.nan), self.lattice.steps
        some = np.flatnonzero(self.others & self.lattice.on_it)
        near[:, some] = rows[:, some] + side[:, some] * steps[some]
        near = as_types(self.lattice.nearest(near), self.precision)
        for j in np.flatnonzero(self.others & self.on_grid).tolist():
            padded = np.concatenate([[np.nan], self.grids[j], [np.nan]])
            place = np.searchsorted(self.grids[j][:-1], rows[:, j])
            near[:, j] = padded[place + 1 + side[:, j].astype(int)]
        return np.where((near < self.low) | (near > self.high), np.nan, near)

    def settled(self, rows):
        """Rows as the types of all columns hold them, with sums that can be kept."""
        totals, computed = self._sums
        rows = self.lattice.rounded(rows, totals)
        for k, j in computed:
            a = self.system.coefficients[k]
            rest = rows @ a - rows[:, j] * a[j]
            rows[:, j] = (self.system.lower[:, k] - rest) / a[j]
        return as_types(self.lattice.nearest(rows), self.precision)

    @cached_property
    def _sums(self):
        """Sums on the lattice that can be kept, and columns that follow from others."""
        lattice, system = self.lattice, self.system
        if not lattice.on_it.any():
            return [], []
        # Each value rounded, these hold as far as they are to.
        steps = np.abs(system.coefficients) @ lattice.steps
        left = (system.rounding > 0) & (steps <= _HALVES * system.rounding)
        totals = lattice.totals(system, ~left)
        return totals, lattice.computed(system, totals, ~left)

    def measures(self, rows):
        """Rows in the measure in which they are moved least."""
        measures = rows - self.begin
        measures *= self.scale
        measures += self.offset
        least = max(_LEAST_SHARE * self.offset, np.finfo(float).tiny)
        return np.maximum(measures, least, out=measures)

    def about(self, used):
        """The same about some columns."""
        about_them = self.system.coefficients[:, used].any(axis=1)
        # What is an array is of columns, behind the last axis.
        known = {known.name: getattr(self, known.name) for known in fields(self)}
        arrays = {name: e for name, e in known.items() if isinstance(e, np.ndarray)}
        return replace(
            self,
            system=self.system.part(about_them).about(used),
            n_kept=int(np.count_nonzero(about_them[: self.n_kept])),
            lattice=self.lattice.about(used),
            grids={},
            flags=None,
            **{name: array[..., used] for name, array in arrays.items()},
        )

    def example(self, row):
        """The nearest of the examples that has what is asked of one row, or None.

        The equations they keep as far as their types do.
        """
        if self.examples is None:
            return None
        off = self.missed(self.examples)[:, self.n_kept :].any(axis=1)
        some = self.examples[~off & ~self.outside(self.examples).any(axis=1)]
        if not len(some):
            return None
        return some[np.argmin(np.abs((some - row) / self.units).sum(axis=1))]

    @cached_property
    def box(self):
        """Limits that rows are moved in, also where there are none."""
        free = _FREE_MARGIN * self.ranges
        # Measures stay positive, if only just.
        empty = self.begin + (_LEAST_SHARE - 1) * self.offset / self.scale
        low = np.maximum(self.least - free, empty)
        high = self.least + self.ranges + free
        if self.shared is not None:
            # Which may lie many ranges of the other values away.
            low = np.minimum(low, self.shared[0])
            high = np.maximum(high, self.shared[1])
        # Not beyond the limits: a constant may differ from its value of the lattice.
        return tuple(clipped(end, self.low, self.high) for end in (low, high))

    @cached_property
    def units(self):
        """The range of each column, 1 where it has none."""
        return np.where(self.ranges > 0, self.ranges, 1.0)

    @cached_property
    def scale(self):
        """Units of the measure per unit of each column."""
        return 1 / self.units if self.scaled else np.ones_like(self.ranges)

    @cached_property
    def begin(self):
        """Where the measure of each column is the offset alone."""
        return self.least if self.scaled else np.zeros_like(self.least)

    def missed(self, rows):
        """Which of the system (n, c) rows miss."""
        missing, tol = np.abs(self.system.missing(rows)), TOL * self.system.scale
        missed = missing > tol
        # Of most rows there is nothing that rounding could excuse.
        if missed.any():
            rounding = self.slack(rows) + rounding_of(self.system, rows)
            missed = missing > tol + rounding
        return missed

    @property
    def is_beyond(self):
        """Which rows (n,) are asked by one equation alone for what is out of reach."""
        system, box = self.system, (end[None] for end in self.box)
        least, most = box_reach(system.coefficients, *box)
        room = _CERTAIN * system.scale
        beyond = (system.lower > most + room) | (system.upper < least - room)
        return beyond[:, self.n_kept :].any(axis=1)

    def is_off(self, rows):
        """Which rows (n,) miss something, or leave their limits."""
        return self.missed(rows).any(axis=1) | self.outside(rows).any(axis=1)

    def outside(self, rows):
        """Which values leave their limits."""
        return (rows < self.low - self.room) | (rows > self.high + self.room)

    @cached_property
    def room(self):
        """What rounding may add to the limits."""
        return TOL * self.ranges + self._rounding_at_ends

    @property
    def _rounding_at_ends(self):
        ends = np.abs([self.low, self.high])
        return 4 * self.precision * np.where(np.isfinite(ends), ends, 0).max(axis=0)

    # --- to check it --------------------------------------------------------------

    def audit(self, rows, whom, held=None):
        """Check rows (n, D) as their user gets them; None, or which of them are left.

        Raises for what was asked for, warns by name for what was found. NaN is what is
        missing, of which nothing is promised.
        """
        left = None
        if len(self.system):
            holes = np.isnan(rows)
            there = np.where(holes, self.least, rows) if holes.any() else rows
            missed = self.missed(there)
            if holes.any():
                missed[holes @ (self.system.coefficients != 0).T] = False
            if self.drops and len(self.asked):
                # Also what has it at the cost of equations or limits.
                left = ~(missed.any(axis=1) | self.outside(there).any(axis=1))
                if not left.any():
                    return left
                # What is left out is nothing to warn about.
                rows, held = rows[left], None if held is None else held[left]
                missed[~left] = False
            if missed.any():
                self._tell(there, missed, whom)
        # Ends tell of all values, but where some are missing.
        ends = np.array(ends_of(rows))
        ends = rows if np.isnan(ends).any() else ends
        self._warn(self.outside(ends).any(axis=0), whom, "leave the limits of")
        self._warn(self._unmarked(rows, held), whom, "do not keep the marks of")
        return left

    def _unmarked(self, rows, held):
        """Columns (D,), but for those of the system, that lost their marks."""
        if held is None and not (self.others & self.discrete).any():
            return np.zeros(len(self.others), bool)
        wanted, holes = rows.copy(), np.isnan(rows)
        holes &= ~self.is_flag
        np.copyto(wanted, self.least, where=holes)
        wanted = self.cast(wanted, self.others)
        if held is not None:
            np.copyto(wanted, held, where=~np.isnan(held))
        wanted -= rows
        np.abs(wanted, out=wanted)
        return (wanted > self.room).any(axis=0) & self.others

    def _warn(self, off, whom, what):
        if off.any():
            names = [self.system.feature_names[j] for j in np.flatnonzero(off)]
            warn_missed(f"{whom}: new rows {what} {', '.join(names[:5])}.")

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
        why = self.why(system, worst)
        if why.equation is None:
            asks = f"{system.names[k]} asks for {span(lower[k], upper[k])}"
            used = tied(system.coefficients[: self.n_kept], system.coefficients[k] != 0)
            if self.lattice.on_it[used].any():
                return (
                    f"{asks}, which whole numbers (or multiples of their steps), as "
                    "its columns hold, or those that equations tie to them, cannot "
                    f"give. Ask for an interval that contains some; {NO_STEPS}"
                )
            return f"{asks}; it is missed by {worst:.1e} of the range."

        def given(i):
            if lower[i] == upper[i]:
                return system.descriptions[i]
            return f"{system.names[i]} at {span(lower[i], upper[i])}"

        told = why.described(system.names.__getitem__, given)
        advice = self.advice(lambda keeper: keeper.why(system))
        return told + (advice or " Ask for what can be reached.")

    def advice(self, why_in):
        """What to do, where ``why_in(keeper)`` finds nothing wrong in wider limits.

        In which no feature changes its sign: that is no way out.
        """
        low = np.where(self.least >= 0, 0.0, self.widest[0])
        high = np.where(self.least + self.ranges <= 0, 0.0, self.widest[1])
        if why_in(replace(self, low=low, high=high)).equation is not None:
            return ""
        return " A larger range_slack=, or range_slack=None, gives more room."

    def why(self, system, worst=0.0):
        """What one row cannot have of a system within the limits: an ``Unmet``."""
        ends = system.lower[0], system.upper[0], *self.box
        return unmet(system.coefficients, *ends, TOL, MAX_STEPS, worst)

    @property
    def is_for_some(self):
        """Whether some rows can have what each is asked by a value of its own."""
        rows = [slice(row, row + 1) for row in range(len(self.system.lower))]
        whys = (self.why(self.system.of_rows(row)) for row in rows)
        return len(rows) > 1 and any(why.equation is None for why in whys)
