"""Feature by feature: ranges, location, zeros, distributions, and levels never seen.

Of the values that are there: which cells are missing is a question of its own.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom, ks_2samp, norm, t

from .._runtime.validation import unheard
from .findings import ALIKE, FEW, LEVEL, judge, most_by_chance, untold

# What does not matter: shares of values out of range, of zeros, of missing cells, and
# differences of means in training standard deviations.
_SHARE, _LOCATION = 0.05, 0.2
# Fewer rows have no share, spread or correlation to speak of.
FEWEST = 8


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
        std_ratio=varies * spreads(X_new),
        ks_statistic=ks.statistic,
        zero_share=new_zeros / n_new,
        train_zero_share=zeros / n,
        missing_share=(len(new) - n_new) / len(new),
        train_missing_share=(len(train) - n) / len(train),
    )


@unheard()
def spreads(X):
    """Standard deviations, exactly 0 where all values are equal."""
    varies = np.nanmax(X, axis=0) > np.nanmin(X, axis=0)
    return np.where(varies, np.nanstd(X, axis=0), 0.0)


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
def judge_shares(criterion, found, n, n_new):
    """The share of zeros, or of missing cells, that strays most from the known one."""
    what = criterion.removesuffix("s")
    known, new = (getattr(found, f"{k}{what}_share") for k in ("train_", ""))
    if not np.nansum(known + new):
        return untold(criterion, ALIKE, f"no number is {what}")
    told = (np.minimum(n, n_new) >= FEWEST) & ~np.isnan(known + new)
    if not np.any(told):
        return untold(criterion, FEW, f"fewer than {FEWEST} rows")
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
