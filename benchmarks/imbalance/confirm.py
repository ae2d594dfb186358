"""Compare the default with no sampling and other samplers, by PROTOCOL.md.

``python -m benchmarks.imbalance.confirm --tables binary``
"""

import argparse
from functools import partial

import numpy as np
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline
from sklearn.ensemble import BaggingClassifier

from benchmarks.tables import markdown, read_csv
from sklearn_pnl import PNLSampler

from .. import significance
from ..baselines import Baseline, seeded
from . import report
from .problems import load_tables
from .rule_sampler import NO_RULES, ROUNDED, SHARE, Rose, RuleSampler
from .rules import DECIDING, reported, run
from .run import chosen
from .scores import DIRECTIONS
from .shares import MGS, with_share

SETS = ("wide", "binary")
# The share of minority rows at this ratio.
MINORITY = SHARE / (1 + SHARE)


def three(learner, seed, sampler=None):
    """Average three models with random states of their own, and with new rows."""
    model = learner if sampler is None else make_pipeline(sampler(seed), learner)
    return BaggingClassifier(model, 3, bootstrap=False, random_state=seed)


def three_with(sampler):
    """Return three models, each with its own new rows."""
    return Baseline(adapt=partial(three, sampler=sampler), share=MINORITY)


PNL = with_share(PNLSampler, SHARE)
LINES = Baseline(seeded(RuleSampler, **ROUNDED))
SAMPLERS = {
    "none": Baseline(),
    "SMOTE": with_share(SMOTE, SHARE),
    "ROSE": Baseline(seeded(Rose)),
    **MGS,
    "ten lines": Baseline(seeded(RuleSampler, **NO_RULES)),
    "ten lines, rounded": LINES,
    "PNL": PNL,
    "three, none": Baseline(adapt=three),
    "three, ten lines": three_with(LINES.sampler),
    "three, PNL": three_with(PNL.sampler),
}
# Comparisons of one model, and of the mean of three models.
OTHERS = ("none", "SMOTE", "ROSE", "MGS 5", "MGS", "ten lines", "ten lines, rounded")
OF_THREE = {
    "three models with PNL": ("three, PNL", "three, none"),
    "three models with PNL, minus one": ("three, PNL", "PNL"),
    "three models with PNL, minus ten lines": ("three, PNL", "three, ten lines"),
}
MEAN = "mean of five"
RANKING = ("average precision", "ROC AUC")


def scores(rows):
    """Return the scores of the tables, with the mean over the deciding learners."""
    found, families = report.scores(rows)
    deciding, _ = report.scores([row for row in rows if row["learner"] in DECIDING])
    means = {
        (sampler, MEAN, metric): values
        for (sampler, learner, metric), values in deciding.items()
        if learner == report.OVERALL
    }
    return found | means, families


def gain(found, families, learner, metric, ours, theirs):
    """Return 1000 times the gain of each family, None if it was not run."""
    pair = [found.get((name, learner, metric)) for name in (ours, theirs)]
    if any(values is None for values in pair):
        return None
    return significance.over_families(
        1000 * DIRECTIONS[metric] * (pair[0] - pair[1]), families
    )


def cells(gains):
    """Return texts with the mean, the standard error and p of each line of a column.

    p of a learner is corrected by Holm's method over the learners. The mean over the
    deciding learners is one test.
    """
    found = {name: gain for name, gain in gains.items() if gain is not None}
    p = {name: significance.p_value(gain) for name, gain in found.items()}
    learners = [name for name in found if name != MEAN]
    p |= dict(
        zip(learners, significance.holm([p[name] for name in learners]), strict=True)
    )
    return {name: _text(found[name], p[name]) if name in found else "–"
            for name in gains}  # fmt: skip


def _text(gain, p):
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return f"{gain.mean():+.1f} ± {error:.1f} ({significance.text(p)})"


def by_learner(rows, metric, pairs):
    """Return a line per learner, and a column per pair of samplers by name."""
    found, families = scores(rows)
    names = [MEAN, *dict.fromkeys(row["learner"] for row in rows)]
    columns = {
        title: cells(
            {name: gain(found, families, name, metric, *pair) for name in names}
        )
        for title, pair in pairs.items()
    }
    return [
        {metric: name} | {title: column[name] for title, column in columns.items()}
        for name in names
    ]


def over_none(rows, metric):
    """Return the gains over no new rows, by learner and sampler."""
    found, _ = report.scores(rows)
    names = [name for name in SAMPLERS if name in {key[0] for key in found}]
    pairs = {
        report.marked(name, rows): (name, "none")
        for name in names
        if name != "none" and not name.startswith("three")
    }
    return by_learner(rows, metric, pairs)


def minus_others(rows):
    """Return the gains of the default over other samplers, for the mean of learners.

    p is corrected by Holm's method over the other samplers.
    """
    found, families = scores(rows)
    columns = {
        short: cells(
            {name: gain(found, families, MEAN, metric, "PNL", name) for name in OTHERS}
        )
        for metric, short in report.SHORT.items()
    }
    return [
        {"PNL minus": report.marked(name, rows)}
        | {short: column[name] for short, column in columns.items()}
        for name in OTHERS
    ]


def three_models(rows, metric):
    """Return the gains of three models with their own new rows, by learner."""
    return by_learner(rows, metric, OF_THREE)


def tables():
    """Return the tables as Markdown, by the names that pages mark them with."""
    found = {}
    for name in SETS:
        rows = read_csv(f"imbalance-confirm-{name}")
        found[f"confirm-{name}-minus"] = markdown(minus_others(rows))
        for metric in RANKING:
            short = report.SHORT[metric].lower()
            found[f"confirm-{name}-{short}"] = markdown(over_none(rows, metric))
            found[f"confirm-{name}-three-{short}"] = markdown(
                three_models(rows, metric)
            )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="binary", choices=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--samplers", nargs="+", help="to run; default: all")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    every, learners = load_tables(options.tables), DECIDING | reported()
    samplers = chosen(options.samplers, SAMPLERS)
    rows = run(every, samplers, learners, options.seeds, options.n_jobs)
    report.write(rows, f"confirm-{options.tables}")
    rows = read_csv(f"imbalance-confirm-{options.tables}")
    print(markdown(minus_others(rows)))
    for metric in RANKING:
        print(f"\n{markdown(over_none(rows, metric))}")
        print(f"\n{markdown(three_models(rows, metric))}")


if __name__ == "__main__":
    main()
