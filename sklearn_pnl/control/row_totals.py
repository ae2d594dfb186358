"""Totals of rows as a linear system of the weights of the rows.

:class:`RowTotals` reads the totals that a user requests, computes the nearest weights
with the totals, and explains why no weights have them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.sparse import issparse

from ..columns.constraints import LinearConstraints, stack_terms
from ..geometry.convex.reach import box_reach, span
from ..geometry.convex.weights import TINY, nearest_weights
from .totals import (
    as_totals,
    check_level_sum,
    columns_shown,
    read_counts,
    read_sum,
)

# Rounding in double precision can change a total by this share.
ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class RowTotals(LinearConstraints):
    """Sums over weighted rows, divided by the sum of the weights if ``is_mean``.

    Attributes
    ----------
    is_mean : ndarray of bool of shape (k,)
        Which totals are means or shares.
    is_count : ndarray of bool of shape (k,)
        Which totals are counts or shares of levels.
    weight_sum : float or None
        The required sum of the weights; None if the totals determine it.
    margins : tuple of _Margin
        The totals by level.
    """

    is_mean: np.ndarray | None = None
    is_count: np.ndarray | None = None
    weight_sum: float | None = None
    margins: tuple = ()

    @classmethod
    def read(cls, totals, columns, design):
        """Read the requested totals: sums first, then counts.

        Means and shares do not determine the sum of the weights. If nothing else is
        requested, the sum of the design weights is required.
        """
        requested = as_totals(totals, columns.names, (columns.n_columns,))
        requested.sort(key=lambda total: total.by_level)
        parts, margins = [], []
        for total in requested:
            if total.by_level:
                margins.append(_read_margin(columns, total, design))
                parts.append(margins[-1].counts)
            else:
                parts.append(read_sum(columns, total))
        sizes = [*map(len, parts)]
        is_mean = np.repeat([total.mean for total in requested], sizes)
        is_count = np.repeat([total.by_level for total in requested], sizes)
        weight_sum = float(design.sum()) if is_mean.all() else None
        system = vars(parts[0].stack(*parts[1:]))
        return cls(**system, is_mean=is_mean, is_count=is_count,
                   weight_sum=weight_sum, margins=tuple(margins))  # fmt: skip

    def values(self, weights):
        """Compute the totals (k,) of weights."""
        sums = self.coefficients @ weights
        return np.where(self.is_mean, sums / max(np.sum(weights), TINY), sums)

    def residual(self, weights):
        """Compute the residuals (k,) as shares of the sums of absolute terms."""
        missed = np.abs(self.missing(self.values(weights)))
        # The mean is undefined if all weights are 0.
        missed[self.is_mean & (np.sum(weights) <= 0)] = np.inf
        size = replace(self, coefficients=abs(self.coefficients)).values(weights)
        # If all terms are 0, the residual must exceed any tolerance.
        return missed / np.maximum(size, 1e-100)

    def linear(self):
        """Return all totals as sums: coefficients of the weights, and bounds.

        With a given sum of the weights, shares are counts. Otherwise, each bound of a
        mean becomes a sum of differences from the bound, which must be at least or at
        most 0.
        """
        scale, is_sum = np.ones(len(self)), ~self.is_mean
        if self.weight_sum is not None:
            shares = self.is_mean & self.is_count
            scale[shares], is_sum = self.weight_sum, is_sum | shares
        bounds = [[bound[is_sum] * scale[is_sum] for bound in (self.lower, self.upper)]]
        parts = [self.coefficients[is_sum]]
        for k in np.flatnonzero(~is_sum):
            row, low, high = self._row(k), self.lower[k], self.upper[k]
            for bound in filter(np.isfinite, dict.fromkeys((low, high))):
                # A difference within the rounding of a mean is 0.
                at_bound = np.abs(row - bound) <= ROUNDING * abs(bound)
                parts.append(np.where(at_bound, 0.0, row - bound)[None])
                least = 0.0 if bound == low else -np.inf
                most = 0.0 if bound == high else np.inf
                bounds.append([[least], [most]])
        if self.weight_sum is not None:
            parts.append(np.ones((1, self.coefficients.shape[1])))
            bounds.append([[self.weight_sum], [self.weight_sum]])
        return stack_terms(parts), *np.hstack(bounds)

    def _row(self, k):
        row = self.coefficients[[k]]
        return (row.toarray() if issparse(row) else row)[0]

    def solve(self, design, floor, ceiling, tol, max_iter, noun):
        """Return the nearest weights, the number of steps, and the reasons of failure.

        The messages call the result ``noun``: "weights", or "cells" of a table.
        """
        reasons = self._contradictions(design > 0, tol)
        reasons = reasons or self._out_of_reach(floor, ceiling, noun)
        if reasons:
            return np.clip(design, floor, ceiling), 0, reasons
        weights, n_iter = nearest_weights(
            *self.linear(), design, floor, ceiling, tol, max_iter
        )
        residual = self.residual(weights)
        k = int(residual.argmax())
        if residual[k] <= max(tol, 1e-14):
            return weights, n_iter, ()
        bounds = _is_bounded(floor, ceiling)
        reason = (
            f"{self.requirement(k)}, but the {noun} after {n_iter} steps give "
            f"{self.values(weights)[k]:.10g} (relative residual {residual[k]:.1e}, "
            f"tol={tol:g}). The totals probably contradict each other"
            f"{' or the bounds' if bounds else ''}: remove a total, "
            f"{'widen bounds, ' if bounds else ''}or allow an interval "
            "(column_total(..., rtol=)). Otherwise increase max_iter."
        )
        return weights, n_iter, (reason,)

    def _contradictions(self, used, tol):
        """Explain the first two margins with other sums over the same rows, if any."""
        pairs = combinations(self.margins, 2)
        found = (one.contradiction(other, used, tol) for one, other in pairs)
        return tuple(reason for reason in found if reason)[:1]

    def _out_of_reach(self, floor, ceiling, noun):
        """Explain which totals bounded weights cannot have."""
        total = self.weight_sum
        if total is not None:
            limits = floor.sum(), ceiling.sum()
            if not (limits[0] <= total * (1 + ROUNDING) and total <= limits[1]):
                return (
                    "Means and shares keep the sum of the design weights, "
                    f"{total:.10g}, but weights within bounds can only sum to "
                    f"{span(*limits)}. Use bounds that include 1.",
                )
        reach = np.concatenate(box_reach(self.coefficients, floor[None], ceiling[None]))
        by_bounds = np.full(len(self), _is_bounded(floor, ceiling))
        bounded = np.isfinite(ceiling).all() or (total is not None and floor.any())
        for k in np.flatnonzero(self.is_mean):
            row = self._row(k)
            values = row[ceiling > 0]
            reach[:, k] = values.min(), values.max()
            # Other bounds can help only if non-negative weights can give the mean.
            by_bounds[k] = bounded and not self._is_beyond(reach)[k]
            if by_bounds[k]:
                reach[:, k] = _range_of_mean(row, floor, ceiling, total)
        return tuple(
            self._beyond(k, span(*reach[:, k], 7), by_bounds[k], ceiling, noun)
            for k in np.flatnonzero(self._is_beyond(reach))
        )

    def _is_beyond(self, reach):
        """Check which totals lie outside the least and most values ``reach`` (2, k)."""
        least, most = reach
        too_high = self.lower > most + ROUNDING * np.abs(most)
        return too_high | (self.upper < least - ROUNDING * np.abs(least))

    def _beyond(self, k, reach, by_bounds, ceiling, noun):
        """Explain why total ``k`` lies outside the range ``reach`` of its values."""
        limit, remedy = "non-negative weights", ""
        if noun == "cells":
            limit, remedy = "the cells of the table", ", or the table"
            reach += ", because cells keep their signs and zeros stay 0"
        elif by_bounds:
            limit, remedy = "weights within bounds", ", or widen bounds"
        elif not ceiling.all():
            limit += " of rows with a positive design weight"
        return (
            f"{self.requirement(k)}, but {limit} can only give {reach}. Change the "
            f"total{remedy}."
        )


@dataclass(frozen=True)
class _Margin:
    """Counts or shares of the levels of some columns.

    Attributes
    ----------
    name : str
        The columns as shown in messages.
    keys : tuple
        The columns.
    levels : list of tuple
        One value per column, for each count.
    counts : LinearConstraints
    codes : ndarray of int of shape (n,)
        Position of the level of each row; -1 if its level is not counted.
    is_share : bool
    """

    name: str
    keys: tuple
    levels: list[tuple[Hashable, ...]]
    counts: LinearConstraints
    codes: np.ndarray
    is_share: bool

    def contradiction(self, other, used, tol):
        """Explain different sums of two margins over the same used rows, or None.

        The sums are those over all levels, or over the levels with the same values in
        the columns of both margins.
        """
        shared = [key for key in self.keys if key in other.keys]
        if self.is_share != other.is_share:
            return None
        place = {}
        (low, high, rows), (least, most, others) = (
            margin._partial_sums(shared, place, used) for margin in (self, other)
        )
        n = len(place)
        low, high, least, most = (np.pad(x, (0, n - len(x))) for x in
                                  (low, high, least, most))  # fmt: skip
        sizes = [np.bincount(x[x >= 0], minlength=n) for x in (rows, others)]
        both = np.bincount(rows[(rows == others) & (rows >= 0)], minlength=n)
        same = (both > 0) & (sizes[0] == both) & (sizes[1] == both)
        scale = np.maximum(np.abs(np.where(low > most, low, high)), 1e-300)
        gap = np.maximum(low - most, least - high)
        for k in np.flatnonzero(same & (gap > 2 * tol * scale)):
            pairs = zip(shared, [*place][k], strict=True)
            where = ", ".join(f"{key}={value!r}" for key, value in pairs)
            return (
                f"{f'For {where}, the' if where else 'The'} {self._noun} of "
                f"{self.name} sum to {span(low[k], high[k])}, but the {self._noun} of "
                f"{other.name} sum to {span(least[k], most[k])}, over the same rows. "
                "Make the sums equal, or allow an interval (column_total(..., rtol=))."
            )
        return None

    @property
    def _noun(self):
        return "shares" if self.is_share else "counts"

    def _partial_sums(self, keys, place, used):
        """Sum the bounds over levels with the same values in some columns.

        ``place`` maps values to positions, and is extended.

        Returns
        -------
        lower, upper : ndarray of shape (n_values,)
        rows : ndarray of int of shape (n_used,)
            Position of each used row; -1 if the margin does not count it.
        """
        columns = [self.keys.index(key) for key in keys]
        ids = np.array([
            place.setdefault(tuple(level[k] for k in columns), len(place))
            for level in self.levels
        ])  # fmt: skip
        sums = (np.bincount(ids, b) for b in (self.counts.lower, self.counts.upper))
        codes = self.codes[used]
        return *sums, np.where(codes >= 0, ids[codes], -1)


def _range_of_mean(values, floor, ceiling, weight_sum=None):
    """Return the least and the largest mean of values (n,) with bounded weights.

    The weights have the sum ``weight_sum``, or any sum if it is None.
    """
    if weight_sum is not None:
        ceiling = np.minimum(ceiling, np.maximum(floor, weight_sum))
    limits = []
    for order in (np.argsort(values), np.argsort(-values)):
        # In an extreme mean, the first rows have the largest weights.
        x, low, more = values[order], floor[order], (ceiling - floor)[order]
        weight = low.sum() + np.r_[0.0, np.cumsum(more)]
        total = low @ x + np.r_[0.0, np.cumsum(more * x)]
        if weight_sum is None:
            limits.append(total[weight > 0] / weight[weight > 0])
        else:
            limits.append(np.interp(weight_sum, weight, total) / weight_sum)
    return np.min(limits[0]), np.max(limits[1])


def _is_bounded(floor, ceiling):
    """Check whether weights have other bounds than 0 and infinity."""
    return bool(floor.any() or np.isfinite(ceiling[ceiling > 0]).any())


def _read_margin(columns, total, design):
    """Read counts or shares of levels as constraints on the weights of rows."""
    counts, codes = read_counts(columns, total)
    rest = np.flatnonzero((codes < 0) & (design > 0))
    # Shares that sum to 1 leave no weight for rows with other levels.
    full = 1.0 if total.mean else None
    check_level_sum(total, counts, len(rest), full, columns.names)
    shown, least = columns_shown(total, columns.names), counts.lower.sum()
    if total.mean and least >= 1 - ROUNDING and len(rest):
        raise ValueError(
            f"The shares of the levels of {shown} sum to {least:.6g}, which leaves "
            f"nothing for {len(rest)} rows with other levels; the first is row "
            f"{rest[0]}. Remove these rows, or reduce shares."
        )
    keys, levels = total.columns(columns.names), [*total.lower]
    if keys is not total.of:
        levels = [(level,) for level in levels]
    return _Margin(shown, keys, levels, counts, codes, total.mean)
