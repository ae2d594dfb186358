"""Functions of a log-linear model on the cells, and the cells that it can fill."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack


def model_design(poset, mask):
    """The constant and the indicators of what is above each free element, sparse.

    A row a cell.
    """
    # The bottom is below all: its column is the constant.
    elements = np.r_[poset.bottom, np.flatnonzero(mask)]
    return csr_array(poset.columns(elements).synthesis(np.eye(len(elements))).T)


def unfillable_cells(poset, mask, cells, empty, q, tol):
    """Mask (n, D) of those of some cells that a model cannot fill.

    In question are those alone that are empty, and so light in a fit ``q`` that an
    iteration may be converging to 0 there.
    """
    suspicious = cells & empty & (q < max(1e-8, 100 * tol))
    unfillable = np.zeros(q.shape, bool)
    rows = np.flatnonzero(suspicious.any(axis=1))
    design = model_design(poset, mask) if len(rows) else None
    for row in rows:
        observed = np.flatnonzero(cells[row])
        masks = empty[row, observed], suspicious[row, observed]
        unfillable[row, observed] = ~_possible_cells(design[observed], *masks)
    return unfillable


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
