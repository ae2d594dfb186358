"""Copied, pickled and stored estimators give the results of the original."""

import copy
import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import joblib
import numpy as np
import pytest
from _projectors import backward
from sklearn.base import clone

from sklearn_pnl import (
    Codes,
    ManyBodyProjector,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    PrimeFactorReshaper,
)
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.encoding.manifolds import EtaManifold
from sklearn_pnl.geometry import Poset, tree_poset
from sklearn_pnl.methods.draws import KernelDraws

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 6))
X = np.column_stack([X, X[:, :2].sum(axis=1), np.eye(2)[rng.integers(0, 2, 40)]])
Y = np.repeat([0, 1], [25, 15])
IMAGES = rng.uniform(size=(40, 3, 2, 2))
MIXED = np.column_stack([X.astype(object), rng.choice(list("abc"), 40)])
TREE = tree_poset([-1, 0, 0, 1, 1, 2, 2, 3, 3])
DIAMOND = Poset.from_relations(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
ASKED = ColumnConstraint(0, lower=float(np.median(X[:, 0])))


def both_ways(data):
    def use(projector):
        codes = projector.transform(data)
        return codes, projector.inverse_transform(codes + 0.01)

    return use


def sample(augmenter):
    return augmenter.sample(9, 0), *augmenter.sample(9, 1, return_parents=True)


def of_a_class(sampler):
    return sampler.augmenters_[1].sample(9, 0), sampler.parent_indices_


AS_REQUESTED = PNLSampler(constraints=ASKED, random_state=0)
OBJECTS = {"draws": KernelDraws(0.1), "local_manifold": EtaManifold(1)}
CASES = {
    "table": (PNLAugmenter(), X, sample),
    "images": (PNLAugmenter(Codes(2, embedding=None, **OBJECTS)), IMAGES, sample),
    "categories": (PNLAugmenter(categorical_features=[9]), MIXED, sample),
    "tree": (backward(poset=TREE), np.abs(X), both_ways(np.abs(X))),
    "diamond": (backward(poset=DIAMOND), np.abs(X[:, :4]), both_ways(np.abs(X[:, :4]))),
    "many body": (ManyBodyProjector(2), IMAGES, both_ways(IMAGES)),
    "reshaper": (PrimeFactorReshaper(), X, lambda e: e.transform(X)),
    "requested": (AS_REQUESTED, (X, Y), of_a_class),
    "paper": (PNLSampler(method="paper", random_state=0), (X, Y), of_a_class),
    "numbers": (
        PNLRegressionSampler(random_state=0),
        (X, X[:, 0]),
        lambda e: e.augmenter_.sample(9, 0),
    ),
}


def fit(name):
    estimator, data, _ = CASES[name]
    estimator = clone(estimator)
    if isinstance(data, tuple):
        estimator.fit_resample(*data)
        return estimator
    return estimator.fit(data)


@cache
def wanted(name):
    """Return the result of an estimator that no other test uses."""
    return CASES[name][2](fit(name))


def assert_same(found, expected):
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    for one, other in zip(found, expected, strict=True):
        assert pickle.dumps(np.asarray(one)) == pickle.dumps(np.asarray(other))


def through_joblib(estimator):
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "pickle": lambda estimator: pickle.loads(pickle.dumps(estimator)),
    "copy": copy.deepcopy,
    "joblib": through_joblib,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("used", [False, True])
def test_copies_give_the_same_results(name, way, used):
    estimator, use = fit(name), CASES[name][2]
    expected = wanted(name)
    if used:
        # Caches are copied, or computed again.
        use(estimator)
    again = COPIES[way](estimator)
    assert_same(use(again), expected)
    assert again.get_params().keys() == estimator.get_params().keys()
    assert_same(use(estimator), expected)


# In each of its tasks, scikit-learn briefly clears the warning filters of the process.
# A second thread can then issue the warning about `delayed`.
@pytest.mark.filterwarnings("ignore:.*delayed. should be used with:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_eight_threads_get_the_same_results(name):
    use = CASES[name][2]
    expected = wanted(name)
    # The estimator is unused, so that many threads compute its caches at once.
    shared = fit(name)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: use(shared), range(24)):
            assert_same(found, expected)


def may_be_trusted(kind):
    """List the types of a file that skops must trust beyond scikit-learn's types."""
    return kind.startswith("sklearn_pnl.") or kind in (
        "numpy.dtype",
        "scipy.sparse._csr.csr_array",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
    )


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_skops_can_save_and_load_estimators(name, used):
    skops = pytest.importorskip("skops.io", reason="skops is missing")
    estimator, use = fit(name), CASES[name][2]
    expected = wanted(name)
    if used:
        use(estimator)
    data = skops.dumps(estimator)
    kinds = skops.get_untrusted_types(data=data)
    assert [kind for kind in kinds if not may_be_trusted(kind)] == []
    assert_same(use(skops.loads(data, trusted=kinds)), expected)
