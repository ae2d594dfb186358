"""What rows came as: numbers for the geometry, and new rows of the same kind."""

from functools import partial

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.utils.validation import validate_data

from ._frames import (
    OTHER,
    TIME,
    ArrayColumns,
    columns_of,
    is_frame,
    like_series,
    series_values,
    since,
    step_of_time,
)
from ._validation import as_numbers, check_finite, check_numbers, check_rows

# From here on integers are not all doubles.
_LARGEST = 2**53


def read_rows(estimator, X, y=None, *, exact=True):
    """Rows as they are worked on, their numbers, and what they came as.

    Parameters
    ----------
    estimator : estimator
        With ``categorical_features``; gets the attributes that tell of rows.
    X : array-like, sparse matrix or data frame
    y : array-like of shape (n,), default=None
        Checked with the rows.
    exact : bool, default=True
        Whether integers that are no doubles are counted from the middle of theirs.

    Returns
    -------
    rows : array, sparse matrix or data frame
    numbers : ndarray or sparse matrix of shape (n, *shape)
    form : RowFormat or TableFormat
    y : ndarray or None
    """
    chosen = estimator.categorical_features
    if not is_frame(X) and chosen is None:
        rows, y = _check_array(estimator, X, y)
        form = RowFormat(rows, exact)
        return rows, form.numbers(rows), form, y
    X = X if is_frame(X) else _as_table(X)
    validate_data(estimator, X, skip_check_array=True)
    columns = columns_of(X)
    form = TableFormat(columns, chosen, exact)
    estimator.input_shape_ = (form.n_columns,)
    numbers, y = check_numbers(estimator, form.numbers(columns), y)
    check_finite(numbers, names=form.names)
    return X, numbers, form, y


def _check_array(estimator, X, y):
    settings = {"dtype": "numeric", "accept_sparse": ["csr", "csc"], "reset": True}
    try:
        if y is not None:
            return check_rows(estimator, X, y=y, **settings)
        return check_rows(estimator, X, **settings), None
    except ValueError as error:
        column = _first_of_words(X)
        if column is None:
            raise
        raise ValueError(f"{error} {_no_numbers(f'Column {column}')}") from error


def _first_of_words(X):
    """The first column of an array or list that holds a string."""
    if issparse(X) or getattr(X, "dtype", np.dtype(object)).kind not in "OUS":
        return None
    X = np.array(X, dtype=object)
    if X.ndim != 2:
        return None
    words = [any(isinstance(v, str | bytes) for v in column) for column in X.T]
    return words.index(True) if any(words) else None


def _no_numbers(column):
    return (
        f"{column} holds no numbers. Name it in categorical_features, so that new rows "
        "take its values from their parents, or encode it first, for instance with "
        "OneHotEncoder; in data frames categorical_features='auto' names all such "
        "columns."
    )


def _as_table(X):
    """An array of two axes, of objects if need be."""
    if issparse(X):
        return X.tocsr()
    X = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if X.ndim != 2:
        raise ValueError(
            f"categorical_features needs rows of one axis; got X of shape {X.shape}."
        )
    return X


class RowFormat:
    """Arrays of numbers, dense or sparse.

    Parameters
    ----------
    rows : ndarray or sparse matrix of shape (n, *shape)
    exact : bool
        See :func:`read_rows`.

    Attributes
    ----------
    shape : tuple of int
        Shape of a row of numbers.
    integer_features : ndarray of int
        Flat columns that hold integers or booleans.
    labels, times : None
        Nothing stands beside the numbers, none of them are times.
    """

    labels = times = names = None

    def __init__(self, rows, exact=True):
        self.dtype = np.dtype(rows.dtype)
        self.shape = rows.shape[1:]
        self._sparse = type(rows) if issparse(rows) else None
        size = int(np.prod(self.shape)) if self.dtype.kind in "iub" else 0
        self.integer_features = np.arange(size)
        self._origin = None
        if size and exact and not issparse(rows):
            origin = _middle(rows.reshape(len(rows), -1))
            self._origin = origin if origin.any() else None

    def numbers(self, rows):
        """Numbers for the geometry."""
        if self._origin is None:
            return rows
        flat = _from_middle(rows.reshape(len(rows), -1), self._origin)
        return flat.reshape(rows.shape)

    def read(self, X):
        """Numbers of other rows, flat."""
        rows = as_numbers(X) if self._origin is None else np.asarray(X)
        return self.numbers(rows)

    def restore(self, rows, donors=None):
        """New rows (n, D), in float64 and theirs to keep, as the others came."""
        if len(self.integer_features):
            rows = _as_whole(rows, self.dtype, self._origin)
        rows = rows.astype(self.dtype, copy=False)
        if self._sparse is not None:
            return self._sparse(rows)
        return rows.reshape(-1, *self.shape)


class TableFormat:
    """Columns of their own types: those of a data frame, or some of an array as names.

    Parameters
    ----------
    columns : object
        Of :mod:`sklearn_pnl._frames`.
    chosen : "auto", array-like or None
        ``categorical_features``.
    exact : bool
        See :func:`read_rows`.

    Attributes
    ----------
    names : list
        Names of the columns of numbers, or where they have none their places.
    shape : tuple of int
        Shape of a row of numbers.
    integer_features : ndarray of int
        Columns of the table that hold integers or booleans.
    categorical : list of int
        Columns whose values new rows take from their parents.
    labels : ndarray of int of shape (n, n_categorical) or None
        Their values as whole numbers.
    times : ndarray of int or None
        Columns of numbers that are times.
    """

    def __init__(self, columns, chosen, exact=True):
        names = columns.names
        self.n_columns = columns.n_columns
        self.categorical = _chosen(columns, chosen)
        others = set(self.categorical)
        self._numeric = [j for j in range(self.n_columns) if j not in others]
        self._parts = [_part(columns, j, exact) for j in self._numeric]
        self.names = [j if names is None else names[j] for j in self._numeric]
        # Where nothing is a number, rows are one constant.
        self.shape = (max(1, len(self._numeric)),)
        whole = [j for j, p in zip(self._numeric, self._parts, strict=True) if p.whole]
        self.integer_features = np.array(whole, dtype=np.intp)
        times = [i for i, part in enumerate(self._parts) if isinstance(part, _Times)]
        self.times = np.array(times, dtype=np.intp) if times else None
        self.labels = self._beside = None
        if self.categorical:
            labels = [columns.labels(j) for j in self.categorical]
            self.labels = np.column_stack(labels)
            self._beside = columns.select(self.categorical)
        self._table = columns.head()

    def numbers(self, columns):
        """Numbers (n, D) for the geometry."""
        if not self._parts:
            return np.zeros((len(columns), 1))
        pairs = zip(self._numeric, self._parts, strict=True)
        return np.column_stack([part.read(columns, j) for j, part in pairs])

    def read(self, X):
        """Numbers of other rows."""
        columns = columns_of(X if is_frame(X) else _as_table(X))
        if columns.n_columns != self.n_columns:
            raise ValueError(
                f"X has {columns.n_columns} columns, but the rows of fit had "
                f"{self.n_columns}."
            )
        return self.numbers(columns)

    def restore(self, rows, donors=None):
        """New rows (n, D) as the others came, with categories of some of these."""
        new = [None] * self.n_columns
        for i, (j, part) in enumerate(zip(self._numeric, self._parts, strict=True)):
            new[j] = part.restore(self._table, j, rows[:, i])
        for i, j in enumerate(self.categorical):
            new[j] = self._beside.taken(i, donors)
        return self._table.make(new)


def _chosen(columns, chosen):
    """Places of the columns that are categories; refuse others without numbers."""
    every = range(columns.n_columns)
    if isinstance(chosen, str):
        if isinstance(columns, ArrayColumns):
            raise ValueError(
                "categorical_features='auto' goes by the types of the columns of a "
                "data frame. Name the columns of an array by their numbers or a mask."
            )
        return [j for j in every if columns.kind(j) == OTHER]
    places = [] if chosen is None else _places(columns, chosen)
    for j in every:
        if j not in places and columns.kind(j) == OTHER:
            raise ValueError(_no_numbers(_what(columns, j)))
    return places


def _what(columns, j):
    if columns.names is None:
        return f"Column {j}"
    return f"Column {columns.names[j]!r} ({columns.dtype(j)})"


def _places(columns, chosen):
    """Numbers of columns given by numbers, names or a mask."""
    chosen, n = list(chosen), columns.n_columns
    if all(isinstance(c, bool | np.bool_) for c in chosen) and chosen:
        if len(chosen) != n:
            raise ValueError(
                f"The mask categorical_features has {len(chosen)} entries, but X has "
                f"{n} columns."
            )
        return np.flatnonzero(chosen).tolist()
    return sorted({_place_of(columns, c) for c in chosen})


def _place_of(columns, c):
    n, names = columns.n_columns, columns.names
    if isinstance(c, str):
        if names is None or c not in names:
            held = "has no names" if names is None else f"has the columns {names}"
            raise ValueError(f"categorical_features names {c!r}, but X {held}.")
        return names.index(c)
    if not isinstance(c, int | np.integer) or not -n <= c < n:
        raise ValueError(
            f"categorical_features holds {c!r}; it must hold names or numbers of the "
            f"{n} columns, or be a mask."
        )
    return int(c) % n


def _part(columns, j, exact):
    """How a column of a table is read as numbers and restored."""
    if columns.kind(j) == TIME:
        return _Times(columns, j)
    values = columns.numbers(j)
    return _Whole(values, exact) if values.dtype.kind in "iub" else _Real()


class _Real:
    """A column of real numbers."""

    whole = False

    def read(self, columns, j):
        return columns.numbers(j)

    def restore(self, columns, j, numbers):
        return columns.column(j, numbers)


class _Whole:
    """A column of integers or booleans; new ones are rounded."""

    whole = True

    def __init__(self, values, exact):
        self._dtype = values.dtype
        self._origin = None
        if exact and values.dtype.kind in "iu":
            origin = _middle(values[:, None])
            self._origin = origin if origin[0] else None

    def read(self, columns, j):
        values = columns.numbers(j)
        if self._origin is None:
            return values
        return _from_middle(values[:, None], self._origin)[:, 0]

    def restore(self, columns, j, numbers):
        whole = _as_whole(numbers[:, None].copy(), self._dtype, self._origin)[:, 0]
        return columns.column(j, whole)


class _Times:
    """A column of times, in the longest unit that all of them keep, from the first."""

    whole = False

    def __init__(self, columns, j):
        ticks, self._unit, missing = columns.ticks(j)
        there = ticks[~missing]
        self._first = int(there.min()) if len(there) else 0
        self._step = step_of_time(there, self._unit)

    def read(self, columns, j):
        ticks, unit, missing = columns.ticks(j)
        if unit != self._unit:
            raise ValueError(
                f"{_what(columns, j)} holds times in units of {unit!r}, but those of "
                f"fit were in {self._unit!r}."
            )
        return np.where(missing, np.nan, since(ticks, self._first) / self._step)

    def restore(self, columns, j, numbers):
        steps = np.rint(numbers).astype(np.uint64)
        # Sums wrap, as the differences did.
        ticks = steps * np.uint64(self._step) + np.uint64(self._first % 2**64)
        return columns.times(j, ticks.view(np.int64), self._unit)


class Hidden:
    """Rows in a container that others do not know, and are not to touch."""

    def __init__(self, rows):
        self.rows = rows
        self.shape = rows.shape

    def __len__(self):
        return len(self.rows)


def plain_target(y):
    """Targets that others know, and a function from more of them to what came."""
    if hasattr(type(y), "to_numpy") and not hasattr(type(y), "iloc"):
        return series_values(y), partial(like_series, y)
    return y, lambda values: values


def some_rows(X, rows):
    """Rows of any container."""
    return columns_of(X).rows(rows) if is_frame(X) else X[rows]


def stack(X, new):
    """The originals as they are, then the new rows, in the container that came."""
    if is_frame(X):
        return columns_of(X).joined(new)
    if issparse(X):
        return type(X)(sparse_vstack([X, *new], format=X.format))
    return np.concatenate([X, *new])


# --- integers -------------------------------------------------------------------


def _middle(values):
    """Middles of the columns whose integers are no doubles, but their range is; or 0.

    Values that small differences are lost in, far from zero.
    """
    origin = np.zeros(values.shape[1], dtype=values.dtype)
    if values.dtype.kind == "b" or values.dtype.itemsize < 8 or not len(values):
        return origin
    for j, (low, high) in enumerate(zip(values.min(0), values.max(0), strict=True)):
        low, high = int(low), int(high)
        large = max(-low, high) > _LARGEST
        if large and high - low < _LARGEST and 2 * min(abs(low), abs(high)) > _LARGEST:
            origin[j] = low + (high - low) // 2
    return origin


def _from_middle(values, origin):
    """Integers as floats, counted from an origin each."""
    above = values >= origin
    up = np.where(above, values - origin, 0).astype(np.float64)
    return up - np.where(above, 0, origin - values).astype(np.float64)


def _as_whole(rows, dtype, origin):
    """Floats (n, D) rounded to what a type of integers holds; they are written over."""
    if origin is None:
        return np.clip(np.rint(rows, out=rows), *_limits(dtype), out=rows).astype(dtype)
    whole = np.empty(rows.shape, dtype=dtype)
    for j, start in enumerate(origin):
        low, high = _limits(dtype, int(start))
        steps = np.clip(np.rint(rows[:, j]), low, high)
        up = np.maximum(steps, 0).astype(np.uint64).astype(dtype)
        down = np.maximum(-steps, 0).astype(np.uint64).astype(dtype)
        whole[:, j] = start + up - down
    return whole


def _limits(dtype, origin=0):
    """Smallest and largest float that fit a type of integers, less an origin."""
    if dtype.kind == "b":
        return 0.0, 1.0
    limits = np.iinfo(dtype)
    return _within(limits.min - origin, 1), _within(limits.max - origin, -1)


def _within(limit, towards):
    """The nearest float of an integer that is not beyond it."""
    nearest = float(limit)
    if (int(nearest) - limit) * towards < 0:
        nearest = float(np.nextafter(nearest, towards * np.inf))
    return nearest
