"""
=================================
The method, step 2: sample a code
=================================

A new code is sampled between the codes of two neighbouring rows, at a random position
on the geodesic between them. Along the geodesic the ink moves gradually. The five
middle pictures show the points of the base that belong to codes, with the detail of
order 1; the first and the last are the two rows.
"""

# %%
# Two neighbouring rows and their codes
# -------------------------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sklearn_pnl import BackwardProjector, ManyBodyProjector
from sklearn_pnl.methods import KernelDraws, MixupDraws

digits = load_digits()
images = digits.images[digits.target == 3] / 16
base = ManyBodyProjector(1, offset=0.05, with_mass=True)
projector = BackwardProjector(base, k_neighbors=2).fit(images)
codes = projector.transform(images)
first, second = projector.kneighbors(codes[:1], return_distance=False)[0]
print(f"rows {first} and {second}, codes of {codes.shape[1]} numbers")

# %%
# The geodesic between the two codes
# ----------------------------------
positions = np.linspace(0, 1, 5)
between = np.array([(1 - t) * codes[first] + t * codes[second] for t in positions])
points = base.fit(images).inverse_transform(between) - 0.05

# %%
# Noise around the geodesic
# -------------------------
# ``MixupDraws``, the default, chooses a random position and adds noise in the shape of
# the codes near the base row, from which a new row starts. ``KernelDraws``, the scheme
# of the paper, adds noise of the same size in every coordinate to the code of one row.
for draws in (MixupDraws(), MixupDraws(noise=0), KernelDraws()):
    print(draws)

figure, axes = plt.subplots(1, 7, figsize=(9, 2), layout="constrained")
figure.suptitle("From the code of one row to that of another")
pictures = [images[first], *points, images[second]]
titles = ["row i", *(f"t = {t:.2f}" for t in positions), "row j"]
for axis, picture, title in zip(axes, pictures, titles, strict=True):
    axis.imshow(picture, cmap="gray_r", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=9)
plt.show()
