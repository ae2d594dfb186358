"""Memory of temporaries: kept while nobody uses it, and never shared."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl._runtime import workspace as _workspace
from sklearn_pnl._runtime.workspace import empty, take, workspace, zeros

SHAPE, SIZE = (250, 100), 200_000


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("hold", [lambda a: a, np.ravel, lambda a: a[3:].T[::2]])
def test_memory_is_used_again_once_no_view_of_it_is_left(hold):
    with workspace():
        first = empty(SHAPE, np.float64)
        where, held = address(first), hold(first)
        del first
        second = empty(SHAPE, np.float64)
        assert not np.shares_memory(held, second)
        del held
        assert address(empty(SHAPE, np.float64)) == where
        assert address(second) != where


def test_arrays_of_other_shapes_and_types_take_what_fits():
    with workspace():
        where = address(empty(SHAPE, np.float64))
        assert address(empty((SIZE // 4 - 1,), np.float32)) == where
        # Much smaller ones leave it to others, larger ones cannot have it.
        assert address(empty((SIZE // 5,), np.uint8)) != where
        assert address(empty((SIZE + 1,), np.uint8)) != where


def test_arrays_outlive_their_workspace():
    with workspace():
        array = empty(SHAPE, np.float64)
        array[:] = 7
    with workspace():
        others = [empty(SHAPE, np.float64) for _ in range(3)]
        for other in others:
            other[:] = 0
    assert_array_equal(array, 7.0)


def test_nothing_is_kept_outside_and_after_a_workspace():
    empty(SHAPE, np.float64)
    with workspace():
        array = empty(SHAPE, np.float64)
        with pytest.raises(ZeroDivisionError), workspace():
            1 / 0  # noqa: B018
        ((memory, _),) = _workspace._thread.kept
    assert _workspace._thread.kept is None
    users = sys.getrefcount(memory)
    del array
    assert sys.getrefcount(memory) < users
    # Besides its name here and the argument there is no one left.
    assert sys.getrefcount(memory) == 2


def test_threads_do_not_share_memory():
    def work(value):
        with workspace():
            for _ in range(200):
                array = empty(SHAPE, np.float64)
                array[:] = value
                taken = take(array, np.arange(0, 250, 2), axis=0)
                del array
                if not (taken == value).all():
                    return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axis", [0, 1])
def test_zeros_and_rows_taken_are_those_of_numpy(order, axis):
    x = np.asarray(np.random.default_rng(0).normal(size=(200, 150)), order=order)
    indices = np.arange(149, -1, -1)
    with workspace():
        empty(x.shape, x.dtype)[:] = np.nan
        assert_array_equal(zeros(x.shape, x.dtype), np.zeros_like(x))
        assert_array_equal(take(x, indices, axis), np.take(x, indices, axis))


@pytest.mark.parametrize("order", [2, 3])
def test_codes_are_the_same_bytes_in_used_memory(order, monkeypatch):
    X = np.random.default_rng(0).gamma(0.5, size=(600, 4, 4, 4, 4))
    kept = ManyBodyProjector(order).fit(X).transform(X)
    monkeypatch.setattr(_workspace, "_SMALL", np.inf)
    assert ManyBodyProjector(order).fit(X).transform(X).tobytes() == kept.tobytes()


@pytest.mark.skipif(sys.platform != "linux", reason="the allocator is glibc's")
def test_pages_of_a_block_are_mapped_once():
    # With an allocator that gives all back at once, as in the workers of dask.
    code = """
import resource, numpy as np
from sklearn_pnl import ManyBodyProjector
X = np.random.default_rng(0).gamma(0.5, size=(2560, 8, 8, 8))
projector = ManyBodyProjector(2).fit(X[:1])
def pages(X):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    projector.transform(X)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
pages(X[:256])
one, ten = pages(X[:256]), pages(X)
block = 256 * 512 * 8 / resource.getpagesize()
print((ten - one) / 9 / block)
"""
    # In blocks: 45 of them for each, and 165 where all memory is asked for anew.
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert float(found.stdout) < 80
