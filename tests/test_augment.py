"""Drawing new rows: how codes are drawn, and that a seed decides every byte."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, kstest, norm
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from sklearn_pnl import (
    BackwardProjector,
    DensityDraws,
    EtaManifold,
    FiberManifold,
    KernelDraws,
    MixtureManifold,
    MixupDraws,
    PNLAugmenter,
    PNLSampler,
    ThetaManifold,
)
from sklearn_pnl.draws import TrainingCodes
from sklearn_pnl.geometry import theta_from_prob

SEEDS = [0, 1, 2]
SHAPE = (3, 2, 2)


def positive(seed, *shape, n=12):
    return np.random.default_rng(seed).gamma(1.0, size=(n, *shape)) + 0.1


def encoder(augment="mixup", **params):
    """An augmenter that does to rows what a projector does, and no more."""
    plain = {"order": 1, "embedding": None, "reshaper": None, "range_slack": None}
    plain |= {"offset": 1e-5, "with_mass": False, "k_neighbors": 5}
    return PNLAugmenter(draws=augment, **(plain | params))


def fitted(X, augment, **params):
    """One without offset, and a projector that reads codes from the new rows."""
    augmenter = encoder(augment, **({"offset": 0, "tol": 1e-9} | params)).fit(X)
    ours = augmenter.get_params(deep=False)
    names = [n for n in BackwardProjector._get_param_names() if n in ours]
    projector = BackwardProjector(
        **{n: ours[n] for n in names}, n_neighbors=augmenter.k_neighbors
    )
    return augmenter, projector.fit(X)


def drawn(X, augment, n_samples, seed=0, **params):
    """The codes drawn, those of the new rows by "fiber", and those of ``X``."""
    augmenter, projector = fitted(X, augment, **params)
    return projector.transform(augmenter.sample(n_samples, seed)), projector.codes_


class AtPosition(np.random.RandomState):
    """Draws as its seed says, but every position between two rows is the same."""

    def __init__(self, position, seed=0):
        super().__init__(seed)
        self.position = position

    def uniform(self, size):
        return np.full(size, self.position)


def global_state():
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    return state["key"].tobytes(), state["pos"]


class Ring(BaseEstimator):
    """A density of another's making: ``sample`` takes a number and no more."""

    def __init__(self, n_columns=None):
        self.n_columns = n_columns

    def fit(self, X, y=None):
        self.codes_ = X
        return self

    def sample(self, n_samples):
        codes = self.codes_[np.arange(n_samples) % len(self.codes_)]
        return codes[:, : self.n_columns]


class TooFew(Ring):
    def sample(self, n_samples):
        return self.codes_[:1]


class NotNumbers(Ring):
    def sample(self, n_samples):
        return np.full((n_samples, self.codes_.shape[1]), np.nan)


AUGMENTS = [
    "mixup",
    "kde",
    KernelDensity(bandwidth=0.1),
    GaussianMixture(2, reg_covar=1e-3),
]


# --- how codes are drawn --------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, None])
@pytest.mark.parametrize("seed", SEEDS)
def test_kde_draws_as_a_kernel_density_does(seed, order):
    draws = KernelDraws(bandwidth=0.4)
    if order is None:
        # Codes are logarithms of the cells, or of their shares but for a constant.
        params = {"order": None, "with_mass": True}
        augmenter = encoder(draws, offset=0, **params).fit(positive(seed, *SHAPE))
        training = augmenter.codes_
        ours = np.log(augmenter.sample(4000, seed)).reshape(4000, -1)
    else:
        ours, training = drawn(positive(seed, *SHAPE), draws, 4000, seed, order=order)
    kernel = KernelDensity(bandwidth=0.4).fit(training)
    theirs = kernel.sample(4000, random_state=seed)
    # Five standard errors of the difference of two means; 4000 draws give the
    # standard deviation to about 2%.
    spread = theirs.std(axis=0)
    error = np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / spread
    assert error.max() < 5 * np.sqrt(2 / 4000)
    assert_allclose(ours.std(axis=0), spread, rtol=0.1)
    assert_allclose(np.corrcoef(ours.T), np.corrcoef(theirs.T), atol=0.1)


@pytest.mark.parametrize("bandwidth", [1e-4, 1e-3])
def test_bandwidth_is_the_deviation_in_every_coordinate(bandwidth):
    codes, training = drawn(positive(0, *SHAPE), KernelDraws(bandwidth), 2000)
    # So small a bandwidth leaves no doubt which row a code was drawn from.
    distance = np.linalg.norm(codes[:, None] - training, axis=2)
    source = distance.argmin(axis=1)
    noise = codes - training[source]
    assert_allclose(noise.std(axis=0), bandwidth, rtol=0.1)
    assert np.abs(noise.mean(axis=0)).max() < 5 * bandwidth / np.sqrt(2000)
    assert_array_equal(np.unique(source), np.arange(len(training)))


@pytest.mark.parametrize(
    ("name", "draws"),
    [
        ("mixup", MixupDraws()),
        ("kde", KernelDraws()),
        (KernelDensity(), DensityDraws(KernelDensity())),
    ],
    ids=str,
)
def test_a_shorthand_is_the_object_with_its_defaults(name, draws):
    short, long = (
        PNLAugmenter(draws=augment).fit(positive(0, *SHAPE))
        for augment in (name, draws)
    )
    assert type(short.draws_) is type(draws)
    assert repr(short.draws_) == repr(draws)
    assert_array_equal(short.sample(9, 0), long.sample(9, 0))
    assert long.draws_ is not draws


def position_on_segments(codes, training):
    """For each code the segment (i, j) that it lies on, its place and its distance."""
    start, end = np.nonzero(~np.eye(len(training), dtype=bool))
    way = training[end] - training[start]
    along = np.einsum("nsj,sj->ns", codes[:, None] - training[start], way)
    t = along / np.einsum("sj,sj->s", way, way)
    off = codes[:, None] - training[start] - t[..., None] * way
    distance = np.where((t > -1e-6) & (t < 1 + 1e-6), np.abs(off).max(axis=2), np.inf)
    best = distance.argmin(axis=1)
    rows = np.arange(len(codes))
    return start[best], end[best], t[rows, best], distance[rows, best]


@pytest.mark.parametrize("n_neighbors", [1, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_mixup_stays_on_segments_to_near_codes(seed, n_neighbors):
    augmenter, projector = fitted(
        positive(seed, *SHAPE), MixupDraws(noise=0), k_neighbors=n_neighbors
    )
    codes = projector.transform(augmenter.sample(300, seed))
    i, j, t, distance = position_on_segments(codes, projector.codes_)
    assert distance.max() < 1e-6
    # One end is among the nearest of the other (and not the other itself).
    near = projector.kneighbors(
        projector.codes_, n_neighbors + 1, return_distance=False
    )
    assert all(b in near[a] or a in near[b] for a, b in zip(i, j, strict=True))
    # Rounding decides which end a position is counted from.
    nearer = np.minimum(t, 1 - t)
    assert np.histogram(nearer, bins=2, range=(0, 0.5))[0].min() > 110


def test_mixup_starts_from_every_row():
    draws = MixupDraws(noise=0)
    codes = drawn(positive(0, *SHAPE), draws, 300, k_neighbors=1)
    i, j, _, _ = position_on_segments(*codes)
    assert_array_equal(np.unique(np.r_[i, j]), np.arange(12))


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_mixup_without_noise_is_between_the_codes_of_its_parents(
    seed, order, with_mass
):
    augmenter, projector = fitted(
        positive(seed, *SHAPE), MixupDraws(noise=0), order=order, with_mass=with_mass
    )
    rows, parents = augmenter.sample(200, random_state=seed, return_parents=True)
    codes = projector.codes_
    start, end = codes[parents[:, 0]], codes[parents[:, 1]]
    way = end - start
    new = projector.transform(rows)
    t = np.einsum("ij,ij->i", new - start, way) / np.einsum("ij,ij->i", way, way)
    assert t.min() > -1e-6
    assert t.max() < 1 + 1e-6
    assert np.histogram(t, bins=4, range=(0, 1))[0].min() > 25
    t = t[:, None]
    assert_allclose(new, (1 - t) * start + t * end, atol=1e-6)
    if not with_mass:
        # The mass is at the same position between those of the parents.
        mass = projector.rows_.sum(axis=(1, 2, 3))[parents]
        expected = np.sum(np.hstack([1 - t, t]) * mass, axis=1)
        assert_allclose(rows.sum(axis=(1, 2, 3)), expected, rtol=1e-6)


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
@pytest.mark.parametrize("n_neighbors", [1, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_mixup_has_a_row_and_one_of_its_nearest_others_as_parents(
    seed, n_neighbors, metric
):
    augmenter, projector = fitted(
        positive(seed, *SHAPE), "mixup", k_neighbors=n_neighbors, metric=metric
    )
    parents = augmenter.sample(600, random_state=seed, return_parents=True)[1]
    assert parents.shape == (600, 2)
    assert parents.dtype.kind == "i"
    near = projector.kneighbors(
        projector.codes_, n_neighbors + 1, return_distance=False
    )
    pairs = {(i, j) for i, others in enumerate(near) for j in others if j != i}
    # Every row is drawn, with every one of its neighbours.
    assert set(map(tuple, parents.tolist())) == pairs


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize(("position", "end"), [(0.0, 0), (1.0, 1)])
@pytest.mark.parametrize(
    "manifold", [FiberManifold(), MixtureManifold(step=1.0)], ids=str
)
@pytest.mark.parametrize("offset", [0, 0.3])
def test_the_ends_of_mixup_without_noise_are_its_parents(
    offset, manifold, position, end, with_mass
):
    X = positive(0, *SHAPE)
    augmenter = encoder(
        MixupDraws(noise=0), offset=offset, with_mass=with_mass, tol=1e-12,
        local_manifold=manifold,
    ).fit(X)  # fmt: skip
    rng = AtPosition(position)
    rows, parents = augmenter.sample(50, rng, return_parents=True)
    assert_allclose(rows, X[parents[:, end]], rtol=1e-6)
    assert len(np.unique(parents[:, end])) > 6


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("noise", [0, 0.25, 3.0])
@pytest.mark.parametrize("offset", [0, 1e-5, 0.3])
def test_mixup_of_one_row_is_that_row(offset, noise, with_mass):
    X = positive(0, *SHAPE, n=1)
    params = {"offset": offset, "with_mass": with_mass, "k_neighbors": 1}
    augmenter = encoder(MixupDraws(noise=noise), **params).fit(X)
    rows, parents = augmenter.sample(5, random_state=0, return_parents=True)
    assert_allclose(rows, np.repeat(X, 5, axis=0), rtol=1e-9)
    assert_array_equal(parents, np.zeros((5, 2)))


@pytest.mark.parametrize("noise", [0, 0.25, 3.0])
def test_mixup_of_copies_is_their_row(noise):
    # No spread, no noise: with fewer rows than coordinates and with more.
    for n in (3, 9):
        X = np.repeat(positive(0, *SHAPE, n=1), n, axis=0)
        augmenter = encoder(MixupDraws(noise), k_neighbors=3).fit(X)
        rows, parents = augmenter.sample(5, random_state=0, return_parents=True)
        assert_allclose(rows, X[[0] * 5], rtol=1e-9)
        assert (parents[:, 0] != parents[:, 1]).all()


# --- the noise of mixup ---------------------------------------------------------


def noise_of(augmenter, projector, n_samples, seed=0):
    """The noise alone, and the first parents: else codes are half-way between both."""
    rows, parents = augmenter.sample(
        n_samples, AtPosition(0.5, seed), return_parents=True
    )
    noise = projector.transform(rows) - projector.codes_[parents].mean(axis=1)
    return noise, parents[:, 0]


def covariances_of_near_differences(projector, k):
    """Of differences between any two of a row and its k nearest others, row by row."""
    found = []
    near = projector.kneighbors(projector.codes_, k + 1, return_distance=False)
    for i, others in enumerate(near):
        group = [i, *[j for j in others if j != i][:k]]
        pairs = [
            projector.codes_[b] - projector.codes_[a] for a, b in combinations(group, 2)
        ]
        found.append(np.mean([np.outer(pair, pair) for pair in pairs], axis=0))
    return np.array(found)


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("noise", [0.1, 0.25, 0.5])
@pytest.mark.parametrize(
    ("n_rows", "order", "k"),
    [(2, 1, 1), (4, 1, 3), (12, 1, 5), (4, 2, 1), (9, 2, 5), (30, 2, 5), (30, 2, 29)],
)
def test_noise_has_its_share_of_the_covariance_of_near_differences(
    n_rows, order, k, noise, with_mass
):
    # As many codes as coordinates (4 or 9, and the mass), fewer and more. For all
    # other rows as partners it is twice the covariance of the codes themselves.
    augmenter, projector = fitted(
        positive(0, *SHAPE, n=n_rows),
        MixupDraws(noise, noise_neighbors=k),
        k_neighbors=min(k, 3),
        order=order,
        with_mass=with_mass,
    )
    n = 10_000
    drawn, _ = noise_of(augmenter, projector, n)
    of_rows = noise**2 * covariances_of_near_differences(projector, k)
    expected = of_rows.mean(axis=0)
    if k == n_rows - 1:
        whole = 2 * noise**2 * np.cov(projector.codes_.T)
        assert_allclose(expected, whole, rtol=1e-9, atol=1e-12)
    # Five standard errors of a mean and, by the fourth moments of a mixture of
    # Gaussians, of a covariance.
    assert (np.abs(drawn.mean(axis=0)) < 5 * np.sqrt(np.diag(expected) / n)).all()
    variances = np.einsum("nii->ni", of_rows)
    fourth = (variances.T @ variances + 2 * (of_rows**2).sum(axis=0)) / n_rows
    error = np.sqrt((fourth - expected**2) / n)
    assert (np.abs(drawn.T @ drawn / n - expected) < 5 * error + 1e-12).all()
    # It leaves no direction that the codes do not spread in.
    spread = np.linalg.svd(projector.codes_ - projector.codes_[0])
    across = spread[2][np.count_nonzero(spread[1] > 1e-9) :]
    assert_allclose(drawn @ across.T, 0, atol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_noise_is_gaussian_and_of_the_shape_around_its_own_row(seed, k):
    draws = MixupDraws(noise_neighbors=k)
    augmenter, projector = fitted(positive(seed, *SHAPE), draws)
    drawn, first = noise_of(augmenter, projector, 4000, seed)
    own = 0.41**2 * covariances_of_near_differences(projector, k)
    values, ways = np.linalg.eigh(own)
    rank = min(k, own.shape[1])
    along = np.einsum("nij,ni->nj", ways[first], drawn)
    assert_allclose(along[:, : own.shape[1] - rank], 0, atol=1e-6)
    numbers = along[:, -rank:] / np.sqrt(values[first, -rank:])
    assert kstest((numbers**2).sum(axis=1), chi2(rank).cdf).pvalue > 1e-3
    assert kstest(numbers.ravel(), norm.cdf).pvalue > 1e-3
    # New for every row, also between one block of rows and the next.
    assert len(np.unique(drawn.round(9), axis=0)) == 4000
    for lag in (1, 256, 1000):
        correlation = np.corrcoef(drawn[lag:].T, drawn[:-lag].T)[:4, 4:]
        assert np.abs(correlation).max() < 5 / np.sqrt(4000 - lag)


@pytest.mark.parametrize("scale", [1, 0.1])
@pytest.mark.parametrize("apart", [6, 12, 24])
@pytest.mark.parametrize("way", [np.eye(8)[0], np.full(8, 8**-0.5)], ids=["one", "all"])
def test_clusters_keep_their_spread(way, apart, scale):
    # Two clusters of 25 rows in 8 dimensions, so many standard deviations apart, each
    # judged alone, in the mean of twenty sets: spread of new over training rows, and
    # the share farther out than any of these, beside that of fresh rows. Noise of the
    # whole class would carry the spread of the wide cluster into the tight one.
    judged = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        parts = [
            np.split(sd * rng.normal(size=(225, 8)) + centre, [25])
            for sd, centre in ((1, 0 * way), (scale, apart * way))
        ]
        augmenter = PNLAugmenter().fit(np.concatenate([train for train, _ in parts]))
        rows, parents = augmenter.sample(1000, random_state=seed, return_parents=True)
        for i, (train, fresh) in enumerate(parts):
            centre = train.mean(axis=0)
            new = rows[parents[:, 0] // 25 == i]
            far, farthest, of_fresh = (
                np.linalg.norm(each - centre, axis=1) for each in (new, train, fresh)
            )
            spread = np.sqrt(new.var(axis=0).sum() / train.var(axis=0).sum())
            beyond = np.mean(far > farthest.max()), np.mean(of_fresh > farthest.max())
            judged.append((i, spread, *beyond))
    for i in (0, 1):
        _, spread, beyond, of_fresh = np.mean([j for j in judged if j[0] == i], axis=0)
        assert 0.88 < spread < 1.08
        assert beyond <= 2 * of_fresh


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", [(6,), (3, 2, 2)])
def test_few_new_values_are_exactly_at_the_ends_of_the_range(shape, seed):
    # As clipped ones are, which a tree can tell from real ones.
    X = np.random.default_rng(seed).normal(size=(60, *shape))
    noisy = PNLAugmenter(draws="mixup", range_slack=0)
    rows = noisy.fit(X).sample(3000, random_state=seed)
    low, high = X.min(axis=0), X.max(axis=0)
    assert np.mean((rows == low) | (rows == high)) <= 0.01
    assert ((rows >= low) & (rows <= high)).all()
    noisy.set_params(range_slack=None)
    beyond = noisy.fit(X).sample(3000, random_state=seed)
    assert ((beyond < low) | (beyond > high)).any()


def test_noise_does_not_depend_on_the_position():
    # The same seed: what differs is the position on the segment alone.
    augmenter, projector = fitted(positive(0, *SHAPE), "mixup")
    codes = projector.codes_
    residuals = []
    for t in (0.1, 0.4, 1.0):
        rows, parents = augmenter.sample(300, AtPosition(t), return_parents=True)
        mixed = (1 - t) * codes[parents[:, 0]] + t * codes[parents[:, 1]]
        residuals.append(projector.transform(rows) - mixed)
    assert np.abs(residuals[0]).max() > 0.1
    assert_allclose(residuals[1], residuals[0], atol=1e-6)
    assert_allclose(residuals[2], residuals[0], atol=1e-6)


def test_noise_leaves_rows_and_their_partners_as_they_are():
    X = positive(0, *SHAPE)
    parents = [
        PNLAugmenter(draws=MixupDraws(noise))
        .fit(X)
        .sample(300, 0, return_parents=True)[1]
        for noise in (0, 0.25)
    ]
    assert_array_equal(*parents)


@pytest.mark.parametrize("noise", [-0.1, -1, np.nan, np.inf, "auto", None])
def test_noise_that_is_none_is_refused(noise):
    with pytest.raises(ValueError, match="'noise' parameter"):
        PNLAugmenter(draws=MixupDraws(noise)).fit(positive(0, *SHAPE))


@pytest.mark.parametrize("noise", [0, 0.0, np.float32(0.5), 2])
def test_any_number_from_0_on_is_a_noise(noise):
    rows = PNLAugmenter(draws=MixupDraws(noise)).fit(positive(0, *SHAPE)).sample(3, 0)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (PNLAugmenter, "noise"),
        (PNLAugmenter, "bandwidth"),
        (PNLAugmenter, "step"),
        (MixupDraws, "bandwidth"),
        (KernelDraws, "noise"),
        (FiberManifold, "step"),
        (MixtureManifold, "order"),
    ],
)
def test_a_parameter_that_does_not_apply_cannot_be_given(of, name):
    with pytest.raises(TypeError, match=name):
        of(**{name: 1})


@pytest.mark.parametrize(
    ("of", "name", "where"),
    [
        (PNLAugmenter, "random_state", r"sample\(random_state=...\)"),
        (PNLAugmenter, "constraints", r"sample\(constraints=...\)"),
        (PNLAugmenter, "n_samples", r"sample\(n_samples\)"),
        (PNLAugmenter, "k", "k_neighbors"),
        (PNLSampler, "n_samples", "sampling_strategy"),
    ],
)
def test_who_looks_for_a_parameter_is_told_where_it_is(of, name, where):
    with pytest.raises(TypeError, match=where):
        of(**{name: 1})


# --- foreign densities ----------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_codes_of_a_foreign_density_are_decoded(seed):
    # Whatever the order in which they come.
    codes, training = drawn(positive(seed, *SHAPE), Ring(), 12, seed)
    ranked = np.lexsort(codes.T), np.lexsort(training.T)
    assert_allclose(codes[ranked[0]], training[ranked[1]], atol=1e-6)


@pytest.mark.parametrize("density", AUGMENTS[2:], ids=["kernel", "mixture"])
@pytest.mark.parametrize("seed", SEEDS)
def test_scikit_learn_densities_keep_mean_and_spread(seed, density):
    codes, training = drawn(positive(seed, *SHAPE, n=40), density, 2000, seed)
    spread = training.std(axis=0)
    assert np.abs((codes.mean(axis=0) - training.mean(axis=0)) / spread).max() < 0.2
    assert_allclose(codes.std(axis=0), spread, rtol=0.2)


class Sorted(Ring):
    """Draws in the order of the first coordinate, as a mixture's go by component."""

    def sample(self, n_samples):
        codes = super().sample(n_samples)
        return codes[np.argsort(codes[:, 0])]


def test_rows_do_not_come_in_the_order_of_the_density():
    # A mixture's draws cut short would leave a component out.
    first = drawn(positive(0, *SHAPE), Sorted(), 60)[0][:, 0]
    assert np.count_nonzero(np.diff(first) < 0) > 15


# --- rows and parents -----------------------------------------------------------


@pytest.mark.parametrize("augment", AUGMENTS, ids=str)
@pytest.mark.parametrize("with_mass", [False, True])
def test_rows_have_the_shape_of_the_data_and_are_not_negative(augment, with_mass):
    X = np.where(positive(0, 3, 4, n=30) < 0.4, 0.0, 10.0)
    augmenter = PNLAugmenter(draws=augment, with_mass=with_mass).fit(X)
    rows = augmenter.sample(50, random_state=0)
    assert rows.shape == (50, 3, 4)
    assert rows.min() >= 0
    assert augmenter.input_shape_ == (3, 4)


def test_parents_are_the_nearest_to_the_code():
    augmenter, projector = fitted(
        positive(0, *SHAPE), KernelDraws(bandwidth=0.5), k_neighbors=4
    )
    rows, parents = augmenter.sample(30, random_state=0, return_parents=True)
    codes = projector.transform(rows)
    near = projector.kneighbors(codes, return_distance=False)
    assert_array_equal(parents, near)
    assert_array_equal(augmenter.sample(30, random_state=0), rows)


@pytest.mark.parametrize("augment", AUGMENTS[1:], ids=str)
def test_one_parent_with_a_full_step_is_copied(augment):
    X = positive(0, *SHAPE)
    manifold = MixtureManifold(step=1.0)
    augmenter = encoder(augment, local_manifold=manifold, k_neighbors=1).fit(X)
    rows, parents = augmenter.sample(30, random_state=0, return_parents=True)
    assert parents.shape == (30, 1)
    assert_allclose(rows, X[parents[:, 0]], rtol=1e-9)


@pytest.mark.parametrize("noise", [0, 0.25])
@pytest.mark.parametrize("position", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("offset", [0, 0.3])
def test_two_parents_with_a_full_step_are_mixed(offset, position, noise):
    # As distributions: the step is full, so that codes and noise do not matter.
    X = positive(0, *SHAPE)
    augmenter = encoder(
        MixupDraws(noise), local_manifold=MixtureManifold(step=1.0), offset=offset
    ).fit(X)
    rows, parents = augmenter.sample(30, AtPosition(position), return_parents=True)
    cells = X + offset
    mass = cells.sum(axis=(1, 2, 3), keepdims=True)
    share = np.array([1 - position, position]).reshape(1, 2, 1, 1, 1)
    mean = (share * (cells / mass)[parents]).sum(axis=1)
    mean_mass = (share * mass[parents]).sum(axis=1)
    assert_allclose(rows, np.maximum(mean * mean_mass - offset, 0), rtol=1e-9)


@pytest.mark.parametrize("position", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("with_mass", [False, True])
def test_mixup_keeps_what_each_manifold_takes_from_the_parents(with_mass, position):
    # For position 0.3 the weights are not those of 1 / 2 for each.
    X = positive(0, *SHAPE)
    share = np.array([1 - position, position]).reshape(1, 2, 1, 1, 1)
    of_row = X / X.sum(axis=(1, 2, 3), keepdims=True)
    for manifold in (ThetaManifold(order=1), EtaManifold(order=1)):
        augmenter, projector = fitted(
            X, MixupDraws(noise=0), order=2, local_manifold=manifold,
            with_mass=with_mass,
        )  # fmt: skip
        rows, parents = augmenter.sample(30, AtPosition(position), return_parents=True)
        poset, low = augmenter.poset_, projector.local_mask_

        def coordinates(p, manifold=manifold, poset=poset, low=low):
            theta = isinstance(manifold, ThetaManifold)
            return (theta_from_prob(p, poset) if theta else poset.eta(p))[:, low]

        kept = coordinates(of_row)[parents]
        new = rows / rows.sum(axis=(1, 2, 3), keepdims=True)
        expected = np.sum(share.reshape(1, 2, 1) * kept, axis=1)
        assert_allclose(coordinates(new), expected, atol=1e-6)


class Counted:
    """A search for near rows that notes how many codes it was asked about."""

    def __init__(self, codes):
        self.codes, self.asked = codes, []

    def __call__(self, codes, k, among=None, like=None):
        self.asked.append(len(codes))
        distance = np.linalg.norm(codes[:, None] - self.codes, axis=2)
        return np.argsort(distance, axis=1)[:, :k]


@pytest.mark.parametrize(
    "draws",
    [MixupDraws(), KernelDraws(), *map(DensityDraws, AUGMENTS[2:])],
    ids=str,
)
def test_weights_of_the_parents_sum_to_1(draws):
    training = np.random.default_rng(0).normal(size=(12, 4))
    search = Counted(training)
    draw = clone(draws).fit(training)
    rng = np.random.RandomState(0)
    draw = draw.start(TrainingCodes(training, 4, search), 200, rng)
    codes, parents, weights = draw(slice(0, 200))
    n_parents = 2 if isinstance(draws, MixupDraws) else 4
    assert codes.shape == (200, 4)
    assert weights.shape == parents.shape == (200, n_parents)
    assert weights.min() >= 0
    assert_allclose(weights.sum(axis=1), 1, rtol=1e-15)
    if isinstance(draws, MixupDraws):
        # Uniform positions: in every tenth about 20 of them, within 5 deviations.
        tenths = np.histogram(weights[:, 1], bins=10, range=(0, 1))[0]
        assert np.abs(tenths - 20).max() < 5 * np.sqrt(20)
        # Near rows are those of training rows, and looked up once: not those of codes.
        assert search.asked == [12]
    else:
        assert_array_equal(weights, 1 / 4)
        assert search.asked == [200]


class Moved(Ring):
    """Every code once, a little way off."""

    def sample(self, n_samples):
        return super().sample(n_samples) + np.linspace(-0.2, 0.3, self.codes_.shape[1])


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("metric", ["kl", "euclidean"])
@pytest.mark.parametrize(
    "manifold",
    [
        "fiber",
        FiberManifold(order=1),
        ThetaManifold(order=1),
        EtaManifold(order=[(0, 1)]),
        MixtureManifold(step=0.5),
    ],
    ids=str,
)
def test_rows_are_those_that_a_projector_decodes(manifold, metric, with_mass):
    X = positive(0, *SHAPE)
    augmenter, projector = fitted(
        X, Moved(), order=2, local_manifold=manifold, k_neighbors=3, metric=metric,
        offset=0.2, with_mass=with_mass,
    )  # fmt: skip
    codes = projector.codes_ + np.linspace(-0.2, 0.3, projector.n_params_)
    expected = np.maximum(projector.inverse_transform(codes), 0).reshape(12, -1)
    rows, parents = augmenter.sample(12, random_state=0, return_parents=True)
    rows = rows.reshape(12, -1)
    ours, theirs = np.lexsort(rows.T), np.lexsort(expected.T)
    assert_allclose(rows[ours], expected[theirs], rtol=1e-9, atol=1e-12)
    near = projector.kneighbors(codes, return_distance=False)
    assert_array_equal(parents[ours], near[theirs])


def test_float32_rows_stay_float32():
    X = positive(0, *SHAPE).astype(np.float32)
    for augment in AUGMENTS:
        rows = PNLAugmenter(draws=augment).fit(X).sample(4, random_state=0)
        assert rows.dtype == np.float32


@pytest.mark.parametrize("noise", [0, 0.25])
def test_mixup_in_float32_is_close_to_float64(noise):
    X = positive(0, *SHAPE).astype(np.float32)
    single, double = (
        encoder(MixupDraws(noise)).fit(X.astype(dtype)).sample(300, random_state=0)
        for dtype in (np.float32, np.float64)
    )
    assert single.dtype == np.float32
    assert_allclose(single, double, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("augment", "n_parents"), [("mixup", 2), ("kde", 3)])
def test_more_neighbors_than_rows_are_clipped_with_one_warning(augment, n_parents):
    with pytest.warns(UserWarning, match=r"5 neighbours .* 3 rows") as caught:
        augmenter = PNLAugmenter(draws=augment, k_neighbors=5).fit(
            positive(0, *SHAPE, n=3)
        )
    assert len(caught) == 1
    rows, parents = augmenter.sample(40, random_state=0, return_parents=True)
    assert rows.shape == (40, *SHAPE)
    assert parents.shape == (40, n_parents)
    assert all(len(set(row)) == n_parents for row in parents.tolist())
    assert_array_equal(np.unique(parents), [0, 1, 2])


# --- seeds ----------------------------------------------------------------------


@pytest.mark.parametrize("augment", AUGMENTS, ids=str)
def test_same_seed_same_bytes_and_other_seeds_others(augment):
    augmenter = PNLAugmenter(draws=augment).fit(positive(0, *SHAPE))
    samples = [augmenter.sample(20, random_state=seed).tobytes() for seed in SEEDS]
    again = [augmenter.sample(20, random_state=seed).tobytes() for seed in SEEDS]
    assert samples == again
    assert len(set(samples)) == len(SEEDS)


@pytest.mark.parametrize("augment", AUGMENTS, ids=str)
def test_a_random_state_moves_on(augment):
    augmenter = PNLAugmenter(draws=augment).fit(positive(0, *SHAPE))
    rng = np.random.RandomState(0)
    first, second = augmenter.sample(20, rng), augmenter.sample(20, rng)
    assert (first != second).any()
    assert_array_equal(first, augmenter.sample(20, np.random.RandomState(0)))


@pytest.mark.parametrize("augment", AUGMENTS, ids=str)
def test_no_seed_draws_anew(augment):
    augmenter = PNLAugmenter(draws=augment).fit(positive(0, *SHAPE))
    assert (augmenter.sample(20) != augmenter.sample(20)).any()


@pytest.mark.parametrize("augment", AUGMENTS, ids=str)
def test_a_seed_leaves_the_global_state_alone(augment):
    # A mixture without a seed of its own starts its fit from the global state.
    augmenter = PNLAugmenter(draws=augment).fit(positive(0, *SHAPE))
    before = global_state()
    augmenter.sample(20, random_state=0)
    assert global_state() == before


@pytest.mark.parametrize("augment", AUGMENTS, ids=str)
def test_sampling_leaves_the_augmenter_alone(augment):
    augmenter = PNLAugmenter(draws=augment).fit(positive(0, *SHAPE))
    before = {name: repr(value) for name, value in vars(augmenter).items()}
    augmenter.sample(20, random_state=0)
    assert {name: repr(value) for name, value in vars(augmenter).items()} == before


@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_jobs_and_working_memory_change_no_byte(augment):
    # More rows than one block holds: 600 of 512 cells.
    X = positive(0, 8, 8, 8, n=600)

    def sample(n_jobs=None):
        augmenter = PNLAugmenter(draws=augment, n_jobs=n_jobs).fit(X)
        return augmenter.sample(600, random_state=0).tobytes()

    usual = sample()
    assert sample(n_jobs=2) == usual
    with config_context(working_memory=1):
        assert sample() == usual


# --- densities of others --------------------------------------------------------


@pytest.mark.parametrize("density", [*AUGMENTS[2:], Ring()], ids=str)
def test_the_density_is_cloned_not_fitted_in_place(density):
    density = clone(density)
    parameters = density.get_params()
    augmenter = PNLAugmenter(draws=density).fit(positive(0, *SHAPE))
    augmenter.sample(3, random_state=0)
    assert augmenter.draws is density
    assert augmenter.draws_.estimator_ is not density
    assert not [name for name in vars(density) if name.endswith("_")]
    assert density.get_params() == parameters
    assert augmenter.draws_.estimator_.get_params() == parameters


@pytest.mark.parametrize("density", [Ring(n_columns=2), TooFew(), NotNumbers()])
def test_codes_that_do_not_fit_are_refused(density):
    augmenter = encoder(density).fit(positive(0, *SHAPE))
    with pytest.raises(ValueError, match=r"sample must return 7 .* of length 4; got"):
        augmenter.sample(7, random_state=0)


def test_a_new_fit_forgets_the_density_of_the_last():
    augmenter = PNLAugmenter(draws=Ring()).fit(positive(0, *SHAPE))
    augmenter.set_params(draws="kde").fit(positive(0, *SHAPE))
    assert isinstance(augmenter.draws_, KernelDraws)


@pytest.mark.parametrize("augment", ["smote", object(), None, 0.5])
def test_things_that_cannot_draw_are_refused(augment):
    with pytest.raises(ValueError, match="'draws' parameter"):
        PNLAugmenter(draws=augment).fit(positive(0, *SHAPE))


# --- bad calls ------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sample"])
def test_sampling_before_fit_is_refused(method):
    with pytest.raises(NotFittedError):
        getattr(PNLAugmenter(), method)(3)


@pytest.mark.parametrize("method", ["sample"])
@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "3", None])
def test_numbers_of_rows_that_are_none_are_refused(n_samples, method):
    augmenter = PNLAugmenter().fit(positive(0, *SHAPE))
    with pytest.raises(ValueError, match="n_samples"):
        getattr(augmenter, method)(n_samples)


def test_a_numpy_integer_is_a_number_of_rows():
    augmenter = PNLAugmenter().fit(positive(0, *SHAPE))
    assert len(augmenter.sample(np.int64(3), random_state=0)) == 3


@pytest.mark.parametrize(("noise", "rtol"), [(0, 3e-3), (0.25, 3e-2)])
def test_targets_can_be_drawn_with_the_features(noise, rtol):
    # For regression: the target is one more feature, and comes back as a column.
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, size=(60, 3))
    table = np.column_stack([X, X.sum(axis=1)])
    augmenter = encoder(MixupDraws(noise), order=None, k_neighbors=2).fit(table)
    rows = augmenter.sample(100, random_state=0)
    assert_allclose(rows[:, 3], rows[:, :3].sum(axis=1), rtol=rtol)


def test_fitting_does_not_warn_or_change_the_data():
    X = positive(0, *SHAPE)
    before = X.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PNLAugmenter().fit(X).sample(5, random_state=0)
    assert_array_equal(X, before)


@pytest.mark.parametrize("seed", range(10, 31))
def test_a_mixture_of_single_precision_rows_does_not_warn(seed):
    density = GaussianMixture(2, reg_covar=1e-3, random_state=seed)
    X = positive(0, *SHAPE).astype(np.float32)
    assert PNLAugmenter(draws=density).fit(X).sample(4, 0).dtype == np.float32


def test_new_rows_of_two_lie_on_the_line_through_both():
    X = np.random.default_rng(0).normal(size=(2, 3))
    rows, way = PNLAugmenter().fit(X).sample(50, random_state=0), X[1] - X[0]
    there = (rows - X[0]) @ way / (way @ way)
    np.testing.assert_allclose(rows, X[0] + np.outer(there, way), atol=1e-12)
    assert len(np.unique(there)) > 2
