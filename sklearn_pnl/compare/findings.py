"""What a criterion measured, and whether chance or a small difference explains it.

Two samples of real rows differ as well. So each threshold is the larger of a difference
that is too small to matter and of the largest that samples of real rows may show.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom

FINE, TOO_FEW = "fine", "too few rows to tell"
NOTHING, NEEDS_TEST = "nothing to compare", "needs X_test"
# Probability that a criterion rejects real rows, over all features.
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
    status : str
        "fine", the fault, or why there is no answer: "too few rows to tell", "nothing
        to compare" or "needs X_test".
    value : float
        Measured on the new rows.
    baseline : float
        The same, measured on real rows or expected of them.
    threshold : float
        The largest value that is fine; the smallest one, if it is below ``baseline``.
    reason : str
        What the value is, and where the threshold comes from.
    """

    criterion: str
    status: str
    value: float
    baseline: float
    threshold: float
    reason: str

    @property
    def is_fault(self) -> bool:
        """Whether the status is a fault."""
        return self.status not in (FINE, TOO_FEW, NOTHING, NEEDS_TEST)


def judge(criterion, fault, value, baseline, slack, reason, *, most=1.0, both=False):
    """Return a finding that accepts values up to ``slack`` above the baseline.

    ``fault`` is its status beyond that.

    ``most`` is the largest possible value: a threshold there means too few rows. With
    ``both``, values more than ``slack`` below the baseline are faults as well.
    """
    value, baseline, slack = float(value), float(baseline), float(slack)
    is_below = both and value < baseline
    threshold = baseline - slack if is_below else baseline + slack
    is_fault = value < threshold if is_below else value > threshold
    otherwise = TOO_FEW if baseline + slack >= most else FINE
    status = fault if is_fault else otherwise
    return Finding(criterion, status, value, baseline, threshold, reason)


def no_finding(criterion, status, reason):
    """Return the finding of a criterion that has no answer."""
    return Finding(criterion, status, np.nan, np.nan, np.nan, reason)


def judge_area(criterion, fault, area, n, m, reason, **settings):
    """Judge an area under the ROC curve of n rows of one kind and m of another.

    The error is that of ranks of rows of one distribution (Mann and Whitney, 1947).
    """
    slack = max(_AREA, _ERRORS * np.sqrt((n + m + 1) / (12 * n * m)))
    reason += f"; {_AREA:g} from one half does not matter"
    return judge(criterion, fault, area, 0.5, slack, reason, **settings)


def judge_share(criterion, fault, is_new, is_real, reason, *, fine=0.0):
    """Judge the share of new rows that are something by that of real rows.

    What chance explains is the upper quantile of the predictive distribution of their
    number, beta-binomial with a uniform prior. Rows that equal others come in pairs or
    more, so half of the rows count as independent. Shares up to ``fine`` are no fault.
    """
    value, baseline = np.mean(is_new), np.mean(is_real)
    n, n_new = len(is_real) / 2, max(1, len(is_new) // 2)
    chance = betabinom.isf(LEVEL, n_new, n * baseline + 1, n * (1 - baseline) + 1)
    slack = max(chance / n_new, fine, baseline) - baseline
    return judge(criterion, fault, value, baseline, slack, reason)


def summarise(findings):
    """Return the faults, each once; without any, whether all criteria had an answer."""
    statuses = {finding.status for finding in findings}
    if faults := dict.fromkeys(f.status for f in findings if f.is_fault):
        return ", ".join(faults)
    if TOO_FEW in statuses:
        return TOO_FEW
    if FINE not in statuses:
        return NOTHING
    return f"{FINE}, membership untested" if NEEDS_TEST in statuses else FINE
