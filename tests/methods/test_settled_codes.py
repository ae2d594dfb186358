"""Codes are accurate in theta, or a warning is issued."""

import re
import warnings

import numpy as np
import pytest
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl.geometry import TensorPoset
from sklearn_pnl.geometry.many_body.newton_solvers import TiltSolver

SHAPE = (7, 2, 2, 7, 2, 2)


def dark_images(n):
    """Return digits enlarged to 28 x 28 pixels, with mostly black pixels."""
    images = load_digits().images[:n] / 16
    images = np.array([np.clip(zoom(image, 3.5, order=1), 0, 1) for image in images])
    images[images < 0.1] = 0
    return images.reshape(-1, *SHAPE)


def sparse_rows(n, seed):
    """Return rows in which nine of ten cells are zero."""
    rng = np.random.default_rng(seed)
    cells = rng.gamma(1.0, size=(n, *SHAPE))
    return cells * (rng.uniform(size=cells.shape) < 0.1)


def smooth_rows(n, seed):
    """Return rows without empty cells, similar to photographs."""
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(0, 0.5, size=(n, *[2] * 9)))


def codes_and_warned(projector, X):
    """Return codes and the number of rows that warnings name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        codes = projector.fit_transform(X)
    assert all(w.category is ConvergenceWarning for w in caught)
    texts = [str(w.message) for w in caught]
    n_warned = sum(int(re.search(r"(\d+) of \d+ (rows|proj)", t)[1]) for t in texts)
    return codes, n_warned


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("make", ["dark", "smooth"])
def test_theta_agrees_with_a_tight_tolerance(make, order):
    X = dark_images(4) if make == "dark" else smooth_rows(4, order)
    codes, n_warned = codes_and_warned(ManyBodyProjector(order), X)
    exact = ManyBodyProjector(order, tol=1e-12, max_iter=2000).fit_transform(X)
    assert n_warned == 0
    np.testing.assert_allclose(codes, exact, atol=0.01)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", [3, 4])
def test_warnings_count_rows_with_undetermined_theta(order, seed):
    X = sparse_rows(4, seed)
    codes, n_warned = codes_and_warned(ManyBodyProjector(order), X)
    with warnings.catch_warnings(action="ignore"):
        exact = ManyBodyProjector(order, tol=1e-12, max_iter=2000).fit_transform(X)
    is_off = np.abs(codes - exact).max(axis=1) > 0.01
    assert is_off.sum() <= n_warned


def test_the_convergence_warnings_contain_the_numbers_of_rows():
    X = dark_images(3)
    projector = ManyBodyProjector(3, max_iter=6)
    undetermined = pytest.warns(ConvergenceWarning, match="theta of 2 of 3")
    with undetermined, pytest.warns(ConvergenceWarning, match="1 of 3 .*max_iter=6"):
        projector.fit(X)


@pytest.mark.parametrize("seed", range(3))
def test_codes_on_any_set_of_elements_are_accurate(seed):
    """Test a base that is no set of interactions and too large for the dense solver."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(size=(20, 20)) < 0.5
    base[0, 0] = False
    X = rng.gamma(0.3, size=(4, 20, 20))
    codes, n_warned = codes_and_warned(ManyBodyProjector(base=base), X)
    exact = ManyBodyProjector(base=base, tol=1e-12, max_iter=2000).fit_transform(X)
    assert n_warned == 0
    np.testing.assert_allclose(codes, exact, atol=0.01)


# --- rows of noise ------------------------------------------------------------------


def noise(n, share, shape, seed):
    """Return rows of independent values, of which a share is not zero."""
    rng = np.random.default_rng(seed)
    size = (n, *shape)
    return rng.gamma(2, 40, size) * (rng.random(size) < share)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.8])
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("with_gaps", [False, True])
def test_rows_of_noise_have_codes_or_a_warning_that_names_the_offset(
    order, share, with_gaps
):
    # Cells of some projections are smaller than the smallest float.
    X = noise(12, share, (4, 7, 4, 7), 1)
    handle_missing = "ignore" if with_gaps else "error"
    if with_gaps:
        X = X[:3]
        X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
    projector = ManyBodyProjector(order, handle_missing=handle_missing)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        codes = projector.fit_transform(X)
    assert np.isfinite(codes).all()
    assert np.isfinite(projector.reconstruction_err_)
    assert all("offset" in str(w.message) for w in caught)
    assert all(w.category is ConvergenceWarning for w in caught)
    if share == 0.8:
        assert not caught


@pytest.mark.parametrize("seed", range(3))
def test_codes_of_noise_without_a_warning_are_accurate(seed):
    X = noise(8, 0.3, (4, 7, 4, 7), seed)
    with pytest.warns(ConvergenceWarning, match="theta of .* offset"):
        codes = ManyBodyProjector(3, offset=0.03).fit_transform(X)
    poset = TensorPoset((4, 7, 4, 7))
    p = (X + 0.03).reshape(8, -1)
    p /= p.sum(axis=1, keepdims=True)
    logs, residual, n_iter, settled = TiltSolver(poset, 3).log_solve(p, 1e-6, 100)
    assert settled.any() and not settled.all()
    assert (residual[settled] <= 1e-6).all()
    assert (n_iter < 100).any()
    exact = TiltSolver(poset, 3).log_solve(p[settled], 1e-12, 500)[0]
    assert np.abs(logs[settled] - exact).max() <= 0.02
    # Each row of logs is a point of the base: theta above the order is 0.
    theta = poset.moebius(logs.reshape(-1, 4, 7, 4, 7))
    assert np.abs(theta[:, poset.order > 3]).max() < 1e-8 * np.abs(logs).max()
    np.testing.assert_allclose(codes, theta[:, poset.order_mask(3)], atol=1e-6)


def test_cells_below_the_smallest_float_have_logs():
    # A model of order 2 satisfies q111 q100 q010 q001 = q000 q110 q101 q011.
    tiny = 1e-110
    p = np.full((2, 2, 2), 0.25)
    p[1, 1, 0] = p[1, 0, 1] = p[0, 1, 1] = tiny
    p[1, 1, 1] = 1e-300
    solver = TiltSolver(TensorPoset((2, 2, 2)), 2)
    logs, residual, _, settled = solver.log_solve(p.reshape(1, 8), 1e-6, 1000)
    assert np.isfinite(logs).all()
    assert residual[0] <= 1e-6
    assert not settled[0]
    signs = np.array([1, -1, -1, 1, -1, 1, 1, -1])
    assert abs(signs @ logs[0]) < 1e-6
