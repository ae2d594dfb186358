"""Spreads and correlations, against those of samples of real rows."""

import numpy as np
from scipy.stats import mode, t

from .._runtime.validation import unheard
from .features import FEWEST, spreads
from .findings import ALIKE, FEW, LEVEL, judge, untold
from .rows import n_there

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


def compare_correlations(train, new, rng):
    """Features, some where there are very many, and changes of their correlations."""
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


@unheard()
def _standardised(X):
    """Features of mean 0 and standard deviation 1, nan where they are constant."""
    std = spreads(X)
    return (X - np.nanmean(X, axis=0)) / np.where(std > 0, std, np.nan)


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
    if min(first, second) < FEWEST:
        return None
    shrink = np.sqrt((1 / n_train + 1 / n_new) / (1 / first + 1 / second))
    chosen = np.sort(rng.permutation(chosen)[:_SPLIT_FEATURES])
    changes = []
    for _ in range(_SPLITS):
        rows = rng.permutation(len(real))[: first + second]
        a, b = np.split(real[np.ix_(rows, chosen)], [first])
        changes.append(root_mean_square(_difference(a, b)))
    return shrink * max(changes)


@unheard()
def judge_spread(found, train, new):
    """The standard deviation that changes most beyond what those of real rows do."""
    n, n_new, level = train.there, new.there, LEVEL / 2 / len(found.names)
    few = np.minimum(n, n_new) < FEWEST
    if few.all():
        return untold("spread", FEW, f"fewer than {FEWEST} rows")
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


def judge_correlations(difference, noise):
    """The mean change of correlations."""
    if noise is None:
        return untold("correlations", FEW, f"fewer than {FEWEST} rows")
    change = root_mean_square(difference)
    if np.isnan(change + noise):
        return untold("correlations", ALIKE, "no two features vary")
    reason = (
        "root mean square change of the correlations, and the largest between samples "
        f"of real rows; {_CORRELATION:g} more, in squares, is no matter"
    )
    slack = np.hypot(_CORRELATION, _MARGIN * noise) - noise
    return judge("correlations", change, noise, slack, reason, most=np.inf)
