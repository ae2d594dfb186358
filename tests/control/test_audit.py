"""Final check of new rows with requests, and its report."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from _sets import linear, set_of, types
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from sklearn_pnl import PNLAugmenter, PNLSampler
from sklearn_pnl.control import ColumnConstraint, Infeasibility
from sklearn_pnl.control.audit import audit_rows, report_of


@pytest.fixture
def rows():
    parts = np.random.default_rng(0).integers(100, 1000, size=(20, 2)) / 100
    return np.column_stack([parts, parts.sum(axis=1).round(2)])


@pytest.fixture
def whole(rows):
    return set_of(
        rows, low=0, high=30, steps=0.01, equalities=linear([1, 1, -1], 0, 0),
        inequalities=[(0, 2), (1, 2)], constraints=linear([0, 0, 1], 1, 25),
    )  # fmt: skip


def test_feasible_rows_pass_the_audit(rows, whole):
    audit_rows(rows, whole, "sample")
    rows[3, 0] = np.nan
    audit_rows(rows, whole, "sample")


@pytest.mark.parametrize(
    ("cell", "value", "message"),
    [
        ((4, 0), -1.0, "of a.*row 4"),
        ((4, 1), 3.123456, "of b .* 0.00346.*row 4"),
        ((4, 1), 29.0, "b <= c .*row 4"),
    ],
)
def test_violations_are_reported_with_column_and_row(rows, whole, cell, value, message):
    rows[cell] = value
    nothing = linear(np.empty((0, 3)), [], [])
    relations = replace(whole.relations, equalities=nothing)
    whole = replace(whole, constraints=nothing, relations=relations)
    with pytest.warns(ConvergenceWarning) as caught:
        audit_rows(rows, whole, "sample")
    messages = " ".join(str(one.message) for one in caught)
    assert pd.Series([messages]).str.contains(message).all()


def test_missed_constraints_and_equalities_raise_an_error(rows, whole):
    rows[4] = [13.0, 13.0, 26.0]
    with pytest.raises(Infeasibility, match="row 4 violates c by 1") as caught:
        audit_rows(rows, whole, "sample")
    assert caught.value.row == 4
    counts = np.arange(12.0).reshape(4, 3)
    requested = linear(
        [1, 1, 1], [[3.5], [12.0], [21.0], [30.0]], [[3.5], [12.0], [21.0], [30.0]]
    )
    whole = set_of(counts, steps=1, precision=0, constraints=requested)
    with pytest.raises(Infeasibility, match="a . b . c"):
        audit_rows(counts, whole, "sample")
    whole = set_of(counts, steps=1, precision=0, equalities=linear([2, -1, 0], 0, 0))
    with pytest.raises(Infeasibility, match="b = 2 a"):
        audit_rows(counts, whole, "sample")


def test_missed_equalities_that_follow_without_a_missing_cell_raise_an_error():
    parts = np.random.default_rng(0).integers(1, 9, (20, 3)).astype(float)
    X = np.column_stack([parts, parts[:, :2].sum(axis=1), parts.sum(axis=1)])
    X[3, 0] = np.nan
    terms = [[1, 1, 0, -1, 0], [1, 1, 1, 0, -1]]
    whole = set_of(X, steps=1, equalities=linear(terms, [0, 0], [0, 0]))
    audit_rows(X, whole, "sample")
    X[3, 4] += 1
    with pytest.raises(Infeasibility, match="row 3 violates e = c . d by 1"):
        audit_rows(X, whole, "sample")


def test_violations_within_the_rounding_of_the_type_are_accepted(rows, whole):
    single = rows.astype(np.float32).astype(np.float64)
    with pytest.raises(Infeasibility, match="c = a . b"):
        audit_rows(single, whole, "sample")
    columns = replace(whole.columns, table=types(3, 2.0**-24), steps=np.zeros(3))
    whole = replace(whole, relations=replace(whole.relations, columns=columns))
    audit_rows(single, whole, "sample")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_float32_column_leaves_other_columns_exact(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(1e3 * rng.gamma(2.0, size=(80, 3)), columns=list("abc"))
    X["total"] = X.sum(axis=1)
    X["single"] = rng.normal(size=80).astype(np.float32)
    augmenter = PNLAugmenter().fit(X)
    requested = ColumnConstraint({"a": 1, "b": 1}, equal=3000.0)
    for rows in (
        augmenter.sample(50, random_state=seed),
        augmenter.sample(50, random_state=seed, constraints=requested),
    ):
        assert_allclose(rows["a"] + rows["b"] + rows["c"], rows["total"], rtol=1e-12)
    assert_allclose(rows["a"] + rows["b"], 3000, rtol=1e-11)


@pytest.mark.parametrize("seed", [0, 5, 19, 26])
def test_redundant_float32_features_hold_without_a_warning(seed):
    X, _ = make_classification(
        400, 8, n_informative=2, n_redundant=3, random_state=seed
    )
    X = X.astype(np.float32)
    augmenter = PNLAugmenter().fit(X)
    # The equalities hold up to the rounding of the columns, and their constants are 0.
    assert len(augmenter.equalities_) >= 3
    assert_array_equal(augmenter.equalities_.lower, 0)
    terms = np.abs(augmenter.equalities_.coefficients) @ np.abs(X).max(axis=0)
    missed = np.abs(augmenter.equalities_.residual(augmenter.sample(200, 0)))
    assert (missed.max(axis=0) <= 16 * np.finfo(np.float32).eps * terms).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_float32_cents_hold_without_a_warning(seed):
    parts = np.random.default_rng(seed).integers(0, 50_000, (60, 3)) / 100
    X = np.column_stack([parts, parts.sum(axis=1)]).astype(np.float32)
    rows = PNLAugmenter().fit(X).sample(100, random_state=seed)
    assert_array_equal(rows, np.round(rows.astype(float), 2).astype(np.float32))
    assert_allclose(rows[:, :3].sum(axis=1, dtype=float), rows[:, 3], rtol=1e-6)


# --- report -----------------------------------------------------------------------


def test_reports_can_be_printed_and_converted_to_frames(rows, whole):
    report = report_of(whole, rows, 50, moved=np.array([0.0, 0.3, 0]), n_parents=31.5)
    assert "c = a + b" in str(report)
    assert "0.3 of a column's range" in str(report)
    assert report.to_frame().index.tolist() == ["c = a + b", "c"]
    assert "<pre>" in report._repr_html_()


@pytest.mark.parametrize("seed", range(3))
def test_equalities_with_noise_hold_in_a_class_of_small_values(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1000, (200, 4))
    X[180:] /= 1000
    X[:, 3] = X[:, :3].sum(axis=1) + rng.uniform(-1e-6, 1e-6, 200)
    sampler = PNLSampler(random_state=0)
    new, _ = sampler.fit_resample(X, np.repeat([0, 1], [180, 20]))
    assert len(sampler.equalities_) == 1
    assert np.abs(new[200:, 3] - new[200:, :3].sum(axis=1)).max() < 4e-6
