"""The search for the defaults of PNLSampler, on 18 tables of the development half.

``python -m benchmarks.imbalance.search --n-jobs 2``, or with the names of some variants
"""

import argparse
import inspect
import sys
import warnings
from collections import defaultdict
from dataclasses import fields

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    roc_auc_score,
)
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks.tables import markdown, report

from . import cache as store
from . import search_draws
from .harness import split_fold
from .learners import LEARNERS as ALL_LEARNERS
from .problems import family_of, load_tables
from .samplers import as_rival
from .search_draws import DrawSampler

TABLES = (
    "ecoli-0-1-4-7_vs_5-6",
    "ecoli-0-3-4_vs_5",
    "ecoli1",
    "ecoli2",
    "ecoli3",
    "ecoli4",
    "glass-0-1-6_vs_2",
    "glass0",
    "glass1",
    "glass4",
    "glass6",
    "haberman",
    "vehicle1",
    "vehicle2",
    "vehicle3",
    "wisconsin",
    "page-blocks-1-3_vs_4",
    "shuttle-6_vs_2-3",
)

# Fewer trees than in the benchmark itself: most of the time goes into the learners.
LEARNERS = ALL_LEARNERS | {
    "forest": lambda seed: RandomForestClassifier(60, random_state=seed)
}
REPEATS, FOLDS = 3, 2
METRICS = ("AP", "AUC", "balanced accuracy", "Brier")
REFERENCE = "SMOTE"


def _group(name, start, changes):
    """Variants that differ from a first one, ``name``, in what their names add."""
    group = {name: start}
    group |= {f"{name}, {change}": start | kw for change, kw in changes.items()}
    return group


_AT_01 = {"offset": 0.1}
_THREE = _AT_01 | {"partners": 3}
_NEAREST = _AT_01 | {"through": "nearest", "n_nearest": 1}
_AXES = _NEAREST | {"noise": "axes"}
_UNMIXED = _NEAREST | {"partners": 0}
_NOISELESS = _AT_01 | {"noise": None, "through": "nearest"}
_PAPER = {
    "partners": 0,
    "noise": "theta",
    "size": 0.05,
    "through": "nearest",
    "manifold": "mixture",
    "offset": 1e-5,
    "with_mass": False,
    "padding": 0.0,
}

# Parameters of DrawSampler, by name of the variant.
DRAWS = {
    **_group(
        "winner",
        {},
        {
            "offset 0.6": {"offset": 0.6},
            "offset 1": {"offset": 1.0},
            "3 partners": {"partners": 3},
            "8 partners": {"partners": 8},
            "t to 0.5": {"t_max": 0.5},
            "no noise": {"noise": None},
            "noise 0.35": {"size": 0.35},
            "order 2": {"order": 2},
            "not factored": {"factored": False},
            "ascending factors": {"factor_order": "ascending"},
            "padded with 0": {"padding": 0.0},
            "range of all rows": {"embedding": "all"},
            "not clipped": {"clip": False},
            "theta of 5 nearest": {"through": "nearest", "manifold": "theta"},
            "not mixed, own row": {"partners": 0, "through": "own row"},
        },
    ),
    **_group(
        "winner at offset 0.1",
        _AT_01,
        {
            "noise 0.15": {"size": 0.15},
            "noise 0.35": {"size": 0.35},
            "t to 0.5": {"t_max": 0.5},
            "rows in turn": {"in_turn": True},
            "2 partners": {"partners": 2},
        },
    ),
    **_group(
        "3 partners at offset 0.1",
        _THREE,
        {
            "even pair": {"through": "even pair"},
            "nearer of pair": {"through": "nearer of pair"},
            "nearest row": {"through": "nearest", "n_nearest": 1},
            "2 nearest": {"through": "nearest", "n_nearest": 2},
            "3 nearest": {"through": "nearest", "n_nearest": 3},
            "noise 0.15": {"size": 0.15},
            "noise 0.35": {"size": 0.35},
            "order 2": {"order": 2},
            "ascending factors": {"factor_order": "ascending"},
            "padded with 0": {"padding": 0.0},
            "range of all rows": {"embedding": "all"},
            "not clipped": {"clip": False},
        },
    ),
    "3 partners at offset 0.03": _THREE | {"offset": 0.03},
    **_group(
        "nearest row",
        _NEAREST,
        {
            "10 partners": {"partners": 10},
            "t to 0.5": {"t_max": 0.5},
            "noise 0.15": {"size": 0.15},
            "noise 0.5": {"size": 0.5},
            "offset 1": {"offset": 1.0},
            "order 2": {"order": 2},
            "not factored": {"factored": False},
            "range of all rows": {"embedding": "all"},
            "spread of the class": {"embedding": "spread"},
            "not clipped": {"clip": False},
        },
    ),
    "own row": _NEAREST | {"through": "own row"},
    "2 nearest rows": _NEAREST | {"n_nearest": 2},
    **_group(
        "5 nearest rows",
        _NEAREST | {"n_nearest": 5},
        {"half way": {"manifold": "mixture", "step": 0.5}},
    ),
    **_group(
        "noise by axis",
        _AXES,
        {
            "noise 0.5": {"size": 0.5},
            "5 nearest": {"n_nearest": 5},
            "own row": {"through": "own row"},
            "t to 0.5": {"t_max": 0.5},
            "offset 0.03": {"offset": 0.03},
            "offset 1": {"offset": 1.0},
            "order 2": {"order": 2},
            "not factored": {"factored": False},
            "padded with 0": {"padding": 0.0},
            "range of all rows": {"embedding": "all"},
            "not clipped": {"clip": False},
            "without mass": {"with_mass": False},
            "not mixed": {"partners": 0},
            "not mixed, noise 0.5": {"partners": 0, "size": 0.5},
        },
    ),
    **_group(
        "not mixed",
        _UNMIXED,
        {
            "2 nearest": {"n_nearest": 2},
            "5 nearest": {"n_nearest": 5},
            "noise 0.5": {"size": 0.5},
            "Scott": {"size": 1.0, "scott": True},
            "half of Scott": {"size": 0.5, "scott": True},
            "offset 1": {"offset": 1.0},
            "not factored": {"factored": False},
            "raw theta 0.05": {"noise": "theta", "size": 0.05},
            "Fisher": {"noise": "fisher"},
        },
    ),
    **_group(
        "no noise",
        _NOISELESS,
        {
            "nearest row": {"n_nearest": 1},
            "nearest row, not factored": {"n_nearest": 1, "factored": False},
            "theta": {"manifold": "theta"},
            "eta": {"manifold": "eta"},
            "mixture": {"manifold": "mixture"},
        },
    ),
    "paper": _PAPER,
}

VARIANTS = {
    "none": None,
    # Four neighbours: with two folds, the smallest minorities have five rows.
    REFERENCE: lambda seed: SMOTE(k_neighbors=4, random_state=seed),
    "ROS 0.3": lambda seed: RandomOverSampler(shrinkage=0.3, random_state=seed),
    **{
        name: lambda seed, kw=kw: DrawSampler(**kw, random_state=seed)
        for name, kw in DRAWS.items()
    },
}

# Parameters that do nothing unless another one has some value.
_APPLIES = {
    "t_max": lambda kw: kw["partners"],
    "size": lambda kw: kw["noise"],
    "scott": lambda kw: kw["noise"],
    "n_nearest": lambda kw: kw["through"] == "nearest",
    "step": lambda kw: kw["manifold"] == "mixture",
    "padding": lambda kw: kw["factored"],
    "factor_order": lambda kw: kw["factored"],
}


def search(tables, variants, n_jobs=1):
    """Mean scores over the folds: ``[variant][table][learner]``, as in ``METRICS``."""
    results = Parallel(n_jobs, return_as="generator")(
        delayed(_cached)(name, table) for name in variants for table in tables
    )
    scores = defaultdict(dict)
    for name, table, found in results:
        scores[name][table] = found
        if len(scores[name]) == len(tables):
            print(f"[{len(scores)}/{len(variants)}] {name}", file=sys.stderr)
    return scores


def _cached(name, table):
    rival = as_rival(VARIANTS[name])
    # The cache sees the code of a sampler's class, but not of what it calls.
    protocol = (REPEATS, FOLDS, METRICS, inspect.getsource(search_draws))
    path = store.path_of(table, f"search {name}", rival, protocol)
    if not path.exists():
        store.save(path, evaluate(table, VARIANTS[name]))
    return name, table.name, store.load(path)


def evaluate(table, make_sampler):
    """Mean scores of each learner on a table."""
    scores = defaultdict(list)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for fold in _folds(table):
            X, y = fold.X, fold.y
            if make_sampler is not None:
                X, y = make_sampler(fold.seed).fit_resample(X, y)
            for name, make in LEARNERS.items():
                model = make(fold.seed).fit(X, y)
                probability = model.predict_proba(fold.X_test)[:, 1]
                scores[name].append(_score(fold.y_test, probability))
    return {name: np.mean(folds, axis=0).tolist() for name, folds in scores.items()}


def _folds(table):
    for repeat in range(REPEATS):
        splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=repeat)
        for number, train_test in enumerate(splitter.split(table.X, table.y)):
            yield split_fold(table, train_test, seed=10 * repeat + number)


def _score(y, probability):
    return [
        average_precision_score(y, probability),
        roc_auc_score(y, probability),
        balanced_accuracy_score(y, probability >= 0.5),
        brier_score_loss(y, probability),
    ]


def summarise(scores):
    """A row for each variant, by the sum of its mean AP and AUC, the best first.

    Differences to SMOTE times 1000: means of the mean over tables and the mean over
    families, so that neither the many tables of a family nor a small one decide.
    """
    gains = {name: _gains(tables, scores[REFERENCE]) for name, tables in scores.items()}
    ranked = sorted(gains, key=lambda name: -gains[name][0, :2].sum())
    return [
        {"variant": name, **describe(name), **_columns(gains[name])} for name in ranked
    ]


def _gains(scores, reference):
    """Learners by metrics; the mean of the learners first."""
    differences, families = [], defaultdict(list)
    for table in sorted(reference):
        pairs = ((scores[table][x], reference[table][x]) for x in LEARNERS)
        difference = np.array([np.subtract(a, b) for a, b in pairs])
        differences.append(difference)
        families[family_of(table)].append(difference)
    of_families = [np.mean(group, axis=0) for group in families.values()]
    gains = 500 * (np.mean(differences, axis=0) + np.mean(of_families, axis=0))
    return np.vstack([gains.mean(axis=0), gains])


def _columns(gains):
    rows = zip(("mean", *LEARNERS), gains, strict=True)
    return {
        # Plus 0, since rounding leaves a negative 0.
        f"{learner} {metric}": round(float(gain), 2) + 0.0
        for learner, row in rows
        for metric, gain in zip(METRICS, row, strict=True)
    }


def describe(name):
    """Parameters of a variant, None where they do nothing."""
    known = {field.name: field.default for field in fields(DrawSampler)}
    del known["random_state"]
    if name not in DRAWS:
        return dict.fromkeys(known)
    kw = known | DRAWS[name]
    idle = {key for key, applies in _APPLIES.items() if not applies(kw)}
    return {key: None if key in idle else value for key, value in kw.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variants", nargs="*", help="names; default: all, to a CSV")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    unknown = [name for name in options.variants if name not in VARIANTS]
    if unknown:
        sys.exit(f"Unknown: {'; '.join(unknown)}. Known: {'; '.join(VARIANTS)}")
    chosen = dict.fromkeys([REFERENCE, *(options.variants or VARIANTS)])
    rows = summarise(search(load_tables(",".join(TABLES)), chosen, options.n_jobs))
    if options.variants:
        print(markdown(rows))
    else:
        report(rows, "imbalance-search")


if __name__ == "__main__":
    main()
