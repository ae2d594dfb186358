"""The data that the speed benchmarks run on, each ready for an estimator."""

import numpy as np

from sklearn_pnl import PrimeFactorReshaper

from ..data import load


def mnist_images(n=60_000):
    """Load flat rows (n, 784) of pixels 0 to 255 in float64, and the digits."""
    arrays = load("mnist")
    X, y = arrays["X_train"][:n], arrays["y_train"][:n]
    return X.reshape(len(X), -1).astype(np.float64), y.astype(int)


def mnist(n=60_000, dtype=np.float64):
    """Load tensors (n, 7, 2, 2, 7, 2, 2) of pixels 0 to 255."""
    X, _ = mnist_images(n)
    reshaper = PrimeFactorReshaper(input_shape=(28, 28))
    return reshaper.fit_transform(X.astype(dtype, copy=False))


def cifar10(n=20_000, dtype=np.float64):
    """Load tensors (n, 2, ..., 2, 3) of pixels 0 to 255: ten modes, and colours."""
    X = load("cifar10")["X_train"][:n]
    return PrimeFactorReshaper().fit_transform(X.astype(dtype))


def speech_commands(n=2_700):
    """Load clips (n, 16000) in int16 as recorded, and the spoken words.

    Sound has negative values, which the sampler maps to non-negative values.
    """
    arrays = load("speech_commands")
    # Every word: the clips lie word by word in the file.
    chosen = np.linspace(0, len(arrays["X"]) - 1, n).astype(int)
    return arrays["X"][chosen], arrays["y"][chosen]


def imbalanced_table(n=1_000_000, n_features=20):
    """Make two overlapping classes of correlated features, one with 10% of rows."""
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=n) < 0.1).astype(int)
    mixing = rng.standard_normal((n_features, n_features)) / np.sqrt(n_features)
    X = rng.standard_normal((n, n_features)) @ mixing
    X[:, : n_features // 2] += y[:, None]
    return X, y


def synthetic_tensors(n, shape):
    """Make tensors with low-order structure: noise of a cell times gradients."""
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(n, *shape))
    for mode, length in enumerate(shape):
        along = [1] * (1 + len(shape))
        along[0], along[1 + mode] = n, length
        X *= rng.uniform(0.5, 1.5, size=along)
    return X
