"""Forward projections of the user, with the deformed projection of the example."""

import pickle
import runpy
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklearn_pnl import (
    BackwardProjector,
    Codes,
    ManyBodyProjector,
    PNLAugmenter,
    PNLSampler,
)
from sklearn_pnl.encoding import ForwardProjection
from sklearn_pnl.encoding.forward import ProjectedBase
from sklearn_pnl.geometry import (
    TensorPoset,
    eta_from_prob,
    kl_divergence,
    order_mask,
    prob_from_theta,
    theta_from_prob,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_own_projection.py"
SHAPE = (2, 3, 2)
POSET = TensorPoset(SHAPE)
MANIFOLDS = ["fiber", "theta", "eta", "mixture"]


class ReverseProjection(ForwardProjection):
    """The reverse KL projection onto independent modes: geometric means."""

    def encode(self, p, poset):
        axes = tuple(range(1, p.ndim))
        means = (
            np.log(p).mean(axis=tuple(a for a in axes if a != k), keepdims=True)
            for k in axes
        )
        q = np.exp(sum(means))
        q /= q.sum(axis=axes, keepdims=True)
        return theta_from_prob(q, poset)[:, self.base_mask(poset)]


class WrongProjection(ReverseProjection):
    """A projection whose methods return invalid arrays."""

    def __init__(self, order=1, n_codes=4, code=0.0, point=None):
        super().__init__(order)
        self.n_codes = n_codes
        self.code = code
        self.point = point

    def encode(self, p, poset):
        return np.full((len(p), self.n_codes), self.code)

    def points(self, coordinates, poset):
        points = super().points(coordinates, poset)
        if self.point is not None:
            points[0, 0, 0, 0] = self.point
        return points


@pytest.fixture(scope="module")
def tsallis():
    return runpy.run_path(str(EXAMPLE))["TsallisProjection"]


@pytest.fixture(params=["tsallis", "reverse"])
def projection(request):
    if request.param == "reverse":
        return ReverseProjection()
    return request.getfixturevalue("tsallis")()


def positive(seed, n=12, shape=SHAPE):
    return np.random.default_rng(seed).gamma(3.0, size=(n, *shape)) + 0.1


def normalised(X):
    return X / X.sum(axis=(1, 2, 3), keepdims=True)


def test_the_example_is_short():
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("order", [1, 2, 3, [(0, 1), (2,)]])
@pytest.mark.parametrize("q", [1.2, 1.5, 2.0])
def test_the_deformed_projection_satisfies_its_definition(tsallis, q, order, seed):
    p, forward = normalised(positive(seed)), tsallis(order, q)
    w = forward.points(forward.encode(p, POSET), POSET)
    assert_allclose(w.sum(axis=(1, 2, 3)), 1)
    mask = order_mask(POSET, order)
    # No interactions of the deformed logarithm, and the same escort marginals.
    beyond = POSET.moebius(w ** (1 - q))[:, ~mask & (POSET.order > 0)]
    assert_allclose(beyond, 0, atol=1e-8)
    escorts = (eta_from_prob(normalised(x**q), POSET)[:, mask] for x in (p, w))
    assert_allclose(*escorts, atol=1e-8)
    if order == 3:
        assert_allclose(w, p, atol=1e-8)


def test_the_deformed_projection_minimises_the_divergence(tsallis):
    """The canonical divergence of a deformed exponential family, by BFGS."""
    q, p = 1.5, normalised(positive(0, n=1))
    forward = tsallis(1, q)
    escort = normalised(p**q)

    def divergence(coordinates):
        w = forward.points(coordinates[None], POSET)
        return np.sum(escort * (p ** (1 - q) - w ** (1 - q))) / (1 - q)

    found = forward.encode(p, POSET)[0]
    best = minimize(divergence, np.zeros_like(found), options={"gtol": 1e-7})
    assert divergence(found) >= 0
    assert_allclose(best.x, found, atol=1e-4)
    assert divergence(found) <= best.fun + 1e-10


def test_the_deformed_projection_tends_to_the_kl_projection(tsallis):
    X = positive(0)
    plain = ManyBodyProjector(2)
    expected = plain.inverse_transform(plain.fit_transform(X))
    distances = []
    for q in (1.1, 1.01, 1.001):
        projector = ManyBodyProjector(tsallis(2, q))
        found = projector.inverse_transform(projector.fit_transform(X))
        distances.append(np.abs(found - expected).max())
    assert distances[2] < 1e-4
    assert distances[0] > 5 * distances[1] > 25 * distances[2]


@pytest.mark.parametrize("with_mass", [False, True])
def test_the_projector_encodes_by_the_methods(projection, with_mass):
    X, offset = positive(0), 0.5
    measures = X + offset
    p = normalised(measures)
    projector = ManyBodyProjector(projection, offset=offset, with_mass=with_mass)
    codes = projector.fit_transform(X)
    coordinates = projection.encode(p, POSET)
    assert_array_equal(codes[:, int(with_mass) :], coordinates)
    assert_array_equal(projector.transform(X), codes)
    w = projection.points(coordinates, POSET)
    mass = measures.sum(axis=(1, 2, 3), keepdims=True) if with_mass else 1
    assert_allclose(projector.inverse_transform(codes), w * mass)
    assert_allclose(
        projector.reconstruction_err_, np.mean(kl_divergence(p, w, axis=(1, 2, 3)))
    )
    names = projector.get_feature_names_out()
    assert len(names) == projector.n_params_ == codes.shape[1]
    assert_array_equal(projector.base_mask_, order_mask(POSET, 1))


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
def test_neighbours_are_near_in_the_metric(projection, metric):
    X = positive(1, n=40)
    projector = BackwardProjector(projection, metric=metric).fit(X)
    codes = projector.codes_
    w = projection.points(codes, POSET).reshape(40, 1, -1)
    expected = kl_divergence(w, w.reshape(1, 40, -1), axis=-1)
    if metric == "euclidean":
        expected = np.linalg.norm(codes[:, None] - codes, axis=2)
    distances, indices = projector.kneighbors(codes, 6)
    assert_allclose(distances, np.sort(expected, axis=1)[:, :6], atol=1e-7)
    assert_array_equal(indices, np.argsort(expected, axis=1)[:, :6])


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_all_local_manifolds_decode_the_points(projection, manifold):
    X, offset = positive(2, n=20), 0.5
    projector = ManyBodyProjector(projection, offset=offset, tol=1e-10)
    backward = BackwardProjector(projector, local_manifold=manifold).fit(X)
    codes = backward.codes_ + 0.02
    rows = backward.inverse_transform(codes)
    assert rows.shape == X.shape
    q = normalised(rows + offset)
    w = projector.fit(X).inverse_transform(codes)
    near = normalised(X + offset)[backward.kneighbors(codes)[1]]
    mean, low = near.mean(axis=1), order_mask(POSET, 1)
    high = ~low & (POSET.order > 0)
    if manifold == "mixture":
        assert_allclose(q, 0.02 * w + 0.98 * mean)
        return
    if manifold == "theta":
        mean = normalised(np.exp(np.log(near).mean(axis=1)))
        pairs = {"theta": (mean, low), "eta": (w, high)}
    elif manifold == "fiber":
        pairs = {"theta": (mean, high), "eta": (w, low)}
    else:
        pairs = {"theta": (w, high), "eta": (mean, low)}
    for name, (source, mask) in pairs.items():
        of = theta_from_prob if name == "theta" else eta_from_prob
        found, expected = (of(x, POSET)[:, mask] for x in (q, source))
        assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("draws", ["mixup", "kde"])
def test_codes_of_own_projections_yield_rows(projection, draws, manifold):
    X, y = positive(3, n=40), np.r_[np.zeros(28), np.ones(12)]
    method = Codes(projection, draws=draws, local_manifold=manifold, reshaper=None)
    augmenter = PNLAugmenter(method).fit(X)
    assert augmenter.method_.codes_.shape == (40, 1 + order_mask(POSET, 1).sum())
    rows = augmenter.sample(30, random_state=0)
    assert rows.shape == (30, *SHAPE)
    assert np.isfinite(rows).all()
    assert_array_equal(augmenter.sample(30, random_state=0), rows)
    X_new, _ = PNLSampler(method=method, random_state=0).fit_resample(X, y)
    assert X_new.shape == (56, *SHAPE)
    by_order = PNLSampler(order=projection, random_state=0).fit_resample(X, y)[0]
    assert by_order.shape == (56, *SHAPE)


def test_results_do_not_depend_on_the_number_of_jobs(projection):
    X = positive(0, n=30)
    codes = [ManyBodyProjector(projection, n_jobs=k).fit_transform(X) for k in (1, 2)]
    assert_array_equal(*codes)
    fitted = BackwardProjector(ManyBodyProjector(ReverseProjection())).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    rows = fitted.inverse_transform(fitted.codes_)
    assert_array_equal(again.inverse_transform(fitted.codes_), rows)


def test_parameters_of_a_projection_can_be_searched(tsallis):
    X = np.random.default_rng(0).poisson(20, size=(10, *SHAPE))
    projector = ManyBodyProjector(tsallis(), offset=0.05)
    grid = {"order__q": [1.2, 1.6], "order__order": [1, 2]}
    search = GridSearchCV(projector, grid, cv=2).fit(X)
    assert set(search.best_params_) == set(grid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert repr(clone(projector)) == repr(projector)


def of_backward(order):
    BackwardProjector(order).fit(positive(0))


def of_codes(order):
    PNLAugmenter(Codes(order, reshaper=None)).fit(positive(0))


@pytest.mark.parametrize("fit", [of_backward, of_codes])
@pytest.mark.parametrize(
    "name", ["fit", "fit_transform", "transform", "inverse_transform", "to_measures"]
)
def test_overridden_methods_of_a_projector_are_refused(fit, name):
    def method(self, X, y=None):
        return getattr(ManyBodyProjector, name)(self, X)

    own = type("OwnProjector", (ManyBodyProjector,), {name: method})
    with pytest.raises(TypeError, match=f"OwnProjector overrides {name} of.*Forward"):
        fit(own())
    # Another default or method has no effect on the codes.
    fit(type("LaterProjector", (ManyBodyProjector,), {"describe": method})())


@pytest.mark.parametrize(
    "params, message",
    [
        ({"n_codes": 3}, r"encode of.*shape \(12, 4\).*\(12, 3\)"),
        ({"code": np.nan}, r"encode of.*finite values of shape \(12, 4\).* 0 finite"),
        ({"point": -1.0}, r"points of.*positive values of shape.*minimum -1"),
        ({"point": 0.0}, r"points of.*positive.*reduce the noise"),
        ({"point": np.nan}, r"points of.*positive"),
        ({"order": 4}, "order"),
        ({"order": 0}, "order"),
    ],
)
@pytest.mark.parametrize("fit", [ManyBodyProjector, BackwardProjector])
def test_invalid_projections_are_named(fit, params, message):
    with pytest.raises(ValueError, match=message):
        projector = fit(WrongProjection(**params)).fit(positive(0))
        projector.inverse_transform(projector.transform(positive(0)))


def test_unsupported_input_is_refused():
    X = positive(0)
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    projector = ManyBodyProjector(ReverseProjection(), handle_missing="ignore")
    with pytest.raises(ValueError, match=r"ReverseProjection\(\) cannot.*missing"):
        projector.fit(gaps)
    with pytest.raises(ValueError, match=r"score of rows that are no counts"):
        projector.fit(X).score(X)
    with pytest.raises(ValueError, match=r"cannot be combined with base"):
        ManyBodyProjector(ReverseProjection(), base=order_mask(POSET, 1)).fit(X)
    with pytest.raises(NotImplementedError, match="ForwardProjection must implement"):
        ManyBodyProjector(ForwardProjection()).fit(X)
    empty = X.copy()
    empty[0, 0, 0, 0] = 0
    with pytest.raises(ValueError, match=r"offset=0"):
        ManyBodyProjector(ReverseProjection(), offset=0).fit(empty)


def test_arrays_on_a_device_are_refused():
    base = ProjectedBase(POSET, ReverseProjection())
    p = array_api_strict.asarray(normalised(positive(0)).reshape(12, -1))
    with pytest.raises(TypeError, match=r"ReverseProjection\(\) takes arrays of"):
        base.coordinates(p, 0.0)


def test_the_default_points_are_log_linear():
    forward = ReverseProjection([(0, 1), (2,)])
    mask = forward.base_mask(POSET)
    codes = np.random.default_rng(0).normal(size=(3, mask.sum()))
    theta = np.zeros((3, *SHAPE))
    theta[:, mask] = codes
    assert_allclose(forward.points(codes, POSET), prob_from_theta(theta, POSET))
