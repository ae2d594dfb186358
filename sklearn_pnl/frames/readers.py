"""One column of any container: its values as numbers, and new values of its type."""

from copy import copy
from decimal import Decimal
from numbers import Real

import narwhals as nw
import numpy as np

from .values import largest_float

# Types that are read as float64.
_WIDE = (nw.Decimal, nw.Int128, nw.UInt128)
# In narwhals sparse numbers of pandas have an unknown type.
_WITH_NUMBERS = (nw.Boolean, nw.Datetime, nw.Duration, nw.Unknown)


def read_column(native):
    """The reader of a column: an array (n,), or a series of any library."""
    dtype = getattr(native, "dtype", None)
    if not isinstance(dtype, np.dtype):
        return TypedColumn(native)
    plain = dtype.kind in "biufcmM"
    return PlainColumn(np.asarray(native)) if plain else ObjectColumn(native)


class PlainColumn:
    """Numbers or times in an array, which numbers of pandas are too.

    Attributes
    ----------
    dtype : dtype
        Type, as its users know it.
    values : ndarray or None
        As numbers or, in UTC, times, with NaN and NaT where some are missing; None if
        they are neither.
    """

    def __init__(self, native):
        self.dtype, self._native = native.dtype, native

    @property
    def values(self):
        """See the class."""
        return self._native

    def about(self):
        """Type of arrays for whole numbers, else None, and what float64 or UTC lose."""
        return None, None

    def objects(self):
        """Values as a list; times as integers, to the nanosecond."""
        values = self.values
        return (values.view(np.int64) if values.dtype.kind in "mM" else values).tolist()

    def restore(self, values):
        """New values of the type, from numbers as :attr:`values` has them."""
        return values.astype(self.dtype, copy=False)

    def take(self, places):
        """Values at some places, which may repeat, in the container."""
        if isinstance(self._native, np.ndarray):
            return self._native[places]
        if not len(places):
            return getattr(self._native, "iloc", self._native)[:0]
        series = nw.from_native(self._native, series_only=True)[places]
        return nw.maybe_reset_index(series).to_native()

    def part(self, places):
        """The reader of some values: of none, what it takes to restore some."""
        part = copy(self)
        vars(part).pop("values", None)
        part._native = self.take(places)
        return part


class TypedColumn(PlainColumn):
    """A series of polars, pyarrow, or of pandas with a type of its own."""

    def __init__(self, native, with_nan=None):
        series = native
        if not isinstance(native, nw.Series):
            # Zones such as America/New_York are unknown types to narwhals.
            has_zone = getattr(native.dtype, "tz", None) is not None
            plain = native.dt.tz_convert("UTC") if has_zone else native
            series = nw.from_native(plain, series_only=True)
        else:
            native = series.to_native()
        self._native, self._series = native, series
        self._is_pandas = hasattr(native, "iloc")
        self.dtype = native.type if hasattr(native, "type") else native.dtype
        # pandas writes missing floats as either NaN or NA: keep the one in use.
        if with_nan is None:
            with_nan = series.dtype.is_float() and not series.null_count()
        self._with_nan = with_nan

    def part(self, places):
        """See :class:`PlainColumn`."""
        if self._is_pandas:
            return type(self)(self.take(places), self._with_nan)
        part, series = copy(self), self._series
        part._series = series[places] if len(places) else series.head(0)
        part._native = part._series.to_native()
        return part

    @property
    def values(self):
        """See the class."""
        series, dtype = self._series, self._series.dtype
        if dtype == nw.Unknown and series.null_count() == len(series):
            return np.full(len(series), np.nan)
        if dtype == nw.Date:
            series = series.cast(nw.Datetime("ms"))
        elif dtype in _WIDE:
            series = series.cast(nw.Float64)
        elif not (dtype.is_numeric() or dtype in _WITH_NUMBERS[: 3 + self._is_pandas]):
            return None
        values = series.to_numpy()
        return ObjectColumn(values).values if values.dtype == object else values

    def about(self):
        """See :class:`PlainColumn`."""
        dtype = self._series.dtype
        if dtype in _WIDE:
            return None, "is read as float64"
        if dtype == nw.Boolean or dtype.is_integer():
            return np.dtype(str(dtype).lower().replace("boolean", "bool")), None
        if dtype == nw.Datetime and "/" in str(self.dtype):
            # Local dates that were converted to UTC have at most the two or three
            # hours of standard and summer time.
            hours = self.values
            hours = hours[~np.isnat(hours)]
            hours = np.unique(hours - hours.astype("M8[D]")) / np.timedelta64(15, "m")
            if len(hours) in (2, 3) and np.all(hours == np.rint(hours)):
                return None, "may hold local dates, and is read as UTC"
        return None, None

    def objects(self):
        """See :class:`PlainColumn`."""
        series = self._series
        if series.dtype == nw.Time:
            return series.cast(nw.Time).cast(nw.Int64).to_list()
        if series.dtype.is_temporal():
            return self.values.view(np.int64).tolist()
        return series.to_list()

    def restore(self, values):
        """See :class:`PlainColumn`."""
        series = self._series
        values = self._within(series.dtype, values)
        missing = values.dtype.kind == "f" and np.isnan(values)
        if self._is_pandas and np.all(missing):
            # Works for types of pandas that hold missing values only.
            return type(self._native)([None] * len(values), dtype=self.dtype)
        if np.any(missing) and not (self._is_pandas or self._with_nan):
            values = [None if value != value else value for value in values.tolist()]
        new = nw.new_series(series.name or "", values, backend=series.implementation)
        zone = getattr(series.dtype, "time_zone", None)
        if zone is not None:
            new = new.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        if self._is_pandas:
            return new.to_native().astype(self.dtype)
        if series.dtype == nw.Decimal:
            # Older versions of narwhals cannot cast to decimals; the native series can.
            return new.to_native().cast(self.dtype)
        return (
            new if new.dtype == series.dtype else new.cast(series.dtype)
        ).to_native()

    def _within(self, dtype, values):
        """Floats as a wide type can hold them: decimals, whole numbers."""
        if dtype == nw.Decimal:
            kind = getattr(self.dtype, "pyarrow_dtype", self.dtype)
            most = largest_float(Decimal((0, (9,) * kind.precision, -kind.scale)))
            return np.clip(values, -most, most)
        return np.rint(values) if dtype in _WIDE else values


class ObjectColumn(PlainColumn):
    """Python objects, which may be numbers.

    New values are Booleans or integers if all values are, else floats; missing ones are
    written as the first missing value is.
    """

    values = None

    def __init__(self, native):
        self.dtype, self._native, self._about = native.dtype, native, (None, None)
        values = np.asarray(native, dtype=object)
        missing = np.fromiter(map(is_missing, values), bool, len(values))
        self._marker = values[missing.argmax()] if missing.any() else np.nan
        present = values[~missing].tolist()
        if not all(isinstance(value, Real | Decimal | np.bool_) for value in present):
            return
        numbers = np.asarray(present)
        kind, dtype = numbers.dtype.kind, {"b": np.dtype(bool), "i": np.dtype(np.int64)}
        # Decimals, fractions and integers beyond 64 bits stay objects.
        note = "holds objects that are read as float64" if kind in "Ou" else None
        self._about = dtype.get(kind), note
        try:
            floats = numbers.astype(np.float64)
        except OverflowError:
            return
        self.values = np.full(len(values), np.nan)
        self.values[~missing] = floats
        if kind in dtype and not missing.any():
            self.values = numbers.astype(dtype[kind])

    def about(self):
        """See :class:`PlainColumn`."""
        return self._about

    def objects(self):
        """See :class:`PlainColumn`."""
        return self._native.tolist()

    def restore(self, values):
        """See :class:`PlainColumn`."""
        missing = values != values
        objects = np.where(missing, 0, values).astype(self._about[0] or values.dtype)
        objects = objects.astype(object)
        objects[missing] = self._marker
        return objects


def is_missing(value):
    """Whether a value is None, NA, NaT or NaN."""
    if is_missing_type(type(value)):
        return True
    return isinstance(value, float | np.floating | Decimal) and value != value


def is_missing_type(kind):
    """Whether all values of a type are missing: those of None, NA and NaT."""
    return kind.__name__ in ("NoneType", "NAType", "NaTType")
