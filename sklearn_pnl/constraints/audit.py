"""A last check of rows that leave: what they promise holds, or is said by name."""

from dataclasses import replace

import numpy as np

from .._runtime.validation import warn_missed
from ..geometry.convex.reach import span
from .equalities import ROUNDINGS, TOL
from .infeasible import Infeasibility


def audit_rows(rows, feasible_set, caller):
    """Check the numbers of rows that leave against what they must satisfy.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        As read back from the user's container, so rounded to their types.
    feasible_set : FeasibleSet
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

    if len(feasible_set.constraints):
        _warn(*_missed_constraints(rows, feasible_set, rounding, caller), caller)
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
    equalities = feasible_set.equalities
    # New rows miss by what the training rows may, mixed.
    room = ROUNDINGS * _of_terms(equalities, rounding) + TOL * equalities.scale
    missed = np.abs(equalities.residual(rows))
    _warn(lambda k: equalities.descriptions[k], missed, room, caller)
    p, q = feasible_set.orders.T
    above, room = rows[:, p] - rows[:, q], rounding(p) + rounding(q)
    _warn(lambda k: f"{names[p[k]]} <= {names[q[k]]}", above, room, caller)


def _of_terms(system, of_columns):
    """Sums (n, k) over the terms of constraints of what columns may miss."""
    used = np.flatnonzero(system.coefficients.any(axis=0))
    return of_columns(used) @ np.abs(system.coefficients[:, used]).T


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


def _missed_constraints(rows, feasible_set, rounding, caller):
    """Names, residuals (n, k) and room of constraints; raise beyond half a step."""
    asked = replace(feasible_set.constraints, ranges=feasible_set.ranges)
    used = np.abs(asked.coefficients)
    missed = np.abs(np.nan_to_num(asked.residual(rows)))
    room = TOL * asked.scale + _of_terms(asked, rounding)
    whole = np.where(feasible_set.precision == 0, feasible_set.steps, 0.0)
    by_steps = room + used @ whole / 2
    for row, k in np.argwhere(missed > by_steps):
        lower, upper = (np.atleast_2d(e)[:, k] for e in (asked.lower, asked.upper))
        i = min(row, len(lower) - 1)
        raise Infeasibility(
            f"{caller}: {asked.names[k]} of row {row} misses what is asked, "
            f"{span(lower[i], upper[i])}, by {missed[row, k]:.3g}.",
            int(row),
        )
    return lambda k: f"{asked.names[k]}, of whole numbers,", missed, room
