"""Tables: numeric values and category codes of rows, and conversion back.

:func:`read_table` reads a container of rows as a :class:`Table`. A table converts new
numeric rows back to the container and the dtypes of the original rows.
"""

from copy import copy
from math import prod

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator

from .._utils.validation import (
    check_finite,
    errors_naming,
    not_numeric,
    on_host,
    validated,
)
from .._utils.warnings import warn_user
from .categories import level_codes
from .containers import ArrayColumns, column_of, columns_of, is_frame, places_of
from .number_types import NAMES, kind_of, share_scales

_ENCODE = (
    "Encode the column, or name it in categorical_features ('auto' selects all "
    "non-numeric columns of a data frame). If X mixes strings and numbers, pass a data "
    "frame, because arrays convert the numbers to strings."
)
PASS_FRAME = (
    "Encode the column, or pass a data frame, in which columns of strings are "
    "categories."
)
# Largest accepted range of a column in interquartile ranges. float64 has 16 digits, and
# relations of rows are satisfied to 9 digits.
_FAR = 1e9
# Sparse rows with more cells are never converted to one dense array. Therefore,
# equalities and orders of columns are not detected.
MOST_DENSE = 2**24
# Relative positions of 64 sampled rows. Multiples of the golden ratio avoid any period
# in the rows.
_PLACES = np.arange(1, 65) * 0.6180339887 % 1


def read_table(estimator, X, missing=None, keeps_sparse=False):
    """Read rows of any container as a validated table.

    Parameters
    ----------
    estimator : estimator
        Estimator with ``categorical_features``. Its attributes ``input_shape_``,
        ``n_features_in_`` and ``feature_names_in_`` are set.
    X : array-like, sparse matrix or data frame
    missing : bool or str, default=None
        True allows missing cells. A string is added to the error for missing cells.
    keeps_sparse : bool, default=False
        Whether sparse rows are read as a :class:`SparseTable`.

    Returns
    -------
    table : Table

    Raises
    ------
    ValueError
        If X contains NaN or infinity, if a column is neither numeric nor a category,
        or if all columns are categories.
    """
    X = on_host(X)
    chosen = estimator.categorical_features
    if not is_frame(X) and (chosen is None or isinstance(chosen, str)):
        # All columns of an array have the same dtype.
        is_plain = type(X) is np.ndarray and X.dtype.kind in "biuf" and X.ndim > 1
        rows = X
        # scikit-learn returns plain arrays of numbers unchanged.
        if not is_plain or not X.size:
            settings = {"accept_sparse": ["csr", "csc"], "dtype": "numeric"}
            is_reader = isinstance(estimator, TableReader)
            rows = validated(
                estimator, X, PASS_FRAME if is_reader else _ENCODE, **settings
            )
        kind = kind_of(rows)
        if kind.is_rounded and rows.ndim == 2 and not issparse(rows):
            # Large integers are counted from the minimum of each column.
            table = ColumnTable(ArrayColumns(rows), [])
        elif keeps_sparse and issparse(rows) and kind.start == 0:
            table = SparseTable(rows, kind)
        else:
            table = ArrayTable(rows, kind)
    else:
        columns = columns_of(X)
        if 0 in (len(columns), columns.n_columns):
            raise ValueError(
                f"X must have at least one row and one column; got {len(columns)} rows "
                f"and {columns.n_columns} columns. Check the filter that selected them."
            )
        table = ColumnTable(columns, chosen)
    if table.shape == (0,):
        raise ValueError(
            "All columns are categories, but at least one numeric column is required. "
            "Encode a column as numbers, or use SMOTEN (new combinations of levels) "
            "or RandomOverSampler (copies) of imbalanced-learn."
        )
    table.is_list = isinstance(X, list)
    table.describe(estimator)
    table.has_missing = check_finite(
        table._rows, names=table.column_names, missing=missing
    )
    return table


class TableReader(BaseEstimator):
    """Estimator for :func:`read_table`; by default, string columns are categories."""

    def __init__(self, categorical_features="auto"):
        self.categorical_features = categorical_features


class Table:
    """Numeric rows with their original format, made by :func:`read_table`.

    Attributes
    ----------
    labels : ndarray of int of shape (n, n_categorical) or None
        Category codes, which new rows take from their parents.
    row_shape : tuple of int
        Shape of a row of X.
    shape : tuple of int
        Shape of the numeric values of a row.
    names : list or None
        Names of the columns of X, which can be any objects.
    categorical : list of int
        Columns of X that are categories.
    columns : ndarray of int of shape (D,)
        Flat index in X of each numeric value.
    times : ndarray of bool of shape (D,)
        Mask of the numeric values that are times or durations.
    steps : ndarray of shape (D,)
        Resolution: each numeric value is a multiple of its step; 0 without a step.
    precision : ndarray of shape (D,)
        Unit roundoff of the dtype of each numeric value; 0 with a step.
    type_bounds : tuple of ndarray of shape (D,)
        Lower and upper bound of the dtype of each numeric value, which can be infinite.
    starts : ndarray of shape (D,)
        Origin of each numeric value: 0 except for large integers.
    scales : ndarray of int of shape (D,)
        Group of each numeric value. Columns of one group have the same origin and
        unit, and can be compared.
    integer_features : ndarray of int
        Indices of the columns of X that contain integers or booleans.
    row_numbers : ndarray of int or None
        Index of each row in the original rows; None for all rows.
    data_name : str
        Name of the rows in messages.
    has_missing : bool
        Whether some numeric values are NaN.
    is_large : bool
        Whether the original rows are sparse and too large for a dense array.
    warned : list
        Names of columns with a warning about extreme values. All tables that
        :meth:`take` returns share the list.
    is_list : bool
        Whether the rows were given as a list; they are then returned as a list.
    owned : bool
        Whether :meth:`numbers` returns memory that can be overwritten.
    """

    names, labels, categorical, row_numbers = None, None, (), None
    has_missing = is_list = is_large = False
    data_name, owned = "the training data", True

    def _set_kinds(self, kinds):
        """Set attributes of the numeric values from their kinds, or from one kind."""
        # One kind stands for all columns.
        of_column = np.zeros(len(self.columns), int)
        if len(kinds) > 1:
            of_column = np.arange(len(kinds))
        scales = [kind.scale for kind in kinds]
        read = [
            (k.is_time, k.step, k.precision, k.lowest, k.highest, scales.index(k.scale))
            for k in kinds
        ]
        times, step, precision, lowest, highest, scale = (
            np.array(read, float).reshape(-1, 6).T
        )
        self.times, self.steps = times[of_column] > 0, step[of_column]
        self.precision = precision[of_column]
        self.type_bounds = lowest[of_column], highest[of_column]
        self.scales = scale[of_column].astype(int)
        self._stored_as = np.result_type(bool, *(k.stored_as for k in kinds))
        # long double represents integers of 64 bits exactly on most machines.
        starts = np.array([kind.start for kind in kinds], np.longdouble)[of_column]
        self.starts = np.where(self.times, 0.0, starts)
        self.warned = []
        self.integer_features = self.columns[(self.steps == 1) & ~self.times]

        is_rounded = np.array([kind.is_rounded for kind in kinds], bool)[of_column]
        if is_rounded.any():
            names = np.array(self.column_names, dtype=object)[is_rounded]
            warn_user(
                f"Integers beyond 2**53 in {names[:5].tolist()} are converted to "
                "float64, because cells are missing or the range exceeds 2**53. New "
                "values are rounded. Drop columns of identifiers."
            )

    def __len__(self):
        return self._rows.shape[0]

    # --- columns ------------------------------------------------------------------

    @property
    def column_names(self):
        """The name or index of the column (D,) of each numeric value."""
        if self.names is None:
            return self.columns.tolist()
        return [self.names[j] for j in self.columns]

    @property
    def feature_names(self):
        """The names of the numeric columns for messages."""
        prefix = "x" if self.names is None else ""
        return tuple(f"{prefix}{name}" for name in self.column_names)

    def column_of(self, key, caller):
        """Resolve a key to a flat column of X; see :func:`.containers.column_of`."""
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
        """The rows as a sparse matrix; None if the rows are dense."""
        return self._rows if issparse(self._rows) else None

    def compressed(self, numbers):
        """Return new rows (b, D) in the format in which batches are stored.

        Rows of small integers are stored as integers, which need an eighth of the
        memory of float64.
        """
        dtype = self._stored_as
        if numbers.dtype == dtype or self.has_missing:
            return numbers
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            numbers = np.rint(numbers)
            np.clip(numbers, limits.min, limits.max, out=numbers)
        return numbers.astype(dtype)

    def take(self, members, data_name):
        """Return a table of a subset of the rows."""
        part = copy(self)
        part._rows = self._rows[members]
        part._origin, part.owned = None, True
        part.labels = None if self.labels is None else self.labels[members]
        part.row_numbers, part.data_name = members, data_name
        if self.has_missing:
            values = part._rows.data if issparse(part._rows) else part.numbers()
            part.has_missing = bool(np.isnan(values).any())
        return part

    def without_rows(self):
        """Return a table without rows, which can still read and restore rows."""
        part = copy(self)
        part._rows = np.empty((0, *self.shape))
        part._origin = None
        return part

    def stack(self, new):
        """Append new rows to the original rows, in the container of X."""
        rows = self._origin.stack(new)
        return rows.tolist() if self.is_list else rows


class ArrayTable(Table):
    """A table of one dense array with any number of axes, or of a sparse matrix.

    Integers and sparse rows are converted to floats one block at a time, which needs an
    eighth of the memory of float64 or less.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, *shape)
    kind : object
        Converter of the values; see :func:`.number_types.kind_of`.
    """

    def __init__(self, X, kind):
        self._origin, self._kind = ArrayColumns(X), kind
        self.row_shape = self.shape = X.shape[1:]
        self._container = type(X) if issparse(X) else None
        self.columns = np.arange(prod(self.shape))
        self._set_kinds([kind])
        self._rows, self.is_large = X, _is_large(X)
        # Without a conversion, the rows share memory with X.
        self.owned = not np.may_share_memory(self.read(X[:1]), X)

    def numbers(self):
        """Return rows (n, D) in float64, or in float32 if X is not more precise."""
        return self.read(self._rows)

    def read(self, X):
        """Return the numeric values (m, D) of rows in the format of X."""
        # The memory layout affects rounding, and thereby the order of near-ties.
        X = X.toarray(order="C") if issparse(X) else X
        return self._kind.read(X.reshape(len(X), len(self.columns)))

    def like(self, numbers, donors=None):
        """See :meth:`ColumnTable.like`."""
        rows = self._kind.restore(numbers)
        if self._container is not None:
            return self._container(rows)
        return rows.reshape(-1, *self.row_shape)


class SparseTable(ArrayTable):
    """A table of sparse rows, without the columns that have no stored cell.

    The cells of an omitted column are 0 in all rows, and therefore in all new rows. New
    rows can be dense or sparse.

    Parameters
    ----------
    X : sparse matrix of shape (n, n_columns)
    kind : object
        Converter of the values; see :func:`.number_types.kind_of`.
    """

    def __init__(self, X, kind):
        self._origin, self._kind, self._container = ArrayColumns(X), kind, type(X)
        self.row_shape, rows = X.shape[1:], X.tocsr()
        has_cells = np.bincount(rows.indices, minlength=X.shape[1]) > 0
        # A table needs at least one column.
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
        """Return rows (n, D) in float64."""
        return self._rows.toarray(order="C")

    def compressed(self, numbers):
        """See :class:`Table`."""
        rows = csr_array(numbers)
        rows.data = super().compressed(rows.data)
        return rows

    def like(self, numbers, donors=None):
        """See :meth:`ColumnTable.like`."""
        rows = csr_array(numbers)
        values, columns = self._kind.restore(rows.data), self.columns[rows.indices]
        shape = rows.shape[0], *self.row_shape
        rows = csr_array((values, columns, rows.indptr), shape)
        rows.eliminate_zeros()
        return self._container(rows)


class ColumnTable(Table):
    """A table whose columns have different dtypes, and can be categories.

    The columns come from a data frame, an array or a sparse matrix. Numeric values are
    stored as a dense array.

    Parameters
    ----------
    columns : object
        Columns of a container; see :func:`.containers.columns_of`.
    chosen : object
        Categorical columns, in the forms of ``categorical_features``.
    remedy : str
        Advice in the error about a column that is neither numeric nor chosen.
    name : str
        Name of the container in the error.
    """

    def __init__(self, columns, chosen, remedy=_ENCODE, name="X"):
        n, self._head, self._origin = columns.n_columns, columns.head(), columns
        self.names, self.row_shape = columns.names, (n,)
        readers = [columns.reader(j) for j in range(n)]
        values = [reader.values for reader in readers]
        not_numbers = [j for j in range(n) if values[j] is None]
        auto = isinstance(chosen, str)
        self.categorical = not_numbers if auto else places_of(columns.names, n, chosen)
        for j in set(not_numbers) - set(self.categorical):
            raise ValueError(not_numeric(f"{columns.what(j)} of {name}", remedy))
        self.columns = np.delete(np.arange(n), self.categorical)
        self.shape = self.columns.shape
        of_frame = self.names is not None
        self._kinds = [
            kind_of(
                values[j],
                readers[j].integer_dtype,
                of_frame,
                has_zone=readers[j].zone is not None,
            )
            for j in self.columns
        ]
        share_scales(self._kinds)
        self._set_kinds(self._kinds)
        self._rows = np.zeros((len(columns), *self.shape))
        for i, (j, kind) in enumerate(zip(self.columns, self._kinds, strict=True)):
            self._rows[:, i] = kind.read(values[j])
        # To restore rows, a reader only needs its dtype and one value per category.
        self._readers = [reader.part(np.arange(0)) for reader in readers]
        labels = []
        for j in self.categorical:
            with errors_naming(columns.what(j)):
                codes, first_rows = level_codes(readers[j].objects())
            labels.append(codes)
            self._readers[j] = readers[j].part(first_rows)
        self.labels = np.column_stack(labels) if labels else None

    def numbers(self):
        """Return the numeric values (n, D) in float64."""
        return self._rows

    def time_scale(self, j):
        """Return the origin and the unit of the time column j as NumPy times."""
        return self._kinds[j].zero_and_unit

    def zone(self, j):
        """Return the time zone of the date column j; None without a time zone."""
        return self._readers[self.columns[j]].zone

    def read(self, X, name="X"):
        """Return the numeric values (m, D) of rows X; ``name`` is used in errors."""
        columns = columns_of(X)
        numbers = np.zeros((len(columns), *self.shape))
        for i, (j, kind) in enumerate(zip(self.columns, self._kinds, strict=True)):
            values = columns.reader(j).values
            if values is None or NAMES.get(values.dtype.kind, "numbers") != kind.holds:
                raise ValueError(
                    f"{columns.what(j)} of {name} must contain {kind.holds}, as in the "
                    f"training rows. Convert the column to {kind.holds}."
                )
            with errors_naming(columns.what(j)):
                numbers[:, i] = kind.read(values)
        return numbers

    def like(self, numbers, donors=None):
        """Convert numeric values to rows in the format of X.

        Parameters
        ----------
        numbers : ndarray of shape (m, D)
            Numeric values; the array can be overwritten.
        donors : ndarray of int of shape (m,), default=None
            Rows of this table whose categories the new rows take.

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
    """Warn if the range of a column is a billion times its interquartile range.

    The quartiles are computed from a sample of the rows. If the quartiles are equal,
    they are computed again without the rows that have this value. Sparse rows are not
    checked. There is one warning for all classes of a table.

    Parameters
    ----------
    table : Table
        Rows of a class.
    least, most : ndarray of shape (D,)
        Minimum and maximum of the columns in the rows of all classes.
    """
    n = len(table)
    if table.sparse_rows is not None or not n or table.warned:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        width = most - least
        some = table.take((n * _PLACES).astype(int), "some rows").numbers()
        first, third = _middle_half(some)
        # Different values of a column differ by at least one step.
        near = np.fmax(third - first, table.steps)
        columns = np.flatnonzero(width > _FAR * near)
        if not len(columns):
            return
        some = table.take(np.arange(0, n, n // 2**12 + 1), "some rows").numbers()
        some = some[:, columns]
        first, third = _middle_half(some)
        unequal = np.where(some == first, np.nan, some.astype(np.float64))
        spread = np.subtract(*_middle_half(unequal)[::-1])
        spread = np.where(third > first, third - first, spread)
        far = (width[columns] > _FAR * spread) & (spread > 0)
    for i in np.flatnonzero(far)[:1]:
        j = columns[i]
        table.warned.append(table.column_names[j])
        end = "largest" if most[j] - third[i] > first[i] - least[j] else "smallest"
        warn_user(
            f"The {end} value in column {table.column_names[j]!r} is more than a "
            "billion interquartile ranges away from most values. Differences between "
            "these values are lost to rounding. Replace codes for missing values by "
            "NaN, or drop the rows."
        )


def _middle_half(sample):
    """Return the first and the third quartile of each column, without NaN."""
    ordered = np.sort(sample, axis=0)
    count = np.count_nonzero(ordered == ordered, axis=0)
    places = np.array([count // 4, np.maximum(3 * count // 4, 1) - 1])
    return np.take_along_axis(ordered, np.maximum(places, 0), axis=0)
