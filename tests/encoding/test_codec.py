"""Encoding and decoding of rows, and codes that cannot be decoded."""

import joblib
import numpy as np
import pytest
from _oracles import mixed_projection_slow, tensor_leq, theta_slow
from _projectors import backward
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl.encoding.codec import Codec
from sklearn_pnl.encoding.manifolds import FiberManifold
from sklearn_pnl.geometry import TensorPoset, order_mask

SEEDS = [0, 1, 2]


SHAPE = (3, 2, 3)


def codec_of(poset, order, with_mass, local_manifold=None, **params):
    params = {"offset": 0.1, "tol": 1e-13, "max_iter": 200} | params
    numerics = ManyBodyProjector(with_mass=with_mass, **params)
    base = None if order is None else order_mask(poset, order)
    return Codec(poset, base, numerics, local_manifold)


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
        # The code contains the logarithms of the complete row.
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
def test_codes_of_complete_rows_are_decoded_without_training_rows(seed, with_mass):
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


# --- codes that cannot be decoded -------------------------------------------------

FAR = [50.0, 100.0, 800.0, 1e5, 1e30, 1e300, 1.7e308]


@pytest.mark.parametrize("make", [ManyBodyProjector, backward])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_huge_codes_are_decoded_or_named_in_an_error(order, with_mass, dtype, make):
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
                assert "Code 4 " in str(error)
                assert "Use codes closer" in str(error)
                refused += 1
            else:
                assert np.isfinite(found).all()
    assert refused or not with_mass


@pytest.mark.starting
@pytest.mark.parametrize(
    "make, backend",
    [
        (ManyBodyProjector, "threading"),
        (backward, "threading"),
        # joblib restarts its workers after an error, so one case is enough.
        (backward, "loky"),
    ],
)
def test_errors_name_the_index_of_a_code_in_a_later_block(make, backend):
    X = np.random.default_rng(0).uniform(1, 2, size=(12, 8, 8, 8))
    projector = make(with_mass=True).fit(X)
    codes = np.tile(projector.transform(X), (100, 1))
    codes[1111, 0] = 800
    for n_jobs in (1, 2):
        with (
            joblib.parallel_config(backend, n_jobs=n_jobs),
            pytest.raises(ValueError, match="Code 1111 "),
        ):
            projector.inverse_transform(codes)
