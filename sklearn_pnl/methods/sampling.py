"""Fit a method to training rows, sample new rows, project them and check them.

``fit_rows`` fits a method (:class:`Lines`, :class:`Codes`) to all training rows, or to
the rows of a class. ``FittedRows.sample`` returns new rows. A ``RowSampler`` takes
batches of new rows from the source of the method, projects each row onto its
constraints, and checks the result. ``sample_with_totals`` projects a set of new rows
onto totals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from .._utils.arrays import dense
from .._utils.blocks import cut
from .._utils.warnings import warn_user
from ..columns.constraints import read_constraints
from ..columns.rounding import reset_together, restore
from ..control.audit import audit_rows, report_of
from ..control.base_rows import (
    choose_base_rows,
    condition_weights,
    in_spreads,
    matched,
    near_rows,
    parent_weights,
)
from ..control.infeasible_requests import Infeasibility, explain_infeasible
from ..control.projection import project_rows
from ..control.sum_projection import project_to_totals
from ..control.totals import Totals
from ..control.weights import effective_size
from ..frames import warn_extreme_values
from .source import Batch, Request

# New cells of a batch, so that temporaries stay small.
BATCH_CELLS = 2**18


# Share of the base rows that are chosen without regard to the constraints, before
# counts are satisfied.
_FAR = 1e-6


def fit_rows(method, table, relations, k_neighbors, groups, n_jobs, caller):
    """Fit a method to rows: all rows, or the rows of a class.

    Parameters
    ----------
    method : Lines or Codes
    table : Table
    relations : ColumnRelations
        The relations of the rows of all classes.
    k_neighbors : int or "auto"
    groups : ndarray of shape (m,) or None
        The group of each row; only rows of one group are mixed.
    n_jobs : int or None
    caller : str
        The estimator that messages name.

    Returns
    -------
    rows : FittedRows
    """
    warn_extreme_values(table, relations.columns.least, relations.columns.most)
    if groups is not None and len(groups) > 1 and np.bincount(groups).max() == 1:
        warn_user(
            f"All new rows of {table.data_name} are copies, because each row has its "
            "own group, and rows of different groups are not mixed. Merge groups, or "
            "leave out groups."
        )
    source = method.fit(table, relations, k_neighbors, groups, n_jobs, caller)
    return FittedRows(source, table.without_rows(), n_jobs, caller)


@dataclass(frozen=True)
class FittedRows:
    """A method fitted to training rows, from which new rows are sampled.

    Attributes
    ----------
    source : Source
        The source that the ``fit`` of the method returned.
    table : Table
        The columns of the training rows, without the rows.
    n_jobs : int or None
    caller : str
    """

    source: Any
    table: Any
    n_jobs: int | None
    caller: str

    def sample(
        self,
        n_samples,
        rng,
        constraints=None,
        totals=None,
        *,
        drops=False,
        advice="",
        reports=False,
        shares=None,
    ):
        """Sample new rows as a batch, with a report on request.

        Parameters
        ----------
        n_samples : int
        rng : RandomState
        constraints, totals
            As for :meth:`PNLAugmenter.sample`.
        drops : bool
            Whether infeasible rows are left out.
        advice : str
            Text after the message of an infeasible row.
        reports : bool
            Whether to report on constraints. Totals are always reported.
        shares : ndarray of shape (m,) or None
            Relative frequencies of the training rows as base rows.

        Returns
        -------
        batch : Batch
        report : SampleReport or None
        """
        sampler = self.row_sampler(n_samples, constraints, drops, advice, shares)
        if totals is not None:
            return sample_with_totals(sampler, rng, totals)
        kept = []
        batch = joined(sampler.batches(rng, kept=kept), n_samples)
        if not batch.numbers.shape[0]:
            raise ValueError(
                f"{self.caller}: none of {n_samples} new rows satisfies the "
                "constraints. Pass infeasible='raise' to see the reason."
            )
        if not reports:
            return batch, None
        n_parents = effective_size(np.bincount(batch.parents[:, 0]))
        feasible = sampler.feasible.take_rows(np.concatenate(kept))
        requested = feasible, dense(batch.numbers), len(self.source)
        return batch, report_of(*requested, n_parents)

    def row_sampler(
        self, n_samples, constraints=None, drops=False, advice="", shares=None
    ):
        """Return a :class:`RowSampler` of new rows that satisfy constraints."""
        source, feasible = self.source, self.source.feasible
        if shares is not None and not source.takes_shares:
            raise ValueError(
                f"{self.caller}: weights of training rows have no effect on new rows "
                "that are drawn from a density. Use draws='mixup', or no weights."
            )
        request = Request(
            n_samples,
            source.n_neighbors,
            shares,
            strata=source.strata,
            mutual=source.has_donors,
            n_jobs=self.n_jobs,
        )
        if constraints is not None:
            wanted = read_constraints(constraints, self.table, n_samples)
            feasible = replace(feasible, constraints=wanted)
        return RowSampler(
            source, self.table, feasible, request, drops, self.caller, advice
        )

    def restored(self, batch):
        """Return new rows in the container of the training rows."""
        return self.table.like(batch.numbers, batch.donors)


@dataclass(frozen=True)
class RowSampler:
    """Draw new rows of a source, project them onto their constraints and check them.

    Attributes
    ----------
    source : object
        The source of the method; see ``methods.source``.
    table : Table
        Without its rows.
    feasible : FeasibleSet
        The constraints and relations that each row must satisfy.
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
        """The number of values that a new row needs while it is computed."""
        return self.n_cells + self.source.n_numbers

    @property
    def n_cells(self):
        """The number of cells of a new row that are computed."""
        return len(self.table.columns) if self.projects else self.source.n_cells

    def batches(self, rng, size=None, kept=None):
        """Yield batches of ``size`` new rows that satisfy the feasible set.

        The indices of the rows that are not dropped are appended to ``kept``.
        """
        at_once, kept = 1 + BATCH_CELLS // self.n_cells, [] if kept is None else kept
        if size is None or not self.projects:
            batches = self._batches(rng, size or at_once, kept)
        else:
            # Rounding depends on which rows a matrix product is over: the same for all
            # sizes.
            batches = starmap(Batch, cut(self._batches(rng, at_once, kept), size))
        for batch in batches:
            yield batch._replace(numbers=self.table.compressed(batch.numbers))

    @property
    def projects(self):
        """Whether new rows are projected onto constraints or equalities."""
        equalities = self.feasible.relations.equalities
        is_off = len(equalities) and not self.source.keeps_equalities
        return bool(len(self.feasible.constraints) or is_off)

    def _batches(self, rng, size, kept):
        request, done = self.conditioned(rng), 0
        for batch in self.source.batches(request, rng, size):
            indices = np.arange(done, done + len(batch.donors))
            done += len(indices)
            batch, infeasible = self._feasible(batch, indices)
            kept.append(indices[~infeasible])
            yield batch

    def conditioned(self, rng):
        """Return the request with base rows near the constraints, or shares of them."""
        request, requested = self.request, self.feasible.constraints
        if request.base_rows is not None or not len(requested):
            return request
        values = requested.values_of(self.training_rows)
        bounds, shares = (requested.lower, requested.upper), request.shares
        if requested.lower.ndim == 1:
            weights = condition_weights(values, *bounds)
            return replace(
                request, shares=weights if shares is None else weights * shares
            )
        scaled = in_spreads(values, *bounds)
        return replace(
            request, base_rows=near_rows(*scaled, rng, shares, request.n_jobs)
        )

    def _feasible(self, batch, rows):
        """Project a batch onto its feasible set, and audit it.

        Return the batch without infeasible rows, and the mask (b,) of infeasible rows.
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
                raise explain_infeasible(
                    batch.numbers, infeasible, feasible, rows, self.advice
                )
            batch = batch.take_rows(~infeasible)
            feasible = feasible.take_rows(~infeasible)
        batch = batch._replace(numbers=self.as_returned(batch.numbers))
        self.audit(batch, feasible)
        return batch, infeasible

    def _copied(self, batch, moved, infeasible, feasible):
        """Batch of projected rows, and which rows (b,) are infeasible.

        Rows that are ``moved`` by the projection and then violate a relation become
        copies of the nearest training rows that satisfy the constraints, if any do.
        """
        training = self.training_rows
        numbers, parents, weights, donors = (part.copy() for part in batch)
        b, ranges = feasible.columns.binary, feasible.columns.ranges
        requested = replace(feasible.constraints, ranges=ranges)
        flags = numbers[:, b]
        off = (flags != feasible.columns.low[b]) & (flags != feasible.columns.high[b])
        infeasible = infeasible | (moved & (off & ~np.isnan(flags)).any(axis=1))
        violated = feasible.system().violations(numbers)
        equal, others = np.split(violated, [len(feasible.relations.equalities)], axis=1)
        bad = moved & (feasible.breaks(numbers) | equal.any(axis=1))
        bad |= infeasible | others.any(axis=1)
        units = np.where(ranges > 0, ranges, 1)
        candidates = None
        for i in np.flatnonzero(bad):
            # Constraints that are the same for all rows have the same candidates.
            if candidates is None or requested.lower.ndim > 1:
                misses = requested.take_rows([i]).violations(training).any(axis=1)
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
            # Only rows that may violate a relation are checked as dense rows.
            numbers = numbers[feasible.may_break(numbers)].toarray()
        audit_rows(numbers, feasible, self.caller)

    def as_returned(self, numbers):
        """Round numbers (b, D) to the precision in which columns are returned.

        If all columns are in single precision, the numbers are, too.
        """
        is_single = self.table.precision > np.finfo(float).eps
        if not is_single.any():
            return numbers
        most = float(np.finfo(np.float32).max)
        if is_single.all():
            if issparse(numbers):
                numbers.data = self.as_returned(numbers.data)
                return numbers
            return np.clip(numbers, -most, most).astype(np.float32, copy=False)
        numbers = numbers.copy()
        within = np.clip(numbers[:, is_single], -most, most)
        numbers[:, is_single] = within.astype(np.float32)
        return numbers

    def fixed_cells(self, batch):
        """Return the cells (b, D) that move only if the constraints require it.

        Fixed cells are zeros that all parents share, and binary columns.
        """
        relations = self.source.relations
        zero = batch.numbers == 0
        for parents in batch.parents.T:
            zero &= self.training_rows[parents] == 0
        zero[:, relations.columns.binary] = True
        return zero

    @cached_property
    def training_rows(self):
        """The training rows (m, D), which codes are decoded for."""
        return self.source.training_rows()


def joined(batches, n):
    """Join batches to one batch of at most n rows, freeing each copied batch."""
    joined, done, sparse = None, 0, []
    for batch in batches:
        if batch.numbers.shape[0] == n:
            return batch
        if issparse(batch.numbers):
            sparse.append(batch.numbers)
            batch = batch._replace(numbers=np.empty((len(batch.donors), 0)))
        if joined is None:
            joined = [np.empty((n, *part.shape[1:]), part.dtype) for part in batch]
        rows = slice(done, done + len(batch.donors))
        for part, new in zip(joined, batch, strict=True):
            part[rows] = new
        done = rows.stop
    batch = Batch(*(part[:done] for part in joined))
    return batch._replace(numbers=vstack(sparse, "csr")) if sparse else batch


# --- totals of all new rows ----------------------------------------------------------


def sample_with_totals(sampler, rng, totals):
    """Sample new rows as one batch that has the totals, and a report.

    Base rows are drawn with calibrated weights; the sample is then projected onto the
    totals.
    """
    requested = _read_totals(sampler, totals)
    request, numbers = sampler.request, sampler.training_rows
    weights, base_rows = _base_rows(sampler, requested, rng)
    sampler = replace(
        sampler, request=replace(request, base_rows=base_rows, shares=None)
    )
    batch = joined(sampler.batches(rng), request.n_samples)
    batch = batch._replace(numbers=dense(batch.numbers))
    if requested.counted:
        batch = batch._replace(donors=base_rows)
    moved = _moved(sampler, requested, batch, numbers)
    # Totals are checked in the precision in which rows are returned.
    returned = sampler.as_returned(moved)
    achieved = requested.achieved(returned, base_rows)
    _check_totals(sampler, requested, moved, base_rows, achieved)
    ranges = sampler.feasible.columns.ranges
    away = np.nan_to_num(moved - batch.numbers) / np.where(ranges > 0, ranges, 1)
    batch = batch._replace(numbers=returned)
    report = report_of(
        sampler.feasible,
        moved,
        len(sampler.source),
        effective_size(weights),
        achieved,
        np.sqrt(np.mean(away**2, axis=0)),
    )
    # Totals have priority over the resolution of columns.
    sampler.audit(batch, sampler.feasible.resolutions()[-1])
    return batch, report


def _read_totals(sampler, totals):
    """Read totals of new rows, and reject totals that the method cannot satisfy."""
    if sampler.drops:
        raise ValueError(
            "infeasible='drop' cannot be combined with totals, which all new rows "
            "have together. Pass infeasible='raise'."
        )
    source, n = sampler.source, sampler.request.n_samples
    discrete = source.relations.discrete
    requested = Totals.read(totals, n, sampler.table, sampler.training_rows, discrete)
    if requested.counted and not source.can_count:
        raise ValueError(
            "Categories cannot be counted in new rows that are drawn from a density, "
            "because the rows have no base row. Use draws='mixup'."
        )
    return requested


def _check_totals(sampler, requested, moved, base_rows, achieved):
    """Raise an error if new rows (n, D) miss a count or a sum."""
    if requested.counted:
        # A constraint may have moved binary columns.
        binary = sampler.source.relations.columns.binary
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
        cell = cell[
            matched(
                values[base_rows], *bounds, np.clip(values[near.base_rows], *bounds)
            )
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
    movable = ~sampler.source.relations.discrete
    is_about = ~(constraints.coefficients[:, movable] != 0).any(axis=1)
    return constraints.select(is_about).violations(numbers).any(axis=1)


def _moved(sampler, requested, batch, numbers):
    """Copy the binary columns of donors, then project all rows onto the sums."""
    relations, feasible = sampler.source.relations, sampler.feasible
    rows = batch.numbers.astype(np.float64)
    if requested.counted:
        # Binary columns may be counted, or depend on counted categories.
        binary = relations.columns.binary
        rows[:, binary] = numbers[batch.donors][:, binary]
    restore(rows, relations)
    broken = np.flatnonzero(relations.breaks(rows))
    columns = np.flatnonzero(reset_together(relations))
    rows[np.ix_(broken, columns)] = numbers[np.ix_(batch.donors[broken], columns)]
    if not len(requested.sums):
        return rows
    # Cells of donors stay as they are.
    fixed = relations.columns.binary
    avoid = sampler.fixed_cells(batch._replace(numbers=rows))
    return project_to_totals(
        rows, requested.sums_of(rows), feasible, fixed=fixed, avoid=avoid
    )
