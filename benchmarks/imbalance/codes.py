"""Tables of codes: what SMOTE's lead is where its rows hold no value of a real row.

``python -m benchmarks.imbalance.codes``: the fresh tables whose columns are all codes
of few levels, with SMOTE as it is and as it returns rows of whole numbers: cut to them.
"""

from dataclasses import replace

import numpy as np
from imblearn.over_sampling import SMOTE

from benchmarks.tables import report

from ..harness import evaluate
from ..rivals import Rival, seeded
from .learners import LEARNERS
from .problems import load_tables
from .report import summarise
from .run import FOLDER
from .samplers import RIVALS
from .scores import of_model

TABLES = ("balance", "hayes-roth", "monk-2", "nursery", "tae")
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


def main():
    tables = [table for table in load_tables("fresh") if table.name in TABLES]
    tables = [replace(table, repeats=4, folds=2) for table in tables]
    rivals = {name: RIVALS[name] for name in ("none", "SMOTE", "PNL")}
    rivals["SMOTE, whole numbers"] = Rival(seeded(WholeSMOTE))
    found = evaluate(tables, rivals, LEARNERS, of_model, folder=FOLDER)
    rows = [
        {"table": name, "sampler": rival, **_means(found, name, rival)}
        for name in (*TABLES, "mean")
        for rival in rivals
    ]
    report(rows, "imbalance-codes")


def _means(found, name, rival):
    """Means over learners, and over tables for "mean"."""
    of = [row for row in summarise(found) if row["sampler"] == rival]
    of = [row for row in of if name in (row["table"], "mean")]
    return {score: float(np.mean([row[score] for row in of])) for score in SCORES}


if __name__ == "__main__":
    main()
