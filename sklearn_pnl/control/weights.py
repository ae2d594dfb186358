"""Positive weights that are nearest to given weights and have required sums."""

from __future__ import annotations

import numpy as np

from ..geometry import linear_projection

_TINY = np.finfo(float).tiny


def effective_size(weights):
    """Compute Kish's effective number of rows, ``(sum w)^2 / sum w^2``."""
    squares = float(np.sum(weights**2))
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def nearest_weights(terms, lower, upper, design, floor, ceiling, tol, max_iter):
    """Compute the weights nearest to given weights, in KL divergence, with given sums.

    Parameters
    ----------
    terms : ndarray or csr_array of shape (c, n)
    lower, upper : ndarray of shape (c,)
    design, floor, ceiling : ndarray of shape (n,)
    tol : float
        Tolerance of a sum, as a share of the sum of its absolute terms.
    max_iter : int

    Returns
    -------
    weights : ndarray of shape (n,)
        The last iterate, if no weights have all sums.
    n_iter : int
    """
    # If terms of one sign must sum to 0, their rows have no weight.
    closed = (upper == 0) & ((terms < 0).sum(axis=1) == 0)
    closed |= (lower == 0) & ((terms > 0).sum(axis=1) == 0)
    is_open = (terms[closed] != 0).sum(axis=0) == 0
    used = (design > 0) & (is_open | (floor > 0))
    weights, n_iter = np.zeros(len(design)), 0
    if not used.any():
        return weights, n_iter
    terms, near = terms[:, used], design[used]
    floor, ceiling = floor[used], ceiling[used]
    # The tolerance of the projection depends on its start. Restarts from nearer weights
    # make the sums exact.
    for _ in range(4):
        result = linear_projection(
            near[None],
            terms,
            lower,
            upper,
            floor=floor,
            ceiling=ceiling,
            tol=max(1e-14, tol),
            max_iter=max_iter - n_iter,
        )
        weights[used], n_iter = result.measure[0], n_iter + int(result.n_iter[0])
        near = np.maximum(result.measure[0], _TINY)
        values = terms @ near
        missed = np.abs(values - np.clip(values, lower, upper))
        if np.all(missed <= tol * (abs(terms) @ near)) or n_iter >= max_iter:
            break
    return weights, n_iter
