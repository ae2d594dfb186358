"""Tables: numbers and labels of rows, and conversion to the original container."""

from copy import copy
from math import prod

import numpy as np
from scipy.sparse import issparse

from .._runtime.validation import check_finite, validated
from .columns import ArrayColumns, column_of, columns_of, is_frame
from .forms import (
    BlockForm,
    ColumnForm,
    as_table,
    is_made_later,
    no_numbers,
)

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
        X = validated(estimator, X, no_numbers, **settings)
        form, origin, labels = BlockForm(X), ArrayColumns(X), None
        numbers = X if is_made_later(X) else form.dense(X)
        # New rows are appended to the original ones, which must not be overwritten.
        owned = issparse(X) or not np.may_share_memory(numbers, X)
    else:
        origin = columns_of(X if is_frame(X) else as_table(X))
        if 0 in (len(origin), origin.n_columns):
            raise ValueError(
                "Found 0 sample(s) or 0 feature(s): give some."
            )
        form, owned = ColumnForm(origin, chosen), True
        # The form serves any rows; these rows belong to the table.
        numbers, labels = form.numbers, form.labels
        form.numbers = form.labels = None
    if form.shape == (0,):
        raise ValueError(
            "All columns are categories, and new rows would be copies, which "
            "RandomOverSampler of imbalanced-learn makes. Encode one as numbers."
        )
    table = Table(form, numbers, labels, origin, owned, is_list)
    table.describe(estimator)
    names = table.column_names if len(form.row_shape) == 1 else None
    if missing is not None:
        missing = True if missing else _WHOLE
    table.has_missing = check_finite(table._numbers, names=names, missing=missing)
    return table


class Table:
    """Numeric rows with their original format, made by :func:`read_table`.

    Parameters
    ----------
    form : object
        Of :mod:`.forms`.
    numbers : ndarray of shape (n, *shape), or rows of which it is made part by part
        Integers take up to an eighth of what doubles take, sparse rows less.
    labels : ndarray of int of shape (n, n_categorical) or None
        Categories, which new rows take from their parents, as whole numbers.
    origin : object
        Original rows; None in a part.
    owned : bool
        Whether :meth:`numbers` is nobody else's memory and may be written over.
    is_list : bool
        Whether they came in a list.

    Attributes
    ----------
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
    row_numbers : ndarray of int or None
        Number of each row in the rows that came; None for all of them.
    data_name : str
        What the rows are called in messages.
    has_missing : bool
        Whether some cells are NaN.
    """

    def __init__(self, form, numbers, labels, origin, owned, is_list):
        self._form, self._numbers, self.labels = form, numbers, labels
        self._origin, self._owned, self._is_list = origin, owned, is_list
        self.row_shape, self.shape, self.names = form.row_shape, form.shape, form.names
        self.categorical, self.is_sparse = form.categorical, form.is_sparse
        self.columns, of_columns = form.columns, form.of_columns
        self.times, self.steps = of_columns("is_time"), of_columns("step")
        self.precision = of_columns("precision")
        self.type_ends = of_columns("lowest"), of_columns("highest")
        self.starts = np.where(self.times, 0.0, of_columns("start").astype(float))
        self.row_numbers, self.data_name = None, "the training data"
        self.has_missing = False

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

    def time_scale(self, j):
        """Where number j, a time, counts from, and its unit, as NumPy times."""
        return self._form.time_scale(j)

    @property
    def integer_features(self):
        """Columns of X that hold integers or Booleans."""
        return self.columns[(self.steps == 1) & ~self.times]

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
    def owned(self):
        """Whether :meth:`numbers` is nobody else's memory and may be written over."""
        return self._owned or is_made_later(self._numbers)

    @property
    def sparse_numbers(self):
        """Rows as a sparse matrix, where numbers are still in one; else None."""
        return self._numbers if issparse(self._numbers) else None

    def numbers(self):
        """Rows (n, D) of numbers in float64, or in float32 if X is no more precise."""
        return self._dense(self._numbers).reshape(len(self), prod(self.shape))

    def _dense(self, rows):
        return self._form.dense(rows) if is_made_later(rows) else rows

    def take(self, members, data_name=None):
        """Some of the rows, as a table of their own."""
        part = copy(self)
        part._numbers = self._dense(self._numbers[members])
        part._origin, part._owned = None, True
        part.labels = None if self.labels is None else self.labels[members]
        every = self.row_numbers
        part.row_numbers = np.asarray(members) if every is None else every[members]
        part.data_name = self.data_name if data_name is None else data_name
        if self.has_missing:
            part.has_missing = bool(np.isnan(part._numbers).any())
        return part

    def without_rows(self):
        """Table without rows, which can still read and restore rows."""
        part = copy(self)
        part._numbers = np.empty((0, *self.shape))
        part._origin = None
        return part

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
        codes = None if self.labels is None else self.labels[donors]
        return self._form.restore(numbers, codes)

    def read(self, X):
        """Numbers (m, D) of other rows."""
        return self._form.read(X)

    def stack(self, new):
        """Append new rows to the original ones, in their container."""
        whole = self._origin.stack(new)
        return whole.tolist() if self._is_list else whole
