"""Weights on counts of categories; tables on margins; forecasts on their sums.

A problem of weights has a column of labels for each name in ``columns``, and for the
k-th of these ``levels_k`` and ``counts_k``; an answer has ``weights``. One of tables
has ``seed``, ``rows`` and ``columns``; an answer ``table``. One of forecasts has the
matrix ``S`` of sums and the incoherent forecasts ``y``; an answer the coherent ones.
"""

import numpy as np

PACKAGES = {
    name: (name,) for name in ("svy", "samplics", "balance", "weightipy", "ipfn")
} | {
    "edikit": ("edikit",),
    "aequilibrae": ("aequilibrae",),
    "mint": ("hierarchicalforecast",),
    "mint_nonnegative": ("hierarchicalforecast",),
}
TOL = 1e-9


# --- weights --------------------------------------------------------------------


def asked_of(problem):
    """Columns of labels, and counts by level of each."""
    names = [str(c) for c in problem["columns"]]
    totals = {}
    for k, name in enumerate(names):
        levels, counts = problem[f"levels_{k}"], problem[f"counts_{k}"]
        totals[name] = dict(zip(levels.tolist(), counts.tolist(), strict=True))
    return {name: problem[name].astype(object) for name in names}, totals


def calibrate(problem):
    import pandas as pd

    from sklearn_pnl import calibrate

    columns, totals = asked_of(problem)
    frame = pd.DataFrame(columns)
    yield
    yield {"weights": calibrate(frame, totals)}


def weightipy(problem):
    import pandas as pd
    import weightipy

    columns, totals = asked_of(problem)
    frame = pd.DataFrame(columns)
    yield
    shares = {
        name: {level: 100 * t / sum(counts.values()) for level, t in counts.items()}
        for name, counts in totals.items()
    }
    scheme = weightipy.scheme_from_dict(shares, rim_params={"convcrit": 1e-12})
    weights = weightipy.weight(frame, scheme).to_numpy()
    # It keeps the number of rows.
    yield {"weights": weights * sum(counts_of(totals)) / len(weights)}


def counts_of(totals):
    """Counts of the first column."""
    return next(iter(totals.values())).values()


def samplics(problem):
    from samplics.weighting import SampleWeight

    columns, totals = asked_of(problem)
    n = len(next(iter(columns.values())))
    yield
    weights = SampleWeight().rake(
        np.ones(n), columns, control=totals, tol=TOL, ctrl_tol=TOL, max_iter=1000
    )
    yield {"weights": np.asarray(weights, float)}


def svy(problem):
    import polars as pl
    import svy

    columns, totals = asked_of(problem)
    frame = pl.DataFrame({k: v.tolist() for k, v in columns.items()})
    frame = frame.with_columns(pl.lit(1.0).alias("design"))
    yield
    sample = svy.Sample(frame, svy.Design(wgt="design"))
    raked = sample.weighting.rake(controls=totals, tol=TOL, max_iter=1000)
    yield {"weights": raked.data["rk_wgt"].to_numpy()}


def balance(problem):
    """Its target is a second sample, which has the counts here by copies."""
    import pandas as pd
    from balance.weighting_methods.rake import rake

    columns, totals = asked_of(problem)
    frame = pd.DataFrame(columns)
    n = round(sum(counts_of(totals)))
    target = {}
    for name, counts in totals.items():
        copies = np.round(list(counts.values())).astype(int)
        target[name] = np.resize(np.repeat(list(counts), copies), n)
    ones, target = pd.Series(np.ones(len(frame))), pd.DataFrame(target)
    yield
    found = rake(
        frame, ones, target, pd.Series(np.ones(n)), transformations=None,
        convergence_rate=1e-12, max_iteration=1000,
    )  # fmt: skip
    yield {"weights": found["weight"].to_numpy()}


# --- tables ---------------------------------------------------------------------


def rake(problem):
    from scipy.sparse import coo_array

    from sklearn_pnl import rake

    yield
    margins = {0: problem["rows"], 1: problem["columns"]}
    yield {"table": rake(coo_array(problem["seed"]), margins, tol=TOL).tables.toarray()}


def ipfn(problem):
    from ipfn.ipfn import ipfn

    yield
    solver = ipfn(
        problem["seed"].copy(), [problem["rows"], problem["columns"]], [[0], [1]],
        convergence_rate=TOL, rate_tolerance=0, max_iteration=1000, verbose=1,
    )  # fmt: skip
    table, converged = solver.iteration()[:2]
    if not converged:
        raise ValueError("not converged in 1000 iterations")
    yield {"table": table}


def edikit(problem):
    from edikit.model.balancing import gras

    seed = problem["seed"]
    names = [f"i{k}" for k in range(len(seed))]
    cells = {
        (a, b): seed[i, j] for i, a in enumerate(names) for j, b in enumerate(names)
    }
    sums = [dict(zip(names, problem[k], strict=True)) for k in ("rows", "columns")]
    yield
    found = gras(cells, *sums, tol=TOL).matrix
    yield {"table": np.array([[found.get((a, b), 0.0) for b in names] for a in names])}


def aequilibrae(problem):
    from aequilibrae.distribution.ipf_core import ipf_core

    yield
    table = problem["seed"].copy()
    ipf_core(
        table, problem["rows"].copy(), problem["columns"].copy(), max_iterations=1000,
        tolerance=TOL, cores=1,
    )  # fmt: skip
    yield {"table": np.asarray(table)}


# --- forecasts ------------------------------------------------------------------


def adjust(problem):
    """Ours: each time is a row, its sums are equations; least relative moves."""
    from sklearn_pnl import ColumnConstraint, adjust

    yield
    S, y = problem["S"], problem["y"]
    first = len(S) - S.shape[1]
    sums = [
        ColumnConstraint({i: 1.0} | {first + j: -1.0 for j in np.flatnonzero(S[i])},
                         equal=0.0)
        for i in range(first)
    ]  # fmt: skip
    yield {"y": adjust(np.maximum(y.T, 0.0), sums, invariants=None).T}


def linear_projection(problem):
    """Ours: the least KL divergence from the forecasts, all times at once."""
    from sklearn_pnl.geometry import linear_projection

    yield
    S, y = problem["S"], problem["y"]
    first = len(S) - S.shape[1]
    A = np.hstack([np.eye(first), -S[:first]])
    found = linear_projection(np.maximum(y.T, 1e-9), A, 0.0, 0.0)
    if any(found.reasons):
        raise ValueError(str(found.reasons))
    yield {"y": found.measure.T}


def with_mint(problem, nonnegative):
    """Least squares, each weighed by its number of series."""
    from hierarchicalforecast.methods import MinTrace

    yield
    method = MinTrace("wls_struct", nonnegative=nonnegative)
    found = method.fit_predict(S=problem["S"], y_hat=problem["y"])
    yield {"y": found["mean"]}


def mint(problem):
    yield from with_mint(problem, False)


def mint_nonnegative(problem):
    yield from with_mint(problem, True)
