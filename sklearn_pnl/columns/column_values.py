"""The values that columns can take: types, bounds, steps and resolution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.blocks import observed_bounds
from .constraints import ALMOST
from .rounding import on_steps, on_values


@dataclass(frozen=True)
class ColumnValues:
    """The values that the columns (D,) of training rows take.

    Attributes
    ----------
    table : Table
        Names and types of the columns.
    low, high : ndarray of shape (D,)
        Bounds of new values; infinite for no bound.
    least, most : ndarray of shape (D,)
        Least and greatest observed value, 0 if there is none. Distances are measured
        in units of their difference.
    steps : ndarray of shape (D,)
        Numbers of which all values are multiples: 1 for integers, 0.01 for cents, 0 for
        columns without steps.
    binary : ndarray of bool of shape (D,)
        Binary columns: new rows copy the value of a parent.
    support : ValueSupport or None
        Resolution and atoms of the columns.
    """

    table: Any
    low: NDArray
    high: NDArray
    least: NDArray
    most: NDArray
    steps: NDArray
    binary: NDArray
    support: Any = None

    def of_rows(self, rows):
        """Return the columns in units of the ranges of some rows (m, D)."""
        least, most = observed_bounds(rows)
        return replace(self, least=least, most=most)

    def with_bounds_on_steps(self):
        """Return the columns with the widest bounds that are on their resolution."""
        low, high = self.low.copy(), self.high.copy()
        # Observed bounds are on the resolution.
        wide = (self.steps > 0) & ((low < self.least) | (high > self.most))
        c = np.flatnonzero(wide)
        if not len(c):
            return self
        low[c] = self.rounded(low[c], c, np.ceil)
        high[c] = self.rounded(high[c], c, np.floor)
        return replace(self, low=low, high=high)

    @property
    def is_integer(self):
        """The mask (D,) of columns with an integer type, which hold only integers."""
        return (self.steps > 0) & (self.table.precision == 0)

    @cached_property
    def ranges(self):
        """The unit (D,) of each column: its range in the rows."""
        return self.most - self.least

    @cached_property
    def has_bounds(self):
        """Whether a column that varies and is not binary has a bound."""
        varies = ~self.binary & (self.least < self.most)
        return bool(np.isfinite(self.low[varies]).any())

    @property
    def atoms(self):
        """Values by column that many rows share, and that new rows copy unchanged."""
        return {} if self.support is None else self.support.atoms

    @property
    def has_resolution(self):
        """Whether a column has a resolution that is coarser than its steps."""
        return self.support is not None and self.support.is_coarse

    @property
    def sizes(self):
        """The distance (D,) of neighbouring values; 0 for columns without steps."""
        return self.steps if self.support is None else self.steps * self.support.widths

    def rounded(self, values, columns, to=np.rint):
        """Round values (n, c) of columns on steps to the resolution of the columns.

        Values can also be the cells (n,) of one column, or of one column for each cell.
        """
        if self.support is None:
            return on_steps(values, self.steps[columns], to)
        grid = self.support.widths[columns], self.support.origins[columns]
        rounded = on_steps(values, self.steps[columns], to, *grid)
        for j, (_, dates) in self.support.calendars.items():
            here = np.equal(columns, j)
            if here.any():
                rounded[..., here] = on_values(values[..., here], dates, to)
        return rounded

    def beyond(self, rows):
        """Return the mask (n,) of rows (n, D) with a value outside the bounds."""
        if not len(rows):
            return np.zeros(0, bool)
        # The extremes of columns are found faster than a mask of all cells.
        least, most = rows.min(axis=0), rows.max(axis=0)
        if (least >= self.low).all() and (most <= self.high).all():
            return np.zeros(len(rows), bool)
        return ((rows < self.low) | (rows > self.high)).any(axis=1)

    def may_be_off(self, rows):
        """Return the numbers of sparse rows off their bounds or resolution."""
        x, c = rows.data, rows.indices
        off = (x < self.low[c]) | (x > self.high[c])
        stepped = np.flatnonzero(self.steps[c] > 0)
        x, c = x[stepped], c[stepped]
        off[stepped] |= np.abs(x - self.rounded(x, c)) > ALMOST * self.steps[c]
        first = np.searchsorted(rows.indptr, np.flatnonzero(off), side="right")
        return np.unique(first - 1)
