"""Linear equalities that all training rows satisfy, and columns that follow by them."""

from dataclasses import dataclass

import numpy as np

from .._runtime.blocks import ends_of
from ..geometry._arrays import slices

# What equalities may be missed by: a share of the range of their columns (sums over all
# rows: of their absolute terms), and roundings of the largest values.
TOL, ROUNDINGS = 1e-9, 16


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

    def __getitem__(self, mask):
        return Equations(self.coefficients[mask], self.values[mask], self.pivots[mask])

    @property
    def columns(self):
        """All columns that the equalities are about."""
        return np.flatnonzero(self.coefficients.any(axis=0))

    def restore(self, rows):
        """Rows (n, D), in place, whose pivots follow from the other columns."""
        each = zip(self.coefficients, self.values, self.pivots, strict=True)
        for a, b, pivot in each:
            # Column by column: a product would round by the number of rows.
            follow = np.full(len(rows), b)
            for column in np.flatnonzero(a):
                if column != pivot:
                    follow -= a[column] * rows[:, column]
            rows[:, pivot] = follow
        return rows


def subsample(rows, c):
    """Rows of which equalities of c columns are computed; all of them confirm these."""
    return rows[:: max(1, len(rows) // max(1000, 4 * c))]


def _room(ends, precision):
    """What rounding and :data:`TOL` leave of columns (D,) with these ends."""
    eps = np.maximum(precision, np.finfo(float).eps)
    low, high = ends
    return TOL * (high - low) + ROUNDINGS * eps * np.maximum(np.abs(low), np.abs(high))


def exact_equalities(rows, columns, precision, priority):
    """:class:`Equations` that rows (n, D) satisfy exactly.

    In reduced echelon form: each equality gives one column, its pivot, that is in no
    other. Pivots are sought by ``priority`` (D,), the lowest first; of one priority the
    column of the largest spread, or, of ``priority`` 1 (whole numbers), that whose
    coefficient divides the others.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        NaN where a cell is missing; those without gaps in ``columns`` count.
    columns : ndarray of int
        Among which; two fewer than rows at most, or none.
    precision : ndarray of shape (D,)
        Unit roundoff of the types of the columns.
    """
    none, given = Equations.none(rows.shape[1]), rows[:, columns]
    part, ends = given, ends_of(given)
    if np.isnan(ends[0]).any():
        part = given[~np.isnan(given).any(axis=1)]
        ends = ends_of(part)
    sample, precision = subsample(part, len(columns)), precision[columns]
    mean, spread = sample.mean(axis=0), sample.std(axis=0)
    if not len(columns) or not (np.isfinite(spread) & (spread > 0)).all():
        return none
    factor = np.linalg.qr((sample - mean) / spread, mode="r")
    _, singular, vectors = np.linalg.svd(factor)
    room = _room(ends_of(sample), precision)
    least = np.sqrt(len(sample)) * (room / spread).max()
    basis = vectors[singular <= least] / spread
    basis, pivots = echelon(basis, spread, priority[columns])
    # Coefficients that the rounding of a type makes are none.
    share = np.abs(basis) * spread
    small = ROUNDINGS * precision.max() * share.max(axis=1, initial=0, keepdims=True)
    basis[share <= small] = 0
    basis = np.array([_readable(row, sample, room) for row in basis])
    if not len(basis):
        return none
    values = np.median(sample @ basis.T, axis=0)
    near = np.rint(values)
    size = np.abs(basis) @ np.abs(sample).max(axis=0)
    values = np.where(np.abs(values - near) <= 1e-12 * size, near, values)
    # Computed from a part of the rows; all rows confirm them.
    missed = np.abs(basis @ part.T - values[:, None]).max(axis=1)
    holds = missed <= np.abs(basis) @ _room(ends, precision)
    if part is not given:
        holds &= _holds_where_given(given, basis, values, precision)
    equations = np.zeros((len(basis), rows.shape[1]))
    equations[:, columns] = basis
    return Equations(equations[holds], values[holds], columns[pivots][holds])


def _holds_where_given(rows, basis, values, precision):
    """Which equalities (k,) hold in all rows (n, c) that have their own columns."""
    holds = np.empty(len(basis), bool)
    for k, coefficients in enumerate(basis):
        own = np.flatnonzero(coefficients)
        part = rows[:, own]
        part = part[~np.isnan(part).any(axis=1)]
        missed = np.abs(part @ coefficients[own] - values[k]).max()
        room = _room(ends_of(part), precision[own])
        holds[k] = missed <= np.abs(coefficients[own]) @ room
    return holds


def echelon_of(system):
    """Equalities given as constraints as :class:`Equations`; whole pivots first."""
    a, b = system.coefficients, np.atleast_2d(system.lower)[0]
    if not len(a):
        return Equations.none(a.shape[1])
    reduced, pivots = echelon(a, np.ones(a.shape[1]), np.ones(a.shape[1]))
    return Equations(reduced, reduced @ np.linalg.pinv(a) @ b, pivots)


def echelon(basis, spread, ranks):
    """Reduced echelon form of a basis (k, c), and the pivot (k,) of each row."""
    basis = basis.copy()
    pivots = _pivots(basis * spread, ranks)
    for k, column in enumerate(pivots):
        row = k + np.abs(basis[k:, column]).argmax()
        basis[[k, row]] = basis[[row, k]]
        basis[k] /= basis[k, column]
        others = np.arange(len(basis)) != k
        basis[others] -= basis[others, column, None] * basis[k]
    basis = basis[: len(pivots)]
    size = np.abs(basis) * spread
    basis[size <= 1e-9 * size.max(axis=1, initial=0, keepdims=True)] = 0
    return _whole_pivots(basis, pivots, ranks)


def _pivots(equations, ranks):
    """A column for each dimension of the row space of equations (k, c).

    The longest column of what is left of an orthonormal basis, as in a QR with column
    pivoting: its length does not depend on the basis, which rounding turns. Lengths
    that differ by less than a millionth count as equal; then it is the last column, a
    total behind its parts. So all machines choose the same.
    """
    sizes = np.linalg.norm(equations, axis=1, keepdims=True)
    _, singular, space = np.linalg.svd(
        equations / np.where(sizes > 0, sizes, 1), full_matrices=False
    )
    space, pivots = space[singular > 1e-9 * singular.max(initial=0)], []
    for _ in range(len(space)):
        length = np.linalg.norm(space, axis=0)
        usable = length > 1e-6 * length.max()
        usable &= ranks == ranks[usable].min()
        longest = length[usable].max()
        column = np.flatnonzero(usable & (length >= (1 - 1e-6) * longest))[-1]
        direction = space[:, column] / length[column]
        space = space - np.outer(direction, direction @ space)
        pivots.append(column)
    return np.array(pivots, int)


def _whole_pivots(basis, pivots, ranks):
    """Of whole numbers the pivot is a column whose coefficient divides the others."""
    for k, column in enumerate(pivots):
        if ranks[column] != 1:
            continue
        in_others = np.delete(basis, k, axis=0).any(axis=0)
        usable = (basis[k] != 0) & (ranks == 1) & ~in_others
        usable[column] = True
        size = np.where(usable, np.abs(basis[k]), np.inf)
        # Sizes that differ by rounding are equal, and then the last column counts.
        least = np.flatnonzero(size <= size.min() * (1 + 1e-9))[-1]
        if size[least] < size[column] * (1 - 1e-9):
            basis[k] /= basis[k, least]
            pivots[k] = least
    return basis, pivots


def _readable(row, rows, room):
    """Coefficients as fractions of small denominators, where the rows allow it."""
    used, denominators = np.flatnonzero(row), np.arange(1.0, 1001)[:, None]
    fractions = np.rint(row[used] * denominators) / denominators
    best = np.abs(fractions - row[used]).argmin(axis=0)
    near = row.copy()
    near[used] = fractions[best, np.arange(len(used))]
    near = np.where(np.abs(near - row) <= 1e-6 * np.maximum(1, np.abs(row)), near, row)
    missed = np.abs((rows - rows[0]) @ near).max()
    return near if missed <= np.abs(near) @ room else row


# --- few rows: what is written side by side ---------------------------------------


def sums_of_neighbors(rows, precision):
    """Equations (k, c) of sums of neighbouring columns of rows (n, c), all varying.

    Sums that are the same in every row, or that are another column. Prefix sums of
    random combinations of the rows are compared, and the rows confirm what these say.
    """
    n, c = rows.shape
    # Fewer than three rows say nothing.
    if n < 3 or c < 2:
        return []
    mean, codes = rows.mean(axis=0), np.empty((2, c))
    random = np.random.default_rng(0).standard_normal((2, n))
    for part in slices(c, 1024):
        codes[:, part] = random @ (rows[:, part] - mean[part])
    until = np.concatenate([np.zeros((2, 1)), np.cumsum(codes, axis=1)], axis=1)
    # Sums of rounded numbers are as rounded as the largest of them; sums of small
    # numbers beside them are not.
    size = max(np.abs(until).max(), np.abs(codes).max())
    eps = np.finfo(float).eps
    shares = sorted({ROUNDINGS * eps, TOL, max(TOL, ROUNDINGS * precision.max())})
    found = [x for share in shares for x in _sums_of_codes(until, codes, share * size)]
    room, spread = _room(ends_of(rows), precision), np.ptp(rows, axis=0)
    equations = []
    for start, stop, total in found:
        equation = np.zeros(c)
        equation[start:stop] = 1
        if total is not None:
            equation[total] = -1
        # A column that is smaller than the rounding of the largest says nothing.
        equation[spread <= room[equation != 0].max()] = 0
        part = np.flatnonzero(equation)
        missed = np.abs((rows[:, part] - mean[part]) @ equation[part]).max()
        if len(part) > 1 and missed <= room[part].sum():
            equations.append(equation)
    return equations


def _sums_of_codes(until, codes, tol):
    """Start, stop and total of sums of neighbours; None as total of a constant sum."""
    order = np.argsort(until[0], kind="stable")
    # Constant sums: places of equal prefix sums.
    same = (np.abs(np.diff(until[:, order])) <= tol).all(axis=0)
    for p, q in np.sort(np.column_stack([order[:-1], order[1:]])[same]).tolist():
        if q - p >= 2:
            yield p, q, None
    # Parts behind the total: until[stop] = until[total + 1] + code; before it:
    # until[start] = until[total] - code.
    for wanted, is_behind in (
        (until[0, 1:] + codes[0], True),
        (until[0, :-1] - codes[0], False),
    ):
        low = np.searchsorted(until[0], wanted - tol, sorter=order)
        high = np.searchsorted(until[0], wanted + tol, side="right", sorter=order)
        for total in np.flatnonzero(high > low).tolist():
            for place in order[low[total] : high[total]].tolist():
                start, stop = (total + 1, place) if is_behind else (place, total)
                gap = until[:, stop] - until[:, start] - codes[:, total]
                if stop - start >= 2 and (np.abs(gap) <= tol).all():
                    yield start, stop, total
                    break
