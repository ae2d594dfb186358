"""Read containers column by column, make new ones, resolve column keys.

Data frames are read through narwhals.
"""

from collections.abc import Hashable
from math import prod
from numbers import Integral

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe, is_pandas_like_dataframe
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack

from .readers import TypedColumn, read_column


def is_frame(X):
    """Whether rows came in a data frame of any kind, lazy ones too."""
    if isinstance(X, np.ndarray | list):
        return False
    return is_into_dataframe(X) or isinstance(
        nw.from_native(X, pass_through=True), nw.LazyFrame
    )


def columns_of(X):
    """The columns of a data frame, or of an array or sparse matrix of two axes.

    A frame of narwhals is replaced by its native frame.
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


class ArrayColumns:
    """Columns of an array of two axes, or of a sparse matrix; rows of any array.

    Attributes
    ----------
    names : list or None
    n_columns : int
    is_sparse : bool
    """

    names = None

    def __init__(self, X):
        self._rows, self.n_columns, self.is_sparse = X, X.shape[1], issparse(X)
        self._cells = X.tocsc() if self.is_sparse else X

    def __len__(self):
        return self._rows.shape[0]

    def reader(self, j):
        """The :mod:`reader <.readers>` of a column."""
        if self.is_sparse:
            return read_column(self._cells[:, [j]].toarray()[:, 0])
        return read_column(self._cells[:, j])

    def values(self, j):
        """Values of a column as numbers or times; None if they are neither."""
        return self.reader(j).values

    def objects(self, j):
        """Values of a column as a list; times as integers, to the nanosecond."""
        return self.reader(j).objects()

    def what(self, j):
        """What a column is called in messages."""
        if self.names is None:
            return f"Column {j}"
        return f"Column {self.names[j]!r} ({self.reader(j).dtype})"

    def head(self):
        """No rows: names and types alone."""
        return type(self)(self._rows[:0].copy())

    def make(self, columns):
        """An array or matrix of new columns, with the type of this one."""
        rows = np.empty((len(columns[0]), len(columns)), dtype=self._rows.dtype)
        for j, column in enumerate(columns):
            rows[:, j] = column
        return type(self._rows)(rows) if self.is_sparse else rows

    def stack(self, rows):
        """All rows of this one, then others."""
        whole = [self._rows, *rows]
        return joined(whole) if self.is_sparse else np.concatenate(whole)


class FrameColumns(ArrayColumns):
    """Columns of a data frame of polars, pyarrow or others that narwhals knows."""

    is_sparse = False

    def __init__(self, X):
        self._rows = nw.from_native(X, eager_only=True)
        self.names = list(self._rows.columns)
        self.n_columns = len(self.names)

    def reader(self, j):
        """See :class:`ArrayColumns`."""
        return TypedColumn(self._rows.get_column(self.names[j]))

    def head(self):
        """See :class:`ArrayColumns`."""
        return type(self)(self._rows.head(0).to_native())

    def make(self, columns):
        """See :class:`ArrayColumns`."""
        columns = [nw.from_native(column, series_only=True) for column in columns]
        return nw.from_dict(dict(zip(self.names, columns, strict=True))).to_native()

    def stack(self, rows):
        """See :class:`ArrayColumns`."""
        frames = [nw.from_native(frame, eager_only=True) for frame in rows]
        return nw.concat([self._rows, *frames]).to_native()


class PandasColumns(ArrayColumns):
    """Columns of a data frame of pandas.

    Unlike with narwhals, names may be any objects and repeat, and subclasses of frames
    are kept. New frames have a new index.
    """

    is_sparse = False

    def __init__(self, X):
        self._rows, self.names = X, list(X.columns)
        self.n_columns = len(self.names)

    def reader(self, j):
        """See :class:`ArrayColumns`."""
        return read_column(self._rows.iloc[:, j])

    def make(self, columns):
        """See :class:`ArrayColumns`."""
        frame = type(self._rows)(dict(enumerate(columns)))
        frame.columns = self._rows.columns
        return frame

    def stack(self, rows):
        """See :class:`ArrayColumns`."""
        concat = nw.get_native_namespace(self._rows).concat
        return concat([self._rows, *rows], ignore_index=True)


def joined(parts):
    """Stack sparse matrices, in the type of the first one."""
    first = parts[0]
    return type(first)(sparse_vstack(parts, format=first.format))


def column_of(key, caller, names, row_shape):
    """Resolve a key to a flat column of X.

    Parameters
    ----------
    key : object
        A name; a place, negative ones from the end; a tuple of places of a cell.
    caller : str
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
            raise ValueError(
                f"{caller} names {key!r}, which may be a name or a number: make names "
                "of columns strings first, X.rename(columns=str)."
            )
        if place is not None:
            return place
    elif len(named) == 1:
        return named[0]
    elif not named and _is_cell(key, row_shape):
        return int(np.ravel_multi_index(np.mod(key, row_shape), row_shape))
    wanted = f"a name or a number (0 to {n - 1}) of the {n} columns of X"
    if len(row_shape) > 1:
        wanted = f"a place in rows of {row_shape}, or a number from 0 to {n - 1}"
    if isinstance(key, str) and names:
        wanted = f"one of the columns {names}"
    if len(named) > 1:
        wanted = f"one column: {len(named)} of X have that name, {named}"
    raise ValueError(f"{caller} names {key!r}; give {wanted}.")


def _is_whole(key):
    return isinstance(key, Integral) and not isinstance(key, bool | np.bool_)


def _is_cell(key, shape):
    if not isinstance(key, tuple) or len(key) != len(shape):
        return False
    places = zip(key, shape, strict=True)
    return all(_is_whole(i) and -n <= i < n for i, n in places)


def _is_same(name, key):
    """Whether a key equals a name; True differs from 1, and arrays equal nothing."""
    bools = [isinstance(one, bool | np.bool_) for one in (name, key)]
    return bools[0] == bools[1] and isinstance(key, Hashable) and name == key
