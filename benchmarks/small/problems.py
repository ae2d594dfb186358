"""Small balanced tables: few rows of each class, drawn from numeric tables of KEEL."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import joblib
import numpy as np
from sklearn.preprocessing import StandardScaler

from ..harness import Split
from ..imbalance.problems import keel

MIN_CLASS = 60
# More classes and test rows would take time and change little.
MAX_CLASSES, MAX_TEST = 4, 1000


@dataclass(frozen=True)
class SmallTable:
    """A table, and the number of training rows of each class in a draw.

    A draw chooses the classes, the training rows and the test rows. The training rows
    of a smaller number are among the training rows of a larger number. The columns are
    standardised by the training rows. The test rows have the same number of each class.
    """

    name: str
    rows: int
    X: np.ndarray
    y: np.ndarray
    draws: Sequence = (0,)

    @property
    def head(self):
        return {"table": self.name, "rows": self.rows}

    @property
    def seeds(self):
        return self.draws

    @property
    def key(self):
        return joblib.hash((self.X, self.y, MAX_CLASSES, MAX_TEST))

    def split(self, seed):
        rng = np.random.default_rng(seed)
        labels = np.unique(self.y)
        if len(labels) > MAX_CLASSES:
            labels = np.sort(rng.choice(labels, MAX_CLASSES, replace=False))
        order = [rng.permutation(np.flatnonzero(self.y == label)) for label in labels]
        n_test = min(*map(len, order), MAX_TEST // len(labels) + self.rows) - self.rows
        train = np.concatenate([rows[: self.rows] for rows in order])
        test = np.concatenate([rows[-n_test:] for rows in order])
        X = self.X[:, np.ptp(self.X[train], axis=0) > 0]
        scaler = StandardScaler().fit(X[train])
        X, X_test = scaler.transform(X[train]), scaler.transform(X[test])
        return Split(seed, X, self.y[train], X_test, self.y[test])


@cache
def numeric_tables():
    """Return the rows and labels of each numeric table with enough rows per class."""
    load_data, list_data = keel()
    found = {}
    for name in list_data("balanced"):
        frame = load_data(name, "balanced", raw=True)
        X, labels = frame.iloc[:, :-1], frame.iloc[:, -1].astype(str).str.strip()
        numeric = all(dtype.kind in "iuf" for dtype in X.dtypes)
        if numeric and labels.value_counts().min() >= MIN_CLASS:
            found[name] = X.to_numpy(float), np.unique(labels, return_inverse=True)[1]
    return found


def load_tables(rows):
    """Return the tables whose classes have at least twice so many rows."""
    return [
        SmallTable(name, rows, X, y)
        for name, (X, y) in numeric_tables().items()
        if np.bincount(y).min() >= 2 * rows
    ]
