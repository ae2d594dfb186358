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


def settle_rows(functions, q, target, residual, rows, residual_of, tol, seen=None):
    """Some rows of distributions (n, D), and their residuals, settled in place.

    Left as they are where that fails, or where ``residual_of(q - target)`` becomes
    larger than both it was and ``tol``.
    """
    for row in rows:
        with np.errstate(all="ignore"):
            better = settle(functions, q[row], target[row], seen)
        if better is None:
            continue
        now = residual_of((better - target[row])[None])[0]
        if now <= max(tol, residual[row]):
            q[row], residual[row] = better, now


def settle(functions, q, target, seen=None):
    """Newton's method for one row, to rounding in every cell; None if it fails.

    Solves ``functions @ q = functions @ target``, sums over the cells that are seen,
    for ``q exp(x @ functions)``. The coordinates are the values of the exponent on a
    basis of cells: the heaviest on which the functions are independent (Vavasis, SIAM
    J. Matrix Anal. Appl. 15, 1994, on why such a basis makes weighted least squares
    stable).

    Parameters
    ----------
    functions : ndarray of shape (m, D)
        Of values 0 and 1, the constant among them; independent, or on the cells that
        are seen those that count are found.
    q : ndarray of shape (D,)
        Positive; a solution but for rounding.
    target : ndarray of shape (D,)
        0 where it is not seen.
    seen : ndarray of bool of shape (D,), default=None
        None is all cells.
    """
    longest = np.inf
    for _ in range(_STEPS):
        held = q if seen is None else np.where(seen, q, 0.0)
        if longest > _NEAR:
            cardinal = _cardinal_functions(functions, held)
            # The target may be heavy where q is light: exactly, or it cancels away.
            terms = (cardinal * target, cardinal != 0)
            wanted = [fsum(x[some].tolist()) for x, some in zip(*terms, strict=True)]
        hessian = (cardinal * held) @ cardinal.T
        scale = 1 / np.sqrt(np.diag(hessian))
        hessian *= scale * scale[:, None]
        step = scale * np.linalg.solve(hessian, scale * (wanted - cardinal @ held))
        longest = np.abs(step).max()
        q = q * np.exp((step * (_LONGEST / max(longest, _LONGEST))) @ cardinal)
        if longest <= _SMALL:
            return q
        if not np.isfinite(held).all():
            break
    return None


def _cardinal_functions(functions, mass):
    """Combinations that are 1 on one cell of a basis and 0 on the others.

    The basis is the heaviest cells on which the functions are independent; by
    elimination, so that a function is 0 on all cells heavier than its own.
    """
    order = np.argsort(-mass, kind="stable")
    rest, found = functions[:, order], 0
    for column in range(np.count_nonzero(mass)):
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
    return cardinal[:found]
