"""Nearest weights: comparisons with projections of single rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from sklearn_pnl.geometry import linear_projection
from sklearn_pnl.geometry.convex.weights import (
    disjoint_margins,
    effective_size,
    nearest_weights,
)


def counts_of(seed, n=200, sizes=(4, 3, 2)):
    """Make terms of counts, design weights, and counts that other weights have."""
    rng = np.random.default_rng(seed)
    terms = np.vstack([np.eye(k)[rng.integers(0, k, n)].T for k in sizes])
    design = rng.gamma(3.0, size=n)
    return terms, design, terms @ (design * rng.uniform(0.5, 1.6, n))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("bounds", [(0, np.inf), (0.8, 1.3), (0.8, np.inf)])
def test_weights_by_cell_agree_with_the_projection_of_all_rows(seed, container, bounds):
    terms, design, goal = counts_of(seed)
    # Narrow bounds are active, so that intervals are required.
    lower, upper = (goal, goal) if bounds[0] == 0 else (0.95 * goal, 1.05 * goal)
    floor, ceiling = (bound * design for bound in bounds)
    weights, n_iter = nearest_weights(
        container(terms), lower, upper, design, floor, ceiling, 1e-11, 500
    )
    expected = linear_projection(
        design[None], terms, lower, upper, floor=floor, ceiling=ceiling, tol=1e-12
    )
    assert expected.converged.all() and 0 < n_iter <= 500
    np.testing.assert_allclose(weights, expected.measure[0], rtol=1e-7)


def test_ratios_do_not_depend_on_the_order_of_the_rows():
    terms, design, goal = counts_of(0)
    order = np.random.default_rng(0).permutation(len(design))
    limits = np.zeros(len(design)), np.full(len(design), np.inf)
    weights = nearest_weights(terms, goal, goal, design, *limits, 1e-10, 200)[0]
    shuffled = nearest_weights(
        terms[:, order], goal, goal, design[order], *limits, 1e-10, 200
    )[0]
    np.testing.assert_allclose(shuffled, weights[order], rtol=1e-9)


def test_slow_sweeps_are_followed_by_a_projection():
    # The only count leaves 1e-4 of the weight to other rows, so that each sweep removes
    # 1e-4 of the distance.
    terms = np.vstack([np.arange(10) < 5, np.ones(10)]).astype(float)
    goal, design = np.array([9.999, 10.0]), np.ones(10)
    limits = np.zeros(10), np.full(10, np.inf)
    weights, n_iter = nearest_weights(terms, goal, goal, design, *limits, 1e-10, 200)
    np.testing.assert_allclose(weights, np.repeat([9.999, 0.001], 5) / 5, rtol=1e-6)
    assert 50 < n_iter <= 200


def test_rows_that_no_count_may_contain_have_no_weight():
    terms, design, goal = counts_of(1)
    goal[1], goal[0] = 0.0, goal[:2].sum()
    limits = np.zeros(len(design)), np.full(len(design), np.inf)
    weights = nearest_weights(terms, goal, goal, design, *limits, 1e-10, 200)[0]
    np.testing.assert_array_equal(weights[terms[1] > 0], 0)
    np.testing.assert_allclose(terms @ weights, goal, rtol=1e-9, atol=1e-12)


def test_overlapping_counts_are_in_different_margins():
    terms = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    margins = disjoint_margins(csr_array(terms))
    assert [counts for counts, _ in margins] == [[0, 1], [2, 3]]
    np.testing.assert_array_equal(margins[0][1], [0, 1, -1, -1])
    np.testing.assert_array_equal(margins[1][1], [0, -1, 0, 1])
    assert disjoint_margins(2 * terms) is None


def test_effective_size_is_that_of_kish():
    assert effective_size(np.array([1.0, 1, 1, 0])) == pytest.approx(3)
    assert effective_size(np.zeros(3)) == 0
