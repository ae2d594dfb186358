"""New rows of a plain table, with each choice of the draw a parameter of its own."""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import MinMaxScaler


@dataclass(eq=False)
class DrawSampler(BaseEstimator):
    """Add rows of class 1 until there are as many as of class 0.

    The range of the class becomes [0, 1]; the code of a row is the logarithm of the
    row plus an offset. A new code is a mixture of the codes of two near rows, plus
    noise. At its defaults it mixes, and does nothing else.

    Parameters
    ----------
    k : int
        A code is mixed with that of one of so many nearest rows; 0: not at all.
    near : {"kl", "euclidean"}
        What is near: by the Kullback-Leibler divergence of rows plus offset, as
        measures, or by the distance of rows.
    t : tuple
        The share of the partner: uniform between two numbers; or of the beta
        distribution with the parameters ``("beta", a, b)``.
    noise : {"near", "own", "class", "axes"} or None
        A random multiple of the difference of the codes of two rows: a random one and
        one of its k nearest; the first parent and another of its k nearest; any two
        rows, by the root of two. Or an own multiple for each feature of its spread.
    size : float
        Standard deviation of the multiple.
    law : {"normal", "uniform"}
        Its distribution.
    terms : int
        So many differences are added, by the root of their number.
    offset : float
    arithmetic : bool
        The code is the row itself, as it is in the limit of a large offset.
    mass : bool
        Else rows plus offset are normalised, and a new one gets the mean of its
        parents' masses.
    contain : {"fold", "fold codes", "fold ties", "clip"} or None
        What becomes of values beyond the range of the class: mirrored at its ends, in
        rows or in codes; or moved to the end.
    margin : float
        Mirrored in rows only so far beyond the end, as a share of the range; by "fold
        ties" not at ends that several rows share, which look like bounds.
    keep : bool
        No noise on features in which both parents agree.
    random_state : int
    """

    k: int = 5
    near: str = "kl"
    t: tuple = (0.0, 1.0)
    noise: str | None = None
    size: float = 0.25
    law: str = "normal"
    terms: int = 1
    offset: float = 0.3
    arithmetic: bool = False
    mass: bool = True
    contain: str | None = None
    margin: float = 0.0
    keep: bool = False
    random_state: int = 0

    def fit_resample(self, X, y):
        members = X[y == 1]
        n_new = np.sum(y == 0) - len(members)
        rows = self.draw(members, n_new)[0]
        return np.vstack([X, rows]), np.r_[y, np.ones(n_new, int)]

    def draw(self, members, n_new):
        """New rows, and the two parents of each by number."""
        rng = np.random.RandomState(self.random_state)
        embedding = MinMaxScaler().fit(members)
        # The transform of the class's own ends may leave [0, 1] by rounding.
        inside = np.clip(embedding.transform(members), 0, 1)
        total = np.ones(len(inside))
        measures = inside + self.offset
        if not self.mass:
            total = measures.sum(axis=1)
            measures /= total[:, None]
        codes = inside if self.arithmetic else np.log(measures)
        near = self._near(inside if self.near == "euclidean" else measures)
        first = rng.randint(len(codes), size=n_new)
        second, share = self._partners(near, first, rng)
        new = (1 - share) * codes[first] + share * codes[second]
        noise = self._noise(codes, near, first, rng)
        if self.keep:
            noise = np.where(inside[first] == inside[second], 0, noise)
        new += noise
        if not self.arithmetic:
            if self.contain == "fold codes":
                new = _fold(new, np.log(self.offset), np.log1p(self.offset))
            new = np.exp(new)
            if not self.mass:
                mean = (1 - share[:, 0]) * total[first] + share[:, 0] * total[second]
                new *= (mean / new.sum(axis=1))[:, None]
            new -= self.offset
        if self.contain == "fold":
            new = _fold(new, -self.margin, 1 + self.margin)
        if self.contain == "fold ties":
            tied = np.sum([inside == 0, inside == 1], axis=1) > 1
            low, high = np.where(tied, 0, self.margin)
            new = _fold(new, -low, 1 + high)
        if self.contain == "clip":
            new = np.clip(new, 0, 1)
        return embedding.inverse_transform(new), np.column_stack([first, second])

    def _near(self, rows):
        """The k nearest other rows of each row; copies of it count as others."""
        n = len(rows)
        k = min(self.k or 5, n - 1)
        if k == 0:
            return np.zeros((n, 1), int)
        if self.near == "euclidean":
            return NearestNeighbors(n_neighbors=k).fit(rows).kneighbors()[1]
        mass = rows.sum(axis=1)
        divergence = (xlogy(rows, rows).sum(axis=1) - mass)[:, None]
        divergence = divergence + mass - rows @ np.log(rows).T
        np.fill_diagonal(divergence, np.inf)
        return np.argsort(divergence, axis=1, kind="stable")[:, :k]

    def _partners(self, near, first, rng):
        if not self.k:
            return first, np.zeros((len(first), 1))
        second = _one_of(near, first, rng)
        if self.t[0] == "beta":
            share = rng.beta(*self.t[1:], size=len(first))
        else:
            share = rng.uniform(*self.t, size=len(first))
        return second, share[:, None]

    def _noise(self, codes, near, first, rng):
        if self.noise is None:
            return 0
        shape = (len(first), codes.shape[1])
        if self.noise == "axes":
            return self._multiples(shape, rng) * codes.std(axis=0)
        noise = np.zeros(shape)
        for _ in range(self.terms):
            start, end = self._ends(len(codes), near, first, rng)
            multiples = self._multiples((len(first), 1), rng)
            noise += multiples * (codes[end] - codes[start])
        # Differences of any two rows have twice the covariance of the class.
        return noise / np.sqrt(self.terms * (2 if self.noise == "class" else 1))

    def _ends(self, n, near, first, rng):
        start = first if self.noise == "own" else rng.randint(n, size=len(first))
        if self.noise == "class":
            return start, rng.randint(n, size=len(first))
        return start, _one_of(near, start, rng)

    def _multiples(self, shape, rng):
        if self.law == "uniform":
            return self.size * rng.uniform(-np.sqrt(3), np.sqrt(3), size=shape)
        return self.size * rng.standard_normal(shape)


def _one_of(near, rows, rng):
    return near[rows, rng.randint(near.shape[1], size=len(rows))]


def _fold(values, low, high):
    """Mirrored at the ends of [low, high] until inside."""
    width = high - low
    return high - np.abs(width - np.mod(values - low, 2 * width))
