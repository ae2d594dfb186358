"""
=========================================
Preserve one region of an image in detail
=========================================

The elements of a base can be chosen freely. Order 1 of an 8 x 8 image preserves the ink
of each row and each column. This example also preserves the centre of the image in
detail. The eta of a cell is the ink below and to the right of the cell. If a block of
cells, the next row below and the next column to the right are free, every pixel of the
block is determined.

The picture compares the base with order 1. The printed numbers give the lengths of
the codes, and show that only the centre is exact.
"""

# %%
# The base
# --------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl.geometry import TensorPoset

images = load_digits().images[:200]
poset = TensorPoset((8, 8))
block = np.zeros((8, 8), bool)
block[2:7, 2:7] = True
bases = {
    "order 1": poset.order <= 1,
    "order 1 and\nthe centre": (poset.order <= 1) | block,
}

# %%
# Comparison of the codes
# -----------------------
inside = np.zeros((8, 8), bool)
inside[2:6, 2:6] = True
shown = {"images": images[:8]}
for name, base in bases.items():
    projector = ManyBodyProjector(base=base, poset=poset, offset=0.1, with_mass=True)
    projected = projector.inverse_transform(projector.fit_transform(images)) - 0.1
    error = np.abs(projected - images)
    print(
        f"{name.replace(chr(10), ' '):22} code of {projector.n_params_:2} numbers; "
        f"mean error of a pixel: {error[:, inside].mean():.4f} inside, "
        f"{error[:, ~inside].mean():.4f} outside"
    )
    shown[name] = projected[:8]
figure, axes = plt.subplots(len(shown), 8, figsize=(8, 3.2), layout="constrained")
figure.suptitle("Images and their projections onto two bases")
for line, (name, row) in zip(axes, shown.items(), strict=True):
    for axis, image in zip(line, row, strict=True):
        axis.imshow(image, cmap="gray_r", vmin=0, vmax=images.max())
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
plt.show()
