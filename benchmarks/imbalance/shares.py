"""How many new rows, by learner: shares of the rare class.

``python -m benchmarks.imbalance.shares --seeds 0 1 2 3``
"""

import argparse
from dataclasses import replace
from functools import partial

import numpy as np
from imblearn.over_sampling import SMOTE

from sklearn_pnl import PNLSampler

from ..baselines import Baseline, seeded
from ..harness import evaluate
from . import report
from .learners import LEARNERS, REGULARISED
from .problems import load_tables
from .rule_sampler import ROUNDED, Rose, RuleSampler
from .run import FOLDER, chosen
from .samplers import of_other_packages
from .scores import of_model

# Rare rows for each common one.
SHARES = {"1/5": 1 / 5, "1/3": 1 / 3, "1": 1}


def at_least(share, y):
    """Return a ``sampling_strategy`` with a share, or the existing share if larger."""
    labels, counts = np.unique(y, return_counts=True)
    rare, most = counts.argmin(), counts.max()
    return {labels[rare]: max(int(counts[rare]), round(share * most))}


def with_share(kind, share):
    """Over-sample to a share, with all other parameters at their defaults."""
    return Baseline(seeded(kind, sampling_strategy=partial(at_least, share)))


def mgs(share=1 / 3):
    """Return MGS with five neighbours, and with as many as columns, if installed."""
    found = of_other_packages()
    return {
        name: Baseline(partial(_with, share, found[name].sampler))
        for name in ("MGS 5", "MGS")
        if name in found
    }


def _with(share, make, seed):
    return make(seed).set_params(sampling_strategy=partial(at_least, share))


MGS = mgs()
BASELINES = {
    "none": Baseline(),
    "threshold": Baseline(threshold=True),
    **{f"PNL {name}": with_share(PNLSampler, share) for name, share in SHARES.items()},
    **{f"SMOTE {name}": with_share(SMOTE, share) for name, share in SHARES.items()},
    "ROSE 1/3": Baseline(seeded(Rose)),
    **{f"{name} 1/3": MGS[name] for name in MGS if name == "MGS 5"},
    "ten lines 1/3": Baseline(seeded(RuleSampler, **ROUNDED)),
}


def run(tables, baselines, seeds, folds, n_jobs, learners=LEARNERS):
    """Return rows of scores, one seed after the other for all tables."""
    rows = []
    for seed in seeds:
        rows += evaluate(
            [replace(table, draws=(seed,), folds=folds) for table in tables],
            baselines,
            learners,
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
    parser.add_argument("--learners", nargs="+", help="default: all")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    rows = run(
        load_tables(options.tables),
        chosen(options.samplers, BASELINES),
        options.seeds,
        options.folds,
        options.n_jobs,
        chosen(options.learners, LEARNERS | REGULARISED),
    )
    report.write(rows, "shares")
    report.report("shares", reference="none")


if __name__ == "__main__":
    main()
