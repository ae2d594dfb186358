"""Fit a method to training rows, sample new rows and repair them.

``fit_rows`` fits a method (:class:`Lines`, :class:`Codes`) to all training rows, or to
the rows of a class. ``FittedRows.sample`` returns new rows. A ``RowSampler`` takes
batches of new rows from the source of the method, and applies the steps of
``columns/repair`` to each batch. Constraints are projected between two steps.
``totals`` projects a set of new rows onto totals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._utils.arrays import dense
from .._utils.progress import tracked
from .._utils.warnings import warn_user
from ..columns.constraints import LinearConstraints, read_constraints
from ..columns.copies import warn_copies
from ..columns.mixing import find_mixable
from ..columns.repair import (
    STEPS,
    TrainingContext,
    add_noise,
    repair,
    shorten_noise,
    steps_with,
)
from ..control.audit import audit_rows, report_of
from ..control.base_rows import (
    condition_weights,
    in_spreads,
    near_rows,
)
from ..control.feasible_set import FeasibleSet
from ..control.infeasible_requests import explain_infeasible
from ..control.projection import project_rows
from ..frames import warn_extreme_values
from ..geometry.convex.weights import effective_size
from .batches import joined, resized
from .source import Request
from .totals import sample_with_totals

# New cells of a batch, so that temporaries stay small.
BATCH_CELLS = 2**18


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
    k = method.count_neighbors(k_neighbors, len(table), table.data_name)
    rows = _numeric_rows(method, table, relations)
    # Images are not stored, because codes can be decoded.
    is_stored = method.copies_atoms or len(table.shape) == 1
    stored = rows
    if is_stored and not issparse(rows):
        stored = rows.astype(np.float64, copy=not table.owned)
    mixable, side, sides = find_mixable(
        stored, table, relations, k, groups, copies_atoms=method.copies_atoms
    )
    if not method.copies_atoms:
        mixable = replace(mixable, rows=rows, owned=table.owned and not is_stored)
    source = method.fit(mixable, k, n_jobs, caller)
    if groups is not None and not source.has_base_rows:
        raise ValueError(
            f"{caller}: groups have no effect on new rows that are drawn from a "
            "density. Use draws='mixup', or no groups."
        )
    context = TrainingContext(
        relations=relations,
        rows=stored if is_stored else None,
        absent=mixable.absent,
        blocks=mixable.blocks,
        side=side,
        sides=sides,
        caller=caller,
    )
    return FittedRows(source, context, table.without_rows(), n_jobs)


def _numeric_rows(method, table, relations):
    """Return the rows (m, D) of a table; sparse rows without relations stay sparse."""
    if table.sparse_rows is not None and method.copies_atoms:
        related = relations.has_relations or relations.copied_values
        if not (related or table.has_missing):
            return table.sparse_rows
    return table.numbers()


@dataclass(frozen=True)
class FittedRows:
    """A method fitted to training rows, from which new rows are sampled.

    Attributes
    ----------
    source : Source
        The source that the ``fit`` of the method returned.
    context : TrainingContext
        The training rows, and what new rows must satisfy.
    table : Table
        The columns of the training rows, without the rows.
    n_jobs : int or None
    """

    source: Any
    context: Any
    table: Any
    n_jobs: int | None

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
        codes=False,
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
        codes : bool
            Whether the batch contains the new codes.

        Returns
        -------
        batch : Batch
        report : SampleReport or None
        """
        sampler = self.row_sampler(n_samples, constraints, drops, advice, shares)
        if codes:
            request = replace(sampler.request, with_codes=True)
            sampler = replace(sampler, request=request)
        if totals is not None:
            batch, report = sample_with_totals(sampler, rng, totals)
            self._warn_copies(batch)
            return batch, report
        batch = joined(sampler.batches(rng), n_samples)
        if not batch.values.shape[0]:
            raise ValueError(
                f"{self.context.caller}: none of {n_samples} new rows satisfies the "
                "constraints. Pass infeasible='raise' to see the reason."
            )
        self._warn_copies(batch)
        if not reports:
            return batch, None
        return batch, report_of(
            sampler.feasible.take_rows(batch.indices),
            dense(batch.values),
            n_train=len(self.source.mixable),
            n_parents=effective_size(np.bincount(batch.parents[:, 0])),
        )

    def _warn_copies(self, batch):
        """Warn if more than half of the new rows equal a training row."""
        rows, mixable = self.context.rows, self.source.mixable
        if rows is None:
            return
        strata = mixable.strata or [(range(rows.shape[0]), None)]
        if all(len(members) == 1 for members, _ in strata):
            # A warning in ``fit`` has named the only row, or the groups of one row.
            return
        warn_copies(batch, self.context, mixable.labels)

    def row_sampler(
        self, n_samples, constraints=None, drops=False, advice="", shares=None
    ):
        """Return a :class:`RowSampler` of new rows that satisfy constraints."""
        source, context = self.source, self.context
        if shares is not None and not source.takes_shares:
            raise ValueError(
                f"{context.caller}: weights of training rows have no effect on new "
                "rows that are drawn from a density. Use draws='mixup', or no weights."
            )
        request = Request(
            n_samples,
            source.n_neighbors,
            shares,
            strata=source.mixable.strata,
            mutual=source.mixable.has_donors,
            n_jobs=self.n_jobs,
        )
        requested = None
        if constraints is not None:
            requested = read_constraints(constraints, self.table, n_samples)
        if context.rows is None and (requested or context.relations.has_relations):
            context = replace(context, rows=source.training_rows())
        return RowSampler(
            source, context, self.table, request, requested, drops, advice
        )

    def restored(self, batch):
        """Return new rows in the container of the training rows."""
        return self.table.like(batch.values, batch.donors)


@dataclass(frozen=True)
class RowSampler:
    """Sample new rows of a source, and repair them.

    Attributes
    ----------
    source : Source
    context : TrainingContext
    table : Table
        The columns of the training rows, without the rows.
    request : Request
    constraints : LinearConstraints or None
        Constraints that each row must satisfy.
    drops : bool
        Whether infeasible rows are left out.
    advice : str
        Follows the message of an infeasible row.
    """

    source: Any
    context: Any
    table: Any
    request: Any
    constraints: Any = None
    drops: bool = False
    advice: str = ""

    @property
    def n_numbers(self):
        """The number of values that a new row needs while it is computed."""
        return self.n_cells + self.source.n_numbers

    @property
    def n_cells(self):
        """The number of cells of a new row that are computed."""
        dense_cells = len(self.context.relations.columns.steps)
        return dense_cells if self.projects else self.source.n_cells

    @cached_property
    def feasible(self):
        """The set of rows that satisfy the relations and the constraints.

        Rows that a request moves may have equal values in ordered columns.
        """
        requested, relations = self.constraints, self.context.relations
        if requested is None:
            requested = LinearConstraints.empty(relations.equalities.feature_names)
        relations = relations.of_rows(self.training_rows).without_distances()
        return FeasibleSet(relations, requested)

    @cached_property
    def training_rows(self):
        """The training rows (m, D) as a dense array."""
        rows = self.context.rows
        return self.source.training_rows() if rows is None else dense(rows)

    @property
    def projects(self):
        """Whether new rows are projected onto constraints or relations."""
        relations = self.context.relations
        is_off = len(relations.equalities) or relations.near or len(relations.ordered)
        return bool(self.constraints or (is_off and not self.source.is_affine))

    @property
    def steps(self):
        """The steps of ``columns/repair`` for each batch, and its compression."""
        steps = STEPS
        if self.projects and self.constraints:
            steps = steps_with(requests=self._onto_requests, check=self._audit)
        elif self.projects:
            steps = steps_with(relations=self._onto_relations)
        return (*steps, self._compressed)

    def batches(self, rng, size=None, steps=None):
        """Yield batches of ``size`` repaired rows."""
        steps, at_once = steps or self.steps, 1 + BATCH_CELLS // self.n_cells
        # Rounding depends on which rows a matrix product is over: the same for all
        # sizes.
        is_cut = size is not None and self.projects
        step = at_once if is_cut or size is None else size
        sampled = self.source.batches(self.conditioned(rng), rng, step)
        batches = (repair(batch, self.context, steps) for batch in sampled)
        task = f"{self.context.caller}: sample"
        batches = tracked(batches, -(-self.request.n_samples // step), task)
        return resized(batches, size) if is_cut else batches

    def _compressed(self, batch, context):
        """Convert a batch to the format in which batches are stored."""
        return batch._replace(values=self.table.compressed(batch.values))

    def conditioned(self, rng):
        """Return the request with base rows near the constraints, or shares of them."""
        request, requested = self.request, self.constraints
        if request.base_rows is not None or not requested:
            return request
        values = requested.values_of(self.training_rows)
        bounds, shares = (requested.lower, requested.upper), request.shares
        if requested.lower.ndim == 1:
            weights = condition_weights(values, *bounds)
            shares = weights if shares is None else weights * shares
            return replace(request, shares=shares)
        values, lower, upper = in_spreads(values, *bounds)
        base_rows = near_rows(values, lower, upper, rng, shares, request.n_jobs)
        return replace(request, base_rows=base_rows)

    def _onto_relations(self, batch, context):
        """Project a batch onto the relations of its columns, as a step of repair.

        A near equality has the value that it has in the donor of the row.
        """
        values = project_rows(
            batch.values, self._continuous(batch.donors), self.fixed_cells(batch)
        )[0]
        broken = np.flatnonzero(context.relations.breaks(values, rounding=True))
        if len(broken):
            part = batch._replace(values=values).take_rows(broken)
            values[broken] = self._near_parents(part, context).values
        exact = values.copy() if context.relations.near else None
        return batch._replace(values=values, exact=exact)

    def _near_parents(self, batch, context):
        """Move rows towards the mean of their parents until they are in order.

        The parents satisfy all inequalities, and so does their weighted mean.
        """
        binary = context.relations.columns.binary
        parents = self.training_rows[batch.parents]
        mean = np.einsum("nk,nkd->nd", batch.weights, parents)
        mean[:, binary] = batch.values[:, binary]
        batch = batch._replace(values=mean, noise=batch.values - mean)
        return repair(batch, context, (shorten_noise, add_noise))

    def _continuous(self, donors):
        """Return the feasible set of unrounded rows, with near equalities."""
        distances = self.context.relations.distances
        relations = replace(self.feasible.relations, distances=distances)
        unrounded = replace(
            relations.columns, steps=np.zeros(len(relations.tied)), support=None
        )
        requested = self.feasible.constraints
        if relations.near:
            a = np.eye(len(relations.tied))[[pivot for pivot, _ in relations.near]]
            a -= [coefficients for _, coefficients in relations.near]
            values = self.training_rows[donors] @ a.T
            requested = replace(requested, coefficients=a, lower=values, upper=values)
        return FeasibleSet(replace(relations, columns=unrounded), requested)

    def _onto_requests(self, batch, context):
        """Project a batch onto the relations and constraints, as a step of repair.

        Rows that violate a relation or a constraint afterwards become copies of the
        nearest training rows that satisfy the constraints, if there are any. Infeasible
        rows are left out, or raise an error.
        """
        batch = batch._replace(values=dense(batch.values))
        feasible = self.feasible.take_rows(batch.indices)
        fixed = self.fixed_cells(batch)
        values, infeasible = project_rows(batch.values, feasible, fixed)
        moved = (values != batch.values).any(axis=1)
        batch = batch._replace(values=values)
        batch, infeasible = self._copied(batch, moved, infeasible, feasible)
        if infeasible.any() and not self.drops:
            raise explain_infeasible(
                batch.values, infeasible, feasible, batch.indices, self.advice
            )
        return batch.take_rows(~infeasible) if infeasible.any() else batch

    def _copied(self, batch, moved, infeasible, feasible):
        """Batch of projected rows, and which rows (b,) are infeasible."""
        training = self.training_rows
        values, parents, donors = (
            part.copy() for part in (batch.values, batch.parents, batch.donors)
        )
        b, ranges = feasible.columns.binary, feasible.columns.ranges
        requested = replace(feasible.constraints, ranges=ranges)
        flags = values[:, b]
        off = (flags != feasible.columns.low[b]) & (flags != feasible.columns.high[b])
        infeasible = infeasible | (moved & (off & ~np.isnan(flags)).any(axis=1))
        violated = feasible.system().violations(values)
        equal, others = np.split(violated, [len(feasible.relations.equalities)], axis=1)
        bad = moved & (feasible.breaks(values) | equal.any(axis=1))
        bad |= infeasible | others.any(axis=1)
        units = np.where(ranges > 0, ranges, 1)
        candidates = None
        for i in np.flatnonzero(bad):
            # Constraints that are the same for all rows have the same candidates.
            if candidates is None or requested.lower.ndim > 1:
                misses = requested.take_rows([i]).violations(training).any(axis=1)
                candidates = np.flatnonzero(~misses)
            if len(candidates):
                away = np.nan_to_num((training[candidates] - values[i]) / units)
                donors[i] = candidates[np.argmin(np.square(away).sum(axis=1))]
                values[i], infeasible[i] = training[donors[i]], False
                parents[i] = donors[i]
        return batch._replace(values=values, parents=parents, donors=donors), infeasible

    def _audit(self, batch, context):
        """Check new rows in the precision in which each column is returned."""
        feasible = self.feasible.take_rows(batch.indices)
        audit_rows(batch.values, feasible, context.caller)
        return batch

    def fixed_cells(self, batch):
        """Return the cells (b, D) that move only if the constraints require it.

        Fixed cells are zeros that all parents share, and binary columns.
        """
        zero = batch.values == 0
        for parents in batch.parents.T:
            zero &= self.training_rows[parents] == 0
        zero[:, self.context.relations.columns.binary] = True
        return zero
