"""Adjustment of existing rows with minimal changes."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import LinearConstraint, minimize

from sklearn_pnl.control import ColumnConstraint, adjust, column_total

SEEDS = [0, 1, 2]
# a + b + c = total.
TOTAL = np.array([[1.0, 1, 1, -1]])


def stores(seed, n=60):
    parts = np.random.default_rng(seed).gamma(3.0, size=(n, 3))
    return pd.DataFrame(parts, columns=list("abc")).assign(total=parts.sum(axis=1))


def measures(X, offset=1.0):
    """Return weights of squared moves: the documented chi-square distance."""
    X = np.asarray(X)
    width = np.ptp(X, axis=0)
    return ((X - X.min(axis=0)) / width + offset) * width**2


def distance(before, after, weights):
    return float(((np.asarray(after) - np.asarray(before)) ** 2 / weights).sum())


def nearest_on_equalities(X, weights, a, b):
    """Compute the closed form for one row, ``x + w a' (a w a')^-1 (b - a x)``."""
    found = np.empty_like(X)
    for i, (x, w) in enumerate(zip(X, weights, strict=True)):
        gram = (a * w) @ a.T
        found[i] = x + w * (a.T @ np.linalg.solve(gram, b[i] - a @ x))
    return found


# --- nearest ----------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 40, 400])
@pytest.mark.parametrize("offset", [0.3, 1.0])
def test_row_sums_agree_with_the_closed_form(n, offset):
    X = stores(n, n).to_numpy()
    wanted = X[:, 3] * np.random.default_rng(n).uniform(0.5, 2.0, n)
    moved = adjust(
        X,
        ColumnConstraint(3, equal=wanted),
        equalities=LinearConstraint(TOTAL, 0, 0),
        offset=offset,
    )
    a = np.vstack([TOTAL, np.eye(4)[3]])
    weights = measures(X, offset)
    b = np.column_stack([np.zeros(n), wanted])
    nearest = nearest_on_equalities(X, weights, a, b)
    assert_allclose(moved, nearest, atol=1e-7)
    assert_allclose(moved[:, :3].sum(axis=1), moved[:, 3], rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_intervals_and_bounds_agree_with_an_independent_solver(seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(3.0, size=(8, 4)) * [1, 10, 100, 1]
    # Values of existing rows are feasible.
    other = X[::-1]
    terms = [{0: 1, 1: 1, 2: -1}, {0: 1, 1: 2, 3: -1}]
    a = np.array([[1.0, 1, -1, 0], [1, 2, 0, -1]])
    wanted = other @ a.T
    requested = [
        ColumnConstraint(terms[0], equal=wanted[:, 0]),
        ColumnConstraint(terms[1], lower=wanted[:, 1]),
    ]
    moved = adjust(X, requested, equalities=None, extrapolation=0.0)
    ends = X.min(axis=0), X.max(axis=0)
    assert np.all((moved >= ends[0]) & (moved <= ends[1]))
    assert_allclose(moved @ a[0], wanted[:, 0], atol=1e-8)
    assert np.all(moved @ a[1] >= wanted[:, 1])
    weights, unit, n_solved = measures(X), np.ptp(X, axis=0), 0
    for i, x in enumerate(X):
        found = minimize(
            lambda v, x=x, w=weights[i]: distance(x, v * unit, w),
            other[i] / unit,
            constraints=[
                {"type": "eq", "fun": lambda v, b=b: a[0] @ (v * unit) - b}
                for b in wanted[[i], 0]
            ]
            + [
                {"type": "ineq", "fun": lambda v, b=b: a[1] @ (v * unit) - b}
                for b in wanted[[i], 1]
            ],
            bounds=list(zip(*(end / unit for end in ends), strict=True)),
            tol=1e-12,
            options={"maxiter": 500},
        )
        if found.success:
            n_solved += 1
            assert distance(x, moved[i], weights[i]) <= 1.001 * found.fun + 1e-9
    assert n_solved >= 5


@pytest.mark.parametrize("n", [3, 40, 400])
def test_row_and_column_sums_agree_with_the_closed_form(n):
    """Compare with the projection of all cells as one long row."""
    X = stores(n, n).to_numpy()
    wanted = {3: 1.3 * X[:, 3].sum(), 0: 0.8 * X[:, 0].sum()}
    moved = adjust(X, totals=wanted, equalities=LinearConstraint(TOTAL, 0, 0))
    a = np.vstack(
        [np.kron(np.eye(n), TOTAL), np.tile(np.eye(4)[3], n), np.tile(np.eye(4)[0], n)]
    )
    b = np.concatenate([np.zeros(n), list(wanted.values())])
    flat = [x.reshape(1, -1) for x in (X, measures(X))]
    nearest = nearest_on_equalities(*flat, a, b[None]).reshape(X.shape)
    assert_allclose(moved, nearest, atol=1e-7)
    assert_allclose(moved[:, 3].sum(), wanted[3], rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_of_totals_and_rows_are_satisfied_within_bounds(seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(3.0, size=(5, 3))
    sums = X.sum(axis=0)
    totals = [
        column_total(0, lower=1.4 * sums[0]),
        column_total(1, lower=0.5 * sums[1], upper=2 * sums[1]),
        column_total({1: 1, 2: 1}, upper=0.8 * (sums[1] + sums[2])),
    ]
    cap = 1.1 * X.sum(axis=1).max()
    requested = ColumnConstraint({0: 1, 1: 1, 2: 1}, upper=cap)
    moved = adjust(X, requested, totals=totals, equalities=None, extrapolation=0.5)
    assert np.all(moved.sum(axis=1) <= cap)
    weights, shape = measures(X), X.shape
    room = 0.5 * np.ptp(X, axis=0)
    bounds = np.tile(
        np.column_stack([X.min(axis=0) - room, X.max(axis=0) + room]), (5, 1)
    )

    def slack(v):
        v = v.reshape(shape)
        s = v.sum(axis=0)
        ends = [s[0] - 1.4 * sums[0], s[1] - 0.5 * sums[1], 2 * sums[1] - s[1]]
        ends.append(0.8 * (sums[1] + sums[2]) - s[1] - s[2])
        return np.concatenate([ends, cap - v.sum(axis=1)])

    assert slack(moved).min() > -1e-8
    found = minimize(
        lambda v: distance(X, v.reshape(shape), weights),
        X.ravel(),
        constraints={"type": "ineq", "fun": slack},
        bounds=bounds,
        tol=1e-12,
        options={"maxiter": 1000},
    )
    assert found.success
    assert distance(X, moved, weights) <= 1.001 * found.fun


# --- preserved values -------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_equalities_of_the_data_hold_after_adjustment(seed):
    X = stores(seed)
    wanted = 1.1 * X["total"]
    moved = adjust(X, ColumnConstraint("total", equal=wanted))
    assert list(moved) == list(X)
    assert_array_equal(moved["total"], wanted)
    assert_allclose(moved[list("abc")].sum(axis=1), wanted, rtol=1e-12)


def test_index_and_feasible_rows_are_unchanged():
    X = stores(0).set_axis([f"store {i}" for i in range(60)])
    moved = adjust(X, ColumnConstraint("total", lower=9.0))
    pd.testing.assert_index_equal(moved.index, X.index)
    same = X["total"] >= 9.0
    assert same.any() and not same.all()
    pd.testing.assert_frame_equal(moved[same], X[same])
    assert moved["total"].min() == 9.0


def test_values_with_a_reordered_index_are_rejected():
    X = stores(0)
    mixed = (1.1 * X["total"]).iloc[::-1]
    requested = [
        ColumnConstraint("total", lower=0),
        ColumnConstraint("total", equal=mixed),
    ]
    with pytest.raises(ValueError, match="^equal "):
        adjust(X, requested)


def test_unconstrained_cells_are_unchanged():
    rng = np.random.default_rng(0)
    parts = rng.gamma(2.0, 20.0, size=(30, 2)).round(2)
    X = np.column_stack([parts, parts.sum(axis=1), rng.integers(0, 50, 30)])
    moved = adjust(X, ColumnConstraint(3, lower=10, upper=30))
    assert_array_equal(moved, np.column_stack([X[:, :3], X[:, 3].clip(10, 30)]))


def test_constant_columns_change_only_if_necessary():
    X = np.column_stack([np.full(9, 7.5), np.random.default_rng(0).gamma(3.0, size=9)])
    both = ColumnConstraint({0: 1, 1: 1}, equal=20.0)
    assert_allclose(adjust(X, both, equalities=None), [[7.5, 12.5]] * 9)
    requested = ColumnConstraint(0, equal=8.0)
    assert_allclose(adjust(X, requested, equalities=None), X + [0.5, 0.0])
    # In a single row, each cell moves in proportion to its size.
    alone = adjust(
        [[1.0, 3.0]], ColumnConstraint({0: 1, 1: 1}, equal=8.0), equalities=None
    )
    assert_allclose(np.sum(alone), 8.0)


@pytest.mark.parametrize("times", [0.01, 50.0, -3.0])
@pytest.mark.parametrize("together", [False, True])
def test_feasible_values_are_not_rejected(times, together):
    X = stores(0, 12).to_numpy() + 3
    X[:, 3] = X[:, :3].sum(axis=1)
    wanted = times * X[:, 3]
    total = LinearConstraint(TOTAL, 0, 0)
    requested = {"constraints": ColumnConstraint(3, equal=wanted)}
    if together:
        requested = {"totals": {3: wanted.sum()}}
    moved = adjust(X, equalities=total, **requested)
    assert moved[:, 3].sum() == pytest.approx(wanted.sum(), rel=1e-9)
    assert_allclose(moved[:, :3].sum(axis=1), moved[:, 3], rtol=1e-9, atol=1e-9)


def test_lower_bounds_of_zero_preserve_signs():
    X = np.random.default_rng(0).lognormal(3, 2, (80, 3))
    wanted = 0.1 * X.sum(axis=1)
    total = ColumnConstraint({0: 1, 1: 1, 2: 1}, equal=wanted)
    limits = [ColumnConstraint(j, lower=0) for j in range(3)]
    moved = adjust(X, [total, *limits], equalities=None)
    assert moved.min() >= 0
    assert_allclose(moved.sum(axis=1), wanted)
    sums = adjust(X, limits, totals=0.1 * X.sum(axis=0), equalities=None)
    assert sums.min() >= 0
    assert_allclose(sums.sum(axis=0), 0.1 * X.sum(axis=0))


# --- steps ------------------------------------------------------------------------


def test_integers_stay_integers_and_satisfy_their_totals():
    counts = np.random.default_rng(0).poisson(9, (50, 3))
    X = np.column_stack([counts, counts.sum(axis=1)])
    moved = adjust(X, ColumnConstraint(3, equal=X[:, 3] + 2))
    assert moved.dtype == X.dtype
    assert_array_equal(moved[:, 3], X[:, 3] + 2)
    assert_array_equal(moved[:, :3].sum(axis=1), moved[:, 3])


def money():
    cents = np.random.default_rng(0).integers(100, [99_999, 5_000, 30_000], (60, 3))
    X = pd.DataFrame(cents / 100, columns=list("abc"))
    return X.assign(total=cents.sum(axis=1) / 100)


@pytest.mark.parametrize(
    "requested",
    [
        {"constraints": ColumnConstraint("total", lower=300.0)},
        {"constraints": ColumnConstraint("a", equal=250.25)},
        {"totals": {"total": 44_444.44}},
        {"totals": {"a": 30_000.3, "b": 1_500.0}},
    ],
)
def test_cents_are_preserved(requested):
    X = money()
    moved = adjust(X, **requested)
    assert_allclose(100 * moved, (100 * moved).round(), atol=1e-6)
    assert_allclose(moved[list("abc")].sum(axis=1), moved["total"], rtol=1e-12)
    for name, wanted in requested.get("totals", {}).items():
        assert_allclose(moved[name].sum(), wanted, rtol=1e-12)


def test_values_off_the_resolution_of_a_column_can_be_requested():
    X = money()[["a", "b"]].assign(total=lambda x: (x.a + x.b).round(2))
    wanted = 1.0123 * X["total"]
    moved = adjust(X, ColumnConstraint("total", equal=wanted))
    assert_array_equal(moved["total"], wanted)
    assert_allclose(moved["a"] + moved["b"], wanted)
    assert_allclose(adjust(X, totals={"total": 6_000.0001})["total"].sum(), 6_000.0001)


def test_nested_sums_are_rounded_consistently():
    rng = np.random.default_rng(0)
    parts = rng.integers(0, 99_999, (80, 4)) / 100
    X = np.column_stack([parts, parts[:, :2].sum(axis=1), parts[:, 2:].sum(axis=1)])
    X = np.column_stack([X, X[:, 4:].sum(axis=1)]).round(2)
    wanted = (1.037 * X[:, 6]).round(2)
    moved = adjust(X, ColumnConstraint(6, equal=wanted))
    assert_array_equal(moved[:, 6], wanted)
    assert np.abs(100 * moved - np.rint(100 * moved)).max() < 1e-6
    for parts, total in (([0, 1], 4), ([2, 3], 5), ([4, 5], 6)):
        assert_allclose(moved[:, parts].sum(axis=1), moved[:, total], rtol=1e-12)


def test_mixed_tables_preserve_types_categories_and_totals():
    rng = np.random.default_rng(0)
    X = stores(0).assign(staff=rng.integers(1, 9, 60), place=rng.choice(["n", "s"], 60))
    wanted = {"total": 1.05 * X["total"].sum(), "staff": int(X["staff"].sum()) + 7}
    moved = adjust(X, ColumnConstraint("a", equal=X["a"]), totals=wanted)
    assert_allclose(moved["total"].sum(), wanted["total"], rtol=1e-9)
    assert moved["staff"].sum() == wanted["staff"]
    assert moved.dtypes.tolist() == X.dtypes.tolist()
    assert_array_equal(moved[["a", "place"]], X[["a", "place"]])
    assert_allclose(moved[list("abc")].sum(axis=1), moved["total"], rtol=1e-9)


def test_dates_stay_dates_and_durations_stay_durations():
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 40), "D")
    X = pd.DataFrame({"start": start, "end": start + pd.Timedelta("20D")})
    X["end"] += pd.to_timedelta(rng.integers(-15, 15, 40), "D")
    moved = adjust(X, ColumnConstraint("start", lower=pd.Timestamp("2024-03-01")))
    assert moved["start"].min() == pd.Timestamp("2024-03-01")
    assert moved.dtypes.tolist() == X.dtypes.tolist()
    least = ColumnConstraint({"end": 1, "start": -1}, lower=pd.Timedelta("7D"))
    moved = adjust(X, least)
    lengths = X["end"] - X["start"]
    assert (moved["end"] - moved["start"]).min() == pd.Timedelta("7D")
    pd.testing.assert_frame_equal(moved[lengths >= "7D"], X[lengths >= "7D"])
    for wrong in (
        ColumnConstraint("start", lower=5.0),
        ColumnConstraint("start", lower=pd.Timedelta("1D")),
    ):
        with pytest.raises(ValueError):
            adjust(X, wrong)


# --- errors -----------------------------------------------------------------------


def test_infeasible_constraints_are_reported_with_row_and_range():
    X = np.random.default_rng(0).uniform(0, 1, size=(40, 3))
    requested = [
        ColumnConstraint(0, lower=0, upper=2),
        ColumnConstraint({0: 1, 1: -1}, equal=np.r_[np.zeros(7), 50.0, np.zeros(32)]),
    ]
    with pytest.raises(ValueError, match=r"Row 7 .*x0 - x1"):
        adjust(X, requested, equalities=None, extrapolation=0.0)
    with pytest.raises(ValueError):
        adjust(X, ColumnConstraint(0, equal=-1.0), extrapolation=0.0)
    with pytest.raises(ValueError):
        adjust(X, totals={0: -1.0}, extrapolation=0.0)
    each = ColumnConstraint(0, equal=np.r_[X[:7, 0], 50.0, X[8:, 0]])
    with pytest.raises(ValueError, match="Row 7 .*x0 "):
        adjust(X, each, totals={1: 15.0}, extrapolation=0.0)


def test_counts_are_rejected_and_rows_without_constraints_are_unchanged():
    X = stores(0).assign(place=np.repeat(["n", "s"], 30))
    with pytest.raises(ValueError, match="totals .*'place'"):
        adjust(X, totals={"place": {"n": 20, "s": 40}})
    pd.testing.assert_frame_equal(adjust(X), X)


@pytest.mark.parametrize(
    "wrong", [{"equalities": "none"}, {"extrapolation": -1}, {"offset": "one"}], ids=str
)
def test_parameters_out_of_range_are_rejected(wrong):
    with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter"):
        adjust(np.eye(4), ColumnConstraint(0, lower=0), **wrong)


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_rows_to_find_equalities_raise_a_warning(n):
    parts = np.random.default_rng(0).gamma(3.0, size=(n, 2))
    X = np.column_stack([parts, parts.sum(axis=1)])
    twice = ColumnConstraint(2, equal=2 * X[:, 2])
    total = LinearConstraint([[1, 1, -1]], 0, 0)
    moved = adjust(X, twice, equalities=total)
    assert_allclose(moved[:, 0] + moved[:, 1], 2 * X[:, 2])
    adjust(X, twice, equalities=None)
    with pytest.warns(UserWarning, match="equalities="):
        adjust(X, twice)


def test_equalities_missed_in_few_rows_raise_a_warning():
    # Quarters are not adjacent to their months, but the year is adjacent to its
    # quarters.
    X = np.random.default_rng(0).gamma(3.0, size=(8, 12))
    quarters = X.reshape(8, 4, 3).sum(axis=2)
    X = np.column_stack([X, quarters, quarters.sum(axis=1)])
    with pytest.warns(UserWarning, match="equalities="):
        rows = adjust(X, totals={16: 200})
    assert_allclose(rows[:, 12:16].sum(axis=1), rows[:, 16])
    requested = [
        ColumnConstraint({12 + q: 1} | {3 * q + i: -1 for i in range(3)}, equal=0)
        for q in range(4)
    ]
    year = ColumnConstraint({16: 1} | {12 + q: -1 for q in range(4)}, equal=0)
    rows = adjust(X, totals={16: 200}, equalities=[*requested, year])
    assert_allclose(rows[:, :12].sum(), 200)


# --- integers for which rounding violates a request -------------------------------


def budgets(seed, n=30):
    parts = np.random.default_rng(seed).integers(100, 9000, (n, 2))
    return pd.DataFrame(parts, columns=["rent", "travel"]).assign(
        total=parts.sum(axis=1)
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "share", [{"travel": 1, "total": -0.05}, {"travel": 20, "total": -1}]
)
def test_integers_satisfy_an_upper_bound_on_their_share_of_a_total(seed, share):
    X = budgets(seed)
    rows = adjust(X, ColumnConstraint(share, upper=0))
    assert (20 * rows["travel"] <= rows["total"]).all()
    assert (rows["rent"] + rows["travel"] == rows["total"]).all()
    stays = 20 * X["travel"] <= X["total"]
    assert rows[stays].equals(X[stays])


@pytest.mark.parametrize("seed", SEEDS)
def test_integers_satisfy_subtotals_with_an_inequality_and_a_total(seed):
    X = pd.DataFrame(
        np.random.default_rng(seed).integers(0, 12, (12, 3)), columns=[*"abc"]
    )
    X = X.assign(ab=X.a + X.b, all=X.sum(axis=1))
    requested, total = ColumnConstraint({"c": 1, "ab": -1}, lower=0), X["all"].sum() + 5
    for rows in (
        adjust(X, requested),
        adjust(X, requested, totals={"all": int(total)}),
    ):
        assert (rows["c"] >= rows["ab"]).all()
        assert (rows["a"] + rows["b"] == rows["ab"]).all()
        assert (rows["ab"] + rows["c"] == rows["all"]).all()
    assert rows["all"].sum() == total


PRICES = pd.DataFrame({"a": [1, 2, 3, 4, 5, 6], "b": [3, 1, 2, 2, 0, 1]}).assign(
    cost=lambda X: 3 * X.a + 5 * X.b, n=lambda X: X.a + X.b
)


@pytest.mark.parametrize("more", [-4, -1, 1, 7])
def test_totals_of_integers_with_prices_are_satisfied(more):
    rows = adjust(PRICES, totals={"a": int(PRICES["a"].sum()) + more})
    assert rows["a"].sum() == PRICES["a"].sum() + more
    assert (rows["cost"] == 3 * rows["a"] + 5 * rows["b"]).all()
    assert (rows["n"] == rows["a"] + rows["b"]).all()


def test_tax_on_prices_is_satisfied_quickly_and_silently_next_to_integers(capfd):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.integers(1, 20, 80), "net": rng.gamma(9, 20, 80)})
    X = X.round(2).assign(tax=lambda X: (0.19 * X["net"]).round(2))
    X["gross"] = (X["net"] + X["tax"]).round(2)
    tax = {"tax": 1, "net": -0.19}
    # With tolerance 0, rows are not rounded to cents. With half a cent, rows are
    # rounded; this search once took seconds per row.
    for room in (0, 0.0051):
        rows = adjust(X, ColumnConstraint(tax, lower=-room, upper=room))
        assert (rows["tax"] - 0.19 * rows["net"]).abs().max() < room + 1e-6
        assert_allclose(rows["gross"], rows["net"] + rows["tax"], rtol=1e-12)
    assert_allclose(rows, rows.round(2), rtol=1e-12)
    assert capfd.readouterr() == ("", "")


def test_integer_search_is_skipped_if_cents_are_not_preserved(monkeypatch):
    monkeypatch.setattr("sklearn_pnl.geometry.convex.integers.milp", None)
    X = stores(0).round(2).assign(age=np.arange(60) + 20)
    X["total"] = (X["a"] + X["b"] + X["c"]).round(2)
    rows = adjust(X, ColumnConstraint("total", equal=1.0123 * X["total"]))
    assert_allclose(rows["total"], 1.0123 * X["total"], rtol=1e-12)
    assert_allclose(rows["a"] + rows["b"] + rows["c"], rows["total"], rtol=1e-12)
    assert rows["age"].equals(X["age"])


def test_integers_with_a_given_price_are_found():
    X = PRICES.drop(columns="n")
    rows = adjust(X, ColumnConstraint("cost", equal=[20, 12, 21, 24, 17, 22]))
    assert rows["cost"].tolist() == [20, 12, 21, 24, 17, 22]
    assert (rows["cost"] == 3 * rows["a"] + 5 * rows["b"]).all()


# --- messages -----------------------------------------------------------------------


def test_counts_are_rejected_with_a_remedy_of_adjust():
    X = stores(0).assign(open=np.arange(60) % 2 == 0)
    with pytest.raises(ValueError, match="counts of 'open', .* sum of a numeric"):
        adjust(X, totals={"open": {True: 20}})
    assert adjust(X, totals={"open": 20})["open"].sum() == 20


def test_missing_cells_are_rejected_with_an_imputer_that_preserves_equalities():
    X = stores(0)
    with pytest.raises(ValueError, match="ManyBodyImputer preserves linear"):
        adjust(X.mask(X["a"] > 5), totals={"total": 100})


@pytest.mark.parametrize("more", [0, 1, 12_345])
def test_sums_of_integers_that_float64_rounds_are_rejected(more):
    sizes = np.random.default_rng(0).integers(10**15, 9 * 10**15, (20, 2))
    total = int(sizes[:, 0].sum()) + more
    assert total > 2**53
    with pytest.raises(ValueError, match=r"float64 rounds integers beyond 2 \*\* 53"):
        adjust(sizes, totals={0: total})
    rows = adjust(sizes // 1000, totals={0: total // 1000})
    assert int(rows[:, 0].sum()) == total // 1000


# --- groups and reliable columns ------------------------------------------------------


def test_each_group_has_its_own_totals():
    X = stores(0).assign(region=np.repeat([*"nsw"], 20))
    wanted = {"n": {"total": 200.0}, "s": {"total": 300.0, "a": 90.0}}
    rows = adjust(X, ColumnConstraint("b", lower=1), totals=wanted, by="region")
    sums = rows.groupby("region")[["a", "total"]].sum()
    assert_allclose(sums.loc[["n", "s"], "total"], [200, 300], rtol=1e-9)
    assert_allclose(sums.loc["s", "a"], 90, rtol=1e-9)
    assert rows["b"].min() >= 1
    assert_allclose(rows[list("abc")].sum(axis=1), rows["total"])
    # The third group only satisfies the constraint.
    alone = adjust(X, ColumnConstraint("b", lower=1))
    pd.testing.assert_frame_equal(rows[40:], alone[40:])
    # A group moves as its rows move with all other rows fixed.
    other = adjust(
        X, ColumnConstraint("b", lower=1), totals={"n": {"total": 200.0}}, by="region"
    )
    pd.testing.assert_frame_equal(rows[:20], other[:20])


@pytest.mark.parametrize(
    ("totals", "by", "message"),
    [
        ({"x": {"a": 1}}, "region", "No row has region='x'.*'n'"),
        ([column_total("a", 1)], "region", "requires totals of each group"),
        ({"n": {"a": 1}}, "place", "by.*'place'"),
        ({"n": {"a": 1e9}}, "region", "In the group 'n'.*sum of 'a' is 1000000000"),
    ],
)
def test_groups_that_cannot_be_met_are_rejected_by_name(totals, by, message):
    X = stores(0).assign(region=np.repeat([*"ns"], 30))
    with pytest.raises(ValueError, match=message):
        adjust(X, totals=totals, by=by, extrapolation=0.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_reliable_columns_move_by_the_inverse_of_their_factor(seed):
    X = stores(seed).to_numpy()[:, :2]
    both = ColumnConstraint({0: 1, 1: 1}, equal=X.sum(axis=1) + 1)
    moves = adjust(X, both, equalities=None, reliability={0: 10}) - X
    weights = measures(X) / [10, 1]
    assert_allclose(moves, weights / weights.sum(axis=1, keepdims=True))
    held = adjust(X, both, equalities=None, reliability={0: 1e9}) - X
    assert_allclose(held, [[0, 1]] * 60, atol=1e-7)


@pytest.mark.parametrize("reliability", [{"a": 0}, {"place": 2}, {"a": "high"}])
def test_reliability_needs_positive_numbers_of_numeric_columns(reliability):
    X = stores(0).assign(place="n")
    with pytest.raises(ValueError, match="reliability must have positive numbers"):
        adjust(X, totals={"a": 200}, reliability=reliability)
