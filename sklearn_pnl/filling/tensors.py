"""Missing cells of tensors: those of a log-linear model of the observed ones."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn import config_context
from sklearn.impute import KNNImputer

from .._runtime.arrays import BLOCK_CELLS
from .._runtime.blocks import map_blocks
from .._runtime.validation import warn_unconverged, warn_user
from ..codec import free_mask
from ..embedding import LayOut
from ..geometry import complete
from ..geometry.many_body.observed import checked_modes


class NearRows:
    """Means of the training rows (n, D) nearest to others, where cells are missing.

    Euclidean over what both rows have, columns divided by their range.
    """

    def __init__(self, rows, n_neighbors):
        # Columns without a value have no range.
        ends = np.fmin.reduce(rows), np.fmax.reduce(rows)
        self._low, high = map(np.nan_to_num, ends)
        self._unit = np.where(high > self._low, high - self._low, 1.0)
        self._imputer = KNNImputer(n_neighbors=n_neighbors, keep_empty_features=True)
        # Returns an array even if data frames are the global output of scikit-learn.
        self._imputer.set_output(transform="default")
        self._imputer.fit((rows - self._low) / self._unit)

    def transform(self, rows):
        """Rows (n, D) with means of near ones where cells are missing."""
        # Distances in chunks that fit the caches take half as long.
        with config_context(working_memory=16):
            filled = self._imputer.transform((rows - self._low) / self._unit)
        return filled * self._unit + self._low


class TensorFiller:
    """Fill rows (n, D) of tensors or measures on a poset for an imputer."""

    equalities = None

    def __init__(self, imputer, rows):
        shape = imputer.input_shape_
        self._layout = LayOut(imputer.reshaper, imputer.poset, shape, reduced=False)
        self._layout.fit(np.nan_to_num(rows))
        self.poset = self._layout.poset
        self.mask = free_mask(self.poset, imputer.order_, imputer.base)
        self._offset, self._n_jobs = imputer.offset, imputer.n_jobs
        self._settings = {
            "poset": self.poset,
            "matched": self.mask,
            "ordered_modes": checked_modes(self.poset, imputer.ordered_modes),
            "ridge": imputer.alpha,
            "tol": imputer.tol,
            "max_iter": imputer.max_iter,
        }
        k = imputer.n_neighbors
        self._near = None if k is None else NearRows(rows, k)

    def fill(self, rows, missing, numbers):
        """Rows, which messages name by their numbers, filled; and the Newton steps."""
        measure, residual, n_iter = self._models(rows)
        tol, max_iter = self._settings["tol"], self._settings["max_iter"]
        warn_unconverged("ManyBodyImputer", residual, tol, max_iter)
        measure = measure[:, int(self.poset.added_bottom) :] - self._offset
        filled = self._layout.back(np.maximum(measure, 0.0))
        left = missing & np.isnan(filled)
        if left.any():
            row, cell = map(int, np.argwhere(left)[0])
            warn_user(
                f"{left.sum()} of {missing.sum()} missing cells are not "
                "determined by the observed ones and stay missing; the first is cell "
                f"{cell} of row {numbers[row]}. A smaller order or alpha > 0 gives "
                "them a value."
            )
        return filled, max(1, int(n_iter.max()))

    def _with_bottom(self, cells, value):
        n_added = int(self.poset.added_bottom)
        return np.pad(cells, ((0, 0), (n_added, 0)), constant_values=value)

    def _models(self, rows):
        """Models (n, D) of rows with NaN, their residuals and steps."""
        missing = np.isnan(rows)
        cells = self._layout.forward(np.where(missing, 0.0, rows)) + self._offset
        seen = self._layout.forward(1.0 - missing) == 1
        cells = self._with_bottom(np.where(seen, cells, np.nan), np.nan)
        reference = np.ones_like(cells)
        if self._near is not None:
            near = self._near.transform(rows)
            # A share of its mean, so that no cell of a reference is 0.
            near += 1e-3 * near.mean(axis=1, keepdims=True)
            reference = self._with_bottom(self._layout.forward(near), 1.0)
        model = partial(_model_block, **self._settings)
        tensors = (x.reshape(-1, *self.poset.shape) for x in (cells, reference))
        step = max(1, BLOCK_CELLS // cells.shape[1])
        measure, *more = map_blocks(model, *tensors, step=step, n_jobs=self._n_jobs)
        return measure.reshape(cells.shape), *more


def _model_block(cells, reference, **settings):
    completion = complete(cells, reference=reference, **settings)
    return completion.measure, completion.residual, completion.n_iter
