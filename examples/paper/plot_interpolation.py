"""
===========================
The path between two images
===========================

Half-way between two images lies their mean, which shows the shadows of both. In the
base of order 1, the path between the images is the e-geodesic, a straight line in
theta. Each of its points is a product of a function of the row and a function of the
column. Therefore its interaction energy, the divergence between the approximations of
order 2 and 1, is zero. The straight line leaves the base, even if both images are in
the base.

Without a base, the e-geodesic has no such property, as the second picture shows.
"""

# %%
# Two images
# ----------
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl.geometry import (
    TensorPoset,
    e_geodesic,
    geodesic_energy,
    interaction_energy,
    m_geodesic,
)

i, j = np.mgrid[:28, :28]
radius = np.hypot(i - 13.5, j - 13.5)
separable = (1.2 + np.sin(i / 2)) * (1.2 + np.cos(j / 3))
other = 2.2 + np.sin((i + j) / 2) + np.cos(radius)
ends = np.stack([separable / separable.sum(), other / other.sum()])

# %%
# Three paths
# -----------
# The base has order 1. The end points in the base are the projections of the images.
matrix = TensorPoset((28, 28))
projector = ManyBodyProjector(order=1, offset=0)
projected = projector.inverse_transform(projector.fit_transform(ends))
t = np.linspace(0, 1, 7)
ways = {
    "in the base:\ne-geodesic": e_geodesic(*projected, t),
    "straight line": m_geodesic(*ends, t),
    "on all cells:\ne-geodesic": e_geodesic(*ends, t),
}
energies = {name: interaction_energy(q, matrix) for name, q in ways.items()}
print(f"interaction energy in nats at {', '.join(f'{s:.2f}' for s in t)}")
for name, energy in energies.items():
    print(f"{' '.join(name.split()):27}", *(f"{e:8.5f}" for e in energy))

# %%
# Claims of the paper and results
# -------------------------------
base, line, cells = energies.values()
claims = [
    (
        "interaction energy is lower in the base all the way",
        f"at most {base.max():.0e} nats in the base; {line[1]:.4f} to {line[-1]:.3f} "
        "nats on the straight line after its start, which is separable",
        base[1:] < line[1:],
    ),
    (
        "the same for an e-geodesic outside every base",
        f"lower at {(cells < line)[1:-1].sum()} of {len(t) - 2} places on the way",
        cells[1:-1] < line[1:-1],
    ),
]
for paper, seen, holds in claims:
    verdict = "agrees" if all(holds) else "in part" if any(holds) else "differs"
    print(f"\npaper:   {paper}\nseen:    {seen}\nverdict: {verdict}")

# %%
# Images along the paths
# ----------------------
# In the base the image changes its form. On the straight line one image fades into the
# other.
figure, axes = plt.subplots(len(ways), len(t), figsize=(9, 3.4), layout="constrained")
figure.suptitle("From a separable image to another")
for line, (name, images) in zip(axes, ways.items(), strict=True):
    for axis, image in zip(line, images, strict=True):
        axis.imshow(image, cmap="gray_r", vmin=0, vmax=ends.max())
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
for axis, place in zip(axes[0], t, strict=True):
    axis.set_title(f"t = {place:.2f}", fontsize="medium")

# %%
# Energies along the paths
# ------------------------
# Left: between the images. Right: between their projections, where the e-geodesic stays
# in the base.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
t = np.linspace(0, 1, 41)
for axis, pair in zip(axes, (ends, projected), strict=True):
    for name, energy in zip("em", geodesic_energy(*pair, t, matrix), strict=True):
        axis.plot(t, energy, label=f"{name}-geodesic")
    axis.set(xlabel="position between the two", ylabel="energy (nats)")
axes[0].set_title("between the images")
axes[0].axhline(0, color="C2", label="e-geodesic in the base")
axes[1].set_title("between their projections on order 1")
for axis in axes:
    axis.legend()
figure.suptitle("Interaction energy on the way")
plt.show()
