"""Sample new rows that have totals, as one batch.

Base rows are drawn with calibrated weights, so that requested counts are exact. The
sample is then projected onto the requested sums.
"""

from dataclasses import replace

import numpy as np

from .._utils.arrays import dense
from ..columns.constraints import Infeasibility
from ..columns.repair import (
    LAST_STEPS,
    copy_flags,
    repair,
    reset_rows,
    restore_equalities,
)
from ..control.audit import audit_rows, report_of
from ..control.base_rows import (
    choose_base_rows,
    in_spreads,
    matched,
    near_rows,
    parent_weights,
)
from ..control.sum_projection import project_to_totals
from ..control.totals import Totals
from ..geometry.convex.weights import effective_size
from .batches import joined

# Share of the base rows that are chosen without regard to the constraints, before
# counts are satisfied.
_FAR = 1e-6


def sample_with_totals(sampler, rng, totals):
    """Sample new rows as one batch that has the totals, and a report.

    Base rows are drawn with calibrated weights; the sample is then projected onto the
    totals. The precision is set, and the rows are checked, once after the projection.
    """
    requested = _read_totals(sampler, totals)
    weights, base_rows = _base_rows(sampler, requested, rng)
    request = replace(sampler.request, base_rows=base_rows, shares=None)
    if requested.counted:
        # Counts are counts of base rows, which therefore give the categories.
        request = replace(request, mutual=False)
    sampler = replace(sampler, request=request)
    # The audit and the compression follow the last steps.
    n_last = 2 + len(LAST_STEPS)
    batches = sampler.batches(rng, steps=sampler.steps[:-n_last])
    batch = joined(batches, request.n_samples)
    start = dense(batch.values)
    batch = batch._replace(values=np.array(start, np.float64))
    if requested.counted:
        batch = _with_base_rows(batch, base_rows, sampler.context)
    moved = _projected_to_totals(sampler, requested, batch)
    # Totals are checked in the precision in which rows are returned.
    batch = repair(batch._replace(values=moved.copy()), sampler.context, LAST_STEPS)
    achieved = requested.achieved(batch.values, base_rows)
    _check_totals(sampler, requested, moved, base_rows, achieved)
    audit_rows(batch.values, sampler.feasible, sampler.context.caller, totals=True)
    ranges = sampler.feasible.columns.ranges
    away = np.nan_to_num(moved - start) / np.where(ranges > 0, ranges, 1)
    report = report_of(
        sampler.feasible,
        moved,
        n_train=len(sampler.source.mixable),
        n_parents=effective_size(weights),
        of_totals=achieved,
        moved=np.sqrt(np.mean(away**2, axis=0)),
    )
    return batch, report


def _with_base_rows(batch, base_rows, context):
    """Return a batch whose categories and binary columns are those of its base rows.

    A constraint may have replaced a row by a copy of another training row.
    """
    parents = np.column_stack([base_rows, batch.parents[:, 1:]])
    batch = batch._replace(
        donors=base_rows, parents=parents, givers=None, exact=batch.values.copy()
    )
    return repair(batch, context, (copy_flags, restore_equalities, reset_rows))


def _projected_to_totals(sampler, requested, batch):
    """Return the values (n, D) of a batch, projected onto the sums."""
    if not len(requested.sums):
        return batch.values
    # Cells of donors stay as they are.
    return project_to_totals(
        batch.values,
        requested.sums_of(batch.values),
        sampler.feasible,
        fixed=sampler.context.relations.columns.binary,
        avoid=sampler.fixed_cells(batch),
    )


def _read_totals(sampler, totals):
    """Read totals of new rows, and reject totals that the method cannot satisfy."""
    if sampler.drops:
        raise ValueError(
            "infeasible='drop' cannot be combined with totals, which all new rows "
            "have together. Pass infeasible='raise'."
        )
    relations = sampler.context.relations
    requested = Totals.read(
        totals,
        sampler.request.n_samples,
        sampler.table,
        sampler.training_rows,
        relations.discrete,
    )
    if requested.counted and not sampler.source.has_base_rows:
        raise ValueError(
            "Categories cannot be counted in new rows that are drawn from a density, "
            "because the rows have no base row. Use draws='mixup'."
        )
    return requested


def _check_totals(sampler, requested, moved, base_rows, achieved):
    """Raise an error if new rows (n, D) miss a count or a sum."""
    if requested.counted:
        # A constraint may have moved binary columns.
        binary = sampler.context.relations.columns.binary
        given = sampler.training_rows[base_rows][:, binary]
        off = (~np.isnan(given) & (moved[:, binary] != given)).any(axis=1)
        if off.any():
            raise Infeasibility(
                f"Row {np.argmax(off)} cannot satisfy its constraints and be counted "
                f"in {' and '.join(requested.counted)}, because binary columns are "
                "copied from a training row. Leave out the constraint, or the count.",
                int(np.argmax(off)),
            )
    names, *_, values, residual = achieved
    room = np.zeros(len(names))
    precision = sampler.feasible.columns.table.precision
    room[: len(requested.sums)] = requested.sums.tolerance(precision)
    is_missed = ~(residual <= room)
    if is_missed.any():
        k = int(np.argmax(is_missed))
        raise Infeasibility(
            f"The new rows miss {names[k]}: they have {values[k]:.10g}. Request this "
            "value, or an interval."
        )


def _base_rows(sampler, requested, rng):
    """Choose base rows (n,) that have the counts and are near the constraints.

    Returns
    -------
    weights : ndarray of shape (m,)
        Calibrated weights of the training rows.
    base_rows : ndarray of int of shape (n,)
    """
    numbers, given = sampler.training_rows, sampler.request.shares
    constraints, near = sampler.feasible.constraints, sampler.conditioned(rng)
    given = np.ones(len(numbers)) if given is None else given
    shares = given if near.shares is None else near.shares
    if near.base_rows is not None:
        shares = np.bincount(near.base_rows, minlength=len(numbers))
    # Counts may require rows that are far from the constraints.
    shares = shares / shares.sum() + _FAR * given / given.sum()
    if requested.counted:
        misses = _misses_for_good(sampler, numbers)
        # If no row is left, the projection names the constraint.
        shares[misses & ~misses.all()] = 0.0
    kinds = np.zeros(len(numbers), int), np.zeros(requested.n, int)
    if requested.counted and near.base_rows is not None:
        # Counted rows keep their binary columns, which need the value of each row.
        part = constraints.select(_is_discrete(sampler) & constraints.is_equality)
        if len(part):
            values = part.values_of(numbers)
            requested, kinds = requested.with_row_values(
                values, part.lower, " and ".join(part.names)
            )
    weights = parent_weights(requested, numbers, shares)
    base_rows = choose_base_rows(requested, weights, rng)
    if near.base_rows is None:
        return weights, base_rows
    values, *bounds = in_spreads(
        constraints.values_of(numbers), constraints.lower, constraints.upper
    )
    cells = requested.cells[1]
    cell = cells[base_rows]
    if requested.counted:
        points = np.clip(values[near.base_rows], *bounds)
        for kind in np.unique(kinds[1]):
            i, j = (np.flatnonzero(x == kind) for x in (kinds[1], kinds[0][base_rows]))
            own = (bound[i] for bound in bounds)
            cell[i] = cells[base_rows][
                j[matched(values[base_rows[j]], *own, points[i])]
            ]
    ratios = np.divide(weights, shares, out=np.zeros(len(weights)), where=shares > 0)
    for k in np.unique(cell):
        indices, members = np.flatnonzero(cell == k), np.flatnonzero(cells == k)
        own = values[members], *(bound[indices] for bound in bounds), rng
        base_rows[indices] = members[near_rows(*own, ratios[members] * given[members])]
    return weights, base_rows


def _misses_for_good(sampler, numbers):
    """Return which training rows (m,) no new row with their binary columns can start.

    New rows that are counted keep the binary columns of their base rows, so the
    constraints on these columns must be satisfied there.
    """
    constraints = sampler.feasible.constraints
    if constraints.lower.ndim > 1:
        return np.zeros(len(numbers), bool)
    return constraints.select(_is_discrete(sampler)).violations(numbers).any(axis=1)


def _is_discrete(sampler):
    """Return the mask (k,) of the constraints on binary columns only."""
    movable = ~sampler.context.relations.discrete
    coefficients = sampler.feasible.constraints.coefficients
    return ~(coefficients[:, movable] != 0).any(axis=1)
