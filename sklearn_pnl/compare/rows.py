"""Read samples, and standardise their features by the training rows.

A numeric column is a feature. A categorical column has a binary feature for each of its
most frequent categories. For distances, the binary features of a column are divided by
the square root of their number. Then a categorical column and a numeric column
contribute equally to the mean distance between training rows, and rare categories
contribute more than frequent categories, as in correspondence analysis. For distances
and classifiers, missing numbers are replaced by the median of the training rows, and an
indicator feature is added.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from sklearn.preprocessing import StandardScaler

from .._utils.blocks import observed_bounds
from .._utils.validation import check_finite, check_ranges
from .._utils.warnings import unheard
from ..frames import columns_of, is_frame
from ..frames.categories import level_codes
from ..frames.containers import as_rows
from ..frames.table import PASS_FRAME, ColumnTable


@dataclass(frozen=True)
class Sample:
    """Training, new or test rows, in standard deviations of the training rows.

    Attributes
    ----------
    cells : ndarray of shape (n, n_columns)
        Numeric values, which can be NaN, and category codes.
    features : ndarray of shape (n, n_features)
        Standardised numeric values, which can be NaN, and indicators of categories.
    points : ndarray of shape (n, n_points)
        Features without NaN and indicators of missing cells, weighted for distances.
    n_numbers : int
        Number of numeric features, which come first.
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
    rows : dict of str to array-like
        Rows with the keys "X", "X_new" and, optionally, "X_test".

    Returns
    -------
    samples : dict of str to Sample
        Samples with the same keys.
    feature_names : tuple of str
        Names of the features.
    """
    parts, names, categories = _read(rows)
    for name, X in parts.items():
        least = 2 if name == "X" else 1
        if len(X) < least:
            raise ValueError(
                f"{name} must have at least {least} row{'s' * (least > 1)}; got "
                f"{len(X)}. Pass more rows."
            )
        check_finite(X, name, names, missing=True)
    n_train, bounds = len(parts["X"]), np.cumsum([*map(len, parts.values())])[:-1]
    numbers = np.concatenate([*parts.values()]).astype(np.float64)
    numeric_names = names[: numbers.shape[1]]
    check_ranges(*observed_bounds(numbers), numeric_names)
    cells, features = numbers, [numbers]
    weights = [1.0] * len(names)
    for name, values in categories:
        column, first_rows = level_codes(values)
        cells = np.column_stack([cells, column])
        # Rarer levels do not help trees, and 2,000 levels take a minute.
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
    split = zip(*(np.split(array, bounds) for array in arrays), strict=True)
    samples = (Sample(*part, numbers.shape[1]) for part in split)
    return dict(zip(parts, samples, strict=True)), names


def _read(rows):
    """Return numeric values, their names, and names with values of categories.

    Rows of n-D arrays are flattened. If one sample is a data frame, an array has the
    columns of the data frame.
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
                f"{name} has rows of shape {row_shape}, and X has rows of shape "
                f"{shape}. All samples must have the same columns, at least one."
            )
        X = X if by_columns else X.reshape(-1, prod(shape))
        columns = columns_of(X)
        if name == "X":
            table = ColumnTable(columns, "auto" if by_columns else [], PASS_FRAME)
        if columns.names not in (None, table.names):
            raise ValueError(
                f"{name} has the columns {columns.names}, but X has {table.names}. "
                "Pass the same columns in the same order."
            )
        numbers[name] = table.read(X, name)
        readers.append(columns.reader)
    names = table.names or ["x" + "_".join(map(str, c)) for c in np.ndindex(shape)]
    categories = [
        (names[j], [value for reader in readers for value in reader(j).objects()])
        for j in table.categorical
    ]
    return numbers, tuple(str(names[j]) for j in table.columns), categories
