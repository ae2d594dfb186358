"""Equations that hold as far as their values are rounded: shares in per cent, totals.

Counted in steps of the columns, rounding has the same variance in each of them, a
twelfth, and so in any direction: where the rows have no more, an equation holds.
"""

from itertools import product

import numpy as np
from scipy.linalg import qr, solve, svd

from .._runtime.threads import one_blas_thread
from .chance import all_above, are_small
from .readable import as_fractions, fewer_features, shortest, whole

# Variance of rounding is 1/12; of what was rounded twice, or half to even, some more.
_VARIANCE = 0.15
# Columns of less variance, in steps, tell nothing, nor do those of more steps.
_LEAST, _EXACT = 0.5, 2.0**48
# Largest share that is left of the variance that the terms of an equation have apart.
_LEFT = 0.05
# An equation is taken if chance makes one less often than 2 ** -_BITS.
_BITS = 30
# Least variance that rounding leaves, of what it may, but in plain sums; and by which
# factor that of simple coefficients may be more than that of the fitted ones.
_ROUNDED, _WORSE = 0.1, 1.2
# Largest weight in a sum of several columns.
_SMALL = 20
# Rows that are looked at first: so many, and so many times the features.
_FIRST, _FIRST_PER_FEATURE = 1000, 5
# Multiples of the rounding by which coefficients may be simplified: they are known to
# their standard errors, which in few rows are as large.
_PARTS = (4.0, 1.0, 0.25, 0.05, 0.0)
# By which part of it values may be; what is left by double precision, in steps.
_SHORTER, _LITTLE = 0.2, 1e-5
# What of an equation others do not say already, in ranges.
_NEW = 0.05


def halves(system, lattice):
    """Half a step of each column, as sums (c,) of a system have it; 0 without steps."""
    off = system.coefficients[:, ~lattice.on_it].any(axis=1)
    return np.where(off, 0, np.abs(system.coefficients) @ lattice.steps / 2)


@one_blas_thread()
def rounded_equations(rows, lattice, known, precision):
    """Equations of rows (n, D) that hold to half a step of each of their columns.

    But for those that follow from others (k, D) that are ``known``. Types round values
    to a ``precision`` (D,).

    Returns
    -------
    coefficients : ndarray of shape (c, D)
    values, rounding : ndarray of shape (c,)
    """
    found, values = np.zeros((0, rows.shape[1])), np.empty(0)
    some = np.flatnonzero(lattice.on_it)
    # Fitted to half of the rows at most: coefficients of chance fail in the others.
    every = max(2, len(rows) // (_FIRST + _FIRST_PER_FEATURE * len(some)))
    counts = rows[::every, some] / lattice.steps[some]
    # Beyond that whole numbers are no steps.
    exact = np.abs(counts).max(axis=0, initial=0) < _EXACT
    some, counts = some[exact], counts[:, exact]
    counts = counts - counts.mean(axis=0)
    varying = (counts * counts).mean(axis=0) >= _LEAST
    some, counts = some[varying], counts[:, varying]
    if 1 < len(some) < len(counts) - 1:
        part = rows[:, some]
        directions = _basis(known[:, some] * np.ptp(part, axis=0))
        units = lattice.steps[some], 2 * precision[some] * np.abs(part).max(axis=0)
        own, values = _that_hold(_raw(counts), part, *units, directions)
        found = np.zeros((len(own), rows.shape[1]))
        found[:, some] = own
    return found, values, np.abs(found) @ lattice.steps / 2


def _raw(counts):
    """Directions (k, p) of no more variance than rounding; each has a column alone."""
    n = len(counts)
    spread = np.sqrt((counts * counts).mean(axis=0))
    unit = counts / spread
    if all_above(unit.T @ unit / n, _LEFT):
        return np.empty((0, counts.shape[1]))
    sizes, directions = svd(counts, full_matrices=False, check_finite=False)[1:]
    directions = directions[sizes**2 <= _VARIANCE * n]
    if not len(directions):
        return directions
    # Alone is what varies most: totals.
    order = qr(directions * spread, mode="r", pivoting=True, check_finite=False)[1]
    return solve(directions[:, order[: len(directions)]], directions)


def _that_hold(raw, rows, steps, left, known):
    """Of raw equations of steps (k, p) those that hold, in units, and their values.

    With the simplest coefficients by which they do; beyond the span of what is
    ``known``, in ranges. Types have ``left`` so much of each value.
    """
    ranges = np.ptp(rows, axis=0)
    noise = (rows @ (raw / steps).T).var(axis=0) / (raw * raw).sum(axis=1)
    tried, most = _Tried(rows, steps, left), np.minimum(_WORSE * noise, _VARIANCE)
    found, values = [], []
    for part, unit, which in product(_PARTS, (steps, 1.0), (np.argmax, np.argmin)):
        if not len(raw):
            break
        simple, some = _simpler(raw, steps, ranges, part, unit, which)
        equations = fewer_features(simple[some])
        # Of two that are alike so simply one is left.
        there = equations.any(axis=1)
        equations, some = equations[there], np.flatnonzero(some)[there]
        largest = np.abs(equations).max(axis=1, keepdims=True, initial=0)
        equations = whole(equations / largest)
        holds = np.zeros(len(raw), bool)
        for k, own in zip(some, equations, strict=True):
            value = tried.value(own, most[k]) if _is_simple(own, steps) else None
            if value is None:
                continue
            holds[k], new = True, own * ranges
            new = new - known @ (known.T @ new)
            if np.linalg.norm(new) > _NEW * np.linalg.norm(own * ranges):
                known = np.column_stack([known, new / np.linalg.norm(new)])
                found.append(own)
                values.append(value)
        raw, most = raw[~holds], most[~holds]
    return np.reshape(found, (len(found), len(steps))), np.array(values)


def _is_simple(equation, steps):
    """Whether it is of two columns, or a sum of some with small whole weights.

    What more columns can be fitted to is no equation that anyone has written.
    """
    some = equation != 0
    sizes = np.abs(equation[some])
    if len(sizes) < 3:
        return len(sizes) == 2
    return any(are_small(own, _SMALL) for own in (sizes, sizes * steps[some]))


def _simpler(raw, steps, ranges, part, unit, which):
    """Coefficients of raw equations of steps (k, p) as fractions; which (k,) have such.

    By no more than so much of what rounding leaves, in some unit of the columns, where
    the largest or the smallest coefficient is 1. All are taken as they are by no part.
    """
    own = raw / steps * unit
    sizes = np.where(own == 0, -np.inf if which is np.argmax else np.inf, np.abs(own))
    own /= np.take_along_axis(own, which(sizes, axis=1)[:, None], axis=1)
    if not part:
        return own / unit, np.ones(len(own), bool)
    room = part * np.abs(own) @ (steps / unit) / 2
    simple = as_fractions(own, ranges / unit, 0.0, room)
    some = ((simple != own) | (np.abs(own) == 1) | (own == 0)).all(axis=1)
    return simple / unit, some


class _Tried:
    """Rows (n, p) that equations of rounded values are to hold in."""

    def __init__(self, rows, steps, left):
        self.rows, self.steps, self.left = rows, steps, left
        self.variances = rows.var(axis=0)
        # One number a column: rows that are alike in some have the same sum.
        self.some = rows[:: 1 + len(rows) // _FIRST]
        self.weights = np.sqrt(np.arange(2, 2 + len(steps))) / np.ptp(rows, axis=0)

    def value(self, equation, most):
        """What an equation is, to the rounding of its columns; None if it is none.

        It leaves the variance of rounding, at ``most`` so much of the squares of steps.
        Coefficients of all columns were fitted: each has spent a row.
        """
        values, terms = self.rows @ equation, np.abs(equation) * self.steps
        room, rest, squares = terms.sum() / 2, values.var(), terms @ terms
        left, apart = np.abs(equation) @ self.left, equation**2 @ self.variances
        if not _LITTLE * room < np.ptp(values) - 2 * left <= (2 + _LITTLE) * room:
            return None
        # An exact equation that a few rows break is none of rounded values.
        is_sum = np.ptp(terms[terms > 0]) <= _LITTLE * terms.max()
        least = 0 if is_sum else _ROUNDED / 12 * squares
        if not least <= rest <= min(most * squares, _LEFT * apart):
            return None
        n_apart = len(np.unique(self.some @ (self.weights * (equation != 0))))
        if (n_apart - len(terms) - 1) * np.log2(apart / rest) / 2 < _BITS:
            return None
        value = shortest(values.mean(), _SHORTER * room)
        return np.clip(value, *np.sort([values.max() - room, values.min() + room]))


def _basis(equations):
    """Orthonormal columns (p, k) of their span."""
    sizes = np.linalg.norm(equations, axis=1, keepdims=True)
    # NumPy's takes none, which that of SciPy refused before 1.14.
    unit = (equations / np.maximum(sizes, 1e-300)).T
    u, sizes, _ = np.linalg.svd(unit, full_matrices=False)
    return u[:, sizes > _LITTLE]
