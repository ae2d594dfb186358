"""New rows against the training rows that they were made from, criterion by criterion.

Each criterion is what was measured of new rows, what real rows show, the threshold up
to which it is fine, and a word: :mod:`~sklearn_pnl.compare.findings`. The measures are
in a module each, and know nothing of one another.
"""

from .comparison import compare_samples
from .features import FeatureComparison
from .findings import Finding
from .report import SampleComparison

__all__ = ["FeatureComparison", "Finding", "SampleComparison", "compare_samples"]
