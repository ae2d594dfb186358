"""Features and correlations of new and training rows."""

import numpy as np
import pytest
from _samples import FAST, SEEDS, draw, punched, statuses
from numpy.testing import assert_allclose
from scipy.stats import ks_2samp
from scipy.stats import t as student

from sklearn_pnl import compare_samples
from sklearn_pnl.compare import features


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_feature_statistics_follow_their_definitions(seed, holes):
    X, X_new = draw(seed, 90), 1.2 * draw(seed + 10, 60)
    X[:, 1] = np.rint(X[:, 1])
    if holes:
        X, X_new = punched(X, seed), punched(X_new, seed)
    found = compare_samples(X, X_new, **FAST).features
    for j in range(4):
        a, b = (rows[~np.isnan(rows[:, j]), j] for rows in (X, X_new))
        assert found.train_missing_share[j] == pytest.approx(1 - len(a) / 90)
        assert found.missing_share[j] == pytest.approx(1 - len(b) / 60)
        assert found.ks_statistic[j] == pytest.approx(ks_2samp(a, b).statistic)
        outside = np.mean([not a.min() <= value <= a.max() for value in b])
        assert found.outside_range[j] == pytest.approx(outside)
        assert found.std_ratio[j] == pytest.approx(b.std() / a.std())
        difference = (b.mean() - a.mean()) / a.std()
        assert found.mean_difference[j] == pytest.approx(difference)


@pytest.mark.parametrize("seed", SEEDS)
def test_differences_of_correlations(seed):
    X, X_new = draw(seed, 50), draw(seed + 10, 35)
    X_new[:, 2] = np.random.default_rng(seed).normal(size=35)
    found = compare_samples(X, X_new, **FAST)
    expected = np.corrcoef(X_new.T) - np.corrcoef(X.T)
    assert_allclose(found.correlation_difference, expected, atol=1e-12)
    pairs = expected[np.triu_indices(4, 1)]
    assert found["correlations"].value == pytest.approx(np.mean(pairs**2) ** 0.5)
    # A feature that is constant only in new rows has lost its correlations.
    X_new[:, 1] = 0.1
    found = compare_samples(X, X_new, **FAST)
    assert_allclose(found.correlation_difference[1], -np.corrcoef(X.T)[1], atol=1e-12)
    assert found.features.std_ratio[1] == 0
    one = compare_samples(draw(0, 30, 1), draw(1, 30, 1), **FAST)
    assert statuses(one)["correlations"] == "nothing to compare"


@pytest.mark.parametrize("seed", SEEDS)
def test_baseline_change_depends_on_the_numbers_of_rows(seed):
    # The standard error of a correlation near 0 is sqrt(1 / n).
    rng = np.random.RandomState(seed)
    real = np.random.default_rng(seed).normal(size=(400, 30))
    for sizes in ((400, 400), (400, 50), (400, 4000)):
        change = features.baseline_change(real, *sizes, np.arange(30), 2000, rng)
        error = np.sqrt(1 / sizes[0] + 1 / sizes[1])
        assert change == pytest.approx(error, rel=0.25)


@pytest.mark.parametrize("shape", [1, 50])
@pytest.mark.parametrize("seed", SEEDS)
def test_threshold_of_the_spread_follows_the_delta_method(seed, shape):
    # Var log s = (kurtosis - 1) / 4n; gamma values have the kurtosis 3 + 6 / shape.
    rng = np.random.default_rng(seed)
    X, X_new = rng.gamma(shape, size=(2, 200, 1))
    found = compare_samples(X, X_new, **FAST)["spread"]
    tails = [np.mean(((a - a.mean()) / a.std()) ** 4) - 1 for a in (X, X_new)]
    error = np.sqrt(max(tails) / 400)
    allowed = max(-np.log(0.8), student.isf(0.005, 199) * error)
    sign = 1 if found.value > 1 else -1
    assert found.threshold == pytest.approx(np.exp(sign * allowed))
    assert found.status == "fine"


@pytest.mark.parametrize("n", [10, 100])
@pytest.mark.parametrize("m", [10, 1000])
def test_share_of_values_beyond_the_range_follows_wilks(n, m):
    # The share of a distribution beyond n draws is beta(2, n - 1) for all continuous
    # ones (Wilks 1941): simulated, one sample in a hundred has more than is allowed.
    rng = np.random.default_rng(0)
    ends = np.sort(rng.random((20_000, n)), axis=1)[:, [0, -1]]
    beyond = rng.binomial(m, 1 - np.ptp(ends, axis=1)) / m
    X, X_new = rng.normal(size=(n, 1)), rng.normal(size=(m, 1))
    found = compare_samples(X, X_new, max_samples=10, **FAST)["ranges"]
    assert found.baseline == pytest.approx(beyond.mean(), rel=0.05)
    assert found.threshold >= 0.05
    assert np.mean(beyond > found.threshold) <= 0.0125
    if found.threshold > 0.05:
        assert np.mean(beyond >= found.threshold - 1e-9) >= 0.0075


@pytest.mark.parametrize("of", ["X", "X_new", "X_test"])
def test_empty_columns_are_not_faults(of):
    rows = {"X": draw(0), "X_new": draw(1), "X_test": draw(2)}
    rows[of][:, 2] = np.nan
    found = compare_samples(**rows, **FAST)
    wrong = {f.criterion for f in found.findings if f.is_fault}
    assert np.isfinite(found.distance).all()
    assert not wrong & {"ranges", "location", "spread"}


# --- verdicts -------------------------------------------------------------------


def real_tables(seed, n_rows):
    """Make continuous, heavy-tailed, integer, rare and repeated values."""
    rng = np.random.default_rng(seed)
    return {
        "gaussian": draw(seed, n_rows),
        "one": draw(seed, n_rows, 1),
        "heavy": np.exp(1.5 * rng.normal(size=(n_rows, 5))),
        "whole": rng.poisson(3, size=(n_rows, 3)),
        "rare": rng.random((n_rows, 6)) < np.linspace(0.02, 0.5, 6),
        "repeated": rng.integers(0, 2, size=(n_rows, 2)),
        "holes": punched(draw(seed, n_rows), seed),
        "holes by value": punched(draw(seed, n_rows), seed, by_value=0.15),
    }


def test_real_rows_are_rarely_judged_faulty():
    # Thresholds are set for 1 to 5% of false alarms in the worst criterion.
    wrong, n_verdicts = {}, 0
    for seed in range(2):
        for table in real_tables(seed, 120).values():
            X, X_test, X_new = np.split(table, 3)
            for held_out in (None, X_test):
                found = compare_samples(
                    X, X_new, X_test=held_out, cv=2, random_state=seed
                )
                n_verdicts += 1
                for f in found.findings:
                    wrong[f.criterion] = wrong.get(f.criterion, 0) + f.is_fault
    assert max(wrong.values(), default=0) <= 0.08 * n_verdicts


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_verdict_names_each_fault(seed, held_out):
    X, X_test, real = draw(seed, 200), draw(seed + 20, 200), draw(seed + 10, 200)
    rng = np.random.default_rng(seed)
    std, mean = X.std(axis=0), X.mean(axis=0)
    shuffled = np.column_stack([rng.permutation(column) for column in real.T])
    narrow = mean + 0.5 * (real - mean)
    one_narrow, one_constant = real.copy(), real.copy()
    one_narrow[:, 2], one_constant[:, 2] = narrow[:, 2], mean[2]
    cases = {
        "copies": [X, X + 0.01 * std * rng.normal(size=X.shape), np.r_[X[:60], real]],
        "distinguishable": [real + std],
        "shifted": [real + std, real + [0, 0, std[2], 0]],
        "out of range": [mean + 3 * (real - mean)],
        "spread changed": [
            narrow,
            one_narrow,
            one_constant,
            mean + 1.6 * (real - mean),
            np.repeat(X[:1], 80, axis=0),
        ],
        "correlations changed": [shuffled],
    }
    given = {"X_test": X_test if held_out else None, "cv": 2, "random_state": seed}
    for fault, samples in cases.items():
        # The other criteria need no classifier.
        other = {} if fault == "distinguishable" else {"classifier": FAST["classifier"]}
        for X_new in samples:
            assert fault in compare_samples(X, X_new, **given, **other).verdict
    assert compare_samples(X, real, **given).verdict.startswith("fine")
