"""Rows of arrays: a few at a time, some of them, or put together again."""

import numpy as np

# Cells in one block of rows: a mebibyte of float64, so that the temporaries of a
# block stay in cache. Blocks depend on the shape of the data alone, so that results
# are the same bytes for every n_jobs and every working_memory.
BLOCK_CELLS = 2**17


def slices(n, step):
    """Of n rows, up to ``step`` at a time."""
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def row_sums(x):
    """Sums of the rows of a matrix; NumPy's own are slow for short rows."""
    return x @ np.ones(x.shape[1], x.dtype)


def some_rows(array, rows):
    """Take ascending rows of an array; all rows without a copy."""
    return array if len(rows) == len(array) else array.take(rows, axis=0)


def some_columns(array, columns):
    """Take columns of an array in some order; all as they are without a copy."""
    if np.array_equal(columns, np.arange(array.shape[1])):
        return array
    return array.take(columns, axis=1)


def joined(pieces):
    """One answer from pairs of row numbers and the answers for them."""
    if len(pieces) == 1:
        return pieces[0][1]
    order = np.argsort(np.concatenate([rows for rows, _ in pieces]))
    answers = zip(*(answer for _, answer in pieces), strict=True)
    return tuple(np.concatenate(parts)[order] for parts in answers)


def patterns_of(table):
    """Row numbers of each distinct row of a table, and that row."""
    first = table[0] if len(table) else np.ones(table.shape[1], bool)
    if (table == first).all():
        return [(np.arange(len(table)), first)]
    patterns, of_row = np.unique(table, axis=0, return_inverse=True)
    of_row = of_row.reshape(-1)
    return [(np.flatnonzero(of_row == k), row) for k, row in enumerate(patterns)]
