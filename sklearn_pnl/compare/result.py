"""The result of a comparison: in print, in notebooks, as data frames."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from .._runtime.reports import TableReport
from .features import FeatureComparison
from .findings import FINE, Finding, summarise


@dataclass(frozen=True, eq=False, repr=False)
class SampleComparison(TableReport):
    """The result of :func:`compare_samples`.

    ``verdict`` names the faults of the new rows, ``findings`` gives the reasons, and
    ``print`` shows a line for each criterion: a value up to the threshold is fine, or
    down to it where the threshold is below the baseline. It is not a statement of
    privacy: nothing here bounds what others can learn about a person from new rows.

    Parameters
    ----------
    n_train, n_test : int
        Numbers of rows; ``n_test`` is 0 without ``X_test``.
    findings : tuple of Finding
        For each criterion the status, value, baseline, threshold and reason.
    features : FeatureComparison
        Numbers for each feature: ``names``, ``outside_range``, ``mean_difference``,
        ``std_ratio``, ``ks_statistic``, ``missing_share`` and ``train_missing_share``.
        Rows of n-D arrays are read flat: a feature a cell.
    correlation_features : ndarray of int of shape (n_correlated,)
        Features whose correlations are compared: all, or 200 of them.
    correlation_difference : ndarray of shape (n_correlated, n_correlated)
        Pearson correlations of new minus those of training rows; nan where a feature is
        constant in the latter. Where it is constant in new rows alone, they count as 0.
    distance : ndarray of shape (n_new,)
        From each new row to the closest training row, in training standard deviations.
    closest : ndarray of int of shape (n_new,)
        That training row.
    baseline_distance : ndarray of shape (n_test,), or (n_train,) without ``X_test``
        From each test row to the closest training row, or from each training row to
        the closest other one.
    fold_auc : ndarray of shape (n_folds,)
        Area under the ROC curve of the classifier in each fold; empty where the rows
        do not suffice for two folds.

    See Also
    --------
    compare_samples : New rows against real ones.
    sklearn_pnl.plotting.SampleComparisonDisplay : Draw a comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import compare_samples
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> comparison = compare_samples(X, X + 0.01, random_state=0)
    >>> comparison.distance.shape
    (60,)
    >>> comparison.verdict
    'copies'
    >>> comparison["close rows"].value
    1.0
    """

    _digits: ClassVar[int] = 3

    n_train: int
    n_test: int
    findings: tuple
    features: FeatureComparison
    correlation_features: np.ndarray
    correlation_difference: np.ndarray
    distance: np.ndarray
    closest: np.ndarray
    baseline_distance: np.ndarray
    fold_auc: np.ndarray

    @property
    def n_new(self) -> int:
        """Number of new rows."""
        return len(self.distance)

    @property
    def verdict(self) -> str:
        """The faults of the new rows; "fine" where all criteria had an answer.

        One or more of "copies", "members exposed", "out of range", "shifted", "spread
        changed", "correlations changed" and "distinguishable", separated by commas. If
        none, and rows are too few for any criterion, "too few rows to tell"; "fine,
        membership untested" without ``X_test``.
        """
        return summarise(self.findings)

    def __getitem__(self, criterion: str) -> Finding:
        """The finding of a criterion."""
        return {finding.criterion: finding for finding in self.findings}[criterion]

    def _title(self):
        test = f" and {self.n_test} test rows" if self.n_test else ""
        return (
            f"{self.n_new} new rows against {self.n_train} training rows{test}, "
            f"{len(self.features.names)} features: {self.verdict}"
        )

    def _columns(self):
        names = [field.name for field in fields(Finding) if field.name != "reason"]
        return {name: [getattr(f, name) for f in self.findings] for name in names}

    def _notes(self):
        return [
            *(f"{f.criterion}: {f.reason}." for f in self.findings if f.status != FINE),
            "This is not a statement of privacy: nothing here bounds what others can "
            "learn about a person from new rows.",
        ]
