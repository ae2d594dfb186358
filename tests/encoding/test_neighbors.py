"""Neighbours of codes, compared with KL by definition and with scikit-learn."""

import tracemalloc

import numpy as np
import pytest
from _oracles import random_poset, tensor_leq
from _projectors import backward
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl.encoding.codec import Codec
from sklearn_pnl.encoding.neighbors import EuclideanSearch, TrainingRows
from sklearn_pnl.geometry import TensorPoset, kl_divergence, order_mask

SEEDS = [0, 1, 2]
SHAPE = (3, 2, 3)
TENSOR = (3, 2, 4)


def positive(seed, *shape, n=12):
    """Return positive rows with different masses."""
    rng = np.random.default_rng(seed)
    mass = rng.uniform(1, 30, (n, *(1,) * len(shape)))
    return (rng.gamma(1.0, size=(n, *shape)) + 0.05) * mass


def near_codes(projector, seed, scale):
    """Return codes of the training rows plus Gaussian noise."""
    rng = np.random.default_rng(seed + 1000)
    return projector.codes_ + scale * rng.normal(size=projector.codes_.shape)


def brute_force(projector, codes):
    """Compute KL from each code to each training code by definition on the cells."""
    shape = (-1, *projector.poset_.shape)
    base = projector.projector_
    training = base.inverse_transform(projector.codes_).reshape(shape)
    w = base.inverse_transform(codes).reshape(shape)
    cells = tuple(range(1, training.ndim))
    return np.stack([kl_divergence(row, training, axis=cells) for row in w])


@pytest.mark.parametrize("with_mass", [False, True])
def test_neighbors_of_more_rows_than_a_chunk(with_mass):
    # The search compares fewer training rows and codes at once.
    X = positive(0, 2, 3, n=9000)
    projector = backward(k_neighbors=4, with_mass=with_mass).fit(X)
    codes = near_codes(projector, 0, 0.1)[::25]
    kl = brute_force(projector, codes)
    distances, indices = projector.kneighbors(codes)
    ranked = np.argsort(kl, axis=1)[:, :4]
    assert (indices >= 8192).any(axis=0).all()
    assert_array_equal(indices, ranked)
    by_definition = np.take_along_axis(kl, ranked, axis=1)
    assert_allclose(distances, by_definition, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("n_copies", [8, 20, 300])
@pytest.mark.parametrize("n_neighbors", [1, 3, 5])
def test_duplicates_of_a_row_are_its_neighbors(n_neighbors, n_copies):
    # Rounding decides which copies are found.
    X = np.repeat(positive(0, 2, 3, n=2), n_copies, axis=0)
    projector = backward(k_neighbors=n_neighbors).fit(X)
    distances, found = projector.kneighbors(projector.codes_[[0, -1]])
    assert_allclose(distances, 0, atol=1e-12)
    assert_array_equal(found // n_copies, [[0] * n_neighbors, [1] * n_neighbors])
    assert all(len(set(row)) == n_neighbors for row in found)


@pytest.mark.parametrize("seed", SEEDS)
def test_euclidean_neighbors_agree_with_scikit_learn(seed):
    X = positive(seed, *TENSOR, n=40)
    projector = backward(metric="euclidean", k_neighbors=6).fit(X)
    codes = near_codes(projector, seed, 0.5)
    search = NearestNeighbors(n_neighbors=6).fit(projector.codes_)
    for ours, theirs in zip(
        projector.kneighbors(codes), search.kneighbors(codes), strict=True
    ):
        assert_allclose(ours, theirs)


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
def test_distances_to_neighbors_are_computed_in_blocks(metric):
    X = positive(0, 12, 16, n=3000)
    projector = backward(metric=metric, offset=0.1).fit(X)
    codes = projector.codes_ + 0.01
    tracemalloc.start()
    distances, indices = projector.kneighbors(codes, 8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes
    # Few codes are one block, and must give the same result.
    few = projector.kneighbors(codes[-7:], 8)
    assert_array_equal(indices[-7:], few[1])
    assert_allclose(distances[-7:], few[0], rtol=1e-9)


def codec_of(poset, order, with_mass, local_manifold=None, **params):
    params = {"offset": 0.1, "tol": 1e-13, "max_iter": 200} | params
    numerics = ManyBodyProjector(with_mass=with_mass, **params)
    base = None if order is None else order_mask(poset, order)
    return Codec(poset, base, numerics, local_manifold)


# --- Euclidean neighbours -------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, np.float32, csr_array])
@pytest.mark.parametrize("n, d", [(8, 5), (300, 5), (300, 40), (3000, 40)])
@pytest.mark.parametrize("seed", SEEDS)
def test_nearest_points_agree_with_all_distances(seed, n, d, make):
    rng = np.random.default_rng(seed)
    # Multiples of 1/8 are exact, also in single precision, and have many ties.
    points = rng.integers(-8, 8, (n, d)) / 8 * (rng.uniform(size=(n, d)) < 0.4)
    queries = points[: n // 3] + rng.integers(0, 2, (n // 3, d)) / 8
    squares = ((queries[:, None] - points) ** 2).sum(axis=2)
    found = EuclideanSearch(make(points)).nearest(make(queries), 5)
    ours = np.take_along_axis(squares, found, axis=1)
    assert_array_equal(ours, np.sort(squares, axis=1)[:, :5])
    # Neighbours at the same distance are sorted by index.
    assert (np.diff(found, axis=1)[np.diff(ours, axis=1) == 0] > 0).all()
    # Blocks of queries do not change the choice among equally near points.
    with config_context(working_memory=1):
        again = EuclideanSearch(make(points)).nearest(make(queries[:7]), 5)
    assert_array_equal(again, found[:7])


@pytest.mark.parametrize("n, d", [(60, 3), (60, 30)])
def test_categories_add_to_squared_distances(n, d):
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(n, d)), rng.integers(0, 3, (n, 2))
    differs = (labels[:, None] != labels).sum(axis=2)
    squares = ((points[:, None] - points) ** 2).sum(axis=2) + 0.7**2 * differs
    search = EuclideanSearch(points, labels, deviation=0.7)
    found = search.nearest(points, 6, like=np.arange(n))
    assert_array_equal(found, np.argsort(squares, axis=1)[:, :6])
    some = np.arange(0, n, 2)
    found = search.nearest(points, 6, among=some, like=np.arange(n))
    assert_array_equal(found, some[np.argsort(squares[:, some], axis=1)[:, :6]])


# --- near codes -----------------------------------------------------------------

ROWS = {
    "wide": lambda rng, n: np.exp(rng.standard_normal((n, 18))),
    # Rows with relative differences of 3e-7 have a KL divergence of 1e-13.
    "close": lambda rng, n: np.exp(3e-7 * rng.standard_normal((n, 18))),
    # Cells over many orders of magnitude.
    "heavy": lambda rng, n: rng.gamma(0.3, size=(n, 18)),
    # Two groups of close rows. Squared distances are rounded relative to the squared
    # distance between the groups, so that differences below 1e-8 are lost.
    "groups": lambda rng, n: (
        np.exp(1e-4 * rng.standard_normal((n, 18)))
        + 5 * np.outer(np.arange(n) % 2, np.arange(18) % 3)
    ),
}


def kl_in_long_double(codec, leq, codes, training):
    """Compute ``KL(w, w_i)`` in long double, by definition on the cells."""
    functions = leq[codec.base.elements] if codec.base.has_bottom else np.eye(18)
    functions = functions[-codec.n_params :].astype(np.longdouble)

    def energies(codes):
        energy = codes.astype(np.longdouble) @ functions
        if codec.with_mass:
            return energy
        largest = energy.max(axis=1, keepdims=True)
        return energy - largest - np.log(np.exp(energy - largest).sum(1, keepdims=True))

    own, theirs = energies(codes), energies(training)
    kl = np.empty((len(codes), len(training)), np.longdouble)
    for row, energy in enumerate(own):
        u = theirs - energy
        kl[row] = (np.exp(energy) * (np.expm1(u) - u)).sum(axis=1)
    return kl


def assert_nearest_in_kl(codec, leq, rows, rng, rtol):
    training = TrainingRows(codec, rows, codec.encode(rows), "kl")
    codes = training.codes
    # Half of the queries are training codes; the other half lies between them.
    other = codes[rng.permutation(len(codes))[:40]]
    queries = np.concatenate([codes[:40], 0.7 * codes[40:80] + 0.3 * other])
    found = training.nearest(queries, 6)
    kl = kl_in_long_double(codec, leq, queries, codes)
    wanted = np.argsort(kl, axis=1, kind="stable")[:, :6]
    assert_array_equal(found, wanted)
    assert_array_equal(found[:40, 0], np.arange(40))
    by_definition = np.take_along_axis(kl, wanted, axis=1)
    distances = training.distances(queries, found)
    assert_allclose(distances, by_definition.astype(float), rtol=rtol, atol=1e-25)


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("order", [None, 1, 2, "poset"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nearest_codes_agree_with_kl_in_long_double(seed, order, rows, with_mass):
    rng = np.random.default_rng(seed)
    poset, leq = TensorPoset(SHAPE), tensor_leq(SHAPE)
    if order == "poset":
        poset, leq, order = *random_poset(rng, 18, density=0.1), 1
    codec = codec_of(poset, order, with_mass)
    rtol = 1e-9 if rows in ("wide", "heavy") else 1e-6
    assert_nearest_in_kl(codec, leq, ROWS[rows](rng, 600), rng, rtol)
