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

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.special import xlogy

from .optimize import newton_projected
from .reach import box_reach, largest_of_rows, why_missed

_ARMIJO, _SLOPE = 1e-4, 0.9
# With redundant equations a step may be up to 1 / _RIDGE times too long.
_MAX_HALVINGS = 80
_MAX_RELEASES = 4
_NEARLY_FREE = 1e-4
# Ridge of the Hessian, relative to its diagonal with no cell at an end of its range.
_RIDGE = 1e-10
# Bound on |log(m / m_0)|.
_FAR = 600.0
# Rows times equations times cells of a block.
_BLOCK = 2**19
# Up to this many entries, products of all pairs of equations are kept as one matrix.
_SMALL_PRODUCTS = 2**14
# Rounding error of the value of a row, as a share of its terms.
_ROUNDING = 1e-14


class _KullbackLeibler:
    """``m log(m / m_0) - m + m_0``."""

    # Largest change of the log of a cell in a step.
    longest = 10.0

    @staticmethod
    def cells(start, s):
        with np.errstate(over="ignore"):
            return start * np.exp(np.clip(s, -_FAR, _FAR))

    @staticmethod
    def curvature(start, m):
        return m

    @staticmethod
    def of(m, start):
        return xlogy(m, m / start) - m + start


class _ChiSquare:
    """``(m - m_0)**2 / (2 m_0)``."""

    # Relative to m_0; the solution may be far from it.
    longest = 1e6

    @staticmethod
    def cells(start, s):
        return start * (1 + s)

    @staticmethod
    def curvature(start, m):
        return start

    @staticmethod
    def of(m, start):
        return (m - start) ** 2 / (2 * start)


_DIVERGENCES = {"kl": _KullbackLeibler, "chi2": _ChiSquare}


@dataclass(frozen=True)
class LinearProjection:
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
    rake : Tables with given margins.
    """

    measure: np.ndarray
    multipliers: np.ndarray
    residual: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    reasons: dict = field(default_factory=dict)


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
    rake : Tables with given margins.
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
    ranges = lower, upper, floor, ceiling
    p = _Problem.from_user(measures, coefficients, *ranges, _DIVERGENCES[divergence])
    n, c = p.lower.shape
    m, y = np.clip(p.start, p.floor, p.ceiling), np.zeros((n, c))
    n_iter, reasons = np.zeros(n, int), {}
    can_be = np.flatnonzero(~p.out_of_reach(tol).any(axis=1))
    p.solve_rows(can_be, m, y, n_iter, tol, max_iter)
    residual = p.residual(m, y)
    for row in np.flatnonzero(~(residual <= tol)).tolist():
        ends = (end[row] for end in (p.lower, p.upper, p.floor, p.ceiling))
        reasons[row] = why_missed(p.coefficients, *ends, max_iter, residual[row])
    return LinearProjection(m, y, residual, n_iter, residual <= tol, reasons)


@dataclass(frozen=True)
class _Problem:
    """Rows of one problem; ``coefficients`` (c, D) are shared."""

    start: np.ndarray
    floor: np.ndarray
    ceiling: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    divergence: type

    @classmethod
    def from_user(
        cls, measures, coefficients, lower, upper, floor, ceiling, divergence
    ):
        start = np.asarray(measures, dtype=np.float64)
        if issparse(coefficients):
            a = csr_array(coefficients, dtype=np.float64)
        else:
            a = np.asarray(coefficients, dtype=np.float64)
        if start.ndim != 2 or a.ndim != 2 or a.shape[1] != start.shape[1]:
            raise ValueError(
                "measures must have shape (n, D) and coefficients shape (c, D); got "
                f"{start.shape} and {a.shape}."
            )
        entries = a.data if issparse(a) else a
        if not (np.isfinite(entries).all() and np.isfinite(start).all()):
            raise ValueError("measures and coefficients must be finite.")
        if not start.min(initial=1) > 0:
            row, cell = map(int, np.argwhere(~(start > 0))[0])
            raise ValueError(
                f"measures must be positive; cell {cell} of row {row} is "
                f"{start[row, cell]}. Add a positive offset first."
            )
        n = len(start)
        lower, upper = _interval(lower, upper, (n, a.shape[0]), "lower", "upper")
        floor, ceiling = _interval(floor, ceiling, start.shape, "floor", "ceiling")
        # Finite, so that reaches of equations are numbers.
        floor = np.maximum(floor, 0.0 if divergence is _KullbackLeibler else -1e100)
        sizes = np.clip(start, floor, ceiling) @ abs(a).T
        ends = [np.where(np.isfinite(e), np.abs(e), 0.0) for e in (lower, upper)]
        scale = np.maximum.reduce([sizes, *ends])
        scale[scale == 0] = 1.0
        return cls(start, floor, ceiling, lower, upper, scale, a, divergence)

    def rows(self, rows):
        of_cells = self.start, self.floor, self.ceiling
        arrays = (x[rows] for x in (*of_cells, self.lower, self.upper, self.scale))
        return _Problem(*arrays, self.coefficients, self.divergence)

    def part(self, equations, cells):
        """Sub-problem of some equations and their cells."""
        a = self.coefficients
        if a.shape == (len(equations), len(cells)):
            return self
        of_cells = (x[:, cells] for x in (self.start, self.floor, self.ceiling))
        of_equations = (x[:, equations] for x in (self.lower, self.upper, self.scale))
        a = a[np.ix_(equations, cells)]
        return _Problem(*of_cells, *of_equations, a, self.divergence)

    def solve_rows(self, rows, m, y, n_iter, tol, max_iter):
        """Write cells, multipliers and steps of some rows, part by part."""
        if not len(rows):
            return
        for equations, cells in self.components():
            part = self.part(equations, cells)
            step = max(1, _BLOCK // (len(equations) * len(cells)))
            for first in range(0, len(rows), step):
                block = rows[first : first + step]
                at = np.ix_(block, cells), np.ix_(block, equations)
                m[at[0]], y[at[1]], steps = part.rows(block).solve(tol, max_iter)
                n_iter[block] = np.maximum(n_iter[block], steps)

    def components(self):
        """Connected components: pairs of equations and their cells.

        Equations that share no cell with another are one part: its Hessian is diagonal.
        Those about no cell are left out, as nothing could be done for them.
        """
        used = coo_array(self.coefficients != 0)
        c, d = used.shape
        graph = coo_array(
            (np.ones(used.nnz), (used.row, c + used.col)), shape=(c + d, c + d)
        )
        n, label = connected_components(graph, directed=False)
        empty = np.bincount(label[c:], minlength=n) == 0
        alone = (np.bincount(label[:c], minlength=n) == 1) & ~empty
        if alone.any():
            yield _split(alone[label], c)
        for k in np.setdiff1d(label[:c], np.flatnonzero(alone | empty)):
            yield _split(label == k, c)

    @cached_property
    def is_diagonal(self):
        """Whether no cell is in two equations."""
        return (self.coefficients != 0).sum(axis=0).max(initial=0) <= 1

    @cached_property
    def largest(self):
        """Largest coefficient (c,) of each equation."""
        return largest_of_rows(self.coefficients)

    @cached_property
    def squares(self):
        """Squares of the coefficients, cells first."""
        return (self.coefficients * self.coefficients).T

    def out_of_reach(self, tol):
        """Equations (n, c) that ask for more than the ranges of their cells allow."""
        least, most = box_reach(self.coefficients, self.floor, self.ceiling)
        slack = tol * self.scale
        return (self.lower > most + slack) | (self.upper < least - slack)

    def gradient(self, m, y):
        """Gradient of the dual: how far each equation is outside of its interval.

        0 where the multiplier is 0 and the interval holds.
        """
        values = m @ self.coefficients.T
        low, high = values - self.lower, values - self.upper
        from_low = (y > 0) | ((y == 0) & (low < 0))
        from_high = (y < 0) | ((y == 0) & (high > 0))
        return np.where(from_low, low, np.where(from_high, high, 0.0))

    def residual(self, m, y):
        return _largest(self.gradient(m, y) / self.scale)

    def primal(self, y):
        """Cells for multipliers, and the value of the dual with its rounding."""
        s = y @ self.coefficients
        m = self.divergence.cells(self.start, s)
        m = np.minimum(np.maximum(m, self.floor), self.ceiling)
        end = np.where(y > 0, self.lower, self.upper)
        priced = np.multiply(y, end, out=np.zeros_like(y), where=y != 0)
        terms = np.hstack([s * m, -self.divergence.of(m, self.start), -priced])
        return m, terms.sum(axis=1), _ROUNDING * np.abs(terms).sum(axis=1)

    def solve(self, tol, max_iter):
        """Cells, multipliers and steps of all rows."""
        zeros = np.zeros(self.lower.shape)
        solution = newton_projected(_Dual(self), zeros, tol=tol, max_iter=max_iter)
        return solution.point[:, : self.start.shape[1]], solution.x, solution.n_iter

    def largest_divergence(self):
        """Bound on ``KL(m, start)`` over the ranges of the cells, of each row."""
        worst = 0.0
        for end in (self.floor, self.ceiling):
            finite = np.where(np.isinf(end), 0.0, end)
            largest = self.divergence.of(finite, self.start)
            worst = np.maximum(worst, np.where(np.isinf(end), np.inf, largest))
        return (1 + _ROUNDING) * worst.sum(axis=1) + self.start.sum(axis=1) * 1e-9

    def direction(self, m, y, gradient):
        """Newton's step in the multipliers that are free, no longer than allowed."""
        weight, least = self.weight(m), np.finfo(float).tiny
        whole = np.maximum(self.divergence.curvature(self.start, m), least)
        root = 1 / np.sqrt(whole @ self.squares)
        if self.is_diagonal:
            hessian = (weight @ self.squares) * root**2
        else:
            hessian = self.gram(weight)
            hessian *= root[:, :, None]
            hessian *= root[:, None, :]
        right = -gradient * root
        step = self._free_step(hessian, right, y, gradient, root)
        change = _largest(step @ self.coefficients)
        longest = self.divergence.longest
        return step * np.minimum(1, longest / np.maximum(change, 1e-300))[:, None]

    def weight(self, m):
        """Curvature of the cells that are free to move; 0 at the ends of a range."""
        free = (m > self.floor) & (m < self.ceiling)
        return self.divergence.curvature(self.start, m) * free

    def gram(self, weight):
        """``A diag(w) A'`` for rows ``w`` of weights."""
        a, (c, d) = self.coefficients, self.coefficients.shape
        if issparse(a):
            transposed = a.T.tocsr()
            return np.stack([((a * w) @ transposed).toarray() for w in weight])
        if c * c * d > _SMALL_PRODUCTS:
            return (a * weight[:, None, :]) @ a.T
        # One product for all rows is faster than a small one for each.
        products = (a[:, None, :] * a).reshape(c * c, d)
        return (weight @ products.T).reshape(-1, c, c)

    def _free_step(self, hessian, right, y, gradient, root):
        """Newton's step in those multipliers that may move."""
        interval = self.lower < self.upper
        # Multipliers close to 0 and decreasing are fixed: steps would only halve them.
        size = np.abs(y) * self.largest
        ending = interval & (y * gradient > 0) & (size <= _NEARLY_FREE)
        free = (~interval | (y != 0) | (gradient != 0)) & ~ending
        for _ in range(_MAX_RELEASES):
            step = _solve_free(hessian, right, free) * root
            # At 0 the multiplier would change to the sign of the other end.
            wrong = interval & (y == 0) & (step * gradient > 0)
            if not wrong.any():
                break
            free &= ~wrong
        return np.where(ending, -y, step)

    def search(self, y, m, value, gradient, step):
        """Halve each row's step until the value falls; multipliers stop at 0."""
        new = y.copy(), m.copy(), value.copy()
        trying, p, length = np.arange(len(y)), self, 1.0
        for _ in range(_MAX_HALVINGS):
            trial = p.stopped(y[trying], length * step[trying], gradient[trying])
            cells, reached, slack = p.primal(trial)
            moved = trial - y[trying]
            gain = np.einsum("ij,ij->i", gradient[trying], moved)
            rise = reached - value[trying] - _ARMIJO * gain
            ok = rise <= -slack
            # If the change of the value is rounding, the slope decides: steps across a
            # kink would alternate.
            if not ok.all():
                slope = np.einsum("ij,ij->i", p.gradient(cells, trial), moved)
                ok |= (rise <= slack) & (slope <= _SLOPE * np.abs(gain))
            # A step can grow where some multipliers stop at 0 and others do not.
            change = _largest(moved @ self.coefficients)
            ok &= change <= 2 * self.divergence.longest
            done = trying[ok]
            new[0][done], new[1][done], new[2][done] = trial[ok], cells[ok], reached[ok]
            trying, length = trying[~ok], length / 2
            if not len(trying):
                break
            p = p.rows(~ok)
        return new

    def stopped(self, y, step, gradient):
        """``y + step``, but 0 where the sign would change, or be the wrong one.

        Equations have no wrong sign.
        """
        trial = y + step
        sign = np.where(y != 0, np.sign(y), -np.sign(gradient))
        wrong = (np.sign(trial) * sign < 0) & (self.lower < self.upper)
        trial[wrong] = 0.0
        return trial


class _Dual:
    """The dual of a problem, as :mod:`.optimize` asks for.

    The variables are the multipliers; the point kept is the cells, then these.
    """

    def __init__(self, problem):
        self._problem, self._largest = problem, problem.largest_divergence()
        self._last = None, problem

    def _parts(self, rows, point=None):
        """The problem of some rows, made once for as long as they stay the same."""
        if self._last[0] is not rows:
            self._last = rows, self._problem.rows(rows)
        d = self._problem.start.shape[1]
        return self._last[1], *(() if point is None else (point[:, :d], point[:, d:]))

    def value(self, y, rows):
        m, value, _ = self._parts(rows)[0].primal(y)
        return value, np.hstack([m, y])

    def gradient(self, point, rows):
        problem, m, y = self._parts(rows, point)
        gradient = problem.gradient(m, y)
        return gradient, _largest(gradient / problem.scale)

    def direction(self, point, gradient, rows):
        problem, m, y = self._parts(rows, point)
        return problem.direction(m, y, gradient)

    def search(self, here, step, rows):
        problem, m, y = self._parts(rows, here.point)
        y, m, value = problem.search(y, m, here.value, here.gradient, step)
        # A dual value above the divergence of all measures proves infeasibility.
        value = np.where(-value > self._largest[rows], -np.inf, value)
        return y, value, np.hstack([m, y])


def _largest(x):
    """``max |x|`` of each row; NumPy is far faster over columns than short rows."""
    return np.ascontiguousarray(np.abs(x).T).max(axis=0, initial=0.0)


def _split(members, c):
    return np.flatnonzero(members[:c]), np.flatnonzero(members[c:])


def _solve_free(hessian, right, free):
    """Solve Newton's equation in some scaled variables; 0 in the others.

    ``hessian`` holds matrices, or diagonals.
    """
    if hessian.ndim == 2:
        return np.where(free, right / (hessian + _RIDGE), 0.0)
    c = hessian.shape[1]
    matrix = hessian * free[:, :, None]
    matrix *= free[:, None, :]
    matrix[:, np.arange(c), np.arange(c)] += np.where(free, _RIDGE, 1.0)
    return np.linalg.solve(matrix, (right * free)[:, :, None])[..., 0]


def _interval(low, high, shape, low_name, high_name):
    try:
        ends = [np.broadcast_to(np.asarray(end, float), shape) for end in (low, high)]
    except ValueError as error:
        raise ValueError(
            f"{low_name} and {high_name} must be broadcastable to shape {shape}."
        ) from error
    empty = ~(ends[0] <= ends[1])
    if empty.any():
        row, k = map(int, np.argwhere(empty)[0])
        raise ValueError(
            f"{low_name} must be a number of at most {high_name}; in column {k} of row "
            f"{row} they are {ends[0][row, k]:.10g} and {ends[1][row, k]:.10g}."
        )
    return ends
