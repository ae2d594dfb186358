"""Totals of rows: reading, requests from estimators, and projections onto sums."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from _sets import linear, set_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.columns.rounding import multiples
from sklearn_pnl.control import ColumnConstraint, adjust, calibrate, column_total
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
        "low": rows.min(axis=0), "high": rows.max(axis=0), "inequalities": ORDERS,
        "equalities": linear(EQUALITIES[0], 0, 0), "steps": STEPS[kind],
    }  # fmt: skip
    keeps |= others
    precision = np.where(np.asarray(keeps["steps"]) == 1, 0, 1e-16)
    return set_of(rows, **keeps, precision=precision)


def check_rows(rows, start, keeps):
    assert np.all(rows >= keeps.columns.low) and np.all(rows <= keeps.columns.high)
    gap = np.abs(keeps.relations.equalities.residual(rows))
    assert gap.max(initial=0) <= 1e-11 * np.abs(start).max()
    first, second = keeps.relations.inequalities.T
    assert np.all(rows[:, first] <= rows[:, second])
    on_steps = np.flatnonzero(keeps.columns.steps)
    steps, values = keeps.columns.steps[on_steps], rows[:, on_steps]
    assert_array_equal(values, multiples(np.rint(values / steps), steps))


# --- projection -------------------------------------------------------------------


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
    keeps = settings(start, inequalities=(), equalities=None, steps=0)
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


def sample(seed, n=60):
    """Draw a sample, its design weights, and totals that other weights have."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "region": rng.choice(["north", "south", "west"], n),
        "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(18, 90, n),
        "income": rng.lognormal(7, 1, n),
    })  # fmt: skip
    design, true = rng.gamma(4.0, 5.0, size=(2, n))
    counts = pd.Series(true).groupby(frame["region"]).sum()
    crossed = pd.Series(true).groupby([frame["region"], frame["sex"]]).sum()
    totals = {
        "region": counts,
        "income": float(true @ frame["income"]),
        "age": column_total("age", true @ frame["age"] / true.sum(), mean=True),
    }
    return frame, design, totals, crossed, true


def test_columns_can_be_given_by_index_or_name():
    frame, *_ = sample(0)
    np.testing.assert_array_equal(
        calibrate(frame, {2: 1e5}), calibrate(frame, {"age": 1e5})
    )
    numbered = frame[["income", "age"]].set_axis([0, 1], axis=1)
    np.testing.assert_array_equal(
        calibrate(numbered, {1: 1e5}), calibrate(frame, {"age": 1e5})
    )
    # Ambiguous keys of columns are rejected, as in all functions.
    with pytest.raises(ValueError):
        calibrate(numbered[[1, 0]], {1: 1e5})


@pytest.mark.parametrize(
    "totals, message",
    [
        ({"rgion": 3}, "'rgion'"),
        ({"region": 3}, "'region'"),
        ({"region": {"nort": 3}}, "region='nort'"),
        ({"sex": {"f": None}}, "'f': None"),
        (
            {"sex": pd.Series({"f": 3, "m": pd.NA}, dtype="Int64")},
            "'m': <NA>",
        ),
        ({"region": {np.nan: 3}}, r"'region' .*\(nan,\)"),
        ({"sex": pd.Series([1, 2, 3], ["f", "m", "f"])}, "totals .*'f'"),
        *(
            (totals, None)
            for totals in (
                {}, {9: 3}, {("region", "sex"): {"north": 3}}, {"age": "many"},
                {"age": np.nan}, {"age": np.inf}, [1.0, 2.0], {"region": {}},
            )
        ),
    ],
)  # fmt: skip
def test_invalid_totals_are_named(totals, message):
    with pytest.raises(ValueError, match=message):
        calibrate(sample(0)[0], totals)


def test_missing_numbers_are_named():
    frame = sample(0)[0].astype({"age": float})
    frame.loc[7, "age"] = np.nan
    with pytest.raises(ValueError, match="'age' .* row 7"):
        calibrate(frame, {"age": 3})


@pytest.mark.parametrize(
    "of, equal, keywords",
    [
        ("age", 3, {"rtol": -1}), ("age", 3, {"rtol": "all"}), ("age", 3, {"rtol": 5}),
        ({"age": np.nan}, 3, {}), ({"age": "x"}, 3, {}), ({}, 3, {}),
        ({"age": 1}, {"a": 3}, {}), (3500, "age", {}), ("age", {"a": "many"}, {}),
        ("age", pd.DataFrame({"n": [1.0, 2.0]}), {}), ("age", {"a": np.nan}, {}),
        ("age", None, {"lower": 3, "upper": 2}), ("age", 3, {"lower": 2}),
        ("age", {"a": 3}, {"upper": {"a": 4}}),
    ],
)  # fmt: skip
def test_invalid_arguments_of_column_total_are_rejected(of, equal, keywords):
    with pytest.raises(ValueError):
        column_total(of, equal, **keywords)


@pytest.mark.parametrize("key", [("region", "sex"), ("sex", "region")])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_crosstab_requests_counts_of_combinations(key, is_named):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"region": rng.choice(list("abc"), 90), "sex": rng.choice(2, 90)})
    wanted = pd.crosstab(X[key[0]], X[key[1]])
    wanted *= 1 + np.arange(wanted.shape[1])
    given = wanted if is_named else wanted.rename_axis(index=None, columns=None)
    weights = calibrate(X, {key: given})
    found = pd.crosstab(X[key[0]], X[key[1]], weights, aggfunc="sum")
    np.testing.assert_allclose(found, wanted)
    # Names of index levels determine their order.
    if is_named:
        np.testing.assert_allclose(calibrate(X, {key[::-1]: given}), weights)


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
def test_times_can_be_levels(container, unit):
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-02"], f"M8[{unit}]")
    frame = container({"day": days, "spent": [1.0, 2.0, 2.0]})
    first, second = pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")
    for of_type in (pd.Timestamp, pd.Timestamp.to_pydatetime):
        requested = {"day": {of_type(first): 3, of_type(second): 8}}
        np.testing.assert_allclose(calibrate(frame, requested), [3, 4, 4])
    for requested in (3, pd.Timedelta("3D")):
        with pytest.raises(ValueError, match="'day'"):
            calibrate(frame, {"day": requested})


@pytest.mark.parametrize("kind", ["M8[ns]", "m8[ns]"])
def test_times_with_nanoseconds_are_rejected_as_levels(kind):
    frame = pd.DataFrame({"t": np.array([1, 2, 2], kind)})
    with pytest.raises(ValueError, match=r"\bt="):
        calibrate(frame, {"t": {frame["t"][0]: 3}})


@pytest.mark.parametrize("number", [np.int64, np.float32, np.float64, int, float])
def test_levels_can_be_numbers_of_any_type(number):
    x = np.array([[1, 3], [2, 4], [1, 5]])
    requested = {0: {number(1): 5, number(2): 6}}
    np.testing.assert_allclose(calibrate(x, requested), [2.5, 6, 2.5])


def test_missing_values_are_rejected_as_levels():
    frame = pd.DataFrame({"region": [*"NSNS", None]})
    for level in (None, np.nan):
        with pytest.raises(ValueError, match=r"'region' .*\((nan|None),\)"):
            calibrate(frame, {"region": {"N": 2, level: 0}})


def test_mean_must_be_a_boolean():
    with pytest.raises(ValueError, match="'age' .*-inf to inf"):
        column_total("age", mean=45)


def test_an_array_of_totals_is_matched_by_position():
    X = pd.DataFrame(np.arange(1, 13.0).reshape(6, 2), columns=["b", "a"])
    weights, report = calibrate(X, [40.0, 47.0], return_report=True)
    assert weights @ X.to_numpy() == pytest.approx([40, 47])
    assert "the sum of 'b'" in str(report)
    rows = adjust(X, totals=[40.0, 47.0], equalities=None)
    assert rows.to_numpy().sum(axis=0) == pytest.approx([40, 47])


def test_unknown_times_are_rejected_even_for_a_count_of_zero():
    days = pd.to_datetime(["2024-01-01", "2024-01-02"] * 6)
    frame = pd.DataFrame({"day": days, "x": np.arange(12.0)})
    for requested in (
        column_total("day", upper={days[0].date(): 2}),
        {days[0].date(): 0},
    ):
        with pytest.raises(ValueError, match=r"\bday="):
            calibrate(frame, {"day": requested})


def test_an_array_of_totals_requires_unambiguous_column_names():
    rows, wanted = np.arange(1, 13.0).reshape(6, 2), [40.0, 47.0]
    expected = calibrate(rows, wanted)
    for names in (["a", "b"], [0, 1], [2.5, 3.5], [("a", 0), ("a", 1)]):
        X = pd.DataFrame(rows, columns=names)
        np.testing.assert_allclose(calibrate(X, wanted), expected)
    for names in (["a", "a"], [1, 2]):
        X = pd.DataFrame(rows, columns=names)
        with pytest.raises(ValueError, match=r"totals .*\[0, 1\]"):
            calibrate(X, wanted)


NUMBERS = ["wage", "rent", "net", "adults", "kids", "persons", "price"]
WHOLE = ["adults", "kids", "persons"]
N = 60


def table(seed, n=120):
    """Make households with additive amounts and persons, cents and categories."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["n", "s", "w"], n, p=rng.dirichlet([5, 3, 2]))
    adults, kids = rng.integers(1, 4, n), rng.poisson(0.8, n)
    wage = rng.lognormal(7.5, 0.5, n) * adults
    rent = wage * rng.uniform(0.1, 0.4, n)
    return pd.DataFrame(
        {
            "region": region,
            "sex": rng.choice(["f", "m"], n),
            "wage": wage,
            "rent": rent,
            "net": wage - rent,
            "adults": adults,
            "kids": kids,
            "persons": adults + kids,
            "price": np.round(rng.gamma(3, 10, n), 2),
        }
    )


def fitted(seed):
    X = table(seed)
    return X, PNLAugmenter(categorical_features="auto").fit(X)


def planted(rng, X):
    """Return totals of a weighted sample of training rows, and the requests."""
    z = (X["wage"] - X["wage"].mean()) / X["wage"].std()
    weights = np.exp(rng.normal(scale=0.3) * z)
    rows = X.sample(
        N, replace=True, random_state=int(rng.integers(99)), weights=weights
    )
    sums = {
        str(name): rows[name].sum()
        for name in rng.choice(NUMBERS, rng.integers(1, 4), replace=False)
    }
    counts = {"region": rows["region"].value_counts().to_dict()}
    if rng.random() < 0.5:
        counts = {("region", "sex"): rows[["region", "sex"]].value_counts().to_dict()}
    return sums, counts


@pytest.mark.parametrize("seed", range(8))
def test_feasible_totals_are_satisfied_and_relations_preserved(seed):
    (X, augmenter), rng = fitted(seed), np.random.default_rng([seed, 5])
    sums, counts = planted(rng, X)
    rows = augmenter.sample(N, random_state=seed, totals=[sums, counts])
    assert len(rows) == N and (rows.dtypes == X.dtypes).all()
    for name, total in sums.items():
        room = 0 if name in WHOLE else 1e-9 * rows[name].abs().sum()
        assert abs(rows[name].sum() - total) <= room
    ((key, wanted),) = counts.items()
    keys = list(key) if isinstance(key, tuple) else [key]
    found = rows[keys].value_counts().to_dict()
    assert {k if len(keys) > 1 else k[0]: v for k, v in found.items()} == wanted
    gap = (rows["wage"] - rows["rent"] - rows["net"]).abs().max()
    assert gap <= 1e-9 * np.ptp(X["wage"])
    assert (rows["persons"] == rows["adults"] + rows["kids"]).all()


@pytest.mark.parametrize(
    ("totals", "message"),
    [
        ({"wage": 1e9}, "'wage' .* 1000000000, .* 60 rows"),
        ({"wage": 2e5, "rent": 5e4, "net": 1e5}, r"'net' .* 150000\."),
        ({"region": {"n": 40, "s": 40}}, "'region' .* 80, .* 60 "),
        ({"region": {"east": 3}}, "region='east'"),
        ({"sex": {"f": 30.5}}, "the count of sex='f'"),
        ({"persons": 120.5}, "'persons' .* 120 and 121"),
    ],
)
def test_infeasible_totals_are_rejected_by_name(totals, message):
    _, augmenter = fitted(0)
    with pytest.raises(ValueError, match=message):
        augmenter.sample(N, random_state=0, totals=totals)


@pytest.mark.parametrize("wanted, nearest", [(37, [35, 40]), (203, [60])])
def test_values_that_a_message_recommends_are_feasible(wanted, nearest):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(40), rng.choice([1.0, 6.0], 40)])
    augmenter = PNLAugmenter().fit(X)
    values = " and ".join(map(str, nearest))
    with pytest.raises(ValueError, match=f"sum of x1 .* 10 new rows (are|is) {values}"):
        augmenter.sample(10, random_state=0, totals={1: wanted})
    for value in nearest:
        rows = augmenter.sample(10, random_state=0, totals={1: value})
        assert rows[:, 1].sum() == value


def test_means_intervals_and_arrays_of_sums_are_satisfied():
    X = np.random.default_rng(0).gamma(2.0, size=(80, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    augmenter, wanted = PNLAugmenter().fit(X), 55 * X.mean(axis=0)
    rows = augmenter.sample(50, random_state=0, totals=wanted)
    np.testing.assert_allclose(rows.sum(axis=0), wanted, rtol=1e-9)
    totals = [
        column_total(0, 1.1 * X[:, 0].mean(), mean=True),
        column_total(1, lower=40 * X[:, 1].mean(), upper=45 * X[:, 1].mean()),
    ]
    rows = augmenter.sample(50, random_state=0, totals=totals)
    assert rows[:, 0].mean() == pytest.approx(totals[0].lower, rel=1e-9)
    assert totals[1].lower <= rows[:, 1].sum() * (1 + 1e-9)
    assert rows[:, 1].sum() <= totals[1].upper * (1 + 1e-9)


def test_means_are_computed_over_observed_cells():
    X = table(0).drop(columns=["net", "persons"])
    gaps = np.random.default_rng(0).random((len(X), 2)) < 0.2
    X[["wage", "rent"]] = X[["wage", "rent"]].mask(gaps)
    mean = column_total("wage", 3000, mean=True), column_total("price", 31, mean=True)
    requested = [*mean, {"rent": 50_000}]
    rows, report = (
        PNLAugmenter().fit(X).sample(N, 0, totals=requested, return_report=True)
    )
    assert rows["wage"].isna().any()
    found = rows["wage"].mean(), rows["price"].mean(), rows["rent"].sum()
    np.testing.assert_allclose(found, [3000, 31, 50_000], rtol=1e-8)
    np.testing.assert_allclose(report.achieved[:3], found, rtol=1e-12)


def test_one_seed_gives_the_same_rows():
    X, augmenter = fitted(1)
    totals = {"wage": N * X["wage"].mean(), "sex": {"f": 30, "m": 30}, "kids": 50}
    rows = augmenter.sample(N, random_state=3, totals=totals)
    again = augmenter.set_params(n_jobs=2).sample(N, random_state=3, totals=totals)
    pd.testing.assert_frame_equal(rows, again)


# --- constraints with counts, and on integers -------------------------------------


def members(n=100):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (n, 2)), columns=["member", "spouse"])
    X["income"], X["group"] = rng.gamma(2, 10, n), np.where(X.member == 1, "m", "n")
    return X


@pytest.mark.parametrize("counted", [{"member": 10}, {"group": {"m": 10}}])
@pytest.mark.parametrize("more", [{}, {"income": 500.0}])
def test_constraints_that_contradict_counts_are_rejected(counted, more):
    augmenter = PNLAugmenter().fit(members())
    requested, totals = ColumnConstraint("member", equal=1), counted | more
    with pytest.raises(ValueError, match="10, .* 25"):
        augmenter.sample(25, 0, constraints=requested, totals=totals)
    # A constraint that the counted rows satisfy does not contradict the counts.
    requested = ColumnConstraint("income", lower=5)
    rows = augmenter.sample(25, 0, constraints=requested, totals=totals)
    assert rows["member"].sum() == 10
    assert ((rows["group"] == "m") == (rows["member"] == 1)).all()


def test_base_rows_are_near_the_values_of_each_row_next_to_counts():
    rng = np.random.default_rng(0)
    kind = rng.choice(["light", "heavy"], 400)
    weight = np.where(kind == "heavy", 5000.0, 3500.0) + rng.normal(0, 300, 400)
    length = weight / 20 + rng.normal(0, 5, 400)
    X = pd.DataFrame({"kind": kind, "weight": weight, "length": length})
    augmenter = PNLAugmenter().fit(X)
    values = np.repeat([3500.0, 5000.0], [300, 300])
    for n_heavy in (300, 200):
        new = augmenter.sample(
            600, 0, constraints=ColumnConstraint("weight", equal=values),
            totals={"kind": {"heavy": n_heavy}},
        )  # fmt: skip
        is_heavy = (new["kind"] == "heavy").to_numpy()
        assert is_heavy.sum() == n_heavy
        assert is_heavy[300:].sum() > 0.95 * n_heavy
        assert_allclose(new["weight"], values)


@pytest.mark.parametrize("requested", [{"a": 1, "b": 1}, {"n_flags": 1}, {"price": 1}])
def test_totals_of_binary_columns_are_satisfied_by_feasible_base_rows(requested):
    rng = np.random.default_rng(9)
    k = rng.integers(0, 3, 500)
    flags = np.eye(3, dtype=int)[k]
    flags[:7] = [[1, 1, 0]] * 4 + [[0, 0, 0]] * 3
    X = pd.DataFrame(flags, columns=list("abc")).assign(x=rng.normal(k * 3, 1))
    X["city"] = np.array([*"abc"])[k]
    X["price"] = 1.99 * X["a"] + 0.49 * X["b"] + 3.0 * X["c"]
    one = ColumnConstraint({"a": 1, "b": 1, "c": 1}, equal=1)
    X["n_flags"] = X["a"] + X["b"] + X["c"]
    total = {"a": 1, "b": 1}
    value = {"a": 250, "n_flags": 300, "price": 1.99 * 150 + 0.49 * 100 + 150}
    total = column_total(requested, value[next(iter(requested))])
    augmenter, counts = PNLAugmenter().fit(X), {"a": 150, "c": 50}
    new = augmenter.sample(300, 0, constraints=one, totals=[total, counts])
    assert (new[[*"abc"]].sum(axis=1) == 1).all()
    assert new["a"].sum() == 150 and new["c"].sum() == 50
    found = sum(a * new[name] for name, a in requested.items())
    assert found.sum() == pytest.approx(total.lower)


@pytest.mark.parametrize("requested", [{"equal": 3.5}, {"lower": 3.2, "upper": 3.8}])
@pytest.mark.parametrize("column", ["adults", "sex"])
def test_constraints_without_an_integer_are_rejected(requested, column):
    X = table(0).assign(sex=lambda X: 3 + (X["sex"] == "f"))
    requested = ColumnConstraint(column, **requested)
    augmenter = PNLAugmenter(equalities=None).fit(X.assign(adults=X["adults"] * 2))
    with pytest.raises(ValueError, match=f"{column} .* 3 and 4:"):
        augmenter.sample(5, 0, constraints=requested)


def test_contradictory_constraints_on_cents_are_rejected():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.gamma(2, [8000, 800], (60, 2)).round(2), columns=["a", "b"])
    X["total"] = (X["a"] + X["b"]).round(2)
    requested = [
        ColumnConstraint("total", equal=X["total"][:4]),
        ColumnConstraint({"a": 1, "total": 1}, equal=20_000),
    ]
    with pytest.raises(ValueError, match="total = a . b and total = "):
        PNLAugmenter().fit(X).sample(4, 0, constraints=requested)


@pytest.mark.parametrize("column", ["took", "day"])
def test_sums_of_times_are_rejected(column):
    hours = pd.to_timedelta(np.arange(60) % 9, unit="h")
    X = pd.DataFrame({"took": hours, "day": pd.Timestamp("2024") + hours, "x": 1.5})
    with pytest.raises(ValueError, match=f"sum of '{column}'"):
        PNLAugmenter().fit(X).sample(9, 0, totals={column: 45})
    with pytest.raises(ValueError, match=f"sum of '{column}'"):
        adjust(X, totals={column: 45})


@pytest.mark.parametrize("seed", range(4))
def test_totals_preserve_orders_and_resolutions_of_other_columns(seed):
    rng = np.random.default_rng(seed)
    count = rng.poisson(3, 40).astype(float)
    amount = count + rng.gamma(1.0, size=40)
    parts = rng.integers(1, 500, (40, 2)) / 100
    X = np.column_stack([count, amount, parts, parts.sum(axis=1).round(2)])
    totals = {1: 1.03 * X[:30, 1].sum(), 2: round(X[:30, 2].sum(), 2)}
    rows = PNLAugmenter().fit(X).sample(30, random_state=seed, totals=totals)
    assert_allclose(rows[:, [1, 2]].sum(axis=0), [*totals.values()], rtol=1e-9)
    assert (rows[:, 0] == np.rint(rows[:, 0])).all()
    assert (rows[:, 0] <= rows[:, 1]).all()
    assert_allclose(rows[:, 2:], rows[:, 2:].round(2), rtol=1e-12)
    assert_allclose(rows[:, 2] + rows[:, 3], rows[:, 4], rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_orders_with_missing_cells_do_not_affect_totals_of_integers(seed):
    rng = np.random.default_rng(seed)
    first = rng.poisson(20, 80)
    second = (first + rng.poisson(5, 80)).astype(float)
    second[rng.random(80) < 0.3] = np.nan
    X = pd.DataFrame({"first": first, "second": second})
    total = int(1.05 * 40 * first.mean())
    rows = PNLAugmenter().fit(X).sample(40, seed, totals={"first": total})
    assert rows["first"].sum() == total
    assert not (rows["first"] > rows["second"]).any()
    assert rows["first"].min() >= first.min()


def test_report_contains_the_effective_number_of_parents():
    X, augmenter = fitted(0)
    requested = ColumnConstraint("wage", lower=float(X["wage"].nlargest(12).min()))
    given = {"constraints": requested, "return_report": True, "return_parents": True}
    _, parents, report = augmenter.sample(2000, 0, **given)
    counts = np.unique(parents[:, 0], return_counts=True)[1]
    assert report.effective_parents == pytest.approx(2000**2 / (counts**2).sum())
    assert report.effective_parents < len(X) / 2


@pytest.mark.parametrize("seed", range(4))
def test_totals_of_columns_that_depend_on_integers_are_satisfied_in_any_order(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"height": rng.integers(400, 530, 100)})
    X["centred"] = X["height"] - 462.44168
    X["ounces"] = rng.integers(80, 160, 100)
    X["grams"] = (28.35 * X["ounces"]).round(2)
    X["score"] = (0.4 * rng.integers(50, 100, 100) + 0.6 * X["ounces"]).round(1)
    planted = X.sample(60, replace=True, random_state=seed)
    names = list(rng.permutation(["centred", "grams", "score"]))
    totals = {str(name): planted[name].sum() for name in names}
    rows = PNLAugmenter().fit(X).sample(60, seed, totals=totals)
    assert_allclose(rows[names].sum(), planted[names].sum(), rtol=1e-9)
    assert_allclose(rows["height"] - rows["centred"], 462.44168, rtol=1e-9)
    assert_allclose(rows["grams"], 28.35 * rows["ounces"], rtol=1e-9)
    assert_allclose(rows["score"], rows["score"].round(1), rtol=1e-12)


@pytest.mark.parametrize("flags", [["car"], ["car", "bike"]])
@pytest.mark.parametrize("seed", range(4))
def test_values_of_flags_in_each_row_and_counts_of_another_flag_are_satisfied(
    flags, seed
):
    rng = np.random.default_rng(seed)
    mode = rng.integers(0, 4, 200)
    names = ["car", "bike", "bus", "foot"]
    X = pd.DataFrame({name: (mode == k).astype(int) for k, name in enumerate(names)})
    X["km"] = rng.gamma(2, 10, 200).round(1)
    planted = X.iloc[rng.integers(0, 200, 40)]
    values = planted[flags].sum(axis=1).to_numpy()
    rows = (
        PNLAugmenter()
        .fit(X)
        .sample(
            40,
            seed,
            constraints=ColumnConstraint(dict.fromkeys(flags, 1), equal=values),
            totals={"bus": int(planted["bus"].sum())},
        )
    )
    assert (rows[flags].sum(axis=1).to_numpy() == values).all()
    assert rows["bus"].sum() == planted["bus"].sum()
    assert (rows[names].sum(axis=1) == 1).all()
