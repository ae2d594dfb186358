"""Totals of weighted rows: contradictions, ranges, and the sum of the weights."""

from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.optimize import linprog

from sklearn_pnl.control import calibrate, column_total, rake
from sklearn_pnl.control.calibration import CalibrationError
from sklearn_pnl.geometry import RakingError

COLUMNS = {"a": 3, "b": 2, "c": 2}


def people(seed, n=60):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.integers(0, k, n) for name, k in COLUMNS.items()})


def margins_of(frame, weights, seed):
    """Return counts of two overlapping sets of columns, with omitted levels."""
    rng = np.random.default_rng(seed)
    keys = [("a",), ("b",), *combinations(COLUMNS, 2)]
    chosen = [keys[k] for k in rng.choice(len(keys), 2, replace=False)]
    margins = {}
    for key in chosen:
        counts = weights.groupby([frame[name] for name in key]).sum()
        is_named = rng.random(len(counts)) < rng.choice([1.0, 0.8])
        counts = counts[is_named]
        margins[key if len(key) > 1 else key[0]] = counts * rng.choice([1.0, 1.1])
    return {key: counts for key, counts in margins.items() if len(counts)}


def is_feasible(frame, margins):
    """Check by a linear programme whether weights have all counts."""
    rows, sums = [], []
    for key, counts in margins.items():
        names = [*key] if isinstance(key, tuple) else [key]
        levels = [*frame[names].itertuples(index=False, name=None)]
        for level, count in counts.items():
            level = level if isinstance(level, tuple) else (level,)
            rows.append([row == level for row in levels])
            sums.append(count)
    found = linprog(np.zeros(len(frame)), A_eq=np.array(rows, float), b_eq=sums)
    return found.status == 0


@pytest.mark.parametrize("seed", range(40))
def test_margins_contradict_only_if_a_linear_programme_is_infeasible(seed):
    frame = people(seed)
    weights = pd.Series(np.random.default_rng(seed).gamma(2.0, size=len(frame)))
    margins = margins_of(frame, weights, seed)
    report = calibrate(frame, margins, strict=False, return_report=True)[1]
    is_contradiction = any("over the same rows" in reason for reason in report.reasons)
    # Two margins without zero cells have no other contradiction.
    assert is_contradiction == (not is_feasible(frame, margins))
    assert report.converged == (not is_contradiction)


def test_different_sums_are_named_with_both_numbers():
    frame = people(0)
    margins = {"a": {0: 100, 1: 50, 2: 50}, "b": {0: 120, 1: 90}}
    message = "'a' sum to 200, .* 'b' sum to 210, over the same rows"
    with pytest.raises(CalibrationError, match=message) as caught:
        calibrate(frame, margins)
    assert caught.value.report.n_iter == 0
    table = frame.value_counts().astype(float)
    with pytest.raises(RakingError, match=message):
        rake(table, margins)
    soft = {"a": column_total("a", margins["a"], rtol=0.05), "b": margins["b"]}
    assert calibrate(frame, soft).sum() == pytest.approx(210)
    # The sum over the other levels is free.
    margins["a"].pop(2)
    assert calibrate(frame, margins).sum() == pytest.approx(210)


def test_different_sums_of_a_common_level_are_named():
    frame = people(1)
    pairs = {(a, b): 10.0 for a in range(3) for b in range(2)}
    margins = {"a": {0: 20, 1: 20, 2: 25}, ("a", "b"): pairs}
    message = r"For a=2, the counts of 'a' sum to 25, .*\('a', 'b'\) sum to 20"
    with pytest.raises(CalibrationError, match=message):
        calibrate(frame, margins)


def test_rows_without_design_weight_do_not_count_as_common_rows():
    frame = pd.DataFrame({"a": [0, 0, 1, 1, 2], "b": [0, 1, 0, 1, 0]})
    margins = {"a": {0: 5, 1: 5}, "b": {0: 6, 1: 6}}
    assert calibrate(frame, margins).sum() == pytest.approx(12)
    with pytest.raises(CalibrationError, match="sum to 10, .* sum to 12"):
        calibrate(frame, margins, design_weights=[1, 1, 1, 1, 0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bounds", [(0, np.inf), (0.2, 4), (0.2, np.inf)])
def test_shares_and_means_keep_the_sum_of_the_design_weights(seed, bounds):
    frame, rng = people(seed, 300), np.random.default_rng(seed)
    frame["age"] = rng.integers(18, 90, len(frame))
    design = rng.gamma(5.0, 20.0, len(frame))
    totals = [
        column_total("a", {0: 0.4, 1: 0.35, 2: 0.25}, mean=True),
        column_total("b", {0: 0.6}, mean=True),
        column_total("age", 1.02 * frame["age"].mean(), mean=True),
    ]
    for some in (totals, totals[:2], totals[1:2], totals[2:]):
        weights, report = calibrate(
            frame, some, design_weights=design, bounds=bounds, return_report=True
        )
        assert weights.sum() == pytest.approx(design.sum(), rel=1e-9)
        assert len(report.names) == sum(
            len(total.lower) if total.by_level else 1 for total in some
        )
        # Requesting the number of rows as a further total changes nothing.
        frame["one"] = 1.0
        sized = [*some, column_total("one", design.sum())]
        expected = calibrate(frame, sized, design_weights=design, bounds=bounds)
        np.testing.assert_allclose(weights, expected, rtol=1e-6)
    # A count or a sum determines the sum of the weights.
    sized = calibrate(frame, [totals[1], {"a": {0: 5, 1: 6, 2: 7}}])
    assert sized.sum() == pytest.approx(18)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bounds", [(0.5, 2.0), (0.5, np.inf), (0.0, 2.0)])
def test_range_of_means_agrees_with_a_linear_programme(seed, bounds):
    rng = np.random.default_rng(seed)
    x, design = rng.normal(size=12), rng.gamma(2.0, size=12)
    total, ends = design.sum(), []
    box = [tuple(b * d if np.isfinite(b) else None for b in bounds) for d in design]
    for sign in (1, -1):
        found = linprog(sign * x, A_eq=np.ones((1, 12)), b_eq=[total], bounds=box)
        ends.append(sign * found.fun / total)
    keywords = {"design_weights": design, "bounds": bounds}
    for end, inwards in zip(ends, (1e-3, -1e-3), strict=True):
        request = column_total(0, end + inwards, mean=True)
        weights = calibrate(x[:, None], request, **keywords)
        assert weights @ x / total == pytest.approx(end + inwards)
        with pytest.raises(CalibrationError, match="the mean of x0"):
            calibrate(x[:, None], column_total(0, end - inwards, mean=True), **keywords)


@pytest.mark.parametrize("bounds, sums", [((0, 0.5), "0 to 1"), ((2, 3), "4 to 6")])
def test_bounds_that_exclude_the_design_weights_exclude_means(bounds, sums):
    request = column_total(0, 1.5, mean=True)
    with pytest.raises(CalibrationError, match=f"only sum to {sums}[.].* include 1"):
        calibrate([[1.0], [2.0]], request, bounds=bounds)


@pytest.mark.parametrize("n_zones", [40, 200])
def test_many_counts_agree_with_proportional_fitting(n_zones):
    rng = np.random.default_rng(n_zones)
    n = 60 * n_zones
    frame = pd.DataFrame({
        "zone": rng.integers(0, n_zones, n), "sex": rng.integers(0, 2, n),
        "age": rng.integers(0, 6, n),
    })  # fmt: skip
    census = frame.sample(n, replace=True, random_state=0)
    pairs = [*combinations(frame.columns, 2)]
    counts = {pair: census.groupby([*pair]).size() for pair in pairs}
    weights = calibrate(frame, counts)
    fitted = np.ones(n)
    for _ in range(400):
        for pair in pairs:
            groups = frame.groupby([*pair]).ngroup()
            present = frame.groupby([*pair]).size().index
            wanted = counts[pair].reindex(present, fill_value=0).to_numpy()
            sums = np.bincount(groups, fitted)
            fitted *= (wanted / np.where(sums > 0, sums, 1))[groups]
    np.testing.assert_allclose(weights, fitted, rtol=1e-5, atol=1e-7)


SEEDS = [0, 1, 2]


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


# --- infeasible totals ------------------------------------------------------------


def random_problem(rng):
    """Draw a small sample, its bounds, and totals, some of which are infeasible."""
    n, c = rng.integers(3, 12), rng.integers(1, 5)
    x = np.round(rng.normal(size=(n, c)) * rng.choice([0, 1, 1], size=(n, c)), 2)
    x[:, rng.random(c) < 0.4] = rng.integers(0, 2, size=(n, 1))
    design = rng.gamma(2.0, size=n)
    bounds = [(0, np.inf), (0.5, 2.0), (0, 1.5)][rng.integers(3)]
    requested = (design * rng.gamma(1.0, size=n)) @ x + rng.choice(
        [0, 0, 3]
    ) * rng.normal(size=c)
    return x, design, bounds, requested


def test_largest_residual_of_contradictory_margins_is_named():
    frame, *_ = sample(0)
    by_sex = dict.fromkeys(product(["north", "south", "west"], "fm"), 10.0)
    requested = {
        "region": {"north": 20, "south": 25, "west": 20},
        ("region", "sex"): by_sex,
    }
    missed = "region='south'.* rtol="
    with pytest.raises(ValueError, match=missed):
        calibrate(frame, requested)
    requested["region"] = column_total("region", requested["region"], rtol=0.25)
    weights = calibrate(frame, requested)
    assert weights[frame["region"] == "south"].sum() == pytest.approx(20)


@pytest.mark.parametrize("past", [1e-8, 1e-7, 1e-5, 1e-3])
def test_means_slightly_out_of_reach_are_rejected_by_name(past):
    frame = sample(0)[0]
    most = frame["income"].max()
    requested = column_total("income", most * (1 + past), mean=True)
    with pytest.raises(CalibrationError, match="'income'"):
        calibrate(frame, requested)


@pytest.mark.parametrize("seed", SEEDS)
def test_means_at_the_end_of_a_range_are_satisfied(seed):
    # At the end of the range, all weights are at a bound, which no finite multiplier
    # expresses.
    frame, design = sample(seed)[:2]
    income, north = frame["income"], frame["region"] == "north"
    largest = column_total("income", income.max(), mean=True)
    weights, report = calibrate(
        frame, largest, design_weights=design, return_report=True
    )
    np.testing.assert_array_equal(weights > 0, income == income.max())
    ends = np.where(income > income.median(), 2 * design, design / 2)
    centred = pd.DataFrame({"income": income - income.median()})
    total = {"income": float(ends @ centred["income"])}
    weights = calibrate(centred, total, design_weights=design, bounds=(0.5, 2))
    np.testing.assert_allclose(weights, ends, rtol=1e-9)
    none = {"region": {"north": 0}, "income": float(income.sum())}
    weights, report = calibrate(frame, none, design_weights=design, return_report=True)
    np.testing.assert_array_equal(weights == 0, north)
    assert report.residual.max() <= 1e-9


@pytest.mark.parametrize("power", [-9, 9])
@pytest.mark.parametrize("seed", SEEDS)
def test_residuals_of_small_and_large_counts_are_relative(seed, power):
    # The request for one level is nearly zero, or nearly the total.
    frame, design, totals, *_ = sample(seed)
    counts = totals["region"] * [10.0**power, 1, 1]
    requested = {"region": counts, "income": column_total("income", lower=0)}
    weights, report = calibrate(
        frame, requested, design_weights=design, return_report=True
    )
    assert report.residual.max() <= 1e-9
    found = pd.Series(weights).groupby(frame["region"]).sum()
    np.testing.assert_allclose(found, counts, rtol=2e-9)


# --- issues of other packages -----------------------------------------------------


def test_bounds_hold_or_an_error_is_raised():
    # icarus 10: weights outside their bounds, for infeasible totals.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"sexe": rng.choice([1, 2], 23), "salaire": rng.gamma(2, 900, 23)}
    )
    totals = {"sexe": {1: 140, 2: 90}}
    design = np.full(23, 10.0)
    with pytest.raises(CalibrationError, match="weights within bounds can only give"):
        calibrate(frame, totals, design_weights=design, bounds=(3, 38))
    # Wider bounds do not help if no weights satisfy the total.
    with pytest.raises(CalibrationError, match=r"to [0-9.]+\. Change the total\.$"):
        calibrate(frame, column_total("salaire", 1e6, mean=True), bounds=(0.3, 3.8))
    weights = calibrate(frame, totals, design_weights=design, bounds=(0.3, 3.8))
    assert 3 <= weights.min() and weights.max() <= 38
    assert weights.sum() == pytest.approx(230)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("ends", [{"equal": 200}, {"lower": 200}, {"upper": 1}])
def test_means_out_of_reach_are_not_satisfied_by_zero_weights(ends, integer):
    frame = sample(0)[0]
    least, most = frame["age"].min(), frame["age"].max()
    requested = column_total("age", mean=True, **ends)
    reach = f"'age' .* {least} to {most}[.]"
    with pytest.raises(CalibrationError, match=reach) as caught:
        calibrate(frame, requested, integer=integer)
    assert not caught.value.report.converged


@pytest.mark.parametrize("seed", range(30))
def test_totals_are_rejected_only_if_a_linear_programme_is_infeasible(seed):
    x, design, bounds, requested = random_problem(np.random.default_rng(seed))
    low, high = bounds
    box = [(low * d, None if np.isinf(high) else high * d) for d in design]
    exists = linprog(np.zeros(len(x)), A_eq=x.T, b_eq=requested, bounds=box).status == 0
    weights, report = calibrate(
        x,
        requested,
        design_weights=design,
        bounds=bounds,
        strict=False,
        return_report=True,
    )
    if not exists:
        assert not report.converged and report.reasons[0]
    elif report.converged:
        np.testing.assert_allclose(weights @ x, requested, atol=1e-7)
    else:
        # At the edge of the feasible set, weights converge to 0 ever more slowly.
        assert report.residual.max() < 1e-4


@pytest.mark.parametrize(
    "shares",
    [{"f": 0.7, "m": 0.6}, {"f": 0.4, "m": 0.4}, {"f": 55, "m": 45}, {"f": 1.0}],
)
def test_infeasible_shares_are_rejected(shares):
    with pytest.raises(ValueError, match=r"\bsex\b"):
        calibrate(sample(0)[0], column_total("sex", shares, mean=True))


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
def test_rows_with_missing_category_keep_their_weight_or_are_named(container):
    sex = [*"fmfmffmm", None, "f", None]
    frame = container({"sex": sex})
    requested = column_total("sex", {"f": 0.5, "m": 0.5}, mean=True)
    with pytest.raises(ValueError, match="2 rows .* row 8"):
        calibrate(frame, requested)
    # Rows without a category keep the remaining share.
    requested = column_total("sex", {"f": 4.5 / 11, "m": 4.5 / 11}, mean=True)
    weights = calibrate(frame, requested)
    assert weights[[8, 10]].sum() / weights.sum() == pytest.approx(2 / 11)
    # Rows without design weight need no share.
    design = np.array([0.0 if answer is None else 1.0 for answer in sex])
    requested = column_total("sex", {"f": 0.5, "m": 0.5}, mean=True)
    assert calibrate(frame, requested, design_weights=design)[8] == 0
    with pytest.raises(ValueError):
        calibrate(frame, {"sex": {"f": 3, None: 5}})
    weights = calibrate(frame, {"sex": {"f": 10}})
    np.testing.assert_allclose(weights[[1, 8, 10]], 1)


@pytest.mark.parametrize("shares, message", [
    ({"f": 0.3, "m": 0.25}, r"'sex' .* 0\.55, .* 1[.]"),
    ({"f": 0.7, "m": 0.5}, r"'sex' .* 1\.2, .* less[.]"),
])  # fmt: skip
def test_shares_that_do_not_sum_to_1_are_rejected_with_their_sum(shares, message):
    frame = pd.DataFrame({"sex": [*"fmfm"]})
    with pytest.raises(ValueError, match=message):
        calibrate(frame, column_total("sex", shares, mean=True))


def test_means_at_the_end_of_a_range_are_rejected_with_bounds():
    frame = pd.DataFrame({"g": [*"abc"] * 20, "x": np.arange(60.0)})
    for totals in (
        [column_total("x", 59.0, mean=True)],
        {"g": column_total("g", {"a": 0.5, "b": 0.5, "c": 0}, mean=True)},
        [column_total("x", upper=0.0, mean=True)],
    ):
        with pytest.raises(CalibrationError, match=r"'x'|\bg="):
            calibrate(frame, totals, bounds=(0.5, 2))


def test_the_mean_of_a_constant_column_is_that_constant():
    frame = pd.DataFrame({"rate": [21.3] * 10, "y": range(10)})
    requested = [
        column_total("rate", frame.rate.mean(), mean=True),
        column_total("y", 50),
    ]
    assert calibrate(frame, requested) @ frame.y == pytest.approx(50)


@pytest.mark.parametrize("bounds", [(0.5, 2.0), (0.0, 2.0)])
def test_a_mean_that_bounds_exclude_is_named_with_its_range(bounds):
    x = np.array([460.0, 3000.0, 9000.0])
    # The weights sum to 3. At most one weight of an extreme is inside its bounds.
    extremes = [
        (a, b, 3 - a - b)
        for a, b in product(bounds, repeat=2)
        if bounds[0] <= 3 - a - b <= bounds[1]
    ]
    means = [
        np.dot(w, x[[*order]]) / 3 for w in extremes for order in permutations(range(3))
    ]
    with pytest.raises(CalibrationError, match="mean of x0") as error:
        calibrate(x[:, None], column_total(0, 459, mean=True), bounds=bounds)
    assert "non-negative weights can only give 460 to 9000" in str(error.value)
    with pytest.raises(CalibrationError, match="mean of x0") as error:
        calibrate(x[:, None], column_total(0, 900, mean=True), bounds=bounds)
    assert f"can only give {min(means):.7g} to {max(means):.7g}" in str(error.value)
    for mean in (min(means) * 1.01, max(means) * 0.99):
        request = column_total(0, mean, mean=True)
        weights = calibrate(x[:, None], request, bounds=bounds)
        np.testing.assert_allclose(weights @ x / weights.sum(), mean)
