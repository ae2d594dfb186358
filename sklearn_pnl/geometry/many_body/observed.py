"""Log-linear models on observed cells: functions, and the cells that they can fill."""

from __future__ import annotations

from functools import reduce

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from ..posets.elements import matched_mask
from .bases import MOST_FACTORED, Basis, ScaledBasis, ZetaBasis


class Design:
    """Orthonormal functions of a model, and the weight of each in a ridge."""

    def __init__(self, poset, matched, ordered=()):
        self.poset, self.matched = poset, matched_mask(poset, matched)
        self.n_functions = int(self.matched.sum())
        if not self.n_functions:
            raise ValueError("matched is empty: free at least one element.")
        self.family = poset.family(self.matched)
        ordered = checked_modes(poset, ordered)
        if self.family is not None:
            self.basis = ScaledBasis(poset.shape, self.family, ordered)
            weights = _cell_weights(poset.shape, ordered)
            self.weights = weights.reshape(-1)[np.flatnonzero(self.matched)]
        elif ordered:
            raise ValueError(
                "ordered_modes names modes of a tensor; the free elements are no "
                "family of interactions of one. Leave it out."
            )
        else:
            self.basis = ZetaBasis(poset, np.flatnonzero(self.matched))
            self.weights = np.full(self.n_functions, float(self.n_functions))

    def seen_by(self, pattern):
        """Functions that observed cells (D,) identify, and cells that they determine.

        Orthonormal on the observed cells: Hessians are near the identity. Combinations
        of them that vanish there are left out, so that no tilt holds any.
        """
        m, n_cells = self.n_functions, self.poset.n_elements
        if m > MOST_FACTORED or m * n_cells > 2**26:
            raise ValueError(
                f"Which cells can be estimated was not found out: {m} free elements on "
                f"{n_cells} cells are too many. Use a ridge, or a smaller order."
            )
        functions = self.basis.functions
        if not pattern.any():
            return _Functions(functions[:0]), pattern
        functions = functions - functions[:, pattern].mean(axis=1, keepdims=True)
        seen = functions[:, pattern]
        variances, directions = np.linalg.eigh(seen @ seen.T / pattern.sum())
        # Others have a mean square on the observed cells that is rounding.
        is_seen = variances > 1e-11
        sizes = np.einsum("ij,ij->j", functions, functions)
        lost = ((directions[:, ~is_seen].T @ functions) ** 2).sum(axis=0)
        whitened = directions[:, is_seen] / np.sqrt(variances[is_seen])
        return _Functions(whitened.T @ functions), (lost <= 1e-9 * sizes) | pattern


class _Functions(Basis):
    """Functions on the cells as rows of a matrix."""

    whole = True

    def __init__(self, functions):
        self.functions = functions


def _cell_weights(shape, ordered):
    """Weight in a ridge of the function of each cell of a tensor.

    The inverses sum to 1 over an interaction. The differences of a cosine of frequency
    j have a mean square of ``2 - 2 cos(pi j / n)``, and those of different ones are
    orthogonal: a ridge on differences is diagonal.
    """
    mode_weights = [np.ones(length) for length in shape]
    for k in ordered:
        mode_weights[k] = 2 - 2 * np.cos(np.pi * np.arange(shape[k]) / shape[k])
    for weights in mode_weights:
        weights[0], weights[1:] = 1, weights[1:] * (1 / weights[1:]).sum()
    return reduce(np.multiply.outer, mode_weights)


def checked_modes(poset, modes):
    """Modes with levels in order, counted from the first, ascending."""
    every = np.arange(len(poset.shape))
    return np.unique(every[list(modes)]).tolist()


# --- cells that a model can fill ------------------------------------------------------


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
