"""Solvers of projections in mixed coordinates, for many rows at once.

There is one solver per route, and :func:`mixed_solver` selects the solver by the shape
of the matched set; see ``projections``.
"""

import numpy as np

from ..posets.elements import matched_mask
from .closed_forms import ClassSolver, SpliceSolver
from .newton_solvers import GeneralSolver, TiltSolver


def mixed_solver(poset, matched):
    """Return the solver for a poset and a matched set, which may be used repeatedly.

    Parameters
    ----------
    poset : PosetProtocol
        Poset of the cells.
    matched : array-like of bool of shape ``poset.shape``
        The set M of :func:`mixed_projection`.

    Returns
    -------
    solver
        Object with a method ``project(target, reference, tol, max_iter)``.
    """
    matched = matched_mask(poset, matched)
    if poset.is_up_set(matched):
        return SpliceSolver(poset, matched)
    family = poset.family(matched)
    if family is not None:
        return TiltSolver(poset, family)
    greatest = poset.greatest_below(np.flatnonzero(matched))
    if greatest is not None:
        return ClassSolver(poset, matched, greatest)
    return GeneralSolver(poset, matched)
