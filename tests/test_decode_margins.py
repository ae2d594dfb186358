"""Rows with wanted margins, by :meth:`BackwardProjector.decode_margins`."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn import config_context

from sklearn_pnl import BackwardProjector
from sklearn_pnl.geometry import RakingError, TensorPoset


def test_margins_of_images_are_met():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(40, 6, 8)) * (rng.random((40, 6, 8)) < 0.7)
    projector = BackwardProjector(order=1, offset=1e-3).fit(X)
    wanted = rng.gamma(3.0, size=(5, 6, 8))
    margins = {(0,): wanted.sum(axis=2), (1,): wanted.sum(axis=1)}
    rows = projector.decode_margins(margins)
    size = wanted.sum(axis=(1, 2)).max()
    np.testing.assert_allclose(rows.sum(axis=2), margins[(0,)], atol=1e-8 * size)
    np.testing.assert_allclose(rows.sum(axis=1), margins[(1,)], atol=1e-8 * size)
    assert rows.min() >= -1e-3
    one = projector.decode_margins({(1,): margins[(1,)][:2]})
    np.testing.assert_allclose(one.sum(axis=1), margins[(1,)][:2], atol=1e-8 * size)


@pytest.mark.parametrize("seed", range(3))
def test_decoded_margins_are_the_tilt_of_the_mean_row(seed):
    # All rows are near here, so that the reference is known.
    rng = np.random.default_rng(seed)
    X, offset = rng.gamma(1.0, size=(8, 3, 4)), 0.01
    projector = BackwardProjector(n_neighbors=8, offset=offset, with_mass=True).fit(X)
    wanted = rng.gamma(2.0, size=(3, 4))
    margins = {(0,): wanted.sum(axis=1)[None], (1,): wanted.sum(axis=0)[None]}
    rows = projector.decode_margins(margins, tol=1e-12)
    lifted = X + offset
    reference = (lifted / lifted.sum(axis=(1, 2), keepdims=True)).mean(axis=0)
    lifted = wanted + offset
    right = np.concatenate([lifted.sum(axis=1), lifted.sum(axis=0)])

    def dual(y):
        q = reference * np.exp(y[:3, None] + y[3:])
        return q.sum() - y @ right, np.concatenate(
            [q.sum(axis=1), q.sum(axis=0)]
        ) - right

    y = minimize(dual, np.zeros(7), jac=True, options={"gtol": 1e-10}).x
    expected = reference * np.exp(y[:3, None] + y[3:]) - offset
    np.testing.assert_allclose(rows[0], expected, atol=1e-6)


def test_rows_with_such_margins_are_heeded():
    # Two kinds of table, told by their rows' sums, with opposite odds ratios.
    rng = np.random.default_rng(0)
    kinds = np.array([[[8.0, 1], [1, 2]], [[1.0, 2], [8, 1]]])
    label = rng.integers(2, size=60)
    X = kinds[label] * rng.uniform(0.8, 1.2, size=(60, 2, 2))
    projector = BackwardProjector(order=1, offset=1e-3).fit(X)
    margins = {m: X.sum(axis=2 - m[0]) for m in [(0,), (1,)]}
    rows = projector.decode_margins(margins)
    odds = np.log(rows[:, 0, 0] * rows[:, 1, 1] / (rows[:, 0, 1] * rows[:, 1, 0]))
    np.testing.assert_array_equal(odds > 0, label == 0)
    assert np.abs(rows - X).mean() < 0.5


def test_contradictory_margins_are_refused():
    X = np.random.default_rng(0).uniform(size=(20, 2, 3))
    projector = BackwardProjector().fit(X)
    with pytest.raises(RakingError, match=r"\(0,\) and \(1,\) have different totals"):
        projector.decode_margins({(0,): [[1.0, 1.0]], (1,): [[1.0, 1.0, 1.0]]})


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_the_container_of_codes_is_nothing_to_margins(container):
    pytest.importorskip(container)
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(
        np.random.default_rng(0).uniform(size=(20, 6)), columns=[*"abcdef"]
    )
    projector = BackwardProjector(poset=TensorPoset((2, 3))).fit(X)
    margins = {(0,): [[1.0, 2.0]]}
    with config_context(transform_output=container):
        rows = projector.decode_margins(margins)
    np.testing.assert_array_equal(rows, projector.decode_margins(margins))
