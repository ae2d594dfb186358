"""Resizing and joining batches keeps all rows in their order."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, issparse

from sklearn_pnl.columns.repair import Batch
from sklearn_pnl.methods.batches import joined, resized


def batches(sizes, sparse=False):
    """Return batches of the rows 0, 1, 2, ... with the given sizes."""
    start = 0
    for size in sizes:
        rows = np.arange(start, start + size)
        values = np.column_stack([rows, -rows]).astype(float)
        yield Batch(
            csr_array(values) if sparse else values,
            parents=np.column_stack([rows, rows + 1]),
            weights=np.full((size, 2), 0.5),
            donors=rows,
            indices=rows,
        )
        start += size


@pytest.mark.parametrize("sizes", [[7], [3, 3, 1], [1, 5, 2, 2], [4, 0, 3]])
@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_resized_batches_have_the_requested_size(sizes, size):
    n, found = sum(sizes), [*resized(batches(sizes), size)]
    lengths = [len(batch.donors) for batch in found]
    assert lengths == [size] * (n // size) + [n % size] * (n % size > 0)
    assert_array_equal(np.concatenate([b.donors for b in found]), np.arange(n))
    assert_array_equal(np.vstack([b.values for b in found])[:, 0], np.arange(n))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [7, 9])
def test_joined_batches_contain_all_rows_that_are_left(sparse, n):
    # Infeasible rows may have been left out, so that n is an upper bound.
    batch = joined(batches([3, 3, 1], sparse), n)
    assert issparse(batch.values) == sparse
    values = batch.values.toarray() if sparse else batch.values
    assert_array_equal(values[:, 0], np.arange(7))
    assert_array_equal(batch.indices, np.arange(7))
    assert_array_equal(batch.parents, next(batches([7])).parents)
