"""What new rows keep and what is asked of them, met after decoding."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import LinearConstraint

from ._blocks import map_blocks
from ._threads import one_blas_thread
from ._validation import warn_missed
from .conditioning import Condition
from .constraints import (
    ColumnConstraint,
    collect_constraints,
    meet_constraints,
    round_integers,
    snap_one_hot,
    unrounded,
)
from .invariants import Invariants, clearly_full_rank, find_invariants

# What a constraint may be.
CONSTRAINTS = [LinearConstraint, ColumnConstraint, list, tuple]
# Rows with more features than this are not searched for equations unless asked to.
_SEARCHED_UP_TO = 200
# Sizes of features whose products do not overflow.
_LARGEST = 1e100
# Least share of the offset that a cell of a measure keeps.
_LEAST_SHARE = 1e-3
# Distance from the end of a range, as a share of it, that is rounding.
_AT_END = 1e-12
# Distance from a constraint that counts as met, as a share of a range.
_TOL, _TOL_SINGLE = 1e-9, 1e-6


def resolve_invariants(given, rows, feature_names, integer_features=()):
    """The equations that a parameter ``invariants`` stands for, of rows (n, D).

    Those that rounding new rows to whole numbers does not keep are told in the note.
    """
    found = _resolve(given, rows, feature_names)
    broken = unrounded(found, integer_features)
    if not broken or isinstance(given, Invariants):
        return found
    words = ", ".join(found.descriptions[k] for k in broken)
    told = f"Kept before whole numbers are rounded, and not exactly after it: {words}."
    return replace(found, note=f"{found.note} {told}".strip())


def _resolve(given, rows, feature_names):
    d = rows.shape[1]
    if isinstance(given, Invariants):
        return given
    why = ""
    if isinstance(given, str):
        given = None
        with one_blas_thread():
            if d > _SEARCHED_UP_TO or not clearly_full_rank(rows):
                why = _why_not_searched(rows)
                if not why:
                    tol = _TOL_SINGLE if rows.dtype == np.float32 else _TOL
                    return find_invariants(rows, feature_names, tol=tol)
    names = feature_names or tuple(f"x{k}" for k in range(d))
    if given is None:
        none = np.empty((0, d)), np.empty(0)
        return Invariants(*none, names, np.zeros(d), note=why)
    system = collect_constraints(given, d, feature_names=feature_names)
    if not np.array_equal(system.lower, system.upper) or len(system.lower) > 1:
        raise ValueError(
            "invariants are equations, the same for all rows; give intervals as "
            "constraints of sample."
        )
    found = Invariants(system.coefficients, system.lower[0], names, np.ptp(rows, 0))
    worst = found.violation(rows).max(initial=0)
    if worst > 1e-6:
        k = int(np.argmax(found.violation(rows)))
        raise ValueError(
            f"The training rows do not keep {found.descriptions[k]!r}: they miss it by "
            f"up to {worst:.1e} of the range. Give equations that all rows satisfy."
        )
    return found


def _why_not_searched(rows):
    """Why equations are not looked for by themselves; empty if they are."""
    if rows.shape[1] > _SEARCHED_UP_TO:
        return (
            f"More than {_SEARCHED_UP_TO} features: equations were not looked for. "
            "Pass invariants=find_invariants(X) to keep them."
        )
    low, high = (end.astype(np.float64) for end in (rows.min(axis=0), rows.max(axis=0)))
    size = np.maximum(high, -low)
    if np.any((size > 0) & ((size < 1 / _LARGEST) | (size > _LARGEST))):
        return (
            "Features in extreme units: equations were not looked for. Rescale X to "
            "keep them."
        )
    return ""


@dataclass(frozen=True)
class Keeper:
    """Brings new rows to the equations that all training rows satisfy, and to others.

    Parameters
    ----------
    invariants : Invariants
    low, high : ndarray of shape (D,)
        Limits of the features.
    least, ranges : ndarray of shape (D,)
        Smallest values of the training rows, and the ranges of these.
    scaled : bool
        Whether ranges are the units of the measure in which rows are moved least.
    offset : float
        Added in that measure.
    integer_features : ndarray of int
    tol : float
    """

    invariants: Invariants
    low: np.ndarray
    high: np.ndarray
    least: np.ndarray
    ranges: np.ndarray
    scaled: bool
    offset: float
    integer_features: np.ndarray
    tol: float

    @classmethod
    def of(cls, invariants, ends, limits, scaled, offset, integer_features):
        """A keeper for rows like the training rows, whose features have these ends."""
        low, high = ends
        least = low.astype(np.float64)
        with np.errstate(over="ignore"):
            ranges = high - least
        tol = _TOL_SINGLE if low.dtype == np.float32 else _TOL
        return cls(
            invariants, *limits, least, ranges, scaled, offset, integer_features, tol
        )

    def system(self, constraints, n_rows):
        """Invariants and constraints of ``n_rows`` new rows, and which were asked for.

        Invariants of one feature alone are left to its range, which they make empty.
        Those asked for come last: what clashes with what came before is named.
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
            [kept, *given], len(self.low), feature_names=names, n_rows=n_rows
        )
        return whole, slice(len(kept), len(whole))

    def condition(self, system, asked, rows):
        """What drawing should heed; ``rows`` are those to train."""
        values = rows @ system.coefficients[asked].T
        return Condition(values, system.lower[:, asked], system.upper[:, asked])

    def keep(self, rows, lower, upper, *, system, asked, step, n_jobs, whom):
        """Rows (n, D) on the system, whole where they must be."""
        if len(system):
            meet = partial(_meet, keeper=self, system=system)
            rows, violation = map_blocks(
                meet, rows, lower, upper, step=step, n_jobs=n_jobs
            )
            self._say(rows, lower, upper, violation, system, asked, whom)
        if self.invariants.one_hot_groups:
            kept = _part(system, slice(asked.start), lower, upper)
            missed = kept.violation(rows, self.ranges).max(axis=1)
            if missed.max() > self.tol:
                warn_missed(whom, missed, self.tol)
        if len(self.integer_features):
            rows, _ = round_integers(rows, self.invariants, self.integer_features)
        if self.invariants.one_hot_groups or len(self.integer_features):
            self._check_whole(rows, lower, upper, system, asked)
        return rows

    def _say(self, rows, lower, upper, violation, system, asked, whom):
        """Constraints that are not met raise, invariants warn."""
        missed = np.flatnonzero(violation > self.tol)
        if not len(missed):
            return
        if asked.start < asked.stop:
            some = missed[:10]
            again = replace(system, lower=lower[some], upper=upper[some])
            again = self.meet(rows[some], again)
            count = f"{len(missed)} of {len(rows)} new rows"
            for row, reason in again.reasons.items():
                raise ValueError(
                    f"{count} cannot meet the constraints; the first is new row "
                    f"{some[row]}: {reason}"
                )
        warn_missed(whom, violation, self.tol)

    def meet(self, rows, system):
        """Rows on a system; see :func:`~sklearn_pnl.constraints.meet_constraints`."""
        scale, shift = 1.0, 0.0
        if self.scaled:
            scale = 1 / np.where(self.ranges > 0, self.ranges, 1)
            shift = -self.least * scale
        # Measures stay positive, if only just.
        empty = ((_LEAST_SHARE - 1) * self.offset - shift) / scale
        # Zeros and indicators that both parents share stay: no more than any mixture of
        # the two do the equations need to move them.
        share = np.abs(rows - self.least) / np.where(self.ranges > 0, self.ranges, 1)
        still = (share <= _AT_END) | (np.abs(share - 1) <= _AT_END)
        return meet_constraints(
            rows,
            system,
            np.maximum(self.low, empty),
            self.high,
            scale=scale,
            shift=shift,
            offset=self.offset,
            still=still,
            tol=self.tol,
        )

    def snapped(self, rows, system):
        """Rows with indicators of 0 and 1, back on what this leads away from.

        The larger of two groups first, as it decides the other: cities their countries.
        What is 0 or 1 stays so where it can.
        """
        groups = sorted(self.invariants.one_hot_groups, key=len, reverse=True)
        for group in groups:
            rows = snap_one_hot(rows, [group])
            violation = system.violation(rows, self.ranges).max(axis=1)
            off = np.flatnonzero(violation > self.tol)
            if len(off):
                ends = {"lower": system.lower[off], "upper": system.upper[off]}
                rows[off] = self.meet(rows[off], replace(system, **ends)).rows
        return snap_one_hot(rows, groups)

    def _check_whole(self, rows, lower, upper, system, asked):
        """Refuse constraints that whole numbers cannot meet."""
        if asked.start == asked.stop:
            return
        part = _part(system, asked, lower, upper)
        violation = part.violation(rows, self.ranges)
        if violation.max(initial=0) > 1e-6:
            row, k = np.unravel_index(np.argmax(violation), violation.shape)
            raise ValueError(
                f"New row {row} cannot meet the constraint on {part.names[k]} in "
                "whole numbers, which its columns hold. Ask for an interval that "
                "contains some, or pass the columns as floats."
            )


def _meet(rows, lower, upper, *, keeper, system):
    """One block of rows: those on the system, and their violations."""
    system = replace(system, lower=lower, upper=upper)
    met = keeper.meet(rows, system)
    rows = met.rows
    if keeper.invariants.one_hot_groups:
        rows = keeper.snapped(rows, system)
    return rows, met.violation


def _part(system, some, lower, upper):
    """Some of the constraints of a system."""
    return replace(
        system,
        coefficients=system.coefficients[some],
        lower=lower[:, some],
        upper=upper[:, some],
    )
