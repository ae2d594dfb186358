"""Classify new and real rows with a cross-validated classifier (two-sample test)."""

import numpy as np
from joblib import parallel_config
from scipy.sparse.csgraph import connected_components
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import (
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neighbors import NearestNeighbors

from .findings import TOO_FEW, judge_area, no_finding

_MAX_SEED = np.iinfo(np.int32).max


def detect(real, new, is_held_out, classifier, cv, max_samples, rng, n_jobs):
    """Return the area under the ROC curve in each fold, and the finding.

    ``is_held_out`` states that no new row was made from a row of ``real``.
    """
    size = min(len(real), len(new), max_samples)
    drawn = [s.points[rng.permutation(len(s))[:size]] for s in (real, new)]
    rows, is_new = np.concatenate(drawn), np.repeat([0, 1], size)
    if classifier is None:
        # On 4,000 rows with 20 features, the 40 trees detect differences at least as
        # well as a random forest of 100 trees, in a sixth of the time.
        seed = rng.randint(_MAX_SEED)
        classifier = ExtraTreesClassifier(40, min_samples_leaf=2, random_state=seed)
    splits = make_folds(rows, is_new, is_held_out, cv, rng)
    reason = (
        f"area under the ROC curve of a classifier of {size} new and {size} real rows"
    )
    if len(splits) < 2:
        return np.empty(0), no_finding("detection", TOO_FEW, reason)
    # Trees release the interpreter lock, and threads start faster than processes.
    with parallel_config("threading"):
        auc = cross_val_score(
            classifier,
            rows,
            is_new,
            scoring="roc_auc",
            cv=splits,
            n_jobs=n_jobs,
            error_score="raise",
        )
    found = "detection", "distinguishable", auc.mean(), size, size, reason
    return auc, judge_area(*found, both=True)


def make_folds(rows, is_new, is_held_out, cv, rng):
    """Return folds with both kinds of rows on both sides.

    Rows that are not held out stay in one fold with their nearest row.
    """
    groups = None if is_held_out else neighbor_groups(rows)
    n_groups = len(rows) if groups is None else groups.max() + 1
    n_folds, seed = min(cv, len(rows) // 2, n_groups), rng.randint(_MAX_SEED)
    if n_folds < 2:
        return []
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = splitter(n_folds, shuffle=True, random_state=seed)
    return [
        fold
        for fold in splits.split(rows, is_new, groups)
        if all(len({*is_new[side]}) == 2 for side in fold)
    ]


def neighbor_groups(rows):
    """Return connected components of the nearest-neighbour graph of distinct rows."""
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    if len(distinct) == 1:
        return inverse.ravel()
    graph = NearestNeighbors(n_neighbors=1).fit(distinct).kneighbors_graph()
    return connected_components(graph, directed=False)[1][inverse.ravel()]
