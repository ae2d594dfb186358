"""Read numeric targets, classes, groups and weights; restore the container of ``y``."""

from functools import partial

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_series
from scipy.sparse import issparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from .._utils.masked import are_missing
from .._utils.validation import as_array, check_finite, errors_naming
from .categories import level_codes
from .column_types import TypedColumn
from .containers import columns_of, is_frame
from .table import ColumnTable

_NO_TARGET = (
    "of y holds no numbers: targets must be numeric, or times. PNLSampler adds rows "
    "with classes."
)
# The message begins with the sentence of imbalanced-learn.
_ONE_CLASS = (
    "Multilabel and multioutput targets are not supported. Pass one column, such as "
    "y[:, 0], or make each combination of labels a class; PNLRegressionSampler adds "
    "rows with several numbers as targets."
)


def read_classes(y):
    """Read classes (n,), and return a function that restores the container of ``y``.

    Parameters
    ----------
    y : array-like, series or data frame of shape (n,), or (n, n_classes) one-hot

    Returns
    -------
    labels : ndarray of shape (n,)
        Integers or strings; column indices if ``y`` is one-hot encoded.
    like : callable
        Function from labels (m,) to the format of ``y``, including one-hot encoding.

    Raises
    ------
    ValueError
        If ``y`` is not one class per row: several labels, continuous values, or missing
        values.
    """
    y = _given(y)
    is_pandas = hasattr(y, "iloc")
    if is_frame(y) and not is_pandas:
        raise ValueError("y is a data frame; pass a Series, such as y[y.columns[0]].")
    like = partial(_in_container_of, y)
    if not isinstance(y, np.ndarray | list) and is_into_series(y) and not is_pandas:
        y = nw.from_native(y, series_only=True)
        like, y = TypedColumn(y.to_native()).restore, y.to_numpy()
    # scikit-learn would read nullable integers as floats, which round large ones.
    values = _read_values(y, "y", _ONE_CLASS)
    if values.ndim > 1 and values.shape[1:] != (1,):
        is_numeric = values.dtype.kind in "biuf"
        one_hot = is_numeric and type_of_target(values) == "multilabel-indicator"
        if not (one_hot and (values.astype(bool).sum(axis=1) == 1).all()):
            raise ValueError(
                f"y has the shape {values.shape}: it must have one class for each "
                f"row. {_ONE_CLASS}"
            )
        rows = np.eye(values.shape[1], dtype=values.dtype)
        return values.argmax(axis=1), lambda labels: like(rows[labels])
    if _always_there(values):
        return values.reshape(-1), like
    y = values if isinstance(y, list | tuple) else y
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{error} Give classes one type, such as y.astype(str); "
            "PNLRegressionSampler adds rows with numbers as targets."
        ) from None
    return column_or_1d(y), like


def _read_values(values, name, advice):
    """An array of a value a row, none missing; of a list of words and others, objects.

    The message on missing values and infinity says where the first one is.
    """
    types = set(map(type, values)) if isinstance(values, list | tuple) else ()
    # NumPy would make words of numbers and of missing values.
    is_mixed = len(types) > 1 and types & {str, bytes, tuple}
    dtype = object if is_mixed else None
    values = np.asarray(as_array(values, name, dtype, advice))
    if _always_there(values):
        return values
    missing = are_missing(values) if values.dtype == object else values != values
    for row, *_ in np.argwhere(missing)[:1]:
        raise ValueError(
            f"{name} contains NaN or None, {missing.sum()} in all, the first in row "
            f"{row}. Drop such rows, or give them a value."
        )
    check_finite(values, name)
    return values


def _always_there(values):
    """Return whether all values are integers or strings, without missing values."""
    if values.dtype == object:
        return set(map(type, values.reshape(-1).tolist())) == {str}
    return values.dtype.kind in "biuU"


def _given(y):
    """Return the target as a dense array; raise an error for None."""
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None: "
            "PNLAugmenter draws rows without targets."
        )
    return y.toarray() if issparse(y) else y


def _in_container_of(y, values):
    """Return classes in the container of ``y``: an array, a list or pandas."""
    if isinstance(y, list):
        return values.tolist()
    if hasattr(y, "columns"):
        return type(y)(values, columns=y.columns).astype(y.dtypes)
    if hasattr(y, "iloc"):
        return type(y)(values, dtype=y.dtype, name=y.name)
    return values


def read_groups(groups, n):
    """Return the groups (n,) and integer codes of the groups; None for None."""
    if groups is None:
        return None, None
    values = _read_values(groups, "groups", "Give each row one group.")
    if values.shape != (n,):
        raise ValueError(
            f"groups has the shape {values.shape} for {n} rows: give one for each row."
        )
    if values.dtype != object:
        return values, np.unique(values, return_inverse=True)[1]
    with errors_naming("groups"):
        return values, level_codes(values.tolist())[0]


def read_weights(weights, n):
    """Return non-negative weights of rows (n,); None for None."""
    if weights is None:
        return None
    with errors_naming("sample_weight"):
        weights = as_array(weights, "sample_weight")
        if np.asarray(weights).dtype.kind in "mM":
            raise TypeError("weights are numbers, not times.")
        weights = _check_sample_weight(
            weights, np.empty((n, 0)), ensure_non_negative=True
        )
    if not weights.any():
        raise ValueError("sample_weight is 0 in all rows: give some row a weight.")
    return weights


def read_target(y):
    """Read numeric targets (n, t), and return a function that appends new targets.

    Parameters
    ----------
    y : array-like, series or data frame of shape (n,) or (n, t)

    Returns
    -------
    values : ndarray of shape (n, t)
    with_more : callable
        Function from new targets (m, t) to all targets, in the container of ``y``.
    """
    y = _given(y)
    rows, is_series = y, is_into_series(y)
    if is_series:
        series = nw.from_native(y, series_only=True)
        rows = series.to_frame().to_native()
    elif not is_frame(y):
        array = np.asarray(as_array(y, "y"))
        if array.ndim > 2 or not array.size:
            raise ValueError(
                f"y must have shape (n,) or (n, n_targets); got {array.shape}."
            )
        rows = array.reshape(len(array), -1)
    table = ColumnTable(columns_of(rows), [], _NO_TARGET)
    check_finite(table.numbers(), "Input y", table.names, advice="Drop such rows.")

    def with_more(new):
        whole = table.stack([table.like(new)])
        if is_series:
            column = nw.from_native(whole, eager_only=True)[:, 0]
            return column.alias(series.name).to_native()
        if rows is not y:
            whole = whole.reshape(-1, *array.shape[1:])
        return whole.tolist() if isinstance(y, list) else whole

    return table.numbers(), with_more
