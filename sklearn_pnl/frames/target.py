"""Targets: numbers or classes, and new ones in the container of ``y``."""

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_series
from scipy.sparse import issparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .._runtime.masked import check_unmasked, is_missing
from .._runtime.validation import as_array, check_finite
from .columns import columns_of, is_frame
from .forms import ColumnForm


class ClassTarget:
    """Classes of rows, and new ones in the container of ``y``.

    Parameters
    ----------
    y : array-like, series or data frame of shape (n,), or (n, n_classes) one-hot

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Numbers or words; the number of the column where ``y`` is one-hot.

    Raises
    ------
    ValueError
        Of what is not one class a row: several labels, numbers, missing ones.
    """

    def __init__(self, y):
        plain, self._as_it_came = plain_target(y)
        # scikit-learn would read nullable integers as floats, which round large ones.
        values = np.asarray(plain.toarray() if issparse(plain) else plain)
        self._plain, self._one_hot = plain, None
        if values.ndim > 2 or (values.ndim == 2 and values.shape[1] > 1):
            self._one_hot = _one_hot(plain, values)
            self.labels = values.argmax(axis=1)
            return
        kind = values.dtype.kind
        # Whole numbers and words are always valid classes.
        if values.ndim != 1 or kind not in "biuU":
            _check_classes(plain, kind)
        self.labels = column_or_1d(values if kind in "biu" else plain)

    def like(self, labels):
        """Convert labels to the format of ``y``, one-hot if ``y`` was."""
        if self._one_hot is not None:
            n_classes, dtype = self._one_hot.shape[1], self._one_hot.dtype
            labels = np.eye(n_classes, dtype=dtype)[labels]
        y = self._plain
        if isinstance(y, list):
            labels = labels.tolist()
        elif hasattr(y, "columns"):
            labels = type(y)(labels, columns=y.columns).astype(y.dtypes)
        elif hasattr(y, "iloc"):
            labels = type(y)(labels, dtype=y.dtype, name=y.name)
        return self._as_it_came(labels)


def _one_hot(y, values):
    """Targets (n, n_classes) with one 1 a row, as an array; others are refused."""
    if type_of_target(y) != "multilabel-indicator":
        raise ValueError(
            f"y has the shape {values.shape}: it must have one class for each row. "
            "Pass one column, such as y[:, 0]; PNLRegressionSampler adds rows with "
            "several numbers as targets."
        )
    n_labels = values.astype(bool).sum(axis=1)
    for row in np.flatnonzero(n_labels != 1):
        raise ValueError(
            f"y of shape {values.shape} is multilabel, with {n_labels[row]} labels in "
            f"row {row}; rows have one class. Oversample for one label at a time, "
            "y[:, j], or make each combination of labels a class."
        )
    return values


def _check_classes(y, kind):
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        advice = "PNLRegressionSampler adds rows with numbers as targets."
        if kind in "OS":
            advice = "Give classes one type: y.astype(int), or y.astype(str)."
        raise ValueError(f"{str(error).rstrip('.')} in y. {advice}") from None


def plain_target(y):
    """Classes as scikit-learn reads them, and a function back to the type of ``y``."""
    _check_target(y, "A sampler")
    if is_frame(y) and not hasattr(y, "iloc"):
        raise ValueError("y is a data frame; pass a Series, such as y[y.columns[0]].")
    plain = isinstance(y, np.ndarray | list)
    if plain or not is_into_series(y) or hasattr(y, "iloc"):
        _check_none_missing(y)
        return y, lambda values: values
    y = nw.from_native(y, series_only=True)
    columns, classes = columns_of(y.to_frame()), y.to_numpy()
    _check_none_missing(classes)
    return classes, lambda new: columns.reader(0).restore(new)


def _check_target(y, caller):
    """Refuse missing targets and masked ones."""
    if y is None:
        raise ValueError(
            f"{caller} requires y to be passed, but the target y is None: PNLAugmenter "
            "draws rows without targets."
        )
    check_unmasked(y, "y")


def _check_none_missing(y):
    """Refuse classes that are None or NaN, and say where the first one is."""
    values = np.empty(0) if issparse(y) else np.asarray(as_array(y, "y"))
    if values.dtype.kind not in "fO":
        return
    missing = np.vectorize(is_missing, otypes=[bool])(values)
    if missing.any():
        raise ValueError(
            f"y contains NaN or None, {missing.sum()} in all, the first in row "
            f"{np.argwhere(missing)[0, 0]}. Drop such rows, or give them a class."
        )


def read_target(y, caller):
    """Read numeric targets (n, t); also a function that appends new ones to ``y``.

    Parameters
    ----------
    y : array-like, series or data frame of shape (n,) or (n, t)
    caller : str
        Who asks, for messages.

    Returns
    -------
    values : ndarray of shape (n, t)
    with_more : callable
        From new numbers (m, t) to all targets.
    """
    _check_target(y, caller)
    if is_into_series(y):
        frame = nw.from_native(y, series_only=True).to_frame().to_native()
        values, frame_of = read_target(frame, caller)
        return values, lambda new: _first_column(frame_of(new), y)
    rows, n_axes = y, 2
    if not is_frame(y):
        rows = np.asarray(as_array(y, "y"))
        n_axes = rows.ndim
        if n_axes not in (1, 2):
            raise ValueError(
                f"y must have shape (n,) or (n, n_targets); got {rows.shape}."
            )
        rows = rows.reshape(len(rows), -1)
    columns = columns_of(rows)
    form = ColumnForm(columns, [], _no_target)
    values, form.numbers = form.numbers, None
    check_finite(values, "y", columns.names)

    def with_more(new):
        whole = columns.stack([form.restore(new, None)])
        whole = whole.ravel() if n_axes == 1 else whole
        return whole.tolist() if isinstance(y, list) else whole

    return values, with_more


def _no_target(column):
    return (
        f"{column} of y holds no numbers: targets must be numeric, or times. "
        "PNLSampler adds rows with classes."
    )


def _first_column(frame, y):
    """The column of a frame, with the name of a series."""
    if hasattr(frame, "iloc"):
        return frame.iloc[:, 0].rename(y.name)
    return nw.from_native(frame, eager_only=True)[:, 0].to_native()
