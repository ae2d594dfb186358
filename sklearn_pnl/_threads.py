"""BLAS kept to one thread while blocks of rows are worked on."""

from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread():
    """For products too small for more: its other threads would keep cores busy."""
    return _threadpools().limit(limits=1, user_api="blas")


@cache
def _threadpools():
    """Threadpools of the libraries loaded; finding them takes a millisecond."""
    return ThreadpoolController()
