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

# Up to these numbers of free coordinates, distributions and theta are computed with
# dense Hessians.
_DENSE_UP_TO, _DENSE_THETA_UP_TO = 128, 64
# With more free coordinates, dense Hessians are faster for rows whose lightest cell, as
# a share of the mean, is below these numbers (the second is divided by the number of
# free coordinates), and whose expansion is below the third number in some cell.
_LIGHT_SHARE, _LIGHT_PER_ELEMENT, _NEGATIVE = 0.1, 30, -0.8
# A row that needs more Cholesky factors has coordinates that nearly diverge, or that
# rounding errors do not determine.
_MOST_FACTORS = 20
# Number of steps with one graded basis. Each step changes cells by factors of up
# to e, so the order of the cells changes.
_GRADED_STEPS = 12
# If a cell of the target is lighter, the last step can be short by chance, and theta is
# computed in a graded basis in any case.
_LIGHTEST = 1e-10
# Largest estimate of rounding errors for theta that counts as determined. The estimate
# leaves out the rounding of the functions, which can be a hundred times as large.
_ROUNDING = DETERMINED / 50


class _NewtonSolver(Solver):
    """Solver by an exponential tilt of a start, with one of two Newton methods.

    A subclass defines ``_start(target, reference, is_dense)``, and ``_basis``, in which
    conjugate gradients need few steps. It also defines ``_bases(log_start, target)``,
    which returns groups of rows, each with a basis for dense Hessians.
    """

    def solve(self, target, reference, tol, max_iter):
        """Solve for flat rows that need no check; see :class:`Solver`."""
        route = self._conjugate if self.matrix_free else self._dense
        logs = self._log_start(target, reference, not self.matrix_free)
        q, _, residual, n_iter, _ = route(logs, target, tol, max_iter, settle=False)
        return q, residual, n_iter

    def log_solve(self, target, tol, max_iter):
        """Solve until theta is determined; see :class:`Solver`."""
        pieces, suits_dense = [], self._suits_dense(target)
        # In single precision, theta of nearly empty cells cannot be determined.
        settle = target.dtype == namespace(target).float64
        for is_dense, mask in ((True, suits_dense), (False, ~suits_dense)):
            indices = np.flatnonzero(mask)
            if len(indices) or not (is_dense or len(mask)):
                part = some_rows(target, indices)
                logs = self._log_start(part, None, is_dense)
                route = self._dense if is_dense else self._conjugate
                _, *found = route(logs, part, tol, max_iter, settle=settle)
                pieces.append((indices, tuple(found)))
        return joined(pieces)

    def _log_start(self, target, reference, is_dense):
        start = self._start(target, reference, is_dense)
        with np.errstate(divide="ignore"):
            return namespace(start).log(start)

    def _suits_dense(self, target):
        """Return the mask (n,) of the rows for which dense Hessians are faster."""
        return np.full(target.shape[0], not self.matrix_free)

    @property
    def _fits_dense(self):
        # The limit corresponds to about 0.1 seconds per row and step for a Hessian.
        return len(self.elements) ** 2 * self.poset.n_elements <= 2**33

    def _conjugate(self, log_start, target, tol, max_iter, *, settle):
        """Solve by conjugate gradients; use the dense method for rows that fail.

        Return distributions, their logs, residuals, numbers of steps, and a mask of the
        rows whose theta is determined.
        """
        kind, given = ExponentialTilt, (self._basis, self.residual, log_start, target)
        settle = settle and self._basis.orthonormal
        if settle:
            kind = SettledTilt
            # theta is a signed sum of at most 2 ** order logs of cells.
            given = *given, tol, 2.0 ** (self._order / 2) * tol / DETERMINED
        problem = kind(*given)
        solution = newton_cg(problem, problem.zeros, tol=tol, max_iter=max_iter)
        q, n_iter = solution.point, solution.n_iter
        logs = problem.log_prob(solution.x)
        is_settled = to_host(solution.converged)
        residual, left = solution.residual, np.flatnonzero(~is_settled)
        # In the iteration the residual is only an upper bound.
        missed = self.residual(take(q, left) - take(target, left))
        (residual,) = replaced((residual,), left, (missed,))
        left = left[n_iter[left] < max_iter]
        if not len(left) or not self._fits_dense:
            return q, logs, residual, n_iter, is_settled
        # A tilt of the last iterate is also a tilt of the start, so no step is lost.
        budget = max_iter - int(n_iter[left].max())
        settings = {} if settle else {"settled": np.inf}
        parts = take(logs, left), take(target, left)
        parts = self._dense(*parts, tol, budget, settle=settle, **settings)
        n_iter[left] += parts[3]
        is_settled[left] = parts[4]
        better = to_host((parts[2] <= tol) | (parts[2] < take(residual, left)))
        better = np.flatnonzero(better)
        parts = tuple(take(part, better) for part in parts[:3])
        found = replaced((q, logs, residual), left[better], parts)
        return *found, n_iter, is_settled

    def _dense(self, log_start, target, tol, max_iter, *, settle, **settings):
        """Solve with dense Hessians; ``settle`` continues until theta is determined.

        The result is that of :meth:`_conjugate`.
        """
        pieces = []
        for indices, basis in self._bases(log_start, target):
            part = some_rows(log_start, indices), some_rows(target, indices)
            problem = ExponentialTilt(basis, self.residual, *part)
            if settle:
                settings["most_factors"] = _MOST_FACTORS
            solution = newton_dense(
                problem, problem.zeros, tol=tol, max_iter=max_iter, **settings
            )
            found = _found(problem, solution)
            if settle and isinstance(target, np.ndarray):
                settled = found[-1]
                settled &= part[1].min(axis=1) >= _LIGHTEST
                left = ~settled & solution.converged & ~solution.spent
                for i in np.flatnonzero(left):
                    self._finish(basis, part[1], found, i, tol, max_iter)
            pieces.append((indices, found))
        return joined(pieces)

    def _finish(self, basis, target, found, i, tol, max_iter):
        """Continue a row of results in graded bases, in place."""
        q, logs, residual, n_iter, settled = found
        row = slice(i, i + 1)
        while not settled[i] and n_iter[i] < max_iter:
            graded = GradedBasis(basis.functions, q[i])
            problem = ExponentialTilt(graded, self.residual, logs[row], target[row])
            n_steps = min(_GRADED_STEPS, max_iter - n_iter[i])
            solution = newton_dense(
                problem, problem.zeros, tol=tol, max_iter=n_steps, reuse=False
            )
            results = _found(problem, solution)
            q[row], logs[row], residual[row], n_taken, settled[row] = results
            n_iter[row] += n_taken
            if settled[i]:
                # The last step is also short if rounding hides a gradient.
                settled[i] = graded.rounding(q[i], target[i]) <= _ROUNDING
                break


def _found(problem, solution):
    """Return points, their logs, residuals, numbers of steps, and the settled rows."""
    q, logs = solution.point, problem.log_prob(solution.x)
    settled = (solution.moved <= DETERMINED / 10) & solution.converged
    # Functions on cells smaller than the smallest float have the variance 0.
    settled &= namespace(q).min(q, axis=1) > 0
    return q, logs, solution.residual, solution.n_iter, to_host(settled)


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

    def solve(self, target, reference, tol, max_iter):
        """Solve for flat rows that need no check; see :class:`Solver`."""
        if not self._independent or reference is not None:
            return super().solve(target, reference, tol, max_iter)
        q = product_of_marginals(target, self.poset.shape, self._modes)
        return q, self.residual(q - target), np.zeros(q.shape[0], int)

    def log_solve(self, target, tol, max_iter):
        """Solve until theta is determined; see :class:`Solver`."""
        kind = Solver if self._independent else _NewtonSolver
        return kind.log_solve(self, target, tol, max_iter)

    def _suits_dense(self, target):
        """Return the mask (n,) of the rows for which dense Hessians are faster.

        They are faster if the projection has nearly empty cells. This is likely if the
        target has nearly empty cells, and its expansion in the orthonormal functions,
        which approximates the projection, is clearly negative in a cell.
        """
        (n, n_cells), m, xp = target.shape, len(self.elements), namespace(target)
        if m <= _DENSE_THETA_UP_TO and n:
            return np.ones(n, bool)
        if target.dtype != xp.float64 or not self._fits_dense:
            return np.full(n, not self.matrix_free)
        share = min(_LIGHT_SHARE, _LIGHT_PER_ELEMENT / m)
        suits = to_host(xp.min(target, axis=1) * n_cells < share)
        light = np.flatnonzero(suits)
        moments = self._basis.analysis(some_rows(target, light))
        lowest = xp.min(self._basis.synthesis(moments), axis=1)
        suits[light] = to_host(1 + lowest < _NEGATIVE)
        return suits

    def _start(self, target, reference, is_dense):
        """Apply a few sweeps of iterative proportional fitting to the reference."""
        start, shape = reference, self.poset.shape
        if reference is None:
            start = product_of_marginals(target, shape, self._modes)
        if self._fitted is None:
            return start
        if self._independent:
            return fit_levels(start, shape, self._goals(target), 8)
        is_light = np.ones(target.shape[0], bool)
        if not is_dense and len(self._fitted) > 8:
            # If all cells exceed a hundredth of the mean, sweeps cost more than they
            # save.
            lightest = namespace(target).min(target, axis=1)
            is_light = to_host(lightest * target.shape[1] < 0.01)
        indices, xp = np.flatnonzero(is_light), namespace(target)
        part, part_target = some_rows(start, indices), some_rows(target, indices)
        n_sweeps, goals = 8 if is_dense else 2, self._goals(part_target)
        fitted = fit_margins(1 * part, shape, goals, n_sweeps)[0]
        if reference is None:
            # A cell that underflows would stay 0.
            lost = (xp.min(fitted, axis=1) == 0) & (xp.min(part_target, axis=1) > 0)
            fitted = xp.where(lost[:, None], part, fitted)
        return replaced((start,), indices, (fitted,))[0]

    def _goals(self, target):
        return {k: flat_margin(target, self.poset.shape, k) for k in self._fitted}

    def _bases(self, log_start, target):
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

    def _start(self, target, reference, is_dense):
        refuse_foreign(target, "A projection on the route 'general'")
        if reference is None:
            return filled(1 / target.shape[1], target.shape, target)
        return reference

    def _bases(self, log_start, target):
        if self.matrix_free or (log_start > -np.inf).all():
            return [(np.arange(len(target)), self._basis)]
        # Structural zeros remove cells, so that functions may become dependent.
        design = Design(self.poset, self.matched)
        patterns = patterns_of(log_start > -np.inf)
        return [(indices, design.seen_by(seen)[0]) for indices, seen in patterns]

    @cached_property
    def _basis(self):
        return ZetaBasis(self.poset, self.elements)
