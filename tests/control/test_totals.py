"""Totals of new rows: met, refused by name, with all that each row keeps."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from benchmarks.control.totals import (
    infeasible,
    missed_rows,
    missed_totals,
    planted,
    table,
)
from sklearn_pnl import (
    ColumnConstraint,
    KernelDraws,
    LinearSystem,
    MixupDraws,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    SampleReportDisplay,
    column_total,
)
from sklearn_pnl._drawing import sets
from sklearn_pnl._drawing.totals import Quotas
from sklearn_pnl.control.together import Sums, rounding_of_one
from sklearn_pnl.geometry.joint import joint_projection

TOL = 1e-9
RNG = np.random.default_rng


def households(**settings):
    X = table(0)
    return X, PNLAugmenter(categorical_features="auto", **settings).fit(X)


# --- the projection ---------------------------------------------------------------


def random_problem(seed, n=6, intervals=False):
    rng = RNG(seed)
    rows = rng.gamma(2.0, size=(n, 4))
    rows[:, 3] = rows[:, 0] + rows[:, 1]
    a = np.array([[1.0, 1.0, 0.0, -1.0], [0.0, 1.0, -2.0, 0.0]])
    lower, upper = np.array([[0.0, -np.inf]]), np.array([[0.0, 1.0]])
    rows[:, 2] = np.maximum(rows[:, 2], rows[:, 1])
    totals = np.array([[0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]])
    held = totals @ rows.sum(axis=0)
    least = held * [1.2, 0.9]
    most = least + intervals * np.array([0.0, 0.2])
    weights = 0.5 + rng.uniform(size=rows.shape)
    ends = np.zeros(4), rows.max(axis=0) * 1.3
    return rows, weights, a, lower, upper, totals, least, most, ends


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("intervals", [False, True])
def test_rows_together_are_what_a_general_solver_finds(seed, intervals):
    problem = random_problem(seed, intervals=intervals)
    *known, (floor, ceiling) = problem
    rows, weights, a, lower, upper, totals, least, most = known
    found, residual, _ = joint_projection(
        rows, weights, (a, lower, upper), (totals, least, most), (floor, ceiling),
        np.ones(4),
    )  # fmt: skip

    def cost(x):
        return (((x.reshape(rows.shape) - rows) ** 2) / (2 * weights)).sum()

    def gap(x, k):
        x = x.reshape(rows.shape)
        if k == 0:
            return np.append(x @ a[0], totals[0] @ x.sum(axis=0) - least[0])
        sums = totals[1] @ x.sum(axis=0)
        return np.append(1 - x @ a[1], [sums - least[1], most[1] - sums])

    ends = np.tile(floor, len(rows)), np.tile(ceiling, len(rows))
    oracle = minimize(
        cost, rows.ravel(), method="SLSQP", bounds=np.column_stack(ends),
        constraints=[{"type": "eq", "fun": lambda x: gap(x, 0)},
                     {"type": "ineq", "fun": lambda x: gap(x, 1)}],
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert oracle.success
    assert residual.max() < 1e-12
    assert np.abs(found @ a[0]).max() < 1e-10
    assert (found @ a[1]).max() < 1 + 1e-10
    # Cells that stand for intervals are moved at a small price.
    assert cost(found) == pytest.approx(oracle.fun, rel=2e-3)


def test_totals_alone_have_the_closed_form_of_calibrated_values():
    # Deville and Sarndal 1992, the linear method: x = s + w T' z, one solve.
    rng = RNG(0)
    rows, weights = rng.normal(size=(50, 3)), rng.uniform(0.5, 1, size=(50, 3))
    totals, asked = rng.normal(size=(2, 3)), np.array([3.0, -1.0])
    found, residual, _ = joint_projection(
        rows, weights, (np.empty((0, 3)), np.empty((1, 0)), np.empty((1, 0))),
        (totals, asked, asked), (np.full(3, -np.inf), np.full(3, np.inf)), np.ones(3),
    )  # fmt: skip
    gram = (totals * weights.sum(axis=0)) @ totals.T
    z = np.linalg.solve(gram, asked - totals @ rows.sum(axis=0))
    np.testing.assert_allclose(found, rows + weights * (z @ totals), atol=1e-9)


def test_cells_that_are_fixed_do_not_hold_back_the_others():
    # Their terms are 1e5 times those of the others, in sums and in equations.
    rng = RNG(0)
    rows = np.column_stack([1e5 * rng.uniform(size=20), rng.uniform(size=(20, 2))])
    ends = np.zeros((20, 3)), np.ones((20, 3))
    for end in ends:
        end[:, 0] = rows[:, 0]
    totals, a = np.array([[2.0, 1.0, 0.0]]), np.array([[1.0, 0.5, 0.5]])
    asked = totals @ rows.sum(axis=0) + 0.4
    equal = rows @ a.T
    found, residual, _ = joint_projection(
        rows, np.ones((20, 3)) * [1e10, 1, 1], (a, equal, equal),
        (totals, asked, asked), ends, np.array([1e5, 1.0, 1.0]),
    )  # fmt: skip
    assert residual.max() < 1e-12
    np.testing.assert_allclose(found @ a.T, equal, rtol=1e-14)
    np.testing.assert_array_equal(found[:, 0], rows[:, 0])


# --- rows -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_totals_that_some_rows_have_are_met_with_all_that_rows_keep(seed):
    X = table(seed, 120)
    augmenter, rng = PNLAugmenter(categorical_features="auto").fit(X), RNG([seed, 5])
    for k in range(3):
        n = int(rng.choice([20, 60, 90]))
        _, totals, asked = planted(rng, X, augmenter, n)
        rows = augmenter.sample(n, k, totals=totals, constraints=asked)
        assert len(rows) == n
        assert (rows.dtypes == X.dtypes).all()
        sums, counts = missed_totals(rows, totals)
        assert sums <= TOL
        assert counts == 0
        assert missed_rows(rows, X, asked) <= TOL


@pytest.mark.parametrize("seed", range(8))
def test_totals_that_no_rows_have_are_refused_by_name(seed):
    X = table(seed, 120)
    augmenter, rng = PNLAugmenter(categorical_features="auto").fit(X), RNG([seed, 6])
    _, totals, words = infeasible(rng, X, 60)
    with pytest.raises(ValueError, match=words):
        augmenter.sample(60, 0, totals=totals)


def test_what_contradicts_a_total_is_named_with_what_can_be_reached():
    _, augmenter = households()
    totals = {"wage": 3e5, "rent": 1e5, "net": 1e5}
    with pytest.raises(ValueError) as caught:
        augmenter.sample(100, 0, totals=totals)
    told = str(caught.value)
    assert "wage = rent + net in every row" in told
    assert "'rent'" in told
    assert "reaches 200000." in told


def test_the_audit_is_of_the_rows_that_leave(monkeypatch):
    X, augmenter = households()
    form = type(augmenter._source.table)
    like = form.like

    def spoilt(self, numbers, donors=None):
        rows = like(self, numbers, donors)
        return rows.assign(wage=rows["wage"] * 1.0001) if len(rows) == 70 else rows

    monkeypatch.setattr(form, "like", spoilt)
    totals = {"wage": 70 * X["wage"].mean()}
    augmenter = PNLAugmenter(categorical_features="auto", invariants=None).fit(X)
    with pytest.raises(ValueError, match="the sum of 'wage' asks for .*rows have"):
        augmenter.sample(70, 0, totals=totals)


def test_rows_without_totals_are_the_same_bytes_with_a_report():
    _, augmenter = households()
    plain = augmenter.sample(40, 0)
    rows, report = augmenter.sample(40, 0, return_report=True)
    pd.testing.assert_frame_equal(plain, rows)
    assert set(report.kinds) == {"invariant"}
    assert report.effective_parents == report.n_train == 200


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_totals_give_the_same_bytes_for_a_seed(n_jobs):
    X, augmenter = households()
    totals = {"wage": 60 * X["wage"].mean(), "sex": {"f": 30, "m": 30}, "kids": 50}
    rows = augmenter.sample(60, 3, totals=totals)
    again = augmenter.set_params(n_jobs=n_jobs).sample(60, 3, totals=totals)
    pd.testing.assert_frame_equal(rows, again)


def test_arrays_lists_of_sums_and_other_draws():
    rng = RNG(0)
    X = rng.gamma(2.0, size=(80, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    wanted = 50 * X.mean(axis=0) * 1.1
    for draws in ("mixup", KernelDraws(0.1)):
        augmenter = PNLAugmenter(draws=draws).fit(X)
        rows = augmenter.sample(50, 0, totals=wanted)
        np.testing.assert_allclose(rows.sum(axis=0), wanted, rtol=1e-9)
        assert np.abs(rows[:, 2] - rows[:, 0] - rows[:, 1]).max() < 1e-8


def test_arrays_of_sums_have_the_shape_of_a_row():
    X = RNG(0).gamma(2.0, size=(80, 3, 4))
    augmenter, wanted = PNLAugmenter().fit(X), 55 * X.mean(axis=0)
    rows = augmenter.sample(50, 0, totals=wanted)
    np.testing.assert_allclose(rows.sum(axis=0), wanted, rtol=1e-9)
    with pytest.raises(ValueError, match=r"of shape \(3, 4\); got"):
        augmenter.sample(50, 0, totals=wanted[:, 0])


def test_counts_with_other_draws_are_exact():
    _, augmenter = households(draws=KernelDraws(0.05))
    rows = augmenter.sample(60, 0, totals={"region": {"n": 5, "s": 5, "w": 50}})
    assert rows["region"].value_counts().to_dict() == {"w": 50, "n": 5, "s": 5}


@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_of_three_categories_of_many_levels_are_counted(seed):
    rng, names = RNG(seed), ["a", "b", "c"]
    codes = rng.integers(0, 8, (1000, 3)).astype(str)
    X = pd.DataFrame(codes, columns=names).assign(x=rng.normal(size=1000))
    some = X.sample(400, random_state=seed, replace=True)
    pairs = [["a", "b"], ["b", "c"], ["a", "c"]]
    wanted = {tuple(pair): some.groupby(pair).size() for pair in pairs}
    rows = PNLAugmenter().fit(X).sample(400, seed, totals=wanted)
    for pair, counts in wanted.items():
        found = rows.groupby(list(pair)).size()
        pd.testing.assert_series_equal(found, counts)


@pytest.mark.parametrize("seed", range(3))
def test_sets_are_drawn_with_noise_of_few_rows(seed):
    # In two thirds of the rows two columns are equal.
    rng = RNG(seed)
    a = rng.normal(size=300)
    b = np.where(rng.random(300) < 2 / 3, a, rng.permutation(a))
    a[:2] = b[:2] = [-4, 4]
    X = np.column_stack([a, b, rng.normal(size=300)])
    total = {2: 20.0}
    own = PNLAugmenter().fit(X)
    rows = own.sample(200, seed, totals=total)
    few = PNLAugmenter(draws=MixupDraws(noise_neighbors=2)).fit(X)
    np.testing.assert_array_equal(rows, few.sample(200, seed, totals=total))
    many = PNLAugmenter(draws="mixup").fit(X).sample(200, seed, totals=total)
    np.testing.assert_array_equal(
        own.sample(200, seed), PNLAugmenter(draws="mixup").fit(X).sample(200, seed)
    )
    alike, others = ((np.abs(x[:, 0] - x[:, 1]) < 1e-9).mean() for x in (rows, many))
    assert alike > others + 0.05


@pytest.mark.parametrize("seed", range(3))
def test_donors_are_parents_where_that_can_be(seed):
    rng = RNG(seed)
    cell = np.array([0, 0, 1, 1, 2])
    parents = np.array([[0, 2], [1, 0], [0, 1], [2, 3]])
    quotas = Quotas(cell, np.array([1, 2, 1]))
    found, strange = quotas.donors(
        parents[:, 0], parents, lambda row, some: some[0], rng
    )
    np.testing.assert_array_equal(np.bincount(cell[found]), [1, 2, 1])
    # The first row has a parent in the second cell; nobody has one in the third.
    assert found[0] == 2
    assert strange.sum() == 1
    assert found[strange] == 4


def test_large_integers_count_from_their_start():
    rng = RNG(1)
    X = pd.DataFrame(
        {"id": 2**60 + rng.integers(0, 1000, 90), "x": rng.normal(size=90)}
    )
    rows = PNLAugmenter().fit(X).sample(40, 0, totals={"id": 40 * 2.0**60 + 20000})
    asked = 40 * 2**60 + 20000
    assert abs(sum(map(int, rows["id"])) - asked) <= 1e-9 * asked


def test_indicators_sum_to_whole_numbers_and_stay_one_hot():
    rng = RNG(2)
    group = np.eye(3)[rng.integers(3, size=150)]
    X = np.column_stack([group, group @ [1.0, 2.0, 4.0] + rng.normal(size=150)])
    rows = PNLAugmenter().fit(X).sample(100, 0, totals={0: 60, 2: 10})
    np.testing.assert_array_equal(rows[:, :3].sum(axis=0), [60, 30, 10])
    np.testing.assert_array_equal(np.sort(rows[:, :3], axis=1)[:, 2], 1)


def test_whole_numbers_whose_other_columns_cancel_out():
    # Sums of a float and of float and whole number leave a sum of whole numbers.
    rng = RNG(3)
    X = np.column_stack([rng.normal(size=100), rng.integers(0, 9, 100)])
    augmenter = PNLAugmenter().fit(X)
    both = column_total({0: 1, 1: 1}, 203.25)
    rows = augmenter.sample(50, 0, totals=[{0: 3.25}, both])
    assert rows[:, 1].sum() == 200
    with pytest.raises(ValueError, match="whole numbers"):
        augmenter.sample(50, 0, totals=[{0: 3.5}, both])


def test_values_that_are_counted_are_those_of_donors():
    X, augmenter = households()
    counts = {1: 20, 2: 30, 3: 10}
    rows = augmenter.sample(60, 0, totals={"adults": counts})
    assert rows["adults"].value_counts().to_dict() == counts
    assert (rows["persons"] == rows["adults"] + rows["kids"]).all()
    with pytest.raises(ValueError, match="'wage' is counted by its values"):
        augmenter.sample(60, 0, totals={"wage": {float(X["wage"].iloc[0]): 3}})


@pytest.mark.parametrize("seed", [1, 2, 6])
def test_sums_of_scaled_dummies_in_single_precision_are_had_where_rows_have_them(seed):
    # Equations of such rows hold up to rounding, where all their columns are at ends.
    rng = RNG(seed)
    X = [np.eye(3)[rng.integers(0, 3, 60)], np.eye(4)[rng.integers(0, 4, 60)]]
    X = np.column_stack([*X, rng.normal(size=(60, 2))])
    X = StandardScaler().fit_transform(X).astype(np.float32)
    terms = {1: 1.0, 4: -1.0, 5: 2.0}
    weights = np.zeros(9)
    weights[list(terms)] = list(terms.values())
    wanted = (X[rng.integers(0, 60, 20)].astype(float) @ weights).sum()
    totals = column_total(terms, wanted)
    rows = PNLAugmenter().fit(X).sample(20, 0, totals=totals)
    assert (rows.astype(float) @ weights).sum() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(8))
def test_sums_over_several_scaled_dummies_leave_these_as_they_are(seed, dtype):
    # Steps that do not divide each other: only one count of each column gives the sum.
    rng = RNG(seed)
    words = [rng.choice(k, 200, p=rng.dirichlet(np.full(k, 3.0))) for k in (3, 4, 5)]
    two = rng.random(200) < 0.2
    X = np.column_stack([*(np.eye(w.max() + 1)[w] for w in words), two])
    X = StandardScaler().fit_transform(X).astype(dtype)
    some = rng.choice(X.shape[1], 3, replace=False)
    weights = np.zeros(X.shape[1])
    weights[some] = rng.choice([1.0, 2.0, -1.0], 3)
    wanted = (X[rng.integers(0, 200, 40)].astype(float) @ weights).sum()
    totals = column_total({int(j): weights[j] for j in some}, wanted)
    rows = PNLAugmenter().fit(X).sample(40, 0, totals=totals)
    assert (rows.astype(float) @ weights).sum() == pytest.approx(wanted, abs=1e-5)
    # Alone, the last one may take over what is left.
    last = X.shape[1] - 1
    for j in range(last + (last not in some)):
        assert set(rows[:, j].tolist()) <= set(X[:, j].tolist())


def test_a_sum_at_the_least_that_rows_have_in_single_precision():
    # All of the group is at its ends, where its equation holds to rounding alone.
    rng = RNG(1)
    X = np.eye(4)[rng.choice(4, 300, p=[0.7, 0.2, 0.08, 0.02])]
    X = np.column_stack([X, rng.normal(size=300)])
    X = StandardScaler().fit_transform(X).astype(np.float32)
    low = float(X[:, 3].min())
    totals = {3: 20 * low, 0: 20 * float(X[:, 0].max())}
    rows = PNLAugmenter().fit(X).sample(20, 0, totals=totals)
    np.testing.assert_allclose(rows.sum(axis=0)[[3, 0]], [*totals.values()], rtol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 2])
def test_rows_that_equations_hold_back_are_left_for_others(seed, count):
    # No row without f can have d: z = u + d is at least 1 then, and f + r less.
    rng = RNG(seed)
    f, r = rng.random(300) < 0.1, rng.uniform(0, 0.2, 300)
    d = f & (rng.random(300) < 0.15)
    d[0] = f[0] = True
    z = f + r
    X = np.column_stack([d, z - d, z, f, r])
    rows = PNLAugmenter().fit(X).sample(60, 0, totals={0: count})
    assert rows[:, 0].sum() == count
    np.testing.assert_allclose(rows[:, 1] + rows[:, 0], rows[:, 2], atol=1e-9)
    np.testing.assert_allclose(rows[:, 3] + rows[:, 4], rows[:, 2], atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_that_are_counted_may_be_any_few_ones(dtype):
    rng = RNG(0)
    levels = np.array([-1.37, 0.2, 0.9, 7 / 3], dtype)
    X = rng.normal(size=(200, 3)).astype(dtype)
    X[:, 2] = rng.choice(levels, 200)
    counts = dict(zip(levels.tolist(), (20, 0, 5, 15), strict=True))
    rows = PNLAugmenter().fit(X).sample(40, 0, totals={2: counts})
    found = {level: np.count_nonzero(rows[:, 2] == level) for level in levels.tolist()}
    assert found == counts


@pytest.mark.parametrize("shared", [0, 4, 99])
def test_values_that_are_counted_may_be_those_that_many_rows_share(shared):
    # Beside it there are few others, of which it is none.
    rng = RNG(0)
    visits = np.where(rng.random(400) < 0.9, shared, rng.choice([1, 2, 3, 5, 7], 400))
    X = np.column_stack([rng.normal(size=(400, 2)), visits])
    augmenter = PNLAugmenter().fit(X)
    for counts in ({shared: 9, 7: 1}, {shared: 0, 1: 10}, {shared: 10}):
        rows = augmenter.sample(10, random_state=0, totals={2: counts})
        for value, count in counts.items():
            assert np.count_nonzero(rows[:, 2] == value) == count


def test_weights_bring_parents_near_and_rows_move_less():
    X, augmenter = households()
    n, wanted = 300, 1.15 * X["wage"].mean()
    _, report = augmenter.sample(
        300, 0, totals={"wage": n * wanted}, return_report=True
    )
    plain = augmenter.sample(300, 0)["wage"].mean()
    assert abs(report.drawn[0] / n - wanted) < 0.5 * abs(plain - wanted)
    assert report.effective_parents < report.n_train


@pytest.mark.parametrize("seed", range(3))
def test_starts_are_as_many_of_each_cell_as_asked(seed):
    rng = RNG(seed)
    cell, counts = rng.integers(4, size=60), np.array([5, 0, 11, 2])
    starts = Quotas(cell, counts).starts(rng.gamma(1.0, size=60), rng)
    np.testing.assert_array_equal(np.bincount(cell[starts], minlength=4), counts)


def test_bounds_a_row_hold_beside_totals_and_alone():
    _, augmenter = households()
    most = np.linspace(1000, 4000, 60)
    asked = ColumnConstraint("wage", upper=most)
    for totals in (None, {"wage": 60 * 2000.0}):
        rows = augmenter.sample(60, 0, constraints=asked, totals=totals)
        assert (rows["wage"] <= most + 1e-5).all()
    assert rows["wage"].sum() == pytest.approx(60 * 2000.0)
    with pytest.raises(ValueError, match="the sum of 'wage' asks for .* reaches"):
        augmenter.sample(60, 0, constraints=asked, totals={"wage": 60 * 2600.0})


def test_values_that_are_counted_limit_their_sum():
    _, augmenter = households()
    rows = augmenter.sample(60, 0, totals=[{"adults": {1: 30, 2: 30}}, {"adults": 90}])
    assert rows["adults"].sum() == 90
    with pytest.raises(ValueError, match="the sum of 'adults' asks for 100; .* 60"):
        augmenter.sample(60, 0, totals=[{"adults": {1: 60}}, {"adults": 100}])


# --- what is refused, and how it is told ------------------------------------------


@pytest.mark.parametrize(
    "totals, words",
    [
        ({"nothing": 3}, "nothing"),
        ({"region": 3}, "categories"),
        ({}, "empty"),
        ([1.0, 2.0], r"sums of all columns, of shape \(11,\); got \[1.0, 2.0\]"),
        ({"sex": {"f": 20, "m": 30}}, "the number of rows, 60"),
        (
            column_total("sex", {"f": 1 / 7}, mean=True),
            r"for 8\.571428571, a share of 60 rows, in which there is no whole number",
        ),
        ({"kids": {}}, "'kids' names no level"),
        (
            [{"sex": {"f": 20, "m": 40}}, {("sex", "region"): {("f", "n"): 30}}],
            "region",
        ),
    ],
)
def test_totals_that_make_no_sense_are_refused(totals, words):
    _, augmenter = households()
    with pytest.raises(ValueError, match=words):
        augmenter.sample(60, 0, totals=totals)


def test_rows_with_totals_cannot_be_dropped():
    _, augmenter = households()
    with pytest.raises(ValueError, match="none can be left out"):
        augmenter.sample(10, totals={"kids": 8}, on_unmet="drop")


def test_reports_tell_in_print_in_notebooks_and_as_frames():
    _, augmenter = households()
    asked = ColumnConstraint("rent", upper=2000)
    totals = {"wage": 2.5e5, "region": {"n": 30}}
    out = augmenter.sample(
        60, 0, totals=totals, constraints=asked, return_parents=True, return_report=True
    )
    rows, parents, report = out
    assert len(rows) == len(parents) == report.n_rows == 60
    frame = report.to_frame()
    assert list(frame["kind"][:2]) == ["sum", "count"]
    assert frame["reached"].iloc[1] == 30
    assert "constraint" in set(frame["kind"])
    for told in (str(report), report._repr_html_()):
        assert "effective number of parents" in told
        assert "region=" in told
    assert "asked=" in repr(report)


def test_a_report_is_drawn():
    pytest.importorskip("matplotlib")
    _, augmenter = households()
    _, report = augmenter.sample(40, 0, totals={"wage": 2e5}, return_report=True)
    display = SampleReportDisplay.from_report(report)
    assert len(display.bars_[0]) == 1
    assert len(display.bars_[1]) == len(report.features)
    with pytest.raises(ValueError, match="2 axes"):
        display.plot(ax=display.axes_[:1])


# --- samplers ---------------------------------------------------------------------


def test_classes_have_totals_of_their_new_rows():
    X = table(4)
    y = np.where(np.arange(200) < 160, "a", "b")
    sampler = PNLSampler(
        categorical_features="auto", random_state=0,
        totals={"b": {"kids": 100, "sex": {"f": 70}}},
    )  # fmt: skip
    rows = sampler.fit_resample(X, y)[0].iloc[200:]
    assert len(rows) == 120
    assert rows["kids"].sum() == 100
    assert (rows["sex"] == "f").sum() == 70
    assert sampler.reports_["b"].n_rows == 120
    for totals, words in (({"c": {"kids": 3}}, "classes"), ({"a": {}}, "no new rows")):
        with pytest.raises(ValueError, match=words):
            sampler.set_params(totals=totals).fit_resample(X, y)


def test_new_rows_are_written_where_there_is_room_for_them():
    X = RNG(0).normal(size=(90, 3))
    y = np.arange(90) < 20
    sampler = PNLSampler(random_state=0, totals={True: {0: 5.0}})
    rows = sampler.fit_resample(X, y)[0]
    assert rows[90:, 0].sum() == pytest.approx(5.0)
    np.testing.assert_array_equal(rows[:90], X)


def test_new_rows_of_a_regression_have_totals():
    X = RNG(0).uniform(size=(60, 3))
    sampler = PNLRegressionSampler(random_state=0, totals={0: 33.0})
    rows, y = sampler.fit_resample(X, X.sum(axis=1))
    assert len(rows) == len(y) == 120
    assert rows[60:, 0].sum() == pytest.approx(33.0)
    assert sampler.report_.n_rows == 60


def test_sums_of_columns_with_missing_cells():
    rng = RNG(0)
    X = pd.DataFrame(
        {
            "persons": rng.integers(1, 6, 300).astype(float),
            "few": rng.choice([1, 2.5, 4, 9], 300),
            "age": rng.normal(40, 10, 300),
        }
    ).mask(rng.random((300, 3)) < 0.15)
    augmenter = PNLAugmenter().fit(X)
    asked = {"persons": 310, "few": 400.3, "age": 3_900.0}
    for totals in ({"persons": 310}, asked):
        rows = augmenter.sample(100, 0, totals=totals)
        np.testing.assert_allclose(rows[[*totals]].sum(), [*totals.values()])
        lacking = rows.isna().any()
        assert not lacking[[*totals]].any()
        assert lacking.drop([*totals]).all()


@pytest.mark.parametrize("totals", [{0: 30.0}, {0: {0.0: 10, 1.0: 30}}])
def test_totals_where_cells_of_an_equation_are_missing(totals):
    rng = RNG(0)
    X = np.eye(3)[rng.integers(0, 3, 300)]
    X = np.column_stack([X, rng.normal(size=300)])
    X[:, 1:3][rng.random((300, 2)) < 0.05] = np.nan
    rows = PNLAugmenter().fit(X).sample(40, 0, totals=totals)
    assert rows[:, 0].sum() == 30
    assert np.isnan(rows[:, 1:3]).any()
    whole = ~np.isnan(rows).any(axis=1)
    np.testing.assert_array_equal(rows[whole, :3].sum(axis=1), 1)


@pytest.mark.parametrize("seed", range(4))
def test_scaled_values_are_counted_to_the_last_digit(seed):
    # One value in most rows, and too few other rows to tell that these have few.
    rng = RNG(seed)
    codes = np.where(np.arange(60) < 52, 1, 2 + np.arange(60) % 7)
    X = np.column_stack([rng.normal(size=(60, 2)), codes])
    X = StandardScaler().fit_transform(X)
    levels = np.unique(X[:, 2])
    counts = dict.fromkeys(levels.tolist(), 1) | {levels[0]: 40 - len(levels) + 1}
    rows = PNLAugmenter().fit(X).sample(40, 0, totals={2: counts})
    found = {level: np.count_nonzero(rows[:, 2] == level) for level in levels}
    assert found == counts


@pytest.mark.parametrize("asked", [55_000, column_total("income", 550.5, mean=True)])
def test_cents_stay_cents_under_a_total_that_cents_can_have(asked):
    income = np.round(np.random.default_rng(0).gamma(3, 300, size=200), 2)
    X = pd.DataFrame({"income": income, "x": np.sqrt(income)})
    totals = {"income": asked} if isinstance(asked, int) else asked
    rows = PNLAugmenter().fit(X).sample(100, random_state=0, totals=totals)
    cents = 100 * rows["income"]
    np.testing.assert_allclose(cents, np.rint(cents), rtol=0, atol=1e-6)
    assert rows["income"].sum() == pytest.approx(55_000 if asked == 55_000 else 55_050)


def test_shares_make_up_for_whole_numbers_that_are_far_larger():
    rng, n = RNG(0), 60
    X = np.column_stack(
        [rng.integers(1, 100, n), rng.uniform(size=n), rng.lognormal(8, 2, n).round()]
    )
    for asked in (2e5 + 0.08, 3e5 + 0.37):
        total = column_total({0: -1.0, 1: 1.0, 2: 2.0}, asked)
        rows = PNLAugmenter().fit(X).sample(20, random_state=0, totals=total)
        assert rows.sum(axis=0) @ [-1, 1, 2] == pytest.approx(asked, rel=1e-12)
        np.testing.assert_array_equal(rows[:, [0, 2]], rows[:, [0, 2]].round())


@pytest.mark.parametrize("asked", [1.0, 1.1, 1.65])
def test_a_sum_of_few_values_in_single_precision(asked):
    # Each of them rounds more than 1e-9 of the sum.
    rng, n = RNG(0), 150
    few = np.where(rng.uniform(size=n) < 0.02, rng.choice([0.5, 0.55], n), 0.0)
    X = np.column_stack([rng.normal(size=n), few]).astype(np.float32)
    rows = PNLAugmenter().fit(X).sample(100, random_state=0, totals={1: asked})
    assert rows[:, 1].astype(float).sum() == pytest.approx(asked, rel=1e-7)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_what_single_precision_rounds_is_that_of_values_that_make_up_a_sum(size):
    sums = Sums(np.ones((1, 1)), *np.zeros((3, 1)), ("all",))
    rows = size * np.array([[1e-9], [0.0], [3.0], [-3.0]])
    room = rounding_of_one(sums, rows, np.array([2.0**-24]))
    np.testing.assert_allclose(room, 3 * size * 2.0**-24)


@pytest.mark.parametrize("asked", [3439, 3440, 3301])
def test_steps_go_no_farther_than_other_columns_make_up_for(asked):
    # Two whole numbers differ by what two shares differ, which is less than 1.
    rng, n = RNG(0), 40
    count, share = rng.integers(40, 256, n), rng.uniform(0, 0.2, n)
    X = np.column_stack([count, count, share, share])
    a, zero = np.array([[1.0, -1.0, -1.0, 1.0]]), np.zeros((1, 1))
    names = tuple(f"x{j}" for j in range(4))
    equation = LinearSystem(a, zero, zero, names, np.ptp(X, axis=0))
    augmenter = PNLAugmenter(invariants=equation).fit(X)
    rows = augmenter.sample(20, random_state=0, totals={1: asked})
    assert rows[:, 1].sum() == asked
    np.testing.assert_allclose(rows @ [1, -1, -1, 1], 0, atol=1e-7)


@pytest.mark.parametrize("asked", [-601.5, -598.75, -640.25])
def test_steps_go_as_far_as_shares_cannot(asked):
    # Shares that are nearly all 0 can add to a sum, and take nothing from it.
    rng, n = RNG(0), 80
    share = np.where(rng.uniform(size=n) < 0.03, rng.uniform(size=n) / 10, 0.0)
    X = np.column_stack([rng.integers(0, 3, n), share, rng.integers(1, 30, n)])
    augmenter = PNLAugmenter(marks="zeros").fit(X)
    total = column_total({0: -1.0, 1: 2.0, 2: -1.0}, asked)
    rows = augmenter.sample(40, random_state=0, totals=total)
    assert rows.sum(axis=0) @ [-1, 2, -1] == pytest.approx(asked, rel=1e-9)
    np.testing.assert_array_equal(rows[:, [0, 2]], rows[:, [0, 2]].round())


@pytest.mark.parametrize("seed", [7, 16])
def test_flags_make_room_for_one_whose_total_is_asked_for(seed):
    # It has its two values again after the total is met, and is on in other rows then.
    rng, n = RNG(seed), 12
    flags = np.eye(6)[rng.permutation(n) % 6][:, 1:]
    X = StandardScaler().fit_transform(np.hstack([rng.normal(size=(n, 3)), flags]))
    augmenter, on = PNLAugmenter().fit(X), X.max(axis=0)
    for j in range(3, 8):
        total = X[rng.integers(0, n, 100), j].sum()
        rows = augmenter.sample(100, random_state=0, totals={j: total})
        assert rows[:, j].sum() == pytest.approx(total)
        assert not ((rows == on)[:, 3:].sum(axis=1) > 1).any()


def test_one_value_gives_way_to_a_total_that_cents_cannot_have():
    income = np.round(np.random.default_rng(0).gamma(3, 300, size=200), 2)
    X = pd.DataFrame({"income": income, "x": np.sqrt(income)})
    rows = PNLAugmenter().fit(X).sample(100, 0, totals={"income": 55_000.005})
    assert rows["income"].sum() == pytest.approx(55_000.005, rel=1e-9)
    assert (rows["income"] != rows["income"].round(2)).sum() == 1


@pytest.mark.parametrize("seed", range(3))
def test_an_indicator_that_gives_way_to_a_total_is_told(seed):
    rng, n = np.random.default_rng(seed), 200
    level = rng.choice(3, n)
    flag = (level == 0) & (rng.random(n) < 0.5)
    spent = np.where(flag, 0, 1 + rng.gamma(3.0, size=n))
    X = np.column_stack([rng.normal(size=n), spent, flag, np.eye(3)[level]])
    augmenter = PNLAugmenter().fit(X)
    # Little is spent by rows of a level that no flag goes with.
    with pytest.warns(ConvergenceWarning, match="do not keep the marks of x2"):
        rows = augmenter.sample(100, seed, totals={1: 60.0, 4: 80})
    assert rows[:, 4].sum() == 80
    assert not ((rows[:, 2] == 1) & (rows[:, 4] == 1)).any()


@pytest.mark.parametrize("seed", range(3))
def test_marks_of_all_values_but_one_outlive_a_total(seed):
    rng = np.random.default_rng(seed)
    few = rng.choice([1, 1.5, 2, 4, 7.25, 9, 20], 300, p=[0.3, 0.2, 0.2] + [0.075] * 4)
    cap = np.minimum(rng.gamma(2.0, 3.0, 300), 8.0)
    X = np.column_stack([few, cap, np.round(rng.normal(size=300), 1), few * cap])
    augmenter = PNLAugmenter().fit(X)
    assert {0, 1} <= augmenter.marks_.grids.keys() | augmenter.marks_.spikes.keys()
    asked = X.mean(axis=0) + X.std(axis=0) * rng.uniform(0.02, 0.1, 4)
    totals = [column_total(j, asked[j], mean=True) for j in range(3)]
    rows = augmenter.sample(200, seed, totals=totals)
    np.testing.assert_allclose(rows.mean(axis=0)[:3], asked[:3], rtol=1e-9)
    assert (~np.isin(rows[:, 0], few)).sum() <= 1
    np.testing.assert_allclose(np.sort(np.abs(rows[:, 2] * 10 % 1 - 0.5))[1:], 0.5)
    # A value that many rows share is taken from a parent, as without totals.
    share = (cap == 8).mean()
    assert abs((rows[:, 1] == 8).mean() - share) <= 0.1


def test_marks_that_come_back_make_no_more_copies(monkeypatch):
    rng = np.random.default_rng(0)
    few = rng.choice([0, 1, 2.5, 4], size=200, p=[0.4, 0.3, 0.2, 0.1])
    X = np.column_stack([few, rng.poisson(6, (200, 2))]).astype(float)
    held, counts = np.unique(X, axis=0, return_counts=True)
    once = set(map(tuple, held[counts == 1]))
    augmenter, kept = PNLAugmenter().fit(X), []
    for seed in range(3):
        rows = augmenter.sample(150, seed, totals={0: 215.3})
        assert rows[:, 0].sum() == pytest.approx(215.3, rel=1e-9)
        with monkeypatch.context() as without:
            without.setattr(sets, "_TRIES", 0)
            moved = augmenter.sample(150, seed, totals={0: 215.3})
        copies, others = (len(set(map(tuple, x)) & once) for x in (rows, moved))
        assert copies <= others
        kept.append([np.isin(x[:, 0], few).mean() for x in (rows, moved)])
    assert np.min(kept, axis=0)[0] >= 0.9 and np.ptp(np.mean(kept, axis=0)) > 0.1


@pytest.mark.parametrize("exact", [False, True])
def test_sums_off_the_steps_of_columns_in_equations(exact):
    cents = RNG(0).integers(100, [99_999, 5_000], size=(120, 2))
    X = pd.DataFrame(cents, columns=["net", "tax"]).assign(gross=cents.sum(axis=1))
    X["double"] = 2 * X["net"]
    X = X.map(lambda n: Decimal(n) / 100) if exact else X / 100
    augmenter = PNLAugmenter().fit(X)
    wanted = {"net": 40_000.1234, "tax": 2_500.5}
    rows = augmenter.sample(100, random_state=0, totals=wanted).astype(float)
    assert_allclose(rows[["net", "tax"]].sum(), list(wanted.values()), rtol=TOL)
    assert_allclose(rows["net"] + rows["tax"], rows["gross"], atol=TOL * 1_000)
    assert_allclose(2 * rows["net"], rows["double"], atol=TOL * 2_000)
    # Sums that cents give leave them all.
    rows = augmenter.sample(100, random_state=0, totals={"net": 40_000.12})
    parts = 100 * rows.astype(float)
    assert_allclose(parts, parts.round(), atol=1e-6)


@pytest.mark.parametrize("unit", [1, 100])
def test_sums_of_millions_of_steps(unit):
    cents = RNG(0).integers(100, [99_999, 5_000, 30_000], size=(300, 3))
    X = np.column_stack([cents, cents.sum(axis=1)]) / unit
    whole = np.round(1_000 * X.mean(axis=0) * [1.02, 0.98, 1, 1])
    # A sum of floats is known to its last digit.
    wanted = {0: np.nextafter(whole[0], np.inf), 1: whole[1]}
    rows = PNLAugmenter().fit(X).sample(1_000, random_state=0, totals=wanted)
    assert_allclose(rows.sum(axis=0)[:2], whole[:2], rtol=TOL)
    assert_allclose(unit * rows, np.round(unit * rows), atol=1e-6)
    assert_allclose(rows[:, :3].sum(axis=1), rows[:, 3], rtol=1e-12)


def test_a_mean_that_is_out_of_reach_is_not_answered_with_ask_for_its_mean():
    X = np.random.default_rng(0).gamma(3.0, size=(50, 2))
    augmenter = PNLAugmenter().fit(X)
    for asked, told in [
        ({0: -5.0}, "of 10 rows; or ask for its mean"),
        (column_total(0, -5.0, mean=True), "Ask for what can be reached"),
    ]:
        with pytest.raises(ValueError, match=f"it reaches .*{told}[.]$"):
            augmenter.sample(10, random_state=0, totals=asked)


def test_a_total_that_constraints_of_rows_rule_out_names_them():
    X = np.random.default_rng(0).gamma(3.0, size=(50, 2))
    asked = {"constraints": ColumnConstraint(0, equal=[1.0, 2.0, 3.0])}
    with pytest.raises(ValueError, match="columns and what is asked of each row it re"):
        PNLAugmenter().fit(X).sample(3, random_state=0, totals={0: 20.0}, **asked)
    with pytest.raises(ValueError, match="within the ranges of the columns it reaches"):
        PNLAugmenter().fit(X).sample(3, random_state=0, totals={0: 2000.0})
    # Also beside an equation of other columns.
    X = np.column_stack([X, X[:, 1], np.arange(50) % 5])
    few = ColumnConstraint(3, upper=2)
    with pytest.raises(ValueError, match="what is asked of each row it reaches 0 to 6"):
        PNLAugmenter().fit(X).sample(
            3, random_state=0, totals={3: 9.0}, constraints=few
        )


@pytest.mark.parametrize("scale", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("seed", range(3))
def test_totals_that_small_columns_make_beside_large_ones(seed, scale):
    # Fees beside prices: totals of two large columns say what a small one sums to.
    rng = RNG(seed)
    small, middle, large = rng.gamma(2.0, [10, scale / 3, scale], size=(60, 3)).T
    both = small + middle - large, middle + 2 * large
    X = np.column_stack([small, middle, large, *both])
    some = rng.integers(60, size=20)
    wanted = {j: X[some, j].sum() for j in (1, 3, 4)}
    rows = PNLAugmenter().fit(X).sample(20, random_state=0, totals=wanted)
    size = np.abs(rows).sum(axis=0)
    for j, total in wanted.items():
        assert abs(rows[:, j].sum() - total) <= TOL * size[j]
    assert np.all(
        np.abs(rows[:, 0] + rows[:, 1] - rows[:, 2] - rows[:, 3]) < TOL * scale * 9
    )
    assert rows[:, 0].min() >= 0 and rows[:, 0].max() <= 1.2 * small.max()


@pytest.mark.parametrize("scale", [1e5, 1e9])
def test_totals_that_counts_make_beside_given_values(scale):
    rng = RNG(0)
    counts, given = rng.integers(0, 45, 40), rng.gamma(2.0, scale, 40)
    X = np.column_stack([counts, given, counts + given])
    some = RNG(0).integers(40, size=10)
    rows = PNLAugmenter().fit(X).sample(
        10, 0, totals={2: X[some, 2].sum()},
        constraints=ColumnConstraint(1, equal=X[some, 1]),
    )  # fmt: skip
    assert_allclose(rows[:, 1], X[some, 1], rtol=TOL)
    assert_allclose(rows[:, 2].sum(), X[some, 2].sum(), rtol=TOL)
    assert np.array_equal(rows[:, 0], np.round(rows[:, 0]))
