"""Rows in, rows out: checks with their messages, the simplex, blocks, warnings."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from ._callbacks import begin_blocks, block_done
from ._threads import one_blas_thread
from .geometry import TensorPoset

# Cells in one block of rows: a mebibyte of float64, so that the temporaries of a
# block stay in cache. Blocks depend on the shape of the data alone, so that results
# are the same bytes for every n_jobs and every working_memory.
_BLOCK_CELLS = 2**17
# Decoding by functions of single modes works on arrays far smaller than the rows: more
# of these at once, so that threads spend less time in between.
_LIGHT_BLOCK_CELLS = 2**18
# Rows of a general poset share large matrices, which are read once a block.
_POSET_ROWS = 64
# Workers that share no memory get several blocks at once: enough tasks for each of
# them to even out, none of them larger than 64 MiB.
_TASKS_PER_WORKER, _BLOCKS_PER_TASK = 4, 64


def check_tensors(estimator, X, *, reset):
    """Validate non-negative rows of any shape; remember or compare that shape.

    Returns a float array of shape ``(n, *shape)``; sets ``input_shape_`` on reset.
    Later rows may reach down to ``-offset``: decoded rows do, where a cell of the
    distribution holds less than the offset, and must encode to their code again.
    """
    X = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        allow_nd=True,
        ensure_all_finite=False,
    )
    check_cells(estimator, X, reset=reset)
    return X


def check_cells(estimator, X, *, reset):
    """What :func:`check_tensors` asks of the values and shape of an array."""
    check_row_shape(estimator, X, reset=reset)
    check_finite(X)
    lowest = 0 if reset else -estimator.offset
    check_non_negative(X, type(estimator).__name__, lowest)


def check_row_shape(estimator, X, *, reset):
    """Keep the shape of one row in ``input_shape_``, or compare with it."""
    if reset:
        estimator.input_shape_ = X.shape[1:]
    elif X.shape[1:] != estimator.input_shape_:
        raise ValueError(
            f"X has rows of shape {X.shape[1:]}, but {type(estimator).__name__} was "
            f"fitted on rows of shape {estimator.input_shape_}."
        )


def check_finite(X, name="X"):
    """Refuse NaN and infinity, and say where the first one is."""
    values = X.data if issparse(X) else X
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    if np.all(np.isfinite(values)):
        return
    X = X.toarray() if issparse(X) else X
    where = _first(~np.isfinite(X))
    what = "NaN" if np.isnan(X[where]) else "infinity"
    raise ValueError(
        f"Input {name} contains {what}; the first is at {_place(where)}. Impute or "
        "drop such values before this step."
    )


def check_non_negative(X, whom, lowest=0):
    """Refuse entries below ``lowest``, and say where the first one is."""
    if X.min(initial=0) >= lowest:
        return
    where = _first(X < lowest)
    raise ValueError(
        f"Negative values in data passed to {whom}; the first is {X[where]:g} at "
        f"{_place(where)}. Cells are read as unnormalised probabilities: shift or "
        "scale the data to be non-negative first, for instance with MinMaxScaler."
    )


def as_cells(X, poset):
    """A copy of rows as float64 of shape (n, D).

    A bottom that stands for no feature holds the mean of the row.
    """
    # In one memory layout, since the rounding of sums depends on it.
    cells = X.reshape(len(X), -1).astype(np.float64, order="C")
    if poset.added_bottom:
        cells = np.column_stack([cells.mean(axis=1), cells])
    return cells


def to_simplex(X, offset, poset, first_row=0):
    """Distributions ``(x + offset) / mass`` on a poset, and the masses, in float64.

    ``first_row`` is the number of the first row, for messages.
    """
    p = as_cells(X, poset)
    p += offset
    with np.errstate(over="ignore"):
        mass = p.sum(axis=1)
    if not np.all(np.isfinite(mass)):
        row = first_row + int(np.argmin(np.isfinite(mass)))
        raise ValueError(
            f"The sum of row {row} overflows; divide X by a constant first."
        )
    if offset == 0:
        _check_positive(p, mass, first_row)
    p /= mass[:, None]
    return p.reshape(-1, *poset.shape), mass


def from_simplex(q, mass, offset, poset, row_shape, dtype):
    """Rows ``q * mass - offset``: the exact inverse of :func:`to_simplex`.

    A bottom that stands for no feature is dropped. It would be filled in again with
    the mean, 1 / D of the mass, so the features get the rest: a row keeps its sum.
    """
    q = q.reshape(len(q), -1)
    if poset.added_bottom:
        q = q[:, 1:] / q[:, 1:].sum(axis=1, keepdims=True)
        mass = mass * (1 - 1 / poset.n_elements)
    rows = q * mass[:, None]
    rows -= offset
    rows = rows.astype(dtype, copy=False)
    # Rounding must not make a cell zero again that was nearly empty.
    lowest = np.nextafter(dtype.type(-offset), dtype.type(0))
    return np.maximum(rows, lowest, out=rows).reshape(-1, *row_shape)


def map_blocks(function, *arrays, poset, n_jobs=None, step=None):
    """``function(first_row, *blocks)`` over blocks of rows; results joined by rows.

    A block has ``step`` rows, by default as :func:`rows_per_block` says.
    ``function`` returns a tuple of arrays with one entry a row; for workers in other
    processes or on other machines it must be picklable. Results are written as they
    come, so that no second copy of the output is held. Blocks are small, so BLAS is
    kept to one thread: ``n_jobs`` is what uses more cores.
    """
    n = len(arrays[0])
    step = rows_per_block(poset) if step is None else step
    n_blocks = count_blocks(n, step)
    backend, _ = get_active_backend(prefer="threads")
    parallel = Parallel(
        n_jobs=n_jobs,
        prefer="threads",
        # All at once where joblib cannot do better, as with "multiprocessing".
        return_as="generator" if backend.supports_return_generator else "list",
    )
    blocks_per_task = 1
    if not getattr(backend, "supports_sharedmem", False):
        n_tasks = _TASKS_PER_WORKER * effective_n_jobs(n_jobs)
        blocks_per_task = min(-(-n_blocks // n_tasks), _BLOCKS_PER_TASK)
        function = _Remote(function)
    begin_blocks(n_blocks)
    joined, done = None, 0
    with one_blas_thread():
        results = parallel(
            delayed(_run_task)(function, start, step, *(a[task] for a in arrays))
            for start, task in _slices(n, step * blocks_per_task)
        )
        for blocks in results:
            for parts in blocks:
                if joined is None:
                    joined = [np.empty((n, *p.shape[1:]), p.dtype) for p in parts]
                for whole, part in zip(joined, parts, strict=True):
                    whole[done : done + len(part)] = part
                done += len(parts[0])
                block_done()
    return joined


def map_threads(function, tasks, n_jobs=None):
    """``[function(task) for task in tasks]``, by ``n_jobs`` threads.

    A single one leaves BLAS the threads that it has.
    """
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1:
        return [function(task) for task in tasks]
    # Tasks are a few milliseconds each; joblib asks every ten whether one is done.
    with one_blas_thread(), ThreadPoolExecutor(n_threads) as threads:
        return list(threads.map(function, tasks))


def rows_per_block(poset, decoded_through=None):
    """Rows that are worked on at once: to encode, or to decode through a set.

    ``decoded_through`` is the mask of the elements of the local sub-manifold.
    """
    if not isinstance(poset, TensorPoset):
        return max(_POSET_ROWS, _BLOCK_CELLS // poset.n_elements)
    light = decoded_through is not None and not np.any(poset.order[decoded_through] > 1)
    cells = _LIGHT_BLOCK_CELLS if light else _BLOCK_CELLS
    return max(1, cells // poset.n_elements)


def count_blocks(n_rows, step):
    """Blocks that :func:`map_blocks` makes of so many rows."""
    return int(-(-n_rows // step))


def _slices(n, step):
    return ((start, slice(start, start + step)) for start in range(0, n, step))


def _run_task(function, first_row, step, *arrays):
    """Results of the blocks of one task, as if each were a task of its own."""
    return [
        # In one memory layout, whichever way the rows came to this worker.
        function(first_row + start, *(np.ascontiguousarray(a[block]) for a in arrays))
        for start, block in _slices(len(arrays[0]), step)
    ]


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


def warn_unconverged(whom, residual, tol, max_iter):
    """Say once, in figures, that some projections did not reach ``tol``."""
    left = residual > tol
    if not left.any():
        return
    warnings.warn(
        f"{whom}: {left.sum()} of {left.size} projections did not converge in "
        f"max_iter={max_iter} Newton steps: the worst residual max|eta_q - eta*| is "
        f"{residual.max():.1e} > tol={tol:g}. Increase max_iter or tol, or increase "
        "offset: cells that are nearly empty are what makes a projection hard.",
        ConvergenceWarning,
        stacklevel=3,
    )


def clip_neighbors(n_neighbors, n_rows, whose="the training data"):
    """``n_neighbors``, at most ``n_rows``; a warning says so."""
    if n_neighbors <= n_rows:
        return n_neighbors
    warnings.warn(
        f"{n_neighbors} neighbours were asked for, but {whose} has {n_rows} "
        f"row{'s' * (n_rows != 1)}: using {n_rows}.",
        UserWarning,
        stacklevel=3,
    )
    return n_rows


def check_codes(codes, n_params, whom):
    """Validate codes of shape (n, n_params) for decoding."""
    codes = check_array(
        codes,
        dtype=[np.float64, np.float32],
        ensure_2d=False,
        allow_nd=True,
        ensure_all_finite=False,
        input_name="codes",
    )
    if codes.ndim != 2 or codes.shape[1] != n_params:
        raise ValueError(
            f"Codes for {whom} have shape (n_rows, {n_params}); got {codes.shape}."
        )
    check_finite(codes, "codes")
    return codes


def _check_positive(p, mass, first_row):
    if np.any(mass == 0):
        row = first_row + int(np.flatnonzero(mass == 0)[0])
        raise ValueError(
            f"Row {row} is all zero and offset=0: it has no distribution. Drop the row "
            "or set offset > 0."
        )
    if not np.all(p > 0):
        where = _first(~(p > 0))
        raise ValueError(
            f"Cell {where[1]} of row {first_row + where[0]} is zero and "
            "offset=0: its log is infinite. Set offset > 0."
        )


def _first(mask):
    return tuple(int(i) for i in np.unravel_index(np.argmax(mask), mask.shape))


def _place(where):
    if len(where) == 2:
        return f"row {where[0]}, column {where[1]}"
    return f"row {where[0]}, cell {tuple(where[1:])}"
