"""Decoding: what each local sub-manifold keeps, and from which neighbours."""

import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from sklearn_pnl import (
    BackwardProjector,
    EtaManifold,
    FiberManifold,
    ManyBodyProjector,
    MixtureManifold,
    PrimeFactorReshaper,
    ThetaManifold,
)
from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    eta_from_prob,
    interaction_mask,
    kl_divergence,
    prob_from_theta,
    theta_from_prob,
)

SEEDS = [0, 1, 2]
MANIFOLDS = ["fiber", "theta", "eta", "mixture"]
SHAPE = (3, 2, 4)


def positive(seed, *shape, n=12):
    """Positive rows of different masses."""
    rng = np.random.default_rng(seed)
    mass = rng.uniform(1, 30, (n, *(1,) * len(shape)))
    return (rng.gamma(1.0, size=(n, *shape)) + 0.05) * mass


def with_zeros(seed, *shape, n=12):
    """The same with three cells in ten set to zero."""
    X = positive(seed, *shape, n=n)
    return np.where(np.random.default_rng(seed).random(X.shape) < 0.3, 0.0, X)


def normalise(X):
    return X / X.sum(axis=tuple(range(1, X.ndim)), keepdims=True)


def near_codes(projector, seed, scale):
    """Codes of the training rows plus Gaussian noise."""
    rng = np.random.default_rng(seed + 1000)
    return projector.codes_ + scale * rng.normal(size=projector.codes_.shape)


def base_points(projector, codes):
    """The distributions that codes stand for, by a forward projector's decoding."""
    own = projector.get_params(deep=False)
    names = own.keys() & ManyBodyProjector._get_param_names()
    forward = ManyBodyProjector(**{name: own[name] for name in names})
    forward.fit(projector.rows_[:1])
    return forward.inverse_transform(codes).reshape(-1, *projector.poset_.shape)


def means_of_neighbors(projector, codes):
    """Arithmetic mean of the distributions of each code's neighbours, and of theta."""
    p = normalise(projector.rows_ + projector.offset)
    near = projector.kneighbors(codes, return_distance=False)
    theta = theta_from_prob(p, projector.poset_)
    return p[near].mean(axis=1), theta[near].mean(axis=1)


@pytest.fixture(scope="module")
def digits():
    """Images on 0..255 with empty borders, as tensors of six modes."""
    images = load_digits().images[:150] * (255 / 16)
    return PrimeFactorReshaper().fit_transform(images)


# --- the round trip -------------------------------------------------------------
#
# With "fiber" the decoded distribution q has the eta of w up to the order of the
# base, and these decide the projection of q: transform(inverse_transform(w)) = w,
# for every w. Decoded rows are q * mass - offset, not clipped, so that nothing of q
# is lost. The solver stops on eta: there the error is bounded by tol whatever the
# data. In theta it is larger by the condition of the Fisher information, so that
# cells of 1e-5 beside cells of 255 cost some of the digits.


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0])
@pytest.mark.parametrize(
    ("order", "offset", "atol"),
    [
        (1, 1e-5, 1e-6),
        (1, 1.0, 1e-6),
        (1, 25.0, 1e-6),
        (2, 1e-5, 1e-3),
        (2, 1.0, 1e-6),
        (2, 25.0, 1e-6),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_fiber_inverts_encoding(digits, seed, order, offset, atol, scale):
    projector = BackwardProjector(order, offset=offset, n_neighbors=3).fit(digits)
    codes = near_codes(projector, seed, scale)
    again = projector.transform(projector.inverse_transform(codes))
    assert_allclose(again, codes, rtol=0, atol=atol)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("offset", [1e-5, 1.0, 25.0])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_fiber_inverts_encoding_in_eta(digits, seed, order, offset, scale):
    # Two projections, each to the default tol of 1e-6.
    projector = BackwardProjector(order, offset=offset, n_neighbors=3).fit(digits)
    codes = near_codes(projector, seed, scale)
    again = projector.transform(projector.inverse_transform(codes))
    difference = base_points(projector, again) - base_points(projector, codes)
    assert np.abs(eta_from_prob(difference, projector.poset_)).max() <= 2e-6


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3, [(0, 1), (2,)]], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_fiber_inverts_encoding_of_tensors_with_zeros(seed, order, with_mass):
    projector = BackwardProjector(order, offset=0.1, with_mass=with_mass)
    projector.fit(with_zeros(seed, *SHAPE))
    codes = near_codes(projector, seed, 0.5)
    again = projector.transform(projector.inverse_transform(codes))
    assert_allclose(again, codes, rtol=0, atol=1e-6)


@pytest.mark.parametrize("manifold", ["theta", "eta", "mixture"])
def test_the_other_manifolds_do_not_invert_encoding(manifold):
    # Else the tests above would not show a property of the fibre.
    projector = BackwardProjector(local_manifold=manifold).fit(positive(0, *SHAPE))
    codes = near_codes(projector, 0, 0.5)
    again = projector.transform(projector.inverse_transform(codes))
    assert np.abs(again - codes).max() > 0.1


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_offset_is_added_on_entry_and_taken_off_on_return(seed, manifold):
    X = with_zeros(seed, *SHAPE)
    params = {"order": 2, "local_manifold": manifold, "n_neighbors": 3}
    lifted = BackwardProjector(**params, offset=0).fit(X + 0.5)
    projector = BackwardProjector(**params, offset=0.5).fit(X)
    codes = near_codes(projector, seed, 0.3)
    by_hand = lifted.inverse_transform(codes) - 0.5
    assert_allclose(projector.inverse_transform(codes), by_hand, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [1e-5, 0.1, 0.3])
def test_decoded_rows_of_nearly_empty_cells_encode_again(offset, dtype):
    # Cells of the order of the rounding of the offset: rows reach down to -offset.
    X = with_zeros(0, *SHAPE).astype(dtype)
    projector = BackwardProjector(offset=offset, n_neighbors=3).fit(X)
    codes = near_codes(projector, 0, 6.0).astype(dtype)
    rows = projector.inverse_transform(codes)
    again = projector.transform(rows)
    difference = base_points(projector, again) - base_points(projector, codes)
    assert np.abs(difference).max() <= (1e-4 if dtype == np.float32 else 1e-6)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("scale", [10.0, 100.0, 1000.0])
def test_far_codes_decode_to_numbers_or_are_refused(scale, manifold):
    # So far out that cells of w are zero in double precision.
    projector = BackwardProjector(2, local_manifold=manifold)
    projector.fit(positive(0, *SHAPE))
    codes = near_codes(projector, 0, scale)
    try:
        rows = projector.inverse_transform(codes)
    except ValueError as error:
        assert "code" in str(error)
    else:
        assert np.isfinite(rows).all()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_code_of_a_row_with_one_neighbor_gives_back_the_row(seed, order):
    X = with_zeros(seed, *SHAPE)
    projector = BackwardProjector(order, n_neighbors=1).fit(X)
    assert_allclose(projector.inverse_transform(projector.codes_), X, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_image_with_one_neighbor_comes_back_within_tol(digits, order):
    # tol is in units of the mass.
    projector = BackwardProjector(order, n_neighbors=1).fit(digits)
    rows = projector.inverse_transform(projector.codes_)
    cells = tuple(range(1, digits.ndim))
    error = np.abs(rows - digits).max(axis=cells) / digits.sum(axis=cells)
    assert error.max() <= 2e-6


# --- what is matched and what is pinned -----------------------------------------


@pytest.mark.parametrize("n_neighbors", [1, 4])
@pytest.mark.parametrize(
    ("order", "local_order"), [(1, None), (2, None), (1, 2), (2, 1), (1, [(0, 2)])]
)
@pytest.mark.parametrize("seed", SEEDS)
class TestMixedCoordinates:
    """The table of the local sub-manifolds, from the decoded rows alone."""

    def decode(self, manifold, seed, order, local_order, n_neighbors):
        projector = BackwardProjector(
            order,
            local_manifold=manifold(order=local_order),
            n_neighbors=n_neighbors,
            offset=0,
            tol=1e-10,
        ).fit(positive(seed, *SHAPE))
        codes = near_codes(projector, seed, 0.5)
        q = normalise(projector.inverse_transform(codes))
        w = base_points(projector, codes)
        low = interaction_mask(SHAPE, order if local_order is None else local_order)
        high = ~low
        high[0, 0, 0] = False
        return projector, codes, q, w, low, high

    def test_fiber(self, seed, order, local_order, n_neighbors):
        projector, codes, q, w, low, high = self.decode(
            FiberManifold, seed, order, local_order, n_neighbors
        )
        poset = projector.poset_
        mean, _ = means_of_neighbors(projector, codes)
        theta, wanted = theta_from_prob(q, poset), theta_from_prob(mean, poset)
        assert np.abs(eta_from_prob(q - w, poset)[:, low]).max() <= 1e-9
        assert_allclose(theta[:, high], wanted[:, high], atol=1e-9)

    def test_theta(self, seed, order, local_order, n_neighbors):
        projector, codes, q, w, low, high = self.decode(
            ThetaManifold, seed, order, local_order, n_neighbors
        )
        poset = projector.poset_
        _, mean_theta = means_of_neighbors(projector, codes)
        assert_allclose(
            theta_from_prob(q, poset)[:, low], mean_theta[:, low], atol=1e-9
        )
        assert np.abs(eta_from_prob(q - w, poset)[:, high]).max() <= 1e-9

    def test_eta(self, seed, order, local_order, n_neighbors):
        projector, codes, q, w, low, high = self.decode(
            EtaManifold, seed, order, local_order, n_neighbors
        )
        poset = projector.poset_
        mean, _ = means_of_neighbors(projector, codes)
        theta, wanted = theta_from_prob(q, poset), theta_from_prob(w, poset)
        assert np.abs(eta_from_prob(q - mean, poset)[:, low]).max() <= 1e-9
        assert_allclose(theta[:, high], wanted[:, high], atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("step", [0.0, 0.3, 0.98, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_mixture_is_the_m_geodesic(seed, step, offset):
    projector = BackwardProjector(
        local_manifold=MixtureManifold(step), n_neighbors=3, offset=offset
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
def test_rows_get_the_mean_mass_of_their_neighbors(seed, manifold):
    projector = BackwardProjector(local_manifold=manifold, offset=0, n_neighbors=4)
    X = positive(seed, *SHAPE)
    codes = near_codes(projector.fit(X), seed, 0.5)
    near = projector.kneighbors(codes, return_distance=False)
    mass = X.sum(axis=(1, 2, 3))[near].mean(axis=1)
    assert_allclose(projector.inverse_transform(codes).sum(axis=(1, 2, 3)), mass)


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_get_the_mass_of_their_code_if_it_has_one(seed, manifold):
    projector = BackwardProjector(local_manifold=manifold, offset=0, with_mass=True)
    codes = near_codes(projector.fit(positive(seed, *SHAPE)), seed, 0.5)
    mass = base_points(projector, codes).sum(axis=(1, 2, 3))
    assert_allclose(projector.inverse_transform(codes).sum(axis=(1, 2, 3)), mass)


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_poset_decodes_to_the_rows_of_the_tensor_it_is(manifold):
    cells = np.arange(12).reshape(2, 3, 2)
    pairs = [
        (cells[i], cells[j])
        for i in np.ndindex(2, 3, 2)
        for j in np.ndindex(2, 3, 2)
        if all(a <= b for a, b in zip(i, j, strict=True))
    ]
    poset = Poset.from_relations(12, pairs)
    X = positive(0, 2, 3, 2)
    params = {"order": 2, "local_manifold": manifold, "tol": 1e-10}
    tensor = BackwardProjector(**params).fit(X)
    general = BackwardProjector(**params, poset=poset).fit(X.reshape(12, 12))
    codes = near_codes(tensor, 0, 0.3)
    assert_allclose(
        general.inverse_transform(codes),
        tensor.inverse_transform(codes).reshape(12, 12),
        atol=1e-7,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_local_base_is_the_matched_set(seed):
    # The cell of order 2 that is matched beside order 1 is no family of interactions.
    low = interaction_mask(SHAPE, 1)
    low[1, 1, 0] = True
    manifold = FiberManifold(base=low)
    projector = BackwardProjector(2, local_manifold=manifold, offset=0, tol=1e-10)
    codes = near_codes(projector.fit(positive(seed, *SHAPE)), seed, 0.3)
    q = normalise(projector.inverse_transform(codes))
    assert_array_equal(projector.local_mask_, low)
    difference = eta_from_prob(q - base_points(projector, codes), projector.poset_)
    assert np.abs(difference[:, low]).max() <= 1e-9
    assert np.abs(difference[:, interaction_mask(SHAPE, 2)]).max() > 1e-3


def test_local_set_is_the_base_by_default():
    base = [(0, 0, 1), (1, 1, 0)]
    projector = BackwardProjector(base=base).fit(positive(0, *SHAPE))
    assert np.argwhere(projector.local_mask_).tolist() == [list(c) for c in base]


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_flat_rows_come_back_flat(manifold):
    X, poset = positive(0, *SHAPE), TensorPoset(SHAPE)
    params = {"order": 2, "local_manifold": manifold, "n_neighbors": 3}
    shaped = BackwardProjector(**params).fit(X)
    flat = BackwardProjector(**params, poset=poset).fit(X.reshape(12, -1))
    codes = near_codes(shaped, 0, 0.3)
    rows = flat.inverse_transform(codes)
    assert_array_equal(rows, shaped.inverse_transform(codes).reshape(12, -1))


@pytest.mark.parametrize("offset", [0, 0.1])
@pytest.mark.parametrize("seed", SEEDS)
def test_added_bottom_is_no_feature_of_decoded_rows(seed, offset):
    X = positive(seed, 4)
    poset = Poset.from_relations(4, [(0, 1), (2, 3)], add_bottom=True)
    projector = BackwardProjector(poset=poset, n_neighbors=1, offset=offset).fit(X)
    rows = projector.inverse_transform(projector.codes_)
    assert_allclose(rows, X, rtol=1e-6)


def test_fiber_of_far_codes_is_found_with_enough_steps(digits):
    # Marginals that the neighbours nearly lack: what the warning tells to do helps.
    rng = np.random.default_rng(0)
    projector = BackwardProjector(offset=0, n_neighbors=3, max_iter=100_000)
    projector.fit(digits + 1e-5)
    codes = projector.codes_ + 3 * rng.normal(size=projector.codes_.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        q = normalise(projector.inverse_transform(codes))
    difference = eta_from_prob(q - base_points(projector, codes), projector.poset_)
    assert np.abs(difference[:, projector.local_mask_]).max() <= 1e-6


# --- neighbours -----------------------------------------------------------------


def brute_force(projector, codes):
    """KL from every code to every training code, by definition on the cells."""
    training = base_points(projector, projector.codes_)
    cells = tuple(range(1, training.ndim))
    w = base_points(projector, codes)
    return np.stack([kl_divergence(row, training, axis=cells) for row in w])


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2, [(0, 1)]], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_neighbors_are_those_of_brute_force_kl(seed, order, with_mass):
    X = positive(seed, *SHAPE, n=40)
    projector = BackwardProjector(order, with_mass=with_mass).fit(X)
    codes = near_codes(projector, seed, 0.5)
    kl = brute_force(projector, codes)
    distances, indices = projector.kneighbors(codes, n_neighbors=7)
    ranked = np.argsort(kl, axis=1)[:, :7]
    assert_array_equal(indices, ranked)
    by_definition = np.take_along_axis(kl, ranked, axis=1)
    assert_allclose(distances, by_definition, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("with_mass", [False, True])
def test_neighbors_of_more_rows_than_a_chunk(with_mass):
    # More training rows and more codes than are compared at once.
    X = positive(0, 2, 3, n=9000)
    projector = BackwardProjector(n_neighbors=4, with_mass=with_mass).fit(X)
    codes = near_codes(projector, 0, 0.1)[::25]
    kl = brute_force(projector, codes)
    distances, indices = projector.kneighbors(codes)
    ranked = np.argsort(kl, axis=1)[:, :4]
    assert (indices >= 8192).any(axis=0).all()
    assert_array_equal(indices, ranked)
    by_definition = np.take_along_axis(kl, ranked, axis=1)
    assert_allclose(distances, by_definition, rtol=1e-7, atol=1e-11)


def test_all_rows_can_be_neighbors():
    projector = BackwardProjector().fit(positive(0, *SHAPE))
    indices = projector.kneighbors(projector.codes_, 12, return_distance=False)
    assert_array_equal(np.sort(indices, axis=1), np.tile(np.arange(12), (12, 1)))


@pytest.mark.parametrize("n_copies", [8, 20, 300])
@pytest.mark.parametrize("n_neighbors", [1, 3, 5])
def test_copies_of_a_row_are_its_neighbors(n_neighbors, n_copies):
    # Which of them is left to rounding.
    X = np.repeat(positive(0, 2, 3, n=2), n_copies, axis=0)
    projector = BackwardProjector(n_neighbors=n_neighbors).fit(X)
    distances, found = projector.kneighbors(projector.codes_[[0, -1]])
    assert_allclose(distances, 0, atol=1e-12)
    assert_array_equal(found // n_copies, [[0] * n_neighbors, [1] * n_neighbors])
    assert all(len(set(row)) == n_neighbors for row in found)


@pytest.mark.parametrize("seed", SEEDS)
def test_euclidean_neighbors_are_those_of_scikit_learn(seed):
    X = positive(seed, *SHAPE, n=40)
    projector = BackwardProjector(metric="euclidean", n_neighbors=6).fit(X)
    codes = near_codes(projector, seed, 0.5)
    search = NearestNeighbors(n_neighbors=6).fit(projector.codes_)
    for ours, theirs in zip(
        projector.kneighbors(codes), search.kneighbors(codes), strict=True
    ):
        assert_allclose(ours, theirs)


def test_the_metrics_differ():
    # Else the two tests above could not tell one from the other.
    X = positive(0, *SHAPE, n=40)
    by = {}
    for metric in ("kl", "euclidean"):
        projector = BackwardProjector(metric=metric).fit(X)
        codes = near_codes(projector, 0, 0.5)
        by[metric] = projector.kneighbors(codes, return_distance=False)
    assert (by["kl"] != by["euclidean"]).any()


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_is_its_own_nearest_neighbor(seed, metric):
    projector = BackwardProjector(metric=metric).fit(positive(seed, *SHAPE, n=40))
    distances, indices = projector.kneighbors(projector.codes_, 1)
    assert_array_equal(indices[:, 0], np.arange(40))
    assert_allclose(distances, 0, atol=1e-6)


def test_more_neighbors_than_rows_are_clipped_with_a_warning():
    X = positive(0, *SHAPE, n=3)
    with pytest.warns(UserWarning, match=r"5 neighbours .* 3 rows: using 3") as caught:
        projector = BackwardProjector(n_neighbors=5).fit(X)
    assert len(caught) == 1
    assert projector.n_neighbors_ == 3
    assert projector.n_neighbors == 5
    all_three = BackwardProjector(n_neighbors=3).fit(X)
    codes = near_codes(projector, 0, 0.5)
    assert_array_equal(
        projector.inverse_transform(codes), all_three.inverse_transform(codes)
    )


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("metric", ["kl", "euclidean"])
def test_a_single_row_is_everybodys_neighbor(metric, manifold):
    X = positive(0, *SHAPE, n=1)
    projector = BackwardProjector(
        n_neighbors=1, metric=metric, local_manifold=manifold
    ).fit(X)
    codes = near_codes(projector, 0, 0.5)
    assert_array_equal(projector.kneighbors(codes, return_distance=False), [[0]])
    rows = projector.inverse_transform(codes)
    assert rows.shape == X.shape
    assert_allclose(rows.sum(), X.sum(), rtol=1e-5)


# --- containers and blocks ------------------------------------------------------


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("with_mass", [False, True])
def test_float32_stays_float32_and_close(with_mass, manifold):
    X = positive(0, *SHAPE).astype(np.float32)
    params = {"local_manifold": manifold, "with_mass": with_mass, "n_neighbors": 3}
    single = BackwardProjector(**params).fit(X)
    double = BackwardProjector(**params).fit(X.astype(np.float64))
    assert single.codes_.dtype == single.transform(X).dtype == np.float32
    assert_allclose(single.codes_, double.codes_, atol=1e-4)
    codes = near_codes(double, 0, 0.1)
    rows = single.inverse_transform(codes.astype(np.float32))
    assert rows.dtype == np.float32
    assert_allclose(rows, double.inverse_transform(codes), rtol=1e-3)


def test_codes_are_those_of_the_forward_projector():
    X = positive(0, *SHAPE)
    projector = BackwardProjector(order=2)
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


@pytest.fixture(scope="module")
def many_rows():
    """More rows than one block holds: 600 of 512 cells."""
    return np.random.default_rng(0).gamma(1.0, size=(600, 8, 8, 8))


def decode_bytes(X, manifold, n_jobs=None):
    projector = BackwardProjector(
        local_manifold=manifold, offset=0.1, n_jobs=n_jobs
    ).fit(X)
    codes = near_codes(projector, 0, 0.1)
    return codes.tobytes(), projector.inverse_transform(codes).tobytes()


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_jobs_and_working_memory_change_no_byte(many_rows, manifold):
    usual = decode_bytes(many_rows, manifold)
    assert decode_bytes(many_rows, manifold, n_jobs=2) == usual
    with config_context(working_memory=1):
        assert decode_bytes(many_rows, manifold) == usual


def test_blocks_join_in_the_order_of_the_codes(many_rows):
    projector = BackwardProjector(offset=0.1, n_neighbors=1).fit(many_rows)
    rows = projector.inverse_transform(projector.codes_)
    assert_allclose(rows, many_rows, atol=1e-6)


@pytest.mark.parametrize("manifold", ["fiber", "eta"])
def test_one_warning_says_that_decoding_did_not_converge(digits, manifold):
    projector = BackwardProjector(
        2, local_manifold=manifold, offset=1e-5, n_neighbors=3, max_iter=1
    )
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        codes = near_codes(projector.fit(digits), 0, 0.3)
    # What a fit was told holds until the next.
    projector.set_params(max_iter=10_000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = projector.inverse_transform(codes)
    (warning,) = caught
    assert warning.category is ConvergenceWarning
    for part in ("BackwardProjector", "max_iter=1 ", "tol=1e-06", "Increase max_iter"):
        assert part in str(warning.message)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("manifold", ["theta", "mixture"])
def test_closed_forms_take_no_steps(digits, manifold):
    projector = BackwardProjector(2, local_manifold=manifold, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        codes = near_codes(projector.fit(digits), 0, 0.3)
    rows = projector.inverse_transform(codes)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
def test_distances_to_neighbors_come_in_blocks(metric):
    X = positive(0, 12, 16, n=3000)
    projector = BackwardProjector(metric=metric, offset=0.1).fit(X)
    codes = projector.codes_ + 0.01
    tracemalloc.start()
    distances, indices = projector.kneighbors(codes, 8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes
    # The same as for few codes, which are one block.
    few = projector.kneighbors(codes[-7:], 8)
    assert_array_equal(indices[-7:], few[1])
    assert_allclose(distances[-7:], few[0], rtol=1e-9)
