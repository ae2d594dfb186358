"""Threads that share an estimator get the results of serial calls."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.validation import check_is_fitted

from sklearn_pnl import (
    BackwardProjector,
    Codes,
    LogLinearModel,
    ManyBodyImputer,
    ManyBodyProjector,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    PrimeFactorReshaper,
    PriorCorrectedClassifier,
)

pd = pytest.importorskip("pandas")
N_CALLS, N_THREADS = 60, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
X[:, 5] = X[:, 0] + X[:, 1]
Y = np.repeat([0, 1], [45, 15])
IMAGES = RNG.uniform(0.1, 1, size=(20, 3, 4))
HOLES, GAPS = IMAGES.copy(), X.copy()
HOLES[::3, 1, 2] = GAPS[::4, 5] = np.nan
COUNTS = RNG.integers(1, 30, size=(2, 2, 3, 2))


def sampled(augmenter, rows=X):
    augmenter.fit(rows)
    return augmenter.sample(20, random_state=0, return_parents=True)


def coded(projector):
    codes = projector.fit_transform(IMAGES)
    return codes, projector.transform(IMAGES), projector.inverse_transform(codes)


def classified(classifier):
    return classifier.fit(X, Y).predict_proba(X), classifier.predict(X)


def modelled(model):
    model.fit(COUNTS)
    return model.score_samples(COUNTS), model.theta_, model.to_frame()


def imputed(rows):
    return lambda imputer: (imputer.fit_transform(rows), imputer.transform(rows))


# Each case has an estimator and a call, which includes the fit.
CASES = {
    "sampler": (
        PNLSampler(random_state=0),
        lambda one: (*one.fit_resample(X, Y), one.parent_indices_),
    ),
    "sampler, codes": (
        PNLSampler(method="paper", random_state=0),
        lambda one: one.fit_resample(X, Y),
    ),
    "regression sampler": (
        PNLRegressionSampler(random_state=0),
        lambda one: (*one.fit_resample(X, X[:, 0]), one.parent_weights_),
    ),
    "augmenter": (PNLAugmenter(), sampled),
    "augmenter, codes": (PNLAugmenter(Codes(1)), lambda one: sampled(one, IMAGES)),
    "forward projector": (ManyBodyProjector(2), coded),
    "backward projector": (BackwardProjector(), coded),
    "reshaper": (
        PrimeFactorReshaper(),
        lambda one: one.inverse_transform(one.fit_transform(IMAGES)),
    ),
    "imputer of tensors": (ManyBodyImputer(), imputed(HOLES)),
    "imputer of tables": (ManyBodyImputer(), imputed(GAPS)),
    "log-linear model": (LogLinearModel(2), modelled),
    "classifier": (
        PriorCorrectedClassifier(PNLSampler(random_state=0), GaussianNB()),
        classified,
    ),
}


@pytest.fixture(autouse=True)
def impatient():
    """Switch between threads two hundred times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2.5e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(call):
    """Return the digests of many calls in threads, and their errors."""

    def work(_):
        try:
            return joblib.hash(call())
        except Exception as error:
            return repr(error)

    with ThreadPoolExecutor(N_THREADS) as pool:
        return set(pool.map(work, range(N_CALLS)))


@pytest.mark.parametrize("key", CASES)
def test_calls_in_threads_give_the_result_of_one_call(key):
    estimator, use = CASES[key]
    expected = joblib.hash(use(clone(estimator)))
    shared = clone(estimator)
    assert in_threads(lambda: use(shared)) == {expected}


@pytest.mark.parametrize("key", CASES)
def test_fit_sets_attributes_only_at_its_end(key):
    # No thread can see a part of a fit.
    estimator, use = CASES[key]
    written, watched = [], set()

    class Watched(type(estimator)):
        def __setattr__(self, name, value):
            if name != "__dict__" and id(self) in watched:
                written.append(name)
            super().__setattr__(name, value)

        def __delattr__(self, name):
            if id(self) in watched:
                written.append(name)
            super().__delattr__(name)

    shared = Watched(**estimator.get_params(deep=False))
    watched.add(id(shared))
    use(shared)
    check_is_fitted(shared)
    assert not written


def test_sampling_is_not_affected_by_a_concurrent_fit():
    augmenter = PNLAugmenter().fit(X)
    expected = joblib.hash(augmenter.sample(20, random_state=0))
    stop = threading.Event()

    def refit():
        while not stop.is_set():
            augmenter.fit(X)

    with ThreadPoolExecutor(1) as pool:
        refits = pool.submit(refit)
        seen = in_threads(lambda: augmenter.sample(20, random_state=0))
        stop.set()
        refits.result()
    assert seen == {expected}


def test_a_failed_fit_leaves_a_shared_estimator_fitted():
    augmenter = PNLAugmenter().fit(X)
    expected = joblib.hash(augmenter.sample(20, random_state=0))

    def failing():
        with pytest.raises(ValueError, match="infinity"):
            augmenter.fit(np.where(X == X[0, 0], np.inf, X))
        return augmenter.sample(20, random_state=0)

    assert in_threads(failing) == {expected}


def test_random_state_instances_can_be_shared():
    # The threads receive the random numbers in any order.
    for seed in (np.random.RandomState(0), np.random.default_rng(0)):
        sampler = PNLSampler(random_state=seed)
        with ThreadPoolExecutor(N_THREADS) as pool:
            calls = [pool.submit(sampler.fit_resample, X, Y) for _ in range(8)]
        for call in calls:
            rows, _ = call.result()
            assert_array_equal(rows[: len(X)], X)
