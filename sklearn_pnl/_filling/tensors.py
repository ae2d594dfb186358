"""Missing cells of tensors: those of a log-linear model of the observed ones."""

from functools import partial

import numpy as np

from .._drawing.coding import free_mask
from .._drawing.steps import LayOut
from .._runtime.blocks import map_blocks
from .._runtime.validation import warn_unconverged, warn_user
from ..geometry import complete, kl_divergence
from ..geometry.observed import smooth_modes
from .near import NearRows

# Cells of a block of rows, as many as stay in cache.
_BLOCK_CELLS = 2**17
# A reference of near rows gets this share of its mean, so that it rules out no cell.
_LEAST_REFERENCE = 1e-3
# What "auto" chooses from; the share of observed cells that are hidden for that, and
# the rows.
_ALPHAS = tuple(10.0 ** np.arange(-8, 0))
_HIDDEN, _ROWS_HIDDEN = 0.2, 50


class TensorFiller:
    """Rows (n, D) of tensors or measures on a poset, filled as an imputer asks."""

    # Of no equations.
    system = None

    def __init__(self, imputer, rows):
        self._lay_out = LayOut(
            imputer.reshaper, imputer.poset, imputer.input_shape_, reduced=False
        )
        self._lay_out.fit(np.nan_to_num(rows))
        self.poset = self._lay_out.poset
        self.mask = free_mask(self.poset, imputer.order_, imputer.base)
        self._offset, self._n_jobs = imputer.offset, imputer.n_jobs
        self._settings = {
            "poset": self.poset,
            "matched": self.mask,
            "smooth": smooth_modes(self.poset, imputer.smooth),
            "tol": imputer.tol,
            "max_iter": imputer.max_iter,
        }
        k = imputer.n_neighbors
        self._near = None if k is None else NearRows(rows, k)
        alphas = _ALPHAS if isinstance(imputer.alpha, str) else imputer.alpha
        self.alpha, self.deviance = alphas, np.nan
        if np.ndim(alphas):
            self._choose_alpha(alphas, rows[:_ROWS_HIDDEN])

    def fill(self, rows, missing, numbers, whom):
        """Rows that are known by some numbers, filled, and the most Newton steps."""
        measure, residual, n_iter = self._models(self._cells(rows), rows, self.alpha)
        tol, max_iter = self._settings["tol"], self._settings["max_iter"]
        warn_unconverged(whom, residual, tol, max_iter)
        measure = measure[:, int(self.poset.added_bottom) :] - self._offset
        found = self._lay_out.back(np.maximum(measure, 0.0))
        left = missing & np.isnan(found)
        if left.any():
            row, cell = map(int, np.argwhere(left)[0])
            warn_user(
                f"{whom}: {left.sum()} of {missing.sum()} missing cells are not "
                "determined by the observed ones and stay missing; the first is cell "
                f"{cell} of row {numbers[row]}. A smaller order or alpha > 0 gives "
                "them a value."
            )
        return found, max(1, int(n_iter.max()))

    def is_off(self, rows):
        """None, of no equations."""
        return np.zeros(len(rows), bool)

    def _cells(self, rows):
        """Cells (n, D) on the poset, NaN where missing."""
        missing = np.isnan(rows)
        cells = self._lay_out.forward(np.where(missing, 0.0, rows))
        seen = self._lay_out.forward(1.0 - missing) == 1
        return self._with_bottom(np.where(seen, cells + self._offset, np.nan), np.nan)

    def _with_bottom(self, cells, value):
        if not self.poset.added_bottom:
            return cells
        return np.column_stack([np.full(len(cells), value), cells])

    def _models(self, cells, rows, alpha):
        """Models (n, D) of cells with NaN, their residuals and steps."""
        reference = np.ones_like(cells)
        if self._near is not None:
            near = self._near.means(rows)
            near += _LEAST_REFERENCE * near.mean(axis=1, keepdims=True)
            reference = self._with_bottom(self._lay_out.forward(near), 1.0)
        model = partial(_model_block, ridge=alpha, **self._settings)
        step = max(1, _BLOCK_CELLS // cells.shape[1])
        return map_blocks(model, cells, reference, step=step, n_jobs=self._n_jobs)

    def _choose_alpha(self, alphas, rows):
        """The ridge with the least deviance of hidden cells."""
        alphas = sorted({float(alpha) for alpha in alphas}, reverse=True)
        hidden = np.random.default_rng(0).random(rows.shape) < _HIDDEN
        hidden &= ~np.isnan(rows)
        shown = np.where(hidden, np.nan, rows)
        some = np.nansum(shown, axis=1) > 0
        if not (hidden[some].any() and min(alphas, default=-1) >= 0):
            raise ValueError(
                "alpha is chosen by hidden cells, beside observed ones in a row; with "
                f"n_features={rows.shape[1]} there are none, or alpha={self.alpha!r} "
                "has no value of 0 or more. Give one alpha."
            )
        cells, shown = self._cells(shown[some]), shown[some]
        truth = np.where(np.isnan(cells), self._cells(rows[some]), np.nan)
        scores = [
            _deviance(truth, self._models(cells, shown, alpha)[0]) for alpha in alphas
        ]
        best = int(np.argmin(scores))
        self.alpha, self.deviance = alphas[best], scores[best]


def _model_block(cells, reference, **settings):
    shape = -1, *settings["poset"].shape
    found = complete(
        cells.reshape(shape), reference=reference.reshape(shape), **settings
    )
    return found.measure.reshape(cells.shape), found.residual, found.n_iter


def _deviance(truth, model):
    """Poisson deviance of the cells of ``truth`` that are not NaN, for a mass of 1."""
    some = ~np.isnan(truth)
    mass = truth[some].sum()
    if mass == 0 or np.isnan(model[some]).any():
        return np.inf
    return 2 * kl_divergence(truth[some], model[some]) / mass
