"""Exact data of order 2, positive: missing cells found where they are estimable.

Run it from the root of the repository::

    python -m benchmarks.completion.exact

It prints a table and writes ``completion-exact.csv``.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from sklearn_pnl.geometry import TensorPoset, complete, order_mask
from sklearn_pnl.geometry.many_body.bases import ScaledBasis

from ..tables import report

SHAPES = ((5, 5, 5, 5), (6, 6, 6, 6), (8, 7, 6, 5), (4, 4, 4))
SHARES, CASES = (0.3, 0.5, 0.7), 100
# Standard deviation of the logarithms.
SIZES = (0.5, 1.0, 2.0, 3.5)


def case(rng, shape, share, size):
    """Return the share of missing cells that are estimable, and their worst error."""
    functions, poset = ScaledBasis(shape, 2).functions, TensorPoset(shape)
    v = size / np.sqrt(len(functions)) * rng.normal(size=len(functions))
    measure = np.exp(v @ functions).reshape(shape)
    missing = rng.random(shape) < share
    given = np.where(missing, np.nan, measure)
    found = complete(given, poset, order_mask(poset, 2), tol=1e-12)
    known = found.estimable & missing
    error = np.abs(found.measure / measure - 1)[known].max(initial=0)
    return known.sum(), missing.sum(), error


def main():
    """Test each shape with each share in 100 cases, and cycle through the sizes."""
    rows = []
    for shape in SHAPES:
        for share in SHARES:
            for size in SIZES:
                rng = np.random.default_rng(0)
                n = CASES if shape == SHAPES[0] else CASES // 10
                found = np.array([case(rng, shape, share, size) for _ in range(n)])
                known, missing, _ = found.sum(axis=0)
                rows.append(
                    {
                        "shape": " x ".join(map(str, shape)),
                        "missing": share,
                        "sd of logs": size,
                        "cases": n,
                        "estimable": known / missing,
                        "worst error": found[:, 2].max(),
                        "beyond 1e-9": int((found[:, 2] > 1e-9).sum()),
                    }
                )
    report(rows, "completion-exact")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
