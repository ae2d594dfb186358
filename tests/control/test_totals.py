"""Projection of rows on totals: comparisons with SciPy and closed forms."""

import numpy as np
import pandas as pd
import pytest
from _sets import linear, set_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from sklearn_pnl.columns.rounding import multiples
from sklearn_pnl.control import column_total
from sklearn_pnl.control.base_rows import choose_base_rows, parent_weights
from sklearn_pnl.control.sum_projection import Sums, project_to_totals
from sklearn_pnl.control.totals import Totals
from sklearn_pnl.frames import TableReader, read_table

SEEDS = range(5)
ORDERS = np.array([[1, 0], [2, 0], [3, 5]])
# wage = rent + net, persons = adults + kids: both in the units of the table.
EQUALITIES = np.array([[1, -1, -1, 0, 0, 0], [0, 0, 0, -1, -1, 1.0]]), np.zeros(2)
STEPS = {"floats": np.array([0, 0, 0, 1, 1, 1]), "cents": [0.01, 0.01, 0.01, 1, 1, 1]}


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


def as_sums(coefficients, lower, upper=None):
    a = np.atleast_2d(np.asarray(coefficients, float))
    lower = np.atleast_1d(np.asarray(lower, float))
    upper = lower if upper is None else np.atleast_1d(np.asarray(upper, float))
    names = tuple(f"the sum of {k}" for k in range(len(a)))
    return Sums(a, lower, upper, (), labels=names)


def settings(rows, kind="floats", **others):
    """Return a feasible set of the rows of a table."""
    keeps = {
        "low": rows.min(axis=0), "high": rows.max(axis=0), "orders": ORDERS,
        "equalities": linear(EQUALITIES[0], 0, 0), "steps": STEPS[kind],
    }  # fmt: skip
    keeps |= others
    precision = np.where(np.asarray(keeps["steps"]) == 1, 0, 1e-16)
    return set_of(rows, **keeps, precision=precision)


def check_rows(rows, start, keeps):
    assert np.all(rows >= keeps.columns.low) and np.all(rows <= keeps.columns.high)
    gap = np.abs(keeps.relations.equalities.residual(rows))
    assert gap.max(initial=0) <= 1e-11 * np.abs(start).max()
    first, second = keeps.relations.orders.T
    assert np.all(rows[:, first] <= rows[:, second])
    on_steps = np.flatnonzero(keeps.columns.steps)
    steps, values = keeps.columns.steps[on_steps], rows[:, on_steps]
    assert_array_equal(values, multiples(np.rint(values / steps), steps))


# --- the projection -----------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", STEPS)
def test_feasible_sums_are_satisfied_and_relations_preserved(kind, seed):
    start = random_table(seed, kind=kind)
    rng = np.random.default_rng(seed + 100)
    tilt = np.exp(0.3 * rng.normal() * start[:, 0] / start[:, 0].std())
    other = start[rng.choice(len(start), len(start), p=tilt / tilt.sum())]
    chosen = rng.permutation(6)[: rng.integers(1, 4)]
    a = np.eye(6)[chosen]
    if kind == "floats":
        # Sums of units that do not divide each other give a column no resolution.
        a = np.vstack([a, [0, 2, 0, 0, 1, 0]])
    sums = as_sums(a, a @ other.sum(axis=0))
    keeps = settings(start, kind)
    rows = project_to_totals(start, sums, keeps)
    assert sums.share_missed(rows).max() <= 1e-9
    check_rows(rows, start, keeps)
    whole = [k for k in range(len(chosen)) if chosen[k] > 2]
    assert_array_equal(sums.of(rows)[whole], sums.lower[whole])


def slsqp(start, weights, sums, low, high, a):
    shape = start.shape

    def gap(x):
        x = x.reshape(shape)
        return np.append(x @ a.T, sums.of(x) - sums.lower)

    found = minimize(
        lambda x: float((((x.reshape(shape) - start) ** 2) / (2 * weights)).sum()),
        start.ravel(), method="SLSQP", constraints={"type": "eq", "fun": gap},
        bounds=np.column_stack([np.tile(low, len(start)), np.tile(high, len(start))]),
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert found.success
    return found.fun


def chi_square(start, ranges):
    return ranges**2 * (1 + (start - start.min(axis=0)) / ranges)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n_sums", [1, 2])
@pytest.mark.parametrize("is_tied", [False, True])
def test_projections_agree_with_a_general_solver(seed, n_sums, is_tied):
    rng = np.random.default_rng(seed)
    start = rng.gamma(2.0, size=(8, 4))
    start[:, 3] = start[:, 0] + start[:, 1]
    a = np.array([[1.0, 1, 0, -1]]) if is_tied else np.zeros((0, 4))
    low, high = np.zeros(4), 1.1 * start.max(axis=0)
    coefficients = np.array([[0, 1.0, 0, 0.5], [1, 0, 1.0, 0]])[:n_sums]
    sums = as_sums(coefficients, coefficients @ start.sum(axis=0) * [1.3, 0.8][:n_sums])
    ranges = np.ptp(start, axis=0)
    keeps = set_of(start, low=low, high=high, equalities=linear(a, 0, 0))
    rows = project_to_totals(start, sums, keeps)
    assert sums.share_missed(rows).max() <= 1e-11
    weights = chi_square(start, ranges)
    cost = (((rows - start) ** 2) / (2 * weights)).sum()
    least = slsqp(start, weights, sums, low, high, a)
    assert cost <= least * (1 + 1e-6)


def test_sums_without_bounds_agree_with_the_closed_form_of_calibration():
    # Deville and Sarndal 1992, the linear method: x = s + w T' z, one solve.
    rng = np.random.default_rng(0)
    start, t = rng.normal(size=(50, 3)), rng.normal(size=(2, 3))
    sums, ranges = as_sums(t, [3.0, -1.0]), np.ptp(start, axis=0)
    rows = project_to_totals(start, sums, set_of(start))
    weights = chi_square(start, ranges)
    z = np.linalg.solve((t * weights.sum(axis=0)) @ t.T, sums.lower - sums.of(start))
    assert_allclose(rows, start + weights * (z @ t), rtol=1e-9, atol=1e-9)


def test_totals_of_large_columns_determine_sums_of_small_columns():
    rng = np.random.default_rng(0)
    start = np.column_stack([1e5 * rng.uniform(size=40), rng.uniform(size=(40, 2))])
    start = np.column_stack([start, start[:, 0] + start[:, 1]])
    target = start.sum(axis=0) * [1.1, 1.2, 1, 1]
    target[3] = target[0] + target[1]
    sums = as_sums(np.eye(4)[[0, 3]], target[[0, 3]])
    a = np.array([[1.0, 1, 0, -1]])
    keeps = set_of(
        start, low=0.0, high=2 * start.max(axis=0), equalities=linear(a, 0, 0)
    )
    rows = project_to_totals(start, sums, keeps)
    assert_allclose(rows[:, [0, 3]].sum(axis=0), target[[0, 3]], rtol=1e-9)
    assert_allclose(rows[:, 1].sum(), target[1], rtol=1e-5)
    assert_allclose(rows @ a[0], 0, atol=1e-4)


def test_satisfied_sums_leave_rows_unchanged():
    start = random_table(0, kind="cents")
    total = start.sum(axis=0)
    sums = as_sums(np.eye(6)[[0, 4]], total[[0, 4]] * 0.9, total[[0, 4]] * 1.1)
    rows = project_to_totals(start, sums, settings(start, "cents"))
    assert_allclose(rows, start, rtol=1e-15)


@pytest.mark.parametrize("kind", STEPS)
def test_fixed_and_missing_cells_are_unchanged(kind):
    start = random_table(1, kind=kind)
    fixed = np.random.default_rng(0).random(start.shape) < 0.3
    start[::7, 1], start[::9, 4] = np.nan, np.nan
    total = np.nansum(start, axis=0)
    sums = as_sums(np.eye(6)[[2, 4]], [round(1.03 * total[2], 2), total[4] + 5])
    full = random_table(1, kind=kind)
    keeps = settings(full, kind)
    rows = project_to_totals(start, sums, keeps, fixed=fixed)
    assert_array_equal(np.isnan(rows), np.isnan(start))
    assert_array_equal(rows[fixed], start[fixed])
    assert sums.share_missed(rows).max() <= 1e-9
    there = ~np.isnan(rows).any(axis=1)
    check_rows(rows[there], full, keeps)


@pytest.mark.parametrize("seed", SEEDS)
def test_integers_by_largest_remainder_are_within_one_step(seed):
    rng = np.random.default_rng(seed)
    start = rng.poisson(20.0, size=(200, 2)).astype(float)
    total = start[:, 0].sum() + 333
    limits = {"low": 0.0, "high": 100.0}
    sums = as_sums([[1, 0]], [total])
    real = project_to_totals(start, sums, set_of(start, **limits))
    keeps = set_of(start, **limits, steps=1, precision=0)
    whole = project_to_totals(start, sums, keeps)
    assert whole[:, 0].sum() == total
    assert np.abs(whole - real).max() <= 1
    assert_array_equal(whole[:, 1], start[:, 1])


@pytest.mark.parametrize("columns", [[3, 4], [3, 5], [4, 5]])
def test_sums_of_a_total_and_a_part_are_satisfied_by_integers(columns):
    start = random_table(0, kind="cents")
    sums = as_sums(np.eye(6)[columns], start.sum(axis=0)[columns] + [7, 11])
    keeps = settings(start, "cents")
    rows = project_to_totals(start, sums, keeps)
    assert_array_equal(sums.of(rows), sums.lower)
    check_rows(rows, start, keeps)


def test_redundant_equalities_do_not_change_the_result():
    start = random_table(0)
    a, _ = EQUALITIES
    twice = linear(np.vstack([a, 3 * a[0] - a[1]]), 0, 0)
    sums = as_sums(np.eye(6)[[1, 5]], start.sum(axis=0)[[1, 5]] * [1.03, 1] + [0, 7])
    rows, again = (
        project_to_totals(start, sums, settings(start, equalities=equalities))
        for equalities in (linear(a, 0, 0), twice)
    )
    assert_allclose(again[:, :3], rows[:, :3], rtol=1e-9)


# --- infeasible totals ------------------------------------------------------------


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize(
    "coefficients, factor, message",
    [
        (
            [[1, 0, 0, 0, 0, 0]],
            [9],
            "sum of 0 .* 60 rows",
        ),
        (np.eye(6)[:3], [1, 1, 1.1], "sum of [0-5] "),
        (np.eye(6)[[3, 4, 5]], [1, 1, 2], "sum of [0-5] "),
    ],
)
def test_infeasible_sums_are_reported_with_the_reachable_range(
    kind, coefficients, factor, message
):
    start = random_table(0, kind=kind)
    total = np.asarray(coefficients) @ start.sum(axis=0) * factor
    sums = as_sums(coefficients, total)
    with pytest.raises(ValueError, match=message):
        project_to_totals(start, sums, settings(start, kind))


def test_reachable_range_of_a_sum_follows_from_the_bounds():
    start = random_table(0)
    most = 60 * start[:, 1].max()
    keeps = settings(start, orders=(), equalities=None, steps=0)
    project_to_totals(start, as_sums(np.eye(6)[1], most), keeps)
    with pytest.raises(ValueError, match=f"sum of 0 .* to {most:.7g}"):
        project_to_totals(start, as_sums(np.eye(6)[1], most * 1.0001), keeps)


def test_sums_between_multiples_of_the_resolution_are_rejected():
    start = random_table(0, kind="cents")
    sums = as_sums(np.eye(6)[4], start[:, 4].sum() + 0.5)
    with pytest.raises(ValueError, match="are 52 and 53. Request 52, or an interval"):
        project_to_totals(start, sums, settings(start, "cents"))


# --- reading ----------------------------------------------------------------------


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


def test_sums_means_and_counts_are_read():
    requested = [
        {"a": 3e5, "region": {"n": 60}},
        column_total("b", 500, mean=True),
        column_total("sex", {"f": 0.5}, rtol=0.02, mean=True),
    ]
    totals, numbers = read(requested)
    names, *ends, values, residual = totals.achieved(numbers[:100], np.arange(100))
    assert names[:2] == ("the sum of 'a'", "the mean of 'b'")
    assert_array_equal(ends, [[3e5, 500, 60, 49], [3e5, 500, 60, 51]])
    frame = households()[:100]
    assert_allclose(values[:2], [frame["a"].sum(), frame["b"].mean()])
    assert_array_equal(
        values[2:], [(frame.region == "n").sum(), (frame.sex == "f").sum()]
    )
    assert_allclose(residual[0], abs(3e5 - values[0]) / values[0])
    assert residual[2] == abs(values[2] - 60)


def test_arrays_of_many_axes_have_sums_of_cells():
    X = np.random.default_rng(0).gamma(2.0, size=(30, 2, 3))
    totals, _ = read_totals(X.sum(axis=0), 30, X)
    assert_allclose(totals.sums.of(X.reshape(30, -1)), X.sum(axis=0).ravel())


@pytest.mark.parametrize(
    "requested, message",
    [
        ({"sex": {"f": 0.5}}, r"sex='f'.* 0\.5, .*mean=True"),
        ({"region": {"x": 5}}, r"No row has region='x'.*first levels are \['"),
        ({"region": 3}, "'region' .*totals="),
        ({"d": {1: 5}}, "'d'.*categorical_features"),
    ],
)  # fmt: skip
def test_infeasible_totals_are_rejected(requested, message):
    with pytest.raises(ValueError, match=message):
        read(requested)


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
