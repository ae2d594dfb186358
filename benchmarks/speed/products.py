"""What an iterative projection costs in its own linear algebra, and nothing else.

Everything around the matrix products (exponentials, line search, bookkeeping of rows
that leave) is overhead. To weigh it, the products of a run are counted, and as many
are timed alone on a batch of the size of a block.
"""

from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from sklearn_pnl.geometry import InteractionBasis, optimize
from sklearn_pnl.geometry.tilts import ScaledBasis

from .timing import interleaved

# What estimators give a projection at once.
_CELLS = 2**18


@dataclass(frozen=True)
class Products:
    """Rows that went through each kind of product in a run."""

    analysis: int
    synthesis: int
    solves: int

    def seconds(self, shape, order):
        """Seconds for as many rows in full batches, on one thread of BLAS."""
        functions = InteractionBasis(shape, order)
        basis, m = ScaledBasis(functions), functions.n_functions
        n_cells = int(np.prod(shape))
        rows = max(1, _CELLS // n_cells)
        with threadpool_limits(1, "blas"):
            one = interleaved(_batches(basis, rows, n_cells, m), repeats=5)
            total = self.analysis * one["analysis"] + self.synthesis * one["synthesis"]
            if self.solves:
                total += self.solves * _solve_seconds(rows, m)
        return total / rows


def _batches(basis, rows, n_cells, m):
    rng = np.random.default_rng(0)
    # Conjugate gradients, which make nearly all of them, work in single precision.
    x = rng.standard_normal((rows, n_cells), np.float32)
    v = rng.standard_normal((rows, m), np.float32)
    return {
        "analysis": lambda: basis.analysis(x),
        "synthesis": lambda: basis.synthesis(v),
    }


def _solve_seconds(rows, m):
    rng = np.random.default_rng(0)
    fisher = rng.standard_normal((rows, m, m)) + m * np.eye(m)
    right = rng.standard_normal((rows, m, 1))
    return interleaved({"solve": lambda: np.linalg.solve(fisher, right)})["solve"]


def count_products(function):
    """Run a function and count the rows of its matrix products and linear systems."""
    rows = Counter()
    with ExitStack() as counting:
        for counted in _COUNTED:
            counting.enter_context(_counting(*counted, rows))
        function()
    return Products(*map(rows.get, ("analysis", "synthesis", "solves"), (0, 0, 0)))


# Whose it is, its name, the argument whose length is the number of rows, and what it
# counts as.
_COUNTED = [
    (ScaledBasis, "analysis", 1, "analysis"),
    (ScaledBasis, "synthesis", 1, "synthesis"),
    (optimize, "_solve_scaled", 0, "solves"),
]


@contextmanager
def _counting(owner, name, position, counted_as, rows):
    original = getattr(owner, name)

    @wraps(original)
    def counted(*args):
        rows[counted_as] += len(args[position])
        return original(*args)

    with patch.object(owner, name, counted):
        yield
