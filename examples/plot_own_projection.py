"""
================================
A forward projection of your own
================================

A subclass of ``ForwardProjection`` replaces the KL projection, here by the deformed
many-body approximation of Ghalamkari, Taborsky and Morup (AISTATS 2026). In its base,
``w ** (1 - q)`` has no interactions above an order. The projection preserves the
marginals of ``p ** q`` (Tsallis statistics, q > 1), divided by their sum.
"""

import numpy as np
from sklearn.datasets import load_digits

from sklearn_pnl import BackwardProjector
from sklearn_pnl.encoding import ForwardProjection


class TsallisProjection(ForwardProjection):
    def __init__(self, order=1, q=1.5):
        super().__init__(order)
        self.q = q

    def encode(self, p, poset):
        zeta = poset.zeta(np.eye(poset.n_elements).reshape(-1, *poset.shape))
        elements = np.r_[0, np.flatnonzero(self.base_mask(poset))]
        zeta = zeta.reshape(poset.n_elements, -1)[elements]
        return np.array([self._solve(row.ravel(), zeta) for row in p])

    def _solve(self, p, zeta):  # Newton's method for g = w ** (1 - q)
        g, power = np.full(len(p), np.mean(p) ** (1 - self.q)), self.q / (1 - self.q)
        target, norm = zeta @ p**self.q, np.linalg.norm
        while norm(gap := zeta @ g**power - target) > 1e-10:
            hessian = (zeta * power * g ** (power - 1)) @ zeta.T
            new = g - (step := zeta.T @ np.linalg.solve(hessian, gap))
            while (new <= 0).any() or norm(zeta @ new**power - target) > norm(gap):
                new = g - (step := step / 2)
            g = new
        theta = np.linalg.lstsq(zeta.T, g, rcond=None)[0]
        return theta[1:] / np.sum(g ** (power / self.q)) ** (1 - self.q)

    def points(self, coordinates, poset):  # bisection for the normalisation
        theta = np.zeros((len(coordinates), *poset.shape))
        theta[:, self.base_mask(poset)] = coordinates
        g = poset.zeta(theta).reshape(len(theta), -1)
        low = 1 - g.min(axis=1, keepdims=True)
        high = low - 1 + g.shape[1] ** (self.q - 1)
        for _ in range(60):
            w = (g + (low + high) / 2) ** (1 / (1 - self.q))
            is_large, middle = w.sum(axis=1, keepdims=True) > 1, (low + high) / 2
            low, high = np.where(is_large, [middle, high], [low, middle])
        return w.reshape(theta.shape)


images = load_digits().images[:100] + 1
for name in ("fiber", "theta", "eta", "mixture"):
    backward = BackwardProjector(TsallisProjection(), local_manifold=name).fit(images)
    error = np.abs(backward.inverse_transform(backward.codes_) - images)
    print(f"{name:8} mean error of a pixel {error.mean():.2f}")
