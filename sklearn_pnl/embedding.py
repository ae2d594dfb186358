"""Features to [0, 1] and back."""

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._runtime.blocks import ends_of
from ._runtime.validation import check_rows
from ._runtime.workspace import slices


class RangeEmbedding(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Each feature divided by its range, from 0 at its smallest value to 1.

    As :class:`~sklearn.preprocessing.MinMaxScaler`, but in double precision whatever
    comes in, and for every range that double precision has: a feature in tiny units is
    not taken for a constant, one whose range overflows is halved first. A constant
    feature becomes 0.

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
        """Rows in units of the range.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        embedded : ndarray of float64 of the same shape
        """
        check_is_fitted(self)
        return self._embed(check_rows(self, X, reset=False))

    def _embed(self, X, out=None):
        low, length, unit = self._range
        given = X if unit == 1 else X * unit
        embedded = np.subtract(given, low, out=out, dtype=np.float64)
        embedded /= np.where(length > 0, length, 1)
        return embedded

    def inverse_transform(self, X):
        """Rows in units of the features.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        rows : ndarray of float64 of the same shape
        """
        check_is_fitted(self)
        return in_units_of(self, np.array(X, dtype=np.float64))

    @property
    def _range(self):
        """Lower ends and lengths, times a unit with which no length overflows."""
        low, high = self.low_.astype(np.float64), self.high_.astype(np.float64)
        with np.errstate(over="ignore"):
            length = high - low
        if np.all(np.isfinite(length)):
            return low, length, 1.0
        return 0.25 * low, 0.25 * high - 0.25 * low, 0.25


def range_embedding(rows, ends, out=None):
    """A fitted :class:`RangeEmbedding` of rows that were checked, and these in it."""
    embedding = RangeEmbedding()
    embedding.input_shape_ = (rows.shape[1],)
    embedding.n_features_in_ = rows.shape[1]
    embedding.low_, embedding.high_ = ends
    return embedding, embedding._embed(rows, out)


def in_units_of(embedding, rows):
    """Rows of a range embedding in units of the features, in place."""
    low, length, unit = embedding._range
    rows *= length
    rows += low
    if unit != 1:
        rows /= unit
    return rows


def limits(rows, ends, slack):
    """How far new values of each feature may go: its range and a share of it.

    An end that several rows share is a bound, as of a percentage or a 0/1 column, and
    is not passed; nor is zero. No slack is no limit, but for constants.
    """
    low, high = ends
    if slack is None:
        varies = high > low
        return np.where(varies, -np.inf, low), np.where(varies, np.inf, high)
    shared_low, shared_high = (_count_equal(rows, end) > 1 for end in ends)
    low, high = low.astype(np.float64), high.astype(np.float64)
    with np.errstate(over="ignore"):
        beyond = slack * high - slack * low
        below = np.where(low >= 0, np.maximum(low - beyond, 0), low - beyond)
        above = np.where(high <= 0, np.minimum(high + beyond, 0), high + beyond)
    below = np.where(shared_low, low, below)
    above = np.where(shared_high, high, above)
    limit = np.finfo(rows.dtype if rows.dtype.kind == "f" else np.float64).max
    return np.maximum(below, -limit), np.minimum(above, limit)


def _count_equal(rows, row):
    """In how many rows each feature has the value that it has in ``row``."""
    count = np.zeros(len(row), np.intp)
    # As many rows as their number fits a byte.
    for some in slices(len(rows), 255):
        count += np.add.reduce(rows[some] == row, axis=0, dtype=np.uint8)
    return count


def fold(rows, low, high):
    """Values beyond a range, reflected at its ends, in place.

    Clipping would put them on the ends themselves, where a tree can tell them apart.
    """
    # They are few.
    far = rows < low
    far |= rows > high
    where = np.unravel_index(np.flatnonzero(far), rows.shape)
    low, high = low[where[1]], high[where[1]]
    values = rows[where]
    # Twice an end may overflow, and then an infinite value would become NaN.
    with np.errstate(over="ignore"):
        values = np.maximum(values, (low - values) + low)
        values = np.minimum(values, (high - values) + high)
    # Farther out than the range is long.
    rows[where] = np.clip(values, low, high)
    return rows
