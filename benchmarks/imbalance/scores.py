"""Scores of a fitted learner on the test part of a fold."""

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    roc_auc_score,
)

# 1 where higher is better.
DIRECTIONS = {
    "average precision": 1,
    "ROC AUC": 1,
    "balanced accuracy": 1,
    "Brier": -1,
    "corrected Brier": -1,
}


def of_model(model, split, baseline):
    """Compute all scores of a fitted learner on a split."""
    y, probability = split.y_test, model.predict_proba(split.X_test)[:, 1]
    decided = model.predict(split.X_test)
    if baseline.threshold:
        decided = probability >= split.y.mean()
    values = (
        average_precision_score(y, probability),
        roc_auc_score(y, probability),
        balanced_accuracy_score(y, decided),
        brier_score_loss(y, probability),
        brier_score_loss(y, prior_corrected(probability, split, baseline)),
    )
    return dict(zip(DIRECTIONS, map(float, values), strict=True))


def prior_corrected(probability, split, baseline):
    """Multiply probabilities by the ratio of the prior odds to the fitted odds."""
    before, after = np.mean(split.y), np.mean(split.y_fitted)
    if baseline.share is not None:
        after = baseline.share
    minority = probability * before / after
    # A probability may be above 1 by rounding.
    rest = np.maximum(1 - probability, 0) * (1 - before) / (1 - after)
    return minority / (minority + rest)
