"""New rows against training rows: what the numbers are, and where they must stand."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from imblearn.over_sampling import SMOTE, RandomOverSampler
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ks_2samp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_pnl import SampleComparison, _verdicts, compare_samples, comparison

SEEDS = [0, 1, 2]
FAST = {"classifier": DecisionTreeClassifier(max_depth=2), "cv": 2, "random_state": 0}


def draw(seed=0, n_rows=80, n_features=4):
    """Correlated features of very different units."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(7).normal(size=(n_features, n_features))
    units = 10.0 ** np.arange(n_features)
    return rng.normal(size=(n_rows, n_features)) @ mixing * units + 5 * units


def over_sample(sampler, X, n_new):
    """New rows alone; the other class is there for the sampler's sake."""
    others = np.zeros((len(X) + n_new, X.shape[1]))
    y = np.repeat([0, 1], [len(X), len(others)])
    return sampler.fit_resample(np.vstack([X, others]), y)[0][len(X) + len(others) :]


def slow_distances(X, others, leave_one_out=False):
    """From each other row to the closest row of X, by the definition."""
    std = X.std(axis=0)
    std[np.ptp(X, axis=0) == 0] = 1
    found = []
    for i, row in enumerate(others):
        found.append(
            min(
                np.sqrt((((row - known) / std) ** 2).sum())
                for j, known in enumerate(X)
                if not (leave_one_out and i == j)
            )
        )
    return np.array(found)


def flat_numbers(found):
    return np.concatenate(
        [np.ravel(v) for k, v in vars(found).items() if k != "feature_names"]
    )


# --- distances ------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 4, 30])
@pytest.mark.parametrize("seed", SEEDS)
def test_distances_are_those_of_the_definition(seed, n_features):
    # Many features are searched by brute force, few by a tree.
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.integers(-3, 4, size=n_features)
    X, X_new = (rng.gamma(1.0, size=(n, n_features)) * units for n in (40, 25))
    X[:5] = X[5:10]
    found = compare_samples(X, X_new, **FAST)
    assert_allclose(found.distance, slow_distances(X, X_new), rtol=1e-9)
    assert_allclose(found.usual_distance, slow_distances(X, X, True), rtol=1e-9)
    gaps = np.linalg.norm((X_new - X[found.closest]) / X.std(axis=0), axis=1)
    assert_allclose(gaps, found.distance, rtol=1e-9)
    expected = np.median(found.distance) / np.median(found.usual_distance)
    assert found.distance_ratio == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_usual_distance_is_that_of_test_rows_if_there_are_any(seed):
    X, X_new, X_test = draw(seed, 40), draw(seed + 10, 25), draw(seed + 20, 30)
    found = compare_samples(X, X_new, X_test=X_test, **FAST)
    assert (found.n_train, found.n_new, found.n_test) == (40, 25, 30)
    assert_allclose(found.usual_distance, slow_distances(X, X_test), rtol=1e-9)


def test_a_constant_feature_keeps_its_units():
    X, X_new = draw(0, 20), draw(1, 10)
    X[:, 1], X_new[:, 1] = 0.1, np.r_[np.full(5, 0.1), np.full(5, 3.1)]
    found = compare_samples(X, X_new, **FAST)
    assert_allclose(found.distance, slow_distances(X, X_new), rtol=1e-9)
    assert np.isnan(found.std_ratio[1]) and np.isnan(found.mean_difference[1])
    assert found.outside_range[1] == 0.5
    assert found.ks_statistic[1] == 0.5
    assert np.isnan(found.correlation_difference[1]).all()
    assert np.isfinite(found.max_correlation_difference)
    assert np.isfinite(np.delete(found.std_ratio, 1)).all()


# --- copies ---------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 4, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_found_whatever_the_search(seed, n_features):
    X = draw(seed, 60, min(n_features, 4))
    noise = np.random.default_rng(seed).normal(size=(60, 20))
    X = np.hstack([X, 1e6 + noise])[:, :n_features]
    found = compare_samples(X, X[::-1], **FAST)
    assert found.exact_copy_share == found.near_copy_share == 1
    assert found.distance.max() == 0 == found.distance_ratio
    assert_array_equal(found.closest, np.arange(60)[::-1])
    assert found.usual_exact_copy_share == 0
    # Two rows that are each other's closest have one distance, and count together.
    assert 0 < found.usual_near_copy_share < 0.1
    assert found.copy_distance == np.quantile(found.usual_distance, 0.05)


@pytest.mark.parametrize("copy_quantile", [0.05, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_near_copies_lie_below_the_quantile_and_are_not_exact(seed, copy_quantile):
    X = draw(seed, 100)
    X_new = draw(seed + 10, 100)
    X_new[:30] = X[:30] + 1e-6 * X.std(axis=0)
    found = compare_samples(X, X_new, copy_quantile=copy_quantile, **FAST)
    # The threshold itself is the distance of a pair: rounding must not decide.
    usual = slow_distances(X, X, True)
    threshold = np.quantile(usual, copy_quantile) * (1 + 1e-12)
    expected = np.mean(slow_distances(X, X_new) <= threshold)
    assert found.near_copy_share == expected >= 0.3
    assert found.exact_copy_share == 0
    assert found.usual_near_copy_share == np.mean(usual <= threshold)
    assert abs(found.usual_near_copy_share - copy_quantile) < 0.03


def test_negative_zero_is_a_copy_of_zero():
    X = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert compare_samples(X, [[-0.0, 1.0]]).exact_copy_share == 1


def test_duplicates_in_the_data_are_their_own_standard():
    # 40% of the training rows come twice: the usual distance is often 0, copies with
    # it, and a twentieth is not what to expect.
    X = draw(0, 80)
    X = np.vstack([X, X[:20]])
    found = compare_samples(X, np.vstack([X[:20], draw(1, 20)]), **FAST)
    assert found.copy_distance == 0
    assert found.usual_near_copy_share == found.usual_exact_copy_share == 0.4
    assert found.near_copy_share == found.exact_copy_share == 0.5
    assert 0 < found.distance_ratio < 1


def test_where_all_training_rows_are_duplicates_the_ratio_is_not_made_up():
    X = np.repeat(draw(0, 10), 2, axis=0)
    assert compare_samples(X, X, **FAST).distance_ratio != 0
    assert np.isnan(compare_samples(X, X, **FAST).distance_ratio)
    assert compare_samples(X, draw(1, 10), **FAST).distance_ratio == np.inf


def test_duplicates_of_test_rows_are_counted_against_the_training_rows():
    X, X_test = draw(0, 40), draw(1, 20)
    X_test[10:] = X_test[:10]
    X_test[0] = X[3]
    found = compare_samples(X, draw(2, 10), X_test=X_test, **FAST)
    assert found.usual_exact_copy_share == 1 / 20


@pytest.mark.parametrize("seed", SEEDS)
def test_smote_rows_are_closer_than_usual_and_random_ones_are_copies(seed):
    X = draw(seed, 60)
    smote = over_sample(SMOTE(random_state=seed), X, 60)
    found = compare_samples(X, smote, **FAST)
    assert found.distance_ratio < 0.7
    assert found.near_copy_share > 2 * found.usual_near_copy_share
    assert found.exact_copy_share == 0
    assert found.outside_range.max() == 0
    assert np.median(found.std_ratio) < 1
    copies = over_sample(RandomOverSampler(random_state=seed), X, 60)
    assert compare_samples(X, copies, **FAST).exact_copy_share == 1


# --- telling new rows from real ones --------------------------------------------


def test_rows_of_the_same_distribution_cannot_be_told_apart():
    # Mean of several draws: a single one strays by about 0.04.
    found = [
        compare_samples(draw(s, 150), draw(s + 50, 150), cv=3, random_state=s)
        for s in range(6)
    ]
    assert abs(np.mean([f.auc for f in found]) - 0.5) < 0.05
    assert abs(np.mean([f.distance_ratio for f in found]) - 1) < 0.1
    assert abs(np.mean([f.near_copy_share for f in found]) - 0.05) < 0.03
    assert max(f.ks_statistic.max() for f in found) < 0.25


@pytest.mark.parametrize("seed", SEEDS)
def test_shifted_rows_are_told_apart(seed):
    X = draw(seed)
    for shift, lowest in ((3, 0.9), (1000, 0.999)):
        found = compare_samples(X, draw(seed + 10) + shift * X.std(axis=0), cv=3)
        assert found.auc > lowest
        assert_allclose(found.mean_difference, shift, atol=0.6)
        assert found.distance_ratio > 1.5
        assert found.fold_auc.size == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_at_exactly_one_half(seed):
    # Each is in the fold of its original. Plain folds would give about 0.
    X = draw(seed)
    assert_allclose(compare_samples(X, X, random_state=seed).fold_auc, 0.5, atol=1e-12)
    nearly = X + 1e-9 * X.std(axis=0)
    assert compare_samples(X, nearly, random_state=seed).auc == pytest.approx(
        0.5, abs=0.15
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_held_out_rows_find_copies_out(seed):
    # Few distinct rows many times: training rows cannot tell, held-out rows can.
    X, X_test = draw(seed, 20), draw(seed + 10, 200)
    copies = X[np.random.default_rng(seed).integers(20, size=200)]
    assert abs(compare_samples(X, copies, random_state=0).auc - 0.5) < 0.25
    found = compare_samples(X, copies, X_test=X_test, random_state=0)
    assert found.auc > 0.9
    fresh = compare_samples(X, draw(seed + 20, 200), X_test=X_test, random_state=0)
    assert abs(fresh.auc - 0.5) < 0.15


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_hold_each_row_and_its_nearest_and_do_not_look_at_kinds(seed):
    rows = np.vstack([draw(seed, 30), draw(seed, 5), draw(seed + 10, 20)])
    groups = comparison._neighbor_groups(rows)
    assert_array_equal(groups[:5], groups[30:35])
    distinct = np.delete(np.arange(55), np.arange(30, 35))
    gaps = np.linalg.norm(rows[distinct][:, None] - rows[distinct], axis=2)
    np.fill_diagonal(gaps, np.inf)
    nearest = gaps.argmin(axis=1)
    assert_array_equal(groups[distinct], groups[distinct][nearest])
    # No more than that: as many groups as components of that graph.
    parent = np.arange(len(distinct))
    for _ in range(len(distinct)):
        low = np.minimum(parent, parent[nearest])
        np.minimum.at(low, nearest, low)
        parent = low
    assert len(set(groups)) == len(set(parent))
    mixed = np.random.default_rng(seed).permutation(55)
    again = comparison._neighbor_groups(rows[mixed])
    same = groups[mixed][:, None] == groups[mixed]
    assert_array_equal(again[:, None] == again, same)


@pytest.mark.parametrize("held_out", [False, True])
def test_folds_have_both_kinds_on_both_sides_and_split_no_group(held_out):
    rows = np.vstack([draw(0, 30), draw(0, 30) + 1e-9])
    kinds = np.repeat([0, 1], 30)
    rng = np.random.RandomState(0)
    splits = comparison._splits(rows, kinds, held_out, 4, rng)
    assert len(splits) == 4
    assert_array_equal(np.sort(np.concatenate([t for _, t in splits])), np.arange(60))
    apart = 0
    for train, test in splits:
        assert not set(train) & set(test)
        assert set(kinds[train]) == set(kinds[test]) == {0, 1}
        apart += len(set(train % 30) & set(test % 30))
    assert (apart == 0) != held_out


def test_as_many_rows_of_either_kind_are_drawn_without_replacement():
    real, new = np.arange(10.0)[:, None], 100 + np.arange(30.0)[:, None]
    rng = np.random.RandomState(0)
    rows, kinds = comparison._balanced(real, new, 20, rng)
    assert_array_equal(np.bincount(kinds), [10, 10])
    assert_array_equal(rows[:, 0] >= 100, kinds == 1)
    assert len(np.unique(rows)) == 20
    assert len(comparison._balanced(real, new, 4, rng)[0]) == 8
    assert not np.array_equal(rows, comparison._balanced(real, new, 20, rng)[0])


class Counting(KNeighborsClassifier):
    """Knows how many rows it was fitted on, and their standard deviation."""

    seen: list = []

    def fit(self, X, y):
        self.seen.append((len(X), X.std(axis=0)))
        return super().fit(X, y)


def test_the_classifier_gets_at_most_max_samples_standardised_rows_of_a_kind():
    Counting.seen.clear()
    X = draw(0, 200)
    compare_samples(X, draw(1, 100), classifier=Counting(), cv=4, max_samples=40)
    # Each of the 2 * 40 rows is in the training part of three of the four folds.
    assert len(Counting.seen) == 4
    assert sum(n for n, _ in Counting.seen) == 3 * 80
    assert all(0.5 < std.min() < std.max() < 2 for _, std in Counting.seen)


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        make_pipeline(LinearSVC()),
        make_pipeline(DecisionTreeClassifier(max_features=1)),
    ],
    ids=["predict_proba", "decision_function", "nested_seed"],
)
def test_any_classifier_is_cloned_and_seeded(classifier):
    X, X_new = draw(0), draw(1) * 1.2
    first, again = (
        compare_samples(X, X_new, classifier=classifier, random_state=0).fold_auc
        for _ in range(2)
    )
    assert_array_equal(first, again)
    assert first.size == 5
    with pytest.raises((NotFittedError, AttributeError)):
        classifier.predict(X)
    if hasattr(classifier, "steps"):
        assert classifier[-1].random_state is None


def test_a_seed_of_the_user_stays():
    tree = DecisionTreeClassifier(random_state=3)
    rng = np.random.RandomState(0)
    assert comparison._seeded(tree, rng).random_state == 3
    assert comparison._seeded(DecisionTreeClassifier(), rng).random_state is not None


@pytest.mark.parametrize(
    ("n_train", "n_new", "n_folds"), [(2, 1, 0), (2, 40, 0), (40, 1, 0), (12, 12, 3)]
)
def test_few_rows_get_fewer_folds_or_none(n_train, n_new, n_folds):
    found = compare_samples(draw(0, n_train), draw(1, n_new), cv=3, random_state=0)
    assert found.fold_auc.size == n_folds
    assert np.isnan(found.auc) == (n_folds == 0)
    assert np.isnan(found.auc_stderr) == (n_folds == 0)
    assert ("too few distinct rows" in str(found)) == (n_folds == 0)
    assert found.distance.shape == (n_new,)


@pytest.mark.parametrize("held_out", [False, True])
def test_equal_new_rows_have_the_area_of_the_best_classifier(held_out):
    # It says "new" to that row and "real" to all others; ties count half.
    X, X_test = draw(0), draw(2, 60)
    X[:8], X_test[:3] = X[0], X[0]
    given = {"X_test": X_test if held_out else None, "random_state": 0}
    found = compare_samples(X, np.repeat(draw(1, 1), 90, axis=0), **given)
    assert found.auc == 1
    found = compare_samples(X, np.repeat(X[:1], 90, axis=0), **given)
    if held_out:
        assert found.auc == pytest.approx(1 - 3 / 60 / 2, abs=0.03)
    else:
        assert_array_equal(found.fold_auc, [1 - 8 / 80 / 2])
        assert "all new rows are equal" in str(found)


def test_training_rows_and_new_rows_that_are_all_the_same():
    X = np.ones((6, 3))
    found = compare_samples(X, X, random_state=0)
    assert found.exact_copy_share == 1
    assert found.auc == 0.5
    assert np.isnan(found.distance_ratio)
    # Nothing is wrong with copies of a constant, and nothing can be shown.
    assert found.verdict == "fine"
    assert [f.verdict for f in found.findings[3:]] == ["untested", "untested"]


def test_auc_is_the_mean_of_the_folds_with_its_standard_error():
    found = compare_samples(draw(0), draw(1), random_state=0)
    assert found.auc == pytest.approx(np.mean(found.fold_auc))
    assert found.auc_stderr == pytest.approx(np.std(found.fold_auc, ddof=1) / 5**0.5)


# --- features and correlations --------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_of_the_features_are_those_of_the_definitions(seed):
    rng = np.random.default_rng(seed)
    X, X_new = draw(seed, 50), 1.3 * draw(seed + 10, 35)
    X[:, 3], X_new[:, 3] = rng.integers(5, size=50), rng.integers(7, size=35)
    found = compare_samples(X, X_new, **FAST)
    for feature, (a, b) in enumerate(zip(X.T, X_new.T, strict=True)):
        ks = ks_2samp(a, b).statistic
        outside = np.mean([not a.min() <= value <= a.max() for value in b])
        assert found.ks_statistic[feature] == pytest.approx(ks)
        assert found.outside_range[feature] == outside
        assert found.std_ratio[feature] == pytest.approx(b.std() / a.std())
        difference = (b.mean() - a.mean()) / a.std()
        assert found.mean_difference[feature] == pytest.approx(difference)


@pytest.mark.parametrize("seed", SEEDS)
def test_differences_of_correlations(seed):
    X, X_new = draw(seed, 50), draw(seed + 10, 35)
    X_new[:, 2] = np.random.default_rng(seed).normal(size=35)
    found = compare_samples(X, X_new, **FAST)
    expected = np.corrcoef(X_new.T) - np.corrcoef(X.T)
    assert_allclose(found.correlation_difference, expected, atol=1e-12)
    pairs = [abs(expected[i, j]) for i in range(4) for j in range(i)]
    assert found.max_correlation_difference == pytest.approx(max(pairs))
    assert found.mean_correlation_difference == pytest.approx(np.mean(pairs))
    assert_array_equal(found.correlation_features, np.arange(4))


def test_one_feature_has_no_pair():
    found = compare_samples(draw(0, 30, 1), draw(1, 30, 1), **FAST)
    assert found.correlation_difference.shape == (1, 1)
    assert np.isnan(found.max_correlation_difference)
    assert np.isnan(found.mean_correlation_difference)
    assert "1 of 1 features" in str(found)


def test_of_very_many_features_some_are_drawn_and_named(monkeypatch):
    monkeypatch.setattr(comparison, "_CORRELATED", 5)
    X, X_new = np.random.default_rng(0).normal(size=(2, 30, 12))
    found = compare_samples(X, X_new, **FAST)
    drawn = found.correlation_features
    assert len(drawn) == 5 and np.all(np.diff(drawn) > 0) and drawn.max() < 12
    expected = np.corrcoef(X_new[:, drawn].T) - np.corrcoef(X[:, drawn].T)
    assert_allclose(found.correlation_difference, expected, atol=1e-12)
    assert "5 of 12 features" in str(found)
    other = compare_samples(X, X_new, **{**FAST, "random_state": 1})
    assert not np.array_equal(drawn, other.correlation_features)


@pytest.mark.parametrize("seed", SEEDS)
def test_constant_new_features_have_lost_their_correlations(seed):
    X, X_new = draw(seed, 50), draw(seed + 10, 35)
    X_new[:, 1] = 0.1
    found = compare_samples(X, X_new, **FAST)
    assert_allclose(found.correlation_difference[1], -np.corrcoef(X.T)[1], atol=1e-12)
    assert found.std_ratio[1] == 0


# --- verdicts -------------------------------------------------------------------


def words(found):
    return {finding.criterion: finding.verdict for finding in found.findings}


def real_tables(seed, n_rows):
    """Continuous, heavy-tailed, whole, rare and repeated values."""
    rng = np.random.default_rng(seed)
    return {
        "gaussian": draw(seed, n_rows),
        "one": draw(seed, n_rows, 1),
        "heavy": np.exp(1.5 * rng.normal(size=(n_rows, 5))),
        "whole": rng.poisson(3, size=(n_rows, 3)),
        "rare": rng.random((n_rows, 6)) < np.linspace(0.02, 0.5, 6),
        "repeated": rng.integers(0, 2, size=(n_rows, 2)),
    }


def test_held_out_rows_are_rarely_found_wrong():
    # Thresholds are set for 1 to 5% of false alarms in the worst criterion.
    wrong, n_verdicts = {}, 0
    for seed in range(4):
        for table in real_tables(seed, 120).values():
            X, X_test, X_new = np.split(table, 3)
            for held_out in (None, X_test):
                found = compare_samples(
                    X, X_new, X_test=held_out, cv=2, random_state=seed
                )
                n_verdicts += 1
                for finding in found.findings:
                    if finding.verdict not in ("fine", "untested"):
                        key = finding.criterion
                        wrong[key] = wrong.get(key, 0) + 1
    assert max(wrong.values(), default=0) <= 0.08 * n_verdicts


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_each_fault_gets_its_word(seed, held_out):
    X, X_test, real = draw(seed, 200), draw(seed + 20, 200), draw(seed + 10, 200)
    rng = np.random.default_rng(seed)
    std, mean = X.std(axis=0), X.mean(axis=0)
    shuffled = np.column_stack([rng.permutation(column) for column in real.T])
    narrow = mean + 0.5 * (real - mean)
    one_narrow, one_constant = real.copy(), real.copy()
    one_narrow[:, 2] = narrow[:, 2]
    one_constant[:, 2] = mean[2]
    cases = {
        "copies": [X, X + 0.01 * std * rng.normal(size=X.shape), np.r_[X[:60], real]],
        "distinguishable": [real + std],
        "spread lost": [narrow, one_narrow, one_constant],
        "correlations lost": [shuffled],
    }
    given = {"X_test": X_test if held_out else None, "cv": 2, "random_state": seed}
    for word, samples in cases.items():
        for X_new in samples:
            assert word in compare_samples(X, X_new, **given).verdict
    assert compare_samples(X, real, **given).verdict == "fine"


@pytest.mark.parametrize("n_new", [2, 5, 80])
@pytest.mark.parametrize("place", ["training row", "elsewhere"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_collapsed_sampler_is_condemned(seed, place, n_new):
    X = draw(seed)
    row = X[:1] if place == "training row" else X.mean(axis=0, keepdims=True)
    found = compare_samples(X, np.repeat(row, n_new, axis=0), random_state=seed)
    assert words(found)["repeated rows"] == "copies"
    if n_new == 80:
        assert found.verdict == (
            "copies, distinguishable, spread lost, correlations lost"
        )


def test_repeated_new_rows_are_counted_among_as_many_as_there_are_training_rows():
    # Of few distinct values, 500 rows repeat nearly always, 40 rarely.
    rng = np.random.default_rng(0)
    X, X_new = rng.integers(1000, size=(40, 1)), rng.integers(1000, size=(4000, 1))
    found = compare_samples(X, X_new, **FAST)
    assert found.repeated_share < 0.3
    X_new = np.repeat(draw(1, 10), 2, axis=0)
    assert compare_samples(draw(0), X_new, **FAST).repeated_share == 1
    assert compare_samples(draw(0), draw(1), **FAST).repeated_share == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_of_real_rows_is_scaled_to_the_sizes_compared(seed):
    # The standard error of a logarithm of a standard deviation of Gaussian rows is
    # sqrt(1 / 2n) (delta method), of a correlation near 0 sqrt(1 / n).
    rng = np.random.RandomState(seed)
    real = np.random.default_rng(seed).normal(size=(400, 30))
    for n_train, n_new in ((400, 400), (400, 50), (400, 4000)):
        noise = _verdicts.real_noise(real, n_train, n_new, np.arange(30), 2000, rng)
        error = np.sqrt(1 / n_train + 1 / n_new)
        mean = np.sqrt(np.mean(noise["std_noise"] ** 2))
        assert mean == pytest.approx(error / 2**0.5, rel=0.15)
        assert noise["correlation_noise"] == pytest.approx(error, rel=0.25)
        assert 2 < noise["std_limit"] <= 20**0.5


def test_what_real_rows_lose_altogether_is_no_loss():
    # A feature that one row in a hundred has is constant in many samples.
    X, X_new = np.random.default_rng(0).normal(size=(2, 100, 3))
    X[:, 1] = np.arange(100) == 7
    X_new[:, 1] = 0
    found = compare_samples(X, X_new, random_state=0)
    assert np.isinf(found.std_noise[1]) and np.isfinite(found.std_noise[0])
    assert words(found)["spread"] == "fine"
    X_new[:, 0] = 0
    assert words(compare_samples(X, X_new, random_state=0))["spread"] == "spread lost"


def test_a_threshold_says_what_it_is_for():
    X, X_new = draw(0), draw(1)
    X_new[:, 3] = X[:, 3].mean()
    for finding in compare_samples(X, X_new, random_state=0).findings:
        assert np.isfinite([finding.value, finding.threshold]).all()
        assert len(finding.reason.split()) > 5
        if finding.criterion == "spread":
            assert (finding.verdict, finding.value) == ("spread lost", 0)
            assert "x3" in finding.reason and 0 < finding.threshold <= 0.8


@pytest.mark.parametrize(("n_train", "n_new"), [(2, 1), (4, 30), (40, 7)])
def test_too_few_rows_are_not_judged_by_their_spread(n_train, n_new):
    found = compare_samples(draw(0, n_train), draw(1, n_new), random_state=0)
    assert words(found)["spread"] == words(found)["correlations"] == "untested"
    assert found.verdict == "fine" or "lost" not in found.verdict


@pytest.mark.parametrize("seed", SEEDS)
def test_units_and_the_order_of_features_do_not_matter(seed):
    # But to the classifier, which draws features.
    rng = np.random.default_rng(seed)
    X, X_new = draw(seed, 60), draw(seed + 10, 50) * 1.2
    order, units = rng.permutation(4), 2.0 ** rng.integers(-20, 20, size=4)
    found = compare_samples(X, X_new, **FAST)
    other = compare_samples(X[:, order] * units, X_new[:, order] * units, **FAST)
    assert_allclose(other.distance, found.distance, rtol=1e-9)
    for name in ("std_ratio", "mean_difference", "ks_statistic", "std_noise"):
        values = getattr(found, name)[order]
        assert_allclose(getattr(other, name), values, rtol=1e-6, atol=1e-12)
    assert other.correlation_noise == pytest.approx(found.correlation_noise)
    for a, b in zip(found.findings, other.findings, strict=True):
        if a.criterion != "detection":
            assert (a.verdict, a.criterion) == (b.verdict, b.criterion)
            assert (a.value, a.threshold) == pytest.approx((b.value, b.threshold))


# --- tables and notebooks -------------------------------------------------------


def test_frames_hold_findings_and_features():
    pandas = pytest.importorskip("pandas")
    found = compare_samples(draw(0), draw(1), **FAST)
    frame = found.to_frame()
    assert list(frame.columns) == ["verdict", "value", "threshold", "reason"]
    assert frame["verdict"].to_dict() == words(found)
    features = found.to_frame(by="feature")
    assert isinstance(features, pandas.DataFrame)
    assert tuple(features.index) == found.feature_names
    for column in features:
        assert_array_equal(features[column], getattr(found, column))
    with pytest.raises(ValueError, match="by must be 'criterion' or 'feature'"):
        found.to_frame("row")


def test_without_pandas_a_frame_says_what_to_install(monkeypatch):
    found = compare_samples(draw(0), draw(1), **FAST)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas: pip install"):
        found.to_frame()
    assert found.verdict in str(found)


def test_html_is_well_formed_and_escaped():
    pandas = pytest.importorskip("pandas")
    X, X_new = draw(0, 60, 2), draw(1, 60, 2)
    X_new[:, 1] = 0
    frames = (pandas.DataFrame(a, columns=["a", "<b> & c"]) for a in (X, X_new))
    found = compare_samples(*frames, random_state=0)
    page = ElementTree.fromstring(found._repr_html_())
    cells = [cell.text for cell in page.iter("td")]
    assert cells[::5] == list(words(found))
    assert "<b> & c" in "".join(page.itertext())
    assert found.verdict in "".join(page.itertext())


# --- containers, types, seeds ---------------------------------------------------


def test_images_are_compared_flat_and_their_cells_named():
    X, X_new = np.random.default_rng(0).uniform(size=(2, 20, 3, 4))
    found = compare_samples(X, X_new, **FAST)
    flat = compare_samples(X.reshape(20, -1), X_new.reshape(20, -1), **FAST)
    assert_array_equal(flat_numbers(found), flat_numbers(flat))
    assert found.feature_names[6] == "x1_2"
    assert flat.feature_names[6] == "x6"


def test_data_frames_keep_the_names_of_their_features():
    pandas = pytest.importorskip("pandas")
    X, X_new = draw(0, 20), draw(1, 20)
    X_new[:, 2] += 1000 * X.std(axis=0)[2]
    frame, frame_new = (pandas.DataFrame(a, columns=list("abcd")) for a in (X, X_new))
    found = compare_samples(frame, frame_new, **FAST)
    assert found.feature_names == ("a", "b", "c", "d")
    largest = next(line for line in str(found).splitlines() if "of means" in line)
    assert largest.split()[-1] == "c"
    plain = compare_samples(frame, X_new, **FAST)
    assert plain.feature_names == ("a", "b", "c", "d")
    for other in (plain, compare_samples(X, X_new, **FAST)):
        assert_array_equal(flat_numbers(found), flat_numbers(other))
    with pytest.raises(ValueError, match="X_new has other.* column 1 is 'c' instead"):
        compare_samples(frame, frame_new[["a", "c", "b", "d"]])


def mixed(seed, n=200):
    """A frame of numbers, categories and dates that go together."""
    pandas = pytest.importorskip("pandas")
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


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_frames_with_categories_get_verdicts(container):
    from sklearn_pnl import PNLAugmenter

    library = pytest.importorskip(container)

    def given(X):
        if container == "pandas":
            return X
        pytest.importorskip("pyarrow")
        if container == "polars":
            return library.from_pandas(X)
        return library.Table.from_pandas(X, preserve_index=False)

    X, X_test = mixed(0), mixed(1)
    found = compare_samples(given(X), given(X_test), **FAST)
    assert found.verdict == "fine"
    assert found.feature_names[1:5] == (
        *(f"city={name}" for name in X["city"].unique()), "seen"
    )  # fmt: skip
    new = PNLAugmenter(categorical_features="auto").fit(given(X)).sample(200, 0)
    assert compare_samples(given(X), new, **FAST).verdict == "fine"
    assert "copies" in compare_samples(given(X), given(X[::2]), **FAST).verdict
    one_city = X_test.assign(city=X_test["city"].cat.categories[0])
    one_city["city"] = one_city["city"].astype(X["city"].dtype)
    assert "spread lost" in compare_samples(given(X), given(one_city), **FAST).verdict
    # Categories that no longer go with the numbers.
    apart = X_test.assign(city=X_test["city"].to_numpy()[::-1])
    apart["city"] = apart["city"].astype(X["city"].dtype)
    verdict = compare_samples(given(X), given(apart), **FAST).verdict
    assert "correlations lost" in verdict
    assert "distinguishable" in verdict


def test_other_columns_than_those_of_a_mixed_frame_are_refused():
    X = mixed(0)
    for X_new, message in (
        (X.to_numpy(), "X_new must be a data frame, as X is"),
        (X.drop(columns="note"), "X_new has 4 columns, but X has 5"),
        (X[["city", "size", "seen", "rooms", "note"]], "column 0 is 'city' instead"),
        (X.assign(rooms="two"), r"Column 'rooms' of X_new .* holds no numbers"),
        (X.assign(seen=3), "Column 'seen' of X_new .* holds no times"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_samples(X, X_new, **FAST)
    # A level that nobody had is none of those there were.
    X["city"] = X["city"].astype(object)
    strange = X.assign(city="Rome")
    found = compare_samples(X, strange, **FAST)
    assert found.exact_copy_share == 0
    assert found.verdict != "fine"


def test_float32_integers_and_lists_are_read():
    X, X_new = draw(0, 30).astype(np.float32), draw(1, 30).astype(np.float32)
    narrow = compare_samples(X, X_new, **FAST)
    wide = compare_samples(X.astype(np.float64), X_new.astype(np.float64), **FAST)
    assert_array_equal(flat_numbers(narrow), flat_numbers(wide))
    assert compare_samples(X, X.copy(), **FAST).exact_copy_share == 1
    found = compare_samples([[1, 2], [3, 5], [2, 2]], [[1, 2], [4, 9]])
    assert found.exact_copy_share == 0.5
    assert_array_equal(found.outside_range, 0.5)


def test_the_input_is_not_written_to():
    X, X_new, X_test = draw(0), draw(1), draw(2)
    copies = [a.copy() for a in (X, X_new, X_test)]
    for array in (X, X_new, X_test):
        array.flags.writeable = False
    compare_samples(X, X_new, X_test=X_test, **FAST)
    for array, copy in zip((X, X_new, X_test), copies, strict=True):
        assert_array_equal(array, copy)


@pytest.mark.parametrize("held_out", [False, True])
def test_one_seed_gives_the_same_numbers_for_every_n_jobs(held_out):
    X, X_new = draw(0), draw(1)
    X_test = draw(2) if held_out else None
    first, again, other, jobs = (
        compare_samples(X, X_new, X_test=X_test, cv=3, random_state=seed, n_jobs=n_jobs)
        for seed, n_jobs in ((0, None), (0, None), (1, None), (0, 2))
    )
    assert_array_equal(flat_numbers(first), flat_numbers(again))
    assert_array_equal(flat_numbers(first), flat_numbers(jobs))
    assert not np.array_equal(first.fold_auc, other.fold_auc)
    assert_array_equal(first.distance, other.distance)


# --- what is shown --------------------------------------------------------------


def test_the_summary_says_each_number_once_with_its_standard():
    X, X_test = draw(0), draw(2, 30)
    found = compare_samples(X, X[:20], X_test=X_test, random_state=0)
    text = str(found)
    assert text.startswith("20 new rows against 80 training rows and 30 test rows, 4 f")
    lines = {line[:46].rstrip(): line[46:].split() for line in text.splitlines()}
    assert lines["exact copies"] == ["100.0%", "0.0%"]
    assert f"verdict: {found.verdict}" in text.splitlines()
    assert all(finding.criterion in text for finding in found.findings)
    assert lines["AUC, new against test rows"][:2] == [f"{found.auc:.3f}", "0.5"]
    assert lines["median distance, new / usual"] == ["0", "1"]
    smallest = np.argmin(found.std_ratio)
    assert lines["smallest ratio of standard deviations"] == [
        f"{found.std_ratio[smallest]:.3f}", f"x{smallest}"
    ]  # fmt: skip
    assert max(map(len, text.splitlines())) <= 100
    without = str(compare_samples(X, X[:20], **FAST))
    assert "AUC, new against training rows" in without
    assert "test rows" not in without


def test_the_representation_is_one_line():
    found = compare_samples(draw(0), draw(1), **FAST)
    assert isinstance(found, SampleComparison)
    start = f"SampleComparison('{found.verdict}', n_train=80, n_new=80, distance_rat"
    assert repr(found).startswith(start)
    assert "\n" not in repr(found)
    with pytest.raises(AttributeError):
        found.n_new = 3


# --- bad input ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["X", "X_new", "X_test"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused_and_placed(bad, name):
    rows = {"X": draw(0), "X_new": draw(1), "X_test": draw(2)}
    rows[name][3, 2] = bad
    with pytest.raises(ValueError, match=f"Input {name} contains .* row 3, column 2"):
        compare_samples(rows["X"], rows["X_new"], X_test=rows["X_test"])


@pytest.mark.parametrize("name", ["X_new", "X_test"])
def test_rows_of_another_shape_are_refused(name):
    rows = {"X_new": draw(1), "X_test": draw(2)}
    rows[name] = rows[name][:, :3]
    with pytest.raises(
        ValueError, match=rf"{name} has rows of shape \(3,\), but X has"
    ):
        compare_samples(draw(0), **rows)
    with pytest.raises(ValueError, match=r"shape \(2, 2\), but X has .* \(4,\)"):
        compare_samples(draw(0), draw(1).reshape(-1, 2, 2))


def test_too_few_rows_are_refused():
    message = r"1 sample\(s\).*minimum of 2 is required by compare_samples"
    with pytest.raises(ValueError, match=message):
        compare_samples(draw(0, 1), draw(1))
    with pytest.raises(ValueError, match=message):
        compare_samples(draw(0), draw(1), X_test=draw(1, 1))
    with pytest.raises(ValueError, match="0 sample"):
        compare_samples(draw(0), draw(1)[:0])


def test_rows_without_values_are_refused():
    with pytest.raises(ValueError, match=r"X has rows of shape \(0, 3\), without any"):
        compare_samples(np.ones((4, 0, 3)), np.ones((4, 0, 3)))


def test_values_too_large_for_distances_are_refused_and_placed():
    X, X_new = draw(0), draw(1)
    X_new[0, 2] = 1e200
    with pytest.raises(ValueError, match=r"X_new reaches 1.0e\+200 in feature 2, too"):
        compare_samples(X, X_new)
    X, X_new = draw(0), draw(1)
    X[:, 1] *= 1e-25
    with pytest.raises(ValueError, match="X_new, in training standard.* in feature 1"):
        compare_samples(X, X_new)


@pytest.mark.parametrize(
    "wrong",
    [
        {"cv": 1},
        {"copy_quantile": 0.0},
        {"copy_quantile": 1.0},
        {"max_samples": 1},
        {"classifier": "forest"},
        {"random_state": "x"},
        {"n_jobs": 0.5},
    ],
    ids=str,
)
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter"):
        compare_samples(draw(0), draw(1), **wrong)


@pytest.mark.parametrize("rows", [np.array([["a", "b"]] * 4), np.ones((4, 2)) * 1j])
def test_rows_that_are_not_real_are_refused(rows):
    with pytest.raises(ValueError, match="could not convert|Complex data"):
        compare_samples(rows, rows)


def test_sparse_rows_are_refused_in_words():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="dense data is required"):
        compare_samples(sparse.csr_array(draw(0)), draw(1))
