"""What values of a column are marks of: steps, few values, values that many rows share.

Found once, on the rows of all classes. A continuous column is dismissed by a look at
some of its rows, all such columns at once.
"""

from dataclasses import dataclass, field, replace
from math import inf, remainder

import numpy as np

from .flags import Flags
from .lattice import Lattice, lattice_of
from .promises import SEARCHED_UP_TO, for_numbers

# Rows looked at first, and those that tell spikes and few values from others.
_FIRST, _DECIDING = 2**8, 2**12
# A spike has so many rows at least, such a share of them, and so many times the rows of
# the values beside it; a column has at most three, and so many values in all.
_SPIKE_ROWS, _SPIKE_SHARE, _SPIKE_FACTOR, _SPIKE_VALUES = 5, 0.03, 4, 5
# Fewer rows tell nothing of few values, which are at most this share of the rows.
_GRID_ROWS, _GRID_SHARE = 10, 0.5
# Up to so many values are kept as they are, to the last digit.
_KNOWN = 32
# Most steps in the range of a column, and what values may miss them by, as a share.
_MOST_STEPS, _MISS = 2**16, 1e-10
# Remainders below this share of the range are none; and of a step.
_NONE_LEFT, _MOST_MISSED = 1e-3 / _MOST_STEPS, 0.05
# A step is taken if chance makes one less often than 2 ** -_BITS.
_BITS = 20
# Places of decimals, in columns of more steps; rows that are asked for them first; and
# how little of the last place rounding may take.
_PLACES, _FEW, _TOLD = 4, 32, 0.01


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
        first = "Equations go first: of their columns only steps are kept."
        notes = (*self.notes, first)
        # In groups two values are one or the other, by a programme if need be.
        used = system.coefficients != 0
        alike = [np.ptp(precision[some]) == 0 for some in used]
        groups = used[alike & ~(used & ~self.pairs).any(axis=1)].any(axis=0)
        lattice, by_values = self.lattice, (self.lattice.steps > self.plain) & ~groups
        lost = np.zeros_like(by_values)
        while True:
            lattice = lattice.with_steps(lost, self.plain)
            by_values = by_values & ~lost
            some = system.part(system.coefficients[:, by_values].any(axis=1))
            kept = [len(lattice.totals(some.part([k]))) > 0 for k in range(len(some))]
            off = some.part(~np.array(kept, bool))
            if all(kept) and len(lattice.totals(some)) < len(some):
                off = some
            if not len(off):
                break
            lost = by_values & off.coefficients.any(axis=0)
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


def resolve_marks(given, table, system, cellwise):
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
    """
    names, d = table.feature_names, len(table.columns)
    none = np.zeros(d, bool)
    missing = {}
    if table.has_missing:
        share = np.isnan(table.numbers()).mean(axis=0)
        missing = {j: float(share[j]) for j in np.flatnonzero(share).tolist()}
    marks = Marks(
        names,
        by_types=table.steps > 0,
        pairs=none,
        missing=missing,
        zeros=given == "zeros",
    )
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
    if d > SEARCHED_UP_TO:
        note = f"Of more than {SEARCHED_UP_TO} features only whole numbers are kept."
        two = None if inside is None else _steps_of_two(table, inside.coefficients)
        return replace(marks, notes=(note,), two=two)
    marks = _Search(table, bound).marks(marks)
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
    steps[mixed & (np.rint(steps) == steps) & (np.rint(origins) == origins)] = 0
    return Lattice.through(steps, origins, dict(upper))


class _Search:
    """The marks of the rows (n, D) of a table, with NaN where cells are missing.

    ``bound`` are the columns of equations, which have steps at most.
    """

    def __init__(self, table, bound):
        self.rows = rows = table.numbers()
        self.bound = bound
        self.has_missing = table.has_missing
        self.precision = np.broadcast_to(table.precision, bound.shape)
        self.lattice = lattice_of(table, rows)
        self.open = (self.lattice.steps == 0) & ~table.times
        self.first = rows[:: max(1, len(rows) // _FIRST)][:_FIRST]
        ordered = np.sort(np.ascontiguousarray(self.first.T), axis=1)
        repeats = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        holes = np.isnan(ordered[:, -1]) if table.has_missing else False
        self.looked_at = np.flatnonzero((repeats | holes) & ~table.times)

    def marks(self, marks):
        """What was found, in ``marks``."""
        grids, spikes, values = {}, {}, {}
        for j in self.looked_at.tolist():
            values[j], spikes[j], grids[j] = self._of(j)
        pairs = np.zeros(len(self.bound), bool)
        pairs[[j for j, own in values.items() if len(own) == 2]] = True
        steps, origins = self.lattice.steps.copy(), self.lattice.origins.copy()
        wanted = [j for j in np.flatnonzero(self.open).tolist() if grids.get(j) is None]
        found = self._steps(wanted, values) | self._multiples(grids)
        for j, (step, origin) in found.items():
            steps[j], origins[j] = step, origin
        free = np.flatnonzero(pairs & ~self.bound)
        for j in np.flatnonzero(pairs & self.bound).tolist():
            origins[j], steps[j] = values[j][0], np.ptp(values[j])
        few = {
            j: own
            for j, own in values.items()
            if steps[j] > self.lattice.steps[j] and len(own) <= _KNOWN
        }
        return replace(
            marks,
            lattice=Lattice.through(steps, origins, few),
            plain=self.lattice.steps,
            pairs=pairs & self.bound,
            grids={j: v for j, v in grids.items() if v is not None},
            spikes={j: v for j, v in spikes.items() if len(v)},
            flags=Flags.of(self.rows, free) if len(free) > 1 else None,
            searched=True,
        )

    def _of(self, j):
        """Other values, spikes, and the grid of a column, None if it has none."""
        column = self.rows[:, j].astype(np.float64)
        column = column[~np.isnan(column)] if self.has_missing else column
        some = column[:: max(1, len(column) // _DECIDING)]
        values, counts = _counted(some)
        if self.bound[j]:
            if len(values) == 2 and len(some) < len(column):
                values = np.unique(column) if _has_others(column, *values) else values
            return values, values[:0], None
        is_spike = _are_spikes(values, counts)
        spikes, rest = values[is_spike], values[~is_spike]
        n_rest = counts.sum() - counts[is_spike].sum()
        few = n_rest >= _GRID_ROWS and len(rest) <= _GRID_SHARE * n_rest
        if few and len(some) < len(column):
            values = np.unique(column)
            rest = np.setdiff1d(values, spikes) if len(spikes) else values
        return rest, spikes, rest if few else None

    def _steps(self, wanted, values):
        """Steps and origins of columns, those that have some."""
        if not wanted or len(self.first) < 3:
            return {}
        first = self.first[:_FEW, wanted].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            extent = (first.max(axis=0) - first.min(axis=0)).tolist()
            away, places = np.abs(first[1:] - first[0]), _places(first).tolist()
        # Two differences dismiss nearly all that have no step.
        pairs = away[:2].T.tolist()
        found = {}
        for i, j in enumerate(wanted):
            own = values.get(j)
            if own is None:
                step = _common_step(pairs[i], extent[i])
                step = step and _common_step(away[:, i].tolist(), extent[i])
            elif len(own) < 2:
                continue
            else:
                some = own[1 :: 1 + len(own) // _FEW] - own[0]
                step = _common_step(some.tolist(), own[-1] - own[0])
            if step or places[i]:
                own = self.rows[:, j].astype(np.float64) if own is None else own
                fitted = _fitted(own, step, places[i], self.precision[j])
                if fitted is not None:
                    found[j] = fitted
        return found

    def _multiples(self, grids):
        """Steps and origins of columns of whole numbers whose differences share one.

        Decimals are whole numbers of their last place.
        """
        whole = np.flatnonzero(self.lattice.steps > 0).tolist()
        whole = np.array([j for j in whole if grids.get(j) is None], np.intp)
        found, units = {}, self.lattice.steps
        if not len(whole):
            return found
        first = np.rint(self.first[:, whole] / units[whole])
        for j in whole[_shared_factors(first) > 1].tolist():
            own = np.rint(self.rows[:, j].astype(np.float64) / units[j])
            own = own[~np.isnan(own)] if self.has_missing else own
            step, n_values = int(_shared_factors(own[:, None])[0]), len(np.unique(own))
            few = len(own) >= _GRID_ROWS and n_values <= _GRID_SHARE * len(own)
            # One whole number in so many is a multiple by chance.
            n_steps = np.ptp(own) / max(step, 1)
            if step > 1 and (few or _is_no_chance(n_values, 0.5 / step, n_steps)):
                found[j] = float(step * units[j]), float(own[0] % step * units[j])
        return found


def _has_others(column, low, high):
    return not np.all((column == low) | (column == high))


def _shared_factors(rows):
    """The largest numbers (D,) that all differences of whole numbers are multiples of.

    0 where there are no differences, 1 where these are no exact numbers.
    """
    rows = rows.astype(np.float64)
    exact = np.fmax.reduce(np.abs(rows)) < 2.0**53
    rows = np.where(exact, rows, 0)
    away = np.nan_to_num(rows - np.fmin.reduce(rows)).astype(np.int64)
    return np.where(exact, np.gcd.reduce(away, axis=0), 1)


def _counted(values):
    """Distinct values, ascending, and how often each is there."""
    ordered = np.sort(values)
    ends = np.flatnonzero(ordered[1:] != ordered[:-1])
    ends = np.concatenate([[-1], ends, [len(ordered) - 1]])[len(ordered) == 0 :]
    return ordered[ends[1:]], np.diff(ends)


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


def _common_step(differences, extent):
    """The step that differences have in common, by Euclid's algorithm, or 0."""
    least, none = extent / _MOST_STEPS / 2, _NONE_LEFT * extent
    step = differences[0]
    for difference in differences[1:]:
        a, b = largest = max(step, difference), min(step, difference)
        while b > least:
            a, b = b, abs(remainder(a, b))
        if b > none or not least < a < inf:
            return 0.0
        # As exact as the largest of them.
        step = largest[0] / round(largest[0] / a)
    return step


def _places(rows):
    """How many places the decimals of each column of some rows have; 0 if no few."""
    places = np.zeros(rows.shape[1], int)
    for p in range(_PLACES, 0, -1):
        are = (_rounded(rows, 10.0**p) == rows).all(axis=0)
        if not are.any():
            break
        places[are] = p
    return places


def _rounded(values, unit):
    return np.rint(values * unit) / unit


def _fitted(values, step, places, precision):
    """Step and origin of the values (n,) of a column, or None.

    Decimals of more steps than are looked for are such too.
    """
    values = values[~np.isnan(values)]
    origin, size = values.min(), np.abs(values).max()
    away = values - origin
    room = max(_MISS * away.max(), 8 * precision * size)
    step = _settled(away, step, room)
    if step is None:
        told = places and size * precision * 10.0**places < _TOLD
        exact = told and np.array_equal(_rounded(values, 10.0**places), values)
        return (10.0**-places, 0.0) if exact else None
    n_steps = away.max() / step
    if not _is_no_chance(len(np.unique(values)), room / step, n_steps):
        return None
    per = np.rint(1 / step)
    start = np.rint(origin * per) / max(per, 1)
    if abs(1 / step - per) <= _MISS * per and abs(start - origin) <= room:
        return 1 / per, 0.0
    return float(step), float(origin)


def _settled(away, step, room):
    """A step that all values have in common, from one that some have; None without."""
    for _ in range(2):
        if step <= room:
            return None
        counts = np.rint(away / step)
        worst = np.abs(away - counts * step).max()
        if worst <= _MOST_MISSED * step:
            step = counts @ away / (counts @ counts)
            return step if np.abs(away - counts * step).max() <= room else None
        # Some lie between: the step is a part of this one.
        step = _common_step([away.max(), step, worst], away.max())
    return None


def _is_no_chance(n_values, room, n_steps):
    """Whether values that are as near to steps as ``room`` are there by no chance."""
    if n_values == 2:
        return True
    bits = -np.log2(min(1.0, 2 * room + np.finfo(float).tiny))
    return (n_values - 2) * bits - 2 * np.log2(max(n_steps, 1)) >= _BITS
