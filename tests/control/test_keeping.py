"""What all training rows keep, new rows keep: equations found and given, zeros."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from _tables_of_equations import TABLES, make, worst
from scipy.optimize import LinearConstraint
from sklearn.preprocessing import StandardScaler

from sklearn_pnl import ColumnConstraint, PNLAugmenter, PNLSampler, find_invariants


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", TABLES)
def test_new_rows_keep_what_all_training_rows_keep(kind, seed):
    X, a, b = make(kind, seed)
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(200, random_state=seed)
    assert worst(rows, X, a, b) <= 1e-9
    assert augmenter.invariants_.violation(rows).max() <= 1e-9
    assert len(augmenter.invariants_) == len(a)
    margin = 0.1 * np.ptp(X, axis=0) + 1e-9
    assert np.all((rows >= X.min(axis=0) - margin) & (rows <= X.max(axis=0) + margin))
    # They are new rows.
    assert len(np.unique(rows.round(12), axis=0)) > 100
    # "kde" moves each coordinate by itself, so that even copies part; near rows of the
    # same categories keep these, as whole numbers stay whole.
    if kind == "one_hot":
        return
    free = PNLAugmenter(invariants=None, draws="kde", range_slack=None).fit(X)
    assert worst(free.sample(200, random_state=seed), X, a, b) > 1e-3


@pytest.mark.parametrize("kind", ["totals", "subtotals", "compositions"])
def test_the_default_breaks_equations_that_it_is_not_told_of(kind):
    X, a, b = make(kind, 0)
    free = PNLAugmenter(invariants=None).fit(X)
    assert len(free.invariants_) == 0
    assert worst(free.sample(200, random_state=0), X, a, b) > 0.01


SETTINGS = {
    "order 1": {"order": 1},
    "reshaper": {"reshaper": "prime"},
    "kde": {"draws": "kde"},
    "order 1, kde": {"order": 1, "draws": "kde"},
    "mixture": {"local_manifold": "mixture"},
    "no margin": {"range_slack": 0},
    "any range": {"range_slack": None},
    "small offset": {"offset": 1e-3},
}


SETTINGS = {
    "order 1": {"order": 1},
    "reshaper": {"reshaper": "prime"},
    "kde": {"draws": "kde"},
    "order 1, kde": {"order": 1, "draws": "kde"},
    "mixture": {"local_manifold": "mixture"},
    "no margin": {"range_slack": 0},
    "any range": {"range_slack": None},
    "small offset": {"offset": 1e-3},
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", TABLES)
def test_equations_are_kept_in_every_setting(kind, settings):
    X, a, b = make(kind, 3)
    augmenter = PNLAugmenter(**SETTINGS[settings]).fit(X)
    assert worst(augmenter.sample(120, random_state=0), X, a, b) <= 1e-9


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", TABLES)
def test_the_sampler_finds_equations_in_the_rows_of_all_classes(kind, seed):
    X, a, b = make(kind, seed)
    # The rare class alone has too few rows to tell an equation from chance.
    y = np.r_[np.ones(12, int), np.zeros(len(X) - 12, int)]
    sampler = PNLSampler(random_state=seed)
    resampled, _ = sampler.fit_resample(X, y)
    assert len(resampled) > len(X)
    assert worst(resampled[len(X) :], X, a, b) <= 1e-9
    assert len(sampler.invariants_) == len(a)
    np.testing.assert_array_equal(
        sampler.augmenters_[1].invariants_.coefficients,
        sampler.invariants_.coefficients,
    )


@pytest.mark.parametrize("order", ["auto", None, 2])
def test_sums_over_an_axis_of_rows_with_two(order):
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(5), (150, 4))
    rows = PNLAugmenter(order, offset=0.1).fit(X).sample(100, random_state=0)
    assert rows.shape == (100, 4, 5)
    np.testing.assert_allclose(rows.sum(axis=2), 1, atol=1e-9)
    free = PNLAugmenter(order, offset=0.1, invariants=None).fit(X)
    off = free.sample(100, random_state=0).sum(axis=2) - 1
    assert np.abs(off).max() > 1e-2


def test_no_equation_costs_no_change():
    X = np.random.default_rng(0).normal(size=(60, 5))
    kept, free = (PNLAugmenter(invariants=i).fit(X) for i in ("auto", None))
    assert len(kept.invariants_) == 0
    np.testing.assert_array_equal(
        kept.sample(50, random_state=0), free.sample(50, random_state=0)
    )


@pytest.mark.parametrize("kind", ["parts", "shares"])
def test_zeros_that_parents_share_stay_zeros(kind):
    rng = np.random.default_rng(0)
    parts = rng.gamma(1.0, size=(200, 5)) * (rng.random((200, 5)) < 0.5)
    parts[:, 0] += 0.1
    total = parts.sum(axis=1, keepdims=True)
    X = np.hstack([total, parts]) if kind == "parts" else parts / total
    augmenter = PNLAugmenter().fit(X)
    rows, parents = augmenter.sample(300, random_state=0, return_parents=True)
    shared = (X[parents] == 0).all(axis=1)
    assert shared.mean() > 0.1
    np.testing.assert_array_equal(rows[shared], 0)
    assert augmenter.invariants_.violation(rows).max() <= 1e-9
    # A constraint that nothing else can meet moves them all the same.
    empty = shared.argmax() % X.shape[1]
    asked = ColumnConstraint(int(empty), equal=0.05)
    rows = augmenter.sample(50, random_state=0, constraints=asked)
    np.testing.assert_allclose(rows[:, empty], 0.05, atol=1e-9)


def test_one_hot_groups_stay_categories():
    X, a, _ = make("one_hot", 1)
    rows = PNLAugmenter().fit(X).sample(200, random_state=0)
    for group in a:
        part = rows[:, group != 0]
        assert set(np.unique(part)) == {0.0, 1.0}
        np.testing.assert_array_equal(part.sum(axis=1), 1)


def test_groups_of_groups_are_found_and_kept_together():
    # Towns are in counties, counties in one of two countries; equations need not name
    # the towns, whose sum follows from the others.
    rng = np.random.default_rng(0)
    town = rng.integers(0, 7, 300)
    county = np.array([0, 0, 1, 1, 2, 2, 3])[town]
    country = np.array([0, 0, 1, 1])[county]
    X = np.column_stack(
        [*(np.eye(k)[g] for k, g in ((2, country), (4, county), (7, town))), town * 1.5]
    )
    X = np.column_stack([X, rng.normal(size=(300, 2))])
    augmenter = PNLAugmenter().fit(X)
    ends = np.cumsum([0, 2, 4, 7])
    rows = augmenter.sample(300, random_state=0)
    groups = [rows[:, a:b] for a, b in pairwise(ends)]
    for group in groups:
        assert set(np.unique(group)) == {0.0, 1.0}
        np.testing.assert_array_equal(group.sum(axis=1), 1)
    known = {tuple(row) for row in X[:, :14]}
    assert {tuple(row) for row in rows[:, :14].round(6)} <= known


def test_an_indicator_in_another_equation_is_kept_with_it():
    rng = np.random.default_rng(0)
    flag, a = rng.integers(0, 2, 80), rng.normal(size=(80, 2))
    X = np.column_stack([flag, 1 - flag, a, flag + a.sum(axis=1)])
    augmenter = PNLAugmenter(range_slack=0).fit(X)
    rows = augmenter.sample(200, random_state=0)
    np.testing.assert_array_equal(np.sort(rows[:, :2], axis=1), [[0, 1]] * 200)
    assert augmenter.invariants_.violation(rows).max() < 1e-9


@pytest.mark.parametrize("kind", TABLES)
def test_single_precision(kind):
    X, a, b = make(kind, 2)
    X = X.astype(np.float32)
    rows = PNLAugmenter().fit(X).sample(100, random_state=0)
    assert rows.dtype == np.float32
    assert worst(rows.astype(float), X.astype(float), a, b) <= 2e-6


# --- equations that are given ---------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(3))
def test_equations_typed_with_few_digits_hold_as_in_the_training_rows(seed, dtype):
    # No column of scaled dummies makes up for what their coefficients are rounded by.
    rng = np.random.default_rng(seed)
    X = np.eye(3)[rng.choice(3, 60, p=[0.6, 0.3, 0.1])]
    X = np.column_stack([X, rng.normal(size=60)])
    X = StandardScaler().fit_transform(X).astype(dtype)
    found = find_invariants(X)
    terms = dict(enumerate(found.coefficients[0].round(6).tolist()))
    typed = ColumnConstraint(terms, equal=found.values[0].round(6))
    rows = PNLAugmenter(invariants=typed).fit(X).sample(200, random_state=0)
    new, old = ({*map(tuple, rows[:, :3].tolist())} for rows in (rows, X))
    assert new <= old


def test_equations_given_are_kept_as_those_found_are():
    X, a, b = make("totals", 0)
    found = find_invariants(X)
    ways = [found, LinearConstraint(a, b, b), [LinearConstraint(a, b, b)]]
    rows = [PNLAugmenter(invariants=w).fit(X).sample(50, random_state=0) for w in ways]
    for new in rows:
        assert worst(new, X, a, b) <= 1e-9
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)


def test_equations_that_training_rows_break_are_refused():
    X = np.random.default_rng(0).uniform(size=(50, 3))
    broken = ColumnConstraint({0: 1, 1: -1}, equal=0)
    with pytest.raises(ValueError, match="do not keep 'x. = x.': .* of the range"):
        PNLAugmenter(invariants=broken).fit(X)
    with pytest.raises(ValueError, match="do not keep 'b = a'"):
        PNLSampler(
            invariants=ColumnConstraint({"a": 1, "b": -1}, equal=0)
        ).fit_resample(pd.DataFrame(X, columns=list("abc")), np.arange(50) < 10)
    interval = ColumnConstraint(0, lower=0, upper=1)
    with pytest.raises(ValueError, match="give intervals as constraints of sample"):
        PNLAugmenter(invariants=interval).fit(X)


def test_more_features_than_are_searched_say_so():
    rng = np.random.default_rng(0)
    parts = rng.uniform(size=(30, 201))
    X = np.column_stack([parts[:, :3].sum(axis=1), parts])
    augmenter = PNLAugmenter().fit(X)
    assert len(augmenter.invariants_) == 0
    assert "More than 200 features" in augmenter.invariants_.note
    assert "find_invariants(X)" in repr(augmenter.invariants_)
    asked = PNLAugmenter(invariants=find_invariants(X)).fit(X)
    rows = asked.sample(20, random_state=0)
    np.testing.assert_allclose(rows[:, 0], rows[:, 1:4].sum(axis=1), atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_a_class_may_be_constant_where_scaled_whole_numbers_are_not(seed):
    # The constant and its value of the lattice differ by rounding.
    rng, n = np.random.default_rng(seed), 200
    y = (np.arange(n) < 20).astype(int)
    a = rng.integers(0, 3, n)
    a[y == 1] = a[0]
    X = np.column_stack([a, a, rng.normal(size=n)])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = PNLSampler(random_state=0).fit_resample(X, y)[0][n:]
    np.testing.assert_allclose(rows[:, :2], X[0, 0], rtol=1e-12)
