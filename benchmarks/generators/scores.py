"""Scores of new rows against training rows and held-out rows."""

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import average_precision_score, r2_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors

from ..plausibility.rules import KINDS, violated

# Kinds of rules about the format of numbers, not about their meaning.
FORM = ("resolution", "number of decimals")
POSITIVE = "yes"
# Rows of each kind for the forest that tells new rows from held-out rows.
N_DETECTION = 2_000


def scores(train, new, held_out, target):
    """Return all scores of new rows as a dict."""
    return {
        **broken_rules(train, new),
        "told from real, AUC": detection(new, held_out),
        **usefulness(new, held_out, target),
        "membership, AUC": membership(train, new, held_out[: len(train)]),
    }


def broken_rules(train, new):
    """Return the shares of new rows that break rules of the training rows."""
    found = {kind: find(train) for kind, find in KINDS.items()}
    content = sum((rules for kind, rules in found.items() if kind not in FORM), [])
    form = sum((found[kind] for kind in FORM), [])
    return {
        "broken rules": violated(content, new),
        "broken decimals": violated(form, new),
    }


def coordinates(*frames):
    """Return frames as arrays: numeric columns, and an indicator per category."""
    return [pd.get_dummies(frame).to_numpy(float) for frame in frames]


def detection(new, real):
    """Return the AUC of a random forest that tells new rows from held-out rows."""
    n_rows = min(len(new), N_DETECTION)
    # The rows of some generators are sorted.
    new = new.sample(n_rows, random_state=0)
    X = np.vstack(coordinates(new, real[:n_rows]))
    y = np.repeat([1, 0], len(X) // 2)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    forest = RandomForestClassifier(random_state=0)
    odds = cross_val_predict(forest, X, y, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(y, odds))


def usefulness(new, held_out, target):
    """Return scores on held-out rows of models that are trained on new rows."""
    X, X_test = new.drop(columns=target), held_out.drop(columns=target)
    y, y_test = new[target], held_out[target]
    if y.dtype == "category":
        y, y_test = y == POSITIVE, y_test == POSITIVE
        kinds = RandomForestClassifier, HistGradientBoostingClassifier
        measure = average_precision_score
    else:
        kinds, measure = (
            (RandomForestRegressor, HistGradientBoostingRegressor),
            r2_score,
        )
    # By default a forest for regression considers all columns, which is slow.
    forest = kinds[0](max_features=1 / 3, random_state=0)
    boosting = kinds[1](random_state=0, categorical_features="from_dtype")
    found = {"measure": "R2" if measure is r2_score else "AP"}
    for name, model, fitted, tested in (
        ("forest", forest, *coordinates(X, X_test)),
        ("boosting", boosting, X, X_test),
    ):
        if y.nunique() < 2:
            # A model of constant labels predicts a constant.
            predicted = np.full(len(y_test), float(y.iloc[0]))
        elif measure is r2_score:
            predicted = model.fit(fitted, y).predict(tested)
        else:
            predicted = model.fit(fitted, y).predict_proba(tested)[:, 1]
        found[name] = float(measure(y_test, predicted))
    return found


def membership(train, new, held_out):
    """Return the AUC of an attack that tells training rows from held-out rows.

    The attack takes rows for training rows if they are near to a new row. Numeric
    columns have unit variance, and two different categories have distance 1.
    """
    arrays = coordinates(train, new, held_out)
    numbers = len(train.select_dtypes("number").columns)
    scale = np.sqrt(np.full(arrays[0].shape[1], 2.0))
    spread = train.select_dtypes("number").std().to_numpy()
    scale[:numbers] = np.where(spread > 0, spread, 1)
    train, new, held_out = (array / scale for array in arrays)
    search = NearestNeighbors(n_neighbors=1).fit(new)
    gaps = search.kneighbors(np.vstack([train, held_out]))[0][:, 0]
    members = np.repeat([1, 0], [len(train), len(held_out)])
    # Distances of equal rows differ in their last digits.
    return float(roc_auc_score(members, -np.round(gaps, 9)))
