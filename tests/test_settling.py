"""theta to its last digits where cells are nearly empty."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl.geometry import (
    TensorPoset,
    many_body_projection,
    mixed_projection,
    theta_from_prob,
)
from sklearn_pnl.geometry.settling import _cardinal_functions, settle

SEEDS = [0, 1, 2]
OFFSETS = [1e-12, 1e-8, 1e-5, 1e-2]


def zeros_and_ones(seed, *shape, n=60):
    """Rows of cells that are mostly 0, in one level of the last mode nearly all."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, *shape)) > 0.7).astype(float)
    X[..., 0] *= rng.random((n, *shape[:-1])) > 0.8
    return X


def distributions(X, offset):
    p = X + offset
    return p / p.sum(axis=tuple(range(1, X.ndim)), keepdims=True)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize(
    ("shape", "order"),
    [((4, 4, 4), 2), ((2, 2, 4, 4), 2), ((3, 3, 3), [(0, 1), (1, 2)])],
    ids=str,
)
def test_order_of_the_rows_does_not_move_theta(shape, order, offset):
    # Which rows a block has decides how sums are rounded, and no more.
    X = zeros_and_ones(0, *shape)
    projector = ManyBodyProjector(order, offset=offset)
    codes = projector.fit_transform(X)
    reversed_codes = projector.transform(X[::-1])[::-1]
    assert_allclose(reversed_codes, codes, atol=1e-6)


@pytest.mark.parametrize("offset", OFFSETS)
def test_order_of_the_rows_does_not_move_theta_on_any_base(offset):
    X = zeros_and_ones(1, 5, 6)
    base = np.arange(30) % 3 > 0
    projector = ManyBodyProjector(base=base, offset=offset)
    codes = projector.fit_transform(X)
    assert_allclose(projector.transform(X[::-1])[::-1], codes, atol=1e-6)


def without_three_way_interaction(p):
    """Cells ``p + d (-1)^order`` with ``d`` such that theta of the top is 0."""
    with localcontext() as context:
        context.prec = 60
        cells = [Decimal(float(x)) for x in p.ravel()]
        sign = [(-1) ** bin(x).count("1") for x in range(8)]
        even = [x for x, s in zip(cells, sign, strict=True) if s > 0]
        odd = [x for x, s in zip(cells, sign, strict=True) if s < 0]
        low, high = -min(even), min(odd)
        for _ in range(150):
            d = (low + high) / 2
            above = prod(x + d for x in even) > prod(x - d for x in odd)
            low, high = (low, d) if above else (d, high)
        log_q = [(x + s * d).ln() for x, s in zip(cells, sign, strict=True)]
        return np.array([float(x) for x in log_q]).reshape(p.shape)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("seed", SEEDS)
def test_theta_is_that_of_sixty_digits(seed, offset):
    # Of three binary modes without their interaction one number is unknown.
    X = np.random.default_rng(seed).integers(0, 2, size=(8, 2, 2, 2)).astype(float)
    p = distributions(X[X.sum(axis=(1, 2, 3)) > 0], offset)
    poset = TensorPoset((2, 2, 2))
    found = many_body_projection(p, poset, 2)
    assert found.converged.all()
    expected = poset.moebius(np.array([without_three_way_interaction(x) for x in p]))
    assert_allclose(theta_from_prob(found.prob, poset), expected, atol=1e-6)


def functions_of(poset, order):
    elements = np.flatnonzero(poset.order_mask(order))
    above = poset.columns(elements).synthesis(np.eye(len(elements)))
    return np.vstack([np.ones(poset.n_elements), above])


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 4, 2), (4, 4)], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_cardinal_functions_have_no_cell_before_their_own(seed, shape):
    poset = TensorPoset(shape)
    functions = functions_of(poset, len(shape) - 1)
    order = np.random.default_rng(seed).permutation(poset.n_elements)
    before = functions.copy()
    mass = 1.0 + np.argsort(order[::-1])
    cardinal = _cardinal_functions(functions, mass)[:, order]
    assert_array_equal(functions, before)
    own = (cardinal != 0).argmax(axis=1)
    assert_array_equal(cardinal[:, own], np.eye(len(cardinal)))
    # The same space: one is a combination of the other.
    both = np.vstack([cardinal, functions[:, order]])
    assert np.linalg.matrix_rank(both) == len(cardinal)
    # The greedy basis: cells passed over depend on those before them.
    for column in np.setdiff1d(np.arange(poset.n_elements), own):
        heavier = own[own < column]
        rank = np.linalg.matrix_rank(functions[:, order[heavier]])
        assert rank == np.linalg.matrix_rank(functions[:, order[[*heavier, column]]])


@pytest.mark.parametrize("seed", SEEDS)
def test_settled_moments_are_right_to_rounding_of_the_lightest(seed):
    # In exact arithmetic: the marginals of the answer and of the target.
    poset = TensorPoset((3, 3, 3))
    p = distributions(zeros_and_ones(seed, 3, 3, 3, n=4), 1e-12)
    functions = functions_of(poset, 2)
    found = many_body_projection(p, poset, 2).prob.reshape(4, -1)
    for q, target in zip(found, p.reshape(4, -1), strict=True):
        better = settle(functions, q, target)
        cardinal = _cardinal_functions(functions, better)
        for function in cardinal:
            cells = np.flatnonzero(function)
            has, wanted = (
                sum(Fraction(function[x]) * Fraction(row[x]) for x in cells)
                for row in (better, target)
            )
            heaviest = better[cells].max()
            assert abs(float(has - wanted)) <= 1e-12 * heaviest


def test_a_target_that_nothing_meets_is_not_settled():
    # The masses wanted are negative: no positive distribution has them.
    functions = np.array([[1.0, 1, 1], [0, 1, 1]])
    assert settle(functions, np.full(3, 1 / 3), np.array([1.5, -0.3, -0.2])) is None


def test_far_references_are_settled_too():
    p = distributions(zeros_and_ones(0, 4, 4), 1e-10)
    poset = TensorPoset((4, 4))
    found = [
        mixed_projection(rows, rows[:, ::-1, ::-1], poset.order == 1, poset).prob
        for rows in (p, p[::-1])
    ]
    thetas = [theta_from_prob(q, poset) for q in found]
    assert_allclose(thetas[0], thetas[1][::-1], atol=1e-6)
