"""The convex problem of a projection: an exponential tilt that matches expectations.

A projection is ``q = start * exp(synthesis(x) - psi)`` with ``x`` chosen so that the
expectations of the basis functions equal those of the target.
"""

import numpy as np

from ..._runtime.arrays import namespace, row_dots, some_rows
from ..coordinates import tilted_exp


class ExponentialTilt:
    """``psi(x) - <x, moments>`` for ``q = start * exp(synthesis(x) - psi)``.

    The point kept is ``q``. Gradient ``analysis(q - t)``, Hessian the covariance of
    the basis functions under ``q``. ``residual(q - t)`` is what is small in the end.
    ``zeros`` are the coefficients of the start.
    """

    def __init__(self, basis, residual, start, target):
        self._basis = basis
        self._target = target
        self._residual = residual
        self._moments = basis.analysis(target)
        xp = namespace(start)
        self.zeros = xp.zeros_like(self._moments)
        with np.errstate(divide="ignore"):
            self._log_start = xp.log(start)

    def longest(self, step, q):
        return self._basis.longest(step, q)

    def hessian_product(self, q, v):
        u = self._basis.synthesis(v)
        u -= row_dots(q, u)[:, None]
        u *= q
        return self._basis.analysis(u)

    def value(self, x, rows):
        energy = self._basis.synthesis(x)
        energy += some_rows(self._log_start, rows)
        q, psi = tilted_exp(energy)
        return psi - row_dots(x, some_rows(self._moments, rows)), q

    def gradient(self, x, q, rows):
        target = some_rows(self._target, rows)
        return self._basis.gradient(q - target, self._residual)

    def hessian(self, q, rows):
        return self._basis.covariances(q)


class RidgeTilt(ExponentialTilt):
    """A tilt with ``v' diag(penalty) v / 2`` added, for coefficients ``v``.

    Variables are ``v`` in units in which Hessians are near the identity. The residual
    is half the length of the gradient in ``v``.
    """

    def __init__(self, basis, penalty, start, target):
        super().__init__(basis, None, start, target)
        self._penalty, self.scale = penalty, 1 / np.sqrt(1 + penalty)

    def value(self, x, rows):
        v = x * self.scale
        value, q = super().value(v, rows)
        return value + 0.5 * (v**2 @ self._penalty), q

    def gradient(self, x, q, rows):
        slope = self._basis.analysis(q - self._target[rows])
        slope += x * self.scale * self._penalty
        return slope * self.scale, 0.5 * np.linalg.norm(slope, axis=1)

    def longest(self, step, q):
        return super().longest(step * self.scale, q)

    def hessian(self, q, rows):
        hessian = super().hessian(q, rows)
        hessian += np.diag(self._penalty)
        hessian *= self.scale[:, None] * self.scale
        return hessian

    def hessian_product(self, q, v):
        scale, penalty = (a.astype(v.dtype) for a in (self.scale, self._penalty))
        u = scale * v
        return scale * (super().hessian_product(q, u) + penalty * u)
