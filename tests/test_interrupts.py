"""Interrupted calls do not change the state of an estimator."""

import copy
import sys

import numpy as np
import pytest
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import sklearn_pnl
from sklearn_pnl import (
    BackwardProjector,
    Codes,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    PrimeFactorReshaper,
)
from sklearn_pnl._utils import threads
from sklearn_pnl.control import ColumnConstraint

ROOT = sklearn_pnl.__path__[0]
rng = np.random.default_rng(0)
X = rng.normal(size=(30, 6))
X = np.column_stack([X, X[:, :2].sum(axis=1), np.eye(2)[rng.integers(0, 2, 30)]])
IMAGES = rng.uniform(size=(30, 3, 2, 2))
MIXED = np.column_stack([X.astype(object), rng.choice(list("abc"), 30)])
Y = np.repeat([0, 1], [20, 10])


def watched(action, do):
    """Run an action; ``do`` gets the code of each function of the package it calls."""

    def at_call(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            do(frame.f_code)

    sys.setprofile(at_call)
    try:
        return action()
    finally:
        sys.setprofile(None)


def stages(action):
    """Return every fourth function of the package that an action calls."""
    # Some functions cache their results for the next call.
    action()
    seen = {}
    watched(action, seen.setdefault)
    return list(seen)[::-4]


def interrupt(action, stage):
    """Press Ctrl-C when a function is first called."""
    # The clean-up after it may call the function again.
    left = [stage]

    def do(code):
        if left and code is left[0]:
            left.clear()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watched(action, do)


def assert_nothing_is_left():
    assert threads._users == 0
    assert get_config() == CONFIG


CONFIG = get_config()
KERNELS = Codes(2, embedding=None, draws="kde")
FITS = {
    "images": (PNLAugmenter(KERNELS), lambda e: e.fit(IMAGES)),
    "mixed": (PNLAugmenter(categorical_features=[9]), lambda e: e.fit(MIXED)),
    "threads": (PNLAugmenter(Codes(1), n_jobs=2), lambda e: e.fit(X)),
    "sampler": (PNLSampler(random_state=0), lambda e: e.fit_resample(X, Y)),
    "numbers": (
        PNLRegressionSampler(row_weights="rarity", random_state=0),
        lambda e: e.fit_resample(X, X[:, 0]),
    ),
    "projector": (BackwardProjector(2), lambda e: e.fit_transform(IMAGES)),
    "reshaper": (PrimeFactorReshaper(), lambda e: e.fit(X)),
}
SAMPLES = {
    "rows": lambda e: e.sample(9, 0),
    "requested": lambda e: e.sample(
        9, 0, constraints=ColumnConstraint(0, lower=np.median(X[:, 0]))
    ),
    "batches": lambda e: list(e.iter_samples(9, 4, 0)),
    "totals": lambda e: e.sample(9, 0, totals={0: float(X[:9, 0].sum())}),
}


@pytest.mark.parametrize("name", FITS)
def test_an_interrupted_fit_preserves_the_previous_state(name):
    estimator, fit = FITS[name]
    every = stages(lambda: fit(estimator))
    assert every
    fitted = dict(vars(estimator))
    for stage in every:
        interrupt(lambda: fit(estimator), stage)
        assert vars(estimator).keys() == fitted.keys(), stage
        assert all(vars(estimator)[key] is fitted[key] for key in fitted), stage
        fresh = type(estimator)(**estimator.get_params(deep=False))
        interrupt(lambda e=fresh: fit(e), stage)
        assert not [key for key in vars(fresh) if key.endswith("_")], stage
        with pytest.raises(NotFittedError):
            check_is_fitted(fresh)
        assert_nothing_is_left()


@pytest.mark.parametrize("name", SAMPLES)
def test_interrupted_sampling_does_not_change_the_estimator(name):
    sample, unused = SAMPLES[name], PNLAugmenter().fit(X)
    # Functions of the package also copy objects.
    copies = iter([copy.deepcopy(unused) for _ in range(2)])
    every = stages(lambda: sample(next(copies)))
    expected = sample(copy.deepcopy(unused))
    for stage in every:
        # The estimator has not sampled before, so that its caches are empty.
        fresh = copy.deepcopy(unused)
        interrupt(lambda e=fresh: sample(e), stage)
        found = sample(fresh)
        assert len(found) == len(expected)
        assert all(map(np.array_equal, found, expected)), stage
        assert_nothing_is_left()
