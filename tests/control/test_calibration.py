"""Calibration of weights: theorems, comparisons with SciPy, containers."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.optimize import linprog, minimize
from scipy.sparse import coo_array, csr_array, csr_matrix

from sklearn_pnl.control import adjust, calibrate, column_total, rake
from sklearn_pnl.control.calibration import CalibrationError

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


def design_matrix(frame, totals):
    """Build the columns of the exponential form of the weights, by definition."""
    parts = [
        (frame["region"] == level).to_numpy(float) for level in totals["region"].index
    ]
    return np.column_stack([*parts, frame["income"], frame["age"]])


# --- the answer -----------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_satisfy_totals_and_are_exponential_in_the_columns(seed):
    # Deville and Sarndal 1992, case 2 (raking): w = d exp(x' lambda) with the totals
    # characterises the nearest weights.
    frame, design, totals, *_ = sample(seed)
    weights, report = calibrate(
        frame, totals, design_weights=design, return_report=True
    )
    for level, count in totals["region"].items():
        assert weights[frame["region"] == level].sum() == pytest.approx(count, rel=1e-9)
    assert weights @ frame["income"] == pytest.approx(totals["income"], rel=1e-9)
    mean = weights @ frame["age"] / weights.sum()
    assert mean == pytest.approx(totals["age"].lower, rel=1e-9)
    x = design_matrix(frame, totals)
    x[:, -1] -= totals["age"].lower
    ratio = np.log(weights / design)
    fitted = np.linalg.lstsq(x / np.abs(x).max(axis=0), ratio, rcond=None)[0]
    np.testing.assert_allclose((x / np.abs(x).max(axis=0)) @ fitted, ratio, atol=1e-8)
    assert report.converged and report.residual.max() <= 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_bounded_weights_are_clipped_exponentials(seed):
    frame, design, totals, *_ = sample(seed)
    plain = calibrate(frame, totals, design_weights=design) / design
    low, high = np.quantile(plain, [0.05, 0.95])
    weights = calibrate(frame, totals, design_weights=design, bounds=(low, high))
    ratio = weights / design
    assert ratio.min() >= low - 1e-12 and ratio.max() <= high + 1e-12
    inside = (ratio > low + 1e-9) & (ratio < high - 1e-9)
    assert not inside.all()
    x = design_matrix(frame, totals)
    x[:, -1] -= totals["age"].lower
    x /= np.abs(x).max(axis=0)
    fitted = np.linalg.lstsq(x[inside], np.log(ratio[inside]), rcond=None)[0]
    np.testing.assert_allclose(ratio, np.clip(np.exp(x @ fitted), low, high), rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_agree_with_slsqp(seed):
    rng = np.random.default_rng(seed)
    x, design = rng.normal(size=(12, 3)), rng.gamma(3.0, size=12)
    requested = (design * rng.uniform(0.8, 1.3, 12)) @ x
    found = minimize(
        lambda w: float(np.sum(w * np.log(w / design) - w + design)),
        design,
        jac=lambda w: np.log(w / design),
        constraints={
            "type": "eq",
            "fun": lambda w: w @ x - requested,
            "jac": lambda w: x.T,
        },
        bounds=[(0.7 * d, 1.5 * d) for d in design],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    got = calibrate(x, requested, design_weights=design, bounds=(0.7, 1.5))
    np.testing.assert_allclose(got, found.x, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_satisfied_totals_leave_weights_unchanged(seed):
    frame, _, totals, crossed, true = sample(seed)
    weights = calibrate(
        frame, {**totals, ("region", "sex"): crossed}, design_weights=true
    )
    np.testing.assert_allclose(weights, true, rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_of_crossed_categories_are_satisfied(seed):
    frame, design, _, crossed, _ = sample(seed)
    weights = calibrate(frame, {("region", "sex"): crossed}, design_weights=design)
    # One factor per combination: post-stratification, in closed form.
    for level, count in crossed.items():
        rows = (frame[["region", "sex"]] == list(level)).all(axis=1).to_numpy()
        expected = design[rows] * count / design[rows].sum()
        np.testing.assert_allclose(weights[rows], expected, rtol=1e-9)
    plain = {level: float(count) for level, count in crossed.items()}
    again = calibrate(frame, {("region", "sex"): plain}, design_weights=design)
    np.testing.assert_array_equal(again, weights)


def test_zero_design_weights_stay_zero():
    frame, design, totals, *_ = sample(0)
    design[::7] = 0
    weights = calibrate(frame, totals, design_weights=design)
    np.testing.assert_array_equal(weights[::7], 0)
    assert weights @ frame["income"] == pytest.approx(totals["income"], rel=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6, 1e12])
def test_totals_far_from_the_design_are_satisfied_exactly(scale):
    frame, design, totals, *_ = sample(0)
    requested = {"region": totals["region"] * scale}
    weights = calibrate(frame, requested, design_weights=design)
    for level, count in requested["region"].items():
        assert weights[frame["region"] == level].sum() == pytest.approx(count, rel=1e-9)


# --- requests ---------------------------------------------------------------------


def test_tolerances_intervals_and_sums_of_columns_are_satisfied():
    frame, design, totals, *_ = sample(1)
    wide = {level: 2.0 * c for level, c in totals["region"].items()}
    requested = [
        column_total("region", wide, rtol=0.1),
        column_total({"income": 1, "age": -30}, lower=0, upper=1e5),
        column_total("sex", {"f": 0.7}, mean=True),
    ]
    weights, report = calibrate(
        frame, requested, design_weights=design, return_report=True
    )
    for level, count in wide.items():
        # The nearest weights with a smaller sum are at the nearer bound of each
        # interval.
        reached = weights[frame["region"] == level].sum()
        assert reached >= 0.9 * count * (1 - 1e-9)
        assert reached <= 1.1 * count * (1 + 1e-9)
    requested[2] = column_total("sex", {"f": 0.7}, mean=True)
    np.testing.assert_array_equal(
        calibrate(frame, requested, design_weights=design), weights
    )
    form = weights @ (frame["income"] - 30 * frame["age"])
    assert -1e-9 <= form / 1e5 <= 1 + 1e-9
    share = weights[frame["sex"] == "f"].sum() / weights.sum()
    assert share == pytest.approx(0.7, rel=1e-9)
    assert report.missed.max() <= 1e-9 * 1e5


def test_satisfied_intervals_leave_weights_unchanged():
    frame, design, *_ = sample(0)
    total = design @ frame["income"]
    requested = {"income": column_total("income", lower=0.9 * total, upper=1.1 * total)}
    weights = calibrate(frame, requested, design_weights=design)
    np.testing.assert_allclose(weights, design, rtol=1e-12)


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_frames_of_other_libraries_are_accepted(make):
    frame, design, totals, crossed, _ = sample(0)
    plain = {"age": totals["age"], ("region", "sex"): dict(crossed)}
    expected = calibrate(frame, plain, design_weights=design)
    got = calibrate(make(frame), plain, design_weights=design)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("make", [csr_array, coo_array, csr_matrix])
def test_arrays_and_sparse_matrices_are_accepted(make):
    rng = np.random.default_rng(0)
    x = rng.gamma(1.0, size=(300, 20)) * (rng.random((300, 20)) < 0.1)
    requested = rng.gamma(4.0, 0.25, size=300) @ x
    expected = calibrate(x, requested)
    np.testing.assert_allclose(expected @ x, requested, rtol=1e-9)
    np.testing.assert_allclose(calibrate(make(x), requested), expected, rtol=1e-8)
    by_number = {j: requested[j] for j in range(20)}
    np.testing.assert_allclose(calibrate(make(x), by_number), expected, rtol=1e-8)
    counts = {0: {0: 250, float(x[x[:, 0] > 0, 0][0]): 2}}
    np.testing.assert_allclose(calibrate(make(x), counts), calibrate(x, counts))


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


# --- the report -----------------------------------------------------------------


def test_report_contains_design_effect_and_totals():
    frame, design, totals, *_ = sample(0)
    weights, report = calibrate(
        frame, totals, design_weights=design, return_report=True
    )
    # Kish 1965: n / (1 + cv^2) is the effective sample size.
    cv = weights.std() / weights.mean()
    assert report.design_effect == pytest.approx(1 + cv**2)
    assert report.effective_sample_size == pytest.approx(len(weights) / (1 + cv**2))
    table = report.to_frame()
    assert list(table.index) == list(report.names)
    assert table.loc["the sum of 'income'", "before"] == pytest.approx(
        design @ frame["income"]
    )
    assert "the count of region='north'" in str(report) and "all met" in str(report)
    assert "<pre" in report._repr_html_()
    np.testing.assert_allclose(report.ratios, weights / design)


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


@pytest.mark.parametrize(
    "keywords",
    [
        *({"bounds": bounds} for bounds in [
            (2, 1), (-1, 1), 2, "no", (np.inf, np.inf)
        ]),
        *({"design_weights": weights} for weights in [
            -np.ones(60), np.full(60, np.nan), "w", np.ones(3), np.ones((60, 2)), {},
            np.ma.masked_less(np.arange(60), 9),
        ]),
        {"tol": -1}, {"max_iter": 0},
    ],
)  # fmt: skip
def test_invalid_parameters_are_named(keywords):
    (name,) = keywords
    with pytest.raises((TypeError, ValueError), match=name):
        calibrate(sample(0)[0], {"age": 3}, **keywords)


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


@pytest.mark.parametrize("seed", SEEDS)
def test_totals_of_zero_are_satisfied(seed):
    # icarus 18: a column of both signs with the requested total 0.
    rng = np.random.default_rng(seed)
    x, design = rng.normal(size=(200, 1)), rng.gamma(2.0, size=200)
    weights = calibrate(x, [0.0], design_weights=design)
    assert abs(weights @ x[:, 0]) <= 1e-9 * (weights @ np.abs(x[:, 0]))


@pytest.mark.parametrize("seed", SEEDS)
def test_dependent_totals_are_satisfied_or_rejected(seed):
    # icarus 18: a matrix of totals without full rank.
    rng = np.random.default_rng(seed)
    x = np.eye(3)[rng.integers(3, size=200)]
    x = np.column_stack([x, x.sum(axis=1), x[:, 1] + x[:, 2], x[:, 1]])
    totals = rng.gamma(4.0, size=200) @ x
    np.testing.assert_allclose(calibrate(x, totals) @ x, totals, rtol=1e-9)
    # The message for contradictory totals names the residual of the best weights.
    with pytest.raises(CalibrationError, match="relative residual"):
        calibrate(x, totals * [1, 1, 1, 1.1, 1, 1])


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


def test_lazy_frames_are_rejected():
    with pytest.raises(TypeError):
        calibrate(pl.LazyFrame({"age": [1.0, 2.0]}), {"age": 7})


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


@pytest.mark.parametrize("shares, message", [
    ({"f": 0.3, "m": 0.25}, r"'sex' .* 0\.55, .* 1[.]"),
    ({"f": 0.7, "m": 0.5}, r"'sex' .* 1\.2, .* less[.]"),
])  # fmt: skip
def test_shares_that_do_not_sum_to_1_are_rejected_with_their_sum(shares, message):
    frame = pd.DataFrame({"sex": [*"fmfm"]})
    with pytest.raises(ValueError, match=message):
        calibrate(frame, column_total("sex", shares, mean=True))


def test_groups_of_rows_are_calibrated_with_groupby():
    frame, design, *_ = sample(2)
    weights = pd.Series(index=frame.index, dtype=float)
    for _, part in frame.groupby("region"):
        weights[part.index] = calibrate(part, {"age": 5e4})
    sums = (weights * frame["age"]).groupby(frame["region"]).sum()
    np.testing.assert_allclose(sums, 5e4)


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


def test_rake_rejects_data_frames():
    table = pd.crosstab([*"uuvvv"], [*"pqppq"])
    with pytest.raises(ValueError, match="^table "):
        rake(table, {(0,): [5.0, 7.0]})


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
