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

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .coordinates import row_sums
from .counts import fillable_cells, nearly_empty
from .interactions import maximal_mode_sets
from .marginals import margin_rows
from .observed import Design, patterns_of
from .optimize import Report, newton_cg, newton_dense
from .posets import MatrixColumns, PosetProtocol, as_flags, flat_rows, non_negative
from .settling import settle_rows
from .solvers import BLOCK_CELLS, is_light, joined
from .tilts import ExponentialTilt

# Up to so many functions Newton is dense if there is a ridge.
_DENSE_UP_TO = 128
# Squares of functions times cells up to which light cells are settled: a second.
_SETTLED_UP_TO = 2**27


@dataclass(frozen=True, kw_only=True)
class Completion(Report):
    """Completed measures and what happened on the way.

    Attributes
    ----------
    measure : ndarray of shape (..., *poset.shape)
        The model at all cells, observed ones too; NaN where it is not estimable.
    estimable : ndarray of bool of shape (..., *poset.shape) or None
        Cells that the observed ones determine, those left out that the likelihood
        empties; None with a ridge, which gives every cell a value.
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
    maximum: in its limit some observed cells are 0, and missing cells that only these
    tell of, which may go to infinity, are not estimable. A ridge or an offset helps.

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
    some, lead = read_observed(measures, poset, observed, reference)
    design = Design(poset, matched, smooth)
    if not 0 <= ridge < np.inf:
        raise ValueError(f"ridge must not be negative, nor infinite; got {ridge}.")
    names = ["measure", "residual", "gap", "n_iter", "estimable", "rank"]
    settings = {"tol": tol, "max_iter": max_iter}
    if ridge > 0:
        found = fit_with_ridge(some, design, ridge, settings)
    else:
        found = fit_exactly(_without_empty_sums(some, design), design, settings)
        found[0][~found[4]] = np.nan
    # Of each row, or of each of its cells.
    shaped = (x.reshape(lead + (x.ndim - 1) * poset.shape) for x in found)
    known = {"estimable": None, "rank": None} | dict(zip(names, shaped, strict=False))
    return Completion(**known, tol=tol)


def read_observed(measures, poset, observed=None, reference=None):
    """Rows of what is given, checked, and the leading shape."""
    measures = np.asarray(measures, np.float64)
    observed = ~np.isnan(measures) if observed is None else observed
    observed = as_flags(observed, "observed")
    reference = np.ones(poset.shape) if reference is None else reference
    reference = np.asarray(reference, np.float64)
    (measures, seen, reference), lead = flat_rows(
        poset, measures=measures, observed=observed, reference=reference
    )
    cells = non_negative(np.where(seen, measures, 0.0), "measures")
    reference = non_negative(reference, "reference")
    bad = np.argwhere((cells > 0) & (reference == 0))
    if len(bad):
        row, cell = bad[0]
        raise ValueError(
            f"Cell {cell} of row {row} holds mass where the reference is 0, a "
            "structural zero. Give it a positive reference, or call it missing."
        )
    mass, seen = row_sums(cells), seen & (reference > 0)
    if not mass.all():
        row = int(np.argmin(mass))
        why = "observed cells that are all 0" if seen[row].any() else "no observed cell"
        raise ValueError(f"Row {row} has {why}: there is nothing to fit. Leave it out.")
    return ObservedCells(cells / mass[:, None], seen, reference, mass), lead


def _without_empty_sums(observed, design):
    """The limit of the likelihood: what is above an empty sum is empty."""
    poset = design.poset
    if design.family is None:
        sums = poset.columns(np.flatnonzero(design.matched))
    else:
        sets = maximal_mode_sets(design.family, range(len(poset.shape)))
        sums = MatrixColumns(margin_rows(poset.shape, sets).T)
    has, held = sums.analysis(1.0 * observed.seen), sums.analysis(observed.target)
    empty = sums.synthesis(1.0 * ((has > 0) & (held == 0))) > 0
    return observed._replace(
        seen=observed.seen & ~empty, reference=np.where(empty, 0.0, observed.reference)
    )


class ObservedCells(NamedTuple):
    """Rows (n, D): shares of the observed mass, where it is seen, what may be there."""

    target: np.ndarray
    seen: np.ndarray
    reference: np.ndarray
    mass: np.ndarray

    def rows(self, some):
        return ObservedCells(*(array[some] for array in self))


def fit_with_ridge(observed, design, ridge, settings):
    """Measures (n, D), residuals, gaps and steps of all rows, some at a time."""
    step = max(1, BLOCK_CELLS // observed.seen.shape[1])
    every = np.arange(len(observed.mass))
    minimise = newton_dense if design.n_functions <= _DENSE_UP_TO else newton_cg
    penalty = ridge * design.weights
    pieces = [
        (rows, _fit(observed.rows(rows), design.basis, penalty, minimise, settings))
        for rows in np.split(every, every[step::step])
    ]
    return joined(pieces)


def fit_exactly(observed, design, settings):
    """The same without a ridge; cells (n, D) that are estimable, and ranks (n,)."""
    pieces = []
    for rows, pattern in patterns_of(observed.seen):
        basis, known = design.seen_by(pattern)
        some, none = observed.rows(rows), np.zeros(len(basis.functions))
        found = _fit(some, basis, none, newton_dense, settings)
        if basis.functions.size * len(none) <= _SETTLED_UP_TO:
            _settle(*found[:2], some, design, basis, pattern, settings["tol"])
        estimable = known | (some.reference == 0)
        rank = np.full(len(rows), 1 + len(none))
        pieces.append((rows, (*found, estimable, rank)))
    return _without_unfilled(joined(pieces), observed, design, settings)


def _without_unfilled(found, observed, design, settings):
    """The limit of the likelihood where it has no maximum.

    Observed cells that no model with the sums of the data fills are 0 there, and tell
    nothing of the others: only what these determine is estimable.
    """
    light = nearly_empty(found[0] / observed.mass[:, None], settings["tol"])
    given = observed.seen, observed.target == 0, light
    seen = fillable_cells(design.poset, design.matched, *given)
    gone = observed.seen & ~seen
    rows = np.flatnonzero(gone.any(axis=1))
    if len(rows):
        rest = observed._replace(seen=seen).rows(rows)
        limit = fit_exactly(rest, design, settings)
        limit[0][gone[rows]], limit[4][gone[rows]] = 0.0, True
        for whole, part in zip(found, limit, strict=True):
            whole[rows] = part
    return found


def _settle(measure, residual, observed, design, basis, seen, tol):
    """Rows with light cells, all of which see the same, to rounding in every cell."""

    def residual_of(difference):
        return _half_lengths(basis.analysis(np.where(seen, difference, 0.0)))

    measure /= observed.mass[:, None]
    light = np.flatnonzero(is_light(measure[:, seen]) & (residual <= tol))
    given = observed.target, residual, light, residual_of, tol, seen
    settle_rows(design.indicators, measure, *given)
    measure *= observed.mass[:, None]


def _fit(observed, basis, penalty, minimise, settings):
    """Measures (n, D), residuals, gaps and steps of some rows."""
    start = np.where(observed.seen, observed.reference, 0.0)
    start /= row_sums(start)[:, None]
    tilt = RidgeTilt(basis, penalty, start, observed.target)
    found = minimise(tilt, np.zeros((len(start), len(penalty))), **settings)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        energy = tilt.energy(found.x) + np.log(observed.reference)
        top = np.where(observed.seen, energy, -np.inf).max(axis=1, keepdims=True)
        measure = np.exp(energy - top)
        held = np.where(observed.seen, measure, 0.0).sum(axis=1)
        measure *= (observed.mass / held)[:, None]
    measure[observed.reference == 0] = 0
    return measure, found.residual, tilt.gap(found.point), found.n_iter


class RidgeTilt(ExponentialTilt):
    """A tilt with a ridge; variables scaled so that Hessians are near the identity.

    The point kept is ``q`` on the observed cells, and the variables.
    """

    def __init__(self, basis, penalty, start, target):
        super().__init__(basis, None, start, target)
        self._penalty, self._scale = penalty, 1 / np.sqrt(1 + penalty)
        self._n_cells = start.shape[1]
        self.longest = self._longest
        self.hessian_product = self._scaled_product

    def energy(self, x):
        """Log effects (n, D) of variables, at all cells."""
        return self._basis.synthesis(x * self._scale)

    def value(self, x, rows):
        value, q = super().value(x * self._scale, rows)
        value += 0.5 * ((x * self._scale) ** 2 @ self._penalty)
        return value, np.hstack([q, x])

    def gradient(self, point, rows):
        slope = self._slope(point, rows)
        return slope * self._scale, _half_lengths(slope)

    def _longest(self, step, point):
        return self._basis.longest(step * self._scale, point[:, : self._n_cells])

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
        scale, penalty = (a.astype(v.dtype) for a in (self._scale, self._penalty))
        u = scale * v
        found = self._basis.hessian_product(point[:, : self._n_cells], u)
        return scale * (found + penalty * u)

    def gap(self, point):
        """Primal less dual value; see :class:`Completion`."""
        slope = self._slope(point)
        if self._penalty.any():
            return 0.5 * slope**2 @ (1 / self._penalty)
        x = point[:, self._n_cells :] * self._scale
        return np.abs(np.einsum("ij,ij->i", x, slope))


def _half_lengths(slopes):
    return 0.5 * np.linalg.norm(slopes, axis=1)
