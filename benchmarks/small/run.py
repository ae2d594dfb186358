"""Measure the effect of new rows for small tables with balanced classes.

``python -m benchmarks.small.run``
"""

import argparse
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from imblearn.over_sampling import SMOTE
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from sklearn_pnl import PNLSampler

from ..baselines import Baseline, seeded
from ..few_shot.samplers import scale_penalty
from ..few_shot.scores import FLOOR
from ..harness import evaluate
from ..imbalance.learners import REGULARISED
from ..imbalance.rule_sampler import ROUNDED, Rose, RuleSampler
from ..imbalance.run import chosen
from ..tables import markdown, read_csv, updated, write_csv
from . import report
from .problems import load_tables

FOLDER = Path(__file__).parent / "cache"
ROWS = (10, 30, 100)
LEARNERS = {
    "logistic": lambda seed: LogisticRegression(max_iter=2000),
    "SVM": lambda seed: SVC(random_state=seed),
    "5-NN": lambda seed: KNeighborsClassifier(5),
    "forest": lambda seed: RandomForestClassifier(100, random_state=seed),
    "boosting, leaves of 5": lambda seed: HistGradientBoostingClassifier(
        min_samples_leaf=5, random_state=seed
    ),
    **REGULARISED,
}

# A class with 10 rows has too few neighbours in a table with two classes.
LEAST = 30


class EachClass(BaseEstimator):
    """Over-sample each class with a sampler for the class of the label 1."""

    def __init__(self, sampler, factor, random_state=None):
        self.sampler = sampler
        self.factor = factor
        self.random_state = random_state

    def fit_resample(self, X, y):
        rows, labels = [X], [y]
        for label in np.unique(y):
            is_own = y == label
            n = is_own.sum()
            ratio = self.factor * n / (len(y) - n)
            sampler = clone(self.sampler).set_params(
                ratio=ratio, random_state=self.random_state
            )
            new = sampler.fit_resample(X, is_own.astype(int))[0][len(X) :]
            rows.append(new)
            labels.append(np.full(len(new), label))
        return np.concatenate(rows), np.concatenate(labels)


def times(factor, y):
    """Return a ``sampling_strategy``: so many times the rows of each class."""
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), (factor * counts).tolist(), strict=True))


def enlarged(kind, factor, **params):
    """Over-sample each class, and divide C by the factor."""
    sampler = seeded(kind, sampling_strategy=partial(times, factor), **params)
    return Baseline(sampler, scale_penalty(1 / factor))


def each_class(sampler, factor):
    """Over-sample each class, and divide C by the factor."""
    return Baseline(
        seeded(EachClass, sampler=sampler, factor=factor), scale_penalty(1 / factor)
    )


BASELINES = {
    "none": Baseline(),
    "SMOTE x 5": enlarged(SMOTE, 5),
    "PNL x 5": enlarged(PNLSampler, 5),
    "paper x 5": enlarged(PNLSampler, 5, method="paper"),
    "ROSE x 5": each_class(Rose(), 5),
    **(
        {"MGS 5 x 5": enlarged(import_module("mgs_grf").MGSGRFOverSampler, 5, K=5)}
        if find_spec("mgs_grf")
        else {}
    ),
    "ten lines x 5": each_class(RuleSampler(**ROUNDED), 5),
}


def learners(table):
    """Return all learners that a table has enough rows for."""
    left_out = () if table.rows >= LEAST else ("25-NN",)
    return {name: make for name, make in LEARNERS.items() if name not in left_out}


def score(model, split, baseline):
    """Compute accuracy, AUC (mean of one class against the rest) and log loss."""
    y, labels = split.y_test, model.classes_
    probabilistic = hasattr(model, "predict_proba")
    values = (model.predict_proba if probabilistic else model.decision_function)(
        split.X_test
    )
    if values.ndim == 1:
        values = np.column_stack([-values, values])
    columns = enumerate(labels)
    areas = [roc_auc_score(y == label, values[:, i]) for i, label in columns]
    loss = None
    if probabilistic:
        floored = np.maximum(values, FLOOR)
        floored /= floored.sum(axis=1, keepdims=True)
        loss = float(log_loss(y, floored, labels=labels))
    return {
        "accuracy": float(accuracy_score(y, labels[values.argmax(axis=1)])),
        "ROC AUC": float(np.mean(areas)),
        "log loss": loss,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--samplers", nargs="+", help="default: all")
    parser.add_argument("--known", action="store_true", help="report the cache only")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    samplers, found = chosen(options.samplers, BASELINES), []
    # The loop over draws comes first, so that an unfinished run has complete draws.
    for draw in options.draws:
        found += evaluate(
            [
                replace(table, draws=(draw,))
                for rows in options.rows
                for table in load_tables(rows)
            ],
            samplers,
            learners,
            score,
            folder=FOLDER,
            n_jobs=options.n_jobs,
            known=options.known,
        )
    keys = ("table", "rows", "learner", "sampler")
    write_csv(updated(report.summarise(found), "small", *keys), "small")
    print(markdown(report.table(read_csv("small"))))


if __name__ == "__main__":
    main()
