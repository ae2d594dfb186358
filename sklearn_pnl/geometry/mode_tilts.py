"""Tilts by functions of single modes: the tensor as a matrix of two groups of modes.

``q = start * f * g`` with ``f`` a function of the leading modes and ``g`` of the rest.
The marginals of single modes, and of pairs within a group, come from the joint
marginals of the groups, which are far smaller than the tensor; ``q`` itself is formed
only in the end.
"""

from functools import lru_cache
from math import prod

import numpy as np

from .._runtime.workspace import empty_like, some_rows
from .coordinates import row_sums
from .marginals import levels_of_modes, rake
from .tilts import LONGEST_STEP


def rake_modes(start, target, shape, modes, n_sweeps):
    """Iterative proportional fitting of the marginals of single modes."""
    groups = two_groups(shape)
    tensor = _as_matrices(np.broadcast_to(start, target.shape), groups)
    wanted = _joint_marginals(_as_matrices(target, groups))
    factors = [np.ones((len(target), group.n_cells)) for group in groups]
    for _ in range(n_sweeps):
        for own, group in enumerate(groups):
            now = factors[own] * _contract(tensor, factors[1 - own], own)
            factors[own] *= group.raking_factor(now, wanted[own], modes)
    return _tilted(tensor, *factors).reshape(target.shape)


class ModeTilt:
    """The convex problem of a projection, for functions of single modes.

    As in :class:`~.tilts.MarginalCells` a coordinate multiplies one level of one mode
    that is not the reference of that mode. The point kept is the two factors, and then
    the joint marginals of the two groups.
    """

    well_scaled = True

    def __init__(self, shape, start, target, references):
        self._groups = two_groups(shape)
        self._start = _as_matrices(start, self._groups)
        self._wanted = _joint_marginals(_as_matrices(target, self._groups))
        self._functions = [group.functions(references) for group in self._groups]
        self._tails = [group.tails(references) for group in self._groups]
        self._split = [len(self._functions[0])]
        products = zip(self._wanted, self._functions, strict=True)
        self._moments = np.hstack([p @ functions.T for p, functions in products])

    def value(self, x, rows):
        parts = np.split(x, self._split, axis=1)
        f, g = (
            np.exp(part @ functions)
            for part, functions in zip(parts, self._functions, strict=True)
        )
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
        _, _, *marginals = self._parts(point)
        gradients, residual = [], 0.0
        for now, wanted, functions, tails in zip(
            marginals, self._wanted, self._functions, self._tails, strict=True
        ):
            difference = now - some_rows(wanted, rows)
            gradients.append(difference @ functions.T)
            eta = np.abs(difference @ tails).max(axis=1, initial=0.0)
            residual = np.maximum(residual, eta)
        return np.hstack(gradients), residual

    def longest(self, step, *_):
        parts = zip(np.split(step, self._split, axis=1), self._functions, strict=True)
        bound = sum(np.ptp(part @ functions, axis=1) for part, functions in parts)
        return np.minimum(1.0, LONGEST_STEP / np.maximum(bound, LONGEST_STEP))

    def hessian(self, point, rows):
        f, g, leading, rest = self._parts(point)
        first, second = self._functions
        n, m, k = len(point), *map(len, self._functions)
        gram = np.empty((n, m + k, m + k))
        gram[:, :m, :m] = (leading @ _pairs(first)).reshape(n, m, m)
        gram[:, m:, m:] = (rest @ _pairs(second)).reshape(n, k, k)
        left = first * f[:, None, :]
        right = (second * g[:, None, :]).transpose(0, 2, 1)
        across = left @ some_rows(self._start, rows) @ right
        gram[:, :m, m:] = across
        gram[:, m:, :m] = across.transpose(0, 2, 1)
        mean = np.hstack([leading @ first.T, rest @ second.T])
        gram -= mean[:, :, None] * mean[:, None, :]
        return gram

    def distributions(self, point):
        """The rows of cells that points stand for."""
        f, g, _, _ = self._parts(point)
        return _tilted(self._start, f, g).reshape(len(point), -1)

    def _parts(self, point):
        sizes = [group.n_cells for group in self._groups]
        return np.split(point, np.cumsum([*sizes, *sizes])[:-1], axis=1)


class ModeGroup:
    """Neighbouring modes of a tensor, from number ``first`` on."""

    def __init__(self, first, lengths):
        self.first = first
        self.lengths = lengths
        self.n_cells = prod(lengths)

    def raking_factor(self, now, wanted, modes):
        """What one sweep over those of ``modes`` in the group multiplies cells with."""
        sets = [(mode,) for mode in self._own(modes)]
        raked = rake(now, wanted, self.lengths, sets, 1)
        # A sum that is empty stays so.
        return np.divide(raked, now, out=np.ones_like(now), where=now > 0)

    def functions(self, references):
        """Indicators (m, cells) of the levels of the modes but their references."""
        return self._of_modes(
            np.delete(levels, references[self.first + mode], axis=1)
            for mode, levels in self._levels(references)
        ).T.copy()

    def tails(self, modes):
        """Indicators (cells, m) of the levels from each on, but not from the first."""
        return self._of_modes(
            np.cumsum(levels[:, ::-1], axis=1)[:, -2::-1]
            for _, levels in self._levels(modes)
        )

    def _own(self, modes):
        """Those of the modes that are in the group, counted from its first."""
        own = (mode - self.first for mode in modes)
        return [mode for mode in own if 0 <= mode < len(self.lengths)]

    def _levels(self, modes):
        """The group's own of the modes, and indicators of their levels."""
        return [(k, levels_of_modes(self.lengths, (k,))) for k in self._own(modes)]

    def _of_modes(self, columns):
        return np.hstack([np.empty((self.n_cells, 0)), *columns])


@lru_cache(maxsize=64)
def two_groups(shape):
    """Leading modes, and the rest with about as many cells."""
    d = len(shape)
    larger = [max(prod(shape[:k]), prod(shape[k:])) for k in range(d + 1)]
    n_leading = int(np.argmin(larger))
    return ModeGroup(0, shape[:n_leading]), ModeGroup(n_leading, shape[n_leading:])


def _as_matrices(x, groups):
    return x.reshape(len(x), *(group.n_cells for group in groups))


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
