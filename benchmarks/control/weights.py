"""Compare ``calibrate`` with weightipy, balance, samplics, and SciPy's milp.

Packages that are not installed are left out. All functions run on one core and in one
run. A residual is that of the worst total, as a share of the sum of its absolute terms.
"""

import importlib
import logging
import warnings
from functools import partial

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack, identity
from threadpoolctl import threadpool_limits

from sklearn_pnl.control import calibrate

from ..speed.scores import score
from ..speed.timing import interleaved, peak, seconds
from ..tables import main

TOL = 1e-9
# What weightipy reaches in its first rounds.
EXACT = 1e-13
LIMIT = 60.0


def residual_of(weights, columns, totals):
    """Return the worst residual, as a share of the sum of the absolute terms."""
    missed = np.abs(columns.T @ weights - totals)
    return float((missed / np.maximum(abs(columns).T @ np.abs(weights), 1e-300)).max())


# --- counts by category ---------------------------------------------------------


def categories(rng, n):
    """Make six columns of five levels, and counts that some weights have."""
    frame = pd.DataFrame({
        f"v{k}": rng.choice(list("abcde"), n, p=rng.dirichlet(np.full(5, 4.0)))
        for k in range(6)
    })  # fmt: skip
    weights = rng.gamma(6.0, size=n)
    for column in frame:
        factors = dict(zip("abcde", rng.uniform(0.6, 1.6, 5), strict=True))
        weights *= frame[column].map(factors).to_numpy()
    weights *= n / weights.sum()
    return frame, {
        column: pd.Series(weights).groupby(frame[column]).sum().to_dict()
        for column in frame
    }


def with_weightipy(frame, totals):
    weightipy = importlib.import_module("weightipy")
    shares = {
        column: {level: 100 * t / len(frame) for level, t in counts.items()}
        for column, counts in totals.items()
    }
    scheme = weightipy.scheme_from_dict(shares, rim_params={"convcrit": 1e-12})
    return weightipy.weight(frame, scheme).to_numpy()


def with_samplics(frame, totals):
    weighting = importlib.import_module("samplics.weighting").SampleWeight()
    margins = {column: frame[column].to_numpy() for column in frame}
    return weighting.rake(
        np.ones(len(frame)), margins, control=totals, tol=TOL, ctrl_tol=TOL,
        max_iter=1000,
    )  # fmt: skip


def with_balance(frame, totals):
    """Adjust to a second sample, which replicates rows to have the counts."""
    rake = importlib.import_module("balance.weighting_methods.rake").rake
    n, target = len(frame), {}
    for column, counts in totals.items():
        copies = np.round(list(counts.values())).astype(int)
        target[column] = np.resize(np.repeat(list(counts), copies), n)
    target = pd.DataFrame(target)
    ones = pd.Series(np.ones(n))
    found = rake(
        frame, ones, target, ones, transformations=None, convergence_rate=1e-12,
        max_iteration=1000,
    )  # fmt: skip
    return found["weight"].to_numpy()


BASELINES = {
    "weightipy": with_weightipy,
    "samplics": with_samplics,
    "balance": with_balance,
}


def raking(rng, n):
    """Return time and residual of each function for the same counts."""
    frame, totals = categories(rng, n)
    indicators = pd.get_dummies(frame).to_numpy(float)
    asked = np.concatenate([[t for _, t in sorted(c.items())] for c in totals.values()])
    job = f"{n} rows, 30 counts of categories"
    ours = partial(calibrate, frame, totals, tol=EXACT)
    calls, found, rows = {"calibrate": ours}, {}, []
    for name, baseline in BASELINES.items():
        try:
            found[name] = baseline(frame, totals)
            calls[name] = partial(baseline, frame, totals)
        except Exception as error:
            reason = str(error).splitlines()[0][:60] if str(error) else ""
            rows.append(score(job, f"{name}: no answer", np.nan,
                              note=f"{type(error).__name__}: {reason}"))  # fmt: skip
    found["calibrate"] = ours()
    taken = interleaved(calls, repeats=3)
    for name, time in taken.items():
        wanted = {}
        if name == "weightipy":
            wanted = {"at_least": 1.0}
        note = f"residual {residual_of(found[name], indicators, asked):.1e}"
        ratio = time / taken["calibrate"]
        measure = f"{name}, in calibrate's time ({taken['calibrate']:.3g} s)"
        rows.append(score(job, measure, ratio, note=note, **wanted))
    return rows


def impossible(rng, n=200):
    """Request infeasible counts, and describe the results."""
    frame = pd.DataFrame(
        {"a": rng.choice(["x", "y"], n), "b": rng.choice(["u", "v"], n)}
    )
    frame.loc[frame["a"] == "x", "b"] = "u"
    totals = {"a": {"x": 150, "y": 50}, "b": {"u": 100, "v": 100}}
    rows = []
    for name, way in {"calibrate": calibrate, **BASELINES}.items():
        try:
            weights = way(frame, totals)
        except Exception as error:
            missed, note = 0.0, f"{type(error).__name__}: {str(error)[:90]}"
        else:
            weights = weights * n / weights.sum()
            missed = abs(weights[frame["a"] == "x"].sum() - 150)
            missed = max(missed, abs(weights[frame["b"] == "u"].sum() - 100))
            note = "answered, without an error"
        job = f"{n} rows, counts that no weights satisfy"
        rows.append(score(job, f"missed by the answer of {name}", missed, note=note))
    return rows


# --- sparse totals --------------------------------------------------------------


def sparse_problem(n, c, filled):
    """Make rows with few numbers, and sums that some weights have."""
    rng = np.random.default_rng(0)
    each = int(c * filled)
    entries = (np.repeat(np.arange(n), each), rng.integers(0, c, n * each))
    x = csr_array((rng.gamma(2.0, size=n * each), entries), shape=(n, c))
    return x, rng.gamma(4.0, 0.25, size=n) @ x


def calibrated(problem):
    """Return weights; the function can run in another process."""
    return calibrate(*problem, bounds=(0.01, 100.0)), problem


def sparse(n, c=500, filled=0.02):
    """Measure time, memory and residual for many rows with few numbers."""
    job = f"{n} rows, {c} sums, {filled:.0%} filled"
    taken = peak(partial(sparse_problem, n, c, filled), calibrated)
    weights, (x, totals) = calibrated(sparse_problem(n, c, filled))
    gib = (taken.beyond_input + x.data.nbytes * 1.5 / 2**20) / 1024
    return [
        score(job, "seconds", taken.seconds, at_most=60),
        score(job, "GiB with the input", gib, at_most=4),
        score(job, "residual", residual_of(weights, x, totals), at_most=TOL),
    ]


# --- integer weights --------------------------------------------------------------


def households(rng, n, many):
    """Make households with persons in categories, and totals of integer weights."""
    size = np.minimum(1 + rng.poisson(1.4, n), 6)

    def of_households(k):
        return np.eye(k)[rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))]

    def of_persons(k):
        shares = rng.dirichlet(np.full(k, 3.0))
        return np.array([rng.multinomial(s, shares) for s in size], float)

    kinds = ((8, 4, 5, 6), (18, 10, 8)) if many else ((5, 4), (10, 6))
    parts = [np.eye(6)[size - 1], *map(of_households, kinds[0])]
    x = np.hstack([*parts, *map(of_persons, kinds[1])])
    return x, rng.poisson(rng.gamma(2.0, 2.0, n)) @ x


def with_milp(x, totals):
    """Return weights with the least sum of misses, after at most one minute."""
    n, c = x.shape
    a = hstack([csr_array(x.T), identity(c), -identity(c)], format="csc")
    found = milp(
        np.concatenate([np.zeros(n), np.ones(2 * c)]),
        constraints=LinearConstraint(a, totals, totals),
        bounds=Bounds(0, np.inf),
        integrality=np.repeat([1, 0], [n, 2 * c]),
        options={"time_limit": LIMIT},
    )
    return None if found.x is None else np.round(found.x[:n])


def whole(rng, n, many):
    """Measure the misses of planted totals, and the time, of each function."""
    x, totals = households(rng, n, many)
    job = f"{n} households, {x.shape[1]} controls, integer weights"
    ways = {
        "calibrate": lambda: calibrate(x, totals, integer=True, strict=False),
        "milp": lambda: with_milp(x, totals),
    }
    rows = []
    for name, way in ways.items():
        found = []
        taken = seconds(lambda way=way, found=found: found.append(way()))
        missed = np.inf if found[0] is None else np.abs(found[0] @ x - totals).sum()
        note = f"{taken:.3g} s; {totals.sum():g} counted in all"
        rows.append(score(job, f"missed by {name}", missed, note=note))
    return rows


def run(quick):
    """Run all jobs."""
    warnings.simplefilter("ignore")
    logging.disable()
    rng = np.random.default_rng(0)
    rows = raking(rng, 2000 if quick else 20_000)
    rows += impossible(rng)
    rows += sparse(20_000 if quick else 1_000_000)
    rows += whole(rng, 500 if quick else 2000, many=False)
    if not quick:
        rows += whole(rng, 5000, many=True)
    return rows


if __name__ == "__main__":
    with threadpool_limits(1, "blas"):
        main(__doc__, run, "control-weights")
