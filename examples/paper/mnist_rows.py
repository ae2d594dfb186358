"""
==================================
MNIST: what a new image is made of
==================================

The settings of the paper: images as tensors of shape (7, 2, 2, 7, 2, 2), a base of
order 1, which has 17 dimensions with the mass, codes from a kernel density estimate of
bandwidth 0.05, and 8 nearest training images for each. The paper makes 10,000 images
more, the same number a class, and says that shapes are preserved.

The picture has a training image of each digit, its projection on the base, the image
drawn near its code, and the training image closest to that. Needs MNIST.
"""

# %%
# Ten thousand new images
# -----------------------
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from paper_images import closest, load_images, show_rows, tell

from sklearn_pnl import Codes, ManyBodyProjector, PNLSampler, PrimeFactorReshaper

X, y = load_images("mnist")
sampler = PNLSampler(
    sampling_strategy={digit: (y == digit).sum() + 1000 for digit in range(10)},
    method=Codes.paper(embedding=None),
    k_neighbors=8,
    random_state=0,
)
start = perf_counter()
X_more, y_more = sampler.fit_resample(X, y)
seconds = perf_counter() - start
new, labels = X_more[len(X) :], y_more[len(X) :]
method = sampler.augmenters_[0].method_
dims = 1 + method.n_params_, int((method.poset_.order > 1).sum())
print(f"{len(new)} new images from {len(X)}: {seconds:.1f} s")
print(f"tensor {method.poset_.shape}, base of {dims[0]} dimensions with the mass")

# %%
# Are shapes preserved?
# ---------------------
# A yardstick that knows nothing of the method: is the training image closest to a new
# one of its class? For training images that are left out, it mostly is.
rng = np.random.default_rng(0)
some = rng.choice(len(new), 1000, replace=False)
distance, near = closest(X, new[some])
same = np.mean(y[near] == labels[some])
out = rng.choice(len(X), 1000, replace=False)
rest = np.setdiff1d(np.arange(len(X)), out)
usual, near = closest(X[rest], X[out])
usual_same = np.mean(y[rest][near] == y[out])
apart = np.median(distance) / np.median(usual)
print(f"closest training image of the same class: {same:.1%}, usually {usual_same:.1%}")
print(f"distance to it, against that of real images: {apart:.2f} (medians)")

tell("dimensions: B 17, D 767", f"{dims[0]}, {dims[1]}", dims == (17, 767))
tell(
    "shape is preserved",
    f"{same:.1%} of the new images lie closest to one of their class, {usual_same:.1%} "
    f"of real images do; new ones lie {1 - apart:.0%} nearer",
    same > usual_same,
)

# %%
# The picture
# -----------
# The projection has 16 numbers: it tells which blocks of rows and of columns hold how
# much ink. The strokes come from the eight images near the code, whose mean the new
# one nearly is; where these differ it is gray.
drawn = []
for digit, augmenter in sampler.augmenters_.items():
    image, parents = augmenter.sample(1, random_state=0, return_parents=True)
    row = X[y == digit][parents[:, 0]]
    reshaper = PrimeFactorReshaper().fit(row)
    projector = ManyBodyProjector(order=1, offset=1e-5, with_mass=True)
    codes = projector.fit_transform(reshaper.transform(row))
    projected = reshaper.inverse_transform(projector.inverse_transform(codes))
    known = X[y == digit]
    drawn.append([row, projected, image, known[closest(known, image)[1]]])
titles = ["training rows", "projections", "new rows", "closest training rows"]
images = map(np.concatenate, zip(*drawn, strict=True))
show_rows(
    dict(zip(titles, images, strict=True)), "MNIST with the settings of the paper"
)
plt.show()
