"""Rows drawn to a wanted value beside held-out real rows that have it.

Half of the rows train; of the other half, those nearest to the 80% quantile of a value
are the band. A forest that tells them from new rows, in cross-validation, has an AUC of
.5 if it cannot, and of 1 if it always can. Where the value is one feature, the forest
does not see it: rows that have it exactly would be told by that alone.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from sklearn_pnl import ColumnConstraint, MixupDraws, PNLAugmenter

from ..data import load
from .script import main

QUANTILE, MOST_ROWS, FILTERED = 0.8, 200, 200


class RandomParents(MixupDraws):
    """Rows drawn with no regard to what is asked for, and projected in the end."""

    def start(self, training, n_samples, rng, condition=None):
        return super().start(training, n_samples, rng)


def tables():
    """Name, rows, and coefficients of the value."""
    wine = np.unique(load("wine_quality")["X"], axis=0)
    yield "wine, alcohol", wine, np.eye(11)[10]
    cancer = load_breast_cancer().data
    yield "breast cancer, sum of ten means", cancer, np.repeat([1.0, 0.0], [10, 20])
    yield "diabetes, bmi", load_diabetes(scaled=False).data, np.eye(10)[2]


def told_apart(real, new, a, seed):
    """AUC of a forest in five folds."""
    if np.count_nonzero(a) == 1:
        real, new = real[:, a == 0], new[:, a == 0]
    X = np.vstack([real, new])
    y = np.repeat([0, 1], [len(real), len(new)])
    forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    p = cross_val_predict(forest, X, y, cv=folds, method="predict_proba")[:, 1]
    return roc_auc_score(y, p)


def ways(train, a, want, seed):
    """By name: as many rows as values are wanted."""
    rng, m = np.random.default_rng(seed), len(want)
    asked = ColumnConstraint({int(j): a[j] for j in np.flatnonzero(a)}, equal=want)
    augmenter = PNLAugmenter().fit(train)
    free = augmenter.sample(FILTERED * m, random_state=seed)
    inside = np.flatnonzero((free @ a >= want.min()) & (free @ a <= want.max()))
    some, random = free[:m], PNLAugmenter(draws=RandomParents()).fit(train)
    factor = (want / (some @ a))[:, None]
    middle = np.abs(train @ a - np.median(want))
    return {
        "sample(constraints=...)": augmenter.sample(m, seed, constraints=asked),
        "200 times as many, filtered": free[rng.permutation(inside)[:m]],
        "random parents, projected": random.sample(m, seed, constraints=asked),
        "default rows, rescaled": np.where(a != 0, some * factor, some),
        "default rows": some,
        "real training rows": train[np.argsort(middle)[:m]],
    }


def measure(X, a, seed):
    """AUC by way, for one split."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = X[order[: len(X) // 2]], X[order[len(X) // 2 :]]
    m = min(MOST_ROWS, len(test) // 6)
    wanted = np.quantile(X @ a, QUANTILE)
    band = test[np.argsort(np.abs(test @ a - wanted))[:m]]
    return {
        name: told_apart(band, rows, a, seed)
        for name, rows in ways(train, a, band @ a, seed).items()
    }


def run(quick):
    """Mean and standard error over splits, by table and way."""
    rows, n_splits = [], 2 if quick else 8
    for name, X, a in tables():
        found = [measure(X, a, seed) for seed in range(n_splits)]
        for way in found[0]:
            aucs = np.array([each[way] for each in found])
            apart = aucs - [each["200 times as many, filtered"] for each in found]
            rows.append(
                {
                    "table": name,
                    "rows": way,
                    "AUC": aucs.mean(),
                    "standard error": aucs.std(ddof=1) / np.sqrt(n_splits),
                    "less that of filtering": apart.mean(),
                    "its standard error": apart.std(ddof=1) / np.sqrt(n_splits),
                }
            )
    return rows


if __name__ == "__main__":
    main(__doc__, run, "realism")
