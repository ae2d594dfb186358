"""Scaling of features to [0, 1] in any unit, and custom embeddings."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

from sklearn_pnl import Codes, Lines, PNLAugmenter, PNLSampler
from sklearn_pnl.encoding.embedding import RangeEmbedding
from sklearn_pnl.methods.draws import MixupDraws

SEEDS = [0, 1, 2]


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def uniform(seed, *shape):
    return np.random.default_rng(seed).uniform(-1, 1, size=shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_range_embedding_agrees_with_min_max_scaler(seed):
    X = normal(seed, 30, 5) * [1, 10, 1e3, 1e-3, 1] + [0, 7, 0, 0, -1e4]
    ours, theirs = RangeEmbedding(), MinMaxScaler()
    embedded = ours.fit_transform(X)
    assert_allclose(embedded, theirs.fit_transform(X), atol=1e-9)
    new = normal(seed + 10, 9, 5)
    assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-9, atol=1e-7)
    assert_allclose(ours.inverse_transform(new), theirs.inverse_transform(new))


UNITS = {
    "ordinary": (np.float64, 1.0),
    "tiny": (np.float64, 1e-20),
    "tiniest": (np.float64, 1e-300),
    "subnormal": (np.float64, 1e-310),
    "single": (np.float32, 1.0),
    "tiny single": (np.float32, 1e-9),
    "huge half": (np.float16, 5e4),
    "huge single": (np.float32, 2e38),
    "large": (np.float64, 1e300),
}


@pytest.mark.parametrize(("dtype", "unit"), UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("seed", SEEDS)
def test_embedded_range_is_0_to_1_in_any_unit(seed, dtype, unit):
    X = (uniform(seed, 30, 4) * unit).astype(dtype)
    X[:2] = np.array([[-1.0], [1.0]]) * unit
    embedding = RangeEmbedding().fit(X)
    embedded = embedding.transform(X)
    assert embedded.dtype == np.float64
    assert_array_equal(embedded.min(axis=0), 0)
    assert_array_equal(embedded.max(axis=0), 1)
    # The range does not overflow in extended precision.
    long = X.astype(np.longdouble)
    wanted = (long - long.min(axis=0)) / np.ptp(long, axis=0)
    assert_allclose(
        embedded, wanted.astype(float), atol=1e-3 if unit == 1e-310 else 1e-7
    )
    again = embedding.inverse_transform(embedded)
    assert np.isfinite(again).all()
    assert_allclose(again.astype(dtype) / unit, X / unit, rtol=1e-9, atol=1e-12)


def test_a_range_that_overflows_is_rejected_with_its_column():
    X = np.array([[0.0, -1e308], [1.0, 0.0], [2.0, 1e308]])
    with pytest.raises(ValueError, match="column 1"):
        RangeEmbedding().fit_transform(X)


def ranges(X):
    return np.ptp(np.asarray(X, dtype=np.longdouble), axis=0)


@pytest.mark.parametrize(("dtype", "unit"), UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("shape", [(4,), (2, 2)], ids=str)
def test_new_rows_have_the_spread_of_the_training_rows_in_any_unit(shape, dtype, unit):
    X = uniform(0, 60, *shape).reshape(60, -1)
    X[:, ::2] *= unit
    X = X.reshape(60, *shape).astype(dtype)
    rows = PNLAugmenter(extrapolation=0).fit(X).sample(200, random_state=0)
    assert rows.dtype == dtype
    assert np.isfinite(rows).all()
    share = ranges(rows) / ranges(X)
    assert (share > 0.8).all()
    assert (share <= 1).all()
    y = np.repeat([0, 1], [40, 20])
    X_new = PNLSampler(random_state=0).fit_resample(X, y)[0]
    assert X_new.dtype == dtype
    assert_array_equal(X_new[:60], X)
    assert (ranges(X_new[60:]) / ranges(X[40:]) > 0.6).all()


@pytest.mark.parametrize(("dtype", "unit"), [(np.float64, 1e-20), (np.float32, 1e-9)])
@pytest.mark.parametrize("offset", [0.3, 1e-5])
def test_a_column_lost_to_rounding_by_the_offset_is_rejected(offset, dtype, unit):
    X = np.abs(normal(0, 30, 3) * [1, 1, unit * offset]).astype(dtype)
    with pytest.raises(ValueError, match="Column 2"):
        PNLAugmenter(Codes(1, offset=offset, embedding=None)).fit(X)


def test_codes_that_overflow_float32_are_rejected():
    X = np.abs(3.3e38 * uniform(0, 60, 4)).astype(np.float32)
    lines = PNLAugmenter(Lines(3.0), extrapolation=None).fit(X)
    assert np.isfinite(lines.sample(500, random_state=0)).all()
    method = Codes(1, draws=MixupDraws(3.0), embedding=None)
    codes = PNLAugmenter(method, extrapolation=None).fit(X)
    with pytest.raises(ValueError, match="float32"):
        codes.sample(500, random_state=0)


def test_a_mass_that_overflows_is_rejected():
    X = np.abs(1e308 * uniform(0, 30, 4))
    X[4] = 1.5e308
    with pytest.raises(ValueError, match="row of X "):
        PNLAugmenter(Codes(1, embedding=None)).fit(X)


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("function", [np.log1p, np.sqrt, lambda x: 1000 * x])
def test_an_embedding_without_an_inverse_raises_a_warning(function, scale):
    X = np.random.default_rng(0).gamma(2.0, scale, size=(60, 3))
    with pytest.warns(UserWarning, match="embedding="):
        PNLAugmenter(Codes(embedding=FunctionTransformer(function))).fit(X)


@pytest.mark.parametrize("extrapolation", [0.1, None])
@pytest.mark.parametrize(
    "there, back", [(np.tanh, np.arctanh), (np.reciprocal, np.reciprocal)]
)
def test_values_are_finite_if_the_inverse_is_not(there, back, extrapolation):
    X = np.random.default_rng(0).exponential(size=(80, 4))
    method = Codes(embedding=FunctionTransformer(there, back))
    augmenter = PNLAugmenter(method, extrapolation=extrapolation).fit(X)
    assert np.isfinite(augmenter.sample(300, random_state=0)).all()


def lost(rows, as_what):
    rows = np.array(rows)
    rows[1, 2] = as_what
    return rows


@pytest.mark.parametrize("kind", ["embedding", "reshaper"])
@pytest.mark.parametrize("value, name", [(np.nan, "NaN"), (np.inf, "infinity")])
def test_output_of_transformers_must_be_finite(kind, value, name):
    X = np.random.default_rng(0).uniform(size=(30, 4))
    astray = partial(lost, as_what=value)
    there, back = (
        FunctionTransformer(*functions, check_inverse=False)
        for functions in ((astray, None), (None, astray))
    )
    with pytest.raises(ValueError, match=f"(?s){kind}=.* {name}.* row 1, column 2"):
        PNLAugmenter(Codes(**{kind: there})).fit(X)
    augmenter = PNLAugmenter(Codes(**{kind: back}), extrapolation=None)
    with pytest.raises(ValueError, match=f"inverse_transform of {kind}="):
        augmenter.fit(X).sample(3, random_state=0)


@pytest.mark.parametrize("kind", ["embedding", "reshaper"])
@pytest.mark.parametrize("container", ["frame", "sparse"])
def test_transformers_can_return_frames_and_sparse_rows(kind, container):
    pd = pytest.importorskip("pandas")
    form = pd.DataFrame if container == "frame" else csr_array
    there = FunctionTransformer(form, form, check_inverse=False)
    X = np.random.default_rng(0).uniform(size=(30, 4))
    plain = FunctionTransformer(check_inverse=False)
    drawn = [
        PNLAugmenter(Codes(**{kind: some})).fit(X).sample(9, random_state=0)
        for some in (plain, there)
    ]
    assert_array_equal(*drawn)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_range_of_the_table_preserves_the_scales_of_features(seed, dtype):
    X = (normal(seed, 30, 5) * [1, 10, 1e3, 1e-3, 1] - 7).astype(dtype)
    embedding = RangeEmbedding(by_table=True).fit(X)
    embedded = embedding.transform(X)
    wide = X.astype(np.float64)
    assert_allclose(embedded, (wide - wide.min()) / np.ptp(wide), atol=1e-12)
    assert (embedded.min(), embedded.max()) == (0, 1)
    back = embedding.inverse_transform(embedded)
    assert_allclose(back, wide, rtol=0, atol=1e-12 * np.ptp(wide))


@pytest.mark.parametrize("value", [-3.0, 0.0, 2.0])
def test_range_of_a_constant_table_is_zero(value):
    X = np.full((6, 4), value)
    embedding = RangeEmbedding(by_table=True).fit(X)
    assert_array_equal(embedding.transform(X), 0)
    assert_array_equal(embedding.inverse_transform(np.zeros((6, 4))), X)


def test_range_of_a_table_that_overflows_is_rejected():
    with pytest.raises(ValueError, match="column 0"):
        RangeEmbedding(by_table=True).fit(np.array([[1.7e308, 0.0], [0.0, -1.7e308]]))


def test_codes_with_the_range_of_the_table_agree_with_a_scaled_table():
    X = normal(0, 20, 6) * [1, 5, 1, 1, 1, 9]
    scaled = (X - X.min()) / np.ptp(X)
    given = PNLAugmenter(Codes.paper(embedding="minmax-table")).fit(X)
    by_hand = PNLAugmenter(Codes.paper(embedding=None)).fit(scaled)
    assert_allclose(given.method_.codes_, by_hand.method_.codes_, atol=1e-8)
    assert not np.allclose(
        given.method_.codes_, PNLAugmenter(Codes.paper()).fit(X).method_.codes_
    )
