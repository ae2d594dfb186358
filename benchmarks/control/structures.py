"""Tables whose equations are known, and random otherwise."""

import numpy as np


def _sums(members, n_features):
    """Coefficients of ``total - parts`` from pairs of a total and its parts."""
    a = np.zeros((len(members), n_features))
    for k, (total, parts) in enumerate(members):
        a[k, total], a[k, parts] = 1, -1
    return a, np.zeros(len(members))


def totals(rng, n):
    """Four totals of two to six parts in units of their own, and other features."""
    columns, members = [], []
    for k in rng.integers(2, 7, size=4):
        parts = rng.gamma(rng.uniform(0.5, 3), size=(n, k)) * 10 ** rng.uniform(-3, 3)
        first = len(columns)
        members.append((first, np.arange(first + 1, first + 1 + k)))
        columns += [parts.sum(axis=1), *parts.T]
    X = np.column_stack([*columns, rng.normal(size=(n, 3))])
    return X, *_sums(members, X.shape[1])


def subtotals(rng, n):
    """A total of three to five subtotals of two to five parts."""
    groups = [
        rng.gamma(1.0, size=(n, k)) * rng.uniform(0.5, 5)
        for k in rng.integers(2, 6, size=rng.integers(3, 6))
    ]
    sums = np.column_stack([parts.sum(axis=1) for parts in groups])
    X = np.column_stack([sums.sum(axis=1), sums, *groups])
    members, first = [(0, np.arange(1, 1 + len(groups)))], 1 + len(groups)
    for k, parts in enumerate(groups):
        members.append((1 + k, np.arange(first, first + parts.shape[1])))
        first += parts.shape[1]
    return X, *_sums(members, X.shape[1])


def compositions(rng, n):
    """Shares of 1, percentages of 100 and hours of 24."""
    lengths, wholes = rng.integers(3, 7, size=3), np.array([1.0, 100.0, 24.0])
    parts = [
        whole * rng.dirichlet(np.full(k, rng.uniform(0.5, 3)), n)
        for k, whole in zip(lengths, wholes, strict=True)
    ]
    return np.hstack(parts), np.repeat(np.eye(3), lengths, axis=1), wholes


def one_hot(rng, n):
    """Three categories with numbers that depend on them."""
    lengths = rng.integers(3, 7, size=3)
    groups = [np.eye(k)[rng.integers(k, size=n)] for k in lengths]
    numbers = np.hstack(groups) @ rng.normal(size=(sum(lengths), 4))
    X = np.column_stack([*groups, numbers + rng.normal(size=(n, 4))])
    a = np.hstack([np.repeat(np.eye(3), lengths, axis=1), np.zeros((3, 4))])
    return X, a, np.ones(3)


def accounts(rng, n):
    """Openings and flows that make closings, ledger by ledger, and their totals."""
    flows = rng.gamma(1.0, size=(n, 3, 3))
    opening, credit, debit = flows.transpose(1, 0, 2)
    debit = debit * 0.5 * opening / (1 + debit)
    closing = opening + credit - debit
    four = np.stack([opening, credit, debit, closing], axis=2)
    X = np.column_stack([four.reshape(n, 12), four.sum(axis=1)])
    balance, total = np.zeros((3, 16)), np.zeros((4, 16))
    for k in range(3):
        balance[k, 4 * k : 4 * k + 4] = 1, 1, -1, -1
        total[np.arange(4), 4 * k + np.arange(4)] = -1
    total[np.arange(4), 12 + np.arange(4)] = 1
    a = np.vstack([balance, total])
    return X, a, np.zeros(7)


STRUCTURES = {
    "totals": totals,
    "nested subtotals": subtotals,
    "compositions": compositions,
    "one-hot groups": one_hot,
    "balances and totals": accounts,
}


def structured(name, seed, n):
    """A table with its columns in random order, its coefficients and values."""
    rng = np.random.default_rng([seed, list(STRUCTURES).index(name)])
    X, a, b = STRUCTURES[name](rng, n)
    order = rng.permutation(X.shape[1])
    return X[:, order], a[:, order], b


def violation(rows, X, a, b):
    """Largest violation, as a share of the range of its largest term in ``X``."""
    scale = (np.abs(a) * np.ptp(X, axis=0)).max(axis=1)
    return float((np.abs(rows @ a.T - b) / scale).max())
