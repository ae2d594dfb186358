"""Algorithm 2 of the paper (appendix B): from training rows to new ones, in batches.

    1. encode all rows         w_i = Enc(x_i)            `PNLAugmenter._code_source`
    2. draw new codes          w* near the w_i           `KernelDraws._start`, ...
    3. neighbours of each      N, nearest or mixed       `Draws.start`
    4. decode by Algorithm 1   x* = phi^-1(Proj_D(w*))   `Codec.decode`
    5. back to columns of X                              `CodeSource.back`

With "mixup" on the m-geodesics of whole rows (the base is all of S), the default of
tables, these are straight lines between rows, decoding is the identity, and
:class:`LineSource` draws rows at once. Else :class:`CodeSource` goes the whole way.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.random import RandomState

from ._runtime.blocks import cut, whole_steps
from .constraints.audit import audit_rows
from .constraints.conditioning import condition_weights
from .constraints.infeasible import explain_infeasible
from .constraints.nearest import is_satisfied
from .constraints.projection import project_rows
from .frames.categories import one_of
from .geometry._arrays import slices
from .lines import discretize, mend, reflect

# Codes drawn and looked up at once: rounding and the order of near-ties must not depend
# on the sizes of batches.
DRAWN_AT_ONCE = 2**12
# New cells of a batch, so that temporaries stay small.
BATCH_CELLS = 2**19


class Batch(NamedTuple):
    """New rows as numbers (b, D), and where they come from.

    Parents (b, k) and their weights (b, k) are training rows; donors (b,) are those
    that give the categories.
    """

    numbers: np.ndarray
    parents: np.ndarray
    weights: np.ndarray
    donors: np.ndarray


@dataclass(frozen=True)
class LineSource:
    """Rows of a class; new rows lie on straight lines between them.

    Attributes
    ----------
    lines : LineDraw
    search : RowSearch
    strata : list or None
        Rows that are mixed with each other alone.
    n_candidates : int or None
    has_donors : bool
        Whether some cells come from one parent, as categories do.
    """

    lines: Any
    search: Any
    strata: list | None
    n_candidates: int | None
    has_donors: bool

    def __len__(self):
        return len(self.lines.rows)

    @property
    def relations(self):
        """Limits and relations of the columns."""
        return self.lines.relations

    @property
    def numbers(self):
        """The training rows (m, D)."""
        return self.lines.cells

    def batches(self, start, rng, size):
        """New rows, ``size`` at a time."""
        parents = start.parents(self.search, len(self), rng, self.n_candidates)
        coins = RandomState(rng.randint(np.iinfo(np.int32).max))
        for rows in slices(start.n_samples, size):
            batch = parents[rows]
            numbers, donors = self.lines.draw(batch, rng, coins)
            pairs = np.column_stack([batch.seeds, batch.partners])
            t = batch.position[:, None]
            yield Batch(numbers, pairs, np.hstack([1 - t, t]), donors)


@dataclass(frozen=True)
class CodeSource:
    """Encoded rows of a class; new codes are drawn near them and decoded.

    Attributes
    ----------
    training : TrainingRows
    draws : Draws
    embed, lay_out : object
        Steps from the numbers of a row to the cells of a poset, and back. They are
        before phi, which makes a distribution of the cells.
    relations : ColumnRelations
    feasible : FeasibleSet
        What decoded rows are projected to: equalities and orders of the rows.
    strata : list or None
        Rows that are mixed with each other alone.
    has_donors : bool
        Whether some cells come from one parent, as categories do.
    caller : str
    """

    training: Any
    draws: Any
    embed: Any
    lay_out: Any
    relations: Any
    feasible: Any
    strata: list | None
    has_donors: bool
    caller: str

    def __len__(self):
        return len(self.training.codes)

    @property
    def numbers(self):
        """The training rows (m, D), as they are decoded from their own codes."""
        numbers = self.back(self.training.decoded())
        return np.clip(numbers, self.relations.low, self.relations.high)

    def batches(self, start, rng, size):
        """The loop of Algorithm 2, steps 2 to 5, ``size`` new rows at a time."""
        draw = self.draws.start(self.training, start, rng)
        coins = RandomState(rng.randint(np.iinfo(np.int32).max))
        needs_cells = self.has_donors or self.relations.reset_together.any()
        cells = self.numbers if needs_cells else None

        def new_codes(rows):
            # 2. w* near the codes w_i, and 3. its neighbours N.
            new = draw(rows)
            return new.codes, new.parents, new.weights, self._donors(new, coins)

        def new_rows(codes, neighbors, weights, donors):
            # 4. x* = phi^-1(Proj_D(w*)) by Algorithm 1, and 5. back to columns of X.
            numbers = self._decoded(codes, neighbors, weights, start.n_jobs)
            self._complete(numbers, neighbors[:, 0], donors, cells)
            return Batch(numbers, neighbors, weights, donors)

        # The size does not change the bytes. Rounding depends on which rows a matrix
        # product is over, so codes are drawn with their neighbours, and decoded, in
        # whole blocks of either, and cut anew between.
        step = self.training.codec.decoded_at_once
        # Small batches would occupy only one worker.
        most = max(size, step * effective_n_jobs(start.n_jobs))
        at_once = whole_steps(most, DRAWN_AT_ONCE if self.draws.looks_up else step)
        codes = map(new_codes, slices(start.n_samples, at_once))
        rows = starmap(new_rows, cut(codes, whole_steps(most, step)))
        return starmap(Batch, cut(rows, size))

    def _donors(self, new, coins):
        """The row (b,) that gives each new one its categories: one of its parents."""
        coin = coins.uniform(size=len(new.codes))
        donors = one_of(new.parents, new.weights, coin)
        if new.mutual is not None:
            donors = np.where(new.mutual, donors, new.parents[:, 0])
        return donors

    def _decoded(self, codes, parents, weights, n_jobs):
        """Decode codes to numbers, and project them onto limits and equalities."""
        # x* = phi^-1(Proj_D(w*)), as cells.
        cells = self.training.decode(codes, parents, self.caller, weights, n_jobs)
        numbers = self.back(cells)
        # Not in the paper: limits and equalities of the columns.
        reflect(numbers, self.relations.low, self.relations.high)
        if self.feasible is not None:
            numbers, _ = project_rows(numbers, self.feasible)
        return numbers

    def _complete(self, numbers, seeds, donors, cells):
        """Copy two-valued columns of the donor, and round values to steps, in place."""
        is_binary = self.relations.binary
        if cells is None:
            discretize(numbers, numbers[:, is_binary], self.relations)
        else:
            discretize(numbers, cells[donors][:, is_binary], self.relations)
            mend(numbers, donors, seeds, cells, self.relations)

    def back(self, cells):
        """Numbers (n, D) in the columns of X, from cells."""
        return self.embed.back(self.lay_out.back(cells))


# --- constraints on new rows -------------------------------------------------------


@dataclass(frozen=True)
class Drawing:
    """Draw new rows of a source, project them onto their constraints and check them.

    Attributes
    ----------
    source : LineSource or CodeSource
    table : Table
        Without its rows.
    feasible : FeasibleSet
        What each row is to satisfy.
    start : Start
    drops : bool
        Whether infeasible rows are left out.
    caller : str
    """

    source: Any
    table: Any
    feasible: Any
    start: Any
    drops: bool
    caller: str

    def batches(self, rng, size=None):
        """Batches of ``size`` new rows that satisfy the feasible set."""
        size = size or 1 + BATCH_CELLS // len(self.table.columns)
        start, done = self._conditioned(rng), 0
        for batch in self.source.batches(start, rng, size):
            rows = np.arange(done, done + len(batch.numbers))
            done += len(rows)
            yield self._feasible(batch, rows)

    def _conditioned(self, rng):
        """Draw seeds near the constraints, with kernel weights of the training rows."""
        start, asked = self.start, self.feasible.constraints
        if start.seeds is not None or not len(asked):
            return start
        values = self.source.numbers @ asked.coefficients.T
        weights = condition_weights(values, asked.lower, asked.upper)
        if weights.ndim == 1:
            shares = weights if start.shares is None else weights * start.shares
            return replace(start, shares=shares)
        below = np.cumsum(weights, axis=1)
        place = rng.uniform(size=(len(below), 1)) * below[:, -1:]
        return replace(start, seeds=(place >= below).sum(axis=1))

    def _feasible(self, batch, rows):
        """Project a batch onto its feasible set, and audit it."""
        feasible = self.feasible.take_rows(rows)
        if len(feasible.constraints) or self._moves_equalities:
            fixed = self.fixed_cells(batch)
            numbers, infeasible = project_rows(batch.numbers, feasible, fixed)
            moved = (numbers != batch.numbers).any(axis=1)
            batch = batch._replace(numbers=numbers)
            if len(feasible.constraints):
                batch, infeasible = self._with_copies(
                    batch, moved, infeasible, feasible
                )
            if infeasible.any():
                batch = self._without_infeasible(batch, infeasible, feasible, rows)
                feasible = feasible.take_rows(~infeasible)
        self.audit(batch, feasible)
        return batch

    def _with_copies(self, batch, moved, infeasible, feasible):
        """Batch of projected rows, and which rows (b,) are infeasible.

        Rows that are ``moved`` by the projection and then violate a relation become
        copies of the nearest training rows that satisfy the constraints, if any do.
        """
        relations, training = self.source.relations, self._training
        numbers, parents, donors = (
            part.copy() for part in (batch.numbers, batch.parents, batch.donors)
        )
        off = relations.off_values(numbers)
        bad = off | relations.broken(numbers)
        bad |= ~is_satisfied(feasible.equalities, numbers).all(axis=1)
        bad &= moved
        infeasible = infeasible | (off & bad)
        bad |= infeasible | ~is_satisfied(feasible.constraints, numbers).all(axis=1)
        units = np.where(feasible.ranges > 0, feasible.ranges, 1)
        for i in np.flatnonzero(bad):
            asked = feasible.constraints.take_rows([i])
            candidates = np.flatnonzero(is_satisfied(asked, training).all(axis=1))
            if len(candidates):
                away = np.nan_to_num((training[candidates] - numbers[i]) / units)
                donors[i] = candidates[np.argmin(np.square(away).sum(axis=1))]
                numbers[i], infeasible[i] = training[donors[i]], False
                parents[i] = donors[i]
        return Batch(numbers, parents, batch.weights, donors), infeasible

    def audit(self, batch, feasible=None):
        """Check new rows in the precision in which each column is returned."""
        numbers = self.as_returned(batch.numbers)
        audit_rows(numbers, feasible or self.feasible, self.caller)

    def as_returned(self, numbers):
        """Numbers (b, D) rounded to the precision in which columns are returned."""
        is_single = self.table.precision > np.finfo(float).eps
        if is_single.any():
            numbers, most = numbers.copy(), np.finfo(np.float32).max
            within = np.clip(numbers[:, is_single], -most, most)
            numbers[:, is_single] = within.astype(np.float32)
        return numbers

    @property
    def _moves_equalities(self):
        """Whether equalities need a projection: rows on lines satisfy them already."""
        return not isinstance(self.source, LineSource) and len(self.feasible.equalities)

    def fixed_cells(self, batch):
        """Cells (b, D) that move only where no other cells satisfy the constraints.

        Zeros that all parents share, and two-valued columns.
        """
        relations = self.source.relations
        zero = batch.numbers == 0
        for parents in batch.parents.T:
            zero &= self._training[parents] == 0
        zero[:, relations.binary] = True
        return zero

    @cached_property
    def _training(self):
        return self.source.numbers

    def _without_infeasible(self, batch, infeasible, feasible, rows):
        first = int(np.argmax(infeasible))
        if not self.drops:
            number = int(rows[first])
            first_row = feasible.take_rows(slice(first, first + 1))
            error = explain_infeasible(batch.numbers[first], first_row, number)
            if self.caller == "PNLAugmenter":
                error.args = (f"{error} infeasible='drop' leaves such rows out.",)
            raise error
        return Batch(*(part[~infeasible] for part in batch))


def joined(batches):
    """All rows as one batch."""
    batches = list(batches)
    if len(batches) == 1:
        return batches[0]
    return Batch(*map(np.concatenate, zip(*batches, strict=True)))
