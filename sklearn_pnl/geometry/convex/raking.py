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
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from operator import index

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import BLOCK_CELLS, slices
from ..posets.elements import non_negative
from .affine import linear_projection
from .fitting import MatrixTable, TensorTable, fit_margins, shares
from .marginals import kept_axes, margin_rows, marginal_of

# Sweeps before Newton's method, and steps of it.
_SWEEPS = 50
# Newton's method has dense matrices, and is used for up to this many cells of margins;
# entries of the largest dense matrix of their indicators.
_DENSE_UP_TO, _DENSE_ENTRIES = 1024, 2**18
# The residual is measured again at the end, where it is rounded differently.
_SAFE = 0.9
# Largest power of two by which tables are scaled.
_EXPONENT = 1000


class RakingError(ValueError):
    """Margins that raking did not attain; ``result`` is the :class:`Raking`.

    See Also
    --------
    rake : Tables with given margins.
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
    rake : Tables with given margins.
    RakingError : Raised where margins are infeasible.
    """

    tables: np.ndarray
    residual: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    reasons: dict = field(default_factory=dict)


def rake(
    tables: ArrayLike,
    margins: Mapping[tuple[int, ...], ArrayLike],
    *,
    n_modes: int | None = None,
    tol: float = 1e-9,
    max_iter: int = 1000,
    strict: bool = True,
) -> Raking:
    r"""Tables with given margins, nearest to given tables.

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
        A ``ValueError`` that carries the result. If margins contradict each other: it
        names the two mode sets, the level of the modes they share, and both sums. If
        they ask for mass where a table has none: it names the cell of the margin. If
        the sweeps and steps ended before ``tol``: either ``max_iter`` was too small,
        or no table with these zeros has the margins.

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
    >>> from sklearn_pnl.geometry import rake
    >>> found = rake([[1, 2], [3, 0]], {(0,): [5, 5], (1,): [7, 3]})
    >>> found.tables.round(6)
    array([[2., 3.],
           [5., 0.]])
    >>> rake([[1, 2], [3, 4]], {(0,): [5, 5], (1,): [7, 4]}, strict=False).reasons
    {0: 'The margins (0,) and (1,) have different totals: 10 and 11.'}
    """
    problem = _Problem.from_user(tables, margins, n_modes)
    blocks, reasons = [], {}
    step = max(1, BLOCK_CELLS // max(1, prod(problem.shape)))
    for rows in slices(len(problem.tables), step) or [slice(0)]:
        *raked, hopeless = _rake_block(problem.rows(rows), tol, max_iter)
        blocks.append(raked)
        reasons |= {rows.start + row: reason for row, reason in hopeless.items()}
    q, residual, n_iter = (
        parts[0] if len(parts) == 1 else np.concatenate(parts)
        for parts in zip(*blocks, strict=True)
    )
    for row in np.setdiff1d(np.flatnonzero(~(residual <= tol)), list(reasons)):
        reasons[int(row)] = (
            f"It did not reach tol={tol:g} in max_iter={max_iter}: max|margin - "
            f"wanted| is {residual[row]:.1e} of the mass. Increase max_iter or tol; or "
            "no table with these structural zeros has these margins."
        )
    lead = problem.lead
    result = Raking(
        q.reshape(*lead, *problem.shape),
        residual.reshape(lead),
        n_iter.reshape(lead),
        (residual <= tol).reshape(lead),
        dict(sorted(reasons.items())),
    )
    if strict and reasons:
        raise RakingError(_summary(result), result)
    return result


def _summary(result):
    row, reason = next(iter(result.reasons.items()))
    if result.converged.size == 1:
        return reason
    return (
        f"{len(result.reasons)} of {result.converged.size} tables do not have the "
        f"margins; the first is table {row}: {reason} strict=False returns the others."
    )


@dataclass(frozen=True)
class _Problem:
    """Tables (n, *shape) and, by sorted mode set, margins with all axes kept.

    ``wanted`` holds the sets that lie in no other; ``margins`` all of them.
    """

    tables: np.ndarray
    margins: dict
    mass: np.ndarray
    lead: tuple

    @classmethod
    def from_user(cls, tables, margins, n_modes):
        if not margins:
            raise ValueError("margins is empty; give at least one, by its modes.")
        tables = non_negative(tables, "tables")
        keys = mode_sets(margins)
        last = max((max(modes, default=-1) for modes in keys.values()), default=-1)
        d = last + 1 if n_modes is None else n_modes
        if not (0 < d and last < d <= tables.ndim):
            raise ValueError(
                f"margins name modes up to {last}, n_modes is {n_modes}; tables have "
                f"{tables.ndim} axes: they need an axis for every mode, and a mode. "
                f"n_modes={tables.ndim} makes modes of all axes."
            )
        shape = tables.shape[tables.ndim - d :]
        hint = (
            f" The first {tables.ndim - d} of {tables.ndim} axes count tables; "
            f"n_modes={tables.ndim} makes modes of all axes."
        )
        by_modes, lead = {}, tables.shape[: tables.ndim - d]
        for modes, modes_given in keys.items():
            margin = _as_margin(margins[modes], modes_given, shape, hint)
            margin_lead = margin.shape[: margin.ndim - d]
            try:
                lead = np.broadcast_shapes(lead, margin_lead)
            except ValueError:
                raise ValueError(
                    f"Margin {modes} is of {margin_lead} tables, and there are {lead}."
                    f"{hint}"
                ) from None
            key = tuple(sorted(modes_given))
            if key in by_modes:
                raise ValueError(
                    f"margins name the modes {key} twice, the second time as {modes}."
                )
            by_modes[key] = margin
        by_modes = {
            modes: _spread(margin, lead, d) for modes, margin in by_modes.items()
        }
        totals = [_flat(margin).sum(axis=1) for margin in by_modes.values()]
        return cls(_spread(tables, lead, d), by_modes, np.max(totals, axis=0), lead)

    @property
    def shape(self):
        return self.tables.shape[1:]

    @property
    def wanted(self):
        """Margins whose modes are not all in another one."""
        sets = list(map(frozenset, self.margins))
        return {
            modes: margin
            for modes, margin in self.margins.items()
            if not any(frozenset(modes) < other for other in sets)
        }

    @property
    def equations(self):
        """Equations of the wanted margins: indicators (m, D), and right-hand sides."""
        margins = self.wanted
        flat = [_flat(margin) for margin in margins.values()]
        return margin_rows(self.shape, list(margins)), np.hstack(flat)

    def rows(self, rows):
        margins = {modes: margin[rows] for modes, margin in self.margins.items()}
        return _Problem(self.tables[rows], margins, self.mass[rows], self.lead)

    def in_units(self):
        """Scale tables and margins to about 1; the second value undoes it by row.

        By powers of two, so that nothing is rounded.
        """
        ones = [1] * len(self.shape)
        down, up = (
            (2.0 ** np.clip(-np.frexp(size)[1], -_EXPONENT, _EXPONENT)).reshape(
                -1, *ones
            )
            for size in (_flat(self.tables).max(axis=1, initial=0.0), self.mass)
        )
        margins = {modes: up * margin for modes, margin in self.margins.items()}
        mass = up.reshape(-1) * self.mass
        return _Problem(down * self.tables, margins, mass, self.lead), 1 / up

    def residual(self, q):
        """``max |margin - wanted|`` over all margins given, as a share of the mass."""
        return np.max(
            [
                shares(marginal_of(q, modes) - margin, self.mass)
                for modes, margin in self.margins.items()
            ],
            axis=0,
        )

    def contradictions(self, tol):
        """By row, two margins that disagree, or mass wanted where a table has none."""
        reasons = {}
        for first, second in combinations(self.margins, 2):
            shared = tuple(sorted(set(first) & set(second)))
            one, other = (marginal_of(self.margins[m], shared) for m in (first, second))
            off = np.flatnonzero(shares(one - other, self.mass) > tol)
            for row in set(off.tolist()) - reasons.keys():
                sums = one[row].reshape(-1), other[row].reshape(-1)
                text = _disagreement(first, second, shared, one.shape[1:], *sums)
                reasons[row] = text
        for modes, margin in self.margins.items():
            present = marginal_of(self.tables, modes)
            asked = np.where(present > 0, 0.0, margin)
            off = np.flatnonzero(shares(asked, self.mass) > tol)
            for row in set(off.tolist()) - reasons.keys():
                cell = np.unravel_index(asked[row].argmax(), asked[row].shape)
                reasons[row] = (
                    f"Margin {modes} asks for {asked[row].max():.10g} at "
                    f"{_levels(cell, modes)}, where all cells of the table are 0."
                )
        return reasons


def _rake_block(problem, tol, max_iter):
    """Raked tables, residuals, iterations, and reasons against some tables."""
    hopeless = problem.contradictions(tol)
    if not hopeless:
        return *_nearest(problem, tol, max_iter), hopeless
    rows = np.setdiff1d(np.arange(len(problem.tables)), list(hopeless))
    q, n_iter = problem.tables.copy(), np.zeros(len(problem.tables), int)
    residual = problem.residual(q)
    q[rows], residual[rows], n_iter[rows] = _nearest(problem.rows(rows), tol, max_iter)
    return q, residual, n_iter, hopeless


def _nearest(problem, tol, max_iter):
    """Sweeps, and Newton's method for tables that they leave."""
    problem, unit = problem.in_units()
    wanted, table = problem.wanted, TensorTable(problem.tables.copy())
    if list(wanted) == [(0,), (1,)]:
        table = MatrixTable(_flat(problem.tables), problem.shape)
        wanted = {modes: _flat(margin) for modes, margin in wanted.items()}
    # With too many margin cells for dense matrices only sweeps are used.
    n_margins = sum(prod(margin.shape[1:]) for margin in wanted.values())
    sweeps = min(max_iter, _SWEEPS) if n_margins <= _DENSE_UP_TO else max_iter
    q, n_iter = fit_margins(table, wanted, sweeps, _SAFE * tol, problem.mass)
    residual = problem.residual(q)
    left = np.flatnonzero(~(residual <= tol))
    if len(left) and max_iter > sweeps:
        part = problem.rows(left)
        new, steps = _newton(part, q[left], tol, max_iter - sweeps)
        n_iter[left] += steps
        reached = part.residual(new)
        better = reached < residual[left]
        q[left[better]], residual[left[better]] = new[better], reached[better]
    return q * unit, residual, n_iter


def _newton(problem, start, tol, max_iter):
    """The projection on the margins as linear equations, and steps of each table."""
    start = _flat(start) / problem.mass[:, None]
    indicators, wanted = problem.equations
    wanted = wanted / problem.mass[:, None]
    if indicators.shape[0] * indicators.shape[1] <= _DENSE_ENTRIES:
        indicators = indicators.toarray()
    steps = min(max_iter, _SWEEPS)
    # Empty cells stay empty; up to rounding no cell exceeds the mass of its table.
    projection = linear_projection(
        np.where(start > 0, start, 1.0), indicators, wanted, wanted,
        ceiling=np.where(start > 0, 2.0, 0.0), tol=tol,
        max_iter=steps,
    )  # fmt: skip
    q = (projection.measure * problem.mass[:, None]).reshape(-1, *problem.shape)
    # Final sweeps remove the error that the ridge of Newton's method leaves.
    settings = max_iter - steps, _SAFE * tol, problem.mass
    q, n_iter = fit_margins(TensorTable(q), problem.wanted, *settings)
    return q, projection.n_iter + n_iter


def _spread(array, lead, n_axes):
    """Broadcast the leading axes, and flatten them to one; keep the last ``n_axes``."""
    shape = array.shape[array.ndim - n_axes :]
    return np.broadcast_to(array, lead + shape).reshape(prod(lead), *shape)


def _flat(array):
    return array.reshape(len(array), prod(array.shape[1:]))


def mode_sets(margins):
    """The modes of each key of ``margins``."""
    if not isinstance(margins, Mapping):
        raise ValueError(
            "margins must be a dict by modes, such as {(0,): row_sums}; got "
            f"{type(margins).__name__}."
        )
    return {modes: mode_set(modes) for modes in margins}


def mode_set(modes):
    """The modes of a key of ``margins``, or a ValueError that says what keys are."""
    try:
        checked = tuple(map(index, modes))
        if len(set(checked)) == len(checked) and min(checked, default=0) >= 0:
            return checked
    except TypeError:
        pass
    raise ValueError(
        "margins must have tuples of different modes as keys, such as (0,) or (0, 2); "
        f"got {modes!r}."
    )


def _as_margin(margin, modes, shape, hint):
    """Axes sorted by mode, with one of length 1 for every other mode."""
    margin = non_negative(margin, f"margin {modes}")
    lengths = tuple(shape[k] for k in modes)
    lead = margin.ndim - len(modes)
    if lead < 0 or margin.shape[lead:] != lengths:
        raise ValueError(
            f"Margin {modes} must have shape (..., {', '.join(map(str, lengths))}) for "
            f"tables of shape {shape}; got {margin.shape}.{hint}"
        )
    order = (*range(lead), *(lead + int(k) for k in np.argsort(modes)))
    return margin.transpose(order).reshape(
        *margin.shape[:lead], *kept_axes(modes, shape)
    )


def _disagreement(first, second, shared, shape, one, other):
    cell = int(np.argmax(np.abs(one - other)))
    sums = f"{one[cell]:.10g} and {other[cell]:.10g}."
    if not shared:
        return f"The margins {first} and {second} have different totals: {sums}"
    levels = _levels(np.unravel_index(cell, shape), shared)
    return (
        f"The margins {first} and {second} disagree on what they share: at {levels} "
        f"they sum to {sums}"
    )


def _levels(cell, modes):
    text = ", ".join(f"level {int(cell[k])} of mode {k}" for k in modes)
    return text or "the total"
