"""Compare new rows with the training rows that they were made from."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, validate_params

from .._runtime.typing import Rows, Seed
from .._runtime.validation import TWO_OR_MORE, tells_where
from . import features, nearness
from .detection import detect
from .report import SampleComparison
from .rows import Scale, read_rows


@tells_where()
@validate_params(
    {
        "classifier": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
            None,
        ],
        "cv": [TWO_OR_MORE],
        "max_samples": [TWO_OR_MORE],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    },
    prefer_skip_nested_validation=False,
)
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
    """Check new rows against the training rows that they were made from.

    Each criterion gets a word. Distances are from a row to the closest one of another
    kind, with every feature divided by its training standard deviation:

    - **Are they copies?** "exact copies" are equal to a training row, "repeated rows"
      to another new row: where real rows are never equal, one is too many. "close rows"
      are nearer to a training row than a quarter of the usual median distance: that
      from rows of ``X_test`` or, without them, from each training row to the closest
      other one.
    - **Do they tell who was trained on?** "membership" is the attack by nearest
      distance: of training and test rows, it takes those nearest to a new row for
      training rows. Its area under the ROC curve is 0.5 if it knows nothing. It needs
      ``X_test``.
    - **Do they lie where rows lie?** "distance" is how likely a new row is farther from
      the test rows than a training row is. "ranges" are values beyond all training
      values, "categories" levels that no training row has.
    - **Are features alike?** "location" (means), "spread" (standard deviations),
      "zeros" and "missing" (shares of values that are 0, and of cells that are missing)
      and "correlations".
    - **Can they be told apart?** "detection" is the cross-validated area under the ROC
      curve of a classifier that tells new rows from those of ``X_test``, or from the
      training rows.

    Printed, each criterion says which values are fine, such as "<= 0.6". Such a
    threshold is the larger of what does not matter and of what real rows show: in
    spread and correlations those of ``X`` and ``X_test``, split 20 times into two
    samples, else what chance does to shares, means and ranks. ``findings`` gives each
    with its reason. Where no value could pass it, rows are too few to tell.

    Cells of numbers may be missing (NaN). Features are compared over the values that
    are there. Distances and the classifier get the median of the training rows in
    their place, and for each such column one more feature of 0 and 1 that says so.

    This is not a statement of privacy. New rows may tell what no criterion looks for,
    and no number here bounds what others can learn about a person.

    Parameters
    ----------
    X : array-like of shape (n_train, ...)
        Training rows: those that the new ones were made from, for a sampler the rows of
        one class. Real values, a table or an array of more dimensions. In data frames
        a category counts as a feature of 0 and 1 for each of its 20 most frequent
        levels, and times as days. In distances a category is one feature: rows that
        differ in it are as far apart, in the mean over pairs of rows, as they are in
        a number.
    X_new : array-like of shape (n_new, ...)
        New rows alone, without the training rows.
    X_test : array-like of shape (n_test, ...), default=None
        Rows of the same population that were not used to make new ones.
    classifier : classifier, default=None
        With ``predict_proba`` or ``decision_function``; it gets standardised rows
        without NaN, and a seed for each ``random_state`` that is None. None is an
        :class:`~sklearn.ensemble.ExtraTreesClassifier` of 40 trees with two rows a leaf
        or more, which also works on few rows.
    cv : int, default=5
        Folds; fewer where there are fewer rows, and those in which one kind of row
        would be missing are left out.
    max_samples : int, default=2000
        Most rows of each kind that the classifier gets. As many of either are drawn,
        without replacement.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws, the folds and the classifier. The same seed gives the same
        numbers for every ``n_jobs``.
    n_jobs : int, default=None
        Jobs of the search for neighbours and of the folds: threads.

    Returns
    -------
    comparison : SampleComparison

    Raises
    ------
    ValueError
        For infinity (with the first place), rows of different shapes or with different
        columns, fewer than 2 training or test rows, test rows that are the training
        rows (some of them warn), no new row, and values farther than 1e18 training
        standard deviations.

    See Also
    --------
    SampleComparison : What a comparison found.
    SampleComparisonDisplay : Draw a comparison.

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

    Features that are constant in ``X`` keep their units in distances. Of more than
    2,000 features, 2,000 drawn at random have their correlations compared. Where there
    are many features, distances cost a comparison for each pair of rows. Rows are held
    in float64, as they are and standardised.

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
    >>> comparison["ranges"].verdict
    'fine'
    """
    rng, held_out = check_random_state(random_state), X_test is not None
    given = {"X": X, "X_new": X_new} | ({"X_test": X_test} if held_out else {})
    rows, numbers, levels = read_rows(given)
    scale = Scale(rows, numbers, levels)
    rows = {name: scale.scaled(kind, name) for name, kind in rows.items()}
    train, new, test = map(rows.get, ("X", "X_new", "X_test"))
    sizes, found = (len(train), len(new)), features.compare_features(scale, train, new)
    distance, closest = nearness.closest(train, new, n_jobs)
    usual = nearness.closest(train, test, n_jobs)[0]
    chosen, correlations = features.compare_correlations(train, new, rng)
    settings = classifier, cv, max_samples, rng, n_jobs
    fold_auc, detection = detect(test or train, new, held_out, *settings)
    known = [kind.features for name, kind in rows.items() if name != "X_new"]
    real = np.concatenate(known)
    change = features.usual_change(real, *sizes, chosen, max_samples, rng)
    unseen = features.unseen_levels(train, new, levels)
    return SampleComparison(
        *sizes,
        n_test=len(real) - len(train),
        findings=(
            *nearness.judge_copies(rows, rng),
            nearness.judge_closeness(distance, usual),
            nearness.judge_membership(train, test, new, n_jobs),
            nearness.judge_distance(train, test, new, distance, usual, n_jobs),
            features.judge_ranges(found, train.there, new.there),
            features.judge_levels(train, new, unseen),
            features.judge_location(found, train.there, new.there),
            features.judge_spread(found, train, new),
            features.judge_shares("zeros", found, train.there, new.there),
            features.judge_shares("missing", found, *sizes),
            features.judge_correlations(correlations, change),
            detection,
        ),
        features=found,
        unseen_levels=unseen,
        correlation_features=chosen,
        correlation_difference=correlations,
        distance=distance,
        closest=closest,
        usual_distance=usual,
        fold_auc=fold_auc,
    )
