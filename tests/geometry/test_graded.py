"""Graded bases: their span, their zeros, and theta compared with sixty digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_pnl.geometry.many_body.bases import ScaledBasis, marginal_cells
from sklearn_pnl.geometry.many_body.graded import GradedBasis
from sklearn_pnl.geometry.many_body.newton_solvers import TiltSolver
from sklearn_pnl.geometry.posets import TensorPoset

SEEDS = [0, 1, 2]


def sparse_rows(n, shape, offset, seed):
    """Return distributions in which seven of ten cells have almost no mass."""
    rng = np.random.default_rng(seed)
    cells = rng.gamma(1.0, size=(n, *shape)) * (rng.uniform(size=(n, *shape)) < 0.3)
    rows = (cells + offset).reshape(n, -1)
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n_zeros", [0, 20])
def test_functions_vanish_on_heavier_cells_and_keep_their_span(seed, n_zeros):
    rng, shape = np.random.default_rng(seed), (4, 3, 3, 2)
    functions = ScaledBasis(shape, 2).functions
    q = 10.0 ** rng.uniform(-40, 0, size=functions.shape[1])
    q[:n_zeros] = 0
    graded = GradedBasis(functions, q / q.sum()).functions
    seen = q > 0
    both = [np.vstack([np.ones(seen.sum()), f[:, seen]]) for f in (functions, graded)]
    rank = np.linalg.matrix_rank(both[0])
    assert np.linalg.matrix_rank(both[1]) == rank == len(both[1])
    assert np.linalg.matrix_rank(np.vstack(both)) == rank
    for function in graded:
        heaviest = q[function != 0].max()
        # All cells of one level differ at most by 1e3.
        pivots = seen & (q <= heaviest) & (q > heaviest / 1e3)
        assert np.abs(function[pivots]).max() > 1e-6
        assert not function[q > 1e3 * heaviest].any()


def test_cells_near_the_smallest_float_give_no_warning():
    functions = ScaledBasis((4, 3, 3, 2), 2).functions
    exponents = np.random.default_rng(0).uniform(-323, 0, size=functions.shape[1])
    q = 10.0**exponents
    basis = GradedBasis(functions, q / q.sum())
    assert basis.n_functions == len(functions)
    assert basis.rounding(q, q) < 1e-10


def projected(p, functions, start, n_digits=60):
    """Match the moments of ``p`` by Newton's method with decimal numbers."""
    with localcontext(prec=n_digits):
        f = [[Decimal(float(value)) for value in row] for row in functions]
        p, logs = [Decimal(x) for x in p], [Decimal(x).ln() for x in start]
        # The sum of the floats is 1 only up to rounding.
        p = [x / sum(p) for x in p]
        for _ in range(200):
            weights = [x.exp() for x in logs]
            q = [x / sum(weights) for x in weights]
            gaps = [b - a for a, b in zip(q, p, strict=True)]
            gradient = [_dot(row, gaps) for row in f]
            weighted = [[a * b for a, b in zip(row, q, strict=True)] for row in f]
            means = [sum(row) for row in weighted]
            hessian = [
                [_dot(a, b) - m * n for b, n in zip(f, means, strict=True)]
                for a, m in zip(weighted, means, strict=True)
            ]
            step = _solved(hessian, gradient)
            change = [_dot(step, column) for column in zip(*f, strict=True)]
            change = [x - change[0] for x in change]
            longest = max(map(abs, change))
            length = min(Decimal(1), 5 / longest)
            logs = [a + length * b for a, b in zip(logs, change, strict=True)]
            if longest < Decimal("1e-12"):
                return np.array([float(x) for x in logs])
    raise AssertionError("The oracle did not converge.")


def _dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def _solved(matrix, right):
    """Solve a positive definite system by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k, pivot in enumerate(rows):
        for row in rows[k + 1 :]:
            ratio = row[k] / pivot[k]
            for j in range(k, len(pivot)):
                row[j] -= ratio * pivot[j]
    solution = [Decimal(0)] * len(rows)
    for k in range(len(rows) - 1, -1, -1):
        rest = _dot(rows[k][k + 1 : -1], solution[k + 1 :])
        solution[k] = (rows[k][-1] - rest) / rows[k][k]
    return solution


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", [(2, 2, 2, 2, 2), (3, 3, 3)])
def test_theta_is_that_of_sixty_digits(shape, seed):
    solver = TiltSolver(TensorPoset(shape), 2)
    p = sparse_rows(8, shape, 1e-12, seed)
    logs, residual, _, settled = solver.log_solve(p, 1e-6, 100)
    q = np.exp(logs)
    assert settled.all()
    assert np.all(residual <= 1e-6)
    # The functions have the values 0 and 1, so they are exact.
    functions = marginal_cells(TensorPoset(shape), 2, (0,) * len(shape)).functions
    # Rows with a wide range of masses are the difficult ones.
    for i in np.argsort(q.min(axis=1))[:3]:
        logs = projected(p[i], functions, q[i])
        found = np.log(q[i])
        assert_allclose(found - found[0], logs - logs[0], atol=0.01)


def test_theta_that_rounding_changes_is_not_settled():
    """Test rows in which theta of two tolerances differs by up to 1.4."""
    shape, rng = (7, 2, 2, 7, 2, 2), np.random.default_rng(0)
    cells = rng.gamma(1.0, size=(60, *shape))
    cells *= rng.uniform(size=cells.shape) < 0.1
    p = (cells + 1e-5).reshape(60, -1)[[31, 47, 49, 56, 58]]
    p /= p.sum(axis=1, keepdims=True)
    solver = TiltSolver(TensorPoset(shape), 3)
    logs, _, _, settled = solver.log_solve(p, 1e-6, 100)
    error = np.abs(logs - solver.log_solve(p, 1e-12, 500)[0]).max(axis=1)
    assert settled.any() and not settled.all()
    assert np.all(error[settled] <= 0.01)


@pytest.mark.parametrize(
    "order, offset, max_share", [(3, 1e-4, 0.0), (3, 1e-5, 0.3), (4, 1e-5, 0.0)]
)
def test_theta_of_rows_with_mostly_empty_cells_is_determined(order, offset, max_share):
    shape, rng = (7, 2, 2, 7, 2, 2), np.random.default_rng(2)
    cells = rng.gamma(1.0, size=(20, *shape))
    cells *= rng.uniform(size=cells.shape) < 0.1
    p = (cells + offset).reshape(20, -1)
    p /= p.sum(axis=1, keepdims=True)
    solver = TiltSolver(TensorPoset(shape), order)
    *_, settled = solver.log_solve(p, 1e-6, 100)
    assert np.mean(~settled) <= max_share
