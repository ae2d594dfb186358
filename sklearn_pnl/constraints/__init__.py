"""What rows must satisfy: equalities, orders, limits, constraints and totals.

*Equalities* are found in the training rows, *constraints* are asked of each row,
*totals* of a set of rows, and the *value support* is what values of a column can be.
"""

from .audit import Infeasibility, SampleReport
from .linear import CONSTRAINTS, ColumnConstraint, Constraint, LinearConstraints
from .structure import find_equalities
from .totals import column_total
from .value_support import ValueSupport

__all__ = [
    "CONSTRAINTS",
    "ColumnConstraint",
    "Constraint",
    "Infeasibility",
    "LinearConstraints",
    "SampleReport",
    "ValueSupport",
    "column_total",
    "find_equalities",
]
