"""Displays in scikit-learn's style: ``from_...`` computes and plots."""

from .images import ImageRowsDisplay
from .reports import SampleReportDisplay
from .samples import SampleComparisonDisplay

__all__ = ["ImageRowsDisplay", "SampleComparisonDisplay", "SampleReportDisplay"]
