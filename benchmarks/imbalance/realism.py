"""Can a forest tell new rows from held-out real ones?

``python -m benchmarks.imbalance.realism``

Half of the rows train, as a class of their own; as many new ones are drawn as there are
in the other half, and a forest tells the two apart in cross-validation: an AUC of .5 is
best. Random over-sampling without noise gives copies, which no forest can tell.
"""

from functools import partial

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from sklearn_pnl import PNLSampler

from ..tables import report
from .spread_draws import VariantDraws
from .spread_tables import load_tables

# Of the tables that the noise was chosen on, those that are measured, not simulated.
CHOSEN = ("phoneme", "segment", "vowel", "pima", "spambase")
MOST_ROWS, SEEDS = 1200, range(4)
SAMPLERS = {
    "ROS 0.3": partial(RandomOverSampler, shrinkage=0.3),
    "SMOTE": SMOTE,
    "former": partial(
        PNLSampler, draws=VariantDraws(0.25, "pooled", 1), k_neighbors=5, marks=None
    ),
    "default": PNLSampler,
}


def tables():
    """Names and rows."""
    yield "breast cancer", load_breast_cancer().data
    yield "diabetes", load_diabetes(scaled=False).data
    yield "wine", load_wine().data
    for table in load_tables("chosen"):
        if table.name in CHOSEN:
            yield table.name, table.X


def told_apart(X, make, seed):
    """AUC of a forest for new rows of half of the rows against the other half."""
    rng = np.random.default_rng(seed)
    X = rng.permutation(X)[:MOST_ROWS]
    train, real = np.array_split(X, 2)
    n, n_new = len(train), len(real)
    # Rows of another class, so that there is something to be balanced with.
    y = np.repeat([0, 1], [n + n_new, n])
    both = np.vstack([np.resize(train, (n + n_new, X.shape[1])), train])
    new = make(random_state=seed).fit_resample(both, y)[0][len(y) :]
    told = np.repeat([0, 1], [len(real), len(new)])
    forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    rows = np.vstack([real, new])
    p = cross_val_predict(forest, rows, told, cv=folds, method="predict_proba")
    return roc_auc_score(told, p[:, 1])


def main():
    """A row a table, and the mean."""
    rows = []
    for name, X in tables():
        row = {"table": name}
        for sampler, make in SAMPLERS.items():
            row[sampler] = float(np.mean([told_apart(X, make, s) for s in SEEDS]))
        rows.append(row)
    mean = {name: float(np.mean([row[name] for row in rows])) for name in SAMPLERS}
    report([*rows, {"table": "mean"} | mean], "realism")


if __name__ == "__main__":
    main()
