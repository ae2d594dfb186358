"""Reachable ranges of linear functions of cells, and conflicts of constraints.

:func:`box_reach` uses only the bounds of the cells. :class:`Program` also uses linear
constraints and integers, and explains by a :class:`Conflict` why constraints cannot be
satisfied together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from .highs import solved

# The smallest tolerance that HiGHS accepts, in units of the cells.
TOLERANCES = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
# A limit in seconds would make results depend on the machine.
_INTEGER = {"mip_rel_gap": 0.0, "mip_max_nodes": 2000}
# Largest distance of an integer from the base, because unbounded programmes may loop.
_MOST_STEPS = 1e6
_INFEASIBLE, _UNBOUNDED = 2, 3
# Largest number of variables of the simplex method.
_MOST_OF_SIMPLEX = 2000


def span(low, high, digits=10):
    """Format an interval as text."""
    low_text, high_text = f"{low:.{digits}g}", f"{high:.{digits}g}"
    if low_text == high_text:
        return low_text
    if np.isinf(high):
        return "any value" if np.isinf(low) else f"{low_text} or more"
    return f"{high_text} or less" if np.isinf(low) else f"{low_text} to {high_text}"


def nearest_values(cells, values):
    """State one or two values that are nearest to a request."""
    noun, verb = ("value", "is") if len(values) == 1 else ("values", "are")
    texts = " and ".join(f"{value:.10g}" for value in values)
    return f"nearest {noun} for {cells} {verb} {texts}"


def box_reach(coefficients, floor, ceiling):
    """Return minimum and maximum (n, c) of each equation over bounds (n, D)."""
    # Large numbers replace infinity, because 0 times infinity is NaN.
    floor, ceiling = np.maximum(floor, -1e200), np.minimum(ceiling, 1e200)
    plus = (abs(coefficients) + coefficients) / 2
    minus = coefficients - plus
    least = floor @ plus.T + ceiling @ minus.T
    most = ceiling @ plus.T + floor @ minus.T
    least[least < -1e150], most[most > 1e150] = -np.inf, np.inf
    return least, most


def shortest(value, low, high):
    """Write a number near a value with as few digits as an interval allows."""
    for digits in range(6, 17):
        text = f"{value:.{digits}g}"
        if low <= float(text) <= high:
            return text
    return f"{value:.17g}"


def inward(low, high, digits=10):
    """Format an interval as text whose bounds lie inside the interval."""
    bounds = low, high
    if np.isfinite(bounds).all() and f"{low:.{digits}g}" != f"{high:.{digits}g}":
        rounding = ROUND_CEILING, ROUND_FLOOR
        bounds = (
            float(Context(digits, way).create_decimal_from_float(float(bound)))
            for bound, way in zip(bounds, rounding, strict=True)
        )
    return span(*bounds, digits)


@dataclass(frozen=True)
class Conflict:
    """A constraint that contradicts other constraints and the bounds of the cells.

    Attributes
    ----------
    k : int
        Kind of the constraint.
    below, above : float
        The nearest reachable values below and above the requested interval, subject to
        the other constraints. NaN if there is no reachable value.
    least, most : float
        Smallest and largest reachable value, subject to the other constraints.
    others : list of int
        Other kinds that contradict the constraint, together with the bounds. Each of
        the kinds is needed for the contradiction.
    is_only : bool
        Whether all other constraints can be satisfied together. If not, ``below``,
        ``above``, ``least`` and ``most`` are subject to constraints of earlier kinds.
    """

    k: int
    below: float
    above: float
    least: float
    most: float
    others: list
    is_only: bool = True

    def statement(self, cells, verb="have"):
        """State the reachable values: a range, or the values next to the request."""
        if len(self.nearest) == 1 and self.nearest[0] in (self.least, self.most):
            return f"{cells} can only {verb} {inward(self.least, self.most)}"
        return f"the {nearest_values(cells, self.nearest)}"

    def request(self, requested, room):
        """Return the reachable value nearest to a requested value, and a short text.

        Parameters
        ----------
        requested : float
            The requested value.
        room : float
            Largest error of the value in the text.
        """
        found = min(self.nearest, key=lambda value: abs(value - requested))
        is_bound = found in (self.least, self.most)
        low, high = (self.least, self.most) if is_bound else (found, found)
        return found, shortest(found, low - room, high + room)

    @property
    def nearest(self):
        """The reachable values next to the requested interval."""
        return [value for value in (self.below, self.above) if not np.isnan(value)]


class Program:
    """Linear constraints ``lower <= a @ x <= upper`` of bounded cells.

    Parameters
    ----------
    a : ndarray or sparse array of shape (c, D)
        Coefficients.
    lower, upper : ndarray of shape (c,)
        Bounds of the constraints.
    floor, ceiling : ndarray of shape (D,)
        Bounds of the cells, which may be infinite.
    base, unit : ndarray of shape (D,)
        Variables are distances of the cells from ``base``, in units of ``unit``.
    integers : ndarray of bool of shape (D,), default=None
        Mask of the cells whose variables are integers.
    kinds : ndarray of int of shape (c,), default=None
        Kinds of the constraints. Constraints of one kind are used or left out together.
        None gives each constraint its own kind.
    room : float or ndarray of shape (c,), default=0
        Permitted violation of the constraints.
    """

    def __init__(
        self,
        a,
        lower,
        upper,
        floor,
        ceiling,
        base,
        unit,
        integers=None,
        kinds=None,
        room=0.0,
    ):
        self.rows = csr_array(a)
        scaled = self.rows * unit
        self.sizes = np.maximum(abs(scaled).max(axis=1).toarray().ravel(), 1e-300)
        self.start = self.rows @ base
        self.a = csr_array(scaled / self.sizes[:, None])
        self.exact, self.limits = (lower, upper), (floor, ceiling)
        self.lower, self.upper = lower - room, upper + room
        integers = np.zeros(len(base), bool) if integers is None else integers
        low, high = (floor - base) / unit, (ceiling - base) / unit
        low = np.where(integers, np.maximum(np.ceil(low - 1e-6), -_MOST_STEPS), low)
        high = np.where(integers, np.minimum(np.floor(high + 1e-6), _MOST_STEPS), high)
        self.bounds, self.integers = np.column_stack([low, high]), integers
        self.kinds = np.arange(len(lower)) if kinds is None else kinds

    def best(self, cost, used, lower, upper):
        """Return the minimum of ``cost @ variables``, and the kinds that bind it.

        Parameters
        ----------
        cost : ndarray of shape (D,)
            Cost of the variables.
        used : ndarray of bool of shape (c,)
            Constraints that must be satisfied.
        lower, upper : ndarray of shape (c,)
            Bounds of the constraints.

        Returns
        -------
        value : float
            Infinity if the constraints are infeasible, minus infinity if the minimum is
            unbounded, and NaN if HiGHS stops without a result.
        binding : ndarray of int
            Kinds of the binding constraints.
        """
        scaled = ((bound - self.start) / self.sizes for bound in (lower, upper))
        below, above = (
            np.where(used, bound, free)
            for bound, free in zip(scaled, (-np.inf, np.inf), strict=True)
        )
        equal = used & (lower == upper)
        sides = [(1, above, np.flatnonzero(~equal & np.isfinite(above)))]
        sides += [(-1, below, np.flatnonzero(~equal & np.isfinite(below)))]
        equal = np.flatnonzero(equal)
        # With tolerances below the defaults, the integer programme may loop.
        options = _INTEGER if self.integers.any() else TOLERANCES
        # The simplex method takes ten times as long for many variables.
        is_large = len(cost) > _MOST_OF_SIMPLEX and not self.integers.any()
        found = solved(
            linprog,
            cost,
            A_ub=vstack([sign * self.a[rows] for sign, _, rows in sides], "csr"),
            b_ub=np.concatenate([sign * bound[rows] for sign, bound, rows in sides]),
            A_eq=self.a[equal],
            b_eq=below[equal],
            bounds=self.bounds,
            integrality=self.integers.astype(int),
            method="highs-ipm" if is_large else "highs",
            options=options,
        )
        none = np.empty(0, int)
        if found.status == 0:
            rows = np.concatenate([sides[0][2], sides[1][2], equal])
            prices = np.concatenate([found.ineqlin.marginals, found.eqlin.marginals])
            return found.fun, np.unique(self.kinds[rows[np.abs(prices) > 1e-9]])
        return {_INFEASIBLE: np.inf, _UNBOUNDED: -np.inf}.get(
            found.status, np.nan
        ), none

    def excludes(self, kinds):
        """Check whether no cells satisfy all constraints of the given kinds."""
        used = np.isin(self.kinds, kinds)
        nothing = np.zeros(len(self.integers))
        return self.best(nothing, used, self.lower, self.upper)[0] == np.inf

    def conflict(self, n_fits=0):
        """Find a constraint that contradicts all other constraints.

        It is the first constraint that contradicts constraints of earlier kinds, unless
        only another constraint of the contradiction can be satisfied by a change of its
        bounds.

        Parameters
        ----------
        n_fits : int, default=0
            Number of the first kinds that can be satisfied together.

        Returns
        -------
        conflict : Conflict or None
            None if all constraints can be satisfied, if HiGHS stops without a result,
            or if the kind has several constraints.
        """
        kinds = np.arange(self.kinds.max(initial=-1) + 1)
        fits, fails = n_fits, len(kinds)
        if not self.excludes(kinds):
            return None
        while fails - fits > 1:
            middle = (fits + fails) // 2
            if self.excludes(kinds[:middle]):
                fails = middle
            else:
                fits = middle
        if fails == len(kinds) or not self.excludes(np.delete(kinds, fits)):
            return self._conflict_of(fits, np.delete(kinds, fits))
        first = self._conflict_of(fits, kinds[:fits])
        for k in reversed(first.others) if first else ():
            if not self.excludes(np.delete(kinds, k)):
                return self._conflict_of(k, np.delete(kinds, k))
        return first and replace(first, is_only=False)

    def _conflict_of(self, k, used):
        """Return the conflict of kind k with the ``used`` kinds, or None."""
        row = np.flatnonzero(self.kinds == k)
        if len(row) != 1:
            return None
        is_used = np.isin(self.kinds, used)
        # The bounds of the range without room have no rounding errors, so try it first.
        for lower, upper in (self.exact, (self.lower, self.upper)):
            *values, binding = self._range(row[0], is_used, lower, upper)
            if np.isfinite(values[:2]).any():
                break
        others = used if self.integers.any() else binding
        return Conflict(int(k), *values, self._needed(k, others))

    def _range(self, row, used, lower, upper):
        """Return the values that a constraint can have with the ``used`` constraints.

        The result is ``below``, ``above``, ``least``, ``most`` of :class:`Conflict`,
        and the kinds that bind them.
        """
        size, start = self.sizes[row], self.start[row]
        form = self.a[[row]].toarray()
        # Clipping makes the range of a single column equal to its bounds.
        bounds = np.ravel(box_reach(self.rows[[row]].toarray(), *self.limits))

        def extreme(sign, used, lower, upper):
            value, kinds = self.best(sign * form[0], used, lower, upper)
            value = start + sign * size * value
            if not np.isfinite(value):
                return value, kinds
            # The solver is exact to 1e-10 of a unit.
            value = 0.0 if abs(value) <= 1e-10 * size else value
            return np.clip(value, *bounds), kinds

        least, from_below = extreme(1, used, lower, upper)
        most, from_above = extreme(-1, used, lower, upper)
        below = most if most < lower[row] else np.nan
        above = least if least > upper[row] else np.nan
        if self.integers.any():
            # For integers, values between minimum and maximum may be unreachable, too.
            used = used | (self.kinds == self.kinds[row])
            beyond_lower, beyond_upper = lower.copy(), upper.copy()
            beyond_lower[row], beyond_upper[row] = -np.inf, lower[row]
            below = extreme(-1, used, beyond_lower, beyond_upper)[0]
            beyond_lower[row], beyond_upper[row] = upper[row], np.inf
            above = extreme(1, used, beyond_lower, beyond_upper)[0]
            below, above = (x if np.isfinite(x) else np.nan for x in (below, above))
        binding = from_above if np.isnan(above) else from_below
        return below, above, least, most, binding

    def _needed(self, k, others):
        """Reduce ``others`` to the kinds that are needed to contradict kind ``k``."""
        others = [*map(int, others)]
        if not self.excludes([*others, k]):
            return others
        for kind in others.copy():
            rest = [other for other in others if other != kind]
            if self.excludes([*rest, k]):
                others = rest
        return others
