"""There and back: values to cells of a tensor or poset, each step with both ways."""

from math import prod

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from .._runtime.blocks import ends_of
from .._runtime.validation import check_made, check_measures, warn_user
from ..embedding import RangeEmbedding, in_units_of, range_embedding
from ..reshape import PrimeFactorReshaper
from .coding import lay_out

# Rows of which the way back is tried, and how much farther off than the mean they end.
_TRIED, _ASTRAY = 1000, 2.0
_INVERSE = (
    "FunctionTransformer needs an inverse_func, such as np.expm1 beside np.log1p."
)


class Embed:
    """Rows (n, D) of values to non-negative ones, ``embedded``, and back."""

    def __init__(self, embedding, offset, whom):
        self.transformer = embedding
        self._offset, self._whom = offset, whom

    def fit(self, table, rows, ends):
        """Embed the rows of a table, which must not be lost in the offset.

        Rows are passed over as rarely as can be: their ends tell most.
        """
        names = table.column_names if len(table.shape) == 1 else None
        where = "after the embedding"
        if self.transformer is None:
            embedded, where = rows, f"in data passed to {self._whom}"
        elif isinstance(self.transformer, str):
            out = rows if table.owned and rows.dtype == np.float64 else None
            self.transformer, embedded = range_embedding(rows, ends, out)
            ends = np.zeros(rows.shape[1]), 1.0 * (ends[1] > ends[0])
        else:
            self.transformer = clone(self.transformer)
            # In single precision scalers lose what is small beside a range.
            double = rows.astype(np.float64, copy=False)
            embedded = _plain(self.transformer.fit_transform(double))
            names = names if embedded.shape == rows.shape else None
            check_made(embedded, "The embedding", names)
            ends = self._ends = ends_of(embedded)
        own = embedded.shape[1] == prod(table.shape)
        self.shape = table.shape if own else embedded.shape[1:]
        if self._offset == 0 or ends[0].min(initial=0) < 0:
            cells, numbers = embedded.reshape(-1, *self.shape), table.row_numbers
            whom = f"Negative values {where}"
            advice = "pass embedding='minmax'" if self.transformer is None else None
            check_measures(
                cells, whom, self._offset, names=names, numbers=numbers, advice=advice
            )
        _check_kept(ends, self._offset, names)
        if not isinstance(self.transformer, RangeEmbedding | None):
            self._check_back(rows[:_TRIED], embedded[:_TRIED])
        return embedded

    def _check_back(self, rows, embedded):
        """Warn of an inverse that is none: what loses something does not lose all."""
        back, advice = self.back(np.array(embedded, np.float64)), _INVERSE
        if back.shape != rows.shape:
            raise ValueError(
                f"The way back from embedding={self.transformer!r} gives an array of "
                f"shape {back.shape} for rows of shape {rows.shape}. {advice}"
            )
        gap = back - rows
        spread = np.sum((rows - rows.mean(axis=0)) ** 2) + 1e-6 * np.sum(rows**2)
        astray = not np.sum(gap**2) <= _ASTRAY * spread
        if astray or self._is_idle(back, embedded):
            warn_user(
                f"The way back from embedding={self.transformer!r} leads elsewhere: "
                f"rows come back as others, and new rows are as far off. {advice}"
            )

    def _is_idle(self, back, embedded):
        """Whether the way back does nothing, but the way there does something again."""
        return np.array_equal(back, embedded) and not np.allclose(
            self.forward(back), back
        )

    def forward(self, rows):
        """Rows (n, D) of other values."""
        if self.transformer is not None:
            double = rows.astype(np.float64, copy=False)
            rows = _plain(self.transformer.transform(double))
        return rows.reshape(len(rows), -1)

    def back(self, embedded, zeros=None):
        """Values (n, D) in double precision, some of which are ``zeros``."""
        if self.transformer is None and zeros is not None and zeros.size:
            embedded = _with_zeros(embedded, zeros)
        if isinstance(self.transformer, RangeEmbedding):
            return in_units_of(
                self.transformer, embedded.astype(np.float64, copy=False)
            )
        # The offset leaves cells below 0, which not every embedding goes on to.
        # A range does, and how far is for `range_slack` to say.
        embedded = np.maximum(embedded, 0, out=embedded)
        if self.transformer is not None:
            embedded = self._inverse(embedded)
        return embedded.astype(np.float64, copy=False).reshape(len(embedded), -1)

    def _inverse(self, embedded):
        """Values; an inverse that has none so far out is asked at the nearest end."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = _plain(self.transformer.inverse_transform(embedded))
            lost = ~np.isfinite(values)
            if lost.any():
                ends = np.clip(embedded, *self._ends)
                values[lost] = _plain(self.transformer.inverse_transform(ends))[lost]
        return values

    def check_end(self, rows):
        """Refuse new rows that the user's own way back has led out of numbers."""
        if not isinstance(self.transformer, RangeEmbedding | None):
            check_made(rows, f"The way back from embedding={self.transformer!r}")


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
        """Lay out embedded rows; the poset is known then."""
        cells = embedded.reshape(-1, *self._shape)
        if self.reshaper is not None:
            cells = _plain(self.reshaper.fit_transform(cells))
            check_made(cells, f"reshaper={self.reshaper!r}")
        elif self.poset is not None:
            cells = embedded
        self._cell_shape = cells.shape[1:]
        self.poset = lay_out(self.poset, self._cell_shape, self.reshaper)
        return cells.reshape(len(cells), -1)

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
        tensors = cells.reshape(-1, *self._cell_shape)
        rows = _plain(self.reshaper.inverse_transform(tensors))
        return rows.reshape(len(cells), -1)

    def check_end(self, embedded):
        """Refuse embedded rows that the user's own way back has led out of numbers."""
        if not isinstance(self.reshaper, PrimeFactorReshaper | None):
            check_made(embedded, f"The way back from reshaper={self.reshaper!r}")


def _plain(rows):
    """What a transformer gave, sparse or a frame, as an array to be written on."""
    return np.require(rows.toarray() if issparse(rows) else rows, requirements="W")


def _with_zeros(rows, zeros):
    """Rows with zeros, none below zero; sums that are not either stay as they are."""
    sums = np.maximum(rows.sum(axis=1, keepdims=True), 0)
    rows = np.where(zeros, 0, np.maximum(rows, 0))
    left = rows.sum(axis=1, keepdims=True)
    return rows * np.divide(sums, left, out=np.ones_like(left), where=left > 0)


def _check_kept(ends, offset, names=None):
    """Refuse features that the offset would round to a constant."""
    low, high = ends
    lost = (high > low) & (high + offset == low + offset)
    if lost.any():
        column = int(np.argmax(lost))
        name = column if names is None else names[column]
        raise ValueError(
            f"Column {name!r} spans {high[column] - low[column]:.3g} after the "
            f"embedding, which offset={offset:g} rounds away. Use embedding='minmax', "
            "or a smaller offset."
        )
