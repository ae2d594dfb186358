"""Values of a type as numbers, and numbers as values of it."""

from decimal import Context, Decimal, localcontext

import numpy as np

# Doubles hold all integers up to here.
EXACT = 2**53
# A number that is farther from a step, in steps, was asked for off it.
_OFF = 1e-6


def kind_of(values, largest=None):
    """How values (n,) or (n, D) of one type are read and restored.

    ``largest`` is the largest decimal of the type, if it has one.
    """
    if values.dtype.kind == "f":
        return Reals(values.dtype)
    if values.dtype.kind in "mM":
        raise ValueError(
            f"Arrays of {values.dtype} are not read: times are columns of data frames."
        )
    if values.dtype != object:
        return Counts(values.dtype, *_far_start(values))
    return Exact(values, largest)


class Reals:
    """Floating-point numbers, which are what they are.

    Attributes
    ----------
    step : float
        What all values are multiples of, from the start on; 0 for none.
    least_step : float
        What any value of the type is such a multiple of, whatever is asked for.
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
    """

    holds, is_time = "numbers", False
    step, start, lowest, highest = 0.0, 0, -np.inf, np.inf
    least_step = 0.0

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.precision = float(np.finfo(dtype).eps) / 2

    def read(self, values):
        """Numbers of values; those in single precision and below stay so."""
        return values.astype(np.promote_types(self.dtype, np.float32), copy=False)

    def restore(self, numbers):
        """Values of numbers: in half precision within the type, which ends at 65504."""
        if self.dtype == np.float16:
            most = float(np.finfo(self.dtype).max)
            numbers = np.clip(numbers, -most, most)
        return numbers.astype(self.dtype, copy=False)


class Counts:
    """Integers or Booleans: steps from a start, which are exact where the start is far.

    Parameters
    ----------
    dtype : dtype
    start : int or ndarray of shape (D,)
    unit : int
        Length of a step.
    """

    holds, is_time = "numbers", False
    step, least_step, precision = 1.0, 1.0, 0.0

    def __init__(self, dtype, start=0, unit=1):
        self.dtype, self.start, self.unit = np.dtype(dtype), start, unit
        self._plain = np.ndim(start) == 0 and start == 0 and unit == 1
        low, high = 0, 1
        if self.dtype.kind != "b":
            low, high = np.iinfo(self.dtype).min, np.iinfo(self.dtype).max
        starts = np.atleast_1d(start).tolist()
        lowest = [-_within((one - low) // unit) for one in starts]
        highest = [_within((high - one) // unit) for one in starts]
        self.lowest, self.highest = np.reshape([lowest, highest], (2, *np.shape(start)))

    def read(self, values):
        """Numbers of values, which may lie before the start."""
        if self._plain or values.dtype.kind != self.dtype.kind:
            numbers = values.astype(np.float64)
            return numbers if self._plain else (numbers - self.start) / self.unit
        values = values.astype(self._wide, copy=False)
        after = values >= self.start
        start, unit = self._start, np.uint64(self.unit)
        bits = values.view(np.uint64)
        far = np.where(after, bits - start, start - bits)
        numbers = far // unit + (far % unit) / unit
        return np.where(after, numbers, -numbers)

    def restore(self, numbers):
        """Values of numbers: whole, and within the type; floats if some are missing."""
        steps = np.clip(np.rint(numbers), self.lowest, self.highest)
        if self._plain:
            return steps if np.isnan(steps).any() else steps.astype(self.dtype)
        far = np.abs(steps).astype(np.uint64) * np.uint64(self.unit)
        # Sums wrap, and end where they belong: the type holds them.
        bits = np.where(steps < 0, self._start - far, self._start + far)
        return bits.view(self._wide).astype(self.dtype, copy=False)

    @property
    def _wide(self):
        return np.uint64 if self.dtype.kind == "u" else np.int64

    @property
    def _start(self):
        return np.asarray(self.start, dtype=self._wide).view(np.uint64)


class Exact(Reals):
    """Objects: decimals with so many places, integers or Booleans."""

    precision = 0.0

    def __init__(self, values, largest=None):
        self.places, self.largest = None, largest
        values, self._type = values[values == values], int
        if isinstance(values[0], Decimal):
            self._type = Decimal
            self.places = max(0, -min(v.as_tuple().exponent for v in values))
        self.step = 10.0 ** -(self.places or 0)
        far = max(map(abs, values)) * 10 ** (self.places or 0) > EXACT
        self.start = min(values) if far else 0
        # Decimals that are objects have as many places as what is asked for needs.
        free = self._type is Decimal and largest is None and not far
        self.least_step = 0.0 if free else self.step
        if all(isinstance(value, bool | np.bool_) for value in values):
            self._type, self.lowest, self.highest = bool, 0.0, 1.0
        if largest is not None:
            with localcontext(_MANY_DIGITS):
                self.lowest = -_within(largest + self.start)
                self.highest = _within(largest - self.start)

    def read(self, values):
        """Numbers of values."""
        if values.dtype.kind == "f":
            return values - float(self.start)
        with localcontext(_MANY_DIGITS):
            return (values.astype(object) - self.start).astype(np.float64)

    def restore(self, numbers):
        """Values of numbers, with their places; None where they are missing."""
        with localcontext(_MANY_DIGITS):
            new = [
                None if np.isnan(number) else self._value(number) for number in numbers
            ]
        return np.array(new, dtype=object)

    def _value(self, number):
        """A value within the type."""
        exact = Decimal(f"{number:.{self.places or 0}f}")
        if self.least_step == 0 and abs(float(exact) - number) > _OFF * self.step:
            return Decimal(repr(float(number)))
        value = self._type(exact + self.start)
        if self.largest is None:
            return value
        return max(-self.largest, min(value, self.largest))


# More than the decimals of any container have.
_MANY_DIGITS = Context(prec=100)


def _far_start(values):
    """The least integers where doubles do not hold all; none where they do."""
    if values.dtype.itemsize < 8 or not values.size:
        return ()
    if values.max() <= EXACT and values.min() >= -EXACT:
        return ()
    low, high = values.min(axis=0), values.max(axis=0)
    if hasattr(low, "toarray"):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    start = np.where((high > EXACT) | (low < -EXACT), low, np.zeros_like(low))
    return (start if start.ndim else int(start),)


def _within(whole):
    """The largest float that is not above an integer or decimal."""
    nearest = float(whole)
    if Decimal(nearest) <= whole:
        return nearest
    return float(np.nextafter(nearest, -np.inf))
