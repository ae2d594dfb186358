"""Formats of rows: arrays of one type, or columns of their own types."""

from math import prod

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from .._runtime.validation import LOOSE, as_array, warn_user
from .categories import level_codes
from .columns import column_of, columns_of, is_frame
from .times import NAMES, Times, count_from_one_start
from .values import Counts, kind_of


class BlockForm:
    """Arrays of numbers of any number of axes, dense or sparse.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, *shape)

    Attributes
    ----------
    names : None
    row_shape : tuple of int
        Shape of a row of X.
    shape : tuple of int
        Shape of a row of numbers.
    categorical : list of int
        Columns that are categories.
    is_sparse : bool
        Whether rows come, and new ones go, as a sparse matrix.
    """

    names, categorical = None, ()

    def __init__(self, X):
        self.row_shape = self.shape = X.shape[1:]
        self.is_sparse = issparse(X)
        # No type that a reader of files has to trust.
        self._container = type(X) if self.is_sparse else None
        self._kind = kind_of(X if self.is_sparse else X.reshape(len(X), -1))
        self.columns = np.arange(prod(self.row_shape))

    def of_columns(self, name):
        """An attribute of the kind of each number (D,)."""
        return np.full(self.columns.shape, getattr(self._kind, name))

    def dense(self, X):
        """Numbers (n, *shape) of rows."""
        # Row by row: rounding, and with it the order of near-ties, depends on it.
        X = X.toarray(order="C") if issparse(X) else X
        return self._kind.read(X.reshape(len(X), -1)).reshape(X.shape)

    def read(self, X):
        """Numbers (n, D) of other rows."""
        X = as_numeric(X)
        if X.shape[1:] != self.row_shape:
            raise ValueError(
                f"X has rows of shape {X.shape[1:]}, but the rows of fit had "
                f"{self.row_shape}."
            )
        return self.dense(X).reshape(X.shape[0], -1)

    def restore(self, numbers, codes):
        """New rows of numbers (m, D)."""
        rows = self._kind.restore(numbers)
        if self.is_sparse:
            return self._container(rows)
        return rows.reshape(-1, *self.row_shape)


def is_made_later(rows):
    """Whether rows are converted to floats only when a part of them is used."""
    return issparse(rows) or rows.dtype.kind in "iub"


class ColumnForm:
    """Columns of their own types, some of them perhaps categories.

    From a data frame, an array or a sparse matrix; numbers are dense here.

    Parameters
    ----------
    columns : object
        Of :mod:`.columns`.
    chosen : object
        Which are categories, in any way of ``categorical_features``.
    refused : callable, default=no_numbers
        Gives the message for a column that is neither numeric nor chosen.

    Attributes
    ----------
    names : list or None
        Of all columns.
    row_shape, shape, columns, categorical, is_sparse : object
        As in :class:`BlockForm`.
    numbers : ndarray of shape (n, D)
        Of the rows that it was made from, until a table takes them.
    labels : ndarray of int of shape (n, n_categorical) or None
        Categories of these rows as whole numbers.
    """

    def __init__(self, columns, chosen, refused=None):
        n, self._head = columns.n_columns, columns.head()
        self.names, self.is_sparse = columns.names, columns.is_sparse
        self.row_shape = (n,)
        readers = [columns.reader(j) for j in range(n)]
        values = [reader.values for reader in readers]
        others = [j for j in range(n) if values[j] is None]
        auto = isinstance(chosen, str)
        self.categorical = others if auto else places_of(columns.names, n, chosen)
        for j in set(others) - set(self.categorical):
            raise ValueError((refused or no_numbers)(columns.what(j)))
        self.columns = np.delete(np.arange(n), self.categorical)
        self.shape = self.columns.shape
        self._kinds, notes = [], []
        for j in self.columns:
            whole, note = readers[j].about()
            self._kinds.append(_kind_of_column(columns, j, values[j], whole))
            notes += [f"{columns.what(j)} {note}"] if note else []
        if notes:
            warn_user(
                f"{'; '.join(notes)}. If it is not enough pass float64, integers of 64 "
                "bits, or local times without a zone (X[name].dt.tz_localize(None))."
            )
        count_from_one_start([kind for kind in self._kinds if kind.is_time])
        self.numbers = self._matrix(len(columns), [values[j] for j in self.columns])
        # Restoring needs the types of columns and one value of each level, no rows.
        self._readers = [reader.part(np.arange(0)) for reader in readers]
        codes = []
        for j in self.categorical:
            try:
                column, first_rows = level_codes(readers[j].objects())
            except TypeError as error:
                raise TypeError(
                    f"{columns.what(j)} holds no categories: {error}. Make them "
                    "strings or tuples first."
                ) from error
            codes.append(column)
            self._readers[j] = readers[j].part(first_rows)
        self.labels = np.column_stack(codes) if codes else None

    def time_scale(self, j):
        """See :class:`Table`."""
        return self._kinds[j].scale

    def of_columns(self, name):
        """An attribute of the kind of each number (D,)."""
        return np.array([getattr(kind, name) for kind in self._kinds])

    def _matrix(self, n, values):
        numbers = np.zeros((n, *self.shape))
        for i, (kind, column) in enumerate(zip(self._kinds, values, strict=True)):
            numbers[:, i] = kind.read(column)
        return numbers

    def read(self, X):
        """Numbers (n, D) of other rows."""
        columns = columns_of(X if is_frame(X) else as_table(X))
        if columns.n_columns != len(self._readers):
            raise ValueError(
                f"X has {columns.n_columns} columns, but the rows of fit had "
                f"{len(self._readers)}."
            )
        values = [columns.values(j) for j in self.columns]
        for j, kind, column in zip(self.columns, self._kinds, values, strict=True):
            if column is None or NAMES.get(column.dtype.kind, "numbers") != kind.holds:
                raise ValueError(
                    f"{columns.what(j)} holds no {kind.holds}, as it did in the rows "
                    "of fit."
                )
        return self._matrix(len(columns), values)

    def restore(self, numbers, codes):
        """New rows of numbers (m, D) and of categories (m, n_categorical)."""
        new = [None] * len(self._readers)
        for j, kind, column in zip(self.columns, self._kinds, numbers.T, strict=True):
            new[j] = self._readers[j].restore(kind.restore(column))
        for i, j in enumerate(self.categorical):
            new[j] = self._readers[j].take(codes[:, i])
        return self._head.make(new)


def _kind_of_column(columns, j, values, whole):
    """How a column is read and restored; ``whole`` is the type of its whole numbers."""
    if values.dtype.kind in "mM" and columns.names is not None:
        return Times(values, columns.what(j))
    # Whole numbers of which some are missing are read as floats.
    is_whole = values.dtype.kind == "f" and whole is not None
    return Counts(whole) if is_whole else kind_of(values)


def as_numeric(X, name="X", **settings):
    """Numbers in an array or sparse matrix, in their type; NaN may be among them."""
    settings = {"accept_sparse": ["csr", "csc"], "ensure_2d": False} | settings
    X = as_array(X, name)
    return check_array(X, dtype="numeric", input_name=name, **settings, **LOOSE)


def places_of(names, n, chosen):
    """Numbers of columns given by numbers, names or a mask."""
    chosen = [] if chosen is None else list(chosen)
    if chosen and all(isinstance(c, bool | np.bool_) for c in chosen):
        if len(chosen) != n:
            raise ValueError(
                f"categorical_features has {len(chosen)} entries for {n} columns."
            )
        return np.flatnonzero(chosen).tolist()
    return sorted({column_of(c, "categorical_features", names, (n,)) for c in chosen})


def no_numbers(column):
    """Error message for a column without numbers."""
    return (
        f"{column} holds no numbers. Name it in categorical_features ('auto' names all "
        "such columns of a data frame), or encode it first. An array of words and "
        "numbers holds words alone: pass a data frame."
    )


def as_table(X):
    """An array of two axes, of objects if need be, or a sparse matrix of columns."""
    if issparse(X):
        return X if X.format in ("csr", "csc") else X.tocsr()
    X = np.asarray(as_array(X, dtype=object))
    if X.ndim != 2:
        raise ValueError(
            f"categorical_features needs rows of one axis; got X of shape {X.shape}."
        )
    return X
