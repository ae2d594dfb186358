"""theta, eta, psi and the Fisher information: round trips and derivatives."""

import numpy as np
import pytest
from _oracles import (
    eta_slow,
    finite_difference,
    fisher_slow,
    random_poset,
    random_prob,
    tensor_leq,
    tensor_relations,
    theta_slow,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    eta_from_prob,
    fisher_information,
    log_partition,
    measure_from_theta,
    prob_from_eta,
    prob_from_theta,
    theta_from_prob,
)

SEEDS = [0, 1, 2]
KINDS = ["vector", "tensor", "poset"]
# At 0.2 the smallest cells are near 1e-12.
CONCENTRATIONS = [1.0, 0.2]


def poset_and_order(kind, seed):
    """Build a poset of 12 elements and its order relation."""
    if kind == "poset":
        return random_poset(np.random.default_rng(seed), 12, density=0.2)
    shape = {"vector": (12,), "tensor": (3, 2, 2)}[kind]
    return TensorPoset(shape), tensor_leq(shape)


def free(poset):
    """Return the flat indices of all elements except the bottom."""
    return np.delete(np.arange(poset.n_elements), poset.bottom)


def with_free(theta, poset, values):
    """Replace the values of ``theta`` at all elements except the bottom."""
    theta = theta.reshape(-1).copy()
    theta[free(poset)] = values
    return theta.reshape(poset.shape)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_prob_theta_round_trip(seed, kind, concentration):
    poset, leq = poset_and_order(kind, seed)
    p = random_prob(np.random.default_rng(seed), poset.shape, 4, concentration)
    theta = theta_from_prob(p, poset)
    assert_allclose(theta.reshape(4, -1), theta_slow(p.reshape(4, -1), leq), atol=1e-9)
    assert_allclose(prob_from_theta(theta, poset), p, rtol=1e-11)
    assert_allclose(theta_from_prob(prob_from_theta(theta, poset), poset), theta)


@pytest.mark.parametrize("share_empty", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_prob_eta_round_trip(seed, kind, share_empty):
    # eta requires no logarithm, so cells may be zero.
    rng = np.random.default_rng(seed)
    poset, leq = poset_and_order(kind, seed)
    p = random_prob(rng, poset.shape, 4)
    p[rng.random(p.shape) < share_empty] = 0
    assert share_empty == 0 or (p == 0).any()
    eta = eta_from_prob(p, poset)
    assert_allclose(eta.reshape(4, -1), eta_slow(p.reshape(4, -1), leq))
    assert_allclose(prob_from_eta(eta, poset), p, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_theta_of_the_bottom_is_minus_psi(seed, kind):
    poset, _ = poset_and_order(kind, seed)
    p = random_prob(np.random.default_rng(seed), poset.shape, 3)
    theta = theta_from_prob(p, poset)
    at_bottom = theta.reshape(3, -1)[:, poset.bottom]
    assert_allclose(log_partition(theta, poset), -at_bottom)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_psi_is_the_log_sum_over_cells(seed, kind):
    poset, leq = poset_and_order(kind, seed)
    theta = np.random.default_rng(seed).normal(size=(3, *poset.shape))
    flat = theta.reshape(3, -1)[:, free(poset)]
    expected = logsumexp(flat @ leq[free(poset)], axis=1)
    assert_allclose(log_partition(theta, poset), expected)


# Sums with 1e20 lose digits; sums with the largest values overflow.
@pytest.mark.parametrize("at_bottom", [5.0, 1e20, -1e300, np.inf, np.nan])
@pytest.mark.parametrize("kind", KINDS)
def test_prob_and_psi_ignore_theta_of_the_bottom(kind, at_bottom):
    poset, _ = poset_and_order(kind, 0)
    theta = np.random.default_rng(0).normal(size=(3, *poset.shape))
    moved = theta.copy()
    moved.reshape(3, -1)[:, poset.bottom] = at_bottom
    assert_array_equal(prob_from_theta(moved, poset), prob_from_theta(theta, poset))
    assert_array_equal(log_partition(moved, poset), log_partition(theta, poset))


@pytest.mark.parametrize("size", [800.0, -800.0])
def test_large_theta_neither_overflows_nor_loses_mass(size):
    # exp(800) is infinite in float64; log-domain sums keep both finite.
    poset = TensorPoset((3,))
    theta = np.array([0.0, size, 1.0])
    assert prob_from_theta(theta, poset).sum() == pytest.approx(1)
    expected = logsumexp([0, size, size + 1])
    assert log_partition(theta, poset) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_of_psi_is_eta(seed, kind):
    # Amari 2016, section 2.1: eta = grad psi(theta).
    poset, _ = poset_and_order(kind, seed)
    p = random_prob(np.random.default_rng(seed), poset.shape)
    theta = theta_from_prob(p, poset)
    gradient = finite_difference(
        lambda x: log_partition(with_free(theta, poset, x), poset),
        theta.reshape(-1)[free(poset)],
        step=1e-5,
    )
    eta = eta_from_prob(p, poset).reshape(-1)[free(poset)]
    assert_allclose(gradient, eta, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_hessian_of_psi_is_the_fisher_information(seed, kind):
    # Amari 2016, section 2.1: G = Hess psi(theta), the derivative of eta.
    poset, _ = poset_and_order(kind, seed)
    p = random_prob(np.random.default_rng(seed), poset.shape)
    theta = theta_from_prob(p, poset)

    def eta_of(x):
        q = prob_from_theta(with_free(theta, poset, x), poset)
        return eta_from_prob(q, poset).reshape(-1)[free(poset)]

    hessian = finite_difference(eta_of, theta.reshape(-1)[free(poset)], step=1e-5)
    assert_allclose(fisher_information(p, poset), hessian, atol=1e-8)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_fisher_information_is_the_covariance_of_indicators(seed, kind, concentration):
    # Sugiyama, Nakahara and Tsuda, ICML 2017.
    rng = np.random.default_rng(seed)
    poset, leq = poset_and_order(kind, seed)
    p = random_prob(rng, poset.shape, 2, concentration)
    some = rng.permutation(poset.n_elements)[:5]
    for elements, chosen in [(free(poset), None), (some, some)]:
        expected = [fisher_slow(q.ravel(), leq, elements) for q in p]
        found = fisher_information(p, poset, chosen)
        assert_allclose(found, expected, atol=1e-14)
        assert_array_equal(found[1], fisher_information(p[1], poset, chosen))


def test_fisher_information_accepts_masks_and_indices():
    poset, rng = TensorPoset((3, 4)), np.random.default_rng(0)
    p = rng.dirichlet(np.ones(12)).reshape(3, 4)
    mask = np.zeros((3, 4), bool)
    mask[1, 2] = mask[2, 0] = True
    listed = fisher_information(p, poset, [8, 6])
    assert_array_equal(fisher_information(p, poset, [(2, 0), (1, 2)]), listed)
    assert_array_equal(fisher_information(p, poset, mask), listed[::-1, ::-1])
    assert fisher_information(p, poset, []).shape == (0, 0)
    with pytest.raises(ValueError):
        fisher_information(p, poset, mask[:2])
    with pytest.raises(ValueError):
        fisher_information(7 * p, poset)
    with pytest.raises(ValueError):
        fisher_information(p, poset, [12])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mass", [1e-3, 1.0, 2.5e4])
def test_theta_of_a_measure_contains_its_mass(kind, mass):
    poset, _ = poset_and_order(kind, 0)
    p = random_prob(np.random.default_rng(0), poset.shape, 3)
    theta = theta_from_prob(mass * p, poset)
    assert_allclose(measure_from_theta(theta, poset), mass * p, rtol=1e-11)
    # Only theta(bottom) changes, by the log of the mass.
    difference = (theta - theta_from_prob(p, poset)).reshape(3, -1)
    assert_allclose(difference[:, poset.bottom], np.log(mass), atol=1e-12)
    assert_allclose(difference[:, free(poset)], 0, atol=1e-11)


@pytest.mark.parametrize("bad", [0.0, -0.25, np.nan])
def test_theta_rejects_nonpositive_cells_by_index(bad):
    p = np.full((2, 2, 3), 1 / 6)
    p[1, 0, 2] = bad
    with pytest.raises(ValueError, match=r"\(1, 0, 2\)"):
        theta_from_prob(p, TensorPoset((2, 3)))
    diamond = Poset.from_relations(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    with pytest.raises(ValueError, match=r"\(3,\)"):
        theta_from_prob([0.25, 0.5, 0.25, bad], diamond)


def test_coordinates_of_float32_stay_float32():
    poset = TensorPoset((3, 2))
    p = random_prob(np.random.default_rng(0), (3, 2)).astype(np.float32)
    theta = theta_from_prob(p, poset)
    assert theta.dtype == eta_from_prob(p, poset).dtype == np.float32
    q = prob_from_theta(theta, poset)
    assert q.dtype == measure_from_theta(theta, poset).dtype == np.float32
    assert_allclose(q, p, rtol=1e-5)


@pytest.mark.parametrize(
    "from_theta", [prob_from_theta, measure_from_theta, log_partition]
)
@pytest.mark.parametrize("poset", [TensorPoset((2, 3)), "general"], ids=str)
def test_theta_with_overflowing_sums_is_rejected_by_row(poset, from_theta):
    # The entries are finite, but their sums are inf, or inf - inf.
    if poset == "general":
        poset = Poset.from_relations(6, tensor_relations((2, 3)))
    theta = np.zeros((3, *poset.shape))
    theta[1].reshape(-1)[1:3] = 1.5e308
    with pytest.raises(ValueError):
        from_theta(theta, poset)
    theta[1].reshape(-1)[5] = -1.7e308
    with pytest.raises(ValueError):
        from_theta(theta, poset)
