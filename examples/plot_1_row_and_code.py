"""
==================================
The method, 1: a row and its code
==================================

A row is read as a distribution, and *encoded*: projected on the distributions whose
interactions beyond an order are zero (the base, M_ell in the paper). Here a row is an
image of a digit, 8 x 8 pixels read as a tensor of shape (2, 2, 2, 2, 2, 2). The larger
the order, the more of the image the code keeps.
"""

# %%
# Rows as tensors
# ---------------
# The height and the width of an image are split into their prime factors, a mode for
# each: interactions between modes are then patterns at several scales.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from sklearn_pnl import ManyBodyProjector, PrimeFactorReshaper

images = load_digits().images[[3, 8, 0]]
reshaper = PrimeFactorReshaper().fit(images)
tensors = reshaper.transform(images)
print(f"{images.shape[1:]} pixels become a tensor of shape {tensors.shape[1:]}")

# %%
# Their codes
# -----------
# ``offset`` is added to every cell once, since codes are logarithms and some pixels are
# 0. ``with_mass=True`` keeps how much ink there is in all.
shown = {"row\n64 pixels": images}
for order in (1, 2, 3, 4):
    projector = ManyBodyProjector(order, offset=0.1, with_mass=True)
    codes = projector.fit_transform(tensors)
    back = reshaper.inverse_transform(projector.inverse_transform(codes) - 0.1)
    shown[f"order {order}\n{codes.shape[1]} numbers"] = back
    print(f"order {order}: {projector.reconstruction_err_:.3f} nats are lost")

figure, axes = plt.subplots(3, 5, figsize=(7, 4.4), layout="constrained")
figure.suptitle("What a code keeps of a row")
for column, (title, pictures) in zip(axes.T, shown.items(), strict=True):
    for axis, picture in zip(column, pictures, strict=True):
        axis.imshow(picture, cmap="gray_r", vmin=0, vmax=16)
        axis.set(xticks=[], yticks=[])
    column[0].set_title(title, fontsize=9)
plt.show()
