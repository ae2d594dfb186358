"""The limit on BLAS threads: one for all that ask, given back by the last."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from sklearn_pnl._runtime.threads import one_blas_thread


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if is_blas(pool)]


def is_blas(pool):
    return pool["user_api"] == "blas"


@pytest.fixture(autouse=True)
def three():
    """More than one thread, whatever the machine has and other tests left."""
    found = blas_threads()
    _set(3)
    before = blas_threads()
    assert max(before) == 3
    yield before
    _set(max(found))


def _set(n_threads):
    """As somebody would who does not hold the limit any longer."""
    threadpool_limits(n_threads, user_api="blas")
    for library in ThreadpoolController().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def test_one_thread_inside_and_what_there_was_after(three):
    with one_blas_thread():
        assert set(blas_threads()) == {1}
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == three


def test_limits_that_overlap_leave_what_there_was(three):
    # First in, first out: each on its own, the second would restore the first one's.
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == three


def test_an_error_gives_the_threads_back(three):
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        1 / 0  # noqa: B018
    assert blas_threads() == three


def test_threads_of_python_share_one_limit(three):
    barrier, seen = Barrier(4), []

    def work(number):
        for _ in range(20):
            with one_blas_thread():
                barrier.wait(timeout=60)
                seen.append(set(blas_threads()))
            if number == 0:
                continue
            with pytest.raises(KeyError), one_blas_thread():
                raise KeyError

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert seen == [{1}] * 80
    assert blas_threads() == three
