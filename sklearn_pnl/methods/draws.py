"""Distributions of new codes (step 2 of Algorithm 2).

A distribution is a subclass of :class:`Draws`. The names that the parameter ``draws``
of :class:`Codes` accepts are the keys of :data:`DRAWS`.
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
from .._utils.validation import (
    NOT_NEGATIVE,
    POSITIVE,
    TWO_OR_MORE,
    InstanceWith,
    seeded_clone,
)
from ..encoding.neighbors import METRIC
from .lines import noise_weights
from .parents import choose_candidates, choose_parents
from .source import Request

# A density estimator is any object with `fit` and `sample`.
_DENSITY = InstanceWith(["fit", "sample"])


@dataclass(frozen=True)
class NewCodes:
    """New codes, and the training rows with which the codes are decoded.

    Attributes
    ----------
    codes : ndarray of shape (b, n_params)
        New codes.
    parents : ndarray of int of shape (b, k)
        Indices of the training rows for each code.
    weights : ndarray of shape (b, k)
        Weights of the training rows.
    mutual : ndarray of bool of shape (b,) or None
        Whether cells that are not mixed can be copied from every parent. If False, the
        cells are copied from the first parent. None means True for all codes.
    """

    codes: NDArray
    parents: NDArray
    weights: NDArray
    mutual: NDArray | None = None


class Draws(BaseEstimator):
    """Base class of distributions of new codes.

    A new code is decoded with the training rows whose codes are nearest to the code. A
    subclass implements :meth:`start_codes`, and :meth:`fit` if it learns from the
    codes. If the subclass has a parameter ``n_candidates``, the search is limited to so
    many random training rows. A subclass that also chooses the training rows overrides
    :meth:`start`, sets ``looks_up = False``, and returns objects of the class
    :class:`NewCodes`.

    See Also
    --------
    MixupDraws : Draw codes between two neighbouring rows, with local noise.
    KernelDraws : Draw codes from a kernel density estimate, as in the paper.
    DensityDraws : Draw codes from any density estimator.
    Codes : Encode rows, draw new codes and decode the new codes.

    Examples
    --------
    Codes of random training rows, moved towards the mean code:

    >>> import numpy as np
    >>> from sklearn_pnl import Codes, PNLAugmenter
    >>> from sklearn_pnl.methods import Draws
    >>> class ShrunkDraws(Draws):
    ...     def start_codes(self, codes, n_samples, rng):
    ...         index = rng.randint(len(codes), size=n_samples)
    ...         return lambda rows: 0.9 * codes[index[rows]] + 0.1 * codes.mean(axis=0)
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> PNLAugmenter(Codes(order=1, draws=ShrunkDraws())).fit(X).sample(3).shape
    (3, 4)
    """

    _parameter_constraints: ClassVar[dict] = {}
    # Metric of codes, and whether each new code needs a neighbour search.
    metric = "kl"
    looks_up = True
    # Number of random training rows among which the search finds neighbours.
    n_candidates: int | None = None
    # Whether training rows can have unequal weights as base rows.
    takes_shares = True

    def fit(self, codes: NDArray) -> Self:
        """Fit the distribution to codes of shape (n, n_params)."""
        return self

    def start(self, training: Any, request: Request, rng: RandomState) -> Callable:
        """Return a function that draws the codes of a slice of the new rows.

        The function must be called for successive slices. Only noise is drawn in the
        function; everything else is drawn here. The codes are therefore the same for
        all sizes of slices.
        """
        codes, k, size = training.codes, request.n_neighbors, self.n_candidates
        n = codes.shape[0]
        among = choose_candidates(n, None if size is None else max(size, k), rng)
        if request.shares is not None:
            p = request.shares / request.shares.sum()
            codes = take(codes, rng.choice(n, size=n, p=p))
        draw = self.start_codes(codes, request.n_samples, rng)

        def with_nearest(rows):
            codes = draw(rows)
            near = training.nearest(codes, k, among, n_jobs=request.n_jobs)
            return NewCodes(codes, near, np.full(near.shape, 1 / k))

        return with_nearest

    def start_codes(
        self, codes: NDArray, n_samples: int, rng: RandomState
    ) -> Callable[[slice], NDArray]:
        """Return a function that draws the codes of a slice of the new rows.

        A subclass implements the method. See :meth:`start` for the calls.

        Parameters
        ----------
        codes : ndarray of shape (n, n_params)
            Codes of the training rows.
        n_samples : int
            Number of new rows.
        rng : RandomState
            Random generator, the only source of random numbers.

        Returns
        -------
        draw : callable
            ``draw(rows)`` returns the codes (b, n_params) of the b new rows of a slice.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement start_codes.")


class MixupDraws(Draws):
    """Draw codes between two neighbouring rows, with local noise.

    A new code lies between the code of a random row and the code of a random nearest
    neighbour of the row, at a uniform position. The code is decoded with both rows,
    weighted by the position. The noise is a normal combination of the differences
    between the codes of the neighbours and of the row. The noise therefore has the size
    and the correlations of the data near the row. A coordinate in which both codes
    agree has no noise.

    Parameters
    ----------
    noise : float, default=0.41
        Standard deviation of the noise, as a multiple of the standard deviation of the
        differences between neighbours. Larger values spread the new rows. If both
        codes have the same distribution, mixing reduces the covariance of the codes by
        a sixth of the covariance of the differences. The default, about
        ``1 / sqrt(6)``, restores this loss.

    n_candidates : int or None, default=16384
        Number of random training rows to which the search for neighbours is limited if
        there are more training rows. The time of the search is then linear in the
        number of rows, and neighbours are as far apart as in a table with
        ``n_candidates`` rows. With None, all training rows can be neighbours.

    metric : {"kl", "euclidean"}, default="kl"
        Distance between codes: the KL divergence between the points of the base, or the
        Euclidean distance.

    See Also
    --------
    KernelDraws : Draw codes from a kernel density estimate, as in the paper.
    DensityDraws : Draw codes from any density estimator.
    Codes : Encode rows, draw new codes and decode the new codes.
    Lines : Draw rows on straight lines, without codes.

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
        """Return a function that draws the codes of a slice of the new rows."""
        codes, search = training.codes, _CodeSearch(training)
        if not is_foreign(codes):
            codes = np.ascontiguousarray(codes)
        pairs = choose_parents(search, request, rng, self.n_candidates)

        def between(rows):
            pair = pairs[rows]
            parents = np.column_stack([pair.base_rows, pair.second])
            t = pair.position[:, None]
            codes_i = take(codes, pair.base_rows)
            difference = take(codes, pair.second) - codes_i
            mixed = codes_i + floats_like(t, codes) * difference
            if self.noise > 0:
                weights = noise_weights(pair, self.noise, codes.shape[0], rng)
                # Without noise, zeros that both parents share stay 0.
                differs = cast(difference != 0, mixed.dtype)
                mixed += differs * combined(weights, codes)
            return NewCodes(mixed, parents, np.hstack([1 - t, t]), pair.is_mutual)

        return between


class _CodeSearch:
    """Search for neighbouring codes, with the interface of :class:`RowSearch`."""

    def __init__(self, training):
        self._training = training
        self.rows, self.labels = training.codes, training.labels

    def nearest(self, rows, k, among, n_jobs):
        codes = take(self.rows, rows)
        return self._training.nearest(codes, k, among, rows, n_jobs=n_jobs)


class KernelDraws(Draws):
    """Draw codes from a Gaussian kernel density estimate, as in the paper.

    A new code is the code of a random training row plus Gaussian noise. The code is
    decoded with the training rows whose codes are nearest to the new code.

    Parameters
    ----------
    bandwidth : float, default=0.05
        Standard deviation of the noise in every coordinate of the code. A larger
        bandwidth yields rows that differ more from the training rows.

    n_candidates : int or None, default=16384
        Number of random training rows to which the search for neighbours is limited if
        there are more training rows. The time of the search is then linear in the
        number of rows, and neighbours are as far apart as in a table with
        ``n_candidates`` rows. With None, all training rows can be neighbours.

    metric : {"kl", "euclidean"}, default="kl"
        Distance between codes: the KL divergence between the points of the base, or the
        Euclidean distance.

    See Also
    --------
    MixupDraws : Draw codes between two neighbouring rows, with local noise.
    DensityDraws : Draw codes from any density estimator.

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

    _parameter_constraints: ClassVar[dict] = {
        "bandwidth": [POSITIVE],
        "n_candidates": [TWO_OR_MORE, None],
        "metric": METRIC,
    }

    def __init__(
        self,
        bandwidth: float = 0.05,
        *,
        n_candidates: int | None = 2**14,
        metric: Literal["kl", "euclidean"] = "kl",
    ) -> None:
        self.bandwidth = bandwidth
        self.n_candidates = n_candidates
        self.metric = metric

    def start_codes(
        self, codes: NDArray, n_samples: int, rng: RandomState
    ) -> Callable[[slice], NDArray]:
        """Return a function that draws the codes of a slice of the new rows.

        :class:`Draws` describes the parameters.
        """
        centre = rng.randint(codes.shape[0], size=n_samples)

        def around(rows):
            centres = take(codes, centre[rows])
            noise = rng.standard_normal(tuple(centres.shape))
            return centres + self.bandwidth * floats_like(noise, centres)

        return around


class DensityDraws(Draws):
    """Draw codes from a density estimator that is fitted to the codes.

    A new code is decoded with the training rows whose codes are nearest to the code.

    Parameters
    ----------
    estimator : estimator
        Density estimator with ``fit`` and ``sample``, for example
        :class:`~sklearn.mixture.GaussianMixture` or
        :class:`~sklearn.neighbors.KernelDensity`. The estimator is cloned. If its
        ``random_state`` is None, the clone is fitted with the seed 0, so that fitting
        is reproducible; new codes depend on the ``random_state`` of the sampler.

    n_candidates : int or None, default=16384
        Number of random training rows to which the search for neighbours is limited if
        there are more training rows. The time of the search is then linear in the
        number of rows, and neighbours are as far apart as in a table with
        ``n_candidates`` rows. With None, all training rows can be neighbours.

    metric : {"kl", "euclidean"}, default="kl"
        Distance between codes: the KL divergence between the points of the base, or the
        Euclidean distance.

    Attributes
    ----------
    estimator_ : estimator
        Fitted density estimator.

    See Also
    --------
    MixupDraws : Draw codes between two neighbouring rows, with local noise.
    KernelDraws : Draw codes from a kernel density estimate, as in the paper.

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

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [_DENSITY],
        "n_candidates": [TWO_OR_MORE, None],
        "metric": METRIC,
    }

    takes_shares = False

    def __init__(
        self,
        estimator: Any,
        *,
        n_candidates: int | None = 2**14,
        metric: Literal["kl", "euclidean"] = "kl",
    ) -> None:
        self.estimator = estimator
        self.n_candidates = n_candidates
        self.metric = metric

    def fit(self, codes: NDArray) -> Self:
        """Fit the density estimator to codes of shape (n, n_params)."""
        # Density estimators require arrays on the host.
        with config_context(array_api_dispatch=False):
            self.estimator_ = seeded_clone(self.estimator).fit(to_host(codes))
        return self

    def start_codes(
        self, codes: NDArray, n_samples: int, rng: RandomState
    ) -> Callable[[slice], NDArray]:
        """Return a function that draws the codes of a slice of the new rows.

        :class:`Draws` describes the parameters.
        """
        with config_context(array_api_dispatch=False):
            drawn = self._sample(n_samples, rng)
        drawn = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)
        expected = (n_samples, codes.shape[1])
        if drawn.shape != expected or not np.all(np.isfinite(drawn)):
            raise ValueError(
                f"The method `sample` of draws={self.estimator_!r} must return "
                f"{expected[0]} finite codes of length {expected[1]}; got an array of "
                f"shape {drawn.shape} with {np.isfinite(drawn).sum()} finite values."
            )
        # GaussianMixture returns samples ordered by component.
        drawn = floats_like(drawn[rng.permutation(n_samples)], codes)
        return lambda rows: drawn[rows, ...]

    def _sample(self, n_samples, rng):
        """Sample codes, with a random seed passed to ``sample`` or set as parameter."""
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
    """Return the unfitted object that ``draws`` selects, with checked parameters."""
    if isinstance(value, str):
        return DRAWS[value]()
    draws = clone(value) if isinstance(value, Draws) else DensityDraws(value)
    draws._validate_params()
    return draws


def combined(weights, rows):
    """Compute weighted sums of rows.

    ``weights`` (n, m) is sparse, with the same number of entries in each row.
    """
    if not is_foreign(rows):
        return weights @ rows
    n, k = weights.shape[0], int(weights.indptr[1])
    near = reshaped(take(rows, weights.indices), (n, k, rows.shape[1]))
    return (floats_like(weights.data.reshape(n, 1, k), rows) @ near)[:, 0, :]
