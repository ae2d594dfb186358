"""Conversion of rows to non-negative cells of a poset, and back.

:class:`RangeEmbedding` scales features to [0, 1]. :class:`Embedding` combines a scaler
and a reshaper, and validates the output of transformers of the user.
"""

from math import prod
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._utils.arrays import at_least, cast, is_foreign, namespace, to_host, widest
from .._utils.blocks import column_bounds
from .._utils.validation import (
    check_finite,
    check_measures,
    check_rows,
    flat,
    seeded_clone,
)
from .._utils.warnings import warn_user
from .codec import lay_out


class RangeEmbedding(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale each feature to [0, 1] by its minimum and its maximum.

    In contrast to :class:`~sklearn.preprocessing.MinMaxScaler`, the output is always
    double precision, and a feature with a tiny range is not treated as constant. A
    constant feature becomes 0. A range that overflows raises an error.

    Parameters
    ----------
    by_table : bool, default=False
        Whether to scale all features by the minimum and the maximum of the table. If
        True, differences between the scales of the features are preserved.

    Attributes
    ----------
    low_, range_ : ndarray of shape (n_features_in_,)
        Minimum of each feature, and difference between the maximum and the minimum.

    input_shape_ : tuple of int
        Shape of a row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.encoding.embedding import RangeEmbedding
    >>> RangeEmbedding().fit_transform(np.array([[1e-20], [2e-20], [5e-20]])).ravel()
    array([0.  , 0.25, 1.  ])
    """

    _parameter_constraints: ClassVar[dict] = {"by_table": ["boolean"]}

    # The rows may stay on an accelerator.
    _on_devices = True

    def __init__(self, by_table=False):
        self.by_table = by_table

    def fit(self, X, y=None):
        """Compute the range of each feature.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        self : RangeEmbedding
        """
        self._validate_params()
        low, high = column_bounds(check_rows(self, X, reset=True))
        self.low_, high = cast(low, widest(low)), cast(high, widest(high))
        if self.by_table:
            xp = namespace(high)
            self.low_ = xp.full_like(self.low_, float(xp.min(self.low_)))
            high = xp.full_like(high, float(xp.max(high)))
        with np.errstate(over="ignore"):
            self.range_ = high - self.low_
        for j in np.flatnonzero(np.isinf(to_host(self.range_)))[:1]:
            raise ValueError(
                f"The range of column {j} overflows float64. Divide X by a constant."
            )
        return self

    def transform(self, X):
        """Scale rows to [0, 1].

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows.

        Returns
        -------
        embedded : ndarray of float64 of the same shape
            Scaled rows.
        """
        return self._embed(check_rows(self, X, reset=False))

    def _embed(self, X, out=None):
        if is_foreign(X):
            embedded = cast(X, widest(X)) - self.low_
        else:
            embedded = np.subtract(X, self.low_, out=out, dtype=np.float64)
        embedded /= namespace(X).where(self.range_ > 0, self.range_, 1.0)
        return embedded

    def inverse_transform(self, X):
        """Scale rows to the units of the features.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Scaled rows.

        Returns
        -------
        rows : ndarray of float64 of the same shape
            Rows in the units of ``fit``.
        """
        check_is_fitted(self)
        rows = cast(X, widest(X)) * self.range_
        rows += self.low_
        return rows


# --- from rows to cells of a poset, and back ---------------------------------------


class Embedding:
    """Map from rows (n, D) to cells of a poset, with an inverse.

    ``transformer`` maps rows to non-negative values, and ``reshaper`` maps the values
    to tensors. Each can be None.
    """

    def __init__(self, transformer, reshaper, projector, caller):
        self.transformer, self.reshaper = transformer, reshaper
        self.poset, self._offset = projector.poset, projector.offset
        self._caller = caller

    def fit(self, mixable):
        """Fit the transformers and return the cells (n, D) of training rows.

        Raise an error if adding the offset would round away a column.
        """
        rows, shape = mixable.rows, mixable.shape
        embedded = self._embed(mixable, rows)
        names = mixable.names if embedded.shape == rows.shape else None
        is_own = isinstance(self.transformer, RangeEmbedding | None)
        if not is_own:
            _check_output(
                embedded, f"The output of embedding={self.transformer!r}", names
            )
        self._bounds = column_bounds(embedded)
        keeps_shape = embedded.shape[1] == prod(shape)
        self._shape = shape if keeps_shape else embedded.shape[1:]
        tensors = namespace(embedded).reshape(embedded, (-1, *self._shape))
        where, advice = "after the embedding", None
        if self.transformer is None:
            where = f"in data passed to {self._caller}"
            advice = "use embedding='minmax'"
        about = {"names": names, "numbers": mixable.numbers, "advice": advice}
        check_measures(tensors, f"Negative values {where}", self._offset, **about)
        self._check_ranges(names)
        if not is_own:
            self._check_inverse(rows[:1000], embedded[:1000])
        cells = embedded
        if self.reshaper is not None:
            cells = _plain(self.reshaper.fit_transform(tensors))
            _check_output(cells, f"The output of reshaper={self.reshaper!r}")
        elif self.poset is None:
            cells = tensors
        self._cell_shape = tuple(cells.shape[1:])
        self.poset = lay_out(self.poset, self._cell_shape)
        return flat(cells)

    def _embed(self, mixable, rows):
        if self.transformer is None:
            return rows
        if isinstance(self.transformer, str):
            out = rows if mixable.owned and rows.dtype == np.float64 else None
            by_table = self.transformer == "minmax-table"
            self.transformer = RangeEmbedding(by_table).fit(rows)
            return self.transformer._embed(rows, out)
        self.transformer = seeded_clone(self.transformer)
        # In single precision, scalers lose values that are small relative to the range.
        double = rows.astype(np.float64, copy=False)
        return _plain(self.transformer.fit_transform(double))

    def _check_ranges(self, names):
        offset, (low, high) = self._offset, map(to_host, self._bounds)
        lost = (high > low) & (high + offset == low + offset)
        for j in np.flatnonzero(lost)[:1].tolist():
            raise ValueError(
                f"Column {int(j) if names is None else names[j]!r} has the range "
                f"{high[j] - low[j]:.3g} after the embedding, which is lost to "
                f"rounding when offset={offset:g} is added. Use embedding='minmax' or "
                "a smaller offset."
            )

    def _check_inverse(self, rows, embedded):
        """Warn if the inverse of the embedding does not restore rows."""
        back = self._values(np.array(embedded, np.float64))
        error = np.sum((back - rows) ** 2)
        spread = np.sum((rows - rows.mean(axis=0)) ** 2) + 1e-6 * np.sum(rows**2)
        # The inverse is the identity although the transformer is not.
        is_idle = np.array_equal(back, embedded) and not np.allclose(
            _plain(self.transformer.transform(back)), back
        )
        if is_idle or not error <= 2 * spread:
            warn_user(
                f"inverse_transform of embedding={self.transformer!r} does not restore "
                "training rows, so new rows have wrong values. Use a transformer with "
                "an inverse. FunctionTransformer(np.log1p), for example, also needs "
                "inverse_func=np.expm1."
            )

    def back(self, cells):
        """Convert cells to values (n, D) in double precision."""
        if self.reshaper is not None:
            tensors = namespace(cells).reshape(cells, (-1, *self._cell_shape))
            cells = _plain(self.reshaper.inverse_transform(tensors))
            _check_output(cells, f"inverse_transform of reshaper={self.reshaper!r}")
        return self._values(flat(cells))

    def _values(self, embedded):
        if isinstance(self.transformer, RangeEmbedding):
            return self.transformer.inverse_transform(embedded)
        # Cells can be as low as minus the offset. RangeEmbedding accepts negative
        # cells, and `extrapolation` bounds the values. The inverse of another embedding
        # may not be defined for negative cells.
        embedded = at_least(embedded, 0.0)
        if self.transformer is not None:
            embedded = self._inverse(embedded)
        return flat(cast(embedded, widest(embedded)))

    def _inverse(self, embedded):
        """Compute the inverse; clip cells to the training range if it is not finite."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = _plain(self.transformer.inverse_transform(embedded))
            lost = ~np.isfinite(values)
            if lost.any():
                clipped = np.clip(embedded, *self._bounds)
                values[lost] = _plain(self.transformer.inverse_transform(clipped))[lost]
                name = f"inverse_transform of embedding={self.transformer!r}"
                _check_output(values, name)
        return values


def _check_output(values, name, names=None):
    """Raise an error if a transformer returns NaN or infinity for finite rows."""
    with config_context(assume_finite=False):
        advice = "Use a transformer with a finite output and a finite inverse."
        check_finite(values, name, names, advice=advice)


def _plain(rows):
    """Convert the output of a transformer to a dense, writable array."""
    if is_foreign(rows):
        return rows
    return np.require(rows.toarray() if issparse(rows) else rows, requirements="W")
