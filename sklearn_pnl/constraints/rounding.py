"""Values rounded to steps so that sums hold: the largest remainders inside each sum."""

import numpy as np

# What rounding of double precision may leave of a whole number of steps.
_ALMOST_WHOLE = 1e-6
# Passes over a sum whose cells meet limits on the way.
_MAX_PASSES = 5


def round_to_steps(rows, steps, system, low, high):
    """Round cells to multiples of steps so that sums are kept.

    Each cell goes to the nearest multiple inside its limits. Then, sum by sum, those
    with the largest remainders, among those with the coefficients 1 and -1, go one step
    farther until the sum is inside its interval. Cells of a sum that was seen to are
    not changed for a later one.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Cells with NaN stay so.
    steps : ndarray of shape (D,)
        0 for columns without.
    system : LinearConstraints
    low, high : ndarray of shape (n, D)
        Limits. A cell whose limits have no multiple between them is not rounded.

    Returns
    -------
    rows : ndarray of shape (n, D)
        Sums whose cells are settled already, or have other units, may be off; those
        asked for a value between two multiples are at the nearest.
    """
    stepped = np.flatnonzero(steps)
    unit = steps[stepped]
    least = np.ceil(low[:, stepped] / unit - _ALMOST_WHOLE)
    most = np.floor(high[:, stepped] / unit + _ALMOST_WHOLE)
    on_steps = (least <= most) & ~np.isnan(rows[:, stepped])
    exact = np.where(on_steps, rows[:, stepped] / unit, 0.0)
    counts = np.clip(np.rint(exact), *np.where(on_steps, (least, most), 0.0))
    settled = ~on_steps | (least == most)
    for k in _from_most_settled(system, stepped, settled):
        a = system.coefficients[k][stepped]
        cells = np.flatnonzero(a)
        size = a[cells] * unit[cells]
        smallest = np.abs(size).min()
        weights = np.rint(size / smallest)
        if not np.allclose(size, weights * smallest, rtol=1e-9, atol=0):
            continue
        # Cells that cannot be on steps are constants of their sum.
        off = np.where(on_steps[:, cells], 0.0, np.nan_to_num(rows[:, stepped[cells]]))
        rest = (off @ a[cells])[:, None]
        ends = (end[..., [k]] for end in (system.lower, system.upper))
        lower, upper = ((end - rest)[:, 0] / smallest for end in ends)
        missing = lacking(counts[:, cells] @ weights, lower, upper)
        arrays = exact, counts, least, most, settled
        part = (x[:, cells] for x in arrays)
        counts[:, cells] = _largest_remainders(*part, weights, missing)
        settled[:, cells] |= ((lower == upper) | (missing != 0))[:, None]
    rounded = rows.copy()
    rounded[:, stepped] = np.where(on_steps, multiples(counts, unit), rows[:, stepped])
    return rounded


def _from_most_settled(system, stepped, settled):
    """Constraints with steps alone, always the one with the fewest free columns next.

    So a total that is fixed is seen to before the parts of its parts.
    """
    used = system.coefficients[:, stepped] != 0
    every = system.coefficients != 0
    left = np.flatnonzero(used.any(axis=1) & (used.sum(axis=1) == every.sum(axis=1)))
    free = ~settled.all(axis=0)
    while len(left):
        counts = (used[left] & free).sum(axis=1)
        best = left[np.argmin(counts)]
        yield best
        free &= ~used[best]
        left = left[left != best]


def lacking(total, lower, upper):
    """Whole numbers (n,) that sums lack of an interval, or of its middle."""
    low, high = np.ceil(lower - _ALMOST_WHOLE), np.floor(upper + _ALMOST_WHOLE)
    # An interval without a whole number has one next to it.
    is_empty = low > high
    low[is_empty] = high[is_empty] = np.rint((lower[is_empty] + upper[is_empty]) / 2)
    return np.clip(total, low, high) - total


def _largest_remainders(exact, counts, least, most, settled, weights, lacking):
    """Whole numbers (n, c) whose weighted sums (n,) change by what is lacking.

    Cells of weight 1 or -1 do it; others are too coarse.
    """
    counts, signs, is_fine = counts.copy(), np.sign(weights), np.abs(weights) == 1
    for _ in range(_MAX_PASSES):
        if not lacking.any():
            break
        direction = np.sign(lacking)[:, None] * signs
        after = counts + direction
        allowed = ~settled & is_fine & (after >= least) & (after <= most)
        cost = np.where(allowed, (counts - exact) * direction, np.inf)
        rank = np.argsort(np.argsort(cost, axis=1, kind="stable"), axis=1)
        chosen = allowed & (rank < np.abs(lacking)[:, None])
        counts += chosen * direction
        lacking = lacking - chosen.sum(axis=1) * np.sign(lacking)
    return counts


def multiples(counts, steps):
    """Multiples of steps, to the nearest float of their decimals."""
    inverse = np.maximum(np.rint(1 / steps), 1)
    is_fraction = (steps < 1) & (np.abs(inverse * steps - 1) < 1e-12)
    return np.where(is_fraction, counts / inverse, counts * steps)
