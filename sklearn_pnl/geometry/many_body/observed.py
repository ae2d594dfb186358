"""Log-linear models on observed cells: functions, estimable cells, ranks."""

from __future__ import annotations

from functools import reduce

import numpy as np

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
