"""Batched Newton methods: comparisons with SciPy on problems without geometry."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from sklearn_pnl.geometry.convex.newton import newton_cg, newton_dense

SOLVERS = [newton_dense, newton_cg]
SEEDS = [0, 1, 2]


class _Smooth:
    """Base class of strictly convex problems, whose point is ``x``."""

    def gradient(self, x, point, rows):
        gradient = self.gradient_at(x, rows)
        return gradient, np.abs(gradient).max(axis=1)

    def value(self, x, rows):
        # The first column stores the row for `hessian_product`.
        return self.height(x, rows), np.column_stack([rows, x])

    def longest(self, step, point):
        return np.ones(len(step))

    def hessian(self, point, rows):
        return self.curvature(point[:, 1:], rows)

    def hessian_product(self, point, v):
        hessian = self.curvature(point[:, 1:], point[:, 0].astype(int))
        return np.einsum("ijk,ik->ij", hessian, v)


class LogSumExp(_Smooth):
    """``logsumexp(A x + b) + ridge |x|^2 / 2 - <c, x>``; one ``A, b, c`` per row."""

    def __init__(self, rng, n, m, n_terms=12, scale=1.0, ridge=0.1):
        self.a = scale * rng.normal(size=(n, n_terms, m))
        self.b = 3 * rng.normal(size=(n, n_terms))
        self.c = rng.normal(size=(n, m))
        self.ridge = ridge

    def _energy(self, x, rows):
        return np.einsum("ijk,ik->ij", self.a[rows], x) + self.b[rows]

    def height(self, x, rows):
        quadratic = 0.5 * self.ridge * (x**2).sum(axis=1)
        linear = (self.c[rows] * x).sum(axis=1)
        return logsumexp(self._energy(x, rows), axis=1) + quadratic - linear

    def gradient_at(self, x, rows):
        p = softmax(self._energy(x, rows), axis=1)
        mean = np.einsum("ij,ijk->ik", p, self.a[rows])
        return mean + self.ridge * x - self.c[rows]

    def curvature(self, x, rows):
        p = softmax(self._energy(x, rows), axis=1)
        mean = np.einsum("ij,ijk->ik", p, self.a[rows])
        second = np.swapaxes(self.a[rows] * p[:, :, None], 1, 2) @ self.a[rows]
        return (
            second
            - mean[:, :, None] * mean[:, None, :]
            + self.ridge * np.eye(x.shape[1])
        )


class Logistic(LogSumExp):
    """``sum log(1 + exp(A x + b)) + ridge |x|^2 / 2 - <c, x>``."""

    def height(self, x, rows):
        quadratic = 0.5 * self.ridge * (x**2).sum(axis=1)
        linear = (self.c[rows] * x).sum(axis=1)
        loss = np.logaddexp(0, self._energy(x, rows)).sum(axis=1)
        return loss + quadratic - linear

    def gradient_at(self, x, rows):
        p = expit(self._energy(x, rows))
        return np.einsum("ij,ijk->ik", p, self.a[rows]) + self.ridge * x - self.c[rows]

    def curvature(self, x, rows):
        p = expit(self._energy(x, rows))
        weighted = self.a[rows] * (p * (1 - p))[:, :, None]
        second = np.swapaxes(weighted, 1, 2) @ self.a[rows]
        return second + self.ridge * np.eye(x.shape[1])


def minimum_by_scipy(problem, row, m):
    """Compute the minimum of one row by SciPy's trust-region Newton method."""
    rows = np.array([row])

    def gradient(x):
        return problem.gradient_at(x[None], rows)[0]

    def hessian(x):
        return problem.curvature(x[None], rows)[0]

    x = minimize(
        lambda x: problem.height(x[None], rows)[0],
        np.zeros(m),
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-9},
    ).x
    # Versions of SciPy stop at different distances, which a last step removes.
    return x - np.linalg.solve(hessian(x), gradient(x))


# From 129 variables on, each Cholesky factor of the dense method serves several steps.
@pytest.mark.parametrize("make", [LogSumExp, Logistic])
@pytest.mark.parametrize(
    "solver, n, m", [*((solver, 6, 5) for solver in SOLVERS), (newton_dense, 3, 140)]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_minimum_is_that_of_scipy(seed, solver, n, m, make):
    problem = make(np.random.default_rng(seed), n=n, m=m)
    solution = solver(problem, np.zeros((n, m)), tol=1e-9, max_iter=200)
    assert solution.converged.all()
    for row in range(n):
        expected = minimum_by_scipy(problem, row, m)
        # Strong convexity: |x - minimum| <= |gradient(x)| / ridge in Euclidean norm.
        furthest = 1e-9 * np.sqrt(m) / problem.ridge
        assert np.linalg.norm(solution.x[row] - expected) <= furthest


def test_factors_have_double_precision_if_single_precision_fails():
    # The smallest curvature is 1e-9 of the largest curvature.
    problem = LogSumExp(np.random.default_rng(0), n=2, m=140, n_terms=300, ridge=0.0)
    problem.c = problem.a.mean(axis=1)
    mixed = np.linalg.qr(np.random.default_rng(1).normal(size=(140, 140)))[0]
    mixed = (mixed * np.geomspace(3e-5, 1, 140)) @ mixed.T
    plain = newton_dense(problem, np.zeros((2, 140)), tol=1e-10, max_iter=200)
    problem.a, problem.c = problem.a @ mixed, problem.c @ mixed
    solution = newton_dense(problem, np.zeros((2, 140)), tol=1e-12, max_iter=200)
    assert plain.converged.all()
    assert solution.converged.all()
    assert_allclose(solution.x @ mixed, plain.x, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_solved_independently(seed, solver):
    # The rows differ in difficulty, so that they leave the batch one after the other.
    rng = np.random.default_rng(seed)
    problem = LogSumExp(rng, n=6, m=4)
    problem.a *= np.geomspace(0.1, 10, 6)[:, None, None]
    together = solver(problem, np.zeros((6, 4)), tol=1e-8, max_iter=200)
    assert together.converged.all()
    assert len(set(together.n_iter)) > 1
    for row in range(6):
        alone = _only(problem, row)
        single = solver(alone, np.zeros((1, 4)), tol=1e-8, max_iter=200)
        assert single.n_iter[0] == together.n_iter[row]
        assert_allclose(single.x[0], together.x[row], atol=1e-12)


def _only(problem, row):
    single = object.__new__(type(problem))
    single.a, single.b, single.c = (
        part[row : row + 1] for part in (problem.a, problem.b, problem.c)
    )
    single.ridge = problem.ridge
    return single


@pytest.mark.parametrize("seed", SEEDS)
def test_converged_starts_take_no_step(seed):
    problem = LogSumExp(np.random.default_rng(seed), n=5, m=4)
    solved = newton_cg(problem, np.zeros((5, 4)), tol=1e-9, max_iter=100)
    start = np.where(np.arange(5)[:, None] % 2, solved.x, 0.0)
    again = newton_cg(problem, start, tol=1e-6, max_iter=100)
    assert_array_equal(again.n_iter[1::2], 0)
    assert_array_equal(again.x[1::2], start[1::2])
    assert (again.n_iter[::2] > 0).all()
    assert again.converged.all()


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
@pytest.mark.parametrize("seed", SEEDS)
def test_dense_newton_continues_beyond_tol(seed, tol):
    # Newton's method squares the error, so one additional step gives many digits.
    problem = LogSumExp(np.random.default_rng(seed), n=5, m=4)
    start = np.zeros((5, 4))
    coarse = newton_dense(problem, start, tol=tol, max_iter=100)
    fine = newton_dense(problem, start, tol=1e-12, max_iter=100)
    assert coarse.converged.all()
    assert (coarse.residual < 0.1 * tol).all()
    assert_allclose(coarse.x, fine.x, atol=0.1 * tol)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_reaching_max_iter_is_reported(max_iter, solver):
    problem = LogSumExp(np.random.default_rng(0), n=4, m=5, scale=3.0)
    solution = solver(problem, np.zeros((4, 5)), tol=1e-10, max_iter=max_iter)
    assert not solution.converged.any()
    assert (solution.residual > 1e-10).all()
    assert_array_equal(solution.n_iter, max_iter)


@pytest.mark.parametrize("solver", SOLVERS)
def test_unreachable_tolerance_ends_without_convergence(solver):
    # No residual is below a negative tolerance, so rows leave when they stall.
    problem = LogSumExp(np.random.default_rng(0), n=4, m=5)
    solution = solver(problem, np.zeros((4, 5)), tol=-1.0, max_iter=10_000)
    assert not solution.converged.any()
    assert (solution.residual < 1e-12).all()
    assert (solution.n_iter < 200).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("distance", [1.0, 10.0, 1e3])
def test_rows_with_decreasing_objective_are_not_stopped(distance, solver):
    # Steps from a distant start are damped: the value decreases in every step, but the
    # residual often does not.
    problem = Logistic(np.random.default_rng(0), n=4, m=5, ridge=1e-3)
    start = distance * np.random.default_rng(1).normal(size=(4, 5))
    solution = solver(problem, start, tol=1e-8, max_iter=500)
    assert solution.converged.all(), solution.residual
    for row in range(4):
        expected = minimum_by_scipy(problem, row, 5)
        assert_allclose(solution.x[row], expected, atol=1e-4)


def test_dense_newton_solves_a_badly_scaled_problem():
    # Units of the variables differ by 1e8, so the condition number is 1e16.
    problem = LogSumExp(np.random.default_rng(0), n=3, m=4, ridge=0.0)
    units = np.geomspace(1e-4, 1e4, 4)
    # Without a ridge, a minimum requires c inside the convex hull of the rows of A.
    problem.c = problem.a.mean(axis=1)
    plain = newton_dense(problem, np.zeros((3, 4)), tol=1e-10, max_iter=100)
    problem.a, problem.c = problem.a * units, problem.c * units
    scaled = newton_dense(problem, np.zeros((3, 4)), tol=1e-8, max_iter=100)
    assert plain.converged.all()
    assert scaled.converged.all()
    assert_allclose(scaled.x * units, plain.x, rtol=1e-4, atol=1e-4)


class _Broken(LogSumExp):
    """A problem whose gradient is NaN in the last row."""

    def gradient(self, x, point, rows):
        gradient, residual = super().gradient(x, point, rows)
        broken = np.isin(rows, [3])
        return gradient, np.where(broken, np.nan, residual)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_nan_residual_is_not_convergence(solver):
    problem = _Broken(np.random.default_rng(0), n=4, m=3)
    solution = solver(problem, np.zeros((4, 3)), tol=1e-8, max_iter=100)
    assert np.isnan(solution.residual[3])
    assert_array_equal(solution.converged, [True, True, True, False])
