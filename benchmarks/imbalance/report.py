"""Differences to SMOTE, and Wilcoxon's tests, from the scores that ``run`` wrote.

``python -m benchmarks.imbalance.report fresh``
"""

import argparse
import sys

import numpy as np

from benchmarks.significance import Tested, corrected, over_families
from benchmarks.tables import grouped, markdown, read_csv, updated, write_csv

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


def write(rows, name):
    """Write the means of the folds; results of other samplers and learners stay."""
    name = f"imbalance-{name}"
    keys = ("table", "sampler", "learner")
    write_csv(updated(summarise(rows), name, *keys), name)


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
    """Return arrays over families by sampler, learner and metric.

    Tables of a family share rows, so that a family counts once, with the mean over its
    tables. The mean over learners is included for samplers that were combined with each
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
                    found[sampler, learner, metric] = over_families(
                        np.array([values[key] for key in keys]), [*families.values()]
                    )
            parts = [found.get((sampler, learner, metric)) for learner in learners]
            if all(part is not None for part in parts):
                found[sampler, OVERALL, metric] = np.mean(parts, axis=0)
    return found


def differences(rows, reference=REFERENCE, learners=None, samplers=None):
    """Return a row per sampler and learner: 1000 times its difference, p, and wins.

    A positive difference means that the sampler is better than the reference, for each
    metric. p is that of Wilcoxon's test over families, corrected by Holm's method over
    all cells. Samplers that failed on a table are marked.
    """
    found = scores(rows)
    samplers = samplers or dict.fromkeys(key[0] for key in found)
    names = [OVERALL, *dict.fromkeys(row["learner"] for row in rows)]
    lines = []
    for learner in learners or names:
        for sampler in samplers:
            if sampler == reference:
                continue
            line = {"learner": learner, "sampler": marked(sampler, rows)}
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
                line[short] = shown(gain)
            else:
                lines.append(line)
    return corrected(lines)


def shown(gain):
    """Return a cell with the mean gain of the families, p, and the number of wins."""
    return Tested(f"{gain.mean():+.1f} ({{}}; {(gain > 0).sum()})", gain)


def marked(sampler, rows):
    """Return the name of a sampler, with the number of tables on which it failed."""
    return sampler + failed(sampler, rows)


def failed(sampler, rows):
    """Return the number of tables on which a sampler failed as a text, or no text.

    A fold in which a sampler fails is scored without new rows.
    """
    found = {
        row["table"]
        for row in rows
        if row["sampler"] == sampler and int(row.get("failures") or 0)
    }
    return f" (failed: {len(found)})" if found else ""


def means(rows):
    """Return a row per sampler: means of all scores over families and learners."""
    found = scores(rows)
    lines = []
    for sampler in dict.fromkeys(key[0] for key in found):
        if (sampler, OVERALL, "Brier") not in found:
            continue
        own = [row for row in rows if row["sampler"] == sampler]
        lines.append(
            {"sampler": marked(sampler, rows)}
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
