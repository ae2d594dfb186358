"""Learners, each made for one fit."""

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier


def make_learners(share, seed):
    """By name. ``share`` is the part of the rows that is original.

    The penalty of logistic regression counts for less with every row added, so C is
    scaled back: else more rows would change the model even if they were copies.
    """
    return {
        "1-NN": KNeighborsClassifier(1),
        "logistic": LogisticRegression(C=1.0 * share, max_iter=1000),
        "forest": RandomForestClassifier(100, random_state=seed),
    }
