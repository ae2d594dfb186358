"""Samplers: estimators with ``fit_resample``, or None to add nothing."""

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn.base import BaseEstimator

from sklearn_pnl import (
    KernelDraws,
    MixtureManifold,
    PNLSampler,
    PrimeFactorReshaper,
)

FACTOR, LEAST = 5, 50  # Rows of a class afterwards: 5 times as many, at least 50.


class ShiftSampler(BaseEstimator):
    """Copies of random rows, moved by one cell along some axes; edges repeated.

    What somebody who knows that the rows are images would write by hand.
    """

    def __init__(self, sampling_strategy, *, shape, axes, random_state=None):
        self.sampling_strategy = sampling_strategy
        self.shape = shape
        self.axes = axes
        self.random_state = random_state

    def fit_resample(self, X, y):
        rng = np.random.default_rng(self.random_state)
        rows = np.concatenate(
            [
                rng.choice(np.flatnonzero(y == label), wanted - np.sum(y == label))
                for label, wanted in self.sampling_strategy.items()
            ]
        )
        new = np.array([self._shift(row, rng) for row in X[rows]])
        return np.concatenate([X, new]), np.concatenate([y, y[rows]])

    def _shift(self, row, rng):
        steps = np.zeros(len(self.shape), dtype=int)
        while not steps.any():
            steps[list(self.axes)] = rng.integers(-1, 2, size=len(self.axes))
        array = row.reshape(self.shape)
        for axis, step in enumerate(steps):
            wanted = np.clip(np.arange(self.shape[axis]) + step, 0, None)
            array = np.take(array, wanted, axis=axis, mode="clip")
        return array.ravel()


def make_samplers(problem, y, seed):
    """By name, all with the same number of rows to reach and the same seed."""
    labels, counts = np.unique(y, return_counts=True)
    shots = int(counts[0])
    wanted = max(FACTOR * shots, LEAST)
    shared = {
        "sampling_strategy": {int(label): wanted for label in labels},
        "random_state": seed,
    }
    samplers = {
        "none": None,
        "noise": RandomOverSampler(shrinkage=0.3, **shared),
        "SMOTE": SMOTE(k_neighbors=min(5, shots - 1), **shared),
        **_pnl(problem, shots, shared),
    }
    if problem.axes:
        samplers["shift"] = ShiftSampler(
            shape=problem.shape, axes=problem.axes, **shared
        )
    return samplers


def _pnl(problem, shots, shared):
    # No scaling by feature: a band or pixel is a mass beside its neighbours.
    shared = {
        "embedding": None,
        "reshaper": PrimeFactorReshaper(input_shape=problem.shape),
        **shared,
    }
    return {
        "PNL": PNLSampler(**shared),
        "PNL order 2": PNLSampler(order=2, **shared),
        "PNL order None": PNLSampler(order=None, **shared),
        "PNL (paper)": PNLSampler(
            order=1,
            augment=KernelDraws(bandwidth=0.05),
            local_manifold=MixtureManifold(step=0.98),
            k_neighbors=min(8, shots - 1),
            offset=1e-5,
            with_mass=False,
            margin=0,
            **shared,
        ),
    }
