"""Contradictory requests are rejected with the range that can be reached."""

from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from _sets import linear, set_of
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, linprog, minimize

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.control import ColumnConstraint, Infeasibility, adjust, column_total
from sklearn_pnl.control.infeasible_requests import explain_infeasible


def total_of(a, lower, upper):
    columns = {int(j): float(a[j]) for j in np.flatnonzero(a)}
    return column_total(columns, lower=lower, upper=upper)


@pytest.mark.parametrize("seed", range(12))
def test_overlapping_totals_are_satisfied_if_a_linear_programme_is_feasible(seed):
    r = np.random.default_rng(seed)
    n, d, k = int(r.integers(10, 60)), int(r.integers(2, 5)), int(r.integers(2, 5))
    X = r.gamma(2, size=(n, d))
    a = r.integers(-2, 3, size=(k, d)).astype(float)
    a[~a.any(axis=1), 0] = 1
    values = a @ (X[r.integers(0, n, n)].sum(axis=0) * r.choice([1, 1.3, 2.5]))
    values *= 1 + 0.05 * r.normal(size=k) * (r.random() < 0.4)
    room = np.where(r.random(k) < 0.5, 0, 0.02 * np.abs(values))
    low, high = X.min(axis=0), X.max(axis=0)
    exists = linprog(
        np.zeros(d), np.vstack([a, -a]), np.r_[values + room, room - values],
        bounds=np.column_stack([n * low, n * high]),
    ).status == 0  # fmt: skip
    totals = [
        total_of(*each) for each in zip(a, values - room, values + room, strict=True)
    ]
    if not exists:
        with pytest.raises(Infeasibility, match="sum of"):
            adjust(X, totals=totals, equalities=None, extrapolation=0.0)
        return
    rows = adjust(X, totals=totals, equalities=None, extrapolation=0.0)
    missed = np.abs(a @ rows.sum(axis=0) - values) - room
    assert (missed <= 1e-9 * (np.abs(a) @ rows.sum(axis=0))).all()
    assert ((rows >= low) & (rows <= high)).all()


@pytest.mark.parametrize("seed", range(4))
def test_overlapping_totals_agree_with_an_independent_solver(seed):
    r = np.random.default_rng(seed)
    X = r.gamma(2, size=(8, 3))
    sums = 1.4 * X.sum(axis=0)
    a = np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 0]])
    room = np.array([0, 0.01, 0.01])
    values = a @ sums
    totals = [
        total_of(a[k], values[k] * (1 - room[k]), values[k] * (1 + room[k]))
        for k in range(3)
    ]
    rows = adjust(X, totals=totals, equalities=None, extrapolation=0.0)
    low, high = X.min(axis=0), X.max(axis=0)
    unit = high - low
    weights = ((X - low) / unit + 1) * unit**2

    def distance(x):
        return ((x.reshape(X.shape) - X) ** 2 / weights).sum()

    found = minimize(
        distance, rows.ravel(), jac=lambda x: 2 * (x - X.ravel()) / weights.ravel(),
        bounds=np.column_stack([np.tile(low, 8), np.tile(high, 8)]),
        constraints=[
            LinearConstraint(np.tile(a[:1], 8), values[:1], values[:1]),
            LinearConstraint(
                np.tile(a[1:], 8), 0.99 * values[1:], 1.01 * values[1:]
            ),
        ],
        method="SLSQP", options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert_allclose(distance(rows.ravel()), found.fun, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_reported_range_of_an_infeasible_total_is_feasible(seed):
    r = np.random.default_rng(seed)
    X = pd.DataFrame(r.gamma(2, 50, (150, 2)).round(2), columns=["a", "b"])
    X["s"] = (X["a"] + X["b"]).round(2)
    augmenter, totals = PNLAugmenter().fit(X), {"a": 10_000.0, "b": 9_500.0}
    begin = perf_counter()
    with pytest.raises(Infeasibility, match=r"s = a \+ b.* 19500\.") as e:
        augmenter.sample(100, random_state=seed, totals=totals | {"s": 19_500.01})
    assert perf_counter() - begin < 5
    rtol = float(str(e.value).rsplit("rtol=")[1].rstrip(")."))
    wider = column_total("s", 19_500.01, rtol=rtol)
    for s in (column_total("s", 19_500), wider):
        requested = [*(column_total(k, v) for k, v in totals.items()), s]
        rows = augmenter.sample(100, random_state=seed, totals=requested)
        assert_allclose(rows["s"].sum(), 19_500, rtol=1e-9)


def test_an_interval_is_suggested_only_if_it_contains_a_feasible_sum():
    X = np.random.default_rng(0).uniform(0, 1, (20, 2))
    with pytest.raises(Infeasibility) as error:
        adjust(X, totals={0: 500.0}, extrapolation=0.0)
    assert "rtol" not in str(error.value)
    request = float(str(error.value).rsplit("Request ")[1].rstrip("."))
    rows = adjust(X, totals={0: request}, extrapolation=0.0)
    assert_allclose(rows[:, 0].sum(), request)


# --- rows ---------------------------------------------------------------------------


def test_contradictions_name_their_constraints_and_the_smallest_residual():
    rows = pd.DataFrame({"low": range(50), "mid": range(1, 51), "high": range(2, 52)})
    requested = [ColumnConstraint("low", equal=1), ColumnConstraint("mid", equal=3)]
    with pytest.raises(Infeasibility, match="mid must be 3.*least 1. Request 2,") as e:
        PNLAugmenter().fit(rows).sample(4, 0, constraints=requested)
    assert "high" not in str(e.value)


def hours(seed=0, n=60):
    r = np.random.default_rng(seed)
    h, m = r.integers(0, 24, n), r.integers(0, 60, n)
    columns = {"h": h, "m": m, "all": 60 * h + m, "g": r.integers(0, 256, n)}
    return pd.DataFrame(columns)


@pytest.mark.parametrize("call", ["adjust", "sample"])
def test_infeasible_integers_are_rejected_with_the_nearest_values(call):
    X, requested = hours(), ColumnConstraint({"all": 1, "g": 1}, equal=900.4)
    with pytest.raises(Infeasibility, match=r"all \+ g .* 900 and 901"):
        if call == "adjust":
            adjust(X, requested)
        else:
            PNLAugmenter().fit(X).sample(60, random_state=0, constraints=requested)


@pytest.mark.parametrize("seed", range(4))
def test_a_column_of_cents_compensates_for_integers(seed):
    r = np.random.default_rng(seed)
    n = 200
    win, draw, loss = r.integers(0, 12, n), r.integers(0, 9, n), r.integers(0, 9, n)
    a, b = r.integers(-60, 60, (2, n))
    X = pd.DataFrame({
        "a": a.astype(np.int8), "b": b.astype(np.int8), "sum": (a + b).astype(np.int16),
        "win": win, "draw": draw, "loss": loss, "games": win + draw + loss,
        "points": 3 * win + draw, "mid": np.round(r.gamma(2, size=n) * 5, 2),
    })  # fmt: skip
    rows = adjust(X, ColumnConstraint({"a": 1, "games": -1, "mid": 1}, equal=-13.48))
    assert_allclose(rows["a"].astype(float) - rows["games"] + rows["mid"], -13.48)
    assert (rows["games"] == rows["win"] + rows["draw"] + rows["loss"]).all()


def test_dropped_rows_are_not_in_the_report():
    r = np.random.default_rng(0)
    X = pd.DataFrame({"rate": r.uniform(0, 100, 300), "amount": r.normal(size=300)})
    requested = ColumnConstraint("rate", equal=[10, 130, 20, -5, 30, 40.0])
    rows, report = (
        PNLAugmenter()
        .fit(X)
        .sample(6, 0, constraints=requested, infeasible="drop", return_report=True)
    )
    assert_allclose(rows["rate"], [10, 20, 30, 40])
    assert report.n_rows == 4
    assert (report.lower, report.upper) == (10, 40)
    assert_allclose(report.residual, 0, atol=1e-12)


@pytest.fixture
def rows():
    parts = np.random.default_rng(0).integers(100, 1000, size=(20, 2)) / 100
    return np.column_stack([parts, parts.sum(axis=1).round(2)])


def test_infeasible_constraints_are_explained_with_the_reachable_range(rows):
    infeasible = np.arange(20) >= 7
    data = linear([1, 1, -1], 0, 0)
    requested = linear([[1, -1, 0], [1, 1, 0]], [0, 50], [np.inf, 60])
    limits = {"low": 0, "high": [10, 10, 100], "equalities": data}
    one = set_of(rows, **limits, constraints=requested)
    why = explain_infeasible(rows, infeasible, one)
    assert str(why).startswith(
        "Row 7 cannot satisfy all constraints: a + b must be 50 to 60, but rows within "
        "the bounds of the columns can only have 0 to 20: a miss of at least 30."
    )
    assert why.row == 7
    # Each constraint can be satisfied separately.
    both = linear([[1, 0, 0], [1, 1, 0]], [5, 3], [6, 4])
    one = set_of(rows, **limits, constraints=both)
    why = explain_infeasible(rows, infeasible, one)
    assert "5 <= a <= 6 can only have 5 to 16: a miss of at least 1." in str(why)


def test_a_binary_column_that_would_need_another_value_is_named():
    r = np.random.default_rng(0)
    flag = np.where(np.arange(200) == 3, 7.0, 5.0)
    X = np.column_stack([r.uniform(1, 5, 200), flag, r.uniform(3, 3.7, 200)])
    requested = [
        ColumnConstraint({0: 1, 1: 1}, lower=9.5, upper=10.5),
        ColumnConstraint({0: 1, 2: 1}, equal=6.1016),
    ]
    augmenter = PNLAugmenter(value_support=None).fit(X)
    with pytest.raises(Infeasibility, match="x1 would have .* values 5 and 7"):
        augmenter.sample(50, random_state=0, constraints=requested)


@pytest.mark.parametrize("bound", [{"equal": 1e160}, {"lower": 1e200}])
def test_constraints_far_from_all_rows_are_rejected_by_name(bound):
    X = np.random.default_rng(0).gamma(2, size=(100, 3))
    with pytest.raises(Infeasibility, match="x0 must be 1e.* can only have"):
        PNLAugmenter().fit(X).sample(5, 0, constraints=ColumnConstraint(0, **bound))
