"""What rows came as, and new rows of the same kind."""

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack


class RowFormat:
    """Container, names and types of rows.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame
        As it came.
    numbers : ndarray or sparse matrix
        ``X`` after validation.

    Attributes
    ----------
    dtype : dtype
        Of the rows as one array.
    feature_names : tuple of str or None
    integer_features : ndarray of int
        Flat columns that hold integers or booleans.
    """

    def __init__(self, X, numbers):
        self.dtype = np.dtype(numbers.dtype)
        self.shape = numbers.shape[1:]
        self._sparse = type(numbers) if issparse(numbers) else None
        # An empty frame keeps names, types and class.
        self._template = X.iloc[:0] if is_frame(X) else None
        names = None if self._template is None else self._template.columns
        self.feature_names = None if names is None else tuple(map(str, names))
        types = [self.dtype] * int(np.prod(self.shape))
        if self._template is not None:
            types = list(self._template.dtypes)
            types = [getattr(dtype, "numpy_dtype", dtype) for dtype in types]
        whole = [c for c, t in enumerate(types) if getattr(t, "kind", "") in "iub"]
        self.integer_features = np.array(whole, dtype=np.intp)
        limits = [_limits(types[column]) for column in whole]
        self._limits = np.reshape(limits, (-1, 2)).T

    def restore(self, rows):
        """New rows (n, D), in float64 and theirs to keep, as ``X`` came."""
        if len(self.integer_features) == rows.shape[1]:
            np.clip(np.rint(rows, out=rows), *self._limits, out=rows)
        elif len(self.integer_features):
            whole = np.rint(rows[:, self.integer_features])
            rows[:, self.integer_features] = np.clip(whole, *self._limits)
        if self._template is not None:
            frame = type(self._template)(rows, columns=self._template.columns)
            return frame.astype(self._template.dtypes)
        rows = rows.astype(self.dtype, copy=False)
        if self._sparse is not None:
            return self._sparse(rows)
        return rows.reshape(-1, *self.shape)


def is_frame(X):
    """Whether rows came in a data frame of pandas."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def stack(X, new):
    """The originals as they are, then the new rows, in the container that came."""
    if is_frame(X):
        import pandas as pd

        return pd.concat([X, *new], ignore_index=True)
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
