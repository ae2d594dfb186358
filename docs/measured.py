"""Provide the measured figures and tables of the pages from the results of benchmarks.

``fill.py`` writes :func:`figures` and :func:`tables` between the marks that name them.
A mark whose figure is not in a CSV file of ``benchmarks/results`` raises an error.
"""

import csv
import re
import sys
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.generators import report as generators  # noqa: E402
from benchmarks.imbalance import confirm, manifolds, ratios, rules  # noqa: E402
from benchmarks.imbalance import report as imbalance  # noqa: E402
from benchmarks.imbalance.samplers import VARIANTS  # noqa: E402
from benchmarks.paper import report  # noqa: E402
from benchmarks.plausibility import report as plausibility  # noqa: E402
from benchmarks.significance import Tested, corrected  # noqa: E402
from benchmarks.small import report as small  # noqa: E402
from benchmarks.speed import cores  # noqa: E402
from benchmarks.tables import grouped  # noqa: E402

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
METRICS = ("average precision", "ROC AUC", "balanced accuracy", "Brier")
MEAN = imbalance.OVERALL
# Sampler of few images that only the CSV contains.
NOT_SHOWN = ("noise",)
# Tables on pages have at most seven columns.
MOST_LEARNERS = 6
# The largest times of typical jobs that are wanted, in times of SMOTE.
GUARD = {
    ("sampler, 1,000 x 20",): 3,
    ("sampler, 5,000 x 20",): 2.6,
    ("sampler, 5,000 x 200", "sampler, 20,000 x 50", "sampler, 100,000 x 20"): 1.5,
    ("sampler, 5,000 x 200, two redundant",): 3.2,
    ("sampler, 20,000 x 50, two redundant",): 2.8,
    ("sampler, 20,000 x 20 integers",): 2,
    ("sampler, 10,000 x 2,048 bits",): 5,
    ("sampler of embeddings, 6,000 x 768, 600 rare",): 3,
    ("sampler of embeddings, 6,000 x 768, 40 rare",): 6,
    ("sampler of embeddings, 20,000 x 384, 2,000 rare",): 3.5,
}


@cache
def rows(name):
    """Return the rows of a CSV file as dicts of strings."""
    with open(RESULTS / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def only(name, **wanted):
    """Return the only row of a CSV file with the given entries."""
    names = {key.replace("_", " "): value for key, value in wanted.items()}
    found = [r for r in rows(name) if all(r[k] == v for k, v in names.items())]
    if len(found) != 1:
        raise LookupError(f"{name}.csv has {len(found)} rows with {names}.")
    return found[0]


def share(value):
    """Format a score with three decimals."""
    return f"{float(value):.3f}"


@cache
def means(which):
    """Return mean scores over a set of tables, by sampler, learner and metric."""
    found = imbalance.scores(rows(f"imbalance-{which}"))
    return {key: share(values.mean()) for key, values in found.items()}


def score(which, sampler, metric, learner=MEAN):
    """Return a mean score over a set of tables."""
    return means(which)[sampler, learner, metric]


def accuracy(problem, shots, learner, sampler):
    """Return an accuracy with few rows per class."""
    wanted = {"problem": problem, "shots": shots, "learner": learner}
    return share(only("few-shot-images", **wanted, sampler=sampler)["accuracy"])


def flags(sampler, against="none"):
    """Count pairs of data set and classifier that are better and worse.

    The differences are means over the numbers of rows per class. The rows of the
    settings of a pair are nested, so that their errors are not independent, and mean
    standard errors count.
    """
    pairs, column = {}, f"accuracy_minus_{against}"
    for row in rows("few-shot-images"):
        if row["sampler"] == sampler:
            pairs.setdefault((row["problem"], row["learner"]), []).append(row)
    ratios = [
        sum(float(r[column]) for r in found)
        / (sum(float(r[f"{column}_se"]) for r in found) or 1)
        for found in pairs.values()
    ]
    limit = _few_limit()
    better, worse = (sum(sign * r > limit for r in ratios) for sign in (1, -1))
    return f"better for {better} of {len(pairs)} pairs and worse for {worse}"


def _few_limit():
    """Return the standard errors of a significant difference, by Bonferroni's method.

    The comparisons are all pairs of data set and classifier with each sampler that the
    page shows, except for the sampler that is compared.
    """
    found = rows("few-shot-images")
    (n_draws,) = {int(row["draws"]) for row in found}
    pairs = {(row["problem"], row["learner"]) for row in found}
    samplers = {row["sampler"] for row in found} - set(NOT_SHOWN)
    return stats.t.isf(0.025 / (len(pairs) * (len(samplers) - 1)), n_draws - 1)


def speed(script, job, measure, digits=2):
    """Return a measured figure of a speed benchmark."""
    found = only(f"speed-{script}", job=job, measure=measure)["measured"]
    return f"{float(found):,.{digits}f}"


def growth(order):
    """Return the growth exponents of the neighbour search and of all other steps."""
    found = [r for r in rows("speed-scaling") if r["varied"] == "n"]
    last = max(i for i, r in enumerate(found) if r["order"] == str(order))
    exponents = found[last + 1]
    return f"{float(exponents['search s']):.1f}", (
        f"{float(exponents['without search s']):.2f}"
    )


def figures():
    """Return the figures by the names of their marks."""
    samplers = {
        "none": "none",
        "threshold": "threshold",
        "smote": "SMOTE",
        "ros": "ROS 0.3",
        "pnl": "PNL",
        "paper": "PNL (paper)",
        "calibrated": "calibrated PNL",
        "calibrated_none": "calibrated none",
    }
    metrics = dict(zip(("ap", "auc", "balanced", "brier"), METRICS, strict=True))
    found = {
        f"fresh_{sampler}_{metric}": score("fresh", samplers[sampler], name)
        for sampler in samplers
        for metric, name in metrics.items()
    }
    for sampler in ("none", "pnl"):
        found[f"fresh_logistic_{sampler}_ap"] = score(
            "fresh", samplers[sampler], metrics["ap"], "logistic"
        )
    found |= _of_sets() | _of_shares() | _of_few_rows() | _of_speed()
    for part in (confirm, generators, manifolds, plausibility, ratios, small):
        found |= part.figures()
    return found


def _of_sets():
    """Return the sizes of the sets of tables, and of other benchmarks."""
    found = {"mixed_tables": str(len({row["table"] for row in rows("mixed")}))}
    for name, file in {"fresh": "fresh", "held_out": "shares"}.items():
        for key, plural in {"table": "tables", "family": "families"}.items():
            values = {row[key] for row in rows(f"imbalance-{file}")}
            found[f"{name}_{plural}"] = str(len(values))
    images, signals = rows("few-shot-images"), rows("few-shot-signals")
    shots = sorted({int(row["shots"]) for row in images})
    found["few_shots"] = f"{', '.join(map(str, shots[:-1]))} and {shots[-1]}"
    (found["few_draws"],) = {row["draws"] for row in images}
    found["few_limit"] = f"{_few_limit():.1f}"
    settings = {(r["problem"], r["shots"], r["learner"]) for r in signals}
    found["few_signals"] = str(len(settings))
    cases = (r["cases"] for r in rows("promises") if r["of"].startswith("PNL"))
    return found | {"promises_cases": f"{sum(map(int, cases)):,}"}


def _of_shares():
    """Return means over the held-out tables by ratio of the classes and learner."""
    samplers = {"none": "none", "threshold": "threshold"}
    samplers |= {"fifth": "PNL 1/5", "third": "PNL 1/3", "full": "PNL 1"}
    metrics = {"ap": METRICS[0], "balanced": METRICS[2], "brier": "corrected Brier"}
    learners = {"mean": MEAN, "logistic": "logistic", "boosting": "boosting"}
    found = {
        f"shares_{sampler}_{learner}_{metric}": score(
            "shares", samplers[sampler], metrics[metric], learners[learner]
        )
        for sampler in samplers
        for learner in learners
        for metric in metrics
    }
    return found


def _of_few_rows():
    samplers = {
        "none": "none",
        "pnl": "PNL",
        "paper": "PNL (paper)",
        "shift": "shift",
        "rotation": "shift, rotation",
    }
    found = {
        f"few_{key}": flags(name) for key, name in samplers.items() if key != "none"
    }
    for name, learner in {"1nn": "1-NN", "forest": "forest"}.items():
        for key, sampler in samplers.items():
            key = f"mnist_{name}_{key}"
            found[key] = accuracy("mnist", "5", learner, sampler)
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
    return found | _of_workers()


def _of_workers():
    """Return how many times as fast as one thread 16 cores encode images."""

    def gain(order, setting):
        wanted = {"table": "encoding", "job": order, "measure": "rows per second"}
        many, one = (
            float(only("speed-cores-16", **wanted, setting=name)["value"])
            for name in (setting, "1 thread")
        )
        return f"{many / one:.1f}"

    found = {f"threads_{n}": gain("order 2", f"{n} threads") for n in (2, 4, 8, 16)}
    return found | {"processes_16": gain("order 3", "16 processes")}


def tables():
    """Return the tables by the names of their marks."""
    sets = ("fresh", "held-out")
    found = {f"{which}-minus-smote": _minus_smote(which) for which in sets}
    found |= {"fresh": _imbalance("fresh"), "fresh-ensembles": _ensembles("fresh")}
    found |= _share_tables()
    found["few-shot-images"], found["mixed"] = _few_shot(), _mixed()
    found |= {"regression": _regression(), "payments": _payments()}
    for name in ("control-raking", "control-weights"):
        found[name] = _wanted(rows(name))
    for script in ("forward", "backward", "whole_job"):
        found[f"speed-{script}"] = _wanted(rows(f"speed-{script}"))
    found["speed-cores"], found["speed-growth"] = _cores(), _growth_of_calls()
    found["speed-guard"] = _guard()
    found["completion"], found["completion-wins"] = _completion(), _completion_wins()
    found["completion-totals"] = _completion_totals()
    found["completion-exact"] = _completion_exact()
    found = {name: "\n".join(lines) for name, lines in found.items()}
    parts = (confirm, generators, manifolds, plausibility, ratios, report, rules, small)
    for part in parts:
        found |= part.tables()
    return found


def _markdown(head, body):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in body:
        yield "| " + " | ".join(line) + " |"


def _imbalance(which):
    """Return mean scores, one line per sampler, without smote-variants."""
    lines = imbalance.means(_kept(which))
    metrics = [name for name in imbalance.DIRECTIONS if name in lines[0]]
    body = [[x["sampler"], *(share(x[name]) for name in metrics)] for x in lines]
    return _markdown(["mean of learners", *metrics], body)


def _kept(which):
    """Return the rows that pages show; the report has all samplers."""
    found = rows(f"imbalance-{which}")
    return [row for row in found if row["sampler"] not in VARIANTS]


def _minus_smote(which):
    """Return 1000 times the differences to SMOTE, one line per sampler."""
    lines = imbalance.differences(_kept(which), learners=[MEAN])
    names = [name for name in imbalance.SHORT.values() if name in lines[0]]
    body = [[line["sampler"], *(line[name] for name in names)] for line in lines]
    failed = imbalance.failed("SMOTE", rows(f"imbalance-{which}"))
    return _markdown([f"minus SMOTE{failed}", *names], body)


def _share_tables():
    """Return the tables on the number of new rows."""
    decisions = "balanced accuracy", "corrected Brier"
    some = {
        "none": "no new rows",
        "PNL 1/5": "`sampling_strategy=1/5`",
        "PNL 1/3": "`sampling_strategy=1/3`",
        "PNL 1": "balanced classes (default)",
    }
    return {
        "shares-ranking": _shares("shares", *METRICS[:2]),
        "shares-decisions": _shares("shares", *decisions, with_p=False),
        "shares-choice": _of_learners("shares", some),
    }


def _shares(which, *metrics, with_p=True):
    """Return 1000 times the gains over no new rows by learner, two scores per cell.

    The first score has p of Wilcoxon's test over the families, which is corrected by
    Holm's method over all cells.
    """
    found = imbalance.scores(rows(f"imbalance-{which}"))
    learners = _learners(found)
    none = [found["none", name, metric] for name in learners for metric in metrics]
    body = [["none"]]
    for first, second in zip(none[::2], none[1::2], strict=True):
        body[0].append(f"{share(first.mean())} / {share(second.mean())}")
    # A moved threshold does not change the ranking.
    left_out = {"none", *["threshold"] * (METRICS[0] in metrics)}
    for sampler in dict.fromkeys(key[0] for key in found):
        if sampler in left_out:
            continue
        body.append([imbalance.marked(sampler, rows(f"imbalance-{which}"))])
        for learner in learners:
            if (sampler, learner, metrics[0]) not in found:
                body[-1].append("–")
                continue
            first, second = (
                1000
                * imbalance.DIRECTIONS[metric]
                * (found[sampler, learner, metric] - found["none", learner, metric])
                for metric in metrics
            )
            text = f"{first.mean():+.0f}{' ({})' * with_p} / {second.mean():+.0f}"
            cell = Tested(text, first)
            body[-1].append(cell if with_p else text)
    head = [" / ".join(metrics), *learners]
    lines = corrected([dict(zip(head, line, strict=True)) for line in body])
    return _markdown(head, [list(line.values()) for line in lines])


def _learners(found):
    """Return the learners, after their mean if a table has a column for it."""
    names = [*dict.fromkeys(key[1] for key in found if key[1] != MEAN)]
    return [MEAN, *names] if len(names) < MOST_LEARNERS else names


def _of_learners(which, names, metric="average precision"):
    """Return means by learner for the named samplers."""
    scores = means(which)
    body = [
        [
            name + imbalance.failed(sampler, rows(f"imbalance-{which}")),
            *(
                scores.get((sampler, learner, metric), "–")
                for learner in _learners(scores)
            ),
        ]
        for sampler, name in names.items()
    ]
    return _markdown([metric, *_learners(scores)], body)


def _ensembles(which):
    """Return the differences of balancing ensembles to a learner with SMOTE."""
    of = {"forest": ("PNL", "balanced forest"), "boosting": ("PNL", "EasyEnsemble")}
    scores, lines = rows(f"imbalance-{which}"), []
    for learner, samplers in of.items():
        lines += imbalance.differences(scores, learners=[learner], samplers=samplers)
    body = [list(line.values()) for line in lines]
    return _markdown(["learner", "minus SMOTE", *list(lines[0])[2:]], body)


def _few_shot():
    """Return accuracies at 5 and at 50 rows per class, for each problem and learner."""
    found = {
        (r["problem"], r["learner"], r["shots"], r["sampler"]): share(r["accuracy"])
        for r in rows("few-shot-images")
    }
    samplers = dict.fromkeys(key[3] for key in found if key[3] not in NOT_SHOWN)
    body = []
    problems = [*dict.fromkeys(key[0] for key in found)]
    pairs = dict.fromkeys(key[:2] for key in found)
    for pair in sorted(pairs, key=lambda pair: problems.index(pair[0])):
        both = ([found.get((*pair, n, s), "–") for n in ("5", "50")] for s in samplers)
        body.append([", ".join(pair), *map(" / ".join, both)])
    for against in ("none", "SMOTE"):
        body.append([f"pairs better / worse than {against}"])
        for s in samplers:
            counts = "" if s == against else flags(s, against)
            body[-1].append(" / ".join(re.findall(r" for (\d+)", counts)))
    return _markdown(["images, classifier", *samplers], body)


def _mixed():
    """Return means over families and learners, with p of the difference to PNL."""
    # Both tables contain the same credit applications.
    families = {"crx": "australian"}
    mixed = [
        {"family": families.get(row["table"], row["table"])} | row
        for row in rows("mixed")
    ]
    found = imbalance.scores(mixed)
    lines = []
    for sampler in dict.fromkeys(row["sampler"] for row in mixed):
        line = {"mean of learners": sampler}
        for metric in (*METRICS, "corrected Brier"):
            values, ours = (found[name, MEAN, metric] for name in (sampler, "PNL"))
            text = share(values.mean())
            is_ours = sampler == "PNL"
            line[metric] = text if is_ours else Tested(f"{text} ({{}})", values - ours)
        lines.append(line)
    return _markdown(list(lines[0]), [list(x.values()) for x in corrected(lines)])


def _regression():
    """Return the change of the RMSE in percent, by number of rows and sampler."""
    learners = ("mean", "linear", "5-NN", "forest", "boosting")
    body = [
        [f"{r['rows']}, {r['sampler']}", *(r[name] for name in learners)]
        for r in rows("regression")
        if r["sampler"] not in ("none", "default")
    ]
    return _markdown(["rows, sampler", "mean of learners", *learners[1:]], body)


def _payments():
    """Return the mean scores by way of sampling, for each number of rows.

    p is that of the difference to no new rows over the seeds.
    """
    found = {
        (way, size, metric): np.array([float(row[metric]) for row in own])
        for (way, size), own in grouped(rows("payments"), "way", "rows").items()
        for metric in METRICS[:3]
    }
    ways, sizes = (dict.fromkeys(key[i] for key in found) for i in (0, 1))
    none, lines = next(iter(ways)), []
    for way in ways:
        line = {"sampler": way.replace("imputed", "with an imputer")}
        for size, metric in product(sizes, METRICS[:3]):
            values, before = (found[name, size, metric] for name in (way, none))
            text = share(values.mean())
            cell = text if way == none else Tested(f"{text} ({{}})", values - before)
            line[f"{metric}, {int(size) // 100} frauds"] = cell
        lines.append(line)
    return _markdown(list(lines[0]), [list(x.values()) for x in corrected(lines)])


def _guard():
    """Return the times of typical jobs in those of SMOTE, with their targets."""
    body = []
    for jobs, most in GUARD.items():
        for job in jobs:
            ratio = only("speed-guard", job=job)["after / baseline"]
            met = "met" if float(ratio) <= most else "missed"
            body.append([f"`{job}`", f"{most}", _digits(ratio), met])
    return _markdown(["job", "target", "after / baseline", ""], body)


def _cores():
    """Return the tables of each machine that ``cores`` was run on.

    Page faults of one thread do not depend on the number of cores and are shown once.
    """
    names = (path.stem for path in RESULTS.glob("speed-cores-*.csv"))
    machines = [rows(name) for name in names if not name.endswith("quick")]
    machines.sort(key=lambda found: int(found[0]["cores"]))
    for found in machines:
        once = found is machines[0]
        kept = [row for row in found if once or row["table"] != "memory"]
        for title, lines in cores.tables(kept):
            yield from (f"{title}:", "")
            yield from _markdown(list(lines[0]), [list(x.values()) for x in lines])
            yield ""


def _growth_of_calls():
    """Return seconds by number of rows, growth and memory of each public call."""
    found = rows("speed-growth")
    names = [key for key in found[0] if key.endswith(" rows, s")]
    head = [f"{int(name.split()[0]):,}" for name in names]
    body = [[row["call"], *(row[key] for key in [*row][1:])] for row in found]
    return _markdown(["seconds of a call", *head, "exponent", "peak MiB"], body)


def _completion():
    """Return errors at missing cells by tensor and share, one column per method."""
    body = []
    for (tensor, missing), line in _errors().items():
        shown = {m: f"{error:.4f}" for m, error in line.items()}
        best = min(line, key=line.get)
        shown[best] = f"**{shown[best]}**"
        body.append([tensor, f"{float(missing):.0%}", *shown.values()])
    return _markdown(["tensor", "missing", *line], body)


def _completion_wins():
    """Count the tensors on which the imputer has the smaller error, by share."""
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
    """Return the errors of the methods by tensor and share."""
    errors = {}
    for r in rows("completion"):
        line = errors.setdefault((r["tensor"], r["missing"]), {})
        line[r["method"]] = float(r["error"])
    return errors


def _completion_totals():
    """Return errors and deviations from totals, one line per table."""
    lines, methods = {}, {}
    for r in rows("completion-totals"):
        line = lines.setdefault(r["table"], [r["table"]])
        line += [f"{float(r['error']):.3f}", f"{float(r['off']):.0e}"]
        methods[r["method"]] = None
    head = [text for name in methods for text in (name, "off")]
    return _markdown(["table", *head], lines.values())


def _completion_exact():
    """Return the estimable share of exact data, and the largest error there."""
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


# Pages leave these measures out unless they have a target; the CSV has them.
_LEFT_OUT = (
    "n_jobs", "RandomOverSampler", "embedding=None", "without", "share",
    "largest difference",
)  # fmt: skip


def _wanted(found):
    found = [
        r for r in found
        if r["wanted"] or not any(word in r["measure"] for word in _LEFT_OUT)
    ]  # fmt: skip
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
