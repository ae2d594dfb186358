"""Scores of a fitted learner on the test rows."""

import numpy as np
from sklearn.metrics import accuracy_score, log_loss

# Half a vote of 100 trees: without a floor one empty vote decides the mean.
FLOOR = 0.005


def score(learner, split, baseline):
    """Compute accuracy and log loss, which is empty for probabilities of 0 or 1.

    A support vector machine has no probabilities.
    """
    y = split.y_test
    if not hasattr(learner, "predict_proba"):
        right = accuracy_score(y, learner.predict(split.X_test))
        return {"accuracy": float(right), "log_loss": None}
    probabilities = learner.predict_proba(split.X_test)
    labels = learner.classes_[probabilities.argmax(axis=1)]
    loss = None
    if not np.isin(probabilities, (0, 1)).all():
        floored = np.maximum(probabilities, FLOOR)
        floored /= floored.sum(axis=1, keepdims=True)
        loss = float(log_loss(y, floored, labels=learner.classes_))
    return {"accuracy": float(accuracy_score(y, labels)), "log_loss": loss}
