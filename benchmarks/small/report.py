"""Means over draws, and gains over no new rows with Wilcoxon's test over tables."""

from itertools import product

import numpy as np

from ..imbalance.report import marked
from ..significance import Tested, corrected
from ..tables import grouped, markdown, read_csv

# 1 if a larger score is better.
SCORES = {"accuracy": 1, "ROC AUC": 1, "log loss": -1}
# Tables on pages have at most seven columns.
SHOWN = ("SMOTE x 5", "ROSE x 5", "MGS 5 x 5", "ten lines x 5", "PNL x 5")


def summarise(records):
    """Compute the mean scores of each table, number of rows, learner and sampler."""
    keys = ("table", "rows", "learner", "sampler")
    return [
        dict(zip(keys, values, strict=True))
        | {score: _mean([record[score] for record in group]) for score in SCORES}
        | {
            "draws": len(group),
            "failures": sum(bool(record["failure"]) for record in group),
            "sampler seconds": _mean([record["sampler seconds"] for record in group]),
        }
        for values, group in grouped(records, *keys).items()
    ]


def _mean(values):
    return "" if None in values else round(float(np.mean(values)), 5)


def gains(rows, learner, n_rows, sampler, score):
    """Compute the gain of a sampler over no new rows, one value per table."""

    def scores(name):
        wanted = {"learner": learner, "rows": str(n_rows), "sampler": name}
        return {
            row["table"]: row[score]
            for row in rows
            if all(str(row[key]) == value for key, value in wanted.items())
        }

    before, after = scores("none"), scores(sampler)
    if not (before and after) or "" in [*before.values(), *after.values()]:
        return None
    return SCORES[score] * np.array(
        [float(after[table]) - float(before[table]) for table in before]
    )


def table(rows, score="accuracy", samplers=SHOWN):
    """Return 1000 times the mean gain, and p after Holm's correction over all cells."""
    known = {row["sampler"] for row in rows}
    shown = {name: marked(name, rows) for name in samplers if name in known}
    learners, numbers = (
        dict.fromkeys(row[key] for row in rows) for key in ("learner", "rows")
    )
    lines = []
    for learner, n_rows in product(learners, numbers):
        before = mean(rows, learner, n_rows, "none", score)
        if before is None:
            continue
        line = {"learner, rows per class": f"{learner}, {n_rows}", "none": before}
        for name, title in shown.items():
            gain = gains(rows, learner, n_rows, name, score)
            text = "–" if gain is None else f"{1000 * gain.mean():+.0f} ({{}})"
            line[title] = text if gain is None else Tested(text, gain)
        lines.append(line)
    return corrected(lines)


def mean(rows, learner, n_rows, sampler, score):
    """Return the mean score over the tables as a text, or None without a score."""
    wanted = (learner, str(n_rows), sampler)
    own = [
        row[score]
        for row in rows
        if (row["learner"], str(row["rows"]), row["sampler"]) == wanted
    ]
    if not own or "" in own:
        return None
    return f"{np.mean([float(value) for value in own]):.3f}"


def tables():
    """Return the tables as Markdown, by the names that pages mark them with."""
    rows = read_csv("small")
    return {
        f"small-{score.split()[-1].lower()}": markdown(table(rows, score))
        for score in SCORES
    }


def figures():
    """Return the numbers of tables and draws by the names that pages mark them with."""
    rows = read_csv("small")
    tables = {
        n: {row["table"] for row in rows if row["rows"] == n} for n in ("10", "100")
    }
    return {
        "small_tables": str(len(tables["10"])),
        "small_tables_100": str(len(tables["100"])),
        "small_draws": str(min(int(row["draws"]) for row in rows)),
    }
