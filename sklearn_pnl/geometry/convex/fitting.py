r"""Iterative proportional fitting: rescale a table margin by margin until all fit.

Each step is the I-projection on the tables with one of the margins, so that the sweeps
go to the I-projection on those with all of them, where there is one (Csiszar 1975);
for a start of full support that is the table with these margins and the interactions
of the start beyond them. One loop, :func:`fit_margins`, over three layouts of tables.
"""

from math import prod

import numpy as np

from .marginals import indicators_of, marginal_of

# Up to this many cells a product with indicators of marginals is faster than sums.
_SUMMED_BY_PRODUCTS = 2**8
# Converged rows are dropped once they are this share, since that copies the others.
_DONE = 0.1
# Bound on the factors of a sweep, so that they do not overflow.
_LARGEST_FACTOR = 1e300


def fit_margins(table, goals, max_iter, tol=None, mass=None):
    """Tables (n, *shape) after some sweeps, and how many each took.

    Parameters
    ----------
    table : TensorTable, IndicatorTable or MatrixTable
        What to begin from; it is written over.
    goals : dict of tuple of int to ndarray of shape (n, *axes)
        Margins wanted, with all axes kept.
    max_iter : int
        Sweeps over all margins.
    tol : float, default=None
        Tables are done where no margin was off by more, as a share of ``mass`` (n,);
        None makes all sweeps.
    """
    n_iter, live, out = np.zeros(len(table), int), np.arange(len(table)), None
    for _ in range(max_iter):
        if not len(live):
            break
        worst = np.zeros(len(live))
        for modes, goal in goals.items():
            now = table.margin(modes)
            if tol is not None:
                np.maximum(worst, shares(now - goal, mass[live]), out=worst)
            table.scale(modes, _ratio(goal, now))
        n_iter[live] += 1
        done = worst <= (-1 if tol is None else tol)
        if np.count_nonzero(done) > _DONE * len(done):
            if out is None:
                out = np.empty((len(n_iter), *table.shape))
            out[live[done]] = table.rows(done).whole()
            table, live = table.rows(~done), live[~done]
            goals = {modes: goal[~done] for modes, goal in goals.items()}
    if out is None:
        return table.whole(), n_iter
    out[live] = table.whole()
    return out, n_iter


def table_of(rows, shape):
    """Wrap rows (n, D) in the fastest table; they are written over."""
    if rows.shape[1] <= _SUMMED_BY_PRODUCTS:
        return IndicatorTable(rows, shape)
    return TensorTable(rows.reshape(-1, *shape))


def shares(difference, mass):
    """Largest entry of each row as a share of its mass."""
    flat = difference.reshape(len(difference), prod(difference.shape[1:]))
    worst = np.abs(flat).max(axis=1, initial=0.0)
    return np.divide(worst, mass, out=worst, where=mass > 0)


def _ratio(wanted, sums):
    """Factors from sums to goals; 1 where a sum is 0."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        out = wanted / sums
    out[~(sums > 0)] = 1.0
    return np.minimum(out, _LARGEST_FACTOR, out=out)


class TensorTable:
    """Tables of shape (n, *shape), unchanged in layout."""

    def __init__(self, tensor):
        self._tensor, self.shape = tensor, tensor.shape[1:]

    def __len__(self):
        return len(self._tensor)

    def margin(self, modes):
        """Sums over all other modes, axes kept."""
        return marginal_of(self._tensor, modes)

    def scale(self, modes, factor):
        """Multiply by a function of some modes."""
        self._tensor *= factor

    def rows(self, mask):
        """Some of the tables."""
        return TensorTable(self._tensor[mask])

    def whole(self):
        """All cells, of shape (n, *shape)."""
        return self._tensor


class IndicatorTable:
    """Small tables, flat; sums are products with indicators. As `TensorTable`."""

    def __init__(self, rows, shape):
        self._rows, self.shape = rows, shape

    def __len__(self):
        return len(self._rows)

    def margin(self, modes):
        """Sums over all other modes, flat."""
        return self._rows @ indicators_of(self.shape, tuple(modes))

    def scale(self, modes, factor):
        """Multiply by a function of some modes, flat."""
        self._rows *= factor @ indicators_of(self.shape, tuple(modes)).T

    def rows(self, mask):
        """Some of the tables."""
        return IndicatorTable(self._rows[mask], self.shape)

    def whole(self):
        """All cells, of shape (n, *shape)."""
        return self._rows.reshape(-1, *self.shape)


class MatrixTable:
    """Tables as matrices of the leading modes and the rest, with factors of both.

    Every margin must be of modes of one group; the matrices are never rescaled
    themselves: a sweep over many modes passes twice over them. As `TensorTable`.
    """

    def __init__(self, rows, shape, factors=None):
        self.shape, splits = shape, range(len(shape) + 1)
        # Split the modes into groups with about equal numbers of cells.
        first = min(splits, key=lambda k: max(prod(shape[:k]), prod(shape[k:])))
        self._first, self._lengths = first, (shape[:first], shape[first:])
        self._matrices = rows.reshape(len(rows), *map(prod, self._lengths))
        sizes = self._matrices.shape[1:]
        self._factors = factors or [np.ones((len(rows), size)) for size in sizes]
        # Joint margins of each group, valid until factors of the other group change.
        self._joint = [None, None]

    def __len__(self):
        return len(self._matrices)

    def margin(self, modes):
        """Sums over all other modes, flat."""
        group, indicators = self._place(modes)
        if self._joint[group] is None:
            first, second = self._factors
            if group == 0:
                sums = (self._matrices @ second[:, :, None])[..., 0]
            else:
                sums = (first[:, None, :] @ self._matrices)[:, 0]
            self._joint[group] = self._factors[group] * sums
        return self._joint[group] @ indicators

    def scale(self, modes, factor):
        """Multiply by a function of some modes of one group, flat."""
        group, indicators = self._place(modes)
        factor = factor @ indicators.T
        for part in (self._factors[group], self._joint[group]):
            with np.errstate(over="ignore"):
                part *= factor
            np.minimum(part, _LARGEST_FACTOR, out=part)
        self._joint[1 - group] = None

    def _place(self, modes):
        group = int(modes[0] >= self._first)
        inside = tuple(k - group * self._first for k in modes)
        return group, indicators_of(self._lengths[group], inside)

    def rows(self, mask):
        """Some of the tables."""
        factors = [factor[mask] for factor in self._factors]
        return MatrixTable(self._matrices[mask], self.shape, factors)

    def whole(self):
        """All cells, of shape (n, *shape)."""
        first, second = self._factors
        scaled = self._matrices * first[:, :, None]
        scaled *= second[:, None, :]
        return scaled.reshape(-1, *self.shape)
