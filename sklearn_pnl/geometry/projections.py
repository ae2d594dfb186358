r"""Projections in mixed coordinates: the one problem that the library solves.

Given a set M of elements, a *target* t and a *reference* r, find the distribution

.. math:: q = \arg\min_q KL(q, r) \quad\text{subject to}\quad
          \eta_q(x) = \eta_t(x) \text{ for } x \in M .

Then theta of ``q`` equals that of ``r`` off M, and ``q`` exists and is unique for
positive ``t`` and ``r`` (Amari 2016, section 2.8: mixed coordinates). It is also the
minimum over ``theta`` on M of the smooth convex ``psi(theta) - <theta, eta_t>_M``.

Three routes, by the shape of M:

splice
    M is an up-set. eta on an up-set fixes the cells of it, so ``q = t`` on M and
    ``q = c r`` off M: closed form.
tilt
    M is a family of interactions of a tensor. ``q = r exp(v)`` with ``v`` a sum of
    functions of the kept sets of modes, matched to their marginals of ``t``.
general
    Any other M: ``q = r exp(zeta v)`` with ``v`` supported on M.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..optimize import newton_cg, newton_cholesky
from .interactions import (
    InteractionBasis,
    close_downward,
    family_from_mask,
    interaction_mask,
    maximal_mode_sets,
    order_mask,
)
from .posets import TensorPoset

# Up to this many free coordinates dense Newton is ahead of conjugate gradients.
_DENSE_UP_TO = 128
# A dense fallback for rows too badly conditioned for conjugate gradients.
_FALLBACK_UP_TO = 2048
# A Newton step changes log probabilities by at most this much. Where the target holds
# far more than the iterate the full step overshoots, to distributions so concentrated
# that their Fisher information is numerically 0.
_LONGEST_STEP = 10.0
# Dense Newton for a general set forms a matrix of |M|^2 D products a row and step.
_DENSE_PRODUCTS = 2**24
# A term of a sparse product costs about as much as so many of a dense one; and the
# largest matrix of basis functions that is kept.
_SPARSE_COST, _LARGEST_MATRIX = 16, 2**25
# Raking starts the tilt: two sweeps over at most so many marginals. They bring
# nearly empty marginals to their scale at once, where Newton gains a factor e a step.
_RAKING_SETS = 64
_RAKING_SWEEPS = 2


@dataclass(frozen=True)
class Projection:
    """A projection and what happened on the way.

    Attributes
    ----------
    prob : ndarray of shape (..., *poset.shape)
        The distributions found.
    residual : ndarray of shape (...,)
        ``max |eta_q - eta_target|`` over the matched elements.
    n_iter : ndarray of int of shape (...,)
        Newton steps; 0 for a closed form.
    converged : ndarray of bool of shape (...,)
        ``residual <= tol``.
    route : {"splice", "tilt", "general"}
    """

    prob: np.ndarray
    residual: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    route: str


def mixed_projection(
    target, reference, matched, poset, *, tol=1e-6, max_iter=100, route="auto"
):
    """Distribution with eta of a target on a set and theta of a reference off it.

    Solves ``min KL(q, reference)`` over the ``q`` with ``eta_q = eta_target`` on
    ``matched``.

    Parameters
    ----------
    target : array-like of shape (..., *poset.shape)
        Distributions; only their eta on ``matched`` is used.
    reference : array-like of shape (..., *poset.shape) or None
        Positive distributions; only their theta off ``matched`` is used. None is
        the uniform distribution: theta 0. Broadcast against ``target``.
    matched : array-like of bool of shape ``poset.shape``
        The set M. The bottom, fixed by normalisation, is ignored.
    poset : Poset or TensorPoset
    tol : float, default=1e-6
        Wanted ``max |eta_q - eta_target|`` over ``matched``.
    max_iter : int, default=100
        Most Newton steps.
    route : {"auto", "splice", "tilt", "general"}, default="auto"
        How to solve it; "auto" takes the first that fits the set.

    Returns
    -------
    Projection

    Raises
    ------
    ValueError
        If shapes do not fit, if an input is not a positive distribution where it
        must be, or if the route asked for does not fit the set.

    References
    ----------
    Amari, "Information Geometry and Its Applications", 2016, section 2.8.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, mixed_projection
    >>> target = np.array([[0.4, 0.1], [0.2, 0.3]])
    >>> poset = TensorPoset((2, 2))
    >>> projection = mixed_projection(target, None, poset.order == 1, poset)
    >>> projection.prob                        # the product of the marginals
    array([[0.3, 0.2],
           [0.3, 0.2]])
    >>> projection.route
    'tilt'
    """
    solver = mixed_solver(poset, matched, route)
    return solver.project(target, reference, tol=tol, max_iter=max_iter)


def splice_projection(target, reference, matched, poset):
    """:func:`mixed_projection` on an up-set: closed form.

    Parameters
    ----------
    target, reference, matched, poset
        As for :func:`mixed_projection`.

    Returns
    -------
    Projection
    """
    return mixed_projection(target, reference, matched, poset, route="splice")


def tilt_projection(target, reference, interactions, poset, *, tol=1e-6, max_iter=100):
    """:func:`mixed_projection` on the interactions of a tensor, given as a family.

    Parameters
    ----------
    target, reference, poset, tol, max_iter
        As for :func:`mixed_projection`; ``poset`` is a :class:`TensorPoset`.
    interactions : int or iterable of tuple of int
        Order, or the mode sets whose marginals are matched, closed downward.

    Returns
    -------
    Projection
    """
    if not isinstance(poset, TensorPoset):
        raise ValueError(
            f"Interactions between modes are defined for a tensor; got {poset!r}. Use "
            "mixed_projection."
        )
    solver = TiltSolver(poset, close_downward(interactions, poset.n_modes))
    return solver.project(target, reference, tol=tol, max_iter=max_iter)


def general_projection(
    target, reference, matched, poset, *, tol=1e-6, max_iter=100
):  # numpydoc ignore=PR01
    """:func:`mixed_projection` by Newton's method on any set.

    Parameters
    ----------
    target, reference, matched, poset, tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    Projection
    """
    return mixed_projection(
        target, reference, matched, poset, tol=tol, max_iter=max_iter, route="general"
    )


def many_body_projection(p, poset, order=1, *, tol=1e-6, max_iter=100):
    """m-projection on the distributions without interactions beyond ``order``.

    Solves ``min KL(p, q)`` over the ``q`` with ``theta_q = 0`` on all elements of
    order above ``order``; ``q`` has the eta of ``p`` on the others.

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Positive distributions.
    poset : Poset or TensorPoset
    order : int or iterable of tuple of int, default=1
        ``ell``, or for a tensor the mode sets kept.
    tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    Projection

    References
    ----------
    Ghalamkari, Sugiyama and Kawahara, "Many-body approximation for non-negative
    tensors", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, many_body_projection
    >>> p = np.array([[0.4, 0.1], [0.2, 0.3]])
    >>> many_body_projection(p, TensorPoset((2, 2)), order=1).prob
    array([[0.3, 0.2],
           [0.3, 0.2]])
    """
    matched = order_mask(poset, order)
    return mixed_projection(p, None, matched, poset, tol=tol, max_iter=max_iter)


def mixed_solver(poset, matched, route="auto"):
    """The solver for one poset and one set, to be used for many rows.

    Parameters
    ----------
    poset : Poset or TensorPoset
    matched : array-like of bool of shape ``poset.shape``
    route : {"auto", "splice", "tilt", "general"}, default="auto"

    Returns
    -------
    solver
        Object with ``project(target, reference, tol, max_iter)``.
    """
    matched = np.array(matched, bool, order="C")
    if matched.shape != poset.shape:
        raise ValueError(
            f"matched must be a mask of shape {poset.shape}; got shape {matched.shape}."
        )
    matched.reshape(-1)[poset.bottom] = False
    if route not in ("auto", "splice", "tilt", "general"):
        raise ValueError(
            f"route must be 'auto', 'splice', 'tilt' or 'general'; got {route!r}."
        )
    if route in ("auto", "splice") and poset.is_up_set(matched):
        return SpliceSolver(poset, matched)
    if route in ("auto", "tilt") and isinstance(poset, TensorPoset):
        family = family_from_mask(poset.shape, matched)
        if family is not None:
            return TiltSolver(poset, family)
    if route in ("auto", "general"):
        return GeneralSolver(poset, matched)
    needs = {"splice": "an up-set", "tilt": "a family of interactions of a tensor"}
    raise ValueError(f"The {route} route needs {needs[route]}; use route='auto'.")


class _Solver:
    """Shapes and checks shared by the three routes; rows are flat inside."""

    def project(self, target, reference=None, *, tol=1e-6, max_iter=100):
        """Solve for all rows of ``target`` and ``reference``; see the module."""
        target, reference, lead = _flat_rows(target, reference, self.poset)
        if len(target):
            q, residual, n_iter = self._project(target, reference, tol, max_iter)
        else:
            q, residual, n_iter = target, np.zeros(0), np.zeros(0, int)
        return Projection(
            q.reshape(*lead, *self.poset.shape),
            residual.reshape(lead),
            n_iter.reshape(lead),
            (residual <= tol).reshape(lead),
            self.route,
        )

    def _residual(self, difference):
        """``max |eta_q - eta_t|`` over M from the cellwise difference ``q - t``."""
        eta = self.poset.eta(difference.reshape(-1, *self.poset.shape))
        eta = eta.reshape(len(eta), -1)[:, self.elements]
        return np.abs(eta).max(axis=1, initial=0.0)


class SpliceSolver(_Solver):
    """M an up-set: target on M, the reference rescaled off it."""

    route = "splice"

    def __init__(self, poset, matched):
        self.poset = poset
        self.elements = np.flatnonzero(matched)
        self._rest = np.flatnonzero(~matched.reshape(-1))

    def _project(self, target, reference, tol, max_iter):
        q = target.copy()
        if reference is None:
            rest = np.full((1, len(self._rest)), 1 / len(self._rest))
        else:
            rest = reference[:, self._rest]
            rest = rest / rest.sum(axis=1, keepdims=True)
        q[:, self._rest] = rest * target[:, self._rest].sum(axis=1, keepdims=True)
        n = len(q)
        return q, np.zeros(n), np.zeros(n, int)


class TiltSolver(_Solver):
    """M a family of interactions of a tensor: match the marginals by a tilt.

    Starts from the product of the marginals (or from the reference), raked; then
    dense Newton on marginal cells if few coordinates are free, else conjugate
    gradients in the orthonormal interaction basis.
    """

    route = "tilt"

    def __init__(self, poset, family):
        self.poset = poset
        self.family = family
        self.elements = np.flatnonzero(interaction_mask(poset.shape, family))
        d = poset.n_modes
        self._raked = maximal_mode_sets(family, d, _RAKING_SETS)
        every = isinstance(family, int)
        self._used_modes = [k for k in range(d) if every or (k,) in family]
        self._independent = (family if every else max(map(len, family))) == 1

    def _project(self, target, reference, tol, max_iter):
        n = len(target)
        if len(self.elements) == self.poset.n_elements - 1:
            return target.copy(), np.zeros(n), np.zeros(n, int)
        if reference is None:
            start = _product_of_marginals(target, self.poset.shape, self._used_modes)
            if self._independent:
                return start, self._residual(start - target), np.zeros(n, int)
        else:
            start = reference
        if self._raked is not None:
            start = _rake(start, target, self.poset.shape, self._raked)
        if len(self.elements) <= _DENSE_UP_TO:
            return self._dense(start, target, tol, max_iter)
        return self._conjugate_gradients(start, target, tol, max_iter)

    def _dense(self, start, target, tol, max_iter):
        problem = _MarginalCells(self, start, target)
        zeros = np.zeros((len(start), len(self.elements)))
        found = newton_cholesky(problem, zeros, tol=tol, max_iter=max_iter)
        return problem.in_place(found.point), found.residual, found.n_iter

    def _conjugate_gradients(self, start, target, tol, max_iter):
        problem = _ExponentialTilt(self, self._scaled_basis, start, target)
        zeros = np.zeros((len(start), len(self.elements)))
        found = newton_cg(problem, zeros, tol=tol, max_iter=max_iter)
        return _finish(self, found, target, tol, max_iter, self._dense)

    @cached_property
    def _scaled_basis(self):
        return _Scaled(InteractionBasis(self.poset.shape, self.family))

    @cached_property
    def meets(self):
        """Flat index of the cell "both events" for each pair of marginal cells.

        A cell stands for the event that its non-zero indices occur. Two events
        that ask different levels of one mode exclude each other; they get index
        ``D``, where the caller keeps a 0.
        """
        shape = self.poset.shape
        first = np.zeros((len(self.elements),) * 2, np.intp)
        exclusive = np.zeros(first.shape, bool)
        for cell, length in zip(
            np.unravel_index(self.elements, shape), shape, strict=True
        ):
            a, b = cell[:, None], cell
            exclusive |= (a != b) & (a > 0) & (b > 0)
            first = first * length + np.maximum(a, b)
        first[exclusive] = self.poset.n_elements
        return first


class GeneralSolver(_Solver):
    """Any M: Newton's method on theta over M."""

    route = "general"

    def __init__(self, poset, matched):
        self.poset = poset
        self.elements = np.flatnonzero(matched)

    def _project(self, target, reference, tol, max_iter):
        n = len(target)
        if reference is None:
            start = np.full_like(target, 1 / target.shape[1])
        else:
            start = reference
        if len(self.elements) == 0:
            return start.copy(), np.zeros(n), np.zeros(n, int)
        m = len(self.elements)
        if m <= _DENSE_UP_TO and m * m * self.poset.n_elements <= _DENSE_PRODUCTS:
            return self._dense(start, target, tol, max_iter)
        problem = _ExponentialTilt(self, self._basis, start, target)
        zeros = np.zeros((n, len(self.elements)))
        found = newton_cg(problem, zeros, tol=tol, max_iter=max_iter)
        return _finish(self, found, target, tol, max_iter, self._dense)

    def _dense(self, start, target, tol, max_iter):
        problem = _ExponentialTilt(self, self._basis, start, target)
        zeros = np.zeros((len(start), len(self.elements)))
        found = newton_cholesky(problem, zeros, tol=tol, max_iter=max_iter)
        return found.point, found.residual, found.n_iter

    @cached_property
    def _basis(self):
        return _ZetaBasis(self.poset, self.elements)


def _finish(solver, found, target, tol, max_iter, dense):
    """Hand the rows that conjugate gradients could not settle to dense Newton."""
    q, residual, n_iter = found.point, found.residual, found.n_iter
    left = np.flatnonzero(~found.converged & (n_iter < max_iter))
    if len(left) and len(solver.elements) <= _FALLBACK_UP_TO:
        budget = max_iter - int(n_iter[left].max())
        better, lower, more = dense(q[left], target[left], tol, budget)
        improved = lower < residual[left]
        q[left[improved]] = better[improved]
        residual[left[improved]] = lower[improved]
        n_iter[left] += more
    return q, residual, n_iter


class _ExponentialTilt:
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
        return self._basis.analysis(difference), self._solver._residual(difference)

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


class _MarginalCells(_ExponentialTilt):
    """The tilt in the coordinates in which its Fisher information is a table lookup.

    In each mode the most probable level of the row's target is the reference; a
    coordinate multiplies one cell of one marginal table that avoids the reference
    levels. The Fisher information then consists of marginal probabilities, and
    nearly empty cells keep their relative accuracy: scaled to unit diagonal it is
    well conditioned where the orthonormal basis is not.
    """

    def __init__(self, solver, start, target):
        self._order = _levels_by_mass(target, solver.poset.shape)
        self._back = np.argsort(self._order, axis=1)
        basis = _FlatOrderBasis(solver.poset.shape, solver.elements)
        super().__init__(solver, basis, self._sorted(start), self._sorted(target))

    def in_place(self, q):
        """Cells of all rows in the tensor's own order."""
        return np.take_along_axis(q, self._back, axis=1)

    def gradient(self, q, rows):
        difference = q - self._target[rows]
        original = np.take_along_axis(difference, self._back[rows], axis=1)
        return self._basis.analysis(difference), self._solver._residual(original)

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
        self._shape = shape
        self._elements = elements
        self._n_cells = int(np.prod(shape))

    def synthesis(self, v):
        x = np.zeros((len(v), self._n_cells))
        x[:, self._elements] = v
        for mode in _mode_views(x, self._shape):
            mode[:, 1:] += mode[:, :1]
        return x

    def analysis(self, x):
        return self.marginals(x)[:, self._elements]

    def marginals(self, x):
        """For each cell, the sum of all cells that agree with its non-zero indices."""
        x = x.copy()
        for mode in _mode_views(x, self._shape):
            for level in range(1, mode.shape[1]):
                mode[:, 0] += mode[:, level]
        return x


class _ZetaBasis:
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
        if m <= _FALLBACK_UP_TO:
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


class _Scaled:
    """An interaction basis times ``sqrt(D)``: unit Fisher information at uniform."""

    def __init__(self, basis):
        self._basis = basis
        self._scale = np.sqrt(np.prod(basis.shape))

    def synthesis(self, v):
        return self._basis.synthesis_flat(v * self._scale)

    def analysis(self, x):
        return self._basis.analysis_flat(x) * self._scale


def _mode_views(x, shape):
    """Views (outer, length, inner) of rows ``x``, one a mode."""
    outer, inner = len(x), x.shape[1]
    for length in shape:
        inner //= length
        yield x.reshape(outer, length, inner)
        outer *= length


def _marginal(tensor, modes):
    """Sum over all modes but ``modes``, axes kept; rows come first."""
    d = tensor.ndim - 1
    return tensor.sum(
        axis=tuple(k + 1 for k in range(d) if k not in modes), keepdims=True
    )


def _product_of_marginals(target, shape, modes):
    """The one-body approximation; uniform in modes that are not in ``modes``."""
    tensor = target.reshape(-1, *shape)
    product = np.ones((len(tensor), *(1,) * len(shape)))
    for k, length in enumerate(shape):
        marginal = (
            _marginal(tensor, (k,))
            if k in modes
            else np.full(
                (1, *(length if j == k else 1 for j in range(len(shape)))), 1 / length
            )
        )
        product = product * marginal
    return product.reshape(len(tensor), -1)


def _rake(start, target, shape, mode_sets):
    """A few sweeps of iterative proportional fitting: rescale marginal by marginal."""
    tensor = target.reshape(-1, *shape)
    wanted = [_marginal(tensor, modes) for modes in mode_sets]
    q = np.array(np.broadcast_to(start, target.shape)).reshape(tensor.shape)
    for _ in range(_RAKING_SWEEPS):
        for modes, marginal in zip(mode_sets, wanted, strict=True):
            # A marginal that is empty in both stays so.
            now = _marginal(q, modes)
            q *= np.divide(marginal, now, out=np.ones_like(now), where=now > 0)
    return q.reshape(target.shape)


def _levels_by_mass(target, shape):
    """Flat cell order in which each mode's most probable level comes first."""
    n = len(target)
    tensor = target.reshape(n, *shape)
    flat = np.zeros((n, *(1,) * len(shape)), np.intp)
    for k, length in enumerate(shape):
        marginal = _marginal(tensor, (k,)).reshape(n, length)
        ranked = np.argsort(-marginal, axis=1, kind="stable")
        flat = flat * length + ranked.reshape(
            n, *(length if j == k else 1 for j in range(len(shape)))
        )
    return flat.reshape(n, -1)


def _flat_rows(target, reference, poset):
    """Both inputs as float64 rows (n, D), checked, and the leading shape."""
    k = len(poset.shape)
    target = _as_distributions(target, poset, "target")
    lead = target.shape[: target.ndim - k]
    if reference is not None:
        reference = _as_distributions(reference, poset, "reference")
        lead = np.broadcast_shapes(lead, reference.shape[: reference.ndim - k])
        reference = np.broadcast_to(reference, lead + poset.shape)
        reference = reference.reshape(-1, poset.n_elements)
        if not np.all(reference > 0):
            row, cell = np.argwhere(~(reference > 0))[0]
            raise ValueError(
                f"reference must be positive; cell {cell} of row {row} is "
                f"{reference[row, cell]}. Add a positive offset before normalising."
            )
    target = np.broadcast_to(target, lead + poset.shape)
    return target.reshape(-1, poset.n_elements), reference, lead


def _as_distributions(p, poset, name):
    p = np.asarray(p, dtype=np.float64)
    k = len(poset.shape)
    if p.shape[p.ndim - k :] != poset.shape:
        raise ValueError(
            f"{name} must have shape (..., {', '.join(map(str, poset.shape))}) for "
            f"{poset!r}; got {p.shape}."
        )
    total = p.sum(axis=tuple(range(-k, 0)))
    if not (np.all(p >= 0) and np.allclose(total, 1, rtol=1e-6, atol=0)):
        raise ValueError(
            f"{name} must hold distributions: cells of at least 0 with sum 1. Divide "
            "each row by its sum."
        )
    return p
