"""Means over draws, and gains over no new rows with Wilcoxon's test over tables."""

import numpy as np

from ..significance import Tested, corrected
from ..tables import grouped, markdown, read_csv

# 1 if a larger score is better.
SCORES = {"accuracy": 1, "ROC AUC": 1, "log loss": -1}


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


def table(rows, score="accuracy"):
    """Return 1000 times the mean gain, and p after Holm's correction over all cells."""
    samplers = list(dict.fromkeys(row["sampler"] for row in rows))
    lines = []
    for learner in dict.fromkeys(row["learner"] for row in rows):
        for n_rows in dict.fromkeys(row["rows"] for row in rows):
            found = {
                name: gains(rows, learner, n_rows, name, score) for name in samplers
            }
            if found["none"] is None:
                continue
            own = [
                float(row[score])
                for row in rows
                if (row["learner"], row["rows"], row["sampler"])
                == (learner, n_rows, "none")
            ]
            lines.append(
                {"learner": learner, "rows per class": n_rows}
                | {"none": f"{np.mean(own):.3f}"}
                | {
                    name: "–"
                    if gain is None
                    else Tested(f"{1000 * gain.mean():+.0f} ({{}})", gain)
                    for name, gain in found.items()
                    if name != "none"
                }
            )
    return corrected(_narrow(lines))


def tables():
    """Return the tables as Markdown, by the names that pages mark them with."""
    return {
        f"{name}-{score.split()[-1].lower()}": markdown(table(read_csv(name), score))
        for name in ("small", "small-baselines")
        for score in SCORES
    }


def _narrow(lines):
    """Return lines of seven columns: one name, and no copies, which the CSV has."""
    return [
        {"learner, rows per class": f"{line['learner']}, {line['rows per class']}"}
        | {
            key: value
            for key, value in line.items()
            if key not in ("learner", "rows per class") and "copies" not in key
        }
        for line in lines
    ]


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
