"""Codes are accurate in theta, or a warning is issued."""

import re
import warnings

import numpy as np
import pytest
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklearn_pnl import ManyBodyProjector

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
    projector = ManyBodyProjector(3, max_iter=4)
    undetermined = pytest.warns(ConvergenceWarning, match="theta of 2 of 3")
    with undetermined, pytest.warns(ConvergenceWarning, match="1 of 3 .*max_iter=4"):
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
