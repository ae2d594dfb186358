"""Reshaping of rows to tensors with prime factors as modes, and the inverse."""

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
        # The paper reshapes its data sets in this way.
        ((784,), {"input_shape": (28, 28)}, (7, 2, 2, 7, 2, 2)),
        ((28, 28), {}, (7, 2, 2, 7, 2, 2)),
        ((32, 32, 3), {}, (2,) * 10 + (3,)),
        ((3072,), {"input_shape": (32, 32, 3)}, (2,) * 10 + (3,)),
        ((4000,), {}, (5, 5, 5, 2, 2, 2, 2, 2)),
        ((60,), {}, (5, 3, 2, 2)),
        ((95,), {}, (19, 5)),
        ((11,), {}, (3, 2, 2)),
        # Factors are ascending within each axis; the order of the axes is kept.
        ((60,), ASCENDING, (2, 2, 3, 5)),
        ((28, 28), ASCENDING, (2, 2, 7, 2, 2, 7)),
        # An integer or a list is also a shape.
        ((60,), {"input_shape": 60}, (5, 3, 2, 2)),
        ((60,), {"input_shape": [6, 10]}, (3, 2, 5, 2)),
        ((6, 10), {"input_shape": (60,)}, (5, 3, 2, 2)),
        # A single axis is padded to the next composite length ...
        ((1,), {}, (2, 2)),
        ((2,), {}, (2, 2)),
        ((3,), {}, (2, 2)),
        ((4,), {}, (2, 2)),
        ((13,), {}, (7, 2)),
        # ... and several axes are not padded.
        ((7, 5), {}, (7, 5)),
        ((5, 1), {}, (5,)),
        ((1, 1), {}, (1,)),
    ],
    ids=str,
)
def test_modes_are_the_prime_factors_of_each_axis(row, params, tensor):
    X = rows(0, *row)
    reshaper = PrimeFactorReshaper(**params).fit(X)
    assert reshaper.tensor_shape_ == tensor
    assert reshaper.transform(X).shape == (3, *tensor)


@pytest.mark.parametrize("length", [1, 6, 17, 64, 97, 121])
def test_padding_is_the_shortest_length_with_two_factors(length):
    def fits(cells):
        return any(cells % divisor == 0 for divisor in range(2, cells))

    padded = np.prod(PrimeFactorReshaper().fit(rows(0, length)).tensor_shape_)
    assert padded == next(cells for cells in range(length, 2**8 + 1) if fits(cells))


@pytest.mark.parametrize("pad_value", [0.0, -1, "mean"])
def test_an_axis_is_padded_at_its_end(pad_value):
    X = rows(0, 11)
    padded = PrimeFactorReshaper(pad_value=pad_value).fit_transform(X).reshape(3, 12)
    assert_array_equal(padded[:, :11], X)
    fill = X.mean(axis=1) if pad_value == "mean" else np.full(3, pad_value)
    assert_allclose(padded[:, 11], fill, rtol=1e-13)


CASES = [
    ((11,), {}),
    ((60,), ASCENDING),
    ((784,), {"input_shape": (28, 28)}),
    ((28, 28), {}),
    ((32, 32, 3), {}),
    ((13,), {"pad_value": "mean"}),
    ((35,), {"input_shape": (5, 7)}),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("row", "params"), CASES, ids=str)
def test_inverse_restores_rows_exactly_and_drops_only_the_padding(row, params, seed):
    X, reshaper = rows(seed, *row), PrimeFactorReshaper(**params)
    assert_array_equal(reshaper.inverse_transform(reshaper.fit_transform(X)), X)
    new = rows(seed + 100, *reshaper.tensor_shape_, n=5)
    again = reshaper.transform(reshaper.inverse_transform(new))
    # A row of ones marks the cells that are no padding.
    reshaper.set_params(pad_value=0.0)
    inside = reshaper.fit_transform(np.ones((1, *row)))[0] == 1
    assert inside.sum() == np.prod(row)
    assert_array_equal(again[:, inside], new[:, inside])


@pytest.mark.parametrize(
    "params",
    [{"input_shape": shape} for shape in [(3, 5), 100, (), (-3, -4), (12, 0), (2.4, 5)]]
    + [{"pad_value": np.inf}],
    ids=str,
)
def test_invalid_parameters_are_rejected(params):
    with pytest.raises(ValueError):
        PrimeFactorReshaper(**params).fit(rows(0, 12))


@pytest.mark.parametrize("shape", [(3, 2, 3), (2, 2, 3), (12,), (3, 2, 2, 1), ()])
def test_inverse_of_another_shape_is_rejected(shape):
    reshaper = PrimeFactorReshaper().fit(rows(0, 11))
    with pytest.raises(ValueError):
        reshaper.inverse_transform(np.ones((4, *shape)))


def test_a_later_step_of_a_pipeline_can_return_frames():
    X = pd.DataFrame(np.random.default_rng(0).random((9, 8))).add_prefix("x")
    steps = PrimeFactorReshaper(), ManyBodyProjector(order=1)
    pipeline = make_pipeline(*steps).set_output(transform="pandas")
    names = pipeline.fit_transform(X).columns.tolist()
    assert names == pipeline.get_feature_names_out().tolist()
    assert names == ["theta_0_0_1", "theta_0_1_0", "theta_1_0_0"]


@pytest.mark.parametrize("params", [{}, ASCENDING])
@pytest.mark.parametrize(
    "row, modes",
    [
        ((60,), ((0, 1, 2, 3),)),
        ((11,), ((0, 1, 2),)),
        ((28, 28), ((0, 1, 2), (3, 4, 5))),
        ((8, 8, 3), ((0, 1, 2), (3, 4, 5), (6,))),
        ((7, 1, 4), ((0,), (), (1, 2))),
        ((1, 1), ((), ())),
    ],
)
def test_modes_of_each_axis_are_published(row, modes, params):
    reshaper = PrimeFactorReshaper(**params).fit(rows(0, *row))
    assert reshaper.axis_modes_ == modes
    if len(row) > 1:
        shape = reshaper.tensor_shape_
        lengths = [np.prod([shape[k] for k in axis], dtype=int) for axis in modes]
        assert lengths == list(row)
