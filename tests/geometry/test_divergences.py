"""Kullback-Leibler divergence and geodesics."""

import math

import numpy as np
import pytest
from _oracles import empty_cells, random_poset, random_prob
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl.geometry import (
    TensorPoset,
    e_geodesic,
    eta_from_prob,
    kl_divergence,
    m_geodesic,
    theta_from_prob,
)

SEEDS = [0, 1, 2]


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        ([0.3, 0.7], [0.3, 0.7], 0.0),
        # Bernoulli: p log(p/q) + (1-p) log((1-p)/(1-q)).
        ([0.5, 0.5], [0.25, 0.75], 0.5 * np.log(4 / 3)),
        # A point against the uniform distribution: log n.
        ([1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], np.log(4)),
        # Poisson intensities: a log(a/b) - a + b.
        ([3.0], [2.0], 3 * np.log(1.5) - 1),
        ([0.0], [2.0], 2.0),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
    ],
)
def test_kl_closed_forms(p, q, expected):
    found = kl_divergence(p, q)
    assert isinstance(found, float)
    assert found == pytest.approx(expected, abs=1e-15)


def test_kl_is_infinite_where_only_q_is_zero():
    # No epsilon hides an infinite divergence.
    p = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    q = np.array([0.0, 0.5, 0.5])
    assert_array_equal(kl_divergence(p, q, axis=1), [np.inf, np.log(2)])
    assert kl_divergence(p, q) == np.inf


@pytest.mark.parametrize("p", [5e-324, 1e-320, 1e-200, 1.0, 1e200])
@pytest.mark.parametrize("q", [5e-324, 1e-320, 1e-200, 1e5, 1e200])
def test_kl_of_measures_whose_ratio_is_beyond_floating_point(p, q):
    expected = float(p * (math.log(p) - math.log(q)) - p + q)
    assert kl_divergence([p, 0], [q, 0]) == pytest.approx(expected, rel=1e-12)
    assert kl_divergence([p, 1.0], [q, 0.0]) == np.inf


@pytest.mark.parametrize("seed", SEEDS)
def test_kl_of_measures_is_a_sum_over_masses_and_shapes(seed):
    # KL(a p, b q) = a KL(p, q) + a log(a/b) - a + b.
    rng = np.random.default_rng(seed)
    p, q = random_prob(rng, (3, 4), 2, concentration=0.3)
    a, b = rng.uniform(0.1, 10, 2)
    expected = a * kl_divergence(p, q) + a * np.log(a / b) - a + b
    assert kl_divergence(a * p, b * q) == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_kl_is_not_negative_and_zero_at_equality_only(seed):
    rng = np.random.default_rng(seed)
    p = random_prob(rng, (20,), 200, concentration=0.3)
    p[rng.random(p.shape) < 0.2] = 0
    q = random_prob(rng, (20,), 200, concentration=0.3) * rng.uniform(0.5, 2, (200, 1))
    assert (kl_divergence(p, q, axis=1) > 0).all()
    assert_array_equal(kl_divergence(p, p, axis=1), 0)
    # For nearly equal distributions the terms cancel up to rounding.
    near = p * (1 + 1e-9 * rng.normal(size=p.shape))
    assert (kl_divergence(p, near, axis=1) > -1e-15).all()


def path_case(kind, seed):
    rng = np.random.default_rng(seed)
    poset = TensorPoset((3, 2, 2)) if kind == "tensor" else random_poset(rng, 12)[0]
    p, q = random_prob(rng, poset.shape, 2, concentration=0.3)
    return poset, p, q


@pytest.mark.parametrize("geodesic", [e_geodesic, m_geodesic])
@pytest.mark.parametrize("seed", SEEDS)
def test_geodesic_runs_from_p_to_q(seed, geodesic):
    _, p, q = path_case("tensor", seed)
    assert_allclose(geodesic(p, q, 0.0), p, rtol=1e-12)
    assert_allclose(geodesic(p, q, 1.0), q, rtol=1e-12)
    assert_allclose(geodesic(p, q, [0.0, 1.0]), [p, q], rtol=1e-12)


@pytest.mark.parametrize("kind", ["tensor", "poset"])
@pytest.mark.parametrize("t", [-0.5, 0.25, 0.9, 1.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_e_geodesic_is_straight_in_theta(seed, t, kind):
    # Amari 2016, section 2.4. theta(bottom) is the normaliser and not a coordinate.
    poset, p, q = path_case(kind, seed)
    point = e_geodesic(p, q, t)
    assert point.sum() == pytest.approx(1)
    straight = (1 - t) * theta_from_prob(p, poset) + t * theta_from_prob(q, poset)
    difference = (theta_from_prob(point, poset) - straight).reshape(-1)
    assert_allclose(np.delete(difference, poset.bottom), 0, atol=1e-10)


@pytest.mark.parametrize("kind", ["tensor", "poset"])
@pytest.mark.parametrize("t", [0.25, 0.9])
@pytest.mark.parametrize("seed", SEEDS)
def test_m_geodesic_is_straight_in_eta(seed, t, kind):
    # Amari 2016, section 2.4. Cells may be zero.
    poset, p, q = path_case(kind, seed)
    p = empty_cells(np.random.default_rng(seed), p, 0.3)
    straight = (1 - t) * eta_from_prob(p, poset) + t * eta_from_prob(q, poset)
    found = eta_from_prob(m_geodesic(p, q, t), poset)
    assert_allclose(found, straight, atol=1e-14)


@pytest.mark.parametrize("axis", [1, -1, (1, 2), (-2, -1)])
def test_e_geodesic_of_rows_normalises_each_row(axis):
    rng = np.random.default_rng(0)
    shape = (3, 2) if isinstance(axis, tuple) else (6,)
    p, q = random_prob(rng, shape, 8).reshape(2, 4, *shape)
    t = np.array([0.0, 0.3, 1.2])
    points = e_geodesic(p, q, t, axis=axis)
    assert points.shape == (3, 4, *shape)
    for i, j in np.ndindex(3, 4):
        assert_allclose(points[i, j], e_geodesic(p[j], q[j], t[i]), rtol=1e-12)


@pytest.mark.parametrize("geodesic", [e_geodesic, m_geodesic])
@pytest.mark.parametrize("shape_of_t", [(), (1,), (5,), (2, 3)])
def test_geodesic_takes_arrays_of_t(shape_of_t, geodesic):
    _, p, q = path_case("tensor", 0)
    t = np.random.default_rng(0).random(shape_of_t)
    points = geodesic(p, q, t)
    assert points.shape == shape_of_t + p.shape
    for index in np.ndindex(*shape_of_t):
        assert_allclose(points[index], geodesic(p, q, float(t[index])), rtol=1e-12)
