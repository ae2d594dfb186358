"""Compare new rows with the training rows that they were made from, by criterion.

Each criterion is a value measured on new rows, the baseline that real rows show, the
threshold up to which it is fine, and a status: :mod:`~sklearn_pnl.compare.findings`.
"""

from .comparison import SampleComparison, compare_samples
from .display import SampleComparisonDisplay
from .features import FeatureComparison
from .findings import Finding

__all__ = [
    "FeatureComparison",
    "Finding",
    "SampleComparison",
    "SampleComparisonDisplay",
    "compare_samples",
]
