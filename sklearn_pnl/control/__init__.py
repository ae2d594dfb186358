"""Requests of the user: constraints and totals of new rows, and of given rows.

This package contains the tools for constraints and totals; its ``__all__`` is the
public interface. Constraints are read by ``columns.constraints``. Read the modules in
this order. ``totals`` reads totals. A ``feasible_set`` combines the relations of the
columns with constraints. ``projection`` moves single rows into the set,
``sum_projection`` moves sets of rows to totals, and ``audit`` checks the result.
``infeasible_requests`` explains requests that cannot be satisfied. ``base_rows``
chooses training rows near the constraints and totals. ``adjust`` applies the
projections to given rows. ``calibrate`` and ``rake`` compute ``weights`` and tables
that have given totals.
"""

from ..columns.constraints import ColumnConstraint, Infeasibility, LinearConstraints
from ..columns.relations import find_equalities
from ..columns.value_support import ValueSupport
from .adjusting import adjust
from .audit import SampleReport
from .calibration import CalibrationError, CalibrationReport, calibrate, rake
from .totals import column_total

__all__ = [
    "CalibrationError",
    "CalibrationReport",
    "ColumnConstraint",
    "Infeasibility",
    "LinearConstraints",
    "SampleReport",
    "ValueSupport",
    "adjust",
    "calibrate",
    "column_total",
    "find_equalities",
    "rake",
]
