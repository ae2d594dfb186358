"""Totals of weighted rows: contradictions, ranges, and the sum of the weights."""

from itertools import combinations

import numpy as np
import pandas as pd
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
