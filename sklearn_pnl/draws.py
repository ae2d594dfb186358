"""Ways to draw new codes: step 2 of Algorithm 2.

A new one is a class here and an entry in :data:`DRAWS`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods, StrOptions

from ._runtime.validation import NOT_NEGATIVE, POSITIVE, TWO_OR_MORE
from .neighbors import METRIC
from .parents import choose_parents, zero_sum_weights

# Any object with `fit` and `sample` is a density estimator.
_DENSITY = HasMethods(["fit", "sample"])
# Mixing reduces the covariance of differences by a sixth, which noise of 1 / sqrt(6)
# restores; on lines, limits and agreed cells reduce it further.
NOISE_OF_CODES, NOISE_OF_ROWS = 0.41, 0.6


@dataclass(frozen=True)
class Start:
    """Number of new codes, and the training rows that they are drawn from.

    Attributes
    ----------
    n_samples, n_neighbors : int
    shares : ndarray of shape (n_train,) or None
        Relative frequency of each training row as a seed.
    seeds : ndarray of int of shape (n_samples,) or None
        The seeds, if they are chosen already.
    strata : list or None
        Groups of rows: only rows of a group are mixed.
    mutual : bool
        Whether to compute which partners may be donors of cells that are not mixed.
    n_jobs : int or None
    """

    n_samples: int
    n_neighbors: int
    shares: NDArray | None = None
    seeds: NDArray | None = None
    strata: list | None = None
    mutual: bool = False
    n_jobs: int | None = None

    def parents(
        self, search: Any, m: int, rng: RandomState, n_candidates: int | None = None
    ) -> Any:
        """``Parents`` of pairs of near rows."""
        return choose_parents(
            search, m, rng=rng, n_candidates=n_candidates, **vars(self)
        )


@dataclass(frozen=True)
class Drawn:
    """New codes, the training rows that each is decoded from, and their weights.

    Attributes
    ----------
    codes : ndarray of shape (b, n_params)
    parents : ndarray of int of shape (b, k)
    weights : ndarray of shape (b, k)
    mutual : ndarray of bool of shape (b,) or None
        Whether parents but the first may be donors of cells that are not mixed; None
        for yes.
    """

    codes: NDArray
    parents: NDArray
    weights: NDArray
    mutual: NDArray | None = None


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
    # Metric of codes, and whether each new code needs a neighbour search.
    metric = "kl"
    looks_up = True

    def fit(self, codes: NDArray) -> Self:
        """Fit to codes of shape (n, n_params)."""
        return self

    def start(self, training: Any, start: Start, rng: RandomState) -> Callable:
        """A function from slices of the new rows, in order, to :class:`Drawn`.

        It may draw noise, in the order of the rows; all else is drawn here, so that the
        codes are the same for all ways to slice.
        """
        codes, k = training.codes, start.n_neighbors
        if start.shares is not None:
            p = start.shares / start.shares.sum()
            codes = codes[rng.choice(len(codes), size=len(codes), p=p)]
        draw = self._start(codes, start.n_samples, rng)

        def with_nearest(rows):
            codes = draw(rows)
            near = training.nearest(codes, k, None, None, n_jobs=start.n_jobs)
            return Drawn(codes, near, np.full((len(codes), k), 1 / k))

        return with_nearest

    def _start(self, codes, n_samples, rng):
        """A function from slices of the new rows to their codes alone."""
        raise NotImplementedError


class MixupDraws(Draws):
    """Draw between two near rows, on the geodesic that joins them, plus local noise.

    A random row and a random one of its nearest are mixed at a uniform position ``t``.
    The noise is a normal zero-sum combination of the row and its neighbours, of
    ``noise ** 2`` times the covariance of the differences between them: it has the size
    and the shape of the data there, and stays within a cluster.

    On the m-geodesic, a straight line in the units of the rows, a new row is an affine
    combination of training rows, so that it keeps every linear equality that these
    satisfy. Limits and agreed cells act on single columns: then equalities hold that
    :class:`PNLAugmenter` finds or is given. A ratio test (``sklearn_pnl/lines.py``)
    keeps limits and orders. On the e-geodesic codes are mixed in theta, as in the
    paper, and decoded through the same position on the m-geodesic.

    Parameters
    ----------
    noise : float or "auto", default="auto"
        Standard deviation of the noise, relative to that of differences. Mixing reduces
        the covariance of differences by a sixth, which ``1 / sqrt(6)`` restores; "auto"
        is 0.6 on straight lines, where limits and agreed cells reduce the noise, and
        0.41 for codes.

    geodesic : {"auto", "m", "e"}, default="auto"
        "auto" is "m" where the code is the whole row of a table, and "e" where a base
        is named and for rows of more axes, such as images.

    agreed_cells : bool, default=True
        On straight lines, whether a cell in which both rows have the same value gets
        no noise: values that many rows share stay unchanged. With False, and
        ``extrapolation=None``, noise keeps every linear equality of the rows, also
        undetected ones, such as totals of 120 parts in 80 rows.

    n_candidates : int or None, default=16384
        With more training rows, partners are the nearest of this many random rows, so
        that the search takes linear time. All rows are mixed, with partners as near as
        in a data set of this size. None searches all rows.

    metric : {"kl", "euclidean"}, default="kl"
        Metric of codes. On straight lines it is Euclidean, in columns divided by
        their ranges.

    See Also
    --------
    KernelDraws : From a kernel density estimate, as in the paper.
    DensityDraws : From any density estimator.
    PNLAugmenter : One set of rows, without classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import PNLAugmenter
    >>> from sklearn_pnl.draws import MixupDraws
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> PNLAugmenter(draws=MixupDraws(noise=0.35)).fit(X).sample(3).shape
    (3, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        "noise": [NOT_NEGATIVE, StrOptions({"auto"})],
        "geodesic": [StrOptions({"auto", "m", "e"})],
        "agreed_cells": ["boolean"],
        "n_candidates": [TWO_OR_MORE, None],
        "metric": METRIC,
    }

    looks_up = False

    def __init__(
        self,
        noise: float | Literal["auto"] = "auto",
        *,
        geodesic: Literal["auto", "m", "e"] = "auto",
        agreed_cells: bool = True,
        n_candidates: int | None = 2**14,
        metric: Literal["kl", "euclidean"] = "kl",
    ) -> None:
        self.noise = noise
        self.geodesic = geodesic
        self.agreed_cells = agreed_cells
        self.n_candidates = n_candidates
        self.metric = metric

    def noise_on(self, geodesic: str) -> float:
        """The noise on the m- or the e-geodesic."""
        if self.noise != "auto":
            return self.noise
        return NOISE_OF_ROWS if geodesic == "m" else NOISE_OF_CODES

    def start(self, training: Any, start: Start, rng: RandomState) -> Callable:
        """See :class:`Draws`."""
        codes, noise = np.ascontiguousarray(training.codes), self.noise_on("e")
        pairs = start.parents(_CodeSearch(training), len(codes), rng, self.n_candidates)

        def between(rows):
            pair = pairs[rows]
            parents = np.column_stack([pair.seeds, pair.partners])
            t = pair.position[:, None]
            codes_i = codes[pair.seeds]
            difference = codes[pair.partners] - codes_i
            mixed = codes_i + t * difference
            if noise > 0:
                added = zero_sum_weights(pair, noise, len(codes), rng) @ codes
                # No noise where both parents agree: zeros that they share stay 0.
                added[difference == 0] = 0
                mixed += added
            return Drawn(mixed, parents, np.hstack([1 - t, t]), pair.mutual)

        return between


class _CodeSearch:
    """Near training codes, as :func:`choose_parents` looks for them."""

    def __init__(self, training):
        self._training = training
        self.rows, self.labels = training.codes, training.labels

    def nearest(self, rows, k, among, n_jobs):
        return self._training.nearest(self.rows[rows], k, among, rows, n_jobs=n_jobs)


class KernelDraws(Draws):
    """From a Gaussian kernel density estimate in theta, as in the paper.

    Parameters
    ----------
    bandwidth : float, default=0.05
        Standard deviation of the noise in every coordinate of theta.

    metric : {"kl", "euclidean"}, default="kl"
        Nearness of codes.

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
    >>> from sklearn_pnl import PNLAugmenter
    >>> from sklearn_pnl.draws import KernelDraws
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> PNLAugmenter(draws=KernelDraws(bandwidth=0.1)).fit(X).sample(3).shape
    (3, 4)
    """

    _parameter_constraints: ClassVar[dict] = {"bandwidth": [POSITIVE], "metric": METRIC}

    def __init__(
        self, bandwidth: float = 0.05, *, metric: Literal["kl", "euclidean"] = "kl"
    ) -> None:
        self.bandwidth = bandwidth
        self.metric = metric

    def _start(self, codes, n_samples, rng):
        centre = rng.randint(len(codes), size=n_samples)

        def around(rows):
            centres = codes[centre[rows]]
            return centres + self.bandwidth * rng.standard_normal(centres.shape)

        return around


class DensityDraws(Draws):
    """From a density estimator fitted on the codes.

    Parameters
    ----------
    estimator : estimator
        With ``fit`` and ``sample``, such as :class:`~sklearn.mixture.GaussianMixture`
        or :class:`~sklearn.neighbors.KernelDensity`; cloned.

    metric : {"kl", "euclidean"}, default="kl"
        Nearness of codes.

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

    _parameter_constraints: ClassVar[dict] = {"estimator": [_DENSITY], "metric": METRIC}

    def __init__(
        self, estimator: Any, *, metric: Literal["kl", "euclidean"] = "kl"
    ) -> None:
        self.estimator = estimator
        self.metric = metric

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
        # GaussianMixture returns draws ordered by component.
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
    "mixup": MixupDraws,
    "interpolation": partial(MixupDraws, noise=0),
    "kde": KernelDraws,
}
DrawsLike: TypeAlias = Literal["mixup", "interpolation", "kde"] | Draws | Any
DRAWS_PARAMETER = [StrOptions(set(DRAWS)), Draws, _DENSITY]


def as_draws(value):
    """The object that a parameter ``draws`` stands for, checked and not fitted."""
    if isinstance(value, str):
        return DRAWS[value]()
    draws = clone(value) if isinstance(value, Draws) else DensityDraws(value)
    draws._validate_params()
    return draws
