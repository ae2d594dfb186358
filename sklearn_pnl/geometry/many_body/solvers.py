"""Solvers of projections in mixed coordinates: four routes, for many rows.

Which one fits is decided by the shape of the matched set; see ``projections``.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from .._arrays import BLOCK_CELLS, joined, patterns_of, slices, some_rows
from ..convex.fitting import fit_levels, fit_margins, flat_margin
from ..convex.marginals import mode_marginals
from ..convex.optimize import SETTLED, Report, newton_cg, newton_dense
from ..coordinates import distributions
from ..posets.elements import matched_mask
from ..posets.interactions import interaction_mask
from ..posets.protocol import zeta_columns
from .bases import ScaledBasis, ZetaBasis, marginal_cells
from .observed import Design
from .one_body import product_of_marginals
from .tilts import ExponentialTilt

# Up to this many free coordinates dense Newton is faster than conjugate gradients.
_DENSE_UP_TO = 128


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
    """Shapes and checks shared by the four routes; rows are flat inside."""

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
        n, reference = len(target), others[0] if others else None
        prob, residual, n_iter = np.empty(target.shape), np.empty(n), np.empty(n, int)
        for rows in slices(n, rows_at_once(self.poset, self)):
            part = None if reference is None else reference[rows]
            solved = self.solve(target[rows], part, tol, max_iter)
            prob[rows], residual[rows], n_iter[rows] = solved
        if reference is not None and not reference.all():
            # Closed forms ignore structural zeros of the reference.
            prob *= reference > 0
            residual = self.residual(prob - target)
        return Projection(
            prob=prob.reshape(*lead, *self.poset.shape),
            residual=residual.reshape(lead),
            n_iter=n_iter.reshape(lead),
            tol=tol,
            route=self.route,
        )

    @cached_property
    def _columns(self):
        return zeta_columns(self.poset, self.elements)

    def residual(self, difference):
        """``max |eta_q - eta_t|`` over M from the cellwise difference ``q - t``."""
        eta = self._columns.analysis(difference)
        return np.abs(eta, out=eta).max(axis=1, initial=0.0)


class SpliceSolver(_Solver):
    """M an up-set: the target on it, and the reference, rescaled, off it."""

    route = "splice"

    def __init__(self, poset, matched):
        super().__init__(poset, matched)
        self._rest = np.flatnonzero(~matched)

    def solve(self, target, reference, tol, max_iter):
        """Distributions, residuals and steps for flat rows that need no check."""
        q, part = target.copy(), np.ones((1, len(self._rest)))
        mass = target[:, self._rest].sum(axis=1, keepdims=True)
        if reference is not None:
            part = reference[:, self._rest]
        total = part.sum(axis=1, keepdims=True)
        q[:, self._rest] = part / np.where(total > 0, total, 1) * mass
        return _closed_form(q)


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

    def solve(self, target, reference, tol, max_iter):
        """Distributions, residuals and steps for flat rows that need no check."""
        if reference is None:
            reference = np.full((1, self.poset.n_elements), 1 / self.poset.n_elements)
        has, wanted = (x @ self._classes for x in (reference, target))
        factors = np.divide(wanted, has, out=np.zeros_like(wanted), where=has > 0)
        q = reference * (factors @ self._classes.T)
        return _closed_form(q, self.residual(q - target))


class _NewtonSolver(_Solver):
    """Tilts of a start, by one of two Newton's methods.

    A subclass has ``_basis``, in which conjugate gradients need few steps, and
    ``_bases(start, target)``: rows, and the basis for their dense Hessians.
    """

    def _tilt(self, start, target, tol, max_iter):
        if not self.matrix_free:
            return self._dense(start, target, tol, max_iter)
        problem = ExponentialTilt(self._basis, self.residual, start, target)
        solution = newton_cg(problem, problem.zeros, tol=tol, max_iter=max_iter)
        return self._last_resort(solution, target, max_iter)

    def _last_resort(self, solution, target, max_iter):
        """Dense Newton for rows that conjugate gradients did not solve, if it fits.

        From where they are: a tilt of that is a tilt of where they started.
        """
        q, residual, n_iter = solution.point, solution.residual, solution.n_iter
        left = np.flatnonzero(~solution.converged)
        residual[left] = self.residual(q[left] - target[left])
        left = left[n_iter[left] < max_iter]
        # Products of a Hessian that take a tenth of a second a row and step.
        if len(left) and len(self.elements) ** 2 * self.poset.n_elements <= 2**33:
            budget = max_iter - int(n_iter[left].max())
            more = self._dense(q[left], target[left], solution.tol, budget, np.inf)
            better = more[1] < residual[left]
            q[left[better]], residual[left[better]] = more[0][better], more[1][better]
            n_iter[left] += more[2]
        return q, residual, n_iter

    def _dense(self, start, target, tol, max_iter, settled=SETTLED):
        pieces = []
        for rows, basis in self._bases(start, target):
            start_and_target = some_rows(start, rows), some_rows(target, rows)
            problem = ExponentialTilt(basis, self.residual, *start_and_target)
            numerics = {"tol": tol, "max_iter": max_iter, "settled": settled}
            solution = newton_dense(problem, problem.zeros, **numerics)
            pieces.append((rows, (solution.point, solution.residual, solution.n_iter)))
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
        self._independent = max(map(len, sets)) == 1
        self.is_one_body = self._independent and len(self._modes) == d
        self.matrix_free = len(self.elements) > _DENSE_UP_TO

    def solve(self, target, reference, tol, max_iter):
        """Distributions, residuals and steps for flat rows that need no check."""
        start = reference
        if reference is None:
            start = product_of_marginals(target, self.poset.shape, self._modes)
            if self._independent:
                return _closed_form(start, self.residual(start - target))
        if self._fitted is not None:
            start = self._fit_margins(start, target)
        return self._tilt(start, target, tol, max_iter)

    def _fit_margins(self, start, target):
        """The start after a few sweeps of iterative proportional fitting."""
        start, shape, rows = start.copy(), self.poset.shape, slice(None)
        if self.matrix_free and not self._independent and len(self._fitted) > 8:
            # Where no cell is below a hundredth of the mean, many margins cost more.
            rows = np.flatnonzero(target.min(axis=1) * target.shape[1] < 0.01)
        goals = {k: flat_margin(target[rows], shape, k) for k in self._fitted}
        if self._independent:
            return fit_levels(start, shape, goals, 8)
        n_sweeps = 2 if self.matrix_free else 8
        start[rows] = fit_margins(start[rows], shape, goals, n_sweeps)[0]
        return start

    def _bases(self, start, target):
        """Tilts of marginal cells: those that avoid one reference level a mode.

        The same for all rows; of rows that nearly lack it their heaviest one.
        """
        shape = self.poset.shape
        levels = np.zeros((len(target), len(shape)), np.intp)
        for k, mass in mode_marginals(target, shape, self._modes).items():
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
        is_dense = m <= _DENSE_UP_TO and m * m * poset.n_elements <= 2**24
        self.matrix_free = not is_dense

    def solve(self, target, reference, tol, max_iter):
        """Distributions, residuals and steps for flat rows that need no check."""
        start = reference
        if reference is None:
            start = np.full_like(target, 1 / target.shape[1])
        return self._tilt(start, target, tol, max_iter)

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


def _closed_form(q, residual=None):
    n = len(q)
    return q, np.zeros(n) if residual is None else residual, np.zeros(n, int)
