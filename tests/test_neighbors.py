"""Near codes: by a tree among very many rows, by one product among few."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import KDTree

from sklearn_pnl import BackwardProjector, PNLAugmenter, _neighbors
from sklearn_pnl.geometry import Poset


def fitted(seed, n, with_mass, poset=None):
    rng = np.random.default_rng(seed)
    X = np.exp(0.5 * rng.standard_normal((n, 8)) @ rng.standard_normal((8, 8)) / 2)
    X = X if poset else X.reshape(n, 2, 2, 2)
    settings = {"with_mass": with_mass, "offset": 0.1, "poset": poset}
    return BackwardProjector(1, **settings).fit(X)


@pytest.mark.parametrize("with_mass", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_tree_finds_the_neighbours_of_the_product(seed, with_mass, monkeypatch):
    projector = fitted(seed, 3000, with_mass)
    codes = projector.codes_[:700]
    distances, expected = projector.kneighbors(codes, 6)
    monkeypatch.setattr(_neighbors, "_TREE_FROM", 1000)
    near = projector.kneighbors(codes, 6)
    assert np.mean(near[1] == expected) > 0.999
    assert_allclose(near[0], distances, rtol=1e-6, atol=1e-12)


def test_a_tree_is_used_from_so_many_rows_on(monkeypatch):
    projector = fitted(0, 1200, True)
    trees = []

    def counted(points, **settings):
        trees.append(len(points))
        return KDTree(points, **settings)

    monkeypatch.setattr(_neighbors, "KDTree", counted)
    # One of the training rows, and one that puts the codes in order.
    for fewest, used in [(1200, []), (1199, [1200, 3])]:
        monkeypatch.setattr(_neighbors, "_TREE_FROM", fewest)
        projector.kneighbors(projector.codes_[:3])
        assert trees == used


@pytest.mark.parametrize("with_mass", [True, False])
@pytest.mark.parametrize("order", [1, 2])
def test_a_tree_among_rows_of_very_different_shape(order, with_mass, monkeypatch):
    # Cells over many orders of magnitude: what is near in one place is far in another,
    # so that no one metric for all would do.
    X = np.random.default_rng(0).gamma(0.3, size=(4000, 2, 2, 2))
    projector = BackwardProjector(order, with_mass=with_mass, offset=1e-3).fit(X)
    codes = projector.codes_[:500]
    expected = projector.kneighbors(codes, 6)[1]
    monkeypatch.setattr(_neighbors, "_TREE_FROM", 1000)
    near = projector.kneighbors(codes, 6)[1]
    assert np.mean(near == expected) > 0.99


def test_a_tree_on_a_general_poset(monkeypatch):
    poset = Poset.from_relations(8, [(0, x) for x in range(1, 8)])
    projector = fitted(0, 1500, True, poset)
    expected = projector.kneighbors(projector.codes_[:300], 4)[1]
    monkeypatch.setattr(_neighbors, "_TREE_FROM", 1000)
    near = projector.kneighbors(projector.codes_[:300], 4)[1]
    assert np.mean(near == expected) > 0.995


@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_batches_and_workers_with_a_tree_are_the_same_bytes(augment, monkeypatch):
    monkeypatch.setattr(_neighbors, "_TREE_FROM", 500)
    X = np.random.default_rng(0).gamma(1.0, size=(900, 2, 2, 2))
    rows = PNLAugmenter(augment=augment).fit(X).sample(700, 0)
    workers = PNLAugmenter(augment=augment, n_jobs=2).fit(X)
    assert_array_equal(workers.sample(700, 0), rows)
    batches = workers.iter_samples(700, 111, random_state=0)
    assert_array_equal(np.concatenate(list(batches)), rows)


@pytest.mark.parametrize("width", [7, 4095, 4096, 4100, 8191])
@pytest.mark.parametrize("k", [1, 5, 16, 17])
def test_smallest_values_of_long_rows(width, k):
    rng = np.random.default_rng(width + k)
    for values in (rng.random((9, width)), rng.integers(3, size=(9, width)) / 1.0):
        columns = _neighbors._smallest(values, k)
        found = np.sort(np.take_along_axis(values, columns, axis=1))
        assert_array_equal(found, np.sort(values, axis=1)[:, :k])
        assert all(len(set(row)) == len(row) for row in columns.tolist())
