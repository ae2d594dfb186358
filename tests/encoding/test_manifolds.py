"""Local manifolds with their own base, and custom draws and manifolds."""

from numbers import Real

import numpy as np
import pytest
from _oracles import mixed_projection_slow, random_poset, tensor_leq
from _projectors import backward
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils._param_validation import Interval

from sklearn_pnl import (
    BackwardProjector,
    Codes,
    ManyBodyProjector,
    PNLAugmenter,
    PNLSampler,
)
from sklearn_pnl.encoding.manifolds import (
    EtaManifold,
    FiberManifold,
    LocalManifold,
    MixtureManifold,
    ThetaManifold,
)
from sklearn_pnl.geometry import TensorPoset
from sklearn_pnl.methods.draws import Draws, MixupDraws, NewCodes

SEEDS = [0, 1, 2]
LABELS = np.repeat([0, 1], [40, 20])
SOLVED = {"fiber": FiberManifold, "theta": ThetaManifold, "eta": EtaManifold}


def positive(seed, *shape, n=15):
    return np.random.default_rng(seed).gamma(1.0, size=(n, *shape)) + 0.05


def normalise(X):
    return X / X.sum(axis=1, keepdims=True)


def augmenter_of_codes(**params):
    return PNLAugmenter(Codes(**params))


def decoded(local_manifold, X):
    """Return decoded distributions, points of the codes and means of near rows."""
    base = {"poset": TensorPoset((4, 3)), "offset": 0, "tol": 1e-11}
    projector = backward(1, local_manifold=local_manifold, k_neighbors=3, **base)
    codes = projector.fit(X).codes_[:6] + 0.2
    near = projector.kneighbors(codes, return_distance=False)
    w = projector.projector_.inverse_transform(codes).reshape(6, -1)
    p = normalise(X)[near]
    geometric = normalise(np.exp(np.log(p).mean(axis=1)))
    q = normalise(projector.inverse_transform(codes))
    return projector.local_mask_, q, w, p.mean(axis=1), geometric


@pytest.mark.parametrize("kind", ["order", "interactions", "general"])
@pytest.mark.parametrize("manifold", SOLVED)
@pytest.mark.parametrize("seed", SEEDS)
def test_local_sets_on_another_poset_of_the_same_cells(seed, manifold, kind):
    # The base is on 4 x 3 cells.
    rng = np.random.default_rng(seed)
    local, leq = TensorPoset((2, 3, 2)), tensor_leq((2, 3, 2))
    if kind == "general":
        local, leq = random_poset(rng, 12, density=0.2)
        low = rng.random(12) < 0.5
        elements = {"base": low}
    elif kind == "order":
        low, elements = local.order.ravel() == 1, {"order": 1}
    else:
        low, elements = np.arange(12) == 6, {"order": [(0,)]}
    inner = np.arange(12) != local.bottom
    local_manifold = SOLVED[manifold](poset=local, **elements)
    mask, q, w, mean, geometric = decoded(local_manifold, positive(seed, 12))
    target, reference, matched = {
        "fiber": (w, mean, low & inner),
        "theta": (w, geometric, ~low & inner),
        "eta": (mean, w, low & inner),
    }[manifold]
    assert_array_equal(mask.ravel(), low & inner)
    for row, t, r in zip(q, target, reference, strict=True):
        assert_allclose(row, mixed_projection_slow(t, r, matched, leq), atol=1e-7)


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler])
def test_local_set_of_a_table_on_a_tensor_poset(make):
    # The code contains the complete row, but the local set has its own poset.
    X = np.random.default_rng(0).normal(size=(60, 12))
    manifold = ThetaManifold(order=1, poset=TensorPoset((4, 3)))
    estimator = make(method=Codes(local_manifold=manifold, reshaper=None))
    if make is PNLAugmenter:
        rows = estimator.fit(X).sample(20, random_state=0)
    else:
        rows = estimator.fit_resample(X, LABELS)[0][60:]
    assert rows.shape == (20, 12)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"order": 1, "poset": TensorPoset((2, 5))}, "local_manifold"),
        ({"order": 3, "poset": TensorPoset((2, 6))}, "order=3"),
        ({"base": [12], "poset": TensorPoset((2, 6))}, "Element 12 "),
        ({"order": 1, "poset": (2, 6)}, "'poset' parameter"),
        ({"order": "one"}, "'order' parameter"),
    ],
)
def test_invalid_local_sets_are_rejected(params, message):
    with pytest.raises(ValueError, match=message):
        backward(local_manifold=FiberManifold(**params)).fit(positive(0, 4, 3))


@pytest.mark.parametrize("make", [augmenter_of_codes, BackwardProjector])
@pytest.mark.parametrize("manifold", ["fibre", ThetaManifold, 3, MixupDraws()])
def test_invalid_local_manifolds_are_rejected(manifold, make):
    with pytest.raises(ValueError):
        make(local_manifold=manifold).fit(positive(0, 6))


class CentralDraws(Draws):
    """Draw the code of a random row, shrunk towards the mean code."""

    _parameter_constraints: dict = {"pull": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, pull=0.5):
        self.pull = pull

    def fit(self, codes):
        self.mean_ = codes.mean(axis=0)
        return self

    def start_codes(self, codes, n_samples, rng):
        chosen = rng.randint(len(codes), size=n_samples)
        return lambda rows: (
            self.pull * self.mean_ + (1 - self.pull) * codes[chosen[rows]]
        )


class PairDraws(Draws):
    """Draw the mean of the codes of two random rows, the parents."""

    def start(self, training, start, rng):
        pairs = rng.randint(len(training.codes), size=(start.n_samples, 2))

        def between(rows):
            parents = pairs[rows]
            weights = np.full(parents.shape, 0.5)
            return NewCodes(training.codes[parents].mean(axis=1), parents, weights)

        return between


class PowerManifold(LocalManifold):
    """Decode to the weighted geometric mean of the code and the near rows."""

    geometric = True
    _parameter_constraints: dict = {"power": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, power=0.5):
        super().__init__()
        self.power = power

    def matched(self, low):
        return None

    def project_from_code(self, w, r, project):
        q = normalise(w ** (1 - self.power) * r**self.power)
        return q, np.zeros(len(q))


class HalfManifold(LocalManifold):
    """Decode with the expectations of the code and half of theta of near rows."""

    def matched(self, low):
        return low

    def project_from_code(self, w, r, project):
        return project(w, normalise(np.sqrt(r)))


OF_A_USER = {
    "draws": ({"draws": CentralDraws(pull=0.25)}, 5),
    "pairs": ({"draws": PairDraws()}, 2),
    "closed": ({"local_manifold": PowerManifold(power=0.3)}, 2),
    "solved": ({"local_manifold": HalfManifold(order=1)}, 2),
    "both": ({"draws": PairDraws(), "local_manifold": PowerManifold()}, 2),
}


@pytest.mark.parametrize("shape", [(12,), (4, 3)], ids=str)
@pytest.mark.parametrize("name", OF_A_USER)
def test_custom_draws_and_manifolds_work_in_augmenter_and_sampler(name, shape):
    params, n_parents = OF_A_USER[name]
    X = np.random.default_rng(0).normal(size=(60, *shape))
    augmenter = PNLAugmenter(Codes(**params), value_support=None).fit(X)
    rows, parents = augmenter.sample(50, random_state=0, return_parents=True)
    assert rows.shape == (50, *shape)
    assert np.isfinite(rows).all()
    assert parents.shape == (50, n_parents)
    batches = augmenter.iter_samples(50, 7, random_state=0)
    assert_array_equal(np.concatenate(list(batches)), rows)
    sampler = PNLSampler(method=Codes(**params), random_state=0)
    X_new, _ = sampler.fit_resample(X, LABELS)
    assert X_new.shape == (80, *shape) and np.isfinite(X_new).all()
    assert sampler.parent_indices_.shape == (20, n_parents)


def test_codes_of_custom_draws_are_decoded():
    X = positive(0, 6, n=30)
    base = ManyBodyProjector(1, poset=TensorPoset((6,)), offset=0, with_mass=True)
    bare = {"extrapolation": None, "value_support": None}
    central, halfway = (
        Codes(base, draws=draws, embedding=None)
        for draws in (CentralDraws(pull=1.0), PairDraws())
    )
    rows = PNLAugmenter(central, **bare).fit(X).sample(4, random_state=0)
    # The mean code is the geometric mean of the rows, because one mode has all cells.
    assert_allclose(rows, [np.exp(np.log(X).mean(axis=0))] * 4, rtol=1e-9)
    pairs = PNLAugmenter(halfway, **bare).fit(X)
    rows, parents = pairs.sample(9, random_state=0, return_parents=True)
    assert_allclose(rows, np.sqrt(X[parents].prod(axis=1)), rtol=1e-9)


@pytest.mark.parametrize("manifold", [PowerManifold(0.3), HalfManifold(order=1)])
def test_custom_local_manifold_decodes_by_its_formula(manifold):
    X, low = positive(0, 4, 3), TensorPoset((4, 3)).order.ravel() == 1
    projector = backward(
        2, local_manifold=manifold, k_neighbors=3, offset=0, tol=1e-11
    ).fit(X)
    codes = projector.codes_[:5] + 0.2
    near = projector.kneighbors(codes, return_distance=False)
    w = projector.projector_.inverse_transform(codes).reshape(5, 12)
    p = normalise(X.reshape(15, 12))[near]
    q = normalise(projector.inverse_transform(codes).reshape(5, 12))
    if isinstance(manifold, PowerManifold):
        geometric = np.exp(np.log(p).mean(axis=1))
        assert_allclose(q, normalise(w**0.7 * geometric**0.3), rtol=1e-9)
        return
    for row, t, r in zip(q, w, normalise(np.sqrt(p.mean(axis=1))), strict=True):
        slow = mixed_projection_slow(t, r, low, tensor_leq((4, 3)))
        assert_allclose(row, slow, atol=1e-7)


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler])
@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"draws": CentralDraws(pull=1.5)}, "pull"),
        ({"draws": MixupDraws(noise="much")}, "noise"),
        ({"local_manifold": PowerManifold(power=-1.0), "order": 1}, "power"),
        ({"local_manifold": MixtureManifold(step=None), "order": 1}, "step"),
    ],
    ids=str,
)
def test_parameters_of_draws_and_manifolds_are_checked(params, name, make):
    X, estimator = positive(0, 6, n=60), make(method=Codes(**params))
    fit = estimator.fit if make is PNLAugmenter else estimator.fit_resample
    with pytest.raises(ValueError):
        fit(*(X,) if make is PNLAugmenter else (X, LABELS))


def test_fit_does_not_modify_draws_and_manifold():
    draws, manifold = CentralDraws(), PowerManifold()
    method = Codes(draws=draws, local_manifold=manifold)
    PNLAugmenter(method).fit(positive(0, 6)).sample(3, random_state=0)
    assert method.draws is draws
    assert method.local_manifold is manifold
    assert vars(draws) == {"pull": 0.5}
    assert vars(manifold) == vars(PowerManifold())
