"""Scale features to [0, 1] and back."""

from math import prod

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ._runtime.arrays import at_least, cast, is_foreign, namespace, to_host, widest
from ._runtime.blocks import ends_of
from ._runtime.validation import (
    check_finite,
    check_measures,
    check_rows,
    flat,
    warn_user,
)
from .codec import lay_out
from .reshape import PrimeFactorReshaper


class RangeEmbedding(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale each feature by its range, from 0 at its smallest value to 1.

    As :class:`~sklearn.preprocessing.MinMaxScaler`, but always in double precision, and
    for every range of it: a feature in tiny units is not treated as constant. A
    constant feature becomes 0; a range that overflows is a FloatingPointError.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_features_in_,)
        Ends of the range of each feature.

    input_shape_ : tuple of int
        Shape of a row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.embedding import RangeEmbedding
    >>> RangeEmbedding().fit_transform(np.array([[1e-20], [2e-20], [5e-20]])).ravel()
    array([0.  , 0.25, 1.  ])
    """

    # Whether rows may stay on the device that they are on.
    _on_devices = True

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
        X = check_rows(self, X, reset=True)
        self.low_, self.high_ = ends_of(X)
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
        low, length = self._range
        if is_foreign(X):
            embedded = cast(X, widest(X)) - low
        else:
            embedded = np.subtract(X, low, out=out, dtype=np.float64)
        embedded /= namespace(X).where(length > 0, length, 1.0)
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
        low, length = self._range
        rows = cast(X, widest(X)) * length
        rows += low
        return rows

    @property
    def _range(self):
        """Lower ends and lengths."""
        double = widest(self.low_)
        low = cast(self.low_, double)
        with np.errstate(over="raise"):
            return low, cast(self.high_, double) - low


# --- before phi: rows to cells of a poset, and back --------------------------------

_INVERSE = (
    "FunctionTransformer needs an inverse_func, such as np.expm1 beside np.log1p."
)


class Embed:
    """Rows (n, D) of values to non-negative ones, ``embedded``, and back."""

    def __init__(self, embedding, offset, caller):
        self.transformer = embedding
        self._offset, self._caller = offset, caller

    def fit(self, table, rows):
        """Embed the rows of a table; the offset must not round them away."""
        names = table.column_names
        where = "after the embedding"
        if self.transformer is None:
            embedded, where = rows, f"in data passed to {self._caller}"
        elif isinstance(self.transformer, str):
            out = rows if table.owned and rows.dtype == np.float64 else None
            self.transformer = RangeEmbedding().fit(rows)
            embedded = self.transformer._embed(rows, out)
        else:
            self.transformer = clone(self.transformer)
            # Scalers lose values that are small beside the range in single precision.
            double = rows.astype(np.float64, copy=False)
            embedded = _plain(self.transformer.fit_transform(double))
            names = names if embedded.shape == rows.shape else None
            _check_made(embedded, "The embedding", names)
        self._ends, offset = ends_of(embedded), self._offset
        low, high = map(to_host, self._ends)
        keeps_shape = embedded.shape[1] == prod(table.shape)
        self.shape = table.shape if keeps_shape else embedded.shape[1:]
        if offset == 0 or low.min(initial=0) < 0:
            cells = namespace(embedded).reshape(embedded, (-1, *self.shape))
            advice = "pass embedding='minmax'" if self.transformer is None else None
            about = {"names": names, "numbers": table.row_numbers, "advice": advice}
            check_measures(cells, f"Negative values {where}", offset, **about)
        lost = (high > low) & (high + offset == low + offset)
        for j in np.flatnonzero(lost)[:1].tolist():
            raise ValueError(
                f"Column {j if names is None else names[j]!r} spans "
                f"{high[j] - low[j]:.3g} after the embedding, which offset={offset:g} "
                "rounds away. Use embedding='minmax', or a smaller offset."
            )
        if not isinstance(self.transformer, RangeEmbedding | None):
            self._check_back(rows[:1000], embedded[:1000])
        return embedded

    def _check_back(self, rows, embedded):
        """Warn if the inverse of the embedding does not restore rows."""
        back, advice = self.back(np.array(embedded, np.float64)), _INVERSE
        if back.shape != rows.shape:
            raise ValueError(
                f"The way back from embedding={self.transformer!r} gives an array of "
                f"shape {back.shape} for rows of shape {rows.shape}. {advice}"
            )
        error = np.sum((back - rows) ** 2)
        spread = np.sum((rows - rows.mean(axis=0)) ** 2) + 1e-6 * np.sum(rows**2)
        # An inverse that does nothing, where the transformer does something again.
        is_idle = np.array_equal(back, embedded)
        is_idle = is_idle and not np.allclose(self.forward(back), back)
        if is_idle or not error <= 2 * spread:
            warn_user(
                f"The way back from embedding={self.transformer!r} leads elsewhere: "
                f"rows come back as others, and new rows are as far off. {advice}"
            )

    def forward(self, rows):
        """Rows (n, D) of other values."""
        if self.transformer is not None:
            double = rows.astype(np.float64, copy=False)
            rows = _plain(self.transformer.transform(double))
        return rows.reshape(len(rows), -1)

    def back(self, embedded):
        """Values (n, D) in double precision."""
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


class LayOut:
    """Embedded rows (n, D) to ``cells`` of a poset, and back."""

    def __init__(self, reshaper, poset, shape, reduced):
        if isinstance(reshaper, str):
            wanted = poset is None and (reduced or reshaper == "prime")
            reshaper = PrimeFactorReshaper(pad_value="mean") if wanted else None
        elif reshaper is not None:
            reshaper = clone(reshaper)
        self.reshaper, self.poset, self._shape = reshaper, poset, shape

    def fit(self, embedded):
        """Lay out embedded rows on the poset."""
        cells = namespace(embedded).reshape(embedded, (-1, *self._shape))
        if self.reshaper is not None:
            cells = _plain(self.reshaper.fit_transform(cells))
            _check_made(cells, f"reshaper={self.reshaper!r}")
        elif self.poset is not None:
            cells = embedded
        self._cell_shape = tuple(cells.shape[1:])
        self.poset = lay_out(self.poset, self._cell_shape)
        return flat(cells)

    def forward(self, embedded):
        """Cells of other rows."""
        if self.reshaper is None:
            return embedded
        cells = self.reshaper.transform(embedded.reshape(-1, *self._shape))
        return _plain(cells).reshape(len(embedded), -1)

    def back(self, cells):
        """Embedded rows of cells."""
        if self.reshaper is None:
            return cells
        tensors = namespace(cells).reshape(cells, (-1, *self._cell_shape))
        rows = _plain(self.reshaper.inverse_transform(tensors))
        _check_made(rows, f"The way back from reshaper={self.reshaper!r}")
        return flat(rows)


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
