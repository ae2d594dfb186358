"""Scores of a fitted learner on the test rows."""

import numpy as np
from sklearn.metrics import accuracy_score, log_loss

# Half a vote of 100 trees: without a floor one empty vote decides the mean.
FLOOR = 0.005


def score(learner, split, baseline):
    """Compute accuracy and log loss, which is empty for probabilities of 0 or 1."""
    y, probabilities = split.y_test, learner.predict_proba(split.X_test)
    labels = learner.classes_[probabilities.argmax(axis=1)]
    loss = None
    if not np.isin(probabilities, (0, 1)).all():
        floored = np.maximum(probabilities, FLOOR)
        floored /= floored.sum(axis=1, keepdims=True)
        loss = float(log_loss(y, floored, labels=learner.classes_))
    return {"accuracy": float(accuracy_score(y, labels)), "log_loss": loss}
