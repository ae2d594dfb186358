"""How many new rows, by learner: shares of the rare class, and bagging.

``python -m benchmarks.imbalance.shares --seeds 0 1 2 3``
"""

import argparse
from dataclasses import replace
from functools import partial

import numpy as np
from imblearn.ensemble import BalancedBaggingClassifier
from imblearn.over_sampling import SMOTE
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier

from benchmarks.tables import write_csv
from sklearn_pnl import PNLSampler

from ..harness import evaluate
from ..rivals import Rival, seeded
from . import report
from .learners import LEARNERS
from .problems import load_tables
from .run import FOLDER, chosen
from .scores import of_model

# Rare rows for each common one.
SHARES = {"1/5": 1 / 5, "1/3": 1 / 3, "1/2": 1 / 2, "1": 1}


def at_least(share, y):
    """A ``sampling_strategy``: so large a share, or what is there where it is more."""
    labels, counts = np.unique(y, return_counts=True)
    rare, most = counts.argmin(), counts.max()
    return {labels[rare]: max(int(counts[rare]), round(share * most))}


def with_share(kind, share):
    """Over-sampling to a share, with nothing else set."""
    return Rival(seeded(kind, sampling_strategy=partial(at_least, share)))


def bagged(learner, seed, **params):
    """Ten models, each behind its own new rows at a full balance."""
    return BalancedBaggingClassifier(
        tenth(learner), sampler=PNLSampler(), random_state=seed, **params
    )


def bagged_without(learner, seed):
    """Ten models of bootstrap samples, without new rows."""
    return BaggingClassifier(tenth(learner), random_state=seed)


def tenth(learner):
    """A forest of a tenth of the trees: ten have as many. Others as they are."""
    if isinstance(learner, RandomForestClassifier):
        return clone(learner).set_params(n_estimators=learner.n_estimators // 10)
    return learner


SINGLE = {
    "none": Rival(),
    "threshold": Rival(threshold=True),
    **{f"PNL {name}": with_share(PNLSampler, share) for name, share in SHARES.items()},
    **{f"SMOTE {name}": with_share(SMOTE, share) for name, share in SHARES.items()},
    "PNL 1, k=10": Rival(seeded(PNLSampler, k_neighbors=10)),
}
BAGGED = {
    "bagging, PNL": Rival(adapt=bagged, balanced=True),
    "ten draws, PNL": Rival(adapt=partial(bagged, bootstrap=False), balanced=True),
    "bagging": Rival(adapt=bagged_without),
}
RIVALS = SINGLE | BAGGED


def run(tables, rivals, seeds, folds, n_jobs):
    """Rows of scores, a seed after the other: what is there is of all tables."""
    rows = []
    for seed in seeds:
        rows += evaluate(
            [replace(table, draws=(seed,), folds=folds) for table in tables],
            rivals,
            LEARNERS,
            of_model,
            folder=FOLDER,
            n_jobs=n_jobs,
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="held-out")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--folds", type=int, default=2, help="of four a seed")
    parser.add_argument("--samplers", nargs="+", help="default: all")
    parser.add_argument("--name", default="shares", help="of the CSV")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    tables, rows = load_tables(options.tables), []
    rivals = chosen(options.samplers, RIVALS)
    # What takes longest comes last.
    for kinds in (SINGLE, BAGGED):
        part = {name: rivals[name] for name in kinds if name in rivals}
        if part:
            rows += run(tables, part, options.seeds, options.folds, options.n_jobs)
    write_csv(report.summarise(rows), f"imbalance-{options.name}")
    report.report(options.name, reference="none")


if __name__ == "__main__":
    main()
