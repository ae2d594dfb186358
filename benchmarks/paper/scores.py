"""Scores of a fitted network on the test rows."""

import numpy as np
from sklearn.metrics import accuracy_score, recall_score


def score(model, split, baseline):
    """Compute accuracy, and scores that count rare classes equally."""
    y, probability = split.y_test, model.predict_proba(split.X_test)
    labels = model.classes_[probability.argmax(axis=1)]
    recalls = recall_score(y, labels, labels=np.unique(y), average=None)
    given = probability[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return {
        "accuracy": float(accuracy_score(y, labels)),
        "balanced accuracy": float(recalls.mean()),
        "log loss": float(-np.log(np.maximum(given, 1e-7)).mean()),
        "train": len(split.y),
        "test": len(y),
    }
