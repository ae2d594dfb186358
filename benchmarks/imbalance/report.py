"""Means, ranks and tests from the scores that ``run`` wrote.

``python -m benchmarks.imbalance.report --set held-out``
"""

import argparse
import sys

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, wilcoxon

from benchmarks.tables import grouped, markdown, read_csv, write_csv

from .problems import SETS
from .scores import DIRECTIONS

REFERENCE = "PNL"
OVERALL = "mean of learners"
LEVELS = ("table", "family")
PRINTED = ("average precision", "balanced accuracy", "Brier")
BLOCK = ["learner", "metric"]


def summarise(rows):
    """Means over the folds: one row for each table, rival and learner."""
    groups = grouped(rows, "table", "sampler", "learner")
    return [_summary(group) for group in groups.values()]


def _summary(rows):
    first = rows[0]
    means = (*DIRECTIONS, "seconds", "sampler seconds")
    return {
        **{key: first[key] for key in ("table", "family", "sampler", "learner")},
        **{key: float(np.mean([row[key] for row in rows])) for key in means},
        "folds": len(rows),
        "failures": sum(bool(row["failure"]) for row in rows),
        "warnings": sum(bool(row["warning"]) for row in rows),
    }


def report(name, reference=REFERENCE, complete=False, without=()):
    """Print Markdown tables for a set of tables; write all numbers as CSV files."""
    frame = read_scores(name)
    if without:
        frame = frame[~frame["table"].isin(without)]
        name = "-".join([name, "without", *without])
    if complete:
        frame, name = without_failed_tables(frame), f"{name}-complete"
    sizes = [frame[level].nunique() for level in LEVELS]
    print(f"\n# {name}: {sizes[0]} tables of {sizes[1]} families\n")
    _means(means(frame), name)
    _ranks(ranks(frame), name)
    if reference in set(frame["sampler"]) and frame["sampler"].nunique() > 1:
        _tests(tests(frame, reference), reference, name)
    _show("Failures, and seconds to sample and fit", costs(frame).reset_index())


def without_failed_tables(frame):
    """The tables on which each sampler gave rows in one fold at least."""
    failed = frame.loc[frame["failures"] == frame["folds"], "table"].unique()
    print(f"Left out, since a sampler always failed: {', '.join(failed) or 'none'}")
    return frame[~frame["table"].isin(failed)]


def read_scores(name):
    rows = read_csv(f"imbalance-{name}")
    if not rows:
        sys.exit(
            f"There are no results of {name!r}. First: "
            f"python -m benchmarks.imbalance.run --tables {name}"
        )
    frame = pd.DataFrame(rows)
    numbers = frame.columns.difference(["table", "family", "sampler", "learner"])
    return frame.astype(dict.fromkeys(numbers, float))


def means(frame):
    """Mean of each score over tables, and over the means of families."""
    return pd.DataFrame(
        {"learner": learner, "metric": metric, "sampler": sampler}
        | {level: scores[sampler].mean() for level, scores in by_level.items()}
        for learner, metric, by_level in _blocks(frame)
        for sampler in by_level["table"]
    )


def ranks(frame):
    """Mean rank of each sampler: 1 is best, ties share; and p of Friedman's test."""
    rows = []
    for learner, metric, by_level in _blocks(frame):
        ranked = {
            level: (-DIRECTIONS[metric] * scores).rank(axis=1)
            for level, scores in by_level.items()
        }
        p = {f"Friedman p, {level}": _friedman(r) for level, r in ranked.items()}
        rows += [
            {"learner": learner, "metric": metric, "sampler": sampler}
            | {level: r[sampler].mean() for level, r in ranked.items()}
            | p
            for sampler in by_level["table"]
        ]
    return pd.DataFrame(rows)


def tests(frame, reference=REFERENCE):
    """Each rival against the reference: wins, differences, p of Wilcoxon's test.

    Above 0 the reference is better, for every metric. Holm's correction is over the
    rivals of one learner, metric and level.
    """
    return pd.DataFrame(
        {"learner": learner, "metric": metric, "level": level} | row
        for learner, metric, by_level in _blocks(frame)
        for level, scores in by_level.items()
        if reference in scores
        for row in _against(scores * DIRECTIONS[metric], reference)
    )


def costs(frame):
    """Folds in which a sampler failed or warned; mean seconds for a fold."""
    by_table = frame.groupby(["sampler", "table"], sort=False)
    # A sampler runs once for all learners of a fold.
    once = by_table[["folds", "failures", "warnings", "sampler seconds"]].max()
    once["fit seconds"] = (
        by_table["seconds"].mean() - by_table["sampler seconds"].mean()
    )
    by_sampler = once.groupby("sampler", sort=False)
    counts = by_sampler[["folds", "failures", "warnings"]].sum().astype(int)
    return counts.join(by_sampler[["sampler seconds", "fit seconds"]].mean())


def _blocks(frame):
    """Each learner and metric with scores by table, and by family, of each sampler."""
    # Results of earlier runs may lack a score that was added since.
    for metric in (metric for metric in DIRECTIONS if metric in frame):
        learners = list(frame["learner"].unique())
        wide = {learner: _wide(frame, learner, metric) for learner in learners}
        if len(learners) > 1:
            wide[OVERALL] = _overall(wide.values())
        for learner, scores in wide.items():
            families = scores.groupby(level="family").mean()
            # Ties are equal scores, whatever the order in which they were summed.
            yield (
                learner,
                metric,
                {"table": scores.round(9), "family": families.round(9)},
            )


def _wide(frame, learner, metric):
    return frame[frame["learner"] == learner].pivot(
        index=["family", "table"], columns="sampler", values=metric
    )[list(frame.loc[frame["learner"] == learner, "sampler"].unique())]


def _overall(wide):
    """Means over the learners, for the samplers that go with all of them."""
    first, *others = wide
    common = [name for name in first if all(name in scores for scores in others)]
    return sum((scores[common] for scores in others), first[common]) / (1 + len(others))


def _friedman(ranked):
    if ranked.shape[1] < 3 or (ranked.nunique(axis=1) == 1).all():
        return np.nan
    return float(friedmanchisquare(*ranked.to_numpy().T).pvalue)


def _against(scores, reference):
    rivals = [name for name in scores if name != reference]
    differences = [(scores[reference] - scores[name]).round(9) for name in rivals]
    values = [_wilcoxon(difference) for difference in differences]
    return [
        {
            "rival": rival,
            "difference": difference.mean(),
            "wins": int((difference > 0).sum()),
            "ties": int((difference == 0).sum()),
            "losses": int((difference < 0).sum()),
            "p": p,
            "p, Holm": corrected,
        }
        for rival, difference, p, corrected in zip(
            rivals, differences, values, _holm(values), strict=True
        )
    ]


def _wilcoxon(difference):
    if not difference.any():
        return 1.0
    # Half of the ties count for each side: dropping them would overstate p.
    return float(wilcoxon(difference, zero_method="zsplit").pvalue)


def _holm(values):
    values = np.array(values)
    order = np.argsort(values)
    steps = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected.tolist()


def _means(frame, name):
    write_csv(frame.to_dict("records"), f"imbalance-{name}-means")
    _show_cells(f"Means over tables: {_names()}", frame, "table", "{:.3f}")


def _ranks(frame, name):
    write_csv(frame.to_dict("records"), f"imbalance-{name}-ranks")
    for level in LEVELS:
        p = frame.drop_duplicates(BLOCK).assign(sampler="Friedman p")
        p = p.assign(**{level: p[f"Friedman p, {level}"].map(_p)})
        cells = frame.assign(**{level: frame[level].map("{:.2f}".format)})
        title = f"Mean ranks over {_plural(level)}, 1 is best: {_names()}"
        _show_cells(title, pd.concat([cells, p]), level, "{}")


def _tests(frame, reference, name):
    write_csv(frame.to_dict("records"), f"imbalance-{name}-tests")
    table, family = (
        frame[frame["level"] == level].set_index([*BLOCK, "rival"]) for level in LEVELS
    )
    cells = (
        table[["wins", "ties", "losses"]].astype(str).agg("/".join, axis=1)
        + table["difference"].map(" {:+.3f}".format)
        + table["p, Holm"].map(lambda p: f" ({_p(p)}; ")
        + family["p, Holm"].map(lambda p: f"{_p(p)})")
    )
    cells = cells.rename("text").reset_index().rename(columns={"rival": "sampler"})
    for metric in PRINTED:
        title = (
            f"{metric}, {reference} against each rival: tables won/tied/lost, mean "
            f"difference (above 0: {reference} better), and Holm-corrected p of "
            "Wilcoxon's test (over tables; over means of families)"
        )
        _show_cells(title, cells[cells["metric"] == metric], "text", "{}")


def _show_cells(title, frame, value, form):
    """Rows samplers, columns learners, in a cell the metrics in their order."""
    rows = {sampler: {"sampler": sampler} for sampler in frame["sampler"].unique()}
    for learner in frame["learner"].unique():
        for sampler, row in rows.items():
            chosen = frame[
                (frame["learner"] == learner) & (frame["sampler"] == sampler)
            ]
            values = chosen.set_index("metric")[value]
            row[learner] = " / ".join(
                form.format(values[metric]) for metric in PRINTED if metric in values
            )
    _show(title, pd.DataFrame(rows.values()))


def _show(title, frame):
    print(f"{title}\n\n{markdown(frame.to_dict('records'))}\n", flush=True)


def _names():
    return " / ".join(PRINTED)


def _plural(level):
    return {"table": "tables", "family": "means of families"}[level]


def _p(p):
    return "" if np.isnan(p) else f"{p:.1g}" if p < 0.01 else f"{p:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="small", choices=(*SETS, "chosen"))
    parser.add_argument("--reference", default=REFERENCE, help="the sampler to test")
    parser.add_argument(
        "--complete",
        action="store_true",
        help="without the tables on which a sampler failed in every fold",
    )
    parser.add_argument("--without", nargs="+", default=(), help="tables to leave out")
    options = parser.parse_args()
    report(options.set, options.reference, options.complete, options.without)


if __name__ == "__main__":
    main()
