"""What rows came as: arrays of one type, or columns of their own types."""

from math import prod

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from .._runtime.validation import LOOSE, as_array
from .categories import level_codes
from .columns import ArrayColumns, column_of, columns_of, is_frame, is_missing, what
from .times import Times, count_from_one_start, held_in
from .values import Counts, kind_of


class BlockForm:
    """Arrays of numbers, dense or sparse, some columns of which may be categories.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, *shape)
    categorical : list of int or None
        None leaves rows of any number of axes whole.

    Attributes
    ----------
    names : None
    row_shape : tuple of int
        Shape of a row of X.
    shape : tuple of int
        Shape of a row of numbers.
    categorical : list of int
        Columns that are no numbers.
    kinds : list
        One, of all of them.
    labels : ndarray of int of shape (n, n_categorical) or None
        Categories as whole numbers.
    """

    names = None

    def __init__(self, X, categorical=None):
        self.row_shape, self.dtype = X.shape[1:], X.dtype
        self.categorical = categorical or []
        self._container = type(X) if issparse(X) else None
        self.shape = (len(self.columns),) if categorical else self.row_shape
        rows = self._part(X)
        self.kinds = [kind_of(rows if issparse(rows) else rows.reshape(len(rows), -1))]
        self.labels, self._levels = None, []
        if categorical:
            own = ArrayColumns(as_dense(X[:, categorical]))
            self.labels, self._levels = _categories(own, range(own.n_columns))

    @property
    def is_sparse(self):
        """Whether rows come, and new ones go, as a sparse matrix."""
        return self._container is not None

    @property
    def columns(self):
        """Made when asked for: it may be longer than all else that is pickled."""
        every = np.arange(prod(self.row_shape))
        return np.delete(every, self.categorical) if self.categorical else every

    def _part(self, X):
        return X[:, self.columns] if self.categorical else X

    def numbers(self, X):
        """Numbers (n, *shape) of checked rows, or what is made so later, part by part.

        Sparse rows, and integers, which take up to an eighth of what doubles take.
        """
        rows = self._part(X)
        return rows if is_made_later(rows) else self.dense(rows)

    def dense(self, rows):
        """Numbers (n, *shape) of rows without their categories."""
        flat = as_dense(rows).reshape(rows.shape[0], -1)
        return self.kinds[0].read(flat).reshape(rows.shape[0], *self.shape)

    def read(self, X):
        """Numbers (n, D) of other rows."""
        X = X if is_plain(X) else as_numeric(X)
        if X.shape[1:] != self.row_shape:
            raise ValueError(
                f"X has rows of shape {X.shape[1:]}, but the rows of fit had "
                f"{self.row_shape}."
            )
        return self.dense(self._part(X)).reshape(X.shape[0], -1)

    def restore(self, numbers, codes):
        """New rows of numbers (m, D) and of categories (m, n_categorical)."""
        rows = self.kinds[0].restore(numbers)
        if self.categorical:
            whole = np.empty((len(rows), *self.row_shape), dtype=self.dtype)
            whole[:, self.columns] = rows
            for i, j in enumerate(self.categorical):
                whole[:, j] = self._levels[i][codes[:, i]]
            rows = whole
        if self.is_sparse:
            return self._container(rows)
        return rows.reshape(-1, *self.row_shape)


def is_plain(X):
    """Whether rows are numbers as they are: to check few takes longer than they do."""
    is_array = type(X) is np.ndarray and X.dtype.kind in "biuf"
    return is_array and X.ndim > 1 and X.size > 0


def is_made_later(rows):
    """Whether rows wait to be numbers until a part of them is taken."""
    return issparse(rows) or rows.dtype.kind in "iub"


class ColumnForm:
    """Columns of their own types: those of a data frame, or of an array of objects.

    Parameters
    ----------
    columns : object
        Of :mod:`.columns`.
    categorical : list of int
    values : list of ndarray
        Values of the other columns.

    Attributes
    ----------
    names : list or None
        Of all columns.
    row_shape, shape, columns, categorical, kinds, labels : object
        As in :class:`BlockForm`.
    """

    is_sparse = False

    def __init__(self, columns, categorical, values):
        self.names, self.n_columns = columns.names, columns.n_columns
        self.row_shape, self.categorical = (self.n_columns,), categorical
        self._numeric = [j for j in range(self.n_columns) if j not in set(categorical)]
        self.columns = np.array(self._numeric, dtype=np.intp)
        self.shape = self.columns.shape
        self._head = columns.head()
        self.kinds = list(map(self._kind, self._numeric, values))
        count_from_one_start([kind for kind in self.kinds if kind.is_time])
        self.labels, self._levels = _categories(columns, categorical)

    def _kind(self, j, values):
        if values.dtype.kind in "mM":
            return Times(values, self._head, j)
        whole = self._head.whole_type(j) if values.dtype.kind == "f" else None
        # Whole numbers of which some are missing are read as floats.
        if whole is not None:
            return Counts(whole)
        # Of objects, which alone may be larger.
        largest = self._head.largest(j) if values.dtype == object else None
        return kind_of(values, largest)

    @classmethod
    def of(cls, columns, chosen, refused=None):
        """A form, and the numbers (n, D) of all rows.

        ``refused`` says what to say of a column that is neither numbers nor chosen.
        """
        n = columns.n_columns
        found = [_values(columns, j) for j in range(n)]
        others = [j for j in range(n) if found[j] is None]
        places = others
        if not isinstance(chosen, str):
            places = places_of(columns.names, n, chosen)
        lost = [j for j in others if j not in places]
        if lost:
            raise ValueError((refused or no_numbers)(what(columns, lost[0])))
        values = [found[j] for j in range(n) if j not in places]
        form = cls(columns, places, values)
        return form, form._matrix(len(columns), values)

    def _matrix(self, n, values):
        numbers = np.zeros((n, *self.shape))
        for i, some in enumerate(values):
            numbers[:, i] = self.kinds[i].read(some)
        return numbers

    def read(self, X):
        """Numbers (n, D) of other rows."""
        columns = columns_of(X) if is_frame(X) else ArrayColumns(as_table(X))
        if columns.n_columns != self.n_columns:
            raise ValueError(
                f"X has {columns.n_columns} columns, but the rows of fit had "
                f"{self.n_columns}."
            )
        values = [_values_again(columns, j) for j in self._numeric]
        for j, kind, some in zip(self._numeric, self.kinds, values, strict=True):
            if some is None or held_in(some.dtype) != kind.holds:
                raise ValueError(
                    f"{what(columns, j)} holds no {kind.holds}, as it did in the rows "
                    "of fit."
                )
        return self._matrix(len(columns), values)

    def restore(self, numbers, codes):
        """New rows of numbers (m, D) and of categories (m, n_categorical)."""
        new = [None] * self.n_columns
        for i, j in enumerate(self._numeric):
            new[j] = self._head.column(j, self.kinds[i].restore(numbers[:, i]))
        for i, j in enumerate(self.categorical):
            new[j] = self._head.again(self._levels[i], codes[:, i])
        return self._head.make(new)


def _values(columns, j):
    """Values of a column; None if they are neither numbers nor times."""
    values = columns.values(j)
    if values is not None and values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what(columns, j)}.")
    return values


def _values_again(columns, j):
    """The same of a column that held some in fit: now all of them may be missing."""
    values = _values(columns, j)
    if values is None and all(map(is_missing, columns.objects(j))):
        return np.full(len(columns), np.nan)
    return values


def as_numeric(X, **settings):
    """Numbers in an array or sparse matrix, in their type; NaN may be among them."""
    settings = {"accept_sparse": ["csr", "csc"], "ensure_2d": False} | settings
    return check_array(as_array(X), dtype="numeric", **settings, **LOOSE)


def places_of(names, n, chosen):
    """Numbers of columns given by numbers, names or a mask."""
    chosen = [] if chosen is None else list(chosen)
    if chosen and all(isinstance(c, bool | np.bool_) for c in chosen):
        if len(chosen) != n:
            raise ValueError(
                f"The mask categorical_features has {len(chosen)} entries, but X has "
                f"{n} columns."
            )
        return np.flatnonzero(chosen).tolist()
    return sorted({column_of(c, "categorical_features", names, (n,)) for c in chosen})


def no_numbers(column):
    """What to say of a column that holds no numbers."""
    return (
        f"{column} holds no numbers. Name it in categorical_features, so that new rows "
        "take its values from their parents, or encode it first, for instance with "
        "OneHotEncoder; in data frames categorical_features='auto' names all such "
        "columns."
    )


def as_table(X):
    """An array of two axes, of objects if need be, or a sparse one."""
    X = X if issparse(X) or isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if X.ndim != 2:
        raise ValueError(
            f"categorical_features needs rows of one axis; got X of shape {X.shape}."
        )
    return X


def _categories(columns, places):
    """Categories of some columns as whole numbers (n, k), and a value of each."""
    codes, levels = [], []
    for j in places:
        try:
            own, firsts = level_codes(columns.objects(j))
        except TypeError as error:
            raise TypeError(
                f"{what(columns, j)} holds values that are no categories: {error}. Make"
                " them strings or tuples first, or leave the column out."
            ) from error
        codes.append(own)
        levels.append(columns.some(j, firsts))
    return np.column_stack(codes) if codes else None, levels


def as_dense(rows):
    """Rows as an array, if they are sparse."""
    # Row by row: rounding, and with it the order of near-ties, depends on the layout.
    return rows.toarray(order="C") if issparse(rows) else rows
