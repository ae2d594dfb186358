"""Arrays of any namespace of the array API standard; rows of them, some or joined.

Arrays are NumPy's, or PyTorch's, CuPy's and others' on any device: what is computed
from them stays there, in their precision. Numbers of rows are NumPy's always, since
they decide what is done next. Functions here differ between NumPy and the standard, or
are faster by what NumPy alone has.
"""

from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import issparse
from sklearn.utils._array_api import _convert_to_numpy

compat: Any
try:
    from sklearn.externals import array_api_compat as compat
except ImportError:  # scikit-learn 1.6 has none: arrays are read as NumPy's
    compat = None

# Cells in one block of rows: a mebibyte of float64, so that the temporaries of a
# block stay in cache. Blocks depend on the shape of the data alone, so that results
# are the same bytes for every n_jobs and every working_memory.
BLOCK_CELLS = 2**17
# On a device a block has as many times the rows: some gigabytes with temporaries.
DEVICE_BLOCKS = 256
# Arrays on devices, by the object that they are attributes of.
_kept: WeakKeyDictionary = WeakKeyDictionary()


# --- namespaces and devices ---------------------------------------------------------


def is_foreign(x):
    """Whether an array is of another namespace than NumPy, and stays there."""
    if isinstance(x, np.ndarray | np.generic | list | tuple | float | int):
        return False
    return compat is not None and (
        compat.is_torch_array(x)
        or compat.is_cupy_array(x)
        # JAX and dask cannot be written into; they are read as NumPy's.
        or "array_api_strict" in type(x).__module__
    )


def namespace(x):
    """The module with the functions of an array."""
    return np if isinstance(x, np.ndarray) else compat.array_namespace(x)


def like(array, x):
    """An array of NumPy in the namespace and on the device of ``x``."""
    if isinstance(x, np.ndarray):
        return array
    return namespace(x).asarray(array, device=compat.device(x))


def floats_like(values, x):
    """Numbers as floats of the type of ``x``, where it is."""
    if isinstance(x, np.ndarray):
        return np.asarray(values, x.dtype)
    return _on_device(values, namespace(x), x.dtype, compat.device(x))


def constant(x, make, *args):
    """``make(*args)``, an array of NumPy, where ``x`` is and in its type of floats.

    It is moved to a device once.
    """
    if isinstance(x, np.ndarray):
        return make(*args).astype(x.dtype, copy=False)
    return _moved(make, args, namespace(x), x.dtype, compat.device(x))


@lru_cache(maxsize=256)
def _moved(make, args, xp, dtype, device):
    # A copy, since what is made may not be written to.
    return _on_device(np.array(make(*args)), xp, dtype, device)


def kept(x, owner, name):
    """An attribute of an object, an array of NumPy or a list, where ``x`` is.

    It is moved to a device once, and leaves it with the object.
    """
    arrays = getattr(owner, name)
    if isinstance(x, np.ndarray):
        return arrays
    key, moved = (name, x.dtype, compat.device(x)), _kept.setdefault(owner, {})
    if key not in moved:
        several = arrays if isinstance(arrays, list) else [arrays]
        several = [floats_like(array, x) for array in several]
        moved[key] = several if isinstance(arrays, list) else several[0]
    return moved[key]


def _on_device(values, xp, dtype, device):
    # A device may lack double precision also on the way to single.
    kind = np.float32 if xp.finfo(dtype).bits == 32 else np.float64
    return xp.asarray(np.asarray(values, kind), dtype=dtype, device=device)


def to_host(x):
    """As an array of NumPy."""
    if not is_foreign(x):
        return np.asarray(x)
    return _convert_to_numpy(x, namespace(x))


def place_of(x):
    """Where an array is, in words."""
    if not is_foreign(x):
        return "of NumPy"
    return f"of {type(x).__module__.split('.')[0]} on {compat.device(x)}"


def is_on_host(x):
    """Whether the processor computes with an array, not a device beside it."""
    return isinstance(x, np.ndarray) or "cpu" in str(compat.device(x)).lower()


def widest(x):
    """The most precise type of floats where ``x`` is: Apple's GPUs have only single."""
    if isinstance(x, np.ndarray):
        return np.float64
    return namespace(x).float32 if _is_single(x) else namespace(x).float64


def _is_single(x):
    """Whether a device has no double precision."""
    return "mps" in str(compat.device(x))


def rounding_of(x):
    """The spacing of floats at 1, in the type of ``x``."""
    return float(namespace(x).finfo(x.dtype).eps)


def cast(x, dtype):
    """In another type; as it is without a copy."""
    if isinstance(x, np.ndarray):
        return x.astype(dtype, copy=False)
    return namespace(x).astype(x, dtype, copy=False)


def filled(value, shape, x):
    """An array of one number, where ``x`` is and of its type."""
    if isinstance(x, np.ndarray):
        return np.full(shape, value, x.dtype)
    return namespace(x).full(shape, value, dtype=x.dtype, device=compat.device(x))


def concat(parts, axis=0):
    """Joined along an axis."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis=axis)
    return namespace(parts[0]).concat(parts, axis=axis)


# --- numbers --------------------------------------------------------------------------


def row_sums(x):
    """Sums of the rows of a matrix; NumPy's own are slow for short rows."""
    if isinstance(x, np.ndarray):
        return x @ np.ones(x.shape[1], x.dtype)
    return namespace(x).sum(x, axis=1)


def row_dots(x, y):
    """Inner products of the rows of two matrices."""
    if isinstance(x, np.ndarray):
        return np.einsum("ij,ij->i", x, y)
    # PyTorch's function for it makes a product of matrices of each pair of rows.
    return namespace(x).sum(x * y, axis=1)


def at_least(x, bound):
    """Numbers, or the bound where they are less."""
    if isinstance(x, np.ndarray | np.generic):
        return np.maximum(x, bound)
    return namespace(x).where(x < bound, bound, x)


def at_most(x, bound):
    """Numbers, or the bound where they are more."""
    if isinstance(x, np.ndarray | np.generic):
        return np.minimum(x, bound)
    xp = namespace(x)
    bound = min(bound, float(xp.finfo(x.dtype).max))
    return xp.where(x > bound, bound, x)


def exp_over(x):
    """``exp(x)``, which may be written over ``x``."""
    if isinstance(x, np.ndarray):
        return np.exp(x, out=x)
    return namespace(x).exp(x)


def log_over(x):
    """``log(x)``, which may be written over ``x``."""
    return np.log(x, out=x) if isinstance(x, np.ndarray) else namespace(x).log(x)


def times_over(x, y, out):
    """``x * y``, which may be written over ``out``."""
    return np.multiply(x, y, out=out) if isinstance(x, np.ndarray) else x * y


def largest(x):
    """``max |x|`` of each row, 0 of rows without numbers; ``x`` may be written over."""
    if isinstance(x, np.ndarray):
        x = np.abs(x, out=x)
        if x.shape[1] <= 5:
            # NumPy takes far longer over short rows than over as few columns.
            return np.ascontiguousarray(x.T).max(axis=0, initial=0.0)
        return x.max(axis=1, initial=0.0)
    xp = namespace(x)
    return xp.max(xp.abs(x), axis=1) if x.shape[1] else filled(0.0, x.shape[0], x)


# --- rows and columns -----------------------------------------------------------------


def slices(n, step):
    """Of n rows, up to ``step`` at a time."""
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def reshaped(x, shape):
    """The same numbers in another shape; NumPy's method takes half of its function."""
    if isinstance(x, np.ndarray):
        return x.reshape(shape)
    return namespace(x).reshape(x, shape)


def dense(rows):
    """Rows (n, D), sparse or not, as a dense array."""
    return rows.toarray(order="C") if issparse(rows) else rows


def take(x, numbers, axis=0):
    """Rows or columns by their numbers, an array of NumPy."""
    if isinstance(x, np.ndarray):
        return x.take(numbers, axis=axis)
    if issparse(x):
        return x[numbers] if axis == 0 else x[:, numbers]
    return namespace(x).take(x, like(numbers, x), axis=axis)


def some_rows(array, rows):
    """Take ascending rows of an array; all rows without a copy."""
    return array if len(rows) == array.shape[0] else take(array, rows)


def some_columns(array, columns):
    """Take columns of an array in some order; all as they are without a copy."""
    if np.array_equal(columns, np.arange(array.shape[1])):
        return array
    return take(array, columns, axis=1)


def spread(x, columns, size):
    """Rows of length ``size`` with ``x`` in some columns, and 0 in the others."""
    if isinstance(x, np.ndarray):
        rows = np.zeros((len(x), size), x.dtype)
        rows[:, columns] = x
        return rows
    places = np.full(size, len(columns))
    places[columns] = np.arange(len(columns))
    return take(concat([x, filled(0.0, (x.shape[0], 1), x)], axis=1), places, axis=1)


def joined(pieces):
    """One answer from pairs of row numbers and the answers for them."""
    if len(pieces) == 1:
        return pieces[0][1]
    order = np.argsort(np.concatenate([rows for rows, _ in pieces]))
    answers = zip(*(answer for _, answer in pieces), strict=True)
    return tuple(take(concat(parts), order) for parts in answers)


def replaced(arrays, rows, parts):
    """Arrays with other values in some rows, ascending."""
    n = arrays[0].shape[0]
    if len(rows) in (0, n):
        return parts if len(rows) else arrays
    rest = np.delete(np.arange(n), rows)
    return joined([(rows, parts), (rest, tuple(take(array, rest) for array in arrays))])


def patterns_of(table):
    """Row numbers of each distinct row of a table, and that row."""
    first = table[0] if len(table) else np.ones(table.shape[1], bool)
    if (table == first).all():
        return [(np.arange(len(table)), first)]
    patterns, of_row = np.unique(table, axis=0, return_inverse=True)
    of_row = of_row.reshape(-1)
    return [(np.flatnonzero(of_row == k), row) for k, row in enumerate(patterns)]
