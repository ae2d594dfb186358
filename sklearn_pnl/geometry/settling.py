"""The last digits of theta, where masses differ by many orders of magnitude.

theta is as sensitive to the lightest cells as to the heaviest, and sums over both lose
the former: with cells of mass 1e-12 the gradient of a tilt, right to 16 digits of the
whole, leaves theta to about four. In the coordinates used here no sum has a term
heavier than what it is there to decide.
"""

from math import fsum

import numpy as np

# Entries of functions that are combinations of 0 and 1 are integers or simple
# fractions; what is smaller is rounding.
_ROUNDING = 1e-9
# Steps change an exponent by so much at most; after a long one the heaviest cells are
# others; after a small one Newton's error is rounding.
_STEPS, _LONGEST, _NEAR, _SMALL = 40, 2.0, 0.1, 1e-9


def settle(functions, q, target):
    """Newton's method for one row, to rounding in every cell; None if it fails.

    Solves ``functions @ q = functions @ target`` for ``q exp(x @ functions)``. The
    coordinates are the values of the exponent on a basis of cells: the heaviest on
    which the functions are independent (Vavasis, SIAM J. Matrix Anal. Appl. 15, 1994,
    on why such a basis makes weighted least squares stable).

    Parameters
    ----------
    functions : ndarray of shape (m, D)
        Of values 0 and 1, independent, the constant among them.
    q : ndarray of shape (D,)
        Positive; a solution but for rounding.
    target : ndarray of shape (D,)
    """
    longest = np.inf
    for _ in range(_STEPS):
        if longest > _NEAR:
            cardinal = _cardinal_functions(functions, np.argsort(-q, kind="stable"))
            # The target may be heavy where q is light: exactly, or it cancels away.
            terms = (cardinal * target, cardinal != 0)
            wanted = [fsum(x[some].tolist()) for x, some in zip(*terms, strict=True)]
        hessian = (cardinal * q) @ cardinal.T
        scale = 1 / np.sqrt(np.diag(hessian))
        hessian *= scale * scale[:, None]
        step = scale * np.linalg.solve(hessian, scale * (wanted - cardinal @ q))
        longest = np.abs(step).max()
        q = q * np.exp((step * (_LONGEST / max(longest, _LONGEST))) @ cardinal)
        if longest <= _SMALL:
            return q
        if not np.isfinite(q).all():
            break
    return None


def _cardinal_functions(functions, order):
    """Combinations that are 1 on one cell of a basis and 0 on the others.

    The basis is the first cells in ``order`` on which the functions are independent;
    by elimination, so that a function is 0 on all cells before its own.
    """
    rest, found = functions[:, order], 0
    for column in range(rest.shape[1]):
        pivot = found + np.abs(rest[found:, column]).argmax()
        if abs(rest[pivot, column]) < _ROUNDING:
            continue
        rest[[found, pivot], column:] = rest[[pivot, found], column:]
        rest[found, column:] /= rest[found, column]
        others = rest[:, column].copy()
        others[found] = 0
        own = rest[found, column:]
        rows = np.flatnonzero(others)
        rest[rows, column:] -= others[rows, None] * own
        found += 1
        if found == len(rest):
            break
    rest[np.abs(rest) < _ROUNDING] = 0
    cardinal = np.empty_like(rest)
    cardinal[:, order] = rest
    return cardinal
