"""Compare ``rake`` with ipfn and edikit of PyPI, in one run and to the same residual.

ipfn stops at a relative error of single marginal cells. The residual that it reaches,
as a share of the mass, is the tolerance of ``rake``. Both functions use one core, since
ipfn uses no more.
"""

from contextlib import redirect_stdout
from io import StringIO
from itertools import combinations
from time import perf_counter

import numpy as np
import pandas as pd
from ipfn.ipfn import ipfn
from threadpoolctl import threadpool_limits

from sklearn_pnl.control import rake
from sklearn_pnl.geometry import rake_array

from ..speed.scores import score
from ..speed.timing import seconds
from ..tables import main

PRECISION = 1e-6
REPEATS = 3


def margins_of(tables, sets, n_modes):
    """Compute margins by mode set, of tables with one leading axis."""
    return {
        modes: tables.sum(axis=tuple(k + 1 for k in range(n_modes) if k not in modes))
        for modes in sets
    }


def many_tables(rng, n):
    """Make tables of 10 x 10 x 10, and all three pair margins of different tables."""
    start, target = rng.gamma(1.0, size=(2, n, 10, 10, 10))
    return start, margins_of(target, list(combinations(range(3), 2)), 3)


def one_matrix(rng, length, zeros=0.0, spread=None):
    """Make a square table, and the margins of a table whose logs have a ``spread``."""
    shape = (2, 1, length, length)
    if spread is None:
        start, target = rng.gamma(1.0, size=shape)
    else:
        start, target = np.exp(spread * rng.standard_normal(shape))
    empty = rng.random(shape[1:]) < zeros
    start[empty] = target[empty] = 0
    return start, margins_of(target, [(0,), (1,)], 2)


def with_ipfn(tables, margins):
    """Rake one table after the other, because ipfn has no batches."""
    raked = []
    with redirect_stdout(StringIO()):
        for row, table in enumerate(tables):
            solver = ipfn(
                table.copy(),
                [margin[row] for margin in margins.values()],
                [list(modes) for modes in margins],
                convergence_rate=PRECISION,
                rate_tolerance=0,
                max_iteration=10_000,
            )
            raked.append(solver.iteration())
    return np.array(raked)


def residual_of(raked, margins):
    """Return ``max |margin - wanted|`` of the worst table, as a share of the mass."""
    found = margins_of(raked, margins, raked.ndim - 1)
    return max(
        (np.abs(found[m] - wanted).reshape(len(raked), -1).max(axis=1)
         / wanted.reshape(len(raked), -1).sum(axis=1)).max()
        for m, wanted in margins.items()
    )  # fmt: skip


def compare(job, tables, margins, wanted):
    """Return the rows of the report for one job."""
    start = perf_counter()
    theirs = with_ipfn(tables, margins)
    slow = perf_counter() - start
    tol = residual_of(theirs, margins)
    found = rake_array(tables, margins, tol=tol)
    fast = np.median([seconds(lambda: rake_array(tables, margins, tol=tol))
                      for _ in range(REPEATS)])  # fmt: skip
    note = (
        f"{slow:.3g} s against {fast:.3g} s; residuals {tol:.1e} and "
        f"{found.residual.max():.1e}; {found.n_iter.max()} iterations at most"
    )
    apart = np.abs(found.tables - theirs).max() / theirs.max()
    return [
        score(job, "times as fast as ipfn", slow / fast, at_least=wanted, note=note),
        score(job, "largest difference of a cell", apart, note="share of the largest"),
    ]


def labelled(rng, n_levels, wanted):
    """Make a frame in long form with three pair margins."""
    names = list("abc")
    cells = pd.MultiIndex.from_product([range(n_levels)] * 3, names=names)
    start, target = (pd.Series(x, cells) for x in rng.gamma(1.0, size=(2, len(cells))))
    pairs = list(combinations(names, 2))
    margins = {pair: target.groupby(list(pair)).sum() for pair in pairs}
    frame = start.rename("total").reset_index()

    def theirs():
        with redirect_stdout(StringIO()):
            return ipfn(
                frame.copy(), list(margins.values()), list(map(list, margins)),
                convergence_rate=PRECISION, rate_tolerance=0, max_iteration=10_000,
            ).iteration()  # fmt: skip

    def ours():
        table = frame.set_index(names)["total"]
        return rake(table, margins, tol=PRECISION).tables.reset_index()

    slow, fast = seconds(theirs), min(seconds(ours) for _ in range(REPEATS))
    gaps = [
        max((found.groupby(list(p))["total"].sum() - m).abs().max()
            for p, m in margins.items()) / target.sum()
        for found in (theirs(), ours())
    ]  # fmt: skip
    note = f"{slow:.3g} s against {fast:.3g} s; residuals {gaps[0]:.1e}, {gaps[1]:.1e}"
    job = f"long frame, {n_levels}^3 cells, all pairs"
    return [
        score(job, "times as fast as ipfn", slow / fast, at_least=wanted, note=note)
    ]


def signed(rng, length):
    """Rake a table with a fifth of its cells negative, by GRAS."""
    sign = np.where(rng.random((length, length)) < 0.2, -1, 1)
    start, target = sign * rng.gamma(1.0, size=(2, length, length))
    sums = target.sum(axis=1), target.sum(axis=0)
    job = f"{length} x {length}, a fifth of the cells negative"
    names = [f"i{k}" for k in range(length)]
    cells = pd.DataFrame(start, names, names).rename_axis("a").rename_axis("b", axis=1)
    targets = [dict(zip(names, s, strict=True)) for s in sums]

    def ours():
        return rake(cells.stack(), dict(zip("ab", targets, strict=True)))

    fast = min(seconds(ours) for _ in range(REPEATS))
    found = ours().tables.to_numpy().reshape(start.shape)
    gap = max(np.abs(found.sum(axis=1 - k) - sums[k]).max() for k in (0, 1))
    rows = [score(job, "seconds", fast, note=f"largest gap {gap:.1e}")]
    try:
        from edikit.model.balancing import gras
    except ImportError as error:
        return [*rows, score(job, "edikit", np.nan, note=str(error))]
    seed = {(a, b): start[i, j] for i, a in enumerate(names)
            for j, b in enumerate(names)}  # fmt: skip
    results = []
    slow = seconds(lambda: results.append(gras(seed, *targets, tol=1e-9)))
    theirs = np.array([[results[0].matrix[a, b] for b in names] for a in names])
    note = f"its largest gap {max(results[0].max_row_gap, results[0].max_col_gap):.1e}"
    return [
        *rows,
        score(job, "times as fast as edikit", slow / fast, note=note),
        score(job, "largest difference of a cell", np.abs(theirs - found).max()),
    ]


def run(quick):
    """Run all jobs."""
    rng = np.random.default_rng(0)
    n, length = (50, 500) if quick else (1000, 3000)
    rows = compare(f"{n} tables 10 x 10 x 10, all pairs", *many_tables(rng, n), 100)
    job = f"one table {length} x {length}"
    rows += compare(job, *one_matrix(rng, length), 10)
    rows += compare(f"{job}, half of it empty, logs spread by 2",
                    *one_matrix(rng, length, 0.5, 2.0), 10)  # fmt: skip
    rows += labelled(rng, 6 if quick else 10, 10)
    rows += signed(rng, 40 if quick else 150)
    return rows


if __name__ == "__main__":
    with threadpool_limits(1, "blas"):
        main(__doc__, run, "control-raking")
