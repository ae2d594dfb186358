"""What new rows keep and what is asked of them, met after decoding."""

import warnings
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import LinearConstraint
from sklearn.exceptions import ConvergenceWarning

from ._blocks import map_blocks
from .conditioning import Condition
from .constraints import (
    ColumnConstraint,
    collect_constraints,
    meet_constraints,
    round_integers,
    snap_one_hot,
)
from .invariants import Invariants, find_invariants

# What a constraint may be.
CONSTRAINTS = [LinearConstraint, ColumnConstraint, list, tuple]
# Rows with more features than this are not searched for equations unless asked to.
_SEARCHED_UP_TO = 200
# Distance from a constraint that counts as met, as a share of a range.
_TOL, _TOL_SINGLE = 1e-9, 1e-6


def resolve_invariants(given, rows, feature_names):
    """The equations that a parameter ``invariants`` stands for, of rows (n, D)."""
    d = rows.shape[1]
    if isinstance(given, Invariants):
        return given
    if given is None or (isinstance(given, str) and d > _SEARCHED_UP_TO):
        names = feature_names or tuple(f"x{k}" for k in range(d))
        note = ""
        if given is not None:
            note = (
                f"More than {_SEARCHED_UP_TO} features: equations were not looked for. "
                "Pass invariants=find_invariants(X) to keep them."
            )
        return Invariants(
            np.empty((0, d)), np.empty(0), names, np.ptp(rows, 0), (), note
        )
    if isinstance(given, str):
        tol = _TOL_SINGLE if rows.dtype == np.float32 else _TOL
        return find_invariants(rows, feature_names, tol=tol)
    system = collect_constraints(given, d, feature_names=feature_names)
    if not np.array_equal(system.lower, system.upper) or len(system.lower) > 1:
        raise ValueError(
            "invariants are equations, the same for all rows; give intervals as "
            "constraints of sample."
        )
    names = feature_names or tuple(f"x{k}" for k in range(d))
    found = Invariants(system.coefficients, system.lower[0], names, np.ptp(rows, 0))
    worst = found.violation(rows).max(initial=0)
    if worst > 1e-6:
        k = int(np.argmax(found.violation(rows)))
        raise ValueError(
            f"The training rows do not keep {found.descriptions[k]!r}: they miss it by "
            f"up to {worst:.1e} of the range. Give equations that all rows satisfy."
        )
    return found


@dataclass(frozen=True)
class Keeper:
    """Brings new rows to the equations that all training rows satisfy, and to others.

    Parameters
    ----------
    invariants : Invariants
    low, high : ndarray of shape (D,)
        Limits of the features.
    scale, shift, offset : float or ndarray of shape (D,)
        The measure in which rows are moved least is ``x * scale + shift + offset``.
    integer_features : ndarray of int
    tol : float
    """

    invariants: Invariants
    low: np.ndarray
    high: np.ndarray
    scale: np.ndarray
    shift: np.ndarray
    offset: float
    integer_features: np.ndarray
    tol: float

    @classmethod
    def of(cls, invariants, rows, limits, embedding, offset, integer_features):
        """A keeper for rows like the training rows (n, D)."""
        low, high = rows.min(axis=0).astype(float), rows.max(axis=0).astype(float)
        length = high - low
        if embedding is None:
            scale, shift = np.ones(len(low)), np.zeros(len(low))
        else:
            # Ranges are the units also where an embedding is not affine.
            scale = 1 / np.where(length > 0, length, 1)
            shift = -low * scale
        tol = _TOL_SINGLE if rows.dtype == np.float32 else _TOL
        # Measures stay positive, if only just.
        empty = (1e-3 * offset - offset - shift) / scale
        low, high = np.maximum(limits[0], empty), limits[1]
        return cls(invariants, low, high, scale, shift, offset, integer_features, tol)

    def system(self, constraints, n_rows):
        """Constraints of ``n_rows`` new rows, those asked for first, and their number.

        Equations about one feature alone are left to its range, which they make empty.
        """
        several = np.count_nonzero(self.invariants.coefficients, axis=1) > 1
        kept = replace(
            self.invariants,
            coefficients=self.invariants.coefficients[several],
            values=self.invariants.values[several],
        )
        given = [] if constraints is None else constraints
        given = list(given) if isinstance(given, list | tuple) else [given]
        names = self.invariants.feature_names
        whole = collect_constraints(
            [*given, kept], len(self.low), feature_names=names, n_rows=n_rows
        )
        return whole, len(whole) - len(kept)

    def condition(self, system, n_asked, rows):
        """What drawing should heed, if anything was asked for; ``rows`` to train."""
        if n_asked == 0:
            return None
        values = rows @ system.coefficients[:n_asked].T
        return Condition(values, system.lower[:, :n_asked], system.upper[:, :n_asked])

    def keep(self, rows, lower, upper, *, system, n_asked, step, n_jobs, whom):
        """Rows (n, D) on the system, whole where they must be."""
        if len(system):
            meet = partial(_meet, keeper=self, system=system)
            rows, violation = map_blocks(
                meet, rows, lower, upper, step=step, n_jobs=n_jobs
            )
            self._say(rows, lower, upper, violation, system, n_asked, whom)
        if self.invariants.one_hot_groups:
            rows = snap_one_hot(rows, self.invariants.one_hot_groups)
        if len(self.integer_features):
            rows, _ = round_integers(rows, self.invariants, self.integer_features)
            self._check_whole(rows, lower, upper, system, n_asked)
        return rows

    def _say(self, rows, lower, upper, violation, system, n_asked, whom):
        """Constraints that are not met raise, invariants warn."""
        missed = np.flatnonzero(violation > self.tol)
        if not len(missed):
            return
        if n_asked:
            some = missed[:10]
            asked = replace(system, lower=lower[some], upper=upper[some])
            again = self.meet(rows[some], asked)
            count = f"{len(missed)} of {len(rows)} new rows"
            for row, reason in again.reasons.items():
                raise ValueError(
                    f"{count} cannot meet the constraints; the first is new row "
                    f"{some[row]}: {reason}"
                )
        warnings.warn(
            f"{whom}: {len(missed)} of {len(rows)} new rows miss an invariant, by up "
            f"to {violation.max():.1e} of the range of its features.",
            ConvergenceWarning,
            stacklevel=5,
        )

    def meet(self, rows, system):
        """Rows on a system; see :func:`~sklearn_pnl.constraints.meet_constraints`."""
        return meet_constraints(
            rows,
            system,
            self.low,
            self.high,
            scale=self.scale,
            shift=self.shift,
            offset=self.offset,
            tol=self.tol,
        )

    def _check_whole(self, rows, lower, upper, system, n_asked):
        """Refuse constraints that whole numbers cannot meet."""
        if n_asked == 0:
            return
        asked = replace(
            system,
            coefficients=system.coefficients[:n_asked],
            lower=lower[:, :n_asked],
            upper=upper[:, :n_asked],
            names=system.names[:n_asked],
        )
        violation = asked.violation(rows, self.invariants.ranges)
        if violation.max(initial=0) > 1e-6:
            row, k = np.unravel_index(np.argmax(violation), violation.shape)
            raise ValueError(
                f"New row {row} cannot meet the constraint on {system.names[k]} in "
                "whole numbers, which its columns hold. Ask for an interval that "
                "contains some, or pass the columns as floats."
            )


def _meet(rows, lower, upper, *, keeper, system):
    """One block of rows: those on the system, and their violations."""
    met = keeper.meet(rows, replace(system, lower=lower, upper=upper))
    return met.rows, met.violation
