"""Round values to the steps and the resolution of columns, and keep relations.

The steps of ``repair`` use the functions on new rows. ``round_to_steps`` rounds rows
that a projection moved, so that their sums are preserved.
"""

import numpy as np

from .constraints import ALMOST
from .implied_equalities import parts_of

# --- new rows -------------------------------------------------------------------------


def off_resolution(rows, relations):
    """Return the mask (n,) of rows with a dependent column off its resolution."""
    columns, off = relations.columns, np.zeros(len(rows), bool)
    if not relations.is_dependent.any():
        return off
    for some, part in parts_of(relations, np.isnan(rows)):
        pivots = part.pivots[part.is_dependent]
        pivots = pivots[columns.steps[pivots] > 0]
        values = rows[some][:, pivots]
        distance = np.abs(values - columns.rounded(values, pivots))
        off[some] |= (distance > ALMOST * columns.steps[pivots]).any(axis=1)
    return off


def round_in_order(rows, relations):
    """Round to the other side, in place, where rounding violates an order."""
    columns, ordered = relations.columns, relations.ordered
    distances = relations.distances[relations.is_ordered]
    room = relations.rounding_of_inequalities[relations.is_ordered]
    for (p, q), distance, most in zip(ordered, distances, room, strict=True):
        wrong = rows[:, q] - rows[:, p] < distance - (most if distance else 0)
        if not wrong.any():
            continue
        if columns.steps[p] > 0:
            rows[wrong, p] = columns.rounded(rows[wrong, q] - distance, p, np.floor)
        elif columns.steps[q] > 0:
            rows[wrong, q] = columns.rounded(rows[wrong, p] + distance, q, np.ceil)


def clip_to_order(rows, relations):
    """Make columns equal, in place, if they violate an order only by rounding."""
    columns, room = relations.columns, relations.rounding_of_inequalities
    is_tight = relations.is_ordered & (relations.distances == 0)
    pairs, precision = relations.inequalities[is_tight], columns.table.precision
    p, q = pairs.T
    if not (rows[:, p] > rows[:, q]).any():
        return
    # Each change can violate the order of the previous column of a chain.
    for _ in range(len(pairs)):
        is_changed = False
        for (p, q), most in zip(pairs, room[is_tight], strict=True):
            gap = rows[:, p] - rows[:, q]
            wrong = (gap > 0) & (gap <= most)
            # A value of the less precise column can be copied exactly.
            is_first = columns.steps[p] == 0 and precision[p] <= precision[q]
            target, source = (p, q) if is_first else (q, p)
            if wrong.any() and columns.steps[target] == 0:
                rows[wrong, target] = rows[wrong, source]
                is_changed = True
        if not is_changed:
            break


def restore(rows, relations):
    """Compute dependent columns of rows (n, D), in place, from the other columns.

    A dependent column is computed if all other cells of its equality are present.
    """
    if not relations.is_dependent.any():
        return
    for some, part in parts_of(relations, np.isnan(rows)):
        equalities, cells = part.equalities, rows[some]
        for k in np.flatnonzero(part.is_dependent):
            a, pivot = equalities.coefficients[k], part.pivots[k]
            # A matrix product would round differently for different numbers of rows.
            value = np.full(len(cells), equalities.lower[k])
            for column in np.setdiff1d(np.flatnonzero(a), pivot):
                value -= a[column] * cells[:, column]
            value[np.isnan(cells[:, pivot])] = np.nan
            np.copyto(cells[:, pivot], value, where=~np.isnan(value))
        rows[some] = cells


def follow(rows, exact, relations):
    """Move columns in near equalities by what other columns changed, in place.

    ``exact`` are the rows (n, D) before the change.
    """
    columns = relations.columns
    # A missing cell changes nothing.
    change = np.nan_to_num(rows - exact)
    for pivot, coefficients in reversed(relations.near):
        value, has_steps = exact[:, pivot].copy(), columns.steps[pivot] > 0
        for column in np.flatnonzero(coefficients):
            value += coefficients[column] * change[:, column]
        rows[:, pivot] = columns.rounded(value, pivot) if has_steps else value
        change[:, pivot] = np.nan_to_num(rows[:, pivot] - exact[:, pivot])


# --- sums of moved rows ---------------------------------------------------------------


def round_to_steps(rows, steps, system, low, high, widths=1.0, origins=0.0):
    """Round cells of projected rows to multiples of steps so that sums are kept.

    Each cell is rounded to the nearest multiple within its bounds. Then, sum by sum,
    the cells with the largest remainders and coefficients 1 or -1 move one step further
    until the sum is inside its interval. Sums with the fewest free columns come first,
    and their cells are not changed for a later sum.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
    steps : ndarray of shape (D,)
        0 for columns without steps.
    system : LinearConstraints
    low, high : ndarray of shape (n, D)
        Bounds. A cell without a multiple between its bounds is not rounded.
    widths, origins : ndarray of shape (D,) or float
        Distance and origin of the allowed multiples, in steps.

    Returns
    -------
    rows : ndarray of shape (n, D)
        Sums whose cells are all settled, or have different units, may be missed. A sum
        that requires a value between two multiples has the nearest multiple.
    """
    columns = np.flatnonzero(steps)
    widths, origins = (
        np.broadcast_to(part, steps.shape)[columns] for part in (widths, origins)
    )
    unit, start = steps[columns] * widths, steps[columns] * origins
    exact = (rows[:, columns] / steps[columns] - origins) / widths
    least, most = steps_between(low[:, columns] - start, high[:, columns] - start, unit)
    on_steps, settled = least <= most, least >= most
    counts = np.where(on_steps, np.clip(np.rint(exact), least, most), exact)
    a = system.coefficients[:, columns] * unit
    # Sums of columns with a resolution; the sum with the fewest free columns is next.
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
        total = counts[:, cells] @ weights + (weights / unit[cells]) @ start[cells]
        lower, upper = (e[..., k] / smallest for e in (system.lower, system.upper))
        missing = least_change(lower - total, upper - total)
        settled_before = settled[:, cells]
        settled[:, cells] |= ((lower == upper) | (missing != 0))[:, None]
        part = (x[:, cells] for x in (exact, counts, least, most))
        counts[:, cells] = _largest_remainders(*part, settled_before, weights, missing)
    rounded = rows.copy()
    values = multiples(origins + widths * counts, steps[columns])
    rounded[:, columns] = np.where(on_steps, values, rows[:, columns])
    return rounded


def _largest_remainders(exact, counts, least, most, settled, weights, missing):
    """Return integers (n, c) whose weighted sums (n,) change by the missing amounts.

    Only cells of weight 1 or -1 change. They share the amount that the rounding of
    coarser cells can leave, and change by a few more steps each.
    """
    unit = np.abs(weights) == 1
    free = ~settled & unit
    left = np.abs(weights[~unit]).sum() / 2
    share = np.clip(missing, -left, left) / np.maximum(free.sum(axis=1), 1)
    moved = counts + free * np.sign(weights) * np.trunc(share)[:, None]
    moved = np.where(free, np.clip(moved, least, most), counts)
    missing, counts = missing - (moved - counts) @ weights, moved
    for _ in range(8):
        if not missing.any():
            break
        direction = np.sign(missing)[:, None] * np.sign(weights)
        after = counts + direction
        allowed = free & (after >= least) & (after <= most)
        cost = np.where(allowed, (counts - exact) * direction, np.inf)
        rank = np.argsort(np.argsort(cost, axis=1, kind="stable"), axis=1)
        chosen = allowed & (rank < np.abs(missing)[:, None])
        if not chosen.any():
            break
        counts = counts + chosen * direction
        missing = missing - chosen.sum(axis=1) * np.sign(missing)
    return counts


# --- values on steps ------------------------------------------------------------------


def on_steps(values, steps, to=np.rint, widths=1.0, origins=0.0):
    """Round values (n, D) to the steps of their columns."""
    if np.all(steps == 1) and np.all(widths == 1):
        return to(values)
    places = (values / steps - origins) / widths
    return multiples(origins + widths * to(places), steps)


def on_values(values, allowed, to=np.rint):
    """Round values to sorted allowed values: the nearest, the previous or the next."""
    places = to(np.interp(values, allowed, np.arange(len(allowed))))
    rounded = allowed[np.nan_to_num(places).astype(int)]
    return np.where(np.isnan(values), np.nan, rounded)


def steps_between(low, high, steps):
    """Return the least and the largest number of steps (n, D) within bounds.

    The least number exceeds the largest if there is none. Bounds have a tolerance for
    rounding.
    """
    return np.ceil(low / steps - ALMOST), np.floor(high / steps + ALMOST)


def least_change(lower, upper):
    """Return the integers nearest to 0 in intervals; the middle if there are none."""
    low, high = steps_between(lower, upper, 1)
    is_empty = low > high
    low[is_empty] = high[is_empty] = np.rint((lower[is_empty] + upper[is_empty]) / 2)
    return np.clip(0, low, high)


def off_steps(values, steps):
    """Compute the distances of values (n, D) from multiples of the steps, in steps."""
    places = values / steps
    return np.abs(places - np.rint(places))


def multiples(counts, steps):
    """Compute multiples of steps, rounded to the float nearest to their decimals."""
    inverse = np.maximum(np.rint(1 / steps), 1)
    is_fraction = (steps < 1) & (np.abs(inverse * steps - 1) < 1e-12)
    return np.where(is_fraction, counts / inverse, counts * steps)


def reset_together(relations):
    """Return the mask (D,) of columns that are copied together if relations break."""
    columns = ~relations.copies_atoms
    columns[relations.inequalities.ravel()] = True
    return columns
