"""Posets from taxonomies: totals of groups, and proportions inside of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .constructions import tree_poset
from .masks import check_unmasked
from .posets import Poset, float_type

_RANKS = "domain", "kingdom", "phylum", "class", "order", "family", "genus", "species"


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """A poset over features, and the taxa that they belong to at each rank.

    Made by :func:`taxonomy_poset`.

    Parameters
    ----------
    poset : Poset
        A tree whose elements are the features, in their order.
    features : tuple of str or None
        Names of the features, where they are known.
    ranks : tuple of str
        From the highest to the lowest.
    taxa : tuple of tuple of str
        For each rank the names of its taxa.
    members : ndarray of int of shape (n_ranks, n_features)
        The number of the taxon of each feature at each rank.

    See Also
    --------
    taxonomy_poset : A hierarchy from lineages.
    tree_poset : A hierarchy of features.
    """

    poset: Poset
    features: tuple | None
    ranks: tuple
    taxa: tuple
    members: np.ndarray

    def __repr__(self):
        shown = ", ".join(
            f"{rank}: {len(taxa)}"
            for rank, taxa in zip(self.ranks, self.taxa, strict=True)
        )
        return f"Taxonomy({self.members.shape[1]} features; {shown})"

    def base(self, rank: str) -> NDArray:
        """Elements that are free if the totals at a rank vary, and nothing else.

        Their eta decides the totals of all taxa of that rank, and is decided by them;
        theta of all others are log ratios of features inside of a taxon.

        Parameters
        ----------
        rank : str

        Returns
        -------
        elements : ndarray of int
            The first feature of each taxon, but for the bottom. For ``base`` and
            ``local_base`` of the estimators.
        """
        # Features below others come before them.
        position = np.diff(self.poset.zeta_matrix.indptr)
        first = _first_members(self.members[self._level(rank)], position)
        return np.setdiff1d(first, self.poset.bottom)

    def totals(self, X: ArrayLike, rank: str) -> NDArray:
        """Sums of the cells of each taxon of a rank.

        Parameters
        ----------
        X : array-like of shape (..., n_features)
        rank : str

        Returns
        -------
        totals : ndarray of shape (..., n_taxa)
            In the order of ``taxa``.
        """
        members = self.members[self._level(rank)]
        check_unmasked(X)
        X = np.asarray(X)
        if X.shape[-1:] != members.shape:
            raise ValueError(
                f"X must have shape (..., {len(members)}), a cell for each feature; "
                f"got {X.shape}."
            )
        # Small integers overflow.
        X = X.astype(np.int64 if X.dtype.kind in "biu" else float_type(X))
        return X @ np.equal.outer(members, np.unique(members))

    def _level(self, rank):
        if rank not in self.ranks:
            raise ValueError(f"There is no rank {rank!r}; the ranks are {self.ranks}.")
        return self.ranks.index(rank)


def taxonomy_poset(
    lineages: Sequence,
    *,
    separator: str = ";",
    ranks: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    abundances: ArrayLike | None = None,
) -> Taxonomy:
    r"""Poset in which the totals of taxa are coordinates, from their lineages.

    The first feature of each taxon lies below the others of it, and the very first
    below all. So ``eta`` of a feature is the total of the largest taxon in which it is
    the first, and ``theta`` the logarithm of its ratio to the first of the next larger
    one. With :meth:`Taxonomy.base` of a rank as the base of an estimator, codes are the
    totals at that rank, and the proportions inside of its taxa come from near rows.
    A row has a cell for each feature and none for taxa.

    Parameters
    ----------
    lineages : sequence of str, or sequence of sequence of str
        The taxa of each feature, from the highest rank to the lowest, such as
        "k__Bacteria; p__Firmicutes; f__Lachnospiraceae".
    separator : str, default=";"
        What stands between two ranks of a string.
    ranks : sequence of str, default=None
        Names of the ranks. None reads prefixes such as "k\_\_" and "p\_\_", if all
        lineages have them, or else calls them "level 1", "level 2", ...
    features : sequence of str, default=None
        Names of the features.
    abundances : array-like of shape (n_features,), default=None
        The most abundant feature of each taxon is its first, to which logarithms of
        ratios refer; None is the one listed first. It changes coordinates alone, not
        what a projection keeps.

    Returns
    -------
    taxonomy : Taxonomy
        With ``poset``, ``base(rank)`` and ``totals(X, rank)``.

    Raises
    ------
    ValueError
        For no or an empty lineage, a rank that is missing, a taxon with two parents,
        and numbers of ranks, features or abundances that do not fit.

    See Also
    --------
    Taxonomy : A poset with names of taxa.
    tree_poset : A hierarchy of features.

    Notes
    -----
    Two taxa of a rank may not have the same name, unless it is a prefix without a name,
    such as "g\_\_": then there is one for each parent.

    Examples
    --------
    >>> from sklearn_pnl.geometry import taxonomy_poset
    >>> taxonomy = taxonomy_poset(["p__A;f__a", "p__A;f__a", "p__A;f__b", "p__B;f__c"])
    >>> taxonomy
    Taxonomy(4 features; phylum: 2, family: 3)
    >>> taxonomy.base("family")
    array([2, 3])
    >>> taxonomy.poset.eta([0.1, 0.2, 0.3, 0.4])
    array([1. , 0.2, 0.3, 0.4])

    Feature 0 stands for all, 2 for family b and 3 for c; what is left is a. As an
    estimator takes it: ``PNLSampler(poset=taxonomy.poset, base=taxonomy.base("family"),
    embedding=None)``.
    """
    paths = _split(lineages, separator)
    features = None if features is None else tuple(features)
    if features is not None and len(features) != len(paths):
        raise ValueError(
            f"There are {len(paths)} lineages, but {len(features)} names of features."
        )
    ranks = _name_ranks(paths, ranks)
    taxa, members = _number_taxa(paths, ranks)
    position = _positions(abundances, len(paths))
    feature = np.arange(len(paths))
    parents = np.full(len(paths), -1)
    # The smallest taxon in which a feature is not the first is the last to set it.
    for member in np.vstack([0 * feature, members]):
        first = _first_members(member, position)[member]
        parents = np.where(first != feature, first, parents)
    return Taxonomy(tree_poset(parents), features, ranks, taxa, members)


def _first_members(member, position):
    """The first feature of each taxon, by position and then by number."""
    order = np.lexsort((position, member))
    return order[np.unique(member[order], return_index=True)[1]]


def _positions(abundances, n_features):
    if abundances is None:
        return np.arange(n_features)
    abundances = np.asarray(abundances, dtype=np.float64)
    if abundances.shape != (n_features,) or np.isnan(abundances).any():
        raise ValueError(
            f"abundances must be a number for each of {n_features} features, as the "
            f"sums of a table's columns are; got shape {abundances.shape}, "
            f"{np.isnan(abundances).sum()} of them missing."
        )
    return -abundances


def _split(lineages, separator):
    if isinstance(lineages, str | Mapping) or hasattr(lineages, "columns"):
        raise ValueError(
            "lineages must be one for each feature; got a single string, a dict or a "
            "data frame, which lists its columns. Pass its rows, lineages.to_numpy()."
        )
    paths = []
    for feature, lineage in enumerate(lineages):
        names = lineage.split(separator) if isinstance(lineage, str) else lineage
        if not np.iterable(names) or not all(isinstance(name, str) for name in names):
            raise ValueError(
                f"The lineage of feature {feature} must be a string or a sequence of "
                f"strings; got {lineage!r}."
            )
        path = tuple(name.strip() for name in names)
        if not any(path):
            raise ValueError(f"The lineage of feature {feature} is empty.")
        paths.append(path)
    if not paths:
        raise ValueError("There is no lineage: a taxonomy needs a feature.")
    longest = max(map(len, paths))
    for feature, path in enumerate(paths):
        missing = [rank for rank, taxon in enumerate(path) if not taxon]
        if len(path) < longest or missing:
            rank = min([*missing, len(path)])
            raise ValueError(
                f"The lineage of feature {feature}, {path}, has no taxon at rank "
                f"{rank + 1} of {longest}. Name one for each rank, for instance "
                "'unclassified' and the name of its parent."
            )
    return paths


def _name_ranks(paths, ranks):
    n_ranks = len(paths[0])
    if ranks is None:
        prefixes = [{_prefix(path[rank]) for path in paths} for rank in range(n_ranks)]
        known = {rank[0]: rank for rank in _RANKS}
        read = [known.get(min(p)) if len(p) == 1 else None for p in prefixes]
        if None in read or len(set(read)) < n_ranks:
            read = [f"level {rank + 1}" for rank in range(n_ranks)]
        return tuple(read)
    ranks = (ranks,) if isinstance(ranks, str) else tuple(ranks)
    if len(ranks) != n_ranks or len(set(ranks)) != n_ranks:
        raise ValueError(
            f"ranks must be {n_ranks} different names, as many as the lineages have; "
            f"got {ranks}."
        )
    return ranks


def _prefix(name):
    """What stands before two underscores, in lower case; else nothing."""
    head, found, _ = name.partition("__")
    return head.strip().lower() if found else ""


def _number_taxa(paths, ranks):
    """Names of the taxa of each rank, and the number of that of each feature."""
    taxa, members = [], np.empty((len(ranks), len(paths)), int)
    for level, rank in enumerate(ranks):
        numbers, parents = {}, {}
        for feature, path in enumerate(paths):
            name, above = path[level], path[:level]
            known = parents.setdefault(name, above)
            if known != above and not name.endswith("__"):
                first, second = (" > ".join(path) for path in (known, above))
                raise ValueError(
                    f"The {rank} {name!r} has two parents, {first!r} and {second!r} "
                    f"(feature {feature}). Give two taxa two names."
                )
            members[level, feature] = numbers.setdefault((*above, name), len(numbers))
        taxa.append(tuple(path[-1] for path in numbers))
    return tuple(taxa), members
