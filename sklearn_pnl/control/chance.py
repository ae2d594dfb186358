"""What chance makes: equations that rows satisfy though nothing ties their features."""

from functools import cached_property
from math import inf, lgamma, log

import numpy as np

from .readable import scales, whole

# Rows, per feature, among which distinct ones are counted first.
_COUNTED = 16
# Coefficients that are small; the square of a direction in which rows do not vary.
_SMALL, _NO_SIZE = 12, 1e-10
# By how much coefficients are rounded where the rows allow it, in ranges.
LOOSE = 1e-6
# An equation is taken if chance makes one of its kind less often than 2 ** -_BITS.
_BITS = 30
_SHUFFLED_ROWS, _FEW_ROWS = 500, 64
_BITS_PER_COEFFICIENT = 2


class Chance:
    """The evidence of rows (n, D) for equations, of features that vary.

    Attributes
    ----------
    n_distinct : int
        How many rows differ, of some if these are ``enough`` for each feature.
    rng : Generator
    """

    def __init__(self, X, varying, ranges, tol, enough):
        self.X, self.varying, self.ranges, self.tol = X, varying, ranges, tol
        self.rng = np.random.default_rng(0)
        # One number a row: those that are alike have the same.
        unit = np.where(ranges > 0, ranges, np.inf)
        self._direction = self.rng.uniform(1, 2, size=X.shape[1]) / unit
        for step in (max(1, len(X) // (_COUNTED * X.shape[1] + _SHUFFLED_ROWS)), 1):
            self.n_distinct = _n_distinct(X[::step] @ self._direction)
            if step == 1 or self.n_distinct >= enough * len(varying):
                break
        self._free, self._some_alone, self._apart = varying, False, {}

    def fitted(self, free, some_alone):
        """Note what others follow from, and if a single row decides some of them."""
        self._free, self._some_alone = free, some_alone

    def makes(self, equation, fitted, looked_for=False):
        """Whether features drawn apart would make such an equation too.

        Features of different rows give its value in a row the chance that it takes its
        most frequent value, or where none comes twice, that it falls so near another;
        all rows, and all choices of as many features, make the rest. A fitted equation
        has spent a row on each coefficient; of others few are looked for, or, of many
        features, all that add or take each.
        """
        features = np.flatnonzero(equation)
        (n, d), m = (len(self.X), len(self.varying)), len(features)
        if n < 3:
            return True
        n_distinct = self._n_apart(equation, features) if fitted else self.n_distinct
        choices = (lgamma(d + 1) - lgamma(m + 1) - lgamma(d - m + 1)) / log(2)
        if fitted:
            choices += _BITS_PER_COEFFICIENT * m
        elif looked_for:
            choices = min(choices, 3 * log(d + 1, 2) + 2 * _BITS_PER_COEFFICIENT)
        else:
            choices += m
        wanted = choices + _BITS
        # The same for all equations of m features: there may be thousands of them.
        if m not in self._apart:
            self._apart[m] = self._rows_apart(n, m)
        apart = self._apart[m]
        # A few rows tell that no value is that of most: a bit, which mostly is enough.
        known = [(apart[:_FEW_ROWS], 1)] if n > _FEW_ROWS else []
        for rows, most in (*known, (apart, inf)):
            value = np.einsum("nk,k->n", self.X[rows, features], equation[features])
            unit = 10 * self.tol * scales(equation[None], self.ranges, value[:1])[0]
            own = self.X[0, features] @ equation[features]
            bits = min(_bits(value, unit, own), most) * (n_distinct - fitted * m)
            if bits >= wanted:
                return False
        return True

    def _n_apart(self, equation, features):
        """How many different rows speak for an equation with fitted coefficients.

        A plain sum, of features or of their shares of ranges as in one-hot groups, has
        none to fit, and small whole numbers say little. Of others rows that are alike
        in these features speak once: as few as there are features satisfy any.
        """
        units = np.array([np.ones(len(features)), self.ranges[features]])
        sizes = np.abs(equation[features] * units)
        if (np.ptp(sizes, axis=1) <= LOOSE * sizes.max(axis=1)).any():
            return self.n_distinct
        # What a row alone decides explains that row, whatever the others say.
        if self._some_alone and self._decided_alone[features].any():
            return 0
        direction = np.where(equation != 0, self._direction, 0.0)
        for step in (max(1, len(self.X) // _SHUFFLED_ROWS), 1):
            rows = self.X[::step]
            n_apart = _n_distinct(rows @ direction)
            if n_apart == len(rows) or any(map(are_small, sizes)):
                return self.n_distinct
        return n_apart

    @cached_property
    def _decided_alone(self):
        """Columns (D,) with a combination that is nought in all rows but one."""
        _, first = np.unique(self.X @ self._direction, return_index=True)
        rows = self.X[np.ix_(first, self._free)] / self.ranges[self._free]
        rows -= rows.mean(axis=0)
        sizes, directions = np.linalg.eigh(rows.T @ rows)
        some = sizes > _NO_SIZE * sizes.max()
        root = directions[:, some] / np.sqrt(sizes[some])
        rows = rows @ root
        leverages = np.einsum("nk,nk->n", rows, rows) + 1 / len(rows)
        alone = np.abs(root @ rows[leverages > 1 - LOOSE].T)
        found = np.zeros(self.X.shape[1], bool)
        found[self._free] = (alone > LOOSE * alone.max(axis=0, initial=0)).any(axis=1)
        return found

    def _rows_apart(self, n, m):
        """Choices (k, m) of different rows, as far as there are so many."""
        if n > _FEW_ROWS:
            return self.rng.integers(n, size=(_SHUFFLED_ROWS, m))
        rows = self.rng.random((_SHUFFLED_ROWS, n)).argsort(axis=1)
        return np.unique(rows[:, np.arange(m) % n], axis=0)


def all_above(gram, least):
    """Whether all eigenvalues of a symmetric matrix are above a number.

    Cholesky's way takes a sixth of the time that eigenvalues take.
    """
    try:
        np.linalg.cholesky(gram - least * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        return False
    return True


def are_small(sizes, most=_SMALL):
    """Whether numbers are small whole ones, but for a factor."""
    found = whole(np.round(sizes / sizes.min() / LOOSE)[None] * LOOSE)[0]
    return bool(found.max() <= most and np.all(found == np.rint(found)))


def _n_distinct(values):
    values = np.sort(values)
    return 1 + np.count_nonzero(values[1:] != values[:-1])


def _bits(values, unit, own):
    """How surprising it is, in bits, that a value is one of these, to this unit.

    One of these that comes often, or the ``own`` one.
    """
    values = np.sort(values)
    apart = np.flatnonzero(np.diff(values) > unit)
    runs = np.diff(np.concatenate([[-1], apart, [len(values) - 1]]))
    if runs.max() == 2 and np.abs(values - own).min() > unit:
        # As birthdays, of which two are the same sooner than one that is named.
        pairs = len(values) * (len(values) - 1) / 2
        share = (np.count_nonzero(runs == 2) + 1) / pairs
    elif runs.max() > 1:
        share = (runs.max() + 1) / len(values)
    else:
        share = unit / np.diff(values).min(initial=np.inf) / len(values)
        if np.all(np.rint(values) == values):
            # Few choices of rows may be all different, though they have few values.
            share = max(share, 1 / (1 + np.ptp(values)))
    return -log(min(1.0, max(share, 1e-300)), 2)
