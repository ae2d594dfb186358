"""How often a search by BIC finds just the interactions that made the counts.

``python -m benchmarks.fit.search``: log-linear models with random interactions, counts
drawn from each, ``search_interactions`` from independence. The settings below were
committed before the first run; those in ``JUDGED`` are the ones that count.
"""

import sys
from itertools import combinations
from time import perf_counter

import numpy as np
from scipy.linalg import helmert

from benchmarks.tables import grouped, report
from sklearn_pnl.geometry import TensorPoset, close_downward, search_interactions

SHAPES = [(2,) * 4, (2,) * 6, (2,) * 8, (2,) * 10, (3,) * 4, (4,) * 4, (4,) * 5]
# "pairs": as many as there are modes. "triple": one pair fewer, and three modes with
# all interactions between them.
STRUCTURES = ("pairs", "triple")
# Root mean square over the cells of each interaction, and of each mode alone, in log p.
EFFECT, MAIN = 0.2, 0.3
# Mean counts of a cell, those that count and harder ones.
JUDGED, HARDER = 100, (30, 10)
REPEATS = 100


def true_sets(rng, n_modes, structure):
    """Interactions of a random model, closed downward."""
    pairs = list(combinations(range(n_modes), 2))
    n_pairs = n_modes - (structure == "triple")
    chosen = [pairs[k] for k in rng.permutation(len(pairs))[:n_pairs]]
    chosen += [(mode,) for mode in range(n_modes)]
    if structure == "triple":
        chosen.append(tuple(sorted(rng.permutation(n_modes)[:3].tolist())))
    return close_downward(chosen, n_modes)


def model(rng, shape, sets):
    """Probabilities with an effect of fixed size for each set of modes."""
    energy = np.zeros(shape)
    contrasts = [np.sqrt(n) * helmert(n) for n in shape]
    for modes in sorted(sets):
        effect = rng.normal(size=[shape[k] - 1 for k in modes])
        effect *= (EFFECT if len(modes) > 1 else MAIN) / np.linalg.norm(effect)
        for k in modes:
            # The first axis goes, the levels of the mode come last.
            effect = np.tensordot(effect, contrasts[k], (0, 0))
        others = [k for k in range(len(shape)) if k not in modes]
        energy += np.expand_dims(effect, others)
    p = np.exp(energy - energy.max())
    return p / p.sum()


def trial(shape, structure, per_cell, seed):
    """One model, one table, one search: what was missed, what was added."""
    rng = np.random.default_rng([seed, per_cell, *shape, len(structure)])
    sets = true_sets(rng, len(shape), structure)
    p = model(rng, shape, sets)
    counts = rng.multinomial(per_cell * p.size, p.ravel()).reshape(shape)
    start = perf_counter()
    found = search_interactions(counts, TensorPoset(shape))
    seconds = perf_counter() - start
    kept = close_downward(found.order, len(shape))
    return len(sets - kept), len(kept - sets), seconds


def summary(shape, structure, per_cell, repeats):
    """A line of the table."""
    trials = [trial(shape, structure, per_cell, seed) for seed in range(repeats)]
    missed, added, seconds = np.array(trials).T
    return {
        "shape": " x ".join(map(str, shape)),
        "cells": int(np.prod(shape)),
        "structure": structure,
        "counts a cell": per_cell,
        "searches": repeats,
        "true set found": float(np.mean((missed == 0) & (added == 0))),
        "missed, mean": float(missed.mean()),
        "added, mean": float(added.mean()),
        "ms, median": float(1000 * np.median(seconds)),
    }


def main(repeats=REPEATS):
    """All settings; print and write."""
    rows = []
    for per_cell in (JUDGED, *HARDER):
        for shape in SHAPES:
            for structure in STRUCTURES:
                rows.append(summary(shape, structure, per_cell, repeats))
                print(*rows[-1].values(), flush=True)
    report(rows, "fit-search")
    judged = grouped(rows, "counts a cell")[(JUDGED,)]
    print(f"least share found: {min(row['true set found'] for row in judged)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
