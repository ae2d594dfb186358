"""Apply functions to blocks of rows, choose random rows, and resize batches.

Threads process the blocks, or workers of a joblib backend without shared memory.
"""

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
from .progress import tracked
from .threads import one_blas_thread


def map_blocks(function, *arrays, step, task, n_jobs=None):
    """Apply ``function(*blocks)`` to blocks of ``step`` rows, and combine the results.

    ``function`` returns a tuple of arrays with one entry per row. The function must be
    picklable if workers are in other processes or on other machines. Each result is
    copied into the output as soon as it is available, so that the output is stored
    once. BLAS uses one thread, because blocks are small; ``n_jobs`` uses more cores.
    ``task`` describes the work in :func:`progress_bar`.
    """
    if is_foreign(arrays[0]):
        return _on_device(function, arrays, step * DEVICE_BLOCKS, task)
    n, joined, done = len(arrays[0]), None, 0
    with one_blas_thread():
        results = _results(function, arrays, n, step, n_jobs)
        for parts in tracked(results, -(-n // step), task):
            if joined is None:
                joined = [np.empty((n, *p.shape[1:]), p.dtype) for p in parts]
            for array, part in zip(joined, parts, strict=True):
                array[done : done + len(part)] = part
            done += len(parts[0])
    return joined


def _on_device(function, arrays, step, task):
    """Apply a function to blocks of arrays on a device, one block at a time."""
    n = arrays[0].shape[0]
    results = (
        _of_block(function, b.start, *(a[b, ...] for a in arrays))
        for b in gen_batches(n, step)
    )
    results = tracked(results, -(-n // step), task)
    return [concat(parts) for parts in zip(*results, strict=True)]


def _results(function, arrays, n, step, n_jobs):
    """Return the results of ``function`` for the blocks, in order."""
    shared = shares_memory()
    blocks = ((b.start, *(a[b] for a in arrays)) for b in gen_batches(n, step))
    # Starting threads takes 10 ms, which is longer than the work on one block.
    if shared and (n <= step or effective_n_jobs(n_jobs) == 1):
        return (_of_block(function, *block) for block in blocks)
    function = function if shared else _Remote(function)
    backend, _ = get_active_backend(prefer="threads")
    # The "multiprocessing" backend of joblib returns no generator, only a list.
    return_as = "generator" if backend.supports_return_generator else "list"
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)
    return parallel(delayed(_of_block)(function, *block) for block in blocks)


def shares_memory():
    """Return whether workers of the active joblib backend share memory."""
    backend, _ = get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False)


def _of_block(function, start, *arrays):
    """Return the results of one block; add ``start`` to the ``row`` of an error."""
    # Rounding depends on the memory layout. All workers use the same layout.
    if not is_foreign(arrays[0]):
        arrays = map(np.ascontiguousarray, arrays)
    try:
        return function(*arrays)
    except ValueError as error:
        if hasattr(error, "row"):
            error.row += start
        raise


class _Remote:
    """A function for workers that do not share memory.

    The "dask" backend sends large arguments to each worker only once. The backend calls
    ``__sizeof__``, which excludes the arrays of a partial unless it is overridden. BLAS
    is also limited to one thread in the worker.
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
    """Return a size close to ``step`` that divides rows evenly for 2 or 4 workers."""
    if n <= step:
        return step
    return -(-n // (4 * max(1, round(n / (4 * step)))))


def column_bounds(rows):
    """Return the minimum and the maximum (D,) of each column of rows (n, D)."""
    if is_foreign(rows):
        return namespace(rows).min(rows, axis=0), namespace(rows).max(rows, axis=0)
    n, d = rows.shape
    # Several short rows are reduced as one long row, which is up to 8 times as fast.
    side = max(1, min(1024 // max(d, 1), n)) if rows.flags.c_contiguous else 1
    n_square = n // side * side
    long, bounds = rows[:n_square].reshape(n // side, side * d), []
    for ufunc in (np.minimum, np.maximum):
        first = ufunc.reduce(long, axis=0).reshape(side, d)
        bounds.append(ufunc.reduce(np.concatenate([first, rows[n_square:]]), axis=0))
    return tuple(bounds)


def observed_bounds(rows):
    """Return the minimum and the maximum of each column in float64, without NaN.

    ``rows`` are a NumPy array or a sparse matrix. For columns without values, 0 is
    returned.
    """
    if issparse(rows):
        low, high = (x.toarray().ravel() for x in (rows.nanmin(0), rows.nanmax(0)))
    else:
        low, high = column_bounds(rows)
        if np.isnan(low).any():
            low, high = np.fmin.reduce(rows), np.fmax.reduce(rows)
    return np.nan_to_num(low.astype(np.float64)), np.nan_to_num(high.astype(np.float64))


# --- random rows ------------------------------------------------------------------


def random_order(rows):
    """Return the indices (n,) of rows (n, D) in a random order, with a fixed seed.

    The order is computed from the values of the rows. Therefore, the first m rows are
    the same rows for every sorting of a table, and a period of the sorting has no
    effect. The computation uses integers, so that all machines return the same order.
    """
    n, d = rows.shape
    factors = np.random.default_rng(0).integers(1, 2**64, d, np.uint64) | np.uint64(1)
    keys = np.empty(n, np.uint64)
    for part in slices(n, 1 + BLOCK_CELLS // max(d, 1)):
        cells = np.ascontiguousarray(rows[part], np.float64).view(np.uint64)
        # NumPy has no fast matrix product of integers.
        keys[part] = np.einsum("nd,d->n", cells ^ (cells >> np.uint64(32)), factors)
    keys = _scrambled(keys)
    order = np.argsort(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[:n])
    if len(starts) < n:
        # Copies of a row have the same key. A count of the copies separates the keys.
        copy = np.arange(n) - np.repeat(starts, np.diff(np.append(starts, n)))
        keys = _scrambled(keys + _scrambled(copy.astype(np.uint64)))
        order = order[np.argsort(keys)]
    return order


def _scrambled(keys):
    """Return integers of 64 bits in which each bit depends on all bits of the keys."""
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(factor)
    return keys ^ (keys >> np.uint64(31))


def sample_with_bounds(rows, columns, order, size):
    """Return indices of random rows that include the extremes of each column.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Rows without missing cells.
    columns : ndarray of int
        For these columns, a row with the minimum and a row with the maximum are added.
    order : ndarray of int of shape (n,)
        The result of :func:`random_order`.
    size : int
        Number of random rows. If n is at most ``2 * size``, all rows are returned.

    Returns
    -------
    numbers : ndarray of int
        Row indices.
    """
    n = len(order)
    if n <= 2 * size:
        return order
    place, chosen = np.empty(n, int), [np.arange(size)]
    place[order] = np.arange(n)
    for bounds, of_first in zip(
        column_bounds(rows), column_bounds(rows[order[:size]]), strict=True
    ):
        # A bound that the first rows do not attain is in few rows.
        left = columns[of_first[columns] != bounds[columns]]
        if not len(left):
            continue
        first = np.full(len(left), n)
        for part in slices(n, 1 + BLOCK_CELLS // len(left)):
            at_bound = some_columns(rows[part], left) == bounds[left]
            some = np.flatnonzero(at_bound.any(axis=1))
            row, column = np.nonzero(at_bound[some])
            np.minimum.at(first, column, place[part][some[row]])
        chosen.append(first)
    return order[np.unique(np.concatenate(chosen))]


# --- batches ----------------------------------------------------------------------


def multiple_of_step(size, step):
    """Round ``size`` up to a multiple of ``step``."""
    return -(-size // step) * step


def cut(batches, size):
    """Yield tuples of arrays with ``size`` rows; the last tuple can have fewer rows.

    Between two batches, only the rows that were not yielded are stored.
    """
    left = None
    for arrays in batches:
        if left is not None:
            arrays = tuple(map(concat, zip(left, arrays, strict=True)))
        n = arrays[0].shape[0]
        end = n - n % size
        for row in range(0, end, size):
            yield tuple(a[row : row + size, ...] for a in arrays)
        left = tuple(concat([a[end:, ...]]) for a in arrays) if end < n else None
        del arrays
    if left is not None:
        yield left
