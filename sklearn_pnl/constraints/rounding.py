"""Values rounded to steps so that sums hold: the largest remainders inside each sum."""

import numpy as np

# What rounding of double precision may leave of a whole number of steps.
ALMOST_WHOLE = 1e-6


def round_to_steps(rows, steps, system, low, high):
    """Round cells to multiples of steps so that sums are kept.

    Each cell goes to the nearest multiple inside its limits. Then, sum by sum, those
    with the largest remainders, among those with the coefficients 1 and -1, go one step
    farther until the sum is inside its interval. Sums with the fewest free columns come
    first, and their cells are not changed for a later one.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
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
    columns = np.flatnonzero(steps)
    unit, exact = steps[columns], rows[:, columns] / steps[columns]
    least = np.ceil(low[:, columns] / unit - ALMOST_WHOLE)
    most = np.floor(high[:, columns] / unit + ALMOST_WHOLE)
    on_steps, settled = least <= most, least >= most
    counts = np.where(on_steps, np.clip(np.rint(exact), least, most), exact)
    a = system.coefficients[:, columns] * unit
    # Sums of steps alone; always the one with the fewest free columns next.
    left = np.flatnonzero(~system.coefficients[:, steps == 0].any(axis=1)).tolist()
    while left:
        free = ~settled.all(axis=0)
        k = min(left, key=lambda k: np.count_nonzero(a[k, free]))
        left.remove(k)
        cells = np.flatnonzero(a[k])
        smallest = np.abs(a[k, cells]).min(initial=np.inf)
        weights = np.rint(a[k, cells] / smallest)
        is_multiple = np.allclose(a[k, cells], weights * smallest, rtol=1e-9, atol=0)
        if not len(cells) or not is_multiple:
            continue
        total = counts[:, cells] @ weights
        lower, upper = (e[..., k] / smallest for e in (system.lower, system.upper))
        missing = least_change(lower - total, upper - total)
        settled_before = settled[:, cells]
        settled[:, cells] |= ((lower == upper) | (missing != 0))[:, None]
        part = (x[:, cells] for x in (exact, counts, least, most))
        counts[:, cells] = _largest_remainders(*part, settled_before, weights, missing)
    rounded = rows.copy()
    rounded[:, columns] = np.where(on_steps, multiples(counts, unit), rows[:, columns])
    return rounded


def least_change(lower, upper):
    """The smallest whole numbers (n,) in intervals; in one without any, its middle."""
    low, high = np.ceil(lower - ALMOST_WHOLE), np.floor(upper + ALMOST_WHOLE)
    is_empty = low > high
    low[is_empty] = high[is_empty] = np.rint((lower[is_empty] + upper[is_empty]) / 2)
    return np.clip(0, low, high)


def _largest_remainders(exact, counts, least, most, settled, weights, missing):
    """Whole numbers (n, c) whose weighted sums (n,) change by what is missing.

    Cells of weight 1 or -1 do it; others are too coarse.
    """
    while missing.any():
        direction = np.sign(missing)[:, None] * np.sign(weights)
        after = counts + direction
        allowed = ~settled & (np.abs(weights) == 1) & (after >= least) & (after <= most)
        cost = np.where(allowed, (counts - exact) * direction, np.inf)
        rank = np.argsort(np.argsort(cost, axis=1, kind="stable"), axis=1)
        chosen = allowed & (rank < np.abs(missing)[:, None])
        if not chosen.any():
            break
        counts = counts + chosen * direction
        missing = missing - chosen.sum(axis=1) * np.sign(missing)
    return counts


def multiples(counts, steps):
    """Multiples of steps, to the nearest float of their decimals."""
    inverse = np.maximum(np.rint(1 / steps), 1)
    is_fraction = (steps < 1) & (np.abs(inverse * steps - 1) < 1e-12)
    return np.where(is_fraction, counts / inverse, counts * steps)
