"""Projections in mixed coordinates by Newton's method, for many rows at once.

The forward projection onto a base is the tilt of :class:`TiltSolver`.
"""

from functools import cached_property
from itertools import combinations

import numpy as np

from ..._utils.arrays import (
    filled,
    joined,
    namespace,
    patterns_of,
    replaced,
    some_rows,
    take,
    to_host,
)
from ..convex.fitting import fit_levels, fit_margins
from ..convex.marginals import flat_margin, mode_marginals
from ..convex.newton import newton_cg, newton_dense
from ..posets.elements import refuse_foreign
from ..posets.interactions import interaction_mask
from .bases import ScaledBasis, ZetaBasis, marginal_cells
from .closed_forms import DETERMINED, Solver
from .graded import GradedBasis
from .observed import Design
from .one_body import product_of_marginals
from .tilts import ExponentialTilt, SettledTilt

# Up to this number of free coordinates, dense Hessians are faster than conjugate
# gradients.
_DENSE_UP_TO = 128
# If a cell of the start is below this share of the mean, the Hessian is so ill
# conditioned that conjugate gradients do not determine theta.
_EMPTY = 1e-3
# Number of steps with one graded basis. Each step changes cells by factors of up to e,
# so the order of the cells changes.
_GRADED_STEPS = 12
# If a cell of the target is lighter, the last step can be short by chance, and theta is
# computed in a graded basis in any case.
_LIGHTEST = 1e-10
# Largest estimate of rounding errors for theta that counts as determined. The estimate
# leaves out the rounding of the functions, which can be a hundred times as large.
_ROUNDING = DETERMINED / 50


class _NewtonSolver(Solver):
    """Solver by an exponential tilt of a start, with one of two Newton methods.

    A subclass defines ``_basis``, in which conjugate gradients need few steps. It also
    defines ``_bases(start, target)``, which returns groups of rows, each with a basis
    for dense Hessians.
    """

    def _tilt(self, start, target, tol, max_iter, settle):
        # In single precision, theta of nearly empty cells cannot be determined.
        settle = settle and start.dtype == namespace(start).float64
        if not self.matrix_free:
            return self._dense(start, target, settle, tol=tol, max_iter=max_iter)
        n, xp = start.shape[0], namespace(start)
        empty = np.zeros(n, bool)
        if settle and self._fits_dense:
            empty = to_host(xp.min(start, axis=1) * start.shape[1] < _EMPTY)
        pieces = []
        for indices in (np.flatnonzero(~empty), np.flatnonzero(empty)):
            part = some_rows(start, indices), some_rows(target, indices)
            if empty[indices].any():
                part = self._nearer(*part), part[1]
                found = self._dense(*part, settle, tol=tol, max_iter=max_iter)
            elif len(indices) or not n:
                found = self._conjugate(*part, tol, max_iter, settle)
            else:
                continue
            pieces.append((indices, found))
        return joined(pieces)

    def _nearer(self, start, target):
        """Return a start of the dense method that is closer to the solution."""
        return start

    @property
    def _fits_dense(self):
        # The limit corresponds to about 0.1 seconds per row and step for a Hessian.
        return len(self.elements) ** 2 * self.poset.n_elements <= 2**33

    def _conjugate(self, start, target, tol, max_iter, settle):
        """Solve by conjugate gradients; use the dense method for rows that fail."""
        kind, given = ExponentialTilt, (self._basis, self.residual, start, target)
        settle = settle and self._basis.orthonormal
        if settle:
            kind = SettledTilt
            # theta is a signed sum of at most 2 ** order logs of cells.
            given = *given, tol, 2.0 ** (self._order / 2) * tol / DETERMINED
        problem = kind(*given)
        solution = newton_cg(problem, problem.zeros, tol=tol, max_iter=max_iter)
        q, n_iter = solution.point, solution.n_iter
        is_settled = to_host(solution.converged)
        residual, left = solution.residual, np.flatnonzero(~is_settled)
        # In the iteration the residual is only an upper bound.
        missed = self.residual(take(q, left) - take(target, left))
        (residual,) = replaced((residual,), left, (missed,))
        left = left[n_iter[left] < max_iter]
        if not len(left) or not self._fits_dense:
            return q, residual, n_iter, is_settled
        # A tilt of the last iterate is also a tilt of the start, so no step is lost.
        budget = max_iter - int(n_iter[left].max())
        settings = {"tol": tol, "max_iter": budget}
        if not settle:
            settings["settled"] = np.inf
        parts = self._dense(take(q, left), take(target, left), settle, **settings)
        n_iter[left] += parts[2]
        is_settled[left] = parts[3]
        better = to_host((parts[1] <= tol) | (parts[1] < take(residual, left)))
        better = np.flatnonzero(better)
        parts = take(parts[0], better), take(parts[1], better)
        return *replaced((q, residual), left[better], parts), n_iter, is_settled

    def _dense(self, start, target, settle, *, tol, max_iter, **settings):
        """Solve with dense Hessians; ``settle`` continues until theta is determined."""
        pieces = []
        for indices, basis in self._bases(start, target):
            start_and_target = some_rows(start, indices), some_rows(target, indices)
            problem = ExponentialTilt(basis, self.residual, *start_and_target)
            solution = newton_dense(
                problem, problem.zeros, tol=tol, max_iter=max_iter, **settings
            )
            found = _found(solution)
            if settle and isinstance(start, np.ndarray):
                target_rows = start_and_target[1]
                self._continue(basis, target_rows, *found, tol=tol, max_iter=max_iter)
            pieces.append((indices, found))
        return joined(pieces)

    def _continue(self, basis, target, q, residual, n_iter, settled, *, tol, max_iter):
        """Continue converged rows without determined theta, each in a graded basis."""
        settled &= target.min(axis=1) >= _LIGHTEST
        for i in np.flatnonzero(~settled & (residual <= tol)):
            row = slice(i, i + 1)
            while not settled[i] and n_iter[i] < max_iter:
                graded = GradedBasis(basis.functions, q[i])
                problem = ExponentialTilt(graded, self.residual, q[row], target[row])
                n_steps = min(_GRADED_STEPS, max_iter - n_iter[i])
                solution = newton_dense(
                    problem, problem.zeros, tol=tol, max_iter=n_steps, reuse=False
                )
                q[row], residual[row], taken, settled[row] = _found(solution)
                n_iter[row] += taken
                if settled[i]:
                    # The last step is also short if rounding hides a gradient.
                    settled[i] = graded.rounding(q[i], target[i]) <= _ROUNDING
                    break


def _found(solution):
    """Return points, residuals, numbers of steps, and whether theta is determined."""
    settled = (solution.moved <= DETERMINED / 10) & solution.converged
    return solution.point, solution.residual, solution.n_iter, to_host(settled)


class TiltSolver(_NewtonSolver):
    """Solver for a family of interactions of a tensor, whose marginals are matched.

    The start is the product of the marginals, or the reference, after a few sweeps of
    iterative proportional fitting. For few free coordinates, Newton's method uses dense
    Hessians in marginal cells. For more, it uses conjugate gradients in the orthonormal
    interaction basis.
    """

    route = "tilt"

    def __init__(self, poset, family):
        super().__init__(poset, interaction_mask(poset.shape, family))
        is_order, d = isinstance(family, int), len(poset.shape)
        self.family = family if is_order else frozenset(family)
        sets = list(combinations(range(d), family)) if is_order else family
        # If margins are nearly empty, a Newton step gains only a factor e, but a sweep
        # scales them at once. With many margins, sweeps cost more than they save.
        self._fitted = sets if len(sets) <= 32 else None
        self._modes = sorted(set().union(*sets))
        self._order = max(map(len, sets))
        self._independent = self._order == 1
        self.is_one_body = self._independent and len(self._modes) == d
        self.matrix_free = len(self.elements) > _DENSE_UP_TO

    def solve(self, target, reference, tol, max_iter, settle=False):
        """Solve for flat rows that need no check; see :class:`Solver`."""
        start = reference
        if reference is None:
            start = product_of_marginals(target, self.poset.shape, self._modes)
            if self._independent:
                residual, n = self.residual(start - target), target.shape[0]
                return start, residual, np.zeros(n, int), np.ones(n, bool)
        if self._fitted is not None:
            start = self._fit_margins(start, target)
        return self._tilt(start, target, tol, max_iter, settle)

    def _fit_margins(self, start, target):
        """Apply a few sweeps of iterative proportional fitting to the start."""
        shape, n, xp = self.poset.shape, target.shape[0], namespace(target)
        light = np.ones(n, bool)
        if self.matrix_free and not self._independent and len(self._fitted) > 8:
            # If all cells exceed a hundredth of the mean, sweeps cost more than they
            # save.
            light = to_host(xp.min(target, axis=1) * target.shape[1] < 0.01)
        indices = np.flatnonzero(light)
        target = some_rows(target, indices)
        if self._independent:
            return fit_levels(start, shape, self._goals(target), 8)
        n_sweeps = 2 if self.matrix_free else 8
        fitted = self._swept(some_rows(start, indices), target, n_sweeps)
        return replaced((start,), indices, (fitted,))[0]

    def _nearer(self, start, target):
        return start if self._fitted is None else self._swept(start, target, 6)

    def _swept(self, start, target, n_sweeps):
        goals = self._goals(target)
        return fit_margins(1 * start, self.poset.shape, goals, n_sweeps)[0]

    def _goals(self, target):
        return {k: flat_margin(target, self.poset.shape, k) for k in self._fitted}

    def _bases(self, start, target):
        """Group rows by the reference levels of their basis of marginal cells.

        The reference level of a mode is the level with the largest total mass. Rows
        with less than 1% of their mass at this level use their own heaviest level.
        """
        shape = self.poset.shape
        levels = np.zeros((target.shape[0], len(shape)), np.intp)
        for k, mass in mode_marginals(target, shape, self._modes).items():
            mass = to_host(mass)
            common = mass.sum(axis=0).argmax()
            fullest = mass.argmax(axis=1)
            levels[:, k] = np.where(mass[:, common] >= 0.01, common, fullest)
        for indices, references in patterns_of(levels):
            references = tuple(references.tolist())
            yield indices, marginal_cells(self.poset, self.family, references)

    @cached_property
    def _basis(self):
        return ScaledBasis(self.poset.shape, self.family)


class GeneralSolver(_NewtonSolver):
    """Solver for any M, by Newton's method for theta on M."""

    route = "general"

    def __init__(self, poset, matched):
        super().__init__(poset, matched)
        m = len(self.elements)
        # A dense Hessian costs |M|^2 D products per row and step.
        self.matrix_free = m > _DENSE_UP_TO or m * m * poset.n_elements > 2**24
        self._order = poset.max_order

    def solve(self, target, reference, tol, max_iter, settle=False):
        """Solve for flat rows that need no check; see :class:`Solver`."""
        refuse_foreign(target, "A projection on the route 'general'")
        start = reference
        if reference is None:
            start = filled(1 / target.shape[1], target.shape, target)
        return self._tilt(start, target, tol, max_iter, settle)

    def _bases(self, start, target):
        if self.matrix_free or start.all():
            return [(np.arange(len(start)), self._basis)]
        # Structural zeros remove cells, so that functions may become dependent.
        design = Design(self.poset, self.matched)
        patterns = patterns_of(start > 0)
        return [(indices, design.seen_by(seen)[0]) for indices, seen in patterns]

    @cached_property
    def _basis(self):
        return ZetaBasis(self.poset, self.elements)
