"""Positive weights that are nearest to given weights and have required sums."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from .affine import linear_projection
from .fitting import fit_counts

TINY = np.finfo(float).tiny
# Sweeps of proportional fitting before Newton's method. A Newton step for more counts
# takes longer than hundreds of sweeps.
_SWEEPS, _FEW_COUNTS = 50, 1024


def effective_size(weights):
    """Compute Kish's effective number of rows, ``(sum w)^2 / sum w^2``."""
    squares = float(np.sum(weights**2))
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def nearest_weights(terms, lower, upper, design, floor, ceiling, tol, max_iter):
    """Compute the weights nearest to given weights, in KL divergence, with given sums.

    If all sums are counts, the rows with equal terms form a cell, whose rows share one
    ratio to the design weights. Proportional fitting computes the ratios, unless bounds
    are active or the sweeps converge slowly. Newton's method solves the other problems.

    Parameters
    ----------
    terms : ndarray or csr_array of shape (c, n)
    lower, upper : ndarray of shape (c,)
    design : ndarray of shape (n,)
    floor, ceiling : ndarray of shape (n,)
        Bounds of the weights, in proportion to ``design``.
    tol : float
        Tolerance of a sum, as a share of the sum of its absolute terms.
    max_iter : int

    Returns
    -------
    weights : ndarray of shape (n,)
        The last iterate, if no weights have all sums.
    n_iter : int
        Number of sweeps and Newton steps.
    """
    # If terms of one sign must sum to 0, their rows have no weight.
    closed = (upper == 0) & ((terms < 0).sum(axis=1) == 0)
    closed |= (lower == 0) & ((terms > 0).sum(axis=1) == 0)
    is_open = (terms[closed] != 0).sum(axis=0) == 0
    used = (design > 0) & (is_open | (floor > 0))
    weights = np.zeros(len(design))
    if not used.any():
        return weights, 0
    terms, design, limits = terms[:, used], design[used], (floor[used], ceiling[used])
    margins = disjoint_margins(terms)
    if margins is None:
        weights[used], n_iter = _project(
            terms, lower, upper, design, limits, tol, max_iter
        )
        return weights, n_iter
    first, cell = _cells(margins)
    of_cells, *limits_of_cells = (np.bincount(cell, x) for x in (design, *limits))
    fitted, n_iter = _fit_or_project(
        margins, first, terms, lower, upper, of_cells, limits_of_cells, tol, max_iter
    )
    weights[used] = np.clip(design * (fitted / of_cells)[cell], *limits)
    return weights, n_iter


def disjoint_margins(terms):
    """Group counts into margins, in which each row has one level at most.

    Parameters
    ----------
    terms : ndarray or sparse array of shape (c, n)

    Returns
    -------
    list of (list of int, ndarray of int of shape (n,)), or None
        For each margin, the positions of its counts, and the level of each row, which
        is -1 if the margin does not count the row. None if a term is not 0 or 1.
    """
    terms = csr_array(terms)
    terms.eliminate_zeros()
    if np.any(terms.data != 1):
        return None
    margins = []
    for k in range(terms.shape[0]):
        rows = terms.indices[terms.indptr[k] : terms.indptr[k + 1]]
        if not margins or np.any(margins[-1][1][rows] >= 0):
            margins.append(([], np.full(terms.shape[1], -1)))
        counts, levels = margins[-1]
        levels[rows] = len(counts)
        counts.append(k)
    return margins


def _cells(margins):
    """Return a row of each cell, and the cell of each row (n,).

    Rows of a cell have equal levels in all margins.
    """
    cell = np.zeros(len(margins[0][1]), int)
    for counts, levels in margins:
        cell = np.unique(cell * (len(counts) + 1) + levels + 1, return_inverse=True)[1]
    return np.unique(cell, return_index=True)[1], cell


def _fit_or_project(margins, first, terms, lower, upper, design, limits, tol, max_iter):
    """Fit cells by sweeps, or by Newton's method if the sweeps do not succeed."""
    goals = [(levels[first], lower[k], upper[k]) for k, levels in margins]
    n_sweeps = min(max_iter, _SWEEPS if len(lower) <= _FEW_COUNTS else max_iter)
    cells, n_iter, converged = fit_counts(design, goals, tol / 2, n_sweeps)
    # Without active bounds, the solution is that of the problem without bounds.
    if converged and np.all((limits[0] <= cells) & (cells <= limits[1])):
        return cells, n_iter
    cells, steps = _project(
        terms[:, first], lower, upper, design, limits, tol, max(20, max_iter - n_iter)
    )
    return cells, n_iter + steps


def _project(terms, lower, upper, start, limits, tol, max_iter):
    """Project weights onto intervals of sums by Newton's method."""
    near, n_iter = start, 0
    # The tolerance of the projection depends on its start. Restarts from nearer weights
    # make the sums exact.
    for _ in range(4):
        result = linear_projection(
            near[None],
            terms,
            lower,
            upper,
            floor=limits[0],
            ceiling=limits[1],
            tol=max(1e-14, tol),
            max_iter=max_iter - n_iter,
        )
        weights, n_iter = result.measure[0], n_iter + int(result.n_iter[0])
        near = np.maximum(weights, TINY)
        values = terms @ near
        missed = np.abs(values - np.clip(values, lower, upper))
        if np.all(missed <= tol * (abs(terms) @ near)) or n_iter >= max_iter:
            break
    return weights, n_iter
