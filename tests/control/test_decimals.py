"""Equations of rounded values: found to the coefficient, kept as far as they go."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from sklearn_pnl import (
    ColumnConstraint,
    ManyBodyImputer,
    PNLAugmenter,
    PNLSampler,
    adjust,
    find_invariants,
)

SHARES = np.r_[1.0, 1, 1, 1, 0]


def shares(seed, n=400, places=1, alpha=(1, 2, 3, 4)):
    """Rounded percentages, and a column of its own."""
    rng = np.random.default_rng(seed)
    parts = 100 * rng.dirichlet(alpha, n)
    return np.column_stack([parts.round(places), rng.normal(size=n)])


def budgets(rng, n):
    """Amounts in cents with a total in thousands, and a sub-total of its own."""
    a, b, c = rng.lognormal(8, 1, size=(3, n))
    total = (a + b + c).round(-3)
    X = np.column_stack([a.round(2), b.round(2), c.round(2), (a + b).round(), total])
    # The last follows from the others, and may stand for one of them.
    equations = [[1, 1, 0, -1, 0], [0, 0, 1, 1, -1], [1, 1, 1, 0, -1]]
    return X, np.array(equations), np.array([0.51, 500.505, 500.015])


def units(rng, n):
    """Degrees of two kinds."""
    c = rng.normal(15, 8, n)
    X = np.column_stack([c.round(1), (1.8 * c + 32).round(1), rng.normal(size=n)])
    return X, np.array([[1.8, -1, 0]]), np.array([0.14])


def whole_percentages(rng, n):
    """Of twelve parts."""
    X = (100 * rng.dirichlet(np.ones(12), n)).round()
    return X, np.ones((1, 12)), np.array([6.0])


@pytest.mark.parametrize("made", [budgets, units, whole_percentages])
@pytest.mark.parametrize("seed", range(3))
def test_equations_are_found_with_half_a_step_of_each_column(made, seed):
    X, equations, rounding = made(np.random.default_rng(seed), 600)
    found = find_invariants(X)
    rank = np.linalg.matrix_rank(equations)
    assert len(found) == rank
    both = np.vstack([found.coefficients, equations])
    assert np.linalg.matrix_rank(both) == rank
    assert np.all(found.violation(X) == 0)
    assert np.all(np.abs(found.missing(X)).max(axis=0) > 0.1 * found.rounding)
    for own, room in zip(found.coefficients, found.rounding, strict=True):
        k = int(np.argmin(((equations != 0) != (own != 0)).sum(axis=1)))
        unit = np.abs(own).max() / np.abs(equations[k]).max()
        np.testing.assert_allclose(np.abs(own), unit * np.abs(equations[k]), rtol=1e-12)
        assert room == pytest.approx(unit * rounding[k], rel=1e-9)


@pytest.mark.parametrize("places", range(5))
@pytest.mark.parametrize("alpha", [(1, 2, 3, 4), (20, 30, 40, 10), (0.3, 1, 1, 5)])
def test_percentages_sum_to_a_hundred(places, alpha):
    X = shares(0, places=places, alpha=alpha)
    found = find_invariants(X)
    (told,) = found.descriptions
    assert told == f"x0 + x1 + x2 + x3 = 100, up to {2 / 10**places:g}"
    np.testing.assert_allclose(found.values, 100)
    rows = PNLAugmenter().fit(X).sample(300, random_state=0)
    off = np.abs(rows[:, :4].sum(axis=1) - 100)
    assert off.max() <= found.rounding * (1 + 1e-9)
    # Each value is rounded, as those of the training rows are, and no row is made even.
    np.testing.assert_allclose(rows[:, :4], rows[:, :4].round(places), atol=1e-12)
    assert 0.5 < off.std() / np.abs(X[:, :4].sum(axis=1) - 100).std() < 2


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_scaled_percentages_do_too(scaler):
    X = shares(0)
    Z = scaler.fit_transform(X)
    assert len(find_invariants(Z)) == 1
    y = np.arange(len(Z)) < 60
    new = PNLSampler(random_state=0).fit_resample(Z, y)[0][len(Z) :]
    sums = scaler.inverse_transform(new)[:, :4].sum(axis=1)
    assert np.abs(sums - 100).max() <= 0.2 + 1e-9


@pytest.mark.parametrize("container", ["numpy", "pandas", "polars"])
def test_rows_of_any_container_keep_them(container):
    X = shares(1)[:, :4]
    if container != "numpy":
        kind = {"pandas": pd, "polars": pl}[container]
        X = kind.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
    rows = np.asarray(PNLAugmenter().fit(X).sample(200, random_state=0), float)
    assert np.abs(rows.sum(axis=1) - 100).max() <= 0.2 + 1e-9
    np.testing.assert_allclose(rows, rows.round(1), atol=1e-12)


@pytest.mark.parametrize("params", [{"marks": None}, {"order": 1}, {"order": 2}])
def test_values_of_any_size_keep_them_exactly(params):
    X = shares(0)
    rows = PNLAugmenter(**params).fit(X).sample(200, random_state=0)
    np.testing.assert_allclose(rows[:, :4].sum(axis=1), 100, rtol=1e-9)


def test_what_is_given_is_checked_to_the_rounding_of_values():
    X = pd.DataFrame(shares(0), columns=list("abcde"))
    coefficients = dict.fromkeys("abcd", 1)
    given = ColumnConstraint(coefficients, equal=100)
    augmenter = PNLAugmenter(invariants=given).fit(X)
    assert augmenter.invariants_.descriptions == ("a + b + c + d = 100, up to 0.2",)
    off = ColumnConstraint(coefficients, equal=100.5)
    with pytest.raises(ValueError, match=r"do not keep 'a \+ b \+ c \+ d = 100.5"):
        PNLAugmenter(invariants=off).fit(X)


def test_with_exact_equations_each_holds_as_it_did():
    rng = np.random.default_rng(0)
    q = rng.lognormal(7, 1, (500, 4))
    X = np.column_stack([q.round(), q[:, :2].round().sum(axis=1), q.sum(1).round(-1)])
    found = find_invariants(X)
    assert found.descriptions[0] == "x4 = x0 + x1"
    assert (found.rounding > 0).tolist() == [False, True]
    rows = PNLAugmenter().fit(X).sample(300, random_state=0)
    assert np.all(rows[:, 4] == rows[:, 0] + rows[:, 1])
    assert np.all(found.violation(rows) <= 1e-9)
    np.testing.assert_array_equal(rows[:, 5] % 10, 0)


def test_totals_and_constraints_go_with_them():
    X = pd.DataFrame(shares(2), columns=list("abcde"))
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(200, random_state=0, totals={"a": 2400.0, "b": 4100.0})
    np.testing.assert_allclose(rows[["a", "b"]].sum(), [2400, 4100], rtol=1e-12)
    assert (rows[list("abcd")].sum(axis=1) - 100).abs().max() <= 0.2 + 1e-9
    asked = ColumnConstraint({"a": 1, "b": 1}, lower=60)
    rows = augmenter.sample(200, random_state=0, constraints=asked)
    assert (rows.a + rows.b).min() >= 60 - 1e-7
    assert (rows[list("abcd")].sum(axis=1) - 100).abs().max() <= 0.2 + 1e-9


@pytest.mark.parametrize("places", [0, 2])
@pytest.mark.parametrize("seed", range(4))
def test_totals_of_all_columns_of_an_equation_are_met(seed, places):
    # What rounding leaves of it in each row, rows may leave in the sum.
    rng = np.random.default_rng(seed)
    parts = rng.gamma(3.0, 3.0, size=(120, 2))
    X = np.column_stack([parts, parts.sum(axis=1)]).round(places)
    asked = X[rng.integers(0, 120, 100)].sum(axis=0)
    augmenter = PNLAugmenter().fit(X)
    assert len(augmenter.invariants_)
    rows = augmenter.sample(100, seed, totals=dict(enumerate(asked)))
    np.testing.assert_allclose(rows.sum(axis=0), asked, rtol=1e-12)
    off = np.abs(rows[:, :2].sum(axis=1) - rows[:, 2])
    assert off.max() < 1.5 * 10.0**-places + 1e-9


def test_rows_of_an_adjusted_table_that_need_no_change_have_none():
    X = pd.DataFrame(shares(3), columns=list("abcde"))
    asked = ColumnConstraint("a", lower=5)
    moved = adjust(X, asked)
    same = X.a >= 5
    pd.testing.assert_frame_equal(moved[same], X[same])
    assert moved.a.min() >= 5 - 1e-9
    assert (moved[list("abcd")].sum(axis=1) - 100).abs().max() <= 0.2 + 1e-9


def test_an_imputer_fills_with_what_is_left_of_a_hundred():
    X = shares(4)
    holes = X.copy()
    holes[::3, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        filled = ManyBodyImputer().fit_transform(holes)
    assert np.abs(filled - X).max() <= 0.2 + 1e-9
    rows = PNLAugmenter().fit(holes).sample(200, random_state=0)
    rows = rows[~np.isnan(rows).any(axis=1), :4]
    assert len(rows) > 50
    assert np.abs(rows.sum(axis=1) - 100).max() <= 0.2 + 1e-9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [60, 200])
def test_they_are_found_in_few_rows_beside_others(seed, n):
    """Coefficients are known to standard errors, also of amounts with long tails."""
    rng = np.random.default_rng(seed)
    parts = rng.lognormal(6, 1, (n, 1)) * rng.dirichlet((2, 1), n)
    total = parts.sum(axis=1).round(1)
    X = np.column_stack([shares(seed, n), parts.round(2), total])
    found = find_invariants(X, list("abcdefgh"))
    assert set(found.descriptions) == {
        "a + b + c + d = 100, up to 0.2",
        "h = f + g, up to 0.06",
    }


# --- what is none ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n, d", [(8, 3), (20, 8), (60, 20), (400, 30)])
def test_chance_makes_none(seed, n, d):
    rng = np.random.default_rng(seed)
    highest = rng.choice([3, 10, 100, 10**6], d)
    X = rng.integers(0, highest, size=(n, d)).astype(float)
    assert len(find_invariants(X)) == 0


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_go_together_without_an_equation_have_none(seed):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=500)
    X = (50 + 10 * (size[:, None] + 0.3 * rng.normal(size=(500, 4)))).round()
    assert len(find_invariants(X)) == 0


@pytest.mark.parametrize("n", [100, 120, 150, 250])
def test_pixels_that_go_together_have_none(n):
    """Nearly as many columns as rows, that are smooth: their noise could be fitted."""
    images, y = load_digits(return_X_y=True)
    for X in (images[:n], images[n : 2 * n], images[y < 2][:n]):
        assert not find_invariants(X).rounding.any()


def test_an_equation_that_one_row_misses_by_more_is_none():
    X = shares(0)
    X[7, 0] += 3
    assert len(find_invariants(X)) == 0


@pytest.mark.parametrize("seed", range(5))
def test_noise_as_large_as_two_steps_is_no_rounding(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(50, 20, (400, 3)).round()
    noise = rng.integers(-2, 3, 400)
    assert len(find_invariants(np.column_stack([X, X.sum(axis=1) + noise]))) == 0
