"""Missing cells of a table: those of any imputer, moved least so that sums hold."""

from dataclasses import replace

import numpy as np
from sklearn.base import clone

from .._runtime.validation import errors_naming, warn_missed
from ..constraints.linear import ALMOST, read_constraints
from ..constraints.projection import nearest_rows, weights_of
from ..constraints.structure import Structure, resolve_equalities
from ..frames import TableReader, read_table
from .tensors import NearRows


class TableFiller:
    """Fill rows (n, D) of a table X as an imputer asks."""

    # There is no model.
    poset = mask = None

    def __init__(self, imputer, rows, X):
        # Types say how far sums are rounded.
        table = read_table(TableReader(None), X, missing=True)
        empty = np.flatnonzero(np.isnan(rows).all(axis=0))
        if len(empty):
            name = table.feature_names[empty[0]]
            raise ValueError(f"Column {name!r} is missing in all rows: leave it out.")
        low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
        self._set = Structure.plain(
            table.without_rows(), table.numbers(), steps=np.zeros(len(low)),
            equalities=resolve_equalities(imputer.equalities, table),
            constraints=read_constraints(imputer.constraints, table),
        )  # fmt: skip
        # A table counts whole numbers beyond double precision from a start.
        system = self._set.system()
        start = system.coefficients @ table.starts
        self._system = system = replace(
            system, lower=system.lower + start, upper=system.upper + start
        )
        self.equalities = system.select(slice(len(self._set.equalities)))
        if np.ndim(system.lower) > 1:
            raise ValueError("Constraints of an imputer are the same for all rows.")
        # Beyond what was observed, but to no negative values where there are none.
        beyond = np.where(low >= 0, 0.0, -np.inf), np.full(len(low), np.inf)
        self._boxes = [(low, high)] + [beyond] * (1 + len(self._system))
        # What types round: nothing that double precision would not.
        single = self._set.precision * (self._set.precision > np.finfo(float).eps)
        rounding = 2 * single * np.maximum(np.abs(low), np.abs(high))
        self._rounding = np.abs(self._system.coefficients) @ rounding
        if imputer.imputer is None:
            self._imputer = NearRows(rows, imputer.n_neighbors or 5)
        else:
            self._imputer = clone(imputer.imputer).set_output(transform="default")
            self._imputer.fit(rows)

    def fill(self, rows, missing, numbers):
        """Rows, which messages name by their numbers, filled; and one step."""
        with errors_naming("imputer"):
            guess = self._imputer.transform(rows).reshape(rows.shape)
        filled = self._project(np.where(missing, guess, rows), missing)
        room = ALMOST * self._system.scale + self._rounding
        unmet = self._system.violations(filled, room)
        off = np.flatnonzero(unmet.any(axis=1))
        if len(off):
            names = self._system.descriptions
            missed = [names[k] for k in np.flatnonzero(unmet[off[0]])[-3:]]
            warn_missed(
                f"{len(off)} row{'s' if len(off) > 1 else ''} cannot have "
                f"{' and '.join(missed)!r} with what is observed, which stays; the "
                f"first is row {numbers[off[0]]}."
            )
        return filled, 1

    def _project(self, guess, missing):
        """Missing cells moved least to what can be met.

        Within what was observed if possible, else beyond. Where that is not enough, the
        constraint that is missed most gives way, one at a time.
        """
        system = self._system
        # Constraints without a missing cell are no matter of the others.
        asked = missing @ (system.coefficients != 0).T
        filled, todo = guess.copy(), np.arange(len(guess))
        for box in self._boxes:
            start, free = guess[todo], missing[todo]
            part = replace(
                system,
                lower=np.where(asked[todo], system.lower - self._rounding, -np.inf),
                upper=np.where(asked[todo], system.upper + self._rounding, np.inf),
            )
            weights = weights_of(start, self._set, ~free, 1.0)
            ends = (np.where(free, end, start) for end in box)
            filled[todo], satisfied = nearest_rows(start, weights, part, *ends)
            if satisfied.all():
                break
            off = ~satisfied.all(axis=1)
            if box is not self._boxes[0]:
                share = np.abs(part.residual(filled[todo])) / part.scale
                worst = np.argmax(np.where(satisfied, -1, share), axis=1)
                asked[todo[off], worst[off]] = False
            todo = todo[off]
        return filled
