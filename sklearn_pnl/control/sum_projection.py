r"""Projection of a set of rows onto sums over all of them.

.. math:: \min_x \sum_{ij} (x_{ij} - s_{ij})^2 / (2 w_{ij}) \quad\text{subject to}\quad
          L \le \sum_i T x_i \le U, \; x_i \in C_i

with the weights ``w`` of the chi-square distance and the feasible set C of each row.
For given multipliers ``u`` of the sums the rows are projections, each on its own, of
``s + w T' u`` onto C. Newton's method with a line search minimises the dual, a convex
function of the multipliers. Its Hessian is the Schur complement
``sum_i T W_i T' - T W_i A' (A W_i A')^{-1} A W_i T'`` over the cells that are free to
move and the constraints A that are active. A linear programme on the sums of the rows
finds contradictions before the minimisation.

Each row is rounded to its resolution. Then the rows nearest to another multiple move
by a step until the sums are exact.

J.-C. Deville, C.-E. Sarndal, "Calibration estimators in survey sampling", JASA 1992,
introduce the distance.
"""

from copy import copy

import numpy as np
from scipy.sparse import csr_array, kron, vstack

from .._utils.arrays import slices
from ..columns.constraints import ALMOST, TOL, LinearConstraints
from ..columns.equalities import echelon
from ..columns.rounding import least_change, off_steps, on_steps
from ..geometry.convex.affine import IntervalDual, minimise
from ..geometry.convex.reach import Program
from .infeasible_requests import explain_infeasible, explain_infeasible_totals
from .projection import ROUNDS_OF_ORDERS, nearest_integer_row, nearest_rows, round_rows

# The search stops after this number of rows in turn that cannot change a sum, since
# each row takes milliseconds.
_IN_VAIN = 50


class Sums(LinearConstraints):
    """Constraints on the sum of all rows."""

    def of(self, rows):
        """Compute the sums (k,) over rows (n, D), without missing cells."""
        return self.coefficients @ np.nansum(rows, axis=0, dtype=np.float64)

    def sizes(self, rows):
        """Compute the sums (k,) of absolute terms."""
        cells = np.nansum(np.abs(rows), axis=0, dtype=np.float64)
        terms = np.abs(self.coefficients) @ cells
        return np.maximum(terms, np.finfo(float).tiny)

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
        If a sum is missed by more than 1e-9 of its absolute terms and the rounding of
        dtypes. The message states which sums can be reached.
    """
    fixed = fixed | np.isnan(rows)
    avoid = fixed | avoid | (feasible.columns.ranges == 0)
    for still in (avoid, fixed):
        problem = _Problem(rows, sums, feasible, still, offset)
        moved = problem.solve()
        if problem.is_feasible(moved):
            break
    else:
        raise explain_infeasible_totals(problem, moved)
    moved = problem.rounded(problem.in_order(moved))
    # Columns without resolution, or else all non-integer columns, compensate rounding.
    for stays in (feasible.columns.steps > 0, feasible.columns.is_integer):
        if not problem.is_feasible(moved):
            moved = problem.holding(moved, stays).solve()
    if sums.share_missed(moved).max(initial=0.0) > problem.tol:
        raise explain_infeasible_totals(problem, moved)
    return np.where(problem.gaps, np.nan, moved)


class _Problem:
    """Rows (n, D) to be moved, their bounds, weights and constraints."""

    def __init__(self, rows, sums, feasible, still, offset):
        self.gaps, self.sums = np.isnan(rows), sums
        self.start = np.where(self.gaps, 0.0, rows)
        low, high, self.set = feasible.split_bounds(len(rows))
        cross = (low > high).any(axis=1)
        if cross.any():
            raise explain_infeasible(rows, cross, feasible)
        stay = np.where(self.gaps, 0.0, np.clip(self.start, low, high))
        self.low, self.high = (np.where(still, stay, bound) for bound in (low, high))
        self.weights = feasible.weights(self.start, still, offset)
        self.system = self.set.system(gaps=self.gaps)
        self.tol = sums.tolerance(feasible.columns.table.precision)

    def keeps(self, rows):
        """Return the mask (n,) of the rows within their bounds and constraints."""
        inside = (rows >= self.low) & (rows <= self.high)
        return inside.all(axis=1) & ~self.system.violations(rows).any(axis=1)

    def is_feasible(self, rows):
        """Check whether rows have the sums and satisfy the constraints of each row."""
        summed = self.sums.share_missed(rows) <= self.tol
        return bool(summed.all() and self.keeps(rows).all())

    # --- moves of all rows ----------------------------------------------------------

    def holding(self, rows, columns):
        """Copy the problem, with a mask (D,) of columns that hold values of rows."""
        held = copy(self)
        held.start = np.where(columns, rows, self.start)
        held.weights = np.where(columns, 0.0, self.weights)
        held.low = np.where(columns, rows, self.low)
        held.high = np.where(columns, rows, self.high)
        return held

    def solve(self):
        """Project the start onto the sums, or return it if they are infeasible."""
        program = self.program()
        if program.excludes(program.kinds):
            return self.start
        dual = _SumDual(self)
        if not dual.is_satisfied:
            return self.start
        return minimise(dual, 1e-3 * TOL, 100).point[0]

    def jacobian(self, rows):
        """Compute the derivatives (k, k) of the sums in their multipliers."""
        t, a = self.sums.coefficients, self.system.coefficients
        weights = self.weights * ((rows > self.low) & (rows < self.high))
        jacobian = (t * weights.sum(axis=0)) @ t.T
        # Blocks of at most four million cells of weighted constraints.
        for part in slices(len(rows) * (len(a) > 0), 1 + 2**22 // (1 + a.size)):
            system, values = self.system.take_rows(part), rows[part] @ a.T
            room = 1e-8 * system.scale
            active = (values - system.lower <= room) | (system.upper - values <= room)
            weighted = a * weights[part, None, :]
            gram = (weighted @ a.T) * active[:, :, None] * active[:, None, :]
            each = np.arange(len(a))
            diagonal = gram[:, each, each]
            # Redundant and inactive constraints would make it singular.
            gram[:, each, each] += 1e-12 * diagonal + (diagonal == 0)
            cross = (weighted @ t.T) * active[:, :, None]
            jacobian -= np.einsum("nkt,nks->ts", cross, np.linalg.solve(gram, cross))
        return jacobian

    def in_order(self, moved):
        """Solve with violated orders as constraints, if the sums allow for it."""
        orders = np.zeros(len(self.set.relations.orders), bool)
        for _ in range(ROUNDS_OF_ORDERS):
            broken = orders | self.set.relations.disorders(moved, self.gaps).any(axis=0)
            if (broken == orders).all():
                break
            orders, before = broken, self.system
            self.system = self.set.system(orders, self.gaps)
            again = self.solve()
            if not self.is_feasible(again):
                self.system = before
                break
            moved = again
        return moved

    # --- columns on steps -----------------------------------------------------------

    def rounded(self, moved):
        """Round each row to its resolution, then move rows by steps to the sums."""
        for part in self.set.resolutions():
            self.set = part
            rows = self.rounded_once(moved)
            if (self.sums.share_missed(rows) <= self.tol).all():
                break
        return rows

    def rounded_once(self, moved):
        """Round rows to the resolution of the feasible set, or to its steps."""
        held = self.weights == 0
        rows = round_rows(moved, self.set, self.low, self.high, self.gaps, held)
        # Rows that rounding makes infeasible are not rounded.
        start = np.where(self.keeps(rows)[:, None], rows, self.start)
        moves = self.unit_moves()
        changes = moves @ self.sums.coefficients.T
        order = np.argsort(np.count_nonzero(changes, axis=0), kind="stable")
        # An earlier sum may leave no room for a later sum: try both orders.
        for turn in (order, order[::-1]):
            rows = self.stepped(turn, moves, changes, start.copy(), moved)
            if (self.sums.share_missed(rows) <= self.tol).all():
                break
        return rows

    def stepped(self, turn, moves, changes, rows, moved):
        """Correct one sum after the other, in place, and return the rows."""
        done = []
        for k in turn:
            # A usable move does not change the sums that are done.
            usable = (changes[:, k] != 0) & ~changes[:, done].any(axis=1)
            if usable.any():
                size = np.where(usable, np.abs(changes[:, k]), np.inf)
                finest = int(np.argmin(size))
                self.step_to(k, moves[finest], changes[finest, k], rows, moved)
            if not self.set.columns.has_resolution:
                self.row_by_row(k, done, rows)
            done.append(k)
        return rows

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

    def row_by_row(self, k, done, rows):
        """Change one row after the other, in place, until sum k is reached.

        Each row is replaced by the nearest row of integers that has a part of the
        missing sum and does not change the sums in ``done``. This method serves rows at
        a bound, and rows for which no unit move is feasible.
        """
        steps, sums = self.set.columns.steps, self.sums.coefficients
        finest = np.abs(sums[k] * steps)
        finest = finest[finest > 0].min(initial=np.inf)
        in_vain = 0
        for i in range(len(rows)):
            lack = self.sums.missing(self.sums.of(rows))[k]
            if abs(lack) < finest * (1 - ALMOST) or in_vain == _IN_VAIN:
                return
            # Try the share of this row first, then the smallest change.
            parts = dict.fromkeys([max(finest, abs(lack) / (len(rows) - i)), finest])
            found = (self.taken_up(k, done, rows, i, lack, part) for part in parts)
            near = next((row for row in found if row is not None), None)
            in_vain = in_vain + 1 if near is None else 0
            if near is not None:
                rows[i] = near

    def taken_up(self, k, done, rows, i, lack, least):
        """Return the nearest integer row with at least ``least`` of the missing sum."""
        sums, row = self.sums.coefficients, rows[i]
        # A sum of multiples may differ from the request by rounding.
        bounds = np.sign(lack) * np.array([least, abs(lack) + ALMOST * least])
        part = sums[k] @ row + np.sort(bounds)
        others = sums[done] @ row
        requested = LinearConstraints(
            sums[[*done, k]],
            np.r_[others, part[0]],
            np.r_[others, part[1]],
            self.system.feature_names,
        )
        own, held = self.set.take_rows(i), self.weights[i] == 0
        in_order = ~self.set.relations.disorders(rows[[i]], self.gaps[[i]])[0]
        system = own.system(in_order, self.gaps[i]).stack(requested)
        bounds = (np.where(held, row, bound[i]) for bound in (self.low, self.high))
        return nearest_integer_row(row, system, *bounds, self.set)

    # --- why not --------------------------------------------------------------------

    def program(self, exact=False, integers=False):
        """Build a linear programme on the sums over rows with the same feasible set.

        Parameters
        ----------
        exact : bool, default=False
            Whether rows with different bounds or constraints are summed apart. All
            rows together satisfy the sum of all bounds and constraints, which excludes
            less than the bounds and constraints of each row.
        integers : bool, default=False
            Whether sums of integer columns are integers.
        """
        system, sums, n = self.system, self.sums, len(self.start)
        bounds = system.lower, system.upper
        bounds = [np.broadcast_to(bound, (n, len(system))) for bound in bounds]
        group = np.zeros(n, int)
        if exact:
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
        a = [
            kron(csr_array(np.eye(shape[0])), system.coefficients),
            kron(csr_array(np.ones((1, shape[0]))), sums.coefficients),
        ]
        kinds = np.tile(np.arange(len(system)), shape[0])
        finite = (np.nan_to_num(np.abs(e), posinf=0) for e in (sums.lower, sums.upper))
        of_sums = np.maximum.reduce([sums.sizes(self.start), *finite])
        return Program(
            vstack(a, "csr"),
            np.r_[lower.ravel(), sums.lower],
            np.r_[upper.ravel(), sums.upper],
            *(x.ravel() for x in (low, high, base, unit, is_integer)),
            kinds=np.r_[kinds, len(system) + np.arange(len(sums))],
            room=np.r_[(TOL * sizes * system.scale).ravel(), self.tol * of_sums],
        )


class _SumDual(IntervalDual):
    """The dual of sums over all rows: one problem, whose point is the rows (1, n, D).

    Multipliers are scaled so that the Hessian has a diagonal of at most 1.
    """

    def __init__(self, problem):
        self.problem, sums = problem, problem.sums
        t, weights = sums.coefficients, problem.weights
        gain = (t * t) @ weights.sum(axis=0)
        self.root = np.sqrt(np.where(gain > 0, gain, 1.0))
        units = np.sqrt(weights.max(axis=0, initial=0.0))
        self.t = t / self.root[:, None]
        self.start_sums = sums.of(problem.start) / self.root
        bounds = ((bound / self.root)[None] for bound in (sums.lower, sums.upper))
        # Moves of a million times the range of a column are the longest.
        super().__init__(*bounds, self.t * units, 1e6)
        self.first = None
        self.first = self.primal(np.zeros((1, len(t))), np.zeros(1, int))

    @property
    def is_satisfied(self):
        """Whether the rows without multipliers satisfy their constraints."""
        return np.isfinite(self.first[0][0])

    def primal(self, y, rows):
        if self.first is not None and not y.any():
            return self.first
        problem = self.problem
        start, weights = problem.start, problem.weights
        kept = problem.system, problem.low, problem.high
        moved, ok = nearest_rows(start + weights * (y[0] @ self.t), weights, *kept)
        # Differences from the sums of the start preserve digits.
        away = moved - start
        squares = away**2 / np.where(weights > 0, 2 * weights, np.inf)
        priced = self.priced(y, rows)[0] - y[0] * self.start_sums
        terms = np.r_[y[0] * (self.t @ away.sum(axis=0)), -squares.sum(), -priced]
        value = terms.sum() if ok.all() else np.inf
        # Rows are projected to 1e-10 of their moves.
        return np.array([value]), moved[None], 1e-10 * np.abs(terms).sum(keepdims=True)

    def sums_of(self, point):
        return self.problem.sums.of(point[0])[None] / self.root

    def scales(self, point, rows):
        sums, values = self.problem.sums, self.sums_of(point)[0] * self.root
        size = sums.sizes(point[0]) + np.abs(sums.missing(values))
        return (size / self.root)[None]

    def hessians(self, point, rows):
        hessian = self.problem.jacobian(point[0])
        return (hessian / np.outer(self.root, self.root))[None], np.ones(
            (1, len(self.t))
        )
