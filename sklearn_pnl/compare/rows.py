"""Standardise the rows to compare by the training rows.

A number is a feature. A category is a feature of 0 and 1 for each of its most frequent
levels. In distances these are divided by the square root of their number: rows that
differ in a category are as far apart, in the mean over pairs of training rows, as rows
are in a number, and the farther the rarer their levels are, as in correspondence
analysis. Where distances and classifiers need a number that is missing, it is the
median of the training rows, and one more indicator feature of 0 and 1 is added.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from sklearn.preprocessing import StandardScaler

from .._utils.validation import check_finite, unheard
from ..frames import columns_of, is_frame
from ..frames.categories import level_codes
from ..frames.containers import as_rows
from ..frames.table import ColumnTable

# Said of a column without numbers in an array.
_WORDS = "of X holds no numbers: pass a data frame, whose words are categories."


@dataclass(frozen=True)
class Sample:
    """Training, new or test rows, in standard deviations of the training rows.

    Attributes
    ----------
    cells : ndarray of shape (n, n_columns)
        Numbers as they are, NaN where missing, then codes of categories.
    features : ndarray of shape (n, n_features)
        Standardised numbers, NaN where missing, then indicators of levels.
    points : ndarray of shape (n, n_points)
        Features without NaN, then indicators of missing cells, weighted for distances.
    n_numbers : int
        Features that are numbers; they come first.
    """

    cells: np.ndarray
    features: np.ndarray
    points: np.ndarray
    n_numbers: int

    def __len__(self):
        return len(self.cells)


def read_samples(rows):
    """Read and standardise rows.

    Parameters
    ----------
    given : dict of str to array-like
        "X", "X_new" and, if there are any, "X_test".

    Returns
    -------
    samples : dict of str to Sample
    feature_names : tuple of str
    """
    parts, names, categories = _read(rows)
    for name, X in parts.items():
        if len(X) < (2 if name == "X" else 1):
            raise ValueError(f"{name} has {len(X)} rows: give more.")
        check_finite(X, name, names, missing=True)
    n_train, ends = len(parts["X"]), np.cumsum([*map(len, parts.values())])[:-1]
    numbers = np.concatenate([*parts.values()]).astype(np.float64)
    cells, features = numbers, [numbers]
    weights = [1.0] * len(names)
    for name, values in categories:
        column, first_rows = level_codes(values)
        cells = np.column_stack([cells, column])
        # Trees gain nothing from rarer levels, and 2,000 of them take a minute.
        frequent = np.argsort(-np.bincount(column[:n_train]), kind="stable")[:20]
        features.append(column[:, None] == frequent)
        weights += [1 / np.sqrt(len(frequent))] * len(frequent)
        names += tuple(f"{name}={values[first_rows[code]]}" for code in frequent)
    is_nan = np.isnan(numbers)
    flags = is_nan[:, is_nan.any(axis=0)]
    weights += [1.0] * flags.shape[1]
    X = np.hstack([*features, flags])
    with unheard():
        scaler = StandardScaler().fit(X[:n_train])
        # A column without a training value has no mean and no standard deviation.
        X = (X - np.nan_to_num(scaler.mean_)) / np.nan_to_num(scaler.scale_, nan=1)
        medians = np.nan_to_num(np.nanmedian(X[:n_train], axis=0))
    points = np.where(np.isnan(X), medians, X) * weights
    arrays = cells, X[:, : len(names)], points
    split = zip(*(np.split(array, ends) for array in arrays), strict=True)
    samples = (Sample(*part, numbers.shape[1]) for part in split)
    return dict(zip(parts, samples, strict=True)), names


def _read(rows):
    """Read rows: numbers, their names, and values of categories with their names.

    Arrays of more axes are read flat. Beside a data frame an array has its columns.
    """
    numbers, readers = {}, []
    for name, X in rows.items():
        by_columns = is_frame(X)
        X = X if by_columns else as_rows(X, name)
        row_shape = (columns_of(X).n_columns,) if by_columns else X.shape[1:]
        if name == "X":
            shape = row_shape
        if row_shape != shape or 0 in shape:
            raise ValueError(
                f"{name} has rows of shape {row_shape}, but X has rows of shape "
                f"{shape}: all must have the same columns, at least one."
            )
        X = X if by_columns else X.reshape(-1, prod(shape))
        columns = columns_of(X)
        if name == "X":
            table = ColumnTable(columns, "auto" if by_columns else [], _WORDS)
        if columns.names not in (None, table.names):
            raise ValueError(
                f"{name} has the columns {columns.names}, but X has {table.names}."
            )
        numbers[name] = table.read(X, name)
        readers.append(columns.reader)
    names = table.names or ["x" + "_".join(map(str, c)) for c in np.ndindex(shape)]
    categories = [
        (names[j], [value for reader in readers for value in reader(j).objects()])
        for j in table.categorical
    ]
    return numbers, tuple(str(names[j]) for j in table.columns), categories
