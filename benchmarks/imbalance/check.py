"""Compare the harness with the imblearn Pipeline that it stands for."""

import numpy as np
from imblearn.metrics import geometric_mean_score
from imblearn.pipeline import make_pipeline
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    cross_validate,
)
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ..harness import run_split
from .scores import of_model

SCORERS = {
    "average precision": "average_precision",
    "ROC AUC": "roc_auc",
    "balanced accuracy": "balanced_accuracy",
    "G-mean": make_scorer(geometric_mean_score),
    "F1": "f1",
    "Brier": "neg_brier_score",
}


def check(tables, rivals, learners):
    """Leave with an AssertionError where any score differs; return how many agree."""
    with threadpool_limits(1):
        return sum(
            _check_fold(table, seed, rivals, learners)
            for table in tables
            for seed in table.seeds
        )


def _check_fold(table, seed, rivals, learners):
    pairs = [
        (name, learner)
        for name, rival in rivals.items()
        for learner, make in learners.items()
        if rival.applies(make(0))
    ]
    found = run_split(table.split(seed), rivals, learners, of_model, pairs)
    rows = [row for row in found if not row["failure"]]
    for row in rows:
        rival, learner = rivals[row["sampler"]], learners[row["learner"]](seed)
        scores = _cross_validate(table, table.parts(seed), rival, learner, seed)
        for name, value in scores.items():
            where = f"{table.name}, fold {seed}, {row['sampler']}, {row['learner']}"
            np.testing.assert_allclose(row[name], value, 0, 1e-12, err_msg=where)
    return len(rows) * len(SCORERS)


def _cross_validate(table, train_test, rival, learner, seed):
    sampler = rival.sampler(seed) if rival.samples_first else "passthrough"
    learner = rival.adapted(learner, seed)
    if rival.threshold:
        prevalence = table.y[train_test[0]].mean()
        learner = FixedThresholdClassifier(
            learner, threshold=prevalence, response_method="predict_proba"
        )
    pipeline = make_pipeline(StandardScaler(), sampler, learner)
    result = cross_validate(
        pipeline,
        table.X,
        table.y,
        scoring=SCORERS,
        cv=[train_test],
        error_score="raise",
    )
    return {name: abs(result[f"test_{name}"][0]) for name in SCORERS}
