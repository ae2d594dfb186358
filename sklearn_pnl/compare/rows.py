"""Rows to compare, from arrays and data frames: numbers, categories, features, points.

A number is a feature, standardised by the training rows. A category is a feature of 0
and 1 for each of its most frequent levels, standardised likewise. Distances are between
points, where a category counts as one feature: rows that differ in it are so far apart
that the mean square over pairs of training rows is 2, as it is for a standardised one.

A number may be missing. Where distances and classifiers need one, it is the median of
the training rows, and one more feature of 0 and 1 says so, standardised likewise.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.utils import check_array

from .._runtime.validation import LOOSE, as_array, check_finite, unheard
from ..tables import columns_of, is_frame
from ..tables.categories import is_missing, level_codes
from ..tables.times import held_in

# Standardised values beyond this have squares that overflow in the float32 of trees.
_LARGEST = 1e18
# Levels of a category that are features: trees get no more from rarer ones, and 2,000
# of them take a minute.
_LEVELS = 20
_FEWEST = {"X": 2, "X_new": 1, "X_test": 2}


@dataclass(frozen=True)
class Rows:
    """Rows of one kind as read, and in standard deviations of the training rows.

    Attributes
    ----------
    numbers : ndarray of shape (n, n_numbers)
        NaN where they are missing.
    codes : ndarray of int of shape (n, n_categories)
        Levels.
    features : ndarray of shape (n, n_features)
        NaN where they are missing.
    filled : ndarray of shape (n, n_filled)
        Without NaN, and behind the features which of them were missing.
    points : ndarray or csr_array
        Where rows are for distances; sparse if there are categories.
    """

    numbers: np.ndarray
    codes: np.ndarray
    features: Any = None
    filled: Any = None
    points: Any = None

    def __len__(self):
        return len(self.numbers)

    @cached_property
    def there(self):
        """How many values of each feature there are."""
        return n_there(self.features)


def n_there(X):
    """How many values of each feature there are."""
    return np.sum(~np.isnan(X), axis=0)


def read_rows(given):
    """Training, new and perhaps test rows, by the names that users know them by.

    Parameters
    ----------
    given : dict of str to array-like
        "X", "X_new" and, if there are any, "X_test".

    Returns
    -------
    rows : dict of str to Rows
    numbers : tuple of str
        Names of the numbers.
    levels : list of tuple
        Name and levels of each category, those of the training rows first.
    """
    if is_frame(given["X"]):
        return _read_frames(given)
    arrays, shape = {}, None
    for name, X in given.items():
        X = _check_numbers(X, name)
        shape = X.shape[1:] if shape is None else shape
        if X.shape[1:] != shape:
            raise ValueError(
                f"{name} has rows of shape {X.shape[1:]}, but X has rows of shape "
                f"{shape}."
            )
        if 0 in shape:
            raise ValueError(f"{name} has rows of shape {shape}, without any value.")
        none = np.empty((len(X), 0), np.intp)
        arrays[name] = Rows(X.reshape(len(X), -1), none)
    names = tuple("x" + "_".join(map(str, cell)) for cell in np.ndindex(shape))
    return arrays, names, []


def _check_numbers(X, name, names=None):
    """Rows in float64, with as many as are needed."""
    X = check_array(
        as_array(X, name),
        dtype=np.float64,
        order="C",
        ensure_min_samples=_FEWEST[name],
        ensure_min_features=0,
        estimator="compare_samples",
        input_name=name,
        **LOOSE,
    )
    check_finite(X, name, names, missing=True)
    return X


def _read_frames(given):
    tables = {
        name: columns_of(X if is_frame(X) else np.asarray(X))
        for name, X in given.items()
    }
    first = tables["X"]
    values = {
        name: [columns.values(j) for j in range(columns.n_columns)]
        for name, columns in tables.items()
    }
    kinds = [column is not None and held_in(column.dtype) for column in values["X"]]
    for name, columns in tables.items():
        _check_columns(columns, name, first, kinds, values[name])
    if not kinds:
        raise ValueError("X has no column.")
    plain = [j for j, kind in enumerate(kinds) if kind]
    others = [j for j, kind in enumerate(kinds) if not kind]
    names = tuple(str(first.names[j]) for j in plain)
    codes, levels = [], []
    for j in others:
        words = [word for columns in tables.values() for word in columns.objects(j)]
        found, at = level_codes(words)
        held = [None if is_missing(words[i]) else words[i] for i in at]
        codes.append(found)
        levels.append((str(first.names[j]), held))
    ends = np.cumsum([len(columns) for columns in tables.values()])
    codes = np.array(codes, np.intp).reshape(-1, ends[-1]).T
    rows = {}
    for name, own in zip(tables, np.split(codes, ends[:-1]), strict=True):
        numbers = [_numbers(values[name][j]) for j in plain]
        stacked = np.column_stack(numbers or [np.empty((len(own), 0))])
        rows[name] = Rows(_check_numbers(stacked, name, names), own)
    return rows, names, levels


def _check_columns(columns, name, first, kinds, values):
    """Refuse other columns than those of the training rows."""
    if columns.n_columns != len(kinds):
        raise ValueError(
            f"{name} has {columns.n_columns} columns, but X has {len(kinds)}."
        )
    if columns.names is None and any(kind != "numbers" for kind in kinds):
        raise ValueError(
            f"{name} must be a data frame, as X is, whose columns are not all numbers."
        )
    for at, other in enumerate(columns.names or []):
        if first.names[at] != other:
            raise ValueError(
                f"{name} has other columns than X, or another order: column {at} "
                f"is {other!r} instead of {first.names[at]!r}."
            )
    for j, kind in enumerate(kinds):
        if kind and (values[j] is None or held_in(values[j].dtype) != kind):
            raise ValueError(
                f"Column {first.names[j]!r} of {name} ({columns.dtype(j)}) holds no "
                f"{kind}, as that of X does."
            )


def _numbers(values):
    """A column of numbers; times are in days."""
    if values.dtype.kind not in "mM":
        return values.astype(np.float64)
    start = np.datetime64(0, "D") if values.dtype.kind == "M" else np.timedelta64(0)
    return (values - start) / np.timedelta64(1, "D")


class Scale:
    """Features and points of rows, in standard deviations of the training rows.

    Parameters
    ----------
    rows : dict of str to Rows
    numbers : tuple of str
    levels : list of tuple
    """

    @unheard()
    def __init__(self, rows, numbers, levels):
        counts = [np.bincount(codes) for codes in rows["X"].codes.T]
        holes = [np.isnan(kind.numbers).any(axis=0) for kind in rows.values()]
        self._holed = np.flatnonzero(np.any(holes, axis=0))
        self.n_numbers, self._lengths = len(numbers), [len(held) for _, held in levels]
        self._shown = [np.argsort(-c, kind="stable")[:_LEVELS] for c in counts]
        self.names = numbers + tuple(
            f"{name}={held[k]}"
            for (name, held), shown in zip(levels, self._shown, strict=True)
            for k in shown
        )
        pairs = [1 - np.sum((c / c.sum()) ** 2) for c in counts]
        self._weights = [1 / np.sqrt(p) if p > 0 else 1.0 for p in pairs]
        X = self._raw(rows["X"])
        # Zeros for a column without a value.
        lowest, highest = np.nan_to_num([np.nanmin(X, axis=0), np.nanmax(X, axis=0)])
        # By the range: the standard deviation of equal values may be a rounding error.
        self.constant = lowest == highest
        # Squares of values of order one neither overflow nor vanish. What is constant
        # keeps its units.
        self._unit = np.where(self.constant, 1, np.maximum(-lowest, highest))
        X = X / self._unit
        self._mean = np.where(self.constant, lowest, np.nanmean(X, axis=0))
        self._std = np.where(self.constant, 1, np.nanstd(X, axis=0))
        medians = np.nanmedian(X, axis=0)
        self._medians = np.nan_to_num((medians - self._mean) / self._std)

    def _raw(self, rows):
        shown = zip(rows.codes.T, self._shown, strict=True)
        indicators = [codes[:, None] == own for codes, own in shown]
        holes = np.isnan(rows.numbers[:, self._holed])
        return np.hstack([rows.numbers, *indicators, holes])

    def scaled(self, rows, name):
        """Rows as they are compared."""
        with np.errstate(over="ignore"):
            X = (self._raw(rows) / self._unit - self._mean) / self._std
        largest = np.where(np.isnan(X), 0, np.abs(X)).max(axis=0)
        if largest.max() > _LARGEST:
            raise ValueError(
                f"{name}, in training standard deviations, reaches {largest.max():.1e} "
                f"in feature {self.names[np.argmax(largest)]}, too large for distances "
                f"(at most {_LARGEST:.0e}). Divide that feature of all rows by a "
                "constant, or leave it out."
            )
        filled = np.where(np.isnan(X), self._medians, X)
        features, points = X[:, : len(self.names)], self._points(rows, filled)
        return replace(rows, features=features, filled=filled, points=points)

    def _points(self, rows, filled):
        if not self._lengths:
            return filled
        numbers = np.delete(filled, np.s_[self.n_numbers : len(self.names)], axis=1)
        n, k = rows.codes.shape
        starts, ends = np.cumsum([0, *self._lengths]), np.arange(0, n * k + 1, k)
        cells, weights = (starts[:-1] + rows.codes).ravel(), np.tile(self._weights, n)
        levels = csr_array((weights, cells, ends), shape=(n, starts[-1]))
        return hstack([csr_array(numbers), levels], format="csr")
