"""What is asked of new rows: met to 1e-9 of the range, or refused by name."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from test_search import NAMES, table

from sklearn_pnl import (
    ColumnConstraint,
    PNLAugmenter,
    PNLSampler,
    adjust,
    find_invariants,
)
from sklearn_pnl.control.meeting import _solved
from sklearn_pnl.geometry import linear_projection


@pytest.mark.parametrize("n_equations", [1, 2, 7])
def test_small_equations_of_all_rows_are_solved_at_once(n_equations):
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(50, n_equations, 12))
    grams, values = roots @ roots.transpose(0, 2, 1), rng.normal(size=(50, n_equations))
    found = _solved(grams.transpose(1, 2, 0), values.T)
    expected = np.linalg.solve(grams, values[:, :, None])[:, :, 0]
    np.testing.assert_allclose(found.T, expected, rtol=1e-8)
    # Who asks takes another way where there is no answer.
    assert not np.isfinite(_solved(0 * grams.transpose(1, 2, 0), values.T)).any()


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
    assert "New row 0 cannot meet the constraints" in str(e.value)
    reach = re.search(r"reaches (\S+) to (\S+)\.( |$)", str(e.value))
    low, high = map(float, reach.groups()[:2])
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
    with pytest.raises(ValueError, match="New row 2 cannot .*: total asks"):
        augmenter.sample(3, constraints=asked)
    with pytest.raises(ValueError, match="Constraint 0 names 'z'"):
        augmenter.sample(5, constraints=ColumnConstraint("z", lower=0, upper=1))
    with pytest.raises(ValueError, match="3 values .* there are 5 rows: give 5"):
        augmenter.sample(5, constraints=asked)


SLACK, DROP = "range_slack=None, gives more room", "on_unmet='drop' leaves such rows"


def refused(augmenter, n=3, **asked):
    """What a user is told; nothing if all is met."""
    try:
        augmenter.sample(n, 0, **asked)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("column", "values", "helps", "drops"),
    [
        ("a", 16, True, False),
        ("a", 1e6, False, False),
        ("a", [1, 2, 16], True, True),
        ("a", [1, 2, 1e6], False, True),
        ("a", [1e6, 2e6, 3e6], False, False),
        ("whole", 30, True, False),
        ("whole", 1.5, False, False),
        ("whole", [1, 2, 1.5], False, True),
        ("byte", 255, True, False),
        ("byte", 256, False, False),
        ("byte", [1, 2, 255], True, True),
        ("flag", 2, False, False),
        ("percentage", 110, True, False),
    ],
)
def test_what_would_help_is_told_and_nothing_else(column, values, helps, drops):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.gamma(2.0, size=200), "b": rng.normal(size=200)})
    frame["total"] = frame["a"] + frame["b"]
    frame["whole"], frame["flag"] = rng.integers(0, 20, 200), rng.integers(0, 2, 200)
    frame["byte"] = rng.integers(0, 220, 200).astype(np.uint8)
    frame["percentage"] = np.clip(rng.normal(60, 30, 200), 0, 100)
    asked = {"constraints": ColumnConstraint(column, equal=values)}
    narrow, wide = (PNLAugmenter(range_slack=s).fit(frame) for s in (0.1, None))
    told = refused(narrow, **asked)
    assert f"{column} asks for" in told
    assert (SLACK in told) == (refused(wide, **asked) == "") == helps
    dropped = refused(narrow, on_unmet="drop", **asked)
    assert (DROP in told) == (dropped == "") == drops
    assert SLACK not in refused(wide, **asked)


def test_what_contradicts_itself_is_not_helped_by_room(sales):
    _, augmenter = sales
    both = [ColumnConstraint("a", equal=1), ColumnConstraint("a", equal=2)]
    told = refused(augmenter, constraints=both)
    assert "with a = 1 it reaches 1." in told and SLACK not in told
    # A part above its total needs others below zero, which is not advised.
    beyond = [ColumnConstraint("a", equal=3), ColumnConstraint("total", equal=2)]
    assert SLACK not in refused(augmenter, constraints=beyond)
    wide = PNLAugmenter(range_slack=None).fit(sales[0])
    assert refused(wide, constraints=beyond) == ""


@pytest.mark.parametrize(("total", "helps"), [(40.0, True), (1e6, False)])
def test_totals_out_of_reach_tell_what_would_help(sales, total, helps):
    frame, augmenter = sales
    told = refused(augmenter, totals={"a": total})
    wide = refused(PNLAugmenter(range_slack=None).fit(frame), totals={"a": total})
    assert f"the sum of 'a' asks for {total:.10g}; within" in told
    assert (SLACK in told) == (wide == "") == helps
    assert SLACK not in wide


def test_samplers_which_leave_no_row_out_do_not_advise_it(sales):
    frame, _ = sales
    asked = ColumnConstraint("a", equal=np.r_[np.ones(99), 16.0])
    y = np.repeat([0, 1], [200, 100])
    with pytest.raises(ValueError, match=re.escape(SLACK)) as e:
        PNLSampler(constraints=asked).fit_resample(frame, y)
    assert "New row 99" in str(e.value) and DROP not in str(e.value)


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


# --- a table with equations of all kinds ----------------------------------------


@pytest.fixture(scope="module")
def fitted():
    """Nested totals, shares, one-hot columns, copies and a constant, by name."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(table(rng, 200), columns=NAMES)
    return frame, PNLAugmenter(range_slack=0).fit(frame)


@pytest.mark.parametrize("seed", range(4))
def test_new_rows_keep_equations_and_ranges(seed):
    X = table(np.random.default_rng(seed), 200)
    found = find_invariants(X, NAMES)
    free = PNLAugmenter(range_slack=0, draws="kde", invariants=None).fit(X)
    assert found.violation(free.sample(300, seed)).max() > 0.05
    rows = PNLAugmenter(range_slack=0, draws="kde").fit(X).sample(300, seed)
    assert found.violation(rows).max() <= 1e-9
    assert np.all((rows >= X.min(axis=0)) & (rows <= X.max(axis=0)))
    # Moved about as much as they were off.
    moved = np.abs(rows - free.sample(300, seed)).max(axis=1) / np.ptp(X, axis=0).max()
    assert moved.max() < 0.5


def test_constraints_of_every_kind_at_once(fitted):
    frame, augmenter = fitted
    totals = np.linspace(5, 7, 40)
    asked = [
        ColumnConstraint("total", equal=totals),
        ColumnConstraint({"s1": 1, "s2": -1}, lower=0),
        LinearConstraint(csr_array(np.eye(22)[3:5]), [0.2, 0], [1, 0.5]),
        ColumnConstraint("F", upper=34),
    ]
    x = augmenter.sample(40, 0, constraints=asked)
    np.testing.assert_allclose(x["total"], totals, atol=1e-8)
    np.testing.assert_allclose(x["s1"] + x["s2"], totals, atol=1e-8)
    assert np.all(x["s1"] - x["s2"] >= -1e-8)
    assert x["a"].between(0.2 - 1e-9, 1 + 1e-9).all()
    assert x["b"].max() <= 0.5 + 1e-9 and x["F"].max() <= 34 + 1e-8
    assert augmenter.invariants_.violation(x).max() <= 1e-9
    assert np.all((x >= frame.min()) & (x <= frame.max()))


def test_what_cannot_be_met_is_told_in_the_units_of_the_rows(fitted):
    frame, augmenter = fitted
    top, least = frame["total"].max(), frame["total"].min()
    beyond = ColumnConstraint("total", equal=[5.0, top + 1, 5])
    with pytest.raises(ValueError, match="New row 1 cannot meet") as e:
        augmenter.sample(3, 0, constraints=beyond)
    assert f"it reaches {least:.7g} to {top:.7g}" in str(e.value)
    assert f"total asks for {top + 1:.10g}" in str(e.value)
    # The others are left where rows may be dropped.
    rows = augmenter.sample(3, 0, constraints=beyond, on_unmet="drop")
    np.testing.assert_allclose(rows["total"], [5, 5], atol=1e-8)
    # Each can be met, but not both.
    both = [ColumnConstraint("total", equal=4), ColumnConstraint("s1", lower=4.5)]
    with pytest.raises(ValueError) as e:
        augmenter.sample(3, 0, constraints=both)
    assert re.search(
        r"(s1|total) asks for .* with .*total = s1 \+ s2.* it reaches ", str(e.value)
    )


def test_rows_that_meet_what_is_asked_stay():
    # Only those that miss it are moved, and no column that it is not about.
    X = np.random.default_rng(0).gamma(1.0, size=(100, 4))
    augmenter = PNLAugmenter(draws="kde", invariants=None).fit(X)
    free = augmenter.sample(100, 0)
    asked = ColumnConstraint({0: 1, 1: 1}, lower=-1, upper=100)
    rows = augmenter.sample(100, 0, constraints=asked)
    np.testing.assert_array_equal(rows[:, 2:], free[:, 2:])
    np.testing.assert_allclose(rows[:, :2], free[:, :2], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("offset", [0.1, 1.0])
def test_the_projection_is_that_of_the_embedding(offset):
    # "kde" does not heed what is asked for: both calls decode the same rows.
    X = np.random.default_rng(0).gamma(1.0, size=(50, 4))
    augmenter = PNLAugmenter(
        draws="kde", invariants=None, offset=offset, range_slack=0.1
    ).fit(X)
    a = np.array([[1.0, 2.0, 0.0, -1.0]])
    asked = LinearConstraint(a, 1.5, 1.5)
    rows = augmenter.sample(30, 0, constraints=asked)
    free = augmenter.sample(30, 0)
    low, ranges = X.min(axis=0), np.ptp(X, axis=0)
    z = (free - low) / ranges + offset
    ends = np.maximum(low - 0.1 * ranges, 0), X.max(axis=0) + 0.1 * ranges
    floor, ceiling = ((e - low) / ranges + offset for e in ends)
    b = 1.5 - a @ low + a @ ranges * offset
    m = linear_projection(
        z, a * ranges, b, b, floor=floor, ceiling=ceiling, divergence="chi2"
    ).measure
    expected = (m - offset) * ranges + low
    np.testing.assert_allclose(rows, expected, atol=1e-7)


def test_fixed_values_alone():
    # Conditional rows: nothing is left for the projection to do.
    X = np.random.default_rng(0).gamma(1.0, size=(20, 3))
    augmenter = PNLAugmenter(draws="kde", invariants=None).fit(X)
    free = augmenter.sample(30, 0)
    rows = augmenter.sample(30, 0, constraints=ColumnConstraint({1: 2.0}, equal=1.0))
    np.testing.assert_allclose(rows[:, 1], 0.5, rtol=1e-12)
    np.testing.assert_array_equal(rows[:, [0, 2]], free[:, [0, 2]])
    upside_down = ColumnConstraint({1: -2.0}, lower=-1.0, upper=-0.5)
    rows = augmenter.sample(30, 0, constraints=upside_down)
    np.testing.assert_allclose(rows[:, 1], np.clip(free[:, 1], 0.25, 0.5))


# --- what once was wrong --------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("seed", [26, 29, 37, 1, 2])
def test_an_equation_beside_an_interval_in_other_units(seed, unit):
    rng = np.random.default_rng(seed)
    rare = rng.gamma(2, size=80) * (rng.uniform(size=80) < 0.3) * unit
    X = np.column_stack([rare, rng.normal(size=(80, 3))])
    value = X[seed, 1] + 2 * X[seed, 3]
    asked = [
        ColumnConstraint(dict.fromkeys(range(4), 1), upper=X[seed].sum()),
        ColumnConstraint({1: 1, 3: 2}, equal=value),
    ]
    # A training row meets both.
    rows = PNLAugmenter().fit(X).sample(50, 0, constraints=asked)
    off = np.abs(rows[:, 1] + 2 * rows[:, 3] - value).max()
    assert off <= 1e-9 * 2 * np.ptp(X[:, 3])
    assert rows.sum(axis=1).max() <= X[seed].sum() + 1e-9 * np.ptp(X[:, 0])


@pytest.mark.parametrize("offset", [0.1, 0.3, 1.0])
def test_columns_that_are_constant_but_for_rounding_are_in_constraints(offset):
    rng = np.random.default_rng(0)
    nearly = np.full(60, -7.0)
    nearly[::3] += 8.881784e-16
    X = np.column_stack([rng.normal(size=(60, 2)), nearly])
    rows = (
        PNLAugmenter(offset=offset)
        .fit(X)
        .sample(20, 0, constraints=ColumnConstraint({0: 1, 2: -1}, equal=7.5))
    )
    np.testing.assert_allclose(rows[:, 0] - rows[:, 2], 7.5, atol=1e-8)
    np.testing.assert_allclose(rows[:, 2], -7, rtol=1e-15)


@pytest.mark.parametrize("scale", [1e-9, 1e-7, 1e-5, 1.0, 1e5])
@pytest.mark.parametrize("margin", [None, 0, 0.1])
def test_the_tolerance_is_a_share_of_the_range_in_all_units(margin, scale):
    parts = np.random.default_rng(0).gamma(2, size=(300, 5)) * scale
    X = np.column_stack([parts, parts[:, :3].sum(axis=1)])
    augmenter = PNLAugmenter(embedding=None, offset=0.1, range_slack=margin).fit(X)
    rows = augmenter.sample(300, 0)
    off = np.abs(rows[:, 5] - rows[:, :3].sum(axis=1)).max()
    assert off <= 1e-9 * np.ptp(X[:, 5])


def test_constants_stay_without_a_margin():
    from sklearn.datasets import load_digits

    images = load_digits().images
    still = np.ptp(images, axis=0) == 0
    for embedding in (None, "minmax"):
        rows = (
            PNLAugmenter(embedding=embedding, range_slack=None)
            .fit(images)
            .sample(50, 0)
        )
        np.testing.assert_array_equal(rows[:, still], images[:50, still])


@pytest.mark.parametrize("classes", [{"typo": 1}, {0: 1, 2: 1}])
def test_constraints_of_a_class_that_is_none_are_refused(classes):
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = (np.arange(100) < 20).astype(int)
    asked = {c: ColumnConstraint(0, equal=0) for c in classes}
    with pytest.raises(ValueError, match="typo|2"):
        PNLSampler(constraints=asked).fit_resample(X, y)


def test_a_value_a_row_is_drawn_in_few_calls(monkeypatch):
    # What a row takes may not grow with the rows that there are to draw from.
    from sklearn_pnl.control import conditioning

    weighed = []
    of = conditioning._Segments.of

    def counted(start, step, targets):
        weighed.append(start.shape[0] * start.shape[1] * len(targets) / len(start))
        return of(start, step, targets)

    monkeypatch.setattr(conditioning._Segments, "of", counted)
    rng = np.random.default_rng(0)
    totals = {}
    for n in (300, 3000):
        weighed.clear()
        augmenter = PNLAugmenter().fit(rng.gamma(2, size=(n, 3)))
        values = rng.uniform(1, 4, size=500)
        rows = augmenter.sample(500, 0, constraints=ColumnConstraint(0, equal=values))
        np.testing.assert_allclose(rows[:, 0], values, atol=1e-8)
        totals[n] = sum(weighed), len(weighed)
    assert totals[3000] == totals[300]
    assert totals[300][1] < 10


# --- types ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_totals_in_coarse_types_are_kept_to_their_rounding(dtype):
    parts = np.random.default_rng(0).integers(0, 20, size=(200, 3))
    X = np.column_stack([parts, parts.sum(axis=1)]).astype(dtype)
    rows = PNLAugmenter().fit(X).sample(300, 0)
    assert rows.dtype == dtype
    rows = rows.astype(float)
    np.testing.assert_array_equal(rows[:, 3], rows[:, :3].sum(axis=1))
    X = np.random.default_rng(0).gamma(2, 10, size=(100, 3)).astype(dtype)
    X = np.column_stack([X, X.astype(float).sum(axis=1)]).astype(dtype)
    rows = PNLAugmenter(invariants=find_invariants(X)).fit(X).sample(300, 0)
    off = rows[:, 3].astype(float) - rows[:, :3].astype(float).sum(axis=1)
    assert np.abs(off).max() <= 4 * np.finfo(dtype).eps * X.max()


@pytest.mark.parametrize("margin", [0, 0.1, None])
@pytest.mark.parametrize("coarse", ["float32", "float16"])
def test_a_column_in_double_precision_takes_what_others_round(coarse, margin):
    frame = pd.DataFrame(
        np.random.default_rng(0).gamma(2, 10, size=(100, 2)).astype(coarse),
        columns=["a", "b"],
    )
    frame["t"] = frame.astype(float).sum(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        augmenter = PNLAugmenter(range_slack=margin).fit(frame)
        asked = ColumnConstraint({"a": 1, "b": -1}, lower=0, upper=5)
        for constraints in (None, asked):
            rows = augmenter.sample(200, 0, constraints=constraints)
            assert rows.dtypes.equals(frame.dtypes)
            rows = rows.astype(float)
            off = (rows["t"] - rows["a"] - rows["b"]).abs().max()
            assert off <= 1e-9 * np.ptp(frame["t"])
    between = rows["a"] - rows["b"]
    eps = 4 * np.finfo(coarse).eps * np.abs(rows.to_numpy()).max()
    assert between.min() >= -eps and between.max() <= 5 + eps


@pytest.fixture
def no_programme(monkeypatch):
    """No row by a programme, where a projection does."""
    from sklearn_pnl.control import meeting

    def programme(*args):
        raise AssertionError("A programme for what a projection does.")

    monkeypatch.setattr(meeting, "programme", programme)


@pytest.mark.usefixtures("no_programme")
@pytest.mark.parametrize("seed", range(3))
def test_groups_that_are_settled_leave_other_equations_to_their_columns(seed):
    rng, n = np.random.default_rng(seed), 300
    group, flag = np.eye(3)[rng.choice(3, n, p=[0.9, 0.08, 0.02])], rng.random(n) < 0.1
    a = rng.gamma(2.0, size=n)
    X = np.column_stack([group, flag, a, 0.5 * a + 3 * flag])
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    augmenter = PNLAugmenter().fit(X)
    assert len(augmenter.invariants_) == 2
    rows = augmenter.sample(500, 0)
    assert len(np.unique(rows[:, :3], axis=0)) <= 3
    assert augmenter.invariants_.violation(rows).max() < 1e-6


@pytest.mark.usefixtures("no_programme")
def test_coarse_columns_take_over_what_whole_numbers_leave():
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(300, 4)).round(2)
    X[:, 3] = rng.integers(0, 50, 300)
    X = X.astype(np.float32)
    X[:, 2] = X[:, 0] + X[:, 1].astype(float) - 0.05 * X[:, 3]
    augmenter = PNLAugmenter().fit(X)
    assert len(augmenter.invariants_) == 1
    rows = augmenter.sample(500, 0).astype(float)
    assert np.all(rows[:, 3] == np.rint(rows[:, 3]))
    a, value = augmenter.invariants_.coefficients[0], augmenter.invariants_.values[0]
    rounding = np.finfo(np.float32).eps * np.abs(rows) @ np.abs(a)
    assert np.all(np.abs(rows @ a - value) <= rounding + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_single_precision_is_that_of_a_value_however_wide_its_column_is(seed):
    # One row in 200 is a thousand times as large as the others.
    rng = np.random.default_rng(seed)
    hours = rng.gamma(0.3, scale=60, size=200).round(2)
    X = np.column_stack([rng.integers(1, 28, 200), hours, rng.integers(0, 80, 200)])
    X[0, 1] = 175137.23
    X, a = X.astype(np.float32), np.array([-1.0, 1.0, 1.0])
    wanted = X[rng.integers(1, 200, 20)] @ a
    asked = ColumnConstraint(dict(enumerate(a)), equal=wanted)
    rows = PNLAugmenter().fit(X).sample(20, random_state=0, constraints=asked)
    np.testing.assert_array_equal(np.rint(rows[:, [0, 2]]), rows[:, [0, 2]])
    np.testing.assert_allclose(rows @ a, wanted, rtol=0, atol=1e-5)


def test_no_programme_is_run_for_rows_that_single_values_rule_out(monkeypatch):
    X = np.random.default_rng(0).gamma(2, size=(200, 4))
    wanted = np.where(np.arange(60) % 3 == 0, -500.0, 2.0)
    asked = ColumnConstraint(0, equal=wanted)
    monkeypatch.setattr("sklearn_pnl.control.meeting.programme", None)
    rows = PNLAugmenter().fit(X).sample(60, 0, constraints=asked, on_unmet="drop")
    assert len(rows) == 40
    np.testing.assert_allclose(rows[:, 0], 2, atol=1e-8)


@pytest.mark.parametrize("asked", ["constraints", "totals"])
def test_the_way_out_of_steps_that_a_message_tells_leads_out(asked):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 60, 100), rng.normal(size=100)])
    given = {"constraints": ColumnConstraint(0, equal=3.5), "totals": {0: 900.5}}
    given = {asked: given[asked]}
    with pytest.raises(ValueError, match=r"some; PNLAugmenter\(marks=None\) gives"):
        PNLAugmenter().fit(X).sample(30, random_state=0, **given)
    with pytest.raises(ValueError, match=r"some; PNLAugmenter\(marks=None\) gives"):
        adjust(X, **given)
    rows = PNLAugmenter(marks=None).fit(X).sample(30, random_state=0, **given)
    reached = rows[:, 0] - 3.5 if asked == "constraints" else rows[:, 0].sum() - 900.5
    np.testing.assert_allclose(reached, 0, atol=1e-6)


def test_steps_of_columns_that_equations_tie_to_others_are_told_as_the_reason():
    tens = np.random.default_rng(0).integers(0, 60, 100)
    X = np.column_stack([tens, tens / 10, tens / 10, np.linspace(0, 1, 100)])
    asked = ColumnConstraint({1: 1, 2: 1}, equal=6.3)
    with pytest.raises(ValueError, match=r"or those that equations tie .*marks=None"):
        PNLAugmenter().fit(X).sample(3, random_state=0, constraints=asked)
    rows = PNLAugmenter(marks=None).fit(X).sample(3, random_state=0, constraints=asked)
    np.testing.assert_allclose(rows[:, 1], 3.15)
    np.testing.assert_allclose(rows[:, 0], 31.5)
