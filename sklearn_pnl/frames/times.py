"""Times as counts from the first one, in the longest unit that divides all of them."""

import numpy as np

from .values import Counts

# Nanoseconds of units of time, and of the lengths that new values keep.
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LENGTHS = [86_400 * 10**9, 3600 * 10**9, 60 * 10**9, *UNITS.values()]


class Times(Counts):
    """Points in time from the first one, lengths of time from 0 if none is negative.

    Steps are counted in UTC: local dates of a zone with summer time are whole hours.

    Parameters
    ----------
    values : ndarray of datetime64 or timedelta64 of shape (n,)
        In UTC.
    name : str
        Of their column, for messages.
    """

    is_time = True

    def __init__(self, values, name):
        self._type, self._name = values.dtype, name
        self.holds, self.is_length = name_of_values(self._type), self._type.kind == "m"
        self.time_unit = np.datetime_data(self._type)[0]
        ticks = values[~np.isnat(values)].view(np.int64)
        step = step_of_time(ticks, self.time_unit)
        start = int(ticks.min()) if len(ticks) else 0
        if self.is_length and start >= 0:
            start %= step
        super().__init__(np.int64, start, step)

    @property
    def first(self):
        """Where counting starts, in nanoseconds."""
        return self.start * UNITS[self.time_unit]

    @property
    def scale(self):
        """Where counting starts, and the length of a step, as NumPy times."""
        as_time = np.timedelta64 if self.is_length else np.datetime64
        step = np.timedelta64(int(self.unit), self.time_unit)
        return as_time(int(self.start), self.time_unit), step

    def start_at(self, first):
        """Count from an earlier time in nanoseconds, if whole steps lead there."""
        steps, rest = divmod(self.first - first, self.unit * UNITS[self.time_unit])
        if rest == 0:
            super().__init__(np.int64, self.start - steps * self.unit, self.unit)

    def read(self, values):
        """Numbers of values in any unit, NaN where they are missing."""
        missing = np.isnat(values)
        try:
            whole = values.astype(self._type)
            rest = abs(values - whole.astype(values.dtype))
            fits = not np.any(rest >= np.timedelta64(1, self.time_unit))
        except OverflowError:
            # NumPy 2.5 and later; earlier versions wrap around.
            fits = False
        if not fits:
            raise ValueError(f"{self._name} has times beyond {self._type} of fit.")
        return np.where(missing, np.nan, super().read(whole.view(np.int64)))

    def restore(self, numbers):
        """Values of numbers, in UTC, NaT where they are missing."""
        missing = np.isnan(numbers)
        values = super().restore(np.where(missing, 0, numbers)).view(self._type)
        return np.where(missing, np.array("NaT", values.dtype), values)


def name_of_values(dtype):
    """Name of values of a type in messages."""
    return {"M": "points in time", "m": "lengths of time"}.get(dtype.kind, "numbers")


def count_from_one_start(times):
    """Count all points in time from the first one of a table.

    An equality between an end, a start and a length then has no constant.
    """
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
