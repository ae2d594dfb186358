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
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import StrOptions

from .._utils.arrays import cast, floats_like, is_foreign, reshaped, take, to_host
from .._utils.validation import NOT_NEGATIVE, POSITIVE, TWO_OR_MORE, InstanceWith
from ..encoding.neighbors import METRIC
from .lines import zero_sum_weights
from .parents import choose_parents
from .source import Request

# Any object with `fit` and `sample` is a density estimator.
_DENSITY = InstanceWith(["fit", "sample"])


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
    Codes : The method whose codes they are.
    """

    _parameter_constraints: ClassVar[dict] = {}
    # Metric of codes, and whether each new code needs a neighbour search.
    metric = "kl"
    looks_up = True
    # Whether new codes start from training rows, which can be weighted.
    takes_shares = True

    def fit(self, codes: NDArray) -> Self:
        """Fit to codes of shape (n, n_params)."""
        return self

    def start(self, training: Any, request: Request, rng: RandomState) -> Callable:
        """A function from slices of the new rows, in order, to :class:`Drawn`.

        It may draw noise, in the order of the rows; all else is drawn here, so that the
        codes are the same for all ways to slice.
        """
        codes, k = training.codes, request.n_neighbors
        if request.shares is not None:
            p = request.shares / request.shares.sum()
            codes = take(codes, rng.choice(len(codes), size=len(codes), p=p))
        draw = self._start(codes, request.n_samples, rng)

        def with_nearest(rows):
            codes = draw(rows)
            near = training.nearest(codes, k, n_jobs=request.n_jobs)
            return Drawn(codes, near, np.full(near.shape, 1 / k))

        return with_nearest

    def _start(self, codes, n_samples, rng):
        """A function from slices of the new rows to their codes alone."""
        raise NotImplementedError


class MixupDraws(Draws):
    """Draw codes between two near rows, on the e-geodesic, plus local noise.

    A random row and a random one of its nearest are mixed in theta, as in the paper, at
    a uniform position ``t``; the code is decoded through both, with the same position.
    The noise is a normal zero-sum combination of the row and its neighbours, of
    ``noise ** 2`` times the covariance of the differences between them: it has the size
    and the shape of the data there, and stays within a cluster. Where both codes agree
    in a coordinate it is 0.

    Parameters
    ----------
    noise : float, default=0.41
        Standard deviation of the noise, relative to that of differences. Mixing takes a
        sixth of their covariance from that of codes, which ``1 / sqrt(6)`` gives back.

    n_candidates : int or None, default=16384
        With more training rows, partners are the nearest of this many random rows, so
        that the search takes linear time. All rows are mixed, with partners as near as
        in a data set of this size. None searches all rows.

    metric : {"kl", "euclidean"}, default="kl"
        Metric of codes.

    See Also
    --------
    KernelDraws : From a kernel density estimate, as in the paper.
    DensityDraws : From any density estimator.
    Codes : The method whose codes they are.
    Lines : Rows between near rows, without codes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import Codes, PNLAugmenter
    >>> from sklearn_pnl.methods import MixupDraws
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> method = Codes(order=1, draws=MixupDraws(noise=0.35))
    >>> PNLAugmenter(method).fit(X).sample(3).shape
    (3, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        "noise": [NOT_NEGATIVE],
        "n_candidates": [TWO_OR_MORE, None],
        "metric": METRIC,
    }

    looks_up = False

    def __init__(
        self,
        noise: float = 0.41,
        *,
        n_candidates: int | None = 2**14,
        metric: Literal["kl", "euclidean"] = "kl",
    ) -> None:
        self.noise = noise
        self.n_candidates = n_candidates
        self.metric = metric

    def start(self, training: Any, request: Request, rng: RandomState) -> Callable:
        """See :class:`Draws`."""
        codes, search = training.codes, _CodeSearch(training)
        if not is_foreign(codes):
            codes = np.ascontiguousarray(codes)
        pairs = choose_parents(search, request, rng, self.n_candidates)

        def between(rows):
            pair = pairs[rows]
            parents = np.column_stack([pair.seeds, pair.partners])
            t = pair.position[:, None]
            codes_i = take(codes, pair.seeds)
            difference = take(codes, pair.partners) - codes_i
            mixed = codes_i + floats_like(t, codes) * difference
            if self.noise > 0:
                weights = zero_sum_weights(pair, self.noise, codes.shape[0], rng)
                # No noise where both parents agree: zeros that they share stay 0.
                differs = cast(difference != 0, mixed.dtype)
                mixed += differs * combined(weights, codes)
            return Drawn(mixed, parents, np.hstack([1 - t, t]), pair.mutual)

        return between


class _CodeSearch:
    """Near training codes, as :func:`choose_parents` looks for them."""

    def __init__(self, training):
        self._training = training
        self.rows, self.labels = training.codes, training.labels

    def nearest(self, rows, k, among, n_jobs):
        codes = take(self.rows, rows)
        return self._training.nearest(codes, k, among, rows, n_jobs=n_jobs)


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
    >>> from sklearn_pnl import Codes, PNLAugmenter
    >>> from sklearn_pnl.methods import KernelDraws
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> method = Codes(order=1, draws=KernelDraws(bandwidth=0.1))
    >>> PNLAugmenter(method).fit(X).sample(3).shape
    (3, 4)
    """

    _parameter_constraints: ClassVar[dict] = {"bandwidth": [POSITIVE], "metric": METRIC}

    def __init__(
        self, bandwidth: float = 0.05, *, metric: Literal["kl", "euclidean"] = "kl"
    ) -> None:
        self.bandwidth = bandwidth
        self.metric = metric

    def _start(self, codes, n_samples, rng):
        centre = rng.randint(codes.shape[0], size=n_samples)

        def around(rows):
            centres = take(codes, centre[rows])
            noise = rng.standard_normal(tuple(centres.shape))
            return centres + self.bandwidth * floats_like(noise, centres)

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
    >>> from sklearn_pnl import Codes, PNLAugmenter
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> augmenter = PNLAugmenter(Codes(draws=GaussianMixture(2))).fit(X)
    >>> augmenter.method_.draws_.estimator_.n_components
    2
    """

    _parameter_constraints: ClassVar[dict] = {"estimator": [_DENSITY], "metric": METRIC}

    takes_shares = False

    def __init__(
        self, estimator: Any, *, metric: Literal["kl", "euclidean"] = "kl"
    ) -> None:
        self.estimator = estimator
        self.metric = metric

    def fit(self, codes: NDArray) -> Self:
        """See :class:`Draws`."""
        # Estimators of densities compute on the host.
        with config_context(array_api_dispatch=False):
            self.estimator_ = clone(self.estimator).fit(to_host(codes))
        return self

    def _start(self, codes, n_samples, rng):
        with config_context(array_api_dispatch=False):
            drawn = self._sample(n_samples, rng)
        drawn = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)
        expected = (n_samples, codes.shape[1])
        if drawn.shape != expected or not np.all(np.isfinite(drawn)):
            raise ValueError(
                f"{self.estimator_!r}.sample must return {expected[0]} finite codes of "
                f"length {expected[1]}; got an array of shape {drawn.shape}."
            )
        # GaussianMixture returns draws ordered by component.
        drawn = floats_like(drawn[rng.permutation(n_samples)], codes)
        return lambda rows: drawn[rows, ...]

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


def combined(weights, rows):
    """Weighted sums of rows; weights (n, m) are sparse, with as many in each row."""
    if not is_foreign(rows):
        return weights @ rows
    n, k = weights.shape[0], int(weights.indptr[1])
    near = reshaped(take(rows, weights.indices), (n, k, rows.shape[1]))
    return (floats_like(weights.data.reshape(n, 1, k), rows) @ near)[:, 0, :]
