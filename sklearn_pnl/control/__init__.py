"""Relations between columns, constraints and totals: what new rows must satisfy.

This package contains the tools for constraints and totals; its ``__all__`` is the
public interface. Read the modules in this order. ``column_values`` and
``value_support`` describe single columns. ``relations`` and ``equalities`` find the
relations that the training rows satisfy. ``constraints`` and ``totals`` read the
requests of a user. A ``feasible_set`` combines relations and constraints, and
``implied_equalities`` derives the equalities of rows with missing cells. ``projection``
moves single rows into the set, ``sum_projection`` moves sets of rows to totals,
``rounding`` rounds values, and ``audit`` checks the result. ``infeasible_requests``
explains requests that cannot be satisfied. ``base_rows`` chooses training rows near the
constraints and totals. ``adjust`` applies the projections to given rows. ``calibrate``
and ``rake`` compute ``weights`` and tables that have given totals.
"""

from .adjusting import adjust
from .audit import SampleReport
from .calibration import CalibrationError, CalibrationReport, calibrate, rake
from .constraints import ColumnConstraint, LinearConstraints
from .infeasible_requests import Infeasibility
from .relations import find_equalities
from .totals import column_total
from .value_support import ValueSupport

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
