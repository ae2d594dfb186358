"""Judge copies and membership by the distance to the nearest row."""

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import paired_euclidean_distances
from sklearn.neighbors import NearestNeighbors

from .._utils.warnings import warn_user
from .findings import NEEDS_TEST, NOTHING, judge, judge_area, judge_share, no_finding

# The largest distance of a close row, divided by the median baseline distance. On six
# tables with 4 to 64 features and 25 to 300 rows, 80 to 100% of copies with noise (0.1
# standard deviations) were close, 16 to 43% of rows of SMOTE, 0 to 33% of rows of PNL,
# and no held-out row. With one feature, 16% of held-out rows are close; with two, 4%.
CLOSE = 0.25
# Number of rows of each kind whose nearest rows are found. The standard error of a
# share of 10,000 rows is at most 0.5%.
MOST_ROWS = 10_000
# A random point on a line between two rows is in the outer quarters of the line with
# probability 0.5. Larger shares of close rows indicate copies.
_CLOSE_SHARE = 2 / 3


def choose_rows(n, rng):
    """Return the sorted indices of the rows whose distances are computed."""
    if n <= MOST_ROWS:
        return np.arange(n)
    return np.sort(rng.choice(n, MOST_ROWS, replace=False))


def nearest(real, points, n_jobs=None):
    """Return the distance of each point to the nearest real row, and the row index."""
    search = NearestNeighbors(n_neighbors=1, n_jobs=n_jobs).fit(real.points)
    numbers = search.kneighbors(points, return_distance=False)[:, 0]
    # If the search expands squares, the distances of copies are about 1e-8.
    return paired_euclidean_distances(points, real.points[numbers]), numbers


def distance_to_others(real, rows, n_jobs=None):
    """Return the distance of some real rows to the nearest other real row."""
    search = NearestNeighbors(n_neighbors=2, n_jobs=n_jobs).fit(real.points)
    points = real.points[rows]
    first, second = search.kneighbors(points, return_distance=False).T
    # A row is not its own neighbour. If rows repeat, it can be the second neighbour.
    other = np.where(first == rows, second, first)
    return paired_euclidean_distances(points, real.points[other])


def judge_closeness(distance, baseline):
    """Judge whether new rows are training rows with small noise."""
    is_close = [gaps <= CLOSE * np.median(baseline) for gaps in (distance, baseline)]
    reason = "share with a distance below a quarter of the median of real rows"
    return judge_share("close rows", "copies", *is_close, reason, fine=_CLOSE_SHARE)


def judge_membership(train, test, new, n_jobs):
    """Judge whether the distance to the nearest new row reveals training rows.

    ``train`` and ``test`` are points (n, n_points); ``test`` is None without test rows.
    """
    reason = "area under the ROC curve of an attack that uses the distance to new rows"
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
    # NaN is not equal to NaN. No cell is infinite, so that infinity can replace NaN.
    cells = [np.nan_to_num(s.cells, nan=np.inf) for s in samples.values()]
    ids = np.unique(np.vstack(cells), axis=0, return_inverse=True)[1].ravel()
    train, new, *test = np.split(ids, np.cumsum([len(s) for s in cells])[:-1])
    is_repeated = np.bincount(train)[train] > 1
    is_equal = np.isin(test[0], train) if test else is_repeated
    by_chance = is_repeated.any() or not _has_continuous(samples["X"].cells)
    if len(new) > len(train) and np.array_equal(new[: len(train)], train):
        warn_user(
            f"X_new begins with the {len(train)} rows of X, which count as copies. "
            "Pass only the new rows, X_resampled[len(X):]."
        )
    if test and is_equal.any() and (not by_chance or np.array_equal(test[0], train)):
        warn_user(
            f"{is_equal.sum()} of {len(is_equal)} rows of X_test are training rows. "
            "Pass test rows that were not used to make new rows."
        )
    reason = f"{is_equal.sum()} of {len(is_equal)} real rows equal a training row"
    if is_equal.all():
        return no_finding("exact copies", NOTHING, reason)
    is_copy = np.isin(new, train)
    if by_chance:
        return judge_share("exact copies", "copies", is_copy, is_equal, reason)
    reason += ", and continuous values are not equal by chance"
    return judge("exact copies", "copies", is_copy.mean(), 0, 0, reason)


def _has_continuous(cells):
    """Return whether a column has mostly distinct values, and not only integers."""
    columns = (column[~np.isnan(column)] for column in cells.T)
    return any(
        len(np.unique(column)) > len(column) / 2 and (column % 1).any()
        for column in columns
    )
