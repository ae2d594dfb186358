"""Tables whose equations are known, for the tests of control."""

import numpy as np


def rows_of_sums(members, n_features):
    """Coefficients ``total - parts`` from dicts of a total to its parts."""
    a = np.zeros((len(members), n_features))
    for k, (total, parts) in enumerate(members.items()):
        a[k, total], a[k, parts] = 1, -1
    return a


def totals(rng, n):
    """Two or three totals of two to five parts each, and a feature on its own."""
    columns, members = [], {}
    for _ in range(rng.integers(2, 4)):
        parts = rng.gamma(2.0, size=(n, rng.integers(2, 6))) * 10 ** rng.uniform(-2, 2)
        first = len(columns)
        members[first] = list(range(first + 1, first + 1 + parts.shape[1]))
        columns += [parts.sum(axis=1), *parts.T]
    X = np.column_stack([*columns, rng.normal(size=n)])
    return X, rows_of_sums(members, X.shape[1]), np.zeros(len(members))


def subtotals(rng, n):
    """A total of subtotals, each of which has parts."""
    groups = [rng.gamma(1.0, size=(n, k)) for k in rng.integers(2, 5, size=3)]
    sums = np.column_stack([part.sum(axis=1) for part in groups])
    X = np.column_stack([sums.sum(axis=1), sums, *groups])
    members, first = {0: [1, 2, 3]}, 4
    for k, part in enumerate(groups):
        members[1 + k] = list(range(first, first + part.shape[1]))
        first += part.shape[1]
    return X, rows_of_sums(members, X.shape[1]), np.zeros(4)


def compositions(rng, n):
    """Shares that sum to 1 and percentages that sum to 100."""
    k, m = rng.integers(3, 6, size=2)
    X = np.hstack([rng.dirichlet(np.ones(k), n), 100 * rng.dirichlet(np.ones(m), n)])
    a = np.zeros((2, k + m))
    a[0, :k], a[1, k:] = 1, 1
    return X, a, np.array([1.0, 100.0])


def one_hot(rng, n):
    """Two categories, and numbers."""
    k, m = rng.integers(3, 6, size=2)
    groups = [np.eye(size)[rng.integers(size, size=n)] for size in (k, m)]
    X = np.column_stack([*groups, rng.normal(size=(n, 2))])
    a = np.zeros((2, X.shape[1]))
    a[0, :k], a[1, k : k + m] = 1, 1
    return X, a, np.ones(2)


def copies(rng, n):
    """A copy, the same in other units, a constant, and a balance that makes a sum."""
    free = rng.normal(size=(n, 3)) * [1, 50, 1e-3]
    X = np.column_stack(
        [
            free,
            free[:, 0],
            1.8 * free[:, 1] + 32,
            np.full(n, 7.0),
            free[:, :2].sum(axis=1),
        ]
    )
    a = np.zeros((4, 7))
    a[0, [0, 3]], a[1, [1, 4]], a[2, 5] = (1, -1), (-1.8, 1), 1
    a[3, [0, 1, 6]] = 1, 1, -1
    return X, a, np.array([0.0, 32.0, 7.0, 0.0])


TABLES = {f.__name__: f for f in (totals, subtotals, compositions, one_hot, copies)}


TABLES = {f.__name__: f for f in (totals, subtotals, compositions, one_hot, copies)}


def make(kind, seed, n=160):
    """A table with its columns in random order, and its equations."""
    rng = np.random.default_rng([seed, len(kind)])
    X, a, b = TABLES[kind](rng, n)
    order = rng.permutation(X.shape[1])
    return X[:, order], a[:, order], b


def worst(rows, X, a, b):
    """Largest violation, as a share of the range of the equation's largest term."""
    scale = (np.abs(a) * np.ptp(X, axis=0)).max(axis=1)
    scale = np.where(scale > 0, scale, np.abs(b))
    return (np.abs(np.asarray(rows) @ a.T - b) / scale).max()
