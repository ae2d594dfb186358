"""The limit on BLAS threads is shared and restored."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import sklearn_pnl
from sklearn_pnl import control
from sklearn_pnl._utils import threads
from sklearn_pnl._utils.threads import limited, one_blas_thread


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if is_blas(pool)]


def is_blas(pool):
    return pool["user_api"] == "blas"


@pytest.fixture(autouse=True)
def three():
    """Set three threads, for any machine and any state of earlier tests."""
    found = blas_threads()
    _set(3)
    before = blas_threads()
    assert max(before) == 3
    yield before
    _set(max(found))


def _set(n_threads):
    """Set the number of threads outside the limit of the package."""
    threadpool_limits(n_threads, user_api="blas")
    for library in ThreadpoolController().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def test_overlapping_limits_restore_the_previous_limit(three):
    # The first limit ends first. Separate limits would let the second restore the
    # first.
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == three


def test_python_threads_share_one_limit(three):
    barrier, seen = Barrier(4), []

    def work(number):
        for _ in range(20):
            with one_blas_thread():
                barrier.wait(timeout=60)
                seen.append(set(blas_threads()))
            if number == 0:
                continue
            with pytest.raises(KeyError), one_blas_thread():
                raise KeyError

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert seen == [{1}] * 80
    assert blas_threads() == three


def test_an_iterator_is_limited_only_while_it_runs(three):
    def steps():
        for _ in range(2):
            yield blas_threads()

    for inside in limited(steps()):
        assert set(inside) == {1}
        assert blas_threads() == three


X = np.random.default_rng(0).uniform(1, 2, (20, 4))
Y = np.repeat([0, 1], [12, 8])
ENCODE = ["fit", "transform", "fit_transform"]
# Methods that compute, and functions with their arguments.
METHODS = {
    "BackwardProjector": [*ENCODE, "inverse_transform", "kneighbors"],
    "LogLinearModel": ["fit", "score", "score_samples"],
    "ManyBodyImputer": ENCODE,
    "ManyBodyProjector": [*ENCODE, "inverse_transform", "to_measures"],
    "PNLAugmenter": ["fit", "sample"],
    "PNLRegressionSampler": ["fit", "fit_resample"],
    "PNLSampler": ["fit", "fit_resample"],
}
FUNCTIONS = {
    "adjust": {"constraints": control.ColumnConstraint(0, upper=1.9)},
    "calibrate": {"totals": {0: 30.0}},
    "compare_samples": {"X_new": X[::-1]},
    "find_equalities": {},
    "rake": {"margins": {(0,): X.sum(axis=1), (1,): X.sum(axis=0)}},
}
DOORS = [f"{name}.{method}" for name, methods in METHODS.items() for method in methods]


@pytest.mark.parametrize("function", [*DOORS, *FUNCTIONS])
def test_a_call_limits_threads_once(function, monkeypatch):
    name, _, method = function.partition(".")
    call = getattr(sklearn_pnl, name, None) or getattr(control, name)
    rows = X.reshape(20, 2, 2) if name == "LogLinearModel" else X
    arguments = (rows, Y) if "Sampler" in name else (rows,)
    if method:
        estimator = call()
        call = getattr(estimator, method)
        if "fit" not in method:
            estimator.fit(rows)
        if method in ("inverse_transform", "kneighbors"):
            arguments = (estimator.transform(rows),)
        if method == "sample":
            arguments = ()
    limits = []
    monkeypatch.setattr(threads, "_set_threads", lambda pools: limits.append(pools))
    call(*arguments, **FUNCTIONS.get(function, {}))
    assert len(limits) == 2


def test_threads_do_not_change_warning_filters():
    # The filters belong to the process: a worker that sets them sets them for all
    # threads.
    rows = np.random.default_rng(0).gamma(1.0, size=(3000, 4, 4, 4))
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inside = list(warnings.filters)
        projector = sklearn_pnl.ManyBodyProjector(2, offset=0.1, n_jobs=4).fit(rows)
        projector.transform(rows)
        assert warnings.filters == inside
    assert not caught
    assert warnings.filters == before
