"""What users of other packages were stuck at, asked of ``calibrate`` and ``rake``.

Each case stands for an issue of theirs, on numbers of our own: solved to what the doors
promise, or refused with the reason. "worst miss" is of a total, as a share of its
absolute terms, or of a margin, as a share of the table; of whole numbers it counts the
units that are missed.
"""

from functools import partial
from itertools import combinations
from time import perf_counter

import numpy as np
import pandas as pd
from scipy.sparse import coo_array

from sklearn_pnl import calibrate, column_total, rake

from .script import main


def miss(held, asked, size=None):
    """Largest miss, as a share of ``size``, which is what is asked by default."""
    return float(np.max(np.abs(held - asked) / (asked if size is None else size)))


def missed_pairs(found, margins, within=0.0):
    """Largest miss of margins of a Series, beyond their room, as a share of it."""
    return max(
        float(((found.groupby(list(pair)).sum() - asked).abs() - within * asked).max())
        / asked.sum()
        for pair, asked in margins.items()
    )


def bounds(rng, ratios):
    """icarus 10: bounds of the weights within which counts are out of reach, or not."""
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 23), "wage": rng.gamma(2, 900, 23)}
    )
    totals = {"sex": {"f": 140, "m": 90}}
    design = np.full(23, 10.0)
    weights = calibrate(frame, totals, design_weights=design, bounds=ratios)
    held = pd.Series(weights).groupby(frame["sex"]).sum()
    return miss(held, pd.Series(totals["sex"]))


def zero(rng):
    """icarus 18: a column of both signs whose total is to be 0."""
    x, design = rng.normal(size=(2000, 1)), rng.gamma(2.0, size=2000)
    weights = calibrate(x, [0.0], design_weights=design)
    return miss(weights @ x, 0.0, weights @ np.abs(x))


def repeated(rng):
    """icarus 18: the same count asked for twice, and as a sum of others."""
    regions = rng.choice(list("abc"), 2000)
    x = np.column_stack([np.ones(2000), *(regions == level for level in "abc")])
    x = np.column_stack([x, 1.0 * (regions != "a")])
    totals = rng.gamma(4.0, size=2000) @ x
    return miss(calibrate(x, totals) @ x, totals)


def rounded(rng, within=0.0):
    """mipfp 10: margins from one table, each rounded for itself."""
    names = ("age", "sex", "region")
    levels = [range(n) for n in (6, 2, 8)]
    index = pd.MultiIndex.from_product(levels, names=names)
    table = pd.Series(rng.gamma(1.0, size=len(index)) * 40, index)
    margins = {
        pair: table.groupby(list(pair)).sum().round() for pair in combinations(names, 2)
    }
    asked = {
        pair: column_total(pair, m, within=within) if within else m
        for pair, m in margins.items()
    }
    return max(0.0, missed_pairs(rake(table, asked).tables, margins, within))


def whole(rng, size, most=np.inf):
    """humanleague 61: whole numbers in 4^5 cells, which have little room."""
    names = list("abcde")
    index = pd.MultiIndex.from_product([range(4)] * 5, names=names)
    people = pd.Series(np.minimum(rng.poisson(0.7, 4**5), most), index)
    keys = [list(key) for key in combinations(names, size)]
    margins = {
        tuple(key) if size > 1 else key[0]: people.groupby(key).sum() for key in keys
    }
    ones = pd.Series(1.0, index)
    found = rake(ones, margins, upper=most, integer=True).tables
    if found.max() > most or np.any(found != found.round()):
        return np.inf
    return max(
        np.abs(found.groupby(key).sum() - people.groupby(key).sum()).max()
        for key in keys
    )


def triangle(rng, empty=0.0, lost=False):
    """ipfn 22: tables that share columns, with combinations that are not there."""
    index = pd.MultiIndex.from_product(
        [range(10), range(4), range(5)], names=["dma", "size", "age"]
    )
    people = pd.Series(rng.gamma(1.0, size=len(index)), index)
    people = people[rng.random(len(people)) >= empty]
    margins = {
        pair: people.groupby(list(pair)).sum() for pair in combinations(index.names, 2)
    }
    start = pd.Series(1.0, people.index)
    if lost:
        start = start[[cell[::2] != (0, 0) for cell in start.index]]
    return missed_pairs(rake(start, margins).tables, margins)


def zones(rng, unserved=False):
    """AequilibraE 797: trips as a sparse matrix, with zones that nobody leaves."""
    n = 3000
    where = rng.integers(0, n, (2, 60 * n))
    where = where[:, (where >= 5).all(axis=0)]
    trips = coo_array((rng.gamma(1.0, size=where.shape[1]), where), shape=(n, n))
    trips.sum_duplicates()
    other = trips.copy()
    other.data = rng.gamma(1.0, size=len(other.data))
    sums = {0: other.sum(axis=1), 1: other.sum(axis=0)}
    if unserved:
        sums[0][3], sums[0][10] = sums[0][10], 0.0
    found = rake(trips, sums).tables
    return max(
        miss(found.sum(axis=1 - k), asked, asked.sum()) for k, asked in sums.items()
    )


CASES = [
    ("icarus 10", "bounds within reach", partial(bounds, ratios=(0.3, 3.8)), True),
    ("icarus 10", "bounds out of reach", partial(bounds, ratios=(3, 38)), False),
    ("icarus 18", "a total of 0", zero, True),
    ("icarus 18", "totals that are sums of others", repeated, True),
    ("mipfp 10", "margins that were rounded apart", rounded, False),
    ("mipfp 10", "the same, with room", partial(rounded, within=0.1), True),
    ("humanleague 61", "4^5, five margins, at most 3",
     partial(whole, size=1, most=3), True),
    ("humanleague 61", "4^5, all ten pair margins", partial(whole, size=2), True),
    ("humanleague 61", "4^5, all ten pair margins, at most 3",
     partial(whole, size=2, most=3), True),
    ("ipfn 22", "three tables that share columns", triangle, True),
    ("ipfn 22", "a third of the combinations not there",
     partial(triangle, empty=0.3), True),
    ("ipfn 22", "a sum that no cell can have", partial(triangle, lost=True), False),
    ("AequilibraE 797", "3,000 zones, 2% filled, five without trips", zones, True),
    ("AequilibraE 797", "trips asked of a zone without", partial(zones, unserved=True),
     False),
]  # fmt: skip


def replay(case):
    """One line: what came of it, and whether that is right."""
    issue, words, ask, can_be_met = case
    start = perf_counter()
    try:
        worst, says = ask(np.random.default_rng(0)), ""
        found = "solved" if worst <= 1e-8 else "missed"
    except ValueError as error:
        worst, says, found = np.nan, str(error), "refused"
    return {
        "issue": issue,
        "case": words,
        "wanted": "solved" if can_be_met else "refused",
        "found": found,
        "worst miss": worst,
        "seconds": perf_counter() - start,
        "says": says,
    }


def run(quick):
    """All of them; they are quick."""
    return [replay(case) for case in CASES]


if __name__ == "__main__":
    main(__doc__, run, "replays")
