"""The algorithm of the paper as its equations read: one row at a time, and dense.

A distribution is ``p = exp(Z theta) / sum`` with the zeta matrix ``Z``, and
``eta = Z' p``. The projection that matches ``eta*`` on a set ``M`` of elements, theta
off it pinned, follows the natural gradient

    theta_M += step * G^-1 (eta*_M - eta_M)

with the Fisher information ``G(x, y) = eta(x v y) - eta(x) eta(y)`` of the elements of
M. What does not depend on the row (the zeta matrix, its inverse, the joins) is computed
once; the linear system goes to LAPACK. A step is halved while the convex function
``psi - <theta, eta*>`` does not fall. With ``step=0.1`` this is the paper's descent:
its gap shrinks by about a tenth an iteration. With ``step=1`` it is Newton's method,
the best that can be made of it row by row.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np

_MAX_HALVINGS = 30


@dataclass(frozen=True)
class Answer:
    """What one row ended with: eta of the distribution found, and how it went."""

    eta: np.ndarray
    residual: float
    n_iter: int


class Textbook:
    """Projections on one tensor poset; ``matched`` is the mask of M."""

    def __init__(self, shape, matched, step=0.1, tol=1e-6, max_iter=300):
        self._step, self._tol, self._max_iter = step, tol, max_iter
        self.shape = tuple(shape)
        self._zeta = reduce(np.kron, [np.tri(length) for length in self.shape])
        self._moebius = reduce(np.kron, map(_differences, self.shape))
        self._matched = np.flatnonzero(matched)
        self._joins = self._find_joins()

    def forward(self, row, offset):
        """Project a row on the base of the elements M, from theta = 0."""
        p = self._embed(row, offset)
        theta = np.zeros(p.size)
        return self._follow(theta, self._zeta.T @ p)

    def backward_theta(self, code, neighbors, offset):
        """Decode a point of the base through M*: M holds the elements beyond it.

        theta off M is the mean over the neighbours, eta on M that of the code.
        ``code`` is the distribution; ``neighbors`` are rows.
        """
        thetas = [self._moebius @ np.log(self._embed(x, offset)) for x in neighbors]
        theta = np.mean(thetas, axis=0)
        theta[self._matched] = 0
        return self._follow(theta, self._zeta.T @ code.ravel())

    def _embed(self, row, offset):
        p = row.ravel().astype(np.float64) + offset
        return p / p.sum()

    def _follow(self, theta, wanted):
        M = self._matched
        value, p = self._value(theta, wanted)
        for n_iter in range(self._max_iter + 1):
            eta = self._zeta.T @ p
            gap = wanted[M] - eta[M]
            residual = np.abs(gap).max()
            if residual <= self._tol or n_iter == self._max_iter:
                break
            fisher = eta[self._joins] - np.outer(eta[M], eta[M])
            direction = _solve(fisher, gap)
            moved = self._descend(theta, direction, value, wanted)
            if moved is None:
                break
            theta, value, p = moved
        return Answer(eta, float(residual), n_iter)

    def _value(self, theta, wanted):
        """Compute ``psi - <theta, eta*>`` over M, and the distribution."""
        energy = self._zeta[:, 1:] @ theta[1:]
        top = energy.max()
        p = np.exp(energy - top)
        total = p.sum()
        psi = top + np.log(total)
        return psi - theta[self._matched] @ wanted[self._matched], p / total

    def _descend(self, theta, direction, value, wanted):
        """Halve the step until it lowers the value; return None if no step does."""
        slack = 1e-14 * max(1.0, abs(value))
        for halvings in range(_MAX_HALVINGS):
            trial = theta.copy()
            trial[self._matched] += 0.5**halvings * self._step * direction
            new_value, p = self._value(trial, wanted)
            if new_value <= value + slack:
                return trial, new_value, p
        return None

    def _find_joins(self):
        """Find the flat index of the least element above both, for all pairs of M."""
        cells = np.unravel_index(self._matched, self.shape)
        joins = [np.maximum(mode[:, None], mode) for mode in cells]
        return np.ravel_multi_index(joins, self.shape)


def _differences(length):
    return np.eye(length) - np.eye(length, k=-1)


def _solve(fisher, gap):
    try:
        return np.linalg.solve(fisher, gap)
    except np.linalg.LinAlgError:
        # Nearly empty cells can make it singular in floating point.
        return np.linalg.lstsq(fisher, gap)[0]
