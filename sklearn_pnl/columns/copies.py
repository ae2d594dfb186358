"""Detect new rows that are copies of training rows."""

import numpy as np
from scipy.sparse import issparse

from .._utils.arrays import BLOCK_CELLS, dense, slices
from .._utils.warnings import warn_user

# Number of new rows that are compared, and the smallest number with a warning.
MOST_ROWS, LEAST_ROWS = 1000, 10
# Largest share of copies without a warning.
MOST_COPIES = 0.5


def warn_copies(batch, context, labels):
    """Warn if more than half of the new rows equal a training row.

    Parameters
    ----------
    batch : Batch
        New rows. The first 1,000 rows are compared with all training rows.
    context : TrainingContext
        The training rows, and the name of the estimator.
    labels : ndarray of int of shape (m, c) or None
        Category codes of the training rows.
    """
    batch = batch.take_rows(slice(MOST_ROWS))
    n, given = batch.values.shape[0], None if labels is None else labels[batch.donors]
    if n < LEAST_ROWS or _has_new_values(batch.take_rows(slice(50)), context):
        return
    known = _keys(context.rows, labels)
    share = np.isin(_keys(batch.values, given), known).mean()
    if share > MOST_COPIES:
        warn_user(
            f"{context.caller}: {share:.0%} of the new rows equal a training row. "
            "Copies come from binary columns, categories, repeated rows and equalities "
            "of rounded columns. A classifier needs no copies: use class_weight or "
            "sample_weight instead. For other rows, use columns with more values."
        )


def _has_new_values(batch, context):
    """Check whether most rows have a cell that differs from both of its parents.

    In a float column without a resolution, such a cell equals no training cell.
    """
    columns = context.relations.columns
    c = np.flatnonzero((columns.steps == 0) & ~columns.binary)
    values = dense(batch.values)[:, c]
    is_new = ~np.isnan(values)
    for parents in batch.parents.T:
        is_new &= values != dense(context.rows[parents])[:, c]
    return is_new.any(axis=1).mean() >= 1 - MOST_COPIES


def _keys(rows, labels):
    """Return an integer (n,) per row, equal for equal rows with equal categories."""
    n, step = rows.shape[0], max(1, BLOCK_CELLS // max(1, rows.shape[1]))
    parts = [_hashes(rows[block]) for block in slices(n, step)]
    keys = np.concatenate([np.empty(0, np.uint64), *parts])
    # Multiplication tells the hashes of categories from the hashes of numbers.
    return keys if labels is None else keys + np.uint64(3) * _hashes(labels)


def _hashes(rows):
    """Return the hash (n,) of each row (n, D); zeros of a row do not count."""
    rng = np.random.default_rng(0)
    factors = rng.integers(2**64, size=rows.shape[1], dtype=np.uint64) | np.uint64(1)
    cells = rows.data if issparse(rows) else rows
    # The sum with 0 turns -0 into 0.
    bits = (np.asarray(cells, np.float64) + 0.0).view(np.uint64)
    # Numbers with few digits differ in the upper bits only.
    bits ^= bits >> np.uint64(32)
    if not issparse(rows):
        return (bits * factors).sum(axis=1, dtype=np.uint64)
    sums = np.zeros(len(bits) + 1, np.uint64)
    np.cumsum(bits * factors[rows.indices], out=sums[1:])
    return np.diff(sums[rows.indptr])
