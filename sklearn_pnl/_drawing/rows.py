"""New rows on their way: codes drawn, decoded, laid back, kept, and checked at the end.

One direction, batch by batch: :meth:`Drawing.batches` draws and decodes numbers,
:meth:`Drawing.finished` makes rows of them as their user gets them.
"""

from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.random import RandomState
from sklearn import get_config

from .._runtime.blocks import cut, map_blocks, whole_steps
from .._runtime.validation import warn_missed
from .._runtime.workspace import slices
from ..control.conditioning import Condition
from ..control.meeting import UnmetError
from ..control.promises import asked_for
from ..draws import TrainingCodes
from ..embedding import fold
from ..tables import joined
from ..tables.categories import one_of

# Codes drawn and looked up at once: rounding, and with it the order of near-ties, must
# not depend on how new rows are asked for.
_DRAWN = 2**12
# Training rows among which one is looked for that has what is asked for, at last.
_EXAMPLES = 2**11
# New cells that are drawn and decoded one after the other at least: a few times as many
# stay in cache, and are asked of the system only once.
_BATCH_CELLS = 2**17
# New cells of sparse rows that are dense at once.
_PART_CELLS = 2**20


class Batch(NamedTuple):
    """New rows as numbers (n, D), and where they come from."""

    numbers: Any
    parents: Any
    weights: Any
    donors: Any
    kinds: Any
    where: Any
    copied: Any


@dataclass(frozen=True)
class Source:
    """What a fitted augmenter draws new rows from.

    Attributes
    ----------
    table : Table
        Without its rows.
    training : TrainingRows
    draws : Draws
    path : tuple
        Steps from the numbers of a row to its cells, each with a way back.
    keeper : Keeper
    limits : tuple of two ndarray of shape (D,)
        Ends of numbers, without values that many rows share.
    taken : Taken
        Cells that new rows take from a parent.
    originals : Originals or None
        Training rows that new ones are not to copy.
    folded : bool
        Whether what is beyond the limits is reflected there.
    n_neighbors : int
    whom : str
        Who speaks in messages.
    of_two : ndarray of int of shape (c,) or None
        Columns, each a coordinate of the code, that have two values.
    """

    table: Any
    training: Any
    draws: Any
    path: tuple
    keeper: Any
    limits: tuple
    taken: Any
    originals: Any
    folded: bool
    n_neighbors: int
    whom: str
    of_two: Any

    def back(self, cells, zeros=None):
        """Numbers (n, D) of cells, the way back along the path."""
        embed, lay_out = self.path
        embedded = lay_out.back(cells)
        lay_out.check_end(embedded)
        return embed.back(embedded, zeros)

    def drawing(self, n_samples, rng, n_jobs, constraints, shares, drops, firsts=None):
        """``n_samples`` new rows with what is asked of them: a :class:`Drawing`.

        ``shares`` says how often from each training row, ``firsts`` from which ones.
        """
        # A copy: what it looks up on its way is not kept beyond the rows.
        keeper, training = copy(self.keeper), self.training
        if constraints is not None:
            asked = asked_for(constraints, self.table, keeper.ranges, n_samples)
            keeper = replace(keeper.asking(asked), drops=drops)
        condition = None
        if len(keeper.asked):
            rows = self.taken.shown(self.back(training.decoded()))
            values, asked = rows @ keeper.asked.coefficients.T, keeper.asked
            own = None if firsts is None else shares
            condition = Condition(values, asked.lower, asked.upper, own)
            keeper = replace(keeper, examples=keeper.cast(rows[:_EXAMPLES].copy()))
        nearest = partial(training.nearest, n_jobs=n_jobs)
        codes = training.codes, self.n_neighbors, nearest, training.copies
        chosen = coins = None
        has_donors = self.table.labels is not None or self.taken.has_donors
        gives = has_donors and (firsts is None or condition is not None)
        gives_one = self.of_two is not None and firsts is None
        gaps = training.gaps if gives or gives_one else None
        codes = *codes, shares, self.taken.lacking, firsts, gaps, self.of_two
        if gives:
            chosen = rng.uniform(size=n_samples)
            if self.taken.is_split:
                # Of its own, so that batches of any size draw the same from it.
                coins = RandomState(rng.randint(np.iinfo(np.int32).max))
        draw = self.draws.start(TrainingCodes(*codes), n_samples, rng, condition)
        return Drawing(self, keeper, draw, chosen, coins, n_samples, n_jobs)


@dataclass(frozen=True)
class Drawing:
    """Some new rows, drawn and not yet made."""

    source: Source
    keeper: Any
    draw: Any
    chosen: Any
    coins: Any
    n_samples: int
    n_jobs: int | None

    def gathered(self):
        """All rows as one batch."""
        d = len(self.source.table.columns)
        numbers = np.empty((self.n_samples, d))
        # Temporaries of a batch are used again, where those of all would not fit.
        step = self.source.training.codec.decoded_at_once
        size = min(self.n_samples, whole_steps(1 + _BATCH_CELLS // d, step))
        made, done = [], 0
        for batch in self.batches(size):
            numbers[done : done + len(batch.numbers)] = batch.numbers
            done += len(batch.numbers)
            made.append(batch[1:])
        return Batch(numbers, *map(np.concatenate, zip(*made, strict=True)))

    def in_parts(self):
        """What :meth:`finished` makes of all rows, of which few are dense at a time."""
        d = len(self.source.table.columns)
        parts = map(self.finished, self.batches(1 + _PART_CELLS // d))
        rows, *beside = zip(*parts, strict=True)
        return joined(rows), *map(np.concatenate, beside)

    def finished(self, batch):
        """Rows as their user gets them, checked; their parents and weights."""
        table, keeper = self.source.table, self.keeper.of_rows(batch.where)
        rows = table.like(batch.numbers, batch.donors)
        with self._numbered(batch.where):
            held = self.source.taken.held(batch.kinds)
            kept = keeper.audit(table.read(rows), self.source.whom, held)
        if batch.copied.any():
            warn_missed(
                f"{self.source.whom}: {batch.copied.sum()} of {len(batch.copied)} new "
                "rows have the columns that constraints and equations are about from a "
                "training row: nothing else that meets them was found."
            )
        if kept is None or kept.all():
            return rows, batch.parents, batch.weights
        # Of several batches some may be empty.
        if not kept.any() and len(kept) == self.n_samples:
            raise ValueError(
                f"{self.source.whom}: none of {len(kept)} new rows can meet the "
                "constraints, so that nothing is left to return. on_unmet='raise' says "
                "why."
            )
        some = np.flatnonzero(kept)
        rows = table.like(table.read(rows)[some], batch.donors[some])
        return rows, batch.parents[some], batch.weights[some]

    def batches(self, size):
        """Batches of ``size`` new rows, whose bytes are those of all rows at once.

        Rounding depends on which rows a matrix product is over. So codes are drawn with
        their neighbours, and decoded, in whole blocks of either, and cut anew between.
        """
        source, step = self.source, self.source.training.codec.decoded_at_once
        # Small batches would leave all but one of the workers idle.
        decoded = max(size, step * effective_n_jobs(self.n_jobs))
        drawn = whole_steps(decoded, _DRAWN if source.draws.looks_up else step)
        drawing = map(self._drawn, slices(self.n_samples, drawn))
        whole = cut(drawing, whole_steps(decoded, step))
        # What is drawn is let go before more is.
        return starmap(Batch, cut(starmap(self._made, whole), size))

    def rows_in_memory(self):
        """Rows of which two batches fit: one at work, one in the caller's hands."""
        source = self.source
        numbers = len(source.table.columns) + source.training.codec.n_params
        free = get_config()["working_memory"] * 2**20
        step = source.training.codec.decoded_at_once
        most = int(free // (2 * 8 * (numbers + source.n_neighbors)))
        return max(1, most // step) * step

    @contextmanager
    def _numbered(self, where):
        """A row that cannot have what is asked gets its number among all new rows."""
        try:
            yield
        except UnmetError as error:
            error.row = int(where[error.row])
            # Samplers leave none out.
            if self.source.whom == "PNLAugmenter" and self.keeper.is_for_some:
                error.reason += " on_unmet='drop' leaves such rows out."
            raise

    def _drawn(self, rows):
        """Codes of a slice of the new rows, and where they come from."""
        codes, parents, weights, *others = self.draw(rows)
        givers = others[0] if others else parents
        donors = parents[:, 0]
        if self.chosen is not None:
            donors = one_of(givers, weights, self.chosen[rows])
        kinds = self.source.taken.drawn(parents, givers, donors, self.coins)
        where = np.arange(rows.start, rows.stop)
        return codes, parents, weights, donors, kinds, where

    def _made(self, codes, parents, weights, donors, kinds, where):
        """Numbers of codes, with all that they promise."""
        source, keeper = self.source, self.keeper
        jobs = source.whom, self.n_jobs
        cells = source.training.decode(codes, parents, weights, *jobs)
        held, missing = source.taken.held(kinds), source.taken.missing(kinds)
        rows = source.back(cells, held == 0 if source.taken.by_all else None)
        if source.folded:
            rows = fold(rows, *source.limits)
        if missing is not None:
            # What is missing is not on.
            rows[missing & keeper.is_flag] = np.nan
        raw = None if source.originals is None else rows.copy()
        copied = np.zeros(len(rows), bool)
        if not keeper.is_free or held is not None or not source.folded:
            meet = partial(_meet, keeper=keeper)
            step = source.training.codec.decoded_at_once
            # But for a system it is one pass, which threads would only wait for.
            n_jobs = self.n_jobs if len(keeper.system) else None
            given = (rows, where) if held is None else (rows, where, held)
            with self._numbered(where):
                rows, copied = map_blocks(meet, *given, step=step, n_jobs=n_jobs)
        source.path[0].check_end(rows)
        if missing is not None:
            # What is asked for is there.
            missing[:, keeper.asked.coefficients.any(axis=0)] = False
            rows[missing] = np.nan
        if raw is not None:
            free = np.ones(rows.shape, bool) if held is None else np.isnan(held)
            free &= ~np.isnan(rows) & ~source.table.times
            rows = source.originals.apart(keeper, rows, raw, free, donors)
        return Batch(rows, parents, weights, donors, kinds, where, copied)


def _meet(rows, where, held=None, *, keeper):
    """One block of rows with all that they promise."""
    return keeper.of_rows(where).meet(rows, held)
