"""Missing values of a table: means of near rows, moved least so that equations hold."""

from dataclasses import replace
from functools import partial

import numpy as np

from .._runtime.validation import feature_names, warn_missed, warn_user
from ..control import collect_constraints
from ..control.filling import fill_to
from ..control.promises import GIVEN_TOL, resolve_invariants
from ..control.search import Reader
from ..tables import is_frame, read_table
from ..tables.columns import column_of
from .near import NearRows

# Near rows, unless their number is given.
_NEIGHBORS = 5


class TableFiller:
    """Rows (n, D) of a table X, filled as an imputer asks."""

    # Of no model.
    poset = mask = None
    alpha = deviance = np.nan

    def __init__(self, imputer, rows, X):
        table = _with_types(rows, X)
        names = feature_names(imputer)
        if names is None:
            names = [f"x{j}" for j in range(rows.shape[1])]
        empty = np.flatnonzero(np.isnan(rows).all(axis=0))
        if len(empty):
            raise ValueError(
                f"Column {names[empty[0]]!r} is missing in all rows: nothing is known "
                "of it. Leave it out."
            )
        self._near = NearRows(rows, imputer.n_neighbors or _NEIGHBORS)
        names = tuple(names)
        places = partial(column_of, names=list(names), row_shape=imputer.input_shape_)
        known = names, self._near.ranges, places
        if isinstance(imputer.invariants, str):
            held = _equations_of(table, names)
        else:
            held = collect_constraints(imputer.invariants, *known)
        self.system = held.and_also(collect_constraints(imputer.constraints, *known))
        sizes = np.abs(self._near.ends).max(axis=0)[table.columns]
        terms = np.abs(self.system.coefficients)[:, table.columns]
        # What types of the columns round, and values.
        self._room = terms @ (2 * table.precision * sizes) + self.system.rounding
        if len(self.system.lower) > 1:
            raise ValueError(
                "Constraints of an imputer are the same for all rows; give numbers, "
                "not arrays of one a row."
            )

    def fill(self, rows, missing, numbers, whom):
        """Rows that are known by some numbers, filled; and a step."""
        lost = np.flatnonzero(missing.all(axis=1))
        if len(lost):
            warn_user(
                f"Row {numbers[lost[0]]} has no observed value ({len(lost)} such rows):"
                " means of the columns are all that is known of it."
            )
        guess = np.where(missing, self._near.means(rows), rows)
        found, missed = fill_to(
            self.system, guess, missing, self._near.ends, self._room
        )
        off = self._contradicted(rows)
        missed |= off
        if missed.any():
            rows_off = np.flatnonzero(missed.any(axis=1))
            n, first = len(rows_off), int(rows_off[0])
            about = self.system.coefficients[:, missing[first]].any(axis=1)
            about = off[first] if off[first].any() else about
            told = " and ".join(self.system.part(about).descriptions[-3:])
            warn_missed(
                f"{whom}: {n} row{'s' * (n > 1)} cannot have {told!r} with what is "
                f"observed, which stays; the first is row {numbers[first]}."
            )
        return found, 1

    def is_off(self, rows):
        """Rows (n,) whose observed cells alone contradict what is asked."""
        return self._contradicted(rows).any(axis=1)

    def _contradicted(self, rows):
        room = self._room + GIVEN_TOL * self.system.scale
        off = np.abs(self.system.missing(np.nan_to_num(rows))) > room
        off[np.isnan(rows) @ (self.system.coefficients != 0).T] = False
        return off


def _with_types(rows, X):
    """Rows as a table that knows in which types they came."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        X = X.reshape(rows.shape)
    elif not is_frame(X):
        X = rows
    return read_table(Reader(), X, missing=True)


def _equations_of(table, names):
    """Equations of the complete rows, about several columns each."""
    found = resolve_invariants("auto", table)
    # A column that is constant in complete rows need not be in others.
    several = np.count_nonzero(found.coefficients, axis=1) > 1
    found = replace(found.part(several), feature_names=names)
    return found.noted("Others can be given as invariants.") if found.note else found
