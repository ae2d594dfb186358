"""Rows as they are worked on: numbers and labels, and the way back."""

from copy import copy
from functools import cached_property

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack

from .._runtime.validation import check_finite, validated
from .columns import ArrayColumns, column_of, columns_of, is_frame
from .forms import (
    BlockForm,
    ColumnForm,
    as_dense,
    as_table,
    is_made_later,
    is_plain,
    no_numbers,
    places_of,
)

# Why what is missing cannot be had.
_WHOLE = (
    "Rows with missing cells are taken where the code is the whole row, a number for "
    "each column: without order, base, poset, reshaper, an embedding of your own or "
    "rows of several axes."
)


def read_table(estimator, X, missing=None):
    """Rows of any container as a table, checked.

    Parameters
    ----------
    estimator : estimator
        With ``categorical_features``; gets the attributes that tell of rows.
    X : array-like, sparse matrix or data frame
    missing : bool, default=None
        Whether cells may be missing, in rows of one axis; None does not speak of it.

    Returns
    -------
    table : Table

    Raises
    ------
    ValueError
        Of NaN and infinity, with row and column, of columns without numbers that are
        no categories, and where all are categories.
    """
    chosen, columns = estimator.categorical_features, None
    if is_frame(X):
        columns = columns_of(X)
    elif isinstance(chosen, str):
        # The columns of an array have no types of their own.
        chosen = None
    if columns is None and chosen is not None:
        checked = as_table(X)
        if checked.dtype.kind not in "biufc":
            columns = ArrayColumns(checked)
    if columns is not None:
        _check_size(columns)
        form, numbers = ColumnForm.of(columns, chosen)
        rows, owned = columns, True
    else:
        settings = {"accept_sparse": ["csr", "csc"], "dtype": "numeric"}
        rows = X if is_plain(X) else validated(estimator, X, no_numbers, **settings)
        places = None if chosen is None else places_of(None, rows.shape[1], chosen)
        form = BlockForm(rows, places)
        numbers = form.numbers(rows)
        # The rows that came are needed again, behind which new ones are put.
        owned = issparse(rows) or not np.may_share_memory(numbers, rows)
    if form.shape == (0,):
        raise ValueError(
            "All columns are categories: there are no numbers to draw between, and new "
            "rows would be copies, which RandomOverSampler of imbalanced-learn makes. "
            "Encode an ordered one as numbers, if there is any."
        )
    table = Table(form, numbers, rows, owned, isinstance(X, list))
    table.describe(estimator)
    plain = len(form.row_shape) == 1
    names = table.column_names if plain else None
    if missing is not None:
        missing = True if missing and plain else _WHOLE
    table.has_missing = check_finite(numbers, names=names, missing=missing)
    return table


class Table:
    """Rows of numbers with what they came as, made by :func:`read_table`.

    Parameters
    ----------
    form : object
        Of :mod:`.forms`.
    numbers : ndarray of shape (n, *shape) or sparse matrix
    origin : object
        Rows as they came; None in a part.
    owned : bool
        Whether :meth:`numbers` is nobody else's memory and may be written over.
    listed : bool
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
    labels : ndarray of int of shape (n, n_categorical) or None
        Categories, which new rows take from their parents, as whole numbers.
    row_numbers : ndarray of int or None
        Number of each row in the rows that came; None for all of them.
    whose : str
        Whose rows they are, for messages.
    has_missing : bool
        Whether some cells are NaN.
    """

    def __init__(self, form, numbers, origin, owned, listed):
        self._form, self._numbers = form, numbers
        # Labels are of rows: a form is not.
        self.labels, form.labels = form.labels, None
        self.row_shape, self.shape = form.row_shape, form.shape
        self.names, self.categorical = form.names, form.categorical
        self._origin, self._owned, self._listed = origin, owned, listed
        self.row_numbers, self.whose = None, "the training data"
        self.has_missing = False

    def __len__(self):
        return self._numbers.shape[0]

    def __getstate__(self):
        # What can be found again from the form is left out.
        cached = [k for k in vars(self) if hasattr(type(self), k)]
        return {k: v for k, v in vars(self).items() if k not in cached}

    def __copy__(self):
        # Of other rows too it is the same.
        part = object.__new__(type(self))
        vars(part).update(vars(self))
        return part

    # --- what columns are ---------------------------------------------------------

    @cached_property
    def columns(self):
        """Flat column (D,) of X behind each number."""
        return self._form.columns

    @cached_property
    def column_names(self):
        """What the column (D,) of each number is called: its name, else its place."""
        if self.names is None:
            return self.columns.tolist()
        return [self.names[j] for j in self.columns]

    @property
    def feature_names(self):
        """Names of the numbers for messages."""
        prefix = "x" if self.names is None else ""
        return tuple(f"{prefix}{name}" for name in self.column_names)

    @cached_property
    def times(self):
        """Which numbers (D,) are times or lengths of time."""
        return self._of_kinds("is_time")

    @cached_property
    def steps(self):
        """What each number (D,) is a multiple of, or 0."""
        return self._of_kinds("step")

    @cached_property
    def least_steps(self):
        """The same of any value of the type of each number (D,)."""
        return self._of_kinds("least_step")

    @cached_property
    def precision(self):
        """Unit roundoff (D,) of the type of each number, or 0 where there are steps."""
        return self._of_kinds("precision")

    @cached_property
    def type_ends(self):
        """Lower and upper end (D,) of the type of each number, infinite without one."""
        return self._of_kinds("lowest"), self._of_kinds("highest")

    @cached_property
    def starts(self):
        """What each number (D,) counts from: 0 unless it is far, and for times."""
        return np.where(self.times, 0.0, self._of_kinds("start").astype(float))

    @cached_property
    def integer_features(self):
        """Columns of X that hold integers or Booleans."""
        return self.columns[(self.steps == 1) & ~self.times]

    def _of_kinds(self, name):
        """What the kind of each number (D,) has by a name."""
        values = [getattr(kind, name) for kind in self._form.kinds]
        # Arrays are of one kind, which may tell the columns apart.
        values = values[0] if isinstance(self._form, BlockForm) else values
        return np.full(self.columns.shape, values)

    def column_of(self, key, whom):
        """The flat column of X that a key means.

        Parameters
        ----------
        key : object
            A name; a place, negative ones from the end; a tuple of places of a cell.
        whom : str
            What the key was given in, for messages.

        Returns
        -------
        column : int

        Raises
        ------
        ValueError
            Of keys that mean none, or two where names are whole numbers.
        """
        return column_of(key, whom, self.names, self.row_shape)

    def describe(self, estimator):
        """Set the attributes of an estimator that tell of rows."""
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

    def numbers(self):
        """Rows (n, D) of numbers in float64, or in float32 if X is no more precise."""
        return self._dense(self._numbers).reshape(len(self), -1)

    @property
    def is_sparse(self):
        """Whether rows come, and new ones go, as a sparse matrix."""
        return self._form.is_sparse

    def raw(self):
        """Rows (n, D) of numbers that are not made yet: of any type, or sparse."""
        rows = self._numbers
        if self.starts.any():
            # As they came they are no numbers that a double holds.
            rows = self.numbers()
        return rows if issparse(rows) else rows.reshape(len(self), -1)

    def columns_of(self, columns):
        """Some columns (n, m) of the numbers of all rows, dense, in float64."""
        return as_dense(self.raw()[:, columns]).astype(np.float64)

    def _dense(self, rows):
        return self._form.dense(rows) if is_made_later(rows) else rows

    def take(self, members, whose=None):
        """Some of the rows, as a table of their own."""
        part = copy(self)
        part._numbers = self._dense(self._numbers[members])
        part._origin, part._owned = None, True
        part.labels = None if self.labels is None else self.labels[members]
        every = self.row_numbers
        part.row_numbers = np.asarray(members) if every is None else every[members]
        part.whose = self.whose if whose is None else whose
        if self.has_missing:
            part.has_missing = bool(np.isnan(part._numbers).any())
        return part

    def without(self, columns):
        """The same with zeros for some of the numbers, which then tell nothing."""
        part = copy(self)
        part._numbers = self._numbers.copy()
        part._numbers[:, columns] = 0
        return part

    def without_rows(self):
        """The same without numbers: what it takes to read rows and to restore them."""
        part = copy(self)
        part._numbers = np.empty((0, *self.shape))
        part._origin = None
        return part

    def like(self, numbers, donors=None):
        """New rows as the others came.

        Parameters
        ----------
        numbers : ndarray of shape (m, D)
            May be written over.
        donors : ndarray of int of shape (m,), default=None
            Rows of this table that categories are taken from.

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
        """The originals as they are, then new rows, in the container that came."""
        origin = self._origin
        if issparse(origin):
            return joined([origin, *new])
        if not isinstance(origin, np.ndarray):
            whole = origin.stack(new)
        else:
            whole = np.concatenate([origin, *new])
        return whole.tolist() if self._listed else whole


def _check_size(columns):
    """Refuse tables without columns or rows."""
    n_rows, n_columns = len(columns), columns.n_columns
    if n_rows == 0 or n_columns == 0:
        raise ValueError(
            f"Found 0 {'sample' if n_columns else 'feature'}(s): X has {n_rows} rows "
            f"and {n_columns} columns; at least one of each is required."
        )


def joined(parts):
    """Sparse rows, some after the others, in the type of the first ones."""
    first = parts[0]
    return type(first)(sparse_vstack(parts, format=first.format))
