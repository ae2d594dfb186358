"""Raking by sweeps: each margin in turn is met by one factor a level."""

import numpy as np

# The residual is measured again in the end, and rounds otherwise.
_SAFE = 0.9


def sweep(groups, size, sign, tol, max_iter):
    """Sizes of cells or weights on margins, nearest in the sense of KL.

    Iterative proportional fitting; GRAS where some are summed as negative.

    Parameters
    ----------
    groups : sequence of Margin
    size : ndarray of shape (n,)
    sign : ndarray of shape (n,) or 1
        1 or -1; what is summed is ``sign * size``.
    tol : float
        Wanted largest gap, as a share of the sizes that a total sums.
    max_iter : int

    Returns
    -------
    size : ndarray of shape (n,)
    n_iter : int
    met : bool
    """
    negative, size = np.any(np.less(sign, 0)), size.copy()
    for n_iter in range(1, max_iter + 1):
        worst = 0.0
        for group in groups:
            plus, minus = _sums(group, size, sign, negative)
            gap = np.abs(plus - minus - group.lower)
            worst = np.maximum(worst, np.max(gap / np.maximum(plus + minus, 1e-300)))
            factors = np.append(_factors(plus, minus, group.lower), 1.0)[group.codes]
            if negative:
                np.divide(1, factors, out=factors, where=(sign < 0) & (factors > 0))
            size *= factors
        if worst <= _SAFE * tol:
            return size, n_iter, True
        if not np.isfinite(worst):
            break
    return size, n_iter, False


def _sums(group, size, sign, negative):
    """Sizes of positive and of negative cells, by level."""
    # Those of no level come first.
    codes, n = group.codes + 1, len(group.levels) + 1
    if not negative:
        return np.bincount(codes, size, n)[1:], np.zeros(n - 1)
    return [np.bincount(codes, np.maximum(s * size, 0), n)[1:] for s in (sign, -sign)]


def _factors(plus, minus, wanted):
    """What multiplies positive cells and divides negative ones.

    The positive root of ``plus f - minus / f = wanted``; 1 where there is none.
    """
    root = np.hypot(wanted, 2 * np.sqrt(plus * minus))
    up = wanted >= 0
    above = np.where(up, wanted + root, 2 * minus)
    below = np.where(up, 2 * plus, root - wanted)
    return np.divide(above, below, out=np.ones_like(above), where=below > 0)
