"""New rows with totals: drawn by weights, moved together, checked."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..control.diffusing import diffused
from ..control.report import SampleReport, of_each
from ..control.system import LinearSystem, tied
from ..control.together import SUM_TOL, rounding_of_one, steps_give, together
from ..geometry.reach import span
from ..weights.calibration import effective
from ..weights.columns import Columns
from ..weights.totals import UnmetTotals, codes_of
from .totals import Quotas, Wanted, parent_weights

# Difference of values that are the same, as a share of a range.
_ALIKE = 1e-9
# How often marks are sought that make no copies.
_TRIES = 4


def sample_set(
    source, n_samples, rng, n_jobs, constraints, drops, totals=None, *, shares=None,
    is_told=False,
):  # fmt: skip
    """Rows in their container, parents, weights and a report.

    Which is on totals or, without any, there if it ``is_told``. ``shares`` says how
    often they start from each training row.

    Raises
    ------
    UnmetTotals
        A ``ValueError``, if totals are not met: which contradict each other, and what
        can be reached.
    """
    if totals is None:
        drawing = source.drawing(n_samples, rng, n_jobs, constraints, shares, drops)
        if source.table.is_sparse and not (is_told or drops):
            return *drawing.in_parts(), None
        batch = drawing.gathered()
        made = drawing.finished(batch)
        return *made, _report(drawing, batch, made[0]) if is_told else None
    if drops:
        raise ValueError(
            "Totals are of all rows, so that none can be left out: pass "
            "on_unmet='raise'."
        )
    return _Set(source, n_samples, rng, totals).sampled(constraints, n_jobs)


@dataclass(frozen=True)
class _Set:
    """Some new rows with totals, to be drawn."""

    source: Any
    n: int
    rng: Any
    totals: Any

    @cached_property
    def numbers(self):
        """The training rows (n_train, D), as they are decoded."""
        source = self.source
        rows = source.back(source.training.decoded())
        # Shared values are not on the grids of the others.
        return source.taken.shown(source.keeper.cast(rows))

    @cached_property
    def wanted(self):
        """What is asked."""
        table, every = self.source.table, np.arange(len(self.numbers))
        rows = table.like(self.numbers.copy(), every)
        return Wanted.of(self.totals, table, self.source.keeper.discrete, rows, self.n)

    def sampled(self, constraints, n_jobs):
        """All there is to do."""
        wanted, rng = self.wanted, self.rng
        weights = parent_weights(wanted, self.numbers)
        quotas = Quotas.of(wanted, weights)
        starts = quotas.starts(weights, rng)
        told = self.source.drawing(
            self.n, rng, n_jobs, constraints, weights, False, starts
        )
        drawing = replace(told, keeper=self._with_fewer_steps(told.keeper))
        batch = drawing.gathered()
        given = batch.donors, batch.parents, self._nearest, rng
        donors, strange = quotas.donors(*given)
        batch = batch._replace(donors=donors)
        codes = [margin.codes[batch.donors] for margin in wanted.margins]
        drawn = wanted.values(np.nan_to_num(batch.numbers), codes)
        moved, met = self._met(drawing, batch)
        moved = self._marked(told.keeper, met.keeper, moved)
        # Flags that sums are not about make room for those that they turned on.
        met.keeper.parted(moved.numbers, met.keeper.others)
        away = np.nan_to_num(moved.numbers - batch.numbers) / met.keeper.units
        rows, parents, mixed = met.finished(moved)
        facts = {
            "moved": np.sqrt(np.mean(away**2, axis=0)),
            "effective_parents": effective(weights),
            "n_strangers": int(strange.sum()),
        }
        source = self.source
        met = checked(wanted, source.table, source.keeper.precision, rows, drawn)
        return rows, parents, mixed, _report(told, moved, rows, [met], **facts)

    def _with_fewer_steps(self, keeper, every=False, beside=False):
        """A keeper for which steps give way in columns that are summed.

        In those whose steps do not give the sums alone, or in every one, and in those
        beside it that equations tie to it.
        """
        sums, lattice = self.wanted.sums, keeper.lattice
        unit = np.abs(sums.coefficients) @ lattice.steps
        zero = self.n * sums.coefficients @ lattice.origins
        with np.errstate(divide="ignore", invalid="ignore"):
            first, last = (np.sort((sums.ends - zero) / unit, axis=0)).round(6)
        alone = np.count_nonzero(sums.coefficients, axis=1) == 1
        given = alone & (unit > 0) & (np.floor(last) >= first)
        # Equations leave no column without its steps if the others have theirs.
        bound = keeper.system.coefficients.any(axis=0) & (lattice.steps > keeper.plain)
        others = sums.coefficients[:, bound].any(axis=1) & ~alone
        if others.any() and not every:
            near = self.n * np.nan_to_num(self.numbers).mean(axis=0)
            given |= others & steps_give(keeper, self.n, sums.part(others), near)
        given &= not every
        summed = sums.coefficients.any(axis=0)
        freed = sums.coefficients[~given].any(axis=0)
        # What asks for nothing still says that there is to be a number in each row.
        ends = np.full((1, summed.sum()), np.inf)
        asked = keeper.asking(self._of_columns(summed, -ends, ends))
        grids = {j: grid for j, grid in keeper.grids.items() if not summed[j]}
        if beside:
            freed = tied(keeper.system.coefficients, freed)
        lattice = lattice.with_steps(freed, keeper.plain)
        return replace(asked, lattice=lattice, grids=grids)

    def _nearest(self, row, members):
        """The training row nearest to one, among some."""
        codes = self.source.training.codes[[row]]
        return int(self.source.training.nearest(codes, 1, members)[0, 0])

    def _met(self, drawing, batch):
        """The batch on all totals, and the drawing with what that asks of each row."""
        wanted, keeper = self.wanted, drawing.keeper
        copied, holes = batch.copied, np.isnan(batch.numbers)
        # Equations have a number to move where a cell is missing.
        numbers = np.where(holes, keeper.least, batch.numbers)
        if len(wanted.counted):
            keeper = keeper.asking(self._fixed(batch.donors))
            held = self.source.taken.held(batch.kinds)
            numbers, more = keeper.meet(numbers, held)
            copied = copied | more
        if len(wanted.sums):
            numbers, more, keeper = self._on_sums(keeper, numbers, batch)
            copied = copied | more
        numbers[holes] = np.nan
        batch = batch._replace(numbers=numbers, copied=copied)
        return batch, replace(drawing, keeper=keeper)

    def _on_sums(self, keeper, numbers, batch):
        """Rows on sums, which of them are copied, and what each of them keeps."""
        asked = self.wanted.sums, self._shared(numbers, batch), self.rng

        def moved(keeper):
            return together(keeper.of_rows(batch.where), numbers, *asked)

        try:
            return *moved(keeper), keeper
        except UnmetTotals as error:
            unmet = error
        for beside in (False, True):
            fewer = self._with_fewer_steps(keeper, every=True, beside=beside)
            with suppress(UnmetTotals):
                return *moved(fewer), fewer
        if not keeper.system.rounding.any():
            raise unmet
        # Sums may have what rows leave of equations of rounded values.
        loosened = replace(keeper, system=keeper.system.loosened)
        return *moved(loosened), keeper

    def _shared(self, numbers, batch):
        """Where (n, D) rows have the value of all parents, or take it from one."""
        room = _ALIKE * self.source.keeper.ranges
        alike = np.ones(numbers.shape, bool)
        for parent in batch.parents.T:
            alike &= np.abs(self.numbers[parent] - numbers) <= room
        return alike | self._held(numbers, batch)

    def _held(self, numbers, batch):
        """Where (n, D) rows have a value that they take from one parent."""
        held = self.source.taken.held(batch.kinds)
        return np.zeros(numbers.shape, bool) if held is None else numbers == held

    def _marked(self, before, after, batch):
        """The batch with the marks that gave way for sums, which stay as they are.

        ``before`` and ``after`` that, what rows keep. Rows that would copy a training
        row keep no marks.
        """
        sums, source = self.wanted.sums, self.source
        marks = source.keeper
        some = sums.coefficients.any(axis=0) & marks.discrete & ~marks.coarse
        some &= ~before.system.coefficients.any(axis=0)
        some[self.wanted.counted] = False
        # A grid of one value, and steps that hold the sums, have nothing to give.
        fewer = after.lattice.steps < marks.lattice.steps
        some &= [
            len(marks.grids[j]) > 1 if j in marks.grids else gave
            for j, gave in enumerate(fewer)
        ]
        lost = np.flatnonzero(some).tolist()
        if not lost:
            return batch
        stays, among = self._held(batch.numbers, batch), None
        if source.originals is not None:
            among = partial(source.originals.among, donors=batch.donors)
            copied = among(batch.numbers)
        for _ in range(_TRIES):
            numbers = diffused(marks, batch.numbers, lost, stays)
            copies = among is not None and among(numbers) & ~copied
            if not np.any(copies):
                return batch._replace(numbers=numbers)
            stays[copies] = True
        return batch

    def _fixed(self, donors):
        """Numbers that are counted by their values, which donors give."""
        columns = self.wanted.counted
        missing = self.source.taken.missing()
        if missing is not None and missing[:, columns].any():
            raise ValueError(
                "Totals count the values of columns of which some cells are missing. "
                "Name them in categorical_features."
            )
        values = self.numbers[np.ix_(donors, columns)]
        return self._of_columns(columns, values, values)

    def _of_columns(self, columns, lower, upper):
        """What asks for an interval of each of some columns."""
        names, ranges = self.source.table.feature_names, self.source.keeper.ranges
        return LinearSystem(np.eye(len(names))[columns], lower, upper, names, ranges)


def checked(wanted, table, precision, rows, drawn=None):
    """What rows have as their user gets them, as a part of a report.

    Beside what they had as they were ``drawn``. Raises if they miss much.
    """
    # What is summed is there: totals ask for it.
    numbers = np.nan_to_num(table.read(rows))
    codes = [codes_of(Columns(rows), m.key, m.levels) for m in wanted.margins]
    values, (lower, upper) = wanted.values(numbers, codes), wanted.ends
    missed = np.maximum(np.maximum(lower - values, values - upper), 0)
    size, room, k = np.ones(len(values)), np.zeros(len(values)), len(wanted.sums)
    size[:k] = np.maximum(wanted.sums.size(numbers), 1e-300)
    room[:k] = SUM_TOL * size[:k] + rounding_of_one(wanted.sums, numbers, precision)
    if np.any(missed > room):
        worst = int(np.argmax(missed - room))
        asked = span(lower[worst], upper[worst])
        raise UnmetTotals(
            f"{wanted.names[worst]} asks for {asked}; rows have {values[worst]:.10g}."
        )
    kinds = tuple(name.split()[1] for name in wanted.names)
    return wanted.names, kinds, lower, upper, drawn, values, missed / size


def _report(drawing, batch, rows, parts=(), **facts):
    """A report on rows as their user gets them, of totals and what is of each."""
    table, keeper = drawing.source.table, drawing.keeper
    numbers = np.nan_to_num(table.read(rows))
    if len(keeper.system) and len(numbers) == drawing.n_samples:
        # Numbers count from a start of their column, which users do not.
        starts = table.starts
        system = keeper.system.shifted(starts)
        parts = [*parts, of_each(system, keeper.n_kept, numbers + starts)]
    names, kinds, *arrays = zip(*parts, strict=True) if parts else [()] * 7
    n_train = len(drawing.source.training.codes)
    whole = {"moved": np.zeros(len(table.columns)), "effective_parents": n_train}
    return SampleReport(
        len(numbers),
        n_train,
        sum(names, ()),
        sum(kinds, ()),
        *(np.concatenate([[], *own]) for own in arrays),
        features=table.feature_names,
        n_copied=int(batch.copied.sum()),
        **(whole | facts),
    )
