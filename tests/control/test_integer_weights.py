"""Integer weights: exact counts, roundings of fractional counts, repeated runs."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from sklearn_pnl.control import calibrate, column_total
from sklearn_pnl.geometry.convex import highs, integers

SEEDS = [0, 1, 2]


def households(n, seed):
    """Make households with counts of persons, and totals of integer weights."""
    rng = np.random.default_rng(seed)
    size = 1 + np.minimum(rng.poisson(1.4, n), 4)
    persons = np.array([rng.multinomial(s, [0.3, 0.3, 0.2, 0.2]) for s in size])
    tenure = np.eye(3)[rng.integers(3, size=n)]
    x = np.hstack([np.eye(5)[size - 1], tenure, persons])
    return x, rng.poisson(rng.gamma(2.0, 2.0, n)) @ x


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", [60, 500])
def test_integer_weights_satisfy_feasible_totals(seed, n):
    x, totals = households(n, seed)
    weights, report = calibrate(x, totals, integer=True, return_report=True)
    np.testing.assert_array_equal(weights, np.round(weights))
    np.testing.assert_array_equal(weights @ x, totals)
    assert weights.min() >= 0 and not report.missed.any()


def test_integer_weights_of_zero_are_positive_zeros():
    x = np.arange(30)[:, None] % 3
    weights = calibrate(x, {0: {0: 0, 1: 9}}, integer=True)
    assert (weights == 0).any() and not np.signbit(weights).any()


def test_infeasible_integer_weights_are_rounded_with_a_warning():
    # Twos cannot sum to an odd number.
    x = np.array([[2.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
    weights, report = calibrate(x, [7.0, 2.0], integer=True, return_report=True)
    np.testing.assert_array_equal(weights, np.round(weights))
    assert report.missed[0] == 1
    with pytest.warns(UserWarning, match="the sum of x0, by 1"):
        calibrate(x, [7.0, 2.0], integer=True)
    with pytest.raises(ValueError, match="bounds .*row 0"):
        calibrate([[1.0], [1.0]], [1.0], design_weights=[0.5, 0.5], bounds=(0.9, 1.1),
                  integer=True)  # fmt: skip


@pytest.mark.parametrize("n", [10, 60, 3000])
def test_integer_weights_are_rounded_up_or_down(n):
    # Each weight, and the sum of the weights, is rounded up or down. Totals miss their
    # requests by a few terms, for any number of rows.
    rng = np.random.default_rng(n)
    x = np.column_stack([rng.integers(18, 80, n), rng.gamma(2.0, size=n).round(2)])
    requested = {0: 1.05 * 3.3 * x[:, 0].sum(), 1: 3.3 * x[:, 1].sum()}
    real = calibrate(x, requested, design_weights=3.3)
    whole, report = calibrate(
        x, requested, design_weights=3.3, integer=True, return_report=True
    )
    np.testing.assert_array_equal(whole, np.round(whole))
    assert np.abs(whole - real).max() < 1 and abs(whole.sum() - real.sum()) <= 1
    assert np.all(report.missed <= 3 * x.max(axis=0))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("mean", [False, True])
def test_integer_weights_satisfy_counts_next_to_a_sum_or_mean(seed, mean):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"home": rng.choice([*"abc"], 300)})
    frame = frame.assign(sex=rng.choice([*"fm"], 300), wage=rng.lognormal(7, 1, 300))
    wage = column_total(
        "wage", frame["wage"].mean() * (1.1 if mean else 2200), mean=mean
    )
    counts = {"home": {"a": 900, "b": 700, "c": 400}, "sex": {"f": 1050}}
    whole, report = calibrate(frame, [counts, wage], integer=True, return_report=True)
    np.testing.assert_array_equal(whole, np.round(whole))
    np.testing.assert_array_equal(report.missed[1:], 0)
    assert report.missed[0] <= frame["wage"].mean() / (whole.sum() if mean else 1)


def test_integer_weights_of_many_rows_satisfy_counts_next_to_a_mean():
    rng, n = np.random.default_rng(0), 8000
    frame = pd.DataFrame({"a": rng.choice([*"ABCDE"], n), "b": rng.choice([*"xyz"], n)})
    frame["price"] = rng.lognormal(8, 0.8, n).round()
    counts = {key: (2 * frame[key].value_counts()).to_dict() for key in "ab"}
    mean = column_total("price", 1.04 * frame["price"].mean(), mean=True)
    whole, report = calibrate(frame, [counts, mean], integer=True, return_report=True)
    np.testing.assert_array_equal(report.missed[1:], 0)
    assert report.missed[0] <= frame["price"].mean() / whole.sum()


def test_integer_weights_of_unconstrained_rows_preserve_their_sum():
    frame = pd.DataFrame({"home": np.repeat([*"abcd"], [30, 50, 60, 70])})
    whole = calibrate(
        frame, {"home": {"a": 77}}, design_weights=np.full(210, 3.4), integer=True
    )
    assert whole[:30].sum() == 77 and abs(whole[30:].sum() - 180 * 3.4) <= 1


def test_search_for_integer_weights_is_limited():
    """Test that the search stops, because 2000 nodes would take minutes."""
    rng, n = np.random.default_rng(1), 8000
    sizes = {"a": 12, "b": 9, "c": 7, "s": 2}
    frame = pd.DataFrame({name: rng.integers(0, k, n) for name, k in sizes.items()})
    frame["age"] = rng.integers(18, 90, n)
    groups = frame.groupby(["a", "b"]).size().items()
    wanted = {level: int(3 * size + rng.integers(-1, 2)) for level, size in groups}
    total = sum(wanted.values())
    requested = {("a", "b"): wanted, "age": 54 * total}
    for name in "cs":
        counts = frame[name].value_counts().items()
        requested[name] = {level: int(size * total / n) for level, size in counts}
        requested[name][0] += total - sum(requested[name].values())
    weights = calibrate(frame, requested, integer=True, return_report=True)[0]
    assert (weights % 1 == 0).all()


def projection_of(seed, n=3000):
    """Make people, and fractional counts of a population by zone, age and sex."""
    rng = np.random.default_rng(seed)
    sizes = {"zone": 12, "age": 5, "sex": 2}
    frame = pd.DataFrame({name: rng.integers(0, k, n) for name, k in sizes.items()})
    # The number of people is an integer, as in most projections.
    sums = pd.Series(rng.gamma(3.0, size=n))
    return frame, sums * (round(sums.sum()) / sums.sum())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "keys",
    [
        ["zone", "age", "sex"],
        ["zone", ("zone", "age"), "sex"],
        [("zone", "age"), ("zone", "sex"), ("age", "sex")],
        [("zone", "age", "sex")],
    ],
)
@pytest.mark.parametrize("mean", [False, True])
def test_fractional_counts_and_shares_are_rounded_up_or_down(keys, seed, mean):
    frame, true = projection_of(seed)
    margins = {key: true.groupby([frame[k] for k in np.atleast_1d(key)]).sum()
               for key in keys}  # fmt: skip
    scale = true.sum() if mean else 1.0
    totals = [column_total(k, m / scale, mean=mean) for k, m in margins.items()]
    design = np.full(len(frame), true.mean())
    weights, report = calibrate(
        frame, totals, design_weights=design, integer=True, return_report=True
    )
    np.testing.assert_array_equal(weights % 1, 0)
    assert weights.sum() == pytest.approx(true.sum())
    for key, wanted in margins.items():
        counts = pd.Series(weights).groupby([frame[k] for k in np.atleast_1d(key)])
        assert np.abs(counts.sum() - wanted).max() < 1
    assert report.missed.max() * scale < 1


def test_intervals_without_an_integer_are_rounded_up_or_down():
    frame = projection_of(0)[0]
    narrow = column_total(
        "sex", lower={0: 4000.3, 1: 3000.3}, upper={0: 4000.6, 1: 3500}
    )
    weights = calibrate(frame, narrow, integer=True, return_report=True)[0]
    counts = pd.Series(weights).groupby(frame["sex"]).sum()
    assert counts[0] in (4000, 4001) and 3001 <= counts[1] <= 3500


@pytest.mark.parametrize("seed", SEEDS)
def test_integer_weights_of_shares_keep_the_number_of_rows(seed):
    frame = projection_of(seed)[0]
    shares = {0: 0.917, 1: 0.083}
    request = [column_total("sex", shares, mean=True),
               column_total("age", 2.2, mean=True)]  # fmt: skip
    for some in (request[:1], request):
        weights = calibrate(frame, some, integer=True, return_report=True)[0]
        assert weights.sum() == len(frame)
        counts = pd.Series(weights).groupby(frame["sex"]).sum()
        assert counts.to_dict() == {k: s * len(frame) for k, s in shares.items()}


def test_counts_that_no_integer_weights_have_are_named():
    # Each row is in two of three groups, so that only weights 1/2 give the counts 1.
    frame = pd.DataFrame({"x": [1, 1, 0], "y": [1, 0, 1], "z": [0, 1, 1]})
    counts = {name: {1: 1} for name in frame}
    np.testing.assert_allclose(calibrate(frame, counts), 0.5)
    message = (
        "^No integer weights with all counts.* of [xyz]=1, by 1[.] .* 1 of 3 totals"
    )
    with pytest.warns(UserWarning, match=message):
        calibrate(frame, counts, integer=True)


def test_rounded_counts_give_no_warning():
    frame, true = projection_of(0)
    counts = true.groupby(frame["zone"]).sum()
    weights = calibrate(frame, {"zone": counts}, integer=True)
    sums = pd.Series(weights).groupby(frame["zone"]).sum()
    assert 0 < np.abs(sums - counts).max() < 1


def test_search_for_integer_weights_does_not_depend_on_time(monkeypatch):
    frame, true = projection_of(3)
    keys = [*combinations(frame.columns, 2)]
    margins = {key: true.groupby([frame[k] for k in key]).sum() for key in keys}
    options = []

    def solved(*args, **keywords):
        options.append(dict(keywords["options"]))
        return highs.solved(*args, **keywords)

    monkeypatch.setattr(integers, "solved", solved)
    calibrate(frame, margins, integer=True, return_report=True)
    assert options and all([*each] == ["node_limit"] for each in options)
