"""New rows that keep what all training rows keep, and take what is asked of them."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import LinearConstraint, minimize
from scipy.special import logsumexp
from sklearn_pnl.conditioning import Condition, _Segments

from sklearn_pnl import (
    BackwardProjector,
    ColumnConstraint,
    MixupDraws,
    PNLAugmenter,
    PNLSampler,
)
from sklearn_pnl.control import collect_constraints, find_invariants, meet_constraints
from sklearn_pnl.draws import TrainingCodes
from sklearn_pnl.geometry import RakingError

# --- tables whose equations are known -------------------------------------------


def rows_of_sums(members, n_features):
    """Coefficients ``total - parts`` from dicts of a total to its parts."""
    a = np.zeros((len(members), n_features))
    for k, (total, parts) in enumerate(members.items()):
        a[k, total], a[k, parts] = 1, -1
    return a


def totals(rng, n):
    """Two or three totals of two to five parts each, and a feature on its own."""
    columns, members = [], {}
    for _ in range(rng.integers(2, 4)):
        parts = rng.gamma(2.0, size=(n, rng.integers(2, 6))) * 10 ** rng.uniform(-2, 2)
        first = len(columns)
        members[first] = list(range(first + 1, first + 1 + parts.shape[1]))
        columns += [parts.sum(axis=1), *parts.T]
    X = np.column_stack([*columns, rng.normal(size=n)])
    return X, rows_of_sums(members, X.shape[1]), np.zeros(len(members))


def subtotals(rng, n):
    """A total of subtotals, each of which has parts."""
    groups = [rng.gamma(1.0, size=(n, k)) for k in rng.integers(2, 5, size=3)]
    sums = np.column_stack([part.sum(axis=1) for part in groups])
    X = np.column_stack([sums.sum(axis=1), sums, *groups])
    members, first = {0: [1, 2, 3]}, 4
    for k, part in enumerate(groups):
        members[1 + k] = list(range(first, first + part.shape[1]))
        first += part.shape[1]
    return X, rows_of_sums(members, X.shape[1]), np.zeros(4)


def compositions(rng, n):
    """Shares that sum to 1 and percentages that sum to 100."""
    k, m = rng.integers(3, 6, size=2)
    X = np.hstack([rng.dirichlet(np.ones(k), n), 100 * rng.dirichlet(np.ones(m), n)])
    a = np.zeros((2, k + m))
    a[0, :k], a[1, k:] = 1, 1
    return X, a, np.array([1.0, 100.0])


def one_hot(rng, n):
    """Two categories, and numbers."""
    k, m = rng.integers(3, 6, size=2)
    groups = [np.eye(size)[rng.integers(size, size=n)] for size in (k, m)]
    X = np.column_stack([*groups, rng.normal(size=(n, 2))])
    a = np.zeros((2, X.shape[1]))
    a[0, :k], a[1, k : k + m] = 1, 1
    return X, a, np.ones(2)


def copies(rng, n):
    """A copy, the same in other units, a constant, and a balance that makes a sum."""
    free = rng.normal(size=(n, 3)) * [1, 50, 1e-3]
    X = np.column_stack(
        [
            free,
            free[:, 0],
            1.8 * free[:, 1] + 32,
            np.full(n, 7.0),
            free[:, :2].sum(axis=1),
        ]
    )
    a = np.zeros((4, 7))
    a[0, [0, 3]], a[1, [1, 4]], a[2, 5] = (1, -1), (-1.8, 1), 1
    a[3, [0, 1, 6]] = 1, 1, -1
    return X, a, np.array([0.0, 32.0, 7.0, 0.0])


TABLES = {f.__name__: f for f in (totals, subtotals, compositions, one_hot, copies)}


def make(kind, seed, n=160):
    """A table with its columns in random order, and its equations."""
    rng = np.random.default_rng([seed, len(kind)])
    X, a, b = TABLES[kind](rng, n)
    order = rng.permutation(X.shape[1])
    return X[:, order], a[:, order], b


def worst(rows, X, a, b):
    """Largest violation, as a share of the range of the equation's largest term."""
    scale = (np.abs(a) * np.ptp(X, axis=0)).max(axis=1)
    scale = np.where(scale > 0, scale, np.abs(b))
    return (np.abs(np.asarray(rows) @ a.T - b) / scale).max()


# --- invariants -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", TABLES)
def test_new_rows_keep_what_all_training_rows_keep(kind, seed):
    X, a, b = make(kind, seed)
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(200, random_state=seed)
    assert worst(rows, X, a, b) <= 1e-9
    assert augmenter.invariants_.violation(rows).max() <= 1e-9
    assert len(augmenter.invariants_) == len(a)
    margin = 0.1 * np.ptp(X, axis=0) + 1e-9
    assert np.all((rows >= X.min(axis=0) - margin) & (rows <= X.max(axis=0) + margin))
    # They are new rows.
    assert len(np.unique(rows.round(12), axis=0)) > 100
    # "kde" moves each coordinate by itself, so that even copies part.
    free = PNLAugmenter(invariants=None, draws="kde", margin=None).fit(X)
    assert worst(free.sample(200, random_state=seed), X, a, b) > 1e-3


@pytest.mark.parametrize("kind", ["totals", "subtotals", "compositions", "one_hot"])
def test_the_default_breaks_equations_that_it_is_not_told_of(kind):
    X, a, b = make(kind, 0)
    free = PNLAugmenter(invariants=None).fit(X)
    assert len(free.invariants_) == 0
    assert worst(free.sample(200, random_state=0), X, a, b) > 0.01


SETTINGS = {
    "order 1": {"order": 1},
    "reshaper": {"reshaper": "prime"},
    "kde": {"draws": "kde"},
    "order 1, kde": {"order": 1, "draws": "kde"},
    "mixture": {"local_manifold": "mixture"},
    "no margin": {"margin": 0},
    "any range": {"margin": None},
    "small offset": {"offset": 1e-3},
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", TABLES)
def test_equations_are_kept_in_every_setting(kind, settings):
    X, a, b = make(kind, 3)
    augmenter = PNLAugmenter(**SETTINGS[settings]).fit(X)
    assert worst(augmenter.sample(120, random_state=0), X, a, b) <= 1e-9


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", TABLES)
def test_the_sampler_finds_equations_in_the_rows_of_all_classes(kind, seed):
    X, a, b = make(kind, seed)
    # The rare class alone has too few rows to tell an equation from chance.
    y = np.r_[np.ones(12, int), np.zeros(len(X) - 12, int)]
    sampler = PNLSampler(random_state=seed)
    resampled, _ = sampler.fit_resample(X, y)
    assert len(resampled) > len(X)
    assert worst(resampled[len(X) :], X, a, b) <= 1e-9
    assert len(sampler.invariants_) == len(a)
    assert sampler.augmenters_[1].invariants_ is sampler.invariants_


@pytest.mark.parametrize("order", ["auto", None, 2])
def test_sums_over_an_axis_of_rows_with_two(order):
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(5), (150, 4))
    rows = PNLAugmenter(order, offset=0.1).fit(X).sample(100, random_state=0)
    assert rows.shape == (100, 4, 5)
    np.testing.assert_allclose(rows.sum(axis=2), 1, atol=1e-9)
    free = PNLAugmenter(order, offset=0.1, invariants=None).fit(X)
    off = free.sample(100, random_state=0).sum(axis=2) - 1
    assert np.abs(off).max() > 1e-2


def test_no_equation_costs_no_change():
    X = np.random.default_rng(0).normal(size=(60, 5))
    kept, free = (PNLAugmenter(invariants=i).fit(X) for i in ("auto", None))
    assert len(kept.invariants_) == 0
    np.testing.assert_array_equal(
        kept.sample(50, random_state=0), free.sample(50, random_state=0)
    )


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


@pytest.mark.parametrize("kind", ["parts", "shares"])
def test_zeros_that_parents_share_stay_zeros(kind):
    rng = np.random.default_rng(0)
    parts = rng.gamma(1.0, size=(200, 5)) * (rng.random((200, 5)) < 0.5)
    parts[:, 0] += 0.1
    total = parts.sum(axis=1, keepdims=True)
    X = np.hstack([total, parts]) if kind == "parts" else parts / total
    augmenter = PNLAugmenter().fit(X)
    rows, parents = augmenter.sample(300, random_state=0, return_parents=True)
    shared = (X[parents] == 0).all(axis=1)
    assert shared.mean() > 0.1
    np.testing.assert_array_equal(rows[shared], 0)
    assert augmenter.invariants_.violation(rows).max() <= 1e-9
    # A constraint that nothing else can meet moves them all the same.
    empty = shared.argmax() % X.shape[1]
    asked = ColumnConstraint(int(empty), equal=0.05)
    rows = augmenter.sample(50, random_state=0, constraints=asked)
    np.testing.assert_allclose(rows[:, empty], 0.05, atol=1e-9)


def test_values_that_stay_move_where_they_must():
    asked = collect_constraints(ColumnConstraint({0: 1, 1: 1, 2: 1}, equal=1), 3)
    rows, still = np.array([[0, 0.2, 0.3], [0, 0.1, 0.1]]), np.zeros((2, 3), bool)
    still[0, 0] = still[1] = True
    met = meet_constraints(
        rows, asked, np.zeros(3), np.ones(3), offset=0.1, still=still
    )
    assert not met.reasons
    np.testing.assert_allclose(met.rows.sum(axis=1), 1, atol=1e-9)
    assert met.rows[0, 0] == 0
    assert np.all(met.rows[1] > rows[1])
    free = meet_constraints(rows, asked, np.zeros(3), np.ones(3), offset=0.1).rows
    assert free[0, 0] > 0
    np.testing.assert_allclose(met.rows[1], free[1])


def test_equations_that_whole_numbers_cannot_keep_are_told():
    X = np.random.default_rng(0).poisson(6, size=(200, 3))
    X = np.column_stack([X, 2 * X[:, 0] + 3 * X[:, 1], X.sum(axis=1)])
    y = np.arange(200) < 40
    augmenter, sampler = PNLAugmenter().fit(X), PNLSampler(random_state=0)
    sampler.fit_resample(X, y)
    for found in (augmenter.invariants_, sampler.invariants_):
        assert "not exactly after it: x3 = 2 x0 + 3 x1." in found.note
    rows = augmenter.sample(100, random_state=0)
    np.testing.assert_array_equal(rows[:, 4], rows[:, :3].sum(axis=1))
    assert np.abs(rows[:, 3] - rows[:, :2] @ [2, 3]).max() > 0
    assert not PNLAugmenter().fit(X[:, [0, 1, 2, 4]]).invariants_.note
    assert not PNLAugmenter().fit(X.astype(float)).invariants_.note
    # A copy is a total of one part.
    X[:, 3] = X[:, 0]
    assert not PNLAugmenter().fit(X).invariants_.note


def test_one_hot_groups_stay_categories():
    X, a, _ = make("one_hot", 1)
    rows = PNLAugmenter().fit(X).sample(200, random_state=0)
    for group in a:
        part = rows[:, group != 0]
        assert set(np.unique(part)) == {0.0, 1.0}
        np.testing.assert_array_equal(part.sum(axis=1), 1)


def test_groups_of_groups_are_found_and_kept_together():
    # Towns are in counties, counties in one of two countries; equations need not name
    # the towns, whose sum follows from the others.
    rng = np.random.default_rng(0)
    town = rng.integers(0, 7, 300)
    county = np.array([0, 0, 1, 1, 2, 2, 3])[town]
    country = np.array([0, 0, 1, 1])[county]
    X = np.column_stack(
        [*(np.eye(k)[g] for k, g in ((2, country), (4, county), (7, town))), town * 1.5]
    )
    X = np.column_stack([X, rng.normal(size=(300, 2))])
    augmenter = PNLAugmenter().fit(X)
    ends = np.cumsum([0, 2, 4, 7])
    for group in augmenter.invariants_.one_hot_groups:
        np.testing.assert_array_equal(X[:, group].sum(axis=1), 1)
    rows = augmenter.sample(300, random_state=0)
    groups = [rows[:, a:b] for a, b in pairwise(ends)]
    for group in groups:
        assert set(np.unique(group)) == {0.0, 1.0}
        np.testing.assert_array_equal(group.sum(axis=1), 1)
    known = {tuple(row) for row in X[:, :14]}
    assert {tuple(row) for row in rows[:, :14].round(6)} <= known


def test_an_indicator_in_another_equation_is_kept_with_it():
    rng = np.random.default_rng(0)
    flag, a = rng.integers(0, 2, 80), rng.normal(size=(80, 2))
    X = np.column_stack([flag, 1 - flag, a, flag + a.sum(axis=1)])
    augmenter = PNLAugmenter(margin=0).fit(X)
    assert augmenter.invariants_.one_hot_groups == ((0, 1),)
    rows = augmenter.sample(200, random_state=0)
    np.testing.assert_array_equal(np.sort(rows[:, :2], axis=1), [[0, 1]] * 200)
    assert augmenter.invariants_.violation(rows).max() < 1e-9


def test_constraints_on_one_hot_groups_are_met_or_refused():
    X, a, _ = make("one_hot", 1)
    first, second, *_ = map(int, np.flatnonzero(a[0]))
    augmenter = PNLAugmenter().fit(X)

    def sample(*asked):
        asked = ColumnConstraint(*asked)
        return augmenter.sample(100, random_state=0, constraints=asked)

    np.testing.assert_array_equal(sample(first, 1, 1)[:, first], 1)
    either = sample({first: 1, second: 1}, 1, 1)[:, [first, second]]
    np.testing.assert_array_equal(either.sum(axis=1), 1)
    assert either[:, 0].std() > 0
    with pytest.raises(ValueError, match="in whole numbers"):
        sample(first, 0.5, 0.5)


@pytest.mark.parametrize("kind", TABLES)
def test_single_precision(kind):
    X, a, b = make(kind, 2)
    X = X.astype(np.float32)
    rows = PNLAugmenter().fit(X).sample(100, random_state=0)
    assert rows.dtype == np.float32
    assert worst(rows.astype(float), X.astype(float), a, b) <= 2e-6


# --- equations that are given ---------------------------------------------------


def test_equations_given_are_kept_as_those_found_are():
    X, a, b = make("totals", 0)
    found = find_invariants(X)
    ways = [found, LinearConstraint(a, b, b), [LinearConstraint(a, b, b)]]
    rows = [PNLAugmenter(invariants=w).fit(X).sample(50, random_state=0) for w in ways]
    for new in rows:
        assert worst(new, X, a, b) <= 1e-9
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)


def test_equations_that_training_rows_break_are_refused():
    X = np.random.default_rng(0).uniform(size=(50, 3))
    broken = ColumnConstraint({0: 1, 1: -1}, equal=0)
    with pytest.raises(ValueError, match="do not keep 'x. = x.': .* of the range"):
        PNLAugmenter(invariants=broken).fit(X)
    with pytest.raises(ValueError, match="do not keep 'b = a'"):
        PNLSampler(
            invariants=ColumnConstraint({"a": 1, "b": -1}, equal=0)
        ).fit_resample(pd.DataFrame(X, columns=list("abc")), np.arange(50) < 10)
    interval = ColumnConstraint(0, lower=0, upper=1)
    with pytest.raises(ValueError, match="give intervals as constraints of sample"):
        PNLAugmenter(invariants=interval).fit(X)


def test_more_features_than_are_searched_say_so():
    rng = np.random.default_rng(0)
    parts = rng.uniform(size=(30, 201))
    X = np.column_stack([parts[:, :3].sum(axis=1), parts])
    augmenter = PNLAugmenter().fit(X)
    assert len(augmenter.invariants_) == 0
    assert "More than 200 features" in augmenter.invariants_.note
    assert "find_invariants(X)" in repr(augmenter.invariants_)
    asked = PNLAugmenter(invariants=find_invariants(X)).fit(X)
    rows = asked.sample(20, random_state=0)
    np.testing.assert_allclose(rows[:, 0], rows[:, 1:4].sum(axis=1), atol=1e-8)


# --- constraints ----------------------------------------------------------------


@pytest.fixture(scope="module")
def sales():
    """A table with a total, three parts, and a correlated feature; fitted."""
    rng = np.random.default_rng(0)
    parts = rng.gamma(2.0, size=(300, 3))
    frame = pd.DataFrame(parts, columns=["a", "b", "c"])
    frame.insert(0, "total", parts.sum(axis=1))
    frame["staff"] = parts.sum(axis=1) + rng.normal(size=300)
    return frame, PNLAugmenter().fit(frame)


def test_equalities_intervals_and_a_row_each(sales):
    frame, augmenter = sales
    wanted = np.linspace(4, 9, 60)
    constraints = [
        ColumnConstraint("total", equal=wanted),
        ColumnConstraint({"a": 1, "b": -1}, lower=0, upper=0.5),
        LinearConstraint([[0, 0, 0, 1, 0]], -np.inf, 2.5),
    ]
    rows = augmenter.sample(60, random_state=0, constraints=constraints)
    np.testing.assert_allclose(rows["total"], wanted, atol=1e-8)
    np.testing.assert_allclose(
        rows["total"], rows[["a", "b", "c"]].sum(axis=1), atol=1e-8
    )
    difference = rows["a"] - rows["b"]
    assert difference.min() >= -1e-8 and difference.max() <= 0.5 + 1e-8
    assert rows["c"].max() <= 2.5 + 1e-8
    assert difference.std() > 0.05


def test_a_fixed_value_is_conditional_sampling(sales):
    frame, augmenter = sales
    asked = ColumnConstraint("staff", equal=9.0)
    rows = augmenter.sample(200, random_state=0, constraints=asked)
    np.testing.assert_allclose(rows["staff"], 9.0, atol=1e-8)
    # What goes with it comes with it: staff are the total, give or take one.
    near = frame["total"][(frame["staff"] - 9).abs() < 1].mean()
    assert abs(rows["total"].mean() - near) < 0.5
    assert abs(frame["total"].mean() - near) > 1.5


def test_constraints_by_class_and_for_all(sales):
    frame, _ = sales
    y = np.r_[np.zeros(200, int), np.ones(60, int), np.full(40, 2)]
    wanted = {
        1: ColumnConstraint("total", equal=7),
        2: ColumnConstraint("a", lower=1, upper=2),
    }
    sampler = PNLSampler(constraints=wanted, random_state=0)
    X_new, y_new = sampler.fit_resample(frame, y)
    new, labels = X_new.iloc[300:], y_new[300:]
    np.testing.assert_allclose(new["total"][labels == 1], 7, atol=1e-8)
    assert new["total"][labels == 2].std() > 0.1
    assert new["a"][labels == 2].between(1 - 1e-8, 2 + 1e-8).all()
    np.testing.assert_allclose(
        new["total"], new[["a", "b", "c"]].sum(axis=1), atol=1e-8
    )
    sampler = PNLSampler(constraints=wanted[1], random_state=0)
    new = sampler.fit_resample(frame, y)[0].iloc[300:]
    np.testing.assert_allclose(new["total"], 7, atol=1e-8)


def test_what_cannot_be_reached_is_named_with_its_reach(sales):
    frame, augmenter = sales
    with pytest.raises(ValueError, match="total asks for 80 to 90; .* reaches ") as e:
        augmenter.sample(5, constraints=ColumnConstraint("total", lower=80, upper=90))
    assert "5 of 5 new rows" in str(e.value)
    low, high = map(float, str(e.value).split("reaches ")[1].rstrip(".").split(" to "))
    # The range of the training rows, and a tenth beyond where nothing ends there.
    total = frame["total"]
    room = 0.1 * np.ptp(total) + 1e-6
    assert total.min() - room <= low <= total.min() + 1e-6
    assert total.max() - 1e-6 <= high <= total.max() + room
    inside = ColumnConstraint("total", equal=high - 1e-3)
    augmenter.sample(3, random_state=0, constraints=inside)
    # Each alone can be met: it is their clash with the total that is told.
    parts = [ColumnConstraint("a", equal=3), ColumnConstraint("total", equal=2)]
    with pytest.raises(ValueError, match=r"total = a \+ b \+ c"):
        augmenter.sample(5, constraints=parts)
    one_of_them = np.array([5.0, 5.0, 500.0])
    asked = ColumnConstraint("total", equal=one_of_them)
    with pytest.raises(ValueError, match="1 of 3 new rows .* new row 2: total asks"):
        augmenter.sample(3, constraints=asked)
    with pytest.raises(ValueError, match="names the column 'z'"):
        augmenter.sample(5, constraints=ColumnConstraint("z", lower=0, upper=1))
    with pytest.raises(ValueError, match="given for 3 rows; there are 5"):
        augmenter.sample(5, constraints=asked)


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
    with pytest.raises(ValueError, match="in whole numbers"):
        augmenter.sample(5, random_state=0, constraints=ColumnConstraint(0, equal=9.5))


@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_the_same_bytes_however_rows_are_asked_for(sales, augment):
    frame, _ = sales
    wanted = np.linspace(4, 9, 90)
    asked = [
        ColumnConstraint("total", equal=wanted),
        ColumnConstraint({"a": 1, "b": -2}, lower=-3, upper=1),
    ]
    augmenter = PNLAugmenter(draws=augment).fit(frame)
    rows = augmenter.sample(90, random_state=0, constraints=asked)
    for size in (1, 7, 64, 90):
        batches = augmenter.iter_samples(90, size, random_state=0, constraints=asked)
        np.testing.assert_array_equal(pd.concat(list(batches)), rows)
    augmenter.set_params(n_jobs=2)
    again = augmenter.sample(90, random_state=0, constraints=asked)
    np.testing.assert_array_equal(again, rows)


# --- what rows are drawn from ---------------------------------------------------


def mixtures(X, values, condition, n, seed=0):
    """Values between the rows that are mixed, before any projection."""
    gaps = ((X[:, None] - X) ** 2).sum(axis=2)

    def nearest(codes, k, among, like=None):
        rows = [int(np.flatnonzero((X == code).all(axis=1))[0]) for code in codes]
        return np.argsort(gaps[rows], axis=1, kind="stable")[:, :k]

    training = TrainingCodes(X, 5, nearest)
    rng = np.random.RandomState(seed)
    draw = MixupDraws(0).start(training, n, rng, condition)
    _, parents, weights = draw(slice(0, n))
    return np.einsum("nk,nkc->nc", weights, values[parents])


@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_drawn_between_which_the_constraint_is_met(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 4))
    values = X @ rng.normal(size=(4, 2))
    scale = values.std(axis=0)
    for n_values in (1, 2):
        given = values[:, :n_values]
        wanted = np.quantile(given, 0.8, axis=0)[None]
        found = mixtures(X, given, Condition(given, wanted, wanted), 300, seed)
        off = np.abs(found - wanted) / scale[:n_values]
        random = np.abs(mixtures(X, given, None, 300, seed) - wanted)
        assert off.mean() < 0.25 * n_values
        assert off.mean() < 0.4 * (random / scale[:n_values]).mean()


def test_a_wanted_value_a_row_draws_each_from_its_own_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    values = X[:, :1]
    wanted = np.linspace(-1.5, 1.5, 100)[:, None]
    found = mixtures(X, values, Condition(values, wanted, wanted), 100)
    assert np.corrcoef(found[:, 0], wanted[:, 0])[0, 1] > 0.97
    interval = Condition(values, np.array([[0.5]]), np.array([[1.5]]))
    found = mixtures(X, values, interval, 500)
    assert np.mean((found > 0.4) & (found < 1.6)) > 0.9
    # Inside it, as the rows are, and not at one end.
    inside = values[(values > 0.5) & (values < 1.5)]
    assert abs(found.mean() - inside.mean()) < 0.1
    assert abs(found.std() - inside.std()) < 0.1


def random_segments(seed, n_values):
    rng = np.random.default_rng(seed)
    start, step = rng.normal(size=(2, 30, n_values))
    step[:3] *= 1e-3
    return start, step, rng.normal(size=(4, n_values))


@pytest.mark.parametrize("n_values", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_weights_are_the_integrals_of_the_kernel(seed, n_values):
    start, step, targets = random_segments(seed, n_values)
    segments = _Segments.of(start, step, targets)
    length = np.linalg.norm(step, axis=1)
    for t, target in enumerate(targets):
        width = segments.width[t] * length
        np.testing.assert_allclose(width, width[0])

        def log_kernel(x, k, target=target, width=width[0]):
            gap = start[k] + np.multiply.outer(x, step[k]) - target
            return -(gap**2).sum(axis=-1) / (2 * width**2)

        expected = []
        for k in range(len(start)):
            peak = log_kernel(np.linspace(0, 1, 2001), k).max()
            mass = quad(
                lambda x, k=k, peak=peak: np.exp(log_kernel(x, k) - peak),
                0, 1, limit=200, points=[np.clip(segments.centre[t, k], 0, 1)],
            )[0]  # fmt: skip
            expected.append(peak + np.log(mass))
        expected = np.array(expected) - np.max(expected)
        likely = expected > -200
        np.testing.assert_allclose(
            segments.weight[t][likely], expected[likely], atol=1e-5
        )
        # Drawn in proportion to them.
        share = np.exp(expected) / np.exp(expected).sum()
        drawn = segments.choose(t, (np.arange(20_000) + 0.5) / 20_000)
        counts = np.bincount(drawn, minlength=len(start)) / 20_000
        np.testing.assert_allclose(counts, share, atol=1e-3)


@pytest.mark.parametrize("seed", range(2))
def test_positions_follow_the_kernel_on_a_grid(seed):
    start, step, targets = random_segments(seed, 2)
    segments = _Segments.of(start, step, targets)
    uniform = (np.arange(400) + 0.5) / 400
    middle = (np.arange(20_000) + 0.5) / 20_000
    for t, target in enumerate(targets):
        width = segments.width[t, 0] * np.linalg.norm(step[0])
        for k in np.argsort(-segments.weight[t])[:8]:
            gap = start[k] + middle[:, None] * step[k] - target
            log = -(gap**2).sum(axis=1) / (2 * width**2)
            until = np.exp(log - logsumexp(log)).cumsum()
            found = segments.position(t, np.full(400, k), uniform)
            assert np.all((found >= 0) & (found <= 1))
            reached = np.interp(found, middle, until)
            np.testing.assert_allclose(reached, uniform, atol=2e-3)


def test_targets_far_from_all_rows_draw_the_nearest_ends():
    values = np.linspace(0, 1, 50)[:, None]
    wanted = np.array([[1e6]])
    found = mixtures(values, values, Condition(values, wanted, wanted), 50)
    assert found.min() > 0.85
    assert np.isfinite(found).all()


# --- wanted margins -------------------------------------------------------------


def test_margins_of_images_are_met():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(40, 6, 8)) * (rng.random((40, 6, 8)) < 0.7)
    projector = BackwardProjector(order=1, offset=1e-3).fit(X)
    wanted = rng.gamma(3.0, size=(5, 6, 8))
    margins = {(0,): wanted.sum(axis=2), (1,): wanted.sum(axis=1)}
    rows = projector.decode_margins(margins)
    size = wanted.sum(axis=(1, 2)).max()
    np.testing.assert_allclose(rows.sum(axis=2), margins[(0,)], atol=1e-8 * size)
    np.testing.assert_allclose(rows.sum(axis=1), margins[(1,)], atol=1e-8 * size)
    assert rows.min() >= -1e-3
    one = projector.decode_margins({(1,): margins[(1,)][:2]})
    np.testing.assert_allclose(one.sum(axis=1), margins[(1,)][:2], atol=1e-8 * size)


@pytest.mark.parametrize("seed", range(3))
def test_decoded_margins_are_the_tilt_of_the_mean_row(seed):
    # All rows are near here, so that the reference is known.
    rng = np.random.default_rng(seed)
    X, offset = rng.gamma(1.0, size=(8, 3, 4)), 0.01
    projector = BackwardProjector(n_neighbors=8, offset=offset, with_mass=True).fit(X)
    wanted = rng.gamma(2.0, size=(3, 4))
    margins = {(0,): wanted.sum(axis=1)[None], (1,): wanted.sum(axis=0)[None]}
    rows = projector.decode_margins(margins, tol=1e-12)
    lifted = X + offset
    reference = (lifted / lifted.sum(axis=(1, 2), keepdims=True)).mean(axis=0)
    lifted = wanted + offset
    right = np.concatenate([lifted.sum(axis=1), lifted.sum(axis=0)])

    def dual(y):
        q = reference * np.exp(y[:3, None] + y[3:])
        return q.sum() - y @ right, np.concatenate(
            [q.sum(axis=1), q.sum(axis=0)]
        ) - right

    y = minimize(dual, np.zeros(7), jac=True, options={"gtol": 1e-10}).x
    expected = reference * np.exp(y[:3, None] + y[3:]) - offset
    np.testing.assert_allclose(rows[0], expected, atol=1e-6)


def test_rows_with_such_margins_are_heeded():
    # Two kinds of table, told by their rows' sums, with opposite odds ratios.
    rng = np.random.default_rng(0)
    kinds = np.array([[[8.0, 1], [1, 2]], [[1.0, 2], [8, 1]]])
    label = rng.integers(2, size=60)
    X = kinds[label] * rng.uniform(0.8, 1.2, size=(60, 2, 2))
    projector = BackwardProjector(order=1, offset=1e-3).fit(X)
    margins = {m: X.sum(axis=2 - m[0]) for m in [(0,), (1,)]}
    rows = projector.decode_margins(margins)
    odds = np.log(rows[:, 0, 0] * rows[:, 1, 1] / (rows[:, 0, 1] * rows[:, 1, 0]))
    np.testing.assert_array_equal(odds > 0, label == 0)
    assert np.abs(rows - X).mean() < 0.5


def test_contradictory_margins_are_refused():
    X = np.random.default_rng(0).uniform(size=(20, 2, 3))
    projector = BackwardProjector().fit(X)
    with pytest.raises(RakingError, match=r"\(0,\) and \(1,\) have different totals"):
        projector.decode_margins({(0,): [[1.0, 1.0]], (1,): [[1.0, 1.0, 1.0]]})
    with pytest.raises(ValueError, match="tuples of different modes .* got 0"):
        projector.decode_margins({0: [[1.0, 1.0]]})
