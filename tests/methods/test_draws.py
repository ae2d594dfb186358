"""Distributions of new codes: seeds of density estimators and transformers."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer

from sklearn_pnl import Codes, PNLAugmenter, PNLSampler
from sklearn_pnl.methods import DensityDraws


def classes(seed=0):
    rng = np.random.default_rng(seed)
    return rng.gamma(2.0, size=(90, 5)), np.repeat([0, 1], [60, 30])


class Nested(BaseEstimator):
    """A density with the random state of a part."""

    def __init__(self, inner=None):
        self.inner = inner

    def fit(self, X):
        self.inner.fit(X)
        return self

    def sample(self, n, random_state=None):
        return self.inner.means_[np.zeros(n, int)]


DENSITIES = [
    GaussianMixture(3, init_params="random"),
    BayesianGaussianMixture(n_components=3, init_params="random", max_iter=500),
    KernelDensity(),
    Nested(GaussianMixture(3, init_params="random")),
    DensityDraws(GaussianMixture(3, init_params="random"), metric="euclidean"),
]


@pytest.mark.parametrize("density", DENSITIES, ids=lambda density: repr(density)[:12])
def test_equal_calls_return_the_same_bytes(density):
    X, y = classes()
    given = repr(density)

    def new_rows(seed):
        sampler = PNLSampler(method=Codes(draws=density), random_state=seed)
        return sampler.fit_resample(X, y)[0]

    first = new_rows(0)
    assert_array_equal(new_rows(0), first)
    assert repr(density) == given
    if not isinstance(density, Nested):
        assert (new_rows(1) != first).any()
    fits = [PNLAugmenter(Codes(draws=density)).fit(X).sample(9, 0) for _ in range(2)]
    assert_array_equal(*fits)


def test_the_seed_of_a_density_is_used():
    X, _ = classes()
    density = GaussianMixture(3, init_params="random", random_state=7)
    fitted = DensityDraws(density).fit(X).estimator_
    assert fitted.random_state == 7
    assert_array_equal(fitted.means_, density.fit(X).means_)


def test_random_transformers_are_fitted_with_a_seed():
    X, y = classes()
    quantiles = QuantileTransformer(n_quantiles=10, subsample=20)
    method = Codes(embedding=make_pipeline(quantiles, MinMaxScaler()))
    first, second = (
        PNLSampler(method=method, random_state=0).fit_resample(X, y)[0]
        for _ in range(2)
    )
    assert_array_equal(first, second)
