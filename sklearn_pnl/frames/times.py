"""Times as counts from the first one, in the longest unit that divides all of them."""

import numpy as np

from .values import Counts

# Nanoseconds of units of time.
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# What values are called in messages, by the kind of their type.
NAMES = {"M": "points in time", "m": "lengths of time"}


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
        self.holds, self.is_length = NAMES[self._type.kind], self._type.kind == "m"
        self.time_unit = np.datetime_data(self._type)[0]
        ticks = values[~np.isnat(values)].view(np.int64)
        step = step_of_time(ticks, self.time_unit)
        start = int(ticks.min()) if len(ticks) else 0
        if self.is_length and start >= 0:
            start %= step
        super().__init__(np.int64, start, step)

    @property
    def scale(self):
        """Where counting starts, and the length of a step, as NumPy times."""
        as_time = np.timedelta64 if self.is_length else np.datetime64
        step = np.timedelta64(int(self.unit), self.time_unit)
        return as_time(int(self.start), self.time_unit), step

    def read(self, values):
        """Numbers of values in any unit, NaN where they are missing."""
        missing, whole = np.isnat(values), values.view(np.int64)
        length = UNITS[np.datetime_data(values.dtype)[0]] / UNITS[self.time_unit]
        if np.abs(whole[~missing] * length).max(initial=0) >= 2.0**63:
            raise ValueError(f"{self._name} has times beyond {self._type} of fit.")
        whole = values.astype(self._type).view(np.int64)
        return np.where(missing, np.nan, super().read(whole))

    def restore(self, numbers):
        """Values of numbers, in UTC, NaT where they are missing."""
        missing = np.isnan(numbers)
        values = super().restore(np.where(missing, 0, numbers)).view(self._type)
        return np.where(missing, np.array("NaT", values.dtype), values)


def count_from_one_start(times):
    """Count points in time from the first one of a table, if whole steps lead there.

    An equality between an end, a start and a length then has no constant.
    """
    points = [kind for kind in times if not kind.is_length]
    first = min((kind.start * UNITS[kind.time_unit] for kind in points), default=0)
    for kind in points:
        start, rest = divmod(first, UNITS[kind.time_unit])
        if rest == 0 and (kind.start - start) % kind.unit == 0:
            kind.count_from(start, kind.unit)


def step_of_time(ticks, unit):
    """The longest unit of time, in ticks, of which all differences are multiples."""
    bits = ticks.view(np.uint64)
    differences = bits - bits[ticks.argmin()] if len(ticks) else bits
    lengths = [n * 10**9 for n in (86_400, 3600, 60)] + [*UNITS.values()]
    steps = [length // UNITS[unit] for length in lengths if length % UNITS[unit] == 0]
    return next(step for step in steps if not np.any(differences % np.uint64(step)))
