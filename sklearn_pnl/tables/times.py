"""Times as steps from the first one, in the longest unit that all of them keep."""

import numpy as np

from .columns import what
from .values import Counts

# Nanoseconds of units of time, and of the lengths that new values keep.
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LENGTHS = [86_400 * 10**9, 3600 * 10**9, 60 * 10**9, *UNITS.values()]
_DAY = np.timedelta64(1, "D")


class Times(Counts):
    """Points in time from the first one, lengths of time from 0 if none is negative.

    In a zone the step is looked for on its clocks too: midnight stays midnight, whether
    it is summer or winter.

    Parameters
    ----------
    values : ndarray of datetime64 or timedelta64 of shape (n,)
        In UTC.
    columns : object
        Of :mod:`.columns`, with a column of the zone.
    j : int
        Which one.
    """

    is_time = True

    def __init__(self, values, columns, j):
        self._type, self._columns, self._place = values.dtype, columns, j
        self.holds, self.is_length = held_in(self._type), self._type.kind == "m"
        self.time_unit, self._on_clocks = np.datetime_data(self._type)[0], False
        there = values[~np.isnat(values)]
        ticks = there.view(np.int64)
        step = step_of_time(ticks, self.time_unit)
        walls = self._clock(there)
        if walls is not None:
            walls = unskipped(walls, there, self._clock)
            longer = step_of_time(walls.view(np.int64), self.time_unit)
            back = utc_of(walls, self._clock) if longer > step else None
            # Where clocks go back they show two times alike.
            if back is not None and np.array_equal(back, there):
                self._on_clocks, step, ticks = True, longer, walls.view(np.int64)
        start = int(ticks.min()) if len(ticks) else 0
        if self.is_length and start >= 0:
            start %= step
        super().__init__(np.int64, start, step)

    def _clock(self, values):
        return self._columns.wall_clock(self._place, values)

    @property
    def first(self):
        """Where counting starts, in nanoseconds."""
        return self.start * UNITS[self.time_unit]

    def start_at(self, first):
        """Count from an earlier time in nanoseconds, if whole steps lead there."""
        steps, rest = divmod(self.first - first, self.unit * UNITS[self.time_unit])
        if rest == 0:
            super().__init__(np.int64, self.start - steps * self.unit, self.unit)

    def read(self, values):
        """Numbers of values in any unit, NaN where they are missing."""
        missing = np.isnat(values)
        if self._on_clocks:
            values = unskipped(self._clock(values), values, self._clock)
        try:
            whole = values.astype(self._type)
            rest = values - whole.astype(values.dtype)
            held = not np.any(abs(rest) >= np.timedelta64(1, self.time_unit))
        except OverflowError:
            # From NumPy 2.5 on; before that they wrapped around.
            held = False
        if not held:
            raise ValueError(
                f"{what(self._columns, self._place)} holds times of type "
                f"{values.dtype}, some of which {self._type}, the type of fit, cannot "
                "hold."
            )
        numbers = super().read(whole.view(np.int64))
        if values.dtype != self._type:
            numbers += rest / np.timedelta64(self.unit, self.time_unit)
        return np.where(missing, np.nan, numbers)

    def restore(self, numbers):
        """Values of numbers, in UTC, NaT where they are missing."""
        missing = np.isnan(numbers)
        values = super().restore(np.where(missing, 0, numbers)).view(self._type)
        values = utc_of(values, self._clock) if self._on_clocks else values
        return np.where(missing, np.array("NaT", values.dtype), values)


def held_in(dtype):
    """What values of a type are called in messages."""
    return {"M": "points in time", "m": "lengths of time"}.get(dtype.kind, "numbers")


def count_from_one_start(times):
    """All points in time from the first one of a table: equations are simpler so."""
    points = [kind for kind in times if not kind.is_length]
    start = min((kind.first for kind in points), default=0)
    for kind in points:
        kind.start_at(start)


def step_of_time(ticks, unit):
    """The longest unit of time, in ticks, of which all differences are multiples."""
    bits = ticks.view(np.uint64)
    differences = bits - bits[ticks.argmin()] if len(ticks) else bits
    steps = [length // UNITS[unit] for length in _LENGTHS if length % UNITS[unit] == 0]
    return next(step for step in steps if not np.any(differences % np.uint64(step)))


def utc_of(walls, clock):
    """Times in UTC at which clocks show some values.

    The first of two; where clocks skip a value, as long after the skip as it is.
    """
    before, after = (
        walls - (clock(near) - near) for near in (walls - _DAY, walls + _DAY)
    )
    return np.where((clock(before) != walls) & (clock(after) == walls), after, before)


def unskipped(walls, values, clock):
    """What clocks show at times in UTC, midnight where they skip it in spring."""
    midnights = walls.astype("datetime64[D]").astype(walls.dtype)
    late = np.flatnonzero(midnights != walls)
    # Clocks that show another time at the midnight before, none at this one.
    late = late[utc_of(midnights[late], clock) == values[late]]
    walls = walls.copy()
    walls[late] = midnights[late]
    return walls
