r"""Projection of a set of rows onto sums over all of them.

A quadratic programme (:mod:`.quadratic`) moves all rows together, so that each row
satisfies its constraints and all rows have the sums. Violated inequalities become
constraints if the sums allow for it.

Then each row is rounded to its resolution, and the rows nearest to another multiple
move by a step until the sums are exact. If no such moves exist, an integer programme
rounds all rows together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..columns.constraints import ALMOST, EPS, TOL, LinearConstraints
from ..columns.equalities import echelon
from ..columns.rounding import least_change, multiples, off_steps, on_steps
from ..geometry.convex.integers import nearest_in_steps
from ..geometry.convex.reach import Program
from .infeasible_requests import explain_infeasible, explain_infeasible_totals
from .projection import ROUNDS_OF_INEQUALITIES, round_rows
from .quadratic import (
    Solution,
    joint_bounds,
    joint_coefficients,
    project_jointly,
)

# Largest number of cells of an integer programme. In larger sets, the programme changes
# a part of the rows.
_MOST_CELLS = 20_000
# Largest number of nodes of an integer programme times the number of its cells.
_MOST_WORK = 40_000
# Share of the tolerances by which a request may be infeasible.
_PERMITTED = 0.5


class Sums(LinearConstraints):
    """Constraints on the sum of all rows."""

    def of(self, rows):
        """Compute the sums (k,) over rows (n, D), without missing cells."""
        return self.coefficients @ np.nansum(rows, axis=0, dtype=np.float64)

    def sizes(self, rows):
        """Compute the sums (k,) of absolute terms, at least the range of a term."""
        cells = np.nansum(np.abs(rows), axis=0, dtype=np.float64)
        return np.maximum(np.abs(self.coefficients) @ cells, self.scale)

    def share_missed(self, rows):
        """Compute the residuals as shares of the sums of absolute terms."""
        with np.errstate(over="ignore"):
            return np.abs(self.missing(self.of(rows))) / self.sizes(rows)

    def tolerance(self, precision):
        """Return the tolerance of shares: 1e-9, and the rounding of dtypes."""
        used = self.coefficients.any(axis=0)
        return TOL + 4 * precision[used].max(initial=0)


def project_to_totals(rows, sums, feasible, *, fixed=False, avoid=False, offset=1.0):
    """Project rows onto sums over all of them, in the chi-square distance.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Missing cells are NaN and remain NaN.
    sums : Sums
    feasible : FeasibleSet
        The constraints of each row. Orders may be violated if the sums require it.
    fixed, avoid : ndarray of bool of shape (n, D) or (D,), default=False
        Fixed cells do not move. Cells in ``avoid``, and columns that are constant in
        the data, move only if the sums require it.
    offset : float, default=1.0
        With a larger offset, large values are moved less before small values.

    Returns
    -------
    ndarray of shape (n, D)
        Values are rounded to the resolution of their columns if the sums allow for it.

    Raises
    ------
    Infeasibility
        If no rows have the sums. The message states which sums can be reached.
    RuntimeError
        If the solver fails, although the request is feasible.
    """
    fixed = fixed | np.isnan(rows)
    avoid = fixed | avoid | (feasible.columns.ranges == 0)
    for still in (avoid, fixed) if (avoid & ~fixed).any() else (fixed,):
        problem = TotalsProblem.of(rows, sums, feasible, still, offset)
        found = problem.nearest()
        if found.is_solved:
            break
    else:
        # Rounding can make a request at the edge of the feasible set infeasible.
        found = problem.widened().nearest()
    if not found.is_solved:
        raise explain_infeasible_totals(problem, found)
    moved = problem.rounded(problem.in_order(found.value))
    if not problem.has_sums(moved, exact=True):
        raise explain_infeasible_totals(problem, replace(found, value=moved))
    return np.where(problem.gaps, np.nan, moved)


@dataclass(frozen=True)
class TotalsProblem:
    """Rows (n, D) to be moved, their bounds, weights and constraints.

    Attributes
    ----------
    start, weights, low, high : ndarray of shape (n, D)
        Cells of weight 0 do not move.
    gaps : ndarray of bool of shape (n, D)
        Missing cells, which are 0.
    set : FeasibleSet
        Without constraints of one column, which are bounds.
    system : LinearConstraints
        The constraints of each row.
    sums : Sums
    """

    start: NDArray
    weights: NDArray
    low: NDArray
    high: NDArray
    gaps: NDArray
    set: Any
    system: LinearConstraints
    sums: Sums

    @classmethod
    def of(cls, rows, sums, feasible, still, offset):
        """Build the problem of rows with cells that stay ``still`` (n, D)."""
        gaps = np.isnan(rows)
        start = np.where(gaps, 0.0, rows)
        low, high, part = feasible.split_bounds(len(rows))
        cross = (low > high).any(axis=1)
        if cross.any():
            raise explain_infeasible(rows, cross, feasible)
        stay = np.where(gaps, 0.0, np.clip(start, low, high))
        low, high = (np.where(still, stay, bound) for bound in (low, high))
        weights = part.weights(start, still, offset)
        system = part.system(gaps=gaps)
        return cls(start, weights, low, high, gaps, part, system, sums)

    def keeps(self, rows):
        """Return the mask (n,) of the rows within their bounds and constraints."""
        inside = (rows >= self.low) & (rows <= self.high)
        return inside.all(axis=1) & ~self.system.violations(rows, inside=False).any(
            axis=1
        )

    def has_sums(self, rows, exact=False):
        """Check whether rows have the sums; sums of integers ``exact`` on request."""
        off = self.sums.share_missed(rows) > self.tol
        if exact:
            floats = ~self.set.columns.is_integer
            of_integers = ~self.sums.coefficients[:, floats].any(axis=1)
            missed = np.abs(self.sums.missing(self.sums.of(rows)))
            off |= of_integers & (missed > ALMOST)
        return not off.any()

    def is_feasible(self, rows, exact=False):
        """Check whether rows have the sums and satisfy the constraints of each row."""
        return self.has_sums(rows, exact) and bool(self.keeps(rows).all())

    @property
    def tol(self):
        """The tolerance of the sums, as a share of their terms."""
        return self.sums.tolerance(self.set.columns.table.precision)

    # --- moves of all rows ----------------------------------------------------------

    def nearest(self):
        """Project the start onto the sums and constraints."""
        if self.is_feasible(self.start, exact=True):
            return Solution(self.start, "solved")
        found = project_jointly(
            self.start, self.weights, self.system, self.low, self.high, self.sums
        )
        if found.is_solved and not self.is_feasible(found.value):
            return Solution(found.value, "failed", "the solution violates a constraint")
        return found

    @property
    def rooms(self):
        """Permitted violations of the constraints (k,) and of the sums (s,)."""
        sums = self.sums
        finite = (np.nan_to_num(np.abs(e), posinf=0) for e in (sums.lower, sums.upper))
        terms = np.maximum.reduce([sums.scale, *finite])
        return _PERMITTED * TOL * self.system.scale, _PERMITTED * self.tol * terms

    def widened(self):
        """Return the problem with intervals that include the permitted violations."""
        system, sums = (
            replace(part, lower=part.lower - room, upper=part.upper + room)
            for part, room in zip((self.system, self.sums), self.rooms, strict=True)
        )
        return replace(self, system=system, sums=sums)

    def holding(self, rows, columns):
        """Return the problem, with a mask (D,) of columns that hold values of rows."""
        return replace(
            self,
            start=np.where(columns, rows, self.start),
            weights=np.where(columns, 0.0, self.weights),
            low=np.where(columns, rows, self.low),
            high=np.where(columns, rows, self.high),
        )

    def in_order(self, moved):
        """Solve with violated inequalities as constraints, if the sums allow for it."""
        relations = self.set.relations
        inequalities = np.zeros(len(relations.inequalities), bool)
        for _ in range(ROUNDS_OF_INEQUALITIES):
            broken = inequalities | relations.disorders(moved, self.gaps).any(axis=0)
            if (broken == inequalities).all():
                break
            inequalities = broken
            found = replace(
                self, system=self.set.system(inequalities, self.gaps)
            ).nearest()
            if not found.is_solved:
                break
            moved = found.value
        return moved

    # --- columns on steps -----------------------------------------------------------

    def rounded(self, moved):
        """Round rows to their resolution, so that sums and constraints are kept."""
        columns = self.set.columns
        if not (columns.steps > 0).any():
            return moved
        for part in self.set.resolutions():
            rows = replace(self, set=part).rounded_once(moved)
            if self.is_feasible(rows, exact=True):
                return rows
        # Columns without resolution, or else all non-integer columns, compensate.
        for stays in (columns.steps > 0, columns.is_integer):
            held = np.where(self.keeps(rows)[:, None] | columns.is_integer, rows, moved)
            found = self.holding(held, stays).nearest()
            if found.is_solved:
                return found.value
        return rows

    def rounded_once(self, moved):
        """Round rows to the resolution of the feasible set, or to its steps."""
        limits = self.low, self.high, self.gaps, self.weights == 0
        rows, broken = round_rows(moved, self.set, *limits)
        if not broken.any():
            rows = self.stepped(rows, moved)
        if self.is_feasible(rows, exact=True):
            return rows
        near = self.integer_programme(moved, rows, broken)
        return rows if near is None else near

    def stepped(self, rows, moved):
        """Move rows by steps until the sums are reached, one sum after the other."""
        moves = self.unit_moves()
        changes = moves @ self.sums.coefficients.T
        order = np.argsort(np.count_nonzero(changes, axis=0), kind="stable")
        # An earlier sum may leave no room for a later sum: try both orders.
        for turn in (order, order[::-1]):
            new, done = rows.copy(), []
            for k in turn:
                # A usable move does not change the sums that are done.
                usable = (changes[:, k] != 0) & ~changes[:, done].any(axis=1)
                if usable.any():
                    size = np.where(usable, np.abs(changes[:, k]), np.inf)
                    finest = int(np.argmin(size))
                    self.step_to(k, moves[finest], changes[finest, k], new, moved)
                done.append(k)
            if self.has_sums(new, exact=True):
                break
        return new

    def unit_moves(self):
        """Return moves (m, D) by a step in a free column and its dependent columns."""
        steps, kept = self.set.columns.sizes, self.set.system()
        a = kept.coefficients[kept.is_equality]
        # Prefer dependent columns without resolution, then columns without sums.
        is_summed = self.sums.coefficients.any(axis=0)
        ranks = np.where(steps == 0, 0, np.where(is_summed, 2, 1))
        basis, pivots = echelon(a, np.ones(len(steps)), ranks)
        free = np.setdiff1d(np.flatnonzero(steps), pivots)
        moves = np.diag(steps)[free]
        moves[:, pivots] = -(basis[:, free] * steps[free]).T
        stepped = steps > 0
        off = off_steps(moves[:, stepped], steps[stepped])
        return moves[(off <= ALMOST).all(axis=1)]

    def step_to(self, k, move, change, rows, moved):
        """Move rows by at most a step each, in place, until sum k is reached.

        The rows that move least are chosen. If too few rows can move, the sum is
        missed.
        """
        bounds = self.sums.lower, self.sums.upper
        lower, upper = (bound[[k]] - self.sums.of(rows)[k] for bound in bounds)
        n_steps = least_change(*np.sort([lower / change, upper / change], axis=0))[0]
        columns = np.flatnonzero((move != 0) & (self.set.columns.steps > 0))
        unit, trial = self.set.columns.steps[columns], rows + np.sign(n_steps) * move
        trial[:, columns] = on_steps(trial[:, columns], unit)
        breaks = (self.set.relations.disorders(x, self.gaps) for x in (trial, rows))
        ok = self.keeps(trial) & ~np.greater(*breaks).any(axis=1)
        weights = np.where(self.weights > 0, self.weights, np.inf)
        farther = ((trial - moved) ** 2 - (rows - moved) ** 2) / weights
        cost = np.where(ok, farther.sum(axis=1), np.inf)
        nearest = np.argsort(cost, kind="stable")[: int(abs(n_steps))]
        nearest = nearest[np.isfinite(cost[nearest])]
        rows[nearest] = trial[nearest]

    def integer_programme(self, moved, rows, broken):
        """Round moved rows together, such that sums and constraints are satisfied.

        Returns
        -------
        rows : ndarray of shape (n, D) or None
            None if no such rows were found.
        """
        n, d = moved.shape
        most = max(1, _MOST_CELLS // d)
        # Rows that are broken, and then rows that are spread over the set.
        spread = np.arange(n) * (np.sqrt(5) - 1) / 2 % 1
        chosen = np.sort(np.lexsort((spread, ~broken))[:most])
        columns, sums = self.set.columns, self.sums
        inequalities = ~self.set.relations.disorders(moved, self.gaps).any(axis=0)
        system = self.set.system(inequalities, self.gaps).take_rows(chosen)
        others = sums.of(np.delete(rows, chosen, axis=0))
        m, free = len(chosen), self.weights[chosen] > 0
        sums = replace(sums, lower=sums.lower - others, upper=sums.upper - others)
        a, bounds = joint_coefficients(m, system, sums), joint_bounds(m, system, sums)
        target = moved[chosen].ravel()
        limits = [
            np.where(free, bound[chosen], moved[chosen]).ravel()
            for bound in (self.low, self.high)
        ]
        sizes = np.sqrt(np.where(free, self.weights[chosen], 1.0)).ravel()
        # Cells that do not move may be on no multiple. Cells of broken rows need no
        # multiple, unless they are integers.
        stays = ~free | (broken[chosen][:, None] & ~columns.is_integer)
        steps = np.where(stays, 0.0, columns.steps).ravel()
        nodes = max(20, _MOST_WORK // len(target))
        for reach in (1, 4, 100):
            near = nearest_in_steps(
                target, sizes, a, bounds, limits, steps, reach, nodes
            )
            if near is None:
                continue
            near = np.where(steps > 0, multiples(near, np.maximum(steps, EPS)), near)
            result = rows.copy()
            result[chosen] = near.reshape(m, d)
            return result
        return None

    # --- why not --------------------------------------------------------------------

    def accepts(self, k, value):
        """Check whether rows with the value of sum k, and all other sums, are found."""
        lower, upper = self.sums.lower.copy(), self.sums.upper.copy()
        lower[k] = upper[k] = value
        sums = replace(self.sums, lower=lower, upper=upper)
        problem = replace(self, sums=sums)
        found = problem.nearest()
        return found.is_solved and problem.has_sums(
            problem.rounded(problem.in_order(found.value)), exact=True
        )

    def program(self, integers=False):
        """Build a linear programme on the sums over rows with the same feasible set.

        Parameters
        ----------
        integers : bool, default=False
            Whether sums of integer columns are integers.
        """
        system, sums, n = self.system, self.sums, len(self.start)
        bounds = system.lower, system.upper
        bounds = [np.broadcast_to(bound, (n, len(system))) for bound in bounds]
        keys = np.hstack([self.low, self.high, *bounds])
        group = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        shape = group.max() + 1, n
        members = csr_array((np.ones(n), (group, np.arange(n))), shape=shape)
        sizes = members.sum(axis=1)[:, None]
        low, high, lower, upper, base = (
            members @ x for x in (self.low, self.high, *bounds, self.start)
        )
        columns = self.set.columns
        is_integer = np.broadcast_to(columns.is_integer & integers, low.shape)
        unit = sizes * np.where(columns.ranges > 0, columns.ranges, 1.0)
        unit = np.where(is_integer, columns.steps, unit)
        base = np.clip(base, low, high)
        base = np.where(is_integer, np.rint(base / unit) * unit, base)
        kinds = np.tile(np.arange(len(system)), shape[0])
        of_rows, of_sums = self.rooms
        return Program(
            joint_coefficients(shape[0], system, sums),
            np.r_[lower.ravel(), sums.lower],
            np.r_[upper.ravel(), sums.upper],
            *(x.ravel() for x in (low, high, base, unit, is_integer)),
            kinds=np.r_[kinds, len(system) + np.arange(len(sums))],
            room=np.r_[(sizes * of_rows).ravel(), of_sums],
        )
