"""Every sampler and learner on every table, in repeated halves.

Run it from the root of the repository::

    python -m benchmarks.mixed.run

It prints means over the tables and comparisons with SMOTE-NC, and writes a row for each
table, sampler and learner to ``benchmarks/results/mixed.csv``.
"""

import sys
from pathlib import Path

import numpy as np
from imblearn.over_sampling import SMOTENC, RandomOverSampler
from scipy.stats import wilcoxon
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_pnl import PNLSampler

from ..baselines import seeded
from ..harness import evaluate
from ..imbalance.learners import LEARNERS
from ..imbalance.scores import DIRECTIONS, of_model
from ..tables import grouped, write_csv
from .tables import TABLES, Frame

FOLDER = Path(__file__).parent / "cache"
SAMPLERS = {
    "none": None,
    "ROS": seeded(RandomOverSampler),
    "SMOTE-NC": seeded(SMOTENC, categorical_features="auto"),
    "PNL": seeded(PNLSampler, categorical_features="auto"),
    "PNL, value_support=None": seeded(
        PNLSampler, categorical_features="auto", value_support=None
    ),
}


def encoded(make):
    """Build a learner of frames that encodes categories as indicators."""
    indicators = (
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        make_column_selector(dtype_include="category"),
    )
    encoder = make_column_transformer(indicators, remainder="passthrough")
    return lambda seed: make_pipeline(encoder, make(seed))


def summarise(rows):
    """Compute means and deviations over the folds."""
    groups = grouped(rows, "table", "sampler", "learner")
    return [_summary(group) for group in groups.values()]


def _summary(rows):
    keys = ("table", "rows", "minority", "sampler", "learner")
    cells = {key: rows[0][key] for key in keys}
    for what in DIRECTIONS:
        values = [row[what] for row in rows]
        cells[what] = round(float(np.mean(values)), 5)
        cells[f"{what}, deviation"] = round(float(np.std(values)), 5)
    return cells


def report(rows):
    """Compute means over tables, and tests of PNL against SMOTE-NC over tables."""
    for learner in (*LEARNERS, "all"):
        print(f"\n{learner:10}", *(f"{what:>18}" for what in DIRECTIONS))
        for sampler in SAMPLERS:
            cells = [_means(rows, sampler, learner, what) for what in DIRECTIONS]
            print(f"{sampler:10}", *(f"{np.mean(cell):18.4f}" for cell in cells))
        cells = []
        for what in DIRECTIONS:
            difference = _means(rows, "PNL", learner, what) - _means(
                rows, "SMOTE-NC", learner, what
            )
            better = (difference * DIRECTIONS[what] > 0).sum()
            p = wilcoxon(difference).pvalue
            cells.append(f"{better} of {len(difference)}, p={p:.2f}")
        print(f"{'PNL better':10}", *(f"{cell:>18}" for cell in cells))


def _means(rows, sampler, learner, what):
    """Return a score of each table, for one learner or the mean of all learners."""
    return np.array(
        [
            np.mean(
                [
                    row[what]
                    for row in rows
                    if (row["table"], row["sampler"]) == (table, sampler)
                    and learner in (row["learner"], "all")
                ]
            )
            for table in dict.fromkeys(row["table"] for row in rows)
        ]
    )


def main(n_jobs=1):
    """Evaluate, write, print."""
    frames = [Frame(name) for name in TABLES]
    learners = {name: encoded(make) for name, make in LEARNERS.items()}
    rows = evaluate(frames, SAMPLERS, learners, of_model, folder=FOLDER, n_jobs=n_jobs)
    write_csv(summarise(rows), "mixed")
    report(summarise(rows))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
