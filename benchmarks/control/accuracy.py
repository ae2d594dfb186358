"""What keeping equations does to classifiers trained on the resampled table.

Real tables, to which totals and categories that their columns make are added, as they
stand in tables that people keep. The rare class is thinned to a tenth; folds are the
same for all samplers.
"""

import numpy as np
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, cross_validate
from sklearn.preprocessing import StandardScaler

from sklearn_pnl import PNLSampler

from ..data import load
from .script import main

METRICS = {"AP": "average_precision", "AUC": "roc_auc", "BA": "balanced_accuracy"}
SHARE = 0.1


def categories(column, n):
    """A one-hot group of a column cut at its quantiles."""
    cuts = np.quantile(column, np.arange(1, n) / n)
    return np.eye(n)[np.searchsorted(cuts, column)]


def wine(rng):
    """Acids and their sum, sulphur dioxide as free, bound and total; good wines."""
    data = load("wine_quality")
    some = rng.permutation(len(data["X"]))[:2000]
    X, y = data["X"][some], data["y"][some].astype(float) >= 7
    added = X[:, :3].sum(axis=1), X[:, 6] - X[:, 5]
    return np.column_stack([X, *added]), y


def cancer(rng):
    """Each group of ten with its sum, and categories of size and texture."""
    data = load_breast_cancer()
    X = data.data
    sums = X.reshape(-1, 3, 10).sum(axis=2)
    groups = [categories(X[:, j], 4) for j in (0, 1)]
    return np.column_stack([X, sums, *groups]), data.target == 0


def digits(rng):
    """Pixels, the sums of rows and columns, and the ink in all."""
    data = load_digits()
    images = data.images
    ink = images.sum(axis=2), images.sum(axis=1), images.sum(axis=(1, 2))
    return np.column_stack([data.data, *ink]), data.target == 8


TABLES = {"wine": wine, "breast cancer": cancer, "digits": digits}


def thinned(X, y, rng):
    """One row in ten of the rare class."""
    rare = rng.permutation(np.flatnonzero(y))
    kept = rare[: max(30, int(SHARE * np.sum(~y)))]
    rows = np.concatenate([np.flatnonzero(~y), kept])
    return X[rows], y[rows].astype(int)


def learners():
    scaled = [StandardScaler(), LogisticRegression(max_iter=2000)]
    return {"logistic": scaled, "forest": [RandomForestClassifier(100, random_state=0)]}


def compare(table, X, y, n_repeats):
    """Rows of the report of one table."""
    samplers = {
        "with": PNLSampler(random_state=0),
        "without": PNLSampler(invariants=None, random_state=0),
        "SMOTE": SMOTE(random_state=0),
    }
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=n_repeats, random_state=0)
    rows = []
    for learner, steps in learners().items():
        found = {
            name: cross_validate(
                make_pipeline(sampler, *steps), X, y, scoring=METRICS, cv=folds
            )
            for name, sampler in samplers.items()
        }
        for metric in METRICS:
            scores = {name: f[f"test_{metric}"] for name, f in found.items()}
            gain = (scores["with"] - scores["without"]).reshape(n_repeats, 5)
            error = gain.mean(axis=1).std(ddof=1) / np.sqrt(n_repeats)
            means = {name: each.mean() for name, each in scores.items()}
            rows.append(
                {"table": table, "learner": learner, "score": metric, **means,
                 "gain": gain.mean(), "standard error": error}
            )  # fmt: skip
    return rows


def run(quick):
    """All tables."""
    rows = []
    for name, table in TABLES.items():
        rng = np.random.default_rng(0)
        rows += compare(name, *thinned(*table(rng), rng), 2 if quick else 4)
    return rows


if __name__ == "__main__":
    main(__doc__, run, "accuracy")
