"""Missing cells of a table: those of any imputer, moved least so that sums hold."""

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from ._runtime.validation import feature_names, warn_missed, warn_user
from ._tensor_filling import NearRows
from .constraints.feasible_set import FeasibleSet, TableReader, find_in_table
from .constraints.linear import LinearConstraints, check_ends, read_coefficients
from .constraints.nearest import nearest_rows
from .constraints.projection import split_limits, weights_of
from .frames import is_frame, read_table
from .frames.columns import column_of

# Near rows of the default imputer.
_NEIGHBORS = 5
# What observed cells alone may miss of an equality, as a share of its scale.
_CONTRADICTED = 1e-6


class TableFiller:
    """Fill rows (n, D) of a table X as an imputer asks."""

    # There is no model.
    poset = mask = None
    alpha = deviance = np.nan

    def __init__(self, imputer, rows, X):
        d = rows.shape[1]
        names = feature_names(imputer)
        names = tuple(f"x{j}" for j in range(d)) if names is None else tuple(names)
        empty = np.flatnonzero(np.isnan(rows).all(axis=0))
        if len(empty):
            raise ValueError(
                f"Column {names[empty[0]]!r} is missing in all rows: leave it out."
            )
        low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
        ranges = high - low
        place = partial(column_of, names=list(names), row_shape=imputer.input_shape_)
        table = _with_types(rows, X)
        if isinstance(imputer.equalities, str):
            equalities = find_in_table(table)
        else:
            equalities = _read(imputer.equalities, names, place)
        self.equalities = replace(equalities, feature_names=names, ranges=ranges)
        constraints = replace(_read(imputer.constraints, names, place), ranges=ranges)
        is_limit = np.count_nonzero(constraints.coefficients, axis=1) == 1
        # Limits come last: their columns need nothing else.
        self._system = self.equalities.stack(constraints.select(~is_limit))
        self._limits = constraints.select(is_limit)
        precision = np.broadcast_to(table.precision, d)
        columns = low, high, low, ranges, np.zeros(d), precision
        self._inside = FeasibleSet(
            names, *columns, self.equalities, constraints=self._limits
        )
        # Beyond what was observed, but to no negative values where there are none.
        lowest = np.where(low >= 0, 0.0, -np.inf)
        self._beyond = replace(self._inside, low=lowest, high=np.full(d, np.inf))
        # What types round: nothing that double precision would not.
        single = np.where(precision > np.finfo(float).eps, 2 * precision, 0.0)
        rounding = single * np.maximum(np.abs(low), np.abs(high))
        self._rounding = np.abs(self._system.coefficients) @ rounding
        if imputer.imputer is None:
            self._imputer = NearRows(rows, imputer.n_neighbors or _NEIGHBORS)
        else:
            self._imputer = clone(imputer.imputer).set_output(transform="default")
            self._imputer.fit(rows)

    def fill(self, rows, missing, numbers, caller):
        """Rows, which messages name by their numbers, filled; and one step."""
        lost = np.flatnonzero(missing.all(axis=1))
        if len(lost):
            warn_user(
                f"Row {numbers[lost[0]]} has no observed value ({len(lost)} such rows)."
            )
        guess = np.where(missing, self._imputer.transform(rows), rows)
        filled, unmet = self._project(guess, missing)
        unmet = np.hstack([unmet, np.zeros((len(rows), len(self._limits)), bool)])
        unmet |= self._contradicted(rows)
        off = np.flatnonzero(unmet.any(axis=1))
        if len(off):
            names = [*self._system.descriptions, *self._limits.descriptions]
            missed = [names[k] for k in np.flatnonzero(unmet[off[0]])[-3:]]
            warn_missed(
                f"{caller}: {len(off)} row{'s' if len(off) > 1 else ''} cannot have "
                f"{' and '.join(missed)!r} with what is observed, which stays; the "
                f"first is row {numbers[off[0]]}."
            )
        return filled, 1

    def is_off(self, rows):
        """Rows (n,) whose observed cells alone contradict what is asked."""
        return self._contradicted(rows).any(axis=1)

    def _contradicted(self, rows):
        """Constraints (n, k) that rows have all cells of, and do not meet."""
        both = self._system.stack(self._limits)
        room = _CONTRADICTED * both.scale
        room[: len(self._rounding)] += self._rounding
        return np.abs(np.nan_to_num(both.residual(rows))) > room

    def _project(self, guess, missing):
        """Missing cells moved least to what can be met, and what (n, k) cannot."""
        # Constraints without a missing cell are no matter of the others.
        is_open = missing @ (self._system.coefficients != 0).T
        system = replace(
            self._system,
            lower=np.where(is_open, self._system.lower - self._rounding, -np.inf),
            upper=np.where(is_open, self._system.upper + self._rounding, np.inf),
        )
        filled, met = self._nearest(guess, missing, system)
        # Constraints that a contradiction has nothing to do with are met all the same.
        for i in np.flatnonzero(~met.all(axis=1)):
            low, high, _ = split_limits(self._beyond, 1)
            clipped = np.clip(guess[i], low[0], high[0])
            filled[i] = np.where(missing[i], clipped, guess[i])
            for members in _components(system.coefficients, missing[i], is_open[i]):
                part = system.take_rows([i]).select(members)
                row, ok = self._nearest(guess[[i]], missing[[i]], part)
                used = part.coefficients.any(axis=0) & missing[i] & ok.all()
                filled[i, used], met[i, members] = row[0, used], ok.all()
        return filled, ~met

    def _nearest(self, guess, missing, system):
        """Rows nearest to a guess: within what was observed if possible, else beyond.

        Returns which constraints (n, k) they meet too.
        """
        filled, met = guess.copy(), np.zeros((len(guess), len(system)), bool)
        todo = np.arange(len(guess))
        for limits in (self._inside, self._beyond):
            start, free = guess[todo], missing[todo]
            low, high, _ = split_limits(limits, len(todo))
            low, high = (np.where(free, end, start) for end in (low, high))
            weights = weights_of(start, limits, ~free, 1.0)
            part = system.take_rows(todo)
            crossed = (low > high).any(axis=1, keepdims=True)
            low = np.minimum(low, high)
            filled[todo], ok = nearest_rows(start, weights, part, low, high)
            # Limits that are asked for may lie beyond those that were observed.
            met[todo] = ok & ~(crossed & (limits is self._inside))
            todo = todo[~met[todo].all(axis=1)]
            if not len(todo):
                break
        return filled, met


def _components(coefficients, missing, is_open):
    """Numbers of the constraints that missing cells of a row connect, part by part."""
    used = coo_array((coefficients != 0) & missing & is_open[:, None])
    k, size = len(is_open), sum(used.shape)
    edges = np.ones(used.nnz), (used.row, k + used.col)
    _, label = connected_components(coo_array(edges, (size, size)), directed=False)
    parts = np.unique(label[:k][is_open])
    return [np.flatnonzero(is_open & (label[:k] == part)) for part in parts]


def _read(constraints, names, place):
    """Constraints of an imputer, the same for all rows."""
    system = LinearConstraints.empty(names)
    for label, a, lower, upper in read_coefficients(constraints, len(names), place):
        if np.ndim(lower) > 1 or np.ndim(upper) > 1:
            raise ValueError("Constraints of an imputer are the same for all rows.")
        check_ends(label, lower, upper)
        system = system.stack(LinearConstraints(a, lower, upper, names))
    return system


def _with_types(rows, X):
    """Rows as a table that knows the types that they came in."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        X = X.reshape(rows.shape)
    elif not is_frame(X):
        X = rows
    return read_table(TableReader(), X, missing=True)
