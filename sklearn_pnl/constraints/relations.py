"""What the columns of the training rows have in common, found once for all classes.

Columns that nearly follow from others (tied by an equality), pairs of columns of which
one is never above the other (orders), blocks of two-valued columns that go together,
and the limits of each column. New rows are drawn so that these hold (`lines.py`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse.csgraph import connected_components

from .._runtime.blocks import ends_of, slices
from .equalities import Equations, echelon, exact_equalities, sums_of_neighbors
from .linear import LinearConstraints

# A column is tied where the others leave at most this share of its variance: where rows
# are at least twice the columns, and where they are fewer, which chance cannot reach.
NEARLY, EXACTLY = 0.04, 1e-10
# Partial correlations below this link no two tied columns.
LINKED = 1e-3
# Columns among which orders are looked for at most; rows looked at before all are.
MOST_ORDERED, ROWS_OF_ORDERS = 500, 256
# Rows of which the share of variance is taken; all rows confirm it.
FACTORED = 1000


@dataclass(frozen=True)
class ColumnRelations:
    """Limits and relations of the columns (D,) of all training rows.

    Attributes
    ----------
    low, high : ndarray of shape (D,)
        Ends that new values may reach.
    least, most : ndarray of shape (D,)
        Ends of the values that were seen.
    steps : ndarray of shape (D,)
        What values are multiples of; 0 for any number.
    binary : ndarray of bool of shape (D,)
        Columns of two values: new rows take theirs from a parent.
    equal : ndarray of bool of shape (D,)
        Other columns that are in an equality, exact or nearly.
    orders : ndarray of int of shape (m, 2)
        Pairs of columns, the first of which is never above the second; two two-valued
        ones count as 0 and 1.
    blocks : ndarray of int of shape (n_binary,)
        Two-valued columns of one number have their cells from one parent.
    equations : Equations
        Equalities that hold exactly.
    """

    low: np.ndarray
    high: np.ndarray
    least: np.ndarray
    most: np.ndarray
    steps: np.ndarray
    binary: np.ndarray
    equal: np.ndarray
    orders: np.ndarray
    blocks: np.ndarray
    equations: Equations

    @cached_property
    def dependents(self):
        """Equalities about discrete columns, whose pivots are computed at the end."""
        discrete = (self.steps > 0) | self.binary
        about = (self.equations.coefficients[:, discrete] != 0).any(axis=1)
        return self.equations[about & ~self.binary[self.equations.pivots]]

    @cached_property
    def is_limited(self):
        """Whether numbers that may have any value have limits."""
        free = (self.steps == 0) & ~self.binary
        return bool(np.isfinite(self.low[free]).any())

    @cached_property
    def ordered(self):
        """Pairs (m, 2) of columns that are numbers, which the draw keeps in order."""
        return self.orders[~self.binary[self.orders].any(axis=1)]

    @cached_property
    def comparable(self):
        """Orders (m, 2) between the values themselves, where two are 0 and 1."""
        coded = self.binary & ((self.least != 0) | (self.most != 1))
        both = self.binary[self.orders].all(axis=1)
        return self.orders[~(both & coded[self.orders].any(axis=1))]

    @cached_property
    def tied(self):
        """Columns (D,) that move together: in an equality, or in an order."""
        tied = self.equal.copy()
        tied[self.ordered.ravel()] = True
        return tied

    @property
    def joined(self):
        """Columns (D,) that are taken from one row where rounding breaks relations."""
        joined = self.tied | self.binary
        joined[self.orders.ravel()] = True
        joined[self.dependents.columns] = True
        return joined

    def coded(self, rows):
        """Rows (n, D) with 0 and 1 in two-valued columns."""
        if not self.binary.any():
            return rows
        coded = rows.copy()
        b = self.binary
        with np.errstate(invalid="ignore"):
            coded[:, b] = np.where(
                np.isnan(rows[:, b]), np.nan, rows[:, b] > self.least[b]
            )
        return coded

    def off_values(self, rows):
        """Which rows (n,) have a third value in a column of two."""
        values, b = rows[:, self.binary], self.binary
        off = (values != self.least[b]) & (values != self.most[b])
        return (off & ~np.isnan(values)).any(axis=1)

    def broken(self, rows):
        """Which new rows (n,) leave limits or orders."""
        bad = ((rows < self.low) | (rows > self.high)).any(axis=1)
        flags = self.binary[self.orders].all(axis=1)
        for of_flags in np.unique(flags):
            # Two two-valued columns count as 0 and 1.
            p, q = self.orders[flags == of_flags].T
            values = self.coded(rows) if of_flags else rows
            bad |= (values[:, p] > values[:, q]).any(axis=1)
        return bad


def find_relations(
    rows, steps, *, shape=None, extrapolation=0.0, given=None, times=None, precision=0.0
):
    """:class:`ColumnRelations` of all training rows.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        NaN where a cell is missing.
    steps : ndarray of shape (D,)
        What values of a column are multiples of by their type; 0 for any number.
    shape : tuple of int or None
        Shape of a row, where it has several axes: then only sums along the axes and
        limits are looked for.
    extrapolation : float or None
        How far limits lie beyond the range of a column, as a share of it.
    given : Equations or None
        Equalities that are given; None looks for them.
    times : ndarray of bool of shape (D,) or None
        Columns of times, which are in no order with numbers.
    precision : float or ndarray of shape (D,)
        Unit roundoff of the types of the columns.
    """
    least, most = ends(rows)
    plain, d = shape is None, rows.shape[1]
    binary = _two_valued(rows, least, most) if plain else np.zeros(d, bool)
    low, high = limits(least, most, extrapolation, steps, binary)
    coded = rows
    if binary.any():
        coded = rows.copy()
        coded[:, binary] = (rows[:, binary] - least[binary]) / (most - least)[binary]
    linked, equations = None, given
    if given is None:
        precision = np.broadcast_to(precision, d)
        tied, linked, equations = _equalities(
            rows, coded, steps, binary, shape, precision
        )
    else:
        tied = given.coefficients.any(axis=0)
    orders = np.empty((0, 2), int)
    if plain:
        flags = np.flatnonzero(binary)
        zero_one = np.zeros(len(flags)), np.ones(len(flags))
        implications = flags[find_orders(coded[:, flags], *zero_one)]
        plain_orders = find_orders(rows, low, high, binary, times)
        orders = np.vstack([plain_orders, implications])
    blocks = _blocks(coded, binary, linked, orders)
    equal = tied & ~binary
    return ColumnRelations(
        low, high, least, most, steps, binary, equal, orders, blocks, equations
    )


def limits_alone(rows, steps, extrapolation):
    """:class:`ColumnRelations` of large sparse rows: limits, and nothing else."""
    d = rows.shape[1]
    ends = (rows.min(axis=0), rows.max(axis=0))
    least, most = (end.toarray().ravel().astype(np.float64) for end in ends)
    none = np.zeros(d, bool)
    low, high = limits(least, most, extrapolation, steps, none)
    orders, blocks = np.empty((0, 2), int), np.empty(0, int)
    own = low, high, least, most, steps, none, none, orders, blocks
    return ColumnRelations(*own, Equations.none(d))


def _equalities(rows, coded, steps, binary, shape, precision):
    """Columns in an equality, their links, and the equalities that hold exactly."""
    d = rows.shape[1]
    columns, whole = complete_part(coded)
    n, c = whole.shape
    tied, linked, equations = np.zeros(d, bool), None, Equations.none(d)
    if 2 <= c <= MOST_FACTORED and n >= c + 2:
        own, links = _linked_linearly(whole)
        tied[columns[own]] = True
        linked = np.zeros((d, d), bool)
        linked[np.ix_(columns, columns)] = links
        if own.any():
            complete = ~np.isnan(rows[:, tied]).any(axis=1)
            priority = np.where(binary, 2, np.where(steps > 0, 1, 0))
            part = rows if complete.all() else rows[complete]
            among = np.flatnonzero(tied)
            equations = exact_equalities(part, among, precision, priority)
    elif c >= 2:
        equations = _sums(rows, columns, shape, steps, binary, precision)
        tied = equations.coefficients.any(axis=0)
        if binary.any():
            linked = np.zeros((d, d), bool)
            for members in equations.coefficients != 0:
                linked[np.ix_(members, members)] = True
    return tied, linked, equations


def _sums(rows, columns, shape, steps, binary, precision):
    """Sums of columns that lie side by side, along each axis of a row."""
    d, found, whole = rows.shape[1], [], rows[:, columns]
    whole = whole[~np.isnan(whole).any(axis=1)]
    orders = [np.arange(d)]
    if shape is not None:
        places = np.arange(d).reshape(shape)
        orders = [np.moveaxis(places, a, -1).ravel() for a in range(len(shape))]
    for order in orders:
        order = np.searchsorted(columns, order[np.isin(order, columns)])
        for equation in sums_of_neighbors(whole[:, order], precision[columns[order]]):
            own = np.zeros(d)
            own[columns[order]] = equation
            found.append(own)
    if not found:
        return Equations.none(d)
    ranks = np.where(binary, 2, np.where(steps > 0, 1, 0))
    spread = np.ones(d)
    spread[columns] = np.ptp(whole, axis=0)
    coefficients, pivots = echelon(np.array(found), spread, ranks)
    values = np.median(whole @ coefficients[:, columns].T, axis=0)
    return Equations(coefficients, values, pivots)


# Cells of sparse rows beyond which they are not made dense as a whole: then neither
# equalities nor orders are looked for.
MOST_DENSE = 2**24
# Columns up to which equalities of any kind are looked for; of more, and of fewer rows
# than columns, sums of columns side by side.
MOST_FACTORED = 1000


def ends(rows):
    """Least and largest value (D,) of each column; NaN where all cells are missing."""
    least, most = (end.astype(np.float64) for end in ends_of(rows))
    if np.isnan(least).any():
        least, most = np.fmin.reduce(rows), np.fmax.reduce(rows)
    return least, most


def limits(least, most, extrapolation, steps, binary):
    """Ends (D,) that new values may reach: those seen, widened by a share of the range.

    Whole numbers and two-valued columns stay within what was seen.
    """
    if extrapolation is None:
        low, high = np.full_like(least, -np.inf), np.full_like(most, np.inf)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            room = extrapolation * most - extrapolation * least
            low, high = least - room, most + room
    discrete = (steps > 0) | binary
    low, high = np.where(discrete, least, low), np.where(discrete, most, high)
    empty = np.isnan(least)
    return np.where(empty, -np.inf, low), np.where(empty, np.inf, high)


def _two_valued(rows, least, most):
    """Columns of just two values."""
    two = least < most
    for part in (rows[:256], rows[256:]):
        c = np.flatnonzero(two)
        some = part[:, c] if len(c) < rows.shape[1] else part
        other = (some > least[c]) & (some < most[c])
        two[c] = ~other.any(axis=0)
    return two


# --- equalities -------------------------------------------------------------------


def complete_part(rows):
    """Columns that vary, and the rows (n, c) that have all of them.

    The columns with most gaps are left out first, until rows are twice the columns.
    """
    columns = np.arange(rows.shape[1])
    if np.isnan(rows).any():
        gaps = np.isnan(rows).sum(axis=0)
        for most in np.unique(gaps)[::-1]:
            columns = np.flatnonzero(gaps <= most)
            complete = ~np.isnan(rows[:, columns]).any(axis=1)
            if complete.sum() >= 2 * len(columns):
                break
        rows = rows[np.ix_(complete, columns)]
    if not len(rows):
        return columns[:0], rows[:, :0]
    low, high = ends_of(rows)
    varying = low < high
    if not varying.all():
        columns, rows = columns[varying], rows[:, varying]
    return columns, rows


def _linked_linearly(rows):
    """Columns (c,) of rows (n, c) that others give, nearly, and which are linked.

    A column is in an equality where the other columns leave little of its variance,
    ``1 / (C^-1)_cc`` of the correlations C of all rows.
    """
    n, c = rows.shape
    share = NEARLY if n >= 2 * c else EXACTLY
    part = rows[:: max(1, n // max(FACTORED, 4 * c))]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = part.mean(axis=0), part.std(axis=0)
    fine = np.isfinite(spread) & (spread > 0)
    mean, spread = np.where(fine, mean, 0), np.where(fine, spread, np.inf)
    standard = (part - mean) / spread
    if _are_independent(standard, share):
        return np.zeros(c, bool), np.zeros((c, c), bool)
    factor = np.linalg.qr(standard, mode="r")
    diagonal = np.diag(factor)
    least = np.finfo(float).eps * max(1.0, np.abs(diagonal).max())
    small = np.abs(diagonal) < least
    factor[small, small.nonzero()[0]] = least
    inverse = solve_triangular(factor, np.eye(c))
    precision = len(part) * (inverse @ inverse.T)
    diagonal = np.diag(precision)
    tied = (1 / diagonal <= share) & fine
    if tied.any() and len(part) < n:
        # Some rows told it; all are to confirm it.
        standard = (rows - mean) / spread
        left = (standard @ (precision[:, tied] / diagonal[tied])).var(axis=0)
        tied[tied] = left <= share * standard[:, tied].var(axis=0)
    size = np.sqrt(diagonal)
    links = (np.abs(precision) > LINKED * np.outer(size, size)) & np.outer(tied, tied)
    return tied, links


def _are_independent(standard, share):
    """Whether correlations, which round more than a QR, tell that none is tied."""
    correlations = standard.T @ standard / len(standard)
    try:
        factor = np.linalg.cholesky(correlations)
    except np.linalg.LinAlgError:
        return False
    inverse = solve_triangular(factor, np.eye(len(factor)), lower=True)
    unexplained = 1 / np.square(inverse).sum(axis=0)
    return bool(unexplained.min() > max(2 * share, 1e-6))


# --- orders -----------------------------------------------------------------------


def find_orders(rows, low, high, binary=None, times=None):
    """Pairs (m, 2) of columns, the first never above the second in any row.

    Only those whose limits overlap, so that a new row could break the order, of columns
    that are not identical, nor both ``binary`` (D,); of three in a row the two that
    give the third.
    """
    none = np.empty((0, 2), int)
    if not 2 <= rows.shape[1] <= MOST_ORDERED:
        return none
    varies = low < high
    may = (high[:, None] > low) & varies[:, None] & varies
    if binary is not None:
        may &= ~(binary[:, None] & binary)
    np.fill_diagonal(may, False)
    if times is not None:
        may &= times[:, None] == times
    # Between two-valued columns orders are implications, which blocks keep.
    first = rows[:: max(1, len(rows) // ROWS_OF_ORDERS)][:ROWS_OF_ORDERS]
    for some in slices(len(first), max(1, 2**15 // len(may) ** 2)):
        may &= ~(first[some, :, None] > first[some, None]).any(axis=0)
    p, q = np.nonzero(may)
    kept = np.zeros(len(p), bool)
    for part in slices(len(p), 64):
        first, second = rows[:, p[part]], rows[:, q[part]]
        kept[part] = ~(first > second).any(axis=0) & (first < second).any(axis=0)
    p, q = p[kept], q[kept]
    if len(p) > 2 and not np.isnan(rows).any():
        below = np.zeros(may.shape, np.float32)
        below[p, q] = 1
        direct = (below @ below)[p, q] == 0
        p, q = p[direct], q[direct]
    return np.column_stack([p, q])


# --- two-valued columns -----------------------------------------------------------


def _blocks(coded, binary, linked, orders):
    """Numbers (n_binary,) of the two-valued columns that go together.

    Those that an equality or an order links, that no row has on together, or all rows.
    """
    columns = np.flatnonzero(binary)
    if not len(columns):
        return columns
    on = np.nan_to_num(coded[:, columns])
    both, count = on.T @ on, on.sum(axis=0)
    together = (both == 0) | ((both == count) & (both == count[:, None]))
    if linked is not None:
        together |= linked[np.ix_(columns, columns)]
    p, q = np.searchsorted(columns, orders[binary[orders].all(axis=1)]).T
    together[p, q] = True
    return connected_components(together, directed=False)[1]


def follows(cells, labels):
    """Whether cells (n, b) are alike in all rows of each level of some category."""
    if labels is None:
        return False
    cells = np.nan_to_num(cells, nan=-np.inf)
    for levels in labels.T:
        first = np.unique(levels, return_index=True, return_inverse=True)
        if (cells == cells[first[1]][first[2].reshape(-1)]).all():
            return True
    return False


# --- in words ---------------------------------------------------------------------


def find_in_table(table):
    """Equalities that all rows of a table satisfy, as constraints on its numbers."""
    rows = table.numbers().astype(np.float64, copy=False)
    shape = None if len(table.shape) == 1 else table.shape
    relations = find_relations(
        rows, table.steps, shape=shape, times=table.times,
        precision=table.precision,
    )  # fmt: skip
    columns, whole = complete_part(rows)
    note = ""
    if len(whole) < len(columns) + 2 or len(columns) > MOST_FACTORED:
        note = (
            f"Of {len(whole)} complete rows with {len(columns)} columns that vary, "
            "only sums of neighbouring columns were looked for: two rows more than "
            f"columns, and up to {MOST_FACTORED} columns, tell others."
        )
    return as_constraints(relations, table, note)


def as_constraints(relations, table, note=""):
    """Equalities that hold exactly as :class:`LinearConstraints` about numbers."""
    own, width = relations.equations, relations.most - relations.least
    ends = own.coefficients, own.values, own.values
    ranges = np.where(np.isfinite(width), width, 0)
    return LinearConstraints(*ends, tuple(map(str, table.feature_names)), ranges, note)
