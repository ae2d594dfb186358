"""
==============================
MNIST: a density of the pixels
==============================

What do codes contribute? A kernel density estimate of the pixels of 1,000 images, with
the bandwidth of 30 from the paper, samples a training image and adds noise to each of
its 784 pixels. The example requires MNIST.
"""

# %%
# Samples of pixels
# -----------------
import matplotlib.pyplot as plt
import numpy as np
from paper_images import closest, load_images, show_rows, tell
from sklearn.neighbors import KernelDensity

from sklearn_pnl import Codes, PNLAugmenter

N_NEW = 200
X, y = load_images("mnist")
images = X[:1000]
density = KernelDensity(bandwidth=30).fit(images.reshape(1000, -1))
in_pixels = density.sample(N_NEW, random_state=0).reshape(-1, 28, 28)
augmenter = PNLAugmenter(Codes.paper(embedding=None), k_neighbors=8)
in_codes = np.concatenate(
    [
        augmenter.fit(images[y[:1000] == digit]).sample(N_NEW // 10, 0)
        for digit in range(10)
    ]
)

# %%
# Comparison with noise
# ---------------------
# If a new image is a training image plus noise, its difference from the nearest
# training image has the norm of the noise, and adjacent pixels are uncorrelated.


def neighbours_alike(rows):
    """Return the correlation of adjacent pixels."""
    return np.corrcoef(rows[:, :, 1:].ravel(), rows[:, :, :-1].ravel())[0, 1]


print("the new image minus the closest training image")
alike, lengths, nearest = {}, {}, {}
for name, rows in {"pixels": in_pixels, "codes": in_codes}.items():
    lengths[name], near = closest(images, rows)
    nearest[name] = images[near]
    alike[name] = neighbours_alike(rows - images[near])
    print(
        f"drawn in {name:6}: length {lengths[name].mean():.0f}, deviation of a pixel "
        f"{(rows - images[near]).std():.1f}, correlation of adjacent pixels "
        f"{alike[name]:.2f}"
    )
expected = 30 * np.sqrt(784)
tell(
    "noise on a training row",
    f"norm of the change {lengths['pixels'].mean():.0f} (plain noise: {expected:.0f}); "
    f"correlation of adjacent pixels {alike['pixels']:.2f}",
    abs(lengths["pixels"].mean() / expected - 1) < 0.02,
    abs(alike["pixels"]) < 0.02,
)

# %%
# The picture
# -----------
shown = {
    "drawn in pixels": in_pixels[:10],
    "closest\ntraining images": nearest["pixels"][:10],
    "drawn in codes": in_codes[:: N_NEW // 10],
    "closest to\nthese": nearest["codes"][:: N_NEW // 10],
}
show_rows(shown, "1,000 images: a density of pixels, and one of codes")
plt.show()
