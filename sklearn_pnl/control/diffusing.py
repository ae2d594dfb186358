"""Marks of columns whose sums are met: all values but one have them again.

Each value goes to one beside it that has the mark, and what that adds to the sum is
passed on to the next (error diffusion); what is left at last is taken by one value.
"""

import numpy as np

# Distance from a mark that is rounding, as a share of the distance to the next.
_AT_MARK = 1e-12


def diffused(keeper, rows, columns, stays):
    """Rows (n, D) on the lattice and grids of ``keeper`` in some columns.

    Sums of columns stay as they are, and so do values of the mask ``stays``.
    """
    rows = rows.copy()
    for j in columns:
        some = np.flatnonzero(~stays[:, j])
        values = rows[some, j]
        below, above = _beside(keeper, j, values)
        near = np.where(values - below < above - values, below, above)
        off = np.abs(values - near) > _AT_MARK * (above - below)
        rows[some[~off], j] = near[~off]
        if off.any():
            left = float((values - near)[~off].sum())
            ends = below[off], above[off], keeper.low[j], keeper.high[j]
            rows[some[off], j] = _passed_on(values[off], *ends, left)
    return rows


def _beside(keeper, j, values):
    """Values with the mark of a column, below and above given ones (n,)."""
    grid = keeper.grids.get(j)
    if grid is not None:
        place = np.clip(np.searchsorted(grid, values, "right"), 1, len(grid) - 1)
        return grid[place - 1], grid[place]
    lattice = keeper.lattice.about([j])
    below = np.floor((values - lattice.origins) / lattice.steps + _AT_MARK)
    both = lattice.origins + np.append(below, below + 1) * lattice.steps
    both = lattice.nearest(both[:, None])[:, 0]
    return np.clip(both, keeper.low[j], keeper.high[j]).reshape(2, -1)


def _passed_on(values, below, above, least, most, left):
    """One of two values each, so that their sum, and what is ``left``, stay.

    All but one of them. Those that are farthest apart go first: the others make up for
    what these add.
    """
    order = np.argsort(below - above, kind="stable")
    found = []
    pairs = (array[order].tolist() for array in (values, below, above))
    for value, low, high in zip(*pairs, strict=True):
        left += value
        found.append(high if left - low > high - left else low)
        left -= found[-1]
    marked = np.empty_like(values)
    marked[order] = found
    if abs(left) <= _AT_MARK * (above - below).min():
        return marked
    last = marked + left
    away = np.where((last < least) | (last > most), np.inf, np.abs(last - values))
    one = int(np.argmin(away))
    if np.isinf(away[one]):
        return values
    marked[one] = last[one]
    return marked
