"""Existing rows moved as little as possible."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from sklearn_pnl import ColumnConstraint, adjust, find_invariants

SEEDS = [0, 1, 2]


def stores(seed, n=60):
    parts = np.random.default_rng(seed).gamma(3.0, size=(n, 3))
    return pd.DataFrame(parts, columns=list("abc")).assign(total=parts.sum(axis=1))


@pytest.mark.parametrize("seed", SEEDS)
def test_totals_follow_and_what_is_asked_is_met(seed):
    X = stores(seed)
    wanted = 1.1 * X["total"]
    moved = adjust(X, ColumnConstraint("total", equal=wanted))
    assert list(moved) == list(X)
    assert_allclose(moved["total"], wanted, rtol=1e-9)
    assert find_invariants(X).violation(moved.to_numpy()).max() < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_the_nearest_in_the_distance_that_is_stated(seed):
    X = stores(seed)
    moved = adjust(X, ColumnConstraint("total", equal=1.1 * X["total"]))
    least, ranges = X.min().to_numpy(), np.ptp(X.to_numpy(), axis=0)
    for row in range(3):
        before = (X.iloc[row].to_numpy() - least) / ranges + 1
        a = np.array([1.0, 1.0, 1.0, -1.0])

        def distance(m, before=before):
            return np.sum((m - before) ** 2 / before)

        asked = [
            {"type": "eq", "fun": lambda m, a=a: a @ ((m - 1) * ranges + least)},
            {"type": "eq", "fun": lambda m, row=row: (m[3] - 1) * ranges[3]
             + least[3] - 1.1 * X["total"].iloc[row]},
        ]  # fmt: skip
        found = minimize(distance, before, constraints=asked, tol=1e-14)
        after = (moved.iloc[row].to_numpy() - least) / ranges + 1
        assert distance(after) <= distance(found.x) + 1e-8


def test_rows_keep_their_index():
    X = stores(0).set_axis([f"store {i}" for i in range(60)])
    moved = adjust(X, ColumnConstraint("total", equal=2.0))
    pd.testing.assert_index_equal(moved.index, X.index)


def test_rows_that_have_it_stay_bit_by_bit():
    X = np.random.default_rng(0).normal(size=(40, 3))
    assert_array_equal(adjust(X, ColumnConstraint(0, lower=-100)), X)


def test_whole_numbers_stay_whole_and_keep_their_totals():
    counts = np.random.default_rng(0).poisson(9, (50, 3))
    X = np.column_stack([counts, counts.sum(axis=1)])
    moved = adjust(X, ColumnConstraint(3, equal=X[:, 3] + 2))
    assert moved.dtype == X.dtype
    assert_array_equal(moved[:, :3].sum(axis=1), X[:, 3] + 2)


def test_what_cannot_be_had_is_told():
    X = np.random.default_rng(0).gamma(2.0, size=(40, 3))
    with pytest.raises(ValueError, match="row 0.*x0 asks for -1"):
        adjust(X, ColumnConstraint(0, equal=-1.0))
