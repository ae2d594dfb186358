"""Compare the ranges, means, standard deviations and correlations of features.

Statistics are computed over the values that are not missing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom, ks_2samp, t

from .._utils.reports import TableReport
from .._utils.warnings import unheard
from .findings import LEVEL, NOTHING, TOO_FEW, judge, no_finding


@dataclass(frozen=True, eq=False, repr=False)
class FeatureComparison(TableReport):
    """Statistics of each feature, as arrays of shape (n_features,).

    Parameters
    ----------
    names : tuple of str
        Column names of the data frame; "x0", "x1", ... for arrays, and "x2_5" for the
        cell (2, 5) of a row. "city=Ulm" is the binary feature of a category.
    outside_range : ndarray
        Share of new values below the minimum or above the maximum training value.
    mean_difference : ndarray
        New mean minus training mean, in training standard deviations; nan if the
        training values are constant.
    std_ratio : ndarray
        Standard deviation of new values divided by the standard deviation of training
        values; nan if the training values are constant.
    ks_statistic : ndarray
        Kolmogorov-Smirnov statistic: the largest difference between the two empirical
        distribution functions, from 0 to 1.
    missing_share, train_missing_share : ndarray
        Share of missing cells in new and in training rows; 0 for categories.
    """

    names: tuple
    outside_range: np.ndarray
    mean_difference: np.ndarray
    std_ratio: np.ndarray
    ks_statistic: np.ndarray
    missing_share: np.ndarray
    train_missing_share: np.ndarray

    def _title(self):
        return f"{len(self.names)} features of new and training rows"

    def _columns(self):
        numbers = {name: v for name, v in vars(self).items() if name != "names"}
        return {"feature": self.names} | numbers


# NumPy issues warnings for columns without values.
@unheard()
def compare_features(names, X, X_new):
    """Compare features (n, n_features) of training and of new rows."""
    low, high, std = np.nanmin(X, axis=0), np.nanmax(X, axis=0), _stds(X)
    std = np.where(std > 0, std, np.nan)
    outside = (X_new < low) | (X_new > high)
    ks = ks_2samp(X, X_new, method="asymp", nan_policy="omit")
    return FeatureComparison(
        names=names,
        outside_range=outside.sum(axis=0) / np.isfinite(X_new).sum(axis=0),
        mean_difference=(np.nanmean(X_new, axis=0) - np.nanmean(X, axis=0)) / std,
        std_ratio=_stds(X_new) / std,
        ks_statistic=ks.statistic,
        missing_share=np.isnan(X_new).mean(axis=0),
        train_missing_share=np.isnan(X).mean(axis=0),
    )


def _stds(X):
    """Return standard deviations, which are exactly 0 if all values are equal."""
    varies = np.nanmax(X, axis=0) > np.nanmin(X, axis=0)
    return np.where(varies, np.nanstd(X, axis=0), 0.0)


@unheard()
def _z_scores(X):
    """Return features with mean 0 and standard deviation 1; nan if constant."""
    std = _stds(X)
    return (X - np.nanmean(X, axis=0)) / np.where(std > 0, std, np.nan)


@unheard()
def judge_features(comparison, X, X_new, n_numbers):
    """Return the findings on ranges, location and spread.

    A finding reports the feature with the largest distance from the baseline, in units
    of the slack. The slack is the larger of a fixed negligible difference and the
    sampling error.
    """
    n, n_new = (np.isfinite(rows).sum(axis=0) for rows in (X, X_new))
    level = LEVEL / X.shape[1]
    # The probability of values outside the range of n values has the distribution
    # beta(2, n - 1) for every feature (S. S. Wilks, Annals of Mathematical Statistics
    # 12, 1941).
    least = np.maximum(n, 2)
    share = 2 / (least + 1)
    chance = betabinom.isf(level, n_new, 2, least - 1) / n_new
    # A smaller spread of new values does not lower the error, because the finding on
    # spread judges this difference.
    ratio = comparison.std_ratio
    error = np.sqrt(1 / n + np.maximum(ratio, 1) ** 2 / n_new)
    moved = np.fmax(0.2, t.isf(level / 2, n - 1) * error)
    # The finding on location judges the shares of categories.
    ratio = np.where(np.arange(len(n)) < n_numbers, ratio, np.nan)
    spread = _slack_of_spread(ratio, X, X_new, n, n_new)
    names = comparison.names
    return [
        _judge_worst(
            names,
            "ranges",
            "out of range",
            comparison.outside_range,
            share,
            np.fmax(0.05, chance) - share,
            "share of values outside the training range; up to 0.05 is negligible",
            both=False,
        ),
        _judge_worst(
            names,
            "location",
            "shifted",
            comparison.mean_difference,
            0.0,
            moved,
            "difference of means, in training standard deviations; up to 0.2 is "
            "negligible",
        ),
        _judge_worst(
            names,
            "spread",
            "spread changed",
            ratio,
            1.0,
            spread,
            "ratio of standard deviations, for features with more rows than 6 times "
            "the kurtosis; a ratio of 0.8 to 1.25 is fine",
        ),
    ]


def _slack_of_spread(ratio, X, X_new, n, n_new):
    """Return the slack of ratios of standard deviations; nan if there are too few rows.

    By the delta method, the error of the logarithm of a standard deviation is
    ``sqrt((kurtosis - 1) / 4n)``. The larger kurtosis of both samples is used.
    """
    kurtosis = np.fmax(
        *(np.nanmean(np.square(_z_scores(S)) ** 2, axis=0) for S in (X, X_new))
    )
    error = np.sqrt((kurtosis - 1) / 4 * (1 / n + 1 / n_new))
    fewest, level = np.minimum(n, n_new), LEVEL / X.shape[1]
    # Trees detect standard deviations that differ by 20% with an area under the ROC
    # curve of 0.73.
    allowed = np.exp(np.fmax(-np.log(0.8), t.isf(level / 2, fewest - 1) * error))
    slack = np.where(ratio > 1, allowed - 1, 1 - 1 / allowed)
    # If the number of rows is 6 times the kurtosis, fewer than 1% of the samples of a
    # binary feature contain only zeros.
    return np.where(fewest > 6 * kurtosis, slack, np.nan)


def _judge_worst(names, criterion, fault, values, baseline, slack, reason, both=True):
    """Judge the feature whose value is farthest from the baseline."""
    excess = (values - baseline) / slack
    if np.all(np.isnan(excess)):
        status = NOTHING if np.all(np.isnan(values)) else TOO_FEW
        return no_finding(criterion, status, reason)
    worst = np.nanargmax(np.abs(excess) if both else excess)
    measured = (v[worst] for v in np.broadcast_arrays(values, baseline, slack))
    return judge(
        criterion,
        fault,
        *measured,
        f"{names[worst]}: {reason}",
        most=np.inf if both else 1.0,
        both=both,
    )


# --- correlations -------------------------------------------------------------------


def correlation_difference(X, X_new):
    """Return Pearson correlations of new rows minus correlations of training rows.

    The difference is nan if a feature is constant in training rows. If a feature is
    constant only in new rows, its correlations in new rows count as 0.
    """
    return np.nan_to_num(_correlations(X_new)) - _correlations(X)


@unheard()
def _correlations(X):
    """Compute correlations from rows with both values; nan if a feature is constant."""
    is_value, z_scores = ~np.isnan(X), _z_scores(X)
    z_scores[~is_value] = 0
    n = is_value.T.astype(float) @ is_value
    return np.clip(z_scores.T @ z_scores / n, -1, 1)


@unheard()
def _root_mean_square(difference):
    """Compute the root mean square over the pairs of features, without nan."""
    pairs = np.triu_indices(len(difference), k=1)
    return np.sqrt(np.nanmean(difference[pairs] ** 2))


def baseline_change(real, n_train, n_new, features, max_samples, rng):
    """Return the largest change of correlations between two samples of real rows.

    Pairs of disjoint samples are drawn, with the sizes of the compared samples or
    smaller. The change is scaled to the sizes of the compared samples, because it is
    proportional to ``sqrt(1 / n_train + 1 / n_new)``. The result is None if there are
    too few rows, and nan if no pair of features varies.
    """
    second = min(n_new, len(real) // 2, max_samples)
    first = min(n_train, len(real) - second, max_samples)
    if min(first, second) < 8:
        return None
    shrink = np.sqrt((1 / n_train + 1 / n_new) / (1 / first + 1 / second))
    changes = []
    for _ in range(20):
        indices = rng.permutation(len(real))[: first + second]
        a, b = np.split(real[np.ix_(indices, features)], [first])
        changes.append(_root_mean_square(correlation_difference(a, b)))
    return shrink * max(changes)


def judge_correlations(difference, baseline):
    """Judge the root mean square change of correlations."""
    reason = (
        "root mean square change of the correlations; the threshold is "
        "sqrt(0.05**2 + (1.2 * baseline)**2)"
    )
    change = _root_mean_square(difference)
    if baseline is None or np.isnan(change + baseline):
        status = TOO_FEW if baseline is None else NOTHING
        return no_finding("correlations", status, reason)
    # If one pair of 20 features loses a correlation of 0.7, the change is 0.05. For 264
    # held-out samples of eleven tables (16 to 200 rows; continuous values, integers and
    # rare values), 8% of the changes exceeded the largest change of 20 pairs. No change
    # exceeded the threshold below.
    slack = np.hypot(0.05, 1.2 * baseline) - baseline
    return judge(
        "correlations",
        "correlations changed",
        change,
        baseline,
        slack,
        reason,
        most=np.inf,
    )
