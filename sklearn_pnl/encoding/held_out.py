"""Log-likelihood of held-out parts of rows, to compare the orders of a base.

A larger order always fits a row more closely. A tenth of each row is therefore held
out and predicted from the rest: a tenth of the counts, or, if the rows are no counts, a
tenth of the cells.
"""

from functools import partial

import numpy as np
from scipy.special import xlogy

from .._utils.arrays import to_host
from .._utils.blocks import even_step, map_blocks
from .._utils.validation import check_masses

# Number of parts. With two parts, half of the counts would be missing in each fit, and
# the choice would suit rows with half of the counts.
N_PARTS = 10
# Larger integers are not exact in double precision.
MOST_COUNTS = 2**53


def held_out_likelihood(codec, rows, n_jobs=None):
    """Compute the log-likelihoods (n,) of held-out parts of rows (n, D), in nats.

    NaN marks a missing cell. The seed of the random parts is constant, so that all
    orders are compared on the same parts. There are no warnings about convergence,
    because a prediction has a likelihood in any case.
    """
    rows = np.asarray(to_host(rows), np.float64)
    seen = ~np.isnan(rows)
    cells = rows[seen]
    is_count = (cells >= 0) & (cells < MOST_COUNTS) & (cells == np.floor(cells))
    divide, likelihood = _parts_of_cells, _of_cells
    encode = codec.encode_observed
    if is_count.all():
        divide, likelihood = _parts_of_counts, _of_counts
        encode = codec.encode if seen.all() else codec.encode_observed
    of_part = partial(_of_part, codec, encode, likelihood)
    settings = {"task": "score", "n_jobs": n_jobs}
    settings["step"] = even_step(len(rows), codec.encoded_at_once)
    return sum(map_blocks(of_part, *parts, **settings)[0] for parts in divide(rows))


def _of_part(codec, encode, likelihood, fitted, held_out):
    """Predict a part of rows by the projections of the other parts."""
    encoded = encode(fitted)
    check_masses(encoded.mass)
    q, _ = codec.points(codec.codes(encoded.coordinates))
    # An added bottom is no cell of the row.
    q = q[:, int(codec.poset.added_bottom) :]
    return (likelihood(q, held_out, encoded.mass, codec.offset),)


def _parts_of_counts(rows):
    """Yield pairs of the other parts and a part of the counts (binomial thinning)."""
    rng, left = np.random.default_rng(0), np.nan_to_num(rows).astype(np.int64)
    for k in range(N_PARTS, 0, -1):
        part = rng.binomial(left, 1 / k)
        left -= part
        yield rows - part, np.where(np.isnan(rows), np.nan, part)


def _parts_of_cells(rows):
    """Yield pairs of the other parts and a part of the cells.

    All rows have the same parts, since the solver groups rows by their missing cells.
    """
    part = np.random.default_rng(0).permutation(rows.shape[1]) % N_PARTS
    for k in range(N_PARTS):
        yield tuple(np.where(hidden, np.nan, rows) for hidden in (part == k, part != k))


def _of_counts(q, counts, mass, offset):
    """Compute multinomial log-likelihoods, without the multinomial coefficient."""
    is_seen = ~np.isnan(counts)
    q = np.where(is_seen, q, 0.0)
    q /= q.sum(axis=1, keepdims=True)
    log_q = np.log(q, out=q, where=is_seen)
    return np.where(is_seen, counts * log_q, 0.0).sum(axis=1)


def _of_cells(q, cells, mass, offset):
    """Compute Poisson log-likelihoods, without the terms that only cells determine."""
    mean = q * mass[:, None]
    return np.nansum(xlogy(cells + offset, mean) - mean, axis=1)
