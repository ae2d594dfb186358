"""Weights of rows that meet totals: against theorems, SciPy and other containers."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.optimize import linprog, minimize
from scipy.sparse import coo_array, csr_array, csr_matrix

from sklearn_pnl import CalibrationError, PNLAugmenter, calibrate, column_total

SEEDS = [0, 1, 2]


def sample(seed, n=60):
    """A sample, its design weights, and totals that other weights have."""
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
    """Columns that the weights are an exponential of, by the definition."""
    parts = [
        (frame["region"] == level).to_numpy(float) for level in totals["region"].index
    ]
    return np.column_stack([*parts, frame["income"], frame["age"]])


# --- the answer -----------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_meet_totals_and_are_an_exponential(seed):
    # Deville and Sarndal 1992, case 2 (raking): w = d exp(x' lambda) on the totals is
    # what the nearest weights are, and nothing else is.
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
def test_bounded_weights_are_cut_exponentials(seed):
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
def test_against_slsqp(seed):
    rng = np.random.default_rng(seed)
    x, design = rng.normal(size=(12, 3)), rng.gamma(3.0, size=12)
    asked = (design * rng.uniform(0.8, 1.3, 12)) @ x
    found = minimize(
        lambda w: float(np.sum(w * np.log(w / design) - w + design)),
        design,
        jac=lambda w: np.log(w / design),
        constraints={
            "type": "eq",
            "fun": lambda w: w @ x - asked,
            "jac": lambda w: x.T,
        },
        bounds=[(0.7 * d, 1.5 * d) for d in design],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    got = calibrate(x, asked, design_weights=design, bounds=(0.7, 1.5))
    np.testing.assert_allclose(got, found.x, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_totals_that_hold_change_nothing(seed):
    frame, _, totals, crossed, true = sample(seed)
    weights = calibrate(
        frame, {**totals, ("region", "sex"): crossed}, design_weights=true
    )
    np.testing.assert_allclose(weights, true, rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_crossed_categories(seed):
    frame, design, _, crossed, _ = sample(seed)
    weights = calibrate(frame, {("region", "sex"): crossed}, design_weights=design)
    # One factor a combination: post-stratification, in closed form.
    for level, count in crossed.items():
        rows = (frame[["region", "sex"]] == list(level)).all(axis=1).to_numpy()
        expected = design[rows] * count / design[rows].sum()
        np.testing.assert_allclose(weights[rows], expected, rtol=1e-9)
    plain = {level: float(count) for level, count in crossed.items()}
    again = calibrate(frame, {("region", "sex"): plain}, design_weights=design)
    np.testing.assert_array_equal(again, weights)


def test_rows_without_design_weight_stay_so():
    frame, design, totals, *_ = sample(0)
    design[::7] = 0
    weights = calibrate(frame, totals, design_weights=design)
    np.testing.assert_array_equal(weights[::7], 0)
    assert weights @ frame["income"] == pytest.approx(totals["income"], rel=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6, 1e12])
def test_totals_far_from_the_design_are_as_exact(scale):
    frame, design, totals, *_ = sample(0)
    asked = {"region": totals["region"] * scale}
    weights = calibrate(frame, asked, design_weights=design)
    for level, count in asked["region"].items():
        assert weights[frame["region"] == level].sum() == pytest.approx(count, rel=1e-9)


# --- what can be asked for ------------------------------------------------------


def test_tolerances_intervals_and_sums_of_columns():
    frame, design, totals, *_ = sample(1)
    wide = {level: 2.0 * c for level, c in totals["region"].items()}
    asked = [
        column_total("region", wide, within=0.1),
        column_total({"income": 1, "age": -30}, lower=0, upper=1e5),
        column_total("sex", {"f": 0.7}, mean=True),
    ]
    weights, report = calibrate(frame, asked, design_weights=design, return_report=True)
    for level, count in wide.items():
        # The nearest weights with less mass are at the near end of what is allowed.
        reached = weights[frame["region"] == level].sum()
        assert reached >= 0.9 * count * (1 - 1e-9)
        assert reached <= 1.1 * count * (1 + 1e-9)
    form = weights @ (frame["income"] - 30 * frame["age"])
    assert -1e-9 <= form / 1e5 <= 1 + 1e-9
    share = weights[frame["sex"] == "f"].sum() / weights.sum()
    assert share == pytest.approx(0.7, rel=1e-9)
    assert report.missed.max() <= 1e-9 * 1e5


def test_an_interval_that_holds_asks_for_nothing():
    frame, design, *_ = sample(0)
    total = design @ frame["income"]
    asked = {"income": column_total("income", lower=0.9 * total, upper=1.1 * total)}
    weights = calibrate(frame, asked, design_weights=design)
    np.testing.assert_allclose(weights, design, rtol=1e-12)


def test_domains_are_calibrated_apart():
    frame, design, *_ = sample(2)
    asked = {r: {"age": 5e4, "sex": {"f": 300, "m": 500}} for r in set(frame["region"])}
    weights, report = calibrate(
        frame, asked, design_weights=design, domains="region", return_report=True
    )
    labels = frame["region"].to_numpy()
    np.testing.assert_array_equal(
        calibrate(frame, asked, design_weights=design, domains=labels), weights
    )
    for region, totals in asked.items():
        rows = labels == region
        alone = calibrate(frame[rows], totals, design_weights=design[rows])
        np.testing.assert_allclose(weights[rows], alone, rtol=1e-12)
    assert len(report.names) == 9 and report.converged
    with pytest.raises(ValueError, match="in the domain 'north', which totals has"):
        calibrate(frame, {"south": {"age": 1}, "west": {"age": 1}}, domains="region")
    asked["north"] = {"age": -1}
    with pytest.raises(CalibrationError, match="Domain 'north': the sum of 'age' asks"):
        calibrate(frame, asked, domains="region")


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_frames_of_other_libraries(make):
    frame, design, totals, crossed, _ = sample(0)
    plain = {"age": totals["age"], ("region", "sex"): dict(crossed)}
    expected = calibrate(frame, plain, design_weights=design)
    got = calibrate(make(frame), plain, design_weights=design)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("make", [csr_array, coo_array, csr_matrix])
def test_arrays_and_sparse_matrices(make):
    rng = np.random.default_rng(0)
    x = rng.gamma(1.0, size=(300, 20)) * (rng.random((300, 20)) < 0.1)
    asked = rng.gamma(4.0, 0.25, size=300) @ x
    expected = calibrate(x, asked)
    np.testing.assert_allclose(expected @ x, asked, rtol=1e-9)
    np.testing.assert_allclose(calibrate(make(x), asked), expected, rtol=1e-8)
    by_number = {j: asked[j] for j in range(20)}
    np.testing.assert_allclose(calibrate(make(x), by_number), expected, rtol=1e-8)
    counts = {0: {0: 250, float(x[x[:, 0] > 0, 0][0]): 2}}
    np.testing.assert_allclose(calibrate(make(x), counts), calibrate(x, counts))


def test_columns_by_number_and_by_name():
    frame, *_ = sample(0)
    np.testing.assert_array_equal(
        calibrate(frame, {2: 1e5}), calibrate(frame, {"age": 1e5})
    )
    numbered = frame[["income", "age"]].set_axis([0, 1], axis=1)
    np.testing.assert_array_equal(
        calibrate(numbered, {1: 1e5}), calibrate(frame, {"age": 1e5})
    )
    # As everywhere: which of two columns is meant is not guessed.
    with pytest.raises(ValueError, match="names 1, which may be a name or a number"):
        calibrate(numbered[[1, 0]], {1: 1e5})


# --- the report -----------------------------------------------------------------


def test_what_the_report_says():
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
    assert "<table" in report._repr_html_()
    np.testing.assert_allclose(report.ratios, weights / design)


# --- what cannot be met ---------------------------------------------------------


def random_problem(rng):
    """A small sample, its bounds, and totals, some of which no weights have."""
    n, c = rng.integers(3, 12), rng.integers(1, 5)
    x = np.round(rng.normal(size=(n, c)) * rng.choice([0, 1, 1], size=(n, c)), 2)
    x[:, rng.random(c) < 0.4] = rng.integers(0, 2, size=(n, 1))
    design = rng.gamma(2.0, size=n)
    bounds = [(0, np.inf), (0.5, 2.0), (0, 1.5)][rng.integers(3)]
    asked = (design * rng.gamma(1.0, size=n)) @ x + rng.choice([0, 0, 3]) * rng.normal(
        size=c
    )
    return x, design, bounds, asked


@pytest.mark.parametrize("seed", range(60))
def test_refused_only_where_a_linear_programme_finds_none(seed):
    rng = np.random.default_rng(seed)
    x, design, bounds, asked = random_problem(rng)
    low, high = bounds
    box = [(low * d, None if np.isinf(high) else high * d) for d in design]
    exists = linprog(np.zeros(len(x)), A_eq=x.T, b_eq=asked, bounds=box).status == 0
    if exists:
        weights, report = calibrate(
            x, asked, design_weights=design, bounds=bounds, strict=False,
            return_report=True,
        )  # fmt: skip
        # At the very edge of what can be reached weights go to 0, ever more slowly.
        if report.converged:
            np.testing.assert_allclose(weights @ x, asked, atol=1e-7)
        else:
            assert report.residual.max() < 1e-4
        return
    with pytest.raises(CalibrationError, match="the sum of . asks for") as error:
        calibrate(x, asked, design_weights=design, bounds=bounds)
    # What is named contradicts itself without the rest, and is all needed for it.
    text = str(error.value)
    named = [j for j in range(x.shape[1]) if f"the sum of {j}" in text]

    def can_be_met(columns):
        if not columns:
            return True
        a, b = x[:, columns].T, asked[columns]
        return linprog(np.zeros(len(x)), A_eq=a, b_eq=b, bounds=box).status == 0

    assert not can_be_met(named)
    for j in named:
        assert can_be_met([k for k in named if k != j])


@pytest.mark.parametrize("bounds", [(0, np.inf), (0.5, 2.0)])
@pytest.mark.parametrize("beyond", [0.99, 1.01])
def test_of_many_rows_the_reach_is_that_of_a_programme_of_all(bounds, beyond):
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, size=(4000, 3)) * (rng.random((4000, 3)) < 0.4)
    x[:, 2] += x[:, 0]
    asked = rng.uniform(*np.minimum(bounds, 2.0), size=4000) @ x
    high = None if np.isinf(bounds[1]) else bounds[1]
    box = {"bounds": (bounds[0], high), "A_eq": x[:, :2].T, "b_eq": asked[:2]}
    asked[2] = beyond * linprog(x[:, 2], **box).fun
    if beyond > 1:
        assert calibrate(x, asked, bounds=bounds) @ x == pytest.approx(asked)
        return
    with pytest.raises(CalibrationError) as error:
        calibrate(x, asked, bounds=bounds)
    named = [j for j in range(3) if f"the sum of {j}" in str(error.value)]
    box["bounds"] = [box["bounds"]] * 4000
    for some, status in ((named, 2), (named[1:], 0), (named[:-1], 0)):
        box["A_eq"], box["b_eq"] = x[:, some].T, asked[some]
        assert linprog(np.zeros(4000), **box).status == status


def test_margins_that_disagree_are_named():
    frame, *_ = sample(0)
    by_sex = dict.fromkeys(product(["north", "south", "west"], "fm"), 10.0)
    asked = {
        "region": {"north": 20, "south": 25, "west": 20},
        ("region", "sex"): by_sex,
    }
    sums = r"disagree at region='south': they sum to 25 and 20. Mend .* within="
    with pytest.raises(ValueError, match=sums):
        calibrate(frame, asked)
    asked["region"] = column_total("region", asked["region"], within=0.25)
    weights = calibrate(frame, asked)
    assert weights[frame["region"] == "south"].sum() == pytest.approx(20)


@pytest.mark.parametrize(
    "totals, keywords, message",
    [
        ({}, {}, "totals is empty"),
        ({"rgion": 3}, {}, "names 'rgion', but X has the columns .'region', 'sex'"),
        ({9: 3}, {}, "holds 9; it must hold names or numbers"),
        ({"region": 3}, {}, "'region' holds no numbers; ask for counts by level"),
        ({"region": {"nort": 3}}, {}, "No row has region='nort', for which 3 is asked"),
        ({("region", "sex"): {"north": 3}}, {}, "need tuples of 2 levels"),
        ({"age": "many"}, {}, "must be a number, or a dict or Series"),
        ({"age": np.nan}, {}, "A total of 'age' is NaN; give a number"),
        ({"sex": {"f": None}}, {}, "of 'sex' of level 'f' is NaN; give a number"),
        ({"sex": pd.Series({"f": 3, "m": pd.NA}, dtype="Int64")}, {},
         "of 'sex' of level 'm' is NaN; give a number"),
        ({"age": np.inf}, {}, "must lie in an interval"),
        ([1.0, 2.0], {}, r"finite sums of all columns, of shape \(4,\); got"),
        ({"age": 3}, {"bounds": (2, 1)}, "0 <= least <= largest"),
        ({"age": 3}, {"bounds": (-1, 1)}, "0 <= least <= largest"),
        ({"age": 3}, {"bounds": (0, None)}, "which may be infinite; got"),
        ({"age": 3}, {"bounds": 2}, "0 <= least <= largest"),
        ({"age": 3}, {"bounds": (1, 2, 3)}, "0 <= least <= largest"),
        ({"age": 3}, {"bounds": "no"}, "0 <= least <= largest"),
        ({"age": 3}, {"bounds": (np.inf, np.inf)}, "0 <= least <= largest"),
        ({"age": 3}, {"design_weights": np.ma.masked_less(np.arange(60), 9)},
         "design_weights is a masked array"),
        ({"age": 3}, {"design_weights": -np.ones(60)}, "holds -1 in row 0"),
        ({"age": 3}, {"design_weights": np.full(60, np.nan)}, "nan in row 0"),
        ({"age": 3}, {"design_weights": np.zeros(60)}, "design_weights are all 0"),
        ({"age": 3}, {"design_weights": "w"}, "one a row, 60 of them; it is 'w'"),
        ({"sex": pd.Series([1, 2, 3], ["f", "m", "f"])}, {}, "'f' more than once"),
        ({"age": 3}, {"design_weights": np.ones(3)}, "one a row, 60 of them"),
        ({"age": 3}, {"domains": "region"}, "'north', which totals|domain"),
        ({"age": 3}, {"domains": [1, 2]}, "2 labels for 60 rows"),
        ({"age": 3}, {"domains": "sex"}, "none is a domain: .* dict by label, {'[fm]'"),
        ({"region": {}}, {}, "A total of 'region' names no level"),
        ({"region": {None: 3}}, {}, "missing cells have no level"),
        ({"region": {np.nan: 3}}, {}, "missing cells have no level"),
        ({"age": 3}, {"tol": -1}, "'tol' parameter of calibrate"),
        ({"age": 3}, {"max_iter": 0}, "'max_iter' parameter of calibrate must be"),
        ({"age": 3}, {"time_limit": -1}, "'time_limit' parameter of calibrate must"),
    ],
)  # fmt: skip
def test_bad_input(totals, keywords, message):
    with pytest.raises(ValueError, match=message):
        calibrate(sample(0)[0], totals, **keywords)


@pytest.mark.parametrize("size", [1e-170, 1e160])
def test_counts_of_any_size(size):
    weights = calibrate([[0], [0], [1]], {0: {0: size, 1: 3.0}})
    np.testing.assert_allclose(weights, [size / 2, size / 2, 3.0], rtol=1e-9)


def test_numbers_are_no_categories():
    frame = sample(0)[0].astype({"age": float})
    frame["age"] += np.arange(len(frame)) / 7
    message = r"age=1\.5, .*'age' has \d+ values, and is a number .* sum, {'age': 1000}"
    with pytest.raises(ValueError, match=message):
        calibrate(frame, {"age": {1.5: 20}})


def test_times_are_not_summed():
    frame = sample(0)[0]
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame.index, "D")
    with pytest.raises(ValueError, match="about numbers, but 'day' holds times. Pass"):
        calibrate(frame, {"day": 3})


def test_sums_as_a_series_are_read_by_name():
    frame = sample(0)[0]
    sums = 1.1 * frame.select_dtypes("number").sum()
    expected = calibrate(frame, sums.to_dict())
    np.testing.assert_array_equal(calibrate(frame, sums), expected)
    augmenter = PNLAugmenter(categorical_features="auto").fit(frame)
    rows = augmenter.sample(len(frame), 0, totals=sums.round())
    np.testing.assert_allclose(rows[sums.index].sum(), sums.round())


def test_missing_numbers_are_told():
    frame = sample(0)[0].astype({"age": float})
    frame.loc[7, "age"] = np.nan
    with pytest.raises(ValueError, match="'age' must hold numbers .* row 7 is nan"):
        calibrate(frame, {"age": 3})


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("age", 3, {"within": -1}), "within must be 0 or more"),
        (("age", 3, {"within": "all"}), "within must be 0 or more"),
        (({"age": np.nan}, 3, {}), "that of 'age' is nan"),
        (({"age": "x"}, 3, {}), "that of 'age' is 'x'"),
        (("age", 3, {"within": 5}), "below 1, a share .* got 5"),
        ((3500, "age", {}), "It comes after its column"),
        (("age", {"a": "many"}, {}), "number, or a dict or Series of level to number"),
        (("age", pd.DataFrame({"n": [1.0, 2.0]}), {}), "Series of level to number"),
        (({}, 3, {}), "at least one column"),
        (({"age": 1}, {"a": 3}, {}), "a number to be summed to"),
        (("age", None, {"lower": 3, "upper": 2}), "lie in an interval: .* got 3 to"),
        (("age", {"a": np.nan}, {}), "'age' of level 'a' is NaN; give"),
        (("age", 3, {"lower": 2}), "equal, or lower and upper; not both"),
        (("age", {"a": 3}, {"upper": {"a": 4}}), "lower and upper; not both"),
    ],
)  # fmt: skip
def test_totals_that_make_no_sense(arguments, message):
    of, equal, keywords = arguments
    with pytest.raises(ValueError, match=message):
        column_total(of, equal, **keywords)


@pytest.mark.parametrize(
    "shares, message",
    [
        ({"f": 0.7, "m": 0.6}, r"'sex' must sum to 1; got 1\.3\. Percent are divided"),
        ({"f": 0.4, "m": 0.4}, r"must sum to 1, as no row has another one; got 0\.8"),
        ({"f": 55, "m": 45}, r"must lie in 0 to 1; got 55"),
        ({"f": -0.1}, r"must lie in 0 to 1; got -0\.1"),
    ],
)
def test_shares_that_no_rows_have(shares, message):
    frame, asked = sample(0)[0], column_total("sex", shares, mean=True)
    with pytest.raises(ValueError, match=message):
        calibrate(frame, asked)
    augmenter = PNLAugmenter(categorical_features="auto").fit(frame)
    with pytest.raises(ValueError, match=message):
        augmenter.sample(20, totals=asked)
    part = dict.fromkeys(["north", "south"], 0.6)
    with pytest.raises(ValueError, match="sum to 1 at most; got 1.2"):
        calibrate(frame, column_total("region", part, mean=True))


def test_levels_that_no_row_may_have_are_named_where_more_is_asked_of_a_part():
    frame = pd.DataFrame({"region": list("xxyyzz") * 9, "sex": list("pqpqpq") * 9})
    asked = [
        {"region": {"x": 3, "y": 3, "z": 0}},
        column_total(("region", "sex"), {("z", "p"): 5}),
    ]
    told = "region='z', sex='p' asks for 5; .* the count of region='z' it reaches 0\\.$"
    with pytest.raises(CalibrationError, match=told):
        calibrate(frame, asked)
    augmenter = PNLAugmenter(categorical_features="auto")
    with pytest.raises(ValueError, match=told):
        augmenter.fit(frame.assign(age=range(54))).sample(6, totals=asked)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("ends", [{"equal": 200}, {"lower": 200}, {"upper": 1}])
def test_means_out_of_reach_are_not_met_by_weights_of_nothing(ends, integer):
    frame = sample(0)[0]
    least, most = frame["age"].min(), frame["age"].max()
    asked = column_total("age", mean=True, **ends)
    with pytest.raises(CalibrationError, match="the mean of 'age'") as caught:
        calibrate(frame, asked, integer=integer)
    assert not caught.value.report.converged
    value = next(iter(ends.values()))
    assert f"reaches {least - value:.7g} to {most - value:.7g}." in str(caught.value)
    inside = column_total("age", (least + most) / 2, mean=True)
    assert calibrate(frame, inside).sum() > 1


@pytest.mark.parametrize("key", [("region", "sex"), ("sex", "region")])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_crosstab_asks_for_the_combinations_of_two_columns(key, is_named):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"region": rng.choice(list("abc"), 90), "sex": rng.choice(2, 90)})
    wanted = pd.crosstab(X[key[0]], X[key[1]])
    wanted *= 1 + np.arange(wanted.shape[1])
    given = wanted if is_named else wanted.rename_axis(index=None, columns=None)
    weights = calibrate(X, {key: given})
    found = pd.crosstab(X[key[0]], X[key[1]], weights, aggfunc="sum")
    np.testing.assert_allclose(found, wanted)
    # Where levels have names, their order is told by these.
    if is_named:
        np.testing.assert_allclose(calibrate(X, {key[::-1]: given}), weights)


def test_frames_that_are_no_crosstab_are_refused():
    X = pd.DataFrame({"region": ["a", "b"], "sex": [0, 1]})
    frames = [pytest.importorskip("polars").DataFrame({"a": [1], "b": [2]})]
    frames += [pytest.importorskip("pyarrow").table({"a": [1], "b": [2]})]
    for frame in frames:
        with pytest.raises(ValueError, match="must be a number, or a dict or Series"):
            calibrate(X, {("region", "sex"): frame})


def test_a_series_of_one_column_may_be_asked_of_a_tuple_of_it():
    X = pd.DataFrame({"sex": ["f", "m", "m"]})
    np.testing.assert_allclose(calibrate(X, {("sex",): X["sex"].value_counts()}), 1)


def test_a_series_asks_by_its_labels_of_arrays_too():
    x = np.random.default_rng(0).gamma(2.0, size=(40, 3))
    totals = pd.Series({2: 90.0, 0: 70.0})
    weights = calibrate(x, totals)
    np.testing.assert_allclose(weights @ x[:, [2, 0]], totals)
    with pytest.raises(ValueError, match="totals names 'rent'"):
        calibrate(x, pd.Series({"rent": 1.0, "wage": 2.0, "age": 3.0}))


@pytest.mark.parametrize("number", [np.int64, np.float32, np.float64, int, float])
def test_labels_are_numbers_of_any_type(number):
    x = np.array([[1, 3], [2, 4], [1, 5]])
    asked = {0: {number(1): 5, number(2): 6}}
    np.testing.assert_allclose(calibrate(x, asked), [2.5, 6, 2.5])
    totals = {number(1): {1: 20.0}, number(2): {1: 8.0}}
    apart = calibrate(x, totals, domains=np.int64(0))
    np.testing.assert_allclose(apart, calibrate(x, totals, domains=0))


@pytest.mark.parametrize("past", [1e-8, 1e-7, 1e-5, 1e-3])
def test_means_just_out_of_reach_are_refused_by_name(past):
    frame = sample(0)[0]
    most = frame["income"].max()
    asked = column_total("income", most * (1 + past), mean=True)
    with pytest.raises(CalibrationError, match="the mean of 'income' less .* not all"):
        calibrate(frame, asked)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_only_the_end_of_a_range_has(seed):
    # There all weights are at an end, which a finite multiplier cannot say.
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


@pytest.mark.parametrize("value", [0.1, 0.48, 1 / 3, -7.7])
@pytest.mark.parametrize("share", [False, True])
def test_the_mean_of_a_constant_column_holds_whatever_rounding_makes_of_it(
    value, share
):
    frame, design, totals, _, true = sample(0)
    frame = frame.assign(constant="same" if share else value)
    held = np.ones(len(frame)) if share else frame["constant"]
    mean = true @ held / true.sum()
    for rounded in (mean, np.nextafter(mean, -9), np.nextafter(mean, 9)):
        equal = {"same": min(rounded, 1.0)} if share else rounded
        constant = column_total("constant", equal, mean=True)
        asked = [constant, {"income": totals["income"]}]
        weights = calibrate(frame, asked, design_weights=design)
        assert weights @ frame["income"] == pytest.approx(totals["income"], rel=1e-9)


@pytest.mark.parametrize("power", [-9, 9])
@pytest.mark.parametrize("seed", SEEDS)
def test_totals_far_from_the_design_are_met_by_their_own_size(seed, power):
    # A level that is to have next to nothing, or nearly all.
    frame, design, totals, *_ = sample(seed)
    counts = totals["region"] * [10.0**power, 1, 1]
    asked = {"region": counts, "income": column_total("income", lower=0)}
    weights, report = calibrate(frame, asked, design_weights=design, return_report=True)
    assert report.residual.max() <= 1e-9
    found = pd.Series(weights).groupby(frame["region"]).sum()
    np.testing.assert_allclose(found, counts, rtol=2e-9)


def test_means_that_only_nothing_has_in_whole_weights():
    x = np.array([[1.0], [np.pi]])
    asked = column_total(0, 2.0, mean=True)
    assert calibrate(x, asked) @ (x[:, 0] - 2) == pytest.approx(0, abs=1e-8)
    with pytest.raises(CalibrationError):
        calibrate(x, asked, integer=True, time_limit=2.0)


# --- what other packages were asked for -----------------------------------------


def test_bounds_hold_or_are_refused():
    # icarus 10: weights outside their bounds, for totals that no weights in them have.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"sexe": rng.choice([1, 2], 23), "salaire": rng.gamma(2, 900, 23)}
    )
    totals = {"sexe": {1: 140, 2: 90}}
    design = np.full(23, 10.0)
    with pytest.raises(CalibrationError, match="asks for .* it reaches .*"):
        calibrate(frame, totals, design_weights=design, bounds=(3, 38))
    weights = calibrate(frame, totals, design_weights=design, bounds=(0.3, 3.8))
    assert 3 <= weights.min() and weights.max() <= 38
    assert weights.sum() == pytest.approx(230)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_total_of_zero(seed):
    # icarus 18: a column of both signs whose total is to be 0.
    rng = np.random.default_rng(seed)
    x, design = rng.normal(size=(200, 1)), rng.gamma(2.0, size=200)
    weights = calibrate(x, [0.0], design_weights=design)
    assert abs(weights @ x[:, 0]) <= 1e-9 * (weights @ np.abs(x[:, 0]))


@pytest.mark.parametrize("seed", SEEDS)
def test_totals_that_are_sums_of_others(seed):
    # icarus 18: a matrix of totals that is not of full rank.
    rng = np.random.default_rng(seed)
    x = np.eye(3)[rng.integers(3, size=200)]
    x = np.column_stack([x, x.sum(axis=1), x[:, 1] + x[:, 2], x[:, 1]])
    totals = rng.gamma(4.0, size=200) @ x
    np.testing.assert_allclose(calibrate(x, totals) @ x, totals, rtol=1e-9)
    # Whatever contradicts it, the one that is wrong is named.
    with pytest.raises(CalibrationError, match="the sum of 3"):
        calibrate(x, totals * [1, 1, 1, 1.1, 1, 1])


# --- whole weights --------------------------------------------------------------


def households(n, seed):
    """Households with counts of persons, and totals that whole weights have."""
    rng = np.random.default_rng(seed)
    size = 1 + np.minimum(rng.poisson(1.4, n), 4)
    persons = np.array([rng.multinomial(s, [0.3, 0.3, 0.2, 0.2]) for s in size])
    tenure = np.eye(3)[rng.integers(3, size=n)]
    x = np.hstack([np.eye(5)[size - 1], tenure, persons])
    return x, rng.poisson(rng.gamma(2.0, 2.0, n)) @ x


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", [60, 500])
def test_whole_weights_meet_planted_totals(seed, n):
    x, totals = households(n, seed)
    weights, report = calibrate(x, totals, integer=True, return_report=True)
    np.testing.assert_array_equal(weights, np.round(weights))
    np.testing.assert_array_equal(weights @ x, totals)
    assert weights.min() >= 0 and not report.missed.any()


def test_whole_weights_of_an_annealed_search():
    # What linear programmes are too large for; here they are left out.
    from sklearn_pnl.weights.columns import Columns
    from sklearn_pnl.weights.totals import read_totals
    from sklearn_pnl.weights.whole import _Search

    x, totals = households(400, 0)
    system = read_totals(Columns(x), totals)
    real = calibrate(x, totals)
    floor, ceiling = np.zeros(400), np.floor(3 * real) + 1
    search = _Search(system, real, floor, ceiling)
    weights, proven = search.anneal(30.0)
    assert not proven
    np.testing.assert_array_equal(weights @ x, totals)
    assert np.all((weights >= 0) & (weights <= ceiling))
    np.testing.assert_array_equal(search.anneal(30.0)[0], weights)


def test_whole_weights_of_a_programme_without_time_are_rounded_ones(monkeypatch):
    from scipy.optimize import OptimizeResult

    from sklearn_pnl.weights import whole

    late = OptimizeResult(x=None, status=1)
    monkeypatch.setattr(whole, "milp", lambda *_, **__: late)
    x = np.array([[2.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
    with pytest.raises(CalibrationError, match=r"the sum of 0 by \d") as error:
        calibrate(x, [7.0, 2.0], integer=True, time_limit=0.1)
    weights = error.value.report.weights
    np.testing.assert_array_equal(weights, np.round(weights))


@pytest.mark.parametrize("asked", [{"lower": 80.5}, {"upper": 20.5}])
def test_whole_weights_of_totals_with_one_end(asked):
    x = np.random.default_rng(0).integers(0, 3, size=(30, 2)).astype(float)
    weights = calibrate(x, column_total(0, **asked), integer=True)
    np.testing.assert_array_equal(weights, np.round(weights))
    assert asked.get("lower", 0) <= weights @ x[:, 0] <= asked.get("upper", np.inf)


@pytest.mark.parametrize("n", [10, 60, 3000])
@pytest.mark.parametrize("weight", [2.0, 100.0])
def test_whole_weights_are_near_to_those_that_need_not_be(n, weight):
    rng = np.random.default_rng(n)
    x = np.column_stack([rng.integers(18, 80, n), rng.gamma(2.0, size=n).round(2)])
    age, hours = x.mean(axis=0)
    for asked in (
        column_total(0, round(age) + 1, mean=True),
        column_total(0, lower=age + 1, upper=age + 2, mean=True),
        column_total(0, lower=1.01 * n * weight * age),
        column_total(1, round(n * weight * hours, 2) + 1),
    ):
        real = calibrate(x, asked, design_weights=weight)
        whole = calibrate(x, asked, design_weights=weight, integer=True)
        np.testing.assert_array_equal(whole, np.round(whole))
        assert np.abs(whole - real).max() <= 20
        assert 0.5 <= whole.sum() / real.sum() <= 2


def test_whole_weights_that_there_are_not():
    # Twos cannot sum to an odd number: 1 is the least that is missed.
    x = np.array([[2.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
    with pytest.raises(CalibrationError, match=r"the sum of 0 by 1") as error:
        calibrate(x, [7.0, 2.0], integer=True, time_limit=2.0)
    report = error.value.report
    assert report.missed.sum() == 1
    np.testing.assert_array_equal(report.weights, np.round(report.weights))
    with pytest.raises(ValueError, match="bounds leave no whole weight for row 0"):
        calibrate([[1.0], [1.0]], [1.0], design_weights=[0.5, 0.5], bounds=(0.9, 1.1),
                  integer=True)  # fmt: skip


def test_whole_weights_keep_bounds_and_tolerances():
    x, totals = households(100, 1)
    design = calibrate(x, totals)
    weights, report = calibrate(
        x, [column_total(j, t, within=0.02) for j, t in enumerate(totals)],
        design_weights=design, bounds=(0.4, 1.6), integer=True, return_report=True,
    )  # fmt: skip
    assert np.all(weights >= np.ceil(0.4 * design))
    assert np.all(weights <= np.floor(1.6 * design))
    assert np.all(np.abs(weights @ x - totals) <= 0.02 * totals + 1e-9)
    assert report.converged


@pytest.mark.parametrize("asked", [1e-30, 1e-300])
def test_totals_too_small_for_their_start_are_not_called_met(asked):
    X = np.random.default_rng(0).integers(0, 3, size=(50, 1))
    message = "the sum of 0 is .* Start from weights that come nearer"
    with pytest.raises(CalibrationError, match=message) as error:
        calibrate(X, {0: asked})
    assert not error.value.report.converged
    near = calibrate(X, {0: asked}, design_weights=asked)
    np.testing.assert_allclose(near @ X, asked, rtol=1e-8)


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
def test_missing_cells_have_no_level_in_any_container(container):
    frame = container({"region": ["north", None, "south", None]})
    with pytest.raises(ValueError, match="missing cells have no level"):
        calibrate(frame, {"region": {"north": 3, None: 5}})
    weights = calibrate(frame, {"region": {"north": 3}})
    np.testing.assert_array_equal(weights, [3, 1, 1, 1])


def test_lazy_frames_are_to_be_collected():
    with pytest.raises(TypeError, match="lazy data frame: collect it first"):
        calibrate(pl.LazyFrame({"age": [1.0, 2.0]}), {"age": 7})


def test_a_tolerance_of_zero_asks_for_what_rounding_allows():
    frame = sample(0)[0]
    totals = {"sex": {"f": 70, "m": 50}, "age": 5000}
    weights = calibrate(frame, totals, tol=0)
    np.testing.assert_allclose(weights @ frame["age"], 5000, rtol=1e-13)


def test_series_in_another_order_are_not_taken_by_place():
    X = pd.DataFrame({"age": [20.0, 40.0, 60.0]}, index=["a", "b", "c"])
    weights = pd.Series([1.0, 2.0, 3.0], X.index)
    found = calibrate(X, {"age": 300.0}, design_weights=weights)
    for given in ({"design_weights": weights}, {"domains": weights}):
        with pytest.raises(ValueError, match=f"{[*given][0]} has the index of X in an"):
            calibrate(X[::-1], {"age": 300.0}, **given)
    # Labels of another frame say nothing of these rows.
    other = weights.reset_index(drop=True)
    again = calibrate(X, {"age": 300.0}, design_weights=other)
    assert np.array_equal(again, found)


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
def test_times_are_levels_as_they_are_written(container, unit):
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-02"], f"M8[{unit}]")
    frame = container({"day": days, "spent": [1.0, 2.0, 2.0]})
    first, second = pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")
    if container is not pd.DataFrame:
        first, second = first.to_pydatetime(), second.to_pydatetime()
    weights = calibrate(frame, {"day": {first: 3, second: 8}})
    np.testing.assert_allclose(weights, [3, 4, 4])
    asked = {first: {"spent": 5}, second: {"spent": 8}}
    weights = calibrate(frame, asked, domains="day")
    np.testing.assert_allclose(weights, [5, 2, 2])
    with pytest.raises(ValueError, match="there are .*2024, 1, 1|'2024-01-01"):
        calibrate(frame, {"day": {pd.Timestamp("2025-01-01"): 3}})
