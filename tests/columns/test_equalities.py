"""Detection of equalities between columns in the training rows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import PNLAugmenter
from sklearn_pnl._utils.blocks import random_order
from sklearn_pnl.columns.equalities import (
    _Search,
    echelon,
    search_equalities,
    unexplained_if_independent,
)
from sklearn_pnl.columns.relations import find_relations
from sklearn_pnl.columns.rounding import restore
from sklearn_pnl.columns.value_support import single_precision_steps
from sklearn_pnl.control import find_equalities
from sklearn_pnl.frames import TableReader, read_table

SEEDS = [0, 1, 2]


def relations(X, extrapolation=0.0):
    X = np.asarray(X, dtype=float)
    table = read_table(TableReader(None), X, missing=True)
    return find_relations(table, None, extrapolation, "auto")


def equalities(X, priority=None):
    none = np.zeros(X.shape[1])
    ranks = none if priority is None else priority
    bounds, order = (X.min(axis=0), X.max(axis=0)), random_order(X)
    return search_equalities(X, bounds, None, ranks, none, none, order)[1]


def gamma(seed, *shape):
    return np.random.default_rng(seed).gamma(2.0, size=shape)


# --- equalities that hold exactly -------------------------------------------------


def test_equalities_are_described_in_text():
    parts = gamma(0, 50, 3)
    X = pd.DataFrame(parts, columns=["food", "rent", "other"])
    X["total"] = X.sum(axis=1)
    found = find_equalities(X)
    assert len(found) == 1
    assert "total = food + rent + other" in str(found)
    assert_allclose(found.residual(X.to_numpy()), 0, atol=1e-9)
    assert str(PNLAugmenter().fit(X).equalities_) == str(found)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
@pytest.mark.parametrize("seed", SEEDS)
def test_equalities_are_found_across_scales(seed, scale):
    rng = np.random.default_rng(seed)
    large, small = rng.gamma(2.0, size=(2, 400)) * [[scale], [1.0]]
    X = np.column_stack([large, small, large + small, rng.normal(size=400)])
    found = find_equalities(X)
    assert len(found) == 1
    a = found.coefficients[0] / found.coefficients[0, 2]
    assert_allclose(a, [-1, -1, 1, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_space_of_equalities_is_the_null_space_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    basis = rng.integers(-2, 3, (4, 9)).astype(float)
    X = rng.normal(size=(60, 4)) @ basis + rng.integers(0, 5, 9)
    found = equalities(X)
    rank = np.linalg.matrix_rank(X - X.mean(axis=0))
    varying = np.ptp(X, axis=0) > 0
    assert len(found.values) == varying.sum() - rank
    assert_allclose(X @ found.coefficients.T, found.values + 0 * X[:, :1], atol=1e-9)
    # Reduced echelon form: each pivot has coefficient 1, and occurs in no other row.
    at_pivots = found.coefficients[:, found.pivots]
    assert_array_equal(at_pivots, np.eye(len(found.values)))
    # Readable coefficients: fractions of small denominators.
    for value in found.coefficients.flat:
        fraction = Fraction(value).limit_denominator(1000)
        assert abs(value - fraction) <= 1e-15 * abs(value)


@pytest.mark.parametrize("seed", SEEDS)
def test_pivots_do_not_depend_on_the_basis(seed):
    # Equal spreads and integer equations: lengths agree but for rounding.
    rng = np.random.default_rng(seed)
    equations = rng.integers(-1, 2, (3, 8)).astype(float)
    spread, ranks = np.ones(8), rng.integers(0, 3, 8)
    expected, pivots = echelon(equations, spread, ranks)
    for _ in range(20):
        turned = rng.normal(size=(3, 3)) @ equations
        again, same = echelon(turned + 1e-15 * rng.normal(size=(3, 8)), spread, ranks)
        assert_array_equal(same, pivots)
        assert_allclose(again, expected, atol=1e-9)


def test_the_last_of_equally_long_columns_is_the_pivot():
    rng = np.random.default_rng(0)
    parts = rng.permuted(np.repeat(rng.normal(size=(1, 50)), 3, axis=0), axis=1).T
    found = equalities(np.column_stack([parts, parts.sum(axis=1)]))
    assert found.pivots.tolist() == [3]
    share = rng.permutation(np.arange(50.0))
    assert equalities(np.column_stack([share, 50 - share])).pivots.tolist() == [1]


def test_pivots_are_floats_or_integers_with_dividing_coefficients():
    rng = np.random.default_rng(0)
    hours, minutes = rng.integers(0, 9, (2, 80)).astype(float)
    base = rng.gamma(2.0, size=80)
    X = np.column_stack([hours, 60 * hours + minutes, minutes, base, base + 10 * hours])
    # Pivots are floats first, and then integers whose coefficient divides the remaining
    # coefficients.
    found = equalities(X, np.array([1, 1, 1, 0, 0]))
    assert {3, 4} & set(found.pivots)
    whole = ~np.isin(found.pivots, [3, 4])
    assert_allclose(np.abs(found.coefficients[whole, :3]), [[60, 1, 1]])
    assert found.pivots[whole][0] in (1, 2)
    kept = relations(X)
    columns = replace(kept.columns, steps=np.array([1.0, 1, 1, 0, 0]))
    kept = replace(kept, columns=columns)
    rows = X + rng.integers(0, 3, (80, 1))
    restore(rows, kept)
    assert_allclose(kept.equalities.residual(rows), 0, atol=1e-12 * rows.max())


def test_echelon_selects_the_column_with_the_largest_spread():
    basis = np.array([[1.0, 2.0, 4.0, 0.0], [0.0, 1.0, 1.0, 3.0]])
    reduced, pivots = echelon(basis, np.array([1.0, 1.0, 1.0, 10.0]), np.zeros(4))
    assert_array_equal(pivots, [3, 2])
    assert_array_equal(reduced[:, pivots], np.eye(2))
    assert np.linalg.matrix_rank(np.vstack([basis, reduced])) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_equalities_are_found_despite_constants_copies_and_missing_cells(seed):
    rng = np.random.default_rng(seed)
    parts = rng.gamma(1.0, size=(200, 3))
    X = np.column_stack(
        [parts, np.full(200, 7.0), parts.sum(axis=1), 2 * parts[:, 0] + 1]
    )
    X = np.vstack([X, X[:50]])
    found = find_equalities(X)
    assert len(found) == 2
    assert not found.coefficients[:, 3].any()
    X[rng.uniform(size=250) < 0.1, 1] = np.nan
    X = np.column_stack([X, np.where(rng.uniform(size=250) < 0.9, np.nan, 1.5)])
    again = find_equalities(X)
    assert len(again) == 2
    both = np.vstack([again.coefficients[:, :6], found.coefficients])
    assert np.linalg.matrix_rank(both) == 2


def test_float32_equalities_hold_up_to_float32_rounding():
    parts = gamma(0, 300, 4).astype(np.float32)
    X = np.column_stack([parts, parts.sum(axis=1, dtype=np.float32)])
    assert X.dtype == np.float32
    # The columns are drawn together, so that new rows keep the relation as nearly as
    # the data.
    assert relations(X).in_equality.all()
    new = PNLAugmenter().fit(X).sample(500, random_state=0)
    gap = new[:, 4].astype(float) - new[:, :4].sum(axis=1, dtype=float)
    assert np.abs(gap).max() <= 8 * np.finfo(np.float32).eps * X[:, 4].max()


@pytest.mark.parametrize("seed", range(6))
def test_random_tables_have_no_equalities(seed):
    rng = np.random.default_rng(seed)
    for n, d in ((4, 2), (9, 7), (12, 10), (20, 30), (40, 39), (40, 38), (200, 20)):
        for X in (rng.normal(size=(n, d)), rng.gamma(0.3, size=(n, d))):
            found = relations(X)
            assert len(found.equalities) == 0
            assert not found.in_equality.any()
            assert len(find_equalities(X)) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_near_equalities_require_96_percent_explained_variance(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1500, 3))
    for noise, is_tied in ((0.1, True), (0.6, False)):
        y = x.sum(axis=1) + noise * rng.normal(size=1500)
        found = relations(np.column_stack([x, y, rng.normal(size=1500)]))
        assert found.in_equality[3] == is_tied
        assert not found.in_equality[4]
        assert len(found.equalities) == 0
        # The unexplained share, by least squares.
        others = np.column_stack([x, np.ones(1500)])
        left = y - others @ np.linalg.lstsq(others, y, rcond=None)[0]
        assert (left.var() / y.var() <= 0.04) == is_tied


@pytest.mark.parametrize("left", [0.0404, 0.0396])
@pytest.mark.parametrize("seed", range(10))
def test_exact_equalities_of_other_columns_imply_no_near_equality(seed, left):
    # Cancelled rounding of an exact equality, divided by itself, is of any size.
    rng = np.random.default_rng(seed)
    parts = rng.gamma(2.0, size=(95, 3)) * [1, 20, 1]
    basis = np.column_stack([parts, np.ones(95)])
    noise = rng.normal(size=95)
    noise -= basis @ np.linalg.lstsq(basis, noise, rcond=None)[0]
    trend = (parts - parts.mean(axis=0)) @ rng.normal(size=3)
    trend *= np.sqrt(1 / left - 1) * np.linalg.norm(noise) / np.linalg.norm(trend)
    X = np.column_stack([trend + noise, parts, parts.sum(axis=1)])
    assert_array_equal(relations(X).in_equality, [left < 0.04, True, True, True, True])


def test_equalities_of_a_subset_are_checked_on_all_rows():
    # The rows from which equalities are computed satisfy the equality, but the
    # remaining rows do not.
    x = gamma(0, 4000, 2)
    X = np.column_stack([x, x.sum(axis=1)])
    X[1::2, 2] = gamma(1, 2000)
    found = relations(X)
    assert len(found.equalities) == 0
    assert not found.in_equality.any()


@pytest.mark.parametrize("seed", SEEDS)
def test_rarely_positive_parts_are_found_in_totals(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.gamma(2.0, size=(20_000, 3)), columns=["a", "b", "fee"])
    X.loc[rng.permutation(20_000)[40:], "fee"] = 0
    X["total"] = X.sum(axis=1)
    assert list(find_equalities(X).descriptions) == ["total = a + b + fee"]


@pytest.mark.parametrize("seed", range(8))
def test_nearly_constant_columns_hide_no_equality(seed):
    # In most samples of rows, the amounts are constant, or look proportional.
    rng, n = np.random.default_rng(seed), 5000
    a, b, rare = rng.poisson(9, n), rng.poisson(9, n), np.zeros((n, 4))
    rows = rng.choice(n, 4, replace=False)
    rare[rows, :3] = rng.gamma(2.0, size=(4, 3))
    rare[rows[:2], 2:] = [[1.0, 2.0], [2.0, 4.0]]
    X = pd.DataFrame({"a": a, "b": b, "total": a - b, "other": rng.normal(size=n)})
    X[["usd", "pounds", "left", "right"]] = rare
    X["eur"] = 2 * X["usd"]
    X.loc[rng.uniform(size=n) < 0.1, "other"] = np.nan
    found = find_equalities(X).coefficients
    expected = np.zeros((2, 9))
    expected[0, :3], expected[1, [4, 8]] = [-1, 1, 1], [-2, 1]
    assert len(found) == np.linalg.matrix_rank(np.vstack([found, expected])) == 2


@pytest.mark.parametrize("unit", [1e-200, 1e-300, 1e200, 1.5e308])
def test_columns_of_tiny_and_huge_units_are_in_no_equality(unit):
    rng = np.random.default_rng(0)
    a, b = rng.normal(50, 20, 200), rng.normal(30, 10, 200)
    X = pd.DataFrame({"a": a.round(), "b": b.round(), "total": (a + b).round()})
    X = X.astype(int).assign(extreme=rng.uniform(size=200) * unit)
    new = PNLAugmenter().fit(X).sample(100, random_state=0)
    assert not new.isna().any(axis=None)
    assert new["extreme"].between(X["extreme"].min(), X["extreme"].max()).all()


@pytest.mark.parametrize("seed", [17, 147, *SEEDS])
def test_terms_within_the_rounding_of_other_terms_are_in_no_equality(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.choice([30, 100, 500, 3000])), int(rng.integers(2, 6))
    shares = rng.multinomial(1000, rng.dirichlet(np.ones(k) * 3), n) / 10
    size = 10.0 ** rng.integers(0, 6)
    counts = rng.poisson(size, (n, int(rng.integers(1, 4))))
    X = np.column_stack([shares, counts, counts[:, 0] + counts[:, -1]])
    found = find_equalities(X.astype(np.float32)).coefficients
    assert len(found) == 2
    assert np.isin(np.abs(found), [0, 0.5, 1, 2]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", SEEDS)
def test_equalities_of_wide_tables_are_found_next_to_near_equalities(seed, dtype):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 20)) @ rng.normal(size=(20, 300))
    X = np.round(X + rng.normal(size=X.shape), 2)
    # A fee that is small compared with the total.
    X[:, :2] = rng.integers(0, 2**19, (1500, 2))
    X[:, 2] = rng.integers(0, 10, 1500)
    X[:, 3] = X[:, :3].sum(axis=1)
    (found,) = find_equalities(X.astype(dtype)).coefficients
    assert_array_equal(np.flatnonzero(found), range(4))
    assert_array_equal(np.abs(found[:4]), 1)


@pytest.mark.parametrize("seed", range(6))
def test_single_precision_gives_no_fractions_by_chance(seed):
    # Three units and their years: shares, with coefficients on codes and years.
    rng = np.random.default_rng(seed)
    year, unit = np.divmod(np.arange(24), 3)
    shares = rng.dirichlet(np.full(5, 2.0), 3)[unit]
    codes = 1001 * unit, 1980 + year, rng.integers(15, 70, 3)[unit] + year
    X = np.column_stack([shares, *codes]).astype(np.float32)
    rows = PNLAugmenter().fit(X).sample(200, random_state=seed)
    assert_allclose(rows[:, :5].sum(axis=1), 1, atol=1e-6)


# --- few rows ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_near_equalities_are_found_in_few_rows(seed):
    rng = np.random.default_rng(seed)
    region = rng.integers(1, 6, 15)
    district = 10 * region + rng.integers(0, 6, 15)
    X = pd.DataFrame({"region": region, "district": district})
    X["town"] = 10 * district + rng.integers(0, 9, 15)
    X[["a", "b", "c"]] = rng.multinomial(100, [0.2, 0.3, 0.5], 15)
    X[["x", "y"]] = rng.normal(size=(15, 2))
    augmenter = PNLAugmenter().fit(X)
    kept = augmenter._relations
    assert kept.in_equality[[pivot for pivot, _ in kept.near]].all()
    new = augmenter.sample(200, random_state=0)
    assert (new.min() >= X.min()).all()
    assert (new.max() <= X.max()).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 1e6), (np.float64, 1e9)])
def test_small_sums_are_found_next_to_large_sums_in_few_rows(dtype, large, seed):
    rng = np.random.default_rng(seed)
    amounts, counts = large * rng.gamma(2.0, size=(8, 4)), rng.poisson(3, (8, 4))
    totals = [part.sum(axis=1) for part in (amounts, counts)]
    X = np.column_stack([amounts, totals[0], counts, totals[1]]).astype(dtype)
    found = find_equalities(X)
    assert "x9 = x5 + x6 + x7 + x8" in str(found)
    assert len(found) == 2
    assert_array_equal(np.sort(np.abs(found.coefficients).sum(axis=1)), [5, 5])


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_of_neighbouring_columns_are_found_in_few_rows(seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(12), 20)
    parts = rng.gamma(1.0, size=(20, 14))
    X = np.column_stack([parts[:, :7], parts[:, :7].sum(axis=1), shares, parts[:, 7:]])
    found = find_equalities(X)
    expected = np.zeros((2, 27))
    expected[0, :7], expected[0, 7] = 1, -1
    expected[1, 8:20] = 1
    signs = np.sign(found.coefficients[:, [0, 8]].sum(axis=1))[:, None]
    assert_array_equal(
        np.unique(found.coefficients * signs, axis=0), np.unique(expected, axis=0)
    )


def test_equalities_must_hold_in_all_complete_rows():
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(300, 5))
    X[:, 2] = X[:, 0] + X[:, 1]
    X[:, 4] = X[:, 2] + X[:, 3]
    # In rows without the last total, the first total is not the sum of its parts.
    X[:60, 2] += 1
    X[:60, 4] = np.nan
    assert list(find_equalities(X).descriptions) == ["x4 = x0 + x1 + x3"]
    X[:60, 2] -= 1
    assert len(find_equalities(X)) == 2


# --- near equalities of integers --------------------------------------------------


def rounded(seed, n=300):
    """Make invoices, weeks, months, costs with a fee: rounded sums of integers."""
    rng = np.random.default_rng(seed)
    number, days, fee = (
        rng.integers(1, 10, n),
        rng.integers(1, 90, n),
        rng.integers(2, size=n),
    )
    sent, extra = rng.gamma(2, 3, n).round(3), rng.gamma(2, 0.4, n).round(3)
    X = pd.DataFrame(
        {"number": number, "sent": sent, "days": days, "fee": fee, "extra": extra}
    )
    return X.assign(
        invoice=(19.99 * number + sent).round(2),
        weeks=(days / 7).round(2),
        months=(days / 30.4).round(3),
        cost=(5 * fee + extra).round(2),
    )


def missed(X):
    return pd.DataFrame(
        {
            "invoice": X.invoice - 19.99 * X.number - X.sent,
            "weeks": X.weeks - X.days / 7,
            "months": X.months - X.days / 30.4,
            "cost": X.cost - 5 * X.fee - X.extra,
        }
    ).abs()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("value_support", ["auto", None])
def test_near_equalities_of_integers_hold_as_closely_as_in_the_data(
    seed, value_support
):
    X = rounded(seed)
    rows = PNLAugmenter(value_support=value_support).fit(X).sample(500, seed)
    assert (rows["number"] % 1 == 0).all()
    assert (rows["days"] % 1 == 0).all()
    # Noise and a second rounding of the same size.
    assert (missed(rows).max() < 4 * missed(X).max()).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("params", [{"order": 1}, {"method": "paper"}, {}], ids=str)
@pytest.mark.parametrize("digits", [15, 17])
def test_near_equalities_of_single_precision_hold_with_an_order(seed, params, digits):
    # Statistical programs compute in single precision, and write 15 digits.
    parts = np.random.default_rng(seed).gamma(4, size=(300, 3)).astype(np.float32)
    X = np.column_stack([parts, parts.sum(axis=1), parts[:, :2].mean(axis=1)])
    X = np.array([[float(f"{x:.{digits}g}") for x in row] for row in X.tolist()])
    rows = PNLAugmenter(**params).fit(X).sample(200, seed)
    a = np.array([[1, 1, 1, -1, 0], [0.5, 0.5, 0, 0, -1]])
    assert (np.abs(rows @ a.T).max(axis=0) < 4 * np.abs(X @ a.T).max(axis=0)).all()
    assert not len(find_equalities(X))


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_single_precision_is_recognized(scale):
    x = np.random.default_rng(0).normal(size=(50, 1)) * scale
    single = x.astype(np.float32).astype(float)
    columns = np.array([1, 0])
    found = single_precision_steps(np.hstack([x, single]), columns)
    expected = np.spacing(np.abs(single).max().astype(np.float32))
    assert_array_equal(found, [expected, 0])
    assert single_precision_steps(1e200 * x / scale, columns[1:]) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_of_single_precision_need_no_search_for_near_equalities(
    seed, monkeypatch
):
    # The search takes most of the time of a table of embeddings.
    def search(*args):
        raise AssertionError("near equalities are searched")

    monkeypatch.setattr(_Search, "near_equations", search)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 12))
    X += 0.01 * rng.normal(size=X.shape)
    for dtype in (np.float32, np.float64):
        assert not len(find_equalities(X.astype(dtype)))
    with pytest.raises(AssertionError, match="are searched"):
        find_equalities(X.astype(np.float32).astype(np.float64))


def test_equalities_of_nanoseconds_have_exact_constants():
    rng = np.random.default_rng(0)
    start = 1_700_000_000_000_000_000 + rng.integers(0, 10**15, 40)
    X = pd.DataFrame({"start": start, "took": rng.integers(1, 10**9, 40)})
    X["end"] = X["start"] + X["took"] + 5_000_000_000
    assert "end = start + took + 5000000000" in str(find_equalities(X))
    rows = PNLAugmenter().fit(X).sample(100, 0)
    assert (rows["end"] - rows["start"] - rows["took"] == 5_000_000_000).all()


@pytest.mark.parametrize("constant", [7, 5 * 10**12 + 7, 5 * 10**15 + 123, 2**60 + 3])
def test_integer_constants_are_exact(constant):
    first = np.random.default_rng(0).integers(0, 10**6, 90)
    X = np.column_stack([first, first + constant])
    words = "e+18" if constant > 2**53 else f"x0 = x1 - {constant}"
    assert str(find_equalities(X)).endswith(words)
    new = PNLAugmenter().fit(X).sample(30, 0)
    assert_array_equal(new[:, 1] - new[:, 0], constant)


def test_integers_with_a_range_beyond_float64_raise_a_warning():
    X = np.random.default_rng(0).integers(0, 2**61, (60, 2))
    with pytest.warns(UserWarning, match=r"2\*\*53"):
        PNLAugmenter().fit(np.column_stack([X, X.sum(axis=1)]))


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_near_equalities_do_not_depend_on_the_unit_of_a_column(unit):
    X = np.random.default_rng(0).standard_normal((5000, 6))
    X[:, 5] = X[:, :5].sum(axis=1) + 0.3 * X[:, 5]
    found = find_relations(read_table(TableReader(), X * unit))
    assert_array_equal(np.flatnonzero(found.in_equality), [5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_and_near_equalities_of_wide_tables_are_found(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, (2000, 100)).astype(dtype) + 500
    X[:, 20] = X[:, 3] - X[:, 7]
    X[:, 40] = X[:, :20].sum(axis=1) + np.rint(20 * rng.standard_normal(2000))
    found = find_relations(read_table(TableReader(), X))
    assert_array_equal(found.pivots, [20])
    assert_array_equal(np.flatnonzero(found.in_equality), [3, 7, 20, 40])


def test_near_equalities_of_wide_tables_are_found():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 100)).astype(np.float32)
    X[:, 40] = X[:, :20].sum(axis=1) + 0.3 * X[:, 40]
    found = find_relations(read_table(TableReader(), X + 10))
    assert not len(found.pivots)
    assert_array_equal(np.flatnonzero(found.in_equality), [40])


@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "f4", "f8"])
def test_unexplained_shares_are_those_of_the_inverse_correlations(dtype):
    """Compare with the explicit inverse, for columns far from 0 and of all types."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(1500, 4)) @ rng.normal(size=(4, 100))
    X = np.clip(120 + 20 * latent + 8 * rng.normal(size=latent.shape), 0, 255)
    X = X.astype(dtype)
    columns, precision = np.arange(100), np.zeros(100)
    left = unexplained_if_independent(X, np.arange(1500), columns, precision)
    inverse = np.linalg.inv(np.corrcoef(X.astype(float), rowvar=False))
    expected = 1500 / 1400 / np.diag(inverse)
    assert_allclose(left, expected, rtol=1e-3)


def test_shares_of_dependent_columns_are_not_computed_in_single_precision():
    X = np.random.default_rng(0).normal(size=(1500, 100))
    X[:, 7] = X[:, :5].sum(axis=1)
    columns, precision = np.arange(100), np.zeros(100)
    assert unexplained_if_independent(X, np.arange(1500), columns, precision) is None


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_columns_that_vary_in_few_rows_of_a_wide_table_are_searched(dtype):
    """Test a total with a part that is 0 in all rows but three."""
    rng = np.random.default_rng(0)
    X = np.rint(100 * rng.normal(size=(4000, 300)))
    X[:, 5] = 0
    X[[7, 1900, 3999], 5] = 25
    assert len(find_equalities(X.astype(dtype))) == 0
    X[:, 9] = X[:, 5] + X[:, 20]
    (description,) = find_equalities(X.astype(dtype)).descriptions
    assert description == "x9 = x5 + x20"


@pytest.mark.parametrize("n_columns", [3, 4, 5])
@pytest.mark.parametrize("seed", range(3))
def test_few_rows_that_differ_are_no_evidence_of_an_equality(seed, n_columns):
    # As the pixels at the border of images, columns are 0 in nearly all rows.
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(300, 6)), np.zeros((300, n_columns))])
    for n_rows in range(2, n_columns):
        X[:n_rows, 6:] = rng.integers(1, 256, (n_rows, n_columns))
        assert len(find_equalities(X)) == 0
    X[: n_columns + 1, 6:] = rng.integers(1, 256, (n_columns + 1, n_columns))
    X[:, -1] = X[:, 6:-1].sum(axis=1)
    (found,) = find_equalities(X).coefficients
    assert_allclose(found[6:] / found[-1], [*[-1] * (n_columns - 1), 1])


@pytest.mark.parametrize("n_rare", [1, 2, 3])
@pytest.mark.parametrize("n_levels", [2, 3])
def test_dummies_of_rare_levels_are_in_an_equality(n_levels, n_rare):
    level = np.zeros(40, int)
    level[: n_rare * (n_levels - 1)] = np.repeat(np.arange(1, n_levels), n_rare)
    X = np.hstack(
        [np.random.default_rng(0).normal(size=(40, 2)), np.eye(n_levels)[level]]
    )
    (found,) = find_equalities(X).coefficients
    assert_allclose(found, [0, 0, *np.ones(n_levels)])
