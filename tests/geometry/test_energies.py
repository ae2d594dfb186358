"""Interaction energies: the divergence from uniform as a sum over the orders."""

import numpy as np
import pytest
from _oracles import (
    empty_cells,
    mixed_projection_slow,
    order_slow,
    random_poset,
    random_prob,
    tensor_leq,
)
from numpy.testing import assert_allclose

from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    energy_decomposition,
    geodesic_energy,
    goodness_of_fit,
    interaction_energy,
    prob_from_theta,
)

SEEDS = [0, 1, 2]
SHAPES = [(5,), (3, 4), (2, 3, 4), (2, 2, 2, 3)]
T = np.array([0.0, 0.1, 0.5, 0.8, 1.0])


def kl_slow(p, q):
    positive = p > 0
    return float(np.sum(p[positive] * np.log(p[positive] / q[positive])))


def entropy(p):
    return -kl_slow(p, np.ones_like(p))


def separable(rng, shape, concentration=1.0):
    """Draw a product of marginals; small concentrations give nearly empty cells."""
    p = np.ones(())
    for length in shape:
        p = np.multiply.outer(p, random_prob(rng, (length,), None, concentration))
    return p


def in_base(rng, poset, order, n_rows=None):
    """Draw a distribution without interactions above ``order``."""
    lead = () if n_rows is None else (n_rows,)
    theta = rng.normal(size=(*lead, *poset.shape)) * (poset.order <= order)
    return prob_from_theta(theta, poset)


def poset_with_orders(seed, n_elements):
    """Draw a poset with elements of order above 2, and return its order relation."""
    rng = np.random.default_rng([seed, n_elements])
    poset, leq = random_poset(rng, n_elements, density=4 / n_elements)
    assert order_slow(leq).max() > 2
    return rng, poset, leq


# --- sums over the orders ---------------------------------------------------------


@pytest.mark.parametrize("concentration", [1.0, 0.2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_parts_of_a_tensor_sum_to_the_total_energy(seed, shape, concentration):
    # The Pythagorean theorem: Amari 2016, section 1.6.
    p = random_prob(np.random.default_rng(seed), shape, 3, concentration)
    parts = energy_decomposition(p, TensorPoset(shape))
    whole = [np.log(row.size) - entropy(row) for row in p]
    assert parts.shape == (3, len(shape))
    assert parts.min() >= -1e-12
    assert_allclose(parts.sum(axis=-1), whole, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_elements", [20, 100, 200])
@pytest.mark.parametrize("seed", SEEDS)
def test_parts_of_a_poset_sum_to_the_total_energy(seed, n_elements):
    rng, poset, leq = poset_with_orders(seed, n_elements)
    p = random_prob(rng, (n_elements,), None, 0.5)
    top = order_slow(leq).max()
    # Each level costs a projection, so only a few levels are tested.
    levels = [1, 2, *range(4, top, 8)]
    parts = energy_decomposition(p, poset, levels)
    assert parts.shape == (len(levels) + 1,)
    assert_allclose(parts.sum(), np.log(n_elements) - entropy(p), atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_empty_cells_leave_the_sum_exact(seed):
    rng = np.random.default_rng(seed)
    p = empty_cells(rng, random_prob(rng, (3, 4, 4)), 0.1)
    assert (p == 0).any()
    parts = energy_decomposition(p, TensorPoset((3, 4, 4)), [1])
    assert_allclose(parts.sum(), np.log(48) - entropy(p), atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_are_divergences_of_a_generic_optimiser(seed):
    rng, poset, leq = poset_with_orders(seed, 30)
    p, uniform = random_prob(rng, (30,)), np.full(30, 1 / 30)
    order = order_slow(leq)
    points = [uniform]
    for level in (1, 2):
        matched = (order >= 1) & (order <= level)
        points.append(mixed_projection_slow(p, uniform, matched, leq))
    points.append(p)
    expected = [kl_slow(b, a) for a, b in zip(points, points[1:], strict=False)]
    assert_allclose(energy_decomposition(p, poset, [1, 2]), expected, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_energy_beyond_an_order_decreases_with_the_order(seed):
    poset = TensorPoset((2, 3, 2, 2))
    p = random_prob(np.random.default_rng(seed), poset.shape)
    energies = [interaction_energy(p, poset, order) for order in range(5)]
    assert (np.diff(energies) < 0).all()
    assert energies[4] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_energy_beyond_order_one_is_the_total_correlation(seed, shape):
    p = random_prob(np.random.default_rng(seed), shape, None, 0.5)
    d = len(shape)
    marginals = [p.sum(axis=tuple(j for j in range(d) if j != k)) for k in range(d)]
    expected = sum(map(entropy, marginals)) - entropy(p)
    assert interaction_energy(p, TensorPoset(shape)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_energy_beyond_mode_sets_is_conditional_information(seed):
    # The model has (0, 1) and (1, 2), so it lacks the dependence of 0 and 2 given 1.
    p = random_prob(np.random.default_rng(seed), (3, 2, 4))
    expected = (
        entropy(p.sum(axis=2))
        + entropy(p.sum(axis=0))
        - entropy(p.sum(axis=(0, 2)))
        - entropy(p)
    )
    found = interaction_energy(p, TensorPoset((3, 2, 4)), [(0, 1), (1, 2)])
    assert found == pytest.approx(expected, abs=1e-10)


def test_energy_of_rows_is_that_of_each_row():
    poset = TensorPoset((2, 2, 3))
    p = random_prob(np.random.default_rng(0), poset.shape, 8).reshape(4, 2, 2, 2, 3)
    energies = interaction_energy(p, poset)
    assert energies.shape == energy_decomposition(p, poset).shape[:-1] == (4, 2)
    for row in np.ndindex(4, 2):
        assert_allclose(energies[row], interaction_energy(p[row], poset), rtol=1e-12)
    assert interaction_energy(p.tolist(), poset).tolist() == energies.tolist()


# --- no interaction -------------------------------------------------------------


@pytest.mark.parametrize("concentration", [1.0, 0.1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_separable_data_have_no_energy(seed, shape, concentration):
    # Ghalamkari, Sugiyama, Kawahara, NeurIPS 2023: one-body is rank one.
    p = separable(np.random.default_rng(seed), shape, concentration)
    assert abs(interaction_energy(p, TensorPoset(shape))) < 1e-12


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kind", ["tensor", "poset"])
@pytest.mark.parametrize("seed", SEEDS)
def test_energy_is_zero_only_on_the_base(seed, kind, order):
    rng, poset, _ = poset_with_orders(seed, 40)
    poset = TensorPoset((2, 3, 2, 2)) if kind == "tensor" else poset
    inside = in_base(rng, poset, order, 3)
    assert np.abs(interaction_energy(inside, poset, order)).max() < 1e-12
    outside = in_base(rng, poset, order + 1, 3)
    assert interaction_energy(outside, poset, order).min() > 1e-8


@pytest.mark.parametrize("seed", SEEDS)
def test_parity_has_energy_of_the_highest_order_only(seed):
    # Every proper marginal of a parity is uniform.
    strength = np.random.default_rng(seed).uniform(0.1, 0.9)
    parity = (-1.0) ** np.indices((2, 2, 2, 2)).sum(axis=0)
    p = (1 + strength * parity) / 16
    parts = energy_decomposition(p, TensorPoset((2, 2, 2, 2)))
    whole = np.log(16) - entropy(p)
    assert_allclose(parts, [0, 0, 0, whole], atol=1e-12)


# --- geodesics ------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kind", ["tensor", "poset"])
@pytest.mark.parametrize("seed", SEEDS)
def test_energy_stays_zero_on_the_e_geodesic_only(seed, kind, order):
    # An e-flat base contains the e-geodesics of its points, but no mixtures (Amari
    # 2016, section 2.4).
    rng, poset, _ = poset_with_orders(seed, 40)
    poset = TensorPoset((2, 3, 2, 2)) if kind == "tensor" else poset
    p, q = in_base(rng, poset, order, 2)
    e_energy, m_energy = geodesic_energy(p, q, T, poset, order)
    assert np.abs(e_energy).max() < 1e-12
    assert np.abs(m_energy[[0, -1]]).max() < 1e-12
    assert m_energy[1:-1].min() > 1e-5


# --- levels ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_levels_can_be_masks_of_any_nested_sets(seed):
    rng = np.random.default_rng(seed)
    leq, poset = tensor_leq((3, 4)), TensorPoset((3, 4))
    inner = np.zeros((3, 4), bool)
    inner[::2, 1::2] = True
    outer = inner | (rng.random((3, 4)) < 0.5)
    p, uniform = random_prob(rng, (3, 4)), np.full(12, 1 / 12)
    free = [mask.ravel() & (np.arange(12) > 0) for mask in (inner, outer)]
    a, b = (mixed_projection_slow(p.ravel(), uniform, m, leq) for m in free)
    expected = [kl_slow(a, uniform), kl_slow(b, a), kl_slow(p.ravel(), b)]
    found = energy_decomposition(p, poset, [inner, outer])
    assert_allclose(found, expected, atol=1e-9)
    assert_allclose(
        interaction_energy(p, poset, inner, upper=outer), expected[1], atol=1e-9
    )


def test_levels_accept_empty_masks_and_lists_of_elements():
    # The bottom of this poset is its last element.
    poset, p = Poset.from_relations(3, [(2, 0), (2, 1)]), [0.5, 0.2, 0.3]
    none = interaction_energy(p, poset, np.zeros(3, bool))
    assert none == interaction_energy(p, poset, 0)
    first = interaction_energy(p, poset, np.array([0]))
    assert first == interaction_energy(p, poset, np.array([True, False, False])) < none
    assert goodness_of_fit([5, 2, 3], poset, np.array([0])).n_params == 1


@pytest.mark.parametrize(
    "levels", [[2, 1], [1, [(0, 1)]], [[(0,), (1, 2)], [(0, 1), (2,)]]], ids=str
)
def test_levels_that_are_not_nested_are_rejected(levels):
    p = random_prob(np.random.default_rng(0), (2, 3, 2))
    with pytest.raises(ValueError):
        energy_decomposition(p, TensorPoset((2, 3, 2)), levels)


def test_unconverged_projections_raise_an_error():
    p = random_prob(np.random.default_rng(0), (4, 4, 4), None, 0.1)
    with pytest.raises(RuntimeError):
        interaction_energy(p, TensorPoset((4, 4, 4)), 2, max_iter=1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lead", [(5,), (2, 3)])
def test_geodesic_energies_of_a_stack_are_those_of_its_rows(lead, seed):
    rng, poset = np.random.default_rng(seed), TensorPoset((3, 4))
    p, q = rng.dirichlet(np.ones(12), size=(2, *lead)).reshape(2, *lead, 3, 4)
    found = geodesic_energy(p, q, T, poset)
    for row in np.ndindex(lead):
        expected = geodesic_energy(p[row], q[row], T, poset)
        for energies, energy in zip(found, expected, strict=True):
            assert energies.shape == (len(T), *lead)
            assert_allclose(energies[:, *row], energy, atol=1e-10)
    # One target for all rows of the stack.
    first = (0,) * len(lead)
    shared = geodesic_energy(p, q[first], T, poset)[0]
    assert_allclose(shared[:, *first], found[0][:, *first], atol=1e-10)
