"""Marks of columns: what is found, and what new rows keep of it."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import LinearConstraint
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from sklearn_pnl import (
    ColumnConstraint,
    MixupDraws,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
)

SEEDS = 0, 1, 2
SCALERS = [None, StandardScaler(), MinMaxScaler()]


def continuous(seed, n=200, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


def with_column(seed, make, n=200):
    """Two continuous columns, then one that is made."""
    X = continuous(seed, n)
    X[:, 2] = make(np.random.default_rng(seed + 100), n)
    return X


def scaled(X, scaler):
    return (X, lambda rows: rows) if scaler is None else (
        scaler.fit_transform(X), scaler.inverse_transform
    )  # fmt: skip


LATTICES = {
    "cents": (lambda rng, n: np.round(rng.lognormal(3, 1, n), 2), 0.01),
    "halves": (lambda rng, n: rng.permutation(n) / 2, 0.5),
    "whole": (lambda rng, n: rng.permutation(3 * n)[:n] * 1.0, 1.0),
    "hundreds": (lambda rng, n: rng.permutation(3 * n)[:n] * 100 + 37.0, 100.0),
    "sevenths": (lambda rng, n: rng.permutation(5 * n)[:n] / 7 + 0.1, 1 / 7),
}


# --- steps ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scaler", SCALERS, ids=str)
@pytest.mark.parametrize("name", LATTICES)
def test_values_are_whole_multiples_of_the_step(name, scaler, seed):
    make, step = LATTICES[name]
    X = with_column(seed, make)
    given, back = scaled(X, scaler)
    augmenter = PNLAugmenter().fit(given)
    rows = back(augmenter.sample(300, random_state=0))
    away = (rows[:, 2] - X[0, 2]) / step
    assert np.abs(away - np.rint(away)).max() * step <= 1e-9 * np.ptp(X[:, 2])
    # And of no longer step.
    assert np.gcd.reduce(np.rint(away).astype(int)) == 1
    assert not {"x0", "x1"} & augmenter.marks_.descriptions.keys()


@pytest.mark.parametrize("first", ["0.00", "0.01"])
@pytest.mark.parametrize("step", ["0.05", "0.25", "5.00"])
def test_decimals_are_whole_multiples_of_a_step_longer_than_their_places(step, first):
    rng = np.random.default_rng(0)
    step, first = Decimal(step), Decimal(first)
    prices = [first + int(k) * step for k in rng.permutation(900)[:300]]
    X = pd.DataFrame({"price": prices, "x": rng.normal(size=300)})
    rows = PNLAugmenter().fit(X).sample(200, random_state=0)
    assert {(price - first) % step for price in rows["price"]} == {0}
    X["cost"] = [Decimal(int(k)) / 4 for k in rng.permutation(900)[:300]]
    X["sum"] = X["price"] + X["cost"]
    rows = PNLAugmenter().fit(X).sample(200, random_state=0)
    assert (rows["price"] + rows["cost"] == rows["sum"]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(10))
def test_continuous_columns_have_no_marks(seed, dtype):
    X = continuous(seed, 1000, 50).astype(dtype)
    X[:, ::2] = np.exp(3 * X[:, ::2])
    marks = PNLAugmenter().fit(X).marks_
    assert not marks.descriptions
    assert marks.searched


def test_a_step_that_chance_makes_is_none():
    # Three values are always near to multiples of something.
    X = np.column_stack([continuous(0, 3), np.array([0.0, 1.0, np.pi])])
    augmenter = PNLAugmenter(k_neighbors=2).fit(X)
    assert not augmenter.marks_.descriptions


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_totals_of_steps_are_kept_with_their_steps(scaler):
    rng = np.random.default_rng(0)
    X = np.round(rng.lognormal(3, 1, (200, 2)), 2)
    X = np.column_stack([X, X.sum(axis=1), rng.normal(size=200)])
    given, back = scaled(X, scaler)
    augmenter = PNLAugmenter().fit(given)
    assert len(augmenter.invariants_) == 1
    rows = back(augmenter.sample(200, random_state=0))
    assert_allclose(rows[:, 2], rows[:, 0] + rows[:, 1], atol=1e-9 * np.ptp(X[:, 2]))
    assert_allclose(100 * rows[:, :3], np.rint(100 * rows[:, :3]), atol=1e-5)


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_groups_of_indicators_are_of_one_level_after_scalers(scaler):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(3)[rng.integers(0, 3, 90)], rng.normal(size=(90, 2))])
    given, back = scaled(X, scaler)
    rows = back(PNLAugmenter().fit(given).sample(200, random_state=0))
    assert_allclose(np.sort(rows[:, :3], axis=1), [[0, 0, 1]] * 200, atol=1e-9)


@pytest.mark.parametrize("more", [2, 250])
@pytest.mark.parametrize("seed", SEEDS)
def test_levels_after_a_scaler_are_those_of_the_rows_to_the_last_digit(seed, more):
    rng = np.random.default_rng(seed)
    coded = np.eye(4)[rng.choice(4, 123, p=[0.5, 0.3, 0.1, 0.1])]
    X = np.column_stack([coded, rng.normal(size=(123, more))])
    X = StandardScaler().fit_transform(X)
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(100, random_state=0)
    for j in range(4):
        assert np.isin(rows[:, j], X[:, j]).all()
    # So that they can be counted by them.
    low, high = np.unique(X[:, 2]).tolist()
    rows = augmenter.sample(50, 0, totals={2: {low: 41, high: 9}})
    assert np.count_nonzero(rows[:, 2] == high) == 9


def test_a_third_value_that_is_rare_is_one_of_them():
    X = np.zeros((6000, 4))
    X[:, 0] = np.random.default_rng(0).choice([0.0, 4.0], 6000)
    X[5431, 0] = 2.0
    X[:, 1], X[:, 2:] = 4.0 - X[:, 0], continuous(0, 6000, 2)
    augmenter = PNLAugmenter().fit(X)
    assert augmenter.marks_.descriptions["x0"] == "multiples of 2"


@pytest.mark.parametrize("more", [2, 250])
@pytest.mark.parametrize("dtype", [float, np.int64])
@pytest.mark.parametrize("codes", [(-1, 1), (0, 4), (0, 100)])
def test_groups_in_whole_numbers_are_of_one_level(codes, dtype, more):
    rng = np.random.default_rng(0)
    coded = np.where(np.eye(3)[rng.integers(0, 3, 90)], codes[1], codes[0])
    side = rng.choice(codes, 90)
    others = rng.integers(0, 500, (90, more))
    X = np.column_stack([coded, side, sum(codes) - side, others]).astype(dtype)
    rows = PNLAugmenter().fit(X).sample(200, random_state=0)
    assert np.isin(rows[:, :5], codes).all()
    assert_array_equal((rows[:, :3] == codes[1]).sum(axis=1), np.ones(200))
    assert_array_equal(rows[:, 3] + rows[:, 4], np.full(200, sum(codes)))


@pytest.mark.parametrize("scaler", SCALERS[:2], ids=str)
def test_totals_of_hundreds_are_kept_with_their_steps(scaler):
    rng = np.random.default_rng(0)
    X = 100.0 * rng.integers(1, 400, (200, 2))
    X = np.column_stack([X, X.sum(axis=1), rng.normal(size=200)])
    given, back = scaled(X, scaler)
    rows = back(PNLAugmenter().fit(given).sample(200, random_state=0))[:, :3] / 100
    assert_allclose(rows, np.rint(rows), atol=1e-7)
    assert_allclose(rows[:, 2], rows[:, 0] + rows[:, 1], atol=1e-7)


@pytest.mark.parametrize("unit", [0.5, 100.0])
@pytest.mark.parametrize("n_columns", [1, 2])
def test_what_equations_tie_to_a_value_that_is_asked_for_has_no_steps(n_columns, unit):
    rng = np.random.default_rng(0)
    X = unit * rng.integers(1, 40, (200, 3))
    X = np.column_stack([X, X.sum(axis=1), rng.normal(size=200)])
    sums = dict.fromkeys(range(n_columns), 1.0)
    low, high = 20.1 * unit, 20.4 * unit
    # Between two steps.
    for ends in ({"equal": 20.2 * unit}, {"lower": low, "upper": high}):
        asked = ColumnConstraint(sums, **ends)
        rows = PNLAugmenter().fit(X).sample(30, 0, constraints=asked)
        held = rows[:, :n_columns].sum(axis=1)
        assert np.all((held > low - 1e-6 * unit) & (held < high + 1e-6 * unit))
        assert_allclose(rows[:, 3], rows[:, :3].sum(axis=1), rtol=1e-9)


def test_sums_that_steps_do_not_have_leave_the_steps_to_all_rows_but_one():
    rng = np.random.default_rng(0)
    X = np.column_stack([100.0 * rng.permutation(400), rng.normal(size=(400, 2))])
    rows = PNLAugmenter().fit(X).sample(50, 0, totals={0: 1_000_037})
    assert rows[:, 0].sum() == 1_000_037
    assert np.count_nonzero(rows[:, 0] % 100) == 1


def test_few_whole_numbers_have_no_step_that_chance_makes():
    # In nine rows all numbers may well be even.
    X = np.column_stack([continuous(0, 9), np.arange(0, 90, 10) // 10 * 2])
    assert PNLAugmenter().fit(X).marks_.descriptions == {"x3": "whole numbers"}


def test_equations_that_are_no_sums_of_steps_go_first_and_this_is_told():
    rng = np.random.default_rng(0)
    X = np.round(rng.lognormal(3, 1, (200, 2)), 2)
    X = np.column_stack([X, 0.37 * X[:, 0] + np.sqrt(2) * X[:, 1]])
    augmenter = PNLAugmenter().fit(X)
    assert "no sums of steps" in repr(augmenter.marks_)
    rows = augmenter.sample(100, random_state=0)
    wanted = 0.37 * rows[:, 0] + np.sqrt(2) * rows[:, 1]
    assert_allclose(rows[:, 2], wanted, atol=1e-8 * np.ptp(X[:, 2]))


@pytest.mark.parametrize("name", LATTICES)
def test_what_is_asked_for_goes_before_steps(name):
    make, step = LATTICES[name]
    X = with_column(0, make)
    value = float(np.median(X[:, 2])) + (0.3 * step if name != "whole" else 0)
    asked = ColumnConstraint(2, equal=value)
    rows = PNLAugmenter().fit(X).sample(50, 0, constraints=asked)
    assert_allclose(rows[:, 2], value, atol=1e-9 * np.ptp(X[:, 2]))


# --- few values -------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [float, np.float32, np.int64])
def test_values_of_a_column_that_has_few_are_seen_ones(kind, seed):
    levels = np.array([1, 2, 5, 10, 20, 50, 100, 200])
    X = with_column(seed, lambda rng, n: rng.choice(levels, n))
    X = pd.DataFrame(X, columns=list("abc")).astype({"c": kind})
    augmenter = PNLAugmenter().fit(X)
    assert "c: one of 8 values" in repr(augmenter.marks_)
    rows = augmenter.sample(300, random_state=0)
    assert set(rows["c"]) <= set(levels.tolist())
    assert len(set(rows["c"])) > 4
    free = PNLAugmenter(marks=None).fit(X).sample(300, random_state=0)
    assert not set(free["c"]) <= set(levels.tolist())


def test_values_are_those_of_all_classes_within_the_limits_of_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.repeat([0, 1], [350, 50])
    X[:, 1] = rng.choice([0.1, 0.7, 1.9, 3.1, 4.0, 7.5], 400)
    X[y == 1, 1] = rng.choice([0.7, 3.1], 50)
    new = PNLSampler(random_state=0).fit_resample(X, y)[0][400:]
    assert set(new[:, 1]) <= {0.7, 1.9, 3.1}


# --- shared values ----------------------------------------------------------------


SPIKES = {
    "zeros": (lambda rng, n: np.where(rng.random(n) < 0.6, 0, rng.gamma(2, size=n)), 0),
    "cap": (lambda rng, n: np.minimum(rng.gamma(2, size=n), 3.0), 3.0),
    "code": (lambda rng, n: np.where(rng.random(n) < 0.3, -999, rng.normal(size=n)),
             -999),
    "middle": (lambda rng, n: np.where(rng.random(n) < 0.4, 0, rng.normal(size=n)), 0),
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SPIKES)
def test_a_shared_value_keeps_its_share(name, seed):
    make, value = SPIKES[name]
    X = with_column(seed, make, n=400)
    augmenter = PNLAugmenter().fit(X)
    assert_array_equal(augmenter.marks_.spikes[2], [value])
    rows = augmenter.sample(2000, random_state=0)
    known, share = (np.mean(some[:, 2] == value) for some in (X, rows))
    assert abs(share - known) <= 3 * np.sqrt(known * (1 - known) / 400)
    # Others are those of the others, not on the way there.
    others, own = X[X[:, 2] != value, 2], rows[rows[:, 2] != value, 2]
    slack = 0.1 * np.ptp(others) + 1e-9
    assert own.min() >= others.min() - slack
    assert own.max() <= others.max() + slack
    # But where no other row around has one, there is nothing to vary it by.
    assert len(set(own)) > 0.8 * len(own)


def test_a_new_row_mixes_no_number_with_a_shared_value():
    X = with_column(0, SPIKES["zeros"][0])
    augmenter = PNLAugmenter(draws=MixupDraws(noise=0)).fit(X)
    rows, parents = augmenter.sample(500, random_state=0, return_parents=True)
    given = X[parents, 2]
    one = (given == 0).sum(axis=1) == 1
    assert one.any()
    # It has the zero of the one, or the number of the other.
    wanted = np.column_stack([np.zeros(one.sum()), given[one].max(axis=1)])
    assert np.abs(rows[one, 2][:, None] - wanted).min(axis=1).max() < 1e-9
    both = (given == 0).all(axis=1)
    assert_array_equal(rows[both, 2], 0)


def test_what_is_asked_for_goes_before_shared_values():
    X = with_column(0, SPIKES["code"][0])
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(100, 0, constraints=ColumnConstraint(2, lower=-1, upper=1))
    assert np.abs(rows[:, 2]).max() <= 1 + 1e-6
    rows = augmenter.sample(100, 0, constraints=ColumnConstraint(2, equal=-999))
    assert_allclose(rows[:, 2], -999, atol=1e-6)


def test_other_rows_are_measured_as_those_of_fit():
    X = with_column(0, SPIKES["code"][0])
    augmenter = PNLAugmenter().fit(X)
    codes = np.log(augmenter.to_measures(X))
    assert_allclose(codes, augmenter.codes_, atol=1e-12)


# --- missing cells ----------------------------------------------------------------


def holes(seed, n=300, d=4, share=0.15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] += X[:, 0]
    X[rng.random((n, d)) < share] = np.nan
    return X


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("draws", ["mixup", "interpolation", "kde"])
def test_numbers_of_new_rows_are_of_parents_that_have_some(draws, seed):
    X = holes(seed)
    augmenter = PNLAugmenter(draws=draws).fit(X)
    rows, parents = augmenter.sample(500, random_state=0, return_parents=True)
    there, gone = ~np.isnan(rows), np.isnan(X)[parents]
    assert np.all(~gone.all(axis=1)[there])
    # Cells that have nothing to do with each other need not be of one parent.
    assert not (~there[:, None] == gone).all(axis=2).any(axis=1).all()
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    slack = 0.1 * (high - low) + 1e-9
    assert np.all((rows >= low - slack) & (rows <= high + slack) | ~there)


@pytest.mark.parametrize("d", [2, 3, 8])
def test_cells_that_are_missing_by_chance_are_not_missing_more_often(d):
    # Rows with few cells seem near to many: they are a partner of every fourth row.
    shares = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, d))
        X[rng.random(300) < 0.05, 0] = np.nan
        rows = PNLAugmenter().fit(X).sample(2000, random_state=0)
        shares.append([np.isnan(own[:, 0]).mean() for own in (rows, X)])
    new, known = np.mean(shares, axis=0)
    assert 0.9 < new / known < 1.15


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_cells_are_missing_as_often_where_both_parents_may_lack_them(rate):
    shares = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 7))
        X[rng.random(300) < rate, 0] = np.nan
        rows = PNLAugmenter().fit(X).sample(2000, random_state=0)
        shares.append([np.isnan(own[:, 0]).mean() for own in (rows, X)])
    new, known = np.mean(shares, axis=0)
    # Three standard errors of ten shares of 2,000 rows.
    assert abs(new - known) < 3 * np.sqrt(rate * (1 - rate) / 20_000)


def test_cells_that_are_missing_by_chance_are_so_in_batches_of_any_size():
    X, n = holes(0, n=100, d=2), 150_000
    augmenter = PNLAugmenter().fit(X)
    whole = augmenter.sample(n, random_state=0)
    batches = augmenter.iter_samples(n, batch_size=40_000, random_state=0)
    assert_array_equal(np.vstack(list(batches)), whole)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_missing_more_often_in_a_class_is_missing_in_a_parent(seed):
    X, y = holes(seed, n=400), np.arange(400) < 60
    X[:60, 1][np.random.default_rng(seed).random(60) < 0.5] = np.nan
    sampler = PNLSampler(random_state=0)
    sampler.fit_resample(X, y)
    rows, parents = sampler.augmenters_[True].sample(500, 0, return_parents=True)
    lacks, gone = np.isnan(rows[:, 1]), np.isnan(X[:60, 1])[parents]
    assert np.all((lacks[:, None] == gone).any(axis=1))
    assert abs(lacks.mean() - np.isnan(X[:60, 1]).mean()) < 0.1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("draws", ["mixup", "kde"])
def test_marks_that_go_together_are_of_one_parent(draws, seed):
    rng, n = np.random.default_rng(seed), 300
    X = holes(seed, d=5)
    # Missing together; zero together; and missing where a category says so.
    X[np.isnan(X[:, 2]), 3] = X[np.isnan(X[:, 3]), 2] = np.nan
    zero = rng.random(n) < 0.3
    spent = np.where(zero[:, None], 0, rng.gamma(2, size=(n, 2)))
    word = np.where(rng.random(n) < 0.3, "none", rng.choice(["a", "b"], n))
    last = np.where(word == "none", np.nan, rng.normal(size=n))
    frame = pd.DataFrame(np.column_stack([X, spent, last])).assign(word=word)
    frame.columns = frame.columns.astype(str)
    augmenter = PNLAugmenter(draws=draws, categorical_features="auto").fit(frame)
    rows, parents = augmenter.sample(500, random_state=0, return_parents=True)
    missing = rows.isna().to_numpy()
    assert_array_equal(missing[:, 2], missing[:, 3])
    assert_array_equal(rows["5"] == 0, rows["6"] == 0)
    assert_array_equal(rows["7"].isna(), rows["word"] == "none")
    given = frame.isna().to_numpy()[parents]
    assert not (missing[:, None] == given).all(axis=2).any(axis=1).all()


@pytest.mark.parametrize(("n", "n_candidates"), [(60, None), (300, None), (300, 150)])
def test_rare_levels_and_spikes_keep_their_shares(n, n_candidates):
    # Far from all others, they are partners of few rows: detailed balance over pairs of
    # partners leaves each row as many new ones that have its cells as any other.
    shares, draws = [], MixupDraws(n_candidates=n_candidates)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
        level = np.where(rng.permutation(n) < n // 12, "rare", rng.choice([*"uvw"], n))
        X["level"] = pd.Categorical(level)
        spent = rng.permutation(n) < n // 6
        X["spent"] = np.where(spent, 0, 1 + rng.gamma(3.0, size=n))
        augmenter = PNLAugmenter(draws=draws, categorical_features="auto").fit(X)
        rows = augmenter.sample(2000, seed)
        shares += [(rows["level"] == "rare").mean() * 12]
        shares += [(rows["spent"] == 0).mean() * 6]
    assert_allclose(np.reshape(shares, (20, 2)).mean(axis=0), 1, atol=0.05)


@pytest.mark.parametrize("columns", [8, 7])
@pytest.mark.parametrize("n", [60, 300])
def test_rare_flags_dummies_and_one_hot_levels_keep_their_shares(n, columns):
    # Mixed with partners that lack them, and rounded, they were there half as often.
    shares, rare = [], n // 15
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 8))
        X[:, 4] = rng.permutation(n) < rare
        X[:, 5:] = np.eye(3)[np.where(rng.permutation(n) < rare, 0, 1 + (X[:, 0] > 0))]
        # One-hot, or dummies without the last level.
        augmenter = PNLAugmenter().fit(X[:, :columns])
        shares += [augmenter.sample(2000, seed)[:, 4:6].mean(axis=0) * n / rare]
    assert_allclose(np.mean(shares, axis=0), 1, atol=0.06)


def test_numbers_go_with_a_rare_flag_as_in_the_data():
    found = []
    for seed in range(20):
        rng, n = np.random.default_rng(seed), 60
        X = rng.normal(size=(n, 5))
        flag = np.argsort(np.argsort(X[:, 0] + 0.7 * rng.normal(size=n))) >= n - 6
        rows = PNLAugmenter().fit(np.column_stack([X, flag])).sample(4000, seed)
        pairs = (X[:, 0], flag), (rows[:, 0], rows[:, 5])
        found.append([np.corrcoef(*pair)[0, 1] for pair in pairs])
    known, new = np.mean(found, axis=0)
    assert 0.95 < new / known < 1.05


@pytest.mark.parametrize("strategy", [None, "mean", "constant"])
@pytest.mark.parametrize("seed", SEEDS)
def test_indicators_say_which_cells_are_shared_or_missing(strategy, seed):
    rng = np.random.default_rng(seed)
    gone = rng.random((300, 3)) < [0.4, 0.1, 0.07]
    holes = np.where(gone, np.nan, rng.gamma(2, size=(300, 3)))
    imputer = SimpleImputer(strategy=strategy or "mean", add_indicator=True)
    X = imputer.fit_transform(holes)
    fill = imputer.statistics_
    if strategy is None:
        X[:, :3] = holes
    sampler = PNLSampler(random_state=seed, sampling_strategy={True: 600})
    rows = sampler.fit_resample(X, np.arange(300) < 60)[0][300:]
    are = np.isnan(rows[:, :3]) if strategy is None else rows[:, :3] == fill
    assert_array_equal(rows[:, 3:] == 1, are)
    assert "from the parent that shared cells of x0 are from" in str(sampler.marks_)


@pytest.mark.parametrize("n, n_missing", [(10, 3), (20, 3), (1000, 2)])
def test_an_indicator_of_few_missing_cells_says_which(n, n_missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:, 2] = np.arange(n) < n_missing
    X[:n_missing, 1] = np.nan
    rows = PNLAugmenter().fit(X).sample(1000, random_state=0)
    assert_array_equal(np.isnan(rows[:, 1]), rows[:, 2] == 1)


def test_a_level_beyond_its_upper_value_gives_way_to_one_of_a_parent():
    rng = np.random.default_rng(0)
    job = rng.choice(list("abcd"), 200, p=[0.4, 0.3, 0.2, 0.1])
    income = np.where(job == "d", 0, rng.lognormal(8, 0.4, 200))
    # Of one row, so that its upper value is no bound.
    job[np.flatnonzero(job == "a")[0]] = "e"
    X = pd.get_dummies(pd.DataFrame({"income": income, "job": job}), drop_first=True)
    X = StandardScaler().fit_transform(X)
    source = PNLAugmenter().fit(X)._source
    off, on = X.min(axis=0), X.max(axis=0)
    mixed = np.where([False, False, False, True, True], on, off)
    mixed[4] = source.keeper.high[4]
    held = np.array([[off[0], np.nan, np.nan, on[3], np.nan]])
    met, _ = source.keeper.meet(mixed[None], held)
    assert_array_equal(met, [[off[0], off[1], off[2], on[3], off[4]]])


def test_a_level_that_says_what_is_shared_is_on_with_no_other():
    rng = np.random.default_rng(0)
    job = rng.choice(list("abcd"), 400, p=[0.4, 0.3, 0.2, 0.1])
    income = np.where(job == "d", 0, rng.lognormal(8, 0.4, 400))
    X = pd.get_dummies(pd.DataFrame({"income": income, "job": job}), drop_first=True)
    rows = PNLAugmenter().fit(X).sample(1000, random_state=0)
    assert_array_equal(rows["job_d"], rows["income"] == 0)
    assert rows.filter(like="job").sum(axis=1).max() == 1


def test_what_one_parent_lacks_the_other_gives():
    X = holes(0)
    augmenter = PNLAugmenter(draws="interpolation").fit(X)
    rows, parents = augmenter.sample(500, random_state=0, return_parents=True)
    one = np.isnan(X)[parents].sum(axis=1) == 1
    given = np.fmax.reduce(X[parents], axis=1)
    some = one & ~np.isnan(rows)
    assert some.any()
    assert_allclose(rows[some], given[some], atol=1e-9)


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_rows_with_holes_are_near_those_that_they_are_like(rate):
    # Over what both have, most of a row would not count: .88 and .65 were left of .95.
    left = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 4))
        X[:, 1] = 0.95 * X[:, 0] + 0.3 * X[:, 1]
        X[rng.random(X.shape) < rate] = np.nan
        rows = PNLAugmenter().fit(X).sample(2000, random_state=0)
        whole = rows[~np.isnan(rows).any(axis=1)]
        left.append(np.corrcoef(whole[:, 0], whole[:, 1])[0, 1])
    assert np.mean(left) > (0.93 if rate == 0.1 else 0.88)


@pytest.mark.parametrize("named", [None, ["kind"]])
def test_clusters_and_categories_tell_of_what_is_missing(named):
    shares = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        kind = rng.integers(2, size=400)
        X = rng.normal(size=(400, 3)) + 10 * kind[:, None] * [1, 1, 0]
        X[rng.random(X.shape) < 0.2] = np.nan
        X = pd.DataFrame(X, columns=list("abc"))
        if named:
            # All that tells of a then.
            X["b"], X["kind"] = X["c"], np.array(["low", "high"])[kind]
        rows = PNLAugmenter(categorical_features=named).fit(X).sample(2000, 0)
        other = rows["kind"] == "high" if named else rows["b"] > 5
        whole = rows[["a", "b"]].notna().all(axis=1)
        shares.append(((rows["a"] > 5) != other)[whole].mean())
    assert np.mean(shares) < 0.02


def test_wide_rows_with_holes_and_columns_without_a_value():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) + rng.normal(size=(40, 700)) / 4
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 600] = np.nan
    rows = PNLAugmenter(marks="auto").fit(X[:, 550:]).sample(200, random_state=0)
    assert np.isnan(rows[:, 50]).all() and not np.isnan(rows).all(axis=1).any()
    spread = np.nanstd(np.nanmean(rows, axis=1)), np.nanstd(np.nanmean(X, axis=1))
    assert 0.7 < spread[0] / spread[1] < 1.3


def test_a_single_row_with_a_hole_has_nothing_to_be_told_by():
    rows = PNLAugmenter(k_neighbors=1).fit([[1.0, np.nan, 3.0]]).sample(2, 0)
    assert_array_equal(rows, [[1.0, np.nan, 3.0]] * 2)


def test_equations_hold_where_all_their_cells_are_there():
    rng = np.random.default_rng(0)
    X = rng.gamma(2, size=(300, 3))
    X = np.column_stack([X, X.sum(axis=1)])
    X[rng.random(X.shape) < 0.1] = np.nan
    augmenter = PNLAugmenter().fit(X)
    assert len(augmenter.invariants_) == 1
    rows = augmenter.sample(300, random_state=0)
    whole = ~np.isnan(rows).any(axis=1)
    assert 0.4 < whole.mean() < 0.95
    assert_allclose(rows[whole, 3], rows[whole, :3].sum(axis=1), atol=1e-8)
    asked = LinearConstraint([0, 0, 0, 1], 5, 5)
    rows = augmenter.sample(50, 0, constraints=asked)
    assert_allclose(rows[:, 3], 5, atol=1e-8)


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_types_of_frames_stay_and_so_does_what_is_missing(container):
    narwhals = pytest.importorskip("narwhals")
    pytest.importorskip(container)
    rng, n = np.random.default_rng(0), 200
    X = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "count": pd.array(rng.poisson(3, n), dtype="Int64"),
            "flag": pd.array(rng.random(n) < 0.4, dtype="boolean"),
            "day": pd.Timestamp("2026-01-01")
            + pd.to_timedelta(rng.integers(0, 99, n), "D"),
            "word": rng.choice(list("abc"), n),
        }
    )
    for name in X.columns:
        X.loc[rng.random(n) < 0.2, name] = None
    frame = narwhals.from_native(X)
    if container != "pandas":
        made = frame.to_polars() if container == "polars" else frame.to_arrow()
        frame = narwhals.from_native(made)
    y = np.repeat([0, 1], [140, 60])
    for marks in ("auto", None):
        sampler = PNLSampler(categorical_features="auto", marks=marks, random_state=0)
        new, _ = sampler.fit_resample(frame.to_native(), y)
        new = narwhals.from_native(new)
        assert new.schema == frame.schema
        for name in X.columns:
            gone = new[name].is_null()[n:].mean()
            assert 0.02 < gone < 0.5, name


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_samplers_take_rows_with_holes(dtype):
    X, y = holes(0).astype(dtype), np.repeat([0, 1], [250, 50])
    X_all, labels = PNLSampler(random_state=0).fit_resample(X, y)
    assert X_all.dtype == dtype
    assert np.isnan(X_all[300:]).any()
    assert len(labels) == 500
    X_all, targets = PNLRegressionSampler(random_state=0).fit_resample(X, y)
    assert np.isnan(X_all[300:]).any()
    assert np.isfinite(targets).all()


@pytest.mark.parametrize("value", [Decimal("0.25"), True, 3, 0.1], ids=str)
def test_objects_that_a_class_lacks_are_missing_in_its_new_rows(value):
    X = pd.DataFrame({"x": continuous(0, 30)[:, 0]})
    X["some"] = pd.Series([None] * 10 + [value, 2 * value] * 10, dtype=object)
    rows, y = PNLSampler(random_state=0).fit_resample(X, [0] * 10 + [1] * 20)
    assert_array_equal(rows["some"].isna(), np.array(y) == 0)


def test_columns_and_rows_of_nothing_stay_so():
    X = holes(0)
    X[:, 3] = np.nan
    X[5] = np.nan
    rows = PNLAugmenter().fit(X).sample(50, random_state=0)
    assert np.isnan(rows[:, 3]).all()
    assert not np.isnan(rows[:, :3]).all()


def test_infinity_is_refused():
    X = holes(0)
    X[7, 2] = np.inf
    with pytest.raises(ValueError, match="infinity; the first is at row 7, column 2"):
        PNLAugmenter().fit(X)


@pytest.mark.parametrize("batch_size", [1, 37])
def test_batches_and_jobs_change_no_byte(batch_size):
    X = holes(0)
    X[:, 2] = np.where(np.random.default_rng(1).random(300) < 0.5, 0, X[:, 2])
    whole = PNLAugmenter().fit(X).sample(100, random_state=0)
    augmenter = PNLAugmenter(n_jobs=2).fit(X)
    batches = augmenter.iter_samples(100, batch_size, random_state=0)
    assert_array_equal(np.vstack(list(batches)), whole)


# --- copies -----------------------------------------------------------------------


def copied(rows, known):
    known = {row.tobytes() for row in known + 0.0}
    return np.mean([row.tobytes() in known for row in rows + 0.0])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("means", [(3, 5, 8, 2), (1, 2, 1, 1), (20, 30, 5, 4, 2)])
def test_rows_of_whole_numbers_are_copies_no_more_often_than_fresh_ones(means, seed):
    rng = np.random.default_rng(seed)
    X, fresh = (rng.poisson(means, (n, len(means))) * 1.0 for n in (300, 4000))
    rows = PNLAugmenter().fit(X).sample(4000, random_state=0)
    assert_array_equal(rows, np.rint(rows))
    known = copied(fresh, X)
    assert copied(rows, X) <= known + 2 * np.sqrt(0.25 / 300)
    # What the guard is for: rounding alone makes many.
    if known < 0.3:
        raw = np.rint(PNLAugmenter(marks=None).fit(X).sample(4000, random_state=0))
        assert copied(raw, X) > known


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_would_be_copies_flip_no_flag_that_parents_share(seed):
    # Beside groups of levels it is the only column that may have another value.
    rng = np.random.default_rng(seed)
    groups = [np.eye(4)[rng.integers(0, 4, 60)] for _ in range(6)]
    X = np.column_stack([*groups, rng.random(60) < 0.1])
    rows = PNLAugmenter().fit(X).sample(1000, random_state=seed)
    assert abs(rows[:, -1].mean() - X[:, -1].mean()) < 0.06


def test_steps_of_single_precision_reach_the_value_of_a_class():
    # The step that fits the values is .01 but for 5e-10 of it.
    shares = np.zeros(53)
    shares[:3], shares[23:27] = 1, [0.07, 0.05, 0.02, 0.04]
    X = np.column_stack([shares, np.random.default_rng(0).random(53)])
    sampler = PNLSampler(random_state=0)
    rows = sampler.fit_resample(X.astype(np.float32), np.arange(53) < 3)[0][53:]
    assert sampler.marks_.lattice.steps[0] == pytest.approx(0.01)
    assert np.all(rows[:, 0] == 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_constant_in_a_class_stays_so_beside_steps_that_values_miss(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 40, 24) * 1.0
    b = rng.choice(np.array([0.1, 0.5, 2.5], np.float32), 24).astype(float)
    a[:4], b[:4] = 22, 0.5
    X, y = np.column_stack([a, b - a, rng.normal(size=24)]), np.arange(24) < 4
    sampler = PNLSampler(random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="5 neighbours")
        rows = sampler.fit_resample(X, y)[0][24:]
    assert "steps of" in sampler.marks_.descriptions["x1"]
    assert_array_equal(rows[:, 1], -21.5)


def test_sums_of_decimals_are_decimals():
    """A sum of cents is off the nearest cents by roundings of its terms."""
    cents = np.random.default_rng(0).integers(0, 10**5, (300, 4)) / 100
    X = np.column_stack([cents.sum(axis=1), cents[:, 0]])
    assert np.any(X[:, 0] != X[:, 0].round(2))
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(200, random_state=0)
    assert len(augmenter.marks_.descriptions) == 2
    np.testing.assert_allclose(rows, rows.round(2), rtol=1e-15)
