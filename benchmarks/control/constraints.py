"""Random constraints on new rows: all that can be met are, others are refused by name.

Every problem is one call of ``PNLAugmenter.sample`` on a table with equations of its
own. Problems that can be met are built around a mixture of training rows; whether one
cannot be met is found by a linear programme that shares nothing with the package.
"""

import warnings
from collections import Counter

import numpy as np
from scipy.optimize import LinearConstraint, linprog

from sklearn_pnl import ColumnConstraint, PNLAugmenter

from ..speed.scores import score
from .script import main
from .structures import STRUCTURES, structured, violation

TOL = 1e-9
# Categories are no numbers: any constraint on them is one of whole numbers.
TABLES = [name for name in STRUCTURES if name != "one-hot groups"]


def random_form(rng, X):
    """Coefficients of one to four features, of about the same size after ranges."""
    a = np.zeros(X.shape[1])
    some = rng.choice(len(a), rng.integers(1, 5), replace=False)
    a[some] = rng.choice([-1, 1, 1, 2], size=len(some))
    if rng.random() < 0.5:
        a[some] /= np.ptp(X, axis=0)[some]
    return a


def feasible(rng, X, n):
    """One to three constraints, equal or intervals, for all rows or a row each.

    All hold at mixtures of two training rows, which keep every equation.
    """
    first, second = X[rng.integers(len(X), size=(2, n))]
    rows = first + rng.uniform(size=(n, 1)) * (second - first)
    kinds, constraints, each = set(), [], rng.random() < 0.5
    for _ in range(rng.integers(1, 4)):
        a, interval = random_form(rng, X), rng.random() < 0.5
        values = rows @ a if each else rows[0] @ a
        width = np.ptp(X @ a) * rng.uniform(0.01, 0.3, size=2) * interval
        kinds.add("interval" if interval else "equality")
        constraints.append((a, values - width[0], values + width[1]))
    kinds |= {"a row each"} if each else set()
    return kinds | ({"several"} if len(constraints) > 1 else set()), constraints


def infeasible(rng, X, a, b, low, high):
    """Constraints that no row in the ranges meets with the equations."""
    while True:
        form = random_form(rng, X)
        reach = [
            linprog(s * form, A_eq=a, b_eq=b, bounds=np.column_stack([low, high]))
            for s in (1, -1)
        ]
        least, most = reach[0].fun, -reach[1].fun
        width = max(most - least, 1e-12)
        kind = rng.choice(["too low", "too high", "two that clash", "an empty corner"])
        if kind == "too low":
            return kind, [(form, -np.inf, least - rng.uniform(0.001, 1) * width)]
        if kind == "too high":
            return kind, [(form, most + rng.uniform(0.001, 1) * width, np.inf)]
        middle = least + rng.uniform(0.3, 0.7) * width
        if kind == "two that clash":
            gap = rng.uniform(0.001, 0.2) * width
            return kind, [(form, middle + gap, np.inf), (2 * form, -np.inf, 2 * middle)]
        other = random_form(rng, X)
        found = linprog(
            other, A_eq=np.vstack([a, form]), b_eq=np.append(b, middle),
            bounds=np.column_stack([low, high]),
        )  # fmt: skip
        if found.status == 0:
            below = found.fun - rng.uniform(0.001, 0.5) * np.ptp(X @ other)
            return kind, [(form, middle, middle), (other, -np.inf, below)]


def asked_for(constraints):
    """In the forms that users write."""
    return [
        ColumnConstraint(
            {int(j): a[j] for j in np.flatnonzero(a)}, lower=lower, upper=upper
        )
        if np.ndim(lower)
        else LinearConstraint(a[None], lower, upper)
        for a, lower, upper in constraints
    ]


def worst(rows, X, constraints):
    """Largest distance from an interval, as a share of its largest term's range."""
    ranges, missed = np.ptp(X, axis=0), 0.0
    for a, lower, upper in constraints:
        values = rows @ a
        gap = np.maximum(lower - values, values - upper).max()
        missed = max(missed, gap / (np.abs(a) * ranges).max())
    return missed


def meet(n_tables, per_table, n_rows):
    """Counts by kind of what was asked, and the worst violations."""
    asked, met, largest, kept = Counter(), Counter(), 0.0, 0.0
    for seed in range(n_tables):
        X, a, b = structured(TABLES[seed % len(TABLES)], seed, 200)
        augmenter, rng = PNLAugmenter().fit(X), np.random.default_rng(seed)
        for _ in range(per_table):
            kinds, constraints = feasible(rng, X, n_rows)
            asked.update(kinds | {"all"})
            try:
                rows = augmenter.sample(
                    n_rows, random_state=seed, constraints=asked_for(constraints)
                )
            except ValueError as error:
                print(f"refused, table {seed}, {sorted(kinds)}: {error}", flush=True)
                continue
            missed = worst(rows, X, constraints)
            broken = violation(rows, X, a, b)
            largest, kept = max(largest, missed), max(kept, broken)
            if max(missed, broken) <= TOL:
                met.update(kinds | {"all"})
    return asked, met, largest, kept


def refuse(n_tables, per_table, n_rows):
    """Counts of problems that cannot be met: asked, refused by name, silent."""
    asked, named, silent = Counter(), Counter(), 0
    for seed in range(n_tables):
        X, a, b = structured(TABLES[seed % len(TABLES)], 1000 + seed, 200)
        augmenter, rng = PNLAugmenter().fit(X), np.random.default_rng([seed, 1])
        room = 0.1 * np.ptp(X, axis=0)
        low, high = X.min(axis=0) - room, X.max(axis=0) + room
        for _ in range(per_table):
            kind, constraints = infeasible(rng, X, a, b, low, high)
            asked.update([kind, "all"])
            try:
                augmenter.sample(
                    n_rows, random_state=seed, constraints=asked_for(constraints)
                )
                silent += 1
            except ValueError as error:
                text = str(error)
                if " asks for " in text and " reaches " in text:
                    named.update([kind, "all"])
                else:
                    print(f"not named, table {seed}, {kind}: {text}", flush=True)
    return asked, named, silent


def run(quick):
    """All problems."""
    warnings.simplefilter("error")
    n_tables, per_table = (4, 10) if quick else (40, 25)
    asked, met, largest, kept = meet(n_tables, per_table, 20)
    rows = [
        score(f"can be met: {kind}", "problems met / asked", met[kind] / n,
              at_least=1, note=f"{met[kind]} of {n}")
        for kind, n in sorted(asked.items())
    ]  # fmt: skip
    rows += [
        score(
            "can be met: all", "worst violation of a constraint", largest, at_most=TOL
        ),
        score("can be met: all", "worst violation of an equation", kept, at_most=TOL),
    ]
    asked, named, silent = refuse(n_tables, 1 if quick else 5, 20)
    rows += [
        score(f"cannot be met: {kind}", "refused by name / asked", named[kind] / n,
              at_least=1, note=f"{named[kind]} of {n}")
        for kind, n in sorted(asked.items())
    ]  # fmt: skip
    return [
        *rows,
        score("cannot be met: all", "answered as if met", silent, at_most=0),
    ]


if __name__ == "__main__":
    main(__doc__, run, "constraints")
