"""What the columns of a table keep, and what is asked of new rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components

from .._utils.arrays import slices, some_columns
from .._utils.blocks import ends_seen, random_order
from .._utils.threads import one_blas_thread
from .._utils.typing import Rows
from .._utils.validation import check_ranges
from ..frames import TableReader, read_table
from .constraints import ALMOST, TOL, LinearConstraints, read_constraints
from .equalities import echelon_of, has_range, search_equalities
from .value_support import find_resolution, find_value_support, off_steps, on_steps

# Columns up to which orders are looked for.
MOST_ORDERED = 500
# Binary columns up to which those that are linked are told from others.
MOST_LINKED = 2048


@dataclass(frozen=True)
class Structure:
    """What the columns (D,) of rows keep, and what is asked of each new row.

    Of all training rows, or in the units of some (:meth:`of_rows`).

    Attributes
    ----------
    table : Table
        Names and types of the columns.
    low, high : ndarray of shape (D,)
        Ends that new values may reach; infinite for none.
    least, most : ndarray of shape (D,)
        Ends of the values that were seen, 0 of none; distances are in units of their
        range.
    steps : ndarray of shape (D,)
        What values are multiples of: 1 for whole numbers, .01 for cents, 0 for any.
    equalities : LinearConstraints
        Those that all rows satisfy.
    constraints : LinearConstraints
        What is asked of rows, for all of them or with a value a row.
    orders : ndarray of int of shape (m, 2)
        Pairs of columns, the first of which is never above the second.
    binary : ndarray of bool of shape (D,)
        Columns of two values: new rows take theirs from a parent.
    blocks : ndarray of int of shape (n_binary,)
        Two-valued columns of one number have their cells from one parent.
    in_equality : ndarray of bool of shape (D,)
        Columns, not of two values, that are in an equality, exact or nearly.
    pivots : ndarray of int of shape (k,)
        Column that each equality gives, with coefficient 1, which is in no other.
    support : ValueSupport or None
    near : list of tuple
        Columns that are nearly linear functions of discrete ones, with the
        coefficients (D,) by which they follow them.
    """

    table: Any
    low: NDArray
    high: NDArray
    least: NDArray
    most: NDArray
    steps: NDArray
    equalities: LinearConstraints
    constraints: LinearConstraints
    orders: NDArray
    binary: NDArray
    blocks: NDArray
    in_equality: NDArray
    pivots: NDArray
    support: Any = None
    near: Any = ()

    @classmethod
    def plain(cls, table, rows, steps, equalities, constraints, low, high):
        """Of rows (n, D) that keep limits, steps and equalities alone."""
        none, no = np.empty(0, int), np.zeros(len(steps), bool)
        lowest, highest = table.type_ends
        return cls(
            table, np.maximum(low, lowest), np.minimum(high, highest),
            *ends_seen(rows), steps, equalities, constraints, np.empty((0, 2), int),
            no, none, no, none,
        )  # fmt: skip

    def of_rows(self, rows):
        """What new rows like some (m, D) keep, in the units of these.

        A column of one value has no other, whatever the extrapolation.
        """
        has_one, (least, most) = self.least == self.most, ends_seen(rows)
        low, high = (np.where(has_one, self.least, e) for e in (self.low, self.high))
        return replace(self, low=low, high=high, least=least, most=most)

    def take_rows(self, rows):
        """The same for some of the rows that constraints have values for."""
        return replace(self, constraints=self.constraints.take_rows(rows))

    # --- columns and their units ----------------------------------------------------

    @property
    def is_whole(self):
        """Columns (D,) of whole-number types, which have no other values."""
        return (self.steps > 0) & (self.table.precision == 0)

    @cached_property
    def ranges(self):
        """Unit (D,) of each column: its range in the rows."""
        return self.most - self.least

    @cached_property
    def is_dependent(self):
        """Equalities (k,) about what is rounded: pivots are computed at the end."""
        rounded = (self.steps > 0) | self.binary
        # Others follow what is rounded.
        rounded[[pivot for pivot, _ in self.near]] = True
        about = (self.equalities.coefficients[:, rounded] != 0).any(axis=1)
        return about & ~self.binary[self.pivots]

    @cached_property
    def discrete(self):
        """Columns (D,) that are binary, or that an equality gives from binary ones."""
        discrete = self.binary.copy()
        for pivot, a in zip(self.pivots, self.equalities.coefficients, strict=True):
            others = np.setdiff1d(np.flatnonzero(a), pivot)
            discrete[pivot] |= self.binary[others].all()
        return discrete

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
    def has_relations(self):
        """Whether columns follow from others, or move with them."""
        parts = self.equalities, self.orders, self.near
        return bool(any(map(len, parts)) or self.tied.any())

    @property
    def atoms(self):
        """Values by column that many rows share, and new ones take as they are."""
        return {} if self.support is None else self.support.atoms

    @property
    def reset_together(self):
        """Columns (D,) that are taken from one row where rounding breaks relations."""
        columns = self.tied | self.binary
        columns[self.orders.ravel()] = True
        for _, coefficients in self.near:
            columns |= coefficients != 0
        dependent = self.equalities.coefficients[self.is_dependent]
        return columns | dependent.any(axis=0)

    # --- in words -------------------------------------------------------------------

    @property
    def public_equalities(self):
        """The equalities about the columns of X, as its user counts them."""
        system, table = self.equalities, self.table
        columns = range(prod(table.row_shape))
        names = tuple(map(str, table.names or (f"x{j}" for j in columns)))
        a, ranges = np.zeros((len(system), len(names))), np.ones(len(names))
        a[:, table.columns] = _of_times(system.coefficients, self.pivots, table)
        ranges[table.columns] = system.ranges
        values = system.lower + system.coefficients @ table.starts
        return LinearConstraints(a, values, values, names, ranges)

    @property
    def named_orders(self):
        """Names of pairs of columns, the first of which is never above the second."""
        names = self.table.column_names
        return [(names[p], names[q]) for p, q in self.orders]

    # --- rows -----------------------------------------------------------------------

    def weights(self, rows, fixed, offset=1.0):
        """Weights (n, D) of the squares of moves; 0 for fixed cells.

        A column without a range has the size of its values instead.
        """
        unit = np.where(self.ranges > 0, self.ranges, np.abs(rows))
        unit = np.where(unit > 0, unit, 1.0)
        # Not 0, so that no drawn value is stuck by its place.
        measure = np.maximum((rows - self.least) / unit + offset, 1e-6)
        return np.where(fixed, 0.0, measure * unit**2)

    def disorders(self, rows, gaps=None):
        """Which orders (n, m) rows (n, D) violate; ``gaps`` (n, D) violate none."""
        if gaps is not None:
            rows = np.where(gaps, np.nan, rows)
        p, q = self.orders.T
        return rows[:, p] > rows[:, q]

    def breaks(self, rows):
        """Which rows (n,) are beyond limits, or out of order."""
        is_beyond = ((rows < self.low) | (rows > self.high)).any(axis=1)
        return is_beyond | self.disorders(rows).any(axis=1)

    def may_break(self, rows):
        """Which sparse rows (n,) have a cell beyond limits, or off its steps."""
        x, c = rows.data, rows.indices
        off = (x < self.low[c]) | (x > self.high[c])
        stepped = np.flatnonzero(self.steps[c] > 0)
        off[stepped] |= off_steps(x[stepped], self.steps[c[stepped]]) > ALMOST
        first = np.searchsorted(rows.indptr, np.flatnonzero(off), side="right")
        return np.unique(first - 1)

    @property
    def has_resolution(self):
        """Whether a column has a resolution that is coarser than its steps."""
        return self.support is not None and bool((self.support.widths > 1).any())

    @property
    def sizes(self):
        """The distance (D,) of neighbouring values; 0 for columns without steps."""
        return self.steps if self.support is None else self.steps * self.support.widths

    def resolutions(self):
        """The structure, and the same without a resolution if there is one."""
        return [self, replace(self, support=None)] if self.has_resolution else [self]

    def rounded(self, values, columns, to=np.rint):
        """Round values (n, c) of columns on steps to the resolution of the columns."""
        grid = ()
        if self.support is not None:
            grid = self.support.widths[columns], self.support.origins[columns]
        return on_steps(values, self.steps[columns], to, *grid)

    def round_in_order(self, rows):
        """Round, in place, to the other side where rounding violates an order."""
        for p, q in self.ordered:
            wrong = rows[:, p] > rows[:, q]
            if not wrong.any():
                continue
            if self.steps[p] > 0:
                rows[wrong, p] = self.rounded(rows[wrong, q], p, np.floor)
            elif self.steps[q] > 0:
                rows[wrong, q] = self.rounded(rows[wrong, p], q, np.ceil)

    def restore(self, rows):
        """Rows (n, D), in place, whose dependent columns follow from the others.

        Where all of an equality are there.
        """
        for k in np.flatnonzero(self.is_dependent):
            a, pivot = self.equalities.coefficients[k], self.pivots[k]
            # Column by column: a product would round by the number of rows.
            follow = np.full(len(rows), self.equalities.lower[k])
            for column in np.setdiff1d(np.flatnonzero(a), pivot):
                follow -= a[column] * rows[:, column]
            follow[np.isnan(rows[:, pivot])] = np.nan
            np.copyto(rows[:, pivot], follow, where=~np.isnan(follow))

    def follow(self, rows, before):
        """Move, in place, what nearly follows from columns that changed ``before``."""
        # A missing cell changes nothing.
        change = np.nan_to_num(rows - before)
        for pivot, coefficients in reversed(self.near):
            value, has_steps = before[:, pivot].copy(), self.steps[pivot] > 0
            for column in np.flatnonzero(coefficients):
                value += coefficients[column] * change[:, column]
            rows[:, pivot] = self.rounded(value, pivot) if has_steps else value
            change[:, pivot] = np.nan_to_num(rows[:, pivot] - before[:, pivot])

    def split_limits(self, n):
        """Limits (n, D) of cells with constraints of one column; the set without these.

        Where a constraint contradicts the limits of its column, they cross.
        """
        low, high = (np.tile(end, (n, 1)) for end in (self.low, self.high))
        asked = self.constraints
        is_single = np.count_nonzero(asked.coefficients, axis=1) == 1
        for k in np.flatnonzero(is_single):
            j = int(np.flatnonzero(asked.coefficients[k])[0])
            ends = np.stack([asked.lower[..., k], asked.upper[..., k]])
            below, above = np.sort(ends / asked.coefficients[k, j], axis=0)
            low[:, j] = np.maximum(low[:, j], below)
            high[:, j] = np.minimum(high[:, j], above)
        return low, high, replace(self, constraints=asked.select(~is_single))

    def system(self, orders=None, gaps=None):
        """Equalities, constraints and the orders of a mask (m,) as one system.

        Rows need not have what is about their ``gaps`` (n, D), if these are given.
        """
        # Columns that are constant in a class keep their range in all rows.
        of_all = (
            self.ranges if self.equalities.ranges is None else self.equalities.ranges
        )
        units = np.where(self.ranges > 0, self.ranges, of_all)
        system = replace(self.equalities.stack(self.constraints), ranges=units)
        if orders is not None and orders.any():
            p, q = self.orders[orders].T
            cells = np.eye(len(self.steps))
            ends = np.zeros(len(p)), np.full(len(p), np.inf)
            below = LinearConstraints(cells[q] - cells[p], *ends, system.feature_names)
            system = system.stack(below)
        if gaps is None or not gaps.any():
            return system
        lacks = gaps @ (system.coefficients != 0).T
        lower = np.where(lacks, -np.inf, system.lower)
        return replace(system, lower=lower, upper=np.where(lacks, np.inf, system.upper))


def find_structure(
    table, value_support=None, extrapolation=0.0, equalities="auto", with_orders=True
):
    """What the columns of all rows of a table keep.

    Parameters
    ----------
    table : Table
    value_support : "auto" or None
        Whether steps and atoms are looked for.
    extrapolation : float or None
        How far limits lie beyond the range of a column, as a share of it.
    equalities : "auto", constraint, sequence of them, or None
    with_orders : bool
        Whether orders are looked for.

    Returns
    -------
    structure : Structure
    """
    steps, support = table.steps, None
    if table.is_large:
        rows = csr_array(table.sparse_rows, dtype=np.float64)
        value_support, with_orders = None, False
        equalities = None if isinstance(equalities, str) else equalities
    else:
        rows = table.numbers().astype(np.float64, copy=False)
    is_flat = len(table.shape) == 1
    if value_support is not None and is_flat:
        support = find_value_support(rows, table)
        steps = support.steps
    least, most = ends_seen(rows)
    check_ranges(least, most, table.column_names)
    order = None if table.is_large else random_order(rows)
    binary = _two_valued(rows, least, most, order) & is_flat
    width = most - least
    low, high = limits(least, most, extrapolation, steps, binary)
    dependent, near, names = [], [], table.feature_names
    if isinstance(equalities, str):
        ranks = np.where(binary, 2, np.where(steps > 0, 1, 0))
        dependent, equations, near = search_equalities(
            rows, None if table.has_missing else has_range(least, most),
            None if is_flat else table.shape, ranks, table.precision,
            np.where(binary, width, steps), order,
        )  # fmt: skip
    else:
        equations = echelon_of(resolve_equalities(equalities, table))
    a, values, pivots = equations
    involved = a.any(axis=0)
    involved[dependent] = True
    orders = np.empty((0, 2), int)
    if is_flat and with_orders:
        # A column of one value is in no order.
        ends = (np.where(least < most, end, least) for end in (low, high))
        orders = find_orders(rows, *ends, table.scales, order)
    structure = Structure(
        table.without_rows(), low, high, least, most,
        np.where(binary & (least == 0), width, steps),
        LinearConstraints(a, values, values, names, np.nan_to_num(width, posinf=0)),
        LinearConstraints.empty(names), orders, binary,
        _blocks(rows[:, binary], least[binary], most[binary], a[:, binary]),
        involved & ~binary, pivots, support, near,
    )  # fmt: skip
    return _with_resolution(structure, rows)


def _with_resolution(structure, rows):
    """A structure with the resolution of the columns of rows (n, D), if any is kept.

    Equalities go first: each gives a column of the finest values, which has no
    resolution if the values of the other columns do not lead to the resolution.
    """
    support, steps = structure.support, structure.steps
    sizes = np.where(structure.binary, structure.ranges, steps)
    if support is not None:
        support = find_resolution(support, rows, ~structure.reset_together)
        sizes = np.where(structure.binary, sizes, steps * support.widths)
    a, pivots = structure.equalities.coefficients, structure.pivots.copy()
    stepped, moves = (steps > 0) & ~structure.binary, np.abs(a) * sizes
    usable = ~structure.binary & (np.count_nonzero(a, axis=0) == 1)
    for k in np.flatnonzero(stepped[pivots]):
        columns = np.flatnonzero(a[k])
        finest = columns[usable[columns]]
        finest = finest[moves[k, finest] <= moves[k, finest].min() * (1 + TOL)]
        if pivots[k] not in finest:
            reach = np.abs(a[k, finest]) * structure.ranges[finest]
            pivots[k] = finest[np.argmax(reach)]
        if support is not None and stepped[pivots[k]]:
            places = moves[k, columns] / moves[k, pivots[k]]
            is_off = np.abs(places - np.rint(places)) > ALMOST
            if (is_off | (sizes[columns] == 0)).any():
                support.widths[pivots[k]], support.origins[pivots[k]] = 1.0, 0.0
    lead = a[np.arange(len(a)), pivots]
    equalities = replace(
        structure.equalities,
        coefficients=a / lead[:, None],
        lower=structure.equalities.lower / lead,
        upper=structure.equalities.upper / lead,
    )
    return replace(structure, equalities=equalities, pivots=pivots, support=support)


# --- limits -----------------------------------------------------------------------


def limits(least, most, extrapolation, steps, binary):
    """Ends (D,) that new values may reach: those seen, widened by a share of the range.

    Whole numbers and two-valued columns stay within what was seen.
    """
    room = np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        if extrapolation is not None:
            room = extrapolation * most - extrapolation * least
        low, high = least - room, most + room
    discrete = (steps > 0) | binary
    return np.where(discrete, least, low), np.where(discrete, most, high)


# --- orders -----------------------------------------------------------------------


def find_orders(rows, low, high, scales, order):
    """Pairs (m, 2) of columns, the first never above the second in any row.

    Only those whose limits overlap, so that a new row could break the order, of columns
    of one of the ``scales`` (D,) that are not identical. Where no cell is missing,
    orders that follow from two others are left out.
    """
    varies = low < high
    c = np.flatnonzero(varies)
    if not 2 <= len(c) <= MOST_ORDERED:
        return np.empty((0, 2), int)
    if len(c) < len(varies):
        return c[find_orders(some_columns(rows, c), low[c], high[c], scales[c], order)]
    may = (high[:, None] > low) & varies[:, None] & varies
    np.fill_diagonal(may, False)
    may &= scales[:, None] == scales
    # Most pairs are out after some rows; the few that are left are looked at in all.
    first = rows[order[:256]]
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


def _two_valued(rows, least, most, order):
    """Columns of just two values, which two rows say nothing of.

    256 random rows tell most of the others.
    """
    two = (least < most) & (rows.shape[0] > 2)
    if issparse(rows):
        c, x = rows.indices, rows.data
        two[c[(x > least[c]) & (x < most[c])]] = False
        has_zero = np.bincount(c, minlength=len(two)) < rows.shape[0]
        return two & ~(has_zero & (least < 0) & (most > 0))
    for part in (rows[order[:256]], rows):
        c = np.flatnonzero(two)
        two[c] = ~((part[:, c] > least[c]) & (part[:, c] < most[c])).any(axis=0)
    return two


def _blocks(flags, least, most, a):
    """Numbers (b,) of the two-valued columns (n, b) that go together.

    Those that one of the equalities ``a`` (k, b) links, or of which some combination of
    values is in no row. Of many columns rare values link nearly all, and all count as
    linked.
    """
    n, b = flags.shape
    if not b or b > MOST_LINKED:
        return np.zeros(b, int)
    if issparse(flags):
        # Of each column the value that is stored, and the other one, 0.
        stored = np.where(most != 0, most, least)[flags.indices]
        is_stored = (flags.data == stored).astype(float), flags.indices, flags.indptr
        has = csr_array(is_stored, flags.shape)
        both, one = (has.T @ has).toarray(), has.sum(axis=0)
        lacks = (both == 0) | (both == one) | (both == one[:, None])
        lacks |= both == one + one[:, None] - n
    else:
        # Single precision counts rows exactly up to 2 ** 24.
        has = np.hstack([flags == least, flags == most]).astype(np.float32)
        lacks = (has.T @ has == 0).reshape(2, b, 2, b).any(axis=(0, 2))
    members = (a != 0).astype(int)
    linked = members.T @ members > 0
    return connected_components(lacks | linked, directed=False)[1]


# --- equalities -------------------------------------------------------------------


@one_blas_thread()
def find_equalities(X: Rows) -> LinearConstraints:
    """Linear equalities of several columns that all rows satisfy exactly.

    Those that new rows of :class:`~sklearn_pnl.PNLSampler` keep: a column is in one if
    the other columns give it, to 1e-9 of its range. Rows are to be two more than the
    columns; of fewer rows neighbouring columns whose sum is constant, or the column
    before or behind them, are found.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, *shape)
        Rows. Categories are left out; rows with missing cells, and columns with most
        of them, too.

    Returns
    -------
    equalities : LinearConstraints
        About the columns of ``X``; printed, in words.

    See Also
    --------
    LinearConstraints : What is returned.
    PNLSampler : New rows that keep them.
    adjust : Rows moved to constraints, which keep them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.control import find_equalities
    >>> parts = np.random.default_rng(0).gamma(1.0, size=(50, 2))
    >>> find_equalities(np.column_stack([parts, parts.sum(axis=1)]))
    1 equality of 3 features
      x2 = x0 + x1
    """
    table = read_table(TableReader(), X, missing=True)
    return find_structure(table, with_orders=False).public_equalities


def _of_times(coefficients, pivots, table):
    """Coefficients (k, D) of times themselves, where numbers count their units.

    Equations about times and numbers have no such form, and stay as they are.
    """
    coefficients, units = coefficients.copy(), np.ones(len(table.columns))
    for j in np.flatnonzero(table.times):
        units[j] = table.time_scale(j)[1] / np.timedelta64(1, "s")
    for k in np.flatnonzero(~(coefficients[:, ~table.times] != 0).any(axis=1)):
        coefficients[k] *= units[pivots[k]] / units
    return coefficients


def resolve_equalities(equalities, table):
    """Equalities of the numbers of a table that a parameter ``equalities`` names.

    Parameters
    ----------
    equalities : "auto", constraint, sequence of them, or None
        "auto" searches for those of several columns that all rows satisfy.
    table : Table

    Returns
    -------
    equalities : LinearConstraints

    Raises
    ------
    ValueError
        If given ones are intervals, or rows do not satisfy them.
    """
    if equalities is None:
        return LinearConstraints.empty(table.feature_names)
    if isinstance(equalities, str):
        return find_structure(table, with_orders=False).equalities
    system = read_constraints(equalities, table)
    if not system.is_equality.all() or np.ndim(system.lower) > 1:
        raise ValueError("equalities= are for all rows; intervals as constraints=.")
    least, most = ends_seen(table.numbers())
    system = replace(system, ranges=most - least)
    rounding = 2 * table.precision * np.maximum(np.abs(least), np.abs(most))
    room = np.abs(system.coefficients) @ rounding / system.scale
    missed = system.violation(table.numbers()) - room
    # What rows may miss, as a share of the range of the largest term.
    if missed.max(initial=0) > ALMOST:
        k = int(np.argmax(missed))
        raise ValueError(
            f"The rows do not satisfy {system.descriptions[k]!r}: they miss it by up "
            f"to {missed[k]:.1e} of the range."
        )
    return system
