"""Encoding of rows and decoding of codes by the projectors."""

import re
import tracemalloc
import warnings

import numpy as np
import pytest
from _oracles import mixed_projection_slow, random_poset, tensor_leq, tensor_relations
from _projectors import backward
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_pnl import (
    BackwardProjector,
    Codes,
    ManyBodyProjector,
    PNLAugmenter,
    PrimeFactorReshaper,
)
from sklearn_pnl.encoding.manifolds import (
    EtaManifold,
    FiberManifold,
    MixtureManifold,
    ThetaManifold,
)
from sklearn_pnl.geometry import (
    Poset,
    RakingError,
    TensorPoset,
    chain_poset,
    eta_from_prob,
    interaction_mask,
    kl_divergence,
    many_body_projection,
    prob_from_theta,
    theta_from_prob,
    tree_poset,
)

SEEDS = [0, 1, 2]


SHAPES = [(3, 4), (2, 3, 2), (3, 1, 4), (2, 2, 2, 2)]


def tensors(seed, *shape, n=6):
    """Return rows with different masses, in which a fifth of the cells are 0."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n, *shape)) * rng.uniform(0.5, 20, (n, *(1,) * len(shape)))
    return np.where(rng.random(X.shape) < 0.2, 0.0, X)


def distributions(X, offset):
    p = X + offset
    return p / p.sum(axis=tuple(range(1, p.ndim)), keepdims=True)


def product_of_marginals(p):
    product = np.ones((len(p), *(1,) * (p.ndim - 1)))
    for mode in range(1, p.ndim):
        others = tuple(k for k in range(1, p.ndim) if k != mode)
        product = product * p.sum(axis=others, keepdims=True)
    return product


@pytest.fixture(scope="module")
def digits():
    """Return images on 0 to 255 with empty borders, as tensors with six modes."""
    images = load_digits().images[:120] * (255 / 16)
    return PrimeFactorReshaper().fit_transform(images)


@pytest.mark.parametrize("offset", [1e-5, 0.5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_order_one_is_the_product_of_the_marginals(seed, shape, offset):
    X = tensors(seed, *shape)
    projector = ManyBodyProjector(order=1, offset=offset)
    q = projector.inverse_transform(projector.fit_transform(X))
    expected = product_of_marginals(distributions(X, offset))
    assert_allclose(q, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("order", [1, 2, [(0, 1), (2,)]])
@pytest.mark.parametrize("seed", SEEDS)
def test_zero_cells_need_no_offset_where_marginals_are_positive(seed, order):
    X = 0.1 + tensors(seed, 3, 2, 4)
    X[0, 1, 0, 2] = X[1, 2, 1, 0] = X[1, 0, 0, 3] = 0
    projector = ManyBodyProjector(order, offset=0, tol=1e-10)
    q = projector.inverse_transform(projector.fit_transform(X))
    expected = many_body_projection(
        distributions(X, 0), TensorPoset(X.shape[1:]), order, tol=1e-10
    )
    assert_allclose(q, expected.prob, rtol=1e-6, atol=1e-12)
    assert_allclose(projector.transform(X[:2]), projector.transform(X)[:2])
    # The marginal of the modes 0 and 1 has no interaction of order 1.
    X[4, 2, 1] = 0
    if order == 1:
        projector.transform(X)
    else:
        with pytest.raises(ValueError, match="Cell 20 of row 4 is 0"):
            projector.transform(X)
    with pytest.raises(ValueError, match="Cell 10 of row 0 is 0"):
        BackwardProjector(ManyBodyProjector(order, offset=0)).fit(X)


def test_zero_cells_need_an_offset_in_a_chain_and_next_to_missing_cells():
    X = np.ones((2, 3, 4))
    X[1, 0, 1] = 0
    ManyBodyProjector(1, offset=0).fit(X)
    holes = X.copy()
    holes[1, 2, 3] = np.nan
    for rows, settings in (
        (X.reshape(2, 12), {"poset": chain_poset(12)}),
        (X, {"base": [(1, 1)]}),
        (holes, {"handle_missing": "ignore"}),
    ):
        with pytest.raises(ValueError, match="Cell 1 of row 1 is 0"):
            ManyBodyProjector(offset=0, **settings).fit(rows)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_decoded_code_keeps_eta_and_has_no_higher_theta(seed, order):
    # Two conditions on the output define the m-projection.
    X = tensors(seed, 2, 3, 2, 2)
    projector = ManyBodyProjector(order, offset=0.1, tol=1e-10)
    q = projector.inverse_transform(projector.fit_transform(X))
    poset = TensorPoset(X.shape[1:])
    assert_allclose(q.sum(axis=(1, 2, 3, 4)), 1, rtol=1e-12)
    kept = poset.order <= order
    difference = eta_from_prob(q - distributions(X, 0.1), poset)
    assert np.abs(difference[:, kept]).max() <= 1e-10
    assert_allclose(theta_from_prob(q, poset)[:, ~kept], 0, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_pythagorean_theorem(seed, order):
    # KL(p, r) = KL(p, q) + KL(q, r) for every r of the base (Amari 2016, chapter 2).
    X = tensors(seed, 3, 2, 3)
    projector = ManyBodyProjector(order, offset=0.1, tol=1e-10)
    codes = projector.fit_transform(X)
    p, q = distributions(X, 0.1), projector.inverse_transform(codes)
    noise = np.random.default_rng(seed).normal(size=codes.shape)
    r = projector.inverse_transform(codes + noise)
    cells = (1, 2, 3)
    legs = kl_divergence(p, q, axis=cells) + kl_divergence(q, r, axis=cells)
    assert_allclose(kl_divergence(p, r, axis=cells), legs, rtol=1e-8)


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_code_of_a_decoded_code_is_itself(seed, order, scale):
    # Decoding returns distributions, which offset=0 encodes unchanged.
    projector = ManyBodyProjector(order, offset=0).fit(1 + tensors(seed, 3, 2, 2))
    size = (20, projector.n_params_)
    codes = scale * np.random.default_rng(seed).normal(size=size)
    again = projector.transform(projector.inverse_transform(codes))
    assert_allclose(again, codes, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("offset", [1e-5, 1e-2, 1.0])
def test_residual_is_within_tol_on_images_with_empty_borders(digits, offset, order):
    projector = ManyBodyProjector(order, offset=offset)
    q = projector.inverse_transform(projector.fit_transform(digits))
    poset = projector.poset_
    difference = eta_from_prob(q - distributions(digits, offset), poset)
    # Codes are rounded, so the bound is twice tol.
    assert np.abs(difference[:, poset.order <= order]).max() <= 2e-6


def as_tensors(row, **params):
    X = np.random.default_rng(0).uniform(0.5, 1.5, size=(2, *row))
    return PrimeFactorReshaper(**params).fit_transform(X)


@pytest.mark.parametrize(
    ("row", "order", "n_params"),
    [
        ((28, 28), 1, 17),
        ((32, 32, 3), 5, 1410),
        ((4000,), 2, 136),
        ((60,), 1, 9),
        ((95,), 1, 23),
        ((11,), 2, 10),
    ],
)
def test_dimension_of_the_base_agrees_with_the_paper(row, order, n_params):
    # The paper counts the bottom, which is in a code only if the mass is.
    X = as_tensors(row)
    measures = ManyBodyProjector(order, with_mass=True).fit(X)
    assert measures.n_params_ == n_params
    projector = ManyBodyProjector(order).fit(X)
    assert projector.n_params_ == projector.base_mask_.sum() == n_params - 1
    assert projector.transform(X).shape == (2, n_params - 1)


@pytest.mark.parametrize(
    ("row", "local_order", "dimension"),
    [
        ((28, 28), 1, 767),
        ((32, 32, 3), 4, 2334),
        ((4000,), 3, 3430),
        ((60,), 2, 30),
        ((95,), 1, 72),
        ((12,), 1, 7),
    ],
)
def test_dimension_of_the_local_set_agrees_with_the_paper(row, local_order, dimension):
    X = as_tensors(row)
    manifold = FiberManifold(order=local_order)
    projector = backward(local_manifold=manifold, k_neighbors=2).fit(X)
    mask = projector.local_mask_
    assert mask.shape == X.shape[1:]
    assert mask.size - 1 - mask.sum() == dimension


@pytest.mark.parametrize("seed", SEEDS)
def test_disjoint_interactions_factorise(seed):
    # q preserves only the marginal of modes (0, 1) and the marginal of mode 2.
    X = tensors(seed, 3, 2, 4)
    projector = ManyBodyProjector([(0, 1), (2,)])
    q = projector.inverse_transform(projector.fit_transform(X))
    p = distributions(X, 1e-5)
    pair, single = p.sum(axis=3, keepdims=True), p.sum(axis=(1, 2), keepdims=True)
    assert_allclose(q, pair * single, rtol=1e-6)


def up_to_one_and_a_corner(shape):
    """Return a base with order 1 and one cell of order 2, no set of interactions."""
    mask = interaction_mask(shape, 1)
    mask[(1, 1, *(0,) * (len(shape) - 2))] = True
    return mask


@pytest.mark.parametrize("form", ["mask", "flat mask", "flat", "cells"])
@pytest.mark.parametrize("seed", SEEDS)
def test_base_can_be_any_elements_in_any_form(seed, form):
    X, mask = tensors(seed, 3, 2, 2), up_to_one_and_a_corner((3, 2, 2))
    base = {
        "mask": mask,
        "flat mask": mask.ravel(),
        "flat": np.flatnonzero(mask).tolist(),
        "cells": [tuple(cell) for cell in np.argwhere(mask).tolist()],
    }[form]
    projector = ManyBodyProjector(base=base, offset=0.1, tol=1e-10)
    q = projector.inverse_transform(projector.fit_transform(X))
    assert_array_equal(projector.base_mask_, mask)
    assert projector.n_params_ == mask.sum()
    eta = eta_from_prob(q - distributions(X, 0.1), projector.poset_)
    assert np.abs(eta[:, mask]).max() <= 1e-9
    beyond = ~mask
    beyond[0, 0, 0] = False
    assert_allclose(theta_from_prob(q, projector.poset_)[:, beyond], 0, atol=1e-9)


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_added_bottom_holds_the_mean_of_the_row(seed, with_mass):
    # The order has two unrelated pairs of features: 0 <= 1 and 2 <= 3.
    X, params = tensors(seed, 4), {"with_mass": with_mass, "offset": 0.1}
    added = Poset.from_relations(4, [(0, 1), (2, 3)], add_bottom=True)
    pairs = [(0, 1), (1, 2), (0, 3), (3, 4)]
    by_hand = Poset.from_relations(5, pairs)
    codes = ManyBodyProjector(poset=added, **params).fit_transform(X)
    filled = np.column_stack([X.mean(axis=1), X])
    expected = ManyBodyProjector(poset=by_hand, **params).fit_transform(filled)
    assert_allclose(codes, expected, atol=1e-10)


@pytest.mark.parametrize("offset", [1e-5, 0.5])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_measures_keep_the_mass_of_the_row(seed, order, offset):
    X = tensors(seed, 3, 2, 4)
    projector = ManyBodyProjector(order, offset=offset, with_mass=True)
    measures = projector.inverse_transform(projector.fit_transform(X))
    mass = X.sum(axis=(1, 2, 3)) + 24 * offset
    assert_allclose(measures.sum(axis=(1, 2, 3)), mass, rtol=1e-10)


def test_code_with_mass_starts_with_the_log_of_the_bottom_cell():
    X = tensors(0, 3, 4)
    projector = ManyBodyProjector(with_mass=True, offset=0.1)
    codes = projector.fit_transform(X)
    p = product_of_marginals(distributions(X, 0.1))
    bottom = p[:, 0, 0] * (X + 0.1).sum(axis=(1, 2))
    assert_allclose(codes[:, 0], np.log(bottom), atol=1e-10)
    without = ManyBodyProjector(offset=0.1).fit_transform(X)
    assert_allclose(codes[:, 1:], without, atol=1e-12)


@pytest.mark.parametrize("factor", [0.01, 1000.0])
def test_scaling_a_row_shifts_only_the_first_coordinate(factor):
    X = 1 + tensors(0, 3, 4)
    projector = ManyBodyProjector(with_mass=True, offset=0).fit(X)
    shift = projector.transform(factor * X) - projector.transform(X)
    assert_allclose(shift[:, 0], np.log(factor))
    assert_allclose(shift[:, 1:], 0, atol=1e-10)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_reconstruction_err_is_the_mean_kl_to_the_projection(seed, order):
    X = tensors(seed, 3, 2, 4)
    projector = ManyBodyProjector(order, offset=0.1).fit(X)
    p = distributions(X, 0.1)
    q = projector.inverse_transform(projector.transform(X))
    by_hand = (p * np.log(p / q)).sum(axis=(1, 2, 3)).mean()
    assert projector.reconstruction_err_ == pytest.approx(by_hand, rel=1e-9)
    assert projector.reconstruction_err_ > 1e-3


@pytest.mark.parametrize(
    ("with_mass", "expected"),
    [(False, ["theta_0_1", "theta_0_2", "theta_1_0"]),
     (True, ["theta_0_0", "theta_0_1", "theta_0_2", "theta_1_0"])],
)  # fmt: skip
def test_names_of_tensor_codes_are_cells(with_mass, expected):
    projector = ManyBodyProjector(with_mass=with_mass).fit(tensors(0, 2, 3))
    assert projector.get_feature_names_out().tolist() == expected


@pytest.mark.parametrize("projector", [ManyBodyProjector, backward])
@pytest.mark.parametrize("shape", [(8, 8), (12,), (2, 5, 3)], ids=str)
def test_names_go_through_a_pipeline(shape, projector):
    reshaper, X = PrimeFactorReshaper(), tensors(0, *shape)
    both = make_pipeline(reshaper, projector(offset=0.1)).fit(X)
    cells = np.array(reshaper.get_feature_names_out(), dtype=object)
    free = both[-1].base_mask_.ravel()
    expected = [f"theta_{name}" for name in cells[free]]
    assert both.get_feature_names_out().tolist() == expected
    assert both.get_feature_names_out().shape == (both.transform(X).shape[1],)


def test_a_long_chain_needs_no_matrix():
    # The zeta matrix of the chain would have four million entries.
    X = tensors(0, 3000, n=5)
    tracemalloc.start()
    ManyBodyProjector(poset=chain_poset(3000), offset=0.1).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * X.nbytes


def test_codes_of_tensors_can_be_data_frames():
    pytest.importorskip("pandas")
    X = tensors(0, 2, 3)
    projector = ManyBodyProjector().set_output(transform="pandas").fit(X)
    codes = projector.transform(X)
    assert codes.columns.tolist() == projector.get_feature_names_out().tolist()
    assert_array_equal(
        projector.inverse_transform(codes), projector.inverse_transform(codes.values)
    )


@pytest.fixture(scope="module")
def many_rows():
    """Return 600 rows of 512 cells, which are more than one block."""
    return np.random.default_rng(0).gamma(0.3, size=(600, 8, 8, 8))


@pytest.mark.parametrize("method", ["fit", "fit_transform", "transform"])
def test_projections_that_do_not_converge_raise_one_warning(digits, method):
    projector = ManyBodyProjector(order=2, offset=1e-5, max_iter=1)
    if method == "transform":
        with pytest.warns(ConvergenceWarning):
            projector.fit(digits)
        # The parameters change only at the next fit.
        projector.set_params(max_iter=10_000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(projector, method)(digits)
    (warning,) = caught
    assert warning.category is ConvergenceWarning
    message = str(warning.message)
    assert "ManyBodyProjector: " in message
    assert "max_iter=1 " in message
    assert "tol=1e-06" in message
    residual = float(re.search(r"\d\.\de[-+]\d+", message)[0])
    assert residual > 1e-6


def test_images_with_empty_pixels_converge_at_the_order_of_the_paper():
    # Ten modes of length 2 and one of length 3 have 1,409 coordinates at order 5.
    # Conjugate gradients fail for rows in which many cells are near 0.
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(2, *[2] * 10, 3))) * (
        rng.random((2, *[2] * 10, 3)) < 0.5
    )
    X[:, 0] *= 1e-3
    projector = ManyBodyProjector(5, offset=1e-5)
    codes = projector.fit_transform(X)
    assert codes.shape == (2, 1409) and projector.n_iter_ < projector.max_iter


MANIFOLDS = ["fiber", "theta", "eta", "mixture"]


SHAPE = (3, 2, 4)


def positive(seed, *shape, n=12):
    """Return positive rows with different masses."""
    rng = np.random.default_rng(seed)
    mass = rng.uniform(1, 30, (n, *(1,) * len(shape)))
    return (rng.gamma(1.0, size=(n, *shape)) + 0.05) * mass


def with_zeros(seed, *shape, n=12):
    """Return rows in which three of ten cells are 0."""
    X = positive(seed, *shape, n=n)
    return np.where(np.random.default_rng(seed).random(X.shape) < 0.3, 0.0, X)


def normalise(X):
    return X / X.sum(axis=tuple(range(1, X.ndim)), keepdims=True)


def near_codes(projector, seed, scale):
    """Return codes of the training rows plus Gaussian noise."""
    rng = np.random.default_rng(seed + 1000)
    return projector.codes_ + scale * rng.normal(size=projector.codes_.shape)


def base_points(projector, codes):
    """Return the points of codes, decoded by the forward projector."""
    return projector.projector_.inverse_transform(codes).reshape(
        -1, *projector.poset_.shape
    )


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("offset", [1e-5, 1.0, 25.0])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_fiber_inverts_encoding_in_eta(digits, seed, order, offset, scale):
    # Each of the two projections has the default tol of 1e-6.
    projector = backward(order, offset=offset, k_neighbors=3).fit(digits)
    codes = near_codes(projector, seed, scale)
    again = projector.transform(projector.inverse_transform(codes))
    difference = base_points(projector, again) - base_points(projector, codes)
    assert np.abs(eta_from_prob(difference, projector.poset_)).max() <= 2e-6


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3, [(0, 1), (2,)]], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_fiber_inverts_encoding_of_tensors_with_zeros(seed, order, with_mass):
    projector = backward(order, offset=0.1, with_mass=with_mass)
    projector.fit(with_zeros(seed, *SHAPE))
    codes = near_codes(projector, seed, 0.5)
    again = projector.transform(projector.inverse_transform(codes))
    assert_allclose(again, codes, rtol=0, atol=1e-6)


@pytest.mark.parametrize("manifold", ["theta", "eta", "mixture"])
def test_the_other_manifolds_do_not_invert_encoding(manifold):
    # Otherwise the tests above would not show a property of "fiber".
    projector = backward(local_manifold=manifold).fit(positive(0, *SHAPE))
    codes = near_codes(projector, 0, 0.5)
    again = projector.transform(projector.inverse_transform(codes))
    assert np.abs(again - codes).max() > 0.1


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_offset_is_added_by_encoding_and_subtracted_by_decoding(seed, manifold):
    X = with_zeros(seed, *SHAPE)
    params = {"order": 2, "local_manifold": manifold, "k_neighbors": 3}
    lifted = backward(**params, offset=0).fit(X + 0.5)
    projector = backward(**params, offset=0.5).fit(X)
    codes = near_codes(projector, seed, 0.3)
    by_hand = lifted.inverse_transform(codes) - 0.5
    assert_allclose(projector.inverse_transform(codes), by_hand, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_code_of_a_row_with_one_neighbor_is_decoded_to_the_row(seed, order):
    X = with_zeros(seed, *SHAPE)
    projector = backward(order, k_neighbors=1).fit(X)
    assert_allclose(projector.inverse_transform(projector.codes_), X, atol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("step", [0.0, 0.3, 0.98, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_mixture_is_the_m_geodesic(seed, step, offset):
    projector = backward(
        local_manifold=MixtureManifold(step), k_neighbors=3, offset=offset
    ).fit(positive(seed, *SHAPE))
    codes = near_codes(projector, seed, 0.5)
    near = projector.kneighbors(codes, return_distance=False)
    lifted = projector.rows_ + offset
    mass = lifted.sum(axis=(1, 2, 3))[near].mean(axis=1)
    mean = normalise(lifted)[near].mean(axis=1)
    q = (1 - step) * base_points(projector, codes) + step * mean
    expected = q * mass[:, None, None, None] - offset
    assert_allclose(projector.inverse_transform(codes), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_decoded_rows_have_the_mean_mass_of_their_neighbors(seed, manifold):
    projector = backward(local_manifold=manifold, offset=0, k_neighbors=4)
    X = positive(seed, *SHAPE)
    codes = near_codes(projector.fit(X), seed, 0.5)
    near = projector.kneighbors(codes, return_distance=False)
    mass = X.sum(axis=(1, 2, 3))[near].mean(axis=1)
    assert_allclose(projector.inverse_transform(codes).sum(axis=(1, 2, 3)), mass)


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_decoded_rows_have_the_mass_of_their_code(seed, manifold):
    projector = backward(local_manifold=manifold, offset=0, with_mass=True)
    codes = near_codes(projector.fit(positive(seed, *SHAPE)), seed, 0.5)
    mass = base_points(projector, codes).sum(axis=(1, 2, 3))
    assert_allclose(projector.inverse_transform(codes).sum(axis=(1, 2, 3)), mass)


def test_more_neighbors_than_rows_are_clipped_with_a_warning():
    X = positive(0, *SHAPE, n=3)
    with pytest.warns(UserWarning, match="3 rows") as caught:
        projector = backward(k_neighbors=5).fit(X)
    assert len(caught) == 1
    assert projector.k_neighbors_ == 3
    assert projector.k_neighbors == 5
    all_three = backward(k_neighbors=3).fit(X)
    codes = near_codes(projector, 0, 0.5)
    assert_array_equal(
        projector.inverse_transform(codes), all_three.inverse_transform(codes)
    )


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("with_mass", [False, True])
def test_float32_stays_float32_and_close(with_mass, manifold):
    X = positive(0, *SHAPE).astype(np.float32)
    params = {"local_manifold": manifold, "with_mass": with_mass, "k_neighbors": 3}
    single = backward(**params).fit(X)
    double = backward(**params).fit(X.astype(np.float64))
    assert single.codes_.dtype == single.transform(X).dtype == np.float32
    assert_allclose(single.codes_, double.codes_, atol=1e-4)
    codes = near_codes(double, 0, 0.1)
    rows = single.inverse_transform(codes.astype(np.float32))
    assert rows.dtype == np.float32
    assert_allclose(rows, double.inverse_transform(codes), rtol=1e-3)


def test_codes_agree_with_the_forward_projector():
    X = positive(0, *SHAPE)
    projector = backward(order=2)
    assert_array_equal(projector.fit_transform(X), projector.transform(X))
    assert_array_equal(projector.codes_, ManyBodyProjector(order=2).fit_transform(X))
    assert projector.n_params_ == projector.codes_.shape[1]
    theta = np.zeros((12, *SHAPE))
    theta[:, interaction_mask(SHAPE, 2)] = projector.codes_
    assert_allclose(
        base_points(projector, projector.codes_),
        prob_from_theta(theta, projector.poset_),
        rtol=1e-12,
    )


def decode_bytes(X, manifold, n_jobs=None):
    projector = backward(local_manifold=manifold, offset=0.1, n_jobs=n_jobs).fit(X)
    codes = near_codes(projector, 0, 0.1)
    return codes.tobytes(), projector.inverse_transform(codes).tobytes()


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_n_jobs_and_working_memory_do_not_change_results(many_rows, manifold):
    usual = decode_bytes(many_rows, manifold)
    assert decode_bytes(many_rows, manifold, n_jobs=2) == usual
    with config_context(working_memory=1):
        assert decode_bytes(many_rows, manifold) == usual


@pytest.mark.parametrize("manifold", ["fiber", "eta"])
def test_decoding_that_does_not_converge_raises_one_warning(digits, manifold):
    projector = backward(
        2, local_manifold=manifold, offset=1e-5, k_neighbors=3, max_iter=1
    )
    with pytest.warns(ConvergenceWarning):
        codes = near_codes(projector.fit(digits), 0, 0.3)
    # The parameters change only at the next fit.
    projector.set_params(order__max_iter=10_000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = projector.inverse_transform(codes)
    (warning,) = caught
    assert warning.category is ConvergenceWarning
    for part in ("BackwardProjector", "max_iter=1 ", "tol=1e-06"):
        assert part in str(warning.message)
    assert np.isfinite(rows).all()


def test_a_projector_is_cloned_and_its_parameters_can_be_searched():
    X = positive(0, *SHAPE, n=30)
    given = ManyBodyProjector(2, offset=0.5, with_mass=True)
    search = GridSearchCV(
        BackwardProjector(given, k_neighbors=2),
        [
            {"order__order": [1, [(0, 1)]]},
            {"order__order": [1], "order__base": [[(0, 0, 1)]]},
        ],
        scoring=lambda projector, X, y=None: -projector.n_params_,
        cv=2,
    ).fit(X)
    # The code contains the bottom, which has the mass, and one element.
    assert search.best_estimator_.n_params_ == 2
    assert given.order == 2 and not hasattr(given, "poset_")
    fitted = BackwardProjector(given).fit(X)
    assert fitted.projector_ is not given
    assert_allclose(fitted.codes_, given.fit_transform(X))
    by_number = BackwardProjector(2).fit(X)
    assert_array_equal(by_number.codes_, ManyBodyProjector(2).fit_transform(X))
    with pytest.raises(ValueError):
        BackwardProjector(ManyBodyProjector(offset=-1)).fit(X)


SOLVED = {"fiber": FiberManifold, "theta": ThetaManifold, "eta": EtaManifold}


OFFSET = 0.05


def rows_of(seed, *shape, n_rows=10, empty=0.1):
    """Return rows with some empty cells."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n_rows, *shape))
    return X * (rng.random(X.shape) >= empty)


def flat_p(X, offset=OFFSET):
    p = X.reshape(len(X), -1) + offset
    return p / p.sum(axis=1, keepdims=True)


BLOCK = np.arange(5, 12)


STRIDE = np.arange(0, 24, 3)


BASES = {"block": BLOCK, "every third": STRIDE, "mask": np.arange(24) % 5 < 2}


def as_mask(base, n_elements=24):
    mask = np.zeros(n_elements, bool)
    mask[base] = True
    mask[0] = False
    return mask


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("seed", SEEDS)
def test_base_of_any_elements_agrees_with_a_generic_optimiser(seed, base):
    X, leq, mask = rows_of(seed, *SHAPE, n_rows=4), tensor_leq(SHAPE), as_mask(base)
    projector = ManyBodyProjector(base=base, offset=OFFSET, tol=1e-11)
    q = projector.inverse_transform(projector.fit_transform(X)).reshape(4, 24)
    p, uniform = flat_p(X), np.full(24, 1 / 24)
    expected = [mixed_projection_slow(row, uniform, mask, leq) for row in p]
    assert_array_equal(projector.base_mask_.ravel(), mask)
    assert_allclose(q, expected, atol=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_base_of_a_random_poset_agrees_with_a_generic_optimiser(seed):
    rng = np.random.default_rng(seed)
    poset, leq = random_poset(rng, 60, density=0.05)
    X, mask = rows_of(seed, 60, n_rows=3), rng.random(60) < 0.4
    projector = ManyBodyProjector(base=mask, poset=poset, offset=OFFSET, tol=1e-11)
    q = projector.inverse_transform(projector.fit_transform(X))
    mask[poset.bottom] = False
    uniform = np.full(60, 1 / 60)
    expected = [mixed_projection_slow(p, uniform, mask, leq) for p in flat_p(X)]
    assert_allclose(q, expected, atol=1e-7)


@pytest.mark.parametrize("local_base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("manifold", SOLVED)
@pytest.mark.parametrize("seed", SEEDS)
def test_local_base_divides_theta_and_eta(seed, manifold, local_base):
    # Amari 2016, section 2.8, describes mixed coordinates.
    X, leq, low = rows_of(seed, *SHAPE), tensor_leq(SHAPE), as_mask(local_base)
    projector = backward(
        local_manifold=SOLVED[manifold](base=local_base),
        k_neighbors=3,
        offset=OFFSET,
        tol=1e-11,
    ).fit(X)
    codes = projector.codes_[:4] + 0.1
    forward = ManyBodyProjector(offset=OFFSET).fit(X)
    w = forward.inverse_transform(codes).reshape(4, 24)
    near = projector.kneighbors(codes, return_distance=False)
    arithmetic = flat_p(X)[near].mean(axis=1)
    geometric = np.exp(np.log(flat_p(X))[near].mean(axis=1))
    geometric /= geometric.sum(axis=1, keepdims=True)
    target, reference, matched = {
        "fiber": (w, arithmetic, low),
        "theta": (w, geometric, ~low & (np.arange(24) > 0)),
        "eta": (arithmetic, w, low),
    }[manifold]
    expected = [
        mixed_projection_slow(t, r, matched, leq)
        for t, r in zip(target, reference, strict=True)
    ]
    found = flat_p(projector.inverse_transform(codes))
    assert_array_equal(projector.local_mask_.ravel(), low)
    assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("seed", SEEDS)
def test_fiber_of_any_base_is_the_inverse_of_encoding(seed, base):
    X = rows_of(seed, *SHAPE)
    projector = backward(base=base, offset=OFFSET, tol=1e-11).fit(X)
    codes = projector.codes_ + np.random.default_rng(seed).normal(0, 0.1)
    again = projector.transform(projector.inverse_transform(codes))
    assert_allclose(again, codes, atol=1e-6)


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_general_poset_of_a_tensor_gives_its_rows(manifold):
    X, shape = rows_of(0, 30), (3, 10)
    rows, new = [], []
    for poset in (
        Poset.from_relations(30, tensor_relations(shape)),
        TensorPoset(shape),
    ):
        base = ManyBodyProjector(1, poset=poset, offset=OFFSET, tol=1e-11)
        projector = BackwardProjector(base, local_manifold=manifold).fit(X)
        rows.append(projector.inverse_transform(projector.codes_ + 0.1))
        augmenter = PNLAugmenter(Codes(base, local_manifold=manifold)).fit(X)
        new.append(augmenter.sample(20, random_state=0))
        assert rows[-1].shape == (10, 30) and new[-1].shape == (20, 30)
    assert_allclose(*rows, atol=1e-6)
    assert_allclose(*new, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_forest_of_features_decodes_to_rows_of_features(seed):
    X = rows_of(seed, 6)
    poset = tree_poset([-1, 0, 0, -1, 3, 4], add_bottom=True)
    projector = backward(poset=poset, offset=OFFSET, k_neighbors=1).fit(X)
    # All elements except the bottom have order 1, so that codes are complete.
    assert projector.n_params_ == 6
    assert_allclose(projector.inverse_transform(projector.codes_), X, atol=1e-9)
    names = projector.get_feature_names_out()
    assert names.tolist() == [f"theta_x{k}" for k in range(6)]


@pytest.mark.parametrize("n_features", [2, 4, 5])
@pytest.mark.parametrize("make", [ManyBodyProjector, backward])
def test_rows_with_a_feature_for_the_added_bottom_are_rejected(make, n_features):
    # The poset has 4 elements, but the bottom is no feature.
    poset = tree_poset([-1, 0, -1], add_bottom=True)
    with pytest.raises(ValueError, match="3 features"):
        make(poset=poset).fit(rows_of(0, n_features))


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("kind", ["tensor", "poset", "base"])
@pytest.mark.parametrize("seed", SEEDS)
def test_decoding_with_mass_keeps_the_sum_of_every_row(seed, kind, manifold):
    X = rows_of(seed, 24) * np.logspace(-1, 2, 10)[:, None]
    rng = np.random.default_rng(seed)
    params = {
        "tensor": {"poset": TensorPoset(SHAPE), "order": 2},
        "poset": {"poset": random_poset(rng, 24)[0]},
        "base": {"poset": TensorPoset(SHAPE), "base": STRIDE},
    }[kind]
    projector = backward(
        **params, local_manifold=manifold, with_mass=True, k_neighbors=4
    ).fit(X)
    rows = projector.inverse_transform(projector.codes_)
    assert_allclose(rows.sum(axis=1), X.sum(axis=1), rtol=1e-9)


def test_rows_have_the_requested_margins():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(40, 6, 8)) * (rng.random((40, 6, 8)) < 0.7)
    projector = backward(order=1, offset=1e-3).fit(X)
    wanted = rng.gamma(3.0, size=(5, 6, 8))
    margins = {(0,): wanted.sum(axis=2), (1,): wanted.sum(axis=1)}
    rows = projector.decode_margins(margins)
    size = wanted.sum(axis=(1, 2)).max()
    np.testing.assert_allclose(rows.sum(axis=2), margins[(0,)], atol=1e-8 * size)
    np.testing.assert_allclose(rows.sum(axis=1), margins[(1,)], atol=1e-8 * size)
    assert rows.min() >= -1e-3
    one = projector.decode_margins({(1,): margins[(1,)][:2]})
    np.testing.assert_allclose(one.sum(axis=1), margins[(1,)][:2], atol=1e-8 * size)


@pytest.mark.parametrize("seed", range(3))
def test_decoded_margins_are_the_tilt_of_the_mean_row(seed):
    # All rows are neighbours, so that the mean row is known.
    rng = np.random.default_rng(seed)
    X, offset = rng.gamma(1.0, size=(8, 3, 4)), 0.01
    projector = backward(k_neighbors=8, offset=offset, with_mass=True).fit(X)
    wanted = rng.gamma(2.0, size=(3, 4))
    margins = {(0,): wanted.sum(axis=1)[None], (1,): wanted.sum(axis=0)[None]}
    rows = projector.decode_margins(margins, tol=1e-12)
    lifted = X + offset
    reference = (lifted / lifted.sum(axis=(1, 2), keepdims=True)).mean(axis=0)
    lifted = wanted + offset
    right = np.concatenate([lifted.sum(axis=1), lifted.sum(axis=0)])

    def dual(y):
        q = reference * np.exp(y[:3, None] + y[3:])
        return q.sum() - y @ right, np.concatenate(
            [q.sum(axis=1), q.sum(axis=0)]
        ) - right

    y = minimize(dual, np.zeros(7), jac=True, options={"gtol": 1e-10}).x
    expected = reference * np.exp(y[:3, None] + y[3:]) - offset
    np.testing.assert_allclose(rows[0], expected, atol=1e-6)


@pytest.mark.parametrize("method", ["transform", "to_measures"])
def test_columns_must_be_those_of_fit(method):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(
        np.random.default_rng(0).uniform(size=(9, 3)), columns=[*"abc"]
    )
    projector = ManyBodyProjector(order=1).fit(X)
    with pytest.raises(ValueError, match="feature names"):
        getattr(projector, method)(X[["b", "a", "c"]])


@pytest.mark.parametrize(
    ("margin", "message"),
    [
        ([4.0, -1.0], r"margin \(0,\)"),
        (np.ma.array([2.0, 1.0], mask=[0, 1]), r"margin \(0,\)"),
        (np.array([2 + 1j, 1]), r"margin \(0,\) .*complex128"),
    ],
)
def test_margins_are_checked_before_the_offset_is_added(margin, message):
    X = np.random.default_rng(0).uniform(0.1, 1, size=(6, 2, 3))
    projector = BackwardProjector(ManyBodyProjector(1), k_neighbors=3).fit(X)
    with pytest.raises(ValueError, match=message):
        projector.decode_margins({(0,): margin})


@pytest.mark.parametrize("margins", [{0: [1.0, 2, 3]}, [[1.0, 2, 3]], {"rows": [1.0]}])
def test_margins_without_modes_are_rejected(margins):
    projector = backward().fit(np.random.default_rng(0).uniform(size=(9, 3, 4)))
    with pytest.raises(ValueError, match="margins"):
        projector.decode_margins(margins)


def test_inconsistent_margins_are_named_in_the_units_of_the_user():
    X = np.random.default_rng(0).uniform(size=(9, 3, 4))
    projector = backward(offset=1.0).fit(X)
    margins = {(0,): [[2, 1, 3], [1, 2, 3]], (1,): [[2, 2, 1, 1], [1, 1, 1, 1]]}
    with pytest.raises(RakingError, match=r"^Row 1: .*\(2,\)") as caught:
        projector.decode_margins(margins)
    # decode_margins has no parameter `strict`; only `rake` has.
    assert "strict" not in str(caught.value)
