r"""Raking: tables with given margins, as near to given tables as can be.

.. math:: q = \arg\min_q KL(q, table) \quad\text{subject to the margins of } q

is a projection in mixed coordinates with the interactions within the mode sets as
matched set, for measures of any mass, with cells that may be empty, and with margins
in place of a target that has them.

The answer is ``table * exp(sum of one function a mode set)``. Sweeps that rescale
margin by margin find it (:mod:`.fitting`; Deming and Stephan 1940). Tables that sweeps
leave go on by Newton's method on the dual.
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

# Sweeps before Newton's method, and steps of it.
_SWEEPS = 50


class RakingError(ValueError):
    """Margins that raking did not attain; ``result`` is the :class:`Raking`.

    See Also
    --------
    rake_array : Tables with given margins.
    Raking : What raking found.
    """

    def __init__(self, message: str, result: Raking) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Raking:
    """Raked tables, with residuals and numbers of iterations.

    Attributes
    ----------
    tables : ndarray of shape (..., *shape)
        A table with a reason against it holds what was reached.
    residual : ndarray of shape (...,)
        ``max |margin - wanted|`` over all margins, as a share of the mass.
    n_iter : ndarray of int of shape (...,)
        Sweeps, and Newton steps after them.
    converged : ndarray of bool of shape (...,)
        ``residual <= tol``.
    reasons : dict of int to str
        Why a table did not converge, by its number (flat, if there are more leading
        axes than one).

    See Also
    --------
    rake_array : Tables with given margins.
    RakingError : Raised where margins are infeasible.
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
    r"""Compute tables with given margins, nearest to given tables.

    Solves ``min KL(q, table)`` over the ``q`` with the margins wanted, for any number
    of tables at once.

    Parameters
    ----------
    tables : array-like of shape (..., *shape)
        Not negative; their masses need not be 1. Cells that are 0 stay so.
    margins : dict of tuple of int to array-like of shape (..., *lengths)
        By mode set, such as ``(0, 2)``: the sums over all other modes, with axes in
        the order of the tuple. ``()`` is the mass. Broadcast against the tables.
    n_modes : int, default=None
        Modes of a table; all axes before them count tables. None takes the modes from
        0 to the last that ``margins`` names.
    tol : float, default=1e-9
        Wanted ``max |margin - wanted|``, as a share of the mass.
    max_iter : int, default=1000
        Most sweeps and Newton steps.
    strict : bool, default=True
        Whether a table that did not reach ``tol`` raises. Otherwise ``converged``
        and ``reasons`` of the result say it.

    Returns
    -------
    Raking

    Raises
    ------
    ValueError
        If shapes do not fit, or a table or margin is negative or not finite.
    RakingError
        A ``ValueError`` that carries the result, and names the cell of a margin that
        the table misses most. Margins that contradict each other, or ask for mass where
        all cells are 0, are not told from a ``max_iter`` that is too small.

    See Also
    --------
    Raking : What raking found.
    linear_projection : Rows to linear equations and ranges.
    complete : Missing cells by a log-linear model of the observed ones.

    Notes
    -----
    Margins hold to ``tol``. Tables are dense. There are no ranges of cells, no
    intervals of margins (:func:`linear_projection` has both) and no whole numbers.
    Unknown cells that the margins leave out (quasi-independence) are filled by
    :func:`complete`.

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
    # Tables and margins of about 1, whatever their units.
    unit = np.where(mass > 0, mass, 1.0)[:, None]
    top = rows.max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(top > 0, top, 1.0)
    # Margins whose modes are all in another one follow from it.
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
                f"{len(reasons)} of {result.converged.size} tables do not have the "
                f"margins; the first is table {row}: {reason} strict=False returns the "
                "others."
            )
        raise RakingError(reason, result)
    return result


def _reason(q, shape, margins, row, residual, tol, max_iter):
    """Why a table (1, D), the one of some number, has not its margins."""
    off, got = {}, {}
    for modes, margin in margins.items():
        got[modes] = flat_margin(q, shape, modes)[0]
        off[modes] = np.abs(got[modes] - margin[row])
    modes = max(off, key=lambda modes: off[modes].max(initial=0.0))
    cell = int(off[modes].argmax())
    at = tuple(map(int, np.unravel_index(cell, [shape[k] for k in modes])))
    return (
        f"Margin {modes} asks for {margins[modes][row, cell]:.10g} at {at} and gets "
        f"{got[modes][cell]:.10g}, missed by {residual:.1e} of the mass > tol={tol:g}. "
        "The margins disagree, or no table with these structural zeros has them, or "
        f"max_iter={max_iter} is too small."
    )


def _check_tables(tables, margins, n_modes):
    """Tables and margins, flat, by ascending modes; shape of a table, leading shape."""
    keys = mode_sets(margins)
    if not keys:
        raise ValueError("margins is empty; give at least one, by its modes.")
    advice = " sklearn_pnl.control.rake keeps the signs of a Series or frame."
    tables = non_negative(tables, "tables", advice)
    last = max(max(modes, default=-1) for modes in keys.values())
    d = last + 1 if n_modes is None else n_modes
    if not (0 < d and last < d <= tables.ndim):
        raise ValueError(
            f"margins name modes up to {last}, n_modes is {n_modes}; tables have "
            f"{tables.ndim} axes: they need an axis for every mode, and a mode. "
            f"n_modes={tables.ndim} makes modes of all axes."
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
                f"{tables.ndim - d} of {tables.ndim} axes count tables; "
                f"n_modes={tables.ndim} makes modes of all axes."
            )
        lead = np.broadcast_shapes(lead, margin.shape[:n_lead])
        order = (*range(n_lead), *(n_lead + np.argsort(modes, kind="stable")))
        if (ascending := tuple(sorted(modes))) in by_modes:
            raise ValueError(
                f"margins name the modes {ascending} twice, also as {key}."
            )
        by_modes[ascending] = margin.transpose(order)
    by_modes = {m: _flat(margin, lead, len(m)) for m, margin in by_modes.items()}
    return _flat(tables, lead, d), by_modes, shape, lead


def _flat(array, lead, n_axes):
    """Broadcast the leading axes, and flatten them to one, the others to another."""
    shape = array.shape[array.ndim - n_axes :]
    return np.broadcast_to(array, lead + shape).reshape(prod(lead), prod(shape))


def _residual(q, shape, margins, unit):
    """``max |margin - wanted|`` over all margins, as a share of the mass."""
    off = [
        largest((flat_margin(q, shape, modes) - margin) / unit)
        for modes, margin in margins.items()
    ]
    return np.max(off, axis=0)


def _nearest(q, shape, wanted, tol, max_iter):
    """Sweeps, and Newton's method for tables that they leave."""
    # Dense Hessians of more cells of margins cost more than sweeps.
    n_margins = sum(margin.shape[1] for margin in wanted.values())
    sweeps = min(max_iter, _SWEEPS) if n_margins <= 1024 else max_iter
    # The residual is measured again at the end, where it is rounded differently.
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
    """The projection on the margins as linear equations, and steps of each table."""
    indicators, sums = margin_rows(shape, list(wanted)), np.hstack([*wanted.values()])
    # Small matrices are faster as dense ones.
    if prod(indicators.shape) <= 2**18:
        indicators = indicators.toarray()
    steps = min(max_iter, _SWEEPS)
    # Empty cells stay empty; up to rounding no cell exceeds the mass of its table.
    projection = linear_projection(
        np.where(start > 0, start, 1.0),
        indicators,
        sums,
        sums,
        ceiling=np.where(start > 0, 2.0, 0.0),
        tol=tol,
        max_iter=steps,
    )
    # Final sweeps remove the error that the ridge of Newton's method leaves.
    q, n_iter = projection.measure, projection.n_iter
    q, more = fit_margins(q, shape, wanted, max_iter - steps, 0.9 * tol)
    return q, n_iter + more


def mode_sets(margins):
    """The modes of each key of ``margins``."""
    if isinstance(margins, Mapping):
        with suppress(TypeError):
            keys = {key: tuple(map(index, key)) for key in margins}
            if all(len(set(k)) == len(k) and min((0, *k)) == 0 for k in keys.values()):
                return keys
    given = list(margins) if isinstance(margins, Mapping) else type(margins).__name__
    raise ValueError(
        "margins must be a dict by modes, tuples of different ones, such as "
        f"{{(0,): row_sums, (1, 2): sums}}; got {given}."
    )
