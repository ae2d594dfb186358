r"""Raking: tables with given margins, as near to given tables as can be.

.. math:: q = \arg\min_q KL(q, table) \quad\text{subject to the margins of } q

is the projection of :mod:`.projections` with the interactions within the mode sets as
matched set, for measures of any mass, with cells that may be empty, and with margins
in place of a target that has them. On a general poset, where eta takes the place of
margins, it is :func:`~.projections.mixed_projection`.

The answer is ``table * exp(sum of one function a mode set)``. Sweeps that rescale
margin by margin find it (iterative proportional fitting: Deming and Stephan 1940);
two margins that share no mode scale the rows and columns of a matrix, which is never
rescaled itself. Tables that sweeps leave go on by Newton's method on the dual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._runtime.workspace import slices
from .completion import complete
from .marginals import kept_axes, margin_rows, marginal_of
from .optimize import newton_cg, newton_dense
from .posets import TensorPoset, as_flags, non_negative
from .reach import unmet
from .rounding import nearest_whole

# Cells worked on at once, so that they stay in cache.
_BLOCK_CELLS = 2**17
# Sweeps before Newton's method, which pays where they are slow.
_SWEEPS = 50
# Up to this many margin cells, and products to form a Hessian, Newton is dense.
_DENSE_UP_TO, _DENSE_PRODUCTS = 128, 2**22
# Margins with a smaller share of the mass than this decide no step.
_NEGLIGIBLE = 1e-12
_SAFE = 0.9
# A table is taken to have the margins if it misses them by less.
_NEARLY = 1e-6
# Tables and margins beyond these powers of two are scaled, by at most the next ones;
# and factors of a sweep are no larger than this.
_SAFE_POWER, _EXPONENT, _LARGEST_FACTOR = 200, 1000, 1e300
# Rows that are done are dropped once they are this share.
_DONE = 0.1
# Whole numbers of tables, and what they are rounded up by, have 64 bits.
_MOST_WHOLE = 2**62


class RakingError(ValueError):
    """Margins that tables were not brought to; ``result`` is the :class:`Raking`.

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
    """Raked tables and what happened on the way.

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
    RakingError : Raised where margins cannot be met.
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
    observed: ArrayLike | None = None,
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
    observed : array-like of bool of shape (..., *shape), default=None
        Cells that the margins are sums of; None is all. The others get the factors of
        their levels all the same (quasi-independence), NaN where the observed cells do
        not determine these.
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
        they ask for mass where a table has none, or if no table with these zeros has
        them: it names the cell of the margin. If ``max_iter`` was too small.

    See Also
    --------
    round_to_margins : Whole numbers with the same margins.
    Raking : What raking found.
    linear_projection : Rows to linear equations and ranges.
    complete : Missing cells by a log-linear model of the observed ones.

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
    seen = None
    if observed is not None:
        whole, problem, seen = problem.observed_alone(observed)
    blocks, reasons = [], {}
    step = max(1, _BLOCK_CELLS // max(1, prod(problem.shape)))
    for rows in slices(len(problem.tables), step) or [slice(0)]:
        *found, hopeless = _rake_block(problem.rows(rows), tol, max_iter)
        blocks.append(found)
        reasons |= {rows.start + row: reason for row, reason in hopeless.items()}
    q, residual, n_iter = (
        parts[0] if len(parts) == 1 else np.concatenate(parts)
        for parts in zip(*blocks, strict=True)
    )
    for row in np.setdiff1d(np.flatnonzero(~(residual <= tol)), list(reasons)):
        reasons[int(row)] = problem.why_not(row, residual[row], tol, max_iter)
    if seen is not None:
        q = _extended(q, whole.tables, seen, list(problem.wanted))
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


def round_to_margins(
    tables: ArrayLike,
    margins: Mapping[tuple[int, ...], ArrayLike],
    *,
    n_modes: int | None = None,
    time_limit: float = 1.0,
) -> NDArray:
    """Round raked tables to whole numbers that keep their margins.

    Solves ``min sum (rounded - cell)^2`` over the tables of whole numbers next to each
    cell, with the margins wanted. Two margins always have a solution, which is found
    at once; more may have none, and the nearest may take long to find.

    Parameters
    ----------
    tables : array-like of shape (..., *shape)
        With the margins, as from :func:`rake`. What they miss of them by less than
        1e-6 of the mass is made up for first.
    margins : dict of tuple of int to array-like of shape (..., *lengths)
        As for :func:`rake`; whole numbers.
    n_modes : int, default=None
        As for :func:`rake`.
    time_limit : float, default=1
        Seconds that are spent on the nearest rounding of a table with three margins
        and more; then the nearest found is taken. As long again is spent on finding
        any.

    Returns
    -------
    ndarray of int64 of shape (..., *shape)

    Raises
    ------
    ValueError
        If a margin is no whole number, if no table of whole numbers next to the cells
        has the margins or ``time_limit`` was over before one was found, or if a table
        has more than 262,144 cells to round. It names the table.

    See Also
    --------
    rake : Tables with given margins.

    References
    ----------
    Cox, "A constructive procedure for unbiased controlled rounding", Journal of the
    American Statistical Association, 1987.

    Examples
    --------
    >>> from sklearn_pnl.geometry import rake, round_to_margins
    >>> margins = {(0,): [4, 4], (1,): [3, 5]}
    >>> table = rake([[1, 1], [1, 1]], margins).tables
    >>> table.round(6)
    array([[1.5, 2.5],
           [1.5, 2.5]])
    >>> rounded = round_to_margins(table, margins)
    >>> rounded.sum(axis=1), rounded.sum(axis=0)
    (array([4, 4]), array([3, 5]))
    """
    problem = _Problem.from_user(tables, margins, n_modes)
    for modes, margin in problem.given.items():
        if not np.all(margin == np.round(margin)):
            value = margin[margin != np.round(margin)][0]
            raise ValueError(
                f"Tables of whole numbers need margins of whole numbers; margin {modes}"
                f" holds {value:.10g}."
            )
    for row, reason in problem.contradictions(0.0).items():
        raise ValueError(f"Table {row}: {reason}")
    if problem.tables.max(initial=0) >= _MOST_WHOLE:
        raise ValueError(
            "Whole numbers of tables are below 2**62; that of a cell would be "
            f"{problem.tables.max():g}. Choose a larger unit."
        )
    rounded = np.empty(problem.tables.shape, np.int64)
    cells, wanted = problem.equations
    for row, table in enumerate(_on_margins(problem)):
        try:
            found = nearest_whole(
                table.reshape(-1), cells.tocsc(), wanted[row], time_limit
            )
            rounded[row] = found.reshape(problem.shape)
        except ValueError as error:
            raise ValueError(f"Table {row}: {error}") from None
    return rounded.reshape(*problem.lead, *problem.shape)


def _on_margins(problem):
    """Tables that are near to their margins, brought there to rounding.

    A share of 1e-9 of the mass is ten people of ten thousand million.
    """
    residual = problem.residual(problem.tables)
    near = np.flatnonzero((residual > 0) & (residual <= _NEARLY))
    tables, n_cells = problem.tables.copy(), prod(problem.shape)
    if len(near):
        tol = n_cells * np.finfo(float).eps / 8
        better, left, *_ = _rake_block(problem.rows(near), tol, _SWEEPS)
        closer = left < residual[near]
        tables[near[closer]] = better[closer]
    return tables


def _extended(q, tables, seen, sets):
    """Tables with the factors of their observed cells at the others too."""
    poset, found = TensorPoset(tables.shape[1:]), q.copy()
    sets = [modes for modes in sets if modes]
    for row in np.flatnonzero(_flat(q).any(axis=1)):
        if sets:
            given = {"observed": seen[row], "reference": tables[row]}
            matched = poset.order_mask(sets)
            found[row] = complete(q[row], poset, matched, **given).measure
        else:
            found[row] = tables[row] * (q[row].sum() / tables[row][seen[row]].sum())
    return np.where(seen, q, found)


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

    ``wanted`` holds the sets that lie in no other; ``given`` all of them.
    """

    tables: np.ndarray
    given: dict
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
        if not last < d <= tables.ndim:
            known = tables.ndim if n_modes is None else min(n_modes, tables.ndim)
            asked = f"margins name mode {last}" if last >= known else f"{n_modes=}"
            raise ValueError(
                f"{asked}, but the modes of the tables are 0 to {known - 1}: they need "
                "an axis for every mode."
            )
        if d == 0:
            raise ValueError(
                "No margin names a mode; n_modes says how many the tables have, such as"
                f" n_modes={tables.ndim} for all axes."
            )
        shape = tables.shape[tables.ndim - d :]
        unnamed = ""
        if n_modes is None and d < tables.ndim:
            unnamed = (
                f" No margin names a mode after {last}, so that the first "
                f"{tables.ndim - d} of {tables.ndim} axes count tables; "
                f"n_modes={tables.ndim} makes modes of all axes."
            )
        given, lead = {}, tables.shape[: tables.ndim - d]
        for modes, modes_given in keys.items():
            margin = _as_margin(margins[modes], modes_given, shape, unnamed)
            own = margin.shape[: margin.ndim - d]
            try:
                lead = np.broadcast_shapes(lead, own)
            except ValueError:
                raise ValueError(
                    f"Margin {modes} is of {own} tables, and there are {lead}.{unnamed}"
                ) from None
            key = tuple(sorted(modes_given))
            if key in given:
                raise ValueError(
                    f"margins name the modes {key} twice, the second time as {modes}."
                )
            given[key] = margin
        given = {modes: _spread(margin, lead, d) for modes, margin in given.items()}
        totals = [_flat(margin).sum(axis=1) for margin in given.values()]
        return cls(_spread(tables, lead, d), given, np.max(totals, axis=0), lead)

    @property
    def shape(self):
        return self.tables.shape[1:]

    @property
    def wanted(self):
        """Margins whose modes are not all in another one."""
        sets = list(map(frozenset, self.given))
        return {
            modes: margin
            for modes, margin in self.given.items()
            if not any(frozenset(modes) < other for other in sets)
        }

    @property
    def equations(self):
        """Indicators (m, D) of the cells behind those of wanted margins, and these."""
        margins = self.wanted
        flat = [_flat(margin) for margin in margins.values()]
        return margin_rows(self.shape, list(margins)), np.hstack(flat)

    def observed_alone(self, observed):
        """The problem for each mask, that of its observed cells, and the masks."""
        seen = as_flags(observed, "observed")
        lead = np.broadcast_shapes(self.lead, seen.shape[: -len(self.shape)])
        seen = _spread(seen, lead, len(self.shape))
        rows = _spread(np.arange(len(self.tables)).reshape(self.lead), lead, 0)
        whole = replace(self.rows(rows), lead=lead)
        return whole, replace(whole, tables=whole.tables * seen), seen

    def rows(self, some):
        given = {modes: margin[some] for modes, margin in self.given.items()}
        return _Problem(self.tables[some], given, self.mass[some], self.lead)

    def in_units(self):
        """The same with tables and margins near 1, and by row what undoes it.

        Powers of two, so that nothing is rounded; none where products are safe anyway.
        """
        sizes = _flat(self.tables).max(axis=1, initial=0.0), self.mass
        powers = [np.frexp(size)[1] for size in sizes]
        if max(np.abs(power).max(initial=0) for power in powers) <= _SAFE_POWER:
            return self, None
        ones = [1] * len(self.shape)
        down, up = (
            (2.0 ** np.clip(-power, -_EXPONENT, _EXPONENT)).reshape(-1, *ones)
            for power in powers
        )
        given = {modes: up * margin for modes, margin in self.given.items()}
        mass = up.reshape(-1) * self.mass
        return _Problem(down * self.tables, given, mass, self.lead), 1 / up

    def residual(self, q):
        """``max |margin - wanted|`` over all margins given, as a share of the mass."""
        return np.max(
            [
                _shares(marginal_of(q, modes) - margin, self.mass)
                for modes, margin in self.given.items()
            ],
            axis=0,
        )

    def contradictions(self, tol):
        """By row, two margins that disagree, or mass wanted where a table has none."""
        reasons = {}
        for first, second in combinations(self.given, 2):
            shared = tuple(sorted(set(first) & set(second)))
            one, other = (marginal_of(self.given[m], shared) for m in (first, second))
            off = np.flatnonzero(_shares(one - other, self.mass) > tol)
            for row in set(off.tolist()) - reasons.keys():
                sums = one[row].reshape(-1), other[row].reshape(-1)
                text = _disagreement(first, second, shared, one.shape[1:], *sums)
                reasons[row] = text
        for modes, margin in self.given.items():
            held = marginal_of(self.tables, modes)
            asked = np.where(held > 0, 0.0, margin)
            off = np.flatnonzero(_shares(asked, self.mass) > tol)
            for row in set(off.tolist()) - reasons.keys():
                cell = np.unravel_index(asked[row].argmax(), asked[row].shape)
                reasons[row] = (
                    f"Margin {modes} asks for {asked[row].max():.10g} at "
                    f"{_levels(cell, modes)}, where all cells of the table are 0."
                )
        return reasons

    def why_not(self, row, residual, tol, max_iter):
        """Why sweeps and Newton's method ended before ``tol``."""
        one = self.rows([row])
        filled = np.flatnonzero(one.tables)
        cells, wanted = one.equations
        ends = *wanted, *wanted, np.zeros(len(filled)), np.full(len(filled), np.inf)
        why = unmet(cells[:, filled], *ends, tol, max_iter, residual)
        if why.equation is None:
            return (
                f"It did not reach tol={tol:g} in max_iter={max_iter}: max|margin - "
                f"wanted| is {residual:.1e} of the mass. Increase max_iter or tol."
            )
        names = [
            f"margin {modes} at {_levels(cell, modes)}"
            for modes in one.wanted
            for cell in np.ndindex(kept_axes(modes, self.shape))
        ]
        told = why.described(names.__getitem__, ranges="the zeros of the table")
        return f"No table with these structural zeros has these margins: {told}"


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
    method = _scale_matrices if _is_matrix(problem) else _sweeps
    # The residual is measured again in the end, and rounds otherwise.
    q, n_iter = method(problem, _SAFE * tol, min(max_iter, _SWEEPS))
    residual = problem.residual(q)
    left = np.flatnonzero(~(residual <= tol))
    if len(left) and max_iter > _SWEEPS:
        found = _newton(problem.rows(left), q[left], tol, max_iter - _SWEEPS)
        n_iter[left] += found.n_iter
        better = found.residual < residual[left]
        left, new = left[better], found.point[better, : prod(problem.shape)]
        q[left] = (new * problem.mass[left, None]).reshape(-1, *problem.shape)
        residual[left] = problem.rows(left).residual(q[left])
    return q if unit is None else q * unit, residual, n_iter


def _sweeps(problem, tol, max_iter):
    """Rescale margin by margin; tables that are done leave."""
    n, goals, mass = len(problem.tables), problem.wanted, problem.mass
    out, n_iter = np.empty(problem.tables.shape), np.zeros(n, int)
    q, rows = problem.tables.copy(), np.arange(n)
    for _ in range(max_iter):
        worst = np.zeros(len(rows))
        for modes, goal in goals.items():
            now = marginal_of(q, modes)
            np.maximum(worst, _shares(now - goal, mass), out=worst)
            # A margin that is empty in both stays so.
            q *= _ratio(goal, now, 1.0)
        n_iter[rows] += 1
        done = worst <= tol
        if np.count_nonzero(done) > _DONE * len(done):
            out[rows[done]] = q[done]
            q, rows, mass = q[~done], rows[~done], mass[~done]
            goals = {modes: goal[~done] for modes, goal in goals.items()}
            if not len(rows):
                break
    out[rows] = q
    return out, n_iter


def _is_matrix(problem):
    """Whether two margins, with no mode in common, have all modes between them."""
    sets = list(problem.wanted)
    modes = sum(sets, ())
    return len(sets) == 2 and sorted(modes) == list(range(len(problem.shape)))


def _scale_matrices(problem, tol, max_iter):
    """Tables with factors of rows and of columns."""
    (first, wanted_rows), (second, wanted_columns) = problem.wanted.items()
    axes = (0, *(k + 1 for k in first + second))
    tables = problem.tables.transpose(axes)
    a, b = _flat(wanted_rows), _flat(wanted_columns)
    matrices = np.ascontiguousarray(tables).reshape(*a.shape, b.shape[1])
    u, v, n_iter = _factors(matrices, a, b, problem.mass, tol, max_iter)
    scaled = matrices * u[:, :, None]
    scaled *= v[:, None, :]
    return scaled.reshape(tables.shape).transpose(np.argsort(axes)), n_iter


def _factors(matrices, a, b, mass, tol, max_iter):
    """Factors of rows and columns, by products of the table with a vector."""
    u, v, n_iter = np.ones_like(a), np.ones_like(b), np.zeros(len(a), int)
    live = np.arange(len(a))
    for iteration in range(max_iter + 1):
        sums = (matrices @ v[live][:, :, None])[..., 0]
        if iteration:
            # The columns were matched last; the rows tell what is missing.
            go = _shares(u[live] * sums - a[live], mass[live]) > tol
            if not go.all():
                live, matrices, sums = live[go], matrices[go], sums[go]
        if not len(live) or iteration == max_iter:
            break
        u[live] = _ratio(a[live], sums)
        v[live] = _ratio(b[live], (u[live][:, None, :] @ matrices)[:, 0])
        n_iter[live] += 1
    return u, v, n_iter


def _ratio(wanted, sums, otherwise=0.0):
    """Factors; for empty sums 0, or what is given. They stay in floating point."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        out = wanted / sums
    out[~(sums > 0)] = otherwise
    return np.minimum(out, _LARGEST_FACTOR, out=out)


def _newton(problem, start, tol, max_iter):
    dual = _Dual(problem, start)
    zeros, n_cells = np.zeros(dual.wanted.shape), prod(problem.shape)
    m = zeros.shape[1]
    if m <= _DENSE_UP_TO and m * m * n_cells <= _DENSE_PRODUCTS:
        return newton_dense(dual, zeros, tol=tol, max_iter=max_iter, enough=tol)
    return newton_cg(dual, zeros, tol=tol, max_iter=max_iter)


class _Dual:
    """``sum q - <y, wanted>`` for ``q = start * exp(y summed to cells)``, mass 1.

    As :mod:`.optimize` asks for. The variables are ``y`` times the root of the margin
    wanted, which makes the diagonal of the Hessian 1 at the solution.
    The point kept is ``q``, and these roots.
    """

    def __init__(self, problem, start):
        self._shape, self._sets = problem.shape, list(problem.wanted)
        self._start = _flat(start) / problem.mass[:, None]
        self._indicators, wanted = problem.equations
        self.wanted = wanted / problem.mass[:, None]
        self._scale = 1 / np.sqrt(np.maximum(self.wanted, _NEGLIGIBLE))

    def value(self, x, rows):
        scale = self._scale[rows]
        y = x * scale
        q = np.exp(self._to_cells(y)) * self._start[rows]
        value = q.sum(axis=1) - np.einsum("ij,ij->i", y, self.wanted[rows])
        return value, np.hstack([q, scale])

    def gradient(self, point, rows):
        q, scale = self._parts(point)
        difference = self._margins(q) - self.wanted[rows]
        return difference * scale, np.abs(difference).max(axis=1)

    def longest(self, step, _):
        # Overflow is a value that the line search refuses.
        return np.ones(len(step))

    def hessian_product(self, point, v):
        q, scale = self._parts(point)
        return self._margins(q * self._to_cells(v * scale)) * scale

    def hessian(self, point, rows):
        q, scale = self._parts(point)
        indicators = self._indicators.toarray()
        gram = (q[:, None, :] * indicators) @ indicators.T
        gram *= scale[:, :, None]
        gram *= scale[:, None, :]
        return gram

    def _parts(self, point):
        return np.split(point, [self._start.shape[1]], axis=1)

    def _to_cells(self, y):
        cells, start = np.zeros((len(y), *self._shape), y.dtype), 0
        for modes in self._sets:
            axes = kept_axes(modes, self._shape)
            cells += y[:, start : start + prod(axes)].reshape(-1, *axes)
            start += prod(axes)
        return _flat(cells)

    def _margins(self, q):
        tensor = q.reshape(len(q), *self._shape)
        return np.hstack([_flat(marginal_of(tensor, modes)) for modes in self._sets])


def _spread(array, lead, n_axes):
    """Leading axes broadcast, and then as one; the last ``n_axes`` as they are."""
    own = array.shape[array.ndim - n_axes :]
    return np.broadcast_to(array, lead + own).reshape(prod(lead), *own)


def _shares(difference, mass):
    """Largest entry of each row as a share of its mass."""
    worst = np.abs(_flat(difference)).max(axis=1, initial=0.0)
    return np.divide(worst, mass, out=worst, where=mass > 0)


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
        found = tuple(map(index, modes))
    except TypeError:
        found = None
    if found is None or len(set(found)) < len(found) or min(found, default=0) < 0:
        raise ValueError(
            "margins must have tuples of different modes as keys, such as (0,) or "
            f"(0, 2); got {modes!r}."
        )
    return found


def _as_margin(margin, modes, shape, unnamed):
    """Axes sorted by mode, with one of length 1 for every other mode."""
    margin = non_negative(margin, f"margin {modes}")
    lengths = tuple(shape[k] for k in modes)
    lead = margin.ndim - len(modes)
    if lead < 0 or margin.shape[lead:] != lengths:
        raise ValueError(
            f"Margin {modes} must have shape (..., {', '.join(map(str, lengths))}) for "
            f"tables of shape {shape}; got {margin.shape}.{unnamed}"
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
