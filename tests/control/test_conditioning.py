"""Pairs of rows that are mixed so that a wanted value comes out, against quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp

from sklearn_pnl import ColumnConstraint, MixupDraws, PNLAugmenter
from sklearn_pnl.control.conditioning import Condition, _Segments
from sklearn_pnl.draws import TrainingCodes


def mixtures(X, values, condition, n, seed=0):
    """Values between the rows that are mixed, before any projection."""
    gaps = ((X[:, None] - X) ** 2).sum(axis=2)

    def nearest(codes, k, among, like=None):
        rows = [int(np.flatnonzero((X == code).all(axis=1))[0]) for code in codes]
        return np.argsort(gaps[rows], axis=1, kind="stable")[:, :k]

    training = TrainingCodes(X, 5, nearest)
    rng = np.random.RandomState(seed)
    draw = MixupDraws(0).start(training, n, rng, condition)
    _, parents, weights = draw(slice(0, n))
    return np.einsum("nk,nkc->nc", weights, values[parents])


@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_drawn_between_which_the_constraint_is_met(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 4))
    values = X @ rng.normal(size=(4, 2))
    scale = values.std(axis=0)
    for n_values in (1, 2):
        given = values[:, :n_values]
        wanted = np.quantile(given, 0.8, axis=0)[None]
        found = mixtures(X, given, Condition(given, wanted, wanted), 300, seed)
        off = np.abs(found - wanted) / scale[:n_values]
        random = np.abs(mixtures(X, given, None, 300, seed) - wanted)
        assert off.mean() < 0.25 * n_values
        assert off.mean() < 0.4 * (random / scale[:n_values]).mean()


def test_a_wanted_value_a_row_draws_each_from_its_own_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    values = X[:, :1]
    wanted = np.linspace(-1.5, 1.5, 100)[:, None]
    found = mixtures(X, values, Condition(values, wanted, wanted), 100)
    assert np.corrcoef(found[:, 0], wanted[:, 0])[0, 1] > 0.97
    interval = Condition(values, np.array([[0.5]]), np.array([[1.5]]))
    found = mixtures(X, values, interval, 500)
    assert np.mean((found > 0.4) & (found < 1.6)) > 0.9
    # Inside it, as the rows are, and not at one end.
    inside = values[(values > 0.5) & (values < 1.5)]
    assert abs(found.mean() - inside.mean()) < 0.1
    assert abs(found.std() - inside.std()) < 0.1


def random_segments(seed, n_values):
    rng = np.random.default_rng(seed)
    start, step = rng.normal(size=(2, 30, n_values))
    step[:3] *= 1e-3
    return start, step, rng.normal(size=(4, n_values))


@pytest.mark.parametrize("n_values", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_weights_are_the_integrals_of_the_kernel(seed, n_values):
    start, step, targets = random_segments(seed, n_values)
    segments = _Segments.of(start[None], step[None], targets)
    length = np.linalg.norm(step, axis=1)
    for t, target in enumerate(targets):
        width = segments.width[t] * length
        np.testing.assert_allclose(width, width[0])

        def log_kernel(x, k, target=target, width=width[0]):
            gap = start[k] + np.multiply.outer(x, step[k]) - target
            return -(gap**2).sum(axis=-1) / (2 * width**2)

        expected = []
        for k in range(len(start)):
            peak = log_kernel(np.linspace(0, 1, 2001), k).max()
            mass = quad(
                lambda x, k=k, peak=peak: np.exp(log_kernel(x, k) - peak),
                0, 1, limit=200, points=[np.clip(segments.centre[t, k], 0, 1)],
            )[0]  # fmt: skip
            expected.append(peak + np.log(mass))
        expected = np.array(expected) - np.max(expected)
        likely = expected > -200
        np.testing.assert_allclose(
            segments.weight[t][likely], expected[likely], atol=1e-5
        )
        # Drawn in proportion to them.
        share = np.exp(expected) / np.exp(expected).sum()
        drawn = segments.choose(np.full(20_000, t), (np.arange(20_000) + 0.5) / 20_000)
        counts = np.bincount(drawn, minlength=len(start)) / 20_000
        np.testing.assert_allclose(counts, share, atol=1e-3)


@pytest.mark.parametrize("seed", range(2))
def test_positions_follow_the_kernel_on_a_grid(seed):
    start, step, targets = random_segments(seed, 2)
    segments = _Segments.of(start[None], step[None], targets)
    uniform = (np.arange(400) + 0.5) / 400
    middle = (np.arange(20_000) + 0.5) / 20_000
    for t, target in enumerate(targets):
        width = segments.width[t, 0] * np.linalg.norm(step[0])
        for k in np.argsort(-segments.weight[t])[:8]:
            gap = start[k] + middle[:, None] * step[k] - target
            log = -(gap**2).sum(axis=1) / (2 * width**2)
            until = np.exp(log - logsumexp(log)).cumsum()
            found = segments.position(np.full(400, t), np.full(400, k), uniform)
            assert np.all((found >= 0) & (found <= 1))
            reached = np.interp(found, middle, until)
            np.testing.assert_allclose(reached, uniform, atol=2e-3)


def test_targets_far_from_all_rows_draw_the_nearest_ends():
    values = np.linspace(0, 1, 50)[:, None]
    wanted = np.array([[1e6]])
    found = mixtures(values, values, Condition(values, wanted, wanted), 50)
    assert found.min() > 0.85
    assert np.isfinite(found).all()


@pytest.mark.parametrize("wanted", [1e20, 1e200, -1e300])
@pytest.mark.parametrize("each", [False, True])
def test_what_lies_however_far_is_refused_with_what_is_reached(wanted, each):
    X = np.random.default_rng(0).gamma(2.0, size=(60, 3))
    asked = ColumnConstraint(0, equal=np.full(5, wanted) if each else wanted)
    with pytest.raises(ValueError, match=r"x0 asks for .*; .* it reaches 0 to"):
        PNLAugmenter().fit(X).sample(5, random_state=0, constraints=asked)


@pytest.mark.parametrize("exponent", [-900, 900])
def test_pairs_are_those_of_values_in_any_unit(exponent):
    """Powers of two change no digit, where squares of values overflow too."""
    X, unit = np.random.default_rng(0).gamma(2.0, size=(60, 3)), 2.0**exponent

    def drawn(scale):
        asked = ColumnConstraint(0, equal=2 * scale)
        augmenter = PNLAugmenter().fit(X * scale)
        return augmenter.sample(9, 0, constraints=asked, return_parents=True)

    (rows, parents), (far, others) = drawn(1), drawn(unit)
    np.testing.assert_array_equal(parents, others)
    np.testing.assert_allclose(rows * unit, far, rtol=1e-9)
