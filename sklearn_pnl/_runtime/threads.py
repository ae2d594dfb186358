"""One limit on the threads of BLAS, however many ask for it at once."""

from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock, _users, _limit = Lock(), 0, None


@contextmanager
def one_blas_thread():
    """For products too small for more: its other threads would keep cores busy.

    The limit is one for the whole process. So the first to come in takes it and the
    last to go out gives it back, in whichever order they leave: each on its own would
    restore what it found, and the last one what another had set. Where somebody else
    holds a limit that cannot be changed from here, that one stays.
    """
    global _users, _limit
    with _lock:
        # It is still there if giving it back was interrupted.
        if _users == 0 and _limit is None and _most_threads() > 1:
            _limit = [(pool, pool.num_threads) for pool in _threadpools()]
            for pool in _threadpools():
                pool.set_num_threads(1)
            # None if there was no way to.
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
        # Some versions let no other thread of Python change what one has set.
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
