"""Search for linear equalities that training rows satisfy, exactly or nearly.

A sample of rows proposes equalities, and all rows confirm the proposals. For wide
tables, and for tables with few rows, the search is limited to sums of adjacent columns.
"""

from fractions import Fraction
from itertools import compress
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import ssyrk
from scipy.linalg.lapack import dpstrf, spotrf, strtri

from .._utils.arrays import BLOCK_CELLS, slices, some_columns, with_errstate
from .._utils.blocks import column_bounds, observed_bounds, sample_with_bounds
from .constraints import ALMOST, EPS, ROUNDINGS, TOL, LinearConstraints
from .value_support import decimal_steps, single_precision_steps

# Largest number of columns for which the search finds equalities of any kind. With more
# columns, or with fewer rows than columns, it is limited to sums of adjacent columns.
MOST_FACTORED = 1000
# Number of products that confirm nearly dependent columns on random rows: all rows of
# most tables, and 3,640 rows of 384 columns.
_PRODUCTS = 2**29
# If earlier columns leave more than this share of the variance of each column, single
# precision proves that no column depends exactly on other columns.
_LEAST_LEFT = 1e-3


class Equations(NamedTuple):
    """Equalities ``coefficients @ x = values`` in reduced echelon form.

    Each equality has a pivot column (k,), whose coefficient is 1, and which is in no
    other equality.
    """

    coefficients: np.ndarray
    values: np.ndarray
    pivots: np.ndarray


def no_equations(d):
    """Return an empty system of equalities on ``d`` columns."""
    return Equations(np.empty((0, d)), np.empty(0), np.empty(0, int))


def search_equalities(rows, bounds, shape, ranks, precision, steps, order):
    """Search for equalities of the columns of rows (n, D), exact or nearly exact.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Numeric values; NaN if a cell is missing.
    bounds : tuple of ndarray of shape (D,) or None
        Minimum and maximum of each column; None if cells are missing.
    shape : tuple of int or None
        Shape of a row with several axes. With few rows, the search is limited to sums
        along each axis.
    ranks : ndarray of int of shape (D,)
        Order in which columns become pivots: 0 for columns without steps, 1 for columns
        with steps, 2 for binary columns.
    precision : ndarray of shape (D,)
        Unit roundoff of the types of the columns.
    steps : ndarray of shape (D,)
        Values are multiples of the step; 0 for arbitrary values.
    order : ndarray of int of shape (n,)
        The random order of the rows.

    Returns
    -------
    dependent : ndarray of int
        Columns that other columns determine, exactly or nearly.
    equations : Equations
        The exact equalities.
    near : list of (int, ndarray of shape (D,))
        A column that other columns, some of them discrete, nearly determine, and its
        coefficients on these columns. No column earlier in the list has a coefficient.
    """
    if bounds is None:
        columns, full, complete = _complete_part(rows)
        order = (np.cumsum(complete) - 1)[order[complete[order]]]
    else:
        columns, full = np.flatnonzero(has_range(*bounds)), rows
        complete = np.ones(len(rows), bool)
    n, c = len(full), len(columns)
    dependent, equations, near = columns[:0], no_equations(rows.shape[1]), []
    if 2 <= c <= MOST_FACTORED and n >= c + 2:
        # 0.04 includes sums of rounded values. With few rows, unrelated columns could
        # reach 0.04.
        search = _Search(
            rows, full, complete, columns, precision, 0.04 if n >= 2 * c else 1e-10
        )
        dependent, equations, sample = search.dependent(order, ranks)
        others = np.setdiff1d(dependent, equations.pivots)
        if len(others) > 1:
            # Values can be rounded even if new values are not.
            steps, c = steps.copy(), others[steps[others] == 0]
            steps[c] = decimal_steps(full, c, precision)
            # The tolerance of columns of single precision includes their rounding.
            c = c[(steps[c] == 0) & (precision[c] <= EPS)]
            steps[c] = single_precision_steps(full, c)
            if steps[others].any():
                free = np.setdiff1d(columns, equations.pivots)
                if sample is None:
                    sample = search.sample(order)
                near = search.near_equations(sample, free, others, ranks, steps)
    elif c >= 2:
        equations = _sums(rows, bounds, columns, shape, ranks, precision)
    return dependent, equations, near


def has_range(least, most):
    """Check which columns (D,) have a range that can be squared and divided by."""
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.subtract(most, least, dtype=np.float64)
    return (width > 1e-100) & (width < 1e100)


def _complete_part(rows):
    """Return columns (c,) that vary, rows (m, D) without gaps in them, and a row mask.

    Columns with the most gaps are left out first, until the rows are at least twice the
    columns. The gaps of the remaining rows are filled with 0.
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
        return columns[:0], rows, complete
    columns = columns[has_range(*column_bounds(some_columns(rows, columns)))]
    return columns, rows, complete


class _Search(NamedTuple):
    """The search for equalities in a sample of rows, which all rows confirm.

    Attributes
    ----------
    rows : ndarray of shape (n, D)
    full : ndarray of shape (m, D)
        The rows without gaps in the columns.
    complete : ndarray of bool of shape (n,)
        The mask of the rows without gaps.
    columns : ndarray of int of shape (c,)
        The columns that an equality can contain.
    precision : ndarray of shape (D,)
    most_left : float
        Largest share of the variance of a nearly determined column that the other
        columns do not explain.
    """

    rows: np.ndarray
    full: np.ndarray
    complete: np.ndarray
    columns: np.ndarray
    precision: np.ndarray
    most_left: float

    def sample(self, order):
        """Return the indices of the random rows that propose equalities."""
        size = max(1000, 4 * len(self.columns))
        return sample_with_bounds(self.full, self.columns, order, size)

    def dependent(self, order, ranks):
        """Return the dependent columns, the exact equations, and the sample.

        A column is in an equality if the other columns explain nearly all of its
        variance. The unexplained share is ``1 / (C^-1)_cc``, where C are the
        correlations of a sample of the rows. Rows that violate an exact equality join
        the sample, until all rows confirm the remaining equalities. The sample is None
        if half of the rows suffice to exclude exact equalities.
        """
        columns, size = self.columns, max(1000, 2 * len(self.columns))
        few, precision = order[:size], self.precision[columns]
        least, most = column_bounds(some_columns(self.full[few], columns))
        rare = columns[least == most]
        if len(rare):
            few = sample_with_bounds(self.full, rare, order, size)
        left = unexplained_if_independent(self.full, few, columns, precision)
        if left is not None:
            equations = no_equations(self.rows.shape[1])
            return columns[left <= self.most_left], equations, None
        factors, equations, sample = self._exact(self.sample(order), ranks)
        n, root = len(sample), factors.root
        diagonal = n * np.einsum("cq,cq->c", root, root)
        is_exact = equations.coefficients[:, columns].any(axis=0)
        dependent = (1 / diagonal <= self.most_left) | is_exact
        unsure = np.flatnonzero(dependent & ~is_exact)
        if len(unsure) and n < len(self.full):
            others = n * (root @ root[unsure].T) / diagonal[unsure]
            last = order[-max(1, _PRODUCTS // others.size) :]
            fresh = self.full[np.ix_(last, columns)]
            fresh = (fresh - fresh[0]) / factors.spread
            among = fresh, np.arange(len(columns)), others, unsure
            dependent[unsure] = self._are_near(*among)
        return columns[dependent], equations, sample

    def _exact(self, sample, ranks):
        """Return factors of a sample, the exact equations, and the sample.

        Rows that violate an exact equality join the sample, until all rows confirm the
        remaining equalities.
        """
        columns, far = self.columns, sample[:0]
        precision = self.precision[columns]
        while True:
            sample = np.append(sample, far)
            part = self.full[np.ix_(sample, columns)].astype(np.float64, copy=False)
            factors = _Factors.of(part, precision)
            if not factors.left.size:
                return factors, no_equations(self.rows.shape[1]), sample
            found = _exact_in(part, factors, precision, ranks[columns])
            equations, far = self._confirmed(*found, ranks == 2)
            far = np.setdiff1d(far, sample)
            if not len(far):
                return factors, equations, sample

    def _confirmed(self, basis, values, pivots, is_binary):
        """Return the equations that all rows satisfy, and rows that violate others."""
        used = np.flatnonzero(basis.any(axis=0))
        given, a = self.rows[:, self.columns[used]], basis[:, used]
        exact = LinearConstraints(a, values, values, range(len(used)))
        missed = np.abs(exact.residual(given))
        room = np.abs(a) @ _room(given, self.precision[self.columns[used]])
        holds = np.fmax.reduce(missed, axis=0) <= room
        # Few rows that differ from the others always satisfy an equality. Dummies of a
        # rare level need no evidence.
        of_numbers = a[:, ~is_binary[self.columns[used]]].any(axis=1)
        terms = (a != 0).astype(np.float32)
        n_differ = np.count_nonzero(_differ(given[self.complete]) @ terms.T, axis=0)
        holds &= (n_differ > np.count_nonzero(terms, axis=1)) | ~of_numbers
        inside = missed[self.complete]
        far = np.unique(inside.argmax(axis=0)[(inside > room).any(axis=0)])
        equations = np.zeros((len(basis), self.rows.shape[1]))
        equations[:, self.columns] = basis
        return Equations(
            equations[holds], values[holds], self.columns[pivots][holds]
        ), far

    def _are_near(self, rows, columns, combinations, dependent):
        """Check that combinations (c, k) leave little of dependent columns (k,).

        In the combinations, the dependent columns have the coefficient 1.
        """
        sums = squares = 0.0
        own, first = np.searchsorted(columns, dependent), rows[0]
        # Squares of large values would be rounded, but not squares of differences.
        for block in slices(len(rows), 1 + BLOCK_CELLS // len(columns)):
            cells = some_columns(
                np.subtract(rows[block], first, dtype=combinations.dtype), columns
            )
            values = np.hstack([cells @ combinations, cells[:, own]])
            sums = sums + values.sum(axis=0)
            squares = squares + np.square(values).sum(axis=0)
        variance = squares / len(rows) - np.square(sums / len(rows))
        left, of_column = np.split(variance, 2)
        return left <= self.most_left * of_column

    def near_equations(self, sample, columns, dependent, ranks, steps):
        """Return how dependent columns nearly follow other columns, the finest first.

        Each column is regressed on all columns (c,) that are no earlier pivots. The
        residual variance follows from the inverse correlations. An equation counts if
        the rounding of a column moves the dependent column by more than the residual,
        or if rounding alone explains the residual.
        """
        part = self.full[np.ix_(sample, columns)].astype(np.float64, copy=False)
        factors, n = _Factors.of(part, self.precision[columns]), len(sample)
        spread, inverse = factors.spread, n * (factors.root @ factors.root.T)
        steps, is_discrete, found = steps[columns], ranks[columns] > 0, []
        moves = np.where(is_discrete, steps, spread)
        usable = np.isin(columns, dependent) & (ranks[columns] != 2)
        # Single precision keeps the order the same under rounding.
        for p in np.argsort((steps / spread).astype(np.float32), kind="stable"):
            size = inverse[p, p]
            if not usable[p] or size * self.most_left < 1:
                continue
            follows = inverse[p] / size * spread[p] / spread
            residual = spread[p] / np.sqrt(size)
            matters = (np.abs(follows) * moves > 2 * residual) & is_discrete
            # Rounding to a step has a variance of a twelfth of its square.
            rounding = np.sqrt(np.square(follows * steps).sum() / 12)
            is_used = np.abs(follows) * spread > 2 * residual
            inverse = inverse - np.outer(inverse[:, p], inverse[p]) / size
            inverse[p] = inverse[:, p] = 0.0
            if matters.any() or residual <= 1.5 * rounding:
                found.append((p, follows, np.where(is_used, -follows, 0.0)))
        if found and n < len(self.full):
            pivots, left, _ = zip(*found, strict=True)
            pivots = columns[[*pivots]]
            among = self.full, columns, np.array(left).T, pivots
            found = [*compress(found, self._are_near(*among))]
        equations = []
        for p, _, follows in found:
            follows[p] = 0.0
            # Few rows that differ from the others nearly satisfy any equality.
            n_differ = np.count_nonzero(_differ(self.full[:, columns[p]]))
            if n_differ < 2 * np.count_nonzero(follows):
                continue
            coefficients = np.zeros(self.rows.shape[1])
            coefficients[columns] = follows
            equations.append((columns[p], coefficients))
        return equations


@with_errstate(over="ignore", invalid="ignore")
def unexplained_if_independent(rows, sample, columns, precision):
    """Compute the share (c,) of variance that other columns do not explain, or None.

    Single precision suffices if no exact equality is possible; otherwise, and for small
    tables, the result is None. Rows are converted one block at a time, so no copy of a
    wide table is needed.
    """
    n, c = len(sample), len(columns)
    if n * c <= BLOCK_CELLS:
        return None
    products, sums = np.zeros((c, c), np.float32, order="F"), np.zeros(c)
    center = unit = None
    for block in slices(n, 1 + 4 * BLOCK_CELLS // c):
        cells = some_columns(rows[sample[block]], columns)
        if center is None:
            kind = np.result_type(cells, np.float32)
            center = cells.mean(axis=0, dtype=float).astype(kind)
            unit = cells.std(axis=0).astype(np.float32)
            unit[unit == 0] = 1.0
        cells = (cells - center).astype(np.float32, copy=False)
        cells /= unit
        sums += cells.sum(axis=0)
        products = ssyrk(1.0, cells.T, beta=1.0, c=products, overwrite_c=True)
    mean = sums / n
    part = (np.sqrt(n) * mean).astype(np.float32)
    products -= np.outer(part, part)
    squares = products.diagonal().copy()
    # Single precision can overflow.
    if not (squares > 0).all():
        return None
    factor, failed = spotrf(products, overwrite_a=True)
    spread = np.sqrt(squares / n) * unit
    # No value is more than sqrt(n) standard deviations from the mean.
    farthest, eps = np.sqrt(n), np.maximum(precision, EPS)
    rounding = ROUNDINGS * eps * (np.abs(center + mean * unit) / spread + farthest)
    tol = np.clip(np.square(rounding + 2 * TOL * farthest).max(), _LEAST_LEFT, 0.01)
    if failed or not (np.square(np.diag(factor)) / squares).min() > tol:
        return None
    inverse, _ = strtri(factor, overwrite_c=True)
    # The residuals of the sample have n - c degrees of freedom.
    return n / ((n - c) * squares * np.einsum("cq,cq->c", inverse, inverse))


class _Factors(NamedTuple):
    """The inverse correlations of columns (c,), and the smallest residuals.

    Attributes
    ----------
    spread : ndarray of shape (c,)
        Standard deviations.
    root : ndarray of shape (c, c)
        ``root @ root.T`` is the inverse of the products of standardized columns.
    combinations : ndarray of shape (c, q)
        Combinations of standardized columns, each with a small residual.
    left : ndarray of shape (n, q)
        The residual of each combination in each row.
    """

    spread: np.ndarray
    root: np.ndarray
    combinations: np.ndarray
    left: np.ndarray

    @classmethod
    def of(cls, part, precision):
        """Factor the correlations of rows (n, c) without gaps.

        The Cholesky factor of the products identifies nearly dependent columns. Only
        the residuals of these columns are factored with the accuracy of a QR
        decomposition.

        An exactly dependent column is always among the nearly dependent columns. In
        double precision, its pivot is smaller than the tolerance, which exceeds the
        rounding of the columns. A table without nearly dependent columns therefore has
        no exact equality.
        """
        standard = part - part.mean(axis=0)
        spread = np.sqrt(np.einsum("nc,nc->c", standard, standard) / len(part))
        standard /= spread
        products, (n, c) = standard.T @ standard, standard.shape
        rounding = np.square(_room(part, precision) / spread).max()
        tol = n * np.clip(rounding, ALMOST, 0.01)
        factor, pivots, rank, _ = dpstrf(products, tol=tol)
        first, rest = np.split(pivots - 1, [rank])
        some = solve_triangular(factor[:rank, :rank], np.eye(rank))
        root, combinations = np.zeros((c, c)), np.zeros((c, len(rest)))
        root[first, :rank] = some
        if not len(rest):
            return cls(spread, root, combinations, standard[:, rest])
        others, given = standard[:, first], 0.0
        covariances = products[np.ix_(first, rest)]
        # The second pass removes the rounding errors of the first pass.
        for _ in range(2):
            given = given + some @ (some.T @ covariances)
            left = standard[:, rest] - others @ given
            covariances = others.T @ left
        combinations[rest, range(len(rest))], combinations[first] = 1.0, -given
        root[:, rank:] = combinations @ _root_of_rest(left)
        return cls(spread, root, combinations, left)


def _root_of_rest(left):
    """Return a root of the inverse of the products of residuals (n, q)."""
    size, one = np.linalg.norm(left, axis=0), np.sqrt(len(left))
    factor, near = np.diag(size), np.flatnonzero(size > TOL * one)
    factor[np.ix_(near, near)] = np.linalg.qr(left[:, near], mode="r")
    least = ROUNDINGS * EPS * one
    small = np.flatnonzero(np.abs(np.diag(factor)) < least)
    factor[small, small] = least
    return solve_triangular(factor, np.eye(len(size)))


def _sums(rows, bounds, columns, shape, ranks, precision):
    """Find sums of adjacent columns along each axis of a row."""
    d = rows.shape[1]
    if bounds is None:
        complete = ~np.isnan(some_columns(rows, columns)).any(axis=1)
        rows = rows[complete]
        bounds = observed_bounds(rows)
    # Fewer than three rows are no evidence of an equality.
    if len(rows) < 3:
        return no_equations(d)
    adjacent, sums = _AdjacentColumns.of(rows, *bounds, precision), []
    places = np.arange(d).reshape(shape or (d,))
    for axis in range(places.ndim):
        order = np.moveaxis(places, axis, -1).ravel()
        sums += adjacent.sums(order[np.isin(order, columns)])
    if not sums:
        return no_equations(d)
    spread = np.ones(d)
    spread[columns] = adjacent.spread[columns]
    coefficients, pivots = echelon(np.array(sums), spread, ranks)
    values = _constants(
        coefficients[:, columns], some_columns(rows, columns), precision[columns]
    )
    return Equations(coefficients, values, pivots)


# --- exact equalities -------------------------------------------------------------


def _room(rows, precision):
    """Return the rounding and the tolerance :data:`TOL` of the columns (D,) of rows."""
    return _room_within(*observed_bounds(rows), precision)


def _differ(rows):
    """Return the mask (n, c) of the cells that differ from the median of the column."""
    # The median of some rows is also the most frequent value, if there is one.
    return rows != np.median(rows[:: 1 + len(rows) // 256], axis=0)


def _room_within(low, high, precision):
    eps = np.maximum(precision, EPS)
    return TOL * (high - low) + ROUNDINGS * eps * np.maximum(np.abs(low), np.abs(high))


def _exact_in(part, factors, precision, ranks):
    """Return a basis (k, c) of equations of rows (n, c), their values and pivots.

    The basis is in reduced echelon form: each equality has a pivot column that is in no
    other equality. Pivots are chosen by ``ranks`` (c,), the lowest first, and then by
    the largest spread. For rank 1, the pivot is a column whose coefficient divides the
    other coefficients.
    """
    room, spread, width = _room(part, precision), factors.spread, np.ptp(part, axis=0)
    # Singular values are in units of the rounding of each combination.
    size = np.abs(factors.combinations).T @ (room / spread)
    _, singular, vectors = np.linalg.svd(np.linalg.qr(factors.left / size, mode="r"))
    basis = vectors[singular <= np.sqrt(len(part))] / size
    basis, pivots = basis @ factors.combinations.T / spread, []
    while True:
        basis, pivots = echelon(basis, spread, ranks)
        # A term within the rounding of the other terms is a rounding error.
        terms, rounding = np.abs(basis), np.abs(basis) @ room
        small = terms * (width + room) <= rounding[:, None]
        if not (small & (basis != 0)).any():
            break
        basis[small] = 0
        basis = basis[np.count_nonzero(basis, axis=1) > 1]
    for row in basis:
        row[:] = _readable(row, part, _room(part, 0))
    return basis, _constants(basis, part, precision), pivots


def _constants(basis, rows, precision):
    """Return the values (k,) of equations, as integers if rounding allows."""
    values = np.median(rows @ basis.T, axis=0)
    near = np.rint(values)
    size = np.abs(basis) @ np.maximum(*np.abs(observed_bounds(rows)))
    is_near = np.abs(values - near) <= max(1e-12, 4 * precision.max()) * size
    return np.where(is_near, near, values)


def echelon_of(system, spread, ranks):
    """Convert equalities that are given as constraints to :class:`Equations`."""
    a, b = system.coefficients, system.lower
    reduced, pivots = echelon(a, spread, ranks)
    factors = (reduced * spread) @ np.linalg.pinv(a * spread)
    return Equations(*(_near_integers(x) for x in (reduced, factors @ b)), pivots)


def _near_integers(values):
    """Return values, with integers where rounding explains the difference."""
    near = np.rint(values)
    return np.where(np.abs(values - near) <= 1e-12 * (1 + np.abs(near)), near, values)


def echelon(basis, spread, ranks):
    """Return the reduced echelon form of a basis (k, c), and its pivots (k,)."""
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
    return _integer_pivots(basis, pivots, ranks)


def _pivots(equations, ranks):
    """Choose a column for each dimension of the row space of equations (k, c).

    The pivot is the longest column of the remaining orthonormal basis, as in QR with
    column pivoting. This length does not depend on the basis, which rounding may
    rotate. Lengths that differ by less than a millionth count as equal; the last column
    of equal length is chosen, such as a total after its parts. All machines therefore
    choose the same pivots.
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


def _integer_pivots(basis, pivots, ranks):
    """Replace pivots of rank 1 by the columns with the smallest coefficients."""
    for k, column in enumerate(pivots):
        if ranks[column] != 1:
            continue
        in_others = np.delete(basis, k, axis=0).any(axis=0)
        usable = (basis[k] != 0) & (ranks == 1) & ~in_others
        usable[column] = True
        size = np.where(usable, np.abs(basis[k]), np.inf)
        # Sizes that differ by rounding are equal; the last of these columns is used.
        least = np.flatnonzero(size <= size.min() * (1 + TOL))[-1]
        if size[least] < size[column] * (1 - TOL):
            basis[k] /= basis[k, least]
            pivots[k] = least
    return basis, pivots


def _readable(row, rows, room):
    """Return coefficients as simple fractions, if the rows allow fractions.

    Fractions may miss the rows by 4 times as much as the coefficients, and by ``room``
    (c,). The rounding of single precision would allow fractions that agree by chance.
    """
    near = np.rint(row)
    # The search for a fraction is slow, and most coefficients are integers.
    for k in np.flatnonzero(np.abs(near - row) > ALMOST):
        near[k] = Fraction(row[k]).limit_denominator(1000)
    far = np.abs(near - row) > ALMOST * np.maximum(1, np.abs(row))
    near[far] = row[far]
    values = (rows - rows[0]) @ np.column_stack([near, row])
    missed = np.abs(values - np.median(values, axis=0)).max(axis=0)
    return near if missed[0] <= 4 * missed[1] + np.abs(near) @ room else row


# --- few rows: sums of adjacent columns -------------------------------------------


class _AdjacentColumns(NamedTuple):
    """The columns of rows (n, D), and the search for sums of adjacent columns.

    Attributes
    ----------
    rows : ndarray of shape (n, D)
    mean, spread, room : ndarray of shape (D,)
        Mean, range, and rounding of each column.
    codes : ndarray of shape (2, D)
        Two random combinations of the rows.
    precision : ndarray of shape (D,)
    """

    rows: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    room: np.ndarray
    codes: np.ndarray
    precision: np.ndarray

    @classmethod
    @with_errstate(over="ignore", invalid="ignore")
    def of(cls, rows, low, high, precision):
        """Compute the codes of rows; some columns can have missing cells."""
        n, d = rows.shape
        mean, codes = rows.mean(axis=0, dtype=np.float64), np.zeros((2, d))
        random = np.random.default_rng(0).standard_normal((2, n))
        # A copy of all rows would double the memory.
        for part in slices(n, 1 + BLOCK_CELLS // d):
            codes += random[:, part] @ (rows[part] - mean)
        room = _room_within(low, high, precision)
        return cls(rows, mean, high - low, room, codes, precision)

    def sums(self, columns):
        """Find equations (D,) of sums of adjacent columns (c,), which all vary.

        A sum is constant, or equals another column. Prefix sums of random combinations
        of the rows are compared, and the rows confirm the proposed equations.
        """
        if len(columns) < 2:
            return []
        codes, precision = self.codes[:, columns], self.precision[columns]
        until = np.concatenate([np.zeros((2, 1)), np.cumsum(codes, axis=1)], axis=1)
        # A sum has the rounding error of its largest term. Small tolerances find sums
        # of small values next to large values.
        size = max(np.abs(until).max(), np.abs(codes).max())
        shares = sorted({ROUNDINGS * EPS, TOL, max(TOL, ROUNDINGS * precision.max())})
        equations = []
        for share in shares:
            for start, stop, total in _sums_of_codes(until, codes, share * size):
                equation = np.zeros(len(self.mean))
                equation[columns[start:stop]] = 1
                if total is not None:
                    equation[columns[total]] = -1
                if self._is_confirmed(equation):
                    equations.append(equation)
        return equations

    def _is_confirmed(self, equation):
        """Check an equation (D,) on all rows, without its columns of tiny spread."""
        # A column smaller than the rounding of the largest column has no evidence.
        equation[self.spread <= self.room[equation != 0].max()] = 0
        part = np.flatnonzero(equation)
        values = (self.rows[:, part] - self.mean[part]) @ equation[part]
        return len(part) > 1 and np.abs(values).max() <= self.room[part].sum()


def _sums_of_codes(until, codes, tol):
    """Yield start, stop and total of sums; the total of a constant sum is None."""
    order = np.argsort(until[0], kind="stable")
    # Equal prefix sums enclose a constant sum.
    same = (np.abs(np.diff(until[:, order])) <= tol).all(axis=0)
    for p, q in np.sort(np.column_stack([order[:-1], order[1:]])[same]).tolist():
        if q - p >= 2:
            yield p, q, None
    # For parts after the total, until[stop] = until[total + 1] + code. For parts before
    # the total, until[start] = until[total] - code.
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
