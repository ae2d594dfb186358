"""One limit on the threads of BLAS, however many ask for it at once."""

from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock, _users, _limit = Lock(), 0, None


@contextmanager
def one_blas_thread():
    """Limit BLAS to one thread: products of small blocks do not gain from more.

    The limit holds for the whole process. The first context that is entered sets it and
    the last one that is left restores it, in any order: if each context restored what
    it read, the last one would restore the limit of another. A limit of another library
    that cannot be changed from this thread stays.
    """
    global _users, _limit
    with _lock:
        # `_limit` is not None if an earlier restoration was interrupted.
        if _users == 0 and _limit is None and _most_threads() > 1:
            _limit = [(pool, pool.num_threads) for pool in _threadpools()]
            for pool in _threadpools():
                pool.set_num_threads(1)
            # None if the limit could not be set.
            _limit = _limit if _most_threads() == 1 else None
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _limit is not None:
                _give_back(_limit)
                _limit = None


def _give_back(limit):
    for pool, n_threads in limit:
        # Some versions allow only the thread that set the limit to change it.
        if hasattr(pool, "clear_controlling_thread"):
            pool.clear_controlling_thread(force=True)
        pool.set_num_threads(n_threads)


def _most_threads():
    return max((pool.num_threads for pool in _threadpools()), default=1)


@cache
def _threadpools():
    """Threadpools of BLAS that are loaded; finding them takes a millisecond."""
    pools = ThreadpoolController().lib_controllers
    return [pool for pool in pools if pool.user_api == "blas"]
