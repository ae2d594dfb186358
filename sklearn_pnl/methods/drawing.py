"""What is asked of new rows: constraints of each, totals of all, and the last check."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from .._utils.arrays import dense
from .._utils.blocks import cut
from ..control.audit import Infeasibility, audit_rows, explain_infeasible, report_of
from ..control.calibration import effective_size
from ..control.projection import project_rows
from ..control.sum_projection import project_to_totals
from ..control.totals import Totals
from .parents import (
    Batch,
    choose_seeds,
    condition_weights,
    in_spreads,
    matched,
    near_rows,
    parent_weights,
)

# New cells of a batch, so that temporaries stay small.
BATCH_CELLS = 2**19
# Share of the base rows that are chosen without regard to the constraints, before
# counts are satisfied.
_FAR = 1e-6


@dataclass(frozen=True)
class Drawing:
    """Draw new rows of a source, project them onto their constraints and check them.

    Attributes
    ----------
    source : object
        What a method made of the training rows; see ``engine``.
    table : Table
        Without its rows.
    feasible : Structure
        What each row is to satisfy.
    request : Request
    drops : bool
        Whether infeasible rows are left out.
    caller : str
    advice : str
        Follows the message of an infeasible row.
    """

    source: Any
    table: Any
    feasible: Any
    request: Any
    drops: bool = False
    caller: str = ""
    advice: str = ""

    @property
    def n_numbers(self):
        """How many numbers a new row takes while it is drawn."""
        return self.n_cells + self.source.n_numbers

    @property
    def n_cells(self):
        """How many cells of a new row are computed."""
        return len(self.table.columns) if self.projects else self.source.n_cells

    def batches(self, rng, size=None, kept=None):
        """Batches of ``size`` new rows that satisfy the feasible set.

        The numbers of the rows that are not dropped are appended to ``kept``.
        """
        at_once, kept = 1 + BATCH_CELLS // self.n_cells, [] if kept is None else kept
        if size is None or not self.projects:
            drawn = self._drawn(rng, size or at_once, kept)
        else:
            # Rounding depends on which rows a matrix product is over: the same for all
            # sizes.
            drawn = starmap(Batch, cut(self._drawn(rng, at_once, kept), size))
        for batch in drawn:
            yield batch._replace(numbers=self.table.compressed(batch.numbers))

    @property
    def projects(self):
        """Whether new rows are projected onto what is asked, or kept."""
        is_off = len(self.feasible.equalities) and not self.source.keeps_equalities
        return bool(len(self.feasible.constraints) or is_off)

    def _drawn(self, rng, size, kept):
        request, done = self.conditioned(rng), 0
        for batch in self.source.batches(request, rng, size):
            rows = np.arange(done, done + len(batch.donors))
            done += len(rows)
            batch, infeasible = self._feasible(batch, rows)
            kept.append(rows[~infeasible])
            yield batch

    def conditioned(self, rng):
        """Return the request with base rows near the constraints, or shares of them."""
        request, asked = self.request, self.feasible.constraints
        if request.seeds is not None or not len(asked):
            return request
        values = asked.values_of(self.training_rows)
        ends, shares = (asked.lower, asked.upper), request.shares
        if asked.lower.ndim == 1:
            weights = condition_weights(values, *ends)
            return replace(
                request, shares=weights if shares is None else weights * shares
            )
        scaled = in_spreads(values, *ends)
        return replace(request, seeds=near_rows(*scaled, rng, shares, request.n_jobs))

    def _feasible(self, batch, rows):
        """Project a batch onto its feasible set, and audit it.

        Return the batch without its infeasible rows, and the mask (b,) of these.
        """
        feasible, infeasible = self.feasible, np.zeros(len(rows), bool)
        if self.projects:
            batch = batch._replace(numbers=dense(batch.numbers))
            feasible = feasible.take_rows(rows)
            fixed = self.fixed_cells(batch)
            numbers, infeasible = project_rows(batch.numbers, feasible, fixed)
            moved = (numbers != batch.numbers).any(axis=1)
            batch = batch._replace(numbers=numbers)
            if len(feasible.constraints):
                batch, infeasible = self._copied(batch, moved, infeasible, feasible)
            if infeasible.any() and not self.drops:
                error = explain_infeasible(batch.numbers, infeasible, feasible, rows)
                error.args = (f"{error} {self.advice}".rstrip(),)
                raise error
            batch = batch.take_rows(~infeasible)
            feasible = feasible.take_rows(~infeasible)
        self.audit(batch, feasible)
        return batch, infeasible

    def _copied(self, batch, moved, infeasible, feasible):
        """Batch of projected rows, and which rows (b,) are infeasible.

        Rows that are ``moved`` by the projection and then violate a relation become
        copies of the nearest training rows that satisfy the constraints, if any do.
        """
        training = self.training_rows
        numbers, parents, weights, donors = (part.copy() for part in batch)
        b, ranges = feasible.binary, feasible.ranges
        asked = replace(feasible.constraints, ranges=ranges)
        flags = numbers[:, b]
        off = (flags != feasible.low[b]) & (flags != feasible.high[b])
        infeasible = infeasible | (moved & (off & ~np.isnan(flags)).any(axis=1))
        violated = feasible.system().violations(numbers)
        equal, others = np.split(violated, [len(feasible.equalities)], axis=1)
        bad = moved & (feasible.breaks(numbers) | equal.any(axis=1))
        bad |= infeasible | others.any(axis=1)
        units = np.where(ranges > 0, ranges, 1)
        for i in np.flatnonzero(bad):
            misses = asked.take_rows([i]).violations(training).any(axis=1)
            candidates = np.flatnonzero(~misses)
            if len(candidates):
                away = np.nan_to_num((training[candidates] - numbers[i]) / units)
                donors[i] = candidates[np.argmin(np.square(away).sum(axis=1))]
                numbers[i], infeasible[i] = training[donors[i]], False
                parents[i] = donors[i]
        return Batch(numbers, parents, weights, donors), infeasible

    def audit(self, batch, feasible=None):
        """Check new rows in the precision in which each column is returned."""
        numbers, feasible = batch.numbers, feasible or self.feasible
        if issparse(numbers):
            # Only rows with a cell that is off need to be told in words.
            numbers = numbers[feasible.may_break(numbers)].toarray()
        audit_rows(self.as_returned(numbers), feasible, self.caller)

    def as_returned(self, numbers):
        """Numbers (b, D) rounded to the precision in which columns are returned."""
        is_single = self.table.precision > np.finfo(float).eps
        if is_single.any():
            numbers, most = numbers.copy(), np.finfo(np.float32).max
            within = np.clip(numbers[:, is_single], -most, most)
            numbers[:, is_single] = within.astype(np.float32)
        return numbers

    def fixed_cells(self, batch):
        """Cells (b, D) that move only where no other cells satisfy the constraints.

        Zeros that all parents share, and two-valued columns.
        """
        structure = self.source.structure
        zero = batch.numbers == 0
        for parents in batch.parents.T:
            zero &= self.training_rows[parents] == 0
        zero[:, structure.binary] = True
        return zero

    @cached_property
    def training_rows(self):
        """The training rows (m, D), which codes are decoded for."""
        return self.source.training_rows()


def joined(batches, n):
    """All rows, n at most, as one batch; each is let go once its rows are copied."""
    whole, done, sparse = None, 0, []
    for batch in batches:
        if batch.numbers.shape[0] == n:
            return batch
        if issparse(batch.numbers):
            sparse.append(batch.numbers)
            batch = batch._replace(numbers=np.empty((len(batch.donors), 0)))
        if whole is None:
            whole = [np.empty((n, *part.shape[1:]), part.dtype) for part in batch]
        rows = slice(done, done + len(batch.donors))
        for part, new in zip(whole, batch, strict=True):
            part[rows] = new
        done = rows.stop
    batch = Batch(*(part[:done] for part in whole))
    return batch._replace(numbers=vstack(sparse, "csr")) if sparse else batch


# --- totals of all new rows ----------------------------------------------------------


def sample_set(drawing, rng, totals):
    """New rows as one batch that has the totals, and a report.

    Parents are drawn with calibrated weights; the sample is then projected onto the
    totals.
    """
    if drawing.drops:
        raise ValueError("Totals are of all rows: pass infeasible='raise'.")
    source, table, request = drawing.source, drawing.table, drawing.request
    numbers, binary = drawing.training_rows, source.structure.binary
    discrete = source.structure.discrete
    asked = Totals.read(totals, request.n_samples, table, numbers, discrete)
    if asked.counted and not source.can_count:
        raise ValueError(
            "Categories that are counted are those of the training row that a new row "
            "starts from, which rows of a density do not have: use draws='mixup'."
        )
    weights, seeds = _base_rows(drawing, asked, rng)
    drawing = replace(drawing, request=replace(request, seeds=seeds, shares=None))
    batch = joined(drawing.batches(rng), request.n_samples)
    batch = batch._replace(numbers=dense(batch.numbers))
    if asked.counted:
        batch = batch._replace(donors=seeds)
    moved = _moved(drawing, asked, batch, numbers)
    if asked.counted:
        # A constraint may have moved them.
        given = numbers[seeds][:, binary]
        off = (~np.isnan(given) & (moved[:, binary] != given)).any(axis=1)
        if off.any():
            raise Infeasibility(
                f"Row {np.argmax(off)} cannot have what is asked of it and be counted "
                f"in {' and '.join(asked.counted)}: two-valued columns are those of a "
                "training row. Leave out the constraint, or the count.",
                int(np.argmax(off)),
            )
    # As users get them.
    achieved = asked.achieved(drawing.as_returned(moved), seeds)
    names, *_, values, residual = achieved
    room = np.zeros(len(names))
    room[: len(asked.sums)] = asked.sums.tolerance(drawing.feasible.table.precision)
    for k in np.flatnonzero(~(residual <= room)):
        raise Infeasibility(f"{names[k]} is missed: new rows have {values[k]:.10g}.")
    ranges = drawing.feasible.ranges
    away = np.nan_to_num(moved - batch.numbers) / np.where(ranges > 0, ranges, 1)
    batch = batch._replace(numbers=moved)
    report = report_of(
        drawing.feasible, moved, len(source), effective_size(weights), achieved,
        np.sqrt(np.mean(away**2, axis=0)),
    )  # fmt: skip
    drawing.audit(batch)
    return batch, report


def _base_rows(drawing, asked, rng):
    """Choose base rows (n,) that have the counts and are near the constraints.

    Returns
    -------
    weights : ndarray of shape (m,)
        Calibrated weights of the training rows.
    seeds : ndarray of int of shape (n,)
    """
    numbers, given = drawing.training_rows, drawing.request.shares
    constraints, near = drawing.feasible.constraints, drawing.conditioned(rng)
    given = np.ones(len(numbers)) if given is None else given
    shares = given if near.shares is None else near.shares
    if near.seeds is not None:
        shares = np.bincount(near.seeds, minlength=len(numbers))
    # Counts may require rows that are far from the constraints.
    shares = shares / shares.sum() + _FAR * given / given.sum()
    if asked.counted:
        misses = _misses_for_good(drawing, numbers)
        # If no row is left, the projection names the constraint.
        shares[misses & ~misses.all()] = 0.0
    weights = parent_weights(asked, numbers, shares)
    seeds = choose_seeds(asked, weights, rng)
    if near.seeds is None:
        return weights, seeds
    values, *ends = in_spreads(
        constraints.values_of(numbers), constraints.lower, constraints.upper
    )
    cells = asked.cells[1]
    cell = cells[seeds]
    if asked.counted:
        cell = cell[matched(values[seeds], *ends, np.clip(values[near.seeds], *ends))]
    ratios = np.divide(weights, shares, out=np.zeros(len(weights)), where=shares > 0)
    for k in np.unique(cell):
        rows, members = np.flatnonzero(cell == k), np.flatnonzero(cells == k)
        own = values[members], *(end[rows] for end in ends), rng
        seeds[rows] = members[near_rows(*own, ratios[members] * given[members])]
    return weights, seeds


def _misses_for_good(drawing, numbers):
    """Return which training rows (m,) no new row with their binary columns can start.

    New rows that are counted keep the binary columns of their base rows, so the
    constraints on these columns must be satisfied there.
    """
    constraints = drawing.feasible.constraints
    if constraints.lower.ndim > 1:
        return np.zeros(len(numbers), bool)
    movable = ~drawing.source.structure.discrete
    is_about = ~(constraints.coefficients[:, movable] != 0).any(axis=1)
    return constraints.select(is_about).violations(numbers).any(axis=1)


def _moved(drawing, asked, batch, numbers):
    """Copy two-valued columns of donors, then project all rows onto the sums."""
    structure, feasible = drawing.source.structure, drawing.feasible
    rows = batch.numbers.copy()
    if asked.counted:
        # They may be counted, or follow from categories that are.
        rows[:, structure.binary] = numbers[batch.donors][:, structure.binary]
    structure.restore(rows)
    broken = np.flatnonzero(structure.breaks(rows))
    columns = np.flatnonzero(structure.reset_together)
    rows[np.ix_(broken, columns)] = numbers[np.ix_(batch.donors[broken], columns)]
    if not len(asked.sums):
        return rows
    # Cells of donors stay as they are.
    fixed = structure.binary
    avoid = drawing.fixed_cells(batch._replace(numbers=rows))
    return project_to_totals(
        rows, asked.sums_of(rows), feasible, fixed=fixed, avoid=avoid
    )
