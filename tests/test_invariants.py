"""Linear equations found in tables, and rows brought to linear constraints."""

import re

import numpy as np
import pytest
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.control import (
    ColumnConstraint,
    Invariants,
    collect_constraints,
    find_invariants,
    meet_constraints,
    round_integers,
    snap_one_hot,
)
from sklearn_pnl.geometry import linear_projection

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
    assert found.one_hot_groups == ((12, 13, 14),)
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


def test_constants_up_to_rounding_have_no_range():
    rng = np.random.default_rng(0)
    a = 10 * rng.normal(size=40)
    X = np.column_stack([a, rng.normal(size=40), (a + 0.1) - a])
    assert 0 < np.ptp(X[:, 2]) < 1e-13
    found = find_invariants(X)
    assert found.violation(X).max() < 1e-9
    assert PNLAugmenter().fit(X).sample(5, 0)[:, 2].round(9).tolist() == [0.1] * 5


def test_single_precision_needs_a_larger_tolerance():
    X = table(np.random.default_rng(0), 500).astype(np.float32)
    assert "total = s1 + s2" not in find_invariants(X, NAMES).descriptions
    assert "total = s1 + s2" in find_invariants(X, NAMES, tol=1e-6).descriptions


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
    assert len(find_invariants(np.empty((0, 3)))) == 0
    assert find_invariants(np.ones((1, 2))).descriptions == ("x0 = 1", "x1 = 1")
    assert find_invariants(np.zeros((9, 2))).descriptions == ("x0 = 0", "x1 = 0")
    assert len(find_invariants(np.arange(2.0)[:, None])) == 0


@pytest.mark.parametrize(
    "X, names, message",
    [
        ([1.0, 2.0], None, r"shape \(n, D\) and be finite; got shape \(2,\)"),
        ([[1.0, np.nan]], None, "finite"),
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


# --- rows on constraints --------------------------------------------------------


def embedding(X):
    """Scale and shift to [0, 1], and the ends of the ranges."""
    low, high = X.min(axis=0), X.max(axis=0)
    scale = 1 / np.where(high > low, high - low, 1)
    return {"low": low, "high": high, "scale": scale, "shift": -low * scale,
            "offset": 0.1}  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_new_rows_keep_invariants_and_ranges(seed):
    rng = np.random.default_rng(seed)
    X = table(rng, 200)
    rows, found = new_rows(rng, X, 300), find_invariants(X, NAMES)
    before = found.violation(rows)
    assert before.max() > 0.05
    keep = collect_constraints(found, X.shape[1], feature_names=NAMES)
    met = meet_constraints(rows, keep, **embedding(X))
    assert not met.reasons
    assert found.violation(met.check()).max() <= 1e-9
    assert met.violation.max() <= 1e-9
    assert np.all((met.rows >= X.min(axis=0)) & (met.rows <= X.max(axis=0)))
    # Moved about as much as they were off.
    moved = np.abs(met.rows - rows).max(axis=1) / np.ptp(X, axis=0).max()
    assert moved.max() < 0.5


def test_rows_that_meet_their_constraints_stay():
    rng = np.random.default_rng(0)
    X = table(rng, 100)
    keep = collect_constraints(find_invariants(X), X.shape[1])
    met = meet_constraints(X, keep, **embedding(X))
    np.testing.assert_allclose(met.rows, X, atol=1e-9)
    none = collect_constraints(None, X.shape[1])
    np.testing.assert_array_equal(meet_constraints(X, none, **embedding(X)).rows, X)


def test_the_projection_is_that_of_the_embedding():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(50, 4))
    a = np.array([[1.0, 2.0, 0.0, -1.0]])
    asked = collect_constraints(LinearConstraint(a, 1.5, 1.5), 4)
    box = embedding(X)
    met = meet_constraints(X, asked, **box)
    z = X * box["scale"] + box["shift"] + 0.1
    b = 1.5 + a / box["scale"] @ (box["shift"] + 0.1)
    m = linear_projection(z, a / box["scale"], b, b, floor=0.1, ceiling=1.1).measure
    expected = (m - 0.1 - box["shift"]) / box["scale"]
    np.testing.assert_allclose(met.rows, expected, atol=1e-7)


def test_constraints_of_every_kind_at_once():
    rng = np.random.default_rng(0)
    X = table(rng, 200)
    rows = new_rows(rng, X, 40)
    totals = np.linspace(5, 7, 40)
    asked = collect_constraints(
        [
            find_invariants(X, NAMES),
            ColumnConstraint("total", equal=totals),
            ColumnConstraint({"s1": 1, "s2": -1}, lower=0),
            LinearConstraint(csr_array(np.eye(22)[3:5]), [0.2, 0], [1, 0.5]),
            ColumnConstraint(-1, upper=34),
        ],
        22,
        feature_names=NAMES,
        n_rows=40,
    )
    met = meet_constraints(rows, asked, **embedding(X))
    x = dict(zip(NAMES, met.check().T, strict=True))
    np.testing.assert_allclose(x["total"], totals, atol=1e-8)
    np.testing.assert_allclose(x["s1"] + x["s2"], totals, atol=1e-8)
    assert np.all(x["s1"] - x["s2"] >= -1e-8)
    assert np.all((x["a"] >= 0.2) & (x["a"] <= 1) & (x["b"] <= 0.5) & (x["F"] <= 34))
    assert np.all((met.rows >= X.min(axis=0)) & (met.rows <= X.max(axis=0)))


def test_what_cannot_be_met_is_told_in_the_units_of_the_rows():
    rng = np.random.default_rng(0)
    X = table(rng, 200)
    rows, box = new_rows(rng, X, 3), embedding(X)
    keep = find_invariants(X, NAMES)
    top = X[:, 0].max()
    beyond = [keep, ColumnConstraint("total", equal=[5.0, top + 1, 5])]
    asked = collect_constraints(beyond, 22, feature_names=NAMES)
    met = meet_constraints(rows, asked, **box)
    np.testing.assert_array_equal(met.converged, [True, False, True])
    reach = f"it reaches {X[:, 0].min():.7g} to {top:.7g}"
    with pytest.raises(ValueError, match="1 of 3 rows cannot .* first is row 1") as e:
        met.check()
    assert reach in str(e.value)
    assert f"total asks for {top + 1:.10g}" in str(e.value)
    # Each can be met, but not both.
    both = [keep, ColumnConstraint("total", equal=4), ColumnConstraint("s1", lower=4.5)]
    asked = collect_constraints(both, 22, feature_names=NAMES)
    reason = meet_constraints(rows, asked, **box).reasons[0]
    assert re.match(
        r"s1 asks for 4.5 or more; within .* and with total = s1 \+ s2, total = 4 it "
        rf"reaches {X[:, 1].min():.7g} to ",
        reason,
    )


@pytest.mark.parametrize(
    "given, message",
    [
        (LinearConstraint([[1, 1]], 0, 1), "Constraint 0 has 2 columns; .* 3 features"),
        (ColumnConstraint("z", lower=0, upper=1), "names the column 'z': not in"),
        (ColumnConstraint(5, lower=0, upper=1), "names column 5; rows have 3 features"),
        (ColumnConstraint("a", lower=2, upper=1), "lower <= upper"),
        (
            ColumnConstraint("a", lower=np.zeros(3), upper=1),
            "given for 3 rows; there are 2",
        ),
        ([None], "Constraint 0 must be a scipy.optimize.LinearConstraint"),
    ],
)
def test_bad_constraints(given, message):
    with pytest.raises(ValueError, match=message):
        collect_constraints(given, 3, feature_names=["a", "b", "c"], n_rows=2)


def test_names_need_a_frame():
    with pytest.raises(ValueError, match="'a': rows have no column names"):
        collect_constraints(ColumnConstraint("a", lower=0, upper=1), 3)
    asked = collect_constraints(
        ColumnConstraint(0, lower=np.zeros(3), upper=np.ones(3)), 3
    )
    with pytest.raises(ValueError, match="given for 3 rows; there are 2"):
        meet_constraints(np.ones((2, 3)), asked, np.zeros(3), np.ones(3), offset=0.1)


# --- whole columns --------------------------------------------------------------


def test_totals_that_are_parts_of_each_other_are_not_rounded_together():
    # The first is a part of the second, and the second of the first.
    a = np.array([[1.0, -1, -1, 0], [-1, 1, 0, -1]])
    both = Invariants(a, np.zeros(2), tuple("abcd"), np.ones(4))
    rows, broken = round_integers([[1.2, 1.2, 0, 0]], both, range(4))
    assert broken == (0, 1)
    np.testing.assert_array_equal(rows, [[1, 1, 0, 0]])


def test_one_hot_groups_snap_to_the_largest():
    rng = np.random.default_rng(0)
    X = table(rng, 100)
    found = find_invariants(X)
    rows = meet_constraints(
        new_rows(rng, X, 50), collect_constraints(found, 22), **embedding(X)
    ).check()
    snapped = snap_one_hot(rows, found.one_hot_groups)
    group = snapped[:, 12:15]
    np.testing.assert_array_equal(np.sort(group, axis=1), [[0, 0, 1]] * 50)
    np.testing.assert_array_equal(group.argmax(1), rows[:, 12:15].argmax(1))
    np.testing.assert_array_equal(np.delete(snapped, [12, 13, 14], axis=1),
                                  np.delete(rows, [12, 13, 14], axis=1))  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_rounded_parts_add_up_to_rounded_totals(seed):
    # Totals of totals, and parts of a constant.
    rng = np.random.default_rng(seed)
    parts = rng.poisson(4, size=(300, 6))
    s1, s2 = parts[:, :3].sum(axis=1), parts[:, 3:].sum(axis=1)
    hours = rng.multinomial(24, [0.2, 0.5, 0.3], 300)
    X = np.column_stack([s1 + s2, s1, s2, parts, hours]).astype(float)
    found = find_invariants(X)
    assert len(found) == 4
    rows = meet_constraints(
        new_rows(rng, X, 100), collect_constraints(found, 12), **embedding(X)
    ).check()
    whole, broken = round_integers(rows, found, np.arange(12))
    assert broken == ()
    np.testing.assert_array_equal(whole, np.round(whole))
    assert found.violation(whole).max() == 0
    assert np.abs(whole - rows).max() < 1 + 1e-9
    assert np.all((whole >= X.min(axis=0)) & (whole <= X.max(axis=0)))


def test_equations_that_rounding_breaks_are_told():
    rng = np.random.default_rng(0)
    a, b = rng.poisson(9, size=(2, 100))
    X = np.column_stack([a, b, 2 * a + 3 * b, rng.normal(size=100), a]).astype(float)
    X[:, 4] += X[:, 3]
    found = find_invariants(X)
    rows, broken = round_integers(X + 0.0, found, [0, 1, 2])
    assert len(broken) == 2
    np.testing.assert_array_equal(rows[:, 3], X[:, 3])
    assert round_integers(X, found, [])[1] == ()


def test_fixed_values_alone():
    # Conditional rows: nothing is left for the projection to do.
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(20, 3))
    asked = collect_constraints(ColumnConstraint({1: 2.0}, equal=1.0), 3)
    met = meet_constraints(X, asked, **embedding(X)).check()
    np.testing.assert_allclose(met[:, 1], 0.5)
    np.testing.assert_array_equal(met[:, [0, 2]], X[:, [0, 2]])
    upside_down = collect_constraints(
        ColumnConstraint({1: -2.0}, lower=-1.0, upper=-0.5), 3
    )
    met = meet_constraints(X, upside_down, **embedding(X)).check()
    np.testing.assert_allclose(met[:, 1], np.clip(X[:, 1], 0.25, 0.5))
