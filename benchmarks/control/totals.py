"""Random totals over sets of new rows: all that can be met are, others are refused.

Every problem is one call of ``PNLAugmenter.sample`` on a table of numbers, whole
numbers, decimals and categories with equations of its own. Totals that can be met are
those of rows that were drawn without them, after a step of weights: there is a set of
rows that has them. Whether totals cannot be met follows from the ranges, the numbers of
rows, or an equation.
"""

import warnings
from collections import Counter

import numpy as np
import pandas as pd

from sklearn_pnl import ColumnConstraint, PNLAugmenter, column_total

from ..speed.scores import score
from .script import main

TOL = 1e-9
NUMBERS = ["wage", "rent", "net", "adults", "kids", "persons", "price", "score"]
WHOLE = {"adults", "kids", "persons"}
CATEGORIES = ["region", "sex", "tenure"]


def table(seed, n=200):
    """Households: money that adds up, persons that add up, cents, categories."""
    rng = np.random.default_rng(seed)
    tilt = rng.dirichlet([5, 3, 2])
    region = rng.choice(["n", "s", "w"], n, p=tilt)
    adults, kids = rng.integers(1, 4, n), rng.poisson(0.8, n)
    wage = rng.lognormal(7.5, 0.5, n) * adults * (1 + 0.2 * (region == "n"))
    rent = wage * rng.uniform(0.1, 0.4, n)
    return pd.DataFrame(
        {
            "region": region,
            "sex": rng.choice(["f", "m"], n),
            "tenure": rng.choice(["own", "rent", "free", "other"], n),
            "wage": wage,
            "rent": rent,
            "net": wage - rent,
            "adults": adults,
            "kids": kids,
            "persons": adults + kids,
            "price": np.round(rng.gamma(3, 10, n), 2),
            "score": rng.normal(size=n).astype(np.float32),
        }
    )


def planted(rng, X, augmenter, n):
    """Totals and constraints of rows that some set of rows has, and their kinds."""
    asked = row_constraints(rng, X) if rng.random() < 0.3 else None
    some = X.sample(n, replace=True, random_state=int(rng.integers(2**31)),
                    weights=np.exp(rng.normal(scale=0.3) * _z(X["wage"])))  # fmt: skip
    rows = augmenter.sample(n, int(rng.integers(2**31)), constraints=asked)
    rows[CATEGORIES] = some[CATEGORIES].to_numpy()
    totals, kinds = [], {"constraints of rows"} if asked is not None else set()
    for name in map(str, rng.choice(NUMBERS, rng.integers(0, 4), replace=False)):
        value, kind = rows[name].astype(float).sum(), rng.integers(4)
        if kind == 0:
            totals.append(column_total(name, value / n, mean=True))
            kinds.add("mean")
        elif kind == 1:
            low = value - 0.02 * abs(value) * rng.random()
            totals.append(column_total(name, lower=low))
            kinds.add("interval")
        else:
            totals.append({name: value})
            kinds.add("sum of whole numbers" if name in WHOLE else "sum")
    if rng.random() < 0.3:
        a, b = map(str, rng.choice(NUMBERS, 2, replace=False))
        value = 2 * rows[a].astype(float).sum() - rows[b].astype(float).sum()
        totals.append(column_total({a: 2, b: -1}, value))
        kinds.add("sum of two columns")
    for keys in _keys(rng):
        held = rows[list(keys)].value_counts().to_dict()
        held = {k if len(keys) > 1 else k[0]: v for k, v in held.items()}
        totals.append({keys if len(keys) > 1 else keys[0]: held})
        kinds.add("counts" if len(keys) == 1 else "crossed counts")
    if not totals:
        totals, kinds = [{"wage": rows["wage"].sum()}], kinds | {"sum"}
    return kinds | ({"several"} if len(totals) > 1 else set()), totals, asked


def _z(column):
    return (column - column.mean()) / column.std()


def _keys(rng):
    """Columns that are counted: none, one, or two that are crossed; at times more."""
    kind = rng.integers(5)
    if kind == 0:
        return []
    if kind == 1:
        return [(str(rng.choice([*CATEGORIES, "adults"])),)]
    if kind == 2:
        return [("region", "sex")]
    if kind == 3:
        return [("region",), ("sex",)]
    return [("region", "sex"), ("sex", "tenure")]


def row_constraints(rng, X):
    """An interval or two about each row."""
    asked = [ColumnConstraint("rent", upper=float(X["rent"].quantile(0.95)))]
    if rng.random() < 0.5:
        asked.append(ColumnConstraint({"rent": 1, "wage": -0.5}, upper=0))
    return asked


def infeasible(rng, X, n):
    """Totals that no set of rows has, and why."""
    kind = rng.choice(["too high", "equation", "counts", "level", "half a row", "half"])
    reach = X["wage"].max() + 0.1 * np.ptp(X["wage"])
    if kind == "too high":
        return kind, {"wage": n * reach * rng.uniform(1.01, 3)}, "the sum of 'wage'"
    if kind == "equation":
        wage, rent = n * X["wage"].mean(), n * X["rent"].mean()
        net = (wage - rent) * rng.uniform(1.001, 1.2)
        return kind, {"wage": wage, "rent": rent, "net": net}, "reaches"
    if kind == "counts":
        counts = {"n": n // 2, "s": n // 2, "w": 1 + int(rng.integers(n // 4))}
        return kind, {"region": counts}, "the number of rows"
    if kind == "level":
        return kind, {"region": {"east": 1 + int(rng.integers(n))}}, "region='east'"
    if kind == "half a row":
        return kind, {"sex": {"f": n // 2 + 0.5}}, "the count of sex='f'"
    persons = round(n * X["persons"].mean()) + 0.5
    return kind, {"persons": persons}, "the sum of 'persons'"


def missed_totals(rows, totals):
    """Worst miss of a sum, as a share of its terms; worst miss of a count."""
    worst, counts = 0.0, 0
    for total in totals:
        if not isinstance(total, dict):
            of = total.of if isinstance(total.of, dict) else {total.of: 1.0}
            terms = sum(w * rows[name].astype(float) for name, w in of.items())
            value = terms.mean() if total.mean else terms.sum()
            size = sum(abs(w) * rows[k].astype(float).abs() for k, w in of.items())
            size = size.mean() if total.mean else size.sum()
            gap = max(total.lower - value, value - total.upper, 0.0)
            worst = max(worst, gap / size)
            continue
        for key, asked in total.items():
            if isinstance(asked, dict):
                held = rows[list(key) if isinstance(key, tuple) else [key]]
                held = held.value_counts().to_dict()
                for level, count in asked.items():
                    level = level if isinstance(level, tuple) else (level,)
                    counts = max(counts, abs(held.get(level, 0) - count))
            elif key in WHOLE:
                counts = max(counts, abs(int(rows[key].sum()) - asked))
            else:
                terms = rows[key].astype(float)
                worst = max(worst, abs(terms.sum() - asked) / terms.abs().sum())
    return worst, counts


def missed_rows(rows, X, asked):
    """Worst miss of an equation or constraint of a row, as a share of the range."""
    gaps = [
        (rows["wage"] - rows["rent"] - rows["net"]).abs().max() / np.ptp(X["wage"]),
        (rows["persons"] - rows["adults"] - rows["kids"]).abs().max(),
    ]
    for one in asked or []:
        value = sum(w * rows[name] for name, w in one.coefficients.items())
        size = max(abs(w) * np.ptp(X[name]) for name, w in one.coefficients.items())
        gaps.append(max(0.0, float((value - one.upper).max())) / size)
    return max(gaps)


def meet(seeds, per_table):
    """Counts by kind of what was asked, and the worst misses."""
    asked, met, worst = Counter(), Counter(), np.zeros(3)
    for seed in seeds:
        X, rng = table(seed), np.random.default_rng([seed, 2])
        augmenter = PNLAugmenter(categorical_features="auto").fit(X)
        for k in range(per_table):
            n = int(rng.choice([30, 100, 300, 1000], p=[0.3, 0.4, 0.2, 0.1]))
            kinds, totals, constraints = planted(rng, X, augmenter, n)
            asked.update(kinds | {"all"})
            try:
                rows = augmenter.sample(n, k, totals=totals, constraints=constraints)
            except (ValueError, UserWarning) as error:
                print(
                    f"refused, table {seed}, {k}, {sorted(kinds)}: {error}", flush=True
                )
                continue
            found = *missed_totals(rows, totals), missed_rows(rows, X, constraints)
            worst = np.maximum(worst, found)
            if max(found) <= TOL:
                met.update(kinds | {"all"})
            else:
                print(
                    f"missed, table {seed}, {k}, {sorted(kinds)}: {found}", flush=True
                )
    return asked, met, worst


def refuse(seeds, per_table):
    """Counts of problems that cannot be met: asked, refused by name, silent."""
    asked, named, silent = Counter(), Counter(), 0
    for seed in seeds:
        X, rng = table(1000 + seed), np.random.default_rng([seed, 3])
        augmenter = PNLAugmenter(categorical_features="auto").fit(X)
        for k in range(per_table):
            kind, totals, words = infeasible(rng, X, 100)
            asked.update([kind, "all"])
            try:
                augmenter.sample(100, k, totals=totals)
                silent += 1
            except ValueError as error:
                if words in str(error):
                    named.update([kind, "all"])
                else:
                    print(f"not named, table {seed}, {kind}: {error}", flush=True)
    return asked, named, silent


def run(quick):
    """All problems."""
    warnings.simplefilter("error")
    n_tables, per_table = (4, 15) if quick else (40, 25)
    found = meet(range(n_tables), per_table)
    return scores(found, refuse(range(n_tables), 3 if quick else 5))


def scores(found, refused):
    """Lines of the table."""
    asked, met, worst = found
    rows = [
        score(f"can be met: {kind}", "problems met / asked", met[kind] / n,
              at_least=1, note=f"{met[kind]} of {n}")
        for kind, n in sorted(asked.items())
    ]  # fmt: skip
    whats = ["worst miss of a sum, share of its terms",
             "worst miss of a count or a sum of whole numbers",
             "worst violation in a row"]  # fmt: skip
    rows += [
        score("can be met: all", what, value, at_most=TOL)
        for what, value in zip(whats, worst, strict=True)
    ]
    asked, named, silent = refused
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
    main(__doc__, run, "totals")
