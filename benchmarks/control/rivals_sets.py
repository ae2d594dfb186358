"""Whole weights, whole tables and new rows that meet totals: rivals beside ours.

Households with controls of households and persons, whose totals some whole weights
have; tables of which a whole population has the margins; and household budgets of which
the sums of the held-out rows are asked. "violations" is the share of totals that are
missed, "worst" the largest miss (of counts, or of pounds), AUC that of a forest that
tells rows, copied as often as they weigh, from the held-out ones.
"""

from itertools import combinations

import numpy as np

from .beside import ask, row
from .rivals_rows import budgets, told_apart
from .script import main
from .weights import households

WEIGHTS = {
    "calibrate(integer=True)": (None, "calibrate"),
    "PopulationSim": ("populationsim", "populationsim"),
    "truncate, replicate, sample": (None, "truncate_replicate_sample"),
    "SciPy milp, 60 s": (None, "milp"),
}
TABLES = {
    "calibrate(integer=True)": (None, "calibrate_cells"),
    "humanleague": ("humanleague", "humanleague"),
}
TOL = 1e-6


def missed(gaps):
    """Share of totals that are missed, the largest and the sum."""
    gaps = np.abs(gaps)
    return {"violations": (gaps > TOL).mean(), "worst": gaps.max(), "sum": gaps.sum()}


def line(job, name, where, problem, gaps_of, held=None):
    """A line of the table."""
    found = ask(where[0], "sets", where[1], problem)
    measures = {"violations": np.nan, "worst": np.nan, "sum": np.nan, "AUC": np.nan}
    if found.arrays:
        measures |= missed(gaps_of(found.arrays))
        if held is not None:
            X = problem["X"][:, 1:]
            copies = found.arrays.get("weights", np.zeros(len(X))).astype(int)
            new = found.arrays.get("rows", np.repeat(X, copies, axis=0))
            measures["AUC"] = told_apart(held, new, 0)
    return row(job, name, found, **measures)


def of_households(n, many):
    """Households and persons; the first column counts households."""
    x, totals = households(np.random.default_rng(0), n, many)
    counts = totals[:6].sum()
    X = np.column_stack([np.ones(n), x])
    problem = {"X": X, "totals": np.concatenate([[counts], totals])}
    job = f"{n} households, {X.shape[1]} controls"

    def gaps(found):
        return found["weights"] @ X - problem["totals"]

    return [line(job, name, w, problem, gaps) for name, w in WEIGHTS.items()]


def of_tables(shape, sets, total):
    """A seed without zeros, and margins of another table of whole numbers."""
    rng = np.random.default_rng(0)
    seed, shares = rng.gamma(1.0, size=(2, *shape))
    people = rng.multinomial(total, (shares / shares.sum()).ravel()).reshape(shape)
    problem = {"seed": seed}

    def margin(table, axes):
        others = tuple(k for k in range(len(shape)) if k not in axes)
        return table.sum(axis=others)

    for i, axes in enumerate(sets):
        problem |= {f"a{i}": np.array(axes), f"m{i}": margin(people, axes)}

    def gaps(found):
        each = [(margin(found["table"] - people, a)).ravel() for a in sets]
        return np.concatenate(each)

    job = f"{' x '.join(map(str, shape))}, {len(sets)} margins, {total} persons"
    return [line(job, name, w, problem, gaps) for name, w in TABLES.items()]


def of_budgets():
    """Sums of six expenses and their total, income, age, and families with two."""
    numbers, names, children = budgets()
    X = np.column_stack([np.ones(len(numbers)), numbers, children == "two"])
    order = np.random.default_rng(0).permutation(len(X))
    train, test = X[order[: len(X) // 2]], X[order[len(X) // 2 :]]
    # Pence are whole numbers, as every rival wants them.
    problem = {
        "X": train, "totals": np.round(test.sum(axis=0), 2),
        "names": np.append(names, "two"),
    }  # fmt: skip

    def gaps(found):
        if "rows" in found:
            new = np.column_stack([np.ones(len(found["rows"])), found["rows"]])
            return new.sum(axis=0) - problem["totals"]
        return found["weights"] @ train - problem["totals"]

    ways = {"sample(totals=...)": (None, "sample")} | WEIGHTS
    job = "760 new budgets, sums of held-out rows"
    return [
        line(job, name, w, problem, gaps, held=test[:, 1:]) for name, w in ways.items()
    ]


def run(quick):
    """All jobs."""
    rows = of_households(500 if quick else 2000, many=False)
    if not quick:
        rows += of_households(5000, many=True)
    rows += of_tables((10, 8, 6), [(0, 1), (2,)], 5000)
    rows += of_tables((10, 8, 6), list(combinations(range(3), 2)), 5000)
    rows += of_tables((4,) * 5, list(combinations(range(5), 2)), 5000)
    return rows + of_budgets()


if __name__ == "__main__":
    main(__doc__, run, "rivals-sets")
