"""Zeros that stay zero, and with them compositions, counts and sparse rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import (
    ColumnConstraint,
    KernelDraws,
    MixupDraws,
    PNLAugmenter,
    PNLSampler,
)

SEEDS = [0, 1, 2]


def sparse_table(seed=0, n=60, d=12, share=0.3):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < share, rng.gamma(1.0, size=(n, d)), 0)
    # No row is empty.
    X[:, 0] += 0.1
    return X


def compositions(seed=0):
    X = sparse_table(seed)
    return X / X.sum(axis=1, keepdims=True)


def drawn(X, n=200, seed=0, **params):
    """New rows, and where all parents are zero."""
    augmenter = PNLAugmenter(marks="zeros", **params).fit(X)
    rows, parents = augmenter.sample(n, seed, return_parents=True)
    X = X.toarray() if sp.issparse(X) else X
    return rows, (X == 0)[parents].all(axis=1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"offset": 0.3},
        {"order": 1},
        {"order": 1, "reshaper": None, "local_manifold": "mixture"},
        {"draws": KernelDraws(0.2)},
        {"embedding": None, "with_mass": False},
        {"embedding": None, "draws": MixupDraws(noise=1.0), "offset": 0.1},
        {"range_slack": None, "invariants": None},
    ],
    ids=str,
)
def test_cells_that_are_zero_in_all_parents_are_zero(params, seed):
    rows, zeros = drawn(sparse_table(seed), seed=seed, **params)
    assert zeros.any()
    assert_array_equal(rows[zeros], 0)
    # Others are not emptied.
    assert (rows[~zeros] > 0).mean() > 0.5
    # Without a margin a range is no limit.
    assert rows.min() >= 0 or "range_slack" in params


def test_reduced_codes_and_wide_draws_would_fill_them():
    # What the parameter is for: without it these are not zero.
    X = sparse_table()
    for params in ({"order": 1}, {"draws": "kde"}):
        augmenter = PNLAugmenter(marks=None, **params).fit(X)
        rows, parents = augmenter.sample(200, 0, return_parents=True)
        assert (rows[(X == 0)[parents].all(axis=1)] > 0).mean() > 0.2


def test_density_of_sparse_rows_is_that_of_smote(record_property):
    from imblearn.over_sampling import SMOTE

    X = sp.csr_array(sparse_table(n=300, d=30))
    y = np.repeat([0, 1], [200, 100])
    density = {"data": X.nnz / np.prod(X.shape)}
    samplers = {"smote": SMOTE(random_state=0)}
    samplers["pnl"] = PNLSampler(random_state=0, marks="zeros")
    for name, sampler in samplers.items():
        new = sampler.fit_resample(X, y)[0][300:]
        density[name] = new.nnz / np.prod(new.shape)
        record_property(f"density, {name}", float(density[name]))
    assert density["data"] < density["pnl"] <= density["smote"] + 0.02


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("invariants", ["auto", None])
@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_compositions_stay_closed(augment, invariants, seed):
    rows, zeros = drawn(
        compositions(seed),
        seed=seed,
        draws=augment,
        embedding=None,
        with_mass=False,
        range_slack=None,
        invariants=invariants,
    )
    assert_allclose(rows.sum(axis=1), 1, rtol=1e-12)
    assert_array_equal(rows[zeros], 0)
    assert rows.min() >= 0


@pytest.mark.parametrize("seed", SEEDS)
def test_equations_and_zeros_are_kept_together(seed):
    # Two groups of parts with sums of their own; the embedding knows nothing of them.
    X = np.hstack([compositions(seed), 3 * compositions(seed + 9)])
    rows, zeros = drawn(X, seed=seed)
    assert_array_equal(rows[zeros], 0)
    assert_allclose(rows[:, :12].sum(axis=1), 1, atol=1e-9)
    assert_allclose(rows[:, 12:].sum(axis=1), 3, atol=1e-9)
    assert rows.min() >= -1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_stay_counts(seed):
    X = np.random.default_rng(seed).poisson(4 * sparse_table(seed))
    rows, zeros = drawn(X, seed=seed, embedding=None)
    assert rows.dtype == X.dtype
    assert rows.min() == 0
    assert_array_equal(rows[zeros], 0)
    # As deep as the samples were.
    depth = X.sum(axis=1)
    assert abs(rows.sum(axis=1).mean() - depth.mean()) < 4 * depth.std() / np.sqrt(60)


def test_sums_are_kept_by_the_cells_that_are_left():
    # The embedding that does nothing is the identity, and keeps the sums of rows.
    X = np.pi * np.array([[0.0, 2, 3, 0], [0, 1, 3, 1], [1, 2, 3, 0], [1, 1, 3, 1.5]])
    settings = {"embedding": None, "invariants": None, "range_slack": None}
    settings |= {"k_neighbors": 1, "draws": MixupDraws(noise=0), "with_mass": True}
    augmenter = PNLAugmenter(marks="zeros", **settings).fit(X)
    rows, parents = augmenter.sample(50, 0, return_parents=True)
    free = PNLAugmenter(marks=None, **settings).fit(X).sample(50, 0)
    zeros = (X == 0)[parents].all(axis=1)
    assert zeros.any()
    assert_array_equal(rows[zeros], 0)
    assert_allclose(rows.sum(axis=1), np.maximum(free, 0).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_batches_and_jobs_change_no_byte(batch_size):
    X = compositions()
    params = {"marks": "zeros", "embedding": None, "with_mass": False}
    whole = PNLAugmenter(**params).fit(X).sample(100, random_state=0)
    augmenter = PNLAugmenter(n_jobs=2, **params).fit(X)
    batches = augmenter.iter_samples(100, batch_size, random_state=0)
    assert_array_equal(np.vstack(list(batches)), whole)


def test_rows_whose_sum_would_be_negative_are_not():
    # Noise may take more than there is from rows of next to nothing.
    X = np.random.default_rng(0).gamma(0.3, size=(20, 4)) ** 3 * 1e-3
    X[0], X[1] = [1.0, 0, 0.1, 1], [0, 0, 0.1, 0.2]
    X[X < 1e-6] = 0
    params = {"embedding": None, "marks": "zeros", "range_slack": None, "offset": 0.1}
    rows = PNLAugmenter(**params).fit(X).sample(500, random_state=0)
    assert rows.min() == 0


# --- what once was wrong --------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [0.3, 1.0])
@pytest.mark.parametrize("draws", ["kde", "wide", "mixup"])
def test_one_hot_rows_are_of_a_level(draws, bandwidth):
    level = np.random.default_rng(1).integers(0, 3, size=60)
    X = np.column_stack(
        [np.eye(3)[level], np.random.default_rng(2).gamma(2, size=(60, 2))]
    )
    draws = KernelDraws(bandwidth=bandwidth) if draws == "wide" else draws
    rows = PNLAugmenter(draws=draws, marks="zeros").fit(X).sample(200, 0)
    assert_array_equal(np.sort(rows[:, :3], axis=1), [[0, 0, 1]] * 200)


@pytest.mark.parametrize("params", [{}, {"draws": "kde"}, {"embedding": None}], ids=str)
@pytest.mark.parametrize("value", [0, 0.5, 5])
def test_what_is_asked_for_goes_before_zeros(params, value):
    rng = np.random.default_rng(0)
    X = rng.gamma(2, size=(200, 4)) * (rng.random((200, 4)) < 0.4)
    augmenter = PNLAugmenter(marks="zeros", **params).fit(X)
    asked = ColumnConstraint(0, equal=value)
    rows, parents = augmenter.sample(200, 0, constraints=asked, return_parents=True)
    assert_allclose(rows[:, 0], value, atol=1e-8)
    # Other zeros stay.
    shared = (X[parents] == 0).all(axis=1)[:, 1:]
    assert_array_equal(rows[:, 1:][shared], 0)


def test_what_goes_before_zeros_is_told():
    told = repr(PNLAugmenter(marks="zeros").fit(sparse_table()).marks_)
    assert "zero in all parents stay zero" in told
    assert "What is asked of new rows goes before" in told


@pytest.mark.parametrize("whole", [False, True])
def test_equations_of_whole_numbers_and_others_move_no_zeros(whole):
    # A column in double precision takes what rounding left, but not one that is zero.
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(80, 3)) * (rng.random((80, 3)) < 0.5)
    X[:, 0] = rng.poisson(4, size=80)
    X = np.column_stack([X, X.sum(axis=1)])
    X[:, 2] = np.rint(X[:, 2]) if whole else X[:, 2]
    X[:, 3] = X[:, :3].sum(axis=1)
    rows, zeros = drawn(X, draws="kde", range_slack=None)
    assert zeros.any()
    assert_array_equal(rows[zeros], 0)
    assert_array_equal(rows[:, 0], np.rint(rows[:, 0]))
    assert_allclose(rows[:, 3], rows[:, :3].sum(axis=1), atol=1e-8)


# --- zeros in equations -----------------------------------------------------------


def amounts(rng, n, places):
    """Six amounts, most of them often zero, in two sub-totals and a total."""
    often = rng.random((n, 6)) > [0, 0.2, 0.5, 0.7, 0.5, 0.5]
    parts = rng.gamma(2.0, 100, size=(n, 6)) * often
    parts = parts if places is None else parts.round(places)
    sums = parts[:, :3].sum(axis=1), parts[:, 3:].sum(axis=1), parts.sum(axis=1)
    return np.column_stack([parts, *sums])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("places", [None, 0, 2])
def test_parts_of_totals_are_zero_as_often_as_in_the_training_rows(seed, places):
    X = amounts(np.random.default_rng(seed), 600, places)
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(600, random_state=seed)
    assert augmenter.invariants_.violation(rows).max() <= 1e-9
    assert_allclose((rows == 0).mean(axis=0), (X == 0).mean(axis=0), atol=0.06)
    assert rows.min() >= 0
    if places is not None:
        assert_allclose(rows, rows.round(places), atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_rounded_shares_are_zero_as_often_too(seed):
    rng = np.random.default_rng(seed)
    parts = rng.dirichlet((1, 2, 3, 4), 600) * (rng.random((600, 4)) > 0.3)
    parts[parts.sum(axis=1) == 0] = 0.25
    X = (100 * parts / parts.sum(axis=1, keepdims=True)).round(1)
    rows = PNLAugmenter().fit(X).sample(600, random_state=seed)
    assert np.abs(rows.sum(axis=1) - 100).max() <= 0.2 + 1e-9
    assert_allclose((rows == 0).mean(axis=0), (X == 0).mean(axis=0), atol=0.06)


def test_a_part_that_is_asked_for_is_not_zero():
    X = amounts(np.random.default_rng(0), 400, 0)
    asked = ColumnConstraint(3, equal=50)
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(200, random_state=0, constraints=asked)
    assert_array_equal(rows[:, 3], 50)
    assert augmenter.invariants_.violation(rows).max() <= 1e-9
