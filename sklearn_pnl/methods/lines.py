"""New rows on straight lines between neighbouring rows, in the units of the rows.

The code of a row is the row itself (the base is the whole manifold):

    row         x_i            a point of the m-flat manifold of all rows
    mixed row   x_i + t (x_j - x_i), 0 <= t <= 1, on the m-geodesic from x_i to x_j
    noise       sum_a z_a x_a, sum_a z_a = 0, over x_i and its neighbours

Two theorems follow from this form. A mixed row is a convex combination of training
rows. It therefore satisfies every linear equality and inequality that the training rows
satisfy, and stays within the bounds of the columns. A row with noise is an affine
combination of training rows, and satisfies every linear equality of the training rows.

Noise can exceed bounds and violate orders of columns. :class:`LineSource` prevents this
by a ratio test for columns in relations, and by reflection for the other columns. A
change of a single column preserves only known equalities (``columns/relations.py``).
Unknown equalities are preserved with ``agreed_cells=False``, if no bound and no
rounding applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator

from .._utils.arrays import dense, nonzero_cells, slices
from .._utils.validation import NOT_NEGATIVE, TWO_OR_MORE
from ..columns.rounding import discretize, mend
from ..control.feasible_set import FeasibleSet
from ..encoding.k_neighbors import clip_neighbors, default_k_neighbors
from ..encoding.table_neighbors import (
    RowSearch,
    SparseRowSearch,
    group_numbers,
    separate_levels,
    strata_of,
)
from .parents import choose_parents
from .source import Batch, Source

# Factors of noise stay this far below the bound, so that rounding cannot exceed it.
_WITHIN = 1 - 1e-12


class Lines(BaseEstimator):
    """Generate rows on straight lines between neighbouring rows, with local noise.

    This is the method for tables: :class:`PNLAugmenter` with ``method="lines"``. Each
    new row mixes a random training row and one of its nearest neighbours at a uniform
    position. Noise is then added: a normal zero-sum combination of the row and its
    neighbours. The covariance of the noise is ``noise ** 2`` times the covariance of
    the differences between the row and its neighbours. The noise thus has the size and
    the shape of the data in the neighbourhood. Rows with more than one axis are
    flattened.

    Affine combinations of training rows satisfy all linear equalities of the training
    rows. However, bounds, rounding, binary columns and agreed cells (see
    ``agreed_cells``) change single columns. New rows then satisfy only the equalities
    that were found or given.

    Parameters
    ----------
    noise : float, default=0.6
        Standard deviation of the noise, relative to the differences between neighbours.
        A larger value spreads new rows farther from the line between the two parents.
        With ``1 / sqrt(6)``, about 0.41, the noise restores the covariance that mixing
        removes; the default also restores the covariance that bounds and agreed cells
        remove. 0 gives rows on the line.

    agreed_cells : bool, default=True
        Whether cells in which both parents have the same value receive no noise, so
        that values that many rows share stay unchanged. With False,
        ``extrapolation=None`` and ``value_support=None``, new rows also satisfy
        equalities that were not found, such as a total of 120 columns in 80 rows. The
        columns of the equality must then be floats and not binary.

    n_candidates : int or None, default=16384
        Number of random training rows to which the search for neighbours is limited.
        The search time is then linear in the number of rows, and neighbours are as far
        apart as in a table with ``n_candidates`` rows. With None, all rows can be
        neighbours.

    See Also
    --------
    Codes : New rows from codes of the training rows, as in the paper.
    PNLAugmenter : New rows of one set of rows, without classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import Lines, PNLAugmenter
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> PNLAugmenter(Lines(noise=0.35)).fit(X).sample(3).shape
    (3, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        "noise": [NOT_NEGATIVE],
        "agreed_cells": ["boolean"],
        "n_candidates": [TWO_OR_MORE, None],
    }
    # Rows may have missing cells and negative values.
    allows_missing, positive_only = True, False

    def __init__(
        self,
        noise: float = 0.6,
        *,
        agreed_cells: bool = True,
        n_candidates: int | None = 2**14,
    ) -> None:
        self.noise = noise
        self.agreed_cells = agreed_cells
        self.n_candidates = n_candidates

    def fit(
        self,
        table: Any,
        relations: Any,
        k_neighbors: Any = "auto",
        groups: Any = None,
        n_jobs: int | None = None,
        caller: str = "Lines",
    ) -> LineSource:
        """Return the source of new rows that resemble the rows of a table.

        The estimators call this method.

        Parameters
        ----------
        table : Table
            Training rows.
        relations : ColumnRelations
            Relations of the columns in all training rows.
        k_neighbors : int or "auto", default="auto"
            Number of neighbours among which the second parent is chosen. "auto" is a
            third of the rows, at most 10, and 7 for fewer than 18 rows.
        groups : ndarray of shape (m,), default=None
            Groups of the rows. Rows of different groups are not mixed.
        n_jobs, caller
            Not used; other methods need them.

        Returns
        -------
        source : LineSource
        """
        m = len(table)
        k = default_k_neighbors(m) if k_neighbors == "auto" else k_neighbors
        k = clip_neighbors(k, m, True, table.data_name)
        if table.sparse_rows is not None and not (
            relations.has_relations or relations.columns.atoms or table.has_missing
        ):
            return self._fit_sparse(table, relations, k, groups)
        cells = table.numbers().astype(np.float64, copy=not table.owned)
        labels = table.labels
        rows, absent = _filled(cells, relations)
        levels, sides = separate_levels(rows, cells, labels, relations, k)
        strata = strata_of(cells, relations.tied, k, groups, levels)
        search = RowSearch(rows, labels, relations.columns.binary)
        has_donors = labels is not None or absent is not None
        has_donors = bool(has_donors or relations.columns.binary.any())
        return LineSource(
            rows=rows,
            absent=absent,
            cells=cells,
            relations=relations,
            settings=self,
            limits=_limits_of_rows(cells, strata, sides, relations),
            following=_given_with_categories(cells, relations, labels),
            search=search,
            feasible=FeasibleSet.without_constraints(relations.of_rows(cells)),
            n_neighbors=k,
            strata=strata,
            has_donors=has_donors,
        )

    def _fit_sparse(self, table, relations, k, groups):
        """The source of rows whose columns have nothing to do with each other."""
        cells, none = table.sparse_rows, np.zeros((len(table), 0))
        levels, sides = separate_levels(cells, cells, None, relations, k)
        strata = strata_of(none, slice(0), k, groups, levels)
        # The two searches differ by rounding only, which can decide ties.
        if table.is_large:
            search = SparseRowSearch(cells, relations.columns.binary)
        else:
            search = RowSearch(dense(cells), None, relations.columns.binary)
        binary = relations.columns.binary
        return SparseLineSource(
            rows=_columns_kept(cells, ~binary),
            absent=None,
            cells=cells,
            relations=relations,
            settings=self,
            limits=_limits_of_rows(cells, strata, sides, relations),
            following=(),
            search=search,
            feasible=FeasibleSet.without_constraints(relations.of_rows(cells)),
            n_neighbors=k,
            strata=strata,
            has_donors=bool(binary.any()),
            flags=_columns_kept(cells, binary),
        )


@dataclass(frozen=True)
class LineSource(Source):
    """Source of new rows on straight lines between the rows of a class.

    Attributes
    ----------
    rows : ndarray of shape (m, D)
        Training rows with a number in every cell.
    absent : ndarray of bool of shape (m, D) or None
        Cells that are not mixed: missing cells, and atoms of the value support.
    cells : ndarray of shape (m, D)
        The training rows.
    relations : ColumnRelations
        Relations of the rows of all classes.
    settings : Lines
        The parameters of the method.
    limits : tuple or None
        The number (m,) of the bounds of each training row, and bounds (2, s, D) of new
        rows. None stands for the bounds of the columns.
    following : tuple of int
        Blocks of binary columns that are copied from the row that gives the categories.
    search : RowSearch
    feasible : FeasibleSet
        The set of new rows, in the units of the rows.
    n_neighbors : int
    strata : list or None
        Rows that are only mixed with each other.
    has_donors : bool
        Whether some cells are copied from one parent, as categories are.
    """

    rows: np.ndarray
    absent: np.ndarray | None
    cells: np.ndarray
    relations: Any
    settings: Lines
    limits: tuple | None
    following: tuple
    search: Any
    feasible: Any
    n_neighbors: int
    strata: list | None
    has_donors: bool

    # New rows are affine combinations, and have the categories of their base rows.
    keeps_equalities = can_count = takes_shares = True

    def __len__(self):
        return self.rows.shape[0]

    @property
    def n_cells(self):
        """The number of cells of a new row that are computed."""
        return self.rows.shape[1]

    @property
    def n_numbers(self):
        """The number of other values that a new row needs while it is computed."""
        return self.n_cells + self.n_neighbors

    def training_rows(self):
        """Return the training rows (m, D)."""
        return self.cells

    def batches(self, request, rng, size):
        """Yield batches of ``size`` new rows."""
        parents = choose_parents(self.search, request, rng, self.settings.n_candidates)
        seed = rng.randint(np.iinfo(np.int32).max)
        # A generator takes a twentieth of the time of a small table.
        coins = RandomState(seed) if request.mutual else None
        for block in slices(request.n_samples, size):
            batch = parents[block]
            numbers, donors = self.mix(batch, rng, coins)
            pairs = np.column_stack([batch.base_rows, batch.second])
            t = batch.position[:, None]
            yield Batch(numbers, pairs, np.hstack([1 - t, t]), donors)

    def mix(self, parents, rng, coins):
        """Return new rows (n, D), and the donor (n,) of the categories of each row."""
        relations, i, j = self.relations, parents.base_rows, parents.second
        donors, from_j = self._donors(parents, coins)
        mixed, difference = self.rows[i], self.rows[j]
        difference -= mixed
        if self.absent is not None:
            lost = self.absent[i] | self.absent[j]
            difference[lost] = 0
            np.copyto(mixed, self.cells[donors], where=lost)
        # The agreed cells are 0 before and after the multiplication.
        difference *= parents.position[:, None]
        mixed += difference
        if self.absent is not None or self.limits is not None:
            self._put_in_order(mixed, donors)
        noise, rows = self._noise(parents, donors, rng), mixed
        if noise is not None:
            rows = self._added(mixed, difference, noise, parents)
        # Each block of binary columns is copied from one parent.
        chosen = np.where(from_j[:, relations.blocks], j[:, None], i[:, None])
        binary = self.cells[chosen, np.flatnonzero(relations.columns.binary)]
        discretize(rows, binary, relations)
        # Atoms may be on no multiple of a resolution.
        self._take_absent(rows, donors)
        mend(rows, donors, i, self.cells, relations)
        # Rows that were reset have another donor.
        self._take_absent(rows, donors)
        return rows, donors

    def _take_absent(self, rows, donors):
        """Copy the cells of donors (n,) that are not mixed, in place."""
        if self.absent is not None:
            np.copyto(rows, self.cells[donors], where=self.absent[donors])

    def _bounds(self, rows):
        """Return the lower and the upper bounds of new rows of training rows."""
        if self.limits is None:
            return self.relations.columns.low, self.relations.columns.high
        number, limits = self.limits
        return limits[:, number[rows]]

    def _put_in_order(self, mixed, donors):
        """Copy tied columns of donors where mixed rows violate an order, in place.

        A cell of one parent can be on the wrong side of a mixed cell, and a row that is
        mixed with rows on another side of a threshold can cross it.
        """
        tied = np.flatnonzero(self.relations.tied)
        if not len(tied):
            return
        p, q = self.relations.ordered.T
        broken = (mixed[:, p] > mixed[:, q]).any(axis=1)
        if self.reflects:
            low, high = (np.broadcast_to(e, mixed.shape) for e in self._bounds(donors))
            x = mixed[:, tied]
            broken |= ((x < low[:, tied]) | (x > high[:, tied])).any(axis=1)
        broken = np.flatnonzero(broken)
        mixed[np.ix_(broken, tied)] = self.cells[np.ix_(donors[broken], tied)]

    def _donors(self, parents, coins):
        """Return donors (n,) of the categories, and the blocks (n, b) that j gives."""
        i, j = parents.base_rows, parents.second
        n_blocks = self.relations.blocks.max(initial=-1) + 1
        if parents.mutual is None:
            return i.copy(), np.zeros((len(i), n_blocks), bool)
        coin = coins.uniform(size=(len(i), 1 + n_blocks))
        gives = (coin < parents.position[:, None]) & parents.mutual[:, None]
        if self.absent is not None:
            # Missing cells are copied from the donor, so i and j must lack the same.
            missing = np.isnan(self.cells)
            gives[(missing[i] != missing[j]).any(axis=1)] = False
        if self.limits is not None:
            # Cells of j may be on the other side of a threshold.
            number = self.limits[0]
            gives[number[i] != number[j]] = False
        gives[:, [1 + b for b in self.following]] = gives[:, :1]
        return np.where(gives[:, 0], j, i), gives[:, 1:]

    def _noise(self, parents, donors, rng):
        """Return noise (n, D) with the shape of the neighbourhoods, or None."""
        if self.settings.noise == 0 or parents.neighbors.shape[1] == 1:
            return None
        # With zero-sum weights, a new row stays an affine combination.
        weights = zero_sum_weights(parents, self.settings.noise, len(self.rows), rng)
        noise = weights @ self.rows
        if self.absent is not None:
            # sum z_a (x_a - x_d) over the present cells; d is the donor.
            c = np.flatnonzero(self.absent.any(axis=0))
            present = 1.0 - self.absent[:, c]
            noise[:, c] = weights @ (self.rows[:, c] * present)
            noise[:, c] -= (weights @ present) * self.rows[np.ix_(donors, c)]
            noise[:, c] *= present[donors]
        if self.relations.tied.any():
            self._drop_rounding(noise, weights)
        return noise

    def _drop_rounding(self, noise, weights):
        """Set noise (n, D) to 0, in place, where neighbours agree in a tied column."""
        bounds = self.relations.columns.least, self.relations.columns.most
        size = np.abs(weights.data).reshape(len(noise), -1).sum(axis=1)
        rounding = 4 * np.finfo(float).eps * np.abs(bounds).max(axis=0)
        # Few columns have such cells.
        least = np.abs(noise).min(axis=0, initial=np.inf)
        may_agree = self.relations.tied & (least <= rounding * size.max(initial=0))
        for c in np.flatnonzero(may_agree):
            noise[np.abs(noise[:, c]) <= size * rounding[c], c] = 0

    # --- bounds and orders of columns ----------------------------------------------

    @property
    def reflects(self):
        """Whether noise is changed cell by cell."""
        free = (self.relations.columns.steps == 0) & ~self.relations.columns.binary
        return (
            self.settings.agreed_cells
            or not np.isinf(self.relations.columns.low[free]).all()
        )

    def _added(self, mixed, difference, noise, parents):
        """Add noise to mixed rows, within the bounds and orders of the columns."""
        relations = self.relations
        low, high = self._bounds(parents.base_rows)
        if not self.reflects:
            # With one factor per row, the row stays an affine combination.
            s = _room(mixed, noise, None, None, relations.ordered, slice(None))
            return mixed + noise * folded(s)[:, None]
        if self.settings.agreed_cells and not relations.in_equality.all():
            agreed = difference == 0
            agreed[:, relations.in_equality] = False
            if self.absent is not None:
                i, j = parents.base_rows, parents.second
                agreed &= self.absent[i] == self.absent[j]
            if agreed.any():
                noise[agreed] = 0
        if relations.tied.any():
            tied = relations.tied
            s = folded(_room(mixed, noise, low, high, relations.ordered, tied))
            less = np.flatnonzero(s < 1)
            noise[np.ix_(less, tied)] *= s[less, None]
        rows = noise
        rows += mixed
        # The factors keep tied columns within their bounds.
        if not relations.tied.all():
            reflect(rows, low, high)
        return rows


@dataclass(frozen=True)
class SparseLineSource(LineSource):
    """Source of new sparse rows; cells that are 0 in both parents stay 0.

    The rows are those of :class:`LineSource` for columns without relations and missing
    cells. Only cells that are not 0 are computed, and ``cells`` are sparse.

    Attributes
    ----------
    rows, flags : sparse array of shape (m, D)
        The cells of columns that are mixed, and the cells of binary columns.
    """

    flags: Any

    @property
    def n_cells(self):
        """The mean number of nonzero cells in a row and all its neighbours."""
        return 1 + int(np.diff(self.cells.indptr).mean() * (1 + self.n_neighbors))

    def training_rows(self):
        """Return the training rows (m, D) as a dense array."""
        return dense(self.cells)

    def mix(self, parents, rng, coins):
        """Return new sparse rows (n, D), and the donor (n,) of each row."""
        relations, i, j = self.relations, parents.base_rows, parents.second
        donors, from_j = self._donors(parents, coins)
        mixed = self.rows[i]
        difference = self.rows[j] - mixed
        step = difference.copy()
        step.data *= np.repeat(parents.position, np.diff(step.indptr))
        rows = mixed + step
        if self.settings.noise > 0 and parents.neighbors.shape[1] > 1:
            noise = (
                zero_sum_weights(parents, self.settings.noise, len(self), rng)
                @ self.rows
            )
            if self.settings.agreed_cells:
                noise = noise.multiply(difference != 0)
            rows = (rows + noise).tocsr()
        c = rows.indices
        if self.reflects:
            low, high = relations.columns.low[c], relations.columns.high[c]
            if self.limits is not None:
                number, limits = self.limits
                low, high = limits[:, number[i].repeat(np.diff(rows.indptr)), c]
            reflect(rows.data, low, high)
        stepped = np.flatnonzero(relations.columns.steps[c] > 0)
        if len(stepped):
            at = c[stepped]
            x = relations.columns.rounded(rows.data[stepped], at)
            columns = relations.columns
            rows.data[stepped] = np.clip(x, columns.low[at], columns.high[at])
        if self.flags.nnz:
            rows = rows + self._given(i, ~from_j) + self._given(j, from_j)
        rows.sort_indices()
        return rows, donors

    def _given(self, parents, gives):
        """Return binary cells in the blocks (n, b) that parents (n,) give."""
        block_of = np.zeros(self.rows.shape[1], int)
        block_of[self.relations.columns.binary] = self.relations.blocks
        flags = self.flags[parents]
        each = np.repeat(np.arange(len(parents)), np.diff(flags.indptr))
        flags.data *= gives[each, block_of[flags.indices]]
        return flags


def folded(s):
    """Return where a step of length 1 ends that is reflected in [0, s]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        at = np.mod(1.0, 2 * s)
    inside = np.where(s > 0, np.minimum(at, 2 * s - at), 0.0) * _WITHIN
    return np.where(s >= 1, 1.0, inside)


def _room(rows, step, low, high, orders, tied):
    """Compute the largest factors (n,) of steps within bounds and orders."""
    room = np.full(len(rows), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        if low is not None:
            # Only steps that leave the limits have a factor below 1.
            end = rows + step
            row, column = nonzero_cells(((end < low) | (end > high)) & tied)
            x, d = rows[row, column], step[row, column]
            low, high = (
                np.broadcast_to(each, rows.shape)[row, column] for each in (low, high)
            )
            ratio = np.where(d != 0, (np.where(d > 0, high, low) - x) / d, np.inf)
            np.minimum.at(room, row, ratio)
        for start in range(0, len(orders), 64):
            p, q = orders[start : start + 64].T
            closing = step[:, p] - step[:, q]
            ratio = np.where(closing > 0, (rows[:, q] - rows[:, p]) / closing, np.inf)
            room = np.minimum(room, np.nanmin(ratio, axis=1, initial=np.inf))
    return np.maximum(room, 0)


def reflect(rows, low, high):
    """Reflect values once at the bound that they exceed, then clip, in place.

    Clipping without reflection would collect values on the bound, where a tree
    separates them from the other rows.
    """
    where = nonzero_cells((rows < low) | (rows > high))
    if not len(where[0]):
        return
    low = np.broadcast_to(low, rows.shape)[where]
    high = np.broadcast_to(high, rows.shape)[where]
    x = rows[where]
    with np.errstate(over="ignore"):
        x = np.where(x < low, low + (low - x), x)
        x = np.where(x > high, high + (high - x), x)
    rows[where] = np.clip(x, low, high)


def _columns_kept(cells, columns):
    """Return sparse rows (m, D) with the cells of a mask (D,) of columns only."""
    kept = cells.copy()
    kept.data *= columns[kept.indices]
    kept.eliminate_zeros()
    return kept


# --- cells that are not mixed -----------------------------------------------------


def _filled(cells, relations):
    """Return rows (m, D) without missing cells, and the mask of absent cells.

    Missing cells and atoms, which are shared values that new rows copy unchanged, are
    absent: they are not mixed. Columns in equalities have no atoms.
    """
    absent = np.isnan(cells)
    for column, values in relations.columns.atoms.items():
        if relations.copies_atoms[column]:
            absent[:, column] |= np.isin(cells[:, column], values)
    if not absent.any():
        return cells, None
    rows = np.where(absent, np.nan, cells)
    lost = np.isnan(rows).all(axis=0)
    rows[:, lost] = 0
    # With a middle value, the other cells decide which rows are near.
    middle = np.nanpercentile(rows, 50, axis=0, method="lower")
    return np.where(np.isnan(rows), middle, rows), absent


def _limits_of_rows(cells, strata, sides, relations):
    """Return the number (m,) of the bounds of each row, and bounds (2, s, D), or None.

    Integer columns of rows that are only mixed with rows with the same missing cells
    stay within the range of these rows: the age of a child is present only if there are
    more than 0 children. Columns with separate ranges stay on the side of the row.
    """
    has_missing = not issparse(cells) and np.isnan(cells).any()
    if not has_missing and sides is None:
        return None
    number = np.zeros(cells.shape[0], int)
    bounds = relations.columns.low, relations.columns.high
    limits = np.stack([np.tile(bound, (len(strata), 1)) for bound in bounds])
    for s, (indices, partners) in enumerate(strata if has_missing else ()):
        number[indices] = s
        # Only rows that are mixed with each other have a range of their own.
        if indices is partners:
            bounds = np.fmin.reduce(cells[indices]), np.fmax.reduce(cells[indices])
            c = np.flatnonzero((relations.columns.steps > 0) & ~np.isnan(bounds[0]))
            limits[:, s, c] = np.stack(bounds)[:, c]
    if sides is not None:
        stratum, (side, bounds) = number, sides
        number = group_numbers(np.column_stack([stratum, side]))
        first = np.unique(number, return_index=True)[1]
        limits, bounds = limits[:, stratum[first]], bounds[:, side[first]]
        np.maximum(limits[0], bounds[0], out=limits[0])
        np.minimum(limits[1], bounds[1], out=limits[1])
    return number, limits


def _given_with_categories(cells, relations, labels):
    """Return blocks of binary columns that are constant in each level of a category."""
    flags = np.nan_to_num(cells[:, relations.columns.binary], nan=-np.inf)
    given = set()
    for levels in () if labels is None else labels.T:
        _, first, level = np.unique(levels, return_index=True, return_inverse=True)
        alike = (flags == flags[first][level.reshape(-1)]).all(axis=0)
        given |= {*relations.blocks} - {*relations.blocks[~alike]}
    return tuple(sorted(given))


def zero_sum_weights(parents, noise, m, rng):
    """Draw weights (n, m) that sum to 0 in each row: noise shaped like a neighbourhood.

    The noise of a row is the sum of normal weights times the deviations of the row and
    its k neighbours from their mean. Its covariance is k / 2 times the mean, over all
    pairs of these rows, of the outer product of their difference.
    """
    n, k = len(parents.base_rows), parents.neighbors.shape[1] - 1
    z = rng.standard_normal((n, k + 1))
    z -= z.mean(axis=1, keepdims=True)
    z *= noise * np.sqrt(2 / k)
    near = parents.neighbors[parents.source]
    indptr = np.arange(0, n * (k + 1) + 1, k + 1)
    return csr_array((z.ravel(), near.ravel(), indptr), (n, m))
