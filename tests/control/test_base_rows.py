"""Base rows near constraints, and weights of parents for totals."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl.control import column_total
from sklearn_pnl.control.base_rows import (
    choose_base_rows,
    condition_weights,
    near_rows,
    parent_weights,
)
from sklearn_pnl.control.totals import Totals
from sklearn_pnl.frames import TableReader, read_table

# --- base rows near constraints ---------------------------------------------------


def test_base_rows_are_weighted_by_distance_to_the_constraint():
    values = np.random.default_rng(0).normal(size=(500, 1))
    weights = condition_weights(values, np.array([1.0]), np.array([1.2]))
    assert weights.sum() == pytest.approx(1)
    mean = weights @ values[:, 0]
    assert 0.9 < mean < 1.3
    far = condition_weights(values, np.array([9.0]), np.array([9.0]))
    assert 20 * (1 - 1e-9) <= 1 / (far**2).sum() < 40
    assert far @ values[:, 0] > 1.5


@pytest.mark.parametrize("n", [100, 3000])
def test_base_rows_are_near_the_values_requested_for_each_row(n):
    rng = np.random.RandomState(0)
    values = rng.normal(size=(n, 2))
    values[:, 1] = np.round(values[:, 1])
    ends = values[rng.randint(n, size=5000)]
    rows = near_rows(values, ends, ends, rng)
    away = np.abs(values[rows] - ends)
    assert np.median(away[:, 0]) < 0.4 and (away[:, 1] == 0).mean() > 0.5
    # Within an interval, base rows are distributed as the training rows.
    low = np.full((5000, 2), [0.5, -np.inf])
    rows = near_rows(values, low, np.full((5000, 2), np.inf), rng)
    inside = values[:, 0] >= 0.5
    assert inside[rows].mean() > 0.7
    assert len(np.unique(rows[inside[rows]])) > 0.9 * min(inside.sum(), 900)
    found = values[rows[inside[rows]], 0].mean()
    assert abs(found - values[inside, 0].mean()) < 0.15


def test_all_rows_with_the_requested_value_are_base_rows():
    values = np.repeat([0.0, 1.0], 4000)[:, None]
    ends = np.full((20_000, 1), 1.0)
    rows = near_rows(values, ends, ends, np.random.RandomState(0))
    assert rows.min() >= 4000 and len(np.unique(rows)) > 3900
    shares = np.arange(8000) % 2
    rows = near_rows(values, ends, ends, np.random.RandomState(0), shares)
    assert rows.min() >= 4000 and (rows % 2 == 1).all()


def test_columns_without_values_do_not_affect_weights():
    values = np.random.default_rng(0).normal(size=(50, 2))
    values[:, 1] = np.nan
    ends = np.array([1.0, 5.0])
    of_first = condition_weights(values[:, :1], ends[:1], ends[:1])
    assert_allclose(condition_weights(values, ends, ends), of_first)


SEEDS = range(5)


def random_table(seed, n=60, kind="floats"):
    """Draw the columns wage, rent, net, adults, kids, persons."""
    rng = np.random.default_rng(seed)
    wage, share = rng.lognormal(7.5, 0.5, n), rng.uniform(0.1, 0.4, n)
    wage, rent = np.round(wage, 2), np.round(wage * share, 2)
    adults, kids = rng.integers(1, 4, n), rng.poisson(0.8, n)
    rows = np.column_stack([wage, rent, wage - rent, adults, kids, adults + kids])
    if kind == "cents":
        rows[:, 2] = np.round(rows[:, 2], 2)
    return rows


# --- totals -----------------------------------------------------------------------


def households(n=200):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(random_table(0, n), columns=list("abcdef"))
    frame["region"] = rng.choice(["n", "s", "w"], n, p=[0.5, 0.3, 0.2])
    frame["sex"] = rng.choice(["f", "m"], n)
    return frame


def read_totals(requested, n, X, discrete=False):
    table = read_table(TableReader(), X)
    numbers = table.numbers()
    return Totals.read(requested, n, table, numbers, discrete), numbers


def read(requested, n=100, discrete=False):
    return read_totals(requested, n, households(), discrete)


# --- parents and donors -------------------------------------------------------------


def test_weighted_parents_satisfy_the_totals():
    frame = households()
    mean = frame["a"].mean()
    requested = {"a": 100 * 1.1 * mean, "region": {"n": 20, "s": 50, "w": 30}}
    totals, numbers = read(requested)
    weights = parent_weights(totals, numbers)
    assert weights.sum() == pytest.approx(100)
    assert weights @ frame["a"] == pytest.approx(110 * mean)
    assert weights[frame["region"] == "s"].sum() == pytest.approx(50)
    # The nearest weights are an exponential of the requested columns (Deville, Sarndal
    # 1992).
    x = np.column_stack([pd.get_dummies(frame["region"]), frame["a"]]).astype(float)
    ratio = np.log(weights)
    fitted = x @ np.linalg.lstsq(x, ratio, rcond=None)[0]
    assert_allclose(fitted, ratio, atol=1e-8)


def test_extreme_sums_leave_enough_effective_parents():
    totals, numbers = read({"a": 100 * 0.999 * households()["a"].max()})
    weights = parent_weights(totals, numbers)
    assert weights.sum() ** 2 / (weights**2).sum() > 20


def test_contradictory_counts_are_rejected():
    frame = pd.DataFrame({"u": list("xxyy") * 5, "v": list("ppqq") * 5, "x": 1.0})
    totals, numbers = read_totals([{"u": {"x": 8}}, {"v": {"p": 3}}], 10, frame)
    weights = parent_weights(totals, numbers)
    with pytest.raises(ValueError, match="'u' and 'v'"):
        choose_base_rows(totals, weights, np.random.RandomState(0))


@pytest.mark.parametrize(
    "counts", [{"n": 60, "s": 50}, {"n": 5, "s": 5, "w": 5}, {"w": 101}]
)
def test_counts_that_contradict_the_number_of_rows_are_rejected(counts):
    with pytest.raises(ValueError):
        totals, numbers = read({"region": counts})
        weights = parent_weights(totals, numbers)
        choose_base_rows(totals, weights, np.random.RandomState(0))


@pytest.mark.parametrize("seed", SEEDS)
def test_base_rows_satisfy_counts_exactly(seed):
    rng = np.random.RandomState(seed)
    tables = [{"region": {"n": 31, "s": 27, "w": 42}}, {"sex": {"f": 77}}]
    tables += [column_total("e", {0: 20}, rtol=0.2)]
    discrete = np.array([False] * 4 + [True, False])
    totals, numbers = read(tables, discrete=discrete)
    seeds = choose_base_rows(totals, parent_weights(totals, numbers), rng)
    assert_array_equal(totals.achieved(numbers[:100], seeds)[-1], 0)
