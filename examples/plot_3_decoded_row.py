"""
=================================
The method, step 3: decode a code
=================================

A code of order 1 contains the amount of ink in each row and column of pixels, and
nothing else. *Decoding* (Algorithm 1 of the paper) takes the remaining information from
the training rows with the nearest codes: the code is projected onto a sub-manifold that
is determined by these rows. The package contains four such sub-manifolds. They differ
in the coordinates that are taken from the code and from the neighbours.
"""

# %%
# A new code
# ----------
# The code lies half-way between the codes of two images of the digit 3.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sklearn_pnl import BackwardProjector, ManyBodyProjector

digits = load_digits()
images = digits.images[digits.target == 3] / 16
base = ManyBodyProjector(1, offset=0.05, with_mass=True).fit(images)
codes = base.transform(images)
new = (codes[:1] + codes[1:2]) / 2
shown = {
    "row i": images[0],
    "its code": base.inverse_transform(codes[:1])[0] - 0.05,
    "new code": base.inverse_transform(new)[0] - 0.05,
}

# %%
# The decoded rows
# ----------------
# A row on the fibre has all sums of ink of the code, and is otherwise as near to the
# neighbours as possible. Encoding the row gives back the code. The other three local
# manifolds do not have this property.
for name in ("fiber", "theta", "eta", "mixture"):
    projector = BackwardProjector(base, local_manifold=name, k_neighbors=4).fit(images)
    if name == "fiber":
        near = projector.kneighbors(new, return_distance=False)[0]
        shown["mean of the\n4 neighbours"] = images[near].mean(axis=0)
    row = projector.inverse_transform(new)
    shown[f'"{name}"'] = row[0]
    change = np.abs(base.transform(row) - new).max()
    print(f"{name:8} code of the decoded row less the new code: {change:.1e}")

figure, axes = plt.subplots(2, 4, figsize=(7.5, 4.2), layout="constrained")
for axis, (title, picture) in zip(axes.ravel(), shown.items(), strict=True):
    axis.imshow(picture, cmap="gray_r", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=10)
plt.show()
