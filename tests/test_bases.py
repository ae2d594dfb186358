"""poset=, base=, local sets and with_mass= through estimators and the sampler."""

import numpy as np
import pytest
from _oracles import (
    closure_slow,
    eta_slow,
    mixed_projection_slow,
    random_poset,
    tensor_leq,
    tensor_relations,
    theta_slow,
)
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import (
    BackwardProjector,
    EtaManifold,
    FiberManifold,
    KernelDraws,
    ManyBodyProjector,
    MixupDraws,
    PNLAugmenter,
    PNLSampler,
    PrimeFactorReshaper,
    ThetaManifold,
)
from sklearn_pnl.geometry import Poset, TensorPoset, tree_poset
from sklearn_pnl.geometry.solvers import mixed_solver

SEEDS = [0, 1, 2]
MANIFOLDS = ["fiber", "theta", "eta", "mixture"]
SOLVED = {"fiber": FiberManifold, "theta": ThetaManifold, "eta": EtaManifold}
SHAPE = (3, 2, 4)
OFFSET = 0.05


def rows_of(seed, *shape, n_rows=10, empty=0.1):
    """Rows with some empty cells."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n_rows, *shape))
    return X * (rng.random(X.shape) >= empty)


def distributions(X, offset=OFFSET):
    p = X.reshape(len(X), -1) + offset
    return p / p.sum(axis=1, keepdims=True)


def classes(seed, *shape):
    """A class of 30 rows and one of 12, positive."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 2, size=(42, *shape))
    y = np.repeat([0, 1], [30, 12])
    X[y == 1] += rng.uniform(0, 1, size=shape)
    return X, y


# --- bases ----------------------------------------------------------------------


def image_base(shape=(6, 6)):
    """Order 3 on the prime factors of one corner of an image, order 1 elsewhere."""
    reshaper = PrimeFactorReshaper(shape).fit(np.ones((1, *shape)))
    corner = np.zeros((1, *shape), bool)
    corner[0, 3:, 3:] = True
    corner = reshaper.transform(corner.astype(float))[0] > 0
    order = TensorPoset(reshaper.tensor_shape_).order
    return reshaper, (order <= 1) | (corner & (order <= 3))


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
def test_base_of_any_elements_is_what_a_generic_optimiser_finds(seed, base):
    X, leq, mask = rows_of(seed, *SHAPE, n_rows=4), tensor_leq(SHAPE), as_mask(base)
    projector = ManyBodyProjector(base=base, offset=OFFSET, tol=1e-11)
    q = projector.inverse_transform(projector.fit_transform(X)).reshape(4, 24)
    p, uniform = distributions(X), np.full(24, 1 / 24)
    expected = [mixed_projection_slow(row, uniform, mask, leq) for row in p]
    assert_array_equal(projector.base_mask_.ravel(), mask)
    assert_allclose(q, expected, atol=1e-7)


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_such_bases_go_through_the_general_route(base):
    solver = mixed_solver(TensorPoset(SHAPE), as_mask(base).reshape(SHAPE))
    assert solver.route == "general"


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("seed", SEEDS)
def test_codes_are_theta_in_the_order_of_the_cells(seed, base):
    X = rows_of(seed, *SHAPE)
    projector = ManyBodyProjector(base=base, offset=OFFSET, tol=1e-10)
    codes = projector.fit_transform(X)
    q = projector.inverse_transform(codes).reshape(10, 24)
    theta = theta_slow(q, tensor_leq(SHAPE))
    mask = as_mask(base)
    assert_allclose(theta[:, mask], codes, atol=1e-9)
    assert_allclose(theta[:, ~mask][:, 1:], 0, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_region_of_an_image_keeps_a_higher_order(seed):
    reshaper, mask = image_base()
    tensors = reshaper.transform(rows_of(seed, 6, 6))
    order = TensorPoset(mask.shape).order
    assert (mask & (order == 3)).any()
    assert (~mask & (order == 2)).any()
    params = {"offset": OFFSET, "tol": 1e-10}
    projector = ManyBodyProjector(base=mask, **params)
    q = projector.inverse_transform(projector.fit_transform(tensors))
    leq = tensor_leq(mask.shape)
    eta = eta_slow(q.reshape(10, -1) - distributions(tensors), leq)
    assert np.abs(eta[:, mask.ravel()]).max() <= 1e-9
    # More is kept than at order 1, and less than at order 3.
    errors = [
        ManyBodyProjector(ell, **params).fit(tensors).reconstruction_err_
        for ell in (3, 1)
    ]
    assert errors[0] < projector.reconstruction_err_ < errors[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_base_stands_in_place_of_order(seed):
    X = rows_of(seed, *SHAPE)
    codes = ManyBodyProjector(base=BLOCK, offset=OFFSET).fit_transform(X)
    ignored = ManyBodyProjector(3, base=BLOCK, offset=OFFSET).fit_transform(X)
    assert_array_equal(ignored, codes)


@pytest.mark.parametrize("seed", SEEDS)
def test_base_of_a_random_poset_is_what_a_generic_optimiser_finds(seed):
    rng = np.random.default_rng(seed)
    poset, leq = random_poset(rng, 60, density=0.05)
    X, mask = rows_of(seed, 60, n_rows=3), rng.random(60) < 0.4
    projector = ManyBodyProjector(base=mask, poset=poset, offset=OFFSET, tol=1e-11)
    q = projector.inverse_transform(projector.fit_transform(X))
    mask[poset.bottom] = False
    uniform = np.full(60, 1 / 60)
    expected = [mixed_projection_slow(p, uniform, mask, leq) for p in distributions(X)]
    assert_allclose(q, expected, atol=1e-7)


# --- local bases ----------------------------------------------------------------


@pytest.mark.parametrize("local_base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("manifold", SOLVED)
@pytest.mark.parametrize("seed", SEEDS)
def test_local_base_divides_theta_and_eta(seed, manifold, local_base):
    # Mixed coordinates: Amari 2016, section 2.8.
    X, leq, low = rows_of(seed, *SHAPE), tensor_leq(SHAPE), as_mask(local_base)
    projector = BackwardProjector(
        local_manifold=SOLVED[manifold](base=local_base),
        n_neighbors=3,
        offset=OFFSET,
        tol=1e-11,
    ).fit(X)
    codes = projector.codes_[:4] + 0.1
    forward = ManyBodyProjector(offset=OFFSET).fit(X)
    w = forward.inverse_transform(codes).reshape(4, 24)
    near = projector.kneighbors(codes, return_distance=False)
    arithmetic = distributions(X)[near].mean(axis=1)
    geometric = np.exp(np.log(distributions(X))[near].mean(axis=1))
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
    found = distributions(projector.inverse_transform(codes))
    assert_array_equal(projector.local_mask_.ravel(), low)
    assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("manifold", SOLVED)
@pytest.mark.parametrize("seed", SEEDS)
def test_local_base_of_a_poset_divides_theta_and_eta(seed, manifold):
    rng = np.random.default_rng(seed)
    poset, leq = random_poset(rng, 30, density=0.1)
    X, low = rows_of(seed, 30), rng.random(30) < 0.5
    projector = BackwardProjector(
        local_manifold=SOLVED[manifold](base=low),
        poset=poset,
        n_neighbors=1,
        offset=OFFSET,
        tol=1e-11,
    ).fit(X)
    codes = projector.codes_[:4] + 0.1
    forward = ManyBodyProjector(poset=poset, offset=OFFSET).fit(X)
    w = forward.inverse_transform(codes)
    near = projector.kneighbors(codes, return_distance=False)[:, 0]
    r = distributions(X)[near]
    q = distributions(projector.inverse_transform(codes))
    on = low & (np.arange(30) != poset.bottom)
    off = ~low & (np.arange(30) != poset.bottom)
    target, reference = (r, w) if manifold == "eta" else (w, r)
    if manifold == "theta":
        on, off = off, on
    eta, theta = eta_slow(q - target, leq), theta_slow(q, leq)
    assert np.abs(eta[:, on]).max() <= 1e-9
    assert_allclose(theta[:, off], theta_slow(reference, leq)[:, off], atol=1e-7)


@pytest.mark.parametrize("manifold", SOLVED)
def test_local_base_stands_in_place_of_local_order(manifold):
    X = rows_of(0, *SHAPE)
    manifold = SOLVED[manifold]

    def fitted(**local_set):
        local = manifold(**local_set)
        return BackwardProjector(local_manifold=local, offset=OFFSET).fit(X)

    by_order = fitted(order=2)
    mask = (by_order.poset_.order > 0) & (by_order.poset_.order <= 2)
    listed = fitted(order=1, base=mask)
    codes = by_order.codes_ + 0.1
    rows = by_order.inverse_transform(codes)
    assert_array_equal(listed.inverse_transform(codes), rows)
    # Order 1, the default, decodes to other rows: the set is not ignored.
    other = fitted().inverse_transform(codes)
    assert np.abs(other - rows).max() > 1e-3


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("seed", SEEDS)
def test_fiber_of_any_base_is_the_inverse_of_encoding(seed, base):
    X = rows_of(seed, *SHAPE)
    projector = BackwardProjector(base=base, offset=OFFSET, tol=1e-11).fit(X)
    codes = projector.codes_ + np.random.default_rng(seed).normal(0, 0.1)
    again = projector.transform(projector.inverse_transform(codes))
    assert_allclose(again, codes, atol=1e-6)


# --- posets ---------------------------------------------------------------------


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("make", [BackwardProjector, PNLAugmenter])
def test_general_poset_of_a_tensor_gives_its_rows(make, manifold):
    X, shape = rows_of(0, 30), (3, 10)
    params = {"local_manifold": manifold, "offset": OFFSET, "tol": 1e-11}
    general = Poset.from_relations(30, tensor_relations(shape))
    found = []
    for poset in (general, TensorPoset(shape)):
        estimator = make(poset=poset, **params).fit(X)
        if make is PNLAugmenter:
            found.append(estimator.sample(20, random_state=0))
        else:
            found.append(estimator.inverse_transform(estimator.codes_ + 0.1))
        assert found[-1].shape[1:] == (30,)
    assert_allclose(*found, atol=1e-6)


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("make_poset", ["tensor", "general", "forest"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sampler_keeps_rows_flat_and_originals_first(seed, make_poset, manifold):
    poset = {
        "tensor": TensorPoset((3, 10)),
        "general": Poset.from_relations(30, tensor_relations((3, 10))),
        "forest": tree_poset(np.r_[-1, -1, np.arange(28)], add_bottom=True),
    }[make_poset]
    X, y = classes(seed, 30)
    params = {"poset": poset, "local_manifold": manifold, "range_slack": 0}
    sampler = PNLSampler(**params, random_state=seed)
    X_new, y_new = sampler.fit_resample(X, y)
    assert X_new.shape == (60, 30)
    assert np.bincount(y_new).tolist() == [30, 30]
    assert_array_equal(X_new[:42], X)
    new = X_new[42:]
    assert len(np.unique(new, axis=0)) == 18
    # Without a margin new rows stay in the range of their class.
    own = X[y == 1]
    assert (new >= own.min(axis=0) - 1e-9).all()
    assert (new <= own.max(axis=0) + 1e-9).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_poset_of_the_sampler_changes_the_rows(seed):
    X, y = classes(seed, 30)
    posets = [TensorPoset((3, 10)), TensorPoset((10, 3)), TensorPoset((30,))]
    drawn = [
        PNLSampler(poset=poset, random_state=0).fit_resample(X, y)[0][42:]
        for poset in posets
    ]
    for k in range(3):
        assert np.abs(drawn[k] - drawn[k - 1]).max() > 1e-2


@pytest.mark.parametrize("seed", SEEDS)
def test_forest_of_features_decodes_to_rows_of_features(seed):
    X = rows_of(seed, 6)
    poset = tree_poset([-1, 0, 0, -1, 3, 4], add_bottom=True)
    projector = BackwardProjector(poset=poset, offset=OFFSET, n_neighbors=1).fit(X)
    # All elements but the bottom are of order 1: codes lose nothing.
    assert projector.n_params_ == 6
    assert_allclose(projector.inverse_transform(projector.codes_), X, atol=1e-9)
    names = projector.get_feature_names_out()
    assert names.tolist() == [f"theta_x{k}" for k in range(6)]


@pytest.mark.parametrize("n_features", [2, 4, 5])
@pytest.mark.parametrize("make", [ManyBodyProjector, BackwardProjector, PNLAugmenter])
def test_rows_that_hold_the_added_bottom_are_refused(make, n_features):
    # 4 features would fill all 4 elements, but the bottom is no feature.
    poset = tree_poset([-1, 0, -1], add_bottom=True)
    with pytest.raises(ValueError, match="3 features.*but the added bottom"):
        make(poset=poset).fit(rows_of(0, n_features))


def sets_of(elements, manifold="fiber"):
    """Parameters by which elements are the base, or the local set."""
    return {
        "base": {"base": elements, "local_manifold": manifold},
        "local": {"local_manifold": SOLVED[manifold](base=elements)},
    }


def test_sampler_refuses_what_the_projectors_refuse():
    X, y = classes(0, 30)
    with pytest.raises(ValueError, match="12 features"):
        PNLSampler(poset=TensorPoset((3, 4))).fit_resample(X, y)
    with pytest.raises(ValueError, match="order=3 is outside 1 to 2"):
        PNLSampler(order=3, poset=TensorPoset((3, 10))).fit_resample(X, y)
    for place in sets_of([3, 30]).values():
        with pytest.raises(ValueError, match=r"30.* is out of range"):
            PNLSampler(poset=TensorPoset((3, 10)), **place).fit_resample(X, y)
    for place in sets_of([0]).values():
        with pytest.raises(ValueError, match="pins everything"):
            PNLSampler(**place).fit_resample(X, y)


@pytest.mark.parametrize("name", ["base", "local"])
@pytest.mark.parametrize("elements", [BLOCK, STRIDE], ids=["block", "every third"])
@pytest.mark.parametrize("manifold", SOLVED)
def test_sampler_draws_with_any_base(manifold, elements, name):
    X, y = classes(0, 30)
    params = {"poset": TensorPoset((3, 10)), "random_state": 0}
    sampler = PNLSampler(**params, **sets_of(elements, manifold)[name])
    X_new = sampler.fit_resample(X, y)[0]
    plain = PNLSampler(**params, local_manifold=manifold).fit_resample(X, y)[0]
    assert X_new.shape == plain.shape == (60, 30)
    assert np.isfinite(X_new).all()
    assert np.abs(X_new - plain).max() > 1e-3


# --- mass -----------------------------------------------------------------------


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
    projector = BackwardProjector(
        **params, local_manifold=manifold, with_mass=True, n_neighbors=4
    ).fit(X)
    rows = projector.inverse_transform(projector.codes_)
    assert_allclose(rows.sum(axis=1), X.sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_forest_with_mass_keeps_the_sum_of_every_row(seed):
    # The up-sets of the roots are disjoint, so that the base fixes the bottom too.
    X = rows_of(seed, 8) * np.logspace(-1, 2, 10)[:, None]
    poset = tree_poset([-1, 0, 0, 1, -1, 4, 5, -1], add_bottom=True)
    projector = BackwardProjector(poset=poset, with_mass=True, n_neighbors=4).fit(X)
    rows = projector.inverse_transform(projector.codes_)
    assert_allclose(rows.sum(axis=1), X.sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_code_with_mass_has_the_bottom_first(base):
    X = rows_of(0, *SHAPE)
    params = {"base": base, "offset": OFFSET, "tol": 1e-10}
    measures = ManyBodyProjector(**params, with_mass=True)
    codes = measures.fit_transform(X)
    plain = ManyBodyProjector(**params).fit_transform(X)
    assert measures.n_params_ == codes.shape[1] == as_mask(base).sum() + 1
    assert_array_equal(codes[:, 1:], plain)
    bottom = measures.inverse_transform(codes).reshape(10, -1)[:, 0]
    assert_allclose(codes[:, 0], np.log(bottom), atol=1e-10)


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_sampled_rows_have_the_mass_of_the_code_or_of_the_parents(
    seed, with_mass, manifold
):
    # A tiny bandwidth draws the codes of training rows: the nearest parent is the row.
    X, y = classes(seed, 4, 5)
    X *= np.random.default_rng(seed).uniform(1, 9, size=(42, 1, 1))
    sampler = PNLSampler(
        draws=KernelDraws(bandwidth=1e-9),
        with_mass=with_mass,
        local_manifold=manifold,
        k_neighbors=3,
        reshaper=None,
        embedding=None,
        range_slack=None,
        offset=0.0,
        random_state=seed,
    )
    new = sampler.fit_resample(X, y)[0][42:]
    masses = X.sum(axis=(1, 2))[sampler.parent_indices_]
    expected = masses[:, 0] if with_mass else masses.mean(axis=1)
    assert_allclose(new.sum(axis=(1, 2)), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_mixed_codes_have_masses_at_most_those_of_their_ends(seed):
    # log mass is convex along a straight line in theta (psi of a measure is convex).
    X, y = classes(seed, 4, 5)
    draws = MixupDraws(noise=0)
    augmenter = PNLAugmenter(
        draws=draws, embedding=None, range_slack=None, offset=0
    ).fit(X[y == 1])
    new = augmenter.sample(100, random_state=seed)
    assert new.sum(axis=(1, 2)).max() <= X[y == 1].sum(axis=(1, 2)).max() * (1 + 1e-9)


def test_chain_with_a_base_of_one_element():
    # One free cell of a chain: q is constant on either side of it.
    leq = closure_slow(4, [(0, 1), (1, 2), (2, 3)])
    X = rows_of(0, 4)
    projector = ManyBodyProjector(base=[2], offset=OFFSET, tol=1e-12)
    q = projector.inverse_transform(projector.fit_transform(X))
    upper = eta_slow(distributions(X), leq)[:, 2]
    expected = np.column_stack([1 - upper, 1 - upper, upper, upper]) / 2
    assert_allclose(q, expected, atol=1e-10)


@pytest.mark.parametrize("manifold", ["fiber", "theta", "eta", "mixture"])
def test_mass_is_kept_beside_an_added_bottom(manifold):
    # Not a forest: the bottom's own share is not fixed by the code.
    poset = Poset.from_relations(4, [(0, 2), (1, 2), (1, 3)], add_bottom=True)
    X = rows_of(0, 4)
    projector = BackwardProjector(
        poset=poset, with_mass=True, n_neighbors=3, local_manifold=manifold
    ).fit(X)
    again = projector.inverse_transform(projector.codes_)
    assert np.abs(again - X).max() > 1e-3
    assert_allclose(again.sum(axis=1), X.sum(axis=1), rtol=1e-9)
