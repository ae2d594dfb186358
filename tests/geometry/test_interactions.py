"""Families of mode sets, their masks, and the orthonormal interaction basis."""

from functools import reduce
from itertools import combinations
from math import prod

import numpy as np
import pytest
from _oracles import interaction_cells_slow, random_poset, tensor_leq, up_to_order
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl.geometry import (
    TensorPoset,
    element_mask,
    eta_from_prob,
    fisher_information,
    interaction_mask,
)
from sklearn_pnl.geometry.many_body.bases import ScaledBasis, kronecker_blocks

# The shapes include modes of length 1, and blocks of modes of more than 64 levels.
CASES = [
    ((5,), [(0,)]),
    ((3, 4), [(0,)]),
    ((3, 4), [(0, 1)]),
    ((2, 3, 4), [(0, 1), (1, 2)]),
    ((2, 3, 4), [(2, 0)]),
    ((3, 1, 4), [(0, 1), (2,)]),
    ((2, 2, 3, 2), [(0, 1, 2), (3,)]),
    ((2, 2, 3, 2), [(1, 3)]),
    ((7, 2, 2, 7, 2, 2), [(0, 1), (3, 4, 5)]),
]
ORDERS = [
    (shape, order)
    for shape in [(5,), (3, 4), (2, 3, 4), (3, 1, 4), (2, 2, 3, 2)]
    for order in range(1, len(shape) + 1)
]


@pytest.mark.parametrize(("shape", "interactions"), CASES, ids=str)
def test_mask_of_listed_interactions(shape, interactions):
    mask = interaction_mask(shape, interactions)
    assert mask.shape == shape
    cells = interaction_cells_slow(shape, interactions)
    assert_array_equal(np.flatnonzero(mask), cells)


@pytest.mark.parametrize("shape", [(2, 3, 2, 3), (4, 1, 3, 2)], ids=str)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_family_of_a_mask_contains_its_maximal_mode_sets(seed, shape):
    rng = np.random.default_rng(seed)
    used = [k for k in range(4) if shape[k] > 1]
    for _ in range(20):
        n_sets = rng.integers(1, 4)
        sets = [
            tuple(rng.permutation(used)[: rng.integers(1, 4)]) for _ in range(n_sets)
        ]
        mask = interaction_mask(shape, sets)
        family = TensorPoset(shape).family(mask)
        assert_array_equal(interaction_mask(shape, family), mask)
        if not isinstance(family, int):
            pairs = [(set(a), set(b)) for a in family for b in family if a != b]
            assert not any(a <= b for a, b in pairs)
        # One changed cell gives a family only if its set of modes has no other cell.
        cell = tuple(rng.integers(shape))
        mask[cell] ^= True
        support = [k for k in range(4) if cell[k] > 0]
        if np.prod([shape[k] - 1 for k in support]) > 1:
            assert TensorPoset(shape).family(mask) is None


@pytest.mark.parametrize(("shape", "order"), ORDERS, ids=str)
def test_mask_of_an_order_is_that_of_all_its_mode_sets(shape, order):
    mask = interaction_mask(shape, order)
    mode_sets = up_to_order(len(shape), order)
    assert_array_equal(np.flatnonzero(mask), interaction_cells_slow(shape, mode_sets))
    assert_array_equal(mask, interaction_mask(shape, mode_sets))


@pytest.mark.parametrize(("shape", "interactions"), CASES + ORDERS, ids=str)
def test_dimension_is_a_sum_of_products_of_lengths_minus_one(shape, interactions):
    # A set of modes has prod (I_k - 1) functions of its own.
    d = len(shape)
    sizes = range(1, d + 1)
    kept = [
        modes
        for modes in (m for size in sizes for m in combinations(range(d), size))
        if (isinstance(interactions, int) and len(modes) <= interactions)
        or (
            not isinstance(interactions, int)
            and any(set(modes) <= set(s) for s in interactions)
        )
    ]
    expected = sum(prod(shape[k] - 1 for k in modes) for modes in kept)
    assert ScaledBasis(shape, interactions).n_functions == expected


@pytest.mark.parametrize(("shape", "interactions"), CASES + ORDERS, ids=str)
def test_basis_is_orthonormal_and_spans_the_zeta_columns_of_the_mask(
    shape, interactions
):
    basis, size = ScaledBasis(shape, interactions), prod(shape)
    functions, one = basis.functions, np.eye(basis.n_functions)
    assert_allclose(functions @ functions.T / size, one, atol=1e-12)
    x = np.random.default_rng(0).normal(size=(3, size))
    assert_allclose(basis.analysis(x), x @ functions.T, atol=1e-12 * size)
    # The means are subtracted, because normalisation fixes the constant function.
    columns = tensor_leq(shape)[interaction_mask(shape, interactions).ravel()] * 1.0
    columns -= columns.mean(axis=1, keepdims=True)
    projected = basis.synthesis(basis.analysis(columns)) / size
    assert_allclose(projected, columns, atol=1e-12)
    # The columns are independent, so equal dimensions make the spans equal.
    assert np.linalg.matrix_rank(columns) == basis.n_functions == len(columns)


@pytest.mark.parametrize(("shape", "interactions"), CASES[:8] + ORDERS, ids=str)
def test_scaled_basis_has_unit_fisher_information_at_uniform(shape, interactions):
    # Gram = F' (diag(p) - p p') F with p = 1 / D and F = sqrt(D) times the basis.
    f = ScaledBasis(shape, interactions).functions / np.sqrt(prod(shape))
    assert_allclose(f.sum(axis=1), 0, atol=1e-12)
    # A change of basis gives the same metric in zeta columns.
    poset, elements = TensorPoset(shape), interaction_mask(shape, interactions)
    uniform = np.full(shape, 1 / poset.n_elements)
    above = eta_from_prob(f.reshape(-1, *shape), poset).reshape(len(f), -1)
    change = above[:, elements.ravel()]
    g = fisher_information(uniform, poset, np.flatnonzero(elements))
    assert_allclose(change.T @ change / poset.n_elements, g, atol=1e-12)


def test_elements_may_be_a_mask_or_listed():
    poset = TensorPoset((2, 3))
    mask = np.array([[True, True, False], [False, False, True]])
    expected = np.array([[False, True, False], [False, False, True]])  # no bottom
    for elements in (mask, mask.ravel(), [0, 1, 5], [(0, 0), (0, 1), (1, 2)]):
        assert_array_equal(element_mask(poset, elements), expected)
    # A column-major mask gives the same result, and the argument is not modified.
    assert_array_equal(element_mask(poset, np.asfortranarray(mask)), expected)
    assert mask[0, 0]
    general = random_poset(np.random.default_rng(0), 6)[0]
    chosen = [general.bottom, (general.bottom + 2) % 6]
    found = element_mask(general, chosen)
    assert_array_equal(np.flatnonzero(found), chosen[1:])


# --- invalid input ---------------------------------------------------------------


@pytest.mark.parametrize(
    "interactions",
    [0, -1, 4, [], [()], [(0, 1), ()], [(0, 3)], [(-1,)], [(1, 0, 1)], [0, 1]]
    + [[(0.0, 1.0)], [("0", "1")], "ab"],
)
def test_invalid_interactions_are_rejected(interactions):
    with pytest.raises(ValueError):
        interaction_mask((2, 3, 2), interactions)


@pytest.mark.parametrize(
    "elements",
    [
        *(np.ones((3, 2), bool), np.ones(5, bool), np.zeros((2, 3), bool)),
        *([6], [-1], [(0, 1), (1, 3)], [(0, 1, 1)], [0.5], [0], [], [1, 1, 0]),
    ],
    ids=str,
)
def test_invalid_elements_are_rejected(elements):
    with pytest.raises(ValueError):
        element_mask(TensorPoset((2, 3)), elements)


# --- long rows ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(2,) * 9, (7, 2, 2, 7, 2, 2), (5, 5, 5, 2, 2), (1, 3), (40, 40)], ids=str
)
def test_kronecker_blocks_multiply_to_the_kronecker_product(shape):
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(n, n)) for n in shape]
    blocks = kronecker_blocks(matrices)
    assert np.prod([len(block) for block in blocks]) == np.prod(shape)
    assert_allclose(reduce(np.kron, blocks), reduce(np.kron, matrices), atol=1e-12)
