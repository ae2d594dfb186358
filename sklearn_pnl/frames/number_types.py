"""Convert values of a type to floats and back; times as counts of steps."""

from math import gcd

import numpy as np

# Nanoseconds of units of time.
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# What values are called in messages, by the kind of their type.
NAMES = {"M": "points in time", "m": "lengths of time"}


def kind_of(values, whole=None, of_frame=False, has_zone=False):
    """How values of one type, of a column or an array, are read and restored.

    ``whole`` is the type of whole numbers of which some may be missing.
    """
    if values.dtype.kind == "f":
        if whole is None:
            return Reals(values.dtype)
        is_wide = np.fmax.reduce(np.abs(values), initial=0) > 2.0**53
        return Counts(whole, is_rounded=is_wide)
    if values.dtype.kind in "mM" and of_frame:
        return Times(values, has_zone)
    if values.dtype.kind in "mM":
        raise ValueError(
            f"Arrays of {values.dtype} are not read: dates and times are columns of "
            "data frames. Pass one, such as pandas.DataFrame(X)."
        )
    if values.dtype.itemsize < 8 or not values.size:
        return Counts(values.dtype)
    low, high = int(values.min()), int(values.max())
    if max(high, -low) <= 2**53:
        return Counts(values.dtype)
    # Distances from the least are exact, if the greatest is.
    is_wide = high - low > 2**53
    return Counts(values.dtype, 0 if is_wide else low, is_rounded=is_wide, last=high)


class Reals:
    """Floating-point numbers.

    Attributes
    ----------
    step : float
        What all values of the type are multiples of, from the start on; 0 for none.
    start : float
        What numbers count from.
    precision : float
        Half the distance of 1 to the next number of the type; 0 where there is a step.
    lowest, highest : float
        Ends of the type, as numbers.
    holds : str
        What values are called in messages.
    is_time : bool
        Whether they are times or lengths of time.
    is_rounded : bool
        Whether they are whole numbers that no start makes exact.
    scale : tuple
        The zero and the unit of the numbers: only columns of one scale have an order.
    """

    holds, is_time, is_rounded = "numbers", False, False
    step, start, lowest, highest = 0.0, 0, -np.inf, np.inf
    scale = 0, 1

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.precision = float(np.finfo(dtype).eps) / 2

    def read(self, values):
        """Numbers of values; those in single precision and below stay so."""
        dtype = np.promote_types(self.dtype, np.float32)
        return values.astype(dtype, copy=False)

    def restore(self, numbers):
        """Values of numbers, within the type: half precision ends at 65504."""
        if self.dtype.itemsize < numbers.dtype.itemsize:
            most = float(np.finfo(self.dtype).max)
            numbers = np.clip(numbers, -most, most)
        return numbers.astype(self.dtype, copy=False)


class Counts:
    """Integers or Booleans: steps from a start, which are exact where the start is far.

    Parameters
    ----------
    dtype : dtype
    start : int
    unit : int
        Length of a step.
    is_rounded : bool
    last : int
        The largest value, if numbers count from a start.
    """

    holds, is_time = "numbers", False
    step, precision = 1.0, 0.0

    def __init__(self, dtype, start=0, unit=1, is_rounded=False, last=0):
        self.dtype, self.is_rounded = np.dtype(dtype), is_rounded
        self.last = last
        self.count_from(start, unit)

    @property
    def scale(self):
        """See :class:`Reals`."""
        return self.start, self.unit

    def count_from(self, start, unit):
        """Count steps of a length from a start."""
        self.start, self.unit = start, unit
        self._plain = start == 0 and unit == 1
        self._wide = np.uint64 if self.dtype.kind == "u" else np.int64
        self._bits = np.asarray(start, dtype=self._wide).view(np.uint64)
        low, high = 0, 1
        if self.dtype.kind != "b":
            low, high = np.iinfo(self.dtype).min, np.iinfo(self.dtype).max
        self.lowest = -_largest_float((start - low) // unit)
        self.highest = _largest_float((high - start) // unit)

    def read(self, values):
        """Numbers of values, which may lie before the start."""
        if self._plain or values.dtype.kind != self.dtype.kind:
            numbers = values.astype(np.float64)
            return numbers if self._plain else (numbers - self.start) / self.unit
        values = values.astype(self._wide, copy=False)
        after = values >= self.start
        bits, start, unit = values.view(np.uint64), self._bits, np.uint64(self.unit)
        far = np.where(after, bits - start, start - bits)
        numbers = far // unit + (far % unit) / unit
        return np.where(after, numbers, -numbers)

    def restore(self, numbers):
        """Values of numbers: whole, and within the type; floats if some are missing."""
        steps = np.clip(np.rint(numbers), self.lowest, self.highest)
        if self._plain:
            return steps if np.isnan(steps).any() else steps.astype(self.dtype)
        far = np.abs(steps).astype(np.uint64) * np.uint64(self.unit)
        # Unsigned integers wrap around, and the sum ends within the type.
        bits = np.where(steps < 0, self._bits - far, self._bits + far)
        return bits.view(self._wide).astype(self.dtype, copy=False)


class Times(Counts):
    """Points in time from the first one, lengths of time from 0 if none is negative.

    Steps are counted in UTC: local dates of a zone with summer time are whole hours.

    Parameters
    ----------
    values : ndarray of datetime64 or timedelta64 of shape (n,)
        In UTC.
    has_zone : bool
        Whether they are dates of a time zone.
    """

    is_time = True

    def __init__(self, values, has_zone=False):
        self._type = values.dtype
        self.holds, self.is_length = NAMES[self._type.kind], self._type.kind == "m"
        self.time_unit, self.has_zone = np.datetime_data(self._type)[0], has_zone
        ticks = values[~np.isnat(values)].view(np.int64)
        step = step_of_time(ticks, self.time_unit)
        self.is_empty = not len(ticks)
        start, last = (0, 0) if self.is_empty else (int(ticks.min()), int(ticks.max()))
        if self.is_length and start >= 0:
            start %= step
        super().__init__(np.int64, start, step, last=last)

    def count_from(self, start, unit, step=1):
        """Count from a start in ticks, of which some make a step of the values."""
        super().count_from(start, unit)
        self.step = float(step)
        self.lowest, self.highest = self.lowest * step, self.highest * step

    @property
    def span(self):
        """First time, last time and length of a step, in nanoseconds."""
        length = UNITS[self.time_unit]
        return self.start * length, self.last * length, self.unit * length

    @property
    def scale(self):
        """See :class:`Reals`."""
        start, _, unit = self.span
        return self._type.kind, self.has_zone, start, unit // int(self.step)

    @property
    def zero_and_unit(self):
        """What number 0 stands for, and the unit of the numbers, as NumPy times."""
        as_time = np.timedelta64 if self.is_length else np.datetime64
        tick = self.scale[-1]
        name, length = next(pair for pair in UNITS.items() if tick % pair[1] == 0)
        unit = np.timedelta64(tick // length, name)
        return as_time(int(self.start), self.time_unit), unit

    def read(self, values):
        """Numbers of values in any unit, NaN where they are missing."""
        missing, whole = np.isnat(values), values.view(np.int64)
        length = UNITS[np.datetime_data(values.dtype)[0]] / UNITS[self.time_unit]
        if np.abs(whole[~missing] * length).max(initial=0) >= 2.0**63:
            raise ValueError(f"There are times beyond the {self._type} of fit.")
        whole = values.astype(self._type).view(np.int64)
        return np.where(missing, np.nan, self.step * super().read(whole))

    def restore(self, numbers):
        """Values of numbers, in UTC, NaT where they are missing."""
        missing = np.isnan(numbers)
        steps = np.where(missing, 0, numbers) / self.step
        values = super().restore(steps).view(self._type)
        return np.where(missing, np.array("NaT", values.dtype), values)


def share_scales(kinds):
    """Let columns that can be compared count from one zero in one unit.

    Points in time with and without a zone, lengths of time, and integers beyond 2^53
    are compared among themselves. An equality between an end, a start and a length
    then has no constant, and the order of two columns is the order of their numbers.
    """
    groups = {}
    for kind in kinds:
        if kind.is_time and not kind.is_empty:
            groups.setdefault((kind.is_length, kind.has_zone), []).append(kind)
    for times in groups.values():
        _share_ticks(times)
    far = [kind for kind in kinds if kind.start != 0 and not kind.is_time]
    first = min((kind.start for kind in far), default=0)
    if max((kind.last for kind in far), default=0) - first <= 2**53:
        for kind in far:
            kind.count_from(first, 1)


def _share_ticks(times):
    """Let times of one sort count from one zero in ticks of one length.

    The zero is before all times, a number of the longest steps away from the column
    that has them. Columns with other phases have shorter steps, which lead to the zero.
    """
    spans = [kind.span for kind in times]
    start, _, longest = max(spans, key=lambda span: span[2])
    zero = start + (min(span[0] for span in spans) - start) // longest * longest
    steps = [gcd(unit, first - zero) for first, _, unit in spans]
    tick = gcd(*steps)
    reach = max(last for _, last, _ in spans) - zero
    # A column stays as it is if its type, or floats, cannot hold the common ticks.
    stays = [
        zero % UNITS[kind.time_unit] != 0
        or abs(zero) >= 2**63 * UNITS[kind.time_unit]
        or (reach > tick * 2**53 and last - first <= unit * 2**53 and unit == tick)
        for kind, (first, last, unit) in zip(times, spans, strict=True)
    ]
    if any(stays):
        rest = [kind for kind, out in zip(times, stays, strict=True) if not out]
        if rest:
            _share_ticks(rest)
        return
    for kind, step in zip(times, steps, strict=True):
        length = UNITS[kind.time_unit]
        kind.count_from(zero // length, step // length, step // tick)


def step_of_time(ticks, unit):
    """The longest unit of time, in ticks, of which all differences are multiples."""
    bits = ticks.view(np.uint64)
    differences = bits - bits[ticks.argmin()] if len(ticks) else bits
    lengths = [n * 10**9 for n in (86_400, 3600, 60)] + [*UNITS.values()]
    steps = [length // UNITS[unit] for length in lengths if length % UNITS[unit] == 0]
    return next(step for step in steps if not np.any(differences % np.uint64(step)))


def _largest_float(number):
    """The largest float that is not above an integer."""
    nearest = float(number)
    return nearest if int(nearest) <= number else float(np.nextafter(nearest, -np.inf))
