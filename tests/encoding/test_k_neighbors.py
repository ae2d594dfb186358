"""The default number of neighbours and its limits."""

import pytest

from sklearn_pnl.encoding.k_neighbors import clip_neighbors, default_k_neighbors


@pytest.mark.parametrize(
    "m, k",
    [(1, 1), (2, 2), (7, 7), (17, 7), (20, 7), (23, 7), (24, 8), (30, 10), (999, 10)],
)
def test_default_is_a_third_of_the_rows_from_7_to_10(m, k):
    assert default_k_neighbors(m) == k
    assert clip_neighbors(k, m + 1) == k


def test_larger_classes_have_no_fewer_neighbours():
    numbers = [default_k_neighbors(m) for m in range(1, 100)]
    assert numbers == sorted(numbers)
