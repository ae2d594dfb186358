"""Figures and tables of the pages, read from the results of the benchmarks.

No page holds a measured number of its own: ``fill.py`` writes :func:`figures` and
:func:`tables` between the marks that name them. A figure that is no longer in its CSV
stops it.
"""

import csv
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.paper import report  # noqa: E402

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
METRICS = ("average precision", "ROC AUC", "balanced accuracy", "Brier")
SHORT = dict(zip(METRICS, ("AP", "AUC", "balanced accuracy", "Brier"), strict=True))
MEAN = "mean of learners"


@cache
def rows(name):
    """Rows of a CSV, as dicts of strings."""
    with open(RESULTS / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def only(name, **wanted):
    """The one row of a CSV with the wanted entries."""
    names = {key.replace("_", " "): value for key, value in wanted.items()}
    found = [r for r in rows(name) if all(r[k] == v for k, v in names.items())]
    if len(found) != 1:
        raise LookupError(f"{name}.csv has {len(found)} rows with {names}.")
    return found[0]


def share(value):
    """Three digits without the zero before the point."""
    return f"{float(value):.3f}".replace("0.", ".", 1)


def score(which, sampler, metric, learner=MEAN):
    """Mean score over the tables of a set."""
    name = f"imbalance-{which}-means"
    wanted = {"learner": learner, "metric": metric, "sampler": sampler}
    return share(only(name, **wanted)["table"])


def searched(variant):
    """Difference to SMOTE in the search: AP / AUC / balanced accuracy / Brier."""
    found = only("imbalance-search", variant=variant)
    gains = (float(found[f"mean {SHORT[m]}"]) for m in METRICS)
    # Spaces that do not break.
    return "\u00a0/\u00a0".join(f"{gain:.1f}".replace("-", "−") for gain in gains)


def leaked(variant):
    """Percent of new rows beyond all real ones, clusters 24 deviations apart."""
    return f"{float(only('imbalance-where', variant=variant)['beyond, 24 sd']):.1f}%"


def accuracy(problem, shots, learner, sampler):
    """Accuracy with few rows a class."""
    wanted = {"problem": problem, "shots": shots, "learner": learner}
    return share(only("few-shot-images", **wanted, sampler=sampler)["accuracy"])


def flags(sampler, against="none"):
    """How many of the settings are better and worse, beyond two standard errors."""
    column = f"accuracy_flag_{against}"
    found = [r[column] for r in rows("few-shot-images") if r["sampler"] == sampler]
    better, worse = (sum(v == s for v in found) for s in ("1", "-1"))
    return f"{better} better, {worse} worse of {len(found)}"


def speed(script, job, measure, digits=2):
    """A measured figure of a speed benchmark."""
    found = only(f"speed-{script}", job=job, measure=measure)["measured"]
    return f"{float(found):,.{digits}f}"


def growth(order):
    """Exponents of the neighbour search, and of the rest, in the number of rows."""
    found = [r for r in rows("speed-scaling") if r["varied"] == "n"]
    last = max(i for i, r in enumerate(found) if r["order"] == str(order))
    exponents = found[last + 1]
    return f"{float(exponents['search s']):.1f}", (
        f"{float(exponents['without search s']):.2f}"
    )


def figures():
    """Figures by the names that pages mark them with."""
    table = {
        "fresh": "fresh",
        "heldout": "held-out",
    }
    samplers = {
        "none": "none",
        "threshold": "threshold",
        "smote": "SMOTE",
        "ros": "ROS 0.3",
        "pnl": "PNL",
        "paper": "PNL (paper)",
    }
    metrics = dict(zip(("ap", "auc", "balanced", "brier"), METRICS, strict=True))
    found = {
        f"{which}_{sampler}_{metric}": score(table[which], samplers[sampler], name)
        for which in table
        for sampler in samplers
        for metric, name in metrics.items()
    }
    for learner in ("logistic", "5-NN", "boosting"):
        for sampler in ("none", "threshold", "smote", "pnl"):
            for metric in ("ap", "balanced"):
                found[f"fresh_{learner.replace('-', '')}_{sampler}_{metric}"] = score(
                    "fresh", samplers[sampler], metrics[metric], learner
                )
    for metric, name in metrics.items():
        found[f"fresh_calibrated_{metric}"] = score("fresh", "calibrated PNL", name)
    return found | _of_the_search() | _of_few_rows() | _of_speed() | _of_scale()


def _of_the_search():
    variants = {
        "default": "beyond",
        "itself": "PNLSampler",
        "tensor_1": "tensor, order 1",
        "tensor_2": "tensor, order 2",
        "local_25": "local",
        "k_3": "local, k 3",
        "k_8": "local, k 8",
        "k_10": "local, k 10",
        "offset_03": "beyond, offset 0.3",
        "no_mass": "local, no mass",
        "margin_0": "beyond, margin 0",
        "margin_20": "beyond, margin 0.2",
        "margin_none": "beyond, not contained",
        "euclidean": "beyond, euclidean",
    }
    leaks = {
        "leak_default": "beyond",
        "leak_smote": "SMOTE",
        "leak_ros": "ROS 0.3",
        "leak_offset_03": "beyond, offset 0.3",
    }
    gains = {name: searched(variant) for name, variant in variants.items()}
    return gains | {name: leaked(variant) for name, variant in leaks.items()}


def _of_few_rows():
    samplers = {
        "none": "none",
        "smote": "SMOTE",
        "pnl": "PNL",
        "order1": "PNL order 1",
        "paper": "PNL (paper)",
        "shift": "shift",
    }
    found = {
        f"few_{key}": flags(name) for key, name in samplers.items() if key != "none"
    }
    for key in ("pnl", "order1"):
        found[f"few_{key}_smote"] = flags(samplers[key], "SMOTE")
    settings = {
        "mnist_1nn": ("mnist", "5", "1-NN"),
        "mnist_forest": ("mnist", "5", "forest"),
    }
    for name, setting in settings.items():
        for key, sampler in samplers.items():
            found[f"{name}_{key}"] = accuracy(*setting, sampler)
    return found


def _of_speed():
    found = {
        f"ms_{manifold}_{order}": speed(
            "backward", f"MNIST, order {order}, {manifold}", "ms/row"
        )
        for manifold in ("fiber", "theta", "eta", "mixture")
        for order in (1, 2)
    }
    audio = "Speech Commands 2700 x 16000 + 20%, order 2"
    million = "1000000 x 20 table, 10% to balance"
    found["audio_s"] = speed("whole_job", audio, "PNLSampler, s", 0)
    found["audio_mib"] = speed("whole_job", audio, "peak beyond the input, MiB", 0)
    found["million_s"] = speed("whole_job", million, "PNLSampler, s", 1)
    found["million_jobs_s"] = speed("whole_job", million, "PNLSampler, n_jobs=-1, s", 1)
    found["million_smote_s"] = speed("whole_job", million, "SMOTE, s", 1)
    found["grows_search"], found["grows_rest"] = growth(1)
    return found


GROWN = {"fit": "fit s", "search": "search s", "draw": "draw and decode s"}
MACHINES, BILLION = 100, 10**9


def grown(varied, n_candidates="16384"):
    """Rows of a plain table with one size varied, and their exponents."""
    found = [
        r
        for r in rows("speed-growth")
        if (r["varied"], r["n_candidates"], r["order"]) == (varied, n_candidates, "")
    ]
    return found[:-1], found[-1]


def _of_scale():
    sizes, in_n = grown("n")
    _, in_columns = grown("n_columns")
    every, in_all = grown("n", "")
    last, columns = sizes[-1], int(sizes[-1]["n_columns"])
    n = int(last["n"])
    found = {
        "growth_n": f"{n:,}",
        "growth_columns": str(columns),
        "growth_bytes": f"{float(last['peak MiB']) * 2**20 / n:,.0f}",
        "growth_all_n": f"{float(in_all['search s']):.2f}",
        "growth_all_rows": f"{int(every[-1]['n']):,}",
    }
    own = BILLION // MACHINES
    for name, stage in GROWN.items():
        found[f"growth_{name}_us"] = f"{1e6 * float(last[stage]) / n:.2g}"
        found[f"growth_{name}_n"] = f"{float(in_n[stage]):.2f}"
        found[f"growth_{name}_columns"] = f"{float(in_columns[stage]):.2f}"
        found[f"machine_{name}"] = _duration(own * float(last[stage]) / n)
    n_all, taken = int(every[-1]["n"]), float(every[-1]["search s"])
    found["growth_all_us"] = f"{1e6 * taken / n_all:.2g}"
    power = float(in_all["search s"])
    for name, number in {"machine": own, "billion": BILLION}.items():
        gigabytes = number * columns * 8 / 1e9
        beside = number * float(last["peak MiB"]) * 2**20 / n / 1e9
        found[f"{name}_gb"], found[f"{name}_peak_gb"] = (
            f"{gigabytes:g}",
            f"{beside:.0f}",
        )
        found[f"{name}_all"] = _duration(taken * (number / n_all) ** power)
    return found


def _duration(seconds):
    units = {"years": 365 * 86400, "days": 86400, "hours": 3600, "minutes": 60}
    for name, length in units.items():
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{seconds:.0f} seconds"


def tables():
    """Tables by the names that pages mark them with."""
    found = {which: _imbalance(which) for which in ("fresh", "held-out")}
    found["few-shot-images"], found["mixed"] = _few_shot(), _mixed()
    for name in ("raking", "constraints", "invariants", "weights", "totals"):
        found[f"control-{name}"] = _wanted(rows(f"control-{name}"))
    for script in ("forward", "backward", "whole_job"):
        found[f"speed-{script}"] = _wanted(rows(f"speed-{script}"))
    found["control-replays"] = _replays()
    found["control-realism"], found["search"] = _realism(), _search()
    found["control-shifted"], found["spread"] = _shifted(), _spread()
    found["completion"], found["completion-wins"] = _completion(), _completion_wins()
    found["completion-totals"] = _completion_totals()
    found["completion-exact"] = _completion_exact()
    found["growth"], found["workers"] = _growth(), _workers()
    found["fit-search"] = _fit_search()
    return {name: "\n".join(lines) for name, lines in found.items()} | report.tables()


def _markdown(head, body):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in body:
        yield "| " + " | ".join(line) + " |"


def _fit_search():
    """Share of true sets found, a kind of table a line."""
    found, cells = {}, {}
    for r in rows("fit-search"):
        line = (r["shape"], r["structure"])
        cells[line] = r["cells"]
        shown = f"{float(r['true set found']):.2f}"
        found.setdefault(line, []).append(shown.replace("0.", ".", 1))
        if r["counts a cell"] == "100":
            found[line].append(f"{float(r['ms, median']):.0f}")
    head = [
        "shape",
        "cells",
        "true interactions",
        "100 counts a cell",
        "ms",
        "30",
        "10",
    ]
    body = ([line[0], cells[line], line[1], *found[line]] for line in found)
    return _markdown(head, body)


def _imbalance(which):
    """A table a metric, a sampler a line."""
    found = {}
    for r in rows(f"imbalance-{which}-means"):
        found[r["sampler"], r["learner"], r["metric"]] = share(r["table"])
    samplers = dict.fromkeys(key[0] for key in found)
    learners = dict.fromkeys(key[1] for key in found)
    for metric in METRICS:
        yield from ([""] if metric != METRICS[0] else [])
        yield from (f"*{metric}*", "")
        body = [
            [s, *(found.get((s, learner, metric), "–") for learner in learners)]
            for s in samplers
        ]
        yield from _markdown(["", *learners], body)


def _search():
    """A variant a line; the seeds of one variant apart."""
    body = [
        [f"`{r['variant']}`", *(f"{float(r[f'mean {SHORT[m]}']):.1f}" for m in METRICS)]
        for r in rows("imbalance-search")
    ]
    return _markdown(["variant", "AP", "AUC", "balanced accuracy", "Brier"], body)


# What the runs of the search for noise are called.
_IN_WORDS = {
    "none": "no new rows",
    "threshold": "no new rows, threshold at the prevalence",
    "ROS 0.3": "`RandomOverSampler(shrinkage=0.3)`",
    "former": ".25 of one difference of any two near rows",
    "0.5 of 10": ".5, shape of ten near rows",
    "0.41 of 10": ".41, shape of ten near rows",
    "0.6 of 10": ".6, shape of ten near rows",
    "0.5 of 5": ".5, shape of five near rows",
    "0.5 of 10, k 10": ".5, shape of ten near rows, partners among ten",
    "0.5 of 10, margin 0.3": ".5, shape of ten near rows, `range_slack=0.3`",
    "0.5 of 10, margin 10": ".5, shape of ten near rows, `range_slack=10`",
    "0.5, sixteen pooled": ".5, shape of the whole class",
}


def _spread():
    """A way to draw noise a line, with p of a difference."""
    metrics = ("AP", "AUC", "balanced accuracy", "corrected Brier")
    body = [
        [
            _IN_WORDS.get(r["variant"], r["variant"]),
            *(f"{r[m]} ({float(r[f'{m}: p']):.2g})" for m in metrics),
        ]
        for r in rows("spread-chosen")
    ]
    return _markdown(["", *metrics], body)


def _few_shot():
    """A problem and learner a line, accuracy at 5 and at 50 rows a class."""
    samplers = dict.fromkeys(r["sampler"] for r in rows("few-shot-images"))
    found = {
        (r["problem"], r["learner"], r["shots"], r["sampler"]): share(r["accuracy"])
        for r in rows("few-shot-images")
    }
    pairs = dict.fromkeys(key[:2] for key in found)
    body = [
        [*pair, *(" / ".join(found.get((*pair, n, s), "–") for n in ("5", "50"))
                  for s in samplers)]
        for pair in pairs
    ]  # fmt: skip
    for against in ("none", "SMOTE"):
        body.append([f"settings better / worse than {against}", ""])
        for s in samplers:
            given = flags(s, against).split()
            body[-1].append("" if s == against else f"{given[0]} / {given[2]}")
    return _markdown(["problem", "learner", *samplers], body)


def _mixed():
    """Means over tables and learners, a sampler a line."""
    samplers = dict.fromkeys(r["sampler"] for r in rows("mixed"))
    scores = (*METRICS, "corrected Brier")
    body = []
    for sampler in samplers:
        found = [r for r in rows("mixed") if r["sampler"] == sampler]
        means = (sum(float(r[m]) for r in found) / len(found) for m in scores)
        body.append([sampler, *map(share, means)])
    return _markdown(["mean of learners", *scores], body)


def _realism():
    """AUC of a forest that tells new rows from real ones, by table."""
    body = [
        [r["table"], r["rows"], share(r["AUC"]), share(r["standard error"])]
        for r in rows("control-realism")
    ]
    return _markdown(["table", "new rows", "AUC", "standard error"], body)


def _replays():
    """What others were stuck at: what came of it here, and what a refusal says."""
    body = [
        [
            *(r[key] for key in ("issue", "case", "found")),
            "" if r["found"] == "refused" else _digits(r["worst miss"]),
            r["says"],
        ]
        for r in rows("control-replays")
    ]
    return _markdown(["issue", "case", "here", "worst miss", "says"], body)


def _shifted():
    """The same for rows with totals, by table and shift of these."""
    body = [
        [
            *(r[key] for key in ("table", "shift", "rows")),
            _with_error(r),
            f"{share(r['less that of copies'])} ± {share(r['its standard error'])}",
            f"{float(r['spread']):.2f}",
        ]
        for r in rows("control-shifted")
    ]
    head = ["table", "shift", "new rows", "AUC", "less that of copies", "spread"]
    return _markdown(head, body)


def _with_error(row):
    return f"{share(row['AUC'])} ± {share(row['standard error'])}"


def _growth():
    """A size a line, exponents below those that they are fitted to."""
    names = ["n", "n_columns", "order", "k", "n_candidates"]
    body = []
    for r in rows("speed-growth"):
        sizes = [r[name] or "–" for name in names]
        if r["at"] == "exponent":
            sizes[names.index(r["varied"])] = "*exponent*"
        given = [*GROWN.values(), "peak MiB"]
        digits = "{:.2f}" if r["at"] == "exponent" else "{:.3g}"
        body.append([*sizes, *(digits.format(float(r[name])) for name in given)])
    head = ["n", "columns", "order", "k", "candidates"]
    return _markdown([*head, "fit, s", "search, s", "draw and decode, s", "MiB"], body)


def _workers():
    """A job and a kind of workers a line."""
    body = [
        [r["job"], r["workers"], f"{float(r['s']):.1f}",
         f"{float(r['times as fast']):.2f}"]
        for r in rows("speed-workers")
    ]  # fmt: skip
    return _markdown(["work", "workers", "s", "times as fast"], body)


def _completion():
    """Errors at missing cells: a tensor and share a line, a method a column."""
    body = []
    for (tensor, missing), line in _errors().items():
        shown = {m: f"{error:.4f}" for m, error in line.items()}
        best = min(line, key=line.get)
        shown[best] = f"**{shown[best]}**"
        body.append([tensor, f"{float(missing):.0%}", *shown.values()])
    return _markdown(["tensor", "missing", *line], body)


def _completion_wins():
    """On how many tensors the imputer is ahead of each method, by share."""
    ahead = {}
    for (_, missing), line in _errors().items():
        ours, *others = line.values()
        won = [ours < other for other in (min(others[:2]), *others[2:])]
        ahead.setdefault(missing, []).append(won)
    body = [
        [
            f"{float(missing):.0%}",
            *(f"{sum(w)} of {len(w)}" for w in zip(*won, strict=True)),
        ]
        for missing, won in ahead.items()
    ]
    imputers = ["KNNImputer", "IterativeImputer"]
    return _markdown(["missing", "CP and Tucker", *imputers], body)


def _errors():
    """Errors of the methods, by tensor and share."""
    errors = {}
    for r in rows("completion"):
        line = errors.setdefault((r["tensor"], r["missing"]), {})
        line[r["method"]] = float(r["error"])
    return errors


def _completion_totals():
    """Errors and misses of totals: a table a line, methods side by side."""
    lines, methods = {}, {}
    for r in rows("completion-totals"):
        line = lines.setdefault(r["table"], [r["table"]])
        line += [f"{float(r['error']):.3f}", f"{float(r['off']):.0e}"]
        methods[r["method"]] = None
    head = [text for name in methods for text in (name, "off")]
    return _markdown(["table", *head], lines.values())


def _completion_exact():
    """Exact data: what is estimable, and the worst error there over all sizes."""
    lines = {}
    for r in rows("completion-exact"):
        some = lines.setdefault((r["shape"], r["missing"]), [])
        some.append(r)
    body = [
        [
            shape,
            f"{float(missing):.0%}",
            str(sum(int(r["cases"]) for r in some)),
            f"{float(some[0]['estimable']):.1%}",
            f"{max(float(r['worst error']) for r in some):.0e}",
        ]
        for (shape, missing), some in lines.items()
    ]
    head = ["shape", "missing", "cases", "estimable", "worst relative error there"]
    return _markdown(head, body)


def _wanted(found):
    met = {"NO": "missed", "yes": "met", "": ""}
    body = [
        [
            r["job"],
            r["measure"],
            r["wanted"].replace("<", "\\<"),
            _digits(r["measured"]),
            met[r["met"]],
        ]
        for r in found
    ]
    return _markdown(["work", "measure", "wanted", "measured", ""], body)


def _digits(value):
    number = float(value)
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
