"""Scores of held-out parts of rows."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl.encoding.held_out import N_PARTS, _parts_of_counts
from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    complete,
    many_body_projection,
    order_mask,
)

SHAPE = (4, 4, 4)


def effects(rng, n, order, shape=SHAPE, deviation=0.45):
    """Sum centred random effects of the sets of modes up to an order."""
    total = np.zeros((n, *shape))
    for size in range(1, order + 1):
        for modes in combinations(range(len(shape)), size):
            lengths = (s if k in modes else 1 for k, s in enumerate(shape))
            effect = rng.normal(scale=deviation, size=(n, *lengths))
            for k in modes:
                effect -= effect.mean(axis=k + 1, keepdims=True)
            total = total + effect
    return total


def counts_of_order(order, seed, n=60, total=1000, shape=SHAPE):
    rng = np.random.default_rng(seed)
    p = np.exp(effects(rng, n, order, shape)).reshape(n, -1)
    p /= p.sum(axis=1, keepdims=True)
    return rng.multinomial(total, p).reshape(n, *shape)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_grid_search_finds_the_order_of_counts(order, seed):
    projector, grid = ManyBodyProjector(offset=0.05), {"order": [1, 2, 3]}
    search = GridSearchCV(projector, grid, cv=5).fit(counts_of_order(order, seed))
    assert search.best_params_ == {"order": order}


@pytest.mark.parametrize("seed", [0, 1])
def test_a_small_offset_rejects_interactions_of_empty_cells(seed):
    X = counts_of_order(3, seed)
    scores = [ManyBodyProjector(k).fit(X).score(X) for k in (1, 2, 3)]
    assert np.argmax(scores) == 1


@pytest.mark.parametrize("order", [1, 2, [(0, 1), (2,)]])
def test_counts_are_scored_by_the_projections_of_the_other_parts(order):
    X = counts_of_order(2, 0, n=3, total=200)
    expected = np.zeros(len(X))
    cells = X.reshape(len(X), -1).astype(float)
    for _, part in _parts_of_counts(cells):
        for row in range(len(X)):
            p = (cells[row] - part[row] + 0.1).reshape(SHAPE)
            q = many_body_projection(p / p.sum(), TensorPoset(SHAPE), order, tol=1e-10)
            expected[row] += part[row] @ np.log(q.prob.ravel())
    projector = ManyBodyProjector(order, offset=0.1, tol=1e-10).fit(X)
    assert_allclose(projector.score(X), expected.mean(), rtol=1e-9)


def test_the_parts_of_counts_sum_to_the_counts():
    rng = np.random.default_rng(0)
    counts = rng.poisson(30, size=(50, 40)).astype(float)
    counts[0, :3] = np.nan, 0, 2.0**52
    parts = np.stack([part for _, part in _parts_of_counts(counts)])
    assert len(parts) == N_PARTS
    assert_array_equal(parts.sum(axis=0), counts)
    assert (parts[~np.isnan(parts)] >= 0).all()
    # Each part of a cell with n counts has the binomial variance.
    z = (parts[:, 1:] - counts[1:] / N_PARTS) / np.sqrt(counts[1:] * 0.09)
    assert abs(z.mean()) < 0.03
    assert abs(z.std() - 1) < 0.05


@pytest.mark.parametrize("order", [1, 2])
def test_other_rows_are_scored_by_predictions_of_missing_cells(order):
    shape, offset = (3, 4, 5), 0.1
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(4, *shape))
    poset = TensorPoset(shape)
    part = np.random.default_rng(0).permutation(poset.n_elements) % N_PARTS
    expected = 0.0
    for held_out in range(N_PARTS):
        seen = (part != held_out).reshape(shape)
        mask = order_mask(poset, order)
        found = complete(X + offset, poset, mask, observed=seen, tol=1e-12)
        assert found.estimable.all()
        m, x = found.measure[:, ~seen], X[:, ~seen] + offset
        expected += (x * np.log(m) - m).sum(axis=1)
    projector = ManyBodyProjector(order, offset=offset, tol=1e-10).fit(X)
    assert_allclose(projector.score(X), expected.mean(), rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("order", [1, 2])
def test_a_grid_search_finds_the_order_of_other_rows(order, seed):
    rng, n, shape = np.random.default_rng(seed), 15, (4, 4, 4)
    noise = rng.gamma(50.0, 0.02, size=(n, *shape))
    X = np.exp(effects(rng, n, order, shape)) * noise
    search = GridSearchCV(ManyBodyProjector(), {"order": [1, 2, 3]}, cv=5).fit(X)
    assert search.best_params_ == {"order": order}


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_missing_cells_are_not_scored(scale):
    X = counts_of_order(1, 0, n=20) * scale
    X[:, 0, 1, 2] = np.nan
    settings = {"handle_missing": "ignore", "offset": 0.05}
    scores = [ManyBodyProjector(k, **settings).fit(X).score(X) for k in (1, 2)]
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]


def test_an_added_bottom_is_not_scored():
    poset = Poset.from_relations(3, [(0, 2), (1, 2)], add_bottom=True)
    projector = ManyBodyProjector(poset=poset, offset=0.5)
    X = np.random.default_rng(0).poisson(20, size=(5, 3))
    cells = X.astype(float)
    expected = 0.0
    for _, part in _parts_of_counts(cells):
        q = projector.fit(X).inverse_transform(projector.transform(cells - part))
        q = q.reshape(len(X), -1)[:, 1:]
        expected += (part * np.log(q / q.sum(axis=1, keepdims=True))).sum(axis=1)
    assert_allclose(projector.score(X), expected.mean())


@pytest.mark.parametrize("scale", [1, 0.1])
def test_the_score_is_the_same_for_all_settings_of_the_computation(scale):
    X = counts_of_order(2, 0, n=30) * scale
    scores = [
        ManyBodyProjector(2, offset=0.1, n_jobs=jobs, with_mass=mass).fit(X).score(X)
        for jobs in (1, 2)
        for mass in (False, True)
    ]
    assert_allclose(scores, scores[0], rtol=1e-12)
    rows = X.reshape(len(X), -1)
    flat = ManyBodyProjector(2, offset=0.1, poset=TensorPoset(SHAPE)).fit(rows)
    assert_allclose(flat.score(rows), scores[0], rtol=1e-12)


def test_an_offset_of_0_is_refused():
    X = np.full((3, 4, 4), 9.0)
    with pytest.raises(ValueError, match=r"positive offset; got offset=0.*0\.05"):
        ManyBodyProjector(offset=0).fit(X).score(X)
