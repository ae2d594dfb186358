"""Compare the rules of a sampler on straight lines, one by one, by PROTOCOL.md.

``python -m benchmarks.imbalance.rules``
"""

import argparse
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import wilcoxon
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from benchmarks.tables import markdown, read_csv, write_csv
from sklearn_pnl import PNLSampler

from ..baselines import Baseline, seeded
from ..harness import evaluate
from ..significance import Tested, corrected, holm
from . import report
from .learners import LEARNERS, REGULARISED
from .problems import load_tables
from .rule_sampler import NO_RULES, SHARE, Rose, RuleSampler
from .run import FOLDER, chosen
from .scores import DIRECTIONS, of_model
from .shares import at_least, with_share

# All rules of the sampler.
ALL_RULES = {
    "neighbors": "third",
    "scale": "local spread",
    "noise": 0.6,
    "centre": "base",
    "bounds": "reflect",
    "agreed": "all",
    "binary": "neighbours",
    "mutual": True,
}
# The changes of each rule.
VERSIONS = {
    "neighbors": (10, "third"),
    # The rows are scaled, so that the deviation of all columns is 1.
    "scale": ("given", "range", "local spread"),
    "bounds": ("reflect", "clip"),
    "noise": (0.0, 0.41, 0.6),
    "centre": ("base", "mixed"),
    "agreed": ("none", "atoms", "all"),
    "binary": ("numbers", "coin", "each", "linked", "blocks", "neighbours"),
    "mutual": (False, True),
}


def changed(rules):
    """Return variants by name: each version of each rule, with the other rules."""
    return {
        f"{rule}: {version}": rules | {rule: version}
        for rule, versions in VERSIONS.items()
        for version in versions
        if version != rules[rule]
        and not (rule == "mutual" and rules["binary"] == "numbers")
    }


SETTINGS = {
    "all rules": ALL_RULES,
    "no rules": NO_RULES,
    **{f"all, {name}": rules for name, rules in changed(ALL_RULES).items()},
    **{f"none, {name}": rules for name, rules in changed(NO_RULES).items()},
}
SAMPLERS = {
    "none": Baseline(),
    "PNL": with_share(PNLSampler, SHARE),
    "PNL, value_support=None": Baseline(
        seeded(
            PNLSampler, value_support=None, sampling_strategy=partial(at_least, SHARE)
        )
    ),
    "ROSE": Baseline(seeded(Rose)),
    **{
        name: Baseline(seeded(RuleSampler, **settings))
        for name, settings in SETTINGS.items()
    },
}
FINAL = ("none", "PNL", "PNL, value_support=None", "no rules", "ROSE")

REPORTED = ("CatBoost", "logistic")
NEIGHBORS = {"5-NN": LEARNERS["5-NN"], "25-NN": REGULARISED["25-NN"]}
DECIDING = {
    "boosting, leaves of 5": lambda seed: HistGradientBoostingClassifier(
        min_samples_leaf=5, random_state=seed
    ),
    "regularised boosting": REGULARISED["regularised boosting"],
    **NEIGHBORS,
    "forest": LEARNERS["forest"],
}


def cheap():
    """Return the learners for the comparison of rules."""
    from .boosting import LGBMClassifier

    plain = {"min_child_samples": 5, "n_jobs": 1, "verbose": -1}
    regularised = plain | {
        "n_estimators": 150,
        "learning_rate": 0.05,
        "num_leaves": 8,
        "colsample_bytree": 0.5,
    }
    return {
        "LightGBM, leaves of 5": seeded(LGBMClassifier, **plain),
        "regularised LightGBM": seeded(LGBMClassifier, **regularised),
        **NEIGHBORS,
        "forest": seeded(RandomForestClassifier, n_estimators=50, n_jobs=1),
    }


def reported():
    """Return the learners that do not decide."""
    from .boosting import BOOSTING

    models = BOOSTING | LEARNERS
    return {name: models[name] for name in REPORTED}


def of_model_at_prevalence(model, split, baseline):
    """Return all scores, the balanced accuracy with a threshold at the prevalence."""
    return of_model(model, split, replace(baseline, threshold=True))


def run(tables, samplers, learners, seeds, n_jobs=1):
    """Return rows of scores, one seed after the other."""
    rows = []
    for seed in seeds:
        rows += evaluate(
            [replace(table, draws=(seed,), folds=2) for table in tables],
            samplers,
            learners,
            of_model_at_prevalence,
            folder=FOLDER / "rules",
            n_jobs=n_jobs,
        )
    return rows


def gains(rows, reference):
    """Return 1000 times the gain over a sampler, with standard error and p.

    The gain is the mean over the learners that decide.
    """
    rows = [row for row in rows if row["learner"] not in REPORTED]
    found = report.scores(rows)
    lines = []
    for sampler in dict.fromkeys(key[0] for key in found):
        if sampler != reference:
            line = {"sampler": sampler}
            for metric, short in report.SHORT.items():
                ours, theirs = (
                    found[name, report.OVERALL, metric] for name in (sampler, reference)
                )
                gain = 1000 * DIRECTIONS[metric] * (ours - theirs)
                line[short] = with_error(gain)
            lines.append(line)
    return corrected(lines)


def with_error(gain):
    """Return a cell with the mean of a gain, its standard error, and p."""
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return Tested(f"{gain.mean():+.1f} ± {error:.1f} ({{}})", gain)


def by_learner(rows, sampler, reference):
    """Return the gain of a sampler by learner; p is corrected by Holm's method."""
    found = report.scores(rows)
    names = list(dict.fromkeys(row["learner"] for row in rows))
    columns = {}
    for metric, short in report.SHORT.items():
        each = [
            1000
            * DIRECTIONS[metric]
            * (found[sampler, name, metric] - found[reference, name, metric])
            for name in names
        ]
        p = holm([wilcoxon(g, zero_method="zsplit").pvalue for g in each])
        columns[short] = [
            f"{g.mean():+.1f} ± {g.std(ddof=1) / np.sqrt(len(g)):.1f} ({q:.2g})"
            for g, q in zip(each, p, strict=True)
        ]
    return [
        {"learner": name} | {short: values[i] for short, values in columns.items()}
        for i, name in enumerate(names)
    ]


def changes(rows):
    """Return the gain of each version of a rule in two designs, as a table.

    Each version replaces the version of the sampler with all rules, and that of the
    sampler without rules.
    """
    found = {}
    for prefix, reference in (("all, ", "all rules"), ("none, ", "no rules")):
        own = [
            row
            for row in rows
            if row["sampler"] == reference or row["sampler"].startswith(prefix)
        ]
        for line in gains(own, reference):
            scores = {f"{short}, {reference}": line[short] for short in ("AP", "AUC")}
            rule = line["sampler"].removeprefix(prefix)
            found.setdefault(rule, {}).update(scores)
    head = [f"{short}, {name}" for name in ("all rules", "no rules")
            for short in ("AP", "AUC")]  # fmt: skip
    return [
        {"rule": name} | {column: line.get(column, "") for column in head}
        for name, line in found.items()
    ]


def tables():
    """Return the tables as Markdown, by the names that pages mark them with."""
    return {
        "rules": markdown(changes(read_csv("imbalance-rules-families"))),
        "rules-default": markdown(gains(read_csv("imbalance-final-families"), "none")),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="families")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--samplers", nargs="+", help="default: all")
    parser.add_argument("--final", action="store_true", help="all learners")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    names = options.samplers
    if options.final:
        learners, names = DECIDING | reported(), names or FINAL
    else:
        learners = cheap()
    tables = load_tables(options.tables)
    rows = run(tables, chosen(names, SAMPLERS), learners, options.seeds, options.n_jobs)
    name = f"imbalance-{'final' if options.final else 'rules'}-{options.tables}"
    write_csv(report.summarise(rows), name)
    rows = read_csv(name)
    for reference in ("none", "all rules", "no rules"):
        if any(row["sampler"] == reference for row in rows):
            print(f"\n1000 times the gain over: {reference}\n")
            print(markdown(gains(rows, reference)))
    if options.final:
        print("\nPNL minus none, by learner (p corrected by Holm's method)\n")
        print(markdown(by_learner(rows, "PNL", "none")))


if __name__ == "__main__":
    main()
