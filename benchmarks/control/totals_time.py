"""How long rows take to get their totals: tables of 100 to 100,000 rows.

Whole numbers with a quotient (items, boxes of three, staff), money in cents with a tax
and a net income, and floats, each with sums that are a few percent away, within an
interval, and out of reach. Time must grow no faster than rows.
"""

from dataclasses import replace
from time import perf_counter

import numpy as np

from sklearn_pnl.constraints.linear import LinearConstraints
from sklearn_pnl.constraints.structure import Structure
from sklearn_pnl.constraints.sum_projection import Sums, project_to_totals
from sklearn_pnl.frames import TableReader, read_table

from ..speed.scores import score
from .script import main

LIMIT = 2.0


def whole_numbers(rng, n):
    """Rows of items, boxes of three that are full, and staff."""
    items = np.floor(rng.lognormal(6, 1, n))
    rows = np.column_stack([items, items // 3, 1 + rng.poisson(2, n)])
    return rows, {"steps": np.ones(3), "orders": [[1, 0]]}


def cents(rng, n):
    """Rows of income, a fifth of tax, and net income, in cents."""
    income = rng.integers(100_000, 600_000, n)
    tax = np.rint(0.2 * income)
    rows = np.column_stack([income, tax, income - tax]) / 100
    equalities = np.array([[1.0, -1.0, -1.0]]), np.zeros(1)
    orders = [[1, 0], [2, 0], [1, 2]]
    return rows, {
        "steps": np.full(3, 0.01), "equalities": equalities, "orders": orders
    }  # fmt: skip


def floats(rng, n):
    """Rows of twenty columns, two of which are sums of others."""
    rows = rng.lognormal(1, 1, (n, 20))
    rows[:, 18], rows[:, 19] = rows[:, :4].sum(axis=1), rows[:, 4:9].sum(axis=1)
    a = np.zeros((2, 20))
    a[0, :4], a[1, 4:9], a[[0, 1], [18, 19]] = 1, 1, -1
    return rows, {"equalities": (a, np.zeros(2))}


TABLES = {"whole numbers": whole_numbers, "cents": cents, "floats": floats}


def asked_of(rows):
    """Sums of the last and the first column, by what is asked of them."""
    total, names = rows.sum(axis=0)[[-1, 0]], ("the last", "the first")
    a = np.eye(rows.shape[1])[[-1, 0]]
    near = np.round(total * [1.03, 1.02])

    def sums(which, lower, upper):
        ends = lower[which], upper[which]
        return Sums(a[which], *ends, (), labels=names[which])

    return {
        "one sum": sums(slice(0, 1), near, near),
        "two sums": sums(slice(0, 2), near, near),
        "an interval": sums(slice(1, 2), 1.01 * total, 1.03 * total),
        "out of reach": sums(slice(0, 1), 99 * total, 99 * total),
    }


def structure_of(rows, equalities=None, orders=(), steps=0.0):
    """What rows are to keep, as the projection takes it."""
    d, reader = rows.shape[1], TableReader(None)
    table, ends = read_table(reader, rows), (rows.min(axis=0), rows.max(axis=0))
    if equalities is not None:
        a, b = equalities
        equalities = LinearConstraints(a, b, b, table.feature_names)
    keeps = Structure.plain(
        table, rows, steps=np.broadcast_to(steps, d), low=ends[0], high=ends[1],
        equalities=equalities,
    )  # fmt: skip
    return replace(keeps, orders=np.reshape(orders, (-1, 2)).astype(int))


def timed(rows, sums, keeps):
    """Seconds of one call, and how it ended."""
    start = perf_counter()
    try:
        project_to_totals(rows, sums, structure_of(rows, **keeps))
        end = "met"
    except ValueError:
        end = "refused"
    return perf_counter() - start, end


def run(quick):
    """All tables, sizes and sums."""
    sizes = [100, 1000, 10_000] if quick else [100, 1000, 10_000, 100_000]
    found = []
    for name, make in TABLES.items():
        seconds = {}
        for n in sizes:
            rows, keeps = make(np.random.default_rng(0), n)
            for what, sums in asked_of(rows).items():
                seconds[what, n], end = timed(rows, sums, keeps)
                wanted = {"at_most": LIMIT} if n <= 1000 else {}
                job = f"{n} rows of {name}, {what}"
                found.append(
                    score(job, "seconds", seconds[what, n], note=end, **wanted)
                )
        for what in asked_of(rows):
            ratio = seconds[what, sizes[-1]] / seconds[what, sizes[1]]
            grown = ratio * sizes[1] / sizes[-1]
            job = f"{name}, {what}, {sizes[1]} to {sizes[-1]} rows"
            found.append(score(job, "growth of time / of rows", grown, at_most=1.5))
    return found


if __name__ == "__main__":
    main(__doc__, run, "totals-time")
