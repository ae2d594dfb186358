"""Compare distances to the nearest row: copies, and the attack on membership."""

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import paired_euclidean_distances
from sklearn.neighbors import NearestNeighbors

from .._utils.validation import warn_user
from .findings import NEEDS_TEST, NOTHING, judge, judge_area, judge_share, no_finding

# A close row lies within this share of the baseline's median distance. On six tables of
# 4 to 64 features and 25 to 300 rows, 80 to 100% of rows jittered by a tenth of a std
# did, 16 to 43% of SMOTE's, 0 to 33% of PNL's, and no held-out row; 4 and 16%
# of these with two features and one. A straight line between near rows, drawn on
# evenly, is at most half of the time in its outer quarters: two thirds are copies.
CLOSE = 0.25
# Rows of each kind whose nearest rows are searched, among all rows: the error of a
# share of 10,000 rows is at most half a percent.
MOST_ROWS = 10_000
_CLOSE_SHARE = 2 / 3


def choose_rows(n, rng):
    """Return the numbers of the rows whose distances are computed, in order."""
    if n <= MOST_ROWS:
        return np.arange(n)
    return np.sort(rng.choice(n, MOST_ROWS, replace=False))


def nearest(real, points, n_jobs=None):
    """Return the distance of each point to the nearest real row, and its number."""
    search = NearestNeighbors(n_neighbors=1, n_jobs=n_jobs).fit(real.points)
    numbers = search.kneighbors(points, return_distance=False)[:, 0]
    # The search may expand squares, which leaves copies at 1e-8.
    return paired_euclidean_distances(points, real.points[numbers]), numbers


def distance_to_others(real, rows, n_jobs=None):
    """Return the distance of some of the real rows to the nearest other real row."""
    search = NearestNeighbors(n_neighbors=2, n_jobs=n_jobs).fit(real.points)
    points = real.points[rows]
    first, second = search.kneighbors(points, return_distance=False).T
    # A row is not its own neighbour; with repeated rows it need not be the first.
    other = np.where(first == rows, second, first)
    return paired_euclidean_distances(points, real.points[other])


def judge_closeness(distance, baseline):
    """Judge whether new rows are training rows with a little noise."""
    is_close = [gaps <= CLOSE * np.median(baseline) for gaps in (distance, baseline)]
    reason = "share nearer to a training row than a quarter of what real rows are"
    return judge_share("close rows", "copies", *is_close, reason, fine=_CLOSE_SHARE)


def judge_membership(train, test, new, n_jobs):
    """Judge whether the distance to the nearest new row reveals training rows.

    ``train`` and ``test`` are points (n, n_points), ``test`` is None without any.
    """
    reason = "area under the ROC curve of an attack by the distance to new rows"
    if test is None:
        return no_finding("membership", NEEDS_TEST, reason)
    distances = [nearest(new, points, n_jobs)[0] for points in (train, test)]
    is_train = np.repeat([1, 0], [len(train), len(test)])
    area = roc_auc_score(is_train, -np.concatenate(distances))
    return judge_area(
        "membership", "members exposed", area, len(train), len(test), reason
    )


def judge_copies(samples):
    """Judge whether new rows equal training rows in every cell."""
    # NaN, which does not equal itself, is replaced by infinity, which no cell holds.
    cells = [np.nan_to_num(s.cells, nan=np.inf) for s in samples.values()]
    ids = np.unique(np.vstack(cells), axis=0, return_inverse=True)[1].ravel()
    train, new, *test = np.split(ids, np.cumsum([len(s) for s in cells])[:-1])
    is_repeated = np.bincount(train)[train] > 1
    is_equal = np.isin(test[0], train) if test else is_repeated
    by_chance = is_repeated.any() or not _has_continuous(samples["X"].cells)
    if len(new) > len(train) and np.array_equal(new[: len(train)], train):
        warn_user(
            f"X_new begins with the {len(train)} rows of X: they are judged as copies. "
            "Give the new rows alone, X_resampled[len(X):]."
        )
    if test and is_equal.any() and (not by_chance or np.array_equal(test[0], train)):
        warn_user(
            f"{is_equal.sum()} of {len(is_equal)} rows of X_test are training rows. "
            "Give rows that no new row was made from."
        )
    reason = f"{is_equal.sum()} of {len(is_equal)} real rows equal a training row"
    if is_equal.all():
        return no_finding("exact copies", NOTHING, reason)
    is_copy = np.isin(new, train)
    if by_chance:
        return judge_share("exact copies", "copies", is_copy, is_equal, reason)
    reason += ", and none by chance where a value is continuous"
    return judge("exact copies", "copies", is_copy.mean(), 0, 0, reason)


def _has_continuous(cells):
    """Whether a column has mostly different values, some of which are no integers."""
    columns = (column[~np.isnan(column)] for column in cells.T)
    return any(
        len(np.unique(column)) > len(column) / 2 and (column % 1).any()
        for column in columns
    )
