"""Tables: numbers and labels of rows, and conversion to the original container."""

from copy import copy
from math import prod

import numpy as np
from scipy.sparse import issparse

from .._runtime.validation import check_finite, validated, warn_user
from .categories import level_codes
from .columns import (
    ArrayColumns,
    as_numeric,
    as_table,
    column_of,
    columns_of,
    is_frame,
    no_numbers,
    places_of,
)
from .times import NAMES, Times, count_from_one_start
from .values import Counts, kind_of

# Why missing cells are refused.
_WHOLE = "Missing cells need the whole row as code: no order, reshaper or embedding."


def read_table(estimator, X, missing=None):
    """Rows of any container as a table, checked.

    Parameters
    ----------
    estimator : estimator
        With ``categorical_features``; gets ``input_shape_`` and names of features.
    X : array-like, sparse matrix or data frame
    missing : bool, default=None
        Whether cells may be missing; None for an error message without advice.

    Returns
    -------
    table : Table

    Raises
    ------
    ValueError
        Of NaN and infinity, with row and column, of columns without numbers that are
        no categories, and where all are categories.
    """
    is_list, chosen = isinstance(X, list), estimator.categorical_features
    if not is_frame(X) and (chosen is None or isinstance(chosen, str)):
        # The columns of an array have no types of their own.
        settings = {"accept_sparse": ["csr", "csc"], "dtype": "numeric"}
        table = ArrayTable(validated(estimator, X, no_numbers, **settings))
    else:
        columns = columns_of(X if is_frame(X) else as_table(X))
        if 0 in (len(columns), columns.n_columns):
            raise ValueError("Found 0 sample(s) or 0 feature(s): give some.")
        table = ColumnTable(columns, chosen)
    if table.shape == (0,):
        raise ValueError(
            "All columns are categories, and new rows would be copies, which "
            "RandomOverSampler of imbalanced-learn makes. Encode one as numbers."
        )
    table._is_list = is_list
    table.describe(estimator)
    names = table.column_names if len(table.row_shape) == 1 else None
    if missing is not None:
        missing = True if missing else _WHOLE
    table.has_missing = check_finite(table._numbers, names=names, missing=missing)
    return table


class Table:
    """Numeric rows with their original format, made by :func:`read_table`.

    Attributes
    ----------
    labels : ndarray of int of shape (n, n_categorical) or None
        Categories, which new rows take from their parents, as whole numbers.
    row_shape : tuple of int
        Shape of a row of X.
    shape : tuple of int
        Shape of a row of numbers.
    names : list or None
        Of the columns of X, as they came: any objects.
    categorical : list of int
        Columns of X that are categories.
    is_sparse : bool
        Whether rows come, and new ones go, as a sparse matrix.
    columns : ndarray of int of shape (D,)
        Flat column of X behind each number.
    times : ndarray of bool of shape (D,)
        Which numbers are times or lengths of time.
    steps : ndarray of shape (D,)
        What each number is a multiple of, or 0.
    precision : ndarray of shape (D,)
        Unit roundoff of the type of each number, or 0 where there are steps.
    type_ends : tuple of ndarray of shape (D,)
        Lower and upper end of the type of each number, infinite without one.
    starts : ndarray of shape (D,)
        What each number counts from: 0 unless it is far, and for times.
    integer_features : ndarray of int
        Columns of X that hold integers or Booleans.
    row_numbers : ndarray of int or None
        Number of each row in the rows that came; None for all of them.
    data_name : str
        What the rows are called in messages.
    has_missing : bool
        Whether some cells are NaN.
    owned : bool
        Whether :meth:`numbers` is nobody else's memory and may be written over.
    """

    names, labels, categorical, row_numbers = None, None, (), None
    is_sparse = has_missing = _is_list = False
    data_name, owned = "the training data", True

    def _set_kinds(self, kinds):
        """Say what the numbers are, each of its kind, or all of one."""

        def each(name):
            values = [getattr(kind, name) for kind in kinds]
            return np.full(len(self.columns), values[0] if len(values) == 1 else values)

        self.times, self.steps = each("is_time").astype(bool), each("step")
        self.precision = each("precision")
        self.type_ends = each("lowest"), each("highest")
        self.starts = np.where(self.times, 0.0, each("start").astype(float))
        self.integer_features = self.columns[(self.steps == 1) & ~self.times]

    def __len__(self):
        return self._numbers.shape[0]

    # --- what columns are ---------------------------------------------------------

    @property
    def column_names(self):
        """Name of the column (D,) of each number, else its index."""
        if self.names is None:
            return self.columns.tolist()
        return [self.names[j] for j in self.columns]

    @property
    def feature_names(self):
        """Names of the numbers for messages."""
        prefix = "x" if self.names is None else ""
        return tuple(f"{prefix}{name}" for name in self.column_names)

    def column_of(self, key, caller):
        """The flat column of X that a key means; see :func:`.columns.column_of`."""
        return column_of(key, caller, self.names, self.row_shape)

    def describe(self, estimator):
        """Set ``input_shape_``, ``n_features_in_`` and ``feature_names_in_``."""
        estimator.input_shape_ = self.row_shape
        estimator.n_features_in_ = self.row_shape[0]
        if self.names is not None and all(isinstance(n, str) for n in self.names):
            estimator.feature_names_in_ = np.asarray(self.names, dtype=object)
        else:
            vars(estimator).pop("feature_names_in_", None)

    # --- rows ---------------------------------------------------------------------

    @property
    def sparse_numbers(self):
        """Rows as a sparse matrix, where numbers are still in one; else None."""
        return self._numbers if issparse(self._numbers) else None

    def numbers(self):
        """Rows (n, D) of numbers in float64, or in float32 if X is no more precise."""
        return self._dense(self._numbers).reshape(len(self), prod(self.shape))

    def _dense(self, rows):
        return self._as_numbers(rows) if _is_made_later(rows) else rows

    def take(self, members, data_name=None):
        """Some of the rows, as a table of their own."""
        part = copy(self)
        part._numbers = self._dense(self._numbers[members])
        part._origin, part.owned = None, True
        part.labels = None if self.labels is None else self.labels[members]
        every = self.row_numbers
        part.row_numbers = np.asarray(members) if every is None else every[members]
        part.data_name = self.data_name if data_name is None else data_name
        part.has_missing = self.has_missing and bool(np.isnan(part._numbers).any())
        return part

    def without_rows(self):
        """Table without rows, which can still read and restore rows."""
        part = copy(self)
        part._numbers = np.empty((0, *self.shape))
        part._origin = None
        return part

    def stack(self, new):
        """Append new rows to the original ones, in their container."""
        whole = self._origin.stack(new)
        return whole.tolist() if self._is_list else whole


class ArrayTable(Table):
    """Arrays of numbers of any number of axes, dense or sparse.

    Integers and sparse rows become floats a part at a time: they take up to an eighth
    of what doubles take, or less.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, *shape)
    """

    def __init__(self, X):
        self._origin, self.is_sparse = ArrayColumns(X), issparse(X)
        self.row_shape = self.shape = X.shape[1:]
        # No type that a reader of files has to trust.
        self._container = type(X) if self.is_sparse else None
        self._kind = kind_of(X if self.is_sparse else X.reshape(len(X), -1))
        self.columns = np.arange(prod(self.shape))
        self._set_kinds([self._kind])
        self._numbers = X
        if not _is_made_later(X):
            self._numbers = self._as_numbers(X)
            # New rows are appended to the original ones.
            self.owned = not np.may_share_memory(self._numbers, X)

    def _as_numbers(self, X):
        """Numbers (n, *shape) of rows."""
        # Row by row: rounding, and with it the order of near-ties, depends on it.
        X = X.toarray(order="C") if issparse(X) else X
        return self._kind.read(X.reshape(len(X), -1)).reshape(X.shape)

    def like(self, numbers, donors=None):
        """See :meth:`ColumnTable.like`."""
        rows = self._kind.restore(numbers)
        if self.is_sparse:
            return self._container(rows)
        return rows.reshape(-1, *self.row_shape)

    def read(self, X):
        """See :meth:`ColumnTable.read`."""
        X = as_numeric(X)
        if X.shape[1:] != self.row_shape:
            raise ValueError(
                f"X has rows of shape {X.shape[1:]}, but the rows of fit had "
                f"{self.row_shape}."
            )
        return self._as_numbers(X).reshape(X.shape[0], -1)


def _is_made_later(rows):
    """Whether rows are converted to floats only when a part of them is used."""
    return issparse(rows) or rows.dtype.kind in "iub"


class ColumnTable(Table):
    """Columns of their own types, some of them perhaps categories.

    From a data frame, an array or a sparse matrix; numbers are dense here.

    Parameters
    ----------
    columns : object
        Of :mod:`.columns`.
    chosen : object
        Which are categories, in any way of ``categorical_features``.
    refused : callable
        Gives the message for a column that is neither numeric nor chosen.
    """

    def __init__(self, columns, chosen, refused=no_numbers):
        n, self._head, self._origin = columns.n_columns, columns.head(), columns
        self.names, self.is_sparse = columns.names, columns.is_sparse
        self.row_shape = (n,)
        readers = [columns.reader(j) for j in range(n)]
        values = [reader.values for reader in readers]
        others = [j for j in range(n) if values[j] is None]
        auto = isinstance(chosen, str)
        self.categorical = others if auto else places_of(columns.names, n, chosen)
        for j in set(others) - set(self.categorical):
            raise ValueError(refused(columns.what(j)))
        self.columns = np.delete(np.arange(n), self.categorical)
        self.shape = self.columns.shape
        self._kinds, notes = [], []
        for j in self.columns:
            whole, note = readers[j].about
            self._kinds.append(_kind_of_column(columns, j, values[j], whole))
            notes += [f"{columns.what(j)} {note}"] if note else []
        if notes:
            warn_user(
                f"{'; '.join(notes)}. If it is not enough pass float64, integers of 64 "
                "bits, or local times without a zone (X[name].dt.tz_localize(None))."
            )
        count_from_one_start([kind for kind in self._kinds if kind.is_time])
        self._set_kinds(self._kinds)
        values = [values[j] for j in self.columns]
        self._numbers = self._matrix(len(columns), values)
        # Restoring needs the types of columns and one value of each level, no rows.
        self._readers = [reader.part(np.arange(0)) for reader in readers]
        if self.categorical:
            codes = [self._codes(columns, j, readers[j]) for j in self.categorical]
            self.labels = np.column_stack(codes)

    def _codes(self, columns, j, reader):
        """A category as whole numbers (n,)."""
        try:
            codes, first_rows = level_codes(reader.objects())
        except TypeError as error:
            raise TypeError(
                f"{columns.what(j)} holds no categories: {error}. Make them strings or "
                "tuples first."
            ) from error
        self._readers[j] = reader.part(first_rows)
        return codes

    def time_scale(self, j):
        """Where number j, a time, counts from, and its unit, as NumPy times."""
        return self._kinds[j].scale

    def _matrix(self, n, values):
        numbers = np.zeros((n, *self.shape))
        for i, (kind, column) in enumerate(zip(self._kinds, values, strict=True)):
            numbers[:, i] = kind.read(column)
        return numbers

    def read(self, X):
        """Numbers (m, D) of other rows."""
        return self.read_columns(columns_of(X if is_frame(X) else as_table(X)))

    def read_columns(self, columns):
        """Numbers (m, D) of the columns of other rows."""
        if columns.n_columns != len(self._readers):
            raise ValueError(
                f"X has {columns.n_columns} columns, but the rows of fit had "
                f"{len(self._readers)}."
            )
        values = [columns.reader(j).values for j in self.columns]
        for j, kind, column in zip(self.columns, self._kinds, values, strict=True):
            if column is None or NAMES.get(column.dtype.kind, "numbers") != kind.holds:
                raise ValueError(
                    f"{columns.what(j)} holds no {kind.holds}, as it did in the rows "
                    "of fit."
                )
        return self._matrix(len(columns), values)

    def like(self, numbers, donors=None):
        """Convert numbers to rows in the format of X.

        Parameters
        ----------
        numbers : ndarray of shape (m, D)
            May be written over.
        donors : ndarray of int of shape (m,), default=None
            Rows of this table that give categories.

        Returns
        -------
        rows : array, sparse matrix or data frame
        """
        new = [None] * len(self._readers)
        for j, kind, column in zip(self.columns, self._kinds, numbers.T, strict=True):
            new[j] = self._readers[j].restore(kind.restore(column))
        for i, j in enumerate(self.categorical):
            new[j] = self._readers[j].take(self.labels[donors, i])
        return self._head.make(new)


def _kind_of_column(columns, j, values, whole):
    """How a column is read and restored; ``whole`` is the type of its whole numbers."""
    if values.dtype.kind in "mM" and columns.names is not None:
        return Times(values, columns.what(j))
    # Whole numbers of which some are missing are read as floats.
    is_whole = values.dtype.kind == "f" and whole is not None
    return Counts(whole) if is_whole else kind_of(values)
