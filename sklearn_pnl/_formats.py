"""What rows came as: numbers for the geometry, and new rows of the same kind."""

from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from decimal import Decimal
from functools import partial

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from ._frames import (
    OTHER,
    TIME,
    UNITS,
    ArrayColumns,
    columns_of,
    is_frame,
    is_pandas_series,
    level_codes,
    like_pandas,
    like_series,
    series_values,
    since,
    step_of_time,
)
from ._validation import as_numbers, check_finite, check_numbers, check_rows

# What rows at hand were read as, in a larger table that they are a part of.
_read_as = ContextVar("read_as", default=None)


def part_of(numbers, form, rows):
    """What some rows of a table were read as, for :func:`read_as`."""
    return numbers[rows] if isinstance(form, TableFormat) else None, form.part(rows)


@contextmanager
def read_as(numbers, form):
    """Tables read inside are a part of a larger one that was read already."""
    token = _read_as.set((numbers, form))
    try:
        yield
    finally:
        _read_as.reset(token)


def read_rows(estimator, X, y=None):
    """Rows as they are worked on, their numbers, and what they came as.

    Parameters
    ----------
    estimator : estimator
        With ``categorical_features``; gets the attributes that tell of rows.
    X : array-like, sparse matrix or data frame
    y : array-like of shape (n,), default=None
        Checked with the rows.

    Returns
    -------
    rows : array, sparse matrix or data frame
    numbers : ndarray or sparse matrix of shape (n, *shape)
    form : RowFormat or TableFormat
    y : ndarray or None
    """
    chosen, known = estimator.categorical_features, _read_as.get()
    # What else is read further in is another table.
    _read_as.set(None)
    if not is_frame(X) and chosen is None:
        if known is None:
            X, y = _check_array(estimator, X, y)
            return X, X, RowFormat(X), y
        estimator.input_shape_, estimator.n_features_in_ = X.shape[1:], X.shape[1]
        return X, X, known[1], y
    X = X if is_frame(X) else _as_table(X)
    validate_data(estimator, X, skip_check_array=True)
    if known is not None:
        numbers, form = known
        estimator.input_shape_ = (form.n_columns,)
        return X, numbers, form, y
    columns = columns_of(X)
    form = TableFormat(columns, chosen)
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
        return X if X.format in ("csr", "csc") else X.tocsr()
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

    Attributes
    ----------
    shape : tuple of int
        Shape of a row of numbers.
    integer_features : ndarray of int
        Flat columns that hold integers or booleans.
    whole : ndarray of int
        The same, among the numbers.
    labels, times, names, feature_names : None
        Nothing stands beside the numbers, none of them are times or have names.
    cut_out : bool
        Whether the numbers were cut out of a larger table, so that they are nobody
        else's and may be written over.
    """

    labels = times = names = feature_names = None
    cut_out = False

    def __init__(self, rows):
        self.dtype = np.dtype(rows.dtype)
        self.shape = rows.shape[1:]
        self._sparse = type(rows) if issparse(rows) else None
        size = int(np.prod(self.shape)) if self.dtype.kind in "iub" else 0
        self.integer_features = self.whole = np.arange(size)

    def part(self, rows):
        """The same for some of the rows."""
        part = copy(self)
        part.cut_out = True
        return part

    def read(self, X):
        """Numbers of other rows."""
        return as_numbers(X)

    def refuse_times(self, coefficients):
        """Refuse constraints on times: there are none."""

    def restore(self, rows, donors=None):
        """New rows (n, D), in float64 and theirs to keep, as the others came."""
        if len(self.whole):
            np.clip(np.rint(rows, out=rows), *_limits(self.dtype), out=rows)
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

    Attributes
    ----------
    names : list
        Names of the columns of numbers, or where they have none their places.
    shape : tuple of int
        Shape of a row of numbers.
    integer_features : ndarray of int
        Columns of the table that hold integers or booleans.
    whole : ndarray of int
        Columns of numbers that are whole: integers, booleans and times.
    feature_names : tuple of str or None
        Names of the columns of numbers for messages, if there are any.
    categorical : list of int
        Columns whose values new rows take from their parents.
    labels : ndarray of int of shape (n, n_categorical) or None
        Their values as whole numbers.
    times : ndarray of int or None
        Columns of numbers that are times.
    cut_out : bool
        As in :class:`RowFormat`.
    """

    cut_out = False

    def __init__(self, columns, chosen):
        names = columns.names
        self.n_columns = columns.n_columns
        self.categorical = _chosen(columns, chosen)
        others = set(self.categorical)
        self._numeric = [j for j in range(self.n_columns) if j not in others]
        self._parts = [_part(columns, j) for j in self._numeric]
        _count_from_one_start([p for p in self._parts if isinstance(p, _Times)])
        self.names = [j if names is None else names[j] for j in self._numeric]
        self.feature_names = None
        if self._numeric:
            given = [f"x{j}" if names is None else names[j] for j in self._numeric]
            self.feature_names = tuple(map(str, given))
        # Where nothing is a number, rows are one constant.
        self.shape = (max(1, len(self._numeric)),)
        integers = [i for i, p in enumerate(self._parts) if isinstance(p, _Whole)]
        self.integer_features = np.array(self._numeric, dtype=np.intp)[integers]
        whole = [i for i, p in enumerate(self._parts) if isinstance(p, _Whole | _Times)]
        self.whole = np.array(whole, dtype=np.intp)
        times = [i for i, part in enumerate(self._parts) if isinstance(part, _Times)]
        self.times = np.array(times, dtype=np.intp) if times else None
        self.labels = self._beside = None
        if self.categorical:
            labels = [_labels(columns, j) for j in self.categorical]
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

    def part(self, rows):
        """The same for some of the rows."""
        part = copy(self)
        part.cut_out = True
        if self.categorical:
            part.labels, part._beside = self.labels[rows], self._beside.part(rows)
        return part

    def refuse_times(self, coefficients):
        """Refuse constraints on times, which have no units that others could know."""
        if self.times is None or not coefficients[:, self.times].any():
            return
        name = self.names[self.times[coefficients[:, self.times].any(axis=0)][0]]
        raise ValueError(
            f"Constraints are about numbers, but column {name!r} holds times. Pass it "
            "as a number, such as days since a date, to ask for values of it."
        )

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


def _labels(columns, j):
    try:
        return level_codes(columns.values(j))[0]
    except TypeError as error:
        raise TypeError(
            f"{_what(columns, j)} holds values that are no categories: {error}. Make "
            "them strings or tuples first, or leave the column out."
        ) from error


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


def _part(columns, j):
    """How a column of a table is read as numbers and restored."""
    if columns.kind(j) == TIME:
        return _Times(columns, j)
    places = columns.places(j)
    if places is not None:
        return _Decimals(places)
    values = columns.numbers(j)
    return _Whole(values.dtype) if values.dtype.kind in "iub" else _Real()


class _Real:
    """A column of real numbers."""

    def read(self, columns, j):
        return columns.numbers(j)

    def restore(self, columns, j, numbers):
        return columns.column(j, numbers)


class _Whole(_Real):
    """A column of integers or booleans; new ones are rounded."""

    def __init__(self, dtype):
        self._dtype = dtype

    def restore(self, columns, j, numbers):
        whole = np.clip(np.rint(numbers), *_limits(self._dtype))
        return columns.column(j, whole.astype(self._dtype))


class _Decimals(_Real):
    """A column of decimal numbers; new ones have as many places."""

    def __init__(self, places):
        self._places = places

    def restore(self, columns, j, numbers):
        values = [Decimal(f"{number:.{self._places}f}") for number in numbers]
        return columns.column(j, np.array(values, dtype=object))


class _Times:
    """A column of times, in the longest unit that all of them keep.

    Points in time count from the first one, lengths of time from 0 if none is negative.
    """

    def __init__(self, columns, j):
        ticks, self._unit, missing = columns.ticks(j)
        there = ticks[~missing]
        self.is_length = columns.is_length(j)
        self._first = int(there.min()) if len(there) else 0
        self._step = step_of_time(there, self._unit)
        if self.is_length and self._first >= 0:
            self._first %= self._step

    @property
    def first(self):
        """Where counting starts, in nanoseconds."""
        return self._first * UNITS[self._unit]

    def start_at(self, first):
        """Count from an earlier time in nanoseconds, if whole steps lead there."""
        steps, rest = divmod(self.first - first, self._step * UNITS[self._unit])
        if rest == 0:
            self._first -= steps * self._step

    def read(self, columns, j):
        ticks, unit, missing = columns.ticks(j)
        if unit != self._unit:
            raise ValueError(
                f"{_what(columns, j)} holds times in units of {unit!r}, but those of "
                f"fit were in {self._unit!r}."
            )
        return np.where(missing, np.nan, since(ticks, self._first) / self._step)

    def restore(self, columns, j, numbers):
        steps = np.abs(np.rint(numbers)).astype(np.uint64)
        # Sums wrap, as the differences did.
        steps = np.where(numbers < 0, -steps, steps)
        ticks = steps * np.uint64(self._step) + np.uint64(self._first % 2**64)
        return columns.times(j, ticks.view(np.int64), self._unit)


def _count_from_one_start(times):
    """All points in time from the first one of the table: equations are simpler so."""
    points = [part for part in times if not part.is_length]
    start = min((part.first for part in points), default=0)
    for part in points:
        part.start_at(start)


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


def read_target(y, whom):
    """Numbers (n, t) of targets, and a function that adds more of them as they came."""
    if y is None:
        raise ValueError(
            f"{whom} requires y to be passed, but the target y is None: rows without "
            "targets are drawn by PNLAugmenter."
        )
    if is_frame(y):
        columns = columns_of(y)
        form = TableFormat(columns, None)
        values = form.numbers(columns)
        check_finite(values, "y", form.names)
        return values, lambda new: stack(y, [form.restore(new)])
    plain, as_they_came = plain_target(y)
    array = check_array(
        plain,
        dtype="numeric",
        ensure_2d=False,
        allow_nd=True,
        ensure_all_finite=False,
        input_name="y",
    )
    if array.ndim > 2:
        raise ValueError(
            f"y must have shape (n,) or (n, n_targets); got {array.shape}."
        )
    check_finite(array, "y")
    form = RowFormat(array)

    def with_more(new):
        joined = np.concatenate([array, form.restore(new.reshape(-1, *form.shape))])
        if is_pandas_series(y):
            return like_pandas(y, joined)
        return joined.tolist() if isinstance(y, list) else as_they_came(joined)

    return array.reshape(len(array), -1).astype(np.float64), with_more


def some_rows(X, rows):
    """Rows of any container."""
    return columns_of(X).part(rows).native() if is_frame(X) else X[rows]


def with_room(X, form, n_new):
    """The originals, with room for new rows that can be written there as they are.

    None if they cannot: those of other types are made in double precision first.
    """
    plain = isinstance(X, np.ndarray) and isinstance(form, RowFormat)
    if not plain or X.dtype != np.float64:
        return None
    whole = np.empty((len(X) + n_new, *X.shape[1:]))
    whole[: len(X)] = X
    return whole


def stack(X, new):
    """The originals as they are, then the new rows, in the container that came."""
    if is_frame(X):
        return columns_of(X).joined(new)
    if issparse(X):
        return type(X)(sparse_vstack([X, *new], format=X.format))
    return np.concatenate([X, *new])


def _limits(dtype):
    """Smallest and largest float that fit a type of integers or booleans."""
    if dtype.kind == "b":
        return 0.0, 1.0
    limits = np.iinfo(dtype)
    highest = float(limits.max)
    if int(highest) > limits.max:
        highest = np.nextafter(highest, 0)
    return float(limits.min), highest
