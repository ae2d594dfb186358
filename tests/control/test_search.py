"""Linear equations that hold in every row: those that are found, and no others."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import SplineTransformer

from sklearn_pnl import ColumnConstraint, PNLAugmenter, find_invariants

NAMES = [
    "total", "s1", "s2", "a", "b", "c", "d", "e", "f", "p1", "p2", "p3", "h0", "h1",
    "h2", "n1", "n2", "n3", "ntot", "copy", "constant", "F",
]  # fmt: skip
EQUATIONS = {
    "constant = 3.5",
    "copy = a",
    "F = 1.8 b + 32",
    "total = s1 + s2",
    "s1 = a + b + c",
    "s2 = d + e + f",
    "p1 + p2 + p3 = 1",
    "h0 + h1 + h2 = 1",
    "ntot = n1 + n2 + n3",
}


def table(rng, n):
    """Nested totals, shares, a one-hot group, counts, a copy, a unit, a constant."""
    parts = rng.gamma(1.0, size=(n, 6)).round(2)
    s1, s2 = parts[:, :3].sum(axis=1), parts[:, 3:].sum(axis=1)
    shares = rng.dirichlet(np.ones(3), n)
    one_hot = np.eye(3)[rng.integers(3, size=n)]
    counts = rng.poisson(5, size=(n, 3))
    return np.column_stack(
        [s1 + s2, s1, s2, parts, shares, one_hot, counts, counts.sum(axis=1),
         parts[:, 0], np.full(n, 3.5), 1.8 * parts[:, 1] + 32]
    )  # fmt: skip


def new_rows(rng, X, n):
    """Rows between rows of a table, with noise that breaks every equation."""
    first, second = X[rng.integers(len(X), size=(2, n))]
    t = rng.uniform(size=(n, 1))
    rows = t * first + (1 - t) * second
    rows = rows * np.exp(0.1 * rng.normal(size=rows.shape))
    return np.clip(rows, X.min(axis=0), X.max(axis=0))


def rank_slow(X):
    """Dimension of the equations, by the singular values of the centred rows."""
    ranges = np.ptp(X, axis=0)
    Z = (X - X.mean(axis=0)) / np.where(ranges > 0, ranges, 1)
    singular = np.linalg.svd(Z, compute_uv=False)
    return int(np.sum(singular > 1e-10 * singular.max(initial=1.0)))


# --- what is found --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [60, 3000])
def test_equations_come_out_in_words(seed, n):
    rng = np.random.default_rng(seed)
    X = table(rng, n)
    found = find_invariants(X, NAMES)
    assert set(found.descriptions) == EQUATIONS
    assert found.violation(X).max() <= 1e-12
    assert len(found) == X.shape[1] - rank_slow(X)
    assert not found.note
    assert "total = s1 + s2" in repr(found)


@pytest.mark.parametrize("seed", range(4))
def test_simple_equations_from_few_rows(seed):
    # 22 and 18 more features, and 25 rows: they satisfy many equations by chance.
    rng = np.random.default_rng(seed)
    X = np.hstack([table(rng, 25), rng.normal(size=(25, 18))])
    found = find_invariants(X, NAMES + [f"r{j}" for j in range(18)])
    assert {"constant = 3.5", "copy = a", "total = s1 + s2", "p1 + p2 + p3 = 1"} <= set(
        found.descriptions
    )
    assert set(found.descriptions) <= EQUATIONS
    assert "25 distinct rows are too few for 39 features" in found.note
    assert found.violation(X).max() <= 1e-12


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n, d", [(12, 6), (100, 9), (400, 40), (2000, 120)])
def test_the_number_of_equations_is_that_of_the_null_space(seed, n, d):
    # Random equations with whole coefficients, as many as a third of the features.
    rng = np.random.default_rng([seed, n])
    free = rng.normal(size=(n, d - d // 3)) * 10 ** rng.uniform(-3, 3, d - d // 3)
    mixing = rng.choice([0.0, 1.0, -1.0, 2.0], p=[0.6, 0.2, 0.1, 0.1],
                        size=(d // 3, free.shape[1]))  # fmt: skip
    mixing[np.arange(d // 3), rng.integers(free.shape[1], size=d // 3)] = 1.0
    X = np.hstack([free, free @ mixing.T + rng.integers(-5, 6, size=d // 3)])
    X = X[:, rng.permutation(d)]
    found = find_invariants(X)
    assert len(found) == d - rank_slow(X) == d // 3
    assert np.linalg.matrix_rank(found.coefficients) == d // 3
    assert found.violation(X).max() <= 1e-9


def test_equations_that_need_not_be_whole():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X = np.column_stack([X, X @ [np.pi, np.sqrt(2), -np.e] + 0.1])
    found = find_invariants(X)
    assert len(found) == 1
    assert found.violation(X).max() <= 1e-12


def test_an_equation_that_one_row_breaks_is_none():
    rng = np.random.default_rng(0)
    for row in (0, 1717, 2999):
        X = table(rng, 3000)
        X[row, NAMES.index("s1")] += 1e-6
        left = set(find_invariants(X, NAMES).descriptions)
        assert "s1 = a + b + c" not in left
        assert "s2 = d + e + f" in left
        assert EQUATIONS - left == {"s1 = a + b + c", "total = s1 + s2"}


def test_sums_along_an_axis_of_rows_with_two():
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(5), (200, 4))
    X[:, :, 0] += 1.0
    found = find_invariants(X.reshape(200, -1))
    assert set(found.descriptions) == {
        " + ".join(f"x{5 * i + j}" for j in range(5)) + " = 2" for i in range(4)
    }


def test_large_offsets_and_all_scales():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 100)) * [[1e-6], [1e6]]
    X = np.column_stack([a, b, a + b, 1e9 + np.arange(100), 2e9 + np.arange(100)])
    assert set(find_invariants(X).descriptions) >= {"x4 = x3 + 1000000000"}
    small = np.column_stack([a, 3 * a + 1e-7, 1e-300 * np.arange(100)])
    assert find_invariants(small).descriptions == ("x1 = 3 x0 + 1e-07",)


@pytest.mark.parametrize("unit", [1e-305, 1e-300, 1e300])
def test_totals_in_units_at_the_ends_of_double_precision(unit):
    parts = np.random.default_rng(0).normal(size=(60, 3)) * unit
    X = np.column_stack([parts, parts.sum(axis=1)])
    assert find_invariants(X).descriptions == ("x3 = x0 + x1 + x2",)


def test_constants_up_to_rounding_have_no_range():
    rng = np.random.default_rng(0)
    a = 10 * rng.normal(size=40)
    X = np.column_stack([a, rng.normal(size=40), (a + 0.1) - a])
    assert 0 < np.ptp(X[:, 2]) < 1e-13
    found = find_invariants(X)
    assert found.violation(X).max() < 1e-9
    assert PNLAugmenter().fit(X).sample(5, 0)[:, 2].round(9).tolist() == [0.1] * 5


def test_equations_in_single_precision_come_out_in_words():
    X = table(np.random.default_rng(0), 500).astype(np.float32)
    assert set(find_invariants(X, NAMES).descriptions) == EQUATIONS
    assert set(find_invariants(X, NAMES, tol=1e-6).descriptions) == EQUATIONS
    # Numbers in double precision with that rounding are no equations to 1e-9.
    double = find_invariants(X.astype(float), NAMES)
    assert "total = s1 + s2" not in double.descriptions
    assert (
        "total = s1 + s2"
        in find_invariants(X.astype(float), NAMES, tol=1e-6).descriptions
    )


RANDOM_TABLES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "integers": lambda rng, shape: rng.integers(0, 100, size=shape),
    "counts": lambda rng, shape: rng.poisson(3, size=shape),
    "rare counts": lambda rng, shape: rng.poisson(0.1, size=shape),
    "three values": lambda rng, shape: rng.integers(0, 3, size=shape),
    "binary": lambda rng, shape: rng.random(shape) < 0.5,
    "rare binary": lambda rng, shape: rng.random(shape) < 0.03,
    "decimals": lambda rng, shape: rng.normal(size=shape).round(1),
}
SHAPES = [(5, 4), (8, 3), (10, 30), (20, 60), (20, 5), (40, 10), (60, 29), (100, 50),
          (100, 99), (300, 20)]  # fmt: skip


@pytest.mark.parametrize("kind", RANDOM_TABLES)
@pytest.mark.parametrize("shape", SHAPES)
def test_random_tables_have_no_invariants(kind, shape):
    for seed in range(4):
        rng = np.random.default_rng([seed, *shape])
        X = RANDOM_TABLES[kind](rng, shape).astype(float)
        found = find_invariants(X)
        assert len(found) == np.sum(np.ptp(X, axis=0) == 0), found


def test_repeated_rows_are_no_evidence():
    X = np.random.default_rng(0).normal(size=(8, 10))
    found = find_invariants(np.tile(X, (50, 1)))
    assert len(found) == 0
    assert "8 distinct rows are too few" in found.note


def test_tables_with_little_in_them():
    assert find_invariants(np.ones((1, 2))).descriptions == ("x0 = 1", "x1 = 1")
    assert find_invariants(np.zeros((9, 2))).descriptions == ("x0 = 0", "x1 = 0")
    assert len(find_invariants(np.arange(2.0)[:, None])) == 0


@pytest.mark.parametrize(
    "X, names, message",
    [
        ([[1.0, np.nan]], None, "NaN; the first is at row 0, column 1"),
        ([[1.0, 2.0]], ["a"], "1 feature_names for 2 features"),
    ],
)
def test_bad_tables(X, names, message):
    with pytest.raises(ValueError, match=message):
        find_invariants(X, names)


def test_violation_is_a_share_of_the_range():
    X = np.random.default_rng(0).integers(0, 6, size=(40, 3)).astype(float)
    X[:, 2] = X[:, 0] + X[:, 1]
    X[:2] = [[0, 0, 0], [5, 5, 10]]
    found = find_invariants(X)
    assert found.descriptions == ("x2 = x0 + x1",)
    np.testing.assert_allclose(found.violation(X + [0, 0, 1]), [0.1])


# --- what once was wrong --------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-10, 1e6, 1e10, 1e12])
def test_copies_in_other_units_hide_nothing(unit):
    from sklearn_pnl import PNLSampler

    a, b = np.random.default_rng(0).gamma(2, size=(2, 60))
    X = np.column_stack([a, b, a * unit, a + b])
    assert len(find_invariants(X)) == 2
    y = np.r_[np.zeros(40, int), np.ones(20, int)]
    X = np.column_stack([a, a * unit, a / unit])
    new = PNLSampler(random_state=0).fit_resample(X, y)[0][60:]
    np.testing.assert_allclose(new[:, 1], unit * new[:, 0], rtol=1e-6)
    np.testing.assert_allclose(new[:, 2], new[:, 0] / unit, rtol=1e-6)


@pytest.mark.parametrize("n", range(5, 14))
def test_copies_and_totals_of_few_rows(n):
    for seed in range(3):
        a, b, c = np.random.default_rng([seed, n]).gamma(2, size=(3, n))
        assert len(find_invariants(np.column_stack([a, b, a]))) == 1
        assert len(find_invariants(np.column_stack([a, b, c, a + b + c]))) == 1


@pytest.mark.parametrize("noise", [8.881784e-16, -8.881784e-16])
@pytest.mark.parametrize("share", [2, 3, 60])
def test_rounding_of_a_constant_tells_rows_not_apart(share, noise):
    a, b = np.random.default_rng(0).normal(size=(2, 60))
    nearly = np.full(60, -7.0)
    nearly[::share] += noise
    found = find_invariants(np.column_stack([a, b, 2 * a + 3 * b, nearly]))
    assert set(found.descriptions) == {"x3 = -7", "x2 = 2 x0 + 3 x1"}


def test_many_copies_take_few_passes(monkeypatch):
    from sklearn_pnl.control import search

    calls = []
    check = search._Rows._check

    def counted(self, equations):
        calls.append(len(equations))
        return check(self, equations)

    monkeypatch.setattr(search._Rows, "_check", counted)
    X = np.tile(np.random.default_rng(0).normal(size=(150, 1)), (1, 120))
    assert len(find_invariants(X)) == 119
    assert len(calls) < 1000


def test_little_in_two_equations_is_no_equation():
    # Both hold to 1e-9 of columns as large as these; their difference does not.
    rng = np.random.default_rng(0)
    large, small = rng.integers(0, 10**6, 8) * 1.0, rng.gamma(1.0, size=8) * 1e-3
    X = np.column_stack([small, large, large + small, 2 * large - small])
    found = find_invariants(X)
    assert found.violation(X).max(initial=0) <= 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 1e3])
def test_what_a_sum_may_miss_makes_no_constant_of_a_column(dtype, size):
    rng = np.random.default_rng(0)
    large = rng.gamma(2.0, 1e7, size=8)
    small = size * rng.uniform(size=(8, 4))
    X = np.column_stack([large, small, large]).astype(dtype)
    assert find_invariants(X).descriptions == ("x5 = x0",)
    rows = PNLAugmenter().fit(X).sample(50, random_state=0)
    assert np.all(rows[:, 5] == rows[:, 0])
    assert np.all(np.ptp(rows[:, 1:5], axis=0) > np.ptp(X[:, 1:5], axis=0) / 2)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [8, 40])
def test_what_is_found_in_any_type_can_be_given(dtype, n):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.choice([0.1, 0.5, 2.5], (n, 3)) + rng.integers(-3, 9, (n, 1))
        X = np.column_stack([X, X @ [1, 1, -2], np.full(n, 0.3) + 0.1 * 3])
        X = X.astype(dtype)
        PNLAugmenter(invariants=find_invariants(X)).fit(X)


def _traffic(rng, n=300):
    """Shares that nearly agree, one that depends on a group, the group, others."""
    group = np.eye(3)[rng.integers(0, 3, n)]
    p = rng.integers(0, 101, n) / 100
    q = p + 10.0 ** rng.uniform(-7.7, -6.5) * (rng.random(n) < 0.3) * rng.random(n)
    r = p * group[:, 0] + 0.1 * q * (1 - group[:, 0])
    return np.column_stack([group, p, q, r, rng.normal(size=(n, 2))])


def test_columns_that_nearly_agree_leave_other_equations_alone():
    # Of 400 such tables 65 had x3 = 676842968.58 x0 + ... in place of the group's.
    for seed in (9, 10, 15, 33, *range(100, 110)):
        X = _traffic(np.random.default_rng(seed))
        assert find_invariants(X).descriptions == ("x0 + x1 + x2 = 1",)


@pytest.mark.parametrize("seed", range(3))
def test_few_kinds_of_rows_satisfy_equations_by_chance(seed):
    # Five columns that five kinds of rows decide, in 300 different rows.
    rng = np.random.default_rng(seed)
    kinds, others = rng.normal(size=(5, 5)), rng.normal(size=(300, 2))
    X = np.column_stack([kinds[rng.integers(0, 5, 300)], others])
    assert X.shape[1] - rank_slow(X) == 1
    assert len(find_invariants(X)) == 0
    # A group is no chance, in whatever units its columns are.
    units = rng.uniform(0.1, 9, size=5)
    X[:, :5] = np.eye(5)[rng.integers(0, 5, 300)] * units
    assert len(find_invariants(X)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_coefficients_for_a_row_or_two_make_no_equation(seed):
    # A copy but for two rows, which two columns of nearly nothing but zeros explain.
    rng, n = np.random.default_rng(seed), 300
    a = rng.poisson(0.5, n)
    b, odd, two = a.copy(), np.zeros((n, 2)), rng.permutation(n)[:2]
    b[two] += [3, 7]
    odd[two, [0, 1]] = [1, 5]
    X = np.column_stack([a, b, odd, rng.normal(size=n)])
    assert X.shape[1] - rank_slow(X) == 1
    assert len(find_invariants(X)) == 0
    # What is seen in more of them is no chance.
    often = rng.random(n) < 0.1
    X[:, 1], X[:, 2] = a + 3 * often, often
    X[:, 3] = rng.normal(size=n)
    assert find_invariants(X).descriptions == ("x1 = x0 + 3 x2",)


@pytest.mark.parametrize("seed", range(3))
def test_two_sums_that_a_row_breaks_are_not_one(seed):
    # One row misses the first by 29 and the second by 11.
    rng = np.random.default_rng(seed)
    parts = rng.poisson(20, size=(200, 4))
    sums = parts.reshape(-1, 2, 2).sum(axis=2)
    sums[7] += [29, 11]
    X = np.column_stack([parts, sums])
    assert X.shape[1] - rank_slow(X) == 1
    assert len(find_invariants(X)) == 0


@pytest.mark.parametrize("value", [0.300048828125, 0.1343994140625, 0.29345703125])
def test_values_of_equations_are_those_of_the_smallest_rows_in_single_precision(value):
    # Else new rows with the lowest values would have to leave them.
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 60)
    raised = level.astype(np.float32) + np.float32(value)
    X = pd.DataFrame({"level": level.astype(np.uint8), "raised": raised})
    found = find_invariants(X.assign(other=rng.normal(size=60)))
    assert len(found) == 1
    own = float(found.values[0] / found.coefficients[0, 1])
    assert abs(own - value) <= 2**-24 * value


@pytest.mark.parametrize("seed", range(8))
def test_columns_that_one_row_has_most_of_hide_no_equation(seed):
    # The last splines are nearly nought in all rows but that of the largest value.
    x = np.random.default_rng(seed).lognormal(size=(2000, 1))
    parts = SplineTransformer(4).fit_transform(x)
    told = "x0 + x1 + x2 + x3 + x4 + x5 = 1"
    assert find_invariants(parts).descriptions == (told,)


@pytest.mark.parametrize("n_kinds", [5, 7])
def test_sums_of_few_kinds_of_rows_are_found(n_kinds):
    # Shares of few kinds satisfy another equation by chance, and sums of both.
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(n_kinds), n_kinds - 1)
    X = np.column_stack(
        [rng.normal(size=300), shares[rng.integers(n_kinds - 1, size=300)]]
    )
    assert X.shape[1] - rank_slow(X) >= 2
    told = " + ".join(f"x{j + 1}" for j in range(n_kinds))
    assert find_invariants(X).descriptions == (f"{told} = 1",)


@pytest.mark.parametrize("n", [8, 9, 10, 12])
def test_copies_and_totals_of_whole_numbers_in_few_rows_are_found(n):
    parts = np.random.default_rng(0).integers(0, 100, size=(n, 3))
    for last in (parts[:, 0], parts.sum(axis=1), parts[:, 0] - parts[:, 2]):
        assert len(find_invariants(np.column_stack([parts, last]))) == 1
    assert not len(find_invariants(np.column_stack([parts, parts[::-1, 0]])))


@pytest.mark.parametrize("seed", [1488, 1654, 1833, 2421, 2555, 2784])
def test_equations_of_others_do_not_cost_one_that_all_rows_satisfy(seed):
    # Once others were taken from it, what it was missed by was more than it may be.
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    X = rng.normal(size=(200, k)) * 10.0 ** rng.integers(-3, 4, k)
    m = int(rng.integers(1, 4))
    shape = k, m
    fractions = rng.random(shape) < 0.5
    simple = rng.integers(-5, 6, shape) / rng.integers(1, 9, shape)
    weights = np.where(fractions, simple, rng.normal(size=shape) * np.pi)
    weights *= rng.random(shape) < 0.7
    others = X @ weights
    X = np.hstack([X, others, others @ rng.integers(-2, 3, (m, 2))])
    found = find_invariants(X)
    assert len(found) == X.shape[1] - k
    left = np.ptp(X @ found.coefficients.T, axis=0)
    assert np.all(left <= 1e-9 * np.abs(found.coefficients) @ np.ptp(X, axis=0))


@pytest.mark.parametrize("n", range(9, 16))
def test_more_rows_find_no_fewer_equations(n):
    # From two rows a feature on any equation is looked for, and not simple ones alone.
    parts = 1000.0 * np.random.default_rng(n).integers(0, 1000, (n, 5))
    X = np.column_stack([parts, parts.sum(axis=1)])
    told = ("x5 = x0 + x1 + x2 + x3 + x4",)
    assert find_invariants(X).descriptions == told
    if n >= 2 * X.shape[1]:
        between = X[:, [0, 1, 5, 2, 3, 4]]
        names = ["x0", "x1", "x5", "x2", "x3", "x4"]
        assert find_invariants(between, names).descriptions == told


@pytest.mark.parametrize("n_observed", [0, 1, 2, 5])
def test_a_column_that_most_rows_lack_costs_no_equation_of_others(n_observed):
    rng = np.random.default_rng(n_observed)
    X = np.column_stack([table(rng, 80), rng.normal(size=80)])
    X[n_observed:, -1] = np.nan
    augmenter = PNLAugmenter().fit(pd.DataFrame(X, columns=[*NAMES, "rare"]))
    system = augmenter.invariants_
    assert EQUATIONS <= set(system.descriptions)
    rows = augmenter.sample(40, random_state=0).fillna({"rare": X[:1, -1].sum()})
    assert system.violation(np.nan_to_num(rows)).max() < 1e-8


def test_equations_of_columns_that_follow_from_others_are_told_once():
    rng = np.random.default_rng(0)
    X = np.column_stack([table(rng, 80), rng.normal(size=(80, 2))])
    X[:40, -1] = X[20:60, -2] = np.nan
    system = PNLAugmenter().fit(pd.DataFrame(X, columns=[*NAMES, "r", "s"])).invariants_
    assert set(system.descriptions) == EQUATIONS


@pytest.mark.parametrize("n_observed", [0, 1, 40])
def test_equations_that_are_given_are_checked_on_rows_that_have_their_cells(n_observed):
    X = np.random.default_rng(0).gamma(2.0, size=(40, 4))
    X[:, 2], X[n_observed:, 3] = X[:, 0] + X[:, 1], np.nan
    total = ColumnConstraint({0: 1, 1: 1, 2: -1}, equal=0)
    rows = PNLAugmenter(invariants=total).fit(X).sample(20, random_state=0)
    np.testing.assert_allclose(rows[:, 0] + rows[:, 1], rows[:, 2], rtol=1e-9)
    with pytest.raises(ValueError, match=r"do not keep .* by up to [0-9.]*e-0[12] of"):
        PNLAugmenter(invariants=ColumnConstraint({0: 1, 1: 1, 2: -1}, equal=0.1)).fit(X)
    X[::2, 0] = X[1::2, 2] = np.nan
    with pytest.raises(ValueError, match="no such row for 'x2 = x0 [+] x1'"):
        PNLAugmenter(invariants=total).fit(X)


def test_five_rows_of_whole_numbers_tell_a_total_as_four_and_six_do():
    # Of 120 sums of cells of other rows, some are the same as in any lottery.
    found = dict.fromkeys([4, 5, 6], 0)
    for seed in range(20):
        parts = np.random.default_rng(seed).integers(0, 3000, (6, 3))
        X = np.column_stack([parts, parts.sum(axis=1)])
        for n in found:
            known = find_invariants(X[:n]).descriptions
            found[n] += known == ("x3 = x0 + x1 + x2",)
    assert min(found.values()) >= 18, found


def test_a_level_that_few_complete_rows_have_costs_no_group():
    rng = np.random.default_rng(0)
    levels = np.eye(4)[rng.choice(4, 2000, p=[0.5, 0.3, 0.198, 0.002])]
    X = np.column_stack([levels, rng.normal(size=(2000, 2))])
    X[rng.random(2000) < 0.97, -1] = X[levels[:, 3] == 1, -1] = np.nan
    told = PNLAugmenter().fit(X).invariants_.descriptions
    assert told == ("x0 + x1 + x2 + x3 = 1",)


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_small_whole_numbers_of_few_rows_are_no_equations(n):
    for seed in range(40):
        X = np.random.default_rng(seed).integers(0, 10, (n, 6))
        found = find_invariants(X).coefficients
        assert np.all(np.count_nonzero(found, axis=1) == 1), X
