"""What linear constraints can reach: why there is no solution, in figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, identity, issparse, vstack

# A programme that is missed by less proves nothing.
_CERTAIN = 1e-8
# Ends nearer to what is asked look like it in seven digits.
_HIDDEN = 1e-6
# Coefficients, with cells that are alike taken together, of the largest programme.
_LARGEST_PROGRAMME = 2**21
# What equations given are relaxed by, so that rounding does not contradict them.
_RELAXED = 1e-10
# Of more than twice as many cells so many are tried first, and how often more are.
_FEW, _ROUNDS = 1000, 8
# Gain of a cell by which it is at the wrong end of its range.
_GAIN = 1e-10
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Unmet:
    """An equation that a row does not meet, and why.

    Attributes
    ----------
    equation : int or None
        The last of the equations that contradict each other; None if all can be met,
        but were not in the steps allowed.
    given : tuple of int
        The other equations that contradict it; without any of them, it can be met.
    lower, upper : float
        What the equation asks for.
    least, most : float
        What it reaches within the ranges of its features, given these others.
    message : str
        If ``equation`` is None.

    See Also
    --------
    linear_projection : Rows to linear equations and ranges.
    LinearProjection : What a linear projection found.
    """

    equation: int | None
    given: tuple = ()
    lower: float = np.nan
    upper: float = np.nan
    least: float = np.nan
    most: float = np.nan
    message: str = ""

    def __str__(self):
        if self.equation is None:
            return self.message
        return self.described("Equation {}".format)

    def described(
        self,
        name: Callable[[int], str],
        given: Callable[[int], str] | None = None,
        ranges: str = "the ranges of its features",
    ) -> str:
        """In words: ``name(i)`` for equation i, ``given(i)`` for it with its values."""
        others = ""
        if self.given:
            others = " and with " + ", ".join(map(given or name, self.given))
        below = self.least > self.upper
        end, asked = (self.least, self.upper) if below else (self.most, self.lower)
        digits = 7 if abs(end - asked) > _HIDDEN * abs(end) else 10
        return (
            f"{name(self.equation)} asks for {span(self.lower, self.upper)}; within "
            f"{ranges}{others} it reaches "
            f"{span(self.least, self.most, digits)}."
        )


def span(low, high, digits=10):
    """An interval in words."""
    low_text, high_text = f"{low:.{digits}g}", f"{high:.{digits}g}"
    if low_text == high_text:
        return low_text
    if np.isinf(high):
        return "any value" if np.isinf(low) else f"{low_text} or more"
    return f"{high_text} or less" if np.isinf(low) else f"{low_text} to {high_text}"


def box_reach(coefficients, floor, ceiling):
    """Least and most of each equation, (n, c), over ranges (n, D) of the cells."""
    # Halves, which do not overflow, of a matrix that may be sparse.
    plus = coefficients / 2 + abs(coefficients) / 2
    minus = coefficients - plus
    infinite = np.isinf(ceiling)
    finite = np.where(infinite, 0.0, ceiling)
    least = floor @ plus.T + finite @ minus.T
    most = finite @ plus.T + floor @ minus.T
    if infinite.any():
        endless = infinite.astype(float)
        least = np.where(endless @ minus.T < 0, -np.inf, least)
        most = np.where(endless @ plus.T > 0, np.inf, most)
    return least, most


def unmet(coefficients, lower, upper, floor, ceiling, tol, max_iter, residual):
    """Why one row does not meet its equations: :class:`Unmet`."""
    least, most = box_reach(coefficients, floor[None], ceiling[None])
    size = np.maximum(largest_of_rows(coefficients), 1e-300)
    slack = _CERTAIN * np.maximum(size, np.where(np.isinf(lower), 0, np.abs(lower)))
    alone = np.flatnonzero((lower > most[0] + slack) | (upper < least[0] - slack))
    if len(alone):
        i = int(alone[0])
        return Unmet(i, (), lower[i], upper[i], least[0, i], most[0, i])
    programme = _Programme(coefficients, lower, upper, floor, ceiling)
    ended = f"Newton steps ended at a residual of {residual:.1e} > tol={tol:g}"
    if programme.n_entries > _LARGEST_PROGRAMME:
        message = (
            f"{max_iter} {ended}; to find out whether there is a solution, "
            f"{programme.n_entries} coefficients are too many."
        )
        return Unmet(None, message=message)
    clash = programme.contradiction()
    if clash is None:
        message = f"A solution exists, but max_iter={max_iter} {ended}."
        return Unmet(None, message=f"{message} Increase max_iter or tol.")
    *given, i = clash
    reached = programme.reach(i, given)
    return Unmet(i, tuple(given), lower[i], upper[i], *reached)


def largest_of_rows(coefficients):
    """Largest size of a coefficient (c,) of each equation."""
    if not coefficients.shape[1]:
        return np.zeros(coefficients.shape[0])
    found = abs(coefficients).max(axis=1)
    return found.toarray().reshape(-1) if issparse(found) else found


class _Programme:
    """Linear programmes over the cells of one row, scaled to about 1."""

    def __init__(self, coefficients, lower, upper, floor, ceiling):
        ends = np.stack([floor, ceiling, np.zeros_like(floor)])
        self._unit = np.abs(ends[np.isfinite(ends)]).max(initial=0.0)
        asked = np.concatenate([lower, upper])
        asked = np.abs(asked[np.isfinite(asked)]).max(initial=0.0)
        self._size = largest_of_rows(coefficients)
        largest = self._size.max(initial=0.0)
        self._unit = max(self._unit, asked / largest if largest else 0.0) or 1.0
        self._size[self._size == 0] = 1.0
        rows = csr_array(coefficients) * (1 / self._size)[:, None]
        bounds = np.column_stack([floor, ceiling]) / self._unit
        self._rows, self._bounds = _joined_cells(csr_array(rows), bounds)
        self.n_entries = self._rows.nnz
        self._lower = lower / (self._size * self._unit)
        self._upper = upper / (self._size * self._unit)

    def contradiction(self):
        """Equations that no cells meet together, none of them needless; or None."""
        missed, kept = self._violation(list(range(self._rows.shape[0])))
        if missed <= _CERTAIN:
            return None
        for i in list(kept):
            if i not in kept:
                continue
            fewer = [k for k in kept if k != i]
            missed, clashing = self._violation(fewer)
            if missed > _CERTAIN:
                kept = [k for k in fewer if k in clashing]
        return kept

    def reach(self, equation, given):
        """Least and most of one equation over the cells that meet others."""
        ends = []
        for sign in (1, -1):
            cost = sign * self._rows[[equation]].toarray()[0]
            found = self._solve(cost, given)
            value = found.fun if found.status == 0 else -np.inf
            # What equations give way by alone is nothing.
            value = 0.0 if abs(value) <= 10 * _RELAXED else value
            ends.append(sign * value * self._size[equation] * self._unit + 0.0)
        return tuple(ends)

    def _violation(self, equations):
        """Least sum of what is missed of some equations, and those to blame for it.

        Or less that is missed for certain, as prices of a few cells say (column
        generation: Dantzig and Wolfe, "Decomposition principle for linear programs",
        Operations Research, 1960).
        """
        bounds, (floor, ceiling) = self._bounds, self._bounds.T
        n = len(floor)
        if n > 2 * _FEW:
            some = np.arange(0, n, n // _FEW)
            # Each for many.
            many = n / len(some)
            found = self._solve(None, equations, some, many * bounds[some])
            missed, blamed, gain = self._priced(found, equations)
            others = floor.copy()
            if found.status == 0:
                others = np.repeat(found.x[: len(some)] / many, n // _FEW)[:n]
                others = np.clip(others, floor, ceiling)
            chosen = np.zeros(n, bool)
            chosen[some] = True
            for k in range(_ROUNDS):
                if missed > _CERTAIN:
                    return missed, blamed
                others[chosen], some = 0.0, np.flatnonzero(chosen)
                found = self._solve(None, equations, some, bounds[some], others)
                if found.status == 0 and found.fun <= _CERTAIN:
                    return found.fun, []
                missed, blamed, gain = self._priced(found, equations)
                wrong = (gain > _GAIN) & (others < ceiling)
                wrong |= (gain < -_GAIN) & (others > floor)
                wrong = np.flatnonzero(wrong & ~chosen)
                worst = np.argsort(-np.abs(gain[wrong]))[: _FEW * 2**k]
                chosen[wrong[worst]] = True
        found = self._solve(None, equations, slice(None), bounds)
        if found.status != 0:
            return np.inf, equations
        return found.fun, self._priced(found, equations)[1]

    def _priced(self, found, equations):
        """What is missed whatever the cells are, equations to blame, gains of cells.

        By the prices of a programme of some cells (weak duality).
        """
        ends = np.concatenate([-self._lower[equations], self._upper[equations]])
        asked, prices = np.isfinite(ends), np.zeros(len(ends))
        if found.status == 0:
            prices[asked] = np.clip(found.ineqlin.marginals, -1, 0)
        # Equations without a multiplier could be left out (Farkas).
        blamed = np.abs(prices).reshape(2, -1).max(axis=0) > _CERTAIN
        low, high = np.split(prices, 2)
        gain = self._rows[equations].T @ (high - low)
        gain[np.abs(gain) <= _GAIN] = 0.0
        floor, ceiling = self._bounds.T
        at = np.where(gain > 0, ceiling, floor)
        most = np.multiply(gain, at, out=np.zeros_like(gain), where=gain != 0).sum()
        missed = prices[asked] @ ends[asked] - most
        return missed, [i for i, to in zip(equations, blamed, strict=True) if to], gain

    def _solve(self, cost, equations, cells=slice(None), bounds=None, others=None):
        """Cells of least cost, or with no ``cost`` those that miss least."""
        rows = self._rows[equations]
        held = 0.0 if others is None else rows @ others
        rows, bounds = rows[:, cells], self._bounds if bounds is None else bounds
        right = [-self._lower[equations] + held, self._upper[equations] - held]
        right = np.concatenate(right)
        matrix = vstack([-rows, rows], format="csr")[np.isfinite(right)]
        right = right[np.isfinite(right)]
        if cost is None:
            m = len(right)
            matrix = hstack([matrix, -identity(m)], format="csr")
            cost = np.repeat([0.0, 1.0], [rows.shape[1], m])
            bounds = np.vstack([bounds, np.tile([0.0, np.inf], (m, 1))])
        else:
            right = right + _RELAXED
        system = {"A_ub": matrix, "b_ub": right} if len(right) else {}
        return linprog(cost, **system, bounds=bounds, method="highs", options=_OPTIONS)


def _joined_cells(rows, bounds):
    """Cells with the same coefficients as one, with the sums of their bounds."""
    rows.sort_indices()
    # Irrational sums tell columns apart.
    marks = np.sin(np.outer([1, 2], 1 + np.arange(rows.shape[0])) ** 2) @ rows
    _, first, cell = np.unique(marks, axis=1, return_index=True, return_inverse=True)
    joined = [np.bincount(cell.reshape(-1), end) for end in bounds.T]
    return rows[:, first], np.column_stack(joined)
