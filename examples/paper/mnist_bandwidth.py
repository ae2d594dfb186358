"""
==============================
MNIST: effect of the bandwidth
==============================

The same images with noise of five bandwidths, from 0.01 to 0.5, in codes of order 1.
All other settings are those of the paper. All bandwidths use the same random numbers,
so that a column of the picture shows the effect of the bandwidth. The example requires
MNIST.
"""

# %%
# Five bandwidths
# ---------------
import matplotlib.pyplot as plt
import numpy as np
from paper_images import closest, load_images, show_rows, tell

from sklearn_pnl import Codes, PNLAugmenter
from sklearn_pnl.methods import KernelDraws

N_TRAIN, N_NEW = 2000, 50
X, y = load_images("mnist")
images = [X[y == digit][:N_TRAIN] for digit in range(10)]
known, classes = np.concatenate(images), np.repeat(np.arange(10), N_TRAIN)


def draw(bandwidth):
    """Return new images of each class."""
    method = Codes.paper(draws=KernelDraws(bandwidth=bandwidth), embedding=None)
    augmenter = PNLAugmenter(method, k_neighbors=8)
    return np.stack([augmenter.fit(rows).sample(N_NEW, 0) for rows in images])


bandwidths = (0.01, 0.05, 0.1, 0.2, 0.5)
new = {bandwidth: draw(bandwidth) for bandwidth in bandwidths}

# %%
# Numbers
# -------
# The table shows the distance to the closest training image, how often this image is of
# the same class, and the distance to the new image with the smallest bandwidth.
print("bandwidth  distance  same class  moved")
right, distances = {}, {}
for bandwidth, rows in new.items():
    distance, near = closest(known, rows.reshape(-1, 784))
    right[bandwidth] = np.mean(classes[near].reshape(10, -1) == np.arange(10)[:, None])
    distances[bandwidth] = np.median(distance)
    moved = np.median(np.linalg.norm((rows - new[0.01]).reshape(-1, 784), axis=1))
    print(
        f"{bandwidth:9} {distances[bandwidth]:9.0f} {right[bandwidth]:11.1%}"
        f" {moved:6.0f}"
    )
spread = max(distances.values()) / min(distances.values())
tell(
    "robust to bandwidths from 0.01 to 0.5",
    f"the nearest training image has the same class for {min(right.values()):.1%} to "
    f"{max(right.values()):.1%}; its distance differs by a factor of {spread:.2f}",
    min(right.values()) > 0.95,
    spread < 1.2,
)

# %%
# The picture
# -----------
# The noise of a code only determines which images are neighbours: 98% of a new image is
# the mean of the neighbours.
firsts = {f"bandwidth {b}": rows[:, 0] for b, rows in new.items()}
show_rows(firsts, "New images by the bandwidth of the noise in their codes")
plt.show()
