"""Ways to draw noise that the one of the library was chosen among."""

import numpy as np

from sklearn_pnl import MixupDraws


class VariantDraws(MixupDraws):
    """Noise of so many ``differences`` of ``kind``, each times a number of its own.

    "among": between two of the first row and its nearest; "from": between it and one of
    them; "pooled": between any row and one of its nearest.
    """

    def __init__(
        self,
        noise=0.5,
        kind="among",
        differences=4,
        noise_neighbors=5,
        n_candidates=2**14,
    ):
        super().__init__(
            noise, noise_neighbors=noise_neighbors, n_candidates=n_candidates
        )
        self.kind = kind
        self.differences = differences

    def _pairs(self, *args):
        found = super()._pairs(*args)
        self._groups = found[0]
        return found

    def _noise(self, codes, near, rng, lacking=None):
        (b, m), noise = near.shape, 0
        for _ in range(self.differences):
            rows, one = near, np.zeros(b, int)
            if self.kind == "pooled":
                rows = self._groups[rng.randint(len(self._groups), size=b)]
            if self.kind == "among":
                one = rng.randint(m, size=b)
            other = (one + 1 + rng.randint(m - 1, size=b)) % m
            each = np.arange(b)
            difference = codes[rows[each, one]] - codes[rows[each, other]]
            noise = noise + difference * rng.standard_normal((b, 1))
        return noise * (self.noise / np.sqrt(self.differences))
