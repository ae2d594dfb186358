"""Words for the numbers of a comparison, and what real rows would have got.

Two samples of real rows differ as well. So each threshold is the larger of two things:
a difference too small to matter, and the largest that real rows showed.
"""

from dataclasses import dataclass

import numpy as np

FINE, UNTESTED = "fine", "untested"
# Words for what can be wrong, in the order in which they are told.
FAULTS = ("copies", "distinguishable", "spread lost", "correlations lost")
# Pairs of disjoint samples of real rows. Of 264 held-out samples of eleven tables (16
# to 200 rows; continuous, whole and rare values), a sixth were beyond the worst of 20
# pairs in spread and a twelfth in correlations. With the margin, and the differences
# that do not matter below, 5% are found wrong in spread and none in correlations.
_SPLITS, _MARGIN = 20, 1.2
# Fewer rows have no spread to speak of.
_FEWEST = 8
# Features whose correlations are split: their mean over pairs needs no more.
_SPLIT_FEATURES = 200
# A close copy lies within this share of the usual median distance. On six tables of 4
# to 64 features and 25 to 300 rows, 80 to 100% of rows jittered by a tenth of a std
# did, 16 to 43% of SMOTE's, 0 to 33% of PNL's, and no held-out row; 4 and 16%
# of these with two features and one. A straight line between near rows, drawn on
# evenly, is at most half of the time in its outer quarters: two thirds are copies.
_CLOSE, _CLOSE_SHARE = 0.25, 2 / 3
# Real rows of continuous features never repeat; fewer than these are no matter.
_REPEATED = 0.05
# Extra trees on 4,000 rows of 20 Gaussian features got 0.51 for a shift of one feature
# by a fifth of its standard deviation, 0.58 for standard deviations smaller by a tenth,
# 0.65 for SMOTE, 0.73 for standard deviations smaller by a fifth, 0.94 for shuffled
# columns. Cross-validated areas of 600 pairs of samples of real rows had a standard
# deviation of 1.2 to 1.5 times that of ranks of random rows: three of those are 4.
_AUC, _AUC_ERRORS = 0.1, 4
# Standard deviations smaller by a fifth, that is variances by a third: see above.
_SPREAD = -np.log(0.8)
# A single pair of 20 features that loses a correlation of 0.7 is 0.05.
_CORRELATION = 0.05
# Standard errors that a share may stray.
_ERRORS = 3


@dataclass(frozen=True)
class Finding:
    """One criterion of a comparison.

    Parameters
    ----------
    criterion : str
    verdict : str
        "fine", "untested" or the word for what is wrong.
    value : float
        What was measured.
    threshold : float
        Where "fine" ends.
    reason : str
        What the value is, and why the threshold is there.
    """

    criterion: str
    verdict: str
    value: float
    threshold: float
    reason: str


def judge(found):
    """The five findings about a :class:`SampleComparison`."""
    return (
        _judge_repeats(found),
        _judge_closeness(found),
        _judge_auc(found),
        _judge_spread(found),
        _judge_correlations(found),
    )


def summarise(findings):
    """The words for what is wrong, each once; else "fine", or "untested"."""
    words = {finding.verdict for finding in findings}
    wrong = [word for word in FAULTS if word in words]
    return ", ".join(wrong) or (FINE if FINE in words else UNTESTED)


def _judge_repeats(found):
    value = max(found.exact_copy_share, found.repeated_share)
    usual = max(found.usual_exact_copy_share, found.usual_repeated_share)
    threshold = usual + _REPEATED + _stray(usual, found)
    of = "a training row" if value == found.exact_copy_share else "another new row"
    reason = (
        f"share of new rows that equal {of}; {usual:.1%} of real rows do, and "
        f"{_REPEATED:.0%} more, beyond chance, are no matter"
    )
    return _finding("repeated rows", "copies", value, threshold, reason)


def _judge_closeness(found):
    radius = _CLOSE * np.median(found.usual_distance)
    value = float(np.mean(found.distance <= radius))
    usual = float(np.mean(found.usual_distance <= radius))
    threshold = max(_CLOSE_SHARE, usual + _stray(usual, found))
    reason = (
        "share of new rows nearer to a training row than a quarter of the usual median "
        f"distance; {usual:.1%} of real rows are, and half of those between near rows"
    )
    return _finding("close rows", "copies", value, threshold, reason)


def _stray(share, found):
    """Standard errors of a share of new rows and of real ones."""
    rows = 1 / found.n_new + 1 / len(found.usual_distance)
    return _ERRORS * np.sqrt(share * (1 - share) * rows)


def _judge_auc(found):
    n = found.n_compared
    # Of the rank statistic, where all rows are of one distribution.
    error = np.sqrt((2 * n + 1) / (12 * n**2))
    tolerated = max(_AUC, _AUC_ERRORS * error)
    reason = (
        f"AUC of a classifier on {n} rows of each kind, in either direction from 0.5; "
        f"real rows stray by {error:.2g}"
    )
    away = 0.5 + abs(found.auc - 0.5)
    return _finding("detection", "distinguishable", away, 0.5 + tolerated, reason)


def _judge_spread(found):
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = -np.log(found.std_ratio)
        allowed = np.maximum(_SPREAD, _MARGIN * found.std_limit * found.std_noise)
        # What real rows lose altogether is no loss, and neither is what never varied.
        excess = np.nan_to_num(loss - allowed, nan=-np.inf, posinf=np.inf)
    if not np.any(np.isfinite(allowed) & ~np.isnan(loss)):
        value, threshold, name = np.nan, np.nan, "any feature"
    else:
        worst = int(np.argmax(excess))
        value, threshold = float(found.std_ratio[worst]), float(np.exp(-allowed[worst]))
        name = found.feature_names[worst]
    reason = (
        f"ratio of standard deviations of {name}, the feature that loses most beyond "
        "what real rows do; to four fifths it is no matter"
    )
    return _finding("spread", "spread lost", value, threshold, reason, lowest=True)


def _judge_correlations(found):
    value = found.rms_correlation_difference
    threshold = float(np.hypot(_CORRELATION, _MARGIN * found.correlation_noise))
    reason = (
        "root mean square change of the correlations; between real rows it is up to "
        f"{found.correlation_noise:.2g}, and {_CORRELATION:g} more, in squares, is no "
        "matter"
    )
    return _finding("correlations", "correlations lost", value, threshold, reason)


def _finding(criterion, fault, value, threshold, reason, lowest=False):
    value, threshold = float(value), float(threshold)
    if np.isnan(value) or np.isnan(threshold):
        return Finding(
            criterion, UNTESTED, value, threshold, "too few rows or features"
        )
    wrong = value < threshold if lowest else value > threshold
    return Finding(criterion, fault if wrong else FINE, value, threshold, reason)


def real_noise(real, n_train, n_new, features, max_samples, rng):
    """How far samples of real rows stray from one another in spread and correlations.

    Pairs of disjoint samples are drawn, of the sizes compared or smaller; what they
    show is scaled to those sizes, with the root of the numbers of rows.

    Parameters
    ----------
    real : ndarray of shape (n_real, n_features)
        Real rows, training and test rows together.
    n_train, n_new : int
        Sizes of the samples that are compared.
    features : ndarray of int
        Features whose correlations are compared.
    max_samples : int
        Most rows of a sample.
    rng : RandomState

    Returns
    -------
    noise : dict
        ``std_noise``, root mean square log ratio of standard deviations of each
        feature, inf where samples may be constant; ``std_limit``, the largest loss of
        any sample in these units; ``correlation_noise``, the largest root mean square
        change. All nan where there are too few rows.
    """
    second = min(n_new, len(real) // 2, max_samples)
    first = min(n_train, len(real) - second, max_samples)
    if min(first, second, n_new) < _FEWEST:
        noise = np.full(real.shape[1], np.nan)
        return {"std_noise": noise, "std_limit": np.nan, "correlation_noise": np.nan}
    shrink = np.sqrt((1 / n_train + 1 / n_new) / (1 / first + 1 / second))
    features = np.sort(rng.permutation(features)[:_SPLIT_FEATURES])
    losses, changes = [], []
    for _ in range(_SPLITS):
        drawn = real[rng.permutation(len(real))[: first + second]]
        a, b = drawn[:first], drawn[first:]
        with np.errstate(divide="ignore", invalid="ignore"):
            losses.append(shrink * np.log(spreads(a) / spreads(b)))
        change = correlation_difference(a[:, features], b[:, features])
        changes.append(shrink * root_mean_square(off_diagonal(change)))
    losses = np.array(losses)
    noise = np.sqrt(np.mean(losses**2, axis=0))
    noise[~np.isfinite(noise)] = np.inf
    known = (noise > 0) & np.isfinite(noise)
    limit = np.max(losses[:, known] / noise[known], initial=0)
    return {
        "std_noise": noise,
        "std_limit": float(limit),
        "correlation_noise": float(np.max(changes)),
    }


def spreads(X):
    """Standard deviations, exactly 0 where all values are equal."""
    return np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 0.0)


def correlation_difference(X, X_new):
    """Pearson correlations of new minus those of training rows.

    nan where a feature is constant in the training rows; one that is constant in the
    new ones alone has lost its correlations: they are 0.
    """
    known, new = _correlations(X), _correlations(X_new)
    return np.where(np.isnan(new), 0.0, new) - known


def _correlations(X):
    """Pearson correlations; nan for features that are constant."""
    std = spreads(X)
    X = (X - X.mean(axis=0)) / np.where(std > 0, std, np.nan)
    return np.clip(X.T @ X / len(X), -1, 1)


def off_diagonal(matrix):
    """Absolute values of a symmetric matrix above its diagonal, without nan."""
    values = np.abs(matrix[np.triu_indices(len(matrix), k=1)])
    return values[~np.isnan(values)]


def root_mean_square(values):
    """Of an array; nan if it is empty."""
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")
