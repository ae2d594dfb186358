"""Compare new rows with the training rows that they were made from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import validate_params

from .._runtime.reports import TableReport
from .._runtime.threads import one_blas_thread
from .._runtime.typing import Rows, Seed
from .._runtime.validation import TWO_OR_MORE, InstanceWith, as_random_state
from . import features, nearness
from .detection import detect
from .features import FeatureComparison
from .findings import FINE, Finding, summarise
from .rows import read_samples


@dataclass(frozen=True, eq=False, repr=False)
class SampleComparison(TableReport):
    """The result of :func:`compare_samples`.

    ``verdict`` names the faults of the new rows, ``findings`` gives the reasons, and
    ``print`` shows a line for each criterion: a value up to the threshold is fine, or
    down to it where the threshold is below the baseline. It is not a statement of
    privacy: nothing here bounds what others can learn about a person from new rows.

    Parameters
    ----------
    n_train, n_new, n_test : int
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
    compared : ndarray of int of shape (n_compared,)
        Numbers of the new rows whose distances were computed: all of at most 10,000,
        otherwise 10,000 that are drawn at random.
    distance : ndarray of shape (n_compared,)
        From each of these rows to the closest training row, in training standard
        deviations.
    closest : ndarray of int of shape (n_compared,)
        Number of that training row.
    baseline_distance : ndarray of shape (n_baseline,)
        From test rows to the closest training row or, without ``X_test``, from training
        rows to the closest other training row. At most 10,000 rows drawn at random.
    fold_auc : ndarray of shape (n_folds,)
        Area under the ROC curve of the classifier in each fold; empty where the rows
        do not suffice for two folds.

    See Also
    --------
    compare_samples : New rows against real ones.
    sklearn_pnl.compare.SampleComparisonDisplay : Draw a comparison.

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
    """Compare new rows with the training rows that they were made from.

    Each criterion gets a status. Distances are from a row to the closest one of another
    sample, with every feature divided by its training standard deviation:

    - **Copies.** "exact copies" equal a training row: where real rows never equal one
      another and a value is continuous, one is too many. "close rows" are nearer to a
      training row than a quarter of the baseline's median distance: that from rows of
      ``X_test`` or, without them, from each training row to the closest other one.
    - **Membership.** "membership" is the attack by nearest distance: of training and
      test rows, it takes those nearest to a new row for training rows. Its area under
      the ROC curve is 0.5 if it learns nothing. It needs ``X_test``.
    - **Support.** "ranges" are values beyond all training values.
    - **Features.** "location" (means), "spread" (standard deviations) and
      "correlations". Missing cells are compared by the classifier, and by the shares in
      ``features``.
    - **Detection.** "detection" is the cross-validated area under the ROC curve of a
      classifier that tells new rows from those of ``X_test``, or from the training
      rows.

    A threshold is the larger of two: a difference that does not matter, and the
    variation of real rows. The latter is that of ``X`` and ``X_test``, split 20 times
    into two samples, for correlations, and sampling error for shares, means, standard
    deviations and ranks. ``findings`` gives each with its reason. If no value could
    pass, the status is "too few rows to tell".

    Numbers may be missing (NaN). Features are compared over the values that are not.
    Distances and the classifier get the median of the training rows in their place,
    and each such column adds an indicator of 0 and 1.

    This is not a statement of privacy. New rows may reveal what no criterion looks for,
    and no number here bounds what others can learn about a person.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_train, ...)
        Training rows: those that the new ones were made from, for a sampler the rows of
        one class. Real values, a table or an array of more dimensions. In data frames
        a category counts as a feature of 0 and 1 for each of its 20 most frequent
        levels. In distances it is one feature: rows that differ in it are as far apart,
        in the mean over pairs of rows, as they are in a number.
    X_new : array-like, sparse matrix or data frame of shape (n_new, ...)
        New rows alone, without the training rows.
    X_test : array-like, sparse matrix or data frame, default=None
        Rows of the same population that were not used to make new ones.
    classifier : classifier, default=None
        With ``predict_proba`` or ``decision_function``; it gets standardised rows
        without NaN. None is an :class:`~sklearn.ensemble.ExtraTreesClassifier` of 40
        trees with two rows a leaf or more, which also works on few rows.
    cv : int, default=5
        Folds; fewer where there are fewer rows, and those in which one kind of row
        would be missing are left out.
    max_samples : int, default=2000
        Most rows of each kind that the classifier gets. As many of either are drawn,
        without replacement.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws, the folds and the default classifier. The same seed gives the
        same numbers for every ``n_jobs``.
    n_jobs : int, default=None
        Jobs of the search for neighbours and of the folds: threads.

    Returns
    -------
    comparison : SampleComparison

    Raises
    ------
    ValueError
        For infinity (with the first place), rows of different shapes or with different
        columns, fewer than 2 training rows, no new or test row, and values that single
        precision does not hold in training standard deviations.

    Warns
    -----
    UserWarning
        If test rows are training rows, and if ``X_new`` begins with those of ``X``.

    See Also
    --------
    sklearn_pnl.compare.SampleComparison : The result.
    sklearn_pnl.compare.SampleComparisonDisplay : Draw a comparison.

    Notes
    -----
    An AUC against training rows is not a test of copying. New rows lie near the rows
    that they were made from, so plain folds would place them on both sides, and the
    classifier would take every training row in a test fold for a new one: copies would
    get an AUC near 0. So rows are kept in one fold with the row nearest to them, new or
    not: the groups are the connected components of the graph of nearest neighbours
    among the distinct rows of both kinds. They are formed without looking at the kind;
    so rows of the same distribution get about 0.5, and copies get exactly that.
    With ``X_test`` plain folds are right, and copies of few rows are found out as
    well. Where rows can be spared, hold some out.

    Not looked for: new rows that repeat one another, shares of zeros (both change the
    spread), and levels of categories that no training row has. Where real rows repeat,
    a few copies are explained by chance. The standard deviation of a feature with heavy
    tails is judged from 6 rows times its kurtosis on.

    Features that are constant in ``X`` keep their units in distances. Of more than
    200 features, 200 drawn at random have their correlations compared. Of more than
    10,000 rows of a sample, 10,000 drawn at random have their closest rows searched,
    among all rows of the other sample. Where there are many features, distances cost
    a comparison for each pair of rows. Rows are held
    in float64, as they are and standardised; those of sparse matrices too.

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
    # The mean over pairs needs no more features.
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
        n_train, len(new), len(real) - n_train, findings, numbers, correlated,
        difference, compared, distance, closest, baseline_distance, fold_auc,
    )  # fmt: skip
