"""
=======================================
Generate digits with a required profile
=======================================

The amounts of ink in each row and each column of an image are the expectations of a
code of order 1. :meth:`BackwardProjector.decode_margins
<sklearn_pnl.BackwardProjector.decode_margins>` accepts these sums and returns an image
that has exactly the sums and otherwise resembles the nearest training images.

The example decodes images of the digit 0 from the sums of a test image, and from sums
in which ink moves from the upper to the lower half.
"""

# %%
# Training images and sums of test images
# ---------------------------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sklearn_pnl import BackwardProjector, ManyBodyProjector

digits = load_digits()
zeros = digits.images[digits.target == 0]
train, test = zeros[:120], zeros[120:123]
projector = BackwardProjector(ManyBodyProjector(1, offset=0.01)).fit(train)

rows, columns = test.sum(axis=2), test.sum(axis=1)
same = projector.decode_margins({(0,): rows, (1,): columns})

# %%
# More ink in the lower half
# --------------------------
# Only the sums of rows are required, with the same mass. The columns follow the data.
slope = np.linspace(0.5, 1.5, 8)
heavy = rows * slope
heavy *= rows.sum(axis=1, keepdims=True) / heavy.sum(axis=1, keepdims=True)
tilted = projector.decode_margins({(0,): heavy})

for name, images, wanted in (("both", same, rows), ("heavier", tilted, heavy)):
    missed = np.abs(images.sum(axis=2) - wanted).max()
    print(f"{name:8} largest gap between the ink and the required ink: {missed:.1e}")

# %%
# The pictures
# ------------
# Bars show the ink of each row, and lines show the required ink.
panels = (("test image", test, rows), ("its sums", same, rows),
          ("heavier\nbelow", tilted, heavy))  # fmt: skip
figure, axes = plt.subplots(3, 6, figsize=(8, 4.2), layout="constrained")
for line, (title, images, wanted) in zip(axes, panels, strict=True):
    for k, image in enumerate(images):
        picture, bars = line[2 * k : 2 * k + 2]
        picture.imshow(image, cmap="gray_r", vmin=0, vmax=16)
        bars.barh(range(8), image.sum(axis=1), color="0.7")
        bars.plot(wanted[k], range(8), "k.-", lw=0.8, ms=3)
        bars.invert_yaxis()
        bars.set_xlim(0, 75)
    line[0].set_ylabel(title, rotation=0, ha="right", va="center")
for axis in axes.ravel():
    axis.set(xticks=[], yticks=[])
figure.suptitle("Ink of each row of pixels: in the image (bars), required (line)")
plt.show()
