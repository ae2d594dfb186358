"""The six data sets of the paper with its settings, and Speech Commands uncut."""

import inspect
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.signal import resample_poly
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

from ..data import load
from ..harness import Split

TABLE_1 = 0.2  # New rows there, as a share of the training rows.
SIZES = (0.25, 0.5, 0.75, 1.0)  # In tables 3 to 5.


@dataclass(frozen=True)
class Experiment:
    """A data set, the geometry of the paper for it, and the input of the learner.

    ``tensor`` is the shape of a row for the method. The base contains the interactions
    up to ``order``, and the local submanifold the interactions beyond ``local_order``.
    New rows are decoded from the ``k`` nearest rows. ``n_train`` rows are drawn, or all
    rows for None. ``steps`` are the steps of the autoencoder.
    """

    name: str
    kind: str
    tensor: tuple
    order: int
    local_order: int
    k: int
    network: str
    epochs: int
    n_seeds: int
    n_train: int | None = None
    n_test: int | None = None
    share: float = TABLE_1
    steps: int = 1500

    @property
    def head(self):
        return {"problem": self.name, "size": self.share}

    @property
    def seeds(self):
        return range(self.n_seeds)

    @property
    def key(self):
        made_by = (Experiment.split, _read.__wrapped__, _parts, _some)
        code = [inspect.getsource(function) for function in made_by]
        return code, self.n_train, self.n_test

    def of_size(self, share):
        return replace(self, share=share)

    def split(self, seed):
        """Split rows as the data set does, by speaker, or at random."""
        X, y, rest = _read(self.name)
        if isinstance(rest, tuple):
            train, (X_test, y_test) = np.arange(len(y)), rest
        else:
            train, test = _parts(y, rest, seed)
            X_test, y_test = X[test], y[test]
        train = _some(train, y, self.n_train, seed)
        tested = _some(np.arange(len(y_test)), y_test, self.n_test, 0)
        return Split(seed, X[train], y[train], X_test[tested], y_test[tested])


SONAR = Experiment("sonar", "table", (2, 2, 3, 5), 1, 2, 2, "MLP", 90, 20)
WINE = Experiment("wine_quality", "table", (2, 2, 3), 2, 1, 10, "MLP", 90, 20)
BANKRUPTCY = Experiment("taiwan_bankruptcy", "table", (5, 19), 1, 1, 5, "MLP", 90, 20)
MNIST = Experiment("mnist", "image", (7, 2, 2, 7, 2, 2), 1, 1, 8, "MLP", 12, 3)
SPEECH = Experiment("speech", "audio", (2,) * 5 + (5,) * 3, 2, 3, 3, "M5", 21, 3)
SPEECH_UNCUT = Experiment(
    "speech uncut", "audio", (2,) * 7 + (5,) * 3, 2, 3, 3, "M5", 21, 3
)
CIFAR10 = Experiment(
    "cifar10", "image", (2,) * 10 + (3,), 5, 4, 3, "CNN", 15, 3, n_train=3000
)
DATA_SETS = {
    e.name: e for e in (SONAR, WINE, BANKRUPTCY, MNIST, SPEECH, SPEECH_UNCUT, CIFAR10)
}
SIZED = ("mnist", "speech", "cifar10")


def experiments():
    """Return the experiments of table 1, then the experiments of tables 3 to 5."""
    sized = [DATA_SETS[name].of_size(share) for name in SIZED for share in SIZES]
    return [*DATA_SETS.values(), *sized]


def quick(experiment):
    """Return the same experiments with few rows, few epochs and one split."""
    most = {"mnist": 2000, "cifar10": 300, "speech": 270, "speech uncut": 180}
    few = most.get(experiment.name, 600)
    return replace(experiment, n_seeds=1, epochs=3, steps=50, n_train=few, n_test=500)


@lru_cache(maxsize=1)
def _read(name):
    """Read rows, labels, and the test rows or speakers; the last data set is cached."""
    if name in ("mnist", "cifar10"):
        data = load(name)
        X, X_test = (np.float32(data[x]) / 255 for x in ("X_train", "X_test"))
        return X, data["y_train"], (X_test, data["y_test"])
    if name.startswith("speech"):
        data = load("speech_commands")
        X = np.float32(data["X"]) / 2**15
        if name == "speech":
            # To 4,000 Hz, with the filter that keeps higher tones from folding down.
            X = np.clip(resample_poly(X, 1, 4, axis=1), -1, 1)
        return X, data["y"], data["speaker"]
    data = load(name)
    return data["X"], data["y"], None


def _parts(y, speakers, seed):
    """Split rows 80 to 20, at random or with the voices on one side only."""
    kind = StratifiedShuffleSplit if speakers is None else GroupShuffleSplit
    splitter = kind(1, test_size=0.2, random_state=seed)
    return next(splitter.split(y, y, speakers))


def _some(rows, y, n, seed):
    """Draw ``n`` rows with the shares of the classes."""
    if n is None or n >= len(rows):
        return rows
    if np.bincount(y[rows])[np.unique(y[rows])].min() < 2:
        return np.random.default_rng(seed).choice(rows, n, replace=False)
    splitter = StratifiedShuffleSplit(1, train_size=n, random_state=seed)
    return rows[next(splitter.split(rows, y[rows]))[0]]
