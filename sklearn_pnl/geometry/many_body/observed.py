"""Functions of log-linear models on observed cells, and cells that are always 0."""

from __future__ import annotations

from functools import reduce

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from ..convex.highs import solved
from ..posets.elements import matched_mask
from .bases import MOST_FACTORED, Basis, ScaledBasis, ZetaBasis


class Design:
    """Orthonormal functions of a model, and the weight of each function in a ridge."""

    def __init__(self, poset, matched, ordered=()):
        self.poset, self.matched = poset, matched_mask(poset, matched)
        self.n_functions = int(self.matched.sum())
        if not self.n_functions:
            raise ValueError(
                "matched must contain an element besides the bottom; got none."
            )
        self.family = poset.family(self.matched)
        ordered = checked_modes(poset, ordered)
        if self.family is not None:
            self.basis = ScaledBasis(poset.shape, self.family, ordered)
            weights = _cell_weights(poset.shape, ordered)
            self.weights = weights.reshape(-1)[np.flatnonzero(self.matched)]
        elif ordered:
            raise ValueError(
                "ordered_modes requires that matched is a family of interactions of a "
                "tensor, as order_mask returns it. Remove ordered_modes, or change "
                "matched."
            )
        else:
            self.basis = ZetaBasis(poset, np.flatnonzero(self.matched))
            self.weights = np.full(self.n_functions, float(self.n_functions))

    def seen_by(self, pattern):
        """Return the functions that a pattern (D,) of observed cells identifies.

        The mask (D,) of the cells that the observed cells determine is also returned.
        The functions are orthonormal on the observed cells, so Hessians are near the
        identity. Combinations that vanish on the observed cells are left out.
        """
        m, n_cells = self.n_functions, self.poset.n_elements
        if m > MOST_FACTORED or m * n_cells > 2**26:
            raise ValueError(
                f"The estimable cells cannot be determined for {m} free elements and "
                f"{n_cells} cells; the limit is {MOST_FACTORED} elements, and {2**26} "
                "for elements times cells. Choose a smaller order, or fill the missing "
                "cells first, by ManyBodyImputer with a positive alpha."
            )
        functions = self.basis.functions
        if not pattern.any():
            return _Functions(functions[:0]), pattern
        functions = functions - functions[:, pattern].mean(axis=1, keepdims=True)
        seen = functions[:, pattern]
        variances, directions = np.linalg.eigh(seen @ seen.T / pattern.sum())
        # Smaller variances are rounding errors of functions that vanish there.
        is_seen = variances > 1e-11
        sizes = np.einsum("ij,ij->j", functions, functions)
        lost = ((directions[:, ~is_seen].T @ functions) ** 2).sum(axis=0)
        whitened = directions[:, is_seen] / np.sqrt(variances[is_seen])
        return _Functions(whitened.T @ functions), (lost <= 1e-9 * sizes) | pattern


class _Functions(Basis):
    """Functions of the cells as rows of a matrix."""

    as_matrix = True

    def __init__(self, functions):
        self.functions = functions


def _cell_weights(shape, ordered):
    """Return the weight in a ridge of the function of each cell of a tensor.

    The inverse weights of an interaction sum to 1. The differences of a cosine of
    frequency j have a mean square of ``2 - 2 cos(pi j / n)``. Differences of cosines of
    different frequencies are orthogonal, so a ridge on differences is diagonal.
    """
    mode_weights = [np.ones(length) for length in shape]
    for k in ordered:
        mode_weights[k] = 2 - 2 * np.cos(np.pi * np.arange(shape[k]) / shape[k])
    for weights in mode_weights:
        weights[0], weights[1:] = 1, weights[1:] * (1 / weights[1:]).sum()
    return reduce(np.multiply.outer, mode_weights)


def checked_modes(poset, modes):
    """Return modes as ascending non-negative integers; accept negative modes."""
    every = np.arange(len(poset.shape))
    if not set(modes) <= {*every, *(every - len(every))}:
        raise ValueError(
            f"ordered_modes={tuple(modes)} has a mode that a tensor of shape "
            f"{poset.shape} lacks. The modes are 0 to {len(every) - 1}."
        )
    return np.unique(every[list(modes)]).tolist()


# --- cells that a model can fill ------------------------------------------------------


def model_design(poset, mask):
    """Return the sparse design matrix of a model, with one row per cell.

    The columns are the constant, and for each free element the indicator of the cells
    above the element.
    """
    # The bottom is below all elements, so its column is the constant.
    elements = np.r_[poset.bottom, np.flatnonzero(mask)]
    return csr_array(poset.columns(elements).synthesis(np.eye(len(elements))).T)


def unfillable_cells(poset, mask, cells, empty, q, tol):
    """Return the mask (n, D) of the cells that a model cannot fill.

    Only empty cells are tested, and only if their mass in a fit ``q`` is so small that
    the iteration may be converging to 0.
    """
    suspicious = cells & empty & (q < max(1e-8, 100 * tol))
    unfillable = np.zeros(q.shape, bool)
    indices = np.flatnonzero(suspicious.any(axis=1))
    design = model_design(poset, mask) if len(indices) else None
    for row in indices:
        observed = np.flatnonzero(cells[row])
        masks = empty[row, observed], suspicious[row, observed]
        unfillable[row, observed] = ~_possible_cells(design[observed], *masks)
    return unfillable


def _possible_cells(design, empty, suspicious):
    """Return the cells that are positive in some distribution with given expectations.

    A linear programme finds a change of the counts that preserves all expectations,
    decreases only cells that are not empty, and fills as many cells as possible. For
    each cell the objective counts at most 1.
    """
    cells = np.flatnonzero(suspicious)
    n, k = len(empty), len(cells)
    cost = np.concatenate([np.zeros(n), -np.ones(k)])
    # Each change is a part up to 1, which the cost counts, plus an unbounded rest.
    system = vstack([design, design[cells]]).T
    bounds = [(0 if e else None, None) for e in empty] + [(0, 1)] * k
    balance = np.zeros(design.shape[1])
    solution = solved(linprog, cost, A_eq=system, b_eq=balance, bounds=bounds)
    if solution.status != 0:
        raise RuntimeError(
            f"The linear programme that decides which of {k} empty cells the model can "
            f"fill failed: {solution.message} Add a small constant to all cells."
        )
    possible = np.ones(n, bool)
    possible[cells] = solution.x[n:] > 0.5
    return possible
