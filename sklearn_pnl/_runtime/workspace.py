"""Memory of temporaries, kept from block to block.

A large temporary is asked for from the system and given back a hundred times a block.
Where the allocator does not keep it, as in the workers of dask, its pages are mapped
anew each time, which takes as long as the arithmetic.
"""

import threading
import weakref
from contextlib import contextmanager
from math import prod

import numpy as np

# Bytes up to which allocators keep memory of their own accord.
_SMALL = 2**16
# Memory more than so many times as large as an array is left for others.
_ROOMY = 4
# Memory of this thread's workspace, each with a reference that tells if it is in use.
_thread = threading.local()


def slices(n, step):
    """Of n rows, up to ``step`` at a time."""
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


@contextmanager
def workspace():
    """Within, :func:`empty` keeps memory for this thread, and frees it in the end."""
    outer = getattr(_thread, "kept", None)
    if outer is None:
        _thread.kept = []
    try:
        yield
    finally:
        _thread.kept = outer


def empty(shape, dtype):
    """As :func:`numpy.empty`; within a workspace in memory that is no longer in use.

    It is in use while the array, or a view of it, is there: so it may be kept, given
    back and handed on as any other array.
    """
    kept = getattr(_thread, "kept", None)
    size = prod(shape) * np.dtype(dtype).itemsize
    if kept is None or size <= _SMALL:
        return np.empty(shape, dtype)
    memory = _unused(kept, size)
    # Views of the array keep it alive, since the owner of its memory is no array.
    array = np.ndarray(shape, dtype, memory)
    kept.append((memory, weakref.ref(array)))
    return array


def empty_like(array):
    """:func:`empty` of the shape and type of an array."""
    return empty(array.shape, array.dtype)


def zeros(shape, dtype):
    """As :func:`numpy.zeros`, like :func:`empty`."""
    array = empty(shape, dtype)
    array.fill(0)
    return array


def take(array, indices, axis):
    """As :func:`numpy.take`, like :func:`empty`; all indices must be in range."""
    shape = [*array.shape]
    shape[axis] = len(indices)
    # The mode that checks them would make another copy.
    return np.take(array, indices, axis, empty(shape, array.dtype), mode="clip")


def some_rows(array, rows):
    """Some rows of an array, ascending; without a copy if these are all."""
    return array if len(rows) == len(array) else take(array, rows, axis=0)


def _unused(kept, size):
    """Memory that is large enough, the last that was asked for, or new one."""
    for k in range(len(kept) - 1, -1, -1):
        memory, user = kept[k]
        if user() is None and size <= len(memory) <= _ROOMY * size:
            del kept[k]
            return memory
    return bytearray(size)
