"""Raking of labelled tables: comparisons with ``rake_array``, GRAS and pandas."""

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_array

from sklearn_pnl import geometry
from sklearn_pnl.control import calibrate, column_total, rake
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
