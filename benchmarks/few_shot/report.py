"""From records of single draws to means, paired differences and one table."""

from collections import Counter, defaultdict

import numpy as np

from ..tables import grouped

SCORES = {"accuracy": 1, "log_loss": -1}  # The sign that makes larger better.
REFERENCES = ("none", "SMOTE")
FEWEST_DRAWS = 10  # The standard error of fewer differences is too vague for a flag.
MARKS = {"none": {1: "+", -1: "-"}, "SMOTE": {1: "^", -1: "v"}}


def summarise(records):
    """Return a dict for each problem, shots, learner and sampler, over the draws."""
    groups = grouped(records, "problem", "shots", "learner", "sampler")
    return [_row(groups, key) for key in groups]


def table(rows, score):
    """Return a row per problem, learner and shots, a column per sampler, and counts."""
    samplers = list(dict.fromkeys(row["sampler"] for row in rows))
    lines, counts = {}, {name: defaultdict(Counter) for name in REFERENCES}
    for row in sorted(rows, key=lambda row: (row["problem"], row["learner"])):
        if row[score] is None:
            continue
        key = row["problem"], row["learner"], row["shots"]
        marks = {name: row[f"{score}_flag_{name}"] for name in REFERENCES}
        text = f"{row[score]:.3f} " + "".join(
            MARKS[name].get(flag, "") for name, flag in marks.items()
        )
        head = dict(zip(("problem", "learner", "shots"), key, strict=True))
        line = lines.setdefault(key, {**head, **dict.fromkeys(samplers)})
        line[row["sampler"]] = text.strip()
        for name, flag in marks.items():
            counts[name][row["sampler"]][flag] += 1
    return [*lines.values(), *_footer(counts, samplers)]


def _footer(counts, samplers):
    """Count the settings in which a sampler is flagged better or worse."""
    return [
        {"problem": f"better / worse than {name}", "learner": None, "shots": None}
        | {
            sampler: None
            if sampler == name
            else f"{count[sampler][1]} / {count[sampler][-1]}"
            f" of {count[sampler].total()}"
            for sampler in samplers
        }
        for name, count in counts.items()
    ]


def _row(groups, key):
    *setting, sampler = key
    draws = groups[key]
    row = dict(zip(("problem", "shots", "learner", "sampler"), key, strict=True))
    row["draws"] = len(draws)
    for score, sign in SCORES.items():
        values = _values(draws, score)
        row[score], row[f"{score}_se"] = _mean(values)
        for name in REFERENCES:
            others = groups.get((*setting, name)) if name != sampler else None
            base = _values(others, score) if others else None
            gain = None if values is None or base is None else values - base
            mean, error = _mean(gain)
            row[f"{score}_minus_{name}"], row[f"{score}_minus_{name}_se"] = mean, error
            flagged = len(draws) >= FEWEST_DRAWS
            row[f"{score}_flag_{name}"] = _flag(mean, error, sign) if flagged else None
    row["seconds"] = round(float(np.mean([d["sampler seconds"] for d in draws])), 4)
    return row


def _values(draws, score):
    """Sort values by draw, so that differences are paired."""
    values = [draw[score] for draw in sorted(draws, key=lambda draw: draw["seed"])]
    return None if None in values else np.array(values)


def _mean(values):
    if values is None:
        return None, None
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    return round(float(np.mean(values)), 5), round(float(error), 5)


def _flag(mean, error, sign):
    """Return 1 or -1 if the paired difference exceeds two standard errors, else 0."""
    if mean is None:
        return None
    return int(np.sign(mean) * sign) if abs(mean) > 2 * error else 0
