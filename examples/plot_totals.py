"""
==========================================
Generate rows whose parts add up to totals
==========================================

A table of accounts contains costs of four kinds and their total. A new row of
:class:`~sklearn_pnl.PNLSampler` is an affine combination of training rows, so that its
parts add up to the total. The rows of SMOTE, which are convex combinations, have the
same property, but less spread: mixing neighbouring rows removes a sixth of the
covariance of their differences. The noise of ``PNLSampler`` is a combination of
neighbouring rows as well, and restores the spread.

The second part of the example requires a given total, which interpolation cannot
provide.
"""

# %%
# A table, and two samplers
# -------------------------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE

from sklearn_pnl import PNLAugmenter, PNLSampler
from sklearn_pnl.control import ColumnConstraint

PARTS = ["wages", "rent", "material", "power"]
rng = np.random.default_rng(0)
size = rng.lognormal(3.0, 0.5, 600)
shares = rng.dirichlet([8, 3, 6, 2], 600)
table = pd.DataFrame(size[:, None] * shares, columns=PARTS)
table.insert(0, "total", table.sum(axis=1))
table["staff"] = 0.4 * table["wages"] + rng.gamma(2.0, 0.5, 600)
y = (np.arange(600) < 60).astype(int)

samplers = {"SMOTE": SMOTE(random_state=0), "PNLSampler": PNLSampler(random_state=0)}
new = {name: s.fit_resample(table, y)[0].iloc[600:] for name, s in samplers.items()}
print(samplers["PNLSampler"].equalities_)

# %%
# Sums and spread
# ---------------
rare = table[:60]
for name, rows in new.items():
    gap = np.abs(rows["total"] - rows[PARTS].sum(axis=1)).max()
    spread = (rows[PARTS].std() / rare[PARTS].std()).mean()
    print(f"{name:11} largest gap {gap:.0e}, spread {spread:.2f} of that of the rows")

# %%
# Rows with a required total
# --------------------------
# Base rows are chosen near the required total. The new rows therefore have the parts of
# accounts of this size.
augmenter = PNLAugmenter().fit(table)
asked = ColumnConstraint("total", equal=40)
large = augmenter.sample(200, random_state=0, constraints=asked)
gap = (large["total"] - large[PARTS].sum(axis=1)).abs().max()
print(f"\nrequired total of 40: {large['total'].min():.9f} to "
      f"{large['total'].max():.9f}, parts differ by {gap:.0e}")  # fmt: skip

# %%
# The pictures
# ------------
figure, axes = plt.subplots(1, 2, figsize=(8, 3.3), layout="constrained")
axes[0].scatter(table["wages"], table["material"], s=5, color="0.8", label="all rows")
axes[0].scatter(rare["wages"], rare["material"], s=14, label="minority class")
rows = new["PNLSampler"]
axes[0].scatter(rows["wages"], rows["material"], s=5, label="new rows")
axes[0].set(title="PNLSampler", xlabel="wages", ylabel="material")
axes[1].scatter(table["wages"], table["staff"], s=5, color="0.8", label="all rows")
axes[1].scatter(large["wages"], large["staff"], s=5, label="total = 40")
axes[1].set(title="rows with a total of 40", xlabel="wages", ylabel="staff")
for axis in axes:
    axis.legend()
plt.show()
