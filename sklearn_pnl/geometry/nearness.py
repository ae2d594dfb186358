"""Nearness of codes in Kullback-Leibler divergence, as one of Euclid."""

import numpy as np
from scipy.linalg.lapack import dtrtrs

from .._runtime.workspace import slices
from .codec import CodeError
from .solvers import BLOCK_CELLS

# Below this share of the mean mass a divergence is summed cell by cell: as a
# difference of masses it would lose more than half of its digits.
_CANCELS = 1e-7


class KLEmbedding:
    r"""Points whose Euclidean order is that of ``KL(w, w_i)``, exactly.

    Only ``M_i - <eta_w, theta_i>`` of the divergence depends on the training point,
    with ``M`` the mass. With ``a = eta_w - eta_0`` and ``b_i = theta_i - theta_0``,
    from the mean code 0, and ``c_i = KL(w_0, w_i)`` it is ``c_i - <a, b_i>`` but for
    what the query decides. With ``F`` a factor of the metric at the mean and K just
    large enough for the root to be real,

    .. math:: | (F^{-1} a, 0) - (F' b_i, \sqrt{2 c_i - |F' b_i|^2 + K}) |^2
              = 2 (c_i - \langle a, b_i \rangle) + |F^{-1} a|^2 + K .

    Near the mean the root is small, and the distance that of the Fisher metric.

    Parameters
    ----------
    codec : Codec
    coordinates : ndarray of shape (n, m)
        Of the training points.
    masses : ndarray of shape (n,)
        Of the training points; 1 for distributions.

    Attributes
    ----------
    points : ndarray of shape (n, m + 1)
    """

    def __init__(self, codec, coordinates, masses):
        self._codec = codec
        mean = coordinates.mean(axis=0, keepdims=True)
        mean = codec.coordinates(codec.codes(mean))
        centre = np.exp(codec.base.energy(mean))
        self._eta = codec.base.expectations(centre)
        self._factor = codec.base.metric_factor(centre[0], codec.with_mass)
        self.points = np.empty((len(coordinates), self._eta.shape[1] + 1))
        gap = np.empty(len(coordinates))
        for block in _blocks(coordinates, centre.size):
            self.points[block, :-1], gap[block] = self._offsets(
                coordinates[block] - mean, masses[block], centre
            )
        self.points[:, -1] = np.sqrt(gap - gap.min(initial=0))

    def _offsets(self, offsets, masses, centre):
        """Scaled coordinates of a block, and what is missing of twice their KL."""
        total = centre.sum()
        divergence = masses - total - offsets @ self._eta[0]
        close = np.flatnonzero(divergence < _CANCELS * total)
        if len(close):
            energy = self._codec.base.energy(offsets[close])
            divergence[close] = _kl_of_energies(centre, energy)
        along = np.multiply if self._factor.ndim == 1 else np.matmul
        offsets = along(offsets, self._factor)
        # No query has a part in what normalising decides.
        offsets[:, : self._codec.n_fixed] = 0
        return offsets, 2 * divergence - np.einsum("ij,ij->i", offsets, offsets)

    def queries(self, codes):
        """Points of codes, whose nearest ``points`` are nearest in KL."""
        queries = np.zeros((len(codes), len(self._eta[0]) + 1))
        eta, step = queries[:, :-1], self._codec.encoded_at_once
        for block in slices(len(codes), step):
            try:
                measures = self._codec.measures(codes[block])
            except CodeError as error:
                error.row += block.start
                raise
            eta[block] = self._codec.base.expectations(measures)
        eta -= self._eta
        if self._factor.ndim == 1:
            eta /= self._factor
        else:
            eta[:] = dtrtrs(self._factor, eta.T, lower=True)[0].T
        return queries


def _blocks(coordinates, n_cells):
    """Slices of rows whose temporaries, cells too, stay in cache."""
    step = max(1, BLOCK_CELLS // max(n_cells, coordinates.shape[1]))
    return slices(len(coordinates), step)


def kl_of_neighbors(codes, neighbors, *, codec, coordinates):
    """``KL(w, w_i)`` (n, k) of a block of codes to k of the points with coordinates."""
    n, k = neighbors.shape
    own = codec.coordinates(codes)
    differences = coordinates[neighbors] - own[:, None]
    energies = codec.base.energy(differences.reshape(n * k, -1))
    measures = np.repeat(np.exp(codec.base.energy(own)), k, axis=0)
    return (_kl_of_energies(measures, energies).reshape(n, k),)


def gaps_of_neighbors(codes, neighbors, *, points):
    """Euclidean distances (n, k) of a block of codes to k of the points."""
    return (np.linalg.norm(points[neighbors] - codes[:, None], axis=2),)


def _kl_of_energies(measure, energy):
    """``KL(m, m exp(u)) = sum m (exp(u) - 1 - u)``, without cancellation."""
    terms = np.expm1(energy)
    terms -= energy
    terms *= measure
    return np.maximum(terms.sum(axis=1), 0)
