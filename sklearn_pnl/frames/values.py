"""Convert values of a type to floats and back."""

import numpy as np


def kind_of(values):
    """How values (n,) or (n, D) of one type are read and restored."""
    if values.dtype.kind == "f":
        return Reals(values.dtype)
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
    return Counts(values.dtype, 0 if is_wide else low, is_rounded=is_wide)


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
    """

    holds, is_time, is_rounded = "numbers", False, False
    step, start, lowest, highest = 0.0, 0, -np.inf, np.inf

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
    """

    holds, is_time = "numbers", False
    step, precision = 1.0, 0.0

    def __init__(self, dtype, start=0, unit=1, is_rounded=False):
        self.dtype, self.is_rounded = np.dtype(dtype), is_rounded
        self.count_from(start, unit)

    def count_from(self, start, unit=1):
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


def _largest_float(number):
    """The largest float that is not above an integer."""
    nearest = float(number)
    return nearest if int(nearest) <= number else float(np.nextafter(nearest, -np.inf))
