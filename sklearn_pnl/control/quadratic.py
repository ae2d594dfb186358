r"""Projection of rows onto linear constraints by a quadratic programme.

.. math:: \min_x \sum_{ij} (x_{ij} - s_{ij})^2 / (2 w_{ij}) \quad\text{subject to}\quad
          l \le A x_i \le u, \; L \le \sum_i T x_i \le U, \; lo \le x \le hi

with the weights ``w`` of the chi-square distance (Deville and Särndal 1992). The
programme is sparse: one block per row, and the sums over all rows. PIQP solves it by an
interior-point method with proximal regularisation, which also converges if the feasible
set has no interior, or if constraints are redundant (Schwan, Jiang, Kuhn and Jones
2023). A last step on the active set removes the error that the tolerance leaves.

J.-C. Deville, C.-E. Särndal, "Calibration estimators in survey sampling", JASA 1992.

R. Schwan, Y. Jiang, D. Kuhn, C. N. Jones, "PIQP: a proximal interior-point quadratic
programming solver", CDC 2023.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import (
    csc_matrix,
    csr_array,
    diags_array,
    eye_array,
    hstack,
    kron,
    vstack,
)
from scipy.sparse.linalg import lsmr

from ..geometry.convex.highs import solved
from ..geometry.convex.reach import TOLERANCES

# Tolerances of the solver in units in which all weights are 1, each with the smallest
# regularisation. The second pair serves problems that are too degenerate for the first.
_SETTINGS = (1e-10, 1e-13), (1e-8, 1e-10)
# Tolerance of a certificate of infeasibility.
_CERTAIN = 1e-8
# Largest number of steps. Feasible problems need 10 to 40 steps.
_MAX_ITER = 100
# Bounds of cells that are farther away have no effect.
_FAR = 1e10
# The last step stops at this residual, or after some rounds with some steps of LSMR.
_ROUNDING, _ROUNDS, _STEPS = 1e-15, 5, 200
# A cell at this distance from its bound is at the bound.
_ALMOST = 1e-13


@dataclass(frozen=True)
class Solution:
    """Result of a solver.

    Attributes
    ----------
    value : ndarray
        The solution, or the last iterate if the solver failed.
    status : {"solved", "infeasible", "failed"}
        "infeasible" if the solver has found a certificate of infeasibility.
    message : str
        The reason that the solver states if it did not succeed.
    """

    value: np.ndarray
    status: str
    message: str = ""

    @property
    def is_solved(self):
        """Whether the solver succeeded."""
        return self.status == "solved"


def nearest_point(target, a, lower, upper, low, high):
    """Minimise ``|z - target|**2`` subject to linear constraints and bounds.

    Parameters
    ----------
    target : ndarray of shape (v,)
    a : csr_array of shape (c, v)
    lower, upper : ndarray of shape (c,)
        Bounds of ``a @ z``.
    low, high : ndarray of shape (v,)
        Bounds of ``z``.

    Returns
    -------
    Solution
    """
    # The import takes longer than most calls of the package.
    import piqp

    equal = lower == upper
    equations, others = (csc_matrix(a[rows]) for rows in (equal, ~equal))
    one = csc_matrix(diags_array(np.ones(len(target))))
    conditions = equations, lower[equal], others, lower[~equal], upper[~equal]
    for tol, regularisation in _SETTINGS:
        solver = piqp.SparseSolver()
        for name in ("abs", "rel", "duality_gap_abs", "duality_gap_rel"):
            setattr(solver.settings, f"eps_{name}", tol)
        solver.settings.reg_lower_limit = regularisation
        # With the default, requests at the edge of the feasible set are infeasible.
        solver.settings.eps_primal_inf = _CERTAIN
        solver.settings.max_iter = _MAX_ITER
        solver.setup(one, -target, *conditions, low, high)
        status, found = solver.solve(), solver.result
        if status == piqp.PIQP_PRIMAL_INFEASIBLE:
            return Solution(found.x, "infeasible", status.name)
        if status == piqp.PIQP_SOLVED:
            break
    else:
        return Solution(found.x, "failed", status.name)
    # Multipliers of constraints that are not active are exactly 0.
    y = np.empty(len(lower))
    y[equal] = -found.y
    y[~equal] = np.where(found.z_l > found.s_l, found.z_l, 0.0)
    y[~equal] -= np.where(found.z_u > found.s_u, found.z_u, 0.0)
    bounds = lower, upper
    exact = _on_active_set(found.x, y, target, a, bounds, low, high)
    return Solution(exact, "solved")


def _on_active_set(z, y, target, a, bounds, low, high):
    """Remove the error of a solution ``z`` with multipliers ``y``.

    The multipliers determine the cells: ``clip(target + a' y, low, high)``. Each round
    moves the cells inside their bounds by the least squares that solve the equations of
    the active constraints. The solution itself is returned if no iterate is better.
    """
    lower, upper = bounds
    raw, best = _clipped(z, low, high), None
    largest, least = _largest_miss(a @ raw, bounds), np.inf
    z = _clipped(target + a.T @ y, low, high)
    active = (lower == upper) | (y != 0)
    for _ in range(_ROUNDS):
        values = a @ z
        miss = _largest_miss(values, bounds)
        if miss < least:
            best, least = z, miss
        outside = np.maximum(lower - values, 0) - np.maximum(values - upper, 0)
        active |= outside != 0
        bound = np.where((y > 0) | ((y == 0) & (outside > 0)), lower, upper)
        missing = np.where(active, bound - values, 0.0)
        if not np.abs(missing).max(initial=0.0) > _ROUNDING:
            break
        free = diags_array(((low < z) & (z < high)).astype(float))
        move = lsmr(a[active] @ free, missing[active], 0.0, 1e-8, 1e-8, 1e12, _STEPS)
        z = _clipped(z + move[0], low, high)
    return best if least <= max(largest, _ALMOST) else raw


def _clipped(z, low, high):
    """Clip cells; cells that are at a bound up to rounding are set to the bound."""
    z = np.where(z - low <= _ALMOST, low, z)
    return np.where(high - z <= _ALMOST, high, z)


def _largest_miss(values, bounds):
    return np.maximum(bounds[0] - values, values - bounds[1]).max(initial=0.0)


# --- rows ---------------------------------------------------------------------------


def joint_coefficients(n, system, sums=None):
    """Return coefficients (c, n D) of the constraints of n rows, then of their sums."""
    parts = [kron(eye_array(n), csr_array(system.coefficients))]
    if sums is not None:
        parts.append(kron(csr_array(np.ones((1, n))), csr_array(sums.coefficients)))
    return csr_array(vstack(parts, format="csr"))


def joint_bounds(n, system, sums=None):
    """Return both bounds (c,) of the constraints of n rows, then of their sums."""
    of_sums = (sums.lower, sums.upper) if sums is not None else ((), ())
    return [
        np.append(np.broadcast_to(bound, (n, len(system))), last)
        for bound, last in zip((system.lower, system.upper), of_sums, strict=True)
    ]


@dataclass(frozen=True)
class _Cells:
    """The cells that can move, as variables of weight 1, and their constraints.

    Attributes
    ----------
    free : ndarray of bool of shape (n, D)
    base, units : ndarray of shape (v,)
        Cells are ``base + units * z`` for variables z.
    a : csr_array of shape (c, v)
        Coefficients; the largest one of each constraint is 1.
    lower, upper : ndarray of shape (c,)
    kinds : ndarray of int of shape (c,)
        Positions of the constraints in the system.
    """

    free: np.ndarray
    base: np.ndarray
    units: np.ndarray
    a: csr_array
    lower: np.ndarray
    upper: np.ndarray
    kinds: np.ndarray

    @classmethod
    def of_rows(cls, rows, weights, system, low, high, sums=None):
        """Build the constraints of rows (n, D) within their bounds."""
        free = (weights > 0) & (low < high)
        base, units = rows[free], np.sqrt(weights[free])
        a = joint_coefficients(len(rows), system, sums)
        reached = a @ rows.ravel()
        a = a.tocsc()[:, free.ravel()] @ diags_array(units)
        lower, upper = (x - reached for x in joint_bounds(len(rows), system, sums))
        sizes = abs(a).max(axis=1).toarray().ravel() if free.any() else 0 * lower
        used = np.flatnonzero((sizes > 0) & (np.isfinite(lower) | np.isfinite(upper)))
        a = diags_array(1 / sizes[used]) @ a.tocsr()[used]
        lower, upper = (bound[used] / sizes[used] for bound in (lower, upper))
        return cls(
            free, base, units, csr_array(a), lower, upper, used % max(1, len(system))
        )

    def scaled(self, cells):
        """Return the variables of cells (n, D)."""
        return (cells[self.free] - self.base) / self.units

    def moved(self, rows, variables):
        """Return rows (n, D) with the values of variables (v,)."""
        moved = rows.copy()
        # A variable of 0 keeps all digits of its cell.
        moved[self.free] = self.base + self.units * variables
        return moved


def project_jointly(start, weights, system, low, high, sums=None):
    """Project rows onto constraints of each row, and onto sums over all rows.

    Parameters
    ----------
    start, weights : ndarray of shape (n, D)
        Cells of weight 0 do not move, except to the nearest bound.
    system : LinearConstraints
        Constraints on D columns, common to all rows or separate for n rows.
    low, high : ndarray of shape (n, D)
        Bounds of cells; may be infinite.
    sums : Sums, default=None

    Returns
    -------
    Solution
        The value are the rows (n, D).
    """
    rows = np.clip(start, low, high)
    cells = _Cells.of_rows(rows, weights, system, low, high, sums)
    target, *bounds = map(cells.scaled, (start, low, high))
    # Bounds of integer types are far away, and would be rounded.
    bounds = (np.where(np.abs(b) < _FAR, b, np.copysign(np.inf, b)) for b in bounds)
    least, most = bounds
    found = nearest_point(target, cells.a, cells.lower, cells.upper, least, most)
    moved = np.clip(cells.moved(rows, found.value), low, high)
    # A cell at its bound has exactly this value.
    for bound, at in ((low, least), (high, most)):
        is_at = np.zeros(rows.shape, bool)
        is_at[cells.free] = found.value == at
        moved = np.where(is_at, bound, moved)
    return Solution(moved, found.status, found.message)


def least_violations(start, weights, system, low, high, prices=1.0):
    """Move each row so that the violations of its constraints are smallest.

    A linear programme minimises the sum of the violations, times ``prices`` of shape
    (k,). The other parameters are those of :func:`project_jointly`; the result is an
    ndarray of shape (n, D).
    """
    rows = np.clip(start, low, high)
    cells = _Cells.of_rows(rows, weights, system, low, high)
    n_constraints, v = cells.a.shape
    if not n_constraints:
        return rows
    miss = diags_array(np.ones(n_constraints))
    parts, bounds = [], []
    for sign, bound in ((1, cells.upper), (-1, -cells.lower)):
        used = np.isfinite(bound)
        parts.append(hstack([sign * cells.a, -miss], format="csr")[used])
        bounds.append(bound[used])
    limits = np.zeros((v + n_constraints, 2))
    limits[:v] = np.column_stack([*map(cells.scaled, (low, high))])
    limits[v:, 1] = np.inf
    found = solved(
        linprog,
        np.append(np.zeros(v), np.broadcast_to(prices, len(system))[cells.kinds]),
        A_ub=vstack(parts, format="csr"),
        b_ub=np.concatenate(bounds),
        bounds=limits,
        options=TOLERANCES,
    )
    if found.status:
        raise RuntimeError(
            "The solver failed to decide whether rows can satisfy their constraints: "
            f"{found.message}"
        )
    return cells.moved(rows, found.x[:v])
