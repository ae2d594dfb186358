"""Scores of a fitted learner on the test part of a fold."""

from math import sqrt

from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    f1_score,
    recall_score,
    roc_auc_score,
)

# 1 where higher is better.
DIRECTIONS = {
    "average precision": 1,
    "ROC AUC": 1,
    "balanced accuracy": 1,
    "G-mean": 1,
    "F1": 1,
    "Brier": -1,
}


def of_model(model, split, rival):
    """All scores of a fitted learner on a split."""
    probability = model.predict_proba(split.X_test)[:, 1]
    decided = model.predict(split.X_test)
    if rival.threshold:
        decided = probability >= split.y.mean()
    return score(split.y_test, probability, decided)


def score(y, probability, predicted):
    """All scores, from probabilities of the minority and from decisions."""
    specificity, sensitivity = recall_score(y, predicted, average=None, labels=[0, 1])
    values = (
        average_precision_score(y, probability),
        roc_auc_score(y, probability),
        (sensitivity + specificity) / 2,
        sqrt(sensitivity * specificity),
        f1_score(y, predicted, zero_division=0),
        brier_score_loss(y, probability),
    )
    return dict(zip(DIRECTIONS, map(float, values), strict=True))
