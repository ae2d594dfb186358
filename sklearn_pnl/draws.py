"""Ways to draw new codes.

A new one is a class here and an entry in :data:`DRAWS`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods, StrOptions

from ._runtime.validation import COUNT, NOT_NEGATIVE, POSITIVE, TWO_OR_MORE, tells_where
from ._runtime.workspace import take
from .control.conditioning import Condition

# An estimator of densities is any object with `fit` and `sample`.
_DENSITY = HasMethods(["fit", "sample"])


@dataclass(frozen=True)
class TrainingCodes:
    """What codes are drawn from.

    Attributes
    ----------
    codes : ndarray of shape (n, n_params)
    n_neighbors : int
        How many near rows count.
    nearest : callable
        ``nearest(codes, k, among, like)``: the k training rows nearest to each,
        ascending; of all (None) or of some. Where rows have categories, codes have
        those of the training rows ``like``, or none (None).
    copies : callable or None
        ``copies()``: numbers (n,) that rows which are alike share.
    shares : ndarray of shape (n,) or None
        How often each row is drawn from, relative to others; None is all alike.
    lacking : ndarray of bool of shape (n, n_params) or None
        Coordinates that say nothing, as those of a missing cell: a partner gives them.
    firsts : ndarray of int of shape (n_samples,) or None
        The rows that new ones start from, where that is known.
    gaps : callable or None
        ``gaps(rows, *others)``: how far (m,) others are from training rows, each, if
        new rows have cells, categories or one of two values of a parent as they are.
    of_two : ndarray of int of shape (c,) or None
        Coordinates that have one of two values, which is that of a parent.
    """

    codes: np.ndarray
    n_neighbors: int
    nearest: Callable
    copies: Callable | None = None
    shares: np.ndarray | None = None
    lacking: np.ndarray | None = None
    firsts: np.ndarray | None = None
    gaps: Callable | None = None
    of_two: np.ndarray | None = None

    def some_rows(self, n_samples, rng):
        """Random rows, as often as their shares say."""
        if self.firsts is not None and n_samples == len(self.firsts):
            return self.firsts
        n = len(self.codes)
        if self.shares is None:
            return rng.randint(n, size=n_samples)
        return rng.choice(n, size=n_samples, p=self.shares / self.shares.sum())

    def fair(self, rows, near, rng):
        """Partners where a row has more copies than partners: random ones of them.

        A search would give the same few to all.
        """
        k = near.shape[1]
        if self.copies is None or k >= len(self.codes) - 1:
            return near
        last = self.codes[near[:, -1]] == self.codes[rows]
        if not last.all(axis=1).any():
            return near
        group = self.copies()
        order, size = np.argsort(group, kind="stable"), np.bincount(group)
        start = np.cumsum(size) - size
        for i in np.flatnonzero(size[group[rows]] > k + 1):
            own = group[rows[i]]
            members = order[start[own] : start[own] + size[own]]
            # As far behind the row, around its group, as k others.
            ahead = 1 + rng.choice(len(members) - 1, k, replace=False)
            place = members.searchsorted(rows[i]) + ahead
            near[i] = members[place % len(members)]
        return near

    def partners(self, rows, among=None, k=None):
        """The nearest other rows (len(rows), k) of training rows; itself if alone."""
        n = len(self.codes) if among is None else len(among)
        k = min(k or self.n_neighbors, n - 1)
        if k == 0:
            return rows[:, None]
        near = self.nearest(self.codes[rows], k + 1, among, rows)
        # Copies of a row may rank before it: drop the row where it stands, else the
        # farthest.
        itself = near == rows[:, None]
        itself[~itself.any(axis=1), -1] = True
        return near[~itself].reshape(len(rows), k)

    def givers(self, rows, near, first, second, among=None):
        """The second rows (m,) where the first ones are near them too, else the first.

        So rows give as often as they take: by detailed balance over pairs that are near
        each other. Far ones, as those of rare levels are, would be partners of few.
        ``near`` are the partners of ``rows``, ascending ones; others are looked up.
        """
        more, k = np.setdiff1d(second, rows), near.shape[1]
        farthest = np.empty(len(self.codes), np.intp)
        farthest[rows] = near[:, -1]
        if len(more):
            farthest[more] = self.partners(more, among, k)[:, -1]
        back, last = self.gaps(second, first, farthest[second])
        return np.where(back <= last, second, first)


class Draws(BaseEstimator):
    """A way to draw codes, each decoded through the training rows nearest to it.

    See Also
    --------
    MixupDraws : Between two near rows, with local noise.
    KernelDraws : From a kernel density estimate, as in the paper.
    DensityDraws : From any density estimator.
    PNLAugmenter : One set of rows, without classes.
    """

    _parameter_constraints: ClassVar[dict] = {}

    # Whether near rows are looked up for every new code.
    looks_up = True

    def fit(self, codes: NDArray) -> Self:
        """Learn what is to be learnt from codes of shape (n, n_params)."""
        return self

    def start(
        self,
        training: TrainingCodes,
        n_samples: int,
        rng: RandomState,
        condition: Condition | None = None,
    ) -> Callable:
        """A function from slices of the new rows, in ascending order, to their codes.

        With the training rows that each is decoded from, and their weights; and, if not
        any of these may give it what cannot be mixed, as many that may. It may draw
        noise, in the order of the rows; all else is drawn here, so that the codes are
        the same for all ways to slice. A ``condition`` tells the values that new rows
        are to have; codes drawn without regard to it are moved farther in the end.
        """
        codes, k = training.codes, training.n_neighbors
        if training.shares is not None:
            codes = codes[training.some_rows(len(codes), rng)]
        draw = self._start(codes, n_samples, rng)

        def with_nearest(rows):
            codes = draw(rows)
            weights = np.full((len(codes), k), 1 / k)
            return codes, training.nearest(codes, k, None, None), weights

        return with_nearest

    def _start(self, codes, n_samples, rng):
        """A function from slices of the new rows to their codes alone."""
        raise NotImplementedError


@tells_where()
@dataclass(eq=False, repr=False)
class MixupDraws(Draws):
    """Between two near rows, on the e-geodesic, plus noise of the shape found there.

    A random row and a random one of its nearest are mixed in theta, at a uniform
    position ``t``, and decoded through the same position on the m-geodesic between
    the two: without noise the ends are the rows themselves. The noise is normal, with
    ``noise ** 2`` times the covariance of differences between rows among the first row
    and its nearest: it has the size and the shape that the data have there, and does
    not leak from one cluster into another. Where the two rows that are mixed agree
    there is none: zeros that they share, and indicators, stay as they are.

    Parameters
    ----------
    noise : float, default=0.41
        Standard deviation of the noise, that of differences being 1. Mixing takes a
        sixth of the covariance of differences away; ``1 / sqrt(6)`` gives it back.

    noise_neighbors : int, default=10
        How many near rows the noise has its shape from, and so in how many directions
        it goes; fewer are all used.

    n_candidates : int or None, default=16384
        Of more training rows, partners are the nearest among so many random ones: all
        rows are mixed, with partners no farther than in a smaller data set, in a time
        that does not grow with the square of their number. None looks among all.

    See Also
    --------
    KernelDraws : From a kernel density estimate, as in the paper.
    DensityDraws : From any density estimator.
    PNLAugmenter : One set of rows, without classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import MixupDraws, PNLAugmenter
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> PNLAugmenter(draws=MixupDraws(noise=0.35)).fit(X).sample(3).shape
    (3, 4)
    """

    noise: float = 0.41
    _: KW_ONLY
    noise_neighbors: int = 10
    n_candidates: int | None = 2**14

    _parameter_constraints: ClassVar[dict] = {
        "noise": [NOT_NEGATIVE],
        "noise_neighbors": [COUNT],
        "n_candidates": [TWO_OR_MORE, None],
    }

    looks_up = False

    def start(
        self,
        training: TrainingCodes,
        n_samples: int,
        rng: RandomState,
        condition: Condition | None = None,
    ) -> Callable:
        """See :class:`Draws`."""
        codes = np.ascontiguousarray(training.codes)
        group, which, second, position, giver = self._pairs(
            training, n_samples, rng, condition
        )
        lacking, of_two = training.lacking, training.of_two

        def between(rows):
            near = group[which[rows]]
            parents = np.column_stack([near[:, 0], second[rows]])
            weights = np.column_stack([1 - position[rows], position[rows]])
            mixed, added = (take(codes, own, axis=0) for own in parents.T)
            if lacking is not None:
                # What one lacks the other gives.
                np.copyto(mixed, added, where=lacking[parents[:, 0]])
                np.copyto(added, mixed, where=lacking[parents[:, 1]])
            added -= mixed
            if giver is not None and of_two is not None:
                # A value that is rare is given as often as it is taken.
                alone = np.flatnonzero(giver[rows] == parents[:, 0])
                added[np.ix_(alone, of_two)] = 0
            added *= weights[:, 1:]
            mixed += added
            if self.noise > 0:
                noise, still = self._noise(codes, near, rng, lacking), added == 0
                if lacking is not None:
                    still &= lacking[parents[:, 0]] == lacking[parents[:, 1]]
                if still.any():
                    np.copyto(noise, 0, where=still)
                mixed += noise
            if giver is None:
                return mixed, parents, weights
            return mixed, parents, weights, np.column_stack([near[:, 0], giver[rows]])

        return between

    def _pairs(self, training, n_samples, rng, condition):
        """What new rows are mixed from.

        Rows beside those that shape their noise (n, 1 + noise_neighbors), the numbers
        of those that are mixed, their partners, positions, and, if cells are given as
        they are, who beside the row may give them.
        """
        if condition is None:
            first = training.some_rows(n_samples, rng)
            # Numbers of rows need no sorting.
            there = np.bincount(first) > 0
            sources, which = np.flatnonzero(there), np.cumsum(there)[first] - 1
        else:
            sources = condition.sources()
        n, among = len(training.codes), None
        if self.n_candidates is not None and self.n_candidates < n:
            among = rng.choice(n, self.n_candidates, replace=False)
        k = training.n_neighbors
        near = training.partners(sources, among, max(k, self.noise_neighbors))
        group = np.column_stack([sources, near[:, : self.noise_neighbors]])
        partners = near[:, :k]
        if among is None:
            partners = training.fair(sources, partners, rng)
        if condition is None:
            second = partners[which, rng.randint(partners.shape[1], size=n_samples)]
            position = rng.uniform(size=n_samples)
            if training.firsts is not None:
                # Nearer to the row that was chosen than to its partner.
                position /= 2
        else:
            first, second, position = condition.pairs(sources, partners, n_samples, rng)
            which = np.searchsorted(sources, first)
        giver = None
        if training.gaps is not None and condition is None:
            giver = training.givers(sources, near[:, :k], first, second, among)
            if training.of_two is not None:
                # Numbers are nearer to the row whose values of two they come with.
                two = training.codes[:, training.of_two]
                differ = (two[first] != two[second]).any(axis=1)
                position = np.where(differ & (giver == first), position / 2, position)
        return group, which, second, position, giver

    def _noise(self, codes, near, rng, lacking=None):
        """Noise (b, n_params) of the shape of groups of rows (b, m).

        Normal numbers times the deviations of a group from its mean have as covariance
        their sum of squares: (m - 1) / 2 times the mean, over all pairs in the group,
        of the outer product of their difference. Of coordinates that some rows lack it
        is those of the others.
        """
        b, m = near.shape
        weights = rng.standard_normal((b, m))
        weights -= weights.mean(axis=1, keepdims=True)
        weights *= self.noise * np.sqrt(2 / (m - 1))
        starts = np.arange(0, b * m + 1, m)
        of_rows = csr_array((weights.ravel(), near.ravel(), starts), (b, len(codes)))
        noise = of_rows @ codes
        if lacking is not None:
            some = np.flatnonzero(lacking.any(axis=0))
            there = 1.0 - lacking[:, some]
            codes = codes[:, some] * there
            ones = csr_array((np.ones(b * m), near.ravel(), starts), of_rows.shape)
            count = np.maximum(ones @ there, 1)
            own = of_rows @ codes - (ones @ codes) / count * (of_rows @ there)
            noise[:, some] = own * np.sqrt((m - 1) / np.maximum(count - 1, 1))
        return noise


@tells_where()
@dataclass(eq=False, repr=False)
class KernelDraws(Draws):
    """From a Gaussian kernel density estimate in theta, as in the paper.

    Parameters
    ----------
    bandwidth : float, default=0.05
        Standard deviation of the noise in every coordinate of theta.

    See Also
    --------
    MixupDraws : Between two near rows, with local noise.
    DensityDraws : From any density estimator.

    References
    ----------
    P. Hu, M. Sugiyama, ICLR 2026, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import KernelDraws, PNLAugmenter
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> PNLAugmenter(draws=KernelDraws(bandwidth=0.1)).fit(X).sample(3).shape
    (3, 4)
    """

    bandwidth: float = 0.05

    _parameter_constraints: ClassVar[dict] = {"bandwidth": [POSITIVE]}

    def _start(self, codes, n_samples, rng):
        centre = rng.randint(len(codes), size=n_samples)

        def around(rows):
            centres = codes[centre[rows]]
            return centres + self.bandwidth * rng.standard_normal(centres.shape)

        return around


@tells_where()
@dataclass(eq=False, repr=False)
class DensityDraws(Draws):
    """From a density estimator fitted on the codes.

    Parameters
    ----------
    estimator : estimator
        With ``fit`` and ``sample``, such as :class:`~sklearn.mixture.GaussianMixture`
        or :class:`~sklearn.neighbors.KernelDensity`; cloned.

    Attributes
    ----------
    estimator_ : estimator
        Fitted.

    See Also
    --------
    MixupDraws : Between two near rows, with local noise.
    KernelDraws : From a kernel density estimate, as in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.mixture import GaussianMixture
    >>> from sklearn_pnl import PNLAugmenter
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> augmenter = PNLAugmenter(draws=GaussianMixture(2)).fit(X)
    >>> augmenter.draws_.estimator_.n_components
    2
    """

    estimator: Any

    _parameter_constraints: ClassVar[dict] = {"estimator": [_DENSITY]}

    def fit(self, codes: NDArray) -> Self:
        """See :class:`Draws`."""
        self.estimator_ = clone(self.estimator).fit(codes)
        return self

    def _start(self, codes, n_samples, rng):
        drawn = self._sample(n_samples, rng)
        drawn = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)
        expected = (n_samples, codes.shape[1])
        if drawn.shape != expected or not np.all(np.isfinite(drawn)):
            raise ValueError(
                f"{self.estimator_!r}.sample must return {expected[0]} finite codes of "
                f"length {expected[1]}; got an array of shape {drawn.shape}."
            )
        # GaussianMixture returns its draws component by component.
        return drawn[rng.permutation(n_samples)].__getitem__

    def _sample(self, n_samples, rng):
        """Some estimators take a seed in ``sample``, some as a parameter."""
        density = self.estimator_
        if "random_state" in signature(density.sample).parameters:
            return density.sample(n_samples, random_state=rng)
        if "random_state" in density.get_params(deep=False):
            seed = rng.randint(np.iinfo(np.int32).max)
            density = copy.copy(density).set_params(random_state=seed)
        return density.sample(n_samples)


DRAWS = {
    "auto": MixupDraws,
    "mixup": MixupDraws,
    "interpolation": partial(MixupDraws, noise=0),
    "kde": KernelDraws,
}
DrawsLike: TypeAlias = Literal["auto", "mixup", "interpolation", "kde"] | Draws | Any
AUGMENT = [StrOptions(set(DRAWS)), Draws, _DENSITY]


def as_draws(value):
    """The object that a parameter ``draws`` stands for, checked and not fitted."""
    if isinstance(value, str):
        return DRAWS[value]()
    draws = clone(value) if isinstance(value, Draws) else DensityDraws(value)
    draws._validate_params()
    return draws
