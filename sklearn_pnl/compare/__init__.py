"""Compare new rows with the training rows that they were made from.

:func:`compare_samples` reads the rows (``rows``) and judges several criteria: distances
to training rows (``nearness``), statistics of features (``features``), and a classifier
of new and real rows (``detection``). The result of a criterion is a :class:`Finding`
with the value of the new rows, the baseline of real rows, a threshold and a status.
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
