"""
=================================
MNIST: composition of a new image
=================================

The settings of the paper: images are tensors of shape (7, 2, 2, 7, 2, 2), and the base
of order 1 has 17 dimensions including the mass. Codes come from a kernel density
estimate with bandwidth 0.05, and each code is decoded with the 8 nearest training
images. The paper generates 10,000 images, the same number for each class, and claims
that shapes are preserved.

The picture shows a training image of each digit, its projection onto the base, the
image that was sampled near its code, and the closest training image. The example
requires MNIST.
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
# Preservation of shapes
# ----------------------
# This check does not use the method: does the closest training image have the class of
# the new image? For real images that are left out of the search it usually does.
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
    f"the nearest training image has the same class for {same:.1%} of the new images "
    f"and {usual_same:.1%} of real images; new images are {1 - apart:.0%} nearer",
    same > usual_same,
)

# %%
# The picture
# -----------
# The projection has 16 numbers, the ink in blocks of rows and columns. The strokes come
# from the eight neighbours of the code. The new image is nearly their mean, and is gray
# where the neighbours differ.
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
