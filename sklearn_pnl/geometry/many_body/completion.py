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

from ..._utils.arrays import joined, patterns_of, row_sums
from ..._utils.masked import check_plain
from ..convex.optimize import Report, newton_cg, newton_dense
from ..posets.elements import as_flags, flat_rows, non_negative, numbers
from ..posets.protocol import PosetProtocol
from .observed import Design, unfillable_cells
from .tilts import RidgeTilt


@dataclass(frozen=True, kw_only=True)
class Completion(Report):
    """Completed measures, with residuals and numbers of iterations.

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
    n_iter : ndarray of int of shape (...,)
        Newton steps.
    tol : float
    converged : ndarray of bool of shape (...,)
        ``residual <= tol``.

    See Also
    --------
    complete : Missing cells by a log-linear model of the observed ones.
    """

    measure: np.ndarray
    estimable: np.ndarray | None
    rank: np.ndarray | None


def complete(
    measures: ArrayLike,
    poset: PosetProtocol,
    matched: ArrayLike,
    *,
    observed: ArrayLike | None = None,
    reference: ArrayLike | None = None,
    ridge: float = 0.0,
    ordered_modes: Sequence[int] = (),
    tol: float = 1e-9,
    max_iter: int = 100,
) -> Completion:
    r"""Fill missing cells by a log-linear model of the observed ones.

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
    ordered_modes : sequence of int, default=()
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
    mixed_projection : The problem that all projections are.
    rake_array : Tables with given margins.

    Notes
    -----
    Without a ridge, zeros may leave a likelihood without a maximum, as where all
    observed cells of a margin are 0: in its limit some observed cells are 0, and
    missing cells that only these determine, which may go to infinity or to 0, are not
    estimable. A ridge or an offset helps.

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
    for name, given in (("observed", observed), ("reference", reference)):
        check_plain(given, name)
    cells, lead = read_observed(measures, poset, observed, reference)
    design = Design(poset, matched, ordered_modes)
    if not 0 <= ridge < np.inf:
        raise ValueError(f"ridge must be a finite number, 0 or more; got {ridge!r}.")
    settings = {"tol": tol, "max_iter": max_iter}
    if ridge > 0:
        # As for projections, up to 128 functions are worth Hessians.
        minimise = newton_dense if design.n_functions <= 128 else newton_cg
        fitted = _fit(cells, design.basis, ridge * design.weights, minimise, settings)
        fitted = (*fitted, None, None)
    else:
        fitted = fit_exactly(cells, design, settings)
        fitted[0][~fitted[3]] = np.nan
    # Arrays have one value for each row or for each cell.
    shaped = (
        None if x is None else x.reshape(lead + (x.ndim - 1) * poset.shape)
        for x in fitted
    )
    names = "measure", "residual", "n_iter", "estimable", "rank"
    return Completion(**dict(zip(names, shaped, strict=True)), tol=tol)


def read_observed(measures, poset, observed=None, reference=None):
    """Validate measures and reference; rows (n, D), and the leading shape."""
    measures = numbers(measures, "measures")
    observed = ~np.isnan(measures) if observed is None else observed
    observed = as_flags(observed, "observed")
    reference = np.asarray(np.ones(poset.shape) if reference is None else reference)
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


class ObservedCells(NamedTuple):
    """Rows (n, D): shares of the observed mass, mask of observed cells, reference."""

    target: np.ndarray
    seen: np.ndarray
    reference: np.ndarray
    mass: np.ndarray

    def rows(self, rows):
        return ObservedCells(*(array[rows] for array in self))


def fit_exactly(observed, design, settings):
    """What :func:`_fit` gives without a ridge; also estimable cells, and ranks (n,)."""
    pieces = []
    for rows, pattern in patterns_of(observed.seen):
        basis, determined = design.seen_by(pattern)
        cells, none = observed.rows(rows), np.zeros(len(basis.functions))
        fitted = _fit(cells, basis, none, newton_dense, settings)
        estimable = determined | (cells.reference == 0)
        rank = np.full(len(rows), 1 + len(none))
        pieces.append((rows, (*fitted, estimable, rank)))
    return _without_unfilled(joined(pieces), observed, design, settings)


def _without_unfilled(fitted, observed, design, settings):
    """The limit of the likelihood where it has no maximum.

    Observed cells that no model with the sums of the data fills are 0 in the limit.
    Estimable are the cells that the other observed cells determine.
    """
    masks = design.matched, observed.seen, observed.target == 0
    q = fitted[0] / observed.mass[:, None]
    unfillable = unfillable_cells(design.poset, *masks, q, settings["tol"])
    rows = np.flatnonzero(unfillable.any(axis=1))
    if len(rows):
        rest = observed._replace(seen=observed.seen & ~unfillable).rows(rows)
        limit = fit_exactly(rest, design, settings)
        limit[0][unfillable[rows]], limit[3][unfillable[rows]] = 0.0, True
        for whole, part in zip(fitted, limit, strict=True):
            whole[rows] = part
    return fitted


def _fit(observed, basis, penalty, minimise, settings):
    """Measures (n, D), residuals and steps of some rows."""
    start = np.where(observed.seen, observed.reference, 0.0)
    start /= row_sums(start)[:, None]
    tilt = RidgeTilt(basis, penalty, start, observed.target)
    solution = minimise(tilt, tilt.zeros, **settings)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        energy = basis.synthesis(solution.x * tilt.scale)
        energy += np.log(observed.reference)
        top = np.where(observed.seen, energy, -np.inf).max(axis=1, keepdims=True)
        measure = np.exp(energy - top)
        observed_mass = np.where(observed.seen, measure, 0.0).sum(axis=1)
        measure *= (observed.mass / observed_mass)[:, None]
    measure[observed.reference == 0] = 0
    return measure, solution.residual, solution.n_iter
