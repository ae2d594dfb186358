"""Whole weights that meet totals, or miss as little of them as was found in time.

Truncated weights get their fractions back at random (truncate, replicate, sample:
Lovelace and Ballas 2013). From there a heat bath moves a unit of weight from one row to
another, or to and from none, at temperatures that fall from round to round (Kirkpatrick
et al. 1983). Near the totals it asks whether any single move is what is missing: with
a linear hash of rows that is one look-up a row, though there are as many moves as pairs
of rows.
"""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array, csr_array, hstack, identity, issparse

from ..geometry.reach import span
from ..geometry.rounding import nearest_whole

# Rows times totals: the most that is searched, and that linear programmes are for.
_LARGEST, _LARGEST_PROGRAMME, _TINY = 2**27, 2**18, 2**12
# Units from where they start that a programme may move weights by, one after another.
_ROOMS = 0, 2, 16, np.inf
# Temperatures of a round, in units of a total's square, and moves of the first one.
_HOT, _COLD, _FIRST_ROUND = 0.9, 0.3, 2**14
# Rows that a unit may go to at one step.
_CHOICES = 512
# A unit comes from none, or goes there, once in so many steps.
_FROM_NONE = 10
# States with no larger squares are looked at for the one move that is missing.
_NEAR = 4.5
# A column of numbers counts by its mean size if that is larger than this.
_LARGE = 8.0
_WHOLE, _ROUNDS = 1e-9, 1e-6
# Entries of totals up to which the nearest rounding is asked for, and its time.
_LARGEST_ROUNDING, _SHARE_OF_NEAREST = 2**20, 60
# Totals that are told to be missed.
_SHOWN = 30


def whole_weights(system, weights, floor, ceiling, time_limit):
    """Whole weights near to given ones, and why they miss some totals.

    Parameters
    ----------
    system : TotalsSystem
    weights : ndarray of shape (n,)
        On the totals.
    floor, ceiling : ndarray of shape (n,)
        Ranges of the weights, whole or infinite.
    time_limit : float
        Seconds.

    Returns
    -------
    weights : ndarray of shape (n,)
    reasons : tuple of str
    """
    for row in np.flatnonzero(floor > ceiling):
        raise ValueError(f"bounds leave no whole weight for row {row}.")
    entries = system.coefficients.shape[0] * len(weights)
    if entries > _LARGEST:
        raise ValueError(
            f"Whole weights are for up to {_LARGEST} rows times totals; there are "
            f"{entries}. Calibrate domains apart, or parts of the rows."
        )
    search = _Search(system, weights, floor, ceiling)
    nearest = search.nearest(time_limit / _SHARE_OF_NEAREST)
    if nearest is not None:
        return nearest, ()
    methods = [search.anneal]
    if entries <= _LARGEST_PROGRAMME:
        later = entries > _TINY and search.whole.all()
        methods.insert(int(later), search.programme)
    start, best = perf_counter(), None
    for k, method in enumerate(methods):
        left = time_limit - (perf_counter() - start)
        found, proven = method(left / (len(methods) - k))
        if best is None or search.worth(found) < search.worth(best):
            best = found
        if proven or not search.missed(best).any():
            break
    missed = search.missed(best)
    worst = np.argsort(-missed, kind="stable")[:_SHOWN]
    told = ", ".join(f"{system.names[k]} by {missed[k]:g}" for k in worst if missed[k])
    why = (
        "No whole numbers that meet all totals were found within the "
        f"time limit of {time_limit:g} seconds; the least that was missed is "
        f"{missed.sum():g} in all: {told}."
    )
    between = np.ceil(system.lower - _ROUNDS) > np.floor(system.upper + _ROUNDS)
    for k in np.flatnonzero(search.whole & between)[:1]:
        why += (
            f" No whole numbers sum to {span(system.lower[k], system.upper[k])}, which "
            f"{system.names[k]} asks for: round it, or give it room, "
            "column_total(..., within=)."
        )
    return best, (why,) if told else ()


class _Search:
    """Rows (n, c), their units, and what they are to sum to."""

    def __init__(self, system, weights, floor, ceiling):
        self._system, a = system, system.coefficients
        self.rows = rows = (a.toarray() if issparse(a) else np.asarray(a)).T
        self.lower, self.upper = system.lower, system.upper
        self.start, self.floor, self.ceiling = weights, floor, ceiling
        used = np.maximum(1, np.count_nonzero(rows, axis=0))
        mean = np.abs(rows).sum(axis=0) / used
        # Totals of whole numbers alone.
        self.whole = whole = (rows == np.round(rows)).all(axis=0)
        self.unit = np.where(whole & (mean <= _LARGE), 1.0, np.maximum(mean, 1e-300))

    def missed(self, weights):
        """Distance of each total from what is asked for; rounding is none."""
        missed, size = self._system.missed(weights)
        return np.where(missed > _WHOLE * size, missed, 0.0)

    def worth(self, weights):
        """What is missed in all, in units of the totals."""
        return float((self.missed(weights) / self.unit).sum())

    def nearest(self, time_limit):
        """The nearest rounding up or down that meets whole totals; None if not found.

        Margins of a table in two modes always have one.
        """
        if not self.whole.all() or np.any(self.lower < self.upper):
            return None
        a, off = csc_array(self.rows.T), np.abs(self.lower - np.round(self.lower))
        if off.max(initial=0) > _ROUNDS or a.nnz > _LARGEST_ROUNDING:
            return None
        with suppress(ValueError):
            ends = self.floor, self.ceiling
            return nearest_whole(self.start, a, self.lower, time_limit, *ends)
        return None

    def programme(self, time_limit):
        """Least sum of what is missed, by branch and bound; whether it is proven.

        A few units from the start where that will do: how far is no cost here.
        """
        n, c = self.rows.shape
        a, units = csr_array((self.rows / self.unit).T), identity(c)
        sums = hstack([a, units, -units], format="csc")
        asked = LinearConstraint(sums, self.lower / self.unit, self.upper / self.unit)
        is_missed = np.repeat([0, 1], [n, 2 * c])
        best = np.clip(np.round(self.start), self.floor, self.ceiling)
        for room in _ROOMS:
            floor = np.maximum(self.floor, np.floor(self.start) - room)
            ceiling = np.minimum(self.ceiling, np.ceil(self.start) + room)
            highest = np.concatenate([ceiling, np.full(2 * c, np.inf)])
            found = milp(
                is_missed,
                constraints=asked,
                bounds=Bounds(np.concatenate([floor, np.zeros(2 * c)]), highest),
                integrality=1 - is_missed,
                options={"time_limit": max(0.01, time_limit / len(_ROOMS))},
            )
            near = best if found.x is None else np.round(found.x[:n])
            near = np.clip(near, floor, ceiling)
            best = min(best, near, key=self.worth)
            if not self.missed(best).any():
                break
        return best, found.status == 0

    def anneal(self, time_limit):
        """The best state of a heat bath, in rounds twice as long as the last."""
        end, rng = perf_counter() + time_limit, np.random.default_rng(0)
        order = rng.permutation(len(self.start))
        bath = _Bath(self, order, rng)
        best, n_steps = bath.energy, _FIRST_ROUND
        kept = bath.weights.copy()
        while best > 0 and perf_counter() < end:
            for temperature in np.geomspace(_HOT, _COLD, n_steps):
                if not bath.step(temperature):
                    continue
                if 0 < bath.energy <= _NEAR and self.whole.all():
                    bath.finish()
                if bath.energy < best:
                    best, kept = bath.energy, bath.weights.copy()
                    if best == 0:
                        break
                if perf_counter() > end:
                    break
            bath.move_to(kept)
            n_steps *= 2
        weights = np.empty(len(order))
        weights[order] = kept[:-1]
        return weights + 0.0, False


class _Bath:
    """Whole weights, what they miss of the totals, and moves of one unit.

    Behind the rows is one of zeros, for none: it gives and takes without end.
    """

    def __init__(self, search, order, rng):
        self._rng = rng
        rows, weights = search.rows[order], search.start[order]
        low, high = search.floor[order], search.ceiling[order]
        self._low, self._high = np.append(low, -np.inf), np.append(high, np.inf)
        self._scaled, none = rows / search.unit, np.zeros((1, rows.shape[1]))
        self._rows = np.vstack([self._scaled, none]).astype(np.float32)
        self._squares = np.einsum("ij,ij->i", self._rows, self._rows)
        # Within an interval, what the weights given sum to.
        values = weights @ rows
        values = np.where(search.unit == 1, np.round(values), values)
        self._goal = np.clip(values, search.lower, search.upper) / search.unit
        self._marks = rng.integers(2**62, size=rows.shape[1])
        if search.whole.all():
            self._whole = np.vstack([rows, none]).astype(np.int64)
            self._hashes = self._whole @ self._marks
            self._sorted = self._hashes.argsort()
            self._unit = search.unit
        floor = np.floor(weights)
        fractions = rng.random(len(weights)) < weights - floor
        self.move_to(np.append(np.clip(floor + fractions, low, high), 0.0))

    def move_to(self, weights):
        """Go on from there."""
        self.weights = weights.copy()
        self._set(self._goal - self.weights[:-1] @ self._scaled)

    def _set(self, missing):
        self._missing = np.asarray(missing, dtype=np.float32)
        self.energy = float(self._missing @ self._missing)

    def _move(self, giver, taker, missing):
        self.weights[giver] -= 1
        self.weights[taker] += 1
        self._set(missing)

    def step(self, temperature):
        """Give a unit of one row, or of none, to a row that Gibbs' weights choose."""
        n = len(self.weights) - 1
        first, second, third = self._rng.random(3)
        giver = min(int(first * n * (1 + 1 / _FROM_NONE)), n)
        if self.weights[giver] <= self._low[giver]:
            return False
        missing = self._missing + self._rows[giver]
        begin = int(second * (n - _CHOICES + 1)) if n > _CHOICES else 0
        some = slice(begin, min(begin + _CHOICES, n))
        rises = self._squares[some] - 2 * (self._rows[some] @ missing)
        rises[self.weights[some] >= self._high[some]] = np.inf
        stay = self.energy - float(missing @ missing)
        lowest = min(float(rises.min()), stay, 0.0)
        chances = np.exp((lowest - rises) / temperature).cumsum()
        none = np.exp(lowest / temperature) if giver < n else 0.0
        total = chances[-1] + none + np.exp((lowest - stay) / temperature)
        drawn = third * total
        if drawn >= chances[-1] + none:
            return False
        taker = n
        if drawn < chances[-1]:
            taker = begin + int(chances.searchsorted(drawn, side="right"))
        self._move(giver, taker, missing - self._rows[taker])
        return True

    def finish(self):
        """Make the one move that meets all totals, if there is one."""
        missing = np.round(self._missing * self._unit).astype(np.int64)
        wanted = self._hashes + missing @ self._marks
        place = self._hashes[self._sorted].searchsorted(wanted)
        takers = self._sorted[np.minimum(place, len(self._sorted) - 1)]
        may_give, may_take = self.weights > self._low, self.weights < self._high
        pairs = (self._hashes[takers] == wanted) & may_give & may_take[takers]
        for giver in np.flatnonzero(pairs):
            taker = takers[giver]
            left = missing + self._whole[giver] - self._whole[taker]
            if not left.any():
                self._move(giver, taker, left)
                return
