"""Bases of the functions of the cells in an exponential tilt.

``synthesis(v)`` maps rows of coefficients to functions of the cells, and
``analysis(x)`` is its transpose. All bases of a space give the same problem, but differ
in cost and in the condition of the Hessian.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import prod

import numpy as np
from scipy.fft import dct
from scipy.linalg import cholesky, get_blas_funcs, helmert, solve_triangular

from ..._utils.arrays import (
    MovableArray,
    at_least,
    cast,
    filled,
    is_on_host,
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

# Largest change of a log probability in a Newton step. If the target of a cell is far
# above the iterate, the full step overshoots to a distribution so concentrated that its
# Fisher information is numerically 0.
LONGEST_STEP = 10.0
# Largest number of functions for which a matrix factorisation makes a basis orthonormal
# or finds the observed functions, because its cost is cubic.
MOST_FACTORED = 2048
# Largest number of entries of a matrix of functions that is used on a device.
_LARGEST_MATRIX = 2**24


def kronecker_blocks(matrices):
    """Multiply neighbouring small matrices, to save passes over the cells."""
    first, *others = matrices
    blocks = [first]
    for matrix in others:
        # Up to 64 rows, a matrix product costs no more than a pass over the cells.
        if len(blocks[-1]) * len(matrix) <= 64:
            blocks[-1] = np.kron(blocks[-1], matrix)
        else:
            blocks.append(matrix)
    return blocks


def kronecker_product(blocks, x):
    """Multiply rows ``x`` (n, D) by the Kronecker product of square matrices.

    The product has the precision of ``x`` and uses one matrix product per block.
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
    """Base class of sets of functions of the cells.

    If ``as_matrix`` is true, functions are applied as one matrix; otherwise by
    ``_apart`` and its transpose.
    """

    as_matrix = False
    # Whether the functions are orthonormal under the uniform distribution.
    orthonormal = False

    @cached_property
    def functions(self):
        """Return the values of all functions as rows (m, D)."""
        return self._apart(np.eye(self.n_functions))

    def synthesis(self, v):
        return v @ self._matrix(v) if self._uses_matrix(v) else self._apart(v)

    def analysis(self, x):
        return x @ self._matrix(x).T if self._uses_matrix(x) else self._transposed(x)

    @cached_property
    def _movable_functions(self):
        return MovableArray(self.functions)

    def _matrix(self, x):
        """Return all functions on the device of ``x``."""
        return self._movable_functions.on_device_of(x)

    def _uses_matrix(self, x):
        # On a device, one large product is faster than several small products.
        if self.as_matrix or is_on_host(x):
            return self.as_matrix
        return self.n_functions * self.n_cells <= _LARGEST_MATRIX

    def gradient(self, difference, residual):
        return self.analysis(difference), residual(difference)

    def longest(self, step, q):
        # A bound of the step length needs no more than single precision.
        xp = namespace(step)
        change = self.synthesis(cast(step, xp.float32))
        change = xp.max(change, axis=1) - xp.min(change, axis=1)
        return LONGEST_STEP / at_least(change, LONGEST_STEP)

    def covariances(self, q):
        """Compute the covariance matrix of the functions under each distribution."""
        # One row at a time, because the centred functions are larger than the result.
        functions, (n, _) = self._matrix(q), q.shape
        m, roots = functions.shape[0], namespace(q).sqrt(q)
        covariances = filled(0.0, (n, m, m), q)
        for i in range(n):
            centred = functions - (functions @ q[i, :])[:, None]
            centred *= roots[i, :]
            # For a matrix times its transpose, BLAS computes only half of the product.
            covariances[i, ...] = centred @ centred.T
        return covariances


class KroneckerBasis(Basis):
    """Kronecker products of rows of square matrices, one matrix per mode."""

    def __init__(self, matrices, cells):
        self.n_functions, self._elements = len(cells), cells
        self.n_cells = prod(map(len, matrices))
        self._blocks = [MovableArray(block) for block in kronecker_blocks(matrices)]

    def _apart(self, v):
        x = spread(v, self._elements, self.n_cells)
        return kronecker_product([block.T for block in self._blocks_like(v)], x)

    def _transposed(self, x):
        return take(kronecker_product(self._blocks_like(x), x), self._elements, axis=1)

    def _blocks_like(self, x):
        """Return the blocks on the device and in the precision of ``x``."""
        return [cast(block.on_device_of(x), x.dtype) for block in self._blocks]


class MarginalCells(KroneckerBasis):
    """Indicators of the marginal cells without reference levels.

    Each mode has a reference level that is not nearly empty, and each function is the
    indicator of a cell of a marginal table without reference levels. The entries of the
    Fisher information are then marginal probabilities, found by lookup, and nearly
    empty cells keep their relative accuracy. Scaled to unit diagonal, the Fisher
    information is well conditioned even if it is ill conditioned in the orthonormal
    basis. In each mode, index 0 means "any level", and the other indices are the levels
    except the reference level.
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
        self.as_matrix = len(elements) <= 64

    def covariances(self, q):
        # The probability of each marginal cell, and a 0 for events that exclude each
        # other.
        n, pairs = q.shape[0], self._pairs
        marginals = filled(0.0, (n, self.n_cells + 1), q)
        marginals[:, :-1] = kronecker_product(self._blocks_like(q), q)
        mean = take(marginals, self._elements, axis=1)
        if not isinstance(q, np.ndarray):
            joint = take(marginals, pairs.reshape(-1), axis=1)
            joint = reshaped(joint, (n, *pairs.shape))
            joint -= mean[:, :, None] * mean[:, None, :]
            return joint
        gram = np.empty((n, *pairs.shape), q.dtype)
        # Blocks of rows, so that temporary arrays stay in the cache.
        size = max(1, 2**14 // pairs.size)
        rank_one = get_blas_funcs("ger", (gram,))
        for block in slices(n, size):
            part, moments = mean[block], gram[block]
            np.take(marginals[block], pairs, axis=1, out=moments, mode="clip")
            if size > 1:
                moments -= part[:, :, None] * part[:, None, :]
            else:
                rank_one(-1.0, part[0], part[0], a=moments[0].T, overwrite_a=1)
        return gram


# Most blocks of rows have the same reference levels, so the basis is cached.
marginal_cells = lru_cache(maxsize=32)(MarginalCells)


@lru_cache(maxsize=16)
def _joint_cells(shape, family):
    """Return the cells of interactions, and the cell "both events" of each pair.

    A cell represents the event that its non-zero indices occur. Two events with
    different levels of a mode exclude each other; their pair has index ``D``, at which
    the caller stores a 0.
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
    """Columns of the zeta matrix, orthonormal under the uniform distribution.

    ``synthesis(v) = Z_M W v`` and ``analysis(x) = W' Z_M' x``, where ``W`` is the
    inverse Cholesky factor of the Fisher information of M at the uniform distribution.
    For more than 2,048 elements ``W`` is diagonal, with columns scaled to variance 1.
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
            # A matrix of all functions costs little more than W if D is small.
            self.as_matrix = D <= 4 * self.n_functions

    def longest(self, step, q):
        # Log probabilities of rows with many nearly empty cells need larger changes.
        change, farther = self.synthesis(step), 5 * LONGEST_STEP
        longest = farther / np.maximum(np.ptp(change, axis=1), farther)
        # A cell that underflows to 0 has no theta, so the log of a positive cell stays
        # above the log of the smallest float.
        room = np.full(q.shape, 1.0)
        falls = (change < 0) & (q > 0)
        np.divide(-690.0 - np.log(q), change, out=room, where=falls)
        return np.minimum(longest, np.maximum(room.min(axis=1), 0.0))

    def covariances(self, q):
        # The additional mass keeps steps from changing functions that only distinguish
        # vanishing cells.
        return super().covariances(q + 1e-8 * ((q > 0) & (q < 1e-130)))

    def _transposed(self, x):
        eta = self._columns.analysis(x)
        return eta * self._whiten if self._whiten.ndim == 1 else eta @ self._whiten

    def _apart(self, v):
        whiten = self._whiten
        return self._columns.synthesis(v * whiten if whiten.ndim == 1 else v @ whiten.T)


class ScaledBasis(KroneckerBasis):
    """Functions of sets of modes, orthonormal under the uniform distribution.

    The functions are ``sqrt(D)`` times Kronecker products of Helmert matrices, or of
    cosine matrices for modes with ordered levels, without the constant function.
    """

    orthonormal = True

    def __init__(self, shape, interactions, ordered=()):
        # One orthogonal matrix per mode, whose first row is constant.
        first, *rest = (
            dct(np.eye(n), axis=0, norm="ortho") if k in ordered else helmert(n, True)
            for k, n in enumerate(shape)
        )
        cells = np.flatnonzero(interaction_mask(shape, interactions))
        super().__init__([first * np.sqrt(prod(shape)), *rest], cells)

    def gradient(self, difference, residual):
        """Return the gradient and the residual, or its upper bound if that is large.

        The indicator of the elements above an element has a variance of at most 1/4, so
        no error of eta exceeds half of the norm of the gradient.
        """
        gradient = self.analysis(difference)
        bound = 0.5 * namespace(gradient).sqrt(row_dots(gradient, gradient))
        near = np.flatnonzero(to_host(bound <= 1e-2))
        if len(near):
            residuals = residual(some_rows(difference, near))
            (bound,) = replaced((bound,), near, (residuals,))
        return gradient, bound
