"""
======================
Rake a batch of tables
======================

A survey counts people by age and means of transport in several districts. The margins
differ from those of the census, because some age groups respond less often. Raking
finds the tables that have the margins of the census and are nearest to the counts, in
the KL divergence. Odds ratios do not change, and empty cells remain empty.

:func:`~sklearn_pnl.geometry.rake_array` rakes all districts at once.
"""

# %%
# Counts and margins
# ------------------
# Children do not drive, which is a structural zero in every district.
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pnl.geometry import RakingError, rake_array

AGES = ["child", "young", "adult", "old"]
WAYS = ["walk", "bike", "bus", "car"]
rng = np.random.default_rng(0)
habits = np.array([[5, 4, 3, 0], [2, 5, 4, 3], [2, 2, 2, 8], [4, 1, 5, 4.0]])
people = rng.poisson(40 * habits * rng.gamma(5, 0.2, size=(6, 4, 1)))
answers = np.array([0.3, 0.1, 0.2, 0.5])[:, None]
survey = rng.binomial(people, answers)
survey[:, habits > 0] += 1
census = {(0,): people.sum(axis=2), (1,): people.sum(axis=1)}

# %%
# All districts at once
# ---------------------
raked = rake_array(survey, census)
print(f"largest residual: {raked.residual.max():.1e} of the people of a district, in "
      f"{raked.n_iter.max()} sweeps")  # fmt: skip
scaled = survey * (people.sum((1, 2)) / survey.sum((1, 2)))[:, None, None]
for name, tables in (("scaled up", scaled), ("raked", raked.tables)):
    print(
        f"{name:10} mean error of a cell: {np.abs(tables - people).mean():.1f} people"
    )

# %%
# Margins that contradict each other
# ----------------------------------
wrong = {
    **census,
    (1,): census[(1,)] + np.eye(4, dtype=int)[0] * (np.arange(6) == 3)[:, None],
}
try:
    rake_array(survey, wrong)
except RakingError as error:
    print(f"\n{error}")

# %%
# The pictures
# ------------
# The cells of one district, and its margins compared with the census.
shown = {
    "survey, scaled up": scaled[0],
    "raked": raked.tables[0],
    "people": people[0],
}
figure, axes = plt.subplots(1, 3, figsize=(9, 3.1), layout="constrained")
for axis, (title, counts) in zip(axes, shown.items(), strict=True):
    axis.imshow(counts, cmap="Blues", vmin=0, vmax=people[0].max())
    for i, j in np.ndindex(4, 4):
        color = "w" if counts[i, j] > 0.6 * people[0].max() else "k"
        axis.text(j, i, f"{counts[i, j]:.0f}", ha="center", va="center", color=color)
    sums, wanted = counts.sum(axis=1), census[(0,)][0]
    axis.set_yticks(range(4), [f"{a}\n{s:.0f} of {w}" for a, s, w in
                               zip(AGES, sums, wanted, strict=True)])  # fmt: skip
    axis.set_xticks(range(4), WAYS)
    axis.set_title(title)
figure.suptitle("Row labels: number of people of each age, compared with the census")
plt.show()
