"""The forward projection as users see it: codes of rows, and the points they name."""

import tracemalloc
import warnings
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from sklearn_pnl import (
    BackwardProjector,
    FiberManifold,
    ManyBodyProjector,
    PrimeFactorReshaper,
    geometry,
)
from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    chain_poset,
    eta_from_prob,
    interaction_mask,
    kl_divergence,
    many_body_projection,
    theta_from_prob,
)

SEEDS = [0, 1, 2]
SHAPES = [(3, 4), (2, 3, 2), (3, 1, 4), (2, 2, 2, 2)]


def tensors(seed, *shape, n=6):
    """Rows of different masses; a fifth of the cells are zero."""
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


def tensor_relations(shape):
    """One step up along one mode, for every cell that has one."""
    cells = np.arange(np.prod(shape)).reshape(shape)
    pairs = []
    for mode in range(len(shape)):
        lower = np.moveaxis(cells, mode, 0)
        pairs += list(zip(lower[:-1].ravel(), lower[1:].ravel(), strict=True))
    return np.array(pairs)


@pytest.fixture(scope="module")
def digits():
    """Images on 0..255 with empty borders, as tensors of six modes."""
    images = load_digits().images[:120] * (255 / 16)
    return PrimeFactorReshaper().fit_transform(images)


# --- the projection -------------------------------------------------------------


@pytest.mark.parametrize("offset", [1e-5, 0.5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_order_one_is_the_product_of_the_marginals(seed, shape, offset):
    X = tensors(seed, *shape)
    projector = ManyBodyProjector(order=1, offset=offset)
    q = projector.inverse_transform(projector.fit_transform(X))
    expected = product_of_marginals(distributions(X, offset))
    assert_allclose(q, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("order", [1, 2, [(0, 1), (2,)], [(1, 2)]], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_codes_are_theta_of_the_projection_on_the_base(seed, order):
    X = tensors(seed, 3, 2, 4)
    codes = ManyBodyProjector(order, offset=0.1).fit_transform(X)
    poset = TensorPoset((3, 2, 4))
    q = many_body_projection(distributions(X, 0.1), poset, order).prob
    expected = theta_from_prob(q, poset)[:, interaction_mask(poset.shape, order)]
    assert_allclose(codes, expected, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_decoded_code_keeps_eta_and_has_no_higher_theta(seed, order):
    # The two conditions that define the m-projection, from the output alone.
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
    # KL(p, r) = KL(p, q) + KL(q, r) for every r of the base; Amari 2016, chapter 2.
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
    # Decoding gives distributions: offset=0 reads them back as they are.
    projector = ManyBodyProjector(order, offset=0).fit(1 + tensors(seed, 3, 2, 2))
    size = (20, projector.n_params_)
    codes = scale * np.random.default_rng(seed).normal(size=size)
    again = projector.transform(projector.inverse_transform(codes))
    assert_allclose(again, codes, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_full_order_is_the_identity(seed):
    X = tensors(seed, 3, 2, 4)
    projector = ManyBodyProjector(order=3)
    q = projector.inverse_transform(projector.fit_transform(X))
    assert_allclose(q, distributions(X, 1e-5), rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_dimensional_input_is_one_mode(seed):
    X = tensors(seed, 7)
    projector = ManyBodyProjector(order=1)
    codes = projector.fit_transform(X)
    assert projector.poset_ == TensorPoset((7,))
    assert codes.shape == (6, 6)
    q = projector.inverse_transform(codes)
    assert_allclose(q, distributions(X, 1e-5), rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("offset", [1e-5, 1e-2, 1.0])
def test_residual_is_within_tol_on_images_with_empty_borders(digits, offset, order):
    projector = ManyBodyProjector(order, offset=offset)
    q = projector.inverse_transform(projector.fit_transform(digits))
    poset = projector.poset_
    difference = eta_from_prob(q - distributions(digits, offset), poset)
    # Twice tol leaves room for the rounding of codes.
    assert np.abs(difference[:, poset.order <= order]).max() <= 2e-6


# --- the base -------------------------------------------------------------------


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
def test_dimension_of_the_base_is_that_of_the_paper(row, order, n_params):
    # The paper counts the bottom, which a code carries only with its mass.
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
def test_dimension_of_the_local_set_is_that_of_the_paper(row, local_order, dimension):
    X = as_tensors(row)
    manifold = FiberManifold(order=local_order)
    projector = BackwardProjector(local_manifold=manifold, n_neighbors=2).fit(X)
    mask = projector.local_mask_
    assert mask.shape == X.shape[1:]
    assert mask.size - 1 - mask.sum() == dimension


@pytest.mark.parametrize("seed", SEEDS)
def test_disjoint_interactions_factorise(seed):
    # q keeps the marginal of modes (0, 1) and that of mode 2, and nothing else.
    X = tensors(seed, 3, 2, 4)
    projector = ManyBodyProjector([(0, 1), (2,)])
    q = projector.inverse_transform(projector.fit_transform(X))
    p = distributions(X, 1e-5)
    pair, single = p.sum(axis=3, keepdims=True), p.sum(axis=(1, 2), keepdims=True)
    assert_allclose(q, pair * single, rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_modes_without_interaction_are_uniform(seed):
    X = tensors(seed, 3, 2, 4)
    projector = ManyBodyProjector([(0,)])
    q = projector.inverse_transform(projector.fit_transform(X))
    marginal = distributions(X, 1e-5).sum(axis=(2, 3), keepdims=True) / 8
    assert_allclose(q, np.broadcast_to(marginal, q.shape), rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_interactions_of_one_size_are_that_order(order):
    X = tensors(0, 2, 3, 2, 2)
    listed = ManyBodyProjector(list(combinations(range(4), order))).fit(X)
    assert_allclose(
        listed.transform(X), ManyBodyProjector(order).fit_transform(X), atol=1e-8
    )


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_poset_gives_the_numbers_of_the_tensor_it_is(seed, order, with_mass):
    X = tensors(seed, 2, 3, 2)
    params = {"order": order, "offset": 0.1, "tol": 1e-10, "with_mass": with_mass}
    tensor = ManyBodyProjector(**params)
    poset = Poset.from_relations(12, tensor_relations((2, 3, 2)))
    general = ManyBodyProjector(**params, poset=poset)
    codes, flat = tensor.fit_transform(X), X.reshape(6, 12)
    assert_allclose(general.fit_transform(flat), codes, atol=1e-7)
    assert_allclose(
        general.inverse_transform(codes),
        tensor.inverse_transform(codes).reshape(6, 12),
        rtol=1e-10,
    )


def test_poset_of_a_chain_with_a_branch():
    # 0 < 1 < 2 and 0 < 3: two atoms, nothing above both, so every p is in the base.
    poset = Poset.from_relations(4, [(0, 1), (1, 2), (0, 3)])
    X = tensors(0, 4)
    projector = ManyBodyProjector(poset=poset)
    q = projector.inverse_transform(projector.fit_transform(X))
    assert projector.n_params_ == 3
    assert_allclose(q, distributions(X, 1e-5), rtol=1e-6)


def up_to_one_and_a_corner(shape):
    """A base that is no family of interactions: order 1 and one cell of order 2."""
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


@pytest.mark.parametrize("order", [1, 2])
def test_base_listed_in_full_is_an_order(order):
    X = tensors(0, 3, 2, 2)
    base = interaction_mask((3, 2, 2), order)
    assert_array_equal(
        ManyBodyProjector(base=base).fit_transform(X),
        ManyBodyProjector(order).fit_transform(X),
    )


def test_base_with_the_bottom_is_the_base_without():
    projector = ManyBodyProjector(base=[0, 1, 3], poset=TensorPoset((2, 2)))
    assert projector.fit(tensors(0, 2, 2)).n_params_ == 2


@pytest.mark.parametrize("order", [1, 2])
def test_flat_rows_on_a_tensor_poset_are_its_tensors(order):
    X, poset = tensors(0, 3, 2, 2), TensorPoset((3, 2, 2))
    flat = ManyBodyProjector(order, poset=poset)
    shaped = ManyBodyProjector(order)
    codes = shaped.fit_transform(X)
    assert_array_equal(flat.fit_transform(X.reshape(6, 12)), codes)
    assert_array_equal(flat.inverse_transform(codes), shaped.inverse_transform(codes))


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_added_bottom_holds_the_mean_of_the_row(seed, with_mass):
    # Two pairs, unrelated: features 0 <= 1 and 2 <= 3.
    X, params = tensors(seed, 4), {"with_mass": with_mass, "offset": 0.1}
    added = Poset.from_relations(4, [(0, 1), (2, 3)], add_bottom=True)
    pairs = [(0, 1), (1, 2), (0, 3), (3, 4)]
    by_hand = Poset.from_relations(5, pairs)
    codes = ManyBodyProjector(poset=added, **params).fit_transform(X)
    filled = np.column_stack([X.mean(axis=1), X])
    expected = ManyBodyProjector(poset=by_hand, **params).fit_transform(filled)
    assert_allclose(codes, expected, atol=1e-10)


# --- mass -----------------------------------------------------------------------


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
def test_scaling_a_row_shifts_the_first_coordinate_alone(factor):
    X = 1 + tensors(0, 3, 4)
    projector = ManyBodyProjector(with_mass=True, offset=0).fit(X)
    shift = projector.transform(factor * X) - projector.transform(X)
    assert_allclose(shift[:, 0], np.log(factor))
    assert_allclose(shift[:, 1:], 0, atol=1e-10)


# --- what a fit reports ---------------------------------------------------------


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


def test_a_closed_form_counts_as_one_iteration():
    assert ManyBodyProjector(order=1).fit(tensors(0, 3, 4)).n_iter_ == 1


def test_harder_data_take_more_iterations(digits):
    easy = ManyBodyProjector(order=2, offset=100.0).fit(digits).n_iter_
    hard = ManyBodyProjector(order=2, offset=1e-5).fit(digits).n_iter_
    assert 1 <= easy < hard <= 100


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_float32_stays_float32_and_close(seed, order, with_mass):
    X = tensors(seed, 3, 2, 4).astype(np.float32)
    single = ManyBodyProjector(order, offset=0.1, with_mass=with_mass)
    double = ManyBodyProjector(order, offset=0.1, with_mass=with_mass)
    codes = single.fit_transform(X)
    assert codes.dtype == np.float32
    exact = double.fit_transform(X.astype(np.float64))
    assert_allclose(codes, exact, rtol=1e-5, atol=1e-5)
    points = single.inverse_transform(codes)
    assert points.dtype == np.float32
    assert_allclose(points, double.inverse_transform(exact), rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool])
def test_integers_are_read_as_floats(dtype):
    X = tensors(0, 3, 4).astype(dtype)
    codes = ManyBodyProjector().fit_transform(X)
    assert codes.dtype == np.float64
    assert_array_equal(codes, ManyBodyProjector().fit_transform(X.astype(float)))


@pytest.mark.parametrize(
    ("with_mass", "expected"),
    [(False, ["theta_0_1", "theta_0_2", "theta_1_0"]),
     (True, ["theta_0_0", "theta_0_1", "theta_0_2", "theta_1_0"])],
)  # fmt: skip
def test_names_of_tensor_codes_are_cells(with_mass, expected):
    projector = ManyBodyProjector(with_mass=with_mass).fit(tensors(0, 2, 3))
    assert projector.get_feature_names_out().tolist() == expected


def test_names_of_table_codes_are_features():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(tensors(0, 3), columns=["red", "green", "blue"])
    projector = ManyBodyProjector().fit(frame)
    assert projector.get_feature_names_out().tolist() == ["theta_green", "theta_blue"]
    named = ManyBodyProjector(with_mass=True).fit(tensors(0, 3))
    assert named.get_feature_names_out(["a", "b", "c"]).tolist() == [
        "theta_a", "theta_b", "theta_c",
    ]  # fmt: skip


@pytest.mark.parametrize("projector", [ManyBodyProjector, BackwardProjector])
@pytest.mark.parametrize("shape", [(8, 8), (12,), (2, 5, 3)], ids=str)
def test_names_go_through_a_pipeline(shape, projector):
    reshaper, X = PrimeFactorReshaper(), tensors(0, *shape)
    both = make_pipeline(reshaper, projector(offset=0.1)).fit(X)
    cells = np.array(reshaper.get_feature_names_out(), dtype=object)
    free = both[-1].base_mask_.ravel()
    expected = [f"theta_{name}" for name in cells[free]]
    assert both.get_feature_names_out().tolist() == expected
    assert both.get_feature_names_out().shape == (both.transform(X).shape[1],)


def test_names_that_are_too_few_are_refused():
    projector = ManyBodyProjector().fit(tensors(0, 2, 3))
    with pytest.raises(ValueError, match="length equal to number of features"):
        projector.get_feature_names_out(list("abcde"))


def test_a_long_chain_needs_no_matrix():
    # Its zeta matrix would have four million entries.
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


# --- work in blocks -------------------------------------------------------------


@pytest.fixture(scope="module")
def many_rows():
    """More rows than one block holds: 600 of 512 cells."""
    return np.random.default_rng(0).gamma(0.3, size=(600, 8, 8, 8))


def encode_and_decode(X, n_jobs=None):
    projector = ManyBodyProjector(order=2, offset=0.1, n_jobs=n_jobs)
    codes = projector.fit_transform(X)
    points = projector.inverse_transform(codes)
    return codes.tobytes(), points.tobytes(), projector.reconstruction_err_


def test_every_number_of_jobs_gives_the_same_bytes(many_rows):
    assert encode_and_decode(many_rows) == encode_and_decode(many_rows, n_jobs=2)


def test_every_working_memory_gives_the_same_bytes(many_rows):
    usual = encode_and_decode(many_rows)
    for working_memory in (1, 4096):
        with config_context(working_memory=working_memory):
            assert encode_and_decode(many_rows) == usual


def test_blocks_join_in_the_order_of_the_rows(many_rows):
    projector = ManyBodyProjector(order=1, offset=0.1).fit(many_rows)
    codes = projector.transform(many_rows)
    assert_allclose(codes[::-1], projector.transform(many_rows[::-1]), atol=1e-10)
    q = projector.inverse_transform(codes)
    assert_allclose(q, product_of_marginals(distributions(many_rows, 0.1)), rtol=1e-9)


# --- out of steps ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["fit", "fit_transform", "transform"])
def test_one_warning_says_that_it_did_not_converge(digits, method):
    projector = ManyBodyProjector(order=2, offset=1e-5, max_iter=1)
    if method == "transform":
        with pytest.warns(ConvergenceWarning):
            projector.fit(digits)
        # What a fit was told holds until the next.
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
    residual = float(message.split("max|eta_q - eta*| is ")[1].split(" ")[0])
    assert residual > 1e-6
    assert "Increase max_iter or tol, or increase offset" in message


def test_the_residual_of_the_warning_is_the_worst(digits):
    projector = ManyBodyProjector(order=2, offset=1e-5, max_iter=1)
    with pytest.warns(ConvergenceWarning) as caught:
        codes = projector.fit_transform(digits)
    message = str(caught[0].message)
    named = float(message.split("max|eta_q - eta*| is ")[1].split(" ")[0])
    q = projector.inverse_transform(codes)
    poset = projector.poset_
    difference = np.abs(eta_from_prob(q - distributions(digits, 1e-5), poset))
    worst = difference[:, (poset.order > 0) & (poset.order <= 2)].max(axis=1)
    assert f"{(worst > 1e-6).sum()} of {len(digits)} projections" in message
    # The point where the iteration broke off lies in the base, so the code is its
    # own; the message has two figures.
    assert named == pytest.approx(worst.max(), rel=0.06)


def test_enough_steps_do_not_warn(digits):
    assert ManyBodyProjector(order=2, offset=1e-5).fit(digits).n_iter_ > 1


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("shape", [(3, 4), (2, 1, 3), (5, 3, 2, 2), (7, 2, 2, 7, 2, 2)])
def test_one_body_codes_from_marginals_are_those_of_the_projection(shape, with_mass):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 255, size=(6, *shape)) * (rng.random((6, *shape)) < 0.4)
    projector = ManyBodyProjector(offset=1e-5, with_mass=with_mass).fit(X)
    p = (X + 1e-5) / (X + 1e-5).reshape(6, -1).sum(axis=1).reshape(6, *[1] * len(shape))
    q = geometry.many_body_projection(p, projector.poset_, 1).prob
    theta = geometry.theta_from_prob(q, projector.poset_)
    expected = theta[:, projector.base_mask_]
    if with_mass:
        log_mass = np.log((X + 1e-5).reshape(6, -1).sum(axis=1))
        bottom = theta.reshape(6, -1)[:, 0] + log_mass
        expected = np.column_stack([bottom, expected])
    assert_allclose(projector.transform(X), expected, rtol=1e-9, atol=1e-9)
    kl = geometry.kl_divergence(p, q, axis=tuple(range(1, p.ndim)))
    assert projector.reconstruction_err_ == pytest.approx(kl.mean(), rel=1e-9)


def test_dark_pixels_of_an_order_as_high_as_in_the_paper_are_encoded():
    # Ten modes of 2 and one of 3 at order 5: 1,409 coordinates, where conjugate
    # gradients give up on rows of many cells near 0.
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(2, *[2] * 10, 3))) * (
        rng.random((2, *[2] * 10, 3)) < 0.5
    )
    X[:, 0] *= 1e-3
    projector = ManyBodyProjector(5, offset=1e-5)
    codes = projector.fit_transform(X)
    assert codes.shape == (2, 1409) and projector.n_iter_ < projector.max_iter
