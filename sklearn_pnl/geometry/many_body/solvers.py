"""Solvers of projections in mixed coordinates, for many rows at once.

There is one solver per route, and :func:`mixed_solver` selects the solver by the shape
of the matched set; see ``projections``.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from ..._utils.arrays import (
    BLOCK_CELLS,
    DEVICE_BLOCKS,
    concat,
    filled,
    is_foreign,
    joined,
    largest,
    like,
    namespace,
    patterns_of,
    replaced,
    slices,
    some_rows,
    take,
    to_host,
    widest,
)
from ..convex.fitting import fit_levels, fit_margins
from ..convex.marginals import flat_margin, mode_marginals
from ..convex.newton import Report, newton_cg, newton_dense
from ..coordinates import distributions
from ..posets.elements import matched_mask, refuse_foreign
from ..posets.interactions import interaction_mask
from ..posets.protocol import zeta_columns
from .bases import ScaledBasis, ZetaBasis, marginal_cells
from .observed import Design
from .one_body import product_of_marginals
from .tilts import ExponentialTilt, SettledTilt

# Up to this number of free coordinates, dense Hessians are faster than conjugate
# gradients.
_DENSE_UP_TO = 128
# If a cell of the start is below this share of the mean, the Hessian is so ill
# conditioned that conjugate gradients do not determine theta.
_EMPTY = 1e-3
# Largest error of theta of a code that counts as determined. A step of the dense method
# squares the error, so a last step of a tenth of this size leaves a far smaller error.
DETERMINED = 0.01


@dataclass(frozen=True, kw_only=True)
class Projection(Report):
    """Result of :func:`mixed_projection`: distributions and their convergence.

    Attributes
    ----------
    prob : ndarray of shape (..., *poset.shape)
        The projections.
    residual : ndarray of shape (...,)
        ``max |eta_q - eta_target|`` over the matched elements.
    n_iter : ndarray of int of shape (...,)
        Number of Newton steps, 0 for a closed form.
    tol : float
        The tolerance of the residual.
    converged : ndarray of bool of shape (...,)
        ``residual <= tol``.
    route : {"splice", "tilt", "classes", "general"}
        The solver that was used. "splice" and "classes" are closed forms.

    See Also
    --------
    mixed_projection : Compute a distribution with given mixed coordinates.
    LinearProjection : Result of a projection onto linear constraints.
    """

    prob: np.ndarray
    route: str


def mixed_solver(poset, matched):
    """Return the solver for a poset and a matched set, which may be used repeatedly.

    Parameters
    ----------
    poset : PosetProtocol
        Poset of the cells.
    matched : array-like of bool of shape ``poset.shape``
        The set M of :func:`mixed_projection`.

    Returns
    -------
    solver
        Object with a method ``project(target, reference, tol, max_iter)``.
    """
    matched = matched_mask(poset, matched)
    if poset.is_up_set(matched):
        return SpliceSolver(poset, matched)
    family = poset.family(matched)
    if family is not None:
        return TiltSolver(poset, family)
    greatest = poset.greatest_below(np.flatnonzero(matched))
    if greatest is not None:
        return ClassSolver(poset, matched, greatest)
    return GeneralSolver(poset, matched)


class _Solver:
    """Base class of the four routes, which checks inputs and handles shapes.

    ``solve(target, reference, tol, max_iter, settle=False)`` of a subclass works on
    flat rows. It returns distributions, residuals, numbers of steps, and a mask of the
    rows whose theta is determined to :data:`DETERMINED`. With ``settle`` the iteration
    continues until theta is determined; without it, the mask is only reliable for
    closed forms and the dense method.
    """

    # Whether the projection with a uniform reference is a product of marginals.
    is_one_body = False
    # Whether the solver uses conjugate gradients, which do not form the Hessian.
    matrix_free = False

    def __init__(self, poset, matched):
        self.poset, self.matched = poset, matched
        self.elements = np.flatnonzero(matched)

    def project(self, target, reference=None, *, tol=1e-6, max_iter=100):
        """Solve for all rows of ``target`` and ``reference``, block by block."""
        given = {} if reference is None else {"reference": reference}
        (target, *others), lead = distributions(self.poset, target=target, **given)
        n, reference = target.shape[0], others[0] if others else None
        tol, at_once = attainable_tol(tol, target), rows_at_once(self.poset, self)
        none = filled(0.0, 0, target), np.zeros(0, int), np.zeros(0, bool)
        solved = [] if n else [(target, *none)]
        if is_foreign(target):
            at_once *= DEVICE_BLOCKS
        for rows in slices(n, at_once):
            part = None if reference is None else reference[rows, ...]
            solved.append(self.solve(target[rows, ...], part, tol, max_iter))
        prob, residual, n_iter, _ = map(concat, zip(*solved, strict=True))
        xp = namespace(prob)
        if reference is not None and not xp.all(reference > 0):
            # The closed form of the splice ignores structural zeros of the reference.
            prob = xp.where(reference > 0, prob, 0.0)
            residual = self.residual(prob - target)
        return Projection(
            prob=xp.reshape(prob, (*lead, *self.poset.shape)),
            residual=xp.reshape(residual, lead),
            n_iter=n_iter.reshape(lead),
            tol=tol,
            route=self.route,
        )

    @cached_property
    def _columns(self):
        return zeta_columns(self.poset, self.elements)

    def residual(self, difference):
        """Compute ``max |eta_q - eta_t|`` over M from the difference ``q - t``."""
        return largest(self._columns.analysis(difference))


class SpliceSolver(_Solver):
    """Solver for an up-set M: the target on M, and the rescaled reference off M."""

    route = "splice"

    def __init__(self, poset, matched):
        super().__init__(poset, matched)
        self._rest, self._is_matched = np.flatnonzero(~matched), matched.reshape(-1)

    def solve(self, target, reference, tol, max_iter, settle=False):
        """Solve for flat rows that need no check; see :class:`_Solver`."""
        xp, n = namespace(target), target.shape[0]
        mass = xp.sum(take(target, self._rest, axis=1), axis=1, keepdims=True)
        # Shares of the mass off M; the default reference is uniform.
        shares = 1 / len(self._rest)
        if reference is not None:
            total = xp.sum(take(reference, self._rest, axis=1), axis=1, keepdims=True)
            shares = reference / xp.where(total > 0, total, 1.0)
        q = xp.where(like(self._is_matched, target), target, shares * mass)
        return q, filled(0.0, n, q), np.zeros(n, int), np.ones(n, bool)


class ClassSolver(_Solver):
    """Solver for an M with a greatest element below each cell, which is its class.

    eta on M determines the masses of the classes, so the reference is rescaled class by
    class.
    """

    route = "classes"

    def __init__(self, poset, matched, greatest):
        super().__init__(poset, matched)
        ones = np.ones(poset.n_elements)
        places = (np.arange(poset.n_elements), greatest + 1)
        self._classes = csr_array((ones, places))

    def solve(self, target, reference, tol, max_iter, settle=False):
        """Solve for flat rows that need no check; see :class:`_Solver`."""
        refuse_foreign(target, "A projection on the route 'classes'")
        if reference is None:
            reference = np.full((1, self.poset.n_elements), 1 / self.poset.n_elements)
        has, wanted = (x @ self._classes for x in (reference, target))
        factors = np.divide(wanted, has, out=np.zeros_like(wanted), where=has > 0)
        q = reference * (factors @ self._classes.T)
        none = np.zeros(len(q), int)
        return q, self.residual(q - target), none, np.ones(len(q), bool)


class _NewtonSolver(_Solver):
    """Solver by an exponential tilt of a start, with one of two Newton methods.

    A subclass defines ``_basis``, in which conjugate gradients need few steps. It also
    defines ``_bases(start, target)``, which returns groups of rows, each with a basis
    for dense Hessians.
    """

    def _tilt(self, start, target, tol, max_iter, settle):
        if not self.matrix_free:
            return self._dense(start, target, tol=tol, max_iter=max_iter)
        # In single precision, theta of nearly empty cells cannot be determined.
        settle = settle and start.dtype == namespace(start).float64
        n, xp = start.shape[0], namespace(start)
        empty = np.zeros(n, bool)
        if settle and self._fits_dense:
            empty = to_host(xp.min(start, axis=1) * start.shape[1] < _EMPTY)
        pieces = []
        for rows in (np.flatnonzero(~empty), np.flatnonzero(empty)):
            part = some_rows(start, rows), some_rows(target, rows)
            if empty[rows].any():
                part = self._nearer(*part), part[1]
                found = self._dense(*part, tol=tol, max_iter=max_iter)
            elif len(rows) or not n:
                found = self._conjugate(*part, tol, max_iter, settle)
            else:
                continue
            pieces.append((rows, found))
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
        parts = self._dense(take(q, left), take(target, left), **settings)
        n_iter[left] += parts[2]
        is_settled[left] = parts[3]
        better = to_host((parts[1] <= tol) | (parts[1] < take(residual, left)))
        better = np.flatnonzero(better)
        parts = take(parts[0], better), take(parts[1], better)
        return *replaced((q, residual), left[better], parts), n_iter, is_settled

    def _dense(self, start, target, **settings):
        pieces = []
        for rows, basis in self._bases(start, target):
            start_and_target = some_rows(start, rows), some_rows(target, rows)
            problem = ExponentialTilt(basis, self.residual, *start_and_target)
            solution = newton_dense(problem, problem.zeros, **settings)
            settled = (solution.moved <= DETERMINED / 10) & solution.converged
            found = solution.point, solution.residual, solution.n_iter
            pieces.append((rows, (*found, to_host(settled))))
        return joined(pieces)


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
        """Solve for flat rows that need no check; see :class:`_Solver`."""
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
        rows = np.flatnonzero(light)
        target = some_rows(target, rows)
        if self._independent:
            return fit_levels(start, shape, self._goals(target), 8)
        n_sweeps = 2 if self.matrix_free else 8
        fitted = self._swept(some_rows(start, rows), target, n_sweeps)
        return replaced((start,), rows, (fitted,))[0]

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
        for rows, references in patterns_of(levels):
            references = tuple(references.tolist())
            yield rows, marginal_cells(self.poset, self.family, references)

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
        """Solve for flat rows that need no check; see :class:`_Solver`."""
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
        return [(rows, design.seen_by(seen)[0]) for rows, seen in patterns]

    @cached_property
    def _basis(self):
        return ZetaBasis(self.poset, self.elements)


def rows_at_once(poset, solver=None):
    """Return the number of rows per block, so that temporaries stay in the cache.

    Blocks are larger for conjugate gradients, because rows leave their block early.
    """
    cells = BLOCK_CELLS * (4 if solver is not None and solver.matrix_free else 1)
    return max(poset.rows_at_once, cells // poset.n_elements)


def attainable_tol(tol, x):
    """Return the tolerance, or the smallest tolerance that the device can attain."""
    if isinstance(x, np.ndarray) or widest(x) == namespace(x).float64:
        return tol
    # The bound is the rounding of sums of the cells of a distribution.
    return max(tol, 64 * float(namespace(x).finfo(widest(x)).eps))
