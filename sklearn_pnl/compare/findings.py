"""Judge the value of a criterion by a threshold.

Two samples of real rows also differ. Therefore, a threshold allows the larger of two
tolerances: a fixed negligible difference from the baseline, and the sampling error.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom

FINE, TOO_FEW = "fine", "too few rows to tell"
NOTHING, NEEDS_TEST = "nothing to compare", "needs X_test"
# Probability that a criterion rejects real rows, over all features.
LEVEL = 0.01
# Number of standard errors for independent ranks. Distances to the same rows are not
# independent: for 600 pairs of samples of real rows, the standard deviation of the area
# under the ROC curve was 1.2 to 1.5 times as large. Three such deviations are about 4.
_ERRORS = 4
# Negligible difference of an area under the ROC curve from 0.5. On 4,000 rows
# with 20 Gaussian features, extra trees had an area of 0.51 if one feature was shifted
# by 0.2 standard deviations, 0.58 and 0.73 if standard deviations were smaller by 10%
# and 20%, 0.65 for rows of SMOTE, and 0.94 for shuffled columns.
_AREA = 0.1


@dataclass(frozen=True)
class Finding:
    """The result of one criterion of a comparison.

    Parameters
    ----------
    criterion : str
        Name of the criterion.
    status : str
        "fine", a fault, or a reason why the criterion cannot be judged: "too few rows
        to tell", "nothing to compare" or "needs X_test".
    value : float
        Value of the new rows.
    baseline : float
        Value that is measured on real rows, or expected for real rows.
    threshold : float
        The largest value that is fine. If the threshold is below ``baseline``, it is
        the smallest value that is fine.
    reason : str
        Description of the value and of the threshold.
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
    """Return a finding with the status ``fault`` if a value exceeds its threshold.

    The threshold is ``baseline + slack``. With ``both``, values below ``baseline -
    slack`` are faults as well. ``most`` is the largest possible value: if the threshold
    is not below ``most``, there are too few rows to find a fault.
    """
    value, baseline, slack = float(value), float(baseline), float(slack)
    is_below = both and value < baseline
    threshold = baseline - slack if is_below else baseline + slack
    is_fault = value < threshold if is_below else value > threshold
    no_fault = TOO_FEW if baseline + slack >= most else FINE
    status = fault if is_fault else no_fault
    return Finding(criterion, status, value, baseline, threshold, reason)


def no_finding(criterion, status, reason):
    """Return the finding of a criterion that cannot be judged."""
    return Finding(criterion, status, np.nan, np.nan, np.nan, reason)


def judge_area(criterion, fault, area, n, m, reason, **settings):
    """Judge the area under the ROC curve for n rows of one kind and m of another kind.

    The standard error holds if all rows have the same distribution (Mann and Whitney,
    1947).
    """
    slack = max(_AREA, _ERRORS * np.sqrt((n + m + 1) / (12 * n * m)))
    reason += f"; a difference of {_AREA:g} from 0.5 does not matter"
    return judge(criterion, fault, area, 0.5, slack, reason, **settings)


def judge_share(criterion, fault, is_new, is_real, reason, *, fine=0.0):
    """Compare the shares of new rows and real rows that have a property.

    The sampling error is an upper quantile of the predictive distribution of the number
    of new rows, which is beta-binomial with a uniform prior. Equal rows come in pairs
    or larger groups, so half of the rows count as independent. Shares up to ``fine``
    are no fault.
    """
    value, baseline = np.mean(is_new), np.mean(is_real)
    n, n_new = len(is_real) / 2, max(1, len(is_new) // 2)
    chance = betabinom.isf(LEVEL, n_new, n * baseline + 1, n * (1 - baseline) + 1)
    slack = max(chance / n_new, fine, baseline) - baseline
    return judge(criterion, fault, value, baseline, slack, reason)


def summarise(findings):
    """Return the distinct faults; without a fault, the status of all findings."""
    statuses = {finding.status for finding in findings}
    if faults := dict.fromkeys(f.status for f in findings if f.is_fault):
        return ", ".join(faults)
    if TOO_FEW in statuses:
        return TOO_FEW
    if FINE not in statuses:
        return NOTHING
    return f"{FINE}, membership untested" if NEEDS_TEST in statuses else FINE
