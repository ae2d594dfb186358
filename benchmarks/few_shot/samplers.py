"""Samplers that bring each class to the same number of rows."""

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from scipy.ndimage import rotate
from sklearn.base import BaseEstimator, clone

from sklearn_pnl import Codes, PNLSampler

from ..baselines import Baseline, seeded
from .problems import make

DEGREES = 15
FACTOR, LEAST = 5, 50  # Rows of a class afterwards: 5 times as many, at least 50.


class ShiftSampler(BaseEstimator):
    """Copies of random rows, moved by one cell along some axes; edges repeated.

    What somebody who knows that the rows are images would write by hand. Images are
    also rotated by a random angle of at most ``degrees``.
    """

    def __init__(self, sampling_strategy, *, shape, axes, degrees=0, random_state=None):
        self.sampling_strategy = sampling_strategy
        self.shape = shape
        self.axes = axes
        self.degrees = degrees
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
        if self.degrees:
            angle = rng.uniform(-self.degrees, self.degrees)
            array = rotate(array, angle, self.axes, reshape=False, order=1,
                           mode="nearest")  # fmt: skip
        for axis, step in enumerate(steps):
            wanted = np.clip(np.arange(self.shape[axis]) + step, 0, None)
            array = np.take(array, wanted, axis=axis, mode="clip")
        return array.ravel()


class ArraySampler(BaseEstimator):
    """Over-sample flat rows as arrays of ``shape`` with a sampler of this package."""

    def __init__(self, sampler, *, shape, random_state=None):
        self.sampler = sampler
        self.shape = shape
        self.random_state = random_state

    def fit_resample(self, X, y):
        sampler = clone(self.sampler).set_params(random_state=self.random_state)
        arrays, y = sampler.fit_resample(X.reshape(-1, *self.shape), y)
        return arrays.reshape(len(arrays), -1), y


def baselines(few):
    """Return the samplers by name; all of them add the same number of rows."""
    problem, shots = make(few.name), few.shots
    wanted = max(FACTOR * shots, LEAST)
    counts = {int(label): wanted for label in np.unique(problem.y)}
    place = {"shape": problem.shape, "axes": problem.axes}

    def of_arrays(method, k_neighbors="auto"):
        # Features are not scaled, because a band or pixel is a mass relative to its
        # neighbours.
        method = method.set_params(embedding=None)
        sampler = PNLSampler(
            sampling_strategy=counts, k_neighbors=k_neighbors, method=method
        )
        return seeded(ArraySampler, sampler=sampler, shape=problem.shape)

    made = {
        "noise": seeded(RandomOverSampler, sampling_strategy=counts, shrinkage=0.3),
        "SMOTE": seeded(SMOTE, sampling_strategy=counts, k_neighbors=min(5, shots - 1)),
        "PNL": of_arrays(Codes()),
        "PNL (paper)": of_arrays(Codes.paper(), min(8, shots - 1)),
    }
    if problem.axes:
        made["shift"] = seeded(ShiftSampler, sampling_strategy=counts, **place)
    if len(problem.axes) == 2:
        made["shift, rotation"] = seeded(
            ShiftSampler, sampling_strategy=counts, **place, degrees=DEGREES
        )
    adapt = scale_penalty(shots / wanted)
    return {"none": None} | {
        name: Baseline(sampler, adapt) for name, sampler in made.items()
    }


def scale_penalty(share):
    """Multiply C by ``share``, the part of the rows that is original.

    Each added row reduces the relative weight of the penalty of logistic regression.
    Without the scaling, more rows would change the model even if they were copies.
    """

    def adapt(learner, seed):
        if not hasattr(learner, "C"):
            return learner
        return learner.set_params(C=share * learner.C)

    return adapt
