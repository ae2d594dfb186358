"""How near new rows come to training rows, to held-out rows, and to one another.

Three kinds of rows have six distances from one to the closest of another, and each
question compares two of them to the same rows:

- new and held-out rows to training rows: are new rows copies?
- training and held-out rows to new rows: can one tell which rows were trained on?
- new and training rows to held-out rows: do new rows lie where no row lies?

Without held-out rows each training row and the closest other one stand in for the
first and the last.
"""

import numpy as np
from scipy.stats import mannwhitneyu
from sklearn.metrics.pairwise import paired_euclidean_distances
from sklearn.neighbors import NearestNeighbors

from .._runtime.validation import warn_user
from .findings import ALIKE, HELD_OUT, judge, judge_area, most_by_chance, untold

# A close copy lies within this share of the usual median distance. On six tables of 4
# to 64 features and 25 to 300 rows, 80 to 100% of rows jittered by a tenth of a std
# did, 16 to 43% of SMOTE's, 0 to 33% of PNL's, and no held-out row; 4 and 16%
# of these with two features and one. A straight line between near rows, drawn on
# evenly, is at most half of the time in its outer quarters: two thirds are copies.
CLOSE = 0.25
_CLOSE_SHARE = 2 / 3


def closest(known, rows=None, n_jobs=None):
    """Distances of rows to the closest known one, and which; None is to another one."""
    points, queries = known.points, None if rows is None else rows.points
    search = NearestNeighbors(n_neighbors=1, n_jobs=n_jobs).fit(points)
    nearest = search.kneighbors(queries, return_distance=False)[:, 0]
    # The search may get distances by expanding squares, which leaves copies at 1e-8.
    queries = points if queries is None else queries
    return paired_euclidean_distances(queries, points[nearest]), nearest


def judge_closeness(distance, usual):
    """Whether new rows are training rows with a little noise."""
    radius = CLOSE * np.median(usual)
    value, known = np.mean(distance <= radius), np.mean(usual <= radius)
    chance = most_by_chance(np.sum(usual <= radius), len(usual), len(distance))
    reason = (
        "share of new rows nearer to a training row than a quarter of the usual median "
        "distance; of rows drawn evenly between near rows, half are"
    )
    slack = max(_CLOSE_SHARE, chance) - known
    return judge("close rows", value, known, slack, reason)


def judge_membership(train, test, new, n_jobs):
    """Whether the distance to the closest new row tells who was trained on."""
    if test is None:
        reason = "it takes rows that were not trained on"
        return untold("membership", HELD_OUT, reason)
    known, others = (closest(new, rows, n_jobs)[0] for rows in (train, test))
    reason = (
        "area under the ROC curve of who takes the rows nearest to new ones, among "
        "training and held-out rows, for training rows"
    )
    return _judge_farther("membership", others, known, reason)


def judge_distance(train, test, new, distance, usual, n_jobs):
    """Whether new rows lie where no real row lies."""
    if test is not None:
        distance, usual = (closest(test, rows, n_jobs)[0] for rows in (new, train))
    rows, middle = "training" if test is None else "held-out", np.median(usual)
    reason = f"how likely a new row is farther from {rows} rows than a real row is"
    if middle > 0:
        reason += f", the ratio of the medians is {np.median(distance) / middle:.2g}"
    return _judge_farther("distance", distance, usual, reason)


def _judge_farther(criterion, distance, usual, reason):
    """How likely a distance is the longer of two; ties count half."""
    n, m = len(distance), len(usual)
    area = mannwhitneyu(distance, usual, method="asymptotic").statistic / (n * m)
    return judge_area(criterion, area, n, m, reason)


def judge_copies(rows, rng):
    """Exact copies of training rows, and new rows that equal one another."""
    cells = np.vstack([np.hstack([k.numbers, k.codes]) for k in rows.values()])
    # Infinity, which no cell holds, equals itself, which NaN does not.
    cells = np.nan_to_num(cells, nan=np.inf)
    numbers = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
    ends = np.cumsum([len(kind) for kind in rows.values()])[:-1]
    train, new, *test = np.split(numbers, ends)
    # Values that are few repeat the more often the more rows there are.
    some = rng.permutation(len(new))[: len(train)]
    known, own = np.isin(test[0], train) if test else _repeated(train), "X_new"
    unlike = {name: _never_repeats(kind, rows["X"]) for name, kind in rows.items()}
    if len(new) > len(train) and np.array_equal(new[: len(train)], train):
        warn_user(
            f"X_new begins with the {len(train)} rows of X, as what a sampler returns: "
            "they are judged as copies. Give the new rows alone, X_resampled[len(X):]."
        )
    if test:
        _check_held_out(test[0], train, known & unlike["X_test"], unlike["X"])
    return (
        _judge_equal("exact copies", np.isin(new, train), known, unlike[own],
                     unlike["X_test" if test else "X"]),
        _judge_equal("repeated rows", _repeated(new[some]), _repeated(train),
                     unlike[own][some], unlike["X"]),
    )  # fmt: skip


def _check_held_out(test, train, known, train_unlike):
    """Held-out rows were not trained on; ``known`` are, but not by chance."""
    n = len(test) if np.array_equal(test, train) else int(known.sum())
    told = (
        f"{n} of {len(test)} rows of X_test are training rows: members cannot be told "
        "from them. Give rows that no new row was made from, as train_test_split keeps."
    )
    if n == len(test):
        raise ValueError(told)
    if n and not np.any(_repeated(train) & train_unlike):
        warn_user(told)


def _repeated(numbers):
    """Which rows equal another one."""
    return np.bincount(numbers)[numbers] > 1


def _never_repeats(rows, train):
    """Which rows chance does not make equal to another.

    They have a value of a continuous feature that is not one which training rows share.
    """
    found = np.zeros(len(rows), bool)
    for column, known in zip(rows.numbers.T, train.numbers.T, strict=True):
        known = known[~np.isnan(known)]
        values, counts = np.unique(known, return_counts=True)
        if len(values) > len(known) / 2 and np.any(values != np.rint(values)):
            found |= ~(np.isin(column, values[counts > 1]) | np.isnan(column))
    return found


def _judge_equal(criterion, new, known, new_unlike, known_unlike):
    """Rows that equal another; of some, by chance none does."""
    reason = f"{known.sum()} of {len(known)} real rows equal another in every value"
    if known.all():
        return untold(criterion, ALIKE, reason)
    told = np.any(new & new_unlike) or np.all(new_unlike)
    if told and not np.any(known & known_unlike):
        reason += ", and none by chance where a value is its own"
        return judge(criterion, np.mean(new & new_unlike), 0, 0, reason)
    chance = most_by_chance(known.sum(), len(known), len(new))
    slack = max(chance - known.mean(), 0)
    return judge(criterion, new.mean(), known.mean(), slack, reason)
