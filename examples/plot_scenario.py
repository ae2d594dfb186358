"""
===============================
Project a table onto a scenario
===============================

What would a table of stores look like if product group A sold 20% more and group B as
much as before? Multiplying the column of group A violates the totals. It also ignores
that a store with larger sales of A has longer working hours.

There are two answers. :func:`~sklearn_pnl.control.adjust` moves each store as little as
possible, and :class:`~sklearn_pnl.PNLAugmenter` generates new stores that resemble the
stores with high sales of A.
"""

# %%
# Stores
# ------
# The table contains the sales of two product groups, their totals, and working hours.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.control import ColumnConstraint, adjust

rng = np.random.default_rng(1)
n = 400
size = rng.lognormal(2.0, 0.3, n)
taste = rng.normal(0, 0.1, n)
stores = pd.DataFrame(
    {
        "bread": size * rng.lognormal(0.0 + taste, 0.2),
        "cake": size * rng.lognormal(-1.0 + taste, 0.3),
        "tea": size * rng.lognormal(-0.5 - taste, 0.2),
        "coffee": size * rng.lognormal(-0.2 - taste, 0.3),
    }
)
stores["A"] = stores["bread"] + stores["cake"]
stores["B"] = stores["tea"] + stores["coffee"]
stores["all"] = stores["A"] + stores["B"]
stores["hours"] = 2 * stores["all"] * rng.lognormal(0, 0.1, n)
augmenter = PNLAugmenter().fit(stores)
print(augmenter.equalities_)

# %%
# Projected stores
# ----------------
# Each store sells 20% more of A and as much of B as before, and the totals change.
asked = [
    ColumnConstraint("A", equal=1.2 * stores["A"]),
    ColumnConstraint("B", equal=stores["B"]),
]
moved = adjust(stores, asked)
grown = moved["A"].sum() / stores["A"].sum()
print(
    f"\nA grows by {grown - 1:.6%}, B by {moved['B'].sum() / stores['B'].sum() - 1:.1%}"
)
print(f"totals differ by {(moved['all'] - moved['A'] - moved['B']).abs().max():.0e}")

# %%
# New stores with higher sales of A
# ---------------------------------
# Only A is constrained here. The requested sales are limited to the 98% quantile of A,
# because the table contains few larger stores. The new stores also have the working
# hours of stores with high sales of A.
wanted = np.minimum(1.2 * stores["A"], stores["A"].quantile(0.98))
new = augmenter.sample(
    n, random_state=0, constraints=ColumnConstraint("A", equal=wanted)
)

for name, rows in (("stores", stores), ("moved", moved), ("new", new)):
    print(
        f"{name:7} sales of A {rows['A'].mean():.1f}, hours {rows['hours'].mean():.1f}"
    )

# %%
# The pictures
# ------------
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
axes[0].scatter(stores["bread"], stores["cake"], s=8, color="0.7", label="stores")
axes[0].scatter(moved["bread"], moved["cake"], s=8, label="20% more of A")
axes[0].set(title="Moved as little as possible", xlabel="bread", ylabel="cake")
for k in range(0, n, 4):
    axes[0].plot(
        [stores["bread"][k], moved["bread"][k]], [stores["cake"][k], moved["cake"][k]],
        color="0.6", lw=0.6, zorder=0,
    )  # fmt: skip
for name, rows, color in (("stores", stores, "0.7"), ("moved", moved, "C0"),
                          ("new", new, "C1")):  # fmt: skip
    axes[1].scatter(rows["A"], rows["hours"], s=8, color=color, label=name)
axes[1].set(title="Moved and new stores", xlabel="sales of A", ylabel="hours")
for axis in axes:
    axis.legend()
plt.show()
