"""Training points near a code in Kullback-Leibler divergence."""

from functools import partial

import numpy as np
from joblib import effective_n_jobs
from scipy.spatial import KDTree

# Above so many training rows, with at most so many coordinates, a tree finds
# candidates.
_TREE_FROM, _TREE_COORDINATES = 2**14, 12
# Candidates for k neighbours: so many times k, and so many more.
_CANDIDATES = (4, 16)
# Training points that the mean Fisher metric is taken over.
_METRIC_POINTS = 512
# Rows of the KL matrix, and training rows, handled at once. Fixed, so that rounding
# and with it the order of near-ties never depends on settings of memory.
_QUERIES, _TRAINING = 256, 8192


def kl_neighbors(base, codes, training, masses, k, n_jobs=None):
    """The k training points nearest in ``KL(w, w_i)``, by one matrix product.

    ``KL(w, w_i) = <eta_w, theta_w - theta_i> - m_w + m_i`` over bottom and base, since
    theta vanishes elsewhere; ``m`` is the mass, 1 for distributions. ``training`` holds
    theta on bottom and base, ``masses`` the masses of the same points.

    Against very many training points with short codes, the product is with the
    candidates that a tree finds in the mean Fisher metric, of which KL is half the
    square to second order.
    """
    short = training.shape[1] <= _TREE_COORDINATES
    times, more = _CANDIDATES
    if short and max(_TREE_FROM, times * k + more) < len(training):
        search = _tree_search(base, training, masses, k, n_jobs)
    else:
        search = partial(_search, base, training, masses, k)
    found = [
        search(codes[start : start + _QUERIES])
        for start in range(0, len(codes), _QUERIES)
    ]
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def _tree_search(base, training, masses, k, n_jobs):
    """A search among the candidates that a tree finds."""
    root = _mean_metric_root(base, training)
    tree = KDTree(training @ root)
    times, more = _CANDIDATES
    workers = effective_n_jobs(n_jobs)

    def search(codes):
        own, eta, coordinates = _terms(base, codes)
        _, near = tree.query(coordinates @ root, times * k + more, workers=workers)
        divergence = np.einsum("ij,ikj->ik", eta, training[near])
        divergence = own[:, None] - divergence + masses[near]
        kept = _smallest(divergence, k)
        return _ranked(*(np.take_along_axis(a, kept, 1) for a in (divergence, near)))

    return search


def _mean_metric_root(base, training):
    """``R`` with ``R R'`` the mean over training points of the metric of measures.

    On bottom and base: the Gram matrix of the zeta functions. For distributions, of one
    mass, it agrees with the Fisher metric to second order of KL.
    """
    part = training[:: -(-len(training) // _METRIC_POINTS)]
    q, log_mass, _ = base.points(part if base.with_mass else part[:, 1:])
    mean = np.einsum("n,n...->...", np.exp(log_mass), q) / len(part)
    gram = base.poset.fisher_gram(mean[None], base.elements)[0]
    gram[np.diag_indices_from(gram)] *= 1 + 1e-9
    return np.linalg.cholesky(gram)


def _terms(base, codes):
    """What KL takes from the codes alone; their eta and theta on bottom and base."""
    q, log_mass, psi = base.points(codes)
    mass = np.exp(log_mass)
    eta = base.expectations(q, mass)
    theta = codes[:, 1:] if base.with_mass else codes
    own = mass * (log_mass - psi - 1) + np.einsum("ij,ij->i", eta[:, 1:], theta)
    return own, eta, np.column_stack([log_mass - psi, theta])


def _search(base, training, masses, k, codes):
    own, eta, _ = _terms(base, codes)
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
    return np.argpartition(values, k - 1, axis=1)[:, :k]
