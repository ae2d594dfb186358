"""Training points near a code in Kullback-Leibler divergence."""

from functools import partial

import numpy as np
from joblib import effective_n_jobs
from scipy.spatial import KDTree
from sklearn.utils import gen_batches

from ._validation import map_threads

# Above so many training rows, with at most so many coordinates, a tree finds
# candidates.
_TREE_FROM, _TREE_COORDINATES = 2**14, 12
# Candidates for k neighbours: so many times k, and so many more.
_CANDIDATES = (3, 8)
# The tree takes the directions that hold all but this share of the variance, as found
# from so many training points. Larger leaves than SciPy's own suit so many candidates.
_DROPPED_VARIANCE, _VARIANCE_POINTS, _LEAF = 1e-3, 2048, 32
# Queries looked up at once, in an order in which neighbours follow each other.
_LOOKED_UP = 2**14
# Rows of the KL matrix, and training rows, handled at once. Fixed, so that rounding
# and with it the order of near-ties never depends on settings of memory.
_QUERIES, _TRAINING = 256, 8192
# Rows of at least so many groups' worth of values are partitioned by groups first.
_GROUPS, _LONG = 256, 16


def kl_neighbors(base, codes, training, masses, k, n_jobs=None):
    """The k training points nearest in ``KL(w, w_i)``, by one matrix product.

    ``KL(w, w_i) = <eta_w, theta_w - theta_i> - m_w + m_i`` over bottom and base, since
    theta vanishes elsewhere; ``m`` is the mass, 1 for distributions. ``training`` holds
    theta on bottom and base, ``masses`` the masses of the same points.

    Against very many training points with short codes, the product is with the
    candidates that a tree finds by the distance between square roots of the cells, of
    which KL is twice the square to second order.
    """
    short = training.shape[1] <= _TREE_COORDINATES
    times, more = _CANDIDATES
    if short and max(_TREE_FROM, times * k + more) < len(training):
        return _tree_search(base, codes, training, masses, k, n_jobs)
    blocks = [codes[rows] for rows in gen_batches(len(codes), _QUERIES)]
    search = partial(_search, base, training, masses, k)
    return _joined(map_threads(search, blocks, n_jobs))


def _tree_search(base, codes, training, masses, k, n_jobs):
    """:func:`kl_neighbors` among the candidates that a tree finds."""
    roots = _RootsOfCells(base, training)
    own_codes = training if base.with_mass else training[:, 1:]
    tree = KDTree(roots.of_codes(own_codes), leafsize=_LEAF)
    times, more = _CANDIDATES
    workers = effective_n_jobs(n_jobs)
    found = []
    for part in gen_batches(len(codes), _LOOKED_UP):
        points = roots.of_codes(codes[part])
        order = KDTree(points, leafsize=_LEAF).indices
        near = np.empty((len(points), times * k + more), np.intp)
        near[order] = tree.query(points[order], near.shape[1], workers=workers)[1]
        found += [
            _among(base, codes[part][rows], training, masses, k, near[rows])
            for rows in gen_batches(len(points), _QUERIES)
        ]
    return _joined(found)


class _RootsOfCells:
    """Square roots of the cells of measures, in the directions in which they vary.

    The Fisher metric is four times that of Euclid between these (Amari 2016,
    section 2.5), wherever on the manifold.
    """

    def __init__(self, base, training):
        self._base = base
        some = training[:: -(-len(training) // _VARIANCE_POINTS)]
        roots = self._roots(some if base.with_mass else some[:, 1:])
        self._mean = roots.mean(axis=0)
        _, spread, directions = np.linalg.svd(roots - self._mean, full_matrices=False)
        held = np.cumsum(spread**2) / max(np.sum(spread**2), np.finfo(float).tiny)
        n_kept = 1 + np.count_nonzero(held < 1 - _DROPPED_VARIANCE)
        self._directions = directions[:n_kept].T

    def of_codes(self, codes):
        return np.concatenate(
            [
                (self._roots(codes[rows]) - self._mean) @ self._directions
                for rows in gen_batches(len(codes), _QUERIES)
            ]
        )

    def _roots(self, codes):
        q, log_mass, _ = self._base.points(codes)
        return np.sqrt(q.reshape(len(q), -1)) * np.exp(0.5 * log_mass)[:, None]


def _among(base, codes, training, masses, k, near):
    """The k nearest of the candidates of each code."""
    own, eta = _terms(base, codes)
    divergence = np.einsum("ij,ikj->ik", eta, training[near])
    divergence = own[:, None] - divergence + masses[near]
    kept = _smallest(divergence, k)
    return _ranked(*(np.take_along_axis(a, kept, 1) for a in (divergence, near)))


def _joined(found):
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def _terms(base, codes):
    """What KL takes from the codes alone, and their eta on bottom and base."""
    q, log_mass, psi = base.points(codes)
    mass = np.exp(log_mass)
    eta = base.expectations(q, mass)
    theta = codes[:, 1:] if base.with_mass else codes
    own = mass * (log_mass - psi - 1) + np.einsum("ij,ij->i", eta[:, 1:], theta)
    return own, eta


def _search(base, training, masses, k, codes):
    own, eta = _terms(base, codes)
    best = np.empty((len(codes), 0))
    index = np.empty((len(codes), 0), np.intp)
    for start in range(0, len(training), _TRAINING):
        part = slice(start, start + _TRAINING)
        divergence = eta @ training[part].T
        np.subtract(masses[part], divergence, out=divergence)
        here = _smallest(divergence, k)
        values = np.take_along_axis(divergence, here, axis=1)
        best, index = np.hstack([best, values]), np.hstack([index, start + here])
        kept = _smallest(best, k)
        best, index = (np.take_along_axis(a, kept, axis=1) for a in (best, index))
    return _ranked(own[:, None] + best, index)


def _ranked(best, index):
    """Ascending; equal ones by their index."""
    by_index = np.argsort(index, axis=1)
    best, index = (np.take_along_axis(a, by_index, axis=1) for a in (best, index))
    ranked = np.argsort(best, axis=1, kind="stable")
    best, index = (np.take_along_axis(a, ranked, axis=1) for a in (best, index))
    return np.maximum(best, 0), index


def _smallest(values, k):
    """Columns of the k smallest values of each row, in no order."""
    n, width = values.shape
    if width <= k:
        return np.broadcast_to(np.arange(width), (n, width))
    if width < _LONG * _GROUPS or k * _LONG > _GROUPS:
        return np.argpartition(values, k - 1, axis=1)[:, :k]
    # They lie in the k groups with the smallest minima, and beyond the whole groups.
    size = width // _GROUPS
    whole = values[:, : size * _GROUPS].reshape(n, size, _GROUPS)
    groups = np.argpartition(whole.min(axis=1), k - 1, axis=1)[:, :k]
    columns = groups[:, None, :] + _GROUPS * np.arange(size)[:, None]
    beyond = np.broadcast_to(np.arange(size * _GROUPS, width), (n, width % _GROUPS))
    columns = np.hstack([columns.reshape(n, -1), beyond])
    kept = _smallest(np.take_along_axis(values, columns, axis=1), k)
    return np.take_along_axis(columns, kept, axis=1)
