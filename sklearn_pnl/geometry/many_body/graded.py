"""Functions for distributions whose cells differ by many orders of magnitude.

The moments of functions that are large on heavy cells have the rounding errors of these
cells, which hide the masses of light cells. The basis of this module has functions that
are exactly 0 on all cells much heavier than their own. Only the rounding errors of
equally light or lighter cells enter the moments of these functions.
"""

import numpy as np
from scipy.linalg import qr, solve_triangular

from .bases import Basis

# Cells of one level differ at most by this factor. Within a level, rounding costs about
# as many digits as the factor has.
_LEVEL = 1e3
# Smaller pivots, relative to the largest pivot of their level, are rounding errors.
_RANK_TOL = 1e-9


class GradedBasis(Basis):
    """Basis of the span of functions (m, D) and the constants, up to the constants.

    The cells of the distribution ``q`` (D,) are divided into levels, from heavy to
    light. The functions of a level are independent on the cells of the level, and
    exactly 0 on all heavier cells.
    """

    as_matrix = True

    def __init__(self, functions, q):
        self.functions = _graded(functions, q)
        self.n_functions, self.n_cells = self.functions.shape

    def rounding(self, q, target):
        """Estimate the largest error of a coefficient from the rounding of moments.

        The error of a moment is divided by the variance of its function.
        """
        errors = np.finfo(q.dtype).eps * (np.abs(self.functions) @ (q + target))
        variances = self.functions**2 @ q - (self.functions @ q) ** 2
        # The variance of a function on cells near the smallest float can be 0.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.max(errors / variances, initial=0.0)


def _graded(functions, q):
    """Eliminate the functions on the cells, level by level."""
    left = functions - functions[:, [q.argmax()]]
    level = np.full(len(q), np.inf)
    level[q > 0] = np.floor((np.log(q.max()) - np.log(q[q > 0])) / np.log(_LEVEL))
    levels = [left[:0]]
    for this in np.unique(level[q > 0]):
        if not len(left):
            break
        cells = level == this
        triangle, order = qr(left[:, cells].T, mode="r", pivoting=True)
        pivots = np.abs(np.diag(triangle))
        rank = np.count_nonzero(pivots > _RANK_TOL * pivots.max(initial=1.0))
        chosen, left = left[order[:rank]], left[order[rank:]]
        if rank and len(left):
            weights = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
            left = left - weights.T @ chosen
        # The differences are 0 up to rounding.
        left[:, level <= this] = 0.0
        size = np.abs(left).max(axis=1, initial=0.0, keepdims=True)
        left = left / np.where(size > 0, size, 1.0)
        levels.append(chosen)
    # Functions that remain are 0 on all cells with mass.
    return np.concatenate(levels)
