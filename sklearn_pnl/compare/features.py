"""Are features alike? Ranges, location, spread, shares, levels, and correlations.

Of the values that are there: which cells are missing is a question of its own. Spreads
and correlations are judged by those of samples of real rows.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom, ks_2samp, mode, norm, t

from .._runtime.validation import unheard
from .findings import ALIKE, FEW, LEVEL, judge, most_by_chance, untold
from .rows import n_there

# What does not matter: shares of values out of range, of zeros, of missing cells, and
# differences of means in training standard deviations.
_SHARE, _LOCATION = 0.05, 0.2
# Fewer rows have no share, spread or correlation to speak of.
_FEWEST = 8
# Features whose correlations are compared: three matrices of 32 megabytes.
_CORRELATED = 2000
# Pairs of disjoint samples of real rows. Of 264 held-out samples of eleven tables (16
# to 200 rows; continuous, whole and rare values), a twelfth were beyond the worst of 20
# pairs; with the margin, and the difference that does not matter below, none.
_SPLITS, _MARGIN = 20, 1.2
# Features whose correlations are split: their mean over pairs needs no more.
_SPLIT_FEATURES = 200
# Standard deviations that differ by a fifth, that is variances by a third: trees tell
# them with an area under the ROC curve of 0.73.
_SPREAD = -np.log(0.8)
# A single pair of 20 features that loses a correlation of 0.7 is 0.05.
_CORRELATION = 0.05


@dataclass(frozen=True, eq=False)
class FeatureComparison:
    """Numbers for each feature, arrays of shape (n_features,).

    Parameters
    ----------
    names : tuple of str
        Columns of the data frame, else "x0", "x1", ..., or "x2_5" for cell (2, 5);
        "city=Ulm" is a feature of 0 and 1.
    outside_range : ndarray
        Share of new values below the smallest or above the largest training value.
    mean_difference : ndarray
        New minus training mean, in training standard deviations; nan where the
        training values are constant.
    std_ratio : ndarray
        Standard deviation of new over that of training values; nan likewise.
    ks_statistic : ndarray
        Largest gap between the two empirical distribution functions, from 0 to 1
        (Kolmogorov-Smirnov).
    zero_share, train_zero_share : ndarray
        Share of values that are 0, new and training ones; nan for levels.
    missing_share, train_missing_share : ndarray
        Share of cells that are missing, likewise; 0 for levels.
    """

    names: tuple
    outside_range: np.ndarray
    mean_difference: np.ndarray
    std_ratio: np.ndarray
    ks_statistic: np.ndarray
    zero_share: np.ndarray
    train_zero_share: np.ndarray
    missing_share: np.ndarray
    train_missing_share: np.ndarray


# Of a column without any value nothing is known, which NaN says.
@unheard()
def compare_features(scale, train, new):
    """Of samples of training and of new rows."""
    X, X_new, n, n_new = train.features, new.features, train.there, new.there
    varies = np.where(scale.constant[: X.shape[1]], np.nan, 1)
    levels = np.full(X.shape[1] - scale.n_numbers, np.nan)
    zeros, new_zeros = (
        np.append(np.sum(rows.numbers == 0, axis=0), levels) for rows in (train, new)
    )
    outside = (X_new < np.nanmin(X, axis=0)) | (X_new > np.nanmax(X, axis=0))
    mean, new_mean = np.nanmean(X, axis=0), np.nanmean(X_new, axis=0)
    ks = ks_2samp(X, X_new, method="asymp", nan_policy="omit")
    return FeatureComparison(
        names=scale.names,
        outside_range=outside.sum(axis=0) / n_new,
        mean_difference=varies * (new_mean - mean),
        std_ratio=varies * _spreads(X_new),
        ks_statistic=ks.statistic,
        zero_share=new_zeros / n_new,
        train_zero_share=zeros / n,
        missing_share=(len(new) - n_new) / len(new),
        train_missing_share=(len(train) - n) / len(train),
    )


@unheard()
def _spreads(X):
    """Standard deviations, exactly 0 where all values are equal."""
    varies = np.nanmax(X, axis=0) > np.nanmin(X, axis=0)
    return np.where(varies, np.nanstd(X, axis=0), 0.0)


@unheard()
def _standardised(X):
    """Features of mean 0 and standard deviation 1, nan where they are constant."""
    std = _spreads(X)
    return (X - np.nanmean(X, axis=0)) / np.where(std > 0, std, np.nan)


def judge_ranges(found, n, n_new):
    """Share of new values that no training value reaches, of the worst feature."""
    # Between the ends of n values of a continuous feature lies a share of all that has
    # the beta distribution of n - 1 and 2 (S. S. Wilks, Annals of Mathematical
    # Statistics 12, 1941), whatever the feature is.
    n, n_new = np.maximum(n, 2), np.maximum(n_new, 1)
    beyond = np.nan_to_num(found.outside_range - 2 / (n + 1), nan=-1)
    worst = np.argmax(beyond * np.sqrt(np.minimum(n, n_new)))
    n, n_new = n[worst], n_new[worst]
    chance = betabinom.isf(LEVEL / len(found.names), n_new, 2, n - 1) / n_new
    usual = 2 / (n + 1)
    reason = (
        f"share of values of {found.names[worst]}, the largest, beyond the training "
        f"values; {_SHARE:.0%} are no matter"
    )
    slack = max(_SHARE, chance) - usual
    return judge("ranges", found.outside_range[worst], usual, slack, reason)


@unheard()
def judge_location(found, n, n_new):
    """The largest difference of means."""
    away = np.abs(found.mean_difference)
    if np.all(np.isnan(away)):
        return untold("location", ALIKE, "no feature varies")
    # What varies less than training values is told by its spread.
    errors = np.sqrt(1 / n + np.maximum(found.std_ratio, 1) ** 2 / n_new)
    slack = np.fmax(_LOCATION, t.isf(LEVEL / 2 / len(away), n - 1) * errors)
    worst = np.nanargmax(away / slack)
    reason = (
        f"difference of the means of {found.names[worst]}, beyond chance the largest, "
        f"in training standard deviations; {_LOCATION:g} is no matter"
    )
    value = found.mean_difference[worst]
    return judge("location", value, 0, slack[worst], reason, most=np.inf, both=True)


@unheard()
def judge_spread(found, train, new):
    """The standard deviation that changes most beyond what those of real rows do."""
    n, n_new, level = train.there, new.there, LEVEL / 2 / len(found.names)
    few = np.minimum(n, n_new) < _FEWEST
    if few.all():
        return untold("spread", FEW, f"fewer than {_FEWEST} rows")
    # Of a logarithm of a standard deviation, by the delta method. Few rows hide heavy
    # tails: those of the kind that shows more.
    squares = [_standardised(rows.features) ** 2 for rows in (train, new)]
    tails = np.fmax(*(np.nanmean(kind**2, axis=0) for kind in squares))
    error = np.sqrt((np.fmax(tails, 1) - 1) * (1 / n + 1 / n_new) / 4)
    allowed = np.maximum(_SPREAD, t.isf(level, np.minimum(n, n_new) - 1) * error)
    change = np.abs(np.log(found.std_ratio))
    # Chance decides where one value makes up most of a variance, and where all new
    # values may be the one that most training values are. Shares of levels are for
    # location.
    alone = np.any([np.nanmax(k, axis=0) > n_there(k) / 2 for k in squares], axis=0)
    X = train.features
    share = np.sum(X == mode(X, nan_policy="omit").mode, axis=0) / n
    often = np.isinf(change) & (share**n_new > level)
    told = ~(np.isnan(change + found.zero_share) | few | alone | often)
    if not np.any(told):
        return untold("spread", ALIKE, "no feature varies in every sample")
    worst = np.argmax(np.where(told, change / allowed, -np.inf))
    ratio, most = found.std_ratio[worst], np.exp(allowed[worst])
    reason = (
        f"ratio of standard deviations of {found.names[worst]}, beyond chance the one "
        "that changes most; from four fifths to five quarters is no matter"
    )
    slack = most - 1 if ratio > 1 else 1 - 1 / most
    return judge("spread", ratio, 1, slack, reason, most=np.inf, both=True)


@unheard()
def judge_shares(criterion, found, n, n_new):
    """The share of zeros, or of missing cells, that strays most from the known one."""
    what = criterion.removesuffix("s")
    known, new = (getattr(found, f"{k}{what}_share") for k in ("train_", ""))
    if not np.nansum(known + new):
        return untold(criterion, ALIKE, f"no number is {what}")
    told = (np.minimum(n, n_new) >= _FEWEST) & ~np.isnan(known + new)
    if not np.any(told):
        return untold(criterion, FEW, f"fewer than {_FEWEST} rows")
    pooled = (n * known + n_new * new) / (n + n_new)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / n_new))
    slack = np.fmax(_SHARE, norm.isf(LEVEL / 2 / len(known)) * error)
    worst = np.argmax(np.where(told, np.abs(new - known) / slack, -np.inf))
    reason = (
        f"share of values of {found.names[worst]} that are {what}, and that of "
        f"training rows; {_SHARE:.0%} more or less are no matter"
    )
    return judge(criterion, new[worst], known[worst], slack[worst], reason, both=True)


def unseen_levels(train, new, levels):
    """For each category with any, levels of new rows that no training row has."""
    last = train.codes.max(axis=0, initial=-1)
    kinds = zip(levels, new.codes.T, last, strict=True)
    return {
        name: [held[k] for k in np.unique(codes[codes > end])]
        for (name, held), codes, end in kinds
        if np.any(codes > end)
    }


def judge_levels(train, new, unseen):
    """New rows with a level that no training row has, in any category."""
    known, codes = train.codes, new.codes
    if not codes.shape[1]:
        return untold("categories", ALIKE, "no column is a category")
    value = np.mean(np.any(codes > known.max(axis=0), axis=1))
    # Rows whose level no other has: as often will the next row have a new one (I. J.
    # Good, Biometrika 40, 1953).
    alone = [np.bincount(column)[column] == 1 for column in known.T]
    single, n = np.sum(np.any(alone, axis=0)), len(known)
    chance = most_by_chance(single, n, len(codes)) if single else 0
    reason = (
        "share of new rows with a level that no training row has; "
        f"{single} of {n} training rows have one that no other has"
    )
    for name, held in unseen.items():
        reason += f"; {name}: {', '.join(map(repr, held[:3]))}"
        reason += f" and {len(held) - 3} more" * (len(held) > 3)
    usual = single / n
    return judge("categories", value, usual, max(chance - usual, 0), reason)


# --- correlations -------------------------------------------------------------------


def compare_correlations(train, new, rng):
    """Features, some where there are very many, and changes of their correlations."""
    train, new = train.features, new.features
    chosen = np.arange(train.shape[1])
    if len(chosen) > _CORRELATED:
        chosen = np.sort(rng.permutation(len(chosen))[:_CORRELATED])
    return chosen, _difference(train[:, chosen], new[:, chosen])


def _difference(X, X_new):
    """Pearson correlations of new minus those of training rows.

    nan where a feature is constant in the latter. Where it is constant in new rows
    alone, it has lost its correlations.
    """
    known, new = _correlations(X), _correlations(X_new)
    return np.where(np.isnan(new), 0.0, new) - known


@unheard()
def _correlations(X):
    """Over the rows that have both values, each in units of all that are there."""
    there = ~np.isnan(X)
    n = len(X) if there.all() else there.T.astype(float) @ there
    X = np.where(there, _standardised(X), 0)
    return np.clip(X.T @ X / n, -1, 1)


def root_mean_square(difference):
    """Over the pairs of features that have a difference; nan without any."""
    values = difference[np.triu_indices(len(difference), k=1)]
    values = values[~np.isnan(values)]
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")


def usual_change(real, n_train, n_new, chosen, max_samples, rng):
    """Largest root mean square change of correlations between samples of real rows.

    Pairs of disjoint samples are drawn, of the sizes compared or smaller; what they
    show is scaled to those sizes, with the root of the numbers of rows.

    Parameters
    ----------
    real : ndarray of shape (n_real, n_features)
        Training and test rows together.
    n_train, n_new : int
        Sizes of the samples that are compared.
    chosen : ndarray of int
        Features whose correlations are compared.
    max_samples : int
        Most rows of a sample.
    rng : RandomState

    Returns
    -------
    change : float
        None where there are too few rows, nan without pairs of features that vary.
    """
    second = min(n_new, len(real) // 2, max_samples)
    first = min(n_train, len(real) - second, max_samples)
    if min(first, second) < _FEWEST:
        return None
    shrink = np.sqrt((1 / n_train + 1 / n_new) / (1 / first + 1 / second))
    chosen = np.sort(rng.permutation(chosen)[:_SPLIT_FEATURES])
    changes = []
    for _ in range(_SPLITS):
        rows = rng.permutation(len(real))[: first + second]
        a, b = np.split(real[np.ix_(rows, chosen)], [first])
        changes.append(root_mean_square(_difference(a, b)))
    return shrink * max(changes)


def judge_correlations(difference, noise):
    """The mean change of correlations."""
    if noise is None:
        return untold("correlations", FEW, f"fewer than {_FEWEST} rows")
    change = root_mean_square(difference)
    if np.isnan(change + noise):
        return untold("correlations", ALIKE, "no two features vary")
    reason = (
        "root mean square change of the correlations, and the largest between samples "
        f"of real rows; {_CORRELATION:g} more, in squares, is no matter"
    )
    slack = np.hypot(_CORRELATION, _MARGIN * noise) - noise
    return judge("correlations", change, noise, slack, reason, most=np.inf)
