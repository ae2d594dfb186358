"""What a criterion found, in a word, and what chance does to shares and to ranks.

Two samples of real rows differ as well. So each threshold is the larger of two things:
a difference too small to matter, and the largest that real rows may show.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom

FINE, FEW = "fine", "too few rows to tell"
ALIKE, HELD_OUT = "nothing to compare", "needs X_test"
# What can be wrong by each criterion, in the order in which faults are told.
FAULTS = {
    "exact copies": "copies", "repeated rows": "copies", "close rows": "copies",
    "membership": "members exposed", "categories": "unseen categories",
    "ranges": "out of range", "location": "shifted", "spread": "spread changed",
    "zeros": "zeros changed", "missing": "missing cells changed",
    "correlations": "correlations changed",
    "distance": "far off", "detection": "distinguishable",
}  # fmt: skip
# How often a criterion may find fault with real rows, features taken together.
LEVEL = 0.01
# Ranks of distances depend on one another where these are to the same rows: areas of
# 600 pairs of samples of real rows had 1.2 to 1.5 times the standard deviation that
# ranks of random rows have. Three of those are 4.
_ERRORS = 4
# Differences of an area under the ROC curve that do not matter. Extra trees on 4,000
# rows of 20 Gaussian features got 0.51 for a shift of one feature by a fifth of its
# standard deviation, 0.58 for standard deviations smaller by a tenth, 0.65 for SMOTE,
# 0.73 for standard deviations smaller by a fifth, 0.94 for shuffled columns.
_AREA = 0.1


@dataclass(frozen=True)
class Finding:
    """One criterion of a comparison.

    Parameters
    ----------
    criterion : str
    verdict : str
        "fine", the word for what is wrong, or why it could not be told: "too few rows
        to tell", "nothing to compare" or "needs X_test".
    value : float
        What was measured of the new rows.
    usual : float
        The same of real rows.
    threshold : float
        The largest value that is fine; the least one, if it is below ``usual``.
    reason : str
        What the value is, and why the threshold is there.
    """

    criterion: str
    verdict: str
    value: float
    usual: float
    threshold: float
    reason: str


def judge(criterion, value, usual, slack, reason, *, most=1.0, both=False):
    """A finding: fine are values up to ``slack`` above the usual one.

    ``most`` is the largest value that there can be: a threshold there cannot be
    passed. With ``both``, values too far below the usual one are wrong as well.
    """
    value, usual, slack = float(value), float(usual), float(slack)
    down = both and value < usual
    threshold = usual - slack if down else usual + slack
    wrong = value < threshold if down else value > threshold
    few = FEW if usual + slack >= most else FINE
    word = FAULTS[criterion] if wrong else few
    return Finding(criterion, word, value, usual, threshold, reason)


def untold(criterion, word, reason):
    """The finding that nothing could be found."""
    return Finding(criterion, word, np.nan, np.nan, np.nan, reason)


def judge_area(criterion, value, n, m, reason, **settings):
    """A finding about an area under the ROC curve of n rows of one kind, m of another.

    Where all rows are of one distribution, so are their ranks.
    """
    slack = max(_AREA, _ERRORS * np.sqrt((n + m + 1) / (12 * n * m)))
    reason += f"; {_AREA:g} from one half is no matter"
    return judge(criterion, value, 0.5, slack, reason, **settings)


def summarise(findings):
    """The words for what is wrong, each once; else whether all could be told."""
    words = {finding.verdict for finding in findings}
    if wrong := [word for word in dict.fromkeys(FAULTS.values()) if word in words]:
        return ", ".join(wrong)
    if FEW in words:
        return FEW
    if FINE not in words:
        return ALIKE
    return f"{FINE}, membership untested" if HELD_OUT in words else FINE


def most_by_chance(count, n, n_new):
    """Share of new rows that chance explains, where ``count`` of n real rows have it.

    The upper quantile of the predictive distribution of their number, beta-binomial
    with a uniform prior. Rows that are like others come in pairs, or more: half of them
    say something of their own.
    """
    n_new = max(1, n_new // 2)
    return betabinom.isf(LEVEL, n_new, count / 2 + 1, (n - count) / 2 + 1) / n_new
