"""Fill missing cells of tables and tensors.

The cells of a table are imputed by any imputer, then projected onto the equalities and
constraints. The cells of a tensor are the cells of a log-linear model of its observed
cells.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.base import clone

from ._utils.arrays import BLOCK_CELLS
from ._utils.blocks import map_blocks, observed_bounds
from ._utils.validation import check_ranges, errors_naming
from ._utils.warnings import warn_missed, warn_unconverged, warn_user
from .columns.constraints import ROUNDINGS, read_constraints
from .columns.relations import ColumnRelations, resolve_equalities
from .control.feasible_set import FeasibleSet
from .control.projection import nearest_rows
from .control.quadratic import least_violations
from .encoding.codec import free_mask, lay_out
from .frames import TableReader, read_table
from .geometry import complete
from .geometry.many_body.observed import checked_modes

# Price of a violation of an earlier constraint, in violations of a later constraint.
_PRICE = 1e4
# Number of distances that are in memory at the same time (8 MiB).
_PAIRS = 2**20
# BLAS rounds products differently for different block sizes. Adding a large constant
# rounds the differences away.
_COARSE = 2.0**13


class NearRows:
    """Fill missing cells with the means of the nearest training rows (n, D).

    The values are those of :class:`~sklearn.impute.KNNImputer` for columns divided by
    their range. Distances are Euclidean over the cells that both rows have, times the
    share of these cells. With more than ``n_candidates`` training rows, only a random
    subset is searched; each column has ``n_neighbors`` values in the subset.
    """

    def __init__(self, rows, n_neighbors, n_candidates=None):
        self._k = n_neighbors
        # Columns without a value have no range.
        self._low, high = observed_bounds(rows)
        self._unit = np.where(high > self._low, high - self._low, 1.0)
        rows = (rows - self._low) / self._unit
        seen = ~np.isnan(rows)
        n_seen = np.maximum(seen.sum(axis=0), 1)
        self._mean = np.where(seen, rows, 0.0).sum(axis=0) / n_seen
        if n_candidates is not None and n_candidates < len(rows):
            order = np.random.default_rng(0).permutation(len(rows))
            first = seen[order]
            chosen = (first & (np.cumsum(first, axis=0) <= n_neighbors)).any(axis=1)
            chosen[:n_candidates] = True
            among = np.sort(order[chosen])
            rows, seen = rows[among], seen[among]
        self._seen, self._cells = seen, np.where(seen, rows, 0.0)

    def transform(self, rows):
        """Fill the missing cells of rows (n, D) with means of near rows."""
        filled = (rows - self._low) / self._unit
        # Distances in blocks that fit the caches take half as long.
        (filled,) = map_blocks(
            self._fill,
            filled,
            step=max(1, _PAIRS // len(self._cells)),
            task="ManyBodyImputer: fill from near rows",
        )
        return filled * self._unit + self._low

    def _fill(self, rows):
        """Fill the missing cells of rows (b, D), in units of the ranges."""
        rows = rows.copy()
        seen = ~np.isnan(rows)
        cells, missing = np.where(seen, rows, 0.0), ~seen
        gaps = self._squared_gaps(cells, seen)
        for j in np.flatnonzero(missing.any(axis=0)):
            todo, donors = np.flatnonzero(missing[:, j]), self._seen[:, j].nonzero()[0]
            k = min(self._k, len(donors))
            if not k:
                rows[todo, j] = self._mean[j]
                continue
            of_donors = gaps[np.ix_(todo, donors)]
            near = np.argpartition(of_donors, k - 1, axis=1)[:, :k]
            is_near = np.isfinite(np.take_along_axis(of_donors, near, axis=1))
            values, n_near = self._cells[donors[near], j], is_near.sum(axis=1)
            mean = (values * is_near).sum(axis=1) / np.maximum(n_near, 1)
            rows[todo, j] = np.where(n_near > 0, mean, self._mean[j])
        return (rows,)

    def _squared_gaps(self, cells, seen):
        """Compute mean squared differences (b, n) over common cells, plus a constant.

        The value is infinite for rows without common cells.
        """
        given = np.hstack([cells * cells, -2 * cells, seen])
        kept = np.hstack([self._seen, self._cells, self._cells**2])
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = given @ kept.T
            n_common = seen.astype(float) @ self._seen.T.astype(float)
            gaps = np.maximum(gaps, 0, out=gaps)
            np.divide(gaps, n_common, out=gaps)
        gaps += _COARSE
        gaps[n_common == 0] = np.inf
        return gaps


class TableFiller:
    """Fill rows (n, D) of a table X with the parameters of an imputer."""

    # Tables have no log-linear model.
    poset = mask = None

    def __init__(self, imputer, rows, X):
        # The dtypes determine the rounding of sums.
        table = read_table(TableReader(None), X, missing=True)
        empty = np.flatnonzero(np.isnan(rows).all(axis=0))
        if len(empty):
            name = table.feature_names[empty[0]]
            raise ValueError(f"Column {name!r} has no observed value. Drop the column.")
        low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
        check_ranges(low, high, table.column_names)
        kept = resolve_equalities(imputer.equalities, table)
        wanted = read_constraints(imputer.constraints, table)
        relations = ColumnRelations.plain(
            table.without_rows(),
            table.numbers(),
            np.zeros(len(low)),
            kept,
            -np.inf,
            np.inf,
        )
        self._set = FeasibleSet(relations, wanted)
        # Tables store integers beyond double precision as differences from a start.
        system = self._set.system()
        start = system.coefficients @ table.starts
        self._system = system = replace(
            system, lower=system.lower + start, upper=system.upper + start
        )
        self.equalities = system.select(slice(len(kept)))
        if np.ndim(system.lower) > 1:
            raise ValueError(
                "constraints must have the same bounds for all rows; got one bound per "
                "row. Impute rows with different bounds in separate calls."
            )
        # The wider boxes exclude negative values for columns without negative values.
        beyond = np.where(low >= 0, 0.0, -np.inf), np.full(len(low), np.inf)
        self._boxes = (low, high), beyond
        # Only dtypes with less than double precision add rounding.
        single = table.precision * (table.precision > np.finfo(float).eps)
        rounding = single * np.maximum(np.abs(low), np.abs(high))
        self._rounding = np.abs(self._system.coefficients) @ rounding
        if imputer.imputer is None:
            k = imputer.n_neighbors or 5
            self._imputer = NearRows(rows, k, imputer.n_candidates)
        else:
            self._imputer = clone(imputer.imputer).set_output(transform="default")
            self._imputer.fit(rows)

    def fill(self, rows, missing, numbers):
        """Return the filled rows and the number of steps, 1; ``numbers`` name rows."""
        lost = np.flatnonzero(missing.all(axis=1))
        if len(lost):
            n = numbers[lost[0]]
            warn_user(
                f"{len(lost)} row{'s have' if len(lost) > 1 else ' has'} no observed "
                f"value; the first is row {n}. Drop empty rows before imputation."
            )
        with errors_naming("imputer"):
            guess = self._imputer.transform(rows).reshape(rows.shape)
        filled = self._project(np.where(missing, guess, rows), missing)
        self._warn_unmet(filled, numbers)
        return filled, 1

    def _warn_unmet(self, filled, numbers):
        """Warn of each constraint that filled rows violate."""
        system = self._system
        room = system.rounding(filled) + ROUNDINGS * self._rounding
        unmet, missed = system.violations(filled, room), np.abs(system.residual(filled))
        parts = []
        for k in np.flatnonzero(unmet.any(axis=0)):
            rows = np.flatnonzero(unmet[:, k])
            first = ", ".join(str(numbers[row]) for row in rows[:3])
            parts.append(
                f"{len(rows)} row{'s' if len(rows) > 1 else ''} cannot satisfy "
                f"{system.descriptions[k]!r} by up to {missed[rows, k].max():.3g}; the "
                f"first {'are rows' if len(rows) > 1 else 'is row'} {first}."
            )
        if parts:
            warn_missed(
                f"{' '.join(parts)} Correct the rows or the constraints, because "
                "observed cells do not change."
            )

    def _project(self, guess, missing):
        """Project the missing cells onto the constraints with the least change.

        Cells stay within the observed range if this is feasible, and leave it if not.
        If a row is still infeasible, each constraint in turn is satisfied as far as the
        constraints before it allow.
        """
        system = self._system
        # A constraint without a missing cell cannot be changed by imputation.
        requested = missing @ (system.coefficients != 0).T
        lower = np.where(requested, system.lower - 2 * self._rounding, -np.inf)
        upper = np.where(requested, system.upper + 2 * self._rounding, np.inf)
        filled, todo = guess.copy(), np.arange(len(guess))
        weights = self._set.weights(guess, ~missing)
        for box in (*self._boxes, None):
            low, high = self._boxes[-1] if box is None else box
            limits = [np.where(missing[todo], e, guess[todo]) for e in (low, high)]
            part = replace(system, lower=lower[todo], upper=upper[todo])
            if box is None:
                part = _in_turn(guess[todo], weights[todo], part, *limits)
            of_rows = guess[todo], weights[todo], part, *limits
            filled[todo], satisfied = nearest_rows(*of_rows)
            todo = todo[~satisfied.all(axis=1)]
            if not len(todo):
                break
        return filled


def _in_turn(start, weights, system, low, high):
    """Return a feasible system: each constraint has the nearest reachable bounds.

    The reachable bounds of a constraint are subject to all constraints before it.
    """
    lower, upper = system.lower.copy(), system.upper.copy()
    for k in range(len(system)):
        used = np.arange(len(system)) <= k
        part = replace(
            system,
            lower=np.where(used, lower, -np.inf),
            upper=np.where(used, upper, np.inf),
        )
        # Violations of constraints before k cost so much that they stay 0.
        prices = np.where(np.arange(len(system)) < k, _PRICE, 1.0)
        rows = least_violations(start, weights, part, low, high, prices)
        values = rows @ system.coefficients[k]
        off = part.violations(rows, inside=False)[:, k]
        lower[off, k] = upper[off, k] = values[off]
    return replace(system, lower=lower, upper=upper)


class TensorFiller:
    """Fill rows (n, D) of tensors or measures on a poset for an imputer."""

    equalities = None

    def __init__(self, imputer, rows):
        self.poset = lay_out(imputer.poset, imputer.input_shape_)
        self.mask = free_mask(self.poset, imputer.order_, imputer.base)
        self._offset, self._n_jobs = imputer.offset, imputer.n_jobs
        self._settings = {
            "poset": self.poset,
            "matched": self.mask,
            "ordered_modes": checked_modes(self.poset, imputer.ordered_modes),
            "ridge": imputer.alpha,
            "tol": imputer.tol,
            "max_iter": imputer.max_iter,
        }
        k = imputer.n_neighbors
        self._near = None if k is None else NearRows(rows, k, imputer.n_candidates)
        n_left_out = self.mask.size - 1 - self.mask.sum()
        # Rows with one mode have no interactions to leave out.
        is_plain = k is imputer.poset is imputer.base is None
        if is_plain and self.mask.ndim > 1 and n_left_out <= 0:
            warn_user(
                f"ManyBodyImputer: order={imputer.order_!r} keeps all interactions of "
                f"rows of shape {imputer.input_shape_}, so that observed cells do not "
                "determine a missing cell. Choose a smaller order, or set n_neighbors. "
                "A single tensor is one row: pass X[None]."
            )

    def fill(self, rows, missing, numbers):
        """Return the filled rows and the Newton steps; ``numbers`` name rows."""
        measure, residual, n_iter = self._models(rows)
        tol, max_iter = self._settings["tol"], self._settings["max_iter"]
        warn_unconverged("ManyBodyImputer", residual, tol, max_iter)
        measure = measure[:, int(self.poset.added_bottom) :] - self._offset
        filled = np.maximum(measure, 0.0)
        left = missing & np.isnan(filled)
        if left.any():
            row, cell = map(int, np.argwhere(left)[0])
            warn_user(
                f"{left.sum()} of {missing.sum()} missing cells are not determined by "
                f"observed cells and stay missing; the first is cell {cell} of row "
                f"{numbers[row]}. Set alpha > 0, or choose a smaller order."
            )
        return filled, max(1, int(n_iter.max()))

    def _with_bottom(self, cells, value):
        n_added = int(self.poset.added_bottom)
        return np.pad(cells, ((0, 0), (n_added, 0)), constant_values=value)

    def _models(self, rows):
        """Return models (n, D) of rows with NaN, their residuals and Newton steps."""
        cells = self._with_bottom(rows + self._offset, np.nan)
        reference = np.ones_like(cells)
        if self._near is not None:
            near = self._near.transform(rows)
            # A cell of a reference must not be 0.
            near += 1e-3 * near.mean(axis=1, keepdims=True)
            reference = self._with_bottom(near, 1.0)
        model = partial(_model_block, **self._settings)
        tensors = (x.reshape(-1, *self.poset.shape) for x in (cells, reference))
        step = max(1, BLOCK_CELLS // cells.shape[1])
        measure, *more = map_blocks(
            model,
            *tensors,
            step=step,
            task="ManyBodyImputer: fit models",
            n_jobs=self._n_jobs,
        )
        return measure.reshape(cells.shape), *more


def _model_block(cells, reference, **settings):
    completion = complete(cells, reference=reference, **settings)
    return completion.measure, completion.residual, completion.n_iter
