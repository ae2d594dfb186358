"""Neighbours of rows of tables, for any number of threads and processes."""

import numpy as np
import pytest
from joblib import Parallel, delayed
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
def test_ties_at_the_last_neighbor_do_not_depend_on_threads(among, n):
    # Binary columns: hundreds of rows are at the distance of the last neighbour.
    rows = np.random.RandomState(0).randint(2, size=(n, 20)).astype(float)
    candidates = np.arange(0, n, 2) if among else None
    found = []
    for n_threads in (1, 2, 3, 4):
        with threadpool_limits(n_threads, "openmp"):
            found.append(RowSearch(rows).nearest(np.arange(n), 8, candidates))
            assert openmp_threads() == [n_threads] * len(openmp_threads())
    for other in found[1:]:
        assert_array_equal(other, found[0])


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
