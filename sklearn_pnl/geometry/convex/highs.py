"""Call HiGHS, the solver of linear programmes in SciPy, without output.

Integer programmes of HiGHS can print a line to standard output, whatever its options.
"""

import ctypes
import os
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from tempfile import TemporaryFile
from threading import Lock, get_ident

import numpy as np
from scipy.optimize import OptimizeResult

_PRINTED = b"HighsMipSolverData"
_FAILED = 4
# The threads that call HiGHS, and the redirection of their output.
_lock, _threads, _redirection = Lock(), set(), ExitStack()


def solved(solver, *args, **options):
    """Return the result of ``milp`` or ``linprog``; status 4 if the solver fails.

    C++ errors of HiGHS, such as "vector::reserve", would not help a user. Programmes
    without integers print nothing, and leave standard output as it is.
    """
    has_integers = np.any(options.get("integrality", False))
    with _without_output() if has_integers else nullcontext():
        try:
            return solver(*args, **options)
        except (ValueError, RuntimeError, MemoryError) as error:
            return OptimizeResult(x=None, status=_FAILED, message=str(error))


@contextmanager
def _without_output():
    """Drop the lines that HiGHS prints, and delay other output to the end.

    The first of several threads redirects the standard output of the process, and the
    last thread restores it.
    """
    with _lock:
        if not _threads:
            _redirection.enter_context(_redirected())
        _threads.add(get_ident())
    try:
        yield
    finally:
        with _lock:
            _threads.remove(get_ident())
            if not _threads:
                _redirection.close()


@contextmanager
def _redirected():
    """Redirect standard output to a file, and write back the lines of others."""
    try:
        stdout = os.dup(1)
    except OSError:
        # The process has no standard output.
        yield
        return
    with TemporaryFile() as file:
        _flush()
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            _flush()
            os.dup2(stdout, 1)
        file.seek(0)
        for line in file:
            if not line.startswith(_PRINTED):
                os.write(stdout, line)
    os.close(stdout)


def _flush():
    """Write what the C library has buffered."""
    with suppress(OSError):
        ctypes.CDLL("ucrtbase" if os.name == "nt" else None).fflush(None)
