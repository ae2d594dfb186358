"""What rows must satisfy: limits, steps, equalities, orders, constraints."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .linear import LinearConstraints, read_constraints
from .relations import ends, find_in_table


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
    constraints : LinearConstraints
        What is asked of rows, for all of them or with a value a row.
    orders : ndarray of int of shape (m, 2)
        Pairs (p, q): column p is never above column q in the data.
    """

    names: tuple
    low: NDArray
    high: NDArray
    origin: NDArray
    ranges: NDArray
    steps: NDArray
    precision: NDArray
    equalities: LinearConstraints
    constraints: LinearConstraints
    orders: NDArray = field(default_factory=lambda: np.empty((0, 2), int))

    def system(self, orders=None, gaps=None):
        """Equalities, constraints and the orders of a mask (m,) as one system.

        Rows need not have what is about their ``gaps`` (n, D), if these are given.
        """
        system = replace(self.equalities.stack(self.constraints), ranges=self.ranges)
        if orders is not None and orders.any():
            p, q = self.orders[orders].T
            cells = np.eye(len(self.names))
            ends = np.zeros(len(p)), np.full(len(p), np.inf)
            below = LinearConstraints(cells[q] - cells[p], *ends, self.names)
            system = system.stack(below)
        return system if gaps is None else system.open_at(gaps)

    def take_rows(self, rows):
        """The set for some of the rows that constraints have values for."""
        return replace(self, constraints=self.constraints.take_rows(rows))


def build_feasible_set(
    table, numbers, *, low, high, equalities, steps, orders=None, constraints=None
):
    """Collect what new rows like those of a table must satisfy.

    Parameters
    ----------
    table : Table
    numbers : ndarray of shape (n, D)
        Of its rows.
    low, high : array-like of shape (D,)
        Limits of the columns of numbers, within those of their types.
    equalities, constraints : LinearConstraints
        About the numbers; None is no constraint.
    steps : ndarray of shape (D,)
        Steps of values.
    orders : ndarray of int of shape (m, 2), default=None

    Returns
    -------
    feasible_set : FeasibleSet
    """
    names = table.feature_names
    least, most = map(np.nan_to_num, ends(numbers))
    ranges = most - least
    low = np.maximum(low, table.type_ends[0])
    high = np.minimum(high, table.type_ends[1])
    precision = np.broadcast_to(table.precision, ranges.shape)
    equalities = replace(equalities, feature_names=names, ranges=ranges)
    constraints = constraints or LinearConstraints.empty(names)
    return FeasibleSet(
        names, low, high, least, ranges, steps, precision, equalities,
        replace(constraints, ranges=ranges),
        np.empty((0, 2), int) if orders is None else orders,
    )  # fmt: skip


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
        return find_in_table(table)
    system = read_constraints(equalities, table)
    if not system.is_equality.all() or np.ndim(system.lower) > 1:
        raise ValueError("equalities= are for all rows; intervals as constraints=.")
    least, most = map(np.nan_to_num, ends(table.numbers()))
    system = replace(system, ranges=most - least)
    rounding = 2 * table.precision * np.maximum(np.abs(least), np.abs(most))
    room = np.abs(system.coefficients) @ np.broadcast_to(rounding, least.shape)
    missed = system.violation(table.numbers()) - room / system.scale
    # What rows may miss, as a share of the range of the largest term.
    if missed.max(initial=0) > 1e-6:
        k = int(np.argmax(missed))
        raise ValueError(
            f"The rows do not satisfy {system.descriptions[k]!r}: they miss it by up "
            f"to {missed[k]:.1e} of the range."
        )
    return system
