"""Completion of missing cells: theorems, and comparisons with other solvers."""

import numpy as np
import pytest
from _oracles import indicator_design, random_poset
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import PoissonRegressor

from sklearn_pnl.geometry import (
    TensorPoset,
    chain_poset,
    complete,
    interaction_mask,
    many_body_projection,
    mixed_projection,
    order_mask,
    product_poset,
    rake_array,
)
from sklearn_pnl.geometry.many_body.bases import ScaledBasis
from sklearn_pnl.geometry.many_body.newton_solvers import GeneralSolver, TiltSolver


def estimable_cells(observed, poset, matched):
    """Return the cells that the observed cells determine, and the design rank."""
    found = complete(np.ones(poset.shape), poset, matched, observed=observed)
    return found.estimable, found.rank


def exact(rng, shape, order, size=1.0):
    """Draw a measure without interactions above an order."""
    functions = functions_of(shape, order)
    v = size / np.sqrt(len(functions)) * rng.normal(size=len(functions))
    return np.exp(v @ functions).reshape(shape)


def hidden(rng, measure, share):
    """Replace some cells of a measure by NaN."""
    return np.where(rng.random(measure.shape) < share, np.nan, measure)


def functions_of(shape, order):
    """Return functions (m, D) that are orthonormal for means over cells."""
    return ScaledBasis(shape, order).functions


def weights_of(shape, order):
    """Return, for each function, the number of functions of its interaction."""
    cells = np.array(np.nonzero(interaction_mask(shape, order)))
    sizes = np.array(shape)[:, None] - 1
    return np.where(cells > 0, sizes, 1).prod(axis=0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("shape", [(4, 4, 4), (3, 2, 5), (7, 6)])
def test_a_cell_is_estimable_if_it_does_not_raise_the_rank(seed, shape):
    """Test the definition with another basis of the same functions."""
    rng, poset = np.random.default_rng(seed), TensorPoset(shape)
    matched = order_mask(poset, 2 if len(shape) > 2 else 1)
    observed = rng.random(shape) > 0.3 + 0.4 * rng.random()
    design = indicator_design(shape, np.flatnonzero(matched))
    design = np.hstack([np.ones((len(design), 1)), design])
    seen = design[observed.reshape(-1)]
    rank = np.linalg.matrix_rank(seen)
    slow = [np.linalg.matrix_rank(np.vstack([seen, row])) == rank for row in design]
    estimable, found = estimable_cells(observed, poset, matched)
    assert_array_equal(estimable.reshape(-1), slow)
    assert found == rank


@pytest.mark.parametrize("seed", range(3))
def test_estimable_cells_of_a_general_poset_by_rank(seed):
    rng = np.random.default_rng(seed)
    poset, leq = random_poset(rng, 12, 0.3)
    matched = rng.random(12) < 0.5
    matched[poset.bottom], matched[-1 if poset.bottom == 0 else 0] = False, True
    observed = rng.random(12) < 0.6
    design = np.column_stack([np.ones(12), leq.T[:, matched]])
    rank = np.linalg.matrix_rank(design[observed])
    slow = [
        np.linalg.matrix_rank(np.vstack([design[observed], row])) == rank
        for row in design
    ]
    estimable, found = estimable_cells(observed, poset, matched)
    assert_array_equal(estimable, slow)
    assert found == rank


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.1])
def test_completion_agrees_with_a_poisson_regression_on_observed_cells(seed, ridge):
    rng, shape = np.random.default_rng(seed), (4, 5, 3)
    counts = rng.poisson(exact(rng, shape, 3) * 8) + (ridge == 0)
    observed = rng.random(shape) > 0.3
    poset, seen = TensorPoset(shape), observed.reshape(-1)
    design = functions_of(shape, 2).T / np.sqrt(weights_of(shape, 2))
    # PoissonRegressor averages over cells; complete divides the sum by the mass.
    penalty = ridge * counts[observed].sum() / seen.sum()
    oracle = PoissonRegressor(alpha=penalty, tol=1e-12, max_iter=5000, solver="lbfgs")
    if ridge == 0:
        oracle.set_params(solver="newton-cholesky")
    oracle.fit(design[seen], counts.reshape(-1)[seen])
    found = complete(
        counts, poset, order_mask(poset, 2), observed=observed, ridge=ridge, tol=1e-10
    )
    some = np.ones(shape, bool) if ridge else found.estimable
    assert some[~observed].any()
    slow = oracle.predict(design).reshape(shape)
    assert_allclose(found.measure[some], slow[some], rtol=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_completion_agrees_with_the_em_algorithm(seed):
    """Test against Dempster, Laird and Rubin 1977: impute the model, and fit again."""
    rng, shape = np.random.default_rng(seed), (4, 3, 4)
    poset, measure = TensorPoset(shape), rng.gamma(2.0, size=shape) + 0.1
    given = hidden(rng, measure, 0.1)
    found = complete(given, poset, order_mask(poset, 2), tol=1e-10)
    assert found.estimable.all()
    filled = np.where(np.isnan(given), np.nanmean(given), given)
    for _ in range(200):
        model = many_body_projection(filled / filled.sum(), poset, 2, tol=1e-9).prob
        filled = np.where(np.isnan(given), model * filled.sum(), given)
    assert_allclose(found.measure[np.isnan(given)], filled[np.isnan(given)], rtol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_observed_cells_are_kept(seed):
    """Test quasi-independence (Bishop, Fienberg and Holland 1975, chapter 5)."""
    rng, shape = np.random.default_rng(seed), (5, 6)
    counts = rng.poisson(2.0, size=shape) * 1.0
    counts[:, 0] += 1
    observed = rng.random(shape) > 0.2
    observed[:, 0] = True
    poset = TensorPoset(shape)
    found = complete(counts, poset, poset.order == 1, observed=observed, tol=1e-10)
    assert found.converged
    for axis in (0, 1):
        sums = np.where(observed, found.measure, 0).sum(axis=axis)
        assert_allclose(sums, np.where(observed, counts, 0).sum(axis=axis), atol=1e-7)


@pytest.mark.parametrize(
    ("table", "order", "known"),
    [
        # The margins force the cell of row 0 and column 1 to 0.
        ([[5, 0, np.nan], [np.nan, 4, 3]], 1, [[1, 1, 0], [0, 1, 1]]),
        # A zero opposite to the missing cell, for a model without the three-way
        # interaction.
        (
            [[[0, 4], [5, 6]], [[3, 2], [7, np.nan]]],
            2,
            [[[1, 1], [1, 1]], [[1, 1], [1, 0]]],
        ),
    ],
)
def test_cells_are_not_estimable_without_a_maximum_of_the_likelihood(
    table, order, known
):
    table = np.array(table)
    poset = TensorPoset(table.shape)
    matched = order_mask(poset, order)
    found = complete(table, poset, matched)
    assert found.converged and np.array_equal(found.estimable, known)
    assert np.array_equal(np.isnan(found.measure), np.isnan(table))
    some = ~np.isnan(table)
    near = complete(table, poset, matched, ridge=1e-9).measure
    assert_allclose(found.measure[some], near[some], atol=1e-4)
    assert found.rank == matched.sum()


def test_structural_zeros_are_preserved_and_must_have_no_mass():
    rng, poset = np.random.default_rng(0), TensorPoset((4, 4))
    table = rng.gamma(1.0, size=(4, 4))
    reference = 1.0 - np.eye(4)
    with pytest.raises(ValueError, match="reference"):
        complete(table, poset, poset.order == 1, reference=reference)
    table *= reference
    found = complete(table, poset, poset.order == 1, reference=reference, tol=1e-11)
    margins = {(0,): table.sum(axis=1), (1,): table.sum(axis=0)}
    assert_allclose(found.measure, rake_array(reference, margins).tables, atol=1e-7)
    assert_array_equal(np.diag(found.measure), 0)


def test_zeros_of_a_reference_stay_in_every_projection():
    """Test all routes, including closed forms, against raking to the same sums."""
    rng, poset = np.random.default_rng(0), TensorPoset((3, 4))
    reference = rng.random((3, 4)) * (rng.random((3, 4)) > 0.3)
    target = rng.random((3, 4)) * (reference > 0)
    reference, target = reference / reference.sum(), target / target.sum()
    tilt, general = TiltSolver(poset, 1), GeneralSolver(poset, poset.order == 1)
    for solver in (tilt, general):
        found = solver.project(target, reference, tol=1e-10)
        margins = {(0,): target.sum(axis=1), (1,): target.sum(axis=0)}
        assert_allclose(found.prob, rake_array(reference, margins).tables, atol=1e-8)
    closed = mixed_projection(target, reference, poset.order == 2, poset)
    assert closed.converged
    assert_array_equal(closed.prob[reference == 0], 0)
    full = np.full((3, 4), 1 / 12)
    for matched in (poset.order == 2, poset.order >= 1):
        assert not mixed_projection(full, reference, matched, poset).converged


def test_closed_forms_of_a_chain_keep_zeros():
    poset, reference = chain_poset(4), np.array([0.5, 0.0, 0.5, 0.0])
    matched = np.array([False, False, True, False])
    found = mixed_projection(np.full(4, 0.25), reference, matched, poset)
    assert_allclose(found.prob, reference)
    matched[3] = True
    assert not mixed_projection(np.full(4, 0.25), reference, matched, poset).converged


def test_in_an_empty_margin_observed_cells_are_zero_and_missing_cells_nan():
    counts = np.array([[0.0, 0.0, 3.0], [0.0, 2.0, 1.0], [4.0, 5.0, np.nan]])
    counts[0, 0] = np.nan
    counts[:, 0] = [np.nan, 0, 0]
    poset = TensorPoset((3, 3))
    found = complete(counts, poset, poset.order == 1)
    assert_array_equal(found.measure[:, 0], [np.nan, 0, 0])
    general = product_poset(chain_poset(3), chain_poset(3))
    counts = np.array([1.0, 2.0, 0.0, 3.0, np.nan, 0.0, 2.0, 1.0, 0.0])
    found = complete(counts, general, np.isin(np.arange(9), [1, 2, 3, 6]))
    assert_array_equal(found.measure[[2, 5, 8]], 0)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_objective_after_early_stopping_is_above_the_minimum(max_iter):
    rng, shape = np.random.default_rng(0), (4, 5, 3)
    measure, ridge = rng.gamma(0.3, size=shape), 0.01
    given, poset = hidden(rng, measure, 0.3), TensorPoset(shape)
    functions, seen = functions_of(shape, 2), ~np.isnan(given).reshape(-1)

    def objective(found):
        m = given.reshape(-1)[seen]
        q = found.measure.reshape(-1)
        effects = functions @ np.log(q) / q.size
        value = -(m * np.log(q[seen])).sum() / m.sum()
        return value + ridge / 2 * (effects**2 @ weights_of(shape, 2))

    settings = {"ridge": ridge, "tol": 1e-12}
    matched = order_mask(poset, 2)
    early = complete(given, poset, matched, max_iter=max_iter, **settings)
    best = complete(given, poset, matched, **settings)
    left = objective(early) - objective(best)
    assert best.converged and left > -1e-12


def test_ridge_penalty_does_not_depend_on_the_basis():
    rng = np.random.default_rng(1)
    given = hidden(rng, rng.gamma(1.0, size=(2, 12)), 0.3)
    for order in (np.arange(12) > 0, np.arange(12) % 3 == 1):
        tensor = complete(given, TensorPoset((12,)), order, ridge=0.05, tol=1e-11)
        chain = complete(given, chain_poset(12), order, ridge=0.05, tol=1e-11)
        assert_allclose(tensor.measure, chain.measure, rtol=1e-8)
        assert tensor.estimable is None


def test_ridge_on_an_ordered_mode_penalises_differences():
    rng, n = np.random.default_rng(2), 9
    given = hidden(rng, rng.gamma(3.0, size=n), 0.3)
    seen, ridge = ~np.isnan(given), 0.01
    frequencies = np.arange(1, n)
    unit = np.sum(1 / (2 - 2 * np.cos(np.pi * frequencies / n)))

    def objective(v):
        q = np.exp(v)
        m = given[seen] / given[seen].sum()
        value = q[seen].sum() - m @ v[seen]
        return value + ridge / 2 * unit * (np.diff(v) ** 2).sum() / n

    slow = minimize(objective, np.full(n, np.log(1 / n)), tol=1e-14)
    poset = TensorPoset((n,))
    found = complete(given, poset, poset.order == 1, ridge=ridge, ordered_modes=[-1])
    assert_allclose(found.measure / np.nansum(given), np.exp(slow.x), rtol=1e-5)


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_rows_do_not_depend_on_the_others(ridge):
    rng, poset = np.random.default_rng(3), TensorPoset((3, 4, 2))
    given = hidden(rng, rng.gamma(1.0, size=(6, 3, 4, 2)) + 0.1, 0.2)
    given[4] = np.where(np.isnan(given[1]), np.nan, 2.0)
    whole = complete(given, poset, order_mask(poset, 2), ridge=ridge)
    for row, one in enumerate(given):
        alone = complete(one, poset, order_mask(poset, 2), ridge=ridge)
        assert_allclose(alone.measure, whole.measure[row], rtol=1e-7)
        assert alone.residual <= 1e-9


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_empty_input_gives_empty_output(ridge):
    poset, none = TensorPoset((2, 3)), np.empty((0, 2, 3))
    found = complete(none, poset, poset.order == 1, ridge=ridge)
    assert found.measure.shape == (0, 2, 3)
    assert found.converged.shape == (0,)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"measures": np.full((2, 3), np.nan)}, "measures .* row 0"),
        ({"measures": np.zeros((2, 3))}, "measures .* row 0"),
        ({"measures": -np.ones((2, 3))}, r"measures .* \(0, 0\)"),
        ({"measures": np.full((2, 3), np.inf)}, r"measures .* \(0, 0\)"),
        ({"measures": np.ones((3, 2))}, "measures"),
        ({"reference": -np.ones((2, 3))}, r"reference .* \(0, 0\)"),
        ({"ridge": -1}, "ridge"),
        ({"ridge": np.inf}, "ridge"),
        ({"observed": np.full((2, 3), np.nan)}, "observed"),
        ({"matched": np.full((2, 3), 2)}, "matched"),
        ({"ordered_modes": [2], "ridge": 1}, "ordered_modes"),
        ({"matched": np.ones(6, bool)}, "matched"),
        ({"matched": np.zeros((2, 3), bool)}, "matched"),
        ({"matched": np.eye(2, 3, 2, bool), "ordered_modes": [0]}, "ordered_modes"),
    ],
)
def test_invalid_input_is_rejected(change, name):
    poset = TensorPoset((2, 3))
    given = {"measures": np.ones((2, 3)), "poset": poset, "matched": poset.order == 1}
    with pytest.raises((IndexError, ValueError), match=name):
        complete(**given | change)
