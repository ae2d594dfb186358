"""Weights of rows and of cells that meet given totals: calibration and raking."""

from .calibration import CalibrationError, CalibrationReport, calibrate
from .raking import LabelledRaking, rake
from .totals import ColumnTotal, column_total

__all__ = [
    "CalibrationError",
    "CalibrationReport",
    "ColumnTotal",
    "LabelledRaking",
    "calibrate",
    "column_total",
    "rake",
]
