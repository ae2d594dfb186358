"""Parents, donors, and the rows that give binary columns."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import chisquare

from sklearn_pnl.encoding.table_neighbors import RowSearch
from sklearn_pnl.methods.parents import _random_integers, choose_donors, choose_parents
from sklearn_pnl.methods.source import Request

SEEDS = [0, 1, 2]


def chosen(X, n, k, seed, blocks=(), alike=None):
    """Return the parents, donors and givers of n new rows."""
    state = np.random.RandomState
    request = Request(n, k, mutual=True)
    parents = choose_parents(RowSearch(X), request, state(seed))
    mixable = SimpleNamespace(blocks=np.array(blocks, int), alike=alike)
    return parents, *choose_donors(parents, mixable, state(seed + 1))


def mutual_neighbors(parents, m):
    """Return the mask (m, m) of mutual neighbours, found in loops."""
    near = np.zeros((m, m), bool)
    for row, *others in parents.neighbors:
        near[row, others] = True
    return near & near.T


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_come_from_the_base_row_or_a_random_mutual_neighbour(seed):
    n, m, k = 60_000, 20, 4
    X = np.random.default_rng(seed).normal(size=(m, 3))
    alike = np.arange(m) % 5 == 0
    parents, donors, givers = chosen(X, n, k, seed, blocks=[2, 0, 1, 1], alike=alike)
    assert givers.shape == (n, 3)
    assert_array_equal(givers[:, 0], donors)
    may_give = mutual_neighbors(parents, m) & (alike == alike[:, None])
    expected = may_give * n / m / (1 + k)
    expected[np.arange(m), np.arange(m)] = n / m - expected.sum(axis=1)
    for block in (1, 2):
        counts = np.zeros((m, m))
        np.add.at(counts, (parents.base_rows, givers[:, block]), 1)
        assert_array_equal(counts[expected == 0], 0)
        assert np.abs(counts - expected).max() < 6 * np.sqrt(n / m)
    # The blocks are chosen independently of each other.
    both = (givers[:, 1] == givers[:, 2]).mean()
    shares = expected / (n / m)
    assert abs(both - np.mean(np.sum(shares**2, axis=1))) < 6 * 0.5 / np.sqrt(n)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_matrix_of_givers_is_doubly_stochastic(seed):
    # Each row then gives its values as often as it is a base row, so that rare values
    # keep their frequency.
    m, k = 25, 6
    X = np.random.default_rng(seed).gamma(0.3, size=(m, 3))
    parents, *_ = chosen(X, 5000, k, seed, blocks=[1])
    near, own = parents.neighbors, parents.neighbors[:, 0]
    assert_array_equal(own, np.arange(m))
    first = np.flatnonzero(np.isin(parents.base_rows, own))
    first = first[np.unique(parents.base_rows[first], return_index=True)[1]]
    share = np.zeros((m, m))
    for row, givers in zip(own, parents.givers(None)[first], strict=True):
        np.add.at(share[row], givers, 1 / near.shape[1])
    np.testing.assert_allclose(share.sum(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_second_parents_are_donors_only_if_mutual(seed):
    X = np.random.default_rng(seed).gamma(0.3, size=(25, 3))
    parents, donors, givers = chosen(X, 3000, 5, seed)
    assert givers is None
    is_mutual = mutual_neighbors(parents, 25)[parents.base_rows, parents.second]
    assert_array_equal(parents.is_mutual, is_mutual)
    from_second = donors != parents.base_rows
    assert not (from_second & ~is_mutual).any()
    # The probability of the second parent is its weight.
    gap = (from_second - parents.position)[is_mutual].mean()
    assert abs(gap) < 6 * 0.5 / np.sqrt(is_mutual.sum())


@pytest.mark.parametrize("k", [3, 300])
@pytest.mark.parametrize("n_blocks", [1, 2, 7])
def test_the_size_of_a_batch_does_not_change_the_givers(k, n_blocks):
    X = np.random.default_rng(0).normal(size=(400, 3))
    parents, *expected = chosen(X, 100, k, 0, blocks=np.arange(1, 1 + n_blocks))
    mixable = SimpleNamespace(blocks=np.arange(1, 1 + n_blocks), alike=None)
    for size in (1, 7, 33):
        rng = np.random.RandomState(1)
        starts = range(0, 100, size)
        parts = [choose_donors(parents[s : s + size], mixable, rng) for s in starts]
        for found, whole in zip(zip(*parts, strict=True), expected, strict=True):
            assert_array_equal(np.concatenate(found), whole)


@pytest.mark.parametrize("bits", [16, 32])
def test_random_integers_are_uniform(bits):
    values = _random_integers(np.random.RandomState(0), 30_000, 3, bits)
    for column in values.T.astype(np.int64):
        assert chisquare(np.bincount(column * 11 >> bits, minlength=11)).pvalue > 1e-3
        assert chisquare(np.bincount(column % 8, minlength=8)).pvalue > 1e-3
    assert abs(np.corrcoef(values, rowvar=False) - np.eye(3)).max() < 0.03
