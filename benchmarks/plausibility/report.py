"""Means over tables of the rows that violate rules, and the tables that are worse."""

import numpy as np

from ..significance import Tested, corrected
from ..tables import grouped, markdown, read_csv

REAL, METHODS = "held-out rows", ("PNLAugmenter", "SMOTE-NC")
# New rows are far worse if they violate rules this much more often than real rows.
FAR = 0.05


def summary(rows):
    """Return a row for each kind of rule, with p of Wilcoxon's test over tables.

    p is corrected by Holm's method over all cells.
    """
    lines = []
    for (kind,), found in grouped(rows, "kind").items():
        shares = {
            name: np.array([float(row[name]) for row in found])
            for name in (REAL, *METHODS)
        }
        lines.append(
            {"rule": kind, "tables": len(found)}
            | {name: f"{values.mean():.3f}" for name, values in shares.items()}
            | {
                f"{name} above / below": compared(shares[name], shares[REAL])
                for name in METHODS
            }
        )
    return corrected(lines)


def compared(shares, real):
    """Count the tables above and below the held-out rows, with p."""
    text = f"{(shares > real).sum()} / {(shares < real).sum()} ({{}})"
    return Tested(text, shares - real)


def worst(rows):
    """Return the tables on which new rows of the package are far worse, by kind."""
    found = [
        {
            "table": row["table"],
            "rule": row["kind"],
            **{name: f"{float(row[name]):.3f}" for name in (REAL, *METHODS)},
        }
        for row in rows
        if float(row["PNLAugmenter"]) - float(row[REAL]) > FAR
    ]
    return sorted(found, key=lambda row: float(row[REAL]) - float(row["PNLAugmenter"]))


def tables():
    """Return the tables as Markdown, by the names that pages mark them with."""
    rows = read_csv("plausibility")
    return {
        "plausibility": markdown(summary(rows)),
        "plausibility-worst": markdown(worst(rows)),
        "plausibility-further": markdown(summary(read_csv("plausibility-further"))),
    }


def figures():
    """Return figures by the names that pages mark them with."""
    names = {"plausibility_tables": "plausibility"}
    names |= {"plausibility_further_tables": "plausibility-further"}
    return {
        mark: str(len({row["table"] for row in read_csv(name)}))
        for mark, name in names.items()
    }
