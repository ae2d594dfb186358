"""Bases of the functions that a projection tilts by.

A basis offers ``synthesis(v)``, rows of coefficients to functions on the cells, and
its transpose ``analysis(x)``. The problem is the same in every basis; they differ in
what they cost and how well conditioned they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, eigh, helmert, solve_triangular

from .._arrays import slices, some_rows
from ..posets.interactions import Interactions, interaction_mask

# A Newton step changes log probabilities by at most this much. Where the target holds
# far more than the iterate the full step overshoots, to distributions so concentrated
# that their Fisher information is numerically 0.
# Orthonormal functions of few elements are used for rows that are nearly empty in most
# cells; their logs change more, and the second limit is for them.
LONGEST_STEP, _FARTHER = 10.0, 50.0
# Cost of a term of a sparse product relative to a dense one; entries of the largest
# matrix of basis functions that is kept.
_SPARSE_COST, _LARGEST_MATRIX = 16, 2**25
# Up to this many functions are applied as one dense matrix on the cells.
_DENSE_FUNCTIONS = 64
# Bases of up to this many functions times cells are cached between calls.
_KEPT_FUNCTIONS = 2**13
# Up to this many coordinates a basis is made orthonormal by a dense factor.
_LARGEST_FACTOR = 2048
# Once this bound on max |eta_q - eta_t| is reached, the residual itself is computed.
_NEAR_THE_END = 1e-2
# Entries of Hessians that are computed at once, so that they stay in cache.
_PAIRS_AT_ONCE = 2**14
# Cells below _VANISHING have the weight _LEAST_WEIGHT in Hessians of functions that
# separate them, so that steps do not move them; log probabilities stay above the third.
_LEAST_WEIGHT, _VANISHING, _LOG_LEAST = 1e-8, 1e-130, -690.0
# Directions of less variance than this are rounding.
_LEAST_VARIANCE = 1e-10
# Rows of a joined matrix of a Kronecker product: a product with it costs as much as a
# pass over the cells.
_JOINED_UP_TO = 64


class InteractionBasis:
    """Orthonormal basis of the functions of at most the kept sets of modes.

    The Kronecker product of one Helmert matrix a mode, rows masked to the mode
    sets kept; the constant function is left out. ``analysis(synthesis(v)) = v``.
    Scaled by ``sqrt(D)``, the Fisher information in this basis is the identity at
    the uniform distribution.

    Parameters
    ----------
    shape : tuple of int
        Shape of the tensor.
    interactions : int or iterable of tuple of int

    Attributes
    ----------
    n_functions : int
        Dimension ``m`` of the space.
    cells : ndarray of int of shape (m,)
        Where the coefficients are in the transform of all modes, flat.

    See Also
    --------
    interaction_mask : Elements of some interactions.
    mixed_projection : Its route "tilt" is Newton's method on interactions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import InteractionBasis
    >>> basis = InteractionBasis((2, 2), 1)
    >>> basis.analysis(np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([0.5, 0.5])
    >>> basis.synthesis(np.array([0.5, 0.5]))
    array([[ 0.5,  0. ],
           [ 0. , -0.5]])
    """

    def __init__(self, shape: Sequence[int], interactions: Interactions) -> None:
        self.shape = tuple(shape)
        self.cells = np.flatnonzero(interaction_mask(self.shape, interactions))
        self.n_functions = len(self.cells)

    def analysis(self, x: ArrayLike) -> NDArray:
        """Coefficients ``mask * (H_1 x .. x H_d) x`` of shape (..., m)."""
        x = np.asarray(x, dtype=np.float64)
        lead = x.shape[: max(0, x.ndim - len(self.shape))]
        if x.shape[len(lead) :] != self.shape:
            raise ValueError(f"x must have shape (..., *{self.shape}); got {x.shape}.")
        flat = self._products.analysis(x.reshape(-1, prod(self.shape)))
        return flat.reshape(*lead, self.n_functions)

    def synthesis(self, v: ArrayLike) -> NDArray:
        """Transpose of :meth:`analysis`: the function with coefficients ``v``."""
        v = np.asarray(v, dtype=np.float64)
        flat = self._products.synthesis(v.reshape(-1, self.n_functions))
        return flat.reshape(*v.shape[:-1], *self.shape)

    @property
    def matrices(self) -> list:
        """An orthogonal matrix a mode, the first row of each a constant."""
        return [helmert(n, full=True) if n > 1 else np.ones((1, 1)) for n in self.shape]

    @cached_property
    def _products(self):
        return KroneckerBasis(self.matrices, self.cells)


def kronecker_blocks(matrices):
    """Neighbouring matrices joined up to some length: fewer passes over the cells."""
    first, *others = matrices
    blocks = [first]
    for matrix in others:
        if len(blocks[-1]) * len(matrix) <= _JOINED_UP_TO:
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
        inner //= len(block)
        block = block.astype(x.dtype, copy=False)
        if inner == 1:
            x = x.reshape(outer, len(block))
            x = x @ block.T
        else:
            x = x.reshape(outer, len(block), inner)
            x = block @ x
        outer *= len(block)
    return x.reshape(shape)


class Basis:
    """Functions on the cells.

    Applied as one matrix if they are ``whole``, else by ``_apart`` and its transpose.
    """

    whole = False

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
        # Single precision suffices for this safeguard.
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
            # BLAS computes half of the product of a matrix and its transpose.
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
        x = np.zeros((len(v), self._n_cells), v.dtype)
        x[:, self._elements] = v
        return kronecker_product(self._turned, x)

    def _transposed(self, x):
        return kronecker_product(self._blocks, x).take(self._elements, axis=1)


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
        self.whole = len(elements) <= _DENSE_FUNCTIONS

    def longest(self, step, q):
        if np.abs(step).sum(axis=1).max() <= LONGEST_STEP:
            return np.ones(len(step))
        return super().longest(step, q)

    def covariances(self, q):
        # For each cell the sum of the cells that share its non-zero indices.
        marginals, pairs = kronecker_product(self._blocks, q), self._pairs
        padded = np.empty((len(q), marginals.shape[1] + 1), q.dtype)
        padded[:, :-1], padded[:, -1] = marginals, 0
        mean = marginals[:, self._elements]
        gram = np.empty((len(q), *pairs.shape), q.dtype)
        step = min(len(q), max(1, _PAIRS_AT_ONCE // pairs.size))
        products = np.empty((step, *pairs.shape), q.dtype)
        for rows in slices(len(q), step):
            part, part_mean = gram[rows], mean[rows]
            np.take(padded[rows], pairs, axis=1, out=part, mode="clip")
            outer = products[: len(part)]
            part -= np.multiply(part_mean[:, :, None], part_mean[:, None, :], out=outer)
        return gram


# Only bases of small tensors are cached.
_kept_cells = lru_cache(maxsize=64)(MarginalCells)


def marginal_cells(poset, family, references, n_functions):
    """:class:`MarginalCells` of interactions, kept where they are small."""
    small = n_functions * poset.n_elements <= _KEPT_FUNCTIONS
    return (_kept_cells if small else MarginalCells)(poset, family, references)


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
                is_kept = values > _LEAST_VARIANCE
                self._whiten = vectors * is_kept / np.sqrt(np.where(is_kept, values, 1))
            # One matrix of all functions, if it is cheaper to apply.
            apart = _SPARSE_COST * self._columns.n_terms + m * m
            self.whole = m * D < min(apart, _LARGEST_MATRIX)

    def longest(self, step, q):
        change = self.synthesis(step)
        longest = _FARTHER / np.maximum(np.ptp(change, axis=1), _FARTHER)
        # A cell that is 0 where the start is positive has no theta.
        room = np.full(q.shape, 1.0)
        falls = (change < 0) & (q > 0)
        np.divide(_LOG_LEAST - np.log(q), change, out=room, where=falls)
        return np.minimum(longest, np.maximum(room.min(axis=1), 0.0))

    def covariances(self, q):
        return super().covariances(q + _LEAST_WEIGHT * ((q > 0) & (q < _VANISHING)))

    def _transposed(self, x):
        eta = self._columns.analysis(x)
        return eta * self._scale if self._whiten is None else eta @ self._whiten

    def _apart(self, v):
        whitened = v * self._scale if self._whiten is None else v @ self._whiten.T
        return self._columns.synthesis(whitened)


class ScaledBasis(KroneckerBasis):
    """An interaction basis times ``sqrt(D)``: unit Fisher information at uniform."""

    def __init__(self, basis):
        first, *rest = basis.matrices
        super().__init__([first * np.sqrt(prod(basis.shape)), *rest], basis.cells)

    def gradient(self, difference, residual):
        """The gradient, and the residual, or a bound of it while that is large.

        The indicator of what lies above an element has a variance of at most 1/4, so
        that no eta is farther off than half of the length of the gradient.
        """
        gradient = self.analysis(difference)
        bound = 0.5 * np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
        near = np.flatnonzero(bound <= _NEAR_THE_END)
        if len(near):
            bound[near] = residual(some_rows(difference, near))
        return gradient, bound
