"""
=====================================
Shared functions of the MNIST figures
=====================================

The examples on MNIST and CIFAR-10 import this file, which must lie in the same folder.
The images come from ``mnist.npz`` and ``cifar10.npz`` in the folder
``SKLEARN_PNL_DATA`` (arrays ``X_train`` and ``y_train`` with images of 28 x 28 and 32 x
32 x 3 pixels), or from OpenML through scikit-learn, which caches downloads. If no
images are available, an example prints a message and ends.
"""

import os
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

# theta of single dark images is not determined; the figures show points, which are.
warnings.filterwarnings(
    "ignore", "(ManyBody|Backward)Projector: theta", ConvergenceWarning
)

# OpenML has channels first, and training and test images in one.
OPENML = {
    "mnist": ("mnist_784", 60_000, (28, 28)),
    "cifar10": ("CIFAR_10", 50_000, (3, 32, 32)),
}
CIFAR_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer",
    "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


def load_images(name):
    """Return training images from 0 to 255 in single precision, and classes."""
    folder = os.environ.get("SKLEARN_PNL_DATA")
    path = Path(folder or "") / f"{name}.npz"
    if folder and path.exists():
        with np.load(path, allow_pickle=False) as file:
            return file["X_train"].astype(np.float32), file["y_train"].astype(int)
    title, n_train, shape = OPENML[name]
    try:
        found = fetch_openml(title, version=1, as_frame=False, parser="liac-arff")
    except OSError as error:
        why = "is not set" if not folder else f"has no {path.name}"
        print(
            f"This figure needs the images of {title}: the folder that "
            f"SKLEARN_PNL_DATA names {why}, and OpenML was not reached ({error})."
        )
        sys.exit(0)
    images = found.data[:n_train].reshape(-1, *shape).astype(np.float32)
    if len(shape) == 3:
        images = np.moveaxis(images, 1, -1)
    return images, found.target[:n_train].astype(int)


def closest(images, new):
    """Return the distances to the nearest training images, and their indices."""
    search = NearestNeighbors(n_neighbors=1, algorithm="brute")
    search.fit(images.reshape(len(images), -1))
    distance, near = search.kneighbors(new.reshape(len(new), -1).astype(np.float32))
    return distance[:, 0], near[:, 0]


def show_rows(images, title, column_names=(), high=255):
    """Draw rows of images, with or without colours, by the names of the rows."""
    n, m = len(images), max(map(len, images.values()))
    size = 0.85 * m + 1.5, 0.95 * n + 0.4
    figure, axes = plt.subplots(n, m, figsize=size, squeeze=False, layout="constrained")
    figure.suptitle(title)
    for line, (name, row) in zip(axes, images.items(), strict=True):
        for axis, image in zip(line, row, strict=False):
            # Channels have no scale of their own in matplotlib.
            image = np.clip(image / high, 0, 1)
            axis.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        for axis in line[len(row) :]:
            axis.set_frame_on(False)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for axis in axes.ravel():
        axis.set(xticks=[], yticks=[])
    for axis, name in zip(axes[0], column_names, strict=False):
        axis.set_title(name, fontsize="medium")


def tell(paper, seen, *holds):
    """Print a claim of the paper, the result, and the verdict."""
    verdict = "agrees" if all(holds) else "in part" if any(holds) else "differs"
    print(f"\npaper:   {paper}\nseen:    {seen}\nverdict: {verdict}")
