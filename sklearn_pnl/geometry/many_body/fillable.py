"""Functions of a log-linear model on the cells, and the cells that it can fill."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack


def level_functions(poset, elements):
    """The constant and the indicators of what is above each element, (D, 1 + m)."""
    # The bottom is below all: its column is the constant.
    elements = np.r_[poset.bottom, elements]
    return poset.columns(elements).synthesis(np.eye(len(elements))).T


def model_design(poset, mask):
    """:func:`level_functions` of a model, sparse: a row a cell."""
    return csr_array(level_functions(poset, np.flatnonzero(mask)))


def fillable_cells(poset, mask, cells, empty, light):
    """Mask (n, D) of the cells that a model can fill.

    Only those that are empty, and ``light`` in a fit, are in question.
    """
    suspicious, left = cells & empty & light, cells.copy()
    rows = np.flatnonzero(suspicious.any(axis=1))
    design = model_design(poset, mask) if len(rows) else None
    for row in rows:
        observed = np.flatnonzero(cells[row])
        masks = empty[row, observed], suspicious[row, observed]
        left[row, observed] = _possible_cells(design[observed], *masks)
    return left


def nearly_empty(q, tol):
    """Cells so light that an iteration may be converging to 0 there."""
    return q < max(1e-8, 100 * tol)


def _possible_cells(design, empty, suspicious):
    """Cells positive in some distribution with the expectations of the data.

    The most cells that a change of the counts can fill, which keeps all expectations
    and may take away from cells that are not empty alone: a linear programme, with a
    share of at most 1 of each cell to be filled counted.
    """
    cells = np.flatnonzero(suspicious)
    n, k = len(empty), len(cells)
    cost = np.concatenate([np.zeros(n), -np.ones(k)])
    # Each change is a share up to 1, which the cost counts, plus an unlimited rest.
    system = vstack([design, design[cells]]).T
    bounds = [(0 if e else None, None) for e in empty] + [(0, 1)] * k
    solution = linprog(
        cost, A_eq=system, b_eq=np.zeros(design.shape[1]), bounds=bounds, method="highs"
    )
    if solution.status != 0:
        raise RuntimeError(
            f"Which of {k} empty cells the model can fill could not be found out: "
            f"{solution.message}"
        )
    possible = np.ones(n, bool)
    possible[cells] = solution.x[n:] > 0.5
    return possible
