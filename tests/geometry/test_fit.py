"""Goodness of fit: identities, slow oracles, and comparisons with other solvers."""

from itertools import combinations

import numpy as np
import pytest
from _oracles import (
    empty_cells,
    fisher_slow,
    indicator_design,
    interaction_cells_slow,
    random_poset,
    tensor_leq,
    up_to_order,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import lstsq, orth, pinv
from scipy.optimize import linprog
from scipy.stats import chi2, chi2_contingency
from sklearn.linear_model import PoissonRegressor

from sklearn_pnl.geometry import (
    TensorPoset,
    deviance_tests,
    goodness_of_fit,
    log_partition,
    theta_from_prob,
    theta_with_errors,
)
from sklearn_pnl.geometry.many_body.observed import model_design

SEEDS = [0, 1, 2]
SHAPE = (2, 3, 4)
# Models of three modes, including conditional independence.
MODELS = [1, 2, [(0, 1), (2,)], [(0, 2), (1, 2)], [(1, 2)], 3]


def random_counts(seed, shape=SHAPE, mean=20.0, share=0.0):
    rng = np.random.default_rng(seed)
    rates = empty_cells(rng, rng.gamma(2, size=shape), share)
    return rng.poisson(mean * rates.size * rates / rates.sum())


def sets_of(order, n_modes=3):
    return up_to_order(n_modes, order) if isinstance(order, int) else order


def cells_slow(order, shape=SHAPE):
    return interaction_cells_slow(shape, sets_of(order, len(shape)))


def sweeps_slow(counts, order, n_sweeps=3000):
    """Fit a table by iterative proportional fitting."""
    fitted = np.full(counts.shape, counts.sum() / counts.size)
    for _ in range(n_sweeps):
        before = fitted
        for modes in sets_of(order, counts.ndim):
            others = tuple(k for k in range(counts.ndim) if k not in modes)
            wanted = counts.sum(axis=others, keepdims=True)
            has = fitted.sum(axis=others, keepdims=True)
            ratio = np.divide(wanted, has, out=np.zeros_like(has), where=has > 0)
            fitted = fitted * ratio
        if np.abs(fitted - before).max() < 1e-12:
            break
    return fitted


def deviance_slow(counts, fitted):
    n, m = counts[counts > 0], fitted[counts > 0]
    return 2 * np.sum(n * np.log(n / m))


def adjusted_slow(counts, design):
    """Count the cells with positive mass in a linear programme, minus the SVD rank."""
    design = np.column_stack([np.ones(counts.size), design])
    wanted = design.T @ (counts.ravel() / counts.sum())
    largest = [
        -linprog(-unit, A_eq=design.T, b_eq=wanted, method="highs").fun
        for unit in np.eye(counts.size)
    ]
    possible = np.array(largest) > 1e-7
    return possible.sum() - np.linalg.matrix_rank(design[possible])


# --- one model ------------------------------------------------------------------


@pytest.mark.parametrize("order", MODELS, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("seed", SEEDS)
def test_statistics_are_those_of_proportional_fitting(seed, share, order):
    counts = random_counts(seed, share=share)
    fit = goodness_of_fit(counts, TensorPoset(SHAPE), order)
    # Cells that are 0 without an empty margin converge slowly in sweeps.
    tol = 1e-2 if fit.adjusted_dof < fit.dof else 1e-7
    slow = sweeps_slow(counts, order)
    assert_allclose(fit.expected, slow, atol=tol)
    assert fit.deviance == pytest.approx(deviance_slow(counts, slow), abs=tol)
    some = slow > tol
    pearson = np.sum((counts - slow)[some] ** 2 / slow[some])
    assert fit.pearson == pytest.approx(pearson, abs=10 * tol)
    assert fit.dof == counts.size - 1 - len(cells_slow(order))


@pytest.mark.parametrize("order", MODELS[:-1], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_deviance_is_that_of_a_poisson_regression(seed, order):
    counts = random_counts(seed) + 1
    design = indicator_design(SHAPE, cells_slow(order))
    model = PoissonRegressor(
        alpha=0, tol=1e-10, max_iter=1000, solver="newton-cholesky"
    )
    fitted = model.fit(design, counts.ravel()).predict(design)
    fit = goodness_of_fit(counts, TensorPoset(SHAPE), order)
    assert_allclose(fit.expected.ravel(), fitted, rtol=1e-6)
    assert fit.deviance == pytest.approx(deviance_slow(counts.ravel(), fitted))


@pytest.mark.parametrize("seed", SEEDS)
def test_independence_of_two_modes_agrees_with_the_chi_square_test(seed):
    counts = random_counts(seed, (4, 5)) + 1
    fit = goodness_of_fit(counts, TensorPoset((4, 5)), 1)
    for value, kind in ((fit.pearson, "pearson"), (fit.deviance, "log-likelihood")):
        other = chi2_contingency(counts, correction=False, lambda_=kind)
        assert value == pytest.approx(other.statistic)
        assert fit.dof == other.dof
    assert_allclose(fit.expected, other.expected_freq)
    assert fit.p_value == pytest.approx(other.pvalue)


@pytest.mark.parametrize("order", MODELS, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_adjusted_degrees_of_freedom_follow_from_cells_and_rank(seed, order):
    counts = random_counts(seed, mean=1.0, share=0.3)
    fit = goodness_of_fit(counts, TensorPoset(SHAPE), order)
    design = indicator_design(SHAPE, cells_slow(order))
    assert fit.adjusted_dof == adjusted_slow(counts, design)


@pytest.mark.parametrize("seed", SEEDS)
def test_adjusted_degrees_of_freedom_of_a_general_poset(seed):
    rng = np.random.default_rng(seed)
    poset, leq = random_poset(rng, 12, density=0.2)
    counts = rng.poisson(0.7, 12)
    counts[poset.bottom] += 1
    fit = goodness_of_fit(counts, poset, 1)
    design = leq[np.flatnonzero(poset.order == 1)].T
    assert fit.adjusted_dof == adjusted_slow(counts, design)


def test_empty_cells_with_positive_margins_reduce_degrees_of_freedom():
    # Haberman, "The Analysis of Frequency Data", 1974: two opposite corners of 2 x 2 x
    # 2 are 0, and all margins are positive, but no model of order 2 fills the two
    # cells.
    counts = np.array([[[0, 3], [2, 5]], [[4, 1], [3, 0]]])
    poset = TensorPoset((2, 2, 2))
    fit = goodness_of_fit(counts, poset, 2)
    assert fit.deviance == pytest.approx(0, abs=1e-9)
    assert_array_equal(fit.expected == 0, counts == 0)
    assert (fit.dof, fit.adjusted_dof) == (1, 0)
    theta, errors = theta_with_errors(fit.expected / fit.total, fit.total, poset, 2)
    assert np.isnan(theta).all() and np.isnan(errors).all()
    # If only one corner is 0, the model fills all cells.
    counts[0, 0, 0] = 1
    assert goodness_of_fit(counts, poset, 2).adjusted_dof == 1


@pytest.mark.parametrize(("mean", "order"), [(20.0, 2), (0.3, 2), (20.0, 3)])
def test_theta_and_errors_are_those_of_a_pseudoinverse(mean, order):
    # The cases have full rank, a smaller rank, and as many functions as cells.
    counts, poset = random_counts(4, mean=mean), TensorPoset(SHAPE)
    fit, mask = goodness_of_fit(counts, poset, order), poset.order_mask(order)
    q = (fit.expected / fit.total).ravel()
    design = np.sqrt(q)[:, None] * model_design(poset, mask).toarray()
    inverse = pinv(design, rtol=1e-11)
    known = np.abs(1 - np.diag(inverse @ design)) < 1e-6
    log_q = np.sqrt(q) * np.log(q, out=np.zeros_like(q), where=q > 0)
    errors = np.linalg.norm(inverse, axis=1) / np.sqrt(fit.total)
    wanted = [np.where(known, x, np.nan)[1:] for x in (inverse @ log_q, errors)]
    found = theta_with_errors(fit.expected / fit.total, fit.total, poset, order)
    assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_model_of_order_0_is_uniform():
    counts = random_counts(0)
    for order in (0, np.zeros(SHAPE, bool)):
        fit = goodness_of_fit(counts, TensorPoset(SHAPE), order)
        assert_allclose(fit.expected, counts.mean())
        assert fit.dof == counts.size - 1


@pytest.mark.parametrize("seed", SEEDS)
def test_elements_of_a_general_poset(seed):
    rng = np.random.default_rng(seed)
    poset, _ = random_poset(rng, 15, density=0.3)
    counts = rng.poisson(30, 15)
    fit = goodness_of_fit(counts, poset, 1)
    mask = poset.order_mask(1)
    assert_allclose(poset.eta(fit.expected)[mask], poset.eta(counts)[mask])
    parts = deviance_tests(counts, poset, "orders")
    whole = goodness_of_fit(counts, poset, 0)
    assert parts.values.sum() == pytest.approx(whole.deviance)


@pytest.mark.parametrize(
    "bad",
    [
        [[1, -2], [3, 4]],
        [[1, np.nan], [3, 4]],
        [[0, 0], [0, 0]],
        [[[1, 2], [3, 4]], [[0, 0], [0, 0]]],
        [1, 2, 3],
    ],
)
def test_invalid_counts_are_rejected(bad):
    with pytest.raises(ValueError):
        goodness_of_fit(bad, TensorPoset((2, 2)), 1)


# --- cells that cannot occur ------------------------------------------------------


def random_reference(seed, shape=SHAPE, share=0.25):
    """Draw exposures that contain zeros."""
    rng = np.random.default_rng(seed + 10)
    return rng.gamma(2.0, size=shape) * (rng.random(shape) > share)


def counts_on(reference, seed, mean=20.0):
    return np.random.default_rng(seed).poisson(mean * reference) + (reference > 0)


def design_on(reference, order):
    """Build the constant and the indicators on the cells that can occur."""
    design = indicator_design(reference.shape, cells_slow(order, reference.shape))
    return np.column_stack([np.ones(len(design)), design])[reference.ravel() > 0]


@pytest.mark.parametrize("order", MODELS[:-1], ids=str)
@pytest.mark.parametrize("kind", ["mask", "exposures"])
@pytest.mark.parametrize("seed", SEEDS)
def test_fit_with_structural_zeros_agrees_with_a_poisson_regression(seed, kind, order):
    exposures = random_reference(seed)
    reference = exposures > 0 if kind == "mask" else exposures
    counts, can = counts_on(exposures, seed), exposures > 0
    design, weights = design_on(exposures, order), (1.0 * reference)[can]
    model = PoissonRegressor(
        alpha=0, tol=1e-10, max_iter=1000, solver="newton-cholesky"
    )
    # The solver fails if columns are dependent on the cells that can occur.
    columns = orth(design[:, 1:] - design[:, 1:].mean(axis=0))
    # Rates weighted by exposures give counts that are proportional to the exposures.
    fitted = model.fit(columns, counts[can] / weights, weights).predict(columns)
    fitted = fitted * weights
    fit = goodness_of_fit(counts, TensorPoset(SHAPE), order, reference=reference)
    assert_allclose(fit.expected[can], fitted, rtol=1e-6)
    assert not fit.expected[~can].any()
    slow = deviance_slow(counts[can], fitted)
    assert fit.deviance == pytest.approx(slow, rel=1e-6, abs=1e-8)
    assert fit.dof == fit.adjusted_dof == can.sum() - np.linalg.matrix_rank(design)
    assert fit.n_params == np.linalg.matrix_rank(design) - 1
    assert f"{can.sum()} cells" in str(fit)


def test_degrees_of_freedom_of_a_separable_table_are_those_of_its_parts():
    # Bishop, Fienberg and Holland 1975, section 5.2, for blocks without common cells.
    can = np.zeros((5, 7), bool)
    can[:2, :3] = can[2:, 3:] = True
    counts = counts_on(1.0 * can, 0)
    fit = goodness_of_fit(counts, TensorPoset((5, 7)), 1, reference=can)
    parts = [chi2_contingency(block, correction=False, lambda_="log-likelihood")
             for block in (counts[:2, :3], counts[2:, 3:])]  # fmt: skip
    assert fit.dof == sum(part.dof for part in parts)
    assert fit.deviance == pytest.approx(sum(part.statistic for part in parts))


@pytest.mark.parametrize("order", [1, [(0, 1), (2,)]], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_adjusted_degrees_with_random_and_structural_zeros(seed, order):
    """Test that cells and rank are counted on the cells that can occur."""
    reference = random_reference(seed, share=0.2)
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.8 * reference)
    poset = TensorPoset(SHAPE)
    fit = goodness_of_fit(counts, poset, order, reference=reference)
    can = reference.ravel() > 0
    design = indicator_design(SHAPE, cells_slow(order))[can]
    assert fit.adjusted_dof == adjusted_slow(counts.ravel()[can], design)


@pytest.mark.parametrize("seed", SEEDS)
def test_tests_of_terms_with_structural_zeros(seed):
    poset, reference = TensorPoset(SHAPE), random_reference(seed)
    counts = counts_on(reference, seed)
    tests = deviance_tests(counts, poset, reference=reference)
    terms = list(tests.terms)
    fits = [goodness_of_fit(counts, poset, order, reference=reference)
            for order in [0, *(terms[: k + 1] for k in range(7))]]  # fmt: skip
    assert_allclose(tests.values, -np.diff([fit.deviance for fit in fits]), atol=1e-7)
    assert_array_equal(tests.dof, -np.diff([fit.dof for fit in fits]))
    assert tests.dof.sum() == np.count_nonzero(reference) - 1


@pytest.mark.parametrize("seed", SEEDS)
def test_theta_and_errors_with_structural_zeros(seed):
    poset, reference = TensorPoset((4, 5)), random_reference(seed, (4, 5))
    counts = counts_on(reference, seed)
    fit = goodness_of_fit(counts, poset, 1, reference=reference)
    can, mu = reference.ravel() > 0, fit.expected[reference > 0]
    design = tensor_leq((4, 5))[[0, *cells_slow(1, (4, 5))]].T[can] * 1.0
    assert np.linalg.matrix_rank(design) == design.shape[1]
    theta, errors = theta_with_errors(
        fit.expected / fit.total, fit.total, poset, 1, reference
    )
    slow = lstsq(design, np.log(mu / reference[reference > 0]))[0]
    assert_allclose(theta, slow[1:], atol=1e-8)
    inverse = np.linalg.inv((design.T * mu) @ design)
    assert_allclose(errors, np.sqrt(np.diag(inverse))[1:], rtol=1e-8)


@pytest.mark.parametrize(
    "reference",
    [
        np.ones((3, 2)),
        -np.ones((2, 2)),
        np.zeros((2, 2)),
        [[1, np.nan], [1, 1]],
        [[1, 0], [1, 1]],
    ],
)
def test_invalid_references_are_rejected(reference):
    poset = TensorPoset((2, 2))
    for fit in (goodness_of_fit, deviance_tests):
        with pytest.raises(ValueError):
            fit([[1, 2], [3, 4]], poset, reference=reference)


# --- theta ----------------------------------------------------------------------


@pytest.mark.parametrize("order", MODELS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_theta_and_errors_are_those_of_the_fisher_information(seed, order):
    poset, counts = TensorPoset(SHAPE), random_counts(seed) + 1
    fit = goodness_of_fit(counts, poset, order)
    p, cells = fit.expected / fit.total, cells_slow(order)
    theta, errors = theta_with_errors(p, fit.total, poset, order)
    assert_allclose(theta, theta_from_prob(p, poset).ravel()[cells], atol=1e-8)
    information = fit.total * fisher_slow(p.ravel(), tensor_leq(SHAPE), cells)
    assert_allclose(errors, np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_errors_are_those_of_differences_of_the_likelihood(seed):
    poset, counts = TensorPoset((2, 3)), random_counts(seed, (2, 3)) + 5
    cells = cells_slow(1, (2, 3))
    fit = goodness_of_fit(counts, poset, 1)
    theta, errors = theta_with_errors(fit.expected / fit.total, fit.total, poset, 1)
    eta = poset.eta(counts.astype(float)).ravel()[cells]

    def likelihood(theta):
        whole = np.zeros(6)
        whole[cells] = theta
        psi = log_partition(whole.reshape(2, 3), poset)
        return theta @ eta - fit.total * psi

    step, m = 1e-3, len(cells)
    units = step * np.eye(m)
    hessian = [
        [
            (likelihood(theta + a + b) - likelihood(theta + a - b)
             - likelihood(theta - a + b) + likelihood(theta - a - b)) / (4 * step**2)
            for b in units
        ]
        for a in units
    ]  # fmt: skip
    expected = np.sqrt(np.diag(np.linalg.inv(-np.array(hessian))))
    assert_allclose(errors, expected, rtol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_error_of_a_log_odds_ratio_is_that_of_woolf(seed):
    # Woolf, Annals of Human Genetics 19, 1955: the root of the sum of 1 / n.
    counts = random_counts(seed, (2, 2)) + 1
    theta, errors = theta_with_errors(
        counts / counts.sum(), counts.sum(), TensorPoset((2, 2)), 2
    )
    (a, b), (c, d) = np.log(counts)
    assert theta[-1] == pytest.approx(a - b - c + d)
    assert errors[-1] == pytest.approx(np.sqrt((1 / counts).sum()))


def test_theta_that_empty_cells_do_not_identify_is_nan():
    poset = TensorPoset((3, 3))
    counts = np.array([[5, 3, 2], [4, 7, 6], [1, 2, 0]])
    fit = goodness_of_fit(counts, poset, 2)
    theta, errors = theta_with_errors(fit.expected / fit.total, fit.total, poset, 2)
    # Only the greatest element depends on the last cell.
    assert_array_equal(np.isnan(theta), np.arange(1, 9) == 8)
    assert_array_equal(np.isnan(errors), np.isnan(theta))
    lifted = goodness_of_fit(counts + 1e-9 * (counts == 0), poset, 2)
    p, total = lifted.expected / lifted.total, lifted.total
    other, others = theta_with_errors(p, total, poset, 2)
    assert_allclose(theta[:-1], other[:-1], atol=1e-7)
    assert_allclose(errors[:-1], others[:-1], rtol=1e-7)
    # Without the interaction, all coordinates are identified.
    fit = goodness_of_fit(counts, poset, 1)
    theta, errors = theta_with_errors(fit.expected / fit.total, fit.total, poset, 1)
    assert np.isfinite(theta).all() and np.isfinite(errors).all()


# --- deviances ------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("seed", SEEDS)
def test_deviances_of_interactions_are_likelihood_ratios(seed, share):
    poset, counts = TensorPoset(SHAPE), random_counts(seed, share=share)
    tests = deviance_tests(counts, poset)
    terms = [*combinations(range(3), 1), *combinations(range(3), 2), (0, 1, 2)]
    assert list(tests.terms) == terms
    orders = [0, *(terms[: k + 1] for k in range(7))]
    fits = [goodness_of_fit(counts, poset, order) for order in orders]
    deviances = np.array([fit.deviance for fit in fits])
    assert_allclose(tests.values, -np.diff(deviances), atol=1e-7)
    assert_array_equal(tests.dof, -np.diff([fit.dof for fit in fits]))
    assert tests.dof.sum() == counts.size - 1
    assert_allclose(tests.p_value, chi2.sf(tests.values, tests.dof))


def test_deviances_of_levels_are_those_between_them():
    counts, poset = random_counts(0), TensorPoset(SHAPE)
    levels = [1, [(0, 1), (2,)], 2]
    tests = deviance_tests(counts, poset, levels)
    assert tests.terms == (1, [(0, 1), (2,)], 2, "rest")
    fits = [goodness_of_fit(counts, poset, level) for level in [0, *levels, 3]]
    falls = -np.diff([fit.deviance for fit in fits])
    assert_allclose(tests.values, falls, atol=1e-8)
    assert deviance_tests(counts, poset, "orders").terms == (1, 2, 3)


def test_nearly_dependent_coordinates_are_identified():
    # Two levels have nearly no counts, so that two columns of the design nearly agree.
    counts = np.array([[40.0, 1e-9, 30.0], [20.0, 1e-9, 50.0]])
    poset = TensorPoset((2, 3))
    theta, errors = theta_with_errors(counts / counts.sum(), counts.sum(), poset, 2)
    assert_allclose(theta, poset.moebius(np.log(counts)).ravel()[1:], rtol=1e-6)
    # Theta of a saturated model is a signed sum of logs, with variances 1 / count.
    signs = np.linalg.inv(np.kron(np.tri(2), np.tri(3)))[1:]
    assert_allclose(errors, np.sqrt(signs**2 @ (1 / counts.ravel())), rtol=1e-6)
