r"""Completion: a log-linear model fitted to the observed cells gives the missing ones.

With O the observed cells, ``m`` a measure and ``r`` a reference, find

.. math:: \min_v \; \sum_{x \in O} q(x) - m(x) \log q(x)
          + \frac{\text{ridge}}{2} \|v\|^2 , \qquad q = r \exp(v + \text{const})

over the functions ``v`` of a space V, that of a matched set M. Without a ridge this is
the Poisson likelihood of the observed cells: ``q`` has their sums above every element
of M (quasi-independence, where M is of order 1), and its missing cells follow from
those alone. Where ``r`` is zero, ``q`` is (structural zeros). The problem is convex:
that of :mod:`.projections` with a reference that is zero at the missing cells.

``|v|^2`` is the sum over the interactions of their number of functions times the mean
square of what they add to ``log q``: as if each interaction had the same variance a
priori, whether a few functions or thousands share it. So interactions of high order are
small unless the data ask for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import dct

from .coordinates import row_sums
from .interactions import InteractionBasis, close_downward, maximal_mode_sets
from .marginals import marginal_of
from .optimize import Report, newton_cg, newton_dense
from .posets import PosetProtocol
from .solvers import BLOCK_CELLS
from .tilts import Basis, ExponentialTilt, ScaledBasis, ZetaBasis

# Up to so many functions Newton is dense if there is a ridge, and without one at all.
_DENSE_UP_TO, _MOST_FUNCTIONS = 128, 2048
# Functions times cells that are held as one matrix.
_LARGEST_MATRIX = 2**26
# A direction is not seen by the observed cells if its mean square there is less than
# this; and a cell depends on it if the square of its share there is more than that.
_UNSEEN, _DEPENDS = 1e-11, 1e-9


@dataclass(frozen=True, kw_only=True)
class Completion(Report):
    """Completed measures and what happened on the way.

    Attributes
    ----------
    measure : ndarray of shape (..., *poset.shape)
        The model at all cells, observed ones too; NaN where it is not estimable.
    estimable : ndarray of bool of shape (..., *poset.shape) or None
        Cells that the observed ones determine; None with a ridge, which gives every
        cell a value.
    rank : ndarray of int of shape (...,) or None
        Of the observed design, with the constant: ``1 + |M|`` if all parameters are
        identified. None with a ridge.
    residual : ndarray of shape (...,)
        Half the length of the gradient in orthonormal functions, as a share of the
        observed mass; without a ridge no eta of the observed cells is farther off.
    gap : ndarray of shape (...,)
        Primal less dual value, as a share of the observed mass: 0 at the solution.
        With a ridge it is no less than what the objective is above its minimum.
    n_iter : ndarray of int of shape (...,)
        Newton steps.
    tol : float
    converged : ndarray of bool of shape (...,)
        ``residual <= tol``.

    See Also
    --------
    complete : Missing cells by a log-linear model of the observed ones.
    estimable_cells : Cells that the observed ones determine.
    """

    measure: np.ndarray
    estimable: np.ndarray | None
    rank: np.ndarray | None
    gap: np.ndarray


def complete(
    measures: ArrayLike,
    poset: PosetProtocol,
    matched: ArrayLike,
    *,
    observed: ArrayLike | None = None,
    reference: ArrayLike | None = None,
    ridge: float = 0.0,
    smooth: Sequence[int] = (),
    tol: float = 1e-9,
    max_iter: int = 100,
) -> Completion:
    r"""Missing cells by a log-linear model of the observed ones.

    Minimises ``sum of q - m log q`` over the observed cells, for
    ``q = reference * exp(zeta theta)`` with theta on ``matched`` and the bottom, plus
    ``ridge / 2`` times the mass observed and, for each interaction, its number of
    functions times the mean square of what it adds to ``log q``.

    Parameters
    ----------
    measures : array-like of shape (..., *poset.shape)
        Not negative; NaN, or anything, where a cell is missing.
    poset : Poset or TensorPoset
    matched : array-like of bool of shape ``poset.shape``
        The set M of elements whose theta is free besides the bottom's, such as
        ``order_mask(poset, 2)``.
    observed : array-like of bool of shape (..., *poset.shape), default=None
        Broadcast against the measures; None is where these are not NaN.
    reference : array-like of shape (..., *poset.shape), default=None
        Not negative. Cells where it is 0 stay 0 (structural zeros). None is 1.
    ridge : float, default=0
        Weight of the squared log effects for an observed mass of 1.
    smooth : sequence of int, default=()
        Modes of a tensor with levels in order: what the ridge weighs there are the
        differences between neighbouring levels, as of a random walk with the variance
        that the levels of other modes have. Only with a ridge.
    tol : float, default=1e-9
        Wanted residual, as a share of the observed mass.
    max_iter : int, default=100
        Most Newton steps.

    Returns
    -------
    Completion

    Raises
    ------
    ValueError
        If shapes do not fit, if an observed cell is negative or not finite, if a cell
        holds mass where the reference is 0, or if a row has no observed mass.

    See Also
    --------
    estimable_cells : Cells that the observed ones determine.
    mixed_projection : The problem that all projections are.
    rake : Tables with given margins.

    Notes
    -----
    Without a ridge, cells of a margin whose observed cells are all 0 become 0, the
    limit of the likelihood. Other patterns of zeros may leave a likelihood without a
    maximum; then the residual tells, and a ridge or an offset helps.

    References
    ----------
    Bishop, Fienberg and Holland, "Discrete Multivariate Analysis", 1975, chapter 5
    (incomplete tables, quasi-independence).

    Ghalamkari, Sugiyama and Kawahara, "Many-body approximation for non-negative
    tensors", NeurIPS 2023 (completion, by expectation and maximisation).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, complete
    >>> poset = TensorPoset((2, 2))
    >>> found = complete([[4.0, 2.0], [6.0, np.nan]], poset, poset.order == 1)
    >>> found.measure.round(6)                     # 6 * 2 / 4
    array([[4., 2.],
           [6., 3.]])
    """
    problem = _Problem.from_user(measures, poset, matched, observed, reference)
    if not ridge >= 0:
        raise ValueError(f"ridge must not be negative; got {ridge}.")
    design = _Design(poset, problem.elements, smooth)
    settings = {"tol": tol, "max_iter": max_iter}
    estimable = rank = None
    if ridge > 0:
        found = _fitted_with_ridge(problem, design, ridge, settings)
    else:
        problem = problem.without_empty_margins(poset, design.family)
        *found, estimable, rank = _fitted(problem, design, settings)
    measure, residual, gap, n_iter = found
    lead, shape = problem.lead, problem.lead + poset.shape
    return Completion(
        measure=measure.reshape(shape),
        estimable=None if estimable is None else estimable.reshape(shape),
        rank=None if rank is None else rank.reshape(lead),
        residual=residual.reshape(lead),
        gap=gap.reshape(lead),
        n_iter=n_iter.reshape(lead),
        tol=tol,
    )


def estimable_cells(
    observed: ArrayLike, poset: PosetProtocol, matched: ArrayLike
) -> tuple[NDArray, NDArray]:
    """Cells whose value the observed ones determine, and the rank of their design.

    A cell is estimable if its row of the design, the constant and the elements of
    ``matched`` below it, is a combination of the rows of the observed cells: then all
    theta that agree on these agree there.

    Parameters
    ----------
    observed : array-like of bool of shape (..., *poset.shape)
    poset : Poset or TensorPoset
    matched : array-like of bool of shape ``poset.shape``

    Returns
    -------
    estimable : ndarray of bool of shape (..., *poset.shape)
    rank : ndarray of int of shape (...,)
        ``1 + |M|`` if all parameters are identified.

    Raises
    ------
    ValueError
        If shapes do not fit, or the design has more than about 10,000,000 entries.

    See Also
    --------
    complete : Missing cells by a log-linear model of the observed ones.

    Examples
    --------
    >>> from sklearn_pnl.geometry import TensorPoset, estimable_cells
    >>> poset = TensorPoset((2, 3))
    >>> observed = [[True, True, False], [True, False, False]]
    >>> estimable, rank = estimable_cells(observed, poset, poset.order == 1)
    >>> estimable
    array([[ True,  True, False],
           [ True,  True, False]])
    >>> rank
    array(3)
    """
    observed = np.asarray(observed, bool)
    lead = observed.shape[: observed.ndim - len(poset.shape)]
    elements = _elements(poset, matched)
    seen = _of_poset(observed, poset, "observed").reshape(-1, poset.n_elements)
    design = _Design(poset, elements, ())
    estimable, rank = np.empty(seen.shape, bool), np.empty(len(seen), int)
    for rows, pattern in _patterns(seen):
        basis, estimable[rows] = design.seen_by(pattern)
        rank[rows] = len(basis.functions) + pattern.any()
    return estimable.reshape(observed.shape), rank.reshape(lead)


class _Problem(NamedTuple):
    """Rows (n, D): shares of the observed mass, what is seen, what may be there."""

    target: np.ndarray
    seen: np.ndarray
    reference: np.ndarray
    supported: np.ndarray
    mass: np.ndarray
    elements: np.ndarray
    lead: tuple

    @classmethod
    def from_user(cls, measures, poset, matched, observed, reference):
        given = _of_poset(np.asarray(measures, np.float64), poset, "measures")
        observed = ~np.isnan(given) if observed is None else np.asarray(observed, bool)
        reference = np.ones(poset.shape) if reference is None else reference
        arrays = (
            given,
            _of_poset(observed, poset, "observed"),
            _of_poset(np.asarray(reference, np.float64), poset, "reference"),
        )
        k = len(poset.shape)
        lead = np.broadcast_shapes(*(a.shape[: a.ndim - k] for a in arrays))
        given, seen, reference = (
            np.broadcast_to(a, lead + poset.shape).reshape(-1, poset.n_elements)
            for a in arrays
        )
        cells = np.where(seen, given, 0.0)
        _check(cells, "an observed cell of measures")
        _check(reference, "a cell of reference")
        supported = reference > 0
        _refuse(
            (cells > 0) & ~supported,
            "holds mass where the reference is 0, a structural zero. Give it a "
            "positive reference, or call it missing.",
        )
        mass = row_sums(cells)
        empty = np.flatnonzero(~((mass > 0) & np.isfinite(mass)))
        if len(empty):
            some = (seen & supported)[empty[0]].any()
            why = "observed cells that are all 0" if some else "no observed cell"
            raise ValueError(
                f"Row {empty[0]} has {why if mass[empty[0]] == 0 else 'no finite sum'}:"
                " there is nothing to fit. Leave it out."
            )
        target = cells / mass[:, None]
        elements = _elements(poset, matched)
        seen = seen & supported
        return cls(target, seen, reference, supported, mass, elements, lead)

    def rows(self, some):
        return self._replace(**{
            name: getattr(self, name)[some]
            for name in ("target", "seen", "reference", "supported", "mass")
        })  # fmt: skip

    def without_empty_margins(self, poset, family):
        """The limit of the likelihood: what is above an empty sum is empty."""
        empty = np.zeros(self.seen.shape, bool)
        if family is None:
            columns = poset.columns(self.elements)
            has, sums = (columns.analysis(1.0 * x) for x in (self.seen, self.target))
            empty = columns.synthesis(1.0 * ((has > 0) & (sums == 0))) > 0
        else:
            tensors = (-1, *poset.shape)
            seen, target = (
                (1.0 * x).reshape(tensors) for x in (self.seen, self.target)
            )
            sets = maximal_mode_sets(
                close_downward(family, len(poset.shape)), len(poset.shape), np.inf
            )
            for modes in sets:
                has, sums = marginal_of(seen, modes), marginal_of(target, modes)
                empty |= ((has > 0) & (sums == 0) & np.ones(tensors[1:], bool)).reshape(
                    empty.shape
                )
        return self._replace(seen=self.seen & ~empty, supported=self.supported & ~empty)


class _Design:
    """The functions of a model, orthonormal, and how the ridge weighs each."""

    def __init__(self, poset, elements, smooth):
        matched = np.zeros(poset.n_elements, bool)
        matched[elements] = True
        self.family = poset.family(matched.reshape(poset.shape))
        self.n_cells, self.n_functions = poset.n_elements, len(elements)
        smooth = modes_of(poset, smooth)
        if self.family is None:
            if smooth:
                raise ValueError(
                    "smooth names modes of a tensor; the free elements are no family "
                    "of interactions of one. Leave smooth out."
                )
            self.basis = ZetaBasis(poset, elements)
            self.weights = np.full(self.n_functions, float(self.n_functions))
        else:
            functions = _OrderedBasis(poset.shape, self.family, smooth)
            self.basis, self.weights = ScaledBasis(functions), functions.weights

    def seen_by(self, pattern):
        """Functions that observed cells (D,) tell apart, and the cells they determine.

        Orthonormal on the observed cells: Hessians are near the identity.
        """
        m = self.n_functions
        if m > _MOST_FUNCTIONS or m * self.n_cells > _LARGEST_MATRIX:
            raise ValueError(
                f"Which cells can be estimated was not found out: {m} free elements on "
                f"{self.n_cells} cells are too many. Use a ridge, or a smaller order."
            )
        functions = self.basis.functions
        if not pattern.any():
            return _Functions(functions[:0]), pattern
        functions = functions - functions[:, pattern].mean(axis=1, keepdims=True)
        some = functions[:, pattern]
        held, directions = np.linalg.eigh(some @ some.T / pattern.sum())
        is_seen = held > _UNSEEN
        sizes = np.einsum("ij,ij->j", functions, functions)
        lost = ((directions[:, ~is_seen].T @ functions) ** 2).sum(axis=0)
        whitened = directions[:, is_seen] / np.sqrt(held[is_seen])
        return _Functions(whitened.T @ functions), (lost <= _DEPENDS * sizes) | pattern


class _Functions(Basis):
    """Functions on the cells as rows of a matrix."""

    def __init__(self, functions):
        self.functions = functions

    def synthesis(self, v):
        return v @ self.functions

    def analysis(self, x):
        return x @ self.functions.T


class _OrderedBasis(InteractionBasis):
    """Cosines for modes with levels in order, and the weight of each function.

    The differences of a cosine of frequency j have a mean square of
    ``2 - 2 cos(pi j / n)``, and those of different ones are orthogonal: a ridge on
    differences is diagonal. The inverses of the weights sum to 1 over an interaction.
    """

    def __init__(self, shape, family, smooth):
        super().__init__(shape, family)
        self._smooth = smooth
        weights = np.ones(1)
        for k, length in enumerate(shape):
            own = np.ones(length)
            if k in smooth:
                own[1:] = 2 - 2 * np.cos(np.pi * np.arange(1, length) / length)
            own[1:] *= (1 / own[1:]).sum()
            weights = np.multiply.outer(weights, own).reshape(-1)
        self.weights = weights[self.cells]

    @property
    def matrices(self):
        """An orthogonal matrix a mode, the first row of each a constant."""
        found = super().matrices
        for k in self._smooth:
            found[k] = dct(np.eye(self.shape[k]), axis=0, norm="ortho")
        return found


class _RidgeTilt(ExponentialTilt):
    """A tilt with a ridge; variables scaled so that Hessians are near the identity.

    The point kept is ``q`` on the observed cells, and the variables.
    """

    def __init__(self, basis, penalty, start, target):
        super().__init__(basis, start, target, None)
        self._penalty, self._scale = penalty, 1 / np.sqrt(1 + penalty)
        self._n_cells = start.shape[1]
        self.longest = lambda step: basis.longest(step * self._scale)
        self.hessian_product = self._scaled_product

    def energy(self, x):
        """Log effects (n, D) of variables, at all cells."""
        return np.array(self._basis.synthesis(x * self._scale))

    def value(self, x, rows):
        value, q = super().value(x * self._scale, rows)
        value += 0.5 * ((x * self._scale) ** 2 @ self._penalty)
        return value, np.hstack([q, x])

    def gradient(self, point, rows):
        slope = self._slope(point, rows)
        residual = 0.5 * np.sqrt(np.einsum("ij,ij->i", slope, slope))
        return slope * self._scale, residual

    def _slope(self, point, rows=slice(None)):
        """The gradient in the orthonormal functions."""
        q, x = point[:, : self._n_cells], point[:, self._n_cells :]
        difference = self._basis.analysis(q - self._target[rows])
        return difference + x * (self._scale * self._penalty)

    def hessian(self, point, rows):
        hessian = self._basis.covariances(point[:, : self._n_cells])
        hessian *= self._scale[:, None] * self._scale
        m = len(self._scale)
        hessian[:, np.arange(m), np.arange(m)] += self._penalty * self._scale**2
        return hessian

    def _scaled_product(self, point, v):
        scale, penalty = (
            a.astype(v.dtype)[:, None] for a in (self._scale, self._penalty)
        )
        u = scale * v
        found = self._basis.hessian_product(point[: self._n_cells], u)
        return scale * (found + penalty * u)

    def gap(self, point):
        """Primal less dual value; see :class:`Completion`."""
        slope = self._slope(point)
        if self._penalty.any():
            return 0.5 * slope**2 @ (1 / self._penalty)
        x = point[:, self._n_cells :] * self._scale
        return np.abs(np.einsum("ij,ij->i", x, slope))


def _fitted_with_ridge(problem, design, ridge, settings):
    """Measures (n, D), residuals, gaps and steps of all rows, some at a time."""
    step = max(1, BLOCK_CELLS // design.n_cells)
    dense, penalty = design.n_functions <= _DENSE_UP_TO, ridge * design.weights
    if not len(problem.mass):
        return problem.target, problem.mass, problem.mass, problem.mass.astype(int)
    parts = [
        _fit(
            problem.rows(slice(first, first + step)),
            design.basis,
            penalty,
            newton_dense if dense else newton_cg,
            settings,
        )
        for first in range(0, len(problem.mass), step)
    ]
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def _fitted(problem, design, settings):
    """Without a ridge; then the cells (n, D) that are estimable, and ranks (n,)."""
    n = len(problem.mass)
    measure, estimable = np.empty(problem.seen.shape), problem.seen.copy()
    residual, gap = np.empty(n), np.empty(n)
    n_iter, rank = np.empty(n, int), np.empty(n, int)
    for rows, pattern in _patterns(problem.seen):
        basis, known = design.seen_by(pattern)
        part, none = problem.rows(rows), np.zeros(len(basis.functions))
        found = _fit(part, basis, none, newton_dense, settings)
        measure[rows], residual[rows], gap[rows], n_iter[rows] = found
        estimable[rows] = known | ~part.supported
        rank[rows] = 1 + len(basis.functions)
    measure[~estimable] = np.nan
    return measure, residual, gap, n_iter, estimable, rank


def _fit(problem, basis, penalty, minimise, settings):
    """Measures (n, D), residuals, gaps and steps of some rows."""
    start = np.where(problem.seen, problem.reference, 0.0)
    start /= row_sums(start)[:, None]
    tilt = _RidgeTilt(basis, penalty, start, problem.target)
    found = minimise(tilt, np.zeros((len(start), len(penalty))), **settings)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        energy = tilt.energy(found.x)
        energy += np.log(problem.reference)
        top = np.where(problem.seen, energy, -np.inf).max(axis=1, keepdims=True)
        measure = np.exp(energy - top)
        held = np.where(problem.seen, measure, 0.0).sum(axis=1)
        measure *= (problem.mass / held)[:, None]
    measure[~problem.supported] = 0
    return measure, found.residual, tilt.gap(found.point), found.n_iter


def _patterns(seen):
    """Rows that see the same cells, and which."""
    if not len(seen):
        return iter(())
    patterns, of_row = np.unique(seen, axis=0, return_inverse=True)
    order = np.argsort(of_row.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(of_row.reshape(-1)))[:-1]
    return zip(np.split(order, ends), patterns, strict=True)


def _of_poset(array, poset, name):
    k = len(poset.shape)
    if array.shape[array.ndim - k :] != poset.shape or array.ndim < k:
        raise ValueError(
            f"{name} must have shape (..., {', '.join(map(str, poset.shape))}) for "
            f"{poset!r}; got {array.shape}."
        )
    return array


def _elements(poset, matched):
    """Flat indices of a set, without the bottom, which is always free."""
    matched = np.array(matched, bool)
    if matched.shape != poset.shape:
        raise ValueError(
            f"matched must be a mask of shape {poset.shape}; got shape {matched.shape}."
        )
    matched.reshape(-1)[poset.bottom] = False
    if not matched.any():
        raise ValueError("matched is empty: free at least one element.")
    return np.flatnonzero(matched)


def modes_of(poset, smooth):
    """Modes with levels in order, counted from the first, ascending."""
    d = len(poset.shape)
    for k in smooth:
        if not -d <= k < d:
            raise ValueError(f"smooth names mode {k}; the modes are 0 to {d - 1}.")
    return sorted({k % d for k in smooth})


def _check(cells, whom):
    bad = ~(np.isfinite(cells) & (cells >= 0))
    _refuse(bad, f"is negative or not finite, as {whom}.")


def _refuse(bad, why):
    if bad.any():
        row, cell = map(int, np.argwhere(bad)[0])
        raise ValueError(f"Cell {cell} of row {row} {why}")
