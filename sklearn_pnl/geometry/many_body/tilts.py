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
        self.longest, self.hessian_product = basis.longest, basis.hessian_product

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
