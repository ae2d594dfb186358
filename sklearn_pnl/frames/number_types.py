"""Convert the values of a column to floats, and floats back to the dtype.

:func:`kind_of` returns the converter for an array: :class:`Reals`, :class:`Counts` or
:class:`Times`. Integers and times become multiples of a step, counted from an origin.
:func:`share_scales` gives columns that can be compared the same origin and unit.
"""

from math import gcd

import numpy as np

from .._utils.arrays import BLOCK_CELLS, slices

# Nanoseconds in each unit of time.
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# Names of values in messages, by the kind of the dtype.
NAMES = {"M": "dates or times", "m": "durations"}


def kind_of(values, integer_dtype=None, of_frame=False, has_zone=False):
    """Return the converter for the values of a column or of an array.

    ``integer_dtype`` is the dtype of integers that are stored as floats, because some
    are missing.
    """
    if values.dtype.kind == "f":
        if integer_dtype is None:
            return Reals(values.dtype)
        is_wide = np.fmax.reduce(np.abs(values), initial=0) > 2.0**53
        return Counts(integer_dtype, is_rounded=is_wide)
    if values.dtype.kind in "mM" and of_frame:
        return Times(values, has_zone)
    if values.dtype.kind in "mM":
        raise ValueError(
            f"Arrays of {values.dtype} are not supported. Pass dates and times as "
            "columns of a data frame, for example pandas.DataFrame(X)."
        )
    if values.dtype.itemsize < 8 or not values.size:
        return Counts(values.dtype)
    low, high = int(values.min()), int(values.max())
    if max(high, -low) <= 2**53:
        return Counts(values.dtype)
    # Differences from the minimum are exact if the largest difference is exact.
    is_wide = high - low > 2**53
    return Counts(values.dtype, 0 if is_wide else low, is_rounded=is_wide, last=high)


class Reals:
    """Converter for floating-point values.

    Attributes
    ----------
    step : float
        Resolution: all converted values are multiples of the step; 0 without a step.
    start : float
        Origin of the converted values.
    precision : float
        Unit roundoff of the dtype; 0 with a step.
    lowest, highest : float
        Lower and upper bound of the converted values.
    holds : str
        Name of the values in messages.
    is_time : bool
        Whether the values are times or durations.
    is_rounded : bool
        Whether large integers are rounded, because no origin makes them exact.
    scale : tuple
        Origin and unit. Only columns with the same scale are compared.
    stored_as : dtype
        The smallest dtype that represents all converted values.
    """

    holds, is_time, is_rounded = "numbers", False, False
    step, start, lowest, highest = 0.0, 0, -np.inf, np.inf
    scale = 0, 1

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.precision = float(np.finfo(dtype).eps) / 2
        self.stored_as = np.dtype("f4" if self.dtype.itemsize <= 4 else "f8")

    def read(self, values):
        """Convert values to float64, or to float32 if the dtype is not more precise."""
        dtype = np.promote_types(self.dtype, np.float32)
        return values.astype(dtype, copy=False)

    def restore(self, numbers):
        """Convert numbers to the dtype, clipped to its range."""
        if self.dtype.itemsize < numbers.dtype.itemsize:
            most = float(np.finfo(self.dtype).max)
            numbers = np.clip(numbers, -most, most)
        return numbers.astype(self.dtype, copy=False)


class Counts:
    """Converter for integers and booleans, as steps from an origin.

    With an origin close to the values, integers beyond 2**53 are exact.

    Parameters
    ----------
    dtype : dtype
        Dtype of the restored values.
    start : int
        Origin.
    unit : int
        Length of a step.
    is_rounded : bool
        See :class:`Reals`.
    last : int
        The largest value, if ``start`` is not 0.
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

    @property
    def stored_as(self):
        """See :class:`Reals`."""
        if self.is_time or not self._plain or self.dtype.itemsize > 4:
            return np.dtype(np.float64)
        return np.dtype(np.uint8) if self.dtype.kind == "b" else self.dtype

    def count_from(self, start, unit):
        """Set the origin, and the length of a step."""
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
        """Convert values to steps from the origin; earlier values are negative."""
        if self._plain or values.dtype.kind != self.dtype.kind:
            numbers = values.astype(np.float64)
            return numbers if self._plain else (numbers - self.start) / self.unit
        values = values.astype(self._wide, copy=False)
        after = values >= self.start
        bits, start, unit = values.view(np.uint64), self._bits, np.uint64(self.unit)
        far = np.where(after, bits - start, start - bits)
        numbers = far // unit + (far % unit) / unit
        return np.where(after, numbers, -numbers)

    def _rounded(self, numbers):
        return np.clip(np.rint(numbers), self.lowest, self.highest)

    def restore(self, numbers):
        """Round and clip numbers to the dtype; return floats if some are missing."""
        if numbers.dtype == self.dtype and self._plain:
            return numbers
        if self._plain and numbers.ndim == 2 and not np.isnan(numbers).any():
            # In blocks, temporaries stay in the cache.
            restored = np.empty(numbers.shape, self.dtype)
            for part in slices(len(numbers), 1 + BLOCK_CELLS // numbers.shape[1]):
                restored[part] = self._rounded(numbers[part])
            return restored
        steps = self._rounded(numbers)
        if self._plain:
            return steps if np.isnan(steps).any() else steps.astype(self.dtype)
        far = np.abs(steps).astype(np.uint64) * np.uint64(self.unit)
        # Unsigned sums wrap around, and the result is within the range of the dtype.
        bits = np.where(steps < 0, self._bits - far, self._bits + far)
        return bits.view(self._wide).astype(self.dtype, copy=False)


class Times(Counts):
    """Converter for dates, times and durations, as steps from an origin.

    The origin is the first time, or 0 if the values are durations and none is negative.
    Steps are counted in UTC. Therefore, local dates in a time zone with summer time
    have a step of an hour.

    Parameters
    ----------
    values : ndarray of datetime64 or timedelta64 of shape (n,)
        Times in UTC, or durations.
    has_zone : bool
        Whether the times have a time zone.
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
        """Set the origin, the length of a step, and the number of ticks per step."""
        super().count_from(start, unit)
        self.step = float(step)
        self.lowest, self.highest = self.lowest * step, self.highest * step

    @property
    def span(self):
        """The first time, the last time and the length of a step, in nanoseconds."""
        length = UNITS[self.time_unit]
        return self.start * length, self.last * length, self.unit * length

    @property
    def scale(self):
        """See :class:`Reals`."""
        start, _, unit = self.span
        return self._type.kind, self.has_zone, start, unit // int(self.step)

    @property
    def zero_and_unit(self):
        """The origin and the unit of the numbers, as NumPy times."""
        as_time = np.timedelta64 if self.is_length else np.datetime64
        tick = self.scale[-1]
        name, length = next(pair for pair in UNITS.items() if tick % pair[1] == 0)
        unit = np.timedelta64(tick // length, name)
        return as_time(int(self.start), self.time_unit), unit

    def read(self, values):
        """Convert times in any unit to numbers; missing times are NaN."""
        missing, ticks = np.isnat(values), values.view(np.int64)
        length = UNITS[np.datetime_data(values.dtype)[0]] / UNITS[self.time_unit]
        if np.abs(ticks[~missing] * length).max(initial=0) >= 2.0**63:
            raise ValueError(
                f"Some times exceed the range of {self._type}, the dtype of the "
                "training rows. Convert the training rows to a coarser unit first."
            )
        ticks = values.astype(self._type).view(np.int64)
        return np.where(missing, np.nan, self.step * super().read(ticks))

    def restore(self, numbers):
        """Convert numbers to times in UTC; NaN is converted to NaT."""
        missing = np.isnan(numbers)
        steps = np.where(missing, 0, numbers) / self.step
        values = super().restore(steps).view(self._type)
        return np.where(missing, np.array("NaT", values.dtype), values)


def share_scales(kinds):
    """Give columns that can be compared the same origin and unit.

    Columns are compared within four groups: times with a time zone, times without one,
    durations, and integers beyond 2**53. Then, an equality between an end, a start and
    a duration has no constant, and the order of two columns is the order of numbers.
    """
    groups = {}
    for kind in kinds:
        if kind.is_time and not kind.is_empty:
            groups.setdefault((kind.is_length, kind.has_zone), []).append(kind)
    for times in groups.values():
        _share_ticks(times)
    large = [kind for kind in kinds if kind.start != 0 and not kind.is_time]
    first = min((kind.start for kind in large), default=0)
    if max((kind.last for kind in large), default=0) - first <= 2**53:
        for kind in large:
            kind.count_from(first, 1)


def _share_ticks(times):
    """Give times of one group a common origin, and ticks of a common length.

    The origin is not after any time. It is an integer number of steps away from the
    first time of the column with the longest step. The steps of other columns are
    shortened if the origin is no multiple of their steps away.
    """
    spans = [kind.span for kind in times]
    start, _, longest = max(spans, key=lambda span: span[2])
    zero = start + (min(span[0] for span in spans) - start) // longest * longest
    steps = [gcd(unit, first - zero) for first, _, unit in spans]
    tick = gcd(*steps)
    reach = max(last for _, last, _ in spans) - zero
    # A column keeps its own scale if its dtype or float64 cannot represent the common
    # ticks.
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
    """Return the longest unit, in ticks, that divides all differences of times."""
    bits = ticks.view(np.uint64)
    differences = bits - bits[ticks.argmin()] if len(ticks) else bits
    lengths = [n * 10**9 for n in (86_400, 3600, 60)] + [*UNITS.values()]
    steps = [length // UNITS[unit] for length in lengths if length % UNITS[unit] == 0]
    return next(step for step in steps if not np.any(differences % np.uint64(step)))


def _largest_float(number):
    """Return the largest float that is not above an integer."""
    nearest = float(number)
    return nearest if int(nearest) <= number else float(np.nextafter(nearest, -np.inf))
