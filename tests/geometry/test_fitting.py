"""Proportional fitting of counts: comparisons with projections and with loops."""

import numpy as np
import pytest

from sklearn_pnl.geometry import linear_projection
from sklearn_pnl.geometry.convex.fitting import fit_counts


def problem(seed, n=80, sizes=(3, 4)):
    """Make cells, levels with uncounted cells, and counts that other cells have."""
    rng = np.random.default_rng(seed)
    levels = [rng.integers(-1, k, n) for k in sizes]
    start, true = rng.gamma(2.0, size=(2, n))
    counts = [
        np.bincount(level[level >= 0], true[level >= 0], k)
        for level, k in zip(levels, sizes, strict=True)
    ]
    return start, levels, counts


def indicators(levels, counts):
    """Return the counts as sums with terms 0 and 1."""
    return np.vstack([
        level == np.arange(len(count))[:, None]
        for level, count in zip(levels, counts, strict=True)
    ]).astype(float)  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("width", [0.0, 0.3])
def test_fitted_cells_agree_with_the_projection(seed, width):
    start, levels, counts = problem(seed)
    bounds = [((1 - width) * count, (1 + width) * count) for count in counts]
    goals = [(level, *pair) for level, pair in zip(levels, bounds, strict=True)]
    cells, n_iter, converged = fit_counts(start, goals, 1e-12, 5000)
    lower, upper = (np.concatenate(ends) for ends in zip(*bounds, strict=True))
    a = indicators(levels, counts)
    expected = linear_projection(start[None], a, lower, upper, tol=1e-12).measure[0]
    assert converged and n_iter < 5000
    np.testing.assert_allclose(cells, expected, rtol=1e-7)


def test_a_single_margin_is_a_ratio_per_level():
    start, levels, counts = problem(0)
    cells, n_iter, converged = fit_counts(
        start, [(levels[0], *counts[:1] * 2)], 1e-12, 9
    )
    is_counted = levels[0] >= 0
    sums = np.bincount(levels[0][is_counted], start[is_counted])
    expected = np.where(is_counted, start * (counts[0] / sums)[levels[0]], start)
    np.testing.assert_allclose(cells, expected, rtol=1e-14)
    assert n_iter == 2 and converged


def test_contradictory_margins_do_not_converge():
    start, levels, counts = problem(1)
    levels = [np.maximum(level, 0) for level in levels]
    goals = [
        (level, count * k, count * k)
        for level, count, k in zip(levels, counts, (1, 2), strict=True)
    ]
    assert fit_counts(start, goals, 1e-9, 60)[1:] == (60, False)
