"""Arrays that are moved to devices, and cells of matrices."""

import pickle

import numpy as np
import pytest
from _namespaces import NAMESPACES

from sklearn_pnl._utils import arrays


@pytest.mark.parametrize("make", NAMESPACES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_array_is_moved_once_for_each_dtype(make, dtype):
    values = np.arange(6.0).reshape(2, 3)
    movable, x = arrays.MovableArray(values), make(np.ones(2, dtype))
    assert movable.on_device_of(np.ones(2, dtype)) is values
    moved = movable.on_device_of(x)
    assert type(moved) is type(x) and moved.dtype == x.dtype
    np.testing.assert_array_equal(arrays.to_host(moved), values)
    assert movable.on_device_of(2 * x) is moved
    other = make(np.ones(2, np.float64 if dtype == np.float32 else np.float32))
    assert movable.on_device_of(other).dtype == other.dtype


def test_copies_on_devices_are_not_pickled():
    movable = arrays.MovableArray(np.arange(3.0))
    size = len(pickle.dumps(movable))
    (make, *_) = (parameter.values[0] for parameter in NAMESPACES)
    movable.on_device_of(make(np.ones(2)))
    assert len(pickle.dumps(movable)) == size
    loaded = pickle.loads(pickle.dumps(movable))
    np.testing.assert_array_equal(loaded.on_device_of(np.ones(1)), np.arange(3.0))


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_cells_and_columns_equal_those_of_plain_indices(layout):
    rng = np.random.default_rng(0)
    x = layout(rng.normal(size=(7, 5)))
    rows, columns = rng.integers(7, size=(4, 3)), np.array([4, 0, 2])
    np.testing.assert_array_equal(arrays.take_cells(x, rows, columns), x[rows, columns])
    expected, new = x.copy(), rng.normal(size=(7, 3))
    expected[:, columns] = new
    arrays.assign_columns(x, columns, new)
    np.testing.assert_array_equal(x, expected)
