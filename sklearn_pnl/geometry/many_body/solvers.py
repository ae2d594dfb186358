"""Solvers of projections in mixed coordinates: four routes, for many rows.

Which one fits is decided by the shape of the matched set; see ``projections``.
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
from ..convex.optimize import Report, newton_cg, newton_dense
from ..coordinates import distributions
from ..posets.elements import matched_mask, refuse_foreign
from ..posets.interactions import interaction_mask
from ..posets.protocol import zeta_columns
from .bases import ScaledBasis, ZetaBasis, marginal_cells
from .observed import Design
from .one_body import product_of_marginals
from .tilts import ExponentialTilt, SettledTilt

# Up to this many free coordinates dense Newton is faster than conjugate gradients.
_DENSE_UP_TO = 128
# Cells that start below this share of the mean make Hessians so ill conditioned that
# conjugate gradients do not determine theta.
_EMPTY = 1e-3
# Largest error of theta of a code that counts as determined. The dense method squares
# its error, so that a last step of a tenth of it leaves far less.
DETERMINED = 0.01


@dataclass(frozen=True, kw_only=True)
class Projection(Report):
    """A projection, with residuals and numbers of iterations.

    Attributes
    ----------
    prob : ndarray of shape (..., *poset.shape)
        The distributions found.
    residual : ndarray of shape (...,)
        ``max |eta_q - eta_target|`` over the matched elements.
    n_iter : ndarray of int of shape (...,)
        Newton steps; 0 for a closed form.
    tol : float
    converged : ndarray of bool of shape (...,)
        ``residual <= tol``.
    route : {"splice", "tilt", "classes", "general"}

    See Also
    --------
    mixed_projection : The problem that all projections are.
    LinearProjection : What a linear projection found.
    """

    prob: np.ndarray
    route: str


def mixed_solver(poset, matched):
    """The solver for one poset and one set, to be used for many rows.

    Parameters
    ----------
    poset : PosetProtocol
    matched : array-like of bool of shape ``poset.shape``

    Returns
    -------
    solver
        Object with ``project(target, reference, tol, max_iter)``.
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
    """Shapes and checks shared by the four routes; rows are flat inside.

    ``solve(target, reference, tol, max_iter, settle=False)`` of a subclass returns
    distributions, residuals, numbers of steps, and whether theta of each distribution
    is determined to :data:`DETERMINED`. With ``settle`` the iteration goes on until
    theta is determined, too; otherwise only closed forms and the dense method state it.
    """

    # Whether the projection of a uniform reference is a product of marginals.
    is_one_body = False
    # Whether conjugate gradients are used, which form no Hessian.
    matrix_free = False

    def __init__(self, poset, matched):
        self.poset, self.matched = poset, matched
        self.elements = np.flatnonzero(matched)

    def project(self, target, reference=None, *, tol=1e-6, max_iter=100):
        """Solve for all rows of ``target`` and ``reference``, some at a time."""
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
            # Closed forms ignore structural zeros of the reference.
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
        """``max |eta_q - eta_t|`` over M from the cellwise difference ``q - t``."""
        return largest(self._columns.analysis(difference))


class SpliceSolver(_Solver):
    """M an up-set: the target on it, and the reference, rescaled, off it."""

    route = "splice"

    def __init__(self, poset, matched):
        super().__init__(poset, matched)
        self._rest, self._is_matched = np.flatnonzero(~matched), matched.reshape(-1)

    def solve(self, target, reference, tol, max_iter, settle=False):
        """Solve for flat rows that need no check; see :class:`_Solver`."""
        xp, n = namespace(target), target.shape[0]
        mass = xp.sum(take(target, self._rest, axis=1), axis=1, keepdims=True)
        # Of what is not matched; the reference is uniform if none is given.
        shares = 1 / len(self._rest)
        if reference is not None:
            total = xp.sum(take(reference, self._rest, axis=1), axis=1, keepdims=True)
            shares = reference / xp.where(total > 0, total, 1.0)
        q = xp.where(like(self._is_matched, target), target, shares * mass)
        return q, filled(0.0, n, q), np.zeros(n, int), np.ones(n, bool)


class ClassSolver(_Solver):
    """Below each cell one element of M is the greatest: cells fall into classes by it.

    eta on M are then the masses of the classes: the reference rescaled to them.
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
    """Tilts of a start, by one of two Newton's methods.

    A subclass has ``_basis``, in which conjugate gradients need few steps, and
    ``_bases(start, target)``: rows, and the basis for their dense Hessians.
    """

    def _tilt(self, start, target, tol, max_iter, settle):
        if not self.matrix_free:
            return self._dense(start, target, tol=tol, max_iter=max_iter)
        # Single precision does not determine theta of nearly empty cells.
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
        """A start of the dense method that is nearer to the solution."""
        return start

    @property
    def _fits_dense(self):
        # Products of a Hessian that take at most a tenth of a second a row and step.
        return len(self.elements) ** 2 * self.poset.n_elements <= 2**33

    def _conjugate(self, start, target, tol, max_iter, settle):
        """Tilts by conjugate gradients, and by the dense method where they fail."""
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
        # What the iteration compares with the tolerance is a bound of it.
        missed = self.residual(take(q, left) - take(target, left))
        (residual,) = replaced((residual,), left, (missed,))
        left = left[n_iter[left] < max_iter]
        if not len(left) or not self._fits_dense:
            return q, residual, n_iter, is_settled
        # From where they are: a tilt of that is a tilt of where they started.
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
    """M a family of interactions of a tensor: match the marginals by a tilt.

    Starts from the product of the marginals (or from the reference), raked; then
    dense Newton on marginal cells if few coordinates are free, else conjugate
    gradients in the orthonormal interaction basis.
    """

    route = "tilt"

    def __init__(self, poset, family):
        super().__init__(poset, interaction_mask(poset.shape, family))
        is_order, d = isinstance(family, int), len(poset.shape)
        self.family = family if is_order else frozenset(family)
        sets = list(combinations(range(d), family)) if is_order else family
        # Newton's method gains a factor e a step where margins are nearly empty, and
        # sweeps scale these at once; over many margins they cost more than they save.
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
        """The start after a few sweeps of iterative proportional fitting."""
        shape, n, xp = self.poset.shape, target.shape[0], namespace(target)
        light = np.ones(n, bool)
        if self.matrix_free and not self._independent and len(self._fitted) > 8:
            # Where no cell is below a hundredth of the mean, many margins cost more.
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
        """Tilts of marginal cells: those that avoid one reference level a mode.

        The same for all rows; of rows that nearly lack it their heaviest one.
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
    """Any M: Newton's method on theta over M."""

    route = "general"

    def __init__(self, poset, matched):
        super().__init__(poset, matched)
        m = len(self.elements)
        # A Hessian is a matrix of |M|^2 D products a row and step.
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
        # Functions may coincide where structural zeros remove cells.
        design = Design(self.poset, self.matched)
        patterns = patterns_of(start > 0)
        return [(rows, design.seen_by(seen)[0]) for rows, seen in patterns]

    @cached_property
    def _basis(self):
        return ZetaBasis(self.poset, self.elements)


def rows_at_once(poset, solver=None):
    """Number of rows at a time, so that temporaries stay in cache.

    More for conjugate gradients, which take many products for ever fewer rows.
    """
    cells = BLOCK_CELLS * (4 if solver is not None and solver.matrix_free else 1)
    return max(poset.rows_at_once, cells // poset.n_elements)


def attainable_tol(tol, x):
    """A tolerance, or what the precision of the device of an array allows."""
    if isinstance(x, np.ndarray) or widest(x) == namespace(x).float64:
        return tol
    # Sums of the cells of a distribution.
    return max(tol, 64 * float(namespace(x).finfo(widest(x)).eps))
