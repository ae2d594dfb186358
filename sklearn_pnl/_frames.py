"""Columns of data frames and arrays: what they hold, and new columns of their types.

pandas is spoken to directly; polars, pyarrow and others through narwhals.
"""

from decimal import Decimal
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse

NUMBER, TIME, OTHER = "number", "time", "other"
# Nanoseconds of the units of time that new values keep, the longest first.
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LENGTHS = [86_400 * 10**9, 3600 * 10**9, 60 * 10**9, *UNITS.values()]


def columns_of(X):
    """The columns of a data frame or array."""
    if is_pandas(X):
        return PandasColumns(X)
    return NarwhalsColumns(X) if is_frame(X) else ArrayColumns(X)


def is_pandas(X):
    """Whether rows came in a data frame of pandas."""
    return hasattr(type(X), "iloc") and hasattr(X, "columns")


def is_frame(X):
    """Whether rows came in a data frame of any kind."""
    # Asked of the class: a lazy frame would be collected.
    return is_pandas(X) or (hasattr(type(X), "columns") and hasattr(type(X), "schema"))


def step_of_time(ticks, unit):
    """The longest unit of time, in ticks, of which all differences are multiples."""
    differences = since(ticks, int(ticks.min())) if len(ticks) else ticks
    for length in _LENGTHS:
        step, rest = divmod(length, UNITS[unit])
        if step and not rest and not np.any(differences % step):
            return step
    return 1


def is_pandas_series(y):
    """Whether targets came in a series of pandas."""
    return hasattr(type(y), "iloc") and not hasattr(type(y), "columns")


def like_pandas(y, values):
    """Values as a series of the name and type of another."""
    import pandas as pd

    return pd.Series(values, name=y.name).astype(y.dtype)


def series_values(y):
    """Values of a series that narwhals knows."""
    return _narwhals(y).from_native(y, series_only=True).to_numpy()


def like_series(y, values):
    """Values as a series of the name and type of another."""
    nw = _narwhals(y)
    old = nw.from_native(y, series_only=True)
    new = nw.new_series(old.name, values, backend=old.implementation)
    return (new if new.dtype == old.dtype else new.cast(old.dtype)).to_native()


def since(ticks, first):
    """Differences to the first tick, which may be more than integers with a sign."""
    return ticks.view(np.uint64) - np.uint64(first % 2**64)


class PandasColumns:
    """Columns of a data frame of pandas."""

    def __init__(self, X):
        self.names = list(X.columns)
        self.n_columns = len(self.names)
        self._frame = X

    def __len__(self):
        return len(self._frame)

    def dtype(self, j):
        """Type of a column, as its users know it."""
        return self._frame.dtypes.iloc[j]

    def kind(self, j):
        """Whether a column holds numbers, points or lengths in time, or else."""
        dtype = self.dtype(j)
        kind = getattr(dtype, "kind", "O")
        if hasattr(dtype, "categories"):
            return OTHER
        if kind in "mM" or str(dtype).startswith("date32"):
            return TIME
        if kind in "biufc":
            return NUMBER
        return NUMBER if _as_floats(self._frame.iloc[:, j]) is not None else OTHER

    def numbers(self, j):
        """Numbers of a column; floats with NaN where some are missing."""
        column, dtype = self._frame.iloc[:, j], self.dtype(j)
        if getattr(dtype, "kind", "O") == "O":
            return _as_floats(column)
        own = _numpy_type(dtype)
        if own is None:
            return np.asarray(column)
        if column.isna().any():
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        return column.to_numpy(dtype=own)

    def places(self, j):
        """Decimal places of a column of decimal numbers; None for others."""
        arrow = getattr(self.dtype(j), "pyarrow_dtype", None)
        if arrow is not None:
            return getattr(arrow, "scale", None)
        if getattr(self.dtype(j), "char", "") != "O":
            return None
        held = [v for v in self._frame.iloc[:, j] if not _is_missing(v)]
        if not held or not all(isinstance(v, Decimal) for v in held):
            return None
        return max(0, -min(v.as_tuple().exponent for v in held))

    def is_length(self, j):
        """Whether a column of times holds lengths of time, not points in it."""
        return getattr(self.dtype(j), "kind", "M") == "m"

    def ticks(self, j):
        """Times of a column as integers, their unit, and which ones are missing."""
        column, dtype = self._frame.iloc[:, j], self.dtype(j)
        if hasattr(dtype, "pyarrow_dtype"):
            column = column.astype(_plain_time(dtype.pyarrow_dtype))
        if getattr(column.dtype, "tz", None) is not None:
            column = column.dt.tz_convert(None)
        values = column.to_numpy()
        unit = np.datetime_data(values.dtype)[0]
        return values.view(np.int64), unit, np.isnat(values)

    def values(self, j):
        """Values of a column as a list."""
        return self._frame.iloc[:, j].tolist()

    def select(self, columns):
        """Some columns, as they are."""
        return type(self)(self._frame.iloc[:, columns].copy())

    def part(self, rows):
        """Some rows."""
        return type(self)(self._frame.iloc[rows])

    def head(self):
        """No rows: names and types alone."""
        return type(self)(self._frame.iloc[:0])

    def native(self):
        """The frame itself."""
        return self._frame

    def taken(self, j, rows):
        """Values of a column in some rows, as :meth:`make` takes them."""
        return self._frame.iloc[:, j].take(rows).reset_index(drop=True)

    def times(self, j, ticks, unit):
        """A column of times with the type of column j."""
        import pandas as pd

        dtype = self.dtype(j)
        letter = "m" if self.is_length(j) else "M"
        column = pd.Series(ticks.view(f"{letter}8[{unit}]"))
        zone = getattr(dtype, "tz", None)
        if hasattr(dtype, "pyarrow_dtype"):
            zone = getattr(dtype.pyarrow_dtype, "tz", None)
        if zone is not None:
            column = column.dt.tz_localize("UTC").dt.tz_convert(zone)
        return column.astype(dtype)

    def column(self, j, numbers):
        """A column of numbers with the type of column j."""
        import pandas as pd

        dtype = self.dtype(j)
        if getattr(dtype, "kind", "O") == "O":
            return pd.Series(numbers.tolist(), dtype=dtype)
        if isinstance(dtype, pd.SparseDtype):
            numbers = numbers.astype(dtype.subtype)
            return pd.Series(pd.arrays.SparseArray(numbers, dtype=dtype))
        own = _numpy_type(dtype)
        return pd.Series(numbers if own is None else numbers.astype(own)).astype(dtype)

    def make(self, columns):
        """A frame of new columns, with the names of this one."""
        frame = type(self._frame)(dict(enumerate(columns)))
        frame.columns = self._frame.columns
        return frame

    def joined(self, frames):
        """All rows of this frame, then those of others, with a new index."""
        import pandas as pd

        return pd.concat([self._frame, *frames], ignore_index=True)


class NarwhalsColumns:
    """Columns of a data frame that narwhals knows."""

    def __init__(self, X):
        self._nw = _narwhals(X)
        try:
            self._frame = self._nw.from_native(X, eager_only=True)
        except TypeError:
            raise TypeError(
                f"X is a {type(X).__name__} of {type(X).__module__.split('.')[0]}, "
                "whose rows cannot be read: collect it, or convert it to pandas, first."
            ) from None
        self.names = list(self._frame.columns)
        self.n_columns = len(self.names)

    def __len__(self):
        return len(self._frame)

    def dtype(self, j):
        """Type of a column, as its users know it."""
        return self._frame.schema[self.names[j]]

    def kind(self, j):
        """Whether a column holds numbers, points or lengths in time, or else."""
        nw, dtype = self._nw, self.dtype(j)
        if dtype.is_numeric() or dtype == nw.Boolean:
            return NUMBER
        return TIME if dtype in (nw.Datetime, nw.Duration, nw.Date) else OTHER

    def numbers(self, j):
        """Numbers of a column; floats with NaN where some are missing."""
        column = self._frame[self.names[j]]
        if column.null_count() or self.dtype(j) == self._nw.Decimal:
            column = column.cast(self._nw.Float64)
        return np.asarray(column.to_numpy())

    def is_length(self, j):
        """Whether a column of times holds lengths of time, not points in it."""
        return self.dtype(j) == self._nw.Duration

    def ticks(self, j):
        """Times of a column as integers, their unit, and which ones are missing."""
        nw, column = self._nw, self._frame[self.names[j]]
        if self.dtype(j) == nw.Date:
            column = column.cast(nw.Datetime("ms"))
        missing = column.is_null().to_numpy()
        ticks = column.cast(nw.Int64).fill_null(0).to_numpy()
        return np.array(ticks, np.int64), column.dtype.time_unit, missing

    def places(self, j):
        """Decimal places of a column of decimal numbers; None for others."""
        decimal = self.dtype(j) == self._nw.Decimal
        return self._own_type(j).scale if decimal else None

    def _own_type(self, j):
        """Type of a column in the library it came from."""
        own = self._frame[self.names[j]].to_native()
        return own.type if hasattr(own, "type") else own.dtype

    def values(self, j):
        """Values of a column as a list."""
        return self._frame[self.names[j]].to_list()

    def select(self, columns):
        """Some columns, as they are."""
        names = [self.names[j] for j in columns]
        return type(self)(self._frame.select(names).to_native())

    def part(self, rows):
        """Some rows."""
        return type(self)(self._frame[rows].to_native())

    def head(self):
        """No rows: names and types alone."""
        return type(self)(self._frame.head(0).to_native())

    def native(self):
        """The frame itself."""
        return self._frame.to_native()

    def taken(self, j, rows):
        """Values of a column in some rows, as :meth:`make` takes them."""
        return self._frame[self.names[j]][rows]

    def times(self, j, ticks, unit):
        """A column of times with the type of column j."""
        nw = self._nw
        column = self._series(j, ticks)
        if self.dtype(j) == nw.Date:
            column = column.cast(nw.Datetime(unit))
        return column.cast(self.dtype(j))

    def column(self, j, numbers):
        """A column of numbers with the type of column j."""
        if self.dtype(j) == self._nw.Boolean:
            numbers = numbers.astype(bool)
        if self.dtype(j) == self._nw.Decimal:
            # Older versions of narwhals have no such cast, what is under them has.
            new = self._series(j, numbers.tolist()).to_native().cast(self._own_type(j))
            return self._nw.from_native(new, series_only=True).alias(self.names[j])
        column = self._series(j, numbers)
        same = column.dtype == self.dtype(j)
        return column if same else column.cast(self.dtype(j))

    def _series(self, j, values):
        backend = self._frame.implementation
        return self._nw.new_series(self.names[j], values, backend=backend)

    def make(self, columns):
        """A frame of new columns, with the names of this one."""
        frames = [column.to_frame() for column in columns]
        return self._nw.concat(frames, how="horizontal").to_native()

    def joined(self, frames):
        """All rows of this frame, then those of others."""
        nw = self._nw
        frames = [nw.from_native(frame, eager_only=True) for frame in frames]
        return nw.concat([self._frame, *frames]).to_native()

    def __getstate__(self):
        return {"frame": self._frame.to_native()}

    def __setstate__(self, state):
        self.__init__(state["frame"])


class ArrayColumns:
    """Columns of an array of two axes, or of a sparse matrix."""

    def __init__(self, X):
        self.names = None
        self.n_columns = X.shape[1]
        self._array = X

    def __len__(self):
        return self._array.shape[0]

    def dtype(self, j):
        """Type of all columns."""
        return self._array.dtype

    def kind(self, j):
        """Whether a column holds numbers or else."""
        if self._array.dtype.kind in "biufc":
            return NUMBER
        return OTHER if _as_floats(self._array[:, j]) is None else NUMBER

    def numbers(self, j):
        """Numbers of a column."""
        column = self._column(j)
        return column if column.dtype.kind in "biufc" else _as_floats(column)

    def _column(self, j):
        column = self._array[:, [j]] if issparse(self._array) else self._array[:, j]
        return column.toarray().ravel() if issparse(column) else column

    def places(self, j):
        """None: arrays come back as floats."""

    def values(self, j):
        """Values of a column as a list."""
        return self._column(j).tolist()

    def select(self, columns):
        """Some columns, as they are."""
        return type(self)(self._array[:, columns])

    def part(self, rows):
        """Some rows."""
        return type(self)(self._array[rows])

    def head(self):
        """No rows: the type alone."""
        return type(self)(self._array[:0])

    def taken(self, j, rows):
        """Values of a column in some rows, as :meth:`make` takes them."""
        return self._column(j)[rows]

    def column(self, j, numbers):
        """A column of numbers, for :meth:`make`."""
        return numbers

    def make(self, columns):
        """An array of new columns, with the type of this one."""
        dtype, n = self._array.dtype, len(columns[0])
        rows = np.empty((n, len(columns)), dtype=dtype)
        for j, column in enumerate(columns):
            rows[:, j] = column
        return type(self._array)(rows) if issparse(self._array) else rows


def _numpy_type(dtype):
    """The type of numpy behind a type of pandas; None where it is one, or none is."""
    own = getattr(dtype, "numpy_dtype", None)
    return own if own is not None and own.kind in "biuf" else None


def _plain_time(arrow):
    """The type of pandas for times of a type of pyarrow."""
    import pandas as pd

    unit, zone = getattr(arrow, "unit", "s"), getattr(arrow, "tz", None)
    if str(arrow).startswith("duration"):
        return f"timedelta64[{unit}]"
    return f"datetime64[{unit}]" if zone is None else pd.DatetimeTZDtype(unit, zone)


def _as_floats(column):
    """Objects as numbers, whole ones as integers; None if some are none."""
    values = np.asarray(column, dtype=object)
    missing = np.array([_is_missing(value) for value in values], bool)
    held = values[~missing]
    if not all(isinstance(value, Real | np.bool_ | Decimal) for value in held):
        return None
    whole = all(isinstance(value, Integral | np.bool_) for value in held)
    if whole and not missing.any() and all(abs(int(v)) < 2**63 for v in held):
        return held.astype(np.int64)
    numbers = np.full(len(values), np.nan)
    numbers[~missing] = held
    return numbers


def level_codes(values):
    """Whole numbers from 0 that tell values apart, and the values by their numbers.

    All missing ones are alike, and None.
    """
    known, codes = {}, np.empty(len(values), np.intp)
    for i, value in enumerate(values):
        key = None if _is_missing(value) else value
        codes[i] = known.setdefault(key, len(known))
    return codes, list(known)


def _is_missing(value):
    """Whether a value is None, NA, NaT or NaN."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | Decimal) and value != value


def _narwhals(X):
    try:
        import narwhals
    except ImportError:
        kind = f"{type(X).__module__.split('.')[0]} {type(X).__name__}"
        raise ImportError(
            f"Rows in a {kind} are read through narwhals, which is not installed: "
            "install it (pip install narwhals), or pass a data frame of pandas."
        ) from None
    return narwhals
