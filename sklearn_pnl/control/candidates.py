"""Candidates for equations of few rows: copies, balances, sums of neighbouring columns.

All of them hold between one number a feature, its code: what is equal there is tried.
"""

import numpy as np

# Features of a balance; most features for the search of so many.
MOST_IN_BALANCE, _FEW_FEATURES = 4, 300


def balances(code, varying, tol):
    """Two, three and four features with sum 0, signs 1 and -1, by their codes."""
    own, d = code[varying], len(varying)
    noise = 10 * tol * np.abs(own).max(initial=0.0)
    both_signs = np.concatenate([own, -own])

    def less(k):
        return varying[k % d], -1.0 if k < d else 1.0

    for p, q in _equal(own, both_signs, noise):
        yield _equation(len(code), (varying[p], 1.0), less(q))
    if d > _FEW_FEATURES:
        return
    i, j = np.triu_indices(d, 1)
    pairs = np.concatenate([own[i] + own[j], own[i] - own[j]])

    def pair(p, sign=1.0):
        k, second = p % len(i), sign if p < len(i) else -sign
        return (varying[i[k]], sign), (varying[j[k]], second)

    for p, q in _equal(pairs, both_signs, noise):
        yield _equation(len(code), *pair(p), less(q))
    order = np.argsort(np.abs(pairs), kind="stable")
    for k in np.flatnonzero(np.diff(np.abs(pairs)[order]) <= noise):
        p, q = order[k : k + 2]
        sign = -1.0 if pairs[p] * pairs[q] > 0 else 1.0
        yield _equation(len(code), *pair(p), *pair(q, sign))


def sums(code, varying, tol):
    """Sums of neighbouring columns that are constant, or another feature.

    Longest first: a total of all columns rather than what follows from it.
    """
    until = np.concatenate([[0.0], np.cumsum(code)])
    noise = 10 * tol * max(np.abs(code).max(), np.abs(until).max())
    first, last = np.triu_indices(len(code) + 1, 2)
    order = np.argsort(first - last, kind="stable")
    first, last = first[order], last[order]
    singles, every = np.concatenate([code[varying], [0.0]]), np.arange(len(code))
    varies = np.isin(every, varying)
    for p, q in _equal(until[last] - until[first], singles, noise):
        equation = 1.0 * (varies & (every >= first[p]) & (every < last[p]))
        if q < len(varying):
            equation[varying[q]] -= 1.0
        yield equation


def _equal(left, right, noise):
    """Pairs of numbers of entries of both that agree within the noise."""
    order = np.argsort(right, kind="stable")
    first = np.searchsorted(right[order], left - noise)
    last = np.searchsorted(right[order], left + noise, side="right")
    for p in np.flatnonzero(last > first):
        for q in order[first[p] : last[p]]:
            yield p, q


def _equation(n_features, *terms):
    """Coefficients of pairs of feature and weight."""
    features, weights = zip(*terms, strict=True)
    return np.bincount(features, weights, n_features)
