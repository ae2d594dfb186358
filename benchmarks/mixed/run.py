"""Every sampler and learner on every table, in repeated halves.

Run it from the root of the repository::

    python -m benchmarks.mixed.run

It prints means over the tables and comparisons with SMOTE-NC, and writes a row for each
table, sampler and learner to ``benchmarks/results/mixed.csv``.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from imblearn.over_sampling import SMOTENC, RandomOverSampler
from joblib import Parallel, delayed
from scipy.stats import wilcoxon
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from sklearn_pnl import PNLSampler

from ..imbalance.learners import LEARNERS
from ..imbalance.scores import DIRECTIONS, score
from .tables import TABLES, load

REPEATS, FOLDS = 3, 2
SAMPLERS = {
    "none": None,
    "random": lambda seed: RandomOverSampler(random_state=seed),
    "SMOTE-NC": lambda seed: SMOTENC("auto", random_state=seed),
    "PNL": lambda seed: PNLSampler(categorical_features="auto", random_state=seed),
}
SHOWN = ("average precision", "ROC AUC", "balanced accuracy", "Brier")
RESULTS = Path(__file__).parents[1] / "results" / "mixed.csv"


def fold_scores(X, y, train, test, seed):
    """Scores of a fold, by sampler and learner."""
    X_train, X_test = X.iloc[train].copy(), X.iloc[test].copy()
    numbers = list(X.select_dtypes("number"))
    # SMOTE-NC measures distances in the units that it gets.
    scaler = StandardScaler().fit(X_train[numbers])
    for part in (X_train, X_test):
        part[numbers] = scaler.transform(part[numbers])
    scores = {}
    for name, make in SAMPLERS.items():
        rows, labels = X_train, y[train]
        if make is not None:
            rows, labels = make(seed).fit_resample(rows, labels)
        encoder = make_column_transformer(
            (
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                make_column_selector(dtype_include="category"),
            ),
            remainder="passthrough",
        )
        encoded, tested = encoder.fit_transform(rows), encoder.transform(X_test)
        for learner, model in LEARNERS.items():
            fitted = model(seed).fit(encoded, labels)
            chances = fitted.predict_proba(tested)[:, 1]
            scores[name, learner] = score(y[test], chances, fitted.predict(tested))
    return scores


def evaluate(name):
    """Rows of the results of one table."""
    X, y = load(name)
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0)
    with threadpool_limits(1):
        found = [
            fold_scores(X, y, *halves, seed)
            for seed, halves in enumerate(folds.split(X, y))
        ]
    rows = []
    for sampler, learner in found[0]:
        cells = {"table": name, "rows": len(y), "minority": int(y.sum())}
        cells |= {"sampler": sampler, "learner": learner}
        for what in DIRECTIONS:
            values = [scores[sampler, learner][what] for scores in found]
            cells[what] = round(float(np.mean(values)), 5)
            cells[f"{what}, deviation"] = round(float(np.std(values)), 5)
        rows.append(cells)
    print(f"{name}: {len(y)} rows, {y.sum()} of the minority", flush=True)
    return rows


def report(rows):
    """Means over tables, and tests of PNL against SMOTE-NC over tables."""
    for learner in (*LEARNERS, "all"):
        print(f"\n{learner:10}", *(f"{what:>18}" for what in SHOWN))
        for sampler in SAMPLERS:
            cells = [_means(rows, sampler, learner, what) for what in SHOWN]
            print(f"{sampler:10}", *(f"{np.mean(cell):18.4f}" for cell in cells))
        cells = []
        for what in SHOWN:
            difference = _means(rows, "PNL", learner, what) - _means(
                rows, "SMOTE-NC", learner, what
            )
            better = (difference * DIRECTIONS[what] > 0).sum()
            p = wilcoxon(difference).pvalue
            cells.append(f"{better} of {len(difference)}, p={p:.2f}")
        print(f"{'PNL better':10}", *(f"{cell:>18}" for cell in cells))


def _means(rows, sampler, learner, what):
    """A score of each table, of one learner or the mean of all."""
    return np.array(
        [
            np.mean(
                [
                    row[what]
                    for row in rows
                    if (row["table"], row["sampler"]) == (table, sampler)
                    and learner in (row["learner"], "all")
                ]
            )
            for table in dict.fromkeys(row["table"] for row in rows)
        ]
    )


def main(n_jobs=1):
    """Evaluate, write, print."""
    tasks = (delayed(evaluate)(name) for name in TABLES)
    rows = [row for part in Parallel(n_jobs)(tasks) for row in part]
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    report(rows)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
