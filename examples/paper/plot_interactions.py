"""
============================
Weak and strong interactions
============================

If the intensity of an image is a function of the row times a function of the column,
rows and columns do not interact. Order 1, the ink of each row and of each column, then
determines the image. Diagonal waves and rings have interactions. The energy of an image
is the sum of the energies of its orders.

The picture shows a separable image and two other images, their approximations of order
1 and 2, and the errors.
"""

# %%
# Three images
# ------------
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pnl.geometry import TensorPoset, energy_decomposition, many_body_projection

i, j = np.mgrid[:28, :28]
radius = np.hypot(i - 13.5, j - 13.5)
images = {
    "separable": (1.2 + np.sin(i / 2)) * (1.2 + np.cos(j / 3)),
    "diagonal\nwaves": 1.2 + np.sin((i + j) / 2),
    "rings": 0.05 + np.exp(-((radius / 9) ** 2)) * (1.2 + np.cos(radius)),
}
p = np.stack([image / image.sum() for image in images.values()])

# %%
# Orders 1 and 2
# --------------
# A matrix has two modes, so that order 2 is exact.
matrix = TensorPoset((28, 28))
kept = [many_body_projection(p, matrix, order).prob for order in (1, 2)]
largest = p.max(axis=(1, 2))
errors = [np.abs(q - p).max(axis=(1, 2)) / largest for q in kept]
energy = energy_decomposition(p, matrix)
for k, name in enumerate(images):
    print(
        f"{' '.join(name.split()):15} energy in order 1: {energy[k, 0]:.4f} nats, in "
        f"order 2: {energy[k, 1]:.4f}; largest error of order 1: {errors[0][k]:.0%} of "
        f"the largest cell, of order 2: {errors[1][k]:.0%}"
    )

# %%
# The same images as tensors of shape (7, 2, 2, 7, 2, 2), the shape that the paper uses
# for MNIST. There are six orders, and order 2 is no longer exact.
fine = TensorPoset((7, 2, 2, 7, 2, 2))
shares = energy_decomposition(p.reshape(3, *fine.shape), fine)
shares /= shares.sum(axis=1, keepdims=True)
print("\nshares of the energy in the orders 1 to 6 of six modes")
for name, share in zip(images, shares, strict=True):
    print(f"{' '.join(name.split()):15}", *(f"{s:6.1%}" for s in share))

# %%
# Claims of the paper and results
# -------------------------------
# The last claim depends on the image: order 1 shows the position of the rings, and
# nothing of the waves.
order_1 = energy[:, 0] / energy.sum(axis=1)
claims = [
    (
        "order 1 is exact for a separable image",
        f"error {errors[0][0]:.0e} of the largest cell",
        [errors[0][0] < 1e-12],
    ),
    (
        "order 2 is exact for all images",
        f"error {errors[1].max():.0e}; order 2 preserves a matrix completely",
        errors[1] < 1e-9,
    ),
    (
        "order 1 keeps the essence of an image that is not separable",
        f"{order_1[1]:.0%} of the energy of the waves, {order_1[2]:.0%} of the rings",
        order_1[1:] > 0.5,
    ),
]
for paper, seen, holds in claims:
    verdict = "agrees" if all(holds) else "in part" if any(holds) else "differs"
    print(f"\npaper:   {paper}\nseen:    {seen}\nverdict: {verdict}")

# %%
# The picture
# -----------
# In the last two columns, white is no error, red is too large and blue is too small.
figure, axes = plt.subplots(3, 5, figsize=(9, 5.4), layout="constrained")
titles = ("image", "order 1", "order 2", "order 1 − image", "order 2 − image")
for line, name, image, low, high, top in zip(
    axes, images, p, *kept, largest, strict=True
):
    for axis, shown in zip(line, (image, low, high), strict=False):
        axis.imshow(shown / top, cmap="gray_r", vmin=0, vmax=1)
    for axis, shown in zip(line[3:], (low, high), strict=True):
        error = axis.imshow((shown - image) / top, cmap="RdBu_r", vmin=-0.6, vmax=0.6)
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
for axis in axes.ravel():
    axis.set(xticks=[], yticks=[])
for axis, title in zip(axes[0], titles, strict=True):
    axis.set_title(title, fontsize="medium")
figure.colorbar(error, ax=axes[:, -1], label="error / largest cell of the image")
figure.suptitle("What the orders of interaction keep of an image")
plt.show()
