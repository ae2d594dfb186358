"""Read classes, numeric targets, groups and weights, and restore targets.

The readers of targets also return a function that converts new targets to the container
and the dtype of ``y``.
"""

from functools import partial

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_series
from scipy.sparse import issparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from .._utils.arrays import to_host
from .._utils.masked import are_missing
from .._utils.validation import as_array, check_finite, errors_naming
from .categories import level_codes
from .column_types import TypedColumn
from .containers import columns_of, is_frame
from .table import ColumnTable

_NUMERIC_TARGET = "Targets must be numbers or times. For classes, use PNLSampler."
# The test suite of imbalanced-learn expects the first sentence.
_ONE_CLASS = (
    "Multilabel and multioutput targets are not supported. Pass one column, for "
    "example y[:, 0], or encode each combination of labels as a class. For several "
    "numeric targets, use PNLRegressionSampler."
)


def read_classes(y):
    """Read classes (n,), and return a function that restores the container of ``y``.

    Parameters
    ----------
    y : array-like, series or data frame
        Classes of shape (n,), or one-hot encoded classes of shape (n, n_classes).

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
        raise ValueError(
            f"y must be one column; got a data frame with {columns_of(y).names}. Pass "
            "one of the columns."
        )
    like = partial(_in_container_of, y)
    if not isinstance(y, np.ndarray | list) and is_into_series(y) and not is_pandas:
        y = nw.from_native(y, series_only=True)
        like, y = TypedColumn(y.to_native()).restore, y.to_numpy()
    # scikit-learn converts nullable integers to floats, which rounds large integers.
    values = _read_values(y, "y", _ONE_CLASS)
    if values.ndim > 1 and values.shape[1:] != (1,):
        is_numeric = values.dtype.kind in "biuf"
        one_hot = is_numeric and type_of_target(values) == "multilabel-indicator"
        if not (one_hot and (values.astype(bool).sum(axis=1) == 1).all()):
            raise ValueError(
                f"y must have one class per row; got the shape {values.shape}. "
                f"{_ONE_CLASS}"
            )
        rows = np.eye(values.shape[1], dtype=values.dtype)
        return values.argmax(axis=1), lambda labels: like(rows[labels])
    if _are_complete(values):
        return values.reshape(-1), like
    y = values if isinstance(y, list | tuple) else y
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{error} Convert classes to one type, for example with y.astype(str). "
            "For numeric targets, use PNLRegressionSampler."
        ) from None
    return column_or_1d(y), like


def _read_values(values, name, advice):
    """Return an array of values; raise an error for missing values and infinity.

    Lists that mix strings and other types are converted to arrays of objects.
    """
    types = set(map(type, values)) if isinstance(values, list | tuple) else ()
    # NumPy would convert numbers and missing values to strings.
    is_mixed = len(types) > 1 and types & {str, bytes, tuple}
    dtype = object if is_mixed else None
    values = to_host(as_array(values, name, dtype, advice))
    if _are_complete(values):
        return values
    missing = are_missing(values) if values.dtype == object else values != values
    for row, *_ in np.argwhere(missing)[:1]:
        raise ValueError(
            f"{name} contains {missing.sum()} missing values (NaN or None); the first "
            f"is in row {row}. Drop the rows, or fill in values."
        )
    check_finite(values, name)
    return values


def _are_complete(values):
    """Return whether all values are integers or strings, without missing values."""
    if values.dtype == object:
        return set(map(type, values.reshape(-1).tolist())) == {str}
    return values.dtype.kind in "biuU"


def _given(y):
    """Return the target as a dense array; raise an error for None."""
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None. To "
            "generate rows without targets, use PNLAugmenter."
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
    values = _read_values(groups, "groups", "Pass one group per row.")
    if values.shape != (n,):
        raise ValueError(
            f"groups must have the shape ({n},), with one group per row; got "
            f"{values.shape}."
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
        weights = to_host(as_array(weights, "sample_weight"))
        kind = weights.dtype.kind
        if kind in "mM":
            raise TypeError(
                "weights must be numbers; got times. Pass one non-negative number per "
                "row."
            )
        # Some versions of scikit-learn reject zeros without a remedy.
        if kind in "biuf" and len(weights) == n and not np.any(weights):
            raise ValueError(
                "all weights are zero. Give rows a positive weight, or pass no weights."
            )
        weights = _check_sample_weight(
            weights, np.empty((n, 0)), ensure_non_negative=True
        )
    return weights


def read_target(y):
    """Read numeric targets (n, t), and return a function that appends new targets.

    Parameters
    ----------
    y : array-like, series or data frame of shape (n,) or (n, t)
        Numbers or times.

    Returns
    -------
    values : ndarray of shape (n, t)
        Numeric values of the targets.
    with_more : callable
        Function from new targets (m, t) to all targets, in the container of ``y``.
    """
    y = _given(y)
    rows, is_series = y, is_into_series(y)
    if is_series:
        series = nw.from_native(y, series_only=True)
        rows = series.to_frame().to_native()
    elif not is_frame(y):
        array = to_host(as_array(y, "y"))
        if array.ndim > 2 or not array.size:
            raise ValueError(
                f"y must have shape (n,) or (n, n_targets); got {array.shape}. Pass "
                "one row of targets for each row of X."
            )
        rows = array.reshape(len(array), -1)
    table = ColumnTable(columns_of(rows), [], _NUMERIC_TARGET, "y")
    advice = "Drop the rows without a finite target."
    check_finite(table.numbers(), "Input y", table.names, advice=advice)

    def with_more(new):
        targets = table.stack([table.like(new)])
        if is_series:
            column = nw.from_native(targets, eager_only=True)[:, 0]
            return column.alias(series.name).to_native()
        if rows is not y:
            targets = targets.reshape(-1, *array.shape[1:])
        return targets.tolist() if isinstance(y, list) else targets

    return table.numbers(), with_more
