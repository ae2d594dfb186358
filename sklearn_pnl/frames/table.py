"""Tables: numbers and labels of rows, and conversion to the original container."""

from copy import copy
from math import prod

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator

from .._runtime.validation import (
    check_finite,
    errors_naming,
    refuse_device,
    validated,
    warn_user,
)
from .categories import level_codes
from .columns import ArrayColumns, column_of, columns_of, is_frame, places_of
from .values import NAMES, kind_of, share_scales

# What is said of a column without numbers.
_NO_NUMBERS = (
    "holds no numbers. Name it in categorical_features ('auto' names all such columns "
    "of a data frame), or encode it first. An array of words and numbers holds words "
    "alone: pass a data frame."
)
# Range in spreads of most values: float64 has 16 digits, of which rows keep 9.
_FAR = 1e9
# Cells of sparse rows beyond which they are not made dense as a whole: then neither
# equalities nor orders are looked for.
MOST_DENSE = 2**24
# Parts of the rows at which some are looked at, in no period that rows may have.
_PLACES = np.arange(1, 65) * 0.6180339887 % 1


def read_table(estimator, X, missing=None, keeps_sparse=False):
    """Rows of any container as a table, checked.

    Parameters
    ----------
    estimator : estimator
        With ``categorical_features``; gets ``input_shape_`` and names of features.
    X : array-like, sparse matrix or data frame
    missing : bool or str, default=None
        True where cells may be missing, or advice for the error that they are.
    keeps_sparse : bool, default=False
        Whether sparse rows are read as a :class:`SparseTable`.

    Returns
    -------
    table : Table

    Raises
    ------
    ValueError
        Of NaN and infinity, with row and column, of columns without numbers that are
        no categories, and where all are categories.
    """
    refuse_device(estimator, X)
    chosen = estimator.categorical_features
    if not is_frame(X) and (chosen is None or isinstance(chosen, str)):
        # The columns of an array have no types of their own.
        is_plain = type(X) is np.ndarray and X.dtype.kind in "biuf" and X.ndim > 1
        rows = X
        # scikit-learn would leave arrays of numbers as they are.
        if not is_plain or not X.size:
            settings = {"accept_sparse": ["csr", "csc"], "dtype": "numeric"}
            rows = validated(estimator, X, _NO_NUMBERS, **settings)
        kind = kind_of(rows)
        if kind.is_rounded and rows.ndim == 2 and not issparse(rows):
            # Each column counts from a start of its own.
            table = ColumnTable(ArrayColumns(rows), [])
        elif keeps_sparse and issparse(rows) and kind.start == 0:
            table = SparseTable(rows, kind)
        else:
            table = ArrayTable(rows, kind)
    else:
        columns = columns_of(X)
        if 0 in (len(columns), columns.n_columns):
            raise ValueError("Found 0 sample(s) or 0 feature(s) in X: give some.")
        table = ColumnTable(columns, chosen)
    if table.shape == (0,):
        raise ValueError(
            "All columns are categories, and new rows would be copies, which "
            "RandomOverSampler of imbalanced-learn makes. Encode one as numbers."
        )
    table.is_list = isinstance(X, list)
    table.describe(estimator)
    table.has_missing = check_finite(
        table._rows, names=table.column_names, missing=missing
    )
    return table


class TableReader(BaseEstimator):
    """What tables are read for where there is no estimator: words are categories."""

    def __init__(self, categorical_features="auto"):
        self.categorical_features = categorical_features


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
    scales : ndarray of int of shape (D,)
        Equal for numbers that count from one zero in one unit, and so can be compared.
    integer_features : ndarray of int
        Columns of X that hold integers or Booleans.
    row_numbers : ndarray of int or None
        Number of each row in the rows that came; None for all of them.
    data_name : str
        What the rows are called in messages.
    has_missing : bool
        Whether some cells are NaN.
    is_large : bool
        Whether the rows, or those that they were taken of, are sparse and never all
        dense.
    warned : list
        Names of columns with a value that was warned of, one list for all parts.
    is_list : bool
        Whether the rows came as a list, and are returned as one.
    owned : bool
        Whether :meth:`numbers` is nobody else's memory and may be written over.
    """

    names, labels, categorical, row_numbers = None, None, (), None
    has_missing = is_list = is_large = False
    data_name, owned = "the training data", True

    def _set_kinds(self, kinds):
        """Say what the numbers are, each of its kind, or all of one."""

        def each(name):
            return np.full(len(self.columns), [getattr(kind, name) for kind in kinds])

        self.times, self.steps = each("is_time").astype(bool), each("step")
        self.precision = each("precision")
        self.type_ends = each("lowest"), each("highest")
        # Of 64 bits, where the machine has such floats.
        starts = np.array([kind.start for kind in kinds], np.longdouble)
        self.starts = np.where(self.times, 0.0, starts)
        scales = [kind.scale for kind in kinds]
        self.scales = np.full(len(self.columns), [*map(scales.index, scales)])
        self.warned = []
        self.integer_features = self.columns[(self.steps == 1) & ~self.times]

        if any(kind.is_rounded for kind in kinds):
            warn_user(
                "Whole numbers beyond 2 ** 53, of such a range or beside missing cells,"
                " are read as float64, which rounds new ones and sums of theirs."
            )

    def __len__(self):
        return self._rows.shape[0]

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

    # --- rows ---------------------------------------------------------------------

    @property
    def sparse_rows(self):
        """Rows as a sparse matrix, if they came as one and are numbers; else None."""
        return self._rows if issparse(self._rows) else None

    def compressed(self, numbers):
        """New rows (b, D) as they are held until all are there."""
        return numbers

    def take(self, members, data_name):
        """Some of the rows, as a table of their own."""
        part = copy(self)
        part._rows = self._rows[members]
        part._origin, part.owned = None, True
        part.labels = None if self.labels is None else self.labels[members]
        part.row_numbers, part.data_name = members, data_name
        values = part._rows.data if issparse(part._rows) else part.numbers()
        part.has_missing = self.has_missing and bool(np.isnan(values).any())
        return part

    def without_rows(self):
        """Table without rows, which can still read and restore rows."""
        part = copy(self)
        part._rows = np.empty((0, *self.shape))
        part._origin = None
        return part

    def stack(self, new):
        """Append new rows to the original ones, in their container."""
        whole = self._origin.stack(new)
        return whole.tolist() if self.is_list else whole


class ArrayTable(Table):
    """Arrays of numbers of any number of axes, dense or sparse.

    Integers and sparse rows become floats a part at a time: they take up to an eighth
    of what doubles take, or less.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, *shape)
    kind : object
        How its numbers are read and restored; see :func:`.values.kind_of`.
    """

    def __init__(self, X, kind):
        self._origin, self._kind = ArrayColumns(X), kind
        self.row_shape = self.shape = X.shape[1:]
        # No type that a reader of files has to trust.
        self._container = type(X) if issparse(X) else None
        self.columns = np.arange(prod(self.shape))
        self._set_kinds([kind])
        self._rows, self.is_large = X, _is_large(X)
        # Rows that need no conversion are those that new ones are appended to.
        self.owned = not np.may_share_memory(self.read(X[:1]), X)

    def numbers(self):
        """Rows (n, D) of numbers in float64, or in float32 if X is no more precise."""
        return self.read(self._rows)

    def read(self, X):
        """Numbers (m, D) of rows in the format of X."""
        # Row by row: rounding, and with it the order of near-ties, depends on it.
        X = X.toarray(order="C") if issparse(X) else X
        return self._kind.read(X.reshape(len(X), len(self.columns)))

    def like(self, numbers, donors=None):
        """See :meth:`ColumnTable.like`."""
        rows = self._kind.restore(numbers)
        if self._container is not None:
            return self._container(rows)
        return rows.reshape(-1, *self.row_shape)


class SparseTable(ArrayTable):
    """Sparse rows of numbers: columns without a stored cell are left out.

    Their cells are 0 in all rows, and so in all rows that are mixed from them. New rows
    may be dense or sparse.

    Parameters
    ----------
    X : sparse matrix of shape (n, n_columns)
    kind : object
        How its numbers are read and restored; see :func:`.values.kind_of`.
    """

    def __init__(self, X, kind):
        self._origin, self._kind, self._container = ArrayColumns(X), kind, type(X)
        self.row_shape, rows = X.shape[1:], X.tocsr()
        has_cells = np.bincount(rows.indices, minlength=X.shape[1]) > 0
        # Rows without any cell have one column as well.
        has_cells[0] |= not has_cells.any()
        self.columns = np.flatnonzero(has_cells)
        self.shape = self.columns.shape
        self._set_kinds([kind])
        if kind.step == 1:
            self.integer_features = np.arange(X.shape[1])
        place = (np.cumsum(has_cells) - 1)[rows.indices]
        cells = kind.read(rows.data).astype(np.float64), place, rows.indptr.copy()
        self._rows = csr_array(cells, (X.shape[0], *self.shape))
        self._rows.sum_duplicates()
        self._rows.eliminate_zeros()
        self.is_large = _is_large(self._rows)

    def numbers(self):
        """See :class:`ArrayTable`; in float64."""
        return self._rows.toarray(order="C")

    def compressed(self, numbers):
        """See :class:`Table`."""
        return csr_array(numbers)

    def like(self, numbers, donors=None):
        """See :meth:`ColumnTable.like`."""
        rows = csr_array(numbers)
        values, columns = self._kind.restore(rows.data), self.columns[rows.indices]
        shape = rows.shape[0], *self.row_shape
        rows = csr_array((values, columns, rows.indptr), shape)
        rows.eliminate_zeros()
        return self._container(rows)


class ColumnTable(Table):
    """Columns of their own types, some of them perhaps categories.

    From a data frame, an array or a sparse matrix; numbers are dense here.

    Parameters
    ----------
    columns : object
        Of :mod:`.columns`.
    chosen : object
        Which are categories, in any way of ``categorical_features``.
    refused : str
        Said of a column that is neither numeric nor chosen.
    """

    def __init__(self, columns, chosen, refused=_NO_NUMBERS):
        n, self._head, self._origin = columns.n_columns, columns.head(), columns
        self.names, self.row_shape = columns.names, (n,)
        readers = [columns.reader(j) for j in range(n)]
        values = [reader.values for reader in readers]
        others = [j for j in range(n) if values[j] is None]
        auto = isinstance(chosen, str)
        self.categorical = others if auto else places_of(columns.names, n, chosen)
        for j in set(others) - set(self.categorical):
            raise ValueError(f"{columns.what(j)} {refused}")
        self.columns = np.delete(np.arange(n), self.categorical)
        self.shape = self.columns.shape
        of_frame = self.names is not None
        self._kinds = [
            kind_of(values[j], readers[j].whole, of_frame, readers[j].zone is not None)
            for j in self.columns
        ]
        share_scales(self._kinds)
        self._set_kinds(self._kinds)
        self._rows = np.zeros((len(columns), *self.shape))
        for i, (j, kind) in enumerate(zip(self.columns, self._kinds, strict=True)):
            self._rows[:, i] = kind.read(values[j])
        # Restoring needs the types of columns and one value of each level, no rows.
        self._readers = [reader.part(np.arange(0)) for reader in readers]
        labels = []
        for j in self.categorical:
            with errors_naming(columns.what(j)):
                codes, first_rows = level_codes(readers[j].objects())
            labels.append(codes)
            self._readers[j] = readers[j].part(first_rows)
        self.labels = np.column_stack(labels) if labels else None

    def numbers(self):
        """Rows (n, D) of numbers in float64."""
        return self._rows

    def time_scale(self, j):
        """What 0 and 1 of number j, a time, stand for, as NumPy times."""
        return self._kinds[j].zero_and_unit

    def zone(self, j):
        """The time zone of number j, a date; None of dates without one."""
        return self._readers[self.columns[j]].zone

    def read(self, X, name="X"):
        """Numbers (m, D) of other rows with as many columns; ``name`` is for errors."""
        columns = columns_of(X)
        numbers = np.zeros((len(columns), *self.shape))
        for i, (j, kind) in enumerate(zip(self.columns, self._kinds, strict=True)):
            values = columns.reader(j).values
            if values is None or NAMES.get(values.dtype.kind, "numbers") != kind.holds:
                raise ValueError(
                    f"{name}: {columns.what(j)} holds no {kind.holds}, as it did in "
                    "the rows of fit."
                )
            numbers[:, i] = kind.read(values)
        return numbers

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


def _is_large(rows):
    return issparse(rows) and prod(rows.shape) > MOST_DENSE


# --- extreme values ---------------------------------------------------------------


def warn_extreme_values(table, least, most):
    """Warn of the column whose range is a billion times the spread of most rows.

    That is the spread of the middle half of some rows; where these are equal, of the
    middle half of the others. Sparse rows are not looked at.
    Rows of the classes of one table are warned of once.

    Parameters
    ----------
    table : Table
        Rows of a class.
    least, most : ndarray of shape (D,)
        Ends of the columns in the rows of all classes.
    """
    n = len(table)
    if table.sparse_rows is not None or not n or table.warned:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        width = most - least
        some = table.take((n * _PLACES).astype(int), "some rows").numbers()
        first, third = _middle_half(some)
        # Values that differ at all differ by a step.
        near = np.fmax(third - first, table.steps)
        columns = np.flatnonzero(width > _FAR * near)
        if not len(columns):
            return
        some = table.take(np.arange(0, n, n // 2**12 + 1), "some rows").numbers()
        some = some[:, columns]
        first, third = _middle_half(some)
        others = np.where(some == first, np.nan, some.astype(np.float64))
        spread = np.subtract(*_middle_half(others)[::-1])
        spread = np.where(third > first, third - first, spread)
        far = (width[columns] > _FAR * spread) & (spread > 0)
    for i in np.flatnonzero(far)[:1]:
        j = columns[i]
        table.warned.append(table.column_names[j])
        end = "largest" if most[j] - third[i] > first[i] - least[j] else "smallest"
        warn_user(
            f"The {end} value in column {table.column_names[j]!r} is more than a "
            "billion interquartile ranges away from the others, which are equal beside "
            "it up to rounding. Set what stands for missing values to NaN, or drop "
            "such rows."
        )


def _middle_half(sample):
    """The first and the third quartile of each column, without NaN."""
    ordered = np.sort(sample, axis=0)
    count = np.count_nonzero(ordered == ordered, axis=0)
    places = np.array([count // 4, np.maximum(3 * count // 4, 1) - 1])
    return np.take_along_axis(ordered, np.maximum(places, 0), axis=0)
