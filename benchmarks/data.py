"""Real data sets from the folder that ``SKLEARN_PNL_DATA`` names, or from OpenML."""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml

# Images that scikit-learn can fetch: how many of them are for training, and their
# shape. OpenML has channels first, and training and test images in one.
OPENML = {
    "mnist": ("mnist_784", 60_000, (28, 28)),
    "cifar10": ("CIFAR_10", 50_000, (3, 32, 32)),
}


def load(name):
    """Load ``<name>.npz`` as a dict of arrays; exit with a message if it is missing."""
    folder = os.environ.get("SKLEARN_PNL_DATA")
    path = Path(folder or "") / f"{name}.npz"
    if folder and path.exists():
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    missing = f"that folder has no {path.name}" if folder else "it is not set"
    message = (
        f"This benchmark reads {path.name} from the folder that the environment "
        f"variable SKLEARN_PNL_DATA names; {missing}."
    )
    if name not in OPENML:
        sys.exit(message)
    try:
        return _fetch(*OPENML[name])
    except OSError as error:
        sys.exit(f"{message} OpenML was not reached either ({error}).")


def _fetch(title, n_train, shape):
    found = fetch_openml(title, version=1, as_frame=False, parser="liac-arff")
    X = found.data.reshape(-1, *shape).astype(np.uint8)
    X = np.moveaxis(X, 1, -1) if len(shape) == 3 else X
    y = found.target.astype(np.uint8)
    return {
        "X_train": X[:n_train], "y_train": y[:n_train],
        "X_test": X[n_train:], "y_test": y[n_train:],
    }  # fmt: skip
