"""What the training rows of all classes have in common, as new rows are to have it."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from .._runtime.typing import Rows
from ..frames import read_table
from .feasible_set import TableReader, build_feasible_set
from .linear import LinearConstraints
from .relations import as_constraints, find_in_table


@dataclass(frozen=True)
class Structure:
    """Relations of the columns, what their values can be, and both in words.

    Attributes
    ----------
    table : Table
        Without its rows.
    relations : ColumnRelations
    support : ValueSupport or None
    """

    table: Any
    relations: Any
    support: Any

    @cached_property
    def equalities(self):
        """Equalities that hold exactly, as constraints; printed, in words."""
        return as_constraints(self.relations, self.table)

    @property
    def public_equalities(self):
        """The same about the columns of X, as its user counts them."""
        return about_columns(self.equalities, self.table)

    @cached_property
    def orders(self):
        """Names of pairs of columns, the first of which is never above the second."""
        names = self.table.column_names
        return [(names[p], names[q]) for p, q in self.relations.orders]

    def feasible_set(self, table, numbers):
        """:class:`FeasibleSet` of new rows like those (m, D) of a class."""
        relations = self.relations
        width = relations.most - relations.least
        is_flag = relations.binary & (relations.least == 0)
        # A column of one value has no other, whatever the extrapolation.
        low, high = (
            np.where(width == 0, relations.least, end)
            for end in (relations.low, relations.high)
        )
        return build_feasible_set(
            table, numbers, low=low, high=high,
            equalities=self.equalities, orders=relations.orders,
            steps=np.where(is_flag, width, relations.steps),
        )  # fmt: skip


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
    >>> from sklearn_pnl import find_equalities
    >>> parts = np.random.default_rng(0).gamma(1.0, size=(50, 2))
    >>> find_equalities(np.column_stack([parts, parts.sum(axis=1)]))
    1 equality of 3 features
      x2 = x0 + x1
    """
    table = read_table(TableReader(), X, missing=True)
    return about_columns(find_in_table(table), table)


def about_columns(system, table):
    """Constraints about the numbers of a table as such about the columns of X."""
    columns = range(prod(table.row_shape))
    names = tuple(map(str, table.names or (f"x{j}" for j in columns)))
    a = np.zeros((len(system), len(names)))
    a[:, table.columns] = system.coefficients
    ranges = np.ones(len(names))
    ranges[table.columns] = system.ranges
    values = system.lower + system.coefficients @ table.starts
    return LinearConstraints(a, values, values, names, ranges)


# --- cells that are no numbers to mix ---------------------------------------------


def filled(cells, support, relations):
    """Rows (m, D) with a number in every cell, and which cells are absent; or None.

    A missing cell, and a shared value (atom) that new rows take as it is, is no number
    to mix. Columns that move with others have no atoms.
    """
    absent = np.isnan(cells)
    free = ~(relations.joined)
    for column, values in (support.atoms if support is not None else {}).items():
        if free[column]:
            absent[:, column] |= np.isin(cells[:, column], values)
    if not absent.any():
        return cells, None
    rows = np.where(absent, np.nan, cells)
    lost = np.isnan(rows).all(axis=0)
    rows[:, lost] = 0
    # A middle value: near rows are near by their other cells.
    middle = np.nanpercentile(rows, 50, axis=0, method="lower")
    return np.where(np.isnan(rows), middle, rows), absent


def limits_of_patterns(cells, strata, relations):
    """Numbers (m,) of limits of rows, and these limits (n, 2, D); None for the usual.

    A row that has a cell only where some column counts more than 0 is mixed with such
    rows alone, and stays within their ends of the columns of whole numbers.
    """
    if not np.isnan(cells).any():
        return None, None
    limits, number = [(relations.low, relations.high)], np.zeros(len(cells), int)
    for rows, partners in strata:
        if rows is partners:
            ends = np.fmin.reduce(cells[rows]), np.fmax.reduce(cells[rows])
            is_narrower = (relations.steps > 0) & ~np.isnan(ends[0])
            number[rows] = len(limits)
            limits.append(np.where(is_narrower, ends, limits[0]))
    return number, np.array(limits)


def given_with_categories(cells, relations, labels):
    """Blocks of two-valued columns that are alike in each level of a category."""
    flags = np.nan_to_num(cells[:, relations.binary], nan=-np.inf)
    given = set()
    for levels in () if labels is None else labels.T:
        _, first, level = np.unique(levels, return_index=True, return_inverse=True)
        alike = (flags == flags[first][level.reshape(-1)]).all(axis=0)
        given |= {*relations.blocks} - {*relations.blocks[~alike]}
    return tuple(sorted(given))
