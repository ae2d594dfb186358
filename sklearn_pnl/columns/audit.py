"""Audit of rows: the last check of relations, resolutions and bounds."""

from dataclasses import replace

import numpy as np
from scipy.sparse import issparse

from .._utils.arrays import some_columns
from .._utils.warnings import warn_missed
from .constraints import ALMOST, EPS, ROUNDINGS, TOL, Infeasibility
from .implied_equalities import implied_equalities


def audit_relations(rows, relations, caller, has_resolution=True, has_steps=True):
    """Check the numbers of returned rows against the relations between columns.

    Parameters
    ----------
    rows : ndarray or sparse matrix of shape (n, D)
        Numbers in the precision in which they are returned.
    relations : ColumnRelations
    caller : str
        The estimator that messages name.
    has_resolution : bool, default=True
        Whether values have the resolution that is coarser than their steps, which
        requests can violate.
    has_steps : bool, default=True
        Whether values of float columns are multiples of their steps.

    Raises
    ------
    Infeasibility
        If an equality is violated.

    Warns
    -----
    ConvergenceWarning
        If a bound, a resolution or an order is violated. The warning states the column,
        the first row and the number of rows.
    """
    columns, names = relations.columns, relations.equalities.feature_names
    if issparse(rows):
        # Only rows that may violate a relation are checked as dense rows.
        rows = rows[columns.may_be_off(rows)].toarray()
    # Dtypes round cells: float64 cannot represent all 64-bit integers.
    precision = columns.table.precision
    eps = 2 * np.maximum(precision, EPS)
    largest = eps * np.maximum(np.abs(columns.least), np.abs(columns.most))
    if len(relations.equalities):
        _check_equalities(rows, relations, eps, largest, caller)
    # Binary columns are copied, and have bounds.
    is_checked = (columns.steps > 0) & ~columns.binary
    if not has_steps:
        is_checked &= precision == 0
    if not has_resolution:
        columns = replace(columns, support=None)
    c = np.flatnonzero(is_checked)
    if len(c):
        values = some_columns(rows, c)
        missed = np.abs(values - columns.rounded(values, c))
        if columns.has_resolution:
            missed[columns.support.are_atoms(rows)[:, c]] = 0
        room = columns.steps[c] * ALMOST + 2 * largest[c]
        _warn(lambda k: f"the resolution of {names[c[k]]}", missed, room, caller)
    if relations.breaks(rows).any():
        rounding = eps * np.abs(rows)
        missed = np.maximum(columns.low - rows, rows - columns.high)
        _warn(lambda k: f"the bounds of {names[k]}", missed, rounding, caller)
        p, q = relations.inequalities.T
        # Dependent columns are rounded like the larger columns in their equality.
        room = rounding + EPS * columns.ranges
        with np.errstate(over="ignore"):
            missed = relations.distances - (rows[:, q] - rows[:, p])
        room = np.where(
            relations.distances > 0,
            relations.rounding_of_inequalities,
            room[:, p] + room[:, q],
        )
        _warn(lambda k: _order_of(relations, k), missed, room, caller)


def _order_of(relations, k):
    """Describe an order of two columns, with their least difference if not 0."""
    names = relations.equalities.feature_names
    p, q = relations.inequalities[k]
    distance = relations.distances[k]
    by = f" + {distance:.6g}" if distance else ""
    return f"{names[p]}{by} <= {names[q]}"


def _check_equalities(rows, relations, eps, largest, caller):
    """Raise an error for the first row that violates an equality."""
    system, gaps = relations.equalities, np.isnan(rows)
    ranges, applies = system.ranges, np.True_
    if gaps.any():
        system, applies = implied_equalities(relations, gaps)
        system = replace(system, ranges=ranges)
    missed, room = np.abs(system.residual(rows)), system.rounding(rows, eps)
    # New rows may violate equalities by as much as mixed training rows.
    # Equalities are confirmed on all rows, whose ranges exceed those of a class.
    ranges = relations.columns.ranges if ranges is None else ranges
    of_rows = np.abs(system.coefficients) @ (2 * TOL * ranges + ROUNDINGS * largest)
    room = np.maximum(room, of_rows)
    missed = np.where(applies, missed, 0)
    if (missed > room).any():
        row, k = np.argwhere(missed > room)[0]
        raise Infeasibility(
            f"{caller}: row {row} violates {system.descriptions[k]} by "
            f"{missed[row, k]:.3g}.",
            int(row),
        )


def _warn(name_of, missed, room, caller):
    """Warn of violations (n, k) that exceed a tolerance."""
    off = missed > room
    if not off.any():
        return
    failing = np.flatnonzero(off.any(axis=0))
    k, others = failing[0], len(failing) - 1
    bad = np.flatnonzero(off[:, k])
    more = f" (and {others} more conditions)" if others else ""
    warn_missed(
        f"{caller}: {len(bad)} row{'s violate' if len(bad) > 1 else ' violates'} "
        f"{name_of(k)}{more} by up to {missed[bad, k].max():.3g}; the first is row "
        f"{bad[0]}. Widen the constraints or totals, or drop these rows."
    )
