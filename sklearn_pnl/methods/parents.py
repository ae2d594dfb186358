"""Choose the parents of new rows: base rows, neighbours and positions between them."""

from dataclasses import dataclass

import numpy as np

from .._utils.arrays import take, to_host
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
    mutual : ndarray of bool of shape (n,) or None
        Whether the base row is among the neighbours of the second parent. Only then the
        second parent may give the cells that are not mixed, which preserves the
        frequencies of rare values.
    """

    base_rows: np.ndarray
    second: np.ndarray
    position: np.ndarray
    neighbors: np.ndarray
    source: np.ndarray
    mutual: np.ndarray | None = None

    def __getitem__(self, rows):
        mutual = None if self.mutual is None else self.mutual[rows]
        drawn = self.base_rows[rows], self.second[rows], self.position[rows]
        return Parents(*drawn, self.neighbors, self.source[rows], mutual)


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
    among = None
    if n_candidates is not None and n_candidates < m:
        among = rng.choice(m, n_candidates, replace=False)
    k = max(1, min(request.n_neighbors, m - 1))
    near = _Neighbors(search, k, among, request, rng)
    neighbors, source = near.of(base_rows)
    second = neighbors[source, 1 + rng.randint(k, size=n)]
    position = rng.uniform(size=n)
    if request.base_rows is not None:
        position /= 2
    is_mutual = near.are_mutual(base_rows, second) if request.mutual else None
    return Parents(base_rows, second, position, neighbors, source, is_mutual)


def choose_donors(parents, mixable, coins):
    """Choose the parent of each new row that gives the cells that are not mixed.

    The donor gives the categories, the missing cells and the atoms. Each block of
    binary columns is copied from one parent as well. The second parent is chosen with
    the probability of its weight, if it is alike and a mutual neighbour.

    Parameters
    ----------
    parents : Parents
    mixable : MixableRows
    coins : RandomState or None

    Returns
    -------
    donors : ndarray of int of shape (n,)
    from_second : ndarray of bool of shape (n, n_blocks) or None
        Whether the second parent gives each block of binary columns.
    """
    i, j = parents.base_rows, parents.second
    if parents.mutual is None:
        return i, None
    coin = coins.uniform(size=(len(i), 1 + max(mixable.blocks, default=0)))
    gives = (coin < parents.position[:, None]) & parents.mutual[:, None]
    if mixable.alike is not None:
        gives[mixable.alike[i] != mixable.alike[j]] = False
    return np.where(gives[:, 0], j, i), gives


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

    def are_mutual(self, base_rows, second):
        """Return the mask (n,) of base rows that are near their second parents.

        Rows outside a sample of candidates count as neighbours.
        """
        neighbors, source = self.of(second)
        near = (neighbors[source, 1:] == base_rows[:, None]).any(axis=1)
        near |= base_rows == second
        if self.among is not None:
            near |= ~np.isin(base_rows, self.among)
        return near
