"""The steps that the values of a column share, found once, on the rows of all classes.

Continuous columns are dismissed by a look at some of their rows, all at once.
"""

from functools import cached_property
from math import inf, remainder

import numpy as np

from .lattice import Lattice, lattice_of

# Rows looked at first, and those that tell few values from others.
_FIRST, DECIDING = 2**8, 2**12
# Fewer rows tell nothing of few values, which are at most this share of the rows.
GRID_ROWS, GRID_SHARE = 10, 0.5
# Most steps in the range of a column, and what values may miss them by, as a share.
_MOST_STEPS, _MISS = 2**16, 1e-10
# Remainders below this share of the range are none; and of a step.
_NONE_LEFT, _MOST_MISSED = 1e-3 / _MOST_STEPS, 0.05
# A step is taken if chance makes one less often than 2 ** -BITS.
BITS = 20
# Places of decimals, in columns of more steps; rows that are asked for them first; and
# how little of the last place rounding may take.
_PLACES, _FEW, _TOLD = 4, 32, 0.01
# Roundings that a value may have from the sum that it is.
_SUMMED = 8


class Steps:
    """What the values of the rows (n, D) of a table have in common, column by column.

    Looked for when they are asked for. Cells that are missing are NaN.
    """

    def __init__(self, table):
        self.table = table
        self.precision = table.precision

    @cached_property
    def rows(self):
        """The rows, of which sparse ones are dense from here on."""
        return self.table.numbers()

    @cached_property
    def plain(self):
        """Steps of types, and of whole numbers."""
        return lattice_of(self.table, self.rows)

    @cached_property
    def first(self):
        """Some of the rows."""
        return self.rows[:: max(1, len(self.rows) // _FIRST)][:_FIRST]

    @cached_property
    def looked_at(self):
        """Columns in which some of the first rows are alike, or miss."""
        ordered = np.sort(np.ascontiguousarray(self.first.T), axis=1)
        some = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if self.table.has_missing:
            some |= np.isnan(ordered[:, -1])
        return np.flatnonzero(some & ~self.table.times)

    @cached_property
    def counted(self):
        """By column looked at: distinct values, how often, and of how many rows."""
        return {j: self._counted(j) for j in self.looked_at.tolist()}

    def _counted(self, j):
        column = self.known(j)
        some = column[:: max(1, len(column) // DECIDING)]
        values, counts = np.unique(some, return_counts=True)
        is_part = len(some) < len(column)
        if len(values) == 2 and is_part and not np.isin(column, values).all():
            values, counts = np.unique(column, return_counts=True)
            is_part = False
        return values, counts, is_part

    def known(self, j):
        """The values of a column that are not missing."""
        column = self.rows[:, j].astype(np.float64)
        return column[~np.isnan(column)] if self.table.has_missing else column

    def distinct(self, j):
        """All values of a column, ascending; of whole numbers integers are faster."""
        values = self.known(j)
        if self.plain.steps[j] == 1 and np.abs(values).max(initial=0) < 2.0**53:
            values = values.astype(np.int64)
        return np.unique(values).astype(np.float64)

    @cached_property
    def found(self):
        """By column: step and origin of all values, of those columns that have some.

        Beyond the steps of types and whole numbers.
        """
        wanted = np.flatnonzero((self.plain.steps == 0) & ~self.table.times).tolist()
        values = {j: own[0] for j, own in self.counted.items()}
        return self.of(wanted, values) | self._multiples()

    @cached_property
    def lattice(self):
        """Steps of all columns."""
        return self.with_found(self.found)

    def with_found(self, found):
        """The steps of types and whole numbers, and others by column."""
        steps, origins = self.plain.steps.copy(), self.plain.origins.copy()
        for j, own in found.items():
            steps[j], origins[j] = own
        return Lattice(steps, origins)

    def of(self, wanted, values):
        """Steps and origins of some columns, of which some values are known apart."""
        if not wanted or len(self.first) < 3:
            return {}
        first = self.first[:_FEW, wanted].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            extent = (first.max(axis=0) - first.min(axis=0)).tolist()
            away = np.abs(first[1:] - first[0])
            places = _places(first, self.precision[wanted]).tolist()
        found, away = {}, away.T.tolist()
        for i, j in enumerate(wanted):
            own = values.get(j)
            if own is None:
                step = _common_step(away[i], extent[i])
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

    def _multiples(self):
        """Steps and origins of columns of whole numbers whose differences share one.

        Decimals are whole numbers of their last place.
        """
        found, units = {}, self.plain.steps
        whole = np.flatnonzero(units > 0)
        if not len(whole):
            return found
        first = np.rint(self.first[:, whole] / units[whole])
        for j in whole[_shared_factors(first) > 1].tolist():
            own = np.rint(self.rows[:, j].astype(np.float64) / units[j])
            own = own[~np.isnan(own)] if self.table.has_missing else own
            step, n_values = int(_shared_factors(own[:, None])[0]), len(np.unique(own))
            few = len(own) >= GRID_ROWS and n_values <= GRID_SHARE * len(own)
            # One whole number in so many is a multiple by chance.
            n_steps = np.ptp(own) / max(step, 1)
            if step > 1 and (few or _is_no_chance(n_values, 0.5 / step, n_steps)):
                found[j] = float(step * units[j]), float(own[0] % step * units[j])
        return found


def _shared_factors(rows):
    """The largest numbers (D,) that all differences of whole numbers are multiples of.

    0 where there are no differences, 1 where these are no exact numbers.
    """
    rows = rows.astype(np.float64)
    exact = np.fmax.reduce(np.abs(rows)) < 2.0**53
    rows = np.where(exact, rows, 0)
    away = np.nan_to_num(rows - np.fmin.reduce(rows)).astype(np.int64)
    return np.where(exact, np.gcd.reduce(away, axis=0), 1)


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
    # Of smaller ones there is no number that goes into 1.
    return step if step >= np.finfo(float).tiny else 0.0


def _places(rows, precision):
    """How many places the decimals of each column of some rows have; 0 if no few.

    Of numbers of a ``precision`` (D,), or sums of such.
    """
    places, room = np.zeros(rows.shape[1], int), _SUMMED * precision * np.abs(rows)
    for p in range(_PLACES, 0, -1):
        are = (_beside(rows, 10.0**p) <= room).all(axis=0)
        if not are.any():
            break
        places[are] = p
    return places


def _beside(values, unit):
    """How far values are from the nearest of so many a unit."""
    return np.abs(np.rint(values * unit) / unit - values)


def _fitted(values, step, places, precision):
    """Step and origin of the values (n,) of a column, or None.

    Decimals of more steps than are looked for are such too.
    """
    values = values[~np.isnan(values)]
    origin, size = values.min(), np.abs(values).max()
    away = values - origin
    left = _SUMMED * precision * size
    room = max(_MISS * away.max(), left)
    step = _settled(away, step, room)
    if step is None:
        unit = 10.0**places
        # Sums asked of columns in single precision need more than their places.
        double = precision <= np.finfo(float).eps
        told = places and double and size * precision * unit < _TOLD
        are = told and np.all(_beside(values, unit) <= left)
        n_steps, n_values = away.max() * unit, len(values)
        known = are and _is_no_chance(n_values, left * unit, n_steps)
        return (1 / unit, 0.0) if known else None
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
    return (n_values - 2) * bits - 2 * np.log2(max(n_steps, 1)) >= BITS
