"""The data that the speed benchmarks run on, each ready for an estimator."""

import numpy as np

from sklearn_pnl import PrimeFactorReshaper

from ..data import load


def mnist_images(n=60_000):
    """Flat rows (n, 784) of pixels 0..255 in float64, and digits."""
    arrays = load("mnist")
    X, y = arrays["X_train"][:n], arrays["y_train"][:n]
    return X.reshape(len(X), -1).astype(np.float64), y.astype(int)


def mnist(n=60_000, dtype=np.float64):
    """Tensors (n, 7, 2, 2, 7, 2, 2) of pixels 0..255."""
    X, _ = mnist_images(n)
    reshaper = PrimeFactorReshaper(input_shape=(28, 28))
    return reshaper.fit_transform(X.astype(dtype, copy=False))


def cifar10(n=20_000, dtype=np.float64):
    """Tensors (n, 2, .., 2, 3) of pixels 0..255: ten modes of 2, and the colours."""
    X = load("cifar10")["X_train"][:n]
    return PrimeFactorReshaper().fit_transform(X.astype(dtype))


def speech_commands(n=2_700):
    """Clips (n, 16000) as they are recorded, in int16, and words.

    A sound goes below zero: mapping it to non-negative values is the sampler's work.
    """
    arrays = load("speech_commands")
    # Every word: the clips lie word by word in the file.
    chosen = np.linspace(0, len(arrays["X"]) - 1, n).astype(int)
    return arrays["X"][chosen], arrays["y"][chosen]


def imbalanced_table(n=1_000_000, n_features=20):
    """Two overlapping classes of correlated features, 10% of rows in the rare one."""
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=n) < 0.1).astype(int)
    mixing = rng.standard_normal((n_features, n_features)) / np.sqrt(n_features)
    X = rng.standard_normal((n, n_features)) @ mixing
    X[:, : n_features // 2] += y[:, None]
    return X, y


def synthetic_tensors(n, shape):
    """Tensors with low-order structure: noise of one cell times shared gradients."""
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(n, *shape))
    for mode, length in enumerate(shape):
        along = [1] * (1 + len(shape))
        along[0], along[1 + mode] = n, length
        X *= rng.uniform(0.5, 1.5, size=along)
    return X
