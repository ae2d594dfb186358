"""Log-linear models of observed cells: tilts with a ridge, or without and exact."""

from typing import NamedTuple

import numpy as np

from .coordinates import row_sums
from .observed import patterns_of
from .optimize import newton_cg, newton_dense
from .settling import settle_rows
from .solvers import BLOCK_CELLS, is_light, joined
from .tilts import ExponentialTilt

# Up to so many functions Newton is dense if there is a ridge.
_DENSE_UP_TO = 128
# Squares of functions times cells up to which light cells are settled: a second.
_SETTLED_UP_TO = 2**27


class ObservedCells(NamedTuple):
    """Rows (n, D): shares of the observed mass, where it is seen, what may be there."""

    target: np.ndarray
    seen: np.ndarray
    reference: np.ndarray
    mass: np.ndarray

    def rows(self, some):
        return ObservedCells(*(array[some] for array in self))


def fit_with_ridge(observed, design, ridge, settings):
    """Measures (n, D), residuals, gaps and steps of all rows, some at a time."""
    step = max(1, BLOCK_CELLS // observed.seen.shape[1])
    every = np.arange(len(observed.mass))
    minimise = newton_dense if design.n_functions <= _DENSE_UP_TO else newton_cg
    penalty = ridge * design.weights
    pieces = [
        (rows, _fit(observed.rows(rows), design.basis, penalty, minimise, settings))
        for rows in np.split(every, every[step::step])
    ]
    return joined(pieces)


def fit_exactly(observed, design, settings):
    """The same without a ridge; cells (n, D) that are estimable, and ranks (n,)."""
    pieces = []
    for rows, pattern in patterns_of(observed.seen):
        basis, known = design.seen_by(pattern)
        some, none = observed.rows(rows), np.zeros(len(basis.functions))
        found = _fit(some, basis, none, newton_dense, settings)
        if basis.functions.size * len(none) <= _SETTLED_UP_TO:
            _settle(*found[:2], some, design, basis, pattern, settings["tol"])
        estimable = known | (some.reference == 0)
        rank = np.full(len(rows), 1 + len(none))
        pieces.append((rows, (*found, estimable, rank)))
    return joined(pieces)


def _settle(measure, residual, observed, design, basis, seen, tol):
    """Rows with light cells, all of which see the same, to rounding in every cell."""

    def residual_of(difference):
        return _half_lengths(basis.analysis(np.where(seen, difference, 0.0)))

    measure /= observed.mass[:, None]
    light = np.flatnonzero(is_light(measure[:, seen]) & (residual <= tol))
    settle_rows(
        design.indicators,
        measure,
        observed.target,
        residual,
        light,
        residual_of,
        tol,
        seen,
    )
    measure *= observed.mass[:, None]


def _fit(observed, basis, penalty, minimise, settings):
    """Measures (n, D), residuals, gaps and steps of some rows."""
    start = np.where(observed.seen, observed.reference, 0.0)
    start /= row_sums(start)[:, None]
    tilt = RidgeTilt(basis, penalty, start, observed.target)
    found = minimise(tilt, np.zeros((len(start), len(penalty))), **settings)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        energy = tilt.energy(found.x) + np.log(observed.reference)
        top = np.where(observed.seen, energy, -np.inf).max(axis=1, keepdims=True)
        measure = np.exp(energy - top)
        held = np.where(observed.seen, measure, 0.0).sum(axis=1)
        measure *= (observed.mass / held)[:, None]
    measure[observed.reference == 0] = 0
    return measure, found.residual, tilt.gap(found.point), found.n_iter


class RidgeTilt(ExponentialTilt):
    """A tilt with a ridge; variables scaled so that Hessians are near the identity.

    The point kept is ``q`` on the observed cells, and the variables.
    """

    def __init__(self, basis, penalty, start, target):
        super().__init__(basis, start, target, None)
        self._penalty, self._scale = penalty, 1 / np.sqrt(1 + penalty)
        self._n_cells = start.shape[1]
        self.longest = lambda step, *_: basis.longest(step * self._scale)
        self.hessian_product = self._scaled_product

    def energy(self, x):
        """Log effects (n, D) of variables, at all cells."""
        return self._basis.synthesis(x * self._scale)

    def value(self, x, rows):
        value, q = super().value(x * self._scale, rows)
        value += 0.5 * ((x * self._scale) ** 2 @ self._penalty)
        return value, np.hstack([q, x])

    def gradient(self, point, rows):
        slope = self._slope(point, rows)
        return slope * self._scale, _half_lengths(slope)

    def _slope(self, point, rows=slice(None)):
        """The gradient in the orthonormal functions."""
        q, x = point[:, : self._n_cells], point[:, self._n_cells :]
        difference = self._basis.analysis(q - self._target[rows])
        return difference + x * (self._scale * self._penalty)

    def hessian(self, point, rows):
        hessian = self._basis.covariances(point[:, : self._n_cells])
        hessian *= self._scale[:, None] * self._scale
        m = len(self._scale)
        hessian[:, np.arange(m), np.arange(m)] += self._penalty * self._scale**2
        return hessian

    def _scaled_product(self, point, v):
        scale, penalty = (
            a.astype(v.dtype)[:, None] for a in (self._scale, self._penalty)
        )
        u = scale * v
        found = self._basis.hessian_product(point[: self._n_cells], u)
        return scale * (found + penalty * u)

    def gap(self, point):
        """Primal less dual value; see :class:`Completion`."""
        slope = self._slope(point)
        if self._penalty.any():
            return 0.5 * slope**2 @ (1 / self._penalty)
        x = point[:, self._n_cells :] * self._scale
        return np.abs(np.einsum("ij,ij->i", x, slope))


def _half_lengths(slopes):
    return 0.5 * np.linalg.norm(slopes, axis=1)
