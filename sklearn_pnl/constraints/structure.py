"""What the training rows of all classes have in common, as new rows are to have it."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from .._runtime.threads import one_blas_thread
from .._runtime.typing import Rows
from ..frames import TableReader, read_table
from .feasible_set import build_feasible_set
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
