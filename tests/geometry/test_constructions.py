"""Posets built from chains, trees and products; projections for posets of any size."""

import tracemalloc

import numpy as np
import pytest
from _oracles import (
    bottom_slow,
    empty_cells,
    eta_slow,
    mixed_projection_slow,
    order_slow,
    random_poset,
    random_prob,
    random_up_set,
    tensor_leq,
    theta_slow,
)
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    boolean_lattice,
    chain_poset,
    mixed_projection,
    product_poset,
    tree_poset,
)
from sklearn_pnl.geometry.many_body.closed_forms import ClassSolver
from sklearn_pnl.geometry.many_body.newton_solvers import GeneralSolver

SEEDS = [0, 1, 2]
TRANSFORMS = ["zeta", "moebius", "eta", "eta_inverse"]


def leq_of(poset):
    """Return the order of a poset as a dense matrix."""
    return poset.zeta_matrix.toarray().T.astype(bool)


def random_parents(rng, n_elements, n_roots=1):
    """Draw the parents of a random forest, whose elements are numbered at random."""
    label = rng.permutation(n_elements)
    parents = np.full(n_elements, -1)
    for x in range(n_roots, n_elements):
        parents[label[x]] = label[rng.integers(x)]
    return parents


def ancestors_or_self(parents, x):
    found = [x]
    while parents[found[-1]] >= 0:
        found.append(parents[found[-1]])
    return found


# --- chains, trees, lattices ----------------------------------------------------


@pytest.mark.parametrize("n_elements", [1, 2, 7, 30])
def test_chain_is_the_poset_of_its_covers(n_elements):
    chain = chain_poset(n_elements)
    covers = [(x, x + 1) for x in range(n_elements - 1)]
    poset = Poset.from_relations(n_elements, covers)
    x = np.random.default_rng(0).normal(size=(3, n_elements))
    assert_array_equal(leq_of(chain), leq_of(poset))
    assert_array_equal(chain.order, poset.order)
    for transform in TRANSFORMS:
        expected = getattr(poset, transform)(x)
        assert_allclose(getattr(chain, transform)(x), expected, atol=1e-12)


@pytest.mark.parametrize("n_elements", [1, 2, 40, 200])
@pytest.mark.parametrize("seed", SEEDS)
def test_tree_element_is_above_its_ancestors_only(seed, n_elements):
    parents = random_parents(np.random.default_rng(seed), n_elements)
    tree = tree_poset(parents)
    expected = np.zeros((n_elements, n_elements), bool)
    for x in range(n_elements):
        expected[ancestors_or_self(parents, x), x] = True
    assert_array_equal(leq_of(tree), expected)
    assert tree.bottom == np.flatnonzero(parents == -1)[0]
    assert not tree.added_bottom


@pytest.mark.parametrize("n_roots", [1, 3, 30])
@pytest.mark.parametrize("seed", SEEDS)
def test_forest_gets_a_bottom_below_its_roots(seed, n_roots):
    parents = random_parents(np.random.default_rng(seed), 30, n_roots)
    forest = tree_poset(parents, add_bottom=True)
    shifted = np.r_[-1, parents + 1]
    assert forest.added_bottom
    assert forest.bottom == 0
    assert_array_equal(leq_of(forest), leq_of(tree_poset(shifted)))


@pytest.mark.parametrize("n_atoms", [1, 3, 5])
def test_boolean_lattice_is_inclusion_of_bit_sets(n_atoms):
    lattice, sets = boolean_lattice(n_atoms), range(2**n_atoms)
    expected = [[x & y == x for y in sets] for x in sets]
    assert_array_equal(leq_of(lattice), expected)
    assert_array_equal(lattice.order, [x.bit_count() for x in sets])
    assert lattice.max_order == n_atoms


# --- products -------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(4,), (5, 3), (4, 3, 3), (1, 6)], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_product_is_ordered_componentwise(seed, sizes):
    rng = np.random.default_rng(seed)
    factors = [random_poset(rng, size, density=0.4) for size in sizes]
    product = product_poset(*(poset for poset, _ in factors))
    pairs = list(np.ndindex(*sizes))
    expected = [
        [
            all(leq[a, b] for (_, leq), a, b in zip(factors, x, y, strict=True))
            for y in pairs
        ]
        for x in pairs
    ]
    assert_array_equal(leq_of(product), expected)
    assert product.bottom == bottom_slow(np.array(expected))


@pytest.mark.parametrize("shape", [(3,), (2, 4), (3, 1, 2), (2, 2, 2, 2)], ids=str)
def test_product_of_chains_is_the_tensor(shape):
    tensor = TensorPoset(shape)
    chains = product_poset(*map(chain_poset, shape))
    assert_array_equal(leq_of(chains), tensor_leq(shape))
    assert_array_equal(leq_of(product_poset(tensor)), leq_of(chains))
    assert_array_equal(chains.order, tensor.order.ravel())
    assert chains.max_order == tensor.max_order


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_codes_of_a_product_of_chains_are_those_of_the_tensor(seed, order, with_mass):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(5, 3, 2, 4))
    X[:, 0, 0, 1:] = 0
    params = {"order": order, "offset": 0.01, "tol": 1e-11, "with_mass": with_mass}
    poset = product_poset(*map(chain_poset, (3, 2, 4)))
    tensor = ManyBodyProjector(**params).fit(X)
    general = ManyBodyProjector(**params, poset=poset).fit(X.reshape(5, 24))
    codes = tensor.transform(X)
    assert_allclose(general.transform(X.reshape(5, 24)), codes, atol=1e-6)
    assert general.n_params_ == tensor.n_params_
    assert_allclose(general.reconstruction_err_, tensor.reconstruction_err_, rtol=1e-8)


# --- refusals -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parents", "name"),
    [
        ([-1, 2, 3, 1], r"\[1, 2, 3\]"),
        ([1, 2, 0], r"\[0, 1, 2\]"),
        ([-1, -1, 0], "add_bottom"),
        ([-1, 3, 0], r"\(3, 1\)"),
        ([-1, -2, 0], "parents"),
        ([-1.0, 0.0], "parents"),
        ([[-1, 0]], "parents"),
        ([], "parents"),
        (np.array([], int), "parents"),
    ],
    ids=str,
)
def test_parents_that_do_not_form_a_tree_are_rejected(parents, name):
    with pytest.raises(ValueError, match=name):
        tree_poset(parents)


def test_empty_products_and_products_with_added_bottom_are_rejected():
    with pytest.raises(ValueError):
        product_poset()
    forest = tree_poset([-1, -1], add_bottom=True)
    with pytest.raises(ValueError):
        product_poset(chain_poset(2), forest)


# --- projections on random posets -----------------------------------------------


def projection_case(seed, n_elements, local_manifold):
    """Build target, reference and matched set of a projection of the method."""
    rng = np.random.default_rng([seed, n_elements])
    poset, leq = random_poset(rng, n_elements, density=1.5 / n_elements)
    # All elements may have order 1, so a random up-set is excluded.
    order = order_slow(leq)
    low = order <= max(1, int(np.median(order)) - 1)
    high = random_up_set(rng, leq, 3)
    low &= ~high
    p = random_prob(rng, (n_elements,), concentration=0.5)
    w, mean = random_prob(rng, (n_elements,), 2)
    return (
        leq,
        poset,
        *{
            "forward": (p, np.full(n_elements, 1 / n_elements), low),
            "fiber": (w, mean, low),
            "eta": (mean, w, low),
            "theta": (w, mean, ~low),
            "neither": (p, w, rng.random(n_elements) < 0.5),
        }[local_manifold],
    )


KINDS = ["forward", "fiber", "eta", "theta", "neither"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_elements", [10, 80, 200])
@pytest.mark.parametrize("seed", SEEDS)
def test_projection_on_a_poset_agrees_with_a_generic_optimiser(seed, n_elements, kind):
    leq, poset, target, reference, matched = projection_case(seed, n_elements, kind)
    not_bottom = np.arange(n_elements) != poset.bottom
    on, off = matched & not_bottom, ~matched & not_bottom
    assert on.any()
    assert off.any()
    expected = mixed_projection_slow(target, reference, on, leq)
    given = None if kind == "forward" else reference
    found = mixed_projection(target, given, matched, poset, tol=1e-11)
    assert found.converged
    assert_allclose(found.prob, expected, atol=1e-7)
    # Mixed coordinates (Amari 2016, section 2.8) on both sets.
    eta = eta_slow(found.prob, leq) - eta_slow(target, leq)
    assert np.abs(eta[on]).max() <= 1e-10
    theta = theta_slow(found.prob, leq) - theta_slow(reference, leq)
    assert np.abs(theta[off]).max() <= 1e-7


@pytest.mark.parametrize("with_reference", [False, True])
@pytest.mark.parametrize("kind", ["chain", "tree", "forest", "general"])
@pytest.mark.parametrize("seed", SEEDS)
def test_classes_of_cells_agree_with_the_general_route(seed, kind, with_reference):
    # Each cell has a greatest matched element below it.
    rng = np.random.default_rng(seed)
    poset = {
        "chain": lambda: chain_poset(40),
        "tree": lambda: tree_poset(random_parents(rng, 40)),
        "forest": lambda: tree_poset(random_parents(rng, 39, 3), add_bottom=True),
        # The elements of a chain in a poset that is not a tree.
        "general": lambda: random_poset(rng, 40)[0],
    }[kind]()
    n = poset.n_elements
    matched = rng.random(n) < 0.4
    if kind == "general":
        chain = np.zeros(n, bool)
        for x in np.argsort(poset.order, kind="stable"):
            above = poset.zeta_matrix[[x]].toarray()[0].astype(bool)
            chain[x] = above[chain].all()
        matched = chain
    target = np.array([empty_cells(rng, p, 0.2) for p in random_prob(rng, (n,), 3)])
    reference = random_prob(rng, (n,), 3) if with_reference else None
    matched[poset.bottom] = False
    greatest = poset.greatest_below(np.flatnonzero(matched))
    found = ClassSolver(poset, matched, greatest).project(target, reference)
    solver = GeneralSolver(poset, matched)
    general = solver.project(target, reference, tol=1e-11, max_iter=300)
    assert found.converged.all()
    assert_allclose(found.prob, general.prob, atol=1e-9)


def test_a_long_chain_is_solved_without_a_dense_matrix():
    # A dense factor for 2,150 free elements would need too much memory.
    rng = np.random.default_rng(0)
    poset = chain_poset(4300)
    target = empty_cells(rng, random_prob(rng, (4300,)), 0.2)
    found = mixed_projection(target, None, rng.random(4300) < 0.5, poset)
    assert found.converged
    assert found.n_iter == 0


# --- memory -----------------------------------------------------------------------


def test_a_tree_needs_memory_for_its_relations_only():
    n = 2**12 - 1
    parents = [-1, *((i - 1) // 2 for i in range(1, n))]
    tracemalloc.start()
    poset = tree_poset(parents)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Element i has the ancestors of a heap.
    assert poset.zeta_matrix.nnz == sum(int(np.log2(i + 1)) + 1 for i in range(n))
    assert peak < 100 * poset.zeta_matrix.nnz


@pytest.mark.parametrize("n_atoms", [1, 5, 10])
def test_products_store_no_zeros(n_atoms):
    tracemalloc.start()
    zeta = boolean_lattice(n_atoms).zeta_matrix
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert zeta.nnz == len(zeta.data) == 3**n_atoms
    assert peak < 100 * 3**n_atoms + 2**20
