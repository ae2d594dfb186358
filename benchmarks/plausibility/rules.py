"""Rules that all training rows satisfy, and the rows that violate a rule.

A rule is a function of a frame to a mask of the rows that violate the rule. The
functions below find the rules of one kind.
"""

from itertools import combinations, permutations

import numpy as np

# A category, zero, or a value other than zero occurs in at least so many rows.
MIN_ROWS = 20
# A resolution is told from at least so many values, with at most so many decimals.
MIN_VALUES, MAX_DECIMALS = 8, 4


def numeric(frame):
    """Return the names of the numeric columns with more than two values."""
    return [
        name
        for name in frame
        if frame[name].dtype.kind in "iuf" and frame[name].nunique() > 2
    ]


def categorical(frame):
    """Return the names of columns of categories and of binary columns."""
    return [name for name in frame if name not in numeric(frame)]


def within(value, where, low, high):
    """Return the rule that a value is in an interval in the rows of a condition."""
    return lambda frame: where(frame) & ~value(frame).between(low, high)


def conditional(frame, where, names):
    """Return the rules on ranges of columns that a condition makes narrower."""
    rows = where(frame)
    rules = []
    for name in names:
        values = frame.loc[rows, name]
        low, high = values.min(), values.max()
        if low > frame[name].min() or high < frame[name].max():
            rules.append(within(lambda new, name=name: new[name], where, low, high))
    return rules


def category_ranges(frame):
    """Find the range of each numeric column in the rows of each category."""
    rules = []
    for column in categorical(frame):
        counts = frame[column].value_counts()
        for level in counts.index[counts >= MIN_ROWS]:

            def where(new, column=column, level=level):
                return new[column] == level

            rules += conditional(frame, where, numeric(frame))
    return rules


def zero_ranges(frame, zero=True):
    """Find the range of each numeric column where another column is zero, or not."""
    rules = []
    for column in numeric(frame):
        zeros = (frame[column] == 0).sum()
        if min(zeros, len(frame) - zeros) >= MIN_ROWS:

            def where(new, column=column):
                return (new[column] == 0) == zero

            others = [name for name in numeric(frame) if name != column]
            rules += conditional(frame, where, others)
    return rules


def differences(frame):
    """Find the range of the difference of two columns if one is never larger.

    The pair counts only if the ranges of the columns do not imply the order.
    """
    rules = []
    for low, high in permutations(numeric(frame), 2):
        gaps = frame[high] - frame[low]
        if gaps.min() >= 0 and frame[low].max() > frame[high].min() and gaps.any():
            # Differences of decimals are rounded.
            slack = 1e-9 * float(frame[high].abs().max())
            rules.append(
                within(
                    lambda new, low=low, high=high: new[high] - new[low],
                    lambda new: np.ones(len(new), bool),
                    gaps.min() - slack,
                    gaps.max() + slack,
                )
            )
    return rules


def category_pairs(frame):
    """Find the pairs of two frequent categories that occur in no row together."""
    rules = []
    for first, second in combinations(categorical(frame), 2):
        often = [
            set(counts.index[counts >= MIN_ROWS])
            for counts in (frame[first].value_counts(), frame[second].value_counts())
        ]
        seen = set(zip(frame[first], frame[second], strict=True))
        absent = {(a, b) for a in often[0] for b in often[1]} - seen
        if absent:
            rules.append(
                lambda new, first=first, second=second, absent=absent: np.array(
                    [
                        pair in absent
                        for pair in zip(new[first], new[second], strict=True)
                    ]
                )
            )
    return rules


def decimals(values):
    """Return the number of decimals of all values, or None if it is large."""
    for number in range(MAX_DECIMALS + 1):
        if (np.abs(values - np.round(values, number)) <= 1e-15 * np.abs(values)).all():
            return number
    return None


def resolutions(frame, coarse=True):
    """Find columns whose values are multiples of a step.

    A coarse step is larger than a unit of the last decimal; otherwise the rule is the
    number of decimals.
    """
    rules = []
    for name in numeric(frame):
        values = frame[name].to_numpy(float)
        places = decimals(values)
        if places is None or frame[name].nunique() < MIN_VALUES:
            continue
        units = np.rint(values * 10**places)
        if np.abs(units).max() > 2**50:
            continue
        units = np.unique(units.astype(np.int64))
        step = int(np.gcd.reduce(units - units[0])) if coarse else 1
        if step == 1 and coarse:
            continue

        def broken(new, name=name, scale=10**places, start=units[0], step=step):
            quotients = (new[name].to_numpy(float) * scale - start) / step
            return np.abs(quotients - np.rint(quotients)) > 1e-6

        rules.append(broken)
    return rules


KINDS = {
    "a category implies a range": category_ranges,
    "zero implies a range": zero_ranges,
    "not zero implies a range": lambda frame: zero_ranges(frame, zero=False),
    "difference of two ordered columns": differences,
    "combination of two categories": category_pairs,
    "resolution": resolutions,
    "number of decimals": lambda frame: resolutions(frame, coarse=False),
}


def violated(rules, frame):
    """Return the share of the rows that violate a rule."""
    found = np.zeros(len(frame), bool)
    for rule in rules:
        found |= np.asarray(rule(frame), bool)
    return float(found.mean())
