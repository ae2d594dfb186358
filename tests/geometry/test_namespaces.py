"""The geometry of tensors accepts arrays of any namespace, and stays on the device."""

import numpy as np
import pytest
from _namespaces import NAMESPACES, assert_same

from sklearn_pnl import geometry
from sklearn_pnl._utils import arrays
from sklearn_pnl.geometry import Poset, TensorPoset, order_mask

SHAPES = [(3, 4), (20, 3), (2, 3, 2), (2, 2, 2, 2, 3), (5,)]


def distributions(shape, n=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(np.prod(shape)), size=n).reshape(n, *shape)


COORDINATES = {
    "theta_from_prob": lambda p, poset: geometry.theta_from_prob(p, poset),
    "prob_from_theta": lambda p, poset: geometry.prob_from_theta(p - 0.5, poset),
    "measure_from_theta": lambda p, poset: geometry.measure_from_theta(p, poset),
    "log_partition": lambda p, poset: geometry.log_partition(p, poset),
    "eta_from_prob": lambda p, poset: geometry.eta_from_prob(p, poset),
    "prob_from_eta": lambda p, poset: geometry.prob_from_eta(p, poset),
    "fisher_information": lambda p, poset: geometry.fisher_information(p, poset),
    "kl_divergence": lambda p, poset: geometry.kl_divergence(
        p, 0 * p + 1 / poset.n_elements, axis=tuple(range(1, p.ndim))
    ),
    "e_geodesic": lambda p, poset: geometry.e_geodesic(
        p[0, ...], p[1, ...], [0.0, 0.3]
    ),
    "m_geodesic": lambda p, poset: geometry.m_geodesic(
        p[0, ...], p[1, ...], [0.0, 0.3]
    ),
    "interaction_energy": lambda p, poset: geometry.interaction_energy(p, poset, 1),
    "energy_decomposition": lambda p, poset: geometry.energy_decomposition(p, poset),
    "geodesic_energy": lambda p, poset: geometry.geodesic_energy(
        p[0, ...], p[1, ...], [0.0, 0.3], poset
    )[1],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", COORDINATES)
@pytest.mark.parametrize("new", NAMESPACES)
def test_coordinates_and_energies_are_those_of_numpy(new, name, shape):
    if name == "energy_decomposition" and len(shape) == 1:
        pytest.skip("a chain has one order")
    p, poset = distributions(shape), TensorPoset(shape)
    assert_same(
        COORDINATES[name](new(p), poset), COORDINATES[name](p, poset), new(p), 1e-10
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_backward", [False, True])
@pytest.mark.parametrize("has_reference", [False, True])
@pytest.mark.parametrize("new", NAMESPACES)
def test_projections_are_those_of_numpy(new, has_reference, is_backward, shape):
    p, r, poset = distributions(shape), distributions(shape, seed=1), TensorPoset(shape)
    for order in range(1, len(shape) + 1):
        mask = order_mask(poset, order) ^ is_backward
        references = (new(r), r) if has_reference else (None, None)
        settings = {"poset": poset, "tol": 1e-12}
        got = geometry.mixed_projection(new(p), references[0], mask, **settings)
        expected = geometry.mixed_projection(p, references[1], mask, **settings)
        assert_same(got.prob, expected.prob, new(p))
        assert_same(got.residual, expected.residual, new(p))
        assert got.route == expected.route and (got.n_iter == expected.n_iter).all()


@pytest.mark.parametrize("new", NAMESPACES)
def test_standard_errors_are_those_of_numpy(new):
    p, poset = distributions((3, 4))[0], TensorPoset((3, 4))
    expected = geometry.theta_with_errors(p, 10, poset)
    np.testing.assert_array_equal(
        geometry.theta_with_errors(new(p), 10, poset), expected
    )


@pytest.mark.parametrize("new", NAMESPACES)
def test_projections_by_conjugate_gradients_are_those_of_numpy(new):
    # For 175 free coordinates, conjugate gradients are used.
    p, poset = distributions((6, 6, 6), n=9), TensorPoset((6, 6, 6))
    settings = {"poset": poset, "order": 2, "tol": 1e-12}
    got = geometry.many_body_projection(new(p), **settings)
    expected = geometry.many_body_projection(p, **settings)
    assert_same(got.prob, expected.prob, new(p))
    assert bool((arrays.to_host(got.converged)).all())


@pytest.mark.parametrize("new", NAMESPACES)
def test_rows_with_nearly_empty_margins_are_solved_as_by_numpy(new):
    p = distributions((6, 6, 6), n=6)
    p[:3, 2] *= 1e-9
    p /= p.sum(axis=(1, 2, 3), keepdims=True)
    settings = {"poset": TensorPoset((6, 6, 6)), "order": 2, "tol": 1e-10}
    got = geometry.many_body_projection(new(p), **settings)
    expected = geometry.many_body_projection(p, **settings)
    assert bool(arrays.to_host(got.converged).all())
    assert_same(got.prob, expected.prob, new(p))


@pytest.mark.parametrize("new", NAMESPACES)
def test_numpy_references_can_be_combined_with_other_namespaces(new):
    p, r = distributions((3, 4)), distributions((3, 4), seed=1)
    poset = TensorPoset((3, 4))
    mask = order_mask(poset, 1)
    got = geometry.mixed_projection(new(p), r, mask, poset, tol=1e-12).prob
    expected = geometry.mixed_projection(p, r, mask, poset, tol=1e-12).prob
    assert_same(got, expected, new(p))
    assert_same(
        geometry.kl_divergence(p, new(r), axis=(1, 2)),
        geometry.kl_divergence(p, r, axis=(1, 2)),
        new(p),
    )


@pytest.mark.parametrize("new", NAMESPACES)
def test_float32_is_preserved_on_devices_without_float64(new, monkeypatch):
    monkeypatch.setattr(arrays, "_is_single", lambda x: True)
    p, poset = distributions((6, 6, 6)), TensorPoset((6, 6, 6))
    single = new(p.astype(np.float32))
    got = geometry.many_body_projection(single, poset, 2)
    assert got.prob.dtype == got.residual.dtype == single.dtype
    # The tolerance in the report is the smallest one that single precision attains.
    assert 1e-6 < got.tol < 1e-5
    assert arrays.to_host(got.residual).max() <= got.tol
    expected = geometry.many_body_projection(p, poset, 2).prob
    assert np.abs(arrays.to_host(got.prob) - expected).max() < 1e-5


@pytest.mark.parametrize("new", NAMESPACES)
def test_functions_for_numpy_only_reject_other_arrays(new):
    chain = Poset.from_relations(4, [(0, 1), (1, 2), (2, 3)])
    p = distributions((4,))
    with pytest.raises(TypeError, match="NumPy"):
        geometry.theta_from_prob(new(p), chain)
    poset = TensorPoset((2, 3))
    mask = np.array([[0, 1, 0], [0, 0, 1]], bool)
    with pytest.raises(TypeError, match="'general'"):
        geometry.mixed_projection(new(distributions((2, 3))), None, mask, poset)


@pytest.mark.parametrize("new", NAMESPACES)
def test_errors_name_the_cell_and_the_row(new):
    poset, p = TensorPoset((2, 2)), np.full((3, 2, 2), 0.25)
    p[1, 0, 1] = 0
    with pytest.raises(ValueError, match=r"\(1, 0, 1\)"):
        geometry.theta_from_prob(new(p), poset)
    with pytest.raises(ValueError, match="^target "):
        geometry.many_body_projection(new(2 * p), poset)
    theta = np.zeros((3, 2, 2))
    theta[2] = 1e308
    with pytest.raises(ValueError, match="Row 2"):
        geometry.prob_from_theta(new(theta), poset)
