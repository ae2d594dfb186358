"""What a new row must satisfy: relations between columns, and constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..columns.constraints import LinearConstraints
from ..columns.implied_equalities import implied_equalities
from ..columns.relations import ColumnRelations


@dataclass(frozen=True)
class FeasibleSet:
    """The set of rows that satisfy relations between columns and constraints.

    Attributes
    ----------
    relations : ColumnRelations
        Relations of the training rows, in the units of the rows of a class.
    constraints : LinearConstraints
        Requested constraints, the same for all rows or with one value per row.
    reliability : ndarray of shape (D,) or float, default=1.0
        Factors of the squares of moves: columns with a large factor move little.
    """

    relations: ColumnRelations
    constraints: LinearConstraints
    reliability: Any = 1.0

    @classmethod
    def without_constraints(cls, relations):
        """Return the set of rows that satisfy relations only."""
        names = relations.columns.table.feature_names
        return cls(relations, LinearConstraints.empty(names))

    @property
    def columns(self):
        """The values of the columns."""
        return self.relations.columns

    def take_rows(self, rows):
        """Return the set for some of the rows that constraints have values for."""
        return replace(self, constraints=self.constraints.take_rows(rows))

    def resolutions(self):
        """Return the set, and the same set without a resolution if there is one."""
        if not self.columns.has_resolution:
            return [self]
        columns = replace(self.columns, support=None)
        return [self, replace(self, relations=replace(self.relations, columns=columns))]

    def weights(self, rows, fixed, offset=1.0):
        """Compute weights (n, D) of the squares of moves; 0 for fixed cells.

        A column without a range has the size of its values instead.
        """
        ranges = self.columns.ranges
        unit = np.where(ranges > 0, ranges, np.abs(rows))
        unit = np.where(unit > 0, unit, 1.0)
        # Not 0, so that no drawn value is stuck by its place.
        measure = np.maximum((rows - self.columns.least) / unit + offset, 1e-6)
        return np.where(fixed, 0.0, measure * unit**2 / self.reliability)

    def breaks(self, rows):
        """Return the mask (n,) of rows that are out of bounds or out of order."""
        return self.relations.breaks(rows)

    def split_bounds(self, n):
        """Return bounds (n, D) of cells, and the set without constraints of one column.

        Constraints of one column become bounds. If a constraint contradicts the bounds
        of its column, the lower bound exceeds the upper bound.
        """
        low, high = (
            np.tile(bound, (n, 1)) for bound in (self.columns.low, self.columns.high)
        )
        requested = self.constraints
        is_single = np.count_nonzero(requested.coefficients, axis=1) == 1
        for k in np.flatnonzero(is_single):
            j = int(np.flatnonzero(requested.coefficients[k])[0])
            bounds = np.stack([requested.lower[..., k], requested.upper[..., k]])
            below, above = np.sort(bounds / requested.coefficients[k, j], axis=0)
            low[:, j] = np.maximum(low[:, j], below)
            high[:, j] = np.minimum(high[:, j], above)
        return low, high, replace(self, constraints=requested.select(~is_single))

    def system(self, inequalities=None, gaps=None):
        """Return equalities, constraints and some inequalities as one system.

        ``inequalities`` (m,) is a mask.

        Rows are free from all conditions on their missing cells ``gaps`` (n, D), if
        gaps are given.
        """
        # Columns that are constant in a class keep their range in all rows.
        equalities, ranges = self.relations.equalities, self.columns.ranges
        of_all = ranges if equalities.ranges is None else equalities.ranges
        units = np.where(ranges > 0, ranges, of_all)
        system = replace(equalities.stack(self.constraints), ranges=units)
        if inequalities is not None and inequalities.any():
            p, q = self.relations.inequalities[inequalities].T
            cells = np.eye(len(units))
            bounds = self.relations.distances[inequalities], np.full(len(p), np.inf)
            below = LinearConstraints(
                cells[q] - cells[p], *bounds, system.feature_names
            )
            system = system.stack(below)
        if gaps is None or not gaps.any():
            return system
        every, applies = implied_equalities(self.relations, np.atleast_2d(gaps))
        applies, n = applies.reshape(*gaps.shape[:-1], -1), len(equalities)
        system = system.stack(every.select(slice(n, None)))
        off = gaps @ (system.coefficients != 0).T
        off[..., :n] |= ~applies[..., :n]
        off[..., len(system) - len(every) + n :] |= ~applies[..., n:]
        lower = np.where(off, -np.inf, system.lower)
        return replace(system, lower=lower, upper=np.where(off, np.inf, system.upper))
