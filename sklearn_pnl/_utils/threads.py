"""Limit the number of threads of BLAS and of OpenMP."""

from contextlib import contextmanager
from functools import cache
from threading import Lock

from sklearn import config_context
from threadpoolctl import ThreadpoolController

# Queries that a thread of scikit-learn's brute-force search compares with the points at
# once. With fewer than four chunks of queries for each thread, the threads share
# the points instead of the queries. Which of several points at the distance of the last
# neighbour are found then depends on the number of threads. A search therefore starts
# one thread for each four chunks of queries, and a small search starts none.
# A small search in several threads would also wait for threads that get no core.
_CHUNK = 128

_lock, _users, _before = Lock(), 0, []


@contextmanager
def one_blas_thread():
    """Limit BLAS to one thread, in every public function and method that computes.

    Threads of BLAS keep spinning after a product, and compete for cores with the
    neighbour searches of scikit-learn. Alternating calls then take far longer.
    Products of small blocks do not gain from more threads; ``n_jobs`` uses more cores.

    The limit applies to the whole process. The first context that is entered sets the
    limit, and the last context that is left restores the previous limit. Contexts can
    be left in any order, and must not restore the limit of another context.
    """
    global _users
    with _lock:
        if _users == 0:
            # `_before` is not empty if an earlier restoration was interrupted.
            if not _before:
                _before.extend((pool, pool.num_threads) for pool in _pools("blas"))
            _set_threads([(pool, 1) for pool, _ in _before])
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _set_threads(_before)
                _before.clear()


def limited(steps):
    """Iterate over ``steps``; each step uses one thread of BLAS."""
    steps, end = iter(steps), object()
    while True:
        with one_blas_thread():
            step = next(steps, end)
        if step is end:
            return
        yield step


def _set_threads(numbers):
    for pool, n_threads in numbers:
        # In some versions, only the thread that set a limit can change the limit.
        if hasattr(pool, "clear_controlling_thread"):
            pool.clear_controlling_thread(force=True)
        pool.set_num_threads(n_threads)


@contextmanager
def search_threads(n_queries):
    """Limit the OpenMP threads of a neighbour search to a number for its queries."""
    most = max(1, (n_queries - 1) // (4 * _CHUNK))
    with config_context(pairwise_dist_chunk_size=_CHUNK), few_openmp_threads(most):
        yield


@contextmanager
def few_openmp_threads(most):
    """Limit OpenMP to ``most`` threads for the searches of the calling thread.

    OpenMP keeps one limit for each thread that starts a search. The limit therefore
    needs no lock, and searches of other threads keep their own limit.
    """
    pools = _pools("openmp")
    before = [pool.num_threads for pool in pools]
    for pool, n_threads in zip(pools, before, strict=True):
        if n_threads > most:
            pool.set_num_threads(most)
    try:
        yield
    finally:
        for pool, n_threads in zip(pools, before, strict=True):
            pool.set_num_threads(n_threads)


@cache
def _pools(user_api):
    """Return the loaded thread pools of "blas" or "openmp".

    The result is cached, because the search takes a millisecond.
    """
    pools = ThreadpoolController().lib_controllers
    return [pool for pool in pools if pool.user_api == user_api]
