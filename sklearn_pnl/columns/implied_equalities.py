"""Equalities of rows with missing cells.

If several equalities contain a missing column, the other columns satisfy the
combinations of these equalities without the column. For example, ``total = a + b + c``
and ``subtotal = a + b`` imply ``total = subtotal + c`` if ``a`` is missing.
"""

from dataclasses import replace

import numpy as np

from .._utils.arrays import patterns_of
from .constraints import LinearConstraints
from .equalities import echelon_of


def implied_equalities(relations, gaps):
    """Return the equalities, then further equalities of rows with missing cells.

    Parameters
    ----------
    relations : ColumnRelations
    gaps : ndarray of bool of shape (n, D)
        Missing cells.

    Returns
    -------
    equalities : LinearConstraints
    applies : ndarray of bool of shape (n, k)
        The equalities of each row.
    """
    system, rows_of = relations.equalities, {}
    for rows, part in (([], relations), *parts_of(relations, gaps)):
        own = part.equalities
        # Equal arrays have equal bytes, except for the sign of 0.
        for a, value in zip(own.coefficients + 0.0, own.lower, strict=True):
            rows_of.setdefault((a.tobytes(), value), []).append(rows)
    applies = np.zeros((len(gaps), len(rows_of)), bool)
    for k, parts in enumerate(rows_of.values()):
        for rows in parts:
            applies[rows, k] = True
    a = np.array([np.frombuffer(a) for a, _ in rows_of]).reshape(-1, gaps.shape[1])
    values = np.array([value for _, value in rows_of])
    return LinearConstraints(a, values, values, system.feature_names), applies


def parts_of(relations, gaps):
    """Partition rows so that no equality of a part has a missing shared column.

    Parameters
    ----------
    relations : ColumnRelations
    gaps : ndarray of bool of shape (n, D)
        Missing cells.

    Yields
    ------
    rows : ndarray of int or slice
    part : ColumnRelations
        The relations of these rows.
    """
    used = relations.equalities.coefficients != 0
    shared = used.sum(axis=0) > 1
    lacks = gaps[:, shared].any(axis=1)
    if not lacks.any():
        yield slice(None), relations
        return
    linked = used[:, shared].any(axis=1)
    columns = np.flatnonzero(used[linked].any(axis=0))
    yield np.flatnonzero(~lacks), relations
    indices = np.flatnonzero(lacks)
    for which, pattern in patterns_of(gaps[np.ix_(indices, columns)]):
        yield indices[which], _without(relations, columns[pattern], linked)


def _without(relations, missing, linked):
    """Return relations with the equalities that follow without some columns.

    Only equalities of the mask ``linked`` (k,) contain the missing columns.
    """
    system, columns = relations.equalities, relations.columns
    ranges = columns.ranges if system.ranges is None else system.ranges
    spread = np.where(ranges > 0, ranges, 1.0)
    ranks = np.where(columns.binary, 2, np.where(columns.steps > 0, 1, 0))
    ranks[missing] = -1
    equations = echelon_of(system.select(linked), spread, ranks)
    kept = np.flatnonzero(~np.isin(equations.pivots, missing))
    a, values, pivots = (each[kept] for each in equations)
    others = system.select(~linked)
    found = LinearConstraints(a, values, values, system.feature_names)
    if len(relations.pivots):
        pivots = np.append(relations.pivots[~linked], pivots)
    return replace(relations, equalities=others.stack(found), pivots=pivots)
