"""Linear equalities of the columns that all training rows satisfy, or nearly."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from .._runtime.arrays import slices, some_columns
from .._runtime.blocks import ends_of, ends_seen
from .linear import ALMOST, EPS, ROUNDINGS, TOL, LinearConstraints

# Columns up to which equalities of any kind are looked for; of more, and of fewer rows
# than columns, sums of columns side by side.
MOST_FACTORED = 1000


class Equations(NamedTuple):
    """Equalities ``coefficients @ x = values`` in reduced echelon form.

    Pivots (k,) are a column for each, with coefficient 1, which is in no other.
    """

    coefficients: np.ndarray
    values: np.ndarray
    pivots: np.ndarray


def no_equations(d):
    """No equality about ``d`` columns."""
    return Equations(np.empty((0, d)), np.empty(0), np.empty(0, int))


def search_equalities(rows, varies, shape, ranks, precision, steps):
    """Look for equalities of the columns of rows (n, D), exact or nearly.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        NaN where a cell is missing.
    varies : ndarray of bool of shape (D,) or None
        Columns with more than one value; None where cells are missing.
    shape : tuple of int or None
        Shape of a row of several axes: of few rows sums along each are looked for.
    ranks : ndarray of int of shape (D,)
        Which columns may depend on others: numbers (0) before whole numbers (1) before
        those of two values (2).
    precision : ndarray of shape (D,)
        Unit roundoff of the types of the columns.
    steps : ndarray of shape (D,)
        What values are multiples of; 0 for any.

    Returns
    -------
    dependent : ndarray of int
        Columns that others give, exactly or nearly.
    equations : Equations
        Those that hold exactly.
    near : list of (int, ndarray of shape (D,))
        A column that others nearly give, and how it follows where discrete ones, or
        such columns later in the list, change.
    """
    if varies is None:
        columns, whole = _complete_part(rows)
    else:
        columns, whole = np.flatnonzero(varies), rows
    n, c = len(whole), len(columns)
    dependent, equations, near = columns[:0], no_equations(rows.shape[1]), []
    if 2 <= c <= MOST_FACTORED and n >= c + 2:
        dependent, equations = _factored(rows, columns, whole, ranks, precision)
        others = np.setdiff1d(dependent, equations.pivots)
        if (ranks[others] > 0).any() and len(others) > 1:
            free = np.setdiff1d(columns, equations.pivots)
            near = _near_equations(whole, free, ranks, steps)
    elif c >= 2:
        equations = _sums(rows, columns, shape, ranks, precision)
    return dependent, equations, near


def _complete_part(rows):
    """Columns (c,) that vary, and the rows (n, D) that have all of them.

    The columns with most gaps are left out first, until rows are twice the columns;
    those rows have 0 in their gaps.
    """
    gaps = np.isnan(rows)
    n_gaps = gaps.sum(axis=0)
    for most in np.unique(n_gaps)[::-1]:
        columns = np.flatnonzero(n_gaps <= most)
        complete = ~gaps[:, columns].any(axis=1)
        if complete.sum() >= 2 * len(columns):
            break
    rows = np.where(gaps, 0.0, rows)[complete]
    if not len(rows):
        return columns[:0], rows
    varying = np.less(*ends_of(some_columns(rows, columns)))
    return columns[varying], rows


def _factored(rows, columns, whole, ranks, precision):
    """Which of some columns (c,) others give, exactly or nearly, and equations.

    A column is in an equality where the other columns leave little of its variance:
    ``1 / (C^-1)_cc`` of it, C the correlations of a part of the rows. All rows confirm
    it.
    """
    standard, spread = _standardized(whole, columns)
    n, most_left = len(standard), _most_left(len(whole), len(columns))
    fine = np.isfinite(spread)
    if not fine.any():
        return columns[:0], no_equations(rows.shape[1])
    root = _root_of_inverse(standard)
    diagonal = n * np.square(root).sum(axis=1)
    dependent = (1 / diagonal <= most_left) & fine
    equations = exact_equalities(rows, columns[dependent], precision, ranks)
    # Those that hold exactly are confirmed.
    exact = equations.coefficients[:, columns].any(axis=0)
    unsure = np.flatnonzero(dependent & ~exact)
    if len(unsure) and n < len(whole):
        inverse, whole = n * (root @ root.T), some_columns(whole, columns)
        others = inverse[:, unsure] / np.outer(spread, diagonal[unsure])
        variance = whole[:, unsure].var(axis=0) / spread[unsure] ** 2
        holds = (whole @ others).var(axis=0) <= most_left * variance
        if not holds.all():
            dependent[unsure[~holds]] = False
            equations = exact_equalities(rows, columns[dependent], precision, ranks)
    return columns[dependent], equations


def _near_equations(whole, columns, ranks, steps):
    """How some columns (c,) follow discrete ones, the finest first.

    A column is regressed on those that are no earlier pivots, whose part of the inverse
    correlations is what is left of them without it. Columns count whose rounding moves
    it by more than they leave of it.
    """
    standard, spread = _standardized(whole, columns)
    root, n = _root_of_inverse(standard), len(standard)
    inverse, most_left = n * (root @ root.T), _most_left(len(whole), len(columns))
    steps, is_discrete, found = steps[columns], ranks[columns] > 0, []
    moves = np.where(is_discrete, steps, spread)
    # Which is finer must not turn with rounding.
    for p in np.argsort((steps / spread).astype(np.float32), kind="stable"):
        size = inverse[p, p]
        if ranks[columns[p]] == 2 or size * most_left < 1:
            continue
        follows = -inverse[p] / size * spread[p] / spread
        follows[p] = 0.0
        follows[np.abs(follows) * moves <= 2 * spread[p] / np.sqrt(size)] = 0.0
        inverse = inverse - np.outer(inverse[:, p], inverse[p]) / size
        inverse[p] = inverse[:, p] = 0.0
        if follows[is_discrete].any():
            found.append((p, follows))
    is_discrete[[p for p, _ in found]] = True
    equations = []
    for p, follows in found:
        coefficients = np.zeros(whole.shape[1])
        coefficients[columns] = np.where(is_discrete, follows, 0.0)
        equations.append((columns[p], coefficients))
    return equations


def _standardized(whole, columns):
    """Some rows (n, c) in deviations from the mean, 0 without any, and these (c,)."""
    part = some_columns(subsample(whole, len(columns)), columns)
    with np.errstate(over="ignore", invalid="ignore"):
        standard = part - part.mean(axis=0)
        spread = np.sqrt(np.einsum("nc,nc->c", standard, standard) / len(part))
    fine = np.isfinite(spread) & (spread > 0)
    standard[:, ~fine], spread[~fine] = 0, np.inf
    standard /= spread
    return standard, spread


def _most_left(n, c):
    """The share of its variance that others leave of a column that they nearly give."""
    # Wide enough for sums of rounded numbers; of few rows what chance cannot reach.
    return 0.04 if n >= 2 * c else 1e-10


def _root_of_inverse(standard):
    """A root R (c, c), ``R @ R.T`` the inverse of the products of columns (n, c).

    Cholesky's factor of the products tells columns apart that others nearly give; only
    what these leave of them is factored as precisely as a QR would. What rounding
    leaves is in no relation: its products are chance.
    """
    products = standard.T @ standard
    factor, pivots, rank, _ = dpstrf(products, tol=ALMOST * len(standard))
    first, rest = np.split(pivots - 1, [rank])
    some = solve_triangular(factor[:rank, :rank], np.eye(rank))
    root = np.zeros_like(products)
    root[first, :rank] = some
    if len(rest):
        others, given = standard[:, first], 0.0
        covariances = products[np.ix_(first, rest)]
        # Twice: the second time for what rounding left.
        for _ in range(2):
            given = given + some @ (some.T @ covariances)
            left = standard[:, rest] - others @ given
            covariances = others.T @ left
        size, one = np.linalg.norm(left, axis=0), np.sqrt(len(standard))
        factor, near = np.diag(size), np.flatnonzero(size > TOL * one)
        factor[np.ix_(near, near)] = np.linalg.qr(left[:, near], mode="r")
        least = ROUNDINGS * EPS * one
        small = np.flatnonzero(np.abs(np.diag(factor)) < least)
        factor[small, small] = least
        inverse = solve_triangular(factor, np.eye(len(rest)))
        root[np.ix_(rest, range(rank, len(root)))] = inverse
        root[np.ix_(first, range(rank, len(root)))] = -given @ inverse
    return root


def _sums(rows, columns, shape, ranks, precision):
    """Sums of columns that lie side by side, along each axis of a row."""
    d, whole = rows.shape[1], some_columns(rows, columns)
    complete = ~np.isnan(whole).any(axis=1)
    whole = whole if complete.all() else whole[complete]
    places, sums = np.arange(d).reshape(shape or (d,)), []
    for axis in range(places.ndim):
        order = np.moveaxis(places, axis, -1).ravel()
        at = np.searchsorted(columns, order[np.isin(order, columns)])
        part = some_columns(whole, at)
        for equation in sums_of_neighbors(part, precision[columns[at]]):
            sums.append(np.zeros(d))
            sums[-1][columns[at]] = equation
    if not sums:
        return no_equations(d)
    spread = np.ones(d)
    spread[columns] = np.ptp(whole, axis=0)
    coefficients, pivots = echelon(np.array(sums), spread, ranks)
    values = _constants(coefficients[:, columns], whole, precision[columns])
    return Equations(coefficients, values, pivots)


# --- that hold exactly ------------------------------------------------------------


def subsample(rows, c):
    """Rows of which equalities of c columns are computed; all of them confirm these."""
    return rows[:: max(1, len(rows) // max(1000, 4 * c))]


def _room(rows, precision):
    """What rounding and :data:`TOL` leave of the columns (D,) of rows."""
    (low, high), eps = ends_seen(rows), np.maximum(precision, EPS)
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
    given = rows[:, columns]
    complete = np.flatnonzero(~np.isnan(given).any(axis=1))
    sample, precision = given[subsample(complete, len(columns))], precision[columns]
    mean, spread = sample.mean(axis=0), sample.std(axis=0)
    if not len(columns) or not (np.isfinite(spread) & (spread > 0)).all():
        return no_equations(rows.shape[1])
    factor = np.linalg.qr((sample - mean) / spread, mode="r")
    _, singular, vectors = np.linalg.svd(factor)
    room = _room(sample, precision)
    least = np.sqrt(len(sample)) * (room / spread).max()
    basis = vectors[singular <= least] / spread
    basis, pivots = echelon(basis, spread, priority[columns])
    # Coefficients that the rounding of a type makes are none.
    share = np.abs(basis) * spread
    small = ROUNDINGS * precision.max() * share.max(axis=1, initial=0, keepdims=True)
    basis[share <= small] = 0
    for row in basis:
        row[:] = _readable(row, sample, room)
    values = _constants(basis, sample, precision)
    # Computed from a part of the rows; all rows with their columns confirm them.
    exact = LinearConstraints(basis, values, values, range(len(columns)))
    missed = np.fmax.reduce(np.abs(exact.residual(given)), axis=0)
    holds = missed <= np.abs(basis) @ _room(given, precision)
    equations = np.zeros((len(basis), rows.shape[1]))
    equations[:, columns] = basis
    return Equations(equations[holds], values[holds], columns[pivots][holds])


def _constants(basis, rows, precision):
    """Values (k,) of equations in rows (n, c): whole where rounding allows it."""
    values = np.median(rows @ basis.T, axis=0)
    near = np.rint(values)
    size = np.abs(basis) @ np.abs(rows).max(axis=0)
    is_near = np.abs(values - near) <= max(1e-12, 4 * precision.max()) * size
    return np.where(is_near, near, values)


def echelon_of(system):
    """Equalities given as constraints as :class:`Equations`; whole pivots first."""
    a, b = system.coefficients, system.lower
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
    basis[size <= TOL * size.max(axis=1, initial=0, keepdims=True)] = 0
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
    space, pivots = space[singular > TOL * singular.max(initial=0)], []
    for _ in range(len(space)):
        length = np.linalg.norm(space, axis=0)
        usable = length > ALMOST * length.max()
        usable &= ranks == ranks[usable].min()
        longest = length[usable].max()
        column = np.flatnonzero(usable & (length >= (1 - ALMOST) * longest))[-1]
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
        least = np.flatnonzero(size <= size.min() * (1 + TOL))[-1]
        if size[least] < size[column] * (1 - TOL):
            basis[k] /= basis[k, least]
            pivots[k] = least
    return basis, pivots


def _readable(row, rows, room):
    """Coefficients as fractions of small denominators, where the rows allow it."""
    near = np.rint(row)
    # Most are whole, for which no fraction is looked for.
    for k in np.flatnonzero(np.abs(near - row) > ALMOST):
        near[k] = Fraction(row[k]).limit_denominator(1000)
    far = np.abs(near - row) > ALMOST * np.maximum(1, np.abs(row))
    near[far] = row[far]
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
    # Some columns at a time: a copy of all rows would double the memory.
    for part in slices(c, 1024):
        codes[:, part] = random @ (rows[:, part] - mean[part])
    until = np.concatenate([np.zeros((2, 1)), np.cumsum(codes, axis=1)], axis=1)
    # Sums of rounded numbers are as rounded as the largest of them; sums of small
    # numbers beside them are not.
    size = max(np.abs(until).max(), np.abs(codes).max())
    shares = sorted({ROUNDINGS * EPS, TOL, max(TOL, ROUNDINGS * precision.max())})
    found = [x for share in shares for x in _sums_of_codes(until, codes, share * size)]
    room, spread = _room(rows, precision), np.ptp(rows, axis=0)
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
