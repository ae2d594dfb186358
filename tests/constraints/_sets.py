"""Feasible sets of arrays, for tests of their parts."""

import numpy as np

from sklearn_pnl.constraints import LinearConstraints
from sklearn_pnl.constraints.feasible_set import FeasibleSet


def linear(a, lower, upper, names=None):
    a = np.atleast_2d(np.asarray(a, dtype=float))
    names = names or tuple("abcdefghij"[: a.shape[1]])
    ends = (np.asarray(end, dtype=float) for end in (lower, upper))
    ends = (np.full(len(a), end) if end.ndim == 0 else end for end in ends)
    return LinearConstraints(a, *ends, names)


def feasible_set(X, *, low=-np.inf, high=np.inf, steps=0.0, precision=1e-16,
                 equalities=None, orders=(), constraints=None):  # fmt: skip
    d = X.shape[1]
    names = tuple("abcdefghij"[:d])
    each = (np.array(np.broadcast_to(x, d), dtype=float)
            for x in (low, high, np.nanmin(X, axis=0), np.nanmax(X, axis=0)
                      - np.nanmin(X, axis=0), steps, precision))  # fmt: skip
    none = LinearConstraints.empty(names)
    orders = np.array(orders, int).reshape(-1, 2)
    constraints = constraints or none
    return FeasibleSet(names, *each, equalities or none, constraints, orders)
