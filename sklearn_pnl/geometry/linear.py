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
without ends that are met, one Newton step is exact.
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

from .reach import Unmet, box_reach, largest_of_rows, unmet

_ARMIJO, _SLOPE = 1e-4, 0.9
# Where equations say the same twice a step is up to 1 / _RIDGE times too long.
_MAX_HALVINGS = 80
_MAX_RELEASES = 4
_NEARLY_FREE = 1e-4
# Added to the Hessian, as a share of what its diagonal is with no cell at an end.
_RIDGE = 1e-10
# Newton steps that are tried with no safeguard: enough for rows that move little.
_PLAIN = 8
# Steps after which a row that is not done is asked whether it can be.
_FEW_STEPS = 100
# Logs of cells relative to where they start go no farther than this.
_FAR = 600.0
# Rows times equations times cells worked on at once.
_BLOCK = 2**19
# Components are joined up to so many products a step.
_JOINED = 2**21
# Up to so many entries, all products of two equations are held at once.
_SMALL_PRODUCTS = 2**14
# What a row's value may rise by in rounding, as a share of its terms.
_ROUNDING = 1e-14


class _KullbackLeibler:
    """``m log(m / m_0) - m + m_0``."""

    # A step changes the log of a cell by at most this much.
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

    # Relative to where a cell starts, which its end may be far from.
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
    """Measures on linear constraints and what happened on the way.

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
    reasons : dict of int to Unmet
        By row that did not converge: which equation it was, and what it can reach.

    See Also
    --------
    linear_projection : Rows to linear equations and ranges.
    Unmet : Why equations cannot be met.
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
    n_reasons: int = 10,
) -> LinearProjection:
    r"""Measures that meet linear equations and inequalities, nearest to given ones.

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
        Range of each cell.
    divergence : {"kl", "chi2"}, default="kl"
        What is least: ``KL(m, measure)``, or ``sum (m - measure)**2 / (2 measure)``,
        which moves cells in proportion to their size and takes one step where no cell
        meets an end of its range. It keeps no sign but by ``floor``.
    tol : float, default=1e-9
        Wanted residual, as a share of the scale of each equation.
    max_iter : int, default=1000
        Most Newton steps.
    n_reasons : int, default=10
        Rows that it is found out for why they cannot be met, by linear programmes.

    Returns
    -------
    LinearProjection
        Rows that no measure can satisfy are in ``reasons``; the caller decides.

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
    todo = np.flatnonzero(~p.out_of_reach(tol).any(axis=1))
    # Rows that take long may be impossible, which linear programmes tell sooner.
    for budget in (min(_FEW_STEPS, max_iter), max_iter):
        p.solve_rows(todo, m, y, n_iter, tol, budget)
        residual = p.residual(m, y)
        unsolved = np.flatnonzero(~(residual <= tol)).tolist()
        unknown = [row for row in unsolved if row not in reasons]
        for row in unknown[: max(0, n_reasons - len(reasons))]:
            ends = (end[row] for end in (p.lower, p.upper, p.floor, p.ceiling))
            shown = tol, max_iter, residual[row]
            reasons[row] = unmet(p.coefficients, *ends, *shown)
        known = [k for k, why in reasons.items() if why.equation is not None]
        todo = np.setdiff1d(np.intersect1d(todo, unsolved), known)
    told = {}
    for row in unsolved:
        missed = Unmet(None, message=f"Not met by {residual[row]:.1e}.")
        told[row] = reasons.get(row, missed)
    return LinearProjection(m, y, residual, n_iter, residual <= tol, told)


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
        floor = np.maximum(floor, 0.0)
        usual = np.clip(start, floor, ceiling) @ abs(a).T
        ends = [np.where(np.isfinite(e), np.abs(e), 0.0) for e in (lower, upper)]
        scale = np.maximum.reduce([usual, *ends])
        scale[scale == 0] = 1.0
        return cls(start, floor, ceiling, lower, upper, scale, a, divergence)

    def rows(self, rows):
        of_cells = self.start, self.floor, self.ceiling
        arrays = (x[rows] for x in (*of_cells, self.lower, self.upper, self.scale))
        return _Problem(*arrays, self.coefficients, self.divergence)

    def part(self, equations, cells):
        """Some equations and the cells that they are about."""
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
                some = rows[first : first + step]
                at = np.ix_(some, cells), np.ix_(some, equations)
                m[at[0]], y[at[1]], steps = part.rows(some).solve(tol, max_iter)
                n_iter[some] = np.maximum(n_iter[some], steps)

    def components(self):
        """Pairs of equations and cells that nothing else is connected to.

        Equations that share no cell with another are one part: its Hessian is diagonal.
        Those about no cell are left out, as nothing could be done for them.
        Small parts are joined: NumPy spends more on calls than on products there.
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
        joined = np.zeros(c + d, bool)
        for k in np.setdiff1d(label[:c], np.flatnonzero(alone | empty)):
            members = label == k
            both = joined | members
            m = np.count_nonzero(both[:c])
            if joined.any() and len(self.start) * m**2 * both[c:].sum() > _JOINED:
                yield _split(joined, c)
                both = members
            joined = both
        if joined.any():
            yield _split(joined, c)

    @cached_property
    def has_intervals(self):
        """Whether not all constraints are equations."""
        return bool(np.any(self.lower < self.upper))

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
        """What is missing of each equation, with the sign in which to lower ``y``.

        0 where the multiplier is 0 and the interval holds.
        """
        values = m @ self.coefficients.T
        if not self.has_intervals:
            return values - self.lower
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
        out = self.plain_newton(tol, min(_PLAIN, max_iter))
        rows = np.flatnonzero(out[2] < 0)
        if not len(rows):
            return out
        out[2][rows] = 0
        p = self.rows(rows) if len(rows) < len(self.start) else self
        y = np.zeros(p.lower.shape)
        m, value, _ = p.primal(y)
        largest = p.largest_divergence()
        for _ in range(max_iter):
            gradient = p.gradient(m, y)
            missing = _largest(gradient / p.scale)
            # The dual is never above the divergence of a solution: there is none.
            go = (missing > tol) & (-value <= largest)
            if not go.all():
                out[0][rows[~go]], out[1][rows[~go]] = m[~go], y[~go]
                rows, y, m, value, gradient, largest = (
                    array[go] for array in (rows, y, m, value, gradient, largest)
                )
                p = p.rows(go)
                if not len(rows):
                    return out
            step = p.direction(m, y, gradient)
            y, m, value = p.search(y, m, value, gradient, step)
            out[2][rows] += 1
        out[0][rows], out[1][rows] = m, y
        return out

    def plain_newton(self, tol, max_iter):
        """What :meth:`solve` returns; -1 steps for rows that it must be used for.

        The dual is convex, so that wherever its gradient is 0 is the answer.
        """
        n, y = len(self.start), np.zeros(self.lower.shape)
        m, n_iter = np.empty_like(self.start), np.full(n, -1)
        if self.has_intervals:
            return m, y, n_iter
        for k in range(max_iter + 1):
            m = self.divergence.cells(self.start, y @ self.coefficients)
            np.clip(m, self.floor, self.ceiling, out=m)
            gradient = self.gradient(m, y)
            going = ~(_largest(gradient / self.scale) <= tol)
            n_iter[~going & (n_iter < 0)] = k
            if k == max_iter or not going.any():
                return m, y, n_iter
            y += self.direction(m, y, gradient) * going[:, None]

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
        if self.has_intervals:
            step = self._free_step(hessian, right, y, gradient, root)
        else:
            step = _solve_free(hessian, right, np.ones(y.shape, bool)) * root
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
        # One product for all rows, where one a row would be small.
        products = (a[:, None, :] * a).reshape(c * c, d)
        return (weight @ products.T).reshape(-1, c, c)

    def _free_step(self, hessian, right, y, gradient, root):
        """Newton's step in those multipliers that may move."""
        interval = self.lower < self.upper
        # Close to 0 and on the way there: let go of, or steps only halve it.
        size = np.abs(y) * self.largest
        ending = interval & (y * gradient > 0) & (size <= _NEARLY_FREE)
        free = ((y != 0) | (gradient != 0)) & ~ending
        for _ in range(_MAX_RELEASES):
            step = _solve_free(hessian, right, free) * root
            # At 0 it would leave to the side where the other end counts.
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
            found, reached, slack = p.primal(trial)
            moved = trial - y[trying]
            gain = np.einsum("ij,ij->i", gradient[trying], moved)
            rise = reached - value[trying] - _ARMIJO * gain
            ok = rise <= -slack
            # Where rounding hides the value, the slope tells: steps across a kink
            # would go to and fro.
            if not ok.all():
                slope = np.einsum("ij,ij->i", p.gradient(found, trial), moved)
                ok |= (rise <= slack) & (slope <= _SLOPE * np.abs(gain))
            # Multipliers that stop no longer balance the others.
            change = _largest(moved @ self.coefficients)
            ok &= change <= 2 * self.divergence.longest
            done = trying[ok]
            new[0][done], new[1][done], new[2][done] = trial[ok], found[ok], reached[ok]
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
        if not self.has_intervals:
            return trial
        sign = np.where(y != 0, np.sign(y), -np.sign(gradient))
        wrong = (np.sign(trial) * sign < 0) & (self.lower < self.upper)
        trial[wrong] = 0.0
        return trial


def _largest(x):
    """``max |x|`` of each row; NumPy is far faster over columns than short rows."""
    return np.ascontiguousarray(np.abs(x).T).max(axis=0, initial=0.0)


def _split(members, c):
    return np.flatnonzero(members[:c]), np.flatnonzero(members[c:])


def _solve_free(hessian, right, free):
    """Newton's equation in some of the variables, which are scaled; 0 in the rest.

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
    ends = []
    for end, name in ((low, low_name), (high, high_name)):
        end = np.asarray(end, dtype=np.float64)
        try:
            end = np.broadcast_to(end, shape)
        except ValueError:
            raise ValueError(
                f"{name} must be broadcastable to shape {shape}; got {end.shape}."
            ) from None
        if np.isnan(end).any():
            raise ValueError(f"{name} holds NaN.")
        ends.append(end)
    empty = ends[0] > ends[1]
    if empty.any():
        row, k = map(int, np.argwhere(empty)[0])
        raise ValueError(
            f"{low_name} is above {high_name} in column {k} of row {row}: "
            f"{ends[0][row, k]:.10g} > {ends[1][row, k]:.10g}."
        )
    return ends
