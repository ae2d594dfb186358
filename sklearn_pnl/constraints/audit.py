"""A last check of rows that leave: what they promise holds, or is said by name."""

from dataclasses import replace

import numpy as np

from .._runtime.validation import warn_missed
from ..geometry.convex.reach import span
from .equalities import ROUNDINGS
from .infeasible import Infeasibility
from .nearest import EQUALITY_TOLERANCE

# How far a value may be from a multiple of its step, in steps.
_OFF_STEP = 1e-6


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
    rounding = 2 * eps * np.abs(np.nan_to_num(rows))
    told = [_missed_constraints(rows, feasible_set, rounding, caller)]
    low, high, names = feasible_set.low, feasible_set.high, feasible_set.names
    off = (rows < low - rounding) | (rows > high + rounding)
    told.append(_sentence("the limits of {}", off, names))
    told.append(_sentence("the steps of {}", _off_steps(rows, feasible_set), names))
    equalities = feasible_set.equalities
    tolerance = EQUALITY_TOLERANCE * equalities.scale
    missed = np.abs(np.nan_to_num(equalities.residual(rows)))
    # New rows miss by what the training rows may, mixed.
    off = missed > tolerance + ROUNDINGS * rounding @ np.abs(equalities.coefficients).T
    told.append(_sentence("{}", off, equalities.descriptions, missed))
    orders = feasible_set.orders
    above = rows[:, orders[:, 0]] - rows[:, orders[:, 1]]
    off = above > rounding[:, orders].sum(axis=2)
    names = [f"{feasible_set.names[p]} <= {feasible_set.names[q]}" for p, q in orders]
    told.append(_sentence("{}", off, names, above))
    for sentence in filter(None, told):
        warn_missed(f"{caller}: {sentence}")


def _off_steps(rows, feasible_set):
    """Cells (n, D) that are no multiples of their steps, though nothing asks for it."""
    steps = feasible_set.steps
    asked = (feasible_set.constraints.coefficients != 0).any(axis=0)
    # Values that are asked for lead, through equalities, to others off their steps.
    if asked.any():
        asked |= (feasible_set.equalities.coefficients != 0).any(axis=0)
    checked = (steps > 0) & (~asked | (feasible_set.precision == 0))
    off = np.zeros(rows.shape, bool)
    counts = rows[:, checked] / steps[checked]
    off[:, checked] = np.abs(counts - np.rint(counts)) > _OFF_STEP
    return off


def _sentence(text, off, names, missed=None):
    """What fails, in how many rows, and by how much; None if nothing does."""
    if not off.any():
        return None
    k = int(np.argmax(off.any(axis=0)))
    n, row = int(np.count_nonzero(off[:, k])), int(np.argmax(off[:, k]))
    others = np.count_nonzero(off.any(axis=0)) - 1
    by = "" if missed is None else f" by up to {missed[:, k].max():.3g}"
    more = f" (and {others} more such)" if others else ""
    return (
        f"{n} row{'s' * (n > 1)} miss{'es' * (n == 1)} {text.format(names[k])}{more}"
        f"{by}; the first is row {row}."
    )


def _missed_constraints(rows, feasible_set, rounding, caller):
    """A sentence about constraints that rounding to steps alone misses, or None."""
    asked = replace(feasible_set.constraints, ranges=feasible_set.ranges)
    used = np.abs(asked.coefficients)
    missed = np.abs(np.nan_to_num(asked.residual(rows)))
    tolerance = EQUALITY_TOLERANCE * asked.scale + rounding @ used.T
    whole = np.where(feasible_set.precision == 0, feasible_set.steps, 0.0)
    by_steps = tolerance + used @ whole / 2
    if np.any(missed > by_steps):
        row, k = map(int, np.argwhere(missed > by_steps)[0])
        lower, upper = (np.atleast_2d(e) for e in (asked.lower, asked.upper))
        i = min(row, len(lower) - 1)
        raise Infeasibility(
            f"{caller}: {asked.names[k]} of row {row} misses what is asked, "
            f"{span(lower[i, k], upper[i, k])}, by {missed[row, k]:.3g}.",
            row,
        )
    names = [f"{name}, of whole numbers," for name in asked.names]
    return _sentence("{}", missed > tolerance, names, missed)
