"""Pairs of training rows to mix, and where, so that a wanted value comes out."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri
from sklearn.neighbors import NearestNeighbors

# Training rows nearest to what is asked for, whose pairs are weighed: for all new rows,
# or for each where each has values of its own.
_MOST_SOURCES, _SOURCES_A_ROW = 2**11, 2**6
# Different wanted values where an interval leaves a choice.
_MOST_TARGETS = 2**8
# Width of the kernel around a wanted value, in standard deviations of the training
# values; doubled until the weights are worth so many pairs.
_WIDTH, _PAIRS_WORTH = 0.1, 100
# Weights (targets x pairs) held at once.
_WEIGHTS = 2**22
# Standard deviations beyond which all rows are as far, and chances vanish.
_FAR = 1e6


@dataclass(frozen=True)
class Condition:
    """Values that new rows are to have: ``lower <= value <= upper``.

    Attributes
    ----------
    values : ndarray of shape (n, c)
        Of the training rows.
    lower, upper : ndarray of shape (n_samples, c) or (1, c)
        Of the new rows.
    shares : ndarray of shape (n,), default=None
        How often training rows are drawn from, relative to others.
    """

    values: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    shares: np.ndarray | None = None

    def __post_init__(self):
        with np.errstate(over="ignore"):
            far = _FAR * self._scale
        low, high = self.values.min(axis=0) - far, self.values.max(axis=0) + far
        for name in ("lower", "upper"):
            object.__setattr__(self, name, np.clip(getattr(self, name), low, high))

    def sources(self):
        """Training rows nearest to the intervals; all if rows have their own."""
        if len(self.lower) > 1:
            return np.arange(len(self.values))
        distance = self._gaps(self.lower, self.upper).max(axis=1)
        return np.sort(np.argsort(distance, kind="stable")[:_MOST_SOURCES])

    def _gaps(self, lower, upper):
        """How far the values of the training rows are from intervals."""
        outside = np.maximum(lower - self.values, self.values - upper)
        return np.maximum(outside, 0) / self._scale

    @property
    def _scale(self):
        # In units, powers of two, in which squares neither overflow nor vanish.
        unit = np.ldexp(1.0, np.frexp(np.abs(self.values).max(axis=0))[1] - 1)
        spread = (self.values / unit).std(axis=0) * unit
        return np.where(spread > 0, spread, 1.0)

    def pairs(self, sources, near, n_samples, rng):
        """First rows, second rows and positions of ``n_samples`` mixtures.

        The mixtures of the pairs ``(sources, near)`` at uniform positions, given that
        their values, taken as linear between the two rows, lie in a narrow Gaussian
        kernel around a wanted value: the weight of a pair is the integral of the kernel
        along it, and the position is drawn from the kernel.
        """
        targets, which = self._targets(n_samples, rng)
        k, scale = near.shape[1], self._scale
        start = np.repeat(self.values[sources], k, axis=0) / scale
        step = self.values[near.ravel()] / scale - start
        some = self._segments_near(start[::k], targets / scale, k)
        chosen = np.empty(n_samples, np.intp)
        position, uniform = np.empty(n_samples), rng.uniform(size=(2, n_samples))
        at_once = max(1, _WEIGHTS // some.shape[1])
        for first in range(0, len(targets), at_once):
            group = slice(first, first + at_once)
            own = some[group] if len(some) > 1 else some
            segments = _Segments.of(start[own], step[own], targets[group] / scale)
            if self.shares is not None:
                shares = np.maximum(self.shares[sources[own // k]], 1e-300)
                segments.weight[...] += np.log(shares)
                segments.weight[...] -= segments.weight.max(axis=1, keepdims=True)
            rows = np.flatnonzero((which >= first) & (which < first + at_once))
            target = which[rows] - first
            place = segments.choose(target, uniform[0, rows])
            position[rows] = segments.position(target, place, uniform[1, rows])
            chosen[rows] = own[target if len(own) > 1 else 0, place]
        rows, columns = np.divmod(chosen, k)
        return sources[rows], near[rows, columns], position

    def _segments_near(self, sources, targets, k):
        """Segments (1, p) for all targets, or (t, p) from the sources near each."""
        if len(self.lower) == 1:
            return np.arange(len(sources) * k)[None]
        n = min(_SOURCES_A_ROW, len(sources))
        search = NearestNeighbors(n_neighbors=n).fit(sources)
        found = np.sort(search.kneighbors(targets, return_distance=False), axis=1)
        return (found[:, :, None] * k + np.arange(k)).reshape(len(targets), -1)

    def _targets(self, n_samples, rng):
        """Wanted values (t, c), and which of them each new row gets."""
        of_all, exact = len(self.lower) == 1, np.array_equal(self.lower, self.upper)
        n = min(1 if exact else _MOST_TARGETS, n_samples) if of_all else n_samples
        which = np.arange(n_samples) % n
        if exact and not of_all:
            return self.lower, which
        lower = np.broadcast_to(self.lower, (n, self.values.shape[1]))
        upper = np.broadcast_to(self.upper, lower.shape)
        targets = np.empty(lower.shape)
        for k in range(n):
            # As the training rows are spread inside the interval, or near to it.
            gap = self._gaps(lower[k], upper[k])
            distance = np.einsum("ij,ij->i", gap, gap)
            weight = np.exp(-(distance - distance.min()) / (2 * _WIDTH**2))
            row = rng.choice(len(weight), p=weight / weight.sum())
            targets[k] = np.clip(self.values[row], lower[k], upper[k])
        return targets, which


@dataclass(frozen=True)
class _Segments:
    """A kernel along segments: in the position it is a Gaussian, cut at 0 and 1.

    ``centre`` and ``width`` of it, and the log of its ``weight``, are of shape
    (targets, segments).
    """

    centre: np.ndarray
    width: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, start, step, targets):
        """Kernels just wide enough for each target to find some pairs."""
        length = np.maximum(np.linalg.norm(step, axis=2), 1e-12)
        gap = targets[:, None, :] - start
        centre = (gap * step).sum(axis=2) / length**2
        across = np.einsum("tpc,tpc->tp", gap, gap) - (centre * length) ** 2
        across = np.maximum(across, 0)
        width = np.full((len(targets), 1), _WIDTH)
        while True:
            weight = cls._log_weight(centre, across, length, width)
            weight -= weight.max(axis=1, keepdims=True)
            share = np.exp(weight)
            worth = share.sum(axis=1) ** 2 / (share**2).sum(axis=1)
            few = (worth < min(_PAIRS_WORTH, 0.5 * length.shape[1])) & (width[:, 0] < 4)
            if not few.any():
                return cls(centre, width / length, weight)
            width[few] *= 2

    @staticmethod
    def _log_weight(centre, across, length, width):
        """Log of the integral of the kernel from 0 to 1, but for a constant."""
        ends = (1 - centre) * length / width, -centre * length / width
        # The upper tail is taken where it is the more exact of the two.
        flip = ends[1] > 0
        high = np.where(flip, -ends[1], ends[0])
        low = np.where(flip, -ends[0], ends[1])
        a, b = log_ndtr(high), log_ndtr(low)
        with np.errstate(divide="ignore"):
            inside = a + np.log1p(-np.exp(np.minimum(b - a, -1e-300)))
        return inside - np.log(length) - across / (2 * width**2)

    def choose(self, target, uniform):
        """Segments of targets (n,), by their weights."""
        cumulated = np.cumsum(np.exp(self.weight), axis=1)
        wanted, last = uniform * cumulated[target, -1], cumulated.shape[1] - 1
        if len(target) <= len(cumulated):
            return np.minimum((cumulated[target] <= wanted[:, None]).sum(axis=1), last)
        found = np.empty(len(target), np.intp)
        for k, own in enumerate(cumulated):
            some = target == k
            found[some] = np.searchsorted(own, wanted[some], side="right")
        return np.minimum(found, last)

    def position(self, target, segments, uniform):
        """Positions on segments of targets, from the Gaussian between 0 and 1."""
        centre, width = self.centre[target, segments], self.width[target, segments]
        low, high = (np.exp(log_ndtr((e - centre) / width)) for e in (0, 1))
        found = centre + width * ndtri(low + uniform * (high - low))
        # Far out in a tail: the nearer end.
        nearest = np.clip(centre, 0, 1)
        return np.where(np.isfinite(found), found, nearest).clip(0, 1)
