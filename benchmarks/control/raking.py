"""``rake`` beside PyPI's ipfn, both to the same residual and in one run.

ipfn stops on the relative error of single margin cells; what it reaches, as a share of
the mass, is then the tolerance of ours. Both have one core: ipfn uses no more.
"""

from contextlib import redirect_stdout
from io import StringIO
from itertools import combinations
from time import perf_counter

import numpy as np
from ipfn.ipfn import ipfn

from sklearn_pnl.geometry import rake

from ..speed.scores import score
from ..speed.timing import seconds
from .script import main

PRECISION = 1e-6
REPEATS = 3


def margins_of(tables, sets, n_modes):
    """Margins by mode set, of tables with one leading axis."""
    return {
        modes: tables.sum(axis=tuple(k + 1 for k in range(n_modes) if k not in modes))
        for modes in sets
    }


def many_tables(rng, n):
    """Tables of 10 x 10 x 10 with all three pair margins of others."""
    start, target = rng.gamma(1.0, size=(2, n, 10, 10, 10))
    return start, margins_of(target, list(combinations(range(3), 2)), 3)


def one_matrix(rng, length, zeros=0.0, spread=None):
    """A square table and the margins of another; ``spread`` is that of the logs."""
    shape = (2, 1, length, length)
    if spread is None:
        start, target = rng.gamma(1.0, size=shape)
    else:
        start, target = np.exp(spread * rng.standard_normal(shape))
    empty = rng.random(shape[1:]) < zeros
    start[empty] = target[empty] = 0
    return start, margins_of(target, [(0,), (1,)], 2)


def with_ipfn(tables, margins):
    """Each table for itself: there is no other way."""
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
    """``max |margin - wanted|`` as a share of the mass, the worst table's."""
    found = margins_of(raked, margins, raked.ndim - 1)
    return max(
        (np.abs(found[m] - wanted).reshape(len(raked), -1).max(axis=1)
         / wanted.reshape(len(raked), -1).sum(axis=1)).max()
        for m, wanted in margins.items()
    )  # fmt: skip


def compare(job, tables, margins, wanted):
    """Rows of the report for one job."""
    start = perf_counter()
    theirs = with_ipfn(tables, margins)
    slow = perf_counter() - start
    tol = residual_of(theirs, margins)
    found = rake(tables, margins, tol=tol)
    fast = np.median([seconds(lambda: rake(tables, margins, tol=tol))
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


def run(quick):
    """All jobs."""
    rng = np.random.default_rng(0)
    n, length = (50, 500) if quick else (1000, 3000)
    rows = compare(f"{n} tables 10 x 10 x 10, all pairs", *many_tables(rng, n), 100)
    job = f"one table {length} x {length}"
    rows += compare(job, *one_matrix(rng, length), 10)
    rows += compare(f"{job}, half of it empty, logs spread by 2",
                    *one_matrix(rng, length, 0.5, 2.0), 10)  # fmt: skip
    return rows


if __name__ == "__main__":
    main(__doc__, run, "raking")
