"""Feasible sets of arrays, for tests of their parts."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from sklearn_pnl.columns.relations import ColumnRelations
from sklearn_pnl.control import LinearConstraints
from sklearn_pnl.control.feasible_set import FeasibleSet


def linear(a, lower, upper, names=None):
    a = np.atleast_2d(np.asarray(a, dtype=float))
    names = names or tuple("abcdefghij"[: a.shape[1]])
    ends = (np.asarray(end, dtype=float) for end in (lower, upper))
    ends = (np.full(len(a), end) if end.ndim == 0 else end for end in ends)
    return LinearConstraints(a, *ends, names)


def types(d, precision=1e-16, names="abcdefghij"):
    """Return the types of d numeric columns."""
    precision = np.array(np.broadcast_to(precision, d), dtype=float)
    ends = np.full(d, -np.inf), np.full(d, np.inf)
    names = tuple(names[:d])
    return SimpleNamespace(feature_names=names, precision=precision, type_bounds=ends)


def set_of(X, *, low=-np.inf, high=np.inf, steps=0.0, precision=1e-16,
                 equalities=None, inequalities=(), constraints=None):  # fmt: skip
    table = types(X.shape[1], precision)
    steps = np.array(np.broadcast_to(steps, X.shape[1]), dtype=float)
    nothing = LinearConstraints.empty(table.feature_names)
    relations = ColumnRelations.plain(table, X, steps, equalities or nothing, low, high)
    inequalities = np.array(inequalities, int).reshape(-1, 2)
    relations = replace(
        relations, inequalities=inequalities, distances=np.zeros(len(inequalities))
    )
    return FeasibleSet(relations, constraints or nothing)
