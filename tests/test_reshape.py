"""Rows to tensors whose modes are prime factors, and exactly back."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

from sklearn_pnl import ManyBodyProjector, PrimeFactorReshaper

SEEDS = [0, 1, 2]
ASCENDING = {"factor_order": "ascending"}


def rows(seed, *shape, n=3, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, *shape)).astype(dtype)


@pytest.mark.parametrize(
    ("row", "params", "tensor"),
    [
        # The reshapings of the paper's data sets.
        ((784,), {"input_shape": (28, 28)}, (7, 2, 2, 7, 2, 2)),
        ((28, 28), {}, (7, 2, 2, 7, 2, 2)),
        ((32, 32, 3), {}, (2,) * 10 + (3,)),
        ((3072,), {"input_shape": (32, 32, 3)}, (2,) * 10 + (3,)),
        ((4000,), {}, (5, 5, 5, 2, 2, 2, 2, 2)),
        ((60,), {}, (5, 3, 2, 2)),
        ((95,), {}, (19, 5)),
        ((11,), {}, (3, 2, 2)),
        # Ascending within each axis; the axes stay where they are.
        ((60,), ASCENDING, (2, 2, 3, 5)),
        ((28, 28), ASCENDING, (2, 2, 7, 2, 2, 7)),
        # An integer or a list is a shape too.
        ((60,), {"input_shape": 60}, (5, 3, 2, 2)),
        ((60,), {"input_shape": [6, 10]}, (3, 2, 5, 2)),
        ((6, 10), {"input_shape": (60,)}, (5, 3, 2, 2)),
        # A single axis is padded to the next composite length ...
        ((1,), {}, (2, 2)),
        ((2,), {}, (2, 2)),
        ((3,), {}, (2, 2)),
        ((4,), {}, (2, 2)),
        ((13,), {}, (7, 2)),
        # ... and of several axes none is.
        ((7, 5), {}, (7, 5)),
        ((5, 1), {}, (5,)),
        ((1, 1), {}, (1,)),
        # Every axis is padded until no factor is above max_factor.
        ((60,), {"max_factor": 5}, (5, 3, 2, 2)),
        ((60,), {"max_factor": 3}, (2,) * 6),
        ((11,), {"max_factor": 2}, (2,) * 4),
        ((28, 28), {"max_factor": 5}, (5, 3, 2, 5, 3, 2)),
        ((28, 3), {"max_factor": 2}, (2,) * 7),
    ],
    ids=str,
)
def test_modes_are_the_prime_factors_of_each_axis(row, params, tensor):
    X = rows(0, *row)
    reshaper = PrimeFactorReshaper(**params).fit(X)
    assert reshaper.tensor_shape_ == tensor
    assert reshaper.transform(X).shape == (3, *tensor)


@pytest.mark.parametrize("max_factor", [2, 3, 5, 7, None])
@pytest.mark.parametrize("length", [1, 6, 17, 64, 97, 121])
def test_padding_is_the_shortest_that_fits(length, max_factor):
    def fits(cells):
        left, n_factors = cells, 0
        for divisor in range(2, (max_factor or cells) + 1):
            while left % divisor == 0:
                left, n_factors = left // divisor, n_factors + 1
        return left == 1 and n_factors >= 2

    reshaper = PrimeFactorReshaper(max_factor=max_factor).fit(rows(0, length))
    padded = np.prod(reshaper.tensor_shape_)
    assert padded == next(cells for cells in range(length, 2**8 + 1) if fits(cells))


@pytest.mark.parametrize("seed", SEEDS)
def test_cells_keep_the_order_of_the_rows(seed):
    X = rows(seed, 28, 28)
    assert_array_equal(PrimeFactorReshaper().fit_transform(X).reshape(X.shape), X)


@pytest.mark.parametrize("seed", SEEDS)
def test_flat_rows_and_images_give_the_same_tensors(seed):
    X = rows(seed, 8, 6)
    from_images = PrimeFactorReshaper().fit_transform(X)
    from_flat = PrimeFactorReshaper((8, 6)).fit_transform(X.reshape(len(X), -1))
    assert_array_equal(from_images, from_flat)


@pytest.mark.parametrize("pad_value", [0.0, 2.5, -1, "mean"])
def test_padding_comes_after_the_features(pad_value):
    X = rows(0, 11)
    padded = PrimeFactorReshaper(pad_value=pad_value).fit_transform(X).reshape(3, 12)
    fill = X.mean(axis=1) if pad_value == "mean" else np.full(3, pad_value)
    assert_array_equal(padded[:, :11], X)
    assert_allclose(padded[:, 11], fill, rtol=1e-15)


def test_every_axis_is_padded_at_its_end():
    X = rows(0, 5, 7)
    reshaper = PrimeFactorReshaper(max_factor=2, pad_value="mean")
    padded = reshaper.fit_transform(X).reshape(3, 8, 8)
    assert_array_equal(padded[:, :5, :7], X)
    outside = np.ones((8, 8), bool)
    outside[:5, :7] = False
    mean = np.repeat(X.mean(axis=(1, 2))[:, None], outside.sum(), axis=1)
    assert_allclose(padded[:, outside], mean, rtol=1e-13)


CASES = [
    ((11,), {}),
    ((60,), ASCENDING),
    ((784,), {"input_shape": (28, 28)}),
    ((28, 28), {}),
    ((32, 32, 3), {}),
    ((5, 7, 3), {"max_factor": 2, "pad_value": "mean"}),
    ((35,), {"input_shape": (5, 7), "max_factor": 3, "pad_value": 9.0}),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("row", "params"), CASES, ids=str)
def test_inverse_gives_back_every_bit(row, params, seed):
    X = rows(seed, *row)
    reshaper = PrimeFactorReshaper(**params)
    back = reshaper.inverse_transform(reshaper.fit_transform(X))
    assert back.shape == X.shape
    assert_array_equal(back, X)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("row", "params"), CASES, ids=str)
def test_inverse_of_new_tensors_drops_the_padding_alone(row, params, seed):
    reshaper = PrimeFactorReshaper(**params).fit(rows(seed, *row))
    new = rows(seed + 100, *reshaper.tensor_shape_, n=5)
    back = reshaper.inverse_transform(new)
    assert back.shape == (5, *row)
    again = reshaper.transform(back)
    # Cells of the rows are those that a row of ones marks.
    marks = PrimeFactorReshaper(**{**params, "pad_value": 0.0})
    inside = marks.fit_transform(np.ones((1, *row)))[0] == 1
    assert inside.sum() == np.prod(row)
    assert_array_equal(again[:, inside], new[:, inside])


@pytest.mark.parametrize("row", [(11,), (12,), (4, 6)], ids=str)
@pytest.mark.parametrize("pad_value", [0.1, "mean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_types_are_kept_both_ways(dtype, pad_value, row):
    X = rows(0, *row, dtype=dtype)
    reshaper = PrimeFactorReshaper(pad_value=pad_value).fit(X)
    tensors = reshaper.transform(X)
    assert tensors.dtype == dtype
    assert reshaper.inverse_transform(tensors).dtype == dtype


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool])
def test_integers_become_floats(dtype):
    X = (rows(0, 11) > 0).astype(dtype)
    tensors = PrimeFactorReshaper(pad_value=0.5).fit_transform(X)
    assert tensors.dtype == np.float64
    assert (tensors.reshape(3, -1)[:, -1] == 0.5).all()


def test_padding_leaves_the_input_alone():
    X = rows(0, 11)
    before = X.copy()
    PrimeFactorReshaper(pad_value=7.0).fit_transform(X)
    assert_array_equal(X, before)


@pytest.mark.parametrize("input_shape", [(28, 27), (7, 7), 100, (28, 28, 2), ()])
def test_input_shape_of_other_size_is_refused(input_shape):
    with pytest.raises(ValueError, match=r"input_shape=.* cells.*\(784,\), 784 cells"):
        PrimeFactorReshaper(input_shape).fit(rows(0, 784))


@pytest.mark.parametrize("input_shape", [(-1, -12), (-3, -4), (0,), (12, 0), -12])
def test_input_shape_without_cells_is_refused(input_shape):
    with pytest.raises(ValueError, match="input_shape"):
        PrimeFactorReshaper(input_shape).fit(rows(0, 12))


def test_input_shape_of_fractions_is_refused():
    with pytest.raises((TypeError, ValueError), match="input_shape|integer"):
        PrimeFactorReshaper((3.7, 4.2)).fit(rows(0, 12))


@pytest.mark.parametrize("shape", [(3, 2, 3), (2, 2, 3), (12,), (3, 2, 2, 1), ()])
def test_inverse_of_another_shape_is_refused(shape):
    reshaper = PrimeFactorReshaper().fit(rows(0, 11))
    with pytest.raises(ValueError, match=r"tensors of shape \(3, 2, 2\)"):
        reshaper.inverse_transform(np.ones((4, *shape)))


@pytest.mark.parametrize("params", [{"max_factor": 1}, {"pad_value": np.inf}])
def test_parameters_out_of_range_are_refused(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        PrimeFactorReshaper(**params).fit(rows(0, 11))


def test_a_pipeline_behind_it_gives_frames():
    X = pd.DataFrame(np.random.default_rng(0).random((9, 8))).add_prefix("x")
    steps = PrimeFactorReshaper(), ManyBodyProjector(order=1)
    pipeline = make_pipeline(*steps).set_output(transform="pandas")
    names = pipeline.fit_transform(X).columns.tolist()
    assert names == pipeline.get_feature_names_out().tolist()
    assert names == ["theta_0_0_1", "theta_0_1_0", "theta_1_0_0"]
