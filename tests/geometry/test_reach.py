"""Reachable ranges, and irreducible conflicts of constraints."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from sklearn_pnl.geometry.convex.reach import Program, shortest


@pytest.mark.parametrize("seed", range(20))
def test_conflicts_are_irreducible_and_contain_the_remaining_range(seed):
    r = np.random.default_rng(seed)
    d, c = 4, 6
    a, width = r.integers(-2, 3, size=(c, d)).astype(float), r.uniform(0, 1, c)
    lower = a @ r.uniform(0, 1, d) + r.normal(size=c) * 0.5
    upper = lower + width * (r.random(c) < 0.5)
    a[0, 0] = 1

    def reach(cost, kinds):
        rows = [*kinds]
        return linprog(
            cost, np.vstack([a[rows], -a[rows]]), np.r_[upper[rows], -lower[rows]],
            bounds=[(0, 1)] * d,
        )  # fmt: skip

    box = np.zeros(d), np.ones(d)
    conflict = Program(a, lower, upper, *box, *box).conflict()
    if conflict is None:
        assert reach(np.zeros(d), range(c)).status == 0
        return
    k = conflict.k
    others = [j for j in range(c) if j != k]
    assert conflict.is_only == (reach(np.zeros(d), others).status == 0)
    if not conflict.is_only:
        # No single constraint of the contradiction can be changed.
        for j in conflict.others:
            rest = [i for i in range(c) if i != j]
            assert reach(np.zeros(d), rest).status == 2
        others = range(k)
    assert_allclose(conflict.least, reach(a[k], others).fun, atol=1e-7)
    assert_allclose(conflict.most, -reach(-a[k], others).fun, atol=1e-7)
    assert reach(np.zeros(d), [*conflict.others, k]).status == 2
    n_fewer = max(len(conflict.others) - 1, 0)
    for fewer in combinations(conflict.others, n_fewer) if conflict.others else ():
        assert reach(np.zeros(d), [*fewer, k]).status == 0


def test_the_shortest_number_lies_in_the_interval():
    assert shortest(852806.714159, 0, 852806.714159) == "852806.7"
    assert float(shortest(0.98083533, 0.98083533, 0.98083533)) == 0.98083533
