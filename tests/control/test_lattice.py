"""Whole numbers: they stay whole, with the equations and constraints about them."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _tables_of_equations import make
from numpy.testing import assert_allclose
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from sklearn_pnl import (
    ColumnConstraint,
    KernelDraws,
    MixupDraws,
    PNLAugmenter,
    PNLSampler,
    adjust,
)
from sklearn_pnl.control.lattice import Lattice, nearest_of
from sklearn_pnl.control.system import LinearSystem


def test_frames_tell_their_columns_and_keep_whole_numbers():
    rng = np.random.default_rng(0)
    parts = rng.poisson(4, size=(300, 3))
    frame = pd.DataFrame(parts, columns=["a", "b", "c"])
    frame.insert(0, "total", frame.sum(axis=1))
    frame["share"] = rng.uniform(size=300)
    frame["rest"] = 1 - frame["share"]
    augmenter = PNLAugmenter().fit(frame)
    assert "total = a + b + c" in augmenter.invariants_.descriptions
    rows = augmenter.sample(200, random_state=0)
    assert rows.dtypes.equals(frame.dtypes)
    np.testing.assert_array_equal(rows["total"], rows[["a", "b", "c"]].sum(axis=1))
    np.testing.assert_allclose(rows["share"] + rows["rest"], 1, atol=1e-9)
    assert rows["total"].nunique() > 3
    broken = PNLAugmenter(invariants=None).fit(frame).sample(200, random_state=0)
    assert np.any(broken["total"] != broken[["a", "b", "c"]].sum(axis=1))


def test_nested_totals_of_whole_numbers():
    rng = np.random.default_rng(1)
    parts = rng.poisson(6, size=(200, 5))
    sums = np.column_stack([parts[:, :2].sum(axis=1), parts[:, 2:].sum(axis=1)])
    X = np.column_stack([sums.sum(axis=1), sums, parts])
    rows = PNLAugmenter().fit(X).sample(300, random_state=0)
    assert rows.dtype == X.dtype
    np.testing.assert_array_equal(rows[:, 0], rows[:, 1] + rows[:, 2])
    np.testing.assert_array_equal(rows[:, 1], rows[:, 3:5].sum(axis=1))
    np.testing.assert_array_equal(rows[:, 2], rows[:, 5:].sum(axis=1))


def test_constraints_on_one_hot_groups_are_met_or_refused():
    X, a, _ = make("one_hot", 1)
    first, second, *_ = map(int, np.flatnonzero(a[0]))
    augmenter = PNLAugmenter().fit(X)

    def sample(columns, equal):
        asked = ColumnConstraint(columns, equal=equal)
        return augmenter.sample(100, random_state=0, constraints=asked)

    np.testing.assert_array_equal(sample(first, 1)[:, first], 1)
    either = sample({first: 1, second: 1}, 1)[:, [first, second]]
    np.testing.assert_array_equal(either.sum(axis=1), 1)
    assert either[:, 0].std() > 0
    with pytest.raises(ValueError, match="whole numbers"):
        sample(first, 0.5)


def test_constraints_in_whole_numbers():
    rng = np.random.default_rng(0)
    X = rng.poisson(5, size=(300, 3))
    X = np.column_stack([X.sum(axis=1), X])
    augmenter = PNLAugmenter().fit(X)
    asked = ColumnConstraint(0, equal=18)
    rows = augmenter.sample(100, random_state=0, constraints=asked)
    assert rows.dtype == X.dtype
    np.testing.assert_array_equal(rows[:, 0], 18)
    np.testing.assert_array_equal(rows[:, 1:].sum(axis=1), 18)
    with pytest.raises(ValueError, match="whole numbers"):
        augmenter.sample(5, random_state=0, constraints=ColumnConstraint(0, equal=9.5))


def test_a_weighted_sum_of_whole_numbers_is_kept():
    # Rounding its terms would break it: the sum follows from them.
    X = np.random.default_rng(0).poisson(6, size=(200, 3))
    X = np.column_stack([X, 2 * X[:, 0] + 3 * X[:, 1], X.sum(axis=1)])
    y = np.arange(200) < 40
    new = PNLAugmenter().fit(X).sample(100, random_state=0)
    resampled, _ = PNLSampler(random_state=0).fit_resample(X, y)
    for rows in (new, resampled[200:]):
        assert rows.dtype == X.dtype
        np.testing.assert_array_equal(rows[:, 4], rows[:, :3].sum(axis=1))
        np.testing.assert_array_equal(rows[:, 3], rows[:, :2] @ [2, 3])
    assert len(np.unique(new, axis=0)) > 50


def test_sums_of_whole_numbers_and_others():
    # A copy plus noise: the column in double precision takes what rounding leaves.
    rng = np.random.default_rng(0)
    a, b = rng.poisson(9, size=(2, 100))
    X = np.column_stack([a, b, 2 * a + 3 * b, rng.normal(size=100), a]).astype(float)
    X[:, 4] += X[:, 3]
    rows = PNLAugmenter().fit(X).sample(200, random_state=0)
    np.testing.assert_array_equal(rows[:, :3], np.rint(rows[:, :3]))
    np.testing.assert_array_equal(rows[:, 2], rows[:, :2] @ [2, 3])
    np.testing.assert_allclose(rows[:, 4], rows[:, 0] + rows[:, 3], atol=1e-8)


@pytest.mark.parametrize("dtype", [float, np.int64, np.float32])
@pytest.mark.parametrize("seed", range(4))
def test_parts_add_up_to_totals_of_totals_and_to_a_constant(seed, dtype):
    rng = np.random.default_rng(seed)
    parts = rng.poisson(4, size=(300, 6))
    s1, s2 = parts[:, :3].sum(axis=1), parts[:, 3:].sum(axis=1)
    hours = rng.multinomial(24, [0.2, 0.5, 0.3], 300)
    X = np.column_stack([s1 + s2, s1, s2, parts, hours]).astype(dtype)
    augmenter = PNLAugmenter(range_slack=0).fit(X)
    assert len(augmenter.invariants_) == 4
    rows = augmenter.sample(100, random_state=seed)
    assert rows.dtype == X.dtype
    np.testing.assert_array_equal(rows, np.rint(rows))
    assert augmenter.invariants_.violation(rows).max() == 0
    assert np.all((rows >= X.min(axis=0)) & (rows <= X.max(axis=0)))


def test_totals_that_are_parts_of_each_other_are_not_rounded_together():
    # The first is a part of the second, and the second of the first.
    a = np.array([[1.0, -1, -1, 0], [-1, 1, 0, -1]])
    system = LinearSystem.equations(a, np.zeros(2), "abcd", np.ones(4))
    lattice = Lattice(np.ones(4), np.zeros(4))
    assert len(lattice.totals(system)) < 2
    rows = lattice.rounded(np.array([[1.2, 1.2, 0, 0]]), lattice.totals(system))
    np.testing.assert_array_equal(rows, [[1, 1, 0, 0]])


@pytest.mark.parametrize("seed", range(4))
def test_rounding_keeps_totals_and_moves_no_value_by_a_step(seed):
    rng = np.random.default_rng(seed)
    parts = rng.gamma(2.0, size=(200, 5)) * 3
    rows = np.column_stack([parts.sum(axis=1), parts])
    a = np.array([[1.0, -1, -1, -1, -1, -1]])
    system = LinearSystem.equations(a, [0.0], "tabcde", np.ones(6))
    lattice = Lattice(np.full(6, 0.5), np.full(6, 0.25))
    # The origins of both sides differ by 4 quarters: two steps.
    rounded = lattice.rounded(rows.copy(), lattice.totals(system))
    steps = (rounded - 0.25) / 0.5
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-12)
    np.testing.assert_allclose(rounded @ a[0], 0, atol=1e-12)
    assert np.abs(rounded - rows)[:, 1:].max() < 0.5


def test_an_equation_that_no_whole_numbers_have_is_told():
    # Half of them odd, so that no training row is asked to be whole there.
    rng = np.random.default_rng(0)
    X = rng.poisson(5, size=(100, 3))
    augmenter = PNLAugmenter().fit(X)
    asked = ColumnConstraint({0: 2, 1: 2}, equal=11)
    with pytest.raises(ValueError, match="2 x0 . 2 x1 asks for 11, which whole"):
        augmenter.sample(5, random_state=0, constraints=asked)
    with pytest.raises(ValueError, match="none of 5 new rows"):
        augmenter.sample(5, random_state=0, constraints=asked, on_unmet="drop")


def test_rows_whose_values_can_be_had_are_left_by_drop():
    X = np.random.default_rng(0).poisson(5, size=(100, 2))
    asked = ColumnConstraint(0, equal=np.array([3, 4.5, 6, 5, 2.5]))
    rows = (
        PNLAugmenter()
        .fit(X)
        .sample(5, random_state=0, constraints=asked, on_unmet="drop")
    )
    np.testing.assert_array_equal(rows[:, 0], [3, 6, 5])


# --- what once was wrong --------------------------------------------------------


@pytest.mark.parametrize("total", ["float64", "float32", "int64"])
def test_a_total_of_whole_parts_in_another_type(total):
    # As pandas makes it of a column that missed a value.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 9, (200, 3)), columns=list("abc"))
    frame["t"] = frame.sum(axis=1).astype(total)
    y = (rng.uniform(size=200) < 0.2).astype(int)
    new = PNLSampler(random_state=0).fit_resample(frame, y)[0].iloc[200:]
    np.testing.assert_array_equal(new["t"], new[["a", "b", "c"]].sum(axis=1))
    assert new.dtypes.equals(frame.dtypes)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("size", [10**3, 10**6, 10**8])
def test_between_two_whole_numbers_there_is_none(size, dtype):
    X = np.random.default_rng(0).integers(0, size, size=(200, 2)).astype(dtype)
    augmenter = PNLAugmenter().fit(X)
    between = ColumnConstraint(0, lower=size // 2 + 0.3, upper=size // 2 + 0.7)
    with pytest.raises(ValueError, match="whole numbers .* cannot give"):
        augmenter.sample(20, 0, constraints=between)
    asked = ColumnConstraint(0, lower=size // 2 + 0.3, upper=size // 2 + 1.7)
    rows = augmenter.sample(20, 0, constraints=asked)
    np.testing.assert_array_equal(rows[:, 0], size // 2 + 1)


@pytest.mark.parametrize("width", [0, 1, 10])
@pytest.mark.parametrize("d", [2, 6, 12])
def test_intervals_of_sums_that_hold_whole_numbers_are_met(d, width):
    X = np.random.default_rng(0).poisson(20, (50, d))
    middle = int(np.median(X.sum(axis=1)))
    asked = ColumnConstraint(
        dict.fromkeys(range(d), 1), lower=middle - width, upper=middle + width
    )
    rows = PNLAugmenter().fit(X).sample(100, 0, constraints=asked)
    assert np.abs(rows.sum(axis=1) - middle).max() <= width
    assert len(np.unique(rows, axis=0)) > 10


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("bandwidth", [0.5, 1.0, 2.0])
def test_totals_stay_within_the_type(dtype, bandwidth):
    from sklearn_pnl import KernelDraws

    top = np.iinfo(dtype).max // 4
    parts = np.random.default_rng(0).integers(0, top, size=(200, 4))
    X = np.column_stack([parts, parts.sum(axis=1)]).astype(dtype)
    augmenter = PNLAugmenter(range_slack=None, draws=KernelDraws(bandwidth)).fit(X)
    rows = augmenter.sample(500, 0).astype(int)
    np.testing.assert_array_equal(rows[:, 4], rows[:, :4].sum(axis=1))


@pytest.mark.parametrize("value", [2**53 + 1, 2**60 + 1, -(2**62) - 1])
def test_large_constants_of_integers_stay(value):
    frame = pd.DataFrame(
        {"tenant": value, "x": np.random.default_rng(0).normal(size=30)}
    )
    y = np.r_[np.zeros(20, int), np.ones(10, int)]
    resampled, _ = PNLSampler(random_state=0).fit_resample(frame, y)
    assert set(resampled["tenant"]) == {value}


@pytest.mark.parametrize("value", [3.3, 1e9, 1e15])
def test_constants_stay_in_single_precision_whatever_is_drawn(value):
    X = np.random.default_rng(0).gamma(2.0, value, size=(40, 4)).astype(np.float32)
    X[:, 1:3] = value, value / 10
    augmenter = PNLAugmenter(2, embedding=None, draws=KernelDraws()).fit(X)
    assert np.all(augmenter.sample(50, random_state=0)[:, 1:3] == X[0, 1:3])


@pytest.mark.parametrize("draws", [MixupDraws(), KernelDraws()])
def test_steps_below_all_normal_numbers_are_none(draws):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.gamma(2.0, size=30), 1e-310 * rng.integers(0, 50, 30)])
    rows = PNLAugmenter(draws=draws, range_slack=None).fit(X).sample(50, random_state=0)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("column", [0, 3])
@pytest.mark.parametrize("scaler", [None, StandardScaler(), MinMaxScaler()])
def test_columns_asked_for_values_on_their_steps_keep_them(column, scaler, monkeypatch):
    cents = np.random.default_rng(0).integers(100, [99_999, 5_000, 30_000], (300, 3))
    X = np.column_stack([cents, cents.sum(axis=1)]) / 100
    scaler = FunctionTransformer() if scaler is None else scaler
    augmenter = PNLAugmenter().fit(scaler.fit_transform(X))

    def refuse(*_):
        raise AssertionError("Rounding some parts up and others down does it.")

    monkeypatch.setattr("sklearn_pnl.control.meeting.programme", refuse)
    # To the last digit, also where steps of another unit round to others.
    value = scaler.transform(X)[5, column]
    asked = ColumnConstraint(column, equal=value)
    rows = augmenter.sample(200, random_state=0, constraints=asked)
    assert set(rows[:, column]) == {value}
    rows = scaler.inverse_transform(rows)
    assert_allclose(100 * rows, np.rint(100 * rows), atol=1e-6)
    assert_allclose(rows[:, :3].sum(axis=1), rows[:, 3], rtol=1e-12)


def shares_in_tenths():
    parts = np.random.default_rng(0).multinomial(10, [0.2, 0.3, 0.5], size=100)
    return {
        k: [Decimal(int(v)) / 10 for v in c]
        for k, c in zip("abc", parts.T, strict=True)
    }


def test_totals_of_decimals_are_kept():
    augmenter = PNLAugmenter().fit(pd.DataFrame(shares_in_tenths()))
    assert set(augmenter.sample(200, 0).sum(axis=1)) == {Decimal(1)}
    asked = ColumnConstraint("a", equal=0.3)
    assert set(augmenter.sample(20, 0, constraints=asked)["a"]) == {Decimal("0.3")}


def test_decimals_have_as_many_places_as_are_asked_for_if_their_type_does():
    asked = {"constraints": ColumnConstraint("a", equal=0.25)}
    rows = PNLAugmenter().fit(pd.DataFrame(shares_in_tenths())).sample(5, 0, **asked)
    assert set(rows["a"]) == {Decimal("0.25")}
    assert all(abs(total - 1) < 1e-15 for total in rows.sum(axis=1))
    tenths = pl.DataFrame(shares_in_tenths(), dict.fromkeys("abc", pl.Decimal(9, 1)))
    with pytest.raises(ValueError, match="asks for 0.25, which .* multiples of their"):
        PNLAugmenter().fit(tenths).sample(5, 0, **asked)


def test_large_whole_numbers_in_half_precision():
    # Above 2048 they are even.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.integers(-3000, 4000, 60).astype(np.float16),
            "b": rng.integers(0, 2, 60),
        }
    )
    asked = ColumnConstraint({"a": 1, "b": 1}, equal=3000)
    rows = PNLAugmenter().fit(frame).sample(30, 0, constraints=asked)
    assert rows["a"].dtype == np.float16
    assert (rows["a"].astype(float) + rows["b"] - 3000).abs().max() <= 2


@pytest.mark.filterwarnings("ignore:.*Neighbours were asked for.*")
@pytest.mark.parametrize("seed", range(20))
def test_decimals_of_a_class_of_one_row_are_within_its_limits(seed):
    rng = np.random.default_rng(seed)
    prices = [Decimal(int(v)) / 100 for v in rng.integers(0, 999, 30)]
    X = pd.DataFrame({"price": prices, "x": rng.normal(size=30)})
    new, _ = PNLSampler(random_state=0).fit_resample(X, [0] + [1] * 29)
    assert set(new["price"][30:]) == {prices[0]}


@pytest.mark.parametrize("n", [5, 4000])
@pytest.mark.parametrize("seed", range(3))
def test_nearest_values_of_grids_are_those_of_all_differences(n, seed):
    """The lower of two that are as near, also where many values are looked up."""
    rng = np.random.default_rng(seed)
    grid = np.unique(rng.integers(-30, 30, 20)).astype(float)
    values = np.concatenate([rng.normal(0, 25, n), rng.integers(-80, 80, n) / 2])
    slow = grid[np.abs(values[:, None] - grid).argmin(axis=1)]
    np.testing.assert_array_equal(nearest_of(grid, values), slow)
    values[::3] = np.nan
    known = ~np.isnan(values)
    np.testing.assert_array_equal(nearest_of(grid, values)[known], slow[known])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_so_large_that_all_are_whole_are_not_taken_for_counts(dtype):
    unit = 1e16 if dtype == "float64" else 1e8
    X = (np.random.default_rng(0).gamma(3.0, size=(40, 3)) + 0.2) * unit
    X = X.astype(dtype)
    total = float(1.1 * X[:, 0].astype(float).sum())
    for rows in (
        adjust(X, totals={0: total}),
        PNLAugmenter().fit(X).sample(44, random_state=0, totals={0: total}),
    ):
        assert rows.dtype == dtype
        reached = rows[:, 0].astype(float).sum()
        assert reached == pytest.approx(total, rel=1e-9 if dtype == "float64" else 1e-6)
