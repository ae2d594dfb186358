"""Projections in mixed coordinates: theorems, and comparisons with other solvers."""

import tracemalloc

import numpy as np
import pytest
from _oracles import (
    empty_cells,
    eta_slow,
    finite_difference,
    indicator_design,
    interaction_cells_slow,
    lifted_image,
    mixed_projection_slow,
    random_down_set,
    random_poset,
    random_prob,
    random_up_set,
    tensor_leq,
    tensor_relations,
    theta_slow,
    up_to_order,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.linear_model import PoissonRegressor

from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    interaction_mask,
    kl_divergence,
    many_body_projection,
    mixed_projection,
    prob_from_theta,
)
from sklearn_pnl.geometry.many_body import bases, solvers, tilts
from sklearn_pnl.geometry.posets.elements import matched_mask


def general_projection(target, reference, matched, poset, **numerics):
    """Project by the route that accepts any set."""
    solver = solvers.GeneralSolver(poset, matched_mask(poset, matched))
    return solver.project(target, reference, **numerics)


def tilt_projection(target, reference, interactions, poset, **numerics):
    """Project by the route for families of interactions of a tensor."""
    family = poset.family(poset.order_mask(interactions))
    solver = solvers.TiltSolver(poset, family)
    return solver.project(target, reference, **numerics)


SEEDS = [0, 1, 2]
KINDS_OF_SET = ["up-set", "down-set", "neither"]
# With concentration 0.3, a target of 60 cells has cells near 1e-7.
CONCENTRATIONS = [1.0, 0.3]
SHAPES_AND_ORDERS = [
    ((3, 4), 1),
    ((2, 3, 4), 1),
    ((2, 3, 4), 2),
    ((2, 2, 2, 2, 2), 2),
    ((2, 2, 2, 2, 2), 3),
    ((3, 1, 4), 2),
    ((4, 4, 3), [(0, 1), (1, 2)]),
    ((4, 4, 3), [(0, 2)]),
]
IMAGE_SHAPE = (7, 2, 2, 7, 2, 2)


def random_set(rng, leq, kind):
    """Draw a flat mask of elements, with or without the bottom."""
    if kind == "up-set":
        return random_up_set(rng, leq, 3)
    if kind == "down-set":
        return random_down_set(rng, leq, 3)
    return rng.random(len(leq)) < rng.uniform(0.2, 0.8)


def set_case(seed, n_elements, kind):
    """Draw a poset, its order and a set, and return the elements on and off the set."""
    rng = np.random.default_rng([seed, n_elements])
    poset, leq = random_poset(rng, n_elements, density=2 / n_elements)
    matched = random_set(rng, leq, kind)
    not_bottom = np.arange(n_elements) != poset.bottom
    on = np.flatnonzero(matched & not_bottom)
    off = np.flatnonzero(~matched & not_bottom)
    assert len(on) > 0
    return rng, poset, leq, matched, on, off


# --- mixed coordinates ------------------------------------------------------------


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("kind", KINDS_OF_SET)
@pytest.mark.parametrize("n_elements", [6, 25, 60])
@pytest.mark.parametrize("seed", SEEDS)
def test_projection_has_eta_of_target_and_theta_of_reference(
    seed, n_elements, kind, concentration
):
    # Mixed coordinates: Amari 2016, section 2.8.
    rng, poset, leq, matched, on, off = set_case(seed, n_elements, kind)
    target = random_prob(rng, poset.shape, 4, concentration)
    reference = random_prob(rng, poset.shape, 4, concentration)
    found = mixed_projection(target, reference, matched, poset, tol=1e-10)
    q = found.prob
    assert found.converged.all()
    assert (found.residual <= 1e-10).all()
    assert_allclose(q.sum(axis=1), 1, rtol=1e-13)
    difference = (eta_slow(q, leq) - eta_slow(target, leq))[:, on]
    assert np.abs(difference).max() <= 1e-10 + 1e-14
    assert_allclose(
        theta_slow(q, leq)[:, off], theta_slow(reference, leq)[:, off], atol=1e-8
    )


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("kind", KINDS_OF_SET)
@pytest.mark.parametrize("n_elements", [6, 25, 60])
@pytest.mark.parametrize("seed", SEEDS)
def test_projection_agrees_with_a_generic_optimiser(
    seed, n_elements, kind, concentration
):
    rng, poset, leq, matched, on, _ = set_case(seed, n_elements, kind)
    target = random_prob(rng, poset.shape, None, concentration)
    reference = random_prob(rng, poset.shape)
    mask = np.isin(np.arange(n_elements), on)
    expected = mixed_projection_slow(target, reference, mask, leq)
    found = mixed_projection(target, reference, matched, poset, tol=1e-12)
    assert_allclose(found.prob, expected, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS_OF_SET)
@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 3, 2, 3)], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_projection_on_a_tensor_agrees_with_a_generic_optimiser(seed, shape, kind):
    rng = np.random.default_rng(seed)
    leq = tensor_leq(shape)
    mask = random_set(rng, leq, kind)
    mask[0] = False
    target, reference = random_prob(rng, shape, 2, concentration=0.5)
    expected = mixed_projection_slow(target.ravel(), reference.ravel(), mask, leq)
    found = mixed_projection(
        target, reference, mask.reshape(shape), TensorPoset(shape), tol=1e-12
    )
    assert_allclose(found.prob.ravel(), expected, atol=1e-9)


@pytest.mark.parametrize("kind", [*KINDS_OF_SET, "tilt"])
@pytest.mark.parametrize("max_iter", [0, 1, 100])
@pytest.mark.parametrize("seed", SEEDS)
def test_reported_residual_is_that_of_the_result(seed, max_iter, kind):
    rng, poset, leq, matched, on, _ = set_case(seed, 48, kind)
    if kind == "tilt":
        poset, leq = TensorPoset((4, 3, 4)), tensor_leq((4, 3, 4))
        matched = interaction_mask((4, 3, 4), [(0, 1), (1, 2), (0, 2)])
        on = np.flatnonzero(matched)
    target, reference = random_prob(rng, poset.shape, 6).reshape(2, 3, *poset.shape)

    def project(tol):
        return mixed_projection(
            target, reference, matched, poset, tol=tol, max_iter=max_iter
        )

    found = project(1e-9)
    q, t = found.prob.reshape(3, 48), target.reshape(3, 48)
    expected = np.abs((eta_slow(q, leq) - eta_slow(t, leq))[:, on]).max(axis=1)
    assert_allclose(found.residual, expected, atol=1e-14)
    assert (found.n_iter <= max_iter).all()
    assert max_iter < 100 or found.converged.all()
    # The limit of convergence is exactly residual <= tol.
    for tol in (found.residual.min() / 1.01, found.residual.max() * 1.01):
        again = project(tol)
        assert_array_equal(again.converged, again.residual <= tol)


@pytest.mark.parametrize("share_empty", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["poset", "tensor"])
@pytest.mark.parametrize("seed", SEEDS)
def test_splice_on_an_up_set_agrees_with_a_generic_optimiser(seed, kind, share_empty):
    rng = np.random.default_rng(seed)
    if kind == "poset":
        poset, leq = random_poset(rng, 36, density=0.06)
    else:
        poset, leq = TensorPoset((3, 4, 3)), tensor_leq((3, 4, 3))
    mask = random_up_set(rng, leq, 3)
    target = random_prob(rng, (36,))
    # Zeros on the up-set would give an infinite theta, which the optimiser cannot
    # reach.
    emptied = empty_cells(rng, target, share_empty)
    target = np.where(mask, target, emptied)
    target /= target.sum()
    reference = random_prob(rng, (36,), concentration=0.5)
    found = mixed_projection(
        target.reshape(poset.shape),
        reference.reshape(poset.shape),
        mask.reshape(poset.shape),
        poset,
    )
    expected = mixed_projection_slow(target, reference, mask, leq)
    assert_allclose(found.prob.ravel(), expected, atol=1e-9)
    assert found.route == "splice"
    assert found.n_iter == found.residual == 0


# --- the routes agree ---------------------------------------------------------------


@pytest.mark.parametrize("with_reference", [False, True])
@pytest.mark.parametrize(("shape", "interactions"), SHAPES_AND_ORDERS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_tilt_agrees_with_the_general_route(seed, shape, interactions, with_reference):
    rng = np.random.default_rng(seed)
    poset = TensorPoset(shape)
    target = random_prob(rng, shape, 3, concentration=0.5)
    reference = random_prob(rng, shape, 3) if with_reference else None
    matched = interaction_mask(shape, interactions)
    tilt = tilt_projection(target, reference, interactions, poset, tol=1e-12)
    general = general_projection(target, reference, matched, poset, tol=1e-12)
    auto = mixed_projection(target, reference, matched, poset, tol=1e-12)
    assert (tilt.route, general.route) == ("tilt", "general")
    assert_allclose(tilt.prob, general.prob, atol=1e-10)
    assert_allclose(auto.prob, tilt.prob, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS_OF_SET)
@pytest.mark.parametrize("seed", SEEDS)
def test_tensor_given_as_general_poset_has_the_same_projections(seed, kind):
    shape = (2, 3, 4)
    rng = np.random.default_rng(seed)
    general = Poset.from_relations(24, tensor_relations(shape))
    mask = random_set(rng, tensor_leq(shape), kind)
    target, reference = random_prob(rng, shape, 6).reshape(2, 3, *shape)
    one = mixed_projection(
        target, reference, mask.reshape(shape), TensorPoset(shape), tol=1e-12
    )
    other = mixed_projection(
        target.reshape(3, 24), reference.reshape(3, 24), mask, general, tol=1e-12
    )
    assert_allclose(one.prob.reshape(3, 24), other.prob, atol=1e-10)


@pytest.mark.parametrize(
    ("mask", "route"),
    [
        (TensorPoset((2, 3, 2)).order == 3, "splice"),
        (TensorPoset((2, 3, 2)).order > 1, "splice"),
        (TensorPoset((2, 3, 2)).order <= 1, "tilt"),
        (TensorPoset((2, 3, 2)).order <= 2, "tilt"),
        (interaction_mask((2, 3, 2), [(0, 1)]), "tilt"),
        (TensorPoset((2, 3, 2)).order == 2, "general"),
        # A down-set, but not a family: it splits the levels of mode 1.
        (np.arange(12).reshape(2, 3, 2) == 2, "general"),
    ],
)
def test_route_follows_the_shape_of_the_set(mask, route):
    target = random_prob(np.random.default_rng(0), (2, 3, 2))
    assert mixed_projection(target, None, mask, TensorPoset((2, 3, 2))).route == route


@pytest.mark.parametrize("reference", [None, np.full((2, 3, 2), 1 / 12)])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_empty_input_gives_empty_projections(order, reference):
    poset = TensorPoset((2, 3, 2))
    none = np.empty((0, 2, 3, 2))
    found = mixed_projection(none, reference, poset.order == order, poset)
    assert found.prob.shape == none.shape
    assert found.residual.shape == found.n_iter.shape == (0,)


# --- boundary cases of the set and the reference -------------------------------------


@pytest.mark.parametrize("kind", ["tensor", "poset"])
def test_empty_set_gives_the_reference(kind):
    rng = np.random.default_rng(0)
    poset = TensorPoset((3, 4)) if kind == "tensor" else random_poset(rng, 12)[0]
    target, reference = random_prob(rng, poset.shape, 2)
    nothing = np.zeros(poset.shape, bool)
    found = mixed_projection(target, reference, nothing, poset)
    assert_allclose(found.prob, reference, rtol=1e-14)
    assert found.residual == found.n_iter == 0
    assert found.converged
    uniform = mixed_projection(target, None, nothing, poset)
    assert_allclose(uniform.prob, 1 / 12, rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS_OF_SET)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_reference_means_uniform(seed, kind):
    rng, poset, _, matched, _, _ = set_case(seed, 25, kind)
    target = random_prob(rng, poset.shape, 3)
    uniform = np.full(25, 1 / 25)
    assert_allclose(
        mixed_projection(target, None, matched, poset, tol=1e-12).prob,
        mixed_projection(target, uniform, matched, poset, tol=1e-12).prob,
        atol=1e-10,
    )


@pytest.mark.parametrize("kind", KINDS_OF_SET)
def test_bottom_in_the_set_changes_nothing(kind):
    rng, poset, _, matched, _, _ = set_case(0, 25, kind)
    target, reference = random_prob(rng, poset.shape, 2)
    answers = []
    for at_bottom in (False, True):
        matched[poset.bottom] = at_bottom
        before = matched.copy()
        found = mixed_projection(target, reference, matched, poset, tol=1e-12)
        answers.append(found.prob)
        assert_array_equal(matched, before)
    assert_array_equal(*answers)


@pytest.mark.parametrize("kind", KINDS_OF_SET)
def test_rows_broadcast_and_are_projected_independently(kind):
    rng, poset, _, matched, _, _ = set_case(0, 25, kind)
    target = random_prob(rng, poset.shape, 6).reshape(2, 3, 25)
    reference = random_prob(rng, poset.shape, 3)
    together = mixed_projection(target, reference, matched, poset, tol=1e-12)
    assert together.prob.shape == (2, 3, 25)
    fields = (together.residual, together.n_iter, together.converged)
    assert all(field.shape == (2, 3) for field in fields)
    for i, j in np.ndindex(2, 3):
        alone = mixed_projection(target[i, j], reference[j], matched, poset, tol=1e-12)
        assert_allclose(together.prob[i, j], alone.prob, atol=1e-12)
        assert alone.n_iter == together.n_iter[i, j]
    many = mixed_projection(target[0, 0], reference, matched, poset, tol=1e-12)
    assert many.prob.shape == (3, 25)
    assert_allclose(many.prob[0], together.prob[0, 0], atol=1e-12)


# --- Pythagoras ----------------------------------------------------------------------


def assert_pythagoras(p, q, r):
    """Check ``KL(p, r) = KL(p, q) + KL(q, r)``, with three positive divergences."""
    legs = kl_divergence(p, q), kl_divergence(q, r)
    assert min(legs) > 1e-6
    assert kl_divergence(p, r) == pytest.approx(sum(legs), rel=1e-10)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize(
    ("shape", "interactions"),
    [case for case in SHAPES_AND_ORDERS if case != ((3, 1, 4), 2)],  # all: q is p
    ids=str,
)
@pytest.mark.parametrize("seed", SEEDS)
def test_pythagoras_for_the_m_projection_on_a_many_body_model(
    seed, shape, interactions, concentration
):
    # Amari 2016, theorem 1.2: q the m-projection of p on M_ell, any r in M_ell.
    rng = np.random.default_rng(seed)
    poset = TensorPoset(shape)
    p = random_prob(rng, shape, None, concentration)
    kept = interaction_mask(shape, interactions)
    r = prob_from_theta(np.where(kept, rng.normal(size=shape), 0), poset)
    q = many_body_projection(p, poset, interactions, tol=1e-12).prob
    assert_pythagoras(p, q, r)


@pytest.mark.parametrize("seed", SEEDS)
def test_pythagoras_for_a_down_set_of_a_poset(seed):
    rng = np.random.default_rng(seed)
    poset, leq = random_poset(rng, 40, density=0.05)
    kept = random_down_set(rng, leq, 6)
    assert 2 < kept.sum() < 40
    p = random_prob(rng, (40,), concentration=0.5)
    r = prob_from_theta(np.where(kept, rng.normal(size=40), 0), poset)
    q = mixed_projection(p, None, kept, poset, tol=1e-12).prob
    assert_pythagoras(p, q, r)


@pytest.mark.parametrize("kind", KINDS_OF_SET)
@pytest.mark.parametrize("seed", SEEDS)
def test_pythagoras_for_the_e_projection_on_matched_eta(seed, kind):
    # The dual theorem: q the e-projection of r on {eta = eta_t on M}, any t in it.
    rng, poset, _, matched, _, _ = set_case(seed, 40, kind)
    t, r = random_prob(rng, poset.shape, 2)
    q = mixed_projection(t, r, matched, poset, tol=1e-12).prob
    assert_pythagoras(t, q, r)


@pytest.mark.parametrize(("shape", "interactions"), SHAPES_AND_ORDERS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_points_of_a_fiber_project_to_its_code(seed, shape, interactions):
    # q has the marginals of the code w, which determine the projection of q.
    rng = np.random.default_rng(seed)
    poset, kept = TensorPoset(shape), interaction_mask(shape, interactions)
    w = prob_from_theta(np.where(kept, 0.7 * rng.normal(size=shape), 0), poset)
    r = random_prob(rng, shape)
    q = mixed_projection(w, r, kept, poset, tol=1e-12).prob
    back = many_body_projection(q, poset, interactions, tol=1e-12).prob
    assert_allclose(back, w, atol=1e-10)
    # The point closest to r in the fibre over the code of r is r.
    code = many_body_projection(r, poset, interactions, tol=1e-12).prob
    assert_allclose(
        mixed_projection(code, r, kept, poset, tol=1e-12).prob, r, atol=1e-10
    )


# --- tilt: marginals of a tensor --------------------------------------------------


@pytest.mark.parametrize("share_empty", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (3, 1, 2, 2)], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_body_projection_is_the_product_of_marginals(seed, shape, share_empty):
    rng = np.random.default_rng(seed)
    p = empty_cells(rng, random_prob(rng, shape), share_empty)
    expected = np.ones(())
    for k in range(len(shape)):
        others = tuple(j for j in range(len(shape)) if j != k)
        expected = np.multiply.outer(expected, p.sum(axis=others))
    found = many_body_projection(p, TensorPoset(shape), 1)
    assert_allclose(found.prob, expected, atol=1e-15)
    assert found.n_iter == 0
    assert found.converged


def raking_slow(reference, target, mode_sets, sweeps=2000):
    """Run iterative proportional fitting (Deming and Stephan 1940)."""
    q = reference.copy()
    for _ in range(sweeps):
        for modes in mode_sets:
            others = tuple(k for k in range(q.ndim) if k not in modes)
            wanted = target.sum(axis=others, keepdims=True)
            q = q * wanted / q.sum(axis=others, keepdims=True)
    return q


@pytest.mark.parametrize("mode_sets", [[(0,), (1,), (2,)], [(0, 1), (1, 2)], [(0, 2)]])
@pytest.mark.parametrize("seed", SEEDS)
def test_tilt_is_the_limit_of_iterative_proportional_fitting(seed, mode_sets):
    rng = np.random.default_rng(seed)
    shape = (3, 4, 2)
    target, reference = random_prob(rng, shape, 2, concentration=0.7)
    expected = raking_slow(reference, target, mode_sets)
    found = tilt_projection(target, reference, mode_sets, TensorPoset(shape), tol=1e-12)
    assert_allclose(found.prob, expected, atol=1e-9)


def many_body_by_poisson_regression(p, interactions):
    """Compute the many-body projection as a maximum-likelihood log-linear model.

    The model is a Poisson regression with intercept on the same functions. For cells
    scaled to mean 1, its fitted means are ``D q``.
    """
    order = interactions if isinstance(interactions, int) else None
    mode_sets = interactions if order is None else up_to_order(p.ndim, order)
    design = indicator_design(p.shape, interaction_cells_slow(p.shape, mode_sets))
    model = PoissonRegressor(
        alpha=0, fit_intercept=True, solver="newton-cholesky", tol=1e-11, max_iter=1000
    )
    mean = model.fit(design, p.size * p.ravel()).predict(design)
    return (mean / mean.sum()).reshape(p.shape)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize(
    ("shape", "interactions"),
    [
        ((4, 4, 3), 2),
        ((2, 3, 2, 3), 2),
        ((2, 2, 2, 2, 2), 3),
        ((4, 4, 3), [(0, 1), (1, 2)]),
        # The projection is uniform along mode 3, which no set contains.
        ((3, 2, 3, 2), [(0, 1), (1, 2)]),
        ((3, 2, 3, 2), [(0, 2)]),
        ((3, 2, 3, 2), [(2,)]),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", SEEDS)
def test_many_body_projection_agrees_with_a_poisson_regression(
    seed, shape, interactions, concentration
):
    p = random_prob(np.random.default_rng(seed), shape, None, concentration)
    found = tilt_projection(p, None, interactions, TensorPoset(shape), tol=1e-10)
    assert found.converged
    assert_allclose(
        found.prob, many_body_by_poisson_regression(p, interactions), atol=1e-8
    )


@pytest.mark.parametrize("n_elements", [5, 8, 12])
@pytest.mark.parametrize("seed", range(6))
def test_structural_zeros_can_make_functions_dependent(seed, n_elements):
    # Csiszar 1975: the Pythagorean theorem characterises the nearest distribution.
    rng, poset, leq, matched, on, _ = set_case(seed, n_elements, "any")
    target, reference = random_prob(rng, (2, 20, n_elements))
    cannot = rng.random(target.shape) < 0.6
    cannot[:3, 1:], cannot[:, rng.integers(n_elements)] = False, False
    for p in (target, reference):
        p[cannot] = 0
        p /= p.sum(axis=1, keepdims=True)
    found = general_projection(target, reference, matched, poset, tol=1e-12)
    assert found.converged.all()
    assert_array_equal(found.prob[cannot], 0)
    difference = (eta_slow(found.prob, leq) - eta_slow(target, leq))[:, on]
    assert np.abs(difference).max() <= 1e-11
    way = kl_divergence(target, found.prob, axis=1)
    way += kl_divergence(found.prob, reference, axis=1)
    assert_allclose(way, kl_divergence(target, reference, axis=1), atol=1e-10)
    alone = general_projection(target[0], reference[0], matched, poset, tol=1e-12)
    assert_allclose(alone.prob, found.prob[0], rtol=1e-9)


@pytest.mark.parametrize("with_reference", [False, True])
@pytest.mark.parametrize("interactions", [1, 2, [(0, 1)]])
def test_empty_levels_of_a_mode_are_preserved(interactions, with_reference):
    # In the limit of positive targets, the level can be removed from the tensor.
    rng = np.random.default_rng(0)
    p = random_prob(rng, (3, 4, 2))
    p[1] = 0
    p /= p.sum()
    r = random_prob(rng, (3, 4, 2)) if with_reference else None
    found = tilt_projection(p, r, interactions, TensorPoset((3, 4, 2)), tol=1e-12)
    inside = None if r is None else r[[0, 2]] / r[[0, 2]].sum()
    poset = TensorPoset((2, 4, 2))
    expected = tilt_projection(p[[0, 2]], inside, interactions, poset, tol=1e-12)
    assert found.converged
    assert_array_equal(found.prob[1], 0)
    assert_allclose(found.prob[[0, 2]], expected.prob, atol=1e-10)


@pytest.mark.parametrize("index", [0, 7, 25])
@pytest.mark.parametrize("interactions", [2, [(0, 3), (1, 4), (2, 5)], 3])
def test_lifted_image_agrees_with_a_poisson_regression(interactions, index):
    tensor = load_digits().images[index].reshape((2,) * 6) * 255 / 16 + 1e-5
    p = tensor / tensor.sum()
    found = tilt_projection(p, None, interactions, TensorPoset((2,) * 6))
    assert found.converged
    expected = many_body_by_poisson_regression(p, interactions)
    assert_allclose(found.prob, expected, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_dense_newton_converges_if_conjugate_gradients_do_not(seed):
    # Conjugate gradients do not determine the lightest cells of a lifted image; without
    # the dense solver, the rows stop near a residual of 1e-9.
    p = lifted_image(np.random.default_rng(seed))
    poset = TensorPoset(IMAGE_SHAPE)
    found = tilt_projection(p, None, 3, poset, tol=1e-13, max_iter=300)
    assert found.converged
    difference = poset.eta(found.prob) - poset.eta(p)
    residual = np.abs(difference[interaction_mask(IMAGE_SHAPE, 3)]).max()
    assert_allclose(found.residual, residual, atol=1e-14)
    assert_allclose(found.prob, many_body_by_poisson_regression(p, 3), atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_conjugate_gradients_agree_with_a_dense_solver(seed):
    # For 326 free coordinates, dense Hessians only replace failed conjugate gradients.
    rng = np.random.default_rng(seed)
    assert interaction_mask(IMAGE_SHAPE, 3).sum() == 326
    p, r = random_prob(rng, IMAGE_SHAPE, 2)
    matched = interaction_mask(IMAGE_SHAPE, 3).ravel()
    leq = tensor_leq(IMAGE_SHAPE)
    expected = mixed_projection_slow(p.ravel(), r.ravel(), matched, leq)
    for tol in (1e-6, 1e-10):
        found = tilt_projection(p, r, 3, TensorPoset(IMAGE_SHAPE), tol=tol)
        assert found.converged
        assert found.residual <= tol
        assert_allclose(found.prob.ravel(), expected, atol=20 * tol)


@pytest.mark.parametrize("seed", SEEDS)
def test_general_route_converges_with_many_coordinates(seed):
    # For more than 128 free coordinates, conjugate gradients use the zeta basis.
    rng = np.random.default_rng(seed)
    shape = (6, 6, 6)
    poset, leq = TensorPoset(shape), tensor_leq(shape)
    mask = rng.random(216) < 0.75
    mask[0] = False
    assert mask.sum() > 128
    p, r = random_prob(rng, shape, 2)
    found = mixed_projection(p, r, mask.reshape(shape), poset, tol=1e-11)
    assert found.route == "general"
    assert found.converged
    expected = mixed_projection_slow(p.ravel(), r.ravel(), mask, leq)
    assert_allclose(found.prob.ravel(), expected, atol=1e-9)


@pytest.mark.parametrize("height", [1e2, 1e3, 1e5])
@pytest.mark.parametrize("which", ["order at most 2", "order 2", "poset", "many"])
def test_rows_with_distant_peaks_converge(which, height):
    # Target and reference have their mass at different cells, so Newton steps overshoot
    # to distributions whose Fisher information is numerically 0.
    rng = np.random.default_rng(1)
    if which == "poset":
        poset, leq = random_poset(rng, 48, density=0.05)
        mask = rng.random(48) < 0.5
        mask[poset.bottom] = False
    else:
        # "many" has 147 free coordinates, which require conjugate gradients.
        shape = (8, 8, 8) if which == "many" else (4, 4, 3)
        poset, leq = TensorPoset(shape), tensor_leq(shape)
        mask = (poset.order == 2).ravel()
        if which == "order at most 2":
            mask |= (poset.order == 1).ravel()
    target, reference = np.ones((2, poset.n_elements))
    target[5] = reference[40] = height
    target, reference = target / target.sum(), reference / reference.sum()
    found = general_projection(
        target.reshape(poset.shape),
        reference.reshape(poset.shape),
        mask.reshape(poset.shape),
        poset,
        tol=1e-10,
        max_iter=500,
    )
    assert found.converged, (found.residual, found.n_iter)
    expected = mixed_projection_slow(target, reference, mask, leq)
    assert_allclose(found.prob.ravel(), expected, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("light", [1e-9, 1e-12])
def test_rows_with_mostly_nearly_empty_cells_converge(seed, light):
    rng = np.random.default_rng(seed)
    poset, n = TensorPoset((20, 20)), 8
    matched = (rng.random(poset.shape) < 0.55) & (poset.order > 0)
    target = rng.random((n, 20, 20)) * (rng.random((n, 20, 20)) < 0.05) + light
    target[0] = light
    target[0, 3, 4] = 1
    target /= target.sum(axis=(1, 2), keepdims=True)
    found = mixed_projection(target, None, matched, poset, tol=1e-7)
    assert found.converged.all()
    theta = poset.moebius(np.log(found.prob))[:, ~matched & (poset.order > 0)]
    assert np.abs(theta).max() < 1e-11


# --- derivatives ----------------------------------------------------------------------


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("kind", ["zeta", "interactions", "cells"])
@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_of_the_objective(seed, kind, concentration):
    # Central differences of psi(x) - <x, moments> in all three bases.
    rng = np.random.default_rng(seed)
    shape = (3, 2, 3)
    target, start = random_prob(rng, (18,), 2, concentration).reshape(2, 1, 18)
    poset, one = TensorPoset(shape), np.array([0])
    if kind == "zeta":
        mask = (rng.random(shape) < 0.5) & (poset.order > 0)
        solver = solvers.GeneralSolver(poset, mask)
    else:
        solver = solvers.TiltSolver(poset, 2)
    basis = solver._basis
    if kind == "cells":
        basis = bases.MarginalCells(poset, 2, (1, 0, 2))
    problem = tilts.ExponentialTilt(basis, solver.residual, np.log(start), target)

    def value(x):
        return problem.value(x[None], one)[0][0]

    def gradient(x):
        q = problem.value(x[None], one)[1]
        return problem.gradient(x[None], q, one)[0][0]

    x = 0.3 * rng.normal(size=len(solver.elements))
    assert_allclose(gradient(x), finite_difference(value, x, 1e-5), atol=1e-8)
    hessian = finite_difference(gradient, x, 1e-5)
    point = problem.value(x[None], one)[1]
    if kind != "interactions":
        assert_allclose(problem.hessian(point, one)[0], hessian, atol=1e-8)
    if kind != "cells":
        v = rng.normal(size=x.shape)
        product = problem.hessian_product(point, v[None])[0]
        assert_allclose(product, hessian @ v, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["interactions", "zeta", "sparse zeta"])
def test_bases_have_transposes_in_both_precisions(kind, dtype):
    shape, rng = (2, 3, 4, 5), np.random.default_rng(0)
    poset = TensorPoset(shape)
    elements = np.flatnonzero(poset.order_mask(2))
    if kind == "interactions":
        basis = bases.ScaledBasis(shape, 2)
    else:
        basis = bases.ZetaBasis(poset, elements)
        basis.as_matrix &= kind == "zeta"
    m = len(elements)
    v, x = rng.normal(size=(6, m)), rng.normal(size=(6, poset.n_elements))
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype is np.float32 else {"atol": 1e-12}
    there, back = basis.synthesis(v.astype(dtype)), basis.analysis(x.astype(dtype))
    assert_allclose(there, basis.synthesis(v), **close)
    assert_allclose(back, basis.analysis(x), **close)
    assert_allclose(np.vdot(there, x), np.vdot(v, back), **close)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_with_little_mass_at_reference_levels_converge(seed, order):
    # Rows that nearly lack the common reference levels use their own heaviest levels.
    rng = np.random.default_rng(seed)
    shape = (3, 2, 3)
    target, start = random_prob(rng, (18,), 24, 1.0).reshape(2, 12, *shape)
    target[::4, 0] *= 1e-9
    target[1::4, :, 1] *= 1e-9
    target /= target.sum(axis=(1, 2, 3), keepdims=True)
    poset = TensorPoset(shape)
    matched = poset.order <= order
    together = mixed_projection(target, start, matched, poset)
    assert together.converged.all()
    for row in range(12):
        alone = mixed_projection(target[row], start[row], matched, poset)
        assert_allclose(together.prob[row], alone.prob, rtol=1e-6)


# --- running out of steps ------------------------------------------------------------


@pytest.mark.parametrize("route", ["tilt", "tilt, many", "general"])
def test_reaching_max_iter_is_reported(route):
    shape = IMAGE_SHAPE if route == "tilt, many" else (3, 4, 3)
    poset = TensorPoset(shape)
    # For a distant reference, a three-body tilt needs more than the initial sweeps.
    p, r = random_prob(np.random.default_rng(0), shape, 2, concentration=0.3)
    matched = poset.order == 2 if route == "general" else poset.order <= 2
    if route == "tilt, many":
        matched = poset.order <= 3
    found = mixed_projection(p, r, matched, poset, tol=1e-10, max_iter=1)
    assert found.route == route.split(",")[0]
    assert not found.converged
    assert found.residual > 1e-10
    assert found.n_iter == 1


# --- invalid input ----------------------------------------------------------------


def good():
    return random_prob(np.random.default_rng(0), (2, 3))


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 3, 1), ()])
def test_wrong_shapes_are_rejected(shape):
    poset, p = TensorPoset((2, 3)), good()
    other = np.full(shape, 1 / max(1, np.prod(shape)))
    matched = poset.order == 1
    with pytest.raises(ValueError):
        mixed_projection(other, None, matched, poset)
    with pytest.raises(ValueError):
        mixed_projection(p, other, matched, poset)
    with pytest.raises(ValueError):
        mixed_projection(p, None, other > 0, poset)


@pytest.mark.parametrize("order", ["splice", "tilt", "general"])
@pytest.mark.parametrize("damage", ["mass", "negative", "nan", "inf"])
def test_arrays_that_are_not_distributions_are_rejected(damage, order):
    poset, p = TensorPoset((2, 3)), good()
    bad = p.copy()
    if damage == "mass":
        bad *= 1.001
    elif damage == "negative":
        bad[0, 1] += 2 * bad[1, 1]
        bad[1, 1] *= -1
        assert bad.sum() == pytest.approx(1)
    else:
        bad[1, 1] = float(damage)
    matched = {"splice": poset.order == 2, "tilt": poset.order == 1}.get(
        order, np.arange(6).reshape(2, 3) == 1
    )
    with pytest.raises(ValueError):
        mixed_projection(bad, None, matched, poset)
    with pytest.raises(ValueError):
        mixed_projection(p, bad, matched, poset)


@pytest.mark.parametrize("with_reference", [False, True])
def test_many_rows_are_projected_in_blocks(with_reference):
    # Without blocks, temporary arrays would need many times the memory of the rows.
    poset, rng = TensorPoset((4, 4, 4)), np.random.default_rng(0)
    p = random_prob(rng, poset.shape, 12000)
    reference = random_prob(rng, poset.shape, 12000) if with_reference else None
    matched = (poset.order == 1) | (poset.order == 2)
    tracemalloc.start()
    found = mixed_projection(p, reference, matched, poset)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * p.nbytes
    assert found.converged.all()
    last = mixed_projection(
        p[-5:], None if reference is None else reference[-5:], matched, poset
    )
    assert_allclose(found.prob[-5:], last.prob, atol=1e-9)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 100])
@pytest.mark.parametrize("seed", SEEDS)
def test_residual_is_the_largest_error_of_eta(seed, max_iter):
    # With conjugate gradients, the iteration only computes a bound of the residual.
    shape = (5, 4, 3, 4)
    poset = TensorPoset(shape)
    matched = (poset.order > 0) & (poset.order <= 3)
    target = random_prob(np.random.default_rng(seed), shape, 6, 0.3)
    found = mixed_projection(target, None, matched, poset, max_iter=max_iter)
    assert found.converged.all() == (max_iter == 100)
    gap = poset.eta(found.prob - target)
    missing = np.abs(gap[:, matched]).max(axis=1)
    assert_allclose(found.residual, missing, rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2, 2), (7, 5)], ids=str)
def test_no_error_of_eta_exceeds_half_of_the_gradient(shape):
    rng, poset = np.random.default_rng(0), TensorPoset(shape)
    for order in range(1, len(shape) + 1):
        basis = bases.ScaledBasis(shape, order)
        p, q = random_prob(rng, shape, 400, 0.1).reshape(2, 200, -1)
        gap = poset.eta((p - q).reshape(200, *shape))[:, poset.order_mask(order)]
        length = np.linalg.norm(basis.analysis(p - q), axis=1)
        assert np.all(np.abs(gap).max(axis=1) <= 0.5 * length + 1e-14)
