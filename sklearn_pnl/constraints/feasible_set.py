"""What rows must satisfy: limits, steps, equalities, orders, constraints."""

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .linear import LinearConstraints, read_constraints
from .relations import find_in_table

# What rows may miss of equalities that a user gives, as a share of their scale.
_GIVEN_TOLERANCE = 1e-6


@dataclass(frozen=True)
class FeasibleSet:
    """Limits, steps, equalities, orders and constraints of D columns of numbers.

    Parameters
    ----------
    names : tuple of str of length D
    low, high : ndarray of shape (D,)
        Limits; infinite for none.
    origin, ranges : ndarray of shape (D,)
        Least value and range of each column in the data; distances are in these units.
    steps : ndarray of shape (D,)
        What values are multiples of: 1 for whole numbers, .01 for cents, 0 for any.
    precision : ndarray of shape (D,)
        Unit roundoff of the type; 0 for whole-number types.
    equalities : LinearConstraints
        Equalities of the data.
    orders : ndarray of int of shape (m, 2)
        Pairs (p, q): column p is never above column q in the data.
    constraints : LinearConstraints
        What is asked of rows, for all of them or with a value a row.
    """

    names: tuple
    low: NDArray
    high: NDArray
    origin: NDArray
    ranges: NDArray
    steps: NDArray
    precision: NDArray
    equalities: LinearConstraints
    orders: NDArray = field(default_factory=lambda: np.empty((0, 2), int))
    constraints: LinearConstraints | None = None

    def __post_init__(self):
        if self.constraints is None:
            none = LinearConstraints.empty(self.names)
            object.__setattr__(self, "constraints", none)

    def system(self, orders=None):
        """Equalities, then constraints, then some of the orders, as one system."""
        both = replace(self.equalities.stack(self.constraints), ranges=self.ranges)
        if orders is None or not len(orders):
            return both
        a = np.zeros((len(orders), len(self.names)))
        each = np.arange(len(orders))
        a[each, orders[:, 0]], a[each, orders[:, 1]] = -1.0, 1.0
        ends = np.zeros(len(orders)), np.full(len(orders), np.inf)
        return both.stack(LinearConstraints(a, *ends, self.names))

    def take_rows(self, rows):
        """The set for some of the rows that constraints have values for."""
        return replace(self, constraints=self.constraints.take_rows(rows))


def build_feasible_set(
    table, *, low, high, equalities, steps, orders=None, constraints=None,
    n_rows=None, numbers=None,
):  # fmt: skip
    """Collect what new rows like those of a table must satisfy.

    Parameters
    ----------
    table : Table
    low, high : array-like of shape (D,)
        Limits of the columns of numbers, within those of their types.
    equalities : LinearConstraints
        Of the numbers, as :func:`resolve_equalities` returns them.
    steps : ndarray of shape (D,)
        Steps of values.
    orders : ndarray of int of shape (m, 2), default=None
    constraints : constraint or sequence of them, default=None
        As users give them.
    n_rows : int, default=None
        Number of rows that constraints with a value a row must have.
    numbers : ndarray of shape (n, D), default=None
        Rows, where the table is without them.

    Returns
    -------
    feasible_set : FeasibleSet
    """
    names = tuple(map(str, table.feature_names))
    numbers = table.numbers() if numbers is None else numbers
    least, most = _ends(np.asarray(numbers, dtype=np.float64))
    ranges = most - least
    low, high = (
        np.maximum(low, table.type_ends[0]),
        np.minimum(high, table.type_ends[1]),
    )
    read = read_constraints(constraints, table, n_rows)
    return FeasibleSet(
        names, low, high, least, ranges, np.asarray(steps, dtype=np.float64),
        np.broadcast_to(table.precision, ranges.shape),
        replace(equalities, feature_names=names, ranges=ranges),
        np.empty((0, 2), int) if orders is None else orders,
        replace(read, ranges=ranges),
    )  # fmt: skip


def _ends(numbers):
    """Least and greatest value (D,) of columns, 0 where all cells are missing."""
    ends = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    return tuple(map(np.nan_to_num, ends))


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
    names = tuple(map(str, table.feature_names))
    if equalities is None:
        return LinearConstraints.empty(names)
    if isinstance(equalities, str):
        return find_in_table(table)
    columns = table.names or [f"x{j}" for j in range(prod(table.row_shape))]
    given = [*map(str, getattr(equalities, "feature_names", columns))]
    plain = [f"x{j}" for j in range(len(given))]
    if given not in (plain, [*map(str, columns)]):
        raise ValueError(
            f"equalities= name the columns {given[:12]}, but X has {columns[:12]}."
        )
    system = read_constraints(equalities, table)
    if not system.is_equality.all() or np.ndim(system.lower) > 1:
        raise ValueError("equalities= are for all rows; intervals as constraints=.")
    numbers = np.asarray(table.numbers(), dtype=np.float64)
    least, most = _ends(numbers)
    system = replace(system, ranges=most - least)
    missed = np.fmax.reduce(np.abs(system.residual(numbers)), axis=0, initial=0.0)
    size = 2 * table.precision * np.maximum(np.abs(least), np.abs(most))
    room = np.abs(system.coefficients) @ np.broadcast_to(size, least.shape)
    missed = np.maximum(missed - room, 0) / system.scale
    if missed.max(initial=0) > _GIVEN_TOLERANCE:
        k = int(np.argmax(missed))
        raise ValueError(
            f"The rows do not satisfy {system.descriptions[k]!r}: they miss it by up "
            f"to {missed[k]:.1e} of the range."
        )
    return system


class TableReader(BaseEstimator):
    """What tables are read for where there is no estimator: words are categories."""

    def __init__(self, categorical_features="auto"):
        self.categorical_features = categorical_features
