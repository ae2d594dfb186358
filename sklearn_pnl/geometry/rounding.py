"""Margins as linear equations: what cannot be met, and tables of whole numbers."""

from math import prod

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, hstack, identity, vstack

# Largest linear programmes that are tried, in cells.
_LARGEST_PROGRAMME = 2**18
# Whole numbers in floating point are taken as such up to this.
_WHOLE = 1e-6
# What SciPy's programmes call it.
_INFEASIBLE = 2
_NONE = (
    "no table of whole numbers next to its cells has the margins. Rake it first; "
    "three margins and more may have none."
)


def margin_rows(shape, mode_sets):
    """Indicators (m, D), sparse, of the cells behind each cell of the margins."""
    cells = np.indices(shape).reshape(len(shape), -1)
    n_cells, parts = prod(shape), []
    for modes in mode_sets:
        lengths = tuple(shape[k] for k in modes)
        margin = np.zeros(n_cells, np.intp)
        for k in modes:
            margin = margin * shape[k] + cells[k]
        entries = (np.ones(n_cells), (margin, np.arange(n_cells)))
        parts.append(csr_array(entries, shape=(prod(lengths), n_cells)))
    return vstack(parts, format="csr")


def nearest_margins(table, mode_sets, wanted):
    """What the nearest table with the zeros of ``table`` misses of the margins.

    Least sum of absolute differences, a linear programme; 0 if the margins can be met.

    Returns
    -------
    list of ndarray or None
        ``wanted - margin`` by mode set; None for a table that is too large.
    """
    filled = np.flatnonzero(table.reshape(-1) > 0)
    if len(filled) > _LARGEST_PROGRAMME:
        return None
    rows = margin_rows(table.shape, mode_sets)[:, filled]
    right = np.concatenate(wanted)
    m, scale = len(right), max(1e-300, max(map(np.max, wanted)))
    matrix = hstack([rows, identity(m), -identity(m)], format="csr")
    cost = np.concatenate([np.zeros(len(filled)), np.ones(2 * m)])
    found = linprog(cost, A_eq=matrix, b_eq=right / scale, method="highs")
    if not found.success:
        return None
    missed = scale * (right / scale - rows @ found.x[: len(filled)])
    return np.split(missed, np.cumsum([len(w) for w in wanted])[:-1])


def nearest_whole(table, mode_sets, wanted, time_limit):
    """Whole numbers next to the cells of a table, with whole margins; nearest of all.

    Least sum of squares among the tables whose cells are those of ``table`` rounded up
    or down. The cells that go up solve a linear programme in whole numbers. Two
    margins are a transport problem: it always has a solution, and no branching is
    needed (Bacharach 1966; Cox 1987). Three margins and more may have none; what is
    nearest may take long to prove, and the nearest found in ``time_limit`` is taken.

    Raises
    ------
    ValueError
        If there is no such table, none was found, or the table is too large.
    """
    cells = table.reshape(-1)
    low = np.floor(cells + _WHOLE)
    part = cells - low
    free = np.flatnonzero(part > _WHOLE)
    if len(free) > _LARGEST_PROGRAMME:
        raise ValueError(
            f"A table with {len(free)} cells that are no whole numbers is too large to "
            f"be rounded; the limit is {_LARGEST_PROGRAMME}."
        )
    rows = margin_rows(table.shape, mode_sets)
    missing = np.round(np.concatenate(wanted) - rows @ low)
    if not len(free):
        if missing.any():
            raise ValueError(_NONE)
        return low.reshape(table.shape)
    low[free] += cells_up(
        1 - 2 * part[free], rows[:, free].tocsc(), missing, time_limit
    )
    return low.reshape(table.shape)


def cells_up(cost, matrix, missing, time_limit):
    """Which cells go up: the cheapest found in time, else any that will do."""
    # SciPy before 1.15 takes no other integers here.
    matrix.indices, matrix.indptr = (
        index.astype(np.intc) for index in (matrix.indices, matrix.indptr)
    )
    for objective in (cost, np.zeros_like(cost)):
        found = milp(
            objective,
            constraints=LinearConstraint(matrix, missing, missing),
            bounds=Bounds(0, 1),
            integrality=np.ones(len(cost)),
            options={"time_limit": time_limit},
        )
        if found.x is not None:
            return np.round(found.x)
        if found.status == _INFEASIBLE:
            raise ValueError(_NONE)
    raise ValueError(
        "no table of whole numbers next to its cells was found in "
        f"time_limit={time_limit:g} seconds; there may be none."
    )
