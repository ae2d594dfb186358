r"""I-projection onto linear equations and intervals, with bounds of the cells.

The projection

.. math:: m = \arg\min_m KL(m, m_0) \quad\text{subject to}\quad
          l \le A m \le u, \; lo \le m \le hi

is ``m = clip(m_0 exp(A' y), lo, hi)`` with one multiplier ``y_i`` per equation. A
multiplier is positive only if ``(A m)_i = l_i``, and negative only if ``(A m)_i =
u_i``. The dual function

.. math:: g(y) = \sum_j \phi_j((A' y)_j) - \sum_i \max(y_i, 0) l_i + \min(y_i, 0) u_i ,

with ``phi_j(s) = max s m - KL(m, m_0)`` over the bounds of cell j, is convex. Its
gradient is ``A m`` minus a bound of the interval. The solver is Newton's method in the
free multipliers, for many rows at once (Bertsekas 1982). Cells at a bound have no
curvature. If all cells of an equation are at a bound, a ridge makes the step as long as
permitted. The line search then finds the cells that leave their bounds.

The chi-square divergence ``sum (m - m_0)**2 / (2 m_0)`` (Deville and Särndal 1992)
gives ``clip(m_0 (1 + A' y), lo, hi)``. If no cell is at a bound, one Newton step is
exact.
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
from .newton import Report, newton
from .reach import box_reach, span

# Largest number of rows times equations times cells in a block.
_BLOCK = 2**19
# Ridge of the Hessian, relative to its diagonal without cells at a bound.
_RIDGE = 1e-10


class _KullbackLeibler:
    """The divergence ``m log(m / m_0) - m + m_0``."""

    # Largest change of the log of a cell in a step.
    longest = 10.0

    def cells(self, start, s):
        # The exponential would overflow far beyond 600.
        return start * np.exp(np.clip(s, -600.0, 600.0))

    def curvature(self, start, m):
        return m

    def of(self, m, start):
        return xlogy(m, m / start) - m + start


class _ChiSquare:
    """The divergence ``(m - m_0)**2 / (2 m_0)``."""

    # Largest change of a cell relative to m_0; the solution may be far from m_0.
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
    """Result of :func:`linear_projection`: projected measures and their convergence.

    Attributes
    ----------
    measure : ndarray of shape (n, D)
        Projected measures. A row that did not converge contains the last iterate.
    multipliers : ndarray of shape (n, c)
        Multipliers of the equations.
    residual : ndarray of shape (n,)
        Largest violation of an equation, as a share of its scale
        ``max(|lower|, |upper|, |A| m_0)``. If the multiplier of an interval is not 0,
        its distance from the active bound counts as a violation.
    n_iter : ndarray of int of shape (n,)
        Number of Newton steps.
    converged : ndarray of bool of shape (n,)
        ``residual <= tol``.
    reasons : dict of int to str
        For each row that did not converge, the first equation that is infeasible within
        the bounds of the cells, or the residual of all equations.

    See Also
    --------
    linear_projection : Project measures onto linear equations and inequalities.
    rake_array : Compute tables with given margins.
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

    Parameters
    ----------
    measures : array-like of shape (n, D)
        Positive measures.
    coefficients : array-like or sparse array of shape (c, D)
        The matrix ``A``, with one row per equation. Groups of equations without common
        cells are solved separately. A sparse matrix is not converted to a dense matrix.
    lower, upper : array-like of shape (c,) or (n, c), or scalar
        Bounds of ``A m``, for all rows or for each row. Equal bounds define an
        equation; infinite values mean no bound.
    floor, ceiling : array-like of shape (D,) or (n, D), or scalar, default=0, inf
        Bounds of each cell. A negative floor only has an effect with "chi2".
    divergence : {"kl", "chi2"}, default="kl"
        Objective: "kl" is ``KL(m, measure)``, and "chi2" is
        ``sum (m - measure)**2 / (2 measure)``. With "chi2", one step suffices if no
        cell is at a bound, but cells may become negative if ``floor`` permits.
    tol : float, default=1e-9
        Tolerance of the residual, as a share of the scale of each equation.
    max_iter : int, default=1000
        Maximum number of Newton steps.

    Returns
    -------
    LinearProjection
        Projected measures, residuals, and a reason for each row that did not converge.

    Raises
    ------
    ValueError
        If shapes do not fit, if a measure is not positive, or if an interval is empty.

    See Also
    --------
    LinearProjection : Result of a projection onto linear constraints.
    rake_array : Compute tables with given margins.
    mixed_projection : Compute a distribution with given mixed coordinates.

    Notes
    -----
    By duality, the function also projects onto linear constraints on theta. For
    ``log p = Z theta``, constraints ``C theta = c`` define an e-flat set
    ``{q: log q = log m_0 + A' y}``. The columns of ``A'`` are ``Z N``, where the
    columns of ``N`` span the null space of ``C``, and ``m_0`` is any measure that
    satisfies the constraints. The measure ``q`` of the set that minimises ``KL(p, q)``
    is the projection of ``m_0`` onto ``A q = A p``.

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
    >>> print(found.reasons[0])  # doctest: +NORMALIZE_WHITESPACE
    Equation 0 must be 18 to 20, but can only reach 0 to 15. Change lower and upper, or
    widen floor and ceiling.
    """
    start, a = _check_measures(measures, coefficients)
    shape = len(start), a.shape[0]
    lower, upper = _interval(lower, upper, shape, "lower", "upper")
    floor, ceiling = _interval(floor, ceiling, start.shape, "floor", "ceiling")
    floor = np.maximum(floor, 0.0 if divergence == "kl" else -np.inf)
    m, y = np.clip(start, floor, ceiling), np.zeros(shape)
    n_iter, reasons = np.zeros(len(start), int), {}
    finite = (np.where(np.isfinite(b), np.abs(b), 0.0) for b in (lower, upper))
    scale = np.maximum.reduce([m @ abs(a).T, *finite])
    scale[scale == 0] = 1.0
    least, most = box_reach(a, floor, ceiling)
    beyond = (lower > most + tol * scale) | (upper < least - tol * scale)
    possible = np.flatnonzero(~beyond.any(axis=1))
    for equations, cells in _components(a):
        step = max(1, _BLOCK // (len(equations) * len(cells)))
        for indices in np.split(possible, range(step, len(possible), step)):
            at_cells, at_equations = np.ix_(indices, cells), np.ix_(indices, equations)
            of_cells = (x[at_cells] for x in (start, floor, ceiling))
            of_equations = (x[at_equations] for x in (lower, upper, scale))
            part = a[np.ix_(equations, cells)]
            dual = _Dual(*of_cells, *of_equations, part, _DIVERGENCES[divergence])
            zeros, steps = np.zeros(dual.lower.shape), (_Dual.direction, _Dual.search)
            solution = newton(dual, zeros, *steps, tol, max_iter)
            m[at_cells], y[at_equations] = solution.point, solution.x
            n_iter[indices] = np.maximum(n_iter[indices], solution.n_iter)
    residual = largest(_outside(m @ a.T, y, lower, upper) / scale)
    for row in np.flatnonzero(~(residual <= tol)).tolist():
        bounds = (bound[row] for bound in (lower, upper, least, most))
        reasons[row] = _reason(beyond[row], *bounds, residual[row], max_iter)
    found = {"measure": m, "multipliers": y, "reasons": reasons}
    return LinearProjection(**found, residual=residual, n_iter=n_iter, tol=tol)


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
        raise ValueError(
            "coefficients must be finite; got NaN or infinity. Remove the equation, or "
            "correct the coefficient."
        )
    for row, cell in np.argwhere(~((start > 0) & (start < np.inf))):
        raise ValueError(
            f"measures must be finite and positive; cell {cell} of row {row} is "
            f"{start[row, cell]}. Add a positive offset first."
        )
    return start, a


def _reason(beyond, lower, upper, least, most, residual, max_iter):
    """Explain why a row violates its equations: the first infeasible one, or all."""
    for i in np.flatnonzero(beyond):
        return (
            f"Equation {i} must be {span(lower[i], upper[i])}, but can only reach "
            f"{span(least[i], most[i])}. Change lower and upper, or widen floor and "
            "ceiling."
        )
    return (
        "Each equation can be satisfied separately, but not all equations together: "
        f"the largest violation is {residual:.1e} of the scale of an equation after "
        f"at most {max_iter} Newton steps. Remove an equation, or replace it by an "
        "interval; if the equations are consistent, increase max_iter."
    )


def _components(a):
    """Return groups of equations without common cells, and the cells of each group.

    Equations without cells are left out, because no change of a cell affects them.
    """
    used = csr_array(a != 0)
    _, label = connected_components(used @ used.T, directed=False)
    for k in np.unique(label):
        equations = np.flatnonzero(label == k)
        cells = np.flatnonzero(used[equations].sum(axis=0))
        if len(cells):
            yield equations, cells


def _outside(values, y, lower, upper):
    """Compute the gradient of the dual, the distance of each value from a bound.

    The gradient is 0 if the multiplier is 0 and the value is inside the interval.
    """
    low, high = values - lower, values - upper
    from_low = (y > 0) | ((y == 0) & (low < 0))
    from_high = (y < 0) | ((y == 0) & (high > 0))
    return np.where(from_low, low, np.where(from_high, high, 0.0))


class _Dual:
    """Dual of rows with common coefficients (c, d), for the methods of :mod:`.newton`.

    The variables are the multipliers (r, c) of the sums, and points are the cells
    (r, d).
    """

    def __init__(self, start, floor, ceiling, lower, upper, scale, a, divergence):
        self.start, self.floor, self.ceiling = start, floor, ceiling
        self.lower, self.upper, self.scale = lower, upper, scale
        self.coefficients, self.divergence = a, divergence
        self._squares = (a * a).T
        sizes = abs(a).max(axis=1)
        self._sizes = np.ravel(sizes.toarray() if issparse(a) else sizes)

    def value(self, y, rows):
        """Return values and points of multipliers."""
        return self.primal(y, rows)[:2]

    def priced(self, y, rows):
        """Multiply multipliers by the bounds of the intervals that they enforce."""
        bound = np.where(y > 0, self.lower[rows], self.upper[rows])
        return np.multiply(y, bound, out=np.zeros_like(y), where=y != 0)

    def gradient(self, y, point, rows):
        """Return gradients and residuals at multipliers and their points."""
        bounds = self.lower[rows], self.upper[rows]
        gradient = _outside(point @ self.coefficients.T, y, *bounds)
        return gradient, largest(gradient / some_rows(self.scale, rows))

    def direction(self, here, rows):
        """Compute Newton's step in the free multipliers, at most the longest step."""
        y, gradient = here.x, here.gradient
        hessian, diagonal = self.hessians(here.point, rows)
        root = 1 / np.sqrt(np.maximum(diagonal, np.finfo(float).tiny))
        hessian *= root[:, :, None]
        hessian *= root[:, None, :]
        interval = self.lower[rows] < self.upper[rows]
        # Multipliers that decrease to 0 are fixed at 0, because steps only halve them.
        ending = interval & (y * gradient > 0) & (np.abs(y) * self._sizes <= 1e-4)
        free = (~interval | (y != 0) | (gradient != 0)) & ~ending
        for _ in range(4):
            step = root * _solve_free(hessian, -gradient * root, free)
            # A multiplier at 0 must not get the sign of the opposite bound.
            wrong = interval & (y == 0) & (step * gradient > 0)
            if not wrong.any():
                break
            free &= ~wrong
        step = np.where(ending, -y, step)
        change = np.maximum(largest(step @ self.coefficients), 1e-300)
        return step * np.minimum(1, self.divergence.longest / change)[:, None], False

    def search(self, here, step, rows):
        """Step until the value decreases, halving the step; multipliers stop at 0."""
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
            # If the change of the value is a rounding error, the slope decides, because
            # steps across a kink would alternate.
            if not done.all():
                slope = np.einsum("ij,ij->i", self.gradient(trial, m, at)[0], moved)
                done |= (rise <= rounding) & (slope <= 0.9 * np.abs(gain))
            for found, part in zip(new, (trial, value, m), strict=True):
                found[trying[done]] = part[done]
            trying, length = trying[~done], length / 2
            if not len(trying):
                break
        return new

    def _stopped(self, trial, y, gradient, rows):
        """Return the trial, with 0 for multipliers of intervals with a wrong sign.

        A sign is wrong if it differs from the sign of ``y``, or for 0 from the sign of
        the descent direction. Multipliers of equations may have any sign.
        """
        sign = np.where(y != 0, np.sign(y), -np.sign(gradient))
        wrong = (trial * sign < 0) & (self.lower[rows] < self.upper[rows])
        return np.where(wrong, 0.0, trial)

    def _of(self, rows):
        """Select start, floor and ceiling of the cells of rows."""
        every = self.start, self.floor, self.ceiling
        return (some_rows(x, rows) for x in every)

    def primal(self, y, rows):
        """Return values (r,) of the dual, cells (r, d), and errors (r,) of values."""
        start, floor, ceiling = self._of(rows)
        s = y @ self.coefficients
        m = np.minimum(np.maximum(self.divergence.cells(start, s), floor), ceiling)
        priced = self.priced(y, rows)
        terms = np.hstack([s * m, -self.divergence.of(m, start), -priced])
        rounding = 1e-14 * np.abs(terms).sum(axis=1)
        return terms.sum(axis=1), m, rounding

    def hessians(self, point, rows):
        """Return Hessians (r, c, c), and diagonals (r, c) without cells at a bound."""
        start, floor, ceiling = self._of(rows)
        curvature = self.divergence.curvature(start, point)
        diagonal = np.maximum(curvature, np.finfo(float).tiny) @ self._squares
        return self._gram(curvature * ((point > floor) & (point < ceiling))), diagonal

    def _gram(self, weight):
        """Compute ``A diag(w) A'`` for each row ``w`` of weights."""
        a = self.coefficients
        if issparse(a):
            transposed = a.T.tocsr()
            return np.stack([((a * w) @ transposed).toarray() for w in weight])
        return (a * weight[:, None, :]) @ a.T


def _solve_free(hessian, right, free):
    """Solve Newton's equation in the free scaled variables; other steps are 0."""
    matrix = hessian * free[:, :, None]
    matrix *= free[:, None, :]
    diagonal = np.einsum("nii->ni", matrix)
    diagonal += np.where(free, _RIDGE, 1.0)
    return np.linalg.solve(matrix, (right * free)[:, :, None])[..., 0]


def _interval(low, high, shape, low_name, high_name):
    low, high = (np.broadcast_to(numbers(x), shape) for x in (low, high))
    for row, k in np.argwhere(~(low <= high)):
        raise ValueError(
            f"{low_name} must be at most {high_name}, without NaN; in column {k} of "
            f"row {row} they are {low[row, k]:.10g} and {high[row, k]:.10g}."
        )
    return low, high
