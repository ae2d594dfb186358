"""
==========================================
New rows whose totals add up
==========================================

A table of accounts: costs of four kinds, and their total. Every row adds up. New rows
of a sampler need not: here a total is off by up to 3% of its range. SMOTE keeps
totals, since a point between two rows on a straight line has all that both have;
:class:`~sklearn_pnl.PNLSampler` finds the equations that all rows satisfy, and moves
each new row to the nearest one, in the sense of KL, that satisfies them too.

The same projection answers what no interpolation can: rows with a total of your choice.
"""

# %%
# A table, and three samplers
# ---------------------------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE

from sklearn_pnl import ColumnConstraint, PNLAugmenter, PNLSampler

PARTS = ["wages", "rent", "material", "power"]
rng = np.random.default_rng(0)
size = rng.lognormal(3.0, 0.5, 600)
shares = rng.dirichlet([8, 3, 6, 2], 600)
table = pd.DataFrame(size[:, None] * shares, columns=PARTS)
table.insert(0, "total", table.sum(axis=1))
table["staff"] = 0.4 * table["wages"] + rng.gamma(2.0, 0.5, 600)
y = (np.arange(600) < 60).astype(int)

samplers = {
    "SMOTE": SMOTE(random_state=0),
    "PNL, invariants=None": PNLSampler(invariants=None, random_state=0),
    "PNL": PNLSampler(random_state=0),
}
new = {name: s.fit_resample(table, y)[0].iloc[600:] for name, s in samplers.items()}
print(samplers["PNL"].invariants_)

# %%
# How far totals are off
# ----------------------
gaps = {name: rows["total"] - rows[PARTS].sum(axis=1) for name, rows in new.items()}
for name, gap in gaps.items():
    share = np.abs(gap).max() / np.ptp(table["total"])
    print(f"{name:22} largest gap: {share:.1e} of the range of the total")

# %%
# Rows with a total of your choice
# --------------------------------
# Parents are drawn among rows between which the total is met, so that the parts are
# those of tables of that size, not of any row stretched to it.
augmenter = PNLAugmenter().fit(table)
asked = ColumnConstraint("total", equal=40)
large = augmenter.sample(200, random_state=0, constraints=asked)
gap = (large["total"] - large[PARTS].sum(axis=1)).abs().max()
print(f"\nasked for a total of 40: {large['total'].min():.9f} to "
      f"{large['total'].max():.9f}, parts add up to {gap:.0e}")  # fmt: skip

# %%
# The pictures
# ------------
figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained")
limit = 1.1 * np.abs(gaps["PNL, invariants=None"]).max()
for axis, (name, gap) in zip(axes, gaps.items(), strict=False):
    axis.scatter(new[name]["total"], gap, s=5)
    axis.set(title=name, xlabel="total", ylim=(-limit, limit))
axes[0].set_ylabel("total less its parts")
axes[3].scatter(table["wages"], table["staff"], s=5, color="0.8", label="all rows")
axes[3].scatter(large["wages"], large["staff"], s=5, label="total = 40")
axes[3].set(title="rows with a total of 40", xlabel="wages", ylabel="staff")
axes[3].legend()
plt.show()
