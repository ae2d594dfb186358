"""Tables of ``boosting``: gains over no new rows, and over SMOTE at the same ratio."""

import re

from ..significance import Tested, corrected
from ..tables import markdown, read_csv
from . import report
from .scores import DIRECTIONS

OTHERS = ("logistic", "5-NN", "forest")
RATIOS = ("1/3", "1")
MEAN = "mean of boosting"
SHORT = {"average precision": "AP", "ROC AUC": "AUC"}
# Samplers, by the names that marks have.
SAMPLERS = {"none": "none", "SMOTE 1/3": "smote", "PNL 1/3": "pnl"}
SAMPLERS |= {"SMOTE 1": "smote_full", "PNL 1": "pnl_full"}
# Tables on pages have at most seven columns; the CSV has every sampler.
LEFT_OUT = ("none", "copies 1", "SMOTE 1")


def results(name):
    """Return the scores of a set of tables, with the mean over boosting learners."""
    rows = read_csv(f"imbalance-{name}")
    boosting = [row for row in rows if row["learner"] not in OTHERS]
    found, of_boosting = report.scores(rows), report.scores(boosting)
    means = {
        (sampler, MEAN, metric): values
        for (sampler, learner, metric), values in of_boosting.items()
        if learner == report.OVERALL
    }
    return found | means


def learners(found, others=True):
    """Return the names of the learners, the mean over boosting after its parts."""
    names = [key[1] for key in found if key[1] not in (report.OVERALL, MEAN)]
    names = [name for name in dict.fromkeys(names) if name not in OTHERS]
    return [*names, MEAN, *(name for name in OTHERS if others and has(found, name))]


def has(found, learner):
    return ("none", learner, "ROC AUC") in found


def gain(found, learner, metric, sampler, reference):
    """Return 1000 times the gains of the families; above 0 is better."""
    after, before = (found[name, learner, metric] for name in (sampler, reference))
    return 1000 * DIRECTIONS[metric] * (after - before)


def shown(gains):
    """Return a cell with the mean gain and p of Wilcoxon's test over the families."""
    return Tested(f"{gains.mean():+.0f} ({{}})", gains)


def over_none(name, metric):
    """Return a row for each learner: the score without new rows, and the gains."""
    found = results(name)
    samplers = [key[0] for key in found if key[0] not in LEFT_OUT]
    lines = [
        {metric: learner, "none": f"{found['none', learner, metric].mean():.3f}"}
        | {
            sampler: shown(gain(found, learner, metric, sampler, "none"))
            if (sampler, learner, metric) in found
            else "–"
            for sampler in dict.fromkeys(samplers)
        }
        for learner in learners(found)
    ]
    return _renamed(corrected(lines), read_csv(f"imbalance-{name}"))


def _renamed(lines, rows):
    """Mark the samplers that failed on some tables."""
    return [
        {report.marked(name, rows): cell for name, cell in line.items()}
        for line in lines
    ]


def over_smote(name):
    """Return a row for each learner and ratio: the gains over SMOTE of all scores."""
    found, rows = results(name), read_csv(f"imbalance-{name}")
    title = "PNL minus SMOTE" + report.failed("SMOTE 1/3", rows)
    lines = [
        {title: learner, "ratio": ratio}
        | {
            metric: shown(
                gain(found, learner, metric, f"PNL {ratio}", f"SMOTE {ratio}")
            )
            for metric in DIRECTIONS
        }
        for learner in learners(found)
        for ratio in RATIOS
    ]
    return corrected(lines)


def tables():
    """Return the tables as Markdown, by the names that pages mark them with."""
    found = {}
    for name in ("boosting-wide", "boosting-held-out"):
        for metric, short in SHORT.items():
            found[f"{name}-{short.lower()}"] = markdown(over_none(name, metric))
        found[f"{name}-minus-smote"] = markdown(over_smote(name))
    return found


def figures():
    """Return scores of the mean of boosting, and p over families, by names of marks."""
    marks = {}
    for name in ("wide", "held-out"):
        found, rows = (
            results(f"boosting-{name}"),
            read_csv(f"imbalance-boosting-{name}"),
        )
        head = f"boosting_{name.replace('-', '_')}"
        marks[f"{head}_tables"] = str(len({row["table"] for row in rows}))
        marks[f"{head}_families"] = str(len({row["family"] for row in rows}))
        # A seed tests each row once, in two folds.
        folds = {int(row["folds"]) for row in rows}
        marks[f"{head}_seeds"] = str(min(folds) // 2)
        for metric, short in SHORT.items():
            for sampler, mark in SAMPLERS.items():
                values = found[sampler, MEAN, metric]
                marks[f"{head}_{mark}_{short.lower()}"] = f"{values.mean():.3f}"
            for line in over_none(f"boosting-{name}", metric):
                learner = line[metric]
                word = re.sub(r"\W+", "_", learner)
                mark = f"{head}_{word}_{short.lower()}"
                for sampler in ("none", "PNL 1/3"):
                    values = found[sampler, learner, metric]
                    marks[f"{mark}_{SAMPLERS[sampler]}"] = f"{values.mean():.3f}"
                marks[f"{mark}_p"] = re.search(r"\((.*)\)", line["PNL 1/3"])[1]
    return marks
