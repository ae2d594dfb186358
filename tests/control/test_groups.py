"""One-hot groups: found in any units and among any number of columns, and kept."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_array
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_pnl import PNLAugmenter, PNLSampler, find_invariants
from sklearn_pnl.control.groups import one_hot_groups


def encoded(rng, n, sizes, rare=False):
    """Groups of so many columns beside others, and where each begins."""
    parts, firsts, at = [], [], 0
    for size in sizes:
        shares = rng.dirichlet(np.full(size, 0.3 if rare else 3.0))
        levels = rng.choice(size, n, p=shares)
        levels[:size] = np.arange(size)
        parts += [np.eye(size)[levels], rng.normal(size=(n, 1))]
        firsts.append(at)
        at += size + 1
    return np.hstack(parts), firsts


def groups_slow(X):
    """Runs of columns that are 0 or 1, with one 1 a row, by trying all of them."""
    flags, found = np.isin(X, (0, 1)).all(axis=0), []
    for first in range(X.shape[1]):
        for end in range(first + 2, X.shape[1] + 1):
            some = slice(first, end)
            if flags[some].all() and np.all(X[:, some].sum(axis=1) == 1):
                if not found or found[-1].stop <= first:
                    found.append(some)
                break
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rare", [False, True])
def test_groups_are_those_of_the_slow_search(seed, rare):
    rng = np.random.default_rng(seed)
    X, _ = encoded(rng, 80, rng.integers(2, 7, size=6), rare)
    equations, values = one_hot_groups(X)
    np.testing.assert_array_equal(values, 1)
    found = [slice(f.min(), f.max() + 1) for f in map(np.flatnonzero, equations)]
    assert found == groups_slow(X)


@pytest.mark.parametrize("columns", [30, 400])
def test_groups_in_any_units_and_number_of_columns(columns):
    rng = np.random.default_rng(0)
    X, firsts = encoded(rng, 60, [4] * (columns // 5), rare=True)
    scaled = StandardScaler().fit_transform(X)
    for rows in (X, scaled, scaled.astype(np.float32)):
        equations, values = one_hot_groups(rows)
        assert [np.flatnonzero(a)[0] for a in equations] == firsts
        np.testing.assert_allclose(
            rows @ equations.T, [values] * 60, rtol=1e-5, atol=1e-5
        )
        augmenter = PNLAugmenter().fit(rows)
        assert ("only one-hot groups" in augmenter.invariants_.note) == (columns > 200)
        new = augmenter.sample(50, 0)
        shares = (new - rows.min(axis=0)) / np.ptp(rows, axis=0)
        for first in firsts:
            ordered = np.sort(shares[:, first : first + 4], axis=1)
            np.testing.assert_allclose(ordered, [[0, 0, 0, 1]] * 50, atol=1e-6)


def test_groups_of_few_rows_and_rare_levels_stay_one_hot():
    # 40 rows, 15 of them distinct in the numbers, one level in a single row.
    rng, n = np.random.default_rng(0), 40
    frame = pd.DataFrame(
        {"count": rng.integers(0, 3, n), "sex": rng.choice(["F", "M"], n)}
    )
    frame["site"] = np.where(np.arange(n) < 1, "c", rng.choice(["a", "b"], n))
    y = (np.arange(n) < 10).astype(int)
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["sex", "site"]),
        remainder=StandardScaler(),
    )
    X = encode.fit_transform(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = PNLSampler(random_state=0).fit_resample(X, y)[0][n:]
    for group in (slice(0, 2), slice(2, 5)):
        assert np.all(np.sort(new[:, group])[:, -2:] == [0, 1])


def test_levels_that_no_row_has_do_not_part_a_group():
    X = np.eye(4)[np.random.default_rng(0).integers(0, 4, 50)]
    X = np.insert(X, 2, 0.0, axis=1)
    equations, _ = one_hot_groups(X)
    np.testing.assert_array_equal(equations, [[1, 1, 0, 1, 1]])


def test_values_of_a_group_are_those_of_its_rows():
    # Nearly a sixth, which is no reason to make it one.
    rng, n = np.random.default_rng(0), 100
    value, y = 0.16666666666666644, (np.arange(n) < 10).astype(int)
    first = np.where(y == 1, 1, rng.integers(0, 2, n))
    X = np.column_stack([first, 1 - first, rng.normal(size=n)]) * [value, value, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = PNLSampler(random_state=0).fit_resample(X, y)[0][n:]
    np.testing.assert_array_equal(new[:, :2], np.tile([value, 0], (80, 1)))


@pytest.mark.parametrize("form", [csr_array, csc_array])
def test_groups_among_sparse_columns(form):
    rng, n = np.random.default_rng(0), 3000
    groups, firsts = encoded(rng, n, [5, 3, 2])
    words = rng.uniform(size=(n, 400)) * (rng.uniform(size=(n, 400)) < 0.01)
    X = np.hstack([words, groups])
    for dense, sparse in zip(one_hot_groups(X), one_hot_groups(form(X)), strict=True):
        np.testing.assert_array_equal(dense, sparse)
    y = (np.arange(n) < 50).astype(int)
    sampler = PNLSampler(random_state=0, sampling_strategy={1: 150})
    new = sampler.fit_resample(form(X), y)[0][n:].toarray()
    for first, size in zip(firsts, (5, 3, 2), strict=True):
        group = new[:, 400 + first : 400 + first + size]
        assert np.all(np.sort(group) == np.eye(size)[-1])


def test_groups_beside_numbers_that_doubles_do_not_hold():
    rng = np.random.default_rng(0)
    flags = np.eye(3, dtype=np.int64)[rng.integers(0, 3, 40)]
    X = np.column_stack([2**60 + rng.integers(0, 9, 40), flags])
    assert find_invariants(X).descriptions == ("x1 + x2 + x3 = 1",)


def test_an_equation_is_not_said_twice():
    X, _ = encoded(np.random.default_rng(0), 200, [3, 2])
    assert find_invariants(X).descriptions == ("x0 + x1 + x2 = 1", "x4 + x5 = 1")


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9])
def test_random_flags_are_no_groups(share):
    found = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X = (rng.random((rng.integers(8, 60), 40)) < share).astype(float)
        found += len(one_hot_groups(X)[0])
    assert found <= 1


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_groups_of_any_type_among_many_columns(form, dtype):
    rng, n = np.random.default_rng(0), 100
    X = np.eye(4)[rng.integers(0, 4, (n, 60))].reshape(n, 240).astype(dtype)
    sampler = PNLSampler(random_state=0)
    rows = sampler.fit_resample(form(X), np.arange(n) < 20)[0][n:]
    assert len(sampler.invariants_) == 60
    rows = rows.toarray() if form is csr_array else rows
    groups = rows.astype(float).reshape(-1, 4)
    assert np.all(np.sort(groups) == [0, 0, 0, 1])
