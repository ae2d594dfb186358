"""Scale features to [0, 1] and back."""

from math import prod
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._utils.arrays import at_least, cast, is_foreign, namespace, to_host, widest
from .._utils.blocks import ends_of
from .._utils.validation import (
    check_finite,
    check_measures,
    check_rows,
    flat,
    warn_user,
)
from .codec import lay_out


class RangeEmbedding(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale each feature by its range, from 0 at its smallest value to 1.

    As :class:`~sklearn.preprocessing.MinMaxScaler`, but always in double precision, and
    for every range of it: a feature in tiny units is not treated as constant. A
    constant feature becomes 0; a range that overflows is an error.

    Parameters
    ----------
    by_table : bool, default=False
        Whether all features share one range, from the smallest value of the table to
        the largest one, so that differences between the scales of features stay.

    Attributes
    ----------
    low_, range_ : ndarray of shape (n_features_in_,)
        Smallest value of each feature, and the length of its range.

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

    # Whether rows may stay on the device that they are on.
    _on_devices = True

    def __init__(self, by_table=False):
        self.by_table = by_table

    def fit(self, X, y=None):
        """Learn the range of each feature.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : None
            Ignored.

        Returns
        -------
        self : RangeEmbedding
        """
        self._validate_params()
        low, high = ends_of(check_rows(self, X, reset=True))
        self.low_, high = cast(low, widest(low)), cast(high, widest(high))
        if self.by_table:
            xp = namespace(high)
            self.low_ = xp.full_like(self.low_, float(xp.min(self.low_)))
            high = xp.full_like(high, float(xp.max(high)))
        with np.errstate(over="ignore"):
            self.range_ = high - self.low_
        for j in np.flatnonzero(np.isinf(to_host(self.range_)))[:1]:
            where = f"The range of column {j} overflows"
            raise ValueError(f"{where}; divide X by a constant first.")
        return self

    def transform(self, X):
        """Scale rows to units of the range.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        embedded : ndarray of float64 of the same shape
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
        """Scale rows back to units of the features.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        rows : ndarray of float64 of the same shape
        """
        check_is_fitted(self)
        rows = cast(X, widest(X)) * self.range_
        rows += self.low_
        return rows


# --- before phi: rows to cells of a poset, and back --------------------------------


class Embedding:
    """Rows (n, D) of values to ``cells`` of a poset, and back.

    By ``transformer`` to non-negative values, then by ``reshaper`` to tensors; either
    may be None.
    """

    def __init__(self, transformer, reshaper, projector, caller):
        self.transformer, self.reshaper = transformer, reshaper
        self.poset, self._offset = projector.poset, projector.offset
        self._caller = caller

    def fit(self, table, rows):
        """Cells (n, D) of the rows of a table; the offset must not round them away."""
        embedded = self._embed(table, rows)
        names = table.column_names if embedded.shape == rows.shape else None
        is_own = isinstance(self.transformer, RangeEmbedding | None)
        if not is_own:
            _check_made(embedded, "The embedding", names)
        self._ends = ends_of(embedded)
        keeps_shape = embedded.shape[1] == prod(table.shape)
        self._shape = table.shape if keeps_shape else embedded.shape[1:]
        tensors = namespace(embedded).reshape(embedded, (-1, *self._shape))
        where, advice = "after the embedding", None
        if self.transformer is None:
            where = f"in data passed to {self._caller}"
            advice = "pass embedding='minmax'"
        about = {"names": names, "numbers": table.row_numbers, "advice": advice}
        check_measures(tensors, f"Negative values {where}", self._offset, **about)
        self._check_ends(names)
        if not is_own:
            self._check_back(rows[:1000], embedded[:1000])
        cells = embedded
        if self.reshaper is not None:
            cells = _plain(self.reshaper.fit_transform(tensors))
            _check_made(cells, f"reshaper={self.reshaper!r}")
        elif self.poset is None:
            cells = tensors
        self._cell_shape = tuple(cells.shape[1:])
        self.poset = lay_out(self.poset, self._cell_shape)
        return flat(cells)

    def _embed(self, table, rows):
        if self.transformer is None:
            return rows
        if isinstance(self.transformer, str):
            out = rows if table.owned and rows.dtype == np.float64 else None
            by_table = self.transformer == "minmax-table"
            self.transformer = RangeEmbedding(by_table).fit(rows)
            return self.transformer._embed(rows, out)
        self.transformer = clone(self.transformer)
        # Scalers lose values that are small beside the range in single precision.
        double = rows.astype(np.float64, copy=False)
        return _plain(self.transformer.fit_transform(double))

    def _check_ends(self, names):
        offset, (low, high) = self._offset, map(to_host, self._ends)
        lost = (high > low) & (high + offset == low + offset)
        for j in np.flatnonzero(lost)[:1].tolist():
            raise ValueError(
                f"Column {j if names is None else names[j]!r} spans "
                f"{high[j] - low[j]:.3g} after the embedding, which offset={offset:g} "
                "rounds away. Use embedding='minmax', or a smaller offset."
            )

    def _check_back(self, rows, embedded):
        """Warn if the inverse of the embedding does not restore rows."""
        back = self._values(np.array(embedded, np.float64))
        error = np.sum((back - rows) ** 2)
        spread = np.sum((rows - rows.mean(axis=0)) ** 2) + 1e-6 * np.sum(rows**2)
        # An inverse that does nothing, where the transformer does something again.
        is_idle = np.array_equal(back, embedded) and not np.allclose(
            _plain(self.transformer.transform(back)), back
        )
        if is_idle or not error <= 2 * spread:
            warn_user(
                f"The way back from embedding={self.transformer!r} leads elsewhere: "
                "rows come back as others, and new rows are as far off. "
                "FunctionTransformer needs an inverse_func, such as np.expm1 beside "
                "np.log1p."
            )

    def back(self, cells):
        """Values (n, D) of cells, in double precision."""
        if self.reshaper is not None:
            tensors = namespace(cells).reshape(cells, (-1, *self._cell_shape))
            cells = _plain(self.reshaper.inverse_transform(tensors))
            _check_made(cells, f"The way back from reshaper={self.reshaper!r}")
        return self._values(flat(cells))

    def _values(self, embedded):
        if isinstance(self.transformer, RangeEmbedding):
            return self.transformer.inverse_transform(embedded)
        # Cells may be negative by up to the offset. RangeEmbedding accepts these, and
        # `extrapolation` limits them; other embeddings may not be defined there.
        embedded = at_least(embedded, 0.0)
        if self.transformer is not None:
            embedded = self._inverse(embedded)
        return flat(cast(embedded, widest(embedded)))

    def _inverse(self, embedded):
        """Inverse; clipped to the range of the rows where it is not defined."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = _plain(self.transformer.inverse_transform(embedded))
            lost = ~np.isfinite(values)
            if lost.any():
                ends = np.clip(embedded, *self._ends)
                values[lost] = _plain(self.transformer.inverse_transform(ends))[lost]
                _check_made(values, f"The way back from embedding={self.transformer!r}")
        return values


def _check_made(values, name, names=None):
    """Refuse NaN and infinity that a user's transformer returns for finite rows."""
    with config_context(assume_finite=False):
        advice = "Choose a transformer that is finite there and back."
        check_finite(values, name, names, advice=advice)


def _plain(rows):
    """Convert the output of a transformer to a dense, writable array."""
    if is_foreign(rows):
        return rows
    return np.require(rows.toarray() if issparse(rows) else rows, requirements="W")
