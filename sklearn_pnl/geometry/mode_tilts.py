"""Tilts by functions of single modes: the tensor as a matrix of two groups of modes.

``q = start * f * g`` with ``f`` a function of the leading modes and ``g`` of the rest.
The marginals of single modes, and of pairs within a group, come from the joint
marginals of the groups, which are far smaller than the tensor; ``q`` itself is formed
only in the end.
"""

from functools import lru_cache
from math import prod

import numpy as np
from scipy.linalg import block_diag

from .._runtime.workspace import empty_like, some_rows
from .coordinates import row_sums
from .marginals import levels_of_modes, rake
from .tilts import LONGEST_STEP


def rake_modes(start, target, shape, modes, n_sweeps):
    """Iterative proportional fitting of the marginals of single modes."""
    groups = _two_groups(shape)
    tensor = _as_matrices(np.broadcast_to(start, target.shape), groups)
    wanted = _joint_marginals(_as_matrices(target, groups))
    factors = [np.ones_like(marginals) for marginals in wanted]
    own_modes = _modes_of_groups(modes, groups)
    for _ in range(n_sweeps):
        for own, lengths in enumerate(groups):
            now = factors[own] * _contract(tensor, factors[1 - own], own)
            sets = [(mode,) for mode in own_modes[own]]
            raked = rake(now, wanted[own], lengths, sets, 1)
            # A sum that is empty stays so.
            factors[own] *= np.divide(raked, now, out=np.ones_like(now), where=now > 0)
    return _tilted(tensor, *factors).reshape(target.shape)


class ModeTilt:
    """The convex problem of a projection, for functions of single modes.

    As in :class:`~.tilts.MarginalCells` a coordinate multiplies one level of one mode
    that is not the reference of that mode. The point kept is the two factors, and then
    the joint marginals of the two groups.
    """

    well_scaled = True

    def __init__(self, shape, references, start, target):
        self._groups, modes = _two_groups(shape), tuple(references)
        self._start = _as_matrices(start, self._groups)
        self._wanted = np.hstack(_joint_marginals(_as_matrices(target, self._groups)))
        levels, self._tails = _levels_and_tails(shape, modes)
        firsts = np.cumsum([0, *(shape[k] for k in modes)])[:-1]
        # All levels but the references.
        columns = firsts + list(references.values())
        self._functions = np.delete(levels, columns, axis=1).T.copy()
        self._moments = self._wanted @ self._functions.T

    def value(self, x, rows):
        f, g = self._split(np.exp(x @ self._functions))
        start = some_rows(self._start, rows)
        leading = f * _contract(start, g, 0)
        total = row_sums(leading)
        f *= (1 / total)[:, None]
        leading *= (1 / total)[:, None]
        rest = g * _contract(start, f, 1)
        point = np.hstack([f, g, leading, rest])
        moments = some_rows(self._moments, rows)
        return np.log(total) - np.einsum("ij,ij->i", x, moments), point

    def gradient(self, point, rows):
        _, marginals = np.split(point, 2, axis=1)
        difference = marginals - some_rows(self._wanted, rows)
        eta = np.abs(difference @ self._tails).max(axis=1, initial=0.0)
        return difference @ self._functions.T, eta

    def longest(self, step, q):
        parts = self._split(step @ self._functions)
        bound = sum(np.ptp(part, axis=1) for part in parts)
        return np.minimum(1.0, LONGEST_STEP / np.maximum(bound, LONGEST_STEP))

    def hessian(self, point, rows):
        factors, marginals = np.split(point, 2, axis=1)
        f, g = self._split(factors)
        leading, rest = self._split(marginals)
        # Functions of the leading modes, and of the rest.
        first, second = self._split(self._functions)
        n, m = len(point), np.count_nonzero(first.any(axis=1))
        first, second, k = first[:m], second[m:], len(second) - m
        mean = marginals @ self._functions.T
        gram = -mean[:, :, None] * mean[:, None, :]
        gram[:, :m, :m] += (leading @ _pairs(first)).reshape(n, m, m)
        gram[:, m:, m:] += (rest @ _pairs(second)).reshape(n, k, k)
        right = (second * g[:, None, :]).transpose(0, 2, 1)
        across = first * f[:, None, :] @ some_rows(self._start, rows) @ right
        gram[:, :m, m:] += across
        gram[:, m:, :m] += across.transpose(0, 2, 1)
        return gram

    def distributions(self, point):
        """The rows of cells that points stand for."""
        factors, _ = np.split(point, 2, axis=1)
        return _tilted(self._start, *self._split(factors)).reshape(len(point), -1)

    def _split(self, cells):
        """What is of the cells of either group."""
        return np.split(cells, [prod(self._groups[0])], axis=-1)


@lru_cache(maxsize=64)
def _two_groups(shape):
    """Lengths of the leading modes, and of the rest with about as many cells."""
    d = len(shape)
    larger = [max(prod(shape[:k]), prod(shape[k:])) for k in range(d + 1)]
    n_leading = int(np.argmin(larger))
    return shape[:n_leading], shape[n_leading:]


def _modes_of_groups(modes, groups):
    """Those of the modes that are in each group, counted from its first."""
    n = len(groups[0])
    return [k for k in modes if k < n], [k - n for k in modes if k >= n]


@lru_cache(maxsize=16)
def _levels_and_tails(shape, modes):
    """Of cells of the two groups, indicators of the levels of modes, one by one.

    And of the levels from each on, but not from the first.
    """
    groups = _two_groups(shape)
    own_modes = _modes_of_groups(modes, groups)
    parts = [
        levels_of_modes(lengths, tuple(own)) if own else np.empty((prod(lengths), 0))
        for lengths, own in zip(groups, own_modes, strict=True)
    ]
    levels = block_diag(*parts)
    beyond = block_diag(*(np.tri(shape[k], shape[k] - 1, -1) for k in modes))
    return levels, levels @ beyond


def _as_matrices(x, groups):
    return x.reshape(len(x), *map(prod, groups))


def _joint_marginals(matrices):
    return [matrices.sum(axis=2), matrices.sum(axis=1)]


def _contract(matrices, factor, kept):
    """Sum over one axis of matrices times a factor of it; ``kept`` is the other."""
    return np.einsum("nac,nc->na" if kept == 0 else "nac,na->nc", matrices, factor)


def _tilted(matrices, f, g):
    q = np.multiply(matrices, f[:, :, None], out=empty_like(matrices))
    q *= g[:, None, :]
    return q


def _pairs(functions):
    """Products (cells, m * m) of the functions (m, cells)."""
    return (functions[:, None] * functions).reshape(-1, functions.shape[1]).T
