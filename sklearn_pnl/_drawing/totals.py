"""What is asked of new rows together, and the parents that lead there.

Training rows are weighed so that they have the totals (minimum KL), and new rows start
from them as often as their weights say. Categories are counted by which training rows
give them, in whole numbers.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from scipy.sparse import issparse

from ..control.lattice import Lattice, programme
from ..control.promises import for_numbers
from ..control.search import names_of
from ..control.system import LinearSystem
from ..control.together import Sums
from ..geometry import linear_projection
from ..geometry.reach import span
from ..weights.calibration import WeightSearch, effective
from ..weights.columns import Columns
from ..weights.totals import (
    TotalsSystem,
    UnmetTotals,
    as_list,
    called,
    check_agreement,
    counts,
    stacked,
)
from ..weights.whole import whole_weights

# How far sums are sought by weights alone, as shares of the way there, and the least
# effective number of parents, as a share of that which counts leave.
_WAYS, _LEAST_WORTH = (1.0, 0.75, 0.5, 0.25, 0.1), 0.125
_WEIGHTS_TOL, _STEPS = 1e-9, 60
# What is left of a whole number by rounding.
_ALMOST = 1e-6
# Cells of crossed categories up to which a programme looks for the nearest numbers, and
# seconds for more of them.
_MOST_CELLS, _SECONDS = 256, 60.0


@dataclass(frozen=True)
class Wanted:
    """What is asked of ``n`` new rows together.

    Attributes
    ----------
    n : int
    sums : Sums
        Of numbers.
    margins : tuple of Margin
        Counts by category, with the category of each training row.
    counted : ndarray of int
        Numbers that are counted by their values, which donors give.
    """

    n: int
    sums: Sums
    margins: tuple
    counted: np.ndarray

    @classmethod
    def of(cls, totals, table, discrete, rows, n):
        """Read totals about ``n`` new rows like ``rows``, as they came.

        ``discrete`` tells the columns (D,) that new rows have such values of alone.
        """
        parts, margins, counted = [], [], set()
        for total in as_list(totals, table.names, table.row_shape):
            if total.by_level:
                columns = Columns(rows)
                counted |= _counted(columns.keys(total.of), table, discrete)
                share = f", a share of {n} rows," if total.mean else ","
                margins.append(_whole(counts(columns, total, n), share))
            else:
                parts.append(_sum_of(total, table, n))
        check_agreement(margins)
        a, *ends, names = zip(*parts, strict=True) if parts else ([], [], [], [], [])
        a = np.array(a).reshape(len(parts), len(table.columns))
        sums = Sums(a, *map(np.array, ends), np.array(names, object))
        return cls(n, sums, tuple(margins), np.array(sorted(counted), int))

    @property
    def names(self):
        """All that is asked, in words."""
        counted = (name for margin in self.margins for name in margin.names)
        return (*self.sums.names, *counted)

    @property
    def ends(self):
        """Least and most (2, k) of all that is asked."""
        margins = ((margin.lower, margin.upper) for margin in self.margins)
        return np.hstack([(self.sums.least, self.sums.most), *margins])

    def values(self, numbers, codes):
        """All that is asked (k,) of rows: of numbers (n, D) and levels by margin."""
        sums = self.sums.coefficients @ (np.ones(len(numbers)) @ numbers)
        pairs = zip(self.margins, codes, strict=True)
        counted = (margin.indicators(own).sum(axis=1) for margin, own in pairs)
        return np.concatenate([sums + self.sums.shift, *counted])


def _sum_of(total, table, n):
    """Coefficients, ends, shift and name of a sum or mean of numbers."""
    names = names_of(table)
    a = np.zeros((1, prod(table.row_shape)))
    for key, weight in total.coefficients.items():
        a[0, table.column_of(key, "totals")] += float(weight)
    ends = np.full((1, 1), total.lower), np.full((1, 1), total.upper)
    asked = LinearSystem(a, *ends, names, np.zeros(a.shape[1]))
    inside = for_numbers(asked, table).coefficients[0]
    if inside[table.times].any():
        raise ValueError(
            f"Totals are about numbers, but {called(total.of)} holds times. Pass it as "
            "a number, such as days since a date."
        )
    scale = 1.0 / n if total.mean else 1.0
    # Numbers count from a start of their column, in each row.
    shift = scale * n * float(table.starts @ inside)
    return scale * inside, total.lower, total.upper, shift, total.name


def _whole(margin, share):
    """The same with ends that are whole numbers; ``share`` says of what they are."""
    lower = np.ceil(np.maximum(margin.lower, 0) - _ALMOST) + 0.0
    upper = np.floor(margin.upper + _ALMOST)
    for k in np.flatnonzero(lower > upper):
        raise UnmetTotals(
            f"{margin.names[k]} asks for {span(margin.lower[k], margin.upper[k])}"
            f"{share} in which there is no whole number from 0 on. Give it room: "
            "column_total(..., within=)."
        )
    return replace(margin, lower=lower, upper=upper)


def _counted(key, table, discrete):
    """Numbers among the columns that are counted."""
    found = [table.column_of(column, "totals") for column in key]
    inside = set(np.flatnonzero(np.isin(table.columns, found)).tolist())
    for i in inside:
        if not discrete[i]:
            raise ValueError(
                f"Column {table.column_names[i]!r} is counted by its values, of "
                "which new rows may have others. Name it in categorical_features."
            )
    return inside


# --- parents ----------------------------------------------------------------------


def parent_weights(wanted, numbers):
    """How often new rows start from each training row (n,), which sums to ``n``.

    Nearest to equal ones (KL), with all counts; with sums as far on the way there as
    leaves enough parents.
    """
    n = len(numbers)
    counted = _counts_alone(wanted, n)
    design = np.full(n, wanted.n / n)
    search = WeightSearch(_WEIGHTS_TOL, _STEPS, "what training rows hold")
    ends = np.zeros(n), np.full(n, np.inf)
    weights, _, reasons = search.weights(counted, design, *ends)
    if reasons:
        raise UnmetTotals(" ".join(reasons))
    if not len(wanted.sums):
        return weights
    return _towards(wanted.sums, numbers, counted, design, weights)


def _counts_alone(wanted, n):
    """The counts asked for, and the number of rows, about weights of training rows."""
    name = f"the number of rows, {wanted.n}"
    whole = np.ones((1, n)), [wanted.n], [wanted.n], [name]
    return TotalsSystem.stacked([whole, *(margin.part for margin in wanted.margins)])


def _towards(sums, numbers, counted, design, weights):
    """Weights with counts, whose sums are on the way to those asked for."""
    used = np.flatnonzero(weights > 0)
    a = sums.coefficients @ numbers[used].T
    held = a @ weights[used]
    least, most = sums.ends
    missing = np.clip(held, least, most) - held
    scale = np.maximum(np.abs(a).max(axis=1), 1e-300)[:, None]
    matrix = stacked([counted.coefficients[:, used], a / scale])
    worth = effective(weights)
    for way in _WAYS:
        aim = (held + way * missing) / scale[:, 0]
        ends = (np.append(own, aim) for own in (counted.lower, counted.upper))
        found = linear_projection(
            design[used][None], matrix, *ends, tol=_WEIGHTS_TOL, max_iter=_STEPS,
            n_reasons=0,
        )  # fmt: skip
        if found.converged[0] and effective(found.measure[0]) >= _LEAST_WORTH * worth:
            weights = np.zeros(len(weights))
            weights[used] = found.measure[0]
            return weights
    return weights


@dataclass(frozen=True)
class Quotas:
    """How many new rows take their counted categories from which training rows.

    Attributes
    ----------
    cell : ndarray of int of shape (n_train,)
        Rows that are alike in all that is counted share a cell.
    counts : ndarray of int of shape (n_cells,)
    """

    cell: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, wanted, weights):
        """Whole numbers nearest to weights that have the counts asked for."""
        if not wanted.margins:
            return cls(np.zeros(len(weights), int), np.array([wanted.n]))
        codes = np.column_stack([margin.codes for margin in wanted.margins])
        cells, cell = np.unique(codes, axis=0, return_inverse=True)
        cell = cell.reshape(-1)
        near = np.bincount(cell, weights)
        pairs = zip(wanted.margins, cells.T, strict=True)
        margins = tuple(replace(margin, codes=codes) for margin, codes in pairs)
        system = _counts_alone(replace(wanted, margins=margins), len(cells))
        return cls(cell, _whole_numbers(system, near).astype(int))

    def starts(self, weights, rng):
        """Training rows (n,) that new ones start from: of each cell as many as asked.

        Systematic samples, in the order of the weights, so that chance adds little to
        what is asked.
        """
        found = []
        for cell in np.flatnonzero(self.counts):
            members = np.flatnonzero(self.cell == cell)
            members = members[np.argsort(weights[members], kind="stable")]
            share, n = weights[members], self.counts[cell]
            below = np.cumsum(share if share.any() else np.ones(len(members)))
            places = (rng.uniform() + np.arange(n)) * (below[-1] / n)
            places = np.searchsorted(below, places, side="right")
            found.append(members[np.minimum(places, len(members) - 1)])
        return rng.permutation(np.concatenate(found))

    def donors(self, donors, parents, nearest, rng):
        """Donors (n,) of which each cell has as many as asked; which are no parents.

        Those there are, other parents, and else the nearest training rows of a cell.
        """
        donors, strange = donors.copy(), np.zeros(len(donors), bool)
        extra = np.bincount(self.cell[donors], minlength=len(self.counts)) - self.counts
        for i in rng.permutation(np.flatnonzero(extra[self.cell[donors]] > 0)):
            own, others = self.cell[donors[i]], self.cell[parents[i]]
            better = np.flatnonzero(extra[others] < 0)
            if extra[own] > 0 and len(better):
                donors[i] = parents[i, better[0]]
                extra[own] -= 1
                extra[others[better[0]]] += 1
        for cell in np.flatnonzero(extra < 0):
            spare = rng.permutation(np.flatnonzero(extra[self.cell[donors]] > 0))
            for i in spare:
                if extra[cell] == 0:
                    break
                if extra[self.cell[donors[i]]] > 0:
                    extra[self.cell[donors[i]]] -= 1
                    extra[cell] += 1
                    members = np.flatnonzero(self.cell == cell)
                    donors[i], strange[i] = nearest(parents[i, 0], members), True
        return donors, strange


def _whole_numbers(system, near):
    """Whole numbers nearest to given ones on a system of counts."""
    n_cells = len(near)
    floor, ceiling = np.zeros(n_cells), np.full(n_cells, near.sum())
    if n_cells <= _MOST_CELLS:
        names = tuple(map(str, range(n_cells)))
        ends = system.lower[None], system.upper[None]
        ones = np.ones(n_cells)
        a = system.coefficients
        a = a.toarray() if issparse(a) else a
        asked = LinearSystem(a, *ends, names, ones)
        found = programme(near, asked, floor, ceiling, Lattice(ones, 0 * ones), ones)
        if found is not None and not system.missed(found)[0].round(6).any():
            return found
    found, reasons = whole_weights(system, near, floor, ceiling, _SECONDS)
    for reason in reasons:
        raise UnmetTotals(f"{reason} Give them room: column_total(..., within=).")
    return found
