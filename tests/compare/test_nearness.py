"""Distances to the nearest row: copies, close rows and membership inference."""

import numpy as np
import pytest
from _samples import FAST, SEEDS, draw, punched, slow_distances, statuses
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import compare_samples


@pytest.mark.parametrize("n_features", [1, 4, 30])
@pytest.mark.parametrize("seed", SEEDS)
def test_distances_follow_their_definition(seed, n_features):
    # Many features are searched by brute force, few by a tree.
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.integers(-3, 4, size=n_features)
    X, X_new, X_test = (
        rng.gamma(1.0, size=(n, n_features)) * units for n in (40, 25, 30)
    )
    X[:5] = X[5:10]
    found = compare_samples(X, X_new, **FAST)
    assert_allclose(found.distance, slow_distances(X, X_new), rtol=1e-9)
    assert_allclose(found.baseline_distance, slow_distances(X, X, True), rtol=1e-9)
    gaps = np.linalg.norm((X_new - X[found.closest]) / X.std(axis=0), axis=1)
    assert_allclose(gaps, found.distance, rtol=1e-9)
    found = compare_samples(X, X_new, X_test=X_test, **FAST)
    assert (found.n_train, found.n_new, found.n_test) == (40, 25, 30)
    assert_allclose(found.baseline_distance, slow_distances(X, X_test), rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_missing_cells_are_replaced_by_the_median_in_distances(seed):
    X, X_new = punched(draw(seed, 60), seed), punched(draw(seed + 10, 25), seed)

    def points(rows):
        is_nan = np.isnan(rows)
        filled = np.where(is_nan, np.nanmedian(X, axis=0), rows) / np.nanstd(X, axis=0)
        flags = is_nan[:, [0, 2, 3]] / np.isnan(X)[:, [0, 2, 3]].std(axis=0)
        return np.hstack([filled, flags])

    gaps = np.linalg.norm(points(X_new)[:, None] - points(X), axis=2)
    found = compare_samples(X, X_new, **FAST)
    assert_allclose(found.distance, gaps.min(axis=1), rtol=1e-9)


@pytest.mark.parametrize("n_levels", [2, 15])
@pytest.mark.parametrize("seed", SEEDS)
def test_categorical_and_numeric_columns_have_equal_weight(seed, n_levels):
    # Indicators of levels are scaled by standard deviations: the mean square over pairs
    # of training rows is 2, as for a standardised number.
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)

    def table(n):
        k = np.r_[np.arange(n_levels), rng.integers(n_levels, size=n - n_levels)]
        return pandas.DataFrame({"x": rng.normal(size=n), "k": k.astype(str)})

    X, X_new = table(60), table(30)
    levels, codes, counts = np.unique(X["k"], return_inverse=True, return_counts=True)
    weight = 1 / (counts / 60 * (1 - counts / 60) * n_levels)

    def squares(k, other):
        apart = weight[k][:, None] + weight[other]
        return np.where(k[:, None] == other, 0, apart)

    assert squares(codes, codes).mean() == pytest.approx(2)
    x, x_new = (rows["x"].to_numpy() / X["x"].std(ddof=0) for rows in (X, X_new))
    gaps = (x_new[:, None] - x) ** 2
    gaps += squares(np.searchsorted(levels, X_new["k"]), codes)
    found = compare_samples(X, X_new, **FAST)
    assert_allclose(found.distance, np.sqrt(gaps.min(axis=1)), rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_found(seed):
    X = np.hstack(
        [draw(seed, 60), 1e6 + np.random.default_rng(seed).normal(size=(60, 9))]
    )
    found = compare_samples(X, X[::-1], **FAST)
    assert found["exact copies"].value == found["close rows"].value == 1
    assert found["exact copies"].baseline == found["exact copies"].threshold == 0
    assert found.distance.max() == 0
    assert_array_equal(found.closest, np.arange(60)[::-1])
    assert statuses(found)["exact copies"] == statuses(found)["close rows"] == "copies"


@pytest.mark.parametrize("held_out", [False, True])
def test_one_exact_copy_is_a_fault(held_out):
    X, X_new, X_test = draw(0, 300), draw(10, 300), draw(20, 100)
    # An integer that many rows share is not evidence of copies.
    X[:, 2], X_new[:, 2] = 0, 0
    X_new[0] = X[0]
    given = {"X_test": X_test} if held_out else {}
    found = compare_samples(X, X_new, **given, **FAST)
    assert found["exact copies"].value == 1 / 300
    assert "copies" in found.verdict
    X_new[:, 0] = np.nextafter(X_new[:, 0], np.inf)
    found = compare_samples(X, X_new, **given, **FAST)
    assert found["exact copies"].status == "fine"


def test_rows_equal_by_chance_are_not_copies():
    # Some rows of zero-inflated amounts contain only zeros.
    rng = np.random.default_rng(0)
    X, X_new = rng.gamma(1.0, size=(2, 200, 2)) * (rng.random((2, 200, 2)) > 0.4)
    X[:2], X_new[:2] = 0, 0
    found = compare_samples(X, X_new, **FAST)["exact copies"]
    assert found.baseline == np.mean(np.all(X == 0, axis=1)) > 0.1
    assert found.value == np.mean(np.all(X_new == 0, axis=1)) > 0.1
    assert found.status == "fine"
    # Integers can be equal by chance even if no training rows are equal.
    whole = rng.integers(100, size=(2, 10, 2))
    whole[1, 0] = whole[0, 0]
    assert compare_samples(*whole, **FAST)["exact copies"].status != "copies"


@pytest.mark.parametrize("seed", SEEDS)
def test_close_rows_lie_within_a_quarter_of_the_baseline(seed):
    X, X_new = draw(seed, 100), draw(seed + 10, 100)
    X_new[:80] = X[:80] + 1e-6 * X.std(axis=0)
    found = compare_samples(X, X_new, **FAST)
    radius = np.median(slow_distances(X, X, True)) / 4
    assert found["close rows"].value == np.mean(slow_distances(X, X_new) <= radius)
    assert found["close rows"].baseline == np.mean(found.baseline_distance <= radius)
    assert statuses(found)["close rows"] == found.verdict.split(", ")[0] == "copies"
    assert statuses(found)["exact copies"] == "fine"


@pytest.mark.parametrize("seed", SEEDS)
def test_membership_attack_follows_its_definition(seed):
    X, X_new, X_test = draw(seed, 40), draw(seed + 10, 25), draw(seed + 20, 30)
    X_new[:12] = X[:12] + 0.1 * X.std(axis=0)
    found = compare_samples(X, X_new, X_test=X_test, **FAST)["membership"]
    units = X.std(axis=0)
    train, test = (
        np.linalg.norm((rows[:, None] - X_new) / units, axis=2).min(axis=1)
        for rows in (X, X_test)
    )
    assert found.value == pytest.approx(np.mean(test[:, None] > train))
    assert found.baseline == 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_membership_attack_succeeds_only_on_copies(seed):
    X, X_new, X_test = (draw(seed + s, 100) for s in (0, 10, 20))
    fresh = compare_samples(X, X_new, X_test=X_test, **FAST)["membership"]
    assert fresh.status == "fine" and abs(fresh.value - 0.5) < 0.12
    near = X + 0.05 * X.std(axis=0)
    found = compare_samples(X, near, X_test=X_test, **FAST)
    assert found["membership"].value > 0.99
    assert "members exposed" in found.verdict


def test_training_rows_among_new_or_test_rows_raise_a_warning():
    rows = np.vstack([draw(0), draw(1)])
    with pytest.warns(UserWarning, match="X_new .* 80 rows") as record:
        compare_samples(draw(0), rows, **FAST)
    assert record[0].filename == __file__
    X_test = np.vstack([draw(0)[:5], draw(2)])
    with pytest.warns(UserWarning, match="5 of 85 rows of X_test"):
        found = compare_samples(draw(0), draw(1), X_test=X_test, **FAST)
    assert found["exact copies"].reason.startswith("5 of 85 real rows equal")


@pytest.mark.parametrize("rows", [punched(draw(0), 0), np.rint(draw(0, 20))])
def test_missing_cells_are_equal_and_rows_may_repeat(rows):
    assert compare_samples(rows, rows[::-1], **FAST)["exact copies"].value == 1
    twice = np.vstack([rows, rows[:4], draw(5, 20)])
    found = compare_samples(twice, twice[:10], **FAST)["exact copies"]
    assert found.baseline >= 8 / len(twice)


@pytest.mark.parametrize(("name", "n"), [("X", 1), ("X_new", 0), ("X_test", 0)])
def test_too_few_rows_are_named(name, n):
    rows = dict.fromkeys(["X", "X_new", "X_test"], np.eye(9))
    with pytest.raises(ValueError, match=f"{name} .* {n}"):
        compare_samples(**rows | {name: np.eye(9)[:n]})


def test_distances_of_many_rows_use_a_random_subset(monkeypatch):
    X, X_new, X_test = draw(0, 400), draw(1, 300), draw(2, 200)
    full = compare_samples(X, X_new, X_test=X_test, random_state=0)
    assert_array_equal(full.compared, np.arange(300))
    monkeypatch.setattr("sklearn_pnl.compare.nearness.MOST_ROWS", 150)
    found = compare_samples(X, X_new, X_test=X_test, random_state=0)
    assert (found.n_train, found.n_new, found.n_test) == (400, 300, 200)
    assert len({*found.compared.tolist()}) == 150
    assert_allclose(found.distance, slow_distances(X, X_new)[found.compared])
    assert np.isin(found.baseline_distance, full.baseline_distance).all()
    assert found["membership"].value == pytest.approx(full["membership"].value, abs=0.1)
    alone = compare_samples(X, X_new, random_state=0).baseline_distance
    among = np.abs(slow_distances(X, X, True) - alone[:, None]).min(axis=1)
    assert len(alone) == 150 and among.max() < 1e-9


def test_duplicate_rows_are_not_their_own_neighbours(monkeypatch):
    monkeypatch.setattr("sklearn_pnl.compare.nearness.MOST_ROWS", 20)
    X = np.repeat(draw(0, 20), 3, axis=0)
    found = compare_samples(X, draw(1, 30), random_state=0)
    assert_array_equal(found.baseline_distance, np.zeros(20))
