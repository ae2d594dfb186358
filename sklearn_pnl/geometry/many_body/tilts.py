"""The convex problem of a projection: an exponential tilt that matches expectations.

A projection is ``q = start * exp(synthesis(x) - psi)``. The coefficients ``x`` are
chosen so that the basis functions have the same expectations under ``q`` and the
target.
"""

import numpy as np

from ..._utils.arrays import namespace, replaced, row_dots, some_rows, take, to_host
from ..coordinates import tilted_exp


class ExponentialTilt:
    """The function ``psi(x) - <x, moments>`` of coefficients ``x``.

    The distribution is ``q = start * exp(synthesis(x) - psi)``. The point of the
    problem is ``q``. The gradient is ``analysis(q - t)``, and the Hessian is the
    covariance matrix of the basis functions under ``q``. ``residual(q - t)`` is the
    residual, and ``zeros`` are the coefficients of the start. The start is given by its
    logs, because its cells can be smaller than the smallest float.
    """

    def __init__(self, basis, residual, log_start, target):
        self._basis = basis
        self._target = target
        self._residual = residual
        self._moments = basis.analysis(target)
        self.zeros = namespace(log_start).zeros_like(self._moments)
        self._log_start = log_start

    def longest(self, step, q):
        return self._basis.longest(step, q)

    def hessian_product(self, q, v):
        u = self._basis.synthesis(v)
        u -= row_dots(q, u)[:, None]
        u *= q
        return self._basis.analysis(u)

    def log_prob(self, x):
        """Compute the logs of the distributions of coefficients of all rows."""
        energy = self._basis.synthesis(x)
        energy += self._log_start
        xp = namespace(energy)
        energy -= xp.max(energy, axis=1)[:, None]
        energy -= xp.log(xp.sum(xp.exp(energy), axis=1))[:, None]
        return energy

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
    """A tilt whose residual also bounds the error of theta.

    The basis is orthonormal under the uniform distribution, so the variance of a
    function under ``q`` is at least ``D min(q)`` times its squared coefficients. For a
    gradient ``g``, the error of the logs of all cells is therefore, to first order, a
    vector of norm at most ``|g| / (sqrt(D) min(q))``. The residual is the maximum of
    the residual of the expectations and ``weight`` times this bound.
    """

    def __init__(self, basis, residual, log_start, target, tol, weight):
        super().__init__(basis, residual, log_start, target)
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
    """A tilt with the penalty ``v' diag(penalty) v / 2`` on the coefficients ``v``.

    The variables are ``v`` divided by ``scale``, so that Hessians are near the
    identity. The residual is half the norm of the gradient in ``v``.
    """

    def __init__(self, basis, penalty, log_start, target):
        super().__init__(basis, None, log_start, target)
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
