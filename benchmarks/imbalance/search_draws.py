"""PNLSampler taken apart: for each of its parts, what the search tried in its place."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

from sklearn_pnl import BackwardProjector, PrimeFactorReshaper


@dataclass(eq=False)
class DrawSampler(BaseEstimator):
    """Add rows of class 1 until there are as many as of class 0.

    The defaults are those that the search ended with.

    Parameters
    ----------
    partners : int
        A code is mixed with that of one of so many nearest rows; 0: not at all.
    t_max : float
        The share of the partner is uniform from 0 up to this.
    in_turn : bool
        All rows of the class equally often, instead of random ones.
    noise : {"covariance", "axes", "theta", "fisher"} or None
        Gaussian noise of ``size``: with the covariance of the codes; with their
        spread along each axis of an orthonormal basis; equal for all theta; or with
        the inverse Fisher metric at the code, the mass kept.
    size : float
        Standard deviation of the noise, as a share of the spread that it follows.
    scott : bool
        Multiply ``size`` by Scott's factor.
    through : {"weighted pair", "even pair", "nearer of pair", "own row", "nearest"}
        Rows that a code is decoded through: the two that were mixed, with the shares
        of the mixture, equal ones, or the nearer one alone; the first of the two; or
        those nearest to the code.
    n_nearest : int
        How many for "nearest".
    manifold : {"fiber", "theta", "eta", "mixture"}
        How a code is decoded; see BackwardProjector.
    step : float
        For "mixture".
    order : int
        At most the number of modes.
    offset : float
    with_mass : bool
    embedding : {"class", "all", "spread"}
        What becomes [0, 1]: the range over the class or over all rows, or the mean of
        the class and 2 standard deviations to both sides.
    factored : bool
        Prime factors as modes, instead of one mode.
    padding : float or "mean"
    factor_order : {"descending", "ascending"}
    clip : bool
        Keep new rows in the range of the class.
    random_state : int
    """

    partners: int = 5
    t_max: float = 1.0
    in_turn: bool = False
    noise: str | None = "covariance"
    size: float = 0.25
    scott: bool = False
    through: str = "weighted pair"
    n_nearest: int = 5
    manifold: str = "fiber"
    step: float = 0.98
    order: int = 1
    offset: float = 0.3
    with_mass: bool = True
    embedding: str = "class"
    factored: bool = True
    padding: float | str = "mean"
    factor_order: str = "descending"
    clip: bool = True
    random_state: int = 0

    def fit_resample(self, X, y):
        members = X[y == 1]
        n_new = np.sum(y == 0) - len(members)
        embedding, reshaper = self._embedding(members, X), self._reshaper()
        # Rows outside what becomes [0, 1] may be negative.
        tensors = np.maximum(embedding.transform(members), 0)
        tensors = self._sample(reshaper.fit_transform(tensors), n_new)
        flat = reshaper.inverse_transform(np.maximum(tensors, 0)).reshape(n_new, -1)
        rows = embedding.inverse_transform(flat)
        if self.clip:
            rows = np.clip(rows, members.min(axis=0), members.max(axis=0))
        return np.vstack([X, rows]), np.r_[y, np.ones(n_new, int)]

    def _embedding(self, members, X):
        if self.embedding == "all":
            return MinMaxScaler().fit(X)
        scaler = MinMaxScaler().fit(members)
        if self.embedding == "spread":
            spread = members.std(axis=0)
            spread[spread == 0] = 1
            scaler.scale_ = 1 / (4 * spread)
            scaler.min_ = 0.5 - members.mean(axis=0) / (4 * spread)
        return scaler

    def _reshaper(self):
        if not self.factored:
            return FunctionTransformer()
        return PrimeFactorReshaper(
            pad_value=self.padding, factor_order=self.factor_order
        )

    def _sample(self, tensors, n_new):
        n = len(tensors)
        projector = BackwardProjector(
            min(self.order, tensors.ndim - 1),
            local_manifold=self.manifold,
            step=self.step,
            n_neighbors=min(self.n_nearest, n),
            offset=self.offset,
            with_mass=self.with_mass,
        )
        codes = projector.fit_transform(tensors)
        # The order of the draws is part of the protocol: first, partner, t, noise.
        rng = np.random.RandomState(self.random_state)
        if self.in_turn:
            first = np.resize(rng.permutation(n), n_new)
        else:
            first = rng.randint(n, size=n_new)
        new, second, t = codes[first], first, np.zeros((n_new, 1))
        if self.partners:
            second = self._partners(projector, first, rng)
            t = rng.uniform(0, self.t_max, size=(n_new, 1))
            new = (1 - t) * codes[first] + t * codes[second]
        new = self._with_noise(new, first, projector, rng)
        return projector._decode(new, *self._parents(projector, new, first, second, t))

    def _partners(self, projector, first, rng):
        codes = projector.codes_
        n = len(codes)
        k = min(self.partners, n - 1)
        near = projector.kneighbors(codes, k + 1, return_distance=False)
        # Copies of a row may rank before it: drop the row where it stands, else the
        # farthest.
        itself = near == np.arange(n)[:, None]
        itself[~itself.any(axis=1), -1] = True
        others = near[~itself].reshape(n, k)
        return others[first, rng.randint(k, size=len(first))]

    def _parents(self, projector, new, first, second, t):
        """Rows to decode through, and their weights."""
        if self.through == "nearest":
            return projector._nearest(new)
        if self.through in ("weighted pair", "even pair"):
            share = t if self.through == "weighted pair" else np.full_like(t, 0.5)
            return np.column_stack([first, second]), np.hstack([1 - share, share])
        chosen = first
        if self.through == "nearer of pair":
            chosen = np.where(t[:, 0] < 0.5, first, second)
        return chosen[:, None], np.ones_like(t)

    def _with_noise(self, new, first, projector, rng):
        codes, size = projector.codes_, self.size
        n, length = codes.shape
        if self.scott:
            size = size * n ** (-1 / (length + 4))
        if self.noise == "theta":
            return new + size * rng.standard_normal(new.shape)
        if self.noise == "covariance":
            centred = codes - codes.mean(axis=0)
            mixed = size * rng.standard_normal((len(new), n)) @ centred
            return new + mixed / np.sqrt(max(n - 1, 1))
        if self.noise == "axes":
            noise = size * rng.standard_normal(new.shape)
            return new + _along_axes(noise, projector)
        if self.noise == "fisher":
            return _add_fisher(new, first, projector, size, rng)
        return new


def _along_axes(noise, projector):
    """Noise in units of the spread of an orthonormal coordinate each, as theta."""
    functions = _functions(projector)
    if not projector.with_mass:
        functions = functions[1:]
    R = np.linalg.qr(functions.T, mode="r")
    spread = (projector.codes_ @ R.T).std(axis=0)
    return np.linalg.solve(R, (spread * noise).T).T


def _add_fisher(new, first, projector, size, rng):
    """Noise with the inverse Fisher metric at the code of ``first`` as covariance."""
    functions = _functions(projector)[1:]
    q, log_mass, _ = projector._base.points(projector.codes_)
    roots = np.array([_inverse_root(functions, cells.ravel()) for cells in q])
    noise = rng.standard_normal((len(new), len(functions)))
    new = new.copy()
    new[:, int(projector.with_mass) :] += size * np.einsum(
        "nij,nj->ni", roots[first], noise
    )
    if projector.with_mass:
        # The bottom also carries psi, which the noise has changed.
        new[:, 0] += log_mass[first] - projector._base.points(new)[1]
    return new


def _inverse_root(functions, q):
    """``A`` with ``A A'`` the inverse of the covariance of the functions under q."""
    mean = functions @ q
    fisher = (functions * q) @ functions.T - np.outer(mean, mean)
    # For a base that is singular to rounding, where cells are nearly empty.
    fisher += 1e-10 * np.eye(len(fisher))
    return np.linalg.inv(np.linalg.cholesky(fisher)).T


def _functions(projector):
    """Log cells that one unit of theta gives, for the bottom and then the base."""
    poset, elements = projector.poset_, projector._base.elements
    units = np.zeros((len(elements), poset.n_elements))
    units[np.arange(len(elements)), elements] = 1
    return poset.zeta(units.reshape(-1, *poset.shape)).reshape(len(elements), -1)
