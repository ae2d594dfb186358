"""Tables with given margins: comparisons with projections, definitions and SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sklearn_pnl.geometry import (
    RakingError,
    TensorPoset,
    interaction_mask,
    kl_divergence,
    mixed_projection,
    rake_array,
)

CASES = [
    ((4, 5), [(0,), (1,)]),
    ((3, 4, 5), [(0, 1), (0, 2), (1, 2)]),
    ((3, 4, 5), [(2, 0), (1,)]),
    ((3, 4, 2), [(0,), (1,), (2,)]),
    ((2, 3, 2, 3), [(0, 1), (1, 2), (3, 2)]),
    ((3, 4), [(0,)]),
    ((3, 4), [()]),
]


def margin_slow(table, modes):
    """Sum over the other modes by definition, with axes in the order of ``modes``."""
    out = np.zeros([table.shape[k] for k in modes])
    for cell in np.ndindex(*table.shape):
        out[tuple(cell[k] for k in modes)] += table[cell]
    return out


def margins_of(tables, sets):
    return {m: np.array([margin_slow(t, m) for t in tables]) for m in sets}


def random_problem(shape, sets, seed, n=4, empty=0.0):
    """Draw tables, and return margins of other tables with the same zeros."""
    rng = np.random.default_rng(seed)
    tables = rng.gamma(0.7, size=(n, *shape)) + 1e-3
    targets = 30 * rng.gamma(0.7, size=(n, *shape)) + 1e-3
    zero = rng.random(tables.shape) < empty
    tables[zero] = targets[zero] = 0
    return tables, margins_of(targets, sets)


# --- the answer -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape, sets", CASES)
def test_margins_are_satisfied_and_the_ratio_is_a_product(shape, sets, seed):
    # Csiszar 1975, theorem 3.1: the margins and the product form define the
    # I-projection.
    tables, margins = random_problem(shape, sets, seed)
    found = rake_array(tables, margins, n_modes=len(shape), tol=1e-11)
    for modes, margin in margins.items():
        mass = margin.sum(axis=tuple(range(1, margin.ndim)), keepdims=True)
        got = margins_of(found.tables, [modes])[modes]
        assert np.abs((got - margin) / mass).max() <= 1e-11
    indicators = np.vstack([_indicators(shape, modes) for modes in sets])
    ratio = np.log(found.tables / tables).reshape(len(tables), -1)
    fitted = np.linalg.lstsq(indicators.T, ratio.T, rcond=None)[0]
    np.testing.assert_allclose(indicators.T @ fitted, ratio.T, atol=1e-9)


def _indicators(shape, modes):
    cells = np.stack([np.ravel(i) for i in np.indices(shape)], axis=1)[:, list(modes)]
    levels = np.unique(cells, axis=0)
    return (levels[:, None] == cells[None]).all(axis=2).astype(float)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape, sets", CASES[:5])
def test_raking_is_the_mixed_projection(shape, sets, seed):
    # Margins of a distribution are eta on a down-set (see `projections`).
    rng = np.random.default_rng(seed)
    start, target = rng.dirichlet(np.ones(np.prod(shape)), (2, 3)).reshape(2, 3, *shape)
    poset = TensorPoset(shape)
    mask = interaction_mask(shape, sets)
    expected = mixed_projection(target, start, mask, poset, tol=1e-10).prob
    found = rake_array(start, margins_of(target, sets), tol=1e-11)
    np.testing.assert_allclose(found.tables, expected, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_raked_tables_agree_with_slsqp(seed):
    tables, margins = random_problem((3, 3), [(0,), (1,)], seed, n=1)
    design = np.vstack([_indicators((3, 3), (0,)), _indicators((3, 3), (1,))[1:]])
    wanted = np.concatenate([margins[(0,)][0], margins[(1,)][0][1:]])
    start = np.outer(margins[(0,)][0], margins[(1,)][0]).ravel() / wanted[:3].sum()
    found = minimize(
        lambda q: float(kl_divergence(q, tables[0].ravel())),
        start,
        jac=lambda q: np.log(q / tables[0].ravel()),
        constraints={"type": "eq", "fun": lambda q: design @ q - wanted},
        bounds=[(1e-9, None)] * 9,
        options={"ftol": 1e-13, "maxiter": 500},
        method="SLSQP",
    )
    got = rake_array(tables[0], {m: v[0] for m, v in margins.items()}).tables
    np.testing.assert_allclose(got.ravel(), found.x, atol=2e-4 * wanted[:3].sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape, sets", CASES[:5])
def test_structural_zeros_are_preserved(shape, sets, seed):
    tables, margins = random_problem(shape, sets, seed, empty=0.3)
    found = rake_array(tables, margins)
    assert np.all(found.tables[tables == 0] == 0)
    assert found.residual.max() <= 1e-9
    assert found.converged.all()


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_tables_of_any_mass_converge(scale):
    tables, margins = random_problem((3, 4), [(0,), (1,)], 0)
    expected = rake_array(tables, margins).tables
    scaled = {modes: scale * margin for modes, margin in margins.items()}
    np.testing.assert_allclose(rake_array(tables, scaled).tables / scale, expected)
    np.testing.assert_allclose(rake_array(scale * tables, margins).tables, expected)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-290, 1e290, 1e300])
@pytest.mark.parametrize("shape, sets", CASES[:2])
def test_tables_near_the_floating_point_limits_converge(shape, sets, size):
    # Scaling by a power of two is exact, so the result is the scaled result for tables
    # near 1, up to the resolution of denormal numbers.
    start = np.ones(shape)
    start[0] = 3.0
    margins = {m: v[0] for m, v in random_problem(shape, sets, 0)[1].items()}
    found = rake_array(start * size, margins)
    np.testing.assert_allclose(
        found.tables, rake_array(start, margins).tables, rtol=1e-9
    )
    small = {modes: margin * 1e-300 for modes, margin in margins.items()}
    np.testing.assert_allclose(
        rake_array(start * size, small).tables * 1e300, found.tables, rtol=1e-9
    )


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-20])
@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2)])
def test_nearly_empty_cells_converge(shape, size):
    # Factors of 1e310 exceed the largest float.
    table = np.ones(shape)
    table[1] = size
    share = {(0,): [0.5, 0.5], (1,): [0.2, 0.8]}
    found = rake_array(table, share, n_modes=len(shape))
    np.testing.assert_allclose(
        found.tables.reshape(2, 2, -1).sum(axis=2), [[0.1, 0.4], [0.1, 0.4]]
    )


def test_margins_are_broadcast_and_axes_follow_their_keys():
    tables, margins = random_problem((3, 4, 5), [(0, 2), (1,)], 1)
    one = {modes: margin[0] for modes, margin in margins.items()}
    each = rake_array(tables, one).tables
    swapped = rake_array(tables, {(2, 0): one[0, 2].T, (1,): one[(1,)]}).tables
    np.testing.assert_allclose(swapped, each)
    assert rake_array(tables[0], margins).tables.shape == tables.shape
    nested = rake_array(tables.reshape(2, 2, 3, 4, 5), one)
    assert nested.residual.shape == (2, 2)
    np.testing.assert_allclose(nested.tables.reshape(tables.shape), each)


def test_redundant_margins_do_not_change_the_result():
    tables, margins = random_problem((3, 4, 5), [(0, 1), (1, 2), (1,), ()], 2)
    more = rake_array(tables, margins).tables
    fewer = rake_array(tables, {k: margins[k] for k in [(0, 1), (1, 2)]}).tables
    np.testing.assert_allclose(more, fewer)


def test_levels_and_tables_without_mass_stay_empty():
    found = rake_array(
        np.ones((2, 2, 2)), {(0,): [[1, 0], [0, 0]], (1,): [[1, 0], [0, 0]]}
    )
    np.testing.assert_array_equal(found.tables, [[[1, 0], [0, 0]], np.zeros((2, 2))])
    found = rake_array(np.ones((0, 2, 2)), {(0,): [1, 1], (1,): [1, 1]})
    assert found.tables.shape == (0, 2, 2)


@pytest.mark.parametrize("shape, sets", CASES[:5])
def test_rows_do_not_depend_on_their_neighbours(shape, sets):
    tables, margins = random_problem(shape, sets, 3, n=6, empty=0.2)
    together = rake_array(tables, margins)
    for row in range(6):
        alone = rake_array(tables[row], {modes: m[row] for modes, m in margins.items()})
        np.testing.assert_allclose(alone.tables, together.tables[row], rtol=1e-7)
        assert alone.n_iter == together.n_iter[row]


def test_margins_that_require_empty_cells_converge():
    # The I-projection is on the boundary, so the error of k sweeps is about 1 / k.
    found = rake_array([[1, 1], [1, 0]], {(0,): [1, 1], (1,): [1, 1]})
    np.testing.assert_allclose(found.tables, [[0, 1], [1, 0]], atol=1e-8)


# --- infeasible margins ---------------------------------------------------------


def test_message_names_a_cell_of_contradictory_margins():
    tables = np.ones((2, 3, 4))
    with pytest.raises(RakingError) as error:
        rake_array(np.ones((3, 4)), {(0,): np.ones(3), (1,): np.ones(4)})
    assert str(error.value) == (
        "Margin (0,) must be 1 at (0,), but the raked table has 1.333333333 (relative "
        "residual 8.3e-02, tol=1e-09). Check that the margins agree with each other, "
        "and that enough cells of the table are positive. Otherwise increase "
        "max_iter=1000."
    )
    first, second = np.ones((2, 3)), np.ones((3, 4)) / 2
    second[1] *= 2
    with pytest.raises(RakingError, match=r"Margin \(0, 1\) .* \(., 1\)"):
        rake_array(tables, {(0, 1): first, (1, 2): second})


def test_three_margins_that_share_a_mode_are_satisfied_or_rejected():
    # The margins of pairs contradict each other only in mode 0.
    rng = np.random.default_rng(0)
    t = rng.gamma(1.0, size=(3, 4, 5))
    margins = {(0, 1): t.sum(2), (0, 2): t.sum(1), (1, 2): t.sum(0)}
    assert rake_array(np.ones(t.shape), margins).converged
    margins[0, 2] = margins[0, 2] * np.array([[1.1], [0.9], [1.0]])
    with pytest.raises(RakingError):
        rake_array(np.ones(t.shape), margins)


def test_margins_with_mass_in_empty_levels_are_rejected():
    table = np.ones((2, 3))
    table[1] = 0
    with pytest.raises(RakingError):
        rake_array(table, {(0,): [1, 2], (1,): [1, 1, 1]})


def test_margins_infeasible_due_to_zeros_are_rejected():
    # The cell in row 1 would have to exceed the margin of row 1.
    with pytest.raises(RakingError):
        rake_array([[1, 0], [1, 1]], {(0,): [2, 1], (1,): [1, 2]})


def test_too_few_iterations_are_an_error():
    tables, margins = random_problem((3, 4, 5), CASES[1][1], 0)
    with pytest.raises(RakingError, match="max_iter=2") as error:
        rake_array(tables, margins, max_iter=2)
    assert error.value.result.residual.max() > 1e-9
    assert np.all(error.value.result.n_iter == 2)


@pytest.mark.parametrize(
    "tables, margins",
    [
        ([[1, -1]], {(0,): [1]}),
        ([[1, np.nan]], {(0,): [1]}),
        ([[1, 1]], {(0,): [np.inf]}),
        ([[1, 1]], {(1,): [1, 1, 1]}),
        ([[1, 1]], {(0, 0): [1, 1]}),
        ([[1, 1]], {0: [1, 1]}),
        ([[1, 1]], {(-1,): [1, 1]}),
        ([1, 1], {(1,): [1, 1]}),
        ([1, 1], {}),
        (np.ones((2, 2)), {"ab": [1, 1]}),
        (np.ones((2, 2)), {(0.5,): [1, 1]}),
        (np.ones((2, 2)), {(0,): [1, np.nan]}),
        (np.ones((2, 2)), {(0,): [1e308, 1e308]}),
        (np.full((2, 2), 1e308), {(0,): [1, 1]}),
        (np.ones((3, 4, 5)), {(0,): [1] * 3, (1,): [1] * 4}),
        (np.ones((2, 3)), {(0,): np.ones((5, 2)), (1,): np.ones((4, 3))}),
        (np.ones((2, 3)), {(0, 1): np.ones((2, 3)), (1, 0): np.ones((3, 2))}),
    ],
)
def test_invalid_input_is_rejected(tables, margins):
    with pytest.raises(ValueError):
        rake_array(tables, margins)
