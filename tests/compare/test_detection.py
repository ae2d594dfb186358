"""Detection of new rows by a classifier."""

import numpy as np
import pytest
from _samples import SEEDS, draw, statuses
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import compare_samples
from sklearn_pnl.compare import detection


def test_auc_is_near_one_half_for_rows_of_the_same_distribution():
    # Mean of several draws: a single one strays by about 0.04.
    found = [
        compare_samples(draw(s, 150), draw(s + 50, 150), cv=3, random_state=s)
        for s in range(6)
    ]
    assert abs(np.mean([f["detection"].value for f in found]) - 0.5) < 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_auc_is_exactly_one_half_for_copies(seed):
    # Each is in the fold of its original. Plain folds would give about 0.
    X = draw(seed)
    assert_allclose(compare_samples(X, X, random_state=seed).fold_auc, 0.5, atol=1e-12)
    nearly = compare_samples(X, X + 1e-9 * X.std(axis=0), random_state=seed)
    assert nearly["detection"].value == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_detected_with_held_out_rows(seed):
    # Few distinct rows many times: training rows cannot tell, held-out rows can.
    X, X_test = draw(seed, 20), draw(seed + 10, 200)
    copies = X[np.random.default_rng(seed).integers(20, size=200)]
    assert abs(compare_samples(X, copies, random_state=0).fold_auc.mean() - 0.5) < 0.25
    found = compare_samples(X, copies, X_test=X_test, random_state=0)
    assert found["detection"].value > 0.9
    fresh = compare_samples(X, draw(seed + 20, 200), X_test=X_test, random_state=0)
    assert abs(fresh["detection"].value - 0.5) < 0.15


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_contain_nearest_neighbours_and_ignore_the_order_of_rows(seed):
    rows = np.vstack([draw(seed, 30), draw(seed, 5), draw(seed + 10, 20)])
    groups = detection.neighbor_groups(rows)
    assert_array_equal(groups[:5], groups[30:35])
    distinct = np.delete(np.arange(55), np.arange(30, 35))
    gaps = np.linalg.norm(rows[distinct][:, None] - rows[distinct], axis=2)
    np.fill_diagonal(gaps, np.inf)
    nearest = gaps.argmin(axis=1)
    assert_array_equal(groups[distinct], groups[distinct][nearest])
    shuffled = np.random.default_rng(seed).permutation(55)
    again = detection.neighbor_groups(rows[shuffled])
    same = groups[shuffled][:, None] == groups[shuffled]
    assert_array_equal(again[:, None] == again, same)


@pytest.mark.parametrize("held_out", [False, True])
def test_folds_contain_real_and_new_rows_and_split_no_group(held_out):
    rows = np.vstack([draw(0, 30), draw(0, 30) + 1e-9])
    is_new = np.repeat([0, 1], 30)
    rng = np.random.RandomState(0)
    splits = detection.make_folds(rows, is_new, held_out, 4, rng)
    assert len(splits) == 4
    assert_array_equal(np.sort(np.concatenate([t for _, t in splits])), np.arange(60))
    n_split = 0
    for train, test in splits:
        assert not set(train) & set(test)
        assert set(is_new[train]) == set(is_new[test]) == {0, 1}
        n_split += len(set(train % 30) & set(test % 30))
    assert (n_split == 0) != held_out


@pytest.mark.parametrize(
    ("n_train", "n_new", "n_folds"), [(2, 1, 0), (2, 40, 0), (40, 1, 0), (12, 12, 3)]
)
def test_few_rows_get_fewer_folds_or_none(n_train, n_new, n_folds):
    found = compare_samples(draw(0, n_train), draw(1, n_new), cv=3, random_state=0)
    assert found.fold_auc.size == n_folds
    few = statuses(found)["detection"] == "too few rows to tell"
    assert few == np.isnan(found["detection"].value) == (n_folds == 0)
    assert statuses(found)["spread"] == "too few rows to tell"
