"""Detection of binary columns that are copied together."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.columns.discrete import (
    find_blocks,
    find_sparse_blocks,
    group_numbers,
    masks_of,
    move_to_donor,
)
from sklearn_pnl.columns.relations import find_relations
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.frames import TableReader, read_table


def relations(X):
    """Return the relations of a table without value support."""
    X = np.asarray(X, dtype=float)
    return find_relations(read_table(TableReader(None), X, missing=True), None)


def blocks(X):
    """Return the sets of binary columns that belong together."""
    found = relations(X)
    columns = np.flatnonzero(found.columns.binary)
    return {
        frozenset(columns[found.blocks == b].tolist()) for b in np.unique(found.blocks)
    }


def test_related_binary_columns_form_a_block():
    rng = np.random.default_rng(0)
    n = 400
    run = np.eye(3)[rng.integers(0, 3, n)]
    either = rng.integers(0, 3, n)
    implied = rng.integers(0, 2, n)
    alone = rng.integers(0, 2, n)
    X = np.column_stack(
        [run, either == 1, alone, either == 2, implied * rng.integers(0, 2, n), implied]
    ).astype(float)
    X = np.column_stack([X, rng.normal(size=n)])
    assert blocks(X) == {
        frozenset({0, 1, 2}), frozenset({3, 5}), frozenset({4}), frozenset({6, 7})
    }  # fmt: skip
    # Binary columns can have any two values, in any order.
    expected = blocks(X)
    X[:, :8] = np.where(rng.integers(0, 2, 8), 2 - X[:, :8], 7 * X[:, :8] - 3)
    assert blocks(X) == expected


@pytest.mark.parametrize("seed", range(4))
def test_missing_cells_do_not_hide_blocks(seed):
    rng = np.random.default_rng(seed)
    implied, alone = rng.integers(0, 2, (2, 400))
    X = np.column_stack([implied, alone, implied * rng.integers(0, 2, 400)])
    X = np.where(rng.uniform(size=X.shape) < 0.2, np.nan, X)
    assert blocks(X) == {frozenset({0, 2}), frozenset({1})}


def test_binary_columns_of_a_given_equality_form_a_block():
    rng = np.random.default_rng(0)
    # Any two flags have all four combinations, so that only a + b = c + d connects
    # them.
    either = rng.integers(0, 2, (80, 2))
    other = np.where(rng.integers(0, 2, (80, 1)), either, either[:, ::-1])
    X = np.column_stack([either, other, rng.uniform(size=(80, 8))])
    balance = ColumnConstraint({0: 1, 1: 1, 2: -1, 3: -1}, equal=0)
    rows = PNLAugmenter(equalities=balance).fit(X).sample(400, random_state=0)
    assert_array_equal(rows[:, :2].sum(axis=1), rows[:, 2:4].sum(axis=1))


def blocks_by_definition(flags, keys):
    """Return the blocks of binary columns (n, b), one combination at a time."""
    n, b = flags.shape
    least = max(5, 2 * np.log(b))

    def is_excluded(first, second):
        expected = first.sum() * second.sum() / n
        return expected >= least and not (first & second).any()

    values = [(flags == 0), (flags == 1)]
    linked = [
        [
            any(is_excluded(u[:, i], v[:, j]) for u, v in product(values, values))
            for j in range(b)
        ]
        for i in range(b)
    ]
    blocks = 1 + connected_components(np.array(linked), directed=False)[1]
    for key, j in product(keys, range(b)):
        levels = [key == level for level in np.unique(key)]
        follows = all(np.ptp(flags[level, j]) == 0 for level in levels)
        if follows or any(is_excluded(u[:, j], v) for u, v in product(values, levels)):
            blocks[blocks == blocks[j]] = 0
    return blocks


@pytest.mark.parametrize("n", [30, 300, 3000])
@pytest.mark.parametrize("seed", range(5))
def test_blocks_equal_their_definition(seed, n):
    rng = np.random.default_rng(seed)
    flags = (rng.random((n, 12)) < rng.uniform(0.02, 0.9, 12)).astype(float)
    flags[:, 3] *= flags[:, 2]
    flags[:, 5] *= 1 - flags[:, 4]
    flags[:, 7] = np.maximum(flags[:, 7], 1 - flags[:, 6])
    kind, other = rng.integers(0, 4, n), rng.integers(0, n // 3, n)
    flags[kind == 1, 9] = 0
    flags[:, 10] = np.isin(other, [2, 3, 5])
    least, most = np.zeros(12), np.ones(12)
    expected = blocks_by_definition(flags, [kind, other])
    for order in (np.arange(n), rng.permutation(n)):
        masks = masks_of(flags, np.arange(12), least, most, has_missing=False)
        assert masks[1].shape == (n, 1)
        found = find_blocks(*masks, np.zeros((0, 12)), order)
        general = masks_of(flags, np.arange(12), least, most)
        assert_array_equal(find_blocks(*general, np.zeros((0, 12)), order), found)
        sparse = find_sparse_blocks(csr_array(flags), least, most, np.zeros((0, 12)))
        assert_array_equal(sparse, found)
        found = move_to_donor(found, *masks, [kind, other], order)
        same = found[:, None] == found
        assert_array_equal(same, expected[:, None] == expected)
        assert_array_equal(found == 0, expected == 0)


@pytest.mark.parametrize("n", [7, 30, 1300])
def test_missing_cells_are_in_no_combination(n):
    rng = np.random.default_rng(n)
    flags = (rng.random((n, 12)) < rng.uniform(0.02, 0.9, 12)).astype(float)
    flags[:, 3] *= flags[:, 2]
    flags[rng.random(flags.shape) < 0.2] = np.nan
    # The rare value of a column is only known where the other column is missing.
    flags[:, 1] = np.where(np.arange(n) % 2, flags[:, 1], np.nan)
    flags[:, 0] = np.where(np.arange(n) % 2, np.nan, flags[:, 0])
    masks = masks_of(flags, np.arange(12), np.zeros(12), np.ones(12))
    found = find_blocks(*masks, np.zeros((0, 12)), rng.permutation(n))
    expected = blocks_by_definition(flags, [])
    same = found[:, None] == found
    assert_array_equal(same, expected[:, None] == expected)


@pytest.mark.parametrize("seed", range(5))
def test_chance_links_few_columns(seed):
    rng = np.random.default_rng(seed)
    high = rng.random((1000, 300)) < rng.beta(0.3, 3, 300)
    found = find_blocks(
        high, np.ones_like(high), np.zeros((0, 300)), rng.permutation(1000)
    )
    assert len(np.unique(found)) >= 295


def implied_by_definition(rows, keys, columns):
    """Return the implied values of columns of rows (n, D), one level at a time."""
    implied, least = set(), max(5, 2 * np.log(rows.shape[1]))
    for key, j in product(keys, columns):
        for level in np.unique(key[~np.isnan(key)]):
            x = rows[key == level, j]
            values = np.unique(x[~np.isnan(x)])
            if len(values) == 1:
                others = np.mean(rows[~np.isnan(rows[:, j]), j] != values[0])
                if len(x) * others >= least:
                    implied.add((j, values[0]))
    return implied


@pytest.mark.parametrize("n", [40, 400])
@pytest.mark.parametrize("missing", [0, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_implied_values_equal_their_definition(seed, missing, n):
    rng = np.random.default_rng(seed)
    kind, flag = rng.integers(0, 6, n), rng.integers(0, 2, n)
    zeros = np.where(rng.random(n) < 0.9, 0, rng.normal(size=n))
    amount = np.where(np.isin(kind, [1, 4]), 3 * kind, rng.gamma(2, size=n))
    rows = np.column_stack([zeros, amount, flag * rng.poisson(3, n), flag]).astype(
        float
    )
    rows[:, :3][rng.random((n, 3)) < missing] = np.nan
    frame = pd.DataFrame(rows).rename(columns=str).assign(kind=kind.astype(str))
    found = find_relations(read_table(TableReader(), frame, missing=True), None)
    pairs = {(j, value) for j, values in found.implied.items() for value in values}
    assert pairs == implied_by_definition(rows, [kind.astype(float), flag], [0, 1, 2])
    assert n < 400 or pairs == {(1, 3), (1, 12), (2, 0)}


@pytest.mark.parametrize("shape", [(0, 3), (30, 0), (200, 2), (200, 90)])
def test_groups_are_numbered_in_ascending_order(shape):
    rng = np.random.default_rng(0)
    # Ninety columns of four values have more combinations than an integer can number.
    keys = rng.integers(0, 4, shape)[rng.integers(0, max(1, shape[0] // 4), shape[0])]
    unique = [tuple(key) for key in np.unique(keys, axis=0)] if shape[1] else [()]
    found = group_numbers(keys.astype(float))
    assert_array_equal(found, [unique.index(tuple(key)) for key in keys])
