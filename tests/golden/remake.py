"""Golden rows of a few recipes, which detect unintended changes of new rows.

``python tests/golden/remake.py`` writes ``rows.json`` after an intended change of the
rows, which the changelog must mention. The data come from ``RandomState``, because its
numbers do not change with the version of NumPy.
"""

import json
from pathlib import Path

import numpy as np

from sklearn_pnl import (
    Codes,
    ManyBodyProjector,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
)
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.encoding.manifolds import EtaManifold
from sklearn_pnl.methods.draws import KernelDraws

FILE = Path(__file__).with_name("rows.json")
SEEDS = 0, 1, 2
N_NEW = 6


def table(seed, n=40, d=5):
    """Draw numbers in several units, some of them skewed."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** (np.arange(d) % 3 - 1)
    X[:, 1::2] = np.exp(X[:, 1::2] / 10.0 ** (np.arange(d) % 3 - 1)[1::2])
    return X


def images(seed, *shape):
    """Draw non-negative images with different marginals."""
    return np.random.RandomState(seed).uniform(0, 1, (30, *shape)) ** 2


def drawn(X, seed, constraints=None, totals=None, **params):
    augmenter = PNLAugmenter(**params).fit(X)
    requested = {"constraints": constraints, "totals": totals}
    rows = augmenter.sample(N_NEW, seed, **requested, return_parents=True)
    return {"rows": rows[0], "parents": rows[1]}


def default(seed):
    return drawn(table(seed), seed)


def one_class_of_two(seed):
    X, y = table(seed), np.repeat([0, 1], [23, 17])
    sampler = PNLSampler(random_state=seed)
    X_all, y_all = sampler.fit_resample(X, y)
    return {
        "rows": X_all[40:],
        "parents": sampler.parent_indices_,
        "labels": y_all[40:],
    }


def base(order, **params):
    return ManyBodyProjector(order, **{"offset": 0.1, "with_mass": True} | params)


def order_one(seed):
    return drawn(images(seed, 4, 4), seed, method=Codes(base(1), embedding=None))


def order_two(seed):
    method = Codes(base(2, tol=1e-11), embedding=None, reshaper=None)
    return drawn(images(seed, 3, 2, 2), seed, method=method)


def kernel(seed):
    return drawn(table(seed), seed, method=Codes(draws=KernelDraws(0.1)))


def paper(seed):
    return drawn(table(seed, d=6), seed, method="paper")


def eta(seed):
    method = Codes(base(1, tol=1e-11), local_manifold=EtaManifold(order=1))
    return drawn(table(seed), seed, method=method)


def equalities(seed):
    X, rng = table(seed, n=60, d=3), np.random.RandomState(seed)
    groups = np.eye(3)[rng.randint(3, size=60)]
    X = np.column_stack([X, X.sum(axis=1), groups])
    return drawn(X, seed)


def constraints(seed):
    X = table(seed)
    requested = ColumnConstraint(
        {0: 1, 2: 1}, lower=float(np.median(X[:, 0] + X[:, 2]))
    )
    return drawn(X, seed, constraints=requested)


def totals(seed):
    X = table(seed)
    return drawn(X, seed, totals={0: N_NEW * float(np.quantile(X[:, 0], 0.6))})


def counts(seed):
    rng = np.random.RandomState(seed)
    return drawn(rng.poisson([0.3, 2, 9, 25], (50, 4)), seed)


def gaps(seed):
    X = table(seed, n=60)
    X[np.random.RandomState(seed).uniform(size=X.shape) < 0.1] = np.nan
    return drawn(X, seed)


def categories(seed):
    rng = np.random.RandomState(seed)
    X = table(seed, d=3).astype(object)
    X = np.column_stack([X, np.array(list("abcd"))[rng.randint(4, size=40)]])
    return drawn(X, seed, categorical_features=[3])


def regression(seed):
    X = table(seed)
    y = X[:, 0] - X[:, 3]
    sampler = PNLRegressionSampler(
        n_samples=N_NEW, row_weights="rarity", random_state=seed
    )
    rows, targets = sampler.fit_resample(X, y)
    parents = sampler.parent_indices_
    return {"rows": rows[40:], "parents": parents, "targets": targets[40:]}


RECIPES = [
    default, one_class_of_two, order_one, order_two, kernel, paper, eta, equalities,
    constraints, totals, counts, gaps, categories, regression,
]  # fmt: skip


def shortened(values):
    """Round numbers to nine digits, which is more than tests compare."""
    if isinstance(values, list):
        return [shortened(value) for value in values]
    return float(f"{values:.9g}") if isinstance(values, float) else values


def line(drawn):
    """Format the rows of one seed as a line of the file."""
    return json.dumps(
        {name: shortened(values.tolist()) for name, values in drawn.items()}
    )


if __name__ == "__main__":
    recipes = [
        f"{json.dumps(recipe.__name__)}: [\n"
        + ",\n".join(line(recipe(seed)) for seed in SEEDS)
        + "]"
        for recipe in RECIPES
    ]
    FILE.write_text("{\n" + ",\n".join(recipes) + "\n}\n")
