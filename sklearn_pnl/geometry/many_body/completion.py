r"""Completion: missing cells by a log-linear model fitted to the observed cells.

For observed cells O, a measure ``m`` and a reference ``r``, the model solves

.. math:: \min_v \; \sum_{x \in O} q(x) - m(x) \log q(x)
          + \frac{\text{ridge}}{2} \|v\|^2 , \qquad q = r \exp(v + \text{const})

over the functions ``v`` in the span of the zeta columns of a matched set M. Without a
ridge, the objective is the negative Poisson log-likelihood of the observed cells. For
each element of M, the sums of ``q`` and ``m`` over the observed cells above the element
are then equal (quasi-independence, if M has order 1). Cells with ``r = 0`` have
``q = 0`` (structural zeros). The problem is the convex problem of :mod:`.projections`
with a reference that is zero at the missing cells.

``|v|^2`` has one term per interaction: its number of functions times the mean square of
its contribution to ``log q``. Each interaction thus has the same prior variance,
however many functions it has, and interactions of high order stay small unless the data
support them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..._utils.arrays import joined, patterns_of, row_sums
from ..._utils.masked import check_plain
from ..convex.newton import Report, newton_cg, newton_dense
from ..posets.elements import as_flags, flat_rows, non_negative, numbers
from ..posets.protocol import PosetProtocol
from .observed import Design, unfillable_cells
from .tilts import RidgeTilt


@dataclass(frozen=True, kw_only=True)
class Completion(Report):
    """Result of :func:`complete`: completed measures and their convergence.

    Attributes
    ----------
    measure : ndarray of shape (..., *poset.shape)
        Values of the model at all cells, including observed cells. Cells that are not
        estimable are NaN.
    estimable : ndarray of bool of shape (..., *poset.shape) or None
        Cells that the observed cells determine. Observed cells that are 0 in the limit
        of the likelihood determine no other cell. None with a ridge, because a ridge
        determines every cell.
    rank : ndarray of int of shape (...,) or None
        Rank of the observed design with the constant, which is ``1 + |M|`` if all
        parameters are identified. None with a ridge.
    residual : ndarray of shape (...,)
        Half the norm of the gradient in orthonormal functions, as a share of the
        observed mass. Without a ridge, the error of every eta of the observed cells is
        at most this large.
    n_iter : ndarray of int of shape (...,)
        Number of Newton steps.
    tol : float
        The tolerance of the residual.
    converged : ndarray of bool of shape (...,)
        ``residual <= tol``.

    See Also
    --------
    complete : Fill missing cells by a log-linear model of the observed cells.
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
    r"""Fill missing cells by a log-linear model of the observed cells.

    The model is ``q = reference * exp(zeta theta)``, where theta is free on ``matched``
    and at the bottom. It minimises the sum of ``q - m log q`` over the observed cells,
    plus a ridge penalty. The penalty is ``ridge / 2`` times the observed mass times a
    sum with one term per interaction. The term is the number of functions of the
    interaction times the mean square of its contribution to ``log q``.

    Parameters
    ----------
    measures : array-like of shape (..., *poset.shape)
        Non-negative measures. Values at missing cells are ignored.
    poset : Poset or TensorPoset
        Poset of the cells.
    matched : array-like of bool of shape ``poset.shape``
        The set M of elements whose theta is free, for example ``order_mask(poset, 2)``.
        The bottom is always free.
    observed : array-like of bool of shape (..., *poset.shape), default=None
        Mask of the observed cells, broadcast against the measures. None means the cells
        that are not NaN.
    reference : array-like of shape (..., *poset.shape), default=None
        Non-negative reference. Cells with reference 0 stay 0 (structural zeros). None
        means 1 in all cells.
    ridge : float, default=0
        Weight of the penalty for an observed mass of 1. A larger ridge shrinks the
        interactions. With 0, cells that the observed cells do not determine are NaN.
    ordered_modes : sequence of int, default=()
        Modes of a tensor whose levels are ordered. The ridge then penalises the
        differences between neighbouring levels, as for a random-walk prior with the
        variance that the levels of other modes have. Has no effect without a ridge.
    tol : float, default=1e-9
        Tolerance of the residual, as a share of the observed mass.
    max_iter : int, default=100
        Maximum number of Newton steps.

    Returns
    -------
    Completion
        Completed measures, the mask of the estimable cells, and the residuals.

    Raises
    ------
    ValueError
        If shapes do not fit, if an observed cell is negative or not finite, if a cell
        with reference 0 has mass, or if a row has no observed mass.

    See Also
    --------
    mixed_projection : Compute a distribution with given mixed coordinates.
    rake_array : Compute tables with given margins.

    Notes
    -----
    Without a ridge, the likelihood may have no maximum, for example if all observed
    cells of a margin are 0. In the limit, some observed cells are 0. Missing cells that
    only these cells determine can diverge or vanish, and are not estimable. A ridge or
    a positive offset makes these cells estimable.

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
        raise ValueError(f"ridge must be finite and non-negative; got {ridge!r}.")
    settings = {"tol": tol, "max_iter": max_iter}
    if ridge > 0:
        # As for projections, dense Hessians are faster for up to 128 functions.
        minimise = newton_dense if design.n_functions <= 128 else newton_cg
        fitted = _fit(cells, design.basis, ridge * design.weights, minimise, settings)
        fitted = (*fitted, None, None)
    else:
        fitted = fit_exactly(cells, design, settings)
        fitted[0][~fitted[3]] = np.nan
    with np.errstate(over="ignore"):
        fitted = (np.exp(fitted[0]), *fitted[1:])
    # Each array has one value per row, or one value per cell.
    shaped = (
        None if x is None else x.reshape(lead + (x.ndim - 1) * poset.shape)
        for x in fitted
    )
    names = "measure", "residual", "n_iter", "estimable", "rank"
    return Completion(**dict(zip(names, shaped, strict=True)), tol=tol)


def read_observed(measures, poset, observed=None, reference=None):
    """Validate measures and reference; return rows (n, D) and the leading shape."""
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
            f"reference must be positive at cells with mass; cell {cell} of row {row} "
            f"has mass {cells[row, cell]:g} and reference 0. Use a positive reference, "
            "or mark the cell as missing."
        )
    mass, seen = row_sums(cells), seen & (reference > 0)
    if not mass.all():
        row = int(np.argmin(mass))
        why = "observed cells that are all 0" if seen[row].any() else "no observed cell"
        raise ValueError(
            f"measures must have observed mass in each row; row {row} has {why}. "
            "Remove the row."
        )
    return ObservedCells(cells / mass[:, None], seen, reference, mass), lead


class ObservedCells(NamedTuple):
    """Rows (n, D): shares of the observed mass, masks of observed cells, references.

    ``mass`` (n,) is the observed mass of each row.
    """

    target: np.ndarray
    seen: np.ndarray
    reference: np.ndarray
    mass: np.ndarray

    def rows(self, rows):
        return ObservedCells(*(array[rows] for array in self))


def fit_exactly(observed, design, settings):
    """Fit without a ridge; return also the estimable cells and the ranks (n,).

    The first result is the log of the fitted measure.
    """
    pieces = []
    for indices, pattern in patterns_of(observed.seen):
        basis, determined = design.seen_by(pattern)
        cells, none = observed.rows(indices), np.zeros(len(basis.functions))
        fitted = _fit(cells, basis, none, newton_dense, settings)
        estimable = determined | (cells.reference == 0)
        rank = np.full(len(indices), 1 + len(none))
        pieces.append((indices, (*fitted, estimable, rank)))
    return _without_unfilled(joined(pieces), observed, design, settings)


def _without_unfilled(fitted, observed, design, settings):
    """Replace fits whose likelihood has no maximum by the limit of the likelihood.

    Observed cells that are 0 in every distribution with the sums of the data are 0 in
    the limit. The estimable cells are the cells that the other observed cells
    determine.
    """
    masks = design.matched, observed.seen, observed.target == 0
    q = np.exp(fitted[0] - np.log(observed.mass)[:, None])
    unfillable = unfillable_cells(design.poset, *masks, q, settings["tol"])
    indices = np.flatnonzero(unfillable.any(axis=1))
    if len(indices):
        rest = observed._replace(seen=observed.seen & ~unfillable).rows(indices)
        limit = fit_exactly(rest, design, settings)
        limit[0][unfillable[indices]], limit[3][unfillable[indices]] = -np.inf, True
        for old, new in zip(fitted, limit, strict=True):
            old[indices] = new
    return fitted


def _fit(observed, basis, penalty, minimise, settings):
    """Fit rows; return logs of measures (n, D), residuals and numbers of steps."""
    start = np.where(observed.seen, observed.reference, 0.0)
    with np.errstate(divide="ignore"):
        log_start = np.log(start / row_sums(start)[:, None])
    tilt = RidgeTilt(basis, penalty, log_start, observed.target)
    solution = minimise(tilt, tilt.zeros, **settings)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = basis.synthesis(solution.x * tilt.scale) + np.log(observed.reference)
        logs -= np.where(observed.seen, logs, -np.inf).max(axis=1, keepdims=True)
        mass = np.where(observed.seen, np.exp(logs), 0.0).sum(axis=1)
        logs += np.log(observed.mass / mass)[:, None]
    logs[observed.reference == 0] = -np.inf
    return logs, solution.residual, solution.n_iter
