"""Totals of a set of new rows: calibrated parents, then one projection of all rows.

Training rows get weights that have the totals (:func:`parent_weights`), and new rows
start from them as often as these say, with their categories, so that counts by category
are met (:func:`choose_seeds`). All rows are moved together for sums
(`sum_projection.py`).
"""

from dataclasses import dataclass, replace

import numpy as np

from .._column_totals import (
    ColumnReader,
    ColumnTotal,
    as_totals,
    read_margin,
)
from ..calibration import effective_size, nearest_weights, stack_terms
from ..geometry.convex.reach import span
from ..geometry.convex.whole import nearest_whole
from .linear import ALMOST, TOL, ColumnConstraint, read_constraints
from .sum_projection import Sums


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
    """

    n: int
    sums: Sums
    margins: tuple

    @classmethod
    def read(cls, totals, n, table, numbers, discrete=False):
        """Read totals about ``n`` new rows.

        Parameters
        ----------
        totals : object
            As in :func:`~sklearn_pnl.calibrate`.
        n : int
        table : Table
        numbers : ndarray of shape (n_train, D)
            Its rows.
        discrete : bool or ndarray of bool of shape (D,), default=False
            Columns of which new rows have values of training rows alone, which can be
            counted.
        """
        X = table.like(numbers.copy(), np.arange(len(numbers)))
        reader = ColumnReader(X) if len(table.row_shape) == 1 else None
        discrete = np.broadcast_to(discrete, len(table.columns))

        def places_of(keys):
            columns = [table.column_of(key, "totals") for key in keys]
            return np.flatnonzero(np.isin(table.columns, columns))

        sums, margins = [], []
        for total in as_totals(totals, table.names, table.row_shape):
            if not total.by_level and len(total.coefficients) == 1:
                for column in places_of(total.coefficients):
                    if discrete[column] and reader:
                        values = numbers[:, column] + table.starts[column]
                        total = _as_count(values, total, n) or total
            if not total.by_level:
                sums.append(total)
                continue
            margins.append(_read_counts(reader or ColumnReader(X), total, n))
            if not discrete[places_of(margins[-1].key)].all():
                raise ValueError(
                    f"{margins[-1].name} is counted by values, of which "
                    "new rows may have others. Name it in categorical_features."
                )
        return cls(n, _read_sums(sums, n, table), tuple(margins))

    def achieved(self, rows, codes):
        """What rows have, and what they miss, of all that is asked for.

        Parameters
        ----------
        rows : ndarray of shape (n, D)
            Numbers; NaN adds nothing.
        codes : sequence of ndarray of int of shape (n,)
            Levels, by margin.

        Returns
        -------
        names : tuple of str of length k
        lower, upper, values, residual : ndarray of shape (k,)
            The residual of a sum is a share of its absolute terms.
        """
        sums, names = self.sums, list(self.sums.names)
        parts = [(sums.lower, sums.upper, sums.values(rows), sums.residual(rows))]
        for margin, level in zip(self.margins, codes, strict=True):
            names += margin.names
            counts = margin.indicators(level).sum(axis=1)
            missed = np.abs(np.clip(counts, margin.lower, margin.upper) - counts)
            parts.append((margin.lower, margin.upper, counts, missed))
        return tuple(names), *map(np.concatenate, zip(*parts, strict=True))


def _read_sums(totals, n, table):
    """Sums and means of columns as :class:`Sums`."""
    asked = [ColumnConstraint(total.coefficients, lower=0) for total in totals]
    a = read_constraints(asked, table).coefficients
    a = a / np.array([n if total.mean else 1 for total in totals])[:, None]
    lower, upper = (
        np.array([(total.lower, total.upper) for total in totals]).reshape(-1, 2).T
    )
    names = tuple(total.name for total in totals)
    return Sums(a, lower, upper, n * a @ table.starts, names)


def _read_counts(reader, total, n):
    """Counts by level with ends that are whole numbers from 0 on."""
    margin = read_margin(reader, total, n)
    lower = np.ceil(np.maximum(margin.lower, 0) - ALMOST) + 0.0
    upper = np.floor(np.minimum(margin.upper, n) + ALMOST)
    for k in np.flatnonzero(lower > upper):
        raise ValueError(
            f"{margin.names[k]} asks for {span(margin.lower[k], margin.upper[k])}, in "
            f"which there is no whole number from 0 to {n}: column_total(..., rtol=)."
        )
    return replace(margin, lower=lower, upper=upper)


def _as_count(values, total, n):
    """The sum of a column of two values as the count of the larger one.

    None where rows without a value leave the count open, or all rows have one value.
    """
    ((key, weight),) = total.coefficients.items()
    least, most = np.nanmin(values), np.nanmax(values)
    if least == most or (least != 0 and np.isnan(values).any()):
        return None
    ends = np.array([total.lower, total.upper]) * (n if total.mean else 1)
    ends = np.sort((ends / weight - n * least) / (most - least))
    return ColumnTotal(key, *({float(most): float(end)} for end in ends))


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
    terms, lower, upper, names = _count_terms(totals.margins, totals.n, n)
    weights = _nearest(terms, lower, upper, np.full(n, totals.n / n))
    values = terms @ weights
    missed = np.abs(values - np.clip(values, lower, upper))
    if missed.max() > ALMOST * totals.n:
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
    both = stack_terms([terms, a])
    used = np.where(weights > 0, totals.n / n, 0.0)
    # New rows of few parents are copies: where less than an eighth of them would be
    # left, weights go a part of the way, and the projection of the rows the rest.
    for way in (1.0, 0.75, 0.5, 0.25, 0.1):
        aim = values + way * missing
        ends = np.append(lower, aim), np.append(upper, aim)
        near = _nearest(both, *ends, used)
        reached = both @ near
        gap = np.abs(reached - np.clip(reached, *ends)) / (abs(both) @ near + 1e-300)
        if gap.max() <= ALMOST and 8 * effective_size(near) >= effective_size(weights):
            return near
    return weights


def _nearest(terms, lower, upper, near):
    """Positive weights nearest to others with sums between ends."""
    limits = np.zeros_like(near), np.full_like(near, np.inf)
    return nearest_weights(terms, lower, upper, near, *limits, TOL, 60)[0]


def _count_terms(margins, n_rows, n):
    """Counts of ``n_rows`` rows as sums of weights (n,): terms, ends, names."""
    terms = [np.ones((1, n)), *(margin.indicators(margin.codes) for margin in margins)]
    lower = np.concatenate([[n_rows], *(margin.lower for margin in margins)])
    upper = np.concatenate([[n_rows], *(margin.upper for margin in margins)])
    names = [name for margin in margins for name in margin.names]
    return stack_terms(terms), lower, upper, ("the number of rows", *names)


def choose_seeds(totals, weights, rng):
    """Choose training rows (n,) that new ones start from, and take their categories of.

    Rows that are alike in all that is counted share a cell, of which as many are chosen
    as is asked for: systematic samples, in the order of the weights, so that chance
    adds little to what is asked.
    """
    none = np.zeros(len(weights), int)
    codes = np.column_stack([none, *(margin.codes for margin in totals.margins)])
    cells, cell = np.unique(codes, axis=0, return_inverse=True)
    counts = _whole_counts(totals, cells[:, 1:], np.bincount(cell.ravel(), weights))
    chosen = []
    for k in np.flatnonzero(counts):
        members = np.flatnonzero(cell.ravel() == k)
        members = members[np.argsort(weights[members], kind="stable")]
        share = weights[members]
        below = np.cumsum(share if share.any() else np.ones(len(members)))
        places = (rng.uniform() + np.arange(counts[k])) * (below[-1] / counts[k])
        places = np.searchsorted(below, places, side="right")
        chosen.append(members[np.minimum(places, len(members) - 1)])
    return rng.permutation(np.concatenate(chosen))


def _whole_counts(totals, cells, near):
    """Whole numbers of rows of each cell, next to weights, with the counts asked for.

    ``cells`` (n_cells, n_margins) are their levels.
    """
    pairs = zip(totals.margins, cells.T, strict=True)
    margins = [replace(margin, codes=codes) for margin, codes in pairs]
    terms, lower, upper, _ = _count_terms(margins, totals.n, len(cells))
    try:
        # A limit in seconds would have rows depend on the machine.
        counts = nearest_whole(near, terms, lower, upper, {"node_limit": 2000})
    except ValueError:
        names = " and ".join(margin.name for margin in margins)
        raise ValueError(
            f"No whole numbers of rows with the counts of {names} were found. Give "
            "one a tolerance: column_total(..., rtol=)."
        ) from None
    return counts.astype(int)
