"""Tables of ``boosting``: gains over no new rows, and over SMOTE at the same ratio."""

import numpy as np

from ..tables import markdown, read_csv
from . import report
from .scores import DIRECTIONS

OTHERS = ("logistic", "5-NN", "forest")
RATIOS = ("1/3", "1")
MEAN = "mean of boosting"


def results(name):
    """Return the scores of a set of tables, with the mean over boosting learners."""
    rows = read_csv(f"imbalance-{name}")
    boosting = [row for row in rows if row["learner"] not in OTHERS]
    found, families = report.scores(rows)
    of_boosting, _ = report.scores(boosting)
    means = {
        (sampler, MEAN, metric): values
        for (sampler, learner, metric), values in of_boosting.items()
        if learner == report.OVERALL
    }
    return found | means, families


def learners(found, others=True):
    """Return the names of the learners, the mean over boosting after its parts."""
    names = [key[1] for key in found if key[1] not in (report.OVERALL, MEAN)]
    names = [name for name in dict.fromkeys(names) if name not in OTHERS]
    return [*names, MEAN, *(name for name in OTHERS if others and has(found, name))]


def has(found, learner):
    return ("none", learner, "ROC AUC") in found


def gain(found, learner, metric, sampler, reference):
    """Return 1000 times the gains of the tables; above 0 is better."""
    after, before = (found[name, learner, metric] for name in (sampler, reference))
    return 1000 * DIRECTIONS[metric] * (after - before)


def over_families(gains, families):
    """Return the means of the families."""
    names = dict.fromkeys(families)
    return np.array([gains[families == name].mean() for name in names])


def shown(gains, families):
    """Format the mean gain, and p over tables and over families if these differ."""
    tests = dict.fromkeys(
        [report.p_value(gains), report.p_value(over_families(gains, families))]
    )
    return f"{gains.mean():+.0f} ({', '.join(tests)})"


def over_none(name, metric):
    """Return a row for each learner: the score without new rows, and the gains."""
    found, families = results(name)
    samplers = [key[0] for key in found if key[0] != "none"]
    return [
        {metric: learner, "none": f"{found['none', learner, metric].mean():.3f}"}
        | {
            sampler: shown(gain(found, learner, metric, sampler, "none"), families)
            if (sampler, learner, metric) in found
            else "–"
            for sampler in dict.fromkeys(samplers)
        }
        for learner in learners(found)
    ]


def over_smote(name):
    """Return a row for each learner and ratio: the gains over SMOTE of all scores."""
    found, families = results(name)
    return [
        {"PNL minus SMOTE": learner, "ratio": ratio}
        | {
            metric: shown(
                gain(found, learner, metric, f"PNL {ratio}", f"SMOTE {ratio}"),
                families,
            )
            for metric in DIRECTIONS
        }
        for learner in learners(found)
        for ratio in RATIOS
    ]


def tables():
    """Return the tables as Markdown, by the names that pages mark them with."""
    found = {}
    for name in ("boosting-wide", "boosting-held-out"):
        found[f"{name}-ap"] = markdown(over_none(name, "average precision"))
        found[f"{name}-auc"] = markdown(over_none(name, "ROC AUC"))
        found[f"{name}-minus-smote"] = markdown(over_smote(name))
    return found


def figures():
    """Return single figures by the names that pages mark them with."""
    marks = {}
    for name in ("wide", "held-out"):
        found, families = results(f"boosting-{name}")
        key = name.replace("-", "_")
        marks[f"boosting_{key}_tables"] = str(len(families))
        marks[f"boosting_{key}_families"] = str(len(set(families)))
        for metric, short in {"average precision": "ap", "ROC AUC": "auc"}.items():
            none = found["none", MEAN, metric].mean()
            marks[f"boosting_{key}_none_{short}"] = f"{none:.3f}"
            for sampler in ("SMOTE", "PNL"):
                third = found[f"{sampler} 1/3", MEAN, metric].mean()
                marks[f"boosting_{key}_{sampler.lower()}_{short}"] = f"{third:.3f}"
            for reference in ("none", "SMOTE 1/3"):
                gains = gain(found, MEAN, metric, "PNL 1/3", reference)
                p = report.p_value(over_families(gains, families))
                against = reference.split()[0].lower()
                marks[f"boosting_{key}_{short}_p_{against}"] = p
    return marks
