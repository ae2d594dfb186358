"""Functions on arrays of any namespace of the array API standard.

Arrays can be arrays of NumPy, PyTorch, CuPy and other libraries on any device. Results
stay on the device, in the precision of the arrays. Row indices are always NumPy arrays,
because control flow depends on them. A function is in this module if NumPy and the
standard differ, or if NumPy has a faster function.
"""

from functools import lru_cache, wraps
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils._array_api import _convert_to_numpy

compat: Any
try:
    from sklearn.externals import array_api_compat as compat
except ImportError:  # scikit-learn 1.6: all arrays are converted to NumPy arrays
    compat = None

# Number of cells in a block of rows. A block of float64 has one mebibyte, so that its
# temporaries fit into the cache. Blocks depend only on the shape of the data, so that
# results are the same bytes for every n_jobs and every working_memory.
BLOCK_CELLS = 2**17
# Factor for the rows of a block on a device; temporaries need some gigabytes.
DEVICE_BLOCKS = 256


def with_errstate(**settings):
    """Decorate a function so that each call has its own ``np.errstate``.

    An ``np.errstate`` as decorator stores its state in one object, which threads would
    share with NumPy 1.
    """

    def decorate(function):
        @wraps(function)
        def decorated(*args, **kwargs):
            with np.errstate(**settings):
                return function(*args, **kwargs)

        return decorated

    return decorate


# --- namespaces and devices ---------------------------------------------------------


def is_foreign(x):
    """Return whether an array belongs to a supported namespace other than NumPy."""
    if isinstance(x, np.ndarray | np.generic | list | tuple | float | int):
        return False
    return compat is not None and (
        compat.is_torch_array(x)
        or compat.is_cupy_array(x)
        # Arrays of JAX and dask are not writable, and are converted to NumPy arrays.
        or "array_api_strict" in type(x).__module__
    )


def namespace(x):
    """Return the module with the functions of an array."""
    return np if isinstance(x, np.ndarray) else compat.array_namespace(x)


def like(array, x):
    """Convert a NumPy array to the namespace and the device of ``x``."""
    if isinstance(x, np.ndarray):
        return array
    return namespace(x).asarray(array, device=compat.device(x))


def floats_like(values, x):
    """Convert values to the dtype, namespace and device of ``x``."""
    if isinstance(x, np.ndarray):
        return np.asarray(values, x.dtype)
    return _on_device(values, namespace(x), x.dtype, compat.device(x))


def constant(x, make, *args):
    """Return the NumPy array ``make(*args)`` with the dtype and device of ``x``.

    The array is moved to a device only once.
    """
    if isinstance(x, np.ndarray):
        return make(*args).astype(x.dtype, copy=False)
    return _moved(make, args, namespace(x), x.dtype, compat.device(x))


@lru_cache(maxsize=256)
def _moved(make, args, xp, dtype, device):
    # The result of `make` can be read-only.
    return _on_device(np.array(make(*args)), xp, dtype, device)


class MovableArray:
    """A NumPy array of floats, and its copies on devices.

    The array is moved to a device at the first use there. The copies are deleted
    together with this object, and are not pickled.
    """

    def __init__(self, array):
        self._array, self._copies = array, {}

    def on_device_of(self, x):
        """Return the array in the namespace, on the device and in the dtype of ``x``.

        If ``x`` is a NumPy array, the dtype is not changed.
        """
        if isinstance(x, np.ndarray):
            return self._array
        place = x.dtype, compat.device(x)
        if place not in self._copies:
            self._copies[place] = floats_like(self._array, x)
        return self._copies[place]

    def __reduce__(self):
        return MovableArray, (self._array,)


def _on_device(values, xp, dtype, device):
    # A device without double precision cannot convert float64 to float32.
    kind = np.float32 if xp.finfo(dtype).bits == 32 else np.float64
    return xp.asarray(np.asarray(values, kind), dtype=dtype, device=device)


def to_host(x):
    """Convert an array to a NumPy array."""
    if not is_foreign(x):
        return np.asarray(x)
    return _convert_to_numpy(x, namespace(x))


def place_of(x):
    """Describe the namespace and the device of an array for messages."""
    if not is_foreign(x):
        return "of NumPy"
    return f"of {type(x).__module__.split('.')[0]} on {compat.device(x)}"


def is_on_host(x):
    """Return whether an array is in the memory of the processor."""
    return isinstance(x, np.ndarray) or "cpu" in str(compat.device(x)).lower()


def widest(x):
    """Return the widest float dtype on the device of ``x``; float32 on Apple GPUs."""
    if isinstance(x, np.ndarray):
        return np.float64
    return namespace(x).float32 if _is_single(x) else namespace(x).float64


def _is_single(x):
    """Return whether the device of ``x`` has no double precision."""
    return "mps" in str(compat.device(x))


def rounding_of(x):
    """Return the spacing of floats at 1 in the dtype of ``x``."""
    return float(namespace(x).finfo(x.dtype).eps)


def cast(x, dtype):
    """Convert to another dtype, without a copy if the dtype is the same."""
    if isinstance(x, np.ndarray):
        return x.astype(dtype, copy=False)
    return namespace(x).astype(x, dtype, copy=False)


def filled(value, shape, x):
    """Return an array of one value with the dtype and device of ``x``."""
    if isinstance(x, np.ndarray):
        return np.full(shape, value, x.dtype)
    return namespace(x).full(shape, value, dtype=x.dtype, device=compat.device(x))


def concat(parts, axis=0):
    """Concatenate arrays along an axis."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis=axis)
    return namespace(parts[0]).concat(parts, axis=axis)


# --- numbers --------------------------------------------------------------------------


def row_sums(x):
    """Return the sum of each row; the sums of NumPy are slow for short rows."""
    if isinstance(x, np.ndarray):
        return x @ np.ones(x.shape[1], x.dtype)
    return namespace(x).sum(x, axis=1)


def row_dots(x, y):
    """Return the inner products of the rows of two matrices."""
    if isinstance(x, np.ndarray):
        return np.einsum("ij,ij->i", x, y)
    # For inner products of rows, PyTorch computes a matrix product per pair of rows.
    return namespace(x).sum(x * y, axis=1)


def at_least(x, bound):
    """Return the elementwise maximum of an array and a bound."""
    if isinstance(x, np.ndarray | np.generic):
        return np.maximum(x, bound)
    return namespace(x).where(x < bound, bound, x)


def at_most(x, bound):
    """Return the elementwise minimum of an array and a bound."""
    if isinstance(x, np.ndarray | np.generic):
        return np.minimum(x, bound)
    xp = namespace(x)
    bound = min(bound, float(xp.finfo(x.dtype).max))
    return xp.where(x > bound, bound, x)


def exp_over(x):
    """Return ``exp(x)``, which may overwrite ``x``."""
    if isinstance(x, np.ndarray):
        return np.exp(x, out=x)
    return namespace(x).exp(x)


def log_over(x):
    """Return ``log(x)``, which may overwrite ``x``."""
    return np.log(x, out=x) if isinstance(x, np.ndarray) else namespace(x).log(x)


def times_over(x, y, out):
    """Return ``x * y``, which may overwrite ``out``."""
    return np.multiply(x, y, out=out) if isinstance(x, np.ndarray) else x * y


def largest(x):
    """Return ``max |x|`` of each row, 0 for empty rows. ``x`` can be overwritten."""
    if isinstance(x, np.ndarray):
        x = np.abs(x, out=x)
        if x.shape[1] <= 5:
            # NumPy reduces short rows much more slowly than the columns of a transpose.
            return np.ascontiguousarray(x.T).max(axis=0, initial=0.0)
        return x.max(axis=1, initial=0.0)
    xp = namespace(x)
    return xp.max(xp.abs(x), axis=1) if x.shape[1] else filled(0.0, x.shape[0], x)


# --- rows and columns -----------------------------------------------------------------


def slices(n, step):
    """Return slices of n rows, with at most ``step`` rows each."""
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def reshaped(x, shape):
    """Reshape an array; the method of NumPy takes half the time of its function."""
    if isinstance(x, np.ndarray):
        return x.reshape(shape)
    return namespace(x).reshape(x, shape)


def dense(rows):
    """Return dense or sparse rows (n, D) as a dense array."""
    return rows.toarray(order="C") if issparse(rows) else rows


def take(x, numbers, axis=0):
    """Take rows or columns by their indices, a NumPy array."""
    if isinstance(x, np.ndarray):
        return x.take(numbers, axis=axis)
    if issparse(x):
        return x[numbers] if axis == 0 else x[:, numbers]
    return namespace(x).take(x, like(numbers, x), axis=axis)


def some_rows(array, rows):
    """Take ascending rows of an array; return the array if all rows are taken."""
    return array if len(rows) == array.shape[0] else take(array, rows)


def nonzero_cells(mask):
    """Return the indices of the nonzero cells of an array, for each axis.

    If few cells are nonzero, ``np.flatnonzero`` is many times faster than
    ``np.nonzero`` of an array with several axes.
    """
    return np.unravel_index(np.flatnonzero(mask), mask.shape)


def some_columns(array, columns):
    """Take columns of an array; return the array if all columns are in order."""
    if np.array_equal(columns, np.arange(array.shape[1])):
        return array
    return take(array, columns, axis=1)


def take_cells(array, rows, columns):
    """Return the cells ``array[rows, columns]`` of a matrix of NumPy.

    Indices of a flat array are read faster than pairs of indices.
    """
    if not array.flags.c_contiguous:
        return array[rows, columns]
    return array.reshape(-1).take(rows * array.shape[1] + columns)


def assign_columns(array, columns, values):
    """Assign values (n, c) to columns of a matrix of NumPy.

    ``array[:, columns] = values`` takes four times as long.
    """
    if not array.flags.c_contiguous:
        array[:, columns] = values
        return
    starts = array.shape[1] * np.arange(len(array))[:, None]
    array.reshape(-1)[starts + columns] = values


def spread(x, columns, size):
    """Return rows of length ``size`` with ``x`` in some columns and 0 elsewhere."""
    if isinstance(x, np.ndarray):
        rows = np.zeros((len(x), size), x.dtype)
        rows[:, columns] = x
        return rows
    places = np.full(size, len(columns))
    places[columns] = np.arange(len(columns))
    return take(concat([x, filled(0.0, (x.shape[0], 1), x)], axis=1), places, axis=1)


def joined(pieces):
    """Combine pairs of row indices and results into the result for all rows."""
    if len(pieces) == 1:
        return pieces[0][1]
    order = np.argsort(np.concatenate([rows for rows, _ in pieces]))
    answers = zip(*(answer for _, answer in pieces), strict=True)
    return tuple(take(concat(parts), order) for parts in answers)


def replaced(arrays, rows, parts):
    """Replace the values of some rows, in ascending order, in all arrays."""
    n = arrays[0].shape[0]
    if len(rows) in (0, n):
        return parts if len(rows) else arrays
    rest = np.delete(np.arange(n), rows)
    return joined([(rows, parts), (rest, tuple(take(array, rest) for array in arrays))])


def patterns_of(table):
    """Return pairs of row indices and row, for each distinct row of a table."""
    first = table[0] if len(table) else np.ones(table.shape[1], bool)
    if (table == first).all():
        return [(np.arange(len(table)), first)]
    patterns, of_row = np.unique(table, axis=0, return_inverse=True)
    of_row = of_row.reshape(-1)
    return [(np.flatnonzero(of_row == k), row) for k, row in enumerate(patterns)]
