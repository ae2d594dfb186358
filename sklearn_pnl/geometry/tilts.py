"""The convex problem of a projection, and the bases that it is written in.

A projection is ``q = start * exp(synthesis(x) - psi)`` with ``x`` chosen so that the
expectations of the basis functions equal those of the target. The problem is the same
in every basis; the bases differ in what they cost and how well conditioned they are.
A basis offers ``synthesis(v)``, rows of coefficients to functions on the cells, and
its transpose ``analysis(x)``.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from .interactions import kronecker_blocks, kronecker_product
from .marginals import levels_by_mass
from .posets import TensorPoset

# A Newton step changes log probabilities by at most this much. Where the target holds
# far more than the iterate the full step overshoots, to distributions so concentrated
# that their Fisher information is numerically 0.
_LONGEST_STEP = 10.0
# A term of a sparse product costs about as much as so many of a dense one; and the
# largest matrix of basis functions that is kept.
_SPARSE_COST, _LARGEST_MATRIX = 16, 2**25
# So many functions or fewer are applied as one dense matrix on the cells.
DENSE_FUNCTIONS = 64
# Up to this many coordinates a basis is made orthonormal by a dense factor.
_WHITEN_UP_TO = 2048


class ExponentialTilt:
    """``psi(x) - <x, moments>`` for ``q = start * exp(synthesis(x) - psi)``.

    The point kept is ``q``. Gradient ``analysis(q - t)``, Hessian the covariance of
    the basis functions under ``q``.
    """

    def __init__(self, solver, basis, start, target):
        self._solver = solver
        self._basis = basis
        self._target = target
        self._moments = basis.analysis(target)
        with np.errstate(divide="ignore"):
            self._log_start = np.log(start)

    def value(self, x, rows):
        q = self._log_start[rows]
        q += self._basis.synthesis(x)
        top = q.max(axis=1, keepdims=True)
        q -= top
        np.exp(q, out=q)
        total = q.sum(axis=1, keepdims=True)
        q /= total
        psi = (top + np.log(total))[:, 0]
        return psi - np.einsum("ij,ij->i", x, self._moments[rows]), q

    def gradient(self, q, rows):
        difference = q - self._target[rows]
        return self._basis.analysis(difference), self._solver.residual(difference)

    def longest(self, step):
        change = np.ptp(self._basis.synthesis(step), axis=1)
        return np.minimum(1.0, _LONGEST_STEP / np.maximum(change, _LONGEST_STEP))

    def hessian_product(self, q, v):
        u = self._basis.synthesis(v)
        u -= np.einsum("ij,ij->i", q, u)[:, None]
        u *= q
        return self._basis.analysis(u)

    def hessian(self, q, rows):
        # One row at a time: the centred functions are larger than the result.
        functions = self._basis.functions
        covariances = np.empty((len(q), len(functions), len(functions)))
        for covariance, weight in zip(covariances, q, strict=True):
            centred = functions - (functions @ weight)[:, None]
            np.matmul(centred * weight, centred.T, out=covariance)
        return covariances


class MarginalCells(ExponentialTilt):
    """The tilt in the coordinates in which its Fisher information is a table lookup.

    In each mode the most probable level of the row's target is the reference; a
    coordinate multiplies one cell of one marginal table that avoids the reference
    levels. The Fisher information then consists of marginal probabilities, and
    nearly empty cells keep their relative accuracy: scaled to unit diagonal it is
    well conditioned where the orthonormal basis is not.
    """

    def __init__(self, solver, start, target):
        self._order = levels_by_mass(target, solver.poset.shape)
        self._back = np.argsort(self._order, axis=1)
        basis = _FlatOrderBasis(solver.poset.shape, solver.elements)
        super().__init__(solver, basis, self._sorted(start), self._sorted(target))

    def in_place(self, q):
        """Cells of all rows in the tensor's own order."""
        return np.take_along_axis(q, self._back, axis=1)

    def gradient(self, q, rows):
        difference = q - self._target[rows]
        original = np.take_along_axis(difference, self._back[rows], axis=1)
        return self._basis.analysis(difference), self._solver.residual(original)

    def hessian(self, q, rows):
        marginals = self._basis.marginals(q)
        padded = np.concatenate([marginals, np.zeros((len(q), 1))], axis=1)
        mean = marginals[:, self._solver.elements]
        gram = np.take(padded, self._solver.meets, axis=1)
        gram -= mean[:, :, None] * mean[:, None, :]
        return gram

    def _sorted(self, x):
        return np.take_along_axis(x, self._order, axis=1)


class _FlatOrderBasis:
    """Indicators of marginal cells: zeta if level 0 of a mode is below all others."""

    def __init__(self, shape, elements):
        self._elements = elements
        self._n_cells = int(np.prod(shape))
        self._functions = None
        matrices = [np.eye(length) for length in shape]
        for matrix in matrices:
            matrix[0] = 1
        self._blocks = kronecker_blocks(matrices)
        self._transposed = [block.T for block in self._blocks]
        if len(elements) <= DENSE_FUNCTIONS:
            self._functions = self.synthesis(np.eye(len(elements)))

    def synthesis(self, v):
        if self._functions is not None:
            return v @ self._functions
        x = np.zeros((len(v), self._n_cells), v.dtype)
        x[:, self._elements] = v
        return kronecker_product(self._transposed, x)

    def analysis(self, x):
        if self._functions is not None:
            return x @ self._functions.T
        return self.marginals(x)[:, self._elements]

    def marginals(self, x):
        """For each cell, the sum of all cells that agree with its non-zero indices."""
        return kronecker_product(self._blocks, x)


class ZetaBasis:
    """Zeta columns of M, made orthonormal at the uniform distribution.

    ``synthesis(v) = Z_M W v`` and ``analysis(x) = W' Z_M' x``, with ``W`` the inverse
    Cholesky factor of the Fisher information of M there; for a large M only its
    diagonal.
    """

    def __init__(self, poset, elements):
        tensor = isinstance(poset, TensorPoset)
        self._columns = (_TensorColumns if tensor else _PosetColumns)(poset, elements)
        m, D = len(elements), poset.n_elements
        uniform = np.full((1, *poset.shape), 1 / D)
        eta = poset.eta(uniform).reshape(-1)[elements]
        self._n_functions = m
        self._whiten, self._scale = None, 1 / np.sqrt(eta * (1 - eta))
        if m <= _WHITEN_UP_TO:
            gram = poset.fisher_gram(uniform, elements)[0] - np.outer(eta, eta)
            factor = cholesky(gram, lower=True)
            self._whiten = solve_triangular(factor, np.eye(m), lower=True).T
            # A matrix of all functions, where that is cheaper to apply.
            apart = _SPARSE_COST * self._columns.n_terms + m * m
            self._whole = m * D < min(apart, _LARGEST_MATRIX)
        else:
            self._whole = False

    @cached_property
    def functions(self):
        return self._apart(np.eye(self._n_functions))

    def synthesis(self, v):
        return v @ self.functions if self._whole else self._apart(v)

    def analysis(self, x):
        if self._whole:
            return x @ self.functions.T
        eta = self._columns.analysis(x)
        return eta * self._scale if self._whiten is None else eta @ self._whiten

    def _apart(self, v):
        whitened = v * self._scale if self._whiten is None else v @ self._whiten.T
        return self._columns.synthesis(whitened)


class _PosetColumns:
    """Zeta columns of a general poset: a sparse matrix."""

    def __init__(self, poset, elements):
        self._matrix = poset.zeta_matrix[:, elements]
        self._transpose = self._matrix.T.tocsr()
        self.n_terms = self._matrix.nnz

    def synthesis(self, v):
        return np.ascontiguousarray((self._matrix @ np.ascontiguousarray(v.T)).T)

    def analysis(self, x):
        return (self._transpose @ np.ascontiguousarray(x.T)).T


class _TensorColumns:
    """Zeta columns of a tensor: cumulative sums, of about ``D d`` terms."""

    def __init__(self, poset, elements):
        self._poset, self._elements = poset, elements
        self.n_terms = poset.n_elements * poset.n_modes

    def synthesis(self, v):
        theta = np.zeros((len(v), self._poset.n_elements))
        theta[:, self._elements] = v
        values = self._poset.zeta(theta.reshape(-1, *self._poset.shape))
        return values.reshape(len(v), -1)

    def analysis(self, x):
        eta = self._poset.eta(x.reshape(-1, *self._poset.shape))
        return eta.reshape(len(x), -1)[:, self._elements]


class ScaledBasis:
    """An interaction basis times ``sqrt(D)``: unit Fisher information at uniform."""

    def __init__(self, basis):
        self._basis = basis
        self._scale = float(np.sqrt(np.prod(basis.shape)))

    def synthesis(self, v):
        return self._basis.synthesis_flat(v * self._scale)

    def analysis(self, x):
        return self._basis.analysis_flat(x) * self._scale
