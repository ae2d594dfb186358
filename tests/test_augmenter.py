"""PNLAugmenter: sampling and decoding of codes, random states, batches, parameters."""

import pickle
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from numbers import Real

import numpy as np
import pytest
from _methods import in_method
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer
from sklearn.utils._param_validation import Interval

from sklearn_pnl import (
    BackwardProjector,
    Codes,
    Lines,
    ManyBodyProjector,
    PNLAugmenter,
    PrimeFactorReshaper,
)
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.encoding.manifolds import (
    EtaManifold,
    FiberManifold,
    LocalManifold,
    MixtureManifold,
    ThetaManifold,
)
from sklearn_pnl.geometry import TensorPoset, chain_poset
from sklearn_pnl.methods.draws import (
    DensityDraws,
    Draws,
    KernelDraws,
    MixupDraws,
    NewCodes,
)

SEEDS = [0, 1, 2]
SHAPE = (3, 2, 2)


def positive(seed, *shape, n=12):
    return np.random.default_rng(seed).gamma(1.0, size=(n, *shape)) + 0.1


def table(n=60, d=12, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def coded(X, draws="mixup", order=1, n_neighbors=5, **params):
    """Make an augmenter that encodes rows as a projector does, and the projector."""
    names = "offset", "with_mass", "tol", "poset"
    numerics = {"offset": 0.0, "with_mass": False, "tol": 1e-9}
    numerics |= {name: params.pop(name) for name in names if name in params}
    base = ManyBodyProjector(order, **numerics)
    decoder = {"local_manifold": params.get("local_manifold", "fiber")}
    plain = {"embedding": None, "reshaper": None, "extrapolation": None}
    plain |= {"equalities": None, "value_support": None, "k_neighbors": n_neighbors}
    plain |= {"order": base, "draws": draws}
    augmenter = PNLAugmenter(**in_method(plain | params)).fit(X)
    metric = getattr(draws, "metric", "kl")
    projector = BackwardProjector(
        base, k_neighbors=n_neighbors, metric=metric, **decoder
    )
    return augmenter, projector.fit(X)


class Ring(BaseEstimator):
    """A density of a third party, whose ``sample`` takes only a number."""

    def __init__(self, shift=0.0, n_columns=None):
        self.shift, self.n_columns = shift, n_columns

    def fit(self, X, y=None):
        self.codes_ = X
        return self

    def sample(self, n_samples):
        codes = self.codes_[np.arange(n_samples) % len(self.codes_)]
        moved = codes + np.linspace(-self.shift, self.shift, codes.shape[1])
        return moved[:, : self.n_columns]


class AtPosition(np.random.RandomState):
    """Draws with a fixed position between the two rows."""

    def __init__(self, position, seed=0):
        super().__init__(seed)
        self.position = position

    def uniform(self, size):
        return np.full(size, self.position)


DRAWS = [
    "mixup",
    "interpolation",
    "kde",
    GaussianMixture(2, reg_covar=1e-3, random_state=0),
]


# --- codes ------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_draws_agree_with_kernel_density(seed, order):
    X, n = positive(seed, *SHAPE), 4000
    augmenter, projector = coded(X, KernelDraws(0.4), order)
    ours = projector.transform(augmenter.sample(n, seed))
    theirs = KernelDensity(bandwidth=0.4).fit(projector.codes_).sample(n, seed)
    spread = theirs.std(axis=0)
    error = np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / spread
    assert error.max() < 6 * np.sqrt(2 / n)
    assert_allclose(ours.std(axis=0), spread, rtol=0.1)
    assert_allclose(np.corrcoef(ours.T), np.corrcoef(theirs.T), atol=0.12)


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_codes_without_noise_lie_between_the_codes_of_their_parents(seed, with_mass):
    # Codes lie on the e-geodesic: theta is mixed, as in the paper.
    augmenter, projector = coded(
        positive(seed, *SHAPE), "interpolation", with_mass=with_mass
    )
    rows, parents = augmenter.sample(300, seed, return_parents=True)
    codes, (i, j) = projector.transform(rows), projector.codes_[parents.T]
    t = np.einsum("nd,nd->n", codes - i, j - i) / np.sum((j - i) ** 2, axis=1)
    assert_allclose(codes, i + t[:, None] * (j - i), atol=1e-6)
    assert t.min() > -1e-6
    assert t.max() < 1 + 1e-6
    assert np.ptp(t) > 0.9


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
@pytest.mark.parametrize("k", [1, 4])
def test_second_parents_of_codes_are_nearest_neighbours(k, metric):
    draws = MixupDraws(metric=metric)
    augmenter, projector = coded(positive(0, *SHAPE, n=20), draws, n_neighbors=k)
    parents = augmenter.sample(600, 0, return_parents=True)[1]
    near = projector.kneighbors(projector.codes_, k + 1, return_distance=False)
    assert_array_equal(near[:, 0], np.arange(20))
    drawn = {tuple(pair) for pair in parents.tolist()}
    assert drawn == {(i, j) for i in range(20) for j in near[i, 1:].tolist()}


@pytest.mark.parametrize("noise", [0.02, 0.06])
def test_covariance_of_the_noise_of_codes_follows_its_formula(noise):
    # All other rows are neighbours. The ends of the geodesic are rows, so that the
    # remainder is noise. Larger noise would make some cells negative.
    X, n = positive(0, *SHAPE, n=15), 20_000
    augmenter, projector = coded(X, MixupDraws(noise), 2, 14, with_mass=True, offset=1)
    rows, parents = augmenter.sample(n, AtPosition(0.0), return_parents=True)
    steps = projector.transform(rows) - projector.codes_[parents[:, 0]]
    for i in range(15):
        own = steps[parents[:, 0] == i]
        differences = np.delete(projector.codes_, i, axis=0) - projector.codes_[i]
        expected = noise**2 * differences.T @ differences / 14
        size = np.sqrt(np.diag(expected))
        error = (own.T @ own / len(own) - expected) / np.outer(size, size)
        assert np.abs(error).max() < 6 * np.sqrt(2 / len(own))


@pytest.mark.parametrize("position", [0.0, 1.0])
@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("manifold", ["fiber", MixtureManifold(step=1.0)])
def test_the_ends_of_geodesics_are_the_parents(manifold, with_mass, position):
    X = positive(0, *SHAPE)
    augmenter = coded(
        X, "interpolation", local_manifold=manifold, with_mass=with_mass, offset=0.3
    )[0]
    rows, parents = augmenter.sample(50, AtPosition(position), return_parents=True)
    assert_allclose(rows, X[parents[:, int(position)]], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize(
    "manifold",
    ["fiber", FiberManifold(order=1), ThetaManifold(order=1), EtaManifold([(0, 1)]),
     MixtureManifold(step=0.5)],
    ids=str,
)  # fmt: skip
def test_new_rows_agree_with_the_decoding_of_a_projector(manifold, with_mass, metric):
    draws = DensityDraws(Ring(0.2), metric=metric)
    augmenter, projector = coded(
        positive(0, *SHAPE), draws, 2, 3, local_manifold=manifold, offset=0.2,
        with_mass=with_mass,
    )  # fmt: skip
    codes = projector.codes_ + np.linspace(-0.2, 0.2, projector.n_params_)
    # Rows are not negative, because they are read as measures.
    expected = np.maximum(projector.inverse_transform(codes), 0).reshape(12, -1)
    rows, parents = augmenter.sample(12, 0, return_parents=True)
    rows = rows.reshape(12, -1)
    ours, theirs = np.lexsort(rows.T), np.lexsort(expected.T)
    assert_allclose(rows[ours], expected[theirs], rtol=1e-8, atol=1e-10)
    near = projector.kneighbors(codes, return_distance=False)
    assert_array_equal(parents[ours], near[theirs])


@pytest.mark.parametrize("density", [KernelDensity(bandwidth=0.1), DRAWS[-1]])
def test_densities_of_scikit_learn_are_cloned_and_keep_mean_and_spread(density):
    augmenter, projector = coded(positive(0, *SHAPE, n=40), density)
    codes, training = projector.transform(augmenter.sample(2000, 0)), projector.codes_
    spread = training.std(axis=0)
    assert np.abs((codes.mean(axis=0) - training.mean(axis=0)) / spread).max() < 0.2
    assert_allclose(codes.std(axis=0), spread, rtol=0.2)
    assert augmenter.method.draws is density
    assert not [name for name in vars(density) if name.endswith("_")]
    assert type(augmenter.method_.draws_.estimator_) is type(density)


@pytest.mark.parametrize("density", [Ring(n_columns=2), Ring(np.nan)])
def test_codes_of_invalid_shape_or_value_are_rejected(density):
    augmenter = PNLAugmenter(Codes(1, draws=density)).fit(positive(0, *SHAPE))
    with pytest.raises(ValueError, match="draws=Ring"):
        augmenter.sample(20)


@pytest.mark.parametrize(
    ("name", "draws"),
    [("mixup", MixupDraws()), ("interpolation", MixupDraws(0)), ("kde", KernelDraws())],
)
@pytest.mark.parametrize("order", [None, 1])
def test_a_string_means_the_object_with_default_parameters(order, name, draws):
    X = table()
    named, made = (
        PNLAugmenter(Codes(order, draws=value)).fit(X) for value in (name, draws)
    )
    assert_array_equal(named.sample(50, 0), made.sample(50, 0))
    assert named.method_.draws_.get_params() == draws.get_params()


@pytest.mark.parametrize("n_candidates", [2, 5, 11])
@pytest.mark.parametrize("order", [None, 1, "lines"])
def test_second_parents_are_chosen_among_the_candidates(order, n_candidates):
    method = Lines(n_candidates=n_candidates)
    if order != "lines":
        method = Codes(order, draws=MixupDraws(n_candidates=n_candidates))
    augmenter = PNLAugmenter(method).fit(table(30))
    rows, parents = augmenter.sample(400, 0, return_parents=True)
    assert np.isfinite(rows).all()
    assert len(np.unique(parents[:, 1])) <= n_candidates
    assert len(np.unique(parents[:, 0])) == 30


@pytest.mark.parametrize("draws", [KernelDraws, partial(DensityDraws, KernelDensity())])
def test_densities_search_neighbours_among_the_candidates(draws):
    X = table(30)
    for n_candidates, most in ((2, 5), (7, 7), (30, 30), (None, 30)):
        method = Codes(1, draws=draws(n_candidates=n_candidates))
        augmenter = PNLAugmenter(method, k_neighbors=5).fit(X)
        rows, parents = augmenter.sample(400, 0, return_parents=True)
        assert np.isfinite(rows).all()
        # At least as many rows as neighbours are candidates.
        assert len(np.unique(parents)) <= most
        assert n_candidates in (2, 7) or len(np.unique(parents)) > 20


@pytest.mark.parametrize(("shape", "name"), [((4, 3), "codes"), ((12,), "lines")])
def test_auto_uses_codes_for_images_and_lines_for_tables(shape, name):
    X = table().reshape(60, *shape)
    made = {"lines": Lines(), "codes": Codes()}
    rows = [
        PNLAugmenter(method).fit(X).sample(30, 0)
        for method in ("auto", name, made[name])
    ]
    assert_array_equal(rows[0], rows[1])
    assert_array_equal(rows[0], rows[2])


def test_lines_for_images_agree_with_flattened_rows():
    X = table()
    rows = PNLAugmenter("lines", value_support=None, equalities=None).fit(X)
    images = PNLAugmenter("lines", equalities=None).fit(X.reshape(60, 4, 3))
    with config_context(assume_finite=True):
        assert images.sample(30, 0).shape == (30, 4, 3)
    assert_array_equal(images.sample(30, 0).reshape(30, 12), rows.sample(30, 0))


def test_a_method_is_cloned_and_fitted_as_method_():
    method = Codes(order=1)
    augmenter = PNLAugmenter(method).fit(table())
    assert augmenter.method is method and augmenter.method_ is not method
    assert not [name for name in vars(method) if name.endswith("_")]
    assert augmenter.method_.codes_.shape == (60, augmenter.method_.n_params_)
    assert type(PNLAugmenter().fit(table()).method_) is Lines


def test_method_paper_has_the_settings_of_the_paper():
    X = np.abs(table())
    rows = PNLAugmenter("paper").fit(X).sample(9, 0)
    assert_array_equal(PNLAugmenter(Codes.paper()).fit(X).sample(9, 0), rows)
    two = PNLAugmenter(Codes.paper()).set_params(method__order=2).fit(X)
    assert two.method_.order_ == 2 and two.method_.with_mass is False
    assert two.method_.get_params()["offset"] == 1e-5
    assert_array_equal(
        two.sample(9, 0), PNLAugmenter(Codes.paper(2)).fit(X).sample(9, 0)
    )
    theta = Codes.paper(local_manifold="theta")
    assert theta.local_manifold == "theta" and theta.offset == 1e-5


@pytest.mark.parametrize("settings", [{"offset": 0.5}, {"with_mass": False}], ids=str)
def test_parameters_cannot_be_set_in_both_codes_and_projector(settings):
    projector = ManyBodyProjector(1, offset=1.0, with_mass=True)
    with pytest.raises(ValueError, match="Codes .*offset=.* order="):
        PNLAugmenter(Codes(projector, **settings)).fit(table())
    # Without a projector, the parameters have an effect.
    plain, changed = (
        PNLAugmenter(Codes(1, **given)).fit(table()).sample(20, 0)
        for given in ({}, settings)
    )
    assert np.abs(plain - changed).max() > 1e-6


# --- a user's own draws -----------------------------------------------------------


class PulledDraws(Draws):
    """Draw the code of a random row, pulled towards the mean of all codes."""

    _parameter_constraints: dict = {"pull": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, pull=0.5):
        self.pull = pull

    def fit(self, codes):
        self.mean_ = codes.mean(axis=0)
        return self

    def start_codes(self, codes, n_samples, rng):
        chosen = rng.randint(len(codes), size=n_samples)
        pulled = self.pull * self.mean_ + (1 - self.pull) * codes[chosen]
        return pulled.__getitem__


class HalfwayDraws(Draws):
    """Draw the midpoint of two random rows, which are both its parents."""

    def start(self, training, start, rng):
        pairs = rng.randint(len(training.codes), size=(start.n_samples, 2))

        def between(rows):
            codes = training.codes[pairs[rows]].mean(axis=1)
            return NewCodes(codes, pairs[rows], np.full(pairs[rows].shape, 0.5))

        return between


class PowerManifold(LocalManifold):
    """Decode to a point of the e-geodesic from the code to the neighbours."""

    geometric = True
    _parameter_constraints: dict = {"power": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, power=0.5):
        super().__init__()
        self.power = power

    def matched(self, low):
        return None

    def project_from_code(self, w, r, project):
        q = w ** (1 - self.power) * r**self.power
        return q / q.sum(axis=1, keepdims=True), np.zeros(len(q))


@pytest.mark.parametrize("shape", [(12,), (4, 3)], ids=str)
@pytest.mark.parametrize(
    ("params", "n_parents"),
    [
        ({"draws": PulledDraws(0.25)}, 5),
        ({"draws": HalfwayDraws()}, 2),
        ({"order": 1, "local_manifold": PowerManifold(0.3)}, 2),
        ({"order": 1, "draws": HalfwayDraws(), "local_manifold": PowerManifold()}, 2),
    ],
    ids=str,
)
def test_custom_draws_and_manifolds_generate_rows(params, n_parents, shape):
    X = table().reshape(60, *shape)
    augmenter = PNLAugmenter(**in_method(params)).fit(X)
    rows, parents = augmenter.sample(50, 0, return_parents=True)
    assert rows.shape == (50, *shape)
    assert np.isfinite(rows).all()
    assert parents.shape == (50, n_parents)
    assert_array_equal(np.concatenate(list(augmenter.iter_samples(50, 7, 0))), rows)
    again = clone(augmenter).fit(X).sample(50, 0)
    assert_array_equal(again, rows)
    # Strategies that the user passes stay unchanged.
    for given in params.values():
        assert not [name for name in dir(given) if name.endswith("mean_")]


def test_codes_of_custom_draws_are_decoded():
    X = positive(0, 6, n=30)
    # The code is the complete row plus 1: geometric means of all rows, or of two rows.
    pulled = Codes(draws=PulledDraws(1.0), embedding=None)
    rows = PNLAugmenter(pulled, value_support=None).fit(X).sample(4, 0)
    assert_allclose(rows + 1, [np.exp(np.log(X + 1).mean(axis=0))] * 4, rtol=1e-9)
    halfway = Codes(draws=HalfwayDraws(), embedding=None)
    pairs = PNLAugmenter(halfway, value_support=None).fit(X)
    rows, parents = pairs.sample(9, 0, return_parents=True)
    assert_allclose(rows + 1, np.sqrt((X[parents] + 1).prod(axis=1)), rtol=1e-9)


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"draws": PulledDraws(1.5)}, "pull"),
        ({"draws": MixupDraws("much")}, "noise"),
        ({"draws": MixupDraws(-0.1)}, "noise"),
        ({"method": Lines(-0.1)}, "noise"),
        ({"method": "mixup"}, "method"),
        ({"method": 1}, "method"),
        ({"offset": -1.0}, "offset"),
        ({"draws": KernelDraws(0)}, "bandwidth"),
        ({"draws": "smote"}, "draws"),
        ({"draws": None}, "draws"),
        ({"draws": 5}, "draws"),
        ({"order": 1, "local_manifold": PowerManifold(-1.0)}, "power"),
        ({"order": 1, "local_manifold": MixtureManifold(step=None)}, "step"),
        ({"order": 1, "local_manifold": "fibre"}, "local_manifold"),
        ({"order": 0}, "order"),
        ({"embedding": "log"}, "embedding"),
        ({"reshaper": 3}, "reshaper"),
        ({"equalities": "some"}, "equalities"),
    ],
    ids=str,
)
def test_parameters_are_validated_in_fit(params, name):
    augmenter = PNLAugmenter().fit(table())
    rows = augmenter.sample(9, 0)
    augmenter.set_params(**in_method(params))
    assert_array_equal(augmenter.sample(9, 0), rows)
    with pytest.raises(ValueError, match=f"'{name}' parameter of"):
        augmenter.fit(table())
    assert_array_equal(augmenter.sample(9, 0), rows)


# --- bases ------------------------------------------------------------------------


def test_an_integer_or_a_list_means_a_projector_with_defaults():
    X = table()
    # A list names axes; the only axis of a table has three modes.
    for order, order_ in ((1, 1), (2, 2), ([(0,)], [(0, 1, 2)])):
        augmenter = PNLAugmenter(Codes(order)).fit(X)
        base = ManyBodyProjector(order, offset=1.0, with_mass=True)
        given = PNLAugmenter(Codes(base)).fit(X)
        assert_array_equal(augmenter.sample(40, 0), given.sample(40, 0))
        named = augmenter.method_
        assert named.order_ == order_
        assert named.poset_.shape == (3, 2, 2)
        assert not hasattr(base, "codes_")
        assert named.n_params_ == named.codes_.shape[1] == named.base_mask_.sum() + 1


def test_base_poset_and_offset_of_the_projector_are_used():
    X = positive(0, 12, n=40)
    base = [1, 5, 7]
    augmenter = PNLAugmenter(
        Codes(ManyBodyProjector(base=base), offset=1.0, embedding=None)
    )
    augmenter.fit(X)
    assert augmenter.method_.n_params_ == 3
    assert_array_equal(np.flatnonzero(augmenter.method_.base_mask_), base)
    chain = ManyBodyProjector(1, poset=chain_poset(12), with_mass=True)
    augmenter = PNLAugmenter(Codes(chain, embedding=None)).fit(X)
    assert augmenter.method_.poset_.n_elements == 12
    assert augmenter.sample(5, 0).shape == (5, 12)
    tensor = ManyBodyProjector(2, poset=TensorPoset((4, 3)), offset=1, with_mass=True)
    flat = PNLAugmenter(Codes(tensor)).fit(X).sample(20, 0)
    stacked = (
        PNLAugmenter(Codes(2, reshaper=None)).fit(X.reshape(40, 4, 3)).sample(20, 0)
    )
    assert_allclose(stacked.reshape(20, 12), flat, rtol=1e-9, atol=1e-9)


def test_a_reshaper_incompatible_with_the_poset_is_rejected():
    projector = ManyBodyProjector(1, poset=TensorPoset((4, 3)))
    method = Codes(projector, reshaper="prime")
    with pytest.raises(ValueError, match="reshaper"):
        PNLAugmenter(method).fit(positive(0, 12))


@pytest.mark.parametrize(
    ("X", "params", "remedy"),
    [
        (table(), {"order": 7}, "order=7 .* 1 to 3"),
        (table(), {"order": 2, "reshaper": None}, "order=2 .* 1 to 1"),
        (
            positive(0, *SHAPE) - 1,
            {"order": 1, "embedding": None},
            "embedding='minmax'",
        ),
        (np.where(table() > 2, np.nan, 1.0), {"order": 1}, "NaN.*method='lines'"),
        (np.where(table() > 2, np.inf, 1.0), {}, "infinity.* row 6, column 7"),
        (table()[:0], {}, r"X.*\(0, 12\)"),
        (table()[:, :0], {}, r"X.*\(60, 0\)"),
        (table() + 1j, {}, "complex128"),
        (np.array([["a", "b"]] * 9), {}, "Column 0"),
        (
            table(),
            {"order": 1, "embedding": FunctionTransformer(lambda X: X * np.nan)},
            "embedding=.* NaN",
        ),
    ],
)
def test_invalid_rows_are_rejected(X, params, remedy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=remedy):
            PNLAugmenter(**in_method(params)).fit(X)


def test_embeddings_and_reshapers_are_cloned_and_inverted():
    X = np.abs(table())
    reshaper, embedding = (
        PrimeFactorReshaper(factor_order="ascending"),
        QuantileTransformer(n_quantiles=20),
    )
    params = {"order": 1, "reshaper": reshaper, "embedding": embedding}
    augmenter = PNLAugmenter(**in_method(params)).fit(X)
    assert augmenter.method.reshaper is reshaper
    assert augmenter.method_.reshaper_ is not reshaper
    assert augmenter.method_.embedding_.n_quantiles_ == 20
    assert not hasattr(embedding, "quantiles_")
    new = augmenter.sample(100, 0)
    assert (new >= X.min(axis=0)).all()
    assert (new <= X.max(axis=0)).all()
    # The codes are complete rows in other units, where they are mixed.
    logs = FunctionTransformer(np.log1p, np.expm1, check_inverse=False)
    new, parents = (
        PNLAugmenter(Codes(embedding=logs, draws="interpolation"), equalities=None)
        .fit(X)
        .sample(100, 0, return_parents=True)
    )
    low, high = X[parents].min(axis=1), X[parents].max(axis=1)
    assert (new >= low - 1e-9).all()
    assert (new <= high + 1e-9).all()


def test_equalities_and_orders_hold_with_codes():
    rng = np.random.default_rng(0)
    parts, low = rng.gamma(1.0, size=(100, 4)), rng.gamma(1.0, size=(100, 2))
    X = np.column_stack([parts, parts.sum(axis=1), low.cumsum(axis=1)])
    for params in (
        {"order": 1},
        {"draws": "kde"},
        {"embedding": QuantileTransformer(n_quantiles=50)},
    ):
        new = PNLAugmenter(Codes(reshaper=None, **params)).fit(X).sample(300, 0)
        gap = np.abs(new[:, 4] - new[:, :4].sum(axis=1))
        assert gap.max() <= 1e-9 * np.ptp(X[:, 4])
        assert (new[:, 5] <= new[:, 6]).all()
        assert (new >= X.min(axis=0) - 1e-12).all()
        assert (new <= X.max(axis=0) + 1e-12).all()


class Lost(MixtureManifold):
    """Rows whose residual is NaN."""

    def project_from_code(self, w, r, project):
        q, residual = super().project_from_code(w, r, project)
        return q, np.where(np.arange(len(q)) == 2, np.nan, residual)


def test_missing_convergence_raises_a_warning():
    augmenter = PNLAugmenter(Codes(1, local_manifold=Lost())).fit(table())
    with pytest.warns(ConvergenceWarning, match="PNLAugmenter: 1 of 30 "):
        augmenter.sample(30)
    X = np.random.default_rng(0).gamma(0.3, size=(60, 4, 3, 2))
    hard = ManyBodyProjector(2, max_iter=1, offset=1e-4)
    with pytest.warns(ConvergenceWarning, match="^PNLAugmenter: .*max_iter"):
        PNLAugmenter(Codes(hard)).fit(X)


# --- seeds and numbers ------------------------------------------------------------


@pytest.mark.parametrize("draws", DRAWS, ids=str)
@pytest.mark.parametrize("order", [None, 1])
def test_random_state_determines_every_byte(order, draws):
    X = table()
    before = X.copy()
    augmenter = PNLAugmenter(Codes(order, draws=draws)).fit(X)
    rows = augmenter.sample(20, 0)
    assert augmenter.sample(20, 0).tobytes() == rows.tobytes()
    assert clone(augmenter).fit(X).sample(20, 0).tobytes() == rows.tobytes()
    assert augmenter.sample(20, 1).tobytes() != rows.tobytes()
    assert augmenter.sample(20).tobytes() != augmenter.sample(20).tobytes()
    state = np.random.RandomState(0)
    assert_array_equal(augmenter.sample(20, state), rows)
    assert not np.array_equal(augmenter.sample(20, state), rows)
    generator = augmenter.sample(20, np.random.default_rng(0))
    assert_array_equal(generator, augmenter.sample(20, np.random.default_rng(0)))
    # Later changes of X do not affect the augmenter.
    X[:] = 0
    assert_array_equal(augmenter.sample(20, 0), rows)
    assert before.any()


@pytest.mark.parametrize("n_samples", [-1, 2.5, "3", None])
@pytest.mark.parametrize("method", ["sample", "iter_samples"])
def test_invalid_n_samples_is_rejected_before_sampling(method, n_samples):
    augmenter = PNLAugmenter().fit(table())
    with pytest.raises((ValueError, TypeError), match="n_samples"):
        getattr(augmenter, method)(n_samples)
    with pytest.raises(NotFittedError):
        getattr(PNLAugmenter(), method)(3)
    with pytest.raises(ValueError, match="infeasible"):
        getattr(augmenter, method)(3, infeasible="ignore")
    assert len(augmenter.sample(np.int64(3))) == 3


@pytest.mark.parametrize("size", [0, -1, 2.5, "3"])
def test_invalid_batch_size_is_rejected_before_sampling(size):
    with pytest.raises((ValueError, TypeError), match="batch_size"):
        PNLAugmenter().fit(table()).iter_samples(9, size)


@pytest.mark.parametrize(("draws", "n_parents"), [("mixup", 2), ("kde", 3)])
def test_more_neighbours_than_rows_are_clipped_with_one_warning(draws, n_parents):
    augmenter = PNLAugmenter(Codes(1, draws=draws), k_neighbors=9)
    with pytest.warns(UserWarning, match="k_neighbors=9") as caught:
        augmenter.fit(positive(0, *SHAPE, n=3))
    assert len(caught) == 1
    assert augmenter.sample(5, 0, return_parents=True)[1].shape == (5, n_parents)


@pytest.mark.parametrize("method", [Lines(), Codes(1)], ids=str)
def test_one_row_gives_copies_with_a_warning(method):
    X = positive(0, 12, n=1)
    with pytest.warns(UserWarning, match=" 1 row,"):
        augmenter = PNLAugmenter(method).fit(X)
    assert_allclose(augmenter.sample(9, 0), np.repeat(X, 9, axis=0), rtol=1e-9)


@pytest.mark.parametrize("draws", DRAWS, ids=str)
@pytest.mark.parametrize("d", [1, 2, 7])
def test_tables_with_few_columns_get_new_rows(d, draws):
    X = table(d=d)
    for order in (None, 1):
        rows = PNLAugmenter(Codes(order, draws=draws)).fit(X).sample(40, 0)
        assert rows.shape == (40, d)
        assert (rows >= X.min(axis=0)).all()
        assert (rows <= X.max(axis=0)).all()


# --- batches ----------------------------------------------------------------------


def mixed_table():
    """Make numbers, integers, flags, gaps and a total."""
    rng = np.random.default_rng(0)
    parts = rng.gamma(1.0, size=(150, 3))
    flags = rng.integers(0, 2, (150, 2))
    X = np.column_stack([parts, parts.sum(axis=1), flags, rng.normal(size=150)])
    X[rng.uniform(size=150) < 0.3, 6] = np.nan
    return X


def images(n=60):
    return np.random.default_rng(0).gamma(1.0, size=(n, 5, 6)) + 0.1


STREAMED = {
    "table": (mixed_table, {}),
    "bare": (table, {"extrapolation": None}),
    "candidates": (table, {"method": Lines(n_candidates=9)}),
    "images": (images, {}),
    "lines": (images, {"method": "lines"}),
    "order": (images, {"order": 1}),
    "theta": (images, {"order": 2, "local_manifold": "theta"}),
    "eta": (images, {"order": 2, "local_manifold": "eta", "draws": "kde"}),
    "mixture": (images, {"order": 1, "local_manifold": "mixture"}),
    "without mass": (images, {"order": ManyBodyProjector(1), "embedding": None}),
    "kde": (table, {"draws": "kde"}),
    "density": (table, {"draws": GaussianMixture(2)}),
    "euclidean": (images, {"order": 1, "draws": KernelDraws(metric="euclidean")}),
    "copies": (lambda: np.repeat(table(10), 6, axis=0), {"k_neighbors": 2}),
    "single": (lambda: images().astype(np.float32), {"order": 2}),
    "bytes": (lambda: (images() * 20).astype(np.uint8), {}),
}


@pytest.mark.parametrize("name", STREAMED)
def test_batches_and_jobs_change_no_byte(name):
    make, params = STREAMED[name]
    augmenter = PNLAugmenter(**in_method(params)).fit(make())
    n = 5000 if name in ("table", "kde") else 250
    rows, parents = augmenter.sample(n, 3, return_parents=True)
    for size in (1, 77, None) if n == 250 else (333, 4097):
        batches = list(augmenter.iter_samples(n, size, 3, return_parents=True))
        assert {len(batch) for batch, _ in batches[:-1]} <= {size}
        streamed, from_rows = map(np.concatenate, zip(*batches, strict=True))
        assert streamed.dtype == rows.dtype
        assert streamed.tobytes() == rows.tobytes(), size
        assert_array_equal(from_rows, parents)
    augmenter.set_params(n_jobs=2)
    assert augmenter.sample(n, 3).tobytes() == rows.tobytes()
    with config_context(working_memory=1):
        assert augmenter.sample(n, 3).tobytes() == rows.tobytes()


def test_set_params_does_not_affect_running_iterators():
    augmenter = PNLAugmenter().fit(table())
    one, other = np.random.RandomState(0), np.random.RandomState(0)
    rows = augmenter.sample(90, one)
    batches = augmenter.iter_samples(90, 20, other)
    first = next(batches)
    augmenter.set_params(k_neighbors=1, extrapolation=None)
    assert_array_equal(np.concatenate([first, *batches]), rows)
    assert one.uniform() == other.uniform()


def test_memory_is_bounded_by_the_batch_size():
    augmenter = PNLAugmenter().fit(table(300, 50))
    next(augmenter.iter_samples(10, 5, 0))
    tracemalloc.start()
    try:
        for batch in augmenter.iter_samples(30_000, 500, 0):
            assert batch.shape == (500, 50)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 12 MB of rows; 24 bytes per row, and a few batches.
    assert peak < 30_000 * 40 + 20 * batch.nbytes + 2**22


def test_the_size_of_a_batch_follows_working_memory():
    augmenter = PNLAugmenter().fit(table())
    sizes = []
    for memory in (1, 4):
        with config_context(working_memory=memory):
            sizes.append(len(next(augmenter.iter_samples(10**5, None, 0))))
    assert_allclose(sizes[1] / sizes[0], 4, rtol=0.01)


# --- memory maps, threads, pickles, fits that fail --------------------------------


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("params", [{}, {"order": 1}], ids=str)
def test_read_only_memory_maps_are_supported(params, dtype, layout, tmp_path):
    X = np.random.default_rng(0).poisson(20, size=(300, 60)).astype(dtype, order=layout)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    rows = PNLAugmenter(**in_method(params)).fit(mapped).sample(200, 0)
    expected = (
        PNLAugmenter(**in_method(params)).fit(np.ascontiguousarray(X)).sample(200, 0)
    )
    assert rows.tobytes() == expected.tobytes()
    assert_array_equal(mapped, X)


@pytest.mark.parametrize("params", [{}, {"draws": "kde"}, {"order": 2}], ids=str)
def test_threads_sharing_an_augmenter_get_the_same_bytes(params):
    serial, shared = (
        PNLAugmenter(**in_method(params)).fit(table(200)) for _ in range(2)
    )
    expected = [serial.sample(100, seed).tobytes() for seed in range(12)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda s: shared.sample(100, s).tobytes(), range(12)))
    assert found == expected


@pytest.mark.parametrize("name", STREAMED)
def test_augmenters_can_be_pickled(name):
    make, params = STREAMED[name]
    augmenter = PNLAugmenter(**in_method(params)).fit(make())
    again = pickle.loads(pickle.dumps(augmenter))
    assert again.sample(9, 0).tobytes() == augmenter.sample(9, 0).tobytes()


class Refusing(FunctionTransformer):
    """An embedding that fails for rows that begin with 13."""

    def __init__(self, error=ValueError):
        super().__init__(lambda X: X + 2.0**12, lambda X: X - 2.0**12)
        self.error = error

    def fit(self, X, y=None):
        if X[0, 0] == 13:
            raise self.error("no embedding")
        return super().fit(X)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_failed_fit_preserves_the_previous_fit(error):
    augmenter = PNLAugmenter(Codes(embedding=Refusing(error)))
    broken = table(d=7)
    broken[0, 0] = 13
    with pytest.raises(error):
        augmenter.fit(broken)
    with pytest.raises(NotFittedError):
        augmenter.sample(3)
    rows = augmenter.fit(table()).sample(9, 0)
    with pytest.raises(error):
        augmenter.fit(broken)
    assert augmenter.n_features_in_ == 12
    assert_array_equal(augmenter.sample(9, 0), rows)


def test_a_new_fit_replaces_the_previous_fit():
    pd = pytest.importorskip("pandas")
    augmenter = PNLAugmenter(Codes(draws=GaussianMixture(2)))
    augmenter.fit(pd.DataFrame(table(), columns=[f"c{j}" for j in range(12)]))
    assert augmenter.feature_names_in_[0] == "c0"
    augmenter.set_params(method="auto").fit(table(d=7))
    assert not hasattr(augmenter, "feature_names_in_")
    assert_array_equal(
        augmenter.sample(9, 0), PNLAugmenter().fit(table(d=7)).sample(9, 0)
    )


def test_batch_size_does_not_change_projected_rows():
    X = np.random.default_rng(0).gamma(2.0, 10.0, (100, 3))
    augmenter, requested = (
        PNLAugmenter().fit(X),
        ColumnConstraint({0: 1, 1: 1}, equal=30),
    )
    rows = augmenter.sample(1500, 0, constraints=requested)
    for size in (7, 1000, 1500):
        batches = list(augmenter.iter_samples(1500, size, 0, constraints=requested))
        assert {len(batch) for batch in batches[:-1]} <= {size}
        assert np.concatenate(batches).tobytes() == rows.tobytes()


def test_n_samples_true_is_one_row():
    augmenter = PNLAugmenter().fit(np.random.default_rng(0).normal(size=(30, 2)))
    assert augmenter.sample(True).shape == (1, 2)


def test_new_rows_of_a_class_with_two_rows_lie_between_them():
    X = np.array([[0.0, 1.25, 2.0], [3.0, 4.25, 8.0]])
    rows = PNLAugmenter(value_support=None).fit(X).sample(50, random_state=0)
    position = (rows - X[0]) / (X[1] - X[0])
    assert_allclose(position, position[:, [0]] * np.ones(3), atol=1e-12)
    assert len(np.unique(position[:, 0])) == 50
