"""What an iterative projection costs in its own linear algebra, and nothing else.

Everything around the matrix products (exponentials, line search, bookkeeping of rows
that leave) is overhead. To weigh it, the products of a run are counted, and as many
are timed alone on a batch of the size of a block.
"""

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from sklearn_pnl import optimize
from sklearn_pnl.geometry import InteractionBasis

from .timing import interleaved

# What estimators give a projection at once.
_CELLS = 2**17


@dataclass(frozen=True)
class Products:
    """Rows that went through each kind of product in a run."""

    analysis: int
    synthesis: int
    solves: int

    def seconds(self, shape, order):
        """Seconds for as many rows in full batches, on one thread of BLAS."""
        basis = InteractionBasis(shape, order)
        n_cells, m = int(np.prod(shape)), basis.n_functions
        rows = max(1, _CELLS // n_cells)
        with threadpool_limits(1, "blas"):
            one = interleaved(_batches(basis, rows, n_cells), repeats=5)
            total = self.analysis * one["analysis"] + self.synthesis * one["synthesis"]
            if self.solves:
                total += self.solves * _solve_seconds(rows, m)
        return total / rows


def _batches(basis, rows, n_cells):
    rng = np.random.default_rng(0)
    # Conjugate gradients, which make nearly all of them, work in single precision.
    x = rng.standard_normal((rows, n_cells), np.float32)
    v = rng.standard_normal((rows, basis.n_functions), np.float32)
    return {
        "analysis": lambda: basis.analysis_flat(x),
        "synthesis": lambda: basis.synthesis_flat(v),
    }


def _solve_seconds(rows, m):
    rng = np.random.default_rng(0)
    fisher = rng.standard_normal((rows, m, m)) + m * np.eye(m)
    right = rng.standard_normal((rows, m, 1))
    return interleaved({"solve": lambda: np.linalg.solve(fisher, right)})["solve"]


def count_products(function):
    """Run a function and count the rows of its matrix products and linear systems."""
    rows = Counter()
    with (
        _counting(InteractionBasis, "analysis_flat", 1, rows),
        _counting(InteractionBasis, "synthesis_flat", 1, rows),
        _counting(optimize, "_solve_scaled", 0, rows),
    ):
        function()
    return Products(*map(rows.get, _NAMES, (0, 0, 0)))


_NAMES = "analysis_flat", "synthesis_flat", "_solve_scaled"


@contextmanager
def _counting(owner, name, position, rows):
    original = getattr(owner, name)

    @wraps(original)
    def counted(*args):
        rows[name] += len(args[position])
        return original(*args)

    with patch.object(owner, name, counted):
        yield
