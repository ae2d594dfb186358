"""``adjust``: how far rows move beside the least, by a closed form or by SLSQP.

Distances are chi-square of columns / range + 1; 1 is the nearest that there is. Closed
forms are for equalities, of rows or of all rows together; SLSQP, started where what is
asked is met, for intervals and limits.
"""

from time import perf_counter

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from sklearn_pnl import ColumnConstraint, adjust

from .script import main

A = np.array([[1.0, 1, 1, -1]])


def table(n, seed):
    """Three parts and their total."""
    parts = np.random.default_rng(seed).gamma(3.0, size=(n, 3)) * [1, 10, 100]
    return np.column_stack([parts, parts.sum(axis=1)])


def weights_of(X):
    width = np.ptp(X, axis=0)
    return ((X - X.min(axis=0)) / width + 1) * width**2


def distance(X, rows, weights):
    return float(((rows - X) ** 2 / weights).sum())


def closed_form(x, w, a, b):
    return x + w * (a.T @ np.linalg.solve((a * w) @ a.T, b - a @ x))


def sums_of_rows(X, w, rng):
    """Each total times a number of its own."""
    wanted = X[:, 3] * rng.uniform(0.5, 2, len(X))
    a = np.vstack([A, np.eye(4)[3]])
    pairs = zip(X, w, wanted, strict=True)
    nearest = np.array([closed_form(x, v, a, [0, b]) for x, v, b in pairs])
    return {"constraints": ColumnConstraint(3, equal=wanted)}, nearest


def sums_of_columns(X, w, rng):
    """Two sums over all rows, which keep their totals."""
    n, wanted = len(X), {3: 1.2 * X[:, 3].sum(), 0: 0.9 * X[:, 0].sum()}
    each = [np.tile(np.eye(4)[j], n) for j in wanted]
    a = np.vstack([np.kron(np.eye(n), A), *each])
    b = np.concatenate([np.zeros(n), list(wanted.values())])
    return {"totals": wanted}, closed_form(X.ravel(), w.ravel(), a, b).reshape(X.shape)


def intervals(X, w, rng):
    """A total of at least another row's, within the ranges of the columns."""
    other, unit = X[rng.permutation(len(X))], np.ptp(X, axis=0)
    ends = X.min(axis=0), X.max(axis=0)
    nearest = np.empty_like(X)
    for i, x in enumerate(X):
        found = minimize(
            lambda v, x=x, w=w[i]: distance(x, v * unit, w),
            other[i] / unit,
            constraints=[
                {"type": "eq", "fun": lambda v: A[0] @ (v * unit)},
                {"type": "ineq", "fun": lambda v, b=other[i, 3]: (v * unit)[3] - b},
            ],
            bounds=list(zip(*(end / unit for end in ends), strict=True)),
            tol=1e-12,
            options={"maxiter": 500},
        )
        nearest[i] = found.x * unit
    asked = ColumnConstraint(3, lower=other[:, 3])
    return {"constraints": asked, "extrapolation": 0.0}, nearest


def run(quick):
    """A row for each kind of problem and size."""
    total, rows = LinearConstraint(A, 0, 0), []
    for problem in (sums_of_rows, sums_of_columns, intervals):
        for n in (3, 40) if quick else (3, 40, 400):
            ratios, seconds = [], []
            for seed in range(2 if quick else 5):
                X = table(n, seed)
                w = weights_of(X)
                asked, nearest = problem(X, w, np.random.default_rng(seed))
                start = perf_counter()
                moved = adjust(X, equalities=total, **asked)
                seconds.append(perf_counter() - start)
                ratios.append(distance(X, moved, w) / distance(X, nearest, w))
            rows.append(
                {
                    "problem": problem.__name__.replace("_", " "),
                    "rows": n,
                    "worst distance / least": round(max(ratios), 6),
                    "seconds": round(float(np.median(seconds)), 4),
                }
            )
    return rows


if __name__ == "__main__":
    main(__doc__, run, "adjust")
