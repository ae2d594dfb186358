"""Differences to SMOTE, and Wilcoxon's tests, from the scores that ``run`` wrote.

``python -m benchmarks.imbalance.report fresh``
"""

import argparse
import sys

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.tables import grouped, markdown, read_csv

from .scores import DIRECTIONS

REFERENCE = "SMOTE"
OVERALL = "mean of learners"
SHORT = {
    "average precision": "AP",
    "ROC AUC": "AUC",
    "balanced accuracy": "BA",
    "corrected Brier": "corrected Brier",
}


def summarise(rows):
    """Average over the folds: one row for each table, baseline and learner."""
    return [_summary(group) for group in grouped(rows, "table", "sampler", "learner")
            .values()]  # fmt: skip


def _summary(rows):
    keys = ("table", "family", "sampler", "learner")
    means = (*DIRECTIONS, "seconds", "sampler seconds")
    return {
        **{key: rows[0][key] for key in keys},
        **{key: float(np.mean([row[key] for row in rows])) for key in means},
        "folds": len(rows),
        "failures": sum(bool(row["failure"]) for row in rows),
        "warnings": sum(bool(row["warning"]) for row in rows),
    }


def scores(rows):
    """Return arrays over tables by sampler, learner and metric, and the families.

    The mean over learners is included for samplers that were combined with each
    learner.
    """
    families = {row["table"]: row["family"] for row in rows}
    learners = list(dict.fromkeys(row["learner"] for row in rows))
    values = {
        (row["sampler"], row["learner"], row["table"], metric): float(row[metric])
        for row in rows
        for metric in DIRECTIONS
        if metric in row
    }
    found = {}
    for sampler in dict.fromkeys(row["sampler"] for row in rows):
        for metric in DIRECTIONS:
            for learner in learners:
                keys = [(sampler, learner, table, metric) for table in families]
                if all(key in values for key in keys):
                    found[sampler, learner, metric] = np.array(
                        [values[key] for key in keys]
                    )
            parts = [found.get((sampler, learner, metric)) for learner in learners]
            if all(part is not None for part in parts):
                found[sampler, OVERALL, metric] = np.mean(parts, axis=0)
    return found, np.array(list(families.values()))


def differences(rows, reference=REFERENCE, learners=None, samplers=None):
    """Return a row per sampler and learner: 1000 times its difference, p, and wins.

    A positive difference means that the sampler is better than the reference, for each
    metric. The first p is over tables. The second p is over means of families, because
    tables of a family share rows.
    """
    found, families = scores(rows)
    samplers = samplers or dict.fromkeys(key[0] for key in found)
    names = [OVERALL, *dict.fromkeys(row["learner"] for row in rows)]
    lines = []
    for learner in learners or names:
        for sampler in samplers:
            if sampler == reference:
                continue
            line = {"learner": learner, "sampler": sampler}
            for metric, short in SHORT.items():
                # Older results lack some.
                if metric not in rows[0]:
                    continue
                ours, theirs = (
                    found.get((name, learner, metric)) for name in (sampler, reference)
                )
                if ours is None or theirs is None:
                    break
                gain = 1000 * DIRECTIONS[metric] * (ours - theirs)
                line[short] = shown(gain, families)
            else:
                lines.append(line)
    return lines


def shown(gain, families):
    """Format the mean gain, two p-values of Wilcoxon's test, and the number of wins."""
    names = dict.fromkeys(families)
    of_families = np.array([gain[families == name].mean() for name in names])
    tests = dict.fromkeys([p_value(gain), p_value(of_families)])
    return f"{gain.mean():+.1f} ({', '.join(tests)}; {(gain > 0).sum()})"


def p_value(gain):
    """Format p of Wilcoxon's test; half of the ties count for each side."""
    p = wilcoxon(gain, zero_method="zsplit").pvalue if gain.any() else 1.0
    return f"{p:.2g}" if p >= 0.001 else "<0.001"


def means(rows):
    """Return a row per sampler: means of all scores over tables and learners."""
    found, _ = scores(rows)
    lines = []
    for sampler in dict.fromkeys(key[0] for key in found):
        if (sampler, OVERALL, "Brier") not in found:
            continue
        own = [row for row in rows if row["sampler"] == sampler]
        lines.append(
            {"sampler": sampler}
            | {
                metric: f"{found[sampler, OVERALL, metric].mean():.3f}"
                for metric in DIRECTIONS
                if (sampler, OVERALL, metric) in found
            }
            | {
                "seconds to sample": float(
                    np.mean([float(row["sampler seconds"]) for row in own])
                ),
                # Failures are counted once for each learner.
                "failed folds": max(int(row["failures"]) for row in own),
            }
        )
    return lines


def report(name, reference=REFERENCE):
    """Print means, and differences to a sampler, of a set of tables."""
    rows = read_csv(f"imbalance-{name}")
    if not rows:
        sys.exit(f"First: python -m benchmarks.imbalance.run --tables {name}")
    tables, families = ({row[key] for row in rows} for key in ("table", "family"))
    print(f"# {name}: {len(tables)} tables of {len(families)} families\n")
    print(markdown(means(rows)))
    print(f"\n1000 times the difference to {reference} (p; ahead on)\n")
    print(markdown(differences(rows, reference)) or "(it was not run)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="a set of tables, such as fresh or public-raw")
    parser.add_argument("--reference", default=REFERENCE)
    options = parser.parse_args()
    report(options.name, options.reference)


if __name__ == "__main__":
    main()
