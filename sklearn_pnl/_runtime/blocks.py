"""Work on blocks of rows, by threads or workers that share no memory; batches cut."""

from contextlib import closing

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from .threads import one_blas_thread
from .validation import unheard
from .workspace import slices, workspace

# Workers that share no memory get several blocks at once: enough tasks for each of
# them to even out, none of them larger than 64 MiB.
_TASKS_PER_WORKER, _BLOCKS_PER_TASK = 4, 64
# Cells that one pass goes over at once.
_LONG = 2**10


def map_blocks(function, *arrays, step, n_jobs=None, into=None):
    """``function(*blocks)`` over blocks of ``step`` rows; results joined by rows.

    ``function`` returns a tuple of arrays with one entry a row; for workers in other
    processes or on other machines it must be picklable. Results are written as they
    come, so that no second copy of the output is held; the first of them over ``into``,
    which may be what came in, if it has their shape and type. Blocks are small, so BLAS
    is kept to one thread: ``n_jobs`` is what uses more cores.
    """
    n = len(arrays[0])
    joined, done = None, 0
    with (
        one_blas_thread(),
        workspace(),
        closing(_results(function, arrays, n, step, n_jobs)) as results,
    ):
        for parts in results:
            if joined is None:
                joined = [np.empty((n, *p.shape[1:]), p.dtype) for p in parts]
                if into is not None and into.dtype == joined[0].dtype:
                    joined[0] = into if into.shape == joined[0].shape else joined[0]
            for whole, part in zip(joined, parts, strict=True):
                whole[done : done + len(part)] = part
            done += len(parts[0])
    return joined


def _results(function, arrays, n, step, n_jobs):
    """What ``function`` makes of each block, in order.

    To be closed by who may leave it early, in the thread that it was begun in.
    """
    shared = shares_memory()
    # To start threads takes ten milliseconds: not for a block that others wait for.
    if shared and (n <= step or effective_n_jobs(n_jobs) == 1):
        yield from _run_task(function, step, 0, *arrays)
        return
    blocks_per_task = 1
    if not shared:
        n_tasks = _TASKS_PER_WORKER * effective_n_jobs(n_jobs)
        n_blocks = -(-n // step)
        blocks_per_task = min(-(-n_blocks // n_tasks), _BLOCKS_PER_TASK)
        function = _Remote(function)
    tasks = (
        (function, step, task.start, *(a[task] for a in arrays))
        for task in slices(n, step * blocks_per_task)
    )
    backend, _ = get_active_backend(prefer="threads")
    # All at once where joblib cannot do better: with "multiprocessing".
    return_as = "generator" if backend.supports_return_generator else "list"
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)
    results = parallel(delayed(_whole_task)(*task) for task in tasks)
    try:
        for blocks in results:
            yield from blocks
    except GeneratorExit:
        # An error made an end, and is what there is to tell: not what is left over.
        with unheard():
            getattr(results, "close", list)()
        raise


def shares_memory():
    """Whether those at work share the memory of this process."""
    backend, _ = get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False)


def _run_task(function, step, start, *arrays):
    """Results of the blocks of one task, as if each were a task of its own.

    An error with a ``row`` counts it within the block; here it gets its number among
    all rows.
    """
    for block in slices(len(arrays[0]), step):
        # In one memory layout, whichever way the rows came to this worker.
        rows = [np.ascontiguousarray(a[block]) for a in arrays]
        try:
            found = function(*rows)
        except ValueError as error:
            if hasattr(error, "row"):
                error.row += start + block.start
            raise
        yield found


def _whole_task(function, step, start, *arrays):
    with workspace():
        return list(_run_task(function, step, start, *arrays))


class _Remote:
    """A function for workers that share no memory.

    The "dask" backend sends arguments to the workers once, not with every task, if they
    say that they are large; what a partial says of itself leaves out the training rows
    that it carries. And the limit on BLAS here is not one over there.
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
    n, d = rows.shape
    # Several rows as one: passes over short rows take up to eight times as long.
    side = max(1, min(_LONG // max(d, 1), n)) if rows.flags.c_contiguous else 1
    whole = n // side * side
    long = rows[:whole].reshape(n // side, side * d)

    def reduced(end):
        first = end.reduce(long, axis=0).reshape(side, d)
        return end.reduce(np.concatenate([first, rows[whole:]]), axis=0)

    return reduced(np.minimum), reduced(np.maximum)


def whole_steps(size, step):
    """``size`` rounded up to whole steps."""
    return -(-size // step) * step


def cut(batches, size):
    """Tuples of arrays, cut anew to ``size`` rows; the last may have fewer.

    Holds no more than what is left of the last tuple while it waits for the next.
    """
    left = None
    for arrays in batches:
        start = 0
        if left is not None:
            start = size - len(left[0])
            heads = (a[:start] for a in arrays)
            left = tuple(map(np.concatenate, zip(left, heads, strict=True)))
            if len(left[0]) < size:
                continue
            yield left
        n = len(arrays[0])
        end = n - (n - start) % size
        for row in range(start, end, size):
            yield tuple(a[row : row + size] for a in arrays)
        left = tuple(a[end:].copy() for a in arrays) if end < n else None
        del arrays
    if left is not None:
        yield left
