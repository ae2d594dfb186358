"""Choose the parents of new rows: base rows, neighbours and positions between them."""

from dataclasses import dataclass

import numpy as np

from .._utils.arrays import take, take_cells, to_host
from ..columns.discrete import group_numbers


@dataclass(frozen=True)
class Parents:
    """The training rows from which new rows (n,) are made.

    Attributes
    ----------
    base_rows, second : ndarray of int of shape (n,)
        The base row i and the second parent j of each new row.
    position : ndarray of shape (n,)
        The position t between the parents, from 0 at the base row to 1 at the second
        parent.
    neighbors : ndarray of int of shape (n_sources, 1 + k)
        The distinct base rows and their neighbours, which shape the noise.
    source : ndarray of int of shape (n,)
        The row of ``neighbors`` that belongs to each new row.
    mutual : ndarray of bool of shape (n_sources, 1 + k) or None
        Whether each of ``neighbors`` has the base row among its own neighbours. Only
        such rows may give the cells that are not mixed, which preserves the frequencies
        of rare values.
    """

    base_rows: np.ndarray
    second: np.ndarray
    position: np.ndarray
    neighbors: np.ndarray
    source: np.ndarray
    mutual: np.ndarray | None = None

    def __getitem__(self, rows):
        drawn = self.base_rows[rows], self.second[rows], self.position[rows]
        return Parents(*drawn, self.neighbors, self.source[rows], self.mutual)

    @property
    def is_mutual(self):
        """Whether each second parent (n,) has the base row as a neighbour, or None."""
        if self.mutual is None:
            return None
        return (self.givers() == self.second[:, None]).any(axis=1)

    def givers(self, alike=None):
        """Return the rows (n, 1 + k) that may give cells; the base row for the others.

        A giver is a mutual neighbour with the number of the base row in ``alike``.
        """
        near, own, may_give = self.neighbors, self.neighbors[:, :1], self.mutual
        if alike is not None:
            may_give = may_give & (alike[near] == alike[own])
        return np.where(may_give, near, own)[self.source]


def choose_parents(search, request, rng, n_candidates=None):
    """Choose the parents of the new rows of a :class:`Request`.

    Parameters
    ----------
    search : object
        Neighbour search with ``nearest(rows, k, among, n_jobs)``. Its attributes
        ``rows`` and ``labels`` are equal for copies of a row.
    request : Request
    rng : RandomState
    n_candidates : int or None
        Number of random rows among which neighbours are searched; None for all rows.

    Returns
    -------
    parents : Parents
    """
    n, m = request.n_samples, search.rows.shape[0]
    base_rows, shares = request.base_rows, request.shares
    if base_rows is None:
        p = None if shares is None else shares / shares.sum()
        base_rows = rng.choice(m, size=n, p=p)
    among = choose_candidates(m, n_candidates, rng)
    k = max(1, min(request.n_neighbors, m - 1))
    near = _Neighbors(search, k, among, request, rng)
    neighbors, source = near.of(base_rows)
    second = neighbors[source, 1 + rng.randint(k, size=n)]
    position = rng.uniform(size=n)
    if request.base_rows is not None:
        position /= 2
    mutual = near.are_mutual(neighbors) if request.mutual else None
    return Parents(base_rows, second, position, neighbors, source, mutual)


def choose_candidates(m, n_candidates, rng):
    """Choose rows among which neighbours are searched; None for all m rows."""
    if n_candidates is None or n_candidates >= m:
        return None
    return rng.choice(m, n_candidates, replace=False)


def choose_donors(parents, mixable, coins):
    """Choose the training rows that give the cells that are not mixed.

    The donor gives the categories, the missing cells, the atoms and block 0 of the
    binary columns. The donor is the second parent with the probability of its weight,
    if the second parent is alike and a mutual neighbour. A random row among the base
    row and such neighbours gives each other block of binary columns.

    Parameters
    ----------
    parents : Parents
    mixable : MixableRows
    coins : RandomState or None

    Returns
    -------
    donors : ndarray of int of shape (n,)
    givers : ndarray of int of shape (n, n_blocks) or None
        The training row that gives each block of binary columns.
    """
    i, j = parents.base_rows, parents.second
    if parents.mutual is None:
        return i, None
    n, k = len(i), parents.neighbors.shape[1]
    # 16 random bits are enough for a few neighbours, and take half of the time.
    bits = 16 if k < 2**8 else 32
    coin = _random_integers(coins, n, 1 + max(mixable.blocks, default=0), bits)
    near = parents.givers(mixable.alike)
    may_give = (near == j[:, None]).any(axis=1)
    donors = np.where(may_give & (coin[:, 0] < parents.position * 2**bits), j, i)
    if not len(mixable.blocks):
        return donors, None
    place = (coin.astype(np.int64) * k) >> bits
    givers = take_cells(near, np.arange(n)[:, None], place)
    givers[:, 0] = donors
    return donors, givers


def _random_integers(rng, n, width, bits):
    """Return random integers (n, width) of 16 or 32 bits.

    The bytes of a row are a multiple of 4, the size of the generator's numbers, so that
    the integers are the same for every size of a batch.
    """
    even = width + width % 2
    values = np.frombuffer(rng.bytes(n * even * bits // 8), f"<u{bits // 8}")
    return values.reshape(n, even)[:, :width]


class _Neighbors:
    """Neighbours of training rows, which are searched when they are first needed."""

    def __init__(self, search, k, among, request, rng):
        self.search, self.k, self.among, self.rng = search, k, among, rng
        self.m = m = search.rows.shape[0]
        self.strata = request.strata or [(np.arange(m), None)]
        self.mutual, self.n_jobs = request.mutual, request.n_jobs
        self._near = np.empty((m, k), np.intp)
        self._is_known = np.zeros(m, bool)

    def of(self, rows):
        """Return distinct rows with neighbours (s, 1 + k), and their places (n,)."""
        is_wanted = np.bincount(rows, minlength=self.m) > 0
        unknown = is_wanted & ~self._is_known
        for members, others in self.strata:
            new = members[unknown[members]]
            if self.mutual and 4 * len(new) > len(members):
                # The other members will be parents: one search is cheaper than two.
                new = members[~self._is_known[members]]
            if len(new):
                among = self.among if others is None else others
                if others is not None and self.among is not None:
                    candidates = others[np.isin(others, self.among)]
                    among = candidates if len(candidates) > self.k else others
                self._near[new] = self._partners(new, among)
                self._is_known[new] = True
        sources, place = np.flatnonzero(is_wanted), np.cumsum(is_wanted) - 1
        return np.column_stack([sources, self._near[sources]]), place[rows]

    def _partners(self, rows, among):
        """Return the nearest other rows (len(rows), k) of training rows.

        If there are fewer than k other rows, they are repeated. If there is no other
        row, the only candidate is repeated, or the row itself.
        """
        k, n = self.k, self.m if among is None else len(among)
        n_near = max(0, min(k, n - 1))
        if n_near == 0:
            only = rows if among is None or not len(among) else among
            return np.full((len(rows), k), only[:, None])
        near = self.search.nearest(rows, n_near + 1, among, self.n_jobs)
        # Drop the row itself. If it is not in the list, because copies rank before it
        # or it is no candidate, drop the farthest row.
        itself = near == rows[:, None]
        itself[~itself.any(axis=1), -1] = True
        near = near[~itself].reshape(len(rows), n_near)
        if among is None and n_near == k:
            near = self._shuffle_ties(rows, near)
        return near if n_near == k else near[:, np.arange(k) % n_near]

    def _shuffle_ties(self, rows, near):
        """Choose neighbours at random among more than k copies of a row.

        A search would return the same few copies for all rows.
        """
        if self.k >= self.m - 1:
            return near
        keys, labels = self.search.rows, self.search.labels
        alike = take(keys, rows) == take(keys, near[:, -1])
        crowded = to_host(alike).all(axis=1)
        if not crowded.any():
            return near
        keys = to_host(keys)
        group = group_numbers(keys if labels is None else np.hstack([keys, labels]))
        order, size = np.argsort(group, kind="stable"), np.bincount(group)
        start = np.cumsum(size) - size
        for i in np.flatnonzero(crowded):
            copies = group[rows[i]]
            if size[copies] <= self.k + 1:
                continue
            members = order[start[copies] : start[copies] + size[copies]]
            ahead = 1 + self.rng.choice(len(members) - 1, self.k, replace=False)
            near[i] = members[(members.searchsorted(rows[i]) + ahead) % len(members)]
        return near

    def are_mutual(self, neighbors):
        """Return the mask (s, 1 + k) of neighbours that have the row as a neighbour.

        ``neighbors`` are rows with their neighbours. Rows outside a sample of
        candidates count as neighbours.
        """
        own = neighbors[:, 0]
        mutual = neighbors == own[:, None]
        if self.among is not None:
            mutual |= ~np.isin(own, self.among)[:, None]
        others, place = self.of(neighbors.ravel())
        place = place.reshape(neighbors.shape)
        for k in range(1, neighbors.shape[1]):
            near = others[place[:, k], 1:]
            mutual[:, k] |= (near == own[:, None]).any(axis=1)
        return mutual
