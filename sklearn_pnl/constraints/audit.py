"""A last check of rows that leave: what they promise holds, or is said by name."""

import numpy as np

from .._runtime.validation import warn_missed
from .equalities import ROUNDINGS, TOL
from .infeasible import Infeasibility


def audit_rows(rows, feasible_set, caller):
    """Check the numbers of rows that leave against what they must satisfy.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        As read back from the user's container, so rounded to their types.
    feasible_set : Structure
    caller : str
        Who made the rows, for messages.

    Raises
    ------
    Infeasibility
        If a constraint is missed by more than half a step of each of its columns, which
        is only warned of.

    Warns
    -----
    ConvergenceWarning
        For limits, steps, equalities and orders that are missed: by name, with the
        first row and the number of rows.
    """
    # What types may change of each cell: doubles do not hold all numbers of 64 bits.
    eps = np.maximum(feasible_set.precision, np.finfo(float).eps)

    def rounding(columns):
        return 2 * eps[columns] * np.fmax(np.abs(rows[:, columns]), 0)

    _check_systems(rows, feasible_set, rounding, caller)
    low, high, names = feasible_set.low, feasible_set.high, feasible_set.names
    if ((rows < low) | (rows > high)).any():
        outside, room = np.maximum(low - rows, rows - high), rounding(slice(None))
        _warn(lambda k: f"the limits of {names[k]}", outside, room, caller)
    # Values that are asked for may lie, and lead others through sums, between steps.
    is_checked = (feasible_set.precision == 0) | (len(feasible_set.constraints) == 0)
    stepped = np.flatnonzero(is_checked & (feasible_set.steps > 0))
    places = rows[:, stepped] / feasible_set.steps[stepped]
    off = np.abs(places - np.rint(places))
    _warn(lambda k: f"the steps of {names[stepped[k]]}", off, 1e-6, caller)
    p, q = feasible_set.orders.T
    above, room = rows[:, p] - rows[:, q], rounding(p) + rounding(q)
    _warn(lambda k: f"{names[p[k]]} <= {names[q[k]]}", above, room, caller)


def _warn(name_of, missed, room, caller):
    """Say what is missed (n, k) by more than some room, in how many rows."""
    off = missed > room
    if not off.any():
        return
    failing = np.flatnonzero(off.any(axis=0))
    k, others = failing[0], len(failing) - 1
    bad = np.flatnonzero(off[:, k])
    more = f" (and {others} more such)" if others else ""
    warn_missed(
        f"{caller}: {len(bad)} row{'s' * (len(bad) > 1)} miss{'es' * (len(bad) == 1)} "
        f"{name_of(k)}{more} by up to {missed[bad, k].max():.3g}; the first is row "
        f"{bad[0]}."
    )


def _check_systems(rows, feasible_set, rounding, caller):
    """Warn of equalities and constraints; raise of these beyond half a step."""
    system, n_equal = feasible_set.system(), len(feasible_set.equalities)
    if not len(system):
        return
    columns = np.flatnonzero(system.coefficients.any(axis=0))
    used, missed = np.abs(system.coefficients), np.abs(system.residual(rows))
    # New rows miss by what the training rows may, mixed.
    room = TOL * system.scale + ROUNDINGS * rounding(columns) @ used[:, columns].T
    whole = np.where(feasible_set.precision == 0, feasible_set.steps, 0.0)
    is_beyond = missed > room + used @ whole / 2
    for row, k in np.argwhere(is_beyond[:, n_equal:]):
        raise Infeasibility(
            f"{caller}: row {row} misses what is asked of "
            f"{feasible_set.constraints.names[k]} by {missed[row, n_equal + k]:.3g}.",
            int(row),
        )

    def name_of(k):
        if k < n_equal:
            return feasible_set.equalities.descriptions[k]
        return f"{feasible_set.constraints.names[k - n_equal]}, of whole numbers,"

    _warn(name_of, missed, room, caller)
