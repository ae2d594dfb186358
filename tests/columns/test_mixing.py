"""Rows that are mixed, and cells that are copied: levels, thresholds and flags."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sklearn_pnl import PNLAugmenter, PNLSampler
from sklearn_pnl.columns.mixing import find_mixable
from sklearn_pnl.columns.relations import find_relations
from sklearn_pnl.frames import TableReader, read_table

pd = pytest.importorskip("pandas")

SEEDS = [0, 1, 2]


def draw(X, n=500, seed=0, **params):
    """Return new rows of an augmenter that has no value support by default."""
    augmenter = PNLAugmenter(**{"value_support": None, **params}).fit(X)
    return augmenter.sample(n, random_state=seed)


def balanced(X, minority, value_support, seed=0):
    """Return the new rows of a sampler that balances two classes."""
    sampler = PNLSampler(value_support=value_support, random_state=seed)
    return sampler.fit_resample(X, minority)[0].iloc[len(X) :]


# --- levels -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "bool", "category"])
def test_an_unrelated_binary_column_does_not_connect_clusters(kind):
    beyond = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(18, 4))
        X[8:, 1] += 25
        flag = rng.permutation(np.arange(18) % 2)
        frame = pd.DataFrame(X, columns=list("abcd"))
        frame["flag"] = pd.Series(flag).astype(kind)
        new = draw(frame, 400, seed)
        ends = X[:8, 1].max() + 3, X[8:, 1].min() - 3
        beyond.append(((new["b"] > ends[0]) & (new["b"] < ends[1])).mean())
    assert np.mean(beyond) < 0.01


@pytest.mark.parametrize("form", ["category", "indicators"])
@pytest.mark.parametrize("seed", SEEDS)
def test_levels_that_decide_a_column_are_not_mixed(seed, form):
    rng = np.random.default_rng(seed)
    level = rng.permutation(np.repeat([0, 1, 2], [60, 12, 9]))
    frame = pd.DataFrame(rng.normal(size=(81, 6)), columns=list("abcdef"))
    frame["wheels"] = np.array([2.0, 4.0, 12.0])[level]
    if form == "category":
        frame["kind"] = pd.Series(np.array(["bike", "car", "lorry"])[level])
    else:
        frame[["bike", "car", "lorry"]] = np.eye(3)[level]
    new = draw(frame, 500, seed)
    columns = list(frame.columns[6:])
    assert {*new[columns].itertuples(index=False, name=None)} <= {
        *frame[columns].itertuples(index=False, name=None)
    }


def test_rare_levels_are_mixed_with_all_rows():
    # A level with one row would give copies only.
    rng = np.random.default_rng(0)
    level = np.repeat([0, 1, 2], [30, 30, 1])
    frame = pd.DataFrame(rng.normal(size=(61, 3)), columns=list("abc"))
    frame["length"] = 10.0 * level + rng.normal(size=61)
    for names, sizes in (
        (level, [(30, 30), (30, 30), (1, 61)]),
        (rng.permutation(level), None),
    ):
        table = read_table(TableReader(), frame.assign(kind=names.astype(str)))
        relations = find_relations(table, None)
        mixable, side, bounds = find_mixable(table.numbers(), table, relations, 10)
        assert (side, bounds) == (None, None)
        found = mixable.strata and [
            (len(rows), len(near)) for rows, near in mixable.strata
        ]
        assert found == sizes


def people(seed, n=400):
    """Return people whose group, degree and work follow from their numbers."""
    rng = np.random.default_rng(seed)
    age, years = rng.integers(2, 90, n), rng.integers(4, 19, n).astype(float)
    hours = np.where(rng.random(n) < 0.4, 0, rng.gamma(4, 8, n))
    group = pd.cut(age, [0, 17, 64, 99], labels=["child", "adult", "senior"])
    numbers = {"age": age, "years": years, "hours": hours, "free": rng.normal(size=n)}
    flags = {"degree": (years >= 13).astype(int), "works": (hours > 0).astype(int)}
    return pd.DataFrame({"group": group, **numbers, **flags})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("missing", [0, 0.05])
def test_new_rows_satisfy_the_thresholds_of_categories(missing, seed):
    X = people(seed)
    gaps = np.random.default_rng(seed).random((len(X), 2)) < missing
    X["hours"], X["degree"] = X["hours"].mask(gaps[:, 0]), X["degree"].mask(gaps[:, 1])
    new = draw(X, 3000, seed, value_support="auto")
    group = pd.cut(new["age"], [0, 17, 64, 99], labels=["child", "adult", "senior"])
    assert (new["group"].astype(str) == group.astype(str)).all()
    here = new[["hours", "degree"]].notna()
    assert (new["degree"] == (new["years"] >= 13))[here["degree"]].all()
    assert (new["works"] == (new["hours"] > 0))[here["hours"]].all()
    for name in ("degree", "works"):
        assert abs(new[name].mean() - X[name].mean()) < 0.06
    # The bounds of the columns stay within reach.
    assert new["age"].nunique() > 60


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_rows_satisfy_the_thresholds_of_binary_columns(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 4)) * (rng.random((400, 4)) < 0.98)
    X[:, 3] = X[:, 1] > 0.3
    sampler = PNLSampler(random_state=seed, value_support="auto")
    y = np.arange(400) < 100
    rows = [sampler.fit_resample(given, y)[0] for given in (X, csr_array(X))]
    for new in (rows[0], rows[1].toarray()):
        assert (new[:, 3] == (new[:, 1] > 0.3)).all()
    assert_allclose(rows[0], rows[1].toarray())


@pytest.mark.parametrize("seed", range(10))
def test_separate_ranges_by_chance_do_not_count(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(8, 30))).rename(columns=str)
    frame["kind"] = np.repeat(["a", "b"], 4)
    relations = find_relations(read_table(TableReader(), frame), "auto")
    assert not relations.levels.ranges


@pytest.mark.parametrize("n_minority", [3, 10, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_small_classes_satisfy_the_thresholds_of_the_whole_table(seed, n_minority):
    X = people(seed, 600)
    new = balanced(X, np.arange(600) < n_minority, "auto", seed)
    group = pd.cut(new["age"], [0, 17, 64, 99], labels=["child", "adult", "senior"])
    assert (new["group"].astype(str) == group.astype(str)).all()
    assert (new["degree"] == (new["years"] >= 13)).all()
    assert (new["works"] == (new["hours"] > 0)).all()


def test_thresholds_of_equalities_are_satisfied_in_small_classes():
    # Columns of an equality are copied together if a row is on the wrong side.
    rng = np.random.default_rng(0)
    parts = rng.gamma(2.0, size=(400, 2))
    X = pd.DataFrame({"a": parts[:, 0], "b": parts[:, 1], "sum": parts.sum(axis=1)})
    X["size"] = np.where(X["a"] < 1, "small", "large")
    new = balanced(X, np.arange(400) < 12, "auto")
    assert (new["size"] == np.where(new["a"] < 1, "small", "large")).all()
    assert_allclose(new["sum"], new["a"] + new["b"])


# --- binary columns -----------------------------------------------------------------


def patients(seed, n=2000):
    """Return patients with a category, its code, and flags that the category limits."""
    rng = np.random.default_rng(seed)
    male = rng.random(n) < 0.5
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    X["sex"], X["male"] = np.where(male, "M", "F"), male.astype(int)
    X["pregnant"] = (~male & (rng.random(n) < 0.3)).astype(int)
    X["nursing"] = (X["pregnant"] == 0) & ~male & (rng.random(n) < 0.3)
    X["ward"], X["free"] = rng.choice(list("uvw"), n), rng.random(n) < 0.4
    return X


@pytest.mark.parametrize("value_support", [None, "auto"])
@pytest.mark.parametrize("seed", SEEDS)
def test_binary_columns_follow_the_categories(seed, value_support):
    X = patients(seed)
    rng = np.random.default_rng(seed)
    minority = rng.random(len(X)) < 0.08
    small = PNLAugmenter(value_support=value_support).fit(X[minority])
    for new in (balanced(X, minority, value_support), small.sample(1500, seed)):
        assert ((new["sex"] == "M") == (new["male"] == 1)).all()
        assert not ((new["sex"] == "M") & (new["pregnant"] == 1)).any()
        assert not ((new["sex"] == "M") & new["nursing"]).any()
        assert not ((new["pregnant"] == 1) & new["nursing"]).any()
    # A flag that no category limits is copied from any parent.
    free = PNLAugmenter().fit(X)._relations
    names = [name for name in X if name in ("male", "pregnant", "nursing", "free")]
    assert_array_equal(free.blocks == 0, [name != "free" for name in names])


@pytest.mark.parametrize("value_support", [None, "auto"])
@pytest.mark.parametrize("seed", SEEDS)
def test_indicators_of_imputed_cells_follow_the_imputed_value(seed, value_support):
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(1000, 5))
    lacks = rng.random(raw.shape) < 0.15
    means = np.nanmean(np.where(lacks, np.nan, raw), axis=0)
    X = pd.DataFrame(np.where(lacks, means, raw), columns=list("abcde"))
    X = X.join(pd.DataFrame(lacks, columns=[f"lacks_{name}" for name in X]))
    new = balanced(X, rng.random(1000) < 0.1, value_support).to_numpy(float)
    assert ((new[:, 5:] == 1) == (new[:, :5] == means)).all()
    assert abs(new[:, 5:].mean() - 0.15) < 0.05


@pytest.mark.parametrize("n_minority", [10, 100])
@pytest.mark.parametrize("seed", SEEDS)
def test_values_that_a_level_implies_are_copied_with_the_level(seed, n_minority):
    rng = np.random.default_rng(seed)
    n = 600
    works, grade = rng.random(n) < 0.6, rng.integers(0, 5, n)
    X = pd.DataFrame({"works": works, "hours": works * rng.gamma(4, 8, n)})
    X["grade"] = np.array(list("abcde"))[grade]
    X["points"] = np.array([10.0, 7, 4, 2, 0])[grade]
    X["lodging"] = rng.choice(["home", "flat", "none"], n)
    X["rent"] = np.where(X["lodging"] == "none", 0, rng.gamma(4, 200, n).round())
    X[["u", "v"]] = rng.normal(size=(n, 2))
    new = balanced(X, np.arange(n) < n_minority, None, seed)
    assert (new["works"] == (new["hours"] > 0)).all()
    known = dict(zip(X["grade"], X["points"], strict=True))
    assert (new["points"] == new["grade"].map(known)).all()
    assert (new["rent"][new["lodging"] == "none"] == 0).all()
    # Other values are mixed.
    assert new["hours"].nunique() > n_minority
    relations = PNLAugmenter(value_support=None).fit(X)._relations
    assert relations.implied == {1: [0], 2: [0, 2, 4, 7, 10], 3: [0]}


@pytest.mark.parametrize("dtype", [int, float, bool])
@pytest.mark.parametrize("n", [60, 200])
def test_one_hot_exclusive_and_implied_binary_columns_hold(n, dtype):
    rng = np.random.default_rng(0)
    level = rng.permutation(np.arange(n) % 4)
    run = level[:, None] == np.arange(4)
    either = rng.integers(0, 3, n)
    implied = rng.integers(0, 2, n)
    flags = np.column_stack(
        [run, either == 1, either == 2, implied * rng.integers(0, 2, n), implied]
    )
    frame = pd.DataFrame(flags.astype(dtype), columns=list("abcdefgh"))
    new = draw(frame.assign(x=rng.normal(size=n)), 2000)
    on = new[[*"abcdefgh"]].astype(float)
    assert (on[[*"abcd"]].sum(axis=1) == 1).all()
    assert (on["e"] + on["f"] <= 1).all()
    assert (on["g"] <= on["h"]).all()
    assert new["a"].dtype == frame["a"].dtype


def test_a_table_of_only_binary_columns_gets_new_rows():
    X = np.random.default_rng(0).integers(0, 2, (60, 12))
    new = draw(X, 500)
    assert set(np.unique(new)) == {0, 1}
    seen = set(map(tuple, X))
    assert np.mean([tuple(row) not in seen for row in new]) > 0.25


@pytest.mark.parametrize("seed", SEEDS)
def test_rare_binary_values_and_levels_keep_their_share(seed):
    # A neighbour gives a value only as often as it receives one. Otherwise, the share
    # of the value would fall by up to a half.
    rng = np.random.default_rng(seed)
    n, rare, drawn = 60, 4, 20_000
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=[*"abc"])
    X["flag"] = (rng.permutation(n) < rare).astype(int)
    X["level"] = np.where(rng.permutation(n) < rare, "rare", "common")
    new = draw(X, drawn, seed)
    # The tolerance is 0.3 of the share; for the base rows, the error is below 0.1 with
    # probability 1 - 1e-3.
    assert abs(new["flag"].mean() * n / rare - 1) < 0.3
    assert abs((new["level"] == "rare").mean() * n / rare - 1) < 0.3


# --- zeros and missing cells --------------------------------------------------------


@pytest.mark.parametrize("equality", ["near", "exact"])
@pytest.mark.parametrize("seed", SEEDS)
def test_zeros_of_both_parents_stay_zeros_in_equalities(seed, equality):
    rng = np.random.default_rng(seed)
    cost = np.where(rng.random(500) < 0.7, 0.0, rng.gamma(2, 500, 500))
    X = pd.DataFrame({"cost": cost, "age": rng.normal(40, 10, 500)})
    X["other"] = cost * rng.uniform(0.8, 1.2, 500)
    if equality == "exact":
        X["other"] = np.where(rng.random(500) < 0.5, 0.0, rng.gamma(2, 500, 500))
        X["total"] = X["cost"] + X["other"]
    augmenter = PNLAugmenter(value_support=None).fit(X)
    assert augmenter._relations.in_equality[[0, 2]].all()
    new, parents = augmenter.sample(2000, random_state=seed, return_parents=True)
    for name in ("cost", "other"):
        is_zero = (X[name].to_numpy()[parents] == 0).all(axis=1)
        assert is_zero.sum() > 300
        assert (new[name][is_zero] == 0).all()
    if equality == "exact":
        assert_allclose(new["total"], new["cost"] + new["other"], atol=1e-9)
    else:
        assert abs((new["cost"] == 0).mean() - (cost == 0).mean()) < 0.06


@pytest.mark.parametrize("seed", SEEDS)
def test_skip_patterns_of_missing_cells_hold(seed):
    # Rows without a car do not have its age and price.
    rng = np.random.default_rng(seed)
    has = rng.integers(0, 2, 200)
    X = pd.DataFrame({"has": has, "income": rng.normal(size=200)})
    X["age"] = np.where(has == 1, rng.gamma(2.0, size=200), np.nan)
    X["price"] = np.where(has == 1, rng.gamma(2.0, size=200), np.nan)
    new = draw(X, 2000, seed)
    for name in ("age", "price"):
        assert_array_equal(new[name].isna(), new["has"] == 0)
        assert new[name].dropna().between(X[name].min(), X[name].max()).all()
