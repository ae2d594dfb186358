"""Resize and join batches of new rows."""

import numpy as np
from scipy.sparse import issparse, vstack

from ..columns.repair import Batch


def resized(batches, size):
    """Yield the rows of batches in batches of ``size`` rows."""
    left = None
    for batch in batches:
        if left is not None:
            batch = _stacked([left, batch])
        n = batch.values.shape[0]
        end = n - n % size
        for row in range(0, end, size):
            yield batch.take_rows(slice(row, row + size))
        left = batch.take_rows(slice(end, n)) if end < n else None
    if left is not None:
        yield left


def _stacked(batches):
    """Stack several batches."""
    parts = zip(*batches, strict=True)
    return Batch(*(None if p[0] is None else np.concatenate(p) for p in parts))


def joined(batches, n):
    """Join batches to one batch of at most n rows, freeing each copied batch."""
    joined, done, sparse = None, 0, []
    for batch in batches:
        if batch.values.shape[0] == n:
            return batch
        if issparse(batch.values):
            sparse.append(batch.values)
            batch = batch._replace(values=np.empty((len(batch.donors), 0)))
        if joined is None:
            joined = Batch(
                *(
                    None if part is None else np.empty((n, *part.shape[1:]), part.dtype)
                    for part in batch
                )
            )
        rows = slice(done, done + len(batch.donors))
        for part, new in zip(joined, batch, strict=True):
            if part is not None:
                part[rows] = new
        done = rows.stop
    batch = joined.take_rows(slice(done))
    return batch._replace(values=vstack(sparse, "csr")) if sparse else batch
