"""Read containers column by column, create new containers, and resolve column keys.

Data frames of all libraries except pandas are read and created with narwhals.
"""

from collections.abc import Hashable
from copy import deepcopy
from functools import cached_property
from math import prod
from numbers import Integral

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe, is_pandas_like_dataframe
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack

from .._utils.validation import as_array, on_host
from .column_types import TypedColumn, read_column

_NUMERIC = np.typecodes["AllInteger"] + np.typecodes["Float"] + "?"


def is_frame(X):
    """Return whether X is a data frame of any library."""
    # Narwhals needs half a millisecond to recognise that an array is no data frame.
    if isinstance(X, np.ndarray | list):
        return False
    return is_into_dataframe(X)


def columns_of(X):
    """Return the columns of a data frame, or of a two-dimensional array or matrix.

    A frame of narwhals is replaced by its native frame.
    """
    if not is_frame(X):
        X = as_rows(X)
        if X.ndim != 2:
            raise ValueError(
                "X must have two dimensions, because totals and categorical_features "
                f"refer to columns; got the shape {X.shape}."
            )
        return ArrayColumns(X)
    X = nw.to_native(X, pass_through=True)
    return PandasColumns(X) if is_pandas_like_dataframe(X) else FrameColumns(X)


class ArrayColumns:
    """Columns of a two-dimensional array or a sparse matrix.

    Attributes
    ----------
    names : list or None
        Names of the columns of a data frame.
    n_columns : int
        Number of columns.
    is_sparse : bool
        Whether the container is a sparse matrix.
    """

    names, is_sparse = None, False

    def __init__(self, X):
        self._rows, self.n_columns, self.is_sparse = X, X.shape[1], issparse(X)

    def __len__(self):
        return self._rows.shape[0]

    @cached_property
    def _by_columns(self):
        return self._rows.tocsc()

    def reader(self, j):
        """Return the :mod:`reader <.readers>` of a column."""
        if self.is_sparse:
            return read_column(self._by_columns[:, [j]].toarray()[:, 0])
        return read_column(self._rows[:, j])

    def what(self, j):
        """Return the name of a column in messages."""
        return f"Column {j if self.names is None else repr(self.names[j])}"

    def head(self):
        """Return the columns without rows, with their names and dtypes."""
        return type(self)(deepcopy(self._rows[:0]))

    def make(self, columns):
        """Return an array or matrix of new columns, with the dtype of the original."""
        rows = np.empty((len(columns[0]), len(columns)), dtype=self._rows.dtype)
        for j, column in enumerate(columns):
            rows[:, j] = column
        return type(self._rows)(rows) if self.is_sparse else rows

    def stack(self, rows):
        """Append rows to the original rows."""
        parts = [self._rows, *rows]
        if not self.is_sparse:
            return np.concatenate(parts)
        return type(self._rows)(sparse_vstack(parts, format=self._rows.format))


class FrameColumns(ArrayColumns):
    """Columns of a data frame of polars, pyarrow or another library in narwhals."""

    def __init__(self, X):
        self._rows, self._frame = X, nw.from_native(X, eager_only=True)
        self.names = list(self._frame.columns)
        self.n_columns = len(self.names)

    def reader(self, j):
        """See :class:`ArrayColumns`."""
        return TypedColumn(self._frame.get_column(self.names[j]).to_native())

    def make(self, columns):
        """See :class:`ArrayColumns`."""
        columns = [nw.from_native(column, series_only=True) for column in columns]
        return nw.from_dict(dict(zip(self.names, columns, strict=True))).to_native()

    def stack(self, rows):
        """See :class:`ArrayColumns`."""
        return nw.concat([self._frame, *map(nw.from_native, rows)]).to_native()


class PandasColumns(ArrayColumns):
    """Columns of a data frame of pandas.

    In contrast to narwhals, names can be any objects and can repeat, and subclasses of
    data frames are preserved. New frames have a new index.
    """

    def __init__(self, X):
        self._rows, self.names, self.n_columns = X, list(X.columns), X.shape[1]

    @cached_property
    def _series(self):
        # Creating a series takes longer than reading its values, especially by `iloc`.
        kinds = set(self._rows.dtypes)
        if len(kinds) == 1 and getattr(kinds.pop(), "char", "O") in _NUMERIC:
            return self._rows.to_numpy().T
        return [series for _, series in self._rows.items()]

    def reader(self, j):
        """See :class:`ArrayColumns`."""
        return read_column(self._series[j])

    def make(self, columns):
        """See :class:`ArrayColumns`."""
        frame = type(self._rows)(dict(enumerate(columns)))
        frame.columns = self._rows.columns
        return frame

    def stack(self, rows):
        """See :class:`ArrayColumns`."""
        concat = nw.get_native_namespace(self._rows).concat
        return concat([self._rows, *rows], ignore_index=True)


def as_rows(X, name="X"):
    """Return an array, or a sparse matrix in CSR or CSC; mixed lists become objects."""
    if issparse(X):
        return X if X.format in ("csr", "csc") else X.tocsr()
    return np.asarray(as_array(on_host(X, name), name, dtype=object))


def column_of(key, caller, names, row_shape):
    """Resolve a key to a flat column of X.

    Parameters
    ----------
    key : object
        A column name, an index (negative indices count from the last column), or a
        tuple of indices of a cell. If a key is the name of one column and the index of
        another, an error is raised.
    caller : str
        Name of the argument that contains the key, for messages.
    names : list or None
        Column names, which can be any objects.
    row_shape : tuple of int
        Shape of a row of X.

    Returns
    -------
    column : int
    """
    names, n = names or [], prod(row_shape)
    comparable = names if isinstance(key, Hashable) else []
    found = {j for j, name in enumerate(comparable) if name == key}
    cell, shape = (key, row_shape) if isinstance(key, tuple) else ((key,), (n,))
    if len(cell) == len(shape) and all(map(_is_place, cell, shape)):
        found.add(int(np.ravel_multi_index(np.mod(cell, shape), shape)))
    if len(found) == 1:
        return found.pop()
    if found:
        raise ValueError(
            f"{caller} refers to {key!r}, which matches the columns {sorted(found)} of "
            "X, by name or index. Rename the columns to different strings first."
        )
    valid = f"a name or an index (0 to {n - 1}) of a column"
    if len(row_shape) > 1:
        valid = f"the index of a cell of shape {row_shape}, or an index up to {n - 1}"
    elif isinstance(key, str) and names:
        valid = f"one of the columns {names}"
    raise ValueError(f"{caller} refers to {key!r}, which is not in X. Pass {valid}.")


def places_of(names, n, chosen):
    """Return indices of columns given by indices, names or a mask."""
    chosen = [] if chosen is None else list(chosen)
    if chosen and all(isinstance(c, bool | np.bool_) for c in chosen):
        if len(chosen) != n:
            raise ValueError(
                f"categorical_features is a mask of {len(chosen)} values, but X has "
                f"{n} columns. Pass one boolean for each column."
            )
        return np.arange(n)[chosen].tolist()
    return sorted({column_of(c, "categorical_features", names, (n,)) for c in chosen})


def _is_place(key, n):
    """Return whether a key is an index of n columns, which can be negative."""
    is_integer = isinstance(key, Integral) and not isinstance(key, bool | np.bool_)
    return is_integer and -n <= key < n
