"""
===========================
MNIST: number of neighbours
===========================

The same codes are decoded from 1, 4, 8 and 16 nearest training images. All other
settings are those of the paper. With one neighbour the new image is a copy. With more
neighbours it is a mean of more images. The example requires MNIST.
"""

# %%
# One to sixteen
# --------------
import matplotlib.pyplot as plt
import numpy as np
from paper_images import closest, load_images, show_rows, tell

from sklearn_pnl import Codes, PNLAugmenter

N_TRAIN, N_NEW = 2000, 50
X, y = load_images("mnist")
images = [X[y == digit][:N_TRAIN] for digit in range(10)]
known, classes = np.concatenate(images), np.repeat(np.arange(10), N_TRAIN)


def draw(n_neighbors):
    """Return new images of each class."""
    augmenter = PNLAugmenter(Codes.paper(embedding=None), k_neighbors=n_neighbors)
    return np.stack([augmenter.fit(rows).sample(N_NEW, 0) for rows in images])


numbers = (1, 4, 8, 16)
new = {k: draw(k) for k in numbers}

# %%
# Numbers
# -------
# A copy is nearer to a training image than real images are to each other. The sharpness
# is the mean of the pixels weighted by themselves, as a share of 255.
usual = np.median(closest(known[1::2], known[::2][:: N_TRAIN // N_NEW])[0])


def sharpness(rows):
    """Return the mean of the pixels weighted by themselves."""
    return np.median((rows**2).sum(axis=(-2, -1)) / rows.sum(axis=(-2, -1))) / 255


print(f"real images: distance {usual:.0f}, sharpness {sharpness(known):.2f}")
print(" k  distance  same class  sharpness")
right, distances = {}, {}
for k, rows in new.items():
    distance, near = closest(known, rows.reshape(-1, 784))
    right[k] = np.mean(classes[near].reshape(10, -1) == np.arange(10)[:, None])
    distances[k] = np.median(distance)
    print(f"{k:2} {distances[k]:9.0f} {right[k]:11.1%} {sharpness(rows):10.2f}")
tell(
    "k = 1 copies the neighbour",
    f"distance to the nearest training image {distances[1]:.0f} (real images: "
    f"{usual:.0f})",
    distances[1] < 0.1 * usual,
)
later = [right[k] for k in numbers[1:]]
tell(
    "robust for larger k",
    f"the nearest training image has the same class for {min(later):.1%} to "
    f"{max(later):.1%}; sharpness {sharpness(new[4]):.2f} at k = 4 and "
    f"{sharpness(new[16]):.2f} at k = 16",
    min(later) > 0.95,
    sharpness(new[16]) > 0.9 * sharpness(new[4]),
)

# %%
# The picture
# -----------
firsts = {f"k = {k}": rows[:, 0] for k, rows in new.items()}
show_rows(firsts, "New images by the number of training images that make them")
plt.show()
