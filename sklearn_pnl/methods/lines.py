"""New rows on straight lines between neighbouring rows, in the units of the rows.

The code of a row is the row itself (the base is the whole manifold):

    row         x_i            a point of the m-flat manifold of all rows
    mixed row   x_i + t (x_j - x_i), 0 <= t <= 1, on the m-geodesic from x_i to x_j
    noise       sum_a z_a (x_a - x_i), z_a normal, over the neighbours x_a of x_i

Two theorems follow from this form. A mixed row is a convex combination of training
rows. It therefore satisfies every linear equality and inequality that the training rows
satisfy, and stays within the bounds of the columns. A row with noise is an affine
combination of training rows, and satisfies every linear equality of the training rows.

Noise can exceed bounds and violate inequalities of columns. The steps of
``columns/repair`` prevent this: the noise of columns in relations is shortened, and the
other columns are reflected at their bounds. A change of a single column preserves only
known equalities (``columns/relations.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator

from .._utils.arrays import dense, slices
from .._utils.validation import NOT_NEGATIVE, TWO_OR_MORE
from ..columns.repair import Batch
from ..encoding.k_neighbors import clip_neighbors, default_k_neighbors
from ..encoding.table_neighbors import RowSearch
from .parents import choose_donors, choose_parents
from .source import Source


class Lines(BaseEstimator):
    """Generate rows on straight lines between neighbouring rows, with local noise.

    This is the method for tables: :class:`PNLAugmenter` with ``method="lines"``. Each
    new row mixes a random training row and one of its nearest neighbours at a uniform
    position. Noise is then added: a normal combination of the differences between the
    neighbours and the row. The covariance of the noise is ``noise ** 2`` times the mean
    outer product of these differences. The noise thus has the size and the shape of the
    data in the neighbourhood. A cell in which both parents agree has no noise if its
    column is in no equality, so that frequent values stay frequent. Binary columns are
    copied from a random row among the row and its neighbours. A neighbour gives values
    only if the row is among its own neighbours, so that rare values stay as frequent.
    Columns with a combination of values that is in no row are copied from the same row.
    Rows with more than one axis are flattened.

    Affine combinations of training rows satisfy all linear equalities of the training
    rows. However, bounds, rounding, binary columns and cells without noise change
    single columns. New rows then satisfy only the equalities that were found or given.

    Parameters
    ----------
    noise : float, default=0.6
        Standard deviation of the noise, relative to the differences between neighbours.
        A larger value spreads new rows farther from the line between the two parents.
        With ``1 / sqrt(6)``, about 0.41, the noise would restore the covariance if
        second parents had the distribution of the base rows. The default is larger,
        because neighbours lie nearer to the centre, and because bounds and agreed cells
        reduce the noise. 0 gives rows on the line.

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
        "n_candidates": [TWO_OR_MORE, None],
    }
    # Rows may have missing cells and negative values; atoms are copied from a parent.
    allows_missing, positive_only, copies_atoms = True, False, True

    def __init__(
        self,
        noise: float = 0.6,
        *,
        n_candidates: int | None = 2**14,
    ) -> None:
        self.noise = noise
        self.n_candidates = n_candidates

    def count_neighbors(self, k_neighbors: Any, m: int, data_name: str) -> int:
        """Return the number of neighbours for a class with m rows."""
        k = default_k_neighbors(m) if k_neighbors == "auto" else k_neighbors
        return clip_neighbors(k, m, True, data_name)

    def fit(
        self,
        mixable: Any,
        n_neighbors: int,
        n_jobs: int | None = None,
        caller: str = "Lines",
    ) -> LineSource:
        """Return the source of new rows that resemble training rows.

        The estimators call this method.

        Parameters
        ----------
        mixable : MixableRows
            Training rows.
        n_neighbors : int
            Number of neighbours among which the second parent is chosen.
        n_jobs, caller
            Not used; other methods need them.

        Returns
        -------
        source : LineSource
        """
        rows, binary = mixable.rows, mixable.binary
        if not mixable.is_large:
            # The searches of dense and sparse rows differ by rounding, which can
            # decide ties.
            rows = dense(rows)
        search = RowSearch(rows, mixable.labels, binary)
        return LineSource(mixable, search, n_neighbors, self)


@dataclass(frozen=True)
class LineSource(Source):
    """Source of new rows on straight lines between the rows of a class.

    Attributes
    ----------
    mixable : MixableRows
        Training rows (m, D), dense or sparse.
    search : RowSearch
        Search for the neighbours of a row.
    n_neighbors : int
    settings : Lines
        The parameters of the method.
    """

    mixable: Any
    search: Any
    n_neighbors: int
    settings: Lines

    is_affine = has_base_rows = takes_shares = True

    @property
    def n_cells(self):
        """The number of computed cells of a new row.

        For sparse rows, the mean number of nonzero cells in a row and its neighbours.
        """
        rows = self.mixable.rows
        if issparse(rows):
            return 1 + int(np.diff(rows.indptr).mean() * (1 + self.n_neighbors))
        return rows.shape[1]

    @property
    def n_numbers(self):
        """The number of other values that a new row needs while it is computed."""
        return self.n_cells + self.n_neighbors

    def training_rows(self):
        """Return the training rows (m, D) as a dense array."""
        return dense(self.mixable.rows)

    def batches(self, request, rng, size):
        """Yield batches of ``size`` new rows, whose noise is not yet added."""
        parents = choose_parents(self.search, request, rng, self.settings.n_candidates)
        seed = rng.randint(np.iinfo(np.int32).max)
        # A generator takes a twentieth of the time of a small table.
        coins = RandomState(seed) if request.mutual else None
        for block in slices(request.n_samples, size):
            drawn = parents[block]
            donors, givers = choose_donors(drawn, self.mixable, coins)
            values, noise = self.mix(drawn, donors, rng)
            pairs = np.column_stack([drawn.base_rows, drawn.second])
            t = drawn.position[:, None]
            weights, indices = np.hstack([1 - t, t]), np.arange(block.start, block.stop)
            yield Batch(values, pairs, weights, donors, noise, givers, indices)

    def mix(self, parents, donors, rng):
        """Return mixed rows (n, D) and their noise (n, D), which can be None."""
        rows, t = self.mixable.rows, parents.position
        if not self._is_mixed:
            return rows[parents.base_rows], None
        mixed, difference = rows[parents.base_rows], rows[parents.second]
        if issparse(rows):
            difference = difference - mixed
            step = difference.copy()
            step.data *= np.repeat(t, np.diff(step.indptr))
            return mixed + step, self.noise(parents, donors, difference, rng)
        difference -= mixed
        noise = self.noise(parents, donors, difference, rng)
        difference *= t[:, None]
        mixed += difference
        return mixed, noise

    def noise(self, parents, donors, difference, rng):
        """Return noise (n, D) with the shape of the neighbourhoods, or None."""
        rows, absent = self.mixable.rows, self.mixable.absent
        if self.settings.noise == 0 or parents.neighbors.shape[1] == 1:
            return None
        weights = noise_weights(parents, self.settings.noise, rows.shape[0], rng)
        noise = weights @ rows
        if issparse(rows):
            return noise.multiply(difference != 0)
        if absent is not None:
            # sum z_a (x_a - x_d) over the present cells; d is the donor.
            c = np.flatnonzero(absent.any(axis=0))
            present = 1.0 - absent[:, c]
            noise[:, c] = weights @ (rows[:, c] * present)
            noise[:, c] -= (weights @ present) * rows[np.ix_(donors, c)]
            noise[:, c] *= present[donors]
        noise[(difference == 0) & self.mixable.single] = 0
        return noise

    @cached_property
    def _is_mixed(self):
        """Whether a column varies that is not copied, as all binary columns are."""
        rows, binary = self.mixable.rows, self.mixable.binary
        if issparse(rows) or binary is None:
            return True
        return bool((rows[:, ~binary] != rows[0, ~binary]).any())


def noise_weights(parents, noise, m, rng):
    """Draw weights (n, m) of training rows that give noise shaped like a neighbourhood.

    The noise of a row is a normal combination of the differences between its k
    neighbours and the row. Its covariance is ``noise ** 2`` times the mean outer
    product of these differences. The weights of a row sum to 0, so that a row with
    noise is an affine combination of training rows.
    """
    n, k = len(parents.base_rows), parents.neighbors.shape[1] - 1
    z = np.empty((n, 1 + k))
    z[:, 1:] = rng.standard_normal((n, k)) * (noise / np.sqrt(k))
    z[:, 0] = -z[:, 1:].sum(axis=1)
    near = parents.neighbors[parents.source]
    indptr = np.arange(0, n * (k + 1) + 1, k + 1)
    return csr_array((z.ravel(), near.ravel(), indptr), (n, m))
