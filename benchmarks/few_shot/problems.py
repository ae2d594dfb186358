"""Problems: rows with structure, a pool to draw few of them from, and test rows."""

import inspect
import sys
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.signal import spectrogram
from sklearn.datasets import load_digits

from ..data import load
from ..harness import Split

SHAPE_FSDD = (32, 16)


@dataclass(frozen=True)
class Problem:
    """Flat rows in [0, 1] that are arrays of ``shape``; ``axes`` may be shifted.

    Without test rows of its own, a problem is too small to set some aside for all
    draws: each draw then tests on ``n_test`` rows a class that it left over.
    """

    shape: tuple
    axes: tuple
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    n_test: int = 0

    def draw(self, shots, seed):
        """Draw ``shots`` training rows per class, and the test rows.

        For the same seed, a smaller set of shots is part of a larger set, so that
        numbers of shots are compared on the same rows.
        """
        rng = np.random.default_rng(seed)
        order = [rng.permutation(rows) for rows in _members(self.y)]
        train = np.concatenate([rows[:shots] for rows in order])
        if self.n_test == 0:
            return self.X[train], self.y[train], self.X_test, self.y_test
        test = np.concatenate([rows[-self.n_test :] for rows in order])
        return self.X[train], self.y[train], self.X[test], self.y[test]


@dataclass(frozen=True)
class FewRows:
    """``shots`` rows a class of a problem, drawn ``draws`` times."""

    name: str
    shots: int
    draws: int

    @property
    def head(self):
        return {"problem": self.name, "shots": self.shots}

    @property
    def seeds(self):
        return range(self.draws)

    @property
    def key(self):
        return inspect.getsource(sys.modules[__name__])

    def split(self, seed):
        return Split(seed, *make(self.name).draw(self.shots, seed))


def mnist():
    data = load("mnist")
    return _with_test(
        data["X_train"] / 255, data["y_train"], data["X_test"] / 255, data["y_test"]
    )


def cifar10():
    """Average 4 x 4 pixels, because the learners gain nothing from single pixels."""
    data = load("cifar10")
    pooled = [_pool(data[name] / 255) for name in ("X_train", "X_test")]
    return _with_test(pooled[0], data["y_train"], pooled[1], data["y_test"])


def digits():
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 8, 8) / 16
    test = _balanced(y, 80)
    rest = np.setdiff1d(np.arange(len(y)), test)
    return _with_test(X[rest], y[rest], X[test], y[test])


def fsdd():
    """Split by take, as the data set's authors do: takes 0 to 4 are for testing."""
    data = load("fsdd")
    X, y, test = _spectra(data["X"]), data["y"], data["take"] < 5
    return _with_test(X[~test], y[~test], X[test], y[test], axes=(1,))


def sonar():
    data = load("sonar")
    X, y = data["X"], data["y"]
    return Problem(X.shape[1:], (), X, y, n_test=40)


PROBLEMS = {f.__name__: f for f in (mnist, cifar10, digits, fsdd, sonar)}


@lru_cache(maxsize=1)
def make(name):
    """Make a problem, and cache the last one, because its runs are consecutive."""
    return PROBLEMS[name]()


def _with_test(X, y, X_test, y_test, axes=(0, 1)):
    rows = _balanced(y_test, min(200, np.bincount(y_test).min()))
    return Problem(X.shape[1:], axes, _flat(X), y, _flat(X_test[rows]), y_test[rows])


def _balanced(y, n):
    """Return positions of ``n`` random rows of each class, always the same ones."""
    rng = np.random.default_rng(0)
    return np.sort(
        np.concatenate([rng.choice(rows, n, replace=False) for rows in _members(y)])
    )


def _members(y):
    return [np.flatnonzero(y == label) for label in np.unique(y)]


def _flat(X):
    return X.reshape(len(X), -1)


def _pool(images):
    n, height, width, colours = images.shape
    blocks = images.reshape(n, height // 4, 4, width // 4, 4, colours)
    return blocks.mean(axis=(2, 4))


def _spectra(clips):
    """Compute cube roots of the power in 32 mel bands by 16 frames, scaled per clip.

    The largest value of a clip is 1. The cube root is the usual law of loudness, and
    unlike decibels it needs no floor.
    """
    n_bands, n_frames = SHAPE_FSDD
    hop = clips.shape[1] // n_frames
    padded = np.pad(clips.astype(float), ((0, 0), (hop // 2, hop // 2)))
    frequencies, _, power = spectrogram(padded, 8000, nperseg=2 * hop, noverlap=hop)
    bands = np.cbrt(np.tensordot(power, _mel(frequencies, n_bands), axes=(1, 1)))
    return np.moveaxis(bands / bands.max(axis=(1, 2), keepdims=True), 1, 2)


def _mel(frequencies, n_bands):
    """Return triangles at equal steps of the mel scale, one per row."""
    top = np.log1p(frequencies[-1] / 700)
    edges = 700 * np.expm1(np.linspace(0, top, n_bands + 2))[:, None]
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(rising, falling))
