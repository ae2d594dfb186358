"""Sets of new rows with totals: calibrated parents, donors of counts, a projection."""

from dataclasses import replace

import numpy as np

from .calibration import effective_size
from .constraints.report import SampleReport, report_of_rows
from .constraints.sum_projection import project_to_totals
from .constraints.totals import Quotas, Totals, check_totals, parent_weights
from .sampling import joined


def sample_set(drawing, rng, totals):
    """New rows as one batch that has the totals, and a report.

    Parents are drawn with calibrated weights; the sample is then projected onto the
    totals.
    """
    if drawing.drops:
        raise ValueError("Totals are of all rows: pass infeasible='raise'.")
    numbers = drawing.source.numbers
    wanted = _read(drawing, totals, numbers)
    weights = parent_weights(wanted, numbers)
    quotas = Quotas.of(wanted, weights)
    seeds = quotas.starts(weights, rng)
    drawing = replace(drawing, start=replace(drawing.start, seeds=seeds, shares=None))
    batch = joined(drawing.batches(rng))
    donors, unrelated = quotas.donors(
        batch.donors, batch.parents, drawing.source.nearest, rng
    )
    batch = batch._replace(donors=donors)
    drawn = wanted.values(batch.numbers, _levels(wanted, batch))
    moved = _moved(drawing, wanted, batch, numbers)
    report = _report(drawing, wanted, batch, moved, drawn, weights, unrelated)
    batch = batch._replace(numbers=moved)
    drawing.audit(batch)
    return batch, report


def _read(drawing, totals, numbers):
    """Read totals of all new rows together."""
    table, relations = drawing.table, drawing.source.relations
    rows = table.like(numbers.copy(), np.arange(len(numbers)))
    return Totals.read(
        totals, drawing.start.n_samples, rows, table.columns, starts=table.starts,
        is_time=table.times, discrete=relations.binary,
    )  # fmt: skip


def _levels(wanted, batch):
    """Levels of new rows by margin: those of their donors."""
    return [margin.codes[batch.donors] for margin in wanted.margins]


def _moved(drawing, wanted, batch, numbers):
    """Copy counted columns of donors, then project all rows onto the sums."""
    relations, feasible = drawing.source.relations, drawing.feasible
    rows = batch.numbers.copy()
    copied = wanted.counted
    if len(copied):
        # Two-valued columns are copied from the same donor.
        copied = np.union1d(copied, np.flatnonzero(relations.binary))
    rows[:, copied] = numbers[np.ix_(batch.donors, copied)]
    relations.dependents.restore(rows)
    broken, tied = np.flatnonzero(relations.broken(rows)), relations.joined
    rows[np.ix_(broken, tied)] = numbers[np.ix_(batch.donors[broken], tied)]
    if not len(wanted.sums):
        return rows
    batch = batch._replace(numbers=rows)
    # Cells of donors stay as they are.
    fixed = np.zeros(rows.shape, bool)
    fixed[:, wanted.counted] = fixed[:, relations.binary] = True
    avoided = drawing.fixed_cells(batch) | (feasible.ranges == 0)
    return project_to_totals(rows, wanted.sums, feasible, fixed=fixed, held=avoided)


def _report(drawing, wanted, batch, moved, drawn, weights, unrelated):
    """A report on totals and on the constraints of each row."""
    feasible, table = drawing.feasible, drawing.table
    names, lower, upper, achieved = check_totals(
        wanted, moved, _levels(wanted, batch), table.precision
    )
    types = tuple(name.split()[1] for name in names)
    sizes = np.ones(len(names))
    sizes[: len(wanted.sums)] = np.maximum(wanted.sums.sizes(moved), 1e-300)
    missed = np.abs(achieved - np.clip(achieved, lower, upper)) / sizes
    of_totals = names, types, lower, upper, drawn, achieved, missed
    of_rows = report_of_rows(feasible.equalities, feasible.constraints, moved)
    units = np.where(feasible.ranges > 0, feasible.ranges, 1)
    away = np.nan_to_num(moved - batch.numbers) / units
    return _joined_report(
        drawing, len(moved), [of_totals, of_rows], np.sqrt(np.mean(away**2, axis=0)),
        effective_size(weights), int(unrelated.sum()),
    )  # fmt: skip


def report_of(drawing, batch):
    """A report on rows without totals."""
    feasible = drawing.feasible
    of_rows = report_of_rows(feasible.equalities, feasible.constraints, batch.numbers)
    still = np.zeros(batch.numbers.shape[1])
    n_train = float(len(drawing.source))
    return _joined_report(drawing, len(batch.numbers), [of_rows], still, n_train, 0)


def _joined_report(drawing, n, parts, displacement, effective, unrelated):
    names, types, *arrays = zip(*parts, strict=True)
    return SampleReport(
        n, len(drawing.source), sum(names, ()), sum(types, ()),
        *(np.concatenate(values) for values in arrays), drawing.table.feature_names,
        displacement, effective, unrelated,
    )  # fmt: skip
