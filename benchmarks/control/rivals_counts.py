"""Weights on counts, tables on margins, forecasts on their sums: rivals beside ours.

"violations" is the share of counts, margins or sums that are missed by more than 1e-6
of themselves, "worst" the largest such miss; for forecasts "negative" is the share of
values below 0 and "error" the root mean square distance from the truth.
"""

import numpy as np

from .beside import ask, row
from .script import main

WEIGHTS = {"calibrate": None} | {
    name: name for name in ("weightipy", "svy", "samplics", "balance")
}
TABLES = {
    "rake": None, "ipfn": "tables", "edikit": "tables", "aequilibrae": "aequilibrae",
}  # fmt: skip
FORECASTS = {
    "adjust": (None, "adjust"),
    "linear_projection": (None, "linear_projection"),
    "MinTrace": ("hierarchicalforecast", "mint"),
    "MinTrace(nonnegative=True)": ("hierarchicalforecast", "mint_nonnegative"),
}
TOL = 1e-6


def missed(found, asked):
    """Share of figures missed, and the largest miss, as shares of the figures."""
    gaps = np.abs(np.ravel(found) - np.ravel(asked))
    gaps = gaps / np.maximum(np.abs(np.ravel(asked)), 1.0)
    return {"violations": (gaps > TOL).mean(), "worst": gaps.max()}


NOTHING = {"violations": np.nan, "worst": np.nan, "negative": np.nan, "error": np.nan}


def of_weights(n, clash):
    """Six columns of five levels, with counts that other weights have, or none."""
    rng = np.random.default_rng(0)
    columns = {
        f"v{k}": rng.choice(list("abcde"), n, p=rng.dirichlet(np.full(5, 4.0)))
        for k in range(6)
    }
    if clash:
        columns["v1"] = np.where(columns["v0"] == "a", "a", columns["v1"])
    weights, problem = rng.gamma(6.0, size=n), {}
    for labels in columns.values():
        weights *= rng.uniform(0.6, 1.6, 5)[np.unique(labels, return_inverse=True)[1]]
    weights *= n / weights.sum()
    problem = {"columns": np.array(list(columns)), **columns}
    for k, labels in enumerate(columns.values()):
        levels, where = np.unique(labels, return_inverse=True)
        counts = np.bincount(where, weights)
        if clash and k < 2:
            # All with v0=a have v1=a: half as many more of these than of those.
            counts[0] = counts[0] * (1.5 if k == 0 else 0.3)
            counts *= n / counts.sum()
        problem |= {f"levels_{k}": levels, f"counts_{k}": counts}
    job = f"{n} rows, 30 counts" + clash * ", two in conflict"
    rows = []
    for name, environment in WEIGHTS.items():
        found = ask(environment, "counts", name, problem)
        measures = dict(NOTHING)
        if found.arrays:
            held, asked = [], []
            for k, labels in enumerate(columns.values()):
                where = np.unique(labels, return_inverse=True)[1]
                held.append(np.bincount(where, found.arrays["weights"]))
                asked.append(problem[f"counts_{k}"])
            measures |= missed(held, asked)
            measures["negative"] = (found.arrays["weights"] < 0).mean()
        rows.append(row(job, name, found, **measures))
    return rows


def of_tables(length, signed, clash=False):
    """A square table, half of it empty, and margins of another; or with signs."""
    rng = np.random.default_rng(0)
    start, other = rng.gamma(1.0, size=(2, length, length))
    empty = rng.random(start.shape) < 0.5
    sign = np.where(rng.random(start.shape) < 0.2 * signed, -1.0, 1.0)
    start, other = (np.where(empty, 0.0, sign * x) for x in (start, other))
    asked = [other.sum(axis=1), other.sum(axis=0)]
    if clash:
        asked[0] = 1.1 * asked[0]
    problem = {"seed": start, "rows": asked[0], "columns": asked[1]}
    job = f"{length} x {length}, half empty"
    job += signed * ", a fifth below 0" + clash * ", margins disagree"
    rows = []
    for name, environment in TABLES.items():
        found = ask(environment, "counts", name, problem)
        measures = dict(NOTHING)
        if found.arrays:
            table = found.arrays["table"]
            sums = np.concatenate([table.sum(axis=1), table.sum(axis=0)])
            measures |= missed(sums, np.concatenate(asked))
            measures["negative"] = (table * sign < 0).mean()
        rows.append(row(job, name, found, **measures))
    return rows


def hierarchy(n_groups, each):
    """Sums: of all, of each group, and the series themselves."""
    groups = np.repeat(np.eye(n_groups), each, axis=1)
    return np.vstack([np.ones(n_groups * each), groups, np.eye(n_groups * each)])


def of_forecasts(n_groups, each, horizon):
    """Small counts with many zeros, and forecasts of every level that do not agree."""
    rng = np.random.default_rng(0)
    S = hierarchy(n_groups, each)
    level = rng.gamma(0.5, 3.0, size=(S.shape[1], 1))
    truth = S @ rng.poisson(level, size=(S.shape[1], horizon))
    mean = S @ np.repeat(level, horizon, axis=1)
    noise = rng.normal(size=mean.shape) * np.sqrt(mean + 0.3)
    problem = {"S": S, "y": mean + noise}
    first = len(S) - S.shape[1]
    job = f"{len(S)} series, {horizon} times"
    rows = []
    for name, (environment, way) in FORECASTS.items():
        found = ask(environment, "counts", way, problem)
        measures = dict(NOTHING)
        if found.arrays:
            y = found.arrays["y"]
            measures |= missed(S[:first] @ y[first:], y[:first])
            measures["negative"] = (y < -TOL).mean()
            measures["error"] = np.sqrt(((y - truth)[first:] ** 2).mean())
        rows.append(row(job, name, found, **measures))
    return rows


def run(quick):
    """All jobs."""
    n = 2000 if quick else 20_000
    rows = of_weights(n, clash=False) + of_weights(2000, clash=True)
    length = 100 if quick else 500
    rows += of_tables(length, signed=False)
    rows += of_tables(100, signed=True) + of_tables(100, signed=False, clash=True)
    return rows + of_forecasts(12, 6, 30 if quick else 300)


if __name__ == "__main__":
    main(__doc__, run, "rivals-counts")
