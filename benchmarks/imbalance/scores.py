"""Scores of a fitted learner on the test part of a fold."""

from math import sqrt

import numpy as np
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
    "corrected Brier": -1,
}


def of_model(model, split, rival):
    """All scores of a fitted learner on a split."""
    probability = model.predict_proba(split.X_test)[:, 1]
    decided = model.predict(split.X_test)
    if rival.threshold:
        decided = probability >= split.y.mean()
    corrected = prior_corrected(probability, split.y.mean(), rival)
    return score(split.y_test, probability, decided, corrected)


def prior_corrected(probability, share, rival):
    """Probabilities of a class with this share where a rival made both of one size.

    What was calibrated on real rows has their share already.
    """
    if rival.sampler is None or rival.calibrated:
        return probability
    odds = share / (1 - share)
    # A probability may be above 1 by rounding.
    minority, rest = odds * probability, np.maximum(1 - probability, 0)
    return minority / (minority + rest)


def score(y, probability, predicted, corrected):
    """All scores, from probabilities of the minority and from decisions."""
    specificity, sensitivity = recall_score(y, predicted, average=None, labels=[0, 1])
    values = (
        average_precision_score(y, probability),
        roc_auc_score(y, probability),
        (sensitivity + specificity) / 2,
        sqrt(sensitivity * specificity),
        f1_score(y, predicted, zero_division=0),
        brier_score_loss(y, probability),
        brier_score_loss(y, corrected),
    )
    return dict(zip(DIRECTIONS, map(float, values), strict=True))
