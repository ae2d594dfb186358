"""Training points near a code in Kullback-Leibler divergence."""

import numpy as np

# Rows of the KL matrix, and training rows, handled at once. Fixed, so that rounding
# and with it the order of near-ties never depends on settings of memory.
_QUERIES, _TRAINING = 256, 8192


def kl_neighbors(base, codes, training, k):
    """The k training points nearest in ``KL(w, w_i)``, by one matrix product.

    ``KL(w, w_i) = <eta_w, theta_w - theta_i> - m_w + m_i`` over bottom and base, since
    theta vanishes elsewhere; ``m`` is the mass, 1 for distributions. ``training`` holds
    theta on bottom and base.
    """
    masses = _masses(base, training)
    found = [
        _block_neighbors(base, codes[s : s + _QUERIES], training, masses, k)
        for s in range(0, len(codes), _QUERIES)
    ]
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def _masses(base, training):
    if not base.with_mass:
        return np.ones(len(training))
    return np.concatenate(
        [
            np.exp(base.points(training[s : s + _QUERIES])[1])
            for s in range(0, len(training), _QUERIES)
        ]
    )


def _block_neighbors(base, codes, training, masses, k):
    q, log_mass, psi = base.points(codes)
    mass = np.exp(log_mass)
    eta = base.expectations(q, mass)
    theta = codes[:, 1:] if base.with_mass else codes
    own = mass * (log_mass - psi - 1) + np.einsum("ij,ij->i", eta[:, 1:], theta)
    best = np.empty((len(codes), 0))
    index = np.empty((len(codes), 0), np.intp)
    for start in range(0, len(training), _TRAINING):
        part = slice(start, start + _TRAINING)
        divergence = own[:, None] - eta @ training[part].T + masses[part]
        here = np.arange(start, start + divergence.shape[1])
        here = np.broadcast_to(here, divergence.shape)
        best, index = _smallest(
            np.hstack([best, divergence]), np.hstack([index, here]), k
        )
    by_index = np.argsort(index, axis=1)
    best, index = (np.take_along_axis(a, by_index, axis=1) for a in (best, index))
    ranked = np.argsort(best, axis=1, kind="stable")
    best, index = (np.take_along_axis(a, ranked, axis=1) for a in (best, index))
    return np.maximum(best, 0), index


def _smallest(values, index, k):
    if values.shape[1] <= k:
        return values, index
    kept = np.argpartition(values, k - 1, axis=1)[:, :k]
    return tuple(np.take_along_axis(a, kept, axis=1) for a in (values, index))
