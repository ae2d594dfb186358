"""New rows with shifted totals beside held-out real rows weighted to the same totals.

Half of the rows train. Of the three columns that vary most with all others, means are
asked for that lie one standard error, or 10% of the mean, above those of the training
rows. The other half is weighted to have them (``calibrate``): the truth. A forest that
tells it from new rows, in cross-validation, has an AUC of .5 if it cannot, and of 1 if
it always can. "plain" are rows without totals, beside the other half as it is. Spread
is the geometric mean over columns of standard deviations, in those of the truth.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from sklearn_pnl import CalibrationError, PNLAugmenter, calibrate, column_total

from ..data import load
from .script import main

MOST_ROWS, N_COLUMNS, LEAST_SPREAD = 500, 3, 0.2
SHIFTS, COPIES = ("one standard error", "10%"), "weights, replicated"


def tables():
    """Name and rows of five real tables."""
    yield "wine quality", np.unique(load("wine_quality")["X"], axis=0)
    yield "breast cancer", load_breast_cancer().data
    yield "diabetes", load_diabetes(scaled=False).data
    yield "sonar", load("sonar")["X"]
    bankruptcy = load("taiwan_bankruptcy")["X"]
    spread = bankruptcy.std(axis=0) / np.maximum(np.abs(bankruptcy.mean(axis=0)), 1e-9)
    many = np.array([len(np.unique(column)) for column in bankruptcy.T]) > 500
    usual = many & (spread < 2)
    yield "bankruptcy, 20 columns", bankruptcy[:, np.flatnonzero(usual)[:20]]


def columns_of(X):
    """The columns that are asked about: positive, spread, tied to the others."""
    mean, spread = X.mean(axis=0), X.std(axis=0)
    tied = np.abs(np.nan_to_num(np.corrcoef(X.T))).sum(axis=0)
    some = (mean > 0) & (spread > LEAST_SPREAD * mean)
    return np.argsort(np.where(some, -tied, np.inf), kind="stable")[:N_COLUMNS]


def told_apart(real, weights, new, seed):
    """AUC of a forest in five folds, real rows with their weights."""
    X, y = np.vstack([real, new]), np.repeat([0, 1], [len(real), len(new)])
    w = np.concatenate([weights * len(new) / weights.sum(), np.ones(len(new))])
    told = np.empty(len(y))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    for fit, test in folds.split(X, y):
        forest = RandomForestClassifier(60, min_samples_leaf=2, random_state=seed)
        forest.fit(X[fit], y[fit], sample_weight=w[fit])
        told[test] = forest.predict_proba(X[test])[:, 1]
    return roc_auc_score(y, told, sample_weight=w)


def replicated(train, asked, n, rng):
    """Training rows as often as their weights say, whole by truncating and sampling."""
    weights = calibrate(train, asked) * n / len(train)
    whole = np.floor(weights).astype(int)
    part = weights - whole
    extra = rng.choice(len(train), n - whole.sum(), p=part / part.sum())
    return train[np.concatenate([np.repeat(np.arange(len(train)), whole), extra])]


def measure(X, shift, seed):
    """AUC by way of one split, and what totals moved; None if no weights have them."""
    rng = np.random.default_rng(seed)
    X = X[rng.permutation(len(X))[: 2 * MOST_ROWS]]
    train, test = X[: len(X) // 2], X[len(X) // 2 :]
    some, n = columns_of(train), len(test)
    mean = train[:, some].mean(axis=0)
    error = train[:, some].std(axis=0) / np.sqrt(len(train))
    wanted = mean + error if shift == SHIFTS[0] else 1.1 * mean
    # Means of so many whole numbers are multiples of 1 / n.
    whole = (train[:, some] == np.rint(train[:, some])).all(axis=0)
    wanted = np.where(whole, np.rint(n * wanted) / n, wanted)
    asked = [
        column_total(int(j), value, mean=True)
        for j, value in zip(some, wanted, strict=True)
    ]
    try:
        weights = calibrate(test, asked)
        copies = replicated(train, asked, n, rng)
    except CalibrationError:
        return None
    augmenter = PNLAugmenter().fit(train)
    plain = augmenter.sample(n, seed)
    rescaled = plain.copy()
    rescaled[:, some] *= wanted / plain[:, some].mean(axis=0)
    others = {
        f"the same, {draws}": PNLAugmenter(draws=draws).fit(train)
        for draws in ("mixup", "interpolation")
    }
    found = {
        "sample(totals=...)": augmenter.sample(n, seed, totals=asked),
        **{way: a.sample(n, seed, totals=asked) for way, a in others.items()},
        "rescaled": rescaled,
        COPIES: copies,
    }
    scores = {
        way: (told_apart(test, weights, rows, seed), spread(test, weights, rows))
        for way, rows in found.items()
    }
    usual = np.ones(n)
    told = told_apart(test, usual, plain, seed), spread(test, usual, plain)
    return scores | {"plain": told}


def spread(real, weights, new):
    """Standard deviations of new rows in those of real ones, with their weights."""
    away = real - np.average(real, axis=0, weights=weights)
    wanted = np.sqrt(np.average(away**2, axis=0, weights=weights))
    some = wanted > 0
    return float(np.exp(np.mean(np.log(new.std(axis=0)[some] / wanted[some]))))


def run(quick):
    """Mean and standard error over splits, by table and way."""
    n_splits = 2 if quick else 8
    return [row for name, X in tables() for row in of_table(name, X, n_splits)]


def of_table(name, X, n_splits):
    """The same of one table."""
    rows = []
    for shift in SHIFTS:
        found = [measure(X, shift, seed) for seed in range(n_splits)]
        found = [each for each in found if each is not None]
        for way in found[0] if found else ():
            aucs, spreads = np.array([each[way] for each in found]).T
            apart, nearer = (
                aucs - [each[other][0] for each in found] for other in ("plain", COPIES)
            )
            root = np.sqrt(max(1, len(aucs)))
            rows.append(
                {
                    "table": name,
                    "shift": shift,
                    "rows": way,
                    "AUC": aucs.mean(),
                    "standard error": aucs.std(ddof=1) / root,
                    "less that of plain": apart.mean(),
                    "less that of copies": nearer.mean(),
                    "its standard error": nearer.std(ddof=1) / root,
                    "spread": spreads.mean(),
                    "splits": len(aucs),
                }
            )
    return rows


if __name__ == "__main__":
    main(__doc__, run, "shifted")
