"""Sets of new rows with totals: calibrated parents, then one projection of all."""

from dataclasses import replace

import numpy as np

from .calibration import effective_size
from .constraints.infeasible import Infeasibility
from .constraints.report import SampleReport, report_of_rows
from .constraints.sum_projection import project_to_totals
from .constraints.totals import Totals, choose_seeds, parent_weights
from .draws import MixupDraws
from .sampling import joined


def sample_set(drawing, rng, totals):
    """New rows as one batch that has the totals, and a report.

    Parents are drawn with calibrated weights; the sample is then projected onto the
    totals.
    """
    if drawing.drops:
        raise ValueError("Totals are of all rows: pass infeasible='raise'.")
    source, table, start = drawing.source, drawing.table, drawing.start
    numbers, discrete = source.numbers, source.relations.binary
    asked = Totals.read(totals, start.n_samples, table, numbers, discrete)
    if asked.margins and getattr(source, "draws", MixupDraws).looks_up:
        raise ValueError(
            "Categories that are counted are those of the training row that a new row "
            "starts from, which rows of a density do not have: use draws='mixup'."
        )
    weights = parent_weights(asked, numbers)
    seeds = choose_seeds(asked, weights, rng)
    drawing = replace(drawing, start=replace(start, seeds=seeds, shares=None))
    batch = joined(drawing.batches(rng))
    if asked.margins:
        batch = batch._replace(donors=seeds)
    codes = [margin.codes[seeds] for margin in asked.margins]
    moved = _moved(drawing, asked, batch, numbers)
    achieved = asked.achieved(drawing.as_returned(moved), codes)
    _check(asked, achieved, drawing.feasible.precision)
    ranges = drawing.feasible.ranges
    away = np.nan_to_num(moved - batch.numbers) / np.where(ranges > 0, ranges, 1)
    batch = batch._replace(numbers=moved)
    report = report_of(
        drawing, batch, achieved,
        np.sqrt(np.mean(away**2, axis=0)), effective_size(weights),
    )  # fmt: skip
    drawing.audit(batch)
    return batch, report


def _check(asked, achieved, precision):
    """Check totals of rows as their user gets them."""
    names, *_, values, residual = achieved
    room = np.zeros(len(names))
    room[: len(asked.sums)] = asked.sums.tolerance(precision)
    for k in np.flatnonzero(~(residual <= room)):
        raise Infeasibility(f"{names[k]} is missed: new rows have {values[k]:.10g}.")


def _moved(drawing, asked, batch, numbers):
    """Copy two-valued columns of donors, then project all rows onto the sums."""
    relations, feasible = drawing.source.relations, drawing.feasible
    rows = batch.numbers.copy()
    if asked.margins:
        # They may be counted, or follow from categories that are.
        rows[:, relations.binary] = numbers[batch.donors][:, relations.binary]
    relations.dependents.restore(rows)
    broken = np.flatnonzero(relations.broken(rows))
    columns = np.flatnonzero(relations.reset_together)
    rows[np.ix_(broken, columns)] = numbers[np.ix_(batch.donors[broken], columns)]
    if not len(asked.sums):
        return rows
    # Cells of donors stay as they are.
    fixed = np.broadcast_to(relations.binary, rows.shape)
    avoid = drawing.fixed_cells(batch._replace(numbers=rows)) | (feasible.ranges == 0)
    return project_to_totals(rows, asked.sums, feasible, fixed=fixed, avoid=avoid)


def report_of(drawing, batch, of_totals=None, displacement=None, n_parents=None):
    """A report on the constraints of each row, and on totals if there are any."""
    feasible, n_train = drawing.feasible, len(drawing.source)
    of_rows = report_of_rows(feasible.equalities, feasible.constraints, batch.numbers)
    parts = [of_rows] if of_totals is None else [of_totals, of_rows]
    names, *arrays = zip(*parts, strict=True)
    if displacement is None:
        displacement, n_parents = np.zeros(len(feasible.names)), float(n_train)
    return SampleReport(
        len(batch.numbers), n_train, sum(names, ()),
        *map(np.concatenate, arrays), drawing.table.feature_names, displacement,
        n_parents,
    )  # fmt: skip
