"""Sparse rows give the results of dense rows, with memory for nonzero cells only."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.optimize import LinearConstraint
from sklearn import config_context

from sklearn_pnl import Lines, PNLAugmenter, PNLSampler
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.frames import table as tables

FORMS = [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


def signed_cells(n=120, d=40, seed=0):
    """Make cells of either sign, two binary columns, empty columns, an empty row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.3)
    X[:, [3, 8]] = (rng.uniform(size=(n, 2)) < 0.4) * [2.0, -1.0]
    X[:, [5, 6, d - 1]] = 0
    X[7] = 0
    return X


def untidy(X):
    """Store unsorted cells in two parts each, and a stored 0."""
    rows, columns = np.nonzero(X)
    half = X[rows, columns] / 2
    data = np.r_[half[::-1], half, 0.0]
    places = np.r_[rows[::-1], rows, 0], np.r_[columns[::-1], columns, 5]
    order = np.argsort(places[0], kind="stable")
    ends = np.searchsorted(places[0][order], np.arange(len(X) + 1))
    return sp.csr_matrix((data[order], places[1][order], ends), shape=X.shape)


def as_large(monkeypatch):
    """Treat all sparse rows as too many for dense ones."""
    monkeypatch.setattr(tables, "MOST_DENSE", 0)


def drawn(X, seed=0, n=60, **params):
    params = {"value_support": None, "k_neighbors": 5} | params
    return PNLAugmenter(**params).fit(X).sample(n, seed)


SETTINGS = {
    "defaults": {},
    "no limits": {"extrapolation": None},
    "more noise": {"method": Lines(noise=1)},
    "no noise": {"method": Lines(noise=0)},
}


@pytest.mark.parametrize("make", [*FORMS, untidy])
@pytest.mark.parametrize("name", SETTINGS)
def test_sparse_and_dense_rows_give_the_same_new_rows(make, name):
    X, params = signed_cells(), SETTINGS[name]
    assert_array_equal(drawn(make(X), **params).toarray(), drawn(X, **params))


@pytest.mark.parametrize("make", FORMS)
def test_sparse_rows_are_rounded_and_have_no_atoms(make):
    rng = np.random.default_rng(0)
    X = np.round(rng.gamma(2.0, size=(120, 8)) * (rng.random((120, 8)) < 0.9), 2)
    X[:, 1] = X[:, 0].round()
    dense = PNLAugmenter().fit(X)
    assert set(dense.value_support_.atoms) > {2}
    augmenter = PNLAugmenter().fit(make(X))
    support = augmenter.value_support_
    assert support.atoms == {}
    assert_array_equal(support.steps, dense.value_support_.steps)
    new = augmenter.sample(300, random_state=0).toarray()
    np.testing.assert_allclose(new, new.round(2), rtol=0, atol=1e-12)
    assert_array_equal(new[:, 1], new[:, 1].round())
    # Without atoms, the cells of both settings are the same before rounding.
    fewer = PNLAugmenter(value_support=None).fit(X).sample(300, random_state=0)
    assert (fewer != 0).mean() == pytest.approx((new != 0).mean(), abs=0.02)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("make", [sp.csr_matrix, untidy])
def test_large_sparse_and_dense_rows_agree_without_relations(make, name, monkeypatch):
    X, params = signed_cells(), {"equalities": None} | SETTINGS[name]
    expected = drawn(X, **params)
    as_large(monkeypatch)
    assert_array_equal(drawn(make(X), **params).toarray(), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
@pytest.mark.parametrize("is_large", [False, True])
def test_dtypes_of_sparse_rows_are_preserved(dtype, is_large, monkeypatch):
    X = np.random.default_rng(0).poisson(0.4, (90, 30)).astype(dtype)
    expected = drawn(X, equalities=None)
    if is_large:
        as_large(monkeypatch)
    new = drawn(sp.csr_matrix(X), equalities=None)
    assert new.dtype == dtype
    assert new.max() <= X.max()
    if not is_large:
        assert_array_equal(new.toarray(), expected)


def test_relations_of_sparse_and_dense_rows_agree():
    parts = np.random.default_rng(0).gamma(1.0, size=(80, 4))
    parts *= np.random.default_rng(1).uniform(size=parts.shape) < 0.5
    X = np.column_stack([np.zeros(80), parts, parts.sum(axis=1), parts[:, 0] / 2])
    new = drawn(sp.csr_array(X)).toarray()
    assert_array_equal(new, drawn(X))
    np.testing.assert_allclose(new[:, 1:5].sum(axis=1), new[:, 5])


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(
    "requested",
    [
        ColumnConstraint(0, equal=0.5),
        # Column 5 is 0 in all rows.
        LinearConstraint(np.eye(40)[[0, 5]].sum(axis=0)[None], 0.1, 0.4),
    ],
)
def test_constraints_hold_for_sparse_rows(is_large, requested, monkeypatch):
    X = signed_cells()
    if is_large:
        as_large(monkeypatch)
    augmenter = PNLAugmenter(value_support=None).fit(sp.csr_array(X))
    new = augmenter.sample(30, 0, constraints=requested)
    assert sp.issparse(new)
    if isinstance(requested, ColumnConstraint):
        np.testing.assert_allclose(new.toarray()[:, 0], 0.5)
    else:
        values = new.toarray() @ requested.A[0]
        assert values.min() >= 0.1 - 1e-9
        assert values.max() <= 0.4 + 1e-9
    total = augmenter.sample(30, 0, totals={0: 6.0})
    np.testing.assert_allclose(total.toarray()[:, 0].sum(), 6)


def test_batches_and_workers_give_the_same_large_sparse_rows(monkeypatch):
    as_large(monkeypatch)
    X = sp.csr_array(signed_cells())
    expected = drawn(X).toarray()
    with config_context(working_memory=1):
        assert_array_equal(drawn(X, n_jobs=2).toarray(), expected)
    augmenter = PNLAugmenter(value_support=None, k_neighbors=5).fit(X)
    for size in (1, 7, 60):
        parts = [*augmenter.iter_samples(60, size, 0)]
        assert_array_equal(sp.vstack(parts).toarray(), expected)


def test_given_equalities_hold_in_large_sparse_rows(monkeypatch):
    as_large(monkeypatch)
    X = signed_cells()
    X[:, 1] = X[:, 0] + X[:, 2]
    given = LinearConstraint(np.eye(40)[[0, 2]].sum(axis=0) - np.eye(40)[1], 0, 0)
    new = drawn(sp.csr_array(X), equalities=given).toarray()
    np.testing.assert_allclose(new[:, 0] + new[:, 2], new[:, 1], atol=1e-12)


def test_large_sparse_rows_may_contain_copies(monkeypatch):
    as_large(monkeypatch)
    X = np.zeros((50, 6))
    X[30:, :2] = np.random.default_rng(0).uniform(size=(20, 2))
    new = drawn(sp.csr_array(X))
    assert new.toarray().min() >= 0
    assert_array_equal(drawn(sp.csr_array(X[:30] * 0)).toarray(), np.zeros((60, 6)))


def test_many_binary_columns_of_sparse_rows_stay_binary():
    rng = np.random.default_rng(0)
    X = sp.csr_array((rng.uniform(size=(60, 3_000)) < 0.02).astype(float))
    tracemalloc.start()
    try:
        new = drawn(X)
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()
    assert set(new.data) == {1.0}


def test_memory_is_proportional_to_nonzero_cells():
    n, d, rng = 1_000, 2**20, np.random.default_rng(0)
    places = rng.integers(0, d, 50 * n), np.arange(0, 50 * n + 1, 50)
    X = sp.csr_matrix((rng.uniform(size=50 * n), *places), shape=(n, d))
    sampler = PNLSampler(sampling_strategy={1: 500}, random_state=0)
    tracemalloc.start()
    try:
        new, _ = sampler.fit_resample(X, np.repeat([0, 1], [900, 100]))
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
    assert new.shape == (1_400, d)
    # A new row has the cells of its two parents.
    assert np.diff(new.indptr)[n:].max() <= 100


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.filterwarnings("ignore:Constructing a DIA")
def test_new_rows_are_csr_or_csc(name, kind):
    X, y = signed_cells(), np.arange(120) % 5 == 0
    given = getattr(sp, f"{name}_{kind}")(X)
    found = PNLSampler(random_state=0).fit_resample(given, y)[0]
    assert type(found) is getattr(sp, f"{name if name == 'csc' else 'csr'}_{kind}")
    assert_array_equal(found[:120].toarray(), X)
