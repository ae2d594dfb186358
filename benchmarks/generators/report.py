"""Means over tables of the scores of generators."""

from statistics import fmean, median

from ..tables import grouped, markdown, read_csv

SCORES = (
    "broken rules",
    "broken decimals",
    "told from real, AUC",
    "measure",
    "forest",
    "boosting",
    "membership, AUC",
)
REFERENCES = ("training rows", "other real rows")
# Scores that pages show, with the number of decimals.
SHOWN = {
    "broken rules": 2,
    "broken decimals": 2,
    "told from real, AUC": 2,
    "model": 2,
    "membership, AUC": 2,
    "seconds": 0,
}


def number(row, name):
    """Return a score as a number; "model" is a mean.

    A model that is worse than the mean of the target counts as that mean.
    """
    if name != "model":
        return float(row[name])
    return sum(max(float(row[learner]), 0.0) for learner in ("forest", "boosting")) / 2


def compared(rows):
    """Return the rows of methods that failed on no table, for each number of rows."""
    groups = grouped(rows, "training rows", "method").values()
    return [
        row for group in groups if not any(r["failure"] for r in group) for row in group
    ]


def cells(rows, method, name):
    """Return the means of a method for each number of training rows, in a text."""
    found = grouped(rows, "training rows", "method")
    sizes = dict.fromkeys(row["training rows"] for row in rows)
    groups = [found.get((size, method), []) for size in sizes]
    return " / ".join(
        f"{mean(group, name):.{SHOWN[name]}f}" if group else "–" for group in groups
    )


def mean(rows, name):
    """Return the mean over rows; for seconds the median, as other programs ran."""
    values = [number(row, name) for row in rows]
    return median(values) if name == "seconds" else fmean(values)


def table(rows):
    """Return a line for each method: means over the tables."""
    rows = compared(rows)
    return [
        {"method": method} | {name: cells(rows, method, name) for name in SHOWN}
        for (method,) in grouped(rows, "method")
    ]


def models(rows):
    """Return a line for each method: scores of models on each table."""
    rows = [row for row in rows if not row["failure"]]
    names = grouped(rows, "table")
    return [
        {"method": method}
        | {name: cells(names[name,], method, "model") for (name,) in names}
        for (method,) in grouped(rows, "method")
    ]


def failures(rows):
    """Return the tables without a result, by method, number of rows and reason."""
    failed = [row for row in rows if row["failure"]]
    keys = ("method", "training rows", "failure")
    return [
        dict(zip(keys, values, strict=True))
        | {"tables": ", ".join(row["table"] for row in group)}
        for values, group in grouped(failed, *keys).items()
    ]


def tables():
    """Return the tables as Markdown, by the names that pages mark them with."""
    rows = read_csv("generators")
    return {
        "generators": markdown(table(rows)),
        "generators-models": markdown(models(rows)),
        "generators-failures": markdown(failures(rows)) or "No method failed.",
    }


def figures():
    """Return figures by the names that pages mark them with."""
    rows = compared(read_csv("generators"))
    short = {
        "pnl": "PNLAugmenter",
        "smote": "SMOTE-NC",
        "cart": "CART (py-synthpop)",
        "copula": "Gaussian copula (SDV)",
        "arf": "random forest (arfpy)",
        "tvae": "TVAE (SDV)",
        "ctgan": "CTGAN (SDV)",
        "argn": "network (mostlyai-engine)",
        "train": REFERENCES[0],
        "real": REFERENCES[1],
    }
    columns = {
        "rules": "broken rules",
        "told": "told from real, AUC",
        "model": "model",
        "membership": "membership, AUC",
    }
    found = {"generators_tables": str(len({row["table"] for row in rows}))}
    for (size, method), group in grouped(rows, "training rows", "method").items():
        key = next(name for name, full in short.items() if full == method)
        for column, name in columns.items():
            found[f"generators_{key}_{column}_{size}"] = f"{mean(group, name):.2f}"
    return found
