"""Projections on equations, intervals and bounds: comparisons with SciPy and theory."""

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import LinearConstraint, linprog, minimize
from scipy.sparse import csr_array

from sklearn_pnl.geometry import kl_divergence, linear_projection
from sklearn_pnl.geometry.convex.reach import box_reach


def random_coefficients(rng, c, d):
    if rng.random() < 0.3:
        return rng.normal(size=(c, d))
    a = rng.choice([0, 1, -1, 2, 0.5], size=(c, d), p=[0.4, 0.3, 0.15, 0.1, 0.05])
    a[~a.any(axis=1), rng.integers(d)] = 1
    return a


def random_ranges(rng, m0):
    """Draw no bounds, upper bounds, both bounds, or both bounds with fixed cells."""
    kind, spread = rng.integers(4), m0.mean()
    floor, ceiling = np.zeros(m0.shape), np.full(m0.shape, np.inf)
    if kind >= 1:
        ceiling = m0 + rng.gamma(0.5, size=m0.shape) * spread
    if kind >= 2:
        floor = np.maximum(m0 - rng.gamma(0.5, size=m0.shape) * spread, 0)
    if kind == 3:
        floor = np.where(rng.random(m0.shape) < 0.2, ceiling, floor)
    return floor, ceiling


def random_problem(rng):
    """Draw a measure, and equations, intervals and bounds that some point satisfies.

    Cells of the point are often at their bounds.
    """
    d = int(rng.integers(2, 31))
    c = int(rng.integers(1, min(d, 8) + 1))
    a = random_coefficients(rng, c, d)
    m0 = rng.gamma(1.0, size=d) * 10 ** rng.uniform(-2, 2) + 1e-6
    floor, ceiling = random_ranges(rng, m0)
    top = np.where(np.isinf(ceiling), 3 * m0.mean() + floor, ceiling)
    point = floor + (top - floor) * rng.beta(0.5, 0.5, size=d)
    if rng.random() < 0.2:
        end = np.where(rng.random(d) < 0.5, floor, top)
        point = np.where(rng.random(d) < 0.7, end, point)
    lower, kind = a @ point, rng.integers(4, size=c)
    width = 0.3 * rng.gamma(0.5, size=(2, c)) * (np.abs(a) @ point)
    upper = lower + np.where(kind == 1, width[0], 0)
    lower = np.where(kind == 2, -np.inf, lower - np.where(kind == 1, width[1], 0))
    upper[kind == 3] = np.inf
    return m0, a, lower, upper, floor, ceiling


def solve(problem, **kwargs):
    m0, a, lower, upper, floor, ceiling = problem
    return linear_projection(
        m0[None], a, lower, upper, floor=floor, ceiling=ceiling, **kwargs
    )


def worst_violation(m, problem):
    """Return the largest violation of an equation, relative to its scale."""
    m0, a, lower, upper, floor, ceiling = problem
    assert np.all((m >= np.maximum(floor, 0)) & (m <= ceiling))
    ends = [np.where(np.isfinite(e), np.abs(e), 0) for e in (lower, upper)]
    scale = np.maximum.reduce([np.abs(a) @ np.clip(m0, floor, ceiling), *ends])
    values = a @ m
    return (np.maximum(np.maximum(lower - values, values - upper), 0) / scale).max()


def made_impossible(rng, problem):
    """Return the problem with one unreachable equation, or None."""
    m0, a, lower, upper, floor, ceiling = (np.array(part) for part in problem)
    i = int(rng.integers(len(a)))
    rest = np.delete(np.arange(len(a)), i)
    rows = np.vstack([-a[rest], a[rest]])
    ends = np.concatenate([-lower[rest], upper[rest]])
    rows, ends = rows[np.isfinite(ends)], ends[np.isfinite(ends)]
    ends = ends + 1e-9 * np.abs(ends)
    system = {"A_ub": rows, "b_ub": ends} if len(rows) else {}
    bounds = np.column_stack([floor, ceiling])
    size = np.abs(a[i]) @ np.clip(m0, floor, ceiling)
    for sign in (-1, 1):
        found = linprog(sign * a[i], **system, bounds=bounds)
        if found.status == 0:
            reach = sign * found.fun
            gap = 10 ** rng.uniform(-5, 0) * max(size, abs(reach))
            ends = np.sort([reach - sign * gap, reach - sign * gap * rng.uniform(1, 2)])
            lower[i], upper[i] = ends if rng.random() < 0.5 else ends[:1].repeat(2)
            return (m0, a, lower, upper, floor, ceiling), i
    return None


# --- feasible and infeasible problems -------------------------------------------


def test_random_feasible_problems_are_solved():
    rng = np.random.default_rng(0)
    for _ in range(150):
        problem = random_problem(rng)
        found = solve(problem)
        assert found.converged.all(), found.reasons
        assert not found.reasons
        assert worst_violation(found.measure[0], problem) <= 1e-9


# --- the answer -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_solutions_agree_with_scipy(seed):
    rng = np.random.default_rng(seed)
    m0 = rng.gamma(2.0, size=5) + 0.1
    a = rng.choice([0.0, 1.0, -1.0], size=(2, 5), p=[0.2, 0.5, 0.3]) + np.eye(2, 5)
    floor, ceiling = 0.5 * m0, 1.8 * m0
    values = a @ rng.uniform(0.7 * m0, 1.5 * m0)
    lower, upper = values - [0, 0.2], values + [0, 0.1]
    found = solve((m0, a, lower, upper, floor, ceiling))
    expected = minimize(
        lambda m: float(kl_divergence(m, m0)),
        np.clip(m0, floor, ceiling),
        jac=lambda m: np.log(m / m0),
        constraints=[
            LinearConstraint(a[i : i + 1], lower[i], upper[i]) for i in range(2)
        ],
        bounds=np.column_stack([floor, ceiling]),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert worst_violation(expected.x, (m0, a, lower, upper, floor, ceiling)) < 1e-6
    np.testing.assert_allclose(found.measure[0], expected.x, atol=2e-5)


@pytest.mark.parametrize("seed", range(3))
def test_optimality_conditions(seed):
    # Karush-Kuhn-Tucker conditions: a clipped exponential tilt, and multipliers of the
    # right sign, which are 0 inside an interval.
    rng = np.random.default_rng(seed)
    for _ in range(10):
        problem = m0, a, lower, upper, floor, ceiling = random_problem(rng)
        found = solve(problem)
        y, m = found.multipliers[0], found.measure[0]
        tilt = m0 * np.exp(np.clip(y @ a, -600, 600))
        np.testing.assert_allclose(m, np.clip(tilt, floor, ceiling), rtol=1e-12)
        scale = 1e-8 * np.maximum(np.abs(a) @ np.maximum(m0, m), np.abs(a @ m))
        inequality = lower < upper
        assert np.all((a @ m <= lower + scale)[inequality & (y > 0)])
        assert np.all((a @ m >= upper - scale)[inequality & (y < 0)])


def test_pythagorean_theorem():
    # Csiszar 1975, theorem 2.2: KL(q, m0) = KL(q, m) + KL(m, m0) for q that satisfy the
    # same equations, and >= for inequalities and bounds.
    rng = np.random.default_rng(0)
    for _ in range(20):
        m0 = rng.gamma(1.0, size=6) + 0.01
        a = rng.normal(size=(2, 6))
        q = rng.gamma(1.0, size=6) + 0.01
        m = linear_projection(m0[None], a, a @ q, a @ q, tol=1e-12).measure[0]
        total = kl_divergence(q, m) + kl_divergence(m, m0)
        assert kl_divergence(q, m0) == pytest.approx(total, rel=1e-8)
        floor, ceiling = np.minimum(q, 0.8 * m0), np.maximum(q, 1.2 * m0)
        wide = solve((m0, a, a @ q - 0.1, a @ q + 0.1, floor, ceiling)).measure[0]
        total = kl_divergence(q, wide) + kl_divergence(wide, m0)
        assert kl_divergence(q, m0) >= total - 1e-8


def test_rows_do_not_depend_on_their_neighbours():
    rng = np.random.default_rng(3)
    m0 = rng.gamma(1.0, size=(40, 9)) + 1e-3
    a = np.zeros((3, 9))
    a[0, :4], a[1, 3:6], a[2, 7:] = 1, [1, -1, 2], 1
    wanted = np.array(2 * rng.gamma(1.0, size=(40, 9)) @ a.T)
    ceiling = np.maximum(m0, 4.0)
    together = linear_projection(m0, a, wanted, wanted, ceiling=ceiling)
    for row in range(0, 40, 7):
        one = [row]
        alone = linear_projection(
            m0[one], a, wanted[one], wanted[one], ceiling=ceiling[one]
        )
        np.testing.assert_allclose(
            alone.measure[0], together.measure[row], rtol=1e-9, atol=1e-12
        )
        assert (row in together.reasons) == (0 in alone.reasons)


def test_steps_across_a_bound_do_not_oscillate():
    # One copy starts at its ceiling, so the slope has a kink at the start.
    found = linear_projection([[1.1, 1.0999]], [[1, -1]], 0, 0, ceiling=1.1, tol=1e-12)
    assert found.converged[0]
    np.testing.assert_allclose(found.measure, np.sqrt(1.1 * 1.0999), rtol=1e-12)


def test_nearly_empty_cells_converge():
    a, b = [[0.63, -0.014, -0.54]], 0.63 * 0.0364
    found = linear_projection(
        [[0.0355, 0.0018, 0.0069]], a, b, b, floor=[0.03, 0, 0], ceiling=0.0364
    )
    assert found.converged[0]
    assert found.measure[0, 1] < 1e-8


def test_redundant_equations_are_satisfied():
    m0 = np.random.default_rng(0).gamma(1.0, size=(4, 5)) + 0.1
    a = np.array([[1, 1, 1, 0, 0], [2, 2, 2, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 1, 1.0]])
    b = np.array([2, 4, 5, 3.0])
    found = linear_projection(m0, a, b, b)
    assert found.converged.all()
    once = linear_projection(m0, a[[0, 3]], b[[0, 3]], b[[0, 3]])
    np.testing.assert_allclose(found.measure, once.measure, rtol=1e-7)


@pytest.mark.parametrize("width", [0.05, 0.1, 0.5, np.inf])
def test_a_satisfied_interval_does_not_change_the_solution(width):
    income = np.array([2e3, 7e3, 34e3, 6e3])
    a = np.array([2 * income, [1, 0, 0, 0], [0, 1, 1, 0], income])
    value = a @ [0.4, 0.9, 0.2, 0.5]
    without = linear_projection(np.ones((1, 4)), a[:3], *2 * [value[:3]], ceiling=1)
    room = np.array([0, 0, 0, width])
    ends = value - room * value[3], value + room * value[3]
    found = linear_projection(np.ones((1, 4)), a, *ends, ceiling=1)
    assert found.converged.all()
    np.testing.assert_allclose(found.measure, without.measure, rtol=1e-7)


# --- chi-square -----------------------------------------------------------------


def chi_square(m, m0):
    return float(np.sum((m - m0) ** 2 / (2 * m0)))


def solve_chi_square(problem, **kwargs):
    return solve(problem, divergence="chi2", **kwargs)


def test_chi_square_solves_feasible_problems_and_explains_infeasible_ones():
    rng = np.random.default_rng(4)
    refused = 0
    for _ in range(25):
        problem = random_problem(rng)
        found = solve_chi_square(problem)
        assert found.converged.all(), found.reasons
        assert worst_violation(found.measure[0], problem) <= 1e-9
        impossible = made_impossible(rng, problem)
        if impossible is None or refused == 6:
            continue
        # Feasibility does not depend on the divergence.
        for found in (solve_chi_square(impossible[0]), solve(impossible[0])):
            assert not found.converged[0]
            assert found.reasons[0].startswith("E")
        refused += 1
    assert refused == 6


@pytest.mark.parametrize("seed", range(4))
def test_chi_square_of_one_equation_is_generalised_regression(seed):
    # Deville and Sarndal 1992: m0 + m0 A' (A diag(m0) A')^-1 (b - A m0).
    rng = np.random.default_rng(seed)
    for c in (1, 3):
        m0 = rng.gamma(2.0, size=(6, 9)) + 0.1
        a = rng.normal(size=(c, 9))
        b = m0 @ a.T + rng.normal(size=(6, c))
        found = linear_projection(
            m0, a, b, b, floor=-np.inf, divergence="chi2", tol=1e-12
        )
        once = linear_projection(m0, a, b, b, divergence="chi2", tol=1e-8)
        for k in range(6):
            gram = a @ np.diag(m0[k]) @ a.T
            step = a.T @ np.linalg.solve(gram, b[k] - a @ m0[k])
            expected = m0[k] * (1 + step)
            if np.all(expected > 0):
                np.testing.assert_allclose(found.measure[k], expected, rtol=1e-9)
                # Without cells at a bound, one step is exact up to rounding.
                assert once.n_iter[k] <= 1
            assert chi_square(found.measure[k], m0[k]) >= (
                chi_square(expected, m0[k]) * (1 - 1e-9)
            )


@pytest.mark.parametrize("seed", range(8))
def test_chi_square_solutions_agree_with_scipy(seed):
    rng = np.random.default_rng(seed)
    m0 = rng.gamma(2.0, size=6) + 0.1
    a = rng.choice([0.0, 1.0, -1.0], size=(2, 6), p=[0.2, 0.5, 0.3]) + np.eye(2, 6)
    floor, ceiling = 0.7 * m0, 1.3 * m0
    # Near the maximum of the first equation, some cells are at their bounds.
    values = a @ np.where(a[0] > 0, 1.299 * m0, 0.701 * m0)
    lower, upper = values - [0, 0.2], values + [0, 0.1]
    problem = m0, a, lower, upper, floor, ceiling
    found = solve_chi_square(problem, tol=1e-12)
    expected = minimize(
        lambda m: chi_square(m, m0),
        np.clip(m0, floor, ceiling),
        jac=lambda m: (m - m0) / m0,
        constraints=[
            LinearConstraint(a[i : i + 1], lower[i], upper[i]) for i in range(2)
        ],
        bounds=np.column_stack([floor, ceiling]),
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    m = found.measure[0]
    assert found.converged[0]
    assert worst_violation(expected.x, problem) < 1e-6
    np.testing.assert_allclose(m, expected.x, atol=2e-5)
    assert chi_square(m, m0) <= chi_square(expected.x, m0) + 1e-9
    assert seed in (5, 6) or np.any((m == floor) | (m == ceiling))


@pytest.mark.parametrize("seed", range(3))
def test_optimality_conditions_of_chi_square(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        problem = m0, a, lower, upper, floor, ceiling = random_problem(rng)
        found = solve_chi_square(problem)
        y, m = found.multipliers[0], found.measure[0]
        step = m0 * (1 + y @ a)
        size = m0 * (1 + np.abs(y) @ np.abs(a))
        off = np.abs(m - np.clip(step, floor, ceiling))
        assert np.all(off <= 1e-12 * (size + np.abs(m)))
        scale = 1e-8 * np.maximum(np.abs(a) @ np.maximum(m0, m), np.abs(a @ m))
        inequality = lower < upper
        assert np.all((a @ m <= lower + scale)[inequality & (y > 0)])
        assert np.all((a @ m >= upper - scale)[inequality & (y < 0)])


def test_pythagorean_theorem_of_chi_square():
    # A projection in the inner product with weights 1 / m0: equality without cells at a
    # bound, and >= otherwise.
    rng = np.random.default_rng(0)
    for _ in range(20):
        m0 = rng.gamma(1.0, size=6) + 0.01
        a, q = rng.normal(size=(2, 6)), rng.gamma(1.0, size=6) + 0.01
        m = linear_projection(
            m0[None], a, a @ q, a @ q, divergence="chi2", tol=1e-13
        ).measure[0]
        whole = np.sum((q - m0) ** 2 / m0)
        parts = np.sum((q - m) ** 2 / m0) + np.sum((m - m0) ** 2 / m0)
        assert whole >= parts * (1 - 1e-8)
        if m.min() > 1e-9:
            assert whole == pytest.approx(parts, rel=1e-8)


def test_chi_square_is_the_first_step_of_kl():
    # For small changes, the two solutions differ in the second order.
    m0 = np.random.default_rng(0).gamma(2.0, size=(3, 7)) + 0.1
    a = np.random.default_rng(1).normal(size=(2, 7))
    gaps = []
    for size in (1e-2, 1e-3):
        b = m0 @ a.T + size
        chi2, kl = (
            linear_projection(m0, a, b, b, divergence=d, tol=1e-14).measure
            for d in ("chi2", "kl")
        )
        gaps.append(np.abs(chi2 - kl).max())
    assert gaps[1] < 0.02 * gaps[0]


# --- infeasible equations -------------------------------------------------------


def test_equations_without_cells_are_satisfied_or_infeasible():
    start = [[1.0, 2.0]]
    for others, wanted in (([], []), ([[1, 1]], [6]), ([[1, 0], [0, 1]], [2, 3])):
        a = np.array([[0, 0], *others])
        found = linear_projection(start, a, [0, *wanted], [0, *wanted])
        assert found.converged.all()
        np.testing.assert_allclose(found.measure @ a[1:].T, [wanted], rtol=1e-8)
    found = linear_projection(start, [[0, 0], [1, 1]], [1, 3], [1, 3])
    assert found.reasons[0].startswith("Equation 0")


def test_reasons_contain_the_reachable_range():
    a = np.array([[1, 1, 0], [0, 1, 1.0]])
    found = linear_projection(
        np.ones((3, 3)),
        a,
        [[2, 2], [5, 5], [4, 0]],
        [[2, 2], [5, 5], [4, 1]],
        ceiling=2,
    )
    np.testing.assert_array_equal(found.converged, [True, False, False])
    assert str(found.reasons[1]) == (
        "Equation 0 must be 5, but can only reach 0 to 4. Change lower and upper, or "
        "widen floor and ceiling."
    )
    assert "max_iter" in found.reasons[2]


def test_reach_is_attained_at_the_bounds():
    rng = np.random.default_rng(0)
    a, floor = rng.normal(size=(4, 6)), rng.uniform(size=(3, 6))
    ceiling = floor + rng.uniform(size=(3, 6))
    least, most = box_reach(a, floor, ceiling)
    ends = np.array([np.where(up, ceiling, floor) for up in np.ndindex(*[2] * 6)])
    np.testing.assert_allclose(least, (ends @ a.T).min(axis=0))
    np.testing.assert_allclose(most, (ends @ a.T).max(axis=0))


@pytest.mark.parametrize(
    "change",
    [
        {"measures": [[1.0, 0.0]]},
        {"measures": [1.0, 2.0]},
        {"coefficients": [[1.0, np.nan]]},
        {"lower": 3.0},
        {"lower": np.nan},
        {"upper": [1.0, 1.0]},
        {"floor": 2.0, "ceiling": 1.0},
    ],
)
def test_invalid_input_is_rejected(change):
    good = {
        "measures": [[1.0, 1.0]], "coefficients": [[1.0, 1.0]], "lower": 1.0,
        "upper": 1.0,
    }  # fmt: skip
    with pytest.raises(ValueError):
        linear_projection(**(good | change))


@pytest.mark.parametrize("seed", range(4))
def test_sparse_and_dense_coefficients_give_the_same_result(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(6, 30)) * (rng.random((6, 30)) < 0.3)
    start = rng.gamma(2.0, size=(3, 30))
    wanted = (start * rng.uniform(0.7, 1.4, start.shape)) @ a.T
    room = rng.choice([0.0, 0.3], size=6)
    requested = wanted - room, wanted + room
    ranges = {"floor": 0.5 * start, "ceiling": 2.0 * start}
    dense = linear_projection(start, a, *requested, **ranges)
    sparse = linear_projection(start, csr_array(a), *requested, **ranges)
    assert dense.converged.all() and sparse.converged.all()
    np.testing.assert_allclose(sparse.measure, dense.measure, rtol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_linear_constraints_on_theta_are_projected_on_by_duality(seed):
    rng = np.random.default_rng(seed)
    # log p = zeta theta on tensors of shape (2, 3), with the bottom first.
    zeta = np.kron(np.tri(2), np.tri(3))
    c = np.column_stack([np.zeros(2), rng.normal(size=(2, 5))])
    p, values = rng.uniform(0.1, 1, size=6), rng.normal(size=2) / 3
    start = np.exp(zeta @ np.linalg.lstsq(c, values, rcond=None)[0])
    a = (zeta @ null_space(c)).T
    q = linear_projection(start[None], a, a @ p, a @ p, tol=1e-12).measure[0]
    np.testing.assert_allclose(c @ np.linalg.solve(zeta, np.log(q)), values, atol=1e-8)
    # Pythagoras: q is nearest to p among the measures that satisfy the constraints.
    for y in rng.normal(size=(20, len(a))):
        other = start * np.exp(y @ a)
        total = kl_divergence(p, q) + kl_divergence(q, other)
        np.testing.assert_allclose(kl_divergence(p, other), total, rtol=1e-6)
