"""Columns of a frame, array or sparse matrix: numbers, and levels as codes."""

from copy import copy
from itertools import repeat

import narwhals as nw
import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

from ..tables.columns import column_of


class Columns:
    """Columns of a frame, array or sparse matrix, by name or number."""

    def __init__(self, X, row="row"):
        # What a row is called in messages.
        self.row, self.names = row, None
        frame = nw.from_native(X, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            raise TypeError("X is a lazy data frame: collect it first.")
        if isinstance(frame, nw.DataFrame):
            self._X, self.names = frame, list(frame.columns)
        else:
            self._X = csc_array(widened(X)) if issparse(X) else np.asarray(X)
        if len(self._X.shape) != 2:
            raise ValueError(
                "X must be a data frame, or have two dimensions; got shape "
                f"{self._X.shape}."
            )
        self.n_columns = self._X.shape[1]

    def __len__(self):
        return self._X.shape[0]

    def sums(self, coefficients):
        """A sum of columns as coefficients (1, n), sparse if these are."""
        row = sum(a * self.numbers(key) for key, a in coefficients.items())[None]
        return csr_array(row) if issparse(self._X) else row

    def numbers(self, key):
        """A column of numbers."""
        column = self._column(key)
        if np.asarray(column).dtype.kind in "mM":
            raise ValueError(
                f"{self._asked.capitalize()} are about numbers, but {key!r} holds "
                "times. Pass it as a number, such as days since a date."
            )
        try:
            numbers = np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"Column {key!r} holds no numbers; ask for counts by level: "
                "{column: {level: count}}."
            ) from None
        for row in np.flatnonzero(~np.isfinite(numbers)):
            raise ValueError(
                f"Column {key!r} must hold numbers to be summed; {self.row} {row} is "
                f"{numbers[row]}. Impute it, or leave it out."
            )
        return numbers

    def codes(self, key, place):
        """The number of each row's level; -1 for levels that have none."""
        column = self._column(key)
        # Some containers call a missing cell None, which is no level in any.
        place = {level: k for level, k in place.items() if level is not None}
        native = column.to_native() if hasattr(column, "to_native") else column
        if hasattr(native, "factorize"):
            found, levels = native.factorize()
            numbers = [place.get(level, -1) for level in levels.tolist()]
            return np.array([*numbers, -1])[found]
        values = np.asarray(column)
        counts = values.dtype.kind in "iu" and values.min(initial=0) >= 0
        if counts and values.max(initial=0) < len(values):
            # Each number is looked up once.
            numbers = range(int(values.max()) + 1)
            return np.fromiter(map(place.get, numbers, repeat(-1)), np.intp)[values]
        found = map(place.get, _listed(column), repeat(-1))
        return np.fromiter(found, np.intp, len(self))

    def levels(self, keys):
        """Levels of a column, or tuples of those of several, by row."""
        columns = [_listed(self._column(key)) for key in keys]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def keys(self, of):
        """The columns that a column, or a tuple of some, means."""
        several = isinstance(of, tuple) and of not in (self.names or ())
        return of if several else (of,)

    def rows(self, rows):
        """The same columns of some rows."""
        part = copy(self)
        part._X = self._X.tocsr()[rows].tocsc() if issparse(self._X) else self._X[rows]
        return part

    @property
    def _asked(self):
        return "totals" if self.row == "row" else "margins"

    def _column(self, key):
        j = column_of(key, self._asked, self.names, (self.n_columns,))
        return self._X[:, [j]].toarray()[:, 0] if issparse(self._X) else self._X[:, j]


def _listed(column):
    """Values as their users write them: arrays make numbers of nanoseconds."""
    return column.to_list() if isinstance(column, nw.Series) else column.tolist()


def widened(matrix):
    """A sparse matrix whose repeated entries can be summed: small integers overflow."""
    small = matrix.dtype.kind in "iu" and matrix.dtype.itemsize < 8
    return matrix.astype(np.int64) if small else matrix


def check_order(given, X, name, whom="X"):
    """Refuse a Series with the labels of X in another order: places count, not labels.

    Labels that are others are those of another frame, and no order.
    """
    index, own = (getattr(x, "index", None) for x in (given, X))
    if not (hasattr(index, "equals") and hasattr(own, "equals")) or index.equals(own):
        return
    if len(index) == len(own) and set(index) == set(own):
        raise ValueError(
            f"{name} has the index of {whom} in another order, but is read by place: "
            f"give {name}.reindex({whom}.index), or {name}.to_numpy() if the places "
            "are right."
        )


def numbers_of(given, name, n, each, X, whom="X"):
    """A number for all, or one for each of n in the order of X, as an array (n,)."""
    check_order(given, X, name, whom)
    try:
        numbers = np.asarray(given, dtype=np.float64)
        shape = f"has the shape {numbers.shape}"
    except (TypeError, ValueError):
        numbers, shape = np.empty((0, 0)), f"is {given!r}"
    if numbers.shape not in ((), (n,)):
        raise ValueError(
            f"{name} must be a number or one a {each}, {n} of them; it {shape}."
        )
    return np.broadcast_to(numbers, n)
