"""Equations of the training rows in new rows, and what looking for them costs."""

import warnings
from functools import partial
from time import process_time

import numpy as np
from imblearn.over_sampling import SMOTE

from sklearn_pnl import PNLSampler

from ..speed.scores import score
from .script import main
from .structures import STRUCTURES, structured, violation

SIZES = ((300, 25), (1000, 50), (5000, 200))
SAMPLERS = {
    "equations kept": PNLSampler(random_state=0),
    "invariants=None": PNLSampler(invariants=None, random_state=0),
    "SMOTE": SMOTE(random_state=0),
}


def labels(n):
    """A class of a tenth of the rows."""
    return (np.arange(n) % 10 == 0).astype(int)


def kept(n_seeds, n=600):
    """Worst violation over all new rows of some tables, by structure and sampler."""
    rows = []
    for name in STRUCTURES:
        for sampler_name, sampler in SAMPLERS.items():
            worst = []
            for seed in range(n_seeds):
                X, a, b = structured(name, seed, n)
                new = sampler.fit_resample(X, labels(n))[0][n:]
                worst.append(violation(new, X, a, b))
            limit = 1e-9 if sampler_name == "equations kept" else None
            rows.append(
                score(name, f"worst violation, {sampler_name}", max(worst),
                      at_most=limit, note=f"{n_seeds} tables of {n} rows")
            )  # fmt: skip
    return rows


def plain(n, d):
    """Correlated features that satisfy no equation."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)


def with_totals(n, d):
    """A tenth as many totals as features, each of four of them."""
    rng = np.random.default_rng(0)
    parts = rng.gamma(2.0, size=(n, d // 10, 4))
    rest = rng.normal(size=(n, d - 5 * (d // 10)))
    return np.column_stack([parts.sum(axis=2), parts.reshape(n, -1), rest])


def fastest(functions, repeats):
    """Least seconds of the processor of each function, all of them run in turn."""
    taken = dict.fromkeys(functions, np.inf)
    for _ in range(repeats):
        for name, function in functions.items():
            start = process_time()
            function()
            taken[name] = min(taken[name], process_time() - start)
    return taken


def cost(n, d, repeats):
    """Share of the sampler's time that goes into equations."""
    rows = []
    for name, make in (("no equation", plain), ("d / 10 totals", with_totals)):
        X, y = make(n, d), labels(n)
        functions = {
            name: partial(SAMPLERS[name].fit_resample, X, y)
            for name in ("equations kept", "invariants=None")
        }
        taken = fastest(functions, repeats)
        spent, without = taken["equations kept"], taken["invariants=None"]
        note = f"{1e3 * spent:.1f} ms with, {1e3 * without:.1f} ms without"
        rows.append(
            score(f"{n} x {d}, {name}", "share of the time", 1 - without / spent,
                  at_most=0.2, note=note)
        )  # fmt: skip
    return rows


def run(quick):
    """All tables, then all sizes."""
    warnings.simplefilter("error")
    rows = kept(1 if quick else 10)
    for n, d in SIZES:
        rows += cost(n, d, 5 if quick else 25)
    return rows


if __name__ == "__main__":
    main(__doc__, run, "invariants")
