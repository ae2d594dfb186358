"""Samples for comparisons, and distances computed by definition."""

import numpy as np
from sklearn.tree import DecisionTreeClassifier

SEEDS = [0, 1, 2]
FAST = {"classifier": DecisionTreeClassifier(max_depth=2, random_state=0), "cv": 2,
        "random_state": 0}  # fmt: skip
HOLES = (0.2, 0, 0.1, 0.4)


def draw(seed=0, n_rows=80, n_features=4):
    """Draw correlated features of very different units."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(7).normal(size=(n_features, n_features))
    units = 10.0 ** np.arange(n_features)
    return rng.normal(size=(n_rows, n_features)) @ mixing * units + 5 * units


def punched(X, seed, shares=HOLES, by_value=0.0):
    """Remove cells, by chance or more often for larger values."""
    chance = np.asarray(shares) * (1 + by_value * (X - X.mean(axis=0)) / X.std(axis=0))
    rng = np.random.default_rng([seed, 1])
    return np.where(rng.random(X.shape) < chance, np.nan, X)


def mixed(seed, n=200):
    """Make a frame of dependent numbers, categories and dates."""
    import pandas

    rng = np.random.default_rng(seed)
    city = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return pandas.DataFrame(
        {
            "size": rng.normal(2.0 * city),
            "city": pandas.Categorical(np.array(["Bonn", "Kiel", "Ulm"])[city]),
            "seen": pandas.Timestamp("2020-01-01")
            + pandas.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "rooms": rng.integers(1, 5, n),
            "note": rng.choice(["yes", "no"], n).astype(object),
        }
    )


def slow_distances(X, others, leave_one_out=False):
    """Compute distances to the closest row of X, in standard deviations of X."""
    std = np.where(np.ptp(X, axis=0) == 0, 1, X.std(axis=0))
    gaps = np.linalg.norm((others[:, None] - X) / std, axis=2)
    if leave_one_out:
        np.fill_diagonal(gaps, np.inf)
    return gaps.min(axis=1)


def numbers_of(comparison):
    """Return all numbers of a comparison."""
    findings = [(f.value, f.baseline, f.threshold) for f in comparison.findings]
    features = [v for k, v in vars(comparison.features).items() if k != "names"]
    arrays = [comparison.distance, comparison.closest, comparison.baseline_distance]
    arrays += [comparison.fold_auc, comparison.correlation_difference]
    return np.concatenate([np.ravel(v) for v in [findings, *features, *arrays]])


def statuses(comparison):
    return {finding.criterion: finding.status for finding in comparison.findings}
