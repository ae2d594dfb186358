"""The convex problem of a projection: an exponential tilt that matches expectations.

A projection is ``q = start * exp(synthesis(x) - psi)`` with ``x`` chosen so that the
expectations of the basis functions equal those of the target.
"""

import numpy as np

from .._arrays import some_rows
from ..coordinates import tilted_exp


class ExponentialTilt:
    """``psi(x) - <x, moments>`` for ``q = start * exp(synthesis(x) - psi)``.

    The point kept is ``q``. Gradient ``analysis(q - t)``, Hessian the covariance of
    the basis functions under ``q``. ``residual(q - t)`` is what is small in the end.
    """

    def __init__(self, basis, residual, start, target):
        self._basis = basis
        self._target = target
        self._residual = residual
        self.moments = basis.analysis(target)
        with np.errstate(divide="ignore"):
            self._log_start = np.log(start)

    def longest(self, step, q):
        return self._basis.longest(step, q)

    def hessian_product(self, q, v):
        return self._basis.hessian_product(q, v)

    def value(self, x, rows):
        energy = self._basis.synthesis(x)
        energy += some_rows(self._log_start, rows)
        q, psi = tilted_exp(energy)
        return psi - np.einsum("ij,ij->i", x, some_rows(self.moments, rows)), q

    def gradient(self, q, rows):
        target = some_rows(self._target, rows)
        return self._basis.gradient(q - target, self._residual)

    def hessian(self, q, rows):
        return self._basis.covariances(q)


class RidgeTilt(ExponentialTilt):
    """A tilt with ``v' diag(penalty) v / 2`` added, for coefficients ``v``.

    Variables are ``v`` in units in which Hessians are near the identity. The point kept
    is ``q``, then ``v``; the residual half the length of the gradient in ``v``.
    """

    def __init__(self, basis, penalty, start, target):
        super().__init__(basis, None, start, target)
        self._penalty, self._scale = penalty, 1 / np.sqrt(1 + penalty)
        self.n_cells = start.shape[1]

    def value(self, x, rows):
        v = x * self._scale
        value, q = super().value(v, rows)
        return value + 0.5 * (v**2 @ self._penalty), np.hstack([q, v])

    def slope(self, point, rows=slice(None)):
        q, v = np.split(point, [self.n_cells], axis=1)
        return self._basis.analysis(q - self._target[rows]) + v * self._penalty

    def gradient(self, point, rows):
        slope = self.slope(point, rows)
        return slope * self._scale, 0.5 * np.linalg.norm(slope, axis=1)

    def longest(self, step, point):
        return super().longest(step * self._scale, point[:, : self.n_cells])

    def hessian(self, point, rows):
        hessian = super().hessian(point[:, : self.n_cells], rows)
        hessian += np.diag(self._penalty)
        hessian *= self._scale[:, None] * self._scale
        return hessian

    def hessian_product(self, point, v):
        scale, penalty = (a.astype(v.dtype) for a in (self._scale, self._penalty))
        u = scale * v
        product = super().hessian_product(point[:, : self.n_cells], u)
        return scale * (product + penalty * u)
