"""Columns of containers: arrays of values, new columns of their types, what keys mean.

Data frames are spoken to through narwhals.
"""

from collections.abc import Hashable
from decimal import Decimal
from math import prod
from numbers import Integral, Real

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe, is_pandas_like_dataframe

from .values import EXACT


def is_frame(X):
    """Whether rows came in a data frame of any kind, lazy ones too."""
    if isinstance(X, np.ndarray | list):
        return False
    return is_into_dataframe(X) or isinstance(
        nw.from_native(X, pass_through=True), nw.LazyFrame
    )


def columns_of(X):
    """The columns of a data frame or of an array of two axes.

    A frame of narwhals is the one under it.
    """
    if not is_frame(X):
        return ArrayColumns(X)
    X = nw.to_native(X, pass_through=True)
    if is_pandas_like_dataframe(X):
        return PandasColumns(X)
    try:
        return FrameColumns(X)
    except TypeError:
        raise TypeError(
            f"X is a {type(X).__name__} of {type(X).__module__.split('.')[0]}, whose "
            "rows cannot be read: collect it, or convert it to pandas, first."
        ) from None


def what(columns, j):
    """What a column is called in messages."""
    if columns.names is None:
        return f"Column {j}"
    return f"Column {columns.names[j]!r} ({columns.dtype(j)})"


class FrameColumns:
    """Columns of a data frame, counted from 0.

    Parameters
    ----------
    X : data frame
        Of polars, pyarrow or another library that narwhals knows.

    Attributes
    ----------
    names : list
    n_columns : int
    """

    _others_with_numbers: tuple = (nw.Boolean, nw.Datetime, nw.Duration)
    # Columns whose missing cells are NaN, not null.
    _with_nan: tuple = ()

    def __init__(self, X):
        self._frame = nw.from_native(X, eager_only=True)
        self.names = list(self._frame.columns)
        self.n_columns = len(self.names)

    def __len__(self):
        return len(self._frame)

    def _column(self, j):
        return self._frame.get_column(self.names[j])

    def dtype(self, j):
        """Type of a column, as its users know it."""
        native = self._column(j).to_native()
        return native.type if hasattr(native, "type") else native.dtype

    def values(self, j):
        """Values of a column as numbers or, in UTC, times; None if they are neither.

        Floats with NaN where some are missing; objects if they are decimals, or
        integers that these do not hold.
        """
        column = self._column(j)
        dtype = column.dtype
        if dtype in (nw.Decimal, nw.Int128, nw.UInt128):
            return as_numbers(np.array(column.to_list(), dtype=object))
        if dtype == nw.Date:
            column = column.cast(nw.Datetime("ms"))
        elif not (dtype.is_numeric() or dtype in self._others_with_numbers):
            # Of a type that narwhals does not know are columns of nothing, too.
            nothing = dtype == nw.Unknown and column.null_count() == len(column)
            if not nothing:
                return None
        values = column.to_numpy()
        if dtype.is_integer() and values.dtype.kind == "f":
            far = bool((np.abs(values) > EXACT).any())
            values = np.array(column.to_list(), dtype=object) if far else values
        return as_numbers(values) if values.dtype == object else values

    def whole_type(self, j):
        """Type of arrays for the whole numbers or Booleans of a column, else None."""
        dtype = self._column(j).dtype
        if dtype == nw.Boolean:
            return np.dtype(bool)
        if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):
            return np.dtype(str(dtype).lower())
        return None

    def largest(self, j):
        """The largest integer or decimal of the type of a column; None without one."""
        whole = self.whole_type(j)
        if whole is not None and whole.kind != "b":
            return int(np.iinfo(whole).max)
        dtype = getattr(self.dtype(j), "pyarrow_dtype", self.dtype(j))
        n_digits = getattr(dtype, "precision", None)
        return n_digits and Decimal((0, (9,) * n_digits, -dtype.scale))

    def objects(self, j):
        """Values of a column as a list; times as integers, to the nanosecond."""
        column = self._column(j)
        if column.dtype == nw.Time:
            return column.cast(nw.Time).cast(nw.Int64).to_list()
        if column.dtype.is_temporal():
            return self.values(j).view(np.int64).tolist()
        return column.to_list()

    def column(self, j, values):
        """Values, as :meth:`values` gives them, in the type of column j."""
        own = self._column(j)
        if getattr(own.dtype, "time_zone", None) is not None:
            # Whole numbers are times in UTC, whatever the zone.
            values = values.view(np.int64)
        whole = None
        if values.dtype == object:
            whole = own.dtype if own.dtype.is_integer() else None
            values = values.tolist()
        elif j not in self._with_nan and values.dtype.kind == "f":
            values = [None if value != value else value for value in values.tolist()]
        new = nw.new_series(own.name, values, whole, backend=own.implementation)
        if own.dtype == nw.Decimal:
            # Older versions of narwhals have no such cast, what is under them has.
            return new.to_native().cast(self.dtype(j))
        same = new.dtype == own.dtype
        return (new if same else new.cast(own.dtype)).to_native()

    def wall_clock(self, j, values):
        """Times in UTC as clocks in the zone of a column show them; None without."""
        if getattr(self._column(j).dtype, "time_zone", None) is None:
            return None
        column = nw.from_native(self.column(j, values), series_only=True)
        return column.dt.replace_time_zone(None).to_numpy()

    def some(self, j, rows):
        """Values of a column in some rows, in its type."""
        return self._column(j)[rows].to_native()

    @staticmethod
    def again(column, places):
        """Values of a column at some places, which may repeat."""
        column = nw.from_native(column, series_only=True)[places]
        return nw.maybe_reset_index(column).to_native()

    def head(self):
        """No rows: names, types and how cells are missing alone."""
        head, columns = type(self)(self._frame.head(0).to_native()), self._frame
        every = enumerate(columns.iter_columns())
        head._with_nan = [
            j for j, c in every if c.dtype.is_float() and not c.null_count()
        ]
        return head

    def make(self, columns):
        """A frame of new columns, with the names of this one."""
        columns = [nw.from_native(column, series_only=True) for column in columns]
        return nw.from_dict(dict(zip(self.names, columns, strict=True))).to_native()

    def stack(self, frames):
        """All rows of this frame, then those of others."""
        frames = [nw.from_native(frame, eager_only=True) for frame in frames]
        return nw.concat([self._frame, *frames]).to_native()


class PandasColumns(FrameColumns):
    """Columns of a data frame of pandas.

    What pandas needs beside narwhals: names may be anything and occur twice; types that
    are one to narwhals are several ("int64", "Int64", "int64[pyarrow]", sparse ones);
    objects may be numbers; the index is made anew; frames of a subclass stay such.
    """

    _others_with_numbers = (*FrameColumns._others_with_numbers, nw.Object, nw.Unknown)

    def __init__(self, X):
        frame = X.copy(deep=False)
        frame.columns = [str(j) for j in range(len(frame.columns))]
        for place, dtype in zip(frame.columns, X.dtypes, strict=True):
            if getattr(dtype, "tz", None) is not None:
                # Zones such as America/New_York are unknown types to narwhals.
                frame[place] = frame[place].dt.tz_convert("UTC")
        super().__init__(frame)
        self._places, self._given = self.names, X
        self.names, self._dtypes = list(X.columns), X.dtypes.tolist()

    def _column(self, j):
        return self._frame.get_column(self._places[j])

    def dtype(self, j):
        """Type of a column, as its users know it."""
        return self._dtypes[j]

    def _is_plain(self, j):
        """Whether a column is an array of numbers: of these there may be thousands."""
        dtype = self._dtypes[j]
        return isinstance(dtype, np.dtype) and dtype.kind in "biuf"

    def values(self, j):
        """See :class:`FrameColumns`."""
        plain = self._is_plain(j)
        return self._given.iloc[:, j].to_numpy() if plain else super().values(j)

    def whole_type(self, j):
        """See :class:`FrameColumns`."""
        if not self._is_plain(j):
            return super().whole_type(j)
        return None if self._dtypes[j].kind == "f" else self._dtypes[j]

    def column(self, j, values):
        """Values, as :meth:`values` gives them, in the type of column j."""
        dtype = self._dtypes[j]
        if isinstance(dtype, np.dtype):
            return values.astype(dtype, copy=False)
        own = self._column(j)
        new = nw.new_series("", values, backend=own.implementation).to_native()
        if getattr(own.dtype, "time_zone", None) is not None:
            new = new.dt.tz_localize("UTC")
        return new.astype(dtype)

    def some(self, j, rows):
        """Values of a column in some rows, in its type."""
        return self._given.iloc[rows, j]

    def head(self):
        """No rows: names and types alone."""
        return type(self)(self._given.iloc[:0])

    def make(self, columns):
        """A frame of new columns, with the names of this one."""
        frame = type(self._given)(dict(enumerate(columns)))
        frame.columns = self._given.columns
        return frame

    def stack(self, frames):
        """All rows of this frame, then those of others, with a new index."""
        concat = self._frame.implementation.to_native_namespace().concat
        return concat([self._given, *frames], ignore_index=True)


class ArrayColumns:
    """Columns of an array of two axes, of objects or of words."""

    names = None

    def __init__(self, X):
        self._array, self.n_columns = X, X.shape[1]

    def __len__(self):
        return len(self._array)

    def dtype(self, j):
        """Type of all columns."""
        return self._array.dtype

    def values(self, j):
        """Values of a column as numbers; None if they are none."""
        return as_numbers(self._array[:, j].astype(object))

    def whole_type(self, j):
        """None: arrays of objects have no types of columns."""

    def largest(self, j):
        """None: objects hold any number."""

    def objects(self, j):
        """Values of a column as a list."""
        return self._array[:, j].tolist()

    def column(self, j, values):
        """Values as they are."""
        return values.astype(object)

    def wall_clock(self, j, values):
        """None: arrays of objects have no zones."""

    def some(self, j, rows):
        """Values of a column in some rows."""
        return self._array[rows, j]

    @staticmethod
    def again(column, places):
        """Values of a column at some places, which may repeat."""
        return column[places]

    def head(self):
        """No rows: the type alone."""
        return type(self)(self._array[:0].copy())

    def make(self, columns):
        """An array of new columns, with the type of this one."""
        rows = np.empty((len(columns[0]), len(columns)), dtype=self._array.dtype)
        for j, column in enumerate(columns):
            rows[:, j] = column
        return rows

    def stack(self, arrays):
        """All rows of this array, then those of others."""
        return np.concatenate([self._array, *arrays])


def as_numbers(values):
    """Objects as Booleans, integers, decimals or floats; None if some are no numbers.

    Decimals, integers beyond 64 bits, and integers and Booleans of which some are
    missing, stay objects, with NaN in place of these.
    """
    gaps = np.fromiter(map(is_missing, values), bool, len(values))
    types = set(map(type, values[~gaps]))
    if not all(issubclass(t, Real | Decimal | np.bool_) for t in types):
        return None
    decimals = bool(types) and all(issubclass(t, Decimal) for t in types)
    whole = bool(types) and all(issubclass(t, Integral | np.bool_) for t in types)
    if gaps.any():
        values = values.copy()
        values[gaps] = Decimal("nan") if decimals else np.nan
        if whole:
            return values
    elif whole and all(issubclass(t, bool | np.bool_) for t in types):
        return values.astype(bool)
    elif whole:
        try:
            return values.astype(np.int64)
        except OverflowError:
            return values
    numbers = values.astype(np.float64)
    return values if decimals and not np.isinf(numbers).any() else numbers


def is_missing(value):
    """Whether a value is None, NA, NaT or NaN."""
    if is_missing_type(type(value)):
        return True
    return isinstance(value, float | Decimal) and value != value


def is_missing_type(kind):
    """Whether all values of a type are missing: those of None, NA and NaT."""
    return kind.__name__ in ("NoneType", "NAType", "NaTType")


# --- which column a key means: they are counted and named as in X -------------------


def column_of(key, whom, names, row_shape):
    """The flat column that a key means.

    Parameters
    ----------
    key : object
        A name; a place, negative ones from the end; a tuple of places of a cell.
    whom : str
        What the key was given in, for messages.
    names : list or None
        Of the columns, any objects.
    row_shape : tuple of int
        Of a row of X.

    Returns
    -------
    column : int
    """
    names, n = names or [], prod(row_shape)
    named = [j for j, name in enumerate(names) if _is_same(name, key)]
    if _is_whole(key):
        place = int(key) % n if -n <= key < n else None
        if any(map(_is_whole, names)) and named != [place]:
            raise ValueError(_ambiguous(key, whom, names, named, place))
        if place is not None:
            return place
    elif len(named) == 1:
        return named[0]
    elif not named and _is_cell(key, row_shape):
        return int(np.ravel_multi_index(np.mod(key, row_shape), row_shape))
    raise ValueError(_unknown(key, whom, names, named, row_shape))


def _is_whole(key):
    return isinstance(key, Integral) and not isinstance(key, bool | np.bool_)


def _is_cell(key, shape):
    if not isinstance(key, tuple) or len(key) != len(shape):
        return False
    places = zip(key, shape, strict=True)
    return all(_is_whole(i) and -n <= i < n for i, n in places)


def _is_same(name, key):
    """Whether a key is a name; True and 1 are not the same, and arrays are none."""
    bools = [isinstance(one, bool | np.bool_) for one in (name, key)]
    return bools[0] == bools[1] and isinstance(key, Hashable) and name == key


def _ambiguous(key, whom, names, named, place):
    as_name = " and ".join(f"column {j}" for j in named) or "no column"
    as_place = "no column" if place is None else f"column {place} ({names[place]!r})"
    return (
        f"{whom} names {key!r}, which may be a name or a number: the columns of X have "
        f"whole numbers as names; {as_name} of 0 to {len(names) - 1} has the name "
        f"{key!r}, and as a number it is {as_place}. Make the names strings first, "
        "for instance with X.rename(columns=str)."
    )


def _unknown(key, whom, names, named, row_shape):
    n = prod(row_shape)
    if len(named) > 1:
        return (
            f"{whom} names {key!r}, but {len(named)} columns of X have that name: "
            f"{named}. Give the number of one."
        )
    if isinstance(key, str):
        held = f"has the columns {names}"
        if not names:
            held = f"has no names: give one of the numbers 0 to {n - 1}"
        return f"{whom} names {key!r}, but X {held}."
    if len(row_shape) > 1:
        kinds = f"tuples of {len(row_shape)} places of a cell in rows of {row_shape}"
        kinds += f", or numbers from 0 to {n - 1}"
    else:
        kinds = f"names or numbers (0 to {n - 1}) of the {n} columns"
    return f"{whom} holds {key!r}; it must hold {kinds} of X."
