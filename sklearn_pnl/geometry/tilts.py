"""The convex problem of a projection, and the bases that it is written in.

A projection is ``q = start * exp(synthesis(x) - psi)`` with ``x`` chosen so that the
expectations of the basis functions equal those of the target. The problem is the same
in every basis; the bases differ in what they cost and how well conditioned they are.
A basis offers ``synthesis(v)``, rows of coefficients to functions on the cells, and
its transpose ``analysis(x)``.
"""

from functools import cached_property, lru_cache
from math import prod

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.sparse.linalg import splu

from .._runtime.workspace import empty, empty_like, slices, some_rows, take, zeros
from .coordinates import tilted_exp
from .interactions import interaction_mask, kronecker_blocks, kronecker_product

# A Newton step changes log probabilities by at most this much. Where the target holds
# far more than the iterate the full step overshoots, to distributions so concentrated
# that their Fisher information is numerically 0.
# That is for rows of ordinary masses; orthonormal functions of few elements take those
# with next to nothing in most cells, which have farther to go.
LONGEST_STEP, _FARTHER = 10.0, 50.0
# A term of a sparse product costs about as much as so many of a dense one; and the
# largest matrix of basis functions that is kept.
_SPARSE_COST, _LARGEST_MATRIX = 16, 2**25
# So many functions or fewer are applied as one dense matrix on the cells.
_DENSE_FUNCTIONS = 64
# Bases of so many functions times cells are kept from call to call.
_KEPT_FUNCTIONS = 2**13
# Up to this many coordinates a basis is made orthonormal by a dense factor.
_LARGEST_FACTOR = 2048
# What no eta is farther off than, from where on it is worth to know how far.
_NEAR_THE_END = 1e-2
# A factor with this share of all entries is slower to apply than a dense inverse.
_FILLED = 0.25
# Pairs of coordinates whose entries in Hessians are made at once: they stay in cache.
_PAIRS_AT_ONCE = 2**14
# Cells lighter than the second have the first as weight in Hessians of functions that
# tell them apart, which holds them where they are; to the third no step takes them.
_HELD, _VANISHING, _LOG_LEAST = 1e-8, 1e-130, -690.0
# Directions of less variance are told by rounding alone.
_UNTOLD = 1e-10
# Products of pairs of entries in the Gram matrix of rows of the Moebius matrix.
_LARGEST_GRAM = 2**26


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
            self._log_start = np.log(start, out=empty_like(start))
        self.longest, self.hessian_product = basis.longest, basis.hessian_product
        # Whether rounding in the variables is all that theta has.
        self.well_scaled = basis.well_scaled

    def value(self, x, rows):
        energy = self._basis.synthesis(x)
        energy += some_rows(self._log_start, rows)
        q, psi = tilted_exp(energy)
        return psi - np.einsum("ij,ij->i", x, some_rows(self.moments, rows)), q

    def gradient(self, q, rows):
        target = some_rows(self._target, rows)
        difference = np.subtract(q, target, out=empty_like(q))
        return self._basis.gradient(difference, self._residual)

    def hessian(self, q, rows):
        return self._basis.covariances(q)

    def distributions(self, q):
        """Cells of all rows in the tensor's own order."""
        return q


class Basis:
    """Functions on the cells.

    Applied as one matrix if they are ``whole``, else by ``_apart`` and its transpose.
    """

    well_scaled = whole = False

    @cached_property
    def functions(self):
        """All functions as rows (m, D)."""
        return self._apart(np.eye(self.n_functions))

    def synthesis(self, v):
        return v @ self.functions if self.whole else self._apart(v)

    def analysis(self, x):
        return x @ self.functions.T if self.whole else self._transposed(x)

    def gradient(self, difference, residual):
        return self.analysis(difference), residual(difference)

    def longest(self, step, q):
        # A safeguard, for which single precision will do.
        change = np.ptp(self.synthesis(step.astype(np.float32)), axis=1)
        return np.minimum(1.0, LONGEST_STEP / np.maximum(change, LONGEST_STEP))

    def hessian_product(self, q, v):
        u = self.synthesis(v)
        u -= np.einsum("ij,ij->i", q, u)[:, None]
        u *= q
        return self.analysis(u)

    def covariances(self, q):
        """Covariance matrices of the functions under distributions."""
        # One row at a time: the centred functions are larger than the result.
        functions = self.functions
        covariances = np.empty((len(q), len(functions), len(functions)))
        for covariance, weight in zip(covariances, q, strict=True):
            centred = functions - (functions @ weight)[:, None]
            centred *= np.sqrt(weight)
            # Of a matrix and its own transpose BLAS makes one half alone.
            np.matmul(centred, centred.T, out=covariance)
        return covariances


class KroneckerBasis(Basis):
    """Some of the Kronecker products of rows of square matrices, one a mode."""

    def __init__(self, matrices, cells):
        self.n_functions, self._elements = len(cells), cells
        self._n_cells = prod(map(len, matrices))
        self._blocks = kronecker_blocks(matrices)
        self._turned = [block.T for block in self._blocks]

    def _apart(self, v):
        x = zeros((len(v), self._n_cells), v.dtype)
        x[:, self._elements] = v
        return kronecker_product(self._turned, x)

    def _transposed(self, x):
        return take(kronecker_product(self._blocks, x), self._elements, axis=1)


class MarginalCells(KroneckerBasis):
    """Indicators of the cells of marginal tables that avoid reference levels.

    Each mode has a reference level that is not nearly empty; a coordinate multiplies
    one cell of one marginal table that avoids the reference levels. The Fisher
    information then consists of marginal probabilities, a table lookup, and nearly
    empty cells keep their relative accuracy: scaled to unit diagonal it is well
    conditioned where the orthonormal basis is not. In each mode index 0 stands for "any
    level", the others for the levels but the reference.
    """

    well_scaled = True

    def __init__(self, poset, family, references):
        elements, self._meets = _meeting_cells(poset.shape, family)
        matrices = []
        for length, first in zip(poset.shape, references, strict=True):
            levels = np.r_[first, np.delete(np.arange(length), first)]
            matrix = np.eye(length)[levels]
            matrix[0] = 1
            matrices.append(matrix)
        super().__init__(matrices, elements)
        self.whole = len(elements) <= _DENSE_FUNCTIONS

    def longest(self, step, q):
        if np.abs(step).sum(axis=1).max() <= LONGEST_STEP:
            return np.ones(len(step))
        return super().longest(step, q)

    def covariances(self, q):
        # Of each cell the sum of all that agree with its non-zero indices.
        marginals, meets = kronecker_product(self._blocks, q), self._meets
        padded = empty((len(q), marginals.shape[1] + 1), q.dtype)
        padded[:, :-1], padded[:, -1] = marginals, 0
        mean = marginals[:, self._elements]
        gram = empty((len(q), *meets.shape), q.dtype)
        step = min(len(q), max(1, _PAIRS_AT_ONCE // meets.size))
        products = empty((step, *meets.shape), q.dtype)
        for some in slices(len(q), step):
            part, own = gram[some], mean[some]
            np.take(padded[some], meets, axis=1, out=part, mode="clip")
            outer = products[: len(part)]
            part -= np.multiply(own[:, :, None], own[:, None, :], out=outer)
        return gram


# Of small tensors alone, so that little is kept.
_kept_cells = lru_cache(maxsize=64)(MarginalCells)


def marginal_cells(poset, family, references, n_functions):
    """:class:`MarginalCells` of interactions, kept where they are small."""
    small = n_functions * poset.n_elements <= _KEPT_FUNCTIONS
    return (_kept_cells if small else MarginalCells)(poset, family, references)


@lru_cache(maxsize=16)
def _meeting_cells(shape, family):
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
    diagonal. With cells that alone are ``seen``, they are orthonormal on these, and 0
    where they say the same as others there.
    """

    def __init__(self, poset, elements, seen=None):
        self._columns = poset.columns(elements)
        m, D = len(elements), poset.n_elements
        uniform = np.full((1, *poset.shape), 1 / D)
        if seen is not None:
            uniform = (seen / np.count_nonzero(seen)).reshape(uniform.shape)
        eta = poset.eta(uniform).reshape(-1)[elements]
        self.n_functions = m
        with np.errstate(divide="ignore", invalid="ignore"):
            self._whiten, self._scale = None, 1 / np.sqrt(eta * (1 - eta))
        if m <= _LARGEST_FACTOR:
            gram = poset.fisher_gram(uniform, elements)[0] - np.outer(eta, eta)
            if seen is None:
                factor = cholesky(gram, lower=True)
                self._whiten = solve_triangular(factor, np.eye(m), lower=True).T
            else:
                values, vectors = eigh(gram)
                known = values > _UNTOLD
                self._whiten = vectors * known / np.sqrt(np.where(known, values, 1))
            # A matrix of all functions, where that is cheaper to apply.
            apart = _SPARSE_COST * self._columns.n_terms + m * m
            self.whole = m * D < min(apart, _LARGEST_MATRIX)

    def longest(self, step, q):
        change = self.synthesis(step)
        longest = _FARTHER / np.maximum(np.ptp(change, axis=1), _FARTHER)
        # A cell that is 0 where the start is not has no theta.
        room = np.full(q.shape, 1.0)
        falls = (change < 0) & (q > 0)
        np.divide(_LOG_LEAST - np.log(q), change, out=room, where=falls)
        return np.minimum(longest, np.maximum(room.min(axis=1), 0.0))

    def covariances(self, q):
        return super().covariances(q + _HELD * ((q > 0) & (q < _VANISHING)))

    def _transposed(self, x):
        eta = self._columns.analysis(x)
        return eta * self._scale if self._whiten is None else eta @ self._whiten

    def _apart(self, v):
        whitened = v * self._scale if self._whiten is None else v @ self._whiten.T
        return self._columns.synthesis(whitened)


class PinnedBasis(Basis):
    """All functions whose theta vanishes where it is pinned, by orthogonal projection.

    With ``B`` the rows of the Moebius matrix at the pinned elements these are the
    functions with ``B f = 0``, and ``synthesis = analysis = sqrt(D) P`` with
    ``P = I - B' (B B')^-1 B``: as many coefficients as cells, of which those off the
    space do not matter. At the uniform distribution the Fisher information is ``P``, so
    conjugate gradients need few steps, and ``B`` is sparse where differences are local.
    """

    def __init__(self, rows):
        self._rows, self._columns = rows, rows.T.tocsr()
        self._scale = float(np.sqrt(rows.shape[1]))

    @cached_property
    def _solve(self):
        """Products with the inverse of ``B B'``, of which there are many."""
        gram, m = (self._rows @ self._columns).tocsc(), self._rows.shape[0]
        factor = splu(gram, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0)
        if m > _LARGEST_FACTOR or factor.nnz < _FILLED * m * m:
            return factor.solve
        return np.linalg.inv(gram.toarray()).__matmul__

    def __getstate__(self):
        # A factor cannot be pickled; it is found again when needed.
        return {k: v for k, v in self.__dict__.items() if k != "_solve"}

    def synthesis(self, v):
        x = np.ascontiguousarray(v.T) * self._scale
        pinned = self._rows @ np.asarray(x, np.float64)
        x -= self._columns @ self._solve(pinned)
        return np.ascontiguousarray(x.T)

    analysis = synthesis


def pinned_basis(poset, elements):
    """The basis of functions with theta on ``elements`` alone; None if not sparse."""
    pinned = np.delete(np.arange(poset.n_elements), np.r_[poset.bottom, elements])
    rows = poset.moebius_rows(pinned)
    if rows is None or (np.diff(rows.tocsc().indptr) ** 2.0).sum() > _LARGEST_GRAM:
        return None
    return PinnedBasis(rows)


class ScaledBasis(KroneckerBasis):
    """An interaction basis times ``sqrt(D)``: unit Fisher information at uniform."""

    def __init__(self, basis):
        first, *rest = basis.matrices
        super().__init__([first * np.sqrt(prod(basis.shape)), *rest], basis.cells)

    def gradient(self, difference, residual):
        """The gradient, and a bound of the residual where that is far from small.

        The indicator of what lies above an element has a variance of at most 1/4, so
        that no eta is farther off than half of the length of the gradient.
        """
        gradient = self.analysis(difference)
        bound = 0.5 * np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
        near = np.flatnonzero(bound <= _NEAR_THE_END)
        if len(near):
            bound[near] = residual(some_rows(difference, near))
        return gradient, bound
