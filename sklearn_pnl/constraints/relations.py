"""What the columns of the training rows have in common, found once for all classes.

Columns that follow from others, exactly or nearly (equalities), pairs of columns of
which one is never above the other (orders), blocks of two-valued columns that go
together, and the limits of each column. New rows are drawn so that these hold
(`lines.py`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse.csgraph import connected_components

from .._runtime.blocks import ends_of
from ..geometry._arrays import slices, some_columns
from .equalities import (
    ROUNDINGS,
    TOL,
    Equations,
    echelon,
    exact_equalities,
    subsample,
    sums_of_neighbors,
)
from .linear import LinearConstraints

# Cells of sparse rows beyond which they are not made dense as a whole: then neither
# equalities nor orders are looked for.
MOST_DENSE = 2**24
# Columns up to which equalities of any kind are looked for; of more, and of fewer rows
# than columns, sums of columns side by side.
MOST_FACTORED = 1000
# Columns up to which orders are looked for.
MOST_ORDERED = 500


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
    in_equality : ndarray of bool of shape (D,)
        Columns, not of two values, that are in an equality, exact or nearly.
    orders : ndarray of int of shape (m, 2)
        Pairs of columns, the first of which is never above the second.
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
    in_equality: np.ndarray
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
    def tied(self):
        """Columns (D,) that move together: in an equality, or in an order."""
        tied = self.in_equality.copy()
        tied[self.ordered.ravel()] = True
        return tied

    @property
    def reset_together(self):
        """Columns (D,) that are taken from one row where rounding breaks relations."""
        columns = self.tied | self.binary
        columns[self.orders.ravel()] = True
        columns[self.dependents.columns] = True
        return columns

    def off_values(self, rows):
        """Which rows (n,) have a third value in a column of two."""
        values, b = rows[:, self.binary], self.binary
        off = (values != self.least[b]) & (values != self.most[b])
        return (off & ~np.isnan(values)).any(axis=1)

    def broken(self, rows):
        """Which new rows (n,) leave limits or orders."""
        p, q = self.orders.T
        bad = ((rows < self.low) | (rows > self.high)).any(axis=1)
        return bad | (rows[:, p] > rows[:, q]).any(axis=1)


def find_relations(
    rows,
    steps,
    *,
    shape=None,
    extrapolation=0.0,
    given=None,
    times=None,
    precision=0.0,
    with_orders=True,
):
    """:class:`ColumnRelations` of all training rows.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        NaN where a cell is missing.
    steps : ndarray of shape (D,)
        What values of a column are multiples of by their type; 0 for any number.
    shape : tuple of int or None
        Shape of a row, where it has several axes: then no orders and no two-valued
        columns are looked for, and of few rows sums along each axis.
    extrapolation : float or None
        How far limits lie beyond the range of a column, as a share of it.
    given : Equations or None
        Equalities that are given; None looks for them.
    times : ndarray of bool of shape (D,) or None
        Columns of times, which are in no order with numbers.
    precision : float or ndarray of shape (D,)
        Unit roundoff of the types of the columns.
    with_orders : bool
        Whether orders are looked for.
    """
    least, most = ends_of(rows)
    has_gaps = bool(np.isnan(least).any())
    if has_gaps:
        least, most = ends(rows)
    binary = np.zeros(len(least), bool)
    if shape is None:
        binary = _two_valued(rows, least, most)
    low, high = limits(least, most, extrapolation, steps, binary)
    flags = np.flatnonzero(binary)
    linked, equations = np.zeros((len(flags), len(flags)), bool), given
    if given is None:
        precision = np.broadcast_to(precision, binary.shape)
        varying = np.flatnonzero(least < most)
        columns, whole = complete_part(rows) if has_gaps else (varying, rows)
        ranks = np.where(binary, 2, np.where(steps > 0, 1, 0))
        involved, linked, equations = _equalities(
            rows, columns, whole, shape, ranks, precision
        )
    else:
        involved = given.coefficients.any(axis=0)
    orders = np.empty((0, 2), int)
    if shape is None and with_orders:
        orders = find_orders(rows, low, high, times)
    blocks = _blocks(rows[:, flags], least[flags], most[flags], linked)
    in_equality = involved & ~binary
    return ColumnRelations(
        low, high, least, most, steps, binary, in_equality, orders, blocks, equations
    )


def limits_alone(rows, steps, extrapolation):
    """:class:`ColumnRelations` of large sparse rows: limits, and nothing else."""
    ends = [end.toarray().ravel() for end in (rows.min(axis=0), rows.max(axis=0))]
    none = Equations.none(rows.shape[1])
    return find_relations(
        np.array(ends, float), steps, shape=none.coefficients.shape[1:],
        extrapolation=extrapolation, given=none,
    )  # fmt: skip


def ends(rows):
    """Least and largest value (D,) of each column; NaN where all cells are missing."""
    least, most = (end.astype(np.float64) for end in ends_of(rows))
    if np.isnan(least).any():
        least, most = np.fmin.reduce(rows), np.fmax.reduce(rows)
    return least, most


def _two_valued(rows, least, most):
    """Columns of just two values; 256 rows tell most of the others."""
    two = least < most
    for part in (rows[:256], rows[256:]):
        c = np.flatnonzero(two)
        two[c] = ~((part[:, c] > least[c]) & (part[:, c] < most[c])).any(axis=0)
    return two


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


# --- equalities -------------------------------------------------------------------


def _equalities(rows, columns, whole, shape, ranks, precision):
    """Columns in an equality, which flags it links, and those that hold exactly."""
    d, flags = rows.shape[1], np.flatnonzero(ranks == 2)
    n, c = len(whole), len(columns)
    involved, equations = np.zeros(d, bool), Equations.none(d)
    linked = np.zeros((len(flags), len(flags)), bool)
    if 2 <= c <= MOST_FACTORED and n >= c + 2:
        dependent, links, equations = _factored(rows, columns, whole, ranks, precision)
        involved[columns[dependent]] = True
        if dependent.any() and len(flags):
            inside = np.isin(flags, columns)
            at = np.searchsorted(columns, flags[inside])
            linked[np.ix_(inside, inside)] = links[np.ix_(at, at)]
    elif c >= 2:
        equations = _sums(rows, columns, shape, ranks, precision)
        involved = equations.coefficients.any(axis=0)
        members = (equations.coefficients[:, flags] != 0).astype(int)
        linked = members.T @ members > 0
    return involved, linked, equations


def complete_part(rows):
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
    """Which of some columns (c,) others give, nearly, which are linked, and equations.

    A column is in an equality where the other columns leave little of its variance:
    ``1 / (C^-1)_cc`` of it, C the correlations of a part of the rows. All rows confirm
    it.
    """
    n, c = len(whole), len(columns)
    # Wide enough for sums of rounded numbers; of few rows what chance cannot reach.
    most_left = 0.04 if n >= 2 * c else 1e-10
    part = some_columns(subsample(whole, c), columns)
    with np.errstate(over="ignore", invalid="ignore"):
        standard = part - part.mean(axis=0)
        spread = np.sqrt(np.einsum("nc,nc->c", standard, standard) / len(part))
    fine = np.isfinite(spread) & (spread > 0)
    standard[:, ~fine], spread[~fine] = 0, np.inf
    standard /= spread
    root = _root_of_inverse(standard)
    diagonal = len(part) * np.square(root).sum(axis=1)
    dependent = (1 / diagonal <= most_left) & fine
    if not dependent.any():
        return dependent, np.zeros((c, c), bool), Equations.none(rows.shape[1])
    inverse = len(part) * (root @ root.T)
    equations = exact_equalities(rows, columns[dependent], precision, ranks)
    # Those that hold exactly are confirmed.
    exact = equations.coefficients[:, columns].any(axis=0)
    unsure = np.flatnonzero(dependent & ~exact)
    if len(unsure) and len(part) < n:
        others = np.zeros((rows.shape[1], len(unsure)))
        others[columns] = inverse[:, unsure] / np.outer(spread, diagonal[unsure])
        variance = whole[:, columns[unsure]].var(axis=0) / spread[unsure] ** 2
        holds = (whole @ others).var(axis=0) <= most_left * variance
        if not holds.all():
            dependent[unsure[~holds]] = False
            equations = exact_equalities(rows, columns[dependent], precision, ranks)
    # Smaller partial correlations link no two columns.
    correlated = np.abs(inverse) > 1e-3 * np.sqrt(np.outer(diagonal, diagonal))
    return dependent, correlated & np.outer(dependent, dependent), equations


def _root_of_inverse(standard):
    """A root R (c, c), ``R @ R.T`` the inverse of the products of columns (n, c).

    Cholesky's factor of the products tells columns apart that others nearly give; only
    what these leave of them is factored as precisely as a QR would. What rounding
    leaves is in no relation: its products are chance.
    """
    products = standard.T @ standard
    factor, pivots, rank, _ = dpstrf(products, tol=1e-6 * len(standard))
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
        if len(near):
            factor[np.ix_(near, near)] = np.linalg.qr(left[:, near], mode="r")
        least = ROUNDINGS * np.finfo(float).eps * one
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
        return Equations.none(d)
    spread = np.ones(d)
    spread[columns] = np.ptp(whole, axis=0)
    coefficients, pivots = echelon(np.array(sums), spread, ranks)
    values = np.median(whole @ coefficients[:, columns].T, axis=0)
    return Equations(coefficients, values, pivots)


# --- orders -----------------------------------------------------------------------


def find_orders(rows, low, high, times=None):
    """Pairs (m, 2) of columns, the first never above the second in any row.

    Only those whose limits overlap, so that a new row could break the order, of columns
    that are not identical. Where no cell is missing, orders that follow from two others
    are left out.
    """
    if not 2 <= rows.shape[1] <= MOST_ORDERED:
        return np.empty((0, 2), int)
    varies = low < high
    may = (high[:, None] > low) & varies[:, None] & varies
    np.fill_diagonal(may, False)
    if times is not None:
        may &= times[:, None] == times
    # Most pairs are out after some rows; the few that are left are looked at in all.
    first = rows[:: max(1, len(rows) // 256)][:256]
    for block in slices(len(first), max(1, 2**15 // len(may) ** 2)):
        may &= ~(first[block, :, None] > first[block, None]).any(axis=0)
        if np.count_nonzero(may) <= len(may) / 8:
            break
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


def _blocks(flags, least, most, linked):
    """Numbers (b,) of the two-valued columns (n, b) that go together.

    Those that an equality links, or of which some combination of values is in no row.
    """
    b = flags.shape[1]
    if not b:
        return np.empty(0, int)
    # Single precision counts rows exactly up to 2 ** 24.
    has = np.hstack([flags == least, flags == most]).astype(np.float32)
    lacks = (has.T @ has == 0).reshape(2, b, 2, b).any(axis=(0, 2))
    return connected_components(lacks | linked, directed=False)[1]


# --- in words ---------------------------------------------------------------------


def find_in_table(table):
    """Equalities that all rows of a table satisfy, as constraints on its numbers."""
    rows = table.numbers().astype(np.float64, copy=False)
    shape = None if len(table.shape) == 1 else table.shape
    relations = find_relations(
        rows, table.steps, shape=shape, precision=table.precision, with_orders=False
    )
    return as_constraints(relations, table)


def as_constraints(relations, table):
    """Equalities that hold exactly as :class:`LinearConstraints` about numbers."""
    equations, width = relations.equations, relations.most - relations.least
    ranges = np.where(np.isfinite(width), width, 0)
    arrays = equations.coefficients, equations.values, equations.values
    return LinearConstraints(*arrays, table.feature_names, ranges)
