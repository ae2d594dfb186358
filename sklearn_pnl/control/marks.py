"""What values of a column are marks of: steps, few values, values that many rows share.

Found once, on the rows of all classes.
"""

import itertools
from dataclasses import dataclass, field, replace
from math import log

import numpy as np
from scipy.stats import hypergeom

from .flags import Flags
from .lattice import Lattice
from .promises import SEARCHED_UP_TO, for_numbers
from .steps import BITS, DECIDING, GRID_ROWS, GRID_SHARE

# A spike has so many rows at least, such a share of them, and so many times the rows of
# the values beside it; a column has at most three, and so many values in all.
_SPIKE_ROWS, _SPIKE_SHARE, _SPIKE_FACTOR, _SPIKE_VALUES = 5, 0.03, 4, 5
# Up to so many values are kept as they are, to the last digit.
_KNOWN = 32


@dataclass(frozen=True)
class Marks:
    """What columns keep beside equations and limits; printed, it is told in words.

    Attributes
    ----------
    feature_names : tuple of str
    lattice : Lattice or None
        Steps of types and of values; None where they are those of a class.
    by_types : ndarray of bool of shape (D,)
        Columns whose step their type tells.
    plain : ndarray of shape (D,)
        Steps of types and of whole numbers: others give way to what is asked.
    pairs : ndarray of bool of shape (D,)
        Columns of two values, of which there are no others.
    two : Lattice or None
        Steps of the columns of one-hot groups, where no others are looked for.
    grids : dict of int to ndarray
        Values of columns that have few.
    spikes : dict of int to ndarray
        Values of a column that many rows share.
    missing : dict of int to float
        Share of rows in which a column is missing.
    tied : dict of int to list of int
        Columns of two values that spikes or missing cells of others say, as indicators
        of what was imputed do; and those others.
    flags : Flags or None
        Columns of two values, some of which are never on together.
    zeros : bool
        Whether cells that are zero in all parents stay so.
    searched : bool
        Whether values were looked at.
    notes : tuple of str
        What gave way.
    """

    feature_names: tuple
    lattice: Lattice | None = None
    by_types: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    plain: np.ndarray = field(default_factory=lambda: np.zeros(0))
    pairs: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    two: Lattice | None = None
    grids: dict = field(default_factory=dict)
    spikes: dict = field(default_factory=dict)
    missing: dict = field(default_factory=dict)
    tied: dict = field(default_factory=dict)
    flags: Flags | None = None
    zeros: bool = False
    searched: bool = False
    notes: tuple = ()

    def __repr__(self):
        told = [f"  {name}: {what}" for name, what in self.descriptions.items()]
        head = f"marks in {len(told)} of {len(self.feature_names)} columns"
        if self.zeros:
            told.append("  cells that are zero in all parents stay zero")
        notes = ("What is asked of new rows goes before all this.", *self.notes)
        return "\n".join([head, *told, *notes])

    def noted(self, note):
        """The same with one more note."""
        return replace(self, notes=(*self.notes, note))

    def giving_way(self, system, precision):
        """The same without the steps that equations of the numbers cannot keep.

        ``precision`` (D,) is the rounding of each column's type.
        """
        first = "Equations go first: of their columns steps and shared values are kept."
        notes = (*self.notes, first)
        # In groups two values are one or the other, by a programme if need be.
        used = system.coefficients != 0
        alike = np.array([np.ptp(precision[some]) == 0 for some in used], bool)
        groups = used[alike & ~(used & ~self.pairs).any(axis=1)].any(axis=0)
        lattice, by_values = self.lattice, (self.lattice.steps > self.plain) & ~groups
        while by_values.any():
            some = system.part(system.coefficients[:, by_values].any(axis=1))
            kept = [len(lattice.totals(some.part([k]))) > 0 for k in range(len(some))]
            off = some.part(~np.array(kept, bool))
            if all(kept) and len(lattice.totals(some)) < len(some):
                off = some
            if not len(off):
                break
            lost = by_values & off.coefficients.any(axis=0)
            lattice = lattice.with_steps(lost, self.plain)
            by_values = by_values & ~lost
        lost = (self.lattice.steps > 0) & (lattice.steps == 0)
        if lost.any():
            names = ", ".join(self.feature_names[j] for j in np.flatnonzero(lost)[:5])
            notes += (f"Equations that are no sums of steps: {names} have none.",)
        return replace(self, lattice=lattice, notes=notes)

    @property
    def descriptions(self):
        """What is kept of each column, in words, by its name."""
        told = {}
        apart = self.flags.never_with(self.feature_names) if self.flags else {}
        stepped = []
        if self.lattice is not None:
            known = self.by_types & (self.lattice.steps == self.plain)
            stepped = np.flatnonzero(self.lattice.on_it & ~known)
        for j, name in enumerate(self.feature_names):
            parts = []
            if j in self.missing:
                parts.append(f"missing in {self.missing[j]:.0%} of rows")
            if j in self.spikes:
                shared = ", ".join(f"{v:.6g}" for v in self.spikes[j])
                parts.append(f"{shared} shared by many rows")
            if j in self.grids:
                parts.append(f"one of {len(self.grids[j])} values")
            elif j in stepped:
                parts.append(_steps_in_words(self.lattice, j))
            if j in self.tied:
                others = ", ".join(self.feature_names[k] for k in self.tied[j][:3])
                parts.append(f"from the parent that shared cells of {others} are from")
            if j in apart:
                parts.append(apart[j])
            if parts:
                told[name] = "; ".join(parts)
        return told


def _steps_in_words(lattice, j):
    step, origin = lattice.steps[j], lattice.origins[j]
    if origin:
        return f"steps of {step:.6g} from {origin:.6g}"
    return "whole numbers" if step == 1 else f"multiples of {step:.6g}"


def resolve_marks(given, table, system, cellwise, steps):
    """The marks of the columns of a table that a parameter ``marks`` stands for.

    Parameters
    ----------
    given : {"auto", "zeros"} or None
    table : Table
    system : LinearSystem
        Equations about the columns of ``X``, which go first.
    cellwise : bool
        Whether rows are plain, and codes have a number for each column; else whole
        numbers are all that is kept.
    steps : Steps
        Of the values of the table.
    """
    names, d = table.feature_names, len(table.columns)
    none = np.zeros(d, bool)
    missing = {}
    if table.has_missing:
        share = np.isnan(table.numbers()).mean(axis=0)
        missing = {j: float(share[j]) for j in np.flatnonzero(share).tolist()}
    known = {"pairs": none, "missing": missing, "zeros": given == "zeros"}
    marks = Marks(names, by_types=table.steps > 0, **known)
    if given is None:
        types = Lattice(table.steps.astype(np.float64), np.zeros(d))
        return replace(marks, lattice=types, plain=types.steps)
    # Steps and few values would not leave rows the sums that zeros do.
    if given == "zeros" or len(table.shape) > 1 or not cellwise:
        return marks
    inside, bound = None, none
    several = np.count_nonzero(system.coefficients, axis=1) > 1
    if several.any():
        inside = for_numbers(system, table).part(several)
        bound = inside.coefficients.any(axis=0)
        # Each value rounded, those of rounded values hold.
        inside = inside.part(inside.rounding == 0)
    if d > SEARCHED_UP_TO:
        note = f"Of more than {SEARCHED_UP_TO} features only whole numbers are kept."
        two = None if inside is None else _steps_of_two(table, inside.coefficients)
        return replace(marks, notes=(note,), two=two)
    marks = _with_found(marks, steps, bound)
    return marks if inside is None else marks.giving_way(inside, table.precision)


def _steps_of_two(table, equations):
    """Steps (D,) from one value to the other, of those columns that have two.

    Of whole numbers those in groups: with others they need not add up.
    """
    used = equations != 0
    columns = np.flatnonzero(used.any(axis=0))
    part = table.columns_of(columns)
    low, high = part.min(axis=0), part.max(axis=0)
    some = ((part == low) | (part == high)).all(axis=0)
    steps, origins = np.zeros((2, len(table.columns)))
    two, low, high = columns[some], low[some], high[some]
    steps[two], origins[two] = high - low, low
    off = origins[two] + steps[two] != high
    upper = zip(two[off].tolist(), high[off, None].astype(np.float64), strict=True)
    mixed = used[(used & (steps == 0)).any(axis=1)].any(axis=0)
    mixed &= (np.rint(steps) == steps) & (np.rint(origins) == origins)
    steps[mixed] = origins[mixed] = 0
    return Lattice.through(steps, origins, dict(upper))


def _with_found(marks, steps, bound):
    """Marks with what the values of the rows (n, D) of a table tell.

    ``bound`` are the columns of equations, which have no grids, and steps that shared
    values are on too.
    """
    grids, spikes, values = {}, {}, {}
    for j in steps.looked_at.tolist():
        values[j], shared, is_grid = _of_column(steps, j, bound[j])
        if is_grid:
            grids[j] = values[j]
        if len(shared):
            spikes[j] = shared
    plain, pairs = steps.plain, np.zeros(len(bound), bool)
    pairs[[j for j, own in values.items() if len(own) == 2]] = True
    # Steps are those of the other values.
    some = [j for j in spikes if plain.steps[j] == 0 and not bound[j]]
    some = [j for j in some if j not in grids]
    found = {j: e for j, e in steps.found.items() if j not in grids and j not in some}
    found |= steps.of(some, values)
    for j in np.flatnonzero(pairs & bound).tolist():
        found[j] = np.ptp(values[j]), values[j][0]
    lattice = steps.with_found(found)
    finer = lattice.steps > plain.steps
    few = {j: own for j, own in values.items() if finer[j] and len(own) <= _KNOWN}
    free, two, flags = np.flatnonzero(pairs & ~bound), np.flatnonzero(pairs), None
    if len(free) and len(two) > 1:
        flags = Flags.of(steps.rows, two, bound)
    return replace(
        marks,
        lattice=Lattice.through(lattice.steps, lattice.origins, few),
        plain=plain.steps,
        pairs=pairs & bound,
        grids=grids,
        spikes=spikes,
        tied=_tied(steps, [j for j in free.tolist() if j in grids], spikes, flags),
        flags=flags,
        searched=True,
    )


def _tied(steps, two, spikes, flags):
    """Which of some columns of two values are tied to others, and to which.

    One value alone comes with a kind of cells of the other, and it comes with no other
    kind, or chance would not make that so.
    """
    rows, kinds, of = steps.rows[:: 1 + len(steps.rows) // DECIDING], [], []
    for j in steps.looked_at.tolist() if two else []:
        own = rows[:, j]
        shared = [np.isnan(own), *(own == value for value in spikes.get(j, ()))]
        none = ~np.logical_or.reduce(shared)
        if not none.all():
            kinds += [*shared, none]
            of += [j] * (len(shared) + 1)
    if not kinds:
        return {}
    part, kinds = rows[:, two].astype(np.float64), np.array(kinds, np.float32)
    on = part == np.fmax.reduce(part)
    told = np.zeros((len(kinds), len(two)), bool)
    for cells, others in itertools.permutations((on, ~on & ~np.isnan(part))):
        # All of n rows have the other value: how often chance gives them that.
        n = np.where(kinds @ cells == 0, kinds @ others, 0)
        some, rest = cells.sum(axis=0), others.sum(axis=0)
        told |= (n == rest) & (rest > 0)
        told |= hypergeom.logpmf(0, some + rest, some, n) <= -BITS * log(2)
    of, tied = np.array(of), {}
    for i in np.flatnonzero(told.any(axis=0)).tolist():
        tied[two[i]] = np.unique(of[told[:, i]]).tolist()
    # Those that are never on together have one parent too.
    for a, b in [] if flags is None else flags.columns[np.argwhere(flags.apart)]:
        if a < b and a in tied and b in tied:
            tied[int(a)].append(int(b))
    return tied


def _of_column(steps, j, is_bound):
    """Other values and spikes of a column, and whether it has those alone."""
    values, counts, is_part = steps.counted[j]
    is_spike = _are_spikes(values, counts)
    spikes, rest = values[is_spike], values[~is_spike]
    if is_bound:
        return values, spikes, False
    n_rest = counts.sum() - counts[is_spike].sum()
    few = n_rest >= GRID_ROWS and len(rest) <= GRID_SHARE * n_rest
    if few and is_part:
        rest = np.setdiff1d(steps.distinct(j), spikes)
    return rest, spikes, few


def _are_spikes(values, counts):
    """Which of the values (m,) of a column stick out of those beside them."""
    n, m = counts.sum(), len(values)
    if m < _SPIKE_VALUES or counts.max() < _SPIKE_ROWS:
        return np.zeros(m, bool)
    fourth = np.partition(counts, m - 4)[m - 4]
    least = max(_SPIKE_ROWS, _SPIKE_SHARE * n, _SPIKE_FACTOR * fourth)
    some = counts >= least
    while some.any():
        others = np.flatnonzero(~some)
        spikes = np.flatnonzero(some)
        place = np.searchsorted(others, spikes)
        around = np.concatenate([[0], counts[others], [0]])
        beside = np.maximum(around[place], around[place + 1])
        too_low = counts[spikes] < _SPIKE_FACTOR * beside
        if not too_low.any():
            break
        some[spikes[too_low]] = False
    return some
