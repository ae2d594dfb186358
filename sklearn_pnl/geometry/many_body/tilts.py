"""The convex problem of a projection: an exponential tilt that matches expectations.

A projection is ``q = start * exp(synthesis(x) - psi)`` with ``x`` chosen so that the
expectations of the basis functions equal those of the target.
"""

import numpy as np

from ..._utils.arrays import namespace, replaced, row_dots, some_rows, take, to_host
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


class SettledTilt(ExponentialTilt):
    """A tilt whose residual also bounds how far theta is from the solution.

    The basis is orthonormal at the uniform distribution, so that the variance of a
    function under ``q`` is at least ``D min(q)`` times its squared coefficients. With
    the gradient ``g`` the logs of all cells are therefore off by a vector that is, to
    first order, not longer than ``|g| / (sqrt(D) min(q))``. The residual is the larger
    one of the residual of the expectations and ``weight`` times this bound.
    """

    def __init__(self, basis, residual, start, target, tol, weight):
        super().__init__(basis, residual, start, target)
        self._tol, self._weight = tol, weight / np.sqrt(target.shape[1])

    def gradient(self, x, q, rows):
        gradient, residual = super().gradient(x, q, rows)
        near = np.flatnonzero(to_host(residual <= self._tol))
        if len(near):
            xp, some = namespace(gradient), some_rows(gradient, near)
            bound = self._weight * xp.sqrt(row_dots(some, some))
            bound = bound / xp.min(some_rows(q, near), axis=1)
            missed = take(residual, near)
            bound = xp.where(bound > missed, bound, missed)
            (residual,) = replaced((residual,), near, (bound,))
        return gradient, residual


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
