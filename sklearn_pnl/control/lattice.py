"""Columns whose values are whole multiples of a step, and equations kept on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from .._runtime.workspace import slices

# What is left of a whole number by rounding; and what sums are known to, as a share.
_ALMOST, _DIGITS = 1e-6, 8 * np.finfo(float).eps
# Ends of ranges that are this near a multiple, in steps, are one.
_AT_END = 1e-9
# Branches of a programme after which the best so far is taken.
_MOST_NODES = 1000
# Status of SciPy for what is neither solved nor known to have no solution.
_SOLVE_ERROR = 4
# Unit of a row of a programme, which may miss 1e-6 of it, in its largest term a step.
_ROW_UNIT = 1e-3
# Smallest size, in units of a column, whose rounding is a step of its own; steps that
# a value in single precision may be away from where it would be in double.
_LEAST_SIZE, _NEAR = 1e-6, 4.5
# Rows that are looked at first for columns of whole numbers.
_FIRST = 32
# Cells that are looked at together: as many as stay in cache.
_AT_ONCE = 2**15


@dataclass(frozen=True)
class Lattice:
    """Values ``origin + k * step`` with whole ``k``; a step of 0 is any value.

    Attributes
    ----------
    steps, origins : ndarray of shape (D,)
    known : dict of int to ndarray
        Values of the training rows, or asked for, ascending, in columns where origins
        and steps round to others.
    """

    steps: np.ndarray
    origins: np.ndarray
    known: dict = field(default_factory=dict)

    @classmethod
    def through(cls, steps, origins, values):
        """That with some values as they are, a dict by column."""
        bare, known = cls(steps, origins), {}
        for j, own in values.items():
            if np.any(bare.about([j]).nearest(own[:, None].copy())[:, 0] != own):
                known[j] = own
        return replace(bare, known=known)

    def also(self, values):
        """The same with more values as they are, a dict by column."""
        more = {j: np.union1d(self.known.get(j, own), own) for j, own in values.items()}
        return replace(self, known=self.known | more)

    @property
    def on_it(self):
        """Columns (D,) that have a step."""
        return self.steps > 0

    def about(self, columns):
        """The same of some columns."""
        known = {}
        if self.known:
            places = np.arange(len(self.steps))[columns].tolist()
            known = {i: self.known[j] for i, j in enumerate(places) if j in self.known}
        return Lattice(self.steps[columns], self.origins[columns], known)

    def with_steps(self, columns, steps):
        """The same, with other steps in some columns (D,)."""
        return replace(self, steps=np.where(columns, steps, self.steps))

    def also_near(self, row, some, precision, units):
        """Also values of a precision, in some columns near to those of a row.

        And how far they go (D,).
        """
        size = np.maximum(np.abs(row), _LEAST_SIZE * units)
        steps = 2 * precision * 2.0 ** np.floor(np.log2(size))
        origins = np.where(some, np.rint(row / steps) * steps, self.origins)
        steps = np.where(some, steps, self.steps)
        return Lattice(steps, origins), np.where(some, _NEAR * steps, np.inf)

    def inside(self, low, high, room=0.0):
        """Ranges whose ends on the lattice are values of it, but for some ``room``."""
        some, unit = self.on_it, np.where(self.on_it, self.steps, 1.0)
        if not some.any():
            return low, high
        # Where types round more than steps are apart, ends are as they came.
        room = np.where(room < unit / 2, room, 0.0)
        first = np.ceil((low - room - self.origins) / unit - _AT_END)
        last = np.floor((high + room - self.origins) / unit + _AT_END)
        ends = (
            np.where(some & np.isfinite(low), self.origins + _times(first, unit), low),
            np.where(some & np.isfinite(high), self.origins + _times(last, unit), high),
        )
        return tuple(self._exact(end) for end in ends)

    def _exact(self, rows):
        """Values as they are known, in place."""
        for j, own in self.known.items():
            near = nearest_of(own, rows[..., j])
            same = np.abs(rows[..., j] - near) <= _ALMOST * self.steps[j]
            rows[..., j] = np.where(same, near, rows[..., j])
        return rows

    def nearest(self, rows):
        """The nearest value of each column, in place."""
        some = np.flatnonzero(self.on_it)
        if not len(some):
            return rows
        origins, steps = self.origins[some], self.steps[some]
        if np.all(steps == 1) and not origins.any():
            if len(some) == rows.shape[1]:
                return np.rint(rows, out=rows)
            rows[:, some] = np.rint(rows[:, some])
            return rows
        counts = np.rint((rows[:, some] - origins) / steps)
        rows[:, some] = origins + _times(counts, steps)
        return self._exact(rows)

    def totals(self, system, some=True):
        """The equations and sums that can be kept by :meth:`rounded`, top down."""
        some = np.flatnonzero(np.broadcast_to(some, len(system)))
        found = [t for k in some.tolist() if (t := self._total(system, k))]
        # Copies come last: either of the two can be the part.
        found.sort(key=lambda t: len(t.parts) == 1)
        owner, kept = set(), []
        for total in found:
            if len(total.parts) == 1 and total.parts[0] in owner:
                # The other way round.
                ends = -total.last, -total.first
                total = _Total(total.parts[0], (total.column,), *ends)
            if not owner & set(total.parts):
                owner |= set(total.parts)
                kept.append(total)
        return _top_down(kept)

    def _total(self, system, k):
        """One of the equations as a sum of columns of one step, if it is that."""
        a = system.coefficients[k]
        features = np.flatnonzero(a)
        sizes = np.abs(a[features]) * self.steps[features]
        if not len(features) or np.ptp(sizes) > 1e-9 * sizes[0] or not sizes[0]:
            return None
        zero = a[features] @ self.origins[features]
        ends = np.array([system.lower[:, k], system.upper[:, k]])
        ends = (ends - zero) / sizes[0]
        is_equation = np.array_equal(*ends)
        if is_equation and np.any(np.abs(ends[0] - np.rint(ends[0])) > _ALMOST):
            return None
        minus, plus = (features[np.sign(a[features]) == s] for s in (-1, 1))
        single, parts = sorted((minus, plus), key=len)
        sign = np.sign(a[parts[0]])
        if len(single) > is_equation or len(features) < 2:
            return None
        first, last = ends if sign > 0 else -ends[::-1]
        first, last = np.ceil(first - _ALMOST), np.floor(last + _ALMOST)
        column = int(single[0]) if len(single) else None
        return _Total(column, tuple(map(int, parts)), first, last)

    def computed(self, system, totals, some=True):
        """Pairs of an equation and the one column of it that follows from the others.

        A column that is in no other equation, of which all others are multiples.
        """
        used = system.coefficients != 0
        alone = used.sum(axis=0) == 1
        parts = {j for t in totals for j in (*t.parts, t.column)}
        found = []
        for k in np.flatnonzero((system.lower == system.upper).all(axis=0) & some):
            features = np.flatnonzero(used[k])
            sizes = np.abs(system.coefficients[k, features]) * self.steps[features]
            free = alone[features] & (sizes > 0) & (sizes == sizes.min(initial=np.inf))
            free &= [j not in parts for j in features]
            if sizes.all() and free.any():
                unit = sizes[free.argmax()]
                if np.all(np.abs(sizes / unit - np.rint(sizes / unit)) < _AT_END):
                    found.append((k, int(features[free.argmax()])))
        return found

    def rounded(self, rows, totals):
        """Rows (n, D) on the lattice that keep sums.

        A total is rounded, and its parts up or down so that they sum to it: those with
        the largest fractions go up. Totals of totals go from the top down, so that no
        value is more than a step away from what it was.
        """
        if not totals:
            return self.nearest(rows)
        unit = np.where(self.on_it, self.steps, 1.0)
        counts = (rows - self.origins) / unit
        rounded = np.rint(counts)
        for total in totals:
            parts = list(total.parts)
            low = np.floor(counts[:, parts] + _AT_END)
            fractions = counts[:, parts] - low
            if total.column is None:
                wanted = np.rint(counts[:, parts].sum(axis=1))
                wanted = np.clip(wanted, total.first, total.last)
            else:
                wanted = rounded[:, total.column] + total.first
            up = np.clip(wanted - low.sum(axis=1), 0, len(parts))
            rank = np.argsort(np.argsort(-fractions, axis=1, kind="stable"), axis=1)
            rounded[:, parts] = low + (rank < up[:, None])
        rounded *= unit
        rounded += self.origins
        return np.where(self.on_it, rounded, rows)


def _times(counts, steps):
    """So many steps: of decimals the nearest doubles, which are quotients."""
    per = np.maximum(np.rint(1 / steps), 1)
    return np.where(steps == 1 / per, counts / per, counts * steps)


def lattice_of(table, rows):
    """The steps of columns: of their types, or 1 where all values are whole numbers."""
    steps = table.steps.astype(np.float64)
    if table.has_missing:
        rows = np.where(np.isnan(rows), 0, rows)
    first = rows[:_FIRST]
    # From a size on types hold whole numbers alone, which are no mark.
    size = np.where(first == 0, np.inf, np.abs(first)).min(axis=0, initial=np.inf)
    huge = 2 * np.where(np.isfinite(size), size, 0) * table.precision >= 1
    maybe = np.flatnonzero((steps == 0) & ~huge & _are_whole(first))
    if len(maybe):
        part = rows if len(maybe) == rows.shape[1] else rows[:, maybe]
        steps[maybe[_are_whole(part)]] = 1.0
    return Lattice(steps, np.zeros_like(steps))


def _are_whole(rows):
    """Columns of whole numbers."""
    whole = np.ones(rows.shape[1], bool)
    for some in slices(len(rows), 1 + _AT_ONCE // (1 + rows.shape[1])):
        whole &= np.all(np.rint(rows[some]) == rows[some], axis=0)
    return whole


def nearest_of(grid, values):
    """The nearest values (n,) of a grid, ascending."""
    return grid[np.searchsorted((grid[1:] + grid[:-1]) / 2, values)]


@dataclass(frozen=True, eq=False)
class _Total:
    """``sum(parts) - column`` between two whole numbers, counted in steps."""

    column: int | None
    parts: tuple
    first: np.ndarray
    last: np.ndarray


def _top_down(totals):
    """Each after that which its own column is a part of; circles are left out."""
    ordered, owner = [], {j: t for t in totals for j in t.parts}
    while ready := [t for t in totals if owner.get(t.column) in (None, *ordered)]:
        ordered += ready
        totals = [t for t in totals if t not in ready]
    return ordered


def programme(row, system, floor, ceiling, lattice, units, moved=None):
    """The row (D,) on a system and a lattice that is nearest; None if there is none.

    A mixed-integer linear programme: least sum of distances, in units of each column.
    How far columns without steps are ``moved``, about, are its units.
    """
    d, on_it = len(row), lattice.on_it
    step = np.where(on_it, lattice.steps, units if moved is None else moved)
    # Few steps from there: of many millions a programme loses the last.
    zero = lattice.nearest(row[None].copy())[0]
    low, high = lattice.inside(floor, ceiling)
    if np.any(low > high):
        return None
    # Variables: multiples of the steps, and how far these lead from the row.
    a = system.coefficients * step
    size = np.abs(a).max(axis=1, initial=0)
    size = np.where(size == 0, 1.0, size * _ROW_UNIT)
    shift = system.coefficients @ zero
    # What is known to its last digit may be no whole number of steps by that.
    room = _DIGITS * (np.abs(system.coefficients) @ np.abs(zero))
    ends = (system.lower[0] - room, system.upper[0] + room)
    ends = ((end - shift) / size for end in ends)
    unit, away, at = np.diag(step / units), -np.eye(d), (row - zero) / units
    apart = np.block([[unit, away], [-unit, away]])
    asked = [
        LinearConstraint(np.hstack([a / size[:, None], np.zeros_like(a)]), *ends),
        LinearConstraint(apart, -np.inf, np.append(at, -at)),
    ]
    none, far = np.zeros(d), np.full(d, np.inf)
    least, most = (low - zero) / step, (high - zero) / step
    bounds = Bounds(np.append(least, none), np.append(most, far))
    given = {"integrality": np.append(on_it, none), "bounds": bounds}
    solve = partial(milp, np.append(none, np.ones(d)), constraints=asked, **given)
    # No limit of time: rows must not depend on how fast a machine is.
    found = solve(options={"node_limit": _MOST_NODES})
    if found.x is None and found.status == _SOLVE_ERROR:
        # A failure of the solver, which is mostly one of its presolve.
        found = solve(options={"node_limit": _MOST_NODES, "presolve": False})
    if found.x is None:
        return None
    multiples = np.where(on_it, np.rint(found.x[:d]), found.x[:d])
    return np.clip(zero + multiples * step, low, high)
