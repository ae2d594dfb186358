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
    restore what it found, and the last one what another had set.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _threadpools().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
                _limit = None


@cache
def _threadpools():
    """Threadpools of the libraries loaded; finding them takes a millisecond."""
    return ThreadpoolController()
