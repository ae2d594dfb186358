"""Work on blocks of rows, by threads or workers that share no memory; batches cut."""

import os
import sys
from ctypes import CDLL
from functools import cache

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from scipy.sparse import issparse
from sklearn.utils import gen_batches

from .arrays import (
    BLOCK_CELLS,
    DEVICE_BLOCKS,
    concat,
    is_foreign,
    namespace,
    slices,
    some_columns,
)
from .threads import one_blas_thread

_LARGEST = 31 * 2**20
# Options of malloc.h of glibc.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def map_blocks(function, *arrays, step, n_jobs=None):
    """``function(*blocks)`` over blocks of ``step`` rows; results joined by rows.

    ``function`` returns a tuple of arrays with one entry a row; for workers in other
    processes or on other machines it must be picklable. Results are written as they
    come, so that no second copy of the output is held. Blocks are small, so BLAS is
    kept to one thread: ``n_jobs`` is what uses more cores.
    """
    if is_foreign(arrays[0]):
        return _on_device(function, arrays, step * DEVICE_BLOCKS)
    n, joined, done = len(arrays[0]), None, 0
    with one_blas_thread():
        for parts in _results(function, arrays, n, step, n_jobs):
            if joined is None:
                joined = [np.empty((n, *p.shape[1:]), p.dtype) for p in parts]
            for whole, part in zip(joined, parts, strict=True):
                whole[done : done + len(part)] = part
            done += len(parts[0])
    return joined


def _on_device(function, arrays, step):
    """:func:`map_blocks` of arrays on a device, which has workers of its own."""
    rows = gen_batches(arrays[0].shape[0], step)
    results = [_of_block(function, b.start, *(a[b, ...] for a in arrays)) for b in rows]
    return [concat(parts) for parts in zip(*results, strict=True)]


@cache
def _keep_freed_memory():
    """Have temporaries of blocks come from the heap, once a process.

    The allocator of Linux maps arrays that are larger than any that was freed, and
    unmaps them after use: up to 25 page faults a row. One large array, which is not
    written to, teaches it. Where the environment sets the size of free memory that it
    gives back, as dask does for its workers, it learns nothing: 200 to 1,500 faults a
    row. There it is told what it would have learned, unless the user told it both.
    """
    np.empty(_LARGEST, np.uint8)
    trims, maps = (
        f"MALLOC_{name}_THRESHOLD_" in os.environ for name in ("TRIM", "MMAP")
    )
    if trims and not maps and sys.platform == "linux":
        # Other allocators than glibc's have none.
        set_option = getattr(CDLL(None), "mallopt", lambda option, value: 0)
        set_option(_MMAP_THRESHOLD, _LARGEST)
        set_option(_TRIM_THRESHOLD, 2 * _LARGEST)


def _results(function, arrays, n, step, n_jobs):
    """What ``function`` makes of each block, in order."""
    shared = shares_memory()
    blocks = ((b.start, *(a[b] for a in arrays)) for b in gen_batches(n, step))
    # Starting threads takes ten milliseconds, more than a single block.
    if shared and (n <= step or effective_n_jobs(n_jobs) == 1):
        return (_of_block(function, *block) for block in blocks)
    function = function if shared else _Remote(function)
    backend, _ = get_active_backend(prefer="threads")
    # The "multiprocessing" backend of joblib returns no generator, only a list.
    return_as = "generator" if backend.supports_return_generator else "list"
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)
    return parallel(delayed(_of_block)(function, *block) for block in blocks)


def shares_memory():
    """Whether workers of the active joblib backend share the memory of this process."""
    backend, _ = get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False)


def _of_block(function, start, *arrays):
    """Results of one block; the ``row`` of an error counts among all rows."""
    _keep_freed_memory()
    # Rounding depends on the memory layout, so that all workers use the same one.
    if not is_foreign(arrays[0]):
        arrays = map(np.ascontiguousarray, arrays)
    try:
        return function(*arrays)
    except ValueError as error:
        if hasattr(error, "row"):
            error.row += start
        raise


class _Remote:
    """A function for workers that share no memory.

    The "dask" backend sends large arguments to the workers once, not with every task.
    It asks ``__sizeof__``, which a partial answers without the training rows that it
    carries. BLAS is limited to one thread in the worker too.
    """

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        with one_blas_thread():
            return self.function(*args)

    def __sizeof__(self):
        kept = getattr(self.function, "keywords", {}).values()
        arrays = (value for value in kept if isinstance(value, np.ndarray))
        return 2**20 + sum(array.nbytes for array in arrays)


def even_step(n, step):
    """About ``step``, for blocks of one size that two or four workers share evenly."""
    if n <= step:
        return step
    return -(-n // (4 * max(1, round(n / (4 * step)))))


def ends_of(rows):
    """Smallest and largest value (D,) of each column of rows (n, D)."""
    if is_foreign(rows):
        return namespace(rows).min(rows, axis=0), namespace(rows).max(rows, axis=0)
    n, d = rows.shape
    # Several short rows are joined: passes over single ones take up to eight times
    # as long.
    side = max(1, min(1024 // max(d, 1), n)) if rows.flags.c_contiguous else 1
    whole = n // side * side
    long = rows[:whole].reshape(n // side, side * d)

    def reduced(end):
        first = end.reduce(long, axis=0).reshape(side, d)
        return end.reduce(np.concatenate([first, rows[whole:]]), axis=0)

    return reduced(np.minimum), reduced(np.maximum)


def ends_seen(rows):
    """:func:`ends_of` of the cells that are there; 0 where all of a column are missing.

    Of an array of NumPy, or a sparse one, in double precision.
    """
    if issparse(rows):
        ends = rows.nanmin(axis=0), rows.nanmax(axis=0)
        return tuple(np.nan_to_num(end.toarray().ravel()) for end in ends)
    least, most = (end.astype(np.float64) for end in ends_of(rows))
    if np.isnan(least).any():
        ends = np.fmin.reduce(rows), np.fmax.reduce(rows)
        least, most = map(np.nan_to_num, ends)
    return least, most


# --- random rows ------------------------------------------------------------------


def random_order(rows):
    """Return the numbers (n,) of rows (n, D) in a random order, with a fixed seed.

    The order is computed from the values of the rows. Therefore, the first m rows are
    the same rows for every sorting of a table, and a period of the sorting does not
    matter. The computation uses integers, so that all machines return the same order.
    """
    n, d = rows.shape
    factors = np.random.default_rng(0).integers(1, 2**64, d, np.uint64) | np.uint64(1)
    keys = np.empty(n, np.uint64)
    for part in slices(n, 1 + BLOCK_CELLS // max(d, 1)):
        cells = np.ascontiguousarray(rows[part], np.float64).view(np.uint64)
        keys[part] = (cells ^ (cells >> np.uint64(32))) @ factors
    keys = _scrambled(keys)
    order = np.argsort(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[:n])
    if len(starts) < n:
        # Copies of a row have one key; without a number for each they lie together.
        copy = np.arange(n) - np.repeat(starts, np.diff(np.append(starts, n)))
        keys = _scrambled(keys + _scrambled(copy.astype(np.uint64)))
        order = order[np.argsort(keys)]
    return order


def _scrambled(keys):
    """Return integers of 64 bits in which each bit depends on all bits of the keys."""
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(factor)
    return keys ^ (keys >> np.uint64(31))


def sample_with_ends(rows, columns, order, size):
    """Return numbers of random rows that contain the ends of each column.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Rows without missing cells.
    columns : ndarray of int
        Columns of which a row with the minimum and one with the maximum are included.
    order : ndarray of int of shape (n,)
        The result of :func:`random_order`.
    size : int
        Number of random rows. If there are at most twice as many, all are returned.

    Returns
    -------
    numbers : ndarray of int
    """
    n = len(order)
    if n <= 2 * size:
        return order
    place, chosen = np.empty(n, int), [np.arange(size)]
    place[order] = np.arange(n)
    for ends, of_first in zip(ends_of(rows), ends_of(rows[order[:size]]), strict=True):
        # An end that the first rows do not have is in few rows.
        left = columns[of_first[columns] != ends[columns]]
        if not len(left):
            continue
        first = np.full(len(left), n)
        for part in slices(n, 1 + BLOCK_CELLS // len(left)):
            is_end = some_columns(rows[part], left) == ends[left]
            some = np.flatnonzero(is_end.any(axis=1))
            row, column = np.nonzero(is_end[some])
            np.minimum.at(first, column, place[part][some[row]])
        chosen.append(first)
    return order[np.unique(np.concatenate(chosen))]


# --- batches ----------------------------------------------------------------------


def whole_steps(size, step):
    """``size`` rounded up to whole steps."""
    return -(-size // step) * step


def cut(batches, size):
    """Tuples of arrays, cut anew to ``size`` rows; the last may have fewer.

    Holds no more than what is left of the last tuple while it waits for the next.
    """
    left = None
    for arrays in batches:
        if left is not None:
            arrays = tuple(map(np.concatenate, zip(left, arrays, strict=True)))
        n = len(arrays[0])
        end = n - n % size
        for row in range(0, end, size):
            yield tuple(a[row : row + size] for a in arrays)
        left = tuple(a[end:].copy() for a in arrays) if end < n else None
        del arrays
    if left is not None:
        yield left
