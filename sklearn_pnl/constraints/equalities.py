"""Linear equalities that all training rows satisfy, and columns that follow by them."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .._runtime.blocks import ends_of

# What an equality may be missed by: a share of the range of its columns, and roundings
# of their largest values.
TOL, ROUNDINGS = 1e-9, 16
# Rows of which equalities are computed; all rows confirm them.
FACTORED = 1000
# Rows from which sums of neighbouring columns say something, and random codes of them.
LEAST_ROWS, N_CODES = 3, 2
# Largest denominator of coefficients that are read as fractions.
MOST_DENOMINATOR = 1000


@dataclass(frozen=True)
class Equations:
    """Equalities ``coefficients @ x = values`` in reduced echelon form.

    Attributes
    ----------
    coefficients : ndarray of shape (k, D)
    values : ndarray of shape (k,)
    pivots : ndarray of int of shape (k,)
        A column for each equality, with coefficient 1, which is in no other.
    """

    coefficients: np.ndarray
    values: np.ndarray
    pivots: np.ndarray

    @classmethod
    def none(cls, d):
        """No equality about ``d`` columns."""
        return cls(np.empty((0, d)), np.empty(0), np.empty(0, int))

    def __len__(self):
        return len(self.coefficients)

    def __getitem__(self, some):
        return Equations(self.coefficients[some], self.values[some], self.pivots[some])

    @property
    def columns(self):
        """All columns that the equalities are about."""
        return np.flatnonzero(self.coefficients.any(axis=0))

    def restore(self, rows):
        """Rows (n, D), in place, whose pivots follow from the other columns."""
        for a, b, pivot in zip(
            self.coefficients, self.values, self.pivots, strict=True
        ):
            others = np.flatnonzero(a)
            others = others[others != pivot]
            # Column by column: a product would round by the number of rows.
            follow = np.full(len(rows), b)
            for column in others:
                follow -= a[column] * rows[:, column]
            rows[:, pivot] = follow
        return rows


def _room(rows, precision):
    """What rounding and :data:`TOL` leave of each column (D,) of rows."""
    eps = np.maximum(precision, np.finfo(float).eps)
    low, high = ends_of(rows)
    return TOL * (high - low) + ROUNDINGS * eps * np.maximum(np.abs(low), np.abs(high))


def exact_equalities(rows, columns=None, precision=0.0, priority=None):
    """:class:`Equations` that rows (n, D) satisfy exactly.

    In reduced echelon form: each equality gives one column, its pivot, that is in no
    other. Pivots are sought by ``priority`` (D,), the lowest first; of one priority the
    column of the largest spread, or, of ``priority`` 1 (whole numbers), that whose
    coefficient divides the others.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Without gaps in ``columns``.
    columns : ndarray of int, default=None
        Among which; None is all that vary.
    precision : float or ndarray of shape (D,)
        Unit roundoff of the types of the columns.
    """
    d = rows.shape[1]
    if columns is None:
        columns = np.flatnonzero(rows.min(axis=0) < rows.max(axis=0))
    part = rows[:, columns]
    none = Equations.none(d)
    if len(columns) < 2 or len(rows) < len(columns) + 2:
        return none
    precision = np.broadcast_to(precision, d)[columns]
    some = part[:: max(1, len(part) // max(FACTORED, 4 * len(columns)))]
    mean, spread = some.mean(axis=0), some.std(axis=0)
    if not (np.isfinite(spread) & (spread > 0)).all():
        return none
    factor = np.linalg.qr((some - mean) / spread, mode="r")
    _, singular, vectors = np.linalg.svd(factor)
    room = np.sqrt(len(some)) * (_room(some, precision) / spread).max()
    basis = vectors[singular <= room] / spread
    ranks = None if priority is None else priority[columns]
    basis, pivots = echelon(basis, spread, ranks)
    # Coefficients that the rounding of a type makes are none.
    share = np.abs(basis) * spread
    small = ROUNDINGS * precision.max() * share.max(axis=1, initial=0, keepdims=True)
    basis[share <= small] = 0
    basis = np.array([_readable(row, some, precision) for row in basis])
    if not len(basis):
        return none
    values = np.median(some @ basis.T, axis=0)
    near = np.rint(values)
    size = np.abs(basis) @ np.abs(some).max(axis=0)
    values = np.where(np.abs(values - near) <= 1e-12 * size, near, values)
    # Some rows told them; all rows are to confirm them.
    missed = np.abs(part @ basis.T - values).max(axis=0)
    holds = missed <= np.abs(basis) @ _room(part, precision)
    equations = np.zeros((len(basis), d))
    equations[:, columns] = basis
    return Equations(equations[holds], values[holds], columns[pivots][holds])


def echelon_of(system):
    """Equalities given as constraints as :class:`Equations`; whole pivots first."""
    a, b = system.coefficients, np.atleast_2d(system.lower)[0]
    if not len(a):
        return Equations.none(a.shape[1])
    reduced, pivots = echelon(a, np.ones(a.shape[1]), np.ones(a.shape[1]))
    return Equations(reduced, reduced @ np.linalg.pinv(a) @ b, pivots)


def echelon(basis, spread, priority=None):
    """Reduced echelon form of a basis (k, c), and the pivot (k,) of each row."""
    basis, pivots = basis.copy(), []
    free = np.ones(basis.shape[1], bool)
    ranks = np.zeros(len(free)) if priority is None else priority
    for k in range(len(basis)):
        size = np.abs(basis[k:]) * spread
        usable = (size > 1e-6 * size.max(initial=0)) & free
        if not usable.any():
            return basis[:k], np.array(pivots, int)
        best = ranks[usable.any(axis=0)].min()
        usable &= ranks == best
        row, column = np.unravel_index(
            np.argmax(np.where(usable, size, -1)), size.shape
        )
        basis[[k, k + row]] = basis[[k + row, k]]
        basis[k] /= basis[k, column]
        others = np.arange(len(basis)) != k
        basis[others] -= basis[others, column, None] * basis[k]
        free[column] = False
        pivots.append(column)
    small = np.abs(basis) * spread <= 1e-9 * (np.abs(basis) * spread).max(
        axis=1, keepdims=True
    )
    basis[small] = 0
    return _whole_pivots(basis, np.array(pivots, int), ranks)


def _whole_pivots(basis, pivots, ranks):
    """Of whole numbers the pivot is a column whose coefficient divides the others."""
    for k, column in enumerate(pivots):
        if ranks[column] != 1:
            continue
        in_others = np.delete(basis, k, axis=0).any(axis=0)
        usable = (basis[k] != 0) & (ranks == 1) & ~in_others
        usable[column] = True
        size = np.where(usable, np.abs(basis[k]), np.inf)
        least = int(np.argmin(size))
        if size[least] < size[column] * (1 - 1e-9):
            basis[k] /= basis[k, least]
            pivots[k] = least
    return basis, pivots


def _readable(row, rows, precision):
    """Coefficients as fractions of small denominators, where the rows allow it."""
    near = np.array([_fraction(a) for a in row])
    centred = rows - rows[0]
    missed = np.abs(centred @ near).max()
    return near if missed <= np.abs(near) @ _room(rows, precision) else row


def _fraction(value):
    near = Fraction(float(value)).limit_denominator(MOST_DENOMINATOR)
    return float(near) if abs(near - value) <= 1e-6 * max(1, abs(value)) else value


# --- few rows: what is written side by side ---------------------------------------


def sums_of_neighbors(rows, precision=0.0, rng=0):
    """Equations (k, c) of sums of neighbouring columns of rows (n, c), all varying.

    Sums that are the same in every row, or that are another column. Prefix sums of
    random combinations of the rows are compared, and the rows confirm what these say.
    """
    n, c = rows.shape
    if n < LEAST_ROWS or c < 2:
        return []
    centred = rows - rows.mean(axis=0)
    weights = np.random.default_rng(rng).standard_normal((N_CODES, n))
    codes = weights @ centred
    until = np.concatenate([np.zeros((N_CODES, 1)), np.cumsum(codes, axis=1)], axis=1)
    precision = np.broadcast_to(precision, c)
    # Sums of rounded numbers are as rounded as the largest of them; sums of small whole
    # numbers beside them are exact.
    size = max(np.abs(until).max(), np.abs(codes).max())
    found = []
    for share in sorted({TOL, max(TOL, ROUNDINGS * precision.max())}):
        tol = share * size
        found += [*_constant_sums(until, tol), *_totals(until, codes, tol)]
    room = _room(rows, precision)
    spread = np.ptp(rows, axis=0)
    equations = []
    for members, total in found:
        equation = np.zeros(c)
        equation[members] = 1
        if total is not None:
            equation[total] = -1
        # A column that is smaller than the rounding of the largest says nothing.
        equation[spread <= room[equation != 0].max()] = 0
        part = np.flatnonzero(equation)
        missed = np.abs(centred[:, part] @ equation[part]).max()
        if len(part) > 1 and missed <= room[part].sum():
            equations.append(equation)
    return equations


def _constant_sums(until, tol):
    """Slices of columns whose sums are constant: places of equal prefix sums."""
    order = np.argsort(until[0], kind="stable")
    first, second = order[:-1], order[1:]
    same = (np.abs(until[:, first] - until[:, second]) <= tol).all(axis=0)
    for p, q in zip(first[same], second[same], strict=True):
        p, q = sorted((int(p), int(q)))
        if q - p >= 2:
            yield slice(p, q), None


def _totals(until, codes, tol):
    """Slices of columns whose sum is the column before or behind them."""
    order = np.argsort(until[0], kind="stable")
    ordered, columns = until[0][order], np.arange(codes.shape[1])
    # Parts behind the total: until[stop] = until[total + 1] + code; before it:
    # until[start] = until[total] - code.
    for wanted, behind in (
        (until[0, 1:] + codes[0], True),
        (until[0, :-1] - codes[0], False),
    ):
        low = np.searchsorted(ordered, wanted - tol)
        high = np.searchsorted(ordered, wanted + tol, side="right")
        for total in columns[high > low]:
            for place in order[low[total] : high[total]]:
                start, stop = (total + 1, place) if behind else (place, total)
                sums = until[:, stop] - until[:, start]
                close = (np.abs(sums - codes[:, total]) <= tol).all()
                if stop - start >= 2 and close:
                    yield slice(int(start), int(stop)), int(total)
                    break
