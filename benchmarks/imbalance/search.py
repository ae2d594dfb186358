"""The search for the defaults of PNLSampler, on 18 tables of the development half.

``python -m benchmarks.imbalance.search --n-jobs 2``, or with the names of some variants
"""

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    roc_auc_score,
)
from sklearn.model_selection import StratifiedKFold

from benchmarks.tables import grouped, markdown, report
from sklearn_pnl import PNLSampler

from ..harness import evaluate
from ..rivals import PNL_PAPER, seeded
from .learners import LEARNERS as ALL_LEARNERS
from .problems import Table, family_of, load_tables
from .run import FOLDER
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


_UNMIXED = {"k": 0}
_ARITHMETIC = {"arithmetic": True, "near": "euclidean"}
_LOCAL = {"noise": "near"}
_FOLD = {"contain": "fold"}
_KEEP = _LOCAL | {"keep": True}
# Ends that no two rows share are no bounds: noise hardly goes ten ranges beyond.
_TIES = {"contain": "fold ties", "range_slack": 10.0}
_BEYOND = _KEEP | _FOLD | {"range_slack": 0.1, "offset": 1.0}

# Parameters of DrawSampler, by name of the variant: first what nothing more can be left
# out of, then one thing at a time.
DRAWS = {
    "arithmetic, no noise": _ARITHMETIC,
    **_group(
        "mixed",
        {},
        {
            "euclidean": {"near": "euclidean"},
            "no mass": {"mass": False},
            "offset 0.03": {"offset": 0.03},
            "offset 3": {"offset": 3.0},
        },
    ),
    **_group(
        "own row and noise",
        _LOCAL | _UNMIXED,
        {"0.5": {"size": 0.5}, "0.7": {"size": 0.7}, "1": {"size": 1.0}},
    ),
    **_group(
        "arithmetic and noise",
        _LOCAL | _ARITHMETIC,
        {"0.5": {"size": 0.5}, "folded": _FOLD},
    ),
    **_group(
        "local",
        _LOCAL | _FOLD,
        {
            "0.1": {"size": 0.1},
            "0.35": {"size": 0.35},
            "0.5": {"size": 0.5},
            "0.7": {"size": 0.7},
            "not contained": {"contain": None},
            "clipped": {"contain": "clip"},
            "folded codes": {"contain": "fold codes"},
            "0.5 not contained": {"size": 0.5, "contain": None},
            "0.5 clipped": {"size": 0.5, "contain": "clip"},
            "k 3": {"k": 3},
            "k 8": {"k": 8},
            "k 10": {"k": 10},
            "offset 0.03": {"offset": 0.03},
            "offset 0.1": {"offset": 0.1},
            "offset 0.6": {"offset": 0.6},
            "offset 1": {"offset": 1.0},
            "offset 3": {"offset": 3.0},
            "t to 0.5": {"t": (0.0, 0.5)},
            "t beta 2": {"t": ("beta", 2, 2)},
            "t beta 0.5": {"t": ("beta", 0.5, 0.5)},
            "own": {"noise": "own"},
            "own 0.5": {"noise": "own", "size": 0.5},
            "euclidean": {"near": "euclidean"},
            "no mass": {"mass": False},
            "uniform": {"law": "uniform"},
            "3 terms": {"terms": 3},
            "margin 0.1": {"range_slack": 0.1},
            "0.5 margin 0.1": {"size": 0.5, "range_slack": 0.1},
        },
    ),
    **_group(
        "class",
        _FOLD | {"noise": "class"},
        {"not contained": {"contain": None}},
    ),
    "axes": _FOLD | {"noise": "axes"},
    "kept": _KEEP | _FOLD,
    "kept, not contained": _KEEP,
    **_group(
        "kept, tied ends",
        _KEEP | _TIES,
        {
            "0.5": {"size": 0.5},
            "offset 1": {"offset": 1.0},
            "0.5 offset 1": {"size": 0.5, "offset": 1.0},
            "arithmetic": _ARITHMETIC,
            "not kept": {"keep": False},
        },
    ),
    **_group(
        "beyond",
        _BEYOND,
        {
            "0.35": {"size": 0.35},
            "margin 0": {"range_slack": 0.0},
            "margin 0.05": {"range_slack": 0.05},
            "offset 0.3": {"offset": 0.3},
            "tied ends": {"contain": "fold ties"},
            "0.35 of 3 terms": {"size": 0.35, "terms": 3},
            "euclidean": {"near": "euclidean"},
            "not kept": {"keep": False},
            "margin 0.2": {"range_slack": 0.2},
            "not contained": {"contain": None},
            "k 8": {"k": 8},
        },
    ),
}
# Of PNLSampler itself; a tensor is made of the prime factors of the columns.
PACKAGED = {
    "PNLSampler": {},
    "tensor, order 1": {"order": 1},
    "tensor, order 2": {"order": 2},
    "tensor, paper": PNL_PAPER,
}
# Repeated, to see what the seed of a sampler alone moves; by what is added to it.
SEEDS = (1000, 2000)
REPEATED = (
    REFERENCE,
    "ROS 0.3",
    "PNLSampler",
    "local",
    "beyond",
    "beyond, 0.35",
    "beyond, margin 0",
    "beyond, not kept",
    "beyond, tied ends",
)

# Four neighbours: with two folds, the smallest minorities have five rows.
_PLAIN = {
    REFERENCE: seeded(SMOTE, k_neighbors=4),
    "ROS 0.3": seeded(RandomOverSampler, shrinkage=0.3),
}
_DRAWN = {name: seeded(DrawSampler, **kw) for name, kw in DRAWS.items()}
_PACKAGED = {name: seeded(PNLSampler, **kw) for name, kw in PACKAGED.items()}
VARIANTS = {
    "none": None,
    **_PLAIN,
    **_DRAWN,
    **_PACKAGED,
    **{
        f"{name}, seed {extra}": lambda seed, make=make, extra=extra: make(seed + extra)
        for name, make in (_PLAIN | _DRAWN | _PACKAGED).items()
        if name in REPEATED
        for extra in SEEDS
    },
}

# Parameters that do nothing unless another one has some value.
_APPLIES = {
    "t": lambda kw: kw["k"],
    "size": lambda kw: kw["noise"],
    "law": lambda kw: kw["noise"],
    "terms": lambda kw: kw["noise"] not in (None, "axes"),
    "offset": lambda kw: not kw["arithmetic"],
    "mass": lambda kw: not kw["arithmetic"],
    "keep": lambda kw: kw["noise"],
    "range_slack": lambda kw: kw["contain"] in ("fold", "fold ties"),
}


@dataclass(frozen=True)
class SearchTable(Table):
    """A table with the folds of the search, each with a seed of its own."""

    repeats: int = REPEATS
    folds: int = FOLDS

    @property
    def seeds(self):
        return [10 * r + f for r in range(self.repeats) for f in range(self.folds)]

    @property
    def key(self):
        return super().key, "search"

    def parts(self, seed):
        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=seed // 10)
        return list(splitter.split(self.X, self.y))[seed % 10]


def search(tables, variants, n_jobs=1):
    """Mean scores over the folds: ``[variant][table][learner]``, as in ``METRICS``."""
    tables = [SearchTable(t.name, t.family, t.X, t.y) for t in tables]
    samplers = {name: VARIANTS[name] for name in variants}
    log = partial(print, file=sys.stderr)
    rows = evaluate(
        tables, samplers, LEARNERS, _score, folder=FOLDER, n_jobs=n_jobs, log=log
    )
    for row in rows:
        if row["failure"]:
            raise RuntimeError(f"{row['sampler']}, {row['table']}: {row['failure']}")
    found = defaultdict(lambda: defaultdict(dict))
    for key, folds in grouped(rows, "sampler", "table", "learner").items():
        values = [[row[metric] for metric in METRICS] for row in folds]
        found[key[0]][key[1]][key[2]] = np.mean(values, axis=0)
    return found


def _score(model, split, rival):
    y, probability = split.y_test, model.predict_proba(split.X_test)[:, 1]
    values = (
        average_precision_score(y, probability),
        roc_auc_score(y, probability),
        balanced_accuracy_score(y, probability >= 0.5),
        brier_score_loss(y, probability),
    )
    return dict(zip(METRICS, map(float, values), strict=True))


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
