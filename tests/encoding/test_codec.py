"""Encoding and decoding of rows, with missing cells and codes out of range."""

import pickle
import re

import joblib
import numpy as np
import pytest
from _oracles import mixed_projection_slow, tensor_leq, theta_slow
from _projectors import backward
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from sklearn_pnl import ManyBodyImputer, ManyBodyProjector
from sklearn_pnl.encoding.codec import Codec
from sklearn_pnl.encoding.manifolds import FiberManifold
from sklearn_pnl.geometry import TensorPoset, eta_from_prob, order_mask, theta_from_prob
from sklearn_pnl.geometry.many_body.bases import ScaledBasis

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


LARGE_SHAPE = (4, 5, 6)
ORDERS = [1, 2, [(0, 1), (2,)]]


def projector_of(order=1, **params):
    params = {"offset": 0.1, "tol": 1e-10, "with_mass": True} | params
    return ManyBodyProjector(order, handle_missing="ignore", **params)


def with_gaps(seed, shape=LARGE_SHAPE, n=6, share=0.1):
    """Return rows without and with missing cells; the first two rows have none."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, *shape))
    missing = rng.random(X.shape) < share
    missing[:2] = False
    return X, np.where(missing, np.nan, X)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("with_mass", [False, True])
def test_codes_of_complete_rows_do_not_change(order, with_mass):
    X, gaps = with_gaps(0)
    plain = ManyBodyProjector(order, offset=0.1, tol=1e-10, with_mass=with_mass)
    projector = projector_of(order, with_mass=with_mass).fit(gaps)
    assert_allclose(projector.transform(gaps)[:2], plain.fit_transform(X)[:2],
                    atol=1e-9)  # fmt: skip
    assert_array_equal(projector.transform(X), plain.transform(X))


@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_decoded_rows_agree_with_the_imputer(seed, order, offset):
    _, gaps = with_gaps(seed)
    projector = projector_of(order, offset=offset)
    points = projector.inverse_transform(projector.fit_transform(gaps)) - offset
    imputer = ManyBodyImputer(order, alpha=0, offset=offset, tol=1e-10)
    missing = np.isnan(gaps)
    # The imputer clips values at 0.
    filled = imputer.fit_transform(gaps)[missing]
    assert_allclose(np.maximum(points[missing], 0), filled, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_projection_keeps_observed_sums_and_has_no_theta_beyond_the_order(seed, order):
    """Test the two conditions for the maximum of the likelihood on the output."""
    _, gaps = with_gaps(seed)
    projector, poset = projector_of(order), TensorPoset(LARGE_SHAPE)
    points = projector.inverse_transform(projector.fit_transform(gaps))
    seen = ~np.isnan(gaps)
    misses = np.where(seen, points - (np.nan_to_num(gaps) + 0.1), 0.0)
    eta = eta_from_prob(misses, poset)
    kept = projector.base_mask_ | (np.arange(120).reshape(LARGE_SHAPE) == 0)
    assert_allclose(eta[:, kept], 0, atol=1e-7)
    assert_allclose(theta_from_prob(points, poset)[:, ~kept], 0, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_missing_cells_do_not_change_codes_of_rows_in_the_model(seed):
    """Test that missing cells do not matter if observed cells determine the cells."""
    rng = np.random.default_rng(seed)
    functions = ScaledBasis((5, 4, 6), 2).functions
    v = 0.2 * rng.normal(size=(3, len(functions)))
    X = np.exp(v @ functions).reshape(3, 5, 4, 6)
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    projector = projector_of(2, offset=0, tol=1e-12).fit(X)
    assert_allclose(projector.transform(gaps), projector.transform(X), atol=1e-8)


def test_undetermined_codes_are_flat_and_named_in_a_warning():
    X, gaps = with_gaps(3)
    gaps[[2, 4]] = X[[2, 4]]
    gaps[2, :, 0] = gaps[4, 1] = np.nan
    projector = projector_of(2)
    with pytest.warns(UserWarning, match=r"\[2, 4\]"):
        codes = projector.fit_transform(gaps)
    log_q = np.log(projector.inverse_transform(codes)).reshape(6, -1)
    functions = ScaledBasis(LARGE_SHAPE, 2).functions
    for row in (2, 4):
        seen = ~np.isnan(gaps[row]).reshape(-1)
        on_seen = functions[:, seen] - functions[:, seen].mean(axis=1, keepdims=True)
        sizes, directions = np.linalg.eigh(on_seen @ on_seen.T / 120)
        open_ones = directions[:, sizes < 1e-10].T @ functions
        assert len(open_ones)
        assert_allclose(open_ones @ log_q[row], 0, atol=1e-8)
    # The warning names only the first rows.
    with pytest.warns(UserWarning):
        projector.transform(gaps[[2] * 12])


def test_grid_search_pickle_and_float32_support_missing_cells():
    rng = np.random.default_rng(0)
    X, y = rng.gamma(2.0, size=(60, 3, 4)), np.arange(60) % 2
    X[y == 1, 0] *= 2
    X[rng.random(X.shape) < 0.1] = np.nan
    model = make_pipeline(projector_of(tol=1e-6), LogisticRegression())
    search = GridSearchCV(model, {"manybodyprojector__order": [1, [(0,), (1,)]]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.7
    projector = projector_of(tol=1e-6).fit(X)
    codes = projector.transform(X)
    again = pickle.loads(pickle.dumps(projector))
    assert_array_equal(again.transform(X), codes)
    assert clone(projector).handle_missing == "ignore"
    single = projector_of(tol=1e-6).fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(single.transform(X), codes, rtol=1e-4, atol=1e-4)
    assert get_tags(projector).input_tags.allow_nan
    assert not get_tags(ManyBodyProjector()).input_tags.allow_nan
    assert not get_tags(backward()).input_tags.allow_nan


def test_fitted_attributes_are_computed_over_the_observed_cells():
    _, gaps = with_gaps(2)
    projector = projector_of(2).fit(gaps)
    points = projector.inverse_transform(projector.transform(gaps))
    total = 0.0
    for row, point in zip(gaps + 0.1, points, strict=True):
        seen = ~np.isnan(row)
        p, q = row[seen] / row[seen].sum(), point[seen] / point[seen].sum()
        total += np.sum(p * np.log(p / q))
    assert projector.reconstruction_err_ == pytest.approx(total / len(gaps))
    assert projector.n_iter_ > 1
    assert_array_equal(np.isnan(projector.to_measures(gaps)), np.isnan(gaps))


@pytest.mark.parametrize(
    ("cells", "offset", "message"),
    [
        ([np.nan] * 4, 0.1, "Row 1"),
        ([np.nan, -1, 1, 1], 0.1, "row 1, cell (0, 1)"),
        ([np.nan, 0, 1, 1], 0.0, "offset=0"),
        ([np.nan, np.inf, 1, 1], 0.1, "infinity"),
    ],
)
def test_rows_without_a_code_are_rejected(cells, offset, message):
    X = np.ones((2, 2, 2))
    X[1] = np.reshape(cells, (2, 2))
    with pytest.raises(ValueError, match=re.escape(message)):
        projector_of(offset=offset).fit(X)


def test_missing_cells_are_rejected_by_default():
    _, gaps = with_gaps(0)
    with pytest.raises(ValueError, match="handle_missing"):
        ManyBodyProjector().fit(gaps)
    with pytest.raises(ValueError):
        backward().fit(np.nan_to_num(gaps)).transform(gaps)


def test_the_limit_of_the_size_names_a_remedy_of_the_class():
    X = np.random.default_rng(0).gamma(2.0, size=(1, 40, 40, 40))
    X[:, 0, 0, 0] = np.nan
    projector = projector_of(2)
    with pytest.raises(ValueError, match="4680 free elements") as error:
        projector.fit(X)
    advice = str(error.value).rpartition(";")[2].split()
    assert "ridge" not in advice
    assert "order," in advice and "order" in projector.get_params()
    assert "alpha." in advice and "alpha" in ManyBodyImputer().get_params()
