"""Cells that stay zero: those that are zero in all parents of a row."""

import numpy as np

# Rounds in which rows get zeros and equations in turn, before a last correction.
_ROUNDS = 4


def zero_in_all(zeros, parents):
    """Where the mask (n, D) of training rows holds in all parents (n_new, k)."""
    where = zeros[parents[:, 0]]
    for parent in parents.T[1:]:
        where &= zeros[parent]
    return where


def with_zeros(rows, zeros):
    """Rows with zeros, none below zero; sums that are not either stay as they are."""
    sums = np.maximum(rows.sum(axis=1, keepdims=True), 0)
    rows = np.where(zeros, 0, np.maximum(rows, 0))
    left = rows.sum(axis=1, keepdims=True)
    return rows * np.divide(sums, left, out=np.ones_like(left), where=left > 0)


def keep_both(keep, rows, zeros, system, lower, upper, whole):
    """Rows that keep a system of constraints, and zeros.

    The projection on the system moves zeros a little, each time less. In the end the
    other cells take over what is missing, in proportion to their size; columns that are
    ``whole`` do not.
    """
    for _ in range(_ROUNDS):
        rows[zeros] = 0
        kept = keep(rows.copy(), lower=lower, upper=upper)
        if not kept[zeros].any():
            return kept
        rows = kept
    rows[zeros] = 0
    weights = np.abs(rows)
    weights[:, whole] = 0
    a = system.coefficients
    values = rows @ a.T
    missing = np.clip(values, lower, upper) - values
    grams = np.einsum("ij,nj,kj->nik", a, weights, a)
    steps = np.einsum("nik,nk->ni", np.linalg.pinv(grams, hermitian=True), missing)
    return rows + weights * (steps @ a)
