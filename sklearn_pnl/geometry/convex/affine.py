r"""I-projection on linear equations, intervals and ranges of cells.

.. math:: m = \arg\min_m KL(m, m_0) \quad\text{subject to}\quad
          l \le A m \le u, \; lo \le m \le hi

is ``m = clip(m_0 exp(A' y), lo, hi)`` with a multiplier ``y_i`` an equation: 0 or more
where the interval is met from below, 0 or less from above. The dual,

.. math:: g(y) = \sum_j \phi_j((A' y)_j) - \sum_i \max(y_i, 0) l_i + \min(y_i, 0) u_i ,

has ``phi_j(s) = max s m - KL(m, m_0)`` over the range of cell j. It is convex; its
gradient is ``A m`` less an end of the interval. Newton's method in the multipliers
that are free to move, many rows at once (Bertsekas 1982). Cells at an end of their
range have no curvature; where an equation has no others, a ridge turns the step into
the longest one allowed, and the line search finds the cells that free themselves.

With the chi-square divergence ``sum (m - m_0)**2 / (2 m_0)`` in place of KL, the first
step of it (Deville and Särndal 1992), the solution is ``clip(m_0 (1 + A' y), lo, hi)``:
with no cell at an end, one Newton step is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.special import xlogy

from ..._utils.arrays import largest, some_rows
from ..posets.elements import numbers
from .optimize import Report, newton
from .reach import box_reach, span

# Rows times equations times cells that are worked on at once.
_BLOCK = 2**19
# Ridge of the Hessian, relative to its diagonal with no cell at an end of its range.
_RIDGE = 1e-10


class _KullbackLeibler:
    """``m log(m / m_0) - m + m_0``."""

    # Largest change of the log of a cell in a step.
    longest = 10.0

    def cells(self, start, s):
        # Beyond 600 a cell is empty or endless; the exponential would overflow.
        return start * np.exp(np.clip(s, -600.0, 600.0))

    def curvature(self, start, m):
        return m

    def of(self, m, start):
        return xlogy(m, m / start) - m + start


class _ChiSquare:
    """``(m - m_0)**2 / (2 m_0)``."""

    # Relative to m_0; the solution may be far from it.
    longest = 1e6

    def cells(self, start, s):
        return start * (1 + s)

    def curvature(self, start, m):
        return start

    def of(self, m, start):
        return (m - start) ** 2 / (2 * start)


_DIVERGENCES = {"kl": _KullbackLeibler(), "chi2": _ChiSquare()}


@dataclass(frozen=True, kw_only=True)
class LinearProjection(Report):
    """Projected measures, with residuals and numbers of iterations.

    Attributes
    ----------
    measure : ndarray of shape (n, D)
        A row that did not converge holds what was reached.
    multipliers : ndarray of shape (n, c)
    residual : ndarray of shape (n,)
        Worst violation of an equation (or, where its multiplier is not 0, distance
        from the end of its interval) as a share of the equation's scale:
        ``max(|lower|, |upper|, |A| m_0)``.
    n_iter : ndarray of int of shape (n,)
        Newton steps.
    converged : ndarray of bool of shape (n,)
        ``residual <= tol``.
    reasons : dict of int to str
        By row that did not converge: an equation that is infeasible alone, with its
        range; or the residual of all equations.

    See Also
    --------
    linear_projection : Rows to linear equations and ranges.
    rake_array : Tables with given margins.
    """

    measure: np.ndarray
    multipliers: np.ndarray
    reasons: dict


def linear_projection(
    measures: ArrayLike,
    coefficients: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    floor: ArrayLike = 0.0,
    ceiling: ArrayLike = np.inf,
    divergence: Literal["kl", "chi2"] = "kl",
    tol: float = 1e-9,
    max_iter: int = 1000,
) -> LinearProjection:
    r"""Project measures onto linear equations and inequalities.

    Solves ``min KL(m, measure)`` over the ``m`` with ``lower <= A m <= upper`` and
    ``floor <= m <= ceiling``, for all rows at once.

    By duality, this projects on general linear constraints on theta as well: they
    give an e-flat set ``{q: log q = log m_0 + A' y}``, and the measure ``q`` of that
    set that minimises ``KL(p, q)`` is the projection of ``m_0`` onto ``A q = A p``.
    With ``log p = Z theta`` and constraints ``C theta = c``, the columns of ``A'`` are
    ``Z N``, where the columns of ``N`` span the null space of ``C``, and ``m_0`` is any
    measure that meets the constraints.

    Parameters
    ----------
    measures : array-like of shape (n, D)
        Positive.
    coefficients : array-like or sparse array of shape (c, D)
        ``A``. Features that no equation connects are solved for apart, so that many
        equations of few features each cost little. Sparse ones are not made dense.
    lower, upper : array-like of shape (c,) or (n, c), or scalar
        Equal for an equation, infinite for no bound; for all rows or a row each.
    floor, ceiling : array-like of shape (D,) or (n, D), or scalar, default=0, inf
        Range of each cell. A floor below 0 is for "chi2" alone.
    divergence : {"kl", "chi2"}, default="kl"
        Objective: ``KL(m, measure)``, or ``sum (m - measure)**2 / (2 measure)``, which
        moves cells in proportion to their size and takes one step where no cell is at
        an end of its range. Only ``floor`` keeps signs then.
    tol : float, default=1e-9
        Wanted residual, as a share of the scale of each equation.
    max_iter : int, default=1000
        Most Newton steps.

    Returns
    -------
    LinearProjection
        Rows that are not on their constraints are in ``reasons``; the caller decides.
        A reason names an equation that is out of reach alone; where equations
        contradict each other it says by how much they are missed.

    Raises
    ------
    ValueError
        If shapes do not fit, a measure is not positive, or an interval is empty.

    See Also
    --------
    LinearProjection : What a linear projection found.
    rake_array : Tables with given margins.
    mixed_projection : The problem that all projections are.

    References
    ----------
    Csiszar, "I-divergence geometry of probability distributions and minimization
    problems", Annals of Probability, 1975.

    Bertsekas, "Projected Newton methods for optimization problems with simple
    constraints", SIAM Journal on Control and Optimization, 1982.

    Examples
    --------
    >>> from sklearn_pnl.geometry import linear_projection
    >>> found = linear_projection([[1, 2, 3]], [[1, 1, 1]], 12, 12, ceiling=5)
    >>> found.measure.round(6)
    array([[2.333333, 4.666667, 5.      ]])
    >>> found = linear_projection([[1, 2, 3]], [[1, 1, 1]], 18, 20, ceiling=5)
    >>> print(found.reasons[0])
    Equation 0 asks for 18 to 20; within the ranges of its features it reaches 0 to 15.
    """
    start, a = _check_measures(measures, coefficients)
    shape = len(start), a.shape[0]
    lower, upper = _interval(lower, upper, shape, "lower", "upper")
    floor, ceiling = _interval(floor, ceiling, start.shape, "floor", "ceiling")
    floor = np.maximum(floor, 0.0 if divergence == "kl" else -np.inf)
    m, y = np.clip(start, floor, ceiling), np.zeros(shape)
    n_iter, reasons = np.zeros(len(start), int), {}
    finite = (np.where(np.isfinite(end), np.abs(end), 0.0) for end in (lower, upper))
    scale = np.maximum.reduce([m @ abs(a).T, *finite])
    scale[scale == 0] = 1.0
    least, most = box_reach(a, floor, ceiling)
    beyond = (lower > most + tol * scale) | (upper < least - tol * scale)
    possible = np.flatnonzero(~beyond.any(axis=1))
    for equations, cells in _components(a):
        step = max(1, _BLOCK // (len(equations) * len(cells)))
        for rows in np.split(possible, range(step, len(possible), step)):
            at_cells, at_equations = np.ix_(rows, cells), np.ix_(rows, equations)
            of_cells = (x[at_cells] for x in (start, floor, ceiling))
            of_equations = (x[at_equations] for x in (lower, upper, scale))
            part = a[np.ix_(equations, cells)]
            dual = _CellDual(*of_cells, *of_equations, part, _DIVERGENCES[divergence])
            solution = minimise(dual, tol, max_iter)
            m[at_cells], y[at_equations] = solution.point, solution.x
            n_iter[rows] = np.maximum(n_iter[rows], solution.n_iter)
    residual = largest(_outside(m @ a.T, y, lower, upper) / scale)
    for row in np.flatnonzero(~(residual <= tol)).tolist():
        ends = (end[row] for end in (lower, upper, least, most))
        reasons[row] = _reason(beyond[row], *ends, residual[row], max_iter)
    found = {"measure": m, "multipliers": y, "reasons": reasons}
    return LinearProjection(**found, residual=residual, n_iter=n_iter, tol=tol)


def minimise(dual, tol, max_iter):
    """Minimise an :class:`IntervalDual` of all rows, from multipliers of 0."""
    zeros, steps = np.zeros(dual.lower.shape), (type(dual).direction, type(dual).search)
    return newton(dual, zeros, *steps, tol, max_iter)


def _check_measures(measures, coefficients):
    start = numbers(measures, "measures")
    if issparse(coefficients):
        a = csr_array(coefficients, dtype=np.float64)
    else:
        a = numbers(coefficients, "coefficients")
    if start.ndim != 2 or a.ndim != 2 or a.shape[1] != start.shape[1]:
        raise ValueError(
            "measures must have shape (n, D) and coefficients shape (c, D); got "
            f"{start.shape} and {a.shape}."
        )
    if not np.isfinite(abs(a).sum()):
        raise ValueError("coefficients must be finite.")
    for row, cell in np.argwhere(~((start > 0) & (start < np.inf))):
        raise ValueError(
            f"measures must be finite and positive; cell {cell} of row {row} is "
            f"{start[row, cell]}. Add a positive offset first."
        )
    return start, a


def _reason(beyond, lower, upper, least, most, residual, max_iter):
    """Why a row is not on its equations: the first that is out of reach, or all."""
    for i in np.flatnonzero(beyond):
        return (
            f"Equation {i} asks for {span(lower[i], upper[i])}; within the ranges of "
            f"its features it reaches {span(least[i], most[i])}."
        )
    return (
        f"Each equation can be met alone, but together they are missed by "
        f"{residual:.1e} of their size after at most {max_iter} Newton steps: they may "
        "contradict each other. Drop or loosen one, or increase max_iter."
    )


def _components(a):
    """Equations that share no cell with others, and their cells.

    Equations about no cell are left out, as nothing could be done for them.
    """
    used = csr_array(a != 0)
    _, label = connected_components(used @ used.T, directed=False)
    for k in np.unique(label):
        equations = np.flatnonzero(label == k)
        cells = np.flatnonzero(used[equations].sum(axis=0))
        if len(cells):
            yield equations, cells


def _outside(values, y, lower, upper):
    """Gradient of the dual: how far each equation is outside of its interval.

    0 where the multiplier is 0 and the interval holds.
    """
    low, high = values - lower, values - upper
    from_low = (y > 0) | ((y == 0) & (low < 0))
    from_high = (y < 0) | ((y == 0) & (high > 0))
    return np.where(from_low, low, np.where(from_high, high, 0.0))


class IntervalDual:
    """The dual of a projection onto intervals of sums, as :mod:`.optimize` uses it.

    The variables are the multipliers (r, c) of the sums. A subclass has

    ``primal(y, rows)``
        values (r,) of the dual, points (r, ...), and rounding errors (r,) of values;
    ``sums_of(point)``
        sums (r, c) of points;
    ``scales(point, rows)``
        what residuals (r, c) are shares of;
    ``hessians(point, rows)``
        Hessians (r, c, c) of the dual, and diagonals (r, c) with no cell at a bound.

    Parameters
    ----------
    lower, upper : ndarray of shape (n, c)
        Ends of the intervals.
    coefficients : ndarray or sparse array of shape (c, d)
        Changes of the cells with the multipliers.
    longest : float
        The largest change of a cell in a step.
    """

    def __init__(self, lower, upper, coefficients, longest):
        self.lower, self.upper = lower, upper
        self.coefficients, self.longest = coefficients, longest
        sizes = abs(coefficients).max(axis=1)
        is_sparse = issparse(coefficients)
        self._sizes = np.ravel(sizes.toarray() if is_sparse else sizes)

    def value(self, y, rows):
        """Return values and points of multipliers."""
        return self.primal(y, rows)[:2]

    def priced(self, y, rows):
        """Multipliers times the ends of the intervals that they pull to."""
        end = np.where(y > 0, self.lower[rows], self.upper[rows])
        return np.multiply(y, end, out=np.zeros_like(y), where=y != 0)

    def gradient(self, y, point, rows):
        """Return gradients and residuals at multipliers and their points."""
        ends = self.lower[rows], self.upper[rows]
        gradient = _outside(self.sums_of(point), y, *ends)
        return gradient, largest(gradient / self.scales(point, rows))

    def direction(self, here, rows):
        """Newton's step in the multipliers that are free, no longer than allowed."""
        y, gradient = here.x, here.gradient
        hessian, whole = self.hessians(here.point, rows)
        root = 1 / np.sqrt(np.maximum(whole, np.finfo(float).tiny))
        hessian *= root[:, :, None]
        hessian *= root[:, None, :]
        interval = self.lower[rows] < self.upper[rows]
        # Multipliers close to 0 and decreasing are fixed: steps would only halve them.
        ending = interval & (y * gradient > 0) & (np.abs(y) * self._sizes <= 1e-4)
        free = (~interval | (y != 0) | (gradient != 0)) & ~ending
        for _ in range(4):
            step = root * _solve_free(hessian, -gradient * root, free)
            # At 0 the multiplier would change to the sign of the other end.
            wrong = interval & (y == 0) & (step * gradient > 0)
            if not wrong.any():
                break
            free &= ~wrong
        step = np.where(ending, -y, step)
        change = np.maximum(largest(step @ self.coefficients), 1e-300)
        return step * np.minimum(1, self.longest / change)[:, None], False

    def search(self, here, step, rows):
        """Halve each row's step until the value falls; multipliers stop at 0."""
        new = here.x.copy(), here.value.copy(), here.point.copy()
        trying, length = np.arange(len(rows)), 1.0
        # With redundant equations a step may be up to 1 / _RIDGE times too long.
        for _ in range(80):
            at = rows[trying]
            y, gradient = (some_rows(x, trying) for x in (here.x, here.gradient))
            trial = self._stopped(y + length * step[trying], y, gradient, at)
            value, m, rounding = self.primal(trial, at)
            moved = trial - y
            gain = np.einsum("ij,ij->i", gradient, moved)
            rise = value - here.value[trying] - 1e-4 * gain
            done = rise <= -rounding
            # If the change of the value is rounding, the slope decides: steps across a
            # kink would alternate.
            if not done.all():
                slope = np.einsum("ij,ij->i", self.gradient(trial, m, at)[0], moved)
                done |= (rise <= rounding) & (slope <= 0.9 * np.abs(gain))
            for whole, part in zip(new, (trial, value, m), strict=True):
                whole[trying[done]] = part[done]
            trying, length = trying[~done], length / 2
            if not len(trying):
                break
        return new

    def _stopped(self, trial, y, gradient, rows):
        """The trial, but 0 where the sign would change, or be the wrong one.

        Equations have no wrong sign.
        """
        sign = np.where(y != 0, np.sign(y), -np.sign(gradient))
        wrong = (trial * sign < 0) & (self.lower[rows] < self.upper[rows])
        return np.where(wrong, 0.0, trial)


class _CellDual(IntervalDual):
    """The dual of rows that share coefficients (c, d); points are the cells."""

    def __init__(self, start, floor, ceiling, lower, upper, scale, a, divergence):
        super().__init__(lower, upper, a, divergence.longest)
        self.scale, self.start, self.floor, self.ceiling = scale, start, floor, ceiling
        self.divergence, self._squares = divergence, (a * a).T

    def _of(self, rows):
        """Start, floor and ceiling of cells of some rows."""
        every = self.start, self.floor, self.ceiling
        return (some_rows(x, rows) for x in every)

    def primal(self, y, rows):
        start, floor, ceiling = self._of(rows)
        s = y @ self.coefficients
        m = np.minimum(np.maximum(self.divergence.cells(start, s), floor), ceiling)
        priced = self.priced(y, rows)
        terms = np.hstack([s * m, -self.divergence.of(m, start), -priced])
        rounding = 1e-14 * np.abs(terms).sum(axis=1)
        return terms.sum(axis=1), m, rounding

    def sums_of(self, point):
        return point @ self.coefficients.T

    def scales(self, point, rows):
        return some_rows(self.scale, rows)

    def hessians(self, point, rows):
        start, floor, ceiling = self._of(rows)
        curvature = self.divergence.curvature(start, point)
        whole = np.maximum(curvature, np.finfo(float).tiny) @ self._squares
        return self._gram(curvature * ((point > floor) & (point < ceiling))), whole

    def _gram(self, weight):
        """``A diag(w) A'`` for rows ``w`` of weights."""
        a = self.coefficients
        if issparse(a):
            transposed = a.T.tocsr()
            return np.stack([((a * w) @ transposed).toarray() for w in weight])
        return (a * weight[:, None, :]) @ a.T


def _solve_free(hessian, right, free):
    """Solve Newton's equation in some scaled variables; 0 in the others."""
    matrix = hessian * free[:, :, None]
    matrix *= free[:, None, :]
    diagonal = np.einsum("nii->ni", matrix)
    diagonal += np.where(free, _RIDGE, 1.0)
    return np.linalg.solve(matrix, (right * free)[:, :, None])[..., 0]


def _interval(low, high, shape, low_name, high_name):
    low, high = (np.broadcast_to(numbers(x), shape) for x in (low, high))
    for row, k in np.argwhere(~(low <= high)):
        raise ValueError(
            f"{low_name} must be a number of at most {high_name}; in column {k} of row "
            f"{row} they are {low[row, k]:.10g} and {high[row, k]:.10g}."
        )
    return low, high
