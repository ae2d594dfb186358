"""Totals of a set of new rows: calibrated parents, then one projection of all rows.

Training rows get weights that have the totals (:func:`parent_weights`), and new rows
start from them as often as these say. Counts by category are met by the donors of the
rows (:class:`Quotas`), sums by moving all rows together (`sum_projection.py`).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csc_array

from .._column_totals import (
    ColumnReader,
    ColumnTotal,
    as_totals,
    check_agreement,
    label_of,
    read_margin,
)
from ..calibration import effective_size, nearest_weights, stack_terms
from ..frames.columns import column_of
from ..frames.readers import is_missing
from ..geometry.convex.reach import span
from ..geometry.convex.whole import nearest_whole
from .sum_projection import SUM_TOL, Sums

# Distance from a whole number that rounding may hide.
_WHOLE = 1e-6
# Newton steps for weights with counts, and with sums on the way, which may be left.
_MAX_STEPS, _WAY_STEPS = 60, 20
# Ways to the sums that are tried by weights alone, as shares, and the least effective
# number of parents, as a share of that which counts leave: few parents are copied.
_WAYS, _LEAST_PARENTS = (1.0, 0.75, 0.5, 0.25, 0.1), 0.125


@dataclass(frozen=True)
class Totals:
    """What is asked of ``n`` new rows together.

    Attributes
    ----------
    n : int
    sums : Sums
        Of numbers.
    margins : tuple of Margin
        Counts by category, with the level of each training row.
    counted : ndarray of int
        Columns of numbers that are counted by their values, which donors give.
    """

    n: int
    sums: Sums
    margins: tuple
    counted: np.ndarray

    @classmethod
    def read(cls, totals, n, X, columns, *, starts=None, is_time=None, discrete=None):
        """Read totals about ``n`` new rows.

        Parameters
        ----------
        totals : object
            As in :func:`~sklearn_pnl.calibrate`.
        n : int
        X : data frame or array
            Training rows as users gave them.
        columns : ndarray of int of shape (D,)
            The columns of X, flat, that numbers are of.
        starts : ndarray of shape (D,), default=None
            From where numbers count; None is 0.
        is_time, discrete : ndarray of bool of shape (D,), default=None
            Columns of times, which have no sum, and columns of which new rows have
            values of training rows alone, which can be counted; None is no column.
        """
        d, row_shape = len(columns), X.shape[1:]
        reader = ColumnReader(X) if len(row_shape) == 1 else None
        names = reader and reader.names
        none = np.zeros(d, bool)
        starts, is_time, discrete = (
            none if given is None else given for given in (starts, is_time, discrete)
        )
        place = dict(zip(np.asarray(columns).tolist(), range(d), strict=True))

        def inside_of(keys):
            flat = (column_of(key, "totals", names, row_shape) for key in keys)
            return [place[j] for j in flat if j in place]

        parts, margins, counted = [], [], set()
        for total in as_totals(totals, names, row_shape):
            if not total.by_level:
                keys = total.coefficients
                inside = inside_of(keys)
                if reader and len(keys) == len(inside) == discrete[inside].sum() == 1:
                    total = _as_count(reader, total, n) or total
            if total.by_level:
                margins.append(_read_counts(reader or ColumnReader(X), total, n))
                keys = margins[-1].key
                inside = inside_of(keys)
                if not np.all(discrete[inside]):
                    raise ValueError(
                        f"{label_of(keys)} is counted by values, of which new rows may "
                        "have others. Name it in categorical_features."
                    )
                counted |= set(inside)
                continue
            if len(inside) < len(keys) or is_time[inside].any():
                raise ValueError(
                    f"Totals are about numbers, but {label_of(total.of)} holds "
                    "categories or times: ask for counts by level, or pass numbers."
                )
            row, weights = np.zeros(d), [*total.coefficients.values()]
            np.add.at(row, inside, np.divide(weights, n if total.mean else 1))
            shift = n * float(row @ starts)
            parts.append((row, total.lower, total.upper, shift, total.name))
        check_agreement(margins)
        rows, *ends, names = zip(*parts, strict=True) if parts else [()] * 5
        sums = Sums(np.reshape(rows, (len(rows), d)), *map(np.array, ends), names)
        return cls(n, sums, tuple(margins), np.array(sorted(counted), int))

    @property
    def names(self):
        """All that is asked for, in words."""
        counts = (name for margin in self.margins for name in margin.names)
        return (*self.sums.names, *counts)

    @property
    def ends(self):
        """Least and most (2, k) of all that is asked for."""
        margins = ((margin.lower, margin.upper) for margin in self.margins)
        return np.hstack([(self.sums.lower, self.sums.upper), *margins])

    def values(self, rows, codes):
        """All that is asked for (k,), of numbers (n, D) and levels (n,) by margin."""
        pairs = zip(self.margins, codes, strict=True)
        counts = (margin.indicators(level).sum(axis=1) for margin, level in pairs)
        return np.concatenate([self.sums.values(rows), *counts])


def _read_counts(reader, total, n):
    """Counts by level with ends that are whole numbers from 0 on."""
    margin = read_margin(reader, total, n)
    lower = np.ceil(np.maximum(margin.lower, 0) - _WHOLE) + 0.0
    upper = np.floor(np.minimum(margin.upper, n) + _WHOLE)
    for k in np.flatnonzero(lower > upper):
        raise ValueError(
            f"{margin.names[k]} asks for {span(margin.lower[k], margin.upper[k])}, in "
            f"which there is no whole number from 0 to {n}: column_total(..., rtol=)."
        )
    least, most = lower.sum(), upper.sum()
    if least > n or (most < n and np.all(margin.codes >= 0)):
        raise ValueError(
            f"The counts of the levels of {margin.name} sum to "
            f"{span(least, most)}, but the number of rows is {n}."
        )
    return replace(margin, lower=lower, upper=upper)


def _as_count(reader, total, n):
    """The sum of a column of two values as the count of the larger one.

    None where rows without a value leave the count open, or all rows have one value.
    """
    ((key, weight),) = total.coefficients.items()
    levels = [np.nan if is_missing(x) else x for x in reader.levels(key)]
    values = np.array(levels, dtype=np.float64)
    least, most = np.nanmin(values), np.nanmax(values)
    if least == most or (least != 0 and np.isnan(values).any()):
        return None
    ends = np.array([total.lower, total.upper]) * (n if total.mean else 1)
    ends = np.sort((ends / weight - n * least) / (most - least))
    return ColumnTotal(key, *({float(most): float(end)} for end in ends))


def check_totals(totals, rows, codes, precision=0.0):
    """Check the totals of rows as their user gets them.

    Parameters
    ----------
    totals : Totals
    rows : ndarray of shape (n, D)
        Numbers; NaN adds nothing.
    codes : sequence of ndarray of int of shape (n,)
        Levels, by margin.
    precision : float or ndarray of shape (D,), default=0
        Relative rounding of the types of columns: 1e-7 for single precision.

    Returns
    -------
    names : tuple of str
    lower, upper, achieved : ndarray of shape (k,)

    Raises
    ------
    ValueError
        If a sum is missed by more than 1e-9 of its absolute terms and the rounding of
        one value, or a count at all.
    """
    (lower, upper), values = totals.ends, totals.values(rows, codes)
    missed, k = np.abs(np.clip(values, lower, upper) - values), len(totals.sums)
    room = np.zeros(len(values))
    largest = np.abs(np.nan_to_num(rows)).max(axis=0, initial=0)
    room[:k] = SUM_TOL * totals.sums.sizes(rows)
    room[:k] += np.abs(totals.sums.coefficients) @ (largest * precision)
    for i in np.flatnonzero(missed > room):
        raise ValueError(
            f"{totals.names[i]} asks for {span(lower[i], upper[i])}; rows have "
            f"{values[i]:.10g}."
        )
    return totals.names, lower, upper, values


# --- parents ------------------------------------------------------------------------


def parent_weights(totals, numbers):
    """Weights of training rows, with which new rows start from them.

    Nearest to equal ones in the sense of KL, with all counts, and with sums as far on
    the way there as leaves enough parents.

    Parameters
    ----------
    totals : Totals
    numbers : ndarray of shape (n_train, D)

    Returns
    -------
    ndarray of shape (n_train,)
        They sum to ``totals.n``.
    """
    n, sums = len(numbers), totals.sums
    design, unbounded = np.full(n, totals.n / n), (np.zeros(n), np.full(n, np.inf))
    terms, lower, upper, names = _count_terms(totals.margins, totals.n, n)
    weights, _ = nearest_weights(
        terms, lower, upper, design, *unbounded, SUM_TOL, _MAX_STEPS
    )
    values = terms @ weights
    missed = np.abs(values - np.clip(values, lower, upper))
    if missed.max() > _WHOLE * totals.n:
        k = int(missed.argmax())
        raise ValueError(
            f"{names[k]} asks for {span(lower[k], upper[k])}; with the other counts, "
            f"training rows reach {values[k]:.7g}: column_total(..., rtol=)."
        )
    if not len(sums):
        return weights
    a = sums.coefficients @ np.nan_to_num(numbers).T
    values = a @ weights
    missing = np.clip(values, sums.lower - sums.shift, sums.upper - sums.shift) - values
    scale = np.maximum(np.abs(a).max(axis=1), np.finfo(float).tiny)
    both = stack_terms([terms, a / scale[:, None]])
    used = np.where(weights > 0, design, 0.0)
    for way in _WAYS:
        aim = (values + way * missing) / scale
        ends = np.append(lower, aim), np.append(upper, aim)
        near, _ = nearest_weights(both, *ends, used, *unbounded, SUM_TOL, _WAY_STEPS)
        reached = both @ near
        gap = np.abs(reached - np.clip(reached, *ends)) / (abs(both) @ near + 1e-300)
        enough = _LEAST_PARENTS * effective_size(weights)
        if gap.max() <= _WHOLE and effective_size(near) >= enough:
            return near
    return weights


def _count_terms(margins, n_rows, n):
    """Counts of ``n_rows`` rows as sums of weights (n,): terms, ends, names."""
    parts = [np.ones((1, n)), *(margin.indicators(margin.codes) for margin in margins)]
    ends = (
        np.concatenate([[n_rows], *(getattr(margin, end) for margin in margins)])
        for end in ("lower", "upper")
    )
    names = [name for margin in margins for name in margin.names]
    return stack_terms(parts), *ends, ("the number of rows", *names)


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
    def of(cls, totals, weights):
        """Whole numbers next to weights, with the counts asked for."""
        if not totals.margins:
            return cls(np.zeros(len(weights), int), np.array([totals.n]))
        codes = np.column_stack([margin.codes for margin in totals.margins])
        cells, cell = np.unique(codes, axis=0, return_inverse=True)
        near = np.bincount(cell.reshape(-1), weights)
        margins = []
        for margin, codes in zip(totals.margins, cells.T, strict=True):
            whole = _whole_margin(margin, codes, near)
            margins.append(replace(margin, codes=codes, lower=whole, upper=whole))
        terms, wanted, _, _ = _count_terms(margins, totals.n, len(cells))
        zeros, endless = np.zeros(len(cells)), np.full(len(cells), np.inf)
        near, _ = nearest_weights(
            terms, wanted, wanted, near, zeros, endless, SUM_TOL, _MAX_STEPS
        )
        try:
            counts = nearest_whole(near, csc_array(terms), wanted, 10.0)
        except ValueError:
            names = " and ".join(margin.name for margin in totals.margins)
            raise ValueError(
                f"No whole numbers of rows with the counts of {names} were found. Give "
                "one a tolerance: column_total(..., rtol=)."
            ) from None
        return cls(cell.reshape(-1), counts.astype(int))

    def starts(self, weights, rng):
        """Training rows (n,) that new ones start from: of each cell as many as asked.

        Systematic samples, in the order of the weights, so that chance adds little to
        what is asked.
        """
        chosen = []
        for cell in np.flatnonzero(self.counts):
            members = np.flatnonzero(self.cell == cell)
            members = members[np.argsort(weights[members], kind="stable")]
            share, n = weights[members], self.counts[cell]
            below = np.cumsum(share if share.any() else np.ones(len(members)))
            places = (rng.uniform() + np.arange(n)) * (below[-1] / n)
            places = np.searchsorted(below, places, side="right")
            chosen.append(members[np.minimum(places, len(members) - 1)])
        return rng.permutation(np.concatenate(chosen))

    def donors(self, donors, parents, nearest, rng):
        """Donors (n,) of which each cell has as many as asked for.

        Those there are, other parents, else the nearest training rows of a cell.

        Parameters
        ----------
        donors : ndarray of int of shape (n,)
        parents : ndarray of int of shape (n, n_parents)
        nearest : callable
            ``nearest(row, members)`` is the one of some training rows nearest to one.
        rng : RandomState

        Returns
        -------
        donors : ndarray of int of shape (n,)
        is_unrelated : ndarray of bool of shape (n,)
            Those that are no parents.
        """
        donors, unrelated = donors.copy(), np.zeros(len(donors), bool)
        extra = np.bincount(self.cell[donors], minlength=len(self.counts)) - self.counts
        for i in rng.permutation(np.flatnonzero(extra[self.cell[donors]] > 0)):
            cell, others = self.cell[donors[i]], self.cell[parents[i]]
            better = np.flatnonzero(extra[others] < 0)
            if extra[cell] > 0 and len(better):
                donors[i] = parents[i, better[0]]
                extra[cell] -= 1
                extra[others[better[0]]] += 1
        for cell in np.flatnonzero(extra < 0):
            members = np.flatnonzero(self.cell == cell)
            for i in rng.permutation(np.flatnonzero(extra[self.cell[donors]] > 0)):
                if extra[cell] < 0 and extra[self.cell[donors[i]]] > 0:
                    extra[self.cell[donors[i]]] -= 1
                    extra[cell] += 1
                    donors[i], unrelated[i] = nearest(parents[i, 0], members), True
        return donors, unrelated


def _whole_margin(margin, codes, near):
    """Whole counts by level within their ends, next to those of weights of cells.

    By the largest remainder, the rest of the rows being a level of its own.
    """
    counts = np.append(margin.indicators(codes) @ near, near[codes < 0].sum())
    lower = np.append(margin.lower, 0)
    upper = np.append(margin.upper, np.inf if np.any(codes < 0) else 0)
    whole = np.clip(np.floor(counts + _WHOLE), lower, upper)
    left = int(round(near.sum() - whole.sum()))
    step = 1 if left > 0 else -1
    for _ in range(abs(left)):
        fits = whole < upper if step > 0 else whole > lower
        k = int(np.argmax(np.where(fits, step * (counts - whole), -np.inf)))
        whole[k] += step
    return whole[:-1]
