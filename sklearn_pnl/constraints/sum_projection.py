r"""Projection of a set of rows onto sums over all of them.

.. math:: \min_x \sum_{ij} (x_{ij} - s_{ij})^2 / (2 w_{ij}) \quad\text{subject to}\quad
          L \le \sum_i T x_i \le U, \; x_i \in C_i

with the weights ``w`` of the chi-square distance and the feasible set C of each row.
For given multipliers ``u`` of the sums the rows are projections, each on its own, of
``s + w T' u`` onto C; Newton's method finds the multipliers. Its matrix is the Schur
complement ``sum_i T W_i T' - T W_i A' (A W_i A')^{-1} A W_i T'`` over the cells that
are free to move and the constraints A that are active.

Columns on steps are rounded by the largest remainder, columns that equalities give
follow. Where equalities have coefficients other than 1 (hours and minutes), or sums mix
units, whole numbers may miss sums that others have: such sums are refused.

J.-C. Deville, C.-E. Sarndal, "Calibration estimators in survey sampling", JASA 1992,
has the distance.
"""

from dataclasses import dataclass

import numpy as np

from .._runtime.blocks import slices
from ..geometry.convex.reach import span
from .equalities import echelon_of
from .infeasible import Infeasibility, explain_infeasible
from .linear import LinearConstraints
from .nearest import is_met, nearest_rows
from .projection import (
    broken_orders,
    open_at_gaps,
    round_rows,
    split_limits,
    weights_of,
)
from .rounding import round_totals

# Distance from a sum that counts as met, as a share of the sum of its absolute terms.
SUM_TOL = 1e-9
# Newton steps for the multipliers, halvings of one, cells worked on at once.
_MAX_ITER, _MAX_HALVINGS, _BLOCK = 50, 8, 2**22
# A step that brings less than this share of what is missing is the last.
_LEAST_GAIN = 1e-2
# Rounds in which orders join the constraints, or rows that rounding breaks are held.
_MAX_ROUNDS = 5


@dataclass(frozen=True)
class Sums:
    """``lower <= shift + sum over rows of coefficients @ row <= upper``.

    Attributes
    ----------
    coefficients : ndarray of shape (k, D)
    lower, upper, shift : ndarray of shape (k,)
    names : tuple of str
    """

    coefficients: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    shift: np.ndarray
    names: tuple

    def __len__(self):
        return len(self.coefficients)

    def values(self, rows):
        """Sums (k,) over rows (n, D), without what is missing."""
        return self.coefficients @ np.nansum(rows, axis=0) + self.shift

    def sizes(self, rows):
        """Sums (k,) of absolute terms."""
        terms = np.abs(self.coefficients) @ np.nansum(np.abs(rows), axis=0)
        return np.maximum(terms + np.abs(self.shift), np.finfo(float).tiny)

    def missing(self, rows):
        """What is to be added to each (k,)."""
        values = self.values(rows)
        return np.clip(values, self.lower, self.upper) - values

    def residual(self, rows):
        """What is missed, as a share of the sum of absolute terms."""
        with np.errstate(over="ignore"):
            return np.abs(self.missing(rows)) / self.sizes(rows)


def project_to_totals(rows, sums, feasible_set, *, fixed=None, held=None, offset=1.0):
    """Move rows to sums over all of them, least in the chi-square distance.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Missing cells are NaN and stay so.
    sums : Sums
    feasible_set : FeasibleSet
        What each row is to satisfy. Orders give way where nothing else has the sums.
    fixed, held : ndarray of bool of shape (n, D), default=None
        Cells that do not move, and those that do only where nothing else has the sums.
    offset : float, default=1.0
        The larger, the less large values are moved before small ones.

    Returns
    -------
    ndarray of shape (n, D)
        On the steps of their columns, where these allow for the sums.

    Raises
    ------
    Infeasibility
        If sums are missed by more than 1e-9 of their absolute terms, and the rounding
        of the types: with what is reached.
    """
    gaps = np.isnan(rows)
    fixed = gaps if fixed is None else fixed | gaps
    tries = [fixed] if held is None else [fixed | held, fixed]
    for still in tries:
        problem = _Rows(rows, sums, feasible_set, still, offset)
        if not problem.is_out_of_reach().any():
            moved, met = problem.moved()
            if problem.is_feasible(moved):
                break
        elif still is fixed:
            raise problem.refuse(problem.start)
    if not met.all():
        raise problem.explain_rows(met)
    moved = problem.on_steps(moved)
    if sums.residual(moved).max(initial=0.0) > problem.tol:
        raise problem.refuse(moved)
    return np.where(gaps, np.nan, moved)


class _Rows:
    """Rows (n, D) to be moved, and what they keep."""

    def __init__(self, rows, sums, feasible_set, still, offset):
        gaps = np.isnan(rows)
        self.start, self.sums = np.where(gaps, 0.0, rows), sums
        low, high, several = split_limits(feasible_set, len(rows))
        crossed = (low > high).any(axis=1)
        if crossed.any():
            row = int(np.argmax(crossed))
            raise explain_infeasible(rows[row], feasible_set, row)
        still = still | gaps
        self.low = np.where(still, np.clip(self.start, low, high), low)
        self.high = np.where(still, self.low, high)
        self.low[gaps] = self.high[gaps] = 0.0
        self.weights = weights_of(self.start, feasible_set, still, offset)
        self.set = several
        self.system = open_at_gaps(self.set.system(), gaps)
        self.gaps = gaps
        used = sums.coefficients.any(axis=0)
        self.tol = SUM_TOL + 4 * feasible_set.precision[used].max(initial=0)

    def is_feasible(self, rows):
        """Whether rows have the sums, and each what it keeps."""
        inside = (rows >= self.low) & (rows <= self.high)
        summed = self.sums.residual(rows) <= self.tol
        return bool(summed.all() and inside.all() and is_met(self.system, rows).all())

    # --- moves of all rows ----------------------------------------------------------

    def moved(self):
        """Rows on the sums, and which constraints (n, k) each of them meets.

        Orders that they break join the constraints.
        """
        rows, met = self.solve(self.start, self.weights)
        orders, plain = self.set.orders[:0], self.system
        for _ in range(_MAX_ROUNDS):
            broken = broken_orders(np.where(self.gaps, np.nan, rows), self.set)
            broken = self.set.orders[broken.any(axis=0)]
            if not len(broken):
                break
            orders = np.unique(np.vstack([orders, broken]), axis=0)
            self.system = open_at_gaps(self.set.system(orders), self.gaps)
            more = self.solve(self.start, self.weights)
            if not self.is_feasible(more[0]):
                self.system = plain
                break
            rows, met = more
        return rows, met

    def solve(self, start, weights):
        """Rows on the sums, and which constraints (n, k) each of them meets."""
        sums = self.sums
        u, sides = np.zeros((2, len(sums)))
        rows, met = self.project(start, weights, u)
        # Sums join where they are missed, at the nearer end, and leave where their
        # multiplier pulls away from the interval.
        for _ in range(2 * len(u) + 1):
            off = (sides == 0) & (sums.residual(rows) > SUM_TOL)
            leaves = (sums.lower < sums.upper) & (u * sides < 0)
            if not (off | leaves).any():
                break
            side = np.sign(sums.missing(rows))
            sides = np.where(off, side, np.where(leaves, 0.0, sides))
            u = np.where(leaves, 0.0, u)
            rows, met, u = self.newton(start, weights, u, sides)
        return rows, met

    def newton(self, start, weights, u, sides):
        """Rows whose sums are at the ends that ``sides`` tell, and multipliers."""
        active = sides != 0
        ends = np.where(sides > 0, self.sums.lower, self.sums.upper)
        t = self.sums.coefficients[active]

        def lacking(rows):
            return (ends - self.sums.values(rows))[active]

        rows, met = self.project(start, weights, u)
        missing = lacking(rows)
        for _ in range(_MAX_ITER if met.all() else 0):
            size = self.sums.sizes(rows)[active] + np.abs(ends[active])
            if np.all(np.abs(missing) <= 1e-3 * SUM_TOL * size):
                break
            step, length = np.zeros(len(u)), 1.0
            jacobian = self.jacobian(rows, weights, t)
            step[active] = np.linalg.lstsq(jacobian, missing, rcond=1e-14)[0]
            for _ in range(_MAX_HALVINGS):
                trial, ok = self.project(start, weights, u + length * step)
                left = lacking(trial)
                worst = np.abs(missing / size).max()
                gain = np.abs(left / size).max() < (1 - _LEAST_GAIN) * worst
                if gain and ok.all():
                    break
                length /= 2
            else:
                break
            u, rows, met, missing = u + length * step, trial, ok, left
        return rows, met, u

    def project(self, start, weights, u):
        """Rows nearest to where multipliers of the sums pull them."""
        moved = start + weights * (u @ self.sums.coefficients)
        return nearest_rows(moved, weights, self.system, self.low, self.high)

    def jacobian(self, rows, weights, t):
        """How sums (k, k) change with their multipliers, with what is active now."""
        a, jacobian = self.system.coefficients, np.zeros((len(t), len(t)))
        step = max(1, _BLOCK // (max(len(a), 1) * rows.shape[1]))
        for part in slices(len(rows), step):
            x, low, high = (v[part] for v in (rows, self.low, self.high))
            w = weights[part] * ((x > low) & (x < high))
            jacobian += (t * w.sum(axis=0)) @ t.T
            if len(a):
                jacobian -= _taken_by_rows(self.system.take_rows(part), x, w, t)
        return jacobian

    # --- columns on steps -----------------------------------------------------------

    def on_steps(self, moved):
        """Rows with columns on their steps, where these have the sums."""
        stepped = self.set.steps > 0
        if not stepped.any():
            return moved
        rows = rounded = self.rounded(moved)
        # Columns that hold any value make up for what rounding left; where they cannot,
        # whole-number types alone are on steps.
        for still in (stepped, stepped & (self.set.precision == 0)):
            if self.is_feasible(rows):
                break
            weights = np.where(still, 0.0, self.weights)
            start = np.where(still, rounded, self.start)
            rows = self.solve(start, weights)[0] if still.any() else moved
        return rows

    def rounded(self, moved):
        """Rows on their steps: the sums first, then the sums of each row.

        Columns that equalities give follow from the others. Rows that rounding takes
        out of their feasible set stay as they came, and others make up for them.
        """
        steps, sums, n = self.set.steps, self.sums, len(moved)
        own = self.set.equalities
        own = own.select(~(own.coefficients[:, steps == 0] != 0).any(axis=1))
        equations = echelon_of(own)
        given = sums.coefficients[:, equations.pivots]
        shift = sums.shift + n * given @ equations.values
        t = sums.coefficients - given @ equations.coefficients
        asked = LinearConstraints(
            t, sums.lower - shift, sums.upper - shift, own.feature_names
        )
        low, high = self.low.copy(), self.high.copy()
        rows, whole = moved.copy(), ~self.gaps.any(axis=1)
        feasible = is_met(self.system, self.start).all(axis=1)
        feasible &= ((self.start >= low) & (self.start <= high)).all(axis=1)
        for _ in range(_MAX_ROUNDS):
            rounded, done = round_totals(rows, steps, asked, low, high)
            rounded[whole] = equations.restore(rounded[whole])
            ends = (np.where(done, rounded, end) for end in (low, high))
            rounded = round_rows(rounded, self.set, *ends)
            off = ((rounded < self.low) | (rounded > self.high)).any(axis=1)
            off |= ~is_met(self.system, rounded).all(axis=1)
            off |= broken_orders(rounded, self.set).any(axis=1)
            off &= feasible & (low < high).any(axis=1)
            if not off.any():
                break
            rows[off] = low[off] = high[off] = self.start[off]
        return rounded

    # --- why not --------------------------------------------------------------------

    def explain_rows(self, met):
        """The error of a row that cannot have what is asked, with the sums or alone."""
        alone, ok = self.project(self.start, self.weights, np.zeros(len(self.sums)))
        if not ok.all():
            row = int(np.argmin(ok.all(axis=1)))
            return explain_infeasible(alone[row], self.set.take_rows([row]), row)
        row, k = map(int, np.argwhere(~met)[0])
        return Infeasibility(
            f"{' and '.join(self.sums.names[:4])} cannot be had together with what "
            f"each row keeps: the best try misses {self.system.names[k]} in row {row}."
        )

    def reach(self):
        """Least and most (2, k) of each sum within the limits of its cells."""
        ends = np.empty((2, len(self.sums)))
        for k, a in enumerate(self.sums.coefficients):
            used = np.flatnonzero(a)
            both = [a[used] * end[:, used].sum(axis=0) for end in (self.low, self.high)]
            ends[:, k] = np.minimum(*both).sum(), np.maximum(*both).sum()
        return ends + self.sums.shift

    def is_out_of_reach(self):
        """Which sums (k,) no rows within the limits have."""
        (least, most), room = self.reach(), self.tol * self.sums.sizes(self.start)
        return (self.sums.lower > most + room) | (self.sums.upper < least - room)

    def refuse(self, rows):
        """The error of the sum that rows miss most, with what is reached."""
        sums, beyond = self.sums, self.is_out_of_reach()
        k = int(np.argmax(np.where(beyond, np.inf, sums.residual(rows))))
        reached = f"the nearest that was reached is {sums.values(rows)[k]:.10g}"
        if beyond[k]:
            ends = span(*self.reach()[:, k], 7)
            reached = f"within the limits of {len(rows)} rows it reaches {ends}"
        steps = self.set.steps[sums.coefficients[k] != 0]
        of_steps = f" Values are multiples of {steps.max():g}." if steps.any() else ""
        return Infeasibility(
            f"{sums.names[k]} asks for {span(sums.lower[k], sums.upper[k])}; {reached}."
            f"{of_steps} Ask for an interval: column_total(..., rtol=)."
        )


def _taken_by_rows(system, rows, weights, t):
    """What active constraints of rows take from the Jacobian of sums (k, k)."""
    a = system.coefficients
    values = rows @ a.T
    room = 1e-8 * system.scale
    active = (values - system.lower <= room) | (system.upper - values <= room)
    weighted = a * weights[:, None, :]
    gram = (weighted @ a.T) * active[:, :, None] * active[:, None, :]
    each = np.arange(len(a))
    diagonal = gram[:, each, each]
    # Constraints that say the same twice, or nothing, leave no gap in the matrix.
    gram[:, each, each] += 1e-12 * diagonal + (diagonal == 0)
    cross = (weighted @ t.T) * active[:, :, None]
    return np.einsum("nkt,nks->ts", cross, np.linalg.solve(gram, cross))
