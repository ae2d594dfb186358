"""Bounds, inequalities and binary columns of the training rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from sklearn_pnl import PNLAugmenter, PNLSampler
from sklearn_pnl._utils.blocks import random_order
from sklearn_pnl.columns.relations import find_inequalities, find_relations
from sklearn_pnl.frames import TableReader, read_table

SEEDS = [0, 1, 2]


def relations(X, extrapolation=0.0):
    X = np.asarray(X, dtype=float)
    table = read_table(TableReader(None), X, missing=True)
    return find_relations(table, None, extrapolation, "auto")


def gamma(seed, *shape):
    return np.random.default_rng(seed).gamma(2.0, size=shape)


def panel(seed, n_units=700, n_periods=4):
    """Make units in several years, with columns that vary in few rows or years."""
    rng = np.random.default_rng(seed)
    n = n_units * n_periods
    unit, period = np.divmod(np.arange(n), n_periods)
    job, site = rng.integers(0, 4, n), 1 + (unit > 0.75 * n_units)
    X = pd.DataFrame({"unit": unit, "person": 100_000 * site + unit, "site": site})
    X["year"], X["distance"] = 1980 + period, rng.integers(95, 2700, n_units)[unit]
    X["log"] = np.log(X["distance"])
    X["square"], X["is_1981"] = X["log"] ** 2, (period == 1).astype(int)
    X[[f"job{j}" for j in range(4)]] = np.eye(4, dtype=int)[job]
    X["wage"], X["bonus"] = rng.poisson(9, n), 0.0
    X.loc[rng.choice(n, 9, replace=False), "bonus"] = rng.gamma(2, 50, 9).round(2)
    X["total"] = X["wage"] + X["bonus"]
    X["share"] = np.where(rng.uniform(size=n) < 0.002, rng.uniform(size=n), 1.0)
    X["other"] = X["share"] + np.where(rng.uniform(size=n) < 0.003, 1.0, 0.0)
    return X


def sortings(X, seed):
    """Return row numbers by unit, by year, by each column, and shuffled."""
    rng = np.random.default_rng(seed)
    for column in X:
        yield np.argsort(X[column].to_numpy(), kind="stable")
    yield np.arange(len(X))[::-1]
    yield np.lexsort([X["year"], -X["unit"]])
    for _ in range(3):
        yield rng.permutation(len(X))


@pytest.mark.parametrize("seed", SEEDS)
def test_relations_and_bounds_do_not_depend_on_the_sorting(seed):
    X, found = panel(seed, 600 + 100 * seed, 4 + seed), set()
    for numbers in sortings(X, seed):
        rows = X.iloc[numbers].reset_index(drop=True)
        augmenter = PNLAugmenter().fit(rows)
        new = augmenter.sample(100, random_state=0)
        assert not new.isna().any(axis=None)
        assert (new.min() >= X.min()).all()
        assert (new.max() <= X.max()).all()
        assert (new["total"] == new["wage"] + new["bonus"]).all()
        kept = augmenter._relations
        tied = (
            kept.in_equality,
            kept.pivots,
            kept.inequalities,
            kept.columns.binary,
            kept.blocks,
        )
        near = [(pivot, a.tolist()) for pivot, a in kept.near]
        told = augmenter.equalities_, augmenter.inequalities_, near
        found.add(str([*told, *(part.tolist() for part in tied)]))
    assert len(found) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_sorted_panels_do_not_mislead_the_search(seed):
    X = panel(seed, 1000, 4)[["year", "distance", "log", "square"]]
    y = np.random.default_rng(seed).uniform(size=len(X)) < 0.2
    new = PNLSampler(random_state=0).fit_resample(X, y)[0].iloc[len(X) :]
    assert new["year"].between(1980, 1983).all()


# --- inequalities -----------------------------------------------------------------


def orders_slow(X):
    """Find pairs with overlapping ranges, never above and somewhere below."""
    low, high = X.min(axis=0), X.max(axis=0)
    d = X.shape[1]
    return {
        (p, q)
        for p in range(d)
        for q in range(d)
        if p != q and high[p] > low[q] and low[p] < high[p] and low[q] < high[q]
        if all(row[p] <= row[q] for row in X) and any(row[p] < row[q] for row in X)
    }


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [5, 70, 1200])
def test_orders_agree_with_a_brute_force_search(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X = np.column_stack(
        [X, X[:, 0] + rng.gamma(0.2, size=n), X.max(axis=1), X[:, 1], np.ones(n)]
    )
    X = np.rint(4 * X)[:, rng.permutation(X.shape[1])]
    low, high = X.min(axis=0), X.max(axis=0)
    times = np.zeros(X.shape[1], bool)
    found = find_inequalities(X, low, high, times, random_order(X))
    pairs, expected = set(map(tuple, found.tolist())), orders_slow(X)
    assert pairs <= expected
    # The missing pairs follow from two pairs that are present.
    closed = set(pairs)
    for _ in range(5):
        closed |= {(p, r) for p, q in closed for s, r in closed if q == s}
    assert closed & expected == expected


def test_orders_require_overlapping_ranges_and_equal_units():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=200)
    far = np.column_stack([x, x + 5])
    assert len(relations(far).inequalities) == 0
    # The range includes values that extrapolation can reach.
    assert relations(far, extrapolation=10.0).inequalities.tolist() == [[0, 1]]
    # Times are not compared with numbers.
    near = np.column_stack([x, x + rng.uniform(size=200)])
    assert len(relations(near).inequalities) == 1
    ends = near.min(axis=0), near.max(axis=0)
    times = np.array([True, False])
    assert len(find_inequalities(near, *ends, times, random_order(near))) == 0


def test_missing_cells_are_ignored_in_orders():
    rng = np.random.default_rng(0)
    low = rng.normal(size=300)
    X = np.column_stack([low, low + rng.gamma(1.0, size=300)])
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    assert relations(X).inequalities.tolist() == [[0, 1]]


# --- bounds -----------------------------------------------------------------------


def test_bounds_are_the_extended_ranges_of_all_rows():
    X = np.column_stack([gamma(0, 30) * 1e6, np.tile([2.0, 5.0], 15), np.ones(30)])
    found = relations(X, extrapolation=0.5)
    room = 0.5 * np.ptp(X[:, 0])
    assert_allclose(found.columns.low, [X[:, 0].min() - room, 2, 1])
    assert_allclose(found.columns.high, [X[:, 0].max() + room, 5, 1])
    without = relations(X, extrapolation=None)
    assert np.isinf([without.columns.low[0], without.columns.high[0]]).all()
