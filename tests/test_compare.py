"""New rows against training rows: what the numbers are, and where they must stand."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from imblearn.over_sampling import SMOTE, RandomOverSampler
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ks_2samp
from scipy.stats import t as student
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_pnl import PNLSampler, SampleComparison, compare_samples
from sklearn_pnl.compare import detection, features, findings

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
    """All numbers of a comparison."""
    told = [(f.value, f.usual, f.threshold) for f in found.findings]
    features = [v for k, v in vars(found.features).items() if k != "names"]
    arrays = [found.distance, found.closest, found.usual_distance, found.fold_auc]
    arrays += [found.correlation_features, found.correlation_difference]
    return np.concatenate([np.ravel(v) for v in [told, *features, *arrays]])


def words(found):
    return {finding.criterion: finding.verdict for finding in found.findings}


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
    assert np.isnan(found.features.std_ratio[1]) and np.isnan(
        found.features.mean_difference[1]
    )
    assert found.features.outside_range[1] == 0.5
    assert found.features.ks_statistic[1] == 0.5
    assert np.isnan(found.correlation_difference[1]).all()
    assert np.isfinite(found["correlations"].value)
    assert np.isfinite(np.delete(found.features.std_ratio, 1)).all()


# --- copies ---------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 4, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_found_whatever_the_search(seed, n_features):
    X = draw(seed, 60, min(n_features, 4))
    noise = np.random.default_rng(seed).normal(size=(60, 20))
    X = np.hstack([X, 1e6 + noise])[:, :n_features]
    found = compare_samples(X, X[::-1], **FAST)
    assert found["exact copies"].value == found["close rows"].value == 1
    assert found["exact copies"].usual == found["exact copies"].threshold == 0
    assert found.distance.max() == 0
    assert_array_equal(found.closest, np.arange(60)[::-1])
    assert words(found)["exact copies"] == words(found)["close rows"] == "copies"


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("n_copies", [1, 9])
@pytest.mark.parametrize("seed", SEEDS)
def test_exact_copies_are_never_fine(seed, n_copies, held_out):
    X, X_new, X_test = draw(seed, 300), draw(seed + 10, 300), draw(seed + 20, 100)
    # A whole number that many share tells nothing, and neither does a rare one.
    X[:, 2], X_new[:, 2] = 0, 0
    X_new[:n_copies] = X[:n_copies]
    given = {"X_test": X_test} if held_out else {}
    found = compare_samples(X, X_new, **given, **FAST)
    assert found["exact copies"].value == n_copies / 300
    assert "copies" in found.verdict
    X_new[:, 0] = np.nextafter(X_new[:, 0], np.inf)
    assert words(compare_samples(X, X_new, **given, **FAST))["exact copies"] == "fine"


def test_rows_that_chance_makes_equal_are_no_copies():
    # Of zero-inflated amounts some rows are zero throughout; the others repeat never.
    rng = np.random.default_rng(0)
    X, X_new = rng.gamma(1.0, size=(2, 200, 2)) * (rng.random((2, 200, 2)) > 0.4)
    X[:2], X_new[:2] = 0, 0
    found = compare_samples(X, X_new, **FAST)
    assert found["exact copies"].usual == np.mean(np.all(X == 0, axis=1)) > 0.1
    assert found["exact copies"].value == np.mean(np.all(X_new == 0, axis=1)) > 0.1
    assert words(found)["exact copies"] == "fine"
    X_new[2] = X[np.all(X > 0, axis=1)][0]
    found = compare_samples(X, X_new, **FAST)
    assert (found["exact copies"].value, found["exact copies"].threshold) == (0.005, 0)
    assert words(found)["exact copies"] == "copies"


@pytest.mark.parametrize("seed", SEEDS)
def test_close_rows_lie_within_a_quarter_of_the_usual_distance(seed):
    X, X_new = draw(seed, 100), draw(seed + 10, 100)
    X_new[:80] = X[:80] + 1e-6 * X.std(axis=0)
    found = compare_samples(X, X_new, **FAST)
    usual, radius = slow_distances(X, X, True), found.usual_distance
    expected = np.mean(slow_distances(X, X_new) <= np.median(usual) / 4)
    assert found["close rows"].value == expected >= 0.8
    assert found["close rows"].usual == np.mean(radius <= np.median(radius) / 4)
    assert words(found)["close rows"] == found.verdict.split(", ")[0] == "copies"
    assert words(found)["exact copies"] == "fine"


def test_negative_zero_is_a_copy_of_zero():
    X = np.array([[0.0, 1.5], [2.0, 3.5]])
    assert compare_samples(X, [[-0.0, 1.5]])["exact copies"].value == 1


def test_duplicates_in_the_data_are_their_own_standard():
    # 40% of the training rows come twice: copies of these say nothing, others do.
    X = draw(0, 80)
    X = np.vstack([X, X[:20]])
    found = compare_samples(X, np.vstack([X[:8], draw(1, 32)]), **FAST)
    assert found["exact copies"].usual == 0.4
    assert found["exact copies"].value == 0.2
    assert words(found)["exact copies"] == "fine"
    found = compare_samples(X, np.vstack([X[20:28], draw(1, 32)]), **FAST)
    assert words(found)["exact copies"] == "copies"


def test_duplicates_of_test_rows_are_counted_against_the_training_rows():
    X, X_test = draw(0, 40), draw(1, 20)
    X_test[10:] = X_test[:10]
    X_test[0] = X[3]
    with pytest.warns(UserWarning, match="1 of 20 rows of X_test are training rows"):
        found = compare_samples(X, draw(2, 10), X_test=X_test, **FAST)
    assert found["exact copies"].usual == 1 / 20
    assert found["repeated rows"].usual == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_smote_rows_are_closer_than_usual_and_random_ones_are_copies(seed):
    X = draw(seed, 60)
    smote = over_sample(SMOTE(random_state=seed), X, 60)
    found = compare_samples(X, smote, **FAST)
    assert found["distance"].value < 0.4
    assert found["close rows"].value > found["close rows"].usual
    assert found["exact copies"].value == 0
    assert found.features.outside_range.max() == 0
    assert np.median(found.features.std_ratio) < 1
    copies = over_sample(RandomOverSampler(random_state=seed), X, 60)
    assert compare_samples(X, copies, **FAST)["exact copies"].value == 1


# --- who was trained on, and where new rows lie ---------------------------------


def slow_area(negative, positive):
    """How likely a positive number is larger, by the definition."""
    return np.mean([(p > n) + (p == n) / 2 for p in positive for n in negative])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_attack_by_nearest_distance_is_that_of_the_definition(seed):
    X, X_new, X_test = draw(seed, 40), draw(seed + 10, 25), draw(seed + 20, 30)
    X_new[:12] = X[:12] + 0.1 * X.std(axis=0)
    found = compare_samples(X, X_new, X_test=X_test, **FAST)["membership"]
    std = X.std(axis=0)
    known, others = (
        np.array([np.linalg.norm((X_new - row) / std, axis=1).min() for row in rows])
        for rows in (X, X_test)
    )
    assert found.value == pytest.approx(slow_area(known, others))
    assert found.usual == 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_the_attack_knows_nothing_of_fresh_rows_and_all_of_copies(seed):
    X, X_new, X_test = (draw(seed + s, 100) for s in (0, 10, 20))
    fresh = compare_samples(X, X_new, X_test=X_test, **FAST)["membership"]
    assert fresh.verdict == "fine" and abs(fresh.value - 0.5) < 0.12
    near = X + 0.05 * X.std(axis=0)
    told = compare_samples(X, near, X_test=X_test, **FAST)
    assert told["membership"].verdict == "members exposed"
    assert told["membership"].value > 0.99
    assert "members exposed" in told.verdict


def test_without_test_rows_the_verdict_says_what_it_lacks():
    found = compare_samples(draw(0), draw(1), random_state=0)
    assert found.verdict == "fine, membership untested"
    assert words(found)["membership"] == "needs X_test"
    assert "membership: it takes rows that were not trained on." in str(found)
    held_out = compare_samples(draw(0), draw(1), X_test=draw(2), random_state=0)
    assert held_out.verdict == "fine"


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_where_no_row_lies_are_far_off(seed, held_out):
    X, X_new, X_test = (draw(seed + s, 60) for s in (0, 10, 20))
    given = {"X_test": X_test} if held_out else {}
    found = compare_samples(X, X_new, **given, **FAST)["distance"]
    new, known = slow_distances(X, X_new), slow_distances(X, X, True)
    if held_out:
        std = X.std(axis=0)
        new, known = (
            np.array([np.linalg.norm((X_test - r) / std, axis=1).min() for r in rows])
            for rows in (X_new, X)
        )
    assert found.value == pytest.approx(slow_area(known, new))
    assert found.verdict == "fine"
    rng = np.random.default_rng(seed)
    apart = np.column_stack([rng.permutation(column) for column in X_new.T])
    apart += rng.normal(size=apart.shape) * X.std(axis=0)
    found = compare_samples(X, apart, **given, **FAST)
    assert words(found)["distance"] == "far off"


# --- telling new rows from real ones --------------------------------------------


def test_rows_of_the_same_distribution_cannot_be_told_apart():
    # Mean of several draws: a single one strays by about 0.04.
    found = [
        compare_samples(draw(s, 150), draw(s + 50, 150), cv=3, random_state=s)
        for s in range(6)
    ]
    assert abs(np.mean([f["detection"].value for f in found]) - 0.5) < 0.05
    assert abs(np.mean([f["distance"].value for f in found]) - 0.5) < 0.05
    assert max(f.features.ks_statistic.max() for f in found) < 0.25


@pytest.mark.parametrize("seed", SEEDS)
def test_shifted_rows_are_told_apart(seed):
    X = draw(seed)
    for shift, lowest in ((3, 0.9), (1000, 0.999)):
        found = compare_samples(X, draw(seed + 10) + shift * X.std(axis=0), cv=3)
        assert found["detection"].value > lowest
        assert_allclose(found.features.mean_difference, shift, atol=0.6)
        assert found["distance"].value > 0.8
        assert {"shifted", "far off"} <= set(found.verdict.split(", "))
        assert found.fold_auc.size == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_at_exactly_one_half(seed):
    # Each is in the fold of its original. Plain folds would give about 0.
    X = draw(seed)
    assert_allclose(compare_samples(X, X, random_state=seed).fold_auc, 0.5, atol=1e-12)
    nearly = X + 1e-9 * X.std(axis=0)
    assert compare_samples(X, nearly, random_state=seed)[
        "detection"
    ].value == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("seed", SEEDS)
def test_held_out_rows_find_copies_out(seed):
    # Few distinct rows many times: training rows cannot tell, held-out rows can.
    X, X_test = draw(seed, 20), draw(seed + 10, 200)
    copies = X[np.random.default_rng(seed).integers(20, size=200)]
    assert abs(compare_samples(X, copies, random_state=0).fold_auc.mean() - 0.5) < 0.25
    found = compare_samples(X, copies, X_test=X_test, random_state=0)
    assert found["detection"].value > 0.9
    fresh = compare_samples(X, draw(seed + 20, 200), X_test=X_test, random_state=0)
    assert abs(fresh["detection"].value - 0.5) < 0.15


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_hold_each_row_and_its_nearest_and_do_not_look_at_kinds(seed):
    rows = np.vstack([draw(seed, 30), draw(seed, 5), draw(seed + 10, 20)])
    groups = detection.neighbor_groups(rows)
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
    again = detection.neighbor_groups(rows[mixed])
    same = groups[mixed][:, None] == groups[mixed]
    assert_array_equal(again[:, None] == again, same)


@pytest.mark.parametrize("held_out", [False, True])
def test_folds_have_both_kinds_on_both_sides_and_split_no_group(held_out):
    rows = np.vstack([draw(0, 30), draw(0, 30) + 1e-9])
    kinds = np.repeat([0, 1], 30)
    rng = np.random.RandomState(0)
    splits = detection.folds(rows, kinds, held_out, 4, rng)
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
    rows, kinds = detection.balanced(real, new, 20, rng)
    assert_array_equal(np.bincount(kinds), [10, 10])
    assert_array_equal(rows[:, 0] >= 100, kinds == 1)
    assert len(np.unique(rows)) == 20
    assert len(detection.balanced(real, new, 4, rng)[0]) == 8
    assert not np.array_equal(rows, detection.balanced(real, new, 20, rng)[0])


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
    assert detection.seeded(tree, rng).random_state == 3
    assert detection.seeded(DecisionTreeClassifier(), rng).random_state is not None


@pytest.mark.parametrize(
    ("n_train", "n_new", "n_folds"), [(2, 1, 0), (2, 40, 0), (40, 1, 0), (12, 12, 3)]
)
def test_few_rows_get_fewer_folds_or_none(n_train, n_new, n_folds):
    found = compare_samples(draw(0, n_train), draw(1, n_new), cv=3, random_state=0)
    assert found.fold_auc.size == n_folds
    few = words(found)["detection"] == "too few rows to tell"
    assert few == np.isnan(found["detection"].value) == (n_folds == 0)
    assert ("too few distinct rows" in str(found)) == (n_folds == 0)
    assert found.distance.shape == (n_new,)


def test_training_rows_and_new_rows_that_are_all_the_same():
    X = np.ones((60, 3))
    found = compare_samples(X, X, random_state=0)
    # Nothing is wrong with copies of a constant, and nothing can be shown.
    assert words(found)["exact copies"] == "nothing to compare"
    assert found.verdict == "too few rows to tell"
    assert "fine" not in found.verdict


def test_auc_is_the_mean_of_the_folds_with_its_standard_error():
    found = compare_samples(draw(0), draw(1), random_state=0)
    auc = found["detection"]
    assert auc.value == pytest.approx(np.mean(found.fold_auc))
    assert f"standard error of {np.std(found.fold_auc, ddof=1) / 5**0.5:.2g}" in (
        auc.reason
    )


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
        assert found.features.ks_statistic[feature] == pytest.approx(ks)
        assert found.features.outside_range[feature] == outside
        assert found.features.std_ratio[feature] == pytest.approx(b.std() / a.std())
        difference = (b.mean() - a.mean()) / a.std()
        assert found.features.mean_difference[feature] == pytest.approx(difference)


@pytest.mark.parametrize("seed", SEEDS)
def test_differences_of_correlations(seed):
    X, X_new = draw(seed, 50), draw(seed + 10, 35)
    X_new[:, 2] = np.random.default_rng(seed).normal(size=35)
    found = compare_samples(X, X_new, **FAST)
    expected = np.corrcoef(X_new.T) - np.corrcoef(X.T)
    assert_allclose(found.correlation_difference, expected, atol=1e-12)
    pairs = [expected[i, j] ** 2 for i in range(4) for j in range(i)]
    assert found["correlations"].value == pytest.approx(np.mean(pairs) ** 0.5)
    assert_array_equal(found.correlation_features, np.arange(4))


def test_one_feature_has_no_pair():
    found = compare_samples(draw(0, 30, 1), draw(1, 30, 1), **FAST)
    assert found.correlation_difference.shape == (1, 1)
    assert words(found)["correlations"] == "nothing to compare"
    assert found.verdict == "fine, membership untested"


def test_of_very_many_features_some_are_drawn_and_named(monkeypatch):
    monkeypatch.setattr(features, "_CORRELATED", 5)
    X, X_new = np.random.default_rng(0).normal(size=(2, 30, 12))
    found = compare_samples(X, X_new, **FAST)
    drawn = found.correlation_features
    assert len(drawn) == 5 and np.all(np.diff(drawn) > 0) and drawn.max() < 12
    expected = np.corrcoef(X_new[:, drawn].T) - np.corrcoef(X[:, drawn].T)
    assert_allclose(found.correlation_difference, expected, atol=1e-12)
    other = compare_samples(X, X_new, **{**FAST, "random_state": 1})
    assert not np.array_equal(drawn, other.correlation_features)


@pytest.mark.parametrize("seed", SEEDS)
def test_constant_new_features_have_lost_their_correlations(seed):
    X, X_new = draw(seed, 50), draw(seed + 10, 35)
    X_new[:, 1] = 0.1
    found = compare_samples(X, X_new, **FAST)
    assert_allclose(found.correlation_difference[1], -np.corrcoef(X.T)[1], atol=1e-12)
    assert found.features.std_ratio[1] == 0


# --- missing cells --------------------------------------------------------------

SHARES = (0.2, 0, 0.1, 0.4)


def punched(X, seed, shares=SHARES, by_value=0.0):
    """Rows without some cells, by chance or the more often the larger the value."""
    chance = np.asarray(shares) * (1 + by_value * (X - X.mean(axis=0)) / X.std(axis=0))
    rng = np.random.default_rng([seed, 1])
    return np.where(rng.random(X.shape) < chance, np.nan, X)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_that_are_there_are_compared_by_the_definitions(seed):
    X, X_new = punched(draw(seed, 90), seed), punched(1.2 * draw(seed + 10, 60), seed)
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
def test_distances_take_the_median_for_what_is_missing_and_tell_it(seed):
    X, X_new = punched(draw(seed, 60), seed), punched(draw(seed + 10, 25), seed)

    def points(rows):
        holes = np.isnan(rows)
        filled = np.where(holes, np.nanmedian(X, axis=0), rows) / np.nanstd(X, axis=0)
        told = holes[:, [0, 2, 3]] / np.isnan(X)[:, [0, 2, 3]].std(axis=0)
        return np.hstack([filled, told])

    own = points(X)
    expected = [np.linalg.norm(own - row, axis=1).min() for row in points(X_new)]
    found = compare_samples(X, X_new, **FAST)
    assert_allclose(found.distance, expected, rtol=1e-9)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_holes_that_are_lost_or_made_are_told_by_column(seed, held_out):
    X, X_test, same = (punched(draw(seed + s, 200), seed + s) for s in (0, 10, 20))
    real = draw(seed + 20, 200)
    elsewhere = punched(real, seed, (0.2, 0.2, 0.1, 0.4))
    moved = punched(real, seed, SHARES[::-1])
    given = {"X_test": X_test if held_out else None, "cv": 2, "random_state": seed}
    for X_new, columns in (
        (real, "023"),
        (elsewhere, "1"),
        (moved, "0123"),
    ):
        found = compare_samples(X, X_new, **given)
        assert "missing cells changed" in found.verdict
        assert re.search(rf" x[{columns}] that are missing", found["missing"].reason)
    found = compare_samples(X, same, **given)
    assert found.verdict.startswith("fine")
    told = found.features
    assert_allclose(told.train_missing_share, np.isnan(X).mean(axis=0))
    assert_allclose(told.missing_share, np.isnan(same).mean(axis=0))


def test_rows_with_the_same_holes_are_copies():
    X = punched(draw(0, 100), 0)
    assert compare_samples(X, X[::-1], **FAST)["exact copies"].value == 1
    X_new = punched(draw(1, 100), 1)
    assert compare_samples(X, X_new, **FAST)["exact copies"].value == 0
    # Where all that is continuous is missing, chance makes rows equal.
    X[:, 1:], X_new[:, 1:] = 0, 0
    found = compare_samples(X, X_new, **FAST)
    assert found["exact copies"].value == np.isnan(X_new[:, 0]).mean() > 0.1
    assert words(found)["exact copies"] == words(found)["repeated rows"] == "fine"


@pytest.mark.parametrize("of", ["X", "X_new", "X_test"])
def test_a_column_without_a_value_is_told_by_its_holes_alone(of):
    rows = {"X": draw(0), "X_new": draw(1), "X_test": draw(2)}
    rows[of][:, 2] = np.nan
    found = compare_samples(**rows, **FAST)
    faults = findings.FAULTS.values()
    wrong = {f.criterion for f in found.findings if f.verdict in faults}
    assert np.isfinite(found.distance).all()
    assert ("missing" in wrong) == (of != "X_test")
    assert not wrong & {"ranges", "location", "spread", "zeros"}
    if of == "X_new":
        assert found.features.missing_share[2] == 1
        assert np.isnan(found.features.ks_statistic[2])


def test_new_rows_with_the_holes_of_their_parents_are_fine():
    from sklearn_pnl import PNLAugmenter

    pandas = pytest.importorskip("pandas")
    X = mixed(0, 300)
    X["size"] = punched(X[["size"]].to_numpy(), 0, 0.2)
    X.loc[::7, "seen"] = pandas.NaT
    augmenter = PNLAugmenter(categorical_features="auto").fit(X.drop(columns="seen"))
    found = compare_samples(
        X.drop(columns="seen"), augmenter.sample(300, random_state=0), random_state=0
    )
    assert words(found)["missing"] == "fine"
    assert found.features.missing_share[0] > 0.1
    found = compare_samples(X, mixed(1, 300), **FAST)
    assert words(found)["missing"] == "missing cells changed"
    assert "values of size that are missing" in found["missing"].reason
    assert found.features.train_missing_share[1] == pytest.approx(1 / 7, abs=0.01)


# --- verdicts -------------------------------------------------------------------


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
        "holes": punched(draw(seed, n_rows), seed),
        "holes by value": punched(draw(seed, n_rows), seed, by_value=0.15),
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
                    if finding.verdict in findings.FAULTS.values():
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
        "shifted": [real + std, real + [0, 0, std[2], 0]],
        "far off": [real + 2 * std],
        "out of range": [mean + 3 * (real - mean)],
        "spread changed": [
            narrow,
            one_narrow,
            one_constant,
            mean + 1.6 * (real - mean),
        ],
        "correlations changed": [shuffled],
    }
    given = {"X_test": X_test if held_out else None, "cv": 2, "random_state": seed}
    for word, samples in cases.items():
        # Other criteria ask no classifier.
        other = {} if word == "distinguishable" else {"classifier": FAST["classifier"]}
        for X_new in samples:
            assert word in compare_samples(X, X_new, **given, **other).verdict
    assert compare_samples(X, real, **given).verdict.startswith("fine")


@pytest.mark.parametrize("n_new", [2, 5, 80])
@pytest.mark.parametrize("place", ["training row", "elsewhere"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_collapsed_sampler_is_condemned(seed, place, n_new):
    X = draw(seed)
    row = X[:1] if place == "training row" else X.mean(axis=0, keepdims=True)
    found = compare_samples(X, np.repeat(row, n_new, axis=0), random_state=seed)
    assert words(found)["repeated rows"] == "copies"
    if n_new == 80:
        assert {"copies", "spread changed", "correlations changed"} <= set(
            found.verdict.split(", ")
        )


def test_repeated_new_rows_are_counted_among_as_many_as_there_are_training_rows():
    # Of few distinct values, 500 rows repeat nearly always, 40 rarely.
    rng = np.random.default_rng(0)
    X, X_new = rng.integers(1000, size=(40, 1)), rng.integers(1000, size=(4000, 1))
    found = compare_samples(X, X_new, **FAST)
    assert found["repeated rows"].value < 0.3
    X_new = np.repeat(draw(1, 10), 2, axis=0)
    assert compare_samples(draw(0), X_new, **FAST)["repeated rows"].value == 1
    assert compare_samples(draw(0), draw(1), **FAST)["repeated rows"].value == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_changes_of_real_rows_are_scaled_to_the_sizes_compared(seed):
    # The standard error of a correlation near 0 is sqrt(1 / n).
    rng = np.random.RandomState(seed)
    real = np.random.default_rng(seed).normal(size=(400, 30))
    for sizes in ((400, 400), (400, 50), (400, 4000)):
        change = features.usual_change(real, *sizes, np.arange(30), 2000, rng)
        error = np.sqrt(1 / sizes[0] + 1 / sizes[1])
        assert change == pytest.approx(error, rel=0.25)


@pytest.mark.parametrize("shape", [1, 50])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_spread_that_chance_allows_is_that_of_the_delta_method(seed, shape):
    # Var log s = (kurtosis - 1) / 4n: of gamma values the kurtosis is 3 + 6 / shape.
    rng = np.random.default_rng(seed)
    X, X_new = rng.gamma(shape, size=(2, 60, 1))
    found = compare_samples(X, X_new, **FAST)["spread"]
    tails = [np.mean(((a - a.mean()) / a.std()) ** 4) - 1 for a in (X, X_new)]
    error = np.sqrt(max(tails) / 120)
    allowed = max(-np.log(0.8), student.isf(0.005, 59) * error)
    sign = 1 if found.value > 1 else -1
    assert found.threshold == pytest.approx(np.exp(sign * allowed))
    assert found.verdict == "fine"


def test_what_real_rows_lose_altogether_is_no_loss():
    # A feature that one row in a hundred has is constant in many samples.
    X, X_new = np.random.default_rng(0).normal(size=(2, 100, 3))
    X[:, 1] = np.arange(100) == 7
    X_new[:, 1] = 0
    found = compare_samples(X, X_new, random_state=0)
    assert found.features.std_ratio[1] == 0
    assert words(found)["spread"] == "fine"
    X_new[:, 0] = 0
    found = compare_samples(X, X_new, random_state=0)
    assert words(found)["spread"] == "spread changed"


@pytest.mark.parametrize("n", [10, 100])
@pytest.mark.parametrize("m", [10, 1000])
def test_values_beyond_the_range_follow_wilks(n, m):
    # The share of a distribution beyond n draws is beta(2, n - 1) for all continuous
    # ones (Wilks 1941): simulated, one sample in a hundred has more than is allowed.
    rng = np.random.default_rng(0)
    ends = np.sort(rng.random((20_000, n)), axis=1)[:, [0, -1]]
    beyond = rng.binomial(m, 1 - np.ptp(ends, axis=1)) / m
    found = compare_samples(
        rng.normal(size=(n, 1)), rng.normal(size=(m, 1)), max_samples=10, **FAST
    )["ranges"]
    assert found.usual == pytest.approx(beyond.mean(), rel=0.05)
    assert found.threshold >= 0.05
    assert np.mean(beyond > found.threshold) <= 0.0125
    if found.threshold > 0.05:
        assert np.mean(beyond >= found.threshold - 1e-9) >= 0.0075


@pytest.mark.parametrize("seed", SEEDS)
def test_zeros_that_are_lost_or_made_are_told(seed):
    rng = np.random.default_rng(seed)
    X, X_new = rng.gamma(2.0, size=(2, 200, 3)) + 0.1
    X[:, 1] *= rng.random(200) > 0.3
    found = compare_samples(X, X_new, **FAST)
    assert words(found)["zeros"] == "zeros changed"
    assert (
        found["zeros"].usual
        == np.mean(X[:, 1] == 0)
        == (found.features.train_zero_share[1])
    )
    assert found["zeros"].value == 0
    assert "x1" in found["zeros"].reason
    X_new[:, 1] *= rng.random(200) > 0.3
    assert words(compare_samples(X, X_new, **FAST))["zeros"] == "fine"
    X_new[:, 2] *= rng.random(200) > 0.3
    found = compare_samples(X, X_new, **FAST)
    assert words(found)["zeros"] == "zeros changed" and "x2" in found["zeros"].reason


def test_shares_that_chance_explains_grow_with_what_is_usual():
    shares = [findings.most_by_chance(count, 100, 100) for count in (0, 2, 20, 90)]
    assert np.all(np.diff(shares) > 0) and shares[-1] <= 1
    assert findings.most_by_chance(0, 10**6, 10**4) < 1e-3
    for count, share in zip((2, 20, 90), shares[1:], strict=True):
        assert share > count / 100


def test_a_threshold_says_what_it_is_for():
    X, X_new = draw(0), draw(1)
    X_new[:, 3] = X[:, 3].mean()
    found = compare_samples(X, X_new, X_test=draw(2), random_state=0)
    for finding in found.findings:
        assert len(finding.reason.split()) >= 4
        if finding.criterion in ("categories", "zeros", "missing"):
            assert finding.verdict == "nothing to compare"
            continue
        assert np.isfinite([finding.value, finding.usual, finding.threshold]).all()
    assert (found["spread"].verdict, found["spread"].value) == ("spread changed", 0)
    assert "x3" in found["spread"].reason and 0 < found["spread"].threshold <= 0.8


@pytest.mark.parametrize(("n_train", "n_new"), [(2, 1), (4, 30), (40, 7)])
def test_too_few_rows_are_not_judged_by_their_spread(n_train, n_new):
    found = compare_samples(draw(0, n_train), draw(1, n_new), random_state=0)
    few = "too few rows to tell"
    assert words(found)["spread"] == words(found)["correlations"] == few
    assert found.verdict == few


def test_rows_far_away_are_not_fine_however_few_there_are():
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(10, 5)), rng.normal(50, 1, size=(100, 5))
    found = compare_samples(X, X_new, random_state=0)
    assert {"shifted", "far off", "out of range"} <= set(found.verdict.split(", "))
    assert words(found)["detection"] == "too few rows to tell"


@pytest.mark.parametrize("seed", SEEDS)
def test_units_and_the_order_of_features_do_not_matter(seed):
    # But to the classifier, which draws features.
    rng = np.random.default_rng(seed)
    X, X_new = draw(seed, 60), draw(seed + 10, 50) * 1.2
    order, units = rng.permutation(4), 2.0 ** rng.integers(-20, 20, size=4)
    found = compare_samples(X, X_new, **FAST)
    other = compare_samples(X[:, order] * units, X_new[:, order] * units, **FAST)
    assert_allclose(other.distance, found.distance, rtol=1e-9)
    for name in ("std_ratio", "mean_difference", "ks_statistic"):
        values = getattr(found.features, name)[order]
        assert_allclose(getattr(other.features, name), values, rtol=1e-6, atol=1e-12)
    for a, b in zip(found.findings, other.findings, strict=True):
        if a.criterion != "detection":
            assert (a.verdict, a.criterion) == (b.verdict, b.criterion)
            numbers = ((f.value, f.usual, f.threshold) for f in (a, b))
            assert_allclose(*numbers, rtol=1e-6)


# --- tables and notebooks -------------------------------------------------------


def test_frames_hold_findings_and_features():
    pandas = pytest.importorskip("pandas")
    found = compare_samples(draw(0), draw(1), **FAST)
    frame = found.to_frame()
    assert list(frame.columns) == ["verdict", "value", "usual", "threshold", "reason"]
    assert frame["verdict"].to_dict() == words(found)
    features = found.to_frame(by="feature")
    assert isinstance(features, pandas.DataFrame)
    assert tuple(features.index) == found.features.names
    for column in features:
        assert_array_equal(features[column], getattr(found.features, column))
    with pytest.raises(ValueError, match="by must be 'criterion' or 'feature'"):
        found.to_frame("row")


def test_without_pandas_a_frame_says_what_to_install(monkeypatch):
    found = compare_samples(draw(0), draw(1), **FAST)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame requires pandas"):
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
    assert cells[::6] == list(words(found))
    assert "not a statement of privacy" in "".join(page.itertext())
    assert "<b> & c" in "".join(page.itertext())
    assert found.verdict in "".join(page.itertext())


# --- containers, types, seeds ---------------------------------------------------


def test_images_are_compared_flat_and_their_cells_named():
    X, X_new = np.random.default_rng(0).uniform(size=(2, 20, 3, 4))
    found = compare_samples(X, X_new, **FAST)
    flat = compare_samples(X.reshape(20, -1), X_new.reshape(20, -1), **FAST)
    assert_array_equal(flat_numbers(found), flat_numbers(flat))
    assert found.features.names[6] == "x1_2"
    assert flat.features.names[6] == "x6"


def test_data_frames_keep_the_names_of_their_features():
    pandas = pytest.importorskip("pandas")
    X, X_new = draw(0, 20), draw(1, 20)
    X_new[:, 2] += 1000 * X.std(axis=0)[2]
    frame, frame_new = (pandas.DataFrame(a, columns=list("abcd")) for a in (X, X_new))
    found = compare_samples(frame, frame_new, **FAST)
    assert found.features.names == ("a", "b", "c", "d")
    assert "means of c," in found["location"].reason
    assert words(found)["location"] == "shifted"
    plain = compare_samples(frame, X_new, **FAST)
    assert plain.features.names == ("a", "b", "c", "d")
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
    assert found.verdict == "fine, membership untested"
    assert found.features.names[:3] == ("size", "seen", "rooms")
    often = X["city"].value_counts().index, X["note"].value_counts().index
    assert found.features.names[3:] == (
        *(f"city={name}" for name in often[0]), *(f"note={name}" for name in often[1])
    )  # fmt: skip
    new = PNLAugmenter(categorical_features="auto").fit(given(X)).sample(200, 0)
    assert compare_samples(given(X), new, **FAST).verdict.startswith("fine")
    assert "copies" in compare_samples(given(X), given(X[::2]), **FAST).verdict
    one_city = X_test.assign(city=X_test["city"].cat.categories[0])
    one_city["city"] = one_city["city"].astype(X["city"].dtype)
    assert "shifted" in compare_samples(given(X), given(one_city), **FAST).verdict
    # Categories that no longer go with the numbers.
    apart = X_test.assign(city=X_test["city"].to_numpy()[::-1])
    apart["city"] = apart["city"].astype(X["city"].dtype)
    verdict = compare_samples(given(X), given(apart), **FAST).verdict
    assert "correlations changed" in verdict


def test_other_columns_than_those_of_a_mixed_frame_are_refused():
    X = mixed(0)
    for X_new, message in (
        (X.to_numpy(), "X_new must be a data frame, as X is"),
        (X.drop(columns="note"), "X_new has 4 columns, but X has 5"),
        (X[["city", "size", "seen", "rooms", "note"]], "column 0 is 'city' instead"),
        (X.assign(rooms="two"), r"Column 'rooms' of X_new .* holds no numbers"),
        (X.assign(seen=3), "Column 'seen' of X_new .* holds no points in time"),
        (X.assign(seen=X["seen"] - X["seen"].min()), "'seen' .* holds no points in"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_samples(X, X_new, **FAST)


@pytest.mark.parametrize("missing", [False, True])
def test_levels_that_no_training_row_has_are_told_by_name(missing):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)

    def table(levels):
        values = {"k": rng.choice(levels, 200), "x": rng.normal(size=200)}
        return pandas.DataFrame(values)

    X = table(np.array(["a", "b"], object))
    strange = table(np.array(["a", "b", None if missing else "Rome"], object))
    found = compare_samples(X, strange, **FAST)
    assert found.unseen_levels == {"k": [None if missing else "Rome"]}
    assert "unseen categories" in found.verdict
    assert found["categories"].threshold == 0
    assert found["categories"].value == np.mean(~strange["k"].isin(["a", "b"]))
    assert found["categories"].reason.endswith(
        "; k: None" if missing else "; k: 'Rome'"
    )
    # One is too many; where training rows have levels of their own, some are usual.
    one = X.assign(k=["Rome", *X["k"][1:]])
    assert words(compare_samples(X, one, **FAST))["categories"] == "unseen categories"
    names = [table(np.arange(1000).astype(str)) for _ in range(2)]
    found = compare_samples(*names, **FAST)
    assert words(found)["categories"] == "fine"
    counts = names[0]["k"].value_counts()
    assert found["categories"].usual == (counts == 1).sum() / 200 > 0.5


@pytest.mark.parametrize("n_levels", [2, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_two_levels_are_as_far_apart_as_numbers_are(seed, n_levels):
    # In the mean over pairs of training rows, squared: by the definition.
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)

    def table(n):
        k = np.minimum(rng.geometric(0.1, n), n_levels)
        return pandas.DataFrame({"x": rng.normal(size=n), "k": k.astype(str)})

    X, X_new = table(60), table(30)
    found = compare_samples(X, X_new, **FAST)
    k, new = X["k"].to_numpy(), X_new["k"].to_numpy()
    apart = (k[:, None] != k).astype(float)
    apart *= 2 / apart.mean()
    assert apart.mean() == pytest.approx(2)
    squares = (
        (X_new["x"].to_numpy()[:, None] - X["x"].to_numpy()) / X["x"].std(ddof=0)
    ) ** 2
    squares += (new[:, None] != k) * apart.max()
    assert_allclose(found.distance, np.sqrt(squares.min(axis=1)), rtol=1e-9)
    gaps = (X["x"].to_numpy()[:, None] - X["x"].to_numpy()) / X["x"].std(ddof=0)
    own = np.sqrt(gaps**2 + apart)
    np.fill_diagonal(own, np.inf)
    assert_allclose(found.usual_distance, own.min(axis=1), rtol=1e-9)


def test_columns_of_one_name_are_columns_of_their_own():
    pandas = pytest.importorskip("pandas")
    X, X_new = mixed(0), mixed(1)
    for rows in (X, X_new):
        rows.columns = ["a", "b", "c", "a", "b"]
    found = compare_samples(X, X_new, **FAST)
    assert found.verdict.startswith("fine")
    assert sum(name.startswith("b=") for name in found.features.names) == 5
    assert isinstance(found.to_frame(by="feature"), pandas.DataFrame)


def test_of_many_levels_the_most_frequent_are_features():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, X_new = (
        pandas.DataFrame({"k": rng.geometric(0.05, 300).astype(str)}) for _ in range(2)
    )
    found = compare_samples(X, X_new, **FAST)
    often = X["k"].value_counts()
    assert len(found.features.names) == 20
    shown = [name.removeprefix("k=") for name in found.features.names]
    assert sorted(often[shown]) == sorted(often[:20])
    assert words(found)["ranges"] != "out of range"
    assert words(found)["spread"] == words(found)["zeros"] == "nothing to compare"
    few = X_new.assign(k=shown[0])
    assert words(compare_samples(X, few, **FAST))["location"] == "shifted"


@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e-9, 1e9, 1e170, 1e300])
def test_no_unit_is_too_small_or_too_large(unit):
    X, X_new = np.random.default_rng(0).normal(size=(2, 40, 2))
    expected = compare_samples(X, X_new, **FAST)
    found = compare_samples(X * unit, X_new * unit, **FAST)
    assert found.verdict == expected.verdict == "fine, membership untested"
    assert_allclose(found.distance, expected.distance, rtol=1e-9)
    for column in ("mean_difference", "std_ratio"):
        own, other = (getattr(f.features, column) for f in (found, expected))
        assert_allclose(own, other, rtol=1e-9)


def test_float32_integers_and_lists_are_read():
    X, X_new = draw(0, 30).astype(np.float32), draw(1, 30).astype(np.float32)
    narrow = compare_samples(X, X_new, **FAST)
    wide = compare_samples(X.astype(np.float64), X_new.astype(np.float64), **FAST)
    assert_array_equal(flat_numbers(narrow), flat_numbers(wide))
    assert compare_samples(X, X.copy(), **FAST)["exact copies"].value == 1
    found = compare_samples([[1, 2], [3, 5], [2, 2]], [[1, 2], [4, 9]])
    assert found["exact copies"].value == 0.5
    assert_array_equal(found.features.outside_range, 0.5)


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


def test_the_summary_has_a_line_for_each_criterion():
    X, X_test = draw(0), draw(2, 30)
    found = compare_samples(X, X[:20], X_test=X_test, random_state=0)
    text = str(found)
    title = "20 new rows against 80 training rows and 30 held-out rows, 4 features"
    assert text.startswith(title)
    assert f"verdict: {found.verdict}" in text.splitlines()
    lines = {line[2:17].rstrip(): line[17:] for line in text.splitlines()}
    for finding in found.findings:
        assert lines[finding.criterion].startswith(finding.verdict)
        shown = lines[finding.criterion][23:].split()
        if np.isnan(finding.value):
            assert shown == []
            continue
        *numbers, sign, end = shown
        assert numbers == [f"{v:.3g}" for v in (finding.value, finding.usual)]
        fine = {"<=": finding.value <= finding.threshold,
                ">=": finding.value >= finding.threshold}[sign]  # fmt: skip
        assert fine == (finding.verdict in ("fine", "too few rows to tell"))
        assert float(end) == pytest.approx(finding.threshold, rel=0.01)
    assert lines["exact copies"].split() == ["copies", "1", "0", "<=", "0"]
    assert max(map(len, text.splitlines())) <= 88
    # Reasons are told of what is not fine, and no others.
    told = " ".join(text.split())
    for finding in found.findings:
        assert (finding.reason in told) == (finding.verdict != "fine")
    assert "not a statement of privacy" in told
    without = str(compare_samples(X, X[:20], **FAST))
    assert "against 80 training rows, 4 features" in without


def test_the_representation_is_one_line():
    found = compare_samples(draw(0), draw(1), **FAST)
    assert isinstance(found, SampleComparison)
    expected = f"SampleComparison('{found.verdict}', n_train=80, n_new=80, n_test=0)"
    assert repr(found) == expected
    with pytest.raises(AttributeError):
        found.n_new = 3


# --- bad input ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["X", "X_new", "X_test"])
@pytest.mark.parametrize("bad", [-np.inf, np.inf])
def test_infinite_values_are_refused_and_placed(bad, name):
    rows = {"X": draw(0), "X_new": draw(1), "X_test": draw(2)}
    rows[name][2, 2], rows[name][3, 2] = np.nan, bad
    message = f"Input {name} contains infinity.* row 3, column 2.*make it NaN first"
    with pytest.raises(ValueError, match=message):
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


def test_held_out_rows_that_were_trained_on_are_told():
    X, X_test = draw(0, 60), draw(2, 60)
    message = r"(\d+) of \1 rows of X_test are training rows: members cannot be told"
    for train, same in (X, X[::-1]), (X, X[:20]), (np.rint(X), np.rint(X)):
        with pytest.raises(ValueError, match=message):
            compare_samples(train, draw(1), X_test=same, **FAST)
    some = np.vstack([X[:5], X_test])
    match = "5 of 65 rows of X_test are training rows"
    with pytest.warns(UserWarning, match=match) as told:
        compare_samples(X, draw(1), X_test=some, **FAST)
    assert Path(told[0].filename) == Path(__file__)


def test_held_out_rows_may_equal_training_rows_by_chance():
    whole = [np.rint(draw(seed, 60)) for seed in range(3)]
    assert compare_samples(whole[0], whole[1], X_test=whole[2], **FAST).n_test == 60
    # A row that is in the data twice may fall on both sides.
    X = np.vstack([draw(0, 60), draw(0, 60)[:2]])
    held_out = np.vstack([X[:1], draw(2, 60)])
    assert compare_samples(X, draw(1), X_test=held_out, **FAST).n_test == 61


def test_rows_without_values_are_refused():
    with pytest.raises(ValueError, match=r"X has rows of shape \(0, 3\), without any"):
        compare_samples(np.ones((4, 0, 3)), np.ones((4, 0, 3)))


def test_values_too_large_for_distances_are_refused_and_placed():
    X, X_new = draw(0), draw(1)
    X_new[0, 2] = 1e200
    message = r"X_new, in training standard deviations, reaches 1.+e\+19. in feature x2"
    with pytest.raises(ValueError, match=message):
        compare_samples(X, X_new)
    X[:, 1] *= 1e-300
    X_new = draw(1) * [1, 1e300, 1, 1]
    with pytest.raises(ValueError, match="reaches inf in feature x1, too large"):
        compare_samples(X, X_new)


@pytest.mark.parametrize(
    "wrong",
    [
        {"cv": 1},
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


def test_training_rows_before_the_new_ones_are_told():
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = np.arange(60) < 15
    resampled, _ = PNLSampler(random_state=0).fit_resample(X, y)
    with pytest.warns(UserWarning, match="begins with the 60 rows of X") as told:
        compare_samples(X, resampled)
    assert Path(told[0].filename) == Path(__file__)
    compare_samples(X, resampled[60:])
