"""Constraints as they are given: columns by name and number, ends, what is refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint

from sklearn_pnl import ColumnConstraint, LinearSystem, PNLAugmenter, find_invariants
from sklearn_pnl.control.readable import values_of


@pytest.mark.parametrize("n_equations", [0, 1, 4, 5])
def test_values_of_few_and_of_many_equations(n_equations):
    rng = np.random.default_rng(0)
    equations, rows = rng.normal(size=(n_equations, 6)), rng.normal(size=(9, 6))
    assert_allclose(values_of(equations, rows), equations @ rows.T, rtol=1e-12)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.gamma(2, size=(100, 2)), columns=["a", "b"])
    return frame.assign(total=frame.sum(axis=1))


@pytest.mark.parametrize(
    "given, message",
    [
        (
            LinearConstraint([[1, 1]], 0, 1),
            "Constraint 0 has coefficients for 2 columns; rows have 3",
        ),
        (ColumnConstraint("z", lower=0, upper=1), "Constraint 0 names .*'z'"),
        (
            ColumnConstraint(5, lower=0, upper=1),
            "Constraint 0 holds 5; .* 3 columns",
        ),
        (ColumnConstraint("a", lower=2, upper=1), "Constraint 0 .* lower <= upper"),
        (
            ColumnConstraint("a", lower=np.zeros(3), upper=1),
            r"Constraint 0 has 3 values \(lower=\), .* 2 rows: give 2 values, or one",
        ),
        (
            ColumnConstraint("a", upper=np.zeros(3)),
            r"Constraint 0 has 3 values \(upper=\), .* 2 rows: give 2 values, or one",
        ),
        ([None], "Constraint 0 must be a scipy.optimize.LinearConstraint"),
        (
            [ColumnConstraint("a", lower=0), LinearConstraint([np.nan, 0, 1], 0, 1)],
            "Constraint 1 must have finite coefficients",
        ),
        (ColumnConstraint("a", equal=np.inf), "no infinite value to be reached"),
    ],
)
def test_bad_constraints(frame, given, message):
    augmenter = PNLAugmenter().fit(frame)
    with pytest.raises(ValueError, match=message):
        augmenter.sample(2, 0, constraints=given)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ColumnConstraint({}, lower=0), "needs at least one column"),
        (lambda: ColumnConstraint(0, lower=0, equal=1), "not both"),
        (lambda: ColumnConstraint(0), "asks for nothing: give equal"),
        (lambda: ColumnConstraint(0, lower=np.nan), "^lower= .* without NaN"),
        (lambda: ColumnConstraint("kind", equal="gas"), "totals={column: {level"),
        (lambda: ColumnConstraint(0, upper="much"), "^upper= .* must be a number"),
        (lambda: ColumnConstraint(0, equal=[[1.0]]), "^equal= .* one for each row"),
    ],
)
def test_constraints_that_are_none(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_names_need_a_frame():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="'a'"):
        PNLAugmenter().fit(X).sample(constraints=ColumnConstraint("a", lower=0))


def test_violation_is_a_share_of_the_range():
    X = np.random.default_rng(0).integers(0, 6, size=(40, 3)).astype(float)
    X[:, 2] = X[:, 0] + X[:, 1]
    X[:2] = [[0, 0, 0], [5, 5, 10]]
    found = find_invariants(X)
    assert found.descriptions == ("x2 = x0 + x1",)
    np.testing.assert_allclose(found.violation(X + [0, 0, 1]), [0.1])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_ends_for_all_rows_and_for_each(frame, n):
    augmenter = PNLAugmenter().fit(frame)
    one = augmenter.sample(n, 0, constraints=ColumnConstraint("total", equal=4))
    each = ColumnConstraint("total", lower=np.full(n, 4.0), upper=4)
    np.testing.assert_allclose(
        augmenter.sample(n, 0, constraints=each)["total"], one["total"], atol=1e-8
    )


def test_a_system_found_is_a_constraint_like_others(frame):
    found = find_invariants(frame)
    assert isinstance(found, LinearSystem)
    free = PNLAugmenter(invariants=None).fit(frame)
    rows = free.sample(50, 0, constraints=found)
    np.testing.assert_allclose(rows["total"], rows["a"] + rows["b"], atol=1e-8)
    again = PNLAugmenter(invariants=found).fit(frame)
    named = ColumnConstraint("total", equal=5)
    np.testing.assert_allclose(
        again.sample(3, 0, constraints=named)["total"], 5, atol=1e-8
    )


def test_systems_of_other_rows_are_checked():
    rng = np.random.default_rng(1)
    parts = rng.gamma(2, size=(100, 3))
    found = find_invariants(np.column_stack([parts, parts.sum(axis=1)]))
    with pytest.raises(ValueError, match="do not keep 'x3 = x0 . x1 . x2'"):
        PNLAugmenter(invariants=found).fit(rng.gamma(2, size=(100, 4)))
    for columns in (3, 5):
        with pytest.raises(ValueError, match="columns"):
            PNLAugmenter(invariants=found).fit(rng.gamma(2, size=(100, columns)))
    frame = pd.DataFrame(
        np.column_stack([parts, parts.sum(axis=1)]), columns=list("abcd")
    )
    named = find_invariants(frame)
    with pytest.raises(ValueError, match="invariants are about the columns"):
        PNLAugmenter(invariants=named).fit(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("kind", ["array", "frame"])
@pytest.mark.parametrize("categories", [[0], [1], [0, 2]])
def test_numbers_of_columns_are_those_of_x(kind, categories):
    rng = np.random.default_rng(0)
    X = rng.normal([5, 50, 500, 5000], 1, size=(200, 4))
    X[:, categories] = rng.integers(0, 3, (200, len(categories)))
    data = pd.DataFrame(X, columns=list("abcd")) if kind == "frame" else X
    augmenter = PNLAugmenter(categorical_features=categories).fit(data)
    asked = ColumnConstraint(3, equal=5000.5)
    rows = np.asarray(augmenter.sample(20, 0, constraints=asked))
    np.testing.assert_allclose(rows[:, 3], 5000.5, atol=1e-8)
    kept = ColumnConstraint(categories[0], equal=1)
    with pytest.raises(ValueError, match="holds categories"):
        augmenter.sample(20, 0, constraints=kept)


@pytest.mark.parametrize("key", [1, 2, 3])
def test_whole_numbers_as_names_never_hit_another_column(key):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 4)) + [0, 10, 20, 30]).drop(columns=0)
    augmenter = PNLAugmenter().fit(frame)
    try:
        rows = augmenter.sample(
            10, 0, constraints=ColumnConstraint(key, equal=10.0 * key)
        )
    except ValueError as error:
        assert "may be a name or a number" in str(error)
    else:
        np.testing.assert_allclose(rows[key], 10 * key, atol=1e-8)


def test_descriptions_of_intervals_and_equations():
    assert (
        repr(ColumnConstraint("a", equal=2))
        == "ColumnConstraint({'a': 1.0}, equal=2.0)"
    )
    assert "lower=[0. 1.]" in repr(ColumnConstraint("a", lower=[0, 1]))
    system = LinearSystem(
        np.array([[1.0, -1], [2, 0]]),
        np.array([[0.0, -np.inf]]),
        np.array([[0.0, 3]]),
        ("a", "b"),
        np.ones(2),
    )
    assert system.descriptions == ("b = a", "2 a <= 3")
    assert system.has_intervals and len(system) == 2
    assert repr(system).startswith("2 constraints of 2 features")


@pytest.mark.parametrize(
    "make", [np.asarray, lambda X: pd.DataFrame(X, columns=["a", "b"])]
)
def test_a_batch_of_which_nothing_is_left_is_empty(make):
    X = make(np.random.default_rng(0).gamma(2.0, size=(60, 2)))
    wanted = np.r_[np.full(10, 1e9), np.ones(10)]
    asked = ColumnConstraint(0, equal=wanted)
    batches = (
        PNLAugmenter()
        .fit(X)
        .iter_samples(20, 10, 0, constraints=asked, on_unmet="drop")
    )
    assert [len(rows) for rows in batches] == [0, 10]


def test_equations_are_shown_as_frames_and_in_notebooks():
    pytest.importorskip("pandas")
    parts = np.random.default_rng(0).gamma(1.0, size=(50, 2))
    system = find_invariants(np.column_stack([parts, parts.sum(axis=1)]))
    assert system.to_frame()["in words"].tolist() == ["x2 = x0 + x1"]
    assert "<li>x2 = x0 + x1</li>" in system._repr_html_()


@pytest.mark.parametrize("n", [20, 5_000])
def test_violation_looks_at_the_columns_of_equations_alone(n):
    parts = np.random.default_rng(0).gamma(2.0, size=(n, 8))
    X = np.column_stack([parts, parts[:, :2].sum(axis=1)])
    found = find_invariants(X)
    X[0, 5], X[1, 6] = np.nan, np.inf
    assert found.violation(X).max() < 1e-9
    X[0, 0] = np.nan
    assert np.isnan(found.violation(X)).all()
