r"""Raking: tables with given margins that are nearest to given tables.

The problem

.. math:: q = \arg\min_q KL(q, table) \quad\text{subject to the margins of } q

is a projection in mixed coordinates. The matched set contains the interactions within
the sets of modes. In contrast to ``many_body``, measures may have any mass, cells may
be empty, and the margins replace the target.

The solution is ``table`` times the exponential of a sum of functions, one per set of
modes. Sweeps rescale margin by margin (:mod:`.fitting`; Deming and Stephan 1940).
Tables that do not converge in the sweeps are solved by Newton's method for the dual.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from operator import index

import numpy as np
from numpy.typing import ArrayLike

from ..._utils.arrays import BLOCK_CELLS, largest, slices
from ..posets.elements import non_negative
from .affine import linear_projection
from .fitting import fit_margins
from .marginals import flat_margin, margin_rows

# Maximum number of sweeps before Newton's method, and of Newton steps.
_SWEEPS = 50


class RakingError(ValueError):
    """Error raised if raked tables do not have the requested margins.

    The attribute ``result`` contains the :class:`Raking`.

    See Also
    --------
    rake_array : Compute tables with given margins.
    Raking : Result of raking.
    """

    def __init__(self, message: str, result: Raking) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Raking:
    """Result of :func:`rake_array`: raked tables and their convergence.

    Attributes
    ----------
    tables : ndarray of shape (..., *shape)
        Raked tables. A table that did not converge contains the last iterate.
    residual : ndarray of shape (...,)
        ``max |margin - requested|`` over all margins, as a share of the mass.
    n_iter : ndarray of int of shape (...,)
        Number of sweeps and Newton steps.
    converged : ndarray of bool of shape (...,)
        ``residual <= tol``.
    reasons : dict of int to str
        For each table that did not converge, the explanation, by the flat index of the
        table.

    See Also
    --------
    rake_array : Compute tables with given margins.
    RakingError : Error raised if tables do not have the requested margins.
    """

    tables: np.ndarray
    residual: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    reasons: dict = field(default_factory=dict)


def rake_array(
    tables: ArrayLike,
    margins: Mapping[tuple[int, ...], ArrayLike],
    *,
    n_modes: int | None = None,
    tol: float = 1e-9,
    max_iter: int = 1000,
    strict: bool = True,
) -> Raking:
    r"""Compute tables with given margins that are nearest to given tables.

    Solves ``min KL(q, table)`` over the ``q`` with the requested margins, for any
    number of tables at once.

    Parameters
    ----------
    tables : array-like of shape (..., *shape)
        Non-negative tables of any mass. Cells that are 0 stay 0.
    margins : dict of tuple of int to array-like of shape (..., *lengths)
        Margins by sets of modes. The margin of ``(0, 2)`` contains the sums over all
        other modes, with axes in the order of the tuple. The margin of ``()`` is the
        mass. Margins are broadcast against the tables.
    n_modes : int, default=None
        Number of modes of a table; all axes before the modes count tables. None uses
        the largest mode in ``margins`` plus 1.
    tol : float, default=1e-9
        Tolerance of ``max |margin - requested|``, as a share of the mass.
    max_iter : int, default=1000
        Maximum number of sweeps and Newton steps.
    strict : bool, default=True
        Whether to raise a :class:`RakingError` if a table does not reach ``tol``. With
        False, ``converged`` and ``reasons`` of the result report the tables.

    Returns
    -------
    Raking
        Raked tables, residuals, and a reason for each table that did not converge.

    Raises
    ------
    ValueError
        If shapes do not fit, or if a table or margin is negative or not finite.
    RakingError
        If a table does not have its margins and ``strict=True``. The error is a
        ``ValueError`` with the attribute ``result``. The message names the marginal
        cell with the largest error. It cannot distinguish contradictory margins from a
        ``max_iter`` that is too small.

    See Also
    --------
    Raking : Result of raking.
    linear_projection : Project measures onto linear equations and inequalities.
    complete : Fill missing cells by a log-linear model of the observed cells.

    Notes
    -----
    Tables are dense, and raked cells are not rounded to integers. For bounds of cells
    and intervals of margins, use :func:`linear_projection`. If some cells are
    unknown and the given margins are sums over the known cells only
    (quasi-independence), use :func:`complete`.

    References
    ----------
    Deming and Stephan, "On a least squares adjustment of a sampled frequency table
    when the expected marginal totals are known", Annals of Mathematical Statistics,
    1940.

    Csiszar, "I-divergence geometry of probability distributions and minimization
    problems", Annals of Probability, 1975.

    Examples
    --------
    >>> from sklearn_pnl.geometry import rake_array
    >>> found = rake_array([[1, 2], [3, 0]], {(0,): [5, 5], (1,): [7, 3]})
    >>> found.tables.round(6)
    array([[2., 3.],
           [5., 0.]])
    """
    rows, margins, shape, lead = _check_tables(tables, margins, n_modes)
    mass = np.max([margin.sum(axis=1) for margin in margins.values()], axis=0)
    # Tables and margins are scaled to about 1, so that units do not matter.
    unit = np.where(mass > 0, mass, 1.0)[:, None]
    top = rows.max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(top > 0, top, 1.0)
    # A margin whose modes are all in another margin follows from the other margin.
    goals = {
        modes: margin / unit
        for modes, margin in margins.items()
        if not any(set(modes) < set(other) for other in margins)
    }
    q, n_iter = np.empty_like(rows), np.zeros(len(rows), int)
    step = max(1, BLOCK_CELLS // max(1, prod(shape)))
    for block in slices(len(rows), step):
        wanted = {modes: goal[block] for modes, goal in goals.items()}
        nearest, n_iter[block] = _nearest(scaled[block], shape, wanted, tol, max_iter)
        q[block] = nearest * unit[block]
    residual = _residual(q, shape, margins, unit)
    reasons = {
        row: _reason(q[[row]], shape, margins, row, residual[row], tol, max_iter)
        for row in np.flatnonzero(~(residual <= tol)).tolist()
    }
    of_tables = (x.reshape(lead) for x in (residual, n_iter, residual <= tol))
    result = Raking(q.reshape(*lead, *shape), *of_tables, reasons)
    if strict and reasons:
        row, reason = next(iter(result.reasons.items()))
        if result.converged.size > 1:
            reason = (
                f"{len(reasons)} of {result.converged.size} tables do not have their "
                f"margins; the first is table {row}: {reason} To get the remaining "
                "tables, use strict=False."
            )
        raise RakingError(reason, result)
    return result


def _reason(q, shape, margins, row, residual, tol, max_iter):
    """Explain why the table ``q`` (1, D) with index ``row`` lacks its margins."""
    off, got = {}, {}
    for modes, margin in margins.items():
        got[modes] = flat_margin(q, shape, modes)[0]
        off[modes] = np.abs(got[modes] - margin[row])
    modes = max(off, key=lambda modes: off[modes].max(initial=0.0))
    cell = int(off[modes].argmax())
    at = tuple(map(int, np.unravel_index(cell, [shape[k] for k in modes])))
    return (
        f"Margin {modes} must be {margins[modes][row, cell]:.10g} at {at}, but the "
        f"raked table has {got[modes][cell]:.10g} (relative residual {residual:.1e}, "
        f"tol={tol:g}). Check that the margins agree with each other, and that enough "
        f"cells of the table are positive. Otherwise increase max_iter={max_iter}."
    )


def _check_tables(tables, margins, n_modes):
    """Validate tables and margins, and flatten them.

    Returns rows, margins by ascending modes, the shape of a table, and the shape of the
    leading axes.
    """
    keys = mode_sets(margins)
    if not keys:
        raise ValueError("margins must contain at least one margin; got an empty dict.")
    advice = " For negative cells, use sklearn_pnl.control.rake of a Series or frame."
    tables = non_negative(tables, "tables", advice)
    last = max(max(modes, default=-1) for modes in keys.values())
    d = last + 1 if n_modes is None else n_modes
    if not (0 < d and last < d <= tables.ndim):
        raise ValueError(
            f"tables must have one axis per mode, and at least one mode; got "
            f"{tables.ndim} axes, margins of modes up to {last}, and "
            f"n_modes={n_modes}. Correct the modes, or use n_modes={tables.ndim} if "
            "all axes are modes."
        )
    lead, shape = tables.shape[: tables.ndim - d], tables.shape[tables.ndim - d :]
    by_modes = {}
    for key, modes in keys.items():
        margin = non_negative(margins[key], f"margin {key}")
        lengths, n_lead = tuple(shape[k] for k in modes), margin.ndim - len(modes)
        if n_lead < 0 or margin.shape[n_lead:] != lengths:
            raise ValueError(
                f"Margin {key} must have shape (..., {', '.join(map(str, lengths))}) "
                f"for tables of shape {shape}; got {margin.shape}. The first "
                f"{tables.ndim - d} of {tables.ndim} axes of tables count tables; use "
                f"n_modes={tables.ndim} if all axes are modes."
            )
        lead = np.broadcast_shapes(lead, margin.shape[:n_lead])
        order = (*range(n_lead), *(n_lead + np.argsort(modes, kind="stable")))
        if (ascending := tuple(sorted(modes))) in by_modes:
            raise ValueError(
                f"margins must contain each set of modes once; {key} is a second "
                f"margin of the modes {ascending}. Remove one of the two margins."
            )
        by_modes[ascending] = margin.transpose(order)
    by_modes = {m: _flat(margin, lead, len(m)) for m, margin in by_modes.items()}
    return _flat(tables, lead, d), by_modes, shape, lead


def _flat(array, lead, n_axes):
    """Broadcast the leading axes, and flatten the leading axes and the other axes."""
    shape = array.shape[array.ndim - n_axes :]
    return np.broadcast_to(array, lead + shape).reshape(prod(lead), prod(shape))


def _residual(q, shape, margins, unit):
    """Compute ``max |margin - requested|`` over all margins, as a share of the mass."""
    off = [
        largest((flat_margin(q, shape, modes) - margin) / unit)
        for modes, margin in margins.items()
    ]
    return np.max(off, axis=0)


def _nearest(q, shape, wanted, tol, max_iter):
    """Run sweeps, and Newton's method for tables that do not converge in the sweeps."""
    # For many marginal cells, dense Hessians cost more than sweeps.
    n_margins = sum(margin.shape[1] for margin in wanted.values())
    sweeps = min(max_iter, _SWEEPS) if n_margins <= 1024 else max_iter
    # The final residual is rounded differently, so the sweeps use a smaller tolerance.
    q, n_iter = fit_margins(q, shape, wanted, sweeps, 0.9 * tol)
    residual = _residual(q, shape, wanted, 1.0)
    left = np.flatnonzero(~(residual <= tol))
    if len(left) and max_iter > sweeps:
        part = {modes: margin[left] for modes, margin in wanted.items()}
        new, steps = _newton(q[left], shape, part, tol, max_iter - sweeps)
        n_iter[left] += steps
        better = _residual(new, shape, part, 1.0) < residual[left]
        q[left[better]] = new[better]
    return q, n_iter


def _newton(start, shape, wanted, tol, max_iter):
    """Project onto the margins as linear equations; return also the steps per table."""
    indicators, sums = margin_rows(shape, list(wanted)), np.hstack([*wanted.values()])
    # Products with a small matrix are faster if the matrix is dense.
    if prod(indicators.shape) <= 2**18:
        indicators = indicators.toarray()
    steps = min(max_iter, _SWEEPS)
    # A ceiling of 0 keeps cells empty. No cell exceeds the mass of a table, which is 1.
    projection = linear_projection(
        np.where(start > 0, start, 1.0),
        indicators,
        sums,
        sums,
        ceiling=np.where(start > 0, 2.0, 0.0),
        tol=tol,
        max_iter=steps,
    )
    # Final sweeps remove the error due to the ridge of Newton's method.
    q, n_iter = projection.measure, projection.n_iter
    q, more = fit_margins(q, shape, wanted, max_iter - steps, 0.9 * tol)
    return q, n_iter + more


def mode_sets(margins):
    """Return the modes of each key of ``margins``, as tuples of integers."""
    if isinstance(margins, Mapping):
        with suppress(TypeError):
            keys = {key: tuple(map(index, key)) for key in margins}
            if all(len(set(k)) == len(k) and min((0, *k)) == 0 for k in keys.values()):
                return keys
    given = list(margins) if isinstance(margins, Mapping) else type(margins).__name__
    raise ValueError(
        "margins must be a dict by modes, whose keys are tuples of distinct modes, for "
        f"example {{(0,): row_sums, (1, 2): sums}}; got {given}."
    )
