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


def test_values_with_the_index_in_another_order_are_refused():
    X = stores(0)
    mixed = (1.1 * X["total"]).iloc[::-1]
    asked = [ColumnConstraint("total", lower=0), ColumnConstraint("total", equal=mixed)]
    with pytest.raises(ValueError, match=r"^equal has .* order.*equal.reindex"):
        adjust(X, asked)
    mended = ColumnConstraint("total", equal=mixed.reindex(X.index))
    assert_allclose(adjust(X, mended)["total"], 1.1 * X["total"], rtol=1e-9)


def test_rows_that_have_it_stay_bit_by_bit():
    X = np.random.default_rng(0).normal(size=(40, 3))
    assert_array_equal(adjust(X, ColumnConstraint(0, lower=-100)), X)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_that_nothing_is_asked_of_stay_bit_by_bit(seed):
    rng = np.random.default_rng(seed)
    parts = rng.gamma(2.0, 20.0, size=(30, 2)).round(2)
    X = np.column_stack([parts, parts.sum(axis=1), rng.integers(0, 50, 30)])
    moved = adjust(X, ColumnConstraint(3, lower=10, upper=30))
    assert_array_equal(moved, np.column_stack([X[:, :3], X[:, 3].clip(10, 30)]))


def test_whole_numbers_stay_whole_and_keep_their_totals():
    counts = np.random.default_rng(0).poisson(9, (50, 3))
    X = np.column_stack([counts, counts.sum(axis=1)])
    moved = adjust(X, ColumnConstraint(3, equal=X[:, 3] + 2))
    assert moved.dtype == X.dtype
    assert_array_equal(moved[:, :3].sum(axis=1), X[:, 3] + 2)


def test_what_cannot_be_had_is_told():
    X = np.random.default_rng(0).gamma(2.0, size=(40, 3))
    with pytest.raises(ValueError, match="^Row 0 cannot.*x0 asks for -1"):
        adjust(X, ColumnConstraint(0, equal=-1.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_all_rows_together_have_totals(seed):
    rng = np.random.default_rng(seed)
    X = stores(seed).assign(
        staff=rng.integers(1, 9, 60), place=rng.choice(["n", "s"], 60)
    )
    wanted = {"total": 1.05 * X["total"].sum(), "staff": int(X["staff"].sum()) + 7}
    fixed = ColumnConstraint("a", equal=X["a"])
    moved = adjust(X, fixed, totals=wanted)
    assert abs(moved["total"].sum() - wanted["total"]) <= 1e-9 * wanted["total"]
    assert moved["staff"].sum() == wanted["staff"]
    assert moved["staff"].dtype == X["staff"].dtype
    assert_allclose(moved["a"], X["a"], rtol=1e-9)
    assert_array_equal(moved["place"], X["place"])
    equations = find_invariants(X[list("abc") + ["total"]])
    assert equations.violation(moved[list(equations.feature_names)]).max() < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_on_totals_are_the_nearest_together(seed):
    X = np.random.default_rng(seed).gamma(3.0, size=(9, 2))
    wanted = {0: 1.05 * X[:, 0].sum()}
    moved = adjust(X, totals=wanted, invariants=None)
    before = (X - X.min(axis=0)) / np.ptp(X, axis=0) + 1
    # One multiplier for all rows: each moves in proportion to its measure, but for
    # those at an end of the range, which stay where the others do.
    step = (moved - X)[:, 0] / before[:, 0]
    inside = (X[:, 0] > X[:, 0].min()) & (X[:, 0] < X[:, 0].max())
    assert_allclose(step[inside], step[inside][0], rtol=1e-6)
    assert_allclose(step[~inside], 0, atol=1e-12)
    assert_allclose(moved[:, 1], X[:, 1])


@pytest.mark.parametrize("wanted", [0.0, 1e-6, 1.0])
def test_totals_far_below_what_there_is_are_exact(wanted):
    # Moves leave rounding of their own size, which is not that of the total.
    rng = np.random.default_rng(0)
    X = rng.lognormal(7, 0.5, (200, 2)) * (rng.random((200, 2)) < [1, 0.4])
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    moved = adjust(X, totals={1: wanted})
    assert abs(moved[:, 1].sum() - wanted) <= 1e-9 * wanted
    assert moved[:, 1].min() >= 0
    assert_allclose(moved[:, 0] - moved[:, 1], moved[:, 2], atol=1e-9)


@pytest.mark.parametrize("factor", [0.01, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("together", [False, True])
def test_no_range_is_too_short_for_what_is_asked(n, factor, together):
    # Of rows that are nearly alike, or one alone.
    X = stores(0, 1).to_numpy() + 3
    X = X * (1 + 1e-4 * np.random.default_rng(0).random((n, 4)))
    X[:, 3] = X[:, :3].sum(axis=1)
    wanted = factor * X[:, 3]
    held = ColumnConstraint({0: 1, 1: 1, 2: 1, 3: -1}, equal=0)
    if together:
        asked = {"totals": {3: wanted.sum()}}
    else:
        asked = {"constraints": ColumnConstraint(3, equal=wanted)}
    moved = adjust(X, invariants=held, **asked)
    assert moved[:, 3].sum() == pytest.approx(wanted.sum(), rel=1e-9)
    assert_allclose(moved[:, :3].sum(axis=1), moved[:, 3], rtol=1e-9)
    assert moved.min() >= 0
    with pytest.raises(ValueError, match="asks for -"):
        adjust(X, ColumnConstraint(3, equal=-1.0), invariants=held)


def test_constant_columns_move_unless_they_are_to_be_kept():
    X = np.column_stack(
        [np.full(40, 7.5), np.random.default_rng(0).gamma(3.0, size=40)]
    )
    asked = ColumnConstraint(0, equal=8.0)
    assert_allclose(adjust(X, asked, invariants=None), X + [0.5, 0.0])
    with pytest.raises(ValueError, match="x0 asks for 8; .* it reaches 7.5"):
        adjust(X, asked)
    with pytest.raises(ValueError, match="Of one row .* give as invariants="):
        adjust(X[:1], asked)
    flags = np.eye(2)[np.arange(40) % 2]
    with pytest.raises(ValueError, match="x0 asks for 2; .* reaches 0 to 1"):
        adjust(flags, ColumnConstraint(0, equal=2.0), invariants=None)


def test_totals_that_no_rows_have_and_counts_are_refused():
    X = stores(0).assign(place=np.repeat(["n", "s"], 30))
    with pytest.raises(ValueError, match="'a' asks for -1; .* it reaches 0"):
        adjust(X, totals={"a": -1.0})
    with pytest.raises(ValueError, match="keep their categories.*calibrate"):
        adjust(X, totals={"place": {"n": 20, "s": 40}})


def test_nothing_asked_is_refused():
    with pytest.raises(ValueError, match="give constraints of each row, or totals"):
        adjust(stores(0))


@pytest.mark.parametrize(
    "wrong", [{"invariants": "none"}, {"range_slack": -1}, {"offset": "one"}], ids=str
)
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of adj"):
        adjust(np.eye(4), ColumnConstraint(0, lower=0), **wrong)


@pytest.mark.parametrize(
    "asked",
    [
        {"constraints": ColumnConstraint("total", lower=300.0)},
        {"constraints": ColumnConstraint("a", equal=250.25)},
        {"totals": {"total": 44_444.44}},
        {"totals": {"a": 30_000.3, "b": 1_500.0}},
    ],
)
def test_cents_stay_cents(asked):
    cents = np.random.default_rng(0).integers(100, [99_999, 5_000, 30_000], (60, 3))
    X = pd.DataFrame(cents / 100, columns=list("abc"))
    X["total"] = cents.sum(axis=1) / 100
    moved = adjust(X, **asked)
    assert_allclose(100 * moved, (100 * moved).round(), atol=1e-6)
    assert_allclose(moved[list("abc")].sum(axis=1), moved["total"], rtol=1e-12)
    for name, wanted in asked.get("totals", {}).items():
        assert_allclose(moved[name].sum(), wanted, rtol=1e-12)


def test_values_off_the_steps_of_a_column_are_had():
    cents = np.random.default_rng(0).integers(100, 10_000, (60, 2))
    X = np.column_stack([cents, cents.sum(axis=1)]) / 100
    moved = adjust(X, ColumnConstraint(2, equal=1.0123 * X[:, 2]))
    assert_allclose(moved[:, 2], 1.0123 * X[:, 2], rtol=1e-9)
    assert_allclose(adjust(X, totals={2: 6_000.0001})[:, 2].sum(), 6_000.0001)


@pytest.mark.parametrize("n", [2, 3, 6, 8])
def test_rows_too_few_to_tell_a_total_are_told(n):
    parts = np.random.default_rng(0).gamma(3.0, size=(n, 2)).round(n % 3)
    X = np.column_stack([parts, parts.sum(axis=1)])
    twice = ColumnConstraint(2, equal=2 * X[:, 2])
    total = ColumnConstraint({0: 1, 1: 1, 2: -1}, equal=0)
    moved = adjust(X, twice, invariants=total)
    assert_allclose(moved[:, 0] + moved[:, 1], 2 * X[:, 2])
    adjust(X, twice, invariants=None)
    adjust(X[:, :2], ColumnConstraint(0, equal=2.0), range_slack=None)
    if len(find_invariants(X)):
        moved = adjust(X, twice)
        assert_allclose(moved[:, 0] + moved[:, 1], 2 * X[:, 2])
        return
    with pytest.warns(UserWarning, match=f"In {n} rows equations are not told"):
        adjust(X, twice)
