"""Bases of the functions that a projection tilts by.

A basis offers ``synthesis(v)``, rows of coefficients to functions on the cells, and
its transpose ``analysis(x)``. The problem is the same in every basis; they differ in
what they cost and how well conditioned they are.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import prod

import numpy as np
from scipy.fft import dct
from scipy.linalg import cholesky, helmert, solve_triangular

from ..._utils.arrays import (
    at_least,
    cast,
    filled,
    is_on_host,
    kept,
    namespace,
    replaced,
    reshaped,
    row_dots,
    slices,
    some_rows,
    spread,
    take,
    to_host,
)
from ..posets.interactions import interaction_mask
from ..posets.protocol import zeta_columns

# A Newton step changes log probabilities by at most this much. Where the target holds
# far more than the iterate the full step overshoots, to distributions so concentrated
# that their Fisher information is numerically 0.
LONGEST_STEP = 10.0
# Up to this many coordinates a basis is made orthonormal, or which of its functions are
# observed is found out: the time is that of cubes of matrices.
MOST_FACTORED = 2048
# Entries of a matrix of functions that a device applies as a whole.
_LARGEST_MATRIX = 2**24


def kronecker_blocks(matrices):
    """Neighbouring matrices joined up to some length: fewer passes over the cells."""
    first, *others = matrices
    blocks = [first]
    for matrix in others:
        # A product with 64 rows costs as much as a pass over the cells.
        if len(blocks[-1]) * len(matrix) <= 64:
            blocks[-1] = np.kron(blocks[-1], matrix)
        else:
            blocks.append(matrix)
    return blocks


def kronecker_product(blocks, x):
    """Rows ``x`` of shape (n, D) times the Kronecker product of square matrices.

    In the precision of ``x``, as few matrix products over all rows at once.
    """
    (outer, inner), shape = x.shape, x.shape
    for block in blocks:
        n = block.shape[0]
        inner //= n
        if inner == 1:
            x = reshaped(x, (outer, n)) @ block.T
        else:
            x = block @ reshaped(x, (outer, n, inner))
        outer *= n
    return reshaped(x, shape)


class Basis:
    """Functions on the cells.

    Applied as one matrix if they are ``whole``, else by ``_apart`` and its transpose.
    """

    whole = False
    # Whether functions are orthonormal at the uniform distribution.
    orthonormal = False

    @cached_property
    def functions(self):
        """All functions as rows (m, D)."""
        return self._apart(np.eye(self.n_functions))

    def synthesis(self, v):
        return v @ self._matrix(v) if self._is_whole(v) else self._apart(v)

    def analysis(self, x):
        return x @ self._matrix(x).T if self._is_whole(x) else self._transposed(x)

    def _matrix(self, x):
        """All functions, where ``x`` is."""
        return kept(x, self, "functions")

    def _is_whole(self, x):
        # On a device one large product takes less time than several small ones.
        if self.whole or is_on_host(x):
            return self.whole
        return self.n_functions * self.n_cells <= _LARGEST_MATRIX

    def gradient(self, difference, residual):
        return self.analysis(difference), residual(difference)

    def longest(self, step, q):
        # Single precision suffices for this safeguard.
        xp = namespace(step)
        change = self.synthesis(cast(step, xp.float32))
        change = xp.max(change, axis=1) - xp.min(change, axis=1)
        return LONGEST_STEP / at_least(change, LONGEST_STEP)

    def covariances(self, q):
        """Covariance matrices of the functions under distributions."""
        # One row at a time: the centred functions are larger than the result.
        functions, (n, _) = self._matrix(q), q.shape
        m, roots = functions.shape[0], namespace(q).sqrt(q)
        covariances = filled(0.0, (n, m, m), q)
        for i in range(n):
            centred = functions - (functions @ q[i, :])[:, None]
            centred *= roots[i, :]
            # BLAS computes half of the product of a matrix and its transpose.
            covariances[i, ...] = centred @ centred.T
        return covariances


class KroneckerBasis(Basis):
    """Some of the Kronecker products of rows of square matrices, one a mode."""

    def __init__(self, matrices, cells):
        self.n_functions, self._elements = len(cells), cells
        self.n_cells = prod(map(len, matrices))
        self._blocks = kronecker_blocks(matrices)

    def _apart(self, v):
        x = spread(v, self._elements, self.n_cells)
        return kronecker_product([block.T for block in self._blocks_like(v)], x)

    def _transposed(self, x):
        return take(kronecker_product(self._blocks_like(x), x), self._elements, axis=1)

    def _blocks_like(self, x):
        """The blocks where ``x`` is, and in its precision."""
        return [cast(block, x.dtype) for block in kept(x, self, "_blocks")]


class MarginalCells(KroneckerBasis):
    """Indicators of the cells of marginal tables that avoid reference levels.

    Each mode has a reference level that is not nearly empty; a coordinate multiplies
    one cell of one marginal table that avoids the reference levels. The Fisher
    information then consists of marginal probabilities, a table lookup, and nearly
    empty cells keep their relative accuracy: scaled to unit diagonal it is well
    conditioned where the orthonormal basis is not. In each mode index 0 stands for "any
    level", the others for the levels but the reference.
    """

    def __init__(self, poset, family, references):
        elements, self._pairs = _joint_cells(poset.shape, family)
        matrices = []
        for length, first in zip(poset.shape, references, strict=True):
            levels = np.r_[first, np.delete(np.arange(length), first)]
            matrix = np.eye(length)[levels]
            matrix[0] = 1
            matrices.append(matrix)
        super().__init__(matrices, elements)
        self.whole = len(elements) <= 64

    def covariances(self, q):
        # For each cell the sum of the cells that share its non-zero indices, and a 0.
        n, pairs = q.shape[0], self._pairs
        marginals = filled(0.0, (n, self.n_cells + 1), q)
        marginals[:, :-1] = kronecker_product(self._blocks_like(q), q)
        mean = take(marginals, self._elements, axis=1)
        if not isinstance(q, np.ndarray):
            joint = take(marginals, pairs.reshape(-1), axis=1)
            joint = reshaped(joint, (n, *pairs.shape))
            joint -= mean[:, :, None] * mean[:, None, :]
            return joint
        gram = np.empty((n, *pairs.shape))
        # A few at a time, so that they stay in cache.
        for rows in slices(n, max(1, 2**14 // pairs.size)):
            np.take(marginals[rows], pairs, axis=1, out=gram[rows], mode="clip")
            gram[rows] -= mean[rows, :, None] * mean[rows, None, :]
        return gram


# Blocks of rows mostly have the same.
marginal_cells = lru_cache(maxsize=32)(MarginalCells)


@lru_cache(maxsize=16)
def _joint_cells(shape, family):
    """Cells of interactions, and for each pair of them the cell "both events".

    A cell stands for the event that its non-zero indices occur. Two events that ask
    different levels of one mode exclude each other; they get index ``D``, where the
    caller keeps a 0.
    """
    elements = np.flatnonzero(interaction_mask(shape, family))
    first = np.zeros((len(elements),) * 2, np.intp)
    exclusive = np.zeros(first.shape, bool)
    for cell, length in zip(np.unravel_index(elements, shape), shape, strict=True):
        a, b = cell[:, None], cell
        exclusive |= (a != b) & (a > 0) & (b > 0)
        first = first * length + np.maximum(a, b)
    first[exclusive] = prod(shape)
    return elements, first


class ZetaBasis(Basis):
    """Zeta columns of M, made orthonormal at the uniform distribution.

    ``synthesis(v) = Z_M W v`` and ``analysis(x) = W' Z_M' x``, with ``W`` the inverse
    Cholesky factor of the Fisher information of M there; for a large M only its
    diagonal.
    """

    def __init__(self, poset, elements):
        self._columns = zeta_columns(poset, elements)
        self.n_functions, self.n_cells = len(elements), poset.n_elements
        D = self.n_cells
        uniform = np.full((1, *poset.shape), 1 / D)
        eta = poset.eta(uniform).reshape(-1)[elements]
        self._whiten = 1 / np.sqrt(eta * (1 - eta))
        if self.n_functions <= MOST_FACTORED:
            gram = poset.fisher_gram(uniform, elements)[0] - np.outer(eta, eta)
            factor, one = cholesky(gram, lower=True), np.eye(self.n_functions)
            self._whiten = solve_triangular(factor, one, lower=True).T
            self.orthonormal = True
            # One matrix of all functions, if it is not much larger than that of W.
            self.whole = D <= 4 * self.n_functions

    def longest(self, step, q):
        # Logs of rows that are nearly empty in most cells change more.
        change, farther = self.synthesis(step), 5 * LONGEST_STEP
        longest = farther / np.maximum(np.ptp(change, axis=1), farther)
        # A cell that is 0 where the start is positive has no theta: its log stays above
        # that of the smallest number.
        room = np.full(q.shape, 1.0)
        falls = (change < 0) & (q > 0)
        np.divide(-690.0 - np.log(q), change, out=room, where=falls)
        return np.minimum(longest, np.maximum(room.min(axis=1), 0.0))

    def covariances(self, q):
        # Steps must not move functions that separate vanishing cells.
        return super().covariances(q + 1e-8 * ((q > 0) & (q < 1e-130)))

    def _transposed(self, x):
        eta = self._columns.analysis(x)
        return eta * self._whiten if self._whiten.ndim == 1 else eta @ self._whiten

    def _apart(self, v):
        whiten = self._whiten
        return self._columns.synthesis(v * whiten if whiten.ndim == 1 else v @ whiten.T)


class ScaledBasis(KroneckerBasis):
    """Functions of some sets of modes, with unit Fisher information at uniform.

    Kronecker products of Helmert matrices, or of cosines where levels are in order,
    times ``sqrt(D)``; the constant function is left out.
    """

    orthonormal = True

    def __init__(self, shape, interactions, ordered=()):
        # An orthogonal matrix a mode, the first row of each a constant.
        first, *rest = (
            dct(np.eye(n), axis=0, norm="ortho") if k in ordered else helmert(n, True)
            for k, n in enumerate(shape)
        )
        cells = np.flatnonzero(interaction_mask(shape, interactions))
        super().__init__([first * np.sqrt(prod(shape)), *rest], cells)

    def gradient(self, difference, residual):
        """The gradient, and the residual, or a bound of it while that is large.

        The indicator of what lies above an element has a variance of at most 1/4, so
        that no eta is farther off than half of the length of the gradient.
        """
        gradient = self.analysis(difference)
        bound = 0.5 * namespace(gradient).sqrt(row_dots(gradient, gradient))
        near = np.flatnonzero(to_host(bound <= 1e-2))
        if len(near):
            residuals = residual(some_rows(difference, near))
            (bound,) = replaced((bound,), near, (residuals,))
        return gradient, bound
