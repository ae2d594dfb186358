"""The codec: what a code is, which rows are near to it, and what is too far out."""

import re

import joblib
import numpy as np
import pytest
from _oracles import mixed_projection_slow, random_poset, tensor_leq, theta_slow
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import BackwardProjector, FiberManifold, ManyBodyProjector
from sklearn_pnl._drawing.coding import TrainingRows
from sklearn_pnl.geometry import TensorPoset, order_mask
from sklearn_pnl.geometry.codec import Codec

SEEDS = [0, 1, 2]
SHAPE = (3, 2, 3)


def codec_of(poset, order, with_mass, **params):
    params = {"offset": 0.1, "tol": 1e-13, "max_iter": 200} | params
    base = None if order is None else order_mask(poset, order)
    return Codec(poset, base, with_mass=with_mass, **params)


# --- what a code is -------------------------------------------------------------


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [None, 1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_codes_are_the_free_coordinates_of_the_projection(seed, order, with_mass):
    rng = np.random.default_rng(seed)
    rows = rng.gamma(1.0, size=(4, 18)) * (rng.random((4, 18)) > 0.2)
    poset, leq = TensorPoset(SHAPE), tensor_leq(SHAPE)
    codec = codec_of(poset, order, with_mass, tol=1e-11)
    encoded = codec.encode(rows)
    codes = codec.codes(encoded.coordinates)
    measures = rows + 0.1
    mass = measures.sum(axis=1)
    assert_allclose(encoded.mass, mass)
    if order is None:
        # The row itself, in logarithms: nothing is reduced.
        wanted = measures if with_mass else measures / mass[:, None]
        assert_allclose(codes, np.log(wanted), rtol=1e-12)
    else:
        kept = np.flatnonzero(order_mask(poset, order))
        on, uniform = np.isin(np.arange(18), kept), np.full(18, 1 / 18)
        points = np.stack(
            [
                mixed_projection_slow(p, uniform, on, leq)
                for p in measures / mass[:, None]
            ]
        )
        wanted = points * mass[:, None] if with_mass else points
        theta = theta_slow(wanted, leq)
        free = np.r_[0, kept] if with_mass else kept
        assert_allclose(codes, theta[:, free], atol=1e-6)
    assert codec.n_params == codes.shape[1]
    assert_allclose(codec.coordinates(codes), encoded.coordinates, atol=1e-9)
    assert_allclose(codec.measures(codes), wanted, rtol=1e-6)


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_whole_rows_come_back_from_their_codes_alone(seed, with_mass):
    rows = np.random.default_rng(seed).gamma(0.3, size=(5, 18))
    codec = codec_of(
        TensorPoset((18,)), None, with_mass, local_manifold=FiberManifold()
    )
    encoded = codec.encode(rows)
    codes, near = codec.codes(encoded.coordinates), np.arange(5)[:, None]
    again, residual = codec.decode(
        codes, near, np.ones((5, 1)), rows=rows, masses=encoded.mass
    )
    assert not codec.needs_rows
    assert_allclose(again, rows, rtol=1e-9, atol=1e-12)
    assert_array_equal(residual, 0)


# --- near codes -----------------------------------------------------------------

ROWS = {
    "wide": lambda rng, n: np.exp(rng.standard_normal((n, 18))),
    # They differ by 3e-7 relative, so that their KL is 1e-13.
    "close": lambda rng, n: np.exp(3e-7 * rng.standard_normal((n, 18))),
    # Cells over many orders of magnitude.
    "heavy": lambda rng, n: rng.gamma(0.3, size=(n, 18)),
    # Two groups, each of rows close to one another. (Squares of distances are rounded
    # in units of those between the groups: 1e-8 of them is as close as this can be.)
    "groups": lambda rng, n: (
        np.exp(1e-4 * rng.standard_normal((n, 18)))
        + 5 * np.outer(np.arange(n) % 2, np.arange(18) % 3)
    ),
}


def kl_in_long_double(codec, leq, codes, training):
    """``KL(w, w_i)`` of codes to codes, by definition on the cells."""
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
    # Half of the queries are rows themselves, half lie between and about them.
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
@pytest.mark.parametrize("order", [None, 1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_near_codes_are_those_of_kl_in_long_double(seed, order, rows, with_mass):
    rng = np.random.default_rng(seed)
    codec = codec_of(TensorPoset(SHAPE), order, with_mass)
    rtol = 1e-9 if rows in ("wide", "heavy") else 1e-6
    assert_nearest_in_kl(codec, tensor_leq(SHAPE), ROWS[rows](rng, 700), rng, rtol)


@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("seed", SEEDS)
def test_near_codes_on_a_general_poset(seed, rows, with_mass):
    rng = np.random.default_rng(seed)
    poset, leq = random_poset(rng, 18, density=0.1)
    codec = codec_of(poset, 1, with_mass)
    rtol = 1e-9 if rows in ("wide", "heavy") else 1e-6
    assert_nearest_in_kl(codec, leq, ROWS[rows](rng, 500), rng, rtol)


# --- codes that are too far out -------------------------------------------------

FAR = [50.0, 100.0, 800.0, 1e5, 1e30, 1e300, 1.7e308]


@pytest.mark.parametrize("make", [ManyBodyProjector, BackwardProjector])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_finite_but_huge_codes_are_points_or_named(order, with_mass, dtype, make):
    X = np.random.default_rng(0).uniform(1, 2, size=(12, 3, 4)).astype(dtype)
    projector = make(order, with_mass=with_mass).fit(X)
    refused = 0
    for value in [v for v in FAR if v < float(np.finfo(dtype).max)]:
        for column, sign in [(0, 1), (0, -1), (-1, 1), (-1, -1)]:
            codes = projector.transform(X)
            codes[4, column] = sign * value
            try:
                found = projector.inverse_transform(codes)
            except ValueError as error:
                assert re.search("Code 4 |New rows overflow float32", str(error))
                assert "raw codes closer" in str(error) or "float32" in str(error)
                refused += 1
            else:
                assert np.isfinite(found).all()
    assert refused or not with_mass


@pytest.mark.starting
@pytest.mark.parametrize(
    "make, backend",
    [
        (ManyBodyProjector, "threading"),
        (BackwardProjector, "threading"),
        # One is enough where an error is on its way: joblib ends its workers after it.
        (BackwardProjector, "loky"),
    ],
)
def test_a_code_of_a_later_block_is_named_by_its_own_number(make, backend):
    X = np.random.default_rng(0).uniform(1, 2, size=(12, 8, 8, 8))
    projector = make(with_mass=True).fit(X)
    codes = np.tile(projector.transform(X), (100, 1))
    codes[1111, 0] = 800
    for n_jobs in (1, 2):
        with (
            joblib.parallel_config(backend, n_jobs=n_jobs),
            pytest.raises(ValueError, match="Code 1111 lies so far out"),
        ):
            projector.inverse_transform(codes)


@pytest.mark.parametrize("make", [ManyBodyProjector, BackwardProjector])
@pytest.mark.parametrize("value", [800.0, 1e308])
def test_a_code_beyond_the_range_of_numbers_is_named(value, make):
    X = np.random.default_rng(0).uniform(1, 2, size=(12, 3, 4))
    projector = make(with_mass=True).fit(X)
    codes = projector.transform(X)
    codes[7, 0] = value
    message = rf"Code 7 lies so far out .* {value:.3g}".replace("+", r"\+")
    with pytest.raises(ValueError, match=message):
        projector.inverse_transform(codes)
