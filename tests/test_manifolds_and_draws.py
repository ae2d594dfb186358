"""Local manifolds and draw strategies as objects: their own sets, and a user's own."""

from numbers import Real

import numpy as np
import pytest
from _oracles import mixed_projection_slow, random_poset, tensor_leq
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from sklearn_pnl import (
    BackwardProjector,
    Draws,
    EtaManifold,
    FiberManifold,
    LocalManifold,
    ManyBodyProjector,
    MixtureManifold,
    MixupDraws,
    PNLAugmenter,
    PNLSampler,
    ThetaManifold,
)
from sklearn_pnl.geometry import TensorPoset, mixed_projection

SEEDS = [0, 1, 2]
LABELS = np.repeat([0, 1], [40, 20])
SOLVED = {"fiber": FiberManifold, "theta": ThetaManifold, "eta": EtaManifold}


def positive(seed, *shape, n=15):
    return np.random.default_rng(seed).gamma(1.0, size=(n, *shape)) + 0.05


def normalise(X):
    return X / X.sum(axis=1, keepdims=True)


# --- a poset of their own -------------------------------------------------------


def decoded(projector, X):
    """New distributions, and target, reference and neighbours' means by hand."""
    codes = projector.fit(X).codes_[:6] + 0.2
    near = projector.kneighbors(codes, return_distance=False)
    forward = ManyBodyProjector(poset=projector.poset, offset=0, tol=1e-12).fit(X)
    w = forward.inverse_transform(codes).reshape(6, -1)
    p = normalise(X)[near]
    geometric = normalise(np.exp(np.log(p).mean(axis=1)))
    q = normalise(projector.inverse_transform(codes))
    return q, w, p.mean(axis=1), geometric


@pytest.mark.parametrize("manifold", SOLVED)
@pytest.mark.parametrize("order", [1, 2, [(0,)]], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_local_set_may_be_on_another_shape_of_the_same_cells(seed, order, manifold):
    # The base is on 4 x 3 cells, the local sub-manifold on 2 x 3 x 2.
    local = TensorPoset((2, 3, 2))
    projector = BackwardProjector(
        1, poset=TensorPoset((4, 3)), offset=0, tol=1e-11, n_neighbors=3,
        local_manifold=SOLVED[manifold](order=order, poset=local),
    )  # fmt: skip
    q, w, mean, geometric = decoded(projector, positive(seed, 12))
    low = local.order == 1 if order == 1 else (local.order > 0) & (local.order <= 2)
    if order == [(0,)]:
        low = np.zeros((2, 3, 2), bool)
        low[1, 0, 0] = True
    target, reference, matched = {
        "fiber": (w, mean, low),
        "theta": (w, geometric, ~low),
        "eta": (mean, w, low),
    }[manifold]
    assert_array_equal(projector.local_mask_, low)
    cells = (-1, 2, 3, 2)
    expected = mixed_projection(
        target.reshape(cells), reference.reshape(cells), matched, local, tol=1e-11
    ).prob.reshape(6, 12)
    assert_allclose(q, expected, atol=1e-8)
    # And as a generic optimiser finds it.
    on, leq = matched.ravel() & (np.arange(12) > 0), tensor_leq((2, 3, 2))
    slow = mixed_projection_slow(target[0], reference[0], on, leq)
    assert_allclose(q[0], slow, atol=1e-7)


@pytest.mark.parametrize("manifold", SOLVED)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_local_set_may_be_on_a_general_poset(seed, manifold):
    rng = np.random.default_rng(seed)
    local, leq = random_poset(rng, 12, density=0.2)
    base = rng.random(12) < 0.5
    projector = BackwardProjector(
        1, poset=TensorPoset((4, 3)), offset=0, tol=1e-11, n_neighbors=3,
        local_manifold=SOLVED[manifold](base=base, poset=local),
    )  # fmt: skip
    q, w, mean, geometric = decoded(projector, positive(seed, 12))
    inner = np.arange(12) != local.bottom
    target, reference, matched = {
        "fiber": (w, mean, base & inner),
        "theta": (w, geometric, ~base & inner),
        "eta": (mean, w, base & inner),
    }[manifold]
    for found, t, r in zip(q, target, reference, strict=True):
        assert_allclose(found, mixed_projection_slow(t, r, matched, leq), atol=1e-7)


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler])
def test_a_table_may_have_a_local_set_on_a_shape(make):
    # The code is the whole row; how it is decoded says more than that.
    X = np.random.default_rng(0).normal(size=(60, 12))
    local = ThetaManifold(order=1, poset=TensorPoset((4, 3)))
    estimator = make(local_manifold=local, poset=TensorPoset((12,)), order=None)
    if make is PNLAugmenter:
        rows = estimator.fit(X).sample(20, random_state=0)
    else:
        rows = estimator.fit_resample(X, LABELS)[0][60:]
    assert rows.shape == (20, 12)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("manifold", SOLVED.values())
def test_local_posets_that_do_not_fit_are_refused(manifold):
    X = positive(0, 4, 3)

    def fit(**params):
        BackwardProjector(local_manifold=manifold(**params)).fit(X)

    with pytest.raises(ValueError, match="both must have the same number of elements"):
        fit(order=1, poset=TensorPoset((2, 5)))
    with pytest.raises(ValueError, match="poset of its own: say with order or base"):
        fit(poset=TensorPoset((2, 6)))
    with pytest.raises(ValueError, match="order=3 is outside 1 to 2"):
        fit(order=3, poset=TensorPoset((2, 6)))
    with pytest.raises(ValueError, match="12.* is out of range"):
        fit(base=[12], poset=TensorPoset((2, 6)))
    with pytest.raises(ValueError, match="'poset' parameter"):
        fit(order=1, poset=(2, 6))


# --- a user's own ---------------------------------------------------------------


class NearestDraws(Draws):
    """The code of a random row, pulled towards the mean of all."""

    _parameter_constraints: dict = {"pull": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, pull=0.5):
        self.pull = pull

    def fit(self, codes):
        self.mean_ = codes.mean(axis=0)
        return self

    def _start(self, codes, n_samples, rng):
        chosen = rng.randint(len(codes), size=n_samples)
        return lambda rows: (
            self.pull * self.mean_ + (1 - self.pull) * codes[chosen[rows]]
        )


class PairDraws(Draws):
    """Half-way between a row and its nearest other one, which are both its parents."""

    def start(self, training, n_samples, rng, condition=None):
        first = rng.randint(len(training.codes), size=n_samples)
        second = training.partners(first)[:, 0]

        def between(rows):
            parents = np.column_stack([first[rows], second[rows]])
            weights = np.full(parents.shape, 0.5)
            return training.codes[parents].mean(axis=1), parents, weights

        return between


class PowerManifold(LocalManifold):
    """A point of the e-geodesic from the code to the neighbours: closed form."""

    geometric = True
    _parameter_constraints: dict = {"power": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, power=0.5):
        super().__init__()
        self.power = power

    def matched(self, low):
        return None

    def decode(self, w, r, project):
        q = normalise(w ** (1 - self.power) * r**self.power)
        return q, np.zeros(len(q))


class HalfManifold(LocalManifold):
    """Expectations of the code up to order ell', half of theta of near rows beyond."""

    def matched(self, low):
        return low

    def decode(self, w, r, project):
        return project(w, normalise(np.sqrt(r)))


OWN = {
    "draws": {"draws": NearestDraws(pull=0.25)},
    "pairs": {"draws": PairDraws()},
    "closed": {"local_manifold": PowerManifold(power=0.3)},
    "solved": {"local_manifold": HalfManifold(order=1)},
    "both": {"draws": PairDraws(), "local_manifold": PowerManifold()},
}


@pytest.mark.parametrize("shape", [(12,), (4, 3)], ids=str)
@pytest.mark.parametrize(("name", "n_parents"), zip(OWN, (5, 2, 2, 2, 2), strict=True))
def test_strategies_of_a_user_work_in_augmenter_and_sampler(name, n_parents, shape):
    params = OWN[name]
    X = np.random.default_rng(0).normal(size=(60, *shape))
    augmenter = PNLAugmenter(**params).fit(X)
    rows, parents = augmenter.sample(50, random_state=0, return_parents=True)
    assert rows.shape == (50, *shape)
    assert np.isfinite(rows).all()
    assert parents.shape == (50, n_parents)
    batches = augmenter.iter_samples(50, 7, random_state=0)
    assert_array_equal(np.concatenate(list(batches)), rows)
    sampler = PNLSampler(**params, random_state=0)
    X_new, _ = sampler.fit_resample(X, LABELS)
    alone = clone(augmenter).fit(X[40:]).sample(20, random_state=0)
    assert_array_equal(X_new[60:], alone)
    assert sampler.parent_indices_.shape == (20, parents.shape[1])


def test_codes_of_a_users_draws_are_those_decoded():
    X = positive(0, 6, n=30)
    params = {"embedding": None, "range_slack": None, "offset": 0}
    augmenter = PNLAugmenter(draws=NearestDraws(pull=1.0), **params).fit(X)
    rows = augmenter.sample(4, random_state=0)
    # The whole row is its code: the geometric mean of all rows.
    assert_allclose(rows, [np.exp(np.log(X).mean(axis=0))] * 4, rtol=1e-9)
    pairs = PNLAugmenter(draws=PairDraws(), **params).fit(X)
    rows, parents = pairs.sample(9, random_state=0, return_parents=True)
    assert_allclose(rows, np.sqrt(X[parents].prod(axis=1)), rtol=1e-9)


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_a_users_manifold_decodes_by_its_own_formula(power):
    X = positive(0, 4, 3)
    projector = BackwardProjector(
        local_manifold=PowerManifold(power), n_neighbors=3, offset=0
    ).fit(X)
    codes = projector.codes_ + 0.2
    near = projector.kneighbors(codes, return_distance=False)
    w = ManyBodyProjector(offset=0).fit(X).inverse_transform(codes).reshape(15, 12)
    flat = X.reshape(15, 12)
    geometric = np.exp(np.log(flat)[near].mean(axis=1))
    q = normalise(w ** (1 - power) * geometric**power)
    mass = flat.sum(axis=1)[near].mean(axis=1)
    rows = projector.inverse_transform(codes).reshape(15, 12)
    assert_allclose(rows, q * mass[:, None], rtol=1e-9)


def test_a_users_manifold_solves_for_what_it_matches():
    X, low = positive(0, 4, 3), TensorPoset((4, 3)).order == 1
    projector = BackwardProjector(
        2, local_manifold=HalfManifold(order=1), n_neighbors=3, offset=0, tol=1e-11
    ).fit(X)
    codes = projector.codes_[:5] + 0.2
    near = projector.kneighbors(codes, return_distance=False)
    w = ManyBodyProjector(2, offset=0).fit(X).inverse_transform(codes).reshape(5, 12)
    mean = normalise(X.reshape(15, 12))[near].mean(axis=1)
    q = normalise(projector.inverse_transform(codes).reshape(5, 12))
    for found, t, r in zip(q, w, normalise(np.sqrt(mean)), strict=True):
        slow = mixed_projection_slow(t, r, low.ravel(), tensor_leq((4, 3)))
        assert_allclose(found, slow, atol=1e-7)


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler])
@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"draws": NearestDraws(pull=1.5)}, "pull"),
        ({"draws": MixupDraws(noise="much")}, "noise"),
        ({"local_manifold": PowerManifold(power=-1.0)}, "power"),
        ({"local_manifold": MixtureManifold(step=None)}, "step"),
        ({"local_manifold": FiberManifold(order="one")}, "order"),
    ],
    ids=str,
)
def test_parameters_of_strategies_are_checked(params, name, make):
    X, estimator = positive(0, 6, n=60), make(**params)
    with pytest.raises(ValueError, match=f"'{name}' parameter of"):
        (
            estimator.fit(X)
            if make is PNLAugmenter
            else estimator.fit_resample(X, LABELS)
        )


@pytest.mark.parametrize("make", [PNLAugmenter, BackwardProjector])
@pytest.mark.parametrize("manifold", ["fibre", ThetaManifold, 3, MixupDraws()])
def test_things_that_are_no_local_manifold_are_refused(manifold, make):
    with pytest.raises(ValueError, match="'local_manifold' parameter"):
        make(local_manifold=manifold).fit(positive(0, 6))


def test_strategies_are_cloned_or_left_as_they_are():
    draws, manifold = NearestDraws(), PowerManifold()
    augmenter = PNLAugmenter(draws=draws, local_manifold=manifold)
    augmenter.fit(positive(0, 6)).sample(3, random_state=0)
    assert augmenter.draws is draws
    assert augmenter.local_manifold is manifold
    assert vars(draws) == {"pull": 0.5}
    assert vars(manifold) == vars(PowerManifold())


@pytest.mark.parametrize("n_candidates", [2, 5, 11])
def test_fewer_candidates_than_near_rows_are_all_used(n_candidates):
    X = np.random.default_rng(0).normal(size=(30, 3))
    augmenter = PNLAugmenter(draws=MixupDraws(n_candidates=n_candidates)).fit(X)
    rows, parents = augmenter.sample(200, random_state=0, return_parents=True)
    assert np.isfinite(rows).all()
    assert len(np.unique(parents[:, 1])) <= n_candidates
