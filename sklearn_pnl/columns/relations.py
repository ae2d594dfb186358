"""Find relations between the columns of training rows.

``find_relations`` searches for the bounds, the resolution, the equalities, the
inequalities and the binary columns of a table. ``find_equalities`` is the public
function that returns the equalities.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from .._utils.arrays import BLOCK_CELLS, slices, some_columns
from .._utils.blocks import observed_bounds, random_order
from .._utils.threads import one_blas_thread
from .._utils.typing import Rows
from .._utils.validation import check_ranges
from ..frames import TableReader, read_table
from .column_values import ColumnValues
from .constraints import ALMOST, TOL, LinearConstraints, read_constraints
from .discrete import (
    SeparateLevels,
    find_blocks,
    find_implied_values,
    find_levels,
    find_sparse_blocks,
    masks_of,
    move_to_donor,
)
from .equalities import echelon_of, search_equalities
from .value_support import find_atoms, find_resolution, find_value_support

# Largest number of columns of a table in which inequalities are found.
MOST_ORDERED = 500


@dataclass(frozen=True)
class ColumnRelations:
    """Relations between columns that were learned from the training rows.

    Attributes
    ----------
    columns : ColumnValues
        Types, bounds and steps of the columns.
    equalities : LinearConstraints
        Linear equalities that all training rows satisfy.
    pivots : ndarray of int of shape (k,)
        The column that each equality determines. Its coefficient is 1, and it is in no
        other equality.
    inequalities : ndarray of int of shape (m, 2)
        Pairs of columns; the first column never exceeds the second.
    distances : ndarray of shape (m,)
        Least difference of the columns of each order.
    blocks : ndarray of int of shape (n_binary,)
        Block of each binary column. New rows copy a block from one row. The donor
        gives block 0, together with the categories.
    in_equality : ndarray of bool of shape (D,)
        Columns that are not binary and are in an equality, exact or near.
    near : list of tuple
        Columns that are nearly linear functions of other columns, some of them
        discrete, with the coefficients (D,) of these functions.
    levels : SeparateLevels
        Categories and binary columns whose levels are not mixed.
    implied : dict of int to list
        Values of numeric columns that a category or a binary column implies.
    """

    columns: ColumnValues
    equalities: LinearConstraints
    pivots: NDArray
    inequalities: NDArray
    distances: NDArray
    blocks: NDArray
    in_equality: NDArray
    near: Any = ()
    levels: Any = SeparateLevels([], [])
    implied: Any = field(default_factory=dict)

    @classmethod
    def plain(cls, table, rows, steps, equalities, low, high):
        """Return relations of rows (n, D) with bounds, steps and equalities only."""
        none, no = np.empty(0, int), np.zeros(len(steps), bool)
        lowest, highest = table.type_bounds
        columns = ColumnValues(
            table,
            np.maximum(low, lowest),
            np.minimum(high, highest),
            *observed_bounds(rows),
            steps,
            no,
        )
        pairs = np.empty((0, 2), int)
        return cls(columns, equalities, none, pairs, np.empty(0), none, no)

    def of_rows(self, rows):
        """Return the relations in units of the ranges of some rows (m, D)."""
        return replace(self, columns=self.columns.of_rows(rows))

    def without_distances(self):
        """Return relations with inequalities whose two columns may be equal."""
        return replace(self, distances=np.zeros(len(self.inequalities)))

    @cached_property
    def is_dependent(self):
        """A mask (k,) of equalities with rounded columns, whose pivots come last."""
        rounded = (self.columns.steps > 0) | self.columns.binary
        # Near equalities make their columns follow rounded columns.
        rounded[[pivot for pivot, _ in self.near]] = True
        about = (self.equalities.coefficients[:, rounded] != 0).any(axis=1)
        return about & ~self.columns.binary[self.pivots]

    @cached_property
    def discrete(self):
        """A mask (D,) of columns that are binary, or that binary columns determine."""
        discrete = self.columns.binary.copy()
        for pivot, a in zip(self.pivots, self.equalities.coefficients, strict=True):
            others = np.setdiff1d(np.flatnonzero(a), pivot)
            discrete[pivot] |= self.columns.binary[others].all()
        return discrete

    @cached_property
    def is_ordered(self):
        """A mask (m,) of the inequalities without a binary column."""
        return ~self.columns.binary[self.inequalities].any(axis=1)

    @cached_property
    def ordered(self):
        """Pairs (k, 2) of columns that are not binary and stay in order."""
        return self.inequalities[self.is_ordered]

    @cached_property
    def tied(self):
        """A mask (D,) of columns that are not binary, in an equality or order."""
        tied = self.in_equality.copy()
        tied[self.ordered.ravel()] = True
        return tied

    @cached_property
    def linked(self):
        """A mask (D,) of columns that are tied or in a near equality."""
        linked = self.tied.copy()
        for _, coefficients in self.near:
            linked |= coefficients != 0
        return linked

    @property
    def has_relations(self):
        """Whether there is a relation between columns."""
        parts = self.equalities, self.inequalities, self.near, self.levels.ranges
        return bool(any(map(len, parts)) or self.tied.any())

    @cached_property
    def copies_atoms(self):
        """A mask (D,) of columns whose atoms are copied: no equality contains them."""
        columns = self.in_equality | self.columns.binary
        for _, coefficients in self.near:
            columns |= coefficients != 0
        dependent = self.equalities.coefficients[self.is_dependent]
        return ~(columns | dependent.any(axis=0))

    @cached_property
    def copied_values(self):
        """Values by column that new rows copy from the donor: atoms, implied values."""
        atoms, copied = self.columns.atoms, {}
        for column in np.flatnonzero(self.copies_atoms).tolist():
            values = {*atoms.get(column, ()), *self.implied.get(column, ())}
            if values:
                copied[column] = np.sort([*values])
        return copied

    def absent_cells(self, rows, missing):
        """Return the mask (m, D) of missing cells and copied values, or None.

        ``missing`` (m, D) is the mask of missing cells, or None.
        """
        absent = None if missing is None else missing.copy()
        for column, values in self.copied_values.items():
            absent = np.zeros(rows.shape, bool) if absent is None else absent
            absent[:, column] |= np.isin(rows[:, column], values)
        return absent if absent is not None and absent.any() else None

    @cached_property
    def rounding_of_inequalities(self):
        """Differences (m,) of the columns of an order that count as rounding."""
        columns = self.columns
        with np.errstate(over="ignore"):
            size = columns.ranges + np.maximum(
                np.abs(columns.least), np.abs(columns.most)
            )
        size = size * np.maximum(TOL, 4 * columns.table.precision)
        room, steps = (
            size[self.inequalities].max(axis=1),
            columns.steps[self.inequalities],
        )
        # Values on steps have smaller rounding errors than a step.
        steps = np.where((steps > 0).all(axis=1), ALMOST * steps.min(axis=1), np.inf)
        room = np.minimum(room, steps)
        return np.where(self.is_ordered, room, 0.0)

    def disorders(self, rows, gaps=None, room=0.0):
        """Return the mask (n, m) of violated inequalities of rows (n, D).

        Violations up to ``room`` do not count. Missing cells, ``gaps`` (n, D), violate
        no inequality.
        """
        if gaps is not None:
            rows = np.where(gaps, np.nan, rows)
        p, q = self.inequalities.T
        with np.errstate(over="ignore"):
            return rows[:, q] - rows[:, p] < self.distances - room

    def breaks(self, rows, rounding=False):
        """Return the mask (n,) of rows that are out of bounds or out of order.

        With ``rounding``, violations of an order by rounding do not count.
        """
        broken = self.columns.beyond(rows)
        if len(self.inequalities):
            room = self.rounding_of_inequalities if rounding else 0.0
            broken |= self.disorders(rows, room=room).any(axis=1)
        return broken

    @property
    def public_equalities(self):
        """The equalities on the columns of ``X``."""
        system, table = self.equalities, self.columns.table
        columns = range(prod(table.row_shape))
        names = tuple(map(str, table.names or (f"x{j}" for j in columns)))
        a, ranges = np.zeros((len(system), len(names))), np.ones(len(names))
        a[:, table.columns] = _of_times(system.coefficients, self.pivots, table)
        ranges[table.columns] = system.ranges
        values = system.lower + system.coefficients @ table.starts
        return LinearConstraints(a, values, values, names, ranges)

    @property
    def named_inequalities(self):
        """Pairs of names of columns; the first column never exceeds the second."""
        names = self.columns.table.column_names
        return [(names[p], names[q]) for p, q in self.inequalities]


def find_relations(
    table,
    value_support=None,
    extrapolation=0.0,
    equalities="auto",
    with_inequalities=True,
):
    """Find relations between the columns of all rows of a table.

    Parameters
    ----------
    table : Table
    value_support : "auto" or None
        "auto" searches for steps and atoms. None searches for neither.
    extrapolation : float or None
        Distance of the bounds from the range of a column, as a share of the range. None
        means no bounds.
    equalities : "auto", constraint, sequence of them, or None
        "auto" searches for equalities. None uses no equality.
    with_inequalities : bool
        Whether to search for inequalities.

    Returns
    -------
    relations : ColumnRelations
    """
    steps, support = table.steps, None
    if table.is_large:
        rows = csr_array(table.sparse_rows, dtype=np.float64)
        with_inequalities = False
        equalities = None if isinstance(equalities, str) else equalities
    else:
        rows = table.numbers()
    is_flat = len(table.shape) == 1
    if value_support is not None and is_flat and not table.is_large:
        support = find_value_support(rows, table)
        steps = support.steps
    least, most = observed_bounds(rows)
    check_ranges(least, most, table.column_names)
    order = None if table.is_large else random_order(rows)
    binary = _two_valued(rows, least, most, steps, order) & is_flat
    # Copies of atoms would make sparse rows dense.
    if support is not None and table.sparse_rows is None:
        support = replace(support, atoms=find_atoms(rows, np.flatnonzero(~binary)))
    width = most - least
    low, high = limits(least, most, extrapolation, table.steps, binary)
    names = table.feature_names
    sizes = np.where(binary, width, steps)
    dependent, equations, near = _equations_of(
        rows, table, equalities, order, sizes, binary, (least, most)
    )
    a, values, pivots = equations
    involved = a.any(axis=0)
    involved[dependent] = True
    inequalities = np.empty((0, 2), int)
    if is_flat and with_inequalities:
        # Constant columns are in no order, so their bounds are not widened.
        bounds = (np.where(least < most, bound, least) for bound in (low, high))
        inequalities = find_inequalities(rows, *bounds, table.scales, order)
    distances = least_distances(rows, inequalities, table.steps, extrapolation)
    distances[binary[inequalities].any(axis=1)] = 0
    columns = ColumnValues(
        table.without_rows(),
        low,
        high,
        least,
        most,
        np.where(binary & (least == 0), width, steps),
        binary,
        support,
    )
    relations = ColumnRelations(
        columns,
        LinearConstraints(a, values, values, names, np.nan_to_num(width, posinf=0)),
        pivots,
        inequalities,
        distances,
        np.zeros(np.count_nonzero(binary), int),
        involved & ~binary,
        near,
    )
    # A distance within the rounding of the columns cannot be preserved.
    is_known = distances > 4 * relations.rounding_of_inequalities
    relations = replace(relations, distances=np.where(is_known, distances, 0.0))
    return _with_discrete(_with_resolution(relations, rows), rows, table.labels, order)


def _equations_of(rows, table, equalities, order, sizes, binary, bounds):
    """Search equalities of rows (n, D), or read the given equalities.

    Returns
    -------
    dependent : list of int
        Columns that other columns determine, exactly or nearly.
    equations : tuple
        Coefficients, values and pivots of the exact equalities.
    near : list of tuple
        See :class:`ColumnRelations`.
    """
    if not isinstance(equalities, str):
        system = _given_equalities(equalities, table)
        ones = np.ones(rows.shape[1])
        return [], echelon_of(system, ones, ones), []
    return search_equalities(
        rows,
        None if table.has_missing else bounds,
        None if len(table.shape) == 1 else table.shape,
        np.where(binary, 2, np.where(sizes > 0, 1, 0)),
        table.precision,
        sizes,
        order,
    )


def _with_resolution(relations, rows):
    """Return relations with the resolution of the columns of rows (n, D).

    Each equality gives a column with the finest values. The column has no resolution if
    the values of the other columns do not lead to the resolution.
    """
    columns = relations.columns
    support, steps = columns.support, columns.steps
    sizes = np.where(columns.binary, columns.ranges, steps)
    if support is not None:
        # Binary and constant columns have no values between their values.
        numeric = np.flatnonzero(~columns.binary & (columns.ranges > 0))
        support = find_resolution(support, rows, numeric, relations.copies_atoms)
        sizes = np.where(columns.binary, sizes, steps * support.widths)
    a, pivots = relations.equalities.coefficients, relations.pivots.copy()
    stepped, moves = (steps > 0) & ~columns.binary, np.abs(a) * sizes
    # The distances of dates that are a month apart have no common divisor but the step.
    spacings = moves if support is None else np.abs(a) * support.spacings(sizes)
    usable = ~columns.binary & (np.count_nonzero(a, axis=0) == 1)
    for k in np.flatnonzero(stepped[pivots]):
        used = np.flatnonzero(a[k])
        finest = used[usable[used]]
        finest = finest[spacings[k, finest] <= spacings[k, finest].min() * (1 + TOL)]
        if pivots[k] not in finest:
            reach = np.abs(a[k, finest]) * columns.ranges[finest]
            pivots[k] = finest[np.argmax(reach)]
        if support is not None and stepped[pivots[k]]:
            support.calendars.pop(pivots[k], None)
            places = moves[k, used] / moves[k, pivots[k]]
            is_off = np.abs(places - np.rint(places)) > ALMOST
            if (is_off | (sizes[used] == 0)).any():
                support.widths[pivots[k]], support.origins[pivots[k]] = 1.0, 0.0
    lead = a[np.arange(len(a)), pivots]
    equalities = replace(
        relations.equalities,
        coefficients=a / lead[:, None],
        lower=relations.equalities.lower / lead,
        upper=relations.equalities.upper / lead,
    )
    columns = replace(columns, support=support).with_bounds_on_steps()
    return replace(relations, columns=columns, equalities=equalities, pivots=pivots)


def _with_discrete(relations, rows, labels, order):
    """Return relations with the blocks and levels of the rows (n, D) of all classes."""
    columns, binary = relations.columns, np.flatnonzero(relations.columns.binary)
    equations = relations.equalities.coefficients[:, binary]
    values = columns.least[binary], columns.most[binary]
    if order is None:
        blocks = find_sparse_blocks(rows[:, binary], *values, equations)
        return replace(relations, blocks=blocks)
    masks = masks_of(rows, binary, *values, has_missing=columns.table.has_missing)
    blocks = find_blocks(*masks, equations, order)
    implied = find_implied_values(rows, labels, columns, order)
    relations = replace(relations, implied=implied)
    missing = np.isnan(rows) if columns.table.has_missing else None
    absent = relations.absent_cells(rows, missing)
    levels = find_levels(rows, labels, columns, absent, blocks, order)
    keys = [] if labels is None else list(labels.T)
    for j, values in relations.copied_values.items():
        keys.append((rows[:, [j]] == values) @ np.arange(1, 1 + len(values)))
    blocks = move_to_donor(blocks, *masks, keys, order)
    return replace(relations, blocks=blocks, levels=levels)


# --- bounds -----------------------------------------------------------------------


def limits(least, most, extrapolation, steps, binary):
    """Return the bounds (D,) of new values, widened by a share of the range.

    Bounds of integers, times and binary columns are the observed bounds.
    """
    room = np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        if extrapolation is not None:
            room = extrapolation * most - extrapolation * least
            # The difference of two infinite products is NaN.
            room = np.where(least < most, room, 0.0)
        low, high = least - room, most + room
    discrete = (steps > 0) | binary
    return np.where(discrete, least, low), np.where(discrete, most, high)


# --- inequalities -----------------------------------------------------------------


def find_inequalities(rows, low, high, scales, order):
    """Find pairs (m, 2) of columns whose first column never exceeds the second.

    A pair needs equal ``scales`` (D,), different values, and bounds that overlap, so
    that a new row could violate the inequality. If no cell is missing, inequalities
    that follow from two other inequalities are left out.
    """
    varies = low < high
    c = np.flatnonzero(varies)
    if not 2 <= len(c) <= MOST_ORDERED:
        return np.empty((0, 2), int)
    if len(c) < len(varies):
        return c[
            find_inequalities(some_columns(rows, c), low[c], high[c], scales[c], order)
        ]
    may = (high[:, None] > low) & varies[:, None] & varies
    np.fill_diagonal(may, False)
    may &= scales[:, None] == scales
    # A few rows rule out most pairs; all rows check the remaining pairs.
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


def least_distances(rows, inequalities, steps, extrapolation):
    """Compute the least difference (m,) of the two columns of each order.

    For columns of floats, the difference is reduced by the share ``extrapolation``
    of its range; None reduces it to 0.
    """
    distances = np.zeros(len(inequalities))
    for part in slices(len(inequalities), 64):
        p, q = inequalities[part].T
        difference = rows[:, q] - rows[:, p]
        least = np.fmin.reduce(difference, axis=0)
        room = np.inf
        if extrapolation is not None:
            room = extrapolation * (np.fmax.reduce(difference, axis=0) - least)
        is_exact = (steps[inequalities[part]] > 0).all(axis=1)
        distances[part] = np.maximum(np.where(is_exact, least, least - room), 0)
    return distances


# --- binary columns ---------------------------------------------------------------


def _two_valued(rows, least, most, steps, order):
    """Return a mask of the binary columns.

    With fewer than three rows, no column counts as binary.
    """
    two = (least < most) & (rows.shape[0] > 2)
    if issparse(rows):
        c, x = rows.indices, rows.data
        two[c[(x > least[c]) & (x < most[c])]] = False
        has_zero = np.bincount(c, minlength=len(two)) < rows.shape[0]
        return two & ~(has_zero & (least < 0) & (most > 0))
    # Integers have no value between two neighbouring integers.
    unknown = np.flatnonzero(two & (most - least > steps))
    for part in (rows[order[:256]], rows):
        cells = some_columns(part, unknown)
        for block in slices(len(cells), 1 + BLOCK_CELLS // max(1, len(unknown))):
            x = cells[block]
            two[unknown] &= ~((x > least[unknown]) & (x < most[unknown])).any(axis=0)
        unknown = unknown[two[unknown]]
    return two


# --- equalities -------------------------------------------------------------------


@one_blas_thread()
def find_equalities(X: Rows) -> LinearConstraints:
    """Find linear equalities between columns that all rows satisfy exactly.

    New rows of :class:`~sklearn_pnl.PNLSampler` satisfy the same equalities. A column
    is in an equality if the other columns determine its values up to 1e-9 of its range.
    The search requires at least two more rows than columns, and at most 1,000 columns
    (constant columns do not count). An equality also requires more rows than columns in
    which one of its columns differs from the median, unless all its columns are binary:
    few such rows, as for pixels at the border of images, are no evidence. In other
    tables, the search finds only sums of adjacent columns that are constant, or that
    equal the column directly before or after the summed columns. Sparse tables with
    more than 2 ** 24 cells (without empty columns) are not searched.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, *shape)
        Rows. The search ignores categorical columns. If cells are missing,
        columns with the most missing cells are left out until at least twice as many
        complete rows as columns remain; incomplete rows are not used.

    Returns
    -------
    equalities : LinearConstraints
        Equalities on the columns of ``X``. The printed form is one formula per
        equality.

    See Also
    --------
    LinearConstraints : Several constraints as one matrix.
    PNLSampler : Generate new rows that satisfy the equalities.
    adjust : Move rows to constraints, with equalities preserved.

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
    return find_relations(table, with_inequalities=False).public_equalities


def _of_times(coefficients, pivots, table):
    """Convert coefficients (k, D) from the units of the table to times.

    Equalities that mix times and numbers keep their coefficients.
    """
    coefficients, units = coefficients.copy(), np.ones(len(table.columns))
    for j in np.flatnonzero(table.times):
        units[j] = table.time_scale(j)[1] / np.timedelta64(1, "s")
    for k in np.flatnonzero(~(coefficients[:, ~table.times] != 0).any(axis=1)):
        coefficients[k] *= units[pivots[k]] / units
    return coefficients


def resolve_equalities(equalities, table):
    """Return the equalities that a parameter ``equalities`` names.

    Parameters
    ----------
    equalities : "auto", constraint, sequence of them, or None
        "auto" searches for equalities between columns that all rows satisfy.
    table : Table

    Returns
    -------
    equalities : LinearConstraints

    Raises
    ------
    ValueError
        If given equalities are intervals, or rows do not satisfy the equalities.
    """
    if isinstance(equalities, str):
        return find_relations(table, with_inequalities=False).equalities
    return _given_equalities(equalities, table)


def _given_equalities(equalities, table):
    """Check equalities that a user gives; None stands for no equality."""
    if equalities is None:
        return LinearConstraints.empty(table.feature_names)
    system = read_constraints(equalities, table)
    if not system.is_equality.all() or np.ndim(system.lower) > 1:
        raise ValueError(
            "equalities must have equal bounds, the same for all rows; got intervals "
            "or one bound per row. Pass intervals as constraints=."
        )
    least, most = observed_bounds(table.numbers())
    system = replace(system, ranges=most - least)
    rounding = 2 * table.precision * np.maximum(np.abs(least), np.abs(most))
    room = np.abs(system.coefficients) @ rounding / system.scale
    missed = system.violation(table.numbers()) - room
    # The violation is a share of the range of the largest term.
    if missed.max(initial=0) > ALMOST:
        k = int(np.argmax(missed))
        raise ValueError(
            f"The rows violate the equality {system.descriptions[k]!r} by up to "
            f"{missed[k]:.1e} of the range of the largest term. Correct the rows, or "
            "leave out the equality."
        )
    return system
