"""Read one column of any container as numeric values, and restore its dtype.

:func:`read_column` returns a reader. The classes differ in the storage of the column:
NumPy dtypes, dtypes of pandas extensions, polars and pyarrow, and Python objects.
"""

from copy import copy
from decimal import Decimal
from functools import cached_property
from numbers import Real

import narwhals as nw
import numpy as np

from .._utils.masked import are_missing, check_plain


def read_column(native):
    """Return the reader for a column: an array (n,), or a series of any library."""
    dtype = getattr(native, "dtype", None)
    if not isinstance(dtype, np.dtype):
        return TypedColumn(native)
    check_plain(native, "a column")
    plain = dtype.kind in "biufmM"
    return PlainColumn(np.asarray(native)) if plain else ObjectColumn(native)


class PlainColumn:
    """A column of numbers or times in an array, or in a pandas series of a NumPy dtype.

    Attributes
    ----------
    dtype : dtype
        Dtype of the column in its library.
    values : ndarray or None
        Numbers, or times in UTC, with NaN or NaT for missing values; None if the column
        is neither numeric nor a time.
    integer_dtype : dtype or None
        NumPy dtype of a column of integers or booleans that can have missing values.
    zone : object
        Time zone of the times; None without a time zone.
    """

    integer_dtype = zone = None

    def __init__(self, native):
        self.dtype, self._native, self.values = native.dtype, native, native

    def objects(self):
        """Return the values as a list; times are integers, which keeps nanoseconds."""
        values = self.values
        return (values.view(np.int64) if values.dtype.kind in "mM" else values).tolist()

    def restore(self, values):
        """Convert numbers in the form of :attr:`values` to the dtype of the column."""
        # Integer dtypes cannot represent NaN. Raise instead of casting to an arbitrary
        # integer.
        with np.errstate(invalid="raise"):
            return values.astype(self.dtype, copy=False)

    def take(self, places):
        """Return the values at some indices, which can repeat, in the container."""
        if isinstance(self._native, np.ndarray):
            return self._native[places]
        series = nw.from_native(self._native, series_only=True)[places]
        return nw.maybe_reset_index(series).to_native()

    def part(self, places):
        """Return a reader of some values; a reader without values can still restore."""
        part = copy(self)
        for computed in ("values", "_series"):
            vars(part).pop(computed, None)
        part._native = self.take(places)
        return part


class TypedColumn(PlainColumn):
    """A series of polars or pyarrow, or a pandas series with an extension dtype.

    New decimals that exceed the precision of the dtype raise an error of the library.
    """

    def __init__(self, native):
        self._native, self._is_pandas = native, hasattr(native, "iloc")
        self.dtype = native.type if hasattr(native, "type") else native.dtype
        series = self._series
        # polars and pyarrow mark missing floats by NaN or null. Restore the same mark.
        self._with_nan = series.dtype.is_float() and not series.null_count()

    @property
    def zone(self):
        """See :class:`PlainColumn`."""
        zone = getattr(self.dtype, "tz", None)
        return zone or getattr(self._series.dtype, "time_zone", None)

    @cached_property
    def _series(self):
        native = self._native
        if getattr(self.dtype, "tz", None) is not None and self._is_pandas:
            # Narwhals cannot read some time zones, for example America/New_York.
            native = native.dt.tz_convert("UTC")
        return nw.from_native(native, series_only=True)

    @property
    def values(self):
        """See :class:`PlainColumn`."""
        series, dtype = self._series, self._series.dtype
        if dtype == nw.Date:
            series = series.cast(nw.Datetime("ms"))
        elif dtype == nw.Decimal:
            series = series.cast(nw.Float64)
        # Narwhals reports an unknown dtype for sparse numbers of pandas.
        elif not (
            dtype.is_numeric()
            or dtype in (nw.Boolean, nw.Datetime, nw.Duration)
            or (dtype == nw.Unknown and self._is_pandas)
        ):
            return None
        values = series.to_numpy()
        return ObjectColumn(values).values if values.dtype == object else values

    @property
    def integer_dtype(self):
        """See :class:`PlainColumn`."""
        dtype = self._series.dtype
        is_integer = dtype == nw.Boolean or dtype.is_integer()
        name = str(dtype).lower().replace("boolean", "bool")
        return np.dtype(name) if is_integer else None

    def objects(self):
        """See :class:`PlainColumn`."""
        if self._series.dtype in (nw.Datetime, nw.Duration):
            return self.values.view(np.int64).tolist()
        return self._series.to_list()

    def restore(self, values):
        """See :class:`PlainColumn`."""
        series = self._series
        if values.dtype.kind == "f" and not (self._is_pandas or self._with_nan):
            missing = np.isnan(values)
            if missing.any():
                values = np.where(missing, None, values).tolist()
        new = nw.new_series(series.name or "", values, backend=series.implementation)
        zone = getattr(series.dtype, "time_zone", None)
        if zone is not None:
            new = new.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        new = new.to_native()
        return (new.astype if self._is_pandas else new.cast)(self.dtype)


class ObjectColumn(PlainColumn):
    """A column of Python objects, which can be numbers.

    New values are booleans, integers or decimals if all values have this type;
    otherwise, they are floats. New missing values equal the first missing value.
    """

    values = None

    def __init__(self, native):
        self.dtype, self._native = native.dtype, native
        values = np.asarray(native, dtype=object)
        missing = are_missing(values)
        self._marker = values[missing.argmax()] if missing.any() else np.nan
        present = values[~missing].tolist()
        if not all(isinstance(value, Real | Decimal | np.bool_) for value in present):
            return
        self._types = set(map(type, present))
        numbers = np.asarray(present)
        # NumPy keeps decimals, fractions and integers beyond 64 bits as objects.
        kinds = {"b": np.dtype(bool), "i": np.dtype("i8"), "u": np.dtype("u8")}
        self.integer_dtype = kinds.get(numbers.dtype.kind)
        if self.integer_dtype is not None and not missing.any():
            self.values = numbers.astype(self.integer_dtype)
        else:
            self.values = np.full(len(values), np.nan)
            self.values[~missing] = numbers

    def objects(self):
        """See :class:`PlainColumn`."""
        return self._native.tolist()

    def restore(self, values):
        """See :class:`PlainColumn`."""
        missing = values != values
        objects = np.where(missing, 0, values)
        objects = objects.astype(self.integer_dtype or values.dtype).astype(object)
        if self._types == {Decimal}:
            objects[:] = [*map(Decimal, map(str, objects))]
        objects[missing] = self._marker
        return objects
