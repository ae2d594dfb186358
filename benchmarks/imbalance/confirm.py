"""Compare the default with no sampling and other samplers, by PROTOCOL.md.

``python -m benchmarks.imbalance.confirm --tables binary``
"""

import argparse
from functools import partial

from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline
from sklearn.ensemble import BaggingClassifier

from benchmarks.tables import markdown, read_csv
from sklearn_pnl import PNLSampler

from ..baselines import Baseline, seeded
from ..significance import corrected
from . import report
from .problems import load_tables
from .rule_sampler import NO_RULES, ROUNDED, SHARE, Rose, RuleSampler
from .rules import DECIDING, reported, run, with_error
from .run import chosen
from .scores import DIRECTIONS
from .shares import MGS, with_share

# The seeds of each set of tables.
SETS = {"wide": (0, 1), "binary": (0, 1, 2, 3)}
# The share of minority rows at this ratio.
MINORITY = SHARE / (1 + SHARE)


def three(learner, seed, sampler=None):
    """Average three models with random states of their own, and with new rows."""
    model = learner if sampler is None else make_pipeline(sampler(seed), learner)
    return BaggingClassifier(model, 3, bootstrap=False, random_state=seed)


def three_bootstrap(learner, seed):
    """Average three models of bootstrap samples, without new rows."""
    return BaggingClassifier(learner, 3, random_state=seed)


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
    "three, bootstrap": Baseline(adapt=three_bootstrap),
    "three, ten lines": three_with(LINES.sampler),
    "three, PNL": three_with(PNL.sampler),
}
# Comparisons of one model, and of the mean of three models.
OTHERS = ("none", "SMOTE", "ROSE", "MGS 5", "MGS", "ten lines", "ten lines, rounded")
# Tables on pages have at most seven columns.
SHOWN = ("SMOTE", "ROSE", "MGS 5", "ten lines, rounded", "PNL")
OF_THREE = {
    "three models with PNL": ("three, PNL", "three, none"),
    "three models with PNL, minus bootstrap": ("three, PNL", "three, bootstrap"),
    "three models with PNL, minus one": ("three, PNL", "PNL"),
    "three models with PNL, minus ten lines": ("three, PNL", "three, ten lines"),
}
MEAN = "mean of five"
# Samplers and learners by the names that marks have.
MARKS = {"none": "none", "PNL": "pnl", "three, none": "three_none"}
MARKS |= {"three, PNL": "three_pnl"}
LEARNER_MARKS = {
    MEAN: "mean",
    "boosting, leaves of 5": "boosting",
    "regularised boosting": "regularised",
    "5-NN": "5_NN",
    "25-NN": "25_NN",
    "forest": "forest",
    "CatBoost": "CatBoost",
    "logistic": "logistic",
}
RANKING = ("average precision", "ROC AUC")


def scores(rows):
    """Return the scores of the families, with the mean over the deciding learners."""
    found = report.scores(rows)
    deciding = report.scores([row for row in rows if row["learner"] in DECIDING])
    means = {
        (sampler, MEAN, metric): values
        for (sampler, learner, metric), values in deciding.items()
        if learner == report.OVERALL
    }
    return found | means


def gain(found, learner, metric, ours, theirs):
    """Return a cell with 1000 times the mean gain, its standard error, and p."""
    after, before = (found[name, learner, metric] for name in (ours, theirs))
    return with_error(1000 * DIRECTIONS[metric] * (after - before))


def by_learner(rows, metric, pairs):
    """Return a line per learner, and a column per pair of samplers by name.

    p is corrected by Holm's method over all cells.
    """
    found = scores(rows)
    names = [MEAN, *dict.fromkeys(row["learner"] for row in rows)]
    samplers = {key[0] for key in found}
    pairs = {title: pair for title, pair in pairs.items() if samplers >= {*pair}}
    lines = [
        {metric: name}
        | {title: gain(found, name, metric, *pair) for title, pair in pairs.items()}
        for name in names
    ]
    return corrected(lines)


def over_none(rows, metric):
    """Return the scores without new rows, and the gains, by learner and sampler."""
    found = scores(rows)
    pairs = {report.marked(name, rows): (name, "none") for name in SHOWN}
    return [
        {metric: line[metric]}
        | {"none": f"{found['none', line[metric], metric].mean():.3f}"}
        | line
        for line in by_learner(rows, metric, pairs)
    ]


def minus_others(rows):
    """Return the gains of the default over other samplers, for the mean of learners.

    p is corrected by Holm's method over all cells.
    """
    found = scores(rows)
    names = [name for name in OTHERS if (name, MEAN, RANKING[0]) in found]
    lines = [
        {"PNL minus": report.marked(name, rows)}
        | {
            short: gain(found, MEAN, metric, "PNL", name)
            for metric, short in report.SHORT.items()
        }
        for name in names
    ]
    return corrected(lines)


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


def figures():
    """Return means and p-values of the mean of five learners, by names of marks."""
    marks = {}
    for name in SETS:
        rows = read_csv(f"imbalance-confirm-{name}")
        found = scores(rows)
        head = f"confirm_{name}"
        marks[f"{head}_families"] = str(len({row["family"] for row in rows}))
        (folds,) = {int(row["folds"]) for row in rows}
        marks[f"{head}_seeds"] = str(folds // 2)
        for metric, short in report.SHORT.items():
            for sampler, mark in MARKS.items():
                for learner, word in LEARNER_MARKS.items():
                    values = found[sampler, learner, metric]
                    key = f"{head}_{mark}_{word}_{short.lower().replace(' ', '_')}"
                    marks[key] = f"{values.mean():.3f}"
    return marks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="binary", choices=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, help="default: the protocol")
    parser.add_argument("--samplers", nargs="+", help="to run; default: all")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    every, learners = load_tables(options.tables), DECIDING | reported()
    samplers = chosen(options.samplers, SAMPLERS)
    seeds = options.seeds or SETS[options.tables]
    rows = run(every, samplers, learners, seeds, options.n_jobs)
    report.write(rows, f"confirm-{options.tables}")
    rows = read_csv(f"imbalance-confirm-{options.tables}")
    print(markdown(minus_others(rows)))
    for metric in RANKING:
        print(f"\n{markdown(over_none(rows, metric))}")
        print(f"\n{markdown(three_models(rows, metric))}")


if __name__ == "__main__":
    main()
