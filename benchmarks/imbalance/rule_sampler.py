"""A sampler on straight lines for numeric rows in which each rule is an argument.

It is short and does not use the package. ``rules.py`` compares its rules.
"""

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors

# Minority rows for each majority row.
SHARE = 1 / 3
# SMOTE with ten neighbours, noise around the base row, and reflection at the bounds.
NO_RULES = {
    "neighbors": 10,
    "scale": "given",
    "noise": 0.41,
    "centre": "base",
    "bounds": "reflect",
    "agreed": "none",
    "binary": "numbers",
    "mutual": False,
}
ROUNDED = NO_RULES | {"binary": "rounded"}


class RuleSampler(BaseEstimator):
    """Mix a minority row and a neighbour, and add noise; each rule is an argument.

    Parameters
    ----------
    neighbors : int or "third"
        Number of neighbours. "third" is a third of the class, at most 10, and 7 for
        fewer than 18 rows.
    scale : {"given", "range", "local spread"}
        The unit of a column in the search for neighbours: 1, the range of the class, or
        the mean difference of near rows.
    noise : float
        Standard deviation of the noise, relative to the differences of the rows.
    centre : {"base", "mixed"}
        Differences of the neighbours from the base row, or of all pairs of neighbours.
    bounds : {"reflect", "clip"}
        What happens to values beyond the bounds of the table.
    agreed : {"none", "atoms", "all"}
        Cells in which both parents agree and that receive no noise. Atoms are values
        that many rows share.
    binary : {"numbers", "rounded", "coin", "each", "linked", "blocks", "neighbours"}
        How binary columns are made: like other columns; like other columns and rounded
        to the nearer of the two values; at random with the mean of the neighbourhood;
        copied one by one from a parent; copied together from a parent if a combination
        is in no row, although chance would give five rows; copied together from a
        parent if one is in no row; as "linked", but from a random row among the base
        row and its neighbours.
    mutual : bool
        Whether a row gives binary cells only if the base row is among its neighbours.
    ratio : float
        Minority rows for each majority row, with the new rows.
    random_state : int
    """

    def __init__(
        self, neighbors, scale, noise, centre, bounds, agreed, binary, mutual,
        ratio=SHARE, random_state=None,
    ):  # fmt: skip
        self.neighbors = neighbors
        self.scale = scale
        self.noise = noise
        self.centre = centre
        self.bounds = bounds
        self.agreed = agreed
        self.binary = binary
        self.mutual = mutual
        self.ratio = ratio
        self.random_state = random_state

    def fit_resample(self, X, y):
        rng = np.random.RandomState(self.random_state)
        rows, n_new = X[y == 1], n_new_rows(y, self.ratio)
        is_binary = np.array([len(np.unique(column)) == 2 for column in X.T])
        near = self._neighbors(X, rows, is_binary)
        i = rng.randint(len(rows), size=n_new)
        j = near[i, rng.randint(near.shape[1], size=n_new)]
        t = rng.uniform(size=(n_new, 1))
        noise = self._noise(rows, i, near, rng)
        if self.agreed != "none":
            agrees = rows[i] == rows[j]
            if self.agreed == "atoms":
                agrees &= are_atoms(X, rows)[i]
            noise[agrees] = 0
        new = rows[i] + t * (rows[j] - rows[i]) + noise
        low, high = X.min(axis=0), X.max(axis=0)
        if self.bounds == "reflect":
            new = np.where(new < low, 2 * low - new, new)
            new = np.where(new > high, 2 * high - new, new)
        new = np.clip(new, low, high)
        if self.binary == "rounded":
            is_high = new > (low + high) / 2
            new = np.where(is_binary, np.where(is_high, high, low), new)
        elif self.binary != "numbers" and is_binary.any():
            new[:, is_binary] = self._flags(X[:, is_binary], y, i, j, t, near, rng)
        return np.r_[X, new], np.r_[y, np.ones(n_new, y.dtype)]

    def _neighbors(self, X, rows, is_binary):
        n, k = len(rows), self.neighbors
        if k == "third":
            k = min(10, n // 3) if n >= 18 else 7
        k = min(k, n - 1)
        points = rows * self._factors(X, rows, is_binary, k)
        search = NearestNeighbors(n_neighbors=k + 1).fit(points)
        return search.kneighbors(points, return_distance=False)[:, 1:]

    def _factors(self, X, rows, is_binary, k):
        """Return a factor for each column in the search for neighbours."""
        if self.scale == "given":
            return np.ones(X.shape[1])
        extent = np.ptp(rows, axis=0)
        factors = np.divide(1, extent, out=np.zeros_like(extent), where=extent > 0)
        is_numeric = (factors > 0) & ~is_binary
        if self.scale == "range" or is_numeric.sum() < 2 or X.shape[1] > 500:
            return factors
        points = rows[:, is_numeric] * factors[is_numeric]
        search = NearestNeighbors(n_neighbors=k + 1).fit(points)
        near = search.kneighbors(points, return_distance=False)[:, 1:]
        spread = np.abs(points[:, None] - points[near]).mean(axis=(0, 1))
        spread = np.maximum(spread, 1e-3)
        factors[is_numeric] *= spread.min() / spread
        # A binary column counts as much as the typical numeric column.
        deviations = (rows[:, is_numeric] * factors[is_numeric]).std(axis=0)
        factors[is_binary] *= np.median(deviations)
        return factors

    def _noise(self, rows, i, near, rng):
        """Return noise (n, D) whose weights of training rows sum to 0."""
        k = near.shape[1]
        if self.centre == "base":
            differences = rows[near] - rows[:, None]
            z = rng.normal(size=(len(i), k)) / np.sqrt(k)
        else:
            differences = rows[np.column_stack([np.arange(len(rows)), near])]
            z = rng.normal(size=(len(i), k + 1))
            z = (z - z.mean(axis=1, keepdims=True)) * np.sqrt(2 / k)
        return self.noise * np.einsum("nk,nkd->nd", z, differences[i])

    def _flags(self, flags, y, i, j, t, near, rng):
        """Return the binary cells (n, b) of new rows."""
        low, high = flags.min(axis=0), flags.max(axis=0)
        rows = flags[y == 1]
        if self.binary == "coin":
            around = rows[np.column_stack([np.arange(len(rows)), near])].mean(axis=1)
            chance = (around - low) / (high - low)
            return np.where(rng.uniform(size=chance[i].shape) < chance[i], high, low)
        least = {"blocks": 0, "each": np.inf}.get(self.binary, 5)
        block = blocks(flags == high, least)
        size = len(i), block.max() + 1
        if self.binary == "neighbours":
            around = np.column_stack([np.arange(len(rows)), near])[i]
            place = rng.randint(around.shape[1], size=size)
            givers = np.take_along_axis(around, place, axis=1)
        else:
            givers = np.where(rng.uniform(size=size) < t, j[:, None], i[:, None])
        if self.mutual:
            is_near = (near[givers] == i[:, None, None]).any(axis=2)
            givers = np.where(is_near, givers, i[:, None])
        return rows[givers[:, block], np.arange(rows.shape[1])]


def n_new_rows(y, ratio):
    """Return the number of minority rows that are missing for the ratio."""
    n_rare = int(np.sum(y))
    return max(0, round(ratio * (len(y) - n_rare)) - n_rare)


def blocks(flags, least):
    """Number the blocks of binary columns (n, b) that absent combinations link.

    A combination links two columns if it is in no row, although at least ``least`` rows
    are expected for independent columns.
    """
    n, b = flags.shape
    both = np.hstack([~flags, flags]).astype(float)
    counts, size = both.T @ both, both.sum(axis=0)
    is_absent = (counts == 0) & (np.outer(size, size) / n >= least)
    linked = is_absent.reshape(2, b, 2, b).any(axis=(0, 2))
    return connected_components(linked, directed=False)[1]


def are_atoms(X, rows):
    """Return the mask of cells of ``rows`` whose values many rows of ``X`` share.

    An atom has at least 3% of the rows, five rows, and four times the rows of the
    fourth most frequent value of a column with at least five values.
    """
    found = np.zeros(rows.shape, bool)
    for c, column in enumerate(X.T):
        values, counts = np.unique(column, return_counts=True)
        if len(values) >= 5:
            least = max(5, 0.03 * len(X), 4 * np.sort(counts)[-4])
            found[:, c] = np.isin(rows[:, c], values[counts >= least])
    return found


class Rose(BaseEstimator):
    """ROSE for the minority class: normal noise with Silverman's width on each row."""

    def __init__(self, ratio=SHARE, random_state=None):
        self.ratio = ratio
        self.random_state = random_state

    def fit_resample(self, X, y):
        rng = np.random.RandomState(self.random_state)
        rows, n_new = X[y == 1], n_new_rows(y, self.ratio)
        n, d = rows.shape
        width = (4 / ((d + 2) * n)) ** (1 / (d + 4))
        noise = width * rows.std(axis=0) * rng.normal(size=(n_new, d))
        new = rows[rng.randint(n, size=n_new)] + noise
        return np.r_[X, new], np.r_[y, np.ones(n_new, y.dtype)]
