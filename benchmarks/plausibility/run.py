"""Count the held-out real rows and the new rows that violate rules of real tables.

``python -m benchmarks.plausibility.run``, and for tables that were drawn after the
first 100, ``--skip 100 --tables 70 --name plausibility-further``.
"""

import argparse
import sys
import warnings
from itertools import islice

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE, SMOTENC
from joblib import Parallel, delayed

from sklearn_pnl import PNLAugmenter

from ..tables import markdown, write_csv
from . import report
from .rules import KINDS, categorical, violated
from .tables import N_TABLES, halves, tables


def by_augmenter(frame, n_new):
    """Sample new rows with the defaults of the package."""
    return PNLAugmenter().fit(frame).sample(n_new, random_state=0)


def by_smote(frame, n_new):
    """Sample new rows with SMOTE-NC, or with SMOTE if there are no categories.

    Binary columns are categories. SMOTE needs two classes: the rows are the minority
    class, and copies of the rows are the majority class.
    """
    names = categorical(frame)
    kind = SMOTENC(categorical_features=names) if names else SMOTE()
    strategy = {1: len(frame) + n_new}
    kind.set_params(sampling_strategy=strategy, random_state=0)
    rows = pd.concat([frame] * 4, ignore_index=True)
    labels = np.repeat([1, 0, 0, 0], len(frame))
    return kind.fit_resample(rows, labels)[0].iloc[len(rows) :]


METHODS = {"PNLAugmenter": by_augmenter, "SMOTE-NC": by_smote}


def of_table(name, frame):
    """Return a row for each kind of rule: shares of rows that violate a rule."""
    train, held_out = halves(frame)
    rules = {kind: find(train) for kind, find in KINDS.items()}
    samples = {"held-out rows": held_out}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, sample in METHODS.items():
            samples[method] = sample(train, len(held_out))
    return [
        {"table": name, "rows": len(frame), "columns": frame.shape[1]}
        | {"kind": kind, "rules": len(found)}
        | {each: round(violated(found, rows), 5) for each, rows in samples.items()}
        for kind, found in rules.items()
        if found
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=N_TABLES)
    parser.add_argument("--skip", type=int, default=0, help="tables that are left out")
    parser.add_argument("--name", default="plausibility", help="of the CSV")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    drawn = islice(tables(options.skip + options.tables), options.skip, None)
    jobs = (delayed(of_table)(*table) for table in drawn)
    rows = []
    for found in Parallel(options.n_jobs, return_as="generator")(jobs):
        rows += found
        if found:
            print(found[0]["table"], file=sys.stderr, flush=True)
    write_csv(rows, options.name)
    print(markdown(report.summary(rows)))
    print(markdown(report.worst(rows)))


if __name__ == "__main__":
    main()
