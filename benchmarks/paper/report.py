"""Compute the tables of the page from the runs, next to the printed values.

``python docs/fill.py`` writes the tables into the pages.
"""

from collections import defaultdict

import numpy as np

from ..tables import read_csv, write_csv
from . import printed

TABLE_1 = 0.2
OURS = ("PNL (paper)", "PNL (equation)", "PNL")
AUTHORS = "PNL (authors)"
SAMPLERS = ("none", "STD", "AE", "mixup", "manifold mixup", *OURS, AUTHORS)
# The network has the authors' scaling as well, and so has the baseline.
ONE_RANGE = ("none, one range", "PNL (authors), one range")
LINES = (*SAMPLERS, *ONE_RANGE)
# The printed figures of a training set that the paper names otherwise.
PRINTED = {AUTHORS: "PNL (paper)"} | dict(
    zip(ONE_RANGE, ("none", "PNL (paper)"), strict=True)
)
TITLES = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "speech": "Speech",
    "speech uncut": "Speech, uncut",
    "sonar": "sonar",
    "taiwan_bankruptcy": "bankruptcy",
    "wine_quality": "wine",
}
# Their training rows are drawn anew from the same rows in every split.
RESPLIT = ("sonar", "wine_quality", "taiwan_bankruptcy", "speech", "speech uncut")
MEANS = ("balanced accuracy", "log loss", "seconds", "sampler seconds")


def write(rows, made_with):
    """Write the runs, their summary, and the tables."""
    write_csv(rows, "paper-runs")
    write_csv([row | made_with for row in summarise(rows)], "paper")


def summarise(rows):
    """Return a row per problem, size and sampler: accuracy in percent, differences."""
    groups = defaultdict(dict)
    for row in rows:
        groups[row["problem"], float(row["size"]), row["sampler"]][row["seed"]] = row
    return [_summary(key, groups) for key in groups]


def _summary(key, groups):
    problem, size, sampler = key
    runs = list(groups[key].values())
    accuracy = 100 * _column(runs, "accuracy")
    found = {
        "problem": problem,
        "size": size,
        "sampler": sampler,
        "seeds": len(runs),
        "accuracy": accuracy.mean(),
        "deviation": accuracy.std(ddof=1) if len(runs) > 1 else None,
    }
    none = ONE_RANGE[0] if sampler in ONE_RANGE else "none"
    pairs = groups.get((problem, TABLE_1, none), {})
    found |= _difference("minus none", groups[key], pairs, problem)
    for ours in (*OURS, AUTHORS):
        pairs = groups.get((problem, size, ours), {})
        found |= _difference(f"minus {ours}", groups[key], pairs, problem)
    found |= {name: _column(runs, name).mean() for name in MEANS}
    found |= {
        f"{kind}s": sum(bool(r[kind]) for r in runs) for kind in ("failure", "warning")
    }
    return {k: round(v, 5) if isinstance(v, float) else v for k, v in found.items()}


def _column(runs, name):
    return np.array([float(run[name]) for run in runs])


def _difference(name, runs, others, problem):
    """Return the mean paired difference, its standard error, and the deviation.

    If splits draw training rows from the same rows, they are not independent. Then the
    variance of a split is increased by the ratio of test rows to training rows (Nadeau
    and Bengio, 2003).
    """
    seeds = [seed for seed in runs if seed in others]
    gains = 100 * np.array(
        [float(runs[s]["accuracy"]) - float(others[s]["accuracy"]) for s in seeds]
    )
    found = dict.fromkeys((name, f"{name}, se", f"{name}, deviation"))
    if len(gains):
        found[name] = float(gains.mean())
    if len(gains) > 1:
        run = runs[seeds[0]]
        more = float(run["test"]) / float(run["train"]) if problem in RESPLIT else 0
        deviation = float(gains.std(ddof=1))
        found[f"{name}, se"] = deviation * float(np.sqrt(1 / len(gains) + more))
        found[f"{name}, deviation"] = deviation
    return found


def tables():
    """Return the Markdown of each table by name."""
    found = {
        (row["problem"], float(row["size"]), row["sampler"]): row
        for row in read_csv("paper")
    }
    return {
        "paper-table-1": _grid(found),
        "paper-table-1-lines": _lines(found),
        "paper-baselines": _baselines(found),
        "paper-other-scores": _other_scores(found),
        "paper-sizes": _sizes(found),
    }


def _grid(found):
    """Return a line per sampler and a column per data set: accuracy and deviation."""
    shown = _narrow(found)
    body = []
    for sampler in SAMPLERS:
        rows = [found.get((problem, TABLE_1, sampler)) for problem in shown]
        body.append([sampler, *map(_mean, rows)])
    counts = [found[p, TABLE_1, "none"]["seeds"] for p in shown]
    return _markdown(
        ["", *(TITLES[p] for p in shown)], [*body, ["splits or seeds", *counts]]
    )


def _narrow(found):
    """Return the data sets of tables with seven columns: without the uncut speech."""
    names = [name for name in TITLES if name != "speech uncut"]
    return [name for name in names if (name, TABLE_1, "none") in found]


def _lines(found):
    """Return a line per figure of table 1: printed, measured, differences, verdict."""
    said = printed.table_1()
    body = []
    for problem in TITLES:
        for sampler in LINES:
            row = found.get((problem, TABLE_1, sampler))
            if row is None:
                continue
            claim = said.get((problem, PRINTED.get(sampler, sampler)))
            is_none = sampler in ("none", ONE_RANGE[0])
            gain = claim and claim[0] - said[problem, "none"][0]
            body.append(
                [
                    TITLES[problem],
                    sampler,
                    f"{claim[0]:.2f} ± {claim[1]:.2f}" if claim else "–",
                    "" if is_none else _signed(gain),
                    _mean(row),
                    "" if is_none else _gain(row, "minus none"),
                    "" if is_none else _verdict(row, "minus none", gain),
                ]
            )
    head = ["data", "training set", "printed", "to none", "rerun", "to none (se)", ""]
    return _markdown(head, body)


def _baselines(found):
    """Compare the recipe of the paper with each baseline: printed and rerun."""
    said, body = printed.table_1(), []
    for problem in TITLES:
        for sampler in SAMPLERS:
            row = found.get((problem, TABLE_1, sampler))
            if row is None or sampler in (*OURS, AUTHORS):
                continue
            claim = said.get((problem, sampler))
            gain = claim and said[problem, "PNL (paper)"][0] - claim[0]
            cells = [TITLES[problem], sampler, _signed(gain)]
            for ours in OURS:
                cells.append(_gain(row, f"minus {ours}", -1))
            name = "minus PNL (paper)"
            body.append([*cells, _verdict(row, name, gain, -1)])
    head = ["data", "baseline", "printed", *(f"{ours} (se)" for ours in OURS), ""]
    return _markdown(head, body)


def _other_scores(found):
    """Return scores that accuracy hides: balanced accuracy in percent, log loss."""
    shown = _narrow(found)
    body = []
    for sampler in LINES:
        rows = [found.get((problem, TABLE_1, sampler)) for problem in shown]
        body.append([sampler, *(_others(row) if row else "–" for row in rows)])
    return _markdown(["", *(TITLES[p] for p in shown)], body)


def _sizes(found):
    """Return a line per data set and sampler of tables 3 to 5: printed / measured."""
    said, body = printed.tables_4_to_6(), []
    for problem in printed.DATA_SETS[:3]:
        for sampler in SAMPLERS:
            rows = [found.get((problem, size, sampler)) for size in printed.SIZES]
            claims = [said.get((problem, size, sampler)) for size in printed.SIZES]
            if sampler == "none":
                rows = [found.get((problem, TABLE_1, "none"))] * 4
            if not any(rows):
                continue
            cells = []
            for row, claim in zip(rows, claims, strict=True):
                ours = _mean(row)
                if row and sampler != "none":
                    ours += f"; {_gain(row, 'minus none')}"
                cells.append(ours + (f" [{claim:.2f}]" if claim else ""))
            seeds = max(int(row["seeds"]) for row in rows if row)
            body.append([TITLES[problem], sampler, *cells, str(seeds)])
    head = ["data", "training set", "25%", "50%", "75%", "100%", "seeds"]
    return _markdown(head, body)


def _mean(row):
    if row is None:
        return "–"
    spread = f" ± {float(row['deviation']):.2f}" if row["deviation"] else ""
    return f"{float(row['accuracy']):.2f}{spread}"


def _others(row):
    balanced, loss = float(row["balanced accuracy"]), float(row["log loss"])
    return f"{100 * balanced:.1f} / {loss:.3f}"


def _gain(row, name, sign=1):
    if not row[name]:
        return "–"
    error = row[f"{name}, se"]
    text = _signed(sign * float(row[name]))
    return f"{text} ({float(error):.2f})" if error else text


def _signed(value):
    return "–" if value is None else f"{value + 0.0:+.2f}".replace("-", "−")


def _verdict(row, name, claim, sign=1):
    """Compare a printed and a measured difference by two standard errors.

    The measured difference can have the same sign as the printed one, differ from it by
    no more than the noise of one run, or contradict it.
    """
    if not row[f"{name}, se"]:
        return ""
    gain = sign * float(row[name])
    error, deviation = (float(row[f"{name}, {kind}"]) for kind in ("se", "deviation"))
    shown = "level" if abs(gain) <= 2 * error else "gain" if gain > 0 else "loss"
    if claim is None:
        return shown
    if shown != "level" and gain * claim > 0:
        return f"{shown}; holds"
    near = abs(claim - gain) <= 2 * deviation
    return f"{shown}; one run's noise" if near else f"{shown}; not reproduced"


def _markdown(head, body):
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
