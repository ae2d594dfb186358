"""Compare new rows with the training rows from which they were made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import validate_params

from .._utils.reports import TableReport
from .._utils.threads import one_blas_thread
from .._utils.typing import Rows, Seed
from .._utils.validation import TWO_OR_MORE, InstanceWith, as_random_state
from . import features, nearness
from .detection import detect
from .features import FeatureComparison
from .findings import FINE, Finding, summarise
from .rows import read_samples


@dataclass(frozen=True, eq=False, repr=False)
class SampleComparison(TableReport):
    """The result of :func:`compare_samples`.

    ``verdict`` names the faults of the new rows, and ``findings`` gives the reasons.
    ``print`` shows one line per criterion. A value is fine if it is at most the
    threshold. If the threshold is below the baseline, the threshold is a lower bound,
    and a value is fine if it is at least the threshold. The comparison does not
    measure privacy: no criterion bounds the information about a person in new rows.

    Parameters
    ----------
    n_train, n_new, n_test : int
        Numbers of rows; ``n_test`` is 0 without ``X_test``.
    findings : tuple of Finding
        Status, value, baseline, threshold and reason of each criterion.
    features : FeatureComparison
        Statistics of each feature: ``names``, ``outside_range``, ``mean_difference``,
        ``std_ratio``, ``ks_statistic``, ``missing_share`` and ``train_missing_share``.
        Rows of n-D arrays are read flat, with one feature per cell.
    correlation_features : ndarray of int of shape (n_correlated,)
        Indices of the features whose correlations are compared, at most 200.
    correlation_difference : ndarray of shape (n_correlated, n_correlated)
        Pearson correlations of new rows minus correlations of training rows. The value
        is nan if a feature is constant in the training rows. If a feature is constant
        only in the new rows, its correlations in the new rows count as 0.
    compared : ndarray of int of shape (n_compared,)
        Indices of the new rows whose distances were computed: all rows, or a random
        subset of 10,000.
    distance : ndarray of shape (n_compared,)
        Distance from each compared row to the closest training row, in training
        standard deviations.
    closest : ndarray of int of shape (n_compared,)
        Index of the closest training row of each compared row.
    baseline_distance : ndarray of shape (n_baseline,)
        Distance from test rows to the closest training row or, without ``X_test``, from
        training rows to the closest other training row, for at most 10,000 random rows.
    fold_auc : ndarray of shape (n_folds,)
        Area under the ROC curve of the classifier in each fold; empty if there are too
        few rows for two folds.

    See Also
    --------
    compare_samples : Compare new rows with training rows.
    sklearn_pnl.compare.SampleComparisonDisplay : Plot a comparison.

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
    n_new: int
    n_test: int
    findings: tuple
    features: FeatureComparison
    correlation_features: np.ndarray
    correlation_difference: np.ndarray
    compared: np.ndarray
    distance: np.ndarray
    closest: np.ndarray
    baseline_distance: np.ndarray
    fold_auc: np.ndarray

    @property
    def verdict(self) -> str:
        """The faults of the new rows, or "fine".

        The faults are "copies", "members exposed", "out of range", "shifted", "spread
        changed", "correlations changed" and "distinguishable", separated by commas.
        Without a fault, the verdict is "too few rows to tell" if a criterion needs more
        rows, and "fine, membership untested" without ``X_test``.
        """
        return summarise(self.findings)

    def __getitem__(self, criterion: str) -> Finding:
        """Return the finding of a criterion."""
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
            "The comparison does not measure privacy: no criterion bounds the "
            "information about a person in new rows.",
        ]


@validate_params(
    {
        "classifier": [
            InstanceWith(["fit", "predict_proba"]),
            InstanceWith(["fit", "decision_function"]),
            None,
        ],
        "cv": [TWO_OR_MORE],
        "max_samples": [TWO_OR_MORE],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [Integral, None],
    },
    prefer_skip_nested_validation=False,
)
@one_blas_thread()
def compare_samples(
    X: Rows,
    X_new: Rows,
    *,
    X_test: Rows | None = None,
    classifier: Any = None,
    cv: int = 5,
    max_samples: int = 2000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> SampleComparison:
    """Compare new rows with the training rows from which they were made.

    The report gives each criterion a status. Distances are computed from a row to the
    closest row of another sample, with every feature divided by its training standard
    deviation. The criteria are:

    - **Copies.** "exact copies" is the share of new rows that equal a training row. If
      real rows never repeat and a column has continuous values, a single copy is a
      fault. "close rows" is the share of new rows that are closer to a training row
      than a quarter of the median baseline distance. The baseline is the distance from
      the rows of ``X_test`` to the closest training row or, without ``X_test``, from
      each training row to the closest other training row.
    - **Membership.** "membership" is the AUC of an attack that classifies rows as
      training rows if they are close to a new row. The AUC is 0.5 if new rows do not
      reveal the training rows. The criterion requires ``X_test``.
    - **Support.** "ranges" is the largest share, over the features, of new values
      outside the training range.
    - **Features.** "location" compares means, "spread" compares standard deviations,
      and "correlations" compares correlations. Missing cells are compared by the
      classifier, and by the shares in ``features``.
    - **Detection.** "detection" is the cross-validated AUC of a classifier that
      separates new rows from the rows of ``X_test``. Without ``X_test``, the classifier
      separates new rows from the training rows, which is more lenient.

    A value is a fault if its distance from the baseline exceeds both of two tolerances:
    a fixed negligible difference, and the sampling error for the given numbers of rows.
    The threshold is the baseline plus or minus the larger tolerance. For correlations,
    the sampling error is measured on 20 random splits of ``X`` and ``X_test``, and the
    threshold is the root of the sum of the squares of both. ``findings`` gives each
    threshold with its reason. If every possible value is below the threshold, the
    status is "too few rows to tell".

    Numeric values can be missing (NaN). Features are compared over the values that are
    not missing. For distances and for the classifier, missing values are replaced by
    the median of the training rows, and an indicator feature is added for each column
    with missing values.

    The comparison does not measure privacy. No criterion bounds the information about a
    person in new rows.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_train, ...)
        Training rows from which the new rows were made; for a sampler, the rows of one
        class. Values must be real. Rows are a table or an array with more dimensions.
        In a data frame, each of the 20 most frequent categories of a categorical column
        is a binary feature. In distances, a categorical column counts as one feature:
        averaged over pairs of rows, it contributes as much as a numeric column.
    X_new : array-like, sparse matrix or data frame of shape (n_new, ...)
        New rows, without the training rows.
    X_test : array-like, sparse matrix or data frame, default=None
        Rows of the same population that were not used to make new rows.
    classifier : classifier, default=None
        Classifier with ``predict_proba`` or ``decision_function``. It receives
        standardised rows without NaN. None uses an
        :class:`~sklearn.ensemble.ExtraTreesClassifier` with 40 trees and at least two
        rows per leaf, which also works with few rows.
    cv : int, default=5
        Number of folds. Fewer folds are used if there are few rows. Folds without new
        rows or without real rows are omitted.
    max_samples : int, default=2000
        Maximum number of new rows and of real rows for the classifier. The same number
        of both is drawn without replacement.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the sampling, the folds and the default classifier. The same seed
        gives the same results for every ``n_jobs``.
    n_jobs : int, default=None
        Number of threads of the neighbour search and of the folds.

    Returns
    -------
    comparison : SampleComparison

    Raises
    ------
    ValueError
        If a sample contains infinity, if shapes or columns of the samples differ, or if
        there are fewer than 2 training rows, or no new or test rows. The error is also
        raised if a value in training standard deviations overflows single precision.

    Warns
    -----
    UserWarning
        If test rows are training rows, or if ``X_new`` begins with the rows of ``X``.

    See Also
    --------
    sklearn_pnl.compare.SampleComparison : The result.
    sklearn_pnl.compare.SampleComparisonDisplay : Plot a comparison.

    Notes
    -----
    Without ``X_test``, "detection" does not find copies. New rows lie near the training
    rows from which they were made. With plain folds, a new row and its training row
    could be in different folds. The classifier would then mistake training rows for new
    rows, and copies would have an AUC near 0. Therefore, each row is kept in the same
    fold as its nearest row. The groups are the connected components of the graph of
    nearest neighbours among the distinct rows of both kinds. The groups do not depend
    on the kind of the rows, so rows of the same distribution have an AUC of about 0.5,
    and copies have exactly 0.5. With ``X_test``, plain folds are correct, and the
    classifier also detects copies of few rows. If you have enough rows, hold out some
    rows as ``X_test``.

    The criteria are not designed to detect new rows that repeat each other, changed
    shares of zeros (although both may show in "spread"), or categories that no training
    row has. If real rows repeat, new rows may also contain copies, as often as the real
    rows within the sampling error. The spread of a feature is judged only if the number
    of rows is larger than 6 times its kurtosis.

    Features that are constant in ``X`` keep their units in distances. With more than
    200 features, correlations are compared for a random subset of 200. With more than
    10,000 rows in a sample, distances are computed for a random subset of 10,000 rows,
    to the closest of all rows of the other sample. With many features, the search
    computes the distance of every pair of rows. Rows are stored in float64, both
    original and standardised, also for sparse matrices.

    References
    ----------
    D. Lopez-Paz, M. Oquab, "Revisiting classifier two-sample tests", ICLR 2017.

    Q. Zhao et al., "CTAB-GAN: effective table data synthesizing", ACML 2021 (the
    distance to the closest record).

    D. Chen, N. Yu, Y. Zhang, M. Fritz, "GAN-Leaks: a taxonomy of membership inference
    attacks against generative models", CCS 2020 (the attack by nearest distance).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_pnl import PNLSampler, compare_samples
    >>> X, y = load_iris(return_X_y=True)
    >>> sampler = PNLSampler(sampling_strategy={0: 100}, random_state=0)
    >>> X_new = sampler.fit_resample(X, y)[0][len(X) :]
    >>> comparison = compare_samples(X[y == 0], X_new, random_state=0)
    >>> comparison.n_train, comparison.n_new, comparison.fold_auc.size
    (50, 50, 5)
    >>> comparison["ranges"].status
    'fine'
    """
    rng, rows = as_random_state(random_state), {"X": X, "X_new": X_new}
    if X_test is not None:
        rows["X_test"] = X_test
    samples, names = read_samples(rows)
    train, new, test = map(samples.get, ("X", "X_new", "X_test"))
    n_train, pair = len(train), (train.features, new.features)
    numbers = features.compare_features(names, *pair)
    # 200 features are enough to estimate the mean over pairs of features.
    correlated = np.sort(rng.permutation(len(names))[:200])
    difference = features.correlation_difference(*(x[:, correlated] for x in pair))
    fold_auc, detection = detect(
        test or train, new, test is not None, classifier, cv, max_samples, rng, n_jobs
    )
    real = np.concatenate([s.features for k, s in samples.items() if k != "X_new"])
    baseline_change = features.baseline_change(
        real, n_train, len(new), correlated, max_samples, rng
    )
    of_train, compared = (nearness.choose_rows(len(s), rng) for s in (train, new))
    distance, closest = nearness.nearest(train, new.points[compared], n_jobs)
    if test is None:
        test_points = None
        baseline_distance = nearness.distance_to_others(train, of_train, n_jobs)
    else:
        test_points = test.points[nearness.choose_rows(len(test), rng)]
        baseline_distance = nearness.nearest(train, test_points, n_jobs)[0]
    findings = (
        nearness.judge_copies(samples),
        nearness.judge_closeness(distance, baseline_distance),
        nearness.judge_membership(train.points[of_train], test_points, new, n_jobs),
        *features.judge_features(numbers, *pair, train.n_numbers),
        features.judge_correlations(difference, baseline_change),
        detection,
    )
    return SampleComparison(
        n_train,
        len(new),
        len(real) - n_train,
        findings,
        numbers,
        correlated,
        difference,
        compared,
        distance,
        closest,
        baseline_distance,
        fold_auc,
    )
