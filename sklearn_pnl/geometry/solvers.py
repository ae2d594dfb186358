"""How projections in mixed coordinates are solved: four routes, for many rows.

Which one fits is decided by the shape of the matched set; see ``projections``.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.sparse import csr_array

from .._runtime.workspace import slices, some_rows
from .coordinates import distributions
from .interactions import InteractionBasis, interaction_mask, maximal_mode_sets
from .marginals import mode_marginals, product_of_marginals, rake
from .mode_tilts import ModeTilt, rake_modes
from .observed import patterns_of
from .optimize import Report, newton_cg, newton_dense, rounding_error
from .posets import matched_mask, zeta_columns
from .settling import settle_rows
from .terms import level_functions
from .tilts import ExponentialTilt, ScaledBasis, ZetaBasis, marginal_cells, pinned_basis

# Cells in one block of rows: a mebibyte of float64, so that the temporaries of a
# block stay in cache. Blocks depend on the shape of the data alone, so that results
# are the same bytes for every n_jobs and every working_memory.
BLOCK_CELLS = 2**17
# Where products are taken many times over, and ever fewer rows are left to take them
# for, blocks are larger.
_LARGER = 2
# Up to this many free coordinates dense Newton is ahead of conjugate gradients.
_DENSE_UP_TO = 128
# Rows too badly conditioned for conjugate gradients go on densely, up to so many
# coordinates, and products to form a Hessian: about a tenth of a second a row and step.
_FALLBACK_UP_TO, _FALLBACK_PRODUCTS = 2048, 2**33
# Dense Newton for a general set forms a matrix of |M|^2 D products a row and step.
_DENSE_PRODUCTS = 2**24
# From so many on functions are written by what is pinned, if differences are local.
_PINNED_FROM = 256
# Where cells are lighter than this, and rounding may amount to more than this in a
# coordinate, theta is settled in better ones.
_LIGHT, _UNSETTLED = 1e-6, 1e-7
# Conjugate gradients give up rows of which so large a share of the cells is as light.
_HOLLOW = 0.75
# Where theta need not be settled, a residual of so much of the tolerance ends it all.
_ENOUGH = 1e-4
# Raking starts the tilt, over at most so many marginals. It brings nearly empty
# marginals to their scale at once, where Newton gains a factor e a step, and even rows
# so near that a few sweeps save most of the dense steps. Conjugate gradients cost less
# than sweeps over many marginals: there only uneven rows are raked.
_RAKING_SETS = 64
# Rows whose emptiest cell holds less than this share of the uniform one.
_UNEVEN = 0.01
_SWEEPS, _SWEEPS_OF_UNEVEN = 8, 2
# A level with at least this share of the mass serves as reference for its mode.
_FILLED = 0.01
# Functions of single modes: from so many cells on it pays not to form the tensor.
_MATRIX_FROM = 128


_NEEDS = {
    "splice": "an up-set",
    "tilt": "a family of interactions of a tensor",
    "classes": "a set with a greatest element below each cell, such as in a chain",
}


@dataclass(frozen=True, kw_only=True)
class Projection(Report):
    """A projection and what happened on the way.

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


def mixed_solver(poset, matched, route="auto"):
    """The solver for one poset and one set, to be used for many rows.

    Parameters
    ----------
    poset : PosetProtocol
    matched : array-like of bool of shape ``poset.shape``
    route : {"auto", "splice", "tilt", "classes", "general"}, default="auto"

    Returns
    -------
    solver
        Object with ``project(target, reference, tol, max_iter)``.
    """
    matched = matched_mask(poset, matched)
    if route not in ("auto", *_NEEDS, "general"):
        raise ValueError(
            f"route must be 'auto', 'splice', 'tilt', 'classes' or 'general'; got "
            f"{route!r}."
        )
    if route in ("auto", "splice") and poset.is_up_set(matched):
        return SpliceSolver(poset, matched, np.flatnonzero(~matched.reshape(-1)))
    family = poset.family(matched) if route in ("auto", "tilt") else None
    if family is not None:
        return TiltSolver(poset, family)
    if route in ("auto", "classes"):
        greatest = poset.greatest_below(np.flatnonzero(matched))
        if greatest is not None:
            return ClassSolver(poset, matched, greatest)
    if route in ("auto", "general"):
        return _spliced(poset, matched) or GeneralSolver(poset, matched)
    raise ValueError(f"The {route} route needs {_NEEDS[route]}; use route='auto'.")


class _Solver:
    """Shapes and checks shared by the four routes; rows are flat inside."""

    # Whether, from the uniform reference, the answer is M_1: a product of marginals.
    is_one_body = False
    # Whether no Hessian is formed: conjugate gradients take many products instead.
    matrix_free = False

    def __init__(self, poset, matched):
        self.poset, self.elements = poset, np.flatnonzero(matched)

    def project(self, target, reference=None, *, tol=1e-6, max_iter=100):
        """Solve for all rows of ``target`` and ``reference``, some at a time."""
        given = {} if reference is None else {"reference": reference}
        (target, *others), lead = distributions(self.poset, target=target, **given)
        reference, n = others[0] if others else None, len(target)
        prob, residual, n_iter = np.empty(target.shape), np.empty(n), np.empty(n, int)
        step = rows_at_once(self.poset, self)
        for some in slices(n, step):
            part = None if reference is None else reference[some]
            found = self.solve(target[some], part, tol, max_iter)
            prob[some], residual[some], n_iter[some] = found
            empty = np.zeros(0) if part is None else part.min(axis=1) == 0
            if empty.any():
                # Structural zeros, which closed forms do not know of.
                rows = some.start + np.flatnonzero(empty)
                prob[rows] *= part[empty] > 0
                residual[rows] = self.residual(prob[rows] - target[rows])
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
    """The target on an up-set within M, and the others of its elements apart.

    ``rest``, all elements but that up-set, has nothing of M: the reference is rescaled
    there. Or ``inner`` solves the same problem on these elements alone.
    """

    def __init__(self, poset, matched, rest, inner=None):
        super().__init__(poset, matched)
        self._rest, self._inner = rest, inner
        self.route = inner.route if inner else "splice"
        self.matrix_free = bool(inner) and inner.matrix_free

    def solve(self, target, reference, tol, max_iter, settle=True):
        """Distributions, residuals and steps for flat rows that need no check."""
        q, (wanted, mass) = target.copy(), _normalized(target[:, self._rest])
        if reference is not None:
            reference, _ = _normalized(reference[:, self._rest])
        if self._inner:
            given = wanted, reference, tol, max_iter, settle
            rest, residual, n_iter = self._inner.solve(*given)
        else:
            rest = 1 / len(self._rest) if reference is None else reference
            _, residual, n_iter = _closed_form(q)
        q[:, self._rest] = rest * mass
        return q, residual * mass[:, 0], n_iter


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

    def solve(self, target, reference, tol, max_iter, settle=True):
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
    ``_tilts(start, target)``: rows, and what makes the problem for dense Hessians of
    where these start and their target.
    """

    def _tilt(self, start, target, tol, max_iter, settle):
        if not self.matrix_free:
            enough = 0.0 if settle else _ENOUGH * tol
            return self._dense(start, target, tol, max_iter, enough)
        problem = ExponentialTilt(self._basis, self.residual, start, target)
        zeros = np.zeros_like(problem.moments)
        found = newton_cg(problem, zeros, tol=tol, max_iter=max_iter)
        return self._last_resort(found, target, max_iter)

    def _last_resort(self, found, target, max_iter):
        """Dense Newton for the rows that conjugate gradients left, where it fits.

        From where they are: a tilt of that is a tilt of where they started.
        """
        q, residual, n_iter = found.point, found.residual, found.n_iter
        left = np.flatnonzero(~found.converged)
        if len(left):
            residual[left] = self.residual(q[left] - target[left])
        left = left[n_iter[left] < max_iter]
        if len(left) and self._fits_densely:
            budget = max_iter - int(n_iter[left].max())
            more = self._dense(q[left], target[left], found.tol, budget, found.tol)
            better = more[1] < residual[left]
            q[left[better]], residual[left[better]] = more[0][better], more[1][better]
            n_iter[left] += more[2]
        return q, residual, n_iter

    @property
    def _fits_densely(self):
        m = len(self.elements)
        products = m * m * self.poset.n_elements
        return m <= _FALLBACK_UP_TO and products <= _FALLBACK_PRODUCTS

    def _dense(self, start, target, tol, max_iter, enough):
        pieces = []
        for rows, tilt in self._tilts(start, target):
            wanted = some_rows(target, rows)
            problem = tilt(some_rows(start, rows), wanted)
            x = np.zeros((len(rows), len(self.elements)))
            found = newton_dense(problem, x, tol=tol, max_iter=max_iter, enough=enough)
            q, residual = problem.distributions(found.point), found.residual
            light = () if enough else np.flatnonzero(is_light(q) & found.converged)
            if len(light) and problem.well_scaled:
                light = light[rounding_error(problem, found, light) > _UNSETTLED]
            if len(light):
                given = wanted, residual, light, self.residual, tol
                settle_rows(self._functions, q, *given)
            pieces.append((rows, (q, residual, found.n_iter)))
        return joined(pieces)

    @cached_property
    def _functions(self):
        """The constant and the indicators of what lies above each element of M."""
        return level_functions(self.poset, self.elements).T


class TiltSolver(_NewtonSolver):
    """M a family of interactions of a tensor: match the marginals by a tilt.

    Starts from the product of the marginals (or from the reference), raked; then
    dense Newton on marginal cells if few coordinates are free, else conjugate
    gradients in the orthonormal interaction basis.
    """

    route = "tilt"

    def __init__(self, poset, family):
        super().__init__(poset, interaction_mask(poset.shape, family))
        self.family = family if isinstance(family, int) else frozenset(family)
        sets = maximal_mode_sets(family, range(len(poset.shape)))
        self._raked = sets if len(sets) <= _RAKING_SETS else None
        self._modes = sorted(set().union(*sets))
        self._independent = max(map(len, sets)) == 1
        self.is_one_body = self._independent and len(self._modes) == len(poset.shape)
        self.matrix_free = len(self.elements) > _DENSE_UP_TO

    def solve(self, target, reference, tol, max_iter, settle=True):
        """Distributions, residuals and steps for flat rows that need no check."""
        if len(self.elements) == self.poset.n_elements - 1:
            return _closed_form(target.copy())
        start = reference
        if reference is None:
            start = product_of_marginals(target, self.poset.shape, self._modes)
            if self._independent:
                return _closed_form(start, self.residual(start - target))
        if self._raked is not None:
            start = self._rake(start, target)
        return self._tilt(start, target, tol, max_iter, settle)

    def _rake(self, start, target):
        shape, sets = self.poset.shape, self._raked
        if self._independent:
            return rake_modes(start, target, shape, self._modes, _SWEEPS)
        if not self.matrix_free:
            return rake(start, target, shape, sets, _SWEEPS)
        uneven = np.flatnonzero(_is_uneven(target))
        some, wanted = some_rows(start, uneven), some_rows(target, uneven)
        start = start.copy()
        start[uneven] = rake(some, wanted, shape, sets, _SWEEPS_OF_UNEVEN)
        return start

    def _tilts(self, start, target):
        """Tilts of marginal cells: those that avoid one reference level a mode.

        The same for all rows; of rows that nearly lack it their heaviest one.
        """
        shape = self.poset.shape
        levels = np.zeros((len(target), len(shape)), np.intp)
        for k, mass in mode_marginals(target, shape, self._modes).items():
            common = mass.sum(axis=0).argmax()
            own = mass.argmax(axis=1)
            levels[:, k] = np.where(mass[:, common] >= _FILLED, common, own)
        for rows, references in patterns_of(levels):
            references = tuple(references.tolist())
            if self._independent and self.poset.n_elements >= _MATRIX_FROM:
                chosen = {k: references[k] for k in self._modes}
                yield rows, partial(ModeTilt, shape, chosen)
            else:
                parts = self.family, references, len(self.elements)
                basis = marginal_cells(self.poset, *parts)
                yield rows, partial(ExponentialTilt, basis, self.residual)

    @cached_property
    def _basis(self):
        return ScaledBasis(InteractionBasis(self.poset.shape, self.family))


class GeneralSolver(_NewtonSolver):
    """Any M: Newton's method on theta over M."""

    route = "general"

    def __init__(self, poset, matched):
        super().__init__(poset, matched)
        m = len(self.elements)
        dense = m <= _DENSE_UP_TO and m * m * poset.n_elements <= _DENSE_PRODUCTS
        self.matrix_free = not dense

    def solve(self, target, reference, tol, max_iter, settle=True):
        """Distributions, residuals and steps for flat rows that need no check."""
        start = reference
        if reference is None:
            start = np.full_like(target, 1 / target.shape[1])
        if len(self.elements) == 0:
            return _closed_form(start.copy())
        return self._tilt(start, target, tol, max_iter, settle)

    def _tilt(self, start, target, tol, max_iter, settle):
        if not (self.matrix_free and self._fits_densely):
            return super()._tilt(start, target, tol, max_iter, settle)
        hollow, pieces = _is_hollow(target), []
        ways = (~hollow, super()._tilt, settle), (hollow, self._dense, tol)
        for fitting, way, last in ways:
            rows = np.flatnonzero(fitting)
            if len(rows):
                given = some_rows(start, rows), some_rows(target, rows)
                pieces.append((rows, way(*given, tol, max_iter, last)))
        return joined(pieces)

    def _tilts(self, start, target):
        parts = [(np.arange(len(start)), np.True_)]
        if not (self.matrix_free or start.all()):
            # Where cells cannot be, functions may say the same.
            parts = patterns_of(start > 0)
        for rows, seen in parts:
            basis = self._zeta_basis
            if not seen.all():
                basis = ZetaBasis(self.poset, self.elements, seen)
            yield rows, partial(ExponentialTilt, basis, self.residual)

    @cached_property
    def _basis(self):
        many = len(self.elements) > _PINNED_FROM
        pinned = pinned_basis(self.poset, self.elements) if many else None
        return pinned or self._zeta_basis

    @cached_property
    def _zeta_basis(self):
        return ZetaBasis(self.poset, self.elements)


def _spliced(poset, matched):
    """The solver that takes the largest up-set within M from the target.

    None if there is none, or if what is left of M is small in any case.
    """
    rest_poset, rest = poset.down_closure(np.flatnonzero(~matched))
    if rest_poset.n_elements == poset.n_elements:
        return None
    inner = matched[rest]
    if np.count_nonzero(inner) <= _DENSE_UP_TO:
        return None
    return SpliceSolver(poset, matched, rest, mixed_solver(rest_poset, inner))


def _normalized(x):
    """Rows divided by their sums (n, 1); uniform where these are 0."""
    total = x.sum(axis=1, keepdims=True)
    uniform = np.full_like(x, 1 / x.shape[1])
    return np.divide(x, total, out=uniform, where=total > 0), total


def rows_at_once(poset, solver=None):
    """Rows that are worth working on at once: their temporaries stay in cache."""
    cells = BLOCK_CELLS
    if solver is not None and solver.matrix_free:
        cells *= _LARGER
    return max(poset.rows_at_once, cells // poset.n_elements)


def _is_uneven(target):
    return target.min(axis=1) * target.shape[1] < _UNEVEN


def _is_hollow(target):
    """Rows of which most cells hold next to nothing."""
    return np.quantile(target, _HOLLOW, axis=1) < _LIGHT


def is_light(q):
    """Rows with cells so light, but not empty, that rounding may move their theta."""
    lightest = q.min(axis=1)
    return (lightest > 0) & (lightest < _LIGHT)


def joined(pieces):
    """One answer from pairs of row numbers and the answers for them."""
    if len(pieces) == 1:
        return pieces[0][1]
    order = np.argsort(np.concatenate([rows for rows, _ in pieces]))
    answers = zip(*(answer for _, answer in pieces), strict=True)
    return tuple(np.concatenate(parts)[order] for parts in answers)


def _closed_form(q, residual=None):
    n = len(q)
    return q, np.zeros(n) if residual is None else residual, np.zeros(n, int)
