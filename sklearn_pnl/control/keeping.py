"""What new rows keep and what is asked of them: promised here, checked at the end."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import connected_components

from .._runtime.blocks import ends_of
from .._runtime.validation import warn_missed
from ..geometry.reach import span, unmet
from .conditioning import Condition
from .flags import Flags
from .lattice import Lattice, nearest_of
from .meeting import MAX_STEPS, TOL, UnmetError, as_types, clipped, met, narrowed
from .system import LinearSystem, rounding_of
from .words import in_words

# Room that rows brought to constraints have where they are free otherwise, in ranges.
_FREE_MARGIN = 10.0
# Least share of the offset that a cell of a measure keeps.
_LEAST_SHARE = 1e-3
# Distance from the end of a range, as a share of it, that is rounding.
_AT_END = 1e-12
# Freedom that is too little to make up for rounding, as a share of a largest term.
_LITTLE = 1e-3


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
    plain : ndarray of shape (D,)
        Steps that types and whole numbers have, which nothing goes before; those of the
        lattice that values show give way to what is asked.
    grids : dict of int to ndarray
        Values of columns that have few, where nothing is asked of them.
    widest : tuple of two ndarray of shape (D,)
        Limits with the most room that a user may give.
    shared : tuple of two ndarray of shape (D,), default=None
        Ends of the values that cells may be given, beside the limits.
    flags : Flags, default=None
        Columns of which no two are on in a row that are never on together.
    n_kept : int, default=None
        How many equations are of the training rows; None is all.
    keeps_zeros : bool, default=False
        Whether zeros stay where equations hold as far as in the training rows.
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
    plain: np.ndarray
    grids: dict
    widest: tuple
    shared: tuple | None = None
    flags: Flags | None = None
    n_kept: int | None = None
    keeps_zeros: bool = False
    drops: bool = False
    examples: np.ndarray | None = None

    def __post_init__(self):
        low, high = self.lattice.inside(self.low, self.high, self._rounding_at_ends)
        if self.shared is not None:
            low = np.minimum(low, self.shared[0])
            high = np.maximum(high, self.shared[1])
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

    def slack(self, rows, as_found=False):
        """What rounding to the types of the columns leaves of each (n, c).

        Of equations of the training rows as much as these have, if ``as_found``.
        """
        if not (self.coarse.any() and len(self.system)):
            return 0.0
        shares = self._rounded
        if as_found:
            shares = 2 * self.precision * np.abs(self.system.coefficients)
            shares[self.n_kept :] = self._rounded[self.n_kept :]
        return np.abs(rows) @ shares.T

    # --- what is to be met --------------------------------------------------------

    def asking(self, asked):
        """The same, with a system that is asked of new rows."""
        system, freed = self.system.and_also(asked), asked.coefficients.any(axis=0)
        off = self._off_steps(asked)
        if off.any():
            # What equations tie to such a value has no steps that it could keep.
            used = system.coefficients != 0
            _, sets = connected_components(used.T.astype(int) @ used)
            freed |= np.isin(sets, sets[off])
        steps = np.where(freed, self.plain, self.lattice.steps)
        return replace(self, system=system, lattice=replace(self.lattice, steps=steps))

    def _off_steps(self, asked):
        """Columns (D,) of which values are asked for that their steps do not have."""
        off = np.zeros(len(self.low), bool)
        for k in np.flatnonzero(np.count_nonzero(asked.coefficients, axis=1) == 1):
            j = int(np.argmax(asked.coefficients[k] != 0))
            if self.plain[j] < self.lattice.steps[j]:
                ends = np.stack([asked.lower[:, k], asked.upper[:, k]])
                low, high = np.sort(ends / asked.coefficients[k, j], axis=0)
                own, room = self.lattice.about([j]), TOL * self.ranges[j]
                low, high = own.inside(low[:, None], high[:, None], room)
                off[j] |= np.any(low > high)
        return off

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
        moved = self.lattice.on_it.any() or self.coarse.any() or self.grids
        return not (len(self.system) or moved or self.shared is not None)

    @cached_property
    def used(self):
        """Columns that the system is about."""
        return np.flatnonzero(self.system.coefficients.any(axis=0))

    @cached_property
    def others(self):
        """Columns that the system says nothing of."""
        return np.flatnonzero(~self.system.coefficients.any(axis=0))

    @cached_property
    def inner(self):
        """The same about the columns that the system is about."""
        return self.about(self.used)

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
        """See :func:`narrowed`."""
        return narrowed(self)

    def at_ends(self, rows):
        """Which values are at an end of the range of the training rows."""
        room = _AT_END * self.ranges
        low, high = self.least, self.least + self.ranges
        found = (rows <= low + room) | (rows >= high - room)
        if found.any():
            # But for those beyond.
            found &= (rows >= low - room) & (rows <= high + room)
        return found

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
        used, copied = self.used, np.zeros(len(rows), bool)
        if len(used):
            some = None if fixed is None else fixed[:, used]
            part, copied = met(self.inner, rows[:, used], some)
            rows[:, used] = part
        rows = self.cast(rows, self.others if len(used) else slice(None))
        if fixed is not None:
            fixed[:, used] = False
            np.copyto(rows, held, where=fixed)
        return rows, copied

    def cast(self, rows, columns=slice(None)):
        """Rows as the types, lattices and grids of some columns hold them."""
        rows = self.parted(rows, columns)
        some = np.zeros(rows.shape[1], bool)
        some[columns] = True
        grids = [j for j in self.grids if some[j]]
        # Values of a grid are those of its type and lattice.
        some[grids] = False
        some &= self.lattice.on_it | self.coarse
        if some.any():
            some = slice(None) if some.all() else np.flatnonzero(some)
            part = self.lattice.about(some).nearest(rows[:, some])
            part = as_types(part, self.precision[some])
            if part is not rows:
                rows[:, some] = part
        for j in grids:
            rows[:, j] = nearest_of(self.grids[j], rows[:, j])
        return rows

    def parted(self, rows, columns):
        """Rows, in place, with no two flags on in some columns that are apart."""
        if self.flags is None:
            return rows
        free = np.zeros(rows.shape[1], bool)
        free[columns] = (self.discrete & (self.low < self.high))[columns]
        return self.flags.parted(rows, free)

    @cached_property
    def is_flag(self):
        """Columns (D,) outside the system that flags are kept apart in."""
        found = np.zeros(len(self.low), bool)
        if self.flags is not None:
            found[self.flags.columns] = True
        found[self.used] = False
        return found

    @cached_property
    def discrete(self):
        """Columns (D,) of the lattice or of grids."""
        found = self.lattice.on_it.copy()
        found[list(self.grids)] = True
        return found

    def beside(self, rows, side):
        """The next values (n, D) on lattices and grids, NaN where there is none.

        Above where ``side`` is 1, below where it is -1; of columns outside the system.
        """
        near, steps = np.full(rows.shape, np.nan), self.lattice.steps
        some = self.others[self.lattice.on_it[self.others]]
        near[:, some] = rows[:, some] + side[:, some] * steps[some]
        near = as_types(self.lattice.nearest(near), self.precision)
        for j in self.grids.keys() & set(self.others.tolist()):
            padded = np.concatenate([[np.nan], self.grids[j], [np.nan]])
            place = np.searchsorted(self.grids[j][:-1], rows[:, j])
            near[:, j] = padded[place + 1 + side[:, j].astype(int)]
        return np.where((near < self.low) | (near > self.high), np.nan, near)

    def settled(self, rows):
        """Rows as the types of all columns hold them, with sums that can be kept."""
        rows = self.lattice.rounded(rows, self._totals)
        for k, j in self._computed:
            a = self.system.coefficients[k]
            rest = rows @ a - rows[:, j] * a[j]
            rows[:, j] = (self.system.lower[:, k] - rest) / a[j]
        return as_types(self.lattice.nearest(rows), self.precision)

    @cached_property
    def _totals(self):
        return self.lattice.totals(self.system) if self.lattice.on_it.any() else []

    @cached_property
    def _computed(self):
        return self.lattice.computed(self.system, self._totals)

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
        return replace(
            self,
            system=self.system.part(about_them).about(used),
            n_kept=int(np.count_nonzero(about_them[: self.n_kept])),
            lattice=self.lattice.about(used),
            **{
                name: getattr(self, name)[used]
                for name in ("low", "high", "least", "ranges", "precision", "plain")
            },
            grids={},
            flags=None,
            widest=[e[used] for e in self.widest],
            shared=None if self.shared is None else [e[used] for e in self.shared],
            examples=None if self.examples is None else self.examples[:, used],
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
        units = np.where(self.ranges > 0, self.ranges, 1.0)
        return some[np.argmin(np.abs((some - row) / units).sum(axis=1))]

    @cached_property
    def box(self):
        """Limits that rows are moved in, also where there are none."""
        free = _FREE_MARGIN * self.ranges
        # Measures stay positive, if only just.
        empty = self.begin + (_LEAST_SHARE - 1) * self.offset / self.scale
        ends = np.maximum(self.least - free, empty), self.least + self.ranges + free
        # Not beyond the limits: a constant may differ from its value of the lattice.
        return tuple(np.clip(end, self.low, self.high) for end in ends)

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

    def allowed(self, rows, as_found=False):
        """What may be missing of each (n, c): the tolerance, rounding, types."""
        system = self.system
        rounding = self.slack(rows, as_found) + rounding_of(system, rows)
        return TOL * system.scale + rounding

    def missed(self, rows, as_found=False):
        """Which of the system (n, c) rows miss."""
        missing = np.abs(self.system.missing(rows))
        missed = missing > TOL * self.system.scale
        # Of most rows there is nothing that rounding could excuse.
        return missing > self.allowed(rows, as_found) if missed.any() else missed

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
        ends = (np.where(np.isfinite(e), np.abs(e), 0.0) for e in (self.low, self.high))
        return 4 * self.precision * np.maximum(*ends)

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
        self._warn(self._unmarked(rows, held), whom, "have other values than rows of")
        return left

    def _unmarked(self, rows, held):
        """Columns (D,), but for those of the system, that lost their marks."""
        lost, some = np.zeros(rows.shape[1], bool), self.others
        if self.lattice.on_it[some].any() or self.grids or held is not None:
            holes = np.isnan(rows) & ~self.is_flag
            wanted = self.cast(np.where(holes, self.least, rows), some)
            if held is not None:
                np.copyto(wanted, held, where=~np.isnan(held))
            lost[some] = (np.abs(wanted - rows) > self.room)[:, some].any(axis=0)
        return lost

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
