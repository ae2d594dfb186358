"""Feasible requests are met at the least cost, and advised values are accepted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.promises import requests
from sklearn_pnl.control import ColumnConstraint, Infeasibility, adjust, column_total

pytest.importorskip("clarabel", reason="the oracle is missing")


@pytest.mark.parametrize("seed", [*range(20), 63, 292])
def test_random_requests_on_floats_are_met_at_the_least_cost(seed):
    assert requests.check_floats(seed) == ""


@pytest.mark.parametrize("seed", [*range(10), 79, 108])
def test_random_requests_on_integers_are_met_exactly(seed):
    assert requests.check_integers(seed) == ""


@pytest.mark.parametrize("seed", [*range(8), 15, 17])
def test_bounds_of_advised_ranges_are_accepted(seed):
    assert requests.check_infeasible(seed) == ""


def test_a_third_of_the_random_requests_are_at_the_edge():
    edges = [requests.random_request(seed).is_edge for seed in range(60)]
    assert 12 <= sum(edges) <= 28


@pytest.mark.parametrize("seed", range(3))
def test_all_of_the_capacity_can_be_requested(seed):
    """Every row has all its capacity in one column: the only feasible table."""
    rng = np.random.default_rng(seed)
    X, most = rng.gamma(2, 10, (40, 4)), rng.uniform(20, 90, 40)
    limits = [ColumnConstraint(dict.fromkeys(range(4), 1), upper=most)]
    limits += [ColumnConstraint(j, lower=0) for j in range(4)]
    rows = adjust(X, limits, totals={1: most.sum()}, equalities=None)
    assert_allclose(rows[:, 1], most, rtol=1e-9)
    assert_allclose(rows[:, [0, 2, 3]], 0, atol=1e-7)
    with pytest.raises(Infeasibility, match="can only reach 0 to"):
        adjust(X, limits, totals={1: most.sum() * 1.0001}, equalities=None)


@pytest.mark.parametrize("is_integer", [False, True])
def test_a_column_is_cut_to_zero_exactly(is_integer):
    X = np.random.default_rng(0).gamma(2, 10, (30, 3))
    X = X.round() if is_integer else X
    X = np.column_stack([X, X.sum(axis=1)])
    X = X.astype(int) if is_integer else X
    limits = [ColumnConstraint(j, lower=0) for j in range(4)]
    rows = adjust(X, limits, totals={0: 0})
    assert_array_equal(rows[:, 0], np.zeros(30))
    assert_allclose(rows[:, :3].sum(axis=1), rows[:, 3])


def test_columns_without_a_total_or_a_relation_keep_all_digits():
    X = np.random.default_rng(0).gamma(2, size=(200, 4))
    rows = adjust(X, totals={1: 1.3 * X[:, 1].sum()}, equalities=None)
    assert_array_equal(rows[:, [0, 2, 3]], X[:, [0, 2, 3]])


def test_totals_that_contradict_each_other_twice_give_no_number():
    X = np.random.default_rng(0).uniform(size=(30, 3))
    totals = [column_total({0: 1}, 900.0), column_total({1: 1}, 900.0)]
    with pytest.raises(Infeasibility, match="Leave out several totals"):
        adjust(X, totals=totals, equalities=None, extrapolation=0.0)


def test_a_failure_of_the_solver_is_not_an_infeasible_request(monkeypatch):
    X = np.random.default_rng(0).uniform(size=(30, 3))
    monkeypatch.setattr("sklearn_pnl.control.quadratic._MAX_ITER", 1)
    with pytest.raises(RuntimeError, match="quadratic solver failed"):
        adjust(X, totals={0: 20.0}, equalities=None, extrapolation=0.0)
    with pytest.raises(Infeasibility, match="can only reach"):
        adjust(X, totals={0: 90.0}, equalities=None, extrapolation=0.0)
