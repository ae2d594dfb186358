"""
===================
MNIST: random codes
===================

Is a new image determined by the code or by the neighbours? Codes with uniformly random
coordinates lie far from all training images, and a few training images are the nearest
to most of the codes. According to the paper, images fade with one neighbour, overlap
with a few neighbours, and collapse with 16 neighbours. The example requires MNIST.
"""

# %%
# Uniform in the range of the codes
# ---------------------------------
import matplotlib.pyplot as plt
import numpy as np
from paper_images import load_images, show_rows, tell
from sklearn.metrics import pairwise_distances

from sklearn_pnl import BackwardProjector, ManyBodyProjector
from sklearn_pnl.encoding import MixtureManifold

SHAPE, N_TRAIN, N_NEW = (7, 2, 2, 7, 2, 2), 2000, 200
X, y = load_images("mnist")
images, y = X[:N_TRAIN], y[:N_TRAIN]
tensors = images.reshape(-1, *SHAPE)
BASE = ManyBodyProjector(1)
projector = BackwardProjector(BASE).fit(tensors)
trained = projector.codes_
rng = np.random.default_rng(0)
codes = rng.uniform(trained.min(axis=0), trained.max(axis=0), (N_NEW, len(trained[0])))

far = np.median(projector.kneighbors(codes, 1)[0])
usual = np.median(projector.kneighbors(trained[:N_NEW], 2)[0][:, 1])
nearest = projector.kneighbors(codes, 1, return_distance=False)
print(f"KL to the nearest training image: {far:.2f} nats, usually {usual:.3f}")
print(f"{len(np.unique(nearest))} of {N_TRAIN} training images are nearest to any code")


def decode(manifold, k):
    """Return images of the random codes."""
    decoder = BackwardProjector(BASE, local_manifold=manifold, k_neighbors=k)
    return decoder.fit(tensors).inverse_transform(codes).reshape(-1, 28, 28)


numbers = (1, 4, 8, 16)
new = {f"mixture, k = {k}": decode(MixtureManifold(step=0.98), k) for k in numbers}
new["mixture, k = 1,\nstep 0.5"] = decode(MixtureManifold(step=0.5), 1)
for manifold in ("theta", "fiber"):
    for k in (1, 16):
        new[f"{manifold}, k = {k}"] = decode(manifold, k)

# %%
# Fading, overlap and collapse
# ----------------------------
# An image fades if its ink is spread. The sharpness is the mean of its pixels weighted
# by themselves, as a share of 255. Images overlap if their neighbours show different
# digits. They collapse if the distances between them become small, compared with the
# distances between real images.


def sharpness(rows):
    """Return the mean of the shown pixels weighted by themselves."""
    rows = np.clip(rows, 0, 255)
    return np.median((rows**2).sum(axis=(1, 2)) / rows.sum(axis=(1, 2))) / 255


def apart(rows):
    """Return the median distance of two images."""
    distances = pairwise_distances(rows.reshape(len(rows), -1))
    return np.median(distances[np.triu_indices(len(rows), 1)])


print(f"\n{'':25} sharpness  apart   real images: {sharpness(images):.2f}, 1")
real = apart(images[:N_NEW])
sharp, spread = ({name: f(rows) for name, rows in new.items()}
                 for f in (sharpness, apart))  # fmt: skip
for name in new:
    print(f"{' '.join(name.split()):25} {sharp[name]:9.2f} {spread[name] / real:6.2f}")


def mixed(codes, k):
    """Return the share of codes whose neighbours show different digits."""
    digits = y[projector.kneighbors(codes, k, return_distance=False)]
    return np.mean(digits.min(axis=1) != digits.max(axis=1))


names = list(new)
tell(
    "fading at k = 1",
    f"sharpness {sharp[names[0]]:.2f} (real images: {sharpness(images):.2f}), because "
    f"the image is a copy; {sharp[names[4]]:.2f} with a step of 0.5",
    sharp[names[0]] < 0.9 * sharpness(images),
)
tell(
    "overlaps at a few neighbours",
    f"{mixed(codes, 4):.0%} of the codes have neighbours of different digits at k = 4, "
    f"and {mixed(codes, 8):.0%} at k = 8; sharpness {sharp[names[1]]:.2f} and "
    f"{sharp[names[2]]:.2f}",
    sharp[names[1]] < 0.9 * sharp[names[0]],
)
tell(
    "collapse at k = 16",
    f"sharpness {sharp[names[3]]:.2f}; the median distance between new images is "
    f"{spread[names[3]] / real:.2f} times that between real images",
    sharp[names[3]] < 0.9 * sharp[names[0]],
    spread[names[3]] < 0.9 * spread[names[0]],
)

# %%
# The picture
# -----------
# Each column shows one code. With "mixture" the image consists of the neighbours: with
# one neighbour it is a copy. "theta" shows the code for any neighbours. "fiber" puts
# the strokes of the neighbours where the code has ink.
show_rows({name: rows[:10] for name, rows in new.items()}, "Images of random codes")
plt.show()
