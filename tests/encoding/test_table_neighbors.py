"""Neighbours of rows of tables, for any number of threads and processes."""

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_pnl import PNLSampler
from sklearn_pnl.encoding.table_neighbors import RowSearch


def openmp_threads():
    """Return the number of threads of each OpenMP library of this process."""
    pools = threadpool_info()
    return [p["num_threads"] for p in pools if p["user_api"] == "openmp"]


@pytest.mark.parametrize("n", [300, 1025, 2100, 4200])
@pytest.mark.parametrize("among", [False, True])
@pytest.mark.parametrize("binary", [None, np.ones(20, bool)], ids=["numeric", "binary"])
def test_ties_at_the_last_neighbor_do_not_depend_on_threads(binary, among, n):
    # Binary columns: hundreds of rows are at the distance of the last neighbour.
    rows = np.random.RandomState(0).randint(2, size=(n, 20)).astype(float)
    candidates = np.arange(0, n, 2) if among else None
    found = []
    for n_threads in (1, 2, 3, 4):
        with threadpool_limits(n_threads, "openmp"):
            for n_jobs in (None, n_threads):
                search = RowSearch(rows, binary=binary)
                near = search.nearest(np.arange(n), 8, candidates, n_jobs)
                found.append(near)
            assert openmp_threads() == [n_threads] * len(openmp_threads())
    for other in found[1:]:
        assert_array_equal(other, found[0])


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [16, 700])
def test_neighbors_of_binary_rows_have_the_fewest_different_cells(d, seed, backend):
    rng = np.random.RandomState(seed)
    low, high = rng.uniform(-5, 0, d), rng.uniform(1, 5, d)
    rows = np.where(rng.uniform(size=(150, d)) < rng.uniform(0, 0.5, d), high, low)
    binary = rng.uniform(size=d) < 0.8
    # Columns that are constant in a class need not be binary.
    rows[:, ~binary] = 3.7
    candidates = rng.permutation(150)[:60]
    distances = (rows[:, None] != rows[candidates]).sum(axis=2)
    with parallel_config(backend, n_jobs=2):
        found = RowSearch(rows, binary=binary).nearest(np.arange(150), 60, candidates)
        some = RowSearch(rows, binary=binary).nearest(np.arange(9), 7, candidates, 2)
    assert_array_equal(np.sort(found, axis=1), np.tile(np.sort(candidates), (150, 1)))
    place = np.argsort(candidates)[np.searchsorted(np.sort(candidates), found)]
    away = np.take_along_axis(distances, place, axis=1)
    assert_array_equal(away, np.sort(distances, axis=1))
    away = (rows[:9, None] != rows[some]).sum(axis=2)
    assert_array_equal(away, np.sort(distances[:9], axis=1)[:, :7])


def test_ties_of_binary_rows_have_no_favourites():
    # Most rows have one cell of 600, so that most distances are equal.
    rows = (np.random.RandomState(0).uniform(size=(1000, 600)) < 0.002).astype(float)
    rows = rows[rows.sum(axis=1) == 1]
    near = RowSearch(rows, binary=np.ones(600, bool)).nearest(np.arange(len(rows)), 11)
    assert np.bincount(near.ravel()).max() < len(rows) / 2


def new_rows_of_ties(n_columns, n_threads, n_jobs):
    """Return new rows of a table in which most distances occur several times."""
    rng = np.random.RandomState(0)
    X = rng.randint(5, size=(2500, n_columns)) * 0.1
    y = np.repeat([0, 1], [1300, 1200])
    with threadpool_limits(n_threads, "openmp"):
        sampler = PNLSampler(random_state=0, n_jobs=n_jobs)
        return sampler.fit_resample(X, y)[0]


# KD trees search up to 15 columns, and brute force searches more.
@pytest.mark.parametrize("n_columns", [4, 40])
def test_new_rows_of_ties_do_not_depend_on_threads_and_processes(n_columns):
    expected = new_rows_of_ties(n_columns, 1, 1)
    for n_threads, n_jobs in (2, 1), (4, 2):
        new = new_rows_of_ties(n_columns, n_threads, n_jobs)
        assert_array_equal(new, expected)
    with Parallel(2, "loky") as parallel:
        found = parallel(delayed(new_rows_of_ties)(n_columns, t, 1) for t in (1, 3))
    for new in found:
        assert_array_equal(new, expected)
