"""Projection of rows on constraints, bounds and the resolution of columns."""

import numpy as np
import pandas as pd
import pytest
from _sets import linear, set_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.control.projection import nearest_rows, project_rows


@pytest.mark.parametrize("seed", range(20))
def test_projections_agree_with_an_independent_solver(seed):
    """Compare for random equalities, intervals, bounds and units."""
    rng = np.random.default_rng(seed)
    d, k, n = rng.integers(2, 7), rng.integers(1, 4), 3
    unit = np.geomspace(1, 10.0 ** rng.integers(0, 6), d)
    a = rng.integers(-1, 2, size=(k, d)).astype(float)
    a[~a.any(axis=1), 0] = 1
    a /= unit
    start, weights = rng.normal(size=(n, d)) * unit, rng.gamma(2, size=(n, d)) * unit**2
    # A feasible point, near or far.
    there = start + rng.normal(size=(n, d)) * unit * 10.0 ** rng.integers(-1, 3)
    values = there @ a.T
    lower = values - rng.gamma(1, size=values.shape) * (rng.random(k) < 0.5)
    upper = np.where(rng.random(k) < 0.5, values, np.inf)
    ends = np.minimum(start, there) - 0.1 * unit, np.maximum(start, there) + 0.1 * unit
    low = np.where(rng.random((n, d)) < 0.5, -np.inf, ends[0])
    high = np.where(rng.random((n, d)) < 0.5, np.inf, ends[1])
    system = linear(a, lower, upper)
    rows, met = nearest_rows(start, weights, system, low, high)
    assert met.all()
    assert np.all((rows >= low) & (rows <= high))
    assert np.all(rows @ a.T >= lower - 1e-8 * np.abs(values))
    for i in range(n):

        def slack(v, i=i):
            values = a @ (v * unit)
            is_bounded = np.isfinite(upper[i])
            return np.concatenate([values - lower[i], (upper[i] - values)[is_bounded]])

        found = minimize(
            lambda v, i=i: ((v * unit - start[i]) ** 2 / weights[i]).sum(),
            there[i] / unit,
            constraints={"type": "ineq", "fun": slack},
            bounds=list(zip(low[i] / unit, high[i] / unit, strict=True)),
            tol=1e-12,
            options={"maxiter": 500},
        )
        distance = ((rows[i] - start[i]) ** 2 / weights[i]).sum()
        assert distance <= 1.001 * found.fun + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_chi_square_projection_agrees_with_the_closed_form(seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(3.0, size=(50, 4)) * [1, 100, 1, 0.01]
    total = linear([1, 0.01, 1, 100], 0, 0)
    wanted = rng.uniform(5, 30, size=(50, 1))
    requested = linear([1, 0.01, 1, 100], wanted, wanted)
    whole = set_of(X, constraints=requested)
    rows, unmet = project_rows(X, whole)
    assert not unmet.any()
    w = ((X - X.min(axis=0)) / np.ptp(X, axis=0) + 1) * np.ptp(X, axis=0) ** 2
    a = total.coefficients[0]
    lacking = wanted[:, 0] - X @ a
    nearest = X + w * a * (lacking / (w @ a**2))[:, None]
    assert_allclose(rows, nearest, rtol=1e-9, atol=1e-9)


def test_feasible_rows_are_unchanged_and_inequalities_are_satisfied():
    rng = np.random.default_rng(0)
    paid = rng.gamma(2, 30, 300).round(2)
    X = np.column_stack([paid, paid + rng.normal(0, 20, 300).round(2)])
    X[::7, 1] = np.nan
    price = linear([-1, 1], 0, np.inf)
    whole = set_of(X, steps=0.01, constraints=price)
    rows, unmet = project_rows(X, whole)
    ok = ~(X[:, 0] > X[:, 1])
    assert not unmet.any()
    assert_array_equal(rows[ok], X[ok])
    assert not np.any(rows[:, 0] > rows[:, 1])
    # A missing cell satisfies an inequality, and all values are in cents.
    assert_array_equal(np.isnan(rows), np.isnan(X))
    cents = 100 * rows[~np.isnan(rows)]
    assert np.abs(cents - np.rint(cents)).max() < 1e-6
    free, _ = project_rows(X, set_of(X, constraints=price))
    assert not np.any(free[:, 0] > free[:, 1])


def test_orders_of_the_data_hold_unless_constraints_contradict_them():
    rng = np.random.default_rng(1)
    X = np.sort(rng.gamma(2.0, size=(200, 3)), axis=1)
    requested = linear([1, 0, 0], 3, np.inf)
    inequalities = [(0, 1), (1, 2)]
    whole = set_of(X, inequalities=inequalities, constraints=requested)
    rows, unmet = project_rows(X, whole)
    assert not unmet.any()
    assert rows[:, 0].min() == 3
    assert np.all(np.diff(rows, axis=1) >= 0)
    same = X[:, 0] >= 3
    assert_array_equal(rows[same], X[same])
    # Requests take precedence over inequalities, which the audit then names.
    low = linear([[1, 0, 0], [0, 0, 1]], [3, -np.inf], [np.inf, 1])
    rows, unmet = project_rows(X, set_of(X, inequalities=inequalities, constraints=low))
    assert not unmet.any()
    assert np.all(rows[:, 0] > rows[:, 2])


def test_missing_cells_are_filled_only_by_requested_equalities():
    X = np.column_stack([np.arange(6.0), np.arange(6.0), 2 * np.arange(6.0)])
    given = X.copy()
    given[1, 1] = given[2, 2] = np.nan
    data = linear([1, 1, -1], 0, 0)
    # An equality of the data does not apply to rows with a missing cell.
    rows, unmet = project_rows(given, set_of(X, equalities=data))
    assert_array_equal(rows, given)
    # A requested equality applies to all rows.
    requested = linear([[1, 1, 0]], 3, 3)
    rows, unmet = project_rows(given, set_of(X, constraints=requested))
    assert not unmet.any()
    assert_allclose(rows[:, :2].sum(axis=1), 3)
    assert np.isnan(rows[2, 2])
    single = linear([[0, 1, 0]], 7, 7)
    rows, _ = project_rows(given, set_of(X, constraints=single))
    assert_array_equal(rows[:, 1], np.full(6, 7.0))


def test_fixed_cells_change_only_if_necessary():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.gamma(2.0, size=(30, 2)), np.full(30, 5.0)])
    fixed = np.zeros(X.shape, bool)
    fixed[:, 0] = True
    total = linear([1, 1, 1], 20, 20)
    rows, unmet = project_rows(X, set_of(X, constraints=total), fixed)
    assert not unmet.any()
    assert_array_equal(rows[:, [0, 2]], X[:, [0, 2]])
    whole = set_of(X, high=[20, 10, 20], constraints=total)
    rows, unmet = project_rows(X, whole, fixed)
    assert not unmet.any()
    assert_allclose(rows.sum(axis=1), 20)
    assert rows[:, 1].max() <= 10


def test_infeasible_rows_are_marked_and_other_rows_projected():
    X = np.random.default_rng(3).uniform(size=(5, 2))
    requested = linear(
        [1, 1],
        [[1.0], [9.0], [1.5], [1.0], [-1.0]],
        [[1.0], [9.0], [1.5], [1.0], [-1.0]],
    )
    rows, unmet = project_rows(X, set_of(X, low=0, high=1, constraints=requested))
    assert_array_equal(unmet, [False, True, False, False, True])
    assert_allclose(rows[~unmet].sum(axis=1), requested.lower[~unmet, 0], atol=1e-9)
    assert np.all((rows >= 0) & (rows <= 1))


def test_integers_are_rounded_even_if_an_order_must_be_restored():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(40, 70, 80)})
    frame["spleen"] = (frame["age"] + rng.random(80)).round(1)
    requested = ColumnConstraint("age", lower=54.5)
    new = PNLAugmenter().fit(frame).sample(200, 0, constraints=requested)
    assert new["age"].min() >= 55
    assert (new["age"] <= new["spleen"]).all()
