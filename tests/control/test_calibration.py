"""Calibration of weights and tables: theorems, comparisons, containers."""

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.sparse import coo_array, csr_array, csr_matrix

from sklearn_pnl import geometry
from sklearn_pnl.control import calibrate, column_total, rake
from sklearn_pnl.control.calibration import CalibrationError
from sklearn_pnl.geometry import RakingError

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


# --- weights ----------------------------------------------------------------------


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


# --- report -----------------------------------------------------------------------


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


def test_lazy_frames_are_rejected():
    with pytest.raises(TypeError):
        calibrate(pl.LazyFrame({"age": [1.0, 2.0]}), {"age": 7})


def test_groups_of_rows_are_calibrated_with_groupby():
    frame, design, *_ = sample(2)
    weights = pd.Series(index=frame.index, dtype=float)
    for _, part in frame.groupby("region"):
        weights[part.index] = calibrate(part, {"age": 5e4})
    sums = (weights * frame["age"]).groupby(frame["region"]).sum()
    np.testing.assert_allclose(sums, 5e4)


def test_rake_rejects_data_frames():
    table = pd.crosstab([*"uuvvv"], [*"pqppq"])
    with pytest.raises(ValueError, match="^table "):
        rake(table, {(0,): [5.0, 7.0]})


LEVELS = {"age": ["young", "old", "older"], "sex": ["f", "m"], "region": list("nsew")}
SHAPE = tuple(map(len, LEVELS.values()))
MARGINS = ["age", ("sex", "region")]


def series(values):
    index = pd.MultiIndex.from_product(LEVELS.values(), names=LEVELS)
    return pd.Series(np.ravel(values), index=index, name="people")


def margin(table, key):
    return table.groupby(list(key) if isinstance(key, tuple) else key).sum()


def problem(seed, keys=MARGINS, empty=0.0):
    """Draw a table, and margins of another table with the same zeros."""
    rng = np.random.default_rng(seed)
    start, target = rng.gamma(1.0, size=(2, *SHAPE)) + 1e-3
    zero = rng.random(SHAPE) < empty
    start[zero] = target[zero] = 0
    target = series(np.ceil(100 * target))
    return series(start), {key: margin(target, key) for key in keys}


def by_mode(margins):
    """Convert margins to arrays by modes."""
    names, found = list(LEVELS), {}
    for key, values in margins.items():
        key = key if isinstance(key, tuple) else (key,)
        levels = [LEVELS[name] for name in key]
        values = values.reindex(
            pd.MultiIndex.from_product(levels) if len(key) > 1 else levels[0]
        )
        found[tuple(map(names.index, key))] = values.to_numpy().reshape(
            [len(level) for level in levels]
        )
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("empty", [0.0, 0.2])
@pytest.mark.parametrize(
    "keys", [MARGINS, ["age", "sex", "region"], list(combinations(LEVELS, 2))]
)
def test_result_agrees_with_rake_array(keys, empty, seed):
    table, margins = problem(seed, keys, empty)
    found = rake(table, margins)
    core = geometry.rake_array(
        table.to_numpy().reshape(SHAPE), by_mode(margins), tol=1e-12
    )
    np.testing.assert_allclose(
        found.tables.to_numpy(), core.tables.ravel(), atol=1e-6 * core.tables.sum()
    )
    assert found.tables.index.equals(table.index) and found.tables.name == "people"
    assert found.converged and found.residual <= 1e-9 and not found.reasons
    for key, wanted in margins.items():
        np.testing.assert_allclose(margin(found.tables, key), wanted, rtol=2e-9)


@pytest.mark.parametrize("seed", range(3))
def test_long_frames_may_lack_combinations(seed):
    # A missing cell is a structural zero.
    table, margins = problem(seed, empty=0.3)
    expected = rake(table, margins).tables
    held = table[table > 0].sample(frac=1, random_state=seed)
    np.testing.assert_allclose(
        rake(held, margins).tables.reindex(table.index, fill_value=0), expected
    )
    # A frame in long form is calibrated by weights.
    frame = pl.from_pandas(held.reset_index())
    weights = calibrate(frame, margins, design_weights=frame["people"])
    np.testing.assert_allclose(weights, expected.reindex(held.index))


def test_margins_rounded_separately_require_a_tolerance():
    # mipfp 10: margins from one table that are rounded separately differ by one or two.
    rng = np.random.default_rng(3)
    table = series(rng.gamma(1.0, size=SHAPE) * 40)
    margins = {key: margin(table, key).round() for key in combinations(LEVELS, 2)}
    message = r"^For age='young', .*'sex'\) sum to 210, .*'region'\) sum to 209"
    with pytest.raises(RakingError, match=message):
        rake(table, margins)
    soft = {key: column_total(key, m, rtol=0.1) for key, m in margins.items()}
    raked = rake(table, soft).tables
    for key, wanted in margins.items():
        gap = (margin(raked, key) - wanted).abs()
        assert np.all(gap <= 0.1 * wanted + 1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_signed_cells_agree_with_gras(seed, share):
    # Junius and Oosterhaven 2003: r_i s_j times positive cells, and 1 / (r_i s_j)
    # times negative ones, on the margins.
    rng = np.random.default_rng(seed)
    start, target = rng.gamma(1.0, size=(2, 8, 9)) * rng.choice(
        [-1, 1], p=[share, 1 - share], size=(8, 9)
    )
    index = pd.MultiIndex.from_product([range(8), range(9)], names=["row", "column"])
    margins = {
        "row": dict(enumerate(target.sum(axis=1))),
        "column": dict(enumerate(target.sum(axis=0))),
    }
    raked = rake(pd.Series(start.ravel(), index), margins).tables.to_numpy()
    raked = raked.reshape(8, 9)
    np.testing.assert_allclose(raked.sum(axis=1), target.sum(axis=1), atol=1e-8)
    np.testing.assert_allclose(raked.sum(axis=0), target.sum(axis=0), atol=1e-8)
    assert np.all(np.sign(raked) == np.sign(start))
    log = np.log(raked / start) * np.sign(start)
    additive = log.mean(axis=1)[:, None] + log.mean(axis=0) - log.mean()
    np.testing.assert_allclose(log, additive, atol=1e-6)


def test_arrays_with_negative_cells_are_rejected():
    with pytest.raises(ValueError, match=r"entry \(0, 1\)"):
        rake([[5, -2], [3, 4]], {(0,): [4, 8]})


@pytest.mark.parametrize(
    "table, margins, keywords",
    [
        (series(np.ones(SHAPE)), {"ag": {"old": 3}}, {}),
        (series(np.ones(SHAPE)), {"age": [3, 4, 5]}, {}),
        (series(np.ones(SHAPE)), None, {}),
        (series(np.full(SHAPE, np.nan)), {"age": {"old": 3}}, {}),
        (series(np.ones(SHAPE)).reset_index(), {"age": {"old": 3}}, {}),
        (coo_array(np.ones((3, 2))), {0: {0: 1}}, {}),
        (series(np.ones(SHAPE)), {"age": {"baby": 3}}, {}),
        (series(np.zeros(SHAPE)), {"age": {"old": 3}}, {}),
        (series(np.ones(SHAPE)), {"age": {"old": -5}}, {}),
    ],
)
def test_invalid_input_is_rejected(table, margins, keywords):
    with pytest.raises(ValueError):
        rake(table, margins, **keywords)


def test_unconverged_tables_are_returned_if_strict_is_false():
    table, margins = problem(0)
    margins["sex"] = column_total("sex", {"f": 1.0}, rtol=0.5)
    with pytest.raises(RakingError, match="sex='f'") as caught:
        rake(table, margins)
    assert not caught.value.result.converged
    result = rake(table, {"age": {"old": -5}}, strict=False)
    assert not result.converged and "age='old'" in result.reasons[0]


def test_a_series_of_sums_is_matched_by_level_names():
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([["f", "m"], [1, 2, 3]], names=["sex", "age"])
    table = pd.Series(rng.uniform(1, 2, 6), index)
    wanted = pd.Series(rng.uniform(1, 2, 6), index)
    turned = wanted.reorder_levels(["age", "sex"]).sort_index()
    key = ("sex", "age")
    for requested in (turned, column_total(key, turned)):
        pd.testing.assert_series_equal(rake(table, {key: requested}).tables, wanted)
