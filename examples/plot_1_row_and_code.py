"""
================================
The method, step 1: encode a row
================================

A row is read as a distribution and *encoded*: it is projected onto the distributions
whose interactions beyond an order are zero. The paper calls this set the base M_ell.
In this example, a row is an image of a digit with 8 x 8 pixels, as a tensor of shape
(2, 2, 2, 2, 2, 2). A larger order preserves more of the image.
"""

# %%
# Rows as tensors
# ---------------
# The height and the width of an image are split into their prime factors. Each factor
# becomes a mode, and interactions between modes are patterns at several scales.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from sklearn_pnl import ManyBodyProjector, PrimeFactorReshaper

images = load_digits().images[[3, 8, 0]]
reshaper = PrimeFactorReshaper().fit(images)
tensors = reshaper.transform(images)
print(f"{images.shape[1:]} pixels become a tensor of shape {tensors.shape[1:]}")

# %%
# Codes of the rows
# -----------------
# Codes are logarithms and some pixels are 0. Therefore ``offset`` is added to every
# cell. With ``with_mass=True`` the code contains the total amount of ink.
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
