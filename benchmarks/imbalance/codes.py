"""Tables of codes: what SMOTE's lead is where its rows hold no value of a real row.

``python -m benchmarks.imbalance.codes``: tables whose columns are all codes of few
levels, the fresh ones and seven of KEEL, with SMOTE as it is and as it returns rows of
whole numbers: cut to them.
"""

from dataclasses import replace

import numpy as np
from imblearn.over_sampling import SMOTE
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.tables import report
from sklearn_pnl import PNLSampler

from ..harness import evaluate
from ..rivals import Rival, seeded
from . import fresh
from .learners import LEARNERS
from .problems import Table, keel, load_tables
from .report import summarise
from .run import FOLDER
from .samplers import RIVALS
from .scores import of_model

TABLES = ("balance", "hayes-roth", "monk-2", "nursery", "tae")
KEEL = (
    "breast", "chess", "housevotes", "led7digit", "mushroom", "splice", "tic-tac-toe",
)  # fmt: skip
MAX_ROWS = 1200
SCORES = ("average precision", "ROC AUC", "balanced accuracy", "Brier")


class WholeSMOTE(SMOTE):
    """SMOTE, whose rows are cut to the step of each column, as types cut them."""

    def fit_resample(self, X, y):
        rows, labels = super().fit_resample(X, y)
        low, new = X.min(axis=0), rows[len(X) :]
        for j in np.flatnonzero(np.ptp(X, axis=0)):
            gaps = np.diff(np.unique(X[:, j].round(9)))
            step = gaps.min()
            assert np.allclose(gaps / step, np.rint(gaps / step), atol=1e-4)
            new[:, j] = low[j] + np.floor((new[:, j] - low[j]) / step + 1e-6) * step
        return rows, labels


def _as_codes(name):
    """A table of KEEL with names as numbers in the order of the alphabet."""
    frame = keel()[0](name, "balanced", raw=True)
    X, labels = frame.iloc[:, :-1].astype(str), frame.iloc[:, -1]
    X.loc[:, :] = OrdinalEncoder().fit_transform(X).astype(str)
    return Table(name, name, *fresh.prepared(X.astype(float), labels, MAX_ROWS))


def main():
    tables = [table for table in load_tables("fresh") if table.name in TABLES]
    tables += [_as_codes(name) for name in KEEL]
    tables = [replace(table, repeats=4, folds=2) for table in tables]
    rivals = {name: RIVALS[name] for name in ("none", "ROS", "SMOTE", "PNL")}
    rivals["SMOTE, whole numbers"] = Rival(seeded(WholeSMOTE))
    rivals["PNL, no marks"] = Rival(seeded(PNLSampler, marks=None))
    found = evaluate(tables, rivals, LEARNERS, of_model, folder=FOLDER)
    rows = [
        {"tables": told, "sampler": rival, **_means(found, names, rival)}
        for told, names in _groups()
        for rival in rivals
    ]
    report(rows, "imbalance-codes")


def _groups():
    """Tables, each alone and together."""
    alone = [(name, (name,)) for name in TABLES + KEEL]
    whole = [("fresh", TABLES), ("KEEL", KEEL), ("all", TABLES + KEEL)]
    return alone + whole


def _means(found, names, rival):
    """Means over tables and learners."""
    of = [row for row in summarise(found) if row["sampler"] == rival]
    of = [row for row in of if row["table"] in names]
    return {score: float(np.mean([row[score] for row in of])) for score in SCORES}


if __name__ == "__main__":
    main()
