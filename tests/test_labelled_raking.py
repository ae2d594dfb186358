"""Raking of tables with labels: against the numeric core, GRAS's theorem and pandas."""

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import coo_array, csr_array, csr_matrix

from sklearn_pnl import calibrate, column_total, geometry, rake
from sklearn_pnl.geometry import RakingError

LEVELS = {"age": ["young", "old", "older"], "sex": ["f", "m"], "region": list("nsew")}
SHAPE = tuple(map(len, LEVELS.values()))
MARGINS = ["age", ("sex", "region")]


def series(values):
    index = pd.MultiIndex.from_product(LEVELS.values(), names=LEVELS)
    return pd.Series(np.ravel(values), index=index, name="people")


def margin(table, key):
    return table.groupby(list(key) if isinstance(key, tuple) else key).sum()


def problem(seed, keys=MARGINS, empty=0.0):
    """A table, and margins of another with the same zeros."""
    rng = np.random.default_rng(seed)
    start, target = rng.gamma(1.0, size=(2, *SHAPE)) + 1e-3
    zero = rng.random(SHAPE) < empty
    start[zero] = target[zero] = 0
    target = series(np.ceil(100 * target))
    return series(start), {key: margin(target, key) for key in keys}


def by_mode(margins):
    """The same margins as the numeric core takes them."""
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
def test_the_same_table_as_the_numeric_core(keys, empty, seed):
    table, margins = problem(seed, keys, empty)
    found = rake(table, margins)
    core = geometry.rake(table.to_numpy().reshape(SHAPE), by_mode(margins), tol=1e-12)
    np.testing.assert_allclose(
        found.tables.to_numpy(), core.tables.ravel(), atol=1e-6 * core.tables.sum()
    )
    assert found.tables.index.equals(table.index) and found.tables.name == "people"
    assert found.converged and found.residual <= 1e-9 and not found.reasons
    for key, wanted in margins.items():
        np.testing.assert_allclose(margin(found.tables, key), wanted, rtol=2e-9)


@pytest.mark.parametrize("seed", range(3))
def test_long_frames_and_missing_combinations(seed):
    # A cell that is not there is a structural zero.
    table, margins = problem(seed, empty=0.3)
    expected = rake(table, margins).tables
    held = table[table > 0].sample(frac=1, random_state=seed)
    np.testing.assert_allclose(
        rake(held, margins).tables.reindex(table.index, fill_value=0), expected
    )
    frame = held.reset_index()
    frame.index = np.arange(len(frame))[::-1]
    raked = rake(frame, margins, values="people").tables
    assert raked.columns.equals(frame.columns) and raked.index.equals(frame.index)
    np.testing.assert_allclose(raked["people"], expected.reindex(held.index))
    other = rake(pl.from_pandas(frame), margins, values="people").tables
    assert isinstance(other, pl.DataFrame)
    np.testing.assert_allclose(other["people"], raked["people"])


@pytest.mark.parametrize("make", [coo_array, csr_array, csr_matrix])
def test_sparse_matrices(make):
    rng = np.random.default_rng(0)
    start, target = rng.gamma(1.0, size=(2, 30, 40)) * (rng.random((30, 40)) < 0.3)
    margins = {0: target.sum(axis=1), 1: target.sum(axis=0)}
    found = rake(make(start), margins)
    assert type(found.tables) is make
    core = geometry.rake(start, {(0,): margins[0], (1,): margins[1]})
    np.testing.assert_allclose(found.tables.toarray(), core.tables, atol=1e-6)


def test_large_sparse_matrices_are_swept():
    # Their margins have more cells than Newton's method takes.
    rng = np.random.default_rng(0)
    where = rng.integers(0, 4000, (2, 100_000))
    table = coo_array((rng.gamma(1.0, size=100_000), where), shape=(4000, 4000))
    table.sum_duplicates()
    target = table.copy()
    target.data = rng.gamma(1.0, size=len(target.data))
    margins = {0: target.sum(axis=1), 1: target.sum(axis=0)}
    found = rake(table, margins)
    np.testing.assert_allclose(found.tables.sum(axis=1), margins[0], rtol=1e-8)
    np.testing.assert_allclose(found.tables.sum(axis=0), margins[1], rtol=1e-8)
    with pytest.raises(RakingError, match="2 sweeps ended at a residual"):
        rake(table, margins, max_iter=2)
    with pytest.raises(ValueError, match="More than 5000 totals at once must be"):
        rake(table, margins, upper=1e9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_signed_cells_are_those_of_gras(seed, share):
    # Junius and Oosterhaven 2003: r_i s_j times positive cells, and 1 / (r_i s_j)
    # times negative ones, on the margins.
    rng = np.random.default_rng(seed)
    start, target = rng.gamma(1.0, size=(2, 8, 9)) * rng.choice(
        [-1, 1], p=[share, 1 - share], size=(8, 9)
    )
    margins = {0: target.sum(axis=1), 1: target.sum(axis=0)}
    raked = rake(coo_array(start), margins).tables.toarray()
    np.testing.assert_allclose(raked.sum(axis=1), margins[0], atol=1e-8)
    np.testing.assert_allclose(raked.sum(axis=0), margins[1], atol=1e-8)
    assert np.all(np.sign(raked) == np.sign(start))
    log = np.log(raked / start) * np.sign(start)
    additive = log.mean(axis=1)[:, None] + log.mean(axis=0) - log.mean()
    np.testing.assert_allclose(log, additive, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_ranges_of_cells(seed):
    table, margins = problem(seed)
    free = rake(table, margins).tables
    lower, upper = 0.0 * free, np.inf * free
    largest = free.idxmax()
    upper[largest] = 0.9 * free[largest]
    found = rake(table, margins, lower=lower, upper=upper).tables
    assert found[largest] == pytest.approx(0.9 * free[largest])
    for key, wanted in margins.items():
        np.testing.assert_allclose(margin(found, key), wanted, rtol=1e-8)
    # Elsewhere it is still a product of one factor a margin: no interaction is added.
    assert np.all(found > 0)
    with pytest.raises(RakingError, match="the margin at .* asks for .* it reaches"):
        rake(table, margins, upper=1.0)
    with pytest.raises(ValueError, match="nothing of the sign of cell 0"):
        rake(-table, margins, lower=1.0)


def test_soft_margins():
    table, margins = problem(0, ["age", "region"])
    margins["age"] = margins["age"] * 1.02
    with pytest.raises(RakingError, match="'age' and 'region' disagree: they sum to"):
        rake(table, margins)
    told = rake(table, margins, strict=False)
    assert not told.converged and "disagree" in told.reasons[0]
    margins["age"] = column_total("age", margins["age"], within=0.05)
    found = rake(table, margins).tables
    np.testing.assert_allclose(margin(found, "region"), margins["region"], rtol=1e-8)
    got, asked = margin(found, "age"), margins["age"]
    assert all(
        asked.lower[k] - 1e-6 <= got[k] <= asked.upper[k] + 1e-6 for k in got.index
    )


@pytest.mark.parametrize("by", [None, "age"])
def test_a_cell_without_range_is_named_by_its_place_in_the_table(by):
    table = series(np.ones(SHAPE))
    table.iloc[[0, 3, 5]] = 0.0
    upper = np.full(len(table), 9.0)
    upper[12] = -1.0
    margins = {("age", "sex"): margin(table, ("age", "sex"))}
    with pytest.raises(ValueError, match="nothing of the sign of cell 12, which is 1"):
        rake(table, margins, upper=upper, by=by)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("keys", [MARGINS, ["age", "sex", "region"]])
def test_whole_numbers_keep_margins(keys, seed):
    table, margins = problem(seed, keys)
    real = rake(table, margins).tables
    whole = rake(table, margins, integer=True).tables
    np.testing.assert_array_equal(whole, np.round(whole))
    for key, wanted in margins.items():
        np.testing.assert_array_equal(margin(whole, key), wanted)
    assert (whole - real).abs().max() < 1


def test_tables_of_their_own():
    rng = np.random.default_rng(0)
    table = series(rng.gamma(1.0, size=SHAPE))
    target = series(np.ceil(100 * rng.gamma(1.0, size=SHAPE)))
    keys = [("region", "age"), ("sex", "region")]
    margins = {key: margin(target, key) for key in keys}
    found = rake(table, margins, by="region")
    assert found.converged.all() and found.residual.shape == (4,)
    for region in LEVELS["region"]:
        own = {
            "age": margins[keys[0]].xs(region),
            "sex": margins[keys[1]].xs(region, level="region"),
        }
        alone = rake(table.xs(region, level="region"), own)
        np.testing.assert_allclose(
            found.tables.xs(region, level="region"), alone.tables, rtol=1e-9
        )
    margins[keys[0]]["s", "old"] += 7
    with pytest.raises(RakingError, match="Table 's': The totals of 'age' and 'sex'"):
        rake(table, margins, by="region")
    rest = rake(table, margins, by="region", strict=False)
    assert list(rest.reasons) == ["s"]
    np.testing.assert_array_equal(rest.converged, [True, False, True, True])
    others = [region != "s" for *_, region in table.index]
    np.testing.assert_allclose(rest.tables[others], found.tables[others])
    with pytest.raises(ValueError, match="'age' does not name"):
        rake(table, {"age": {"old": 3}}, by="region")


@pytest.mark.parametrize(
    "table, margins, keywords, message",
    [
        (series(np.ones(SHAPE)), {}, {}, "at least one margin"),
        (series(np.ones(SHAPE)), {"ag": {"old": 3}}, {}, "margins names 'ag'"),
        (series(np.ones(SHAPE)).rename_axis([None, "a", "b"]), {"a": {"f": 3}}, {},
         "levels of the index need names"),
        (series(np.full(SHAPE, np.nan)), {"age": {"old": 3}}, {}, "cell 0 is nan"),
        (series(np.ones(SHAPE)).reset_index(), {"age": {"old": 3}}, {}, "values="),
        (series(np.ones(SHAPE)).unstack(), {"age": {"old": 3}}, {}, "table.stack()"),
        (series(np.ones(SHAPE)).reset_index(), {"age": {"old": 3}}, {"values": "n"},
         "values='n' is none of the columns .'age', 'sex', 'region', 'people'"),
        (series(np.ones(SHAPE)), {"age": {"old": 3}}, {"tol": -1}, "'tol' parameter"),
        (np.ones(SHAPE), {0: [1, 2, 3]}, {}, "geometry.rake takes arrays"),
        (coo_array(np.ones((3, 2))), {0: [1, 2]}, {}, "margin 0 has 2 sums for a mat"),
        (coo_array(np.ones((3, 2))), {1: [1, 2, 0]}, {}, "3 sums .* shape .3, 2.;"),
        (series(np.ones(SHAPE)), {(): {(): 3}}, {}, "need tuples of 0 levels"),
        (series(np.ones(SHAPE)), {"age": {"old": 3}}, {"upper": np.nan}, "no NaN"),
    ],
)  # fmt: skip
def test_bad_input(table, margins, keywords, message):
    with pytest.raises(ValueError, match=message):
        rake(table, margins, **keywords)


@pytest.mark.parametrize(
    "asked, keywords, message",
    [
        ((-5, 3), {}, "asks for -5; within the ranges and signs of cells it reaches"),
        ((2.5, 3.5), {"integer": True}, "No whole numbers sum to 2.5, which the"),
        ((np.nan, 3), {}, "A total of 'age' of level 'young' is NaN; give a number"),
    ],
)  # fmt: skip
def test_margins_that_no_table_has(asked, keywords, message):
    margins = {"age": dict(zip(LEVELS["age"][:2], asked, strict=True))}
    with pytest.raises(ValueError, match=message):
        rake(series(np.ones(SHAPE)), margins, **keywords)


def test_tables_without_cells():
    empty = series(np.zeros(SHAPE))
    found = rake(empty, {"age": dict.fromkeys(LEVELS["age"], 0)})
    assert found.converged and found.tables.equals(empty)
    with pytest.raises(RakingError, match="No cell has age='old', for which 3"):
        rake(empty, {"age": {"old": 3}})


def test_a_level_without_cells_is_named():
    table, margins = problem(0)
    wanted = r"No cell has age='baby', for which 3 is asked"
    margins["age"] = {"young": 1, "baby": 3}
    with pytest.raises(RakingError, match=wanted):
        rake(table, margins)


# --- what other packages were asked for -----------------------------------------


def test_margins_in_a_triangle():
    # ipfn 22: three tables that share columns, which the start has already.
    rng = np.random.default_rng(0)
    table = series(rng.gamma(1.0, size=SHAPE))
    margins = {key: margin(table, key) for key in combinations(LEVELS, 2)}
    found = rake(table, margins)
    assert found.n_iter == 1
    np.testing.assert_allclose(found.tables, table, rtol=1e-12)
    flat = rake(series(np.ones(SHAPE)), margins)
    assert flat.converged


def test_margins_that_were_rounded_apart():
    # mipfp 10: margins from one table, rounded each for itself, are off by one or two.
    rng = np.random.default_rng(3)
    table = series(rng.gamma(1.0, size=SHAPE) * 40)
    margins = {key: margin(table, key).round() for key in combinations(LEVELS, 2)}
    with pytest.raises(RakingError, match="disagree at .* they sum to"):
        rake(table, margins)
    soft = {key: column_total(key, m, within=0.1) for key, m in margins.items()}
    found = rake(table, soft).tables
    for key, wanted in margins.items():
        gap = (margin(found, key) - wanted).abs()
        assert np.all(gap <= 0.1 * wanted + 1e-6)


def test_five_modes_of_four_levels_in_whole_numbers():
    # humanleague 61: whole numbers on the margins of 4^5, with room in no cell but few.
    rng = np.random.default_rng(0)
    names = list("abcde")
    index = pd.MultiIndex.from_product([range(4)] * 5, names=names)
    people = pd.Series(rng.poisson(0.7, size=4**5), index=index)
    margins = {name: margin(people, name) for name in names}
    found = rake(pd.Series(1.0, index=index), margins, upper=3, integer=True).tables
    assert found.max() <= 3 and found.min() >= 0
    for name, wanted in margins.items():
        np.testing.assert_array_equal(margin(found, name), wanted)


def test_zones_that_nobody_leaves():
    # AequilibraE 797: trips in a sparse matrix, with empty rows and columns.
    rng = np.random.default_rng(0)
    target = rng.gamma(1.0, size=(60, 60)) * (rng.random((60, 60)) < 0.3)
    target[[3, 40]], target[:, [3, 7]] = 0, 0
    trips = csr_array((target > 0) * 1.0)
    margins = {0: target.sum(axis=1), 1: target.sum(axis=0)}
    found = rake(trips, margins).tables
    assert type(found) is csr_array and found.nnz == trips.nnz
    for k, wanted in margins.items():
        np.testing.assert_allclose(found.sum(axis=1 - k), wanted, atol=1e-6)
    some = margins[0].copy()
    some[[3, 5]] = some[[5, 3]]
    wanted = r"No cell has 0=3, for which .* there are 0, 1, 2, 4, .* and 48 more besi"
    with pytest.raises(RakingError, match=wanted):
        rake(trips, {0: some, 1: margins[1]})


def test_results_tell_of_each_table():
    table = pd.DataFrame(
        {"group": [1, 1, 2, 2], "k": ["a", "b"] * 2, "n": [1.0, 2.0, 3.0, 0.0]}
    )
    margins = {("group", "k"): {(1, "a"): 3, (1, "b"): 4, (2, "b"): 5}}
    found = rake(table, margins, values="n", by="group", strict=False)
    frame = found.to_frame()
    assert frame["converged"].tolist() == [True, False]
    assert frame["reason"].tolist()[0] == ""
    assert "1 NOT on their margins" in str(found)
    assert "<table" in found._repr_html_()


def test_a_series_of_sums_is_read_by_the_names_of_its_levels():
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([["f", "m"], [1, 2, 3]], names=["sex", "age"])
    table = pd.Series(rng.uniform(1, 2, 6), index)
    margin = pd.Series(rng.uniform(1, 2, 6), index)
    turned = margin.reorder_levels(["age", "sex"]).sort_index()
    key = ("sex", "age")
    for asked in (turned, column_total(key, turned)):
        pd.testing.assert_series_equal(rake(table, {key: asked}).tables, margin)


def test_by_level_without_a_margin_is_free_and_one_without_cells_is_told():
    """Neither is forgotten: levels in margins are named, in tables or not."""
    table, key = series(np.arange(1.0, 1 + np.prod(SHAPE))), ("region", "sex")
    found = rake(table, {key: {("n", "f"): 7}}, by="region")
    assert found.labels == ("n", "s", "e", "w") and found.converged.all()
    others = [(region, sex) != ("n", "f") for _, sex, region in table.index]
    np.testing.assert_array_equal(found.tables[others], table[others])
    assert found.tables.xs("n", level="region").xs("f", level="sex").sum() == 7
    asked = {key: {("n", "f"): 7, ("north", "f"): 5}}
    with pytest.raises(RakingError, match="Table 'north': No cell has sex='f'"):
        rake(table, asked, by="region")
    rest = rake(table, asked, by="region", strict=False)
    assert list(rest.reasons) == ["north"]
    np.testing.assert_array_equal(rest.tables, found.tables)


@pytest.mark.parametrize(
    ("upper", "message"),
    [
        ([1.0, 2.0, 3.0], "upper must be a number or one a cell, 2 of them"),
        ("much", "it is 'much'"),
        (pd.Series([5.0, 9.0], ["b", "a"]), "upper has the index of table in another"),
    ],
)
def test_ends_of_cells_that_do_not_fit_are_told(upper, message):
    table = pd.Series([1.0, 2.0], pd.Index(["a", "b"], name="level"))
    with pytest.raises(ValueError, match=message):
        rake(table, {"level": {"a": 2}}, upper=upper)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_repeated_entries_of_small_integers_do_not_overflow(dtype):
    entries = np.array([100, 100, 100, 5, 7], dtype), ([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    table, margins = coo_array(entries, shape=(2, 2)), {0: [610, 20]}
    raked = rake(table, margins).tables
    assert_allclose(raked.toarray(), [[600, 10], [0, 20]])
    assert_allclose(calibrate(table, [900.0, 22.0]), [3, 1])
