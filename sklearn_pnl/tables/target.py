"""Targets: numbers or classes, and more of them in the container that came."""

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_series
from scipy.sparse import issparse

from .._runtime.validation import check_finite
from .columns import columns_of, is_frame, is_missing
from .forms import BlockForm, ColumnForm, as_numeric


def plain_target(y):
    """Classes as imbalanced-learn knows them, and a function to what came."""
    _check_given(y, "A sampler")
    if is_frame(y) and not hasattr(y, "iloc"):
        raise ValueError(
            f"y is a {type(y).__name__} of {type(y).__module__.split('.')[0]}; classes "
            "are one column. Pass a Series, such as y[y.columns[0]]."
        )
    plain = isinstance(y, np.ndarray | list)
    if plain or not is_into_series(y) or hasattr(y, "iloc"):
        _check_none_missing(y)
        return y, lambda values: values
    y = nw.from_native(y, series_only=True)
    columns, classes = columns_of(y.to_frame()), y.to_numpy()
    _check_none_missing(classes)
    return classes, lambda new: columns.column(0, new)


def _check_given(y, whom):
    """Refuse that there are no targets, or masked ones."""
    if y is None:
        raise ValueError(
            f"{whom} requires y to be passed, but the target y is None: rows without "
            "targets are drawn by PNLAugmenter."
        )
    if np.ma.is_masked(y):
        raise ValueError(
            "y is a masked array: what is below its mask would be taken for targets. "
            "Drop such rows first: X[~y.mask], y[~y.mask]."
        )


def _check_none_missing(y):
    """Refuse classes that are None or NaN, and say where the first one is."""
    values = np.empty(0) if issparse(y) else np.asarray(y)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype == object:
        missing = np.vectorize(is_missing, otypes=[bool])(values)
    else:
        return
    if missing.any():
        row = np.argwhere(missing)[0, :1]
        raise ValueError(
            f"y contains NaN or None, {missing.sum()} in all, the first in row "
            f"{row.item() if len(row) else 0}: its class is not known. Drop such rows, "
            "or give them a class of their own."
        )


def read_target(y, whom):
    """Numbers (n, t) of targets, and a function that adds more of them as they came.

    Parameters
    ----------
    y : array-like, series or data frame of shape (n,) or (n, t)
    whom : str
        Who asks, for messages.

    Returns
    -------
    values : ndarray of shape (n, t)
    with_more : callable
        From new numbers (m, t) to all targets.
    """
    _check_given(y, whom)
    if is_into_series(y):
        frame = nw.from_native(y, series_only=True).to_frame().to_native()
        values, frame_of = read_target(frame, whom)
        return values, lambda new: _first_column(frame_of(new), y)
    if is_frame(y):
        columns = columns_of(y)
        form, values = ColumnForm.of(columns, [], _no_target)
        check_finite(values, "y", columns.names)
        return values, lambda new: columns.stack([form.restore(new, None)])
    try:
        array = as_numeric(y, accept_sparse=False, input_name="y")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y holds no numbers: {error} Targets are numbers; PNLSampler adds rows "
            "with classes."
        ) from None
    if array.ndim > 2:
        raise ValueError(
            f"y must have shape (n,) or (n, n_targets); got {array.shape}."
        )
    check_finite(array, "y")
    form = BlockForm(array)

    def with_more(new):
        joined = np.concatenate([array, form.restore(new, None)])
        return joined.tolist() if isinstance(y, list) else joined

    return form.dense(array).reshape(len(array), -1).astype(np.float64), with_more


def _no_target(column):
    return f"{column} of y holds no numbers: targets must be numbers or times."


def _first_column(frame, y):
    """The column of a frame, with the name of a series."""
    if hasattr(frame, "iloc"):
        return frame.iloc[:, 0].rename(y.name)
    return nw.from_native(frame, eager_only=True)[:, 0].to_native()
